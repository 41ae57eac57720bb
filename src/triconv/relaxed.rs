//! Scans by blocks: what the results of a finished block give to the outputs of a later one is a convolution of known
//! sequences, and long ones go through spectra.
//!
//! Blocks are halved down to a few results, which are computed one after another. Between the halves, the first gives
//! all that it has to the second: n / 2 terms to n / 2 outputs, then twice half as many of each, and so on, where a
//! transform does each in O(n log n) instead of O(n^2).
//!
//! A transform is as precise as the largest numbers of a block, not as each sum of its own. So each pair of blocks is
//! judged: when geometric decay is levelled, a bound of the error of the transforms, against a few of the products that an
//! output is the sum of, by magnitude. That is less than all of them. Pairs that do not pass are quartered, and pairs of the
//! shortest blocks summed directly.

use super::kernels::{Divide, LEAD, Left, Sums, number};
use super::recurrence::Recurrence;
use super::sequence::Right;
use super::spectra::{Entries, Space, Transform, Window};
use super::tuning::{Lanes, Tuning};
use crate::Real;
use crate::error::Result;
use crate::layout::zeros;
use realfft::RealFftPlanner;
use std::ops::Range;
use std::sync::OnceLock;

/// Consecutive terms by whose magnitudes the outputs of a pair of blocks are judged.
const WITNESSES: usize = 4;

/// What a relaxed scan has beside a direct one.
pub(super) struct Relaxed<T> {
    tolerance: f64,
    /// Results that are computed one after another, a power of two.
    leaf: usize,
    /// Of right factors, as these lie.
    magnitudes: Vec<T>,
    /// Of pairs of blocks of `leaf`, twice as many, and so on.
    halvings: Vec<Halving>,
}

/// The pairs of blocks of one length.
struct Halving {
    transform: Transform,
    /// Windows of right factors of an item.
    count: usize,
    /// Of each item, made when they are first asked for.
    windows: Vec<OnceLock<Window>>,
}

impl<T: Real> Relaxed<T> {
    /// Nothing if a scan is too short for two blocks.
    pub(super) fn new(right: &Right<'_, T>, items: usize, tolerance: f64, tuning: Tuning) -> Result<Option<Self>> {
        let (leaf, len) = (tuning.leaf(), right.len + 1);
        if len <= leaf || items == 0 {
            return Ok(None);
        }
        let mut magnitudes = zeros::<T>(right.cells.len())?;
        magnitudes.iter_mut().zip(&*right.cells).for_each(|(magnitude, x)| *magnitude = x.abs());
        let mut planner = RealFftPlanner::new();
        let halves = std::iter::successors(Some(leaf), |half| half.checked_mul(2)).take_while(|&half| half < len);
        let halvings = halves.map(|half| {
            let count = len.div_ceil(half) - 1;
            let windows = (0..items * count).map(|_| OnceLock::new()).collect();
            Halving { transform: Transform::new(&mut planner, half), count, windows }
        });
        Ok(Some(Self { tolerance, leaf, magnitudes, halvings: halvings.collect() }))
    }

    /// Some rows of an item: `results` (n + 1, rows, m), which hold S.
    pub(super) fn run(&self, scan: &Recurrence<'_, T>, item: usize, rows: usize, results: &mut [T]) {
        let (m, largest) = (scan.size.inner, self.halvings.last().expect("at least two blocks"));
        let factors = scan.factors(rows * m, results);
        let width = if scan.right.lanes == Lanes::Time { T::LANES } else { 1 };
        let mut run = Run {
            scan,
            relaxed: self,
            item: item % scan.given.items,
            rows,
            width,
            pending: vec![T::zero(); results.len()],
            results,
            factors,
            sums: vec![T::zero(); rows * if width == 1 { scan.right.line() } else { m * T::LANES }],
            space: Space::new(&largest.transform, [rows, m, m]),
        };
        run.block(self.halvings.len(), 0);
    }
}

/// Some rows of an item, on their way.
struct Run<'r, 'a, T: Clone> {
    scan: &'r Recurrence<'a, T>,
    relaxed: &'r Relaxed<T>,
    item: usize,
    rows: usize,
    /// Outputs that are summed at a time.
    width: usize,
    /// Sums of the terms that outputs have got so far.
    pending: Vec<T>,
    results: &'r mut [T],
    /// What later sums take instead of results, if not them.
    factors: Vec<T>,
    sums: Vec<T>,
    space: Space,
}

impl<T: Real> Run<'_, '_, T> {
    /// Cells of a matrix.
    fn matrix(&self) -> usize {
        self.rows * self.scan.size.inner
    }

