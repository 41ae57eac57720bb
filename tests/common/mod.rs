//! What the tests share: naive references, random problems, strided arrays, comparison of bits, levels, threads, files.

// Every crate of tests uses its part of this.
#![allow(dead_code)]

pub mod adjoint_case;
pub mod adjoint_strategy;
pub mod blur_case;
pub mod blurring;
pub mod cells;
pub mod cloud;
pub mod counting;
pub mod distance_gradients;
pub mod files;
pub mod gather;
pub mod gather_case;
pub mod gather_strategy;
pub mod gaussian;
pub mod groups;
pub mod interpolate_case;
pub mod interpolate_strategy;
pub mod interpolation;
pub mod levels;
pub mod limits;
pub mod maps_case;
pub mod maps_strategy;
pub mod mipmap;
pub mod mipmap_case;
pub mod mipmap_floats;
pub mod mipmap_walk;
pub mod neighbors;
pub mod neighbors_case;
pub mod neighbors_strategy;
pub mod pooled_case;
pub mod problems;
pub mod random;
pub mod ranges;
pub mod reduction_case;
pub mod reduction_strategy;
pub mod reduction_sweeps;
pub mod refusals;
pub mod saved;
pub mod scaled;
pub mod scratch;
pub mod search_case;
pub mod search_strategy;
pub mod segment_case;
pub mod segments;
pub mod space;
pub mod strides;
pub mod threads;
pub mod values;
pub mod weighted_case;
pub mod wide;
