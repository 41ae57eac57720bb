//! Instruction-set levels, and the two traits that kernels are written against.
//!
//! A kernel is one `#[inline(always)]` body, generic over a token [`Simd`] and the vectors [`Vector`] that the token
//! stands for. [`at!`] runs such a body at a [`Level`]: it takes the token of the level, and the token's
//! [`Simd::vectorize`] compiles the body with the level's instructions. A token's only constructor is detection, and a
//! vector can only be made from a token, so arithmetic on vectors is safe.
//!
//! Every level has the same logical width, 16 `f32` or 8 `f64`: one zmm, two ymm or four xmm registers. What a kernel
//! computes is therefore the same sequence of operations everywhere.

use crate::element::Element;
use crate::error::{Error, Result};
use std::fmt;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Sub};
use std::sync::OnceLock;

pub mod base;
pub mod math;
pub mod transpose;
#[cfg(target_arch = "x86_64")]
pub mod x86;

/// The set of instructions that an operator's kernels use.
///
/// An operator takes [`Level::current`](crate::Level::current) when it is made; `with_level` changes it. Results do not depend on the level
/// where a family's documentation promises so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What the crate was compiled for: SSE2 on x86-64, Neon on AArch64, scalar code elsewhere.
    Base,
    /// AVX2 and FMA: Haswell, Zen 1 and later.
    V3,
    /// AVX-512 with its byte, bit-manipulation and population-count extensions: Ice Lake, Zen 4 and later.
    V4,
}

impl Level {
    /// Every level, lowest first.
    pub const ALL: [Self; 3] = [Self::Base, Self::V3, Self::V4];

    /// Whether this CPU has the level's instructions.
    #[must_use]
    pub fn is_available(self) -> bool {
        match self {
            Self::Base => true,
            #[cfg(target_arch = "x86_64")]
            Self::V3 => x86::V3::detect().is_some(),
            #[cfg(target_arch = "x86_64")]
            Self::V4 => x86::V4::detect().is_some(),
            #[cfg(not(target_arch = "x86_64"))]
            Self::V3 | Self::V4 => false,
        }
    }

    /// The highest level of this CPU.
    #[must_use]
    pub fn highest() -> Self {
        if Self::V4.is_available() {
            Self::V4
        } else if Self::V3.is_available() {
            Self::V3
        } else {
            Self::Base
        }
    }

    /// The level of new operators: the highest of this CPU, or lower where the environment variable `PULLBACK_SIMD`
    /// says `base`, `v3` or `v4`. The variable never raises the level; it is read once.
    ///
    /// # Errors
    ///
    /// [`Error::Environment`] where the variable holds another word.
    pub fn current() -> Result<Self> {
        static CURRENT: OnceLock<Result<Level>> = OnceLock::new();
        CURRENT.get_or_init(Self::from_environment).clone()
    }

    fn from_environment() -> Result<Self> {
        const VARIABLE: &str = "PULLBACK_SIMD";
        let Some(value) = std::env::var_os(VARIABLE) else { return Ok(Self::highest()) };
        let ceiling = Self::ALL.into_iter().find(|level| value.to_str() == Some(level.name()));
        let unknown = || Error::Environment {
            variable: VARIABLE,
            value: value.to_string_lossy().into_owned(),
            accepted: "base, v3, v4",
        };
        Ok(ceiling.ok_or_else(unknown)?.min(Self::highest()))
    }

