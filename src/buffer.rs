//! Outputs: memory that is written once, tile by tile.
//!
//! A fresh output of a hundred megabytes costs more in page faults than in copying, and zeroing it first costs a second
//! pass over memory. So an owned output is a [`Buffer`]: uninitialised, 64-byte aligned, on huge pages where the system
//! gives them. Kernels never see its cells, only a [`Tile`], a cursor that moves over them as it writes and is checked
//! to have reached the end. The same cursor serves a caller's own array, to overwrite it or to add to it.
#![allow(unsafe_code)]

use crate::element::Element;
use crate::error::{Error, Result};
use crate::simd::{Simd, Vector, fence, stream_slice};
use bytemuck::Pod;
use ndarray::{Array, Array1, ArrayViewMut, ArrayViewMutD, Axis, Dimension, IxDyn, s};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Outputs larger than this many bytes are written past the caches: about the size of a last-level cache, where reading
/// the output back from cache stops being possible and reading it before writing costs a third of the bandwidth.
pub(crate) const STREAM_BYTES: usize = 32 << 20;

/// Owned outputs are aligned to a cache line.
const ALIGNMENT: usize = 64;

/// Outputs of at least two huge pages ask for them.
#[cfg(unix)]
const HUGE_PAGE: usize = 2 << 20;

/// An owned output that is still being written.
pub(crate) struct Buffer<T> {
    /// Empty, with room for `offset` elements of padding and `len` of output.
    memory: Vec<T>,
    offset: usize,
    len: usize,
}

impl<T: Pod> Buffer<T> {
    pub(crate) fn new(len: usize) -> Result<Self> {
        let padding = ALIGNMENT / size_of::<T>();
        let bytes = len.saturating_add(padding).saturating_mul(size_of::<T>());
        let mut memory: Vec<T> = Vec::new();
        memory.try_reserve_exact(len.saturating_add(padding)).map_err(|_| Error::Allocation { bytes })?;
        // The allocator aligns to an element at least, so the offset is at most `padding - 1`.
        let offset = memory.as_ptr().align_offset(ALIGNMENT);
        let mut buffer = Self { memory, offset, len };
        advise_huge_pages(buffer.cells());
        Ok(buffer)
    }

    /// The cells, to be written.
    pub(crate) fn cells(&mut self) -> &mut [MaybeUninit<T>] {
        &mut self.memory.spare_capacity_mut()[self.offset..][..self.len]
    }

    /// Writes the whole buffer through `write` and hands it over as an array of `shape`.
    pub(crate) fn fill<D: Dimension>(
        mut self,
        shape: &[usize],
        write: impl FnOnce(&mut [MaybeUninit<T>]) -> Filled,
    ) -> Array<T, D> {
        let filled = write(self.cells());
        self.finish(filled, shape)
    }

    /// The buffer, which `filled` says is written, as an array of `shape`.
    pub(crate) fn finish<D: Dimension>(self, filled: Filled, shape: &[usize]) -> Array<T, D> {
        assert_eq!(filled.0, self.len, "every cell of an output is written");
        self.written(shape)
    }

    /// [`Buffer::fill`] of two buffers at once.
    pub(crate) fn fill_both<U: Pod, D: Dimension, E: Dimension>(
        mut self,
        mut other: Buffer<U>,
        shapes: [&[usize]; 2],
        write: impl FnOnce(&mut [MaybeUninit<T>], &mut [MaybeUninit<U>]) -> Filled,
    ) -> (Array<T, D>, Array<U, E>) {
        let filled = write(self.cells(), other.cells());
        finish_both(self, other, filled, shapes)
    }

    /// The buffer as an array of `shape`; its cells have been counted as written.
    fn written<D: Dimension>(mut self, shape: &[usize]) -> Array<T, D> {
        self.memory.spare_capacity_mut()[..self.offset].fill(MaybeUninit::new(T::zeroed()));
        // SAFETY: the padding was just written, and the `len` cells behind it: a `Filled` is made only by writers that
        // reached their ends, and counts their cells. It is this buffer's, since a call fills the buffers that it made.
        unsafe { self.memory.set_len(self.offset + self.len) };
        Array1::from_vec(self.memory)
            .slice_move(s![self.offset..])
            .into_shape_with_order(IxDyn(shape))
            .and_then(Array::into_dimensionality)
            .expect("the buffer was sized from this shape")
    }
}

