//! Sums of a kernel with a gradient: the adjoint reads every gradient once and saves nothing.
//!
//! A kernel is computed again, then `s = sum p g` and `h = p (g - s)`. Both passes take from the gradient that of the largest
//! entry, from which `s` differs least where the kernel is narrow: a constant gradient gives exactly 0, and neither a large mean
//! nor a kernel that is nearly one sample costs digits. What rounding leaves of `sum h`, which is 0, corrects the other sums.

use super::form::Form;
use super::grid::Grid;
use super::kernels::{CHUNK, head, normalized, weigh};
use super::narrow;
use super::pull::Moments;
use crate::element::Element;
use crate::simd::{Mask, Simd, Vector, fold_lanes};

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
    let n = grid.samples();
    for ((form, g), sums) in forms.iter().zip(grads.chunks_exact(n)).zip(sums) {
        let scale = T::one() / weigh(s, grid, form, weights);
        let near = g[largest(s, grid, form, weights)];
        let p = &mut weights[..n];
        let middle = Middle { near, rest: normalize(s, p, scale, g, near) };
        *sums = match *form {
            Form::Plain(_) if grid.mirrored => even::<T, S, true>(s, grid, p, g, middle),
            Form::Plain(_) => even::<T, S, false>(s, grid, p, g, middle),
            Form::Rows { offset, .. } => all(s, grid, offset, p, g, middle),
            Form::Narrow { offset, .. } => narrow::moments(grid, offset, p, g, middle),
        };
    }
}

/// The sample with the largest weight, which is 1.
#[inline(always)]
pub(super) fn largest<T: Element, S: Simd>(s: S, grid: &Grid<T>, form: &Form<T>, weights: &[T]) -> usize {
    if let (Form::Plain(_), Some(zero)) = (form, grid.zero) {
        return zero;
    }
    let one = s.splat(T::one());
    for i in (0..weights.len()).step_by(T::LANES) {
        let ones = one.le(s.load(&weights[i..])).bits();
        if ones != 0 {
            return i + ones.trailing_zeros() as usize;
        }
    }
    0
}

/// Makes weights the kernel `p` and returns `sum p (g - near)`.
#[inline(always)]
pub(super) fn normalize<T: Element, S: Simd>(s: S, p: &mut [T], scale: T, g: &[T], near: T) -> T {
    let (scale, near) = (s.splat(scale), s.splat(near));
    let mut sum = s.splat(T::zero());
    let vectors = g.chunks_exact(T::LANES);
    let rest = vectors.remainder();
    let mut own = p.chunks_exact_mut(T::LANES);
    for (g, p) in vectors.zip(&mut own) {
        let v = normalized(s, s.load(p), scale);
        v.store(p);
        sum = v.mul_add(s.load(g) - near, sum);
    }
    let p = own.into_remainder();
    let v = normalized(s, s.load_head(p), scale);
    v.store_head(p);
    sum = v.mul_add(s.load_head(rest) - near, sum);
    fold_lanes(sum)
}