    /// The level itself where this CPU has it.
    pub(crate) fn checked(self) -> Result<Self> {
        if self.is_available() {
            Ok(self)
        } else {
            Err(Error::LevelUnavailable { level: self, highest: Self::highest() })
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::V3 => "v3",
            Self::V4 => "v4",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A level's proof: a value exists only where the level's instructions do.
pub trait Simd: Copy + Send + Sync {
    /// The logical vector of `T`.
    type V<T: Element>: Vector<T, Token = Self>;

    /// How many logical vectors a kernel may keep in registers beside its working values.
    const ACCUMULATORS: usize;

    /// Runs `f` compiled with the level's instructions. `f` and all that it calls must be `#[inline(always)]`.
    fn vectorize<R>(self, f: impl FnOnce(Self) -> R) -> R;

    /// A bit a byte, the first lowest: whether it is not 0.
    fn nonzero(self, bytes: &[u8; 64]) -> u64;

    /// A bit a word, the first lowest: whether it is not 0.
    fn nonzero_words(self, words: &[u64; 64]) -> u64;

    /// [`Vector::splat`].
    #[inline(always)]
    fn splat<T: Element>(self, x: T) -> Self::V<T> {
        Self::V::splat(self, x)
    }

    /// [`Vector::load`].
    #[inline(always)]
    fn load<T: Element>(self, x: &[T]) -> Self::V<T> {
        Self::V::load(self, x)
    }

    /// [`Vector::load_head`].
    #[inline(always)]
    fn load_head<T: Element>(self, x: &[T]) -> Self::V<T> {
        Self::V::load_head(self, x)
    }
}

/// One logical vector: `T::LANES` elements.
///
/// Slices shorter than an operation needs are a panic, so every method is safe; the checks vanish where the kernel's
/// slices have a known length.
pub trait Vector<T: Element>:
    Copy + Add<Output = Self> + Sub<Output = Self> + Mul<Output = Self> + Div<Output = Self>
{
    /// The level's token.
    type Token: Simd;
    /// The result of a comparison, a truth value a lane.
    type Mask: Mask;
    /// As many row numbers as there are lanes.
    type Ids: Ids<Token = Self::Token, Mask = Self::Mask>;

    /// `x` in every lane.
    fn splat(s: Self::Token, x: T) -> Self;
    /// The first `LANES` elements of `x`.
    fn load(s: Self::Token, x: &[T]) -> Self;
    /// All of `x`, at most `LANES` elements, then zeros.
    fn load_head(s: Self::Token, x: &[T]) -> Self;
    /// Into the first `LANES` elements of `out`.
    fn store(self, out: &mut [T]);
    /// The first lanes into all of `out`, at most `LANES` elements.
    fn store_head(self, out: &mut [T]);
    /// [`Vector::store`] into memory that need not be initialised.
    fn write(self, out: &mut [MaybeUninit<T>]);
    /// [`Vector::store_head`] into memory that need not be initialised.
    fn write_head(self, out: &mut [MaybeUninit<T>]);
    /// [`Vector::write`] of vectors side by side, past the caches where the address allows it: a multiple of 16 bytes,
    /// best of 64. The caller calls [`fence`] before another thread may read what was written.
    fn stream<const N: usize>(vectors: [Self; N], out: &mut [MaybeUninit<T>]);
    /// `if a < b { a } else { b }` a lane.
    fn min(self, b: Self) -> Self;
    /// `if a > b { a } else { b }` a lane.
    fn max(self, b: Self) -> Self;
    /// `a < b` a lane.
    fn lt(self, b: Self) -> Self::Mask;
    /// `a <= b` a lane.
    fn le(self, b: Self) -> Self::Mask;
    /// `if mask { a } else { b }` a lane.
    fn select(mask: Self::Mask, a: Self, b: Self) -> Self;
    /// `self * b + c` a lane: rounded once at V3 and V4, twice at the portable level. For families whose results may
    /// depend on the level.
    fn mul_add(self, b: Self, c: Self) -> Self;
    /// The nearest integer a lane, the even one of two. Where a lane is 2^22 or more (`f32`; 2^51 for `f64`) it is some
    /// number or other.
    fn round(self) -> Self;
    /// `self * 2^n` a lane, for integers `n` such that neither side is subnormal or overflows. Other lanes are some number
    /// or other.
    fn scale2(self, n: Self) -> Self;
    /// The lanes in the opposite order.
    fn reverse(self) -> Self;
    /// The sum of all lanes: the upper half is added to the lower until one is left.
    fn fold(self) -> T;
    /// Of the lanes of `a` and then of `b`, those of even and those of odd number.
    fn unzip(a: Self, b: Self) -> (Self, Self);
    /// The lanes of `a` and of `b` in turn, in two vectors.
    fn zip(a: Self, b: Self) -> (Self, Self);
}

/// A truth value a lane.
pub trait Mask: Copy {
    /// Both, a lane.
    fn and(self, b: Self) -> Self;
    /// Either, a lane.
    fn or(self, b: Self) -> Self;
    /// One bit a lane, the first lane lowest.
    fn bits(self) -> u32;
}

/// A row number (`u32`) a lane, beside the vectors whose comparisons they follow.
pub trait Ids: Copy {
    /// The level's token.
    type Token: Simd;
    /// The truth values of the vector beside.
    type Mask: Mask;

    /// `id` in every lane.
    fn all(s: Self::Token, id: u32) -> Self;
    /// The first `LANES` numbers of `ids`.
    fn read(s: Self::Token, ids: &[u32]) -> Self;
    /// Into the first `LANES` numbers of `out`.
    fn put(self, out: &mut [u32]);
    /// `a < b` a lane.
    fn below(self, b: Self) -> Self::Mask;
    /// `if mask { a } else { b }` a lane.
    fn choose(mask: Self::Mask, a: Self, b: Self) -> Self;
}

/// The row numbers beside a level's vectors of `T`.
pub type IdsOf<T, S> = <<S as Simd>::V<T> as Vector<T>>::Ids;

/// Row numbers beside `f64` lanes are `f64`, which holds every `u32`: they compare and select as the lanes do.
macro_rules! ids_in_f64 {
    ($name:ident, $token:ty) => {
        impl $crate::simd::Ids for $name {
            type Token = $token;
            type Mask = <Self as Vector<f64>>::Mask;

            #[inline(always)]
            fn all(s: $token, id: u32) -> Self {
                <Self as Vector<f64>>::splat(s, f64::from(id))
            }
            #[inline(always)]
            fn read(s: $token, ids: &[u32]) -> Self {
                let ids: [u32; 8] = *ids.first_chunk().expect("a vector's lanes");
                <Self as Vector<f64>>::load(s, &ids.map(f64::from))
            }
            #[inline(always)]
            fn put(self, out: &mut [u32]) {
                let mut ids = [0.0; 8];
                <Self as Vector<f64>>::store(self, &mut ids);
                out[..8].copy_from_slice(&ids.map(|id| id as u32));
            }
            #[inline(always)]
            fn below(self, b: Self) -> Self::Mask {
                <Self as Vector<f64>>::lt(self, b)
            }
            #[inline(always)]
            fn choose(mask: Self::Mask, a: Self, b: Self) -> Self {
                <Self as Vector<f64>>::select(mask, a, b)
            }
        }
    };
}
pub(crate) use ids_in_f64;

/// No element type has more lanes.
pub const MOST_LANES: usize = 16;

/// Asks for every cache line of `x`, ahead of its use.
#[inline(always)]
pub fn prefetch<T>(x: &[T]) {
    #[cfg(target_arch = "x86_64")]
    x86::prefetch(x);
    #[cfg(not(target_arch = "x86_64"))]
    let _ = x;
}

/// Copies `x` past the caches where the address and the length are multiples of 16 bytes, as `copy_from_slice` elsewhere.
#[inline(always)]
pub fn stream_slice<T: Element>(x: &[T], out: &mut [MaybeUninit<T>]) {
    #[cfg(target_arch = "x86_64")]
    x86::stream_slice(x, out);
    #[cfg(not(target_arch = "x86_64"))]
    out.write_copy_of_slice(x);
}

/// Orders the streaming stores of this thread before all that it does next.
#[inline(always)]
pub fn fence() {
    #[cfg(target_arch = "x86_64")]
    x86::fence();
}

/// Runs a kernel body at a level: `at!(level, |s| kernel(s, x, y))`.
macro_rules! at {
    ($level:expr, |$s:ident| $body:expr) => {
        match $level {
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Level::V4 => $crate::simd::Simd::vectorize(
                $crate::simd::x86::V4::detect().expect("the operator's level was checked when it was set"),
                #[inline(always)]
                |$s| $body,
            ),
            #[cfg(target_arch = "x86_64")]
            $crate::simd::Level::V3 => $crate::simd::Simd::vectorize(
                $crate::simd::x86::V3::detect().expect("the operator's level was checked when it was set"),
                #[inline(always)]
                |$s| $body,
            ),
            _ => $crate::simd::Simd::vectorize(
                $crate::simd::base::Base::new(),
                #[inline(always)]
                |$s| $body,
            ),
        }
    };
}
pub(crate) use at;

#[cfg(test)]
mod tests {
    use super::*;

    fn lanes<T: Element>(level: Level, a: &[T], b: &[T], c: &[T], operation: usize) -> Vec<T> {
        let mut out = vec![T::zero(); T::LANES];
        at!(level, |s| {
            let (a, b, c) = (s.load::<T>(a), s.load::<T>(b), s.load::<T>(c));
            let result = match operation {
                0 => a.mul_add(b, c),
                1 => a.round(),
                2 => a.scale2(b),
                3 => a.reverse(),
                4 => Vector::unzip(a, b).0,
                5 => Vector::unzip(a, b).1,
                6 => Vector::zip(a, b).0,
                7 => Vector::zip(a, b).1,
                8 => a / b,
                _ => s.splat(a.fold()),
            };
            result.store(&mut out);
        });
        out
    }

    /// What kernels that may depend on the level compute with, at every level.
    fn operations<T: Element>() {
        let number = |x: f64| T::from_f64(x).unwrap();
        let each = |f: &dyn Fn(usize) -> f64| (0..T::LANES).map(|i| number(f(i))).collect::<Vec<T>>();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            // (1 + e)(1 - e) - 1 is -e^2 where it is rounded once.
            let e = T::epsilon();
            let (a, b, c) = (vec![T::one() + e; T::LANES], vec![T::one() - e; T::LANES], vec![-T::one(); T::LANES]);
            let expected = if level == Level::Base { (a[0] * b[0]) + c[0] } else { -(e * e) };
            assert_eq!(lanes(level, &a, &b, &c, 0), vec![expected; T::LANES], "{level}");

            // Ties to even, both signs, up to where integers end.
            let large = T::ROUNDING / number(3.0) - number(0.75);
            let mut a = each(&|i| (i as f64 - 7.0) * 0.5);
            a[0] = large;
            a[1] = -large;
            let mut expected = each(&|i| ((i as f64 - 7.0) * 0.5).round_ties_even());
            expected[0] = large.round();
            expected[1] = -expected[0];
            assert_eq!(lanes(level, &a, &a, &a, 1), expected, "{level}");

            let (a, n) = (each(&|i| 1.0 + i as f64 / 16.0), each(&|i| 9.0 * i as f64 - 126.0));
            let expected = each(&|i| (1.0 + i as f64 / 16.0) * (9.0 * i as f64 - 126.0).exp2());
            assert_eq!(lanes(level, &a, &n, &a, 2), expected, "{level}");

            let expected: Vec<T> = a.iter().rev().copied().collect();
            assert_eq!(lanes(level, &a, &n, &a, 3), expected, "{level}");

            let both: Vec<T> = a.iter().chain(&n).copied().collect();
            let every_second = |from: usize| both.iter().copied().skip(from).step_by(2).collect::<Vec<T>>();
            assert_eq!(lanes(level, &a, &n, &a, 4), every_second(0), "{level}");
            assert_eq!(lanes(level, &a, &n, &a, 5), every_second(1), "{level}");
            let in_turn: Vec<T> = a.iter().zip(&n).flat_map(|(&a, &n)| [a, n]).collect();
            assert_eq!(lanes(level, &a, &n, &a, 6), in_turn[..T::LANES], "{level}");
            assert_eq!(lanes(level, &a, &n, &a, 7), in_turn[T::LANES..], "{level}");

            // Of very different size, so that every other order gives another sum.
            let a = each(&|i| (1.0 + i as f64 * 0.37) * (17.0 * (i as f64 * 5.0).sin()).exp2());
            let mut sums = a.clone();
            while sums.len() > 1 {
                let upper = sums.split_off(sums.len() / 2);
                sums.iter_mut().zip(upper).for_each(|(sum, x)| *sum = *sum + x);
            }
            assert_eq!(lanes(level, &a, &a, &a, 9), vec![sums[0]; T::LANES], "{level}");
            let quotients: Vec<T> = a.iter().zip(&n).map(|(&a, &n)| a / n).collect();
            assert_eq!(lanes(level, &a, &n, &a, 8), quotients, "{level}");
        }
    }

    /// Every element of a square changes places with the one across the diagonal.
    fn squares<T: Element>() {
        let cells: Vec<T> = (0..T::LANES * T::LANES).map(|i| T::from_usize(i).unwrap()).collect();
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            let mut out = vec![T::zero(); cells.len()];
            at!(level, |s| {
                let mut rows = [s.splat(T::zero()); MOST_LANES];
                for (row, cells) in rows.iter_mut().zip(cells.chunks_exact(T::LANES)) {
                    *row = s.load(cells);
                }
                transpose::transpose::<T, _>(s, &mut rows);
                for (row, out) in rows.iter().zip(out.chunks_exact_mut(T::LANES)) {
                    row.store(out);
                }
            });
            for (i, &x) in out.iter().enumerate() {
                assert_eq!(x, cells[i % T::LANES * T::LANES + i / T::LANES], "{level}");
            }
        }
    }

    #[test]
    fn squares_are_transposed() {
        squares::<f32>();
        squares::<f64>();
    }

    #[test]
    fn bytes_that_are_not_zero() {
        let mut bytes = [0u8; 64];
        for (i, byte) in bytes.iter_mut().enumerate() {
            *byte = if i * 7 % 5 < 2 { 0 } else { (i * 37 + 128) as u8 | 1 };
        }
        let expected = bytes.iter().rev().fold(0, |bits, &byte| bits << 1 | u64::from(byte != 0));
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            assert_eq!(at!(level, |s| s.nonzero(&bytes)), expected, "{level}");
            let words = bytes.map(|byte| u64::from(byte) << 50);
            assert_eq!(at!(level, |s| s.nonzero_words(&words)), expected, "{level}");
        }
    }

    #[test]
    fn operations_are_those_of_scalars() {
        operations::<f32>();
        operations::<f64>();
    }
}
