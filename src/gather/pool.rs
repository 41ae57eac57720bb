//! Sums and means of gathered rows that are never built.

use super::groups::Grouped;
use super::plan::{ABSENT, Index, OutOfRange, Tuning};
use crate::Real;
use crate::buffer::{Buffer, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use crate::parallel::for_each_tile;
use crate::settings::settings;
use ndarray::{Array, Array1, ArrayView, ArrayViewMut, Dimension, Ix1, Ix2, Ix3};

/// A reduction that is linear in its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Linear {
    /// The sum, 0 of no elements.
    Sum,
    /// The sum divided by the number of elements, 0 of no elements.
    Mean,
}

/// Reduces gathered rows without building them: the sum, mean, maximum or minimum over s of `x[b, indices[b, p, s], :]`.
///
/// `D` is the dimension of the indices, `X` that of the features and results:
///
/// | made by | indices | features | results |
/// |---|---|---|---|
/// | [`Pooled::new`] | (B, P, S) | (B, N, C) | (B, P, C) |
/// | [`Pooled::unbatched`] | (P, S) | (N, C) | (P, C) |
/// | [`Pooled::ragged`] | (E), offsets (P + 1) | (N, C) | (P, C) |
///
/// Results are equal, bit for bit, to these loops at every level and for every number of threads, where n is the number of
/// indices of the group that are not padding:
///
/// ```text
/// forward(Sum):   y = 0;   for p, for s ascending:  y[p, :] += x[i[p, s], :]
/// adjoint(Sum):   gx = 0;  for p, for s ascending:  gx[i[p, s], :] += gy[p, :]
/// forward(Mean):  the sum / n, 0 where n is 0
/// adjoint(Mean):  adjoint(Sum) of gy[p, :] / n
/// extremes:       for s ascending, the first s of a group, and then one that is larger (smaller), or the first NaN
/// its adjoint:    gx = 0;  for p, for s ascending:  gx[i[p, s], c] += share of s, where (p, s, c) was chosen or tied
/// ```
///
/// An extreme element keeps its bits. The first NaN wins against numbers, the first of equal elements against the later
/// ones, and -0.0 equals +0.0. (As in `torch.amax` and
/// `jax.numpy.max`, which divide the gradient between equal elements: [`Ties::Even`](super::Ties::Even).)
///
/// Under [`OutOfRange::Skip`] a padding index is absent: not added, not compared, not counted. (The fill of the policy is
/// not used.) A group with no index left has the sum and mean 0, and as extreme element the value of
/// [`Pooled::with_empty`], by default 0, with the argument `u32::MAX` and no gradient. Arrays may have any strides; inputs
/// that are not in standard layout are copied first.
///
/// # Examples
///
/// ```
/// use pullback::gather::{Extremum, Linear, OutOfRange, Pooled, Ties};
/// use pullback::ndarray::array;
///
/// // Two neighbourhoods of up to three points; -1 is padding.
/// let pool = Pooled::new(array![[[0, 1, 2], [2, 0, -1]]].view(), 3, OutOfRange::Skip { fill: 0.0 })?;
/// let x = array![[[1.0, 5.0], [4.0, 2.0], [4.0, 3.0]]];
/// assert_eq!(pool.forward(Linear::Sum, x.view())?, array![[[9.0, 10.0], [5.0, 8.0]]]);
/// assert_eq!(pool.forward(Linear::Mean, x.view())?[[0, 1, 0]], 2.5);
///
/// let max = pool.extremes(Extremum::Max, x.view())?;
/// assert_eq!(max.values, array![[[4.0, 5.0], [4.0, 5.0]]]);
/// assert_eq!(max.arguments, array![[[1, 0], [0, 1]]]);
///
/// let grad_y = array![[[1.0, 1.0], [1.0, 1.0]]];
/// let first = pool.extremes_adjoint(grad_y.view(), Ties::First(max.arguments.view()))?;
/// assert_eq!(first, array![[[0.0, 2.0], [1.0, 0.0], [1.0, 0.0]]]);
/// let even = pool.extremes_adjoint(grad_y.view(), Ties::Even(Extremum::Max, x.view()))?;
/// assert_eq!(even, array![[[0.0, 2.0], [0.5, 0.0], [1.5, 0.0]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Pooled<D = Ix3, X = Ix3> {
    pub(super) grouped: Grouped<D, X>,
    pub(super) empty: f64,
}

