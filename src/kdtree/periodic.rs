//! Space: open, or a box whose opposite faces are the same.
//!
//! In a periodic box points and queries are first wrapped into it; the difference on an axis is then `a = |q - p|` or,
//! the other way round, `L - a`, whichever is smaller. So each point counts once, by its nearest image. A subtree's gap
//! on an axis comes from the interval that its points lie in: the smaller of the direct gap and of `L` minus the largest
//! `|q - p|`, by the same operations. Those are monotone, rounding included, so no point is nearer than its subtree's
//! bound. An open axis of such a box has `L = +inf`, which is never the smaller way.

use super::arena::{Dims, Node, View};
use super::metric::{Norm, key, magnitudes};
use super::walk::{Halves, Subtree, halves};
use crate::element::Element;
use crate::simd::{Simd, Vector};

/// A periodic box.
pub struct Torus<T> {
    /// The lowest corner.
    pub(super) origin: Vec<T>,
    /// The lengths; +inf on open axes.
    pub(super) lengths: Vec<T>,
}

impl<T: Element> Torus<T> {
    /// Moves a point of finite coordinates into the box, `[origin, origin + length)` on every periodic axis.
    pub(super) fn wrap(&self, point: &mut [T]) {
        for ((x, &origin), &length) in point.iter_mut().zip(&self.origin).zip(&self.lengths) {
            if length.is_finite() {
                let wrapped = *x - length * ((*x - origin) / length).floor();
                // Rounding can leave the box, far from it by a lot.
                let inside = wrapped >= origin && wrapped < origin + length;
                *x = if inside { wrapped } else { origin };
            }
        }
    }
}

/// How positions differ, as a type for kernels.
pub(super) trait Space<T: Element>: Copy {
    /// What a subtree knows of where its points lie.
    type Cell<A: Dims>: Copy;

    /// The cell of the whole tree.
    fn whole<A: Dims>(self, dims: A) -> Self::Cell<A>;

    /// A subtree's two halves with their cells and bounds: the one that the query is nearer to, and the other.
    fn halves<A: Dims, N: Norm>(
        self,
        dims: A,
        norm: N,
        subtree: &Subtree<T, Self::Cell<A>>,
        node: Node<T>,
        query: &[T],
    ) -> Halves<T, Self::Cell<A>>;

    /// The differences from a query to points on an axis, a lane; their signs mean nothing.
    fn differences<S: Simd>(self, s: S, axis: usize, query: S::V<T>, points: S::V<T>) -> S::V<T>;
}

/// Space without a box. A cell is the distance from the query to it on every axis: only the half beyond a split is
/// further away than their parent.
#[derive(Clone, Copy)]
pub(super) struct Open;

impl<T: Element> Space<T> for Open {
    type Cell<A: Dims> = A::Axes<T>;

    #[inline(always)]
    fn whole<A: Dims>(self, dims: A) -> A::Axes<T> {
        dims.all(T::zero())
    }

    #[inline(always)]
    fn halves<A: Dims, N: Norm>(
        self,
        dims: A,
        norm: N,
        subtree: &Subtree<T, A::Axes<T>>,
        node: Node<T>,
        query: &[T],
    ) -> Halves<T, A::Axes<T>> {
        let axis = node.axis;
        let gap = query[axis] - node.split;
        let (left, right) = halves(subtree);
        let right_is_near = gap >= T::zero();
        let (near, mut far) = (left.or(right_is_near, right), right.or(right_is_near, left));
        far.cell = dims.raised(subtree.cell, axis, gap.abs());
        far.bound = key(norm, &far.cell.as_ref()[..dims.count()]);
        (near, far)
    }

    #[inline(always)]
    fn differences<S: Simd>(self, _: S, _: usize, query: S::V<T>, points: S::V<T>) -> S::V<T> {
        query - points
    }
}

/// Space within a periodic box.
#[derive(Clone, Copy)]
pub(super) struct Within<'a, T>(pub(super) &'a Torus<T>);

/// The interval that a subtree's points lie in and its distance from the query, an axis.
#[derive(Clone, Copy)]
pub(super) struct Interval<T> {
    low: T,
    high: T,
    gap: T,
}

impl<T: Element> Within<'_, T> {
    #[inline(always)]
    fn gap(self, axis: usize, x: T, low: T, high: T) -> T {
        let direct = greater(greater(low - x, x - high), T::zero());
        let wrapped = self.0.lengths[axis] - greater(x - low, high - x);
        if wrapped < direct { greater(wrapped, T::zero()) } else { direct }
    }
}

