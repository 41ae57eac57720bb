//! Boxes whose opposite faces are one: what is wrapped, to where, and which image is the nearest.

use crate::common::cloud::Cloud;
use crate::common::levels;
use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, tunings};
use crate::common::random::Random;
use crate::common::ranges::assert_rows;
use crate::common::space::{METRICS, Space};
use crate::common::values::Value;
use ndarray::{Array2, array};
use pullback::kdtree::{KdTree, KdTreeDyn, Metric};

/// Runs `check` with the tree of some points in a space at every level, whatever is chosen by size.
fn trees<T: Value>(space: &Space<T>, points: &Array2<T>, check: impl Fn(&KdTreeDyn<T>)) {
    levels::each(|level| {
        let mut tree = space.builder().leaf_size(16).build_dyn(points.view()).unwrap().with_level(level).unwrap();
        for tuning in tunings() {
            tree = tree.with_tuning(tuning);
            check(&tree);
        }
    });
}

/// Every search by every metric finds what brute force does.
fn exact<T: Value>(space: &Space<T>, points: &Array2<T>, queries: &Array2<T>, k: usize) {
    for metric in METRICS {
        let brute_force = BruteForce::in_space(space.clone(), points.view()).metric(metric);
        let (nearest, of_itself) = (brute_force.knn(queries.view(), k), brute_force.knn_self(k));
        let radii = Limits::Each(nearest.distances.column(k - 1).to_owned());
        let (within, radius) = (brute_force.radius(queries.view(), &radii, false), radii.of(0));
        let pairs = brute_force.pairs_within(radius);
        trees(space, points, |tree| {
            let search = tree.search().metric(metric);
            assert_neighbors(&search.knn(queries.view(), k).unwrap(), &nearest);
            assert_neighbors(&search.knn_self(k).unwrap(), &of_itself);
            assert_rows(&search.radius(queries.view(), radii.per_query().unwrap()).unwrap(), &within);
            assert_eq!(search.pairs_within(radius).unwrap(), pairs);
        });
    }
}

#[test]
fn neighbours_are_found_through_every_face() {
    let space = Space::periodic(&[Some(10.0f32), Some(4.0), None], &[-5.0, 1.0, 7.0]);
    let points = array![[-4.5, 1.5, 0.0], [4.5, 4.5, 0.0], [0.0, 3.0, 0.0], [0.0, 3.0, 100.0]];
    trees(&space, &points, |tree| {
        // Images of the first two are 1 apart on both axes; the last axis is open.
        let found = tree.search().metric(Metric::L1).knn_self(3).unwrap();
        assert_eq!(found.indices.row(0), array![1, 2, 3]);
        assert_eq!(found.distances.row(0), array![2.0, 6.0, 106.0]);
        let found = tree.knn(array![[4.75, 4.75, 0.0], [-4.75, 1.25, 1.0]].view(), 2).unwrap();
        assert_eq!(found.indices, array![[1, 0], [0, 1]]);
        let found = tree.search().metric(Metric::Linf).pairs_within(1.0).unwrap();
        assert_eq!(found, array![[0, 1]]);
    });
}

