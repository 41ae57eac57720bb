//! The search for all neighbours within a radius: rows of lengths that are known only after the search.
//!
//! Each tile of queries collects its hits once, in memory of its own; when all have, the lengths of the rows are summed
//! up and every tile puts its rows where they belong. That costs less than searching twice.

use super::arena::View;
use super::kernels::{Hit, Kernels, RadiusTile};
use super::metric::Metric;
use super::neighbors::RadiusNeighbors;
use super::per_query::{KeyBounds, PerQuery};
use super::queries::Queries;
use super::rank;
use super::search::{Options, Tuning};
use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::parallel::{Offsets, Place, for_each_scattered, is_worth_threads};
use crate::simd::Level;
use ndarray::{Array1, Array2};
use rayon::prelude::*;
use std::mem::MaybeUninit;

/// Queries of a tile.
const TILE: usize = 128;

/// Queries that take a few microseconds at least.
const PARALLEL: usize = 16;

/// Hits a query that there is room for at first.
const ROOM: usize = 32;

/// An output of rows without cells.
type Nothing<'a> = &'a mut [MaybeUninit<u8>];

/// What a search knows beside its queries.
struct Search<'t, 'r, T> {
    tree: &'t View<'t, T>,
    level: Level,
    metric: Metric,
    bounds: KeyBounds<'r, T>,
    /// Whether only points of greater row numbers are hits.
    after_own: bool,
}

/// The hits of a tile.
struct Collected<T> {
    /// Query after query.
    hits: Vec<Hit<T>>,
    /// How many a query, one a row of the tile.
    counts: Vec<usize>,
}

/// All points within the radius of each query.
pub(super) fn radius<T: Kernels>(
    tree: &View<'_, T>,
    level: Level,
    tuning: Tuning,
    options: &Options<'_, T>,
    queries: &Queries<'_, T>,
    radius: PerQuery<'_, T>,
) -> Result<RadiusNeighbors<T>> {
    let Options { metric, squared, by_distance, .. } = *options;
    let search = Search { tree, level, metric, bounds: KeyBounds::at_most(metric, radius), after_own: false };
    let parallel = tuning.parallel.unwrap_or_else(|| is_worth_threads(queries.len(), PARALLEL));
    let tiles = search.collect(queries, parallel, by_distance)?;
    let offsets = offsets(queries, &tiles, 1)?;
    let (mut distances, mut indices) = (Buffer::<T>::new(offsets.total())?, Buffer::<u32>::new(offsets.total())?);
    let place = Place::Ragged(&offsets);
    let outputs = (distances.cells(), indices.cells());
    let written =
        for_each_scattered(&queries.order, TILE, parallel, (place, place), outputs, &|first, _, distances, indices| {
            for hits in tiles[first / TILE].rows() {
                distances.push_with(|at| metric.reported(hits[at].key, squared));
                indices.push_with(|at| hits[at].id);
            }
        });
    let cells = [offsets.total()];
    Ok(RadiusNeighbors {
        distances: distances.finish(written.0, &cells),
        indices: indices.finish(written.1, &cells),
        offsets: Array1::from_vec(offsets.into_inner()),
    })
}

