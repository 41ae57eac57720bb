//! Inverse distance weights and their derivatives, evaluated so that nothing overflows and nothing becomes 0/0.
//!
//! A weight is `1 / t`, `t = d^power + eps`, over the sum of all. Since only ratios matter, each is taken relative to the
//! nearest neighbour's, whose own is then exactly 1: whatever overflows is far away and whatever underflows is negligible.
//! Powers and sums are never fused, so that weights are the same bits at every level.

use super::metric::Metric;
use crate::element::Element;

/// The largest whole power that is multiplied out.
const MOST_FACTORS: u32 = 8;

/// A power that is finite and greater than 0.
#[derive(Clone, Copy)]
struct Power<T> {
    value: T,
    /// The power as a number of factors, where it is whole and few.
    factors: Option<u32>,
}

impl<T: Element> Power<T> {
    fn new(value: T) -> Self {
        let factors = value.to_u32().filter(|&n| n <= MOST_FACTORS && T::from_u32(n) == Some(value));
        Self { value, factors }
    }

    /// `x` to this power.
    #[inline(always)]
    fn of(self, x: T) -> T {
        self.factors.map_or_else(|| power(x, self.value), |factors| product(x, factors))
    }

    /// `x` to a power that is lower by 1.
    #[inline(always)]
    fn less_one_of(self, x: T) -> T {
        self.factors.map_or_else(|| power(x, self.value - T::one()), |factors| product(x, factors - 1))
    }
}

/// A call, so that no compiler computes it beside products and then chooses.
#[inline(never)]
fn power<T: Element>(x: T, power: T) -> T {
    x.powf(power)
}

#[inline(always)]
fn product<T: Element>(x: T, factors: u32) -> T {
    (0..factors).fold(T::one(), |product, _| product * x)
}

/// How distances become weights.
#[derive(Clone, Copy)]
pub struct Weighing<T> {
    metric: Metric,
    power: Power<T>,
    /// The power of a key that is the power of its distance, where there is one.
    of_key: Option<Power<T>>,
    eps: T,
}

impl<T: Element> Weighing<T> {
    /// `power` is finite and greater than 0, `eps` finite and at least 0.
    pub(super) fn new(metric: Metric, power: T, eps: T) -> Self {
        let one = T::one();
        // The key of L2 is the square that a root and a product would only come back to with two more roundings.
        let of_key = match metric {
            Metric::L2 if power == one + one => Some(Power::new(one)),
            _ => None,
        };
        Self { metric, power: Power::new(power), of_key, eps }
    }

    /// Whether [`Weighing::weigh`] wants keys, not distances.
    pub(super) fn weighs_keys(&self) -> bool {
        self.of_key.is_some()
    }

    /// Turns keys into distances.
    pub(super) fn root(&self, keys: &mut [T]) {
        if self.metric == Metric::L2 {
            keys.iter_mut().for_each(|key| *key = Metric::L2.root(*key));
        }
    }

    /// The weights of a query's neighbours, whose distances or keys ascend.
    pub(super) fn weigh(&self, distances: &[T], weights: &mut [T]) {
        let power = self.of_key.unwrap_or(self.power);
        let Some(&nearest) = distances.first() else {
            return;
        };
        if (nearest == T::zero() && self.eps == T::zero()) || nearest == T::infinity() {
            // Coincident, or all equally far away.
            let count = distances.iter().filter(|&&distance| distance == nearest).count();
            let share = T::one() / T::from_usize(count).expect("every integer rounds to an element");
            for (weight, &distance) in weights.iter_mut().zip(distances) {
                *weight = if distance == nearest { share } else { T::zero() };
            }
            return;
        }
        let mut sum = T::zero();
        for (weight, &distance) in weights.iter_mut().zip(distances) {
            *weight = self.relative(power, nearest, distance);
            sum = sum + *weight;
        }
        weights.iter_mut().for_each(|weight| *weight = *weight / sum);
    }

    /// `(nearest^power + eps) / (distance^power + eps)`.
    #[inline(always)]
    fn relative(&self, power: Power<T>, nearest: T, distance: T) -> T {
        let eps = self.eps;
        if distance == T::infinity() {
            return T::zero();
        }
        if eps == T::zero() {
            let ratio = nearest / distance;
            // A root of a ratio that underflows is far from 0; roots themselves do not underflow.
            let is_lost = !ratio.is_normal() && power.value < T::one();
            return if is_lost { power.of(nearest) / power.of(distance) } else { power.of(ratio) };
        }
        let (a, b) = (power.of(nearest), power.of(distance));
        if (b + eps).is_finite() {
            return (a + eps) / (b + eps);
        }
        if b.is_finite() {
            return (half(a) + half(eps)) / (half(b) + half(eps));
        }
        let eps = self.eps_over(power, distance);
        (power.of(nearest / distance) + eps) / (T::one() + eps)
    }

    /// `grad` times the derivative of `ln(distance^power + eps)` by the distance, which is finite and greater than 0.
    ///
    /// Divided last: the derivative alone overflows at distances where its product with a small `grad` does not.
    #[inline(always)]
    pub(super) fn pull_slope(&self, grad: T, distance: T) -> T {
        let (power, eps) = (self.power, self.eps);
        let grad = grad * power.value;
        if eps == T::zero() {
            return grad / distance;
        }
        let b = power.of(distance);
        let share = if (b + eps).is_finite() {
            if power.value >= T::one() {
                // Where the power underflows, the next lower one may not. That is at most 1 at short distances, and the
                // quotient at long ones.
                let lower = power.less_one_of(distance);
                return if distance < T::one() { grad * lower / (b + eps) } else { grad * (lower / (b + eps)) };
            }
            b / (b + eps)
        } else if b.is_finite() {
            half(b) / (half(b) + half(eps))
        } else {
            T::one() / (T::one() + self.eps_over(power, distance))
        };
        grad * share / distance
    }

