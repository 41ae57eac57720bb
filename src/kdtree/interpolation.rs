//! An interpolation to queries whose neighbours are known, and its adjoint.

use super::build::allocate;
use super::gradient::{Distance, Pairs, located};
use super::metric::Metric;
use super::neighbors::Neighbors;
use super::search::Options;
use super::tree::KdTreeDyn;
use super::weights::Weighing;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::element::Element;
use crate::error::Result;
use crate::gather::{OutOfRange, Tuning, Weighted};
use crate::layout::{check_shape, elements};
use crate::parallel::{Cut, for_each_tile};
use ndarray::{Array2, ArrayView2, ArrayViewMut2, Ix2};
use rayon::prelude::*;

/// Queries that one task weighs.
const TILE: usize = 1 << 11;

/// Queries with their neighbours and weights, from [`Interpolate::at`](super::Interpolate::at): an operator that is linear
/// in the values, reusable, and shared between threads.
///
/// # Examples
///
/// ```
/// use pullback::kdtree::{Interpolate, KdTree};
/// use pullback::ndarray::array;
///
/// let tree = KdTree::<f32, 2>::new(array![[0.0, 0.0], [2.0, 0.0], [9.0, 9.0]].view())?;
/// let at = Interpolate::new(&tree, 2, 1.0, 0.0)?.at(array![[0.5, 0.0]].view())?;
/// assert_eq!(at.neighbors().indices, array![[0, 1]]);
/// assert_eq!(at.weights(), array![[0.75, 0.25]]);
/// assert_eq!(at.forward(array![[4.0], [8.0], [0.0]].view())?, array![[5.0]]);
/// assert_eq!(at.forward(array![[1.0], [0.0], [0.0]].view())?, array![[0.75]]);
/// assert_eq!(at.adjoint_values(array![[2.0]].view())?, array![[1.5], [0.5], [0.0]]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Interpolation<'t, T> {
    tree: &'t KdTreeDyn<T>,
    metric: Metric,
    weighing: Weighing<T>,
    fill: T,
    /// (M, D) as the tree knows them, rows of NaN where they are not finite.
    queries: Array2<T>,
    neighbors: Neighbors<T>,
    /// (M, K).
    weights: Array2<T>,
    sums: Weighted<Ix2, Ix2>,
}

/// The gradients of an interpolation.
#[derive(Clone, Debug, PartialEq)]
pub struct InterpolateGradients<T> {
    /// (N, C) to the values.
    pub grad_values: Array2<T>,
    /// (M, D) to the queries.
    pub grad_queries: Array2<T>,
    /// (N, D) to the points of the tree.
    pub grad_points: Array2<T>,
}

