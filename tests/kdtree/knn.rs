//! The k-d tree against brute force: the same bits at every level, whatever the data, the sizes, the leaves, the number
//! of threads and the choices that are made by size.

use crate::common::cloud::Cloud;
use crate::common::levels;
use crate::common::neighbors::tunings;
use crate::common::neighbors_case::Case;
use crate::common::neighbors_strategy::{LEAVES, NEIGHBORS, POINTS, QUERIES, cases};
use crate::common::problems::check_random;
use crate::common::threads;
use pullback::kdtree::Tuning;

/// A vector of queries a traversal, and one query a traversal.
fn traversals() -> [Tuning; 2] {
    [true, false].map(|packets| Tuning { packets: Some(packets), ..Tuning::default() })
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(1000, &cases(), |case| case.check(level)));
}

#[test]
fn every_dimension() {
    levels::each(|level| {
        for (dims, tuning) in (1..=16).flat_map(|dims| traversals().map(|tuning| (dims, tuning))) {
            let case = Case { dims, points: 200, tuning, ..Case::default() };
            Case { cloud: Cloud::Lattice, ..case.clone() }.check(level);
            Case { double: true, k: 20, ..case }.check(level);
        }
    });
}

#[test]
fn every_cloud() {
    levels::each(|level| {
        for (cloud, tuning) in Cloud::ALL.into_iter().flat_map(|cloud| traversals().map(|tuning| (cloud, tuning))) {
            for (dims, double) in [1, 2, 3, 7].into_iter().flat_map(|dims| [(dims, false), (dims, true)]) {
                Case { cloud, dims, double, tuning, points: 300, ..Case::default() }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_points_and_leaf_size() {
    levels::each(|level| {
        for (points, leaf) in POINTS.into_iter().flat_map(|points| LEAVES.map(|leaf| (points, leaf))) {
            for (tuning, cloud) in traversals().into_iter().flat_map(|t| [(t, Cloud::Uniform), (t, Cloud::Lattice)]) {
                let case = Case { points, leaf, tuning, cloud, dims: 2, ..Case::default() };
                case.check(level);
                Case { double: true, ..case }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_neighbors() {
    levels::each(|level| {
        for (k, tuning) in NEIGHBORS.into_iter().chain([99, 100, 101, 200]).flat_map(|k| traversals().map(|t| (k, t))) {
            for (cloud, double) in [(Cloud::Uniform, false), (Cloud::Lattice, true), (Cloud::Equal, false)] {
                Case { k, cloud, double, tuning, ..Case::default() }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_queries() {
    levels::each(|level| {
        for (queries, tuning) in QUERIES.into_iter().flat_map(|queries| tunings().map(move |t| (queries, t))) {
            for double in [false, true] {
                Case { queries, tuning, double, ..Case::default() }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_threads() {
    levels::each(|level| {
        for (threads, tuning) in threads::COUNTS.into_iter().flat_map(|n| tunings().map(move |tuning| (n, tuning))) {
            let case = Case { threads, tuning, points: 600, queries: 300, ..Case::default() };
            Case { cloud: Cloud::Lattice, ..case.clone() }.check(level);
            Case { double: true, holes: 3, absent: true, k: 17, ..case }.check(level);
        }
    });
}
