//! Changes. The levels above follow, brick by brick of what was changed.

use super::bricks::Cell;
use super::cut;
use super::level_view::check_cell;
use super::nonzero::Voxel;
use super::pyramid::Pyramid;
use super::query::check_box;
use super::source::{Above, Bits, Nonzero, Source};
use crate::Real;
use crate::error::{Error, Result};
use bitvec::order::Lsb0;
use bitvec::slice::BitSlice;
use ndarray::ArrayView3;
use rayon::prelude::*;

impl Pyramid {
    /// Occupies a cell of level 0. O(log n).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`] where there is no such cell.
    pub fn set(&mut self, mut cell: [usize; 3]) -> Result<()> {
        check_cell(cell, self.shape())?;
        for bricks in &mut self.tree {
            let (word, bit) = bricks.frame.place(cell);
            cell = [0, 1, 2].map(|axis| cell[axis] >> bricks.frame.log[axis]);
            let word = &mut bricks.words_mut()[word];
            let was_occupied = *word != 0;
            *word |= 1 << bit;
            if was_occupied {
                break;
            }
        }
        Ok(())
    }

    /// Empties a cell of level 0. O(log n).
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`] where there is no such cell.
    pub fn clear(&mut self, mut cell: [usize; 3]) -> Result<()> {
        check_cell(cell, self.shape())?;
        for bricks in &mut self.tree {
            let (word, bit) = bricks.frame.place(cell);
            cell = [0, 1, 2].map(|axis| cell[axis] >> bricks.frame.log[axis]);
            let word = &mut bricks.words_mut()[word];
            *word &= !(1 << bit);
            if *word != 0 {
                break;
            }
        }
        Ok(())
    }

    /// Occupies or empties the cells from `lo` to before `hi`. O(cells / 64).
    ///
    /// # Errors
    ///
    /// [`Error::Box`] where the box is not one of the grid.
    pub fn set_box(&mut self, lo: [usize; 3], hi: [usize; 3], occupied: bool) -> Result<()> {
        if !check_box(lo, hi, self.shape())? {
            return Ok(());
        }
        let bricks = &mut self.tree[0];
        let frame = bricks.frame;
        let (first, end) = frame.bricks_of(lo, hi);
        let plane = frame.grid[1] * frame.grid[2];
        let slabs = bricks.words_mut()[first[0] * plane..end[0] * plane].par_chunks_mut(plane);
        let changed = (end[1] - first[1]) * (end[2] - first[2]);
        slabs.enumerate().with_min_len((1usize << 14).div_ceil(changed)).for_each(|(slab, words)| {
            for y in first[1]..end[1] {
                for z in first[2]..end[2] {
                    let mask = frame.mask([first[0] + slab, y, z], lo, hi);
                    let word = &mut words[y * frame.grid[2] + z];
                    *word = if occupied { *word | mask } else { *word & !mask };
                }
            }
        });
        self.raise_box(lo, hi);
        Ok(())
    }

    /// Makes the cells of a box again, from `lo` and of the shape of `array`: occupied where it is above `threshold`. The
    /// pyramid is that of a build from the whole changed array. O(cells).
    ///
    /// # Errors
    ///
    /// [`Error::Box`] where the box is not one of the grid.
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::mipmap::Pyramid;
    /// use pullback::ndarray::{Array3, s};
    ///
    /// let mut density = Array3::<f32>::zeros((40, 40, 40));
    /// let mut pyramid = Pyramid::from_threshold(density.view(), 0.5)?;
    /// density.slice_mut(s![3..9, 11..30, 5..6]).fill(1.0);
    /// pyramid.update([3, 11, 5], density.slice(s![3..9, 11..30, 5..6]), 0.5)?;
    /// assert_eq!(pyramid, Pyramid::from_threshold(density.view(), 0.5)?);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn update<T: Real>(&mut self, lo: [usize; 3], array: ArrayView3<'_, T>, threshold: T) -> Result<()> {
        self.replace(lo, &Above { array, threshold })
    }

    /// [`Pyramid::update`] from an array that is occupied where it is not 0.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::update`].
    pub fn update_nonzero<V: Voxel>(&mut self, lo: [usize; 3], array: ArrayView3<'_, V>) -> Result<()> {
        self.replace(lo, &Nonzero { array })
    }

    /// [`Pyramid::update`] from packed rows of a box of `shape`, as in [`Pyramid::from_bits`].
    ///
    /// # Errors
    ///
    /// As [`Pyramid::update`], and [`Error::Shape`] where there are more or fewer bits.
    pub fn update_bits(&mut self, lo: [usize; 3], rows: &BitSlice<u64, Lsb0>, shape: [usize; 3]) -> Result<()> {
        let bits = Bits::new(rows, shape)?;
        self.replace(lo, &bits)
    }

    fn replace(&mut self, lo: Cell, source: &impl Source) -> Result<()> {
        let shape = source.shape();
        let hi = [0, 1, 2].map(|axis| lo[axis].saturating_add(shape[axis]));
        if check_box(lo, hi, self.shape())? {
            cut::write_box(&mut self.tree[0], lo, source, self.level, self.tuning);
            self.raise_box(lo, hi);
        }
        Ok(())
    }

    /// Occupies what `other` has occupied, too.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where the shapes differ.
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::mipmap::{Connectivity, Pyramid};
    ///
    /// let mut a = Pyramid::empty([20, 30, 40])?;
    /// a.set_box([5, 5, 5], [10, 10, 10], true)?;
    /// let mut shell = a.dilate(Connectivity::Six)?;
    /// shell.and_not_with(&a)?;
    /// assert_eq!(shell.level(0)?.count(), 6 * 25);
    /// shell.or_with(&a)?;
    /// assert_eq!(shell.erode(Connectivity::Six)?, a);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn or_with(&mut self, other: &Self) -> Result<()> {
        self.combine(other, |a, b| a | b)
    }

    /// Keeps what `other` has occupied.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::or_with`].
    pub fn and_with(&mut self, other: &Self) -> Result<()> {
        self.combine(other, |a, b| a & b)
    }

    /// Empties what `other` has occupied.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::or_with`].
    pub fn and_not_with(&mut self, other: &Self) -> Result<()> {
        self.combine(other, |a, b| a & !b)
    }

    /// Keeps what is occupied in one of both.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::or_with`].
    pub fn xor_with(&mut self, other: &Self) -> Result<()> {
        self.combine(other, |a, b| a ^ b)
    }

    fn combine(&mut self, other: &Self, of: impl Fn(u64, u64) -> u64 + Sync) -> Result<()> {
        if self.shape() != other.shape() {
            let (found, expected) = (other.shape().to_vec(), self.shape().to_vec());
            return Err(Error::Shape { argument: "other", found, expected });
        }
        let others = other.tree[0].words().par_chunks(1 << 14);
        self.tree[0].words_mut().par_chunks_mut(1 << 14).zip(others).for_each(|(words, others)| {
            words.iter_mut().zip(others).for_each(|(word, &other)| *word = of(*word, other));
        });
        self.raise();
        Ok(())
    }
}
