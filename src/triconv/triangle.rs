//! Triangular sums whose factors are all known: products, correlations, and the gradients that are such.

use super::faults::Faults;
use super::interleave::interleave;
use super::kernels::{LEAD, Left, Sums, Weighting, number};
use super::numbers::block;
use super::operator::Settings;
use super::pairing::Pairing;
use super::sequence::{Change, Right, Sequence, exponent_of, scale};
use super::tuning::{Lanes, Size};
use super::weights::{Binomials, Factorials};
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start, Tile};
use crate::error::Result;
use crate::exponent::ldexp;
use crate::layout::{elements, zeros};
use crate::parallel::{Cut, for_each_tile};
use ndarray::{ArrayD, ArrayViewMut, Dimension};
use std::borrow::Cow;
use std::ops::Range;

/// Tasks that the outputs of an item, or the members of a batch, are shared by.
pub(super) const TASKS: usize = 16;

/// Which items of two batches are multiplied: output item g takes terms of the pairs `g * summed..(g + 1) * summed`,
/// where an item number beyond a batch starts again at its first.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    pub(super) groups: usize,
    pub(super) summed: usize,
}

impl Pairs {
    /// For so many cotangents of a batch: a result for each item, or their sum.
    pub(super) fn new(cotangents: usize, items: usize, summed: bool) -> Self {
        if summed { Self { groups: cotangents, summed: items } } else { Self { groups: cotangents * items, summed: 1 } }
    }
}

/// `out_x = sum over pairs of items and terms j of w(x, j) L_j R`, for a range of x.
pub(super) struct Triangle<'a, T> {
    pub(super) left: Sequence<'a, T>,
    pub(super) left_transposed: bool,
    pub(super) right: Sequence<'a, T>,
    pub(super) change: Change,
    pub(super) pairing: Pairing,
    pub(super) binomials: Option<Binomials>,
    /// Whether exponents are kept apart.
    pub(super) scaled: bool,
    pub(super) pairs: Pairs,
    pub(super) range: Range<usize>,
    pub(super) settings: Settings,
}

/// A triangle whose right factors lie as the inner loops read them.
pub(super) struct Prepared<'a, 'b, T: Clone> {
    pub(super) triangle: &'b Triangle<'a, T>,
    left: Cow<'a, [T]>,
    /// Left numbers of every item, the last one first, where right ones are walked forward.
    pub(super) reversed: Option<Vec<T>>,
    left_exponents: Vec<i32>,
    left_items: usize,
    pub(super) right: Right<'a, T>,
    right_items: usize,
    factorials: Option<Factorials>,
    rows: usize,
    lanes: Lanes,
}

impl<'a, T: Real> Triangle<'a, T> {
    /// Rows, inner indices and columns of the products.
    fn shape(&self) -> (usize, usize, usize) {
        let (rows, inner) = match self.left_transposed {
            false => (self.left.rows, self.left.columns),
            true => (self.left.columns, self.left.rows),
        };
        let columns = if self.change.transposed { self.right.rows } else { self.right.columns };
        (rows, inner, columns)
    }

    fn size(&self) -> Size {
        let (rows, inner, columns) = self.shape();
        let items = self.pairs.groups * self.pairs.summed;
        Size { items, len: self.range.len().max(self.left.len.min(self.right.len)), rows, inner, columns }
    }

    /// A new array of the outputs, which is named `result` where it overflows; `finite` says of which groups that is an error.
    pub(super) fn owned(
        &self,
        result: &'static str,
        shape: &[usize],
        finite: impl Fn(usize) -> bool,
    ) -> Result<ArrayD<T>> {
        let (prepared, faults) = (self.prepare()?, Faults::default());
        let buffer = Buffer::new(elements::<T>(shape)?)?;
        let array = buffer.fill(shape, |out| prepared.write(Output::fresh(out), &faults));
        self.settings.check(faults, result, finite)?;
        Ok(array)
    }

