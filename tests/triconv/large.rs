//! Scans and products of so many terms that binomial weights are no floats, and answers that are none.

use crate::common::levels;
use crate::common::triconv::{Formula, Sequence, Table, of_grad_b, of_gradient, of_step, zeros};
use crate::common::triconv_bounds::{items, number};
use crate::common::triconv_scan_case::{KINDS, Kind, SIDES, WEIGHTS};
use crate::common::triconv_strategy::LANES;
use crate::common::triconv_unbounded::Unbounded;
use crate::common::wide::{Referred, Wide};
use ndarray::{Array2, Array3, ArrayD, Axis, array};
use pullback::triconv::{Correlation, Lanes, Product, Scan, Side, Tuning, Weights};
use pullback::{Error, Level, Result};

fn overflow<R>(result: &'static str, first_k: usize) -> Result<R> {
    Err(Error::Overflow { result, first_k })
}

fn unbounded<T: Referred>(given: &Sequence<T>) -> [Sequence<Unbounded>; 2] {
    let value = given.map(|x| Unbounded::new(x.to_f64().unwrap()));
    let size = value.map(Unbounded::magnitude);
    [value, size]
}

/// `found` is near the sum of a formula, wherever its terms are.
#[track_caller]
fn near<T: Referred>(
    what: &str,
    formula: &Formula,
    w: &Table<Unbounded>,
    [first, second]: [&[Sequence<Unbounded>; 2]; 2],
    start: Option<&[T]>,
    found: &[T],
) {
    let start = |size: bool| -> Vec<Unbounded> {
        let wide = |x: &T| Unbounded::new(x.to_f64().unwrap());
        let given = start.map(|start| start.iter().map(wide).collect());
        let given = given.unwrap_or_else(|| zeros(found.len()));
        if size { given.into_iter().map(Unbounded::magnitude).collect() } else { given }
    };
    let values = formula.sum(w, &first[0], &second[0], start(false));
    let sizes = formula.sum(w, &first[1], &second[1], start(true));
    let bound = (formula.products(&first[0]) as f64 + 16.0) * T::unit();
    for ((found, value), size) in found.iter().zip(values).zip(sizes) {
        let off = (found.to_f64().unwrap() - value.to_dd().to_f64()).abs();
        let error = bound * size.to_dd().to_f64() + T::tiny();
        assert!(value.to_dd().to_f64().is_finite(), "{what} is in range");
        assert!(off <= error, "{what} = {found:?}, {off:e} from {value:?}, more than {error:e}");
    }
}

/// All steps of a scan of one sequence and its gradients where those of some A are given: as many of them as are in range, since the
/// gradient of a B has a binomial coefficient in it.
fn check_scan<T: Referred>(
    (level, side, tuning): (Level, Side, Tuning),
    a0: &Array2<T>,
    b: &Array3<T>,
    w: &Table<Unbounded>,
    grads: &[(usize, f64)],
) {
    let (n, shape) = (b.len_of(Axis(0)), [a0.nrows(), a0.ncols()]);
    let scan = Scan::<T>::new(n, Weights::Binomial).unwrap().with_side(side).with_level(level).unwrap();
    let scan = scan.with_tuning(tuning);
    let a = scan.forward(a0.view(), b.view()).unwrap();
    let sequence = |array: &ArrayD<T>, shape| items(array, 1, shape).swap_remove(0);
    let (of_a, of_b) = (sequence(&a, shape), unbounded(&sequence(&b.clone().into_dyn(), [b.len_of(Axis(1)); 2])));
    let wide_a = unbounded(&of_a);
    // Every one of few, and the last.
    let some = |count: usize| (0..count).rev().step_by(if count > 300 { 7 } else { 1 });
    for k in some(n + 1).filter(|&k| k > 0) {
        near(&format!("A_{k}"), &of_step(side, k), w, [&wide_a, &of_b], None, of_a.cells(k));
    }
    let mut grad = ArrayD::zeros(a.raw_dim());
    for &(k, x) in grads {
        grad.index_axis_mut(Axis(0), k).fill(number::<T>(x));
    }
    let found = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
    let (grad, g) = (sequence(&grad, shape), sequence(&found.grad_s, shape));
    let wide_g = unbounded(&g);
    for j in some(n + 1) {
        let formula = of_gradient(side, n, j);
        near(&format!("grad_s[{j}]"), &formula, w, [&wide_g, &of_b], Some(grad.cells(j)), g.cells(j));
    }
    let m = b.len_of(Axis(1));
    let of_grads = sequence(&found.grad_b, [m, m]);
    for i in some(n) {
        near(&format!("grad_b[{i}]"), &of_grad_b(side, n, i), w, [&wide_a, &wide_g], None, of_grads.cells(i));
    }
}

