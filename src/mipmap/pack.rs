//! The inner loops that turn numbers into bits: rows of 64-bit words, the first cell lowest.

use super::windows;
use crate::element::Element;
use crate::simd::{Level, Mask, Simd, Vector, at};

/// The kernels of this family for `f32` and `f64`, those that compare with a threshold compiled here.
pub trait Kernels: windows::Kernels {
    /// Whether each number of each row of `width` is above `threshold`, into as many words a row as it needs.
    #[doc(hidden)]
    fn pack_above(level: Level, rows: &[Self], width: usize, threshold: Self, out: &mut [u64]);
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn pack_above(level: Level, rows: &[$t], width: usize, threshold: $t, out: &mut [u64]) {
            at!(level, |s| above(s, rows, width, threshold, out));
        }
    })* };
}
kernels!(f32, f64);

#[inline(always)]
fn above<T: Element, S: Simd>(s: S, rows: &[T], width: usize, threshold: T, out: &mut [u64]) {
    let threshold = s.splat(threshold);
    // Rows of whole words are one row.
    let (width, words) = if width.is_multiple_of(64) { (rows.len(), out.len()) } else { (width, width.div_ceil(64)) };
    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(words)) {
        let mut cells = row.chunks_exact(64);
        let mut out = out.iter_mut();
        for (cells, out) in cells.by_ref().zip(out.by_ref()) {
            let (mut bits, mut at) = (0, 0);
            while at < 64 {
                bits |= u64::from(threshold.lt(s.load(&cells[at..][..T::LANES])).bits()) << at;
                at += T::LANES;
            }
            *out = bits;
        }
        let tail = cells.remainder();
        if let Some(out) = out.next() {
            let (mut bits, mut at) = (0, 0);
            while at < tail.len() {
                let part = &tail[at..tail.len().min(at + T::LANES)];
                let cells = if part.len() == T::LANES { s.load(part) } else { s.load_head(part) };
                bits |= u64::from(threshold.lt(cells).bits()) << at;
                at += T::LANES;
            }
            // Lanes behind the end are zeros, which may be above the threshold.
            *out = bits & (!0 >> (64 - tail.len()));
        }
    }
}
