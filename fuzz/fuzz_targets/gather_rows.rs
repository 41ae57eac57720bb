//! The row gather and its adjoint against plain loops, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::gather_case::{Case, IdType, Layout};
use common::strides::Strides;
use common::threads;
use common::values::Values;
use libfuzzer_sys::fuzz_target;
use pullback::Level;
use pullback::gather::{OutOfRange, Reduction, Tuning};
use std::iter::zip;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod gather;
    pub mod gather_case;
    pub mod random;
    pub mod strides;
    pub mod threads;
    pub mod values;
}

/// One byte for each small number of a [`Case`].
#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    batched: bool,
    shape: [u8; 4],
    ndim: u8,
    rows: u8,
    channels: u8,
    policy: u8,
    fill: f64,
    outside: u8,
    hub: bool,
    id: u8,
    double: bool,
    values: u8,
    indices: Axes,
    x: Axes,
    y: Axes,
    grad_y: Axes,
    grad_x: Axes,
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

    fn case(&self) -> Case {
        let ndim = if self.batched { 1 + self.ndim % 4 } else { self.ndim % 5 };
        let least = |least: u8| move |size: u8| usize::from(size.max(least));
        Case {
            batched: self.batched,
            shape: zip(self.shape, [6, 6, 4, 4]).take(ndim.into()).map(|(n, bound)| usize::from(n % bound)).collect(),
            rows: usize::from(self.rows % 64),
            channels: usize::from(self.channels % 130),
            policy: one_of(&[OutOfRange::Error, OutOfRange::Skip { fill: self.fill }, OutOfRange::Clamp], self.policy),
            outside: self.outside.into(),
            hub: self.hub,
            id: one_of(&[IdType::I32, IdType::I64, IdType::U32, IdType::Usize], self.id),
            double: self.double,
            values: one_of(&[Values::Integers, Values::Spread, Values::Adversarial], self.values),
            layout: Layout {
                indices: self.indices.input(),
                x: self.x.input(),
                y: self.y.output(),
                grad_y: self.grad_y.input(),
                grad_x: self.grad_x.output(),
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

fuzz_target!(|input: Input| input.case().check(input.level()));