/// Derivatives of `exp(exp(c t) - 1)`: Bell numbers times `c^k`, in range though many of the weights are beyond it.
fn bell_like<T: Referred>(n: usize, c: f64) -> Array3<T> {
    Array3::from_shape_fn([n, 1, 1], |(i, ..)| number(c.powi(i as i32 + 1)))
}

#[test]
fn two_thousand_terms() {
    let w = Table::new(Weights::Binomial, 2000);
    let b = bell_like::<f64>(2000, 1.0 / 130.0);
    levels::each(|level| {
        check_scan((level, Side::Right, Tuning::default()), &array![[1.0]], &b, &w, &[(1, 1.0), (800, 1e-3)]);
    });
}

/// Around the last row of floats, of matrices.
#[test]
fn a_thousand_terms() {
    let w = Table::new(Weights::Binomial, 1200);
    for (at, n) in [1029, 1030, 1200].into_iter().enumerate() {
        let b = Array3::from_shape_fn([n, 2, 2], |(i, r, c)| {
            let turned = [[0.1, -0.9], [0.9, 0.05]][r][c];
            turned * 10_000f64.powi(-(i as i32)) * (1.0 + (i % 3) as f64)
        });
        let (a0, tuning) = (array![[1.0, -0.5]], Tuning { lanes: LANES[at + 1], ..Tuning::default() });
        // One of all, as references take their time.
        let level = Level::ALL.into_iter().filter(|level| level.is_available()).cycle().nth(at).unwrap();
        match at % 2 {
            0 => check_scan((level, Side::Right, tuning), &a0, &b, &w, &[(n.min(1000), 1e-3)]),
            _ => check_scan((level, Side::Left, tuning), &a0.reversed_axes(), &b, &w, &[(1, 1.0), (900, -1.0)]),
        }
    }
}

/// Where weights are beyond all floats and their products with next to nothing are not.
#[test]
fn weights_beyond_the_largest() {
    let w = Table::new(Weights::Binomial, 1200);
    fn with_one<T: Referred>(n: usize, at: usize, x: f64) -> Array3<T> {
        Array3::from_shape_fn([n, 1, 1], |(i, ..)| {
            number(if i == at {
                x
            } else if i == 0 {
                0.9
            } else {
                0.0
            })
        })
    }
    levels::each(|level| {
        for lanes in LANES {
            let tuning = Tuning { lanes, ..Tuning::default() };
            let a0 = array![[1f32]];
            check_scan((level, Side::Right, tuning), &a0, &with_one(160, 75, 1e-37), &w, &[(160, 1e-30), (3, 1.0)]);
            check_scan((level, Side::Left, tuning), &a0, &with_one(400, 0, 0.9), &w, &[(100, 1.0)]);
        }
        let b = with_one(1200, 550, 1e-300);
        check_scan((level, Side::Right, Tuning::default()), &array![[1.0]], &b, &w, &[(900, 1.0), (1, -2.0)]);
    });
}