    /// Computes block `at` of those of `leaf << halvings` results.
    fn block(&mut self, halvings: usize, at: usize) {
        let len = self.scan.size.len + 1;
        let Some(below) = halvings.checked_sub(1) else {
            let first = at * self.relaxed.leaf;
            return self.settle(first..len.min(first + self.relaxed.leaf));
        };
        self.block(below, 2 * at);
        if (2 * at + 1) * (self.relaxed.leaf << below) < len {
            self.give(below, 2 * at, 2 * at + 1);
            self.block(below, 2 * at + 1);
        }
    }

    /// Adds what block `from` gives to block `to`.
    fn give(&mut self, halvings: usize, from: usize, to: usize) {
        let half = self.relaxed.leaf << halvings;
        let outputs = to * half..(self.scan.size.len + 1).min((to + 1) * half);
        // Of the last block there may be a few outputs only.
        if outputs.is_empty() || 2 * outputs.len() > half && self.transform(halvings, from, outputs.clone()) {
            return;
        }
        match halvings.checked_sub(1) {
            None => self.add(from * half..(from + 1) * half, outputs),
            Some(below) => {
                for (from, to) in [(0, 0), (1, 0), (0, 1), (1, 1)].map(|(f, t)| (2 * from + f, 2 * to + t)) {
                    self.give(below, from, to);
                }
            }
        }
    }

    /// [`Self::give`] through spectra, if that is as precise as it must be.
    fn transform(&mut self, halvings: usize, from: usize, outputs: Range<usize>) -> bool {
        let (half, matrix, m) = (self.relaxed.leaf << halvings, self.matrix(), self.scan.size.inner);
        let relaxed = self.relaxed;
        let halving = &relaxed.halvings[halvings];
        let skipped = outputs.start - (from + 1) * half;
        let window = halving.windows[self.item * halving.count + skipped / half].get_or_init(|| {
            let right = &self.scan.right;
            let at = self.item * right.item();
            let (matrices, entries) = ((2 * half).min(right.len - skipped), m * m);
            let (cells, line) = (&right.cells[..], right.line());
            match right.lanes {
                Lanes::Time => {
                    let (at, offset) = (at + LEAD + skipped, |e: usize| e * line);
                    halving.transform.window(&Entries { cells, at, step: 1, offset, matrices, entries })
                }
                _ => {
                    let (at, offset) = (at + skipped * m * line, |e: usize| e / m * line + e % m);
                    halving.transform.window(&Entries { cells, at, step: m * line, offset, matrices, entries })
                }
            }
        });
        let levelling = &window.levelling[half - 1..];
        let allowed = self.allowed(from * half..(from + 1) * half, outputs.clone(), levelling);
        let cells = if self.factors.is_empty() { &*self.results } else { &self.factors };
        let (at, step, offset) = (from * half * matrix, matrix, |e: usize| e);
        let left = Entries { cells, at, step, offset, matrices: half, entries: matrix };
        let (shape, level) = ([self.rows, m, m], self.scan.level);
        let done = halving.transform.multiply(&left, window, shape, &allowed, level, &mut self.space);
        if done {
            let pending = &mut self.pending[outputs.start * matrix..outputs.end * matrix];
            for (pending, &x) in pending.iter_mut().zip(&self.space.outputs) {
                *pending = *pending + T::from_f64(x).expect("every f64 rounds to an element");
            }
        }
        done
    }

    /// The error that each entry may have in all outputs of a pair of blocks, levelled: the tolerance times some of the terms.
    fn allowed(&mut self, from: Range<usize>, outputs: Range<usize>, levelling: &[f64]) -> Vec<f64> {
        let (matrix, width, m) = (self.matrix(), self.width, self.scan.size.inner);
        let left = if self.factors.is_empty() { &*self.results } else { &self.factors };
        // Where they are largest.
        let largest = |x: &usize| {
            let cells = &left[x * matrix..(x + WITNESSES.min(from.end - x)) * matrix];
            cells.iter().fold(T::zero(), |most, x| if x.abs() > most { x.abs() } else { most })
        };
        let mut first = from.start;
        let mut most = largest(&first);
        for x in from.clone().step_by(WITNESSES).skip(1) {
            let other = largest(&x);
            if other > most {
                (first, most) = (x, other);
            }
        }
        let terms = first..from.end.min(first + WITNESSES);
        let left: Vec<T> = left[terms.start * matrix..terms.end * matrix].iter().map(|x| x.abs()).collect();
        let most = T::max_value().to_f64().expect("a float is an f64");
        let mut least = vec![f64::INFINITY; matrix];
        for (x, levels) in outputs.clone().step_by(width).zip(levelling.chunks(width)) {
            let job = sums_of(self.scan, self.item, self.rows, (&left, &self.relaxed.magnitudes), x, terms.clone());
            T::sums(self.scan.level, &job, false, &mut self.sums);
            let levels = &levels[..width.min(outputs.end - x)];
            let per_row = self.sums.len() / self.rows;
            for (least, sums) in least.chunks_exact_mut(m).zip(self.sums.chunks_exact(per_row)) {
                for (least, sums) in least.iter_mut().zip(sums.chunks_exact(width)) {
                    for (sum, level) in sums.iter().zip(levels) {
                        *least = least.min(sum.to_f64().expect("a float is an f64").min(most) * level);
                    }
                }
            }
        }
        // Less what sums of a few terms, and powers that outputs are levelled by, are rounded by.
        let tolerance = 0.9 * (self.relaxed.tolerance - 8.0 * f64::EPSILON);
        least.iter().map(|least| tolerance * least).collect()
    }

