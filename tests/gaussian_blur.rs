//! Blurs with a kernel a pixel and their transposes near plain loops in twice the precision, whatever the borders, the strides,
//! the kernels and the layout; exact cases; differences; refusals.

mod common;

use common::blur_case::{BORDERS, BlurCase, BlurLayout};
use common::blurring::source;
use common::levels;
use common::maps_case::{Data, PARAMETERS, number};
use common::maps_strategy::{CENTRES, strides};
use common::problems::check_random;
use common::refusals::{refused, shape_error, untouched, wrong};
use common::strides::Strides;
use common::threads;
use common::values::{Value, Values};
use common::wide::{Referred, Wide};
use ndarray::{Array1, Array4, ArrayD, ArrayView4, Axis, Dimension, IxDyn, array, s};
use proptest::prelude::*;
use proptest::sample::select;
use pullback::gaussian::{Blur, Border, Centre, Layout, Parameters, Scatter};
use pullback::{Error, Level, Result};

fn blurs() -> impl Strategy<Value = BlurCase> {
    let image = [0usize..3, 0usize..12, 0usize..20, 0usize..6];
    let side = || prop_oneof![1usize..8, select(vec![9, 16, 17])];
    let numbers = (select(CENTRES.to_vec()), select(PARAMETERS.to_vec()), select(Data::ALL.to_vec()));
    let placement = (image, [side(), side()], select(BORDERS.to_vec()), 1usize..5);
    let layouts = [strides(true), strides(false), strides(true), strides(false), strides(false)];
    let rest = (any::<bool>(), any::<bool>(), select(threads::COUNTS.to_vec()), any::<u64>());
    (placement, numbers, layouts, rest).prop_map(|(placement, numbers, layouts, rest)| {
        let ((image, window, border, stride), (centre, parameters, data)) = (placement, numbers);
        let ([image_strides, shapes, grad, first, second], (channels_first, double, threads, seed)) = (layouts, rest);
        let layout = BlurLayout { image: image_strides, shapes, grad, first, second };
        let case = BlurCase { image, window, centre, border, stride, parameters, data, ..BlurCase::default() };
        BlurCase { channels_first, double, layout, threads, seed, ..case }
    })
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(250, &blurs(), |case| case.check(level)));
}

/// Windows that reach beyond the image on all sides, and once more.
#[test]
fn every_border() {
    levels::each(|level| {
        for (at, (border, stride)) in BORDERS.into_iter().flat_map(|b| (1..=4).map(move |s| (b, s))).enumerate() {
            for (round, [height, width]) in [[1, 1], [1, 4], [3, 2], [2, 7], [5, 5]].into_iter().enumerate() {
                let case = BlurCase { border, stride, image: [2, height, width, 2], ..BlurCase::default() };
                let case = BlurCase { data: Data::Wide, channels_first: (at + round) % 2 == 1, ..case };
                BlurCase { window: [9, 13], ..case.clone() }.check(level);
                BlurCase { window: [4, 11], double: true, centre: Centre::Half, ..case }.check(level);
            }
        }
    });
}

#[test]
fn every_size() {
    levels::each(|level| {
        let around = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65];
        for (at, (n, channels)) in around.into_iter().flat_map(|n| [0, 1, 3, 4].map(|c| (n, c))).enumerate() {
            let (double, channels_first) = (at % 2 == 1, at % 3 == 1);
            let case = BlurCase { double, channels_first, border: BORDERS[at % 6], ..BlurCase::default() };
            let case = BlurCase { window: [3, 3], data: Data::ALL[at % 6], stride: 1 + at % 5 / 4, ..case };
            BlurCase { image: [1, 4, n, channels], ..case.clone() }.check(level);
            BlurCase { image: [1, n, 3, channels], ..case.clone() }.check(level);
            BlurCase { image: [n % 4, 2, 3, n], ..case }.check(level);
        }
        for (at, k) in [1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 21, 25].into_iter().enumerate() {
            let case = BlurCase { image: [1, 6, 9, 3], window: [k, k], double: at % 2 == 1, ..BlurCase::default() };
            BlurCase { data: Data::Wide, channels_first: at % 3 == 1, ..case.clone() }.check(level);
            BlurCase { window: [3, k], parameters: PARAMETERS[at % 5], centre: CENTRES[at % 8], ..case }.check(level);
        }
    });
}

