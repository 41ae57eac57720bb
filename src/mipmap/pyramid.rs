//! The pyramid: a tree of bricks, made from the finest level up.

use super::bricks::{Bricks, Cell};
use super::cut;
use super::level_view::LevelView;
use super::nonzero::Voxel;
use super::source::{Above, Bits, Nonzero, Source};
use super::tuning::Tuning;
use crate::Real;
use crate::error::{Error, Result};
use crate::settings::settings;
use crate::simd::Level;
use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;
use ndarray::{ArrayView2, ArrayView3};

/// Words of a changed box above level 0 that are looked at one after another. An estimate.
const FEW_WORDS: usize = 1 << 12;

/// Where a grid lies: cell `i` of an axis is from `origin + i * voxel` to before `origin + (i + 1) * voxel`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mapping {
    /// The lower corner of cell (0, 0, 0).
    pub origin: [f64; 3],
    /// The length of a cell.
    pub voxel: f64,
}

impl Mapping {
    pub(super) fn new(origin: [f64; 3], voxel: f64) -> Result<Self> {
        if let Some(axis) = origin.iter().position(|x| !x.is_finite()) {
            let value = format!("{:?}", origin[axis]);
            return Err(Error::NonFinite { argument: "origin", position: vec![axis], value });
        }
        if !(voxel.is_finite() && voxel > 0.0) {
            let value = format!("{voxel:?}");
            return Err(Error::Parameter { argument: "voxel", value, expected: "greater than 0" });
        }
        Ok(Self { origin, voxel })
    }
}

/// The number of levels of a whole pyramid: `1 + ceil(log2(max(X, Y, Z)))`. An axis of length 0 counts as 1.
///
/// ```
/// use pullback::mipmap::full_levels;
///
/// assert_eq!(full_levels([1, 1, 1]), 1);
/// assert_eq!(full_levels([4, 4, 4]), 3);
/// assert_eq!(full_levels([25, 3, 1]), 6); // 25, 13, 7, 4, 2, 1
/// ```
#[must_use]
pub fn full_levels(shape: [usize; 3]) -> usize {
    let longest = shape.into_iter().fold(1, usize::max);
    1 + (usize::BITS - (longest - 1).leading_zeros()) as usize
}

/// `ceil(n / 2^k)` an axis.
pub(super) fn level_shape(shape: Cell, k: usize) -> Cell {
    shape.map(|n| if k < usize::BITS as usize { ((n - 1) >> k) + 1 } else { 1 })
}

pub(super) fn check_cells(shape: Cell) -> Result<()> {
    if shape.contains(&0) {
        return Err(Error::Parameter { argument: "shape", value: "0".to_owned(), expected: "greater than 0" });
    }
    Ok(())
}

pub(super) fn check_levels(shape: Cell, levels: usize) -> Result<()> {
    let limit = full_levels(shape);
    match levels {
        0 => Err(Error::Parameter { argument: "levels", value: "0".to_owned(), expected: "at least 1" }),
        _ if levels > limit => Err(Error::TooLarge { argument: "levels", value: levels as u128, limit: limit as u128 }),
        _ => Ok(()),
    }
}

/// A grid of occupied and empty cells, and every coarser level of it: a cell of level `k` covers `2^k` cells of level 0 on each
/// axis, and is occupied where one of them is. Cells beyond the edge do not exist.
///
/// Level `k` has `ceil(n / 2^k)` cells on an axis, and the highest one a single cell. Cells are `[x, y, z]`, the indices of
/// an array of shape (X, Y, Z). What changes the grid changes the levels with it: they are always those of a pyramid that was
/// built anew.
///
/// About 1.02 bits a cell, levels included, where the axes are multiples of 4.
///
/// # Examples
///
/// ```
/// use pullback::mipmap::Pyramid;
/// use pullback::ndarray::Array3;
///
/// let mut density = Array3::<f32>::zeros((4, 4, 4));
/// for cell in [[0, 0, 0], [2, 0, 0], [3, 3, 3], [0, 3, 3]] {
///     density[cell] = 1.0;
/// }
/// let mut pyramid = Pyramid::from_threshold(density.view(), 0.5)?;
/// assert_eq!(pyramid.levels(), 3); // 4, 2 and 1 cells on each axis
/// let coarse: Vec<_> = pyramid.level(1)?.iter_occupied().collect();
/// assert_eq!(coarse, [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]]);
/// assert!(pyramid.any_in_box([1, 0, 0], [3, 4, 4])?);
/// assert_eq!(pyramid.count_in_box([0, 0, 0], [3, 4, 4])?, 3);
///
/// pyramid.clear([3, 3, 3])?;
/// assert!(!pyramid.level(1)?.get([1, 1, 1])?);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pyramid {
    /// `tree[s + 1]` has a cell a brick of `tree[s]`.
    pub(super) tree: Vec<Bricks>,
    pub(super) levels: usize,
    pub(super) mapping: Option<Mapping>,
    pub(super) level: Level,
    pub(super) tuning: Tuning,
}

