//! The indices of a plan turned round: which positions name a row. Built on first need, in two steps.
//!
//! [`Buckets`] sort the positions of a batch into blocks of neighbouring rows. Every chunk of positions is sorted on its
//! own, inside the cache and by one thread, so nothing is scattered over memory and chunks run in parallel; the sources of
//! a block are then one short run in each chunk. [`Inverse`] sorts each block's runs by row, again inside the cache. Both
//! steps are stable counting sorts: positions ascend within a block and within a row, which is the order of the sums.

use super::plan::{ABSENT, Plan};
use rayon::prelude::*;

/// Positions of a chunk: 256 KiB of them, well inside a level-two cache.
const CHUNK: usize = 1 << 16;

/// Positions by block of destination rows.
pub(super) struct Buckets {
    /// Rows of a block.
    pub(super) block: usize,
    /// Blocks of a batch.
    pub(super) blocks: usize,
    /// Chunks of a batch.
    chunks: usize,
    /// Positions of a batch.
    per_batch: usize,
    /// (B, chunks, blocks + 1): where each block's run starts within its chunk.
    starts: Vec<u32>,
    /// (B, M): each chunk's positions by block. Padding is left out, so a chunk may end early.
    positions: Vec<u32>,
}

impl Buckets {
    pub(super) fn new(plan: &Plan, block: usize) -> Self {
        let (batches, per_batch) = (plan.batches, plan.per_batch);
        let blocks = plan.rows.div_ceil(block);
        let chunks = per_batch.div_ceil(CHUNK);
        let mut starts = vec![0; batches * chunks * (blocks + 1)];
        let mut positions = vec![0; batches * per_batch];
        if per_batch > 0 {
            starts
                .par_chunks_mut(chunks * (blocks + 1))
                .zip(positions.par_chunks_mut(per_batch))
                .zip(plan.indices.par_chunks(per_batch))
                .for_each(|((starts, positions), indices)| {
                    starts
                        .par_chunks_mut(blocks + 1)
                        .zip(positions.par_chunks_mut(CHUNK))
                        .zip(indices.par_chunks(CHUNK))
                        .enumerate()
                        .for_each(|(chunk, ((starts, positions), indices))| {
                            let keyed = indices.iter().zip(chunk as u32 * CHUNK as u32..);
                            let keyed = keyed.filter(|(index, _)| **index != ABSENT);
                            counting_sort(keyed.map(|(&i, p)| (i as usize / block, p)), starts, positions);
                        });
                });
        }
        Self { block, blocks, chunks, per_batch, starts, positions }
    }

    /// The positions that name a row of a block, ascending, in runs.
    pub(super) fn runs(&self, batch: usize, block: usize) -> impl Iterator<Item = &[u32]> + Clone {
        let positions = &self.positions[batch * self.per_batch..][..self.per_batch];
        let starts = &self.starts[batch * self.chunks * (self.blocks + 1)..];
        starts
            .chunks_exact(self.blocks + 1)
            .zip(positions.chunks(CHUNK))
            .map(move |(starts, positions)| &positions[starts[block] as usize..starts[block + 1] as usize])
    }
}

/// Positions by destination row: a compressed sparse row form.
pub(super) struct Inverse {
    rows: usize,
    per_batch: usize,
    /// (B, N + 1), within the batch.
    offsets: Vec<u32>,
    /// (B, M) positions within the batch. Padding is left out, so a batch may end early.
    order: Vec<u32>,
}

/// Rows of a block of the inverse: its counters stay in the level-one cache.
const INVERSE_BLOCK: usize = 1 << 12;

impl Inverse {
    pub(super) fn new(plan: &Plan) -> Self {
        let (rows, per_batch) = (plan.rows, plan.per_batch);
        let mut offsets = vec![0; plan.batches * (rows + 1)];
        let mut order = vec![0; plan.batches * per_batch];
        if per_batch > 0 && rows > 0 {
            let buckets = Buckets::new(plan, INVERSE_BLOCK);
            offsets.par_chunks_mut(rows + 1).zip(order.par_chunks_mut(per_batch)).enumerate().for_each(
                |(batch, (offsets, order))| {
                    let blocks = split_blocks(&buckets, batch, offsets, order);
                    blocks.into_par_iter().enumerate().for_each(|(block, (first, offsets, order))| {
                        let (indices, low) = (plan.batch(batch), block * INVERSE_BLOCK);
                        let positions = buckets.runs(batch, block).flatten();
                        let keyed = positions.map(|&p| (indices[p as usize] as usize - low, p));
                        let mut starts = vec![0; offsets.len() + 1];
                        counting_sort(keyed, &mut starts, order);
                        offsets.iter_mut().zip(&starts[1..]).for_each(|(end, &start)| *end = first + start);
                    });
                },
            );
        }
        Self { rows, per_batch, offsets, order }
    }

    /// The offsets of a batch's rows, N + 1 of them, into [`Inverse::order`].
    pub(super) fn offsets(&self, batch: usize) -> &[u32] {
        &self.offsets[batch * (self.rows + 1)..][..self.rows + 1]
    }

    /// The positions of a batch by row, ascending within a row.
    pub(super) fn order(&self, batch: usize) -> &[u32] {
        &self.order[batch * self.per_batch..][..self.per_batch]
    }
}

/// For each block: how many positions come before it, the end offsets of its rows, and its part of the order.
fn split_blocks<'a>(
    buckets: &Buckets,
    batch: usize,
    offsets: &'a mut [u32],
    mut order: &'a mut [u32],
) -> Vec<(u32, &'a mut [u32], &'a mut [u32])> {
    let mut first = 0;
    let ends = offsets[1..].chunks_mut(INVERSE_BLOCK);
    ends.enumerate()
        .map(|(block, ends)| {
            let len = buckets.runs(batch, block).map(<[u32]>::len).sum::<usize>();
            let (part, rest) = std::mem::take(&mut order).split_at_mut(len);
            order = rest;
            let before = first;
            first += len as u32;
            (before, ends, part)
        })
        .collect()
}

/// Stable sort of positions by key. `starts` is all zero and one longer than the number of keys; it receives where each
/// key's positions start in `sorted`, and where the last key's end.
fn counting_sort(keyed: impl Iterator<Item = (usize, u32)> + Clone, starts: &mut [u32], sorted: &mut [u32]) {
    for (key, _) in keyed.clone() {
        starts[key + 1] += 1;
    }
    for key in 1..starts.len() {
        starts[key] += starts[key - 1];
    }
    for (key, position) in keyed {
        sorted[starts[key] as usize] = position;
        starts[key] += 1;
    }
    // Every start has moved to its key's end, which is the next key's start.
    starts.copy_within(..starts.len() - 1, 1);
    starts[0] = 0;
}