    /// [`Triangle::owned`] in the caller's array.
    pub(super) fn write_into(
        &self,
        result: &'static str,
        out: ArrayViewMut<'_, T, impl Dimension>,
        finite: impl Fn(usize) -> bool,
    ) -> Result<()> {
        let (prepared, faults) = (self.prepare()?, Faults::default());
        let _: Filled = prepared.write(Output::array(out, Start::Zero), &faults);
        self.settings.check(faults, result, finite)
    }

    /// Copies what must lie differently: all that can fail.
    fn prepare(&self) -> Result<Prepared<'a, '_, T>> {
        let size = self.size();
        let lanes = match self.scaled {
            true => Lanes::Columns,
            false => self.settings.tuning.lanes::<T>(size, self.pairs.summed == 1 && self.pairs.groups > 1),
        };
        let change = Change {
            reversed: matches!(self.pairing, Pairing::Shift { .. }) && lanes == Lanes::Time,
            normalized: self.scaled,
            ..self.change
        };
        let right_items = self.right.items;
        // A batch is packed by the groups that compute it.
        let right = match lanes {
            Lanes::Batch => Right::new(Sequence { cells: &[], items: 0, ..self.right }, change, lanes, false)?,
            _ => Right::new(self.right, change, lanes, self.settings.tuning.parallel(size))?,
        };
        let (mut left, mut left_exponents, mut factorials) = (Cow::Borrowed(self.left.cells), Vec::new(), None);
        if self.scaled {
            let mut normalized = zeros::<T>(self.left.cells.len())?;
            normalized.copy_from_slice(self.left.cells);
            for matrix in normalized.chunks_exact_mut(self.left.matrix()) {
                let exponent = exponent_of(matrix);
                scale(matrix, -exponent);
                left_exponents.push(exponent);
            }
            left = Cow::Owned(normalized);
            factorials = Some(Factorials::new(self.pairing.most(self.left.len, self.right.len))?);
        }
        let (rows, left_items) = (size.rows, self.left.items);
        let mut prepared = Prepared {
            triangle: self,
            left,
            reversed: None,
            left_exponents,
            left_items,
            right,
            right_items,
            factorials,
            rows,
            lanes,
        };
        if prepared.is_of_numbers() && self.pairing.place_step() > 0 {
            let mut reversed = zeros::<T>(prepared.left.len())?;
            let items =
                reversed.chunks_exact_mut(self.left.len.max(1)).zip(prepared.left.chunks_exact(self.left.len.max(1)));
            items.for_each(|(to, from)| to.iter_mut().zip(from.iter().rev()).for_each(|(to, &x)| *to = x));
            prepared.reversed = Some(reversed);
        }
        Ok(prepared)
    }
}

impl<T: Real> Prepared<'_, '_, T> {
    /// Writes, or adds to, the outputs (groups, range, rows, columns).
    fn write(&self, out: Output<'_, T>, faults: &Faults) -> Filled {
        let (outputs, groups) = (self.triangle.range.len(), self.triangle.pairs.groups);
        if groups * outputs == 0 {
            return Filled::NOTHING;
        }
        let matrix = self.rows * self.right.columns;
        let parallel = self.triangle.settings.tuning.parallel(self.triangle.size());
        if self.lanes == Lanes::Batch {
            let tile = groups.div_ceil(TASKS).next_multiple_of(T::LANES);
            let cut = Cut { group: groups, tile, width: outputs * matrix, parallel };
            return for_each_tile(out, groups, &cut, &|_, groups, tile| self.batches(groups, tile, faults));
        }
        // Some tasks, of sums of very different lengths, and not so many that each one's scratch counts.
        let unit = match self.lanes {
            Lanes::Time if self.is_of_numbers() => block::<T>(),
            Lanes::Time => T::LANES,
            _ => 4,
        };
        let is_cut = self.triangle.settings.tuning.is_cut(self.triangle.size());
        let tile = if is_cut { outputs.div_ceil(TASKS).next_multiple_of(unit) } else { outputs };
        let cut = Cut { group: outputs, tile, width: matrix, parallel };
        for_each_tile(out, groups * outputs, &cut, &|group, outputs, tile| match self.lanes {
            Lanes::Time if self.is_of_numbers() => self.numbers(group, outputs, tile, faults),
            Lanes::Time => self.neighbors(group, outputs, tile, faults),
            _ => self.columns(group, outputs, tile, faults),
        })
    }

