//! Inputs that broke other implementations, and closed forms, each with the right answer.

use crate::common::levels;
use crate::common::triconv::{Sequence, Table, binomial as exact, pascal, scan};
use crate::common::triconv_bounds::items;
use crate::common::triconv_scan_case::{SIDES, WEIGHTS};
use crate::common::triconv_strategy::LANES;
use crate::common::triconv_unbounded::Unbounded;
use crate::common::values::Value;
use crate::common::wide::{Dd, Wide};
use ndarray::{Array, Array1, Array2, Array3, ArrayD, Axis, Dimension, array, s};
use pullback::Level;
use pullback::triconv::{Product, Scan, Side, Tuning, Weights, binomial, binomial_row};

/// At a level, with lanes of each kind.
fn scans<T: Value>(level: Level, n: usize, weights: Weights) -> impl Iterator<Item = Scan<T>> {
    LANES.into_iter().map(move |lanes| {
        let scan = Scan::new(n, weights).unwrap().with_level(level).unwrap();
        scan.with_tuning(Tuning { lanes, ..Tuning::default() })
    })
}

/// A of matrices of one number, alone and as two of a batch of three, which are twice as large.
#[track_caller]
fn numbers<T: Value>(level: Level, weights: Weights, first: f64, b: &[f64], expected: &[f64]) {
    let to = |x: f64| T::from_f64(x).unwrap();
    let b = Array3::from_shape_fn([b.len(), 1, 1], |(k, ..)| to(b[k]));
    let expected: Vec<T> = expected.iter().map(|&x| to(x)).collect();
    for scan in scans::<T>(level, b.len(), weights) {
        let found = scan.forward(array![[to(first)]].view(), b.view()).unwrap();
        assert_eq!(found.iter().copied().collect::<Vec<T>>(), expected);
        let batch = array![[[to(first)]], [[to(2.0 * first)]], [[T::zero()]]];
        let found = scan.forward(batch.view(), b.view()).unwrap();
        for (item, factor) in [1.0, 2.0, 0.0].into_iter().enumerate() {
            assert!(
                found.index_axis(Axis(0), item).iter().eq(expected
                    .iter()
                    .map(|&x| x * to(factor))
                    .collect::<Vec<T>>()
                    .iter())
            );
        }
    }
}

const BELL: [f64; 23] = [
    1.0,
    1.0,
    2.0,
    5.0,
    15.0,
    52.0,
    203.0,
    877.0,
    4140.0,
    21147.0,
    115975.0,
    678570.0,
    4213597.0,
    27644437.0,
    190899322.0,
    1382958545.0,
    10480142147.0,
    82864869804.0,
    682076806159.0,
    5832742205057.0,
    51724158235372.0,
    474869816156751.0,
    4506715738447323.0,
];

#[test]
fn bell_numbers() {
    levels::each(|level| {
        numbers::<f64>(level, Weights::Binomial, 1.0, &[1.0; 22], &BELL);
        numbers::<f32>(level, Weights::Binomial, 1.0, &[1.0; 11], &BELL[..12]);
        // Of a longer scan, by whatever weights it has.
        for n in [40, 57] {
            for scan in scans::<f64>(level, n, Weights::Binomial) {
                let found = scan.forward(array![[1.0]].view(), Array3::ones([n, 1, 1]).view()).unwrap();
                assert!(found.iter().zip(&BELL).all(|(x, y)| x == y), "{found}");
            }
        }
    });
}

#[test]
fn the_gradient_of_the_third_bell_number() {
    levels::each(|level| {
        for scan in scans::<f64>(level, 3, Weights::Binomial) {
            let b = Array3::ones([3, 1, 1]);
            let a = scan.forward(array![[1.0]].view(), b.view()).unwrap();
            let grad = array![[[0.0]], [[0.0]], [[0.0]], [[1.0]]];
            let found = scan.adjoint(grad.view(), a.view(), b.view()).unwrap();
            assert_eq!(found.grad_s[[0, 0, 0]], 5.0);
            assert_eq!(found.grad_b.into_iter().collect::<Vec<_>>(), [6.0, 3.0, 1.0]);
        }
    });
}

