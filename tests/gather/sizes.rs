//! Sizes at and beyond the limits. Arrays that no memory holds are views of one element.
#![cfg(target_pointer_width = "64")]

use crate::common::gather::operator;
use crate::common::levels;
use ndarray::{Array1, Array2, Array3, Array4, arr0, array};
use pullback::gather::{Extremum, Gather, Linear, OutOfRange, Pooled, Segments, Weighted};
use pullback::{Error, Result};

const MOST: usize = (1 << 32) - 2;

#[test]
fn the_most_rows_that_u32_positions_allow() {
    let indices = array![[MOST - 1, 0, MOST - 1]];
    let error = Gather::new(indices.view(), MOST + 1, OutOfRange::Error).err().unwrap();
    assert_eq!(error.to_string(), "rows = 4294967295 is too large, at most 4294967294 is supported");
    let error = Gather::new(array![[MOST]].view(), MOST, OutOfRange::Error).err().unwrap();
    assert_eq!(error.to_string(), "indices[0, 0] = 4294967294 is outside 0..4294967294");

    let x = arr0(2.5f32);
    levels::each(|level| {
        let gather = operator(level, &indices, MOST, OutOfRange::Error);
        let y = gather.forward(x.broadcast([1, MOST, 2]).unwrap()).unwrap();
        assert_eq!(y, Array3::from_elem([1, 3, 2], 2.5));
        let grad_x = gather.adjoint(Array3::<f32>::zeros([1, 3, 0]).view()).unwrap();
        assert_eq!(grad_x.shape(), [1, MOST, 0]);
    });
    let gather = Gather::unbatched(array![usize::MAX].view(), MOST, OutOfRange::Clamp).unwrap();
    assert_eq!(gather.forward(x.broadcast([MOST, 1]).unwrap()).unwrap(), array![[2.5]]);
}

#[test]
fn more_indices_than_u32_positions() {
    let index = arr0(0i32);
    for count in [MOST + 1, 1 << 40] {
        let expected = Error::TooLarge { argument: "indices a batch", value: count as u128, limit: MOST as u128 };
        let indices = index.broadcast([2, count]).unwrap();
        assert_eq!(Gather::new(indices, 1, OutOfRange::Error).err(), Some(expected.clone()));
        let indices = index.broadcast([count, 1]).unwrap();
        assert_eq!(Gather::unbatched(indices, 1, OutOfRange::Error).err(), Some(expected));
    }
}

#[test]
fn outputs_that_no_address_space_holds() {
    let (x, limit) = (arr0(1.0f32), isize::MAX as u128 / 4);
    let too_large = |value: u128| Error::TooLarge { argument: "elements of the output", value, limit };

    let gather = Gather::new(Array2::<i32>::zeros([1, 1 << 20]).view(), 1, OutOfRange::Error).unwrap();
    let y = gather.forward(x.broadcast([1, 1, 1 << 45]).unwrap());
    assert_eq!(y, Err(too_large(1 << 65)));
    let y = gather.forward(x.broadcast([1, 1, 1 << 41]).unwrap());
    assert_eq!(y, Err(too_large(1 << 61)));

    let gather = Gather::new(array![[0]].view(), MOST, OutOfRange::Error).unwrap();
    let grad_x = gather.adjoint(x.broadcast([1, 1, 1 << 40]).unwrap());
    assert_eq!(grad_x, Err(too_large((MOST as u128) << 40)));
}

#[test]
fn outputs_that_no_memory_holds() {
    let x = arr0(1.0f64);
    let gather = Gather::new(Array2::<i32>::zeros([1, 1 << 20]).view(), MOST, OutOfRange::Error).unwrap();
    let y = gather.forward(x.broadcast([1, MOST, 1 << 30]).unwrap());
    assert!(matches!(y, Err(Error::Allocation { bytes }) if bytes >= 1 << 53), "{y:?}");
    let grad_x = gather.adjoint(x.broadcast([1, 1 << 20, 1 << 25]).unwrap());
    assert!(matches!(grad_x, Err(Error::Allocation { bytes }) if bytes >= MOST << 28), "{grad_x:?}");
}

/// Nothing is computed from a product of sizes that an empty output makes meaningless.
#[test]
fn empty_outputs_of_any_width() {
    let x = arr0(1.0f32);
    let gather = Gather::new(Array2::<i32>::zeros([1, 0]).view(), MOST, OutOfRange::Error).unwrap();
    let y = gather.forward(x.broadcast([1, MOST, 1 << 30]).unwrap()).unwrap();
    assert_eq!(y.shape(), [1, 0, 1 << 30]);

    let padding = Array2::from_elem([1, 1 << 12], -1);
    let gather = Gather::new(padding.view(), 0, OutOfRange::Skip { fill: 0.0 }).unwrap();
    let grad_x = gather.adjoint(x.broadcast([1, 1 << 12, 1 << 50]).unwrap()).unwrap();
    assert_eq!(grad_x.shape(), [1, 0, 1 << 50]);
}