/// [`Buffer::finish`] of two buffers that were filled together.
pub(crate) fn finish_both<T: Pod, U: Pod, D: Dimension, E: Dimension>(
    first: Buffer<T>,
    second: Buffer<U>,
    filled: Filled,
    shapes: [&[usize]; 2],
) -> (Array<T, D>, Array<U, E>) {
    // Tiles are disjoint, so a sum that is full leaves no cell of either unwritten.
    assert_eq!(filled.0, first.len + second.len, "every cell of both outputs is written");
    (first.written(shapes[0]), second.written(shapes[1]))
}

/// The memory behind an output, of any strides.
enum Cells<'a, T> {
    /// In row-major order; initialised where [`Start::Values`] says so.
    Dense(&'a mut [MaybeUninit<T>]),
    /// Anything else. The last axis is a row.
    Strided(ArrayViewMutD<'a, T>),
}

/// An output as rows in row-major order of the leading axes, to be split between tasks.
pub(crate) struct Output<'a, T> {
    cells: Cells<'a, T>,
    start: Start,
}

impl<'a, T: Pod + Send + Sync> Output<'a, T> {
    /// The cells of a [`Buffer`].
    pub(crate) fn fresh(cells: &'a mut [MaybeUninit<T>]) -> Self {
        Self { cells: Cells::Dense(cells), start: Start::Zero }
    }

    /// A caller's array.
    pub(crate) fn array<D: Dimension>(mut view: ArrayViewMut<'a, T, D>, start: Start) -> Self {
        let cells = if view.is_standard_layout() {
            let (cells, len) = (view.as_mut_ptr().cast::<MaybeUninit<T>>(), view.len());
            // SAFETY: a standard layout is `len` elements in a row, borrowed for 'a by the view, which ends here. Whoever
            // has the cells could write uninitialised memory through them: only `Tile` does write, and it writes values.
            Cells::Dense(unsafe { std::slice::from_raw_parts_mut(cells, len) })
        } else {
            Cells::Strided(view.into_dyn())
        };
        Self { cells, start }
    }

    /// Runs a kernel on the whole of this output as one tile. Strided cells are computed in a dense copy.
    pub(crate) fn write(self, kernel: impl FnOnce(&mut Tile<'_, T>)) -> Filled {
        match self.cells {
            Cells::Dense(cells) => {
                let mut tile = Tile { cells, at: 0, start: self.start };
                kernel(&mut tile);
                tile.finish()
            }
            Cells::Strided(mut view) => {
                let mut dense: Vec<T> = match self.start {
                    Start::Zero => vec![T::zeroed(); view.len()],
                    Start::Values => view.iter().copied().collect(),
                };
                let filled = Output::array(ArrayViewMut::from(&mut dense[..]), self.start).write(kernel);
                view.iter_mut().zip(dense).for_each(|(cell, value)| *cell = value);
                filled
            }
        }
    }
}

/// What can be cut into parts that different tasks write.
pub(crate) trait Split: Sized + Send {
    /// Cuts behind the first `rows` rows of `width` cells, or, where strides allow no cut there, as near as they do.
    /// Returns the number of rows in the first part too. There are at least two rows, of whole trailing axes.
    fn split_near(self, rows: usize, width: usize) -> (Self, usize, Self);
}

impl<T: Pod + Send + Sync> Split for Output<'_, T> {
    fn split_near(self, rows: usize, width: usize) -> (Self, usize, Self) {
        let start = self.start;
        match self.cells {
            Cells::Dense(cells) => {
                let (a, b) = cells.split_at_mut(rows * width);
                (Self { cells: Cells::Dense(a), start }, rows, Self { cells: Cells::Dense(b), start })
            }
            Cells::Strided(view) => {
                let shape = view.shape();
                let axis = shape.iter().position(|&n| n > 1).expect("an array of several rows");
                let per_index = shape[axis + 1..].iter().product::<usize>() / width;
                let at = (rows / per_index).clamp(1, shape[axis] - 1);
                let (a, b) = view.split_at(Axis(axis), at);
                (Self { cells: Cells::Strided(a), start }, at * per_index, Self { cells: Cells::Strided(b), start })
            }
        }
    }
}

/// Two outputs that are cut at the same rows. Their leading axes are equal as far as they count rows.
pub(crate) struct Both<'a, 'b, A, B> {
    pub first: Output<'a, A>,
    pub second: Output<'b, B>,
    /// Cells of a row of the second output.
    pub width: usize,
}