impl<T: Element> Space<T> for Within<'_, T> {
    type Cell<A: Dims> = A::Axes<Interval<T>>;

    #[inline(always)]
    fn whole<A: Dims>(self, dims: A) -> A::Axes<Interval<T>> {
        let mut cell = dims.all(Interval { low: T::neg_infinity(), high: T::infinity(), gap: T::zero() });
        for (axis, interval) in cell.as_mut()[..dims.count()].iter_mut().enumerate() {
            let (origin, length) = (self.0.origin[axis], self.0.lengths[axis]);
            if length < T::infinity() {
                (interval.low, interval.high) = (origin, origin + length);
            }
        }
        cell
    }

    #[inline(always)]
    fn halves<A: Dims, N: Norm>(
        self,
        dims: A,
        _: N,
        subtree: &Subtree<T, A::Axes<Interval<T>>>,
        node: Node<T>,
        query: &[T],
    ) -> Halves<T, A::Axes<Interval<T>>> {
        let axis = node.axis;
        let (mut left, mut right) = halves(subtree);
        left.cell.as_mut()[axis].high = node.split;
        right.cell.as_mut()[axis].low = node.split;
        for half in [&mut left, &mut right] {
            let Interval { low, high, .. } = half.cell.as_ref()[axis];
            half.cell.as_mut()[axis].gap = self.gap(axis, query[axis], low, high);
            let gaps = &half.cell.as_ref()[..dims.count()];
            let mut bound = N::term(gaps[0].gap);
            for interval in &gaps[1..] {
                bound = N::join(bound, N::term(interval.gap));
            }
            half.bound = bound;
        }
        // Both are equally near where only their points can tell.
        let beyond = if left.bound == right.bound { query[axis] < node.split } else { left.bound < right.bound };
        if beyond { (left, right) } else { (right, left) }
    }

    #[inline(always)]
    fn differences<S: Simd>(self, s: S, axis: usize, query: S::V<T>, points: S::V<T>) -> S::V<T> {
        let direct = magnitudes(s, query - points);
        (s.splat(self.0.lengths[axis]) - direct).min(direct)
    }
}

#[inline(always)]
fn greater<T: Element>(a: T, b: T) -> T {
    if a > b { a } else { b }
}

impl<T: Element> View<'_, T> {
    /// Moves a point or a query to where the tree knows it.
    pub(super) fn wrap(&self, point: &mut [T]) {
        if let Some(torus) = self.torus {
            torus.wrap(point);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrapped_points_lie_in_the_box() {
        let boxes = [(0.0, 1.0), (-0.3, 0.7), (1e8, 3.0), (3e38, 3e38), (-3e38, 1e-30), (5.0, 1e-45), (1e8, 1e-3)];
        for (origin, length) in boxes {
            let torus = Torus { origin: vec![origin, 7.0], lengths: vec![length, f32::INFINITY] };
            for x in [0.0, -0.0, 0.5, 1.0, -1.0, -1e-9, 0.7, 0.4, -0.3, 1e30, -1e30, 3e38, -3e38, f32::MAX, 1e8 + 8.0] {
                let mut point = [x, x];
                torus.wrap(&mut point);
                assert_eq!(point[1], x, "an open axis");
                let inside = point[0] >= origin && point[0] < origin + length;
                assert!(inside || point[0] == origin, "{x} is moved to {} in {length} from {origin}", point[0]);
            }
        }
        let torus = Torus { origin: vec![0.0], lengths: vec![1.0] };
        for (x, expected) in [(1.0, 0.0), (1.25, 0.25), (-0.25, 0.75), (-1e-30, 0.0)] {
            let mut point = [x];
            torus.wrap(&mut point);
            assert_eq!(point, [expected], "{x}");
        }
    }

    /// The gap of an interval is at most the difference of any point in it, and reached at one of its ends where the
    /// query is outside.
    #[test]
    fn gaps_are_lower_bounds() {
        for length in [1.0f32, 0.7, f32::INFINITY] {
            let torus = Torus { origin: vec![-0.2], lengths: vec![length] };
            let space = Within(&torus);
            let at = |i: usize| -0.2 + 0.7 * (i as f32 / 24.0) * 0.999;
            let difference = |q: f32, p: f32| {
                let direct = (q - p).abs();
                if length - direct < direct { length - direct } else { direct }
            };
            for (low, high) in (0..24).flat_map(|low| (low..24).map(move |high| (low, high))) {
                for q in 0..24 {
                    let gap = space.gap(0, at(q), at(low), at(high));
                    let nearest = (low..=high)
                        .map(|p| difference(at(q), at(p)))
                        .fold(f32::INFINITY, |a, b| if b < a { b } else { a });
                    assert!(gap <= nearest, "{gap} {nearest}");
                    if q < low || q > high {
                        assert_eq!(gap, nearest);
                    }
                }
            }
        }
    }
}