#[test]
fn every_kind_of_kernel() {
    levels::each(|level| {
        for (at, (parameters, data)) in PARAMETERS.into_iter().flat_map(|p| Data::ALL.map(|d| (p, d))).enumerate() {
            for (round, window) in [[5, 5], [9, 9], [8, 3]].into_iter().enumerate() {
                let centre = CENTRES[(at + 3 * round) % CENTRES.len()];
                let case = BlurCase { parameters, data, window, centre, seed: at as u64, ..BlurCase::default() };
                BlurCase { double: (at + round) % 2 == 1, border: BORDERS[at % 6], ..case }.check(level);
            }
        }
    });
}

#[test]
fn every_pattern_of_strides() {
    let mut patterns: Vec<Strides> = (0..24).map(|order| Strides { order, ..Strides::default() }).collect();
    patterns.extend((1..16).map(|reversed| Strides { reversed, ..Strides::default() }));
    patterns.extend((1..16).map(|halved| Strides { halved, ..Strides::default() }));
    levels::each(|level| {
        for (at, strides) in patterns.iter().copied().enumerate() {
            let broadcast = Strides { broadcast: at as u8 % 16, ..strides };
            let standard = BlurLayout::default();
            for layout in [
                BlurLayout { image: broadcast, ..standard },
                BlurLayout { shapes: strides, ..standard },
                BlurLayout { grad: broadcast, ..standard },
                BlurLayout { first: strides, second: strides, ..standard },
            ] {
                let case = BlurCase { layout, image: [2, 3, 4, 3], window: [3, 3], ..BlurCase::default() };
                let (double, channels_first) = (at % 2 == 1, at % 3 == 1);
                BlurCase { double, channels_first, parameters: PARAMETERS[at % 5], ..case }.check(level);
            }
        }
    });
}

/// All that is promised where arithmetic is fused.
#[test]
fn the_same_bits_for_every_number_of_threads_and_at_both_upper_levels() {
    fn check<T: Referred>(case: &BlurCase) {
        let scene = case.scene::<T>();
        let mut at_level: Vec<(Level, Vec<u64>)> = vec![];
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let bits = threads::COUNTS.map(|count| {
                let results = threads::with(count, || case.results(&scene, level));
                results.into_iter().map(Value::to_bits).collect::<Vec<_>>()
            });
            assert!(bits.iter().all(|other| *other == bits[0]), "threads at {level}: {case:?}");
            at_level.push((level, bits.into_iter().next().unwrap()));
        }
        let of = |level| at_level.iter().find(|(other, _)| *other == level).map(|(_, bits)| bits);
        if let (Some(v3), Some(v4)) = (of(Level::V3), of(Level::V4)) {
            assert!(v3 == v4, "V3 and V4 differ: {case:?}");
        }
    }
    levels::each(|_| {});
    for (at, border) in BORDERS.into_iter().enumerate() {
        for (channels_first, data) in [(false, Data::Centred), (true, Data::Wide), (false, Data::Mixed)] {
            let case = BlurCase { border, data, channels_first, image: [2, 24, 40, 3], ..BlurCase::default() };
            let case = BlurCase { window: [[5, 5], [9, 8], [15, 15]][at % 3], stride: 1 + at % 2, ..case };
            check::<f32>(&case);
            check::<f64>(&case);
        }
    }
}

