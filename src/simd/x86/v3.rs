//! [`Level::V3`](crate::Level::V3): a logical vector is two ymm registers, a partial one is a pair of lane masks.

use super::{V3, fold_pd, fold_ps, stream_slice};
use crate::element::Element;
use crate::simd::{Ids, Mask, Vector, ids_in_f64};
use core::arch::x86_64::*;
use std::mem::MaybeUninit;
use std::ops::{Add, Div, Mul, Sub};

/// To the nearest integer, the even one of two, without a floating-point exception.
const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn reverse_ps(x: __m256) -> __m256 {
    // SAFETY: the caller's promise.
    unsafe { _mm256_permutevar8x32_ps(x, _mm256_setr_epi32(7, 6, 5, 4, 3, 2, 1, 0)) }
}

/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn reverse_pd(x: __m256d) -> __m256d {
    // SAFETY: the caller's promise.
    unsafe { _mm256_permute4x64_pd::<0b00_01_10_11>(x) }
}

/// See [`Simd::nonzero`](crate::simd::Simd::nonzero).
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
pub unsafe fn nonzero(bytes: &[u8; 64]) -> u64 {
    let halves = bytes.as_ptr().cast::<__m256i>();
    // SAFETY: the caller's promise; both halves lie within the array, and the loads take any address.
    unsafe {
        let zero = _mm256_setzero_si256();
        let low = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(halves), zero));
        let high = _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_loadu_si256(halves.add(1)), zero));
        !(u64::from(low as u32) | u64::from(high as u32) << 32)
    }
}

/// See [`Simd::nonzero_words`](crate::simd::Simd::nonzero_words).
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
pub unsafe fn nonzero_words(words: &[u64; 64]) -> u64 {
    let fours = words.as_ptr().cast::<__m256i>();
    let (mut zeros, mut at) = (0, 0);
    while at < 16 {
        // SAFETY: the caller's promise; the array holds 16 registers, and the loads take any address.
        let zero = unsafe {
            let zero = _mm256_cmpeq_epi64(_mm256_loadu_si256(fours.add(at)), _mm256_setzero_si256());
            _mm256_movemask_pd(_mm256_castsi256_pd(zero))
        };
        zeros |= (zero as u64) << (4 * at);
        at += 1;
    }
    !zeros
}

/// The even and the odd lanes of `a`, then of `b`.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn unzip_ps(a: __m256, b: __m256) -> (__m256, __m256) {
    // SAFETY: the caller's promise.
    unsafe {
        // Pairs of lanes are in the order a, b, a, b of 64 bits.
        let (even, odd) = (_mm256_shuffle_ps::<0b10_00_10_00>(a, b), _mm256_shuffle_ps::<0b11_01_11_01>(a, b));
        let (even, odd) = (_mm256_castps_pd(even), _mm256_castps_pd(odd));
        let (even, odd) = (_mm256_permute4x64_pd::<0b11_01_10_00>(even), _mm256_permute4x64_pd::<0b11_01_10_00>(odd));
        (_mm256_castpd_ps(even), _mm256_castpd_ps(odd))
    }
}

/// [`unzip_ps`] of `f64`.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn unzip_pd(a: __m256d, b: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller's promise.
    unsafe {
        let (even, odd) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        (_mm256_permute4x64_pd::<0b11_01_10_00>(even), _mm256_permute4x64_pd::<0b11_01_10_00>(odd))
    }
}

/// The lanes of `a` and `b` in turn.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn zip_ps(a: __m256, b: __m256) -> (__m256, __m256) {
    // SAFETY: the caller's promise.
    unsafe {
        let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        (_mm256_permute2f128_ps::<0x20>(low, high), _mm256_permute2f128_ps::<0x31>(low, high))
    }
}

/// [`zip_ps`] of `f64`.
///
/// # Safety
///
/// The CPU has AVX2.
#[inline(always)]
unsafe fn zip_pd(a: __m256d, b: __m256d) -> (__m256d, __m256d) {
    // SAFETY: the caller's promise.
    unsafe {
        let (low, high) = (_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b));
        (_mm256_permute2f128_pd::<0x20>(low, high), _mm256_permute2f128_pd::<0x31>(low, high))
    }
}

macro_rules! operator {
    ($name:ident, $trait:ident, $method:ident, $intrinsic:ident) => {
        impl $trait for $name {
            type Output = Self;
            #[inline(always)]
            fn $method(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$intrinsic(self.0[0], b.0[0]), $intrinsic(self.0[1], b.0[1])] })
            }
        }
    };
}