/// Inputs of all sizes that an empty output leaves possible: a result or a refusal, and no arithmetic that overflows.
#[test]
fn reductions_of_views_that_no_memory_holds() {
    let (x, max) = (arr0(1.0f64), Extremum::Max);
    let none = Array1::<i32>::zeros(0);
    let wide = 1usize << 30;
    let features = x.broadcast([MOST, wide]).unwrap();
    let pooled = Pooled::ragged(none.view(), array![0].view(), MOST, OutOfRange::Error).unwrap();
    let refused = |result: Result<()>| assert!(matches!(result, Ok(()) | Err(Error::Allocation { .. })), "{result:?}");
    let (mut values, mut arguments) = (Array2::zeros([0, wide]), Array2::zeros([0, wide]));
    refused(pooled.extremes(max, features).map(|_| ()));
    refused(pooled.extremes_into(max, features, values.view_mut(), arguments.view_mut()));
    refused(pooled.forward(Linear::Mean, features).map(|_| ()));
    refused(pooled.forward_into(Linear::Mean, features, values.view_mut()));
    let weighted = Weighted::ragged(none.view(), array![0].view(), MOST, OutOfRange::Error).unwrap();
    let w = Array1::zeros(0);
    refused(weighted.forward_into(features, w.view(), values.view_mut()));
    refused(weighted.adjoint_w(values.view(), features).map(|_| ()));

    let (rows, wide) = (1 << 20, 1usize << 41);
    let padding = Array1::from_elem(rows, -1);
    let segments = Segments::new(padding.view(), 0, OutOfRange::Skip { fill: 0.0 }).unwrap();
    let features = x.broadcast([rows, wide]).unwrap();
    let (mut values, mut arguments) = (Array2::zeros([0, wide]), Array2::zeros([0, wide]));
    refused(segments.forward(Linear::Sum, features).map(|_| ()));
    refused(segments.product(features).map(|_| ()));
    refused(segments.log_sum_exp(features).map(|_| ()));
    refused(segments.extremes(max, features).map(|_| ()));
    refused(segments.extremes_into(max, features, values.view_mut(), arguments.view_mut()));
}

#[test]
fn more_segments_or_groups_than_u32_positions() {
    let too_large = |argument| Some(Error::TooLarge { argument, value: MOST as u128 + 1, limit: MOST as u128 });
    let segments = Segments::new(array![0].view(), MOST + 1, OutOfRange::Error).err();
    assert_eq!(segments, too_large("segments"));
    let indices = arr0(0i32);
    let empty_groups = indices.broadcast([1, MOST + 1, 0]).unwrap();
    assert_eq!(Weighted::new(empty_groups, 1, OutOfRange::Error).err(), too_large("groups"));
    assert_eq!(Pooled::new(empty_groups, 1, OutOfRange::Error).err(), too_large("groups"));
    assert_eq!(Weighted::new(array![[[0]]].view(), MOST + 1, OutOfRange::Error).err(), too_large("rows"));
    let lengths = indices.broadcast([MOST + 1]).unwrap();
    assert_eq!(Segments::from_lengths(lengths, 0).err(), too_large("groups"));
}

/// Rows are numbered over all batches: the last of these lies beyond 2^32 rows and 2^33 elements.
#[test]
fn rows_of_all_batches_beyond_u32() {
    let (batches, rows) = (5, 1 << 30);
    let x = Array3::from_shape_fn([batches, 1, 2], |(batch, _, channel)| (2 * batch + channel) as f32);
    let features = x.broadcast([batches, rows, 2]).unwrap();
    let indices = Array3::from_shape_fn([batches, 1, 2], |(_, _, s)| [rows - 1, 0][s]);
    levels::each(|level| {
        let gather = Gather::new(indices.view(), rows, OutOfRange::Error).unwrap().with_level(level).unwrap();
        let y = gather.forward(features).unwrap();
        for ((batch, _, _, channel), &found) in y.indexed_iter() {
            assert_eq!(found, (2 * batch + channel) as f32);
        }
        let grad_x = gather.adjoint(Array4::<f32>::zeros([batches, 1, 2, 0]).view()).unwrap();
        assert_eq!(grad_x.shape(), [batches, rows, 0]);
    });
}
