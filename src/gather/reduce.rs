//! Rows summed at the rows that a plan's indices name: the adjoint of a gather, of sums of gathered rows, and of
//! weighted sums. Two ways, with the same bits.
//!
//! - *slab*: the owner of a batch streams its source rows in memory order into running sums that stay in cache. No plan,
//!   and no row is read out of order: the fastest way where there are batches for every thread and their sums fit.
//! - *inverse*: the owner of a destination row adds its sources in registers and writes once. It needs the
//!   [`Inverse`](super::inverse::Inverse) of the indices.
//!
//! Measured on (16, 4096, 64) rows by 32,768 indices a batch, two threads, plan included: slab 5 ms, inverse 12 ms (8
//! with the plan at hand). A slab cut into two blocks of rows took 10 ms, because half of what the hardware reads ahead
//! belongs to the other block; so a slab is never cut.

use super::kernels::{Pair, Traffic};
use super::plan::{ABSENT, Plan, Reduction};
use super::terms::{Owner, Sources, Terms, count};
use crate::Real;
use crate::buffer::{Filled, Output, STREAM_BYTES, Tile};
use crate::layout::Rows;
use crate::parallel::{Cut, PARALLEL_BYTES, for_each_tile};
use std::ops::Range;

/// Sums of a batch beyond this size are not kept in cache: a few of them share a last-level cache.
pub(super) const SLAB_BYTES: usize = 8 << 20;

/// Bytes of sums that one task of the inverse reduction writes.
pub(super) const TILE_BYTES: usize = 256 << 10;

/// Bytes of sources that one task of the inverse reduction reads, as long as it has more than one row of sums.
const READ_BYTES: usize = 4 << 20;

/// Sources handed to a kernel at a time.
pub(super) const PAIRS: usize = 256;

/// From this many sources on, a destination row is split by channels.
const HUB: usize = 1 << 14;

/// Vectors of channels that one task takes of such a row.
pub(super) const HUB_VECTORS: usize = 2;

/// Rows to be summed at the rows that a plan's indices name.
pub(super) struct Spread<'a, T> {
    pub(super) plan: &'a Plan,
    /// (B, `groups`, `width`).
    pub(super) source: Rows<'a, T>,
    pub(super) groups: usize,
    pub(super) width: usize,
    /// The group whose source row a position adds.
    pub(super) owner: Owner<'a>,
    /// (B, M), what a position multiplies its source row by.
    pub(super) weights: Option<&'a [T]>,
    /// Whether sums are divided by the number of their terms.
    pub(super) mean: bool,
    /// Whether to multiply, from 1. The source is dense then.
    pub(super) product: bool,
}

impl<'a, T: Real> Spread<'a, T> {
    /// The rows of `source` (B, M, `width`), one a position.
    pub(super) fn of_positions(plan: &'a Plan, source: Rows<'a, T>, width: usize) -> Self {
        let (groups, owner) = (plan.per_batch, Owner::Each);
        Self { plan, source, groups, width, owner, weights: None, mean: false, product: false }
    }

    /// Sums into `out` (B, N, `width`).
    pub(super) fn reduce(&self, out: Output<'_, T>) -> Filled {
        let plan = self.plan;
        if plan.batches * plan.rows == 0 || self.width == 0 {
            return Filled::NOTHING;
        }
        let inverse = self.product || reduction::<T>(plan, self.width, SLAB_BYTES) == Reduction::Inverse;
        match &self.source {
            Rows::Dense(source) if inverse => self.by_inverse(source, out),
            _ => self.by_slab(out),
        }
    }

    fn by_slab(&self, out: Output<'_, T>) -> Filled {
        let (plan, width) = (self.plan, self.width);
        let parallel = plan.parallel::<T>(width);
        let cut = Cut { group: plan.rows, tile: plan.rows, width, parallel };
        for_each_tile(out, plan.batches * plan.rows, &cut, &|batch, _, tile| {
            let sums = tile.accumulators();
            let weights = self.weights.map(|weights| &weights[batch * plan.per_batch..][..plan.per_batch]);
            let mut of_pairs = [T::zero(); PAIRS];
            each_pairs(plan.batch(batch), self.owner, 0..plan.per_batch, |pairs, positions| {
                let of_pairs = weights.map(|weights| pick(weights, positions, &mut of_pairs));
                self.add_pairs(batch, pairs, of_pairs, sums);
            });
            if self.mean {
                let mut counts = vec![0; plan.rows];
                plan.batch(batch).iter().filter(|&&row| row != ABSENT).for_each(|&row| counts[row as usize] += 1);
                for (sums, &n) in sums.chunks_exact_mut(width).zip(&counts).filter(|(_, n)| **n > 0) {
                    sums.iter_mut().for_each(|sum| *sum = *sum / count(n));
                }
            }
        })
    }

    /// `sums[to] += weight * source[from]` for every pair in turn.
    fn add_pairs(&self, batch: usize, pairs: &mut [Pair], weights: Option<&[T]>, sums: &mut [T]) {
        let (level, width, first) = (self.plan.level, self.width, batch * self.groups);
        match &self.source {
            Rows::Dense(source) => {
                T::add_rows(level, &source[first * width..][..self.groups * width], pairs, weights, width, sums);
            }
            strided => {
                let mut dense = vec![T::zero(); pairs.len() * width];
                for ((k, pair), row) in (0..).zip(pairs.iter_mut()).zip(dense.chunks_exact_mut(width)) {
                    strided.copy(first + pair.from as usize, row);
                    pair.from = k;
                }
                T::add_rows(level, &dense, pairs, weights, width, sums);
            }
        }
    }

