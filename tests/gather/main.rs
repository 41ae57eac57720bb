//! The tests of `gather`: one crate, since each is compiled with its own copy of what it shares with the others.

#[path = "../common/mod.rs"]
mod common;

mod adjoint;
mod compact;
mod concurrency;
mod errors;
mod forms;
mod frame;
mod outputs;
mod policies;
mod pooled;
mod reductions_adjoint;
mod reductions_errors;
mod reductions_regressions;
mod regressions;
mod rows;
mod segment;
mod sizes;
mod weighted;
