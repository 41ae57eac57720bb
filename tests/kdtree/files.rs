//! Neighbours in real clouds.

use crate::common::neighbors::{BruteForce, assert_neighbors_of, tunings};
use crate::common::values::Value;
use crate::common::{files, levels};
use ndarray::{Array2, Axis};
use pullback::Level;
use pullback::kdtree::{Builder, KdTree};

/// Compares both searches of all points with brute force at every `step`th, at every level, and all of their answers with
/// those of the other levels and tunings.
fn check<T: Value>(points: &Array2<T>, step: usize, builder: Builder<T>) {
    let rows: Vec<usize> = (0..points.nrows()).step_by(step).collect();
    let brute_force = BruteForce::new(points.view());
    // Queries that are no points, nor on a surface.
    let queries = points.mapv(|x| x + T::from_f32(0.1).expect("rounded"));
    let tree = |level: Level| -> KdTree<T, 3> { builder.build(points.view()).unwrap().with_level(level).unwrap() };
    for k in [1, 5, 20] {
        let expected = brute_force.knn(queries.select(Axis(0), &rows).view(), k);
        let of_itself = brute_force.knn_self_of(&rows, k);
        let all = tree(Level::Base).knn(queries.view(), k).unwrap();
        let all_of_itself = tree(Level::Base).knn_self(k).unwrap();
        assert_neighbors_of(&all, &rows, &expected);
        assert_neighbors_of(&all_of_itself, &rows, &of_itself);
        levels::each(|level| {
            let mut tree = tree(level);
            for tuning in tunings() {
                tree = tree.with_tuning(tuning);
                assert!(tree.knn(queries.view(), k).unwrap() == all, "{k} neighbours, {tuning:?}");
                assert!(tree.knn_self(k).unwrap() == all_of_itself, "{k} neighbours, {tuning:?}");
            }
        });
    }
}

#[test]
fn a_street() {
    let Some(points) = files::car() else { return };
    check(&points, 25, Builder::default());
}

#[test]
fn an_airborne_survey() {
    let Some(points) = files::autzen() else { return };
    check(&points, 10, Builder::default());
    // Coordinates are rounded to 1/16 or 1/32: many distances are equal.
    check(&points.mapv(|x| x as f32), 10, Builder::default());
}

#[test]
fn a_mesh_that_is_its_own_mirror_image() {
    let Some(points) = files::spot() else { return };
    check(&points, 1, Builder::default());
    check(&points.mapv(|x| x as f32), 1, Builder::default().leaf_size(64));
}

#[test]
fn a_depth_frame() {
    let Some(points) = files::office() else { return };
    let builder = Builder::default().non_finite_is_absent();
    check(&points, 20, builder.clone());
    let tree: KdTree<f32, 3> = builder.build(points.view()).unwrap();
    let seen = points.map_axis(Axis(1), |row| row.iter().all(|x| x.is_finite()));
    assert_eq!(tree.knn_self(3).unwrap().counts(), seen.mapv(|seen| if seen { 3 } else { 0 }));
}
