//! The inner loops of this family, over plain rows: copy a row, add a row to a sum in memory, add rows in registers.
//!
//! Rows are `width` elements side by side. Sums take one operation an element and row, in the order that the rows come,
//! and never fuse: they are equal, bit for bit, to the naive loop at every level.

use super::plan::ABSENT;
use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::{Level, Simd, Vector, at, prefetch};
use std::ops::Range;

/// How many rows ahead to ask for: enough to cover the latency of memory, few enough to stay in the level-one cache.
const AHEAD: usize = 12;

/// How rows are moved.
#[derive(Clone, Copy)]
pub struct Traffic {
    /// Write past the caches. Rows are a multiple of 16 bytes.
    pub stream: bool,
    /// Ask for rows ahead of their use.
    pub prefetch: bool,
}

/// The kernels of this family, compiled here once for `f32` and `f64`.
pub trait Kernels: Element {
    /// `tile[k] = x[indices[k]]`, or `padding` where the index is [`ABSENT`].
    fn copy_rows(
        level: Level,
        x: &[Self],
        indices: &[u32],
        padding: &[Self],
        traffic: Traffic,
        tile: &mut Tile<'_, Self>,
    );

    /// `sums[to] += source[from]` for every pair in turn.
    fn add_rows(level: Level, source: &[Self], pairs: &[Pair], width: usize, sums: &mut [Self]);

    /// `tile[r][c] += sum of source[order[e]][c]` over `e` in `offsets[r]..offsets[r + 1]` in turn, for the `channels`
    /// of rows of `width`.
    fn sum_rows(
        level: Level,
        source: &[Self],
        rows: Sources<'_>,
        channels: Range<usize>,
        traffic: Traffic,
        tile: &mut Tile<'_, Self>,
    );
}

/// One row to be added to one sum.
#[derive(Clone, Copy, Default)]
pub struct Pair {
    pub from: u32,
    pub to: u32,
}

/// The source rows of consecutive destination rows.
#[derive(Clone, Copy)]
pub struct Sources<'a> {
    pub width: usize,
    pub offsets: &'a [u32],
    pub order: &'a [u32],
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn copy_rows(level: Level, x: &[$t], indices: &[u32], padding: &[$t], traffic: Traffic, tile: &mut Tile<'_, $t>) {
            at!(level, |s| copy_rows(s, x, indices, padding, traffic, tile));
        }
        fn add_rows(level: Level, source: &[$t], pairs: &[Pair], width: usize, sums: &mut [$t]) {
            at!(level, |s| add_rows(s, source, pairs, width, sums));
        }
        fn sum_rows(level: Level, source: &[$t], rows: Sources<'_>, channels: Range<usize>, traffic: Traffic, tile: &mut Tile<'_, $t>) {
            at!(level, |s| sum_rows(s, source, rows, channels, traffic, tile));
        }
    })* };
}
kernels!(f32, f64);

#[inline(always)]
fn copy_rows<T: Element, S: Simd>(
    s: S,
    x: &[T],
    indices: &[u32],
    padding: &[T],
    traffic: Traffic,
    tile: &mut Tile<'_, T>,
) {
    let width = padding.len();
    let whole = width.is_multiple_of(T::LANES);
    match (traffic.stream, width) {
        (true, _) if whole => each_row(x, indices, padding, traffic, |row| {
            row.chunks_exact(T::LANES).for_each(|lanes| tile.push_streamed(s.load(lanes)));
        }),
        (true, _) => each_row(x, indices, padding, traffic, |row| tile.push_slice_streamed(row)),
        // Short rows of a known length are a few moves.
        (false, 1) => each_row(x, indices, padding, traffic, |row| push_short::<T, 1>(row, tile)),
        (false, 2) => each_row(x, indices, padding, traffic, |row| push_short::<T, 2>(row, tile)),
        (false, 3) => each_row(x, indices, padding, traffic, |row| push_short::<T, 3>(row, tile)),
        (false, 4) => each_row(x, indices, padding, traffic, |row| push_short::<T, 4>(row, tile)),
        (false, _) => each_row(x, indices, padding, traffic, |row| {
            let lanes = row.chunks_exact(T::LANES);
            let rest = lanes.remainder();
            lanes.for_each(|lanes| tile.push(s.load(lanes)));
            if !rest.is_empty() {
                tile.push_head(s.load_head(rest), rest.len());
            }
        }),
    }
}