/// Weights that overflow are multiplied by what makes up for it; here, by 0 and by next to nothing.
#[test]
fn weights_alone_never_overflow() {
    fn check<T: Referred>(level: Level, n: usize, tiny: f64) {
        for (lanes, side) in LANES.into_iter().flat_map(|lanes| SIDES.map(|side| (lanes, side))) {
            let scan = Scan::<T>::new(n, Weights::Binomial).unwrap().with_side(side).with_level(level).unwrap();
            let scan = scan.with_tuning(Tuning { lanes, ..Tuning::default() });
            let mut b = Array3::from_elem([n, 2, 2], T::zero());
            b.index_axis_mut(Axis(0), 0).assign(&array![[T::zero(), -T::one()], [T::one(), T::zero()]]);
            // The last one meets A_0 alone, with a weight of 1.
            b[[n - 1, 0, 0]] = number(tiny);
            let a0 = Array2::from_shape_fn([2, 2], |(r, c)| number::<T>((3 * r + c) as f64 + 1.0));
            let a = scan.forward(a0.view(), b.view()).unwrap();
            let turn = |a: &Array2<T>| {
                let quarter = b.index_axis(Axis(0), 0);
                if side == Side::Right { a.dot(&quarter) } else { quarter.dot(a) }
            };
            let mut expected = a0.clone();
            for k in 0..n {
                let off = (&a.index_axis(Axis(0), k) - &expected).mapv(T::abs);
                // The largest entry is 5, and every step has the rounding of one term.
                let error = 5.0 * 4.0 * (k + 1) as f64 * T::unit();
                assert!(off.iter().all(|x| x.to_f64().unwrap() <= error), "A_{k} of {n} is off by {off:?}");
                expected = turn(&expected);
            }
            let mut grad = ArrayD::from_elem(a.raw_dim(), T::zero());
            grad.index_axis_mut(Axis(0), n).assign(&a0);
            let found = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
            // Turned back.
            let most = 5.0 + 5.0 * 4.0 * (n + 1) as f64 * T::unit();
            assert!(found.grad_s.iter().all(|x| x.to_f64().unwrap().abs() <= most), "{:?}", found.grad_s);
        }
    }
    fn gradient_of_last<T: Referred>(level: Level, n: usize) {
        // Only B_{n-1} has a sum without weights beyond 1, and sums of others are 0 where A is.
        let scan = Scan::<T>::new(n, Weights::Binomial).unwrap().with_level(level).unwrap();
        let (mut a, mut grad) =
            (ArrayD::from_elem(vec![n + 1, 1, 1], T::zero()), ArrayD::from_elem(vec![n + 1, 1, 1], T::zero()));
        (a[[0, 0, 0]], grad[[n, 0, 0]]) = (number(3.0), number(5.0));
        let found = scan.adjoint(grad.view(), a.view(), Array3::from_elem([n, 1, 1], T::zero()).view()).unwrap();
        for i in 0..n {
            let (found, expected) = (found.grad_b[[i, 0, 0]].to_f64().unwrap(), if i + 1 == n { 15.0 } else { 0.0 });
            assert!((found - expected).abs() <= 17.0 * T::unit() * expected, "grad_b[{i}] = {found}");
        }
    }
    levels::each(|level| {
        for n in [140, 700, 1029, 1030, 1200] {
            gradient_of_last::<f64>(level, n);
            gradient_of_last::<f32>(level, n);
        }
        // A gradient of B_i has C(n - 1, i) in it: what is in range at all.
        for n in [130, 200, 600] {
            check::<f64>(level, n, 1e-300);
        }
        check::<f32>(level, 120, 1e-30);
    });
}

/// Every scan form of numbers, with and without sums of f64.
fn forms<T: Referred>(scan: &Scan<T>, a0: &ArrayD<T>, b: &ArrayD<T>) -> Vec<Result<ArrayD<T>>> {
    let n = b.shape()[b.ndim() - 3];
    let axes = a0.ndim() - 2;
    let mut s = ArrayD::from_elem([&a0.shape()[..axes], &[n + 1], &a0.shape()[axes..]].concat(), T::zero());
    s.index_axis_mut(Axis(axes), 0).assign(a0);
    let mut a = s.clone();
    let mut all = vec![scan.forward(a0.view(), b.view()), scan.forward_with(s.view(), b.view())];
    all.push(scan.forward_into(a0.view(), b.view(), a.view_mut()).map(|()| a.clone()));
    all.push(scan.forward_with_into(s.view(), b.view(), a.view_mut()).map(|()| a));
    all
}