/// Pyramids are equal where their shape, their number of levels, their mapping and all cells are.
impl PartialEq for Pyramid {
    fn eq(&self, other: &Self) -> bool {
        self.levels == other.levels && self.mapping == other.mapping && self.tree[0] == other.tree[0]
    }
}

settings!(simd_level of [] Pyramid { level, tuning }, same bits from Base);

impl Pyramid {
    /// Level 0 alone.
    pub(super) fn ground(source: &impl Source, level: Level, tuning: Tuning) -> Result<Self> {
        check_cells(source.shape())?;
        let tree = vec![cut::bricks(source, level, tuning)?];
        Ok(Self { tree, levels: 1, mapping: None, level, tuning })
    }

    /// Level 0 of bricks that are there.
    pub(super) fn over(bricks: Bricks, level: Level, tuning: Tuning) -> Self {
        Self { tree: vec![bricks], levels: 1, mapping: None, level, tuning }
    }

    /// Whether levels below `levels` are looked up in one more grid of the tree.
    fn grows(&self, levels: usize) -> bool {
        let top = self.tree.last().expect("level 0").frame;
        let covers = self.exponents(self.tree.len()).into_iter().max().expect("three axes");
        top.words() > 1 && (covers as usize) < levels
    }

    /// A cell of grid `s` of the tree has `2^exponent` cells of level 0 on each axis.
    pub(super) fn exponents(&self, s: usize) -> [u32; 3] {
        let mut sum = [0; 3];
        for bricks in &self.tree[..s] {
            sum.iter_mut().zip(bricks.frame.log).for_each(|(sum, log)| *sum += log);
        }
        sum
    }

    /// The pyramid with the levels below `levels`, which is checked.
    pub(super) fn grown(mut self, levels: usize) -> Result<Self> {
        self.grow(levels)?;
        Ok(self)
    }

    fn grow(&mut self, levels: usize) -> Result<()> {
        while self.grows(levels) {
            let top = self.tree.last().expect("level 0");
            let above = cut::bricks(&cut::words_of(top), self.level, self.tuning)?;
            self.tree.push(above);
        }
        self.levels = self.levels.max(levels);
        Ok(())
    }

    fn all_levels(self) -> Result<Self> {
        let levels = full_levels(self.shape());
        self.grown(levels)
    }

    /// Makes every grid above level 0 again.
    pub(super) fn raise(&mut self) {
        for s in 1..self.tree.len() {
            let (below, above) = self.tree.split_at_mut(s);
            cut::write_box(&mut above[0], [0; 3], &cut::words_of(&below[s - 1]), self.level, self.tuning);
        }
    }

    /// Makes the cells above those of the box from `lo` to before `hi`, which is not empty, again.
    pub(super) fn raise_box(&mut self, mut lo: Cell, mut hi: Cell) {
        for s in 1..self.tree.len() {
            let (below, above) = self.tree.split_at_mut(s);
            let below = &below[s - 1];
            (lo, hi) = below.frame.bricks_of(lo, hi);
            if (0..3).map(|axis| hi[axis] - lo[axis]).product::<usize>() <= FEW_WORDS {
                cut::write_few(&mut above[0], below, (lo, hi));
            } else {
                cut::write_box(&mut above[0], lo, &cut::words_of_box(below, lo, hi), self.level, self.tuning);
            }
        }
    }

    /// Every level of a grid.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`].
    pub fn build(occupancy: super::Occupancy) -> Result<Self> {
        occupancy.pyramid.all_levels()
    }

