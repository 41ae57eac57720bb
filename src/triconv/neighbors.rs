//! The scan with lanes along neighbouring outputs, of matrices too narrow for lanes along their columns.

use super::kernels::{Divide, LEAD, Left, Settle, Sums, number};
use super::recurrence::Recurrence;
use crate::Real;

impl<T: Real> Recurrence<'_, T> {
    /// A vector of neighbouring results at a time, lanes along them: first what all of them take from those before,
    /// then one after another with what it gives to those behind.
    pub(super) fn neighbors(&self, item: usize, rows: usize, results: &mut [T]) {
        let (right, n, m) = (&self.right, self.size.len, self.size.inner);
        let matrix = rows * m;
        let cells = &right.cells[item % self.given.items * right.item()..][..right.item()];
        let mut sums = vec![T::zero(); matrix * T::LANES];
        let mut factors = self.factors(matrix, results);
        for k in (0..n).step_by(T::LANES) {
            let job = Sums {
                left: if factors.is_empty() { &*results } else { &factors },
                kind: Left::Rows,
                left_steps: [matrix, m, 1],
                right: cells,
                right_at: LEAD + k,
                right_step: -1,
                right_steps: right.steps(),
                rows,
                vectors: m,
                inner: m,
                terms: k + 1,
                weights: self.binomials.map(|binomials| binomials.lanes(T::table(), k, 0)),
            };
            T::sums(self.level, &job, false, &mut sums);
            self.settle(cells, rows, (k, T::LANES.min(n - k)), &mut sums, results, &mut factors);
        }
    }

    /// What later sums take instead of results, if not they themselves: all that is known of it with the first of them.
    pub(super) fn factors(&self, matrix: usize, results: &[T]) -> Vec<T> {
        let Divide::Factors { last } = self.divide else { return Vec::new() };
        let mut factors = vec![T::zero(); results.len()];
        let divisor = number(last.max(1));
        factors.iter_mut().zip(&results[..matrix]).for_each(|(factor, &cell)| *factor = cell / divisor);
        factors
    }

    /// Ends the sums of the results behind number k, so many of them.
    pub(super) fn settle(
        &self,
        cells: &[T],
        rows: usize,
        (k, lanes): (usize, usize),
        sums: &mut [T],
        results: &mut [T],
        factors: &mut [T],
    ) {
        let job = Settle {
            right: cells,
            right_at: LEAD - 1,
            right_steps: self.right.steps(),
            rows,
            inner: self.size.inner,
            weights: self.binomials.filter(|_| lanes > 1).map(|binomials| binomials.lanes(T::table(), k, k + 1)),
            first: k + 1,
            lanes,
            divide: self.divide,
        };
        let factors = if factors.is_empty() { None } else { Some(factors) };
        T::settle(self.level, &job, sums, results, factors);
    }
}
