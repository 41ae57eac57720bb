//! Kernel maps against the formula in `f64`, at every level, where rounding, range or the form of a kernel changes.

mod common;

use common::levels;
use common::threads;
use common::values::Value;
use ndarray::{Array2, Array3, ArrayD, ArrayView2, Axis, IxDyn, array};
use pullback::gaussian::{Centre, KernelMaps, Parameters, Path, Tuning};
use pullback::{Error, Level, Real};

fn wide<T: Real>(x: T) -> f64 {
    x.to_f64().unwrap()
}

fn cast<T: Real>(x: f64) -> T {
    T::from_f64(x).unwrap()
}

/// Numbers from 0 to 1.
fn random(seed: u64) -> impl FnMut() -> f64 {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// One kernel of a factor: entries, and for each the bound on its relative error.
fn kernel(z: &[[f64; 2]], m: [f64; 4], u: f64) -> (Vec<f64>, Vec<f64>) {
    let rows = |z: &[f64; 2]| (m[0] * z[0] + m[1] * z[1], m[2] * z[0] + m[3] * z[1]);
    let q: Vec<f64> = z.iter().map(rows).map(|(a, b)| a * a + b * b).collect();
    let size = |z: &[f64; 2]| {
        ((m[0] * z[0]).abs() + (m[1] * z[1]).abs()).powi(2) + ((m[2] * z[0]).abs() + (m[3] * z[1]).abs()).powi(2)
    };
    let least = q.iter().copied().fold(f64::INFINITY, f64::min);
    let e: Vec<f64> = q.iter().map(|q| (-0.5 * (q - least)).exp()).collect();
    let sum: f64 = e.iter().sum();
    let p: Vec<f64> = e.iter().map(|e| e / sum).collect();
    let mean: f64 = p.iter().zip(z).map(|(p, z)| p * size(z)).sum();
    let bounds = z.iter().map(|z| 32.0 * u + 4.0 * u * (size(z) + mean)).collect();
    (p, bounds)
}

fn positions<T: Real>(maps: &KernelMaps<T>, offset: [f64; 2]) -> Vec<[f64; 2]> {
    let grid = maps.grid();
    grid.rows().into_iter().map(|z| [wide(z[0]) - offset[0], wide(z[1]) - offset[1]]).collect()
}

/// Checks kernels and gradients of factors and returns the largest errors as parts of their bounds.
fn check<T: Real>(maps: &KernelMaps<T>, shapes: ArrayView2<'_, T>, offsets: Option<ArrayView2<'_, T>>) -> [f64; 2] {
    let [kh, kw] = maps.shape();
    let u = wide(T::epsilon()) / 2.0;
    let n = shapes.nrows();
    let shapes = shapes.to_owned().into_shape_with_order((n, 2, 2)).unwrap();
    let mut next = random(5);
    let grad = ArrayD::from_shape_simple_fn(IxDyn(&[n, kh, kw]), || cast::<T>(next() + 100.0 * f64::from(u < 1e-9)));
    let (found, gradient) = match offsets {
        None => (maps.forward(shapes.view()).unwrap(), maps.adjoint(grad.view(), shapes.view()).unwrap()),
        Some(offsets) => (
            maps.forward_at(shapes.view(), offsets).unwrap(),
            maps.adjoint_at(grad.view(), shapes.view(), offsets).unwrap().grad_shapes,
        ),
    };
    let mut worst = [0.0f64; 2];
    for pixel in 0..n {
        let offset = offsets.map_or([0.0; 2], |offsets| [wide(offsets[[pixel, 0]]), wide(offsets[[pixel, 1]])]);
        let z = positions(maps, offset);
        let m = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| wide(shapes[[pixel, i, j]]));
        let (p, bounds) = kernel(&z, m, u);
        let least = wide(T::min_positive_value());
        for ((&found, &p), &bound) in found.index_axis(Axis(0), pixel).iter().zip(&p).zip(&bounds) {
            let found = wide(found);
            assert!(found == 0.0 || found >= least, "{found} is subnormal");
            if bound > 0.1 {
                continue;
            }
            if p < 0.999 * least {
                assert!(found == 0.0, "{m:?}: {found} for {p}");
            } else if p > 1.001 * least {
                worst[0] = worst[0].max((found - p).abs() / p / bound);
            }
        }
        let g: Vec<f64> = grad.index_axis(Axis(0), pixel).iter().map(|&g| wide(g)).collect();
        // Less that of the largest entry, so that the reference keeps its digits.
        let peak = (0..p.len()).fold(0, |peak, i| if p[i] > p[peak] { i } else { peak });
        let g: Vec<f64> = g.iter().map(|&x| x - g[peak]).collect();
        let s: f64 = p.iter().zip(&g).map(|(p, g)| p * g).sum();
        let largest = bounds.iter().zip(&p).filter(|(_, p)| **p > least).fold(0.0f64, |b, (&bound, _)| b.max(bound));
        for (i, row) in [[m[0], m[1]], [m[2], m[3]]].into_iter().enumerate() {
            for j in 0..2 {
                let (mut expected, mut size) = (0.0, 0.0);
                for ((&p, &g), z) in p.iter().zip(&g).zip(&z) {
                    expected -= p * (g - s) * (row[0] * z[0] + row[1] * z[1]) * z[j];
                    size += p * (g - s).abs() * ((row[0] * z[0]).abs() + (row[1] * z[1]).abs()) * z[j].abs();
                }
                let found = wide(gradient[[pixel, i, j]]);
                let bound = (largest.min(1.0) + 64.0 * u) * size + 4.0 * least;
                worst[1] = worst[1].max((found - expected).abs() / bound);
            }
        }
    }
    worst
}

