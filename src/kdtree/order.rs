//! Queries in spatial order, so that neighbouring ones find the same leaves in cache and can share a traversal.
//!
//! The key of a query is the leaf that it would lie in, found by a descent of the tree, and then where it lies in that
//! leaf's box. The tree follows the points, so the order is as fine in a cluster as anywhere; keys cut from the points'
//! bounding box put a small cluster into one cell, and a search of its points took ten times as long.

use super::arena::{Dims, View, dims};
use crate::element::Element;
use crate::parallel::Permutation;
use std::hint::select_unpredictable;
use std::ops::Range;

/// Queries that descend together: a step waits for memory, and the steps of different queries do not wait for each other.
const TOGETHER: usize = 8;

/// Halvings of a leaf's box.
const HALVINGS: usize = 3;

/// A query on its way down.
#[derive(Clone, Copy, Default)]
struct Descent {
    node: usize,
    first_leaf: usize,
    leaves: usize,
}

impl Descent {
    /// One step down from a subtree that is not a leaf, without a branch: which way it goes cannot be predicted.
    #[inline(always)]
    fn step<T: Element>(&mut self, tree: &View<'_, T>, query: &[T]) {
        let node = tree.node(self.node, query.len());
        let left_leaves = self.leaves.div_ceil(2);
        let skipped = select_unpredictable(query[node.axis] >= node.split, left_leaves, 0);
        // Of the subtrees that are skipped one node is that of the left's leaves, less one.
        self.node += skipped.max(1);
        self.first_leaf += skipped;
        self.leaves = select_unpredictable(skipped > 0, self.leaves / 2, left_leaves);
    }
}

/// The home leaves of finite queries (M, D), M at most [`TOGETHER`].
#[inline(always)]
fn homes<T: Element, A: Dims>(dims: A, tree: &View<'_, T>, queries: &[A::Axes<T>]) -> [usize; TOGETHER] {
    let mut descents = [Descent { node: 0, first_leaf: 0, leaves: tree.leaves() }; TOGETHER];
    // All subtrees of a depth have equally many leaves or one more: down to this one they are no leaves.
    for _ in 0..tree.leaves().ilog2() {
        for (descent, query) in descents.iter_mut().zip(queries) {
            descent.step(tree, &query.as_ref()[..dims.count()]);
        }
    }
    for (descent, query) in descents.iter_mut().zip(queries) {
        if descent.leaves > 1 {
            descent.step(tree, &query.as_ref()[..dims.count()]);
        }
    }
    descents.map(|descent| descent.first_leaf)
}

/// Where a query lies in a leaf's box: the halves along its longest side, and along the axes after that.
#[inline(always)]
fn place<T: Element, A: Dims>(dims: A, tree: &View<'_, T>, leaf: usize, query: &[T]) -> usize {
    let d = dims.count();
    let (low, high) = tree.leaf_box(leaf);
    let (low, high) = (&low[..d], &high[..d]);
    let (mut longest, mut axis) = (high[0] - low[0], 0);
    for other in 1..d {
        let side = high[other] - low[other];
        (longest, axis) = select_unpredictable(side > longest, (side, other), (longest, axis));
    }
    let half = T::from_f64(0.5).expect("an element");
    let mut place = 0;
    for _ in 0..HALVINGS {
        // Halved before they are added, so that the sum does not overflow.
        place = place << 1 | usize::from(query[axis] > low[axis] * half + high[axis] * half);
        axis = if axis + 1 < d { axis + 1 } else { 0 };
    }
    place
}

/// The order in which to search: finite queries in spatial order, then the others. `copy` copies a query.
pub(super) fn spatial<T: Element>(
    tree: &View<'_, T>,
    queries: usize,
    copy: impl Fn(usize, &mut [T]) + Sync,
) -> Permutation {
    let absent = (tree.leaves() << HALVINGS) as u32;
    Permutation::by_key(queries, absent, |rows: Range<usize>, keys: &mut [u32]| {
        if tree.leaves() == 0 {
            keys.fill(absent);
            return;
        }
        dims!(tree.dims, |dims| fill_keys(dims, tree, rows, keys, absent, &copy));
    })
}

/// The keys of the queries of some rows.
fn fill_keys<T: Element, A: Dims>(
    dims: A,
    tree: &View<'_, T>,
    rows: Range<usize>,
    keys: &mut [u32],
    absent: u32,
    copy: &impl Fn(usize, &mut [T]),
) {
    let d = dims.count();
    for (first, keys) in rows.step_by(TOGETHER).zip(keys.chunks_mut(TOGETHER)) {
        let mut queries = [dims.all(T::zero()); TOGETHER];
        for (row, query) in (first..).zip(&mut queries[..keys.len()]) {
            copy(row, &mut query.as_mut()[..d]);
        }
        let homes = homes(dims, tree, &queries);
        for ((key, query), home) in keys.iter_mut().zip(&queries).zip(homes) {
            let query = &query.as_ref()[..d];
            let at = home << HALVINGS | place(dims, tree, home, query);
            *key = if query.iter().all(|x| x.is_finite()) { at as u32 } else { absent };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kdtree::KdTreeDyn;
    use crate::kdtree::arena::Fixed;
    use ndarray::Array2;

    /// A leaf is the home of its own points, but for those on a split.
    #[test]
    fn points_are_at_home_where_they_lie() {
        for n in [1, 16, 17, 33, 48, 100, 1000, 1041] {
            let points = Array2::from_shape_fn((n, 2), |(row, axis)| [row, row * row % 1021][axis] as f64 + 0.5);
            let tree = KdTreeDyn::<f64>::builder().leaf_size(16).build_dyn(points.view()).unwrap();
            let tree = tree.arena.view();
            for (slot, &row) in tree.ids[..n].iter().enumerate() {
                let query = points.row(row as usize).to_vec();
                let home = homes(Fixed::<2>, &tree, &[[query[0], query[1]]])[0];
                let mut nodes = (0..tree.nodes.len()).map(|node| tree.node(node, 2));
                let on_split = nodes.any(|node| query[node.axis] == node.split);
                assert!(home == slot / 16 || on_split, "{n} points, {row} in leaf {} has home {home}", slot / 16);
            }
        }
    }

    #[test]
    fn absent_queries_are_last() {
        let tree = KdTreeDyn::<f64>::new(Array2::from_shape_fn((100, 1), |(row, _)| row as f64).view()).unwrap();
        let queries = [99.0, f64::NAN, 0.0, f64::INFINITY, 64.0];
        let order = spatial(&tree.arena.view(), 5, |row, query| query[0] = queries[row]);
        assert_eq!(order.as_slice(), [2, 4, 0, 1, 3]);
    }
}
