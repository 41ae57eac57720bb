//! Building the tree: points copied into leaf blocks, then split by rank along the widest axis, top down.
//!
//! The split is by rank and never by value, so any number of equal points builds. Everything is sorted in place, in
//! the arrays that the tree keeps: no permutation, no copy of the points beside it. The first pass over all points runs
//! on one thread, the two subtrees then in parallel, and so on.

use super::arena::{Arena, Arrays, Memory, NO_POINT, Node, PlainNode};
use super::kernels::Kernels;
use super::partition::Points;
use super::periodic::Torus;
use crate::error::{Error, Result};
use crate::layout::Rows;
use crate::parallel::{PARALLEL_BYTES, is_worth_threads};
use crate::simd::Level;
use ndarray::ArrayView2;
use rayon::prelude::*;
use std::sync::OnceLock;

/// Subtrees below this many points are built by one thread.
const PARALLEL_POINTS: usize = 8192;

/// Slots of a leaf unless the caller says otherwise.
pub(super) const LEAF: usize = 32;

/// Builds over the rows of `points` that `present` lists, or over all of them.
pub(super) fn build<T: Kernels>(
    points: &ArrayView2<'_, T>,
    present: Option<&[u32]>,
    leaf: usize,
    torus: Option<Torus<T>>,
    level: Level,
) -> Result<Arena<T>> {
    let (rows, dims) = points.dim();
    let len = present.map_or(rows, <[u32]>::len);
    let leaves = len.div_ceil(leaf);
    let mut arrays = Arrays {
        coordinates: allocate(leaves * leaf * dims, T::infinity())?,
        ids: allocate(leaves * leaf, NO_POINT)?,
        nodes: allocate(leaves.saturating_sub(1), [T::zero(); 2])?,
        boxes: allocate(leaves * 2 * dims, T::zero())?,
    };
    let Arrays { coordinates, ids, nodes, boxes } = &mut arrays;
    if len > 0 {
        let mut to = Points { dims, leaf, coordinates, ids, len };
        copy(points, present, torus.as_ref(), &mut to);
        split(to, nodes, boxes, level);
    }
    Ok(Arena { dims, leaf, rows, points: len, torus, memory: Memory::Built(arrays), by_row: OnceLock::new() })
}

pub(super) fn allocate<V: Clone>(len: usize, value: V) -> Result<Vec<V>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(len).map_err(|_| Error::Allocation { bytes: len.saturating_mul(size_of::<V>()) })?;
    memory.resize(len, value);
    Ok(memory)
}

/// Copies points into leaf blocks in the caller's order.
fn copy<T: Kernels>(
    points: &ArrayView2<'_, T>,
    present: Option<&[u32]>,
    torus: Option<&Torus<T>>,
    to: &mut Points<'_, T>,
) {
    let (dims, leaf, len) = (to.dims, to.leaf, to.len);
    let rows = Rows::new(points);
    let copy = |(block, (coordinates, ids)): (usize, (&mut [T], &mut [u32]))| {
        let mut row = vec![T::zero(); dims];
        for (slot, id) in (block * leaf..len).zip(ids.iter_mut()) {
            *id = present.map_or(slot as u32, |present| present[slot]);
            rows.copy(*id as usize, &mut row);
            if let Some(torus) = torus {
                torus.wrap(&mut row);
            }
            for (axis, &x) in row.iter().enumerate() {
                coordinates[axis * leaf + slot - block * leaf] = x;
            }
        }
    };
    let bytes = len * dims * size_of::<T>();
    let (coordinates, ids) = (&mut *to.coordinates, &mut *to.ids);
    if is_worth_threads(bytes, PARALLEL_BYTES) {
        let blocks = coordinates.par_chunks_mut(dims * leaf).zip(ids.par_chunks_mut(leaf));
        blocks.enumerate().for_each(copy);
    } else {
        coordinates.chunks_mut(dims * leaf).zip(ids.chunks_mut(leaf)).enumerate().for_each(copy);
    }
}

/// Builds the subtree over `points`: its nodes and its leaves' boxes.
fn split<T: Kernels>(points: Points<'_, T>, nodes: &mut [PlainNode<T>], boxes: &mut [T], level: Level) {
    let (dims, leaf, len) = (points.dims, points.leaf, points.len);
    let (mut low, mut high) = ([T::zero(); super::arena::MAX_DIMS], [T::zero(); super::arena::MAX_DIMS]);
    T::extent(level, &points, &mut low, &mut high);
    let Some((node, nodes)) = nodes.split_first_mut() else {
        boxes[..dims].copy_from_slice(&low[..dims]);
        boxes[dims..].copy_from_slice(&high[..dims]);
        return;
    };
    // The first of the widest axes.
    let widest = (1..dims).fold(
        0,
        |widest, axis| {
            if high[axis] - low[axis] > high[widest] - low[widest] { axis } else { widest }
        },
    );
    let leaves = nodes.len() + 2;
    let left_leaves = leaves.div_ceil(2);
    let rank = left_leaves * leaf;
    let mut points = points;
    *node = Node { split: T::select(level, &mut points, widest, rank), axis: widest }.plain();

    let (left_coordinates, right_coordinates) = points.coordinates.split_at_mut(rank * dims);
    let (left_ids, right_ids) = points.ids.split_at_mut(rank);
    let (left_nodes, right_nodes) = nodes.split_at_mut(left_leaves - 1);
    let (left_boxes, right_boxes) = boxes.split_at_mut(left_leaves * 2 * dims);
    let left = Points { dims, leaf, coordinates: left_coordinates, ids: left_ids, len: rank };
    let right = Points { dims, leaf, coordinates: right_coordinates, ids: right_ids, len: len - rank };
    if len >= PARALLEL_POINTS {
        rayon::join(|| split(left, left_nodes, left_boxes, level), || split(right, right_nodes, right_boxes, level));
    } else {
        split(left, left_nodes, left_boxes, level);
        split(right, right_nodes, right_boxes, level);
    }
}
