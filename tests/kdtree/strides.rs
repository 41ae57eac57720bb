//! Points, queries, bounds and radii of any strides give the bits of their copies in standard layout.

use crate::common::levels;
use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, tunings};
use crate::common::random::Random;
use crate::common::ranges::assert_rows;
use crate::common::space::Space;
use crate::common::strides::{Strided, Strides};
use crate::common::values::Value;
use ndarray::{Ix1, Ix2};
use pullback::Level;
use pullback::kdtree::KdTree;

/// Row-major and column-major, with any axis reversed, every second element of a longer one, or one element all along.
fn patterns() -> impl Iterator<Item = Strides> {
    (0..128).map(|bits| Strides {
        order: bits & 1,
        reversed: (bits >> 1 & 3) as u8,
        halved: (bits >> 3 & 3) as u8,
        broadcast: (bits >> 5 & 3) as u8,
    })
}

fn check<T: Value, const D: usize>(level: Level, points: Strides, queries: Strides) {
    let mut random = Random::new(9);
    let mut draw = || T::from_usize(random.below(50)).expect("a small integer");
    let points = Strided::new(Ix2(70, D), points, &mut draw);
    let queries = Strided::new(Ix2(33, D), queries, &mut draw);
    let brute_force = BruteForce::new(points.view());
    let (expected, of_itself) = (brute_force.knn(queries.view(), 3), brute_force.knn_self(3));
    let mut tree = KdTree::<T, D>::new(points.view()).unwrap().with_level(level).unwrap();
    for tuning in tunings() {
        tree = tree.with_tuning(tuning);
        assert_neighbors(&tree.knn(queries.view(), 3).unwrap(), &expected);
        assert_neighbors(&tree.knn_self(3).unwrap(), &of_itself);
    }
}

#[test]
fn every_pattern_of_strides() {
    levels::each(|level| {
        for pattern in patterns() {
            check::<f32, 3>(level, pattern, Strides::default());
            check::<f64, 3>(level, Strides::default(), pattern);
            check::<f32, 5>(level, pattern, pattern);
        }
    });
}

fn check_searches<T: Value>(level: Level, queries: Strides, limits: Strides) {
    let mut random = Random::new(10);
    let mut draw = || T::from_usize(random.below(9)).expect("a small integer");
    let points = Strided::new(Ix2(60, 3), queries, &mut draw);
    let queries = Strided::new(Ix2(21, 3), queries, &mut draw);
    let [radii, bounds] = [21, 60].map(|rows| Strided::new(Ix1(rows), limits, &mut draw));
    let five = T::from_f32(5.0).expect("a small integer");
    let space = Space::periodic(&[None, Some(five), None], &[T::zero(); 3]);
    let brute_force = BruteForce::in_space(space.clone(), points.view());
    let tree = space.builder().build_dyn(points.view()).unwrap().with_level(level).unwrap();
    let search = tree.search();

    let [of_queries, of_points] = [&radii, &bounds].map(|limits| Limits::Each(limits.view().to_owned()));
    let found = search.within(radii.view()).knn(queries.view(), 3).unwrap();
    assert_neighbors(&found, &brute_force.knn_within(queries.view(), 3, &of_queries));
    let found = search.within(bounds.view()).knn_self(3).unwrap();
    assert_neighbors(&found, &brute_force.knn_self_within(3, &of_points));
    let rows = brute_force.radius(queries.view(), &of_queries, false);
    assert_rows(&search.radius(queries.view(), radii.view()).unwrap(), &rows);
    assert_eq!(search.radius_count(queries.view(), radii.view()).unwrap(), rows.counts());
}

#[test]
fn every_pattern_of_strides_in_every_search() {
    // Axes beyond the only one of bounds and radii do not matter.
    let limits = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)];
    let limits = limits.map(|(reversed, halved, broadcast)| Strides { order: 0, reversed, halved, broadcast });
    levels::each(|level| {
        for (at, pattern) in patterns().enumerate() {
            check_searches::<f32>(level, pattern, limits[at % 5]);
            check_searches::<f64>(level, pattern, limits[at % 5]);
        }
    });
}
