//! The tree with a number of dimensions known at run time: the one that every other is a shell of.

use crate::common::cloud::Cloud;
use crate::common::levels;
use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, non_finite};
use crate::common::random::Random;
use crate::common::ranges::assert_rows;
use crate::common::space::{METRICS, Space};
use crate::common::values::Value;
use ndarray::{Array2, ArrayView2, array};
use pullback::kdtree::{Builder, KdTree, KdTreeDyn, PerQuery};
use pullback::{Error, Level};

/// Takes a tree of either kind.
fn everything<T: Value>(tree: &KdTreeDyn<T>, queries: ArrayView2<'_, T>, radius: T) -> impl PartialEq + use<T> {
    let (search, mut found) = (tree.search(), vec![]);
    for metric in METRICS {
        let search = search.metric(metric);
        let rows = search.radius(queries, PerQuery::One(radius)).unwrap();
        found.push((
            search.knn(queries, 4).unwrap(),
            search.within(PerQuery::One(radius)).knn_self(3).unwrap(),
            (rows.offsets, rows.indices, rows.distances),
            search.radius_count(queries, PerQuery::One(radius)).unwrap(),
            search.pairs_within(radius).unwrap(),
        ));
    }
    found
}

fn check<T: Value, const D: usize>(level: Level) {
    let mut random = Random::new(D as u64);
    let points: Array2<T> = Cloud::Lattice.points(120, D, &mut random);
    let queries = Cloud::Lattice.queries(&points, 20, &mut random);
    let (two, length) = (T::one() + T::one(), T::from_f32(2.5).expect("rounded"));
    for builder in [Builder::default(), Builder::default().periodic(&[Some(length); D]).leaf_size(16)] {
        let fixed: KdTree<T, D> = builder.clone().build(points.view()).unwrap().with_level(level).unwrap();
        let dynamic = builder.build_dyn(points.view()).unwrap().with_level(level).unwrap();
        assert_eq!((fixed.dims(), dynamic.dims()), (D, D));
        let found = everything(&fixed, queries.view(), two);
        assert!(found == everything(&dynamic, queries.view(), two), "{D} dimensions");
        assert!(found == everything(&fixed.into_dyn(), queries.view(), two), "{D} dimensions");
    }
}

#[test]
fn both_kinds_of_trees_give_the_same_bits() {
    macro_rules! of_dims {
        ($level:expr, $($dims:literal)*) => {
            $({ check::<f32, $dims>($level); check::<f64, $dims>($level); })*
        };
    }
    levels::each(|level| {
        of_dims!(level, 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    });
}

/// What a tree offers itself is a search that nothing was asked of.
#[test]
fn calls_of_a_tree_are_searches_with_defaults() {
    let mut random = Random::new(1);
    let points: Array2<f32> = Cloud::Lattice.points(150, 3, &mut random);
    let queries = Cloud::Lattice.queries(&points, 30, &mut random);
    let brute_force = BruteForce::new(points.view());
    let rows = brute_force.radius(queries.view(), &Limits::One(1.5), false);
    levels::each(|level| {
        let tree = KdTreeDyn::new(points.view()).unwrap().with_level(level).unwrap();
        let search = tree.search();
        for found in [tree.knn(queries.view(), 5), search.knn(queries.view(), 5)] {
            assert_neighbors(&found.unwrap(), &brute_force.knn(queries.view(), 5));
        }
        for found in [tree.knn_self(5), search.knn_self(5)] {
            assert_neighbors(&found.unwrap(), &brute_force.knn_self(5));
        }
        for found in [tree.radius(queries.view(), 1.5), search.radius(queries.view(), 1.5)] {
            assert_rows(&found.unwrap(), &rows);
        }
        for found in [tree.radius_count(queries.view(), 1.5), search.radius_count(queries.view(), 1.5)] {
            assert_eq!(found.unwrap(), rows.counts());
        }
        for found in [tree.pairs_within(1.5), search.pairs_within(1.5)] {
            assert_eq!(found.unwrap(), brute_force.pairs_within(1.5));
        }
    });
}

/// A search is a value: what is asked of a copy is not asked of the search.
#[test]
fn searches_are_copied() {
    let tree = KdTreeDyn::new(array![[0.0], [2.0], [5.0]].view()).unwrap();
    let (search, query) = (tree.search(), array![[1.5]]);
    let narrow = search.within(1.0).squared();
    assert_eq!(search.knn(query.view(), 2).unwrap().distances, array![[0.5, 1.5]]);
    assert_eq!(narrow.knn(query.view(), 2).unwrap().distances, array![[0.25, f64::INFINITY]]);
    // What is asked last counts.
    assert_eq!(narrow.within(3.0).knn(query.view(), 2).unwrap().distances, array![[0.25, 2.25]]);
}

/// A search outlives the bounds that it is given.
#[test]
fn searches_are_used_again_with_new_bounds() {
    let tree = KdTreeDyn::new(array![[0.0], [2.0], [5.0]].view()).unwrap();
    let (search, query) = (tree.search(), array![[1.5]]);
    for k in [1, 3] {
        let radii = search.knn(query.view(), k).unwrap().distances.column(k - 1).to_owned();
        assert_eq!(search.radius(query.view(), &radii).unwrap().indices.len(), k);
        assert_eq!(search.within(&radii).knn(query.view(), 3).unwrap().counts(), array![k - 1]);
    }
}

#[test]
fn options_hold_in_space_of_any_number_of_dimensions() {
    let points = array![[0.0f32, 0.0], [f32::NAN, 0.0], [2.0, 0.0]];
    assert_eq!(KdTreeDyn::new(points.view()).err(), non_finite("points", points.view()));
    let tree = KdTreeDyn::<f32>::builder().non_finite_is_absent().leaf_size(1).build_dyn(points.view()).unwrap();
    assert_eq!((tree.len(), tree.is_empty(), tree.dims()), (3, false, 2));
    assert_eq!(tree.knn_self(1).unwrap().indices, array![[2], [3], [0]]);
    let space = Space::periodic(&[Some(3.0), None], &[0.0; 2]);
    let tree = space.builder().non_finite_is_absent().build_dyn(points.view()).unwrap();
    assert_eq!(tree.knn_self(1).unwrap().distances, array![[1.0], [f32::INFINITY], [1.0]]);
}

#[test]
fn dimensions_are_1_to_16() {
    for dims in [0, 17, 64] {
        let points = Array2::<f64>::zeros([5, dims]);
        let error = Some(Error::Dimensions { found: dims, most: 16 });
        assert_eq!(KdTreeDyn::new(points.view()).err(), error);
        assert_eq!(Builder::default().build_dyn(points.view()).err(), error);
    }
    for dims in 1..=16 {
        let tree = KdTreeDyn::new(Array2::<f64>::zeros([0, dims]).view()).unwrap();
        assert_eq!((tree.dims(), tree.is_empty()), (dims, true));
        let queries = Array2::zeros([2, dims]);
        assert_eq!(tree.knn(queries.view(), 1).unwrap().indices, array![[0], [0]]);
        let wrong = Array2::zeros([2, dims + 1]);
        let error = Some(Error::Shape { argument: "queries", found: vec![2, dims + 1], expected: vec![2, dims] });
        assert_eq!(tree.knn(wrong.view(), 1).err(), error);
        assert_eq!(tree.radius(wrong.view(), 1.0).err(), error);
        assert_eq!(tree.radius_count(wrong.view(), 1.0).err(), error);
    }
}
