//! Random problems for the reductions of gathered rows, small ones around every boundary.

use super::gather_case::IdType;
use super::gather_strategy::{strides, tunings, widths};
use super::reduction_case::{Form, Layout, Problem};
use super::threads;
use super::values::Values;
use proptest::prelude::*;
use proptest::sample::select;
use pullback::gather::OutOfRange;

pub fn problems() -> impl Strategy<Value = Problem> {
    let sizes = (
        prop_oneof![
            3 => [0usize..4, 0usize..10, 0usize..7].prop_map(Form::Batched),
            1 => [0usize..12, 0usize..9].prop_map(Form::Unbatched),
            3 => prop::collection::vec(prop_oneof![3 => 0usize..5, 1 => 0usize..40], 0..8).prop_map(Form::Ragged),
        ],
        prop_oneof![0usize..4, 0usize..30],
        select(widths().collect::<Vec<_>>()),
    );
    let ids = (
        prop_oneof![
            1 => Just((OutOfRange::Error, 0)),
            1 => Just((OutOfRange::Error, 50)),
            2 => Just((OutOfRange::Clamp, 4)),
            3 => (1usize..5).prop_map(|outside| (OutOfRange::Skip { fill: 0.5 }, outside)),
        ],
        any::<bool>(),
        select(vec![IdType::I32, IdType::I64, IdType::U32, IdType::Usize]),
    );
    let values = vec![Values::Integers, Values::Spread, Values::Adversarial, Values::Tied];
    let empty = vec![0.0, -0.0, -2.5, 0.1, 1e300, f64::NAN, f64::NEG_INFINITY];
    let data = (any::<bool>(), select(values), select(empty), any::<u64>());
    (sizes, ids, data, layouts(), tunings(), select(threads::COUNTS.to_vec())).prop_map(
        |((form, rows, channels), ((policy, outside), hub, id), data, layout, tuning, threads)| {
            let (double, values, empty, seed) = data;
            Problem {
                form,
                rows,
                channels,
                policy,
                outside,
                hub,
                id,
                double,
                values,
                empty,
                layout,
                tuning,
                threads,
                seed,
            }
        },
    )
}

fn layouts() -> impl Strategy<Value = Layout> {
    let (input, output) = (|| strides(any::<u8>().boxed()), || strides(Just(0).boxed()));
    (input(), input(), input(), input(), output(), output()).prop_map(|(indices, x, w, grad_y, first, second)| Layout {
        indices,
        x,
        w,
        grad_y,
        first,
        second,
    })
}