/// `A_k = 1.5 2^(k-1)`, which is beyond all numbers where a first k of it is, and is not so near to the largest that a rounding decides.
#[test]
fn plain_growth() {
    fn check<T: Referred>(level: Level, kind: Kind, digits: usize) {
        for (at, (lanes, side)) in LANES.into_iter().flat_map(|l| SIDES.map(|side| (l, side))).enumerate() {
            for n in [digits, digits + 9] {
                let scan = Scan::<T>::new(n, Weights::Plain).unwrap().with_side(side).with_level(level).unwrap();
                let scan = scan.with_tuning(Tuning { lanes, ..Tuning::default() });
                let scan = if kind == Kind::Accumulated { scan.with_f64_accumulation() } else { scan };
                // The second of a batch begins eight times as large, and one that is not finite is none.
                for (items, first_k) in
                    [(vec![1.5], digits + 1), (vec![1.5, 12.0], digits - 2), (vec![f64::NAN, 1.5], digits + 1)]
                {
                    let a0 = ArrayD::from_shape_fn(vec![items.len(), 1, 1], |at| number(items[at[0]]));
                    let ones = ArrayD::from_elem(vec![n, 1, 1], T::one());
                    let each = ArrayD::from_elem(vec![items.len(), n, 1, 1], T::one());
                    for found in [forms(&scan, &a0, &ones), forms(&scan, &a0, &each)].concat() {
                        if n < first_k {
                            let last = found.unwrap().index_axis(Axis(1), n).iter().copied().last().unwrap();
                            assert!(last.is_finite());
                        } else {
                            assert_eq!(found, overflow("a", first_k), "{at}");
                        }
                    }
                }
            }
        }
    }
    levels::each(|level| {
        check::<f64>(level, Kind::F64, 1024);
        check::<f32>(level, Kind::F32, 128);
        check::<f32>(level, Kind::Accumulated, 128);
    });
}

/// `A_k = 2^(k-1)`: the first that is no number is a power of two, and the sum for it may be rounded to the largest number.
/// The order of that sum is that of lanes; along columns it is the order of terms, and exact.
#[test]
fn plain_growth_by_powers_of_two() {
    levels::each(|level| {
        for (lanes, side) in LANES.into_iter().flat_map(|l| SIDES.map(|side| (l, side))) {
            let scan = Scan::<f64>::new(1100, Weights::Plain).unwrap().with_side(side).with_level(level).unwrap();
            let scan = scan.with_tuning(Tuning { lanes, ..Tuning::default() });
            let found = scan.forward(array![[1.0]].view(), Array3::ones([1100, 1, 1]).view());
            let latest = if lanes == Some(Lanes::Columns) { 1025 } else { 1026 };
            assert!(
                matches!(found, Err(Error::Overflow { result: "a", first_k }) if (1025..=latest).contains(&first_k)),
                "{lanes:?}: {found:?}"
            );
        }
    });
}

/// `A_k = x^k` by binomial weights of every kind.
#[test]
fn powers_beyond_the_largest() {
    fn check<T: Referred>(level: Level, x: f64, n: usize, first_k: usize) {
        for lanes in LANES.into_iter().take(if n < 500 { 4 } else { 1 }) {
            let scan = Scan::<T>::new(n, Weights::Binomial).unwrap().with_level(level).unwrap();
            let scan = scan.with_tuning(Tuning { lanes, ..Tuning::default() });
            let mut b = ArrayD::from_elem(vec![n, 1, 1], T::zero());
            b[[0, 0, 0]] = number(x);
            let a0 = ArrayD::from_elem(vec![1, 1], T::one());
            let all = if n < 500 { forms(&scan, &a0, &b) } else { vec![scan.forward(a0.view(), b.view())] };
            for found in all {
                match n < first_k {
                    true => assert!(
                        (found.unwrap()[[n, 0, 0]].to_f64().unwrap().ln() / (n as f64 * x.ln()) - 1.0).abs() < 1e-6
                    ),
                    false => assert_eq!(found, overflow("a", first_k), "{x}^k"),
                }
            }
        }
    }
    levels::each(|level| {
        for (x, first_k) in [(1e3, 103), (1e100, 4), (30.0, 209), (1.5, 1751)] {
            check::<f64>(level, x, first_k - 1, first_k);
            check::<f64>(level, x, first_k, first_k);
            check::<f64>(level, x, first_k + 40, first_k);
        }
        check::<f64>(level, 1.42, 2000, 2025);
        for (x, first_k) in [(1e3, 13), (2.0, 128), (1.5, 219), (1.08, 1153)] {
            check::<f32>(level, x, first_k - 1, first_k);
            check::<f32>(level, x, first_k + 10, first_k);
        }
    });
}

