//! The x86-64 levels, chosen at run time, and what every x86-64 CPU can do.
//!
//! `unsafe` here rests on two facts. A token is made only by detection, so where one exists its level's instructions
//! do. A vector is made only from a token, so where one exists its token did.
#![allow(unsafe_code)]

use super::Simd;
use crate::element::Element;
use core::arch::x86_64::*;
use std::mem::MaybeUninit;

mod v3;
mod v4;
pub use v3::{V3F32, V3F64};
pub use v4::{V4F32, V4F64};

/// Bytes of a cache line.
const LINE: usize = 64;

/// A token with the one list of its level's features: detection and `target_feature` cannot drift apart.
macro_rules! token {
    ($(#[$doc:meta])* $token:ident, $accumulators:literal, in $level:ident, [$($feature:tt),*]) => {
        $(#[$doc])*
        #[derive(Clone, Copy)]
        pub struct $token(());

        impl $token {
            pub fn detect() -> Option<Self> {
                ($(is_x86_feature_detected!($feature))&&*).then_some(Self(()))
            }
        }

        impl Simd for $token {
            type V<T: Element> = T::$token;
            const ACCUMULATORS: usize = $accumulators;

            #[inline(always)]
            fn vectorize<R>(self, f: impl FnOnce(Self) -> R) -> R {
                #[inline]
                $(#[target_feature(enable = $feature)])*
                fn inner<R>(token: $token, f: impl FnOnce($token) -> R) -> R {
                    f(token)
                }
                // SAFETY: `self` exists only where `detect` saw every feature that `inner` enables.
                unsafe { inner(self, f) }
            }

            #[inline(always)]
            fn nonzero(self, bytes: &[u8; 64]) -> u64 {
                // SAFETY: a token of this level exists.
                unsafe { $level::nonzero(bytes) }
            }

            #[inline(always)]
            fn nonzero_words(self, words: &[u64; 64]) -> u64 {
                // SAFETY: a token of this level exists.
                unsafe { $level::nonzero_words(words) }
            }
        }
    };
}

token!(
    /// The token of [`Level::V3`](super::Level::V3).
    V3, 4, in v3, ["avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt"]
);
token!(
    /// The token of [`Level::V4`](super::Level::V4).
    V4, 8, in v4, [
        "avx2", "fma", "bmi1", "bmi2", "lzcnt", "popcnt", "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl",
        "avx512vbmi", "avx512vbmi2", "avx512vpopcntdq"
    ]
);

/// The sum of all lanes, the upper half added to the lower until one is left.
///
/// # Safety
///
/// The CPU has AVX.
#[inline(always)]
unsafe fn fold_ps(x: __m256) -> f32 {
    // SAFETY: the caller's promise.
    unsafe {
        let four = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps::<1>(x));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<0b01>(two, two)))
    }
}

/// [`fold_ps`] of `f64`.
///
/// # Safety
///
/// The CPU has AVX.
#[inline(always)]
unsafe fn fold_pd(x: __m256d) -> f64 {
    // SAFETY: the caller's promise.
    unsafe {
        let two = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd::<1>(x));
        _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)))
    }
}

/// See [`super::prefetch`].
#[inline(always)]
pub fn prefetch<T>(x: &[T]) {
    let bytes = size_of_val(x);
    let start = x.as_ptr().cast::<i8>();
    // SAFETY: prefetching is a hint and never faults; the addresses stay within the slice.
    unsafe {
        for at in (0..bytes).step_by(LINE) {
            _mm_prefetch::<_MM_HINT_T0>(start.add(at));
        }
        // What does not start with a line may end in one more.
        _mm_prefetch::<_MM_HINT_T0>(start.add(bytes.saturating_sub(1)));
    }
}

/// See [`super::fence`].
#[inline(always)]
pub fn fence() {
    // SAFETY: part of SSE, which every x86-64 CPU has.
    unsafe { _mm_sfence() }
}

/// See [`super::stream_slice`].
#[inline(always)]
pub fn stream_slice<T: Element>(x: &[T], out: &mut [MaybeUninit<T>]) {
    const XMM: usize = size_of::<__m128i>();
    assert_eq!(x.len(), out.len());
    let parts = size_of_val(x) / XMM;
    let (from, to) = (x.as_ptr().cast::<__m128i>(), out.as_mut_ptr().cast::<__m128i>());
    if !to.addr().is_multiple_of(XMM) || !size_of_val(x).is_multiple_of(XMM) {
        out.write_copy_of_slice(x);
        return;
    }
    for i in 0..parts {
        // SAFETY: SSE2 is part of every x86-64 CPU; both slices hold `parts` times 16 bytes; the load takes any address,
        // the store one that is a multiple of 16, as was checked.
        unsafe { _mm_stream_si128(to.add(i), _mm_loadu_si128(from.add(i))) };
    }
}
