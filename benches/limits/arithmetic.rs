//! The peak rate of arithmetic: a loop of independent fused multiply-adds at the level of the kernels.
#![allow(unsafe_code, reason = "instructions chosen at run time")]

use crate::measure::Limit;
use pullback::Level;
use rayon::prelude::*;
use std::hint::black_box;

/// Sums that do not wait for each other: enough to hide the latency of each.
const CHAINS: usize = 12;

/// Steps of all chains, by all threads together.
const STEPS: usize = 1 << 22;

/// The time that `operations` on vectors of 64 bytes take here, each one fused multiply-add, on all threads.
pub fn limit<'a>(operations: usize) -> Limit<'a> {
    let level = Level::current().expect("PULLBACK_SIMD");
    let threads = rayon::current_num_threads();
    let call = move || {
        (0..threads).into_par_iter().for_each(|_| {
            black_box(match level {
                // SAFETY: an operator's level is one that the CPU has.
                #[cfg(target_arch = "x86_64")]
                Level::V4 => unsafe { v4(STEPS / threads) },
                // SAFETY: as above.
                #[cfg(target_arch = "x86_64")]
                Level::V3 => unsafe { v3(STEPS / threads) },
                _ => base(STEPS / threads),
            });
        });
    };
    Limit { call: Box::new(call), scale: operations as f64 / (STEPS * CHAINS) as f64 }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn v4(steps: usize) -> f32 {
    use std::arch::x86_64::{_mm512_add_ps, _mm512_fmadd_ps, _mm512_reduce_add_ps, _mm512_set1_ps};
    let (a, b) = (_mm512_set1_ps(black_box(0.5)), _mm512_set1_ps(black_box(1.0)));
    let mut sums = [b; CHAINS];
    for _ in 0..steps {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, a, b);
        }
    }
    let mut all = sums[0];
    for &sum in &sums[1..] {
        all = _mm512_add_ps(all, sum);
    }
    _mm512_reduce_add_ps(all)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn v3(steps: usize) -> f32 {
    use std::arch::x86_64::{_mm256_add_ps, _mm256_cvtss_f32, _mm256_fmadd_ps, _mm256_set1_ps};
    let (a, b) = (_mm256_set1_ps(black_box(0.5)), _mm256_set1_ps(black_box(1.0)));
    let mut sums = [b; CHAINS];
    // Two registers are a vector of 64 bytes.
    for _ in 0..2 * steps {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, a, b);
        }
    }
    let mut all = sums[0];
    for &sum in &sums[1..] {
        all = _mm256_add_ps(all, sum);
    }
    _mm256_cvtss_f32(all)
}

/// A product and a sum, as the compiler puts them into registers.
fn base(steps: usize) -> f32 {
    let (a, b) = (black_box(0.5f32), black_box(1.0f32));
    let mut sums = [[b; 16]; CHAINS / 4];
    for _ in 0..4 * steps {
        for sum in &mut sums {
            for lane in sum {
                *lane = *lane * a + b;
            }
        }
    }
    sums.iter().flatten().sum()
}
