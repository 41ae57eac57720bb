//! What a point-cloud network would be given for every point: eight numbers made of its position.

use super::frame::normalised;
use pullback::ndarray::{Array2, ArrayView2};

/// Numbers a point.
pub const CHANNELS: usize = 8;

/// The features (N, 8) of `points` (N, 3): height, range, range on the ground, cosine and sine of the azimuth, sine of
/// the elevation, an intensity that falls with range, and height bands. All are of order 1.
pub fn features(points: ArrayView2<'_, f64>) -> Array2<f64> {
    let mut features = Array2::zeros((points.nrows(), CHANNELS));
    for (mut features, point) in features.outer_iter_mut().zip(normalised(points).outer_iter()) {
        let [x, y, z] = [0, 1, 2].map(|axis| point[axis]);
        let ground = x.hypot(y);
        let range = ground.hypot(z);
        let (sin, cos) = y.atan2(x).sin_cos();
        let elevation = z.atan2(ground).sin();
        let values = [z, range, ground, cos, sin, elevation, 1.0 / (1.0 + range * range), (20.0 * z).sin()];
        features.iter_mut().zip(values).for_each(|(feature, value)| *feature = value);
    }
    features
}