/// `<blur(x), y> == <x, transpose(y)>`, to the bounds of both.
#[test]
fn blurs_and_scatters_are_transposes() {
    fn dot<T: Referred>(a: ArrayView4<'_, T>, b: ArrayView4<'_, T>) -> T::Wide {
        assert_eq!(a.dim(), b.dim());
        a.iter().zip(b).fold(T::Wide::zero(), |sum, (a, b)| sum + a.wide() * b.wide())
    }
    fn check<T: Referred>(level: Level, case: &BlurCase) {
        let scene = case.scene::<T>();
        let (image, x, shapes) = (scene.image.view(), scene.outputs.view(), scene.shapes.view());
        let (_, kernels) = case.kernels(&shapes.to_owned());
        let (blur, scatter) = (case.blur::<T>(level), case.scatter::<T>(level));
        let y = blur.forward(image, shapes.view()).unwrap();
        let spread = scatter.forward(x, shapes.view(), case.placement().size).unwrap();
        let of_blur = blur.adjoint(x, image, shapes.view()).unwrap().grad_image;
        let alone = blur.adjoint_image(x, shapes.view(), case.placement().size).unwrap();
        let of_scatter = scatter.adjoint(image, x, shapes.view()).unwrap().grad_image;
        let weigh = |errors: &Array4<common::gaussian::Bounded<T::Wide>>, by: ArrayView4<'_, T>| -> f64 {
            errors.iter().zip(by).map(|(bounded, by)| bounded.error * by.wide().to_f64().abs()).sum()
        };
        let [of_image, of_x] = [image, x].map(|array| case.standard(array));
        let tolerance = weigh(&kernels.blur(of_image), of_x) + weigh(&kernels.spread(of_x, None), of_image);
        let expected = dot(y.view(), x);
        let size = y.iter().zip(x).map(|(a, b)| (a.wide() * b.wide()).to_f64().abs()).sum::<f64>();
        assert!(size > 0.0 && tolerance < 1e-3 * size, "{tolerance} of {size} says nothing: {case:?}");
        for (name, transpose) in [("adjoint", &of_blur), ("adjoint_image", &alone), ("scatter", &spread)] {
            let off = (dot(transpose.view(), image) - expected).to_f64().abs();
            assert!(off <= tolerance, "{name} is off by {off}, more than {tolerance}: {case:?}");
        }
        let off = (dot(of_scatter.view(), x) - expected).to_f64().abs();
        assert!(off <= tolerance, "adjoint of scatter is off by {off}, more than {tolerance}: {case:?}");
    }
    levels::each(|level| {
        for (at, border) in BORDERS.into_iter().filter(|b| *b != Border::Constant(-2.5)).enumerate() {
            for (stride, data) in (1..=4).flat_map(|s| [(s, Data::Centred), (s, Data::Wide), (s, Data::Ridge)]) {
                let case = BlurCase { border, stride, data, image: [2, 9, 13, 3], ..BlurCase::default() };
                let case = BlurCase { window: [[7, 7], [4, 5], [21, 3]][at % 3], channels_first: at % 2 == 0, ..case };
                check::<f32>(level, &case);
                check::<f64>(level, &case);
            }
        }
    });
}

/// Kernels that are one sample: an image of whole numbers is moved, and all is exact.
#[test]
fn single_samples_move_an_image_exactly() {
    fn check<T: Referred>(level: Level, border: Border, stride: usize, [jy, jx]: [usize; 2]) {
        let (window, size) = ([3, 9], [4usize, 3usize]);
        let outputs = size.map(|n| n.div_ceil(stride));
        let image = Values::Integers.array::<T, _>([2, size[0], size[1], 2], 1);
        let grad_y = Values::Integers.array::<T, _>([2, outputs[0], outputs[1], 2], 2);
        let sharp = |at: usize| if at % 3 == 0 { number::<T>(1e4) } else { T::zero() };
        let shapes = ArrayD::from_shape_fn(&[2, outputs[0], outputs[1], 2, 2][..], |at| sharp(2 * at[3] + at[4]));
        let centre = Centre::At(jx as f64, jy as f64);
        let blur = Blur::<T>::rectangular(window, centre, border, stride).unwrap().with_level(level).unwrap();
        let scatter = Scatter::<T>::rectangular(window, centre, border, stride).unwrap().with_level(level).unwrap();
        let constant = if let Border::Constant(value) = border { number(value) } else { T::zero() };
        let from = |[u, v]: [usize; 2]| {
            let at = |u: usize, j: usize, k: usize, n: usize| {
                source(border, (stride * u + j) as isize - (k / 2) as isize, n)
            };
            Some([at(u, jy, 3, size[0])?, at(v, jx, 9, size[1])?])
        };
        let mut expected = Array4::from_elem(grad_y.raw_dim(), constant);
        let mut spread = Array4::<T>::zeros(image.raw_dim());
        let mut collected = Array4::<T>::zeros(grad_y.raw_dim());
        for ((b, u, v, c), &g) in grad_y.indexed_iter() {
            if let Some([y, x]) = from([u, v]) {
                expected[[b, u, v, c]] = image[[b, y, x, c]];
                collected[[b, u, v, c]] = image[[b, y, x, c]];
                spread[[b, y, x, c]] = spread[[b, y, x, c]] + g;
            }
        }
        assert_eq!(blur.forward(image.view(), shapes.view()).unwrap(), expected, "{border:?}, {stride}, {jy}, {jx}");
        let found = blur.adjoint(grad_y.view(), image.view(), shapes.view()).unwrap();
        assert_eq!(found.grad_image, spread, "{border:?}, {stride}, {jy}, {jx}");
        assert!(found.grad_shapes.iter().all(|g| *g == T::zero()));
        assert_eq!(blur.adjoint_image(grad_y.view(), shapes.view(), size).unwrap(), spread);
        assert_eq!(scatter.forward(grad_y.view(), shapes.view(), size).unwrap(), spread);
        let found = scatter.adjoint(image.view(), grad_y.view(), shapes.view()).unwrap();
        assert_eq!(found.grad_image, collected);
    }
    levels::each(|level| {
        for border in BORDERS {
            for (stride, j) in (1..=4).flat_map(|s| (0..27).map(move |j| (s, [j / 9, j % 9]))) {
                check::<f32>(level, border, stride, j);
                check::<f64>(level, border, stride, j);
            }
        }
    });
}

