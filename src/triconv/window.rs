//! Sums of products of numbers, lanes along neighbouring outputs: what matrices of one row and one column are.
//!
//! A term is one number of `left`, and a vector of `right` that lies one cell before that of the term before it: its loads do not
//! fit cache lines, and there is one for every product. But a term's vectors are those of the term `LANES` before it, moved on by
//! one vector. So terms are taken in the order of their remainders by `LANES`: within one remainder a window of vectors stays in
//! registers, and every term loads one new vector for all outputs.

use crate::element::Element;
use crate::simd::{Simd, Vector};

/// For every vector v of outputs and lane l, over terms t: `left[t] * right[right_at + v * LANES + l - t]`.
#[derive(Clone, Copy)]
pub struct Window<'a, T> {
    /// A number a term.
    pub left: &'a [T],
    /// `LANES` cells at least lie before the last term's first one.
    pub right: &'a [T],
    pub right_at: usize,
}

/// Adds the sums to `out`, a vector each: the terms of one remainder after those of another. The order of a sum does not depend
/// on how many vectors there are.
#[inline(always)]
pub(super) fn window<T: Element, S: Simd>(s: S, job: &Window<'_, T>, out: &mut [T]) {
    let mut job = *job;
    let mut out = out;
    while !out.is_empty() {
        // The window takes as many registers as the sums.
        let done = match out.len() / T::LANES {
            8.. if S::ACCUMULATORS >= 8 => vectors::<_, _, 8>(s, &job, out),
            4.. if S::ACCUMULATORS >= 8 => vectors::<_, _, 4>(s, &job, out),
            2.. if S::ACCUMULATORS >= 4 => vectors::<_, _, 2>(s, &job, out),
            _ => vectors::<_, _, 1>(s, &job, out),
        };
        job.right_at += done;
        out = &mut out[done..];
    }
}

/// The first `V` vectors of outputs. Returns their number of cells.
#[inline(always)]
fn vectors<T: Element, S: Simd, const V: usize>(s: S, job: &Window<'_, T>, out: &mut [T]) -> usize {
    let mut sums = [s.splat(T::zero()); V];
    for (sum, out) in sums.iter_mut().zip(out.chunks_exact(T::LANES)) {
        *sum = s.load(out);
    }
    for remainder in 0..T::LANES.min(job.left.len()) {
        let terms = (job.left.len() - remainder).div_ceil(T::LANES);
        let mut t = remainder;
        let mut at = job.right_at - remainder;
        let mut window = [s.splat(T::zero()); V];
        if terms >= V {
            for (v, vector) in window.iter_mut().enumerate() {
                *vector = s.load(&job.right[at + v * T::LANES..]);
            }
        }
        for _ in 0..terms / V {
            // The window turns: what the first outputs need next takes the place of what the last ones had.
            for turn in 0..V {
                let x = s.splat(job.left[t]);
                for (v, sum) in sums.iter_mut().enumerate() {
                    *sum = x.mul_add(window[(v + V - turn) % V], *sum);
                }
                t += T::LANES;
                at -= T::LANES;
                window[V - 1 - turn] = s.load(&job.right[at..]);
            }
        }
        for _ in 0..terms % V {
            let x = s.splat(job.left[t]);
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = x.mul_add(s.load(&job.right[at + v * T::LANES..]), *sum);
            }
            t += T::LANES;
            at -= T::LANES;
        }
    }
    for (sum, out) in sums.iter().zip(out.chunks_exact_mut(T::LANES)) {
        sum.store(out);
    }
    V * T::LANES
}
