//! Where the build spends its time: the extent of points along every axis, and a selection that splits them by rank.
//!
//! Points lie in leaf blocks, axis by axis, and are never copied: a selection compares a whole vector of keys with the
//! pivot at once and swaps what is on the wrong side, pair by pair, from the bits of the comparison. There is no branch
//! on a comparison of keys, and a pass reads only the keys. Pivots come from samples, one on each side of the wanted
//! rank, so that the second pass is left with little: about one and a half passes in all.

use super::arena::Dims;
use crate::element::Element;
use crate::simd::{Mask, Simd, Vector};
use std::ops::Range;

/// Points in leaf blocks.
pub struct Points<'a, T> {
    pub dims: usize,
    /// Slots of a leaf: a power of two and a multiple of a vector's lanes.
    pub leaf: usize,
    /// (leaves, D, leaf).
    pub coordinates: &'a mut [T],
    /// (leaves, leaf).
    pub ids: &'a mut [u32],
    /// Points, in the first slots.
    pub len: usize,
}

impl<T: Element> Points<'_, T> {
    /// Where the coordinate of a slot lies.
    #[inline(always)]
    fn at(&self, dims: impl Dims, slot: usize, axis: usize) -> usize {
        let block = slot & !(self.leaf - 1);
        block * dims.count() + axis * self.leaf + (slot - block)
    }

    #[inline(always)]
    fn key(&self, dims: impl Dims, slot: usize, axis: usize) -> T {
        self.coordinates[self.at(dims, slot, axis)]
    }

    #[inline(always)]
    fn swap(&mut self, dims: impl Dims, a: usize, b: usize) {
        let (at_a, at_b) = (self.at(dims, a, 0), self.at(dims, b, 0));
        for axis in 0..dims.count() {
            self.coordinates.swap(at_a + axis * self.leaf, at_b + axis * self.leaf);
        }
        self.ids.swap(a, b);
    }

    /// One bit a slot of a chunk of `LANES` slots: whether `left` holds, within `range`.
    #[inline(always)]
    fn bits<S: Simd>(
        &self,
        s: S,
        dims: impl Dims,
        chunk: usize,
        axis: usize,
        range: &Range<usize>,
        left: impl Fn(S::V<T>) -> u32,
    ) -> (u32, u32) {
        let slot = chunk * T::LANES;
        let bits = left(s.load(&self.coordinates[self.at(dims, slot, axis)..]));
        let from = range.start.saturating_sub(slot).min(T::LANES);
        let to = range.end.saturating_sub(slot).min(T::LANES);
        let within = ((1u64 << to) - (1u64 << from)) as u32;
        (bits & within, !bits & within)
    }
}

/// The lowest and the highest coordinate on every axis of at least one point.
#[inline(always)]
pub(super) fn extent<T: Element, S: Simd, A: Dims>(
    s: S,
    dims: A,
    points: &Points<'_, T>,
    low: &mut [T],
    high: &mut [T],
) {
    let mut lows = dims.all(s.splat(T::infinity()));
    let mut highs = dims.all(s.splat(T::neg_infinity()));
    let full = points.len / points.leaf;
    let block = dims.count() * points.leaf;
    for coordinates in points.coordinates.chunks_exact(block).take(full) {
        let columns = coordinates.chunks_exact(points.leaf);
        for (column, (low, high)) in columns.zip(lows.as_mut().iter_mut().zip(highs.as_mut())) {
            for lanes in column.chunks_exact(T::LANES) {
                let x = s.load(lanes);
                *low = x.min(*low);
                *high = x.max(*high);
            }
        }
    }
    for axis in 0..dims.count() {
        let mut lanes = [T::zero(); 16];
        lows.as_ref()[axis].store(&mut lanes);
        low[axis] = lanes[..T::LANES].iter().fold(T::infinity(), |low, &x| low.min(x));
        highs.as_ref()[axis].store(&mut lanes);
        high[axis] = lanes[..T::LANES].iter().fold(T::neg_infinity(), |high, &x| high.max(x));
        for slot in full * points.leaf..points.len {
            let x = points.key(dims, slot, axis);
            low[axis] = low[axis].min(x);
            high[axis] = high[axis].max(x);
        }
    }
}

