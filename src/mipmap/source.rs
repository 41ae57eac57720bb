//! What a grid is made from, as rows of bits.

use super::bricks::Cell;
use super::nonzero::Voxel;
use crate::Real;
use crate::error::{Error, Result};
use crate::simd::Level;
use bitvec::domain::Domain;
use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;
use ndarray::{ArrayView3, s};
use std::borrow::Cow;
use std::ops::Range;

/// An array of shape (X, Y, Z) whose rows can be had as bits.
pub(super) trait Source: Sync {
    fn shape(&self) -> Cell;

    /// Packs the rows `rows` of plane `x`, one behind the other, each in whole words with zeros behind its cells.
    fn pack(&self, level: Level, x: usize, rows: Range<usize>, out: &mut [u64]);

    /// Bytes of the array.
    fn bytes(&self) -> usize;
}

/// Packs rows of an array of any strides by `pack`, which takes rows that lie one behind the other.
fn pack_array<T: Copy>(
    array: &ArrayView3<'_, T>,
    x: usize,
    rows: Range<usize>,
    out: &mut [u64],
    pack: impl Fn(&[T], &mut [u64]),
) {
    let part = array.slice(s![x, rows, ..]);
    if let Some(cells) = part.as_slice() {
        return pack(cells, out);
    }
    let mut copy = Vec::new();
    for (row, out) in part.outer_iter().zip(out.chunks_exact_mut(array.dim().2.div_ceil(64))) {
        if let Some(cells) = row.as_slice() {
            pack(cells, out);
        } else {
            copy.clear();
            copy.extend(row.iter().copied());
            pack(&copy, out);
        }
    }
}

/// Occupied above a threshold.
pub(super) struct Above<'a, T> {
    pub array: ArrayView3<'a, T>,
    pub threshold: T,
}

impl<T: Real> Source for Above<'_, T> {
    fn shape(&self) -> Cell {
        self.array.dim().into()
    }

    fn pack(&self, level: Level, x: usize, rows: Range<usize>, out: &mut [u64]) {
        let width = self.array.dim().2;
        pack_array(&self.array, x, rows, out, |cells, out| T::pack_above(level, cells, width, self.threshold, out));
    }

    fn bytes(&self) -> usize {
        self.array.len().saturating_mul(size_of::<T>())
    }
}

/// Occupied where not 0.
pub(super) struct Nonzero<'a, V> {
    pub array: ArrayView3<'a, V>,
}

impl<V: Voxel> Source for Nonzero<'_, V> {
    fn shape(&self) -> Cell {
        self.array.dim().into()
    }

    fn pack(&self, level: Level, x: usize, rows: Range<usize>, out: &mut [u64]) {
        let width = self.array.dim().2;
        pack_array(&self.array, x, rows, out, |cells, out| V::pack(level, cells, width, out));
    }

    fn bytes(&self) -> usize {
        self.array.len().saturating_mul(size_of::<V>())
    }
}

/// Rows of bits, each starting on a word.
pub(super) struct Bits<'a> {
    words: Cow<'a, [u64]>,
    shape: Cell,
}

impl<'a> Bits<'a> {
    pub fn new(rows: &'a BitSlice<u64, Lsb0>, shape: Cell) -> Result<Self> {
        let bits =
            shape[2].div_ceil(64).checked_mul(64).and_then(|row| shape[0].checked_mul(shape[1])?.checked_mul(row));
        if bits != Some(rows.len()) {
            return Err(Error::Shape {
                argument: "rows",
                found: vec![rows.len()],
                expected: vec![bits.unwrap_or(usize::MAX)],
            });
        }
        let words = match rows.domain() {
            Domain::Region { head: None, body, tail: None } => Cow::Borrowed(body),
            // The slice starts within a word.
            _ => Cow::Owned(rows.chunks(64).map(bitvec::field::BitField::load_le).collect()),
        };
        Ok(Self { words, shape })
    }
}

impl Source for Bits<'_> {
    fn shape(&self) -> Cell {
        self.shape
    }

    fn pack(&self, _: Level, x: usize, rows: Range<usize>, out: &mut [u64]) {
        let [_, height, width] = self.shape;
        let words = width.div_ceil(64);
        out.copy_from_slice(&self.words[(x * height + rows.start) * words..][..rows.len() * words]);
        if !width.is_multiple_of(64) {
            out.chunks_exact_mut(words).for_each(|row| row[words - 1] &= !0 >> (64 - width % 64));
        }
    }

    fn bytes(&self) -> usize {
        8 * self.words.len()
    }
}
