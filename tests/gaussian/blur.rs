//! Blurs with a kernel a pixel and their transposes near plain loops in twice the precision, whatever the borders, the strides,
//! the kernels and the layout; differences.

use crate::common::blur_case::{BORDERS, BlurCase, BlurLayout};
use crate::common::levels;
use crate::common::maps_case::{Data, PARAMETERS};
use crate::common::maps_strategy::{CENTRES, strides};
use crate::common::problems::check_random;
use crate::common::strides::Strides;
use crate::common::threads;
use crate::common::values::Value;
use crate::common::wide::{Referred, Wide};
use ndarray::{Array4, ArrayD, ArrayView4, Dimension};
use proptest::prelude::*;
use proptest::sample::select;
use pullback::Level;
use pullback::gaussian::{Border, Centre, Parameters};

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
        let weigh = |errors: &Array4<crate::common::gaussian::Bounded<T::Wide>>, by: ArrayView4<'_, T>| -> f64 {
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
