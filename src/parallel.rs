//! How work is shared between threads.
//!
//! An output is a sequence of groups (batches), each of the same number of rows, and is cut into tiles that never cross
//! a group. Where the cuts are depends on the problem alone, never on the number of threads, and every tile has one
//! owner, so the bits of a result cannot depend on who computed it. Threads are those of the rayon pool that the caller
//! is in.
#![allow(unsafe_code, reason = "rows written in an order that is not that of memory")]

use crate::buffer::{Both, Filled, Output, Split, Tile};
use bytemuck::Pod;
use rayon::prelude::*;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::ops::Range;

/// Bytes that take a thread a few microseconds to move.
pub(crate) const PARALLEL_BYTES: usize = 128 << 10;

/// How many times as much work a call from outside of a pool must be. It is handed to threads that may sleep, and waits for them: 15 to 60
/// microseconds, where a call from a thread of the pool shares its work in one or two (`cargo bench --bench scaling`).
const OUTSIDE: usize = 8;

/// Whether to share `work` between threads, where `least` takes one of them a few microseconds. It is not the result that
/// depends on it, but who computes it.
pub(crate) fn is_worth_threads(work: usize, least: usize) -> bool {
    let is_outside = || rayon::current_thread_index().is_none();
    work >= least && (work / OUTSIDE >= least || !is_outside()) && rayon::current_num_threads() > 1
}

/// Groups of at least this many tiles a thread are computed one after another, by all threads each: what a group reads is
/// then in the last-level cache once, not beside what another one reads.
const IN_TURN: usize = 8;

/// Where an output is cut.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// Rows of a group.
    pub group: usize,
    /// Rows of a tile, at least 1; the last tile of a group may be shorter.
    pub tile: usize,
    /// Cells of a row, at least 1.
    pub width: usize,
    /// Whether tiles may run on several threads.
    pub parallel: bool,
}

impl Cut {
    fn tiles_a_group(&self) -> usize {
        self.group.div_ceil(self.tile)
    }

    /// The tile that a row lies in.
    fn tile_of(&self, row: usize) -> usize {
        row / self.group * self.tiles_a_group() + row % self.group / self.tile
    }

    /// The first row of a tile.
    fn first_row(&self, tile: usize) -> usize {
        let per_group = self.tiles_a_group();
        tile / per_group * self.group + tile % per_group * self.tile
    }
}

