//! Pooling and its adjoints against plain loops: the same bits at every level, whatever the sizes, the strides, the number
//! of threads and the choices that are made by size.

use crate::common::pooled_case::Pooling;
use crate::common::reduction_sweeps as sweeps;
use crate::common::{levels, threads};
use ndarray::array;
use pullback::gather::{Extremum, OutOfRange, Pooled};

#[test]
fn random_problems() {
    sweeps::random::<Pooling>(300);
}

#[test]
fn every_width() {
    sweeps::every_width::<Pooling>();
}

#[test]
fn every_size() {
    sweeps::every_size::<Pooling>();
}

#[test]
fn every_tuning() {
    sweeps::every_tuning::<Pooling>();
}

#[test]
fn every_pattern_of_strides() {
    sweeps::every_pattern_of_strides::<Pooling>();
}

#[test]
fn every_number_of_threads() {
    sweeps::every_number_of_threads::<Pooling>();
}

#[test]
fn an_extreme_element_keeps_its_bits() {
    let nans = [0x7fc0_1234, 0xffa0_4321, 0x7f80_0001u32].map(f32::from_bits);
    let x = array![[1.0, -0.0], [nans[1], 0.0], [nans[0], 0.0], [nans[2], -0.0]];
    let indices = array![[0, 1, 2], [2, 3, 0], [3, 1, 0]];
    levels::each(|level| {
        for count in threads::COUNTS {
            let pool = Pooled::unbatched(indices.view(), 4, OutOfRange::Error).unwrap().with_level(level).unwrap();
            for which in [Extremum::Max, Extremum::Min] {
                let found = threads::with(count, || pool.extremes(which, x.view()).unwrap());
                let bits = found.values.mapv(f32::to_bits);
                assert_eq!(bits, array![[nans[1], -0.0], [nans[0], 0.0], [nans[2], -0.0]].mapv(f32::to_bits));
                assert_eq!(found.arguments, array![[1, 0], [0, 0], [0, 0]]);
            }
        }
    });
}
