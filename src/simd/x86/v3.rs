//! [`Level::V3`](crate::Level::V3): a logical vector is two ymm registers, a partial one is a pair of lane masks.

use super::{V3, stream_slice};
use crate::simd::Vector;
use core::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::Add;

macro_rules! vector {
    ($name:ident, $t:ty, $lanes:literal, $register:ty, $int:ty, $set1:ident, $load:ident, $load_masked:ident,
     $store:ident, $store_masked:ident, $stream:ident, $add:ident) => {
        #[derive(Clone, Copy)]
        pub struct $name([$register; 2]);

        impl $name {
            const HALF: usize = $lanes / 2;

            /// The masks of the first `n` lanes: all ones where a lane is named.
            #[inline(always)]
            fn head(n: usize) -> [__m256i; 2] {
                assert!(n <= $lanes, "at most a vector's lanes");
                const MASKS: [$int; 2 * $lanes] = {
                    let mut masks = [0; 2 * $lanes];
                    let mut i = 0;
                    while i < $lanes {
                        masks[i] = -1;
                        i += 1;
                    }
                    masks
                };
                let masks = &MASKS[$lanes - n..][..$lanes];
                // SAFETY: a token of this level exists (every caller has one); both halves lie within the slice.
                unsafe {
                    [
                        _mm256_loadu_si256(masks.as_ptr().cast()),
                        _mm256_loadu_si256(masks.as_ptr().add(Self::HALF).cast()),
                    ]
                }
            }

            /// # Safety
            ///
            /// `out` holds `LANES` elements.
            #[inline(always)]
            unsafe fn put(self, out: *mut $t) {
                // SAFETY: a vector of this level exists; the caller's promise.
                unsafe {
                    $store(out, self.0[0]);
                    $store(out.add(Self::HALF), self.0[1]);
                }
            }

            /// # Safety
            ///
            /// `out` holds `n` elements.
            #[inline(always)]
            unsafe fn put_head(self, out: *mut $t, n: usize) {
                let masks = Self::head(n);
                // SAFETY: a vector of this level exists; the masks name lanes within the caller's `n` elements, others
                // are not touched. The second half may lie outside the object where no lane of it is named.
                unsafe {
                    $store_masked(out, masks[0], self.0[0]);
                    $store_masked(out.wrapping_add(Self::HALF), masks[1], self.0[1]);
                }
            }
        }

        impl Add for $name {
            type Output = Self;
            #[inline(always)]
            fn add(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$add(self.0[0], b.0[0]), $add(self.0[1], b.0[1])] })
            }
        }

        impl Vector<$t> for $name {
            type Token = V3;

            #[inline(always)]
            fn splat(_: V3, x: $t) -> Self {
                // SAFETY: a token of this level exists.
                Self([unsafe { $set1(x) }; 2])
            }
            #[inline(always)]
            fn load(_: V3, x: &[$t]) -> Self {
                assert!(x.len() >= $lanes, "a vector's lanes");
                // SAFETY: a token of this level exists; the slice holds a vector.
                Self(unsafe { [$load(x.as_ptr()), $load(x.as_ptr().add(Self::HALF))] })
            }
            #[inline(always)]
            fn load_head(_: V3, x: &[$t]) -> Self {
                let masks = Self::head(x.len());
                // SAFETY: a token of this level exists; the masks name lanes within the slice, others are not touched.
                Self(unsafe {
                    [$load_masked(x.as_ptr(), masks[0]), $load_masked(x.as_ptr().wrapping_add(Self::HALF), masks[1])]
                })
            }
            #[inline(always)]
            fn store(self, out: &mut [$t]) {
                assert!(out.len() >= $lanes, "a vector's lanes");
                // SAFETY: just checked.
                unsafe { self.put(out.as_mut_ptr()) }
            }
            #[inline(always)]
            fn store_head(self, out: &mut [$t]) {
                // SAFETY: the slice's own length.
                unsafe { self.put_head(out.as_mut_ptr(), out.len()) }
            }
            #[inline(always)]
            fn write(self, out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= $lanes, "a vector's lanes");
                // SAFETY: just checked.
                unsafe { self.put(out.as_mut_ptr().cast()) }
            }
            #[inline(always)]
            fn write_head(self, out: &mut [MaybeUninit<$t>]) {
                // SAFETY: the slice's own length.
                unsafe { self.put_head(out.as_mut_ptr().cast(), out.len()) }
            }
            #[inline(always)]
            fn stream(self, out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= $lanes, "a vector's lanes");
                if out.as_ptr().addr().is_multiple_of(size_of::<$register>()) {
                    let out = out.as_mut_ptr().cast::<$t>();
                    // SAFETY: a vector of this level exists; the slice holds one, at a multiple of 32 bytes.
                    unsafe {
                        $stream(out, self.0[0]);
                        $stream(out.add(Self::HALF), self.0[1]);
                    }
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
    V3F32,
    f32,
    16,
    __m256,
    i32,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_maskload_ps,
    _mm256_storeu_ps,
    _mm256_maskstore_ps,
    _mm256_stream_ps,
    _mm256_add_ps
);
vector!(
    V3F64,
    f64,
    8,
    __m256d,
    i64,
    _mm256_set1_pd,
    _mm256_loadu_pd,
    _mm256_maskload_pd,
    _mm256_storeu_pd,
    _mm256_maskstore_pd,
    _mm256_stream_pd,
    _mm256_add_pd
);
