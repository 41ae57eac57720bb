//! The search for the k nearest neighbours: which order, which traversal, and where the answers go.
//!
//! Queries are searched in spatial order, in tiles, and their answers written to the rows where the caller put them.
//! Packets of queries share a traversal where queries are about as dense as points and K is small; otherwise each query
//! walks alone. Both give the same bits.

use super::arena::Arena;
use super::kernels::{Kernels, Tile};
use super::neighbors::Neighbors;
use super::order::spatial;
use super::packet::MAX_K;
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::layout::Rows;
use crate::parallel::{Permutation, for_each_scattered};
use crate::simd::Level;
use ndarray::ArrayView2;

/// Queries of a tile: a multiple of every vector and of the smallest leaf.
const TILE: usize = 512;

/// Packets pay where there is a query for this many points: between 1, where they took a third of the time of walks, and
/// 14, where both took the same.
const POINTS_A_QUERY: usize = 8;

/// From this many queries on, sorting them should pay. An estimate, not measured yet.
const SORT: usize = 256;

/// From this many neighbours in all, waking a second thread should pay. An estimate, not measured yet.
const PARALLEL: usize = 1024;

/// Choices that are made by size, as arguments, so that tests can make every one of them on small sizes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Whether queries share a traversal, where K allows it.
    pub packets: Option<bool>,
    /// Whether queries are sorted.
    pub sort: Option<bool>,
    /// Whether to use several threads.
    pub parallel: Option<bool>,
}

/// Searches for the `k` nearest neighbours of `queries` rows.
pub(super) fn knn<T: Kernels>(
    tree: &Arena<T>,
    level: Level,
    tuning: Tuning,
    queries: &ArrayView2<'_, T>,
    k: usize,
) -> Result<Neighbors<T>> {
    let (count, rows) = (queries.nrows(), Rows::new(queries));
    let order = if tuning.sort.unwrap_or(count >= SORT) {
        spatial(tree, count, |row, query| rows.copy(row, query))
    } else {
        Permutation::identity(count)
    };
    search(tree, level, tuning, &order, k, false, |_, row, query| rows.copy(row, query))
}

/// Searches for the `k` nearest neighbours of every point among the others.
pub(super) fn knn_self<T: Kernels>(tree: &Arena<T>, level: Level, tuning: Tuning, k: usize) -> Result<Neighbors<T>> {
    let order = Permutation::starting_with(&tree.ids[..tree.points], tree.rows);
    search(tree, level, tuning, &order, k, true, |slot, _, query| {
        if slot >= tree.points {
            query.fill(T::nan());
            return;
        }
        let coordinates = tree.leaf_coordinates(slot / tree.leaf);
        for (axis, x) in query.iter_mut().enumerate() {
            *x = coordinates[axis * tree.leaf + slot % tree.leaf];
        }
    })
}

/// Searches in the given order. `copy` gets the position in the order, the row, and the room for the query. A query that
/// is not finite has no neighbours.
fn search<T: Kernels>(
    tree: &Arena<T>,
    level: Level,
    tuning: Tuning,
    order: &Permutation,
    k: usize,
    exclude_own: bool,
    copy: impl Fn(usize, usize, &mut [T]) + Sync,
) -> Result<Neighbors<T>> {
    let (queries, dims) = (order.as_slice().len(), tree.dims);
    // An array of no rows cannot have longer ones than an array of one row either.
    let cells = queries.max(1) as u128 * k as u128;
    let limit = isize::MAX as u128 / size_of::<f64>() as u128;
    if cells > limit {
        return Err(Error::TooLarge { argument: "rows of queries times k", value: cells, limit });
    }
    let cells = queries * k;
    let (mut distances, mut indices) = (Buffer::<T>::new(cells)?, Buffer::<u32>::new(cells)?);
    let packets = k <= MAX_K && tuning.packets.unwrap_or(queries * POINTS_A_QUERY >= tree.points);
    let parallel = tuning.parallel.unwrap_or(cells >= PARALLEL);
    // Long rows make tiles of fewer queries, so that their answers stay in cache.
    let tile = if k <= 64 { TILE } else { (TILE * 64 / k).max(16) };
    let outputs = (distances.cells(), indices.cells());
    let written = for_each_scattered(order, tile, parallel, k, outputs, &|first, rows, distances, indices| {
        // The queries that are finite, side by side, and which rows they are.
        let mut queries = vec![T::zero(); rows.len() * dims];
        let mut present = Vec::with_capacity(rows.len());
        for (position, &row) in rows.iter().enumerate() {
            let query = &mut queries[present.len() * dims..][..dims];
            copy(first + position, row as usize, query);
            if query.iter().all(|x| x.is_finite()) {
                present.push(row);
            }
        }
        let (mut keys, mut ids) = (vec![T::zero(); present.len() * k], vec![0; present.len() * k]);
        if k > 0 {
            let queries = &queries[..present.len() * dims];
            let own = exclude_own.then_some(&present[..]);
            let mut answers = Tile { queries, own, k, keys: &mut keys, ids: &mut ids };
            if packets {
                T::packet(level, tree, &mut answers);
            } else {
                T::walk(level, tree, &mut answers);
            }
        }
        keys.iter_mut().for_each(|key| *key = key.sqrt());
        let padding = (vec![T::infinity(); k], vec![tree.rows as u32; k]);
        let mut answered = 0;
        for row in rows {
            if present.get(answered) == Some(row) {
                distances.push(&keys[answered * k..][..k]);
                indices.push(&ids[answered * k..][..k]);
                answered += 1;
            } else {
                distances.push(&padding.0);
                indices.push(&padding.1);
            }
        }
    });
    let shape = [queries, k];
    Ok(Neighbors {
        distances: distances.finish(written.0, &shape),
        indices: indices.finish(written.1, &shape),
        rows: tree.rows as u32,
    })
}
