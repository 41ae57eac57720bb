//! The rules of the gradients of distances, by name.

use crate::common::space::METRICS;
use crate::common::values::Value;
use crate::common::{levels, threads};
use ndarray::{Array2, ArrayView2, array, aview2};
use pullback::kdtree::{Builder, KdTree, KdTreeDyn, KnnGradients, Metric};

fn tree<T: Value>(points: ArrayView2<'_, T>) -> KdTreeDyn<T> {
    KdTreeDyn::new(points).unwrap()
}

#[test]
fn a_distance_of_zero_has_no_gradient() {
    let points = array![[1.0, 2.0], [1.0, 2.0], [4.0, 6.0]];
    levels::each(|level| {
        let tree = tree(points.view()).with_level(level).unwrap();
        for (metric, squared) in METRICS.into_iter().flat_map(|metric| [(metric, false), (metric, true)]) {
            let search = tree.search().metric(metric);
            let search = if squared { search.squared() } else { search };
            let query = array![[1.0, 2.0]];
            let found = search.knn(query.view(), 2).unwrap();
            assert_eq!(found.indices, array![[0, 1]]);
            // Not even of an infinite gradient.
            for grad in [3.0, f64::INFINITY, f64::NAN] {
                let grads = array![[grad, grad]];
                let gradients = search.knn_adjoint(grads.view(), query.view(), found.indices.view()).unwrap();
                let zeros = KnnGradients { grad_queries: Array2::zeros([1, 2]), grad_points: Array2::zeros([3, 2]) };
                assert_eq!((gradients.grad_queries, gradients.grad_points), (zeros.grad_queries, zeros.grad_points));
            }
            let nearest = search.knn_self(1).unwrap();
            assert_eq!(nearest.indices, array![[1], [0], [0]]);
            let grads = array![[5.0], [7.0], [0.0]];
            let gradient = search.knn_self_adjoint(grads.view(), nearest.indices.view()).unwrap();
            assert_eq!(gradient, Array2::zeros([3, 2]));
        }
    });
}

/// The square of the difference is 0, and so is the computed distance.
#[test]
fn a_distance_that_underflows_has_no_gradient() {
    let query = array![[1e-30f32, 0.0]];
    for (metric, expected) in [(Metric::L2, 0.0), (Metric::L1, 3.0), (Metric::Linf, 3.0)] {
        let tree = tree(array![[0.0f32, 0.0]].view());
        let gradients =
            tree.search().metric(metric).knn_adjoint(aview2(&[[3.0]]), query.view(), aview2(&[[0]])).unwrap();
        assert_eq!(gradients.grad_queries, array![[expected, 0.0]]);
        assert_eq!(gradients.grad_points, array![[-expected, 0.0]]);
    }
}

#[test]
fn a_distance_that_overflows_has_no_gradient() {
    let query = array![[3e38f32, 1.0]];
    let tree = tree(array![[-3e38f32, 0.0], [2.9e38, 0.0]].view());
    for (metric, squared) in METRICS.into_iter().flat_map(|metric| [(metric, false), (metric, true)]) {
        let search = tree.search().metric(metric);
        let search = if squared { search.squared() } else { search };
        let gradients = search.knn_adjoint(aview2(&[[3.0]]), query.view(), aview2(&[[0]])).unwrap();
        assert_eq!(gradients.grad_queries, array![[0.0, 0.0]]);
        assert_eq!(gradients.grad_points, Array2::zeros([2, 2]));
    }
    // The square of this one is reported as infinite, but its key is not.
    let search = tree.search().metric(Metric::Linf);
    let gradients = search.knn_adjoint(aview2(&[[3.0]]), query.view(), aview2(&[[1]])).unwrap();
    assert_eq!(gradients.grad_queries, array![[3.0, 0.0]]);
}

