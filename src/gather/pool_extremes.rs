//! Maxima and minima of gathered rows that are never built, and their adjoint.

use super::choices::{Candidates, Chosen, Extremum, Number, Pick};
use super::choose::{Chooser, Extremes, Shares, Ties, buffers, check_arguments};
use super::plan::Reduction;
use super::pool::Pooled;
use super::reduce::{PAIRS, SLAB_BYTES, each_pairs, inverse_cut, reduction};
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use crate::parallel::{Cut, for_each_tile};
use ndarray::{Array, ArrayView, ArrayViewMut, Dimension};
use std::borrow::Cow;

/// What every element of the results sends back.
enum Sent<'a, T: Real> {
    First { grad_y: Cow<'a, [T]>, arguments: Cow<'a, [u32]> },
    Even { shares: Shares<T>, x: Cow<'a, [T]> },
}

impl<D: Dimension, X: Dimension> Pooled<D, X> {
    /// The largest or smallest elements of `x` (B, N, C) over the indices of each group, and which they are: two new arrays
    /// (B, P, C). O(indices x C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn extremes<T: Real>(&self, which: Extremum, x: ArrayView<'_, T, X>) -> Result<Extremes<T, X>> {
        let width = self.grouped.feature_channels("x", x.shape())?;
        let shape = self.grouped.result_shape(width);
        let (values, arguments) = buffers(&shape)?;
        let x = dense(&x)?;
        let (values, arguments) = values.fill_both(arguments, [&shape, &shape], |values, arguments| {
            self.chooser::<T>(width).choose(which, &x, Output::fresh(values), Output::fresh(arguments))
        });
        Ok(Extremes { values, arguments })
    }

    /// [`Pooled::extremes`] into the caller's arrays, which are overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn extremes_into<T: Real>(
        &self,
        which: Extremum,
        x: ArrayView<'_, T, X>,
        values: ArrayViewMut<'_, T, X>,
        arguments: ArrayViewMut<'_, u32, X>,
    ) -> Result<()> {
        let width = self.grouped.feature_channels("x", x.shape())?;
        let shape = self.grouped.result_shape(width);
        check_shape("values", values.shape(), &shape)?;
        check_shape("arguments", arguments.shape(), &shape)?;
        let x = dense(&x)?;
        let (values, arguments) = (Output::array(values, Start::Zero), Output::array(arguments, Start::Zero));
        let _ = self.chooser::<T>(width).choose(which, &x, values, arguments);
        Ok(())
    }

    /// The adjoint of [`Pooled::extremes`]: the gradient `grad_y` (B, P, C) of the values, sent to the elements that `ties`
    /// names, in a new array (B, N, C). O(indices x C).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge),
    /// [`Error::Allocation`](crate::Error::Allocation), and [`Error::IndexOutOfRange`](crate::Error::IndexOutOfRange) for
    /// the first argument that is no place in its group.
    pub fn extremes_adjoint<T: Real>(&self, grad_y: ArrayView<'_, T, X>, ties: Ties<'_, T, X>) -> Result<Array<T, X>> {
        let width = self.grouped.result_channels("grad_y", grad_y.shape())?;
        let shape = self.grouped.feature_shape(width);
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let sent = self.sent(&grad_y, &ties, width)?;
        Ok(buffer.fill(&shape, |cells| self.send(&sent, width, Output::fresh(cells))))
    }

    /// [`Pooled::extremes_adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Pooled::extremes_adjoint`]; nothing is written then.
    pub fn extremes_adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        ties: Ties<'_, T, X>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.extremes_adjoint_from(&grad_y, &ties, grad_x, Start::Zero)
    }

    /// [`Pooled::extremes_adjoint`] added to the caller's array: every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// As [`Pooled::extremes_adjoint`]; nothing is written then.
    pub fn extremes_adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView<'_, T, X>,
        ties: Ties<'_, T, X>,
        grad_x: ArrayViewMut<'_, T, X>,
    ) -> Result<()> {
        self.extremes_adjoint_from(&grad_y, &ties, grad_x, Start::Values)
    }

    fn extremes_adjoint_from<T: Real>(
        &self,
        grad_y: &ArrayView<'_, T, X>,
        ties: &Ties<'_, T, X>,
        grad_x: ArrayViewMut<'_, T, X>,
        start: Start,
    ) -> Result<()> {
        let width = self.grouped.result_channels("grad_y", grad_y.shape())?;
        check_shape("grad_x", grad_x.shape(), &self.grouped.feature_shape(width))?;
        let sent = self.sent(grad_y, ties, width)?;
        let _ = self.send(&sent, width, Output::array(grad_x, start));
        Ok(())
    }

    fn candidates(&self, batch: usize) -> Candidates<'_> {
        let order = self.grouped.plan.batch(batch);
        Candidates { offsets: &self.grouped.groups.offsets, order, number: Number::Place }
    }

    fn chooser<'a, T: Real>(&'a self, width: usize) -> Chooser<'a, impl Fn(usize) -> Candidates<'a> + Sync> {
        Chooser {
            plan: &self.grouped.plan,
            cut: self.grouped.cut::<T>(width),
            rows: self.grouped.plan.rows,
            candidates: |batch| self.candidates(batch),
            empty: self.empty,
            ahead: self.grouped.ahead::<T>(width),
        }
    }

    /// Checks `ties`, and shares the gradient out.
    fn sent<'a, T: Real>(
        &self,
        grad_y: &'a ArrayView<'_, T, X>,
        ties: &'a Ties<'_, T, X>,
        width: usize,
    ) -> Result<Sent<'a, T>> {
        let grad_y = dense(grad_y)?;
        match ties {
            Ties::First(arguments) => {
                check_shape("arguments", arguments.shape(), &self.grouped.result_shape(width))?;
                let offsets = &self.grouped.groups.offsets;
                let size = |row: usize| {
                    let group = row % self.grouped.groups.count();
                    (offsets[group + 1] - offsets[group]) as usize
                };
                Ok(Sent::First { grad_y, arguments: check_arguments(arguments, width, size)? })
            }
            Ties::Even(which, x) => {
                check_shape("x", x.shape(), &self.grouped.feature_shape(width))?;
                let x = dense(x)?;
                Ok(Sent::Even { shares: self.chooser::<T>(width).shares(*which, &x, &grad_y)?, x })
            }
        }
    }

    fn send<T: Real>(&self, sent: &Sent<'_, T>, width: usize, grad_x: Output<'_, T>) -> Filled {
        let (plan, groups) = (&self.grouped.plan, &self.grouped.groups);
        if plan.batches * plan.rows == 0 || width == 0 {
            return Filled::NOTHING;
        }
        let (batch_y, batch_x) = (groups.count() * width, plan.rows * width);
        // The features of a batch are numbered as the sums of a tile, which start at `first`.
        let of_batch = |batch: usize, first: usize| match sent {
            Sent::First { grad_y, arguments } => Chosen {
                shares: &grad_y[batch * batch_y..][..batch_y],
                arguments: &arguments[batch * batch_y..][..batch_y],
                tied: None,
            },
            Sent::Even { shares, x } => shares.of_batch(batch, batch_y, &x[batch * batch_x + first * width..]),
        };
        let pick = |position: u32, to: u32| {
            let group = groups.owner().of(position);
            Pick { group, to, number: position - groups.offsets[group as usize] }
        };
        let slab = reduction::<T>(plan, width, SLAB_BYTES) == Reduction::Slab;
        let cut = if slab {
            let parallel = plan.parallel::<T>(width);
            Cut { group: plan.rows, tile: plan.rows, width, parallel }
        } else {
            inverse_cut::<T>(plan, width)
        };
        for_each_tile(grad_x, plan.batches * plan.rows, &cut, &|batch, rows, tile| {
            let chosen = of_batch(batch, rows.start);
            let sums = tile.accumulators();
            if slab && chosen.tied.is_none() {
                // One element a result: fewer than one row an index.
                return T::scatter_chosen(chosen, self.candidates(batch), width, sums);
            }
            let mut picks = [Pick::default(); PAIRS];
            if slab {
                return each_pairs(plan.batch(batch), groups.owner(), 0..plan.per_batch, |pairs, positions| {
                    let picks = &mut picks[..pairs.len()];
                    for ((chosen, pair), &position) in picks.iter_mut().zip(pairs).zip(positions) {
                        *chosen = pick(position, pair.to);
                    }
                    T::add_chosen(plan.level, picks, chosen, width, sums);
                });
            }
            let inverse = plan.inverse();
            let (offsets, order) = (&inverse.offsets(batch)[rows.start..=rows.end], inverse.order(batch));
            let mut n = 0;
            for (to, ends) in (0..).zip(offsets.windows(2)) {
                for &position in &order[ends[0] as usize..ends[1] as usize] {
                    picks[n] = pick(position, to);
                    n += 1;
                    if n == PAIRS {
                        T::add_chosen(plan.level, &picks, chosen, width, sums);
                        n = 0;
                    }
                }
            }
            T::add_chosen(plan.level, &picks[..n], chosen, width, sums);
        })
    }
}
