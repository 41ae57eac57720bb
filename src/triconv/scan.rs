//! The triangular scan: the recurrence of Taylor coefficients and derivatives of a linear differential equation.

use super::faults::Faults;
use super::kernels::Divide;
use super::method::Method;
use super::operator::{Settings, adjustable, finite_pairs, rounded};
use super::recurrence::{Recurrence, Rule, Terms};
use super::sequence::Sequence;
use super::shapes::{Form, check_parts, check_shared, check_sizes, deliver, split, widened};
use super::tuning::Tuning;
use super::weights::{Binomials, Weights};
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, Start};
use crate::error::{Error, Result};
use crate::layout::{dense, elements};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension};
use std::marker::PhantomData;

/// On which side of a product the known sequence stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Side {
    /// `A' = A B`: `A_k` are p x m.
    #[default]
    Right,
    /// `A' = B A`: `A_k` are m x p.
    Left,
}

/// The triangular scan `A_{k+1} = S_{k+1} + sum over j <= k of w(k, j) A_j B_{k-j}`, for k = 0 to n - 1, and its
/// gradients.
///
/// It is the rule of Leibniz for `A' = A B + F`: from the value of A and the derivatives of B it makes those of A. What
/// the sequences are, derivatives, Taylor coefficients or plain numbers, is one of [`Weights`]. With leading axes of
/// any number:
///
/// | | [`Side::Right`] | [`Side::Left`], `A' = B A + F` |
/// |---|---|---|
/// | `a0`, `A_0` | (..., p, m) | (..., m, p) |
/// | `s`, S with `A_0` as `S_0` | (..., n + 1, p, m) | (..., n + 1, m, p) |
/// | `b` | (..., n, m, m), or (n, m, m), which all members of the batch share | the same |
/// | `a`, A | (..., n + 1, p, m) | (..., n + 1, m, p) |
///
/// In [`Weights::Taylor`] S is added after the division by k + 1: `A' = A B + F` means `S_{k+1}` = `F_k` / (k + 1).
///
/// # Precision
///
/// Given the `A_0` to `A_k` that were computed, an entry of `A_{k+1}` is within `((k + 1) m + 16) u (|S_{k+1}| + sum w
/// |A_j| |B_{k-j}|)`, with `u` = 2^-24 for `f32` and 2^-53 for `f64`. Integers are exact while the sums of absolute
/// values are below 2^53 (2^24). Results are the same bits for every number of threads, and the same at [`Level::V3`](crate::Level::V3)
/// and [`Level::V4`](crate::Level::V4). What is not finite in `B_i` or `S_i` reaches no `A_k` with k <= i, or k < i. That is
/// [`Method::Direct`]; [`Method::Relaxed`] adds a tolerance to the first, and integers are not exact.
///
/// # Gradients
///
/// With `G_n` the gradient of `A_n` and so on, `G_j` += w(k, j) `G_{k+1}` `B_{k-j}^T` for k = n - 1 to 0, which is the
/// gradient of `S_j` too; that of `B_i` is the sum over j of w(i + j, j) `A_j^T` `G_{i+j+1}`. Nothing is saved but A.
/// Twice the operations of a scan.
///
/// # Examples
///
/// ```
/// use pullback::ndarray::{array, Array3};
/// use pullback::triconv::{Scan, Weights};
///
/// // A' = A B with B = exp, at 0: every derivative of B is 1, and those of A = exp(exp - 1) are the Bell numbers.
/// let scan = Scan::<f64>::new(5, Weights::Binomial)?;
/// let (a0, b) = (array![[1.0]], Array3::ones((5, 1, 1)));
/// let a = scan.forward(a0.view(), b.view())?; // (6, 1, 1)
/// assert_eq!(a.as_slice(), Some(&[1.0, 1.0, 2.0, 5.0, 15.0, 52.0][..]));
///
/// // The gradient of A_3.
/// let mut grad_a = a.clone();
/// grad_a.fill(0.0);
/// grad_a[[3, 0, 0]] = 1.0;
/// let gradients = scan.adjoint(grad_a.view(), a.view(), b.view())?;
/// assert_eq!(gradients.grad_s[[0, 0, 0]], 5.0);
/// assert_eq!(gradients.grad_b.as_slice(), Some(&[6.0, 3.0, 1.0, 0.0, 0.0][..]));
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Scan<T> {
    pub(super) n: usize,
    pub(super) side: Side,
    pub(super) method: Method,
    pub(super) settings: Settings,
    element: PhantomData<T>,
}

