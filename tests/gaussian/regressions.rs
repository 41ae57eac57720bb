//! Inputs that broke other libraries' Gaussian kernels, each with the right answer, and those that are easy to get wrong.

use crate::common::files;
use crate::common::gaussian::{Window, as_given, seed};
use crate::common::levels;
use crate::common::maps_case::{Data, PARAMETERS, check_kernel, number};
use crate::common::random::Random;
use crate::common::values::Value;
use crate::common::wide::Referred;
use ndarray::{Array3, ArrayD, IxDyn};
use pullback::Level;
use pullback::gaussian::{Centre, KernelMaps, Parameters};
use std::f64::consts::FRAC_PI_4;

fn maps<T: Value>(level: Level, window: [usize; 2], centre: Centre, parameters: Parameters) -> KernelMaps<T> {
    let maps = KernelMaps::rectangular(window, centre).unwrap().with_parameters(parameters);
    maps.with_level(level).unwrap()
}

fn array<T: Referred>(numbers: &[f64]) -> ArrayD<T> {
    let shape = if numbers.len() == 4 { IxDyn(&[2, 2]) } else { IxDyn(&[numbers.len()]) };
    ArrayD::from_shape_vec(shape, numbers.iter().map(|&x| number(x)).collect()).unwrap()
}

/// The entries of one kernel and the gradients of its numbers where those of entries are `grad`, all near their references.
#[track_caller]
fn checked<T: Referred>(
    maps: &KernelMaps<T>,
    parameters: Parameters,
    numbers: &[f64],
    grad: impl Fn(usize) -> f64,
) -> (Vec<T>, Vec<T>) {
    let numbers: Vec<T> = numbers.iter().map(|&x| number(x)).collect();
    let [kh, kw] = maps.shape();
    let grad: Vec<T> = (0..kh * kw).map(|at| number(grad(at))).collect();
    check_kernel(maps, parameters, &numbers, None, &grad).expect("a good kernel")
}

fn ramp(at: usize) -> f64 {
    (at * 7 % 11) as f64 - 5.0
}

fn wide<T: Value>(x: T) -> f64 {
    x.to_f64().unwrap()
}

/// All underflow, and the nearest samples share: two in a row of four, four in a square.
#[test]
fn a_window_of_four_and_a_kernel_below_all_samples() {
    fn check<T: Referred>(level: Level, sigmas: &[f64]) {
        for (sigma, angle) in sigmas.iter().flat_map(|&sigma| [(sigma, 0.0), (sigma, 0.5)]) {
            for (window, share, count) in [([1, 4], 0.5, 2), ([4, 1], 0.5, 2), ([4, 4], 0.25, 4), ([1, 3], 1.0, 1)] {
                let m = 1.0 / sigma;
                let factor = number::<T>(m).is_finite().then_some(vec![m, 0.0, 0.0, m]);
                let sigmas = Some(vec![sigma, sigma, angle]);
                for (parameters, numbers) in [(Parameters::Factor, factor), (Parameters::Sigmas, sigmas)] {
                    let Some(numbers) = numbers else { continue };
                    if parameters == Parameters::Sigmas && angle != 0.0 && count == 4 {
                        // Only opposite ones are certain to tie.
                        continue;
                    }
                    let op = maps::<T>(level, window, Centre::Middle, parameters);
                    let found: Vec<T> = op.forward(array(&numbers).view()).unwrap().into_iter().collect();
                    let winners = found.iter().filter(|&&p| p == number(share)).count();
                    let rest = found.iter().filter(|&&p| p == T::zero()).count();
                    let all = window[0] * window[1];
                    assert_eq!((winners, rest), (count, all - count), "{found:?} of {numbers:?}");
                    let [y, x] = window.map(|k| (k - 1) / 2);
                    assert_eq!(found[y * window[1] + x], number(share));
                    let grads = ArrayD::from_shape_fn(&window[..], |at| number(ramp(at[0] + at[1])));
                    let gradient = op.adjoint(grads.view(), array(&numbers).view()).unwrap();
                    assert!(gradient.iter().all(|g| !g.is_nan()), "{gradient:?} of {numbers:?}");
                }
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level, &[0.02, 1e-3, 1e-10, 1e-19, 1e-20, 1e-30, 1e-38, 1e-45]);
        check::<f64>(level, &[0.02, 1e-3, 1e-20, 1e-154, 1e-160, 1e-200, 1e-300, 5e-324]);
    });
}

