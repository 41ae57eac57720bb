//! What the numbers are that describe a kernel: they are checked, and made into a factor or a precision.

use super::exact::determinant;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::exponent::{exponent, ldexp};
use crate::layout::dense;
use ndarray::{ArrayView, Dimension};
use rayon::prelude::*;
use std::borrow::Cow;

/// What the numbers are that describe one kernel `exp(-q(z) / 2)`, `z = (x, y)`, `x` to the right and `y` down.
///
/// They are named apart because the most common mistake with such kernels is to pass one for another: a variance for a
/// standard deviation, a covariance for its inverse.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Parameters {
    /// (..., 2, 2): a factor `M` of the precision, any finite one. `q = |M z|^2 = z^T M^T M z`.
    #[default]
    Factor,
    /// (..., 3): `a, b, c` of `q = a x^2 + 2 b x y + c y^2`, positive semidefinite: `a >= 0`, `c >= 0` and `a c >= b^2`, the products
    /// compared without rounding. `b` counts once: it is an off-diagonal entry of the matrix.
    Precision,
    /// (..., 3): `sx, sy, theta`. Standard deviations, greater than 0, in samples, along a first axis and across it; the angle of
    /// the first axis in radians, from `x` towards `y`: `q = (u / sx)^2 + (v / sy)^2` with `u = x cos + y sin`, `v = y cos - x sin`.
    Sigmas,
    /// (..., 3): `l1, l2, theta`. As [`Parameters::Sigmas`] with variances, the squares of standard deviations.
    Variances,
    /// (..., 3): `xx, xy, yy` of the covariance matrix, the inverse of the precision, positive definite: `xx > 0` and
    /// `xx yy > xy^2`, the products compared without rounding. `xy` counts once.
    Covariance,
}

/// Kernels looked at by one task.
const CHUNK: usize = 1 << 14;

