//! `f32` and `f64`, and the vectors that hold them at each level.

#[cfg(target_arch = "x86_64")]
use crate::simd::x86;
use crate::simd::{Vector, base, math};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// A floating-point type that kernels compute with: `f32` or `f64`.
pub trait Element:
    sealed::Sealed + num_traits::Float + num_traits::FromPrimitive + bytemuck::Pod + std::fmt::Debug + Send + Sync
{
    /// The logical vector at [`Level::Base`](crate::Level::Base).
    #[doc(hidden)]
    type Base: Vector<Self, Token = base::Base>;
    /// The logical vector at [`Level::V3`](crate::Level::V3).
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type V3: Vector<Self, Token = x86::V3>;
    /// The logical vector at [`Level::V4`](crate::Level::V4).
    #[cfg(target_arch = "x86_64")]
    #[doc(hidden)]
    type V4: Vector<Self, Token = x86::V4>;
    /// The number of elements of a logical vector, the same at every level.
    #[doc(hidden)]
    const LANES: usize;
    /// 1.5 times the power of two whose floats are the integers: `(x + ROUNDING) - ROUNDING` is `x` rounded to the nearest.
    #[doc(hidden)]
    const ROUNDING: Self;
    /// The exponent of the least normal number.
    #[doc(hidden)]
    const LEAST_EXPONENT: Self;
    /// The coefficients of [`exp2`](crate::simd::math::exp2), of the first power onwards.
    #[doc(hidden)]
    const EXP2: &'static [Self];
    /// The least float above this one.
    #[doc(hidden)]
    #[must_use]
    fn next_up(self) -> Self;
    /// The greatest float below this one.
    #[doc(hidden)]
    #[must_use]
    fn next_down(self) -> Self;
}

macro_rules! element {
    ($t:ident, $lanes:literal, $base:ident, $v3:ident, $v4:ident, $exp2:ident) => {
        impl Element for $t {
            type Base = base::$base;
            #[cfg(target_arch = "x86_64")]
            type V3 = x86::$v3;
            #[cfg(target_arch = "x86_64")]
            type V4 = x86::$v4;
            const LANES: usize = $lanes;
            const ROUNDING: Self = 1.5 * (1u64 << ($t::MANTISSA_DIGITS - 1)) as $t;
            const LEAST_EXPONENT: Self = ($t::MIN_EXP - 1) as $t;
            const EXP2: &'static [Self] = &math::$exp2;
            fn next_up(self) -> Self {
                self.next_up()
            }
            fn next_down(self) -> Self {
                self.next_down()
            }
        }
    };
}
element!(f32, 16, F32, V3F32, V4F32, EXP2_F32);
element!(f64, 8, F64, V3F64, V4F64, EXP2_F64);
