//! Rows summed at the rows that a plan's indices name: the adjoint of a gather. Two ways, with the same bits.
//!
//! - *slab*: the owner of a batch streams its source rows in memory order into running sums that stay in cache. No plan,
//!   and no row is read out of order: the fastest way where there are batches for every thread and their sums fit.
//! - *inverse*: the owner of a destination row adds its sources in registers and writes once. It needs the
//!   [`Inverse`](super::inverse::Inverse) of the indices.
//!
//! Measured on (16, 4096, 64) rows by 32,768 indices a batch, two threads, plan included: slab 5 ms, inverse 12 ms (8
//! with the plan at hand). A slab cut into two blocks of rows took 10 ms, because half of what the hardware reads ahead
//! belongs to the other block; so a slab is never cut.

use super::kernels::{Pair, Sources, Traffic};
use super::plan::{ABSENT, Plan, Reduction};
use crate::Real;
use crate::buffer::{Filled, Output, STREAM_BYTES, Tile};
use crate::layout::Rows;
use crate::parallel::{Cut, for_each_tile};
use std::ops::Range;

/// Sums of a batch beyond this size are not kept in cache: a few of them share a last-level cache.
const SLAB_BYTES: usize = 8 << 20;

/// Bytes of sums that one task of the inverse reduction writes.
const TILE_BYTES: usize = 256 << 10;

/// Sources handed to a kernel at a time.
const PAIRS: usize = 256;

/// From this many sources on, a destination row is split by channels.
const HUB: usize = 1 << 14;

/// Sums the rows of `source` (B, M, `width`) into `out` (B, N, `width`).
pub(super) fn reduce<T: Real>(plan: &Plan, source: &Rows<'_, T>, width: usize, out: Output<'_, T>) -> Filled {
    if plan.batches * plan.rows == 0 || width == 0 {
        return Filled::NOTHING;
    }
    let choice = if prefers_slab::<T>(plan, width) { Reduction::Slab } else { Reduction::Inverse };
    match (plan.tuning.reduction.unwrap_or(choice), source) {
        (Reduction::Inverse, Rows::Dense(source)) => by_inverse(plan, source, width, out),
        _ => by_slab(plan, source, width, out),
    }
}

fn prefers_slab<T>(plan: &Plan, width: usize) -> bool {
    let row_bytes = width * size_of::<T>();
    let busy = plan.batches >= rayon::current_num_threads() || !plan.parallel::<T>(width);
    busy && plan.rows * row_bytes <= SLAB_BYTES
}

fn by_slab<T: Real>(plan: &Plan, source: &Rows<'_, T>, width: usize, out: Output<'_, T>) -> Filled {
    let cut = Cut { group: plan.rows, tile: plan.rows, width, parallel: plan.parallel::<T>(width) };
    for_each_tile(out, plan.batches * plan.rows, &cut, &|batch, _, tile| {
        let sums = tile.accumulators();
        let mut pairs = [Pair::default(); PAIRS];
        let mut n = 0;
        for (from, &to) in (0..).zip(plan.batch(batch)) {
            if to == ABSENT {
                continue;
            }
            pairs[n] = Pair { from, to };
            n += 1;
            if n == PAIRS {
                add_pairs(plan, batch, source, width, &mut pairs, sums);
                n = 0;
            }
        }
        add_pairs(plan, batch, source, width, &mut pairs[..n], sums);
    })
}

/// `sums[to] += source[from]` for every pair in turn.
fn add_pairs<T: Real>(
    plan: &Plan,
    batch: usize,
    source: &Rows<'_, T>,
    width: usize,
    pairs: &mut [Pair],
    sums: &mut [T],
) {
    let first = batch * plan.per_batch;
    match source {
        Rows::Dense(source) => {
            let source = &source[first * width..][..plan.per_batch * width];
            T::add_rows(plan.level, source, pairs, width, sums);
        }
        strided => {
            let mut dense = vec![T::zero(); pairs.len() * width];
            for ((k, pair), row) in (0..).zip(pairs.iter_mut()).zip(dense.chunks_exact_mut(width)) {
                strided.copy(first + pair.from as usize, row);
                pair.from = k;
            }
            T::add_rows(plan.level, &dense, pairs, width, sums);
        }
    }
}

fn by_inverse<T: Real>(plan: &Plan, source: &[T], width: usize, out: Output<'_, T>) -> Filled {
    let inverse = plan.inverse();
    let row_bytes = width * size_of::<T>();
    let out_bytes = plan.batches * plan.rows * row_bytes;
    let traffic = Traffic {
        stream: row_bytes.is_multiple_of(64) && plan.tuning.stream.unwrap_or(out_bytes > STREAM_BYTES),
        prefetch: plan.tuning.prefetch.unwrap_or(true),
    };
    let hub = plan.tuning.hub.unwrap_or(HUB);
    let tile = plan.tuning.tile.unwrap_or(TILE_BYTES.div_ceil(row_bytes));
    let cut = Cut { group: plan.rows, tile, width, parallel: plan.parallel::<T>(width) };
    for_each_tile(out, plan.batches * plan.rows, &cut, &|batch, rows, tile| {
        let source = &source[batch * plan.per_batch * width..][..plan.per_batch * width];
        let (offsets, order) = (inverse.offsets(batch), inverse.order(batch));
        let sum = |rows: Range<usize>, channels: Range<usize>, tile: &mut Tile<'_, T>| {
            let rows = Sources { width, offsets: &offsets[rows.start..=rows.end], order };
            T::sum_rows(plan.level, source, rows, channels, traffic, tile);
        };
        let is_hub = |&row: &usize| (offsets[row + 1] - offsets[row]) as usize >= hub;
        let mut next = rows.start;
        while let Some(row) = (next..rows.end).find(is_hub) {
            sum(next..row, 0..width, tile);
            let part = T::LANES * 2;
            tile.push_parts(width, part, |channel, tile| {
                sum(row..row + 1, channel..(channel + part).min(width), tile);
            });
            next = row + 1;
        }
        sum(next..rows.end, 0..width, tile);
    })
}
