//! [`Level::V4`](crate::Level::V4): a logical vector is one zmm register, a partial one is a mask.

use super::{LINE, V4, stream_slice};
use crate::simd::Vector;
use core::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Add;

macro_rules! vector {
    ($name:ident, $t:ty, $lanes:literal, $register:ty, $mask:ty, $set1:ident, $load:ident, $load_masked:ident,
     $store:ident, $store_masked:ident, $stream:ident, $add:ident) => {
        #[derive(Clone, Copy)]
        pub struct $name($register);

        impl $name {
            /// The mask of the first `n` lanes.
            #[inline(always)]
            fn head(n: usize) -> $mask {
                assert!(n <= $lanes, "at most a vector's lanes");
                // `n = LANES` would shift by the whole width, which `checked_shl` turns into the full mask.
                <$mask>::MAX ^ <$mask>::MAX.checked_shl(n as u32).unwrap_or(0)
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $add(self.0, b.0) })
            }
        }

        impl Vector<$t> for $name {
            type Token = V4;

            #[inline(always)]
            fn splat(_: V4, x: $t) -> Self {
                // SAFETY: a token of this level exists.
                Self(unsafe { $set1(x) })
            }
            #[inline(always)]
            fn load(_: V4, x: &[$t]) -> Self {
                assert!(x.len() >= $lanes, "a vector's lanes");
                // SAFETY: a token of this level exists; the slice holds a vector.
                Self(unsafe { $load(x.as_ptr()) })
            }
            #[inline(always)]
            fn load_head(_: V4, x: &[$t]) -> Self {
                // SAFETY: a token of this level exists; the mask names lanes within the slice, others are not touched.
                Self(unsafe { $load_masked(Self::head(x.len()), x.as_ptr()) })
            }
            #[inline(always)]
            fn store(self, out: &mut [$t]) {
                assert!(out.len() >= $lanes, "a vector's lanes");
                // SAFETY: a vector of this level exists; the slice holds one.
                unsafe { $store(out.as_mut_ptr(), self.0) }
            }
            #[inline(always)]
            fn store_head(self, out: &mut [$t]) {
                // SAFETY: a vector of this level exists; the mask names lanes within the slice, others are not touched.
                unsafe { $store_masked(out.as_mut_ptr(), Self::head(out.len()), self.0) }
            }
            #[inline(always)]
            fn write(self, out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= $lanes, "a vector's lanes");
                // SAFETY: as in `store`.
                unsafe { $store(out.as_mut_ptr().cast(), self.0) }
            }
            #[inline(always)]
            fn write_head(self, out: &mut [MaybeUninit<$t>]) {
                // SAFETY: as in `store_head`.
                unsafe { $store_masked(out.as_mut_ptr().cast(), Self::head(out.len()), self.0) }
            }
            #[inline(always)]
            fn stream(self, out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= $lanes, "a vector's lanes");
                if out.as_ptr().addr().is_multiple_of(LINE) {
                    // SAFETY: a vector of this level exists; the slice holds one, at a multiple of 64 bytes.
                    unsafe { $stream(out.as_mut_ptr().cast(), self.0) }
                } else {
                    let mut lanes = [0.0; $lanes];
                    self.store(&mut lanes);
                    stream_slice(&lanes, &mut out[..$lanes]);
                }
            }
        }
    };
}

vector!(
    V4F32,
    f32,
    16,
    __m512,
    u16,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_maskz_loadu_ps,
    _mm512_storeu_ps,
    _mm512_mask_storeu_ps,
    _mm512_stream_ps,
    _mm512_add_ps
);
vector!(
    V4F64,
    f64,
    8,
    __m512d,
    u8,
    _mm512_set1_pd,
    _mm512_loadu_pd,
    _mm512_maskz_loadu_pd,
    _mm512_storeu_pd,
    _mm512_mask_storeu_pd,
    _mm512_stream_pd,
    _mm512_add_pd
);
