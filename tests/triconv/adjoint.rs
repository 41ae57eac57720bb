//! Gradients of scans as derivatives: transposes, differences, and what must hold between them.

use crate::common::levels;
use crate::common::random::Random;
use crate::common::triconv::{Sequence, Table, grad_b, gradient_scan, scan};
use crate::common::triconv_bounds::items;
use crate::common::triconv_scan_case::{Data, Kind, SIDES, ScanCase, WEIGHTS};
use crate::common::triconv_strategy::LANES;
use crate::common::values::Value;
use ndarray::{ArrayD, Axis, IxDyn, concatenate};
use pullback::triconv::{Scan, Tuning, Weights};

fn dot(a: &ArrayD<f64>, b: &ArrayD<f64>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// With integers of which no sum is rounded, equal: a scan is linear in `A_0` and S.
#[test]
fn a_scan_and_its_gradient_are_transposes() {
    fn check<T: Value>(level: pullback::Level, case: &ScanCase) {
        let (scene, exact) = (case.scene::<f64>(), |x: f64| T::from_f64(x).unwrap());
        let scan = Scan::<T>::new(case.n, case.weights).unwrap().with_side(case.side).with_level(level).unwrap();
        let scan = scan.with_tuning(case.tuning);
        let [s, b, grad] = [&scene.s, &scene.b, &scene.grad_a].map(|array| array.view().mapv(exact));
        let a = scan.forward_with(s.view(), b.view()).unwrap();
        let found = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
        let sum = |x: &ArrayD<T>, y: &ArrayD<T>| -> i128 {
            let integer = |x: &T| x.to_f64().unwrap() as i128;
            x.iter().zip(y).map(|(x, y)| integer(x) * integer(y)).sum()
        };
        assert!(a.iter().any(|x| *x != T::zero()));
        assert_eq!(sum(&a, &grad), sum(&s, &found.grad_s), "{case:?}");
    }
    levels::each(|level| {
        for (at, lanes) in LANES.into_iter().cycle().take(16).enumerate() {
            let (weights, side) = ([Weights::Binomial, Weights::Plain][at % 2], SIDES[at / 2 % 2]);
            let case = ScanCase { n: 8, p: 5, m: [1, 3, 9, 4][at / 4], weights, side, ..ScanCase::default() };
            let tuning = Tuning { lanes, ..Tuning::default() };
            let case = ScanCase { sources: true, data: Data::Integers, tuning, seed: at as u64, ..case };
            check::<f64>(level, &case);
            check::<f32>(level, &ScanCase { n: 4, ..case });
        }
    });
}

/// Along random directions, by central differences.
#[test]
fn gradients_by_finite_differences() {
    levels::each(|level| {
        for (at, (weights, side)) in WEIGHTS.into_iter().flat_map(|w| SIDES.map(|side| (w, side))).enumerate() {
            for (m, p, shared, lanes) in
                [(3, 2, false, LANES[at % 4]), (1, 1, true, LANES[(at + 1) % 4]), (9, 4, true, None)]
            {
                let case = ScanCase { n: 7, p, m, weights, side, shared, sources: true, ..ScanCase::default() };
                let case = ScanCase { leading: vec![3], tuning: Tuning { lanes, ..Tuning::default() }, ..case };
                let (scene, scan) = (case.scene::<f64>(), case.operator::<f64>(level));
                let [s, b, grad] = [&scene.s, &scene.b, &scene.grad_a].map(|array| array.view().to_owned());
                let a = scan.forward_with(s.view(), b.view()).unwrap();
                let found = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
                let mut random = Random::new(at as u64);
                for _ in 0..4 {
                    let mut direction = |like: &ArrayD<f64>| like.mapv(|_| random.normal());
                    let (along_s, along_b) = (direction(&s), direction(&b));
                    let loss = |step: f64| {
                        let (s, b) = (&s + &(&along_s * step), &b + &(&along_b * step));
                        dot(&scan.forward_with(s.view(), b.view()).unwrap(), &grad)
                    };
                    const STEP: f64 = 1e-5;
                    let expected = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
                    let slope = dot(&found.grad_s, &along_s) + dot(&found.grad_b, &along_b);
                    let size = dot(&found.grad_s.mapv(f64::abs), &along_s.mapv(f64::abs))
                        + dot(&found.grad_b.mapv(f64::abs), &along_b.mapv(f64::abs));
                    // Third derivatives times the square of the step, and rounding over the step.
                    assert!((slope - expected).abs() <= 1e-7 * size, "{slope}, not {expected} of {size}: {case:?}");
                }
            }
        }
    });
}

/// Each of some cotangents has the gradient that it has alone, and one B of all has the sum of the gradients of copies of it.
#[test]
fn cotangents_and_sequences_are_independent() {
    levels::each(|level| {
        for (at, lanes) in LANES.into_iter().cycle().take(8).enumerate() {
            let case = ScanCase { n: 6, m: [2, 9][at / 4], cotangents: Some(3), shared: true, ..ScanCase::default() };
            let tuning = Tuning { lanes, ..Tuning::default() };
            let case = ScanCase { data: Data::Integers, side: SIDES[at % 2], leading: vec![4], tuning, ..case };
            let (scene, scan) = (case.scene::<f64>(), case.operator::<f64>(level));
            let a = scan.forward(scene.s.view(), scene.b.view()).unwrap();
            let all = scan.adjoint(scene.grad_a.view(), a.view(), scene.b.view()).unwrap();
            let copies = scene
                .b
                .view()
                .broadcast(case.leading.iter().copied().chain([6, case.m, case.m]).collect::<Vec<_>>())
                .unwrap()
                .to_owned();
            for r in 0..3 {
                let grad = scene.grad_a.view().index_axis_move(Axis(0), r);
                let one = scan.adjoint(grad.view(), a.view(), scene.b.view()).unwrap();
                assert_eq!(one.grad_s, all.grad_s.index_axis(Axis(0), r));
                assert_eq!(one.grad_b, all.grad_b.index_axis(Axis(0), r));
                let each = scan.adjoint(grad.view(), a.view(), copies.view()).unwrap();
                assert_eq!(each.grad_s, one.grad_s);
                assert_eq!(each.grad_b.sum_axis(Axis(0)), one.grad_b);
            }
        }
    });
}

/// A gradient is linear in the cotangent, exactly for powers of two, and where there is none it is 0.
#[test]
fn powers_of_two_scale_gradients_exactly() {
    levels::each(|level| {
        for (weights, side) in WEIGHTS.into_iter().flat_map(|w| SIDES.map(|side| (w, side))) {
            let case = ScanCase { n: 12, p: 5, m: 6, weights, side, kind: Kind::F32, ..ScanCase::default() };
            let (scene, scan) = (case.scene::<f32>(), case.operator::<f32>(level));
            let (grad, b) = (scene.grad_a.view().to_owned(), scene.b.view());
            let a = scan.forward(scene.s.view(), b.view()).unwrap();
            let once = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
            for by in [4.0, -0.5, 0.0] {
                let scaled = scan.adjoint((&grad * by).view(), a.view(), b.view()).unwrap();
                assert_eq!(scaled.grad_s, &once.grad_s * by);
                assert_eq!(scaled.grad_b, &once.grad_b * by);
            }
        }
    });
}

/// A scan of the first steps is the beginning of a longer one, for integers exactly, and the gradients of a cotangent that ends early
/// are those of the shorter scan.
#[test]
fn shorter_scans_are_prefixes() {
    levels::each(|level| {
        for (at, side) in SIDES.into_iter().cycle().take(8).enumerate() {
            let tuning = Tuning { lanes: LANES[at / 2], ..Tuning::default() };
            let case = ScanCase { n: 9, side, data: Data::Integers, tuning, leading: vec![], ..ScanCase::default() };
            let scene = case.scene::<f64>();
            let (s, b) = (scene.s.view(), scene.b.view());
            let long = case.operator::<f64>(level).forward(s.view(), b.view()).unwrap();
            for n in 0..9 {
                let short = ScanCase { n, ..case.clone() };
                let scan = short.operator::<f64>(level);
                let b_of = b.slice_axis(Axis(0), (..n).into());
                let a = scan.forward(s.view(), b_of.view()).unwrap();
                assert_eq!(a, long.slice_axis(Axis(0), (..=n).into()));
                let grad = short.scene::<f64>().grad_a.view().to_owned();
                let of_short = scan.adjoint(grad.view(), a.view(), b_of.view()).unwrap();
                let rest = ArrayD::zeros(IxDyn(&[&[9 - n], &grad.shape()[1..]].concat()));
                let padded = concatenate(Axis(0), &[grad.view(), rest.view()]).unwrap();
                let of_long = case.operator::<f64>(level).adjoint(padded.view(), long.view(), b.view()).unwrap();
                assert_eq!(of_long.grad_s.slice_axis(Axis(0), (..=n).into()), of_short.grad_s);
                assert_eq!(of_long.grad_b.slice_axis(Axis(0), (..n).into()), of_short.grad_b);
                assert!(of_long.grad_b.slice_axis(Axis(0), (n..).into()).iter().all(|g| *g == 0.0));
            }
        }
    });
}

/// The references themselves: in integers, `<dA, G> == <dS, grad_s> + <dB, grad_b>` for the derivative of a scan, which is a scan too.
#[test]
fn references_are_derivatives() {
    for (at, (weights, side)) in
        [Weights::Binomial, Weights::Plain].into_iter().flat_map(|w| SIDES.map(|side| (w, side))).enumerate()
    {
        let case = ScanCase { n: 6, p: 2, m: 3, weights, side, sources: true, leading: vec![], ..ScanCase::default() };
        let case = ScanCase { data: Data::Integers, seed: at as u64, ..case };
        let integers = |case: &ScanCase| -> [Sequence<i128>; 3] {
            let (scene, shape) = (case.scene::<f64>(), case.rows_and_columns());
            [(&scene.s, shape), (&scene.b, [3, 3]), (&scene.grad_a, shape)]
                .map(|(array, shape)| items(&array.view().to_owned(), 1, shape)[0].map(|x| x as i128))
        };
        let [s, b, grad] = integers(&case);
        let [along_s, along_b, _] = integers(&ScanCase { seed: 77, ..case.clone() });
        let w = Table::new(weights, 6);
        let plus = |x: &Sequence<i128>, y: &Sequence<i128>, by: i128| {
            Sequence::new(x.shape, x.cells.iter().zip(&y.cells).map(|(x, y)| x + by * y).collect())
        };
        let dot =
            |x: &Sequence<i128>, y: &Sequence<i128>| x.cells.iter().zip(&y.cells).map(|(x, y)| x * y).sum::<i128>();
        let a = scan(side, &w, &s, &b);
        let g = gradient_scan(side, &w, &grad, &b);
        let slope = dot(&g, &along_s) + dot(&grad_b(side, &w, &a, &g, 3), &along_b);
        // A polynomial of degree at most 7 along the direction, of which differences of all orders give the derivative.
        let at = |step: i128| {
            let moved = scan(side, &w, &plus(&s, &along_s, step), &plus(&b, &along_b, step));
            dot(&moved, &grad)
        };
        let central = |h: i128| at(h) - at(-h);
        // (1 / 840) (672 d_1 - 168 d_2 + 32 d_3 - 3 d_4), exact to the eighth power.
        let of_all = 672 * central(1) - 168 * central(2) + 32 * central(3) - 3 * central(4);
        assert_ne!(slope, 0);
        assert_eq!(of_all, 840 * slope, "{weights:?} {side:?}");
    }
}
