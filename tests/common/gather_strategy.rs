//! Random problems for the row gather, small ones around every boundary.

use super::gather_case::{Case, IdType, Layout};
use super::strides::Strides;
use super::threads;
use super::values::Values;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use pullback::gather::{OutOfRange, Reduction, Tuning};

/// Rows around the lengths of vectors and of blocks of vectors.
pub fn widths() -> impl Iterator<Item = usize> + Clone {
    (0..=70).chain([127, 128, 129])
}

pub fn cases() -> impl Strategy<Value = Case> {
    let sizes = (
        prop_oneof![
            4 => (0usize..4, 0usize..12, 0usize..9).prop_map(|(b, p, s)| (true, vec![b, p, s])),
            1 => prop::collection::vec(0usize..5, 1..=4).prop_map(|shape| (true, shape)),
            1 => prop::collection::vec(0usize..7, 0..=3).prop_map(|shape| (false, shape)),
        ],
        prop_oneof![0usize..4, 0usize..40],
        select(widths().collect::<Vec<_>>()),
    );
    let ids = (
        prop_oneof![
            Just((OutOfRange::Error, 0)),
            Just((OutOfRange::Error, 50)),
            Just((OutOfRange::Clamp, 4)),
            select(vec![0.0, -0.0, 0.1, 1e300, f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
                .prop_map(|fill| (OutOfRange::Skip { fill }, 4)),
        ],
        any::<bool>(),
        select(vec![IdType::I32, IdType::I64, IdType::U32, IdType::Usize]),
    );
    let data = (any::<bool>(), select(vec![Values::Spread, Values::Adversarial]), any::<u64>());
    (sizes, ids, data, layouts(), tunings(), select(threads::COUNTS.to_vec())).prop_map(
        |(((batched, shape), rows, channels), ((policy, outside), hub, id), data, layout, tuning, threads)| {
            let (double, values, seed) = data;
            Case {
                batched,
                shape,
                rows,
                channels,
                policy,
                outside,
                hub,
                id,
                double,
                values,
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
    (input(), input(), output(), input(), output()).prop_map(|(indices, x, y, grad_y, grad_x)| Layout {
        indices,
        x,
        y,
        grad_y,
        grad_x,
    })
}

/// Half of them standard, the fast path.
pub fn strides(broadcast: BoxedStrategy<u8>) -> impl Strategy<Value = Strides> {
    let mask = || prop_oneof![2 => Just(0), 1 => any::<u8>()];
    let broadcast = prop_oneof![3 => Just(0), 1 => broadcast];
    let any = (prop_oneof![Just(0), 0usize..24], mask(), mask(), broadcast)
        .prop_map(|(order, reversed, halved, broadcast)| Strides { order, reversed, halved, broadcast });
    prop_oneof![Just(Strides::default()), any]
}

pub fn tunings() -> impl Strategy<Value = Tuning> {
    let size = || option::of(1usize..10);
    let reduction = option::of(select(vec![Reduction::Slab, Reduction::Inverse]));
    (option::of(any::<bool>()), option::of(any::<bool>()), option::of(any::<bool>()), reduction, size(), size())
        .prop_map(|(stream, prefetch, parallel, reduction, tile, hub)| Tuning {
            stream,
            prefetch,
            parallel,
            reduction,
            tile,
            hub,
        })
}
