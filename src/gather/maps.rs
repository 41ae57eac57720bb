//! The inner loops that change rows element by element: divide them, multiply them, and pull gradients through.

use super::plan::ABSENT;
use super::terms::count;
use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::{Level, at};

/// Rows in groups: group `g` has the rows `order[edge]` for `edge` in `offsets[g]..offsets[g + 1]`.
#[derive(Clone, Copy)]
pub struct Members<'a> {
    pub offsets: &'a [u32],
    pub order: &'a [u32],
}

/// The kernels of this file, compiled here once for `f32` and `f64`. Rows are of `width`; a group [`ABSENT`] is padding,
/// whose rows are 0.
pub trait Kernels: Element {
    /// `tile[r] = source[r] / divisors[r]`, or 0 where that is 0.
    fn divide_rows(level: Level, source: &[Self], divisors: &[u32], width: usize, tile: &mut Tile<'_, Self>);

    /// `cells[r] /= totals[group]`.
    fn divide_by_totals(level: Level, cells: &mut [Self], groups: &[u32], totals: &[Self], width: usize);

    /// `tile[g] = sum of a[row] * b[row]` over the members in turn, element by element.
    fn sum_products(level: Level, ab: [&[Self]; 2], members: Members<'_>, width: usize, tile: &mut Tile<'_, Self>);

    /// `tile[r] = y[r] * (grad_y[r] - dots[group])`.
    fn pull_softmax(
        level: Level,
        y: &[Self],
        grad_y: &[Self],
        groups: &[u32],
        dots: &[Self],
        width: usize,
        tile: &mut Tile<'_, Self>,
    );

    /// `rows[k] = grad * (product of x[order[j]] for j < k * product of x[order[j]] for j > k)`, the first product from the
    /// first row on, the second from the last row back, both from 1. `product` is a row to work in.
    fn pull_products(
        level: Level,
        x: &[Self],
        order: &[u32],
        grad: &[Self],
        rows: &mut [&mut [Self]],
        product: &mut [Self],
    );
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn divide_rows(level: Level, source: &[$t], divisors: &[u32], width: usize, tile: &mut Tile<'_, $t>) {
            at!(level, |_s| divide_rows(source, divisors, width, tile.accumulators()));
        }
        fn divide_by_totals(level: Level, cells: &mut [$t], groups: &[u32], totals: &[$t], width: usize) {
            at!(level, |_s| divide_by_totals(cells, groups, totals, width));
        }
        fn sum_products(level: Level, ab: [&[$t]; 2], members: Members<'_>, width: usize, tile: &mut Tile<'_, $t>) {
            at!(level, |_s| sum_products(ab, members, width, tile.accumulators()));
        }
        fn pull_softmax(
            level: Level,
            y: &[$t],
            grad_y: &[$t],
            groups: &[u32],
            dots: &[$t],
            width: usize,
            tile: &mut Tile<'_, $t>,
        ) {
            at!(level, |_s| pull_softmax(y, grad_y, groups, dots, width, tile.accumulators()));
        }
        fn pull_products(
            level: Level,
            x: &[$t],
            order: &[u32],
            grad: &[$t],
            rows: &mut [&mut [$t]],
            product: &mut [$t],
        ) {
            at!(level, |_s| pull_products(x, order, grad, rows, product));
        }
    })* };
}
kernels!(f32, f64);

#[inline(always)]
fn divide_rows<T: Element>(source: &[T], divisors: &[u32], width: usize, cells: &mut [T]) {
    for ((cells, source), &n) in cells.chunks_exact_mut(width).zip(source.chunks_exact(width)).zip(divisors) {
        if n > 0 {
            let divisor = count(n as usize);
            for (cell, &x) in cells.iter_mut().zip(source) {
                *cell = x / divisor;
            }
        }
    }
}

#[inline(always)]
fn divide_by_totals<T: Element>(cells: &mut [T], groups: &[u32], totals: &[T], width: usize) {
    for (cells, &group) in cells.chunks_exact_mut(width).zip(groups) {
        if group == ABSENT {
            continue;
        }
        for (cell, &total) in cells.iter_mut().zip(&totals[group as usize * width..][..width]) {
            *cell = *cell / total;
        }
    }
}

#[inline(always)]
fn sum_products<T: Element>([a, b]: [&[T]; 2], members: Members<'_>, width: usize, cells: &mut [T]) {
    for (sums, ends) in cells.chunks_exact_mut(width).zip(members.offsets.windows(2)) {
        for &row in &members.order[ends[0] as usize..ends[1] as usize] {
            let row = row as usize * width..(row as usize + 1) * width;
            for ((sum, &a), &b) in sums.iter_mut().zip(&a[row.clone()]).zip(&b[row]) {
                *sum = *sum + a * b;
            }
        }
    }
}

#[inline(always)]
fn pull_softmax<T: Element>(y: &[T], grad_y: &[T], groups: &[u32], dots: &[T], width: usize, cells: &mut [T]) {
    let rows = cells.chunks_exact_mut(width).zip(y.chunks_exact(width)).zip(grad_y.chunks_exact(width)).zip(groups);
    for (((cells, y), grad_y), &group) in rows {
        if group == ABSENT {
            continue;
        }
        let dots = &dots[group as usize * width..][..width];
        for (((cell, &y), &grad), &dot) in cells.iter_mut().zip(y).zip(grad_y).zip(dots) {
            *cell = y * (grad - dot);
        }
    }
}

#[inline(always)]
fn pull_products<T: Element>(x: &[T], order: &[u32], grad: &[T], rows: &mut [&mut [T]], product: &mut [T]) {
    let width = grad.len();
    product.fill(T::one());
    for (&row, cells) in order.iter().zip(rows.iter_mut()) {
        for ((cell, product), &x) in cells.iter_mut().zip(&mut *product).zip(&x[row as usize * width..][..width]) {
            *cell = *product;
            *product = *product * x;
        }
    }
    product.fill(T::one());
    for (&row, cells) in order.iter().zip(rows).rev() {
        for (((cell, product), &x), &grad) in
            cells.iter_mut().zip(&mut *product).zip(&x[row as usize * width..][..width]).zip(grad)
        {
            *cell = grad * (*cell * *product);
            *product = *product * x;
        }
    }
}
