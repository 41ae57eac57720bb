//! Anisotropic Gaussian kernels by the batch, and their gradients.
#![allow(dead_code, reason = "the operators come next")]

mod exact;
mod grid;
mod pull;
mod shape;

pub use grid::Centre;
pub use shape::Parameters;
