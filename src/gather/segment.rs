//! Reductions of rows by segment: sums, means and products. Extreme elements and exponentials are in files of their own.

use super::groups::{Groups, reserved};
use super::maps::Members;
use super::plan::{Index, OutOfRange, Plan, Tuning, check_count};
use super::pool::Linear;
use super::reduce::{Spread, each_pairs, inverse_cut};
use super::rows::{TILE_BYTES, copy_rows};
use super::terms::Owner;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start, Tile};
use crate::error::Result;
use crate::layout::{Rows, check_shape, dense, elements};
use crate::parallel::{Cut, for_each_tile};
use crate::settings::settings;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, ArrayViewMut2};
use rayon::prelude::*;
use std::ops::Range;

/// Reduces the rows of `x` (M, C) that lie in one segment, for every segment: results (S, C).
///
/// | method | result of a segment | of an empty one | its adjoint needs |
/// |---|---|---|---|
/// | [`forward`](Segments::forward) | [`Linear::Sum`], [`Linear::Mean`] | 0 | nothing |
/// | [`product`](Segments::product) | product | 1 | x |
/// | [`extremes`](Segments::extremes) | max or min, and its row | [`with_empty`](Segments::with_empty), `u32::MAX` | the rows, or x |
/// | [`log_sum_exp`](Segments::log_sum_exp) | ln of the sum of exp | -infinity | x and the result |
/// | [`softmax`](Segments::softmax) | exp / sum of exp, a row a row (M, C) | no rows | the result |
///
/// Segments are given by an id a row, in any order ([`Segments::new`]), or follow each other, between offsets
/// ([`Segments::from_offsets`]) or with lengths ([`Segments::from_lengths`]). Their number is explicit, never the largest id
/// plus 1. (The reductions are those of `torch.segment_reduce`, `torch_scatter` and `jax.ops.segment_*`; an empty maximum is 0
/// as in `torch_scatter`, unless the caller says otherwise, where `jax.ops` gives -infinity.)
///
/// Results are equal, bit for bit, to these loops over the rows m in ascending order, at every level and for every number of
/// threads, where s is the segment of m and n the number of its rows:
///
/// ```text
/// forward(Sum):      y = 0;  y[s, :] += x[m, :]             adjoint:  gx[m, :] = gy[s, :]
/// forward(Mean):     the sum / n, 0 where n is 0            adjoint:  gx[m, :] = gy[s, :] / n
/// product:           y = 1;  y[s, :] *= x[m, :]             adjoint:  gx[m, :] = gy[s, :] * (before * after)
/// ```
///
/// `before` is the product of the segment's rows before m, from the first on, `after` that of the rows behind m, from the last
/// one back. Nothing is divided: with one zero its row alone has a gradient, with two none has.
///
/// Exponentials are of `x` less the segment's maximum, by the `exp` and `ln` of the Rust standard library, within a few units
/// in the last place of exact; their bits are the same for every number of threads and at every level, but those of the
/// standard library may differ between systems.
///
/// Under [`OutOfRange::Skip`] a row whose id is outside is in no segment, and has the gradient (and the softmax) 0. Arrays may
/// have any strides; standard layout is the fast path.
///
/// # Examples
///
/// ```
/// use pullback::gather::{Extremum, Linear, OutOfRange, Segments};
/// use pullback::ndarray::array;
///
/// let segments = Segments::new(array![2, 0, 2, -1].view(), 3, OutOfRange::Skip { fill: 0.0 })?;
/// let x = array![[1.0, 5.0], [3.0, 4.0], [2.0, 2.0], [f64::NAN, 9.0]];
/// let y = segments.forward(Linear::Sum, x.view())?;
/// assert_eq!(y, array![[3.0, 4.0], [0.0, 0.0], [3.0, 7.0]]);
/// assert_eq!(segments.adjoint(Linear::Sum, y.view())?, array![[3.0, 7.0], [3.0, 4.0], [3.0, 7.0], [0.0, 0.0]]);
///
/// let max = segments.extremes(Extremum::Max, x.view())?;
/// assert_eq!(max.values, array![[3.0, 4.0], [0.0, 0.0], [2.0, 5.0]]);
/// assert_eq!(max.arguments, array![[1, 1], [u32::MAX, u32::MAX], [2, 0]]);
///
/// let factors = Segments::from_lengths(array![3, 0].view(), 3)?;
/// let x = array![[0.0], [2.0], [3.0]];
/// assert_eq!(factors.product(x.view())?, array![[0.0], [1.0]]);
/// assert_eq!(factors.product_adjoint(array![[1.0], [1.0]].view(), x.view())?, array![[6.0], [0.0], [0.0]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Segments {
    /// Of one batch: rows are segments, indices are ids.
    pub(super) plan: Plan,
    pub(super) empty: f64,
}

