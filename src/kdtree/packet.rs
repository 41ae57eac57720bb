//! A vector of neighbouring queries, one traversal: the queries lie in the lanes.
//!
//! Where queries are about as dense as points, neighbouring ones visit the same leaves. The packet visits each once:
//! subtrees are left out by the packet's bounding box, leaves by the lanes' own bounds, and every point is compared with
//! all lanes at once. Lists are kept sorted by (key, row number) in all lanes without a branch.

use super::arena::{Dims, Node, View};
use super::kernels::Tile;
use super::metric::{L2, key, keys};
use super::walk::{Stack, halves};
use crate::element::Element;
use crate::simd::{Ids, IdsOf, Mask, Simd, Vector};
use std::hint::select_unpredictable;

/// The largest K whose lists are worth keeping in lanes: a search took half of the time of walks for 20 neighbours and three
/// quarters for 128.
pub(super) const MAX_K: usize = 128;

/// The largest K whose lists stay in registers while points come in.
const REGISTERS: usize = 5;

/// Points of a leaf that are taken at a time: the size of the smallest leaf.
const CHUNK: usize = 16;

/// The largest number of lanes.
const MAX_LANES: usize = 16;

/// The queries' lists in lanes, of `N` places: the last K are used, the best first, and nothing beats what lies before.
///
/// A number of places that the compiler knows, and that is small, keeps the lists in registers while points come in. Longer
/// lists are in memory, whatever their number of places.
type Lists<T, S, const N: usize> = ([<S as Simd>::V<T>; N], [IdsOf<T, S>; N]);

/// Up to a vector of queries.
struct Packet<T: Element, S: Simd, A: Dims> {
    /// The queries' coordinates, one vector an axis; the last query fills the lanes of an incomplete packet.
    lanes: A::Axes<S::V<T>>,
    /// The lowest and the highest of the lanes.
    low: A::Axes<T>,
    high: A::Axes<T>,
    /// The rows that the queries are of, excluded from their neighbours.
    own: Option<IdsOf<T, S>>,
    k: usize,
}

impl<T: Element, S: Simd, A: Dims> Packet<T, S, A> {
    #[inline(always)]
    fn new(s: S, dims: A, queries: &[T], own: Option<&[u32]>, k: usize) -> Self {
        let d = dims.count();
        let (mut low, mut high) = (dims.all(T::zero()), dims.all(T::zero()));
        let mut lanes = dims.all(s.splat(T::zero()));
        for axis in 0..d {
            let mut column = [T::zero(); MAX_LANES];
            for (lane, x) in column[..T::LANES].iter_mut().enumerate() {
                *x = queries[(lane * d + axis).min(queries.len() - d + axis)];
            }
            let used = &column[..T::LANES];
            low.as_mut()[axis] = used.iter().fold(T::infinity(), |low, &x| if x < low { x } else { low });
            high.as_mut()[axis] = used.iter().fold(T::neg_infinity(), |high, &x| if x > high { x } else { high });
            lanes.as_mut()[axis] = s.load(used);
        }
        let own = own.map(|own| {
            let mut ids = [u32::MAX; MAX_LANES];
            ids[..own.len()].copy_from_slice(own);
            Ids::read(s, &ids)
        });
        Self { lanes, low, high, own, k }
    }
}

#[inline(always)]
pub(super) fn packets<T: Element, S: Simd, A: Dims>(s: S, dims: A, tree: &View<'_, T>, tile: &mut Tile<'_, T>) {
    match tile.k {
        1 => packets_in::<T, S, A, 1>(s, dims, tree, tile),
        2..=REGISTERS => packets_in::<T, S, A, REGISTERS>(s, dims, tree, tile),
        _ => packets_in::<T, S, A, MAX_K>(s, dims, tree, tile),
    }
}

