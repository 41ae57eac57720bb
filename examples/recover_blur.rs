//! How was this photograph blurred? A field of kernels recovered from the blurred and the sharp picture.
//!
//! `cargo run --release --example recover_blur [photo.png] [--pictures DIR]` blurs a made-up picture, or the middle of a
//! file's, with a kernel a block of pixels, forgets the kernels, and finds them again by gradient descent, printing the
//! loss. `blurred.png` and `recovered.png` are written into the directory. It exits with 1 where the loss does not fall to a
//! hundredth.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[path = "tour/picture.rs"]
#[allow(dead_code, reason = "colours are for fields of numbers")]
mod picture;

use pullback::gaussian::{Blur, Border, Centre};
use pullback::ndarray::{Array4, Array5, Axis, s};
use std::error::Error;
use std::process::ExitCode;

/// Samples of a kernel along an axis.
const K: usize = 15;

/// Pixels of a block and of the picture, along an axis.
const BLOCK: usize = 32;
const SIDE: usize = 128;

const STEPS: usize = 200;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("recover_blur: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the kernels were found.
fn run() -> Result<bool, Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let directory = words.iter().position(|word| word == "--pictures").map(|at| words.drain(at..).nth(1));
    let photo = words.first().map_or_else(|| Ok(picture::made_up(SIDE, SIDE)), |path| picture::read(path))?;
    let (height, width) = (photo.dim().0.min(SIDE), photo.dim().1.min(SIDE));
    let (top, left) = ((photo.dim().0 - height) / 2, (photo.dim().1 - width) / 2);
    let sharp = photo.slice_move(s![top..top + height, left..left + width, ..]).insert_axis(Axis(0));
    let blocks = (height.div_ceil(BLOCK), width.div_ceil(BLOCK));

    // The factor M of each block's precision: any matrix is a kernel, so descent needs no constraint.
    let hidden = Array4::from_shape_fn((blocks.0, blocks.1, 2, 2), |(row, column, i, j)| {
        let (turn, along, across) = (0.7 * row as f32 + 0.5 * column as f32, 0.35 + 0.05 * column as f32, 0.9);
        let (sin, cos) = turn.sin_cos();
        [[along * cos, along * sin], [-across * sin, across * cos]][i][j]
    });
    let blur = Blur::<f32>::new(K, Centre::Middle, Border::Reflect, 1)?;
    let blurred = blur.forward(sharp.view(), spread(&hidden, height, width).view())?;

    // Round kernels to start with, and a step a number that adapts to the gradients it has seen (Adam).
    let mut found =
        Array4::from_shape_fn(hidden.dim(), |(_, _, i, j)| if i == j { 0.7 } else { 0.05 * (i as f32 - j as f32) });
    let (mut first, mut second) = (Array4::<f32>::zeros(hidden.dim()), Array4::<f32>::zeros(hidden.dim()));
    let (mut before, mut after) = (0.0, 0.0);
    for step in 0..=STEPS {
        let shapes = spread(&found, height, width);
        let difference = blur.forward(sharp.view(), shapes.view())? - &blurred;
        after = difference.mapv(|d| f64::from(d * d)).mean().unwrap_or(0.0);
        if step == 0 {
            before = after;
        }
        if step % 25 == 0 {
            println!("step {step:3}: mean square error {after:.3e}");
        }
        let gradients = blur.adjoint(difference.view(), sharp.view(), shapes.view())?;
        let gradient = gathered(&gradients.grad_shapes.into_dimensionality().expect("as the shapes"), &found);
        first = &first * 0.9 + &gradient * 0.1;
        second = &second * 0.99 + gradient.mapv(|g| 0.01 * g * g);
        let correction = ((1.0 - 0.99f32.powi(step as i32 + 1)).sqrt(), 1.0 - 0.9f32.powi(step as i32 + 1));
        let rate = 0.03 * 0.1f32.powf(step as f32 / STEPS as f32);
        found.zip_mut_with(&(&first / &second.mapv(|v| v.sqrt() + 1e-12)), |found, direction| {
            *found -= rate * direction * correction.0 / correction.1;
        });
    }
    println!("the error has fallen by a factor of {:.0}", before / after);
    if let Some(directory) = directory {
        let directory = directory.ok_or("--pictures needs the name of a directory")?;
        let again = blur.forward(sharp.view(), spread(&found, height, width).view())?;
        picture::write(format!("{directory}/blurred.png"), blurred.index_axis(Axis(0), 0))?;
        picture::write(format!("{directory}/recovered.png"), again.index_axis(Axis(0), 0))?;
        println!("{directory}/blurred.png and recovered.png are written");
    }
    Ok(after < before / 100.0)
}

/// (1, H, W, 2, 2): the kernel of each pixel is that of its block.
fn spread(blocks: &Array4<f32>, height: usize, width: usize) -> Array5<f32> {
    Array5::from_shape_fn((1, height, width, 2, 2), |(_, row, column, i, j)| {
        blocks[[row / BLOCK, column / BLOCK, i, j]]
    })
}

/// The transpose of [`spread`]: the gradient of a block is the sum of its pixels'.
fn gathered(pixels: &Array5<f32>, like: &Array4<f32>) -> Array4<f32> {
    let mut blocks = Array4::zeros(like.dim());
    for ((_, row, column, i, j), gradient) in pixels.indexed_iter() {
        blocks[[row / BLOCK, column / BLOCK, i, j]] += gradient;
    }
    blocks
}
