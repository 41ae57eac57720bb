//! Refusals by the reductions of gathered rows: what they name, how they read, and that nothing was written.

use crate::common::refusals::{refused, shape_error, untouched, wrong};
use ndarray::{Array1, Array2, Array3, Ix3, array};
use pullback::gather::{Extremum, Index, Linear, OutOfRange, Pooled, Segments, Ties, Weighted};
use pullback::{Error, Level};

/// (B, N, C)
const FEATURES: [usize; 3] = [2, 5, 6];
/// (B, P, C)
const RESULTS: [usize; 3] = [2, 3, 6];
/// (B, P, S)
const INDICES: [usize; 3] = [2, 3, 4];

fn weighted() -> Weighted {
    Weighted::new(Array3::<i32>::ones(INDICES).view(), 5, OutOfRange::Error).unwrap()
}

fn pooled() -> Pooled {
    Pooled::new(Array3::<i32>::ones(INDICES).view(), 5, OutOfRange::Error).unwrap()
}

/// 7 rows in 3 segments.
fn segments() -> Segments {
    Segments::from_lengths(array![2, 0, 5].view(), 7).unwrap()
}

fn ones(shape: [usize; 3]) -> Array3<f32> {
    Array3::ones(shape)
}

#[test]
fn weighted_sums_refuse_wrong_shapes_and_write_nothing() {
    let op = weighted();
    let (x, w, grad_y) = (ones(FEATURES), ones(INDICES), ones(RESULTS));
    // The channels of x are free: they decide those of y.
    for found in wrong(FEATURES, 2) {
        let (bad, error) = (ones(found), shape_error("x", found, FEATURES));
        assert_eq!(op.forward(bad.view(), w.view()), Err(error.clone()));
        assert_eq!(op.adjoint(grad_y.view(), bad.view(), w.view()), Err(error.clone()));
        assert_eq!(op.adjoint_w(grad_y.view(), bad.view()), Err(error.clone()));
        refused(error, RESULTS, |y| op.forward_into(bad.view(), w.view(), y));
    }
    for found in wrong(INDICES, 3) {
        let (bad, error) = (ones(found), shape_error("w", found, INDICES));
        assert_eq!(op.forward(x.view(), bad.view()), Err(error.clone()));
        assert_eq!(op.adjoint(grad_y.view(), x.view(), bad.view()), Err(error.clone()));
        assert_eq!(op.adjoint_x(grad_y.view(), bad.view()), Err(error.clone()));
        refused(error, RESULTS, |y| op.forward_into(x.view(), bad.view(), y));
    }
    for found in wrong(RESULTS, 3) {
        let error = shape_error("y", found, RESULTS);
        refused(error, found, |y| op.forward_into(x.view(), w.view(), y));
    }
    for found in wrong(RESULTS, 2) {
        let (bad, error) = (ones(found), shape_error("grad_y", found, RESULTS));
        assert_eq!(op.adjoint(bad.view(), x.view(), w.view()), Err(error.clone()));
        assert_eq!(op.adjoint_x(bad.view(), w.view()), Err(error.clone()));
        assert_eq!(op.adjoint_w(bad.view(), x.view()), Err(error));
    }
}

#[test]
fn both_gradients_of_a_weighted_sum_are_left_alone() {
    let op = weighted();
    let check = |grad_y: [usize; 3], x: [usize; 3], w: [usize; 3], gx: [usize; 3], gw: [usize; 3]| {
        let (grad_y, x, w) = (ones(grad_y), ones(x), ones(w));
        for add in [false, true] {
            let result = untouched(gx, |gx| {
                untouched(gw, |gw| match add {
                    false => op.adjoint_into(grad_y.view(), x.view(), w.view(), gx, gw),
                    true => op.adjoint_add(grad_y.view(), x.view(), w.view(), gx, gw),
                })
            });
            assert!(matches!(result, Err(Error::Shape { .. })), "{result:?}");
        }
    };
    wrong(RESULTS, 3).into_iter().for_each(|bad| check(bad, FEATURES, INDICES, FEATURES, INDICES));
    wrong(FEATURES, 3).into_iter().for_each(|bad| check(RESULTS, bad, INDICES, FEATURES, INDICES));
    wrong(INDICES, 3).into_iter().for_each(|bad| check(RESULTS, FEATURES, bad, FEATURES, INDICES));
    wrong(FEATURES, 3).into_iter().for_each(|bad| check(RESULTS, FEATURES, INDICES, bad, INDICES));
    wrong(INDICES, 3).into_iter().for_each(|bad| check(RESULTS, FEATURES, INDICES, FEATURES, bad));
}

