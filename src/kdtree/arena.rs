//! The tree as flat arrays, and the axes that kernels loop over.
//!
//! Points are sorted so that a leaf is `leaf` consecutive slots and only the last leaf is not full. The binary tree over
//! the leaves is implicit: a subtree of `n` leaves has its first `ceil(n / 2)` leaves on the left. Its `n - 1` nodes lie
//! in pre-order, the root, the left subtree, the right one, so that a subtree is a slice of every array, to be built by
//! its own thread, and a descent reads memory forwards.

use super::periodic::Torus;
use crate::element::Element;
use ndarray::Array2;
use std::sync::OnceLock;

/// The largest number of dimensions.
pub(super) const MAX_DIMS: usize = 16;

/// Marks a slot without a point. Greater than every row number, so such a slot loses every comparison.
pub(super) const NO_POINT: u32 = u32::MAX;

/// A split: coordinates on `axis` are at most `split` on the left and at least `split` on the right.
#[derive(Clone, Copy)]
pub struct Node<T> {
    pub split: T,
    pub axis: u8,
}

/// A k-d tree.
pub struct Arena<T> {
    /// D.
    pub(super) dims: usize,
    /// Slots of a leaf, a power of two and at least 16.
    pub(super) leaf: usize,
    /// N, rows of the caller's points, absent ones included.
    pub(super) rows: usize,
    /// Points in the tree.
    pub(super) points: usize,
    /// (leaves, D, leaf). Slots behind the last point hold +inf.
    pub(super) coordinates: Vec<T>,
    /// (leaves, leaf) row numbers. Slots behind the last point hold [`NO_POINT`].
    pub(super) ids: Vec<u32>,
    /// Leaves - 1, in pre-order.
    pub(super) nodes: Vec<Node<T>>,
    /// (leaves, 2, D): the lowest and the highest coordinates of a leaf.
    pub(super) boxes: Vec<T>,
    /// The periodic box that the points lie in.
    pub(super) torus: Option<Torus<T>>,
    /// The points by row number, made on first need.
    pub(super) by_row: OnceLock<Array2<T>>,
}

impl<T: Element> Arena<T> {
    pub(super) fn leaves(&self) -> usize {
        self.ids.len() / self.leaf
    }

    /// The coordinates of a leaf, (D, leaf).
    #[inline(always)]
    pub(super) fn leaf_coordinates(&self, leaf: usize) -> &[T] {
        let size = self.dims * self.leaf;
        &self.coordinates[leaf * size..][..size]
    }

    /// The row numbers of a leaf.
    #[inline(always)]
    pub(super) fn leaf_ids(&self, leaf: usize) -> &[u32] {
        &self.ids[leaf * self.leaf..][..self.leaf]
    }

    /// The lowest and the highest coordinates of a leaf.
    #[inline(always)]
    pub(super) fn leaf_box(&self, leaf: usize) -> (&[T], &[T]) {
        self.boxes[leaf * 2 * self.dims..][..2 * self.dims].split_at(self.dims)
    }
}

/// The number of axes: known to the compiler for 2, 3 and 4, a run-time count for the rest.
pub(super) trait Dims: Copy {
    /// One value an axis.
    type Axes<V: Copy>: AsRef<[V]> + AsMut<[V]> + Copy;
    fn count(self) -> usize;
    fn all<V: Copy>(self, value: V) -> Self::Axes<V>;
}

#[derive(Clone, Copy)]
pub(super) struct Fixed<const D: usize>;

impl<const D: usize> Dims for Fixed<D> {
    type Axes<V: Copy> = [V; D];
    #[inline(always)]
    fn count(self) -> usize {
        D
    }
    #[inline(always)]
    fn all<V: Copy>(self, value: V) -> [V; D] {
        [value; D]
    }
}

#[derive(Clone, Copy)]
pub(super) struct Counted(pub(super) usize);

impl Dims for Counted {
    type Axes<V: Copy> = [V; MAX_DIMS];
    #[inline(always)]
    fn count(self) -> usize {
        self.0
    }
    #[inline(always)]
    fn all<V: Copy>(self, value: V) -> [V; MAX_DIMS] {
        [value; MAX_DIMS]
    }
}

/// Runs a kernel with its number of axes as a type: `dims!(d, |dims| kernel(dims))`.
macro_rules! dims {
    ($count:expr, |$dims:ident| $body:expr) => {
        match $count {
            2 => {
                let $dims = $crate::kdtree::arena::Fixed::<2>;
                $body
            }
            3 => {
                let $dims = $crate::kdtree::arena::Fixed::<3>;
                $body
            }
            4 => {
                let $dims = $crate::kdtree::arena::Fixed::<4>;
                $body
            }
            count => {
                let $dims = $crate::kdtree::arena::Counted(count);
                $body
            }
        }
    };
}
pub(super) use dims;
