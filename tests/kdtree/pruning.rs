//! No rounding prunes a neighbour: spacings of a few ulps far from the origin, whatever the metric and the box.

use crate::common::levels;
use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, tunings};
use crate::common::random::Random;
use crate::common::ranges::assert_rows;
use crate::common::space::{METRICS, Space};
use crate::common::values::Value;
use ndarray::{Array2, s};
use pullback::kdtree::KdTreeDyn;

const POINTS: usize = 200;
const QUERIES: usize = 30;

/// Coordinates `offset + spacing * n`, `n` below a number of steps.
#[derive(Clone, Copy)]
struct Grid {
    offset: f64,
    spacing: f64,
    steps: usize,
}

impl Grid {
    fn rows<T: Value>(self, rows: usize, dims: usize, random: &mut Random) -> Array2<T> {
        let mut coordinate = || self.offset + self.spacing * random.below(self.steps) as f64;
        Array2::from_shape_simple_fn([rows, dims], || T::from_f64(coordinate()).expect("rounded"))
    }

    /// Open space, boxes that hold all points, and boxes that fold them, with axes that are open between.
    fn spaces<T: Value>(self, dims: usize) -> Vec<Space<T>> {
        let number = |x: f64| T::from_f64(x).expect("rounded");
        let extent = self.spacing * self.steps as f64;
        let boxes = [(1.0, self.offset), (0.37, 0.0), (0.5, self.offset + 0.21 * extent)];
        let space = |(part, origin)| {
            let lengths: Vec<_> = (0..dims).map(|axis| (axis != 1).then(|| number(part * extent))).collect();
            Space::periodic(&lengths, &vec![number(origin); dims])
        };
        [Space::open(dims)].into_iter().chain(boxes.map(space)).collect()
    }
}

const SINGLE: [Grid; 4] = [
    Grid { offset: 1e4, spacing: 1e-3, steps: 500 },
    Grid { offset: 16_777_000.0, spacing: 1.0, steps: 400 },
    Grid { offset: 1.0, spacing: f32::EPSILON as f64, steps: 300 },
    Grid { offset: -3e4, spacing: 0.1, steps: 1000 },
];

const DOUBLE: [Grid; 4] = [
    Grid { offset: 1e4, spacing: 1e-3, steps: 500 },
    Grid { offset: 1e15, spacing: 0.1, steps: 100 },
    Grid { offset: 1.0, spacing: f64::EPSILON, steps: 300 },
    Grid { offset: 1e-310, spacing: 1e-313, steps: 1000 },
];

/// Points and queries on a grid, in a space.
struct Problem<T> {
    points: Array2<T>,
    queries: Array2<T>,
    space: Space<T>,
}

impl<T: Value> Problem<T> {
    /// Every space of every grid, in one dimension to three and in more.
    fn all(grids: [Grid; 4]) -> impl Iterator<Item = Self> {
        let dims = grids.into_iter().flat_map(|grid| [1, 2, 3, 6].map(|dims| (grid, dims)));
        dims.flat_map(|(grid, dims)| grid.spaces(dims).into_iter().map(move |space| Self::new(grid, dims, space)))
    }

    fn new(grid: Grid, dims: usize, space: Space<T>) -> Self {
        let mut random = Random::new(dims as u64);
        let points = grid.rows(POINTS, dims, &mut random);
        let mut queries: Array2<T> = grid.rows(QUERIES, dims, &mut random);
        // Between the points, and at them.
        let half = T::from_f64(grid.spacing * 0.5).expect("rounded");
        queries.slice_mut(s![..;2, ..]).mapv_inplace(|x| x + half);
        Self { points, queries, space }
    }

    fn tree(&self) -> KdTreeDyn<T> {
        self.space.builder().leaf_size(16).build_dyn(self.points.view()).expect("the points are good")
    }

    /// Runs `check` with the tree at every level, whatever is chosen by size.
    fn trees(&self, check: impl Fn(&KdTreeDyn<T>)) {
        levels::each(|level| {
            let mut tree = self.tree().with_level(level).expect("the level is available");
            for tuning in tunings() {
                tree = tree.with_tuning(tuning);
                check(&tree);
            }
        });
    }

    fn check_neighbors(&self) {
        let queries = self.queries.view();
        for metric in METRICS {
            let brute_force = BruteForce::in_space(self.space.clone(), self.points.view()).metric(metric);
            let (nearest, of_itself) = (brute_force.knn(queries, 6), brute_force.knn_self(2));
            let radii = Limits::Each(nearest.distances.column(5).to_owned());
            let within = brute_force.radius(queries, &radii, false);
            let radius = of_itself.distances[[POINTS / 2, 1]];
            let pairs = brute_force.pairs_within(radius);
            self.trees(|tree| {
                let search = tree.search().metric(metric);
                let per_query = || radii.per_query().expect("a radius");
                assert_neighbors(&search.knn(queries, 6).unwrap(), &nearest);
                assert_neighbors(&search.knn_self(2).unwrap(), &of_itself);
                assert_rows(&search.radius(queries, per_query()).unwrap(), &within);
                assert_eq!(search.radius_count(queries, per_query()).unwrap(), within.counts());
                assert_eq!(search.pairs_within(radius).unwrap(), pairs);
            });
        }
    }

    /// Without a word from brute force: what a search reports is what another takes.
    fn check_reported(&self) {
        let queries = self.queries.view();
        for (metric, k) in METRICS.into_iter().flat_map(|metric| [1, 6, 40].map(|k| (metric, k))) {
            let tree = self.tree();
            let nearest = tree.search().metric(metric).knn(queries, k).unwrap();
            let radii = nearest.distances.column(k - 1).to_owned();
            let larger = radii.mapv(Value::up);
            let nearer: Vec<usize> = nearest
                .distances
                .outer_iter()
                .map(|row| row.iter().filter(|&&distance| distance < row[k - 1]).count())
                .collect();
            self.trees(|tree| {
                let search = tree.search().metric(metric);
                let found = search.by_distance().radius(queries, radii.view()).unwrap();
                for (query, row) in nearest.indices.outer_iter().enumerate() {
                    let within = found.indices.slice(s![found.offsets[query]..found.offsets[query + 1]]);
                    assert_eq!(within.slice(s![..k]), row, "query {query}");
                }
                // The bound one ulp larger keeps all k, the distance itself what is nearer.
                assert!(search.within(larger.view()).knn(queries, k).unwrap() == nearest);
                assert_eq!(search.within(radii.view()).knn(queries, k).unwrap().counts().to_vec(), nearer);
            });
        }
    }
}

#[test]
fn no_rounding_prunes_a_neighbour() {
    Problem::<f32>::all(SINGLE).for_each(|problem| problem.check_neighbors());
    Problem::<f64>::all(DOUBLE).for_each(|problem| problem.check_neighbors());
}

#[test]
fn the_kth_distance_as_a_radius_returns_all_k() {
    Problem::<f32>::all(SINGLE).for_each(|problem| problem.check_reported());
    Problem::<f64>::all(DOUBLE).for_each(|problem| problem.check_reported());
}
