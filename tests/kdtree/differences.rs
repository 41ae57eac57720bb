//! Gradients of distances and of interpolation against central differences in f64, away from kinks, and the adjoint of the
//! linear part against its forward pass.

use crate::common::levels;
use crate::common::random::Random;
use crate::common::space::{METRICS, Space};
use crate::common::values::Values;
use ndarray::{Array2, ArrayView2};
use pullback::kdtree::{Interpolate, KdTreeDyn, Metric};

const STEP: f64 = 1e-5;

/// Uniform in -1 to 1.
fn uniform(rows: usize, columns: usize, seed: u64) -> Array2<f64> {
    let mut random = Random::new(seed);
    Array2::from_shape_simple_fn([rows, columns], || (random.bits() >> 11) as f64 / (1u64 << 52) as f64 - 1.0)
}

fn dot(a: &Array2<f64>, b: &Array2<f64>) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// Something to differentiate: a scalar of some arrays that also says what it looked at, so that a kink is seen.
type Loss<'a> = dyn Fn(&[Array2<f64>]) -> (f64, Vec<u32>) + 'a;

/// Every element of every gradient is near the central difference, but for those next to a kink, which must be few.
fn check(what: &str, loss: &Loss<'_>, inputs: &[Array2<f64>], gradients: &[Array2<f64>]) {
    let (_, here) = loss(inputs);
    let (mut kinks, mut all) = (0, 0);
    for (at, gradient) in gradients.iter().enumerate() {
        assert_eq!(gradient.dim(), inputs[at].dim());
        for (place, &found) in gradient.indexed_iter() {
            all += 1;
            let moved = |step: f64| {
                let mut inputs = inputs.to_vec();
                inputs[at][place] += step;
                loss(&inputs)
            };
            let [(up, above), (down, below)] = [moved(STEP), moved(-STEP)];
            if above != here || below != here {
                kinks += 1;
                continue;
            }
            let expected = (up - down) / (2.0 * STEP);
            // Errors of the difference are third derivatives times the square of the step, and rounding over the step.
            let error = (found - expected).abs();
            assert!(error < 1e-5 * (1.0 + expected.abs()), "{what}: gradient {at}{place:?} {found}, not {expected}");
        }
    }
    assert!(kinks * 10 < all, "{what}: {kinks} kinks in {all}");
}

fn spaces(dims: usize) -> [Space<f64>; 2] {
    let lengths: Vec<Option<f64>> = (0..dims).map(|axis| [Some(1.7), None, Some(2.3)][axis % 3]).collect();
    [Space::open(dims), Space::periodic(&lengths, &vec![-0.9; dims])]
}

fn tree(space: &Space<f64>, points: ArrayView2<'_, f64>) -> KdTreeDyn<f64> {
    space.builder().build_dyn(points).unwrap()
}

/// In which image and on which side of its query each neighbour is, and on which axis it is farthest: what has a kink.
fn sides(
    space: &Space<f64>,
    metric: Metric,
    points: &Array2<f64>,
    queries: &Array2<f64>,
    indices: &Array2<u32>,
) -> Vec<u32> {
    let (points, queries) = (space.wrapped(points.view()), space.wrapped(queries.view()));
    let mut sides = indices.iter().copied().collect::<Vec<_>>();
    for ((query, _), &index) in indices.indexed_iter() {
        let (p, q) = (points.row(index as usize).to_vec(), queries.row(query).to_vec());
        let differences = space.differences(&p, &q);
        sides.push(crate::common::distance_gradients::widest(&differences) as u32 * u32::from(metric == Metric::Linf));
        for (axis, difference) in differences.into_iter().enumerate() {
            sides.push(u32::from(difference > 0.0) + 2 * u32::from((q[axis] - p[axis] - difference).abs() > 0.1));
        }
    }
    sides
}

#[test]
fn distances_to_neighbors() {
    for (dims, metric) in [1, 2, 3, 4, 7].into_iter().flat_map(|dims| METRICS.map(|metric| (dims, metric))) {
        for (space, squared) in spaces(dims).into_iter().flat_map(|space| [(space.clone(), false), (space, true)]) {
            let (points, queries, grads) = (uniform(12, dims, 1), uniform(5, dims, 2), uniform(5, 3, 3));
            let loss = |inputs: &[Array2<f64>]| {
                let tree = tree(&space, inputs[1].view());
                let search = tree.search().metric(metric);
                let search = if squared { search.squared() } else { search };
                let found = search.knn(inputs[0].view(), 3).unwrap();
                (dot(&found.distances, &grads), sides(&space, metric, &inputs[1], &inputs[0], &found.indices))
            };
            levels::each(|level| {
                let tree = tree(&space, points.view()).with_level(level).unwrap();
                let search = tree.search().metric(metric);
                let search = if squared { search.squared() } else { search };
                let indices = search.knn(queries.view(), 3).unwrap().indices;
                let found = search.knn_adjoint(grads.view(), queries.view(), indices.view()).unwrap();
                let gradients = [found.grad_queries, found.grad_points];
                check("knn", &loss, &[queries.clone(), points.clone()], &gradients);
            });
        }
    }
}

