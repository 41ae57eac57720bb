//! The kernels of this family, compiled here once for `f32` and `f64`.

use super::arena::{Arena, dims};
use super::partition::{self, Points};
use super::{packet, walk};
use crate::element::Element;
use crate::simd::{Level, at};

/// A tile of queries and the room for its answers.
pub struct Tile<'a, T> {
    /// (M, D).
    pub queries: &'a [T],
    /// The row that a query is of, excluded from its neighbours.
    pub own: Option<&'a [u32]>,
    /// K, at least 1.
    pub k: usize,
    /// (M, K) squared distances, ascending.
    pub keys: &'a mut [T],
    /// (M, K) row numbers.
    pub ids: &'a mut [u32],
}

/// The kernels of this family.
pub trait Kernels: Element {
    /// The lowest and the highest coordinate on every axis.
    fn extent(level: Level, points: &Points<'_, Self>, low: &mut [Self], high: &mut [Self]);

    /// Splits points by rank on an axis and returns the value between.
    fn select(level: Level, points: &mut Points<'_, Self>, axis: usize, rank: usize) -> Self;

    /// The nearest neighbours of each query by a traversal of its own.
    fn walk(level: Level, tree: &Arena<Self>, tile: &mut Tile<'_, Self>);

    /// The nearest neighbours of each query, a vector of consecutive queries a traversal. K is at most
    /// [`packet::MAX_K`].
    fn packet(level: Level, tree: &Arena<Self>, tile: &mut Tile<'_, Self>);
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn extent(level: Level, points: &Points<'_, $t>, low: &mut [$t], high: &mut [$t]) {
            dims!(points.dims, |dims| at!(level, |s| partition::extent(s, dims, points, low, high)));
        }
        fn select(level: Level, points: &mut Points<'_, $t>, axis: usize, rank: usize) -> $t {
            dims!(points.dims, |dims| at!(level, |s| partition::select(s, dims, points, axis, rank)))
        }
        fn walk(level: Level, tree: &Arena<$t>, tile: &mut Tile<'_, $t>) {
            dims!(tree.dims, |dims| at!(level, |s| walk::walk(s, dims, tree, tile)));
        }
        fn packet(level: Level, tree: &Arena<$t>, tile: &mut Tile<'_, $t>) {
            dims!(tree.dims, |dims| at!(level, |s| packet::packets(s, dims, tree, tile)));
        }
    })* };
}
kernels!(f32, f64);
