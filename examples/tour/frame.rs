//! Positions of order 1, whatever the unit of a file.

use pullback::ndarray::{Array2, ArrayView2, Axis};

/// `points` (N, 3), from the middle of the cloud and in units of half its largest extent: all in -1 to 1.
pub fn normalised(points: ArrayView2<'_, f64>) -> Array2<f64> {
    let fold = |start: f64, f: fn(f64, f64) -> f64| points.fold_axis(Axis(0), start, |&a, &b| f(a, b)) / 2.0;
    let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
    let (middle, half) = (&low + &high, &high - &low);
    let unit = half.fold(f64::MIN_POSITIVE, |a, &b| a.max(b));
    (&points - &middle) / unit
}
