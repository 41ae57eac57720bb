//! Inputs that broke other libraries, each with the right answer.

use crate::common::levels;
use crate::common::neighbors::{BruteForce, Expected, assert_exact, assert_neighbors};
use crate::common::random::Random;
use crate::common::values::Value;
use ndarray::{Array2, ArrayView2, Axis, array, concatenate, s};
use pullback::kdtree::{Builder, KdTree};
use std::f64::consts::FRAC_1_SQRT_2;

/// The `k` neighbours of each query by brute force, and by the tree at every level, whatever is chosen by size.
fn exact<T: Value, const D: usize>(points: &Array2<T>, queries: &Array2<T>, k: usize) -> Expected<T> {
    levels::each(|level| assert_exact::<T, D>(level, Builder::default(), points, queries, k));
    BruteForce::new(points.view()).knn(queries.view(), k)
}

/// Points (`row`, `column`) of a lattice with `spacing` from `origin`, row by row.
fn lattice<T: Value>(side: usize, origin: f64, spacing: f64) -> Array2<T> {
    let coordinate = |at: usize| T::from_f64(origin + spacing * at as f64).expect("rounded");
    Array2::from_shape_fn([side * side, 2], |(row, axis)| coordinate([row / side, row % side][axis]))
}

/// A split at a middle value sends all of them to one side when it looks at the axis on which they are equal.
#[test]
fn one_point_more_than_a_leaf_on_a_line() {
    let points = Array2::from_shape_fn([33, 2], |(row, axis)| [5.0, row as f64][axis]);
    assert_eq!(exact::<_, 2>(&points, &array![[5.0, 32.0]], 2).indices, array![[32, 31]]);
    exact::<_, 2>(&points, &points, 5);
    exact::<_, 2>(&points.mapv(|x| x as f32), &points.mapv(|x| x as f32 + 0.5), 33);
}

#[test]
fn every_small_number_of_points() {
    levels::each(|level| {
        for points in 1..=130 {
            let equal = Array2::from_elem([points, 2], 0.1f32);
            let two_valued = Array2::from_shape_fn([points, 2], |(row, _)| (row % 2) as f32);
            let distinct = Array2::from_shape_fn([points, 2], |(row, axis)| [row, row * row % 131][axis] as f64);
            for leaf in [16, 32] {
                let builder = Builder::default().leaf_size(leaf);
                assert_exact::<_, 2>(level, builder.clone(), &equal, &equal.slice(s![..1, ..]).to_owned(), 5);
                assert_exact::<_, 2>(level, builder, &two_valued, &array![[0.0, 0.0], [1.0, 1.0], [0.5, 0.5]], 5);
                let builder = Builder::default().leaf_size(leaf);
                assert_exact::<_, 2>(level, builder, &distinct, &distinct, 5);
            }
        }
    });
}

#[test]
fn ten_thousand_copies_of_one_point() {
    let points = Array2::from_elem([10_000, 3], 0.1f32);
    levels::each(|level| {
        let tree = KdTree::<_, 3>::new(points.view()).unwrap().with_level(level).unwrap();
        let found = tree.knn(points.slice(s![..40, ..]), 5).unwrap();
        assert_eq!(found.distances, Array2::zeros([40, 5]));
        assert!(found.indices.outer_iter().all(|row| row == array![0, 1, 2, 3, 4]));
        let found = tree.knn_self(5).unwrap();
        assert_eq!(found.distances, Array2::zeros([10_000, 5]));
        for (row, indices) in (0..).zip(found.indices.outer_iter()) {
            assert!((0..).filter(|&other| other != row).zip(indices).all(|(other, &index)| other == index), "{row}");
        }
    });
}

/// Bounds that are updated by subtraction lose points here.
#[test]
fn spacing_of_an_ulp_far_from_the_origin() {
    let points = lattice::<f32>(20, 1e4, 1e-3);
    let between = lattice::<f32>(19, 1e4 + 5e-4, 1e-3);
    exact::<_, 2>(&points, &concatenate![Axis(0), points, between], 5);
    exact::<_, 2>(&points, &between, 20);
}

