//! A cloud of points as a grid of occupied cells, its levels, and what a camera sees of it.
//!
//! `cargo run --release --example occupancy [cloud.csv] [--pictures DIR]` takes a scan of a made-up street, or the points of a
//! file, prints a table of levels, and looks at the grid from the middle of its upper edge. With a directory it writes `depth.png`:
//! near is bright, nothing is black. It exits with 1 where the levels change what a ray hits.
#![allow(clippy::print_stdout, reason = "printing is what an example is for")]

#[path = "tour/picture.rs"]
#[allow(dead_code, reason = "nothing is read or made up here")]
mod picture;
#[path = "tour/random.rs"]
#[allow(dead_code, reason = "the tour draws more kinds of numbers")]
mod random;
#[path = "tour/read.rs"]
#[allow(dead_code, reason = "the tour's tests read from memory")]
mod read;
#[path = "tour/scan.rs"]
mod scan;

use pullback::mipmap::{Hits, Pyramid};
use pullback::ndarray::{Array2, Array3, ArrayView2, Axis};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

/// Cells along the longest axis of the cloud.
const CELLS: usize = 512;

/// Rows and columns of the picture.
const PIXELS: [usize; 2] = [480, 640];

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("occupancy: {error}");
            ExitCode::from(2)
        }
    }
}

/// Whether rays hit the same with and without levels.
fn run() -> Result<bool, Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let directory = words.iter().position(|word| word == "--pictures").map(|at| words.drain(at..).nth(1));
    let points = match words.first() {
        Some(path) => read::file(Path::new(path)).map_err(|error| format!("{path}: {error}"))?.points,
        None => scan::scan(200_000, 1),
    };
    let pyramid = voxels(points.view())?;
    println!("level  size               occupied    share");
    for k in 0..pyramid.levels() {
        let level = pyramid.level(k)?;
        let ([x, y, z], count) = (level.shape(), level.count());
        let share = 100.0 * count as f64 / (x * y * z) as f64;
        println!("{k:5}  {:17} {count:9} {share:7.2} %", format!("{x} x {y} x {z}"));
    }
    let bits = 8.0 * pyramid.bytes() as f64 / pyramid.shape().iter().product::<usize>() as f64;
    println!("{bits:.3} bits a cell in all");

    let (origins, directions) = camera(&pyramid);
    let start = Instant::now();
    let hits = pyramid.raycast(origins.view(), directions.view(), f64::INFINITY)?;
    let seconds = start.elapsed().as_secs_f64();
    let seen = hits.t.iter().filter(|t| t.is_finite()).count();
    println!("{} rays in {:.1} ms, {seen} hit something", hits.t.len(), 1e3 * seconds);
    if let Some(directory) = directory {
        let directory = directory.ok_or("--pictures needs the name of a directory")?;
        picture::write(format!("{directory}/depth.png"), depth(&hits).view())?;
        println!("{directory}/depth.png is written");
    }
    check(&pyramid, &hits, (&origins, &directions))
}

/// The pyramid of the cells that hold a point.
fn voxels(points: ArrayView2<'_, f64>) -> Result<Pyramid, Box<dyn Error>> {
    let fold = |start: f64, f: fn(f64, f64) -> f64| points.fold_axis(Axis(0), start, |&a, &b| f(a, b));
    let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
    let longest = (&high - &low).fold(0.0, |a: f64, &b| a.max(b));
    let voxel = if longest > 0.0 { longest / (CELLS - 1) as f64 } else { 1.0 };
    let shape = [0, 1, 2].map(|axis| ((high[axis] - low[axis]) / voxel) as usize + 1);
    let (pyramid, outside) = Pyramid::from_points(points, [low[0], low[1], low[2]], voxel, shape)?;
    println!("{} points in cells of {voxel:.3}, {outside} outside", points.nrows());
    Ok(pyramid)
}

/// Rays from above the middle of the edge x = 0, down and along x.
fn camera(pyramid: &Pyramid) -> (Array2<f64>, Array2<f64>) {
    let mapping = pyramid.mapping().expect("a grid of points");
    let extent = pyramid.shape().map(|n| mapping.voxel * n as f64);
    let eye = [0.25 * extent[0], 0.5 * extent[1], extent[2] + 0.05 * extent[0]];
    let count = PIXELS[0] * PIXELS[1];
    let origins = Array2::from_shape_fn((count, 3), |(_, axis)| mapping.origin[axis] + eye[axis]);
    let directions = Array2::from_shape_fn((count, 3), |(ray, axis)| {
        let (row, column) = ((ray / PIXELS[1]) as f64, (ray % PIXELS[1]) as f64);
        match axis {
            0 => 1.0,
            1 => (PIXELS[1] as f64 / 2.0 - column - 0.5) / 400.0,
            _ => (PIXELS[0] as f64 / 3.0 - row - 0.5) / 400.0 - 0.2,
        }
    });
    (origins, directions)
}

/// How near each hit is.
fn depth(hits: &Hits) -> Array3<f32> {
    let far = hits.t.iter().copied().filter(|t| t.is_finite()).fold(1.0, f64::max);
    Array3::from_shape_fn((PIXELS[0], PIXELS[1], 1), |(row, column, _)| {
        let t = hits.t[row * PIXELS[1] + column];
        if t.is_finite() { (1.0 - 0.9 * (t / far).sqrt()) as f32 } else { 0.0 }
    })
}

/// Compares some hits with the walk over every cell.
fn check(
    pyramid: &Pyramid,
    hits: &Hits,
    (origins, directions): (&Array2<f64>, &Array2<f64>),
) -> Result<bool, Box<dyn Error>> {
    let ground = pyramid.level(0)?;
    let mut right = true;
    for ray in (0..hits.t.len()).step_by(997) {
        let three = |array: &Array2<f64>| [0, 1, 2].map(|axis| array[[ray, axis]]);
        let mut t = f64::INFINITY;
        for visit in pyramid.cells(three(origins), three(directions), f64::INFINITY)? {
            if ground.get(visit.cell)? {
                t = visit.t;
                break;
            }
        }
        right &= t == hits.t[ray];
    }
    println!("the walk over every cell hits {}", if right { "the same" } else { "something else" });
    Ok(right)
}
