//! The rules of interpolation, by name.

use crate::common::cloud::Cloud;
use crate::common::random::Random;
use crate::common::space::METRICS;
use crate::common::values::Value;
use crate::common::{levels, threads};
use ndarray::{Array1, Array2, ArrayView2, Axis, array, aview2};
use pullback::kdtree::{Interpolate, InterpolateGradients, Interpolation, KdTree, KdTreeDyn, Metric};
use rayon::prelude::*;

const _: () = {
    const fn shared<T: Send + Sync>() {}
    const fn copied<T: Copy>() {}
    shared::<Interpolate<'_, f32>>();
    shared::<Interpolation<'_, f64>>();
    shared::<InterpolateGradients<f32>>();
    copied::<Interpolate<'_, f32>>();
};

fn tree<T: Value>(points: ArrayView2<'_, T>) -> KdTreeDyn<T> {
    KdTreeDyn::new(points).unwrap()
}

#[test]
fn at_a_tree_point_the_mean_of_the_coincident_values() {
    let points = array![[1.0, 1.0], [0.0, 0.0], [1.0, 1.0], [5.0, 1.0], [1.0, 1.0], [1.0, 1.0]];
    let values = array![[1.0, 10.0], [100.0, 100.0], [2.0, 20.0], [100.0, 100.0], [3.0, 30.0], [6.0, 60.0]];
    levels::each(|level| {
        let tree = tree(points.view()).with_level(level).unwrap();
        for (metric, power) in METRICS.into_iter().flat_map(|metric| [0.5, 1.0, 2.0, 2.5, 30.0].map(|p| (metric, p))) {
            let at = Interpolate::new(&tree, 6, power, 0.0).unwrap().metric(metric).at(aview2(&[[1.0, 1.0]])).unwrap();
            assert_eq!(at.neighbors().indices, array![[0, 2, 4, 5, 1, 3]]);
            assert_eq!(at.weights(), array![[0.25, 0.25, 0.25, 0.25, 0.0, 0.0]]);
            assert_eq!(at.forward(values.view()).unwrap(), array![[3.0, 30.0]]);
            let gradients = at.adjoint(array![[8.0, 4.0]].view(), values.view()).unwrap();
            let (share, none) = ([2.0, 1.0], [0.0, 0.0]);
            assert_eq!(gradients.grad_values, aview2(&[share, none, share, none, share, share]));
            assert_eq!(gradients.grad_queries, Array2::zeros([1, 2]));
            assert_eq!(gradients.grad_points, Array2::zeros([6, 2]));
        }
    });
}

/// Where rounding makes the distance 0.
#[test]
fn a_distance_that_underflows_is_none() {
    let points = array![[0.0f32], [1e-25], [1.0]];
    let tree = tree(points.view());
    let at = |metric| Interpolate::new(&tree, 3, 2.0, 0.0).unwrap().metric(metric).at(aview2(&[[0.0]])).unwrap();
    assert_eq!(at(Metric::L2).weights(), array![[0.5, 0.5, 0.0]]);
    assert_eq!(at(Metric::L1).weights(), array![[1.0, 0.0, 0.0]]);
}

/// With a positive eps a tree point is the heaviest of all, not the only one.
#[test]
fn at_a_tree_point_with_eps_all_neighbors_count() {
    let tree = tree(array![[0.0], [1.0]].view());
    let at = Interpolate::new(&tree, 2, 2.0, 1.0).unwrap().at(aview2(&[[0.0]])).unwrap();
    // 1 / (0 + 1) and 1 / (1 + 1)
    let weights = at.weights().to_owned();
    assert!((weights - array![[2.0 / 3.0, 1.0 / 3.0]]).iter().all(|x: &f64| x.abs() < 1e-15));
    // w0 = 1, w1 = 1 / (d^2 + 1): dw1 / dd = -2 d / (d^2 + 1)^2 = -1 / 2, y = w1 v1 / (1 + w1), dy / dw1 = v1 / (9 / 4).
    let gradients = at.adjoint(aview2(&[[1.0]]), aview2(&[[0.0], [9.0]])).unwrap();
    // The query is at the first point, which does not move it: the derivative of that distance is 0.
    assert!((gradients.grad_queries - array![[2.0]]).iter().all(|x: &f64| x.abs() < 1e-14));
    assert!((gradients.grad_points - array![[0.0], [-2.0]]).iter().all(|x: &f64| x.abs() < 1e-14));
}