/// [`packets`] with lists of `N` places.
#[inline(always)]
fn packets_in<T: Element, S: Simd, A: Dims, const N: usize>(s: S, dims: A, tree: &View<'_, T>, tile: &mut Tile<'_, T>) {
    let (d, k) = (dims.count(), tile.k);
    let rows = tile.queries.len() / d;
    let mut stack = Stack::new(dims.all(T::zero()));
    let mut near = [s.splat(T::zero()); CHUNK];
    let mut lists: Lists<T, S, N> = ([s.splat(T::neg_infinity()); N], [Ids::all(s, 0); N]);
    for first in (0..rows).step_by(T::LANES) {
        let rows = first..rows.min(first + T::LANES);
        let own = tile.own.map(|own| &own[rows.clone()]);
        let packet = Packet::<T, S, A>::new(s, dims, &tile.queries[rows.start * d..rows.end * d], own, k);
        let bounds = lanes_of(&tile.bounds[rows.clone()]);
        lists.0[N - k..].fill(s.load(&bounds));
        lists.1[N - k..].fill(Ids::all(s, tree.rows as u32));
        search(s, dims, tree, &packet, &mut stack, &mut near, &mut lists);
        for place in 0..k {
            let (mut keys, mut ids) = ([T::zero(); MAX_LANES], [0; MAX_LANES]);
            lists.0[N - k + place].store(&mut keys);
            lists.1[N - k + place].put(&mut ids);
            for (row, (key, id)) in rows.clone().zip(keys.into_iter().zip(ids)) {
                tile.keys[row * k + place] = key;
                tile.ids[row * k + place] = id;
            }
        }
    }
}

/// One value a lane, the last of them in the lanes of an incomplete packet.
#[inline(always)]
fn lanes_of<T: Element>(values: &[T]) -> [T; MAX_LANES] {
    let mut lanes = [values[values.len() - 1]; MAX_LANES];
    lanes[..values.len()].copy_from_slice(values);
    lanes
}

#[inline(always)]
fn search<T: Element, S: Simd, A: Dims, const N: usize>(
    s: S,
    dims: A,
    tree: &View<'_, T>,
    packet: &Packet<T, S, A>,
    stack: &mut Stack<T, A::Axes<T>>,
    near: &mut [S::V<T>; CHUNK],
    lists: &mut Lists<T, S, N>,
) {
    let (low, high) = (packet.low.as_ref(), packet.high.as_ref());
    let mut worst = greatest(lists.0[N - 1]);
    stack.start(tree, dims.all(T::zero()));
    while let Some(mut subtree) = stack.pop() {
        if subtree.bound > worst {
            continue;
        }
        while subtree.leaves > 1 {
            let Node { split, axis } = tree.node(subtree.node, dims.count());
            let (to_left, to_right) = (low[axis] - split, split - high[axis]);
            let (left, right) = halves(&subtree);
            let right_is_near = to_left > to_right;
            let (mut near, mut far) = (left.or(right_is_near, right), right.or(right_is_near, left));
            let gaps = subtree.cell;
            near.cell = dims.raised(gaps, axis, select_unpredictable(right_is_near, to_right, to_left));
            far.cell = dims.raised(gaps, axis, select_unpredictable(right_is_near, to_left, to_right));
            far.bound = key(L2, &far.cell.as_ref()[..dims.count()]);
            if far.bound <= worst {
                stack.push(far);
            }
            subtree = near;
        }
        if visit(s, dims, tree, subtree.first_leaf, packet, near, lists) {
            worst = greatest(lists.0[N - 1]);
        }
    }
}

/// The greatest of the lanes.
#[inline(always)]
fn greatest<T: Element, V: Vector<T>>(keys: V) -> T {
    let mut lanes = [T::zero(); MAX_LANES];
    keys.store(&mut lanes);
    lanes[..T::LANES].iter().fold(T::neg_infinity(), |greatest, &key| if key > greatest { key } else { greatest })
}

