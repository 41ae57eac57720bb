//! The tests of `gaussian`: one crate, since each is compiled with its own copy of what it shares with the others.

#[path = "../common/mod.rs"]
mod common;

mod blur;
mod blur_errors;
mod blur_regressions;
mod errors;
mod maps;
mod regressions;
mod scales;