settings!(level of [] Segments { plan.level, plan.tuning }, same bits from Base);

impl Segments {
    /// Segments by the `ids` (M) of rows, in any order, out of 0..`segments`. O(M).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for the first id that `policy` does not accept,
    /// [`Error::TooLarge`](crate::Error::TooLarge) where `segments` or M exceed 2^32 - 2,
    /// [`Error::Allocation`](crate::Error::Allocation), and [`Error::Environment`](crate::Error::Environment) from
    /// [`Level::current`](crate::Level::current).
    pub fn new<I: Index>(ids: ArrayView1<'_, I>, segments: usize, policy: OutOfRange) -> Result<Self> {
        check_count("segments", segments)?;
        Self::of_plan(Plan::new("ids", &ids, 1, segments, policy)?)
    }

    /// Segments that follow each other: segment s has the rows from `offsets[s]` up to `offsets[s + 1]` of `rows` rows. O(M).
    ///
    /// # Errors
    ///
    /// [`Error::Offset`](crate::Error::Offset) where the offsets (S + 1) do not ascend from 0 to `rows`,
    /// [`Error::Shape`](crate::Error::Shape) where there are none, otherwise as [`Segments::new`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{Linear, Segments};
    /// use pullback::ndarray::array;
    ///
    /// let segments = Segments::from_offsets(array![0, 2, 2, 3].view(), 3)?;
    /// let y = segments.forward(Linear::Mean, array![[1.0], [2.0], [5.0]].view())?;
    /// assert_eq!(y, array![[1.5], [0.0], [5.0]]);
    /// assert!(Segments::from_offsets(array![-9, -1024, 0].view(), 3).is_err());
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn from_offsets<O: Index>(offsets: ArrayView1<'_, O>, rows: usize) -> Result<Self> {
        Self::of_groups(Groups::ragged(&offsets, rows)?)
    }

    /// Segments that follow each other, of `lengths` (S) rows each, `rows` in all. O(M).
    ///
    /// # Errors
    ///
    /// [`Error::Offset`](crate::Error::Offset) where the sum of the lengths is not `rows` or one is negative,
    /// [`Error::Shape`](crate::Error::Shape) where there are none but rows, otherwise as [`Segments::new`].
    pub fn from_lengths<I: Index>(lengths: ArrayView1<'_, I>, rows: usize) -> Result<Self> {
        Self::of_groups(Groups::of_lengths(&lengths, rows)?)
    }

    fn of_groups(groups: Groups) -> Result<Self> {
        let (offsets, ids) = groups.into_parts();
        Self::of_plan(Plan::of_sorted(offsets, ids)?)
    }

    fn of_plan(mut plan: Plan) -> Result<Self> {
        // What a row without a segment gets in the adjoint of a sum.
        plan.fill = 0.0;
        Ok(Self { plan, empty: 0.0 })
    }

    /// The number of segments, S.
    #[must_use]
    pub fn len(&self) -> usize {
        self.plan.rows
    }

