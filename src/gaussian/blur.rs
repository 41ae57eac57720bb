//! Blurs with a kernel of its own at every pixel.

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
use ndarray::{Array4, ArrayD, ArrayView, ArrayView4, ArrayViewMut, ArrayViewMut4, Dimension};

/// A blur with an anisotropic Gaussian kernel of its own at every output pixel. The kernels are never built.
///
/// `out[b, v, u, :] = sum over j = (jy, jx) of p_bvu[j] * image[b, s v + jy - kh / 2, s u + jx - kw / 2, :]`, a correlation, with
/// the stride `s`, halves rounded down, the [`Border`] rule outside of the image, and `p` the kernels of
/// [`KernelMaps`](super::KernelMaps): `exp(-q(z) / 2)` over its sum on the kh x kw grid of a [`Centre`], `q` as [`Parameters`] say.
///
/// | array | [`Layout::ChannelsLast`] | [`Layout::ChannelsFirst`] |
/// |---|---|---|
/// | image | (B, H, W, C) | (B, C, H, W) |
/// | result, H' = ceil(H / s), W' = ceil(W / s) | (B, H', W', C) | (B, C, H', W') |
/// | shapes | (B, H', W', 2, 2) or (B, H', W', 3) | the same |
///
/// The image may hold any numbers; those that are not finite spread over the windows that hold them. Arrays may have any strides;
/// all are copied, into planes in which the inner loops read neighbouring pixels together. Scratch is a few times the size of the
/// arrays and of the border, whatever the size of the window: no array is as large as all kernels.
///
/// # Precision
///
/// With `u` = 2^-24 for `f32` and 2^-53 for `f64`, every result is within
/// `(E + (3 kw + 2 kh + 4) u) * sum over j of p[j] |image[j]|` of the right value, to first order, where `E` is the largest bound of
/// an entry of [`KernelMaps`](super::KernelMaps). For a weight is off by no more than an entry is; its product with a pixel is added
/// to fewer than 2 kw others, those of its row and of the opposite one, and that sum to fewer than kh others; the sum of the weights,
/// which are all positive, is rounded kw and kh times at most, and the quotient twice. Results are the same bits for every number of
/// threads, and the same at [`Level::V3`](crate::Level::V3) and [`Level::V4`](crate::Level::V4);
/// [`Level::Base`](crate::Level::Base) rounds products before they are added.
///
/// # Gradients
///
/// The gradient of the image is the transpose: what a pixel had a part in. That of the shapes is that of
/// [`KernelMaps`](super::KernelMaps) for the gradient `g[j] = sum over channels of grad_y * image[j]` of a kernel, beside the
/// rounding of that sum. An image that is constant under a kernel gives exactly 0. Weights are computed again: nothing is saved.
///
/// # Examples
///
/// ```
/// use pullback::gaussian::{Blur, Border, Centre, Parameters};
/// use pullback::ndarray::{Array4, s};
///
/// // One bright pixel, blurred along x on the left and along y on the right.
/// let mut image = Array4::<f32>::zeros((1, 9, 18, 1)); // (B, H, W, C)
/// image[[0, 4, 4, 0]] = 1.0;
/// image[[0, 4, 13, 0]] = 1.0;
/// let mut shapes = Array4::zeros((1, 9, 18, 3)); // sx, sy, theta
/// shapes.slice_mut(s![.., .., ..9, 0]).fill(2.0);
/// shapes.slice_mut(s![.., .., ..9, 1]).fill(0.3);
/// shapes.slice_mut(s![.., .., 9.., 0]).fill(0.3);
/// shapes.slice_mut(s![.., .., 9.., 1]).fill(2.0);
/// let blur = Blur::<f32>::new(7, Centre::Middle, Border::Reflect, 1)?.with_parameters(Parameters::Sigmas);
/// let y = blur.forward(image.view(), shapes.view())?;
/// assert!(y[[0, 4, 6, 0]] > 0.1 && y[[0, 6, 4, 0]] < 1e-6);
/// assert!(y[[0, 4, 15, 0]] < 1e-6 && y[[0, 6, 13, 0]] > 0.1);
///
/// // More light beside it asks for more blur along x: the gradient of -y with respect to sx is negative.
/// let mut grad_y = Array4::zeros((1, 9, 18, 1));
/// grad_y[[0, 4, 6, 0]] = -1.0;
/// let gradients = blur.adjoint(grad_y.view(), image.view(), shapes.view())?;
/// assert!(gradients.grad_shapes[[0, 4, 6, 0]] < 0.0);
/// assert_eq!(gradients.grad_image[[0, 4, 4, 0]], -y[[0, 4, 6, 0]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Blur<T> {
    core: PerPixel<T>,
}

