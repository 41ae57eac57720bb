//! Scattered samples interpolated to a grid, with a check of all gradients.
//!
//! `cargo run --release --example interpolate [samples.csv [column]] [--picture grid.png]` takes samples of a made-up field,
//! or those of a file: a line of names, then x, y and values on each line, of which the third or the named column is
//! interpolated. It exits with 1 where a gradient is wrong.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[allow(dead_code, reason = "nothing is read or made up here")]
#[path = "tour/picture.rs"]
mod picture;
#[allow(dead_code, reason = "the tour draws more kinds of numbers")]
#[path = "tour/random.rs"]
mod random;

use pullback::kdtree::{Interpolate, KdTree};
use pullback::ndarray::{Array2, ArrayView2, Axis, aview1, s};
use random::Random;
use std::error::Error;
use std::fs::read_to_string;
use std::process::ExitCode;

/// Neighbours of a cell, the power of their distance, and cells along the longer side.
const K: usize = 8;
const POWER: f64 = 2.0;
const CELLS: usize = 240;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("interpolate: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether the gradients are right.
fn run() -> Result<bool, Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let picture = words.iter().position(|word| word == "--picture").map(|at| words.drain(at..).nth(1));
    // (N, 3): x, y and the value.
    let samples = match words.first() {
        None => made_up(300),
        Some(path) => read(path, words.get(1).map(String::as_str))?,
    };
    let (points, values) = (samples.slice(s![.., ..2]), samples.slice(s![.., 2..]));

    // The centres of square cells, the first row at the top.
    let low = points.fold_axis(Axis(0), f64::INFINITY, |a, &b| a.min(b));
    let size = points.fold_axis(Axis(0), f64::NEG_INFINITY, |a, &b| a.max(b)) - &low;
    let cell = size[0].max(size[1]) / CELLS as f64;
    let (width, height) = ((size[0] / cell).ceil() as usize, (size[1] / cell).ceil() as usize);
    let grid = Array2::from_shape_fn((width * height, 2), |(at, axis)| {
        let steps = if axis == 0 { at % width } else { height - 1 - at / width };
        low[axis] + (steps as f64 + 0.5) * cell
    });

    let tree = KdTree::<f64, 2>::new(points)?;
    let at = Interpolate::new(&tree, K, POWER, 0.0)?.at(grid.view())?;
    let field = at.forward(values)?;
    let (least, most) = (field.fold(f64::INFINITY, |a, &b| a.min(b)), field.fold(f64::NEG_INFINITY, |a, &b| a.max(b)));
    println!("{} samples on a grid of {width} x {height} cells: {least:.3} to {most:.3}", samples.nrows());

    // A few cells: a field of nearest neighbours jumps where they change, and a difference must not step over a jump.
    let few = grid.slice(s![..;(grid.nrows() / 50).max(1), ..]);
    let right = check(points, values, few, cell)?;
    if let Some(path) = picture {
        let path = path.ok_or("--picture needs the name of a file")?;
        picture::write(&path, picture::shaded(&field.into_shape_with_order((height, width))?).view())?;
        println!("{path} is written");
    }
    Ok(right)
}

/// The gradient of half the sum of squares of the interpolated values, against central differences along a random
/// direction of values, queries and points. `cell` is what a position is measured in.
fn check(
    points: ArrayView2<'_, f64>,
    values: ArrayView2<'_, f64>,
    queries: ArrayView2<'_, f64>,
    cell: f64,
) -> pullback::Result<bool> {
    let loss = |[values, queries, points]: &[Array2<f64>; 3]| -> pullback::Result<f64> {
        let tree = KdTree::<f64, 2>::new(points.view())?;
        let y = Interpolate::new(&tree, K, POWER, 0.0)?.forward(values.view(), queries.view())?;
        Ok(0.5 * y.mapv(|y| y * y).sum())
    };
    let tree = KdTree::<f64, 2>::new(points)?;
    let at = Interpolate::new(&tree, K, POWER, 0.0)?.at(queries)?;
    let gradients = at.adjoint(at.forward(values)?.view(), values)?;
    let gradients = [gradients.grad_values, gradients.grad_queries, gradients.grad_points];

    let variables = [values.to_owned(), queries.to_owned(), points.to_owned()];
    let steps = [1e-6 * values.fold(0.0, |most: f64, value| most.max(value.abs())), 1e-6 * cell, 1e-6 * cell];
    let (mut random, mut right) = (Random::new(2), true);
    for (which, name) in ["values", "queries", "points"].into_iter().enumerate() {
        let direction = variables[which].mapv(|_| random.signed());
        let moved = |step: f64| {
            let mut moved = variables.clone();
            moved[which].scaled_add(step, &direction);
            loss(&moved)
        };
        let difference = (moved(steps[which])? - moved(-steps[which])?) / (2.0 * steps[which]);
        let slope = (&gradients[which] * &direction).sum();
        let error = (slope - difference).abs() / gradients[which].mapv(|g| g * g).sum().sqrt().max(f64::MIN_POSITIVE);
        let verdict = if error < 1e-4 { "right" } else { "WRONG" };
        println!("gradient to {name:7}: {slope:+.6e}, by differences {difference:+.6e}, error {error:.0e}, {verdict}");
        right &= error < 1e-4;
    }
    Ok(right)
}

/// Samples of hills at random places.
fn made_up(count: usize) -> Array2<f64> {
    let mut random = Random::new(1);
    let mut samples = Array2::from_shape_simple_fn((count, 3), || random.unit());
    for mut sample in samples.outer_iter_mut() {
        sample[2] = (7.0 * sample[0]).sin() * (5.0 * sample[1]).cos() + sample[0];
    }
    samples
}

/// The first two columns of a file and a third one.
fn read(path: &str, column: Option<&str>) -> Result<Array2<f64>, Box<dyn Error>> {
    let text = read_to_string(path)?;
    let mut lines =
        text.lines().map(|line| line.split(',').map(|word| word.trim().trim_matches('"')).collect::<Vec<_>>());
    let names = lines.next().ok_or("an empty file")?;
    let third = match column {
        None => 2,
        Some(name) => names.iter().position(|other| *other == name).ok_or("no column of this name")?,
    };
    let mut samples = Array2::zeros((0, 3));
    for words in lines.filter(|words| words.len() == names.len() && third < words.len()) {
        let sample = [words[0].parse::<f64>()?, words[1].parse()?, words[third].parse()?];
        samples.push_row(aview1(&sample))?;
    }
    if samples.nrows() < 2 { Err("fewer than two samples".into()) } else { Ok(samples) }
}
