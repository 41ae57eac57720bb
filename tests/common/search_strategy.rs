//! Random problems for every search of a tree, small ones around every boundary.

use super::limits::Limit;
use super::neighbors_case::Case;
use super::neighbors_strategy;
use super::search_case::SearchCase;
use super::space::{Axes, METRICS};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub fn searches() -> impl Strategy<Value = SearchCase> {
    let cases = (neighbors_strategy::cases(), prop_oneof![6 => 2usize..=4, 4 => 1usize..=16]);
    // All pairs of points are compared.
    let cases = cases.prop_map(|(case, dims)| Case { dims, points: case.points.min(400), ..case });
    let periodic = prop_oneof![2 => Just(Axes::None), 1 => Just(Axes::Some), 2 => Just(Axes::All)];
    let limits = (option::of(limit()), limit(), any::<bool>());
    let reports = (any::<bool>(), any::<bool>());
    (cases, select(METRICS.to_vec()), periodic, limits, reports).prop_map(
        |(case, metric, periodic, (bound, radius, each), (squared, by_distance))| SearchCase {
            case,
            metric,
            periodic,
            bound,
            radius,
            each,
            squared,
            by_distance,
        },
    )
}

fn limit() -> impl Strategy<Value = Limit> {
    prop_oneof![3 => Just(Limit::Any), 3 => Just(Limit::Distance), 2 => select(Limit::ALL.to_vec())]
}
