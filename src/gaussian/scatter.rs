//! The transpose of a blur as an operator of its own.

use super::blur::BlurGradients;
use super::border::Border;
use super::grid::Centre;
use super::maps::Tuning;
use super::operator::{adjoint_forms, adjustable};
use super::per_pixel::{Frame, PerPixel};
use super::planes::{Layout, beside_kernels};
use super::shape::Parameters;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, elements};
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

adjustable!(Scatter);
adjoint_forms!(Scatter, x => grad_x);

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
        self.check(x.shape(), shapes.shape(), frame)?;
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
        self.check(x.shape(), shapes.shape(), frame)?;
        self.core.check_image("y", y.shape(), frame)?;
        let _ = self.core.transpose(&x, &shapes, frame, Output::array(y, Start::Zero))?;
        Ok(())
    }

    fn check(&self, x: &[usize], shapes: &[usize], frame: Frame) -> Result<()> {
        self.core.check_small("x", x, frame)?;
        self.core.check_shapes("shapes", shapes, frame)
    }

    fn check_adjoint(&self, grad_y: &[usize], x: &[usize], shapes: &[usize]) -> Result<()> {
        self.check(x, shapes, self.core.frame(grad_y))
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