    fn by_inverse(&self, source: &[T], out: Output<'_, T>) -> Filled {
        let (plan, width) = (self.plan, self.width);
        let inverse = plan.inverse();
        let row_bytes = width * size_of::<T>();
        let cut = inverse_cut::<T>(plan, width);
        let traffic = Traffic {
            stream: row_bytes.is_multiple_of(64)
                && plan.tuning.stream.unwrap_or(plan.batches * plan.rows * row_bytes > STREAM_BYTES),
            // What comes in the order of memory needs no asking.
            prefetch: plan.tuning.prefetch.unwrap_or(!inverse.is_in_order()),
        };
        for_each_tile(out, plan.batches * plan.rows, &cut, &|batch, rows, tile| {
            let source = &source[batch * self.groups * width..][..self.groups * width];
            let (offsets, order) = (inverse.offsets(batch), inverse.order(batch));
            let weights = self.weights.map(|weights| &weights[batch * plan.per_batch..][..plan.per_batch]);
            let terms = match (self.owner, weights) {
                (Owner::Each, None) if inverse.is_in_order() && !self.product => Terms::InOrder(order.len()),
                (Owner::Each, None) => Terms::Rows(order),
                (owner, weights) => Terms::Owned(order, owner, weights),
            };
            let sum = |rows: Range<usize>, channels: Range<usize>, tile: &mut Tile<'_, T>| {
                let offsets = &offsets[rows.start..=rows.end];
                let rows = Sources { width, offsets, terms, product: self.product, mean: self.mean };
                T::fold_rows(plan.level, source, rows, channels, traffic, tile);
            };
            let part = T::LANES * HUB_VECTORS;
            each_hub(plan, offsets, rows, |rows, hub| match hub {
                None => sum(rows, 0..width, tile),
                Some(hub) => tile.push_parts(width, part, |channel, tile| {
                    sum(hub..hub + 1, channel..(channel + part).min(width), tile);
                }),
            });
        })
    }
}

/// Hands out the rows `rows` of `offsets` in turn: those between hubs, then a hub.
pub(super) fn each_hub(
    plan: &Plan,
    offsets: &[u32],
    rows: Range<usize>,
    mut take: impl FnMut(Range<usize>, Option<usize>),
) {
    let least = plan.tuning.hub.unwrap_or(HUB);
    let is_hub = |&row: &usize| (offsets[row + 1] - offsets[row]) as usize >= least;
    let mut next = rows.start;
    while let Some(hub) = (next..rows.end).find(is_hub) {
        take(next..hub, None);
        take(hub..hub + 1, Some(hub));
        next = hub + 1;
    }
    take(next..rows.end, None);
}

/// How rows of `width` are reduced, where running sums of `most` bytes a batch stay in cache.
pub(super) fn reduction<T>(plan: &Plan, width: usize, most: usize) -> Reduction {
    let row_bytes = width * size_of::<T>();
    let shared = plan.tuning.parallel.unwrap_or(plan.bytes::<T>(width) >= PARALLEL_BYTES);
    let busy = !shared || plan.batches >= rayon::current_num_threads();
    let slab = busy && plan.rows * row_bytes <= most;
    plan.tuning.reduction.unwrap_or(if slab { Reduction::Slab } else { Reduction::Inverse })
}

/// How a reduction by the inverse is cut, for rows of `width`.
pub(super) fn inverse_cut<T>(plan: &Plan, width: usize) -> Cut {
    let row_bytes = (width * size_of::<T>()).max(1);
    let read = (plan.per_batch / plan.rows.max(1)).max(1) * row_bytes;
    let tile = plan.tuning.tile.unwrap_or(TILE_BYTES.div_ceil(row_bytes).min(READ_BYTES.div_ceil(read)));
    Cut { group: plan.rows, tile, width, parallel: plan.parallel::<T>(width) }
}

/// Hands out the `positions` of a batch that are not padding, in order, a few at a time: from each position's group to
/// the row it names.
pub(super) fn each_pairs(
    indices: &[u32],
    owner: Owner<'_>,
    positions: Range<usize>,
    mut take: impl FnMut(&mut [Pair], &[u32]),
) {
    let mut pairs = [Pair::default(); PAIRS];
    let mut named = [0; PAIRS];
    let mut n = 0;
    for position in positions {
        let to = indices[position];
        if to == ABSENT {
            continue;
        }
        let position = position as u32;
        pairs[n] = Pair { from: owner.of(position), to };
        named[n] = position;
        n += 1;
        if n == PAIRS {
            take(&mut pairs, &named);
            n = 0;
        }
    }
    take(&mut pairs[..n], &named[..n]);
}

/// The values at `positions`.
pub(super) fn pick<'a, T: Copy>(values: &[T], positions: &[u32], picked: &'a mut [T; PAIRS]) -> &'a [T] {
    let picked = &mut picked[..positions.len()];
    picked.iter_mut().zip(positions).for_each(|(picked, &position)| *picked = values[position as usize]);
    picked
}