/// Compares the points of a leaf with the queries, and says whether a list may have changed.
///
/// Every point meets every query. A sieve of the points by the packet's box, a vector of points at a time, made a search
/// 1.4 times as long: what it leaves comes in an order that cannot be predicted.
#[inline(always)]
fn visit<T: Element, S: Simd, A: Dims, const N: usize>(
    s: S,
    dims: A,
    tree: &View<'_, T>,
    leaf: usize,
    packet: &Packet<T, S, A>,
    near: &mut [S::V<T>; CHUNK],
    lists: &mut Lists<T, S, N>,
) -> bool {
    let lanes = &packet.lanes.as_ref()[..dims.count()];
    let (low, high) = tree.leaf_box(leaf);
    let bound = keys(
        s,
        L2,
        dims,
        #[inline(always)]
        |axis| gap(s, lanes[axis], low[axis], high[axis]),
    );
    if bound.le(lists.0[N - 1]).bits() == 0 {
        return false;
    }
    let (coordinates, ids) = (tree.leaf_coordinates(leaf), tree.leaf_ids(leaf));
    // Many places are memory: only those in use are passed over.
    let unused = if N > REGISTERS { N - packet.k } else { 0 };
    let points = tree.leaf.min(tree.points - leaf * tree.leaf);
    let mut changed = false;
    for first in (0..points).step_by(CHUNK) {
        let column = |axis: usize| -> &[T; CHUNK] {
            coordinates[axis * tree.leaf + first..].first_chunk().expect("a leaf is whole chunks")
        };
        let mut columns = dims.all(column(0));
        for axis in 1..dims.count() {
            columns.as_mut()[axis] = column(axis);
        }
        let (columns, ids) = (columns.as_ref(), ids[first..].first_chunk::<CHUNK>().expect("a leaf is whole chunks"));
        let mut found = 0u32;
        let worst = lists.0[N - 1];
        for point in 0..CHUNK {
            let key = keys(
                s,
                L2,
                dims,
                #[inline(always)]
                |axis| lanes[axis] - s.splat(columns[axis][point]),
            );
            near[point] = key;
            found |= u32::from(key.le(worst).bits() != 0) << point;
        }
        // Slots behind the last point lose every comparison, but a mapped file can change.
        found &= (1 << CHUNK.min(points - first)) - 1;
        changed |= found != 0;
        while found != 0 {
            let point = found.trailing_zeros() as usize;
            found &= found - 1;
            let mut key = near[point];
            let mut id = IdsOf::<T, S>::all(s, ids[point]);
            if let Some(own) = packet.own {
                let other = id.below(own).or(own.below(id));
                key = Vector::select(other, key, s.splat(T::infinity()));
                id = Ids::choose(other, id, Ids::all(s, u32::MAX));
            }
            insert(key, id, unused, lists);
        }
    }
    changed
}

/// The distance from each lane to an interval: 0 within it.
#[inline(always)]
fn gap<T: Element, S: Simd>(s: S, x: S::V<T>, low: T, high: T) -> S::V<T> {
    (s.splat(low) - x).max(x - s.splat(high)).max(s.splat(T::zero()))
}

/// Puts a point into every lane's list before which it comes, and drops those lists' last entries. The first `unused` places
/// are left alone.
///
/// From the last place to the first: an entry moves down where the point comes before the place above. Each comparison
/// is with the list as it was, so none waits for another.
#[inline(always)]
fn insert<T: Element, V: Vector<T>, const N: usize>(
    key: V,
    id: V::Ids,
    unused: usize,
    (keys, ids): &mut ([V; N], [V::Ids; N]),
) {
    let mut enters = before((key, id), (keys[N - 1], ids[N - 1]));
    for place in (unused + 1..N).rev() {
        let (above_key, above_id) = (keys[place - 1], ids[place - 1]);
        let moves = before((key, id), (above_key, above_id));
        keys[place] = V::select(moves, above_key, V::select(enters, key, keys[place]));
        ids[place] = Ids::choose(moves, above_id, Ids::choose(enters, id, ids[place]));
        enters = moves;
    }
    keys[unused] = V::select(enters, key, keys[unused]);
    ids[unused] = Ids::choose(enters, id, ids[unused]);
}

/// Whether the entry `a` comes before `b`, a lane.
#[inline(always)]
fn before<T: Element, V: Vector<T>>(a: (V, V::Ids), b: (V, V::Ids)) -> V::Mask {
    a.0.lt(b.0).or(a.0.le(b.0).and(a.1.below(b.1)))
}
