//! The inner loops that change rows element by element: divide them, and what the exponential reductions need.

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
pub trait Maps: Element {
    /// `tile[r] = source[r] / divisors[r]`, or 0 where that is 0.
    fn divide_rows(level: Level, source: &[Self], divisors: &[u32], width: usize, tile: &mut Tile<'_, Self>);

    /// `tile[r] = exp(source[r] - shift[group])`.
    fn exp_rows(source: &[Self], groups: &[u32], shift: &[Self], width: usize, tile: &mut Tile<'_, Self>);

    /// `cells[r] /= totals[group]`.
    fn divide_by_totals(level: Level, cells: &mut [Self], groups: &[u32], totals: &[Self], width: usize);

    /// `tile[g] = shift[g] + ln(sum of exp(source[row] - shift[g]))` over the members in turn.
    fn log_sum_rows(source: &[Self], members: Members<'_>, shift: &[Self], width: usize, tile: &mut Tile<'_, Self>);

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

    /// `tile[r] = grad_y[group] * exp(x[r] - y[group])`.
    fn pull_log_sum(x: &[Self], y: &[Self], grad_y: &[Self], groups: &[u32], width: usize, tile: &mut Tile<'_, Self>);

    /// `rows[k] = grad * (product of x[order[j]] for j < k * product of x[order[j]] for j > k)`, the first product from the
    /// first row on, the second from the last row back, both from 1.
    fn pull_products(level: Level, x: &[Self], order: &[u32], grad: &[Self], rows: &mut [&mut [Self]]);
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Maps for $t {
        fn divide_rows(level: Level, source: &[$t], divisors: &[u32], width: usize, tile: &mut Tile<'_, $t>) {
            at!(level, |_s| divide_rows(source, divisors, width, tile.accumulators()));
        }
        fn exp_rows(source: &[$t], groups: &[u32], shift: &[$t], width: usize, tile: &mut Tile<'_, $t>) {
            each_member(source, groups, shift, width, tile.accumulators(), |x, shift| (x - finite(shift)).exp());
        }
        fn divide_by_totals(level: Level, cells: &mut [$t], groups: &[u32], totals: &[$t], width: usize) {
            at!(level, |_s| divide_by_totals(cells, groups, totals, width));
        }
        fn log_sum_rows(source: &[$t], members: Members<'_>, shift: &[$t], width: usize, tile: &mut Tile<'_, $t>) {
            log_sum_rows(source, members, shift, width, tile.accumulators());
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
        fn pull_log_sum(
            x: &[$t],
            y: &[$t],
            grad_y: &[$t],
            groups: &[u32],
            width: usize,
            tile: &mut Tile<'_, $t>,
        ) {
            let cells = tile.accumulators();
            each_member(x, groups, y, width, cells, |x, y| (x - finite(y)).exp());
            scale_by_group(cells, groups, grad_y, width);
        }
        fn pull_products(level: Level, x: &[$t], order: &[u32], grad: &[$t], rows: &mut [&mut [$t]]) {
            let mut product = vec![1.0; grad.len()];
            at!(level, |_s| pull_products(x, order, grad, rows, &mut product));
        }
    })* };
}
kernels!(f32, f64);

/// What to subtract before the exponential: an infinite or missing maximum gives infinities and NaN by itself.
#[inline(always)]
fn finite<T: Element>(maximum: T) -> T {
    if maximum.is_finite() { maximum } else { T::zero() }
}

#[inline(always)]
fn divide_rows<T: Element>(source: &[T], divisors: &[u32], width: usize, cells: &mut [T]) {
    for ((cells, source), &n) in cells.chunks_exact_mut(width).zip(source.chunks_exact(width)).zip(divisors) {
        if n > 0 {
            let divisor = count(n as usize);
            cells.iter_mut().zip(source).for_each(|(cell, &x)| *cell = x / divisor);
        }
    }
}

/// `cells[r] = f(source[r], of_groups[group])`, element by element.
#[inline(always)]
fn each_member<T: Element>(
    source: &[T],
    groups: &[u32],
    of_groups: &[T],
    width: usize,
    cells: &mut [T],
    f: impl Fn(T, T) -> T,
) {
    for ((cells, source), &group) in cells.chunks_exact_mut(width).zip(source.chunks_exact(width)).zip(groups) {
        if group != ABSENT {
            let of_group = &of_groups[group as usize * width..][..width];
            cells.iter_mut().zip(source).zip(of_group).for_each(|((cell, &x), &y)| *cell = f(x, y));
        }
    }
}

#[inline(always)]
fn divide_by_totals<T: Element>(cells: &mut [T], groups: &[u32], totals: &[T], width: usize) {
    for (cells, &group) in cells.chunks_exact_mut(width).zip(groups).filter(|(_, group)| **group != ABSENT) {
        let totals = &totals[group as usize * width..][..width];
        cells.iter_mut().zip(totals).for_each(|(cell, &total)| *cell = *cell / total);
    }
}

#[inline(always)]
fn scale_by_group<T: Element>(cells: &mut [T], groups: &[u32], factors: &[T], width: usize) {
    for (cells, &group) in cells.chunks_exact_mut(width).zip(groups).filter(|(_, group)| **group != ABSENT) {
        let factors = &factors[group as usize * width..][..width];
        cells.iter_mut().zip(factors).for_each(|(cell, &factor)| *cell = factor * *cell);
    }
}

#[inline(always)]
fn log_sum_rows<T: Element>(source: &[T], members: Members<'_>, shift: &[T], width: usize, cells: &mut [T]) {
    let groups = cells.chunks_exact_mut(width).zip(shift.chunks_exact(width)).zip(members.offsets.windows(2));
    for ((sums, shift), ends) in groups {
        for &row in &members.order[ends[0] as usize..ends[1] as usize] {
            let row = &source[row as usize * width..][..width];
            for ((sum, &x), &shift) in sums.iter_mut().zip(row).zip(shift) {
                *sum = *sum + (x - finite(shift)).exp();
            }
        }
        sums.iter_mut().zip(shift).for_each(|(sum, &shift)| *sum = finite(shift) + sum.ln());
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
    for (((cells, y), grad_y), &group) in rows.filter(|(_, group)| **group != ABSENT) {
        let dots = &dots[group as usize * width..][..width];
        for (((cell, &y), &grad), &dot) in cells.iter_mut().zip(y).zip(grad_y).zip(dots) {
            *cell = y * (grad - dot);
        }
    }
}

#[inline(always)]
fn pull_products<T: Element>(x: &[T], order: &[u32], grad: &[T], rows: &mut [&mut [T]], product: &mut [T]) {
    let width = grad.len();
    let x = |row: u32| &x[row as usize * width..][..width];
    for (&row, cells) in order.iter().zip(rows.iter_mut()) {
        for ((cell, product), &x) in cells.iter_mut().zip(&mut *product).zip(x(row)) {
            *cell = *product;
            *product = *product * x;
        }
    }
    product.fill(T::one());
    for (&row, cells) in order.iter().zip(rows).rev() {
        for (((cell, product), &x), &grad) in cells.iter_mut().zip(&mut *product).zip(x(row)).zip(grad) {
            *cell = grad * (*cell * *product);
            *product = *product * x;
        }
    }
}
