//! The tests of `kdtree`: one crate, since each is compiled with its own copy of what it shares with the others.

#[path = "../common/mod.rs"]
mod common;

mod adjoint;
mod adjoint_errors;
mod adjoint_regressions;
mod concurrency;
mod differences;
mod dimensions;
mod errors;
mod files;
mod files_gradients;
mod files_searches;
mod interpolate;
mod interpolate_errors;
mod interpolate_regressions;
mod knn;
mod neighbors;
mod periodic;
mod pruning;
mod regressions;
mod saved;
mod saved_faults;
mod search_errors;
mod search_regressions;
mod searches;
mod sizes;
mod strides;
