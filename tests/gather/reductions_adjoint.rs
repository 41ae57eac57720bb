//! The adjoints of the reductions of gathered rows are transposes, and the gradients that finite differences give.

use crate::common::gather::{REDUCTIONS, by};
use crate::common::levels;
use crate::common::random::Random;
use crate::common::values::Values;
use ndarray::{Array, Array1, Array3, Dimension};
use pullback::Level;
use pullback::gather::{Extremum, Index, Linear, OutOfRange, Pooled, Segments, Ties, Tuning, Weighted};

/// B, N, P, S, C: more queries than points, and fewer.
const SIZES: [[usize; 5]; 4] = [[2, 3, 40, 3, 17], [3, 40, 2, 1, 5], [1, 7, 7, 4, 33], [2, 1, 30, 3, 4]];
const POLICIES: [OutOfRange; 3] = [OutOfRange::Error, OutOfRange::Skip { fill: 9.0 }, OutOfRange::Clamp];

/// Runs `test` on indices of every size and policy, with every reduction.
fn problems(test: impl Fn(Level, &Array3<i64>, [usize; 5], OutOfRange, Tuning)) {
    levels::each(|level| {
        for (size, policy) in SIZES.into_iter().flat_map(|size| POLICIES.map(|policy| (size, policy))) {
            let [batches, rows, points, samples, _] = size;
            let mut random = Random::new(rows as u64);
            let margin = if policy == OutOfRange::Error { 0 } else { 2 };
            let indices = Array3::from_shape_simple_fn([batches, points, samples], || {
                random.below(rows + 2 * margin) as i64 - margin as i64
            });
            REDUCTIONS.into_iter().for_each(|reduction| test(level, &indices, size, policy, by(reduction)));
        }
    });
}

fn weighted<I: Index>(level: Level, indices: &Array3<I>, rows: usize, policy: OutOfRange, tuning: Tuning) -> Weighted {
    Weighted::new(indices.view(), rows, policy).unwrap().with_level(level).unwrap().with_tuning(tuning)
}