/// Moments of second order. On a mirrored grid two samples have the same: their gradients are added first.
#[inline(always)]
fn even<T: Element, S: Simd, const MIRRORED: bool>(
    s: S,
    grid: &Grid<T>,
    p: &[T],
    g: &[T],
    middle: Middle<T>,
) -> Moments {
    let n = grid.samples();
    let counted = if MIRRORED { n / 2 } else { n };
    let (zero, near) = (s.splat(T::zero()), s.splat(middle.near));
    let rest = s.splat(if MIRRORED { middle.rest + middle.rest } else { middle.rest });
    let lanes = s.load(&grid.lanes);
    // Of p and of h: those of h, and what is left of its sum.
    let (mut of_p, mut of_h) = ([zero; 3], [zero; 4]);
    for start in (0..counted).step_by(CHUNK * T::LANES) {
        let (mut some_p, mut some_h) = ([zero; 3], [zero; 4]);
        for i in (start..counted.min(start + CHUNK * T::LANES)).step_by(T::LANES) {
            let products = [s.load(&grid.xx[i..]), s.load(&grid.xy[i..]), s.load(&grid.yy[i..])];
            let mut v = if i + T::LANES <= n { s.load(&p[i..]) } else { s.load_head(&p[i..]) };
            let mut above = if i + T::LANES <= n { s.load(&g[i..]) } else { s.load_head(&g[i..]) } - near;
            if MIRRORED {
                above = above + (s.load(&g[n - i - T::LANES..]).reverse() - near);
                if i + T::LANES > counted {
                    v = head(s, lanes, counted, i, v);
                }
            }
            let h = v * (above - rest);
            some_h[3] = some_h[3] + h;
            for (axis, product) in products.into_iter().enumerate() {
                some_p[axis] = v.mul_add(product, some_p[axis]);
                some_h[axis] = h.mul_add(product, some_h[axis]);
            }
        }
        for (sum, some) in of_p.iter_mut().zip(some_p).chain(of_h.iter_mut().zip(some_h)) {
            *sum = *sum + some;
        }
    }
    let mut left = wide(fold_lanes(of_h[3]));
    if MIRRORED && n % 2 == 1 {
        // The sample in the middle, at 0.
        left += wide(p[n / 2] * (g[n / 2] - middle.near - middle.rest));
    }
    let twice = if MIRRORED { 2.0 } else { 1.0 };
    let mut sums = [0.0; 3];
    for ((sum, of_p), &of_h) in sums.iter_mut().zip(of_p).zip(&of_h[..3]) {
        *sum = wide(fold_lanes(of_h)) - left * twice * wide(fold_lanes(of_p));
    }
    Moments { x: 0.0, y: 0.0, xx: sums[0], xy: sums[1], yy: sums[2], scale: grid.scale }
}

/// Moments of first and second order of positions less an offset.
#[inline(always)]
fn all<T: Element, S: Simd>(s: S, grid: &Grid<T>, offset: [T; 2], p: &[T], g: &[T], middle: Middle<T>) -> Moments {
    let n = grid.samples();
    let (zero, near, rest) = (s.splat(T::zero()), s.splat(middle.near), s.splat(middle.rest));
    let (ox, oy) = (s.splat(offset[0]), s.splat(offset[1]));
    let (mut of_p, mut of_h) = ([zero; 5], [zero; 6]);
    for start in (0..n).step_by(CHUNK * T::LANES) {
        let (mut some_p, mut some_h) = ([zero; 5], [zero; 6]);
        for i in (start..n.min(start + CHUNK * T::LANES)).step_by(T::LANES) {
            let (x, y) = (s.load(&grid.x[i..]) - ox, s.load(&grid.y[i..]) - oy);
            let whole = i + T::LANES <= n;
            let v = if whole { s.load(&p[i..]) } else { s.load_head(&p[i..]) };
            let g = if whole { s.load(&g[i..]) } else { s.load_head(&g[i..]) };
            let h = v * ((g - near) - rest);
            let (vx, vy, hx, hy) = (v * x, v * y, h * x, h * y);
            some_p = [
                some_p[0] + vx,
                some_p[1] + vy,
                vx.mul_add(x, some_p[2]),
                vx.mul_add(y, some_p[3]),
                vy.mul_add(y, some_p[4]),
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
        for (sum, some) in of_p.iter_mut().zip(some_p).chain(of_h.iter_mut().zip(some_h)) {
            *sum = *sum + some;
        }
    }
    let left = wide(fold_lanes(of_h[5]));
    let mut sums = [0.0; 5];
    for ((sum, of_p), &of_h) in sums.iter_mut().zip(of_p).zip(&of_h[..5]) {
        *sum = wide(fold_lanes(of_h)) - left * wide(fold_lanes(of_p));
    }
    Moments { x: sums[0], y: sums[1], xx: sums[2], xy: sums[3], yy: sums[4], scale: grid.scale }
}

#[inline(always)]
fn wide<T: Element>(x: T) -> f64 {
    x.to_f64().expect("a float is an f64")
}
