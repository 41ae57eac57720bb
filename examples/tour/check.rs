//! Whether what the library returned is right, by means that share nothing with it.

use super::random::Random;
use super::smooth::sum;
use pullback::mipmap::Hits;
use pullback::ndarray::{Array, Array2, ArrayD, ArrayView2, ArrayView3, Axis, Dimension, s};
use rayon::prelude::*;
use std::collections::HashSet;

/// Rows that are compared one by one.
const SAMPLE: usize = 200;

/// The largest relative error where nothing but rounding is left, which is less than 1e-15 of the identity.
const TOLERANCE: f64 = 1e-12;

/// The largest relative error of a slope by differences of a loss that is not quadratic.
const DIFFERENCES: f64 = 1e-7;

/// The outcome of a check.
pub struct Check {
    pub passed: bool,
    pub detail: String,
}

impl Check {
    /// That a difference is nothing but rounding beside `scale`.
    pub fn close(name: &str, difference: f64, scale: f64) -> Self {
        Self::near(name, difference, scale, TOLERANCE)
    }

    /// That a difference is at most `tolerance` beside `scale`.
    pub fn near(name: &str, difference: f64, scale: f64, tolerance: f64) -> Self {
        let error = difference.abs() / scale.max(f64::MIN_POSITIVE);
        let detail = format!("{name}, relative error {error:.1e}, at most {tolerance:.0e}");
        Self { passed: error <= tolerance, detail }
    }

    /// That no sampled row of `rows` has anything to say.
    fn sampled(rows: usize, against: &str, complaint: impl Fn(usize) -> Option<String> + Sync) -> Self {
        let sample = rows.min(SAMPLE);
        match (0..sample).into_par_iter().find_map_first(|i| complaint(i * rows / sample)) {
            None => Self { passed: true, detail: format!("as {against}, in {sample} of {rows} rows") },
            Some(detail) => Self { passed: false, detail },
        }
    }
}

/// The `count` nearest of `points` to the point `of`, itself excluded: see [`nearest_to`].
pub fn nearest(points: &[[f64; 3]], of: usize, count: usize) -> Vec<(f64, u32)> {
    nearest_to(points.iter().copied(), points[of], Some(of), count)
}

/// The `count` nearest of `points` to a query, all but the one left out, as (distance, index): ascending by the squared distance, then
/// by index. Where there are fewer, (infinity, number of points).
fn nearest_to<const D: usize>(
    points: impl ExactSizeIterator<Item = [f64; D]>,
    query: [f64; D],
    left_out: Option<usize>,
    count: usize,
) -> Vec<(f64, u32)> {
    let (mut found, n): (Vec<(f64, u32)>, _) = (Vec::with_capacity(count + 1), points.len());
    for (index, point) in points.enumerate().filter(|&(index, _)| Some(index) != left_out) {
        // Axis by axis.
        let key =
            (1..D).map(|axis| query[axis] - point[axis]).fold((query[0] - point[0]).powi(2), |key, d| key + d * d);
        // Indices ascend, so an equal key goes behind those that are there.
        let place = found.partition_point(|&(other, _)| other <= key);
        if place < count {
            found.truncate(count - 1);
            found.insert(place, (key, index as u32));
        }
    }
    found.resize(count, (f64::INFINITY, n as u32));
    found.into_iter().map(|(key, index)| (key.sqrt(), index)).collect()
}

/// The `count` neighbours of every point against brute force.
pub fn neighbours(
    points: &Array2<f64>,
    count: usize,
    distances: ArrayView2<'_, f64>,
    indices: ArrayView2<'_, u32>,
) -> Check {
    let (coordinates, _) = points.as_slice().expect("points are in standard layout").as_chunks::<3>();
    let (shape, shapes) = ((coordinates.len(), count), [distances.dim(), indices.dim()]);
    if shapes != [shape; 2] {
        return Check { passed: false, detail: format!("shapes {shapes:?}, expected {shape:?}") };
    }
    Check::sampled(coordinates.len(), "brute force, bit for bit", |row| {
        let found = distances.row(row).into_iter().zip(indices.row(row)).map(|(&distance, &index)| (distance, index));
        let expected = nearest(coordinates, row, count);
        let same = |a: (f64, u32), b: (f64, u32)| a.0.to_bits() == b.0.to_bits() && a.1 == b.1;
        let (place, (found, expected)) = found.zip(expected).enumerate().find(|&(_, (a, b))| !same(a, b))?;
        Some(format!("row {row}, neighbour {place}: {found:?}, by brute force {expected:?}"))
    })
}