#[test]
fn sigma_two_at_a_distance() {
    levels::each(|level| {
        let sigmas = maps::<f64>(level, [1, 15], Centre::Middle, Parameters::Sigmas);
        let found = checked(&sigmas, Parameters::Sigmas, &[2.0, 2.0, 0.0], ramp).0;
        let variances = maps::<f64>(level, [15, 1], Centre::Middle, Parameters::Variances);
        let of_variances = checked(&variances, Parameters::Variances, &[4.0, 4.0, 1.0], ramp).0;
        for d in 0..=7 {
            let expected = (-f64::from(d * d) / 8.0).exp();
            for (found, at) in [(&found, 7 + d), (&found, 7 - d), (&of_variances, 7 + d), (&of_variances, 7 - d)] {
                let ratio = found[at as usize] / found[7];
                assert!((ratio / expected - 1.0).abs() < 1e-13, "{ratio} at a distance of {d}, not {expected}");
            }
        }
    });
}

/// Out of z (x, y), the first sigma is that of x where the angle is 0, and rows are y.
#[test]
fn axes_are_not_swapped() {
    levels::each(|level| {
        let op = maps::<f64>(level, [7, 7], Centre::Middle, Parameters::Sigmas);
        let found = checked(&op, Parameters::Sigmas, &[2.0, 0.5, 0.0], ramp).0;
        let ratio = |dx: usize, dy: usize| found[(3 + dy) * 7 + 3 + dx] / found[3 * 7 + 3];
        assert!((ratio(0, 1) - (-2f64).exp()).abs() < 1e-13, "narrow in y: {}", ratio(0, 1));
        assert!((ratio(1, 0) - (-0.125f64).exp()).abs() < 1e-13, "wide in x: {}", ratio(1, 0));
        // A quarter turn swaps them, an eighth puts the long axis from the upper left to the lower right.
        let turned = checked(&op, Parameters::Sigmas, &[2.0, 0.5, 2.0 * FRAC_PI_4], ramp).0;
        let transposed = (0..49).map(|at| found[at % 7 * 7 + at / 7]);
        assert!(turned.iter().zip(transposed).all(|(a, b)| (a - b).abs() < 1e-14));
        let diagonal = checked(&op, Parameters::Sigmas, &[2.0, 0.5, FRAC_PI_4], ramp).0;
        assert!(diagonal[4 * 7 + 4] > 2.0 * diagonal[4 * 7 + 2], "y goes down");
        let factor = maps::<f64>(level, [7, 7], Centre::Middle, Parameters::Factor);
        let of_factor = checked(&factor, Parameters::Factor, &[0.5, 0.0, 0.0, 2.0], ramp).0;
        assert!(found.iter().zip(of_factor).all(|(a, b)| (a - b).abs() < 1e-14));
        // A window of two columns and five rows, its corner at the first sample.
        let tall = maps::<f64>(level, [5, 2], Centre::Corner, Parameters::Factor);
        let (entries, _) = checked(&tall, Parameters::Factor, &[1.0, 0.0, 0.0, 2.0], ramp);
        assert!((entries[1] / entries[0] - (-0.5f64).exp()).abs() < 1e-14, "x = 1");
        assert!((entries[2] / entries[0] - (-2f64).exp()).abs() < 1e-14, "y = 1");
    });
}