fn sweep<T: Real + Value>(level: Level) {
    let mut worst = [0.0f64; 2];
    let tunings = [
        Tuning::default(),
        Tuning { stream: Some(true), mirror: Some(false), tile: Some(3), parallel: Some(true), ..Tuning::default() },
        Tuning { path: Some(Path::Rows), tile: Some(16), stream: Some(true), ..Tuning::default() },
        Tuning { path: Some(Path::Narrow), ..Tuning::default() },
    ];
    for (kh, kw) in
        [(1, 1), (1, 4), (3, 3), (4, 4), (5, 5), (7, 7), (8, 6), (9, 9), (15, 15), (21, 21), (20, 21), (41, 41)]
    {
        for centre in [
            Centre::Corner,
            Centre::Middle,
            Centre::Half,
            Centre::ShiftConvolution(2),
            Centre::ShiftCorrelation(3),
            Centre::At(0.3, 1.7),
        ] {
            for (tuning, sigma) in tunings.into_iter().zip([0.3, 1.0, 0.02, 3.0]) {
                let maps = KernelMaps::<T>::rectangular([kh, kw], centre).unwrap();
                let maps = maps.with_level(level).unwrap().with_tuning(tuning);
                let mut next = random(kh as u64 * 31 + kw as u64);
                let normal = move || cast::<T>(sigma * ((0..12).map(|_| next()).sum::<f64>() - 6.0));
                let shapes = Array2::from_shape_simple_fn((7, 4), normal);
                let found = check(&maps, shapes.view(), None);
                assert!(found[0] < 1.0 && found[1] < 1.0, "{level} {kh} {kw} {centre:?} {tuning:?}: {found:?}");
                let mut next = random(3);
                let offsets = Array2::from_shape_simple_fn((7, 2), || cast::<T>(4.0 * next() - 2.0));
                let moved = check(&maps, shapes.view(), Some(offsets.view()));
                assert!(moved[0] < 1.0 && moved[1] < 1.0, "{level} {kh} {kw} {centre:?} {tuning:?}: {moved:?} moved");
                for i in 0..2 {
                    worst[i] = worst[i].max(found[i]).max(moved[i]);
                }
            }
        }
    }
    eprintln!("{level}: largest errors, as parts of their bounds: {worst:?}");
}

#[test]
fn kernels_and_gradients_are_within_their_bounds() {
    levels::each(|level| {
        sweep::<f32>(level);
        sweep::<f64>(level);
    });
}

fn one<T: Real>(maps: &KernelMaps<T>, numbers: &[f64]) -> Vec<f64> {
    let axes: &[usize] = if numbers.len() == 4 { &[2, 2] } else { &[3] };
    let shape = ArrayD::from_shape_vec(axes, numbers.iter().map(|&x| cast(x)).collect()).unwrap();
    maps.forward(shape.view()).unwrap().iter().map(|&x| wide(x)).collect()
}

