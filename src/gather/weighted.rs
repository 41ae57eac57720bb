//! Weighted sums of gathered rows, and their adjoints to the rows and to the weights.

use super::groups::Grouped;
use super::plan::{Index, OutOfRange, Reduction, Tuning};
use super::reduce::{PAIRS, each_pairs, pick, reduction};
use crate::Real;
use crate::buffer::{Both, Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use crate::parallel::{Cut, for_each_tile, for_each_tile_of_both};
use crate::simd::Level;
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension, Ix1, Ix2, Ix3};
use std::borrow::Cow;

/// Weights that one task of a pass of their own computes.
const WEIGHTS: usize = 1 << 10;

/// Weighted sums of rows: `y[b, p, :] = sum over s of w[b, p, s] * x[b, indices[b, p, s], :]`.
///
/// Interpolation from three neighbours is S = 3; a sparse matrix times a dense one is [`Weighted::ragged`]. `D` is the
/// dimension of the indices and weights, `X` that of the features and results:
///
/// | made by | indices, weights | features | results |
/// |---|---|---|---|
/// | [`Weighted::new`] | (B, P, S) | (B, N, C) | (B, P, C) |
/// | [`Weighted::unbatched`] | (P, S) | (N, C) | (P, C) |
/// | [`Weighted::ragged`] | (E), offsets (P + 1) | (N, C) | (P, C) |
///
/// Results are equal, bit for bit, to these loops at every level and for every number of threads. A product is rounded
/// before it is added.
///
/// ```text
/// forward:    y = 0;   for p, for s ascending:  y[p, :] += w[p, s] * x[i[p, s], :]
/// adjoint_x:  gx = 0;  for p, for s ascending:  gx[i[p, s], :] += w[p, s] * gy[p, :]
/// adjoint_w:  gw[p, s] = dot(gy[p, :], x[i[p, s], :])
/// ```
///
/// The dot product over channels has L = 16 lanes for `f32` and 8 for `f64`. Lane l starts at +0.0 and adds the products of
/// the channels l, l + L, l + 2 L, ... in turn, with zeros behind the last channel. Then the upper half of the lanes is
/// added to the lower, lane l + L/2 to lane l, and so on by halves until one lane is left.
///
/// Under [`OutOfRange::Skip`] a padding index is absent: its weight is not read into a sum, nothing is added, and its weight
/// gets a gradient of exactly 0, whatever the values are. (The fill of the policy is not used.) Arrays may have any strides;
/// inputs that are not in standard layout are copied first.
///
/// # Examples
///
/// ```
/// use pullback::gather::{OutOfRange, Weighted};
/// use pullback::ndarray::array;
///
/// // Two points between three, each from two neighbours.
/// let interpolate = Weighted::new(array![[[0, 1], [1, 2]]].view(), 3, OutOfRange::Error)?;
/// let x = array![[[1.0, 10.0], [3.0, 30.0], [5.0, 50.0]]];
/// let w = array![[[0.5, 0.5], [0.25, 0.75]]];
/// let y = interpolate.forward(x.view(), w.view())?;
/// assert_eq!(y, array![[[2.0, 20.0], [4.5, 45.0]]]);
///
/// let grad_y = array![[[1.0, 0.0], [1.0, 1.0]]];
/// let gradients = interpolate.adjoint(grad_y.view(), x.view(), w.view())?;
/// assert_eq!(gradients.grad_x, array![[[0.5, 0.0], [0.75, 0.25], [0.75, 0.75]]]);
/// assert_eq!(gradients.grad_w, array![[[1.0, 3.0], [33.0, 55.0]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Weighted<D = Ix3, X = Ix3> {
    grouped: Grouped<D, X>,
}

/// The gradients of a weighted sum.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedGradients<T, D: Dimension, X: Dimension> {
    /// To the features, of their shape.
    pub grad_x: Array<T, X>,
    /// To the weights, of their shape.
    pub grad_w: Array<T, D>,
}

impl Weighted<Ix3, Ix3> {
    /// An operator on features (B, N, C) with N = `rows`, by indices (B, P, S). O(indices).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for the first index that `policy` does not accept,
    /// [`Error::TooLarge`](crate::Error::TooLarge) where `rows`, the groups or the indices of a batch exceed 2^32 - 2,
    /// [`Error::Allocation`](crate::Error::Allocation), and [`Error::Environment`](crate::Error::Environment) from
    /// [`Level::current`].
    pub fn new<I: Index>(indices: ArrayView<'_, I, Ix3>, rows: usize, policy: OutOfRange) -> Result<Self> {
        Ok(Self { grouped: Grouped::batched(&indices, rows, policy)? })
    }
}

impl Weighted<Ix2, Ix2> {
    /// An operator on features (N, C) with N = `rows`, by indices (P, S). O(indices).
    ///
    /// # Errors
    ///
    /// As [`Weighted::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{OutOfRange, Weighted};
    /// use pullback::ndarray::array;
    ///
    /// let op = Weighted::unbatched(array![[0, 2], [1, -1]].view(), 3, OutOfRange::Skip { fill: 0.0 })?;
    /// let y = op.forward(array![[1.0f32], [2.0], [4.0]].view(), array![[1.0, 0.5], [3.0, f32::NAN]].view())?;
    /// assert_eq!(y, array![[3.0], [6.0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn unbatched<I: Index>(indices: ArrayView<'_, I, Ix2>, rows: usize, policy: OutOfRange) -> Result<Self> {
        Ok(Self { grouped: Grouped::unbatched(&indices, rows, policy)? })
    }
}

