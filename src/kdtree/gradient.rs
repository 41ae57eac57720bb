//! Gradients of distances, pair by pair, summed at queries and at points.
//!
//! A pair's gradient is computed where it is added, once for its query and once for its point: what would have to be kept
//! between the two, D numbers a pair, is more than what makes them. Each row of a gradient has one owner that adds its
//! pairs in the order of their positions, so that no sum depends on the number of threads.

use super::arena::{Dims, View, dims};
use super::metric::{L1, L2, Linf, Metric, key};
use super::periodic::Torus;
use crate::buffer::{Buffer, Filled, Output, Tile};
use crate::element::Element;
use crate::error::Result;
use crate::gather::Inverse;
use crate::layout::{Rows, elements};
use crate::parallel::{Cut, PARALLEL_BYTES, for_each_tile, is_worth_threads};
use crate::simd::prefetch;
use ndarray::{Array2, ArrayView2};
use std::ops::Range;

/// Rows of a gradient that one task sums.
const TILE: usize = 1 << 11;

/// Pairs lie anywhere, so they are asked for so many ahead.
const AHEAD: usize = 16;

/// How a distance depends on its two ends.
#[derive(Clone, Copy)]
pub(super) struct Distance<'a, T> {
    pub metric: Metric,
    /// Whether it is the square of the distance.
    pub squared: bool,
    pub torus: Option<&'a Torus<T>>,
}

impl<T: Element> Distance<'_, T> {
    /// `grad` times the derivative of the distance between a query and a point by the query's coordinates. The point's is
    /// its negative. None where that is 0 by definition: between coincident ends, and at distances that are not finite.
    #[inline(always)]
    fn pull<A: Dims>(&self, dims: A, query: &[T], point: &[T], grad: T) -> Option<A::Axes<T>> {
        let mut axes = dims.all(T::zero());
        let deltas = &mut axes.as_mut()[..dims.count()];
        for (axis, delta) in deltas.iter_mut().enumerate() {
            *delta = query[axis] - point[axis];
            if let Some(torus) = self.torus {
                *delta = nearest_image(*delta, torus.lengths[axis]);
            }
        }
        let key = match self.metric {
            Metric::L2 => key(L2, deltas),
            Metric::L1 => key(L1, deltas),
            Metric::Linf => key(Linf, deltas),
        };
        let distance = self.metric.root(key);
        if !(distance > T::zero() && distance < T::infinity()) {
            return None;
        }
        let twice = grad + grad;
        match (self.metric, self.squared) {
            (Metric::L2, true) => deltas.iter_mut().for_each(|delta| *delta = twice * *delta),
            (Metric::L2, false) => deltas.iter_mut().for_each(|delta| *delta = grad * *delta / distance),
            (metric, squared) => {
                let grad = if squared { twice * distance } else { grad };
                // Of Linf only the lowest axis that attains the maximum has a slope.
                let mut is_taken = false;
                for delta in deltas {
                    let has_slope = metric == Metric::L1 || (!is_taken && delta.abs() == distance);
                    is_taken |= has_slope;
                    *delta = if has_slope { grad * sign(*delta) } else { T::zero() };
                }
            }
        }
        Some(axes)
    }
}

/// The difference to the image of a point that a search takes, on an axis of this length.
#[inline(always)]
fn nearest_image<T: Element>(delta: T, length: T) -> T {
    let direct = delta.abs();
    if length - direct < direct { delta - sign(delta) * length } else { delta }
}

/// -1, 0 or 1.
#[inline(always)]
fn sign<T: Element>(x: T) -> T {
    if x > T::zero() {
        T::one()
    } else if x < T::zero() {
        -T::one()
    } else {
        T::zero()
    }
}

/// Queries, the points that they found, and the gradient to each distance. Rows of NaN are of no pair, and row numbers
/// that are not below N are padding.
pub(super) struct Pairs<'a, T> {
    pub distance: Distance<'a, T>,
    pub dims: usize,
    /// K.
    pub k: usize,
    /// (M, D).
    pub queries: &'a [T],
    /// (N, D).
    pub points: &'a [T],
    /// (M, K).
    pub indices: &'a [u32],
    /// (M, K).
    pub grads: &'a [T],
    /// Whether to use several threads, if not by size.
    pub parallel: Option<bool>,
}