#[test]
fn an_axis_without_difference_takes_nothing_by_l1() {
    let tree = tree(array![[1.0, 5.0, -2.0]].view());
    let query = array![[4.0, 5.0, -3.0]];
    let search = tree.search().metric(Metric::L1);
    let gradients = search.knn_adjoint(aview2(&[[2.0]]), query.view(), aview2(&[[0]])).unwrap();
    assert_eq!(gradients.grad_queries, array![[2.0, 0.0, -2.0]]);
    assert_eq!(gradients.grad_points, array![[-2.0, 0.0, 2.0]]);
    let gradients = search.squared().knn_adjoint(aview2(&[[2.0]]), query.view(), aview2(&[[0]])).unwrap();
    assert_eq!(gradients.grad_queries, array![[16.0, 0.0, -16.0]]);
}

#[test]
fn the_lowest_axis_takes_the_gradient_of_the_largest_difference() {
    let tree = tree(array![[0.0, 0.0, 0.0]].view());
    let search = tree.search().metric(Metric::Linf);
    for (query, expected) in [
        ([1.0, 2.0, -2.0], [0.0, 5.0, 0.0]),
        ([1.0, -2.0, 2.0], [0.0, -5.0, 0.0]),
        ([2.0, 2.0, 2.0], [5.0, 0.0, 0.0]),
        ([1.0, 1.5, -2.0], [0.0, 0.0, -5.0]),
    ] {
        let gradients = search.knn_adjoint(aview2(&[[5.0]]), aview2(&[query]), aview2(&[[0]])).unwrap();
        assert_eq!(gradients.grad_queries, aview2(&[expected]));
        let doubled = expected.map(|x| x * 2.0 * query.map(f64::abs).into_iter().fold(0.0, f64::max));
        let gradients = search.squared().knn_adjoint(aview2(&[[5.0]]), aview2(&[query]), aview2(&[[0]])).unwrap();
        assert_eq!(gradients.grad_queries, aview2(&[doubled]));
    }
}

#[test]
fn half_of_the_box_away_is_the_unshifted_image() {
    let builder = Builder::default().periodic(&[Some(8.0), None]);
    for (point, query, image) in [(1.0, 5.0, 4.0), (5.0, 1.0, -4.0), (1.0, 5.5, -3.5), (5.5, 1.0, 3.5), (1.0, 4.5, 3.5)]
    {
        // Whole boxes away from where they are.
        for boxes in [0.0, 8.0, -24.0] {
            let tree = builder.build_dyn(array![[point - boxes, 0.0]].view()).unwrap();
            let query = array![[query + boxes, 0.0]];
            for metric in METRICS {
                let search = tree.search().metric(metric);
                let gradients = search.knn_adjoint(aview2(&[[2.0]]), query.view(), aview2(&[[0]])).unwrap();
                assert_eq!(gradients.grad_queries, array![[2.0 * f64::signum(image), 0.0]], "{metric:?} {query}");
                assert_eq!(gradients.grad_points, array![[-2.0 * f64::signum(image), 0.0]]);
                let squared = search.squared().knn_adjoint(aview2(&[[2.0]]), query.view(), aview2(&[[0]])).unwrap();
                assert_eq!(squared.grad_queries, array![[4.0 * image, 0.0]], "{metric:?} {query}");
            }
        }
    }
}

#[test]
fn padding_contributes_an_exact_zero() {
    let tree = tree(array![[0.0f32, 0.0], [3.0, 4.0]].view());
    let query = array![[0.0f32, 0.0], [30.0, 40.0]];
    for bad in [f32::NAN, f32::INFINITY, 1.0] {
        let (indices, grads) = (array![[2, 1, 2], [2, 2, 2]], array![[bad, 10.0, bad], [bad, bad, bad]]);
        let gradients = tree.search().knn_adjoint(grads.view(), query.view(), indices.view()).unwrap();
        assert_eq!(gradients.grad_queries, array![[-6.0, -8.0], [0.0, 0.0]]);
        assert_eq!(gradients.grad_points, array![[0.0, 0.0], [6.0, 8.0]]);
        let gradient = tree.search().knn_self_adjoint(grads.view(), indices.view()).unwrap();
        assert_eq!(gradient, array![[-6.0, -8.0], [6.0, 8.0]]);
    }
}

