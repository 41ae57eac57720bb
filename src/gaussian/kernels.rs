//! The inner loops over the samples of a kernel: its weights, the kernel itself, and sums with a gradient.
//!
//! Lanes run along all samples, row by row, so that a kernel of any width fills them. One kernel's weights stay in the
//! level-one cache between the pass that computes exponentials and adds them up and the pass that divides by the sum. What is
//! added up is added in the same lanes and the same order at every level.

use super::blur_kernels;
use super::form::Form;
use super::grid::{BLOCK, Grid};
use super::moments::moments;
use super::narrow;
use super::pull::Moments;
use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::math::exp2;
use crate::simd::{Level, MOST_LANES, Simd, Vector, at};
use std::f64::consts::LOG2_E;

/// Vectors whose sum is taken by itself, so that an error does not grow with the number of samples.
pub(super) const CHUNK: usize = 64;

/// The kernels of this family, compiled here once for `f32` and `f64`. `weights` is a place for the weights of one kernel: a
/// grid's padded samples, which hold numbers.
pub trait Kernels: blur_kernels::Kernels {
    /// The kernels of all forms, each normalized to 1, one after the other; past the caches if `stream`.
    fn maps(
        level: Level,
        grid: &Grid<Self>,
        forms: &[Form<Self>],
        stream: bool,
        weights: &mut [Self],
        tile: &mut Tile<'_, Self>,
    );

    /// `sums[k]`: moments of the kernel of form `k` with the gradient `grads[k]`, of as many numbers as samples.
    fn moments(
        level: Level,
        grid: &Grid<Self>,
        forms: &[Form<Self>],
        grads: &[Self],
        weights: &mut [Self],
        sums: &mut [Moments],
    );
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn maps(
            level: Level,
            grid: &Grid<$t>,
            forms: &[Form<$t>],
            stream: bool,
            weights: &mut [$t],
            tile: &mut Tile<'_, $t>,
        ) {
            if stream {
                at!(level, |s| maps::<_, _, true>(s, grid, forms, weights, tile));
            } else {
                at!(level, |s| maps::<_, _, false>(s, grid, forms, weights, tile));
            }
        }
        fn moments(
            level: Level,
            grid: &Grid<$t>,
            forms: &[Form<$t>],
            grads: &[$t],
            weights: &mut [$t],
            sums: &mut [Moments],
        ) {
            at!(level, |s| moments(s, grid, forms, grads, weights, sums));
        }
    })* };
}
kernels!(f32, f64);

/// The weights of a kernel, not normalized, the largest about 1, with zeros behind them. Returns their sum.
#[inline(always)]
pub(super) fn weigh<T: Element, S: Simd>(s: S, grid: &Grid<T>, form: &Form<T>, weights: &mut [T]) -> T {
    match *form {
        Form::Plain(coefficients) if grid.mirrored => plain::<_, _, true>(
            s,
            grid,
            coefficients,
            weights,
            #[inline(always)]
            |_, _| (),
        ),
        Form::Plain(coefficients) => plain::<_, _, false>(
            s,
            grid,
            coefficients,
            weights,
            #[inline(always)]
            |_, _| (),
        ),
        Form::Rows { factor, offset } => rows(s, grid, factor, offset, weights),
        Form::Narrow { factor, offset } => narrow::weights(grid, factor, offset, weights),
    }
}

