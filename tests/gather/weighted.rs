//! Weighted sums and both their gradients against plain loops: the same bits at every level, whatever the sizes, the
//! strides, the number of threads and the choices that are made by size.

use crate::common::reduction_sweeps as sweeps;
use crate::common::weighted_case::WeightedSums;

#[test]
fn random_problems() {
    sweeps::random::<WeightedSums>(600);
}

#[test]
fn every_width() {
    sweeps::every_width::<WeightedSums>();
}

#[test]
fn every_size() {
    sweeps::every_size::<WeightedSums>();
}

#[test]
fn every_tuning() {
    sweeps::every_tuning::<WeightedSums>();
}

#[test]
fn every_pattern_of_strides() {
    sweeps::every_pattern_of_strides::<WeightedSums>();
}

#[test]
fn every_number_of_threads() {
    sweeps::every_number_of_threads::<WeightedSums>();
}
