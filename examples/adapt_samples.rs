//! Where to measure: samples of a field move by gradient descent until what is interpolated between them is near the field.
//!
//! A sample carries the value of the field at its place. The loss is half the mean square of the error on a grid; a sample
//! acts on it by its place and by its value, so its gradient is that to the points of the tree and, through the slope of the
//! field, that to the values.
//!
//! `cargo run --release --example adapt_samples` prints the loss, and exits with 1 where it does not fall to a quarter.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[allow(dead_code, reason = "the tour draws more kinds of numbers")]
#[path = "tour/random.rs"]
mod random;

use pullback::kdtree::{Interpolate, KdTree};
use pullback::ndarray::{Array2, ArrayView1, ArrayView2};
use random::Random;
use std::process::ExitCode;

/// Samples, cells along a side of the grid, neighbours of a cell.
const SAMPLES: usize = 120;
const CELLS: usize = 64;
const K: usize = 6;
const POWER: f64 = 3.0;
/// Where a sample lies on a cell, this keeps the weights smooth.
const EPS: f64 = 1e-6;

const STEPS: usize = 150;
const RATE: f64 = 1e-3;
/// The farthest that a sample moves in a step.
const STRIDE: f64 = 0.004;

fn main() -> pullback::Result<ExitCode> {
    let mut random = Random::new(1);
    let mut samples = Array2::from_shape_simple_fn((SAMPLES, 2), || random.unit());
    let grid = Array2::from_shape_fn((CELLS * CELLS, 2), |(cell, axis)| {
        let step = if axis == 0 { cell % CELLS } else { cell / CELLS };
        (step as f64 + 0.5) / CELLS as f64
    });
    let target = values(grid.view());

    let (first, _) = loss(&samples, &grid, &target)?;
    let mut best = first;
    for step in 0..=STEPS {
        let (loss, gradient) = loss(&samples, &grid, &target)?;
        best = best.min(loss);
        if step % 15 == 0 {
            println!("step {step:3}: loss {loss:.3e}");
        }
        // The mean over cells makes gradients small; a sample's own share of the cells does not.
        samples.zip_mut_with(&gradient, |x, g| {
            *x = (*x - (RATE * (CELLS * CELLS) as f64 * g).clamp(-STRIDE, STRIDE)).clamp(0.0, 1.0);
        });
    }
    println!("the least is {:.3} of the first", best / first);
    Ok(if best < first / 4.0 { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The loss and its gradient to the samples (N, 2).
fn loss(samples: &Array2<f64>, grid: &Array2<f64>, target: &Array2<f64>) -> pullback::Result<(f64, Array2<f64>)> {
    let tree = KdTree::<f64, 2>::new(samples.view())?;
    let at = Interpolate::new(&tree, K, POWER, EPS)?.at(grid.view())?;
    let carried = values(samples.view());
    let error = at.forward(carried.view())? - target;
    let loss = 0.5 * error.mapv(|e| e * e).mean().expect("cells");

    let grad_y = &error / error.len() as f64;
    let gradients = at.adjoint(grad_y.view(), carried.view())?;
    let mut gradient = gradients.grad_points;
    for ((mut gradient, sample), grad_value) in
        gradient.outer_iter_mut().zip(samples.outer_iter()).zip(&gradients.grad_values)
    {
        for (g, slope) in gradient.iter_mut().zip(slope(sample)) {
            *g += grad_value * slope;
        }
    }
    Ok((loss, gradient))
}

/// The field: a front across the square, steep along a circle.
fn field(place: ArrayView1<'_, f64>) -> f64 {
    (12.0 * (radius(place) - 0.7)).tanh()
}

/// The slope of the field.
fn slope(place: ArrayView1<'_, f64>) -> [f64; 2] {
    let (r, value) = (radius(place).max(f64::MIN_POSITIVE), field(place));
    let steep = 12.0 * (1.0 - value * value) / r;
    [steep * place[0], steep * place[1]]
}

fn radius(place: ArrayView1<'_, f64>) -> f64 {
    place.dot(&place).sqrt()
}

/// (rows, 1) the field at these places.
fn values(places: ArrayView2<'_, f64>) -> Array2<f64> {
    Array2::from_shape_fn((places.nrows(), 1), |(row, _)| field(places.row(row)))
}
