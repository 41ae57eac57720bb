//! Kernel maps: every kernel of a batch, sample by sample.
//!
//! A task computes some kernels one after the other. Each stays in the level-one cache until it is normalized; large outputs
//! are then written past the caches, in whole lines though kernels end within one.

use super::form::{Form, Path};
use super::grid::{Centre, Grid};
use super::shape::{Parameters, checked_offsets, widened};
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, STREAM_BYTES, Start};
use crate::error::{Error, Result};
use crate::layout::{check_shape, elements};
use crate::parallel::{Cut, PARALLEL_BYTES, for_each_tile, is_worth_threads};
use crate::simd::Level;
use ndarray::{Array3, ArrayD, ArrayView, ArrayView3, ArrayViewMut, Dimension};
use std::ops::Range;

/// Bytes of kernels that one task computes.
const TILE_BYTES: usize = 128 << 10;

/// Anisotropic Gaussian kernels on a grid, each with numbers of its own, and their gradients.
///
/// The kernel of the parameters of a pixel is `p(z) = exp(-q(z) / 2) / sum over the grid of exp(-q / 2)`, a density on the grid
/// of kh x kw samples `z = (x, y)`. `q` is the quadratic form that [`Parameters`] describe, by default `|M z|^2` of a 2 x 2
/// matrix `M`; where `z = 0` lies on the grid says a [`Centre`]. With leading axes of any number:
///
/// | | shapes | kernels | offsets |
/// |---|---|---|---|
/// | [`Parameters::Factor`] | (..., 2, 2) | (..., kh, kw) | (..., 2) |
/// | all others | (..., 3) | (..., kh, kw) | (..., 2) |
///
/// Row of a kernel is `y`, column is `x`; positions and offsets have `x` first, in samples.
///
/// # Every kernel that can be described is computed
///
/// The sum is taken relative to the largest weight, so that no kernel is 0 / 0. One so narrow that all weights underflow has its
/// weight on the nearest samples, in equal shares where several are as near; one that is flat (`M = 0`) is uniform. Entries
/// below the least normal number are exactly 0.
///
/// # Precision
///
/// With `u` = 2^-24 for `f32` and 2^-53 for `f64`, `Q(z)` the sum over the rows of `M` of `(|m1 x| + |m2 y|)^2` (of
/// [`Parameters::Precision`]: `a x^2 + 2 |b x y| + c y^2`) and `Qm` its mean under the kernel, every entry is within
/// `32 u + 4 u (Q(z) + Qm)` of the right value, relative to it. Results are the same bits for every number of threads, and the same
/// at [`Level::V3`] and [`Level::V4`]; [`Level::Base`] rounds more often.
///
/// # Gradients
///
/// For a gradient `g` of the kernels, `s = sum p g` and `h = p (g - s)`, the gradient of `M` is `-M sum h z z^T`; those of other
/// parameters follow from it. Kernels are computed again: nothing is saved, and no array as large as the kernels is made. A
/// gradient that is the same at all samples gives exactly 0.
///
/// Numbers are `f32` or `f64`; half precision is not supported. Arrays may have any strides; standard layout is the fast path.
///
/// # Examples
///
/// ```
/// use pullback::gaussian::{Centre, KernelMaps, Parameters};
/// use pullback::ndarray::{Axis, array};
///
/// // Two kernels of 3 x 3 by their standard deviations along x and y: an angle turns them.
/// let maps = KernelMaps::<f64>::new(3, Centre::Middle)?.with_parameters(Parameters::Sigmas);
/// let shapes = array![[2.0, 0.5, 0.0], [1e-9, 1e-9, 0.0]];
/// let kernels = maps.forward(shapes.view())?; // (2, 3, 3)
/// assert!((kernels.sum_axis(Axis(2)).sum_axis(Axis(1)) - 1.0).iter().all(|x| x.abs() < 1e-15));
/// assert!((kernels[[0, 1, 2]] / kernels[[0, 1, 1]] - (-1.0f64 / 8.0).exp()).abs() < 1e-15);
/// assert_eq!(kernels[[1, 1, 1]], 1.0);
///
/// // A wider kernel has less in the middle.
/// let mut grad_maps = kernels.clone();
/// grad_maps.fill(0.0);
/// grad_maps[[0, 1, 1]] = 1.0;
/// let grad_shapes = maps.adjoint(grad_maps.view(), shapes.view())?; // (2, 3)
/// assert!(grad_shapes[[0, 0]] < 0.0 && grad_shapes[[0, 1]] < 0.0);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct KernelMaps<T> {
    pub(super) grid: Grid<T>,
    pub(super) parameters: Parameters,
    pub(super) level: Level,
    pub(super) tuning: Tuning,
}

