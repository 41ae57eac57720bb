//! The k-d tree against kiddo on what else there is: other numbers of neighbours, radii, two and eight dimensions, and data
//! that are not uniform.
//!
//! The limit is reading the queries and writing the answers, which is far below what any tree can do.

use crate::measure::{Entry, Random, Suite, entry, job};
use crate::memory::Memory;
use kiddo::{ImmutableKdTree, SquaredEuclidean};
use pullback::kdtree::KdTree;
use pullback::ndarray::Array2;
use rayon::prelude::*;
use std::hint::black_box;
use std::num::NonZero;

/// How points lie.
#[derive(Clone, Copy, Debug)]
enum Cloud {
    /// In the unit cube.
    Uniform,
    /// In a hundred balls, a hundredth wide.
    Clustered,
    /// In a hundred balls, a hundred thousandth of the bounding box wide.
    Tiny,
    /// On a plane across the last axis.
    Planar,
    /// On whole numbers, ten to a position.
    Lattice,
    /// In a box of sides 1, 100 and 10,000.
    Stretched,
}

impl Cloud {
    fn points<const D: usize>(self, rows: usize, seed: u64) -> Array2<f32> {
        let (mut centres, mut random) = (Random::new(99), Random::new(seed));
        let centres = Array2::from_shape_simple_fn((100, D), || centres.unit());
        let side = (rows as f32 / 10.0).powf(1.0 / D as f32);
        let mut points = Array2::zeros((rows, D));
        for mut point in points.outer_iter_mut() {
            let centre = centres.row(random.below(100));
            for (axis, x) in point.iter_mut().enumerate() {
                let unit = random.unit();
                *x = match self {
                    Self::Uniform => unit,
                    Self::Clustered => centre[axis] + 1e-2 * unit,
                    Self::Tiny => 1000.0 * centre[axis] + 1e-2 * unit,
                    Self::Planar if axis + 1 == D => 0.5,
                    Self::Planar => unit,
                    Self::Lattice => (unit * side).floor(),
                    Self::Stretched => unit * 100f32.powi(axis as i32),
                };
            }
        }
        points
    }
}

pub fn report(suite: &Suite) {
    for k in [1, 20, 100] {
        Rows::<3> { suite, cloud: Cloud::Uniform, points: 1_000_000, queries: 200_000 }.knn(k);
    }
    for cloud in [Cloud::Clustered, Cloud::Tiny, Cloud::Planar, Cloud::Lattice, Cloud::Stretched] {
        Rows::<3> { suite, cloud, points: 500_000, queries: 500_000 }.knn(5);
    }
    Rows::<2> { suite, cloud: Cloud::Uniform, points: 1_000_000, queries: 500_000 }.knn(5);
    Rows::<8> { suite, cloud: Cloud::Uniform, points: 100_000, queries: 20_000 }.knn(5);
    Rows::<3> { suite, cloud: Cloud::Uniform, points: 1_000_000, queries: 500_000 }.radius(0.01928);
    Rows::<2> { suite, cloud: Cloud::Uniform, points: 1_000_000, queries: 500_000 }.radius(0.00309);
}

/// The rows of one cloud.
struct Rows<'a, const D: usize> {
    suite: &'a Suite,
    cloud: Cloud,
    points: usize,
    queries: usize,
}

impl<const D: usize> Rows<'_, D> {
    fn name(&self, job: &str) -> String {
        format!("kdtree/{job}-{:?}/{}x{D}/f32", self.cloud, self.points).to_lowercase()
    }

    /// Points and queries, in arrays and as kiddo takes them.
    fn data(&self) -> ([Array2<f32>; 2], [Vec<[f32; D]>; 2]) {
        let points = self.cloud.points::<D>(self.suite.size(self.points), 1);
        let queries = self.cloud.points::<D>(self.suite.size(self.queries), 2);
        let rows = |array: &Array2<f32>| array.outer_iter().map(|row| std::array::from_fn(|axis| row[axis])).collect();
        let theirs = [rows(&points), rows(&queries)];
        ([points, queries], theirs)
    }

    /// The `k` nearest of each query.
    fn knn(&self, k: usize) {
        let name = self.name(&format!("knn-{k}"));
        if !self.suite.wants(&name) {
            return;
        }
        let ([points, queries], [their_points, their_queries]) = self.data();
        let tree = KdTree::<f32, D>::new(points.view()).expect("finite points");
        let ours = entry("knn", || drop(black_box(tree.knn(queries.view(), k).expect("finite queries"))));
        let most = NonZero::new(k).expect("not 0");
        // Many points on one coordinate are more than it takes.
        let their_tree = ImmutableKdTree::<f32, D>::new_from_slice(&their_points).ok();
        let mut peers: Vec<Entry<'_>> = Vec::new();
        if let Some(tree) = &their_tree {
            let one = move |query: &[f32; D]| tree.query(query).nearest_n::<SquaredEuclidean<f32>>(most).execute();
            let queries = &their_queries;
            peers.push(entry("kiddo-rayon-loop", move || {
                drop(black_box(queries.par_iter().map(one).collect::<Vec<_>>()));
            }));
            peers.push(entry("kiddo-batch", move || {
                drop(black_box(tree.query_batch(queries).nearest_n::<SquaredEuclidean<f32>>(most).execute()));
            }));
        }
        let mut memory = Memory::new();
        job(self.suite, &name, memory.limit_copy(queries.nrows() * 4 * (D + 2 * k)), ours, peers);
    }

    /// About thirty neighbours of each query.
    fn radius(&self, radius: f32) {
        let name = self.name("radius");
        if !self.suite.wants(&name) {
            return;
        }
        let ([points, queries], [their_points, their_queries]) = self.data();
        let tree = KdTree::<f32, D>::new(points.view()).expect("finite points");
        let found = tree.radius_count(queries.view(), radius).expect("finite queries").sum();
        let ours = entry("radius", || drop(black_box(tree.radius(queries.view(), radius).expect("finite queries"))));
        let their_tree = ImmutableKdTree::<f32, D>::new_from_slice(&their_points).expect("finite points");
        let squared = radius * radius;
        let one = |query: &[f32; D]| their_tree.query(query).within::<SquaredEuclidean<f32>>(squared).execute();
        let unsorted =
            |query: &[f32; D]| their_tree.query(query).within::<SquaredEuclidean<f32>>(squared).unsorted().execute();
        let peers = vec![
            entry("kiddo-rayon-loop", || drop(black_box(their_queries.par_iter().map(one).collect::<Vec<_>>()))),
            entry("kiddo-unsorted", || drop(black_box(their_queries.par_iter().map(unsorted).collect::<Vec<_>>()))),
        ];
        let mut memory = Memory::new();
        job(self.suite, &name, memory.limit_copy(queries.nrows() * 4 * (D + 2) + found * 8), ours, peers);
    }
}