impl<T: Real> Interpolation<'_, T> {
    /// The neighbours that were found, with their distances.
    #[must_use]
    pub fn neighbors(&self) -> &Neighbors<T> {
        &self.neighbors
    }

    /// (M, K) the weights of the neighbours, which sum to 1 in every row that has any; exactly 0 for padding.
    #[must_use]
    pub fn weights(&self) -> ArrayView2<'_, T> {
        self.weights.view()
    }

    /// The values (N, C) interpolated to the queries: a new array (M, C). O(M K C).
    ///
    /// Equal, bit for bit, to `y = 0; for m, for k ascending: y[m, :] += weights[m, k] * values[indices[m, k], :]`, and the
    /// fill where there is no neighbour.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape), [`Error::TooLarge`](crate::Error::TooLarge) or
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn forward(&self, values: ArrayView2<'_, T>) -> Result<Array2<T>> {
        self.check_values(&values)?;
        T::interpolation_forward(self, &values)
    }

    /// [`Interpolation::forward`] into the caller's array (M, C), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`]; nothing is written then.
    pub fn forward_into(&self, values: ArrayView2<'_, T>, y: ArrayViewMut2<'_, T>) -> Result<()> {
        let channels = self.check_values(&values)?;
        check_shape("y", y.shape(), &[self.weights.nrows(), channels])?;
        T::interpolation_forward_into(self, &values, y)
    }

    /// All gradients at `values` (N, C) for the gradient `grad_y` (M, C). O(M K (C + D) + N (C + D)).
    ///
    /// With `a` a query's weights, `h_i` the dot product over channels of its `grad_y` and the values of neighbour `i`
    /// (summed as [`Weighted`] says), and `s = sum over i ascending of a_i h_i`, the gradient to distance `d_i` is
    /// `-(h_i - s) * a_i * power * d_i^(power - 1) / (d_i^power + eps)`, and 0 at a distance of 0. From there it goes to
    /// queries and points as [`Search::knn_adjoint`](super::Search::knn_adjoint) says. To the values goes
    /// `for m, for k ascending: grad_values[indices[m, k], :] += a[m, k] * grad_y[m, :]`. Which points are neighbours is
    /// taken as constant. The first adjoint turns the indices round, and the first on a tree makes a copy of its points by
    /// row number, (N, D); both stay.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`].
    pub fn adjoint(&self, grad_y: ArrayView2<'_, T>, values: ArrayView2<'_, T>) -> Result<InterpolateGradients<T>> {
        self.check_grad_y(&grad_y, self.check_values(&values)?)?;
        T::interpolation_adjoint(self, &grad_y, &values)
    }

    /// [`Interpolation::adjoint`] into the caller's arrays (N, C), (M, D) and (N, D), which are overwritten.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`]; nothing is written then.
    pub fn adjoint_into(
        &self,
        grad_y: ArrayView2<'_, T>,
        values: ArrayView2<'_, T>,
        grad_values: ArrayViewMut2<'_, T>,
        grad_queries: ArrayViewMut2<'_, T>,
        grad_points: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        self.adjoint_from(&grad_y, &values, [grad_values, grad_queries, grad_points], Start::Zero)
    }

    /// [`Interpolation::adjoint`] added to the caller's arrays (N, C), (M, D) and (N, D): every sum starts from the value
    /// found there.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`]; nothing is written then.
    pub fn adjoint_add(
        &self,
        grad_y: ArrayView2<'_, T>,
        values: ArrayView2<'_, T>,
        grad_values: ArrayViewMut2<'_, T>,
        grad_queries: ArrayViewMut2<'_, T>,
        grad_points: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        self.adjoint_from(&grad_y, &values, [grad_values, grad_queries, grad_points], Start::Values)
    }

    /// The gradient (N, C) to the values alone, for which no values are needed: the transpose of
    /// [`Interpolation::forward`] without its fill.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`].
    pub fn adjoint_values(&self, grad_y: ArrayView2<'_, T>) -> Result<Array2<T>> {
        self.check_grad_y(&grad_y, grad_y.ncols())?;
        T::interpolation_adjoint_values(self, &grad_y)
    }

    /// [`Interpolation::adjoint_values`] into the caller's array (N, C), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`]; nothing is written then.
    pub fn adjoint_values_into(&self, grad_y: ArrayView2<'_, T>, grad_values: ArrayViewMut2<'_, T>) -> Result<()> {
        self.adjoint_values_from(&grad_y, grad_values, Start::Zero)
    }

    /// [`Interpolation::adjoint_values`] added to the caller's array (N, C): every sum starts from the value found there.
    ///
    /// # Errors
    ///
    /// As [`Interpolation::forward`]; nothing is written then.
    pub fn adjoint_values_add(&self, grad_y: ArrayView2<'_, T>, grad_values: ArrayViewMut2<'_, T>) -> Result<()> {
        self.adjoint_values_from(&grad_y, grad_values, Start::Values)
    }

    fn adjoint_values_from(
        &self,
        grad_y: &ArrayView2<'_, T>,
        grad_values: ArrayViewMut2<'_, T>,
        start: Start,
    ) -> Result<()> {
        let channels = grad_y.ncols();
        self.check_grad_y(grad_y, channels)?;
        check_shape("grad_values", grad_values.shape(), &[self.tree.len(), channels])?;
        T::interpolation_adjoint_values_from(self, grad_y, grad_values, start)
    }

    fn adjoint_from(
        &self,
        grad_y: &ArrayView2<'_, T>,
        values: &ArrayView2<'_, T>,
        outputs: [ArrayViewMut2<'_, T>; 3],
        start: Start,
    ) -> Result<()> {
        let channels = self.check_values(values)?;
        self.check_grad_y(grad_y, channels)?;
        let (rows, dims) = (self.tree.len(), self.tree.dims());
        check_shape("grad_values", outputs[0].shape(), &[rows, channels])?;
        check_shape("grad_queries", outputs[1].shape(), &[self.weights.nrows(), dims])?;
        check_shape("grad_points", outputs[2].shape(), &[rows, dims])?;
        T::interpolation_adjoint_from(self, grad_y, values, outputs, start)
    }

    /// Checks the shape of the values and returns their channels.
    fn check_values(&self, values: &ArrayView2<'_, T>) -> Result<usize> {
        let channels = values.ncols();
        check_shape("values", values.shape(), &[self.tree.len(), channels])?;
        Ok(channels)
    }

    fn check_grad_y(&self, grad_y: &ArrayView2<'_, T>, channels: usize) -> Result<()> {
        check_shape("grad_y", grad_y.shape(), &[self.weights.nrows(), channels])
    }
}

