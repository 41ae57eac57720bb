//! Inputs that broke other libraries: metrics, bounds, radii and pairs, each with the right answer.

use crate::common::levels;
use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, tunings};
use crate::common::random::Random;
use crate::common::ranges::assert_rows;
use crate::common::space::METRICS;
use crate::common::values::Value;
use ndarray::{Array2, Axis, array, concatenate, s};
use pullback::kdtree::{Builder, KdTree, KdTreeDyn, Metric, PerQuery, RadiusNeighbors};
use std::f64::consts::SQRT_2;

/// Runs `check` with the tree of some points at every level, whatever is chosen by size.
fn trees<T: Value>(points: &Array2<T>, check: impl Fn(&KdTreeDyn<T>)) {
    built(Builder::default(), points, check);
}

fn built<T: Value>(builder: Builder<T>, points: &Array2<T>, check: impl Fn(&KdTreeDyn<T>)) {
    levels::each(|level| {
        let mut tree = builder.clone().build_dyn(points.view()).unwrap().with_level(level).unwrap();
        for tuning in tunings() {
            tree = tree.with_tuning(tuning);
            check(&tree);
        }
    });
}

/// Every search by every metric finds what brute force does.
fn exact<T: Value>(points: &Array2<T>, queries: &Array2<T>, k: usize, radius: T) {
    for metric in METRICS {
        let brute_force = BruteForce::new(points.view()).metric(metric);
        let (nearest, of_itself) = (brute_force.knn(queries.view(), k), brute_force.knn_self(k));
        let within = brute_force.radius(queries.view(), &Limits::One(radius), false);
        let pairs = brute_force.pairs_within(radius);
        trees(points, |tree| {
            let search = tree.search().metric(metric);
            assert_neighbors(&search.knn(queries.view(), k).unwrap(), &nearest);
            assert_neighbors(&search.knn_self(k).unwrap(), &of_itself);
            assert_rows(&search.radius(queries.view(), PerQuery::One(radius)).unwrap(), &within);
            assert_eq!(search.radius_count(queries.view(), PerQuery::One(radius)).unwrap(), within.counts());
            assert_eq!(search.pairs_within(radius).unwrap(), pairs);
        });
    }
}

fn row<T: Value>(found: &RadiusNeighbors<T>, query: usize) -> Vec<u32> {
    found.indices.slice(s![found.offsets[query]..found.offsets[query + 1]]).to_vec()
}

/// Points (`row`, `column`) of a lattice with the same coordinates on both axes, row by row.
fn lattice<T: Value>(coordinates: &[T]) -> Array2<T> {
    let side = coordinates.len();
    Array2::from_shape_fn([side * side, 2], |(row, axis)| coordinates[[row / side, row % side][axis]])
}

#[test]
fn the_largest_difference_from_the_corner_of_a_square() {
    trees(&array![[0.0, 0.0], [10.0, 10.0]], |tree| {
        let found = tree.search().metric(Metric::Linf).knn(array![[9.0, 9.0]].view(), 1).unwrap();
        assert_eq!((found.indices, found.distances), (array![[1]], array![[1.0]]));
        let found = tree.search().metric(Metric::L1).knn(array![[9.0, 9.0]].view(), 2).unwrap();
        assert_eq!((found.indices, found.distances), (array![[1, 0]], array![[2.0, 18.0]]));
        let found = tree.search().metric(Metric::L1).squared().knn(array![[9.0, 9.0]].view(), 2).unwrap();
        assert_eq!(found.distances, array![[4.0, 324.0]]);
    });
}

#[test]
fn one_point_more_than_a_leaf_on_a_line() {
    let points = Array2::from_shape_fn([33, 2], |(row, axis)| [5.0, row as f64][axis]);
    exact(&points, &points, 5, 3.0);
    trees(&points, |tree| {
        assert_eq!(row(&tree.radius(array![[5.0, 32.0]].view(), 2.0).unwrap(), 0), [30, 31, 32]);
        assert_eq!(tree.pairs_within(1.0).unwrap(), Array2::from_shape_fn([32, 2], |(row, end)| (row + end) as u32));
    });
}

