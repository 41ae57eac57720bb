//! Pyramids of maxima, means and sums against chains of windows, bit for bit, and what they refuse.

use crate::common::levels;
use crate::common::maps_strategy::strides;
use crate::common::mipmap::cells_of;
use crate::common::mipmap_floats::{Family, FloatsCase, adjoint, assert_counts, forward};
use crate::common::mipmap_strategy::{shapes, some_levels};
use crate::common::problems::check_random;
use crate::common::refusals::shape_error;
use crate::common::strides::Strides;
use crate::common::threads;
use crate::common::values::{Value, Values};
use ndarray::{Array3, array};
use proptest::prelude::*;
use proptest::sample::select;
use pullback::Error;
use pullback::mipmap::{MaxPyramid, MeanPyramid, SumPyramid, Tuning, full_levels};

const VALUES: [Values; 4] = [Values::Integers, Values::Spread, Values::Adversarial, Values::Tied];

fn problems() -> impl Strategy<Value = FloatsCase> {
    let switch = any::<Option<bool>>;
    let tuning = [switch(), switch(), switch()].prop_map(|[parallel, fused, stream]| {
        let mut tuning = Tuning::default();
        (tuning.parallel, tuning.fused, tuning.stream) = (parallel, fused, stream);
        tuning
    });
    let cotangents = prop_oneof![1 => Just(u16::MAX), 3 => any::<u16>()];
    let what = (select(Family::ALL.to_vec()), shapes(), some_levels(), select(VALUES.to_vec()), cotangents);
    let strides = [strides(true), strides(true), strides(false)];
    let how = (any::<bool>(), tuning, strides, select(threads::COUNTS.to_vec()), any::<u64>());
    (what, how).prop_map(|((family, shape, levels, values, cotangents), (double, tuning, strides, threads, seed))| {
        FloatsCase { family, shape, levels, values, cotangents, double, tuning, strides, threads, seed }
    })
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(500, &problems(), |case| case.check(level)));
}

#[test]
fn every_size() {
    levels::each(|level| {
        for n in 1..=70 {
            for (at, shape) in [[n, 3, 2], [2, n, 5], [3, 2, n], [1, 1, n], [5, 4, n]].into_iter().enumerate() {
                let (values, double) = (VALUES[(n + at) % 4], at % 2 == n % 2);
                let case = FloatsCase { shape, values, double, seed: n as u64, ..FloatsCase::default() };
                Family::ALL.into_iter().for_each(|family| FloatsCase { family, ..case.clone() }.check(level));
            }
        }
    });
}

#[test]
fn every_small_shape() {
    levels::each(|level| {
        for at in 0..125 {
            let (shape, double) = ([at / 25 + 1, at / 5 % 5 + 1, at % 5 + 1], at % 2 == 0);
            for (family, values) in Family::ALL.into_iter().flat_map(|f| VALUES.map(|v| (f, v))) {
                FloatsCase { family, values, shape, double, seed: at as u64, ..FloatsCase::default() }.check(level);
            }
        }
    });
}

/// With and without a cotangent at each level.
#[test]
fn any_cotangents() {
    levels::each(|level| {
        for (cotangents, family) in (0..32).flat_map(|c| Family::ALL.map(|f| (c, f))) {
            let case = FloatsCase { family, cotangents, shape: [6, 9, 13], ..FloatsCase::default() };
            FloatsCase { values: Values::Tied, ..case.clone() }.check(level);
            FloatsCase { double: true, levels: Some(3), ..case }.check(level);
        }
    });
}

/// Enough numbers for several threads, for every choice of how they work.
#[test]
fn many_numbers() {
    levels::each(|level| {
        for (at, family) in Family::ALL.into_iter().enumerate() {
            for (round, threads) in threads::COUNTS.into_iter().enumerate() {
                let mut tuning = Tuning::default();
                (tuning.parallel, tuning.fused) = (Some(true), Some(round % 2 == 0));
                tuning.stream = Some(round / 2 == 0);
                let case =
                    FloatsCase { family, threads, tuning, double: (round + at) % 2 == 0, ..FloatsCase::default() };
                FloatsCase { shape: [37, 29, 65], ..case.clone() }.check(level);
                let reversed = Strides { order: 3, reversed: 5, ..Strides::default() };
                FloatsCase { shape: [32, 32, 64], strides: [reversed; 3], ..case }.check(level);
            }
        }
    });
}

#[test]
fn counts_of_the_reference() {
    for shape in cells_of([1; 3], [6, 6, 12]) {
        assert_counts(shape);
    }
}

