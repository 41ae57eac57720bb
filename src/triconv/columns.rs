//! The scan with lanes along the columns of a matrix: results one after another.
//!
//! A matrix of one vector alone gives each of its rows one chain of sums, and a chain waits for itself. So two outputs are summed
//! at once there: all terms but the last of the second are known with those of the first, and what both multiply is read once.

use super::kernels::{Divide, Left, Sums, Weighting, number};
use super::recurrence::Recurrence;
use super::sequence::{exponent_of, scale};
use crate::Real;
use std::ops::Range;

/// Results so far, and what later sums take instead of them.
struct Known<'r, T> {
    results: &'r mut [T],
    /// None where it is the results themselves.
    factors: Vec<T>,
    /// Of factors, where they are kept apart.
    exponents: Vec<i32>,
}

/// Some terms of the sum of output x, and where there are two outputs, of the next one as well.
struct Part {
    x: usize,
    outputs: usize,
    terms: Range<usize>,
}

impl<T: Real> Recurrence<'_, T> {
    /// Some rows of an item: `results` (n + 1, rows, m), which hold what they start from.
    pub(super) fn columns(&self, item: usize, rows: usize, results: &mut [T]) {
        let (n, m, line) = (self.size.len, self.size.inner, self.right.line());
        let factors = match (self.divide, &self.factorials) {
            (Divide::Factors { .. }, _) | (_, Some(_)) => vec![T::zero(); n * rows * m],
            _ => Vec::new(),
        };
        let exponents = Vec::with_capacity(self.factorials.as_ref().map_or(0, |_| n));
        let mut known = Known { results, factors, exponents };
        let mut weights = Vec::with_capacity(self.binomials.map_or(0, |_| n * T::LANES));
        let chunk = self.tuning.chunk::<T>(self.size);
        let outputs = if line == T::LANES && self.binomials.is_none() { 2 } else { 1 };
        let mut sums = vec![T::zero(); outputs * rows * line];
        let mut second = vec![T::zero(); if outputs == 2 { rows * line } else { 0 }];
        self.keep(0, rows, &mut known);
        for x in (1..=n).step_by(outputs) {
            let exponent = self.weigh(x - 1, item, &known.exponents, &mut weights);
            let outputs = outputs.min(n + 1 - x);
            let sums = &mut sums[..outputs * rows * line];
            for first in (0..x).step_by(chunk) {
                let terms = first..x.min(first + chunk);
                self.add_terms(item, rows, &Part { x, outputs, terms }, &known, &weights, sums);
            }
            if self.factorials.is_some() {
                scale(sums, exponent);
            }
            self.add_sums(x, rows, (sums, outputs * line), &mut known);
            if outputs == 2 {
                for (second, sums) in second.chunks_exact_mut(line).zip(sums.chunks_exact(2 * line)) {
                    second.copy_from_slice(&sums[line..]);
                }
                let last = Part { x: x + 1, outputs: 1, terms: x..x + 1 };
                self.add_terms(item, rows, &last, &known, &weights, &mut second);
                self.add_sums(x + 1, rows, (&second, line), &mut known);
            }
        }
    }

    /// Adds terms to sums (rows, outputs, columns in whole vectors), which begin with term 0.
    fn add_terms(&self, item: usize, rows: usize, part: &Part, known: &Known<'_, T>, weights: &[T], sums: &mut [T]) {
        let (right, m) = (&self.right, self.size.inner);
        let (matrix, square) = (rows * m, m * right.line());
        let left = if known.factors.is_empty() { &*known.results } else { &known.factors };
        let first = part.terms.start;
        let [inner, vector] = right.steps();
        let job = Sums {
            left: &left[first * matrix..],
            kind: Left::Rows,
            left_steps: [matrix, m, 1],
            right: &right.cells[item % self.given.items * right.item()..],
            right_at: (part.x - 1 - first) * square,
            right_step: -(square as isize),
            // The vector of the next output is that of the next matrix.
            right_steps: [inner, if part.outputs == 2 { square } else { vector }],
            rows,
            vectors: part.outputs * right.line() / T::LANES,
            inner: m,
            terms: part.terms.len(),
            weights: self.binomials.map(|_| Weighting {
                cells: weights,
                at: first * T::LANES,
                step: T::LANES as isize,
            }),
        };
        T::sums(self.level, &job, first > 0, sums);
    }

    /// Adds the sums of output x, of which rows lie so far apart, to what is there, and keeps what later sums take.
    fn add_sums(&self, x: usize, rows: usize, (sums, apart): (&[T], usize), known: &mut Known<'_, T>) {
        let (m, divisor) = (self.size.inner, self.divisor(x));
        let result = &mut known.results[x * rows * m..][..rows * m];
        for (cells, sums) in result.chunks_exact_mut(m).zip(sums.chunks(apart)) {
            cells.iter_mut().zip(sums).for_each(|(cell, &sum)| *cell = *cell + sum / divisor);
        }
        self.keep(x, rows, known);
    }

    /// Makes what later sums take of result x.
    fn keep(&self, x: usize, rows: usize, Known { results, factors, exponents }: &mut Known<'_, T>) {
        if x == self.size.len || factors.is_empty() {
            return;
        }
        let matrix = rows * self.size.inner;
        let factor = &mut factors[x * matrix..][..matrix];
        factor.copy_from_slice(&results[x * matrix..][..matrix]);
        if let Divide::Factors { last } = self.divide {
            let divisor = number(last - x);
            factor.iter_mut().for_each(|cell| *cell = *cell / divisor);
        } else {
            exponents.push(exponent_of(factor));
            scale(factor, -exponents[x]);
        }
    }
}
