//! What a search for neighbours returns.

use ndarray::{Array1, Array2};

/// The nearest neighbours of M queries, a row a query, ascending by (squared distance, row number).
///
/// Where a query has fewer than K neighbours, its row ends in padding: distance +inf, index N. With
/// [`OutOfRange::Skip`](crate::gather::OutOfRange::Skip) the indices go into a [`Gather`](crate::gather::Gather) as they
/// are.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbors<T> {
    /// (M, K) distances.
    pub distances: Array2<T>,
    /// (M, K) row numbers of the points.
    pub indices: Array2<u32>,
    pub(super) rows: u32,
}

impl<T> Neighbors<T> {
    /// (M) how many neighbours each query has.
    #[must_use]
    pub fn counts(&self) -> Array1<usize> {
        self.indices.outer_iter().map(|row| row.iter().filter(|&&index| index < self.rows).count()).collect()
    }

    /// (M, K) whether there is a neighbour, or padding.
    #[must_use]
    pub fn mask(&self) -> Array2<bool> {
        self.indices.mapv(|index| index < self.rows)
    }
}
