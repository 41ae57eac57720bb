//! Neighbours within a radius by brute force, written from the contract, and the comparison with them.

use super::limits::Limits;
use super::neighbors::{BruteForce, Neighbor, order};
use super::values::Value;
use ndarray::{Array1, Array2, ArrayView2};
use pullback::kdtree::RadiusNeighbors;

/// The neighbours within a query's radius, a row of them a query.
///
/// For each what is reported as its distance, and its row number.
#[derive(Clone, Debug)]
pub struct Rows<T>(pub Vec<Vec<(T, u32)>>);

impl<T: Value> BruteForce<T> {
    /// By row number, or by (key, row number).
    pub fn radius(&self, queries: ArrayView2<'_, T>, radii: &Limits<T>, by_distance: bool) -> Rows<T> {
        let row = |(query, mut neighbors): (usize, Vec<Neighbor<T>>)| {
            neighbors.retain(|neighbor| radii.reaches(query, self.distance(neighbor)));
            if by_distance {
                neighbors.sort_unstable_by(order);
            } else {
                neighbors.sort_unstable_by_key(|&(_, row)| row);
            }
            neighbors.iter().map(|neighbor| (self.reported(neighbor), neighbor.1)).collect()
        };
        Rows(self.of_queries(queries).enumerate().map(row).collect())
    }

    /// Rows (i, j), i < j, of points within `radius` of each other.
    pub fn pairs_within(&self, radius: T) -> Array2<u32> {
        let mut pairs = vec![];
        for low in 0..self.len() {
            let mut others = self.of_point(low);
            others.retain(|neighbor| neighbor.1 as usize > low && self.distance(neighbor) <= radius);
            others.sort_unstable_by_key(|&(_, high)| high);
            pairs.extend(others.iter().map(|&(_, high)| [low as u32, high]));
        }
        pairs.into()
    }
}

impl<T: Value> Rows<T> {
    pub fn counts(&self) -> Array1<usize> {
        self.0.iter().map(Vec::len).collect()
    }
}

/// The very rows, bit for bit.
#[track_caller]
pub fn assert_rows<T: Value>(found: &RadiusNeighbors<T>, expected: &Rows<T>) {
    assert_eq!(found.counts(), expected.counts(), "counts");
    let mut end = 0;
    let ends = expected.0.iter().map(|row| {
        end += row.len();
        end
    });
    assert!(found.offsets.iter().copied().eq([0].into_iter().chain(ends)), "offsets are {}", found.offsets);
    let entries = || expected.0.iter().flatten();
    assert_eq!((found.indices.len(), found.distances.len()), (entries().count(), entries().count()), "lengths");
    for (at, &(distance, index)) in entries().enumerate() {
        let (found_index, found_distance) = (found.indices[at], found.distances[at]);
        let same = found_index == index && found_distance.to_bits() == distance.to_bits();
        let query = found.offsets.iter().filter(|&&offset| offset <= at).count() - 1;
        assert!(same, "query {query} has {found_index} at {found_distance:?}, not {index} at {distance:?}");
    }
}
