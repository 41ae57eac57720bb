//! Both gradients of a weighted sum in one pass by destination row: sums in registers, dot products beside them.
//!
//! A position is an edge from its group to the row that it names. The owner of a row reads the gradients of the groups
//! that name it, adds them weighted into the row's sum, and multiplies them with the row of `x`, which stays in the
//! level-one cache. A group's gradient is read once a position and nothing else moves: a third of what running sums of
//! every row cost, which read and write the sum and read `x` for every position.
//!
//! Dot products come in the order of the rows. They are kept in it, one an edge, and taken to their positions at the end.

use super::kernels::AHEAD;
use super::terms::Owner;
use crate::buffer::{Filled, Output, Split};
use crate::element::Element;
use crate::simd::{Simd, Vector, prefetch};

/// Edges whose lanes of dot products are kept at a time.
const EDGES: usize = 32;

/// The edges of consecutive rows: row `r` has the positions `order[offsets[r]..offsets[r + 1]]`.
#[derive(Clone, Copy)]
pub struct Pull<'a, T> {
    pub offsets: &'a [u32],
    /// The positions of the batch by row.
    pub order: &'a [u32],
    pub owner: Owner<'a>,
    /// A weight a position.
    pub weights: &'a [T],
    /// The gradients of the groups.
    pub grad_y: &'a [T],
    /// The rows of `x` whose edges these are.
    pub x: &'a [T],
    pub width: usize,
}

/// A few edges of one row.
struct Edges<T> {
    count: usize,
    /// Where the row of each edge starts in the gradient, and the rows of the edges behind, to be asked for.
    sources: [usize; EDGES + AHEAD],
    ahead: usize,
    weights: [T; EDGES],
}

/// `sums[row] += weight * grad_y[group]` and `dots[edge] = <grad_y[group], x[row]>` for every edge in turn.
#[inline(always)]
pub fn pull_rows<T: Element, S: Simd>(s: S, rows: Pull<'_, T>, dots: &mut [T], sums: &mut [T]) {
    let first = rows.offsets[0] as usize;
    let each = sums.chunks_exact_mut(rows.width).zip(rows.x.chunks_exact(rows.width));
    for (ends, (sums, x)) in rows.offsets.windows(2).zip(each) {
        let (mut edge, end) = (ends[0] as usize, ends[1] as usize);
        while edge < end {
            let edges = Edges::new(rows, edge, end);
            edges.pull(s, rows.grad_y, x, sums, &mut dots[edge - first..][..edges.count]);
            edge += edges.count;
        }
    }
}

impl<T: Element> Edges<T> {
    /// As many of the edges `start..end` as are taken at a time.
    #[inline(always)]
    fn new(rows: Pull<'_, T>, start: usize, end: usize) -> Self {
        let count = EDGES.min(end - start);
        let ahead = (count + AHEAD).min(rows.order.len() - start);
        let (mut sources, mut weights) = ([0; EDGES + AHEAD], [T::zero(); EDGES]);
        for (source, &position) in sources.iter_mut().zip(&rows.order[start..][..ahead]) {
            *source = rows.owner.of(position) as usize * rows.width;
        }
        for (weight, &position) in weights.iter_mut().zip(&rows.order[start..][..count]) {
            *weight = rows.weights[position as usize];
        }
        Self { count, sources, ahead, weights }
    }

    #[inline(always)]
    fn pull<S: Simd>(&self, s: S, grad_y: &[T], x: &[T], sums: &mut [T], dots: &mut [T]) {
        let mut lanes = [s.splat(T::zero()); EDGES];
        let mut channel = 0;
        while channel < x.len() {
            let left = x.len() - channel;
            let (x, sums) = (&x[channel..], &mut sums[channel..]);
            channel += match left / T::LANES {
                8.. if S::ACCUMULATORS >= 8 => self.block::<S, 8>(s, grad_y, channel, x, sums, &mut lanes),
                4.. if S::ACCUMULATORS >= 4 => self.block::<S, 4>(s, grad_y, channel, x, sums, &mut lanes),
                2.. => self.block::<S, 2>(s, grad_y, channel, x, sums, &mut lanes),
                1 => self.block::<S, 1>(s, grad_y, channel, x, sums, &mut lanes),
                0 => self.head(s, grad_y, channel, x, sums, &mut lanes),
            };
        }
        for (dot, lanes) in dots.iter_mut().zip(lanes) {
            *dot = lanes.fold();
        }
    }

