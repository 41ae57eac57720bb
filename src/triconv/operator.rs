//! What the operators of this family share.

use super::faults::{Faults, finite};
use super::sequence::Sequence;
use super::shapes::narrowed;
use super::tuning::Tuning;
use super::weights::{TABLED, Weights};
use crate::Real;
use crate::error::Result;
use crate::simd::Level;
use ndarray::ArrayD;

/// What an operator knows beside its size.
#[derive(Clone, Copy)]
pub(super) struct Settings {
    pub(super) weights: Weights,
    pub(super) level: Level,
    pub(super) tuning: Tuning,
    /// Whether `f32` is computed in `f64`.
    pub(super) wide: bool,
    /// Whether results are rounded by a caller, who looks for what overflows then: that may be an earlier one.
    rounded: bool,
}

impl Settings {
    pub(super) fn new(weights: Weights) -> Result<Self> {
        Ok(Self { weights, level: Level::current()?, tuning: Tuning::default(), wide: false, rounded: false })
    }

    /// Those of an operator in `f64` whose results are [`rounded`].
    pub(super) fn to_be_rounded(self) -> Self {
        Self { rounded: true, ..self }
    }

    /// Refuses an overflow of a result, if it is not rounded first.
    pub(super) fn check(self, faults: Faults, result: &'static str, finite: impl Fn(usize) -> bool) -> Result<()> {
        if self.rounded { Ok(()) } else { faults.check(result, finite) }
    }

    /// Whether exponents are kept apart, where the largest weight is C(most, k).
    pub(super) fn scaled(self, most: usize) -> bool {
        self.weights == Weights::Binomial && (most > TABLED || self.tuning.scaled == Some(true))
    }

    /// Whether elements are computed in `f64` instead: on request, where exponents are kept apart, and where weights
    /// are so large that a product may be too small for `f32` before it is weighted, and not after.
    pub(super) fn wide<T>(self, most: usize) -> bool {
        const MOST_OF_F32: usize = 32;
        let weighted = self.weights == Weights::Binomial && most > MOST_OF_F32;
        size_of::<T>() < size_of::<f64>() && (self.wide || weighted || self.scaled(most))
    }
}

/// Items of which two operands are: whether both of an item are finite.
pub(super) fn finite_pairs<'a, T: Real>(a: Sequence<'a, T>, b: Sequence<'a, T>) -> impl Fn(usize) -> bool {
    move |item| finite(a.item(item % a.items)) && finite(b.item(item % b.items))
}

/// Items of a gradient: whether it, both operands and with them all that it is made from are finite.
pub(super) fn finite_triples<'a, T: Real>(
    g: Sequence<'a, T>,
    a: Sequence<'a, T>,
    b: Sequence<'a, T>,
) -> impl Fn(usize) -> bool {
    let (to_a, to_b) = (finite_pairs(g, a), finite_pairs(g, b));
    move |item| to_a(item) && to_b(item)
}

/// [`finite_triples`] of the members of a group, where there are such sums.
pub(super) fn finite_groups(summed: Option<usize>, item: impl Fn(usize) -> bool) -> impl Fn(usize) -> bool {
    move |group| match summed {
        Some(summed) => (group * summed..(group + 1) * summed).all(&item),
        None => item(group),
    }
}

/// A result in `f64` of sequences of so many matrices, rounded once.
pub(super) fn rounded<T: Real>(
    name: &'static str,
    result: &ArrayD<f64>,
    len: usize,
    is_finite: impl Fn(usize) -> bool,
) -> Result<ArrayD<T>> {
    let rounded = narrowed(result);
    let cells = rounded.as_slice().expect("owned results have a standard layout");
    let matrix: usize = result.shape()[result.ndim() - 2..].iter().product();
    let faults = Faults::default();
    for (index, matrix) in cells.chunks_exact(matrix.max(1)).enumerate() {
        faults.look(index / len, index % len, matrix);
    }
    faults.check(name, is_finite)?;
    Ok(rounded)
}

/// What can be set of all operators of this family.
macro_rules! adjustable {
    ($operator:ident) => {
        impl<T: Real> $operator<T> {
            /// The same operator with numbers in `f64` throughout, and results rounded once. It changes `f32` alone.
            #[must_use]
            pub fn with_f64_accumulation(mut self) -> Self {
                self.settings.wide = true;
                self
            }
        }

        crate::settings::settings!(
            level of [T: Real] $operator<T> { settings.level, settings.tuning }, same bits from V3
        );
    };
}
pub(super) use adjustable;

/// The gradients of an operator in arrays of the caller: `adjoint` of three arrays gives two, whose shapes
/// `check_adjoint` says.
macro_rules! adjoint_forms {
    ($operator:ident, $grad:ident, $a:ident, $b:ident => $to_a:ident, $to_b:ident) => {
        impl<T: Real> $operator<T> {
            /// [`Self::adjoint`] into the caller's arrays, which are overwritten.
            ///
            /// # Errors
            ///
            /// As [`Self::adjoint`]; nothing is written then.
            pub fn adjoint_into(
                &self,
                $grad: ArrayView<'_, T, impl Dimension>,
                $a: ArrayView<'_, T, impl Dimension>,
                $b: ArrayView<'_, T, impl Dimension>,
                $to_a: ArrayViewMut<'_, T, impl Dimension>,
                $to_b: ArrayViewMut<'_, T, impl Dimension>,
            ) -> Result<()> {
                self.adjoint_form($grad, $a, $b, ($to_a, $to_b), Form::Overwrite)
            }

            /// [`Self::adjoint`] added to the caller's arrays.
            ///
            /// # Errors
            ///
            /// As [`Self::adjoint`]; nothing is written then.
            pub fn adjoint_add(
                &self,
                $grad: ArrayView<'_, T, impl Dimension>,
                $a: ArrayView<'_, T, impl Dimension>,
                $b: ArrayView<'_, T, impl Dimension>,
                $to_a: ArrayViewMut<'_, T, impl Dimension>,
                $to_b: ArrayViewMut<'_, T, impl Dimension>,
            ) -> Result<()> {
                self.adjoint_form($grad, $a, $b, ($to_a, $to_b), Form::Add)
            }

            fn adjoint_form(
                &self,
                $grad: ArrayView<'_, T, impl Dimension>,
                $a: ArrayView<'_, T, impl Dimension>,
                $b: ArrayView<'_, T, impl Dimension>,
                ($to_a, $to_b): (ArrayViewMut<'_, T, impl Dimension>, ArrayViewMut<'_, T, impl Dimension>),
                form: Form,
            ) -> Result<()> {
                let [shape_a, shape_b] = self.check_adjoint($grad.shape(), $a.shape(), $b.shape())?;
                check_shape(stringify!($to_a), $to_a.shape(), &shape_a)?;
                check_shape(stringify!($to_b), $to_b.shape(), &shape_b)?;
                let gradients = self.adjoint($grad, $a, $b)?;
                deliver(&gradients.$to_a, $to_a, form);
                deliver(&gradients.$to_b, $to_b, form);
                Ok(())
            }
        }
    };
}
pub(super) use adjoint_forms;