/// An f32 is beyond the largest long before an f64 that it may be computed in.
#[test]
fn overflow_of_f32_before_that_of_f64() {
    levels::each(|level| {
        let binomial = [129, 150, 224, 300, 1100].map(|n| (n, Weights::Binomial, 40));
        for (n, weights, first_k) in binomial.into_iter().chain([(700, Weights::Plain, 82), (2000, Weights::Plain, 82)])
        {
            for (scaled, kind) in [(None, Kind::F32), (Some(true), Kind::F32), (None, Kind::Accumulated)] {
                let scan = Scan::<f32>::new(n, weights).unwrap().with_level(level).unwrap();
                let scan = scan.with_tuning(Tuning { scaled, ..Tuning::default() });
                let scan = if kind == Kind::Accumulated { scan.with_f64_accumulation() } else { scan };
                let twos = Array3::from_elem([n, 1, 1], 2f32);
                let found = scan.forward(array![[1f32]].view(), twos.view());
                assert_eq!(found, overflow("a", first_k), "{n} steps, {weights:?}, {scaled:?}, {kind:?}");
            }
        }
        // 2 * 10^(30 i), of which f32 has the first and f64 the first ten.
        let scan = Scan::<f32>::new(20, Weights::Plain).unwrap().with_level(level).unwrap().with_f64_accumulation();
        let mut b = Array3::zeros([20, 1, 1]);
        b[[0, 0, 0]] = 1e30f32;
        assert_eq!(scan.forward(array![[2f32]].view(), b.view()), overflow("a", 2));
        let product =
            Product::<f32>::new(3, Weights::Plain).unwrap().with_level(level).unwrap().with_f64_accumulation();
        let x = Array3::from_shape_vec([2, 1, 1], vec![1e10f32, 1e30]).unwrap();
        assert_eq!(product.forward(x.view(), x.view()), overflow("c", 1));
    });
}

/// Gradients of S are looked at before those of B, and each is named with the first of its matrices.
#[test]
fn gradients_beyond_the_largest() {
    levels::each(|level| {
        for (lanes, weights) in LANES.into_iter().flat_map(|lanes| WEIGHTS.map(|w| (lanes, w))) {
            let scan = Scan::<f64>::new(3, weights).unwrap().with_level(level).unwrap();
            let scan = scan.with_tuning(Tuning { lanes, ..Tuning::default() });
            let of = |x: [f64; 4]| ArrayD::from_shape_vec(vec![4, 1, 1], x.to_vec()).unwrap();
            let b = |x: [f64; 3]| ArrayD::from_shape_vec(vec![3, 1, 1], x.to_vec()).unwrap();
            let adjoint = |grad: &ArrayD<f64>, a: &ArrayD<f64>, b: &ArrayD<f64>| {
                let found = scan.adjoint(grad.view(), a.view(), b.view());
                let (mut s, mut of_b) = (ArrayD::zeros(a.raw_dim()), ArrayD::zeros(b.raw_dim()));
                let into = scan.adjoint_into(grad.view(), a.view(), b.view(), s.view_mut(), of_b.view_mut());
                assert_eq!(into.as_ref().err(), found.as_ref().err());
                let add = scan.adjoint_add(grad.view(), a.view(), b.view(), s.view_mut(), of_b.view_mut());
                assert_eq!(add.as_ref().err(), found.as_ref().err());
                found
            };
            let huge = of([0.0, 0.0, 0.0, 1e308]);
            assert_eq!(adjoint(&huge, &of([1.0; 4]), &b([1e10, 1.0, 1.0])), overflow("grad_s", 0));
            // Nothing but the gradient of B_1 and of B_2.
            let (small, zero) = (1e-10, b([0.0; 3]));
            let a = of([1e200, small, small, small]);
            assert_eq!(adjoint(&of([0.0, small, small, 1e200]), &a, &zero), overflow("grad_b", 2));
            assert_eq!(adjoint(&of([0.0, small, 1e200, 1e200]), &a, &zero), overflow("grad_b", 1));
            assert_eq!(adjoint(&of([0.0, 1e200, 1e200, 1e200]), &a, &zero), overflow("grad_b", 0));
            assert_eq!(adjoint(&huge, &of([1e200; 4]), &b([1e10, 1.0, 1.0])), overflow("grad_s", 0));
            assert!(adjoint(&of([0.0, small, small, 1e100]), &a, &zero).is_ok());
            for special in [f64::NAN, f64::INFINITY] {
                assert!(adjoint(&of([special, 0.0, 0.0, 1e308]), &of([1.0; 4]), &b([1e10, 1.0, 1.0])).is_ok());
                assert!(adjoint(&huge, &of([special, 1.0, 1.0, 1.0]), &b([1e10, 1.0, 1.0])).is_ok());
                assert!(adjoint(&huge, &of([1.0; 4]), &b([1e10, special, 1.0])).is_ok());
            }
            // One of two cotangents.
            let both = ndarray::stack(Axis(0), &[of([1.0; 4]).view(), huge.view()]).unwrap();
            let found = scan.adjoint(both.view(), of([1.0; 4]).view(), b([1e10, 1.0, 1.0]).view());
            assert_eq!(found, overflow("grad_s", 0));
        }
    });
}

