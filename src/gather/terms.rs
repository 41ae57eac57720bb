//! Rows folded in registers: which rows a destination row takes, in what order, times what; and the loop over them.

use super::kernels::{AHEAD, Traffic};
use super::plan::ABSENT;
use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::{MOST_LANES, Simd, Vector, prefetch};
use std::num::NonZero;
use std::ops::Range;

/// The source rows of consecutive destination rows: row `r` takes the edges `offsets[r]..offsets[r + 1]` in turn.
#[derive(Clone, Copy)]
pub struct Sources<'a, T> {
    pub width: usize,
    pub offsets: &'a [u32],
    pub terms: Terms<'a, T>,
    /// Multiply, from 1, instead of adding.
    pub product: bool,
    /// Divide every sum by the number of its terms.
    pub mean: bool,
}

/// What each edge adds. A row number [`ABSENT`] adds nothing.
#[derive(Clone, Copy)]
pub enum Terms<'a, T> {
    /// Row `edge`, of this many.
    InOrder(usize),
    /// Row `order[edge]`.
    Rows(&'a [u32]),
    /// Row `order[edge]` times `weights[edge]`.
    Weighted(&'a [u32], &'a [T]),
    /// The row that owns the position `order[edge]`, times the position's weight where there are weights.
    Owned(&'a [u32], Owner<'a>, Option<&'a [T]>),
}

/// The group that a position belongs to.
#[derive(Clone, Copy)]
pub enum Owner<'a> {
    /// Every position is a group of its own.
    Each,
    /// Groups are of this many positions.
    Even(NonZero<u32>),
    /// As listed.
    Listed(&'a [u32]),
}

impl Owner<'_> {
    #[inline(always)]
    pub fn of(self, position: u32) -> u32 {
        match self {
            Self::Each => position,
            Self::Even(size) => position / size,
            Self::Listed(owners) => owners[position as usize],
        }
    }
}

/// One way to find the rows of edges and to weigh them.
pub trait Term<T: Element>: Copy {
    /// The number of edges.
    fn edges(self) -> usize;
    /// The source row of an edge.
    fn row(self, edge: usize) -> Option<usize>;
    /// What the edge makes of a vector of its row.
    fn weigh<S: Simd>(self, s: S, edge: usize, v: S::V<T>) -> S::V<T>;
}

/// As many edges as there are rows, each with its own.
#[derive(Clone, Copy)]
pub struct InOrder(pub usize);

impl<T: Element> Term<T> for InOrder {
    #[inline(always)]
    fn edges(self) -> usize {
        self.0
    }
    #[inline(always)]
    fn row(self, edge: usize) -> Option<usize> {
        Some(edge)
    }
    #[inline(always)]
    fn weigh<S: Simd>(self, _: S, _: usize, v: S::V<T>) -> S::V<T> {
        v
    }
}

impl<T: Element> Term<T> for &[u32] {
    #[inline(always)]
    fn edges(self) -> usize {
        self.len()
    }
    #[inline(always)]
    fn row(self, edge: usize) -> Option<usize> {
        let row = self[edge];
        if row == ABSENT { None } else { Some(row as usize) }
    }
    #[inline(always)]
    fn weigh<S: Simd>(self, _: S, _: usize, v: S::V<T>) -> S::V<T> {
        v
    }
}

#[derive(Clone, Copy)]
pub struct Weighted<'a, T> {
    pub order: &'a [u32],
    pub weights: &'a [T],
}

impl<T: Element> Term<T> for Weighted<'_, T> {
    #[inline(always)]
    fn edges(self) -> usize {
        self.order.len()
    }
    #[inline(always)]
    fn row(self, edge: usize) -> Option<usize> {
        Term::<T>::row(self.order, edge)
    }
    #[inline(always)]
    fn weigh<S: Simd>(self, s: S, edge: usize, v: S::V<T>) -> S::V<T> {
        s.splat(self.weights[edge]) * v
    }
}

#[derive(Clone, Copy)]
pub struct Owned<'a> {
    pub order: &'a [u32],
    pub owner: Owner<'a>,
}

impl<T: Element> Term<T> for Owned<'_> {
    #[inline(always)]
    fn edges(self) -> usize {
        self.order.len()
    }
    #[inline(always)]
    fn row(self, edge: usize) -> Option<usize> {
        Some(self.owner.of(self.order[edge]) as usize)
    }
    #[inline(always)]
    fn weigh<S: Simd>(self, _: S, _: usize, v: S::V<T>) -> S::V<T> {
        v
    }
}