#[test]
fn no_neighbor_within_the_bound_gives_the_fill_and_no_gradient() {
    let points = array![[0.0f32, 0.0], [1.0, 0.0]];
    let queries = array![[9.0f32, 9.0], [0.5, 0.0], [0.0, 1.0]];
    let values = array![[1.0f32, 2.0], [5.0, 6.0]];
    levels::each(|level| {
        let tree = tree(points.view()).with_level(level).unwrap();
        for (fill, bounds) in [(None, array![1.0, 1.0, 1.0]), (Some(-7.0), array![2.0, 1.0, 1.0])] {
            let interpolate = Interpolate::new(&tree, 2, 1.0, 0.0).unwrap().within(&bounds);
            let interpolate = fill.map_or(interpolate, |fill| interpolate.fill(fill));
            let at = interpolate.at(queries.view()).unwrap();
            assert_eq!(at.neighbors().counts(), array![0, 2, 0]);
            assert_eq!(at.weights(), array![[0.0, 0.0], [0.5, 0.5], [0.0, 0.0]]);
            let fill = fill.unwrap_or(0.0);
            assert_eq!(at.forward(values.view()).unwrap(), array![[fill, fill], [3.0, 4.0], [fill, fill]]);
            let grad_y = array![[f32::NAN, f32::INFINITY], [4.0, 4.0], [f32::NAN, 1.0]];
            let gradients = at.adjoint(grad_y.view(), values.view()).unwrap();
            assert_eq!(gradients.grad_values, array![[2.0, 2.0], [2.0, 2.0]]);
            assert_eq!(at.adjoint_values(grad_y.view()).unwrap(), gradients.grad_values);
            assert_eq!(gradients.grad_queries.row(0), array![0.0, 0.0]);
            assert_eq!(gradients.grad_queries.row(2), array![0.0, 0.0]);
            assert!(gradients.grad_points.iter().all(|x| x.is_finite()));
        }
        let at = Interpolate::new(&tree, 2, 1.0, 0.0).unwrap().within(0.0).fill(f32::NAN).at(queries.view()).unwrap();
        assert!(at.forward(values.view()).unwrap().iter().all(|x| x.is_nan()));
    });
}

#[test]
fn padding_is_never_multiplied() {
    let tree = tree(array![[0.0, 0.0], [2.0, 0.0]].view());
    let at = Interpolate::new(&tree, 5, 2.0, 0.0).unwrap().at(aview2(&[[1.0, 0.0]])).unwrap();
    assert_eq!(at.weights(), array![[0.5, 0.5, 0.0, 0.0, 0.0]]);
    assert_eq!(at.forward(array![[3.0], [5.0]].view()).unwrap(), array![[4.0]]);
    let gradients = at.adjoint(array![[1.0]].view(), array![[3.0], [5.0]].view()).unwrap();
    assert_eq!(gradients.grad_queries, array![[2.0, 0.0]]);
    assert_eq!(gradients.grad_points, array![[-1.0, 0.0], [-1.0, 0.0]]);
}

#[test]
fn no_neighbors_at_all() {
    for (n, m, k) in [(0, 0, 0), (0, 3, 2), (5, 0, 2), (5, 3, 0), (0, 3, 0)] {
        let (points, queries) = (Array2::<f32>::zeros([n, 3]), Array2::<f32>::ones([m, 3]));
        let tree = KdTree::<f32, 3>::new(points.view()).unwrap();
        let at = Interpolate::new(&tree, k, 2.0, 0.0).unwrap().fill(3.0).at(queries.view()).unwrap();
        assert_eq!(at.weights().dim(), (m, k));
        for channels in [0, 1, 17] {
            let values = Array2::from_elem([n, channels], 9.0);
            let expected = if n * k == 0 { 3.0 } else { 9.0 };
            assert_eq!(at.forward(values.view()).unwrap(), Array2::from_elem([m, channels], expected));
            let gradients = at.adjoint(Array2::ones([m, channels]).view(), values.view()).unwrap();
            assert_eq!(gradients.grad_values, Array2::zeros([n, channels]));
            assert_eq!(gradients.grad_queries, Array2::zeros([m, 3]));
            assert_eq!(gradients.grad_points, Array2::zeros([n, 3]));
        }
    }
}

