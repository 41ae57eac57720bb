//! The search for the k nearest neighbours: which traversal, and where the answers go.
//!
//! Queries are searched in spatial order, in tiles, and their answers written to the rows where the caller put them.
//! Packets of queries share a traversal where queries are about as dense as points and K is small; otherwise each query
//! walks alone. Both give the same bits.

use super::arena::View;
use super::kernels::{Kernels, Tile};
use super::metric::Metric;
use super::neighbors::Neighbors;
use super::packet::MAX_K;
use super::per_query::KeyBounds;
use super::queries::Queries;
use super::search::{Options, Tuning};
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::parallel::{Place, for_each_scattered, is_worth_threads};
use crate::simd::Level;

/// Queries of a tile: a multiple of every vector and of the smallest leaf.
const TILE: usize = 512;

/// Packets pay where there is a query for this many points. In three dimensions that is between 1, where they took a third of
/// the time of walks, and 14, where both took the same. In eight, neighbouring queries do not share enough leaves even then, and
/// in sixteen all visit nearly all: a packet took 0.4 of the time.
fn points_a_query(dims: usize) -> usize {
    if (7..12).contains(&dims) { 1 } else { 8 }
}

/// Neighbours that take a few microseconds to find.
const PARALLEL: usize = 256;

/// Searches for the `k` nearest neighbours of `queries`; of points among the others.
pub(super) fn knn<T: Kernels>(
    tree: &View<'_, T>,
    level: Level,
    tuning: Tuning,
    options: &Options<'_, T>,
    queries: &Queries<'_, T>,
    k: usize,
) -> Result<Neighbors<T>> {
    let count = queries.len();
    // An array of no rows cannot have longer ones than an array of one row either.
    let cells = count.max(1) as u128 * k as u128;
    let limit = isize::MAX as u128 / size_of::<f64>() as u128;
    if cells > limit {
        return Err(Error::TooLarge { argument: "rows of queries times k", value: cells, limit });
    }
    let cells = count * k;
    let metric = options.metric;
    let bounds = KeyBounds::below(metric, options.within);
    let (mut distances, mut indices) = (Buffer::<T>::new(cells)?, Buffer::<u32>::new(cells)?);
    let can_share = k <= MAX_K && metric == Metric::L2 && tree.torus.is_none();
    let packets = can_share && tuning.packets.unwrap_or(count * points_a_query(tree.dims) >= tree.points);
    let parallel = tuning.parallel.unwrap_or_else(|| is_worth_threads(cells, PARALLEL));
    // Long rows make tiles of fewer queries, so that their answers stay in cache.
    let tile = if k <= 64 { TILE } else { (TILE * 64 / k).next_multiple_of(16) };
    let places = (Place::Even(k), Place::Even(k));
    let outputs = (distances.cells(), indices.cells());
    let none = tree.rows as u32;
    let written =
        for_each_scattered(&queries.order, tile, parallel, places, outputs, &|first, rows, distances, indices| {
            let (coordinates, present) = queries.finite(tree, first, rows);
            let (mut keys, mut ids) = (vec![T::zero(); present.len() * k], vec![0; present.len() * k]);
            if k > 0 {
                let own = queries.are_points().then_some(&present[..]);
                let bounds = &bounds.of(&present);
                let queries = &coordinates;
                let mut answers = Tile { queries, bounds, own, k, keys: &mut keys, ids: &mut ids };
                if packets {
                    T::packet(level, tree, &mut answers);
                } else {
                    T::walk(level, tree, metric, &mut answers);
                }
            }
            metric.report(&mut keys, options.squared);
            // Padding holds what the query's bound was.
            if ids.contains(&none) {
                let padding = keys.iter_mut().zip(&ids).filter(|&(_, &id)| id == none);
                padding.for_each(|(distance, _)| *distance = T::infinity());
            }
            let padding = (vec![T::infinity(); k], vec![none; k]);
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
    let shape = [count, k];
    Ok(Neighbors {
        distances: distances.finish(written.0, &shape),
        indices: indices.finish(written.1, &shape),
        rows: none,
    })
}
