//! The relaxed method with transforms: as near to the exact steps as it promises, whatever the magnitudes.

use crate::common::levels;
use crate::common::problems::check_random;
use crate::common::random::Random;
use crate::common::strides::Strided;
use crate::common::threads;
use crate::common::triconv_scan_case::{Data, KINDS, Kind, SIDES, ScanCase, Scene};
use crate::common::triconv_strategy::relaxed_scans;
use ndarray::{Array3, ArrayD, Axis, array};
use pullback::triconv::{Method, Scan, Tuning, Weights};
use pullback::{Error, Level};

const WEIGHTS: [Weights; 2] = [Weights::Taylor, Weights::Plain];

fn relaxed(tolerance: f64) -> Method {
    Method::Relaxed { tolerance }
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(100, &relaxed_scans(), |case| case.check(level)));
}

/// Forward, with S, and all gradients, of sequences whose parts are of one magnitude, of any, and of magnitudes that no transform
/// has the digits for.
#[test]
fn every_magnitude() {
    let all = [Data::Flat, Data::Halving, Data::Decaying, Data::Growing, Data::Factorial, Data::Mixed, Data::Special];
    levels::each(|level| {
        for (at, (data, weights)) in all.into_iter().flat_map(|data| WEIGHTS.map(|w| (data, w))).enumerate() {
            for (leaf, side) in
                [None, Some(1), Some(4), Some(16)].into_iter().zip(SIDES.into_iter().cycle().skip(at % 2))
            {
                let tuning = Tuning { leaf, parallel: [None, Some(true)][at % 2], ..Tuning::default() };
                let case = ScanCase { n: 130, p: 2, m: [2, 1, 3][at % 3], data, weights, side, ..ScanCase::default() };
                let case = ScanCase { leading: vec![], sources: at % 2 == 0, tuning, ..case };
                for tolerance in [1e-4, 1e-8, 1e-12] {
                    ScanCase { method: relaxed(tolerance), seed: at as u64, ..case.clone() }.check(level);
                }
                if let Data::Flat | Data::Halving | Data::Decaying = data {
                    for kind in [Kind::F32, Kind::Accumulated] {
                        ScanCase { kind, method: relaxed(1e-5), cotangents: Some(2), ..case.clone() }.check(level);
                    }
                }
            }
        }
    });
}

/// Around powers of two, where blocks end.
#[test]
fn every_number_of_steps() {
    levels::each(|level| {
        for n in
            (0..20).chain([23, 24, 25, 31, 32, 33, 47, 48, 63, 64, 65, 95, 96, 97, 127, 128, 129, 200, 255, 256, 257])
        {
            for (leaf, weights) in [Some(1), Some(3), Some(8)].into_iter().zip(WEIGHTS.into_iter().cycle()) {
                let tuning = Tuning { leaf, ..Tuning::default() };
                let case = ScanCase { n, p: 1 + n % 2, m: 1 + n % 3 / 2, weights, tuning, ..ScanCase::default() };
                let case = ScanCase { method: relaxed(1e-9), side: SIDES[n % 2], leading: vec![1 + n % 2], ..case };
                ScanCase { sources: n % 3 == 0, shared: n % 5 == 0, ..case }.check(level);
            }
        }
    });
}

/// So long that blocks are transformed by default.
#[test]
fn long_sequences() {
    levels::each(|level| {
        for (at, kind) in KINDS.into_iter().enumerate() {
            let case = ScanCase { n: 1100, p: 1, m: 2, kind, leading: vec![], sources: true, ..ScanCase::default() };
            let case = ScanCase { weights: WEIGHTS[at % 2], side: SIDES[at % 2], data: Data::Halving, ..case };
            ScanCase { method: relaxed(1e-7), ..case }.check(level);
        }
        let case = ScanCase { n: 3000, p: 1, m: 1, leading: vec![], data: Data::Flat, ..ScanCase::default() };
        ScanCase { weights: Weights::Taylor, method: relaxed(1e-10), kind: Kind::F32, ..case }.check(level);
    });
}

