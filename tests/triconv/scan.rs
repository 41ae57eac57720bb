//! Scans and their gradients near those of plain loops in twice the precision, whatever the matrices, the weights, the sizes, the
//! strides, the choices that are made by size and the number of threads.

use crate::common::levels;
use crate::common::problems::check_random;
use crate::common::random::Random;
use crate::common::strides::{Strided, Strides};
use crate::common::triconv_scan_case::{Data, KINDS, Kind, SIDES, ScanCase, ScanLayout, Scene, WEIGHTS};
use crate::common::triconv_strategy::{LANES, SIZES, scans};
use crate::common::wide::Referred;
use crate::same_bits::{self, bits};
use pullback::Level;
use pullback::triconv::{Side, Tuning, Weights};

#[test]
fn random_problems() {
    levels::each(|level| check_random(400, &scans(), |case| case.check(level)));
}

#[test]
fn every_size_of_matrices() {
    levels::each(|level| {
        for (at, (p, m)) in SIZES.into_iter().flat_map(|p| SIZES.map(|m| (p, m))).enumerate() {
            let (kind, side, weights) = (KINDS[at % 3], SIDES[at % 2], WEIGHTS[at / 2 % 3]);
            let (leading, sources) = (if at % 4 < 2 { vec![] } else { vec![2] }, at % 5 == 0);
            let case = ScanCase { n: 3, p, m, leading, sources, kind, side, weights, ..ScanCase::default() };
            let tuning = Tuning { lanes: LANES[at / 3 % 4], ..Tuning::default() };
            ScanCase { data: [Data::Integers, Data::Flat][at % 2], shared: at % 7 == 0, tuning, ..case }.check(level);
        }
        for (at, m) in [23, 24, 31, 32, 33, 40, 64].into_iter().enumerate() {
            let case = ScanCase { n: 2, p: [1, 3, 9][at % 3], m, kind: KINDS[at % 3], ..ScanCase::default() };
            ScanCase { side: SIDES[at % 2], ..case.clone() }.check(level);
            ScanCase { p: 33, leading: vec![], side: SIDES[(at + 1) % 2], weights: Weights::Taylor, ..case }
                .check(level);
        }
    });
}

