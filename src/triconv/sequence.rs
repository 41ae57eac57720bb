//! Sequences of matrices: as they come, and as the inner loops read the right factor of a product.

use super::kernels::{LEAD, number};
use super::tuning::Lanes;
use crate::Real;
use crate::error::Result;
use crate::exponent::{exponent, ldexp};
use crate::layout::zeros;
use rayon::prelude::*;
use std::borrow::Cow;

/// A batch of sequences of matrices, in row-major order: (items, len, rows, columns).
#[derive(Clone, Copy)]
pub(super) struct Sequence<'a, T> {
    pub(super) cells: &'a [T],
    pub(super) items: usize,
    pub(super) len: usize,
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl<'a, T: Real> Sequence<'a, T> {
    /// Cells of a matrix.
    pub(super) fn matrix(&self) -> usize {
        self.rows * self.columns
    }

    /// The sequence of one item.
    pub(super) fn item(&self, item: usize) -> &'a [T] {
        let cells = self.len * self.matrix();
        &self.cells[item * cells..][..cells]
    }
}

/// What becomes of the matrices of a sequence on their way into a [`Right`].
#[derive(Clone, Copy, Default)]
pub(super) struct Change {
    pub(super) transposed: bool,
    /// Of neighbouring outputs: the last matrix first.
    pub(super) reversed: bool,
    /// Matrices left out in front.
    pub(super) skipped: usize,
    /// Matrix i, counted without those that are left out, is divided by i + 1.
    pub(super) divided: bool,
    /// Every matrix is divided by a power of two, so that its largest entry is in 1..2.
    pub(super) normalized: bool,
}

/// The right factors of products, as vectors.
pub(super) struct Right<'a, T: Clone> {
    pub(super) cells: Cow<'a, [T]>,
    /// The powers of two of normalized matrices.
    pub(super) exponents: Vec<i32>,
    pub(super) lanes: Lanes,
    pub(super) len: usize,
    /// Rows of a matrix.
    pub(super) inner: usize,
    /// Columns of a matrix.
    pub(super) columns: usize,
}

impl<'a, T: Real> Right<'a, T> {
    /// Vectors along columns or along the sequence.
    pub(super) fn new(sequence: Sequence<'a, T>, change: Change, lanes: Lanes, parallel: bool) -> Result<Self> {
        let (inner, columns) = match change.transposed {
            false => (sequence.rows, sequence.columns),
            true => (sequence.columns, sequence.rows),
        };
        let len = sequence.len - change.skipped;
        let mut right = Self { cells: Cow::Borrowed(&[]), exponents: Vec::new(), lanes, len, inner, columns };
        let matrix = |index: usize| &sequence.cells[index * sequence.matrix()..][..sequence.matrix()];
        let first = |item: usize| item * sequence.len + change.skipped;
        let items = sequence.items;
        if change.normalized {
            right.exponents =
                (0..items * len).map(|index| exponent_of(matrix(first(index / len) + index % len))).collect();
        }
        let Change { transposed, reversed, divided, .. } = change;
        let value = |cells: &[T], i: usize, c: usize, column: usize| {
            let x = if transposed { cells[column * inner + c] } else { cells[c * columns + column] };
            if divided { x / number(i + 1) } else { x }
        };
        match lanes {
            Lanes::Time => {
                let line = right.line();
                let mut packed = zeros::<T>(items * right.item())?;
                let pack = |(item, packed): (usize, &mut [T])| {
                    for i in 0..len {
                        let (cells, place) = (matrix(first(item) + i), if reversed { len - 1 - i } else { i });
                        for c in 0..inner {
                            for column in 0..columns {
                                packed[(c * columns + column) * line + LEAD + place] = value(cells, i, c, column);
                            }
                        }
                    }
                };
                for_each_chunk(&mut packed, right.item(), parallel, pack);
                right.cells = Cow::Owned(packed);
            }
            _ if !transposed
                && !divided
                && !change.normalized
                && change.skipped == 0
                && columns.is_multiple_of(T::LANES) =>
            {
                right.cells = Cow::Borrowed(sequence.cells);
            }
            _ => {
                let line = right.line();
                let mut packed = zeros::<T>(items * right.item())?;
                let pack = |(index, packed): (usize, &mut [T])| {
                    let cells = matrix(first(index / len) + index % len);
                    for (c, row) in packed.chunks_exact_mut(line).enumerate() {
                        for (column, cell) in row[..columns].iter_mut().enumerate() {
                            *cell = value(cells, index % len, c, column);
                        }
                    }
                    if let Some(&exponent) = right.exponents.get(index) {
                        scale(packed, -exponent);
                    }
                };
                for_each_chunk(&mut packed, inner * line, parallel, pack);
                right.cells = Cow::Owned(packed);
            }
        }
        Ok(right)
    }

    /// Cells of a line of vectors: the columns of a row, or an element's sequence.
    pub(super) fn line(&self) -> usize {
        match self.lanes {
            Lanes::Time => LEAD + self.len + LEAD,
            _ => self.columns.next_multiple_of(T::LANES),
        }
    }

    /// Cells of an item.
    pub(super) fn item(&self) -> usize {
        match self.lanes {
            Lanes::Time => self.inner * self.columns * self.line(),
            _ => self.len * self.inner * self.line(),
        }
    }

    /// From an inner index to the next, and from a vector.
    pub(super) fn steps(&self) -> [usize; 2] {
        match self.lanes {
            Lanes::Time => [self.columns * self.line(), self.line()],
            _ => [self.line(), T::LANES],
        }
    }
}

/// Fills in the chunks of `cells`, on several threads if `parallel`.
pub(super) fn for_each_chunk<T: Real>(
    cells: &mut [T],
    chunk: usize,
    parallel: bool,
    fill: impl Fn((usize, &mut [T])) + Sync + Send,
) {
    if parallel {
        cells.par_chunks_mut(chunk.max(1)).enumerate().for_each(fill);
    } else {
        cells.chunks_mut(chunk.max(1)).enumerate().for_each(fill);
    }
}

/// The exponent of a matrix that has no part in a sum: far below all others.
const OF_ZERO: i32 = -(1 << 20);

/// The exponent of the largest finite entry.
pub(super) fn exponent_of<T: Real>(cells: &[T]) -> i32 {
    let largest = cells.iter().filter(|x| x.is_finite()).fold(T::zero(), |most, x| most.max(x.abs()));
    if largest == T::zero() { OF_ZERO } else { exponent(largest.to_f64().expect("a float is an f64")) }
}

/// Every cell times a power of two.
pub(super) fn scale<T: Real>(cells: &mut [T], power: i32) {
    for cell in cells {
        *cell = T::from_f64(ldexp(cell.to_f64().expect("a float is an f64"), power))
            .expect("every f64 rounds to an element");
    }
}