/// `numpy.pad([1, 2, 3], 4, mode)`, of which the references know no more than single folds.
#[test]
fn borders_are_those_of_numpy() {
    let image = [1.0, 2.0, 3.0];
    for (border, expected) in [
        (Border::Reflect, [1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0, 2.0, 1.0, 2.0, 3.0]),
        (Border::Symmetric, [3.0, 3.0, 2.0, 1.0, 1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 1.0]),
        (Border::Edge, [1.0, 1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 3.0, 3.0]),
        (Border::Wrap, [3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 1.0]),
        (Border::Constant(7.0), [7.0, 7.0, 7.0, 7.0, 1.0, 2.0, 3.0, 7.0, 7.0, 7.0, 7.0]),
    ] {
        let padded: Vec<f64> = (-4..7).map(|at| source(border, at, 3).map_or(7.0, |at| image[at])).collect();
        assert_eq!(padded, expected, "{border:?}");
        levels::each(|level| {
            // The sample at the left end of nine for the first pixels, at the right end for the last ones.
            for (j, from) in [(0, 0), (8, 8), (4, 4), (1, 1)] {
                let blur = Blur::rectangular([1, 9], Centre::At(f64::from(j), 0.0), border, 1).unwrap();
                let blur = blur.with_level(level).unwrap();
                let x = Array4::from_shape_vec([1, 1, 3, 1], image.to_vec()).unwrap();
                let shapes = ArrayD::from_shape_fn(&[1, 1, 3, 2, 2][..], |at| if at[3] == at[4] { 1e4 } else { 0.0 });
                let y = blur.forward(x.view(), shapes.view()).unwrap();
                assert_eq!(y.into_raw_vec_and_offset().0, expected[from..from + 3], "{border:?}, sample {j}");
            }
        });
    }
    // An axis of one sample repeats it.
    for border in [Border::Reflect, Border::Symmetric, Border::Edge, Border::Wrap] {
        assert!((-9..9).all(|at| source(border, at, 1) == Some(0)), "{border:?}");
    }
}

fn diagonal<T: Referred>(pixels: &[usize], x: f64, y: f64) -> ArrayD<T> {
    ArrayD::from_shape_fn([pixels, &[2, 2]].concat(), |at| {
        let n = at.ndim();
        number([[x, 0.0], [0.0, y]][at[n - 2]][at[n - 1]])
    })
}

/// A ramp at every `sf`-th pixel under a kernel in the middle of what an enlarged image has there.
#[test]
fn a_ramp_under_a_shifted_kernel() {
    fn check<T: Referred>(level: Level, k: usize, sf: usize, sigma: f64, error: f64) {
        let (n, far) = (96, k.div_ceil(2) + sf);
        let blur = Blur::<T>::rectangular([1, k], Centre::ShiftCorrelation(sf), Border::Reflect, sf).unwrap();
        let blur = blur.with_level(level).unwrap().with_parameters(Parameters::Sigmas);
        let ramp = Array1::from_shape_fn(n, |x| number::<T>(x as f64)).into_shape_with_order([1, 1, n, 1]).unwrap();
        let outputs = n.div_ceil(sf);
        let shapes = ArrayD::from_shape_fn(&[1, 1, outputs, 3][..], |at| number([sigma, sigma, 0.0][at[3]]));
        let y = blur.forward(ramp.view(), shapes.view()).unwrap();
        assert_eq!(y.dim(), (1, 1, outputs, 1));
        let mut checked = 0;
        for (j, y) in y.iter().enumerate().filter(|(j, _)| (far..n - far).contains(&(sf * j))) {
            let expected = (sf * j) as f64 + (sf as f64 - 1.0) / 2.0;
            let found = y.to_f64().unwrap();
            let rounding = if T::unit() > 1e-10 { 1e-5 * expected } else { 0.0 };
            assert!((found - expected).abs() <= error + rounding, "k {k}, sf {sf}: {found}, not {expected}");
            checked += 1;
        }
        assert!(checked > 5);
    }
    levels::each(|level| {
        for (k, sf) in [15, 21, 25].into_iter().flat_map(|k| [1, 2, 3, 4].map(|sf| (k, sf))) {
            check::<f64>(level, k, sf, 0.6, 1e-9);
            check::<f32>(level, k, sf, 0.6, 1e-6);
        }
        // Half a pixel for two, of an even window too.
        check::<f64>(level, 8, 2, 0.5, 1e-6);
        check::<f32>(level, 8, 2, 0.5, 1e-6);
    });
}

