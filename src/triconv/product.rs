//! Products of sequences, and their gradients.

use super::correlation::correlate;
use super::operator::{Settings, adjoint_forms, adjustable, finite_groups, finite_pairs, finite_triples, rounded};
use super::pairing::Pairing;
use super::sequence::{Change, Sequence};
use super::shapes::{Form, behind, check_shared, check_sizes, cotangents, deliver, split, widened};
use super::triangle::{Pairs, Triangle};
use super::tuning::Tuning;
use super::weights::{Binomials, Weights};
use crate::Real;
use crate::error::{Error, Result};
use crate::layout::{check_shape, dense};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension};
use std::marker::PhantomData;
use std::ops::Range;

/// The product of two sequences of matrices, `C_k = sum over j of w(k, j) A_j B_{k-j}`, and its gradients.
///
/// The sum is over all j for which both factors are given. With leading axes of any number:
///
/// | | shape |
/// |---|---|
/// | `a` | (..., la, p, m) |
/// | `b` | (..., lb, m, q), or (lb, m, q), which all members of the batch share |
/// | `c` | (..., n, p, q): terms 0 to n - 1, or those of a range |
///
/// The lengths may differ, from each other and from n. The products of C(k, j) are those of derivatives or exponential
/// generating functions, [`Weights::Binomial`]; others are plain, those of [`Weights::Taylor`] too, since a product of
/// Taylor series has the plain product of the coefficients.
///
/// # Precision
///
/// Every entry is within `(terms m + 16) u sum w |A_j| |B_{k-j}|`, with `u` = 2^-24 for `f32` and 2^-53 for `f64`.
/// Results are the same bits for every number of threads, and the same at [`Level::V3`](crate::Level::V3) and [`Level::V4`](crate::Level::V4). What is not
/// finite reaches only the results whose sums hold it.
///
/// # Examples
///
/// ```
/// use pullback::ndarray::array;
/// use pullback::triconv::{Product, Weights};
///
/// // (1 + 2 x) (3 + 4 x), as sequences of 1 x 1 matrices.
/// let (a, b) = (array![[[1.0]], [[2.0]]], array![[[3.0]], [[4.0]]]);
/// let product = Product::<f64>::new(3, Weights::Plain)?;
/// let c = product.forward(a.view(), b.view())?;
/// assert_eq!(c.as_slice(), Some(&[3.0, 10.0, 8.0][..]));
///
/// // What the middle coefficient takes from each.
/// let gradients = product.adjoint(array![[[0.0]], [[1.0]], [[0.0]]].view(), a.view(), b.view())?;
/// assert_eq!(gradients.grad_a.as_slice(), Some(&[4.0, 3.0][..]));
/// assert_eq!(gradients.grad_b.as_slice(), Some(&[2.0, 1.0][..]));
/// # Ok::<(), pullback::Error>(())
/// ```
pub struct Product<T> {
    range: Range<usize>,
    pub(super) settings: Settings,
    element: PhantomData<T>,
}

/// The gradients that [`Product::adjoint`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ProductGradients<T> {
    /// With respect to `a`.
    pub grad_a: ArrayD<T>,
    /// With respect to `b`; the sum over the batch where it is shared.
    pub grad_b: ArrayD<T>,
}

adjustable!(Product);
adjoint_forms!(Product, grad_c, a, b => grad_a, grad_b);

/// So that the number of a term, a length of a factor and a vector's lanes add up without overflow.
const MOST_TERMS: usize = usize::MAX / 4;

/// The sizes of a call.
struct Call {
    leading: Vec<usize>,
    la: usize,
    lb: usize,
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

    fn b<'a, T>(&self, cells: &'a [T]) -> Sequence<'a, T> {
        let items = if self.shared { 1 } else { self.items() };
        Sequence { cells, items, len: self.lb, rows: self.m, columns: self.q }
    }
}

