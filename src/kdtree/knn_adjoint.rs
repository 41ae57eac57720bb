//! The adjoints of searches for neighbours: from gradients of distances to gradients of positions.

use super::gradient::{Distance, Pairs, located};
use super::search::{Options, Search};
use super::tree::KdTreeDyn;
use crate::Real;
use crate::buffer::{Buffer, Output, Start};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::gather::Inverse;
use crate::layout::{check_shape, dense, elements};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, CowArray, Ix2};
use rayon::prelude::*;
use std::borrow::Cow;

/// Indices checked by one task.
const CHUNK: usize = 1 << 14;

const STANDARD: &str = "rows lie side by side";

/// The gradients of distances.
#[derive(Clone, Debug, PartialEq)]
pub struct KnnGradients<T> {
    /// (M, D) to the queries.
    pub grad_queries: Array2<T>,
    /// (N, D) to the points of the tree.
    pub grad_points: Array2<T>,
}

/// What a search found, and the gradient to each distance.
pub struct Inputs<'a, 'b, T> {
    /// Without, queries are the tree's points.
    queries: Option<&'a ArrayView2<'b, T>>,
    indices: &'a ArrayView2<'b, u32>,
    grad_distances: &'a ArrayView2<'b, T>,
}

impl<'a, T: Real> Search<'a, T> {
    /// The gradients of the distances that [`Search::knn`] returned, to the queries (M, D) and to the points.
    ///
    /// `indices` (M, K) are those that it returned, or any other row numbers of points; N is padding. `grad_distances`
    /// (M, K) is the gradient of a loss with respect to each distance, or with [`Search::squared`] to its square. Which
    /// points are neighbours does not change under a small change of positions, so indices are constants. A search looks
    /// at its metric here and at whether it is squared, not at its bounds. O(M K D + N).
    ///
    /// With `delta = q - p` along each axis, on a periodic axis to the image that is taken (`delta - sign(delta) L` where
    /// `L - |delta| < |delta|`), a distance `d` of gradient `g` adds to the query, and subtracts from the point,
    ///
    /// | metric | distances | squared |
    /// |---|---|---|
    /// | [`L2`](super::Metric::L2) | `g * delta / d` | `2 * g * delta` |
    /// | [`L1`](super::Metric::L1) | `g * sign(delta)` | `2 * g * d * sign(delta)` |
    /// | [`Linf`](super::Metric::Linf) | `g * sign(delta)` on the lowest axis where `abs(delta) = d` | `2 * g * d * sign(delta)` there |
    ///
    /// with `sign(0) = 0`. Pairs of distance 0, where there is no derivative, take none, as do pairs whose distance
    /// overflows, padding, and queries that are not finite where the tree allows them. Sums are equal, bit for bit, to these
    /// loops at every level and for every number of threads:
    ///
    /// ```text
    /// for m, for k ascending:  grad_queries[m] += term;  grad_points[indices[m, k]] -= term
    /// ```
    ///
    /// The first call on a tree makes a copy of its points by row number, (N, D), which stays.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::NonFinite`] as [`Search::knn`], [`Error::IndexOutOfRange`] naming the first index that is
    /// greater than N or of an absent point, [`Error::TooLarge`] where M, or M times K, exceeds 2^32 - 2,
    /// [`Error::Allocation`], or [`Error::Environment`] from [`Level::current`](crate::Level::current).
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::kdtree::KdTree;
    /// use pullback::ndarray::{Array2, array};
    ///
    /// let tree = KdTree::<f64, 2>::new(array![[0.0, 0.0], [10.0, 0.0]].view())?;
    /// let queries = array![[3.0, 4.0]];
    /// let found = tree.knn(queries.view(), 1)?;
    /// let ones = Array2::ones(found.distances.raw_dim());
    /// let gradients = tree.search().knn_adjoint(ones.view(), queries.view(), found.indices.view())?;
    /// assert_eq!(gradients.grad_queries, array![[0.6, 0.8]]);
    /// assert_eq!(gradients.grad_points, array![[-0.6, -0.8], [0.0, 0.0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn knn_adjoint(
        &self,
        grad_distances: ArrayView2<'_, T>,
        queries: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
    ) -> Result<KnnGradients<T>> {
        self.check_queries(&queries)?;
        let (indices, grad_distances) = (&indices, &grad_distances);
        T::knn_adjoint(self.tree, &self.options, &Inputs { queries: Some(&queries), indices, grad_distances })
    }

    /// [`Search::knn_adjoint`] into the caller's arrays (M, D) and (N, D), which are overwritten.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`]; nothing is written then.
    pub fn knn_adjoint_into(
        &self,
        grad_distances: ArrayView2<'_, T>,
        queries: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
        grad_queries: ArrayViewMut2<'_, T>,
        grad_points: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        self.check_queries(&queries)?;
        let inputs = Inputs { queries: Some(&queries), indices: &indices, grad_distances: &grad_distances };
        T::knn_adjoint_from(self.tree, &self.options, &inputs, (grad_queries, grad_points), Start::Zero)
    }

    /// [`Search::knn_adjoint`] added to the caller's arrays (M, D) and (N, D): every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`]; nothing is written then.
    pub fn knn_adjoint_add(
        &self,
        grad_distances: ArrayView2<'_, T>,
        queries: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
        grad_queries: ArrayViewMut2<'_, T>,
        grad_points: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        self.check_queries(&queries)?;
        let inputs = Inputs { queries: Some(&queries), indices: &indices, grad_distances: &grad_distances };
        T::knn_adjoint_from(self.tree, &self.options, &inputs, (grad_queries, grad_points), Start::Values)
    }

    /// The gradient (N, D) of the distances that [`Search::knn_self`] returned, to the points.
    ///
    /// A point is a query and a neighbour of others. Its gradient is the sum of both, with the terms of
    /// [`Search::knn_adjoint`]:
    ///
    /// ```text
    /// for n, for k ascending:                         grad[n] += term of (n, k)
    /// then for (m, k) ascending with indices[m, k] = n:  grad[n] -= term of (m, k)
    /// ```
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::kdtree::KdTree;
    /// use pullback::ndarray::array;
    ///
    /// // Two points push each other away, the third is pushed by none.
    /// let tree = KdTree::<f32, 1>::new(array![[0.0], [1.0], [9.0]].view())?;
    /// let found = tree.knn_self(1)?;
    /// let grad = tree.knn_self_adjoint(array![[1.0], [1.0], [0.0]].view(), found.indices.view())?;
    /// assert_eq!(grad, array![[-2.0], [2.0], [0.0]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn knn_self_adjoint(
        &self,
        grad_distances: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
    ) -> Result<Array2<T>> {
        let inputs = Inputs { queries: None, indices: &indices, grad_distances: &grad_distances };
        T::knn_self_adjoint(self.tree, &self.options, &inputs)
    }

    /// [`Search::knn_self_adjoint`] into the caller's array (N, D), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`]; nothing is written then.
    pub fn knn_self_adjoint_into(
        &self,
        grad_distances: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
        grad_points: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let inputs = Inputs { queries: None, indices: &indices, grad_distances: &grad_distances };
        T::knn_self_adjoint_from(self.tree, &self.options, &inputs, grad_points, Start::Zero)
    }

    /// [`Search::knn_self_adjoint`] added to the caller's array (N, D): every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`]; nothing is written then.
    pub fn knn_self_adjoint_add(
        &self,
        grad_distances: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
        grad_points: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let inputs = Inputs { queries: None, indices: &indices, grad_distances: &grad_distances };
        T::knn_self_adjoint_from(self.tree, &self.options, &inputs, grad_points, Start::Values)
    }
}