/// Of `exp(sin t)`.
#[test]
fn derivatives_of_the_cosine() {
    let b: Vec<f64> = [1.0, 0.0, -1.0, 0.0].into_iter().cycle().take(12).collect();
    let expected = [1.0, 1.0, 1.0, 0.0, -3.0, -8.0, -3.0, 56.0, 217.0, 64.0, -2951.0, -12672.0, 5973.0];
    levels::each(|level| {
        numbers::<f64>(level, Weights::Binomial, 1.0, &b, &expected);
        numbers::<f32>(level, Weights::Binomial, 1.0, &b, &expected);
    });
}

/// Of `1 / (1 - t)`.
#[test]
fn factorials() {
    let factorials: Vec<f64> = (0..=18).map(|k| (1..=k).map(f64::from).product()).collect();
    levels::each(|level| {
        numbers::<f64>(level, Weights::Binomial, 1.0, &factorials[..18], &factorials);
        numbers::<f32>(level, Weights::Binomial, 1.0, &factorials[..10], &factorials[..11]);
    });
}

#[test]
fn powers_of_two() {
    let expected: Vec<f64> = (0..60).map(|k| if k == 0 { 1.0 } else { 2f64.powi(k - 1) }).collect();
    levels::each(|level| {
        numbers::<f64>(level, Weights::Plain, 1.0, &[1.0; 59], &expected);
        numbers::<f32>(level, Weights::Plain, 1.0, &[1.0; 59], &expected);
    });
}

/// `B_0` = X and no others: `A_k` = `A_0` X^k, over k! in Taylor coefficients.
#[test]
fn powers_of_a_matrix() {
    fn check<T: Value>(level: Level, side: Side, m: usize) {
        let to = |x: i64| T::from_i64(x).unwrap();
        // A permutation with signs: no entry grows.
        let x = Array2::from_shape_fn([m, m], |(r, c)| to(if c == (r + 1) % m { 1 - 2 * (r as i64 % 2) } else { 0 }));
        let mut b = Array3::zeros([8, m, m]);
        b.index_axis_mut(Axis(0), 0).assign(&x);
        let a0 = Array2::from_shape_fn(if side == Side::Right { [3, m] } else { [m, 3] }, |(r, c)| {
            to((5 * r + 3 * c) as i64 - 7)
        });
        for weights in WEIGHTS {
            for scan in scans::<T>(level, 8, weights) {
                let found = scan.with_side(side).forward(a0.view(), b.view()).unwrap();
                let mut expected = a0.clone();
                for k in 0..=8 {
                    let found = found.index_axis(Axis(0), k);
                    if weights == Weights::Taylor {
                        let factorial = to((1..=k as i64).product());
                        let off = found
                            .iter()
                            .zip(&expected)
                            .map(|(&x, &y)| (x * factorial - y).abs())
                            .fold(T::zero(), T::max);
                        assert!(off <= to(120 * (k as i64 + 1)) * T::epsilon(), "A_{k} is off by {off:?}");
                    } else {
                        assert_eq!(found, expected.view().into_dyn());
                    }
                    expected = if side == Side::Right { expected.dot(&x) } else { x.dot(&expected) };
                }
            }
        }
    }
    levels::each(|level| {
        for (m, side) in [1, 2, 3, 4, 8, 17].into_iter().flat_map(|m| SIDES.map(|side| (m, side))) {
            check::<f64>(level, side, m);
            check::<f32>(level, side, m);
        }
    });
}

