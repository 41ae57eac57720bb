//! Whole calls of this family, compiled here once for `f32` and `f64`.
//!
//! What is generic is compiled in the user's crate, at the user's optimisation level. So the public types are shells: all
//! that loops over points lies behind this trait.

use super::arena::Arena;
use super::build::build;
use super::kernels::Kernels;
use super::load::Source;
use super::metric::Metric;
use super::neighbors::{Neighbors, RadiusNeighbors};
use super::per_query::PerQuery;
use super::periodic::Torus;
use super::queries::Queries;
use super::search::{Options, Tuning};
use super::tree::KdTreeDyn;
use super::{finite, knn, load, radius, save};
use crate::error::Result;
use crate::simd::Level;
use ndarray::{Array1, Array2, ArrayView2};
use std::io::{Read, Write};
use std::path::Path;

macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        /// The calls of this family.
        pub trait Calls: Kernels {
            $($(#[$doc])* fn $name($($argument: $type),*) -> $result;)*
        }
        calls!(@of f32 { $($(#[$doc])* fn $name($($argument: $type),*) -> $result $body)* });
        calls!(@of f64 { $($(#[$doc])* fn $name($($argument: $type),*) -> $result $body)* });
    };
    (@of $t:ty { $($functions:tt)* }) => { impl Calls for $t { $($functions)* } };
}
calls! {
    /// [`build`].
    fn build(
        points: &ArrayView2<'_, Self>,
        present: Option<&[u32]>,
        leaf: usize,
        torus: Option<Torus<Self>>,
        level: Level
    ) -> Result<Arena<Self>> {
        build(points, present, leaf, torus, level)
    }

    /// [`knn::knn`] of the caller's queries.
    fn knn(
        tree: &Arena<Self>,
        level: Level,
        tuning: Tuning,
        options: &Options<'_, Self>,
        queries: &ArrayView2<'_, Self>,
        k: usize
    ) -> Result<Neighbors<Self>> {
        let tree = &tree.view();
        knn::knn(tree, level, tuning, options, &Queries::new(tree, queries, tuning.sort), k)
    }

    /// [`knn::knn`] of the tree's points.
    fn knn_self(
        tree: &Arena<Self>,
        level: Level,
        tuning: Tuning,
        options: &Options<'_, Self>,
        k: usize
    ) -> Result<Neighbors<Self>> {
        let tree = &tree.view();
        knn::knn(tree, level, tuning, options, &Queries::points(tree)?, k)
    }

    /// [`radius::radius`].
    fn radius(
        tree: &Arena<Self>,
        level: Level,
        tuning: Tuning,
        options: &Options<'_, Self>,
        queries: &ArrayView2<'_, Self>,
        r: PerQuery<'_, Self>
    ) -> Result<RadiusNeighbors<Self>> {
        let tree = &tree.view();
        radius::radius(tree, level, tuning, options, &Queries::new(tree, queries, tuning.sort), r)
    }

    /// [`radius::radius_count`].
    fn radius_count(
        tree: &Arena<Self>,
        level: Level,
        tuning: Tuning,
        metric: Metric,
        queries: &ArrayView2<'_, Self>,
        r: PerQuery<'_, Self>
    ) -> Result<Array1<usize>> {
        let tree = &tree.view();
        radius::radius_count(tree, level, tuning, metric, &Queries::new(tree, queries, tuning.sort), r)
    }

    /// [`radius::pairs_within`].
    fn pairs_within(
        tree: &Arena<Self>,
        level: Level,
        tuning: Tuning,
        metric: Metric,
        r: Self
    ) -> Result<Array2<u32>> {
        radius::pairs_within(&tree.view(), level, tuning, metric, r)
    }

    /// [`save::save`].
    fn save(tree: &Arena<Self>, absent: bool, path: &Path) -> Result<()> {
        save::save(&tree.view(), absent, path)
    }

    /// [`save::write`].
    fn write(tree: &Arena<Self>, absent: bool, to: &mut dyn Write) -> Result<()> {
        save::write(&tree.view(), absent, to, "writer")
    }

    /// [`load::load`].
    fn load(path: &Path, dims: Option<usize>) -> Result<KdTreeDyn<Self>> {
        load::load(path, dims)
    }

    /// [`Source::read`].
    fn read(from: &mut dyn Read, dims: Option<usize>) -> Result<KdTreeDyn<Self>> {
        Source { from, len: None, name: "reader" }.read(dims)
    }

    #[cfg(feature = "mmap")]
    /// [`load::map`].
    fn map(path: &Path, dims: Option<usize>) -> Result<KdTreeDyn<Self>> {
        load::map(path, dims)
    }

    /// [`PerQuery::check`].
    fn check(values: &PerQuery<'_, Self>, argument: &'static str, queries: usize) -> Result<()> {
        values.check(argument, queries)
    }

    /// [`first_non_finite`](super::finite::first).
    fn first_non_finite(points: &ArrayView2<'_, Self>) -> Option<usize> {
        finite::first(points)
    }

    /// [`finite_rows`](super::finite::rows).
    fn finite_rows(points: &ArrayView2<'_, Self>) -> Vec<u32> {
        finite::rows(points)
    }
}