#[test]
fn differences_that_overflow() {
    let far = 3e38f32;
    let points = array![[far, far], [-far, far], [0.0, 0.0], [far, -far], [-far, -far]];
    let found = exact::<_, 2>(&points, &array![[far, far], [1.0, 1.0]], 6);
    assert_eq!(found.indices, array![[0, 1, 2, 3, 4, 5], [2, 0, 1, 3, 4, 5]]);
    assert_eq!(found.distances[[0, 0]], 0.0);
    assert!(found.distances.slice(s![.., 1..]).iter().all(|d| *d == f32::INFINITY));
    let mut random = Random::new(1);
    let corners = Array2::from_shape_simple_fn([200, 3], || random.one_of(&[-far, far, -f32::MAX, f32::MAX]));
    exact::<_, 3>(&corners, &corners, 5);
    let far = corners.mapv(|x| if x < 0.0 { -1.7e308 } else { 1.7e308 });
    exact::<_, 3>(&far, &far, 17);
}

/// Their middle, rounded, is one of them.
#[test]
fn two_adjacent_doubles() {
    for low in [1.0f64, 0.0, -f64::MIN_POSITIVE, 1e300] {
        let points = Array2::from_shape_fn([100, 2], |(row, axis)| [low, low.next_up()][(row >> axis) % 2]);
        exact::<_, 2>(&points, &points, 30);
        exact::<_, 1>(&points.slice(s![.., ..1]).to_owned(), &array![[low], [low.next_up()], [low.next_down()]], 60);
    }
}

#[test]
fn the_centre_of_a_cell_of_a_lattice() {
    let found = exact::<_, 2>(&lattice::<f64>(5, 0.0, 1.0), &array![[1.5, 2.5], [3.5, 0.5]], 4);
    assert_eq!(found.indices, array![[7, 8, 12, 13], [15, 16, 20, 21]]);
    assert_eq!(found.distances, Array2::from_elem([2, 4], FRAC_1_SQRT_2));
    assert_eq!(exact::<_, 2>(&lattice::<f64>(5, 0.0, 1.0), &array![[1.5, 2.5]], 1).indices, array![[7]]);
}

/// Neighbours in the order of their rounded distances would come in the order of their row numbers.
#[test]
fn distances_that_round_alike() {
    let points = array![[0.5f32, 0.5], [0.7, 0.1]];
    let found = exact::<_, 2>(&points, &array![[0.0, 0.0]], 2);
    assert_eq!(found.indices, array![[1, 0]]);
    assert_eq!(found.distances[[0, 0]], found.distances[[0, 1]]);
    assert_eq!(exact::<_, 2>(&points, &array![[0.0, 0.0]], 1).indices, array![[1]]);
}

#[test]
fn as_many_neighbors_as_points_and_more() {
    let (points, query) = (array![[0.0], [4.0], [1.0]], array![[3.0]]);
    assert_eq!(exact::<_, 1>(&points, &query, 3).indices, array![[1, 2, 0]]);
    let found = exact::<_, 1>(&points, &query, 4);
    assert_eq!(found.indices, array![[1, 2, 0, 3]]);
    assert_eq!(found.distances, array![[1.0, 2.0, 3.0, f64::INFINITY]]);
    let tree = KdTree::<f64, 1>::new(points.view()).unwrap();
    assert_eq!(tree.knn_self(3).unwrap().indices, array![[2, 1, 3], [2, 0, 3], [0, 1, 3]]);
    assert_eq!(tree.knn(query.view(), 0).unwrap().indices.dim(), (1, 0));
    assert_eq!(tree.knn_self(0).unwrap().distances.dim(), (3, 0));
}

#[test]
fn no_points() {
    let points = Array2::<f32>::zeros([0, 3]);
    let found = exact::<_, 3>(&points, &array![[1.0, 2.0, 3.0]], 2);
    assert_eq!((found.indices, found.distances), (array![[0, 0]], array![[f32::INFINITY; 2]]));
    let tree = KdTree::<f32, 3>::new(points.view()).unwrap();
    assert!(tree.is_empty());
    assert_eq!(tree.knn_self(2).unwrap().indices.dim(), (0, 2));
}

