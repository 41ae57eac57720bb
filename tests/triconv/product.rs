//! Products of sequences and their gradients near those of plain loops in twice the precision.

use crate::common::levels;
use crate::common::problems::check_random;
use crate::common::random::Random;
use crate::common::strides::{Strided, Strides};
use crate::common::triconv_product_case::{ProductCase, ProductLayout, ProductScene};
use crate::common::triconv_scan_case::{Data, KINDS, Kind, WEIGHTS};
use crate::common::triconv_strategy::{LANES, SIZES, products};
use crate::common::wide::Referred;
use crate::same_bits::{self, bits};
use ndarray::{ArrayD, Axis};
use pullback::Level;
use pullback::triconv::{Product, Tuning, Weights};

#[test]
fn random_problems() {
    levels::each(|level| check_random(300, &products(false), |case| case.check(level)));
}

#[test]
fn every_size_of_matrices() {
    levels::each(|level| sizes(level, false));
}

/// Of products or correlations.
pub fn sizes(level: Level, correlation: bool) {
    for (at, (m, q)) in SIZES.into_iter().flat_map(|m| SIZES.map(|q| (m, q))).enumerate() {
        let (lengths, p) = ([3, 4], SIZES[(at * 5 + at / 13) % 13]);
        let case = ProductCase { correlation, lengths, range: 0..4, p, m, q, ..ProductCase::default() };
        let leading = [vec![], vec![2]][at / 3 % 2].clone();
        let case = ProductCase { kind: KINDS[at % 3], leading, weights: WEIGHTS[at / 2 % 3], ..case };
        let tuning = Tuning { lanes: LANES[at / 3 % 4], ..Tuning::default() };
        ProductCase { data: [Data::Integers, Data::Flat][at % 2], tuning, ..case }.check(level);
    }
}

/// Of either sequence, and of the result: shorter and longer than what there is.
#[test]
fn every_length() {
    levels::each(|level| {
        for (at, (la, lb)) in (0..7).flat_map(|la| (0..7).map(move |lb| (la, lb))).enumerate() {
            for (lo, hi) in [(0, 0), (0, 1), (0, la + lb), (0, la + lb + 3), (1, 4), (la, la + lb), (9, 9), (12, 15)] {
                let (kind, lengths) = (KINDS[(at + hi) % 3], [la, lb]);
                let case = ProductCase { range: lo..hi, lengths, kind, p: 2, m: 1 + at % 2, ..ProductCase::default() };
                ProductCase { weights: WEIGHTS[(at + lo) % 3], q: 1 + hi % 3, ..case }.check(level);
            }
        }
        for (at, n) in [56, 57, 58, 127, 128, 129, 150].into_iter().enumerate() {
            let case = ProductCase { range: 0..n, lengths: [n, n / 3], p: 1, m: 2, q: 1, ..ProductCase::default() };
            let case = ProductCase { data: Data::Decaying, kind: KINDS[at % 3], leading: vec![], ..case };
            case.check(level);
            ProductCase { range: n - 5..n + 5, weights: Weights::Plain, ..case }.check(level);
        }
    });
}

/// Every choice that is made by size, on small sizes.
pub fn tuned(level: Level, correlation: bool) {
    let switch = [None, Some(false), Some(true)];
    let of_rows = [None, Some(1), Some(3)];
    let mut at = 0;
    for (lanes, rows) in LANES.into_iter().flat_map(|lanes| of_rows.map(|rows| (lanes, rows))) {
        for (chunk, scaled) in [None, Some(1), Some(3)].into_iter().flat_map(|c| switch.map(|scaled| (c, scaled))) {
            let tuning = Tuning { parallel: switch[at % 3], rows, lanes, chunk, scaled, leaf: None };
            let case = ProductCase { correlation, tuning, range: 0..9, lengths: [7, 9], ..ProductCase::default() };
            let case = ProductCase { p: 5, m: [1, 2, 4, 9, 17][at % 5], q: [3, 8, 1][at / 2 % 3], ..case };
            let leading = [vec![], vec![3], vec![9]][at / 5 % 3].clone();
            ProductCase { kind: KINDS[at % 3], weights: WEIGHTS[at / 7 % 3], leading, ..case }.check(level);
            at += 1;
        }
    }
}

#[test]
fn every_tuning() {
    levels::each(|level| tuned(level, false));
}

/// So many sequences that a task has several vectors of them, one after another.
#[test]
fn many_sequences() {
    levels::each(|level| {
        for (correlation, kind) in [false, true].into_iter().flat_map(|c| KINDS.map(|kind| (c, kind))) {
            let case = ProductCase { correlation, kind, lengths: [3, 4], range: 0..5, ..ProductCase::default() };
            ProductCase { p: 1, m: 2, q: 1, leading: vec![300], ..case }.check(level);
        }
    });
}

/// All that is promised where arithmetic is fused.
pub fn same_bits(correlation: bool) {
    fn check<T: Referred>(case: &ProductCase) {
        let scene = case.scene::<T>();
        let run = |tuning, level| bits(ProductCase { tuning, ..case.clone() }.results(&scene, level));
        for (level, first) in same_bits::check(case, |level, parallel| run(Tuning { parallel, ..case.tuning }, level)) {
            let chunked = Tuning { chunk: Some(2), ..case.tuning };
            assert!(run(chunked, level) == first, "chunks at {level}: {case:?}");
        }
    }
    for (at, (lanes, weights)) in LANES.into_iter().flat_map(|lanes| WEIGHTS.map(|w| (lanes, w))).enumerate() {
        let tuning = Tuning { lanes, ..Tuning::default() };
        let [p, m, q] = [[16, 9, 7], [3, 1, 5], [20, 4, 4], [9, 17, 16]][at % 4];
        let case = ProductCase { correlation, weights, tuning, lengths: [13, 15], p, m, q, ..ProductCase::default() };
        let case =
            ProductCase { range: 0..15, leading: [vec![], vec![9]][at % 2].clone(), data: Data::Decaying, ..case };
        check::<f64>(&case);
        check::<f32>(&ProductCase { kind: [Kind::F32, Kind::Accumulated][at % 2], ..case });
    }
    // As many as are shared between threads where that is chosen by size.
    let large = ProductCase { correlation, lengths: [40, 40], range: 0..40, p: 16, m: 16, ..ProductCase::default() };
    check::<f64>(&ProductCase { q: 17, data: Data::Decaying, leading: vec![], ..large });
}

