//! The adjoints of weighted sums, to the rows, to the weights and to both at once.

use super::plan::Reduction;
use super::pull::{Pull, SumsAndDots};
use super::reduce::{PAIRS, each_pairs, inverse_cut, pick, reduction};
use super::weighted::Weighted;
use crate::Real;
use crate::buffer::{Both, Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use crate::parallel::{Cut, for_each_tile, for_each_tile_of_both, split};
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension};
use std::borrow::Cow;

/// Sums of a batch beyond this size are not kept in a level-two cache beside the rows of `x`. On (16, 4096, 256) rows by
/// 3 x 16,384 indices a batch, 4 MiB of sums, `limits -- weighted` had a loop over batches take 1.84 times as long as the pass
/// by destination row, and 1.37 times as long as running sums.
const PULL_SLAB_BYTES: usize = 512 << 10;

/// Weights that one task of a pass of their own computes.
const WEIGHTS: usize = 1 << 10;

/// The gradients of a weighted sum.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedGradients<T, D: Dimension, X: Dimension> {
    /// To the features, of their shape.
    pub grad_x: Array<T, X>,
    /// To the weights, of their shape.
    pub grad_w: Array<T, D>,
}

/// The inputs of an adjoint in row-major order.
struct Inputs<'a, T: Real> {
    grad_y: Cow<'a, [T]>,
    x: Cow<'a, [T]>,
    w: Cow<'a, [T]>,
    width: usize,
}