/// Runs `kernel` once a tile, with the group, the rows within it, and the tile. `rows` is the number of rows of `out`,
/// not 0. A tile of strided memory may come in several parts.
pub(crate) fn for_each_tile<T: Pod + Send + Sync>(
    out: Output<'_, T>,
    rows: usize,
    cut: &Cut,
    kernel: &(impl Fn(usize, Range<usize>, &mut Tile<'_, T>) + Sync),
) -> Filled {
    split(out, 0..rows, cut, &|out: Output<'_, T>, group, rows| out.write(|tile| kernel(group, rows, tile)))
}

/// [`for_each_tile`] of two outputs; `cut` speaks of the first.
pub(crate) fn for_each_tile_of_both<A: Pod + Send + Sync, B: Pod + Send + Sync>(
    out: Both<'_, '_, A, B>,
    rows: usize,
    cut: &Cut,
    kernel: &(impl Fn(usize, Range<usize>, &mut Tile<'_, A>, &mut Tile<'_, B>) + Sync),
) -> Filled {
    split(out, 0..rows, cut, &|out: Both<'_, '_, A, B>, group, rows| out.write(|a, b| kernel(group, rows, a, b)))
}

/// Runs `write` once a tile, with the tile's part of `out`, the group, and the rows within it.
pub(crate) fn split<O: Split>(
    out: O,
    rows: Range<usize>,
    cut: &Cut,
    write: &(impl Fn(O, usize, Range<usize>) -> Filled + Sync),
) -> Filled {
    let (first, last) = (cut.tile_of(rows.start), cut.tile_of(rows.end - 1));
    if first == last {
        let group = rows.start / cut.group;
        let within = rows.start - group * cut.group..rows.end - group * cut.group;
        return write(out, group, within);
    }
    let groups = (rows.start / cut.group, (rows.end - 1) / cut.group);
    let in_turn = groups.0 < groups.1 && cut.tiles_a_group() >= IN_TURN * rayon::current_num_threads();
    let middle = if in_turn {
        (groups.0 + (groups.1 - groups.0).div_ceil(2)) * cut.group
    } else {
        cut.first_row(first + (last - first).div_ceil(2))
    };
    let (a, taken, b) = out.split_near(middle - rows.start, cut.width);
    let middle = rows.start + taken;
    let (left, right) = (rows.start..middle, middle..rows.end);
    if cut.parallel && !in_turn {
        let (a, b) = rayon::join(|| split(a, left, cut, write), || split(b, right, cut, write));
        a.and(b)
    } else {
        split(a, left, cut, write).and(split(b, right, cut, write))
    }
}

/// Every number of `0..len` exactly once. Only the constructors below make one.
pub(crate) struct Permutation(Vec<u32>);

impl Permutation {
    /// `0..n`.
    pub(crate) fn identity(n: usize) -> Self {
        Self((0..n as u32).collect())
    }

    /// `0..n` by ascending key, equal keys in their order. `fill` fills in the keys of a range, which are at most `most`.
    ///
    /// Sorted in two steps, chunks into buckets by the highest bits of keys and then each bucket, which is in cache.
    pub(crate) fn by_key(n: usize, most: u32, fill: impl Fn(Range<usize>, &mut [u32]) + Sync) -> Self {
        const CHUNK: usize = 1 << 14;
        const BUCKET_BITS: u32 = 8;
        const BUCKETS: usize = 1 << BUCKET_BITS;
        // Larger than this, a bucket is sorted by several threads: all keys may be alike.
        const LARGE: usize = 1 << 16;
        let shift = (u32::BITS - most.leading_zeros()).saturating_sub(BUCKET_BITS);
        if n <= CHUNK {
            let mut keys = vec![0; n];
            fill(0..n, &mut keys);
            let mut entries: Vec<u64> = (0..).zip(keys).map(|(index, key)| u64::from(key) << 32 | index).collect();
            entries.sort_unstable();
            return Self(entries.into_iter().map(|entry| entry as u32).collect());
        }
        let bucket = |entry: u64| (entry >> 32 >> shift) as usize;
        // Keys before their indices, so that no two are equal; each chunk by bucket.
        let mut entries = vec![0u64; n];
        let ends: Vec<[u32; BUCKETS]> = entries
            .par_chunks_mut(CHUNK)
            .enumerate()
            .map_init(
                || (vec![0u32; CHUNK], vec![0u64; CHUNK]),
                |(keys, scratch), (chunk, entries)| {
                    let (first, keys) = (chunk * CHUNK, &mut keys[..entries.len()]);
                    fill(first..first + entries.len(), keys);
                    let mut ends = [0u32; BUCKETS];
                    let scratch = &mut scratch[..entries.len()];
                    for ((entry, &key), index) in scratch.iter_mut().zip(&*keys).zip(first..) {
                        *entry = u64::from(key) << 32 | index as u64;
                        ends[bucket(*entry)] += 1;
                    }
                    let mut sum = 0;
                    for end in &mut ends {
                        let count = std::mem::replace(end, sum);
                        sum += count;
                    }
                    // Each bucket's start becomes its end.
                    for &entry in &*scratch {
                        let end = &mut ends[bucket(entry)];
                        entries[*end as usize] = entry;
                        *end += 1;
                    }
                    ends
                },
            )
            .collect();
        let runs = |bucket: usize| {
            ends.iter().zip(entries.chunks(CHUNK)).map(move |(ends, entries)| {
                let start = bucket.checked_sub(1).map_or(0, |before| ends[before]);
                &entries[start as usize..ends[bucket] as usize]
            })
        };
        let mut order = vec![0u32; n];
        let (mut rest, mut buckets) = (&mut order[..], Vec::with_capacity(BUCKETS));
        for bucket in 0..BUCKETS {
            let (own, behind) = rest.split_at_mut(runs(bucket).map(<[u64]>::len).sum());
            buckets.push((bucket, own));
            rest = behind;
        }
        buckets.into_par_iter().for_each_init(Vec::new, |sorted, (bucket, order)| {
            sorted.clear();
            runs(bucket).for_each(|run| sorted.extend_from_slice(run));
            if sorted.len() > LARGE {
                sorted.par_sort_unstable();
            } else {
                sorted.sort_unstable();
            }
            order.iter_mut().zip(&*sorted).for_each(|(order, &entry)| *order = entry as u32);
        });
        // The runs of a chunk are its entries permuted, and each entry ends in its own index.
        Self(order)
    }

    /// `first`, then the rest of `0..n` in ascending order; none where `first` names a number twice or one that is not
    /// below `n`.
    pub(crate) fn starting_with(first: &[u32], n: usize) -> Option<Self> {
        let mut order = Vec::with_capacity(n.max(first.len()));
        order.extend_from_slice(first);
        // A bit a number. Checked in the copy: `first` may be a file that is being changed.
        let mut seen = vec![0u64; n.div_ceil(64)];
        for &row in &order {
            let (word, bit) = (seen.get_mut(row as usize / 64)?, 1 << (row % 64));
            if row as usize >= n || *word & bit != 0 {
                return None;
            }
            *word |= bit;
        }
        order.extend((0..n as u32).filter(|&row| seen[row as usize / 64] >> (row % 64) & 1 == 0));
        Some(Self(order))
    }

    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

/// Where rows of different lengths lie one behind the other: ascending numbers from 0, one more than rows. Only the
/// constructor makes one.
pub(crate) struct Offsets(Vec<usize>);

impl Offsets {
    pub(crate) fn from_lengths(mut lengths: Vec<usize>) -> Self {
        let mut sum = 0usize;
        for length in &mut lengths {
            let start = sum;
            sum = sum.checked_add(*length).expect("cells that were collected can be counted");
            *length = start;
        }
        lengths.push(sum);
        Self(lengths)
    }

    /// The number of cells.
    pub(crate) fn total(&self) -> usize {
        self.0[self.0.len() - 1]
    }

    pub(crate) fn into_inner(self) -> Vec<usize> {
        self.0
    }
}

/// Where the rows of an output lie.
#[derive(Clone, Copy)]
pub(crate) enum Place<'a> {
    /// Rows of so many cells.
    Even(usize),
    Ragged(&'a Offsets),
}

impl Place<'_> {
    fn of(self, row: usize) -> Range<usize> {
        match self {
            Self::Even(width) => row * width..(row + 1) * width,
            Self::Ragged(offsets) => offsets.0[row]..offsets.0[row + 1],
        }
    }

    /// Whether `rows` rows fill `cells` cells.
    fn fills(self, rows: usize, cells: usize) -> bool {
        match self {
            Self::Even(width) => rows * width == cells,
            Self::Ragged(offsets) => offsets.0.len() == rows + 1 && offsets.total() == cells,
        }
    }
}

/// Writes the rows of an output that one tile of a [`Permutation`] names, in the tile's order.
pub(crate) struct ScatteredRows<'a, V> {
    cells: *mut MaybeUninit<V>,
    place: Place<'a>,
    rows: &'a [u32],
    next: usize,
    written: usize,
    life: PhantomData<&'a mut [V]>,
}

impl<V: Pod> ScatteredRows<'_, V> {
    /// The cells of the next row, all of which the caller writes.
    fn next_row(&mut self) -> &mut [MaybeUninit<V>] {
        let at = self.place.of(self.rows[self.next] as usize);
        self.next += 1;
        self.written += at.len();
        // SAFETY: the row number is below the number of rows of the output, which has the cells of all of them and is
        // exclusively borrowed for the life of `self`; rows are disjoint; no other tile names this one, since both belong
        // to one permutation, and this tile names it once.
        unsafe { std::slice::from_raw_parts_mut(self.cells.add(at.start), at.len()) }
    }

    /// Writes the next row.
    pub(crate) fn push(&mut self, row: &[V]) {
        copy_row(row, self.next_row());
    }

    /// Writes the next row, cell by cell.
    pub(crate) fn push_with(&mut self, value: impl Fn(usize) -> V) {
        for (index, cell) in self.next_row().iter_mut().enumerate() {
            cell.write(value(index));
        }
    }

    fn finish(self) -> Filled {
        assert_eq!(self.next, self.rows.len(), "every row of a tile is written");
        Filled::scattered(self.written)
    }
}

/// Copies a row. A short one is a head and a tail of words, which may overlap: a few moves where a call of the C library
/// takes longer than they do. (Copies of arrays do not stay what they are: they are merged into that call.)
#[inline(always)]
fn copy_row<V: Pod>(row: &[V], cells: &mut [MaybeUninit<V>]) {
    /// Copies `bytes`, at least as many as a word has and at most twice as many.
    ///
    /// # Safety
    ///
    /// `from` can be read and `to` written so far, both initialised or not as integers may be.
    #[inline(always)]
    unsafe fn ends<W: Pod>(from: *const u8, to: *mut u8, bytes: usize) {
        let last = bytes - size_of::<W>();
        // SAFETY: both words lie within `bytes` bytes, and any bytes are a word.
        unsafe {
            let (head, tail) = (from.cast::<W>().read_unaligned(), from.add(last).cast::<W>().read_unaligned());
            to.cast::<W>().write_unaligned(head);
            to.add(last).cast::<W>().write_unaligned(tail);
        }
    }
    assert_eq!(row.len(), cells.len());
    let (from, to, bytes) = (row.as_ptr().cast::<u8>(), cells.as_mut_ptr().cast::<u8>(), size_of_val(row));
    if !(4..=64).contains(&bytes) {
        cells.write_copy_of_slice(row);
        return;
    }
    // SAFETY: both are `bytes` long; a row of plain data is initialised to its last byte.
    unsafe {
        match bytes {
            4..=8 => ends::<u32>(from, to, bytes),
            9..=16 => ends::<u64>(from, to, bytes),
            17..=32 => ends::<u128>(from, to, bytes),
            _ => {
                ends::<u128>(from, to, 32);
                ends::<u128>(from.add(bytes - 32), to.add(bytes - 32), 32);
            }
        }
    }
}

/// Runs `kernel` once for every `tile` positions of `order`, with the first position, the rows, and writers for those
/// rows of two outputs.
pub(crate) fn for_each_scattered<A: Pod + Send, B: Pod + Send>(
    order: &Permutation,
    tile: usize,
    parallel: bool,
    places: (Place<'_>, Place<'_>),
    outputs: (&mut [MaybeUninit<A>], &mut [MaybeUninit<B>]),
    kernel: &(impl Fn(usize, &[u32], &mut ScatteredRows<'_, A>, &mut ScatteredRows<'_, B>) + Sync),
) -> (Filled, Filled) {
    struct Base<A, B>(*mut MaybeUninit<A>, *mut MaybeUninit<B>);
    // SAFETY: the pointers are used only through `ScatteredRows`, which write disjoint rows.
    unsafe impl<A: Send, B: Send> Sync for Base<A, B> {}

    assert!(places.0.fills(order.0.len(), outputs.0.len()), "an output has the cells of its rows");
    assert!(places.1.fills(order.0.len(), outputs.1.len()), "an output has the cells of its rows");
    let base = Base(outputs.0.as_mut_ptr(), outputs.1.as_mut_ptr());
    let base = &base;
    let run = move |(index, rows): (usize, &[u32])| {
        let mut a = ScatteredRows { cells: base.0, place: places.0, rows, next: 0, written: 0, life: PhantomData };
        let mut b = ScatteredRows { cells: base.1, place: places.1, rows, next: 0, written: 0, life: PhantomData };
        kernel(index * tile, rows, &mut a, &mut b);
        (a.finish(), b.finish())
    };
    let nothing = || (Filled::NOTHING, Filled::NOTHING);
    let sum = |a: (Filled, Filled), b: (Filled, Filled)| (a.0.and(b.0), a.1.and(b.1));
    if parallel {
        order.0.par_chunks(tile).enumerate().map(run).reduce(nothing, sum)
    } else {
        order.0.chunks(tile).enumerate().map(run).fold(nothing(), sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Start;
    use ndarray::Array2;
    use std::collections::HashSet;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// Writes the row's number into every cell and returns the tiles that ran.
    fn number_rows(out: &mut Array2<f64>, cut: Cut) -> Vec<(usize, Range<usize>)> {
        let tiles = Mutex::new(Vec::new());
        let (rows, width) = out.dim();
        let filled = for_each_tile(Output::array(out.view_mut(), Start::Zero), rows, &cut, &|group, rows, tile| {
            tiles.lock().unwrap().push((group, rows.clone()));
            for row in rows {
                tile.push_slice(&vec![(group * cut.group + row) as f64; width]);
            }
        });
        assert_eq!(filled, Filled::cells(rows * width));
        let mut tiles = tiles.into_inner().unwrap();
        tiles.sort_by_key(|(group, rows)| (*group, rows.start));
        tiles
    }

    #[test]
    fn tiles_cover_every_row_once_and_never_cross_a_group() {
        // The last have tiles enough for groups to be taken in turn.
        let in_turn = IN_TURN * rayon::current_num_threads();
        let sizes =
            [(1, 1, 1), (3, 7, 2), (4, 5, 5), (2, 9, 100), (5, 1, 3), (1, 64, 7), (3, in_turn, 1), (2, 3 * in_turn, 2)];
        for (groups, group, tile) in sizes {
            for parallel in [false, true] {
                let mut out = Array2::zeros((groups * group, 3));
                let tiles = number_rows(&mut out, Cut { group, tile, width: 3, parallel });
                for (row, cells) in out.outer_iter().enumerate() {
                    assert!(cells.iter().all(|&cell| cell == row as f64));
                }
                let expected: Vec<_> = (0..groups)
                    .flat_map(|g| (0..group).step_by(tile).map(move |row| (g, row..(row + tile).min(group))))
                    .collect();
                assert_eq!(tiles, expected);
            }
        }
    }

    #[test]
    fn strided_outputs_are_cut_at_the_same_rows() {
        let (groups, group, tile) = (3, 10, 4);
        let mut wide = Array2::from_elem((groups * group, 6), -1.0);
        let mut out = wide.slice_mut(ndarray::s![.., ..;2]);
        let filled = for_each_tile(
            Output::array(out.view_mut(), Start::Zero),
            groups * group,
            &Cut { group, tile, width: 3, parallel: true },
            &|group, rows, tile| {
                assert!(rows.start.is_multiple_of(4));
                for row in rows {
                    tile.push_slice(&[(10 * group + row) as f64; 3]);
                }
            },
        );
        assert_eq!(filled, Filled::cells(groups * group * 3));
        for ((row, column), &cell) in wide.indexed_iter() {
            assert_eq!(cell, if column % 2 == 0 { row as f64 } else { -1.0 });
        }
    }

    #[test]
    fn more_than_one_thread_takes_a_tile() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let (seen, arrived) = (Mutex::new(HashSet::new()), Condvar::new());
        let mut out = Array2::<f32>::zeros((64, 1));
        pool.install(|| {
            let cut = Cut { group: 64, tile: 1, width: 1, parallel: true };
            let filled = for_each_tile(Output::array(out.view_mut(), Start::Zero), 64, &cut, &|_, _, tile| {
                let mut threads = seen.lock().unwrap();
                threads.insert(std::thread::current().id());
                arrived.notify_all();
                // The first tile waits until another thread has come for one.
                let waited = arrived.wait_timeout_while(threads, Duration::from_secs(60), |t| t.len() < 2);
                assert!(!waited.unwrap().1.timed_out(), "a second thread never came");
                tile.push_slice(&[1.0]);
            });
            assert_eq!(filled, Filled::cells(64));
        });
    }
}
