//! Triangular correlations: what a product gives back to its right factor, as an operator of its own.

use super::operator::{Settings, adjoint_forms, adjustable, finite_groups, finite_pairs, finite_triples, rounded};
use super::pairing::Pairing;
use super::sequence::{Change, Sequence};
use super::shapes::{Form, behind, check_shared, check_sizes, cotangents, deliver, split, widened};
use super::triangle::{Pairs, Triangle};
use super::tuning::Tuning;
use super::weights::{Binomials, Weights};
use crate::Real;
use crate::error::Result;
use crate::layout::{check_shape, dense};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension};
use std::marker::PhantomData;
use std::ops::Range;

/// The triangular correlation of two sequences of matrices, `D_i = sum over j of w(i + j, j) A_j^T G_{i+j}`, and its
/// gradients.
///
/// It is the adjoint of a [`Product`](super::Product) to its right factor. The sum is over all j for which both factors
/// are given. With leading axes of any number:
///
/// | | shape |
/// |---|---|
/// | `a` | (..., la, p, m) |
/// | `g` | (..., lg, p, q), or (lg, p, q), which all members of the batch share |
/// | `d` | (..., n, m, q) |
///
/// Weights are those of a product. Every entry is within `(terms p + 16) u sum w |A_j|^T |G_{i+j}|`, with `u` = 2^-24
/// for `f32` and 2^-53 for `f64`. Results are the same bits for every number of threads, and the same at [`Level::V3`](crate::Level::V3)
/// and [`Level::V4`](crate::Level::V4).
///
/// # Examples
///
/// ```
/// use pullback::ndarray::array;
/// use pullback::triconv::{Correlation, Weights};
///
/// let (a, g) = (array![[[1.0]], [[2.0]]], array![[[3.0]], [[4.0]], [[5.0]]]);
/// let correlation = Correlation::<f64>::new(2, Weights::Binomial)?;
/// let d = correlation.forward(a.view(), g.view())?;
/// assert_eq!(d.as_slice(), Some(&[3.0 + 2.0 * 4.0, 4.0 + 2.0 * 2.0 * 5.0][..]));
///
/// let gradients = correlation.adjoint(array![[[1.0]], [[0.0]]].view(), a.view(), g.view())?;
/// assert_eq!(gradients.grad_a.as_slice(), Some(&[3.0, 4.0][..]));
/// assert_eq!(gradients.grad_g.as_slice(), Some(&[1.0, 2.0, 0.0][..]));
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Correlation<T> {
    n: usize,
    settings: Settings,
    element: PhantomData<T>,
}

/// The gradients that [`Correlation::adjoint`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct CorrelationGradients<T> {
    /// With respect to `a`.
    pub grad_a: ArrayD<T>,
    /// With respect to `g`; the sum over the batch where it is shared.
    pub grad_g: ArrayD<T>,
}

adjustable!(Correlation);
adjoint_forms!(Correlation, grad_d, a, g => grad_a, grad_g);

/// The triangle of `sum over j of w A_j^T G_{i+j}`.
pub(super) fn correlate<'a, T: Real>(
    settings: Settings,
    (a, g): (Sequence<'a, T>, Sequence<'a, T>),
    (pairing, binomials, scaled): (Pairing, Option<Binomials>, bool),
    pairs: Pairs,
    range: Range<usize>,
) -> Triangle<'a, T> {
    Triangle {
        left: a,
        left_transposed: true,
        right: g,
        change: Change::default(),
        pairing,
        binomials,
        scaled,
        pairs,
        range,
        settings,
    }
}

/// The sizes of a call.
struct Call {
    leading: Vec<usize>,
    la: usize,
    lg: usize,
    p: usize,
    m: usize,
    q: usize,
    shared: bool,
}

impl Call {
    fn items(&self) -> usize {
        self.leading.iter().product()
    }

    fn a<'a, T>(&self, cells: &'a [T]) -> Sequence<'a, T> {
        Sequence { cells, items: self.items(), len: self.la, rows: self.p, columns: self.m }
    }

    fn g<'a, T>(&self, cells: &'a [T]) -> Sequence<'a, T> {
        let items = if self.shared { 1 } else { self.items() };
        Sequence { cells, items, len: self.lg, rows: self.p, columns: self.q }
    }

    /// The n of the largest binomial coefficient.
    fn most(&self) -> usize {
        self.lg.saturating_sub(1)
    }
}

impl<T: Real> Correlation<T> {
    /// An operator whose result is terms 0 to `n` - 1.
    ///
    /// # Errors
    ///
    /// [`Error::Environment`](crate::Error::Environment) from [`Level::current`](crate::Level::current).
    pub fn new(n: usize, weights: Weights) -> Result<Self> {
        Ok(Self { n, settings: Settings::new(weights)?, element: PhantomData })
    }

