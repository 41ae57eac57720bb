//! How a tree is built.

use super::arena::MAX_DIMS;
use super::build::LEAF;
use super::periodic::Torus;
use super::search::Tuning;
use super::tree::{KdTree, KdTreeDyn, MAX_ROWS, check_columns, non_finite};
use crate::Real;
use crate::error::{Error, Result};
use crate::layout::check_shape;
use crate::simd::Level;
use ndarray::ArrayView2;

/// How a [`KdTree`] or a [`KdTreeDyn`] is built.
///
/// # Examples
///
/// A box of length 1 along its first axis, open along the second:
///
/// ```
/// use pullback::kdtree::KdTree;
/// use pullback::ndarray::array;
///
/// let points = array![[0.125, 0.0], [0.5, 0.0], [0.125, 9.0]];
/// let builder = KdTree::<f32, 2>::builder().periodic(&[Some(1.0), None]);
/// let tree: KdTree<f32, 2> = builder.build(points.view())?;
/// let found = tree.knn(array![[0.875, 0.0]].view(), 1)?;
/// assert_eq!((found.indices, found.distances), (array![[0]], array![[0.25]]));
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder<T> {
    leaf: usize,
    absent: bool,
    periodic: Option<Vec<Option<T>>>,
    origin: Option<Vec<T>>,
}

impl<T> Default for Builder<T> {
    fn default() -> Self {
        Self { leaf: LEAF, absent: false, periodic: None, origin: None }
    }
}

impl<T: Real> Builder<T> {
    /// Points a leaf, 32 unless set; rounded up to a power of two of at least 16. Answers do not depend on it.
    pub fn leaf_size(mut self, points: usize) -> Self {
        self.leaf = points.clamp(16, 1 << 20).next_power_of_two();
        self
    }

    /// Treats points with a coordinate that is not finite as absent, and such queries as without neighbours, instead of
    /// as errors. Depth cameras write rows of NaN where they saw nothing.
    pub fn non_finite_is_absent(mut self) -> Self {
        self.absent = true;
        self
    }

    /// A box whose opposite faces are the same: its length along each of D axes, or none where the axis is open.
    ///
    /// Points and queries are wrapped into it, `x - L floor((x - o) / L)` with every operation rounded, and moved to the
    /// origin `o` where rounding leaves them outside of `[o, o + L)`. The difference on an axis is `a = |q - p|`, or
    /// `L - a` where that is smaller (the minimum image convention of molecular dynamics), so that a point is one neighbour
    /// at most.
    pub fn periodic(mut self, lengths: &[Option<T>]) -> Self {
        self.periodic = Some(lengths.to_vec());
        self
    }

    /// The lowest corner of the periodic box, 0 on each of D axes unless set.
    pub fn origin(mut self, origin: &[T]) -> Self {
        self.origin = Some(origin.to_vec());
        self
    }

    /// Builds the tree over `points` (N, D). O(N log N).
    ///
    /// # Errors
    ///
    /// [`Error::Dimensions`] where D is not 1 to 16, [`Error::Shape`] where the points have other than D columns or the
    /// box other than D axes, [`Error::Length`] naming the first length that is not finite and greater than 0,
    /// [`Error::NonFinite`] naming the first coordinate that is not finite, of the origin or of the points,
    /// [`Error::TooLarge`] where N exceeds 2^32 - 2, [`Error::Allocation`], and [`Error::Environment`] from
    /// [`Level::current`].
    pub fn build<const D: usize>(&self, points: ArrayView2<'_, T>) -> Result<KdTree<T, D>> {
        self.build_of(D, points).map(KdTree::new_over)
    }

    /// [`Builder::build`] where D, the number of columns of `points`, is known at run time alone.
    ///
    /// # Errors
    ///
    /// As [`Builder::build`].
    pub fn build_dyn(&self, points: ArrayView2<'_, T>) -> Result<KdTreeDyn<T>> {
        self.build_of(points.ncols(), points)
    }

    fn build_of(&self, dims: usize, points: ArrayView2<'_, T>) -> Result<KdTreeDyn<T>> {
        let level = Level::current()?;
        if !(1..=MAX_DIMS).contains(&dims) {
            return Err(Error::Dimensions { found: dims, most: MAX_DIMS });
        }
        check_columns("points", &points, dims)?;
        let torus = self.torus(dims)?;
        let rows = points.nrows();
        if rows > MAX_ROWS {
            return Err(Error::TooLarge { argument: "rows of points", value: rows as u128, limit: MAX_ROWS as u128 });
        }
        let arena = match (T::first_non_finite(&points), self.absent) {
            (None, _) => T::build(&points, None, self.leaf, torus, level)?,
            (Some(_), true) => T::build(&points, Some(&T::finite_rows(&points)), self.leaf, torus, level)?,
            (Some(position), false) => return Err(non_finite("points", &points, position)),
        };
        Ok(KdTreeDyn { arena, level, tuning: Tuning::default(), absent: self.absent })
    }

    fn torus(&self, dims: usize) -> Result<Option<Torus<T>>> {
        let word = |value: T| value.to_f64().expect("an element is an f64").to_string();
        if let Some(lengths) = &self.periodic {
            check_shape("periodic", &[lengths.len()], &[dims])?;
            for (axis, length) in lengths.iter().enumerate() {
                if let Some(length) = *length
                    && !(length.is_finite() && length > T::zero())
                {
                    return Err(Error::Length { argument: "periodic", axis, value: word(length) });
                }
            }
        }
        if let Some(origin) = &self.origin {
            check_shape("origin", &[origin.len()], &[dims])?;
            if let Some(axis) = origin.iter().position(|x| !x.is_finite()) {
                return Err(Error::NonFinite { argument: "origin", position: vec![axis], value: word(origin[axis]) });
            }
        }
        let Some(lengths) = self.periodic.as_ref().filter(|lengths| lengths.iter().any(Option::is_some)) else {
            return Ok(None);
        };
        let lengths = lengths.iter().map(|length| length.unwrap_or(T::infinity())).collect();
        let origin = self.origin.clone().unwrap_or_else(|| vec![T::zero(); dims]);
        Ok(Some(Torus { origin, lengths }))
    }
}
