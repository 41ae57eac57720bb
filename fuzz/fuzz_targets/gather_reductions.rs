//! Weighted sums, pooling and reductions by segment against plain loops, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::gather_case::IdType;
use common::pooled_case::Pooling;
use common::reduction_case::{Form, Layout, Problem};
use common::segment_case::BySegment;
use common::strides::Strides;
use common::threads;
use common::values::Values;
use common::weighted_case::WeightedSums;
use libfuzzer_sys::fuzz_target;
use pullback::Level;
use pullback::gather::{OutOfRange, Reduction, Tuning};

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod gather;
    pub mod gather_case;
    pub mod groups;
    pub mod pooled_case;
    pub mod random;
    pub mod reduction_case;
    pub mod segment_case;
    pub mod segments;
    pub mod strides;
    pub mod threads;
    pub mod values;
    pub mod weighted_case;
}

/// One byte for each small number of a [`Problem`].
#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    family: u8,
    form: u8,
    sizes: [u8; 8],
    groups: u8,
    rows: u8,
    channels: u8,
    policy: u8,
    outside: u8,
    hub: bool,
    id: u8,
    double: bool,
    values: u8,
    empty: f64,
    indices: Axes,
    x: Axes,
    w: Axes,
    grad_y: Axes,
    first: Axes,
    second: Axes,
    stream: Option<bool>,
    prefetch: Option<bool>,
    parallel: Option<bool>,
    inverse: Option<bool>,
    tile: Option<u8>,
    hub_sources: Option<u8>,
    threads: u8,
    seed: u64,
}

#[derive(Arbitrary, Debug)]
struct Axes {
    order: u8,
    reversed: u8,
    halved: u8,
    broadcast: u8,
}

impl Axes {
    fn input(&self) -> Strides {
        let Self { order, reversed, halved, broadcast } = *self;
        Strides { order: order.into(), reversed, halved, broadcast }
    }

    fn output(&self) -> Strides {
        Strides { broadcast: 0, ..self.input() }
    }
}

fn one_of<T: Copy>(choices: &[T], byte: u8) -> T {
    choices[byte as usize % choices.len()]
}

impl Input {
    fn level(&self) -> Level {
        let available = Level::ALL.into_iter().filter(|level| level.is_available());
        one_of(&available.collect::<Vec<_>>(), self.level)
    }

    fn form(&self) -> Form {
        let size = |axis: usize, bound: u8| usize::from(self.sizes[axis] % bound);
        match self.form % 3 {
            0 => Form::Batched([size(0, 4), size(1, 8), size(2, 8)]),
            1 => Form::Unbatched([size(0, 16), size(1, 16)]),
            _ => Form::Ragged((0..usize::from(self.groups % 9)).map(|group| size(group, 24)).collect()),
        }
    }

    fn problem(&self) -> Problem {
        let least = |least: u8| move |size: u8| usize::from(size.max(least));
        Problem {
            form: self.form(),
            rows: usize::from(self.rows % 64),
            channels: usize::from(self.channels % 130),
            policy: one_of(&[OutOfRange::Error, OutOfRange::Skip { fill: 0.5 }, OutOfRange::Clamp], self.policy),
            outside: self.outside.into(),
            hub: self.hub,
            id: one_of(&[IdType::I32, IdType::I64, IdType::U32, IdType::Usize], self.id),
            double: self.double,
            values: one_of(&[Values::Integers, Values::Spread, Values::Adversarial, Values::Tied], self.values),
            empty: self.empty,
            layout: Layout {
                indices: self.indices.input(),
                x: self.x.input(),
                w: self.w.input(),
                grad_y: self.grad_y.input(),
                first: self.first.output(),
                second: self.second.output(),
            },
            tuning: Tuning {
                stream: self.stream,
                prefetch: self.prefetch,
                parallel: self.parallel,
                reduction: self.inverse.map(|inverse| if inverse { Reduction::Inverse } else { Reduction::Slab }),
                tile: self.tile.map(least(1)),
                hub: self.hub_sources.map(least(0)),
            },
            threads: one_of(&threads::COUNTS, self.threads),
            seed: self.seed,
        }
    }
}

fuzz_target!(|input: Input| {
    let (problem, level) = (input.problem(), input.level());
    match input.family % 3 {
        0 => problem.check::<WeightedSums>(level),
        1 => problem.check::<Pooling>(level),
        _ => problem.check::<BySegment>(level),
    }
});