#[test]
fn binomials() {
    assert_eq!(binomial(34, 15), 1_855_967_520.0);
    assert_eq!(binomial(49, 21), 39_049_918_716_424.0);
    assert_eq!(binomial(1100, 1), 1100.0);
    assert!((binomial(1020, 510) / 2.806_267_768_299_622_5e305 - 1.0).abs() < 1e-15);
    assert_eq!([binomial(0, 0), binomial(5, 6), binomial(0, 1), binomial(0, u64::MAX)], [1.0, 0.0, 0.0, 0.0]);
    // By whole numbers as long as they are below 2^127, then within 1e-15.
    for (n, row) in
        pascal::<Unbounded>(1031).into_iter().enumerate().filter(|(n, _)| *n < 140 || n % 13 == 0 || *n > 1025)
    {
        let found = binomial_row(n as u64).unwrap();
        assert_eq!(found.len(), n + 1);
        for (k, (&found, wide)) in found.iter().zip(row).enumerate() {
            let (n, k) = (n as u64, k as u64);
            assert_eq!(found, binomial(n, k), "C({n}, {k})");
            match exact(n, k) {
                Some(exact) => assert_eq!(found, exact as f64, "C({n}, {k})"),
                None if !wide.to_dd().to_f64().is_finite() => assert_eq!(found, f64::INFINITY, "C({n}, {k})"),
                None => {
                    let off = (Dd::from_f64(found) - wide.to_dd()).to_f64().abs() / found;
                    assert!(off <= 1e-15, "C({n}, {k}) = {found:e} is off by {off:e}");
                }
            }
        }
    }
    let most = u64::MAX;
    assert_eq!([binomial(most, 0), binomial(most, most)], [1.0, 1.0]);
    assert_eq!([binomial(most, 1), binomial(most, most - 1)], [2f64.powi(64); 2]);
    assert!((binomial(most, 2) / 2f64.powi(127) - 1.0).abs() < 1e-15);
    assert!((binomial(1_000_000_000_000, 3) / (1e36 / 6.0) - 1.0).abs() < 1e-11);
    assert_eq!([binomial(2000, 1000), binomial(most, most / 2), binomial(most, 40)], [f64::INFINITY; 3]);
    assert!(binomial(2000, 30).is_finite() && binomial(2000, 1970) == binomial(2000, 30));
}

/// A matrix that turns by a right angle, on and on.
#[test]
fn two_hundred_quarter_turns() {
    let (sin, cos) = 5f64.sin_cos();
    let mut b = Array3::zeros([200, 2, 2]);
    b.index_axis_mut(Axis(0), 0).assign(&array![[0.0, -1.0], [1.0, 0.0]]);
    let a0 = array![[sin, cos]];
    levels::each(|level| {
        for scan in scans::<f64>(level, 200, Weights::Binomial) {
            let found = scan.forward(a0.view(), b.view()).unwrap();
            // One term a step.
            let near = |x: f64, y: f64, k: usize| (x - y).abs() <= 4.0 * (k + 1) as f64 * f64::EPSILON / 2.0;
            assert!(near(found[[177, 0, 0]], 0.28366218546322625, 177), "A_177 is {}", found[[177, 0, 0]]);
            assert!(near(found[[178, 0, 0]], 0.958924274663138_5, 178), "A_178 is {}", found[[178, 0, 0]]);
            for k in 0..=200 {
                let [x, y] = [[sin, cos], [cos, -sin], [-sin, -cos], [-cos, sin]][k % 4];
                assert!(near(found[[k, 0, 0]], x, k) && near(found[[k, 0, 1]], y, k), "A_{k} is {found}");
            }
        }
        for scan in scans::<f64>(level, 200, Weights::Taylor) {
            let found = scan.forward(a0.view(), b.view()).unwrap();
            let mut factorial = Unbounded::new(1.0);
            for k in 0..=200 {
                let wanted = [[sin, cos], [cos, -sin], [-sin, -cos], [-cos, sin]][k % 4];
                for (found, wanted) in found.slice(s![k, 0, ..]).iter().zip(wanted) {
                    let back = (Unbounded::new(*found) * factorial).to_dd().to_f64();
                    let error = 1e-15 * (k + 1) as f64;
                    assert!(k > 160 || (back - wanted).abs() <= error, "A_{k} k! = {back}, not {wanted}");
                    assert!(k < 180 || *found == 0.0, "A_{k} is {found}");
                }
                factorial = factorial * Unbounded::new(k as f64 + 1.0);
            }
        }
    });
}

