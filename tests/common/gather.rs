//! The row gather as plain loops, written from its contract, and operators to compare with them.
//!
//! Arrays of the loops have a batch axis: the features (B, N, C), the indices (B, ...), the gathered rows (B, ..., C).

use super::cells::Cell;
use super::random::Random;
use super::values::Value;
use ndarray::{Array, Array3, ArrayD, ArrayRef, Dimension, IntoDimension};
use pullback::Level;
use pullback::gather::{Gather, Index, OutOfRange, Reduction, Tuning};
use std::fmt::Debug;

/// An index type whose every value has an integer to stand for it.
pub trait Id: Index + Debug + TryFrom<i128> + TryInto<i128, Error: Debug> {}
impl<I: Index + Debug + TryFrom<i128> + TryInto<i128, Error: Debug>> Id for I {}

/// Random indices of `shape` in `0..rows`.
pub fn random_ids<S: IntoDimension>(shape: S, rows: usize) -> Array<usize, S::Dim> {
    let mut random = Random::new(rows as u64);
    Array::from_shape_simple_fn(shape.into_dimension(), || random.below(rows))
}

/// [`Gather::new`] at a level, of indices that the policy accepts.
pub fn operator<I: Id, D: Dimension>(
    level: Level,
    indices: &ArrayRef<I, D>,
    rows: usize,
    policy: OutOfRange,
) -> Gather<D> {
    Gather::new(indices.view(), rows, policy).and_then(|gather| gather.with_level(level)).expect("the indices are good")
}

pub const REDUCTIONS: [Reduction; 2] = [Reduction::Slab, Reduction::Inverse];

/// The adjoint reduces as told, everything else is chosen by size.
pub fn by(reduction: Reduction) -> Tuning {
    Tuning { reduction: Some(reduction), ..Tuning::default() }
}

/// What an index stands for.
enum Source {
    Row(usize),
    Padding(f64),
    Nothing,
}

fn source<I: Id>(index: I, rows: usize, policy: OutOfRange) -> Source {
    let index: i128 = index.try_into().expect("indices have at most 64 bits");
    let last = rows as i128 - 1;
    match policy {
        _ if (0..=last).contains(&index) => Source::Row(index as usize),
        OutOfRange::Skip { fill } => Source::Padding(fill),
        OutOfRange::Clamp if rows > 0 => Source::Row(index.clamp(0, last) as usize),
        _ => Source::Nothing,
    }
}

/// The row that an accepted index names, none for padding.
pub fn row<I: Id>(index: I, rows: usize, policy: OutOfRange) -> Option<usize> {
    match source(index, rows, policy) {
        Source::Row(row) => Some(row),
        Source::Padding(_) => None,
        Source::Nothing => panic!("the operator should have been refused"),
    }
}

/// A random index: one in `outside` (none where that is 0) lies outside `0..rows`, half are equal where `hub` says so.
pub fn draw_id<I: Id>(random: &mut Random, rows: usize, outside: usize, hub: bool) -> I {
    if rows == 0 || outside > 0 && random.below(outside) == 0 {
        let n = rows as i128;
        // Values that would be valid after a wrong conversion, and extremes of every type.
        let outside = [-1, n, n + 1, -n, -(1 << 31), -(1 << 32), (1 << 31) - 1, 1 << 31, (1 << 32) - 1];
        let wider = [1 << 32, (1 << 32) + n - 1, -(1 << 63), (1 << 63) - 1, 1 << 63, (1 << 64) - 1];
        let fits = |&index: &i128| I::try_from(index).ok();
        return random.one_of(&outside.iter().chain(&wider).filter_map(fits).collect::<Vec<I>>());
    }
    let row = if hub && random.below(2) == 0 { rows / 2 } else { random.below(rows) };
    I::try_from(row as i128).ok().expect("rows are few")
}

/// The first index, in row-major order, that the policy does not accept.
pub fn first_bad<I: Id, D: Dimension>(
    indices: &ArrayRef<I, D>,
    rows: usize,
    policy: OutOfRange,
) -> Option<(Vec<usize>, i128)> {
    let indices = indices.view().into_dyn();
    let bad = |index| matches!(source(index, rows, policy), Source::Nothing);
    let (position, &index) = indices.indexed_iter().find(|&(_, &index)| bad(index))?;
    Some((position.slice().to_vec(), index.try_into().expect("indices have at most 64 bits")))
}

/// `y[b, .., :] = x[b, indices[b, ..], :]`
pub fn forward<T: Value, I: Id, X: Dimension, D: Dimension>(
    x: &ArrayRef<T, X>,
    indices: &ArrayRef<I, D>,
    policy: OutOfRange,
) -> ArrayD<Cell<T>> {
    let (x, indices) = (x.view().into_dyn(), indices.view().into_dyn());
    let (rows, channels) = (x.shape()[1], x.shape()[2]);
    ArrayD::from_shape_fn([indices.shape(), &[channels]].concat(), |at| {
        let (&channel, position) = at.slice().split_last().expect("the channel");
        match source(indices[position], rows, policy) {
            Source::Row(row) => Cell::Copied(x[[position[0], row, channel]]),
            Source::Padding(fill) => T::rounded(fill),
            Source::Nothing => panic!("the operator should have been refused"),
        }
    })
}

/// `gx[b, indices[b, ..], :] += gy[b, .., :]` in ascending order of positions, `gx` being `start` at first.
pub fn adjoint_add<T: Value, I: Id, Y: Dimension, D: Dimension, X: Dimension>(
    grad_y: &ArrayRef<T, Y>,
    indices: &ArrayRef<I, D>,
    policy: OutOfRange,
    start: &ArrayRef<T, X>,
) -> ArrayD<Cell<T>> {
    let (grad_y, indices) = (grad_y.view().into_dyn(), indices.view().into_dyn());
    let mut sums = start.mapv(Cell::Copied).into_dyn();
    for (position, &index) in indices.indexed_iter() {
        if let Source::Row(row) = source(index, start.shape()[1], policy) {
            for channel in 0..start.shape()[2] {
                let term = grad_y[&[position.slice(), &[channel]].concat()[..]];
                let sum = &mut sums[[position[0], row, channel]];
                *sum = Cell::Computed(sum.value() + term);
            }
        }
    }
    sums
}

/// [`adjoint_add`] to zeros (B, `rows`, C).
pub fn adjoint<T: Value, I: Id, Y: Dimension, D: Dimension>(
    grad_y: &ArrayRef<T, Y>,
    indices: &ArrayRef<I, D>,
    policy: OutOfRange,
    rows: usize,
) -> ArrayD<Cell<T>> {
    let channels = grad_y.shape()[grad_y.ndim() - 1];
    adjoint_add(grad_y, indices, policy, &Array3::zeros([indices.shape()[0], rows, channels]))
}
