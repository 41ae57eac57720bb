//! Random problems, and the smallest that fails.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::fmt::Debug;

/// Checks `n` random problems; a failure names the smallest that was found.
pub fn check_random<C: Debug>(n: u32, cases: &impl Strategy<Value = C>, check: impl Fn(C)) {
    let config = Config { failure_persistence: None, ..Config::with_cases(n) };
    let outcome = TestRunner::new(config).run(cases, |case| {
        check(case);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}
