//! The tree as flat arrays, and the axes that kernels loop over.
//!
//! Points are sorted so that a leaf is `leaf` consecutive slots and only the last leaf is not full. The binary tree over
//! the leaves is implicit: a subtree of `n` leaves has its first `ceil(n / 2)` leaves on the left. Its `n - 1` nodes lie
//! in pre-order, the root, the left subtree, the right one, so that a subtree is a slice of every array, to be built by
//! its own thread, and a descent reads memory forwards.

use super::file::{Contents, Section};
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
pub(super) struct Node<T> {
    pub split: T,
    pub axis: usize,
}

/// A [`Node`] as it lies in memory and in files, without padding: the split, and an integer of the same size, the axis.
pub(super) type PlainNode<T> = [T; 2];

/// Where the lowest byte of that integer is.
fn axis_byte<T>() -> usize {
    if cfg!(target_endian = "big") { size_of::<T>() - 1 } else { 0 }
}

impl<T: Element> Node<T> {
    pub(super) fn plain(self) -> PlainNode<T> {
        let mut axis = T::zero();
        bytemuck::bytes_of_mut(&mut axis)[axis_byte::<T>()] = self.axis as u8;
        [self.split, axis]
    }
}

/// A k-d tree, wherever its arrays are.
pub struct Arena<T> {
    /// D.
    pub(super) dims: usize,
    /// Slots of a leaf, a power of two and at least 16.
    pub(super) leaf: usize,
    /// N, rows of the caller's points, absent ones included.
    pub(super) rows: usize,
    /// Points in the tree.
    pub(super) points: usize,
    /// The periodic box that the points lie in.
    pub(super) torus: Option<Torus<T>>,
    /// The points by row number, made on first need.
    pub(super) by_row: OnceLock<Array2<T>>,
    pub(super) memory: Memory<T>,
}

/// The arrays of a tree.
pub(super) enum Memory<T> {
    Built(Arrays<T>),
    /// As they lie in a file.
    File(Contents),
}

/// The arrays of a [`View`].
pub(super) struct Arrays<T> {
    pub(super) coordinates: Vec<T>,
    pub(super) ids: Vec<u32>,
    pub(super) nodes: Vec<PlainNode<T>>,
    pub(super) boxes: Vec<T>,
}

impl<T: Element> Arena<T> {
    pub(super) fn view(&self) -> View<'_, T> {
        let (coordinates, ids, nodes, boxes) = match &self.memory {
            Memory::Built(Arrays { coordinates, ids, nodes, boxes }) => {
                (&coordinates[..], &ids[..], &nodes[..], &boxes[..])
            }
            Memory::File(contents) => (
                contents.section(Section::Coordinates),
                contents.section(Section::Rows),
                contents.section(Section::Nodes),
                contents.section(Section::Boxes),
            ),
        };
        let Self { dims, leaf, rows, points, ref torus, .. } = *self;
        View { dims, leaf, rows, points, coordinates, ids, nodes, boxes, torus: torus.as_ref() }
    }
}

/// A k-d tree as searches see it.
///
/// A file that is mapped can change under a search, so nothing that is read from the slices may be used as an index
/// unchecked, nor be relied on to stay the same.
#[derive(Clone, Copy)]
pub struct View<'a, T> {
    /// D.
    pub(super) dims: usize,
    /// Slots of a leaf, a power of two and at least 16.
    pub(super) leaf: usize,
    /// N, rows of the caller's points, absent ones included.
    pub(super) rows: usize,
    /// Points in the tree.
    pub(super) points: usize,
    /// (leaves, D, leaf). Slots behind the last point hold +inf.
    pub(super) coordinates: &'a [T],
    /// (leaves, leaf) row numbers. Slots behind the last point hold [`NO_POINT`].
    pub(super) ids: &'a [u32],
    /// Leaves - 1, in pre-order.
    pub(super) nodes: &'a [PlainNode<T>],
    /// (leaves, 2, D): the lowest and the highest coordinates of a leaf.
    pub(super) boxes: &'a [T],
    /// The periodic box that the points lie in.
    pub(super) torus: Option<&'a Torus<T>>,
}

impl<'a, T: Element> View<'a, T> {
    pub(super) fn leaves(&self) -> usize {
        self.ids.len() / self.leaf
    }

    /// The coordinates of a leaf, (D, leaf).
    #[inline(always)]
    pub(super) fn leaf_coordinates(&self, leaf: usize) -> &'a [T] {
        let size = self.dims * self.leaf;
        &self.coordinates[leaf * size..][..size]
    }

    /// The row numbers of a leaf.
    #[inline(always)]
    pub(super) fn leaf_ids(&self, leaf: usize) -> &'a [u32] {
        &self.ids[leaf * self.leaf..][..self.leaf]
    }

    /// The lowest and the highest coordinates of a leaf.
    #[inline(always)]
    pub(super) fn leaf_box(&self, leaf: usize) -> (&'a [T], &'a [T]) {
        self.boxes[leaf * 2 * self.dims..][..2 * self.dims].split_at(self.dims)
    }

    /// A node of a tree of `dims` dimensions, [`View::dims`] as a kernel knows it.
    #[inline(always)]
    pub(super) fn node(&self, node: usize, dims: usize) -> Node<T> {
        let [split, axis] = &self.nodes[node];
        let axis = bytemuck::bytes_of(axis)[axis_byte::<T>()];
        Node { split: *split, axis: usize::from(axis).min(dims - 1) }
    }
}

/// The number of axes: known to the compiler for 2, 3 and 4, a run-time count for the rest.
pub(super) trait Dims: Copy {
    /// One value an axis.
    type Axes<V: Copy>: AsRef<[V]> + AsMut<[V]> + Copy;
    fn count(self) -> usize;
    fn all<V: Copy>(self, value: V) -> Self::Axes<V>;

    /// Gaps, one an axis and at least 0, with that on `axis` raised to another lower bound of the same distance.
    fn raised<T: Element>(self, gaps: Self::Axes<T>, axis: usize, gap: T) -> Self::Axes<T>;
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
    /// All are computed: a store to one would keep a load of all that comes just after it waiting.
    #[inline(always)]
    fn raised<T: Element>(self, mut gaps: [T; D], axis: usize, gap: T) -> [T; D] {
        for (other, known) in gaps.iter_mut().enumerate() {
            let gap = if other == axis { gap } else { T::zero() };
            *known = if gap > *known { gap } else { *known };
        }
        gaps
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
    #[inline(always)]
    fn raised<T: Element>(self, mut gaps: [T; MAX_DIMS], axis: usize, gap: T) -> [T; MAX_DIMS] {
        let known = &mut gaps[axis];
        *known = if gap > *known { gap } else { *known };
        gaps
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
