//! What a point-cloud network would be given for every point: eight numbers made of its position.

use pullback::ndarray::{Array2, ArrayView2, Axis};

/// Numbers a point.
pub const CHANNELS: usize = 8;

/// The features (N, 8) of `points` (N, 3): height, range, range on the ground, cosine and sine of the azimuth, sine of
/// the elevation, an intensity that falls with range, and height bands.
///
/// Positions count from the middle of the cloud, in units of half its largest extent: every feature is of order 1,
/// whatever the unit of the file.
pub fn features(points: ArrayView2<'_, f64>) -> Array2<f64> {
    let fold = |start: f64, f: fn(f64, f64) -> f64| points.fold_axis(Axis(0), start, |&a, &b| f(a, b)) / 2.0;
    let (low, high) = (fold(f64::INFINITY, f64::min), fold(f64::NEG_INFINITY, f64::max));
    let (middle, half) = (&low + &high, &high - &low);
    let unit = half.fold(f64::MIN_POSITIVE, |a, &b| a.max(b));
    let mut features = Array2::zeros((points.nrows(), CHANNELS));
    for (mut features, point) in features.outer_iter_mut().zip(points.outer_iter()) {
        let [x, y, z] = [0, 1, 2].map(|axis| (point[axis] - middle[axis]) / unit);
        let ground = x.hypot(y);
        let range = ground.hypot(z);
        let (sin, cos) = y.atan2(x).sin_cos();
        let elevation = z.atan2(ground).sin();
        let values = [z, range, ground, cos, sin, elevation, 1.0 / (1.0 + range * range), (20.0 * z).sin()];
        features.iter_mut().zip(values).for_each(|(feature, value)| *feature = value);
    }
    features
}
