//! What is returned beside the neighbours' bits: counts, mask, and indices that a gather takes as they are.

use crate::common::levels;
use ndarray::{array, s};
use pullback::gather::{Gather, OutOfRange};
use pullback::kdtree::KdTree;

const NAN: f32 = f32::NAN;
const INF: f32 = f32::INFINITY;

#[test]
fn counts_and_mask_tell_neighbours_from_padding() {
    let points = array![[0.0], [INF], [3.0]];
    let tree: KdTree<f32, 1> = KdTree::<f32, 1>::builder().non_finite_is_absent().build(points.view()).unwrap();
    let found = tree.knn(array![[2.0], [NAN]].view(), 3).unwrap();
    assert_eq!(found.indices, array![[2, 0, 3], [3, 3, 3]]);
    assert_eq!(found.distances, array![[1.0, 2.0, INF], [INF, INF, INF]]);
    assert_eq!(found.counts(), array![2, 0]);
    assert_eq!(found.mask(), array![[true, true, false], [false, false, false]]);
    assert_eq!(tree.knn_self(1).unwrap().counts(), array![1, 0, 1]);
}

/// A distance that overflows is not padding.
#[test]
fn infinitely_far_neighbours_count() {
    let found = KdTree::<f32, 1>::new(array![[3e38], [-3e38]].view()).unwrap().knn_self(2).unwrap();
    assert_eq!(found.indices, array![[1, 2], [0, 2]]);
    assert_eq!(found.distances, array![[INF, INF], [INF, INF]]);
    assert_eq!(found.counts(), array![1, 1]);
    assert_eq!(found.mask(), array![[true, false], [true, false]]);
}

#[test]
fn indices_go_into_a_gather() {
    let points = array![[0.0, 0.0], [NAN, 0.0], [1.0, 0.0]];
    let features = array![[1.0f32, 10.0], [2.0, 20.0], [3.0, 30.0]];
    levels::each(|level| {
        let tree: KdTree<f32, 2> = KdTree::<f32, 2>::builder().non_finite_is_absent().build(points.view()).unwrap();
        let tree = tree.with_level(level).unwrap();
        let found = tree.knn(array![[0.9, 0.0], [0.0, INF]].view(), 3).unwrap();
        let gather = Gather::unbatched(found.indices.view(), tree.len(), OutOfRange::Skip { fill: -1.0 }).unwrap();
        let gather = gather.with_level(level).unwrap();
        let gathered = gather.forward(features.view()).unwrap();
        assert_eq!(gathered.slice(s![0, .., ..]), array![[3.0, 30.0], [1.0, 10.0], [-1.0, -1.0]]);
        assert_eq!(gathered.slice(s![1, .., ..]), array![[-1.0, -1.0], [-1.0, -1.0], [-1.0, -1.0]]);
        assert_eq!(gather.adjoint(gathered.view()).unwrap(), array![[1.0, 10.0], [0.0, 0.0], [3.0, 30.0]]);
    });
}
