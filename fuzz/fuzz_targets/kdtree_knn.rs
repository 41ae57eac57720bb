//! The search of neighbours against brute force, on problems that the fuzzer makes up.
#![no_main]

use kdtree_input::Input;
use libfuzzer_sys::fuzz_target;

mod kdtree_input;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod cloud;
    pub mod limits;
    pub mod neighbors;
    pub mod neighbors_case;
    pub mod random;
    pub mod space;
    pub mod threads;
    pub mod values;
}

fuzz_target!(|input: Input| input.case().check(input.level()));
