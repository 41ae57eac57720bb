//! Input arrays of any strides, as rows, and the shapes of arrays.

use crate::element::Element;
use crate::error::{Error, Result};
use crate::simd::prefetch;
use ndarray::{ArrayView, ArrayViewD, Axis, Dimension};
use std::borrow::Cow;

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

    /// Asks for a row of `width` cells ahead of its use, where it is cheap to say where it lies.
    #[inline]
    pub(crate) fn prefetch(&self, row: usize, width: usize) {
        if let Self::Dense(cells) = self {
            prefetch(&cells[row * width..][..width]);
        }
    }

    /// Copies one row.
    #[inline]
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

/// The cells of an array in row-major order: its own where they lie so, else a copy.
pub(crate) fn dense<'a, T: Copy, D: Dimension>(view: &'a ArrayView<'_, T, D>) -> Result<Cow<'a, [T]>> {
    if let Some(cells) = view.as_slice() {
        return Ok(Cow::Borrowed(cells));
    }
    let mut cells = Vec::new();
    let bytes = view.len().saturating_mul(size_of::<T>());
    cells.try_reserve_exact(view.len()).map_err(|_| Error::Allocation { bytes })?;
    cells.extend(view.iter().copied());
    Ok(Cow::Owned(cells))
}

/// So many zeros.
pub(crate) fn zeros<T: Element>(len: usize) -> Result<Vec<T>> {
    let mut cells = Vec::new();
    let bytes = len.saturating_mul(size_of::<T>());
    cells.try_reserve_exact(len).map_err(|_| Error::Allocation { bytes })?;
    cells.resize(len, T::zero());
    Ok(cells)
}

/// Refuses a shape that is not the expected one.
pub(crate) fn check_shape(argument: &'static str, found: &[usize], expected: &[usize]) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Shape { argument, found: found.to_vec(), expected: expected.to_vec() })
}

/// The number of elements of an array of `shape`, whose bytes an allocation can hold.
pub(crate) fn elements<T>(shape: &[usize]) -> Result<usize> {
    let empty = shape.contains(&0);
    // Strides of an empty array are numbers too, so that its other axes have a limit.
    let limit = isize::MAX as usize / if empty { 1 } else { size_of::<T>() };
    let axes = || shape.iter().filter(|&&n| n > 0);
    match axes().try_fold(1usize, |product, &n| product.checked_mul(n)) {
        Some(elements) if elements <= limit => Ok(if empty { 0 } else { elements }),
        _ => Err(Error::TooLarge {
            argument: "elements of the output",
            value: axes().fold(1, |product: u128, &n| product.saturating_mul(n as u128)),
            limit: limit as u128,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_arrays_have_a_limit_too() {
        let most = isize::MAX as usize;
        assert_eq!(elements::<f64>(&[0, most]), Ok(0));
        assert_eq!(elements::<f64>(&[most / 8]), Ok(most / 8));
        let error = elements::<f64>(&[2, 0, most]).unwrap_err();
        assert_eq!(
            error,
            Error::TooLarge { argument: "elements of the output", value: 2 * most as u128, limit: most as u128 }
        );
        assert!(ndarray::Array3::<f64>::from_shape_vec([2, 0, most], vec![]).is_err());
    }
}