    /// Levels 0 to before `levels` of a grid. Others can be added by [`Pyramid::extend_to`].
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] or [`Error::TooLarge`] where there is no level or there are more than [`full_levels`], and
    /// [`Error::Allocation`].
    pub fn build_to(occupancy: super::Occupancy, levels: usize) -> Result<Self> {
        check_levels(occupancy.shape(), levels)?;
        occupancy.pyramid.grown(levels)
    }

    /// Adds the levels below `levels` that are not there yet.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::build_to`].
    pub fn extend_to(&mut self, levels: usize) -> Result<()> {
        check_levels(self.shape(), levels)?;
        self.grow(levels)
    }

    /// Level 0 alone.
    #[must_use]
    pub fn into_occupancy(mut self) -> super::Occupancy {
        self.tree.truncate(1);
        self.levels = 1;
        super::Occupancy { pyramid: self }
    }

    /// A pyramid of all levels of a grid that is occupied where `array` is above `threshold`. NaN and equality are empty.
    /// O(X Y Z).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where an axis has length 0; [`Error::TooLarge`], [`Error::Allocation`], and
    /// [`Error::Environment`] from [`Level::current`].
    pub fn from_threshold<T: Real>(array: ArrayView3<'_, T>, threshold: T) -> Result<Self> {
        Self::ground(&Above { array, threshold }, Level::current()?, Tuning::default())?.all_levels()
    }

    /// A pyramid of all levels of a grid that is occupied where `array` is not 0. O(X Y Z).
    ///
    /// # Errors
    ///
    /// As [`Pyramid::from_threshold`].
    pub fn from_nonzero<V: Voxel>(array: ArrayView3<'_, V>) -> Result<Self> {
        Self::ground(&Nonzero { array }, Level::current()?, Tuning::default())?.all_levels()
    }

    /// A pyramid of all levels of a grid of packed rows, `ceil(Z / 64)` words each; what is behind a row's cells is ignored.
    /// In `NumPy` such rows are `packbits(.., axis=-1, bitorder='little')`, padded to a multiple of 8 bytes. O(X Y Z / 64).
    ///
    /// # Errors
    ///
    /// As [`Pyramid::from_threshold`], and [`Error::Shape`] where there are more or fewer bits.
    pub fn from_bits(rows: &BitSlice<u64, Lsb0>, shape: [usize; 3]) -> Result<Self> {
        check_cells(shape)?;
        Self::ground(&Bits::new(rows, shape)?, Level::current()?, Tuning::default())?.all_levels()
    }

    /// A pyramid of all levels of the cells that hold a point, `floor((point - origin) / voxel)`, and how many points are
    /// outside of the grid or not finite. O(N + X Y Z / 64).
    ///
    /// # Errors
    ///
    /// As [`Pyramid::from_threshold`]; [`Error::Shape`] where points are not (N, 3), and [`Error::NonFinite`] or
    /// [`Error::Parameter`] for the mapping.
    pub fn from_points<T: Real>(
        points: ArrayView2<'_, T>,
        origin: [f64; 3],
        voxel: f64,
        shape: [usize; 3],
    ) -> Result<(Self, usize)> {
        let (occupancy, outside) = super::Occupancy::from_points(points, origin, voxel, shape)?;
        Ok((Self::build(occupancy)?, outside))
    }

    /// A pyramid of all levels without an occupied cell.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::from_threshold`].
    pub fn empty(shape: [usize; 3]) -> Result<Self> {
        Self::build(super::Occupancy::empty(shape)?)
    }

    /// The same pyramid in the world: cell `i` of an axis starts at `origin + i * voxel`.
    ///
    /// # Errors
    ///
    /// [`Error::NonFinite`] for the origin, [`Error::Parameter`] where `voxel` is not finite and greater than 0.
    pub fn with_mapping(mut self, origin: [f64; 3], voxel: f64) -> Result<Self> {
        self.mapping = Some(Mapping::new(origin, voxel)?);
        Ok(self)
    }

    /// Where the grid lies, if that was said.
    #[must_use]
    pub fn mapping(&self) -> Option<Mapping> {
        self.mapping
    }

    /// The shape of level 0.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        self.tree[0].frame.shape
    }

    /// The number of levels.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// Bytes of all cells in memory.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.tree.iter().map(|bricks| 8 * bricks.frame.words()).sum()
    }

    /// Level `k`, to look at.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where there is none.
    pub fn level(&self, k: usize) -> Result<LevelView<'_>> {
        if k >= self.levels {
            return Err(Error::TooLarge { argument: "level", value: k as u128, limit: self.levels as u128 - 1 });
        }
        Ok(LevelView::new(self, k))
    }
}
