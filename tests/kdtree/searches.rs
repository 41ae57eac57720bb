//! Every search against brute force: the same bits at every level, whatever the data, the metric, the box, the bounds and
//! radii, the leaves, the number of threads and the choices that are made by size.

use crate::common::cloud::Cloud;
use crate::common::levels;
use crate::common::limits::Limit;
use crate::common::neighbors::tunings;
use crate::common::neighbors_case::Case;
use crate::common::neighbors_strategy::{LEAVES, NEIGHBORS, POINTS, QUERIES};
use crate::common::problems::check_random;
use crate::common::search_case::SearchCase;
use crate::common::search_strategy::searches;
use crate::common::space::{Axes, METRICS};
use crate::common::threads;

const SPACES: [Axes; 3] = [Axes::None, Axes::Some, Axes::All];

/// Every metric in every kind of space.
fn geometries() -> impl Iterator<Item = SearchCase> {
    let geometries = METRICS.into_iter().flat_map(|metric| SPACES.map(|periodic| (metric, periodic)));
    geometries.map(|(metric, periodic)| SearchCase { metric, periodic, ..SearchCase::default() })
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(400, &searches(), |search| search.check(level)));
}

#[test]
fn every_dimension() {
    levels::each(|level| {
        for (dims, geometry) in (1..=16).flat_map(|dims| geometries().map(move |geometry| (dims, geometry))) {
            let case = Case { dims, points: 150, ..Case::default() };
            SearchCase { case: Case { cloud: Cloud::Lattice, ..case.clone() }, ..geometry.clone() }.check(level);
            let case = Case { double: true, k: 20, ..case };
            SearchCase { case, bound: Some(Limit::Any), each: true, ..geometry }.check(level);
        }
    });
}

#[test]
fn every_cloud() {
    levels::each(|level| {
        for (cloud, geometry) in Cloud::ALL.into_iter().flat_map(|cloud| geometries().map(move |g| (cloud, g))) {
            for (dims, double, each) in [(1, false, true), (2, true, false), (3, false, false), (3, true, true)] {
                let case = Case { cloud, dims, double, ..Case::default() };
                let bound = Some(if each { Limit::Distance } else { Limit::Infinite });
                SearchCase { case, bound, each, by_distance: double, ..geometry.clone() }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_points_and_leaf_size() {
    levels::each(|level| {
        for (points, leaf) in POINTS.into_iter().flat_map(|points| LEAVES.map(|leaf| (points, leaf))) {
            for (at, geometry) in geometries().enumerate() {
                let case = Case { points, leaf, double: at % 2 == 1, dims: 2, ..Case::default() };
                SearchCase { case, ..geometry }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_neighbors_with_every_bound() {
    levels::each(|level| {
        for (k, bound) in NEIGHBORS.into_iter().chain([99, 100, 101]).flat_map(|k| Limit::ALL.map(|bound| (k, bound))) {
            for (cloud, double) in [(Cloud::Uniform, false), (Cloud::Lattice, true), (Cloud::Equal, false)] {
                let case = Case { k, cloud, double, ..Case::default() };
                let search = SearchCase { case, bound: Some(bound), ..SearchCase::default() };
                search.check(level);
                SearchCase { each: true, periodic: Axes::All, squared: true, ..search }.check(level);
            }
        }
    });
}

#[test]
fn every_radius() {
    levels::each(|level| {
        for (radius, each) in Limit::ALL.into_iter().flat_map(|radius| [(radius, false), (radius, true)]) {
            for (by_distance, geometry) in [false, true].into_iter().flat_map(|by| geometries().map(move |g| (by, g))) {
                for cloud in [Cloud::Uniform, Cloud::Lattice, Cloud::Huge, Cloud::Subnormal] {
                    let case = Case { cloud, double: each, ..Case::default() };
                    SearchCase { case, radius, each, by_distance, squared: by_distance, ..geometry.clone() }
                        .check(level);
                }
            }
        }
    });
}

#[test]
fn every_number_of_queries() {
    levels::each(|level| {
        for (queries, tuning) in QUERIES.into_iter().flat_map(|queries| tunings().map(move |t| (queries, t))) {
            for (each, periodic) in [(false, Axes::None), (true, Axes::All)] {
                let case = Case { queries, tuning, double: each, ..Case::default() };
                SearchCase { case, bound: Some(Limit::Any), each, periodic, ..SearchCase::default() }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_threads() {
    levels::each(|level| {
        for (threads, tuning) in threads::COUNTS.into_iter().flat_map(|n| tunings().map(move |tuning| (n, tuning))) {
            let case = Case { threads, tuning, points: 200, queries: 200, ..Case::default() };
            let search = SearchCase { each: true, bound: Some(Limit::Any), ..SearchCase::default() };
            SearchCase { case: Case { cloud: Cloud::Lattice, ..case.clone() }, ..search.clone() }.check(level);
            let case = Case { double: true, holes: 3, absent: true, k: 17, ..case };
            SearchCase { case, periodic: Axes::Some, ..search }.check(level);
        }
    });
}
