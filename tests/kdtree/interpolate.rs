//! Interpolation against plain loops: weights and gradients to positions near those in f64, everything else the same bits,
//! whatever the data, the metric, the box, the power, the strides and the number of threads.

use crate::common::adjoint_strategy::absent;
use crate::common::cloud::Cloud;
use crate::common::interpolate_case::{EPSILONS, InterpolateCase, InterpolateLayout, POWERS};
use crate::common::interpolate_strategy::{CHANNELS, interpolations};
use crate::common::levels;
use crate::common::limits::Limit;
use crate::common::neighbors_case::Case;
use crate::common::problems::check_random;
use crate::common::search_case::SearchCase;
use crate::common::space::{Axes, METRICS};
use crate::common::strides::Strides;
use crate::common::threads;
use pullback::Level;
use pullback::kdtree::Tuning;

fn checked(case: Case, search: SearchCase) -> InterpolateCase {
    InterpolateCase { search: SearchCase { case, ..search }, ..InterpolateCase::default() }
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(300, &interpolations(), |interpolation| interpolation.check(level)));
}

#[test]
fn every_power_and_epsilon_on_every_cloud() {
    levels::each(|level| {
        for (power, eps) in POWERS.into_iter().flat_map(|power| EPSILONS.map(|eps| (power, eps))) {
            for (at, cloud) in Cloud::ALL.into_iter().enumerate() {
                let case = Case { cloud, dims: 1 + at % 3, double: at % 2 == 1, ..Case::default() };
                let search = SearchCase { metric: METRICS[at % 3], ..SearchCase::default() };
                InterpolateCase { power, eps, ..checked(case.clone(), search.clone()) }.check(level);
                let case = Case { double: !case.double, k: 17, queries: 9, ..case };
                let search = SearchCase { metric: METRICS[(at + 1) % 3], ..search };
                InterpolateCase { power, eps, ..checked(case, search) }.check(level);
            }
        }
    });
}

#[test]
fn every_dimension_metric_and_space() {
    levels::each(|level| {
        for (dims, metric) in (1..=16).flat_map(|dims| METRICS.map(|metric| (dims, metric))) {
            for periodic in [Axes::None, Axes::Some, Axes::All] {
                for (double, power) in [(false, 2.0), (true, 3.0), (false, 2.5)] {
                    let case = Case { dims, double, queries: 20, ..Case::default() };
                    let search = SearchCase { metric, periodic, ..SearchCase::default() };
                    InterpolateCase { power, ..checked(case, search) }.check(level);
                }
            }
        }
    });
}

#[test]
fn every_number_of_channels() {
    levels::each(|level| {
        let around = (0..=40).chain([47, 48, 49, 63, 64, 65, 127, 128, 129, 255, 256]);
        for (channels, double) in around.chain(CHANNELS).flat_map(|channels| [(channels, false), (channels, true)]) {
            let case = Case { double, queries: 17, ..Case::default() };
            InterpolateCase { channels, ..checked(case, SearchCase::default()) }.check(level);
        }
    });
}

#[test]
fn every_number_of_neighbors_points_and_queries() {
    levels::each(|level| {
        for (k, points) in [0, 1, 2, 5, 16, 17, 40].into_iter().flat_map(|k| [0, 1, 4, 17, 100].map(|n| (k, n))) {
            for queries in [0, 1, 15, 16, 17, 33] {
                let case = Case { k, points, queries, double: k % 2 == 1, ..Case::default() };
                checked(case, SearchCase::default()).check(level);
            }
        }
    });
}

