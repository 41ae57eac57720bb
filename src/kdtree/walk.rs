//! One query, one traversal: the points of a leaf lie in the lanes.
//!
//! The bound of a subtree is built from the distances to its cell, one an axis, joined as the differences of a point
//! are. Rounding is monotone, so the bound never exceeds the key of a point in the subtree, and a subtree is left out
//! only where its bound is greater than the worst key: a point at exactly that distance may still win by its row number.

use super::arena::{Dims, View};
use super::best::Best;
use super::kernels::{Hit, RadiusTile, Tile};
use super::metric::{Norm, keys};
use super::periodic::Space;
use crate::element::Element;
use crate::simd::{Mask, Simd, Vector};
use std::hint::select_unpredictable;

/// A subtree still to be visited.
#[derive(Clone, Copy)]
pub(super) struct Subtree<T, C> {
    /// The first node of the subtree in pre-order.
    pub node: usize,
    pub first_leaf: usize,
    pub leaves: usize,
    /// How far away the subtree is on every axis.
    pub cell: C,
    /// A lower bound of the keys of its points.
    pub bound: T,
}

impl<T: Copy, C: Copy> Subtree<T, C> {
    /// Another part of the same subtree, if `other` says so, without a branch. Cell and bound are left alone.
    #[inline(always)]
    pub(super) fn or(self, other: bool, part: Self) -> Self {
        Self {
            node: select_unpredictable(other, part.node, self.node),
            first_leaf: select_unpredictable(other, part.first_leaf, self.first_leaf),
            leaves: select_unpredictable(other, part.leaves, self.leaves),
            ..self
        }
    }
}

/// The two halves of a subtree.
pub(super) type Halves<T, C> = (Subtree<T, C>, Subtree<T, C>);

/// The subtrees still to be visited. A descent leaves one behind at every level, and there are fewer than 2^28 leaves.
pub(super) struct Stack<T, C> {
    subtrees: [Subtree<T, C>; 32],
    len: usize,
}

impl<T: Element, C: Copy> Stack<T, C> {
    #[inline(always)]
    pub(super) fn new(cell: C) -> Self {
        Self { subtrees: [Subtree { node: 0, first_leaf: 0, leaves: 0, cell, bound: T::zero() }; 32], len: 0 }
    }

    /// Starts again with the whole tree, where there is one.
    #[inline(always)]
    pub(super) fn start(&mut self, tree: &View<'_, T>, cell: C) {
        self.len = 0;
        if tree.points > 0 {
            self.push(Subtree { node: 0, first_leaf: 0, leaves: tree.leaves(), cell, bound: T::zero() });
        }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, subtree: Subtree<T, C>) {
        self.subtrees[self.len] = subtree;
        self.len += 1;
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Subtree<T, C>> {
        self.len = self.len.checked_sub(1)?;
        Some(self.subtrees[self.len])
    }
}

/// The two halves of a subtree that is not a leaf, without their bounds.
#[inline(always)]
pub(super) fn halves<T: Copy, C: Copy>(subtree: &Subtree<T, C>) -> Halves<T, C> {
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

/// What becomes of the points that a traversal meets.
trait Visitor<T> {
    /// The key that a point must not exceed to be of interest.
    fn worst(&self) -> T;

    /// Takes a point whose key does not exceed the [`Visitor::worst`] of a moment ago.
    fn take<S: Simd>(&mut self, s: S, key: T, id: u32);
}

/// Keeps the best.
struct Nearest<'a, T> {
    best: Best<'a, T>,
    /// The row that the query is of.
    own: Option<u32>,
}

impl<T: Element> Visitor<T> for Nearest<'_, T> {
    #[inline(always)]
    fn worst(&self) -> T {
        self.best.worst()
    }
    #[inline(always)]
    fn take<S: Simd>(&mut self, s: S, key: T, id: u32) {
        if self.own != Some(id) {
            self.best.offer(s, key, id);
        }
    }
}

/// Keeps all, as far as there is room, and counts them.
struct Ball<'a, T> {
    bound: T,
    /// Row numbers up to this one are left out.
    after: Option<u32>,
    hits: &'a mut [Hit<T>],
    count: usize,
}

impl<T: Element> Visitor<T> for Ball<'_, T> {
    #[inline(always)]
    fn worst(&self) -> T {
        self.bound
    }
    #[inline(always)]
    fn take<S: Simd>(&mut self, _: S, key: T, id: u32) {
        if self.after.is_none_or(|after| id > after) {
            if let Some(hit) = self.hits.get_mut(self.count) {
                *hit = Hit { key, id };
            }
            self.count += 1;
        }
    }
}