#[test]
fn equal_sigmas_are_isotropic() {
    levels::each(|level| {
        for (sigma, angle) in [0.6, 1.7, 30.0].into_iter().flat_map(|s| [0.0, 1.0, -2.5, 100.0].map(|a| (s, a))) {
            let sigmas = maps::<f64>(level, [9, 8], Centre::Half, Parameters::Sigmas);
            let found = checked(&sigmas, Parameters::Sigmas, &[sigma, sigma, angle], ramp).0;
            let precision = maps::<f64>(level, [9, 8], Centre::Half, Parameters::Precision);
            let round = [sigma.powi(-2), 0.0, sigma.powi(-2)];
            let isotropic = checked(&precision, Parameters::Precision, &round, ramp).0;
            let worst = found.iter().zip(&isotropic).map(|(a, b)| (a / b - 1.0).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-12, "off by {worst} for {sigma} at {angle}");
        }
    });
}

#[test]
fn minus_an_eighth_of_a_turn() {
    levels::each(|level| {
        let sigmas = maps::<f64>(level, [11, 11], Centre::Middle, Parameters::Sigmas);
        let found = checked(&sigmas, Parameters::Sigmas, &[5.0, 2.5, -FRAC_PI_4], ramp).0;
        let precision = maps::<f64>(level, [11, 11], Centre::Middle, Parameters::Precision);
        let expected = checked(&precision, Parameters::Precision, &[0.10, 0.06, 0.10], ramp).0;
        assert!(found.iter().zip(&expected).all(|(a, b)| (a / b - 1.0).abs() < 1e-12));
        // The long axis goes from the lower left to the upper right.
        assert!(found[5 * 11 + 5] > found[2 * 11 + 8] && found[2 * 11 + 8] > 2.0 * found[8 * 11 + 8]);
    });
}

/// A far sample wins on a thin ridge that misses all nearer ones.
#[test]
fn a_far_sample_on_a_ridge() {
    fn check<T: Referred>(level: Level, across: f64) {
        let op = maps::<T>(level, [4, 4], Centre::Middle, Parameters::Factor);
        // Along (3, 1), which no sample at half a pixel is on.
        let (found, _) = checked(&op, Parameters::Factor, &[0.0, 0.0, -across, 3.0 * across], |_| 1.0);
        let half = number(0.5);
        let expected: Vec<T> = (0..16).map(|at| if at == 4 || at == 11 { half } else { T::zero() }).collect();
        assert_eq!(found, expected, "across {across}");
    }
    levels::each(|level| {
        [1e2, 1e5, 1e18, 1e19, 1e20, 1e37].into_iter().for_each(|across| check::<f32>(level, across));
        [1e2, 1e5, 1e150, 1e160, 1e300].into_iter().for_each(|across| check::<f64>(level, across));
    });
}

/// Where a recurrence along a row starts from an underflow, there is nothing; the truth is 1 / e of the middle.
#[test]
fn ten_by_a_half_at_an_eighth_of_a_turn() {
    levels::each(|level| {
        let numbers = [10.0, 0.5, FRAC_PI_4];
        let single = maps::<f32>(level, [21, 21], Centre::Middle, Parameters::Sigmas);
        let double = maps::<f64>(level, [21, 21], Centre::Middle, Parameters::Sigmas);
        let (single, _) = checked(&single, Parameters::Sigmas, &numbers, ramp);
        let (double, _) = checked(&double, Parameters::Sigmas, &numbers, ramp);
        for corner in [0, 440] {
            assert!((single[corner] / single[220] - 0.367_879_44).abs() < 1e-4);
            assert!((double[corner] / double[220] - (-1f64).exp()).abs() < 1e-12);
        }
    });
}

