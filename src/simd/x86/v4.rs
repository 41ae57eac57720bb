//! [`Level::V4`](crate::Level::V4): a logical vector is one zmm register, a partial one is a mask.

use super::{LINE, V4, fold_pd, fold_ps, stream_slice};
use crate::simd::{Ids, Mask, Vector, ids_in_f64};
use core::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Sub};

/// To the nearest integer, the even one of two, without a floating-point exception.
const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn reverse_ps(x: __m512) -> __m512 {
    // SAFETY: the caller's promise.
    unsafe { _mm512_permutexvar_ps(_mm512_setr_epi32(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0), x) }
}

/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn reverse_pd(x: __m512d) -> __m512d {
    // SAFETY: the caller's promise.
    unsafe { _mm512_permutexvar_pd(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), x) }
}

/// See [`Simd::nonzero`](crate::simd::Simd::nonzero).
///
/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
pub unsafe fn nonzero(bytes: &[u8; 64]) -> u64 {
    // SAFETY: the caller's promise; the array holds a register, and the load takes any address.
    unsafe {
        let bytes = _mm512_loadu_si512(bytes.as_ptr().cast());
        _mm512_test_epi8_mask(bytes, bytes)
    }
}

/// See [`Simd::nonzero_words`](crate::simd::Simd::nonzero_words).
///
/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
pub unsafe fn nonzero_words(words: &[u64; 64]) -> u64 {
    let (mut bits, mut at) = (0, 0);
    while at < 8 {
        // SAFETY: the caller's promise; the array holds 8 registers, and the load takes any address.
        let eight = unsafe {
            let eight = _mm512_loadu_si512(words.as_ptr().add(8 * at).cast());
            _mm512_test_epi64_mask(eight, eight)
        };
        bits |= u64::from(eight) << (8 * at);
        at += 1;
    }
    bits
}

/// The even and the odd lanes of `a`, then of `b`.
///
/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn unzip_ps(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the caller's promise.
    unsafe {
        let first = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
        let second = _mm512_setr_epi32(1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
        (_mm512_permutex2var_ps(a, first, b), _mm512_permutex2var_ps(a, second, b))
    }
}

/// [`unzip_ps`] of `f64`.
///
/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn unzip_pd(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller's promise.
    unsafe {
        let first = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let second = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        (_mm512_permutex2var_pd(a, first, b), _mm512_permutex2var_pd(a, second, b))
    }
}

/// The lanes of `a` and `b` in turn.
///
/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn zip_ps(a: __m512, b: __m512) -> (__m512, __m512) {
    // SAFETY: the caller's promise.
    unsafe {
        let first = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
        let second = _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
        (_mm512_permutex2var_ps(a, first, b), _mm512_permutex2var_ps(a, second, b))
    }
}

/// [`zip_ps`] of `f64`.
///
/// # Safety
///
/// The CPU has AVX-512.
#[inline(always)]
unsafe fn zip_pd(a: __m512d, b: __m512d) -> (__m512d, __m512d) {
    // SAFETY: the caller's promise.
    unsafe {
        let first = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let second = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        (_mm512_permutex2var_pd(a, first, b), _mm512_permutex2var_pd(a, second, b))
    }
}

macro_rules! operator {
    ($name:ident, $trait:ident, $method:ident, $intrinsic:ident) => {
        impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $intrinsic(self.0, b.0) })
            }
        }
    };
}

macro_rules! vector {
    ($name:ident: [$t:ty; $lanes:literal], $register:ty, mask $mask:ty, ids $ids:ty;
     set1: $set1:ident, load: $load:ident, load_masked: $load_masked:ident, store: $store:ident,
     store_masked: $store_masked:ident, stream: $stream:ident, add: $add:ident, sub: $sub:ident,
     mul: $mul:ident, div: $div:ident, min: $min:ident, max: $max:ident, cmp: $cmp:ident, mov: $mov:ident,
     fmadd: $fmadd:ident, round: $round:ident, scale: $scale:ident, reverse: $reverse:ident,
     low: $low:ident, high: $high:ident, add_half: $add_half:ident, fold: $fold:ident, unzip: $unzip:ident,
     zip: $zip:ident) => {
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

        operator!($name, Add, add, $add);
        operator!($name, Sub, sub, $sub);
        operator!($name, Mul, mul, $mul);
        operator!($name, Div, div, $div);

        impl Mask for $mask {
            #[inline(always)]
            fn and(self, b: Self) -> Self {
                self & b
            }
            #[inline(always)]
            fn or(self, b: Self) -> Self {
                self | b
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                u32::from(self)
            }
        }

        impl Vector<$t> for $name {
            type Token = V4;
            type Mask = $mask;
            type Ids = $ids;

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
            fn stream<const N: usize>(vectors: [Self; N], out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= N * $lanes, "the vectors' lanes");
                let aligned = out.as_ptr().addr().is_multiple_of(LINE);
                for (v, out) in vectors.into_iter().zip(out.chunks_exact_mut($lanes)) {
                    if aligned {
                        // SAFETY: a vector of this level exists; the slice holds one, a multiple of 64 bytes behind one.
                        unsafe { $stream(out.as_mut_ptr().cast(), v.0) }
                    } else {
                        let mut lanes = [0.0; $lanes];
                        v.store(&mut lanes);
                        stream_slice(&lanes, out);
                    }
                }
            }
            #[inline(always)]
            fn min(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists. The instruction gives `b` where lanes do not compare.
                Self(unsafe { $min(self.0, b.0) })
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                // SAFETY: as in `min`.
                Self(unsafe { $max(self.0, b.0) })
            }
            #[inline(always)]
            fn lt(self, b: Self) -> $mask {
                // SAFETY: a vector of this level exists.
                unsafe { $cmp::<_CMP_LT_OQ>(self.0, b.0) }
            }
            #[inline(always)]
            fn le(self, b: Self) -> $mask {
                // SAFETY: a vector of this level exists.
                unsafe { $cmp::<_CMP_LE_OQ>(self.0, b.0) }
            }
            #[inline(always)]
            fn select(mask: $mask, a: Self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $mov(b.0, mask, a.0) })
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $fmadd(self.0, b.0, c.0) })
            }
            #[inline(always)]
            fn round(self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $round::<NEAREST>(self.0) })
            }
            #[inline(always)]
            fn scale2(self, n: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $scale(self.0, n.0) })
            }
            #[inline(always)]
            fn reverse(self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { $reverse(self.0) })
            }
            #[inline(always)]
            fn fold(self) -> $t {
                // SAFETY: a vector of this level exists.
                unsafe { $fold($add_half($low(self.0), $high::<1>(self.0))) }
            }
            #[inline(always)]
            fn unzip(a: Self, b: Self) -> (Self, Self) {
                // SAFETY: a vector of this level exists.
                let (even, odd) = unsafe { $unzip(a.0, b.0) };
                (Self(even), Self(odd))
            }
            #[inline(always)]
            fn zip(a: Self, b: Self) -> (Self, Self) {
                // SAFETY: a vector of this level exists.
                let (low, high) = unsafe { $zip(a.0, b.0) };
                (Self(low), Self(high))
            }
        }
    };
}

