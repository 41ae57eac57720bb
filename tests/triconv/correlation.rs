//! Correlations of sequences and their gradients near those of plain loops in twice the precision.

use super::product::{same_bits, sizes, strided, transposes, tuned};
use crate::common::levels;
use crate::common::problems::check_random;
use crate::common::triconv_product_case::{Either, ProductCase};
use crate::common::triconv_scan_case::{Data, KINDS, WEIGHTS};
use crate::common::triconv_strategy::products;
use pullback::triconv::Correlation;

#[test]
fn random_problems() {
    levels::each(|level| check_random(300, &products(true), |case| case.check(level)));
}

#[test]
fn every_size_of_matrices() {
    levels::each(|level| sizes(level, true));
}

/// Of either sequence, and of the result: shorter and longer than what there is.
#[test]
fn every_length() {
    levels::each(|level| {
        for (at, (la, lg)) in (0..7).flat_map(|la| (0..7).map(move |lg| (la, lg))).enumerate() {
            for n in [0, 1, 3, lg, lg + 2] {
                let (kind, lengths) = (KINDS[(at + n) % 3], [la, lg]);
                let case = ProductCase { correlation: true, range: 0..n, lengths, kind, ..ProductCase::default() };
                ProductCase { weights: WEIGHTS[at % 3], p: 1 + n % 3, m: 1 + at % 2, q: 2, ..case }.check(level);
            }
        }
        for (at, n) in [56, 57, 58, 128, 129, 150].into_iter().enumerate() {
            let case = ProductCase { correlation: true, range: 0..n / 2, lengths: [n, n], ..ProductCase::default() };
            let case = ProductCase { data: Data::Decaying, kind: KINDS[at % 3], leading: vec![], p: 1, m: 1, ..case };
            ProductCase { q: 2, ..case }.check(level);
        }
    });
}

#[test]
fn every_tuning() {
    levels::each(|level| tuned(level, true));
}

#[test]
fn the_same_bits_for_every_number_of_threads_and_at_both_upper_levels() {
    levels::each(|_| {});
    same_bits(true);
}

#[test]
fn every_pattern_of_strides() {
    levels::each(|level| strided(level, true));
}

#[test]
fn a_correlation_and_its_gradients_are_transposes() {
    levels::each(|level| transposes(level, true));
}

/// The gradient of a product to its second sequence.
#[test]
fn a_correlation_is_the_gradient_of_a_product() {
    levels::each(|level| {
        for (at, weights) in WEIGHTS.into_iter().enumerate() {
            let case = ProductCase { lengths: [5, 6], range: 0..8, weights, m: 2 + 3 * at, ..ProductCase::default() };
            let case = ProductCase { data: Data::Integers, ..case };
            let (scene, Either::Product(product)) = (case.scene::<f64>(), case.operator::<f64>(level)) else {
                unreachable!("a product")
            };
            let (a, b, grad_c) = (scene.first.view(), scene.second.view(), scene.grad_output.view());
            let gradients = product.adjoint(grad_c.view(), a.view(), b.view()).unwrap();
            let correlation = Correlation::<f64>::new(6, weights).unwrap().with_level(level).unwrap();
            let found = correlation.forward(a, grad_c).unwrap();
            assert!(found.iter().any(|d| *d != 0.0));
            assert_eq!(found, gradients.grad_b);
        }
    });
}
