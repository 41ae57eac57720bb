//! Whole calls of this family, compiled here once for `f32` and `f64`.
//!
//! What is generic is compiled in the user's crate, at the user's optimisation level. So the public types are shells: all
//! that loops over points lies behind this trait.

use super::arena::Arena;
use super::build::build;
use super::interpolation::{InterpolateGradients, Interpolation};
use super::kernels::Kernels;
use super::knn_adjoint::{Inputs, KnnGradients};
use super::load::Source;
use super::metric::Metric;
use super::neighbors::{Neighbors, RadiusNeighbors};
use super::per_query::PerQuery;
use super::periodic::Torus;
use super::queries::Queries;
use super::search::{Options, Tuning};
use super::tree::KdTreeDyn;
use super::weights::Weighing;
use super::{finite, knn, knn_adjoint, load, radius, save};
use crate::buffer::Start;
use crate::error::Result;
use crate::simd::Level;
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};
use std::io::{Read, Write};
use std::path::Path;

macro_rules! calls {
    ($($(#[$doc:meta])* fn $name:ident$(<$life:lifetime>)?($($argument:ident: $type:ty),*) -> $result:ty $body:block)*) => {
        /// The calls of this family.
        pub trait Calls: Kernels {
            $($(#[$doc])* fn $name$(<$life>)?($($argument: $type),*) -> $result;)*
        }
        calls!(@of f32 { $($(#[$doc])* fn $name$(<$life>)?($($argument: $type),*) -> $result $body)* });
        calls!(@of f64 { $($(#[$doc])* fn $name$(<$life>)?($($argument: $type),*) -> $result $body)* });
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
        knn::knn(tree, level, tuning, options, &Queries::new(tree, queries, tuning.sort)?, k)
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
        radius::radius(tree, level, tuning, options, &Queries::new(tree, queries, tuning.sort)?, r)
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
        radius::radius_count(tree, level, tuning, metric, &Queries::new(tree, queries, tuning.sort)?, r)
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

    /// [`knn_adjoint::knn_adjoint`].
    fn knn_adjoint(
        tree: &KdTreeDyn<Self>,
        options: &Options<'_, Self>,
        inputs: &Inputs<'_, '_, Self>
    ) -> Result<KnnGradients<Self>> {
        knn_adjoint::knn_adjoint(tree, options, inputs)
    }

    /// [`knn_adjoint::knn_adjoint_from`].
    fn knn_adjoint_from(
        tree: &KdTreeDyn<Self>,
        options: &Options<'_, Self>,
        inputs: &Inputs<'_, '_, Self>,
        outputs: (ArrayViewMut2<'_, Self>, ArrayViewMut2<'_, Self>),
        start: Start
    ) -> Result<()> {
        knn_adjoint::knn_adjoint_from(tree, options, inputs, outputs, start)
    }

    /// [`knn_adjoint::knn_self_adjoint`].
    fn knn_self_adjoint(
        tree: &KdTreeDyn<Self>,
        options: &Options<'_, Self>,
        inputs: &Inputs<'_, '_, Self>
    ) -> Result<Array2<Self>> {
        knn_adjoint::knn_self_adjoint(tree, options, inputs)
    }

    /// [`knn_adjoint::knn_self_adjoint_from`].
    fn knn_self_adjoint_from(
        tree: &KdTreeDyn<Self>,
        options: &Options<'_, Self>,
        inputs: &Inputs<'_, '_, Self>,
        grad_points: ArrayViewMut2<'_, Self>,
        start: Start
    ) -> Result<()> {
        knn_adjoint::knn_self_adjoint_from(tree, options, inputs, grad_points, start)
    }

    /// [`Interpolation::new`].
    fn interpolation<'t>(
        tree: &'t KdTreeDyn<Self>,
        options: &Options<'_, Self>,
        k: usize,
        weighing: Weighing<Self>,
        fill: Self,
        queries: &ArrayView2<'_, Self>
    ) -> Result<Interpolation<'t, Self>> {
        Interpolation::new(tree, options, k, weighing, fill, queries)
    }

    /// [`Interpolation::run_forward`].
    fn interpolation_forward(
        of: &Interpolation<'_, Self>,
        values: &ArrayView2<'_, Self>
    ) -> Result<Array2<Self>> {
        of.run_forward(values)
    }

    /// [`Interpolation::run_forward_into`].
    fn interpolation_forward_into(
        of: &Interpolation<'_, Self>,
        values: &ArrayView2<'_, Self>,
        y: ArrayViewMut2<'_, Self>
    ) -> Result<()> {
        of.run_forward_into(values, y)
    }

    /// [`Interpolation::run_adjoint`].
    fn interpolation_adjoint(
        of: &Interpolation<'_, Self>,
        grad_y: &ArrayView2<'_, Self>,
        values: &ArrayView2<'_, Self>
    ) -> Result<InterpolateGradients<Self>> {
        of.run_adjoint(grad_y, values)
    }

    /// [`Interpolation::run_adjoint_from`].
    fn interpolation_adjoint_from(
        of: &Interpolation<'_, Self>,
        grad_y: &ArrayView2<'_, Self>,
        values: &ArrayView2<'_, Self>,
        outputs: [ArrayViewMut2<'_, Self>; 3],
        start: Start
    ) -> Result<()> {
        of.run_adjoint_from(grad_y, values, outputs, start)
    }

    /// [`Interpolation::run_adjoint_values`].
    fn interpolation_adjoint_values(
        of: &Interpolation<'_, Self>,
        grad_y: &ArrayView2<'_, Self>
    ) -> Result<Array2<Self>> {
        of.run_adjoint_values(grad_y)
    }

    /// [`Interpolation::run_adjoint_values_from`].
    fn interpolation_adjoint_values_from(
        of: &Interpolation<'_, Self>,
        grad_y: &ArrayView2<'_, Self>,
        grad_values: ArrayViewMut2<'_, Self>,
        start: Start
    ) -> Result<()> {
        of.run_adjoint_values_from(grad_y, grad_values, start)
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
