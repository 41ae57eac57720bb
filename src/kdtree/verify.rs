//! Whether arrays from a file are a tree: everything that a search relies on.
//!
//! Where several things are wrong the same one is named for every number of threads.

use super::arena::{Dims, NO_POINT, View, dims};
use super::file::is_plain;
use crate::element::Element;
use rayon::prelude::*;

/// Leaves that one task looks at.
const LEAVES: usize = 512;

/// Subtrees of fewer leaves are looked at by one task.
const PARALLEL: usize = 4096;

/// At most so many tasks mark rows, each in a bit a row of its own.
const MARKERS: usize = 8;

/// What is wrong, or nothing.
type Checked<R = ()> = Result<R, String>;

pub(super) fn structure<T: Element>(tree: &View<'_, T>) -> Checked {
    periodic_box(tree)?;
    let tasks = tree.leaves().div_ceil(LEAVES);
    let leaves = |task: usize| task * LEAVES..tree.leaves().min((task + 1) * LEAVES);
    let points_of = |task: usize| leaves(task).find_map(|leaf| points(tree, leaf).err());
    if let Some(what) = (0..tasks).into_par_iter().find_map_first(points_of) {
        return Err(what);
    }
    empty_slots(tree)?;
    rows(tree)?;
    if tree.points > 0 {
        dims!(tree.dims, |dims| splits(dims, tree, 0, 0, tree.leaves()).map(|_| ()))?;
    }
    Ok(())
}

fn periodic_box<T: Element>(tree: &View<'_, T>) -> Checked {
    let Some(torus) = tree.torus else { return Ok(()) };
    if let Some(axis) = torus.origin.iter().position(|x| !x.is_finite()) {
        return Err(format!("the origin of the box is {:?} on axis {axis}", torus.origin[axis]));
    }
    let is_length = |length: T| length > T::zero();
    if let Some(axis) = torus.lengths.iter().position(|&length| !is_length(length)) {
        return Err(format!("the length of the box is {:?} on axis {axis}", torus.lengths[axis]));
    }
    if torus.lengths.iter().all(|length| length.is_infinite()) {
        return Err("no axis of the periodic box has a length".to_owned());
    }
    Ok(())
}

/// Points are finite, in their leaf's box, and that is in the periodic box.
fn points<T: Element>(tree: &View<'_, T>, leaf: usize) -> Checked {
    let count = tree.leaf.min(tree.points - leaf * tree.leaf);
    let (low, high) = tree.leaf_box(leaf);
    for (axis, column) in tree.leaf_coordinates(leaf).chunks_exact(tree.leaf).enumerate() {
        let (low, high) = (low[axis], high[axis]);
        if !(low.is_finite() && high.is_finite()) {
            return Err(format!("the box of leaf {leaf} is {low:?} to {high:?} on axis {axis}"));
        }
        if let Some(torus) = tree.torus {
            let (origin, length) = (torus.origin[axis], torus.lengths[axis]);
            let inside = low >= origin && (high < origin + length || high == origin);
            if length.is_finite() && !inside {
                return Err(format!("the box of leaf {leaf} is outside of the periodic box on axis {axis}"));
            }
        }
        // No branch, so that it is done a vector at a time.
        let inside = column[..count].iter().fold(true, |inside, &x| inside & (low <= x) & (x <= high));
        if !inside {
            return Err(format!("a point of leaf {leaf} is outside of its box on axis {axis}"));
        }
    }
    Ok(())
}

/// Slots behind the last point are as they are built.
fn empty_slots<T: Element>(tree: &View<'_, T>) -> Checked {
    let Some(leaf) = tree.leaves().checked_sub(1) else { return Ok(()) };
    let from = tree.points - leaf * tree.leaf;
    let mut columns = tree.leaf_coordinates(leaf).chunks_exact(tree.leaf);
    let filled = columns.any(|column| column[from..].iter().any(|&x| x != T::infinity()));
    if filled || tree.leaf_ids(leaf)[from..].iter().any(|&row| row != NO_POINT) {
        return Err("a slot behind the last point is not empty".to_owned());
    }
    Ok(())
}

/// Row numbers are below N, and none is there twice.
fn rows<T: Element>(tree: &View<'_, T>) -> Checked {
    let ids = &tree.ids[..tree.points];
    let mark = |ids: &[u32]| {
        let mut marks = vec![0u64; tree.rows.div_ceil(64)];
        let mut bad = false;
        for &id in ids {
            let Some(word) = marks.get_mut(id as usize / 64) else { return (marks, true) };
            let bit = 1 << (id % 64);
            bad |= id as usize >= tree.rows || *word & bit != 0;
            *word |= bit;
        }
        (marks, bad)
    };
    let tasks = rayon::current_num_threads().min(MARKERS);
    let marked: Vec<(Vec<u64>, bool)> = ids.par_chunks(ids.len().div_ceil(tasks).max(1 << 16)).map(mark).collect();
    let mut bad = marked.iter().any(|(_, bad)| *bad);
    let mut all = vec![0u64; tree.rows.div_ceil(64)];
    for (marks, _) in &marked {
        for (all, &marks) in all.iter_mut().zip(marks) {
            bad |= *all & marks != 0;
            *all |= marks;
        }
    }
    if !bad {
        return Ok(());
    }
    if let Some(row) = ids.iter().find(|&&id| id as usize >= tree.rows) {
        return Err(format!("row {row} of {}", tree.rows));
    }
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find(|pair| pair[0] == pair[1]);
    // A file that is mapped may be another by now.
    Err(twice.map_or_else(|| "a row is there twice".to_owned(), |pair| format!("row {} is there twice", pair[0])))
}

/// The lowest and the highest coordinates of a subtree.
type Extent<T, A> = (<A as Dims>::Axes<T>, <A as Dims>::Axes<T>);

/// Splits lie between the boxes of the leaves on their sides.
fn splits<T: Element, A>(
    dims: A,
    tree: &View<'_, T>,
    node: usize,
    first_leaf: usize,
    leaves: usize,
) -> Checked<Extent<T, A>>
where
    A: Dims + Sync + Send,
    A::Axes<T>: Send,
{
    if leaves == 1 {
        let (mut low, mut high) = (dims.all(T::zero()), dims.all(T::zero()));
        let (leaf_low, leaf_high) = tree.leaf_box(first_leaf);
        low.as_mut()[..dims.count()].copy_from_slice(leaf_low);
        high.as_mut()[..dims.count()].copy_from_slice(leaf_high);
        return Ok((low, high));
    }
    let on_left = leaves.div_ceil(2);
    let left = || splits(dims, tree, node + 1, first_leaf, on_left);
    let right = || splits(dims, tree, node + on_left, first_leaf + on_left, leaves - on_left);
    let (left, right) = if leaves >= PARALLEL { rayon::join(left, right) } else { (left(), right()) };
    let ((mut low, mut high), (right_low, right_high)) = (left?, right?);
    let plain = &tree.nodes[node];
    let split = tree.node(node, dims.count());
    if !is_plain(split, plain) {
        return Err(format!("node {node} has no axis of {}", dims.count()));
    }
    let axis = split.axis;
    if !(high.as_ref()[axis] <= split.split && split.split <= right_low.as_ref()[axis]) {
        return Err(format!("the split of node {node} is not between its halves"));
    }
    let sides = low.as_mut().iter_mut().zip(high.as_mut()).zip(right_low.as_ref().iter().zip(right_high.as_ref()));
    for ((low, high), (&other_low, &other_high)) in sides {
        *low = if other_low < *low { other_low } else { *low };
        *high = if other_high > *high { other_high } else { *high };
    }
    Ok((low, high))
}
