//! What is promised where arithmetic is fused: the same bits for every number of threads, and at both upper levels.

use crate::common::threads;
use crate::common::values::Value;
use pullback::{Level, Result};
use std::fmt::Debug;

/// Of all that is computed.
pub fn bits<T: Value>(results: Result<Vec<T>>) -> Vec<u64> {
    results.expect("no overflow").into_iter().map(Value::to_bits).collect()
}

/// `run` gives the bits of `case` at a level, with threads, without, or as its size says. They are returned for each level.
pub fn check(case: &impl Debug, run: impl Fn(Level, Option<bool>) -> Vec<u64> + Send + Sync) -> Vec<(Level, Vec<u64>)> {
    let mut at_level: Vec<(Level, Vec<u64>)> = vec![];
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let runs = threads::COUNTS.into_iter().flat_map(|n| [(n, None), (n, Some(true))]);
        let mut found = [(1, Some(false))].into_iter().chain(runs);
        let of = |(count, parallel)| threads::with(count, || run(level, parallel));
        let first = of(found.next().expect("some"));
        assert!(found.all(|run| of(run) == first), "threads at {level}: {case:?}");
        at_level.push((level, first));
    }
    let of = |level| at_level.iter().find(|(other, _)| *other == level).map(|(_, bits)| bits);
    if let (Some(v3), Some(v4)) = (of(Level::V3), of(Level::V4)) {
        assert!(v3 == v4, "V3 and V4 differ: {case:?}");
    }
    at_level
}
