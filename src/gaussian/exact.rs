//! The one place where a rounded product would decide wrongly.

use crate::exponent::{exponent, ldexp};

/// Two numbers of one row, divided by the power of two that brings the larger to 1 and below 2, and its exponent.
pub(super) fn normalized(row: [f64; 2]) -> ([f64; 2], i32) {
    let largest = row[0].abs().max(row[1].abs());
    if largest == 0.0 {
        return (row, 0);
    }
    let e = exponent(largest);
    (row.map(|x| ldexp(x, -e)), e)
}

/// A product of two finite numbers as `digits * 2^exponent`, exactly, with the highest digit in place 125.
struct Product {
    digits: u128,
    exponent: i32,
}

impl Product {
    fn new(a: f64, b: f64) -> Option<Self> {
        let parts = |x: f64| {
            let e = exponent(x);
            // 53 binary digits, an integer.
            (ldexp(x.abs(), 52 - e) as u128, e - 52)
        };
        if a == 0.0 || b == 0.0 {
            return None;
        }
        let ((a, ea), (b, eb)) = (parts(a), parts(b));
        let digits = a * b;
        let shift = digits.leading_zeros() - 2;
        Some(Self { digits: digits << shift, exponent: ea + eb - shift as i32 })
    }
}

/// `a c - b^2` for `a, c >= 0`, the sign exact and the value rounded once, as `(x, e)` of `x * 2^e` with `|x|` in 1/2..1 or 0.
///
/// Near to a singular matrix the products cancel: rounded, they would say of a positive definite one that it is not, and
/// of one that is not that it is.
pub(super) fn determinant(a: f64, b: f64, c: f64) -> (f64, i32) {
    let (digits, exponent) = match (Product::new(a, c), Product::new(b, b)) {
        (None, None) => return (0.0, 0),
        (Some(p), None) => (p.digits as i128, p.exponent),
        (None, Some(p)) => (-(p.digits as i128), p.exponent),
        (Some(p), Some(q)) => {
            // Twenty places below the last digit are free, so that only a product that is negligible loses any.
            let top = p.exponent.max(q.exponent);
            let aligned = |p: Product| p.digits.checked_shr((top - p.exponent) as u32).unwrap_or(0) as i128;
            (aligned(p) - aligned(q), top)
        }
    };
    if digits == 0 {
        return (0.0, 0);
    }
    let x = digits as f64;
    let e = self::exponent(x) + 1;
    (ldexp(x, -e), exponent + e)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_of_two_reach_every_exponent() {
        assert_eq!(ldexp(1.0, -1074), f64::from_bits(1));
        assert_eq!(ldexp(f64::from_bits(1), 2097), 2f64.powi(1023));
        assert_eq!(ldexp(1.5, 1024), f64::INFINITY);
        assert_eq!(ldexp(-1.0, i32::MIN), 0.0);
        for x in [1.0, 1.9, -0.75, 1e300, 1e-300, f64::MIN_POSITIVE, 3e-320, f64::from_bits(1)] {
            let e = exponent(x);
            assert!((1.0..2.0).contains(&ldexp(x.abs(), -e)), "{x}");
        }
        assert_eq!(normalized([0.0, -3.0]), ([0.0, -1.5], 1));
        assert_eq!(normalized([0.0, 0.0]), ([0.0, 0.0], 0));
    }

    #[test]
    fn determinants_have_the_right_sign() {
        let value = |(x, e): (f64, i32)| ldexp(x, e);
        assert_eq!(value(determinant(4.0, 2.0, 1.0)), 0.0);
        assert_eq!(value(determinant(3.0, 1.0, 2.0)), 5.0);
        assert_eq!(value(determinant(0.0, 1.0, 7.0)), -1.0);
        assert_eq!(value(determinant(0.0, 0.0, 7.0)), 0.0);
        assert_eq!(value(determinant(2.0, 0.0, 7.0)), 14.0);
        // (1 + e)(1 - e) - 1 = -e^2, which rounded products take for 0 or more.
        let e = f64::EPSILON;
        assert_eq!(value(determinant(1.0 + e, 1.0, 1.0 - e)), -e * e);
        assert_eq!(value(determinant(1.0 + 2.0 * e, 1.0 + e, 1.0)), -e * e);
        // Far apart, and beyond the range of products.
        let (x, e) = determinant(f64::MAX, 0.0, f64::MAX);
        assert!(x > 0.99 && e == 2048);
        let (x, e) = determinant(f64::from_bits(1), 0.0, f64::from_bits(1));
        assert_eq!((x, e), (0.5, -2147));
        let (x, e) = determinant(f64::MAX, 1e-300, 1.0);
        assert!(x > 0.99 && e == 1024);
    }
}