/// Around where weights are no longer exact, no longer below 2^127 and no longer floats, and around blocks of steps.
#[test]
fn every_number_of_steps() {
    let some = [46, 47, 48, 49, 55, 56, 57, 58, 59, 63, 64, 65, 66, 79, 80, 96, 126, 127, 128, 129, 130, 131, 140];
    levels::each(|level| {
        for n in (0..41).chain(some) {
            let (small, at) = (n < 41, n % 7);
            for (weights, side) in WEIGHTS.into_iter().zip([SIDES[n % 2], SIDES[(n + 1) % 2], SIDES[n / 2 % 2]]) {
                let (m, p) = if small { (1 + n % 3, 1 + at) } else { (1 + at % 2, 1 + n % 2) };
                let data = if weights == Weights::Binomial && n > 30 { Data::Decaying } else { Data::Flat };
                let case = ScanCase { n, m, p, weights, side, data, kind: KINDS[n % 3], ..ScanCase::default() };
                let leading = if small { vec![1 + at % 2] } else { vec![] };
                ScanCase { leading, sources: n % 2 == 0, ..case }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_sequences() {
    levels::each(|level| {
        for batch in [0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33] {
            for (at, lanes) in LANES.into_iter().enumerate() {
                let (kind, tuning) = (KINDS[(batch + at) % 3], Tuning { lanes, ..Tuning::default() });
                let case = ScanCase { leading: vec![batch], kind, tuning, n: 6, p: 3, m: 2, ..ScanCase::default() };
                let case = ScanCase { side: SIDES[at % 2], weights: WEIGHTS[batch % 3], ..case };
                ScanCase { shared: true, cotangents: Some(2), ..case.clone() }.check(level);
                ScanCase { m: 1, p: 1, n: 9, ..case.clone() }.check(level);
                ScanCase { m: 4, p: 4, ..case }.check(level);
            }
        }
        for leading in [vec![0, 3], vec![3, 0], vec![1, 1, 1], vec![2, 3], vec![2, 1, 2, 2]] {
            let case = ScanCase { leading, n: 4, ..ScanCase::default() };
            for cotangents in [None, Some(0), Some(1), Some(3)] {
                ScanCase { cotangents, ..case.clone() }.check(level);
                ScanCase { cotangents, shared: true, kind: Kind::F32, ..case.clone() }.check(level);
            }
        }
    });
}

/// Every choice that is made by size, on small sizes.
fn tunings() -> impl Iterator<Item = Tuning> {
    let switch = [None, Some(false), Some(true)];
    let of_rows = [None, Some(1), Some(3), Some(8)];
    let of_lanes = LANES.into_iter().flat_map(move |lanes| of_rows.map(|rows| (lanes, rows)));
    let of_chunks = [None, Some(1), Some(2), Some(5)];
    let all = of_lanes.flat_map(move |both| of_chunks.map(|chunk| (both, chunk)));
    let all = all.flat_map(move |both| switch.map(|scaled| (both, scaled)));
    all.enumerate().map(move |(at, (((lanes, rows), chunk), scaled))| Tuning {
        parallel: switch[at / 2 % 3],
        rows,
        lanes,
        chunk,
        scaled,
        leaf: None,
    })
}

#[test]
fn every_tuning() {
    levels::each(|level| {
        for (at, tuning) in tunings().enumerate() {
            let case = ScanCase { tuning, n: 8, p: 5, m: [1, 2, 3, 4, 9, 17][at % 6], ..ScanCase::default() };
            let case = ScanCase { kind: KINDS[at % 3], side: SIDES[at / 3 % 2], ..case };
            let leading = [vec![], vec![3], vec![9]][at / 5 % 3].clone();
            ScanCase { weights: WEIGHTS[at / 7 % 3], sources: at % 4 == 0, leading, ..case }.check(level);
        }
    });
}

/// So many sequences that a task has several vectors of them, one after another.
#[test]
fn many_sequences() {
    levels::each(|level| {
        for (at, kind) in KINDS.into_iter().enumerate() {
            let case = ScanCase { n: 3, p: 1, m: 2, leading: vec![300], kind, shared: at == 1, ..ScanCase::default() };
            ScanCase { weights: WEIGHTS[at], side: SIDES[at % 2], ..case.clone() }.check(level);
            ScanCase { sources: true, ..case }.check(level);
        }
    });
}

/// All that is promised where arithmetic is fused.
#[test]
fn the_same_bits_for_every_number_of_threads_and_at_both_upper_levels() {
    fn check<T: Referred>(case: &ScanCase) {
        let scene = case.scene::<T>();
        same_bits::check(case, |level, parallel| {
            let tuning = Tuning { parallel, ..case.tuning };
            bits(ScanCase { tuning, ..case.clone() }.results(&scene, level))
        });
    }
    levels::each(|_| {});
    let sizes = [(9, 40, 16), (60, 7, 5), (135, 3, 1), (30, 33, 8), (5, 20, 33), (40, 4, 4), (25, 9, 2)];
    for (at, (n, p, m)) in sizes.into_iter().enumerate() {
        let choices = LANES.into_iter().flat_map(|lanes| WEIGHTS.map(|weights| (lanes, weights)));
        for (lanes, weights) in choices.skip(at % 3).step_by(3) {
            let leading = [vec![], vec![3], vec![17]][at % 3].clone();
            let tuning = Tuning { lanes, rows: [None, Some(2)][at % 2], ..Tuning::default() };
            let case = ScanCase { n, p, m, leading, weights, tuning, data: Data::Decaying, ..ScanCase::default() };
            let case =
                ScanCase { side: SIDES[at % 2], shared: at % 4 == 1, cotangents: [None, Some(2)][at / 2 % 2], ..case };
            check::<f64>(&case);
            // The gradient of a B has a binomial coefficient in it.
            check::<f32>(&ScanCase { kind: [Kind::F32, Kind::Accumulated][at % 2], n: n.min(100), ..case });
        }
    }
    // As many as are shared between threads where that is chosen by size.
    let large = ScanCase { n: 40, p: 64, m: 32, leading: vec![], data: Data::Decaying, ..ScanCase::default() };
    check::<f64>(&large);
    check::<f32>(&ScanCase { side: Side::Left, weights: Weights::Taylor, kind: Kind::F32, ..large });
}

/// How much is summed before the next rows are taken is a matter of memory alone.
#[test]
fn a_chunk_changes_no_bit() {
    levels::each(|level| {
        for (at, weights) in WEIGHTS.into_iter().cycle().take(12).enumerate() {
            let (n, m, lanes) = ([40, 25, 130][at % 3], [1, 4, 16, 5][at % 4], LANES[at % 4]);
            let case =
                ScanCase { n, m, p: 7, weights, side: SIDES[at % 2], data: Data::Decaying, ..ScanCase::default() };
            let scene = case.scene::<f64>();
            let of = |chunk| {
                let tuning = Tuning { lanes, chunk, ..Tuning::default() };
                bits(ScanCase { tuning, ..case.clone() }.results(&scene, level))
            };
            let first = of(None);
            for chunk in [1, 2, 3, 8, 16, 1000] {
                assert!(of(Some(chunk)) == first, "chunks of {chunk}: {case:?}");
            }
        }
    });
}

/// And the same bits as in standard layout.
#[test]
fn every_pattern_of_strides() {
    fn check<T: Referred>(case: &ScanCase, level: Level) {
        case.check(level);
        let scene = case.scene::<T>();
        let [s, b, grad_a] = [&scene.s, &scene.b, &scene.grad_a].map(|array| Strided::standard(array.view()));
        let copies = Scene { s, b, grad_a, random: Random::new(0) };
        let of = |scene| bits(case.results(scene, level));
        assert!(of(&scene) == of(&copies), "{case:?}");
    }
    let mut patterns: Vec<Strides> = (0..24).map(|order| Strides { order, ..Strides::default() }).collect();
    patterns.extend((1..16).map(|reversed| Strides { reversed, ..Strides::default() }));
    patterns.extend((1..16).map(|halved| Strides { halved, ..Strides::default() }));
    patterns.extend((1..16).map(|broadcast| Strides { broadcast, ..Strides::default() }));
    patterns.extend((0..16).map(|at| Strides { order: at, reversed: at as u8, halved: 15 - at as u8, broadcast: 0 }));
    levels::each(|level| {
        for (at, strides) in patterns.iter().copied().enumerate() {
            let output = Strides { broadcast: 0, ..strides };
            let layout =
                ScanLayout { s: strides, b: strides, a: output, grad_a: strides, grad_s: output, grad_b: output };
            let (s, kept) = (at % 2 == 0, ScanLayout::default());
            let some = ScanLayout { b: strides, a: output, ..kept };
            let layout = [layout, some, ScanLayout { s: strides, grad_s: output, ..kept }][at % 3];
            for (m, p) in [(2, 3), (9, 2)] {
                let case = ScanCase { layout, m, p, n: 4, leading: vec![3], sources: s, ..ScanCase::default() };
                let tuning = Tuning { lanes: LANES[at % 4], ..Tuning::default() };
                let case = ScanCase { tuning, side: SIDES[at / 2 % 2], weights: WEIGHTS[at / 3 % 3], ..case };
                match at % 3 {
                    0 => check::<f32>(&ScanCase { kind: Kind::F32, ..case }, level),
                    1 => check::<f64>(&ScanCase { leading: vec![], cotangents: Some(2), ..case }, level),
                    _ => check::<f64>(&ScanCase { shared: true, ..case }, level),
                }
            }
        }
    });
}