fn limits<T: Real>(level: Level, huge: f64, tiny: f64) {
    let maps = |k, centre| KernelMaps::<T>::new(k, centre).unwrap().with_level(level).unwrap();
    let middle = |k| maps(k, Centre::Middle);
    // Flat.
    assert_eq!(one(&middle(4), &[0.0; 4]), [1.0 / 16.0; 16]);
    assert_eq!(one(&maps(2, Centre::Corner), &[0.0; 4]), [0.25; 4]);
    assert_eq!(one(&middle(2).with_parameters(Parameters::Sigmas), &[huge, huge, 1.0]), [0.25; 4]);
    // A single sample.
    for m in [huge, -huge, tiny, 1.0, 0.0] {
        assert_eq!(one(&maps(1, Centre::At(0.4, 0.0)), &[m, m, 0.0, m]), [1.0]);
        assert_eq!(one(&middle(1), &[m, m, 0.0, m]), [1.0]);
    }
    // Nothing but the nearest.
    let mut expected = vec![0.0; 9];
    expected[4] = 1.0;
    assert_eq!(one(&middle(3), &[huge, 0.0, 0.0, huge]), expected);
    assert_eq!(one(&middle(3).with_parameters(Parameters::Sigmas), &[tiny, tiny, 0.3]), expected);
    assert_eq!(one(&middle(3).with_parameters(Parameters::Variances), &[tiny, tiny, 0.3]), expected);
    assert_eq!(one(&middle(3).with_parameters(Parameters::Covariance), &[tiny, 0.0, tiny]), expected);
    assert_eq!(one(&middle(3).with_parameters(Parameters::Precision), &[huge, 0.0, huge]), expected);
    // As near as each other.
    for sigma in [0.02, 1e-3, 1e-9, 1e-20, tiny] {
        let row = KernelMaps::<T>::rectangular([1, 4], Centre::Middle).unwrap().with_level(level).unwrap();
        assert_eq!(one(&row.with_parameters(Parameters::Sigmas), &[sigma, sigma, 0.0]), [0.0, 0.5, 0.5, 0.0]);
        let turned = one(&middle(4).with_parameters(Parameters::Sigmas), &[sigma, sigma, 0.3]);
        for (i, p) in turned.into_iter().enumerate() {
            let expected = if [5, 6, 9, 10].contains(&i) { 0.25 } else { 0.0 };
            assert!((p - expected).abs() < 0.02, "sigma {sigma}: {p} at {i}");
        }
    }
    // A ridge along x = y, without end and of the width 1 / huge.
    for m in [[1e3, -1e3, 0.0, 0.0], [huge, -huge, 0.0, 0.0], [huge, -huge, huge, -huge]] {
        let ridge = one(&middle(3), &m);
        for (i, p) in ridge.into_iter().enumerate() {
            let expected = if i % 4 == 0 { 1.0 / 3.0 } else { 0.0 };
            assert!((p - expected).abs() < 1e-6, "{m:?}: {p} at {i}");
        }
    }
    // Narrow in x alone: a Gaussian of one column.
    for x in [1e2, 1e3, 1e4, 1e8, huge] {
        let column = one(&middle(3), &[x, 0.0, 0.0, 1.0]);
        let edge = (-0.5f64).exp() / (1.0 + 2.0 * (-0.5f64).exp());
        assert!((column[1] - edge).abs() < 1e-6 && (column[4] - (1.0 - 2.0 * edge)).abs() < 1e-6, "{x}: {column:?}");
        assert_eq!(column[0] + column[2] + column[3] + column[5], 0.0);
        let both = one(&middle(2), &[x, 0.0, 0.0, 1.0]);
        assert!(both.iter().all(|p| (p - 0.25).abs() < 1e-6), "{x}: {both:?}");
    }
    // The ridge x = y / 3 + 1/2 passes the nearest samples by and meets one that is far.
    let far = KernelMaps::<T>::new(8, Centre::At(0.5, 0.0)).unwrap().with_level(level).unwrap();
    for scale in [32.0, 256.0, 4096.0, 2f64.powi(50), 2f64.powi(huge.log2() as i32 - 2)] {
        let p = one(&far, &[3.0 * scale, -scale, 0.0, 0.0]);
        let best: Vec<usize> = (0..64).filter(|i| p[*i] > 0.1).collect();
        let expected: Vec<usize> = (0..64)
            .filter(|i| {
                let d = |i: usize| (3.0 * ((i % 8) as f64 - 0.5) - (i / 8) as f64).abs();
                (0..64).all(|j| d(*i) <= d(j))
            })
            .collect();
        assert_eq!(best, expected, "{scale}");
    }
    // Gradients of all of these are numbers, and 0 for what is flat, alone, or constant.
    let grad = ArrayD::from_shape_fn(IxDyn(&[3, 3]), |at| cast::<T>((at[0] as f64 - 0.3 * at[1] as f64).sin()));
    let constant = ArrayD::from_elem(IxDyn(&[3, 3]), cast::<T>(1e6));
    for centre in [Centre::Middle, Centre::Corner, Centre::At(0.3, 0.4)] {
        for (parameters, numbers) in [
            (Parameters::Factor, vec![huge, -huge, 1.0, huge]),
            (Parameters::Factor, vec![0.0; 4]),
            (Parameters::Factor, vec![0.3, 0.1, -0.2, 0.5]),
            (Parameters::Precision, vec![huge, 0.0, tiny]),
            (Parameters::Precision, vec![4.0, 2.0, 1.0]),
            (Parameters::Sigmas, vec![tiny, huge, 0.3]),
            (Parameters::Variances, vec![tiny, huge, 0.3]),
            (Parameters::Covariance, vec![tiny, 0.0, huge]),
            (Parameters::Covariance, vec![2.0, 1.0, 3.0]),
        ] {
            let axes: &[usize] = if numbers.len() == 4 { &[2, 2] } else { &[3] };
            let shape = ArrayD::from_shape_vec(axes, numbers.iter().map(|&x| cast(x)).collect()).unwrap();
            let maps = maps(3, centre).with_parameters(parameters);
            let gradient = maps.adjoint(grad.view(), shape.view()).unwrap();
            assert!(gradient.iter().all(|x| !x.is_nan()), "{parameters:?} {numbers:?}: {gradient:?}");
            if numbers == [0.0; 4] {
                assert!(gradient.iter().all(|&x| x == T::zero()));
            }
            let gradient = maps.adjoint(constant.view(), shape.view()).unwrap();
            assert!(gradient.iter().all(|&x| x == T::zero()), "{parameters:?} {numbers:?}: {gradient:?}");
            let offset = array![cast::<T>(0.1), cast(1e9)];
            let gradients = maps.adjoint_at(grad.view(), shape.view(), offset.view()).unwrap();
            assert!(gradients.grad_shapes.iter().chain(&gradients.grad_offsets).all(|x| !x.is_nan()));
        }
    }
}