/// Binomial weights are direct only.
#[test]
fn binomial_scans_are_refused() {
    let scan = || Scan::<f64>::new(3, Weights::Binomial).unwrap();
    match scan().with_method(relaxed(1e-9)).err() {
        Some(Error::MethodUnavailable { method: "Relaxed", weights: "Binomial", accepted: "Taylor and Plain" }) => {}
        other => panic!("{other:?} is no refusal"),
    }
    assert!(scan().with_method(Method::Direct).is_ok());
}

/// A NaN in `B_i`, `S_i` or `A_0` is in none of the results before, at the end of a block or within it, and what is
/// computed of the same numbers without it is the same there, to the tolerance.
#[test]
fn what_is_no_number_stays_behind() {
    levels::each(|level| {
        for (m, leaf, side) in [(1, 1, SIDES[0]), (2, 8, SIDES[1]), (9, 4, SIDES[0])] {
            let tuning = Tuning { leaf: Some(leaf), ..Tuning::default() };
            let scan = Scan::<f64>::new(150, Weights::Plain).unwrap().with_side(side).with_level(level).unwrap();
            let scan = scan.with_method(relaxed(1e-9)).unwrap().with_tuning(tuning);
            let mut random = Random::new(7);
            let mut small = || random.normal() / (8.0 * m as f64);
            let b = Array3::from_shape_simple_fn([150, m, m], &mut small);
            let s = Array3::from_shape_simple_fn([151, m, m], &mut small);
            let clean = scan.forward_with(s.view(), b.view()).unwrap();
            for (at, bad) in [0, 1, 7, 8, 31, 32, 33, 64, 100, 149].into_iter().zip([f64::NAN, f64::INFINITY].repeat(5))
            {
                let (mut of_b, mut of_s) = (b.clone(), s.clone());
                of_b[[at, 0, m - 1]] = bad;
                of_s[[at + 1, m - 1, 0]] = bad;
                let found = scan.forward_with(s.view(), of_b.view()).unwrap();
                let others = scan.forward_with(of_s.view(), b.view()).unwrap();
                for k in 0..=at {
                    let matrices = [&clean, &found, &others].map(|a| a.index_axis(Axis(0), k).to_owned());
                    for ((&x, &y), &z) in matrices[0].iter().zip(&matrices[1]).zip(&matrices[2]) {
                        assert!(
                            (x - y).abs() < 1e-6 && (x - z).abs() < 1e-6,
                            "A_{k} of a {bad} at {at}: {x}, {y}, {z}"
                        );
                    }
                }
                let is_bad = |a: &ArrayD<f64>| a.index_axis(Axis(0), at + 1).iter().any(|x| !x.is_finite());
                assert!(is_bad(&found) && is_bad(&others), "A_{} of a {bad} in B or S", at + 1);
            }
        }
    });
}

/// Entries of any magnitude, of which a transform would lose the small ones: some of them far apart, zeros between them.
#[test]
fn small_entries_are_not_drowned() {
    levels::each(|level| {
        for seed in 0..40 {
            let mut random = Random::new(seed);
            let (n, p, m) = (100 + random.below(100), 1 + random.below(3), 1 + random.below(3));
            let (spread, sparse) = ([0.0, 3.0, 40.0, 130.0][random.below(4)], [1, 1, 9][random.below(3)]);
            let decay = [0.0, 0.3, 2.0][random.below(3)];
            let magnitudes: Vec<f64> = (0..m * m + p * m).map(|_| spread * random.normal() / 3.0).collect();
            let mut entry = |k: usize, at: usize| {
                let live = random.below(sparse) == 0;
                if live { random.normal() * 10f64.powf(magnitudes[at] - 0.4 - decay * k as f64) } else { 0.0 }
            };
            let b = ArrayD::from_shape_fn(vec![n, m, m], |at| entry(at[0], at[1] * m + at[2]));
            let s = ArrayD::from_shape_fn(vec![n + 1, p, m], |at| entry(at[0], m * m + at[1] * m + at[2]));
            let grad_a = ArrayD::from_shape_fn(vec![n + 1, p, m], |at| entry(n - at[0], m * m + at[1] * m + at[2]));
            let [s, b, grad_a] = [s, b, grad_a].map(|array| Strided::standard(array.view()));
            let tuning = Tuning { leaf: Some(1 << (seed % 5)), ..Tuning::default() };
            let case = ScanCase { n, p, m, leading: vec![], sources: true, tuning, ..ScanCase::default() };
            let method = relaxed([1e-4, 1e-9, 1e-12][seed as usize % 3]);
            let case = ScanCase { weights: WEIGHTS[seed as usize % 2], method, ..case };
            case.check_scene(level, Scene { s, b, grad_a, random });
        }
    });
}

