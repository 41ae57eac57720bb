//! Numbers so much more precise than an element that what they round does not count: f64 for f32, two f64 for f64.

use super::values::Value;
use std::fmt::Debug;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// An element type and the numbers that its references compute with.
pub trait Referred: Value {
    type Wide: Wide;

    fn wide(self) -> Self::Wide {
        Self::Wide::from_f64(self.to_f64().expect("an element is an f64"))
    }

    /// Half the distance from 1 to the next number.
    fn unit() -> f64 {
        Self::epsilon().to_f64().expect("an element is an f64") / 2.0
    }

    /// The smallest normal number.
    fn tiny() -> f64 {
        Self::min_positive_value().to_f64().expect("an element is an f64")
    }
}

impl Referred for f32 {
    type Wide = f64;
}

impl Referred for f64 {
    type Wide = Dd;
}

pub trait Wide:
    Copy
    + Debug
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn from_f64(x: f64) -> Self;
    fn to_f64(self) -> f64;
    /// `e^self`, of a number of at most 700.
    fn exp(self) -> Self;
    /// Of a few turns at most.
    fn sin_cos(self) -> [Self; 2];

    fn zero() -> Self {
        Self::from_f64(0.0)
    }

    /// `self * 2^n`
    fn scaled(self, n: i32) -> Self {
        // In two steps, as 2^n may not be a number.
        let half = Self::from_f64(2f64.powi(n / 2));
        let rest = Self::from_f64(2f64.powi(n - n / 2));
        self * half * rest
    }
}

impl Wide for f64 {
    fn from_f64(x: f64) -> Self {
        x
    }

    fn to_f64(self) -> f64 {
        self
    }

    fn exp(self) -> Self {
        self.exp()
    }

    fn sin_cos(self) -> [Self; 2] {
        self.sin_cos().into()
    }
}

/// The sum of two f64 of which the second is at most half an ulp of the first: 106 bits.
#[derive(Clone, Copy, Debug)]
pub struct Dd {
    pub hi: f64,
    pub lo: f64,
}

/// `a + b` where `a` is the larger one or 0.
fn ordered_sum(a: f64, b: f64) -> Dd {
    let hi = a + b;
    Dd { hi, lo: b - (hi - a) }
}

fn two_sum(a: f64, b: f64) -> Dd {
    let hi = a + b;
    let of_b = hi - a;
    Dd { hi, lo: (a - (hi - of_b)) + (b - of_b) }
}

impl Add for Dd {
    type Output = Self;

    fn add(self, b: Self) -> Self {
        let (high, low) = (two_sum(self.hi, b.hi), two_sum(self.lo, b.lo));
        let sum = ordered_sum(high.hi, high.lo + low.hi);
        ordered_sum(sum.hi, sum.lo + low.lo)
    }
}

impl Neg for Dd {
    type Output = Self;

    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Sub for Dd {
    type Output = Self;

    fn sub(self, b: Self) -> Self {
        self + -b
    }
}

impl Mul for Dd {
    type Output = Self;

    fn mul(self, b: Self) -> Self {
        let hi = self.hi * b.hi;
        let lo = self.hi.mul_add(b.hi, -hi);
        ordered_sum(hi, lo + (self.hi * b.lo + self.lo * b.hi))
    }
}

impl Div for Dd {
    type Output = Self;

    fn div(self, b: Self) -> Self {
        let first = self.hi / b.hi;
        let rest = self - b * Self::from_f64(first);
        let second = rest.hi / b.hi;
        let third = (rest - b * Self::from_f64(second)).hi / b.hi;
        ordered_sum(first, second) + Self::from_f64(third)
    }
}

impl PartialEq for Dd {
    fn eq(&self, b: &Self) -> bool {
        self.hi == b.hi && self.lo == b.lo
    }
}

impl PartialOrd for Dd {
    fn partial_cmp(&self, b: &Self) -> Option<std::cmp::Ordering> {
        // An infinite one has no second part.
        if self.hi == b.hi && self.hi.is_finite() { self.lo.partial_cmp(&b.lo) } else { self.hi.partial_cmp(&b.hi) }
    }
}

impl Dd {
    pub const LN_2: Self = Self { hi: std::f64::consts::LN_2, lo: 2.319_046_813_846_299_6e-17 };
    pub const HALF_PI: Self = Self { hi: std::f64::consts::FRAC_PI_2, lo: 6.123_233_995_736_766e-17 };