adjustable!(Scan);

/// The sizes of a call.
pub(super) struct Call {
    pub(super) leading: Vec<usize>,
    pub(super) p: usize,
    pub(super) m: usize,
    pub(super) shared: bool,
}

impl Call {
    pub(super) fn items(&self) -> usize {
        self.leading.iter().product()
    }

    pub(super) fn b<'a, T>(&self, cells: &'a [T], n: usize) -> Sequence<'a, T> {
        let items = if self.shared { 1 } else { self.items() };
        Sequence { cells, items, len: n, rows: self.m, columns: self.m }
    }
}

impl<T: Real> Scan<T> {
    /// A scan of `n` steps, `b` to the right.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where no number counts `A_0` to `A_n`, and [`Error::Environment`] from [`Level::current`](crate::Level::current).
    pub fn new(n: usize, weights: Weights) -> Result<Self> {
        if n == usize::MAX {
            return Err(Error::TooLarge { argument: "n", value: n as u128, limit: n as u128 - 1 });
        }
        let settings = Settings::new(weights)?;
        Ok(Self { n, side: Side::default(), method: Method::default(), settings, element: PhantomData })
    }

    /// The same scan with `b` on a side.
    #[must_use]
    pub fn with_side(mut self, side: Side) -> Self {
        self.side = side;
        self
    }

    /// The same scan by a method.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where the tolerance of [`Method::Relaxed`] is not finite and above 0;
    /// [`Error::MethodUnavailable`] for it with [`Weights::Binomial`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::ndarray::{Array2, Array3};
    /// use pullback::triconv::{Method, Scan, Weights};
    ///
    /// let (a0, b) = (Array2::ones((1, 2)), Array3::from_elem((3000, 2, 2), 0.25));
    /// let scan = Scan::<f64>::new(3000, Weights::Taylor)?;
    /// let direct = scan.forward(a0.view(), b.view())?;
    /// let relaxed = scan.with_method(Method::Relaxed { tolerance: 1e-9 })?.forward(a0.view(), b.view())?;
    /// assert!(relaxed.iter().zip(&direct).all(|(x, y)| (x - y).abs() < 1e-8 * y));
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn with_method(mut self, method: Method) -> Result<Self> {
        if let Method::Relaxed { tolerance } = method {
            if !(tolerance > 0.0 && tolerance.is_finite()) {
                let value = tolerance.to_string();
                return Err(Error::Parameter { argument: "tolerance", value, expected: "above 0" });
            }
            if self.settings.weights == Weights::Binomial {
                let (method, weights, accepted) = ("Relaxed", "Binomial", "Taylor and Plain");
                return Err(Error::MethodUnavailable { method, weights, accepted });
            }
        }
        self.method = method;
        Ok(self)
    }

    /// `A_0` to `A_n`, from `A_0` alone: `a0` (..., p, m) and `b` (..., n, m, m) give a new array (..., n + 1, p, m). n
    /// (n + 1) / 2 products of matrices.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::Shape`] where arrays do not belong
    /// together; [`Error::Parameter`] where matrices have no rows or columns;
    /// [`Error::Overflow`] where a result of finite arrays is beyond the floats;
    /// [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn forward(
        &self,
        a0: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ArrayD<T>> {
        let (leading, sizes) = split("a0", a0.shape())?;
        let call = self.call(leading, sizes, b.shape())?;
        if self.is_wide() {
            let result = self.in_f64().forward(widened(&a0)?.view(), widened(&b)?.view())?;
            return self.rounded(&result, (a0, 1), b, &call);
        }
        self.owned((a0, Terms::Alone), b, &call)
    }

