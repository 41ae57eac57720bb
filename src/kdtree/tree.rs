//! The tree as its users see it.

use super::arena::Arena;
use super::builder::Builder;
use super::neighbors::{Neighbors, RadiusNeighbors};
use super::per_query::PerQuery;
use super::search::{Search, Tuning};
use crate::Real;
use crate::error::{Error, Result};
use crate::settings::settings;
use crate::simd::Level;
use ndarray::{Array1, Array2, ArrayView2};
use std::ops::Deref;

/// The largest number of rows, so that row numbers fit in `u32` beside the markers of padding and of empty slots.
pub(super) const MAX_ROWS: usize = u32::MAX as usize - 1;

/// A k-d tree over N points in D dimensions, D from 1 to 16, in `f32` or `f64`.
///
/// All searches are methods of [`KdTreeDyn`], the same tree where D is known at run time alone.
///
/// The tree owns a reordered copy of the points and their row numbers, D elements and 4 bytes a point, and 2 D + 2 elements a
/// leaf of 32 points beside them. It can be shared between threads.
///
/// # Exactness
///
/// The key of a neighbour is what its [`Metric`](super::Metric) makes of the coordinates: by default the squared distance
/// as the type computes it, `(dx*dx + dy*dy) + dz*dz` with the axes in order and every operation rounded. Neighbours come in
/// ascending order of (key, row number), exactly those that brute force finds, at every level, leaf size and number of
/// threads. The distance returned is the rounded root of the key.
///
/// # Examples
///
/// ```
/// use pullback::kdtree::KdTree;
/// use pullback::ndarray::array;
///
/// let points = array![[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]];
/// let tree = KdTree::<f64, 2>::new(points.view())?;
/// let found = tree.knn(array![[0.9, 0.0]].view(), 2)?;
/// assert_eq!(found.indices, array![[1, 0]]);
/// assert_eq!(found.distances[[0, 1]], 0.9);
///
/// // Every point's nearest other point.
/// assert_eq!(tree.knn_self(1)?.indices, array![[1], [0], [1]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct KdTree<T, const D: usize>(KdTreeDyn<T>);

/// A [`KdTree`] whose number of dimensions is known at run time alone.
///
/// # Examples
///
/// ```
/// use pullback::kdtree::KdTreeDyn;
/// use pullback::ndarray::array;
///
/// let points = array![[0.0, 0.0], [1.0, 0.0], [5.0, 5.0]];
/// let tree = KdTreeDyn::<f32>::new(points.view())?;
/// assert_eq!((tree.len(), tree.dims()), (3, 2));
///
/// // All points at most 1 away, as rows of different lengths.
/// let found = tree.radius(points.view(), 1.0)?;
/// assert_eq!(found.offsets, array![0, 2, 4, 5]);
/// assert_eq!(found.indices, array![0, 1, 0, 1, 2]);
/// assert_eq!(found.counts(), tree.radius_count(points.view(), 1.0)?);
/// assert_eq!(tree.pairs_within(1.0)?, array![[0, 1]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct KdTreeDyn<T> {
    pub(super) arena: Arena<T>,
    pub(super) level: Level,
    pub(super) tuning: Tuning,
    /// Whether queries that are not finite are without neighbours instead of errors.
    pub(super) absent: bool,
}

impl<T: Real, const D: usize> KdTree<T, D> {
    /// Builds a tree over `points` (N, D) with the defaults of [`Builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn new(points: ArrayView2<'_, T>) -> Result<Self> {
        Builder::default().build(points)
    }

    /// A builder, for other leaf sizes, periodic boxes, and points that are not finite.
    pub fn builder() -> Builder<T> {
        Builder::default()
    }

    /// The same tree searched at another level. The answers are the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::LevelUnavailable`] where the CPU lacks the level.
    pub fn with_level(self, level: Level) -> Result<Self> {
        self.0.with_level(level).map(Self)
    }

    /// The same tree with choices made by the caller instead of by size.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuning(self, tuning: Tuning) -> Self {
        Self(self.0.with_tuning(tuning))
    }

    /// The tree without its number of dimensions in its type.
    #[must_use]
    pub fn into_dyn(self) -> KdTreeDyn<T> {
        self.0
    }
}

