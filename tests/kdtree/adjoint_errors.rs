//! Refusals by the gradients of distances: what they name, and that nothing was written.

use crate::common::refusals::{refused, shape_error, untouched, wrong};
use crate::common::threads;
use ndarray::{Array2, ArrayView2, array};
use pullback::Error;
use pullback::kdtree::{Builder, KdTreeDyn};

/// (N, D), (M, D), (M, K)
const POINTS: [usize; 2] = [5, 3];
const QUERIES: [usize; 2] = [4, 3];
const PAIRS: [usize; 2] = [4, 2];

fn tree() -> KdTreeDyn<f32> {
    KdTreeDyn::new(Array2::from_shape_fn(POINTS, |(row, axis)| (row * 3 + axis) as f32).view()).unwrap()
}

fn ones(shape: [usize; 2]) -> Array2<f32> {
    Array2::ones(shape)
}

/// Every form of the gradient refuses its inputs alike and writes nothing.
#[track_caller]
fn refuses(
    tree: &KdTreeDyn<f32>,
    queries: &Array2<f32>,
    indices: ArrayView2<'_, u32>,
    grads: &Array2<f32>,
    error: &Error,
) {
    let (search, queries, grads) = (tree.search(), queries.view(), grads.view());
    assert_eq!(search.knn_adjoint(grads, queries, indices).err().as_ref(), Some(error));
    for add in [false, true] {
        let result = untouched(QUERIES, |q| {
            untouched(POINTS, |p| match add {
                false => search.knn_adjoint_into(grads, queries, indices, q, p),
                true => search.knn_adjoint_add(grads, queries, indices, q, p),
            })
        });
        assert_eq!(result.as_ref(), Err(error));
    }
}

#[track_caller]
fn self_refuses(tree: &KdTreeDyn<f32>, indices: ArrayView2<'_, u32>, grads: &Array2<f32>, error: &Error) {
    let (search, grads) = (tree.search(), grads.view());
    assert_eq!(search.knn_self_adjoint(grads, indices).err().as_ref(), Some(error));
    refused(error.clone(), POINTS, |p| search.knn_self_adjoint_into(grads, indices, p));
    refused(error.clone(), POINTS, |p| search.knn_self_adjoint_add(grads, indices, p));
}

#[test]
fn wrong_shapes_are_refused() {
    let (tree, indices) = (tree(), Array2::<u32>::zeros(PAIRS));
    for columns in [0, 2, 4] {
        let bad = [4, columns];
        refuses(&tree, &ones(bad), indices.view(), &ones(PAIRS), &shape_error("queries", bad, QUERIES));
    }
    // The number of neighbours is free: the indices decide it.
    for bad in wrong(PAIRS, 1) {
        let indices = Array2::zeros(bad);
        refuses(&tree, &ones(QUERIES), indices.view(), &ones(PAIRS), &shape_error("indices", bad, PAIRS));
    }
    for bad in wrong(PAIRS, 2) {
        let error = shape_error("grad_distances", bad, PAIRS);
        refuses(&tree, &ones(QUERIES), indices.view(), &ones(bad), &error);
    }
    let (search, queries, grads) = (tree.search(), ones(QUERIES), ones(PAIRS));
    for bad in wrong(QUERIES, 2) {
        let result = untouched(bad, |q| {
            untouched(POINTS, |p| search.knn_adjoint_into(grads.view(), queries.view(), indices.view(), q, p))
        });
        assert_eq!(result, Err(shape_error("grad_queries", bad, QUERIES)));
    }
    for bad in wrong(POINTS, 2) {
        let result = untouched(QUERIES, |q| {
            untouched(bad, |p| search.knn_adjoint_add(grads.view(), queries.view(), indices.view(), q, p))
        });
        assert_eq!(result, Err(shape_error("grad_points", bad, POINTS)));
    }
}

#[test]
fn wrong_shapes_of_the_gradient_of_knn_self_are_refused() {
    let (tree, right) = (tree(), [5, 2]);
    for bad in wrong(right, 1) {
        self_refuses(&tree, Array2::zeros(bad).view(), &ones(right), &shape_error("indices", bad, right));
    }
    for bad in wrong(right, 2) {
        let error = shape_error("grad_distances", bad, right);
        self_refuses(&tree, Array2::zeros(right).view(), &ones(bad), &error);
    }
    for bad in wrong(POINTS, 2) {
        refused(shape_error("grad_points", bad, POINTS), bad, |p| {
            tree.search().knn_self_adjoint_into(ones(right).view(), Array2::zeros(right).view(), p)
        });
    }
}