/// In each batch and channel its own: sharp kernels in one batch, means of four in the other.
#[test]
fn every_channel_has_the_kernels_of_its_batch() {
    fn check<T: Referred>(level: Level, channels_first: bool) {
        let image = Values::Integers.array::<T, _>([2, 5, 6, 3], 4).mapv(|x| x * number(4.0));
        let mut shapes = diagonal::<T>(&[2, 5, 6], 1e4, 1e4);
        shapes.index_axis_mut(Axis(0), 1).fill(T::zero());
        let mut expected = image.clone();
        for (y, x, c) in (0usize..5).flat_map(|y| (0usize..6).flat_map(move |x| (0..3).map(move |c| (y, x, c)))) {
            let at = |y: usize, x: usize| image[[1, y, x, c]];
            let (above, left) = (y.saturating_sub(1), x.saturating_sub(1));
            expected[[1, y, x, c]] = (at(above, left) + at(above, x) + at(y, left) + at(y, x)) / number(4.0);
        }
        let blur = Blur::<T>::new(2, Centre::Half, Border::Edge, 1).unwrap().with_level(level).unwrap();
        let (image, expected, layout) = match channels_first {
            false => (image, expected, Layout::ChannelsLast),
            true => (image.permuted_axes([0, 3, 1, 2]), expected.permuted_axes([0, 3, 1, 2]), Layout::ChannelsFirst),
        };
        assert_eq!(blur.with_layout(layout).forward(image.view(), shapes.view()).unwrap(), expected);
    }
    levels::each(|level| {
        for channels_first in [false, true] {
            check::<f32>(level, channels_first);
            check::<f64>(level, channels_first);
        }
    });
}

/// A constant image stays one, and tells nothing of the kernels.
#[test]
fn a_constant_image() {
    levels::each(|level| {
        for (at, data) in Data::ALL.into_iter().enumerate() {
            for border in [Border::Reflect, Border::Symmetric, Border::Edge, Border::Wrap, Border::Constant(2.5)] {
                let case =
                    BlurCase { data, border, window: [7, 9], parameters: PARAMETERS[at % 5], ..BlurCase::default() };
                let scene = case.scene::<f32>();
                let (blur, shapes) = (case.blur::<f32>(level), scene.shapes.view());
                let image = Array4::from_elem(scene.image.view().raw_dim(), 2.5f32);
                let y = blur.forward(image.view(), shapes.view()).unwrap();
                assert!(y.iter().all(|y| (y / 2.5 - 1.0).abs() <= 1e-5), "{case:?}: {y:?}");
                let found = blur.adjoint(scene.outputs.view(), image.view(), shapes.view()).unwrap();
                assert!(found.grad_shapes.iter().all(|g| *g == 0.0), "{case:?}: {:?}", found.grad_shapes);
            }
        }
    });
}

