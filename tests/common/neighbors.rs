//! Nearest neighbours by brute force, written from the contract, and the comparison with them.

use super::limits::Limits;
use super::space::{Space, reported, root};
use super::values::Value;
use ndarray::{Array1, Array2, ArrayView1, ArrayView2, Axis};
use pullback::kdtree::{Builder, KdTree, Metric, Neighbors, Tuning};
use pullback::{Error, Level};
use std::cmp::Ordering;

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
    space: Space<T>,
    metric: Metric,
    squared: bool,
    /// Wrapped into the space, once: wrapping again may move a point that lies at a face.
    points: Array2<T>,
    present: Vec<u32>,
}

/// A key and a row number, the order of neighbours.
pub type Neighbor<T> = (T, u32);

pub fn order<T: Value>(a: &Neighbor<T>, b: &Neighbor<T>) -> Ordering {
    let keys = a.0.partial_cmp(&b.0).expect("keys of finite coordinates are numbers");
    keys.then(a.1.cmp(&b.1))
}

fn is_finite<T: Value>(row: ArrayView1<'_, T>) -> bool {
    row.iter().all(|x| x.is_finite())
}

/// The row numbers of points that are finite.
fn present<T: Value>(points: ArrayView2<'_, T>) -> Vec<u32> {
    (0..).zip(points.outer_iter()).filter(|(_, row)| is_finite(*row)).map(|(row, _)| row).collect()
}

impl<T: Value> BruteForce<T> {
    pub fn new(points: ArrayView2<'_, T>) -> Self {
        Self::in_space(Space::open(points.ncols()), points)
    }

    pub fn in_space(space: Space<T>, points: ArrayView2<'_, T>) -> Self {
        // What is not finite may be once it is wrapped.
        let present = present(points);
        let points = space.wrapped(points);
        Self { space, metric: Metric::default(), squared: false, points, present }
    }

    /// Points that lie in the space already.
    pub fn of_wrapped(space: Space<T>, points: Array2<T>) -> Self {
        let present = present(points.view());
        Self { space, metric: Metric::default(), squared: false, points, present }
    }

    pub fn metric(self, metric: Metric) -> Self {
        Self { metric, ..self }
    }

    pub fn squared(self, squared: bool) -> Self {
        Self { squared, ..self }
    }

    /// The number of points, the absent among them.
    pub fn len(&self) -> usize {
        self.points.nrows()
    }

    /// The distance of a neighbour, which bounds and radii are compared with.
    pub fn distance(&self, neighbor: &Neighbor<T>) -> T {
        root(self.metric, neighbor.0)
    }

    /// What is reported as the distance of a neighbour.
    pub fn reported(&self, neighbor: &Neighbor<T>) -> T {
        reported(self.metric, self.squared, neighbor.0)
    }

    /// The nearest `k` points of each query.
    pub fn knn(&self, queries: ArrayView2<'_, T>, k: usize) -> Expected<T> {
        self.knn_within(queries, k, &Limits::None)
    }

    /// The nearest `k` of the points within a query's bound.
    pub fn knn_within(&self, queries: ArrayView2<'_, T>, k: usize, bounds: &Limits<T>) -> Expected<T> {
        self.nearest(self.of_queries(queries), k, bounds)
    }

    /// The nearest `k` other points of each point.
    pub fn knn_self(&self, k: usize) -> Expected<T> {
        self.knn_self_within(k, &Limits::None)
    }

    /// The nearest `k` of the other points within a point's bound.
    pub fn knn_self_within(&self, k: usize, bounds: &Limits<T>) -> Expected<T> {
        self.nearest((0..self.len()).map(|row| self.of_point(row)), k, bounds)
    }

    /// [`BruteForce::knn_self`] of some points.
    pub fn knn_self_of(&self, rows: &[usize], k: usize) -> Expected<T> {
        self.nearest(rows.iter().map(|&row| self.of_point(row)), k, &Limits::None)
    }

    /// All points as neighbours of each query, in no order; none of a query that is not finite.
    pub fn of_queries(&self, queries: ArrayView2<'_, T>) -> impl ExactSizeIterator<Item = Vec<Neighbor<T>>> {
        let finite = queries.map_axis(Axis(1), is_finite);
        let queries = self.space.wrapped(queries);
        (0..queries.nrows()).map(move |row| if finite[row] { self.of(queries.row(row)).collect() } else { vec![] })
    }

    /// All other points as neighbours of a point.
    pub fn of_point(&self, row: usize) -> Vec<Neighbor<T>> {
        if self.present.binary_search(&(row as u32)).is_err() {
            return vec![];
        }
        self.of(self.points.row(row)).filter(|&(_, other)| other as usize != row).collect()
    }

    fn of(&self, query: ArrayView1<'_, T>) -> impl Iterator<Item = Neighbor<T>> {
        let (query, dims) = (query.to_vec(), self.points.ncols());
        let points = self.points.as_slice().expect("standard layout");
        let key = move |row: u32| self.space.key(self.metric, &points[row as usize * dims..][..dims], &query);
        self.present.iter().map(move |&row| (key(row), row))
    }

    fn nearest(
        &self,
        candidates: impl ExactSizeIterator<Item = Vec<Neighbor<T>>>,
        k: usize,
        bounds: &Limits<T>,
    ) -> Expected<T> {
        let rows = candidates.len();
        let mut expected = Expected {
            distances: Array2::from_elem([rows, k], T::infinity()),
            indices: Array2::from_elem([rows, k], self.len() as u32),
            counts: Array1::zeros(rows),
        };
        for (query, mut nearest) in candidates.enumerate() {
            nearest.retain(|neighbor| bounds.is_within(query, self.distance(neighbor)));
            if k < nearest.len() {
                nearest.select_nth_unstable_by(k, order);
                nearest.truncate(k);
            }
            nearest.sort_unstable_by(order);
            expected.counts[query] = nearest.len();
            for (at, neighbor) in nearest.iter().enumerate() {
                expected.distances[[query, at]] = self.reported(neighbor);
                expected.indices[[query, at]] = neighbor.1;
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
