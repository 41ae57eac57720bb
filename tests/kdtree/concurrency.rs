//! One tree used from many threads at once.

use crate::common::cloud::Cloud;
use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, tunings};
use crate::common::random::Random;
use crate::common::ranges::assert_rows;
use crate::common::space::{METRICS, Space};
use crate::common::{levels, threads};
use pullback::kdtree::{KdTree, KdTreeDyn, Neighbors, RadiusNeighbors, Search};
use rayon::prelude::*;
use std::thread;

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<KdTree<f32, 3>>();
    shared::<KdTreeDyn<f64>>();
    shared::<Neighbors<f64>>();
    shared::<RadiusNeighbors<f32>>();
    shared::<Search<'_, f32>>();
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

/// One search by each metric, copied to threads that ask different things of it at once.
#[test]
fn one_search_used_by_many_threads() {
    let mut random = Random::new(7);
    let points = Cloud::Uniform.points::<f32>(500, 3, &mut random);
    let queries = Cloud::Uniform.queries(&points, 200, &mut random);
    let space = Space::periodic(&[Some(1.5), None, Some(0.7)], &[-1.0, 0.0, 0.1]);
    for metric in METRICS {
        let brute_force = BruteForce::in_space(space.clone(), points.view()).metric(metric);
        let nearest = brute_force.knn(queries.view(), 5);
        let radii = Limits::Each(nearest.distances.column(3).to_owned());
        let (bounded, within) =
            (brute_force.knn_within(queries.view(), 5, &radii), brute_force.radius(queries.view(), &radii, true));
        let pairs = brute_force.pairs_within(0.1);
        levels::each(|level| {
            for tuning in tunings() {
                let tree = space.builder().build_dyn(points.view()).unwrap().with_level(level).unwrap();
                let tree = tree.with_tuning(tuning);
                let search = tree.search().metric(metric).by_distance();
                let ask = |at: usize| {
                    let limits = || radii.per_query().expect("a radius");
                    match at % 4 {
                        0 => assert_neighbors(&search.knn(queries.view(), 5).unwrap(), &nearest),
                        1 => assert_neighbors(&search.within(limits()).knn(queries.view(), 5).unwrap(), &bounded),
                        2 => assert_rows(&search.radius(queries.view(), limits()).unwrap(), &within),
                        _ => assert_eq!(search.pairs_within(0.1).unwrap(), pairs),
                    }
                };
                thread::scope(|scope| (0..8).for_each(|at| drop(scope.spawn(move || ask(at)))));
                threads::with(7, || (0..16).into_par_iter().for_each(ask));
            }
        });
    }
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