/// Gathered rows (N, K, C) against the rows of `features` (N, C) that `indices` (N, K) name, 0 for padding.
pub fn gathered(features: ArrayView2<'_, f64>, indices: ArrayView2<'_, u32>, gathered: ArrayView3<'_, f64>) -> Check {
    Check::sampled(features.nrows(), "the rows named, bit for bit", |row| {
        let wrong = |&(place, &index): &(usize, &u32)| {
            let found = gathered.slice(s![row, place, ..]);
            (0..features.ncols()).any(|channel| {
                let expected = features.get([index as usize, channel]).copied().unwrap_or(0.0);
                found[channel].to_bits() != expected.to_bits()
            })
        };
        let (place, index) = indices.row(row).into_iter().enumerate().find(wrong)?;
        Some(format!("row {row}, neighbour {place} is not row {index} of the features"))
    })
}

/// Heights of points (N, 3) interpolated to places on the ground (M, 2), (M, 1), by inverse squares of the distances to the `count`
/// nearest.
pub fn interpolated(points: &Array2<f64>, places: &Array2<f64>, count: usize, field: &Array2<f64>) -> Check {
    let (coordinates, _) = points.as_slice().expect("points are in standard layout").as_chunks::<3>();
    Check::sampled(places.nrows(), "brute force, to 1e-12", |row| {
        let ground = coordinates.iter().map(|point| [point[0], point[1]]);
        let mut near = nearest_to(ground, [places[[row, 0]], places[[row, 1]]], None, count);
        near.retain(|&(distance, _)| distance.is_finite());
        if near[0].0 == 0.0 {
            near.retain(|&(distance, _)| distance == 0.0);
        }
        let weight =
            |&(distance, _): &(f64, u32)| (near[0].0.max(f64::MIN_POSITIVE) / distance.max(f64::MIN_POSITIVE)).powi(2);
        let height = |&(_, index): &(f64, u32)| coordinates[index as usize][2];
        let expected = sum(near.iter().map(|near| weight(near) * height(near))) / sum(near.iter().map(weight));
        let found = field[[row, 0]];
        let right = (found - expected).abs() <= TOLERANCE;
        (!right).then(|| format!("place {row}: {found}, by brute force {expected}"))
    })
}

/// Numbers of occupied cells, level by level, against sets of them.
pub fn levels(occupied: &HashSet<[usize; 3]>, counts: &[u64], outside: usize) -> Check {
    for (k, &found) in counts.iter().enumerate() {
        let expected = occupied.iter().map(|cell| cell.map(|i| i >> k)).collect::<HashSet<_>>().len() as u64;
        if found != expected || outside != 0 {
            let detail = format!("level {k} has {found} cells of {expected}, {outside} points are outside");
            return Check { passed: false, detail };
        }
    }
    Check { passed: true, detail: format!("as sets of cells, {} at level 0, {} levels", occupied.len(), counts.len()) }
}

/// Hits of rays against every occupied cell in turn; origins and directions (R, 3) in cells.
pub fn rays(occupied: &HashSet<[usize; 3]>, origins: &Array2<f64>, directions: &Array2<f64>, hits: &Hits) -> Check {
    // When a ray enters a cell and when it leaves it; earlier than it enters where it does not meet it.
    let within = |ray: usize, cell: [f64; 3]| {
        [0, 1, 2].into_iter().fold((0.0f64, f64::INFINITY), |(t_in, t_out), axis| {
            let t = [0.0, 1.0].map(|side| (cell[axis] + side - origins[[ray, axis]]) / directions[[ray, axis]]);
            (t_in.max(t[0].min(t[1])), t_out.min(t[0].max(t[1])))
        })
    };
    let cells: Vec<[f64; 3]> = occupied.iter().map(|cell| cell.map(|i| i as f64)).collect();
    Check::sampled(hits.t.len(), "every cell in turn", |ray| {
        // What a ray only touches may be hit or not.
        let met = cells.iter().map(|&cell| within(ray, cell)).filter(|(t_in, t_out)| t_out - t_in > 1e-9);
        let (expected, found) = (met.map(|(t_in, _)| t_in).fold(f64::INFINITY, f64::min), hits.t[ray]);
        let cell = [0, 1, 2].map(|axis| hits.cells[[ray, axis]]);
        let is_hit = || {
            let (t_in, t_out) = within(ray, cell.map(|i| i as f64));
            occupied.contains(&cell.map(|i| i as usize)) && (t_in - found).abs() < 1e-9 && t_in < t_out + 1e-9
        };
        let right = if found.is_finite() { found < expected + 1e-9 && is_hit() } else { found == expected };
        (!right).then(|| format!("ray {ray} hits {cell:?} at {found}, by looking at every cell at {expected}"))
    })
}

