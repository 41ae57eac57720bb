//! Rows summed at the rows that a plan's indices name: the adjoint of a gather. Two ways, with the same bits.
//!
//! - *slab*: the owner of a block of destination rows streams the sources that belong to it, in order, into running sums
//!   that stay in its level-two cache. Where the rows of a batch fit in one block it needs no plan; otherwise sources
//!   are first sorted by block ([`Buckets`](super::inverse::Buckets)).
//! - *inverse*: the owner of a destination row adds its sources in registers and writes once. It needs the full
//!   [`Inverse`](super::inverse::Inverse).

use super::kernels::{Pair, Sources, Traffic};
use super::plan::{ABSENT, Plan, Reduction};
use crate::Real;
use crate::buffer::{Filled, Output, STREAM_BYTES, Tile};
use crate::layout::Rows;
use crate::parallel::{Cut, for_each_tile};
use std::ops::Range;

/// Bytes of running sums of a block: half of a level-two cache.
const BLOCK_BYTES: usize = 512 << 10;

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
    let fits = plan.rows * width * size_of::<T>() <= BLOCK_BYTES;
    let choice = if fits || !plan.has_inverse() { Reduction::Slab } else { Reduction::Inverse };
    match (plan.tuning.reduction.unwrap_or(choice), source) {
        (Reduction::Inverse, Rows::Dense(source)) => by_inverse(plan, source, width, out),
        _ => by_slab(plan, source, width, out),
    }
}

fn by_slab<T: Real>(plan: &Plan, source: &Rows<'_, T>, width: usize, out: Output<'_, T>) -> Filled {
    let row_bytes = width * size_of::<T>();
    let block = plan.tuning.block.unwrap_or((BLOCK_BYTES / row_bytes).max(1));
    let buckets = (plan.rows > block).then(|| plan.buckets(block));
    let block = buckets.map_or(plan.rows, |buckets| buckets.block);
    let cut = Cut { group: plan.rows, tile: block, width, parallel: plan.parallel(plan.indices.len() * row_bytes) };
    for_each_tile(out, plan.batches * plan.rows, &cut, &|batch, rows, tile| {
        let mut sums = Sums { plan, source, width, batch, first: rows.start as u32, sums: tile.accumulators() };
        match buckets {
            None => sums.add(0..plan.per_batch as u32),
            Some(buckets) => sums.add(buckets.runs(batch, rows.start / block).flatten().copied()),
        }
    })
}

/// The running sums of a block.
struct Sums<'a, 's, T> {
    plan: &'a Plan,
    source: &'a Rows<'s, T>,
    width: usize,
    batch: usize,
    /// The block's first row.
    first: u32,
    sums: &'a mut [T],
}

impl<T: Real> Sums<'_, '_, T> {
    /// Adds the sources at `positions` of the batch in turn.
    fn add(&mut self, positions: impl Iterator<Item = u32>) {
        let indices = self.plan.batch(self.batch);
        let mut pairs = [Pair::default(); PAIRS];
        let mut n = 0;
        for from in positions {
            let index = indices[from as usize];
            if index == ABSENT {
                continue;
            }
            pairs[n] = Pair { from, to: index - self.first };
            n += 1;
            if n == PAIRS {
                self.add_pairs(&mut pairs);
                n = 0;
            }
        }
        self.add_pairs(&mut pairs[..n]);
    }

    fn add_pairs(&mut self, pairs: &mut [Pair]) {
        let (plan, width) = (self.plan, self.width);
        let first = self.batch * plan.per_batch;
        match self.source {
            Rows::Dense(source) => {
                let source = &source[first * width..][..plan.per_batch * width];
                T::add_rows(plan.level, source, pairs, width, self.sums);
            }
            strided => {
                let mut dense = vec![T::zero(); pairs.len() * width];
                for ((k, pair), row) in pairs.iter_mut().enumerate().zip(dense.chunks_exact_mut(width)) {
                    strided.copy(first + pair.from as usize, row);
                    pair.from = k as u32;
                }
                T::add_rows(plan.level, &dense, pairs, width, self.sums);
            }
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
    let cut = Cut { group: plan.rows, tile, width, parallel: plan.parallel(plan.indices.len() * row_bytes) };
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
