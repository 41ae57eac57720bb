//! Pyramids from what does not fit one call: other instructions, fewer levels, grids that come in slabs.

use super::bricks::{Bricks, Frame};
use super::cut;
use super::nonzero::Voxel;
use super::pyramid::{Mapping, Pyramid, check_cells, check_levels, full_levels};
use super::source::{Above, Bits, Nonzero, Source};
use super::tuning::Tuning;
use crate::Real;
use crate::error::{Error, Result};
use crate::layout::check_shape;
use crate::parallel::{PARALLEL_BYTES, is_worth_threads};
use crate::settings::settings;
use crate::simd::Level;
use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;
use ndarray::ArrayView3;
use rayon::prelude::*;

/// Builds a [`Pyramid`] at a chosen level of instructions, of fewer levels, or from slabs that follow one another along the first
/// axis, so that the whole array need not be in memory.
///
/// # Examples
///
/// ```
/// use pullback::mipmap::PyramidBuilder;
/// use pullback::ndarray::Array3;
///
/// let mut builder = PyramidBuilder::new([10, 20, 30])?.with_mapping([0.0; 3], 0.25)?;
/// for slab in 0..5 {
///     let slab = Array3::from_shape_fn((2, 20, 30), |(x, y, z)| (2 * slab + x + y + z) as f32);
///     builder.push_slab(slab.view(), 56.0)?;
/// }
/// let pyramid = builder.finish()?;
/// assert_eq!(pyramid.level(0)?.count(), 1);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct PyramidBuilder {
    shape: [usize; 3],
    levels: usize,
    mapping: Option<Mapping>,
    level: Level,
    tuning: Tuning,
    slabs: Option<Slabs>,
}

/// What has been pushed.
#[derive(Clone, Debug)]
struct Slabs {
    bricks: Bricks,
    /// The planes that are no whole slab of bricks yet, as packed rows.
    packed: Vec<u64>,
    planes: usize,
}

settings!(simd_level of [] PyramidBuilder { level, tuning }, same bits from Base);

impl PyramidBuilder {
    /// A builder of all levels of a grid of `shape`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where an axis has length 0, [`Error::TooLarge`], and [`Error::Environment`] from
    /// [`Level::current`].
    pub fn new(shape: [usize; 3]) -> Result<Self> {
        check_cells(shape)?;
        Frame::new(shape)?;
        let levels = full_levels(shape);
        Ok(Self { shape, levels, mapping: None, level: Level::current()?, tuning: Tuning::default(), slabs: None })
    }

    /// A builder of levels 0 to before `levels`.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::build_to`].
    pub fn with_levels(mut self, levels: usize) -> Result<Self> {
        check_levels(self.shape, levels)?;
        self.levels = levels;
        Ok(self)
    }

    /// A builder of pyramids in the world, as [`Pyramid::with_mapping`].
    ///
    /// # Errors
    ///
    /// As [`Pyramid::with_mapping`].
    pub fn with_mapping(mut self, origin: [f64; 3], voxel: f64) -> Result<Self> {
        self.mapping = Some(Mapping::new(origin, voxel)?);
        Ok(self)
    }

    /// The pyramid of a whole array: occupied above `threshold`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where it has another shape, [`Error::Allocation`].
    pub fn threshold<T: Real>(self, array: ArrayView3<'_, T>, threshold: T) -> Result<Pyramid> {
        check_shape("array", array.shape(), &self.shape)?;
        self.whole(&Above { array, threshold })
    }

    /// The pyramid of a whole array: occupied where it is not 0.
    ///
    /// # Errors
    ///
    /// As [`PyramidBuilder::threshold`].
    pub fn nonzero<V: Voxel>(self, array: ArrayView3<'_, V>) -> Result<Pyramid> {
        check_shape("array", array.shape(), &self.shape)?;
        self.whole(&Nonzero { array })
    }

    /// The pyramid of packed rows, as in [`Pyramid::from_bits`].
    ///
    /// # Errors
    ///
    /// As [`PyramidBuilder::threshold`].
    pub fn bits(self, rows: &BitSlice<u64, Lsb0>) -> Result<Pyramid> {
        let bits = Bits::new(rows, self.shape)?;
        self.whole(&bits)
    }

