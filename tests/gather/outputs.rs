//! Outputs at every alignment, and at the sizes where the crate's own choices change.

use crate::common::cells::{Cell, assert_cells};
use crate::common::gather::{adjoint, adjoint_add, forward, operator, random_ids};
use crate::common::values::{Value, Values};
use crate::common::{levels, threads};
use ndarray::{Array, ArrayD, ArrayViewMut, Dimension, s};
use pullback::gather::{OutOfRange, Reduction, Tuning};
use pullback::{Level, Result};

/// Runs `write` on an output that holds `start`, `offset` cells into an allocation, and checks every cell of it.
fn check_at<T: Value, D: Dimension>(
    offset: usize,
    start: &Array<T, D>,
    expected: &ArrayD<Cell<T>>,
    write: impl FnOnce(ArrayViewMut<'_, T, D>) -> Result<()>,
) {
    const MARGIN: usize = 32;
    let mark = T::from_f64(-7.5).expect("an element");
    let mut memory = vec![mark; offset + start.len() + MARGIN];
    let cells = &mut memory[offset..][..start.len()];
    let mut output = ArrayViewMut::from_shape(start.raw_dim(), cells).expect("a cell for each element");
    output.assign(start);
    write(output.view_mut()).expect("the shapes are right");
    assert_cells("the output", &output, expected);
    output.fill(mark);
    assert!(memory.iter().all(|&cell| cell == mark), "a cell around the output at offset {offset} was written");
}

/// Every form that writes into a caller's array, with streaming stores, at every offset within a cache line.
fn stream_at_every_offset<T: Value>(level: Level, channels: usize) {
    let (batches, rows, points) = (2, 3, 5);
    let indices = random_ids([batches, points, 1], rows);
    let x = Values::Spread.array::<T, _>([batches, rows, channels], 1);
    let y = Values::Spread.array::<T, _>([batches, points, 1, channels], 2);
    let gathered = forward(&x, &indices, OutOfRange::Error);
    let summed = adjoint(&y, &indices, OutOfRange::Error, rows);
    let added = adjoint_add(&y, &indices, OutOfRange::Error, &x);
    for (reduction, tile) in [(Reduction::Slab, None), (Reduction::Inverse, None), (Reduction::Inverse, Some(2))] {
        let tuning = Tuning {
            stream: Some(true),
            parallel: Some(tile.is_some()),
            reduction: Some(reduction),
            tile,
            ..Tuning::default()
        };
        let gather = operator(level, &indices, rows, OutOfRange::Error).with_tuning(tuning);
        for offset in 0..16 {
            check_at(offset, &y, &gathered, |out| gather.forward_into(x.view(), out));
            check_at(offset, &x, &summed, |out| gather.adjoint_into(y.view(), out));
            check_at(offset, &x, &added, |out| gather.adjoint_add(y.view(), out));
        }
    }
}

#[test]
fn streaming_stores_at_every_offset() {
    levels::each(|level| {
        for channels in [1, 2, 3, 4, 5, 8, 12, 16, 17, 20, 24, 28, 32, 33, 36, 48, 52, 63, 64, 65, 68, 128] {
            stream_at_every_offset::<f32>(level, channels);
            stream_at_every_offset::<f64>(level, channels);
        }
    });
}

/// The output exceeds a last-level cache, the table a level-two cache, both the least size for several threads, and one
/// row of the gradient is the sum of a quarter of all rows, as after a padding that repeats one neighbour.
fn check_choices_by_size<T: Value>(channels: usize) {
    let (batches, rows, points, samples) = (2, 9000, 8500, 8);
    let mut indices = random_ids([batches, points, samples], rows);
    indices.slice_mut(s![.., .., 6..]).fill(77);
    let x = Values::Spread.array::<T, _>([batches, rows, channels], 1);
    let grad_y = Values::Spread.array::<T, _>([batches, points, samples, channels], 2);
    let gathered = forward(&x, &indices, OutOfRange::Error);
    let summed = adjoint(&grad_y, &indices, OutOfRange::Error, rows);
    levels::each(|level| {
        threads::with(3, || {
            let mut gather = operator(level, &indices, rows, OutOfRange::Error);
            let mut y = gather.forward(x.view()).unwrap();
            assert_cells("y", &y, &gathered);
            y.fill(T::nan());
            gather.forward_into(x.view(), y.view_mut()).unwrap();
            assert_cells("y", &y, &gathered);

            // The inverse that the second call leaves behind changes what the third one chooses.
            for reduction in [None, Some(Reduction::Inverse), None, Some(Reduction::Slab)] {
                gather = gather.with_tuning(Tuning { reduction, ..Tuning::default() });
                assert_cells("grad_x", &gather.adjoint(grad_y.view()).unwrap(), &summed);
            }
        });
    });
}

#[test]
fn choices_by_size_of_f32() {
    check_choices_by_size::<f32>(64);
}

#[test]
fn choices_by_size_of_f64() {
    check_choices_by_size::<f64>(32);
}