    /// `N` vectors of channels from `channel` on; returns how many channels that is.
    #[inline(always)]
    fn block<S: Simd, const N: usize>(
        &self,
        s: S,
        grad_y: &[T],
        channel: usize,
        x: &[T],
        sums: &mut [T],
        lanes: &mut [S::V<T>; EDGES],
    ) -> usize {
        let n = N * T::LANES;
        let (x, sums) = (&x[..n], &mut sums[..n]);
        let mut registers = [s.splat(T::zero()); N];
        for (v, sum) in registers.iter_mut().enumerate() {
            *sum = s.load(&sums[v * T::LANES..]);
        }
        for (edge, lanes) in lanes[..self.count].iter_mut().enumerate() {
            if edge + AHEAD < self.ahead {
                prefetch(&grad_y[self.sources[edge + AHEAD] + channel..][..n]);
            }
            let row = &grad_y[self.sources[edge] + channel..][..n];
            let weight = s.splat(self.weights[edge]);
            for (v, sum) in registers.iter_mut().enumerate() {
                let grad = s.load(&row[v * T::LANES..]);
                *sum = *sum + weight * grad;
                *lanes = *lanes + grad * s.load(&x[v * T::LANES..]);
            }
        }
        for (v, sum) in registers.into_iter().enumerate() {
            sum.store(&mut sums[v * T::LANES..]);
        }
        n
    }

    /// The last channels, fewer than a vector's lanes.
    #[inline(always)]
    fn head<S: Simd>(
        &self,
        s: S,
        grad_y: &[T],
        channel: usize,
        x: &[T],
        sums: &mut [T],
        lanes: &mut [S::V<T>; EDGES],
    ) -> usize {
        let n = x.len();
        let (x, mut sum) = (s.load_head(x), s.load_head(sums));
        for (edge, lanes) in lanes[..self.count].iter_mut().enumerate() {
            let grad = s.load_head(&grad_y[self.sources[edge] + channel..][..n]);
            sum = sum + s.splat(self.weights[edge]) * grad;
            *lanes = *lanes + grad * x;
        }
        sum.store_head(sums);
        n
    }
}

/// The sums of rows and the dot products of their edges, to be split between tasks at the same rows.
pub(super) struct SumsAndDots<'a, 'b, T> {
    pub(super) sums: Output<'a, T>,
    pub(super) dots: &'b mut [T],
    /// The first row, of all batches.
    pub(super) row: usize,
    /// Where the edges of a row start.
    pub(super) starts: &'b (dyn Fn(usize) -> usize + Sync),
}

impl<T: Element> SumsAndDots<'_, '_, T> {
    /// Runs `kernel` on all sums, which it starts from, and all dot products.
    pub(super) fn write(self, kernel: impl FnOnce(&mut [T], &mut [T])) -> Filled {
        let dots = self.dots;
        self.sums.write(|tile| kernel(tile.accumulators(), dots))
    }
}

impl<T: Element> Split for SumsAndDots<'_, '_, T> {
    fn split_near(self, rows: usize, width: usize) -> (Self, usize, Self) {
        let Self { sums, dots, row, starts } = self;
        let (a, taken, b) = sums.split_near(rows, width);
        let (c, d) = dots.split_at_mut(starts(row + taken) - starts(row));
        (Self { sums: a, dots: c, row, starts }, taken, Self { sums: b, dots: d, row: row + taken, starts })
    }
}