/// What nobody adds to keeps its bits, be it a negative zero or a NaN.
#[test]
fn rows_without_neighbors_are_left_as_they_are() {
    let tree = tree(array![[0.0f32, 0.0], [3.0, 4.0]].view());
    let (queries, indices) = (array![[0.0f32, 1.0]], array![[2, 2]]);
    let start = array![[-0.0f32, f32::from_bits(0xffa0_4321)], [1.0, -7.0]];
    let (mut grad_queries, mut grad_points) = (array![[-0.0f32, 5.0]], start.clone());
    let grads = array![[f32::NAN, 1.0]];
    let search = tree.search();
    let (q, p) = (grad_queries.view_mut(), grad_points.view_mut());
    search.knn_adjoint_add(grads.view(), queries.view(), indices.view(), q, p).unwrap();
    let bits = |array: &Array2<f32>| array.mapv(f32::to_bits);
    assert_eq!(bits(&grad_points), bits(&start));
    assert_eq!(bits(&grad_queries), bits(&array![[-0.0, 5.0]]));
    let grads = Array2::from_elem([2, 2], f32::NAN);
    search.knn_self_adjoint_add(grads.view(), array![[2, 2], [2, 2]].view(), grad_points.view_mut()).unwrap();
    assert_eq!(bits(&grad_points), bits(&start));
}

#[test]
fn a_gradient_that_is_not_a_number_arrives() {
    let tree = tree(array![[0.0f64, 0.0], [3.0, 4.0], [7.0, 7.0]].view());
    let gradients = tree.search().knn_adjoint(aview2(&[[1.0, f64::NAN]]), aview2(&[[1.0, 1.0]]), aview2(&[[0, 1]]));
    let gradients = gradients.unwrap();
    assert!(gradients.grad_queries.iter().all(|x| x.is_nan()));
    assert_eq!(gradients.grad_points.mapv(f64::is_nan), array![[false, false], [true, true], [false, false]]);
}

#[test]
fn whole_numbers_have_exact_gradients() {
    let points = array![[0.0f32, 0.0], [6.0, 8.0], [-3.0, 4.0]];
    let queries = array![[0.0f32, 0.0], [3.0, 4.0]];
    levels::each(|level| {
        let tree = tree(points.view()).with_level(level).unwrap();
        let found = tree.knn(queries.view(), 3).unwrap();
        assert_eq!(found.indices, array![[0, 2, 1], [0, 1, 2]]);
        let grads = array![[1.0, 10.0, 20.0], [5.0, 15.0, 6.0]];
        let gradients = tree.search().knn_adjoint(grads.view(), queries.view(), found.indices.view()).unwrap();
        // Every gradient is a multiple of its distance.
        assert_eq!(gradients.grad_queries, array![[6.0 - 12.0, -8.0 - 16.0], [3.0 - 9.0 + 6.0, 4.0 - 12.0]]);
        assert_eq!(gradients.grad_points, array![[-3.0, -4.0], [12.0 + 9.0, 16.0 + 12.0], [-6.0 - 6.0, 8.0]]);
        let gradients =
            tree.search().squared().knn_adjoint(grads.view(), queries.view(), found.indices.view()).unwrap();
        let first = [2.0 * (10.0 * 3.0 - 20.0 * 6.0), -2.0 * (10.0 * 4.0 + 20.0 * 8.0)];
        let second = [2.0 * (5.0 * 3.0 - 15.0 * 3.0 + 6.0 * 6.0), 2.0 * (5.0 * 4.0 - 15.0 * 4.0)];
        assert_eq!(gradients.grad_queries, aview2(&[first, second]));
    });
}