/// [`Form::Plain`]. On a mirrored grid the second half of the weights is the first one backwards. `each` sees every vector of
/// weights and its first sample, of the first half on a mirrored grid, without the middle; weights of samples elsewhere are 0.
#[inline(always)]
pub(super) fn plain<T: Element, S: Simd, const MIRRORED: bool>(
    s: S,
    grid: &Grid<T>,
    [a, b, c]: [T; 3],
    weights: &mut [T],
    mut each: impl FnMut(usize, S::V<T>),
) -> T {
    let n = grid.samples();
    let (counted, computed) = if MIRRORED { (n / 2, n / 2 + 1) } else { (n, n) };
    let step = BLOCK * T::LANES;
    let len = computed.div_ceil(step) * step;
    let (xx, xy, yy) = (&grid.xx[..len], &grid.xy[..len], &grid.yy[..len]);
    let (a, b, c) = (s.splat(a), s.splat(b), s.splat(c));
    let zero = s.splat(T::zero());
    let lanes = s.load(&grid.lanes);
    let mut total = zero;
    for start in (0..len).step_by(CHUNK * T::LANES) {
        let end = len.min(start + CHUNK * T::LANES);
        let mut sums = [zero; BLOCK];
        let products = xx[start..end].chunks_exact(step).zip(xy[start..end].chunks_exact(step));
        for (block, ((xx, xy), yy)) in products.zip(yy[start..end].chunks_exact(step)).enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                let at = v * T::LANES;
                let i = start + block * step + at;
                let (xx, xy, yy) = (s.load(&xx[at..]), s.load(&xy[at..]), s.load(&yy[at..]));
                let weight = exp2(s, a.mul_add(xx, b.mul_add(xy, c * yy)));
                let own = if i + T::LANES <= counted { weight } else { head(s, lanes, counted, i, weight) };
                if MIRRORED {
                    weight.store(&mut weights[i..]);
                    weight.reverse().store(&mut weights[n - i - T::LANES..]);
                } else {
                    own.store(&mut weights[i..]);
                }
                each(i, own);
                *sum = *sum + own;
            }
        }
        total = total + (sums[0] + sums[1]);
    }
    let sum = total.fold();
    if MIRRORED {
        // The middle sample is its own mirror image; its weight is 1.
        let middle = if n % 2 == 1 { T::one() } else { T::zero() };
        sum + sum + middle
    } else {
        sum
    }
}

/// The lanes of `v`, of which the first is sample `i`, that are among the first `n` samples; others are 0.
#[inline(always)]
pub(super) fn head<T: Element, S: Simd>(s: S, lanes: S::V<T>, n: usize, i: usize, v: S::V<T>) -> S::V<T> {
    let left = T::from_usize(n.saturating_sub(i)).expect("a number of lanes");
    S::V::select(lanes.lt(s.splat(left)), v, s.splat(T::zero()))
}

/// [`Form::Rows`].
#[inline(always)]
fn rows<T: Element, S: Simd>(s: S, grid: &Grid<T>, factor: [T; 4], offset: [T; 2], weights: &mut [T]) -> T {
    let n = grid.samples();
    let (m11, m12) = (s.splat(factor[0]), s.splat(factor[1]));
    let (m21, m22) = (s.splat(factor[2]), s.splat(factor[3]));
    let (ox, oy) = (s.splat(offset[0]), s.splat(offset[1]));
    let infinity = s.splat(T::infinity());
    let lanes = s.load(&grid.lanes);
    let mut least = infinity;
    for i in (0..n).step_by(T::LANES) {
        let (x, y) = (s.load(&grid.x[i..]) - ox, s.load(&grid.y[i..]) - oy);
        let (u, v) = (m11.mul_add(x, m12 * y), m21.mul_add(x, m22 * y));
        let mut q = u.mul_add(u, v * v);
        if i + T::LANES > n {
            let left = s.splat(T::from_usize(n - i).expect("a number of lanes"));
            q = S::V::select(lanes.lt(left), q, infinity);
        }
        q.store(&mut weights[i..]);
        least = least.min(q);
    }
    let least = s.splat(least_lane(least));
    let half = s.splat(T::from_f64(0.5 * LOG2_E).expect("every f64 rounds to an element"));
    let zero = s.splat(T::zero());
    let mut total = zero;
    for start in (0..n).step_by(CHUNK * T::LANES) {
        let mut sum = zero;
        for i in (start..n.min(start + CHUNK * T::LANES)).step_by(T::LANES) {
            // Padding is infinitely far.
            let weight = exp2(s, (least - s.load(&weights[i..])) * half);
            weight.store(&mut weights[i..]);
            sum = sum + weight;
        }
        total = total + sum;
    }
    total.fold()
}