#[test]
fn the_same_bits_for_every_number_of_threads_and_at_both_upper_levels() {
    levels::each(|_| {});
    same_bits(false);
}

/// And the same bits as in standard layout.
pub fn strided(level: Level, correlation: bool) {
    fn check<T: Referred>(case: &ProductCase, level: Level) {
        case.check(level);
        let scene = case.scene::<T>();
        let all = [&scene.first, &scene.second, &scene.grad_output].map(|array| Strided::standard(array.view()));
        let [first, second, grad_output] = all;
        let copies = ProductScene { first, second, grad_output, random: Random::new(0) };
        let of = |scene| bits(case.results(scene, level));
        assert!(of(&scene) == of(&copies), "{case:?}");
    }
    let mut patterns: Vec<Strides> = (0..24).map(|order| Strides { order, ..Strides::default() }).collect();
    patterns.extend((1..16).map(|reversed| Strides { reversed, ..Strides::default() }));
    patterns.extend((1..16).map(|halved| Strides { halved, ..Strides::default() }));
    patterns.extend((1..16).map(|broadcast| Strides { broadcast, ..Strides::default() }));
    for (at, strides) in patterns.into_iter().enumerate() {
        let (output, kept) = (Strides { broadcast: 0, ..strides }, ProductLayout::default());
        let layout = match at % 3 {
            0 => ProductLayout { first: strides, output, ..kept },
            1 => ProductLayout { second: strides, grad_first: output, ..kept },
            _ => ProductLayout { grad_output: strides, second: strides, grad_second: output, ..kept },
        };
        let tuning = Tuning { lanes: LANES[at % 4], ..Tuning::default() };
        let case =
            ProductCase { correlation, layout, tuning, lengths: [3, 4], leading: vec![3], ..ProductCase::default() };
        let case = ProductCase { m: [2, 9][at % 2], range: 0..4, weights: WEIGHTS[at / 3 % 3], ..case };
        check::<f64>(&case, level);
        check::<f32>(&ProductCase { kind: Kind::F32, q: 9, ..case }, level);
    }
}

#[test]
fn every_pattern_of_strides() {
    levels::each(|level| strided(level, false));
}

/// `<C, G> == <A, grad_a> == <B, grad_b>` with integers of which no sum is rounded: both sides are the same sum.
pub fn transposes(level: Level, correlation: bool) {
    for (at, lanes) in LANES.into_iter().cycle().take(12).enumerate() {
        let tuning = Tuning { lanes, ..Tuning::default() };
        let case = ProductCase { correlation, tuning, lengths: [5, 7], range: 0..8, p: 3, ..ProductCase::default() };
        let range = if correlation { 0..6 } else { at % 3..9 };
        let case = ProductCase { m: [1, 4, 9][at / 4], q: 2 + at % 2, range, data: Data::Integers, ..case };
        let case = ProductCase { weights: WEIGHTS[at % 3], leading: vec![2], seed: at as u64, ..case };
        let (scene, either) = (case.scene::<f64>(), case.operator::<f64>(level));
        let [x, y, grad] = [&scene.first, &scene.second, &scene.grad_output].map(|array| array.view().to_owned());
        let z = either.forward(&x.view(), &y.view()).unwrap();
        let found = either.adjoint(&grad.view(), &x.view(), &y.view()).unwrap();
        let dot = |x: &ArrayD<f64>, y: &ArrayD<f64>| (x * y).sum();
        assert_ne!(dot(&z, &grad), 0.0);
        assert_eq!(dot(&z, &grad), dot(&x, &found.first), "{case:?}");
        assert_eq!(dot(&z, &grad), dot(&y, &found.second), "{case:?}");
    }
}

#[test]
fn a_product_and_its_gradients_are_transposes() {
    levels::each(|level| transposes(level, false));
}

/// The middle of a product is that part of the whole one.
#[test]
fn middles_are_parts() {
    levels::each(|level| {
        for (at, weights) in WEIGHTS.into_iter().enumerate() {
            let case = ProductCase { lengths: [6, 5], data: Data::Integers, weights, ..ProductCase::default() };
            let case = ProductCase { range: 0..12, leading: vec![], m: 2 + at, ..case };
            let scene = case.scene::<f64>();
            let (x, y) = (&scene.first.view(), &scene.second.view());
            let whole = case.operator::<f64>(level).forward(x, y).unwrap();
            assert!(whole.index_axis(Axis(0), 9).iter().any(|c| *c != 0.0));
            assert!(whole.slice_axis(Axis(0), (10..).into()).iter().all(|c| *c == 0.0), "beyond the last");
            for (lo, hi) in (0..=12).flat_map(|lo| (lo..=12).map(move |hi| (lo, hi))) {
                let product = Product::<f64>::middle(lo..hi, weights).unwrap().with_level(level).unwrap();
                let found = product.forward(x.view(), y.view()).unwrap();
                assert_eq!(found, whole.slice_axis(Axis(0), (lo..hi).into()), "{lo}..{hi}");
            }
        }
    });
}