/// Choices that are made by size, as arguments, so that tests can make every one of them on small sizes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Whether to write past the caches.
    pub stream: Option<bool>,
    /// Whether to use several threads.
    pub parallel: Option<bool>,
    /// Kernels of a tile.
    pub tile: Option<usize>,
    /// `false`: not to use that a grid is its own mirror image.
    pub mirror: Option<bool>,
    /// How kernels are computed.
    pub path: Option<Path>,
}

impl<T: Real> KernelMaps<T> {
    /// An operator on kernels of `k` x `k` samples, described by [`Parameters::Factor`]. O(k^2).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where `k` or the stride of a centre is 0 or a position is not finite, [`Error::TooLarge`],
    /// [`Error::Allocation`], and [`Error::Environment`] from [`Level::current`].
    pub fn new(k: usize, centre: Centre) -> Result<Self> {
        if k == 0 {
            return Err(Error::Parameter { argument: "k", value: k.to_string(), expected: "at least 1" });
        }
        Self::rectangular([k, k], centre)
    }

    /// An operator on kernels of `kh` rows and `kw` columns, described by [`Parameters::Factor`]. O(kh kw).
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::new`].
    pub fn rectangular(shape: [usize; 2], centre: Centre) -> Result<Self> {
        Self::on(Grid::new(shape, centre)?)
    }

    /// An operator on kernels with samples at the positions `z` (kh, kw, 2), `x` first, anywhere. O(kh kw).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::Parameter`] where there are no samples, [`Error::NonFinite`], [`Error::Allocation`], and
    /// [`Error::Environment`] from [`Level::current`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gaussian::KernelMaps;
    /// use pullback::ndarray::{Array3, array};
    ///
    /// // Every second sample of a row, from the left end.
    /// let z = Array3::from_shape_fn((1, 3, 2), |(_, column, axis)| if axis == 0 { 2.0 * column as f32 } else { 0.0 });
    /// let maps = KernelMaps::with_grid(z.view())?;
    /// let kernel = maps.forward(array![[0.5, 0.0], [0.0, 0.5]].view())?;
    /// assert!((kernel[[0, 1]] / kernel[[0, 0]] - (-0.5f32).exp()).abs() < 1e-6);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn with_grid(z: ArrayView3<'_, T>) -> Result<Self> {
        Self::on(Grid::with_positions(z)?)
    }

    fn on(grid: Grid<T>) -> Result<Self> {
        let level = Level::current()?;
        Ok(Self { grid, parameters: Parameters::default(), level, tuning: Tuning::default() })
    }

    /// The same operator on kernels that other numbers describe.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Parameters) -> Self {
        self.parameters = parameters;
        self
    }

    /// The same operator at another level. [`Level::V3`] and [`Level::V4`] give the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::LevelUnavailable`] where the CPU lacks the level.
    pub fn with_level(mut self, level: Level) -> Result<Self> {
        self.level = level.checked()?;
        Ok(self)
    }

    /// The same operator with choices made by the caller instead of by size.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuning(mut self, tuning: Tuning) -> Self {
        self.grid.mirrored &= tuning.mirror != Some(false);
        self.tuning = tuning;
        self
    }

    /// The level that the kernels run at.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// The size of a kernel, (kh, kw).
    #[must_use]
    pub fn shape(&self) -> [usize; 2] {
        self.grid.shape
    }

    /// The positions of the samples (kh, kw, 2), `x` first, in samples from the centre.
    #[must_use]
    pub fn grid(&self) -> Array3<T> {
        self.grid.z.clone()
    }

    /// The kernels of `shapes` (..., 2, 2) or (..., 3): a new array (..., kh, kw). O(kernels x kh kw).
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::Shape`] where the trailing axes are not those of the parameters; [`Error::NonFinite`] or
    /// [`Error::KernelShape`] for the first kernel with a number that is not finite or numbers that describe none;
    /// [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn forward(&self, shapes: ArrayView<'_, T, impl Dimension>) -> Result<ArrayD<T>> {
        let shape = self.kernel_shape(shapes.shape())?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        Ok(buffer.fill(&shape, |kernels| self.write(&cells, None, Output::fresh(kernels))))
    }

    /// [`KernelMaps::forward`] into the caller's array (..., kh, kw), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::forward`]; nothing is written then.
    pub fn forward_into(
        &self,
        shapes: ArrayView<'_, T, impl Dimension>,
        maps: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        check_shape("maps", maps.shape(), &self.kernel_shape(shapes.shape())?)?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let _ = self.write(&cells, None, Output::array(maps, Start::Zero));
        Ok(())
    }

    /// The kernels of `shapes`, each moved by an offset (..., 2) in samples, `x` first: `q(z - o)`. A new array (..., kh, kw).
    /// O(kernels x kh kw).
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::forward`], and [`Error::Shape`] or [`Error::NonFinite`] for the offsets.
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gaussian::{Centre, KernelMaps};
    /// use pullback::ndarray::array;
    ///
    /// let maps = KernelMaps::<f64>::new(5, Centre::Middle)?;
    /// let (shape, right) = (array![[1.0, 0.0], [0.0, 1.0]], array![1.0, 0.0]);
    /// let kernel = maps.forward_at(shape.view(), right.view())?;
    /// assert!(kernel.iter().all(|&p| p <= kernel[[2, 3]]));
    ///
    /// // More weight there asks to be moved no further; more weight to the right of it, further.
    /// let gradient = |x: usize| {
    ///     let mut grad_maps = kernel.clone();
    ///     grad_maps.fill(0.0);
    ///     grad_maps[[2, x]] = 1.0;
    ///     maps.adjoint_at(grad_maps.view(), shape.view(), right.view()).map(|gradients| gradients.grad_offsets[0])
    /// };
    /// assert!(gradient(4)? > 0.0 && gradient(2)? < 0.0);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn forward_at(
        &self,
        shapes: ArrayView<'_, T, impl Dimension>,
        offsets: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ArrayD<T>> {
        let shape = self.kernel_shape(shapes.shape())?;
        check_shape("offsets", offsets.shape(), &self.offset_shape(&shape))?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let offsets = checked_offsets(&offsets)?;
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        Ok(buffer.fill(&shape, |kernels| self.write(&cells, Some(&offsets), Output::fresh(kernels))))
    }

    /// [`KernelMaps::forward_at`] into the caller's array (..., kh, kw), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::forward_at`]; nothing is written then.
    pub fn forward_at_into(
        &self,
        shapes: ArrayView<'_, T, impl Dimension>,
        offsets: ArrayView<'_, T, impl Dimension>,
        maps: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        let shape = self.kernel_shape(shapes.shape())?;
        check_shape("offsets", offsets.shape(), &self.offset_shape(&shape))?;
        check_shape("maps", maps.shape(), &shape)?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let offsets = checked_offsets(&offsets)?;
        let _ = self.write(&cells, Some(&offsets), Output::array(maps, Start::Zero));
        Ok(())
    }

    /// The shape of the kernels of shapes that are shaped so.
    pub(super) fn kernel_shape(&self, shapes: &[usize]) -> Result<Vec<usize>> {
        Ok([self.parameters.leading("shapes", shapes)?, &self.grid.shape].concat())
    }

    /// The shape of the offsets of kernels that are shaped so.
    pub(super) fn offset_shape(&self, kernels: &[usize]) -> Vec<usize> {
        [&kernels[..kernels.len() - 2], &[2]].concat()
    }

    /// The forms of some kernels.
    pub(super) fn forms(&self, kernels: Range<usize>, shapes: &[T], offsets: Option<&[T]>) -> Vec<Form<T>> {
        kernels
            .map(|kernel| {
                let offset = offsets.map(|offsets| {
                    let [x, y, ..] = widened(&offsets[2 * kernel..][..2]);
                    [x, y]
                });
                Form::new(self.parameters, self.values(kernel, shapes), offset, &self.grid, self.tuning.path)
            })
            .collect()
    }

    /// The numbers of a kernel.
    pub(super) fn values(&self, kernel: usize, shapes: &[T]) -> [f64; 4] {
        let count = self.parameters.count();
        widened(&shapes[count * kernel..][..count])
    }

    /// How an output with `width` cells a kernel is cut.
    pub(super) fn cut(&self, kernels: usize, width: usize) -> Cut {
        let bytes = self.grid.samples() * size_of::<T>();
        let tile = (TILE_BYTES / bytes).max(1);
        // A multiple of the lanes of a line ends with one.
        let tile = if tile > T::LANES { tile / T::LANES * T::LANES } else { tile };
        Cut {
            group: kernels,
            tile: self.tuning.tile.unwrap_or(tile),
            width,
            parallel: self
                .tuning
                .parallel
                .unwrap_or_else(|| is_worth_threads(kernels.saturating_mul(bytes), PARALLEL_BYTES)),
        }
    }

    fn write(&self, shapes: &[T], offsets: Option<&[T]>, out: Output<'_, T>) -> Filled {
        let (kernels, samples) = (shapes.len() / self.parameters.count(), self.grid.samples());
        if kernels == 0 {
            return Filled::NOTHING;
        }
        let bytes = kernels.saturating_mul(samples * size_of::<T>());
        let stream = samples >= T::LANES && self.tuning.stream.unwrap_or(bytes > STREAM_BYTES);
        for_each_tile(out, kernels, &self.cut(kernels, samples), &|_, kernels, tile| {
            let mut weights = vec![T::zero(); 2 * self.grid.x.len()];
            let forms = self.forms(kernels, shapes, offsets);
            T::maps(self.level, &self.grid, &forms, stream, &mut weights, tile);
        })
    }
}
