//! Inverse distance weighting in f64, written from the contract, with bounds of how far the library may be away from it.
//!
//! Both start from the same keys and differences, which are promised to the bit. A bound is the sum of first-order bounds
//! of every rounding on the way, of the library's as of this one's: `u` is the unit roundoff of the type plus that of f64,
//! `eta` the least subnormal of the type. With p the power:
//!
//! - d is a rounded root (1 u), d^p costs p u for it and p - 1 u for products, or 2 u for `powf`; a sum and a quotient of
//!   two of these follow. The quotient of distances, raised to p, costs 3 p u and as much again for products. So a relative
//!   weight is off by at most `(4 p + 12) u` of itself, the last few for the f64 side. What underflows adds multiples of
//!   `eta` beside.
//! - Normalised weights are off by that of the weight, and that of the sum, and K + 2 u.
//! - A dot product of C channels in L lanes: `C / L + log2 L + 1` u of its terms' magnitudes.

use super::distance_gradients::{sign, widest};
use super::groups::dot;
use super::scaled::Scaled;
use super::values::Value;
use ndarray::ArrayView1;
use pullback::kdtree::Metric;

/// A number and how far from it is near enough.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Near {
    pub value: f64,
    pub error: f64,
}

impl Near {
    pub fn exactly(value: f64) -> Self {
        Self { value, error: 0.0 }
    }

    /// Whether `found` is near enough. Where the number is beyond the type's largest, anything is.
    pub fn accepts<T: Value>(self, found: T) -> bool {
        let most = wide(T::max_value()) / 4.0;
        let beyond = self.value.is_nan() || self.value.abs() + self.error > most || self.error.is_nan();
        beyond || (wide(found) - self.value).abs() <= self.error
    }
}

pub fn wide<T: Value>(x: T) -> f64 {
    x.to_f64().expect("an element is an f64")
}

/// A sum of terms and of the bounds of their errors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sum {
    value: f64,
    magnitude: f64,
    error: f64,
    terms: usize,
}

impl Sum {
    pub fn starting_at(value: f64) -> Self {
        Self { value, magnitude: value.abs(), error: 0.0, terms: 0 }
    }

    pub fn add(&mut self, term: Near) {
        self.value += term.value;
        self.magnitude += term.value.abs();
        self.error += term.error;
        self.terms += 1;
    }

    pub fn near<T: Value>(&self) -> Near {
        // A partial sum that overflows does not come back.
        let error = if self.magnitude > wide(T::max_value()) / 4.0 { f64::NAN } else { self.error };
        Near { value: self.value, error: error + self.terms as f64 * unit::<T>() * self.magnitude }
    }
}

fn unit<T: Value>() -> f64 {
    (wide(T::epsilon()) + f64::EPSILON) / 2.0
}

fn eta<T: Value>() -> f64 {
    wide(T::subnormal())
}

/// How distances become weights.
#[derive(Clone, Copy, Debug)]
pub struct Weighing<T> {
    pub metric: Metric,
    /// With few bits, see [`Scaled::pow`].
    pub power: T,
    pub eps: T,
}

/// A neighbour of a query.
pub struct Neighbor<'a, T> {
    pub key: T,
    /// From the point to the query, to the image that is taken.
    pub differences: Vec<T>,
    /// (C) its values.
    pub values: ArrayView1<'a, T>,
}

impl<T: Value> Weighing<T> {
    /// `d^power` of a key's distance.
    fn pow(&self, key: T, power: f64) -> Scaled {
        let of_key = if self.metric == Metric::L2 { power / 2.0 } else { power };
        Scaled::new(wide(key)).pow(of_key)
    }

    /// `d^p + eps`
    fn denominator(&self, key: T) -> Scaled {
        self.pow(key, wide(self.power)) + Scaled::new(wide(self.eps))
    }

    /// Of a relative weight, or of `d^(p-1) / (d^p + eps)`: of itself.
    fn relative(&self) -> f64 {
        (4.0 * wide(self.power) + 12.0) * unit::<T>()
    }