    /// `eps / distance^power` where the power overflows, so that it is greater than 1.
    #[cold]
    fn eps_over(&self, power: Power<T>, distance: T) -> T {
        power.of(self.eps.powf(T::one() / power.value) / distance)
    }

    /// Turns a row of gradients to weights that are not normalised, `h`, into gradients to the distances of the neighbours.
    ///
    /// With `a` the weights: `-(h - sum of a h) a` times the slope. Of coincident neighbours and infinite distances it is 0.
    pub(super) fn pull(&self, distances: &[T], weights: &[T], h: &mut [T]) {
        let (zero, infinity) = (T::zero(), T::infinity());
        let nearest = distances.first().copied().unwrap_or(infinity);
        if (nearest == zero && self.eps == zero) || nearest == infinity {
            h.fill(zero);
            return;
        }
        let mean = weights.iter().zip(&*h).fold(zero, |mean, (&a, &h)| mean + a * h);
        for ((h, &a), &distance) in h.iter_mut().zip(weights).zip(distances) {
            let is_smooth = distance > zero && distance < infinity;
            *h = if is_smooth { self.pull_slope(-(*h - mean) * a, distance) } else { zero };
        }
    }
}

#[inline(always)]
fn half<T: Element>(x: T) -> T {
    x / (T::one() + T::one())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weights(metric: Metric, power: f32, eps: f32, keys: &[f32]) -> Vec<f32> {
        let mut weights = vec![0.0; keys.len()];
        let (weighing, mut keys) = (Weighing::new(metric, power, eps), keys.to_vec());
        if !weighing.weighs_keys() {
            weighing.root(&mut keys);
        }
        weighing.weigh(&keys, &mut weights);
        weights
    }

    /// The same in `f64`, where these inputs do not overflow.
    fn expected(metric: Metric, power: f32, eps: f32, keys: &[f32]) -> Vec<f64> {
        let root = |key: f32| if metric == Metric::L2 { f64::from(key).sqrt() } else { f64::from(key) };
        let t = |key: f32| root(key).powf(f64::from(power)) + f64::from(eps);
        let relative = |key: f32| match eps {
            0.0 => (root(keys[0]) / root(key)).powf(f64::from(power)),
            _ => t(keys[0]) / t(key),
        };
        let sum: f64 = keys.iter().map(|&key| relative(key)).sum();
        keys.iter().map(|&key| relative(key) / sum).collect()
    }

    #[test]
    fn extreme_distances_have_weights() {
        let rows: [&[f32]; 8] = [
            &[1e-45, 1e-45, 3e-45],
            &[1e-38, 2e-38, 1.0],
            &[1e-30, 1.0, 1e30],
            &[0.5, 0.75, 1.0],
            &[1e19, 2e19, 3e19],
            &[1e30, 2e30, 3e38],
            &[3e38, 3.2e38, 3.4e38],
            &[1e-45, 3.4e38],
        ];
        for metric in [Metric::L2, Metric::L1] {
            for power in [0.01, 0.5, 1.0, 2.0, 3.0, 3.5, 8.0] {
                for eps in [0.0, 1e-45, 1e-12, 1.0, 1e30, 3.4e38] {
                    for keys in rows {
                        let found = weights(metric, power, eps, keys);
                        for (&found, expected) in found.iter().zip(expected(metric, power, eps, keys)) {
                            let near = (f64::from(found) - expected).abs() <= 1e-5 * expected + 1e-37;
                            assert!(near, "{metric:?} {power} {eps:e} {keys:?}: {found:e} {expected:e}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn slopes_do_not_overflow_on_the_way() {
        for power in [0.01f32, 0.5, 1.0, 2.0, 3.0, 3.5, 8.0, 100.0] {
            for eps in [0.0f32, 1e-30, 1e-12, 1.0, 1e30, 3.4e38] {
                for d in [1e-30f32, 1e-12, 0.5, 1.0, 2.4, 1e4, 1e19, 1e30, 3e38] {
                    let (p, e, x) = (f64::from(power), f64::from(eps), f64::from(d));
                    // Logarithms, since the power of a distance may overflow an f64.
                    let expected = p / x / (1.0 + (e.ln() - p * x.ln()).exp());
                    let found = f64::from(Weighing::new(Metric::L1, power, eps).pull_slope(1.0, d));
                    assert!(
                        (found - expected).abs() <= 1e-4 * expected + 1e-37 * (1.0 + p / x),
                        "{power} {eps:e} {d:e}: {found:e} {expected:e}"
                    );
                }
            }
        }
    }

    #[test]
    fn coincident_and_infinite_distances_share() {
        assert_eq!(weights(Metric::L2, 2.0, 0.0, &[0.0, 0.0, 1.0]), [0.5, 0.5, 0.0]);
        assert_eq!(weights(Metric::L2, 3.0, 0.0, &[0.0, f32::INFINITY]), [1.0, 0.0]);
        assert_eq!(weights(Metric::L1, 2.0, 1.0, &[f32::INFINITY; 2]), [0.5, 0.5]);
        assert_eq!(weights(Metric::L1, 2.0, 1.0, &[1.0, f32::INFINITY]), [1.0, 0.0]);
        assert_eq!(weights(Metric::L1, 2.0, 0.0, &[]), []);
    }
}
