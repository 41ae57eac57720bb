//! Choices by size.

use crate::Real;
use crate::parallel::is_worth_threads;

/// What the lanes of a vector run over.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lanes {
    /// The columns of a matrix.
    Columns,
    /// One element of neighbouring outputs.
    Time,
    /// One element of the members of a batch; as [`Lanes::Time`] where there is no batch.
    Batch,
}

/// Choices that are made by size, as arguments, so that tests can make every one of them on small sizes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Whether to use several threads.
    pub parallel: Option<bool>,
    /// Rows of a scan that a task takes, at least 1.
    pub rows: Option<usize>,
    /// What lanes run over.
    pub lanes: Option<Lanes>,
    /// Terms that are added up before the next rows are taken, at least 1. It changes no result.
    pub chunk: Option<usize>,
    /// Whether to keep exponents apart, which binomial weights beyond a table need.
    pub scaled: Option<bool>,
    /// Results of a relaxed scan that are computed one after another, rounded up to a power of two.
    pub leaf: Option<usize>,
}

/// Floating-point operations that take a few microseconds.
const PARALLEL_FLOPS: usize = 1 << 19;

/// Floating-point operations of a sequence that is cut into tasks.
const CUT_FLOPS: usize = 1 << 20;

/// Bytes of the right factors that a block of rows walks before the next block does.
const CHUNK_BYTES: usize = 256 << 10;

/// Bytes of right factors that are read again for every task's rows without a loss: about a last-level cache.
const SHARED_BYTES: usize = 8 << 20;

/// Results of a relaxed scan that are computed one after another: about where transforms begin to be faster.
const LEAF: usize = 64;

/// A problem's size, for the choices.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) items: usize,
    /// Outputs of an item, about as many as terms of the longest sum.
    pub(super) len: usize,
    pub(super) rows: usize,
    pub(super) inner: usize,
    pub(super) columns: usize,
}

impl Size {
    /// Floating-point operations, about.
    fn flops(self) -> usize {
        let Self { items, len, rows, inner, columns } = self;
        [items, len, len, rows, inner].iter().fold(columns, |flops, &n| flops.saturating_mul(n))
    }
}

impl Tuning {
    pub(super) fn lanes<T: Real>(self, size: Size, batched: bool) -> Lanes {
        let padded = size.columns.next_multiple_of(T::LANES);
        let choice = self.lanes.unwrap_or({
            // Few columns leave lanes empty, and neighbouring outputs those of pairs that do not exist: half a vector
            // an output.
            if 4 * size.columns >= 3 * padded || size.columns > 2 * T::LANES {
                Lanes::Columns
            } else if batched && size.items >= T::LANES && size.len < 8 * T::LANES {
                Lanes::Batch
            } else {
                Lanes::Time
            }
        });
        if choice == Lanes::Batch && !batched { Lanes::Time } else { choice }
    }

    /// Whether several threads take tasks.
    pub(super) fn parallel(self, size: Size) -> bool {
        self.parallel.unwrap_or_else(|| is_worth_threads(size.flops(), PARALLEL_FLOPS))
    }

    /// Whether one sequence is several tasks: by its size alone, since what a relaxed scan transforms depends on the rows of a task.
    pub(super) fn is_cut(self, size: Size) -> bool {
        self.parallel.unwrap_or(size.flops() >= CUT_FLOPS)
    }

    /// Terms of sums that are walked by one block of rows before the next.
    pub(super) fn chunk<T: Real>(self, size: Size) -> usize {
        let matrix = size.inner * size.columns * size_of::<T>();
        self.chunk.unwrap_or(CHUNK_BYTES / matrix.max(1)).max(1)
    }

    /// Results of a relaxed scan that are computed one after another.
    pub(super) fn leaf(self) -> usize {
        self.leaf.unwrap_or(LEAF).max(1).next_power_of_two()
    }

    /// Rows of a scan that a task takes.
    pub(super) fn task_rows<T: Real>(self, size: Size) -> usize {
        if let Some(rows) = self.rows {
            return rows.max(1);
        }
        // Enough items keep every thread busy.
        if size.items >= 16 || !self.is_cut(size) {
            return size.rows;
        }
        let right = size.len * size.inner * size.columns * size_of::<T>();
        let most = if right <= SHARED_BYTES { 8 } else { 32 };
        // At least two tasks, of rows that fill a block.
        let half = size.rows.div_ceil(2);
        if half >= most { most } else { half.next_power_of_two() }
    }
}
