//! Random problems for the search of neighbours, small ones around every boundary.

use super::cloud::Cloud;
use super::neighbors_case::Case;
use super::threads;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use pullback::kdtree::Tuning;

/// Around the lengths of vectors and of leaves.
pub const POINTS: [usize; 16] = [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300];
/// Around the lengths of vectors of queries.
pub const QUERIES: [usize; 13] = [0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 100, 300];
/// Around the lengths of lists: one neighbour, in registers, in memory, and beyond what packets take.
pub const NEIGHBORS: [usize; 12] = [0, 1, 2, 5, 6, 8, 16, 17, 40, 127, 128, 129];
/// As rounded up to 16, as given, as rounded up to 256.
pub const LEAVES: [usize; 5] = [1, 16, 32, 64, 200];

pub fn cases() -> impl Strategy<Value = Case> {
    let sizes = (
        prop_oneof![8 => select(vec![1, 2, 3, 4, 5, 8, 16]), 1 => 1usize..=16],
        prop_oneof![8 => select(POINTS.to_vec()), 2 => 0usize..300, 1 => 300usize..1500],
        prop_oneof![8 => select(QUERIES.to_vec()), 2 => 0usize..300],
    );
    let k = prop_oneof![
        12 => select(NEIGHBORS.to_vec()).prop_map(Neighbors::Exactly),
        1 => (0usize..4).prop_map(Neighbors::NearlyAll),
    ];
    let holes = prop_oneof![4 => Just((0, false)), 1 => Just((0, true)), 1 => Just((100, false)), 1 => Just((2, true))];
    let data = (select(Cloud::ALL.to_vec()), holes, any::<bool>(), any::<u64>());
    let how = (select(LEAVES.to_vec()), tunings(), select(threads::COUNTS.to_vec()));
    (sizes, k, data, how).prop_map(|((dims, points, queries), k, data, (leaf, tuning, threads))| {
        let (cloud, (holes, absent), double, seed) = data;
        let k = k.among(points);
        Case { dims, points, queries, k, cloud, holes, absent, leaf, double, tuning, threads, seed }
    })
}

/// K, where it may depend on the number of points.
#[derive(Clone, Copy, Debug)]
enum Neighbors {
    Exactly(usize),
    /// One less than all points and so on.
    NearlyAll(usize),
}

impl Neighbors {
    fn among(self, points: usize) -> usize {
        match self {
            Self::Exactly(k) => k,
            Self::NearlyAll(more) => (points + more).saturating_sub(1),
        }
    }
}

fn tunings() -> impl Strategy<Value = Tuning> {
    let choice = || option::of(any::<bool>());
    (choice(), choice(), choice()).prop_map(|(packets, sort, parallel)| Tuning { packets, sort, parallel })
}