#[test]
fn limits_are_reached() {
    levels::each(|level| {
        limits::<f32>(level, 1e30, 1e-40);
        limits::<f64>(level, 1e300, 1e-310);
    });
}

/// All numbers of what an operator computes.
fn everything<T: Real>(maps: &KernelMaps<T>, shapes: &ArrayD<T>, offsets: &ArrayD<T>, grad: &ArrayD<T>) -> Vec<T> {
    let gradients = maps.adjoint_at(grad.view(), shapes.view(), offsets.view()).unwrap();
    [
        maps.forward(shapes.view()).unwrap(),
        maps.adjoint(grad.view(), shapes.view()).unwrap(),
        maps.forward_at(shapes.view(), offsets.view()).unwrap(),
        gradients.grad_shapes,
        gradients.grad_offsets,
    ]
    .iter()
    .flat_map(|array| array.iter().copied().collect::<Vec<_>>())
    .collect()
}

#[test]
fn threads_levels_tiles_and_strides_give_the_same_bits() {
    let mut next = random(9);
    let mut draw =
        |shape: &[usize], scale: f64| ArrayD::from_shape_simple_fn(IxDyn(shape), || (scale * (next() - 0.5)) as f32);
    let (shapes, offsets, grad) = (draw(&[3, 40, 2, 2], 2.0), draw(&[3, 40, 2], 3.0), draw(&[3, 40, 9, 7], 1.0));
    for centre in [Centre::Corner, Centre::Middle, Centre::At(2.5, 2.5)] {
        let maps = |level, tuning| {
            let maps = KernelMaps::<f32>::rectangular([9, 7], centre).unwrap();
            maps.with_level(level).unwrap().with_tuning(tuning)
        };
        let tuning = Tuning { parallel: Some(true), tile: Some(5), stream: Some(true), ..Tuning::default() };
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let expected = everything(&maps(level, Tuning::default()), &shapes, &offsets, &grad);
            let own = maps(level, tuning);
            assert_eq!(everything(&own, &shapes, &offsets, &grad), expected);
            for count in threads::COUNTS {
                threads::with(count, || assert_eq!(everything(&own, &shapes, &offsets, &grad), expected));
            }
            let highest = everything(&maps(Level::highest(), tuning), &shapes, &offsets, &grad);
            if level == Level::V3 {
                assert_eq!(expected, highest);
            }
            // Every input reversed and transposed in memory, and outputs too.
            let turned = |array: &ArrayD<f32>| array.t().as_standard_layout().into_owned();
            let (s, o, g) = (turned(&shapes), turned(&offsets), turned(&grad));
            let found = own.adjoint_at(g.t(), s.t(), o.t()).unwrap();
            let direct = own.adjoint_at(grad.view(), shapes.view(), offsets.view()).unwrap();
            assert_eq!(found, direct);
            let (mut to_s, mut to_o) = (s.clone(), o.clone());
            own.adjoint_at_add(g.t(), s.t(), o.t(), to_s.view_mut().reversed_axes(), to_o.view_mut().reversed_axes())
                .unwrap();
            assert_eq!(to_s.t(), &shapes + &direct.grad_shapes);
            assert_eq!(to_o.t(), &offsets + &direct.grad_offsets);
            let kernels = own.forward(shapes.view()).unwrap();
            let mut out = turned(&kernels);
            out.fill(f32::NAN);
            own.forward_into(s.t(), out.view_mut().reversed_axes()).unwrap();
            assert_eq!(out.t(), kernels);
            // Where cells are aligned to nothing.
            for shift in [0, 1, 3, 4, 15] {
                let mut memory = vec![f32::NAN; shift + kernels.len()];
                let out = ndarray::ArrayViewMut::from_shape(kernels.raw_dim(), &mut memory[shift..]).unwrap();
                own.forward_into(shapes.view(), out).unwrap();
                assert!(memory[shift..].iter().eq(kernels.iter()));
            }
        }
    }
}

