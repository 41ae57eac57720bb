//! The k-d tree against kiddo, the fastest one that a Rust user would pick: a rayon loop over its queries, and its own
//! batches.
//!
//! The limit of a build is reading the points once and writing them once; of a search, reading the queries and writing
//! the answers. Both are far below what any tree can do: they show how much of the time is work, not memory.

use crate::measure::{Random, Suite, entry, job};
use crate::memory::Memory;
use kiddo::{ImmutableKdTree, SquaredEuclidean};
use pullback::Real;
use pullback::kdtree::KdTree;
use pullback::ndarray::{Array2, ArrayView2};
use rayon::prelude::*;
use std::hint::black_box;
use std::num::NonZero;

/// Neighbours a query.
const K: usize = 5;

pub fn report(suite: &Suite) {
    single(suite, 1_000_000);
    if suite.names("14000000") {
        single(suite, 14_000_000);
    }
    double(suite, 1_000_000);
}

/// Uniform points in the unit cube.
fn uniform<T: Real>(random: &mut Random, rows: usize) -> Array2<T> {
    Array2::from_shape_simple_fn((rows, 3), || T::from_f32(random.unit()).expect("an element"))
}

fn rows<T: Copy>(points: &ArrayView2<'_, T>) -> Vec<[T; 3]> {
    points.outer_iter().map(|row| [row[0], row[1], row[2]]).collect()
}

macro_rules! jobs {
    ($name:ident, $t:ty) => {
        fn $name(suite: &Suite, n: usize) {
            let tag = stringify!($t);
            let name = |job: &str| format!("kdtree/{job}/{n}x3/{tag}");
            let jobs = [name("build"), name("knn-random"), name("knn-sorted"), name("knn-self")];
            if !jobs.iter().any(|job| suite.wants(job)) {
                return;
            }
            let mut random = Random::new(3);
            let points = uniform::<$t>(&mut random, suite.size(n));
            let queries = uniform::<$t>(&mut random, suite.size(1_000_000));
            let (their_points, their_queries) = (rows(&points.view()), rows(&queries.view()));
            let mut memory = Memory::new();
            let bytes = |rows: usize, cells: usize| rows * cells * size_of::<$t>();
            let ours = || KdTree::<$t, 3>::new(points.view()).expect("finite points");
            let theirs = || ImmutableKdTree::<$t, 3>::new_from_slice(&their_points).expect("finite points");
            let k = NonZero::new(K).expect("not 0");
            if suite.wants(&jobs[0]) {
                let limit = memory.limit_copy(2 * bytes(points.nrows(), 3));
                let peers = vec![entry("kiddo", || drop(black_box(theirs())))];
                job(suite, &jobs[0], limit, entry("new", || drop(black_box(ours()))), peers);
            }
            let (tree, their_tree) = (ours(), theirs());
            let one = |query: &[$t; 3]| their_tree.query(query).nearest_n::<SquaredEuclidean<$t>>(k).execute();
            let search = |queries: &Array2<$t>, their_queries: &[[$t; 3]], name: &str, memory: &mut Memory| {
                if !suite.wants(name) {
                    return;
                }
                let limit = memory.limit_copy(bytes(queries.nrows(), 3 + K) + queries.nrows() * K * 4);
                let loops = || drop(black_box(their_queries.par_iter().map(one).collect::<Vec<_>>()));
                let batch = || {
                    drop(black_box(
                        their_tree.query_batch(their_queries).nearest_n::<SquaredEuclidean<$t>>(k).execute(),
                    ))
                };
                let peers = vec![entry("kiddo-rayon-loop", loops), entry("kiddo-batch", batch)];
                let ours = || drop(black_box(tree.knn(queries.view(), K).expect("finite queries")));
                job(suite, name, limit, entry("k=5", ours), peers);
            };
            search(&queries, &their_queries, &jobs[1], &mut memory);
            let sorted = morton_sorted(&queries);
            search(&sorted, &rows(&sorted.view()), &jobs[2], &mut memory);
            if suite.wants(&jobs[3]) {
                let limit = memory.limit_copy(bytes(points.nrows(), 3 + K) + points.nrows() * K * 4);
                // Its nearest is the point itself, so it is asked for one more.
                let more = NonZero::new(K + 1).expect("not 0");
                let one = |query: &[$t; 3]| their_tree.query(query).nearest_n::<SquaredEuclidean<$t>>(more).execute();
                let loops = || {
                    // Chunks, so that fourteen million lists do not have to fit in memory at once.
                    their_points.chunks(1 << 20).for_each(|chunk| {
                        drop(black_box(chunk.par_iter().map(one).collect::<Vec<_>>()));
                    });
                };
                let ours = || drop(black_box(tree.knn_self(K).expect("memory for the answers")));
                job(suite, &jobs[3], limit, entry("k=5", ours), vec![entry("kiddo-rayon-loop", loops)]);
            }
        }
    };
}
jobs!(single, f32);
jobs!(double, f64);

/// The queries in the order of a 30-bit Morton code, as a careful user would hand them over.
fn morton_sorted<T: Real>(queries: &Array2<T>) -> Array2<T> {
    let spread = |x: T| {
        (0..10)
            .fold(0u32, |code, bit| code | ((x.to_f64().expect("an element") * 1024.0) as u32 >> bit & 1) << (3 * bit))
    };
    let mut order: Vec<(u32, usize)> = queries
        .outer_iter()
        .enumerate()
        .map(|(row, query)| (spread(query[0]) | spread(query[1]) << 1 | spread(query[2]) << 2, row))
        .collect();
    order.sort_unstable();
    Array2::from_shape_fn(queries.dim(), |(row, axis)| queries[[order[row].1, axis]])
}
