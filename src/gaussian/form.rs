//! The form in which one kernel is computed: the least work that is right for it.

use super::grid::Grid;
use super::shape::Parameters;
use crate::element::Element;
use crate::exponent::ldexp;
use std::f64::consts::LOG2_E;

/// A kernel as its inner loop takes it. Positions are those of the tables.
#[derive(Clone, Copy, Debug)]
pub enum Form<T> {
    /// `-q / 2` is `a x^2 + b x y + c y^2` times the natural logarithm of 2, and its largest value is 0, at a sample: nothing need be subtracted.
    Plain([T; 3]),
    /// `q` is `|M (z - o)|^2`, from which the least of the grid is subtracted.
    Rows {
        /// M.
        factor: [T; 4],
        /// o.
        offset: [T; 2],
    },
    /// So narrow that the rounding of `q` would choose between samples, or `q` would overflow: `M` and the offset as they are,
    /// see [`narrow`](super::narrow).
    Narrow {
        /// M.
        factor: [f64; 4],
        /// The offset, in samples.
        offset: [f64; 2],
    },
}

/// Which form to take, instead of the least that is right. Tests make every choice on small sizes.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// The least of [`Form::Rows`] and [`Form::Narrow`] that is right.
    Rows,
    /// [`Form::Narrow`].
    Narrow,
}

impl<T: Element> Form<T> {
    /// The coefficients of `-q / 2` as those of [`Form::Plain`], where their rounding is small enough.
    pub(super) fn coefficients(parameters: Parameters, values: [f64; 4], grid: &Grid<T>) -> Option<[T; 3]> {
        let [a, b, c] = parameters.precision(values).map(|x| ldexp(x, 2 * grid.scale));
        // The rounding of q, at most a few times its largest value by epsilon, is then well below 1: nothing is clamped.
        let exact = a.max(c) * reach(grid).powi(2) <= digits::<T>() / 64.0;
        let element = |x: f64| T::from_f64(x).expect("every f64 rounds to an element");
        exact.then(|| [-0.5 * LOG2_E * a, -LOG2_E * b, -0.5 * LOG2_E * c].map(element))
    }

    /// The form of the kernel that `values` describe, its middle moved by `offset` samples. Numbers and offset are finite.
    pub(crate) fn new(
        parameters: Parameters,
        values: [f64; 4],
        offset: Option<[f64; 2]>,
        grid: &Grid<T>,
        path: Option<Path>,
    ) -> Self {
        let element = |x: f64| T::from_f64(x).expect("every f64 rounds to an element");
        if grid.zero.is_some()
            && offset.is_none()
            && path.is_none()
            && let Some(coefficients) = Self::coefficients(parameters, values, grid)
        {
            return Self::Plain(coefficients);
        }
        let factor = parameters.factor(values);
        let unscaled = offset.unwrap_or([0.0; 2]);
        let largest = |x: &[f64]| x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
        let rows = factor.map(|x| ldexp(x, grid.scale));
        let shift = unscaled.map(|x| ldexp(x, -grid.scale));
        let far = largest(&shift);
        // Here the rounding of q may come near to 1. The second condition keeps squares of positions in range.
        let wide = largest(&rows) * (reach(grid) + far) <= digits::<T>().sqrt() && far <= FAR;
        if wide && path != Some(Path::Narrow) {
            return Self::Rows { factor: rows.map(element), offset: shift.map(element) };
        }
        Self::Narrow { factor, offset: unscaled }
    }
}

/// The largest coordinate in tables. Of a grid whose samples are all at 0, any positive one will do.
fn reach<T>(grid: &Grid<T>) -> f64 {
    if grid.reach == 0.0 { 1.0 } else { grid.reach }
}

/// 1 / epsilon.
fn digits<T: Element>() -> f64 {
    T::epsilon().to_f64().expect("a float is an f64").recip()
}

/// Offsets beyond so many samples are left to the form that has no limits.
const FAR: f64 = (1u64 << 40) as f64;