impl Parameters {
    /// The trailing axes of an array of kernels.
    pub(crate) fn axes(self) -> &'static [usize] {
        match self {
            Self::Factor => &[2, 2],
            _ => &[3],
        }
    }

    /// How many numbers describe a kernel.
    pub(crate) fn count(self) -> usize {
        match self {
            Self::Factor => 4,
            _ => 3,
        }
    }

    /// The leading axes of an array of kernels, which count them.
    ///
    /// # Errors
    ///
    /// [`Error::Rank`] or [`Error::Shape`] where the trailing axes are not those of these parameters.
    pub(crate) fn leading<'a>(self, argument: &'static str, found: &'a [usize]) -> Result<&'a [usize]> {
        let axes = self.axes();
        let Some(leading) = found.len().checked_sub(axes.len()) else {
            return Err(Error::Rank { argument, found: found.len(), least: axes.len() });
        };
        if found[leading..] != *axes {
            let expected = [&found[..leading], axes].concat();
            return Err(Error::Shape { argument, found: found.to_vec(), expected });
        }
        Ok(&found[..leading])
    }

    /// The numbers of all kernels of an array, one kernel after the other, checked.
    ///
    /// # Errors
    ///
    /// As [`Parameters::leading`]; [`Error::NonFinite`] or [`Error::KernelShape`] for the first kernel that is none;
    /// [`Error::Allocation`].
    pub(crate) fn checked<'a, T: Element, D: Dimension>(
        self,
        argument: &'static str,
        shapes: &'a ArrayView<'_, T, D>,
    ) -> Result<Cow<'a, [T]>> {
        let leading = self.leading(argument, shapes.shape())?;
        let cells = dense(shapes)?;
        let bad = |kernels: &[T]| match self {
            Self::Factor => !all_finite(kernels),
            _ => kernels.chunks_exact(self.count()).any(|values| self.fault(values).is_some()),
        };
        let chunks = cells.par_chunks(CHUNK * self.count()).enumerate();
        // Few kernels are looked at here, without other threads.
        let first = if cells.len() <= CHUNK * self.count() {
            bad(&cells).then_some(0)
        } else {
            chunks.filter(|(_, kernels)| bad(kernels)).map(|(chunk, _)| chunk * CHUNK).min()
        };
        let Some(first) = first else { return Ok(cells) };
        let kernels = cells.chunks_exact(self.count()).enumerate().skip(first);
        let fault = kernels.filter_map(|(kernel, values)| Some((kernel, values, self.fault(values)?))).next();
        let (kernel, values, fault) = fault.expect("a bad kernel in a bad chunk");
        let mut position = unravel(kernel, leading);
        Err(match fault {
            Fault::NonFinite(at) => {
                position.extend(unravel(at, self.axes()));
                Error::NonFinite { argument, position, value: format!("{:?}", values[at]) }
            }
            Fault::Shape(expected) => Error::KernelShape { argument, position, value: format!("{values:?}"), expected },
        })
    }

    /// What is wrong with the numbers of a kernel.
    fn fault<T: Element>(self, values: &[T]) -> Option<Fault> {
        if let Some(at) = values.iter().position(|x| !x.is_finite()) {
            return Some(Fault::NonFinite(at));
        }
        let [p, q, r, _] = widened(values);
        let (good, expected) = match self {
            Self::Factor => return None,
            Self::Precision => (
                p >= 0.0 && r >= 0.0 && determinant(p, q, r).0 >= 0.0,
                "a precision with a >= 0, c >= 0 and a c >= b^2",
            ),
            Self::Sigmas => (p > 0.0 && q > 0.0, "sigmas greater than 0"),
            Self::Variances => (p > 0.0 && q > 0.0, "variances greater than 0"),
            Self::Covariance => {
                (p > 0.0 && r > 0.0 && determinant(p, q, r).0 > 0.0, "a covariance with xx > 0 and xx yy > xy^2")
            }
        };
        (!good).then_some(Fault::Shape(expected))
    }

    /// `M = (m11, m12, m21, m22)` with `q = |M z|^2`, finite. For numbers that were checked.
    pub(crate) fn factor(self, values: [f64; 4]) -> [f64; 4] {
        let [p, q, r, _] = values;
        let factor = match self {
            Self::Factor => values,
            Self::Precision => match (p, r) {
                // With the determinant d: a (x + b y / a)^2 + d y^2 / a, the larger of a and c in front.
                (0.0, 0.0) => [0.0; 4],
                (a, c) if a >= c => [a.sqrt(), q / a.sqrt(), 0.0, over(determinant(a, q, c), a).sqrt()],
                (a, c) => [q / c.sqrt(), c.sqrt(), over(determinant(a, q, c), c).sqrt(), 0.0],
            },
            Self::Sigmas => rotated([clamped(1.0 / p), clamped(1.0 / q)], r),
            Self::Variances => rotated([1.0 / p.sqrt(), 1.0 / q.sqrt()], r),
            Self::Covariance => {
                // The larger variance in front, then that of the other axis where the first is known.
                let (large, small) = if p >= r { (p, r) } else { (r, p) };
                let (first, rest) =
                    (1.0 / large.sqrt(), clamped(1.0 / over(determinant(large, q, small), large).sqrt()));
                let slope = -(q / large) * rest;
                if p >= r { [first, 0.0, slope, rest] } else { [0.0, first, rest, slope] }
            }
        };
        factor.map(clamped)
    }

    /// `(a, b, c)` of `q = a x^2 + 2 b x y + c y^2`, which may not be finite. For numbers that were checked.
    pub(crate) fn precision(self, values: [f64; 4]) -> [f64; 3] {
        if self == Self::Precision {
            return [values[0], values[1], values[2]];
        }
        let [m11, m12, m21, m22] = self.factor(values);
        [m11 * m11 + m21 * m21, m11 * m12 + m21 * m22, m12 * m12 + m22 * m22]
    }
}