    /// Whether there are sequences of numbers, which are computed as [`Prepared::numbers`].
    fn is_of_numbers(&self) -> bool {
        let [rows, inner, columns] = [self.rows, self.right.inner, self.right.columns];
        self.lanes == Lanes::Time && [rows, inner, columns] == [1; 3] && self.triangle.binomials.is_none()
    }

    /// The left and right items of a group.
    pub(super) fn items(&self, group: usize) -> impl Iterator<Item = (usize, usize)> {
        let summed = self.triangle.pairs.summed;
        (group * summed..(group + 1) * summed).map(|pair| (pair % self.left_items, pair % self.right_items))
    }

    pub(super) fn left(&self, item: usize) -> &[T] {
        let cells = self.triangle.left.len * self.triangle.left.matrix();
        &self.left[item * cells..][..cells]
    }

    /// How a left matrix is read.
    fn left_steps(&self) -> (Left, [usize; 3]) {
        let left = &self.triangle.left;
        match self.triangle.left_transposed {
            false => (Left::Rows, [left.matrix(), left.columns, 1]),
            true => (Left::Columns, [left.matrix(), 1, left.columns]),
        }
    }

    /// Outputs one after another, lanes along columns.
    fn columns(&self, group: usize, outputs: Range<usize>, tile: &mut Tile<'_, T>, faults: &Faults) {
        let (triangle, right) = (self.triangle, &self.right);
        let line = right.line();
        let chunk = triangle.settings.tuning.chunk::<T>(triangle.size());
        let (kind, left_steps) = self.left_steps();
        let mut sums = vec![T::zero(); self.rows * line];
        let mut total = vec![T::zero(); if triangle.scaled { sums.len() } else { 0 }];
        let mut weights = Vec::with_capacity(triangle.binomials.map_or(0, |_| triangle.left.len * T::LANES));
        let cells = tile.accumulators();
        for (cells, output) in cells.chunks_exact_mut(self.rows * right.columns).zip(outputs) {
            let x = triangle.range.start + output;
            let mut continued = false;
            total.fill(T::zero());
            for (left_item, right_item) in self.items(group) {
                let (terms, _) = triangle.pairing.terms(x, 1, triangle.left.len, right.len);
                let exponent = self.weigh(x, (left_item, right_item), terms.clone(), &mut weights);
                for first in terms.clone().step_by(chunk) {
                    let right_index = triangle.pairing.right(x, first);
                    let job = Sums {
                        left: &self.left(left_item)[first * left_steps[0]..],
                        kind,
                        left_steps,
                        right: &right.cells[right_item * right.item()..],
                        right_at: right_index * right.inner * line,
                        right_step: triangle.pairing.step() * (right.inner * line) as isize,
                        right_steps: right.steps(),
                        rows: self.rows,
                        vectors: line / T::LANES,
                        inner: right.inner,
                        terms: chunk.min(terms.end - first),
                        weights: triangle.binomials.map(|_| Weighting {
                            cells: &weights,
                            at: (first - terms.start) * T::LANES,
                            step: T::LANES as isize,
                        }),
                    };
                    T::sums(triangle.settings.level, &job, continued, &mut sums);
                    continued = true;
                }
                if triangle.scaled && continued {
                    scale(&mut sums, exponent);
                    total.iter_mut().zip(&sums).for_each(|(total, &sum)| *total = *total + sum);
                    continued = false;
                }
            }
            let sums = if triangle.scaled {
                &total
            } else {
                if !continued {
                    sums.fill(T::zero());
                }
                &sums
            };
            for (cells, sums) in cells.chunks_exact_mut(right.columns).zip(sums.chunks_exact(line)) {
                faults.look(group, x, &sums[..right.columns]);
                cells.iter_mut().zip(sums).for_each(|(cell, &sum)| *cell = *cell + sum);
            }
        }
    }