#[inline(always)]
fn push_short<T: Element, const N: usize>(row: &[T], tile: &mut Tile<'_, T>) {
    tile.push_slice(row.first_chunk::<N>().expect("a row"));
}

#[inline(always)]
fn each_row<T: Element>(x: &[T], indices: &[u32], padding: &[T], traffic: Traffic, mut push: impl FnMut(&[T])) {
    let width = padding.len();
    let row = |index: u32| if index == ABSENT { padding } else { &x[index as usize * width..][..width] };
    for (k, &index) in indices.iter().enumerate() {
        if traffic.prefetch
            && let Some(&index) = indices.get(k + AHEAD)
        {
            prefetch(row(index));
        }
        push(row(index));
    }
}

#[inline(always)]
fn add_rows<T: Element, S: Simd>(s: S, source: &[T], pairs: &[Pair], width: usize, sums: &mut [T]) {
    for (k, pair) in pairs.iter().enumerate() {
        if let Some(ahead) = pairs.get(k + AHEAD) {
            prefetch(&source[ahead.from as usize * width..][..width]);
            prefetch(&sums[ahead.to as usize * width..][..width]);
        }
        let row = source[pair.from as usize * width..][..width].chunks_exact(T::LANES);
        let mut sum = sums[pair.to as usize * width..][..width].chunks_exact_mut(T::LANES);
        let rest = row.remainder();
        for (row, sum) in row.zip(&mut sum) {
            (s.load(sum) + s.load(row)).store(sum);
        }
        if !rest.is_empty() {
            let sum = sum.into_remainder();
            (s.load_head(sum) + s.load_head(rest)).store_head(sum);
        }
    }
}

#[inline(always)]
fn sum_rows<T: Element, S: Simd>(
    s: S,
    source: &[T],
    rows: Sources<'_>,
    channels: Range<usize>,
    traffic: Traffic,
    tile: &mut Tile<'_, T>,
) {
    for ends in rows.offsets.windows(2) {
        let edges = ends[0] as usize..ends[1] as usize;
        let mut channel = channels.start;
        while channel < channels.end {
            let left = channels.end - channel;
            let vectors = left / T::LANES;
            let source = Edges { source, rows, edges: edges.clone(), channel, prefetch: traffic.prefetch };
            channel += match vectors {
                8.. if S::ACCUMULATORS >= 8 => source.sum::<S, 8>(s, traffic.stream, tile),
                4.. if S::ACCUMULATORS >= 4 => source.sum::<S, 4>(s, traffic.stream, tile),
                2.. => source.sum::<S, 2>(s, traffic.stream, tile),
                1 => source.sum::<S, 1>(s, traffic.stream, tile),
                0 => source.sum_head(s, left, tile),
            };
        }
    }
}

/// The edges of one destination row, from one channel on.
struct Edges<'a, T> {
    source: &'a [T],
    rows: Sources<'a>,
    edges: Range<usize>,
    channel: usize,
    prefetch: bool,
}

impl<T: Element> Edges<'_, T> {
    /// The `n` channels of every edge in turn.
    #[inline(always)]
    fn each(&self, n: usize, mut add: impl FnMut(&[T])) {
        let channels = |from: u32| &self.source[from as usize * self.rows.width + self.channel..][..n];
        for edge in self.edges.clone() {
            if self.prefetch
                && let Some(&from) = self.rows.order.get(edge + AHEAD)
            {
                prefetch(channels(from));
            }
            add(channels(self.rows.order[edge]));
        }
    }

    /// Sums `N` vectors of channels and returns how many channels that is.
    #[inline(always)]
    fn sum<S: Simd, const N: usize>(&self, s: S, stream: bool, tile: &mut Tile<'_, T>) -> usize {
        let mut sums = [s.splat(T::zero()); N];
        for (v, sum) in sums.iter_mut().enumerate() {
            *sum = tile.start(s, v * T::LANES);
        }
        self.each(N * T::LANES, |row| {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = *sum + s.load(&row[v * T::LANES..]);
            }
        });
        for sum in sums {
            if stream {
                tile.push_streamed(sum);
            } else {
                tile.push(sum);
            }
        }
        N * T::LANES
    }

    /// Sums the last `n` channels, fewer than a vector's lanes.
    #[inline(always)]
    fn sum_head<S: Simd>(&self, s: S, n: usize, tile: &mut Tile<'_, T>) -> usize {
        let mut sum = tile.start_head(s, n);
        self.each(n, |row| sum = sum + s.load_head(row));
        tile.push_head(sum, n);
        n
    }
}