impl Weighted<Ix1, Ix2> {
    /// An operator on features (N, C) with N = `rows`, by indices (E) of which group p has those from `offsets[p]` up to
    /// `offsets[p + 1]`: the neighbours that a radius search returns, or the columns of a sparse matrix by row. O(indices).
    ///
    /// # Errors
    ///
    /// [`Error::Offset`](crate::Error::Offset) where the offsets (P + 1) do not ascend from 0 to E,
    /// [`Error::Shape`](crate::Error::Shape) where there are none, otherwise as [`Weighted::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{OutOfRange, Weighted};
    /// use pullback::ndarray::array;
    ///
    /// // The matrix [[2, 0, 1], [0, 0, 0], [0, 3, 0]] times a column.
    /// let (columns, offsets) = (array![0, 2, 1], array![0, 2, 2, 3]);
    /// let matrix = Weighted::ragged(columns.view(), offsets.view(), 3, OutOfRange::Error)?;
    /// let y = matrix.forward(array![[1.0], [10.0], [100.0]].view(), array![2.0, 1.0, 3.0].view())?;
    /// assert_eq!(y, array![[102.0], [0.0], [30.0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn ragged<I: Index, O: Index>(
        indices: ArrayView<'_, I, Ix1>,
        offsets: ArrayView<'_, O, Ix1>,
        rows: usize,
        policy: OutOfRange,
    ) -> Result<Self> {
        Ok(Self { grouped: Grouped::ragged(&indices, &offsets, rows, policy)? })
    }
}

/// The inputs of an adjoint in row-major order.
struct Inputs<'a, T: Real> {
    grad_y: Cow<'a, [T]>,
    x: Cow<'a, [T]>,
    w: Cow<'a, [T]>,
    width: usize,
}

impl<D: Dimension, X: Dimension> Weighted<D, X> {
    /// The level that the kernels run at.
    #[must_use]
    pub fn level(&self) -> Level {
        self.grouped.plan.level
    }

    /// The same operator at another level. The results are the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::LevelUnavailable`](crate::Error::LevelUnavailable) where the CPU lacks the level.
    pub fn with_level(mut self, level: Level) -> Result<Self> {
        self.grouped.set_level(level)?;
        Ok(self)
    }

    /// The same operator with choices made by the caller instead of by size.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuning(mut self, tuning: Tuning) -> Self {
        self.grouped.set_tuning(tuning);
        self
    }

    /// The sums of `x` (B, N, C) weighted by `w` (B, P, S): a new array (B, P, C). O(indices x C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn forward<T: Real>(&self, x: ArrayView<'_, T, X>, w: ArrayView<'_, T, D>) -> Result<Array<T, X>> {
        let width = self.check(x.shape(), w.shape())?;
        let shape = self.grouped.result_shape(width);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (x, w) = (dense(&x)?, dense(&w)?);
        Ok(buffer.fill(&shape, |cells| self.grouped.sum(&x, width, Some(&w), false, Output::fresh(cells))))
    }

    /// [`Weighted::forward`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn forward_into<T: Real>(
        &self,
        x: ArrayView<'_, T, X>,
        w: ArrayView<'_, T, D>,
        y: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        let width = self.check(x.shape(), w.shape())?;
        check_shape("y", y.shape(), &self.grouped.result_shape(width))?;
        let (x, w) = (dense(&x)?, dense(&w)?);
        let _ = self.grouped.sum(&x, width, Some(&w), false, Output::array(y, Start::Zero));
        Ok(())
    }

    /// Both gradients of [`Weighted::forward`] at `x` (B, N, C) and `w` (B, P, S) for the gradient `grad_y` (B, P, C).
    ///
    /// O(indices x C). Where a batch of `grad_x` fits in cache, and there are batches enough for the threads, both come
    /// from one pass over `grad_y`.
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
        let width = self.grouped.result_channels("grad_y", grad_y.shape())?;
        self.grouped.check_as_indices("w", w.shape())?;
        let shape = self.grouped.feature_shape(width);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (grad_y, w) = (dense(&grad_y)?, dense(&w)?);
        Ok(buffer.fill(&shape, |cells| self.grouped.spread(&grad_y, width, Some(&w), Output::fresh(cells))))
    }

    /// The gradient to the weights alone: a new array (B, P, S).
    ///
    /// # Errors
    ///
    /// As [`Weighted::adjoint`].
    pub fn adjoint_w<T: Real>(&self, grad_y: ArrayView<'_, T, X>, x: ArrayView<'_, T, X>) -> Result<Array<T, D>> {
        let width = self.grouped.feature_channels("x", x.shape())?;
        check_shape("grad_y", grad_y.shape(), &self.grouped.result_shape(width))?;
        let shape = self.grouped.shape.slice();
        let buffer = Buffer::new(elements::<T>(shape)?)?;
        let (grad_y, x) = (dense(&grad_y)?, dense(&x)?);
        Ok(buffer.fill(shape, |cells| self.dot(&grad_y, &x, width, Output::fresh(cells))))
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

    /// Checks the shapes of the inputs and returns the channels.
    fn check(&self, x: &[usize], w: &[usize]) -> Result<usize> {
        let width = self.grouped.feature_channels("x", x)?;
        self.grouped.check_as_indices("w", w)?;
        Ok(width)
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
        let empty = plan.indices.is_empty() || plan.rows * width == 0;
        if !empty && reduction::<T>(plan, width) == Reduction::Slab {
            return self.pull_at_once(inputs, grad_x, grad_w);
        }
        let x = self.grouped.spread(&inputs.grad_y, width, Some(&inputs.w), grad_x);
        x.and(self.dot(&inputs.grad_y, &inputs.x, width, grad_w))
    }

    /// Both gradients in one pass over `grad_y`, whose owner is the batch.
    fn pull_at_once<T: Real>(&self, inputs: &Inputs<'_, T>, grad_x: Output<'_, T>, grad_w: Output<'_, T>) -> Filled {
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