/// No garbage from a large neighbour.
#[test]
fn ten_thousand_zeros_and_powers() {
    let x = Array3::from_shape_fn(
        [10_010, 1, 1],
        |(k, ..)| if k < 10_000 { 0.0 } else { 10f64.powi(9 * (k - 10_000) as i32) },
    );
    let check = |found: ArrayD<f64>, first: usize| {
        for (k, &found) in found.iter().enumerate() {
            let Some(k) = (k + first).checked_sub(20_000) else {
                assert_eq!(found, 0.0);
                continue;
            };
            let expected = if k > 18 { 0.0 } else { (k + 1).min(19 - k) as f64 * 10f64.powi(9 * k as i32) };
            assert!((found - expected).abs() <= 1e-14 * expected, "{k}: {found:e}, not {expected:e}");
        }
    };
    levels::each(|level| {
        for (lanes, weights) in LANES.into_iter().flat_map(|l| [Weights::Plain, Weights::Taylor].map(|w| (l, w))) {
            let tuned = |product: Product<f64>| {
                product.with_level(level).unwrap().with_tuning(Tuning { lanes, ..Tuning::default() })
            };
            let middle = tuned(Product::middle(19_990..20_025, weights).unwrap());
            check(middle.forward(x.view(), x.view()).unwrap(), 19_990);
            if weights == Weights::Plain {
                check(tuned(Product::new(20_019, weights).unwrap()).forward(x.view(), x.view()).unwrap(), 0);
            }
        }
    });
}

/// What brought this family about: `A_0` = t and every `B_k` = t^2, at t = 2, and the derivatives along t, by all cotangents at once.
#[test]
fn the_check_of_the_seed() {
    levels::each(|level| {
        for scan in scans::<f64>(level, 4, Weights::Binomial) {
            let b = Array3::from_elem([4, 1, 1], 4.0);
            let a = scan.forward(array![[2.0]].view(), b.view()).unwrap();
            assert_eq!(a.iter().copied().collect::<Vec<_>>(), [2.0, 8.0, 40.0, 232.0, 1512.0]);
            let unit = Array2::<f64>::eye(5).into_shape_with_order([5, 5, 1, 1]).unwrap();
            let found = scan.adjoint(unit.view(), a.view(), b.view()).unwrap();
            // The derivative of each B_k is 2 t.
            let along = |r: usize| found.grad_s[[r, 0, 0, 0]] + 4.0 * found.grad_b.index_axis(Axis(0), r).sum();
            assert_eq!([0, 1, 2, 3, 4].map(along), [1.0, 12.0, 92.0, 700.0, 5564.0]);
        }
    });
}

#[test]
fn transposed_views_are_the_same_bits() {
    fn transposed<T: Value>(a: &Array3<T>) -> Array3<T> {
        a.view().permuted_axes([0, 2, 1]).as_standard_layout().into_owned()
    }
    fn check<T: Value>(level: Level, m: usize) {
        let draw = |shape: [usize; 3], seed| crate::common::values::Values::Spread.array::<T, _>(shape, seed);
        let small = |a: Array3<T>| a.mapv(|x| x / T::from_f64(65536.0 * m as f64).unwrap());
        let (s, b) = (small(draw([9, 7, m], 1)), small(draw([8, m, m], 2)));
        let (ts, tb) = (transposed(&s), transposed(&b));
        for scan in WEIGHTS.into_iter().flat_map(|weights| scans::<T>(level, 8, weights)) {
            let bits = |array: &ArrayD<T>| array.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let a = scan.forward_with(s.view(), b.view()).unwrap();
            let found =
                scan.forward_with(ts.view().permuted_axes([0, 2, 1]), tb.view().permuted_axes([0, 2, 1])).unwrap();
            assert_eq!(bits(&found), bits(&a));
            let ta = transposed(&a.clone().into_dimensionality().unwrap());
            let one = scan.adjoint(s.view(), a.view(), b.view()).unwrap();
            let other = scan.adjoint(
                ts.view().permuted_axes([0, 2, 1]),
                ta.view().permuted_axes([0, 2, 1]),
                tb.view().permuted_axes([0, 2, 1]),
            );
            let other = other.unwrap();
            assert_eq!(bits(&one.grad_s), bits(&other.grad_s));
            assert_eq!(bits(&one.grad_b), bits(&other.grad_b));
        }
    }
    levels::each(|level| {
        for m in [1, 2, 4, 5, 16, 20] {
            check::<f32>(level, m);
            check::<f64>(level, m);
        }
    });
}