impl<T: Real> Product<T> {
    /// An operator whose result is terms 0 to `n` - 1.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] where `n` exceeds a quarter of the address space, and [`Error::Environment`] from
    /// [`Level::current`](crate::Level::current).
    pub fn new(n: usize, weights: Weights) -> Result<Self> {
        Self::middle(0..n, weights)
    }

    /// An operator whose result is the terms of a range; no others are computed.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where the range ends before it starts, [`Error::TooLarge`] where it ends behind a quarter of the
    /// address space, and [`Error::Environment`] from [`Level::current`](crate::Level::current).
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::ndarray::array;
    /// use pullback::triconv::{Product, Weights};
    ///
    /// let a = array![[[1.0]], [[2.0]], [[3.0]]];
    /// let c = Product::<f64>::middle(1..3, Weights::Binomial)?.forward(a.view(), a.view())?;
    /// assert_eq!(c.as_slice(), Some(&[4.0, 14.0][..]));
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn middle(range: Range<usize>, weights: Weights) -> Result<Self> {
        if range.start > range.end {
            let value = format!("{}..{}", range.start, range.end);
            return Err(Error::Parameter {
                argument: "range",
                value,
                expected: "with an end that is not before its start",
            });
        }
        if range.end > MOST_TERMS {
            let (value, limit) = (range.end as u128, MOST_TERMS as u128);
            return Err(Error::TooLarge { argument: "terms", value, limit });
        }
        Ok(Self { range, settings: Settings::new(weights)?, element: PhantomData })
    }

    /// The product of `a` (..., la, p, m) and `b` (..., lb, m, q): a new array (..., n, p, q). O(n^2 p m q) operations.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::Shape`] where the operands do not belong together; [`Error::Parameter`] where
    /// matrices have no rows or columns; [`Error::Overflow`] where a result of finite operands is beyond the floats;
    /// [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn forward(
        &self,
        a: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ArrayD<T>> {
        let call = self.call(a.shape(), b.shape())?;
        let (a_cells, b_cells) = (dense(&a)?, dense(&b)?);
        let (a_cells, b_cells) = (call.a(&a_cells), call.b(&b_cells));
        if self.is_wide() {
            let result = self.in_f64().forward(widened(&a)?.view(), widened(&b)?.view())?;
            return rounded("c", &result, self.range.len(), finite_pairs(a_cells, b_cells));
        }
        let triangle = self.triangle(&call, a_cells, b_cells);
        triangle.owned("c", &self.result(&call), finite_pairs(a_cells, b_cells))
    }

    /// [`Product::forward`] into the caller's array (..., n, p, q), which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`Product::forward`]. Nothing is written then, but for [`Error::Overflow`], which leaves anything in `c`.
    pub fn forward_into(
        &self,
        a: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
        c: ArrayViewMut<'_, T, impl Dimension>,
    ) -> Result<()> {
        let call = self.call(a.shape(), b.shape())?;
        check_shape("c", c.shape(), &self.result(&call))?;
        if self.is_wide() {
            deliver(&self.forward(a, b)?, c, Form::Overwrite);
            return Ok(());
        }
        let (a, b) = (dense(&a)?, dense(&b)?);
        let (a, b) = (call.a(&a), call.b(&b));
        self.triangle(&call, a, b).write_into("c", c, finite_pairs(a, b))
    }

