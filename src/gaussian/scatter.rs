//! The transpose of a blur as an operator of its own.

use super::blur::BlurGradients;
use super::border::Border;
use super::grid::Centre;
use super::maps::Tuning;
use super::per_pixel::{Frame, PerPixel};
use super::planes::{Layout, beside_kernels};
use super::shape::Parameters;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, elements};
use crate::simd::Level;
use ndarray::{Array4, ArrayView, ArrayView4, ArrayViewMut, ArrayViewMut4, Dimension};

/// Every pixel of `x` spread by an anisotropic Gaussian kernel of its own: the transpose of a [`Blur`](super::Blur).
///
/// Where a blur's kernel belongs to the pixel that is computed, a scatter's belongs to the pixel that is spread, as the light of
/// a point does: `y[b, s v + jy - kh / 2, s u + jx - kw / 2, :] += p_bvu[j] * x[b, v, u, :]` for all `v`, `u` and
/// `j = (jy, jx)`, halves rounded down. What falls outside of `y` is added where the [`Border`] rule says that it comes from; under
/// [`Border::Constant`], of any value, it is dropped. With the stride `s`, `x` has (H', W') = ceil((H, W) / s) pixels.
///
/// | array | [`Layout::ChannelsLast`] | [`Layout::ChannelsFirst`] |
/// |---|---|---|
/// | `x` | (B, H', W', C) | (B, C, H', W') |
/// | `y` | (B, H, W, C) | (B, C, H, W) |
/// | shapes | (B, H', W', 2, 2) or (B, H', W', 3) | the same |
///
/// Kernels are never built. Every pixel of `y` is added up by one owner, in an order that depends on sizes alone: nothing is
/// locked. Memory, strides, levels and threads are as for a [`Blur`](super::Blur), and so are errors: a sum over the pixels that
/// reach a place is within `(E + (2 kw + 2 kh + 4 + n) u) * sum of p |x|`, to first order, where the border rule adds up n rows
/// and columns at the place: few but for [`Border::Edge`] and windows larger than the image.
///
/// # Examples
///
/// ```
/// use pullback::gaussian::{Border, Centre, Parameters, Scatter};
/// use pullback::ndarray::Array4;
///
/// // Two points of light, the right one out of focus.
/// let mut x = Array4::<f32>::zeros((1, 7, 16, 1)); // (B, H, W, C)
/// x[[0, 3, 3, 0]] = 1.0;
/// x[[0, 3, 11, 0]] = 1.0;
/// let shapes = Array4::from_shape_fn((1, 7, 16, 3), |(_, _, x, i)| if i == 2 { 0.0 } else if x < 8 { 0.1 } else { 1.0 });
/// let scatter = Scatter::<f32>::new(7, Centre::Middle, Border::Constant(0.0), 1)?.with_parameters(Parameters::Sigmas);
/// let y = scatter.forward(x.view(), shapes.view(), [7, 16])?;
/// assert!(y[[0, 3, 3, 0]] > 0.999 && y[[0, 3, 11, 0]] < 0.2);
/// assert!((y.sum() - 2.0).abs() < 1e-5);
///
/// // The gradient of the brightest pixel: to be as bright, the right point would have to be sharper.
/// let mut grad_y = Array4::zeros((1, 7, 16, 1));
/// grad_y[[0, 3, 11, 0]] = 1.0;
/// let gradients = scatter.adjoint(grad_y.view(), x.view(), shapes.view())?;
/// assert!(gradients.grad_shapes[[0, 3, 11, 0]] < 0.0);
/// assert_eq!(gradients.grad_image[[0, 3, 11, 0]], y[[0, 3, 11, 0]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Scatter<T> {
    core: PerPixel<T>,
}

impl<T: Real> Scatter<T> {
    /// A scatter by kernels of `k` x `k` samples, described by [`Parameters::Factor`], of images in [`Layout::ChannelsLast`].
    /// O(k^2).
    ///
    /// # Errors
    ///
    /// As [`Blur::new`](super::Blur::new).
    pub fn new(k: usize, centre: Centre, border: Border, stride: usize) -> Result<Self> {
        Ok(Self { core: PerPixel::square(k, centre, border, stride)? })
    }

    /// A scatter by kernels of (kh, kw) samples. O(kh kw).
    ///
    /// # Errors
    ///
    /// As [`Blur::new`](super::Blur::new).
    pub fn rectangular(shape: [usize; 2], centre: Centre, border: Border, stride: usize) -> Result<Self> {
        Ok(Self { core: PerPixel::new(shape, centre, border, stride)? })
    }

    /// The same operator on other numbers.
    #[must_use]
    pub fn with_parameters(mut self, parameters: Parameters) -> Self {
        self.core.parameters = parameters;
        self
    }