#[test]
fn other_parameters_describe_the_same_kernels() {
    let (sx, sy, theta) = (2.0f64, 0.7, 0.5);
    let (c, s) = (f64::cos(theta), f64::sin(theta));
    let precision =
        [c * c / sx / sx + s * s / sy / sy, c * s * (1.0 / sx / sx - 1.0 / sy / sy), s * s / sx / sx + c * c / sy / sy];
    let covariance =
        [c * c * sx * sx + s * s * sy * sy, c * s * (sx * sx - sy * sy), s * s * sx * sx + c * c * sy * sy];
    for centre in [Centre::Middle, Centre::Corner, Centre::ShiftCorrelation(2)] {
        let maps = |parameters| KernelMaps::<f64>::new(7, centre).unwrap().with_parameters(parameters);
        let expected = one(&maps(Parameters::Factor), &[c / sx, s / sx, -s / sy, c / sy]);
        for (parameters, numbers) in [
            (Parameters::Precision, precision),
            (Parameters::Sigmas, [sx, sy, theta]),
            (Parameters::Variances, [sx * sx, sy * sy, theta]),
            (Parameters::Covariance, covariance),
        ] {
            let found = one(&maps(parameters), &numbers);
            for (found, expected) in found.iter().zip(&expected) {
                assert!((found - expected).abs() <= 1e-13 * expected, "{parameters:?}: {found} is not {expected}");
            }
            // Gradients by differences.
            let grad = Array2::from_shape_fn((7, 7), |(y, x)| ((3 * y + 5 * x) as f64).sin());
            let shape = array![numbers[0], numbers[1], numbers[2]];
            let gradient = maps(parameters).adjoint(grad.view(), shape.view()).unwrap();
            for at in 0..3 {
                let loss = |step: f64| {
                    let mut numbers = numbers;
                    numbers[at] += step;
                    one(&maps(parameters), &numbers).iter().zip(&grad).map(|(p, g)| p * g).sum::<f64>()
                };
                let step = 1e-6 * numbers[at].abs().max(1.0);
                let expected = (loss(step) - loss(-step)) / (2.0 * step);
                assert!((gradient[at] - expected).abs() < 1e-7, "{parameters:?} {at}: {} {expected}", gradient[at]);
            }
        }
        // Offsets by differences.
        let shape = array![[0.5, 0.2], [-0.1, 0.7]];
        let grad = Array2::from_shape_fn((7, 7), |(y, x)| ((3 * y + 5 * x) as f64).sin());
        let offset = array![0.3, -0.8];
        let maps = maps(Parameters::Factor);
        let gradients = maps.adjoint_at(grad.view(), shape.view(), offset.view()).unwrap();
        for at in 0..2 {
            let loss = |step: f64| {
                let mut offset = offset.clone();
                offset[at] += step;
                let kernel = maps.forward_at(shape.view(), offset.view()).unwrap();
                kernel.iter().zip(&grad).map(|(p, g)| p * g).sum::<f64>()
            };
            let expected = (loss(1e-6) - loss(-1e-6)) / 2e-6;
            assert!((gradients.grad_offsets[at] - expected).abs() < 1e-7);
        }
    }
}

