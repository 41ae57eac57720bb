//! Kernel maps and their gradients near those of plain loops in twice the precision, whatever the kernels, their numbers, the
//! window, the strides and the number of threads; the form of training code; differences.

use crate::common::gaussian::{as_given, seed};
use crate::common::levels;
use crate::common::maps_case::{Data, Grads, Grid, MapsCase, MapsLayout, PARAMETERS, number};
use crate::common::maps_strategy::{CENTRES, PATHS, SIZES, maps};
use crate::common::problems::check_random;
use crate::common::random::Random;
use crate::common::strides::Strides;
use crate::common::threads;
use crate::common::values::Value;
use crate::common::wide::{Dd, Referred, Wide};
use ndarray::{Array, Array3, ArrayD, Dimension, IxDyn};
use pullback::Level;
use pullback::gaussian::{Centre, KernelMaps, Parameters, Tuning};

#[test]
fn random_problems() {
    levels::each(|level| check_random(1500, &maps(), |case| case.check(level)));
}

/// All that a kernel can be, on windows of several rows and lanes.
#[test]
fn every_kind_of_kernel() {
    levels::each(|level| {
        for (at, (parameters, data)) in PARAMETERS.into_iter().flat_map(|p| Data::ALL.map(|d| (p, d))).enumerate() {
            for (round, grads) in Grads::ALL.into_iter().enumerate() {
                let centre = CENTRES[(at + 3 * round) % CENTRES.len()];
                let (double, offsets) = ((at + round) % 2 == 1, (round % 2 == 1).then_some(0.8));
                let case =
                    MapsCase { parameters, data, grads, double, offsets, seed: at as u64, ..MapsCase::default() };
                let case = MapsCase { window: [[9, 9], [8, 17], [16, 5], [21, 21], [7, 7]][round], ..case };
                MapsCase { grid: Grid::Centre(centre), ..case.clone() }.check(level);
                MapsCase { grid: Grid::Given, double: !double, leading: vec![2], ..case }.check(level);
            }
        }
    });
}

#[test]
fn every_window() {
    levels::each(|level| {
        for (at, [kh, kw]) in SIZES.into_iter().flat_map(|kh| SIZES.map(|kw| [kh, kw])).enumerate() {
            let (parameters, centre) = (PARAMETERS[at % 5], CENTRES[at % CENTRES.len()]);
            let case = MapsCase { window: [kh, kw], parameters, grid: Grid::Centre(centre), ..MapsCase::default() };
            MapsCase { leading: vec![2], double: at % 2 == 1, data: Data::ALL[at % 6], ..case }.check(level);
        }
        // Larger than any scratch, than one row of it, and a whole number of vectors.
        for window in [[41, 41], [64, 64], [91, 91], [1, 700], [700, 1], [32, 16]] {
            for (data, centre, double) in [
                (Data::Wide, Centre::Middle, false),
                (Data::Ridge, Centre::Half, true),
                (Data::Seed, Centre::Corner, false),
            ] {
                let case = MapsCase { window, data, double, grid: Grid::Centre(centre), ..MapsCase::default() };
                MapsCase { leading: vec![2], ..case }.check(level);
            }
        }
    });
}

#[test]
fn every_number_of_pixels() {
    levels::each(|level| {
        for pixels in [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 513, 1000] {
            let case = MapsCase { leading: vec![pixels], data: Data::Mixed, ..MapsCase::default() };
            MapsCase { window: [3, 3], ..case.clone() }.check(level);
            MapsCase { window: [1, 2], double: true, parameters: Parameters::Sigmas, ..case }.check(level);
        }
        for leading in [vec![], vec![0, 3], vec![3, 0], vec![1, 1, 1, 1], vec![2, 3, 5, 7]] {
            let case = MapsCase { leading, window: [4, 3], offsets: Some(0.3), ..MapsCase::default() };
            case.check(level);
            MapsCase { parameters: Parameters::Covariance, double: true, ..case }.check(level);
        }
    });
}