    /// A vector of weights a term. With exponents apart, sums are to be taken times the power of two that is returned.
    fn weigh(&self, x: usize, items: (usize, usize), terms: Range<usize>, weights: &mut Vec<T>) -> i32 {
        weights.clear();
        let Some(binomials) = self.triangle.binomials else { return 0 };
        let Some(factorials) = &self.factorials else {
            let table = T::table();
            for j in terms {
                weights.extend(std::iter::repeat_n(binomials.weight(table, x, j), T::LANES));
            }
            return 0;
        };
        let (left, right) = (items.0 * self.triangle.left.len, items.1 * self.right.len);
        weigh_apart(
            terms.map(|j| {
                let (mantissa, exponent) = factorials.binomial(binomials.of(x, j));
                let right = self.right.exponents[right + self.triangle.pairing.right(x, j)];
                (mantissa, exponent + self.left_exponents[left + j] + right)
            }),
            weights,
        )
    }

    /// Neighbouring outputs, at most a vector of them, lanes along outputs.
    fn neighbors(&self, group: usize, outputs: Range<usize>, tile: &mut Tile<'_, T>, faults: &Faults) {
        let cells = tile.accumulators();
        let matrix = self.rows * self.right.columns;
        let mut sums = vec![T::zero(); matrix * T::LANES];
        // Strided memory may be cut elsewhere than tiles are.
        for (cells, first) in cells.chunks_mut(matrix * T::LANES).zip(outputs.step_by(T::LANES)) {
            let (x, lanes) = (self.triangle.range.start + first, cells.len() / matrix);
            sums.fill(T::zero());
            for items in self.items(group) {
                self.add_terms(items, (x, lanes), &(0..0), &mut sums);
            }
            for (lane, cells) in cells.chunks_exact_mut(matrix).enumerate() {
                for (cell, sums) in cells.iter_mut().zip(sums.chunks_exact(T::LANES)) {
                    faults.look(group, x + lane, &sums[lane..=lane]);
                    *cell = *cell + sums[lane];
                }
            }
        }
    }

    /// Adds the terms of neighbouring outputs x, so many of them, but for those of a range that all of them have.
    pub(super) fn add_terms(
        &self,
        (left_item, right_item): (usize, usize),
        (x, lanes): (usize, usize),
        without: &Range<usize>,
        sums: &mut [T],
    ) {
        let (triangle, right) = (self.triangle, &self.right);
        let (kind, left_steps) = self.left_steps();
        let (some, all) = triangle.pairing.terms(x, lanes, triangle.left.len, right.len);
        let job = |terms: &Range<usize>| {
            let place = triangle.pairing.place(x, terms.start, right.len);
            let job = Sums {
                left: &self.left(left_item)[terms.start * left_steps[0]..],
                kind,
                left_steps,
                right: &right.cells[right_item * right.item()..][..right.item()],
                right_at: LEAD.wrapping_add_signed(place),
                right_step: triangle.pairing.place_step(),
                right_steps: right.steps(),
                rows: self.rows,
                vectors: right.columns,
                inner: right.inner,
                terms: terms.len(),
                weights: triangle.binomials.map(|binomials| binomials.lanes(T::table(), x, terms.start)),
            };
            (job, place)
        };
        for edge in [some.start..all.start, all.end..some.end] {
            if !edge.is_empty() {
                let (job, place) = job(&edge);
                T::edge(triangle.settings.level, &job, place, right.len, sums);
            }
        }
        let parts = if without.is_empty() { [all, 0..0] } else { [all.start..without.start, without.end..all.end] };
        for terms in parts.iter().filter(|terms| !terms.is_empty()) {
            T::sums(triangle.settings.level, &job(terms).0, true, sums);
        }
    }

