//! Problems for reductions by segment.

use super::cells::Cell;
use super::gather::{Id, row};
use super::groups::zeros;
use super::reduction_case::{Family, Form, Problem, assert_flat, check_arguments, check_into, flat};
use super::segments::SegmentIds;
use super::strides::Strided;
use super::values::Value;
use ndarray::{Array2, ArrayD, ArrayRef, Dimension, Ix1, Ix2};
use pullback::Level;
use pullback::gather::{Extremum, Linear, Segments, Ties};

pub struct BySegment;

impl Family for BySegment {
    fn check<T: Value, I: Id>(problem: &Problem, level: Level) {
        if let Form::Ragged(lengths) = &problem.form {
            let ids: Vec<_> = (0..).zip(lengths).flat_map(|(segment, &n)| vec![Some(segment); n]).collect();
            let rows = ids.len();
            let of_offsets = Segments::from_offsets(problem.offsets::<I>().view(), rows).expect("they ascend");
            let reference = SegmentIds { ids, count: lengths.len() };
            check_operator::<T>(problem, of_offsets, &reference, level);
            if rows > 0 || !lengths.is_empty() {
                let number = |&n: &usize| I::try_from(n as i128).ok().expect("rows are few");
                let lengths: ndarray::Array1<I> = lengths.iter().map(number).collect();
                let of_lengths = Segments::from_lengths(lengths.view(), rows).expect("their sum is right");
                check_operator::<T>(problem, of_lengths, &reference, level);
            }
        } else {
            let rows = problem.batches() * problem.lengths().iter().sum::<usize>();
            let ids = problem.indices::<I, _>(Ix1(rows));
            let made = Segments::new(ids.view(), problem.rows, problem.policy);
            if let Some(op) = problem.accepted("ids", made, &ids.view()) {
                let ids = ids.view().iter().map(|&id| row(id, problem.rows, problem.policy)).collect();
                check_operator::<T>(problem, op, &SegmentIds { ids, count: problem.rows }, level);
            }
        }
    }
}

fn widened<T: Value, D: Dimension>(array: &ArrayRef<T, D>) -> ArrayD<f64> {
    array.map(|x| x.to_f64().expect("an element")).into_dyn()
}

/// Every element is within its bound of what it should be.
#[track_caller]
fn assert_near<T: Value>(what: &str, found: &Array2<T>, expected: &ArrayD<(f64, f64)>) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    for ((at, &(value, bound)), &found) in expected.indexed_iter().zip(found) {
        let found = found.to_f64().expect("an element");
        let same = found == value || found.is_nan() && value.is_nan();
        assert!(same || (found - value).abs() <= bound, "{what}{at:?} = {found}, not {value} within {bound}");
    }
}

fn check_operator<T: Value>(problem: &Problem, op: Segments, reference: &SegmentIds, level: Level) {
    let op = op.with_level(level).expect("the level is available").with_tuning(problem.tuning);
    let op = op.with_empty(problem.empty);
    assert_eq!((op.level(), op.len(), op.is_empty()), (level, reference.count, reference.count == 0));
    assert_eq!(op.counts().unwrap().to_vec(), reference.sizes());
    let (layout, channels) = (problem.layout, problem.channels);
    let (of_rows, of_segments) = ([reference.ids.len(), channels], [reference.count, channels]);
    let (rows, segments) = (Ix2(of_rows[0], channels), Ix2(of_segments[0], channels));
    let mut draw = problem.draw::<T>();
    let x = Strided::new(rows, layout.x, &mut draw);
    let grad_y = Strided::new(segments, layout.grad_y, &mut draw);
    let y = Strided::new(segments, layout.first, &mut draw);
    let grad_x = Strided::new(rows, layout.first, &mut draw);
    let (flat_x, flat_y) = (flat(&x.view(), of_rows), flat(&grad_y.view(), of_segments));
    let (zero, start) = (zeros::<T, 2>(of_rows), flat(&grad_x.view(), of_rows));

    for (linear, mean) in [(Linear::Sum, false), (Linear::Mean, true)] {
        let expected = reference.sum(mean, &flat_x);
        assert_flat("forward", &op.forward(linear, x.view()).expect("the shape is right"), &expected);
        check_into("forward_into", &y, &expected, |y| op.forward_into(linear, x.view(), y));
        let expected = reference.sum_adjoint(mean, &flat_y, None);
        assert_flat("adjoint", &op.adjoint(linear, grad_y.view()).expect("the shape is right"), &expected);
        check_into("adjoint_into", &grad_x, &expected, |gx| op.adjoint_into(linear, grad_y.view(), gx));
        let sums = reference.sum_adjoint(mean, &flat_y, Some(&start));
        check_into("adjoint_add", &grad_x, &sums, |gx| op.adjoint_add(linear, grad_y.view(), gx));
    }

    let expected = reference.fold(&flat_x, T::one(), |product, element| product * element);
    assert_flat("product", &op.product(x.view()).expect("the shape is right"), &expected);
    check_into("product_into", &y, &expected, |y| op.product_into(x.view(), y));
    let expected = reference.product_adjoint(&flat_y, &flat_x);
    let pulled = op.product_adjoint(grad_y.view(), x.view()).expect("the shapes are right");
    assert_flat("product_adjoint", &pulled, &expected);
    check_into("product_adjoint_into", &grad_x, &expected, |gx| op.product_adjoint_into(grad_y.view(), x.view(), gx));
    let sums = reference.added(&expected, &start);
    check_into("product_adjoint_add", &grad_x, &sums, |gx| op.product_adjoint_add(grad_y.view(), x.view(), gx));

    for which in [Extremum::Max, Extremum::Min] {
        let (values, arguments) = reference.extremes(which, &flat_x, problem.empty);
        let found = op.extremes(which, x.view()).expect("the shape is right");
        assert_flat("extremes", &found.values, &values);
        assert!(found.arguments.iter().eq(&arguments), "arguments {:?}, not {arguments:?}", found.arguments);
        check_into("extremes_into", &y, &values, |values| {
            check_arguments(layout.second, segments, &arguments, |arguments| {
                op.extremes_into(which, x.view(), values, arguments).expect("the shapes are right");
            });
            Ok(())
        });

        // Any row is an argument, also one of another segment.
        let any_row = |k: usize| (k * 7).checked_rem(of_rows[0]).filter(|_| k % 5 < 4);
        let mut other = arguments.clone();
        other.iter_mut().enumerate().for_each(|(k, row)| *row = any_row(k).map_or(u32::MAX, |row| row as u32));
        for arguments in [arguments, other] {
            let mut strided = Strided::new(segments, layout.second, || 0);
            strided.view_mut().iter_mut().zip(&arguments).for_each(|(to, &from)| *to = from);
            let ties = || Ties::First(strided.view());
            let expected = reference.first_adjoint(&flat_y, &arguments, &zero);
            let pulled = op.extremes_adjoint(grad_y.view(), ties()).expect("the arguments are good");
            assert_flat("adjoint to the first", &pulled, &expected);
            check_into("into", &grad_x, &expected, |gx| op.extremes_adjoint_into(grad_y.view(), ties(), gx));
            let sums = reference.first_adjoint(&flat_y, &arguments, &start);
            check_into("added", &grad_x, &sums, |gx| op.extremes_adjoint_add(grad_y.view(), ties(), gx));
        }
        let ties = || Ties::Even(which, x.view());
        let expected = reference.even_adjoint(which, &flat_x, &flat_y, &zero);
        let pulled = op.extremes_adjoint(grad_y.view(), ties()).expect("the shape is right");
        assert_flat("even adjoint", &pulled, &expected);
        check_into("even, into", &grad_x, &expected, |gx| op.extremes_adjoint_into(grad_y.view(), ties(), gx));
        let sums = reference.even_adjoint(which, &flat_x, &flat_y, &start);
        check_into("even, added", &grad_x, &sums, |gx| op.extremes_adjoint_add(grad_y.view(), ties(), gx));
    }

    check_exponentials(&op, reference, [&x, &grad_x], [&y, &grad_y]);
}

