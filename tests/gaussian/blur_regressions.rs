//! Blurs whose result is known: of single samples, of ramps, at borders, of channels, and of numbers that are not finite.

use crate::common::blur_case::{BORDERS, BlurCase};
use crate::common::blurring::source;
use crate::common::levels;
use crate::common::maps_case::{Data, PARAMETERS, number};
use crate::common::values::Values;
use crate::common::wide::Referred;
use ndarray::{Array1, Array4, ArrayD, Axis, Dimension};
use pullback::Level;
use pullback::gaussian::{Blur, Border, Centre, Layout, Parameters, Scatter};

/// Kernels that are one sample: an image of whole numbers is moved, and all is exact.
#[test]
fn single_samples_move_an_image_exactly() {
    fn check<T: Referred>(level: Level, border: Border, stride: usize, [jy, jx]: [usize; 2]) {
        let (window, size) = ([3, 9], [4usize, 3usize]);
        let outputs = size.map(|n| n.div_ceil(stride));
        let image = Values::Integers.array::<T, _>([2, size[0], size[1], 2], 1);
        let grad_y = Values::Integers.array::<T, _>([2, outputs[0], outputs[1], 2], 2);
        let sharp = |at: usize| if at.is_multiple_of(3) { number::<T>(1e4) } else { T::zero() };
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
                assert_eq!(y.iter().copied().collect::<Vec<_>>(), expected[from..from + 3], "{border:?}, sample {j}");
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