#[inline(always)]
pub(super) fn walk<T: Element, S: Simd, A: Dims, N: Norm, P: Space<T>>(
    s: S,
    (dims, norm, space): (A, N, P),
    tree: &View<'_, T>,
    tile: &mut Tile<'_, T>,
) {
    let mut stack = Stack::new(space.whole(dims));
    let k = tile.k;
    for (index, (query, &bound)) in tile.queries.chunks_exact(dims.count()).zip(tile.bounds).enumerate() {
        let (keys, ids) = (&mut tile.keys[index * k..][..k], &mut tile.ids[index * k..][..k]);
        let best = Best::new(keys, ids, bound, tree.rows as u32);
        let mut nearest = Nearest { best, own: tile.own.map(|own| own[index]) };
        search(s, (dims, norm, space), tree, query, &mut nearest, &mut stack);
        nearest.best.finish();
    }
}

/// Returns the number of queries answered, fewer than there are where the room for hits was too small for the next.
#[inline(always)]
pub(super) fn ball<T: Element, S: Simd, A: Dims, N: Norm, P: Space<T>>(
    s: S,
    (dims, norm, space): (A, N, P),
    tree: &View<'_, T>,
    tile: &mut RadiusTile<'_, T>,
) -> usize {
    let mut stack = Stack::new(space.whole(dims));
    let mut hits = tile.hits.as_deref_mut();
    let queries = tile.queries.chunks_exact(dims.count()).zip(tile.bounds);
    for (index, ((query, &bound), count)) in queries.zip(&mut *tile.counts).enumerate() {
        let room = hits.take();
        let is_counting = room.is_none();
        let mut ball =
            Ball { bound, after: tile.after.map(|after| after[index]), hits: room.unwrap_or_default(), count: 0 };
        search(s, (dims, norm, space), tree, query, &mut ball, &mut stack);
        *count = ball.count;
        if !is_counting {
            if ball.count > ball.hits.len() {
                return index;
            }
            let Ball { hits: room, count, .. } = ball;
            hits = Some(&mut room[count..]);
        }
    }
    tile.bounds.len()
}

#[inline(always)]
fn search<T: Element, S: Simd, A: Dims, N: Norm, P: Space<T>>(
    s: S,
    (dims, norm, space): (A, N, P),
    tree: &View<'_, T>,
    query: &[T],
    visitor: &mut impl Visitor<T>,
    stack: &mut Stack<T, P::Cell<A>>,
) {
    let mut lanes = dims.all(s.splat(T::zero()));
    for (lanes, &x) in lanes.as_mut().iter_mut().zip(query) {
        *lanes = s.splat(x);
    }
    stack.start(tree, space.whole(dims));
    while let Some(mut subtree) = stack.pop() {
        if subtree.bound > visitor.worst() {
            continue;
        }
        while subtree.leaves > 1 {
            let (near, far) = space.halves(dims, norm, &subtree, tree.node(subtree.node, dims.count()), query);
            if far.bound <= visitor.worst() {
                stack.push(far);
            }
            subtree = near;
        }
        // In a periodic box the nearer half can be further away than the whole too.
        if subtree.bound > visitor.worst() {
            continue;
        }
        let leaf = subtree.first_leaf;
        let (coordinates, ids) = (tree.leaf_coordinates(leaf), tree.leaf_ids(leaf));
        let points = tree.leaf.min(tree.points - leaf * tree.leaf);
        for first in (0..points).step_by(T::LANES) {
            let sums = keys(
                s,
                norm,
                dims,
                #[inline(always)]
                |axis| {
                    let points = s.load(&coordinates[axis * tree.leaf + first..]);
                    space.differences(s, axis, lanes.as_ref()[axis], points)
                },
            );
            // Slots behind the last point hold nothing.
            let present = u32::MAX >> (32 - T::LANES.min(points - first));
            let mut near = sums.le(s.splat(visitor.worst())).bits() & present;
            if near != 0 {
                let mut keys = [T::zero(); 16];
                sums.store(&mut keys);
                while near != 0 {
                    let lane = near.trailing_zeros() as usize;
                    near &= near - 1;
                    visitor.take(s, keys[lane], ids[first + lane]);
                }
            }
        }
    }
}