impl<D: Dimension, X: Dimension> Weighted<D, X> {
    /// Both gradients of [`Weighted::forward`] at `x` (B, N, C) and `w` (B, P, S) for the gradient `grad_y` (B, P, C).
    ///
    /// O(indices x C). Both come from one pass: over `grad_y` in order where a batch of `grad_x` fits in cache and there are
    /// batches enough for the threads, otherwise by the rows that the indices name.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn adjoint<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        x: ArrayView<'_, T, X>,
        w: ArrayView<'_, T, D>,
    ) -> Result<WeightedGradients<T, D, X>> {
        let inputs = self.inputs(&grad_y, &x, &w)?;
        let shapes = [&self.grouped.feature_shape(inputs.width)[..], self.grouped.shape.slice()];
        let grad_x = Buffer::new(elements::<T>(shapes[0])?)?;
        let grad_w = Buffer::new(elements::<T>(shapes[1])?)?;
        let (grad_x, grad_w) = grad_x.fill_both(grad_w, shapes, |grad_x, grad_w| {
            self.pull(&inputs, Output::fresh(grad_x), Output::fresh(grad_w))
        });
        Ok(WeightedGradients { grad_x, grad_w })
    }

    /// [`Weighted::adjoint`] into the caller's arrays, which are overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        x: ArrayView<'_, T, X>,
        w: ArrayView<'_, T, D>,
        grad_x: ArrayViewMut<'_, T, X>,
        grad_w: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        self.adjoint_from([&grad_y, &x], &w, grad_x, grad_w, Start::Zero)
    }

    /// [`Weighted::adjoint`] added to the caller's arrays: every sum of `grad_x` starts from the value found there, and
    /// every dot product is added to the value of `grad_w`, but for those of padding.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        x: ArrayView<'_, T, X>,
        w: ArrayView<'_, T, D>,
        grad_x: ArrayViewMut<'_, T, X>,
        grad_w: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        self.adjoint_from([&grad_y, &x], &w, grad_x, grad_w, Start::Values)
    }

    /// The gradient to the features alone: a new array (B, N, C).
    ///
    /// # Errors
    ///
    /// As [`Weighted::adjoint`].
    pub fn adjoint_x<T: Real>(&self, grad_y: ArrayView<'_, T, X>, w: ArrayView<'_, T, D>) -> Result<Array<T, X>> {
        let width = self.check_x(grad_y.shape(), w.shape())?;
        let shape = self.grouped.feature_shape(width);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (grad_y, w) = (dense(&grad_y)?, dense(&w)?);
        Ok(buffer.fill(&shape, |cells| self.grouped.spread(&grad_y, width, Some(&w), Output::fresh(cells))))
    }

    /// [`Weighted::adjoint_x`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_x_into<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        w: ArrayView<'_, T, D>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.adjoint_x_from(&grad_y, &w, grad_x, Start::Zero)
    }

    /// [`Weighted::adjoint_x`] added to the caller's array: every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_x_add<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        w: ArrayView<'_, T, D>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.adjoint_x_from(&grad_y, &w, grad_x, Start::Values)
    }

    /// The gradient to the weights alone: a new array (B, P, S).
    ///
    /// # Errors
    ///
    /// As [`Weighted::adjoint`].
    pub fn adjoint_w<T: Real>(&self, grad_y: ArrayView<'_, T, X>, x: ArrayView<'_, T, X>) -> Result<Array<T, D>> {
        let width = self.check_w(grad_y.shape(), x.shape())?;
        let shape = self.grouped.shape.slice();
        let buffer = Buffer::new(elements::<T>(shape)?)?;
        let (grad_y, x) = (dense(&grad_y)?, dense(&x)?);
        Ok(buffer.fill(shape, |cells| self.dot(&grad_y, &x, width, Output::fresh(cells))))
    }

    /// [`Weighted::adjoint_w`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_w_into<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        x: ArrayView<'_, T, X>,
        grad_w: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        self.adjoint_w_from(&grad_y, &x, grad_w, Start::Zero)
    }

    /// [`Weighted::adjoint_w`] added to the caller's array, but for the weights of padding.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_w_add<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        x: ArrayView<'_, T, X>,
        grad_w: ArrayViewMut<'_, T, D>,
    ) -> Result<()> {
        self.adjoint_w_from(&grad_y, &x, grad_w, Start::Values)
    }

    fn adjoint_x_from<T: Real>(
        &self,
        grad_y: &ArrayView<'_, T, X>,
        w: &ArrayView<'_, T, D>,
        grad_x: ArrayViewMut<'_, T, X>,
        start: Start,
    ) -> Result<()> {
        let width = self.check_x(grad_y.shape(), w.shape())?;
        check_shape("grad_x", grad_x.shape(), &self.grouped.feature_shape(width))?;
        let (grad_y, w) = (dense(grad_y)?, dense(w)?);
        let _ = self.grouped.spread(&grad_y, width, Some(&w), Output::array(grad_x, start));
        Ok(())
    }

    fn adjoint_w_from<T: Real>(
        &self,
        grad_y: &ArrayView<'_, T, X>,
        x: &ArrayView<'_, T, X>,
        grad_w: ArrayViewMut<'_, T, D>,
        start: Start,
    ) -> Result<()> {
        let width = self.check_w(grad_y.shape(), x.shape())?;
        self.grouped.check_as_indices("grad_w", grad_w.shape())?;
        let (grad_y, x) = (dense(grad_y)?, dense(x)?);
        let _ = self.dot(&grad_y, &x, width, Output::array(grad_w, start));
        Ok(())
    }

    /// Checks the shapes that the gradient to the features needs and returns the channels.
    fn check_x(&self, grad_y: &[usize], w: &[usize]) -> Result<usize> {
        let width = self.grouped.result_channels("grad_y", grad_y)?;
        self.grouped.check_as_indices("w", w)?;
        Ok(width)
    }

    /// Checks the shapes that the gradient to the weights needs and returns the channels.
    fn check_w(&self, grad_y: &[usize], x: &[usize]) -> Result<usize> {
        let width = self.grouped.feature_channels("x", x)?;
        check_shape("grad_y", grad_y, &self.grouped.result_shape(width))?;
        Ok(width)
    }

    fn adjoint_from<T: Real>(
        &self,
        [grad_y, x]: [&ArrayView<'_, T, X>; 2],
        w: &ArrayView<'_, T, D>,
        grad_x: ArrayViewMut<'_, T, X>,
        grad_w: ArrayViewMut<'_, T, D>,
        start: Start,
    ) -> Result<()> {
        let inputs = self.inputs(grad_y, x, w)?;
        check_shape("grad_x", grad_x.shape(), &self.grouped.feature_shape(inputs.width))?;
        self.grouped.check_as_indices("grad_w", grad_w.shape())?;
        let _ = self.pull(&inputs, Output::array(grad_x, start), Output::array(grad_w, start));
        Ok(())
    }

    fn inputs<'a, T: Real>(
        &self,
        grad_y: &'a ArrayView<'_, T, X>,
        x: &'a ArrayView<'_, T, X>,
        w: &'a ArrayView<'_, T, D>,
    ) -> Result<Inputs<'a, T>> {
        let width = self.check(x.shape(), w.shape())?;
        check_shape("grad_y", grad_y.shape(), &self.grouped.result_shape(width))?;
        Ok(Inputs { grad_y: dense(grad_y)?, x: dense(x)?, w: dense(w)?, width })
    }

    fn pull<T: Real>(&self, inputs: &Inputs<'_, T>, grad_x: Output<'_, T>, grad_w: Output<'_, T>) -> Filled {
        let (plan, width) = (&self.grouped.plan, inputs.width);
        if plan.indices.is_empty() || plan.rows * width == 0 {
            let x = self.grouped.spread(&inputs.grad_y, width, Some(&inputs.w), grad_x);
            return x.and(self.dot(&inputs.grad_y, &inputs.x, width, grad_w));
        }
        match reduction::<T>(plan, width, PULL_SLAB_BYTES) {
            Reduction::Slab => self.pull_by_slab(inputs, grad_x, grad_w),
            Reduction::Inverse => self.pull_by_inverse(inputs, grad_x, grad_w),
        }
    }

    /// Both gradients in one pass by destination row.
    fn pull_by_inverse<T: Real>(&self, inputs: &Inputs<'_, T>, grad_x: Output<'_, T>, grad_w: Output<'_, T>) -> Filled {
        let (plan, groups, width) = (&self.grouped.plan, &self.grouped.groups, inputs.width);
        let (inverse, rows) = (plan.inverse(), plan.batches * plan.rows);
        let starts = |row: usize| {
            let batch = row / plan.rows;
            batch * plan.per_batch + inverse.offsets(batch)[row % plan.rows] as usize
        };
        let mut dots = vec![T::zero(); plan.indices.len()];
        let both = SumsAndDots { sums: grad_x, dots: &mut dots, row: 0, starts: &starts };
        let x = split(both, 0..rows, &inverse_cut::<T>(plan, width), &|both: SumsAndDots<'_, '_, T>, batch, rows| {
            let batch_y = groups.count() * width;
            let pull = Pull {
                offsets: &inverse.offsets(batch)[rows.start..=rows.end],
                order: inverse.order(batch),
                owner: groups.owner(),
                weights: &inputs.w[batch * plan.per_batch..][..plan.per_batch],
                grad_y: &inputs.grad_y[batch * batch_y..][..batch_y],
                x: &inputs.x[(batch * plan.rows + rows.start) * width..][..rows.len() * width],
                width,
            };
            both.write(|sums, dots| T::pull_rows(plan.level, pull, dots, sums))
        });
        let parallel = plan.parallel::<T>(1);
        let cut = Cut { group: plan.per_batch, tile: plan.per_batch, width: 1, parallel };
        x.and(for_each_tile(grad_w, plan.indices.len(), &cut, &|batch, _, grad_w| {
            let grad_w = grad_w.accumulators();
            let named = inverse.offsets(batch)[plan.rows] as usize;
            add_at(&inverse.order(batch)[..named], 0, &dots[batch * plan.per_batch..][..named], grad_w);
        }))
    }

    /// Both gradients in one pass over `grad_y` in order, whose owner is the batch.
    fn pull_by_slab<T: Real>(&self, inputs: &Inputs<'_, T>, grad_x: Output<'_, T>, grad_w: Output<'_, T>) -> Filled {
        let (plan, groups, width) = (&self.grouped.plan, &self.grouped.groups, inputs.width);
        let (batch_y, batch_x) = (groups.count() * width, plan.rows * width);
        let parallel = plan.parallel::<T>(width);
        let cut = Cut { group: 1, tile: 1, width: batch_x, parallel };
        let both = Both { first: grad_x, second: grad_w, width: plan.per_batch };
        for_each_tile_of_both(both, plan.batches, &cut, &|batch, _, grad_x, grad_w| {
            let rows = [&inputs.grad_y[batch * batch_y..][..batch_y], &inputs.x[batch * batch_x..][..batch_x]];
            let w = &inputs.w[batch * plan.per_batch..][..plan.per_batch];
            let (sums, grad_w) = (grad_x.accumulators(), grad_w.accumulators());
            let (mut weights, mut dots) = ([T::zero(); PAIRS], [T::zero(); PAIRS]);
            each_pairs(plan.batch(batch), groups.owner(), 0..plan.per_batch, |pairs, positions| {
                let weights = pick(w, positions, &mut weights);
                let dots = &mut dots[..pairs.len()];
                T::add_and_dot_rows(plan.level, rows, pairs, weights, width, sums, dots);
                add_at(positions, 0, dots, grad_w);
            });
        })
    }

    /// The gradient to the weights in a pass of its own, whose owner is the weight.
    fn dot<T: Real>(&self, grad_y: &[T], x: &[T], width: usize, grad_w: Output<'_, T>) -> Filled {
        let (plan, groups) = (&self.grouped.plan, &self.grouped.groups);
        if plan.indices.is_empty() {
            return Filled::NOTHING;
        }
        let (batch_y, batch_x) = (groups.count() * width, plan.rows * width);
        let parallel = plan.parallel::<T>(width);
        let cut = Cut { group: plan.per_batch, tile: plan.tuning.tile.unwrap_or(WEIGHTS), width: 1, parallel };
        for_each_tile(grad_w, plan.indices.len(), &cut, &|batch, positions, grad_w| {
            let (grad_y, x) = (&grad_y[batch * batch_y..][..batch_y], &x[batch * batch_x..][..batch_x]);
            let grad_w = grad_w.accumulators();
            let first = positions.start;
            let mut dots = [T::zero(); PAIRS];
            each_pairs(plan.batch(batch), groups.owner(), positions, |pairs, positions| {
                let dots = &mut dots[..pairs.len()];
                T::dot_rows(plan.level, grad_y, x, pairs, width, dots);
                add_at(positions, first, dots, grad_w);
            });
        })
    }
}

/// Adds to the weights at `positions`, of which the first has the number `first`. What starts from zero gets exactly the dot
/// product, which is never -0.0.
fn add_at<T: Real>(positions: &[u32], first: usize, dots: &[T], grad_w: &mut [T]) {
    for (&position, &dot) in positions.iter().zip(dots) {
        let sum = &mut grad_w[position as usize - first];
        *sum = *sum + dot;
    }
}