/// Why numbers describe no kernel.
enum Fault {
    /// The number at this place is not finite.
    NonFinite(usize),
    /// They are not what is expected.
    Shape(&'static str),
}

/// Three or four numbers.
pub(crate) fn widened<T: Element>(values: &[T]) -> [f64; 4] {
    let mut wide = [0.0; 4];
    wide.iter_mut().zip(values).for_each(|(wide, x)| *wide = x.to_f64().expect("a float is an f64"));
    wide
}

/// The axes of a rotated kernel, each divided by its width: rows `(cos, sin)` and `(-sin, cos)`.
fn rotated(inverse: [f64; 2], theta: f64) -> [f64; 4] {
    let (sin, cos) = theta.sin_cos();
    [cos * inverse[0], sin * inverse[0], -sin * inverse[1], cos * inverse[1]]
}

/// The quotient of a number `x * 2^e` by another.
fn over((x, e): (f64, i32), divisor: f64) -> f64 {
    let by = exponent(divisor);
    ldexp(x / ldexp(divisor, -by), e - by)
}

/// The nearest finite number.
fn clamped(x: f64) -> f64 {
    x.clamp(f64::MIN, f64::MAX)
}

/// Whether all are finite: the sum of products with zero is finite only then.
fn all_finite<T: Element>(cells: &[T]) -> bool {
    cells.iter().fold(T::zero(), |sum, &x| sum + x * T::zero()).is_finite()
}

/// The index on every axis of an element.
pub(crate) fn unravel(mut index: usize, shape: &[usize]) -> Vec<usize> {
    let mut position = vec![0; shape.len()];
    for (position, &n) in position.iter_mut().zip(shape).rev() {
        *position = index % n;
        index /= n;
    }
    position
}

/// The cells of the offsets (..., 2), checked.
///
/// # Errors
///
/// [`Error::NonFinite`] for the first that is not finite, [`Error::Allocation`].
pub(crate) fn checked_offsets<'a, T: Element, D: Dimension>(offsets: &'a ArrayView<'_, T, D>) -> Result<Cow<'a, [T]>> {
    let cells = dense(offsets)?;
    if !all_finite(&cells)
        && let Some(at) = cells.iter().position(|x| !x.is_finite())
    {
        let (argument, position) = ("offsets", unravel(at, offsets.shape()));
        return Err(Error::NonFinite { argument, position, value: format!("{:?}", cells[at]) });
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array2, Array3, array};
    use std::f64::consts::FRAC_PI_4;

    fn near(found: &[f64], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() <= 1e-15 * expected.abs().max(1e-3), "{found} is not {expected}");
        }
    }

    #[test]
    fn parameters_describe_the_same_kernel() {
        // Sigmas (5, 2.5) at -45 degrees.
        let precision = [0.10, 0.06, 0.10];
        near(&Parameters::Sigmas.precision([5.0, 2.5, -FRAC_PI_4, 0.0]), &precision);
        near(&Parameters::Variances.precision([25.0, 6.25, -FRAC_PI_4, 0.0]), &precision);
        let determinant = 0.1 * 0.1 - 0.06 * 0.06;
        let covariance = [0.1 / determinant, -0.06 / determinant, 0.1 / determinant, 0.0];
        near(&Parameters::Covariance.precision(covariance), &precision);
        for (a, b, c) in [(0.1, 0.06, 0.1), (0.3, -0.1, 0.5), (2.0, 0.1, 0.5), (4.0, 2.0, 1.0), (0.0, 0.0, 3.0)] {
            let [m11, m12, m21, m22] = Parameters::Precision.factor([a, b, c, 0.0]);
            near(&[m11 * m11 + m21 * m21, m11 * m12 + m21 * m22, m12 * m12 + m22 * m22], &[a, b, c]);
        }
        // Narrow in y.
        near(&Parameters::Sigmas.factor([2.0, 0.5, 0.0, 0.0]), &[0.5, 0.0, 0.0, 2.0]);
        near(&Parameters::Covariance.precision([2.0, 0.5, 4.0, 0.0]), &[4.0 / 7.75, -0.5 / 7.75, 2.0 / 7.75]);
    }

    #[test]
    fn factors_are_finite() {
        let tiny = f64::from_bits(1);
        for (parameters, values) in [
            (Parameters::Sigmas, [tiny, tiny, 0.3]),
            (Parameters::Sigmas, [f64::MAX, tiny, 1e300]),
            (Parameters::Variances, [tiny, f64::MAX, 0.0]),
            (Parameters::Covariance, [tiny, 0.0, f64::MAX]),
            (Parameters::Covariance, [1.0, 1.0 - f64::EPSILON, 1.0]),
            (Parameters::Precision, [f64::MAX, f64::MAX, f64::MAX]),
            (Parameters::Precision, [tiny, 0.0, 0.0]),
        ] {
            let [p, q, r] = values;
            assert!(parameters.fault(&values).is_none(), "{parameters:?} {values:?}");
            let factor = parameters.factor([p, q, r, 0.0]);
            assert!(factor.iter().all(|x| x.is_finite()), "{parameters:?} {values:?}: {factor:?}");
        }
    }

    #[test]
    fn bad_kernels_are_named_by_position() {
        let mut shapes = Array3::<f32>::ones((2, 9, 3));
        shapes[[1, 4, 1]] = 0.0;
        let view = shapes.view();
        let error = Parameters::Sigmas.checked("shapes", &view).unwrap_err();
        assert_eq!(error.to_string(), "shapes[1, 4] = [1.0, 0.0, 1.0], expected sigmas greater than 0");
        assert!(Parameters::Precision.checked("shapes", &view.slice(ndarray::s![..1, .., ..])).is_ok());
        shapes[[1, 4, 2]] = f32::NAN;
        let error = Parameters::Sigmas.checked("shapes", &shapes.view()).unwrap_err();
        assert_eq!(error.to_string(), "shapes[1, 4, 2] = NaN is not finite");
        let alone = array![1.0, 2.0, 1.0];
        let error = Parameters::Precision.checked("shapes", &alone.view()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "shapes = [1.0, 2.0, 1.0], expected a precision with a >= 0, c >= 0 and a c >= b^2"
        );
        // In a chunk behind the first, with another behind it.
        let mut many = Array2::<f64>::ones((3 * CHUNK, 3));
        many[[2 * CHUNK - 1, 0]] = -1.0;
        many[[2 * CHUNK + 7, 0]] = -1.0;
        let error = Parameters::Variances.checked("shapes", &many.view()).unwrap_err();
        assert!(matches!(error, Error::KernelShape { position, .. } if position == [2 * CHUNK - 1]));
        let mut many = ndarray::Array4::<f64>::zeros((1, 2 * CHUNK, 2, 2));
        many[[0, CHUNK + 3, 1, 0]] = f64::INFINITY;
        let error = Parameters::Factor.checked("shapes", &many.view()).unwrap_err();
        assert!(matches!(error, Error::NonFinite { position, .. } if position == [0, CHUNK + 3, 1, 0]));
    }

    #[test]
    fn shapes_of_arrays_are_checked() {
        let error = |parameters: Parameters, shape: &[usize]| parameters.leading("shapes", shape).unwrap_err();
        assert!(matches!(error(Parameters::Factor, &[2]), Error::Rank { found: 1, least: 2, .. }));
        assert!(
            matches!(error(Parameters::Factor, &[5, 2, 3]), Error::Shape { expected, .. } if expected == [5, 2, 2])
        );
        assert!(matches!(error(Parameters::Sigmas, &[5, 2]), Error::Shape { expected, .. } if expected == [5, 3]));
        assert_eq!(Parameters::Factor.leading("shapes", &[2, 2]).unwrap(), &[0usize; 0]);
        assert_eq!(unravel(17, &[2, 3, 4]), [1, 1, 1]);
    }
}
