//! The adjoint of kernel maps: to the numbers that describe the kernels, and to their offsets.

use super::maps::KernelMaps;
use super::pull::Moments;
use super::shape::{checked_offsets, unravel};
use crate::Real;
use crate::buffer::{Both, Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, elements};
use crate::parallel::{for_each_tile, for_each_tile_of_both};
use ndarray::{ArrayD, ArrayView, ArrayViewD, ArrayViewMut, Axis, Dimension};
use std::ops::Range;

/// The gradients that [`KernelMaps::adjoint_at`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelMapsGradients<T> {
    /// With respect to the shapes, (..., 2, 2) or (..., 3).
    pub grad_shapes: ArrayD<T>,
    /// With respect to the offsets, (..., 2).
    pub grad_offsets: ArrayD<T>,
}

/// What a gradient is computed from, checked.
struct Pull<'a, T> {
    grads: Grads<'a, T>,
    shapes: &'a [T],
    offsets: Option<&'a [T]>,
}

/// A gradient of the kernels, kernel by kernel.
enum Grads<'a, T> {
    Dense(&'a [T]),
    Strided(ArrayViewD<'a, T>),
}

impl<'a, T: Real> Grads<'a, T> {
    fn new<D: Dimension>(view: &'a ArrayView<'_, T, D>) -> Self {
        view.as_slice().map_or_else(|| Self::Strided(view.view().into_dyn()), Self::Dense)
    }

    /// The gradients of some kernels of `samples` each, in `copy` where they do not lie side by side.
    fn of<'b>(&'b self, kernels: Range<usize>, samples: usize, copy: &'b mut Vec<T>) -> &'b [T] {
        match self {
            Self::Dense(cells) => &cells[kernels.start * samples..kernels.end * samples],
            Self::Strided(view) => {
                let leading = &view.shape()[..view.ndim() - 2];
                copy.clear();
                for kernel in kernels {
                    let mut own = view.view();
                    for at in unravel(kernel, leading) {
                        own.index_axis_inplace(Axis(0), at);
                    }
                    copy.extend(own.iter());
                }
                copy
            }
        }
    }
}

impl<T: Real> KernelMaps<T> {
    /// The gradient of [`KernelMaps::forward`] at `shapes` (..., 2, 2) or (..., 3) for the gradient `grad_maps` (..., kh, kw): a
    /// new array shaped as `shapes`. O(kernels x kh kw).
    ///
    /// The gradient of `M` is within (the largest bound of an entry + 64 u) `|M| sum p (|g - s| + D) |z z^T|` with
    /// `D = sum p |g - s|`, since `s` is rounded too, and `u^2` of the largest `|g - s|` where a kernel is nearly one sample.
    /// Where a gradient is not finite, that of its kernel is not either.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::forward`], and [`Error::Shape`](crate::Error::Shape) for `grad_maps`.
    pub fn adjoint(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ArrayD<T>> {
        self.check_gradient(grad_maps.shape(), shapes.shape())?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let buffer = Buffer::new(elements::<T>(shapes.shape())?)?;
        let pull = Pull { grads: Grads::new(&grad_maps), shapes: &cells, offsets: None };
        Ok(buffer.fill(shapes.shape(), |grad_shapes| self.pull(&pull, Output::fresh(grad_shapes))))
    }

    /// [`KernelMaps::adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::adjoint`]; nothing is written then.
    pub fn adjoint_into(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        self.adjoint_from(grad_maps, shapes, grad_shapes, Start::Zero)
    }

    /// [`KernelMaps::adjoint`] added to the caller's array.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::adjoint`]; nothing is written then.
    pub fn adjoint_add(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        self.adjoint_from(grad_maps, shapes, grad_shapes, Start::Values)
    }

    fn adjoint_from(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
        start: Start,
    ) -> Result<()> {
        self.check_gradient(grad_maps.shape(), shapes.shape())?;
        check_shape("grad_shapes", grad_shapes.shape(), shapes.shape())?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let pull = Pull { grads: Grads::new(&grad_maps), shapes: &cells, offsets: None };
        let _ = self.pull(&pull, Output::array(grad_shapes, start));
        Ok(())
    }

    /// The gradients of [`KernelMaps::forward_at`] at `shapes` and `offsets` for the gradient `grad_maps` (..., kh, kw): new arrays
    /// shaped as `shapes` and `offsets`. That of an offset is `P sum h (z - o)`, with `P` the precision. O(kernels x kh kw).
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::forward_at`], and [`Error::Shape`](crate::Error::Shape) for `grad_maps`.
    pub fn adjoint_at(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        offsets: ArrayView<'_, T, impl Dimension>,
    ) -> Result<KernelMapsGradients<T>> {
        let kernels = self.check_gradient(grad_maps.shape(), shapes.shape())?;
        check_shape("offsets", offsets.shape(), &self.offset_shape(&kernels))?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let moved = checked_offsets(&offsets)?;
        let buffers = (Buffer::new(elements::<T>(shapes.shape())?)?, Buffer::new(elements::<T>(offsets.shape())?)?);
        let pull = Pull { grads: Grads::new(&grad_maps), shapes: &cells, offsets: Some(&moved) };
        let (grad_shapes, grad_offsets) =
            buffers.0.fill_both(buffers.1, [shapes.shape(), offsets.shape()], |grad_shapes, grad_offsets| {
                self.pull_both(&pull, Output::fresh(grad_shapes), Output::fresh(grad_offsets))
            });
        Ok(KernelMapsGradients { grad_shapes, grad_offsets })
    }

    /// [`KernelMaps::adjoint_at`] into the caller's arrays, which are overwritten.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::adjoint_at`]; nothing is written then.
    pub fn adjoint_at_into(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        offsets: ArrayView<'_, T, impl Dimension>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
        grad_offsets: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        self.adjoint_at_from(grad_maps, shapes, offsets, (grad_shapes, grad_offsets), Start::Zero)
    }

    /// [`KernelMaps::adjoint_at`] added to the caller's arrays.
    ///
    /// # Errors
    ///
    /// As [`KernelMaps::adjoint_at`]; nothing is written then.
    pub fn adjoint_at_add(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        offsets: ArrayView<'_, T, impl Dimension>,
        grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
        grad_offsets: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        self.adjoint_at_from(grad_maps, shapes, offsets, (grad_shapes, grad_offsets), Start::Values)
    }

    fn adjoint_at_from(
        &self,
        grad_maps: ArrayView<'_, T, impl Dimension>,
        shapes: ArrayView<'_, T, impl Dimension>,
        offsets: ArrayView<'_, T, impl Dimension>,
        (grad_shapes, grad_offsets): (ArrayViewMut<'_, T, impl Dimension>, ArrayViewMut<'_, T, impl Dimension>),
        start: Start,
    ) -> Result<()> {
        let kernels = self.check_gradient(grad_maps.shape(), shapes.shape())?;
        check_shape("offsets", offsets.shape(), &self.offset_shape(&kernels))?;
        check_shape("grad_shapes", grad_shapes.shape(), shapes.shape())?;
        check_shape("grad_offsets", grad_offsets.shape(), offsets.shape())?;
        let cells = self.parameters.checked("shapes", &shapes)?;
        let moved = checked_offsets(&offsets)?;
        let pull = Pull { grads: Grads::new(&grad_maps), shapes: &cells, offsets: Some(&moved) };
        let _ = self.pull_both(&pull, Output::array(grad_shapes, start), Output::array(grad_offsets, start));
        Ok(())
    }

    /// Checks the shape of a gradient of the kernels, which is returned.
    fn check_gradient(&self, grad_maps: &[usize], shapes: &[usize]) -> Result<Vec<usize>> {
        let kernels = self.kernel_shape(shapes)?;
        check_shape("grad_maps", grad_maps, &kernels)?;
        Ok(kernels)
    }

    fn pull(&self, pull: &Pull<'_, T>, out: Output<'_, T>) -> Filled {
        let count = self.parameters.count();
        let kernels = pull.shapes.len() / count;
        if kernels == 0 {
            return Filled::NOTHING;
        }
        for_each_tile(out, kernels, &self.cut(kernels, count), &|_, kernels, tile| {
            let sums = self.moments(pull, kernels.clone());
            for ((kernel, sums), grads) in kernels.zip(&sums).zip(tile.accumulators().chunks_exact_mut(count)) {
                add(grads, &self.parameters.gradient(self.values(kernel, pull.shapes), sums));
            }
        })
    }

    fn pull_both(&self, pull: &Pull<'_, T>, shapes: Output<'_, T>, offsets: Output<'_, T>) -> Filled {
        let count = self.parameters.count();
        let kernels = pull.shapes.len() / count;
        if kernels == 0 {
            return Filled::NOTHING;
        }
        let out = Both { first: shapes, second: offsets, width: 2 };
        for_each_tile_of_both(out, kernels, &self.cut(kernels, count), &|_, kernels, shapes, offsets| {
            let sums = self.moments(pull, kernels.clone());
            let cells = shapes.accumulators().chunks_exact_mut(count).zip(offsets.accumulators().chunks_exact_mut(2));
            for ((kernel, sums), (shape, offset)) in kernels.zip(&sums).zip(cells) {
                let values = self.values(kernel, pull.shapes);
                add(shape, &self.parameters.gradient(values, sums));
                add(offset, &self.parameters.offset_gradient(values, sums));
            }
        })
    }

    /// The moments of some kernels with their gradients.
    fn moments(&self, pull: &Pull<'_, T>, kernels: Range<usize>) -> Vec<Moments> {
        let mut weights = vec![T::zero(); self.grid.x.len()];
        let mut sums = vec![Moments::default(); kernels.len()];
        let mut copy = Vec::new();
        let forms = self.forms(kernels.clone(), pull.shapes, pull.offsets);
        let grads = pull.grads.of(kernels, self.grid.samples(), &mut copy);
        T::moments(self.level, &self.grid, &forms, grads, &mut weights, &mut sums);
        sums
    }
}

/// Adds what is computed in `f64`, rounded once, without subnormal numbers.
pub(super) fn add<T: Real>(cells: &mut [T], gradient: &[f64]) {
    for (cell, &gradient) in cells.iter_mut().zip(gradient) {
        let gradient = T::from_f64(gradient).expect("every f64 rounds to an element");
        if gradient.is_nan() || gradient.abs() >= T::min_positive_value() {
            *cell = *cell + gradient;
        }
    }
}
