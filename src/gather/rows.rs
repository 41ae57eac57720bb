//! Row gather: `y[b, .., :] = x[b, indices[b, ..], :]`, and its adjoint by [`Spread`].
//!
//! Forward tasks are consecutive output rows, batch after batch, so that a batch's table stays in cache.

use super::groups::reserved;
use super::kernels::Traffic;
use super::plan::{ABSENT, Index, OutOfRange, Plan, Tuning};
use super::reduce::Spread;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, STREAM_BYTES, Start};
use crate::error::{Error, Result};
use crate::layout::{Rows, check_shape, elements};
use crate::parallel::{Cut, for_each_tile};
use crate::settings::settings;
use ndarray::{Array, Array3, ArrayView, ArrayView3, ArrayViewMut, Dimension, Ix2, Ix3, IxDyn};
use std::marker::PhantomData;

/// Bytes of output that one task writes.
pub(super) const TILE_BYTES: usize = 256 << 10;

/// Tables larger than this many bytes are asked for ahead of use: more than a level-one cache holds.
pub(super) const PREFETCH_BYTES: usize = 64 << 10;

/// Gathers rows: `y[b, .., :] = x[b, indices[b, ..], :]`.
///
/// `D` is the dimension of the indices, `X` that of the features: [`Gather::new`] takes indices (B, ...) into features
/// (B, N, C), [`Gather::unbatched`] indices of any shape into features (N, C).
///
/// The operator checks its indices once, keeps a copy of 4 bytes an index, and can be shared between threads. Arrays may
/// have any strides; standard layout is the fast path. Results are equal, bit for bit, to the naive loop, at every
/// level and for every number of threads:
///
/// ```text
/// forward:  for every position p (row-major):  y[b, p, :] = x[b, indices[b, p], :]
/// adjoint:  gx = 0;  for every position p in ascending order:  gx[b, indices[b, p], :] += gy[b, p, :]
/// ```
///
/// # Examples
///
/// ```
/// use pullback::gather::{Gather, OutOfRange};
/// use pullback::ndarray::array;
///
/// // One batch of three points with two features, gathered at (B, P, S) = (1, 1, 4) indices.
/// let x = array![[[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]]];
/// let gather = Gather::new(array![[[2, 0, 2, 1]]].view(), 3, OutOfRange::Error)?;
/// let y = gather.forward(x.view())?;
/// assert_eq!(y, array![[[[3.0, 30.0], [1.0, 10.0], [3.0, 30.0], [2.0, 20.0]]]]);
///
/// let gx = gather.adjoint(y.view())?;
/// assert_eq!(gx, array![[[1.0, 10.0], [2.0, 20.0], [6.0, 60.0]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Gather<D, X = Ix3> {
    pub(super) plan: Plan,
    /// The shape of the indices.
    shape: D,
    features: PhantomData<X>,
}

impl<D: Dimension> Gather<D, Ix3> {
    /// An operator on features (B, N, C) with N = `rows`, by indices (B, ...). O(indices).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`] for the first index that `policy` does not accept, [`Error::Rank`] where the indices
    /// have no batch axis, [`Error::TooLarge`] where `rows` or the indices of a batch exceed 2^32 - 2, and
    /// [`Error::Environment`] from [`Level::current`](crate::Level::current).
    pub fn new<I: Index>(indices: ArrayView<'_, I, D>, rows: usize, policy: OutOfRange) -> Result<Self> {
        if indices.ndim() == 0 {
            return Err(Error::Rank { argument: "indices", found: 0, least: 1 });
        }
        let plan = Plan::new("indices", &indices, indices.shape()[0], rows, policy)?;
        Ok(Self { plan, shape: indices.raw_dim(), features: PhantomData })
    }
}

impl<D: Dimension> Gather<D, Ix2> {
    /// An operator on features (N, C) with N = `rows`, by indices of any shape: (M, K) neighbour indices, say. O(indices).
    ///
    /// # Errors
    ///
    /// As [`Gather::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{Gather, OutOfRange};
    /// use pullback::ndarray::array;
    ///
    /// let neighbours = array![[1u32, 2], [0, 2], [0, u32::MAX]];
    /// let gather = Gather::unbatched(neighbours.view(), 3, OutOfRange::Skip { fill: 0.0 })?;
    /// let y = gather.forward(array![[1.0f32], [2.0], [3.0]].view())?;
    /// assert_eq!(y, array![[[2.0], [3.0]], [[1.0], [3.0]], [[1.0], [0.0]]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn unbatched<I: Index>(indices: ArrayView<'_, I, D>, rows: usize, policy: OutOfRange) -> Result<Self> {
        let plan = Plan::new("indices", &indices, 1, rows, policy)?;
        Ok(Self { plan, shape: indices.raw_dim(), features: PhantomData })
    }
}