    /// The same operator on images in another layout.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.core.layout = layout;
        self
    }

    /// The level that the kernels run at.
    #[must_use]
    pub fn level(&self) -> Level {
        self.core.level
    }

    /// The same operator at another level.
    ///
    /// # Errors
    ///
    /// [`Error::LevelUnavailable`](crate::Error::LevelUnavailable) where the CPU lacks the level.
    pub fn with_level(mut self, level: Level) -> Result<Self> {
        self.core.level = level.checked()?;
        Ok(self)
    }

    /// The same operator with choices made by the caller instead of by size.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuning(mut self, tuning: Tuning) -> Self {
        self.core.tuning = tuning;
        self
    }

    /// `x` spread over an image of `size` (H, W): a new array. O(B H' W' kh kw C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) where `x` is not what is scattered over an image of this size or the shapes are not
    /// those of its pixels; otherwise as [`Blur::forward`](super::Blur::forward).
    pub fn forward(
        &self,
        x: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        size: [usize; 2],
    ) -> Result<Array4<T>> {
        let frame = self.core.frame_of_small(x.shape(), size);
        self.check("x", x.shape(), shapes.shape(), frame)?;
        let shape = self.core.layout.shape(frame.image());
        let mut buffer = Buffer::new(elements::<T>(&shape)?)?;
        let filled = self.core.transpose(&x, &shapes, frame, Output::fresh(buffer.cells()))?;
        Ok(buffer.finish(filled, &shape))
    }

    /// [`Scatter::forward`] into the caller's array, which is overwritten and says the size.
    ///
    /// # Errors
    ///
    /// As [`Scatter::forward`], and [`Error::Shape`](crate::Error::Shape) where `y` has another number of batches or channels than
    /// `x`; nothing is written then.
    pub fn forward_into(
        &self,
        x: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        y: ArrayViewMut4<'_, T>,
    ) -> Result<()> {
        let frame = self.core.frame_of_small(x.shape(), self.core.frame(y.shape()).size);
        self.check("x", x.shape(), shapes.shape(), frame)?;
        self.core.check_image("y", y.shape(), frame)?;
        let _ = self.core.transpose(&x, &shapes, frame, Output::array(y, Start::Zero))?;
        Ok(())
    }

    /// The gradients of [`Scatter::forward`] at `x` and `shapes` for the gradient `grad_y` of its result: new arrays, that of `x`
    /// as [`BlurGradients::grad_image`]. O(B H' W' kh kw C).
    ///
    /// # Errors
    ///
    /// As [`Scatter::forward`] for the size of `grad_y`.
    pub fn adjoint(
        &self,
        grad_y: ArrayView4<'_, T>,
        x: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
    ) -> Result<BlurGradients<T>> {
        self.check("x", x.shape(), shapes.shape(), self.core.frame(grad_y.shape()))?;
        let mut of_x = Buffer::new(elements::<T>(x.shape())?)?;
        let mut of_shapes = Buffer::new(elements::<T>(shapes.shape())?)?;
        let outputs = (Output::fresh(of_x.cells()), Output::fresh(of_shapes.cells()));
        let filled = self.pull(&grad_y, &x, &shapes, outputs)?;
        Ok(BlurGradients {
            grad_image: of_x.finish(filled.0, x.shape()),
            grad_shapes: of_shapes.finish(filled.1, shapes.shape()),
        })
    }

    /// [`Scatter::adjoint`] into the caller's arrays, which are overwritten.
    ///
    /// # Errors
    ///
    /// As [`Scatter::adjoint`]; nothing is written then.
    pub fn adjoint_into(
        &self,
        grad_y: ArrayView4<'_, T>,
        x: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_x: ArrayViewMut4<'_, T>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        self.adjoint_from(&grad_y, &x, &shapes, (grad_x, grad_shapes), Start::Zero)
    }

    /// [`Scatter::adjoint`] added to the caller's arrays.
    ///
    /// # Errors
    ///
    /// As [`Scatter::adjoint`]; nothing is written then.
    pub fn adjoint_add(
        &self,
        grad_y: ArrayView4<'_, T>,
        x: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_x: ArrayViewMut4<'_, T>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        self.adjoint_from(&grad_y, &x, &shapes, (grad_x, grad_shapes), Start::Values)
    }

    fn adjoint_from(
        &self,
        grad_y: &ArrayView4<'_, T>,
        x: &ArrayView4<'_, T>,
        shapes: &ArrayView<'_, T, impl Dimension>,
        (grad_x, grad_shapes): (ArrayViewMut4<'_, T>, ArrayViewMut<'_, T, impl Dimension>),
        start: Start,
    ) -> Result<()> {
        self.check("x", x.shape(), shapes.shape(), self.core.frame(grad_y.shape()))?;
        check_shape("grad_x", grad_x.shape(), x.shape())?;
        check_shape("grad_shapes", grad_shapes.shape(), shapes.shape())?;
        let _ = self.pull(grad_y, x, shapes, (Output::array(grad_x, start), Output::array(grad_shapes, start)))?;
        Ok(())
    }

    fn check(&self, argument: &'static str, x: &[usize], shapes: &[usize], frame: Frame) -> Result<()> {
        self.core.check_small(argument, x, frame)?;
        self.core.check_shapes("shapes", shapes, frame)
    }

    fn pull(
        &self,
        grad_y: &ArrayView4<'_, T>,
        x: &ArrayView4<'_, T>,
        shapes: &ArrayView<'_, T, impl Dimension>,
        (grad_x, grad_shapes): (Output<'_, T>, Output<'_, T>),
    ) -> Result<(Filled, Filled)> {
        let (core, frame) = (&self.core, self.core.frame(grad_y.shape()));
        let cells = core.parameters.checked("shapes", shapes)?;
        let Some(kernels) = core.kernels(frame, &cells)? else { return Ok((Filled::NOTHING, Filled::NOTHING)) };
        let padded = core.padding(&kernels, true)?.pad(&core.layout.view(grad_y), core.sharing())?;
        let x = beside_kernels(&kernels.window, &core.layout.view(x), core.sharing())?;
        let pulled = core.pull(&kernels, &x, &padded)?;
        let means = core.gather(&kernels, &padded)?;
        Ok((core.write_small(&kernels, &means, grad_x), core.write_shapes(&kernels, &pulled, grad_shapes)))
    }
}
