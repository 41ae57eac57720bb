//! Maxima and minima of rows by segment, and their adjoint.

use super::choices::{Candidates, Chosen, Extremum, Number, Pick};
use super::choose::{Chooser, Extremes, Shares, Ties, buffers, check_arguments};
use super::plan::ABSENT;
use super::reduce::{PAIRS, inverse_cut};
use super::segment::Segments;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Ix2};
use std::borrow::Cow;

/// What every element of the results sends back.
enum Sent<'a, T: Real> {
    First { grad_y: Cow<'a, [T]>, arguments: Cow<'a, [u32]> },
    Even { shares: Shares<T>, x: Cow<'a, [T]> },
}

impl Segments {
    /// The largest or smallest elements of the rows of `x` (M, C) in each segment, and the rows that they are from: two new
    /// arrays (S, C). The first NaN wins, then the first of equal elements, where -0.0 equals +0.0; the result has the bits of
    /// that element. O((M + S) x C).
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    pub fn extremes<T: Real>(&self, which: Extremum, x: ArrayView2<'_, T>) -> Result<Extremes<T, Ix2>> {
        let shape = [self.len(), self.channels_of_rows("x", x.shape())?];
        let (values, arguments) = buffers(&shape)?;
        let x = dense(&x)?;
        let (values, arguments) = values.fill_both(arguments, [&shape, &shape], |values, arguments| {
            self.chooser::<T>(shape[1]).choose(which, &x, Output::fresh(values), Output::fresh(arguments))
        });
        Ok(Extremes { values, arguments })
    }

    /// [`Segments::extremes`] into the caller's arrays, which are overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn extremes_into<T: Real>(
        &self,
        which: Extremum,
        x: ArrayView2<'_, T>,
        values: ArrayViewMut2<'_, T>,
        arguments: ArrayViewMut2<'_, u32>,
    ) -> Result<()> {
        let shape = [self.len(), self.channels_of_rows("x", x.shape())?];
        check_shape("values", values.shape(), &shape)?;
        check_shape("arguments", arguments.shape(), &shape)?;
        let x = dense(&x)?;
        let (values, arguments) = (Output::array(values, Start::Zero), Output::array(arguments, Start::Zero));
        let _ = self.chooser::<T>(shape[1]).choose(which, &x, values, arguments);
        Ok(())
    }

    /// The adjoint of [`Segments::extremes`]: the gradient `grad_y` (S, C) of the values, sent to the elements that `ties`
    /// names, in a new array (M, C). O((M + S) x C).
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`], and [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for the first argument that is
    /// no row. A row of another segment gets nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{Extremum, Segments, Ties};
    /// use pullback::ndarray::array;
    ///
    /// let segments = Segments::from_lengths(array![2].view(), 2)?;
    /// let x = array![[2.0], [2.0]];
    /// let max = segments.extremes(Extremum::Max, x.view())?;
    /// let grad_y = array![[1.0]];
    /// let first = segments.extremes_adjoint(grad_y.view(), Ties::First(max.arguments.view()))?;
    /// assert_eq!(first, array![[1.0], [0.0]]);
    /// let even = segments.extremes_adjoint(grad_y.view(), Ties::Even(Extremum::Max, x.view()))?;
    /// assert_eq!(even, array![[0.5], [0.5]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn extremes_adjoint<T: Real>(&self, grad_y: ArrayView2<'_, T>, ties: Ties<'_, T, Ix2>) -> Result<Array2<T>> {
        let shape = [self.plan.per_batch, self.channels_of_results("grad_y", grad_y.shape())?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let sent = self.sent(&grad_y, &ties)?;
        Ok(buffer.fill(&shape, |cells| self.send(&sent, shape[1], Output::fresh(cells))))
    }

    /// [`Segments::extremes_adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Segments::extremes_adjoint`]; nothing is written then.
    pub fn extremes_adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        ties: Ties<'_, T, Ix2>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        self.extremes_adjoint_from(&grad_y, &ties, grad_x, Start::Zero)
    }

    /// [`Segments::extremes_adjoint`] added to the caller's array.
    ///
    /// # Errors
    ///
    /// As [`Segments::extremes_adjoint`]; nothing is written then.
    pub fn extremes_adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        ties: Ties<'_, T, Ix2>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        self.extremes_adjoint_from(&grad_y, &ties, grad_x, Start::Values)
    }

    fn extremes_adjoint_from<T: Real>(
        &self,
        grad_y: &ArrayView2<'_, T>,
        ties: &Ties<'_, T, Ix2>,
        grad_x: ArrayViewMut2<'_, T>,
        start: Start,
    ) -> Result<()> {
        let width = self.channels_of_results("grad_y", grad_y.shape())?;
        check_shape("grad_x", grad_x.shape(), &[self.plan.per_batch, width])?;
        let sent = self.sent(grad_y, ties)?;
        let _ = self.send(&sent, width, Output::array(grad_x, start));
        Ok(())
    }

    pub(super) fn chooser<'a, T: Real>(&'a self, width: usize) -> Chooser<'a, impl Fn(usize) -> Candidates<'a> + Sync> {
        let inverse = self.plan.inverse();
        let candidates = Candidates { offsets: inverse.offsets(0), order: inverse.order(0), number: Number::Row };
        Chooser {
            plan: &self.plan,
            cut: inverse_cut::<T>(&self.plan, width),
            rows: self.plan.per_batch,
            candidates: move |_| candidates,
            empty: self.empty,
            ahead: self.plan.tuning.prefetch.unwrap_or(true),
        }
    }

    fn sent<'a, T: Real>(&self, grad_y: &'a ArrayView2<'_, T>, ties: &'a Ties<'_, T, Ix2>) -> Result<Sent<'a, T>> {
        let rows = self.plan.per_batch;
        match ties {
            Ties::First(arguments) => {
                check_shape("arguments", arguments.shape(), grad_y.shape())?;
                Ok(Sent::First {
                    grad_y: dense(grad_y)?,
                    arguments: check_arguments(arguments, arguments.ncols(), |_| rows)?,
                })
            }
            Ties::Even(which, x) => {
                check_shape("x", x.shape(), &[rows, grad_y.dim().1])?;
                let width = grad_y.dim().1;
                let (x, grad_y) = (dense(x)?, dense(grad_y)?);
                let shares = self.chooser::<T>(width).shares(*which, &x, &grad_y)?;
                Ok(Sent::Even { shares, x })
            }
        }
    }

    fn send<T: Real>(&self, sent: &Sent<'_, T>, width: usize, grad_x: Output<'_, T>) -> Filled {
        let ids = self.plan.batch(0);
        self.each_row_tile(width, grad_x, |rows, tile| {
            let ids = &ids[..rows.end];
            let chosen = match sent {
                Sent::First { grad_y, arguments } => Chosen { shares: grad_y, arguments, tied: None },
                Sent::Even { shares, x } => shares.of_batch(0, self.len() * width, &x[rows.start * width..]),
            };
            let sums = tile.accumulators();
            let first = rows.start as u32;
            let mut picks = Vec::with_capacity(PAIRS);
            for (numbers, groups) in rows.step_by(PAIRS).zip(ids[first as usize..].chunks(PAIRS)) {
                let named = (numbers as u32..).zip(groups).filter(|(_, group)| **group != ABSENT);
                picks.clear();
                picks.extend(named.map(|(number, &group)| Pick { group, to: number - first, number }));
                T::add_chosen(self.plan.level, &picks, chosen, width, sums);
            }
        })
    }
}