#[test]
fn every_tuning() {
    let switch = [None, Some(false), Some(true)];
    levels::each(|level| {
        for (stream, parallel) in switch.into_iter().flat_map(|stream| switch.map(|parallel| (stream, parallel))) {
            for (mirror, path) in switch.into_iter().flat_map(|mirror| PATHS.map(|path| (mirror, path))) {
                for tile in [None, Some(1), Some(3), Some(16)] {
                    let tuning = Tuning { stream, parallel, tile, mirror, path };
                    let case = MapsCase { tuning, leading: vec![19], window: [3, 7], ..MapsCase::default() };
                    case.check(level);
                    MapsCase { double: true, data: Data::Mixed, window: [8, 4], ..case }.check(level);
                }
            }
        }
    });
}

#[test]
fn every_number_of_threads() {
    levels::each(|level| {
        for (threads, parallel) in threads::COUNTS.into_iter().flat_map(|n| [(n, None), (n, Some(true))]) {
            let tuning = Tuning { parallel, tile: Some(8), ..Tuning::default() };
            let case = MapsCase { threads, tuning, leading: vec![150], data: Data::Seed, ..MapsCase::default() };
            case.check(level);
            MapsCase { double: true, offsets: Some(1.0), parameters: Parameters::Variances, ..case }.check(level);
        }
    });
}

/// All that is promised where arithmetic is fused.
#[test]
fn the_same_bits_for_every_number_of_threads_and_at_both_upper_levels() {
    fn check<T: Referred>(case: &MapsCase) {
        let scene = case.scene::<T>();
        let mut at_level: Vec<(Level, Vec<u64>)> = vec![];
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut bits: Vec<Vec<u64>> = vec![];
            for (threads, parallel) in threads::COUNTS.into_iter().flat_map(|n| [(n, None), (n, Some(true))]) {
                let tuning = Tuning { parallel, ..Tuning::default() };
                let case = MapsCase { tuning, ..case.clone() };
                let results = threads::with(threads, || case.results(&scene, level));
                bits.push(results.into_iter().map(Value::to_bits).collect());
            }
            assert!(bits.iter().all(|other| *other == bits[0]), "threads at {level}: {case:?}");
            at_level.push((level, bits.swap_remove(0)));
        }
        let of = |level| at_level.iter().find(|(other, _)| *other == level).map(|(_, bits)| bits);
        if let (Some(v3), Some(v4)) = (of(Level::V3), of(Level::V4)) {
            assert!(v3 == v4, "V3 and V4 differ: {case:?}");
        }
    }
    levels::each(|_| {});
    for (at, (parameters, data)) in PARAMETERS.into_iter().flat_map(|p| Data::ALL.map(|d| (p, d))).enumerate() {
        let case = MapsCase { parameters, data, leading: vec![[600, 300, 150][at % 3]], ..MapsCase::default() };
        let (window, offsets) = ([[5, 5], [9, 7], [21, 21]][at % 3], (at % 2 == 1).then_some(0.5));
        let case = MapsCase { window, offsets, grid: Grid::Centre(CENTRES[at % CENTRES.len()]), ..case };
        check::<f32>(&case);
        check::<f64>(&case);
    }
}

