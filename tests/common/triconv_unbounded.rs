//! Numbers of twice the precision of an f64 that neither overflow nor underflow.

use super::triconv::Number;
use super::wide::{Dd, Wide};
use std::ops::{Add, Mul};

/// `mantissa * 2^exponent` with a mantissa of magnitude 1 to 2, or 0.
#[derive(Clone, Copy, Debug)]
pub struct Unbounded {
    mantissa: Dd,
    exponent: i64,
}

impl Unbounded {
    pub fn new(x: f64) -> Self {
        assert!(x.is_finite(), "{x}");
        // The power of two that a mantissa is divided by is then a number, and a subnormal number has digits enough.
        let shift = if x.abs() < 1.0 { 64 } else { -64 };
        Self { mantissa: Dd::from_f64(x * 2f64.powi(shift)), exponent: -i64::from(shift) }.normal()
    }

    fn normal(self) -> Self {
        let Dd { hi, lo } = self.mantissa;
        if hi == 0.0 {
            return Self { mantissa: Dd::from_f64(0.0), exponent: 0 };
        }
        let shift = i64::from((hi.to_bits() >> 52) as u32 & 0x7ff) - 1023;
        let by = f64::from_bits(((1023 - shift) as u64) << 52);
        Self { mantissa: Dd { hi: hi * by, lo: lo * by }, exponent: self.exponent + shift }
    }

    pub fn magnitude(self) -> Self {
        if self.mantissa.hi < 0.0 { Self { mantissa: -self.mantissa, ..self } } else { self }
    }

    /// Binary digits before the point, of a number other than 0.
    pub fn exponent(self) -> i64 {
        if self.mantissa.hi == 0.0 { i64::MIN } else { self.exponent }
    }

    /// `self * 2^n`
    pub fn scaled(self, n: i64) -> Self {
        Self { exponent: self.exponent + n, ..self }.normal()
    }

    /// Infinite and 0 where it must be.
    pub fn to_dd(self) -> Dd {
        let half = self.exponent.clamp(-2400, 2400) / 2;
        let rest = self.exponent.clamp(-2400, 2400) - half;
        let powers = [half, rest].map(|n| 2f64.powi(n as i32));
        let [hi, lo] = [self.mantissa.hi, self.mantissa.lo].map(|x| x * powers[0] * powers[1]);
        if hi.is_finite() { Dd { hi, lo } } else { Dd::from_f64(hi) }
    }
}

impl Add for Unbounded {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        if self.mantissa.hi == 0.0 || other.mantissa.hi == 0.0 {
            return if self.mantissa.hi == 0.0 { other } else { self };
        }
        let (large, small) = if self.exponent >= other.exponent { (self, other) } else { (other, self) };
        let by = 2f64.powi((small.exponent - large.exponent).max(-300) as i32);
        let small = Dd { hi: small.mantissa.hi * by, lo: small.mantissa.lo * by };
        Self { mantissa: large.mantissa + small, exponent: large.exponent }.normal()
    }
}

impl Mul for Unbounded {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self { mantissa: self.mantissa * other.mantissa, exponent: self.exponent + other.exponent }.normal()
    }
}

impl Number for Unbounded {
    fn integer(n: i64) -> Self {
        Self::new(n as f64)
    }

    fn part(n: i64) -> Self {
        Self { mantissa: Dd::from_f64(1.0) / Dd::from_f64(n as f64), exponent: 0 }.normal()
    }
}