vector! {
    V4F32: [f32; 16], __m512, mask u16, ids V4Ids32;
    set1: _mm512_set1_ps, load: _mm512_loadu_ps, load_masked: _mm512_maskz_loadu_ps, store: _mm512_storeu_ps,
    store_masked: _mm512_mask_storeu_ps, stream: _mm512_stream_ps, add: _mm512_add_ps, sub: _mm512_sub_ps,
    mul: _mm512_mul_ps, div: _mm512_div_ps, min: _mm512_min_ps, max: _mm512_max_ps, cmp: _mm512_cmp_ps_mask,
    mov: _mm512_mask_mov_ps, fmadd: _mm512_fmadd_ps, round: _mm512_roundscale_ps, scale: _mm512_scalef_ps,
    reverse: reverse_ps, low: _mm512_castps512_ps256, high: _mm512_extractf32x8_ps, add_half: _mm256_add_ps,
    fold: fold_ps, unzip: unzip_ps, zip: zip_ps
}
vector! {
    V4F64: [f64; 8], __m512d, mask u8, ids V4F64;
    set1: _mm512_set1_pd, load: _mm512_loadu_pd, load_masked: _mm512_maskz_loadu_pd, store: _mm512_storeu_pd,
    store_masked: _mm512_mask_storeu_pd, stream: _mm512_stream_pd, add: _mm512_add_pd, sub: _mm512_sub_pd,
    mul: _mm512_mul_pd, div: _mm512_div_pd, min: _mm512_min_pd, max: _mm512_max_pd, cmp: _mm512_cmp_pd_mask,
    mov: _mm512_mask_mov_pd, fmadd: _mm512_fmadd_pd, round: _mm512_roundscale_pd, scale: _mm512_scalef_pd,
    reverse: reverse_pd, low: _mm512_castpd512_pd256, high: _mm512_extractf64x4_pd, add_half: _mm256_add_pd,
    fold: fold_pd, unzip: unzip_pd, zip: zip_pd
}
ids_in_f64!(V4F64, V4);

/// Row numbers beside `f32` lanes.
#[derive(Clone, Copy)]
pub struct V4Ids32(__m512i);

impl Ids for V4Ids32 {
    type Token = V4;
    type Mask = u16;

    #[inline(always)]
    fn all(_: V4, id: u32) -> Self {
        // SAFETY: a token of this level exists.
        Self(unsafe { _mm512_set1_epi32(id as i32) })
    }
    #[inline(always)]
    fn read(_: V4, ids: &[u32]) -> Self {
        assert!(ids.len() >= 16, "a vector's lanes");
        // SAFETY: a token of this level exists; the slice holds a vector.
        Self(unsafe { _mm512_loadu_si512(ids.as_ptr().cast()) })
    }
    #[inline(always)]
    fn put(self, out: &mut [u32]) {
        assert!(out.len() >= 16, "a vector's lanes");
        // SAFETY: a vector of this level exists; the slice holds one.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), self.0) }
    }
    #[inline(always)]
    fn below(self, b: Self) -> u16 {
        // SAFETY: a vector of this level exists.
        unsafe { _mm512_cmplt_epu32_mask(self.0, b.0) }
    }
    #[inline(always)]
    fn choose(mask: u16, a: Self, b: Self) -> Self {
        // SAFETY: a vector of this level exists.
        Self(unsafe { _mm512_mask_mov_epi32(b.0, mask, a.0) })
    }
}