    /// The correlation of `a` (..., la, p, m) and `g` (..., lg, p, q): a new array (..., n, m, q). O(n la p m q)
    /// operations.
    ///
    /// # Errors
    ///
    /// As [`Product::forward`](super::Product::forward).
    pub fn forward(
        &self,
        a: ArrayView<'_, T, impl Dimension>,
        g: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ArrayD<T>> {
        let call = self.call(a.shape(), g.shape())?;
        let (a_cells, g_cells) = (dense(&a)?, dense(&g)?);
        let (a_cells, g_cells) = (call.a(&a_cells), call.g(&g_cells));
        if self.settings.wide::<T>(call.most()) {
            let result = self.in_f64().forward(widened(&a)?.view(), widened(&g)?.view())?;
            return rounded("d", &result, self.n, finite_pairs(a_cells, g_cells));
        }
        let triangle = self.triangle(&call, a_cells, g_cells);
        triangle.owned("d", &self.result(&call), finite_pairs(a_cells, g_cells))
    }

    /// [`Correlation::forward`] into the caller's array (..., n, m, q), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Correlation::forward`]. Nothing is written then, but for [`Error::Overflow`](crate::Error::Overflow), which
    /// leaves anything in `d`.
    pub fn forward_into(
        &self,
        a: ArrayView<'_, T, impl Dimension>,
        g: ArrayView<'_, T, impl Dimension>,
        d: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        let call = self.call(a.shape(), g.shape())?;
        check_shape("d", d.shape(), &self.result(&call))?;
        if self.settings.wide::<T>(call.most()) {
            deliver(&self.forward(a, g)?, d, Form::Overwrite);
            return Ok(());
        }
        let (a, g) = (dense(&a)?, dense(&g)?);
        let (a, g) = (call.a(&a), call.g(&g));
        self.triangle(&call, a, g).write_into("d", d, finite_pairs(a, g))
    }

    /// The gradients of [`Correlation::forward`] at `a` and `g` for the gradient `grad_d` (..., n, m, q) of its result,
    /// or several of them, (R, ..., n, m, q): new arrays shaped as `a` and `g`, behind an axis of R where there is one.
    /// Twice the operations of a correlation, R times.
    ///
    /// # Errors
    ///
    /// As [`Correlation::forward`].
    pub fn adjoint(
        &self,
        grad_d: ArrayView<'_, T, impl Dimension>,
        a: ArrayView<'_, T, impl Dimension>,
        g: ArrayView<'_, T, impl Dimension>,
    ) -> Result<CorrelationGradients<T>> {
        let call = self.call(a.shape(), g.shape())?;
        let several = cotangents("grad_d", grad_d.shape(), &self.result(&call))?;
        let (d, a_cells, g_cells) = (dense(&grad_d)?, dense(&a)?, dense(&g)?);
        let (a_cells, g_cells) = (call.a(&a_cells), call.g(&g_cells));
        let items = call.items() * several.unwrap_or(1);
        let d = Sequence { cells: &d[..], items, len: self.n, rows: call.m, columns: call.q };
        let summed = call.shared.then_some(call.items());
        let is_finite = finite_triples(d, a_cells, g_cells);
        if self.settings.wide::<T>(call.most()) {
            let wide = self.in_f64().adjoint(widened(&grad_d)?.view(), widened(&a)?.view(), widened(&g)?.view())?;
            let grad_a = rounded("grad_a", &wide.grad_a, call.la, &is_finite)?;
            let grad_g = rounded("grad_g", &wide.grad_g, call.lg, finite_groups(summed, &is_finite))?;
            return Ok(CorrelationGradients { grad_a, grad_g });
        }
        // To A_j: the sum over k of w(k, j) G_k D_{k-j}^T.
        let to_a = Triangle {
            left: g_cells,
            left_transposed: false,
            right: d,
            change: Change { transposed: true, ..Change::default() },
            pairing: Pairing::Shift { first: 0 },
            binomials: self.binomials(Binomials::OfTerm { first: 0 }),
            scaled: self.settings.scaled(call.most()),
            pairs: Pairs { groups: items, summed: 1 },
            range: 0..call.la,
            settings: self.settings,
        };
        let grad_a = to_a.owned("grad_a", &behind(several, a.shape()), &is_finite)?;
        // To G_k: the product, the sum over j of w(k, j) A_j D_{k-j}.
        let to_g = Triangle {
            left: a_cells,
            left_transposed: false,
            change: Change::default(),
            pairing: Pairing::Convolution,
            binomials: self.binomials(Binomials::OfOutput),
            pairs: Pairs::new(several.unwrap_or(1), call.items(), call.shared),
            range: 0..call.lg,
            ..to_a
        };
        let grad_g = to_g.owned("grad_g", &behind(several, g.shape()), finite_groups(summed, &is_finite))?;
        Ok(CorrelationGradients { grad_a, grad_g })
    }

    /// The shapes of gradients, where the arrays of [`Correlation::adjoint`] belong together.
    fn check_adjoint(&self, grad_d: &[usize], a: &[usize], g: &[usize]) -> Result<[Vec<usize>; 2]> {
        let call = self.call(a, g)?;
        let several = cotangents("grad_d", grad_d, &self.result(&call))?;
        Ok([behind(several, a), behind(several, g)])
    }

    fn call(&self, a: &[usize], g: &[usize]) -> Result<Call> {
        let (leading, [la, p, m]) = split("a", a)?;
        let (_, [lg, _, q]) = split("g", g)?;
        check_sizes(&[("p", p), ("m", m), ("q", q)])?;
        let shared = check_shared("g", g, leading, &[lg, p, q])?;
        Ok(Call { leading: leading.to_vec(), la, lg, p, m, q, shared })
    }

    /// The shape of the result.
    fn result(&self, call: &Call) -> Vec<usize> {
        [&call.leading[..], &[self.n, call.m, call.q]].concat()
    }

    fn binomials(&self, binomials: Binomials) -> Option<Binomials> {
        (self.settings.weights == Weights::Binomial).then_some(binomials)
    }

    fn in_f64(&self) -> Correlation<f64> {
        Correlation { n: self.n, settings: self.settings.to_be_rounded(), element: PhantomData }
    }

    fn triangle<'a>(&self, call: &Call, a: Sequence<'a, T>, g: Sequence<'a, T>) -> Triangle<'a, T> {
        let rule =
            (Pairing::Correlation { first: 0 }, self.binomials(Binomials::OfSum), self.settings.scaled(call.most()));
        correlate(self.settings, (a, g), rule, Pairs { groups: call.items(), summed: 1 }, 0..self.n)
    }
}
