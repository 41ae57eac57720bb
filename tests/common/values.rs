//! Values of arrays: ones that make every rounding and every bit of a NaN count.

use super::cells::Cell;
use super::random::Random;
use ndarray::{Array, IntoDimension};
use pullback::Real;

/// Where values are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Values {
    /// -8 to 8: sums and products are exact.
    Integers,
    /// Finite, of magnitudes so far apart that sums in another order have other bits.
    Spread,
    /// [`Values::Spread`] with special values between.
    Adversarial,
    /// -1, 0 and 1 with special values between: most elements are equal to others.
    Tied,
}

impl Values {
    pub fn draw<T: Value>(self, random: &mut Random) -> T {
        match self {
            Self::Integers => T::from_i64(random.below(17) as i64 - 8).expect("a small integer"),
            Self::Adversarial if random.below(8) == 0 => random.one_of(T::SPECIAL),
            Self::Tied if random.below(6) == 0 => random.one_of(T::SPECIAL),
            Self::Tied => T::from_i64(random.below(3) as i64 - 1).expect("a small integer"),
            Self::Spread | Self::Adversarial => T::spread(random.bits()),
        }
    }

    /// An array drawn from `seed`.
    pub fn array<T: Value, S: IntoDimension>(self, shape: S, seed: u64) -> Array<T, S::Dim> {
        let mut random = Random::new(seed);
        Array::from_shape_simple_fn(shape.into_dimension(), || self.draw(&mut random))
    }
}

/// An element type with access to its bits.
pub trait Value: Real {
    /// Quiet and signalling NaNs with payloads, infinities, zeros, subnormals, extremes.
    const SPECIAL: &'static [Self];

    fn to_bits(self) -> u64;

    /// The next value above.
    fn up(self) -> Self;

    /// The next value below.
    fn down(self) -> Self;

    /// The least value above 0.
    fn subnormal() -> Self {
        Self::zero().up()
    }

    /// A finite value with sign and mantissa from random bits and one of 32 exponents around 1.
    fn spread(bits: u64) -> Self;

    /// What `x` is rounded to. Whether a NaN keeps its bits in a conversion is not promised.
    fn rounded(x: f64) -> Cell<Self>;
}

impl Value for f32 {
    const SPECIAL: &'static [Self] = &[
        Self::from_bits(0x7fc0_1234),
        Self::from_bits(0xffa0_4321),
        Self::INFINITY,
        Self::NEG_INFINITY,
        0.0,
        -0.0,
        Self::from_bits(1),
        Self::from_bits(0x807f_ffff),
        Self::MIN_POSITIVE,
        Self::MAX,
        Self::MIN,
    ];

    fn to_bits(self) -> u64 {
        self.to_bits().into()
    }

    fn up(self) -> Self {
        self.next_up()
    }

    fn down(self) -> Self {
        self.next_down()
    }

    fn spread(bits: u64) -> Self {
        let exponent = 127 - 16 + (bits >> 32) as u32 % 32;
        Self::from_bits(bits as u32 & 0x807f_ffff | exponent << 23)
    }

    fn rounded(x: f64) -> Cell<Self> {
        Cell::Computed(x as Self)
    }
}

impl Value for f64 {
    const SPECIAL: &'static [Self] = &[
        Self::from_bits(0x7ff8_0000_1234_5678),
        Self::from_bits(0xfff4_8765_0000_4321),
        Self::INFINITY,
        Self::NEG_INFINITY,
        0.0,
        -0.0,
        Self::from_bits(1),
        Self::from_bits(0x800f_ffff_ffff_ffff),
        Self::MIN_POSITIVE,
        Self::MAX,
        Self::MIN,
    ];

    fn to_bits(self) -> u64 {
        self.to_bits()
    }

    fn up(self) -> Self {
        self.next_up()
    }

    fn down(self) -> Self {
        self.next_down()
    }

    fn spread(bits: u64) -> Self {
        let exponent = 1023 - 16 + (bits >> 52) % 32;
        Self::from_bits(bits & 0x800f_ffff_ffff_ffff | exponent << 52)
    }

    fn rounded(x: f64) -> Cell<Self> {
        Cell::Copied(x)
    }
}