    /// How many neighbours, with ascending keys, are all that count, alike and exactly.
    pub fn alike(&self, keys: &[T]) -> Option<usize> {
        match keys {
            [first, ..] if *first == T::infinity() => Some(keys.len()),
            [first, ..] if *first == T::zero() && self.eps == T::zero() => {
                Some(keys.iter().take_while(|&&key| key == T::zero()).count())
            }
            _ => None,
        }
    }

    /// The normalised weights of neighbours with these keys, in ascending order.
    pub fn weights(&self, keys: &[T]) -> Vec<Near> {
        if let Some(count) = self.alike(keys) {
            let share = Near { value: 1.0 / count as f64, error: unit::<T>() };
            return (0..keys.len()).map(|at| if at < count { share } else { Near::default() }).collect();
        }
        let relative = keys.iter().map(|&key| self.relative_weight(key, keys[0]));
        let relative: Vec<_> = relative.collect();
        let sum: f64 = relative.iter().map(|near| near.value).sum();
        let sum_error: f64 = relative.iter().map(|near| near.error).sum();
        let rounded = (keys.len() + 2) as f64 * unit::<T>();
        let normal = |near: &Near| {
            let value = near.value / sum;
            Near { value, error: near.error / sum + value * (sum_error / sum + rounded) + 2.0 * eta::<T>() }
        };
        relative.iter().map(|near| if near.value == 0.0 && near.error == 0.0 { *near } else { normal(near) }).collect()
    }

    fn relative_weight(&self, key: T, first: T) -> Near {
        if key == T::infinity() {
            return Near::default();
        }
        let (this, nearest) = (self.denominator(key), self.denominator(first));
        let value = nearest.over(this);
        let (power, eps) = (wide(self.power), wide(self.eps));
        let underflow = if eps > 0.0 {
            // Powers that underflow beside eps; eps that is left out where a power overflows.
            let lost = |denominator| Scaled::new(3.0 * eta::<T>()).over(denominator);
            let overflow = self.pow(key, power).over(Scaled::new(wide(T::max_value()))) > 0.5;
            let left_out = if overflow { eps / wide(T::max_value()) } else { 0.0 };
            value * (lost(this) + lost(nearest)) + left_out
        } else if power < 1.0 {
            eta::<T>().powf(power)
        } else {
            power * eta::<T>()
        };
        Near { value, error: value * self.relative() + underflow + eta::<T>() }
    }