#[test]
fn pooling_refuses_wrong_shapes_and_writes_nothing() {
    let op = pooled();
    let (x, grad_y, max) = (ones(FEATURES), ones(RESULTS), Extremum::Max);
    let right = Array3::<u32>::zeros(RESULTS);
    for found in wrong(FEATURES, 2) {
        let (bad, error) = (ones(found), shape_error("x", found, FEATURES));
        assert_eq!(op.forward(Linear::Sum, bad.view()), Err(error.clone()));
        assert_eq!(op.extremes(max, bad.view()), Err(error.clone()));
        refused(error.clone(), RESULTS, |y| op.forward_into(Linear::Mean, bad.view(), y));
        let mut arguments = Array3::from_elem(RESULTS, 9);
        refused(error.clone(), RESULTS, |y| op.extremes_into(max, bad.view(), y, arguments.view_mut()));
        assert_eq!(arguments, Array3::from_elem(RESULTS, 9));
        let ties = || Ties::Even(max, bad.view());
        refused(error.clone(), FEATURES, |gx| op.extremes_adjoint_into(grad_y.view(), ties(), gx));
        refused(error, FEATURES, |gx| op.extremes_adjoint_add(grad_y.view(), ties(), gx));
    }
    for found in wrong(RESULTS, 3) {
        refused(shape_error("y", found, RESULTS), found, |y| op.forward_into(Linear::Sum, x.view(), y));
        let error = shape_error("values", found, RESULTS);
        let mut arguments = Array3::from_elem(RESULTS, 9);
        refused(error, found, |y| op.extremes_into(max, x.view(), y, arguments.view_mut()));
        assert_eq!(arguments, Array3::from_elem(RESULTS, 9));
        let (mut arguments, error) = (Array3::from_elem(found, 9), shape_error("arguments", found, RESULTS));
        refused(error.clone(), RESULTS, |y| op.extremes_into(max, x.view(), y, arguments.view_mut()));
        assert_eq!(arguments, Array3::from_elem(found, 9));
        let ties = || Ties::First(arguments.view());
        refused(error, FEATURES, |gx| op.extremes_adjoint_into(grad_y.view(), ties(), gx));
    }
    for found in wrong(RESULTS, 2) {
        let (bad, error) = (ones(found), shape_error("grad_y", found, RESULTS));
        assert_eq!(op.adjoint(Linear::Sum, bad.view()), Err(error.clone()));
        refused(error.clone(), FEATURES, |gx| op.adjoint_into(Linear::Mean, bad.view(), gx));
        refused(error.clone(), FEATURES, |gx| op.adjoint_add(Linear::Mean, bad.view(), gx));
        refused(error, FEATURES, |gx| op.extremes_adjoint_into(bad.view(), Ties::First(right.view()), gx));
    }
    for found in wrong(FEATURES, 3) {
        let error = shape_error("grad_x", found, FEATURES);
        refused(error.clone(), found, |gx| op.adjoint_into(Linear::Sum, grad_y.view(), gx));
        refused(error.clone(), found, |gx| op.adjoint_add(Linear::Mean, grad_y.view(), gx));
        refused(error, found, |gx| op.extremes_adjoint_add(grad_y.view(), Ties::Even(max, x.view()), gx));
    }
}