/// Not refused: it is in the windows that hold it, and in no other.
#[test]
fn an_image_that_is_not_finite() {
    levels::each(|level| {
        for (bad, channels_first) in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY].into_iter().zip([false, true, false])
        {
            let case = BlurCase { image: [1, 20, 21, 2], data: Data::Wide, channels_first, ..BlurCase::default() };
            let scene = case.scene::<f32>();
            let (blur, shapes) = (case.blur::<f32>(level), scene.shapes.view());
            let mut image = scene.image.view().to_owned();
            let at = if channels_first { [0, 1, 9, 10] } else { [0, 9, 10, 1] };
            let plain = blur.forward(image.view(), shapes.view()).unwrap();
            image[at] = bad;
            let y = blur.forward(image.view(), shapes.view()).unwrap();
            for (((_, v, u, c), &y), &plain) in case.standard(y.view()).indexed_iter().zip(&case.standard(plain.view()))
            {
                let holds = c == 1 && v.abs_diff(9) <= 2 && u.abs_diff(10) <= 2;
                assert_eq!(y.is_finite(), !holds, "pixel {v}, {u}, {c}: {y}");
                assert!(holds || y.to_bits() == plain.to_bits(), "pixel {v}, {u}, {c}: {y}, not {plain}");
            }
            // Nor are gradients that are not.
            let mut grad_y = Array4::<f32>::zeros(image.raw_dim());
            grad_y[at] = bad;
            let spread = blur.adjoint_image(grad_y.view(), shapes.view(), [20, 21]).unwrap();
            for ((_, v, u, c), &x) in case.standard(spread.view()).indexed_iter() {
                let holds = c == 1 && v.abs_diff(9) <= 2 && u.abs_diff(10) <= 2;
                assert_eq!(x.is_finite(), !holds, "pixel {v}, {u}, {c}: {x}");
            }
        }
    });
}

/// Every gradient is the central difference of a product with the result.
#[test]
fn gradients_by_finite_differences() {
    #[track_caller]
    fn check<D: Dimension>(
        what: &str,
        x: &ndarray::Array<f64, D>,
        gradient: &ndarray::Array<f64, D>,
        loss: impl Fn(&ndarray::Array<f64, D>) -> f64,
    ) {
        const STEP: f64 = 1e-5;
        assert_eq!(x.shape(), gradient.shape());
        for (at, &found) in gradient.iter().enumerate().step_by(3) {
            let moved = |step: f64| {
                let mut x = x.clone();
                *x.iter_mut().nth(at).unwrap() += step;
                loss(&x)
            };
            let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            let error = 1e-7 * (1.0 + expected.abs());
            assert!((found - expected).abs() <= error, "{what}: element {at} is {found}, not {expected}");
        }
    }
    fn dot(a: Array4<f64>, b: ArrayView4<'_, f64>) -> f64 {
        assert_eq!(a.shape(), b.shape());
        (a * b).sum()
    }
    levels::each(|level| {
        for (at, border) in BORDERS.into_iter().enumerate() {
            let parameters = [Parameters::Factor, Parameters::Sigmas, Parameters::Variances][at % 3];
            let case = BlurCase { border, parameters, image: [2, 4, 5, 2], stride: 1 + at % 2, ..BlurCase::default() };
            let case = BlurCase { channels_first: at % 2 == 0, window: [4, 5], ..case };
            let scene = case.scene::<f64>();
            let (image, grad_y) = (scene.image.view().to_owned(), scene.outputs.view().to_owned());
            let (shapes, size) = (scene.shapes.view().to_owned(), case.placement().size);
            let (blur, scatter) = (case.blur::<f64>(level), case.scatter::<f64>(level));
            let what = format!("{case:?}");
            let found = blur.adjoint(grad_y.view(), image.view(), shapes.view()).unwrap();
            let y = |image: &Array4<f64>, shapes: &ArrayD<f64>| blur.forward(image.view(), shapes.view()).unwrap();
            check(&what, &image, &found.grad_image, |image| dot(y(image, &shapes), grad_y.view()));
            check(&what, &shapes, &found.grad_shapes, |shapes| dot(y(&image, shapes), grad_y.view()));
            // What is scattered lies as the outputs of a blur do.
            let found = scatter.adjoint(image.view(), grad_y.view(), shapes.view()).unwrap();
            let y = |x: &Array4<f64>, shapes: &ArrayD<f64>| scatter.forward(x.view(), shapes.view(), size).unwrap();
            check(&what, &grad_y, &found.grad_image, |x| dot(y(x, &shapes), image.view()));
            check(&what, &shapes, &found.grad_shapes, |shapes| dot(y(&grad_y, shapes), image.view()));
        }
    });
}

#[track_caller]
fn assert_parameter<O>(made: Result<O>, value: &str) {
    match made.err() {
        Some(Error::Parameter { value: found, .. }) => {
            assert!(found.contains(value), "{found:?} does not say {value:?}");
        }
        other => panic!("{other:?} is no refusal of a parameter"),
    }
}