settings!(level of [D: Dimension, X: Dimension] Gather<D, X> { plan.level, plan.tuning }, same bits from Base);

impl<D: Dimension, X: Dimension> Gather<D, X> {
    /// Gathers `x` of shape (B, N, C), or (N, C) unbatched, into a new array of the indices' shape and C.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn forward<T: Real>(&self, x: ArrayView<'_, T, X>) -> Result<Array<T, D::Larger>> {
        let shape = self.output_shape(self.plan.channels::<X>("x", self.plan.rows, x.shape())?);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        Ok(buffer.fill(&shape, |cells| self.copy(&x, Output::fresh(cells))))
    }

    /// [`Gather::forward`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`]; nothing is written then.
    pub fn forward_into<T: Real>(&self, x: ArrayView<'_, T, X>, y: ArrayViewMut<'_, T, D::Larger>) -> Result<()> {
        let shape = self.output_shape(self.plan.channels::<X>("x", self.plan.rows, x.shape())?);
        check_shape("y", y.shape(), &shape)?;
        let _ = self.copy(&x, Output::array(y, Start::Zero));
        Ok(())
    }

    /// The transpose of [`Gather::forward`]: sums the gradient `grad_y`, of the indices' shape and C, at the rows it came
    /// from, in a new array (B, N, C), or (N, C) unbatched. Rows that no index names are 0.
    ///
    /// The first call builds what it needs of the inverse indices, O(indices), and keeps it for later ones.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn adjoint<T: Real>(&self, grad_y: ArrayView<'_, T, D::Larger>) -> Result<Array<T, X>> {
        let shape = self.plan.shape::<X>(self.plan.rows, self.check_gradient(grad_y.shape())?);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        Ok(buffer.fill(&shape, |cells| self.sum(&grad_y, Output::fresh(cells))))
    }

    /// [`Gather::adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`]; nothing is written then.
    pub fn adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, D::Larger>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.adjoint_from(grad_y, grad_x, Start::Zero)
    }

    /// [`Gather::adjoint`] added to the caller's array: every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`]; nothing is written then.
    pub fn adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, D::Larger>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.adjoint_from(grad_y, grad_x, Start::Values)
    }

    /// How many indices name each row: (B, N), or (N) unbatched. Padding is not counted, a clamped index counts for the row
    /// that it stands for.
    ///
    /// The first call builds the inverse of the indices, O(indices + B x N), and keeps it.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{Gather, OutOfRange};
    /// use pullback::ndarray::array;
    ///
    /// let gather = Gather::new(array![[0, 2, 2], [1, -1, 1]].view(), 3, OutOfRange::Skip { fill: 0.0 })?;
    /// assert_eq!(gather.counts()?, array![[1, 0, 2], [0, 2, 0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn counts(&self) -> Result<Array<u32, X::Smaller>> {
        let inverse = self.plan.built_inverse()?;
        let mut counts = reserved(self.plan.batches * self.plan.rows)?;
        let batches = (0..self.plan.batches).map(|batch| inverse.offsets(batch));
        counts.extend(batches.flat_map(|offsets| offsets.windows(2).map(|ends| ends[1] - ends[0])));
        Ok(self.a_row(counts))
    }

    /// The array of a number a row of the features.
    fn a_row(&self, numbers: Vec<u32>) -> Array<u32, X::Smaller> {
        let shape = self.plan.shape::<X>(self.plan.rows, 0);
        Array::from_shape_vec(IxDyn(&shape[..shape.len() - 1]), numbers)
            .and_then(Array::into_dimensionality)
            .expect("a number a row")
    }

    fn adjoint_from<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, D::Larger>,
        grad_x: ArrayViewMut<'_, T, X>,
        start: Start,
    ) -> Result<()> {
        let shape = self.plan.shape::<X>(self.plan.rows, self.check_gradient(grad_y.shape())?);
        check_shape("grad_x", grad_x.shape(), &shape)?;
        let _ = self.sum(&grad_y, Output::array(grad_x, start));
        Ok(())
    }

    /// The shape of gathered rows with `channels`.
    fn output_shape(&self, channels: usize) -> Vec<usize> {
        [self.shape.slice(), &[channels]].concat()
    }

    /// Checks the shape of a gradient of the output and returns its channels.
    pub(super) fn check_gradient(&self, found: &[usize]) -> Result<usize> {
        let channels = found.last().copied().unwrap_or(0);
        check_shape("grad_y", found, &self.output_shape(channels))?;
        Ok(channels)
    }

    fn copy<T: Real>(&self, x: &ArrayView<'_, T, X>, y: Output<'_, T>) -> Filled {
        copy_rows(&self.plan, &Rows::new(x), x.shape()[x.ndim() - 1], y)
    }

    fn sum<T: Real>(&self, grad_y: &ArrayView<'_, T, D::Larger>, grad_x: Output<'_, T>) -> Filled {
        let width = grad_y.shape()[grad_y.ndim() - 1];
        Spread::of_positions(&self.plan, Rows::new(grad_y), width).reduce(grad_x)
    }
}