#[test]
fn wide_kernels_add_up() {
    levels::each(|level| {
        for k in [127, 200] {
            for sigma in [1e5, 3e4, 40.0] {
                let maps = KernelMaps::<f32>::new(k, Centre::Middle).unwrap().with_level(level).unwrap();
                let shapes = array![[1.0 / sigma, 0.0, 0.0, 1.0 / sigma]];
                let found = check(&maps, shapes.view(), None);
                assert!(found[0] < 1.0 && found[1] < 1.0, "{level} {k} {sigma}: {found:?}");
                let sum: f64 = one(&maps, &shapes.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()).iter().sum();
                assert!((sum - 1.0).abs() < 2e-6, "{sum}");
            }
        }
    });
}

#[test]
fn grids_far_from_one_are_scaled() {
    for scale in [1e30f32, 1e-30, 1e12] {
        let z = Array3::from_shape_fn((5, 5, 2), |(y, x, axis)| scale * [x as f32 - 2.0, y as f32 - 2.0][axis]);
        let maps = KernelMaps::with_grid(z.view()).unwrap();
        let reference = KernelMaps::<f32>::new(5, Centre::Middle).unwrap();
        let p = maps.forward(array![[0.5 / scale, 0.1 / scale], [0.0, 0.7 / scale]].view()).unwrap();
        let expected = reference.forward(array![[0.5f32, 0.1], [0.0, 0.7]].view()).unwrap();
        assert!(p.iter().zip(&expected).all(|(p, e)| (p - e).abs() <= 1e-5 * e), "{scale}: {p} {expected}");
        let grad =
            maps.adjoint(expected.view(), array![[0.5 / scale, 0.1 / scale], [0.0, 0.7 / scale]].view()).unwrap();
        let right = reference.adjoint(expected.view(), array![[0.5f32, 0.1], [0.0, 0.7]].view()).unwrap();
        assert!(
            grad.iter().zip(&right).all(|(g, e)| (g / scale - e).abs() <= 1e-5 * e.abs()),
            "{scale}: {grad} {right}"
        );
    }
}

#[test]
fn nothing_is_written_where_an_input_is_bad() {
    let maps = KernelMaps::<f32>::new(3, Centre::Middle).unwrap();
    let mut shapes = ndarray::Array4::<f32>::ones((2, 3, 2, 2));
    shapes[[1, 2, 0, 1]] = f32::INFINITY;
    let mut out = ndarray::Array4::from_elem((2, 3, 3, 3), 7.0f32);
    let error = maps.forward_into(shapes.view(), out.view_mut()).unwrap_err();
    assert_eq!(error.to_string(), "shapes[1, 2, 0, 1] = inf is not finite");
    assert!(out.iter().all(|&x| x == 7.0));
    shapes.fill(1.0);
    let error = maps.forward_into(shapes.view(), out.slice_mut(ndarray::s![.., .., .., ..2])).unwrap_err();
    assert!(matches!(error, Error::Shape { argument: "maps", .. }));
    let offsets = Array3::from_elem((2, 3, 2), f32::NAN);
    let error = maps.forward_at_into(shapes.view(), offsets.view(), out.view_mut()).unwrap_err();
    assert!(matches!(error, Error::NonFinite { argument: "offsets", position, .. } if position == [0, 0, 0]));
    assert!(out.iter().all(|&x| x == 7.0));
    assert!(matches!(KernelMaps::<f32>::new(0, Centre::Middle), Err(Error::Parameter { argument: "k", .. })));
    let empty = ndarray::Array4::<f32>::zeros((0, 3, 2, 2));
    assert_eq!(maps.forward(empty.view()).unwrap().shape(), [0, 3, 3, 3]);
    let none = ndarray::Array4::<f32>::zeros((0, 3, 3, 3));
    assert_eq!(maps.adjoint(none.view(), empty.view()).unwrap().shape(), [0, 3, 2, 2]);
}