/// The gradients of a [`Blur`] or of a [`Scatter`](super::Scatter).
#[derive(Clone, Debug, PartialEq)]
pub struct BlurGradients<T> {
    /// With respect to the image that was blurred, or to the `x` that was scattered.
    pub grad_image: Array4<T>,
    /// With respect to the shapes, (B, H', W', 2, 2) or (B, H', W', 3).
    pub grad_shapes: ArrayD<T>,
}

adjustable!(Blur);
adjoint_forms!(Blur, image => grad_image);

impl<T: Real> Blur<T> {
    /// A blur by kernels of `k` x `k` samples, described by [`Parameters::Factor`], of images in [`Layout::ChannelsLast`]. O(k^2).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) where `k`, `stride` or the stride of a centre is 0, or a position or a
    /// constant is not a finite number of the type; [`Error::TooLarge`](crate::Error::TooLarge),
    /// [`Error::Allocation`](crate::Error::Allocation), and [`Error::Environment`](crate::Error::Environment) from
    /// [`Level::current`](crate::Level::current).
    pub fn new(k: usize, centre: Centre, border: Border, stride: usize) -> Result<Self> {
        Ok(Self { core: PerPixel::square(k, centre, border, stride)? })
    }

    /// A blur by kernels of (kh, kw) samples. O(kh kw).
    ///
    /// # Errors
    ///
    /// As [`Blur::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gaussian::{Blur, Border, Centre};
    /// use pullback::ndarray::{Array4, Array5};
    ///
    /// // Every second pixel of the mean of two neighbours.
    /// let blur = Blur::<f64>::rectangular([1, 2], Centre::Middle, Border::Edge, 2)?;
    /// let ramp = Array4::from_shape_fn((1, 1, 6, 1), |(_, _, x, _)| x as f64);
    /// let y = blur.forward(ramp.view(), Array5::zeros((1, 1, 3, 2, 2)).view())?;
    /// assert_eq!(y.iter().copied().collect::<Vec<_>>(), [0.0, 1.5, 3.5]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn rectangular(shape: [usize; 2], centre: Centre, border: Border, stride: usize) -> Result<Self> {
        Ok(Self { core: PerPixel::new(shape, centre, border, stride)? })
    }

    /// The blurred image: a new array. O(B H' W' kh kw C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) where the shapes are not those of an image like this;
    /// [`Error::NonFinite`](crate::Error::NonFinite) or [`Error::KernelShape`](crate::Error::KernelShape) for the first kernel
    /// with a number that is not finite or numbers that describe none; [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn forward(&self, image: ArrayView4<'_, T>, shapes: ArrayView<'_, T, impl Dimension>) -> Result<Array4<T>> {
        let frame = self.core.frame(image.shape());
        self.core.check_shapes("shapes", shapes.shape(), frame)?;
        let shape = self.core.layout.shape(frame.small());
        let mut buffer = Buffer::new(elements::<T>(&shape)?)?;
        let filled = self.blur(&image, &shapes, frame, Output::fresh(buffer.cells()))?;
        Ok(buffer.finish(filled, &shape))
    }

    /// [`Blur::forward`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Blur::forward`]; nothing is written then.
    pub fn forward_into(
        &self,
        image: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        y: ArrayViewMut4<'_, T>,
    ) -> Result<()> {
        let frame = self.core.frame(image.shape());
        self.core.check_shapes("shapes", shapes.shape(), frame)?;
        self.core.check_small("y", y.shape(), frame)?;
        let _ = self.blur(&image, &shapes, frame, Output::array(y, Start::Zero))?;
        Ok(())
    }

    fn blur(
        &self,
        image: &ArrayView4<'_, T>,
        shapes: &ArrayView<'_, T, impl Dimension>,
        frame: Frame,
        out: Output<'_, T>,
    ) -> Result<Filled> {
        let cells = self.core.parameters.checked("shapes", shapes)?;
        let Some(kernels) = self.core.kernels(frame, &cells)? else { return Ok(Filled::NOTHING) };
        let image = self.core.layout.view(image);
        let padded = self.core.padding(&kernels, false)?.pad(&image, self.core.sharing())?;
        let means = self.core.gather(&kernels, &padded)?;
        Ok(self.core.write_small(&kernels, &means, out))
    }

    fn check_adjoint(&self, grad_y: &[usize], image: &[usize], shapes: &[usize]) -> Result<()> {
        let frame = self.core.frame(image);
        self.core.check_small("grad_y", grad_y, frame)?;
        self.core.check_shapes("shapes", shapes, frame)
    }

    fn pull(
        &self,
        grad_y: &ArrayView4<'_, T>,
        image: &ArrayView4<'_, T>,
        shapes: &ArrayView<'_, T, impl Dimension>,
        (grad_image, grad_shapes): (Output<'_, T>, Output<'_, T>),
    ) -> Result<(Filled, Filled)> {
        let (core, frame) = (&self.core, self.core.frame(image.shape()));
        let cells = core.parameters.checked("shapes", shapes)?;
        let Some(kernels) = core.kernels(frame, &cells)? else { return Ok((Filled::NOTHING, Filled::NOTHING)) };
        let x = beside_kernels(&kernels.window, &core.layout.view(grad_y), core.sharing())?;
        let padded = core.padding(&kernels, false)?.pad(&core.layout.view(image), core.sharing())?;
        let pulled = core.pull(&kernels, &x, &padded)?;
        drop(padded);
        let spread = core.spread(&kernels, x, Some(&pulled))?;
        Ok((core.write_image(&kernels, &spread, grad_image)?, core.write_shapes(&kernels, &pulled, grad_shapes)))
    }

    /// The transpose of the linear part of [`Blur::forward`] at `shapes`, applied to `grad_y`: the gradient of an image of
    /// `size` (H, W), which need not be known. Where a constant lies outside of the image, nothing goes. A new array.
    /// O(B H' W' kh kw C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) where `grad_y` is not the result for an image of this size, otherwise as
    /// [`Blur::forward`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gaussian::{Blur, Border, Centre};
    /// use pullback::ndarray::{Array4, Array5};
    ///
    /// let blur = Blur::<f64>::new(3, Centre::Middle, Border::Wrap, 1)?;
    /// let x = Array4::from_shape_fn((1, 4, 5, 1), |(_, y, x, _)| (3 * y + x) as f64);
    /// let grad_y = Array4::from_shape_fn((1, 4, 5, 1), |(_, y, x, _)| (y * x) as f64);
    /// let shapes = Array5::from_shape_fn((1, 4, 5, 2, 2), |(_, y, x, i, j)| if i == j { 0.2 * (y + x) as f64 } else { 0.1 });
    /// let forward = blur.forward(x.view(), shapes.view())? * &grad_y;
    /// let transposed = blur.adjoint_image(grad_y.view(), shapes.view(), [4, 5])? * &x;
    /// assert!((forward.sum() - transposed.sum()).abs() < 1e-11);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn adjoint_image(
        &self,
        grad_y: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        size: [usize; 2],
    ) -> Result<Array4<T>> {
        let frame = self.core.frame_of_small(grad_y.shape(), size);
        self.core.check_small("grad_y", grad_y.shape(), frame)?;
        self.core.check_shapes("shapes", shapes.shape(), frame)?;
        let shape = self.core.layout.shape(frame.image());
        let mut buffer = Buffer::new(elements::<T>(&shape)?)?;
        let filled = self.core.transpose(&grad_y, &shapes, frame, Output::fresh(buffer.cells()))?;
        Ok(buffer.finish(filled, &shape))
    }

    /// [`Blur::adjoint_image`] into the caller's array, which is overwritten and says the size.
    ///
    /// # Errors
    ///
    /// As [`Blur::adjoint_image`]; nothing is written then.
    pub fn adjoint_image_into(
        &self,
        grad_y: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_image: ArrayViewMut4<'_, T>,
    ) -> Result<()> {
        self.adjoint_image_from(&grad_y, &shapes, grad_image, Start::Zero)
    }

    /// [`Blur::adjoint_image`] added to the caller's array, which says the size.
    ///
    /// # Errors
    ///
    /// As [`Blur::adjoint_image`]; nothing is written then.
    pub fn adjoint_image_add(
        &self,
        grad_y: ArrayView4<'_, T>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_image: ArrayViewMut4<'_, T>,
    ) -> Result<()> {
        self.adjoint_image_from(&grad_y, &shapes, grad_image, Start::Values)
    }

    fn adjoint_image_from(
        &self,
        grad_y: &ArrayView4<'_, T>,
        shapes: &ArrayView<'_, T, impl Dimension>,
        grad_image: ArrayViewMut4<'_, T>,
        start: Start,
    ) -> Result<()> {
        let frame = self.core.frame(grad_image.shape());
        self.core.check_small("grad_y", grad_y.shape(), frame)?;
        self.core.check_shapes("shapes", shapes.shape(), frame)?;
        let _ = self.core.transpose(grad_y, shapes, frame, Output::array(grad_image, start))?;
        Ok(())
    }
}
