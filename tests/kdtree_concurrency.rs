//! One tree used from many threads at once.

mod common;

use common::cloud::Cloud;
use common::neighbors::{BruteForce, assert_neighbors, tunings};
use common::random::Random;
use common::{levels, threads};
use pullback::kdtree::{KdTree, Neighbors};
use rayon::prelude::*;
use std::thread;

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<KdTree<f32, 3>>();
    shared::<Neighbors<f64>>();
};

#[test]
fn one_tree_used_by_many_threads() {
    let mut random = Random::new(4);
    let points = Cloud::Clustered.points::<f32>(700, 3, &mut random);
    let queries = Cloud::Clustered.queries(&points, 300, &mut random);
    let brute_force = BruteForce::new(points.view());
    let (expected, of_itself) = (brute_force.knn(queries.view(), 5), brute_force.knn_self(5));
    levels::each(|level| {
        for tuning in tunings() {
            let tree = KdTree::<_, 3>::new(points.view()).unwrap().with_level(level).unwrap().with_tuning(tuning);
            let search = || {
                assert_neighbors(&tree.knn(queries.view(), 5).unwrap(), &expected);
                assert_neighbors(&tree.knn_self(5).unwrap(), &of_itself);
            };
            thread::scope(|scope| (0..8).for_each(|_| drop(scope.spawn(search))));
            threads::with(7, || (0..14).into_par_iter().for_each(|_| search()));
        }
    });
}

/// Trees built inside of parallel work, each by the threads that also build the others.
#[test]
fn trees_built_at_once() {
    let points = Cloud::Uniform.points::<f64>(20_000, 2, &mut Random::new(5));
    let queries = Cloud::Uniform.queries(&points, 20, &mut Random::new(6));
    let expected = BruteForce::new(points.view()).knn(queries.view(), 5);
    threads::with(7, || {
        (0..14).into_par_iter().for_each(|_| {
            let tree = KdTree::<_, 2>::new(points.view()).unwrap();
            assert_neighbors(&tree.knn(queries.view(), 5).unwrap(), &expected);
        });
    });
}
