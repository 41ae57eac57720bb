//! The inner loops that move and add rows: copy a row, add a row to a sum in memory, fold rows in registers, multiply two
//! rows into a dot product.
//!
//! Rows are `width` elements side by side. Sums take one operation an element and row, in the order that the rows come,
//! and never fuse: they are equal, bit for bit, to the naive loop at every level.

use super::plan::ABSENT;
use super::pull::{Pull, pull_rows};
use super::scalars::Scalars;
use super::terms::{InOrder, Owned, Sources, Terms, Weighted, fold_rows};
use super::{choices, maps};
use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::{Level, Simd, Vector, at, prefetch};
use std::ops::Range;

/// How many rows ahead to ask for: enough to cover the latency of memory, few enough to stay in the level-one cache.
pub(super) const AHEAD: usize = 12;

/// Vectors of a row that are loaded before the first is stored, so that the misses of a row overlap.
const BLOCK: usize = 4;

/// How rows are moved.
#[derive(Clone, Copy)]
pub struct Traffic {
    /// Write past the caches. Rows are a multiple of 16 bytes.
    pub stream: bool,
    /// Ask for rows ahead of their use.
    pub prefetch: bool,
}

/// The kernels of this family, compiled here once for `f32` and `f64`.
pub trait Kernels: Element + choices::Kernels + maps::Kernels + Scalars {
    /// `tile[k] = x[indices[k]]`, or `padding` where the index is [`ABSENT`].
    fn copy_rows(
        level: Level,
        x: &[Self],
        indices: &[u32],
        padding: &[Self],
        traffic: Traffic,
        tile: &mut Tile<'_, Self>,
    );

    /// `sums[to] += source[from]` for every pair in turn, or `sums[to] += weight * source[from]` with a weight a pair.
    fn add_rows(
        level: Level,
        source: &[Self],
        pairs: &[Pair],
        weights: Option<&[Self]>,
        width: usize,
        sums: &mut [Self],
    );

    /// `dots[k] = <a[from], b[to]>` for every pair.
    fn dot_rows(level: Level, a: &[Self], b: &[Self], pairs: &[Pair], width: usize, dots: &mut [Self]);

    /// [`Kernels::add_rows`] with weights, and [`Kernels::dot_rows`] of the same source rows and `b`, in one pass.
    fn add_and_dot_rows(
        level: Level,
        rows: [&[Self]; 2],
        pairs: &[Pair],
        weights: &[Self],
        width: usize,
        sums: &mut [Self],
        dots: &mut [Self],
    );

