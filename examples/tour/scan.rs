//! A scan of a made-up street by a spinning range finder, whose pulses are rays through a grid of occupied cells: near
//! surfaces are dense, far ones sparse, and every range is a little wrong, as in a real one.

use super::random::Random;
use pullback::mipmap::Pyramid;
use pullback::ndarray::{Array2, arr1};
use std::f64::consts::TAU;

/// Where the scanner stands, in metres: at the origin, above a car's roof.
const SENSOR: [f64; 3] = [0.0, 0.0, 1.9];

/// Lasers, one above the other.
const BEAMS: usize = 64;

/// The angles of the lowest and the highest laser above the horizon, in degrees.
const ELEVATION: [f64; 2] = [-25.0, 12.0];

/// What lies farther away, in metres, returns no light.
const REACH: f64 = 80.0;

/// The standard deviation of a range, in metres.
const NOISE: f64 = 0.02;

/// The part of the returns that is lost.
const LOST: f64 = 0.02;

enum Shape {
    Ground,
    /// A block standing on the ground: its corner, its extent in x, y and z.
    Block([f64; 2], [f64; 3]),
    /// An upright cylinder standing on the ground: its axis, radius, height.
    Pole([f64; 2], f64, f64),
    Ball([f64; 3], f64),
}

use Shape::{Ball, Block, Ground, Pole};

/// A road along x with houses, parked cars, trees and lamps.
const STREET: [Shape; 18] = [
    Ground,
    Block([-40.0, 9.0], [26.0, 10.0, 7.0]),
    Block([-9.0, 10.0], [14.0, 9.0, 9.0]),
    Block([9.0, 9.0], [30.0, 12.0, 6.0]),
    Block([-35.0, -21.0], [20.0, 11.0, 8.0]),
    Block([-8.0, -19.0], [12.0, 10.0, 6.0]),
    Block([12.0, -22.0], [25.0, 12.0, 10.0]),
    Block([3.0, 3.2], [4.3, 1.8, 1.5]),
    Block([-9.0, 3.1], [4.0, 1.7, 1.4]),
    Block([8.5, -5.0], [5.2, 2.0, 2.1]),
    Block([-16.0, -5.0], [4.4, 1.8, 1.5]),
    Pole([6.5, 6.5], 0.2, 3.0),
    Ball([6.5, 6.5, 4.2], 1.7),
    Pole([-12.5, 6.8], 0.25, 3.2),
    Ball([-12.5, 6.8, 4.6], 2.0),
    Pole([-4.0, -6.5], 0.1, 6.5),
    Pole([20.0, -6.5], 0.1, 6.5),
    Pole([20.0, 6.5], 0.1, 6.5),
];

/// The length of a cell of the street, in metres.
const VOXEL: f64 = 0.2;

/// Where the grid of the street starts: a layer of ground below 0.
const ORIGIN: [f64; 3] = [-REACH, -REACH, -VOXEL];

/// Cells of the grid.
const CELLS: [usize; 3] = [800, 800, 64];

/// Pulses that are sent together.
const BATCH: usize = 1 << 16;

/// The first `count` returns, (count, 3) in metres.
pub fn scan(count: usize, seed: u64) -> Array2<f64> {
    let mut random = Random::new(seed);
    let street = street().expect("a grid of this size");
    // One turn sends `count` pulses; a second one, at its own angles, replaces those that did not return.
    let columns = count.div_ceil(BEAMS) as f64;
    let [low, high] = ELEVATION.map(f64::to_radians);
    let mut coordinates = Vec::with_capacity(3 * count);
    let mut pulse = 0;
    while coordinates.len() < 3 * count {
        let sent = count.min(BATCH);
        let mut directions = Array2::zeros((sent, 3));
        for mut direction in directions.outer_iter_mut() {
            let (column, beam) = (pulse / BEAMS, pulse % BEAMS);
            let (sin, cos) = (TAU * (column as f64 + 0.3 * random.unit()) / columns).sin_cos();
            let (up, level) = (low + (high - low) * beam as f64 / (BEAMS - 1) as f64).sin_cos();
            direction.assign(&arr1(&[level * cos, level * sin, up]));
            pulse += 1;
        }
        // Directions have length 1, so that t is in metres.
        let origins = Array2::from_shape_fn((sent, 3), |(_, axis)| SENSOR[axis]);
        let hits = street.raycast(origins.view(), directions.view(), REACH).expect("finite rays");
        for (&range, direction) in hits.t.iter().zip(directions.outer_iter()) {
            if range < REACH && random.unit() >= LOST && coordinates.len() < 3 * count {
                let range = range + NOISE * random.normal();
                coordinates.extend((0..3).map(|axis| SENSOR[axis] + range * direction[axis]));
            }
        }
    }
    Array2::from_shape_vec((count, 3), coordinates).expect("three coordinates a point")
}

/// The street as a grid.
fn street() -> pullback::Result<Pyramid> {
    let mut street = Pyramid::empty(CELLS)?.with_mapping(ORIGIN, VOXEL)?;
    for shape in &STREET {
        shape.fill(&mut street)?;
    }
    Ok(street)
}

impl Shape {
    /// Occupies the cells of a shape: of a round one, those whose middles lie in it.
    fn fill(&self, street: &mut Pyramid) -> pullback::Result<()> {
        match *self {
            Ground => street.set_box([0; 3], [CELLS[0], CELLS[1], 1], true),
            Block([x, y], [dx, dy, dz]) => {
                let (lo, hi) = cells([x, y, 0.0], [x + dx, y + dy, dz]);
                street.set_box(lo, hi, true)
            }
            Pole([x, y], radius, height) => {
                let (lo, hi) = cells([x - radius, y - radius, 0.0], [x + radius, y + radius, height]);
                fill_round(street, (lo, hi), |p| (p[0] - x).hypot(p[1] - y) < radius)
            }
            Ball([x, y, z], radius) => {
                let (lo, hi) = cells([x, y, z].map(|x| x - radius), [x, y, z].map(|x| x + radius));
                fill_round(street, (lo, hi), |p| (p[0] - x).hypot(p[1] - y).hypot(p[2] - z) < radius)
            }
        }
    }
}

/// The cells that a box of the world touches.
fn cells(low: [f64; 3], high: [f64; 3]) -> ([usize; 3], [usize; 3]) {
    let index = |axis: usize, x: f64| ((x - ORIGIN[axis]) / VOXEL).round() as usize;
    ([0, 1, 2].map(|axis| index(axis, low[axis])), [0, 1, 2].map(|axis| index(axis, high[axis]).min(CELLS[axis])))
}

fn fill_round(
    street: &mut Pyramid,
    (lo, hi): ([usize; 3], [usize; 3]),
    holds: impl Fn([f64; 3]) -> bool,
) -> pullback::Result<()> {
    for x in lo[0]..hi[0] {
        for y in lo[1]..hi[1] {
            for z in lo[2]..hi[2] {
                let cell = [x, y, z];
                if holds([0, 1, 2].map(|axis| ORIGIN[axis] + VOXEL * (cell[axis] as f64 + 0.5))) {
                    street.set(cell)?;
                }
            }
        }
    }
    Ok(())
}
