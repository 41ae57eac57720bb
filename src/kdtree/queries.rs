//! The queries of a call: the caller's rows or the tree's own points, in the order in which they are searched.

use super::arena::View;
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
    pub(super) fn new(tree: &View<'_, T>, queries: &'a ArrayView2<'_, T>, sort: Option<bool>) -> Self {
        let (count, rows) = (queries.nrows(), Rows::new(queries));
        let order = if sort.unwrap_or(count >= SORT) {
            spatial(tree, count, |row, query| {
                rows.copy(row, query);
                tree.wrap(query);
            })
        } else {
            Permutation::identity(count)
        };
        Self { order, rows: Some(rows) }
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
        let dims = tree.dims;
        let mut queries = vec![T::zero(); rows.len() * dims];
        let mut present = Vec::with_capacity(rows.len());
        for (position, &row) in (first..).zip(rows) {
            if let (Some(queries), Some(&ahead)) = (&self.rows, rows.get(position - first + AHEAD)) {
                queries.prefetch(ahead as usize, dims);
            }
            let query = &mut queries[present.len() * dims..][..dims];
            let is_finite = match &self.rows {
                Some(rows) => {
                    rows.copy(row as usize, query);
                    query.iter().all(|x| x.is_finite())
                }
                None => position < tree.points,
            };
            if !is_finite {
                continue;
            }
            present.push(row);
            if self.rows.is_some() {
                tree.wrap(query);
                continue;
            }
            let coordinates = tree.leaf_coordinates(position / tree.leaf);
            for (axis, x) in query.iter_mut().enumerate() {
                *x = coordinates[axis * tree.leaf + position % tree.leaf];
            }
        }
        queries.truncate(present.len() * dims);
        (queries, present)
    }
}