/// And the same bits as in standard layout.
#[test]
fn every_pattern_of_strides() {
    let mut patterns: Vec<Strides> = (0..24).map(|order| Strides { order, ..Strides::default() }).collect();
    patterns.extend((1..16).map(|reversed| Strides { reversed, ..Strides::default() }));
    patterns.extend((1..16).map(|halved| Strides { halved, ..Strides::default() }));
    patterns.extend((0..16).map(|at| Strides { order: at, reversed: at as u8, halved: 15 - at as u8, broadcast: 0 }));
    levels::each(|level| {
        for (at, strides) in patterns.iter().copied().enumerate() {
            let standard = MapsLayout::default();
            for layout in [
                MapsLayout { shapes: strides, ..standard },
                MapsLayout { offsets: strides, ..standard },
                MapsLayout { maps: strides, ..standard },
                MapsLayout { grad_maps: Strides { broadcast: at as u8 % 16, ..strides }, ..standard },
                MapsLayout { grad_shapes: strides, ..standard },
                MapsLayout { grad_offsets: strides, ..standard },
                MapsLayout {
                    shapes: strides,
                    offsets: strides,
                    maps: strides,
                    grad_maps: strides,
                    grad_shapes: strides,
                    grad_offsets: strides,
                },
            ] {
                let case = MapsCase { layout, leading: vec![3, 5], window: [4, 6], ..MapsCase::default() };
                let case = MapsCase { double: at % 2 == 1, offsets: Some(0.5), ..case };
                MapsCase { parameters: PARAMETERS[at % 5], ..case }.check(level);
            }
        }
    });
}

/// One kernel for all pixels, and one gradient, by strides of 0: the same bits as copies of them.
#[test]
fn broadcast_inputs_are_their_copies() {
    fn check<T: Referred>(level: Level) {
        let mut random = Random::new(5);
        let mut draw = |shape: &[usize]| ArrayD::from_shape_simple_fn(shape, || number::<T>(random.normal()));
        let (shape, offset, grad) = (draw(&[2, 2]), draw(&[2]), draw(&[9, 4]));
        let maps = KernelMaps::<T>::rectangular([9, 4], Centre::Middle).unwrap().with_level(level).unwrap();
        let shapes = shape.broadcast(IxDyn(&[3, 5, 2, 2])).unwrap();
        let offsets = offset.broadcast(IxDyn(&[3, 5, 2])).unwrap();
        let grads = grad.broadcast(IxDyn(&[3, 5, 9, 4])).unwrap();
        let [owned_shapes, owned_offsets, owned_grads] = [&shapes, &offsets, &grads].map(ndarray::ArrayBase::to_owned);
        let of = |y: ArrayD<T>| y.mapv(Value::to_bits);
        assert_eq!(
            of(maps.forward_at(shapes.view(), offsets.view()).unwrap()),
            of(maps.forward_at(owned_shapes.view(), owned_offsets.view()).unwrap())
        );
        let found = maps.adjoint_at(grads.view(), shapes, offsets).unwrap();
        let copies = maps.adjoint_at(owned_grads.view(), owned_shapes.view(), owned_offsets.view()).unwrap();
        assert_eq!(of(found.grad_shapes), of(copies.grad_shapes));
        assert_eq!(of(found.grad_offsets), of(copies.grad_offsets));
    }
    levels::each(|level| {
        check::<f32>(level);
        check::<f64>(level);
    });
}

/// What training code computes with, entry by entry in f64: within the bound of f32 where it does not underflow.
#[test]
fn the_form_of_the_seed() {
    levels::each(|level| {
        for (k, scale) in [(21, 1.0), (21, 0.3), (5, 0.1), (16, 0.02)] {
            let mut random = Random::new(k as u64);
            let shapes = ArrayD::<f32>::from_shape_simple_fn(&[2, 9, 2, 2][..], || (scale * random.normal()) as f32);
            // What meshgrid of 0..k by 'ij' gives: the first is x.
            let z = Array3::from_shape_fn([k, k, 2], |(y, x, axis)| [x, y][axis] as f32);
            let corner = KernelMaps::new(k, Centre::Corner).unwrap().with_level(level).unwrap();
            let given = KernelMaps::with_grid(z.view()).unwrap().with_level(level).unwrap();
            assert_eq!(corner.grid(), z);
            let maps = corner.forward(shapes.view()).unwrap();
            assert_eq!(maps.shape(), [2, 9, k, k]);
            assert_eq!(given.forward(shapes.view()).unwrap(), maps);
            let numbers: Vec<f64> = shapes.iter().map(|&m| m.into()).collect();
            let found: Vec<f32> = maps.iter().copied().collect();
            for (m, found) in numbers.chunks_exact(4).zip(found.chunks_exact(k * k)) {
                let expected = seed([[m[0], m[1]], [m[2], m[3]]], k);
                for (at, (&p, &found)) in expected.iter().zip(found).enumerate() {
                    let z = [(at % k) as f64, (at / k) as f64];
                    let rows = [m[0] * z[0], m[1] * z[1], m[2] * z[0], m[3] * z[1]].map(f64::abs);
                    let size = (rows[0] + rows[1]).powi(2) + (rows[2] + rows[3]).powi(2);
                    // The mean of the form is at most 20 in these windows where it counts.
                    let error = p * f64::from(f32::EPSILON) / 2.0 * (32.0 + 4.0 * (size + 40.0));
                    let tiny = f64::from(f32::MIN_POSITIVE);
                    let near = (f64::from(found) - p).abs() <= error;
                    assert!(near || p < 1.01 * tiny && found == 0.0, "entry {at} of {m:?} is {found:e}, not {p:e}");
                }
            }
        }
    });
}

