//! A photograph blurred with a kernel a pixel: a field that turns around the middle and stretches towards the edges.
//!
//! `cargo run --release --example variable_blur [photo.png] [--pictures DIR]` blurs a made-up picture, or that of a file, checks
//! both gradients, and writes `blurred.png` and `kernels.png` into the directory. It exits with 1 where a gradient is wrong.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[path = "tour/picture.rs"]
#[allow(dead_code, reason = "colours are for fields of numbers")]
mod picture;
#[allow(dead_code, reason = "the tour draws more kinds of numbers")]
#[path = "tour/random.rs"]
mod random;

use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Parameters};
use pullback::ndarray::{Array3, Array4, Axis, s};
use random::Random;
use std::error::Error;
use std::process::ExitCode;

/// Samples of a kernel along an axis.
const K: usize = 21;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("variable_blur: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the gradients are right.
fn run() -> Result<bool, Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let directory = words.iter().position(|word| word == "--pictures").map(|at| words.drain(at..).nth(1));
    let photo = words.first().map_or_else(|| Ok(picture::made_up(256, 384)), |path| picture::read(path))?;
    let (height, width, channels) = photo.dim();
    // (B, H, W, C) and (B, H, W, 3).
    let image = photo.insert_axis(Axis(0));
    let shapes = field(height, width);

    let blur = Blur::<f32>::new(K, Centre::Middle, Border::Reflect, 1)?.with_parameters(Parameters::Sigmas);
    let blurred = blur.forward(image.view(), shapes.view())?;
    println!("{height} x {width} pixels, {channels} channels, a kernel of {K} x {K} each");
    println!("mean {:.4} before, {:.4} after", mean(&image), mean(&blurred));

    // In f64, on a part, where differences are good to many digits.
    let part = s![.., ..height.min(24), ..width.min(24), ..];
    let right = check(&image.slice(part).mapv(f64::from), &shapes.slice(part).mapv(f64::from))?;
    if let Some(directory) = directory {
        let directory = directory.ok_or("--pictures needs the name of a directory")?;
        picture::write(format!("{directory}/blurred.png"), blurred.index_axis(Axis(0), 0))?;
        picture::write(format!("{directory}/kernels.png"), kernels(&shapes)?.view())?;
        println!("{directory}/blurred.png and kernels.png are written");
    }
    Ok(right)
}

fn mean(image: &Array4<f32>) -> f32 {
    image.mean().unwrap_or(0.0)
}

/// (1, H, W, 3) standard deviations and angles: long across the direction to the middle, the more the further away.
fn field(height: usize, width: usize) -> Array4<f32> {
    let (middle, half) = ([height as f32 / 2.0, width as f32 / 2.0], (height.max(width) as f32 / 2.0).max(1.0));
    Array4::from_shape_fn((1, height, width, 3), |(_, row, column, number)| {
        let (y, x) = (row as f32 + 0.5 - middle[0], column as f32 + 0.5 - middle[1]);
        match number {
            0 => 0.5 + 4.0 * x.hypot(y) / half,
            1 => 0.5,
            _ => y.atan2(x) + std::f32::consts::FRAC_PI_2,
        }
    })
}

/// Every 32nd kernel, each with its greatest weight white.
fn kernels(shapes: &Array4<f32>) -> pullback::Result<Array3<f32>> {
    let few = shapes.slice(s![0, 16..;32, 16..;32, ..]);
    let maps = KernelMaps::<f32>::new(K, Centre::Middle)?.with_parameters(Parameters::Sigmas).forward(few)?;
    let (rows, columns) = (few.shape()[0], few.shape()[1]);
    let greatest = |row, column| maps.slice(s![row, column, .., ..]).iter().fold(0f32, |a, &b| a.max(b));
    Ok(Array3::from_shape_fn((rows * K, columns * K, 1), |(y, x, _)| {
        maps[[y / K, x / K, y % K, x % K]] / greatest(y / K, x / K)
    }))
}

/// The gradients of half the sum of squares of the blurred image, against central differences along random directions.
fn check(image: &Array4<f64>, shapes: &Array4<f64>) -> pullback::Result<bool> {
    let blur = Blur::<f64>::new(K, Centre::Middle, Border::Reflect, 1)?.with_parameters(Parameters::Sigmas);
    let loss = |image: &Array4<f64>, shapes: &Array4<f64>| -> pullback::Result<f64> {
        Ok(0.5 * blur.forward(image.view(), shapes.view())?.mapv(|y| y * y).sum())
    };
    let blurred = blur.forward(image.view(), shapes.view())?;
    // The gradient of half a sum of squares is what is squared.
    let gradients = blur.adjoint(blurred.view(), image.view(), shapes.view())?;
    let grad_shapes = gradients.grad_shapes.into_dimensionality().expect("as the shapes");

    let (mut random, mut right, step) = (Random::new(3), true, 1e-5);
    for (name, gradient) in [("image", gradients.grad_image), ("shapes", grad_shapes)] {
        let direction = gradient.mapv(|_| random.signed());
        let moved = |step: f64| {
            let (mut image, mut shapes) = (image.clone(), shapes.clone());
            if name == "image" { &mut image } else { &mut shapes }.scaled_add(step, &direction);
            loss(&image, &shapes)
        };
        let difference = (moved(step)? - moved(-step)?) / (2.0 * step);
        let slope = (&gradient * &direction).sum();
        let error = (slope - difference).abs() / gradient.mapv(|g| g * g).sum().sqrt().max(f64::MIN_POSITIVE);
        let verdict = if error < 1e-6 { "right" } else { "WRONG" };
        println!("gradient to {name:6}: {slope:+.9e}, by differences {difference:+.9e}, error {error:.0e}, {verdict}");
        right &= error < 1e-6;
    }
    Ok(right)
}
