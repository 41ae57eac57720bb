//! Random problems, and the smallest that fails.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use std::fmt::Debug;

/// Checks `n` random problems, or fewer where `PROPTEST_CASES` says so; a failure names the smallest that was found.
pub fn check_random<C: Debug>(n: u32, cases: &impl Strategy<Value = C>, check: impl Fn(C)) {
    let defaults = Config::default();
    let cases_to_run = if std::env::var_os("PROPTEST_CASES").is_some() { n.min(defaults.cases) } else { n };
    let config = Config { failure_persistence: None, cases: cases_to_run, ..defaults };
    // The same problems in every run: the fuzzer is what looks for new ones.
    let random = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let outcome = TestRunner::new_with_rng(config, random).run(cases, |case| {
        check(case);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
