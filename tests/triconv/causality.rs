//! What is not a number or not finite reaches what is computed from it, and nothing else.

use crate::common::levels;
use crate::common::triconv::{Sequence, Table, grad_b, gradient_scan, scan as scan_items};
use crate::common::triconv_bounds::items;
use crate::common::triconv_product_case::ProductCase;
use crate::common::triconv_scan_case::{Data, SIDES, ScanCase, WEIGHTS};
use crate::common::triconv_strategy::LANES;
use crate::common::values::Value;
use ndarray::{Array3, ArrayD, Axis, Dimension, array};
use pullback::Level;
use pullback::triconv::{Product, Scan, Side, Tuning, Weights};

const SPECIAL: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];

/// A sequence that decays, so that sums of Taylor coefficients, of derivatives and of plain terms stay small.
fn decaying<T: Value>(len: usize, rows: usize, columns: usize) -> Array3<T> {
    Array3::from_shape_fn([len, rows, columns], |(k, r, c)| {
        T::from_f64(0.1 * 1e-5f64.powi(k.min(30) as i32) * (1 + (3 * k + 5 * r + 7 * c) % 4) as f64).unwrap()
    })
}

fn tuned<T: Value>(scan: Scan<T>, tuning: Tuning, level: Level) -> Scan<T> {
    scan.with_level(level).unwrap().with_tuning(tuning)
}

/// One in `B_100` of 1000 leaves `A_0 ..= A_100` as they were, bit for bit; one in `S_100` leaves `A_0 .. A_100`.
#[test]
fn one_at_a_hundred_of_a_thousand() {
    const N: usize = 1000;
    fn check<T: Value>(level: Level, weights: Weights, side: Side, tuning: Tuning, special: f64) {
        let bits = |a: &ArrayD<T>, k: usize| a.index_axis(Axis(0), k).iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        let (p, m) = (3, 2);
        let [rows, columns] = if side == Side::Right { [p, m] } else { [m, p] };
        let (s, b) = (decaying::<T>(N + 1, rows, columns), decaying::<T>(N, m, m));
        let scan = tuned(Scan::new(N, weights).unwrap().with_side(side), tuning, level);
        let clean = scan.forward_with(s.view(), b.view()).unwrap();
        assert!(clean.iter().all(|x| x.is_finite()));
        let spoil = |array: &Array3<T>, at: [usize; 3]| {
            let mut array = array.clone();
            array[at] = T::from_f64(special).unwrap();
            array
        };
        for (s, b, first) in [(s.clone(), spoil(&b, [100, 1, 0]), 101), (spoil(&s, [100, 1, 0]), b.clone(), 100)] {
            let found = scan.forward_with(s.view(), b.view()).unwrap();
            for k in 0..first {
                assert_eq!(
                    bits(&found, k),
                    bits(&clean, k),
                    "A_{k} with {special} in one of 100: {weights:?} {tuning:?}"
                );
            }
            assert!(found.index_axis(Axis(0), first).iter().any(|x| !x.is_finite()), "A_{first} does not have it");
            if special.is_nan() {
                assert!(found.index_axis(Axis(0), N).iter().any(|x| x.is_nan()), "A_{N} does not have it");
            }
        }
        // Gradients: of what comes after, of nothing before, where A is given.
        let grad = decaying::<T>(N + 1, rows, columns);
        let clean = scan.adjoint(grad.view(), clean.view(), b.view()).unwrap();
        let a = scan.forward_with(s.view(), b.view()).unwrap();
        let found = scan.adjoint(spoil(&grad, [100, 0, 1]).view(), a.view(), b.view()).unwrap();
        for k in 101..=N {
            assert_eq!(bits(&found.grad_s, k), bits(&clean.grad_s, k), "grad_s[{k}]: {weights:?} {tuning:?}");
        }
        for i in 100..N {
            assert_eq!(bits(&found.grad_b, i), bits(&clean.grad_b, i), "grad_b[{i}]: {weights:?} {tuning:?}");
        }
        for (what, of, k) in
            [("grad_s", &found.grad_s, 100), ("grad_s", &found.grad_s, 0), ("grad_b", &found.grad_b, 99)]
        {
            assert!(of.index_axis(Axis(0), k).iter().any(|x| !x.is_finite()), "{what}[{k}] does not have it");
        }
    }
    levels::each(|level| {
        for (at, (lanes, weights)) in LANES.into_iter().flat_map(|l| WEIGHTS.map(|w| (l, w))).enumerate() {
            let tuning = Tuning { lanes, chunk: [None, Some(8)][at % 2], ..Tuning::default() };
            let side = SIDES[at / 4 % 2];
            match at % 2 {
                1 if weights != Weights::Binomial => check::<f32>(level, weights, side, tuning, f64::NAN),
                _ => check::<f64>(level, weights, side, tuning, SPECIAL[at / 2 % 3]),
            }
        }
    });
}

/// Which entries are not finite: those of plain loops, in which a 0 times one is one too.
#[track_caller]
fn same_entries(what: &str, found: &[f64], expected: &[f64], nan: bool) {
    assert_eq!(found.len(), expected.len());
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.is_finite(), expected.is_finite(), "{what}: entry {at} is {found}, not {expected}");
        assert!(!nan || found.is_finite() || found.is_nan(), "{what}: entry {at} is {found} of a NaN");
    }
}

