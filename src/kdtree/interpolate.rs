//! Inverse distance weighting: what an interpolation is told.

use super::interpolation::{InterpolateGradients, Interpolation};
use super::metric::Metric;
use super::per_query::PerQuery;
use super::search::Search;
use super::tree::KdTreeDyn;
use super::weights::Weighing;
use crate::Real;
use crate::error::{Error, Result};
use ndarray::{Array2, ArrayView2};

/// Interpolation of values at the points of a tree to queries anywhere, from the `k` nearest points of each, weighted by
/// inverse distances (Shepard 1968, "A two-dimensional interpolation function for irregularly-spaced data").
///
/// With `d_1 <= .. <= d_k` the distances from query `m` to its neighbours, and `C` channels of values (N, C):
///
/// ```text
/// w_i = 1 / (d_i^power + eps)
/// y[m, :] = sum over i ascending of w_i / (sum of w) * values[indices[m, i], :]
/// ```
///
/// The operator is differentiable in values, queries and points. Neighbours are exactly those of [`Search::knn`].
///
/// # Weights
///
/// Relative weights `(d_1^power + eps) / (d_i^power + eps)` are divided by their sum over i ascending, so that no distance
/// overflows or becomes 0/0: without `eps` they are `(d_1 / d_i)^power`. Whole powers up to 8 are multiplied out, others are
/// the standard library's `powf`, and the square of an L2 distance is the key, as it was before the root. For
/// the distances (or squares) that were computed, a weight is within k + 40 roundings of its exact value where the power is
/// whole and at most 8 and nothing underflows. Weights are the same bits at every level and for every number of threads; so
/// are the sums, a product being rounded before it is added.
///
/// - Without `eps`, a query on points (of a computed key of 0) has the mean of their values. It has no derivative there: its
///   gradient goes to those values, 1 over their number each, and to positions goes 0.
/// - A neighbour at an infinite distance (one that overflowed) has weight 0; where all are, weights are equal.
/// - A query without a neighbour within the bound has the fill, and no gradient.
///
/// # Examples
///
/// ```
/// use pullback::kdtree::{Interpolate, KdTree};
/// use pullback::ndarray::array;
///
/// let tree = KdTree::<f64, 1>::new(array![[0.0], [1.0], [4.0]].view())?;
/// let values = array![[10.0, 0.0], [20.0, 1.0], [30.0, 0.0]];
/// let shepard = Interpolate::new(&tree, 2, 2.0, 0.0)?.within(2.5).fill(-1.0);
///
/// // In the middle, on a point, and far from all.
/// let queries = array![[0.5], [4.0], [100.0]];
/// let y = shepard.forward(values.view(), queries.view())?;
/// assert_eq!(y, array![[15.0, 0.5], [30.0, 0.0], [-1.0, -1.0]]);
///
/// // The gradient of the sum of the first channel.
/// let grad_y = array![[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]];
/// let gradients = shepard.adjoint(grad_y.view(), values.view(), queries.view())?;
/// assert_eq!(gradients.grad_values, array![[0.5, 0.0], [0.5, 0.0], [1.0, 0.0]]);
/// assert_eq!(gradients.grad_queries, array![[20.0], [0.0], [0.0]]);
/// assert_eq!(gradients.grad_points, array![[-10.0], [-10.0], [0.0]]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct Interpolate<'t, T> {
    search: Search<'t, T>,
    k: usize,
    power: T,
    eps: T,
    fill: T,
}

impl<'t, T: Real> Interpolate<'t, T> {
    /// Interpolation from the `k` nearest points of `tree`, with weights `1 / (d^power + eps)`. A `k` of 0 gives the fill
    /// everywhere. O(1).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where `power` is not finite and greater than 0, or `eps` not finite and at least 0.
    pub fn new(tree: &'t KdTreeDyn<T>, k: usize, power: T, eps: T) -> Result<Self> {
        if !(power.is_finite() && power > T::zero()) {
            return Err(refused("power", power, "greater than 0"));
        }
        if !(eps.is_finite() && eps >= T::zero()) {
            return Err(refused("eps", eps, "at least 0"));
        }
        Ok(Self { search: tree.search(), k, power, eps, fill: T::zero() })
    }

    /// How differences become distances, [`Metric::L2`] unless set.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.search = self.search.metric(metric);
        self
    }

    /// Only neighbours nearer than `bound`, strictly, as [`Search::within`]. One bound, or one a query.
    pub fn within(mut self, bound: impl Into<PerQuery<'t, T>>) -> Self {
        self.search = self.search.within(bound);
        self
    }

    /// What queries without a neighbour get in every channel, 0 unless set.
    pub fn fill(mut self, fill: T) -> Self {
        self.fill = fill;
        self
    }

    /// Searches for the neighbours of `queries` (M, D) and weighs them, once for any number of values and gradients.
    /// O(M (log N + k)) on data that is not adversarial.
    ///
    /// # Errors
    ///
    /// As [`Search::knn`], [`Error::TooLarge`] where M times k exceeds 2^32 - 2 too, and [`Error::Environment`] from
    /// [`Level::current`](crate::Level::current).
    pub fn at(&self, queries: ArrayView2<'_, T>) -> Result<Interpolation<'t, T>> {
        self.search.check_queries(&queries)?;
        self.search.check_within(queries.nrows())?;
        let Search { tree, options } = self.search;
        T::interpolation(
            tree,
            &options,
            self.k,
            Weighing::new(options.metric, self.power, self.eps),
            self.fill,
            &queries,
        )
    }

    /// The values (N, C) interpolated to `queries` (M, D): a new array (M, C). [`Interpolate::at`] and
    /// [`Interpolation::forward`], which are better apart where more than one call has the same queries.
    ///
    /// # Errors
    ///
    /// As [`Interpolate::at`] and [`Interpolation::forward`].
    pub fn forward(&self, values: ArrayView2<'_, T>, queries: ArrayView2<'_, T>) -> Result<Array2<T>> {
        self.at(queries)?.forward(values)
    }

    /// All gradients of [`Interpolate::forward`] at `values` (N, C) and `queries` (M, D) for the gradient `grad_y` (M, C).
    /// [`Interpolate::at`] and [`Interpolation::adjoint`].
    ///
    /// # Errors
    ///
    /// As [`Interpolate::at`] and [`Interpolation::adjoint`].
    pub fn adjoint(
        &self,
        grad_y: ArrayView2<'_, T>,
        values: ArrayView2<'_, T>,
        queries: ArrayView2<'_, T>,
    ) -> Result<InterpolateGradients<T>> {
        self.at(queries)?.adjoint(grad_y, values)
    }
}

fn refused<T: Real>(argument: &'static str, value: T, expected: &'static str) -> Error {
    let value = value.to_f64().expect("an element is an f64").to_string();
    Error::Parameter { argument, value, expected }
}
