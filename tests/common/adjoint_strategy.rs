//! Random problems for the gradients of distances.

use super::adjoint_case::{AdjointCase, AdjointLayout, Named};
use super::neighbors_case::Case;
use super::search_case::SearchCase;
use super::search_strategy::searches;
use super::strides::Strides;
use proptest::prelude::*;
use proptest::sample::select;

pub fn adjoints() -> impl Strategy<Value = AdjointCase> {
    let named = prop_oneof![3 => Just(Named::Found), 1 => select(Named::ALL.to_vec())];
    let outputs = || strides(false);
    (searches(), named, [strides(true), strides(true), strides(true)], [outputs(), outputs()]).prop_map(
        |(search, named, [queries, indices, grad_distances], [grad_queries, grad_points])| AdjointCase {
            search: absent(search),
            named,
            layout: AdjointLayout { queries, indices, grad_distances, grad_queries, grad_points },
        },
    )
}

/// Rows that are not finite are absent: what else happens to them is another test's matter.
pub fn absent(search: SearchCase) -> SearchCase {
    SearchCase { case: Case { absent: true, ..search.case }, ..search }
}

/// Mostly standard layout.
pub fn strides(broadcast: bool) -> BoxedStrategy<Strides> {
    let any = (0usize..2, 0u8..4, 0u8..4, 0u8..4).prop_map(move |(order, reversed, halved, axes)| Strides {
        order,
        reversed,
        halved,
        broadcast: if broadcast { axes } else { 0 },
    });
    prop_oneof![5 => Just(Strides::default()), 1 => any].boxed()
}
