//! Input arrays of any strides, as rows.

use crate::element::Element;
use ndarray::{ArrayView, ArrayViewD, Axis, Dimension};

/// The rows of an array: the last axis is a row, the leading axes count rows in row-major order.
pub(crate) enum Rows<'a, T> {
    /// In row-major order, the fast path.
    Dense(&'a [T]),
    /// Anything else: rows are copied where kernels need them side by side.
    Strided(ArrayViewD<'a, T>),
}

impl<'a, T: Element> Rows<'a, T> {
    pub(crate) fn new<D: Dimension>(view: &'a ArrayView<'_, T, D>) -> Self {
        match view.as_slice() {
            Some(dense) => Self::Dense(dense),
            None => Self::Strided(view.view().into_dyn()),
        }
    }

    /// Copies one row.
    pub(crate) fn copy(&self, row: usize, out: &mut [T]) {
        match self {
            Self::Dense(cells) => {
                let row = &cells[row * out.len()..][..out.len()];
                match row.len() {
                    // Points: a few moves where a call would cost more than the copy.
                    2 => copy_fixed::<T, 2>(row, out),
                    3 => copy_fixed::<T, 3>(row, out),
                    4 => copy_fixed::<T, 4>(row, out),
                    _ => out.copy_from_slice(row),
                }
            }
            Self::Strided(view) => {
                let (mut lane, mut rest) = (view.view(), row);
                while lane.ndim() > 1 {
                    let below: usize = lane.shape()[1..lane.ndim() - 1].iter().product();
                    lane.index_axis_inplace(Axis(0), rest / below);
                    rest %= below;
                }
                out.iter_mut().zip(lane).for_each(|(out, &x)| *out = x);
            }
        }
    }
}

#[inline(always)]
fn copy_fixed<T: Copy, const N: usize>(from: &[T], to: &mut [T]) {
    let from: &[T; N] = from.try_into().expect("a row");
    to.copy_from_slice(from);
}
