//! Magnitudes, what underflow takes of them, and how large a sum becomes on its way to one.

use super::triconv::Number;
use super::triconv_bounds::most;
use super::wide::Referred;
use std::marker::PhantomData;
use std::ops::{Add, Mul};

/// A number without its sign, or a sum of such.
#[derive(Clone, Copy, Debug)]
pub struct Magnitude<T> {
    pub size: f64,
    /// How far underflow may have moved a result in `T` and its reference away from the number.
    pub lost: f64,
    /// Of a sum, what it is before it is divided, where that is its weight; infinite where a sum that it is computed from may be
    /// beyond all floats.
    peak: f64,
    of: PhantomData<T>,
}

impl<T: Referred> Magnitude<T> {
    pub fn new(x: f64) -> Self {
        Self { size: x.abs(), lost: 0.0, peak: 0.0, of: PhantomData }
    }

    /// Of a result that the library has rounded after it went on with what it was before.
    pub fn rounded(x: f64) -> Self {
        Self { lost: smallest::<T>(), ..Self::new(x) }
    }

    /// Whether no sum on the way to it is near the largest number.
    pub fn is_in_range(self) -> bool {
        self.size < most::<T>() / 4.0 && self.peak < most::<T>() / 4.0
    }

    fn is_zero(self) -> bool {
        self.size == 0.0 && self.lost == 0.0
    }
}

/// The smallest number above 0.
fn smallest<T: Referred>() -> f64 {
    T::tiny() * 2.0 * T::unit()
}

impl<T: Referred> Add for Magnitude<T> {
    type Output = Self;

    /// What is too small to be normal is added without a rounding.
    fn add(self, other: Self) -> Self {
        let (size, lost) = (self.size + other.size, self.lost + other.lost);
        let peak = self.peak.max(self.size) + other.peak.max(other.size);
        Self { size, lost, peak, of: PhantomData }
    }
}

impl<T: Referred> Mul for Magnitude<T> {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        Self::term(Self::integer(1), self, other)
    }
}

impl<T: Referred> Number for Magnitude<T> {
    fn integer(n: i64) -> Self {
        Self::new(n as f64)
    }

    fn part(n: i64) -> Self {
        Self::new(1.0 / n as f64)
    }

    /// A product that underflows loses half the smallest number, and as much again with its weight. Its reference loses up to three
    /// halves: two floats make three products. Weights that are integers make nothing smaller, and are exact; others may have
    /// multiplied a factor first.
    fn term(weight: Self, x: Self, y: Self) -> Self {
        let (w, product) = (weight.size, x.size * y.size);
        let size = w * product;
        let known = x.peak.max(y.peak) < most::<T>() / 4.0;
        let peak = if known { w.max(1.0) * product } else { f64::INFINITY };
        let lost = if x.is_zero() || y.is_zero() {
            0.0
        } else {
            let factors = if w < 1.0 { 2.0 * (x.size + y.size) } else { 0.0 };
            let here = (3.0 * w.max(1.0) + factors) * smallest::<T>();
            w * (x.lost * (y.size + y.lost) + x.size * y.lost) + here
        };
        Self { size, lost, peak, of: PhantomData }
    }
}
