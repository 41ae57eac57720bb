//! The inner loops that vector instructions do not help: exponentials by the standard library, and scattered elements.

use super::choices::{Candidates, Chosen};
use super::maps::Members;
use super::plan::ABSENT;
use crate::buffer::Tile;
use crate::element::Element;

/// The loops of this file, compiled here once for `f32` and `f64`. Rows are of `width`; a group [`ABSENT`] is padding, whose
/// rows are 0.
pub trait Scalars: Element {
    /// `sums[order[argument]] += shares`, element by element, for every group in turn.
    fn scatter_chosen(from: Chosen<'_, Self>, rows: Candidates<'_>, width: usize, sums: &mut [Self]);

    /// `tile[r] = exp(source[r] - shift[group])`.
    fn exp_rows(source: &[Self], groups: &[u32], shift: &[Self], width: usize, tile: &mut Tile<'_, Self>);

    /// `tile[g] = shift[g] + ln(sum of exp(source[row] - shift[g]))` over the members in turn.
    fn log_sum_rows(source: &[Self], members: Members<'_>, shift: &[Self], width: usize, tile: &mut Tile<'_, Self>);

    /// `tile[r] = grad_y[group] * exp(x[r] - y[group])`.
    fn pull_log_sum(x: &[Self], y: &[Self], grad_y: &[Self], groups: &[u32], width: usize, tile: &mut Tile<'_, Self>);
}

macro_rules! scalars {
    ($($t:ty),*) => { $(impl Scalars for $t {
        fn scatter_chosen(from: Chosen<'_, $t>, rows: Candidates<'_>, width: usize, sums: &mut [$t]) {
            for (group, (shares, arguments)) in
                from.shares.chunks_exact(width).zip(from.arguments.chunks_exact(width)).enumerate()
            {
                let order = &rows.order[rows.offsets[group] as usize..rows.offsets[group + 1] as usize];
                for (channel, (share, &argument)) in shares.iter().zip(arguments).enumerate() {
                    if let Some(&row) = order.get(argument as usize)
                        && row != ABSENT
                    {
                        sums[row as usize * width + channel] += share;
                    }
                }
            }
        }
        fn exp_rows(source: &[$t], groups: &[u32], shift: &[$t], width: usize, tile: &mut Tile<'_, $t>) {
            each_member(source, groups, shift, width, tile.accumulators(), |x, shift| (x - finite(shift)).exp());
        }
        fn log_sum_rows(source: &[$t], members: Members<'_>, shift: &[$t], width: usize, tile: &mut Tile<'_, $t>) {
            log_sum_rows(source, members, shift, width, tile.accumulators());
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
            each_member(x, groups, y, width, cells, |x, y| (x - subtracted(y)).exp());
            scale_by_group(cells, groups, grad_y, width);
        }
    })* };
}
scalars!(f32, f64);

/// What to subtract from the elements of a segment whose log-sum-exp is `y`: where all are -infinity, so is it, and each has
/// the weight 0.
fn subtracted<T: Element>(y: T) -> T {
    if y == T::neg_infinity() { T::zero() } else { y }
}

/// What to subtract before the exponential: an infinite or missing maximum gives infinities and NaN by itself.
fn finite<T: Element>(maximum: T) -> T {
    if maximum.is_finite() { maximum } else { T::zero() }
}

/// `cells[r] = f(source[r], of_groups[group])`, element by element.
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

fn scale_by_group<T: Element>(cells: &mut [T], groups: &[u32], factors: &[T], width: usize) {
    for (cells, &group) in cells.chunks_exact_mut(width).zip(groups).filter(|(_, group)| **group != ABSENT) {
        let factors = &factors[group as usize * width..][..width];
        cells.iter_mut().zip(factors).for_each(|(cell, &factor)| *cell = factor * *cell);
    }
}

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
