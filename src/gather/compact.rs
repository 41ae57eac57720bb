//! The adjoint of a row gather where few rows are touched: only those, and which they are.

use super::kernels::Traffic;
use super::reduce::TILE_BYTES;
use super::rows::Gather;
use super::terms::{Sources, Terms};
use crate::Real;
use crate::buffer::{Buffer, Filled, Output};
use crate::error::Result;
use crate::layout::{dense, elements};
use crate::parallel::{Cut, for_each_tile};
use ndarray::{Array1, Array2, ArrayView, Dimension};

/// The rows of a gradient that are not zero by construction. Batch b has those from `offsets[b]` up to `offsets[b + 1]`.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactGradient<T> {
    /// (B + 1), from 0 to R.
    pub offsets: Array1<usize>,
    /// (R), the numbers of the rows in their batch, ascending within it.
    pub rows: Array1<u32>,
    /// (R, C), the gradients of those rows.
    pub gradients: Array2<T>,
}

impl<D: Dimension, X: Dimension> Gather<D, X> {
    /// [`Gather::adjoint`] without the rows that no index names: for features with many more rows than there are indices,
    /// such as an embedding table in a training step. Time and memory are O(indices x C + B x N), where the gradient itself
    /// is B x N x C.
    ///
    /// # Errors
    ///
    /// As [`Gather::adjoint`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{Gather, OutOfRange};
    /// use pullback::ndarray::array;
    ///
    /// let gather = Gather::new(array![[7, 2, 7], [0, 0, 0]].view(), 1000, OutOfRange::Error)?;
    /// let grad_y = array![[[1.0], [2.0], [3.0]], [[4.0], [5.0], [6.0]]];
    /// let compact = gather.adjoint_compact(grad_y.view())?;
    /// assert_eq!(compact.offsets, array![0, 2, 3]);
    /// assert_eq!(compact.rows, array![2, 7, 0]);
    /// assert_eq!(compact.gradients, array![[2.0], [4.0], [15.0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn adjoint_compact<T: Real>(&self, grad_y: ArrayView<'_, T, D::Larger>) -> Result<CompactGradient<T>> {
        let width = self.check_gradient(grad_y.shape())?;
        let grad_y = dense(&grad_y)?;
        let plan = &self.plan;
        let inverse = plan.built_inverse()?;
        let (mut starts, mut rows, mut ends) = (vec![0], Vec::new(), Vec::new());
        for batch in 0..plan.batches {
            // Rows without positions take no part: the end of one row of positions is the start of the next that has some.
            ends.push(0);
            let indices = plan.batch(batch);
            let named = &inverse.order(batch)[..inverse.offsets(batch)[plan.rows] as usize];
            for positions in named.chunk_by(|&a, &b| indices[a as usize] == indices[b as usize]) {
                rows.push(indices[positions[0] as usize]);
                ends.push(ends[ends.len() - 1] + positions.len() as u32);
            }
            starts.push(rows.len());
        }
        let shape = [rows.len(), width];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let gradients = buffer.fill(&shape, |cells| {
            let row_bytes = (width * size_of::<T>()).max(1);
            let tile = plan.tuning.tile.unwrap_or(TILE_BYTES.div_ceil(row_bytes));
            let cut = Cut { group: rows.len(), tile, width, parallel: plan.parallel::<T>(width) };
            let traffic = Traffic { stream: false, prefetch: plan.tuning.prefetch.unwrap_or(true) };
            let batch_cells = plan.per_batch * width;
            if cells.is_empty() {
                return Filled::NOTHING;
            }
            for_each_tile(Output::fresh(cells), rows.len(), &cut, &|_, rows, tile| {
                let mut next = rows.start;
                while next < rows.end {
                    let batch = starts.partition_point(|&start| start <= next) - 1;
                    let end = rows.end.min(starts[batch + 1]);
                    // Every batch has an end more than it has rows.
                    let offsets = &ends[next + batch..=end + batch];
                    let terms = Terms::Rows(inverse.order(batch));
                    let sources = Sources { width, offsets, terms, product: false, mean: false };
                    let source = &grad_y[batch * batch_cells..][..batch_cells];
                    T::fold_rows(plan.level, source, sources, 0..width, traffic, tile);
                    next = end;
                }
            })
        });
        Ok(CompactGradient { offsets: starts.clone().into(), rows: rows.into(), gradients })
    }
}
