//! What a search can be told, and the searches.

use super::metric::Metric;
use super::neighbors::{Neighbors, RadiusNeighbors};
use super::per_query::PerQuery;
use super::tree::{KdTreeDyn, MAX_ROWS, check_columns, non_finite};
use crate::Real;
use crate::error::{Error, Result};
use ndarray::{Array1, Array2, ArrayView2};

/// Choices that are made by size, as arguments, so that tests can make every one of them on small sizes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Whether queries share a traversal, where K, metric and space allow it.
    pub packets: Option<bool>,
    /// Whether queries are sorted.
    pub sort: Option<bool>,
    /// Whether to use several threads.
    pub parallel: Option<bool>,
}

/// What a search was told.
#[derive(Clone, Copy)]
pub struct Options<'a, T> {
    pub(super) metric: Metric,
    pub(super) within: Option<PerQuery<'a, T>>,
    pub(super) squared: bool,
    pub(super) by_distance: bool,
}

/// A search in a tree: which metric, how far, and what is reported. From [`KdTreeDyn::search`].
///
/// # Examples
///
/// ```
/// use pullback::kdtree::{KdTree, Metric};
/// use pullback::ndarray::array;
///
/// let tree = KdTree::<f64, 2>::new(array![[0.0, 0.0], [10.0, 10.0], [9.0, 6.0]].view())?;
/// let query = array![[9.0, 9.0]];
///
/// // The largest of the differences is the distance.
/// let found = tree.search().metric(Metric::Linf).knn(query.view(), 2)?;
/// assert_eq!((found.indices, found.distances), (array![[1, 2]], array![[1.0, 3.0]]));
///
/// // Nearer than 3, strictly, and squared; padding fills the row.
/// let found = tree.search().within(3.0).squared().knn(query.view(), 2)?;
/// assert_eq!((found.indices, found.distances), (array![[1, 3]], array![[2.0, f64::INFINITY]]));
///
/// // Up to 3, and the nearest first.
/// let found = tree.search().by_distance().radius(query.view(), 3.0)?;
/// assert_eq!((found.offsets, found.indices), (array![0, 2], array![1, 2]));
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Copy)]
#[must_use]
pub struct Search<'a, T> {
    tree: &'a KdTreeDyn<T>,
    options: Options<'a, T>,
}

impl<'a, T: Real> Search<'a, T> {
    pub(super) fn new(tree: &'a KdTreeDyn<T>) -> Self {
        let options = Options { metric: Metric::L2, within: None, squared: false, by_distance: false };
        Self { tree, options }
    }

    /// How differences become distances, [`Metric::L2`] unless set.
    pub fn metric(mut self, metric: Metric) -> Self {
        self.options.metric = metric;
        self
    }

    /// Only neighbours nearer than `bound`, strictly, as `distance_upper_bound` in `SciPy`: those whose reported distance is
    /// below it. One bound, or one a query; of [`Search::knn_self`] one a point. An infinite bound leaves out distances that
    /// overflowed, which are neighbours where there is no bound. Only [`Search::knn`] and [`Search::knn_self`] look at it.
    pub fn within(mut self, bound: impl Into<PerQuery<'a, T>>) -> Self {
        self.options.within = Some(bound.into());
        self
    }

    /// Reports squares: of L2 the key itself, of the other metrics `d * d`. Bounds and radii stay distances.
    pub fn squared(mut self) -> Self {
        self.options.squared = true;
        self
    }

    /// Rows of [`Search::radius`] ascend by (key, row number) instead of by row number.
    pub fn by_distance(mut self) -> Self {
        self.options.by_distance = true;
        self
    }