#[test]
fn whole_numbers_have_exact_weights() {
    let points = array![[1.0f32, 0.0], [0.0, 2.0], [-2.0, 0.0]];
    let (values, grad_y) = (array![[2.0f32, 4.0], [8.0, 16.0], [-16.0, 0.0]], array![[8.0, 16.0]]);
    levels::each(|level| {
        let tree = tree(points.view()).with_level(level).unwrap();
        let at = |power, k| Interpolate::new(&tree, k, power, 0.0).unwrap().at(aview2(&[[0.0, 0.0]])).unwrap();
        // Distances 1, 2, 2.
        let first = at(1.0, 3);
        assert_eq!(first.weights(), array![[0.5, 0.25, 0.25]]);
        assert_eq!(first.forward(values.view()).unwrap(), array![[-1.0, 6.0]]);
        let gradients = first.adjoint(grad_y.view(), values.view()).unwrap();
        assert_eq!(gradients.grad_values, array![[4.0, 8.0], [2.0, 4.0], [2.0, 4.0]]);
        // h = 80, 320, -128, their mean 88: -(h - 88) a / d is 4, -29 and 27.
        assert_eq!(gradients.grad_points, array![[4.0, 0.0], [0.0, -29.0], [-27.0, 0.0]]);
        assert_eq!(gradients.grad_queries, array![[-4.0 + 27.0, 29.0]]);
        // One neighbour only: nothing to choose from.
        for power in [0.5, 1.0, 2.0, 2.5, 8.0, 30.0] {
            assert_eq!(at(power, 1).weights(), array![[1.0]]);
            let gradients = at(power, 1).adjoint(grad_y.view(), values.view()).unwrap();
            assert_eq!(gradients.grad_values, array![[8.0, 16.0], [0.0, 0.0], [0.0, 0.0]]);
            assert_eq!((gradients.grad_queries, gradients.grad_points), (Array2::zeros([1, 2]), Array2::zeros([3, 2])));
        }
    });
}

/// Of distances from the least to the largest, with every power.
#[test]
fn weights_are_numbers_that_sum_to_one() {
    fn check<T: Value>(scales: &[f64], power: f64, eps: f64, metric: Metric) {
        let number = |x: f64| T::from_f64(x).unwrap();
        let points = Array1::from_iter(scales.iter().map(|&x| number(x))).insert_axis(Axis(1));
        let queries = array![[T::zero()], [number(scales[0])], [-number(scales[scales.len() - 1])]];
        levels::each(|level| {
            let tree = tree(points.view()).with_level(level).unwrap();
            let at = Interpolate::new(&tree, 20, number(power), number(eps)).unwrap().metric(metric);
            let at = at.at(queries.view()).unwrap();
            for (query, weights) in at.weights().outer_iter().enumerate() {
                let sum = weights.iter().fold(0.0, |sum, &w| sum + w.to_f64().unwrap());
                let tolerance = 40.0 * T::epsilon().to_f64().unwrap();
                assert!(
                    (sum - 1.0).abs() < tolerance,
                    "{weights:?} sum to {sum} of query {query}, p {power}, eps {eps}"
                );
                assert!(weights.iter().all(|&w| w >= T::zero() && w <= T::one() + T::epsilon()), "{weights:?}");
                let ascends =
                    weights.iter().zip(weights.iter().skip(1)).all(|(&a, &b)| b <= a * number(1.0 + tolerance));
                assert!(ascends, "{weights:?} do not descend, of query {query}, p {power}, eps {eps}");
            }
            let values = Array2::from_elem([points.nrows(), 2], T::one());
            let y = at.forward(values.view()).unwrap();
            assert!(y.iter().all(|&y| (y - T::one()).abs() < number(40.0) * T::epsilon()), "{y:?}");
            // Equal values: whatever the weights are, nothing pulls, and nothing is NaN.
            let zeros = Array2::from_elem([3, 2], T::zero());
            let gradients = at.adjoint(zeros.view(), values.view()).unwrap();
            let still = gradients.grad_queries.iter().chain(&gradients.grad_points).all(|x| *x == T::zero());
            assert!(still, "{gradients:?}, p {power}, eps {eps}, {metric:?}, {level}, {points:?}");
        });
    }
    let powers = [0.5, 1.0, 2.0, 3.0, 2.5, 8.0, 9.0, 30.0, 300.0];
    for (power, eps) in powers.into_iter().flat_map(|power| [0.0, 1e-44, 1e-30, 1.0, 1e30].map(|eps| (power, eps))) {
        for metric in METRICS {
            check::<f32>(&[1e-30, 2e-30, 1e-10, 1.0, 1e10, 1e30, 3e38], power, eps, metric);
            check::<f32>(&[1e-45, 3e-45, 1e-44, 1e-38], power, eps, metric);
            check::<f32>(&[1e19, 2e19, 1e30, 3e38], power, eps, metric);
            check::<f64>(&[1e-200, 3e-200, 1e-30, 1.0, 1e30, 1e200, 1e308], power, eps, metric);
            check::<f64>(&[5e-324, 1e-323, 1e-310], power, eps, metric);
        }
    }
}

