//! Whether what the library returned is right, by means that share nothing with it.

use super::random::Random;
use super::smooth::sum;
use pullback::ndarray::{Array2, ArrayView2, ArrayView3, s};
use rayon::prelude::*;

/// Rows that are compared one by one.
const SAMPLE: usize = 200;

/// The largest relative error of the identity and of the gradient: rounding leaves less than 1e-15 of either.
const TOLERANCE: f64 = 1e-12;

/// The outcome of a check.
pub struct Check {
    pub passed: bool,
    pub detail: String,
}

impl Check {
    fn close(name: &str, difference: f64, scale: f64) -> Self {
        let error = difference.abs() / scale.max(f64::MIN_POSITIVE);
        let detail = format!("{name}, relative error {error:.1e}, at most {TOLERANCE:.0e}");
        Self { passed: error <= TOLERANCE, detail }
    }

    /// That no sampled row of `rows` has anything to say.
    fn sampled(rows: usize, against: &str, complaint: impl Fn(usize) -> Option<String> + Sync) -> Self {
        let sample = rows.min(SAMPLE);
        match (0..sample).into_par_iter().find_map_first(|i| complaint(i * rows / sample)) {
            None => Self { passed: true, detail: format!("as {against}, bit for bit, in {sample} of {rows} rows") },
            Some(detail) => Self { passed: false, detail },
        }
    }
}

/// The `count` nearest of `points` to the point `of`, itself excluded, as (distance, index): ascending by the squared
/// distance, then by index. Where there are fewer, (infinity, number of points).
pub fn nearest(points: &[[f64; 3]], of: usize, count: usize) -> Vec<(f64, u32)> {
    let mut found: Vec<(f64, u32)> = Vec::with_capacity(count + 1);
    for (index, point) in points.iter().enumerate().filter(|&(index, _)| index != of) {
        let [dx, dy, dz] = [0, 1, 2].map(|axis| points[of][axis] - point[axis]);
        let key = (dx * dx + dy * dy) + dz * dz;
        // Indices ascend, so an equal key goes behind those that are there.
        let place = found.partition_point(|&(other, _)| other <= key);
        if place < count {
            found.truncate(count - 1);
            found.insert(place, (key, index as u32));
        }
    }
    found.resize(count, (f64::INFINITY, points.len() as u32));
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
    Check::sampled(coordinates.len(), "brute force", |row| {
        let found = distances.row(row).into_iter().zip(indices.row(row)).map(|(&distance, &index)| (distance, index));
        let expected = nearest(coordinates, row, count);
        let same = |a: (f64, u32), b: (f64, u32)| a.0.to_bits() == b.0.to_bits() && a.1 == b.1;
        let (place, (found, expected)) = found.zip(expected).enumerate().find(|&(_, (a, b))| !same(a, b))?;
        Some(format!("row {row}, neighbour {place}: {found:?}, by brute force {expected:?}"))
    })
}

/// Gathered rows (N, K, C) against the rows of `features` (N, C) that `indices` (N, K) name, 0 for padding.
pub fn gathered(features: ArrayView2<'_, f64>, indices: ArrayView2<'_, u32>, gathered: ArrayView3<'_, f64>) -> Check {
    Check::sampled(features.nrows(), "the rows named", |row| {
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

/// The dot-product identity <forward(x), y> = <x, adjoint(y)>.
pub fn identity(x: &Array2<f64>, forward: &Array2<f64>, y: &Array2<f64>, adjoint: &Array2<f64>) -> Check {
    let left = || forward.iter().zip(y).map(|(a, b)| a * b);
    let right = || x.iter().zip(adjoint).map(|(a, b)| a * b);
    Check::close("identity", sum(left()) - sum(right()), sum(left().map(f64::abs)).max(sum(right().map(f64::abs))))
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