/// `A' = A B + F` in Taylor coefficients: S is added after the division, so that S_{k+1} = `f_k` / (k + 1).
#[test]
fn sources_are_added_after_the_division() {
    // A' = A + 1 from 0 is e^t - 1; A' = 1 from 0 is t.
    levels::each(|level| {
        for scan in scans::<f64>(level, 12, Weights::Taylor) {
            let mut b = Array3::zeros([12, 1, 1]);
            b[[0, 0, 0]] = 1.0;
            let mut s = Array3::zeros([13, 1, 1]);
            s[[1, 0, 0]] = 1.0;
            let found = scan.forward_with(s.view(), b.view()).unwrap();
            let mut expected = 1.0;
            for k in 1..=12 {
                expected /= k as f64;
                assert!((found[[k, 0, 0]] / expected - 1.0).abs() < 1e-15 * (k + 1) as f64, "{found}");
            }
            assert_eq!(found[[0, 0, 0]], 0.0);
            let found = scan.forward_with(s.view(), Array3::zeros([12, 1, 1]).view()).unwrap();
            assert_eq!(found.into_iter().collect::<Vec<_>>(), s.into_iter().collect::<Vec<_>>());
        }
    });
}

/// The references themselves, in exact integers.
#[test]
fn references_give_closed_forms() {
    let w = Table::<i128>::new(Weights::Binomial, 22);
    let ones = |n: usize| Sequence::new([1, 1], vec![1i128; n]);
    let mut first = vec![0; 23];
    first[0] = 1;
    let found = scan(Side::Right, &w, &Sequence::new([1, 1], first), &ones(22));
    assert!(found.cells.iter().zip(BELL).all(|(&x, y)| x == y as i128));
    let cells = items(&Array1::from(vec![1.0, 2.0]).into_dyn(), 2, [1, 1]);
    assert_eq!(cells.iter().map(|item| item.cells[0]).collect::<Vec<_>>(), [1.0, 2.0]);
    let (huge, tiny) = (Unbounded::new(1e300), Unbounded::new(3e-310));
    let back = huge * huge * tiny * tiny;
    assert!((back.to_dd().to_f64() / 9e-20 - 1.0).abs() < 1e-13, "{back:?}");
    assert_eq!((huge + tiny).to_dd().to_f64(), 1e300);
    assert_eq!((Unbounded::new(f64::MAX) + Unbounded::new(f64::MAX)).to_dd().to_f64(), f64::INFINITY);
    assert_eq!(
        [exact(49, 21), exact(128, 64), exact(5, 9), exact(200, 100)].map(|c| c.is_some()),
        [true, true, false, false]
    );
    assert_eq!(exact(49, 21), Some(39_049_918_716_424));
}

/// Shapes of no axis before a sequence, of arrays of fixed rank.
#[test]
fn arrays_of_any_rank() {
    fn shapes<D: Dimension>(a0: Array<f64, D>) -> Vec<usize> {
        Scan::new(2, Weights::Binomial)
            .unwrap()
            .forward(a0.view(), Array3::ones([2, 3, 3]).view())
            .unwrap()
            .shape()
            .to_vec()
    }
    assert_eq!(shapes(Array2::ones([2, 3])), [3, 2, 3]);
    assert_eq!(shapes(Array3::ones([4, 2, 3])), [4, 3, 2, 3]);
    assert_eq!(shapes(ArrayD::ones(&[5, 4, 2, 3][..])), [5, 4, 3, 2, 3]);
}
