//! The kernels of this family, compiled here once for `f32` and `f64`.

use super::arena::{Counted, Fixed, View, dims};
use super::metric::{L1, L2, Linf, Metric};
use super::partition::{self, Points};
use super::periodic::{Open, Within};
use super::{packet, rank, walk};
use crate::element::Element;
use crate::simd::{Level, at};

/// A tile of queries and the room for its answers.
pub struct Tile<'a, T> {
    /// (M, D).
    pub queries: &'a [T],
    /// (M) the largest keys that neighbours may have.
    pub bounds: &'a [T],
    /// The row that a query is of, excluded from its neighbours.
    pub own: Option<&'a [u32]>,
    /// K, at least 1.
    pub k: usize,
    /// (M, K) keys, ascending; of padding any.
    pub keys: &'a mut [T],
    /// (M, K) row numbers; of padding N.
    pub ids: &'a mut [u32],
}

/// A point within a radius.
#[derive(Clone, Copy)]
pub struct Hit<T> {
    pub key: T,
    pub id: u32,
}

/// A tile of queries for all points within a radius.
pub struct RadiusTile<'a, T> {
    /// (M, D).
    pub queries: &'a [T],
    /// (M) the largest keys that neighbours may have.
    pub bounds: &'a [T],
    /// (M) row numbers up to which points are left out.
    pub after: Option<&'a [u32]>,
    /// Where the hits go, query after query; without, they are only counted.
    pub hits: Option<&'a mut [Hit<T>]>,
    /// (M) how many hits each query has.
    pub counts: &'a mut [usize],
}

/// The kernels of this family.
pub trait Kernels: Element {
    /// The lowest and the highest coordinate on every axis.
    fn extent(level: Level, points: &Points<'_, Self>, low: &mut [Self], high: &mut [Self]);

    /// Splits points by rank on an axis and returns the value between.
    fn select(level: Level, points: &mut Points<'_, Self>, axis: usize, rank: usize) -> Self;

    /// The nearest neighbours of each query by a traversal of its own.
    fn walk(level: Level, tree: &View<'_, Self>, metric: Metric, tile: &mut Tile<'_, Self>);

    /// The nearest neighbours of each query, a vector of consecutive queries a traversal. K is at most
    /// [`packet::MAX_K`], the metric L2 and space open.
    fn packet(level: Level, tree: &View<'_, Self>, tile: &mut Tile<'_, Self>);

    /// All points within the bound of each query. Returns the number of queries answered; where the room for hits is too
    /// small for the next one's, its count says how many they are.
    fn ball(level: Level, tree: &View<'_, Self>, metric: Metric, tile: &mut RadiusTile<'_, Self>) -> usize;

    /// [`rank::sort`].
    fn sort(level: Level, hits: &mut [Hit<Self>], counts: &[usize], by_distance: bool);
}

/// Runs a kernel with the number of axes, the metric and the space as types: `geometry!(tree, metric, |g| kernel(g))`.
///
/// The Euclidean metric in open space is compiled for each of [`dims!`], the rest for three axes and a run-time number, or
/// there would be 24 kinds of each kernel instead of 14.
macro_rules! geometry {
    ($tree:expr, $metric:expr, |$geometry:ident| $body:expr) => {
        match ($metric, $tree.torus) {
            (Metric::L2, None) => dims!($tree.dims, |dims| geometry!(@run dims, L2, Open, $geometry, $body)),
            (Metric::L1, None) => geometry!(@few $tree, L1, Open, $geometry, $body),
            (Metric::Linf, None) => geometry!(@few $tree, Linf, Open, $geometry, $body),
            (Metric::L2, Some(torus)) => geometry!(@few $tree, L2, Within(torus), $geometry, $body),
            (Metric::L1, Some(torus)) => geometry!(@few $tree, L1, Within(torus), $geometry, $body),
            (Metric::Linf, Some(torus)) => geometry!(@few $tree, Linf, Within(torus), $geometry, $body),
        }
    };
    (@few $tree:expr, $norm:expr, $space:expr, $geometry:ident, $body:expr) => {
        match $tree.dims {
            3 => geometry!(@run Fixed::<3>, $norm, $space, $geometry, $body),
            count => geometry!(@run Counted(count), $norm, $space, $geometry, $body),
        }
    };
    (@run $dims:expr, $norm:expr, $space:expr, $geometry:ident, $body:expr) => {{
        let $geometry = ($dims, $norm, $space);
        $body
    }};
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn extent(level: Level, points: &Points<'_, $t>, low: &mut [$t], high: &mut [$t]) {
            dims!(points.dims, |dims| at!(level, |s| partition::extent(s, dims, points, low, high)));
        }
        fn select(level: Level, points: &mut Points<'_, $t>, axis: usize, rank: usize) -> $t {
            dims!(points.dims, |dims| at!(level, |s| partition::select(s, dims, points, axis, rank)))
        }
        fn walk(level: Level, tree: &View<'_, $t>, metric: Metric, tile: &mut Tile<'_, $t>) {
            geometry!(tree, metric, |geometry| at!(level, |s| walk::walk(s, geometry, tree, tile)));
        }
        fn packet(level: Level, tree: &View<'_, $t>, tile: &mut Tile<'_, $t>) {
            dims!(tree.dims, |dims| at!(level, |s| packet::packets(s, dims, tree, tile)));
        }
        fn ball(level: Level, tree: &View<'_, $t>, metric: Metric, tile: &mut RadiusTile<'_, $t>) -> usize {
            geometry!(tree, metric, |geometry| at!(level, |s| walk::ball(s, geometry, tree, tile)))
        }
        fn sort(level: Level, hits: &mut [Hit<$t>], counts: &[usize], by_distance: bool) {
            at!(level, |s| rank::sort(s, hits, counts, by_distance));
        }
    })* };
}
kernels!(f32, f64);