/// In every entry of every array of a scan.
#[test]
fn one_entry_of_a_scan() {
    levels::each(|level| {
        for (at, (lanes, side)) in LANES.into_iter().flat_map(|l| SIDES.map(|side| (l, side))).enumerate() {
            let (m, p) = [(2, 3), (1, 2), (9, 2), (3, 5)][at % 4];
            let case = ScanCase { n: 4, m, p, side, weights: WEIGHTS[at % 3], sources: true, ..ScanCase::default() };
            let tuning = Tuning { lanes, scaled: [None, Some(true)][at / 2 % 2], ..Tuning::default() };
            let case = ScanCase { data: Data::Integers, leading: vec![3], tuning, ..case };
            let (scene, scan) = (case.scene::<f64>(), case.operator::<f64>(level));
            let given = [&scene.s, &scene.b, &scene.grad_a].map(|array| array.view().to_owned());
            let a = scan.forward_with(given[0].view(), given[1].view()).unwrap();
            let (w, shape) = (Table::<f64>::new(case.weights, 4), case.rows_and_columns());
            let rows = |array: &ArrayD<f64>, shape: [usize; 2]| items(array, 3, shape);
            let flat = |all: &[Sequence<f64>]| all.iter().flat_map(|item| item.cells.clone()).collect::<Vec<_>>();
            for (which, special) in [0, 1, 2, 3].into_iter().flat_map(|which| SPECIAL.map(|special| (which, special))) {
                let len = [&given[0], &given[1], &given[2], &a][which].len();
                for position in (0..len).step_by(if m > 3 { 11 } else { 1 }) {
                    let mut arrays = [given[0].clone(), given[1].clone(), given[2].clone(), a.clone()];
                    *arrays[which].iter_mut().nth(position).unwrap() = special;
                    let [s, b, grad, a] = &arrays;
                    let what = format!("{special} at {position} of {which}, {case:?}");
                    let of = [rows(s, shape), rows(b, [m, m]), rows(grad, shape), rows(a, shape)];
                    if which < 2 {
                        let found = scan.forward_with(s.view(), b.view()).unwrap();
                        let expected: Vec<_> =
                            (0..3).map(|item| scan_items(side, &w, &of[0][item], &of[1][item])).collect();
                        same_entries(&what, found.as_slice().unwrap(), &flat(&expected), special.is_nan());
                    }
                    if which > 0 {
                        let found = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
                        let g: Vec<_> =
                            (0..3).map(|item| gradient_scan(side, &w, &of[2][item], &of[1][item])).collect();
                        same_entries(&what, found.grad_s.as_slice().unwrap(), &flat(&g), special.is_nan());
                        let of_b: Vec<_> = (0..3).map(|item| grad_b(side, &w, &of[3][item], &g[item], m)).collect();
                        same_entries(&what, found.grad_b.as_slice().unwrap(), &flat(&of_b), special.is_nan());
                    }
                }
            }
        }
    });
}

/// In every entry of every array of a product and of a correlation: what is checked against plain loops has it where they have it.
#[test]
fn one_entry_of_a_product() {
    levels::each(|level| {
        for (at, (lanes, correlation)) in LANES.into_iter().flat_map(|l| [false, true].map(|c| (l, c))).enumerate() {
            let tuning = Tuning { lanes, scaled: [None, Some(true)][at / 2 % 2], ..Tuning::default() };
            let case = ProductCase { correlation, tuning, lengths: [4, 3], range: 0..5, ..ProductCase::default() };
            let leading = if at / 2 % 2 == 0 { vec![] } else { vec![3] };
            let case = ProductCase { leading, weights: WEIGHTS[at % 3], ..case };
            let case = ProductCase { m: [3, 1, 9][at % 3], ..case };
            let (scene, either) = (case.scene::<f64>(), case.operator::<f64>(level));
            let given = [&scene.first, &scene.second, &scene.grad_output].map(|array| array.view().to_owned());
            let clean = either.forward(&given[0].view(), &given[1].view()).unwrap();
            for (which, special) in [0, 1].into_iter().flat_map(|which| SPECIAL.map(|special| (which, special))) {
                for (position, _) in given[which].indexed_iter() {
                    let mut arrays = given.clone();
                    arrays[which][&position] = special;
                    let found = either.forward(&arrays[0].view(), &arrays[1].view()).unwrap();
                    let items = position.ndim() - 3;
                    let [k, row, column] = [0, 1, 2].map(|axis| position[items + axis]);
                    for (cell, &found) in found.indexed_iter() {
                        let [out, r, c] = [0, 1, 2].map(|axis| cell[items + axis]);
                        // Which matrix of the other sequence it is multiplied by, and in which rows or columns.
                        let (other, along) = match (correlation, which) {
                            (false, 0) => (out.checked_sub(k), r == row),
                            (false, _) => (out.checked_sub(k), c == column),
                            (true, 0) => (Some(out + k), r == column),
                            (true, _) => (k.checked_sub(out), c == column),
                        };
                        let has = other.is_some_and(|other| other < case.lengths[1 - which]) && along;
                        let has = has && cell.slice()[..items] == position.slice()[..items];
                        assert_eq!(!found.is_finite(), has, "{cell:?} is {found}, {special} at {position:?}: {case:?}");
                        assert!(!has || !special.is_nan() || found.is_nan());
                        assert!(has || found.to_bits() == clean[&cell].to_bits(), "{cell:?} changed: {case:?}");
                    }
                }
            }
        }
    });
}

/// An infinity whose weight is far below that of a finite product is one still, where exponents are kept apart.
#[test]
fn an_infinity_beside_larger_products() {
    levels::each(|level| {
        let tuning = Tuning { scaled: Some(true), ..Tuning::default() };
        let product = Product::<f64>::new(3, Weights::Binomial).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let (a, b) = (array![[[f64::INFINITY]], [[1e300]]], array![[[1e5]], [[1e-300]]]);
        let c = product.forward(a.view(), b.view()).unwrap();
        assert_eq!(c.as_slice(), Some(&[f64::INFINITY, f64::INFINITY, 2.0][..]));
    });
}
