//! Pyramids of numbers beside loops over windows.

use super::*;
use crate::Real;
use crate::simd::Level;
use ndarray::{Array3, ArrayView3, ArrayViewMut3};

const SHAPES: [[usize; 3]; 9] =
    [[1, 1, 1], [2, 2, 2], [3, 5, 7], [9, 2, 70], [16, 16, 33], [1, 1, 131], [17, 1, 2], [5, 8, 64], [4, 6, 100]];

/// Numbers that tie often, with what compares oddly among them.
fn numbers<T: Real>(shape: [usize; 3], seed: usize) -> Array3<T> {
    let mut state = seed;
    Array3::from_shape_simple_fn(shape, || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = match state >> 40 & 63 {
            0 => f64::NAN,
            1 | 2 => -0.0,
            3 | 4 => 0.0,
            5..=20 => f64::NEG_INFINITY,
            21 => f64::INFINITY,
            number => number as f64 - 40.0,
        };
        T::from_f64(number).unwrap()
    })
}

fn same<T: Real>(a: &Array3<T>, b: &Array3<T>) {
    assert_eq!(a.dim(), b.dim());
    let bits = |x: T| if x.is_nan() { (true, T::zero(), false) } else { (false, x, x.is_sign_negative()) };
    assert!(a.iter().zip(b).all(|(&a, &b)| bits(a) == bits(b)), "{a:?}\n{b:?}");
}

/// The children of each window of an array, absent ones left out, with their numbers.
fn windows<T: Real>(x: &Array3<T>) -> Array3<Vec<(u8, T)>> {
    let (a, b, c) = x.dim();
    Array3::from_shape_fn((a.div_ceil(2), b.div_ceil(2), c.div_ceil(2)), |(i, j, k)| {
        let child = |n: u8| {
            let n = usize::from(n);
            x.get([2 * i + n / 4, 2 * j + n / 2 % 2, 2 * k + n % 2]).copied()
        };
        (0..8).filter_map(|n| child(n).map(|x| (n, x))).collect()
    })
}

fn maximum<T: Real>(window: &[(u8, T)]) -> (u8, T) {
    if let Some(nan) = window.iter().find(|(_, x)| x.is_nan()) {
        return *nan;
    }
    window.iter().copied().reduce(|best, next| if next.1 > best.1 { next } else { best }).unwrap()
}

fn sum<T: Real>(window: &[(u8, T)]) -> T {
    let at = |n: u8| window.iter().find(|child| child.0 == n).map(|child| child.1);
    let add = |a: Option<T>, b: Option<T>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (a, b) => a.or(b),
    };
    let half = |n: u8| add(add(at(n), at(n + 1)), add(at(n + 2), at(n + 3)));
    add(half(0), half(4)).unwrap()
}

fn check<T: Real>(shape: [usize; 3], level: Level, tuning: Tuning) {
    let x = numbers::<T>(shape, 1);
    let max = MaxPyramid::<T>::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
    let sums = SumPyramid::<T>::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
    let means = MeanPyramid::<T>::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
    let (found, summed, averaged) =
        (max.forward(x.view()).unwrap(), sums.forward(x.view()).unwrap(), means.forward(x.view()).unwrap());
    let (mut largest, mut total, mut count) = (x.clone(), x.clone(), x.mapv(|_| T::one()));
    for k in 0..max.levels() - 1 {
        let best = windows(&largest).mapv(|window| maximum(&window));
        largest = best.mapv(|best| best.1);
        same(&found.levels[k], &largest);
        assert_eq!(found.arguments[k], best.mapv(|best| best.0));
        total = windows(&total).mapv(|window| sum(&window));
        same(&summed[k], &total);
        count = windows(&count).mapv(|window| sum(&window));
        same(&averaged[k], &(&total / &count));
    }

    let grads: Vec<Array3<T>> = (0..max.levels()).map(|k| numbers(max.level_shape(k), k + 7)).collect();
    for subset in [0usize, 1, 2, 6, 0b1011, usize::MAX] {
        let cotangents: Vec<Option<ArrayView3<'_, T>>> =
            grads.iter().enumerate().map(|(k, grad)| (subset >> k & 1 == 1).then(|| grad.view())).collect();
        let mut expected = [(); 3].map(|()| None::<Array3<T>>);
        for k in (0..max.levels()).rev() {
            let own = cotangents[k].map(|grad| grad.to_owned());
            let counts = Array3::from_shape_fn(max.level_shape(k), |at| {
                let at = [at.0, at.1, at.2];
                let voxels = (0..3).map(|axis| (shape[axis] - (at[axis] << k)).min(1 << k)).product::<usize>();
                T::from_usize(voxels).unwrap()
            });
            for (which, expected) in expected.iter_mut().enumerate() {
                let own = own.as_ref().map(|own| if which == 2 { own / &counts } else { own.clone() });
                let routed = expected.as_ref().map(|above| {
                    Array3::from_shape_fn(max.level_shape(k), |(x, y, z)| {
                        let parent = [x / 2, y / 2, z / 2];
                        let child = (4 * (x % 2) + 2 * (y % 2) + z % 2) as u8;
                        let gets = which > 0 || found.arguments[k][parent] == child;
                        if gets { above[parent] } else { T::zero() }
                    })
                });
                *expected = Some(match (own, routed) {
                    (Some(own), Some(routed)) => own + routed,
                    (own, routed) => own.or(routed).unwrap_or_else(|| Array3::zeros(max.level_shape(k))),
                });
            }
        }
        let [of_max, of_sums, of_means] = expected.map(Option::unwrap);
        same(&max.adjoint(&cotangents, &found.arguments).unwrap(), &of_max);
        same(&sums.adjoint(&cotangents).unwrap(), &of_sums);
        same(&means.adjoint(&cotangents).unwrap(), &of_means);
        let mut wide = Array3::from_elem([shape[0], shape[1], 2 * shape[2]], T::one());
        let mut out: ArrayViewMut3<'_, T> = wide.slice_mut(ndarray::s![.., .., ..;2]);
        max.adjoint_into(&cotangents, &found.arguments, out.view_mut()).unwrap();
        same(&out.to_owned(), &of_max);
    }
}

#[test]
fn every_window() {
    for shape in SHAPES {
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            for (parallel, fused, stream) in [(false, true, true), (true, false, false), (true, true, true)] {
                let tuning = Tuning { parallel: Some(parallel), fused: Some(fused), stream: Some(stream), task: None };
                check::<f32>(shape, level, tuning);
                check::<f64>(shape, level, tuning);
            }
        }
    }
}

#[test]
fn arguments_that_name_no_child() {
    let pyramid = MaxPyramid::<f32>::new([3, 2, 2]).unwrap();
    let mut arguments = pyramid.forward(Array3::zeros((3, 2, 2)).view()).unwrap().arguments;
    arguments[0][[1, 0, 0]] = 4;
    let error = pyramid.adjoint(&[], &arguments).unwrap_err();
    assert_eq!(error.to_string(), "arguments[0, 1, 0, 0] = 4 is outside 0..8");
}
