//! The mean of the neighbours' features, its adjoint, and a loss that asks how rough the features are.

use super::features::CHANNELS;
use pullback::gather::{Gather, OutOfRange};
use pullback::ndarray::{Array1, Array2, Array3, ArrayView2, ArrayView3, Axis, Ix2};

/// The linear map from features (N, C) to their means over K neighbours (N, C).
pub struct Smooth {
    pub gather: Gather<Ix2, Ix2>,
    /// One over the number of neighbours a point has, which is below K in a small cloud.
    weights: Array1<f64>,
    neighbours: usize,
}

impl Smooth {
    /// By `indices` (N, K), where N stands for no neighbour.
    pub fn new(indices: ArrayView2<'_, u32>) -> pullback::Result<Self> {
        let (points, neighbours) = indices.dim();
        let gather = Gather::unbatched(indices, points, OutOfRange::Skip { fill: 0.0 })?;
        let present = |row: &u32| (*row as usize) < points;
        let weights = indices.map_axis(Axis(1), |row| 1.0 / row.iter().filter(|i| present(i)).count().max(1) as f64);
        Ok(Self { gather, weights, neighbours })
    }

    /// Gathered features (N, K, C) to means (N, C). Rows of padding are 0 and add nothing; the mean of none is 0.
    pub fn mean(&self, gathered: ArrayView3<'_, f64>) -> Array2<f64> {
        let mut means = Array2::zeros((gathered.len_of(Axis(0)), CHANNELS));
        for ((mut mean, rows), &weight) in means.outer_iter_mut().zip(gathered.outer_iter()).zip(&self.weights) {
            rows.outer_iter().for_each(|row| mean += &row);
            mean *= weight;
        }
        means
    }

    /// The transpose of [`Smooth::mean`]: every neighbour takes an equal part of the gradient.
    pub fn mean_adjoint(&self, grad_mean: ArrayView2<'_, f64>) -> Array3<f64> {
        let parts = &grad_mean * &self.weights.view().insert_axis(Axis(1));
        let (points, channels) = parts.dim();
        let parts = parts.insert_axis(Axis(1));
        parts.broadcast((points, self.neighbours, channels)).expect("an axis of 1 repeats").to_owned()
    }

    /// Both steps: features (N, C) to means (N, C).
    pub fn forward(&self, features: ArrayView2<'_, f64>) -> pullback::Result<Array2<f64>> {
        Ok(self.mean(self.gather.forward(features)?.view()))
    }

    /// Both adjoints, in reverse: a gradient (N, C) of the means to one of the features (N, C).
    pub fn adjoint(&self, grad_mean: ArrayView2<'_, f64>) -> pullback::Result<Array2<f64>> {
        self.gather.adjoint(self.mean_adjoint(grad_mean).view())
    }
}

/// Half the squared difference between features and their neighbourhood means.
pub fn loss(features: ArrayView2<'_, f64>, means: ArrayView2<'_, f64>) -> f64 {
    0.5 * sum(features.iter().zip(means).map(|(x, mean)| (x - mean) * (x - mean)))
}

/// Neumaier's sum: its rounding error does not grow with the number of terms.
pub fn sum(terms: impl IntoIterator<Item = f64>) -> f64 {
    let (mut sum, mut lost) = (0.0f64, 0.0);
    for term in terms {
        let next = sum + term;
        lost += if sum.abs() >= term.abs() { (sum - next) + term } else { (term - next) + sum };
        sum = next;
    }
    sum + lost
}
