//! A tree and its queries from bytes of the fuzzer.

use crate::common::cloud::Cloud;
use crate::common::neighbors_case::Case;
use crate::common::threads;
use arbitrary::Arbitrary;
use pullback::Level;
use pullback::kdtree::Tuning;

/// One byte or two for each small number of a [`Case`].
#[derive(Arbitrary, Debug)]
pub struct Input {
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

pub fn one_of<T: Copy>(choices: &[T], byte: u8) -> T {
    choices[byte as usize % choices.len()]
}

impl Input {
    pub fn level(&self) -> Level {
        let available = Level::ALL.into_iter().filter(|level| level.is_available());
        one_of(&available.collect::<Vec<_>>(), self.level)
    }

    pub fn case(&self) -> Case {
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
