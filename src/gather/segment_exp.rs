//! Softmax and log-sum-exp of rows by segment, and their adjoints.

use super::choices::Extremum;
use super::reduce::Spread;
use super::segment::Segments;
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::error::Result;
use crate::layout::{Rows, check_shape, dense, elements};
use ndarray::{Array1, Array2, ArrayView2, ArrayViewMut2};

impl Segments {
    /// `y[m, :] = exp(x[m, :] - max) / sum of exp(x[k, :] - max)` over the rows k of the segment of m, max being the segment's
    /// largest element, or 0 where that is infinite or NaN: a new array (M, C). The sum takes the rows in ascending order.
    /// O((M + S) x C).
    ///
    /// A row without a segment is 0. Where all elements are -infinity, or one is +infinity or NaN, the segment has NaN, as
    /// in `torch.softmax`.
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::{OutOfRange, Segments};
    /// use pullback::ndarray::array;
    ///
    /// // Attention over the edges into each of two nodes.
    /// let edges = Segments::new(array![0, 1, 0].view(), 2, OutOfRange::Error)?;
    /// let y = edges.softmax(array![[1000.0], [5.0], [1000.0]].view())?;
    /// assert_eq!(y, array![[0.5], [1.0], [0.5]]);
    /// let grad_x = edges.softmax_adjoint(array![[1.0], [1.0], [0.0]].view(), y.view())?;
    /// assert_eq!(grad_x, array![[0.25], [0.0], [-0.25]]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn softmax<T: Real>(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.plan.per_batch, self.channels_of_rows("x", x.shape())?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (totals, maxima, x) = (self.buffer(shape[1])?, self.maxima(x)?, dense(&x)?);
        let mut y: Array2<T> =
            buffer.fill(&shape, |cells| self.exponentials(&x, &maxima, shape[1], Output::fresh(cells)));
        self.normalize(totals, &mut y.view_mut());
        Ok(y)
    }

    /// [`Segments::softmax`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn softmax_into<T: Real>(&self, x: ArrayView2<'_, T>, mut y: ArrayViewMut2<'_, T>) -> Result<()> {
        let width = self.channels_of_rows("x", x.shape())?;
        check_shape("y", y.shape(), x.shape())?;
        let (totals, maxima, x) = (self.buffer(width)?, self.maxima(x)?, dense(&x)?);
        let _ = self.exponentials(&x, &maxima, width, Output::array(y.view_mut(), Start::Zero));
        self.normalize(totals, &mut y);
        Ok(())
    }

    /// The gradient of [`Segments::softmax`] with the result `y` (M, C) for the gradient `grad_y` (M, C): a new array (M, C),
    /// `y[m, :] * (grad_y[m, :] - sum of y[k, :] * grad_y[k, :])` over the rows k of the segment, ascending. O((M + S) x C).
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    pub fn softmax_adjoint<T: Real>(&self, grad_y: ArrayView2<'_, T>, y: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.plan.per_batch, self.channels_of_rows("y", y.shape())?];
        check_shape("grad_y", grad_y.shape(), &shape)?;
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (dots, grad_y, y) = (self.buffer(shape[1])?, dense(&grad_y)?, dense(&y)?);
        Ok(buffer.fill(&shape, |cells| self.pull_softmax(dots, &grad_y, &y, shape[1], Output::fresh(cells))))
    }

    /// [`Segments::softmax_adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn softmax_adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        y: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let width = self.channels_of_rows("y", y.shape())?;
        check_shape("grad_y", grad_y.shape(), y.shape())?;
        check_shape("grad_x", grad_x.shape(), y.shape())?;
        let (dots, grad_y, y) = (self.buffer(width)?, dense(&grad_y)?, dense(&y)?);
        let _ = self.pull_softmax(dots, &grad_y, &y, width, Output::array(grad_x, Start::Zero));
        Ok(())
    }

    /// [`Segments::softmax_adjoint`] added to the caller's array; rows without a segment stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`]; nothing is written then.
    pub fn softmax_adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        y: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        check_shape("grad_x", grad_x.shape(), y.shape())?;
        self.add(&self.softmax_adjoint(grad_y, y)?, grad_x);
        Ok(())
    }

    /// `y[s, :] = max + ln(sum of exp(x[k, :] - max))` over the rows k of each segment s, ascending, max being the largest
    /// element of the segment, or 0 where that is infinite or NaN: a new array (S, C). An empty segment has -infinity, the
    /// logarithm of an empty sum. O((M + S) x C).
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::gather::Segments;
    /// use pullback::ndarray::array;
    ///
    /// let segments = Segments::from_lengths(array![2, 0].view(), 2)?;
    /// let x = array![[1000.0], [1000.0]];
    /// let y = segments.log_sum_exp(x.view())?;
    /// assert_eq!(y, array![[1000.0 + 2f64.ln()], [f64::NEG_INFINITY]]);
    /// let grad_x = segments.log_sum_exp_adjoint(array![[1.0], [1.0]].view(), x.view(), y.view())?;
    /// assert!((grad_x - array![[0.5], [0.5]]).iter().all(|error: &f64| error.abs() < 1e-12));
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn log_sum_exp<T: Real>(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        let shape = [self.len(), self.channels_of_rows("x", x.shape())?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let (maxima, x) = (self.maxima(x)?, dense(&x)?);
        Ok(buffer.fill(&shape, |cells| self.log_sums(&x, &maxima, shape[1], Output::fresh(cells))))
    }

    /// [`Segments::log_sum_exp`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn log_sum_exp_into<T: Real>(&self, x: ArrayView2<'_, T>, y: ArrayViewMut2<'_, T>) -> Result<()> {
        let width = self.channels_of_rows("x", x.shape())?;
        check_shape("y", y.shape(), &[self.len(), width])?;
        let (maxima, x) = (self.maxima(x)?, dense(&x)?);
        let _ = self.log_sums(&x, &maxima, width, Output::array(y, Start::Zero));
        Ok(())
    }

    /// The gradient of [`Segments::log_sum_exp`] at `x` (M, C) with the result `y` (S, C) for the gradient `grad_y` (S, C): a
    /// new array (M, C), `grad_y[s, :] * exp(x[m, :] - y[s, :])`, where a `y` of -infinity is not subtracted. O((M + S) x C).
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`].
    pub fn log_sum_exp_adjoint<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        x: ArrayView2<'_, T>,
        y: ArrayView2<'_, T>,
    ) -> Result<Array2<T>> {
        let shape = [self.plan.per_batch, self.check_log_sums(&grad_y, &x, &y)?];
        let buffer = Buffer::new(elements::<T>(&shape)?)?;
        let inputs = [dense(&grad_y)?, dense(&x)?, dense(&y)?];
        let [grad_y, x, y] = inputs.each_ref().map(|input| &**input);
        Ok(buffer.fill(&shape, |cells| self.pull_log_sums([grad_y, x, y], shape[1], Output::fresh(cells))))
    }

    /// [`Segments::log_sum_exp_adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) or [`Error::Allocation`](crate::Error::Allocation); nothing is written then.
    pub fn log_sum_exp_adjoint_into<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        x: ArrayView2<'_, T>,
        y: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        let width = self.check_log_sums(&grad_y, &x, &y)?;
        check_shape("grad_x", grad_x.shape(), x.shape())?;
        let inputs = [dense(&grad_y)?, dense(&x)?, dense(&y)?];
        let inputs = inputs.each_ref().map(|input| &**input);
        let _ = self.pull_log_sums(inputs, width, Output::array(grad_x, Start::Zero));
        Ok(())
    }

    /// [`Segments::log_sum_exp_adjoint`] added to the caller's array; rows without a segment stay as they are.
    ///
    /// # Errors
    ///
    /// As [`Segments::forward`]; nothing is written then.
    pub fn log_sum_exp_adjoint_add<T: Real>(
        &self,
        grad_y: ArrayView2<'_, T>,
        x: ArrayView2<'_, T>,
        y: ArrayView2<'_, T>,
        grad_x: ArrayViewMut2<'_, T>,
    ) -> Result<()> {
        check_shape("grad_x", grad_x.shape(), x.shape())?;
        self.add(&self.log_sum_exp_adjoint(grad_y, x, y)?, grad_x);
        Ok(())
    }

    fn check_log_sums<T: Real>(
        &self,
        grad_y: &ArrayView2<'_, T>,
        x: &ArrayView2<'_, T>,
        y: &ArrayView2<'_, T>,
    ) -> Result<usize> {
        let width = self.channels_of_rows("x", x.shape())?;
        check_shape("y", y.shape(), &[self.len(), width])?;
        check_shape("grad_y", grad_y.shape(), y.shape())?;
        Ok(width)
    }

    /// Memory for a row of `width` a segment.
    fn buffer<T: Real>(&self, width: usize) -> Result<Buffer<T>> {
        Buffer::new(elements::<T>(&[self.len(), width])?)
    }

    /// The largest elements of every segment, and the value for empty ones.
    fn maxima<T: Real>(&self, x: ArrayView2<'_, T>) -> Result<Array2<T>> {
        Ok(self.extremes(Extremum::Max, x)?.values)
    }

    fn exponentials<T: Real>(&self, x: &[T], maxima: &Array2<T>, width: usize, y: Output<'_, T>) -> Filled {
        let (ids, maxima) = (self.plan.batch(0), maxima.as_slice().expect("made in one piece"));
        self.each_row_tile(width, y, |rows, tile| {
            let x = &x[rows.start * width..rows.end * width];
            T::exp_rows(x, &ids[rows], maxima, width, tile);
        })
    }

    /// Divides every row by the sum of the rows of its segment.
    fn normalize<T: Real>(&self, totals: Buffer<T>, y: &mut ArrayViewMut2<'_, T>) {
        let (cells, width, ids) = (self.len() * y.dim().1, y.dim().1, self.plan.batch(0));
        let totals: Array1<T> = totals.fill(&[cells], |cells| {
            Spread::of_positions(&self.plan, Rows::new(&y.view()), width).reduce(Output::fresh(cells))
        });
        let totals = totals.as_slice().expect("made in one piece");
        let _ = self.each_row_tile(width, Output::array(y.view_mut(), Start::Values), |rows, tile| {
            T::divide_by_totals(self.plan.level, tile.accumulators(), &ids[rows], totals, width);
        });
    }

    fn pull_softmax<T: Real>(
        &self,
        dots: Buffer<T>,
        grad_y: &[T],
        y: &[T],
        width: usize,
        grad_x: Output<'_, T>,
    ) -> Filled {
        let ids = self.plan.batch(0);
        let dots: Array1<T> = dots.fill(&[self.len() * width], |cells| {
            self.each_segment_tile(width, Output::fresh(cells), |segments, tile| {
                T::sum_products(self.plan.level, [y, grad_y], self.members(segments), width, tile);
            })
        });
        let dots = dots.as_slice().expect("made in one piece");
        self.each_row_tile(width, grad_x, |rows, tile| {
            let part = rows.start * width..rows.end * width;
            T::pull_softmax(self.plan.level, &y[part.clone()], &grad_y[part], &ids[rows], dots, width, tile);
        })
    }

    fn log_sums<T: Real>(&self, x: &[T], maxima: &Array2<T>, width: usize, y: Output<'_, T>) -> Filled {
        let maxima = maxima.as_slice().expect("made in one piece");
        self.each_segment_tile(width, y, |segments, tile| {
            let maxima = &maxima[segments.start * width..segments.end * width];
            T::log_sum_rows(x, self.members(segments), maxima, width, tile);
        })
    }

    fn pull_log_sums<T: Real>(&self, [grad_y, x, y]: [&[T]; 3], width: usize, grad_x: Output<'_, T>) -> Filled {
        let ids = self.plan.batch(0);
        self.each_row_tile(width, grad_x, |rows, tile| {
            let x = &x[rows.start * width..rows.end * width];
            T::pull_log_sum(x, y, grad_y, &ids[rows], width, tile);
        })
    }
}
