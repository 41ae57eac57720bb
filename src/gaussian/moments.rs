//! Sums of a kernel with a gradient: the adjoint reads every gradient once and saves nothing.
//!
//! A kernel is computed again, then `s = sum p g` and `h = p (g - s)`. Both passes take from the gradient that of the largest
//! entry, from which `s` differs least where the kernel is narrow: a constant gradient gives exactly 0, and neither a large mean
//! nor a kernel that is nearly one sample costs digits. What rounding leaves of `sum h`, which is 0, corrects the other sums.

use super::form::Form;
use super::grid::Grid;
use super::kernels::{CHUNK, head, normalized, plain, weigh};
use super::narrow;
use super::pull::Moments;
use crate::element::Element;
use crate::simd::{Mask, Simd, Vector};

/// `s = sum p g` in two parts.
#[derive(Clone, Copy)]
pub struct Middle<T> {
    /// The gradient of the largest entry.
    pub near: T,
    /// `sum p (g - near)`.
    pub rest: T,
}

#[inline(always)]
pub(super) fn moments<T: Element, S: Simd>(
    s: S,
    grid: &Grid<T>,
    forms: &[Form<T>],
    grads: &[T],
    weights: &mut [T],
    sums: &mut [Moments],
) {
    for ((form, g), sums) in forms.iter().zip(grads.chunks_exact(grid.samples())).zip(sums) {
        match (*form, grid.zero) {
            (Form::Plain(coefficients), Some(zero)) if grid.mirrored => {
                even::<T, S, true>(s, grid, coefficients, g, g[zero], weights, sums);
            }
            (Form::Plain(coefficients), Some(zero)) => {
                even::<T, S, false>(s, grid, coefficients, g, g[zero], weights, sums);
            }
            _ => *sums = all(s, grid, form, g, weights),
        }
    }
}

/// Moments of second order of [`Form::Plain`], `near` being the gradient of the sample at 0. On a mirrored grid two samples
/// have the same: their gradients are added first. Weights are divided by their sum at the end.
#[inline(always)]
fn even<T: Element, S: Simd, const MIRRORED: bool>(
    s: S,
    grid: &Grid<T>,
    coefficients: [T; 3],
    g: &[T],
    near: T,
    weights: &mut [T],
    sums: &mut Moments,
) {
    let n = grid.samples();
    let (zero, center) = (s.splat(T::zero()), s.splat(near));
    let mut rest = zero;
    let sum = plain::<T, S, MIRRORED>(
        s,
        grid,
        coefficients,
        weights,
        #[inline(always)]
        |i, weight| rest = weight.mul_add(excess::<T, S, MIRRORED>(s, g, i, center), rest),
    );
    let scale = T::one() / sum;
    let middle = Middle { near, rest: rest.fold() * scale };

    let rest = s.splat(if MIRRORED { middle.rest + middle.rest } else { middle.rest });
    // The weight of an entry that is the least normal number.
    let least = s.splat(T::min_positive_value() * sum);
    let counted = if MIRRORED { n / 2 } else { n };
    let lanes = s.load(&grid.lanes);
    let (mut of_p, mut of_h) = ([zero; 3], [zero; 4]);
    for start in (0..counted).step_by(CHUNK * T::LANES) {
        let (mut some_p, mut some_h) = ([zero; 3], [zero; 4]);
        for i in (start..counted.min(start + CHUNK * T::LANES)).step_by(T::LANES) {
            let products = [s.load(&grid.xx[i..]), s.load(&grid.xy[i..]), s.load(&grid.yy[i..])];
            let weight = s.load(&weights[i..]);
            let mut p = S::V::select(least.le(weight), weight, zero);
            if MIRRORED && i + T::LANES > counted {
                p = head(s, lanes, counted, i, p);
            }
            let h = p * (excess::<T, S, MIRRORED>(s, g, i, center) - rest);
            some_h[3] = some_h[3] + h;
            for (axis, product) in products.into_iter().enumerate() {
                some_p[axis] = p.mul_add(product, some_p[axis]);
                some_h[axis] = h.mul_add(product, some_h[axis]);
            }
        }
        add(&mut of_p, some_p);
        add(&mut of_h, some_h);
    }
    let mut left = of_h[3].fold();
    if MIRRORED {
        if n % 2 == 1 {
            // The sample in the middle, at 0.
            left = left + weights[n / 2] * (g[n / 2] - middle.near - middle.rest);
        }
        // Those of the first half are half of those of p.
        left = left + left;
    }
    let by = scale.to_f64().expect("a float is an f64");
    let [xx, xy, yy] = corrected(s, [of_h[0], of_h[1], of_h[2]], of_p, left * scale);
    // Number by number: put together first, they would be read again before they are stored.
    (sums.x, sums.y, sums.scale) = (0.0, 0.0, grid.scale);
    sums.xx = xx * by;
    sums.xy = xy * by;
    sums.yy = yy * by;
}