    /// What a query gets on each axis through each of its neighbours, and the neighbour's point the opposite of.
    pub fn position_terms(&self, neighbors: &[Neighbor<'_, T>], grad_y: ArrayView1<'_, T>) -> Vec<Vec<Near>> {
        let keys: Vec<T> = neighbors.iter().map(|neighbor| neighbor.key).collect();
        let still = |neighbor: &Neighbor<'_, T>| vec![Near::default(); neighbor.differences.len()];
        if self.alike(&keys).is_some() {
            return neighbors.iter().map(still).collect();
        }
        let (u, weights) = (unit::<T>(), self.weights(&keys));
        let numbers = |row: ArrayView1<'_, T>| row.iter().map(|&x| wide(x)).collect::<Vec<f64>>();
        let grad = numbers(grad_y);
        let lanes = 64 / size_of::<T>();
        let depth = (grad.len().div_ceil(lanes) + lanes.ilog2() as usize + 1) as f64;
        let products: Vec<(f64, f64)> = neighbors
            .iter()
            .map(|neighbor| {
                let values = numbers(neighbor.values);
                let magnitude = grad.iter().zip(&values).map(|(g, v)| (g * v).abs()).sum();
                (dot(&grad, &values), magnitude)
            })
            .collect();
        let counted = || weights.iter().zip(&products).filter(|(weight, _)| weight.value > 0.0 || weight.error > 0.0);
        let mean: f64 = counted().map(|(weight, (product, _))| weight.value * product).sum();
        let magnitude: f64 = counted().map(|(weight, (_, magnitude))| weight.value * magnitude).sum();
        let mean_error: f64 = counted().map(|(weight, (_, magnitude))| weight.error * magnitude).sum::<f64>()
            + (depth + neighbors.len() as f64 + 2.0) * u * magnitude;
        let term = |((neighbor, weight), (product, size)): ((&Neighbor<'_, T>, &Near), &(f64, f64))| {
            if neighbor.key == T::zero() || neighbor.key == T::infinity() {
                return still(neighbor);
            }
            let spread = product - mean;
            let spread_error = depth * u * size + mean_error + u * spread.abs();
            let (factor, factor_error) = self.slope(neighbor.key);
            // Nothing, whatever the slope is.
            let share = -spread * weight.value;
            let value = if share == 0.0 { 0.0 } else { share * factor };
            // Partial products may underflow, in whatever order.
            let both = size + magnitude;
            let lost = eta::<T>() * (1.0 + factor) * (1.0 + both) * 4.0;
            let error = factor * (weight.value * spread_error + spread.abs() * weight.error)
                + spread.abs() * weight.value * factor_error
                + 4.0 * u * value.abs()
                + lost;
            self.directions(neighbor).into_iter().map(|toward| toward.times::<T>(value, error)).collect()
        };
        neighbors.iter().zip(&weights).zip(&products).map(term).collect()
    }

    /// `p d^(p-1) / (d^p + eps)` and the bound of its error.
    fn slope(&self, key: T) -> (f64, f64) {
        let (power, eps) = (wide(self.power), wide(self.eps));
        let denominator = self.denominator(key);
        let value = (self.pow(key, power - 1.0) * Scaled::new(power)).over(denominator);
        let lost = if eps > 0.0 { Scaled::new(3.0 * eta::<T>()).over(denominator) * (power + value) } else { 0.0 };
        let overflow = eps > 0.0 && self.pow(key, power).over(Scaled::new(wide(T::max_value()))) > 0.5;
        let left_out = if overflow { value * eps / wide(T::max_value()) } else { 0.0 };
        (value, value * self.relative() + lost + left_out)
    }

    /// The derivative of the distance on each axis.
    fn directions(&self, neighbor: &Neighbor<'_, T>) -> Vec<Direction> {
        let distance = self.pow(neighbor.key, 1.0);
        let widest = widest(&neighbor.differences);
        let of_axis = |(axis, &difference): (usize, &T)| match self.metric {
            Metric::Linf if axis != widest => Direction::Still,
            _ if difference == T::zero() => Direction::Flat,
            Metric::L2 => Direction::Slanted(wide(sign(difference)), Scaled::new(wide(difference).abs()), distance),
            _ => Direction::Straight(wide(sign(difference))),
        };
        neighbor.differences.iter().enumerate().map(of_axis).collect()
    }
}

/// The derivative of a distance on an axis.
enum Direction {
    /// Another axis has it all.
    Still,
    /// The sign of no difference, which is multiplied.
    Flat,
    /// -1 or 1.
    Straight(f64),
    /// A sign, the size of the difference, and what it is divided by.
    Slanted(f64, Scaled, Scaled),
}

impl Direction {
    /// A product with a number that is off by `error`.
    fn times<T: Value>(&self, value: f64, error: f64) -> Near {
        let eta = eta::<T>();
        match self {
            Self::Still => Near::default(),
            // Zero times what overflows is not a number.
            Self::Flat if value.abs() + error < wide(T::max_value()) / 4.0 => Near::default(),
            Self::Flat => Near { value: 0.0, error: f64::INFINITY },
            Self::Straight(sign) => Near { value: value * sign, error: error + eta },
            Self::Slanted(sign, difference, distance) => {
                let part = |x: f64| (Scaled::new(x) * *difference).over(*distance);
                // Either product or quotient may come first, and underflow.
                let lost = eta * (2.0 + value.abs()) + Scaled::new(eta).over(*distance);
                let size = if value.is_finite() { part(value.abs()) } else { f64::INFINITY };
                let error = if error.is_finite() { part(error) } else { f64::INFINITY };
                Near { value: size * value.signum() * sign, error: error + lost }
            }
        }
    }
}
