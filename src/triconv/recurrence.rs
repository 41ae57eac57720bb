//! Triangular sums in which every result is a factor of those behind it: the scan, and its adjoint, which is a scan
//! backwards.
//!
//! A row of the results depends on the same row of earlier results alone, so rows, and members of a batch, are shared
//! by the threads, which never wait for one another.

use super::faults::Faults;
use super::kernels::{Divide, LEAD, Left, Settle, Sums, Weighting, number};
use super::relaxed::Relaxed;
use super::sequence::{Change, Right, Sequence, exponent_of, for_each_chunk, interleave, scale};
use super::triangle::weigh_apart;
use super::tuning::{Lanes, Size, Tuning};
use super::weights::{Binomials, Factorials};
use crate::Real;
use crate::buffer::{Filled, Output};
use crate::error::Result;
use crate::layout::zeros;
use crate::parallel::{Cut, for_each_tile};
use crate::simd::Level;
use std::ops::Range;

/// `X_x = S_x + sum over j < x of w(x - 1, j) X_j R_{x-1-j}`, for x = 0 to n.
pub(super) struct Recurrence<'a, T: Clone> {
    pub(super) right: Right<'a, T>,
    /// The same, as they came.
    pub(super) given: Sequence<'a, T>,
    pub(super) change: Change,
    pub(super) size: Size,
    pub(super) binomials: Option<Binomials>,
    pub(super) factorials: Option<Factorials>,
    pub(super) divide: Divide,
    relaxed: Option<Relaxed<T>>,
    pub(super) level: Level,
    pub(super) tuning: Tuning,
}

/// What a recurrence starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Terms {
    /// `S_0` alone: all others are 0.
    Alone,
    /// Every S.
    All,
    /// Every S, the last one first; so are results.
    Backwards,
}

/// What a recurrence is made from.
pub(super) struct Rule {
    pub(super) binomials: Option<Binomials>,
    pub(super) divide: Divide,
    /// Whether exponents are kept apart.
    pub(super) scaled: bool,
    /// The tolerance of a relaxed scan.
    pub(super) relaxed: Option<f64>,
}

impl<'a, T: Real> Recurrence<'a, T> {
    /// A scan of `items` sequences of matrices of so many rows. Copies what must lie differently: all that can fail.
    pub(super) fn new(
        right: Sequence<'a, T>,
        transposed: bool,
        (items, rows): (usize, usize),
        rule: Rule,
        (level, tuning): (Level, Tuning),
    ) -> Result<Self> {
        let size = Size { items, len: right.len, rows, inner: right.rows, columns: right.columns };
        let batched = items > 1 && rule.relaxed.is_none();
        let lanes = if rule.scaled { Lanes::Columns } else { tuning.lanes::<T>(size, batched) };
        let change = Change { transposed, normalized: rule.scaled, ..Change::default() };
        let packed = match lanes {
            Lanes::Batch => Right::new(Sequence { cells: &[], items: 0, ..right }, change, lanes, false)?,
            _ => Right::new(right, change, lanes, tuning.parallel(size))?,
        };
        let factorials = rule.scaled.then(|| Factorials::new(right.len));
        let relaxed = match rule.relaxed {
            Some(tolerance) => Relaxed::new(&packed, right.items, tolerance, tuning)?,
            None => None,
        };
        let Rule { binomials, divide, .. } = rule;
        Ok(Self { right: packed, given: right, change, size, binomials, factorials, divide, relaxed, level, tuning })
    }

    /// Cells of a row of all matrices of a result.
    pub(super) fn row(&self) -> usize {
        (self.size.len + 1) * self.size.inner
    }

    /// Rows of a result that a task takes.
    fn task_rows(&self) -> usize {
        match self.right.lanes {
            Lanes::Batch => self.size.rows,
            _ => self.tuning.task_rows::<T>(self.size).min(self.size.rows),
        }
    }