/// The gradients of the vector at sample `i` less `center`, with those of its mirror image.
#[inline(always)]
fn excess<T: Element, S: Simd, const MIRRORED: bool>(s: S, g: &[T], i: usize, center: S::V<T>) -> S::V<T> {
    if MIRRORED {
        (s.load(&g[i..]) - center) + (s.load(&g[g.len() - i - T::LANES..]).reverse() - center)
    } else {
        vector(s, g, i) - center
    }
}

/// Moments of first and second order of the other forms, of positions less the offset.
#[inline(always)]
fn all<T: Element, S: Simd>(s: S, grid: &Grid<T>, form: &Form<T>, g: &[T], weights: &mut [T]) -> Moments {
    let n = grid.samples();
    let scale = T::one() / weigh(s, grid, form, weights);
    let near = g[largest(s, weights)];
    let (zero, center) = (s.splat(T::zero()), s.splat(near));
    let mut rest = zero;
    for i in (0..n).step_by(T::LANES) {
        let p = normalized(s, s.load(&weights[i..]), s.splat(scale));
        p.store(&mut weights[i..]);
        rest = p.mul_add(vector(s, g, i) - center, rest);
    }
    let middle = Middle { near, rest: rest.fold() };
    let offset = match *form {
        Form::Plain(_) => [T::zero(); 2],
        Form::Rows { offset, .. } => offset,
        Form::Narrow { offset, .. } => return narrow::moments(grid, offset, &weights[..n], g, middle),
    };
    let (ox, oy, rest) = (s.splat(offset[0]), s.splat(offset[1]), s.splat(middle.rest));
    let (mut of_p, mut of_h) = ([zero; 5], [zero; 6]);
    for start in (0..n).step_by(CHUNK * T::LANES) {
        let (mut some_p, mut some_h) = ([zero; 5], [zero; 6]);
        for i in (start..n.min(start + CHUNK * T::LANES)).step_by(T::LANES) {
            let (x, y) = (s.load(&grid.x[i..]) - ox, s.load(&grid.y[i..]) - oy);
            let p = s.load(&weights[i..]);
            let h = p * ((vector(s, g, i) - center) - rest);
            let (px, py, hx, hy) = (p * x, p * y, h * x, h * y);
            some_p = [
                some_p[0] + px,
                some_p[1] + py,
                px.mul_add(x, some_p[2]),
                px.mul_add(y, some_p[3]),
                py.mul_add(y, some_p[4]),
            ];
            some_h = [
                some_h[0] + hx,
                some_h[1] + hy,
                hx.mul_add(x, some_h[2]),
                hx.mul_add(y, some_h[3]),
                hy.mul_add(y, some_h[4]),
                some_h[5] + h,
            ];
        }
        add(&mut of_p, some_p);
        add(&mut of_h, some_h);
    }
    let [own @ .., left] = of_h;
    let [x, y, xx, xy, yy] = corrected(s, own, of_p, left.fold());
    Moments { x, y, xx, xy, yy, scale: grid.scale }
}

/// The vector of `cells` at `i`, with zeros behind them.
#[inline(always)]
fn vector<T: Element, S: Simd>(s: S, cells: &[T], i: usize) -> S::V<T> {
    if i + T::LANES <= cells.len() { s.load(&cells[i..]) } else { s.load_head(&cells[i.min(cells.len())..]) }
}

/// The sample with the largest weight, which is 1.
#[inline(always)]
fn largest<T: Element, S: Simd>(s: S, weights: &[T]) -> usize {
    let one = s.splat(T::one());
    for i in (0..weights.len()).step_by(T::LANES) {
        let ones = one.le(s.load(&weights[i..])).bits();
        if ones != 0 {
            return i + ones.trailing_zeros() as usize;
        }
    }
    0
}

/// `sums[k] += some[k]`.
#[inline(always)]
fn add<T: Element, V: Vector<T>, const N: usize>(sums: &mut [V; N], some: [V; N]) {
    for (sum, some) in sums.iter_mut().zip(some) {
        *sum = *sum + some;
    }
}

/// Sums of h, less those of p times what is left of the sum of h.
#[inline(always)]
fn corrected<T: Element, S: Simd, const N: usize>(s: S, of_h: [S::V<T>; N], of_p: [S::V<T>; N], left: T) -> [f64; N] {
    let mut sums = [0.0; N];
    for ((sum, h), p) in sums.iter_mut().zip(of_h).zip(of_p) {
        *sum = (h - p * s.splat(left)).fold().to_f64().expect("a float is an f64");
    }
    sums
}
