//! Points and queries of any strides give the bits of their copies in standard layout.

mod common;

use common::levels;
use common::neighbors::{BruteForce, assert_neighbors, tunings};
use common::random::Random;
use common::strides::{Strided, Strides};
use common::values::Value;
use ndarray::Ix2;
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
