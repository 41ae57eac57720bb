//! Choosing the largest or smallest element of groups of rows, and sharing gradients between ties: what pooling and
//! segments have in common.

use super::choices::{Candidates, Channels, Chosen, Extremum};
use super::plan::{ABSENT, Plan, unravel};
use super::reduce::{HUB_VECTORS, each_hub};
use crate::Real;
use crate::buffer::{Both, Buffer, Filled, Output, Tile};
use crate::error::{Error, Result};
use crate::layout::{dense, elements};
use crate::parallel::{Cut, for_each_tile, for_each_tile_of_both};
use ndarray::{Array, Array1, ArrayView, Dimension};
use rayon::prelude::*;
use std::borrow::Cow;
use std::ops::Range;

/// Extreme elements, and which of a group they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Extremes<T, X: Dimension> {
    /// The elements, with their bits.
    pub values: Array<T, X>,
    /// The number of each element: its place s in 0..S in the group (pooling), or its row (segments). `u32::MAX` where a
    /// group has no element.
    pub arguments: Array<u32, X>,
}

/// Who gets the gradient of an extreme element.
pub enum Ties<'a, T, X: Dimension> {
    /// The element that was chosen, the first of equal ones, by the arguments that the forward pass returned.
    First(ArrayView<'a, u32, X>),
    /// All elements equal to the extreme one, the gradient divided by their number: a valid choice too, symmetric in them.
    /// It needs the features again. A NaN is equal to nothing, so a NaN that was chosen gets all.
    Even(Extremum, ArrayView<'a, T, X>),
}

/// How groups of rows choose. `candidates` gives those of a batch.
pub(super) struct Chooser<'a, F> {
    pub(super) plan: &'a Plan,
    /// The groups, their channels and how they are cut.
    pub(super) cut: Cut,
    /// Rows of `x` a batch.
    pub(super) rows: usize,
    pub(super) candidates: F,
    /// What groups with no element get.
    pub(super) empty: f64,
    /// Whether to ask for rows ahead of their use.
    pub(super) ahead: bool,
}

/// What every element of every group sends back.
pub(super) struct Shares<T> {
    shares: Array1<T>,
    values: Array1<T>,
    arguments: Array1<u32>,
}

impl<T: Real> Shares<T> {
    /// The shares of the groups of a batch, of `cells` elements; `x` is numbered as the sums that take them.
    pub(super) fn of_batch<'a>(&'a self, batch: usize, cells: usize, x: &'a [T]) -> Chosen<'a, T> {
        let part = batch * cells..(batch + 1) * cells;
        let whole = |array: &'a Array1<T>| &array.as_slice().expect("made in one piece")[part.clone()];
        Chosen {
            shares: whole(&self.shares),
            arguments: &self.arguments.as_slice().expect("made in one piece")[part.clone()],
            tied: Some([x, whole(&self.values)]),
        }
    }
}

impl<'a, F: Fn(usize) -> Candidates<'a> + Sync> Chooser<'a, F> {
    fn groups(&self) -> usize {
        self.plan.batches * self.cut.group
    }

    /// Chooses from `x` (B, rows, C).
    pub(super) fn choose<T: Real>(
        &self,
        which: Extremum,
        x: &[T],
        values: Output<'_, T>,
        arguments: Output<'_, u32>,
    ) -> Filled {
        let width = self.cut.width;
        if self.groups() == 0 || width == 0 {
            return Filled::NOTHING;
        }
        let empty = T::from_f64(self.empty).expect("every f64 rounds to an element");
        let both = Both { first: values, second: arguments, width };
        for_each_tile_of_both(both, self.groups(), &self.cut, &|batch, groups, values, arguments| {
            let x = &x[batch * self.rows * width..][..self.rows * width];
            let all = (self.candidates)(batch);
            let choose =
                |groups: Range<usize>, channels: Channels, values: &mut Tile<'_, T>, arguments: &mut Tile<'_, u32>| {
                    let rows = Candidates { offsets: &all.offsets[groups.start..=groups.end], ..all };
                    T::choose_rows(self.plan.level, which, x, rows, channels, empty, self.ahead, values, arguments);
                };
            let part = T::LANES * HUB_VECTORS;
            each_hub(self.plan, all.offsets, groups, |groups, hub| match hub {
                None => choose(groups, Channels { width, start: 0, end: width }, values, arguments),
                Some(hub) => values.push_parts_of_both(arguments, width, part, |channel, values, arguments| {
                    let channels = Channels { width, start: channel, end: (channel + part).min(width) };
                    choose(hub..hub + 1, channels, values, arguments);
                }),
            });
        })
    }

    /// Chooses again, and divides `grad_y` between equal elements.
    pub(super) fn shares<T: Real>(&self, which: Extremum, x: &[T], grad_y: &[T]) -> Result<Shares<T>> {
        let (cells, width) = (grad_y.len(), self.cut.width);
        let (values, arguments) =
            Buffer::new(cells)?.fill_both(Buffer::new(cells)?, [&[cells]; 2], |values, arguments| {
                self.choose(which, x, Output::fresh(values), Output::fresh(arguments))
            });
        let mut shares = Shares { shares: Array1::zeros(0), values, arguments };
        if cells == 0 {
            return Ok(shares);
        }
        let divided = Buffer::new(cells)?.fill(&[cells], |cells| {
            for_each_tile(Output::fresh(cells), self.groups(), &self.cut, &|batch, groups, tile| {
                let x = &x[batch * self.rows * width..][..self.rows * width];
                let grad = &grad_y[batch * self.cut.group * width..][..self.cut.group * width];
                let batch_cells = self.cut.group * width;
                let chosen = Chosen {
                    shares: &[],
                    arguments: &shares.arguments.as_slice().expect("made in one piece")[batch * batch_cells..],
                    tied: Some([x, &shares.values.as_slice().expect("made in one piece")[batch * batch_cells..]]),
                };
                let mut counts = vec![0; width];
                T::share_rows(self.plan.level, grad, chosen, (self.candidates)(batch), groups, &mut counts, tile);
            })
        });
        shares.shares = divided;
        Ok(shares)
    }
}

/// Two buffers for extreme elements of `shape` and their arguments.
pub(super) fn buffers<T: Real>(shape: &[usize]) -> Result<(Buffer<T>, Buffer<u32>)> {
    Ok((Buffer::new(elements::<T>(shape)?)?, Buffer::new(elements::<u32>(shape)?)?))
}

/// Arguments in row-major order, none of which is outside 0..`bound`, but for `u32::MAX`. `bound` has the number of
/// candidates of a row of `width` results.
pub(super) fn check_arguments<'a, X: Dimension>(
    arguments: &'a ArrayView<'_, u32, X>,
    width: usize,
    bound: impl Fn(usize) -> usize + Sync,
) -> Result<Cow<'a, [u32]>> {
    let dense = dense(arguments)?;
    let first_bad = |(row, arguments): (usize, &[u32])| {
        let bound = bound(row);
        let is_bad = |&argument: &u32| argument != ABSENT && argument as usize >= bound;
        arguments.iter().position(is_bad).map(|channel| row * width + channel)
    };
    match dense.par_chunks(width.max(1)).enumerate().with_min_len(CHECKED_ROWS).filter_map(first_bad).min() {
        None => Ok(dense),
        Some(position) => Err(Error::IndexOutOfRange {
            argument: "arguments",
            position: unravel(position, arguments.shape()),
            value: dense[position].into(),
            bound: bound(position / width),
        }),
    }
}

/// Rows of arguments that one task checks at least.
const CHECKED_ROWS: usize = 256;