/// Kernels (W, K, K) of standard deviations and angles (W, 3), from their definition.
pub fn kernels(shapes: ArrayView2<'_, f64>, kernels: &ArrayD<f64>) -> Check {
    Check::sampled(shapes.nrows(), "their definition, to 1e-12", |pixel| {
        let (found, (sin, cos)) = (kernels.index_axis(Axis(0), pixel), shapes[[pixel, 2]].sin_cos());
        let middle = (found.len_of(Axis(0)) as f64 - 1.0) / 2.0;
        let weight = |(row, column): (usize, usize)| {
            let (x, y) = (column as f64 - middle, row as f64 - middle);
            let (along, across) = ((x * cos + y * sin) / shapes[[pixel, 0]], (y * cos - x * sin) / shapes[[pixel, 1]]);
            (-0.5 * (along * along + across * across)).exp()
        };
        let weights = Array2::from_shape_fn((found.len_of(Axis(0)), found.len_of(Axis(1))), weight);
        let all = sum(weights.iter().copied());
        let right = |(p, w): (&f64, &f64)| (p - w / all).abs() <= TOLERANCE;
        let wrong = found.iter().zip(&weights).position(|pair| !right(pair))?;
        Some(format!("kernel {pixel} is wrong at sample {wrong}"))
    })
}

/// The dot-product identity <forward, y> = <x, adjoint>, of what came of `x` and of `y`.
pub fn identity<D: Dimension, E: Dimension>(
    forward: &Array<f64, D>,
    y: &Array<f64, D>,
    x: &Array<f64, E>,
    adjoint: &Array<f64, E>,
) -> Check {
    let left = || forward.iter().zip(y).map(|(a, b)| a * b);
    let right = || x.iter().zip(adjoint).map(|(a, b)| a * b);
    Check::close("identity", sum(left()) - sum(right()), sum(left().map(f64::abs)).max(sum(right().map(f64::abs))))
}

/// A gradient of any smooth `loss` at `x` against differences of the fourth order along a random direction.
pub fn slope<D: Dimension, E>(
    x: &Array<f64, D>,
    gradient: &Array<f64, D>,
    random: &mut Random,
    loss: impl Fn(&Array<f64, D>) -> Result<f64, E>,
) -> Result<Check, E> {
    const STEP: f64 = 1.0 / 4096.0;
    let direction = x.mapv(|_| random.signed());
    let at = |steps: f64| loss(&(x + &(&direction * (steps * STEP))));
    let difference = (8.0 * (at(1.0)? - at(-1.0)?) - (at(2.0)? - at(-2.0)?)) / (12.0 * STEP);
    let terms = || gradient.iter().zip(&direction).map(|(g, v)| g * v);
    Ok(Check::near("gradient", sum(terms()) - difference, sum(terms().map(f64::abs)), DIFFERENCES))
}

/// A gradient of `loss` at `x` against its central difference along a random direction.
pub fn gradient<E>(
    x: &Array2<f64>,
    gradient: &Array2<f64>,
    random: &mut Random,
    loss: impl Fn(ArrayView2<'_, f64>) -> Result<f64, E>,
) -> Result<Check, E> {
    const STEP: f64 = 1.0 / 16.0;
    let direction = x.mapv(|_| random.signed());
    let (above, below) = (loss((x + &(&direction * STEP)).view())?, loss((x - &(&direction * STEP)).view())?);
    let slope = sum(gradient.iter().zip(&direction).map(|(g, v)| g * v));
    Ok(Check::close("gradient", (above - below) - 2.0 * STEP * slope, above + below))
}
