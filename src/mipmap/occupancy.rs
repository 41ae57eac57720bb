//! Level 0 alone.

use super::bricks::{Bricks, Cell};
use super::level_view::LevelView;
use super::nonzero::Voxel;
use super::pyramid::{Mapping, Pyramid, check_cells};
use super::source::{Above, Bits, Nonzero};
use super::tuning::Tuning;
use crate::Real;
use crate::error::{Error, Result};
use crate::simd::Level;
use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;
use ndarray::{ArrayView2, ArrayView3};

/// A grid of occupied and empty cells, a bit each: level 0 of a [`Pyramid`].
///
/// # Examples
///
/// ```
/// use pullback::mipmap::{Occupancy, Pyramid};
/// use pullback::ndarray::array;
///
/// // Cells are half-open: a point on the upper bound is outside.
/// let points = array![[0.5, 0.5, 0.5], [-0.5, 0.5, 0.5], [10.0, 0.5, 0.5], [f64::NAN, 0.5, 0.5]];
/// let (grid, outside) = Occupancy::from_points(points.view(), [0.0; 3], 1.0, [10, 1, 1])?;
/// assert_eq!((grid.grid().count(), outside), (1, 3));
/// let pyramid = Pyramid::build_to(grid, 3)?;
/// assert_eq!(pyramid.level(2)?.shape(), [3, 1, 1]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    pub(super) pyramid: Pyramid,
}

impl Occupancy {
    /// The grid that is occupied where `array` is above `threshold`. NaN and equality are empty. O(X Y Z).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where an axis has length 0; [`Error::TooLarge`], [`Error::Allocation`], and
    /// [`Error::Environment`] from [`Level::current`].
    pub fn from_threshold<T: Real>(array: ArrayView3<'_, T>, threshold: T) -> Result<Self> {
        let pyramid = Pyramid::ground(&Above { array, threshold }, Level::current()?, Tuning::default())?;
        Ok(Self { pyramid })
    }

    /// The grid that is occupied where `array` is not 0. O(X Y Z).
    ///
    /// # Errors
    ///
    /// As [`Occupancy::from_threshold`].
    pub fn from_nonzero<V: Voxel>(array: ArrayView3<'_, V>) -> Result<Self> {
        Ok(Self { pyramid: Pyramid::ground(&Nonzero { array }, Level::current()?, Tuning::default())? })
    }

    /// The grid of packed rows, `ceil(Z / 64)` words each, as [`LevelView::rows`] gives them; what is behind a row's cells is
    /// ignored. O(X Y Z / 64).
    ///
    /// # Errors
    ///
    /// As [`Occupancy::from_threshold`], and [`Error::Shape`] where there are more or fewer bits.
    pub fn from_bits(rows: &BitSlice<u64, Lsb0>, shape: [usize; 3]) -> Result<Self> {
        check_cells(shape)?;
        Ok(Self { pyramid: Pyramid::ground(&Bits::new(rows, shape)?, Level::current()?, Tuning::default())? })
    }

    /// The cells that hold a point (N, 3), `floor((point - origin) / voxel)` in `f64`, and how many points are outside of the
    /// grid or not finite. O(N + X Y Z / 64).
    ///
    /// # Errors
    ///
    /// As [`Occupancy::from_threshold`]; [`Error::Shape`] where points are not (N, 3), and [`Error::NonFinite`] or
    /// [`Error::Parameter`] for the mapping.
    pub fn from_points<T: Real>(
        points: ArrayView2<'_, T>,
        origin: [f64; 3],
        voxel: f64,
        shape: [usize; 3],
    ) -> Result<(Self, usize)> {
        if points.ncols() != 3 {
            let (found, expected) = (points.shape().to_vec(), vec![points.nrows(), 3]);
            return Err(Error::Shape { argument: "points", found, expected });
        }
        let mut grid = Self::empty(shape)?.with_mapping(origin, voxel)?;
        let mut outside = 0;
        let bricks = &mut grid.pyramid.tree[0];
        for point in points.outer_iter() {
            match cell([0, 1, 2].map(|axis| wide(point[axis])), origin, voxel, shape) {
                Some(cell) => {
                    let (word, bit) = bricks.frame.place(cell);
                    bricks.words_mut()[word] |= 1 << bit;
                }
                None => outside += 1,
            }
        }
        Ok((grid, outside))
    }

    /// The grid without an occupied cell.
    ///
    /// # Errors
    ///
    /// As [`Occupancy::from_threshold`].
    pub fn empty(shape: [usize; 3]) -> Result<Self> {
        check_cells(shape)?;
        Ok(Self { pyramid: Pyramid::over(Bricks::empty(shape)?, Level::current()?, Tuning::default()) })
    }

    /// The same grid in the world: cell `i` of an axis starts at `origin + i * voxel`.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] for the origin, [`Error::Parameter`] where `voxel` is not finite and greater than 0.
    pub fn with_mapping(self, origin: [f64; 3], voxel: f64) -> Result<Self> {
        Ok(Self { pyramid: self.pyramid.with_mapping(origin, voxel)? })
    }

    /// Where the grid lies, if that was said.
    #[must_use]
    pub fn mapping(&self) -> Option<Mapping> {
        self.pyramid.mapping
    }

    /// (X, Y, Z).
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        self.pyramid.shape()
    }

    /// The cells, to look at.
    #[must_use]
    pub fn grid(&self) -> LevelView<'_> {
        LevelView::new(&self.pyramid, 0)
    }
}

/// The number as `f64`, which holds every number of both types.
pub(super) fn wide<T: Real>(x: T) -> f64 {
    x.to_f64().unwrap_or(f64::NAN)
}

/// The cell of a point, where there is one.
fn cell(point: [f64; 3], origin: [f64; 3], voxel: f64, shape: Cell) -> Option<Cell> {
    let mut cell = [0; 3];
    for axis in 0..3 {
        let index = ((point[axis] - origin[axis]) / voxel).floor();
        // Comparisons with NaN fail.
        if !(point[axis].is_finite() && index >= 0.0 && index < shape[axis] as f64) {
            return None;
        }
        cell[axis] = index as usize;
    }
    Some(cell)
}