#[test]
fn one_point() {
    let points = array![[1.0, 2.0]];
    assert_eq!(exact::<_, 2>(&points, &array![[1.0, 3.0]], 2).indices, array![[0, 1]]);
    assert_eq!(KdTree::<f64, 2>::new(points.view()).unwrap().knn_self(1).unwrap().indices, array![[1]]);
}

#[test]
fn half_of_the_rows_and_a_query_are_nan() {
    let points =
        Array2::from_shape_fn([100, 2], |(row, axis)| if row % 2 == 1 { f32::NAN } else { (row + axis) as f32 });
    let queries = array![[0.0, 1.0], [f32::NAN, 1.0], [41.0, 42.0]];
    let error = KdTree::<f32, 2>::new(points.view()).err().unwrap();
    assert_eq!(error.to_string(), "points[1, 0] = NaN is not finite");
    let finite = points.slice(s![..;2, ..]);
    let error = KdTree::<f32, 2>::new(finite).unwrap().knn(queries.view(), 2).err().unwrap();
    assert_eq!(error.to_string(), "queries[1, 0] = NaN is not finite");

    let builder = Builder::default().non_finite_is_absent();
    for k in [2, 49, 50, 51] {
        levels::each(|level| assert_exact::<_, 2>(level, builder.clone(), &points, &queries, k));
    }
    let tree: KdTree<f32, 2> = builder.build(points.view()).unwrap();
    assert_eq!(tree.len(), 100);
    assert_eq!(tree.knn(queries.view(), 2).unwrap().indices, array![[0, 2], [100, 100], [40, 42]]);
    assert_eq!(tree.knn_self(1).unwrap().indices.slice(s![..4, ..]), array![[2], [100], [0], [100]]);
}

#[test]
fn thousands_of_neighbors() {
    let mut random = Random::new(35);
    let mut uniform = |rows| Array2::from_shape_simple_fn([rows, 3], || random.below(1 << 20) as f32);
    let (points, queries) = (uniform(35_000), uniform(100));
    let brute_force = BruteForce::new(points.view());
    for k in [1000, 10_000] {
        let expected = brute_force.knn(queries.view(), k);
        levels::each(|level| {
            let tree = KdTree::<_, 3>::new(points.view()).unwrap().with_level(level).unwrap();
            assert_neighbors(&tree.knn(queries.view(), k).unwrap(), &expected);
        });
    }
}

#[test]
fn a_duplicate_is_a_neighbour_and_the_point_itself_is_not() {
    let points = array![[0.0, 1.0], [0.0, 1.0], [-1.0, 2.0]];
    exact::<_, 2>(&points, &points, 2);
    let found = KdTree::<f64, 2>::new(points.view()).unwrap().knn_self(2).unwrap();
    assert_eq!(found.indices, array![[1, 2], [0, 2], [0, 1]]);
    assert_eq!(found.distances.column(0), array![0.0, 0.0, 2f64.sqrt()]);
}

#[test]
fn two_of_seventeen_rows_are_nan() {
    let mut points = Array2::from_shape_vec([17, 2], (0..34).map(f64::from).collect()).unwrap();
    points.row_mut(8).fill(f64::NAN);
    points.row_mut(0).fill(f64::NAN);
    let error = KdTree::<f64, 2>::new(points.view()).err().unwrap();
    assert_eq!(error.to_string(), "points[0, 0] = NaN is not finite");
    let builder = Builder::default().non_finite_is_absent();
    levels::each(|level| assert_exact::<_, 2>(level, builder.clone(), &points, &points, 17));
}

#[test]
fn read_only_buffers() {
    static POINTS: [[f32; 2]; 3] = [[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]];
    let points = ArrayView2::from(&POINTS);
    let found = KdTree::<f32, 2>::new(points).unwrap().knn(points, 1).unwrap();
    assert_eq!(found.indices, array![[0], [1], [2]]);
}
