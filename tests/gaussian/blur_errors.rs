//! What blurs and scatters refuse, before anything is written.

use crate::common::blur_case::BORDERS;
use crate::common::refusals::{refused, shape_error, untouched, wrong};
use ndarray::{Array4, ArrayD, IxDyn, array, s};
use pullback::gaussian::{Blur, Border, Centre, Parameters, Scatter};
use pullback::{Error, Result};

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
        refused(error.clone(), IMAGE, |y| blur.adjoint_image_into(grad.view(), bad.view(), y));
        refused(error.clone(), IMAGE, |y| blur.adjoint_image_add(grad.view(), bad.view(), y));
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
    refused(error.clone(), IMAGE, |y| blur.adjoint_image_into(grad.view(), shapes.view(), y));
    refused(error.clone(), IMAGE, |y| blur.adjoint_image_add(grad.view(), shapes.view(), y));
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