/// The least of all lanes, none of which is NaN.
#[inline(always)]
fn least_lane<T: Element, V: Vector<T>>(v: V) -> T {
    let mut lanes = [T::infinity(); MOST_LANES];
    v.store(&mut lanes);
    let mut least = lanes[0];
    for &lane in &lanes[1..] {
        least = if lane < least { lane } else { least };
    }
    least
}

/// `weight * scale`, exactly 0 below the least normal number.
#[inline(always)]
pub(super) fn normalized<T: Element, S: Simd>(s: S, weight: S::V<T>, scale: S::V<T>) -> S::V<T> {
    let p = weight * scale;
    S::V::select(s.splat(T::min_positive_value()).le(p), p, s.splat(T::zero()))
}

#[inline(always)]
fn maps<T: Element, S: Simd, const STREAM: bool>(
    s: S,
    grid: &Grid<T>,
    forms: &[Form<T>],
    weights: &mut [T],
    tile: &mut Tile<'_, T>,
) {
    let n = grid.samples();
    let mut lines = Lines::new(tile);
    for form in forms {
        let scale = s.splat(T::one() / weigh(s, grid, form, weights));
        if STREAM {
            lines.push(s, &weights[..n], scale, tile);
            continue;
        }
        let vectors = weights[..n].chunks_exact(T::LANES);
        let rest = vectors.remainder();
        vectors.for_each(
            #[inline(always)]
            |v| tile.push(normalized(s, s.load(v), scale)),
        );
        if !rest.is_empty() {
            tile.push_head(normalized(s, s.load_head(rest), scale), rest.len());
        }
    }
    lines.finish(s, tile);
}

/// Rows that are written past the caches as whole cache lines, though they start and end within one.
struct Lines<T> {
    /// The head of the line that the next row continues.
    line: [T; 2 * MOST_LANES],
    held: usize,
    /// Cells up to the first line.
    lead: usize,
}

impl<T: Element> Lines<T> {
    #[inline(always)]
    fn new(tile: &Tile<'_, T>) -> Self {
        Self { line: [T::zero(); 2 * MOST_LANES], held: 0, lead: tile.cells_to_line() }
    }

    /// A row of at least [`Element::LANES`] cells.
    #[inline(always)]
    fn push<S: Simd>(&mut self, s: S, row: &[T], scale: S::V<T>, tile: &mut Tile<'_, T>) {
        const AT_ONCE: usize = 4;
        let mut at = 0;
        if self.lead > 0 {
            at = std::mem::take(&mut self.lead);
            tile.push_head(normalized(s, s.load(row), scale), at);
        } else if self.held > 0 {
            normalized(s, s.load(row), scale).store(&mut self.line[self.held..]);
            tile.push_streamed([s.load(&self.line)]);
            at = T::LANES - self.held;
        }
        let several = row[at..].chunks_exact(AT_ONCE * T::LANES);
        let single = several.remainder().chunks_exact(T::LANES);
        let rest = single.remainder();
        for cells in several {
            let mut vectors = [scale; AT_ONCE];
            for (v, cells) in vectors.iter_mut().zip(cells.chunks_exact(T::LANES)) {
                *v = normalized(s, s.load(cells), scale);
            }
            tile.push_streamed(vectors);
        }
        for cells in single {
            tile.push_streamed([normalized(s, s.load(cells), scale)]);
        }
        normalized(s, s.load_head(rest), scale).store(&mut self.line);
        self.held = rest.len();
    }

    /// The last cells, which end within a line.
    #[inline(always)]
    fn finish<S: Simd>(&self, s: S, tile: &mut Tile<'_, T>) {
        if self.held > 0 {
            tile.push_head(s.load(&self.line), self.held);
        }
    }
}
