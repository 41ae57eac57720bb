//! A differential equation by Taylor steps of order 30: a rotating frame beside its closed form, and the gradient of where it
//! ends. The computation itself is `tour/rotation.rs`.
//!
//! `cargo run --release --example taylor_ode [--plot FILE]` prints errors, and draws them against the order into an SVG file. It
//! exits with 1 where the solution or the gradient is wrong.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[path = "tour/rotation.rs"]
mod rotation;

use pullback::ndarray::array;
use rotation::{DRIVE, ORDER, closed_form, draw, errors, gradient};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("taylor_ode: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the solution and its gradient are right.
fn run() -> Result<bool, Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let plot = words.find(|word| word == "--plot").map(|_| words.next().ok_or("--plot needs the name of a file"));
    let (plot, errors) = (plot.transpose()?, errors()?);
    for (order, error) in errors.iter().filter(|(order, _)| order % 4 == 2) {
        println!("order {order:2}: off by {error:.1e}");
    }
    let error = errors[ORDER - 2].1;

    // The loss is a weighted sum of the entries at the end, and its slope that of the closed form.
    let weights = array![[0.3, -1.0, 0.2], [0.8, 0.5, -0.7], [-0.4, 0.1, 0.9]];
    let found = gradient(&weights)?;
    let step = 1e-5;
    let differences = (closed_form(DRIVE + step) - closed_form(DRIVE - step)) / (2.0 * step);
    let expected = (weights * differences).sum();
    println!("gradient to DRIVE: {found:.10}, by differences {expected:.10}");

    if let Some(file) = plot {
        draw(Path::new(&file), &errors)?;
        println!("{file} is written");
    }
    Ok(error < 1e-13 && (found - expected).abs() < 1e-8)
}
