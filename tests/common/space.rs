//! How far apart two points are: metrics and periodic boxes, written from the contract.

use super::random::Random;
use super::values::Value;
use ndarray::{Array2, ArrayView1, ArrayView2};
use pullback::kdtree::{Builder, Metric};
use std::iter::zip;

pub const METRICS: [Metric; 3] = [Metric::L2, Metric::L1, Metric::Linf];

/// A box, opposite faces of which are one face on its periodic axes.
#[derive(Clone, Debug)]
pub struct Space<T> {
    /// Lengths of the axes, none of those that are open.
    pub lengths: Vec<Option<T>>,
    /// The lowest corner. On open axes it has no meaning.
    pub origin: Vec<T>,
}

/// The lesser as kernels have it: `b` where neither is less.
fn min<T: Value>(a: T, b: T) -> T {
    if a < b { a } else { b }
}

impl<T: Value> Space<T> {
    pub fn open(dims: usize) -> Self {
        Self { lengths: vec![None; dims], origin: vec![T::zero(); dims] }
    }

    pub fn periodic(lengths: &[Option<T>], origin: &[T]) -> Self {
        Self { lengths: lengths.to_vec(), origin: origin.to_vec() }
    }

    /// The image of a coordinate in the box.
    pub fn wrap(&self, axis: usize, x: T) -> T {
        let (Some(length), origin) = (self.lengths[axis], self.origin[axis]) else { return x };
        let image = x - length * ((x - origin) / length).floor();
        if image >= origin && image < origin + length { image } else { origin }
    }

    pub fn wrapped(&self, rows: ArrayView2<'_, T>) -> Array2<T> {
        Array2::from_shape_fn(rows.dim(), |(row, axis)| self.wrap(axis, rows[[row, axis]]))
    }

    /// The difference of two wrapped coordinates, to the nearest image.
    fn offset(&self, axis: usize, p: T, q: T) -> T {
        let direct = (q - p).abs();
        self.lengths[axis].map_or(direct, |length| min(length - direct, direct))
    }

    /// The order of neighbours of a wrapped query: every operation is rounded, axes in their order.
    pub fn key(&self, metric: Metric, p: &[T], q: &[T]) -> T {
        let offsets = zip(p, q).enumerate().map(|(axis, (&p, &q))| self.offset(axis, p, q));
        match metric {
            Metric::L2 => offsets.fold(T::zero(), |sum, d| sum + d * d),
            Metric::L1 => offsets.fold(T::zero(), |sum, d| sum + d),
            Metric::Linf => offsets.fold(T::zero(), |most, d| if d > most { d } else { most }),
        }
    }

    /// A builder of trees in this space, which leaves out what is a default.
    pub fn builder(&self) -> Builder<T> {
        let mut builder = Builder::default();
        if self.lengths.iter().any(Option::is_some) {
            builder = builder.periodic(&self.lengths);
            if self.origin.iter().any(|&x| x != T::zero()) {
                builder = builder.origin(&self.origin);
            }
        }
        builder
    }
}

/// The distance that a key stands for.
pub fn root<T: Value>(metric: Metric, key: T) -> T {
    if metric == Metric::L2 { key.sqrt() } else { key }
}

/// What is reported for a key.
pub fn reported<T: Value>(metric: Metric, squared: bool, key: T) -> T {
    match (metric, squared) {
        (_, false) => root(metric, key),
        (Metric::L2, true) => key,
        (_, true) => key * key,
    }
}

/// Which axes are periodic.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Axes {
    None,
    Some,
    All,
}

impl Axes {
    /// A box for some points: around all of them, around a part, much smaller, much larger, far away, or one that a
    /// coordinate is a corner of.
    pub fn space<T: Value>(self, points: &Array2<T>, random: &mut Random) -> Space<T> {
        let mut space = Space::open(points.ncols());
        for (axis, column) in points.columns().into_iter().enumerate() {
            let periodic = match self {
                Self::None => false,
                Self::Some => random.below(2) == 1,
                Self::All => true,
            };
            if periodic {
                space.lengths[axis] = Some(length(column, random));
                space.origin[axis] = origin(column, random);
            }
        }
        space
    }
}

fn extent<T: Value>(column: ArrayView1<'_, T>) -> T {
    let least = column.iter().fold(T::infinity(), |a, &b| a.min(b));
    let most = column.iter().fold(T::neg_infinity(), |a, &b| a.max(b));
    most - least
}

fn length<T: Value>(column: ArrayView1<'_, T>, random: &mut Random) -> T {
    let number = |x: f64| T::from_f64(x).expect("rounded");
    // Five times as often as lengths that have nothing to do with the points.
    let times = [1.0, 1.0, 1.1, 2.0, 0.5, 0.3, 0.3, 1e-3, 1e-6, 1e3];
    let scaled = number(random.one_of(&times)) * extent(column);
    let fixed = [1.0, 4.0, 3.0, 0.1, 1e-3, 1e30].map(number);
    let extreme = [T::max_value(), T::min_positive_value(), T::subnormal()];
    let length = match random.below(12) {
        0..9 => scaled,
        9..11 => random.one_of(&fixed),
        _ => random.one_of(&extreme),
    };
    if length.is_finite() && length > T::zero() { length } else { random.one_of(&fixed) }
}

fn origin<T: Value>(column: ArrayView1<'_, T>, random: &mut Random) -> T {
    let number = |x: f64| T::from_f64(x).expect("rounded");
    let far = [T::min_value(), T::max_value(), -T::subnormal()];
    let origin = match random.below(12) {
        0..3 => T::zero(),
        3..5 => number(random.one_of(&[-1.0, 0.1, -0.0, 1e4])),
        5 => random.one_of(&far),
        6..9 if !column.is_empty() => column[random.below(column.len())],
        _ => column.iter().fold(T::infinity(), |a, &b| a.min(b)),
    };
    if origin.is_finite() { origin } else { T::zero() }
}

impl<T: Value> Space<T> {
    /// Puts some coordinates on faces of the box, an ulp beside them and many boxes away.
    pub fn scatter(&self, rows: &mut Array2<T>, random: &mut Random) {
        let number = |x: f64| T::from_f64(x).expect("rounded");
        for ((_, axis), x) in rows.indexed_iter_mut() {
            let (Some(length), 0) = (self.lengths[axis], random.below(4)) else { continue };
            let boxes = number(random.one_of(&[-1e5, -2.0, -1.0, 0.0, 1.0, 1.0, 2.0, 3.0, 1e5]));
            let face = self.origin[axis] + boxes * length;
            let moved = match random.below(6) {
                0 => face.up(),
                1 => face.down(),
                2 => face + length * number(0.5),
                3 => *x + boxes * length,
                _ => face,
            };
            if moved.is_finite() {
                *x = moved;
            }
        }
    }
}