#[test]
fn numbers_that_are_refused() {
    assert_parameter(Blur::<f32>::new(0, Centre::Middle, Border::Edge, 1), "0");
    assert_parameter(Blur::<f32>::rectangular([3, 0], Centre::Middle, Border::Edge, 1), "0");
    assert_parameter(Blur::<f64>::new(3, Centre::Middle, Border::Edge, 0), "0");
    assert_parameter(Blur::<f64>::new(3, Centre::ShiftConvolution(0), Border::Edge, 1), "0");
    assert_parameter(Scatter::<f32>::new(0, Centre::Middle, Border::Edge, 1), "0");
    assert_parameter(Scatter::<f64>::rectangular([0, 2], Centre::Half, Border::Wrap, 1), "0");
    assert_parameter(Scatter::<f32>::new(3, Centre::At(f64::NAN, 0.0), Border::Edge, 1), "NaN");
    assert_parameter(Scatter::<f32>::new(3, Centre::Half, Border::Edge, 0), "0");
}

/// B, H, W, C; at a stride of 2 the outputs are 3 x 2.
const IMAGE: [usize; 4] = [2, 5, 4, 3];
const OUTPUTS: [usize; 4] = [2, 3, 2, 3];
const SHAPES: [usize; 5] = [2, 3, 2, 2, 2];

fn ones<const D: usize>(shape: [usize; D]) -> ArrayD<f32> {
    ArrayD::ones(&shape[..])
}

fn image(shape: [usize; 4]) -> Array4<f32> {
    Array4::ones(shape)
}

#[test]
fn wrong_shapes() {
    let blur = Blur::<f32>::new(3, Centre::Middle, Border::Reflect, 2).unwrap();
    let scatter = Scatter::<f32>::new(3, Centre::Middle, Border::Reflect, 2).unwrap();
    let (x, grad, shapes) = (image(IMAGE), image(OUTPUTS), ones(SHAPES));
    assert_eq!(blur.forward(x.view(), shapes.view()).unwrap().dim(), (2, 3, 2, 3));
    for found in wrong(SHAPES, 5) {
        let (bad, error) = (ones(found), shape_error("shapes", found, SHAPES));
        assert_eq!(blur.forward(x.view(), bad.view()), Err(error.clone()));
        assert_eq!(blur.adjoint(grad.view(), x.view(), bad.view()).err(), Some(error.clone()));
        assert_eq!(blur.adjoint_image(grad.view(), bad.view(), [5, 4]), Err(error.clone()));
        assert_eq!(scatter.forward(grad.view(), bad.view(), [5, 4]), Err(error.clone()));
        assert_eq!(scatter.adjoint(x.view(), grad.view(), bad.view()).err(), Some(error.clone()));
        refused(error.clone(), OUTPUTS, |y| blur.forward_into(x.view(), bad.view(), y));
        refused(error, IMAGE, |y| scatter.forward_into(grad.view(), bad.view(), y));
    }
    for found in wrong(OUTPUTS, 4) {
        refused(shape_error("y", found, OUTPUTS), found, |y| blur.forward_into(x.view(), shapes.view(), y));
        let (bad, error) = (image(found), shape_error("grad_y", found, OUTPUTS));
        assert_eq!(blur.adjoint(bad.view(), x.view(), shapes.view()).err(), Some(error.clone()));
        let call = |add: bool| {
            untouched(IMAGE, |a| {
                untouched(SHAPES, |b| match add {
                    false => blur.adjoint_into(bad.view(), x.view(), shapes.view(), a, b),
                    true => blur.adjoint_add(bad.view(), x.view(), shapes.view(), a, b),
                })
            })
        };
        assert_eq!((call(false), call(true)), (Err(error.clone()), Err(error)));
    }
    for found in wrong(IMAGE, 4) {
        let error = shape_error("grad_image", found, IMAGE);
        let result =
            untouched(found, |a| untouched(SHAPES, |b| blur.adjoint_into(grad.view(), x.view(), shapes.view(), a, b)));
        assert_eq!(result, Err(error));
    }
    for found in wrong(SHAPES, 5) {
        let error = shape_error("grad_shapes", found, SHAPES);
        let result =
            untouched(IMAGE, |a| untouched(found, |b| blur.adjoint_add(grad.view(), x.view(), shapes.view(), a, b)));
        assert_eq!(result, Err(error));
    }
}

