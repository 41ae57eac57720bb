//! Triangular sums in which every result is a factor of those behind it: the scan, and its adjoint, which is a scan
//! backwards.
//!
//! A row of the results depends on the same row of earlier results alone, so rows, and members of a batch, are shared
//! by the threads, which never wait for one another.

use super::faults::Faults;
use super::kernels::{Divide, number};
use super::relaxed::Relaxed;
use super::sequence::{Change, Right, Sequence, for_each_chunk};
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
        let factorials = rule.scaled.then(|| Factorials::new(right.len)).transpose()?;
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

    /// Whether matrices of one column are scanned as [`Recurrence::numbers`], a row a task.
    fn is_of_numbers(&self) -> bool {
        let plain = self.binomials.is_none() && self.relaxed.is_none();
        self.right.lanes == Lanes::Time && self.size.inner == 1 && plain
    }

    /// Rows of a result that a task takes.
    fn task_rows(&self) -> usize {
        match self.right.lanes {
            Lanes::Batch => self.size.rows,
            _ if self.is_of_numbers() => 1,
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
            return self.write_members((s, start), out, faults);
        }
        let task_rows = self.task_rows();
        if task_rows == rows {
            let cut = Cut { group: items, tile: 1, width: item_cells, parallel };
            return for_each_tile(out, items, &cut, &|_, items, tile| {
                let mut results = vec![T::zero(); item_cells];
                for item in items {
                    self.run(item, 0..rows, (s, start), &mut results);
                    if start == Terms::Backwards {
                        for (k, result) in results.chunks_exact(matrix).rev().enumerate() {
                            faults.look(item, k, result);
                            tile.push_slice(result);
                        }
                    } else {
                        faults.look_through(item, &results, matrix);
                        tile.push_slice(&results);
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
        let from = |x: usize| &own[(x * self.size.rows + rows.start) * m..][..cells];
        match start {
            Terms::Alone => {
                let (first, others) = results.split_at_mut(cells);
                first.copy_from_slice(from(0));
                others.fill(T::zero());
            }
            Terms::All | Terms::Backwards => {
                let place = |x: usize| if start == Terms::All { x } else { self.size.len - x };
                for (x, result) in results.chunks_exact_mut(cells).enumerate() {
                    result.copy_from_slice(from(place(x)));
                }
            }
        }
        match (&self.relaxed, self.right.lanes) {
            (Some(relaxed), _) => relaxed.run(self, item, rows.len(), results),
            (None, _) if self.is_of_numbers() => self.numbers(item, results),
            (None, Lanes::Time) => self.neighbors(item, rows.len(), results),
            _ => self.columns(item, rows.len(), results),
        }
    }

    /// What the sum of a result is divided by.
    pub(super) fn divisor(&self, x: usize) -> T {
        if self.divide == Divide::Sums { number(x) } else { T::one() }
    }

    /// A vector of weights a term of the sum with index `k`. With exponents apart, the sum is to be taken times the
    /// power of two that is returned.
    pub(super) fn weigh(&self, k: usize, item: usize, exponents: &[i32], weights: &mut Vec<T>) -> i32 {
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
}
