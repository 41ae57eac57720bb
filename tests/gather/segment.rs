//! Reductions by segment against plain loops: the same bits at every level, whatever the sizes, the strides, the number of
//! threads and the choices that are made by size; exponentials within a bound of f64.

use crate::common::gather::random_ids;
use crate::common::reduction_sweeps as sweeps;
use crate::common::segment_case::BySegment;
use crate::common::values::{Value, Values};
use crate::common::{levels, threads};
use ndarray::{Array2, array};
use pullback::Level;
use pullback::gather::{OutOfRange, Reduction, Segments, Tuning};

#[test]
fn random_problems() {
    sweeps::random::<BySegment>(150);
}

#[test]
fn every_width() {
    sweeps::every_width::<BySegment>();
}

#[test]
fn every_size() {
    sweeps::every_size::<BySegment>();
}

#[test]
fn every_tuning() {
    sweeps::every_tuning::<BySegment>();
}

#[test]
fn every_pattern_of_strides() {
    sweeps::every_pattern_of_strides::<BySegment>();
}

#[test]
fn every_number_of_threads() {
    sweeps::every_number_of_threads::<BySegment>();
}

/// Every exponential of one problem, as bits.
fn exponentials<T: Value>(rows: usize, count: usize, channels: usize, tuning: Tuning, level: Level) -> Vec<u64> {
    let x = Values::Spread.array::<T, _>([rows, channels], 1);
    let (of_rows, of_segments) =
        (Values::Spread.array::<T, _>([rows, channels], 2), Values::Spread.array::<T, _>([count, channels], 3));
    let op = Segments::new(random_ids([rows], count).view(), count, OutOfRange::Error).unwrap();
    let op = op.with_level(level).unwrap().with_tuning(tuning);
    let (soft, sums) = (op.softmax(x.view()).unwrap(), op.log_sum_exp(x.view()).unwrap());
    let grad = op.softmax_adjoint(of_rows.view(), soft.view()).unwrap();
    let of_sums = op.log_sum_exp_adjoint(of_segments.view(), x.view(), sums.view()).unwrap();
    [soft, sums, grad, of_sums].iter().flatten().map(|x| x.to_bits()).collect()
}

fn check_same_bits<T: Value>(rows: usize, count: usize, channels: usize) {
    let one = threads::with(1, || exponentials::<T>(rows, count, channels, Tuning::default(), Level::Base));
    levels::each(|level| {
        for n in threads::COUNTS {
            for reduction in [None, Some(Reduction::Slab), Some(Reduction::Inverse)] {
                for (parallel, tile) in [(None, None), (Some(true), Some(3))] {
                    let tuning = Tuning { reduction, parallel, tile, ..Tuning::default() };
                    let found = threads::with(n, || exponentials::<T>(rows, count, channels, tuning, level));
                    assert!(found == one, "{rows} rows, {n} threads, {tuning:?}");
                }
            }
        }
    });
}

#[test]
fn exponentials_have_the_same_bits_everywhere() {
    for (rows, count, channels) in [(200, 9, 17), (1000, 4, 5), (50, 300, 3)] {
        check_same_bits::<f32>(rows, count, channels);
        check_same_bits::<f64>(rows, count, channels);
    }
}

#[test]
fn infinities_in_exponentials() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    levels::each(|level| {
        let op = Segments::from_lengths(array![2, 2, 2, 2, 0].view(), 8).unwrap().with_level(level).unwrap();
        let x = array![[-inf], [-inf], [-inf], [1.0], [inf], [1.0], [nan], [1.0]];
        let y = op.log_sum_exp(x.view()).unwrap();
        assert_eq!([y[[0, 0]], y[[1, 0]], y[[2, 0]], y[[4, 0]]], [-inf, 1.0, inf, -inf]);
        assert!(y[[3, 0]].is_nan());
        let pulled = op.log_sum_exp_adjoint(Array2::ones((5, 1)).view(), x.view(), y.view()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|row| pulled[[row, 0]]), [0.0, 0.0, 0.0, 1.0]);
        let soft = op.softmax(x.view()).unwrap();
        assert_eq!([soft[[2, 0]], soft[[3, 0]]], [0.0, 1.0]);
        assert!([0, 1, 4, 6, 7].iter().all(|&row| soft[[row, 0]].is_nan()));
    });
}
