//! No rounding prunes a neighbour: spacings of a few ulps far from the origin, whatever the metric and the box.

mod common;

use common::levels;
use common::limits::Limits;
use common::neighbors::{BruteForce, assert_neighbors, tunings};
use common::random::Random;
use common::ranges::assert_rows;
use common::space::{METRICS, Space};
use common::values::Value;
use ndarray::{Array1, Array2, s};
use pullback::Level;
use pullback::kdtree::{KdTreeDyn, Metric, Search};

const POINTS: usize = 600;
const QUERIES: usize = 80;
const K: usize = 6;

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
        let boxes = [(1.0, self.offset), (0.37, self.offset), (0.37, 0.0), (0.5, self.offset + 0.21 * extent), (2.1, -0.1)];
        let space = |(part, origin)| {
            let lengths: Vec<_> = (0..dims).map(|axis| (axis != 1).then(|| number(part * extent))).collect();
            Space::periodic(&lengths, &vec![number(origin); dims])
        };
        [Space::open(dims)].into_iter().chain(boxes.map(space)).collect()
    }
}

/// Runs `check` with a tree and a search by each metric in each space, whatever is chosen by size.
fn searches<T: Value>(level: Level, grid: Grid, dims: usize, check: impl Fn(&KdTreeDyn<T>, &Problem<T>)) {
    let mut random = Random::new(dims as u64);
    let points = grid.rows(POINTS, dims, &mut random);
    let mut queries: Array2<T> = grid.rows(QUERIES, dims, &mut random);
    // Between the points, and at them.
    let half = T::from_f64(grid.spacing * 0.5).expect("rounded");
    queries.slice_mut(s![..;2, ..]).mapv_inplace(|x| x + half);
    for space in grid.spaces(dims) {
        let tree = space.builder().leaf_size(16).build_dyn(points.view()).expect("the points are good");
        let mut tree = tree.with_level(level).expect("the level is available");
        for metric in METRICS {
            let problem = Problem {
                metric,
                brute_force: BruteForce::in_space(space.clone(), points.view()).metric(metric),
                queries: queries.clone(),
            };
            for tuning in tunings() {
                tree = tree.with_tuning(tuning);
                check(&tree, &problem);
            }
        }
    }
}

struct Problem<T> {
    metric: Metric,
    brute_force: BruteForce<T>,
    queries: Array2<T>,
}

impl<T: Value> Problem<T> {
    fn search<'a>(&self, tree: &'a KdTreeDyn<T>) -> Search<'a, T> {
        tree.search().metric(self.metric)
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

/// Runs a check on every grid, in one to three dimensions and in more.
macro_rules! everywhere {
    ($check:ident) => {
        levels::each(|level| {
            for dims in [1, 2, 3, 6] {
                SINGLE.iter().for_each(|&grid| searches::<f32>(level, grid, dims, $check));
                DOUBLE.iter().for_each(|&grid| searches::<f64>(level, grid, dims, $check));
            }
        });
    };
}

#[test]
fn no_rounding_prunes_a_neighbour() {
    fn check<T: Value>(tree: &KdTreeDyn<T>, Problem { metric, brute_force, queries }: &Problem<T>) {
        let search = tree.search().metric(*metric);
        let expected = brute_force.knn(queries.view(), K);
        assert_neighbors(&search.knn(queries.view(), K).unwrap(), &expected);
        let radii = Limits::Each(expected.distances.column(K - 1).to_owned());
        let found = search.radius(queries.view(), radii.per_query().expect("a radius")).unwrap();
        assert_rows(&found, &brute_force.radius(queries.view(), &radii, false));
        assert_eq!(search.radius_count(queries.view(), radii.per_query().expect("a radius")).unwrap(), found.counts());
    }
    everywhere!(check);
}

#[test]
fn no_rounding_prunes_another_point() {
    fn check<T: Value>(tree: &KdTreeDyn<T>, problem: &Problem<T>) {
        let search = problem.search(tree);
        let expected = problem.brute_force.knn_self(2);
        assert_neighbors(&search.knn_self(2).unwrap(), &expected);
        let radius = expected.distances[[POINTS / 2, 1]];
        assert_eq!(search.pairs_within(radius).unwrap(), problem.brute_force.pairs_within(radius));
    }
    levels::each(|level| {
        SINGLE.iter().for_each(|&grid| searches::<f32>(level, grid, 3, check));
        DOUBLE.iter().for_each(|&grid| searches::<f64>(level, grid, 2, check));
    });
}

/// Without a word from brute force: what a search reports is what another takes.
#[test]
fn the_kth_distance_as_a_radius_returns_all_k() {
    fn check<T: Value>(tree: &KdTreeDyn<T>, problem: &Problem<T>) {
        let queries = problem.queries.view();
        for k in [1, K, 40] {
            let nearest = problem.search(tree).knn(queries, k).unwrap();
            let radii: Array1<T> = nearest.distances.column(k - 1).to_owned();
            let found = problem.search(tree).by_distance().radius(queries, &radii).unwrap();
            for (query, row) in nearest.indices.outer_iter().enumerate() {
                let within = found.indices.slice(s![found.offsets[query]..found.offsets[query + 1]]);
                assert_eq!(within.slice(s![..k]), row, "query {query} of {} points", tree.len());
            }
            // The bound one ulp larger keeps all k, the distance itself what is nearer.
            let larger = radii.mapv(Value::up);
            assert!(problem.search(tree).within(&larger).knn(queries, k).unwrap() == nearest);
            let nearer = problem.search(tree).within(&radii).knn(queries, k).unwrap().counts();
            for (query, distances) in nearest.distances.outer_iter().enumerate() {
                assert_eq!(nearer[query], distances.iter().filter(|&&d| d < radii[query]).count());
            }
        }
    }
    everywhere!(check);
}
