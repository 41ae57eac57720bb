//! Sequences of numbers, which are summed in blocks of neighbouring outputs: around where blocks and vectors end, and the same
//! sums wherever tasks and results are cut.

use crate::common::levels;
use crate::common::strides::{Strided, Strides};
use crate::common::triconv_product_case::{ProductCase, ProductLayout, ProductScene};
use crate::common::triconv_scan_case::{Data, KINDS, Kind, SIDES, ScanCase};
use crate::common::wide::Referred;
use crate::same_bits::{self, bits};
use ndarray::Axis;
use pullback::triconv::{Correlation, Product, Tuning, Weights};

const WEIGHTS: [Weights; 2] = [Weights::Taylor, Weights::Plain];

/// Blocks are eight vectors long: 64 outputs of f64 and 128 of f32.
const LENGTHS: [usize; 17] = [1, 7, 8, 9, 15, 16, 17, 63, 64, 65, 71, 127, 128, 129, 137, 200, 300];

#[test]
fn scans_around_the_ends_of_blocks() {
    levels::each(|level| {
        for (at, (n, kind)) in LENGTHS.into_iter().flat_map(|n| KINDS.map(|kind| (n, kind))).enumerate() {
            let case = ScanCase { n, p: 1 + at % 3, m: 1, kind, weights: WEIGHTS[at % 2], ..ScanCase::default() };
            let (side, data) = (SIDES[at / 2 % 2], [Data::Flat, Data::Decaying, Data::Integers][at % 3]);
            let case = ScanCase { side, data, sources: at % 4 == 0, leading: vec![1 + at / 5 % 2], ..case };
            ScanCase { cotangents: [None, Some(2)][at % 2], shared: at % 5 == 0, ..case }.check(level);
        }
    });
}

fn problem(correlation: bool, lengths: [usize; 2], range: std::ops::Range<usize>) -> ProductCase {
    ProductCase { correlation, lengths, range, p: 1, m: 1, q: 1, leading: vec![], ..ProductCase::default() }
}

#[test]
fn products_and_correlations_around_the_ends_of_blocks() {
    levels::each(|level| {
        for (at, (la, kind)) in LENGTHS.into_iter().flat_map(|la| KINDS.map(|kind| (la, kind))).enumerate() {
            let lb = LENGTHS[(at * 7 + 3) % LENGTHS.len()];
            let range = [0..la + lb, la / 2..la + 5, lb..lb + 70][at % 3].clone();
            let (weights, data) = (WEIGHTS[at % 2], [Data::Flat, Data::Integers][at / 2 % 2]);
            let case = ProductCase { kind, weights, data, ..problem(false, [la, lb], range) };
            ProductCase { cotangents: [None, Some(2)][at % 2], ..case.clone() }.check(level);
            ProductCase { leading: vec![2], shared: at % 2 == 0, ..case.clone() }.check(level);
            ProductCase { correlation: true, range: 0..1 + at * 3 % (lb + 9), ..case }.check(level);
        }
    });
}

/// Threads, the parts of a product that are asked for, and strides cut blocks: sums are the same.
#[test]
fn the_same_bits_wherever_results_are_cut() {
    fn check<T: Referred>(case: &ProductCase) {
        let scene = case.scene::<T>();
        same_bits::check(case, |level, parallel| {
            let tuning = Tuning { parallel, ..case.tuning };
            let all = bits(ProductCase { tuning, ..case.clone() }.results(&scene, level));
            for strides in [Strides { halved: 1, ..Strides::default() }, Strides { reversed: 1, ..Strides::default() }]
            {
                let layout =
                    ProductLayout { output: strides, grad_first: strides, grad_second: strides, ..case.layout };
                let copies = [&scene.first, &scene.second, &scene.grad_output].map(|x| Strided::standard(x.view()));
                let [first, second, grad_output] = copies;
                let copies = ProductScene { first, second, grad_output, ..case.scene::<T>() };
                let strided = ProductCase { tuning, layout, ..case.clone() };
                assert!(bits(strided.results(&copies, level)) == all, "{strided:?}");
            }
            all
        });
    }
    levels::each(|level| {
        for (la, lb) in [(300, 170), (90, 400), (1000, 1000)] {
            let case = ProductCase { weights: Weights::Plain, ..problem(false, [la, lb], 0..la + lb) };
            let scene = case.scene::<f64>();
            let (x, y) = (scene.first.view(), scene.second.view());
            let whole = case.operator::<f64>(level).forward(&x, &y).unwrap();
            for (lo, hi) in [(0, 1), (1, 64), (63, 65), (64, 200), (77, 333), (5, la + lb), (la, la + 9)] {
                let product = Product::<f64>::middle(lo..hi, Weights::Plain).unwrap().with_level(level).unwrap();
                let found = product.forward(x.view(), y.view()).unwrap();
                assert_eq!(found, whole.slice_axis(Axis(0), (lo..hi).into()), "{lo}..{hi}");
            }
            let whole = Correlation::<f64>::new(la.max(lb), Weights::Plain).unwrap().with_level(level).unwrap();
            let whole = whole.forward(x.view(), y.view()).unwrap();
            for n in [1, 63, 64, 65, 100] {
                let few = Correlation::<f64>::new(n, Weights::Plain).unwrap().with_level(level).unwrap();
                let found = few.forward(x.view(), y.view()).unwrap();
                assert_eq!(found, whole.slice_axis(Axis(0), (..n).into()), "{n} of a correlation");
            }
        }
    });
    for (at, correlation) in [false, true].into_iter().cycle().take(4).enumerate() {
        let case = ProductCase { weights: WEIGHTS[at / 2], ..problem(correlation, [700, 500], 0..450) };
        check::<f64>(&case);
        check::<f32>(&ProductCase { kind: Kind::F32, data: Data::Decaying, ..case });
    }
}
