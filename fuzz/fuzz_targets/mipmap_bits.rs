//! Pyramids of bits built, changed and asked against dense arrays, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::mipmap::Fill;
use common::mipmap_case::{Input as Given, MipmapCase};
use common::strides::Strides;
use common::threads;
use libfuzzer_sys::fuzz_target;
use pullback::Level;
use pullback::mipmap::Tuning;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod mipmap;
    pub mod mipmap_case;
    pub mod random;
    pub mod strides;
    pub mod threads;
    pub mod values;
}

/// One byte for each small number of a problem.
#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    shape: [u8; 3],
    fill: u8,
    given: u8,
    slabs: bool,
    /// All where it is 0.
    levels: u8,
    tuning: [Option<bool>; 3],
    /// None where it is 0.
    task: u8,
    order: u8,
    reversed: u8,
    halved: u8,
    changes: u8,
    threads: u8,
    seed: u64,
}

fn one_of<T: Copy>(choices: &[T], at: u8) -> T {
    choices[usize::from(at) % choices.len()]
}

fuzz_target!(|input: Input| {
    let available: Vec<Level> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
    let [parallel, fused, stream] = input.tuning;
    let case = MipmapCase {
        shape: input.shape.map(|n| 1 + usize::from(n) % 80),
        fill: one_of(&Fill::ALL, input.fill),
        input: one_of(&Given::ALL, input.given),
        slabs: input.slabs,
        levels: (input.levels > 0).then_some(input.levels.into()),
        tuning: Tuning { parallel, fused, stream, task: (input.task > 0).then_some(input.task.into()) },
        strides: Strides {
            order: usize::from(input.order) % 6,
            reversed: input.reversed,
            halved: input.halved,
            broadcast: 0,
        },
        changes: usize::from(input.changes % 8),
        threads: one_of(&threads::COUNTS, input.threads),
        seed: input.seed,
    };
    // The dense references look at every cell many times.
    if case.shape.iter().product::<usize>() < 40_000 {
        case.check(one_of(&available, input.level));
    }
});