#[test]
fn segments_refuse_wrong_shapes_and_write_nothing() {
    let (op, max) = (segments(), Extremum::Max);
    let (rows, results) = ([7, 6], [3, 6]);
    let (x, y) = (Array2::<f32>::ones(rows), Array2::<f32>::ones(results));
    let arguments = Array2::<u32>::zeros(results);
    for found in wrong(rows, 1) {
        let (bad, error) = (Array2::<f32>::ones(found), || shape_error("x", found, rows));
        refused(error(), results, |y| op.forward_into(Linear::Sum, bad.view(), y));
        refused(error(), results, |y| op.product_into(bad.view(), y));
        refused(error(), results, |y| op.log_sum_exp_into(bad.view(), y));
        refused(error(), rows, |gx| op.softmax_into(bad.view(), gx));
        refused(error(), rows, |gx| op.product_adjoint_into(y.view(), bad.view(), gx));
        refused(error(), rows, |gx| op.log_sum_exp_adjoint_into(y.view(), bad.view(), y.view(), gx));
        refused(error(), rows, |gx| op.extremes_adjoint_into(y.view(), Ties::Even(max, bad.view()), gx));
        assert_eq!(op.extremes(max, bad.view()), Err(error()));
        let bad_y = shape_error("y", found, rows);
        refused(bad_y, rows, |gx| op.softmax_adjoint_into(x.view(), bad.view(), gx));
        let bad_grad = shape_error("grad_y", found, rows);
        refused(bad_grad, rows, |gx| op.softmax_adjoint_into(bad.view(), x.view(), gx));
    }
    for found in wrong(results, 2) {
        let error = || shape_error("y", found, results);
        refused(error(), found, |y| op.forward_into(Linear::Sum, x.view(), y));
        refused(error(), found, |y| op.product_into(x.view(), y));
        refused(error(), found, |y| op.log_sum_exp_into(x.view(), y));
        let bad = Array2::<f32>::ones(found);
        refused(error(), rows, |gx| op.log_sum_exp_adjoint_into(y.view(), x.view(), bad.view(), gx));
        let error = || shape_error("grad_y", found, results);
        refused(error(), rows, |gx| op.log_sum_exp_adjoint_into(bad.view(), x.view(), y.view(), gx));
        refused(error(), rows, |gx| op.product_adjoint_into(bad.view(), x.view(), gx));
        let error = || shape_error("arguments", found, results);
        let mut other = Array2::from_elem(found, 0);
        refused(error(), results, |y| op.extremes_into(max, x.view(), y, other.view_mut()));
        refused(error(), rows, |gx| op.extremes_adjoint_add(y.view(), Ties::First(other.view()), gx));
    }
    for found in wrong(results, 1) {
        let (bad, error) = (Array2::<f32>::ones(found), || shape_error("grad_y", found, results));
        refused(error(), rows, |gx| op.adjoint_into(Linear::Sum, bad.view(), gx));
        refused(error(), rows, |gx| op.adjoint_add(Linear::Mean, bad.view(), gx));
        refused(error(), rows, |gx| op.extremes_adjoint_into(bad.view(), Ties::First(arguments.view()), gx));
    }
    for found in wrong(rows, 2) {
        let error = || shape_error("grad_x", found, rows);
        refused(error(), found, |gx| op.adjoint_into(Linear::Sum, y.view(), gx));
        refused(error(), found, |gx| op.adjoint_add(Linear::Sum, y.view(), gx));
        refused(error(), found, |gx| op.product_adjoint_into(y.view(), x.view(), gx));
        refused(error(), found, |gx| op.softmax_adjoint_into(x.view(), x.view(), gx));
        refused(error(), found, |gx| op.log_sum_exp_adjoint_into(y.view(), x.view(), y.view(), gx));
        refused(error(), found, |gx| op.extremes_adjoint_into(y.view(), Ties::First(arguments.view()), gx));
    }
}

#[test]
fn the_lowest_bad_argument_is_named() {
    let outside = |position: &[usize], value, bound| Error::IndexOutOfRange {
        argument: "arguments",
        position: position.to_vec(),
        value,
        bound,
    };
    let grad_y = ones(RESULTS);
    let mut arguments = Array3::<u32>::from_elem(RESULTS, u32::MAX);
    arguments[[1, 2, 5]] = 9;
    arguments[[1, 0, 3]] = 4;
    refused(outside(&[1, 0, 3], 4, 4), FEATURES, |gx| {
        pooled().extremes_adjoint_into(grad_y.view(), Ties::First(arguments.view()), gx)
    });
    // In a ragged group the bound is the group's own.
    let ragged = Pooled::ragged(array![0, 1, 2].view(), array![0, 1, 1, 3].view(), 3, OutOfRange::Error).unwrap();
    let grad_y = Array2::<f32>::ones([3, 1]);
    for (arguments, bad) in
        [(array![[0], [0], [2]], outside(&[1, 0], 0, 0)), (array![[0], [u32::MAX], [2]], outside(&[2, 0], 2, 2))]
    {
        refused(bad, [3, 1], |gx| ragged.extremes_adjoint_add(grad_y.view(), Ties::First(arguments.view()), gx));
    }
    let arguments = array![[6], [7], [8]];
    let refusal = segments().extremes_adjoint(grad_y.view(), Ties::First(arguments.view()));
    assert_eq!(refusal.unwrap_err().to_string(), "arguments[1, 0] = 7 is outside 0..7");
}