#[test]
fn ten_thousand_copies_of_one_point() {
    let points = Array2::from_elem([10_000, 3], 0.1f32);
    let query = points.slice(s![..1, ..]);
    trees(&points, |tree| {
        let found = tree.radius(query, 0.0).unwrap();
        assert!(found.indices.iter().copied().eq(0..10_000) && found.distances.iter().all(|d| *d == 0.0));
        let by_distance = tree.search().by_distance().radius(query, 0.5).unwrap();
        assert!(by_distance.indices.iter().copied().eq(0..10_000));
        assert_eq!(tree.radius_count(query, 0.0).unwrap(), array![10_000]);
        let bounded = tree.search().within(f32::MIN_POSITIVE).knn(query, 5).unwrap();
        assert_eq!(bounded.indices, array![[0, 1, 2, 3, 4]]);
        assert_eq!(tree.search().within(0.0).knn(query, 5).unwrap().counts(), array![0]);
    });
}

#[test]
fn spacing_of_an_ulp_far_from_the_origin() {
    let coordinates = |shift: f64| Vec::from_iter((0..20).map(|at| (1e4 + shift + 1e-3 * f64::from(at)) as f32));
    let (points, between) = (lattice(&coordinates(0.0)), lattice(&coordinates(5e-4)));
    exact(&points, &concatenate![Axis(0), points, between], 5, 1e-3);
    exact(&points, &between, 20, 2.5e-3);
}

#[test]
fn differences_that_overflow() {
    let far = 3e38f32;
    let points = array![[far, far], [-far, far], [0.0, 0.0], [far, -far], [-far, -far]];
    for radius in [0.0, far, f32::MAX, f32::INFINITY] {
        exact(&points, &array![[far, far], [1.0, 1.0], [-far, 0.0]], 6, radius);
    }
    trees(&points, |tree| {
        let query = array![[far, far]];
        // Infinite distances are within an infinite radius and within no finite one.
        assert_eq!(row(&tree.radius(query.view(), f32::INFINITY).unwrap(), 0), [0, 1, 2, 3, 4]);
        assert_eq!(row(&tree.radius(query.view(), f32::MAX).unwrap(), 0), [0]);
        assert_eq!(tree.pairs_within(f32::INFINITY).unwrap().nrows(), 10);
        assert_eq!(tree.search().within(f32::MAX).knn(query.view(), 5).unwrap().counts(), array![1]);
        // A bound is strict; without one, what overflowed is a neighbour.
        assert_eq!(tree.search().within(f32::INFINITY).knn(query.view(), 5).unwrap().counts(), array![1]);
        assert_eq!(tree.knn(query.view(), 5).unwrap().counts(), array![5]);
        // Squares that overflow change nothing but what is reported.
        let found = tree.search().metric(Metric::Linf).squared().knn(query.view(), 2).unwrap();
        assert_eq!((found.indices, found.distances), (array![[0, 2]], array![[0.0, f32::INFINITY]]));
    });
}

#[test]
fn two_adjacent_doubles() {
    for low in [1.0f64, 0.0, -f64::MIN_POSITIVE, 1e300] {
        let points = Array2::from_shape_fn([100, 2], |(row, axis)| [low, low.next_up()][(row >> axis) % 2]);
        exact(&points, &array![[low, low], [low.next_down(), low.next_up()]], 30, low.next_up() - low);
        exact(&points, &array![[low, low]], 30, 0.0);
    }
}

#[test]
fn the_centre_of_a_cell_of_a_lattice() {
    let points = lattice(&[0.0, 1.0, 2.0, 3.0, 4.0]);
    trees(&points, |tree| {
        let query = array![[1.5, 2.5]];
        for metric in METRICS {
            let search = tree.search().metric(metric);
            assert_eq!(search.knn(query.view(), 1).unwrap().indices, array![[7]]);
            let distance: f64 = search.knn(query.view(), 1).unwrap().distances[[0, 0]];
            assert_eq!(row(&search.radius(query.view(), distance).unwrap(), 0), [7, 8, 12, 13]);
            assert_eq!(row(&search.radius(query.view(), distance.next_down()).unwrap(), 0), [0u32; 0]);
            assert_eq!(search.within(distance).knn(query.view(), 4).unwrap().counts(), array![0]);
        }
    });
}

#[test]
fn a_radius_of_the_spacing_of_a_lattice_includes_the_boundary() {
    let points = lattice(&[0.0f32, 1.0, 2.0, 3.0, 4.0]);
    exact(&points, &points, 9, 1.0);
    trees(&points, |tree| {
        let centre = array![[2.0, 2.0]];
        assert_eq!(row(&tree.radius(centre.view(), 1.0).unwrap(), 0), [7, 11, 12, 13, 17]);
        let square = tree.search().metric(Metric::Linf).radius(centre.view(), 1.0).unwrap();
        assert_eq!(row(&square, 0), [6, 7, 8, 11, 12, 13, 16, 17, 18]);
        assert_eq!(tree.search().metric(Metric::L1).radius_count(centre.view(), 2.0).unwrap(), array![13]);
        assert_eq!(tree.pairs_within(1.0).unwrap().nrows(), 40);
    });
}