#[test]
fn products_and_correlations_beyond_the_largest() {
    levels::each(|level| {
        for (at, (lanes, weights)) in LANES.into_iter().flat_map(|lanes| WEIGHTS.map(|w| (lanes, w))).enumerate() {
            let tuning = Tuning { lanes, ..Tuning::default() };
            let of = |x: &[f64]| ArrayD::from_shape_vec(vec![x.len(), 1, 1], x.to_vec()).unwrap();
            let product = Product::<f64>::new(4, weights).unwrap().with_level(level).unwrap().with_tuning(tuning);
            let (a, b) = (of(&[1.0, 1e200, 1.0]), of(&[1.0, 1.0, 1e200]));
            assert_eq!(product.forward(a.view(), b.view()), overflow("c", 3), "{at}");
            let mut c = ArrayD::zeros(vec![4, 1, 1]);
            assert_eq!(product.forward_into(a.view(), b.view(), c.view_mut()), overflow("c", 3));
            assert!(Product::<f64>::new(3, weights).unwrap().forward(a.view(), b.view()).is_ok());
            let grad = of(&[0.0, 0.0, 1e200, 1.0]);
            assert_eq!(product.adjoint(grad.view(), a.view(), b.view()), overflow("grad_a", 0));
            let (ones, shifted) = (of(&[1.0, 1.0, 1.0]), of(&[1.0, 1.0, 1e200, 1.0]));
            assert_eq!(product.adjoint(shifted.view(), a.view(), ones.view()), overflow("grad_b", 1));
            assert!(product.forward(of(&[f64::NAN, 1e200, 1.0]).view(), b.view()).is_ok());

            let correlation =
                Correlation::<f64>::new(3, weights).unwrap().with_level(level).unwrap().with_tuning(tuning);
            assert_eq!(correlation.forward(a.view(), shifted.view()), overflow("d", 1));
            assert!(correlation.forward(a.view(), of(&[1.0, 1.0, 1.0, f64::INFINITY]).view()).is_ok());
            let grad = of(&[1.0, 1.0, 1e200]);
            assert_eq!(correlation.adjoint(grad.view(), ones.view(), shifted.view()), overflow("grad_a", 0));
            assert!(correlation.adjoint(grad.view(), a.view(), ones.view()).is_ok());
            assert_eq!(correlation.adjoint(grad.view(), a.view(), of(&[1.0; 4]).view()), overflow("grad_g", 3));
        }
        for kind in KINDS {
            if kind != Kind::F64 {
                let product = Product::<f32>::new(2, Weights::Plain).unwrap().with_level(level).unwrap();
                let product = if kind == Kind::Accumulated { product.with_f64_accumulation() } else { product };
                let x = Array3::from_shape_vec([2, 1, 1], vec![1e19f32, 1e25]).unwrap();
                assert_eq!(product.forward(x.view(), x.view()), overflow("c", 1));
            }
        }
    });
}
