//! The adjoint of the scan: a scan backwards, and then a correlation of its results with those of the scan.

use super::correlation::correlate;
use super::faults::Faults;
use super::kernels::Divide;
use super::operator::{adjoint_forms, finite_groups, finite_triples, rounded};
use super::pairing::Pairing;
use super::recurrence::{Recurrence, Rule, Terms};
use super::scan::{Call, Scan, Side, turned, turned_back};
use super::sequence::{Change, Sequence};
use super::shapes::{Form, behind, cotangents, deliver, widened};
use super::triangle::Pairs;
use super::weights::{Binomials, Weights};
use crate::Real;
use crate::buffer::{Buffer, Output};
use crate::error::Result;
use crate::layout::{check_shape, dense, elements};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension};

/// The gradients that [`Scan::adjoint`] returns.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanGradients<T> {
    /// With respect to the terms S, shaped as `a`: matrix 0 is the gradient of `A_0`, matrix k that of `S_k`.
    pub grad_s: ArrayD<T>,
    /// With respect to `b`; the sum over the batch where it is shared.
    pub grad_b: ArrayD<T>,
}

adjoint_forms!(Scan, grad_a, a, b => grad_s, grad_b);

impl<T: Real> Scan<T> {
    /// The gradients of [`Scan::forward`] or [`Scan::forward_with`], whose result is `a`, for the gradient `grad_a` of
    /// it, shaped as `a`, or several of them behind an axis of R: new arrays shaped as `a` and `b`, behind an axis of R
    /// where there is one. R n (n + 1) products of matrices.
    ///
    /// # Errors
    ///
    /// As [`Scan::forward`].
    pub fn adjoint(
        &self,
        grad_a: ArrayView<'_, T, impl Dimension>,
        a: ArrayView<'_, T, impl Dimension>,
        b: ArrayView<'_, T, impl Dimension>,
    ) -> Result<ScanGradients<T>> {
        let call = self.call_of("a", a.shape(), b.shape())?;
        let several = cotangents("grad_a", grad_a.shape(), a.shape())?;
        let wide = match self.is_wide() {
            true => Some(self.in_f64().adjoint(widened(&grad_a)?.view(), widened(&a)?.view(), widened(&b)?.view())?),
            false => None,
        };
        let (turned_g, turned_a) = (turned(grad_a, self.side), turned(a.view(), self.side));
        let (g_cells, a_cells, b_cells) = (dense(&turned_g)?, dense(&turned_a)?, dense(&b)?);
        let items = call.items() * several.unwrap_or(1);
        let g = Sequence { cells: &g_cells[..], items, len: self.n + 1, rows: call.p, columns: call.m };
        let a_cells = Sequence { cells: &a_cells[..], items: call.items(), ..g };
        let b_cells = call.b(&b_cells, self.n);
        let is_finite = finite_triples(g, a_cells, b_cells);
        let all_are = finite_groups(call.shared.then_some(call.items()), &is_finite);
        if let Some(wide) = wide {
            let grad_s = rounded("grad_s", &wide.grad_s, self.n + 1, &is_finite)?;
            return Ok(ScanGradients { grad_s, grad_b: rounded("grad_b", &wide.grad_b, self.n, all_are)? });
        }
        let shape = behind(several, &[&call.leading[..], &[self.n + 1, call.p, call.m]].concat());
        let recurrence = self.backwards(&call, items, b_cells)?;
        let (buffer, faults) = (Buffer::new(elements::<T>(&shape)?)?, Faults::default());
        let scratch = recurrence.scratch()?;
        let grad_s: ArrayD<T> =
            buffer.fill(&shape, |out| recurrence.write((g, Terms::Backwards), scratch, Output::fresh(out), &faults));
        self.settings.check(faults, "grad_s", &is_finite)?;
        let grad_b = self.to_b(&call, several, a_cells, &grad_s, all_are)?;
        Ok(ScanGradients { grad_s: turned_back(grad_s, self.side), grad_b: turned_back(grad_b, self.side) })
    }

    /// The shapes of gradients, where the arrays of [`Scan::adjoint`] belong together.
    fn check_adjoint(&self, grad_a: &[usize], a: &[usize], b: &[usize]) -> Result<[Vec<usize>; 2]> {
        self.call_of("a", a, b)?;
        let several = cotangents("grad_a", grad_a, a)?;
        Ok([behind(several, a), behind(several, b)])
    }

    /// The scan of gradients from the last one to the first.
    fn backwards<'a>(&self, call: &Call, items: usize, b: Sequence<'a, T>) -> Result<Recurrence<'a, T>> {
        let plain = self.rule();
        let rule = match self.settings.weights {
            Weights::Binomial => {
                let binomials = Some(Binomials::Backwards { last: self.n.saturating_sub(1) });
                Rule { binomials, scaled: self.scaled(), ..plain }
            }
            Weights::Taylor => Rule { divide: Divide::Factors { last: self.n }, ..plain },
            Weights::Plain => plain,
        };
        let settings = (self.settings.level, self.settings.tuning);
        Recurrence::new(b, self.side == Side::Right, (items, call.p), rule, settings)
    }

    /// The gradient of `B_i`: the sum over j of w(i + j, j) `A_j^T` `G_{i+j+1}`.
    fn to_b(
        &self,
        call: &Call,
        several: Option<usize>,
        a: Sequence<'_, T>,
        grad_s: &ArrayD<T>,
        is_finite: impl Fn(usize) -> bool,
    ) -> Result<ArrayD<T>> {
        let items = call.items() * several.unwrap_or(1);
        let cells = grad_s.as_slice().expect("owned results have a standard layout");
        let g = Sequence { cells, items, ..a };
        let binomials = (self.settings.weights == Weights::Binomial).then_some(Binomials::OfSum);
        let pairs = Pairs::new(several.unwrap_or(1), call.items(), call.shared);
        let rule = (Pairing::Correlation { first: 0 }, binomials, self.scaled());
        let mut correlation = correlate(self.settings, (a, g), rule, pairs, 0..self.n);
        let divided = self.settings.weights == Weights::Taylor;
        correlation.change = Change { skipped: 1, divided, ..Change::default() };
        let leading = if call.shared { &[] } else { &call.leading[..] };
        let shape = behind(several, &[leading, &[self.n, call.m, call.m]].concat());
        correlation.owned("grad_b", &shape, is_finite)
    }
}