#[test]
fn the_upper_face_is_the_lower_one() {
    let space = Space::periodic(&[Some(3.0)], &[1.0]);
    let points = array![[1.0], [4.0], [7.0], [-2.0], [2.5]];
    exact(&space, &points, &points, 5);
    trees(&space, &points, |tree| {
        let found = tree.radius(array![[4.0], [1.0], [-299.0]].view(), 0.0).unwrap();
        assert_eq!(found.indices, array![0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
        // Half of the box away in either direction.
        assert_eq!(tree.knn(array![[2.5]].view(), 5).unwrap().distances, array![[0.0, 1.5, 1.5, 1.5, 1.5]]);
    });
}

#[test]
fn every_point_is_found_once() {
    let space = Space::periodic(&[Some(1.0f32), Some(2.0)], &[0.0, 0.0]);
    let points: Array2<f32> = Cloud::Uniform.points(300, 2, &mut Random::new(3));
    trees(&space, &points, |tree| {
        // A ball that reaches every image of the box many times.
        for radius in [1.5, 100.0, f32::INFINITY] {
            let found = tree.radius(points.view(), radius).unwrap();
            assert!((0..300).all(|query| found.offsets[query + 1] == 300 * (query + 1)), "{radius}");
            assert!(found.indices.iter().copied().eq((0..300).cycle().take(300 * 300)));
        }
        assert_eq!(tree.pairs_within(100.0).unwrap().nrows(), 300 * 299 / 2);
        assert_eq!(tree.knn_self(300).unwrap().counts().sum(), 300 * 299);
    });
}

/// The length of a box less an infinity would be the nearest of all.
#[test]
fn padding_is_no_neighbour() {
    for points in 0..20 {
        let points: Array2<f32> = Cloud::Uniform.points(points, 2, &mut Random::new(3));
        for space in [Space::periodic(&[Some(0.7); 2], &[0.0; 2]), Space::periodic(&[None, Some(1e30)], &[0.0, -1e30])]
        {
            exact(&space, &points, &array![[0.1, 0.1], [5.0, -3.0]], points.nrows() + 3);
        }
    }
}

/// With lengths and coordinates that are integers nothing is rounded, so whole boxes change nothing.
#[test]
fn whole_boxes_change_no_bit() {
    let mut random = Random::new(6);
    let lengths = [8.0, 16.0, 32.0];
    let integers = |rows, random: &mut Random| {
        Array2::from_shape_fn([rows, 3], |(_, axis)| random.below(lengths[axis] as usize * 8) as f64 / 8.0 - 4.0)
    };
    let (points, queries) = (integers(500, &mut random), integers(60, &mut random));
    let mut moved = |rows: &Array2<f64>| {
        Array2::from_shape_fn(rows.dim(), |at| rows[at] + lengths[at.1] * (random.below(2001) as f64 - 1000.0))
    };
    let (moved_points, moved_queries) = (moved(&points), moved(&queries));
    let space = Space::periodic(&lengths.map(Some), &[-4.0; 3]);
    trees(&space, &points, |tree| {
        let same = space.builder().build_dyn(moved_points.view()).unwrap();
        for metric in METRICS {
            let (search, of_moved) = (tree.search().metric(metric), same.search().metric(metric));
            let nearest = search.knn(queries.view(), 5).unwrap();
            assert!(of_moved.knn(moved_queries.view(), 5).unwrap() == nearest);
            assert!(of_moved.knn_self(5).unwrap() == search.knn_self(5).unwrap());
            assert_eq!(of_moved.pairs_within(1.5).unwrap(), search.pairs_within(1.5).unwrap());
        }
    });
}

/// An ulp below the box is an ulp below its upper face, which wrapping again would move to the lower one.
#[test]
fn points_are_wrapped_once() {
    let (length, origin) = (1.25f32, -0.7f32);
    let space = Space::periodic(&[Some(length)], &[origin]);
    let outside = origin.next_down();
    assert_eq!(space.wrap(0, outside), outside + length);
    assert_eq!(space.wrap(0, outside + length), origin);
    let points = array![[outside], [0.3], [outside + length], [-0.1], [origin]];
    exact(&space, &points, &points, 4);
    trees(&space, &points, |tree| {
        let found = tree.radius(points.view(), 0.0).unwrap();
        assert_eq!(found.indices, array![0, 2, 4, 1, 0, 2, 4, 3, 0, 2, 4]);
    });
}

/// A box so small that no coordinate but its corner lies in it, and boxes whose upper face overflows.
#[test]
fn boxes_of_extreme_sizes() {
    let points: Array2<f32> = Cloud::Spread.points(100, 2, &mut Random::new(8));
    let huge: Array2<f32> = Cloud::Huge.points(100, 2, &mut Random::new(8));
    for (lengths, origin) in [
        ([1e-3, 1.0], [1e5, 0.0]),
        ([f32::MIN_POSITIVE, f32::MAX], [0.0, 0.0]),
        ([f32::MAX, f32::MAX], [f32::MAX, f32::MIN]),
        ([f32::subnormal(), 3e38], [-1.0, 3e38]),
        ([1e38, 7.0], [3e37, -3e38]),
    ] {
        let space = Space::periodic(&lengths.map(Some), &origin);
        exact(&space, &points, &huge, 7);
        exact(&space, &huge, &points, 7);
    }
}

#[test]
fn a_box_that_nothing_leaves_differs_from_open_space_by_its_images_alone() {
    let points: Array2<f64> = Cloud::Uniform.points(200, 3, &mut Random::new(9));
    let open = KdTree::<f64, 3>::new(points.view()).unwrap().knn_self(8).unwrap();
    let boxed = KdTree::<f64, 3>::builder().periodic(&[Some(1e3); 3]).origin(&[-500.0; 3]);
    let found = boxed.build::<3>(points.view()).unwrap().knn_self(8).unwrap();
    assert_eq!(found, open);
    let none = KdTree::<f64, 3>::builder().periodic(&[None; 3]).origin(&[1.0, 2.0, 3.0]);
    assert_eq!(none.build::<3>(points.view()).unwrap().knn_self(8).unwrap(), open);
}
