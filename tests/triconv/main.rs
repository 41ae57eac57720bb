//! The tests of `triconv`: one crate, since each is compiled with its own copy of what it shares with the others.

#[path = "../common/mod.rs"]
mod common;

mod adjoint;
mod causality;
mod correlation;
mod errors;
mod large;
mod numbers;
mod poses;
mod product;
mod regressions;
mod relaxed;
mod same_bits;
mod scan;