/// The rows of `x` (B, N, `width`) that a plan's indices name, into `y` (B, M, `width`).
pub(super) fn copy_rows<T: Real>(plan: &Plan, x: &Rows<'_, T>, width: usize, y: Output<'_, T>) -> Filled {
    if plan.indices.is_empty() || width == 0 {
        return Filled::NOTHING;
    }
    let row_bytes = width * size_of::<T>();
    let traffic = Traffic {
        stream: row_bytes.is_multiple_of(16) && plan.tuning.stream.unwrap_or(plan.bytes::<T>(width) > STREAM_BYTES),
        prefetch: plan.tuning.prefetch.unwrap_or(plan.rows.saturating_mul(row_bytes) > PREFETCH_BYTES),
    };
    let tile = plan.tuning.tile.unwrap_or(TILE_BYTES.div_ceil(row_bytes));
    let cut = Cut { group: plan.per_batch, tile, width, parallel: plan.parallel::<T>(width) };
    let padding = vec![T::from_f64(plan.fill).expect("every f64 rounds to an element"); width];
    for_each_tile(y, plan.indices.len(), &cut, &|batch, rows, tile| {
        let indices = &plan.batch(batch)[rows];
        let first = batch * plan.rows;
        match x {
            Rows::Dense(x) => {
                let x = &x[first * width..][..plan.rows * width];
                T::copy_rows(plan.level, x, indices, &padding, traffic, tile);
            }
            strided => {
                let mut row = padding.clone();
                for &index in indices {
                    if index == ABSENT {
                        tile.push_slice(&padding);
                    } else {
                        strided.copy(first + index as usize, &mut row);
                        tile.push_slice(&row);
                    }
                }
            }
        }
    })
}

/// [`Gather::forward`] in one call: rows of `x` (B, N, C) at `indices` (B, ...), which must all lie in 0..N.
///
/// # Errors
///
/// As [`Gather::new`] and [`Gather::forward`].
///
/// # Examples
///
/// ```
/// use pullback::gather::index_points;
/// use pullback::ndarray::array;
///
/// let features = array![[[0.0f32, 0.5], [1.0, 1.5]], [[2.0, 2.5], [3.0, 3.5]]];
/// let y = index_points(features.view(), array![[[1, 1]], [[0, 1]]].view())?;
/// assert_eq!(y, array![[[[1.0, 1.5], [1.0, 1.5]]], [[[2.0, 2.5], [3.0, 3.5]]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub fn index_points<T: Real, I: Index, D: Dimension>(
    x: ArrayView3<'_, T>,
    indices: ArrayView<'_, I, D>,
) -> Result<Array<T, D::Larger>> {
    Gather::new(indices, x.shape()[1], OutOfRange::Error)?.forward(x)
}

/// [`Gather::adjoint`] in one call: the gradient `grad_y` (B, ..., C) of [`index_points`] summed at the `rows` points
/// that it came from. To run it many times with the same indices, keep a [`Gather`].
///
/// # Errors
///
/// As [`Gather::new`] and [`Gather::adjoint`].
pub fn index_points_adjoint<T: Real, I: Index, D: Dimension>(
    grad_y: ArrayView<'_, T, D::Larger>,
    indices: ArrayView<'_, I, D>,
    rows: usize,
) -> Result<Array3<T>> {
    Gather::new(indices, rows, OutOfRange::Error)?.adjoint(grad_y)
}
