//! The points by row number.
//!
//! Searches read points by slot, in the order of space. Gradients name points by row, any of them: there one row that lies
//! together is one miss, where a slot's coordinates lie a leaf apart.

use super::arena::{Arena, View};
use super::queries::Queries;
use crate::buffer::{Buffer, Filled};
use crate::element::Element;
use crate::error::Result;
use crate::parallel::{Place, for_each_scattered};
use ndarray::Array2;

/// Points that one task copies.
const TILE: usize = 1 << 12;

impl<T: Element> Arena<T> {
    /// (N, D) the points as the tree knows them; rows of NaN where they are absent. Made on first need and kept.
    ///
    /// It is made outside any lock: a thread that waits in `get_or_init` while it holds other work of the pool can wait for
    /// itself. A lost race has made the same.
    pub(super) fn by_row(&self) -> Result<&Array2<T>> {
        if self.by_row.get().is_none() {
            let _ = self.by_row.set(copy(&self.view())?);
        }
        Ok(self.by_row.get().expect("just set, here or by another thread"))
    }
}

fn copy<T: Element>(tree: &View<'_, T>) -> Result<Array2<T>> {
    let dims = tree.dims;
    let mut buffer = Buffer::<T>::new(tree.rows * dims)?;
    let points = Queries::points(tree)?;
    let absent = vec![T::nan(); dims];
    let places = (Place::Even(dims), Place::Even(0));
    let outputs = (buffer.cells(), &mut [][..]);
    let parallel = tree.rows > TILE;
    let written: (Filled, Filled) =
        for_each_scattered::<T, u32>(&points.order, TILE, parallel, places, outputs, &|first, rows, to, nothing| {
            let (coordinates, present) = points.finite(tree, first, rows);
            let present = coordinates.chunks_exact(dims).take(present.len());
            for row in present.chain(std::iter::repeat(&absent[..])).take(rows.len()) {
                to.push(row);
                nothing.push(&[]);
            }
        });
    Ok(buffer.finish(written.0, &[tree.rows, dims]))
}