    /// Some groups, a vector of them at a time, lanes along them.
    fn batches(&self, groups: Range<usize>, tile: &mut Tile<'_, T>, faults: &Faults) {
        let (triangle, right) = (self.triangle, &self.right);
        let (left, matrix) = (&triangle.left, self.rows * right.columns);
        let right_matrix = right.inner * right.columns;
        let outputs = triangle.range.len();
        let mut lefts = vec![T::zero(); left.len * left.matrix() * T::LANES];
        let mut rights = vec![T::zero(); right.len * right_matrix * T::LANES];
        let mut sums = vec![T::zero(); outputs * matrix * T::LANES];
        let mut members = sums.clone();
        let mut weights = Vec::with_capacity(triangle.binomials.map_or(0, |_| left.len * T::LANES));
        let left_steps = match triangle.left_transposed {
            false => [left.matrix(), left.columns, 1],
            true => [left.matrix(), 1, left.columns],
        };
        let change = triangle.change;
        let inner_steps = if change.transposed { [1, right.inner] } else { [right.columns, 1] };
        let cells = tile.accumulators();
        for (cells, first) in cells.chunks_mut(T::LANES * outputs * matrix).zip(groups.clone().step_by(T::LANES)) {
            let last = groups.end.min(first + T::LANES);
            interleave(
                triangle.settings.level,
                (first..last).map(|group| self.left(group % self.left_items)),
                &mut lefts,
            );
            let skipped = change.skipped * right_matrix;
            let rest = |group: usize| &triangle.right.item(group % self.right_items)[skipped..];
            interleave(triangle.settings.level, (first..last).map(rest), &mut rights);
            if change.divided {
                for (i, matrix) in rights.chunks_exact_mut(right_matrix * T::LANES).enumerate() {
                    let divisor = number(i + 1);
                    matrix.iter_mut().for_each(|cell| *cell = *cell / divisor);
                }
            }
            for (output, sums) in sums.chunks_exact_mut(matrix * T::LANES).enumerate() {
                let x = triangle.range.start + output;
                let (terms, _) = triangle.pairing.terms(x, 1, left.len, right.len);
                self.weigh(x, (0, 0), terms.clone(), &mut weights);
                sums.fill(T::zero());
                if !terms.is_empty() {
                    let job = Sums {
                        left: &lefts[terms.start * left.matrix() * T::LANES..],
                        kind: Left::Vectors,
                        left_steps: left_steps.map(|step| step * T::LANES),
                        right: &rights,
                        right_at: triangle.pairing.right(x, terms.start) * right_matrix * T::LANES,
                        right_step: triangle.pairing.step() * (right_matrix * T::LANES) as isize,
                        right_steps: inner_steps.map(|step| step * T::LANES),
                        rows: self.rows,
                        vectors: right.columns,
                        inner: right.inner,
                        terms: terms.len(),
                        weights: triangle.binomials.map(|_| Weighting {
                            cells: &weights,
                            at: 0,
                            step: T::LANES as isize,
                        }),
                    };
                    T::sums(triangle.settings.level, &job, false, sums);
                }
            }
            T::deinterleave(triangle.settings.level, &sums, outputs * matrix, &mut members);
            let members = members.chunks_exact(outputs * matrix).zip(first..);
            for (cells, (sums, group)) in cells.chunks_exact_mut(outputs * matrix).zip(members) {
                for (output, sums) in sums.chunks_exact(matrix).enumerate() {
                    faults.look(group, triangle.range.start + output, sums);
                }
                cells.iter_mut().zip(sums).for_each(|(cell, &sum)| *cell = *cell + sum);
            }
        }
    }
}

/// A vector of weights for each of these numbers and powers of two, relative to the largest power, which is returned.
pub(super) fn weigh_apart<T: Real>(terms: impl Iterator<Item = (f64, i32)> + Clone, weights: &mut Vec<T>) -> i32 {
    let largest = terms.clone().map(|(_, exponent)| exponent).max().unwrap_or(0);
    for (mantissa, exponent) in terms {
        // Not 0, which would make a NaN of a product that is infinite.
        let weight = ldexp(mantissa, exponent - largest).max(f64::MIN_POSITIVE);
        let weight = T::from_f64(weight).expect("every f64 rounds to an element");
        weights.extend(std::iter::repeat_n(weight, T::LANES));
    }
    largest
}