#[test]
fn a_point_is_query_first_and_neighbor_next() {
    // As a query point 0 gets 1, then as a neighbour 2^24 and -2^24, beside which the 1 is lost.
    let points = array![[2.0f32], [3.0], [1.0]];
    let indices = array![[2], [0], [0]];
    let big = (1u32 << 24) as f32;
    let grads = array![[1.0], [-big], [-big]];
    levels::each(|level| {
        let tree = tree(points.view()).with_level(level).unwrap();
        let found = tree.search().knn_self_adjoint(grads.view(), indices.view()).unwrap();
        assert_eq!(found, array![[0.0], [-big], [big - 1.0]]);
    });
}

#[test]
fn no_points_no_queries_no_neighbors() {
    for (n, m, k) in [(0, 0, 0), (0, 3, 2), (5, 0, 2), (5, 3, 0), (0, 3, 0)] {
        let (points, queries) = (Array2::<f32>::zeros([n, 3]), Array2::<f32>::ones([m, 3]));
        let tree = KdTree::<f32, 3>::new(points.view()).unwrap();
        let indices = tree.knn(queries.view(), k).unwrap().indices;
        let gradients = tree.knn_adjoint(Array2::ones([m, k]).view(), queries.view(), indices.view()).unwrap();
        assert_eq!((gradients.grad_queries.dim(), gradients.grad_points.dim()), ((m, 3), (n, 3)));
        let indices = tree.knn_self(k).unwrap().indices;
        let gradient = tree.knn_self_adjoint(Array2::ones([n, k]).view(), indices.view()).unwrap();
        assert_eq!(gradient, Array2::zeros([n, 3]));
    }
}

/// The shorthands of a tree are searches by L2, not squared.
#[test]
fn a_tree_has_shorthands() {
    let points = array![[0.0f32, 0.5], [3.0, 4.0], [1.0, 0.0]];
    let tree = KdTree::<f32, 2>::new(points.view()).unwrap();
    let indices = tree.knn_self(2).unwrap().indices;
    let grads = array![[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]];
    let (by_tree, by_search) = (
        tree.knn_adjoint(grads.view(), points.view(), indices.view()).unwrap(),
        tree.search().knn_adjoint(grads.view(), points.view(), indices.view()).unwrap(),
    );
    assert_eq!(by_tree.grad_queries, by_search.grad_queries);
    assert_eq!(by_tree.grad_points, by_search.grad_points);
    let of_itself = tree.knn_self_adjoint(grads.view(), indices.view()).unwrap();
    assert_eq!(of_itself, tree.search().knn_self_adjoint(grads.view(), indices.view()).unwrap());
    let sum = &by_tree.grad_queries + &by_tree.grad_points;
    assert!((of_itself - sum).iter().all(|x| x.abs() < 1e-5));
}

/// A hub that every query names, from as many threads as there are.
#[test]
fn a_hub_is_the_same_for_every_number_of_threads() {
    let queries = Array2::from_shape_fn([30_000, 3], |(row, axis)| ((row * 7 + axis * 13) % 101) as f32 * 0.37);
    let points = array![[0.3f32, 0.1, 0.7], [50.0, 50.0, 50.0]];
    let indices = Array2::from_shape_fn([30_000, 2], |(row, at)| u32::from((row + at) % 100 == 0));
    let grads = Array2::from_shape_fn([30_000, 2], |(row, at)| 1.0 / (1 + row + at) as f32);
    let tree = tree(points.view());
    let gradients = || tree.search().knn_adjoint(grads.view(), queries.view(), indices.view()).unwrap().grad_points;
    let expected = threads::with(1, gradients).mapv(f32::to_bits);
    for count in threads::COUNTS {
        assert_eq!(threads::with(count, gradients).mapv(f32::to_bits), expected, "{count} threads");
    }
}