impl<T: Real> KdTreeDyn<T> {
    /// The gradients of the distances that [`KdTreeDyn::knn`] returned: [`Search::knn_adjoint`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`].
    pub fn knn_adjoint(
        &self,
        grad_distances: ArrayView2<'_, T>,
        queries: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
    ) -> Result<KnnGradients<T>> {
        self.search().knn_adjoint(grad_distances, queries, indices)
    }

    /// The gradient of the distances that [`KdTreeDyn::knn_self`] returned: [`Search::knn_self_adjoint`] with its defaults.
    ///
    /// # Errors
    ///
    /// As [`Search::knn_adjoint`].
    pub fn knn_self_adjoint(
        &self,
        grad_distances: ArrayView2<'_, T>,
        indices: ArrayView2<'_, u32>,
    ) -> Result<Array2<T>> {
        self.search().knn_self_adjoint(grad_distances, indices)
    }
}

/// Inputs that are checked, in row-major order, with what leads from points to pairs.
struct Checked<'a, T: Element> {
    queries: CowArray<'a, T, Ix2>,
    points: &'a Array2<T>,
    indices: Cow<'a, [u32]>,
    grads: Cow<'a, [T]>,
    inverse: Inverse,
}

impl<'a, T: Element> Checked<'a, T> {
    fn new(tree: &'a KdTreeDyn<T>, inputs: &Inputs<'a, '_, T>) -> Result<Self> {
        let arena = &tree.arena;
        let (rows, k) = (inputs.queries.map_or(arena.rows, ArrayView2::nrows), inputs.indices.ncols());
        check_shape("indices", inputs.indices.shape(), &[rows, k])?;
        check_shape("grad_distances", inputs.grad_distances.shape(), &[rows, k])?;
        let points = arena.by_row()?;
        let indices = dense(inputs.indices)?;
        let is_bad = |index: usize| index > arena.rows || (index < arena.rows && points[[index, 0]].is_nan());
        let first_bad = indices.par_chunks(CHUNK).enumerate().filter_map(|(chunk, indices)| {
            indices.iter().position(|&index| is_bad(index as usize)).map(|at| chunk * CHUNK + at)
        });
        if let Some(at) = first_bad.min() {
            return Err(Error::IndexOutOfRange {
                argument: "indices",
                position: vec![at / k, at % k],
                value: i128::from(indices[at]),
                bound: arena.rows,
            });
        }
        let queries = match inputs.queries {
            None => points.view().into(),
            // Where they are as the tree knows them.
            Some(queries) if arena.torus.is_none() && !tree.absent && queries.is_standard_layout() => {
                queries.view().into()
            }
            Some(queries) => located(&arena.view(), queries)?.into(),
        };
        let inverse = Inverse::of(inputs.indices, arena.rows)?;
        Ok(Self { queries, points, indices, grads: dense(inputs.grad_distances)?, inverse })
    }

