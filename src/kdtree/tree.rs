//! The tree as its users see it.

use super::arena::{Arena, MAX_DIMS};
use super::build::LEAF;
use super::knn::Tuning;
use super::neighbors::Neighbors;
use crate::Real;
use crate::error::{Error, Result};
use crate::simd::Level;
use ndarray::ArrayView2;

/// The largest number of rows, so that row numbers fit in `u32` beside the markers of padding and of empty slots.
const MAX_ROWS: usize = u32::MAX as usize - 1;

/// A k-d tree over N points in D dimensions, D from 1 to 16, in `f32` or `f64`.
///
/// The tree owns a reordered copy of the points and their row numbers, D elements and 4 bytes a point, and 2 D + 2 elements a
/// leaf of 32 points beside them. It can be shared between threads.
///
/// # Exactness
///
/// The key of a neighbour is the squared distance as the type computes it, `(dx*dx + dy*dy) + dz*dz` with the axes in
/// order and every operation rounded. Neighbours come in ascending order of (key, row number), exactly those that brute
/// force finds, at every level, leaf size and number of threads. The distance returned is the rounded root of the key.
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
pub struct KdTree<T, const D: usize> {
    arena: Arena<T>,
    level: Level,
    tuning: Tuning,
    absent: bool,
}

/// How a [`KdTree`] is built.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    leaf: usize,
    absent: bool,
}

impl Default for Builder {
    fn default() -> Self {
        Self { leaf: LEAF, absent: false }
    }
}

impl Builder {
    /// Points a leaf, 32 unless set; rounded up to a power of two of at least 16. Answers do not depend on it.
    #[must_use]
    pub fn leaf_size(mut self, points: usize) -> Self {
        self.leaf = points.clamp(16, 1 << 20).next_power_of_two();
        self
    }

    /// Treats points with a coordinate that is not finite as absent, and such queries as without neighbours, instead of
    /// as errors. Depth cameras write rows of NaN where they saw nothing.
    #[must_use]
    pub fn non_finite_is_absent(mut self) -> Self {
        self.absent = true;
        self
    }

    /// Builds the tree over `points` (N, D). O(N log N).
    ///
    /// # Errors
    ///
    /// [`Error::Dimensions`] where D is not 1 to 16, [`Error::Shape`] where the points have other than D columns,
    /// [`Error::NonFinite`] naming the first coordinate that is not finite, [`Error::TooLarge`] where N exceeds 2^32 - 2,
    /// [`Error::Allocation`], and [`Error::Environment`] from [`Level::current`].
    pub fn build<T: Real, const D: usize>(self, points: ArrayView2<'_, T>) -> Result<KdTree<T, D>> {
        let level = Level::current()?;
        if !(1..=MAX_DIMS).contains(&D) {
            return Err(Error::Dimensions { found: D, most: MAX_DIMS });
        }
        check_columns("points", &points, D)?;
        let rows = points.nrows();
        if rows > MAX_ROWS {
            return Err(Error::TooLarge { argument: "rows of points", value: rows as u128, limit: MAX_ROWS as u128 });
        }
        let arena = match (T::first_non_finite(&points), self.absent) {
            (None, _) => T::build(&points, None, self.leaf, level)?,
            (Some(_), true) => T::build(&points, Some(&T::finite_rows(&points)), self.leaf, level)?,
            (Some(position), false) => return Err(non_finite("points", &points, position)),
        };
        Ok(KdTree { arena, level, tuning: Tuning::default(), absent: self.absent })
    }
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

    /// A builder, for other leaf sizes and for points that are not finite.
    #[must_use]
    pub fn builder() -> Builder {
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

    /// The level that the kernels run at.
    #[must_use]
    pub fn level(&self) -> Level {
        self.level
    }

    /// The same tree searched at another level. The answers are the same bits.
    ///
    /// # Errors
    ///
    /// [`Error::LevelUnavailable`] where the CPU lacks the level.
    pub fn with_level(mut self, level: Level) -> Result<Self> {
        self.level = level.checked()?;
        Ok(self)
    }

    /// The same tree with choices made by the caller instead of by size.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuning(mut self, tuning: Tuning) -> Self {
        self.tuning = tuning;
        self
    }

    /// The `k` nearest points of each query (M, D). O(M (log N + k)) on data that is not adversarial.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::NonFinite`] naming the first coordinate that is not finite, [`Error::TooLarge`] where M
    /// exceeds 2^32 - 2 or (M, K) the address space, or [`Error::Allocation`].
    pub fn knn(&self, queries: ArrayView2<'_, T>, k: usize) -> Result<Neighbors<T>> {
        check_columns("queries", &queries, D)?;
        let rows = queries.nrows();
        if rows > MAX_ROWS {
            return Err(Error::TooLarge { argument: "rows of queries", value: rows as u128, limit: MAX_ROWS as u128 });
        }
        if !self.absent
            && let Some(position) = T::first_non_finite(&queries)
        {
            return Err(non_finite("queries", &queries, position));
        }
        T::knn(&self.arena, self.level, self.tuning, &queries, k)
    }

    /// The `k` nearest other points of each point: itself is left out by its row number, so equal points are neighbours.
    /// Faster than [`KdTree::knn`] with the same points, since they are in spatial order already. Absent points have no
    /// neighbours.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where (N, K) exceeds the address space, or [`Error::Allocation`].
    pub fn knn_self(&self, k: usize) -> Result<Neighbors<T>> {
        T::knn_self(&self.arena, self.level, self.tuning, k)
    }
}

fn check_columns<T>(argument: &'static str, rows: &ArrayView2<'_, T>, columns: usize) -> Result<()> {
    if rows.ncols() == columns {
        return Ok(());
    }
    Err(Error::Shape { argument, found: rows.shape().to_vec(), expected: vec![rows.nrows(), columns] })
}

fn non_finite<T: Real>(argument: &'static str, points: &ArrayView2<'_, T>, row: usize) -> Error {
    let axis = points.row(row).iter().position(|x| !x.is_finite()).expect("a coordinate of this row is not finite");
    let value = points[[row, axis]].to_f64().expect("an element is an f64");
    Error::NonFinite { argument, position: vec![row, axis], value: value.to_string() }
}
