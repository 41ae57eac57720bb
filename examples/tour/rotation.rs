//! A rotating frame by Taylor steps, its closed form, and the gradient of where it ends.
//!
//! The axis of a frame's rotation itself turns about z: `A' = A B(t)` with `B(t) v` the cross product of the angular velocity
//! `(DRIVE cos(SPIN t), -DRIVE sin(SPIN t), TILT)` and v. Seen from a frame that turns along the axis stands still, so the
//! solution is a product of two rotations. A step is one scan: the Taylor coefficients of B at its start give those of A,
//! and their sum is A at its end. Backwards, the adjoints of all steps, one after another, give the gradient.

use plotters::prelude::*;
use pullback::ndarray::{Array2, Array3, ArrayD, Axis, Ix2, array};
use pullback::triconv::{Scan, Weights};
use std::error::Error;
use std::f64::consts::FRAC_PI_2;
use std::path::Path;

pub const DRIVE: f64 = 2.0;
const SPIN: f64 = 3.0;
const TILT: f64 = 1.2;

/// From time 0, in so many steps.
const END: f64 = 4.0;
pub const STEPS: usize = 8;

pub const ORDER: usize = 30;

/// The largest error of an entry at the end, by order.
pub fn errors() -> pullback::Result<Vec<(usize, f64)>> {
    let exact = closed_form(DRIVE);
    let error = |order: usize| Ok((order, largest(&(integrate(order, DRIVE)?.1 - &exact))));
    (2..=ORDER).map(error).collect()
}

/// The cross product with a vector, as a matrix.
fn cross([x, y, z]: [f64; 3]) -> Array2<f64> {
    array![[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]]
}

/// The rotation by a vector's length about it, by the formula of Rodrigues.
fn rotation(vector: [f64; 3]) -> Array2<f64> {
    let angle = vector.map(|x| x * x).iter().sum::<f64>().sqrt();
    let unit = cross(vector) / angle;
    Array2::eye(3) + &unit * angle.sin() + unit.dot(&unit) * (1.0 - angle.cos())
}

/// A at the end, from the unit matrix.
pub fn closed_form(drive: f64) -> Array2<f64> {
    rotation([drive * END, 0.0, (TILT - SPIN) * END]).dot(&rotation([0.0, 0.0, SPIN * END]))
}

/// (order, 3, 3): the Taylor coefficients of B at a time, with a step as the unit of time.
fn coefficients(order: usize, start: f64, drive: f64, tilt: f64) -> Array3<f64> {
    let step = END / STEPS as f64;
    let (mut b, mut scale) = (Array3::zeros((order, 3, 3)), step);
    for (k, mut matrix) in b.outer_iter_mut().enumerate() {
        let angle = SPIN * start + k as f64 * FRAC_PI_2;
        let upwards = if k == 0 { tilt * step } else { 0.0 };
        matrix.assign(&cross([drive * scale * angle.cos(), -drive * scale * angle.sin(), upwards]));
        scale *= SPIN * step / (k + 1) as f64;
    }
    b
}

/// The coefficients of A in every step, and A at the end.
pub fn integrate(order: usize, drive: f64) -> pullback::Result<(Vec<ArrayD<f64>>, Array2<f64>)> {
    let scan = Scan::<f64>::new(order, Weights::Taylor)?;
    let (mut steps, mut a) = (vec![], Array2::eye(3));
    for step in 0..STEPS {
        let b = coefficients(order, start_of(step), drive, TILT);
        let series = scan.forward(a.view(), b.view())?;
        a = series.sum_axis(Axis(0)).into_dimensionality::<Ix2>().expect("a matrix");
        steps.push(series);
    }
    Ok((steps, a))
}

/// The gradient of the sum of `weights` times A at the end, with respect to `DRIVE`.
pub fn gradient(weights: &Array2<f64>) -> pullback::Result<f64> {
    let scan = Scan::<f64>::new(ORDER, Weights::Taylor)?;
    let (mut gradient, mut grad_end) = (0.0, weights.clone().into_dyn());
    for (step, series) in integrate(ORDER, DRIVE)?.0.iter().enumerate().rev() {
        let b = coefficients(ORDER, start_of(step), DRIVE, TILT);
        // Every coefficient has the gradient of their sum.
        let grad_a = grad_end.broadcast(series.raw_dim()).expect("a matrix for each");
        let gradients = scan.adjoint(grad_a, series.view(), b.view())?;
        // B is linear in DRIVE.
        let slope = coefficients(ORDER, start_of(step), 1.0, 0.0);
        gradient += (gradients.grad_b * slope).sum();
        grad_end = gradients.grad_s.index_axis_move(Axis(0), 0);
    }
    Ok(gradient)
}

fn start_of(step: usize) -> f64 {
    END * step as f64 / STEPS as f64
}

pub fn largest(matrix: &Array2<f64>) -> f64 {
    matrix.iter().fold(0.0, |most, x| x.abs().max(most))
}

/// Errors by order, on a logarithmic axis.
pub fn draw(file: &Path, errors: &[(usize, f64)]) -> Result<(), Box<dyn Error>> {
    let area = SVGBackend::new(file, (640, 420)).into_drawing_area();
    area.fill(&WHITE)?;
    let mut builder = ChartBuilder::on(&area);
    builder.caption("A rotating frame by Taylor steps", ("sans-serif", 18)).margin(16);
    builder.x_label_area_size(36).y_label_area_size(64);
    let mut chart = builder.build_cartesian_2d(0..ORDER + 2, (1e-16..10.0).log_scale())?;
    chart.configure_mesh().x_desc("order").y_desc("largest error").y_label_formatter(&|y| format!("{y:.0e}")).draw()?;
    chart.draw_series(LineSeries::new(errors.iter().map(|&(order, error)| (order, error.max(1e-16))), &BLUE))?;
    area.present()?;
    Ok(())
}
