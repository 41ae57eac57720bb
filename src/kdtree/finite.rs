//! Rows with a coordinate that is not finite.

use crate::element::Element;
use ndarray::ArrayView2;
use rayon::prelude::*;

/// Rows looked at by one task.
const CHUNK: usize = 1 << 14;

/// The first row, in order, with a coordinate that is not finite.
pub(super) fn first<T: Element>(points: &ArrayView2<'_, T>) -> Option<usize> {
    let is_bad = |row: usize| points.row(row).iter().any(|x| !x.is_finite());
    match points.as_slice() {
        Some(dense) => {
            let columns = points.ncols();
            let chunks = dense.par_chunks(CHUNK * columns).enumerate();
            // A sum of products with zero is finite only where every factor is.
            let bad = |chunk: &[T]| !chunk.iter().fold(T::zero(), |sum, &x| sum + x * T::zero()).is_finite();
            let first = chunks.filter(|(_, chunk)| bad(chunk)).map(|(chunk, _)| chunk * CHUNK).min();
            first.and_then(|first| (first..points.nrows()).find(|&row| is_bad(row)))
        }
        None => (0..points.nrows()).find(|&row| is_bad(row)),
    }
}

/// The rows without such a coordinate.
pub(super) fn rows<T: Element>(points: &ArrayView2<'_, T>) -> Vec<u32> {
    let rows = points.outer_iter().zip(0..);
    rows.filter(|(row, _)| row.iter().all(|x| x.is_finite())).map(|(_, row)| row).collect()
}