#[test]
fn distances_of_points_to_each_other() {
    for (dims, metric) in [1, 2, 3, 5].into_iter().flat_map(|dims| METRICS.map(|metric| (dims, metric))) {
        for (space, squared) in spaces(dims).into_iter().flat_map(|space| [(space.clone(), false), (space, true)]) {
            let (points, grads) = (uniform(11, dims, 4), uniform(11, 3, 5));
            let loss = |inputs: &[Array2<f64>]| {
                let tree = tree(&space, inputs[0].view());
                let search = tree.search().metric(metric);
                let search = if squared { search.squared() } else { search };
                let found = search.knn_self(3).unwrap();
                (dot(&found.distances, &grads), sides(&space, metric, &inputs[0], &inputs[0], &found.indices))
            };
            let tree = tree(&space, points.view());
            let search = tree.search().metric(metric);
            let search = if squared { search.squared() } else { search };
            let indices = search.knn_self(3).unwrap().indices;
            let gradient = search.knn_self_adjoint(grads.view(), indices.view()).unwrap();
            check("knn_self", &loss, std::slice::from_ref(&points), &[gradient]);
        }
    }
}

#[test]
fn interpolation_to_queries_points_and_values() {
    let (mut checked, mut skipped) = (0, 0);
    let weighings = [(0.5, 0.0), (1.0, 0.3), (2.0, 0.0), (2.0, 1.0), (2.5, 1e-3), (3.0, 0.0), (8.0, 1e-6)];
    for (dims, metric) in [1, 2, 3, 4].into_iter().flat_map(|dims| METRICS.map(|metric| (dims, metric))) {
        for (space, (power, eps)) in spaces(dims).into_iter().flat_map(|s| weighings.map(|w| (s.clone(), w))) {
            // Apart from each other, where third derivatives are moderate.
            let far = |seed| Array2::from_shape_fn([9, dims], |(row, _)| row as f64) + uniform(9, dims, seed) * 0.3;
            let (points, queries) = match space.lengths.iter().any(Option::is_some) {
                false => (far(6), far(7) + 0.4),
                true => (uniform(9, dims, 6), uniform(9, dims, 7)),
            };
            let (values, grads) = (uniform(9, 2, 8), uniform(9, 2, 9));
            let at_least = |tree: &KdTreeDyn<f64>| {
                let nearest = tree.search().metric(metric).knn(queries.view(), 1).unwrap().distances;
                nearest.iter().all(|&distance| distance > 0.02)
            };
            let loss = |inputs: &[Array2<f64>]| {
                let tree = tree(&space, inputs[1].view());
                let interpolate = Interpolate::new(&tree, 4, power, eps).unwrap().metric(metric);
                let at = interpolate.at(inputs[0].view()).unwrap();
                let sides = sides(&space, metric, &inputs[1], &inputs[0], &at.neighbors().indices);
                (dot(&at.forward(inputs[2].view()).unwrap(), &grads), sides)
            };
            let tree = tree(&space, points.view());
            if !at_least(&tree) {
                skipped += 1;
                continue;
            }
            checked += 1;
            let interpolate = Interpolate::new(&tree, 4, power, eps).unwrap().metric(metric);
            let found = interpolate.adjoint(grads.view(), values.view(), queries.view()).unwrap();
            let gradients = [found.grad_queries, found.grad_points, found.grad_values];
            let what = format!("D {dims}, {metric:?}, power {power}, eps {eps}");
            check(&what, &loss, &[queries.clone(), points.clone(), values.clone()], &gradients);
        }
    }
    assert!(checked > 3 * skipped, "{skipped} skipped, {checked} checked");
}

/// `<forward(x), y> == <x, adjoint(y)>`, in whole numbers exactly where the weights are powers of two.
#[test]
fn the_values_part_is_the_transpose_of_forward() {
    levels::each(|level| {
        for (n, m, k, channels) in [(7, 40, 3, 5), (40, 7, 5, 3), (1, 9, 1, 17), (30, 30, 17, 33), (5, 9, 8, 1)] {
            let tree = KdTreeDyn::new(uniform(n, 3, 10).view()).unwrap().with_level(level).unwrap();
            let interpolate = Interpolate::new(&tree, k, 2.0, 1e-3).unwrap();
            let at = interpolate.at(uniform(m, 3, 11).view()).unwrap();
            let (x, y) = (uniform(n, channels, 12), uniform(m, channels, 13));
            let (forward, adjoint) = (at.forward(x.view()).unwrap(), at.adjoint_values(y.view()).unwrap());
            let (left, right) = (dot(&forward, &y), dot(&x, &adjoint));
            let size: f64 = forward.iter().zip(&y).map(|(a, b)| (a * b).abs()).sum();
            assert!((left - right).abs() <= 1e-13 * (1.0 + size), "{left} and {right}");

            // Two neighbours at equal distances, one weight each.
            let points = Array2::from_shape_fn([n, 1], |(row, _)| 2.0 * row as f64);
            let queries = Array2::from_shape_fn([m, 1], |(row, _)| (2 * (row % n) + 1) as f64);
            let tree = KdTreeDyn::new(points.view()).unwrap().with_level(level).unwrap();
            let at = Interpolate::new(&tree, 2, 3.0, 0.0).unwrap().within(1.5).at(queries.view()).unwrap();
            let x: Array2<f64> = Values::Integers.array([n, channels], 14);
            let y: Array2<f64> = Values::Integers.array([m, channels], 15);
            let (forward, adjoint) = (at.forward(x.view()).unwrap(), at.adjoint_values(y.view()).unwrap());
            assert_eq!(dot(&forward, &y), dot(&x, &adjoint));
        }
    });
}
