//! What a search for neighbours returns.

use ndarray::{Array1, Array2};

/// The nearest neighbours of M queries, a row a query, ascending by (key, row number), the key as [`Metric`](super::Metric) says.
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

/// All points within a radius of M queries, as compressed rows (CSR).
///
/// The neighbours of query `m` are at `offsets[m]..offsets[m + 1]`, ascending by row number, or by (key, row number) where
/// the search was told so. Indices and offsets go into [`Pooled::ragged`](crate::gather::Pooled::ragged) and
/// [`Weighted::ragged`](crate::gather::Weighted::ragged) as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct RadiusNeighbors<T> {
    /// (M + 1) where each query's neighbours start; the last is their number.
    pub offsets: Array1<usize>,
    /// Row numbers of the points.
    pub indices: Array1<u32>,
    /// Distances, or what the search was told to report.
    pub distances: Array1<T>,
}

impl<T> RadiusNeighbors<T> {
    /// (M) how many neighbours each query has.
    #[must_use]
    pub fn counts(&self) -> Array1<usize> {
        self.offsets.windows(2).into_iter().map(|ends| ends[1] - ends[0]).collect()
    }
}
