//! Bounds on distances as bounds on keys.
//!
//! A search compares keys, its caller speaks of distances, and the two are related by a rounded root. Squaring a bound
//! rounds once more and is wrong by a neighbour now and then: the distance of the k-th neighbour, used as a radius,
//! would lose that neighbour. So the largest key whose rounded root satisfies the comparison is looked for among the
//! floats around the square; there are at most three keys a root beside it.

use super::metric::Metric;
use crate::element::Element;

/// The largest key whose distance is at most `radius`, which is not negative.
pub(super) fn at_most<T: Element>(metric: Metric, radius: T) -> T {
    match metric {
        // An overflowed distance is at most infinity too.
        _ if radius == T::infinity() => radius,
        Metric::L2 => largest_square(radius, |root| root <= radius),
        Metric::L1 | Metric::Linf => radius,
    }
}

/// The largest key whose distance is less than `bound`, which is not negative; below 0 where there is none.
pub(super) fn below<T: Element>(metric: Metric, bound: T) -> T {
    match metric {
        Metric::L2 if bound > T::zero() => largest_square(bound, |root| root < bound),
        _ => bound.next_down(),
    }
}

/// The largest finite key whose root `accepts` takes; 0 is one. It lies within a few floats of the square of `near`.
fn largest_square<T: Element>(near: T, accepts: impl Fn(T) -> bool) -> T {
    let mut key = (near * near).min(T::max_value());
    while !accepts(key.sqrt()) {
        key = key.next_down();
    }
    while key < T::max_value() && accepts(key.next_up().sqrt()) {
        key = key.next_up();
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn radii<T: Element>() -> Vec<T> {
        let (zero, one) = (T::zero(), T::one());
        let two = one + one;
        let mut radii = vec![zero, -zero, zero.next_up(), T::min_positive_value(), T::max_value(), T::infinity()];
        radii.extend([T::max_value().sqrt(), T::min_positive_value().sqrt(), zero.next_up().sqrt()]);
        let mut x = one;
        for i in 0..200 {
            // Steps through a binade and through the exponents, down to keys that underflow and up to those that overflow.
            x = x * T::from_f64(1.003).expect("an element");
            let scale = two.powi(i - 100);
            radii.extend([x, x.sqrt(), x * scale, x / scale]);
        }
        let near = |x: &T| [*x, x.next_up(), if *x > zero { x.next_down() } else { *x }];
        radii.iter().flat_map(near).collect()
    }

    /// No larger key satisfies the comparison, and this one does.
    fn check<T: Element>() {
        for radius in radii::<T>() {
            for metric in [Metric::L2, Metric::L1, Metric::Linf] {
                let key = at_most(metric, radius);
                assert!(metric.root(key) <= radius, "{metric:?} {radius:?}");
                assert!(key == T::infinity() || metric.root(key.next_up()) > radius, "{metric:?} {radius:?}");
                let key = below(metric, radius);
                assert!(key < T::zero() || metric.root(key) < radius, "{metric:?} {radius:?}");
                assert!(metric.root(key.next_up().max(T::zero())) >= radius, "{metric:?} {radius:?}");
            }
        }
    }

    #[test]
    fn bounds_on_keys_are_exact() {
        check::<f32>();
        check::<f64>();
    }
}