fn dot<D: Dimension>(a: &Array<f64, D>, b: &Array<f64, D>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Equal but for the rounding of `n` terms relative to their magnitudes.
#[track_caller]
fn assert_close(a: f64, b: f64, n: usize, magnitudes: f64) {
    assert!((a - b).abs() <= 4.0 * n as f64 * f64::EPSILON * magnitudes, "{a} and {b}");
}

#[test]
fn weighted_sums_are_bilinear_exactly_on_integers() {
    problems(|level, indices, [b, n, p, s, c], policy, tuning| {
        let op = weighted(level, indices, n, policy, tuning);
        let (x, w) = (Values::Integers.array([b, n, c], 1), Values::Integers.array([b, p, s], 2));
        let grad_y = Values::Integers.array([b, p, c], 3);
        let y = dot(&op.forward(x.view(), w.view()).unwrap(), &grad_y);
        let found = op.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
        assert_eq!((dot(&found.grad_x, &x), dot(&found.grad_w, &w)), (y, y));
        assert_ne!(y, 0.0, "a product of 0 says nothing");
    });
}

/// Interpolation from few points to many queries, in f64 of all magnitudes.
#[test]
fn weighted_sums_are_bilinear_to_rounding() {
    problems(|level, indices, [b, n, p, s, c], policy, tuning| {
        let op = weighted(level, indices, n, policy, tuning);
        let (x, w) = (Values::Spread.array([b, n, c], 1), Values::Spread.array([b, p, s], 2));
        let grad_y = Values::Spread.array([b, p, c], 3);
        let y = dot(&op.forward(x.view(), w.view()).unwrap(), &grad_y);
        let found = op.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
        let magnitudes = dot(&op.forward(x.abs().view(), w.abs().view()).unwrap(), &grad_y.abs());
        let terms = b * p * s * c;
        assert_close(dot(&found.grad_x, &x), y, terms, magnitudes);
        assert_close(dot(&found.grad_w, &w), y, terms, magnitudes);
    });
}

#[test]
fn pooling_is_transposed() {
    problems(|level, indices, [b, n, p, s, c], policy, tuning| {
        let op = Pooled::new(indices.view(), n, policy).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let (x, grad_y) = (Values::Integers.array([b, n, c], 1), Values::Integers.array([b, p, c], 3));
        let sum = dot(&op.forward(Linear::Sum, x.view()).unwrap(), &grad_y);
        assert_eq!(dot(&op.adjoint(Linear::Sum, grad_y.view()).unwrap(), &x), sum);
        let (terms, magnitudes) = (b * p * s * c, 64.0 * (b * p * s * c) as f64);
        let mean = dot(&op.forward(Linear::Mean, x.view()).unwrap(), &grad_y);
        assert_close(dot(&op.adjoint(Linear::Mean, grad_y.view()).unwrap(), &x), mean, terms, magnitudes);
        for which in [Extremum::Max, Extremum::Min] {
            let found = op.extremes(which, x.view()).unwrap();
            let value = dot(&found.values, &grad_y);
            let first = op.extremes_adjoint(grad_y.view(), Ties::First(found.arguments.view())).unwrap();
            assert_eq!(dot(&first, &x), value);
            let even = op.extremes_adjoint(grad_y.view(), Ties::Even(which, x.view())).unwrap();
            assert_close(dot(&even, &x), value, terms, magnitudes);
        }
    });
}

#[test]
fn segments_are_transposed() {
    problems(|level, indices, [_, n, _, _, c], policy, tuning| {
        let ids: Array1<i64> = indices.iter().copied().collect();
        let op = Segments::new(ids.view(), n, policy).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let (x, grad_y) = (Values::Integers.array([ids.len(), c], 1), Values::Integers.array([n, c], 3));
        let sum = dot(&op.forward(Linear::Sum, x.view()).unwrap(), &grad_y);
        assert_eq!(dot(&op.adjoint(Linear::Sum, grad_y.view()).unwrap(), &x), sum);
        let (terms, magnitudes) = (ids.len() * c, 64.0 * (ids.len() * c) as f64);
        let mean = dot(&op.forward(Linear::Mean, x.view()).unwrap(), &grad_y);
        assert_close(dot(&op.adjoint(Linear::Mean, grad_y.view()).unwrap(), &x), mean, terms, magnitudes);
        for which in [Extremum::Max, Extremum::Min] {
            let found = op.extremes(which, x.view()).unwrap();
            let value = dot(&found.values, &grad_y);
            let first = op.extremes_adjoint(grad_y.view(), Ties::First(found.arguments.view())).unwrap();
            assert_eq!(dot(&first, &x), value);
            let even = op.extremes_adjoint(grad_y.view(), Ties::Even(which, x.view())).unwrap();
            assert_close(dot(&even, &x), value, terms, magnitudes);
        }
    });
}

/// `gradient` is what central differences of `loss` give at `x`, at every `step`-th element.
#[track_caller]
fn assert_gradient<D: Dimension>(
    x: &Array<f64, D>,
    gradient: &Array<f64, D>,
    step: usize,
    loss: impl Fn(&Array<f64, D>) -> f64,
) {
    const STEP: f64 = 1.0 / 4096.0;
    assert_eq!(x.shape(), gradient.shape());
    let mut moved = x.clone();
    for (at, (&middle, &gradient)) in x.iter().zip(gradient).enumerate().step_by(step) {
        let mut at_shift = |shift: f64| {
            *moved.iter_mut().nth(at).unwrap() = middle + shift;
            loss(&moved)
        };
        let difference = (at_shift(STEP) - at_shift(-STEP)) / (2.0 * STEP);
        at_shift(0.0);
        let bound = 1e-6 * gradient.abs().max(10.0);
        assert!((gradient - difference).abs() <= bound, "element {at}: {gradient} and {difference}");
    }
}

/// Distinct numbers, further apart than any step, between -2 and 2.
fn distinct<S: ndarray::IntoDimension>(shape: S) -> Array<f64, S::Dim> {
    let mut x = Array::zeros(shape);
    let n = x.len();
    x.iter_mut().enumerate().for_each(|(k, x)| *x = (k * 37 % 101) as f64 / 25.0 - 2.0 + k as f64 / n as f64 / 100.0);
    x
}

#[test]
fn weighted_sums_by_finite_differences() {
    problems(|level, indices, [b, n, p, s, c], policy, tuning| {
        let op = weighted(level, indices, n, policy, tuning);
        let (x, w) = (Values::Integers.array([b, n, c], 1) / 4.0, Values::Integers.array([b, p, s], 2) / 4.0);
        // Of half the sum of squares.
        let y = op.forward(x.view(), w.view()).unwrap();
        let found = op.adjoint(y.view(), x.view(), w.view()).unwrap();
        let loss = |x: &Array3<f64>, w: &Array3<f64>| op.forward(x.view(), w.view()).unwrap().pow2().sum() / 2.0;
        assert_gradient(&x, &found.grad_x, 7, |x| loss(x, &w));
        assert_gradient(&w, &found.grad_w, 7, |w| loss(&x, w));
    });
}

#[test]
fn pooling_by_finite_differences() {
    problems(|level, indices, [b, n, _, _, c], policy, tuning| {
        let op = Pooled::new(indices.view(), n, policy).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let x = distinct([b, n, c]);
        for linear in [Linear::Sum, Linear::Mean] {
            let gradient = op.adjoint(linear, op.forward(linear, x.view()).unwrap().view()).unwrap();
            assert_gradient(&x, &gradient, 7, |x| op.forward(linear, x.view()).unwrap().pow2().sum() / 2.0);
        }
        for which in [Extremum::Max, Extremum::Min] {
            let loss = |x: &Array3<f64>| op.extremes(which, x.view()).unwrap().values.pow2().sum() / 2.0;
            let found = op.extremes(which, x.view()).unwrap();
            // The same row twice in a group is a tie that moves together.
            let first = op.extremes_adjoint(found.values.view(), Ties::First(found.arguments.view())).unwrap();
            assert_gradient(&x, &first, 7, loss);
            let even = op.extremes_adjoint(found.values.view(), Ties::Even(which, x.view())).unwrap();
            assert_gradient(&x, &even, 7, loss);
        }
    });
}

#[test]
fn segments_by_finite_differences() {
    problems(|level, indices, [_, n, _, _, c], policy, tuning| {
        let ids: Array1<i64> = indices.iter().copied().take(24).collect();
        let op = Segments::new(ids.view(), n, policy).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let x = distinct([ids.len(), c]);
        let of_segments = Values::Integers.array([n, c], 2) / 4.0;
        let of_rows = Values::Integers.array([ids.len(), c], 3) / 4.0;
        for linear in [Linear::Sum, Linear::Mean] {
            let gradient = op.adjoint(linear, of_segments.view()).unwrap();
            assert_gradient(&x, &gradient, 11, |x| dot(&op.forward(linear, x.view()).unwrap(), &of_segments));
        }
        // Of few factors, so that rounding stays small.
        let factors = &x / 2.0;
        let gradient = op.product_adjoint(of_segments.view(), factors.view()).unwrap();
        assert_gradient(&factors, &gradient, 11, |x| dot(&op.product(x.view()).unwrap(), &of_segments));
        for which in [Extremum::Max, Extremum::Min] {
            let found = op.extremes(which, x.view()).unwrap();
            let gradient = op.extremes_adjoint(of_segments.view(), Ties::First(found.arguments.view())).unwrap();
            assert_gradient(&x, &gradient, 11, |x| dot(&op.extremes(which, x.view()).unwrap().values, &of_segments));
        }
        let filled = |y: Array<f64, _>| y.mapv(|y: f64| if y.is_finite() { y } else { 0.0 });
        let y = op.log_sum_exp(x.view()).unwrap();
        let gradient = op.log_sum_exp_adjoint(of_segments.view(), x.view(), y.view()).unwrap();
        assert_gradient(&x, &gradient, 11, |x| dot(&filled(op.log_sum_exp(x.view()).unwrap()), &of_segments));
        let y = op.softmax(x.view()).unwrap();
        let gradient = op.softmax_adjoint(of_rows.view(), y.view()).unwrap();
        assert_gradient(&x, &gradient, 11, |x| dot(&op.softmax(x.view()).unwrap(), &of_rows));
    });
}

#[test]
fn sums_start_at_the_callers_values_and_ascend() {
    let indices = ndarray::array![[[1], [0], [1], [1]]];
    let grad_y = ndarray::array![[[6f32], [-0.0], [1e8], [-1e8]]];
    levels::each(|level| {
        for reduction in REDUCTIONS {
            let op = weighted(level, &indices, 3, OutOfRange::Error, by(reduction));
            let w = Array3::ones([1, 4, 1]);
            // From 3: 8. In descending order it would be 6, and 11 with the start added at the end.
            let start = ndarray::array![[[-0.0], [3.0], [7.0]]];
            let (mut grad_x, mut grad_w) = (start.clone(), Array3::zeros([1, 4, 1]));
            let x = Array3::ones([1, 3, 1]);
            op.adjoint_add(grad_y.view(), x.view(), w.view(), grad_x.view_mut(), grad_w.view_mut()).unwrap();
            let expected = ndarray::array![[[-0.0], [8.0], [7.0]]].mapv(f32::to_bits);
            assert_eq!(grad_x.mapv(f32::to_bits), expected);
            let pool = Pooled::new(indices.view(), 3, OutOfRange::Error).unwrap().with_level(level).unwrap();
            let mut grad_x = start;
            pool.with_tuning(by(reduction)).adjoint_add(Linear::Sum, grad_y.view(), grad_x.view_mut()).unwrap();
            assert_eq!(grad_x.mapv(f32::to_bits), expected);
        }
    });
}