/// What the calls of this family run. Shapes have been checked.
impl<'t, T: Real> Interpolation<'t, T> {
    /// Searches and weighs.
    pub(super) fn new(
        tree: &'t KdTreeDyn<T>,
        options: &Options<'_, T>,
        k: usize,
        weighing: Weighing<T>,
        fill: T,
        queries: &ArrayView2<'_, T>,
    ) -> Result<Self> {
        let metric = options.metric;
        // Keys: of L2 the squares, of the other metrics the distances.
        let options = Options { squared: metric == Metric::L2, ..*options };
        let mut neighbors = T::knn(&tree.arena, tree.level, tree.tuning, &options, queries, k)?;
        let tuning = Tuning { parallel: tree.tuning.parallel, ..Tuning::default() };
        let policy = OutOfRange::Skip { fill: 0.0 };
        let sums = Weighted::unbatched(neighbors.indices.view(), tree.len(), policy)?;
        let sums = sums.with_level(tree.level)?.with_tuning(tuning);
        let weights = weigh(&weighing, &mut neighbors, tree.tuning.parallel)?;
        let queries = located(&tree.arena.view(), queries)?;
        Ok(Self { tree, metric, weighing, fill, queries, neighbors, weights, sums })
    }

    pub(super) fn run_forward(&self, values: &ArrayView2<'_, T>) -> Result<Array2<T>> {
        let mut y = self.sums.forward(values.view(), self.weights.view())?;
        self.fill_rows(&mut y.view_mut());
        Ok(y)
    }

    pub(super) fn run_forward_into(&self, values: &ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) -> Result<()> {
        self.sums.forward_into(values.view(), self.weights.view(), y.view_mut())?;
        self.fill_rows(&mut y);
        Ok(())
    }

    /// Writes the fill to the rows of queries without a neighbour, which hold sums of nothing.
    fn fill_rows(&self, y: &mut ArrayViewMut2<'_, T>) {
        if self.fill == T::zero() && self.fill.is_sign_positive() {
            return;
        }
        for (mut y, found) in y.outer_iter_mut().zip(self.neighbors.indices.outer_iter()) {
            if found.first().is_none_or(|&first| first >= self.neighbors.rows) {
                y.fill(self.fill);
            }
        }
    }

    pub(super) fn run_adjoint(
        &self,
        grad_y: &ArrayView2<'_, T>,
        values: &ArrayView2<'_, T>,
    ) -> Result<InterpolateGradients<T>> {
        let points = self.tree.arena.by_row()?;
        let shapes = [[self.weights.nrows(), self.tree.dims()], [self.tree.len(), self.tree.dims()]];
        let grad_queries = Buffer::new(elements::<T>(&shapes[0])?)?;
        let grad_points = Buffer::new(elements::<T>(&shapes[1])?)?;
        let both = self.sums.adjoint(grad_y.view(), values.view(), self.weights.view())?;
        let mut grads = both.grad_w;
        self.pull_weights(&mut grads);
        let pairs = self.pairs(points, &grads);
        Ok(InterpolateGradients {
            grad_values: both.grad_x,
            grad_queries: grad_queries.fill(&shapes[0], |cells| pairs.to_queries(Output::fresh(cells))),
            grad_points: grad_points
                .fill(&shapes[1], |cells| pairs.to_points(self.sums.inverse(), Output::fresh(cells))),
        })
    }