/// They have weight 0, or equal ones where there are no others.
#[test]
fn infinite_distances() {
    let (values, grad_y) = (array![[1.0f32], [2.0], [4.0]], array![[1.0f32]]);
    for (power, eps) in [(1.0, 0.0), (2.0, 0.0), (2.5, 1.0), (30.0, 1e-30)] {
        let far = tree(array![[-1e30f32, 0.0], [1.0, 1.0], [1e30, 0.0]].view());
        let at = Interpolate::new(&far, 3, power, eps).unwrap().at(aview2(&[[0.0, 0.0]])).unwrap();
        assert_eq!(at.neighbors().distances.mapv(f32::is_infinite), array![[false, true, true]]);
        assert_eq!(at.weights(), array![[1.0, 0.0, 0.0]]);
        assert_eq!(at.forward(values.view()).unwrap(), array![[2.0]]);
        let gradients = at.adjoint(grad_y.view(), values.view()).unwrap();
        assert_eq!(gradients.grad_values, array![[0.0], [1.0], [0.0]]);
        assert_eq!(gradients.grad_queries, Array2::zeros([1, 2]));
        assert_eq!(gradients.grad_points, Array2::zeros([3, 2]));

        let all = tree(array![[-1e30f32, 0.0], [1e25, 1.0], [1e30, 0.0]].view());
        let at = Interpolate::new(&all, 2, power, eps).unwrap().at(aview2(&[[0.0, 0.0]])).unwrap();
        assert_eq!(at.neighbors().indices, array![[0, 1]]);
        assert_eq!(at.weights(), array![[0.5, 0.5]]);
        assert_eq!(at.forward(values.view()).unwrap(), array![[1.5]]);
        let gradients = at.adjoint(grad_y.view(), values.view()).unwrap();
        assert_eq!(gradients.grad_values, array![[0.5], [0.5], [0.0]]);
        assert_eq!(gradients.grad_queries, Array2::zeros([1, 2]));
        assert_eq!(gradients.grad_points, Array2::zeros([3, 2]));
    }
}

/// The least distances with a moderate gradient: `p / d` alone would overflow in f32.
#[test]
fn gradients_at_tiny_and_huge_distances_are_finite_where_the_true_ones_are() {
    for (scale, expected) in [(1e-30f32, 1.0), (1e-18, 1.0), (1e18, 1.0), (1e30, 1.0)] {
        // y = (v0 d1 + v1 d0) / (d0 + d1) of d0 = x, d1 = 2 s - x at x = s: dy / dx = (v1 - v0) / (2 s).
        let tree = tree(array![[0.0f32], [2.0 * scale]].view());
        let at = Interpolate::new(&tree, 2, 1.0, 0.0).unwrap().metric(Metric::L1).at(aview2(&[[scale]])).unwrap();
        assert_eq!(at.weights(), array![[0.5, 0.5]]);
        let values = array![[0.0], [2.0 * scale * 1e-3]];
        let gradients = at.adjoint(aview2(&[[1e3]]), values.view()).unwrap();
        let found = gradients.grad_queries[[0, 0]];
        assert!((found - expected).abs() < 1e-5, "{found} at {scale}");
    }
}

/// Values and gradients that are not finite reach those that they are a part of, and no other.
#[test]
fn values_that_are_not_numbers_stay_where_they_are() {
    let tree = tree(array![[0.0f32], [1.0], [10.0], [11.0]].view());
    let at = Interpolate::new(&tree, 2, 1.0, 0.0).unwrap().at(aview2(&[[0.5], [10.5]])).unwrap();
    let values = array![[1.0f32, f32::NAN], [3.0, 5.0], [f32::INFINITY, 1.0], [1.0, 3.0]];
    let y = at.forward(values.view()).unwrap();
    assert!(y[[0, 0]] == 2.0 && y[[0, 1]].is_nan() && y[[1, 0]] == f32::INFINITY && y[[1, 1]] == 2.0, "{y}");
    let gradients = at.adjoint(array![[1.0, 0.0], [0.0, f32::NAN]].view(), values.view()).unwrap();
    let nan = gradients.grad_values.mapv(f32::is_nan);
    assert_eq!(nan, array![[false, false], [false, false], [false, true], [false, true]]);
}

/// One interpolation first used by many threads at once.
#[test]
fn a_fresh_interpolation_used_by_many_threads() {
    let points = Cloud::Clustered.points::<f32>(300, 3, &mut Random::new(4));
    let queries = Cloud::Clustered.queries(&points, 100, &mut Random::new(5));
    let (values, grad_y) = (Array2::<f32>::ones([300, 3]), Array2::<f32>::ones([100, 3]));
    let tree = tree(points.view());
    let interpolate = Interpolate::new(&tree, 4, 2.0, 0.0).unwrap();
    let bits = |array: Array2<f32>| array.mapv(f32::to_bits);
    let expected = bits(interpolate.adjoint(grad_y.view(), values.view(), queries.view()).unwrap().grad_points);
    threads::with(7, || {
        for _ in 0..300 {
            let at = interpolate.at(queries.view()).unwrap();
            (0..7).into_par_iter().for_each(|_| {
                assert_eq!(bits(at.adjoint(grad_y.view(), values.view()).unwrap().grad_points), expected);
            });
        }
    });
}