impl<A: Pod + Send + Sync, B: Pod + Send + Sync> Both<'_, '_, A, B> {
    /// Runs a kernel on the whole of both outputs as one tile each.
    pub(crate) fn write(self, kernel: impl FnOnce(&mut Tile<'_, A>, &mut Tile<'_, B>)) -> Filled {
        let mut second = Filled::NOTHING;
        let first = self.first.write(|a| second = self.second.write(|b| kernel(a, b)));
        first.and(second)
    }
}

impl<A: Pod + Send + Sync, B: Pod + Send + Sync> Split for Both<'_, '_, A, B> {
    fn split_near(self, rows: usize, width: usize) -> (Self, usize, Self) {
        // A dense output can be cut where a strided one must be.
        let (a, b, c, d, taken);
        if matches!(self.first.cells, Cells::Strided(_)) {
            (a, taken, b) = self.first.split_near(rows, width);
            let (left, same, right) = self.second.split_near(taken, self.width);
            assert_eq!(same, taken, "two outputs are cut at one row");
            (c, d) = (left, right);
        } else {
            (c, taken, d) = self.second.split_near(rows, self.width);
            (a, _, b) = self.first.split_near(taken, width);
        }
        let width = self.width;
        (Self { first: a, second: c, width }, taken, Self { first: b, second: d, width })
    }
}

/// The number of cells that have been written. Only writers that count make one.
#[must_use]
#[derive(Debug, PartialEq)]
pub(crate) struct Filled(usize);

impl Filled {
    pub(crate) const NOTHING: Self = Self(0);

    #[cfg(test)]
    pub(crate) fn cells(n: usize) -> Self {
        Self(n)
    }

    /// Cells that a [`ScatteredRows`](crate::parallel::ScatteredRows) has written.
    pub(crate) fn scattered(cells: usize) -> Self {
        Self(cells)
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

/// What a tile's cells hold before the kernel runs.
#[derive(Clone, Copy, PartialEq)]
pub enum Start {
    /// Nothing: sums start at +0.0.
    Zero,
    /// The caller's values, from which sums start.
    Values,
}

/// A writer over the cells of one task: it moves forward as it writes.
pub struct Tile<'a, T> {
    cells: &'a mut [MaybeUninit<T>],
    /// All cells before this one have been written.
    at: usize,
    start: Start,
}

impl<'a, T: Element> Tile<'a, T> {
    /// Whether there are values of the caller to add to. Sums start from +0.0 otherwise, which takes the sign of a zero: what is
    /// one term alone must look here first.
    #[inline(always)]
    pub(crate) fn continues(&self) -> bool {
        self.start == Start::Values
    }

    /// The value that the sum of the cells at the cursor plus `ahead` starts from: `LANES` cells.
    #[inline(always)]
    pub(crate) fn start<S: Simd>(&self, s: S, ahead: usize) -> S::V<T> {
        match self.start {
            Start::Zero => s.splat(T::zero()),
            Start::Values => s.load(self.values(self.at + ahead, T::LANES)),
        }
    }

    /// [`Tile::start`] for `n` cells.
    #[inline(always)]
    pub(crate) fn start_head<S: Simd>(&self, s: S, n: usize) -> S::V<T> {
        match self.start {
            Start::Zero => s.splat(T::zero()),
            Start::Values => s.load_head(self.values(self.at, n)),
        }
    }

    #[inline(always)]
    fn values(&self, at: usize, n: usize) -> &[T] {
        assert!(self.start == Start::Values);
        // SAFETY: the cells of such a tile were initialised when it was made, and are only ever overwritten.
        unsafe { self.cells[at..][..n].assume_init_ref() }
    }

    /// Writes a vector at the cursor.
    #[inline(always)]
    pub(crate) fn push<V: Vector<T>>(&mut self, v: V) {
        v.write(&mut self.cells[self.at..][..T::LANES]);
        self.at += T::LANES;
    }

    /// Writes the first `n` lanes of a vector at the cursor.
    #[inline(always)]
    pub(crate) fn push_head<V: Vector<T>>(&mut self, v: V, n: usize) {
        v.write_head(&mut self.cells[self.at..][..n]);
        self.at += n;
    }

