//! The tests of `mipmap`: one crate, since each is compiled with its own copy of what it shares with the others.

#[path = "../common/mod.rs"]
mod common;

mod bits;
mod files;
mod floats;
mod rays;
mod regressions;