#[test]
fn bounds_that_leave_padding_and_empty_rows() {
    levels::each(|level| {
        for (metric, bound) in METRICS.into_iter().flat_map(|metric| Limit::ALL.map(|bound| (metric, bound))) {
            for (each, double) in [(true, false), (true, true), (false, false), (false, true)] {
                for cloud in [Cloud::Uniform, Cloud::Lattice, Cloud::Overflow] {
                    let case = Case { cloud, double, k: 9, ..Case::default() };
                    let search = SearchCase { metric, bound: Some(bound), each, ..SearchCase::default() };
                    let problem = checked(case, search);
                    InterpolateCase { fill: -3.25, eps: 1e-3, ..problem.clone() }.check(level);
                    InterpolateCase { fill: f32::NAN, ..problem }.check(level);
                }
            }
        }
    });
}

#[test]
fn absent_points_and_queries() {
    levels::each(|level| {
        for (holes, double) in [(1, false), (2, true), (3, false), (20, true)] {
            let search = absent(SearchCase::default());
            checked(Case { holes, double, absent: true, ..Case::default() }, search).check(level);
        }
    });
}

#[test]
fn every_number_of_threads() {
    levels::each(|level| {
        for (threads, parallel) in threads::COUNTS.into_iter().flat_map(|n| [(n, None), (n, Some(true))]) {
            let tuning = Tuning { parallel, ..Tuning::default() };
            let case = Case { threads, tuning, points: 300, queries: 400, ..Case::default() };
            checked(case.clone(), SearchCase::default()).check(level);
            let problem = checked(Case { double: true, ..case }, SearchCase::default());
            InterpolateCase { channels: 33, power: 3.0, ..problem }.check(level);
        }
    });
}

/// All that is promised where arithmetic is fused: weights and gradients too.
#[test]
fn the_same_bits_for_every_number_of_threads_and_at_both_upper_levels() {
    let mut upper: Vec<(Level, Vec<u64>)> = vec![];
    levels::each(|_| {});
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let mut bits: Vec<Vec<u64>> = vec![];
        for (threads, parallel) in threads::COUNTS.into_iter().flat_map(|n| [(n, None), (n, Some(true))]) {
            let tuning = Tuning { parallel, ..Tuning::default() };
            let case = Case { threads, tuning, points: 3000, queries: 5000, ..Case::default() };
            let mut all = vec![];
            for (power, eps, metric) in [(2.0, 0.0, METRICS[0]), (2.5, 1e-3, METRICS[1]), (3.0, 1.0, METRICS[2])] {
                let search = SearchCase { metric, ..SearchCase::default() };
                let problem = InterpolateCase { power, eps, channels: 9, ..checked(case.clone(), search) };
                threads::with(threads, || {
                    all.extend(problem.results::<f32>(level).into_iter().map(|x| u64::from(x.to_bits())));
                    all.extend(problem.results::<f64>(level).into_iter().map(f64::to_bits));
                });
            }
            bits.push(all);
        }
        assert!(bits.iter().all(|other| *other == bits[0]), "threads at {level}");
        upper.push((level, bits.swap_remove(0)));
    }
    let of = |level| upper.iter().find(|(other, _)| *other == level).map(|(_, bits)| bits);
    if let (Some(v3), Some(v4)) = (of(Level::V3), of(Level::V4)) {
        assert!(v3 == v4, "V3 and V4 differ");
    }
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
            let (output, standard) = (Strides { broadcast: 0, ..input }, InterpolateLayout::default());
            for layout in [
                InterpolateLayout { queries: input, ..standard },
                InterpolateLayout { values: input, ..standard },
                InterpolateLayout { grad_y: input, ..standard },
                InterpolateLayout { y: output, ..standard },
                InterpolateLayout { grad_queries: output, ..standard },
                InterpolateLayout { grad_points: output, ..standard },
                InterpolateLayout {
                    queries: input,
                    values: input,
                    grad_y: input,
                    y: output,
                    grad_queries: output,
                    grad_points: output,
                },
            ] {
                let case = Case { points: 40, queries: 19, double: at % 2 == 1, ..Case::default() };
                let problem = checked(case, SearchCase::default());
                InterpolateCase { layout, channels: [3, 16, 18][at % 3], ..problem }.check(level);
            }
        }
    });
}