/// The reference's gradients are those of its levels: one number moved, the sums and means follow.
#[test]
fn the_reference_is_its_own_transpose() {
    for (family, shape) in [Family::Sum, Family::Mean].into_iter().flat_map(|f| [[5, 3, 6], [1, 7, 4]].map(|s| (f, s)))
    {
        let levels = full_levels(shape);
        let x = Values::Integers.array::<f64, _>(shape, 1);
        let (y, _) = forward(family, &x, levels);
        let mut cotangents = vec![Some(Values::Integers.array::<f64, _>(shape, 2))];
        cotangents.extend((3..).zip(&y).map(|(seed, y)| Some(Values::Integers.array(y.raw_dim(), seed))));
        let gradient = adjoint(family, shape, levels, &cotangents, &[]);
        let outputs = std::iter::once(&x).chain(&y).zip(cotangents.iter().flatten());
        let left: f64 = outputs.map(|(y, cotangent)| (y * cotangent).sum()).sum();
        let right = (&x * &gradient).sum();
        assert!((left - right).abs() <= 1e-12 * left.abs().max(1.0), "{left} and {right}");
    }
}

#[test]
fn arguments_that_are_refused() {
    fn check<T: Value>() {
        let pyramid = MaxPyramid::<T>::new([3, 2, 5]).unwrap();
        let x = Array3::from_elem([3, 2, 5], T::one());
        let shape = |argument, found, expected: [usize; 3]| shape_error(argument, found, expected);
        let other = Array3::from_elem([3, 2, 4], T::one());
        assert_eq!(pyramid.forward(other.view()).err(), Some(shape("x", [3, 2, 4], [3, 2, 5])));
        let found = pyramid.forward(x.view()).unwrap();
        let shapes: Vec<_> = found.levels.iter().map(|level| level.shape().to_vec()).collect();
        assert_eq!(shapes, [[2, 1, 3], [1, 1, 2], [1, 1, 1]]);
        let cotangents = [None, Some(x.view())];
        let error = shape("cotangents", [3, 2, 5], [2, 1, 3]);
        assert_eq!(pyramid.adjoint(&cotangents, &found.arguments).err(), Some(error.clone()));
        assert_eq!(SumPyramid::<T>::new([3, 2, 5]).unwrap().adjoint(&cotangents).err(), Some(error.clone()));
        assert_eq!(MeanPyramid::<T>::new([3, 2, 5]).unwrap().adjoint(&cotangents).err(), Some(error));
        let error = Error::Shape { argument: "cotangents", found: vec![5], expected: vec![4] };
        assert_eq!(pyramid.adjoint(&[const { None }; 5], &found.arguments).err(), Some(error));
        let mut arguments = found.arguments.clone();
        arguments[1][[0, 0, 1]] = 8;
        let error = Error::IndexOutOfRange { argument: "arguments", position: vec![1, 0, 0, 1], value: 8, bound: 8 };
        let mut grad_x = x.clone();
        assert_eq!(pyramid.adjoint_into(&[Some(x.view())], &arguments, grad_x.view_mut()), Err(error));
        assert_eq!(grad_x, x);
        let short = pyramid.adjoint(&[], &found.arguments[1..]).err();
        assert!(matches!(short, Some(Error::Shape { argument: "arguments", .. })), "{short:?}");
        assert_eq!(pyramid.adjoint(&[], &found.arguments).unwrap(), Array3::from_elem([3, 2, 5], T::zero()));
        assert!(matches!(MaxPyramid::<T>::new([1, 0, 2]).err(), Some(Error::Parameter { argument: "shape", .. })));
        let many = pyramid.with_levels(5).err();
        assert_eq!(many, Some(Error::TooLarge { argument: "levels", value: 5, limit: 4 }));
    }
    check::<f32>();
    check::<f64>();
}

/// The bits of a NaN, and of the first of two zeros, are those of the child.
#[test]
fn maxima_are_copies() {
    levels::each(|level| {
        let pyramid = MaxPyramid::<f32>::new([1, 2, 2]).unwrap().with_level(level).unwrap();
        let [quiet, other] = [0x7fc0_1234, 0xffc0_4321].map(f32::from_bits);
        for (x, child) in [
            (array![[[-0.0, 0.0], [0.0, -0.0]]], 0),
            (array![[[0.0, -0.0], [-1.0, -2.0]]], 0),
            (array![[[9.0, quiet], [other, 10.0]]], 1),
            (array![[[f32::INFINITY, 1.0], [other, quiet]]], 2),
            (Array3::from_elem([1, 2, 2], f32::NEG_INFINITY), 0),
            (array![[[1.0, 2.0], [f32::INFINITY, f32::INFINITY]]], 2),
        ] {
            let found = pyramid.forward(x.view()).unwrap();
            assert_eq!(found.arguments, [array![[[child]]]], "{x}");
            let at = [0, usize::from(child / 2), usize::from(child % 2)];
            assert_eq!(found.levels[0][[0, 0, 0]].to_bits(), x[at].to_bits(), "{x}");
        }
    });
}
