//! Sequences side by side, a vector an element, and back: how members of a batch become lanes.
//!
//! A few members at a time are read as they lie, and squares of them turned about in registers. Copied element by element, they
//! take longer than short scans of small matrices do.

use crate::Real;
use crate::element::Element;
use crate::simd::transpose::transpose;
use crate::simd::{Level, MOST_LANES, Simd, Vector};

/// The cells of some items side by side, zeros where there are fewer items than lanes: `out[cell * LANES + lane]`.
pub(super) fn interleave<'b, T: Real>(level: Level, items: impl Iterator<Item = &'b [T]>, out: &mut [T]) {
    let mut members: [&[T]; MOST_LANES] = [&[]; MOST_LANES];
    for (member, item) in members.iter_mut().zip(items) {
        *member = item;
    }
    T::interleave(level, &members, out);
}

/// Kernel of [`interleave`].
#[inline(always)]
pub(super) fn lanes_of_items<T: Element, S: Simd>(s: S, items: &[&[T]; MOST_LANES], out: &mut [T]) {
    let len = out.len() / T::LANES;
    let whole = len / T::LANES * T::LANES;
    let mut square = [s.splat(T::zero()); MOST_LANES];
    for first in (0..whole).step_by(T::LANES) {
        for i in 0..T::LANES {
            square[i] = if items[i].is_empty() { s.splat(T::zero()) } else { s.load(&items[i][first..]) };
        }
        transpose::<T, S>(s, &mut square);
        let out = &mut out[first * T::LANES..][..T::LANES * T::LANES];
        for i in 0..T::LANES {
            square[i].store(&mut out[i * T::LANES..]);
        }
    }
    if whole < len {
        for i in 0..T::LANES {
            // Emulators read where no lane is asked for, too.
            square[i] = if items[i].is_empty() { s.splat(T::zero()) } else { s.load_head(&items[i][whole..len]) };
        }
        transpose::<T, S>(s, &mut square);
        for (row, out) in square.iter().zip(out[whole * T::LANES..].chunks_exact_mut(T::LANES)) {
            row.store(out);
        }
    }
}

/// The other way, kernel of `Kernels::deinterleave`: lane i of every vector, one behind another from `out[i * step]`, for as many lanes as
/// there are.
#[inline(always)]
pub(super) fn items_of_lanes<T: Element, S: Simd>(s: S, cells: &[T], step: usize, out: &mut [T]) {
    let len = cells.len() / T::LANES;
    let whole = len / T::LANES * T::LANES;
    let mut square = [s.splat(T::zero()); MOST_LANES];
    for first in (0..whole).step_by(T::LANES) {
        let cells = &cells[first * T::LANES..][..T::LANES * T::LANES];
        for i in 0..T::LANES {
            square[i] = s.load(&cells[i * T::LANES..]);
        }
        transpose::<T, S>(s, &mut square);
        for i in 0..T::LANES {
            square[i].store(&mut out[i * step + first..]);
        }
    }
    if whole < len {
        for (row, cells) in square.iter_mut().zip(cells[whole * T::LANES..].chunks_exact(T::LANES)) {
            *row = s.load(cells);
        }
        transpose::<T, S>(s, &mut square);
        for (i, row) in square.iter().enumerate().take(T::LANES) {
            row.store_head(&mut out[i * step + whole..][..len - whole]);
        }
    }
}
