//! A scan of a made-up street by a spinning range finder: near surfaces are dense, far ones sparse, and every range is a
//! little wrong, as in a real one.

use super::random::Random;
use pullback::ndarray::Array2;
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
    /// An upright cylinder standing on the ground, open above: its axis, radius, height.
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

/// The first `count` returns, (count, 3) in metres.
pub fn scan(count: usize, seed: u64) -> Array2<f64> {
    let mut random = Random::new(seed);
    // One turn sends `count` pulses; a second one, at its own angles, replaces those that did not return.
    let columns = count.div_ceil(BEAMS) as f64;
    let [low, high] = ELEVATION.map(f64::to_radians);
    let mut coordinates = Vec::with_capacity(3 * count);
    for pulse in 0.. {
        if coordinates.len() == 3 * count {
            break;
        }
        let (column, beam) = (pulse / BEAMS, pulse % BEAMS);
        let (sin, cos) = (TAU * (column as f64 + 0.3 * random.unit()) / columns).sin_cos();
        let (up, level) = (low + (high - low) * beam as f64 / (BEAMS - 1) as f64).sin_cos();
        let direction = [level * cos, level * sin, up];
        let range = STREET.iter().map(|shape| shape.range(direction)).fold(f64::INFINITY, f64::min);
        if range < REACH && random.unit() >= LOST {
            let range = range + NOISE * random.normal();
            coordinates.extend((0..3).map(|axis| SENSOR[axis] + range * direction[axis]));
        }
    }
    Array2::from_shape_vec((count, 3), coordinates).expect("three coordinates a point")
}

impl Shape {
    /// How far a ray of unit `direction` runs from the sensor to the shape, +inf where it misses.
    fn range(&self, direction: [f64; 3]) -> f64 {
        let [dx, dy, dz] = direction;
        match *self {
            Ground => {
                let range = -SENSOR[2] / dz;
                if range > 0.0 { range } else { f64::INFINITY }
            }
            Block(corner, extent) => {
                let corner = [corner[0], corner[1], 0.0];
                let (mut enter, mut leave) = (0.0, f64::INFINITY);
                for axis in 0..3 {
                    let near = (corner[axis] - SENSOR[axis]) / direction[axis];
                    let far = (corner[axis] + extent[axis] - SENSOR[axis]) / direction[axis];
                    enter = near.min(far).max(enter);
                    leave = near.max(far).min(leave);
                }
                if enter < leave { enter } else { f64::INFINITY }
            }
            Pole([x, y], radius, height) => {
                let range = first_root([SENSOR[0] - x, SENSOR[1] - y, 0.0], [dx, dy, 0.0], radius);
                if (0.0..height).contains(&(SENSOR[2] + range * dz)) { range } else { f64::INFINITY }
            }
            Ball([x, y, z], radius) => first_root([SENSOR[0] - x, SENSOR[1] - y, SENSOR[2] - z], direction, radius),
        }
    }
}

/// The smaller t with |offset + t direction| = radius, +inf where there is none ahead.
fn first_root(offset: [f64; 3], direction: [f64; 3], radius: f64) -> f64 {
    let dot = |a: [f64; 3], b: [f64; 3]| a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    let (a, b, c) = (dot(direction, direction), dot(offset, direction), dot(offset, offset) - radius * radius);
    let t = (-b - (b * b - a * c).sqrt()) / a;
    if t > 0.0 { t } else { f64::INFINITY }
}