/// Those of finite values are near those of f64; all are the same bits in every form.
fn check_exponentials<T: Value>(
    op: &Segments,
    reference: &SegmentIds,
    [x, of_rows]: [&Strided<T, Ix2>; 2],
    [of_segments, grad_y]: [&Strided<T, Ix2>; 2],
) {
    let (epsilon, tiny) = (T::epsilon().to_f64().expect("finite"), T::min_positive_value().to_f64().expect("finite"));
    // The reference has the roundings of f64 too.
    let epsilon = 2.0 * epsilon;
    let small =
        |array: &Strided<T, Ix2>| array.view().iter().all(|x| x.is_nan() || x.abs() < T::from_f64(1e6).expect("1e6"));
    let near = [x, of_rows, of_segments, grad_y].into_iter().all(small);
    let copied = |array: &Array2<T>| array.mapv(Cell::Computed).into_dyn();
    let wide_x = widened(&x.view());

    let log_sums = op.log_sum_exp(x.view()).expect("the shape is right");
    check_into("log_sum_exp_into", of_segments, &copied(&log_sums), |y| op.log_sum_exp_into(x.view(), y));
    let log_grad = op.log_sum_exp_adjoint(grad_y.view(), x.view(), log_sums.view()).expect("the shapes are right");
    check_into("log_sum_exp_adjoint_into", of_rows, &copied(&log_grad), |gx| {
        op.log_sum_exp_adjoint_into(grad_y.view(), x.view(), log_sums.view(), gx)
    });
    let start = of_rows.view().to_owned().into_dyn();
    check_into("log_sum_exp_adjoint_add", of_rows, &reference.added(&copied(&log_grad), &start), |gx| {
        op.log_sum_exp_adjoint_add(grad_y.view(), x.view(), log_sums.view(), gx)
    });
    let soft = op.softmax(x.view()).expect("the shape is right");
    check_into("softmax_into", of_rows, &copied(&soft), |y| op.softmax_into(x.view(), y));
    let soft_grad = op.softmax_adjoint(of_rows.view(), soft.view()).expect("the shapes are right");
    check_into("softmax_adjoint_into", of_rows, &copied(&soft_grad), |gx| {
        op.softmax_adjoint_into(of_rows.view(), soft.view(), gx)
    });
    check_into("softmax_adjoint_add", of_rows, &reference.added(&copied(&soft_grad), &start), |gx| {
        op.softmax_adjoint_add(of_rows.view(), soft.view(), gx)
    });
    if near {
        assert_near("log_sum_exp", &log_sums, &reference.log_sum_exp(&wide_x, epsilon));
        assert_near("softmax", &soft, &reference.softmax(&wide_x, epsilon, tiny));
        let wide = [&widened(&grad_y.view()), &wide_x, &widened(&log_sums)];
        assert_near("log_sum_exp_adjoint", &log_grad, &reference.log_sum_exp_adjoint(wide, epsilon, tiny));
        let expected = reference.softmax_adjoint(&widened(&of_rows.view()), &widened(&soft), epsilon, tiny);
        assert_near("softmax_adjoint", &soft_grad, &expected);
    }
}
