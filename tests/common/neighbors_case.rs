//! A problem for the search of neighbours, from a few small numbers, and its check against brute force.

use super::cloud::Cloud;
use super::neighbors::{BruteForce, assert_neighbors, non_finite};
use super::random::Random;
use super::threads;
use super::values::Value;
use ndarray::Array2;
use pullback::Level;
use pullback::kdtree::{Builder, KdTree, Tuning};

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct Case {
    pub dims: usize,
    pub points: usize,
    pub queries: usize,
    pub k: usize,
    pub cloud: Cloud,
    /// One row in this many has a coordinate that is not finite, none where it is 0.
    pub holes: usize,
    /// Whether rows that are not finite are absent instead of errors.
    pub absent: bool,
    pub leaf: usize,
    /// Whether elements are f64.
    pub double: bool,
    pub tuning: Tuning,
    pub threads: usize,
    pub seed: u64,
}

impl Default for Case {
    /// The five nearest of 100 points in three dimensions to each of 33 queries, in f32, tuned by size.
    fn default() -> Self {
        Self {
            dims: 3,
            points: 100,
            queries: 33,
            k: 5,
            cloud: Cloud::Uniform,
            holes: 0,
            absent: false,
            leaf: 32,
            double: false,
            tuning: Tuning::default(),
            threads: 2,
            seed: 0,
        }
    }
}

impl Case {
    /// Builds the tree and compares both searches at a level with brute force.
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    fn check_element<T: Value>(&self, level: Level) {
        macro_rules! of_dims {
            ($($dims:literal)*) => {
                match self.dims {
                    $($dims => self.check_dims::<T, $dims>(level),)*
                    dims => panic!("{dims} dimensions"),
                }
            };
        }
        of_dims!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16);
    }

    fn check_dims<T: Value, const D: usize>(&self, level: Level) {
        let mut random = Random::new(self.seed);
        let mut points: Array2<T> = self.cloud.points(self.points, D, &mut random);
        let mut queries = self.cloud.queries(&points, self.queries, &mut random);
        self.punch(&mut points, &mut random);
        self.punch(&mut queries, &mut random);

        let builder = Builder::<T>::default().leaf_size(self.leaf);
        let builder = if self.absent { builder.non_finite_is_absent() } else { builder };
        let refused = |argument, rows: &Array2<T>| non_finite(argument, rows.view()).filter(|_| !self.absent);
        let built = builder.build::<D>(points.view());
        if let Some(error) = refused("points", &points) {
            assert_eq!(built.err(), Some(error));
            return;
        }
        let tree: KdTree<T, D> = built.and_then(|tree| tree.with_level(level)).expect("the points are good");
        let tree = tree.with_tuning(self.tuning);
        assert_eq!((tree.len(), tree.is_empty(), tree.level()), (self.points, self.points == 0, level));

        let brute_force = BruteForce::new(points.view());
        assert_neighbors(&tree.knn_self(self.k).expect("the size is small"), &brute_force.knn_self(self.k));
        let found = tree.knn(queries.view(), self.k);
        if let Some(error) = refused("queries", &queries) {
            assert_eq!(found.err(), Some(error));
            return;
        }
        assert_neighbors(&found.expect("the queries are good"), &brute_force.knn(queries.view(), self.k));
    }

    /// Makes some rows not finite.
    pub fn punch<T: Value>(&self, rows: &mut Array2<T>, random: &mut Random) {
        for mut row in rows.outer_iter_mut() {
            if self.holes > 0 && random.below(self.holes) == 0 {
                row[random.below(self.dims)] = random.one_of(&[T::nan(), T::infinity(), T::neg_infinity()]);
            }
        }
    }
}