/// Reorders points so that on `axis` the first `rank` are at most, and the rest at least, the value returned.
#[inline(always)]
pub(super) fn select<T: Element, S: Simd, A: Dims>(
    s: S,
    dims: A,
    points: &mut Points<'_, T>,
    axis: usize,
    rank: usize,
) -> T {
    let mut range = 0..points.len;
    let mut seed = 0x9e37_79b9;
    loop {
        let pivot = sample(dims, points, axis, &range, rank, &mut seed);
        let pivots = s.splat(pivot);
        let below = partition(s, dims, points, axis, &range, |x| x.lt(pivots).bits());
        if rank == below {
            return pivot;
        }
        if rank < below {
            range.end = below;
            continue;
        }
        // The pivot is one of the points, so this takes at least one off.
        range.start = partition(s, dims, points, axis, &(below..range.end), |x| x.le(pivots).bits());
        if rank <= range.start {
            return pivot;
        }
    }
}

/// Moves the points of `range` for which `left` holds to its front and returns where the others start.
#[inline(always)]
fn partition<T: Element, S: Simd, A: Dims>(
    s: S,
    dims: A,
    points: &mut Points<'_, T>,
    axis: usize,
    range: &Range<usize>,
    left: impl Fn(S::V<T>) -> u32 + Copy,
) -> usize {
    let lanes = T::LANES;
    let (mut low, mut high) = (range.start / lanes, (range.end - 1) / lanes);
    let (mut stray_right, mut stray_left) = (0, 0);
    if low < high {
        stray_right = points.bits(s, dims, low, axis, range, left).1;
        stray_left = points.bits(s, dims, high, axis, range, left).0;
    }
    while low < high {
        if stray_right == 0 {
            low += 1;
            if low < high {
                stray_right = points.bits(s, dims, low, axis, range, left).1;
            }
        } else if stray_left == 0 {
            high -= 1;
            if low < high {
                stray_left = points.bits(s, dims, high, axis, range, left).0;
            }
        } else {
            let a = low * lanes + stray_right.trailing_zeros() as usize;
            let b = high * lanes + stray_left.trailing_zeros() as usize;
            points.swap(dims, a, b);
            stray_right &= stray_right - 1;
            stray_left &= stray_left - 1;
        }
    }
    // One chunk is left, with everything before it on the left and everything behind it on the right.
    let (left, right) = points.bits(s, dims, low, axis, range, left);
    let start = range.start.max(low * lanes);
    let middle = start + left.count_ones() as usize;
    let behind = !0u32 << (middle - low * lanes);
    let (mut stray_left, mut stray_right) = (left & behind, right & !behind);
    while stray_left != 0 {
        let (a, b) = (stray_right.trailing_zeros() as usize, stray_left.trailing_zeros() as usize);
        points.swap(dims, low * lanes + a, low * lanes + b);
        stray_left &= stray_left - 1;
        stray_right &= stray_right - 1;
    }
    middle
}

/// A key of `range` that is likely to lie just beyond the one of `rank`, on the side of the middle.
#[inline(always)]
fn sample<T: Element>(
    dims: impl Dims,
    points: &Points<'_, T>,
    axis: usize,
    range: &Range<usize>,
    rank: usize,
    seed: &mut u32,
) -> T {
    const MOST: usize = 255;
    let n = range.len();
    // The size and the margin of a sample, about one standard deviation of a quantile.
    let (size, margin) = match n {
        ..=7 => (1, 0),
        8..=255 => (7, 0),
        256..=2047 => (15, 1),
        2048..=32767 => (63, 4),
        _ => (MOST, 10),
    };
    let mut keys = [T::zero(); MOST];
    let keys = &mut keys[..size];
    let stride = n / size;
    for (i, key) in keys.iter_mut().enumerate() {
        *seed = seed.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        let within = ((u64::from(*seed) * stride as u64) >> 32) as usize;
        *key = points.key(dims, range.start + i * stride + within, axis);
    }
    keys.sort_unstable_by(|a, b| a.partial_cmp(b).expect("coordinates are finite"));
    let wanted = (rank - range.start) * size / n;
    let middle = size / 2;
    keys[if wanted < middle { (wanted + margin).min(middle) } else { wanted.saturating_sub(margin).max(middle) }]
}
