//! Radii and bounds: one for all queries, or one a query.

use super::bound;
use super::metric::Metric;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::layout::check_shape;
use ndarray::{Array1, ArrayBase, ArrayView1, Ix1, ViewRepr};

/// A distance that is the same for all queries, or one a query. Whatever is one converts into it:
///
/// ```
/// use pullback::kdtree::KdTree;
/// use pullback::ndarray::array;
///
/// let tree = KdTree::<f32, 1>::new(array![[0.0], [1.0], [2.0]].view())?;
/// let queries = array![[0.1], [1.1]];
/// assert_eq!(tree.radius_count(queries.view(), 1.0)?, array![2, 2]);
/// assert_eq!(tree.radius_count(queries.view(), &array![0.0, 2.0])?, array![0, 3]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PerQuery<'a, T> {
    /// The same for all.
    One(T),
    /// (M) one a query. (The type of an `ArrayView1<'a, T>`, spelt so that a longer-lived one is one for a shorter life.)
    Each(ArrayBase<ViewRepr<&'a T>, Ix1, T>),
}

impl From<f32> for PerQuery<'_, f32> {
    fn from(value: f32) -> Self {
        Self::One(value)
    }
}

impl From<f64> for PerQuery<'_, f64> {
    fn from(value: f64) -> Self {
        Self::One(value)
    }
}

impl<'a, T> From<ArrayView1<'a, T>> for PerQuery<'a, T> {
    fn from(values: ArrayView1<'a, T>) -> Self {
        Self::Each(values)
    }
}

impl<'a, T> From<&'a Array1<T>> for PerQuery<'a, T> {
    fn from(values: &'a Array1<T>) -> Self {
        Self::Each(values.view())
    }
}

impl<T: Element> PerQuery<'_, T> {
    /// Refuses other than `queries` values, and the first that is negative or not a number.
    pub(super) fn check(&self, argument: &'static str, queries: usize) -> Result<()> {
        let is_bad = |value: T| value.is_nan() || value < T::zero();
        let refused = |position, value: T| {
            let value = value.to_f64().expect("an element is an f64").to_string();
            Err(Error::Distance { argument, position, value })
        };
        match self {
            Self::One(value) if is_bad(*value) => refused(None, *value),
            Self::One(_) => Ok(()),
            Self::Each(values) => {
                check_shape(argument, values.shape(), &[queries])?;
                let first = values.iter().position(|&value| is_bad(value));
                first.map_or(Ok(()), |first| refused(Some(first), values[first]))
            }
        }
    }
}

/// The largest key of each query's neighbours.
pub(super) struct KeyBounds<'a, T> {
    distances: PerQuery<'a, T>,
    /// From a distance to the largest key within it.
    largest: fn(Metric, T) -> T,
    metric: Metric,
    /// The key for all queries.
    one: T,
}

impl<'a, T: Element> KeyBounds<'a, T> {
    /// Keys of distances below these; all keys where there are none.
    pub(super) fn below(metric: Metric, distances: Option<PerQuery<'a, T>>) -> Self {
        match distances {
            Some(distances) => Self::new(metric, distances, bound::below),
            None => Self::at_most(metric, PerQuery::One(T::infinity())),
        }
    }

    /// Keys of distances up to these.
    pub(super) fn at_most(metric: Metric, distances: PerQuery<'a, T>) -> Self {
        Self::new(metric, distances, bound::at_most)
    }

    fn new(metric: Metric, distances: PerQuery<'a, T>, largest: fn(Metric, T) -> T) -> Self {
        let one = if let PerQuery::One(distance) = distances { largest(metric, distance) } else { T::zero() };
        Self { distances, largest, metric, one }
    }

    /// The bounds of the queries with these row numbers.
    pub(super) fn of(&self, rows: &[u32]) -> Vec<T> {
        match self.distances {
            PerQuery::One(_) => vec![self.one; rows.len()],
            PerQuery::Each(distances) => {
                rows.iter().map(|&row| (self.largest)(self.metric, distances[row as usize])).collect()
            }
        }
    }
}
