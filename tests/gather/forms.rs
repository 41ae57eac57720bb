//! The forms of the row gather agree: one call or an operator, any number of axes, one operator for many jobs.

use crate::common::cells::{assert_cells, assert_same};
use crate::common::gather::{adjoint, forward, operator, random_ids};
use crate::common::levels;
use crate::common::values::{Value, Values};
use ndarray::{Array3, Axis, IntoDimension, Ix3, IxDyn};
use pullback::gather::{Gather, OutOfRange, Reduction, Tuning, index_points, index_points_adjoint};

const ROWS: usize = 6;

/// The functions of one call on indices (B, ...).
fn check_functions<S: IntoDimension>(shape: S) {
    let indices = random_ids(shape, ROWS);
    let x = Values::Spread.array::<f32, _>([indices.shape()[0], ROWS, 5], 1);
    let y = index_points(x.view(), indices.view()).unwrap();
    assert_cells("y", &y, &forward(&x, &indices, OutOfRange::Error));
    let grad_x = index_points_adjoint(y.view(), indices.view(), ROWS).unwrap();
    let expected = adjoint(&y, &indices, OutOfRange::Error, ROWS);
    assert_cells("grad_x", &grad_x, &expected);
}

#[test]
fn functions_take_indices_of_any_number_of_axes() {
    check_functions([3]);
    check_functions([3, 4]);
    check_functions([3, 4, 2]);
    check_functions([3, 2, 2, 2]);
    check_functions([3, 2, 1, 2, 2]);
    check_functions([3, 2, 1, 2, 2, 2]);
    check_functions(IxDyn(&[2, 1, 2, 1, 2, 1, 2]));
}

/// Without a batch axis the result is that of a batch of one.
fn check_unbatched<S: IntoDimension>(shape: S) {
    let indices = random_ids(shape, ROWS);
    let x = Values::Spread.array::<f64, _>([ROWS, 7], 1);
    let gather = Gather::unbatched(indices.view(), ROWS, OutOfRange::Error).unwrap();
    let y = gather.forward(x.view()).unwrap();
    let grad_x = gather.adjoint(y.view()).unwrap();

    let batch = indices.insert_axis(Axis(0));
    let batched = index_points(x.view().insert_axis(Axis(0)), batch.view()).unwrap();
    let batched_grad = index_points_adjoint(batched.view(), batch.view(), ROWS).unwrap();
    assert_same("y", &y.into_dyn(), &batched.index_axis(Axis(0), 0).into_dyn());
    assert_same("grad_x", &grad_x, &batched_grad.index_axis(Axis(0), 0));
}

#[test]
fn unbatched_is_a_batch_of_one() {
    check_unbatched([]);
    check_unbatched([9]);
    check_unbatched([5, 3]);
    check_unbatched([4, 1, 2]);
    check_unbatched([2, 2, 3, 2]);
    check_unbatched(IxDyn(&[3, 2]));
}

fn check_reuse<T: Value>(gather: &Gather<Ix3>, indices: &Array3<usize>, channels: usize) {
    let x = Values::Spread.array::<T, _>([indices.shape()[0], ROWS, channels], 1);
    let y = gather.forward(x.view()).unwrap();
    assert_cells("y", &y, &forward(&x, indices, OutOfRange::Error));
    let grad_x = gather.adjoint(y.view()).unwrap();
    let expected = adjoint(&y, indices, OutOfRange::Error, ROWS);
    assert_cells("grad_x", &grad_x, &expected);
}

#[test]
fn one_operator_serves_every_width_and_type() {
    let indices = random_ids([2, 8, 1], ROWS);
    levels::each(|level| {
        for reduction in [None, Some(Reduction::Slab), Some(Reduction::Inverse)] {
            let gather = operator(level, &indices, ROWS, OutOfRange::Error);
            let gather = gather.with_tuning(Tuning { reduction, parallel: Some(true), ..Tuning::default() });
            for channels in [64, 1, 0, 20_000, 3, 129] {
                check_reuse::<f32>(&gather, &indices, channels);
                check_reuse::<f64>(&gather, &indices, channels);
            }
        }
    });
}

#[test]
fn one_operator_can_be_tuned_again_and_again() {
    let indices = random_ids([2, 30, 2], ROWS);
    levels::each(|level| {
        let mut gather = operator(level, &indices, ROWS, OutOfRange::Error);
        for reduction in [Reduction::Slab, Reduction::Inverse, Reduction::Slab].map(Some) {
            for tile in [None, Some(1), Some(4), Some(2), Some(100)] {
                for parallel in [false, true].map(Some) {
                    gather = gather.with_tuning(Tuning { reduction, tile, parallel, ..Tuning::default() });
                    check_reuse::<f32>(&gather, &indices, 17);
                }
            }
        }
    });
}