impl Pooled<Ix3, Ix3> {
    /// An operator on features (B, N, C) with N = `rows`, by indices (B, P, S). O(indices).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for the first index that `policy` does not accept,
    /// [`Error::TooLarge`](crate::Error::TooLarge) where `rows`, the groups or the indices of a batch exceed 2^32 - 2,
    /// [`Error::Allocation`](crate::Error::Allocation), and [`Error::Environment`](crate::Error::Environment) from
    /// [`Level::current`](crate::Level::current).
    pub fn new<I: Index>(indices: ArrayView<'_, I, Ix3>, rows: usize, policy: OutOfRange) -> Result<Self> {
        Ok(Self { grouped: Grouped::batched(&indices, rows, policy)?, empty: 0.0 })
    }
}

impl Pooled<Ix2, Ix2> {
    /// An operator on features (N, C) with N = `rows`, by indices (P, S). O(indices).
    ///
    /// # Errors
    ///
    /// As [`Pooled::new`].
    pub fn unbatched<I: Index>(indices: ArrayView<'_, I, Ix2>, rows: usize, policy: OutOfRange) -> Result<Self> {
        Ok(Self { grouped: Grouped::unbatched(&indices, rows, policy)?, empty: 0.0 })
    }
}

impl Pooled<Ix1, Ix2> {
    /// An operator on features (N, C) with N = `rows`, by indices (E) of which group p has those from `offsets[p]` up to
    /// `offsets[p + 1]`: the neighbours that a radius search returns. O(indices).
    ///
    /// # Errors
    ///
    /// [`Error::Offset`](crate::Error::Offset) where the offsets (P + 1) do not ascend from 0 to E,
    /// [`Error::Shape`](crate::Error::Shape) where there are none, otherwise as [`Pooled::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{Extremum, OutOfRange, Pooled};
    /// use pullback::ndarray::array;
    ///
    /// let (neighbours, offsets) = (array![2u32, 0, 1], array![0u32, 2, 2, 3]);
    /// let pool = Pooled::ragged(neighbours.view(), offsets.view(), 3, OutOfRange::Error)?.with_empty(f64::NEG_INFINITY);
    /// let max = pool.extremes(Extremum::Max, array![[1.0f32], [2.0], [3.0]].view())?;
    /// assert_eq!(max.values, array![[3.0], [f32::NEG_INFINITY], [2.0]]);
    /// assert_eq!(max.arguments, array![[0], [u32::MAX], [0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn ragged<I: Index, O: Index>(
        indices: ArrayView<'_, I, Ix1>,
        offsets: ArrayView<'_, O, Ix1>,
        rows: usize,
        policy: OutOfRange,
    ) -> Result<Self> {
        Ok(Self { grouped: Grouped::ragged(&indices, &offsets, rows, policy)?, empty: 0.0 })
    }
}

settings!(level of [D: Dimension, X: Dimension] Pooled<D, X> { grouped.plan.level, grouped.plan.tuning }, same bits from Base);

impl<D: Dimension, X: Dimension> Pooled<D, X> {
    /// The same operator with `value` (rounded to the element type) as the extreme element of a group with no index left.
    #[must_use]
    pub fn with_empty(mut self, value: f64) -> Self {
        self.empty = value;
        self
    }

