//! Metrics, boxes, bounds and radii in real clouds.

use crate::common::limits::Limits;
use crate::common::neighbors::{BruteForce, assert_neighbors, assert_neighbors_of, tunings};
use crate::common::ranges::assert_rows;
use crate::common::space::{METRICS, Space};
use crate::common::values::Value;
use crate::common::{files, levels};
use ndarray::{Array1, Array2, Axis, s};
use pullback::kdtree::{KdTreeDyn, Metric, PerQuery};

/// Compares every search by every metric with brute force at every `step`th point, at every level.
fn check<T: Value>(space: &Space<T>, points: &Array2<T>, step: usize, radius: T) {
    let rows: Vec<usize> = (0..points.nrows()).step_by(step).collect();
    let queries = points.select(Axis(0), &rows).mapv(|x| x + radius / T::from_f32(7.0).expect("rounded"));
    for metric in METRICS {
        let brute_force = BruteForce::in_space(space.clone(), points.view()).metric(metric);
        let (nearest, of_itself) = (brute_force.knn(queries.view(), 6), brute_force.knn_self_of(&rows, 6));
        let bounds = Limits::Each(nearest.distances.column(4).to_owned());
        let bounded = brute_force.knn_within(queries.view(), 6, &bounds);
        let within = brute_force.radius(queries.view(), &bounds, false);
        let nearby = brute_force.radius(queries.view(), &Limits::One(radius), true);
        let degrees = degrees(&brute_force, &rows, radius);
        levels::each(|level| {
            let tree = space.builder().non_finite_is_absent().build_dyn(points.view()).unwrap();
            let mut tree = tree.with_level(level).unwrap();
            for tuning in tunings() {
                tree = tree.with_tuning(tuning);
                let (search, limits) = (tree.search().metric(metric), || bounds.per_query().expect("a bound"));
                assert_neighbors(&search.knn(queries.view(), 6).unwrap(), &nearest);
                assert_neighbors_of(&search.knn_self(6).unwrap(), &rows, &of_itself);
                assert_neighbors(&search.within(limits()).knn(queries.view(), 6).unwrap(), &bounded);
                assert_rows(&search.radius(queries.view(), limits()).unwrap(), &within);
                assert_rows(&search.by_distance().radius(queries.view(), PerQuery::One(radius)).unwrap(), &nearby);
                assert_eq!(search.radius_count(queries.view(), PerQuery::One(radius)).unwrap(), nearby.counts());
            }
            let pairs = search_pairs(&tree, metric, radius);
            assert_eq!(pairs.select(Axis(0), &rows), degrees, "points in pairs");
        });
    }
}

/// In how many pairs each point is.
fn search_pairs<T: Value>(tree: &KdTreeDyn<T>, metric: Metric, radius: T) -> Array1<usize> {
    let mut degrees = Array1::zeros(tree.len());
    for pair in tree.search().metric(metric).pairs_within(radius).unwrap().outer_iter() {
        assert!(pair[0] < pair[1]);
        degrees[pair[0] as usize] += 1;
        degrees[pair[1] as usize] += 1;
    }
    degrees
}

fn degrees<T: Value>(brute_force: &BruteForce<T>, rows: &[usize], radius: T) -> Array1<usize> {
    let degree = |&row: &usize| {
        let others = brute_force.of_point(row);
        others.iter().filter(|neighbor| brute_force.distance(neighbor) <= radius).count()
    };
    rows.iter().map(degree).collect()
}

#[test]
fn a_periodic_box_of_water() {
    let Some(points) = files::water() else { return };
    assert!(points.iter().any(|&x| x < 0.0) && points.iter().any(|&x| x >= 30.0), "atoms lie outside of the cell");
    let cell = |origin: f64| Space::periodic(&[Some(30.0); 3], &[origin; 3]);
    check(&cell(0.0), &points, 9, 3.0);
    check(&cell(-15.0), &points, 17, 2.5);
    check(&Space::periodic(&[Some(30.0), None, Some(30.0)], &[0.0; 3]), &points, 17, 3.0);
    let single = Space::periodic(&[Some(30.0f32); 3], &[0.0; 3]);
    check(&single, &points.mapv(|x| x as f32), 9, 3.0);
}

/// Chemistry knows the answer: two bonds a molecule, and nothing else so near.
#[test]
fn the_bonds_of_water() {
    let Some(points) = files::water() else { return };
    let molecules = points.nrows() / 3;
    let bonds = Array2::from_shape_fn([2 * molecules, 2], |(row, end)| (row / 2 * 3 + end * (1 + row % 2)) as u32);
    let space = Space::periodic(&[Some(30.0); 3], &[0.0; 3]);
    levels::each(|level| {
        let tree = space.builder().build_dyn(points.view()).unwrap().with_level(level).unwrap();
        assert_eq!(tree.pairs_within(1.1).unwrap(), bonds);
        // Whole molecules moved by whole cells are the same water, to a few ulps.
        let moved = Array2::from_shape_fn(points.dim(), |(row, axis)| {
            points[[row, axis]] + 30.0 * [-2.0, 0.0, 1.0, 5.0][(row / 3 + axis) % 4]
        });
        let tree = space.builder().build_dyn(moved.view()).unwrap().with_level(level).unwrap();
        assert_eq!(tree.pairs_within(1.1).unwrap(), bonds);
        let oxygens = points.slice(s![..;3, ..]);
        let counts = tree.radius_count(oxygens, 1.1).unwrap();
        assert_eq!(counts, Array1::from_elem(molecules, 3));
    });
}

#[test]
fn samples_of_soil() {
    let Some(points) = files::meuse() else { return };
    check(&Space::open(2), &points, 1, 150.0);
    check(&Space::periodic(&[Some(1000.0), None], &[178_000.0, 0.0]), &points, 1, 200.0);
    let single = points.mapv(|x| x as f32);
    check(&Space::open(2), &single, 1, 150.0);
    check(&Space::periodic(&[Some(700.1), Some(1e3)], &[0.1, 0.0]), &single, 1, 200.0);
}

#[test]
fn steps_of_a_drive() {
    let Some(points) = files::poses() else { return };
    check(&Space::open(12), &points, 7, 2.0);
    let translations = points.select(Axis(1), &[3, 7, 11]).mapv(|x| x as f32);
    check(&Space::open(3), &translations, 3, 2.0);
}

#[test]
fn a_mesh_that_is_its_own_mirror_image() {
    let Some(points) = files::spot() else { return };
    check(&Space::open(3), &points.mapv(|x| x as f32), 7, 0.05);
}

#[test]
fn an_airborne_survey() {
    let Some(points) = files::autzen() else { return };
    // Coordinates are rounded to 1/16 or 1/32: many distances are equal.
    check(&Space::open(3), &points.mapv(|x| x as f32), 50, 20.0);
}

#[test]
fn a_depth_frame() {
    let Some(points) = files::office() else { return };
    check(&Space::open(3), &points, 100, 0.03);
}