#[test]
fn a_gradient_is_linear_in_those_of_entries_exactly_for_powers_of_two() {
    levels::each(|level| {
        for (parameters, data) in PARAMETERS.into_iter().flat_map(|p| [(p, Data::Centred), (p, Data::Ridge)]) {
            let case = MapsCase { parameters, data, window: [7, 9], ..MapsCase::default() };
            let scene = case.scene::<f32>();
            let (maps, shapes) = (case.operator(&scene.z, level), scene.shapes.view());
            let grads = scene.grad_maps.view().to_owned();
            let once = maps.adjoint(grads.view(), shapes.view()).unwrap();
            let scaled = |by: f32| maps.adjoint((&grads * by).view(), shapes.view()).unwrap();
            assert!(once.iter().any(|g| *g != 0.0));
            assert_eq!(scaled(4.0), &once * 4.0);
            assert_eq!(scaled(-0.5), &once * -0.5);
            assert_eq!(scaled(0.0), &once * 0.0);
        }
    });
}

/// `gradient` is what central differences of `loss` give at `x`.
#[track_caller]
fn assert_differences<D: Dimension>(
    what: &str,
    x: &Array<f64, D>,
    gradient: &Array<f64, D>,
    loss: impl Fn(&Array<f64, D>) -> f64,
) {
    const STEP: f64 = 1e-5;
    assert_eq!(x.shape(), gradient.shape());
    for (at, &found) in gradient.iter().enumerate() {
        let moved = |step: f64| {
            let mut x = x.clone();
            *x.iter_mut().nth(at).unwrap() += step;
            loss(&x)
        };
        let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
        // Third derivatives times the square of the step, and rounding over the step.
        let error = 1e-7 * (1.0 + expected.abs());
        assert!((found - expected).abs() <= error, "{what}: element {at} is {found}, not {expected}");
    }
}