    /// The sums or means of `x` (B, N, C) over the indices of each group: a new array (B, P, C). O(indices x C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn forward<T: Real>(&self, linear: Linear, x: ArrayView<'_, T, X>) -> Result<Array<T, X>> {
        let width = self.grouped.feature_channels("x", x.shape())?;
        let shape = self.grouped.result_shape(width);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (x, mean) = (dense(&x)?, linear == Linear::Mean);
        Ok(buffer.fill(&shape, |cells| self.grouped.sum(&x, width, None, mean, Output::fresh(cells))))
    }

    /// [`Pooled::forward`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn forward_into<T: Real>(
        &self,
        linear: Linear,
        x: ArrayView<'_, T, X>,
        y: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        let width = self.grouped.feature_channels("x", x.shape())?;
        check_shape("y", y.shape(), &self.grouped.result_shape(width))?;
        let (x, mean) = (dense(&x)?, linear == Linear::Mean);
        let _ = self.grouped.sum(&x, width, None, mean, Output::array(y, Start::Zero));
        Ok(())
    }

    /// The transpose of [`Pooled::forward`]: the gradient to the features (B, N, C) for the gradient `grad_y` (B, P, C).
    /// O(indices x C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn adjoint<T: Real>(&self, linear: Linear, grad_y: ArrayView<'_, T, X>) -> Result<Array<T, X>> {
        let width = self.grouped.result_channels("grad_y", grad_y.shape())?;
        let shape = self.grouped.feature_shape(width);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        self.with_divided(linear, &grad_y, width, |grad_y| {
            buffer.fill(&shape, |cells| self.grouped.spread(grad_y, width, None, Output::fresh(cells)))
        })
    }

    /// [`Pooled::adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_into<T: Real>(
        &self,
        linear: Linear,
        grad_y: ArrayView<'_, T, X>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.adjoint_from(linear, &grad_y, grad_x, Start::Zero)
    }

    /// [`Pooled::adjoint`] added to the caller's array: every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_add<T: Real>(
        &self,
        linear: Linear,
        grad_y: ArrayView<'_, T, X>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.adjoint_from(linear, &grad_y, grad_x, Start::Values)
    }

    fn adjoint_from<T: Real>(
        &self,
        linear: Linear,
        grad_y: &ArrayView<'_, T, X>,
        grad_x: ArrayViewMut<'_, T, X>,
        start: Start,
    ) -> Result<()> {
        let width = self.grouped.result_channels("grad_y", grad_y.shape())?;
        check_shape("grad_x", grad_x.shape(), &self.grouped.feature_shape(width))?;
        self.with_divided(linear, grad_y, width, |grad_y| {
            let _ = self.grouped.spread(grad_y, width, None, Output::array(grad_x, start));
        })
    }

    /// Runs `f` on `grad_y`, for a mean divided by the number of indices of each group that are not padding.
    fn with_divided<T: Real, R>(
        &self,
        linear: Linear,
        grad_y: &ArrayView<'_, T, X>,
        width: usize,
        f: impl FnOnce(&[T]) -> R,
    ) -> Result<R> {
        let grad_y = dense(grad_y)?;
        if linear == Linear::Sum || grad_y.is_empty() {
            return Ok(f(&grad_y));
        }
        let (plan, offsets) = (&self.grouped.plan, &self.grouped.groups.offsets);
        let groups = self.grouped.groups.count();
        let quotients: Array1<T> = Buffer::new(grad_y.len())?.fill(&[grad_y.len()], |cells| {
            let cut = self.grouped.cut::<T>(width);
            for_each_tile(Output::fresh(cells), plan.batches * groups, &cut, &|batch, rows, tile| {
                let indices = plan.batch(batch);
                let used = |ends: &[u32]| {
                    indices[ends[0] as usize..ends[1] as usize].iter().filter(|&&row| row != ABSENT).count() as u32
                };
                let divisors: Vec<u32> = offsets[rows.start..=rows.end].windows(2).map(used).collect();
                let source = &grad_y[(batch * groups + rows.start) * width..][..rows.len() * width];
                T::divide_rows(plan.level, source, &divisors, width, tile);
            })
        });
        Ok(f(quotients.as_slice().expect("made in one piece")))
    }
}