    pub(super) fn run_adjoint_from(
        &self,
        grad_y: &ArrayView2<'_, T>,
        values: &ArrayView2<'_, T>,
        [grad_values, grad_queries, grad_points]: [ArrayViewMut2<'_, T>; 3],
        start: Start,
    ) -> Result<()> {
        let points = self.tree.arena.by_row()?;
        let mut grads = zeros(self.weights.dim())?;
        let (y, x, w) = (grad_y.view(), values.view(), self.weights.view());
        // The gradient to the weights starts from zeros either way.
        match start {
            Start::Zero => self.sums.adjoint_into(y, x, w, grad_values, grads.view_mut())?,
            Start::Values => self.sums.adjoint_add(y, x, w, grad_values, grads.view_mut())?,
        }
        self.pull_weights(&mut grads);
        let pairs = self.pairs(points, &grads);
        let _ = pairs.to_queries(Output::array(grad_queries, start));
        let _ = pairs.to_points(self.sums.inverse(), Output::array(grad_points, start));
        Ok(())
    }

    pub(super) fn run_adjoint_values(&self, grad_y: &ArrayView2<'_, T>) -> Result<Array2<T>> {
        self.sums.adjoint_x(grad_y.view(), self.weights.view())
    }

    pub(super) fn run_adjoint_values_from(
        &self,
        grad_y: &ArrayView2<'_, T>,
        grad_values: ArrayViewMut2<'_, T>,
        start: Start,
    ) -> Result<()> {
        match start {
            Start::Zero => self.sums.adjoint_x_into(grad_y.view(), self.weights.view(), grad_values),
            Start::Values => self.sums.adjoint_x_add(grad_y.view(), self.weights.view(), grad_values),
        }
    }

    /// From gradients to weights that are not normalised, (M, K), to gradients to distances, in place.
    fn pull_weights(&self, grads: &mut Array2<T>) {
        let k = grads.ncols();
        if grads.is_empty() {
            return;
        }
        let Neighbors { distances, indices, rows } = &self.neighbors;
        let (grads, distances) = (cells_mut(grads), cells(distances));
        let (indices, weights) = (cells(indices), cells(&self.weights));
        grads.par_chunks_mut(TILE * k).enumerate().for_each(|(chunk, grads)| {
            for (row, grads) in (chunk * TILE..).zip(grads.chunks_exact_mut(k)) {
                let at = row * k..(row + 1) * k;
                let found = count_found(&indices[at.clone()], *rows);
                self.weighing.pull(&distances[at.clone()][..found], &weights[at][..found], &mut grads[..found]);
            }
        });
    }

    fn pairs<'a>(&'a self, points: &'a Array2<T>, grads: &'a Array2<T>) -> Pairs<'a, T> {
        Pairs {
            distance: Distance { metric: self.metric, squared: false, torus: self.tree.arena.torus.as_ref() },
            dims: self.tree.dims(),
            k: self.weights.ncols(),
            queries: cells(&self.queries),
            points: cells(points),
            indices: cells(&self.neighbors.indices),
            grads: cells(grads),
            parallel: self.tree.tuning.parallel,
        }
    }
}

/// The weights of neighbours, whose keys become distances.
fn weigh<T: Element>(
    weighing: &Weighing<T>,
    neighbors: &mut Neighbors<T>,
    parallel: Option<bool>,
) -> Result<Array2<T>> {
    let (count, k) = neighbors.indices.dim();
    let weights = Buffer::new(elements::<T>(&[count, k])?)?;
    if !weighing.weighs_keys() {
        root(weighing, neighbors);
    }
    let weights = weights.fill(&[count, k], |weights| {
        if count * k == 0 {
            return Filled::NOTHING;
        }
        let (keys, indices) = (cells(&neighbors.distances), cells(&neighbors.indices));
        let cut = Cut { group: count, tile: TILE, width: k, parallel: parallel.unwrap_or(count > TILE) };
        for_each_tile(Output::fresh(weights), count, &cut, &|_, rows, weights| {
            for (row, weights) in rows.zip(weights.accumulators().chunks_exact_mut(k)) {
                let found = count_found(&indices[row * k..][..k], neighbors.rows);
                weighing.weigh(&keys[row * k..][..found], &mut weights[..found]);
            }
        })
    });
    if weighing.weighs_keys() {
        root(weighing, neighbors);
    }
    Ok(weights)
}

/// Turns keys into distances.
fn root<T: Element>(weighing: &Weighing<T>, neighbors: &mut Neighbors<T>) {
    let chunks = cells_mut(&mut neighbors.distances).par_chunks_mut(TILE);
    chunks.for_each(|keys| weighing.root(keys));
}

fn zeros<T: Element>(shape: (usize, usize)) -> Result<Array2<T>> {
    let cells = allocate(shape.0 * shape.1, T::zero())?;
    Ok(Array2::from_shape_vec(shape, cells).expect("as many cells"))
}

/// How many of a query's indices are neighbours; padding comes last.
#[inline(always)]
fn count_found(indices: &[u32], rows: u32) -> usize {
    indices.iter().take_while(|&&index| index < rows).count()
}

fn cells<T>(array: &Array2<T>) -> &[T] {
    array.as_slice().expect("an array of this family is in standard layout")
}

fn cells_mut<T>(array: &mut Array2<T>) -> &mut [T] {
    array.as_slice_mut().expect("an array of this family is in standard layout")
}
