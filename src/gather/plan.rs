//! What an operator of this family knows before the data: every index, checked once.

use super::inverse::Inverse;
use crate::error::{Error, Result};
use crate::layout::check_shape;
use crate::parallel::{PARALLEL_BYTES, is_worth_threads};
use crate::simd::Level;
use ndarray::{ArrayView, Dimension};
use rayon::prelude::*;
use std::sync::OnceLock;

/// Stands for a padding index in a plan.
pub(super) const ABSENT: u32 = u32::MAX;

/// The largest number of rows, and of indices a batch, so that positions fit in `u32` beside [`ABSENT`].
pub(super) const LIMIT: usize = u32::MAX as usize - 1;

/// Indices checked and converted by one task.
const CHUNK: usize = 1 << 14;

mod sealed {
    pub trait Sealed {}
    impl Sealed for i32 {}
    impl Sealed for i64 {}
    impl Sealed for u32 {}
    impl Sealed for usize {}
}

/// An integer type of row indices: `i32`, `i64`, `u32` or `usize`.
pub trait Index: sealed::Sealed + Copy + Send + Sync {
    /// The index where it lies in `0..rows`.
    #[doc(hidden)]
    fn row(self, rows: usize) -> Option<usize>;
    /// The index without loss.
    #[doc(hidden)]
    fn value(self) -> i128;
}

macro_rules! index {
    ($($t:ty),*) => { $(impl Index for $t {
        #[inline(always)]
        fn row(self, rows: usize) -> Option<usize> {
            // Negative and too large values do not convert; nothing is computed from them.
            usize::try_from(self).ok().filter(|&row| row < rows)
        }
        fn value(self) -> i128 {
            self as i128
        }
    })* };
}
index!(i32, i64, u32, usize);

/// What an index outside `0..rows` means. An operator's forward and adjoint use the same policy.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub enum OutOfRange {
    /// [`Error::IndexOutOfRange`] when the operator is made, naming the first such index.
    #[default]
    Error,
    /// Padding, as ball queries write it: a negative index, the type's maximum, or any other index outside. It gives a
    /// row of `fill` (rounded to the element type) and takes no gradient. In sums and other reductions it is absent.
    Skip {
        /// The value of every element of a padding row.
        fill: f64,
    },
    /// The nearest row: the first for a negative index, the last for one that is too large. The adjoint adds into that
    /// row. Where there are no rows at all, any index is an error.
    Clamp,
}

/// How the adjoint reduces rows; both give the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Running sums of a batch in cache.
    Slab,
    /// Running sums of a row in registers.
    Inverse,
}

/// Choices that are made by size, as arguments, so that tests can make every one of them on small sizes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Whether to write past the caches.
    pub stream: Option<bool>,
    /// Whether to ask for rows ahead of their use.
    pub prefetch: Option<bool>,
    /// Whether to use several threads.
    pub parallel: Option<bool>,
    /// How the adjoint reduces.
    pub reduction: Option<Reduction>,
    /// Rows of a tile.
    pub tile: Option<usize>,
    /// The number of sources from which on a row is split by channels.
    pub hub: Option<usize>,
}

/// Checked indices and what is built from them on first need.
pub(super) struct Plan {
    pub(super) level: Level,
    pub(super) tuning: Tuning,
    /// B.
    pub(super) batches: usize,
    /// N, rows of `x` a batch.
    pub(super) rows: usize,
    /// M, indices a batch.
    pub(super) per_batch: usize,
    /// (B, M), below N or [`ABSENT`].
    pub(super) indices: Vec<u32>,
    /// What padding rows are filled with.
    pub(super) fill: f64,
    inverse: OnceLock<Inverse>,
}

impl Plan {
    /// A plan of `indices`, which errors call `argument`.
    pub(super) fn new<I: Index, D: Dimension>(
        argument: &'static str,
        indices: &ArrayView<'_, I, D>,
        batches: usize,
        rows: usize,
        policy: OutOfRange,
    ) -> Result<Self> {
        let level = Level::current()?;
        let per_batch = indices.len().checked_div(batches).unwrap_or(0);
        check_count("rows", rows)?;
        check_count("indices a batch", per_batch)?;
        let fill = if let OutOfRange::Skip { fill } = policy { fill } else { 0.0 };
        Ok(Self {
            level,
            tuning: Tuning::default(),
            batches,
            rows,
            per_batch,
            indices: convert(argument, indices, rows, policy)?,
            fill,
            inverse: OnceLock::new(),
        })
    }

    /// A plan of one batch whose indices ascend: `indices` lists the row that each position between `offsets` names.
    pub(super) fn of_sorted(offsets: Vec<u32>, indices: Vec<u32>) -> Result<Self> {
        Ok(Self {
            level: Level::current()?,
            tuning: Tuning::default(),
            batches: 1,
            rows: offsets.len() - 1,
            per_batch: indices.len(),
            indices,
            fill: 0.0,
            inverse: OnceLock::from(Inverse::of_sorted(offsets)?),
        })
    }

    /// The shape of `rows` rows of `channels` a batch: (B, `rows`, C), or (`rows`, C) where `X` has two axes.
    pub(super) fn shape<X: Dimension>(&self, rows: usize, channels: usize) -> Vec<usize> {
        match X::NDIM {
            Some(2) => vec![rows, channels],
            _ => vec![self.batches, rows, channels],
        }
    }

