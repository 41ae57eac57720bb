//! Sequences of numbers, which matrices of one row and one column are, and rows of such: some vectors of neighbouring outputs at a time,
//! by a window that reads every term once for all of them.

use super::faults::Faults;
use super::kernels::LEAD;
use super::recurrence::Recurrence;
use super::triangle::Prepared;
use super::window::Window;
use crate::Real;
use crate::buffer::Tile;
use std::ops::Range;

/// Vectors of outputs that are summed at once.
const TOGETHER: usize = 8;

/// Outputs of a block, which begin at a multiple of as many wherever tasks are cut: the order of a sum depends on its block.
pub(super) const fn block<T: Real>() -> usize {
    TOGETHER * T::LANES
}

impl<T: Real> Recurrence<'_, T> {
    /// A row of matrices of one column: some vectors of results at a time, lanes along them. First what all of them take from those
    /// before, then one vector after another, settled and given to those behind.
    pub(super) fn numbers(&self, item: usize, results: &mut [T]) {
        let (right, n) = (&self.right, self.size.len);
        let cells = &right.cells[item % self.given.items * right.item()..][..right.item()];
        let mut sums = vec![T::zero(); TOGETHER.min(n.div_ceil(T::LANES)) * T::LANES];
        let mut factors = self.factors(1, results);
        for first in (0..n).step_by(block::<T>()) {
            let vectors = TOGETHER.min((n - first).div_ceil(T::LANES));
            let sums = &mut sums[..vectors * T::LANES];
            sums.fill(T::zero());
            let left = if factors.is_empty() { &*results } else { &factors };
            T::window(self.level, &Window { left: &left[..=first], right: cells, right_at: LEAD + first }, sums);
            let ends = (first + T::LANES..).step_by(T::LANES);
            for (v, end) in (0..vectors).zip(ends) {
                let (own, behind) = sums[v * T::LANES..].split_at_mut(T::LANES);
                let k = end - T::LANES;
                self.settle(cells, 1, (k, T::LANES.min(n - k)), own, results, &mut factors);
                if !behind.is_empty() {
                    let left = if factors.is_empty() { &*results } else { &factors };
                    let left = &left[k + 1..=end];
                    T::window(self.level, &Window { left, right: cells, right_at: LEAD + T::LANES - 1 }, behind);
                }
            }
        }
    }
}

impl<T: Real> Prepared<'_, '_, T> {
    /// Neighbouring outputs, in blocks: the terms that all of a block have by the window, the others a vector at a time.
    pub(super) fn numbers(&self, group: usize, outputs: Range<usize>, tile: &mut Tile<'_, T>, faults: &Faults) {
        let (pairing, right) = (self.triangle.pairing, &self.right);
        let start = self.triangle.range.start;
        let (first, end) = (start + outputs.start, start + outputs.end);
        let cells = tile.accumulators();
        let mut sums = vec![T::zero(); block::<T>()];
        for block_start in (first / block::<T>() * block::<T>()..end).step_by(block::<T>()) {
            sums.fill(T::zero());
            let (_, common) = pairing.terms(block_start, block::<T>(), self.triangle.left.len, right.len);
            for (left_item, right_item) in self.items(group) {
                for (sums, x) in sums.chunks_exact_mut(T::LANES).zip((block_start..).step_by(T::LANES)) {
                    self.add_terms((left_item, right_item), (x, T::LANES), &common, sums);
                }
                if common.is_empty() {
                    continue;
                }
                // The window walks right factors backward.
                let left = match &self.reversed {
                    Some(reversed) => {
                        let len = self.triangle.left.len;
                        &reversed[left_item * len..][len - common.end..len - common.start]
                    }
                    None => &self.left(left_item)[common.clone()],
                };
                let from = if self.reversed.is_some() { common.end - 1 } else { common.start };
                let place = pairing.place(block_start, from, right.len);
                let right = &right.cells[right_item * right.item()..][..right.item()];
                let job = Window { left, right, right_at: LEAD.wrapping_add_signed(place) };
                T::window(self.triangle.settings.level, &job, &mut sums);
            }
            let own = first.max(block_start)..end.min(block_start + block::<T>());
            let sums = &sums[own.start - block_start..own.end - block_start];
            for ((cell, sum), x) in cells[own.start - first..].iter_mut().zip(sums).zip(own) {
                faults.look(group, x, &[*sum]);
                *cell = *cell + *sum;
            }
        }
    }
}
