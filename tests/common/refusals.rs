//! Refusals: wrong shapes, and outputs that are left as they were.

use super::values::Values;
use ndarray::{Array, ArrayViewMut, Dimension, IntoDimension};
use pullback::{Error, Result};

/// Every shape that differs from the right one in one axis.
pub fn wrong<const D: usize>(right: [usize; D], axes: usize) -> Vec<[usize; D]> {
    let other = |axis: usize| {
        [0, right[axis] - 1, right[axis] + 1].map(|n| {
            let mut shape = right;
            shape[axis] = n;
            shape
        })
    };
    (0..axes).flat_map(other).collect()
}

pub fn shape_error<const D: usize>(argument: &'static str, found: [usize; D], expected: [usize; D]) -> Error {
    Error::Shape { argument, found: found.to_vec(), expected: expected.to_vec() }
}

/// `call` leaves every cell of its output as it was.
#[track_caller]
pub fn untouched<D: Dimension, R>(
    shape: impl IntoDimension<Dim = D>,
    call: impl FnOnce(ArrayViewMut<'_, f32, D>) -> R,
) -> R {
    let before: Array<f32, D> = Values::Adversarial.array(shape, 7);
    let mut output = before.clone();
    let result = call(output.view_mut());
    let bits = |array: Array<f32, D>| array.mapv(f32::to_bits);
    assert_eq!(bits(output), bits(before), "a refused call wrote");
    result
}

/// `call` returns `expected` and leaves every cell of its output as it was.
#[track_caller]
pub fn refused<D: Dimension>(
    expected: Error,
    shape: impl IntoDimension<Dim = D>,
    call: impl FnOnce(ArrayViewMut<'_, f32, D>) -> Result<()>,
) {
    assert_eq!(untouched(shape, call), Err(expected));
}