#[test]
fn kernels_that_are_refused() {
    let blur = Blur::<f32>::new(3, Centre::Middle, Border::Reflect, 2).unwrap();
    let scatter = Scatter::<f32>::new(3, Centre::Middle, Border::Reflect, 2).unwrap();
    let (x, grad) = (image(IMAGE), image(OUTPUTS));
    let mut shapes = ones(SHAPES);
    (shapes[[1, 2, 0, 1, 0]], shapes[[1, 2, 1, 0, 0]]) = (f32::NAN, f32::INFINITY);
    let error = Error::NonFinite { argument: "shapes", position: vec![1, 2, 0, 1, 0], value: "NaN".into() };
    let refuse = |found: Option<Error>| assert_eq!(found.as_ref(), Some(&error));
    refuse(blur.forward(x.view(), shapes.view()).err());
    refuse(blur.adjoint(grad.view(), x.view(), shapes.view()).err());
    refuse(blur.adjoint_image(grad.view(), shapes.view(), [5, 4]).err());
    refuse(scatter.forward(grad.view(), shapes.view(), [5, 4]).err());
    refuse(scatter.adjoint(x.view(), grad.view(), shapes.view()).err());
    refused(error.clone(), OUTPUTS, |y| blur.forward_into(x.view(), shapes.view(), y));
    refused(error.clone(), IMAGE, |y| scatter.forward_into(grad.view(), shapes.view(), y));
    for add in [false, true] {
        let result = untouched(IMAGE, |a| {
            untouched(SHAPES, |b| match add {
                false => blur.adjoint_into(grad.view(), x.view(), shapes.view(), a, b),
                true => blur.adjoint_add(grad.view(), x.view(), shapes.view(), a, b),
            })
        });
        refuse(result.err());
        let result = untouched(OUTPUTS, |a| {
            untouched(SHAPES, |b| match add {
                false => scatter.adjoint_into(x.view(), grad.view(), shapes.view(), a, b),
                true => scatter.adjoint_add(x.view(), grad.view(), shapes.view(), a, b),
            })
        });
        refuse(result.err());
    }
    let sigmas = blur.with_parameters(Parameters::Sigmas);
    let mut shapes = ones([2, 3, 2, 3]);
    shapes.slice_mut(s![1, 1.., 1, 0]).fill(-2.0);
    let error = sigmas.forward(x.view(), shapes.view()).unwrap_err();
    assert_eq!(error.to_string(), "shapes[1, 1, 1] = [-2.0, 1.0, 1.0], expected sigmas greater than 0");
}

#[test]
fn nothing_to_blur() {
    for (shape, outputs) in [
        ([0, 5, 4, 3], [0, 3, 2, 3]),
        ([2, 0, 4, 3], [2, 0, 2, 3]),
        ([2, 5, 0, 3], [2, 3, 0, 3]),
        ([2, 5, 4, 0], [2, 3, 2, 0]),
    ] {
        for border in BORDERS {
            let blur = Blur::<f32>::new(3, Centre::Middle, border, 2).unwrap();
            let scatter = Scatter::<f32>::new(3, Centre::Middle, border, 2).unwrap();
            let (x, grad, shapes) = (image(shape), image(outputs), ones([outputs[0], outputs[1], outputs[2], 2, 2]));
            assert_eq!(blur.forward(x.view(), shapes.view()).unwrap(), grad);
            let found = blur.adjoint(grad.view(), x.view(), shapes.view()).unwrap();
            assert_eq!((found.grad_image.shape(), found.grad_shapes.shape()), (x.shape(), shapes.shape()));
            assert!(found.grad_shapes.iter().all(|g| *g == 0.0));
            assert_eq!(scatter.forward(grad.view(), shapes.view(), [shape[1], shape[2]]).unwrap(), x);
            assert_eq!(scatter.adjoint(x.view(), grad.view(), shapes.view()).unwrap().grad_image, grad);
        }
    }
    let one = Blur::<f64>::new(1, Centre::Corner, Border::Reflect, 1).unwrap();
    let x = array![[[[1.5], [-2.0]]]];
    let shapes = ArrayD::from_elem(IxDyn(&[1, 1, 2, 2, 2]), 0.5);
    assert_eq!(one.forward(x.view(), shapes.view()).unwrap(), x);
    let found = one.adjoint(x.view(), x.view(), shapes.view()).unwrap();
    assert_eq!((found.grad_image, found.grad_shapes.sum()), (x, 0.0));
}
