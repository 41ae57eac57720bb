//! Results that overflow.

use crate::Real;
use crate::error::{Error, Result};
use std::sync::{Mutex, PoisonError};

/// The matrices of a result that hold what is not finite: few, or the call fails or its input was such.
#[derive(Default)]
pub(super) struct Faults(Mutex<Vec<(usize, usize)>>);

impl Faults {
    /// Looks at cells of matrix `k` of an item.
    pub(super) fn look<T: Real>(&self, item: usize, k: usize, cells: &[T]) {
        if !finite(cells) {
            let mut faults = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if faults.last() != Some(&(item, k)) {
                faults.push((item, k));
            }
        }
    }

    /// Looks at all matrices of an item, of so many cells each.
    pub(super) fn look_through<T: Real>(&self, item: usize, cells: &[T], matrix: usize) {
        if !finite(cells) {
            for (k, cells) in cells.chunks_exact(matrix).enumerate() {
                self.look(item, k, cells);
            }
        }
    }

    /// Refuses an overflow: what is not finite in an item whose inputs are.
    pub(super) fn check(self, result: &'static str, finite: impl Fn(usize) -> bool) -> Result<()> {
        let mut faults = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        faults.sort_unstable_by_key(|&(item, k)| (k, item));
        faults.dedup();
        match faults.into_iter().find(|&(item, _)| finite(item)) {
            Some((_, first_k)) => Err(Error::Overflow { result, first_k }),
            None => Ok(()),
        }
    }
}

/// Whether all are. All of them are looked at: nearly always they are, and this way several at a time.
pub(super) fn finite<T: Real>(cells: &[T]) -> bool {
    cells.iter().fold(true, |finite, x| finite & x.is_finite())
}