    /// [`Tile::push`] of several vectors past the caches; [`Tile::finish`] orders such stores.
    #[inline(always)]
    pub(crate) fn push_streamed<V: Vector<T>, const N: usize>(&mut self, vectors: [V; N]) {
        V::stream(vectors, &mut self.cells[self.at..][..N * T::LANES]);
        self.at += N * T::LANES;
    }

    /// How many cells before the next one that starts a cache line.
    #[inline(always)]
    pub(crate) fn cells_to_line(&self) -> usize {
        let cells = &self.cells[self.at..];
        cells.as_ptr().align_offset(ALIGNMENT).min(cells.len())
    }

    /// [`Tile::push_slice`] past the caches, for rows of a multiple of 16 bytes.
    #[inline(always)]
    pub(crate) fn push_slice_streamed(&mut self, row: &[T]) {
        stream_slice(row, &mut self.cells[self.at..][..row.len()]);
        self.at += row.len();
    }
}

impl<'a, T: Pod + Send + Sync> Tile<'a, T> {
    /// Copies a row to the cursor.
    #[inline(always)]
    pub(crate) fn push_slice(&mut self, row: &[T]) {
        self.cells[self.at..][..row.len()].write_copy_of_slice(row);
        self.at += row.len();
    }

    /// Has the next `n` cells written in parts of at most `part` by `kernel`, which gets the first cell of each part.
    pub(crate) fn push_parts(&mut self, n: usize, part: usize, kernel: impl Fn(usize, &mut Tile<'_, T>) + Sync) {
        let start = self.start;
        let filled = self.cells[self.at..][..n]
            .par_chunks_mut(part)
            .enumerate()
            .map(|(i, cells)| {
                let mut tile = Tile { cells, at: 0, start };
                kernel(i * part, &mut tile);
                tile.finish()
            })
            .reduce(|| Filled::NOTHING, Filled::and);
        assert_eq!(filled.0, n, "every part is written");
        self.at += n;
    }

    /// [`Tile::push_parts`] of two tiles.
    pub(crate) fn push_parts_of_both<U: Pod + Send + Sync>(
        &mut self,
        other: &mut Tile<'_, U>,
        n: usize,
        part: usize,
        kernel: impl Fn(usize, &mut Tile<'_, T>, &mut Tile<'_, U>) + Sync,
    ) {
        let starts = (self.start, other.start);
        let others = other.cells[other.at..][..n].par_chunks_mut(part);
        let filled = self.cells[self.at..][..n]
            .par_chunks_mut(part)
            .zip(others)
            .enumerate()
            .map(|(i, (cells, others))| {
                let mut tile = Tile { cells, at: 0, start: starts.0 };
                let mut other = Tile { cells: others, at: 0, start: starts.1 };
                kernel(i * part, &mut tile, &mut other);
                tile.finish().and(other.finish())
            })
            .reduce(|| Filled::NOTHING, Filled::and);
        assert_eq!(filled.0, 2 * n, "every part of both is written");
        self.at += n;
        other.at += n;
    }

    /// Every cell as a running sum: +0.0, or the caller's values. The tile counts as written.
    pub(crate) fn accumulators(&mut self) -> &mut [T] {
        if self.start == Start::Zero {
            self.cells.fill(MaybeUninit::new(T::zeroed()));
        }
        self.at = self.cells.len();
        // SAFETY: just filled, or initialised when the tile was made.
        unsafe { self.cells.assume_init_mut() }
    }

    /// Checks that every cell was written and orders streaming stores before what follows.
    fn finish(self) -> Filled {
        assert_eq!(self.at, self.cells.len(), "a tile is written to its end");
        fence();
        Filled(self.at)
    }
}

#[cfg(unix)]
fn advise_huge_pages<T>(cells: &mut [MaybeUninit<T>]) {
    let bytes = size_of_val(cells);
    if bytes < 2 * HUGE_PAGE {
        return;
    }
    #[cfg(target_os = "linux")]
    {
        let skip = cells.as_ptr().cast::<u8>().align_offset(HUGE_PAGE);
        let whole = (bytes - skip) / HUGE_PAGE * HUGE_PAGE;
        // SAFETY: the range lies within one allocation of ours; the advice changes no contents. A refusal is no error.
        unsafe {
            libc::madvise(cells.as_mut_ptr().cast::<u8>().add(skip).cast(), whole, libc::MADV_HUGEPAGE);
        }
    }
}

#[cfg(not(unix))]
fn advise_huge_pages<T>(_: &mut [MaybeUninit<T>]) {}
