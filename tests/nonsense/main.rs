//! Arguments that nobody would pass, to every public entry: it returns an error that says what is wrong, or what it
//! promises; it never panics, and a refused call leaves its outputs as they were.
#![cfg(target_pointer_width = "64")]

#[path = "../common/mod.rs"]
mod common;

mod driver;
mod gather;
mod gaussian;
mod kdtree;
mod mipmap;
mod regressions;
mod triconv;
