//! A problem for every search of a tree, from a few small numbers, and its check against brute force.

use super::limits::{Limit, Limits};
use super::neighbors::{BruteForce, assert_neighbors, non_finite, order};
use super::neighbors_case::Case;
use super::random::Random;
use super::ranges::assert_rows;
use super::space::Axes;
use super::threads;
use super::values::Value;
use ndarray::{Array2, ArrayView2};
use pullback::kdtree::{KdTreeDyn, Metric, PerQuery, Search};
use pullback::{Error, Level};

/// A problem. The data follow from the case's seed.
#[derive(Clone, Debug)]
pub struct SearchCase {
    pub case: Case,
    pub metric: Metric,
    pub periodic: Axes,
    /// Where bounds are drawn from, if there are any.
    pub bound: Option<Limit>,
    pub radius: Limit,
    /// Whether bounds and radii are one a query.
    pub each: bool,
    pub squared: bool,
    pub by_distance: bool,
}

impl Default for SearchCase {
    /// [`Case::default`] by L2 in open space, without bounds, and within distances of neighbours.
    fn default() -> Self {
        Self {
            case: Case::default(),
            metric: Metric::L2,
            periodic: Axes::None,
            bound: None,
            radius: Limit::Any,
            each: false,
            squared: false,
            by_distance: false,
        }
    }
}

impl SearchCase {
    /// Builds the tree and compares every search at a level with brute force.
    pub fn check(&self, level: Level) {
        threads::with(self.case.threads, || match self.case.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    fn check_element<T: Value>(&self, level: Level) {
        let (case, mut random) = (&self.case, Random::new(self.case.seed));
        let mut points: Array2<T> = case.cloud.points(case.points, case.dims, &mut random);
        let space = self.periodic.space(&points, &mut random);
        space.scatter(&mut points, &mut random);
        let mut queries = case.cloud.queries(&points, case.queries, &mut random);
        space.scatter(&mut queries, &mut random);
        case.punch(&mut points, &mut random);
        case.punch(&mut queries, &mut random);

        let builder = space.builder().leaf_size(case.leaf);
        let builder = if case.absent { builder.non_finite_is_absent() } else { builder };
        let built = builder.build_dyn(points.view());
        if let Some(error) = self.refused("points", &points) {
            assert_eq!(built.err(), Some(error));
            return;
        }
        let tree: KdTreeDyn<T> = built.and_then(|tree| tree.with_level(level)).expect("the points are good");
        let tree = tree.with_tuning(case.tuning);
        assert_eq!((tree.len(), tree.dims(), tree.level()), (case.points, case.dims, level));

        let brute_force = BruteForce::in_space(space, points.view()).metric(self.metric).squared(self.squared);
        self.check_points(&tree, &brute_force, &mut random);
        if let Some(error) = self.refused("queries", &queries) {
            let one = || PerQuery::One(T::one());
            assert_eq!(tree.search().knn(queries.view(), case.k).err(), Some(error.clone()));
            assert_eq!(tree.search().radius(queries.view(), one()).err(), Some(error.clone()));
            assert_eq!(tree.search().radius_count(queries.view(), one()).err(), Some(error));
            return;
        }
        self.check_queries(&tree, &brute_force, queries.view(), &mut random);
    }

    fn refused<T: Value>(&self, argument: &'static str, rows: &Array2<T>) -> Option<Error> {
        non_finite(argument, rows.view()).filter(|_| !self.case.absent)
    }

    fn search<'a, T: Value>(&self, tree: &'a KdTreeDyn<T>) -> Search<'a, T> {
        let search = tree.search().metric(self.metric);
        let search = if self.squared { search.squared() } else { search };
        if self.by_distance { search.by_distance() } else { search }
    }

    /// The searches of the points themselves.
    pub fn check_points<T: Value>(&self, tree: &KdTreeDyn<T>, brute_force: &BruteForce<T>, random: &mut Random) {
        let distances = sorted(brute_force, (0..brute_force.len()).map(|row| brute_force.of_point(row)));
        let bounds = self.bound.map_or(Limits::None, |limit| Limits::draw(limit, self.each, &distances, random));
        let search = self.search(tree);
        let found = bounds.per_query().map_or(search, |bounds| search.within(bounds)).knn_self(self.case.k);
        let expected = brute_force.knn_self_within(self.case.k, &bounds);
        assert_neighbors(&found.expect("the size is small"), &expected);

        let radius = Limits::draw(self.radius, false, &distances, random).of(0);
        let found = search.pairs_within(radius).expect("the size is small");
        assert_eq!(found, brute_force.pairs_within(radius), "pairs within {radius:?}");
    }

    /// The searches of queries.
    pub fn check_queries<T: Value>(
        &self,
        tree: &KdTreeDyn<T>,
        brute_force: &BruteForce<T>,
        queries: ArrayView2<'_, T>,
        random: &mut Random,
    ) {
        let distances = sorted(brute_force, brute_force.of_queries(queries));
        let bounds = self.bound.map_or(Limits::None, |limit| Limits::draw(limit, self.each, &distances, random));
        let search = self.search(tree);
        let found = bounds.per_query().map_or(search, |bounds| search.within(bounds)).knn(queries, self.case.k);
        let expected = brute_force.knn_within(queries, self.case.k, &bounds);
        assert_neighbors(&found.expect("the queries are good"), &expected);

        let radii = Limits::draw(self.radius, self.each, &distances, random);
        let expected = brute_force.radius(queries, &radii, self.by_distance);
        let per_query = || radii.per_query().expect("a radius");
        assert_rows(&search.radius(queries, per_query()).expect("the queries are good"), &expected);
        let counts = search.radius_count(queries, per_query()).expect("the queries are good");
        assert_eq!(counts, expected.counts(), "counts");
    }
}

/// The distances of each query's neighbours.
fn sorted<T: Value>(brute_force: &BruteForce<T>, neighbors: impl Iterator<Item = Vec<(T, u32)>>) -> Vec<Vec<T>> {
    let distances = |mut neighbors: Vec<(T, u32)>| {
        neighbors.sort_unstable_by(order);
        neighbors.iter().map(|neighbor| brute_force.distance(neighbor)).collect()
    };
    neighbors.map(distances).collect()
}
