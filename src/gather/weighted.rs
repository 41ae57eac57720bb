//! Weighted sums of gathered rows.

use super::groups::Grouped;
use super::inverse::Inverse;
use super::plan::{Index, OutOfRange, Tuning};
use crate::Real;
use crate::buffer::{Buffer, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use crate::settings::settings;
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension, Ix1, Ix2, Ix3};

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
    pub(super) grouped: Grouped<D, X>,
}

impl Weighted<Ix3, Ix3> {
    /// An operator on features (B, N, C) with N = `rows`, by indices (B, P, S). O(indices).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for the first index that `policy` does not accept,
    /// [`Error::TooLarge`](crate::Error::TooLarge) where `rows`, the groups or the indices of a batch exceed 2^32 - 2,
    /// [`Error::Allocation`](crate::Error::Allocation), and [`Error::Environment`](crate::Error::Environment) from
    /// [`Level::current`](crate::Level::current).
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

settings!(level of [D: Dimension, X: Dimension] Weighted<D, X> { grouped.plan.level, grouped.plan.tuning }, same bits from Base);

impl<D: Dimension, X: Dimension> Weighted<D, X> {
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

    /// The positions that name each row, built on first need.
    pub(crate) fn inverse(&self) -> &Inverse {
        self.grouped.plan.inverse()
    }

    /// Checks the shapes of the inputs and returns the channels.
    pub(super) fn check(&self, x: &[usize], w: &[usize]) -> Result<usize> {
        let width = self.grouped.feature_channels("x", x)?;
        self.grouped.check_as_indices("w", w)?;
        Ok(width)
    }
}
