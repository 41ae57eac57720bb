//! Random problems for interpolation.

use super::adjoint_strategy::{absent, strides};
use super::interpolate_case::{EPSILONS, InterpolateCase, InterpolateLayout, POWERS};
use super::neighbors_case::Case;
use super::search_case::SearchCase;
use super::search_strategy::searches;
use proptest::prelude::*;
use proptest::sample::select;

/// Around the lengths of vectors and their multiples.
pub const CHANNELS: [usize; 21] = [0, 1, 2, 3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 127, 128, 256];

pub fn interpolations() -> impl Strategy<Value = InterpolateCase> {
    let weighing = (prop_oneof![4 => select(POWERS.to_vec()), 1 => 0.1f32..12.0], select(EPSILONS.to_vec()));
    let channels = prop_oneof![4 => 0usize..10, 2 => select(CHANNELS.to_vec())];
    let inputs = [strides(true), strides(true), strides(true)];
    let outputs = [strides(false), strides(false), strides(false)];
    (searches(), weighing, channels, -9f32..9.0, inputs, outputs).prop_map(
        |(search, (power, eps), channels, fill, [queries, values, grad_y], [y, grad_queries, grad_points])| {
            let layout = InterpolateLayout { queries, values, grad_y, y, grad_queries, grad_points };
            InterpolateCase { search: small(absent(search)), channels, power, eps, fill, layout }
        },
    )
}

/// The reference takes its time.
fn small(search: SearchCase) -> SearchCase {
    let case = search.case;
    SearchCase { case: Case { queries: case.queries.min(60), k: case.k.min(40), ..case }, ..search }
}
