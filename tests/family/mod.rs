//! What the tests of the reductions share: data, levels, choices, comparison of bits.

#![allow(dead_code, reason = "every test file is a crate of its own and uses its part of this")]

use pullback::gather::{OutOfRange, Reduction, Tuning};
use pullback::ndarray::{Array, ArrayRef, Dimension, IntoDimension};
use pullback::{Level, Real};

/// The policies, with the indices that go with each: all valid, or some outside.
pub const POLICIES: [OutOfRange; 3] = [OutOfRange::Error, OutOfRange::Skip { fill: 7.0 }, OutOfRange::Clamp];

pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    /// A value whose sums depend on their order.
    pub fn value<T: Real>(&mut self) -> T {
        let scale = [1e-3, 1.0, 30.0, 1e4][self.below(4)];
        T::from_f64((self.below(2001) as f64 / 1000.0 - 1.0) * scale).unwrap()
    }

    /// One of few values, so that there are ties and zeros of both signs, and now and then a NaN.
    pub fn tied<T: Real>(&mut self) -> T {
        T::from_f64([0.0, -0.0, 1.0, -1.0, 2.0, f64::NAN, 1.0, 2.0][self.below(8)]).unwrap()
    }

    /// A row number, or one outside where the policy takes it.
    pub fn index(&mut self, rows: usize, policy: OutOfRange) -> i64 {
        if policy != OutOfRange::Error && (rows == 0 || self.below(4) == 0) {
            return [-1, rows as i64, i64::MIN, i64::MAX][self.below(4)];
        }
        self.below(rows) as i64
    }

    pub fn array<T: Real, S: IntoDimension>(&mut self, shape: S) -> Array<T, S::Dim> {
        Array::from_shape_simple_fn(shape.into_dimension(), || self.value())
    }
}

/// The row that an index means.
pub fn row(index: i64, rows: usize, policy: OutOfRange) -> Option<usize> {
    match policy {
        _ if (0..rows as i64).contains(&index) => Some(index as usize),
        OutOfRange::Clamp => Some(if index < 0 { 0 } else { rows - 1 }),
        _ => None,
    }
}

pub fn levels() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_available())
}

/// Every choice that is otherwise made by size.
pub fn tunings() -> Vec<Tuning> {
    let mut tunings = vec![Tuning::default()];
    for reduction in [Reduction::Slab, Reduction::Inverse] {
        for parallel in [false, true] {
            let (reduction, parallel) = (Some(reduction), Some(parallel));
            tunings.push(Tuning { reduction, parallel, tile: Some(2), hub: Some(3), ..Tuning::default() });
            tunings.push(Tuning { reduction, parallel, stream: Some(true), prefetch: Some(true), ..Tuning::default() });
        }
    }
    tunings
}

/// The same bits, but any NaN for a NaN.
#[track_caller]
pub fn assert_bits<T: Real, D: Dimension>(what: &str, found: &ArrayRef<T, D>, expected: &ArrayRef<T, D>) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    for ((at, found), expected) in found.indexed_iter().zip(expected) {
        let same = found.integer_decode() == expected.integer_decode() && found.is_nan() == expected.is_nan();
        assert!(same || found.is_nan() && expected.is_nan(), "{what}[{at:?}]: {found:?}, not {expected:?}");
    }
}

/// An array of the same values in another layout: reversed axes, with gaps.
pub fn strided<T: Real, D: Dimension>(array: &ArrayRef<T, D>) -> Array<T, D> {
    let reversed = array.t();
    let mut copy = Array::from_shape_simple_fn(reversed.raw_dim(), T::zero);
    copy.assign(&reversed);
    copy.reversed_axes()
}

/// Runs `f` in a pool of `n` threads.
pub fn with_threads<R: Send>(n: usize, f: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap().install(f)
}