    /// `first` and the terms that follow it, each the one before times `factor` and over its step.
    fn series(first: Self, factor: Self, steps: impl Iterator<Item = f64>) -> Self {
        let (mut term, mut sum) = (first, first);
        for step in steps {
            term = term * factor / Self::from_f64(step);
            sum = sum + term;
            if term.hi.abs() < 1e-34 {
                break;
            }
        }
        sum
    }
}

impl Wide for Dd {
    fn from_f64(x: f64) -> Self {
        Self { hi: x, lo: 0.0 }
    }

    fn to_f64(self) -> f64 {
        self.hi
    }

    fn exp(self) -> Self {
        const HALVINGS: i32 = 8;
        if self.hi < -1500.0 {
            return Self::zero();
        }
        let turns = (self.hi / Self::LN_2.hi).round();
        let rest = (self - Self::LN_2 * Self::from_f64(turns)).scaled(-HALVINGS);
        // e^rest - 1, which is doubled as (1 + y)^2 - 1.
        let mut y = Self::series(rest, rest, (2..).map(f64::from));
        for _ in 0..HALVINGS {
            y = y.scaled(1) + y * y;
        }
        (y + Self::from_f64(1.0)).scaled(turns as i32)
    }

    fn sin_cos(self) -> [Self; 2] {
        let quarters = (self.hi / Self::HALF_PI.hi).round();
        let x = self - Self::HALF_PI * Self::from_f64(quarters);
        let squared = -(x * x);
        let sin = Self::series(x, squared, (1..).map(|n| f64::from(2 * n * (2 * n + 1))));
        let cos = Self::series(Self::from_f64(1.0), squared, (1..).map(|n| f64::from(2 * n * (2 * n - 1))));
        match (quarters as i64).rem_euclid(4) {
            0 => [sin, cos],
            1 => [cos, -sin],
            2 => [-sin, -cos],
            _ => [-cos, sin],
        }
    }
}

/// A number and the sum of the magnitudes of the products that it was summed up from: what the error of any evaluation is
/// proportional to.
#[derive(Clone, Copy, Debug)]
pub struct Tracked<W> {
    pub value: W,
    pub size: f64,
}

impl<W: Wide> Tracked<W> {
    pub fn new(value: W) -> Self {
        Self { value, size: value.to_f64().abs() }
    }

    pub fn zero() -> Self {
        Self::new(W::zero())
    }

    /// `self * 2^n`
    pub fn scaled(self, n: i32) -> Self {
        Self { value: self.value.scaled(n), size: self.size.scaled(n) }
    }

    pub fn times(self, factor: f64) -> Self {
        self * Self::new(W::from_f64(factor))
    }
}

impl<W: Wide> Add for Tracked<W> {
    type Output = Self;

    fn add(self, b: Self) -> Self {
        Self { value: self.value + b.value, size: self.size + b.size }
    }
}

impl<W: Wide> Neg for Tracked<W> {
    type Output = Self;

    fn neg(self) -> Self {
        Self { value: -self.value, size: self.size }
    }
}

impl<W: Wide> Sub for Tracked<W> {
    type Output = Self;

    fn sub(self, b: Self) -> Self {
        self + -b
    }
}

impl<W: Wide> Mul for Tracked<W> {
    type Output = Self;

    fn mul(self, b: Self) -> Self {
        Self { value: self.value * b.value, size: self.size * b.size }
    }
}

impl<W: Wide> Div for Tracked<W> {
    type Output = Self;

    /// By a number that is not a sum.
    fn div(self, b: Self) -> Self {
        Self { value: self.value / b.value, size: self.size / b.size }
    }
}
