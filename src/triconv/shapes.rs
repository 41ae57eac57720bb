//! The shapes of a call: leading axes that count sequences, which a second operand has too or shares.

use crate::Real;
use crate::error::{Error, Result};
use crate::layout::{check_shape, zeros};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension, Zip};

/// The leading axes of a shape and its last `N`.
pub(super) fn split<'s, const N: usize>(
    argument: &'static str,
    shape: &'s [usize],
) -> Result<(&'s [usize], [usize; N])> {
    match shape.split_last_chunk::<N>() {
        Some((leading, last)) => Ok((leading, *last)),
        None => Err(Error::Rank { argument, found: shape.len(), least: N }),
    }
}

/// Refuses matrices without rows or without columns.
pub(super) fn check_sizes(sizes: &[(&'static str, usize)]) -> Result<()> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some(&(argument, size)) => Err(Error::Parameter { argument, value: size.to_string(), expected: "at least 1" }),
        None => Ok(()),
    }
}

/// Whether a second operand, whose shape without leading axes is `last`, is shared by all of `leading`; refuses what is
/// neither shared nor has a sequence for each.
pub(super) fn check_shared(argument: &'static str, found: &[usize], leading: &[usize], last: &[usize]) -> Result<bool> {
    if found.len() == last.len() {
        return check_shape(argument, found, last).map(|()| true);
    }
    check_parts(argument, found, &[leading, last])?;
    Ok(false)
}

/// [`check_shape`] of an expected shape in parts, which small calls need not put together.
pub(super) fn check_parts(argument: &'static str, found: &[usize], expected: &[&[usize]]) -> Result<()> {
    if found.iter().eq(expected.iter().copied().flatten()) {
        return Ok(());
    }
    check_shape(argument, found, &expected.concat())
}

/// The number of cotangents: 1 and no axis for it, or as long as the axis in front of the shape `one`.
pub(super) fn cotangents(argument: &'static str, found: &[usize], one: &[usize]) -> Result<Option<usize>> {
    match found.split_first() {
        Some((&cotangents, rest)) if rest == one => Ok(Some(cotangents)),
        _ => check_shape(argument, found, one).map(|()| None),
    }
}

/// A shape behind the axis of cotangents.
pub(super) fn behind(cotangents: Option<usize>, shape: &[usize]) -> Vec<usize> {
    cotangents.into_iter().chain(shape.iter().copied()).collect()
}

/// How the caller's array gets a result.
#[derive(Clone, Copy)]
pub(super) enum Form {
    Overwrite,
    Add,
}

/// Hands a result over to the caller's array of its shape.
pub(super) fn deliver<T: Real>(result: &ArrayD<T>, out: ArrayViewMut<'_, T, impl Dimension>, form: Form) {
    let out = Zip::from(out.into_dyn()).and(result);
    match form {
        Form::Overwrite => out.for_each(|out, &x| *out = x),
        Form::Add => out.for_each(|out, &x| *out = *out + x),
    }
}

/// The array in `f64`.
pub(super) fn widened<T: Real>(view: &ArrayView<'_, T, impl Dimension>) -> Result<ArrayD<f64>> {
    let mut wide = zeros(view.len())?;
    wide.iter_mut().zip(view).for_each(|(wide, x)| *wide = x.to_f64().expect("a float is an f64"));
    Ok(ArrayD::from_shape_vec(view.shape(), wide).expect("as many cells"))
}

/// Rounded to elements.
pub(super) fn narrowed<T: Real>(array: &ArrayD<f64>) -> ArrayD<T> {
    array.mapv(|x| T::from_f64(x).expect("every f64 rounds to an element"))
}