macro_rules! vector {
    ($name:ident: [$t:ty; $lanes:literal], $register:ty, lane mask $int:ty, ids $ids:ty;
     set1: $set1:ident, load: $load:ident, load_masked: $load_masked:ident, store: $store:ident,
     store_masked: $store_masked:ident, stream: $stream:ident, add: $add:ident, sub: $sub:ident,
     mul: $mul:ident, div: $div:ident, min: $min:ident, max: $max:ident, and: $and:ident, or: $or:ident,
     movemask: $movemask:ident, cmp: $cmp:ident, blend: $blend:ident, fmadd: $fmadd:ident, round: $round:ident,
     to_bits: $to_bits:ident, from_bits: $from_bits:ident, add_bits: $add_bits:ident, shift: $shift:ident by $mantissa:literal,
     reverse: $reverse:ident, fold: $fold:ident, unzip: $unzip:ident, zip: $zip:ident) => {
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

        operator!($name, Add, add, $add);
        operator!($name, Sub, sub, $sub);
        operator!($name, Mul, mul, $mul);
        operator!($name, Div, div, $div);

        impl Mask for $name {
            #[inline(always)]
            fn and(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$and(self.0[0], b.0[0]), $and(self.0[1], b.0[1])] })
            }
            #[inline(always)]
            fn or(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$or(self.0[0], b.0[0]), $or(self.0[1], b.0[1])] })
            }
            #[inline(always)]
            fn bits(self) -> u32 {
                // SAFETY: a vector of this level exists.
                let halves = unsafe { [$movemask(self.0[0]), $movemask(self.0[1])] };
                halves[0] as u32 | (halves[1] as u32) << Self::HALF
            }
        }

        impl Vector<$t> for $name {
            type Token = V3;
            type Mask = Self;
            type Ids = $ids;

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
            fn stream<const N: usize>(vectors: [Self; N], out: &mut [MaybeUninit<$t>]) {
                assert!(out.len() >= N * $lanes, "the vectors' lanes");
                let aligned = out.as_ptr().addr().is_multiple_of(size_of::<$register>());
                for (v, out) in vectors.into_iter().zip(out.chunks_exact_mut($lanes)) {
                    if aligned {
                        let out = out.as_mut_ptr().cast::<$t>();
                        // SAFETY: a vector of this level exists; the slice holds one, a multiple of 64 bytes behind a
                        // multiple of 32.
                        unsafe {
                            $stream(out, v.0[0]);
                            $stream(out.add(Self::HALF), v.0[1]);
                        }
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
                Self(unsafe { [$min(self.0[0], b.0[0]), $min(self.0[1], b.0[1])] })
            }
            #[inline(always)]
            fn max(self, b: Self) -> Self {
                // SAFETY: as in `min`.
                Self(unsafe { [$max(self.0[0], b.0[0]), $max(self.0[1], b.0[1])] })
            }
            #[inline(always)]
            fn lt(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$cmp::<_CMP_LT_OQ>(self.0[0], b.0[0]), $cmp::<_CMP_LT_OQ>(self.0[1], b.0[1])] })
            }
            #[inline(always)]
            fn le(self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$cmp::<_CMP_LE_OQ>(self.0[0], b.0[0]), $cmp::<_CMP_LE_OQ>(self.0[1], b.0[1])] })
            }
            #[inline(always)]
            fn select(mask: Self, a: Self, b: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$blend(b.0[0], a.0[0], mask.0[0]), $blend(b.0[1], a.0[1], mask.0[1])] })
            }
            #[inline(always)]
            fn mul_add(self, b: Self, c: Self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$fmadd(self.0[0], b.0[0], c.0[0]), $fmadd(self.0[1], b.0[1], c.0[1])] })
            }
            #[inline(always)]
            fn round(self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$round::<NEAREST>(self.0[0]), $round::<NEAREST>(self.0[1])] })
            }
            #[inline(always)]
            fn scale2(self, n: Self) -> Self {
                let mut scaled = self;
                for (x, n) in scaled.0.iter_mut().zip(n.0) {
                    // The lowest bits of the sum are the integer, which is added to the exponent.
                    // SAFETY: a vector of this level exists.
                    *x = unsafe {
                        let n = $to_bits($add(n, $set1(<$t>::ROUNDING)));
                        $from_bits($add_bits($to_bits(*x), $shift::<$mantissa>(n)))
                    };
                }
                scaled
            }
            #[inline(always)]
            fn reverse(self) -> Self {
                // SAFETY: a vector of this level exists.
                Self(unsafe { [$reverse(self.0[1]), $reverse(self.0[0])] })
            }
            #[inline(always)]
            fn fold(self) -> $t {
                // SAFETY: a vector of this level exists.
                unsafe { $fold($add(self.0[0], self.0[1])) }
            }
            #[inline(always)]
            fn unzip(a: Self, b: Self) -> (Self, Self) {
                // SAFETY: a vector of this level exists.
                let (low, high) = unsafe { ($unzip(a.0[0], a.0[1]), $unzip(b.0[0], b.0[1])) };
                (Self([low.0, high.0]), Self([low.1, high.1]))
            }
            #[inline(always)]
            fn zip(a: Self, b: Self) -> (Self, Self) {
                // SAFETY: a vector of this level exists.
                let (low, high) = unsafe { ($zip(a.0[0], b.0[0]), $zip(a.0[1], b.0[1])) };
                (Self([low.0, low.1]), Self([high.0, high.1]))
            }
        }
    };
}