    /// [`Scan::forward`] into the caller's array (..., n + 1, p, m), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Scan::forward`]. Nothing is written then, but for [`Error::Overflow`], which leaves
    /// anything in `a`.
    pub fn forward_into(
        &self,
        a0: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
        a: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        let (leading, sizes) = split("a0", a0.shape())?;
        let call = self.call(leading, sizes, b.shape())?;
        self.check_result("a", a.shape(), &call)?;
        if self.is_wide() {
            deliver(&self.forward(a0, b)?, a, Form::Overwrite);
            return Ok(());
        }
        self.write_into((a0, Terms::Alone), b, a, &call)
    }

    /// `A_0` to `A_n` with inhomogeneous terms: `s` (..., n + 1, p, m), in which `S_0` is `A_0`, and `b` (..., n, m, m)
    /// give a new array (..., n + 1, p, m).
    ///
    /// # Errors
    ///
    /// As [`Scan::forward`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::ndarray::{array, Array3};
    /// use pullback::triconv::{Scan, Weights};
    ///
    /// // A' = A + 1 from 0: A = exp - 1, whose Taylor coefficients are 1 / k!.
    /// let b = array![[[1.0]], [[0.0]], [[0.0]]];
    /// let s = array![[[0.0]], [[1.0]], [[0.0]], [[0.0]]];
    /// let a = Scan::<f64>::new(3, Weights::Taylor)?.forward_with(s.view(), b.view())?;
    /// assert_eq!(a.as_slice(), Some(&[0.0, 1.0, 1.0 / 2.0, 1.0 / 6.0][..]));
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn forward_with(
        &self,
        s: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ArrayD<T>> {
        let call = self.call_of("s", s.shape(), b.shape())?;
        if self.is_wide() {
            let result = self.in_f64().forward_with(widened(&s)?.view(), widened(&b)?.view())?;
            return self.rounded(&result, (s, self.n + 1), b, &call);
        }
        self.owned((s, Terms::All), b, &call)
    }

    /// [`Scan::forward_with`] into the caller's array (..., n + 1, p, m), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Scan::forward_into`].
    pub fn forward_with_into(
        &self,
        s: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
        a: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        let call = self.call_of("s", s.shape(), b.shape())?;
        self.check_result("a", a.shape(), &call)?;
        if self.is_wide() {
            deliver(&self.forward_with(s, b)?, a, Form::Overwrite);
            return Ok(());
        }
        self.write_into((s, Terms::All), b, a, &call)
    }

    fn owned(
        &self,
        (start, kind): (ArrayView<'_, T, impl Dimension>, Terms),
        b: ArrayView<'_, T, impl Dimension>,
        call: &Call,
    ) -> Result<ArrayD<T>> {
        let start = turned(start, self.side);
        let (start, b) = (dense(&start)?, dense(&b)?);
        let (s, b) = (self.start(&start, kind, call), call.b(&b, self.n));
        let recurrence = self.recurrence(call, b)?;
        let shape = [&call.leading[..], &[self.n + 1, call.p, call.m]].concat();
        let (buffer, faults) = (Buffer::new(elements::<T>(&shape)?)?, Faults::default());
        let scratch = recurrence.scratch()?;
        let result: ArrayD<T> =
            buffer.fill(&shape, |a| recurrence.write((s, kind), scratch, Output::fresh(a), &faults));
        self.settings.check(faults, "a", finite_pairs(s, b))?;
        Ok(turned_back(result, self.side))
    }

    fn write_into(
        &self,
        (start, kind): (ArrayView<'_, T, impl Dimension>, Terms),
        b: ArrayView<'_, T, impl Dimension>,
        mut a: ArrayViewMut<'_, T, impl Dimension>,
        call: &Call,
    ) -> Result<()> {
        let start = turned(start, self.side);
        let (start, b) = (dense(&start)?, dense(&b)?);
        let (s, b) = (self.start(&start, kind, call), call.b(&b, self.n));
        let recurrence = self.recurrence(call, b)?;
        let (scratch, faults) = (recurrence.scratch()?, Faults::default());
        if self.side == Side::Left {
            let axes = a.ndim();
            a.swap_axes(axes - 2, axes - 1);
        }
        let _: Filled = recurrence.write((s, kind), scratch, Output::array(a, Start::Zero), &faults);
        self.settings.check(faults, "a", finite_pairs(s, b))
    }

    /// What the scan starts from.
    fn start<'a>(&self, cells: &'a [T], kind: Terms, call: &Call) -> Sequence<'a, T> {
        let len = if kind == Terms::Alone { 1 } else { self.n + 1 };
        Sequence { cells, items: call.items(), len, rows: call.p, columns: call.m }
    }

    fn recurrence<'a>(&self, call: &Call, b: Sequence<'a, T>) -> Result<Recurrence<'a, T>> {
        let plain = self.rule();
        let rule = match self.settings.weights {
            Weights::Binomial => Rule { binomials: Some(Binomials::OfOutput), scaled: self.scaled(), ..plain },
            Weights::Taylor => Rule { divide: Divide::Sums, ..plain },
            Weights::Plain => plain,
        };
        let settings = (self.settings.level, self.settings.tuning);
        Recurrence::new(b, self.side == Side::Left, (call.items(), call.p), rule, settings)
    }

    /// That of plain sequences.
    pub(super) fn rule(&self) -> Rule {
        let relaxed = match self.method {
            Method::Direct => None,
            Method::Relaxed { tolerance } => Some(tolerance),
        };
        Rule { binomials: None, divide: Divide::Nothing, scaled: false, relaxed }
    }

    /// Rounds a result in `f64`.
    fn rounded(
        &self,
        result: &ArrayD<f64>,
        (start, len): (ArrayView<'_, T, impl Dimension>, usize),
        b: ArrayView<'_, T, impl Dimension>,
        call: &Call,
    ) -> Result<ArrayD<T>> {
        let (start, b) = (dense(&start)?, dense(&b)?);
        let start = Sequence { cells: &start[..], items: call.items(), len, rows: call.p, columns: call.m };
        rounded("a", result, self.n + 1, finite_pairs(start, call.b(&b, self.n)))
    }

    /// Checks arrays of n + 1 matrices and `b`.
    pub(super) fn call_of(&self, argument: &'static str, found: &[usize], b: &[usize]) -> Result<Call> {
        let (leading, [len, rows, columns]) = split(argument, found)?;
        if len != self.n + 1 {
            check_parts(argument, found, &[leading, &[self.n + 1, rows, columns]])?;
        }
        self.call(leading, [rows, columns], b)
    }

    fn call(&self, leading: &[usize], [rows, columns]: [usize; 2], b: &[usize]) -> Result<Call> {
        let (p, m) = if self.side == Side::Right { (rows, columns) } else { (columns, rows) };
        check_sizes(&[("p", p), ("m", m)])?;
        split::<3>("b", b)?;
        let shared = check_shared("b", b, leading, &[self.n, m, m])?;
        Ok(Call { leading: leading.to_vec(), p, m, shared })
    }

    /// Checks an array of the results' shape.
    pub(super) fn check_result(&self, argument: &'static str, found: &[usize], call: &Call) -> Result<()> {
        let matrix = if self.side == Side::Right { [call.p, call.m] } else { [call.m, call.p] };
        check_parts(argument, found, &[&call.leading, &[self.n + 1], &matrix])
    }

    /// The n of the largest binomial coefficient.
    fn most(&self) -> usize {
        self.n.saturating_sub(1)
    }

    pub(super) fn scaled(&self) -> bool {
        self.settings.scaled(self.most())
    }

    pub(super) fn is_wide(&self) -> bool {
        self.settings.wide::<T>(self.most())
    }

    pub(super) fn in_f64(&self) -> Scan<f64> {
        let settings = self.settings.to_be_rounded();
        Scan { n: self.n, side: self.side, method: self.method, settings, element: PhantomData }
    }
}

/// A view of matrices as those of a scan with `b` to the right.
pub(super) fn turned<T, D: Dimension>(mut view: ArrayView<'_, T, D>, side: Side) -> ArrayView<'_, T, D> {
    if side == Side::Left {
        let axes = view.ndim();
        view.swap_axes(axes - 2, axes - 1);
    }
    view
}

/// Matrices of a scan with `b` to the right as those of one with `b` on a side, in standard layout.
pub(super) fn turned_back<T: Real>(mut matrices: ArrayD<T>, side: Side) -> ArrayD<T> {
    if side == Side::Left {
        let axes = matrices.ndim();
        matrices.swap_axes(axes - 2, axes - 1);
        return matrices.as_standard_layout().into_owned();
    }
    matrices
}
