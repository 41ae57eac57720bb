//! One query, one traversal: the points of a leaf lie in the lanes.
//!
//! The bound of a subtree is built from the distances to the splits behind which it lies, one an axis, squared and
//! summed in the order in which a point's distance is. Rounding is monotone, so the bound never exceeds the computed
//! distance of a point in the subtree, and a subtree is left out only where its bound is greater than the worst key: a
//! point at exactly that distance may still win by its row number.

use super::arena::{Arena, Dims};
use super::best::Best;
use super::kernels::Tile;
use crate::element::Element;
use crate::simd::{Mask, Simd, Vector};

/// A subtree still to be visited.
#[derive(Clone, Copy)]
pub(super) struct Subtree<T, G> {
    /// The first node of the subtree in pre-order.
    pub node: usize,
    pub first_leaf: usize,
    pub leaves: usize,
    /// The distance from the query to the subtree on every axis, rounded down or exact.
    pub gaps: G,
    /// Their squares, summed in the order of the axes.
    pub bound: T,
}

/// The subtrees still to be visited. A descent leaves one behind at every level, and there are fewer than 2^28 leaves.
pub(super) struct Stack<T, G> {
    subtrees: [Subtree<T, G>; 32],
    len: usize,
}

impl<T: Element, G: Copy> Stack<T, G> {
    #[inline(always)]
    pub(super) fn new(gaps: G) -> Self {
        Self { subtrees: [Subtree { node: 0, first_leaf: 0, leaves: 0, gaps, bound: T::zero() }; 32], len: 0 }
    }

    /// Starts again with the whole tree, where there is one.
    #[inline(always)]
    pub(super) fn start(&mut self, tree: &Arena<T>, gaps: G) {
        self.len = 0;
        if tree.points > 0 {
            self.push(Subtree { node: 0, first_leaf: 0, leaves: tree.leaves(), gaps, bound: T::zero() });
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, subtree: Subtree<T, G>) {
        self.subtrees[self.len] = subtree;
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Subtree<T, G>> {
        self.len = self.len.checked_sub(1)?;
        Some(self.subtrees[self.len])
    }
}

/// Squares summed in the order of the axes, without fusing: the key of a difference vector.
#[inline(always)]
pub(super) fn key<T: Element>(gaps: &[T]) -> T {
    let mut sum = gaps[0] * gaps[0];
    for &gap in &gaps[1..] {
        sum = sum + gap * gap;
    }
    sum
}

/// [`key`] a lane.
#[inline(always)]
pub(super) fn sum_of_squares<T: Element, V: Vector<T>>(dims: impl Dims, difference: impl Fn(usize) -> V) -> V {
    let d = difference(0);
    let mut sum = d * d;
    for axis in 1..dims.count() {
        let d = difference(axis);
        sum = sum + d * d;
    }
    sum
}

/// The two halves of a subtree that is not a leaf, without their bounds.
#[inline(always)]
pub(super) fn halves<T: Copy, G: Copy>(subtree: &Subtree<T, G>) -> (Subtree<T, G>, Subtree<T, G>) {
    let left = subtree.leaves.div_ceil(2);
    (
        Subtree { node: subtree.node + 1, leaves: left, ..*subtree },
        Subtree {
            node: subtree.node + left,
            first_leaf: subtree.first_leaf + left,
            leaves: subtree.leaves - left,
            ..*subtree
        },
    )
}

#[inline(always)]
pub(super) fn walk<T: Element, S: Simd, A: Dims>(s: S, dims: A, tree: &Arena<T>, tile: &mut Tile<'_, T>) {
    let mut stack = Stack::new(dims.all(T::zero()));
    let answers = tile.keys.chunks_exact_mut(tile.k).zip(tile.ids.chunks_exact_mut(tile.k));
    for (index, (query, (keys, ids))) in tile.queries.chunks_exact(dims.count()).zip(answers).enumerate() {
        let mut best = Best::new(keys, ids, tree.rows as u32);
        let own = tile.own.map(|own| own[index]);
        search(s, dims, tree, query, own, &mut best, &mut stack);
        best.finish();
    }
}

#[inline(always)]
fn search<T: Element, S: Simd, A: Dims>(
    s: S,
    dims: A,
    tree: &Arena<T>,
    query: &[T],
    own: Option<u32>,
    best: &mut Best<'_, T>,
    stack: &mut Stack<T, A::Axes<T>>,
) {
    let mut queries = dims.all(s.splat(T::zero()));
    for (lanes, &x) in queries.as_mut().iter_mut().zip(query) {
        *lanes = s.splat(x);
    }
    stack.start(tree, dims.all(T::zero()));
    while let Some(mut subtree) = stack.pop() {
        if subtree.bound > best.worst() {
            continue;
        }
        while subtree.leaves > 1 {
            let node = tree.nodes[subtree.node];
            let axis = node.axis as usize;
            let gap = query[axis] - node.split;
            let (left, right) = halves(&subtree);
            let (near, mut far) = if gap < T::zero() { (left, right) } else { (right, left) };
            far.gaps.as_mut()[axis] = gap;
            far.bound = key(&far.gaps.as_ref()[..dims.count()]);
            if far.bound <= best.worst() {
                stack.push(far);
            }
            subtree = near;
        }
        let leaf = subtree.first_leaf;
        let (coordinates, ids) = (tree.leaf_coordinates(leaf), tree.leaf_ids(leaf));
        for first in (0..tree.leaf).step_by(T::LANES) {
            let sum = sum_of_squares(
                dims,
                #[inline(always)]
                |axis| queries.as_ref()[axis] - s.load(&coordinates[axis * tree.leaf + first..]),
            );
            let mut near = sum.le(s.splat(best.worst())).bits();
            if near != 0 {
                let mut keys = [T::zero(); 16];
                sum.store(&mut keys);
                while near != 0 {
                    let lane = near.trailing_zeros() as usize;
                    near &= near - 1;
                    let id = ids[first + lane];
                    if own != Some(id) {
                        best.offer(keys[lane], id);
                    }
                }
            }
        }
    }
}