/// A thousand zeros and ten powers of 10 far apart: those once, and much later all sums of products of two.
#[test]
fn powers_behind_zeros() {
    levels::each(|level| {
        for leaf in [None, Some(1), Some(32)] {
            let scan = Scan::<f64>::new(2000, Weights::Plain).unwrap().with_level(level).unwrap();
            let scan = scan.with_method(relaxed(1e-6)).unwrap().with_tuning(Tuning { leaf, ..Tuning::default() });
            let power = |i: usize| 10f64.powi(9 * i as i32);
            let b = Array3::from_shape_fn(
                [2000, 1, 1],
                |(k, ..)| if (990..1000).contains(&k) { power(k - 990) } else { 0.0 },
            );
            let found = scan.forward(array![[1.0]].view(), b.view()).unwrap();
            for (k, &found) in found.iter().enumerate() {
                let expected = match k {
                    0 => 1.0,
                    991..=1000 => power(k - 991),
                    1982..=2000 => (10.0 - (k as f64 - 1991.0).abs()) * power(k - 1982),
                    _ => 0.0,
                };
                assert!((found - expected).abs() <= 1e-14 * expected, "A_{k} is {found:e}, not {expected:e}");
            }
        }
    });
}

/// Where no block passes, results are those of sums: as near to the exact ones as the direct method's are.
#[test]
fn refused_blocks_are_direct() {
    levels::each(|level| {
        for (at, data) in [Data::Flat, Data::Halving, Data::Factorial, Data::Mixed].into_iter().enumerate() {
            let tuning = Tuning { leaf: Some([1, 4][at % 2]), ..Tuning::default() };
            let case =
                ScanCase { n: 90, p: 3, m: [1, 2, 9, 3][at], data, weights: WEIGHTS[at % 2], ..ScanCase::default() };
            let case = ScanCase { method: relaxed(1e-300), leading: vec![], sources: true, tuning, ..case };
            case.check(level);
            let integers = ScanCase { data: Data::Integers, weights: Weights::Plain, n: 40, ..case };
            let scene = integers.scene::<f64>();
            let direct = ScanCase { method: Method::Direct, ..integers.clone() };
            assert_eq!(integers.results(&scene, level).unwrap(), direct.results(&scene, level).unwrap());
        }
    });
}

/// Transforms do take part: results of flat sequences are not those of direct sums, and near to them.
#[test]
fn flat_sequences_are_transformed() {
    levels::each(|level| {
        for (leaf, p, m) in [(Some(4), 3, 2), (Some(8), 2, 9), (None, 2, 8)] {
            let case = ScanCase { n: 600, p, m, leading: vec![], weights: Weights::Taylor, ..ScanCase::default() };
            let case = ScanCase { tuning: Tuning { leaf, ..Tuning::default() }, method: relaxed(1e-9), ..case };
            let scene = case.scene::<f64>();
            let found = case.results(&scene, level).unwrap();
            let direct = ScanCase { method: Method::Direct, ..case }.results(&scene, level).unwrap();
            assert!(found != direct);
        }
    });
}

/// Rows and sequences are shared between threads, and blocks of right factors by them all.
#[test]
fn the_same_bits_for_every_number_of_threads() {
    let sizes = [(300, 9, 2), (200, 20, 9), (500, 3, 1), (150, 17, 8), (300, 24, 4)].into_iter().enumerate();
    // Whether to use threads may be a choice, too, which knows how many there are.
    for ((at, (n, p, m)), parallel) in sizes.flat_map(|size| [(size, Some(true)), (size, None)]) {
        let rows = if at % 2 == 1 && parallel.is_some() { Some(2) } else { None };
        let tuning = Tuning { leaf: Some(4 << at), rows, parallel, ..Tuning::default() };
        let case =
            ScanCase { n, p, m, tuning, weights: WEIGHTS[at % 2], side: SIDES[at / 2 % 2], ..ScanCase::default() };
        // Rows of other magnitudes are transformed in other blocks.
        let data = if at == 4 { Data::Mixed } else { case.data };
        let case = ScanCase { leading: vec![1 + at], shared: at == 2, method: relaxed(1e-8), data, ..case };
        let (scene, level) = (case.scene::<f64>(), Level::current().unwrap());
        let of = |count| threads::with(count, || case.results(&scene, level).unwrap());
        let first = of(1);
        assert!(case.results(&scene, level).unwrap() == first, "of no pool's thread: {case:?}");
        for count in threads::COUNTS {
            assert!(of(count) == first, "{count} threads: {case:?}");
        }
    }
}