    fn whole(self, source: &impl Source) -> Result<Pyramid> {
        let mut pyramid = Pyramid::ground(source, self.level, self.tuning)?;
        pyramid.mapping = self.mapping;
        pyramid.grown(self.levels)
    }

    /// Takes the next planes, (any number, Y, Z): occupied above `threshold`.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where rows or columns are more or fewer, or planes are more than the grid's; [`Error::Allocation`].
    pub fn push_slab<T: Real>(&mut self, slab: ArrayView3<'_, T>, threshold: T) -> Result<()> {
        self.push(&Above { array: slab, threshold })
    }

    /// Takes the next planes, (any number, Y, Z): occupied where they are not 0.
    ///
    /// # Errors
    ///
    /// As [`PyramidBuilder::push_slab`].
    pub fn push_slab_nonzero<V: Voxel>(&mut self, slab: ArrayView3<'_, V>) -> Result<()> {
        self.push(&Nonzero { array: slab })
    }

    fn push(&mut self, source: &impl Source) -> Result<()> {
        let [found, height, width] = source.shape();
        check_shape("slab", &[found, height, width], &[found, self.shape[1], self.shape[2]])?;
        let total = self.planes().saturating_add(found);
        if total > self.shape[0] {
            return Err(Error::Shape { argument: "slabs", found: vec![total], expected: vec![self.shape[0]] });
        }
        let (level, tuning) = (self.level, self.tuning);
        let slabs = self.slabs()?;
        let frame = slabs.bricks.frame;
        let (thick, words) = (1usize << frame.log[0], frame.row_words());
        let parallel =
            tuning.parallel.unwrap_or_else(|| is_worth_threads(source.bytes() / found.max(1), PARALLEL_BYTES));
        // Rows that are packed by one task.
        let rows = (8192 / words).clamp(1, height);
        for x in 0..found {
            let at = slabs.planes % thick;
            let plane = &mut slabs.packed[at * height * words..][..height * words];
            let pack = |(part, out): (usize, &mut [u64])| {
                source.pack(level, x, part * rows..height.min((part + 1) * rows), out);
            };
            if parallel {
                plane.par_chunks_mut(rows * words).enumerate().for_each(pack);
            } else {
                plane.chunks_mut(rows * words).enumerate().for_each(pack);
            }
            slabs.planes += 1;
            if slabs.planes.is_multiple_of(thick) {
                slabs.cut(level, parallel);
            }
        }
        Ok(())
    }

    fn slabs(&mut self) -> Result<&mut Slabs> {
        if self.slabs.is_none() {
            let bricks = Bricks::empty(self.shape)?;
            let frame = bricks.frame;
            let packed = vec![0; (frame.row_words() * self.shape[1]) << frame.log[0]];
            self.slabs = Some(Slabs { bricks, packed, planes: 0 });
        }
        Ok(self.slabs.as_mut().expect("just made"))
    }

    /// The planes that have been pushed.
    #[must_use]
    pub fn planes(&self) -> usize {
        self.slabs.as_ref().map_or(0, |slabs| slabs.planes)
    }

    /// The pyramid of all that was pushed.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where planes are missing, and [`Error::Allocation`].
    pub fn finish(mut self) -> Result<Pyramid> {
        let planes = self.planes();
        let Some(mut slabs) = self.slabs.take().filter(|_| planes == self.shape[0]) else {
            return Err(Error::Shape { argument: "slabs", found: vec![planes], expected: vec![self.shape[0]] });
        };
        let frame = slabs.bricks.frame;
        let rest = slabs.planes % (1 << frame.log[0]);
        if rest > 0 {
            slabs.packed[rest * frame.row_words() * frame.shape[1]..].fill(0);
            slabs.cut(self.level, true);
        }
        let mut pyramid = Pyramid::over(slabs.bricks, self.level, self.tuning);
        pyramid.mapping = self.mapping;
        pyramid.grown(self.levels)
    }
}

impl Slabs {
    /// Cuts the bricks of the last planes.
    fn cut(&mut self, level: Level, parallel: bool) {
        let frame = self.bricks.frame;
        let words = frame.grid[1] * frame.grid[2];
        let slab = (self.planes - 1) >> frame.log[0];
        cut::slab(&frame, &self.packed, level, parallel, &mut self.bricks.words_mut()[slab * words..][..words]);
    }
}