fn out_of_range(position: [usize; 2], value: u32) -> Error {
    Error::IndexOutOfRange { argument: "indices", position: position.to_vec(), value: value.into(), bound: 5 }
}

#[test]
fn the_first_index_that_is_neither_a_point_nor_padding_is_named() {
    let tree = tree();
    for bad in [6, 7, 1 << 31, u32::MAX - 1, u32::MAX] {
        let mut indices = array![[0, 5], [4, 5], [5, 1], [2, 3]];
        (indices[[3, 0]], indices[[1, 1]]) = (u32::MAX, bad);
        refuses(&tree, &ones(QUERIES), indices.view(), &ones(PAIRS), &out_of_range([1, 1], bad));
        let mut indices = array![[1, 5], [4, 5], [5, 1], [2, 3], [0, 0]];
        (indices[[4, 1]], indices[[2, 0]]) = (6, bad);
        self_refuses(&tree, indices.view(), &ones([5, 2]), &out_of_range([2, 0], bad));
    }
    let indices = array![[0, 0], [0, 0], [0, 0], [0, 9]];
    let error = tree.knn_adjoint(ones(PAIRS).view(), ones(QUERIES).view(), indices.view()).err().unwrap();
    assert_eq!(error.to_string(), "indices[3, 1] = 9 is outside 0..5");
}

#[test]
fn the_lowest_bad_index_is_named_by_every_number_of_threads() {
    const ROWS: usize = 200_000;
    let (tree, queries, grads) = (tree(), Array2::zeros([ROWS, 3]), Array2::ones([ROWS, 2]));
    for (low, high) in [(0, 1), (ROWS / 2 - 1, ROWS / 2), (ROWS / 3, ROWS - 1), (ROWS / 5 * 2, ROWS / 5 * 3)] {
        let mut indices = Array2::<u32>::zeros([ROWS, 2]);
        (indices[[low, 1]], indices[[high, 0]]) = (77, 99);
        for count in threads::COUNTS {
            let found = threads::with(count, || tree.knn_adjoint(grads.view(), queries.view(), indices.view()).err());
            assert_eq!(found, Some(out_of_range([low, 1], 77)), "{count} threads");
        }
    }
}

/// No search finds an absent point.
#[test]
fn an_index_that_names_an_absent_point_is_refused() {
    let mut points = Array2::from_shape_fn(POINTS, |(row, axis)| (row * 3 + axis) as f32);
    points[[2, 1]] = f32::NAN;
    let tree = Builder::default().non_finite_is_absent().build_dyn(points.view()).unwrap();
    let indices = array![[0, 1], [5, 4], [3, 2], [2, 9]];
    refuses(&tree, &ones(QUERIES), indices.view(), &ones(PAIRS), &out_of_range([2, 1], 2));
    let indices = array![[1, 3], [3, 4], [5, 5], [4, 2], [0, 9]];
    self_refuses(&tree, indices.view(), &ones([5, 2]), &out_of_range([3, 1], 2));
}

#[test]
fn queries_that_are_not_finite_are_refused() {
    for (value, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut queries = ones(QUERIES);
        (queries[[2, 1]], queries[[3, 0]]) = (value, f32::NAN);
        let error = Error::NonFinite { argument: "queries", position: vec![2, 1], value: word.to_owned() };
        refuses(&tree(), &queries, Array2::zeros(PAIRS).view(), &ones(PAIRS), &error);
    }
}

/// Such rows are all padding where a search was told to let them be, and otherwise are as if they were.
#[test]
fn absent_queries_contribute_nothing() {
    let points = Array2::from_shape_fn(POINTS, |(row, axis)| (row * 3 + axis) as f32);
    let tree = Builder::default().non_finite_is_absent().build_dyn(points.view()).unwrap();
    let queries = array![[f32::NAN, 0.0, 0.0], [0.0, f32::INFINITY, 1.0]];
    for indices in [array![[5, 5], [5, 5]], array![[0, 1], [4, 5]]] {
        let gradients = tree.knn_adjoint(ones([2, 2]).view(), queries.view(), indices.view()).unwrap();
        assert_eq!(gradients.grad_queries, Array2::zeros([2, 3]));
        assert_eq!(gradients.grad_points, Array2::zeros(POINTS));
    }
}