    /// The `k` nearest points of each query (M, D), ascending by (key, row number). O(M (log N + k)) on data that is not
    /// adversarial.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::NonFinite`] naming the first coordinate that is not finite, [`Error::Distance`] naming
    /// the first bound that is negative or not a number, [`Error::TooLarge`] where M exceeds 2^32 - 2 or (M, K) the
    /// address space, or [`Error::Allocation`].
    pub fn knn(&self, queries: ArrayView2<'_, T>, k: usize) -> Result<Neighbors<T>> {
        self.check_queries(&queries)?;
        self.check_within(queries.nrows())?;
        let KdTreeDyn { arena, level, tuning, .. } = self.tree;
        T::knn(arena, *level, *tuning, &self.options, &queries, k)
    }

    /// The `k` nearest other points of each point: itself is left out by its row number, so equal points are neighbours.
    /// Faster than [`Search::knn`] with the same points, since they are in spatial order already. Absent points have no
    /// neighbours.
    ///
    /// # Errors
    ///
    /// [`Error::Distance`] or [`Error::Shape`] for a bound, [`Error::TooLarge`] where (N, K) exceeds the address space, or
    /// [`Error::Allocation`].
    pub fn knn_self(&self, k: usize) -> Result<Neighbors<T>> {
        self.check_within(self.tree.len())?;
        let KdTreeDyn { arena, level, tuning, .. } = self.tree;
        T::knn_self(arena, *level, *tuning, &self.options, k)
    }

    /// All points at most `r` away from each query (M, D), with the very distance that is reported: a neighbour's distance,
    /// used as a radius, finds that neighbour. One radius, or one a query. O(M log N) and the number of neighbours, which
    /// are held twice while they are put in order.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::NonFinite`] naming the first coordinate that is not finite, [`Error::Distance`] naming
    /// the first radius that is negative or not a number, [`Error::TooLarge`] where M exceeds 2^32 - 2, or
    /// [`Error::Allocation`].
    pub fn radius(&self, queries: ArrayView2<'_, T>, r: impl Into<PerQuery<'a, T>>) -> Result<RadiusNeighbors<T>> {
        let r = r.into();
        self.check_queries(&queries)?;
        T::check(&r, "radius", queries.nrows())?;
        let KdTreeDyn { arena, level, tuning, .. } = self.tree;
        T::radius(arena, *level, *tuning, &self.options, &queries, r)
    }

    /// (M) how many points [`Search::radius`] finds for each query, without finding room for them.
    ///
    /// # Errors
    ///
    /// As [`Search::radius`].
    pub fn radius_count(&self, queries: ArrayView2<'_, T>, r: impl Into<PerQuery<'a, T>>) -> Result<Array1<usize>> {
        let r = r.into();
        self.check_queries(&queries)?;
        T::check(&r, "radius", queries.nrows())?;
        let KdTreeDyn { arena, level, tuning, .. } = self.tree;
        T::radius_count(arena, *level, *tuning, self.options.metric, &queries, r)
    }

    /// (P, 2) all pairs of points at most `r` away from each other, each once: rows (i, j) with i < j, in ascending order.
    /// Absent points are in no pair.
    ///
    /// # Errors
    ///
    /// [`Error::Distance`] where `r` is negative or not a number, or [`Error::Allocation`].
    pub fn pairs_within(&self, r: T) -> Result<Array2<u32>> {
        T::check(&PerQuery::One(r), "radius", 0)?;
        let KdTreeDyn { arena, level, tuning, .. } = self.tree;
        T::pairs_within(arena, *level, *tuning, self.options.metric, r)
    }

    fn check_queries(&self, queries: &ArrayView2<'_, T>) -> Result<()> {
        check_columns("queries", queries, self.tree.dims())?;
        let rows = queries.nrows();
        if rows > MAX_ROWS {
            return Err(Error::TooLarge { argument: "rows of queries", value: rows as u128, limit: MAX_ROWS as u128 });
        }
        if !self.tree.absent
            && let Some(position) = T::first_non_finite(queries)
        {
            return Err(non_finite("queries", queries, position));
        }
        Ok(())
    }

    fn check_within(&self, queries: usize) -> Result<()> {
        self.options.within.as_ref().map_or(Ok(()), |within| T::check(within, "within", queries))
    }
}
