//! Whole calls of this family, compiled here once for `f32` and `f64`.
//!
//! What is generic is compiled in the user's crate, at the user's optimisation level, and for each number of dimensions
//! again. So [`KdTree`](super::KdTree) is a shell: all that loops over points lies behind this trait.

use super::arena::Arena;
use super::build::build;
use super::finite;
use super::kernels::Kernels;
use super::knn::{Tuning, knn, knn_self};
use super::neighbors::Neighbors;
use crate::error::Result;
use crate::simd::Level;
use ndarray::ArrayView2;

/// The calls of this family.
pub trait Calls: Kernels {
    /// [`build`].
    fn build(points: &ArrayView2<'_, Self>, present: Option<&[u32]>, leaf: usize, level: Level) -> Result<Arena<Self>>;

    /// [`knn`].
    fn knn(
        tree: &Arena<Self>,
        level: Level,
        tuning: Tuning,
        queries: &ArrayView2<'_, Self>,
        k: usize,
    ) -> Result<Neighbors<Self>>;

    /// [`knn_self`].
    fn knn_self(tree: &Arena<Self>, level: Level, tuning: Tuning, k: usize) -> Result<Neighbors<Self>>;

    /// [`first_non_finite`](super::finite::first).
    fn first_non_finite(points: &ArrayView2<'_, Self>) -> Option<usize>;

    /// [`finite_rows`](super::finite::rows).
    fn finite_rows(points: &ArrayView2<'_, Self>) -> Vec<u32>;
}

macro_rules! calls {
    ($($t:ty),*) => { $(impl Calls for $t {
        fn build(points: &ArrayView2<'_, $t>, present: Option<&[u32]>, leaf: usize, level: Level) -> Result<Arena<$t>> {
            build(points, present, leaf, level)
        }
        fn knn(tree: &Arena<$t>, level: Level, tuning: Tuning, queries: &ArrayView2<'_, $t>, k: usize) -> Result<Neighbors<$t>> {
            knn(tree, level, tuning, queries, k)
        }
        fn knn_self(tree: &Arena<$t>, level: Level, tuning: Tuning, k: usize) -> Result<Neighbors<$t>> {
            knn_self(tree, level, tuning, k)
        }
        fn first_non_finite(points: &ArrayView2<'_, $t>) -> Option<usize> {
            finite::first(points)
        }
        fn finite_rows(points: &ArrayView2<'_, $t>) -> Vec<u32> {
            finite::rows(points)
        }
    })* };
}
calls!(f32, f64);
