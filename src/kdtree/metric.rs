//! Metrics: how the differences between two points become the key by which neighbours are ordered.
//!
//! A key is a fold over the axes, in order, of operations that are each rounded and each monotone in the size of the
//! difference. So the same fold of lower bounds of the differences is a lower bound of the key, rounding included: that
//! is what a search leaves subtrees out by.

use super::arena::Dims;
use crate::element::Element;
use crate::simd::{Simd, Vector};

/// How the differences between a query and a point become a distance.
///
/// Neighbours are ordered by a key, which is what is computed before any root.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metric {
    /// Euclidean: the key is the squared distance `(dx*dx + dy*dy) + dz*dz`, every operation rounded, axes in order.
    #[default]
    L2,
    /// The sum `(|dx| + |dy|) + |dz|`, axes in order, is key and distance.
    L1,
    /// The maximum of `|dx|`, `|dy|`, `|dz|` is key and distance.
    Linf,
}

impl Metric {
    /// The distance that belongs to a key.
    #[inline]
    pub(super) fn root<T: Element>(self, key: T) -> T {
        match self {
            Self::L2 => key.sqrt(),
            Self::L1 | Self::Linf => key,
        }
    }

    /// What is reported for a key: the distance, or its square.
    #[inline]
    pub(super) fn reported<T: Element>(self, key: T, squared: bool) -> T {
        match (self, squared) {
            (Self::L2, true) => key,
            (_, true) => key * key,
            (_, false) => self.root(key),
        }
    }

    /// [`Metric::reported`] of many keys, in place.
    pub(super) fn report<T: Element>(self, keys: &mut [T], squared: bool) {
        if squared != (self == Self::L2) {
            keys.iter_mut().for_each(|key| *key = self.reported(*key, squared));
        }
    }
}

/// A metric as a type, for kernels.
pub(super) trait Norm: Copy {
    /// What one axis contributes.
    fn term<T: Element>(difference: T) -> T;
    fn join<T: Element>(sum: T, term: T) -> T;
    /// [`Norm::term`] a lane.
    fn terms<T: Element, S: Simd>(s: S, differences: S::V<T>) -> S::V<T>;
    /// [`Norm::join`] a lane.
    fn joins<T: Element, V: Vector<T>>(sums: V, terms: V) -> V;
}

/// The key of a difference vector.
#[inline(always)]
pub(super) fn key<T: Element, N: Norm>(_: N, differences: &[T]) -> T {
    let mut sum = N::term(differences[0]);
    for &difference in &differences[1..] {
        sum = N::join(sum, N::term(difference));
    }
    sum
}

/// [`key`] a lane.
#[inline(always)]
pub(super) fn keys<T: Element, S: Simd, N: Norm>(
    s: S,
    _: N,
    dims: impl Dims,
    differences: impl Fn(usize) -> S::V<T>,
) -> S::V<T> {
    let mut sums = N::terms(s, differences(0));
    for axis in 1..dims.count() {
        sums = N::joins(sums, N::terms(s, differences(axis)));
    }
    sums
}

/// `|x|` a lane; of either zero +0.
#[inline(always)]
pub(super) fn magnitudes<T: Element, S: Simd>(s: S, x: S::V<T>) -> S::V<T> {
    x.max(s.splat(T::zero()) - x)
}

#[derive(Clone, Copy)]
pub(super) struct L2;

impl Norm for L2 {
    #[inline(always)]
    fn term<T: Element>(difference: T) -> T {
        difference * difference
    }
    #[inline(always)]
    fn join<T: Element>(sum: T, term: T) -> T {
        sum + term
    }
    #[inline(always)]
    fn terms<T: Element, S: Simd>(_: S, differences: S::V<T>) -> S::V<T> {
        differences * differences
    }
    #[inline(always)]
    fn joins<T: Element, V: Vector<T>>(sums: V, terms: V) -> V {
        sums + terms
    }
}

#[derive(Clone, Copy)]
pub(super) struct L1;

impl Norm for L1 {
    #[inline(always)]
    fn term<T: Element>(difference: T) -> T {
        difference.abs()
    }
    #[inline(always)]
    fn join<T: Element>(sum: T, term: T) -> T {
        sum + term
    }
    #[inline(always)]
    fn terms<T: Element, S: Simd>(s: S, differences: S::V<T>) -> S::V<T> {
        magnitudes(s, differences)
    }
    #[inline(always)]
    fn joins<T: Element, V: Vector<T>>(sums: V, terms: V) -> V {
        sums + terms
    }
}

#[derive(Clone, Copy)]
pub(super) struct Linf;

impl Norm for Linf {
    #[inline(always)]
    fn term<T: Element>(difference: T) -> T {
        difference.abs()
    }
    #[inline(always)]
    fn join<T: Element>(sum: T, term: T) -> T {
        if sum > term { sum } else { term }
    }
    #[inline(always)]
    fn terms<T: Element, S: Simd>(s: S, differences: S::V<T>) -> S::V<T> {
        magnitudes(s, differences)
    }
    #[inline(always)]
    fn joins<T: Element, V: Vector<T>>(sums: V, terms: V) -> V {
        sums.max(terms)
    }
}
