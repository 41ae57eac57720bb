//! Kernels so narrow that rounding would choose between samples, or that their numbers overflow.
//!
//! Such a kernel is nearly a limit: all weight on the samples where `q` is least. Everything here is `f64`, one sample after
//! another, with each number's power of two kept apart, so that nothing overflows but what is infinitely far from the
//! least. Samples whose `q` differ by less than its rounding are a tie and get equal weights.

use super::exact::normalized;
use super::grid::Grid;
use super::moments::Middle;
use super::pull::Moments;
use crate::element::Element;
use crate::exponent::{exponent, ldexp};

/// Values of `q` closer than this part of their sum cannot be told apart: the numbers of a factor are rounded themselves.
const TIE: f64 = 16.0 * f64::EPSILON;

/// The samples of a grid about an offset, divided by a power of two.
struct Samples<'a, T> {
    grid: &'a Grid<T>,
    offset: [f64; 2],
    scale: i32,
}

impl<'a, T: Element> Samples<'a, T> {
    fn new(grid: &'a Grid<T>, offset: [f64; 2]) -> Self {
        let furthest = grid.distance.max(offset[0].abs()).max(offset[1].abs());
        let scale = if furthest == 0.0 { 0 } else { exponent(furthest) + 1 };
        Self { grid, offset: offset.map(|x| ldexp(x, -scale)), scale }
    }

    /// The positions, of coordinates up to 2.
    fn positions(&self) -> impl Iterator<Item = [f64; 2]> {
        let grid = self.grid;
        let at = |x: &T, offset: f64| ldexp(x.to_f64().expect("a float is an f64"), grid.scale - self.scale) - offset;
        let n = grid.samples();
        grid.x[..n].iter().zip(&grid.y[..n]).map(move |(x, y)| [at(x, self.offset[0]), at(y, self.offset[1])])
    }
}

/// Both rows of `M z`, divided by `2^scale`.
fn rows(factor: &[([f64; 2], i32); 2], z: [f64; 2], scale: i32) -> [f64; 2] {
    factor.map(|(row, e)| ldexp(dot(row, z), e.saturating_sub(scale)))
}

/// `a . b`, rounded about once, however much of it cancels: along a ridge a long row is 0, and only a short one beside it tells
/// which sample is nearest.
fn dot(a: [f64; 2], b: [f64; 2]) -> f64 {
    let (p, q) = (a[0] * b[0], a[1] * b[1]);
    let sum = p + q;
    let of_q = sum - p;
    let lost = (p - (sum - of_q)) + (q - of_q);
    sum + (lost + (a[0].mul_add(b[0], -p) + a[1].mul_add(b[1], -q)))
}

/// Weights `exp(-(q - least q) / 2)` of all samples into `e`, and their sum. Padding is 0.
#[cold]
#[inline(never)]
pub(super) fn weights<T: Element>(grid: &Grid<T>, factor: [f64; 4], offset: [f64; 2], e: &mut [T]) -> T {
    let samples = Samples::new(grid, offset);
    let [m11, m12, m21, m22] = factor;
    let factor = [[m11, m12], [m21, m22]].map(|row| {
        let (row, e) = normalized(row);
        (row, e + samples.scale)
    });
    let square = |rows: [f64; 2]| rows[0] * rows[0] + rows[1] * rows[1];
    let least = |scale: i32| {
        samples
            .positions()
            .map(|z| square(rows(&factor, z, scale)))
            .fold(f64::INFINITY, |least, q| if q < least { q } else { least })
    };
    // Where all overflow, the least is brought into range. Whatever is not a tie is then infinitely far from it.
    let (mut scale, mut nearest) = (0, least(0));
    if nearest == f64::INFINITY {
        let size = |z: [f64; 2]| {
            let parts = factor.map(|(row, e)| (dot(row, z), e));
            parts.into_iter().filter(|part| part.0 != 0.0).map(|(part, e)| exponent(part) + e).max().unwrap_or(i32::MIN)
        };
        scale = samples.positions().map(size).min().expect("a grid has samples");
        nearest = least(scale);
    }
    let mut sum = 0.0;
    for (z, e) in samples.positions().zip(&mut *e) {
        let q = square(rows(&factor, z, scale));
        let (distance, noise) = (q - nearest, TIE * (q + nearest));
        let weight = if noise.is_finite() && distance <= noise {
            1.0
        } else if scale == 0 {
            (-0.5 * distance).exp()
        } else {
            0.0
        };
        let weight = T::from_f64(weight).expect("every f64 rounds to an element");
        *e = if weight < T::min_positive_value() { T::zero() } else { weight };
        sum += e.to_f64().expect("a float is an f64");
    }
    e[grid.samples()..].fill(T::zero());
    T::from_f64(sum).expect("every f64 rounds to an element")
}

/// The moments of a kernel `p` with the gradient `g`, see [`Middle`].
#[cold]
#[inline(never)]
pub(super) fn moments<T: Element>(grid: &Grid<T>, offset: [f64; 2], p: &[T], g: &[T], middle: Middle<T>) -> Moments {
    let samples = Samples::new(grid, offset);
    let float = |x: T| x.to_f64().expect("a float is an f64");
    // Of p and of h, and their own sums behind: what is left of that of h, which is 0, corrects the others.
    let (mut of_p, mut of_h) = ([0.0; 6], [0.0; 6]);
    for ([x, y], (&p, &g)) in samples.positions().zip(p.iter().zip(g)).filter(|(_, (p, _))| **p > T::zero()) {
        let h = float(p) * (float(g) - float(middle.near) - float(middle.rest));
        for (axis, product) in [x, y, x * x, x * y, y * y, 1.0].into_iter().enumerate() {
            of_p[axis] += float(p) * product;
            of_h[axis] += h * product;
        }
    }
    let rest = of_h[5] / of_p[5];
    let sum = |axis: usize| of_h[axis] - rest * of_p[axis];
    Moments { x: sum(0), y: sum(1), xx: sum(2), xy: sum(3), yy: sum(4), scale: samples.scale }
}