vector! {
    V3F32: [f32; 16], __m256, lane mask i32, ids V3Ids32;
    set1: _mm256_set1_ps, load: _mm256_loadu_ps, load_masked: _mm256_maskload_ps, store: _mm256_storeu_ps,
    store_masked: _mm256_maskstore_ps, stream: _mm256_stream_ps, add: _mm256_add_ps, sub: _mm256_sub_ps,
    mul: _mm256_mul_ps, div: _mm256_div_ps, min: _mm256_min_ps, max: _mm256_max_ps, and: _mm256_and_ps, or: _mm256_or_ps,
    movemask: _mm256_movemask_ps, cmp: _mm256_cmp_ps, blend: _mm256_blendv_ps, fmadd: _mm256_fmadd_ps,
    round: _mm256_round_ps, to_bits: _mm256_castps_si256, from_bits: _mm256_castsi256_ps, add_bits: _mm256_add_epi32,
    shift: _mm256_slli_epi32 by 23, reverse: reverse_ps, fold: fold_ps, unzip: unzip_ps,
    zip: zip_ps
}
vector! {
    V3F64: [f64; 8], __m256d, lane mask i64, ids V3F64;
    set1: _mm256_set1_pd, load: _mm256_loadu_pd, load_masked: _mm256_maskload_pd, store: _mm256_storeu_pd,
    store_masked: _mm256_maskstore_pd, stream: _mm256_stream_pd, add: _mm256_add_pd, sub: _mm256_sub_pd,
    mul: _mm256_mul_pd, div: _mm256_div_pd, min: _mm256_min_pd, max: _mm256_max_pd, and: _mm256_and_pd, or: _mm256_or_pd,
    movemask: _mm256_movemask_pd, cmp: _mm256_cmp_pd, blend: _mm256_blendv_pd, fmadd: _mm256_fmadd_pd,
    round: _mm256_round_pd, to_bits: _mm256_castpd_si256, from_bits: _mm256_castsi256_pd, add_bits: _mm256_add_epi64,
    shift: _mm256_slli_epi64 by 52, reverse: reverse_pd, fold: fold_pd, unzip: unzip_pd,
    zip: zip_pd
}
ids_in_f64!(V3F64, V3);

/// Row numbers beside `f32` lanes, with the top bit flipped so that signed comparison orders them.
#[derive(Clone, Copy)]
pub struct V3Ids32([__m256i; 2]);

impl V3Ids32 {
    #[inline(always)]
    fn flip(self) -> Self {
        // SAFETY: a vector of this level exists.
        unsafe {
            let top = _mm256_set1_epi32(i32::MIN);
            Self([_mm256_xor_si256(self.0[0], top), _mm256_xor_si256(self.0[1], top)])
        }
    }
}

impl Ids for V3Ids32 {
    type Token = V3;
    type Mask = V3F32;

    #[inline(always)]
    fn all(_: V3, id: u32) -> Self {
        // SAFETY: a token of this level exists.
        Self([unsafe { _mm256_set1_epi32(id as i32) }; 2]).flip()
    }
    #[inline(always)]
    fn read(_: V3, ids: &[u32]) -> Self {
        assert!(ids.len() >= 16, "a vector's lanes");
        let ids = ids.as_ptr().cast::<__m256i>();
        // SAFETY: a token of this level exists; the slice holds a vector, and the loads take any address.
        Self(unsafe { [_mm256_loadu_si256(ids), _mm256_loadu_si256(ids.add(1))] }).flip()
    }
    #[inline(always)]
    fn put(self, out: &mut [u32]) {
        assert!(out.len() >= 16, "a vector's lanes");
        let (ids, out) = (self.flip(), out.as_mut_ptr().cast::<__m256i>());
        // SAFETY: a vector of this level exists; the slice holds one, and the stores take any address.
        unsafe {
            _mm256_storeu_si256(out, ids.0[0]);
            _mm256_storeu_si256(out.add(1), ids.0[1]);
        }
    }
    #[inline(always)]
    fn below(self, b: Self) -> V3F32 {
        // SAFETY: a vector of this level exists.
        unsafe {
            let (low, high) = (_mm256_cmpgt_epi32(b.0[0], self.0[0]), _mm256_cmpgt_epi32(b.0[1], self.0[1]));
            V3F32([_mm256_castsi256_ps(low), _mm256_castsi256_ps(high)])
        }
    }
    #[inline(always)]
    fn choose(mask: V3F32, a: Self, b: Self) -> Self {
        // SAFETY: a vector of this level exists.
        unsafe {
            let (low, high) = (_mm256_castps_si256(mask.0[0]), _mm256_castps_si256(mask.0[1]));
            Self([_mm256_blendv_epi8(b.0[0], a.0[0], low), _mm256_blendv_epi8(b.0[1], a.0[1], high)])
        }
    }
}