    /// Where results of tasks are kept until all of them are written: no cells where a task has all rows of an item.
    pub(super) fn scratch(&self) -> Result<Vec<T>> {
        let several = self.task_rows() < self.size.rows;
        zeros(if several { self.size.items * self.size.rows * self.row() } else { 0 })
    }

    /// Writes the results (items, n + 1, rows, m).
    pub(super) fn write(
        &self,
        (s, start): (Sequence<'_, T>, Terms),
        mut scratch: Vec<T>,
        out: Output<'_, T>,
        faults: &Faults,
    ) -> Filled {
        let Size { items, rows, inner, .. } = self.size;
        if items == 0 {
            return Filled::NOTHING;
        }
        let (item_cells, matrix, len) = (rows * self.row(), rows * inner, self.size.len + 1);
        let parallel = self.tuning.parallel(self.size);
        let place = |x: usize| if start == Terms::Backwards { len - 1 - x } else { x };
        if self.right.lanes == Lanes::Batch {
            let cut = Cut { group: items, tile: T::LANES, width: item_cells, parallel };
            return for_each_tile(out, items, &cut, &|_, items, tile| {
                let mut results = vec![T::zero(); item_cells * T::LANES];
                let mut cells = vec![T::zero(); matrix];
                for first in items.clone().step_by(T::LANES) {
                    let members = first..items.end.min(first + T::LANES);
                    self.batch(members.clone(), (s, start), &mut results);
                    for (lane, item) in members.enumerate() {
                        for k in 0..len {
                            let result = &results[place(k) * matrix * T::LANES..][..matrix * T::LANES];
                            for (cell, result) in cells.iter_mut().zip(result.chunks_exact(T::LANES)) {
                                *cell = result[lane];
                            }
                            faults.look(item, k, &cells);
                            tile.push_slice(&cells);
                        }
                    }
                }
            });
        }
        let task_rows = self.task_rows();
        if task_rows == rows {
            let cut = Cut { group: items, tile: 1, width: item_cells, parallel };
            return for_each_tile(out, items, &cut, &|_, items, tile| {
                let mut results = vec![T::zero(); item_cells];
                for item in items {
                    self.run(item, 0..rows, (s, start), &mut results);
                    for k in 0..len {
                        let result = &results[place(k) * matrix..][..matrix];
                        faults.look(item, k, result);
                        tile.push_slice(result);
                    }
                }
            });
        }
        for_each_chunk(&mut scratch, item_cells, parallel, |(item, results)| {
            for_each_chunk(results, task_rows * self.row(), parallel, |(task, results)| {
                let first = task * task_rows;
                self.run(item, first..rows.min(first + task_rows), (s, start), results);
            });
        });
        let cut = Cut { group: len, tile: 64, width: matrix, parallel };
        for_each_tile(out, items * len, &cut, &|item, matrices, tile| {
            for k in matrices {
                for results in scratch[item * item_cells..][..item_cells].chunks(task_rows * self.row()) {
                    let cells = results.len() / len;
                    let result = &results[place(k) * cells..][..cells];
                    faults.look(item, k, result);
                    tile.push_slice(result);
                }
            }
        })
    }

    /// Some rows of an item: `results` (n + 1, rows, m).
    fn run(&self, item: usize, rows: Range<usize>, (s, start): (Sequence<'_, T>, Terms), results: &mut [T]) {
        let (own, m) = (s.item(item), self.size.inner);
        let cells = rows.len() * m;
        for (x, result) in results.chunks_exact_mut(cells).enumerate() {
            let from = |x: usize| &own[(x * self.size.rows + rows.start) * m..][..cells];
            match start {
                Terms::Alone if x > 0 => result.fill(T::zero()),
                Terms::Alone | Terms::All => result.copy_from_slice(from(x)),
                Terms::Backwards => result.copy_from_slice(from(self.size.len - x)),
            }
        }
        match (&self.relaxed, self.right.lanes) {
            (Some(relaxed), _) => relaxed.run(self, item, rows.len(), results),
            (None, Lanes::Time) => self.neighbors(item, rows.len(), results),
            _ => self.columns(item, rows.len(), results),
        }
    }

    /// What the sum of a result is divided by.
    pub(super) fn divisor(&self, x: usize) -> T {
        if self.divide == Divide::Sums { number(x) } else { T::one() }
    }

    /// Results one after another, lanes along columns.
    fn columns(&self, item: usize, rows: usize, results: &mut [T]) {
        let (right, m) = (&self.right, self.size.inner);
        let (matrix, line) = (rows * m, right.line());
        let chunk = self.tuning.chunk::<T>(self.size);
        let cells = &right.cells[item % self.given.items * right.item()..];
        let mut sums = vec![T::zero(); rows * line];
        let mut weights = Vec::with_capacity(self.binomials.map_or(0, |_| self.size.len * T::LANES));
        // What later sums take instead of results.
        let mut factors = match (self.divide, &self.factorials) {
            (Divide::Factors { .. }, _) | (_, Some(_)) => vec![T::zero(); self.size.len * matrix],
            _ => Vec::new(),
        };
        let mut exponents = Vec::with_capacity(self.factorials.as_ref().map_or(0, |_| self.size.len));
        for x in 0..=self.size.len {
            let (before, result) = results.split_at_mut(x * matrix);
            let result = &mut result[..matrix];
            if x > 0 {
                let exponent = self.weigh(x - 1, item, &exponents, &mut weights);
                let left = if factors.is_empty() { &*before } else { &factors[..] };
                for first in (0..x).step_by(chunk) {
                    let job = Sums {
                        left: &left[first * matrix..],
                        kind: Left::Rows,
                        left_steps: [matrix, m, 1],
                        right: cells,
                        right_at: (x - 1 - first) * m * line,
                        right_step: -((m * line) as isize),
                        right_steps: right.steps(),
                        rows,
                        vectors: line / T::LANES,
                        inner: m,
                        terms: chunk.min(x - first),
                        weights: self.binomials.map(|_| Weighting {
                            cells: &weights,
                            at: first * T::LANES,
                            step: T::LANES as isize,
                        }),
                    };
                    T::sums(self.level, &job, first > 0, &mut sums);
                }
                if self.factorials.is_some() {
                    scale(&mut sums, exponent);
                }
                let divisor = self.divisor(x);
                for (cells, sums) in result.chunks_exact_mut(m).zip(sums.chunks_exact(line)) {
                    cells.iter_mut().zip(sums).for_each(|(cell, &sum)| *cell = *cell + sum / divisor);
                }
            }
            if x < self.size.len && !factors.is_empty() {
                let factor = &mut factors[x * matrix..][..matrix];
                factor.copy_from_slice(result);
                if let Divide::Factors { last } = self.divide {
                    let divisor = number(last - x);
                    factor.iter_mut().for_each(|cell| *cell = *cell / divisor);
                } else {
                    exponents.push(exponent_of(factor));
                    scale(factor, -exponents[x]);
                }
            }
        }
    }

    /// A vector of weights a term of the sum with index `k`. With exponents apart, the sum is to be taken times the
    /// power of two that is returned.
    fn weigh(&self, k: usize, item: usize, exponents: &[i32], weights: &mut Vec<T>) -> i32 {
        weights.clear();
        let Some(binomials) = self.binomials else { return 0 };
        let Some(factorials) = &self.factorials else {
            for j in 0..=k {
                weights.extend(std::iter::repeat_n(binomials.weight(T::table(), k, j), T::LANES));
            }
            return 0;
        };
        let right = &self.right.exponents[item % self.given.items * self.size.len..];
        let terms = (0..=k).map(|j| {
            let (mantissa, exponent) = factorials.binomial(binomials.of(k, j));
            (mantissa, exponent + exponents[j] + right[k - j])
        });
        weigh_apart(terms, weights)
    }

    /// A vector of neighbouring results at a time, lanes along them: first what all of them take from those before,
    /// then one after another with what it gives to those behind.
    fn neighbors(&self, item: usize, rows: usize, results: &mut [T]) {
        let (right, n, m) = (&self.right, self.size.len, self.size.inner);
        let matrix = rows * m;
        let cells = &right.cells[item % self.given.items * right.item()..][..right.item()];
        let mut sums = vec![T::zero(); matrix * T::LANES];
        let mut factors = match self.divide {
            Divide::Factors { .. } => vec![T::zero(); results.len()],
            _ => Vec::new(),
        };
        if let Divide::Factors { last } = self.divide {
            let divisor = number(last.max(1));
            factors.iter_mut().zip(&results[..matrix]).for_each(|(factor, &cell)| *factor = cell / divisor);
        }
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
            let lanes = T::LANES.min(n - k);
            let job = Settle {
                right: cells,
                right_at: LEAD - 1,
                right_steps: right.steps(),
                rows,
                inner: m,
                weights: self.binomials.filter(|_| lanes > 1).map(|binomials| binomials.lanes(T::table(), k, k + 1)),
                first: k + 1,
                lanes,
                divide: self.divide,
            };
            let factors = if factors.is_empty() { None } else { Some(&mut factors[..]) };
            T::settle(self.level, &job, &mut sums, results, factors);
        }
    }

    /// Some items, at most a vector of them, lanes along them: `results` (n + 1, rows, m, lanes).
    fn batch(&self, items: Range<usize>, (s, start): (Sequence<'_, T>, Terms), results: &mut [T]) {
        let (n, m) = (self.size.len, self.size.inner);
        let (matrix, square) = (self.size.rows * m * T::LANES, m * m * T::LANES);
        let cells = self.size.rows * m;
        results.fill(T::zero());
        for x in 0..if start == Terms::Alone { 1 } else { n + 1 } {
            let from = if start == Terms::Backwards { n - x } else { x };
            let matrices = items.clone().map(|item| &s.item(item)[from * cells..][..cells]);
            interleave(matrices, &mut results[x * matrix..][..matrix]);
        }
        let mut rights = vec![T::zero(); n * square];
        interleave(items.map(|item| self.given.item(item % self.given.items)), &mut rights);
        let mut weights = Vec::with_capacity(self.binomials.map_or(0, |_| n * T::LANES));
        let mut factors = match self.divide {
            Divide::Factors { .. } => vec![T::zero(); n * matrix],
            _ => Vec::new(),
        };
        let mut sums = vec![T::zero(); matrix];
        let inner_steps = if self.change.transposed { [1, m] } else { [m, 1] };
        for x in 0..=n {
            let (before, result) = results.split_at_mut(x * matrix);
            let result = &mut result[..matrix];
            if x > 0 {
                self.weigh(x - 1, 0, &[], &mut weights);
                let job = Sums {
                    left: if factors.is_empty() { &*before } else { &factors },
                    kind: Left::Vectors,
                    left_steps: [matrix, m * T::LANES, T::LANES],
                    right: &rights,
                    right_at: (x - 1) * square,
                    right_step: -(square as isize),
                    right_steps: inner_steps.map(|step| step * T::LANES),
                    rows: self.size.rows,
                    vectors: m,
                    inner: m,
                    terms: x,
                    weights: self.binomials.map(|_| Weighting { cells: &weights, at: 0, step: T::LANES as isize }),
                };
                T::sums(self.level, &job, false, &mut sums);
                let divisor = self.divisor(x);
                result.iter_mut().zip(&sums).for_each(|(cell, &sum)| *cell = *cell + sum / divisor);
            }
            if let Divide::Factors { last } = self.divide
                && x < n
            {
                let divisor = number(last - x);
                let factors = &mut factors[x * matrix..][..matrix];
                factors.iter_mut().zip(&*result).for_each(|(factor, &cell)| *factor = cell / divisor);
            }
        }
    }
}