/// What is added to a row of a gradient.
#[derive(Clone, Copy)]
enum Terms<'a> {
    /// The pairs of the row's query.
    Own,
    /// The pairs that name the row's point.
    Named(&'a Inverse),
    /// Both, in this order: the row is a query and a point.
    Both(&'a Inverse),
}

impl<T: Element> Pairs<'_, T> {
    /// The gradient to the queries (M, D).
    pub(super) fn to_queries(&self, out: Output<'_, T>) -> Filled {
        self.sum(self.queries.len() / self.dims, Terms::Own, out)
    }

    /// The gradient to the points (N, D), which `inverse` of the indices leads to.
    pub(super) fn to_points(&self, inverse: &Inverse, out: Output<'_, T>) -> Filled {
        self.sum(self.points.len() / self.dims, Terms::Named(inverse), out)
    }

    /// The gradient to points (N, D) that are the queries too.
    pub(super) fn to_both(&self, inverse: &Inverse, out: Output<'_, T>) -> Filled {
        self.sum(self.points.len() / self.dims, Terms::Both(inverse), out)
    }

    fn sum(&self, rows: usize, terms: Terms<'_>, out: Output<'_, T>) -> Filled {
        if rows == 0 {
            return Filled::NOTHING;
        }
        let bytes = (self.indices.len() + rows) * self.dims * size_of::<T>();
        let parallel = self.parallel.unwrap_or_else(|| is_worth_threads(bytes, PARALLEL_BYTES));
        let cut = Cut { group: rows, tile: TILE, width: self.dims, parallel };
        for_each_tile(out, rows, &cut, &|_, rows, tile| {
            dims!(self.dims, |dims| self.sum_rows(dims, rows, terms, tile));
        })
    }

    #[inline(always)]
    fn sum_rows<A: Dims>(&self, dims: A, rows: Range<usize>, terms: Terms<'_>, tile: &mut Tile<'_, T>) {
        for (row, sums) in rows.zip(tile.accumulators().chunks_exact_mut(dims.count())) {
            let mut axes = dims.all(T::zero());
            axes.as_mut()[..dims.count()].copy_from_slice(sums);
            match terms {
                Terms::Own => self.add_own(dims, row, &mut axes),
                Terms::Named(inverse) => self.add_named(dims, row, inverse, &mut axes),
                Terms::Both(inverse) => {
                    self.add_own(dims, row, &mut axes);
                    self.add_named(dims, row, inverse, &mut axes);
                }
            }
            sums.copy_from_slice(&axes.as_ref()[..dims.count()]);
        }
    }

    /// Adds the pairs of a query.
    #[inline(always)]
    fn add_own<A: Dims>(&self, dims: A, row: usize, sums: &mut A::Axes<T>) {
        let query = &self.queries[row * dims.count()..][..dims.count()];
        if query[0].is_nan() {
            return;
        }
        for position in row * self.k..(row + 1) * self.k {
            if let Some(&ahead) = self.indices.get(position + AHEAD) {
                self.ask(dims, self.points, ahead as usize);
            }
            let point = self.indices[position] as usize * dims.count();
            if point < self.points.len() {
                let point = &self.points[point..][..dims.count()];
                if let Some(terms) = self.distance.pull(dims, query, point, self.grads[position]) {
                    let each = sums.as_mut().iter_mut().zip(terms.as_ref()).take(dims.count());
                    each.for_each(|(sum, &term)| *sum = *sum + term);
                }
            }
        }
    }

    /// Adds the pairs that name a point.
    #[inline(always)]
    fn add_named<A: Dims>(&self, dims: A, row: usize, inverse: &Inverse, sums: &mut A::Axes<T>) {
        // There is an edge only where k is not 0, and positions fit in 32 bits.
        let k = self.k as u32;
        let (offsets, order) = (inverse.offsets(0), inverse.order(0));
        let point = &self.points[row * dims.count()..][..dims.count()];
        for edge in offsets[row] as usize..offsets[row + 1] as usize {
            if let Some(&ahead) = order.get(edge + AHEAD) {
                self.ask(dims, self.queries, (ahead / k) as usize);
                prefetch(&self.grads[ahead as usize..][..1]);
            }
            let position = order[edge];
            let query = &self.queries[(position / k) as usize * dims.count()..][..dims.count()];
            if query[0].is_nan() {
                continue;
            }
            if let Some(terms) = self.distance.pull(dims, query, point, self.grads[position as usize]) {
                let each = sums.as_mut().iter_mut().zip(terms.as_ref()).take(dims.count());
                each.for_each(|(sum, &term)| *sum = *sum - term);
            }
        }
    }

    /// Asks for a row ahead of its use.
    #[inline(always)]
    fn ask<A: Dims>(&self, dims: A, rows: &[T], row: usize) {
        if let Some(row) = rows.get(row * dims.count()..(row + 1) * dims.count()) {
            prefetch(row);
        }
    }
}

/// (M, D) a copy of the caller's queries as the tree knows them; rows of NaN where they are not finite.
pub(super) fn located<T: Element>(tree: &View<'_, T>, queries: &ArrayView2<'_, T>) -> Result<Array2<T>> {
    let (count, dims) = queries.dim();
    let buffer = Buffer::new(elements::<T>(&[count, dims])?)?;
    let rows = Rows::new(queries);
    Ok(buffer.fill(&[count, dims], |cells| {
        if count == 0 {
            return Filled::NOTHING;
        }
        let cut = Cut { group: count, tile: TILE, width: dims, parallel: count > TILE };
        for_each_tile(Output::fresh(cells), count, &cut, &|_, range, tile| {
            for (row, query) in range.zip(tile.accumulators().chunks_exact_mut(dims)) {
                rows.copy(row, query);
                if query.iter().all(|x| x.is_finite()) {
                    tree.wrap(query);
                } else {
                    query.fill(T::nan());
                }
            }
        })
    }))
}
