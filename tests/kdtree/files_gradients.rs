//! Gradients of distances and interpolation on real data.

use crate::common::distance_gradients::DistanceGradients;
use crate::common::interpolation::{Near, Sum, Weighing};
use crate::common::reduction_case::assert_flat;
use crate::common::space::{METRICS, Space};
use crate::common::values::Values;
use crate::common::{files, levels};
use ndarray::{Array2, ArrayView2, Axis, s};
use pullback::kdtree::{Interpolate, KdTreeDyn, Metric};

/// A system that moves as a whole keeps all of its distances.
#[test]
fn gradients_over_a_periodic_box_of_water_sum_to_zero() {
    let Some(points) = files::water() else { return };
    let space = Space::periodic(&[Some(30.0); 3], &[0.0; 3]);
    for (metric, squared) in METRICS.into_iter().flat_map(|metric| [(metric, false), (metric, true)]) {
        let grads: Array2<f64> = Values::Integers.array([points.nrows(), 8], 1);
        let reference = DistanceGradients::new(space.clone(), metric, squared, points.view());
        levels::each(|level| {
            let tree = space.builder().build_dyn(points.view()).unwrap().with_level(level).unwrap();
            let search = tree.search().metric(metric);
            let search = if squared { search.squared() } else { search };
            let found = search.knn_self(8).unwrap();
            let gradient = search.knn_self_adjoint(grads.view(), found.indices.view()).unwrap();
            let zeros = Array2::zeros(points.dim()).into_dyn();
            assert_flat("gradient", &gradient, &reference.knn_self(found.indices.view(), grads.view(), &zeros));
            let size: f64 = gradient.iter().map(|x| x.abs()).sum();
            assert!(size > 1000.0);
            assert!(
                gradient.sum_axis(Axis(0)).iter().all(|sum| sum.abs() < 1e-13 * size),
                "{}",
                gradient.sum_axis(Axis(0))
            );

            let oxygens = points.slice(s![..;3, ..]);
            let found = search.knn(oxygens, 5).unwrap();
            let grads = grads.slice(s![..oxygens.nrows(), ..5]);
            let gradients = search.knn_adjoint(grads, oxygens, found.indices.view()).unwrap();
            let zeros = [Array2::zeros(oxygens.dim()).into_dyn(), zeros];
            let expected = reference.knn(oxygens, found.indices.view(), grads, [&zeros[0], &zeros[1]]);
            assert_flat("grad_queries", &gradients.grad_queries, &expected[0]);
            assert_flat("grad_points", &gradients.grad_points, &expected[1]);
            let sum = gradients.grad_queries.sum_axis(Axis(0)) + gradients.grad_points.sum_axis(Axis(0));
            assert!(sum.iter().all(|sum| sum.abs() < 1e-13 * size), "{sum}");
        });
    }
}

/// Each sample from its neighbours, as those who choose a power do it.
#[test]
fn soil_samples_left_out_one_at_a_time() {
    let (Some(points), Some(zinc)) = (files::meuse(), files::meuse_zinc()) else { return };
    let values = zinc.insert_axis(Axis(1));
    for (power, eps, metric) in
        [(2.0, 0.0, Metric::L2), (0.5, 0.0, Metric::L1), (3.0, 1.0, Metric::Linf), (2.5, 0.0, Metric::L2)]
    {
        let weighing = Weighing { metric, power, eps };
        levels::each(|level| {
            let mut errors = 0.0;
            for out in 0..points.nrows() {
                let rows: Vec<usize> = (0..points.nrows()).filter(|&row| row != out).collect();
                let (others, known) = (points.select(Axis(0), &rows), values.select(Axis(0), &rows));
                let tree = KdTreeDyn::new(others.view()).unwrap().with_level(level).unwrap();
                let query = points.slice(s![out..=out, ..]);
                let at = Interpolate::new(&tree, 12, power, eps).unwrap().metric(metric).at(query).unwrap();
                let found = at.forward(known.view()).unwrap()[[0, 0]];
                let expected = interpolated(
                    &weighing,
                    &Space::open(2),
                    others.view(),
                    query,
                    known.view(),
                    &at.neighbors().indices,
                );
                assert!(expected.accepts(found), "sample {out} is {found}, not {expected:?}");
                errors += (found - values[[out, 0]]).powi(2);
            }
            // Zinc varies by 367 ppm: interpolation explains half of it.
            let error = (errors / points.nrows() as f64).sqrt();
            assert!(error > 150.0 && error < 300.0, "{error} with power {power}");
        });
    }
}

/// One query's value in f64.
fn interpolated(
    weighing: &Weighing<f64>,
    space: &Space<f64>,
    points: ArrayView2<'_, f64>,
    query: ArrayView2<'_, f64>,
    values: ArrayView2<'_, f64>,
    indices: &Array2<u32>,
) -> Near {
    let row = |row: u32| points.row(row as usize).to_vec();
    let keys: Vec<f64> =
        indices.iter().map(|&index| space.key(weighing.metric, &row(index), &query.row(0).to_vec())).collect();
    let mut sum = Sum::starting_at(0.0);
    for (weight, &index) in weighing.weights(&keys).iter().zip(indices) {
        let value = values[[index as usize, 0]];
        sum.add(Near {
            value: weight.value * value,
            error: weight.error * value.abs() + f64::EPSILON * weight.value * value.abs(),
        });
    }
    sum.near::<f64>()
}
