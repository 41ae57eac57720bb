//! Trees so large that several threads build them.

use crate::common::cloud::Cloud;
use crate::common::neighbors::{BruteForce, assert_neighbors};
use crate::common::random::Random;
use crate::common::threads;
use crate::common::values::Value;
use ndarray::{Array2, s};
use pullback::kdtree::{Builder, KdTree};
use std::collections::HashMap;

const POINTS: usize = 100_001;

/// The lowest row number of the points that equal each point.
fn first_equals<T: Value>(points: &Array2<T>) -> Vec<u32> {
    let mut first = HashMap::new();
    // The sum with +0 is +0 for either zero.
    let bits = |&x: &T| (x + T::zero()).to_bits();
    let rows = points.outer_iter().zip(0..);
    rows.map(|(row, at)| *first.entry(row.iter().map(bits).collect::<Vec<_>>()).or_insert(at)).collect()
}

/// Every `step`th point finds itself, or the first that equals it, and some queries find what brute force does.
fn check<T: Value, const D: usize>(cloud: Cloud, leaf: usize, step: usize) {
    let mut random = Random::new(8);
    let points: Array2<T> = cloud.points(POINTS, D, &mut random);
    let queries = cloud.queries(&points, 50, &mut random);
    let (expected, first) = (BruteForce::new(points.view()).knn(queries.view(), 7), first_equals(&points));
    for count in threads::COUNTS {
        threads::with(count, || {
            let tree: KdTree<T, D> = Builder::default().leaf_size(leaf).build(points.view()).unwrap();
            assert_neighbors(&tree.knn(queries.view(), 7).unwrap(), &expected);
            let found = tree.knn(points.slice(s![..;step, ..]), 1).unwrap();
            assert!(found.indices.iter().eq(first.iter().step_by(step)), "{cloud:?} by {count} threads");
            assert!(found.distances.iter().all(|d| *d == T::zero()));
        });
    }
}

#[test]
fn uniform() {
    check::<f32, 3>(Cloud::Uniform, 32, 1);
    check::<f64, 3>(Cloud::Uniform, 16, 1);
}

#[test]
fn stretched() {
    check::<f32, 2>(Cloud::Stretched, 32, 1);
}

#[test]
fn clustered() {
    check::<f64, 2>(Cloud::Clustered, 64, 1);
}

#[test]
fn on_a_line() {
    check::<f32, 3>(Cloud::Line, 32, 1);
}

/// Nearly all are infinitely far from each other, so nothing is pruned.
#[test]
fn huge() {
    check::<f32, 5>(Cloud::Huge, 200, 200);
}

/// Thousands of points at each of 64 places.
#[test]
fn on_a_lattice() {
    check::<f32, 3>(Cloud::Lattice, 32, 20);
}