    /// [`Kernels::add_and_dot_rows`] by destination row: `dots` has a place an edge.
    fn pull_rows(level: Level, rows: Pull<'_, Self>, dots: &mut [Self], sums: &mut [Self]);

    /// Folds the source rows of every destination row in turn, for the `channels` of rows of `width`.
    fn fold_rows(
        level: Level,
        source: &[Self],
        rows: Sources<'_, Self>,
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

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn copy_rows(level: Level, x: &[$t], indices: &[u32], padding: &[$t], traffic: Traffic, tile: &mut Tile<'_, $t>) {
            at!(level, |s| copy_rows(s, x, indices, padding, traffic, tile));
        }
        fn add_rows(
            level: Level,
            source: &[$t],
            pairs: &[Pair],
            weights: Option<&[$t]>,
            width: usize,
            sums: &mut [$t],
        ) {
            match weights {
                None => at!(level, |s| {
                    add_rows(
                        s,
                        source,
                        pairs,
                        width,
                        sums,
                        #[inline(always)]
                        |_, v| v,
                    )
                }),
                Some(weights) => at!(level, |s| {
                    add_rows(
                        s,
                        source,
                        pairs,
                        width,
                        sums,
                        #[inline(always)]
                        |k, v| s.splat(weights[k]) * v,
                    )
                }),
            }
        }
        fn dot_rows(level: Level, a: &[$t], b: &[$t], pairs: &[Pair], width: usize, dots: &mut [$t]) {
            at!(level, |s| dot_rows(s, a, b, pairs, width, dots));
        }
        fn add_and_dot_rows(
            level: Level,
            rows: [&[$t]; 2],
            pairs: &[Pair],
            weights: &[$t],
            width: usize,
            sums: &mut [$t],
            dots: &mut [$t],
        ) {
            at!(level, |s| add_and_dot_rows(s, rows, pairs, weights, width, sums, dots));
        }
        fn pull_rows(level: Level, rows: Pull<'_, $t>, dots: &mut [$t], sums: &mut [$t]) {
            at!(level, |s| pull_rows(s, rows, dots, sums));
        }
        fn fold_rows(
            level: Level,
            source: &[$t],
            rows: Sources<'_, $t>,
            channels: Range<usize>,
            traffic: Traffic,
            tile: &mut Tile<'_, $t>,
        ) {
            match rows.terms {
                Terms::InOrder(edges) => {
                    at!(level, |s| fold_rows::<_, _, _, false>(s, source, InOrder(edges), rows, channels, traffic, tile));
                }
                Terms::Rows(order) if rows.product => {
                    at!(level, |s| fold_rows::<_, _, _, true>(s, source, order, rows, channels, traffic, tile));
                }
                Terms::Rows(order) => {
                    at!(level, |s| fold_rows::<_, _, _, false>(s, source, order, rows, channels, traffic, tile));
                }
                Terms::Weighted(order, weights) => {
                    let terms = Weighted { order, weights };
                    at!(level, |s| fold_rows::<_, _, _, false>(s, source, terms, rows, channels, traffic, tile));
                }
                Terms::Owned(order, owner, None) => {
                    let terms = Owned { order, owner };
                    at!(level, |s| fold_rows::<_, _, _, false>(s, source, terms, rows, channels, traffic, tile));
                }
                Terms::Owned(order, owner, Some(weights)) => {
                    let terms = (Owned { order, owner }, weights);
                    at!(level, |s| fold_rows::<_, _, _, false>(s, source, terms, rows, channels, traffic, tile));
                }
            }
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
            let blocks = row.chunks_exact(BLOCK * T::LANES);
            let rest = blocks.remainder();
            for block in blocks {
                let mut vectors = [s.splat(T::zero()); BLOCK];
                for (v, lanes) in vectors.iter_mut().zip(block.chunks_exact(T::LANES)) {
                    *v = s.load(lanes);
                }
                tile.push_streamed(vectors);
            }
            rest.chunks_exact(T::LANES).for_each(|lanes| tile.push_streamed([s.load(lanes)]));
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
fn add_rows<T: Element, S: Simd>(
    s: S,
    source: &[T],
    pairs: &[Pair],
    width: usize,
    sums: &mut [T],
    weigh: impl Fn(usize, S::V<T>) -> S::V<T>,
) {
    for (k, pair) in pairs.iter().enumerate() {
        if let Some(ahead) = pairs.get(k + AHEAD) {
            prefetch(&source[ahead.from as usize * width..][..width]);
            prefetch(&sums[ahead.to as usize * width..][..width]);
        }
        let row = source[pair.from as usize * width..][..width].chunks_exact(T::LANES);
        let mut sum = sums[pair.to as usize * width..][..width].chunks_exact_mut(T::LANES);
        let rest = row.remainder();
        for (row, sum) in row.zip(&mut sum) {
            (s.load(sum) + weigh(k, s.load(row))).store(sum);
        }
        if !rest.is_empty() {
            let sum = sum.into_remainder();
            (s.load_head(sum) + weigh(k, s.load_head(rest))).store_head(sum);
        }
    }
}

#[inline(always)]
fn dot_rows<T: Element, S: Simd>(s: S, a: &[T], b: &[T], pairs: &[Pair], width: usize, dots: &mut [T]) {
    for (k, (pair, dot)) in pairs.iter().zip(dots).enumerate() {
        if let Some(ahead) = pairs.get(k + AHEAD) {
            prefetch(&b[ahead.to as usize * width..][..width]);
        }
        let a = a[pair.from as usize * width..][..width].chunks_exact(T::LANES);
        let b = b[pair.to as usize * width..][..width].chunks_exact(T::LANES);
        let rest = s.load_head(a.remainder()) * s.load_head(b.remainder());
        let mut lanes = s.splat(T::zero());
        for (a, b) in a.zip(b) {
            lanes = lanes + s.load(a) * s.load(b);
        }
        *dot = (lanes + rest).fold();
    }
}

#[inline(always)]
fn add_and_dot_rows<T: Element, S: Simd>(
    s: S,
    [source, b]: [&[T]; 2],
    pairs: &[Pair],
    weights: &[T],
    width: usize,
    sums: &mut [T],
    dots: &mut [T],
) {
    for (k, (pair, dot)) in pairs.iter().zip(dots).enumerate() {
        if let Some(ahead) = pairs.get(k + AHEAD) {
            prefetch(&source[ahead.from as usize * width..][..width]);
            prefetch(&b[ahead.to as usize * width..][..width]);
            prefetch(&sums[ahead.to as usize * width..][..width]);
        }
        let weight = s.splat(weights[k]);
        let row = source[pair.from as usize * width..][..width].chunks_exact(T::LANES);
        let b = b[pair.to as usize * width..][..width].chunks_exact(T::LANES);
        let mut sum = sums[pair.to as usize * width..][..width].chunks_exact_mut(T::LANES);
        let (rest, rest_b) = (row.remainder(), s.load_head(b.remainder()));
        let mut lanes = s.splat(T::zero());
        for ((row, b), sum) in row.zip(b).zip(&mut sum) {
            let row = s.load(row);
            lanes = lanes + row * s.load(b);
            (s.load(sum) + weight * row).store(sum);
        }
        let row = s.load_head(rest);
        lanes = lanes + row * rest_b;
        if !rest.is_empty() {
            let sum = sum.into_remainder();
            (s.load_head(sum) + weight * row).store_head(sum);
        }
        *dot = lanes.fold();
    }
}