/// Uniform, and no gradient: the factor's is a multiple of the factor.
#[test]
fn no_factor_at_all() {
    fn check<T: Referred>(level: Level) {
        for (window, centre) in [
            ([4, 4], Centre::Middle),
            ([21, 21], Centre::Corner),
            ([1, 32], Centre::At(0.3, 7.0)),
            ([3, 5], Centre::Half),
        ] {
            let op = maps::<T>(level, window, centre, Parameters::Factor);
            let count = (window[0] * window[1]) as f64;
            for zero in [[0.0; 4], [-0.0, 0.0, -0.0, 0.0]] {
                let (found, gradient) = checked(&op, Parameters::Factor, &zero, ramp);
                assert!(gradient.iter().all(|g| *g == T::zero()), "{gradient:?}");
                let error = if count.log2().fract() == 0.0 { 0.0 } else { 2.0 * T::unit() / count };
                assert!(found.iter().all(|p| (wide(*p) - 1.0 / count).abs() <= error && *p == found[0]), "{found:?}");
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// Never NaN, and the kernel that is the limit.
#[test]
fn huge_factors() {
    fn check<T: Referred>(level: Level, magnitudes: &[f64]) {
        let most = T::max_value().to_f64().unwrap();
        for &m in magnitudes.iter().chain([&most]) {
            let column = |down: f64| [m, 0.0, 0.0, down];
            for (centre, numbers) in [
                (Centre::Corner, [m, 0.0, 0.0, m]),
                (Centre::Middle, [m, 0.0, 0.0, m]),
                (Centre::Middle, [0.0, m, -m, 0.0]),
                (Centre::Half, [m, m, m, -m]),
                // Tied along the column x = 0, where the other axis alone counts.
                (Centre::Half, column(0.0)),
                (Centre::Half, column(0.5)),
                (Centre::Corner, column(1.0)),
                (Centre::Half, column(1e-3)),
                (Centre::Half, [0.25, 0.0, 0.0, m]),
            ] {
                let op = maps::<T>(level, [6, 6], centre, Parameters::Factor);
                let (found, gradient) = checked(&op, Parameters::Factor, &numbers, |at| ramp(at) / 8.0);
                assert!(found.iter().chain(&gradient).all(|x| !x.is_nan()), "{numbers:?}: {found:?}, {gradient:?}");
                if numbers == column(0.5) {
                    let p = |y: usize| wide(found[y * 6 + 3]);
                    assert!((p(5) / p(3) - (-0.5f64).exp()).abs() < 1e-5, "{found:?}");
                }
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level, &[1e4, 1e10, 1e18, 1e19, 2e19, 1e20, 1e25, 1e30, 1e37]);
        check::<f64>(level, &[1e4, 1e20, 1e150, 1e154, 2e154, 1e155, 1e200, 1e300]);
    });
}

/// Rows of very different lengths: on the ridge of the long one the short one alone counts, and it is not lost in the square of the
/// other.
#[test]
fn a_short_row_beside_a_long_one() {
    fn check<T: Referred>(level: Level) {
        let op = maps::<T>(level, [5, 5], Centre::Middle, Parameters::Factor);
        for (long, short) in [1e4, 1e6, 1e8, 1e10, 1e20, 1e30].into_iter().flat_map(|l| [40.0, 100.0].map(|s| (l, s))) {
            let found = op.forward(array::<T>(&[long, -2.0 * long, short, 0.0]).view()).unwrap();
            // On the ridge are (-2, -1), 0 and (2, 1), where the short row is 80 or more.
            let expected =
                ArrayD::from_shape_fn(&[5, 5][..], |at| number(f64::from(u8::from(at[0] == 2 && at[1] == 2))));
            assert_eq!(found, expected, "{long:e} beside {short}");
        }
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// The other kinds of numbers, as far as they go: never NaN, and where the reference says what is right that.
#[test]
fn numbers_at_the_ends_of_their_range() {
    fn check<T: Referred>(level: Level) {
        let (least, tiny, most) = (wide(T::subnormal()), T::tiny(), wide(T::max_value()));
        let root = most.sqrt();
        let spreads = [least, tiny, 1.0 / root, 1e-3, 1.0, root, most];
        let mut all: Vec<(Parameters, [f64; 3])> = vec![];
        for (a, b) in spreads.into_iter().flat_map(|a| spreads.map(|b| (a, b))) {
            all.extend([0.0, 0.7].map(|angle| (Parameters::Sigmas, [a, b, angle])));
            all.extend([0.0, 0.7].map(|angle| (Parameters::Variances, [a, b, angle])));
            all.push((Parameters::Covariance, [a, 0.0, b]));
            all.push((Parameters::Precision, [a, 0.0, b]));
            all.push((Parameters::Precision, [a, 0.0, 0.0]));
        }
        all.push((Parameters::Precision, [most; 3]));
        all.push((Parameters::Precision, [most, -most, most]));
        for (parameters, numbers) in all {
            for centre in [Centre::Middle, Centre::Half] {
                let op = maps::<T>(level, [4, 6], centre, parameters);
                let shape = array::<T>(&numbers);
                let found = op.forward(shape.view()).unwrap();
                let sum: f64 = found.iter().map(|&p| wide(p)).sum();
                assert!((sum - 1.0).abs() < 3e-6, "{parameters:?} {numbers:?} at {centre:?}: {found:?}");
                assert!(found.iter().all(|p| *p == T::zero() || wide(*p) >= T::tiny()), "{numbers:?}: {found:?}");
                // A quarter of the window is its mirror image where nothing is turned.
                if numbers[2] == 0.0 && parameters != Parameters::Precision && centre == Centre::Middle {
                    let [first, last] = [0, 23].map(|at| found.iter().copied().nth(at).unwrap());
                    assert_eq!(first, last, "{parameters:?} {numbers:?}");
                }
                let grads = ArrayD::from_shape_fn(&op.shape()[..], |at| number(ramp(at[0] * 6 + at[1]) / 8.0));
                let gradient = op.adjoint(grads.view(), shape.view()).unwrap();
                assert!(gradient.iter().all(|g| !g.is_nan()), "{parameters:?} {numbers:?} at {centre:?}: {gradient:?}");
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// One sigma below all samples beside an ordinary one: the column, with its kernel and its gradient.
#[test]
fn a_sigma_of_nothing_beside_another() {
    fn check<T: Referred>(level: Level, nothings: &[f64]) {
        for &nothing in nothings {
            for (parameters, numbers) in [
                (Parameters::Sigmas, [nothing, 2.0, 0.0]),
                (Parameters::Variances, [nothing, 4.0, 0.0]),
                (Parameters::Covariance, [nothing, 0.0, 4.0]),
            ] {
                let op = maps::<T>(level, [7, 7], Centre::Middle, parameters);
                let (found, gradient) = checked(&op, parameters, &numbers, ramp);
                let ratio = wide(found[5 * 7 + 3]) / wide(found[3 * 7 + 3]);
                assert!((ratio - (-0.5f64).exp()).abs() < 1e-5, "{ratio} of {numbers:?}");
                assert_eq!(gradient[0], T::zero(), "{gradient:?} of {numbers:?}");
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level, &[1e-5, 1e-10, 1e-15, 1e-20, 1e-30, 1e-38]);
        check::<f64>(level, &[1e-5, 1e-20, 1e-100, 1e-150]);
    });
}

/// Where entries go from normal numbers to nothing.
#[test]
fn tails_end_before_subnormal_numbers() {
    fn check<T: Referred>(level: Level, scales: [f64; 2]) {
        let (mut zeros, mut smallest) = (0, f64::INFINITY);
        for step in 0..400 {
            let scale = scales[0] + (scales[1] - scales[0]) * f64::from(step) / 400.0;
            let op = maps::<T>(level, [2, 25], Centre::Corner, Parameters::Factor);
            let (found, _) = checked(&op, Parameters::Factor, &[scale, 0.0, 0.0, scale], ramp);
            assert!(found.iter().all(|p| !p.is_subnormal()), "{found:?}");
            zeros += found.iter().filter(|p| **p == T::zero()).count();
            smallest = found.iter().filter(|p| **p > T::zero()).map(|p| wide(*p)).fold(smallest, f64::min);
        }
        assert!(zeros > 400 && smallest < 2.0 * T::tiny(), "{zeros} zeros, and the smallest is {smallest:e}");
    }
    levels::each(|level| {
        check::<f32>(level, [0.5, 1.5]);
        check::<f64>(level, [1.4, 3.0]);
    });
}

#[test]
fn a_constant_gradient_is_exactly_none() {
    fn check<T: Referred>(level: Level) {
        let mut random = Random::new(3);
        for (at, parameters) in PARAMETERS.into_iter().enumerate() {
            for data in Data::ALL {
                let op = maps::<T>(level, [[21, 21], [5, 4], [1, 9], [16, 3]][at % 4], Centre::Middle, parameters);
                let numbers: Vec<T> = (0..6).flat_map(|_| data.draw(parameters, &mut random)).collect();
                let last: &[usize] = if parameters == Parameters::Factor { &[6, 2, 2] } else { &[6, 3] };
                let shapes = ArrayD::from_shape_vec(last, numbers).unwrap();
                let offsets = ArrayD::from_shape_simple_fn(&[6, 2][..], || number::<T>(random.normal()));
                let maps = [&[6], &op.shape()[..]].concat();
                for constant in [1.0, -0.1, 1e10, 3e-7, 1.0 / 3.0] {
                    let grads = ArrayD::from_elem(&maps[..], number::<T>(constant));
                    let found = op.adjoint(grads.view(), shapes.view()).unwrap();
                    assert!(found.iter().all(|g| *g == T::zero()), "{parameters:?} of {constant}: {found:?}");
                    let found = op.adjoint_at(grads.view(), shapes.view(), offsets.view()).unwrap();
                    let all = found.grad_shapes.iter().chain(&found.grad_offsets);
                    assert!(all.clone().all(|g| *g == T::zero()), "{parameters:?} of {constant}: {found:?}");
                }
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// The same bits, as the differences of the gradients are exact.
#[test]
fn a_large_mean_costs_no_digits() {
    fn check<T: Referred>(level: Level, mean: f64) {
        let mut random = Random::new(4);
        for parameters in PARAMETERS {
            let op = maps::<T>(level, [9, 9], Centre::Middle, parameters);
            let shape =
                array::<T>(&Data::Centred.draw::<T>(parameters, &mut random).into_iter().map(wide).collect::<Vec<_>>());
            let small = ArrayD::from_shape_simple_fn(&[9, 9][..], || number::<T>(random.below(64) as f64 / 8.0 - 4.0));
            let large = small.mapv(|g| g + number::<T>(mean));
            let found = [small, large].map(|grads| op.adjoint(grads.view(), shape.view()).unwrap());
            assert!(found[0].iter().any(|g| *g != T::zero()));
            assert_eq!(found[0], found[1], "{parameters:?}");
        }
    }
    levels::each(|level| {
        check::<f32>(level, 1e6);
        check::<f64>(level, 1e14);
    });
}

#[test]
fn a_window_of_one() {
    fn check<T: Referred>(level: Level) {
        let mut random = Random::new(6);
        for (parameters, data) in PARAMETERS.into_iter().flat_map(|p| Data::ALL.map(|d| (p, d))) {
            for centre in
                [Centre::Corner, Centre::Middle, Centre::Half, Centre::At(3.5, -1.25), Centre::ShiftConvolution(4)]
            {
                let op = maps::<T>(level, [1, 1], centre, parameters);
                let shape =
                    array::<T>(&data.draw::<T>(parameters, &mut random).into_iter().map(wide).collect::<Vec<_>>());
                assert_eq!(op.forward(shape.view()).unwrap(), ArrayD::ones(&[1, 1][..]));
                let gradient = op.adjoint(ArrayD::from_elem(&[1, 1][..], number(-2.5)).view(), shape.view()).unwrap();
                assert!(gradient.iter().all(|g| *g == T::zero()), "{gradient:?}");
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// The same kernels, the gradient rotated alike: by thirds and fourths of five, so that all products are exact.
#[test]
fn turned_on_the_left() {
    fn check<T: Referred>(level: Level) {
        for (m, scale) in [([3.0, -1.0, 2.0, 5.0], 32.0), ([1.0, 0.0, 0.0, 1.0], 8.0), ([1.0, 2.0, -3.0, 1.0], 100.0)] {
            for turn in [[3.0, -4.0, 4.0, 3.0], [-4.0, 3.0, 3.0, 4.0], [0.0, -5.0, 5.0, 0.0], [5.0, 0.0, 0.0, -5.0]] {
                // All are wholes over a power of two, or near it: what is compared are the numbers as they are rounded.
                let scale = f64::log2(scale).round().exp2();
                let plain: Vec<f64> = m.iter().map(|x| 5.0 * x / scale).collect();
                let turned = [(0, 0), (0, 1), (1, 0), (1, 1)]
                    .map(|(r, c): (usize, usize)| (turn[2 * r] * m[c] + turn[2 * r + 1] * m[2 + c]) / scale);
                let op = maps::<T>(level, [9, 8], Centre::Middle, Parameters::Factor);
                let window = Window::of(Parameters::Factor, &op.grid());
                let grad: Vec<T> = (0..72).map(|at| number(ramp(at))).collect();
                let (first, of_first) = checked(&op, Parameters::Factor, &plain, ramp);
                let (second, of_second) = checked(&op, Parameters::Factor, &turned, ramp);
                let typed = |numbers: &[f64]| numbers.iter().map(|&x| number::<T>(x)).collect::<Vec<_>>();
                let [a, b] = [&plain[..], &turned].map(|numbers| window.map(&typed(numbers), None));
                for (at, (&p, &q)) in first.iter().zip(&second).enumerate() {
                    let error = a.entry(at).error + b.entry(at).error;
                    assert!(
                        (wide(p) - wide(q)).abs() <= error,
                        "entry {at}: {p:?} and {q:?} of {plain:?} and {turned:?}"
                    );
                }
                let [a, b] = [&a, &b].map(|map| window.gradient(map, &as_given(&grad)).shape);
                for (r, c) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                    let terms = [0, 1].map(|k| (turn[2 * r + k] / 5.0, wide(of_first[2 * k + c]), a[2 * k + c].error));
                    let expected: f64 = terms.iter().map(|(t, g, _)| t * g).sum();
                    let error: f64 = terms.iter().map(|(t, _, e)| t.abs() * e).sum();
                    let off = (wide(of_second[2 * r + c]) - expected).abs();
                    let rounding = 4.0 * f64::EPSILON * expected.abs();
                    assert!(off <= error + b[2 * r + c].error + rounding, "gradient {r}, {c}: off by {off}");
                }
            }
        }
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// The Gaussians of a published evaluation, stored in f32.
#[test]
fn published_kernels() {
    let Some((kernels, known)) = files::kernels() else { return };
    levels::each(|level| {
        for (stored, [l1, l2, degrees]) in kernels.outer_iter().zip(known) {
            let angle = degrees.to_radians();
            let (sin, cos) = angle.sin_cos();
            let symmetric =
                |a: f64, b: f64| [cos * cos * a + sin * sin * b, cos * sin * (a - b), sin * sin * a + cos * cos * b];
            let (s1, s2) = (l1.sqrt(), l2.sqrt());
            for (parameters, numbers) in [
                (Parameters::Variances, vec![l1, l2, angle]),
                (Parameters::Sigmas, vec![s1, s2, angle]),
                (Parameters::Covariance, symmetric(l1, l2).to_vec()),
                (Parameters::Precision, symmetric(1.0 / l1, 1.0 / l2).to_vec()),
                (Parameters::Factor, vec![cos / s1, sin / s1, -sin / s2, cos / s2]),
            ] {
                let double = maps::<f64>(level, [25, 25], Centre::Middle, parameters);
                let (found, _) = checked(&double, parameters, &numbers, ramp);
                let most = found.iter().copied().fold(0.0, f64::max);
                for (at, (&p, &stored)) in found.iter().zip(stored).enumerate() {
                    let stored = f64::from(stored);
                    if stored == 0.0 {
                        // The cut, of isotropic ones alone.
                        assert!(l1 == l2 && p < 2.3e-16 * most, "entry {at} is {p:e}, not 0");
                    } else if stored >= f64::from(f32::MIN_POSITIVE) {
                        // Half an ulp of f32, and the rounding of f64.
                        let error = stored * (f64::from(f32::EPSILON) / 2.0 + 1e-12);
                        assert!((p - stored).abs() <= error, "{numbers:?}: entry {at} is {p:e}, not {stored:e}");
                    }
                }
                let single = maps::<f32>(level, [25, 25], Centre::Half, parameters);
                let (found, _) = checked(&single, parameters, &numbers, ramp);
                for (at, (&p, &stored)) in found.iter().zip(stored).enumerate() {
                    // Rounded numbers are another kernel: an exponent of -q / 2 that is off by units of q.
                    let q = -2.0 * (f64::from(stored) / most).ln();
                    let error = stored * f32::EPSILON * (40.0 + 20.0 * q as f32);
                    let counts = stored >= f32::MIN_POSITIVE;
                    assert!(!counts || (p - stored).abs() <= error, "{numbers:?}: entry {at} is {p:e}, not {stored:e}");
                }
            }
        }
    });
}

/// Seed-like kernels: most entries are nothing, those of f32 agree with the form of training code in f64.
#[test]
fn kernels_of_standard_normal_numbers() {
    levels::each(|level| {
        let mut random = Random::new(8);
        let op = maps::<f32>(level, [21, 21], Centre::Corner, Parameters::Factor);
        let mut zeros = 0;
        for _ in 0..40 {
            let numbers: Vec<f64> = (0..4).map(|_| f64::from(random.normal() as f32)).collect();
            let (found, _) = checked(&op, Parameters::Factor, &numbers, ramp);
            zeros += found.iter().filter(|p| **p == 0.0).count();
            let expected = seed([[numbers[0], numbers[1]], [numbers[2], numbers[3]]], 21);
            let worst = found.iter().zip(expected).map(|(&p, e)| (f64::from(p) - e).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-5, "off by {worst}");
        }
        assert!(zeros > 40 * 441 / 3, "{zeros} zeros");
    });
}

/// The seed passes its own samples, whose type and strides are its own.
#[test]
fn samples_of_a_transposed_array() {
    levels::each(|level| {
        let z = Array3::from_shape_fn([2, 6, 5], |(axis, y, x)| [x as f64, y as f64][axis] - 2.0);
        let op = KernelMaps::with_grid(z.view().permuted_axes([1, 2, 0])).unwrap().with_level(level).unwrap();
        assert_eq!((op.shape(), op.grid()[[5, 1, 0]], op.grid()[[5, 1, 1]]), ([6, 5], -1.0, 3.0));
        let at = maps::<f64>(level, [6, 5], Centre::At(2.0, 2.0), Parameters::Factor);
        assert_eq!(op.grid(), at.grid());
        let numbers = [0.3, 0.1, -0.2, 0.6];
        assert_eq!(checked(&op, Parameters::Factor, &numbers, ramp), checked(&at, Parameters::Factor, &numbers, ramp));
    });
}
