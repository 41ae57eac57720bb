//! Numbers of at least 0 that neither overflow nor underflow.

use std::ops::{Add, Mul};

/// `mantissa * 2^exponent` with a mantissa of 1 to 2, or 0.
#[derive(Clone, Copy, Debug)]
pub struct Scaled {
    mantissa: f64,
    exponent: i64,
}

impl Scaled {
    pub fn new(x: f64) -> Self {
        assert!(x >= 0.0 && x.is_finite(), "{x}");
        Self { mantissa: x, exponent: 0 }.normal()
    }

    fn normal(self) -> Self {
        if self.mantissa == 0.0 {
            return Self { mantissa: 0.0, exponent: 0 };
        }
        // A subnormal number has its exponent in its mantissa.
        let (mantissa, exponent) = match self.mantissa.is_normal() {
            true => (self.mantissa, self.exponent),
            false => (self.mantissa * 2f64.powi(64), self.exponent - 64),
        };
        let unbiased = (mantissa.to_bits() >> 52) as i64 - 1023;
        Self { mantissa: mantissa / 2f64.powi(unbiased as i32), exponent: exponent + unbiased }
    }

    /// To a few ulps where `power` has so few bits that the exponent times it is exact.
    pub fn pow(self, power: f64) -> Self {
        if self.mantissa == 0.0 {
            return if power == 0.0 { Self::new(1.0) } else { self };
        }
        let exponent = self.exponent as f64 * power;
        let whole = exponent.floor();
        let mantissa = self.mantissa.powf(power) * (exponent - whole).exp2();
        Self { mantissa, exponent: whole as i64 }.normal()
    }

    /// `self / other`, which rounds to 0 or infinity where it must.
    pub fn over(self, other: Self) -> f64 {
        let exponent = self.exponent - other.exponent;
        let half = (exponent / 2).clamp(-2000, 2000);
        let [a, b] = [half, (exponent - half).clamp(-2000, 2000)].map(|n| 2f64.powi(n as i32));
        self.mantissa / other.mantissa * a * b
    }
}

impl Add for Scaled {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        if self.mantissa == 0.0 || other.mantissa == 0.0 {
            return if self.mantissa == 0.0 { other } else { self };
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let shift = (small.exponent - large.exponent).max(-200) as i32;
        Self { mantissa: large.mantissa + small.mantissa * 2f64.powi(shift), exponent: large.exponent }.normal()
    }
}

impl Mul for Scaled {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let (mantissa, exponent) = (self.mantissa * other.mantissa, self.exponent + other.exponent);
        Self { mantissa, exponent }.normal()
    }
}