    /// [`Self::give`] term by term.
    fn add(&mut self, from: Range<usize>, outputs: Range<usize>) {
        for x in outputs.clone().step_by(self.width) {
            let lanes = self.width.min(outputs.end - x);
            self.sum(x, lanes, from.clone());
            let (width, m, matrix) = (self.width, self.scan.size.inner, self.matrix());
            let per_row = self.sums.len() / self.rows;
            for (row, sums) in self.sums.chunks_exact(per_row).enumerate() {
                for (c, sums) in sums.chunks_exact(width).take(m).enumerate() {
                    for (lane, &sum) in sums[..lanes].iter().enumerate() {
                        self.pending[(x + lane) * matrix + row * m + c] = sum;
                    }
                }
            }
        }
    }

    /// Sums of what outputs have got and of more terms.
    fn sum(&mut self, x: usize, lanes: usize, terms: Range<usize>) {
        let (width, m, matrix) = (self.width, self.scan.size.inner, self.matrix());
        let per_row = self.sums.len() / self.rows;
        for (row, sums) in self.sums.chunks_exact_mut(per_row).enumerate() {
            for (c, sums) in sums.chunks_exact_mut(width).take(m).enumerate() {
                for (lane, sum) in sums[..lanes].iter_mut().enumerate() {
                    *sum = self.pending[(x + lane) * matrix + row * m + c];
                }
            }
        }
        if terms.is_empty() {
            return;
        }
        let left = if self.factors.is_empty() { &*self.results } else { &self.factors };
        let factors = (&left[terms.start * matrix..], &self.scan.right.cells[..]);
        let job = sums_of(self.scan, self.item, self.rows, factors, x, terms);
        T::sums(self.scan.level, &job, true, &mut self.sums);
    }

    /// Results of a block that has got all from those before.
    fn settle(&mut self, block: Range<usize>) {
        let (scan, matrix, m) = (self.scan, self.matrix(), self.scan.size.inner);
        let right = &scan.right.cells[self.item * scan.right.item()..][..scan.right.item()];
        for x in (block.start.max(1)..block.end).step_by(self.width) {
            let lanes = self.width.min(block.end - x);
            self.sum(x, lanes, block.start..x);
            if self.width > 1 {
                scan.settle(right, self.rows, (x - 1, lanes), &mut self.sums, self.results, &mut self.factors);
                continue;
            }
            let (result, divisor) = (&mut self.results[x * matrix..][..matrix], scan.divisor(x));
            for (cells, sums) in result.chunks_exact_mut(m).zip(self.sums.chunks_exact(scan.right.line())) {
                cells.iter_mut().zip(sums).for_each(|(cell, &sum)| *cell = *cell + sum / divisor);
            }
            if let Divide::Factors { last } = scan.divide {
                let divisor = number((last - x).max(1));
                let factors = &mut self.factors[x * matrix..][..matrix];
                factors.iter_mut().zip(&*result).for_each(|(factor, &x)| *factor = x / divisor);
            }
        }
    }
}

/// The sums of some terms in outputs from `x`, of left factors from the first of them.
fn sums_of<'j, T: Real>(
    scan: &Recurrence<'_, T>,
    item: usize,
    rows: usize,
    (left, right): (&'j [T], &'j [T]),
    x: usize,
    terms: Range<usize>,
) -> Sums<'j, T> {
    let (m, line, apart) = (scan.size.inner, scan.right.line(), x - 1 - terms.start);
    let (right_at, right_step, vectors) = match scan.right.lanes {
        Lanes::Time => (LEAD + apart, -1, m),
        _ => (apart * m * line, -((m * line) as isize), line / T::LANES),
    };
    Sums {
        left,
        kind: Left::Rows,
        left_steps: [rows * m, m, 1],
        right: &right[item * scan.right.item()..][..scan.right.item()],
        right_at,
        right_step,
        right_steps: scan.right.steps(),
        rows,
        vectors,
        inner: m,
        terms: terms.len(),
        weights: None,
    }
}