    /// Whether there are no segments.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of rows of each segment. O(M + S) the first time, then O(S).
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn counts(&self) -> Result<Array1<u32>> {
        let offsets = self.plan.built_inverse()?.offsets(0);
        let mut counts = reserved(self.len())?;
        counts.extend(offsets.windows(2).map(|ends| ends[1] - ends[0]));
        Ok(counts.into())
    }

    /// The same operator with `value` (rounded to the element type) as the extreme element of an empty segment, by default 0.
    #[must_use]
    pub fn with_empty(mut self, value: f64) -> Self {
        self.empty = value;
        self
    }

    /// The sums or means of the rows of `x` (M, C) in each segment: a new array (S, C). O((M + S) x C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn forward<T: Real>(&self, linear: Linear, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.len(), self.channels_of_rows("x", x.shape())?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        Ok(buffer.fill(&shape, |cells| self.sum(linear, &x, Output::fresh(cells))))
    }

    /// [`Segments::forward`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape); nothing is written then.
    pub fn forward_into<T: Real>(&self, linear: Linear, x: ArrayView2<'_, T>, y: ArrayViewMut2<'_, T>) -> Result<()> {
        check_shape("y", y.shape(), &[self.len(), self.channels_of_rows("x", x.shape())?])?;
        let _ = self.sum(linear, &x, Output::array(y, Start::Zero));
        Ok(())
    }

    /// The transpose of [`Segments::forward`]: every row gets the gradient `grad_y` (S, C) of its segment, for a mean
    /// divided by the number of rows. A new array (M, C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn adjoint<T: Real>(&self, linear: Linear, grad_y: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.plan.per_batch, self.channels_of_results("grad_y", grad_y.shape())?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        self.with_divided(linear, &grad_y, |grad_y| {
            buffer.fill(&shape, |cells| copy_rows(&self.plan, &Rows::Dense(grad_y), shape[1], Output::fresh(cells)))
        })
    }

    /// [`Segments::adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_into<T: Real>(
        &self,
        linear: Linear,
        grad_y: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let width = self.channels_of_results("grad_y", grad_y.shape())?;
        check_shape("grad_x", grad_x.shape(), &[self.plan.per_batch, width])?;
        self.with_divided(linear, &grad_y, |grad_y| {
            let _ = copy_rows(&self.plan, &Rows::Dense(grad_y), width, Output::array(grad_x, Start::Zero));
        })
    }

    /// [`Segments::adjoint`] added to the caller's array; rows without a segment stay as they are.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn adjoint_add<T: Real>(
        &self,
        linear: Linear,
        grad_y: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let width = self.channels_of_results("grad_y", grad_y.shape())?;
        check_shape("grad_x", grad_x.shape(), &[self.plan.per_batch, width])?;
        let ids = self.plan.batch(0);
        self.with_divided(linear, &grad_y, |grad_y| {
            let _ = self.each_row_tile(width, Output::array(grad_x, Start::Values), |rows, tile| {
                let sums = tile.accumulators();
                let first = rows.start as u32;
                each_pairs(ids, Owner::Each, rows, |pairs, _| {
                    // From the segment to the row: the other way round than the sum.
                    pairs.iter_mut().for_each(|pair| (pair.from, pair.to) = (pair.to, pair.from - first));
                    T::add_rows(self.plan.level, grad_y, pairs, None, width, sums);
                });
            });
        })
    }

    /// The product of the rows of `x` (M, C) in each segment: a new array (S, C). O((M + S) x C).
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    pub fn product<T: Real>(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.len(), self.channels_of_rows("x", x.shape())?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let x = dense(&x)?;
        Ok(buffer.fill(&shape, |cells| self.multiply(&x, shape[1], Output::fresh(cells))))
    }

    /// [`Segments::product`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn product_into<T: Real>(&self, x: ArrayView2<'_, T>, y: ArrayViewMut2<'_, T>) -> Result<()> {
        let width = self.channels_of_rows("x", x.shape())?;
        check_shape("y", y.shape(), &[self.len(), width])?;
        let _ = self.multiply(&dense(&x)?, width, Output::array(y, Start::Zero));
        Ok(())
    }

    /// The gradient of [`Segments::product`] at `x` (M, C) for the gradient `grad_y` (S, C): a new array (M, C).
    /// O((M + S) x C), without a division.
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    pub fn product_adjoint<T: Real>(&self, grad_y: ArrayView2<'_, T>, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.plan.per_batch, self.channels_of_rows("x", x.shape())?];
        check_shape("grad_y", grad_y.shape(), &[self.len(), shape[1]])?;
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (grad_y, x) = (dense(&grad_y)?, dense(&x)?);
        Ok(buffer.fill(&shape, |cells| self.pull_products(&grad_y, &x, shape[1], Output::fresh(cells))))
    }

    /// [`Segments::product_adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn product_adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        x: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let width = self.channels_of_rows("x", x.shape())?;
        check_shape("grad_y", grad_y.shape(), &[self.len(), width])?;
        check_shape("grad_x", grad_x.shape(), &[self.plan.per_batch, width])?;
        let _ = self.pull_products(&dense(&grad_y)?, &dense(&x)?, width, Output::array(grad_x, Start::Zero));
        Ok(())
    }

    /// [`Segments::product_adjoint`] added to the caller's array; rows without a segment stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`]; nothing is written then.
    pub fn product_adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        x: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        check_shape("grad_x", grad_x.shape(), x.shape())?;
        self.add(&self.product_adjoint(grad_y, x)?, grad_x);
        Ok(())
    }

    /// Adds a gradient, made by this operator, to the rows that have a segment.
    pub(super) fn add<T: Real>(&self, gradient: &Array2<T>, grad_x: ArrayViewMut2<'_, T>) {
        let (width, ids) = (gradient.ncols(), self.plan.batch(0));
        let gradient = gradient.as_slice().expect("made in one piece");
        let _ = self.each_row_tile(width, Output::array(grad_x, Start::Values), |rows, tile| {
            let sums = tile.accumulators();
            let first = rows.start;
            each_pairs(ids, Owner::Each, rows.clone(), |pairs, _| {
                pairs
                    .iter_mut()
                    .for_each(|pair| (pair.from, pair.to) = (pair.from - first as u32, pair.from - first as u32));
                T::add_rows(self.plan.level, &gradient[first * width..rows.end * width], pairs, None, width, sums);
            });
        });
    }

    /// Checks the shape of an array with a row a row and returns its channels.
    pub(super) fn channels_of_rows(&self, argument: &'static str, found: &[usize]) -> Result<usize> {
        check_shape(argument, found, &[self.plan.per_batch, found[1]])?;
        Ok(found[1])
    }

    /// Checks the shape of an array with a row a segment and returns its channels.
    pub(super) fn channels_of_results(&self, argument: &'static str, found: &[usize]) -> Result<usize> {
        check_shape(argument, found, &[self.len(), found[1]])?;
        Ok(found[1])
    }

    /// The rows of consecutive segments.
    pub(super) fn members(&self, segments: Range<usize>) -> Members<'_> {
        let inverse = self.plan.inverse();
        Members { offsets: &inverse.offsets(0)[segments.start..=segments.end], order: inverse.order(0) }
    }

    /// Runs `kernel` on tiles of rows of an output (M, `width`).
    pub(super) fn each_row_tile<T: Real>(
        &self,
        width: usize,
        out: Output<'_, T>,
        kernel: impl Fn(Range<usize>, &mut Tile<'_, T>) + Sync,
    ) -> Filled {
        let (plan, row_bytes) = (&self.plan, width * size_of::<T>());
        if plan.per_batch * width == 0 {
            return Filled::NOTHING;
        }
        let tile = plan.tuning.tile.unwrap_or(TILE_BYTES.div_ceil(row_bytes));
        let cut = Cut { group: plan.per_batch, tile, width, parallel: plan.parallel::<T>(width) };
        for_each_tile(out, plan.per_batch, &cut, &|_, rows, tile| kernel(rows, tile))
    }

    /// Runs `kernel` on tiles of segments of an output (S, `width`).
    pub(super) fn each_segment_tile<T: Real>(
        &self,
        width: usize,
        out: Output<'_, T>,
        kernel: impl Fn(Range<usize>, &mut Tile<'_, T>) + Sync,
    ) -> Filled {
        if self.plan.rows * width == 0 {
            return Filled::NOTHING;
        }
        let cut = inverse_cut::<T>(&self.plan, width);
        for_each_tile(out, self.plan.rows, &cut, &|_, segments, tile| kernel(segments, tile))
    }

    fn sum<T: Real>(&self, linear: Linear, x: &ArrayView2<'_, T>, y: Output<'_, T>) -> Filled {
        let spread = Spread::of_positions(&self.plan, Rows::new(x), x.dim().1);
        Spread { mean: linear == Linear::Mean, ..spread }.reduce(y)
    }

    fn multiply<T: Real>(&self, x: &[T], width: usize, y: Output<'_, T>) -> Filled {
        Spread { product: true, ..Spread::of_positions(&self.plan, Rows::Dense(x), width) }.reduce(y)
    }

    /// Runs `f` on `grad_y` (S, C), for a mean divided by the number of rows of each segment.
    fn with_divided<T: Real, R>(
        &self,
        linear: Linear,
        grad_y: &ArrayView2<'_, T>,
        f: impl FnOnce(&[T]) -> R,
    ) -> Result<R> {
        let (cells, width) = (grad_y.len(), grad_y.dim().1);
        let grad_y = dense(grad_y)?;
        if linear == Linear::Sum {
            return Ok(f(&grad_y));
        }
        let quotients: Array1<T> = Buffer::new(cells)?.fill(&[cells], |cells| {
            self.each_segment_tile(width, Output::fresh(cells), |segments, tile| {
                let divisors: Vec<u32> =
                    self.members(segments.clone()).offsets.windows(2).map(|ends| ends[1] - ends[0]).collect();
                let source = &grad_y[segments.start * width..segments.end * width];
                T::divide_rows(self.plan.level, source, &divisors, width, tile);
            })
        });
        Ok(f(quotients.as_slice().expect("made in one piece")))
    }

    /// The owner of a segment writes the rows of its members, wherever they lie.
    fn pull_products<T: Real>(&self, grad_y: &[T], x: &[T], width: usize, grad_x: Output<'_, T>) -> Filled {
        if self.plan.per_batch * width == 0 {
            return Filled::NOTHING;
        }
        let Members { offsets, order } = self.members(0..self.len());
        grad_x.write(|tile| {
            let mut rows: Vec<_> = tile.accumulators().chunks_exact_mut(width).map(Some).collect();
            let members = order[..offsets[self.len()] as usize].iter();
            let mut members: Vec<&mut [T]> =
                members.map(|&row| rows[row as usize].take().expect("a row is in one segment")).collect();
            let mut left = &mut members[..];
            let mut segments = Vec::new();
            for (segment, ends) in offsets.windows(2).enumerate().filter(|(_, ends)| ends[0] < ends[1]) {
                let (rows, behind) = left.split_at_mut((ends[1] - ends[0]) as usize);
                segments.push((segment, &order[ends[0] as usize..ends[1] as usize], rows));
                left = behind;
            }
            let pull = |(segment, order, rows): (usize, &[u32], &mut [&mut [T]])| {
                let mut product = vec![T::zero(); width];
                let grad = &grad_y[segment * width..][..width];
                T::pull_products(self.plan.level, x, order, grad, rows, &mut product);
            };
            if self.plan.parallel::<T>(width) {
                segments.into_par_iter().for_each(pull);
            } else {
                segments.into_iter().for_each(pull);
            }
        })
    }
}
