//! The portable level, on `wide`: whatever the crate is compiled for.
//!
//! `wide` chooses instructions at compile time, which is what this level means. Of `wide` only the correctly rounded
//! arithmetic is used: its own minimum, fused multiply-add and reductions give results that depend on the target.

use super::{Ids, Mask, Simd, Vector, ids_in_f64};
use crate::element::Element;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Sub};

/// The token of [`Level::Base`](super::Level::Base): always to be had.
#[derive(Clone, Copy)]
pub struct Base(());

impl Base {
    pub fn new() -> Self {
        Self(())
    }
}

impl Simd for Base {
    type V<T: Element> = T::Base;
    const ACCUMULATORS: usize = 2;

    #[inline(always)]
    fn vectorize<R>(self, f: impl FnOnce(Self) -> R) -> R {
        f(self)
    }

    #[inline(always)]
    fn nonzero(self, bytes: &[u8; 64]) -> u64 {
        let (mut bits, mut at) = (0, 0);
        while at < 64 {
            let part: [u8; 16] = *bytes[at..].first_chunk().expect("a part");
            let zero = wide::u8x16::new(part).simd_eq(wide::u8x16::ZERO);
            bits |= u64::from(!zero.to_bitmask() as u16) << at;
            at += 16;
        }
        bits
    }

    #[inline(always)]
    fn nonzero_words(self, words: &[u64; 64]) -> u64 {
        let (mut bits, mut at) = (0, 0);
        while at < 64 {
            bits |= u64::from(words[at] != 0) << at;
            at += 1;
        }
        bits
    }
}

macro_rules! operator {
    ($name:ident, $trait:ident, $method:ident) => {
        impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                Self([self.0[0].$method(b.0[0]), self.0[1].$method(b.0[1])])
            }
        }
    };
}