/// Of 24 distances of sqrt(2) eight are computed one ulp larger.
#[test]
fn pairs_at_a_distance_that_rounding_moves() {
    let step = 3.0 * SQRT_2 / 3.0;
    let points = lattice(&[0.0, step, 2.0 * step, 3.0 * SQRT_2]);
    exact(&points, &points, 9, SQRT_2);
    trees(&points, |tree| {
        assert_eq!(tree.pairs_within(SQRT_2).unwrap().nrows(), 16);
        assert_eq!(tree.pairs_within(SQRT_2.next_up()).unwrap().nrows(), 24);
        assert_eq!(tree.radius_count(points.view(), SQRT_2).unwrap().sum(), 16 + 2 * 16);
    });
}

#[test]
fn distances_that_round_alike() {
    let points = array![[0.5f32, 0.5], [0.7, 0.1]];
    trees(&points, |tree| {
        let query = array![[0.0, 0.0]];
        let nearest = tree.knn(query.view(), 2).unwrap();
        assert_eq!(nearest.indices, array![[1, 0]]);
        let distance = nearest.distances[[0, 0]];
        // Both are at the distance, so it excludes both as a bound and includes both as a radius.
        assert_eq!(tree.search().within(distance).knn(query.view(), 2).unwrap().counts(), array![0]);
        assert_eq!(tree.search().within(distance.next_up()).knn(query.view(), 2).unwrap().indices, array![[1, 0]]);
        assert_eq!(row(&tree.radius(query.view(), distance).unwrap(), 0), [0, 1]);
        assert_eq!(row(&tree.search().by_distance().radius(query.view(), distance).unwrap(), 0), [1, 0]);
        let squared = tree.search().squared().knn(query.view(), 2).unwrap().distances;
        assert!(squared[[0, 0]] < squared[[0, 1]]);
    });
}

