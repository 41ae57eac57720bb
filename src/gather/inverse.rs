//! The indices of a plan turned round: which positions name a row. Built on first need.
//!
//! A counting sort by row over a whole batch would scatter positions over memory. So it runs in two steps inside the
//! cache: every chunk of positions is sorted by block of neighbouring rows, then every block collects its run from each
//! chunk and sorts it by row. Chunks and blocks are independent, so both steps run in parallel and nothing is shared.
//! Both are stable: positions ascend within a row, which is the order of the sums.

use super::groups::reserved;
use super::plan::{ABSENT, OutOfRange, Plan};
use crate::error::Result;
use ndarray::ArrayView2;
use rayon::prelude::*;

/// Positions of a chunk: their keys and places fit in a level-two cache.
const CHUNK: usize = 1 << 15;

/// Rows of a block: its counters fit in a level-one cache.
const BLOCK: usize = 1 << 12;

/// A position of a batch and the row that it names.
#[derive(Clone, Copy, Default)]
struct Entry {
    row: u32,
    position: u32,
}

/// Positions by destination row: a compressed sparse row form.
pub(crate) struct Inverse {
    rows: usize,
    per_batch: usize,
    /// (B, N + 1), within the batch.
    offsets: Vec<u32>,
    /// (B, M) positions within the batch. Padding is left out, so a batch may end early.
    order: Vec<u32>,
    in_order: bool,
}

impl Inverse {
    /// The inverse of one batch of indices below `rows`, all others padding.
    pub(crate) fn of(indices: &ArrayView2<'_, u32>, rows: usize) -> Result<Self> {
        Self::new(&Plan::new("indices", indices, 1, rows, OutOfRange::Skip { fill: 0.0 })?)
    }

    pub(super) fn new(plan: &Plan) -> Result<Self> {
        let (rows, per_batch) = (plan.rows, plan.per_batch);
        // Saturating: where there are no indices, no memory says how many batches and rows there may be.
        let (mut offsets, mut order) = (zeros(plan.batches.saturating_mul(rows + 1))?, zeros(plan.indices.len())?);
        if per_batch > 0 {
            offsets
                .par_chunks_mut(rows + 1)
                .zip(order.par_chunks_mut(per_batch))
                .enumerate()
                .with_min_len(CHUNK.div_ceil(per_batch))
                .for_each(|(batch, (offsets, order))| invert(plan.batch(batch), rows, offsets, order));
        }
        Ok(Self { rows, per_batch, offsets, order, in_order: false })
    }

    /// The inverse of the positions 0, 1, ... of one batch, which name rows in ascending order, those between `offsets`.
    pub(super) fn of_sorted(offsets: Vec<u32>) -> Result<Self> {
        let per_batch = offsets.last().map_or(0, |&last| last as usize);
        let mut order = reserved(per_batch)?;
        order.extend(0..per_batch as u32);
        Ok(Self { rows: offsets.len() - 1, per_batch, offsets, order, in_order: true })
    }

    /// Whether the positions by row are known to be 0, 1, 2, ...
    pub(super) fn is_in_order(&self) -> bool {
        self.in_order
    }

    /// The offsets of a batch's rows, N + 1 of them, into [`Inverse::order`].
    pub(crate) fn offsets(&self, batch: usize) -> &[u32] {
        &self.offsets[batch * (self.rows + 1)..][..self.rows + 1]
    }

    /// The positions of a batch by row, ascending within a row.
    pub(crate) fn order(&self, batch: usize) -> &[u32] {
        &self.order[batch * self.per_batch..][..self.per_batch]
    }
}

fn zeros(len: usize) -> Result<Vec<u32>> {
    let mut numbers = reserved(len)?;
    numbers.resize(len, 0);
    Ok(numbers)
}

/// Inverts one batch into zeroed `offsets`.
fn invert(indices: &[u32], rows: usize, offsets: &mut [u32], order: &mut [u32]) {
    let chunks = sort_chunks(indices, rows.div_ceil(BLOCK));
    let runs = |block: usize| chunks.iter().map(move |chunk| chunk.run(block));
    let mut blocks = Vec::new();
    let (mut before, mut rest) = (0, order);
    for (block, ends) in offsets[1..].chunks_mut(BLOCK).enumerate() {
        let (part, behind) = rest.split_at_mut(runs(block).map(<[Entry]>::len).sum());
        blocks.push((before, ends, part));
        before += blocks[block].2.len() as u32;
        rest = behind;
    }
    blocks.into_par_iter().enumerate().for_each(|(block, (before, ends, order))| {
        let first = (block * BLOCK) as u32;
        let mut starts = vec![0; ends.len() + 1];
        counting_sort(
            runs(block),
            |entry| (entry.row - first) as usize,
            &mut starts,
            |at, entry| order[at] = entry.position,
        );
        ends.iter_mut().zip(&starts[1..]).for_each(|(end, start)| *end = before + start);
    });
}

/// The entries of one chunk of positions, by block of rows.
struct Chunk {
    /// Where each block's run starts, and where the last one ends.
    starts: Vec<u32>,
    entries: Vec<Entry>,
}

impl Chunk {
    fn run(&self, block: usize) -> &[Entry] {
        &self.entries[self.starts[block] as usize..self.starts[block + 1] as usize]
    }
}

fn sort_chunks(indices: &[u32], blocks: usize) -> Vec<Chunk> {
    let sort = |(chunk, indices): (usize, &[u32])| {
        let first = (chunk * CHUNK) as u32;
        let named = (first..).zip(indices).filter(|(_, row)| **row != ABSENT);
        let named: Vec<Entry> = named.map(|(position, &row)| Entry { row, position }).collect();
        let mut starts = vec![0; blocks + 1];
        let mut entries = vec![Entry::default(); named.len()];
        counting_sort(
            std::iter::once(&named[..]),
            |entry| entry.row as usize / BLOCK,
            &mut starts,
            |at, entry| entries[at] = entry,
        );
        Chunk { starts, entries }
    };
    indices.par_chunks(CHUNK).enumerate().map(sort).collect()
}

/// Stable sort of the entries of `runs` by key. `starts` is all zero and one longer than the number of keys; it receives
/// where each key's entries start, and where the last key's end.
fn counting_sort<'a>(
    runs: impl Iterator<Item = &'a [Entry]> + Clone,
    key: impl Fn(Entry) -> usize,
    starts: &mut [u32],
    mut place: impl FnMut(usize, Entry),
) {
    for run in runs.clone() {
        for &entry in run {
            starts[key(entry) + 1] += 1;
        }
    }
    for key in 1..starts.len() {
        starts[key] += starts[key - 1];
    }
    for run in runs {
        for &entry in run {
            let at = &mut starts[key(entry)];
            place(*at as usize, entry);
            *at += 1;
        }
    }
    // Every start has moved to its key's end, which is the next key's start.
    starts.copy_within(..starts.len() - 1, 1);
    starts[0] = 0;
}
