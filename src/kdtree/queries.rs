//! The queries of a call: the caller's rows or the tree's own points, in the order in which they are searched.

use super::arena::{Dims, View, dims};
use super::order::spatial;
use crate::element::Element;
use crate::error::{Error, FileFault, Result};
use crate::layout::Rows;
use crate::parallel::Permutation;
use ndarray::ArrayView2;

/// From this many queries on, sorting them should pay. An estimate, not measured yet.
const SORT: usize = 256;

/// Rows of queries lie anywhere, so they are asked for so many ahead.
const AHEAD: usize = 16;

/// Queries in the order in which they are searched.
pub(super) struct Queries<'a, T> {
    pub(super) order: Permutation,
    /// The caller's; without, they are the tree's points, in the order of its slots.
    rows: Option<Rows<'a, T>>,
}

impl<'a, T: Element> Queries<'a, T> {
    /// The caller's queries, sorted or not.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`].
    pub(super) fn new(tree: &View<'_, T>, queries: &'a ArrayView2<'_, T>, sort: Option<bool>) -> Result<Self> {
        let (count, rows) = (queries.nrows(), Rows::new(queries));
        // A view may be one query again and again. What sorting them takes at most, keys with their rows twice and rows, is
        // reserved at once, where it can be refused.
        let bytes = count.saturating_mul(size_of::<[u32; 5]>());
        Vec::<[u32; 5]>::new().try_reserve_exact(count).map_err(|_| Error::Allocation { bytes })?;
        let order = if sort.unwrap_or(count >= SORT) {
            spatial(tree, count, |row, query| {
                rows.copy(row, query);
                tree.wrap(query);
            })
        } else {
            Permutation::identity(count)
        };
        Ok(Self { order, rows: Some(rows) })
    }

    /// The tree's points, absent ones last.
    ///
    /// # Errors
    ///
    /// [`FileFault::Changed`] where they are not what they were when the tree was verified.
    pub(super) fn points(tree: &View<'_, T>) -> Result<Self> {
        let changed = || Error::File { name: "the mapped file".to_owned(), fault: FileFault::Changed };
        let order = Permutation::starting_with(&tree.ids[..tree.points], tree.rows).ok_or_else(changed)?;
        Ok(Self { order, rows: None })
    }

    pub(super) fn len(&self) -> usize {
        self.order.as_slice().len()
    }

    /// Whether a query is of the tree's own points.
    pub(super) fn are_points(&self) -> bool {
        self.rows.is_none()
    }

    /// Of the queries from `first` in the order, whose rows are `rows`, those that are finite, side by side as the tree
    /// knows them, and which rows they are.
    pub(super) fn finite(&self, tree: &View<'_, T>, first: usize, rows: &[u32]) -> (Vec<T>, Vec<u32>) {
        dims!(tree.dims, |dims| self.finite_in(dims, tree, first, rows))
    }

    fn finite_in<A: Dims>(&self, dims: A, tree: &View<'_, T>, first: usize, rows: &[u32]) -> (Vec<T>, Vec<u32>) {
        let d = dims.count();
        let (mut queries, mut present) = (Vec::with_capacity(rows.len() * d), Vec::with_capacity(rows.len()));
        let mut query = dims.all(T::zero());
        let query = &mut query.as_mut()[..d];
        let Some(source) = &self.rows else {
            // Absent points are last.
            for (slot, &row) in (first..tree.points).zip(rows) {
                let coordinates = &tree.leaf_coordinates(slot / tree.leaf)[slot % tree.leaf..];
                for (axis, x) in query.iter_mut().enumerate() {
                    *x = coordinates[axis * tree.leaf];
                }
                queries.extend_from_slice(query);
                present.push(row);
            }
            return (queries, present);
        };
        for (position, &row) in rows.iter().enumerate() {
            if let Some(&ahead) = rows.get(position + AHEAD) {
                source.prefetch(ahead as usize, d);
            }
            source.copy(row as usize, query);
            if query.iter().all(|x| x.is_finite()) {
                tree.wrap(query);
                queries.extend_from_slice(query);
                present.push(row);
            }
        }
        (queries, present)
    }
}
