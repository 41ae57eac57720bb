//! Nearest neighbours by brute force, written from the contract, and the comparison with them.

use super::values::Value;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use pullback::kdtree::{Builder, KdTree, Neighbors, Tuning};
use pullback::{Error, Level};
use std::cmp::Ordering;
use std::iter::zip;

/// What a search must return.
#[derive(Clone, Debug)]
pub struct Expected<T> {
    /// (M, K)
    pub distances: Array2<T>,
    /// (M, K)
    pub indices: Array2<u32>,
    /// (M)
    pub counts: Array1<usize>,
}

/// Points that a query is compared with one by one. Rows that are not finite are absent.
pub struct BruteForce<T> {
    points: Array2<T>,
    present: Vec<u32>,
}

/// A key and a row number, the order of neighbours.
type Neighbor<T> = (T, u32);

fn order<T: Value>(a: &Neighbor<T>, b: &Neighbor<T>) -> Ordering {
    let keys = a.0.partial_cmp(&b.0).expect("keys of finite coordinates are numbers");
    keys.then(a.1.cmp(&b.1))
}

/// `(dx*dx + dy*dy) + dz*dz`, every operation rounded.
fn key<T: Value>(p: &[T], q: &[T]) -> T {
    zip(p, q).fold(T::zero(), |sum, (&p, &q)| sum + (q - p) * (q - p))
}

fn is_finite<T: Value>(row: ArrayView1<'_, T>) -> bool {
    row.iter().all(|x| x.is_finite())
}

impl<T: Value> BruteForce<T> {
    pub fn new(points: ArrayView2<'_, T>) -> Self {
        let present = (0..).zip(points.outer_iter()).filter(|(_, row)| is_finite(*row)).map(|(row, _)| row).collect();
        Self { points: points.as_standard_layout().into_owned(), present }
    }

    /// The nearest `k` points of each query.
    pub fn knn(&self, queries: ArrayView2<'_, T>, k: usize) -> Expected<T> {
        self.search(queries, k, |_, _| true)
    }

    /// The nearest `k` other points of each point.
    pub fn knn_self(&self, k: usize) -> Expected<T> {
        self.search(self.points.view(), k, |query, point| query != point)
    }

    /// [`BruteForce::knn_self`] of some points.
    pub fn knn_self_of(&self, rows: &[usize], k: usize) -> Expected<T> {
        self.search(self.points.select(Axis(0), rows).view(), k, |query, point| rows[query] != point)
    }

    /// The nearest `k` of the points that `accepts` takes for a query, both by row number.
    fn search(&self, queries: ArrayView2<'_, T>, k: usize, accepts: impl Fn(usize, usize) -> bool) -> Expected<T> {
        let rows = self.points.nrows();
        let mut expected = Expected {
            distances: Array2::from_elem([queries.nrows(), k], T::infinity()),
            indices: Array2::from_elem([queries.nrows(), k], rows as u32),
            counts: Array1::zeros(queries.nrows()),
        };
        let (dims, points) = (self.points.ncols(), self.points.as_slice().expect("standard layout"));
        for (query, row) in queries.outer_iter().enumerate().filter(|(_, row)| is_finite(*row)) {
            let row = row.to_vec();
            let candidates = self.present.iter().filter(|&&point| accepts(query, point as usize));
            let neighbor = |&at: &u32| (key(&points[at as usize * dims..][..dims], &row), at);
            let mut nearest: Vec<Neighbor<T>> = candidates.map(neighbor).collect();
            if k < nearest.len() {
                nearest.select_nth_unstable_by(k, order);
                nearest.truncate(k);
            }
            nearest.sort_unstable_by(order);
            expected.counts[query] = nearest.len();
            for (at, (key, index)) in nearest.into_iter().enumerate() {
                expected.distances[[query, at]] = key.sqrt();
                expected.indices[[query, at]] = index;
            }
        }
        expected
    }
}

/// The very neighbours, bit for bit.
#[track_caller]
pub fn assert_neighbors<T: Value>(found: &Neighbors<T>, expected: &Expected<T>) {
    assert_eq!(found.distances.dim(), expected.distances.dim(), "shape of distances");
    assert_eq!(found.indices.dim(), expected.indices.dim(), "shape of indices");
    assert_neighbors_of(found, &Vec::from_iter(0..expected.counts.len()), expected);
}

/// [`assert_neighbors`] of the queries with some row numbers.
#[track_caller]
pub fn assert_neighbors_of<T: Value>(found: &Neighbors<T>, rows: &[usize], expected: &Expected<T>) {
    for (((query, at), &index), &distance) in expected.indices.indexed_iter().zip(&expected.distances) {
        let at = [rows[query], at];
        let (found_index, found_distance) = (found.indices[at], found.distances[at]);
        let same = found_index == index && found_distance.to_bits() == distance.to_bits();
        assert!(same, "neighbour {at:?} is {found_index} at {found_distance:?}, not {index} at {distance:?}");
    }
    assert_eq!(found.counts().select(Axis(0), rows), expected.counts, "counts");
    let mask = Array2::from_shape_fn(expected.indices.dim(), |(query, at)| at < expected.counts[query]);
    assert_eq!(found.mask().select(Axis(0), rows), mask, "mask");
}

/// At a level, whatever is chosen by size, both searches find the `k` neighbours that brute force finds.
#[track_caller]
pub fn assert_exact<T: Value, const D: usize>(
    level: Level,
    builder: Builder<T>,
    points: &Array2<T>,
    queries: &Array2<T>,
    k: usize,
) {
    let brute_force = BruteForce::new(points.view());
    let (expected, of_itself) = (brute_force.knn(queries.view(), k), brute_force.knn_self(k));
    let tree: KdTree<T, D> = builder.build(points.view()).expect("the points are good");
    let mut tree = tree.with_level(level).expect("the level is available");
    for tuning in tunings() {
        tree = tree.with_tuning(tuning);
        assert_neighbors(&tree.knn(queries.view(), k).expect("the queries are good"), &expected);
        assert_neighbors(&tree.knn_self(k).expect("the size is small"), &of_itself);
    }
}

/// The error that names the first coordinate that is not finite.
pub fn non_finite<T: Value>(argument: &'static str, rows: ArrayView2<'_, T>) -> Option<Error> {
    let (at, &value) = rows.indexed_iter().find(|(_, x)| !x.is_finite())?;
    let value = value.to_f64().expect("an element is an f64").to_string();
    Some(Error::NonFinite { argument, position: vec![at.0, at.1], value })
}

/// Every combination of choices that are made by size.
pub fn tunings() -> impl Iterator<Item = Tuning> {
    (0..8).map(|bits| {
        let choice = |bit: u8| Some(bits >> bit & 1 == 1);
        Tuning { packets: choice(0), sort: choice(1), parallel: choice(2) }
    })
}