    /// The gradients of [`Product::forward`] at `a` and `b` for the gradient `grad_c` (..., n, p, q) of its result, or
    /// several of them, (R, ..., n, p, q): new arrays shaped as `a` and `b`, behind an axis of R where there is one.
    /// Twice the operations of a product, R times.
    ///
    /// # Errors
    ///
    /// As [`Product::forward`].
    pub fn adjoint(
        &self,
        grad_c: ArrayView<'_, T, impl Dimension>,
        a: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ProductGradients<T>> {
        let call = self.call(a.shape(), b.shape())?;
        let several = cotangents("grad_c", grad_c.shape(), &self.result(&call))?;
        let (g, a_cells, b_cells) = (dense(&grad_c)?, dense(&a)?, dense(&b)?);
        let (a_cells, b_cells) = (call.a(&a_cells), call.b(&b_cells));
        let items = call.items() * several.unwrap_or(1);
        let g = Sequence { cells: &g[..], items, len: self.range.len(), rows: call.p, columns: call.q };
        let summed = call.shared.then_some(call.items());
        let is_finite = finite_triples(g, a_cells, b_cells);
        if self.is_wide() {
            let wide = self.in_f64().adjoint(widened(&grad_c)?.view(), widened(&a)?.view(), widened(&b)?.view())?;
            let grad_a = rounded("grad_a", &wide.grad_a, call.la, &is_finite)?;
            let grad_b = rounded("grad_b", &wide.grad_b, call.lb, finite_groups(summed, &is_finite))?;
            return Ok(ProductGradients { grad_a, grad_b });
        }
        let first = self.range.start;
        let scaled = self.settings.scaled(self.most());
        let triangle = Triangle {
            left: g,
            left_transposed: false,
            right: b_cells,
            change: Change { transposed: true, ..Change::default() },
            pairing: Pairing::Shift { first },
            binomials: self.binomials(Binomials::OfTerm { first }),
            scaled,
            pairs: Pairs { groups: items, summed: 1 },
            range: 0..call.la,
            settings: self.settings,
        };
        let grad_a = triangle.owned("grad_a", &behind(several, a.shape()), &is_finite)?;
        let pairs = Pairs::new(several.unwrap_or(1), call.items(), call.shared);
        let binomials = self.binomials(Binomials::OfSum);
        let pairing = Pairing::Correlation { first };
        let correlation = correlate(self.settings, (a_cells, g), (pairing, binomials, scaled), pairs, 0..call.lb);
        let grad_b = correlation.owned("grad_b", &behind(several, b.shape()), finite_groups(summed, &is_finite))?;
        Ok(ProductGradients { grad_a, grad_b })
    }

    /// The shapes of gradients, where the arrays of [`Product::adjoint`] belong together.
    fn check_adjoint(&self, grad_c: &[usize], a: &[usize], b: &[usize]) -> Result<[Vec<usize>; 2]> {
        let call = self.call(a, b)?;
        let several = cotangents("grad_c", grad_c, &self.result(&call))?;
        Ok([behind(several, a), behind(several, b)])
    }

    fn call(&self, a: &[usize], b: &[usize]) -> Result<Call> {
        let (leading, [la, p, m]) = split("a", a)?;
        let (_, [lb, _, q]) = split("b", b)?;
        check_sizes(&[("p", p), ("m", m), ("q", q)])?;
        let shared = check_shared("b", b, leading, &[lb, m, q])?;
        Ok(Call { leading: leading.to_vec(), la, lb, p, m, q, shared })
    }

    /// The shape of the result.
    fn result(&self, call: &Call) -> Vec<usize> {
        [&call.leading[..], &[self.range.len(), call.p, call.q]].concat()
    }

    /// The n of the largest binomial coefficient.
    fn most(&self) -> usize {
        self.range.end.saturating_sub(1)
    }

    fn binomials(&self, binomials: Binomials) -> Option<Binomials> {
        (self.settings.weights == Weights::Binomial).then_some(binomials)
    }

    fn is_wide(&self) -> bool {
        self.settings.wide::<T>(self.most())
    }

    fn in_f64(&self) -> Product<f64> {
        Product { range: self.range.clone(), settings: self.settings.to_be_rounded(), element: PhantomData }
    }

    fn triangle<'a>(&self, call: &Call, a: Sequence<'a, T>, b: Sequence<'a, T>) -> Triangle<'a, T> {
        Triangle {
            left: a,
            left_transposed: false,
            right: b,
            change: Change::default(),
            pairing: Pairing::Convolution,
            binomials: self.binomials(Binomials::OfOutput),
            scaled: self.settings.scaled(self.most()),
            pairs: Pairs { groups: call.items(), summed: 1 },
            range: self.range.clone(),
            settings: self.settings,
        }
    }
}
