//! Limits of the machine beside the kernels.
fn main() {}