#[test]
fn the_lowest_bad_index_is_named() {
    let mut indices = Array3::<i64>::zeros([3, 50, 200]);
    indices[[2, 49, 199]] = -1;
    indices[[1, 7, 150]] = 5;
    let text = "indices[1, 7, 150] = 5 is outside 0..5";
    let weighted = Weighted::new(indices.view(), 5, OutOfRange::Error).err().unwrap();
    let pooled = Pooled::new(indices.view(), 5, OutOfRange::Error).err().unwrap();
    assert_eq!([weighted.to_string(), pooled.to_string()], [text, text]);
    let ids = Array1::from_iter(indices);
    let segments = Segments::new(ids.view(), 5, OutOfRange::Error).err().unwrap();
    assert_eq!(segments.to_string(), "ids[11550] = 5 is outside 0..5");
    for policy in [OutOfRange::Error, OutOfRange::Clamp] {
        let none = Segments::new(array![0].view(), 0, policy).err().unwrap();
        assert_eq!(none.to_string(), "ids[0] = 0 is outside 0..0");
    }
}

/// What is wrong with offsets between which 3 entries lie.
fn offsets<I: Index>(offsets: Array1<I>) -> Option<String> {
    let weighted = Weighted::ragged(array![0, 1, 2].view(), offsets.view(), 3, OutOfRange::Error).err();
    let pooled = Pooled::ragged(array![0, 1, 2].view(), offsets.view(), 3, OutOfRange::Error).err();
    let segments = Segments::from_offsets(offsets.view(), 3).err();
    assert_eq!((&weighted, &pooled), (&pooled, &segments));
    segments.map(|error| error.to_string())
}

#[test]
fn offsets_that_do_not_ascend_from_zero_to_the_end() {
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(offsets(array![0, 2, 3]), None);
    assert_eq!(offsets(array![0u32, 0, 3, 3]), None);
    assert_eq!(offsets(array![0, 2, 1, 3]), text("offsets[2] = 1, expected 2 to 3"));
    assert_eq!(offsets(array![0i64, 2, 7, -1]), text("offsets[2] = 7, expected 2 to 3"));
    assert_eq!(offsets(array![1, 3]), text("offsets[0] = 1, expected 0 to 0"));
    assert_eq!(offsets(array![0, 2]), text("offsets[1] = 2, expected 3 to 3"));
    assert_eq!(offsets(array![0]), text("offsets[0] = 0, expected 3 to 3"));
    assert_eq!(offsets(array![0, (1i64 << 32) + 3]), text("offsets[1] = 4294967299, expected 0 to 3"));
    assert_eq!(offsets(array![0, usize::MAX]), text("offsets[1] = 18446744073709551615, expected 0 to 3"));
    assert_eq!(offsets(array![0, i64::MIN, 3]), text("offsets[1] = -9223372036854775808, expected 0 to 3"));
    assert_eq!(offsets::<i32>(array![]), text("offsets has shape [0], expected [1]"));
}

#[test]
fn lengths_that_are_not_those_of_the_rows() {
    let lengths = |lengths: Array1<i64>| Segments::from_lengths(lengths.view(), 5).err().map(|e| e.to_string());
    let text = |text: &str| Some(text.to_owned());
    assert_eq!(lengths(array![2, 0, 3]), None);
    assert_eq!(lengths(array![2, -1, 4]), text("lengths[1] = -1, expected 0 to 3"));
    assert_eq!(lengths(array![2, 4, 3]), text("lengths[1] = 4, expected 0 to 3"));
    assert_eq!(lengths(array![2, 0, 2]), text("lengths[2] = 2, expected 3 to 3"));
    assert_eq!(lengths(array![i64::MAX, i64::MAX]), text("lengths[0] = 9223372036854775807, expected 0 to 5"));
    assert_eq!(lengths(array![]), text("lengths has shape [0], expected [1]"));
    assert!(Segments::from_lengths(Array1::<i32>::zeros(0).view(), 0).unwrap().is_empty());
}

#[test]
fn levels_that_this_cpu_lacks() {
    for level in Level::ALL.into_iter().filter(|level| !level.is_available()) {
        let unavailable = |error| matches!(error, Some(Error::LevelUnavailable { .. }));
        assert!(unavailable(weighted().with_level(level).err()));
        assert!(unavailable(pooled().with_level(level).err()));
        assert!(unavailable(segments().with_level(level).err()));
    }
    const fn shared<T: Send + Sync>() {}
    shared::<Weighted<Ix3>>();
    shared::<Pooled<Ix3>>();
    shared::<Segments>();
}
