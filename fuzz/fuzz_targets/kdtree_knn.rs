//! The search of neighbours against brute force, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::cloud::Cloud;
use common::neighbors_case::Case;
use common::threads;
use libfuzzer_sys::fuzz_target;
use pullback::Level;
use pullback::kdtree::Tuning;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod cloud;
    pub mod neighbors;
    pub mod neighbors_case;
    pub mod random;
    pub mod threads;
    pub mod values;
}

/// One byte or two for each small number of a [`Case`].
#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    dims: u8,
    points: u16,
    queries: u8,
    k: u8,
    cloud: u8,
    palette: [f64; 4],
    holes: u8,
    absent: bool,
    leaf: u8,
    double: bool,
    packets: Option<bool>,
    sort: Option<bool>,
    parallel: Option<bool>,
    threads: u8,
    seed: u64,
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
        Case {
            dims: 1 + usize::from(self.dims % 16),
            points: usize::from(self.points % 400),
            queries: usize::from(self.queries % 70),
            k: usize::from(self.k),
            cloud: Cloud::ALL.get(usize::from(self.cloud)).copied().unwrap_or(Cloud::Palette(self.palette)),
            holes: self.holes.into(),
            absent: self.absent,
            leaf: self.leaf.into(),
            double: self.double,
            tuning: Tuning { packets: self.packets, sort: self.sort, parallel: self.parallel },
            threads: one_of(&threads::COUNTS, self.threads),
            seed: self.seed,
        }
    }
}

fuzz_target!(|input: Input| input.case().check(input.level()));