    fn pairs(&self, tree: &'a KdTreeDyn<T>, options: &Options<'_, T>, k: usize) -> Pairs<'_, T> {
        let &Options { metric, squared, .. } = options;
        Pairs {
            distance: Distance { metric, squared, torus: tree.arena.torus.as_ref() },
            dims: tree.arena.dims,
            k,
            queries: self.queries.as_slice().expect(STANDARD),
            points: self.points.as_slice().expect(STANDARD),
            indices: &self.indices,
            grads: &self.grads,
            parallel: tree.tuning.parallel,
        }
    }
}

/// Both gradients as new arrays.
pub(super) fn knn_adjoint<T: Element>(
    tree: &KdTreeDyn<T>,
    options: &Options<'_, T>,
    inputs: &Inputs<'_, '_, T>,
) -> Result<KnnGradients<T>> {
    let checked = Checked::new(tree, inputs)?;
    let pairs = checked.pairs(tree, options, inputs.indices.ncols());
    let shapes = [[inputs.indices.nrows(), tree.arena.dims], [tree.arena.rows, tree.arena.dims]];
    let grad_queries = Buffer::new(elements::<T>(&shapes[0])?)?;
    let grad_points = Buffer::new(elements::<T>(&shapes[1])?)?;
    Ok(KnnGradients {
        grad_queries: grad_queries.fill(&shapes[0], |cells| pairs.to_queries(Output::fresh(cells))),
        grad_points: grad_points.fill(&shapes[1], |cells| pairs.to_points(&checked.inverse, Output::fresh(cells))),
    })
}

/// Both gradients in the caller's arrays.
pub(super) fn knn_adjoint_from<T: Element>(
    tree: &KdTreeDyn<T>,
    options: &Options<'_, T>,
    inputs: &Inputs<'_, '_, T>,
    (grad_queries, grad_points): (ArrayViewMut2<'_, T>, ArrayViewMut2<'_, T>),
    start: Start,
) -> Result<()> {
    let dims = tree.arena.dims;
    check_shape("grad_queries", grad_queries.shape(), &[inputs.queries.map_or(0, ArrayView2::nrows), dims])?;
    check_shape("grad_points", grad_points.shape(), &[tree.arena.rows, dims])?;
    let checked = Checked::new(tree, inputs)?;
    let pairs = checked.pairs(tree, options, inputs.indices.ncols());
    let _ = pairs.to_queries(Output::array(grad_queries, start));
    let _ = pairs.to_points(&checked.inverse, Output::array(grad_points, start));
    Ok(())
}

/// The gradient to points that are the queries too, as a new array.
pub(super) fn knn_self_adjoint<T: Element>(
    tree: &KdTreeDyn<T>,
    options: &Options<'_, T>,
    inputs: &Inputs<'_, '_, T>,
) -> Result<Array2<T>> {
    let checked = Checked::new(tree, inputs)?;
    let pairs = checked.pairs(tree, options, inputs.indices.ncols());
    let shape = [tree.arena.rows, tree.arena.dims];
    let buffer = Buffer::new(elements::<T>(&shape)?)?;
    Ok(buffer.fill(&shape, |cells| pairs.to_both(&checked.inverse, Output::fresh(cells))))
}

/// The gradient to points that are the queries too, in the caller's array.
pub(super) fn knn_self_adjoint_from<T: Element>(
    tree: &KdTreeDyn<T>,
    options: &Options<'_, T>,
    inputs: &Inputs<'_, '_, T>,
    grad_points: ArrayViewMut2<'_, T>,
    start: Start,
) -> Result<()> {
    check_shape("grad_points", grad_points.shape(), &[tree.arena.rows, tree.arena.dims])?;
    let checked = Checked::new(tree, inputs)?;
    let pairs = checked.pairs(tree, options, inputs.indices.ncols());
    let _ = pairs.to_both(&checked.inverse, Output::array(grad_points, start));
    Ok(())
}
