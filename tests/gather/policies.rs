//! What an index outside `0..N` means: for every index type, every such index, and both directions.

use crate::common::gather::{Id, operator};
use crate::common::levels;
use ndarray::{Array2, Array3, Array4, array};
use pullback::gather::{Gather, OutOfRange, index_points, index_points_adjoint};
use pullback::{Error, Level};

const ROWS: usize = 3;

/// Every index of a type near an edge of `0..3` or of a shorter type, or at an end of the type, that lies outside.
fn outside<I: Id>() -> Vec<I> {
    let edges = [-1, 3, 4, i32::MIN.into(), i32::MAX.into(), u32::MAX.into(), i64::MIN.into(), i64::MAX.into()];
    // After truncation to 32 or to 64 bits these would be valid.
    let truncated = [1 << 32, (1 << 32) + 2, -(1 << 32) + 1];
    let all = edges.into_iter().chain(truncated).chain([usize::MAX as i128]);
    all.filter_map(|index| I::try_from(index).ok()).collect()
}

/// Two valid indices round each outside one.
fn around<I: Id>(index: I) -> Array3<I> {
    let valid = |row: i128| I::try_from(row).ok().expect("a row");
    array![[[valid(1), index, valid(2)]]]
}

fn x() -> Array3<f64> {
    array![[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]]
}

fn grad_y() -> Array4<f64> {
    array![[[[10.0, 20.0], [30.0, 40.0], [50.0, 60.0]]]]
}

/// The gathered rows and the gradient under a policy.
fn run<I: Id>(index: I, policy: OutOfRange, level: Level) -> (Array4<f64>, Array3<f64>) {
    let gather = operator(level, &around(index), ROWS, policy);
    let y = gather.forward(x().view()).unwrap();
    (y, gather.adjoint(grad_y().view()).unwrap())
}

fn check_error<I: Id>() {
    for index in outside::<I>() {
        let value: i128 = index.try_into().unwrap();
        let bad = Error::IndexOutOfRange { argument: "indices", position: vec![0, 0, 1], value, bound: ROWS };
        let indices = around(index);
        assert_eq!(Gather::new(indices.view(), ROWS, OutOfRange::Error).err(), Some(bad.clone()));
        assert_eq!(index_points(x().view(), indices.view()), Err(bad.clone()));
        assert_eq!(index_points_adjoint(grad_y().view(), indices.view(), ROWS), Err(bad));
    }
}

fn check_skip<I: Id>(level: Level) {
    for index in outside::<I>() {
        let (y, grad_x) = run(index, OutOfRange::Skip { fill: -0.5 }, level);
        assert_eq!(y, array![[[[3.0, 4.0], [-0.5, -0.5], [5.0, 6.0]]]]);
        assert_eq!(grad_x, array![[[0.0, 0.0], [10.0, 20.0], [50.0, 60.0]]]);
    }
}

fn check_clamp<I: Id>(level: Level) {
    for index in outside::<I>() {
        let (y, grad_x) = run(index, OutOfRange::Clamp, level);
        let value: i128 = index.try_into().unwrap();
        if value < 0 {
            assert_eq!(y, array![[[[3.0, 4.0], [1.0, 2.0], [5.0, 6.0]]]]);
            assert_eq!(grad_x, array![[[30.0, 40.0], [10.0, 20.0], [50.0, 60.0]]]);
        } else {
            assert_eq!(y, array![[[[3.0, 4.0], [5.0, 6.0], [5.0, 6.0]]]]);
            assert_eq!(grad_x, array![[[0.0, 0.0], [10.0, 20.0], [80.0, 100.0]]]);
        }
    }
}

#[test]
fn error_names_the_index() {
    check_error::<i32>();
    check_error::<i64>();
    check_error::<u32>();
    check_error::<usize>();
}

#[test]
fn skip_gives_a_row_of_fill_and_takes_no_gradient() {
    levels::each(|level| {
        check_skip::<i32>(level);
        check_skip::<i64>(level);
        check_skip::<u32>(level);
        check_skip::<usize>(level);
    });
}

#[test]
fn clamp_takes_the_nearest_row_both_ways() {
    levels::each(|level| {
        check_clamp::<i32>(level);
        check_clamp::<i64>(level);
        check_clamp::<u32>(level);
        check_clamp::<usize>(level);
    });
}

#[test]
fn error_is_the_default() {
    assert_eq!(OutOfRange::default(), OutOfRange::Error);
}

#[test]
fn fill_is_rounded_to_the_element() {
    let fill = |fill| Gather::unbatched(array![-1].view(), 0, OutOfRange::Skip { fill }).unwrap();
    let single = |value| fill(value).forward(Array2::<f32>::zeros((0, 1)).view()).unwrap()[[0, 0]];
    let double = |value| fill(value).forward(Array2::<f64>::zeros((0, 1)).view()).unwrap()[[0, 0]];
    assert_eq!(single(0.1), 0.1f32);
    assert_eq!(single(1e300), f32::INFINITY);
    assert_eq!(single(-1e-300).to_bits(), (-0.0f32).to_bits());
    assert!(single(f64::NAN).is_nan());
    assert_eq!(double(-0.0).to_bits(), (-0.0f64).to_bits());
    assert_eq!(double(1e300), 1e300);
    let payload = f64::from_bits(0x7ff8_dead_beef_0001);
    assert_eq!(double(payload).to_bits(), payload.to_bits());
}

#[test]
fn no_gradient_reaches_a_sum_from_padding() {
    // A NaN in the gradient of padding must not even be multiplied by 0.
    let gather = Gather::unbatched(array![0, -1, 7, 0].view(), 2, OutOfRange::Skip { fill: 1.0 }).unwrap();
    let grad_x = gather.adjoint(array![[1.0], [f64::NAN], [f64::INFINITY], [2.0]].view()).unwrap();
    assert_eq!(grad_x, array![[3.0], [0.0]]);
}

#[test]
fn without_rows_only_padding_is_possible() {
    let indices = array![0u32, 5];
    for policy in [OutOfRange::Error, OutOfRange::Clamp] {
        let bad = Error::IndexOutOfRange { argument: "indices", position: vec![0], value: 0, bound: 0 };
        assert_eq!(Gather::unbatched(indices.view(), 0, policy).err(), Some(bad));
    }
    let gather = Gather::unbatched(indices.view(), 0, OutOfRange::Skip { fill: 4.0 }).unwrap();
    let x = Array2::<f32>::zeros((0, 2));
    assert_eq!(gather.forward(x.view()).unwrap(), array![[4.0, 4.0], [4.0, 4.0]]);
    assert_eq!(gather.adjoint(array![[1.0f32, 2.0], [3.0, 4.0]].view()).unwrap(), x);
}