    /// Checks that an array is `rows` rows a batch and returns their channels.
    pub(super) fn channels<X: Dimension>(&self, argument: &'static str, rows: usize, found: &[usize]) -> Result<usize> {
        let channels = found[found.len() - 1];
        check_shape(argument, found, &self.shape::<X>(rows, channels))?;
        Ok(channels)
    }

    /// The indices of a batch.
    pub(super) fn batch(&self, batch: usize) -> &[u32] {
        &self.indices[batch * self.per_batch..][..self.per_batch]
    }

    /// The bytes of one row of `width` an index. Saturating: views that repeat an element can be larger than memory.
    pub(super) fn bytes<T>(&self, width: usize) -> usize {
        self.indices.len().saturating_mul(width).saturating_mul(size_of::<T>())
    }

    /// Whether to use several threads where a row of `width` an index is moved.
    pub(super) fn parallel<T>(&self, width: usize) -> bool {
        self.tuning.parallel.unwrap_or_else(|| is_worth_threads(self.bytes::<T>(width), PARALLEL_BYTES))
    }

    /// The positions that name each row, built on first need.
    ///
    /// The build runs outside any lock: a thread that waits in `get_or_init` while it holds other work of the pool can
    /// wait for itself. A lost race has computed the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`].
    pub(super) fn built_inverse(&self) -> Result<&Inverse> {
        if let Some(built) = self.inverse.get() {
            return Ok(built);
        }
        let _ = self.inverse.set(Inverse::new(self)?);
        Ok(self.inverse.get().expect("just set, here or by another thread"))
    }

    /// [`Plan::built_inverse`] where there is a sum of a row or more for every row: it is about as large as they are.
    pub(super) fn inverse(&self) -> &Inverse {
        self.built_inverse().expect("memory for as many numbers as there are sums")
    }
}

/// Refuses a number of rows, indices or groups that `u32` cannot count beside [`ABSENT`].
pub(super) fn check_count(argument: &'static str, value: usize) -> Result<()> {
    if value > LIMIT {
        return Err(Error::TooLarge { argument, value: value as u128, limit: LIMIT as u128 });
    }
    Ok(())
}

/// Checks and narrows every index.
fn convert<I: Index, D: Dimension>(
    argument: &'static str,
    indices: &ArrayView<'_, I, D>,
    rows: usize,
    policy: OutOfRange,
) -> Result<Vec<u32>> {
    let narrow = |index: I| match (index.row(rows), policy) {
        (Some(row), _) => Some(row as u32),
        (None, OutOfRange::Error) => None,
        (None, OutOfRange::Skip { .. }) => Some(ABSENT),
        (None, OutOfRange::Clamp) if rows == 0 => None,
        (None, OutOfRange::Clamp) => Some(if index.value() < 0 { 0 } else { rows as u32 - 1 }),
    };
    let len = indices.len();
    let mut narrowed = Vec::new();
    narrowed.try_reserve_exact(len).map_err(|_| Error::Allocation { bytes: len.saturating_mul(size_of::<u32>()) })?;
    narrowed.resize(len, 0);
    let check = |first: usize, out: &mut [u32], indices: &mut dyn Iterator<Item = I>| {
        out.iter_mut().zip(indices).enumerate().find_map(|(i, (out, index))| match narrow(index) {
            Some(row) => {
                *out = row;
                None
            }
            None => Some((first + i, index.value())),
        })
    };
    let bad = match indices.as_slice() {
        Some(dense) => narrowed
            .par_chunks_mut(CHUNK)
            .zip(dense.par_chunks(CHUNK))
            .enumerate()
            .filter_map(|(chunk, (out, indices))| check(chunk * CHUNK, out, &mut indices.iter().copied()))
            .min_by_key(|&(position, _)| position),
        None => check(0, &mut narrowed, &mut indices.iter().copied()),
    };
    match bad {
        None => Ok(narrowed),
        Some((position, value)) => {
            Err(Error::IndexOutOfRange { argument, position: unravel(position, indices.shape()), value, bound: rows })
        }
    }
}

/// The position in an array of `shape` of the element number `position` in row-major order.
pub(super) fn unravel(mut position: usize, shape: &[usize]) -> Vec<usize> {
    let mut axes: Vec<usize> = shape
        .iter()
        .rev()
        .map(|&n| {
            let at = position % n;
            position /= n;
            at
        })
        .collect();
    axes.reverse();
    axes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_do_not_wrap_at_32_bits() {
        assert_eq!(unravel(46_342 * 46_341 - 1, &[1, 46_342, 46_341]), [0, 46_341, 46_340]);
        assert_eq!(unravel(5 << 32, &[3, 1 << 33, 2]), [1, 1 << 31, 0]);
    }

    #[test]
    fn raw_values_outside_are_never_computed_with() {
        assert_eq!(i32::MIN.row((1 << 31) - 1), None);
        assert_eq!(i64::MIN.row(usize::MAX), None);
        assert_eq!(usize::MAX.row(usize::MAX), None);
        assert_eq!(u32::MAX.row(LIMIT), None);
        assert_eq!(((1i64 << 32) + 1).row(2), None, "not truncated to 32 bits");
    }
}