/// How many points are within the radius of each query.
pub(super) fn radius_count<T: Kernels>(
    tree: &View<'_, T>,
    level: Level,
    tuning: Tuning,
    metric: Metric,
    queries: &Queries<'_, T>,
    radius: PerQuery<'_, T>,
) -> Result<Array1<usize>> {
    let search = Search { tree, level, metric, bounds: KeyBounds::at_most(metric, radius), after_own: false };
    let parallel = tuning.parallel.unwrap_or_else(|| is_worth_threads(queries.len(), PARALLEL));
    let mut counts = Buffer::<usize>::new(queries.len())?;
    let places = (Place::Even(1), Place::Even(0));
    let outputs = (counts.cells(), &mut [] as Nothing<'_>);
    let written =
        for_each_scattered(&queries.order, TILE, parallel, places, outputs, &|first, rows, counts, nothing| {
            for count in search.count(queries, first, rows) {
                counts.push(&[count]);
                nothing.push(&[]);
            }
        });
    Ok(counts.finish(written.0, &[queries.len()]))
}

/// All pairs of points within a radius of each other, once: rows (i, j), i < j, ascending.
pub(super) fn pairs_within<T: Kernels>(
    tree: &View<'_, T>,
    level: Level,
    tuning: Tuning,
    metric: Metric,
    radius: T,
) -> Result<Array2<u32>> {
    let queries = &Queries::points(tree)?;
    let bounds = KeyBounds::at_most(metric, PerQuery::One(radius));
    let search = Search { tree, level, metric, bounds, after_own: true };
    let parallel = tuning.parallel.unwrap_or_else(|| is_worth_threads(queries.len(), PARALLEL));
    let tiles = search.collect(queries, parallel, false)?;
    let offsets = offsets(queries, &tiles, 2)?;
    let mut pairs = Buffer::<u32>::new(offsets.total())?;
    let places = (Place::Ragged(&offsets), Place::Even(0));
    let outputs = (pairs.cells(), &mut [] as Nothing<'_>);
    let written =
        for_each_scattered(&queries.order, TILE, parallel, places, outputs, &|first, rows, pairs, nothing| {
            for (&row, hits) in rows.iter().zip(tiles[first / TILE].rows()) {
                pairs.push_with(|at| if at % 2 == 0 { row } else { hits[at / 2].id });
                nothing.push(&[]);
            }
        });
    Ok(pairs.finish(written.0, &[offsets.total() / 2, 2]))
}

/// Where each query's row starts, of `cells` cells a hit.
fn offsets<T>(queries: &Queries<'_, T>, tiles: &[Collected<T>], cells: usize) -> Result<Offsets>
where
    T: Kernels,
{
    let mut lengths = reserve(queries.len() + 1)?;
    lengths.resize(queries.len(), 0);
    let counts = tiles.iter().flat_map(|tile| &tile.counts);
    for (&row, &count) in queries.order.as_slice().iter().zip(counts) {
        lengths[row as usize] = count * cells;
    }
    Ok(Offsets::from_lengths(lengths))
}

fn reserve<V>(len: usize) -> Result<Vec<V>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(len).map_err(|_| Error::Allocation { bytes: len.saturating_mul(size_of::<V>()) })?;
    Ok(memory)
}

impl<T: Kernels> Search<'_, '_, T> {
    /// The hits of all tiles, each query's in ascending order.
    fn collect(&self, queries: &Queries<'_, T>, parallel: bool, by_distance: bool) -> Result<Vec<Collected<T>>> {
        let order = queries.order.as_slice();
        let tile = |room: &mut Vec<Hit<T>>, (index, rows)| {
            let mut collected = self.collect_tile(queries, index * TILE, rows, room)?;
            collected.sort(self.level, by_distance);
            Ok(collected)
        };
        if parallel {
            order.par_chunks(TILE).enumerate().map_init(Vec::new, tile).collect()
        } else {
            let mut room = Vec::new();
            order.chunks(TILE).enumerate().map(|chunk| tile(&mut room, chunk)).collect()
        }
    }

    /// The hits of the queries from `first` in the order. `room` is grown as needed and can be used again.
    fn collect_tile(
        &self,
        queries: &Queries<'_, T>,
        first: usize,
        rows: &[u32],
        room: &mut Vec<Hit<T>>,
    ) -> Result<Collected<T>> {
        let (coordinates, present) = queries.finite(self.tree, first, rows);
        let (bounds, dims) = (self.bounds.of(&present), self.tree.dims);
        let mut counts = vec![0; present.len()];
        let (mut done, mut used, mut wanted) = (0, 0, present.len() * ROOM);
        while done < present.len() {
            if room.len() < wanted {
                let more = wanted - room.len();
                room.try_reserve(more).map_err(|_| Error::Allocation { bytes: more * size_of::<Hit<T>>() })?;
                room.resize(wanted, Hit { key: T::zero(), id: 0 });
            }
            let answered = T::ball(
                self.level,
                self.tree,
                self.metric,
                &mut RadiusTile {
                    queries: &coordinates[done * dims..],
                    bounds: &bounds[done..],
                    after: self.after_own.then_some(&present[done..]),
                    hits: Some(&mut room[used..]),
                    counts: &mut counts[done..],
                },
            );
            used += counts[done..done + answered].iter().sum::<usize>();
            done += answered;
            if let Some(count) = counts.get(done) {
                wanted = (used + count).max(2 * room.len());
            }
        }
        let mut hits = reserve(used)?;
        hits.extend_from_slice(&room[..used]);
        Ok(Collected { hits, counts: spread(rows, &present, counts) })
    }

    /// How many hits the queries from `first` in the order have.
    fn count(&self, queries: &Queries<'_, T>, first: usize, rows: &[u32]) -> Vec<usize> {
        let (coordinates, present) = queries.finite(self.tree, first, rows);
        let mut counts = vec![0; present.len()];
        let mut tile = RadiusTile {
            queries: &coordinates,
            bounds: &self.bounds.of(&present),
            after: None,
            hits: None,
            counts: &mut counts,
        };
        T::ball(self.level, self.tree, self.metric, &mut tile);
        spread(rows, &present, counts)
    }
}

/// The counts of the rows that are present, and 0 for the others.
fn spread(rows: &[u32], present: &[u32], counts: Vec<usize>) -> Vec<usize> {
    if present.len() == rows.len() {
        return counts;
    }
    let mut next = present.iter().zip(counts).peekable();
    rows.iter().map(|row| next.next_if(|(present, _)| *present == row).map_or(0, |(_, count)| count)).collect()
}

impl<T: Kernels> Collected<T> {
    /// The hits of each query.
    fn rows(&self) -> impl Iterator<Item = &[Hit<T>]> {
        let mut rest = &self.hits[..];
        self.counts.iter().map(move |&count| {
            let (row, behind) = rest.split_at(count);
            rest = behind;
            row
        })
    }

    /// Sorts the hits of each query.
    fn sort(&mut self, level: Level, by_distance: bool) {
        T::sort(level, &mut self.hits, &self.counts, by_distance);
        let mut rest = &mut self.hits[..];
        for &count in &self.counts {
            let (row, behind) = rest.split_at_mut(count);
            if count > rank::MOST && by_distance {
                row.sort_unstable_by(|a, b| {
                    let keys = a.key.partial_cmp(&b.key).expect("keys of finite coordinates are numbers");
                    keys.then(a.id.cmp(&b.id))
                });
            } else if count > rank::MOST {
                row.sort_unstable_by_key(|hit| hit.id);
            }
            rest = behind;
        }
    }
}
