//! Refusals by kernel maps: what they name, and that nothing was written.

use crate::common::refusals::{refused, shape_error, untouched, wrong};
use crate::common::threads;
use crate::common::values::Value;
use ndarray::{Array1, Array2, Array3, Array4, ArrayD, Ix1, Ix2, Ix3, Ix4, IxDyn, array};
use pullback::gaussian::{Centre, KernelMaps, Parameters};
use pullback::{Error, Result};

/// Two rows of three kernels on 5 x 4 samples.
const SHAPES: [usize; 4] = [2, 3, 2, 2];
const TRIPLES: [usize; 3] = [2, 3, 3];
const MAPS: [usize; 4] = [2, 3, 5, 4];
const OFFSETS: [usize; 3] = [2, 3, 2];

fn maps<T: Value>(parameters: Parameters) -> KernelMaps<T> {
    KernelMaps::rectangular([5, 4], Centre::Middle).unwrap().with_parameters(parameters)
}

fn ones<const D: usize>(shape: [usize; D]) -> ArrayD<f32> {
    ArrayD::ones(&shape[..])
}

/// Good numbers of any kind but factors.
fn triples(parameters: Parameters) -> Array3<f32> {
    let good = if let Parameters::Covariance | Parameters::Precision = parameters { [2.0, 0.5, 1.0] } else { [1.0; 3] };
    Array3::from_shape_fn(TRIPLES, |(_, _, at)| good[at])
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
fn a_window_has_samples() {
    assert_parameter(KernelMaps::<f32>::new(0, Centre::Middle), "0");
    assert_parameter(KernelMaps::<f64>::rectangular([0, 3], Centre::Corner), "0");
    assert_parameter(KernelMaps::<f32>::rectangular([3, 0], Centre::Half), "0");
    for shape in [[0, 3, 2], [3, 0, 2]] {
        assert_parameter(KernelMaps::with_grid(Array3::<f32>::zeros(shape).view()), "0");
    }
    assert!(KernelMaps::<f32>::new(1, Centre::Corner).is_ok());
}

#[test]
fn a_centre_is_finite_and_shifts_are_of_at_least_one() {
    for centre in [Centre::ShiftConvolution(0), Centre::ShiftCorrelation(0)] {
        assert_parameter(KernelMaps::<f32>::new(5, centre), "0");
        assert_parameter(KernelMaps::<f64>::rectangular([5, 4], centre), "0");
    }
    for (bad, word) in [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")] {
        assert_parameter(KernelMaps::<f32>::new(5, Centre::At(bad, 0.0)), word);
        assert_parameter(KernelMaps::<f64>::new(5, Centre::At(0.0, bad)), word);
    }
    assert!(KernelMaps::<f32>::new(5, Centre::At(-1e6, 1e6)).is_ok());
}

#[test]
fn a_grid_is_finite_and_of_pairs() {
    for last in [0, 1, 3] {
        let error = shape_error("z", [5, 4, last], [5, 4, 2]);
        assert_eq!(KernelMaps::with_grid(Array3::<f64>::zeros([5, 4, last]).view()).err(), Some(error));
    }
    for (bad, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut z = Array3::<f32>::zeros([5, 4, 2]);
        (z[[2, 3, 1]], z[[4, 0, 0]]) = (bad, f32::NAN);
        let error = Error::NonFinite { argument: "z", position: vec![2, 3, 1], value: word.into() };
        assert_eq!(KernelMaps::with_grid(z.view()).err(), Some(error));
    }
}

#[test]
fn axes_that_are_missing() {
    let op = maps::<f32>(Parameters::Factor);
    for found in [0, 1] {
        let (few, error) = (ArrayD::ones(vec![2; found]), Error::Rank { argument: "shapes", found, least: 2 });
        assert_eq!(op.forward(few.view()), Err(error.clone()));
        assert_eq!(op.adjoint(ones(MAPS).view(), few.view()), Err(error.clone()));
        assert_eq!(op.forward_at(few.view(), ones(OFFSETS).view()), Err(error.clone()));
        refused(error, MAPS, |y| op.forward_into(few.view(), y));
    }
    for parameters in [Parameters::Precision, Parameters::Sigmas, Parameters::Variances, Parameters::Covariance] {
        let error = Error::Rank { argument: "shapes", found: 0, least: 1 };
        assert_eq!(maps::<f32>(parameters).forward(ArrayD::ones(IxDyn(&[])).view()), Err(error));
    }
}

#[test]
fn wrong_shapes() {
    let op = maps::<f32>(Parameters::Factor);
    let (shapes, grads, offsets) = (ones(SHAPES), ones(MAPS), ones(OFFSETS));
    // The axes before those of a kernel are free: they decide those of all else.
    for found in wrong(SHAPES, 4).into_iter().filter(|found| found[2..] != SHAPES[2..]) {
        let (bad, error) = (ones(found), shape_error("shapes", found, SHAPES));
        assert_eq!(op.forward(bad.view()), Err(error.clone()));
        assert_eq!(op.forward_at(bad.view(), offsets.view()), Err(error.clone()));
        assert_eq!(op.adjoint(grads.view(), bad.view()), Err(error.clone()));
        assert_eq!(op.adjoint_at(grads.view(), bad.view(), offsets.view()), Err(error.clone()));
        refused(error, MAPS, |y| op.forward_into(bad.view(), y));
    }
    for found in wrong(TRIPLES, 3).into_iter().filter(|found| found[2] != 3) {
        let error = shape_error("shapes", found, TRIPLES);
        for parameters in [Parameters::Precision, Parameters::Sigmas, Parameters::Variances, Parameters::Covariance] {
            assert_eq!(maps(parameters).forward(ones(found).view()), Err(error.clone()));
        }
    }
    for found in wrong(MAPS, 4) {
        refused(shape_error("maps", found, MAPS), found, |y| op.forward_into(shapes.view(), y));
        refused(shape_error("maps", found, MAPS), found, |y| op.forward_at_into(shapes.view(), offsets.view(), y));
        let (bad, error) = (ones(found), shape_error("grad_maps", found, MAPS));
        assert_eq!(op.adjoint(bad.view(), shapes.view()), Err(error.clone()));
        assert_eq!(op.adjoint_at(bad.view(), shapes.view(), offsets.view()), Err(error.clone()));
        refused(error.clone(), SHAPES, |g| op.adjoint_into(bad.view(), shapes.view(), g));
        refused(error, SHAPES, |g| op.adjoint_add(bad.view(), shapes.view(), g));
    }
    for found in wrong(OFFSETS, 3) {
        let (bad, error) = (ones(found), shape_error("offsets", found, OFFSETS));
        assert_eq!(op.forward_at(shapes.view(), bad.view()), Err(error.clone()));
        assert_eq!(op.adjoint_at(grads.view(), shapes.view(), bad.view()), Err(error.clone()));
        refused(error, MAPS, |y| op.forward_at_into(shapes.view(), bad.view(), y));
        let error = shape_error("grad_offsets", found, OFFSETS);
        refused_both(&error, SHAPES, found, |a, b| {
            op.adjoint_at_into(grads.view(), shapes.view(), offsets.view(), a, b)
        });
        refused_both(&error, SHAPES, found, |a, b| {
            op.adjoint_at_add(grads.view(), shapes.view(), offsets.view(), a, b)
        });
    }
    for found in wrong(SHAPES, 4) {
        let error = shape_error("grad_shapes", found, SHAPES);
        refused(error.clone(), found, |g| op.adjoint_into(grads.view(), shapes.view(), g));
        refused(error.clone(), found, |g| op.adjoint_add(grads.view(), shapes.view(), g));
        refused_both(&error, found, OFFSETS, |a, b| {
            op.adjoint_at_into(grads.view(), shapes.view(), offsets.view(), a, b)
        });
    }
    // One axis more or less.
    let flat = ones([6, 5, 4]);
    let error = Error::Shape { argument: "grad_maps", found: vec![6, 5, 4], expected: MAPS.to_vec() };
    assert_eq!(op.adjoint(flat.view(), shapes.view()), Err(error));
    let error = Error::Shape { argument: "maps", found: vec![6, 5, 4], expected: MAPS.to_vec() };
    refused(error, [6, 5, 4], |y| op.forward_into(shapes.view(), y));
}

/// `call` returns `expected` and leaves both outputs as they were.
#[track_caller]
fn refused_both<const A: usize, const B: usize>(
    expected: &Error,
    first: [usize; A],
    second: [usize; B],
    call: impl FnOnce(ndarray::ArrayViewMut<'_, f32, IxDyn>, ndarray::ArrayViewMut<'_, f32, IxDyn>) -> Result<()>,
) {
    let result = untouched(IxDyn(&first), |a| untouched(IxDyn(&second), |b| call(a, b)));
    assert_eq!(result.as_ref(), Err(expected));
}

/// Every form of the operator refuses `shapes` with `error` and writes nothing.
#[track_caller]
fn assert_refused(op: &KernelMaps<f32>, shapes: &ArrayD<f32>, error: &Error) {
    let numbers = if shapes.ndim() == 4 { &SHAPES[..] } else { &TRIPLES };
    let (grads, offsets, shape) = (ones(MAPS), ones(OFFSETS), IxDyn(numbers));
    let refuse = |found: Option<Error>| assert_eq!(found.as_ref(), Some(error));
    refuse(op.forward(shapes.view()).err());
    refuse(op.forward_at(shapes.view(), offsets.view()).err());
    refuse(op.adjoint(grads.view(), shapes.view()).err());
    refuse(op.adjoint_at(grads.view(), shapes.view(), offsets.view()).err());
    refused(error.clone(), MAPS, |y| op.forward_into(shapes.view(), y));
    refused(error.clone(), MAPS, |y| op.forward_at_into(shapes.view(), offsets.view(), y));
    refused(error.clone(), shape.clone(), |g| op.adjoint_into(grads.view(), shapes.view(), g));
    refused(error.clone(), shape.clone(), |g| op.adjoint_add(grads.view(), shapes.view(), g));
    let both = |add: bool| {
        untouched(shape.clone(), |a| {
            untouched(OFFSETS, |b| match add {
                false => op.adjoint_at_into(grads.view(), shapes.view(), offsets.view(), a, b),
                true => op.adjoint_at_add(grads.view(), shapes.view(), offsets.view(), a, b),
            })
        })
    };
    refuse(both(false).err());
    refuse(both(true).err());
}

#[test]
fn numbers_are_finite() {
    for (bad, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        for at in [[0, 0, 0, 0], [1, 2, 1, 1], [0, 2, 1, 0], [1, 0, 0, 1]] {
            let mut shapes = Array4::<f32>::ones(SHAPES);
            (shapes[at], shapes[[1, 2, 1, 1]]) = (bad, bad);
            let error = Error::NonFinite { argument: "shapes", position: at.to_vec(), value: word.into() };
            assert_refused(&maps(Parameters::Factor), &shapes.into_dyn(), &error);
        }
        for parameters in [Parameters::Precision, Parameters::Sigmas, Parameters::Variances, Parameters::Covariance] {
            for at in [[0, 0, 0], [1, 2, 2], [0, 2, 1], [1, 0, 2]] {
                let mut shapes = triples(parameters);
                // What is negative comes after what is not finite, whatever its place in the kernel.
                shapes[[at[0], at[1], 0]] = -1.0;
                (shapes[at], shapes[[1, 2, 2]]) = (bad, bad);
                let error = Error::NonFinite { argument: "shapes", position: at.to_vec(), value: word.into() };
                assert_refused(&maps(parameters), &shapes.into_dyn(), &error);
            }
        }
    }
}

/// The pixel and the words of a refusal.
#[track_caller]
fn assert_kernel(error: Option<Error>, at: &[usize], value: &str, words: &str) {
    let error = error.expect("a refusal");
    let Error::KernelShape { argument, ref position, value: ref found, expected } = error else {
        panic!("{error:?} is no refusal of a kernel")
    };
    assert_eq!((argument, &position[..], &found[..]), ("shapes", at, value));
    assert!(expected.contains(words), "{expected:?} does not say {words:?}");
    assert_eq!(error.to_string(), format!("shapes{at:?} = {value}, expected {expected}"));
}

#[test]
fn kernels_that_are_none() {
    let bad: [(Parameters, &[[f32; 3]], &str); 4] = [
        (Parameters::Sigmas, &[[1.0, 0.0, 0.3], [-0.0, 1.0, 0.3], [-1.0, 1.0, 0.0], [1.0, -1e-45, 0.0]], "sigmas"),
        (
            Parameters::Variances,
            &[[1.0, 0.0, 0.3], [-0.0, 1.0, 0.3], [-1.0, 1.0, 0.0], [1.0, -1e-45, 0.0]],
            "variances",
        ),
        (
            Parameters::Precision,
            &[[-1.0, 0.0, 1.0], [1.0, 0.0, -1e-45], [1.0, 1.5, 2.0], [0.0, 1e-30, 1.0], [-1.0, 0.0, -1.0]],
            "a c >= b^2",
        ),
        (
            Parameters::Covariance,
            &[[0.0, 0.0, 1.0], [1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [-2.0, 0.0, -2.0], [1.0, -2.0, 3.0]],
            "xx yy > xy^2",
        ),
    ];
    for (parameters, bad, words) in bad {
        for numbers in bad {
            for at in [[0, 0], [0, 2], [1, 1]] {
                let mut shapes = triples(parameters);
                for (n, &number) in numbers.iter().enumerate() {
                    shapes[[at[0], at[1], n]] = number;
                }
                // A later one is worse.
                shapes[[1, 2, 1]] = f32::NAN;
                let error = maps(parameters).forward(shapes.view()).err();
                assert_kernel(error.clone(), &at, &format!("{numbers:?}"), words);
                assert_refused(&maps(parameters), &shapes.into_dyn(), &error.unwrap());
            }
        }
    }
    let mut shapes = Array3::<f32>::ones([4, 18, 3]);
    (shapes[[3, 17, 1]], shapes[[3, 17, 2]]) = (0.0, 0.3);
    let error = maps(Parameters::Sigmas).forward(shapes.view()).unwrap_err();
    assert_eq!(error.to_string(), "shapes[3, 17] = [1.0, 0.0, 0.3], expected sigmas greater than 0");
}

/// Products are compared as they are, not as they are rounded, nor as they underflow or overflow.
#[test]
fn determinants_are_exact() {
    fn check<T: Value>(parameters: Parameters, numbers: [T; 3], good: bool) {
        let shapes = Array1::from_vec(numbers.to_vec());
        let found = maps::<T>(parameters).forward(shapes.view());
        match found {
            Ok(maps) => assert!(good && maps.iter().all(|p| *p >= T::zero()), "{parameters:?} {numbers:?} is accepted"),
            Err(error) => assert!(!good && matches!(error, Error::KernelShape { .. }), "{numbers:?}: {error}"),
        }
    }
    fn around<T: Value>(scale: i32) {
        let (one, scale) = (T::one(), T::from_f64(2.0).unwrap().powi(scale));
        let up = one.up();
        // The square of `1 + ulp` is more than `1 (1 + 2 ulp)` by less than the rounding of either.
        for (numbers, precision, covariance) in [
            ([up, up, up], true, false),
            ([one, up, up.up()], false, false),
            ([one, one, up], true, true),
            ([up.up(), up.down(), one], true, true),
            ([up, -up.up(), up], false, false),
            ([up, -one, one], true, true),
        ] {
            let numbers = numbers.map(|x| x * scale);
            check(Parameters::Precision, numbers, precision);
            check(Parameters::Covariance, numbers, covariance);
        }
    }
    [0, 100, -100, 60, -60, 126, -125].into_iter().for_each(around::<f32>);
    [0, 700, -700, 1000, -1000, 1022, -1021, 500, -500].into_iter().for_each(around::<f64>);
    check(Parameters::Precision, [0.0f64, 1e-300, 0.0], false);
    check(Parameters::Precision, [0.0f64, 0.0, 1e-300], true);
    check(Parameters::Precision, [0.0f32, -0.0, -0.0], true);
    check(Parameters::Precision, [f32::MAX, f32::MAX, f32::MAX], true);
    check(Parameters::Precision, [f32::MAX.down(), f32::MAX, f32::MAX], false);
    check(Parameters::Precision, [f64::MAX.down(), f64::MAX, f64::MAX], false);
    check(Parameters::Covariance, [f64::MAX, f64::MAX.down(), f64::MAX], true);
    // Products that are rounded to the same number.
    let (square, root) = (1.0 + 2f64.powi(-30), 1.0 + 2f64.powi(-31));
    for parameters in [Parameters::Precision, Parameters::Covariance] {
        check(parameters, [square, root, 1.0], false);
        check(parameters, [square, root.down(), 1.0], true);
        check(parameters, [square.up(), root, 1.0], true);
    }
}

#[test]
fn offsets_are_finite() {
    let op = maps::<f32>(Parameters::Factor);
    let (shapes, grads) = (ones(SHAPES), ones(MAPS));
    for (bad, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        for at in [[0, 0, 0], [1, 2, 1], [0, 2, 1], [1, 0, 0]] {
            let mut offsets = Array3::<f32>::ones(OFFSETS);
            (offsets[at], offsets[[1, 2, 1]]) = (bad, bad);
            let error = Error::NonFinite { argument: "offsets", position: at.to_vec(), value: word.into() };
            assert_eq!(op.forward_at(shapes.view(), offsets.view()), Err(error.clone()));
            assert_eq!(op.adjoint_at(grads.view(), shapes.view(), offsets.view()).err(), Some(error.clone()));
            refused(error.clone(), MAPS, |y| op.forward_at_into(shapes.view(), offsets.view(), y));
            for add in [false, true] {
                refused_both(&error, SHAPES, OFFSETS, |a, b| match add {
                    false => op.adjoint_at_into(grads.view(), shapes.view(), offsets.view(), a, b),
                    true => op.adjoint_at_add(grads.view(), shapes.view(), offsets.view(), a, b),
                });
            }
        }
    }
}

/// Whatever the number of threads, and wherever the others are.
#[test]
fn the_lowest_pixel_is_named() {
    let mut shapes = Array2::<f64>::ones([20_000, 3]);
    for bad in [19_999, 12_345, 7, 6000] {
        shapes[[bad, 0]] = -1.0;
        let worse = (bad + 1).min(19_999);
        shapes[[worse, 2]] = f64::NAN;
        let lowest = (0..20_000).find(|&pixel| shapes[[pixel, 0]] < 0.0 || shapes[[pixel, 2]].is_nan()).unwrap();
        for count in threads::COUNTS {
            let op = KernelMaps::new(3, Centre::Middle).unwrap().with_parameters(Parameters::Sigmas);
            let error = threads::with(count, || op.forward(shapes.view()).err());
            match bad {
                // Both of one pixel.
                19_999 => {
                    let error = error.expect("a refusal");
                    assert!(
                        matches!(error, Error::NonFinite { ref position, .. } if *position == [lowest, 2]),
                        "{error}"
                    );
                }
                _ => assert_kernel(error, &[lowest], "[-1.0, 1.0, 1.0]", "sigmas"),
            }
        }
    }
}

#[test]
fn no_pixels_are_no_error() {
    let op = maps::<f32>(Parameters::Factor);
    for leading in [vec![0], vec![0, 3], vec![3, 0], vec![2, 0, 5]] {
        let with = |last: &[usize]| ArrayD::<f32>::ones([&leading[..], last].concat());
        let (shapes, grads, offsets) = (with(&[2, 2]), with(&[5, 4]), with(&[2]));
        assert_eq!(op.forward(shapes.view()).unwrap(), grads);
        assert_eq!(op.adjoint(grads.view(), shapes.view()).unwrap(), shapes);
        assert_eq!(op.forward_at(shapes.view(), offsets.view()).unwrap(), grads);
        let found = op.adjoint_at(grads.view(), shapes.view(), offsets.view()).unwrap();
        assert_eq!((found.grad_shapes, found.grad_offsets), (shapes, offsets));
    }
}

/// Of a known number of axes, or not.
#[test]
fn any_dimension_is_taken() {
    let op = maps::<f64>(Parameters::Factor);
    let one = op.forward(Array2::eye(2).view()).unwrap();
    assert_eq!(one.shape(), [5, 4]);
    let many: Array4<f64> = array![[[[1.0, 0.0], [0.0, 1.0]]]];
    let maps = op.forward(many.view()).unwrap().into_dimensionality::<Ix4>().unwrap();
    assert_eq!(maps.into_shape_with_order([5, 4]).unwrap(), one.clone().into_dimensionality::<Ix2>().unwrap());
    let mut output = Array3::<f64>::zeros([1, 5, 4]);
    op.forward_into(many.index_axis(ndarray::Axis(0), 0), output.view_mut()).unwrap();
    assert_eq!(output.into_dimensionality::<Ix3>().unwrap().index_axis(ndarray::Axis(0), 0).into_dyn(), one);
    let vector: Array1<f64> = array![1.0, 0.0, 1.0];
    let precision = op.with_parameters(Parameters::Precision);
    assert_eq!(precision.forward(vector.view()).unwrap().shape(), [5, 4]);
    assert_eq!(
        precision.adjoint(one.view(), vector.view().into_dimensionality::<Ix1>().unwrap()).unwrap().shape(),
        [3]
    );
}
