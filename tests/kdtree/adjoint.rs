//! Gradients of distances against plain loops: the same bits at every level, whatever the data, the metric, the box, the
//! indices, the strides and the number of threads.

use crate::common::adjoint_case::{AdjointCase, AdjointLayout, Named};
use crate::common::adjoint_strategy::adjoints;
use crate::common::cloud::Cloud;
use crate::common::levels;
use crate::common::limits::Limit;
use crate::common::neighbors::tunings;
use crate::common::neighbors_case::Case;
use crate::common::neighbors_strategy::{NEIGHBORS, POINTS, QUERIES};
use crate::common::problems::check_random;
use crate::common::search_case::SearchCase;
use crate::common::space::{Axes, METRICS};
use crate::common::strides::Strides;
use crate::common::threads;

/// Every metric in every kind of space, squared or not.
fn geometries() -> impl Iterator<Item = SearchCase> {
    let spaces = [Axes::None, Axes::Some, Axes::All];
    let metrics = METRICS.into_iter().flat_map(|metric| [(metric, false), (metric, true)]);
    let geometries = metrics.flat_map(move |metric| spaces.map(|periodic| (metric, periodic)));
    geometries.map(|((metric, squared), periodic)| SearchCase { metric, squared, periodic, ..SearchCase::default() })
}

fn checked(case: Case, geometry: SearchCase, named: Named) -> AdjointCase {
    AdjointCase { search: SearchCase { case, ..geometry }, named, ..AdjointCase::default() }
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(200, &adjoints(), |adjoint| adjoint.check(level)));
}

#[test]
fn every_dimension() {
    levels::each(|level| {
        for (dims, geometry) in (1..=16).flat_map(|dims| geometries().map(move |geometry| (dims, geometry))) {
            let case = Case { dims, points: 60, ..Case::default() };
            checked(Case { cloud: Cloud::Lattice, ..case.clone() }, geometry.clone(), Named::Found).check(level);
            checked(Case { double: true, k: 17, ..case }, geometry, Named::Any).check(level);
        }
    });
}

#[test]
fn every_cloud() {
    levels::each(|level| {
        for (cloud, geometry) in Cloud::ALL.into_iter().flat_map(|cloud| geometries().map(move |g| (cloud, g))) {
            for (dims, double, named) in [(1, true, Named::Hub), (2, false, Named::Found), (3, true, Named::Any)] {
                checked(Case { cloud, dims, double, ..Case::default() }, geometry.clone(), named).check(level);
            }
        }
    });
}

#[test]
fn every_number_of_neighbors_points_and_queries() {
    levels::each(|level| {
        for (at, geometry) in geometries().enumerate() {
            for k in NEIGHBORS {
                let (points, queries) = (POINTS[(k + at) % POINTS.len()], QUERIES[(k + at) % QUERIES.len()]);
                let case = Case { k, points, queries, double: at % 2 == 1, ..Case::default() };
                checked(case, geometry.clone(), Named::ALL[k % 3]).check(level);
            }
        }
        for (points, queries) in POINTS.into_iter().flat_map(|points| QUERIES.map(|queries| (points, queries))) {
            let case = Case { points, queries, dims: 2, ..Case::default() };
            checked(case, SearchCase::default(), Named::Found).check(level);
        }
    });
}

#[test]
fn more_neighbors_than_points_and_bounds_that_leave_rows_empty() {
    levels::each(|level| {
        for (geometry, bound) in geometries().flat_map(|geometry| Limit::ALL.map(|bound| (geometry.clone(), bound))) {
            let search = SearchCase { bound: Some(bound), each: true, ..geometry };
            checked(Case { points: 4, k: 9, ..Case::default() }, search.clone(), Named::Found).check(level);
            checked(Case { k: 9, double: true, cloud: Cloud::Lattice, ..Case::default() }, search, Named::Found)
                .check(level);
        }
    });
}

#[test]
fn absent_points_and_queries() {
    levels::each(|level| {
        for (holes, geometry) in [1, 2, 20].into_iter().flat_map(|holes| geometries().map(move |g| (holes, g))) {
            for named in Named::ALL {
                let case = Case { holes, absent: true, ..Case::default() };
                checked(case, geometry.clone(), named).check(level);
            }
        }
    });
}

#[test]
fn every_number_of_threads() {
    levels::each(|level| {
        for (threads, tuning) in threads::COUNTS.into_iter().flat_map(|n| tunings().map(move |tuning| (n, tuning))) {
            for named in Named::ALL {
                let case = Case { threads, tuning, points: 300, queries: 200, ..Case::default() };
                checked(case.clone(), SearchCase::default(), named).check(level);
                let search = SearchCase { periodic: Axes::Some, squared: true, ..SearchCase::default() };
                checked(Case { double: true, k: 17, ..case }, search, named).check(level);
            }
        }
    });
}

/// So many that several threads have a part of both gradients where that is chosen by size.
#[test]
fn many_queries_and_many_points() {
    levels::each(|level| {
        for (threads, named) in [1, 2, 3, 7].into_iter().zip([Named::Found, Named::Any, Named::Hub, Named::Found]) {
            let case = Case { threads, points: 2000, queries: 12_000, cloud: Cloud::Clustered, ..Case::default() };
            let search = SearchCase { periodic: Axes::Some, ..SearchCase::default() };
            checked(case.clone(), search.clone(), named).check(level);
            checked(Case { points: 12_000, queries: 2000, double: true, ..case }, search, named).check(level);
        }
    });
}

#[test]
fn every_pattern_of_strides() {
    let patterns = (0..128usize).map(|bits| Strides {
        order: bits & 1,
        reversed: (bits >> 1 & 3) as u8,
        halved: (bits >> 3 & 3) as u8,
        broadcast: (bits >> 5 & 3) as u8,
    });
    levels::each(|level| {
        for (at, input) in patterns.clone().enumerate() {
            let (output, standard) = (Strides { broadcast: 0, ..input }, AdjointLayout::default());
            for layout in [
                AdjointLayout { queries: input, ..standard },
                AdjointLayout { indices: input, ..standard },
                AdjointLayout { grad_distances: input, ..standard },
                AdjointLayout { grad_queries: output, ..standard },
                AdjointLayout { grad_points: output, ..standard },
                AdjointLayout {
                    queries: input,
                    indices: input,
                    grad_distances: input,
                    grad_queries: output,
                    grad_points: output,
                },
            ] {
                let case = Case { points: 40, queries: 19, double: at % 2 == 1, ..Case::default() };
                let search = SearchCase { metric: METRICS[at % 3], ..SearchCase::default() };
                AdjointCase { layout, ..checked(case, search, Named::Any) }.check(level);
            }
        }
    });
}