impl<T: Element> Term<T> for (Owned<'_>, &[T]) {
    #[inline(always)]
    fn edges(self) -> usize {
        self.0.order.len()
    }
    #[inline(always)]
    fn row(self, edge: usize) -> Option<usize> {
        Term::<T>::row(self.0, edge)
    }
    #[inline(always)]
    fn weigh<S: Simd>(self, s: S, edge: usize, v: S::V<T>) -> S::V<T> {
        s.splat(self.1[self.0.order[edge] as usize]) * v
    }
}

#[inline(always)]
pub fn fold_rows<T: Element, S: Simd, R: Term<T>, const PRODUCT: bool>(
    s: S,
    source: &[T],
    terms: R,
    rows: Sources<'_, T>,
    channels: Range<usize>,
    traffic: Traffic,
    tile: &mut Tile<'_, T>,
) {
    for ends in rows.offsets.windows(2) {
        let edges = ends[0] as usize..ends[1] as usize;
        let mut channel = channels.start;
        while channel < channels.end {
            let left = channels.end - channel;
            let vectors = left / T::LANES;
            let edges = edges.clone();
            let edges = Edges { source, terms, width: rows.width, mean: rows.mean, edges, channel, traffic };
            channel += match vectors {
                8.. if S::ACCUMULATORS >= 8 => edges.fold::<S, 8, PRODUCT>(s, tile),
                4.. if S::ACCUMULATORS >= 4 => edges.fold::<S, 4, PRODUCT>(s, tile),
                2.. => edges.fold::<S, 2, PRODUCT>(s, tile),
                1 => edges.fold::<S, 1, PRODUCT>(s, tile),
                0 => edges.fold_head::<S, PRODUCT>(s, left, tile),
            };
        }
    }
}

/// The edges of one destination row, from one channel on.
struct Edges<'a, T, R> {
    source: &'a [T],
    terms: R,
    width: usize,
    mean: bool,
    edges: Range<usize>,
    channel: usize,
    traffic: Traffic,
}

impl<T: Element, R: Term<T>> Edges<'_, T, R> {
    /// The `n` channels of every edge in turn. Returns the number of edges that are not padding.
    #[inline(always)]
    fn each(&self, n: usize, mut take: impl FnMut(usize, &[T])) -> usize {
        let mut used = 0;
        for edge in self.edges.clone() {
            if self.traffic.prefetch
                && edge + AHEAD < self.terms.edges()
                && let Some(row) = self.terms.row(edge + AHEAD)
            {
                prefetch(&self.source[row * self.width + self.channel..][..n]);
            }
            if let Some(row) = self.terms.row(edge) {
                take(edge, &self.source[row * self.width + self.channel..][..n]);
                used += 1;
            }
        }
        used
    }

    /// Folds `N` vectors of channels and returns how many channels that is.
    #[inline(always)]
    fn fold<S: Simd, const N: usize, const PRODUCT: bool>(&self, s: S, tile: &mut Tile<'_, T>) -> usize {
        let mut folds = [s.splat(T::one()); N];
        if !PRODUCT {
            for (v, fold) in folds.iter_mut().enumerate() {
                *fold = tile.start(s, v * T::LANES);
            }
        }
        let used = self.each(
            N * T::LANES,
            #[inline(always)]
            |edge, row| {
                for (v, fold) in folds.iter_mut().enumerate() {
                    let term = self.terms.weigh(s, edge, s.load(&row[v * T::LANES..]));
                    *fold = if PRODUCT { *fold * term } else { *fold + term };
                }
            },
        );
        for fold in &mut folds {
            *fold = self.finish(s, *fold, used);
        }
        if self.traffic.stream {
            tile.push_streamed(folds);
        } else {
            folds.into_iter().for_each(|fold| tile.push(fold));
        }
        N * T::LANES
    }

    /// Folds the last `n` channels, fewer than a vector's lanes.
    #[inline(always)]
    fn fold_head<S: Simd, const PRODUCT: bool>(&self, s: S, n: usize, tile: &mut Tile<'_, T>) -> usize {
        let mut fold = if PRODUCT { s.splat(T::one()) } else { tile.start_head(s, n) };
        let used = self.each(
            n,
            #[inline(always)]
            |edge, row| {
                let term = self.terms.weigh(s, edge, s.load_head(row));
                fold = if PRODUCT { fold * term } else { fold + term };
            },
        );
        tile.push_head(self.finish(s, fold, used), n);
        n
    }

    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, fold: S::V<T>, used: usize) -> S::V<T> {
        if !self.mean || used == 0 {
            return fold;
        }
        let mut lanes = [T::zero(); MOST_LANES];
        fold.store(&mut lanes);
        let divisor = count(used);
        for lane in &mut lanes {
            *lane = *lane / divisor;
        }
        s.load(&lanes)
    }
}

/// A count as a divisor.
#[inline(always)]
pub(super) fn count<T: Element>(n: usize) -> T {
    T::from_usize(n).expect("every integer rounds to an element")
}
