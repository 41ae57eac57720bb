//! Gradients of distances as plain loops, written from the contract.

use super::cells::Cell;
use super::groups::{add, copied};
use super::space::{Space, root};
use super::values::Value;
use ndarray::{Array2, ArrayD, ArrayView2};
use pullback::kdtree::Metric;

/// Points whose distances are differentiated.
pub struct DistanceGradients<T> {
    pub space: Space<T>,
    pub metric: Metric,
    pub squared: bool,
    /// Wrapped into the space, once.
    points: Array2<T>,
}

/// -1, 0 or 1.
pub fn sign<T: Value>(x: T) -> T {
    match x {
        _ if x > T::zero() => T::one(),
        _ if x < T::zero() => -T::one(),
        _ => T::zero(),
    }
}

impl<T: Value> Space<T> {
    /// The difference of two wrapped coordinates to the image that is taken: the other only where it is nearer.
    pub fn difference(&self, axis: usize, p: T, q: T) -> T {
        let direct = q - p;
        match self.lengths[axis] {
            Some(length) if direct.abs() > length - direct.abs() => direct - sign(direct) * length,
            _ => direct,
        }
    }

    pub fn differences(&self, p: &[T], q: &[T]) -> Vec<T> {
        (0..p.len()).map(|axis| self.difference(axis, p[axis], q[axis])).collect()
    }
}

/// The lowest axis with the largest difference.
pub fn widest<T: Value>(differences: &[T]) -> usize {
    let larger = |best: usize, axis: usize| if differences[axis].abs() > differences[best].abs() { axis } else { best };
    (1..differences.len()).fold(0, larger)
}

impl<T: Value> DistanceGradients<T> {
    pub fn new(space: Space<T>, metric: Metric, squared: bool, points: ArrayView2<'_, T>) -> Self {
        let points = space.wrapped(points);
        Self { space, metric, squared, points }
    }

    /// What a query gets on each axis from the gradient of its distance to a point, which gets the opposite. Nothing where
    /// the distance is 0 or not finite.
    fn pair(&self, q: &[T], p: &[T], grad: T) -> Vec<Option<T>> {
        let two = T::one() + T::one();
        let distance = root(self.metric, self.space.key(self.metric, p, q));
        if distance == T::zero() || !distance.is_finite() {
            return vec![None; p.len()];
        }
        let differences = self.space.differences(p, q);
        let widest = widest(&differences);
        let of_axis = |(axis, &difference): (usize, &T)| match (self.metric, self.squared) {
            (Metric::L2, false) => Some(grad * difference / distance),
            (Metric::L2, true) => Some(two * grad * difference),
            (Metric::Linf, _) if axis != widest => None,
            (_, false) => Some(grad * sign(difference)),
            (_, true) => Some(two * grad * distance * sign(difference)),
        };
        differences.iter().enumerate().map(of_axis).collect()
    }

    fn point(&self, row: u32) -> Vec<T> {
        self.points.row(row as usize).to_vec()
    }

    /// The gradients to queries and to points, added to what is there, pairs in ascending order.
    pub fn knn(
        &self,
        queries: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
        grad_distances: ArrayView2<'_, T>,
        start: [&ArrayD<T>; 2],
    ) -> [ArrayD<Cell<T>>; 2] {
        let [mut of_queries, mut of_points] = start.map(copied);
        let finite = |row: usize| queries.row(row).iter().all(|x| x.is_finite());
        let wrapped = self.space.wrapped(queries);
        for ((row, at), &index) in indices.indexed_iter() {
            if index as usize == self.points.nrows() || !finite(row) {
                continue;
            }
            let pair = self.pair(&wrapped.row(row).to_vec(), &self.point(index), grad_distances[[row, at]]);
            for (axis, term) in pair.into_iter().enumerate() {
                if let Some(term) = term {
                    add(&mut of_queries[[row, axis]], term);
                    add(&mut of_points[[index as usize, axis]], -term);
                }
            }
        }
        [of_queries, of_points]
    }

    /// The gradient to points that are queries too, added to what is there: of each as a query first, then as a neighbour.
    pub fn knn_self(
        &self,
        indices: ArrayView2<'_, u32>,
        grad_distances: ArrayView2<'_, T>,
        start: &ArrayD<T>,
    ) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        for as_query in [true, false] {
            for ((row, at), &index) in indices.indexed_iter() {
                if index as usize == self.points.nrows() {
                    continue;
                }
                let pair = self.pair(&self.point(row as u32), &self.point(index), grad_distances[[row, at]]);
                for (axis, term) in pair.into_iter().enumerate() {
                    match (term, as_query) {
                        (Some(term), true) => add(&mut sums[[row, axis]], term),
                        (Some(term), false) => add(&mut sums[[index as usize, axis]], -term),
                        (None, _) => {}
                    }
                }
            }
        }
        sums
    }
}