/// Up to the largest number and not beyond it, though transforms of such numbers are.
#[test]
fn growth_to_the_largest() {
    levels::each(|level| {
        for (leaf, side) in [None, Some(1), Some(8)].into_iter().flat_map(|leaf| SIDES.map(|side| (leaf, side))) {
            let scan = |n: usize| {
                let scan = Scan::<f64>::new(n, Weights::Plain).unwrap().with_side(side).with_level(level).unwrap();
                let tuning = Tuning { leaf, ..Tuning::default() };
                scan.with_method(relaxed(1e-9)).unwrap().with_tuning(tuning)
            };
            let ones = |n: usize| Array3::<f64>::ones([n, 1, 1]);
            let found = scan(1024).forward(array![[1.0]].view(), ones(1024).view()).unwrap();
            for k in 1..=1024 {
                let expected = 2f64.powi(k - 1);
                let off = (found[[k as usize, 0, 0]] / expected - 1.0).abs();
                assert!(off <= 1.1e-9 * f64::from(k), "A_{k} is off by {off}");
            }
            let found = scan(1100).forward(array![[1.0]].view(), ones(1100).view());
            assert_eq!(found, Err(Error::Overflow { result: "a", first_k: 1025 }));
        }
    });
}

/// `A_k = 2^-k`, of which a transform alone has no digit from 52 on.
#[test]
fn geometric_decay_keeps_its_digits() {
    levels::each(|level| {
        for leaf in [None, Some(1), Some(8)] {
            // 1 / (1 - z B) with z B = (z / 4) / (1 - z / 4): 1 + (z / 4) / (1 - z / 2).
            let b = Array3::from_shape_fn([200, 1, 1], |(k, ..)| 0.25f64.powi(k as i32 + 1));
            let scan = Scan::<f64>::new(200, Weights::Plain).unwrap().with_level(level).unwrap();
            let scan = scan.with_method(relaxed(1e-12)).unwrap().with_tuning(Tuning { leaf, ..Tuning::default() });
            let found = scan.forward(array![[1.0]].view(), b.view()).unwrap();
            for (k, &found) in found.index_axis(Axis(2), 0).iter().enumerate().skip(1) {
                let expected = 0.5f64.powi(k as i32 + 1);
                let off = (found / expected - 1.0).abs();
                assert!(off <= 2e-12 * k as f64, "A_{k} is {found:e}, off by {off:e}");
            }
        }
    });
}

/// A scan of one leaf has no blocks, and no transform is as good as rounding: the bits are those of a tolerance that nothing keeps.
#[test]
fn where_nothing_is_transformed() {
    levels::each(|level| {
        let mut random = Random::new(7);
        for (n, tolerance, is_direct) in [(64, 1e-6, true), (600, 1e-13, true), (600, 1e-9, false)] {
            for (weights, side) in WEIGHTS.into_iter().zip(SIDES) {
                let b = Array3::from_shape_simple_fn([n, 2, 2], || random.normal() / n as f64);
                let found = [tolerance, 1e-300].map(|tolerance| {
                    let scan = Scan::<f64>::new(n, weights).unwrap().with_side(side).with_level(level).unwrap();
                    let scan = scan.with_method(relaxed(tolerance)).unwrap();
                    scan.forward(array![[1.0, 0.5], [0.25, 2.0]].view(), b.view()).unwrap()
                });
                assert_eq!(found[0] == found[1], is_direct, "{n} steps, {tolerance}, {weights:?}");
            }
        }
    });
}