#[test]
fn gradients_by_finite_differences() {
    levels::each(|level| {
        for (at, parameters) in PARAMETERS.into_iter().enumerate() {
            for (window, grid) in
                [([5, 7], Grid::Centre(Centre::Middle)), ([4, 3], Grid::Centre(Centre::Corner)), ([3, 5], Grid::Given)]
            {
                let case =
                    MapsCase { parameters, window, grid, double: true, offsets: Some(0.3), ..MapsCase::default() };
                let case = MapsCase { seed: at as u64, ..case };
                let scene = case.scene::<f64>();
                let maps = case.operator(&scene.z, level);
                let mut random = Random::new(9);
                let mut moderate = || {
                    // Of standard deviations of 0.9 to 2.
                    let (a, b, turn) =
                        (0.5 + 0.7 * random.uniform(), 0.5 + 0.7 * random.uniform(), 3.0 * random.normal());
                    let (s, c) = turn.sin_cos();
                    let symmetric =
                        |a: f64, b: f64| vec![c * c * a + s * s * b, c * s * (a - b), s * s * a + c * c * b];
                    match parameters {
                        Parameters::Factor => (0..4).map(|_| 0.6 * random.normal()).collect(),
                        Parameters::Precision => symmetric(a * a, b * b),
                        Parameters::Sigmas => vec![1.0 / a, 1.0 / b, turn],
                        Parameters::Variances => vec![1.0 / (a * a), 1.0 / (b * b), turn],
                        _ => symmetric(1.0 / (a * a), 1.0 / (b * b)),
                    }
                };
                let numbers: Vec<f64> = (0..6).flat_map(|_| moderate()).collect();
                let shapes = ArrayD::from_shape_vec(scene.shapes.view().raw_dim(), numbers).unwrap();
                let offsets = scene.offsets.as_ref().unwrap().view().to_owned();
                let grads = scene.grad_maps.view().to_owned();
                let dot = |maps: ArrayD<f64>| (maps * &grads).sum();

                let what = format!("{parameters:?} on {window:?}");
                let found = maps.adjoint(grads.view(), shapes.view()).unwrap();
                assert_differences(&what, &shapes, &found, |shapes| dot(maps.forward(shapes.view()).unwrap()));
                let found = maps.adjoint_at(grads.view(), shapes.view(), offsets.view()).unwrap();
                let loss = |shapes: &ArrayD<f64>, offsets: &ArrayD<f64>| {
                    dot(maps.forward_at(shapes.view(), offsets.view()).unwrap())
                };
                assert_differences(&what, &shapes, &found.grad_shapes, |shapes| loss(shapes, &offsets));
                assert_differences(&what, &offsets, &found.grad_offsets, |offsets| loss(&shapes, offsets));
            }
        }
    });
}

/// The references themselves.
#[test]
fn numbers_of_twice_the_precision() {
    let close = |found: Dd, hi: f64, lo: f64| {
        let off = (found - Dd { hi, lo }).to_f64().abs();
        assert!(off <= 1e-30 * hi.abs(), "{found:?}, not {hi:e} {lo:e}");
    };
    let wide = Dd::from_f64;
    // To 32 digits.
    close(wide(1.0).exp(), std::f64::consts::E, 1.4456468917292502e-16);
    close(wide(-1.0).exp(), 0.36787944117144233, -1.2428753672788363e-17);
    close(wide(1.0).sin_cos()[0], 0.8414709848078965, 1.776845092935536e-18);
    close(wide(1.0).sin_cos()[1], 0.5403023058681398, -4.760954612604417e-17);
    close(wide(1.0) / wide(3.0), 1.0 / 3.0, 1.850371707708594e-17);
    for (at, x) in [-600.0, -37.5, -1e-3, 1e-9, 0.1, 3.0, 12.5].into_iter().enumerate() {
        let one = wide(x).exp() * wide(-x).exp();
        close(one, 1.0, 0.0);
        assert!((wide(x).exp().to_f64() / x.exp() - 1.0).abs() < 1e-15);
        let [sin, cos] = wide(x.max(-40.0)).sin_cos();
        close(sin * sin + cos * cos, 1.0, 0.0);
        assert!((sin.to_f64() - x.max(-40.0).sin()).abs() < 1e-15, "{at}");
    }
}

/// The reference agrees with the form of training code, which is no part of it.
#[test]
fn references_agree() {
    let m = [0.3, -0.2, 0.1, 0.4];
    let z = Array3::from_shape_fn([9, 9, 2], |(y, x, axis)| [x, y][axis] as f64);
    let window = crate::common::gaussian::Window::of(Parameters::Factor, &z);
    let map = window.map(&m, None);
    for (found, expected) in map.entries.iter().zip(seed([[m[0], m[1]], [m[2], m[3]]], 9)) {
        assert!((found.to_f64() / expected - 1.0).abs() < 1e-13);
    }
    let constant = window.gradient(&map, &as_given(&[2.5; 81]));
    assert!(constant.shape.iter().all(|g| g.value.to_f64() == 0.0));
}