impl<T, const D: usize> KdTree<T, D> {
    /// A shell over a tree of D dimensions.
    pub(super) fn new_over(tree: KdTreeDyn<T>) -> Self {
        Self(tree)
    }
}

impl<T, const D: usize> Deref for KdTree<T, D> {
    type Target = KdTreeDyn<T>;

    fn deref(&self) -> &KdTreeDyn<T> {
        &self.0
    }
}

settings!(level of [T: Real] KdTreeDyn<T> { level, tuning }, same bits from Base);

impl<T: Real> KdTreeDyn<T> {
    /// Builds a tree over `points` (N, D) with the defaults of [`Builder`].
    ///
    /// # Errors
    ///
    /// As [`Builder::build_dyn`].
    pub fn new(points: ArrayView2<'_, T>) -> Result<Self> {
        Builder::default().build_dyn(points)
    }

    /// A builder, for other leaf sizes, periodic boxes, and points that are not finite.
    pub fn builder() -> Builder<T> {
        Builder::default()
    }

    /// The number of rows of points, N.
    #[must_use]
    pub fn len(&self) -> usize {
        self.arena.rows
    }

    /// Whether there are no rows of points.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.arena.rows == 0
    }

    /// The number of dimensions, D.
    #[must_use]
    pub fn dims(&self) -> usize {
        self.arena.dims
    }

    /// A search of other metrics, bounded distances or other orders.
    pub fn search(&self) -> Search<'_, T> {
        Search::new(self)
    }

    /// The `k` nearest points of each query (M, D): [`Search::knn`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::knn`].
    pub fn knn(&self, queries: ArrayView2<'_, T>, k: usize) -> Result<Neighbors<T>> {
        self.search().knn(queries, k)
    }

    /// The `k` nearest other points of each point: [`Search::knn_self`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_self`].
    pub fn knn_self(&self, k: usize) -> Result<Neighbors<T>> {
        self.search().knn_self(k)
    }

    /// All points at most `r` away from each query (M, D): [`Search::radius`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::radius`].
    pub fn radius<'a>(
        &'a self,
        queries: ArrayView2<'_, T>,
        r: impl Into<PerQuery<'a, T>>,
    ) -> Result<RadiusNeighbors<T>> {
        self.search().radius(queries, r)
    }

    /// (M) how many points are at most `r` away from each query (M, D): [`Search::radius_count`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::radius_count`].
    pub fn radius_count<'a>(
        &'a self,
        queries: ArrayView2<'_, T>,
        r: impl Into<PerQuery<'a, T>>,
    ) -> Result<Array1<usize>> {
        self.search().radius_count(queries, r)
    }

    /// (P, 2) all pairs of points at most `r` away from each other: [`Search::pairs_within`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::pairs_within`].
    pub fn pairs_within(&self, r: T) -> Result<Array2<u32>> {
        self.search().pairs_within(r)
    }
}

pub(super) fn check_columns<T>(argument: &'static str, rows: &ArrayView2<'_, T>, columns: usize) -> Result<()> {
    if rows.ncols() == columns {
        return Ok(());
    }
    Err(Error::Shape { argument, found: rows.shape().to_vec(), expected: vec![rows.nrows(), columns] })
}

pub(super) fn non_finite<T: Real>(argument: &'static str, points: &ArrayView2<'_, T>, row: usize) -> Error {
    let axis = points.row(row).iter().position(|x| !x.is_finite()).expect("a coordinate of this row is not finite");
    let value = points[[row, axis]].to_f64().expect("an element is an f64");
    Error::NonFinite { argument, position: vec![row, axis], value: value.to_string() }
}