#[test]
fn a_radius_of_zero_finds_the_coincident_points() {
    let points = array![[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [-0.0, 0.0]];
    trees(&points, |tree| {
        for zero in [0.0, -0.0] {
            for metric in METRICS {
                let search = tree.search().metric(metric);
                let found = search.radius(array![[1.0, 2.0], [0.0, -0.0], [1.0, 1.0]].view(), zero).unwrap();
                assert_eq!((found.offsets, found.indices), (array![0, 2, 3, 3], array![0, 2, 3]));
                assert_eq!(search.pairs_within(zero).unwrap(), array![[0, 2]]);
            }
        }
    });
}

#[test]
fn as_many_neighbors_as_points_and_more() {
    let points = array![[0.0], [4.0], [1.0]];
    trees(&points, |tree| {
        let found = tree.search().within(3.0).knn(array![[3.0]].view(), 4).unwrap();
        assert_eq!(found.indices, array![[1, 2, 3, 3]]);
        assert_eq!(found.distances, array![[1.0, 2.0, f64::INFINITY, f64::INFINITY]]);
        let bounds = array![0.5, f64::INFINITY, 1.0 + f64::EPSILON];
        let found = tree.search().within(&bounds).knn_self(3).unwrap();
        assert_eq!(found.indices, array![[3, 3, 3], [2, 0, 3], [0, 3, 3]]);
        assert_eq!(tree.search().within(3.0).knn_self(0).unwrap().indices.dim(), (3, 0));
    });
}

#[test]
fn no_points_and_no_queries() {
    let nothing = Array2::<f32>::zeros([0, 3]);
    exact(&nothing, &array![[1.0, 2.0, 3.0]], 2, f32::INFINITY);
    let none = nothing.view();
    let tree = KdTree::<f32, 3>::new(none).unwrap();
    assert_eq!(tree.radius(array![[1.0, 2.0, 3.0]].view(), 1.0).unwrap().offsets, array![0, 0]);
    assert_eq!(tree.radius(none, 1.0).unwrap().offsets, array![0]);
    assert_eq!(tree.radius(none, PerQuery::Each(array![].view())).unwrap().offsets, array![0]);
    assert_eq!(tree.radius_count(none, 1.0).unwrap(), array![]);
    assert_eq!(tree.pairs_within(1.0).unwrap().dim(), (0, 2));
    let found = tree.search().within(PerQuery::Each(array![].view())).knn_self(2).unwrap();
    assert_eq!(found.indices.dim(), (0, 2));
}

#[test]
fn one_point() {
    let point = array![[1.0, 2.0]];
    exact(&point, &array![[1.0, 3.0]], 2, 1.0);
    trees(&point, |tree| {
        assert_eq!(tree.pairs_within(f64::INFINITY).unwrap().dim(), (0, 2));
        assert_eq!(tree.radius_count(array![[1.0, 3.0]].view(), 1.0).unwrap(), array![1]);
    });
}

#[test]
fn half_of_the_rows_and_a_query_are_nan() {
    let points =
        Array2::from_shape_fn([100, 2], |(row, axis)| if row % 2 == 1 { f32::NAN } else { (row + axis) as f32 });
    let queries = array![[0.0, 1.0], [f32::NAN, 1.0], [41.0, 42.0]];
    let tree = KdTree::<f32, 2>::new(points.slice(s![..;2, ..])).unwrap();
    let refused = "queries[1, 0] = NaN is not finite";
    assert_eq!(tree.radius(queries.view(), 2.0).err().unwrap().to_string(), refused);
    assert_eq!(tree.radius_count(queries.view(), 2.0).err().unwrap().to_string(), refused);

    built(Builder::default().non_finite_is_absent(), &points, |tree| {
        let found = tree.radius(queries.view(), 3.0).unwrap();
        assert_eq!((found.offsets.clone(), found.indices.clone()), (array![0, 2, 2, 4], array![0, 2, 40, 42]));
        assert_eq!(tree.radius_count(queries.view(), f32::INFINITY).unwrap(), array![50, 0, 50]);
        let pairs = Array2::from_shape_fn([49, 2], |(row, end)| 2 * (row + end) as u32);
        assert_eq!(tree.pairs_within(3.0).unwrap(), pairs);
        assert_eq!(tree.pairs_within(f32::INFINITY).unwrap().nrows(), 50 * 49 / 2);
        let found = tree.search().within(3.0).knn_self(3).unwrap();
        assert_eq!(found.indices.slice(s![..3, ..]), array![[2, 100, 100], [100, 100, 100], [0, 4, 100]]);
    });
}

#[test]
fn a_duplicate_is_a_neighbour_and_the_point_itself_is_not() {
    let points = array![[0.0, 1.0], [0.0, 1.0], [-1.0, 2.0]];
    trees(&points, |tree| {
        let found = tree.search().within(SQRT_2).knn_self(2).unwrap();
        assert_eq!(found.indices, array![[1, 3], [0, 3], [3, 3]]);
        let found = tree.search().within(SQRT_2.next_up()).knn_self(2).unwrap();
        assert_eq!(found.indices, array![[1, 2], [0, 2], [0, 1]]);
        assert_eq!(tree.pairs_within(0.0).unwrap(), array![[0, 1]]);
        assert_eq!(tree.pairs_within(SQRT_2).unwrap(), array![[0, 1], [0, 2], [1, 2]]);
    });
}

#[test]
fn two_of_seventeen_rows_are_nan() {
    let mut points = Array2::from_shape_vec([17, 2], (0..34).map(f64::from).collect()).unwrap();
    points.row_mut(8).fill(f64::NAN);
    points.row_mut(0).fill(f64::NAN);
    built(Builder::default().non_finite_is_absent(), &points, |tree| {
        assert_eq!(tree.radius_count(points.view(), f64::INFINITY).unwrap().sum(), 15 * 15);
        assert_eq!(tree.pairs_within(3.0).unwrap().nrows(), 6 + 7);
    });
}

#[test]
fn thousands_of_neighbors_within_a_radius() {
    let mut random = Random::new(35);
    let mut uniform = |rows| Array2::from_shape_simple_fn([rows, 3], || random.below(1 << 20) as f32);
    let (points, queries) = (uniform(35_000), uniform(100));
    for metric in METRICS {
        let brute_force = BruteForce::new(points.view()).metric(metric);
        let nearest = brute_force.knn(queries.view(), 1000);
        let radii = Limits::Each(nearest.distances.column(999).to_owned());
        let expected = brute_force.radius(queries.view(), &radii, true);
        levels::each(|level| {
            let tree = KdTree::<_, 3>::new(points.view()).unwrap().with_level(level).unwrap();
            let search = tree.search().metric(metric).by_distance();
            assert_rows(&search.radius(queries.view(), radii.per_query().unwrap()).unwrap(), &expected);
            assert_neighbors(&search.knn(queries.view(), 1000).unwrap(), &nearest);
        });
    }
}
