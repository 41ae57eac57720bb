//! The scan with lanes along the members of a batch, of short sequences of small matrices.

use super::faults::Faults;
use super::interleave::interleave;
use super::kernels::{Divide, Left, Sums, Weighting, number};
use super::recurrence::{Recurrence, Terms};
use super::sequence::Sequence;
use super::triangle::TASKS;
use crate::Real;
use crate::buffer::{Filled, Output};
use crate::parallel::{Cut, for_each_tile};
use std::ops::Range;

/// Memory that a task uses again and again: matrices with a vector an element.
struct Space<T> {
    /// (n + 1, rows, m)
    results: Vec<T>,
    /// What later sums take instead of results, if not they themselves.
    factors: Vec<T>,
    /// (n, m, m)
    rights: Vec<T>,
    /// (rows, m)
    sums: Vec<T>,
    /// A vector a term.
    weights: Vec<T>,
}

impl<T: Real> Recurrence<'_, T> {
    /// Writes the results (items, n + 1, rows, m).
    pub(super) fn write_members(
        &self,
        (s, start): (Sequence<'_, T>, Terms),
        out: Output<'_, T>,
        faults: &Faults,
    ) -> Filled {
        let (n, items, matrix) = (self.size.len, self.size.items, self.size.rows * self.size.inner);
        let item_cells = (n + 1) * matrix;
        // Some tasks, and not so many that each one's memory counts.
        let tile = items.div_ceil(TASKS).next_multiple_of(T::LANES);
        let cut = Cut { group: items, tile, width: item_cells, parallel: self.tuning.parallel(self.size) };
        for_each_tile(out, items, &cut, &|_, items, tile| {
            let zeros = |cells: usize| vec![T::zero(); cells * T::LANES];
            let mut space = Space {
                results: zeros(item_cells),
                factors: zeros(if let Divide::Factors { .. } = self.divide { n * matrix } else { 0 }),
                rights: zeros(n * self.size.inner.pow(2)),
                sums: zeros(matrix),
                weights: Vec::with_capacity(self.binomials.map_or(0, |_| n * T::LANES)),
            };
            let mut cells = zeros(item_cells);
            for first in items.clone().step_by(T::LANES) {
                let members = first..items.end.min(first + T::LANES);
                let finite = self.members(members.clone(), (s, start), &mut space);
                if start == Terms::Backwards {
                    let results = space.results.chunks_exact(matrix * T::LANES).rev();
                    for (k, result) in results.enumerate() {
                        T::deinterleave(self.level, result, item_cells, &mut cells[k * matrix..]);
                    }
                } else {
                    T::deinterleave(self.level, &space.results, item_cells, &mut cells);
                }
                for (item, cells) in members.zip(cells.chunks_exact(item_cells)) {
                    if !finite {
                        faults.look_through(item, cells, matrix);
                    }
                    tile.push_slice(cells);
                }
            }
        })
    }

    /// At most a vector of items, lanes along them. Whether all sums are finite.
    fn members(&self, items: Range<usize>, (s, start): (Sequence<'_, T>, Terms), space: &mut Space<T>) -> bool {
        let (n, m) = (self.size.len, self.size.inner);
        let (matrix, square) = (self.size.rows * m * T::LANES, m * m * T::LANES);
        let Space { results, factors, rights, sums, weights } = space;
        let given = |item: usize| self.given.item(item % self.given.items);
        interleave(self.level, items.clone().map(given), rights);
        if start == Terms::Backwards {
            let cells = self.size.rows * m;
            for (x, result) in results.chunks_exact_mut(matrix).enumerate() {
                let matrices = items.clone().map(|item| &s.item(item)[(n - x) * cells..][..cells]);
                interleave(self.level, matrices, result);
            }
        } else {
            interleave(self.level, items.map(|item| s.item(item)), &mut results[..s.len * matrix]);
        }
        let inner_steps = if self.change.transposed { [1, m] } else { [m, 1] };
        let mut finite = true;
        for x in 0..=n {
            let (before, result) = results.split_at_mut(x * matrix);
            let result = &mut result[..matrix];
            if x > 0 {
                self.weigh(x - 1, 0, &[], weights);
                let job = Sums {
                    left: if factors.is_empty() { &*before } else { &*factors },
                    kind: Left::Vectors,
                    left_steps: [matrix, m * T::LANES, T::LANES],
                    right: &*rights,
                    right_at: (x - 1) * square,
                    right_step: -(square as isize),
                    right_steps: inner_steps.map(|step| step * T::LANES),
                    rows: self.size.rows,
                    vectors: m,
                    inner: m,
                    terms: x,
                    weights: self.binomials.map(|_| Weighting { cells: &*weights, at: 0, step: T::LANES as isize }),
                };
                T::sums(self.level, &job, false, sums);
                finite &= T::quotients(self.level, sums, self.divisor(x), x < s.len, result);
            }
            if let Divide::Factors { last } = self.divide
                && x < n
            {
                let divisor = number(last - x);
                let factors = &mut factors[x * matrix..][..matrix];
                factors.iter_mut().zip(&*result).for_each(|(factor, &cell)| *factor = cell / divisor);
            }
        }
        finite
    }
}