macro_rules! vector {
    ($name:ident, $t:ty, $half:ty, $lanes:literal, $ids:ty, bits $int:ty, mantissa $mantissa:literal) => {
        #[derive(Clone, Copy)]
        pub struct $name([$half; 2]);

        impl $name {
            #[inline(always)]
            fn from_array(x: [$t; $lanes]) -> Self {
                let (low, high) = x.split_at($lanes / 2);
                Self([
                    <$half>::new(low.try_into().expect("half the lanes")),
                    <$half>::new(high.try_into().expect("half the lanes")),
                ])
            }

            #[inline(always)]
            fn to_array(self) -> [$t; $lanes] {
                bytemuck::cast(self.0.map(<$half>::to_array))
            }
        }

        operator!($name, Add, add);
        operator!($name, Sub, sub);
        operator!($name, Mul, mul);
        operator!($name, Div, div);

        impl Mask for $name {
            #[inline(always)]
            fn and(self, b: Self) -> Self {
                Self([self.0[0] & b.0[0], self.0[1] & b.0[1]])
            }
            #[inline(always)]
            fn or(self, b: Self) -> Self {
                Self([self.0[0] | b.0[0], self.0[1] | b.0[1]])
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                self.0[0].to_bitmask() | self.0[1].to_bitmask() << ($lanes / 2)
            }
        }

        impl Vector<$t> for $name {
            type Token = Base;
            type Mask = Self;
            type Ids = $ids;

            #[inline(always)]
            fn splat(_: Base, x: $t) -> Self {
                Self([<$half>::splat(x); 2])
            }
            #[inline(always)]
            fn load(_: Base, x: &[$t]) -> Self {
                Self::from_array(*x.first_chunk().expect("a vector's lanes"))
            }
            #[inline(always)]
            fn load_head(_: Base, x: &[$t]) -> Self {
                let mut lanes = [0.0; $lanes];
                lanes[..x.len()].copy_from_slice(x);
                Self::from_array(lanes)
            }
            #[inline(always)]
            fn store(self, out: &mut [$t]) {
                out[..$lanes].copy_from_slice(&self.to_array());
            }
            #[inline(always)]
            fn store_head(self, out: &mut [$t]) {
                out.copy_from_slice(&self.to_array()[..out.len()]);
            }
            #[inline(always)]
            fn write(self, out: &mut [MaybeUninit<$t>]) {
                out[..$lanes].write_copy_of_slice(&self.to_array());
            }
            #[inline(always)]
            fn write_head(self, out: &mut [MaybeUninit<$t>]) {
                out.write_copy_of_slice(&self.to_array()[..out.len()]);
            }
            #[inline(always)]
            fn stream<const N: usize>(vectors: [Self; N], out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= N * $lanes, "the vectors' lanes");
                for (v, out) in vectors.into_iter().zip(out.chunks_exact_mut($lanes)) {
                    super::stream_slice(&v.to_array(), out);
                }
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                Self::select(self.lt(b), self, b)
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                Self::select(b.lt(self), self, b)
            }
            #[inline(always)]
            fn lt(self, b: Self) -> Self {
                Self([self.0[0].simd_lt(b.0[0]), self.0[1].simd_lt(b.0[1])])
            }
            #[inline(always)]
            fn le(self, b: Self) -> Self {
                Self([self.0[0].simd_le(b.0[0]), self.0[1].simd_le(b.0[1])])
            }
            #[inline(always)]
            fn select(mask: Self, a: Self, b: Self) -> Self {
                Self([mask.0[0].select(a.0[0], b.0[0]), mask.0[1].select(a.0[1], b.0[1])])
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                self * b + c
            }
            #[inline(always)]
            fn round(self) -> Self {
                // Where an ulp is 1, the sum is rounded to an integer.
                let magic = Self([<$half>::splat(<$t>::ROUNDING); 2]);
                (self + magic) - magic
            }
            #[inline(always)]
            fn scale2(self, n: Self) -> Self {
                // The lowest bits of the sum are the integer, which is added to the exponent.
                let magic = Self([<$half>::splat(<$t>::ROUNDING); 2]);
                let (n, mut scaled) = (n + magic, self);
                for (x, n) in scaled.0.iter_mut().zip(n.0) {
                    let (bits, n): ($int, $int) = (bytemuck::cast(*x), bytemuck::cast(n));
                    *x = bytemuck::cast(bits + (n << $mantissa));
                }
                scaled
            }
            #[inline(always)]
            fn reverse(self) -> Self {
                let mut lanes = self.to_array();
                lanes.reverse();
                Self::from_array(lanes)
            }
            #[inline(always)]
            fn fold(self) -> $t {
                let mut lanes = self.to_array();
                let mut half = $lanes / 2;
                while half > 0 {
                    for lane in 0..half {
                        lanes[lane] += lanes[lane + half];
                    }
                    half /= 2;
                }
                lanes[0]
            }
            #[inline(always)]
            fn unzip(a: Self, b: Self) -> (Self, Self) {
                let (a, b) = (a.to_array(), b.to_array());
                let (mut even, mut odd) = ([0.0; $lanes], [0.0; $lanes]);
                for i in 0..$lanes / 2 {
                    (even[i], odd[i]) = (a[2 * i], a[2 * i + 1]);
                    (even[i + $lanes / 2], odd[i + $lanes / 2]) = (b[2 * i], b[2 * i + 1]);
                }
                (Self::from_array(even), Self::from_array(odd))
            }
            #[inline(always)]
            fn zip(a: Self, b: Self) -> (Self, Self) {
                let (a, b) = (a.to_array(), b.to_array());
                let (mut low, mut high) = ([0.0; $lanes], [0.0; $lanes]);
                for i in 0..$lanes / 2 {
                    (low[2 * i], low[2 * i + 1]) = (a[i], b[i]);
                    (high[2 * i], high[2 * i + 1]) = (a[i + $lanes / 2], b[i + $lanes / 2]);
                }
                (Self::from_array(low), Self::from_array(high))
            }
        }
    };
}
vector!(F32, f32, wide::f32x8, 16, Ids32, bits wide::i32x8, mantissa 23);
vector!(F64, f64, wide::f64x4, 8, F64, bits wide::i64x4, mantissa 52);
ids_in_f64!(F64, Base);

/// Row numbers beside `f32` lanes, with the top bit flipped so that signed comparison orders them.
#[derive(Clone, Copy)]
pub struct Ids32([wide::i32x8; 2]);

const FLIP: u32 = 1 << 31;

impl Ids for Ids32 {
    type Token = Base;
    type Mask = F32;

    #[inline(always)]
    fn all(_: Base, id: u32) -> Self {
        Self([wide::i32x8::splat((id ^ FLIP) as i32); 2])
    }
    #[inline(always)]
    fn read(_: Base, ids: &[u32]) -> Self {
        let ids: [u32; 16] = *ids.first_chunk().expect("a vector's lanes");
        Self(bytemuck::cast(ids.map(|id| id ^ FLIP)))
    }
    #[inline(always)]
    fn put(self, out: &mut [u32]) {
        let ids: [u32; 16] = bytemuck::cast(self.0);
        out[..16].copy_from_slice(&ids.map(|id| id ^ FLIP));
    }
    #[inline(always)]
    fn below(self, b: Self) -> F32 {
        F32([0, 1].map(|half| bytemuck::cast(b.0[half].simd_gt(self.0[half]))))
    }
    #[inline(always)]
    fn choose(mask: F32, a: Self, b: Self) -> Self {
        Self([0, 1].map(|half| {
            let mask: wide::i32x8 = bytemuck::cast(mask.0[half]);
            (mask & a.0[half]) | (!mask & b.0[half])
        }))
    }
}
