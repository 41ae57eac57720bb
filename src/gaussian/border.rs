//! What lies beyond the border of an image, and which pixels of a padded one come from each of its own.

use crate::element::Element;
use crate::error::{Error, Result};

/// What lies beyond the border of an image: the rules of `numpy.pad`, by the names of its modes.
///
/// Of an axis of samples `a b c d` the padded one reads, with the axis itself between bars:
///
/// | border | before, the axis, behind |
/// |---|---|
/// | [`Border::Reflect`] | `c d c b \| a b c d \| c b a b` |
/// | [`Border::Symmetric`] | `d c b a \| a b c d \| d c b a` |
/// | [`Border::Edge`] | `a a a a \| a b c d \| d d d d` |
/// | [`Border::Wrap`] | `a b c d \| a b c d \| a b c d` |
/// | [`Border::Constant`] | `v v v v \| a b c d \| v v v v` |
///
/// # Examples
///
/// ```
/// use pullback::gaussian::{Blur, Border, Centre, Parameters};
/// use pullback::ndarray::{Array4, array};
///
/// // The mean of a pixel and its two neighbours.
/// let mean = |border| {
///     let blur = Blur::<f64>::rectangular([1, 3], Centre::Middle, border, 1).unwrap();
///     let image = array![[[[3.0], [6.0], [12.0]]]]; // (B, H, W, C)
///     let shapes = Array4::zeros((1, 1, 3, 3)); // flat
///     let y = blur.with_parameters(Parameters::Precision).forward(image.view(), shapes.view()).unwrap();
///     [y[[0, 0, 0, 0]].round(), y[[0, 0, 2, 0]].round()]
/// };
/// assert_eq!(mean(Border::Reflect), [5.0, 8.0]);
/// assert_eq!(mean(Border::Edge), [4.0, 10.0]);
/// assert_eq!(mean(Border::Wrap), [7.0, 7.0]);
/// assert_eq!(mean(Border::Constant(0.0)), [3.0, 6.0]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Border {
    /// The image mirrored at the middle of its outermost pixels, and mirrored again as often as is needed. An axis of one
    /// sample repeats it.
    Reflect,
    /// The image mirrored at its edge, so that outermost pixels are repeated, again as often as is needed.
    Symmetric,
    /// The outermost pixels.
    Edge,
    /// This value, rounded to the type of the image.
    Constant(f64),
    /// The image from its other end.
    Wrap,
}

impl Border {
    /// The sample of an axis of `n`, not 0, that stands at `at`; none where the constant does.
    pub(super) fn source(self, at: isize, n: usize) -> Option<usize> {
        let n = n as isize;
        let mirrored = |period: isize, at: isize| {
            let at = at.rem_euclid(period);
            at.min(period - 1 - at)
        };
        let source = match self {
            Self::Constant(_) => (0..n).contains(&at).then_some(at)?,
            Self::Edge => at.clamp(0, n - 1),
            Self::Wrap => at.rem_euclid(n),
            Self::Symmetric => mirrored(2 * n, at),
            Self::Reflect if n == 1 => 0,
            Self::Reflect => {
                let period = 2 * (n - 1);
                let at = at.rem_euclid(period);
                at.min(period - at)
            }
        };
        Some(source as usize)
    }

    /// The value of the constant, 0 where there is none.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where `T` has no such finite number.
    pub(super) fn constant<T: Element>(self) -> Result<T> {
        let Self::Constant(value) = self else { return Ok(T::zero()) };
        let rounded = T::from_f64(value).filter(|x| x.is_finite());
        let expected = "in range of the image's type";
        rounded.ok_or_else(|| Error::Parameter { argument: "border", value: value.to_string(), expected })
    }
}

/// For every sample of an axis, the positions of the padded axis that it stands at, ascending.
pub(super) struct Places {
    ends: Vec<usize>,
    places: Vec<usize>,
}

impl Places {
    /// Of an axis of `n` samples, by the sample at every position.
    pub(super) fn new(sources: &[Option<usize>], n: usize) -> Self {
        let mut ends = vec![0; n + 1];
        sources.iter().flatten().for_each(|&source| ends[source + 1] += 1);
        for at in 1..=n {
            ends[at] += ends[at - 1];
        }
        // Each start becomes its end.
        let mut places = vec![0; ends[n]];
        for (place, source) in sources.iter().enumerate() {
            if let Some(source) = *source {
                places[ends[source]] = place;
                ends[source] += 1;
            }
        }
        Self { ends, places }
    }

    pub(super) fn of(&self, sample: usize) -> &[usize] {
        let start = sample.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.places[start..self.ends[sample]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn borders_are_those_of_numpy() {
        // numpy.pad([0, 1, 2], 7, mode)
        for (border, expected) in [
            (Border::Reflect, [1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1, 2, 1, 0, 1]),
            (Border::Symmetric, [0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2, 1, 0, 0, 1, 2, 2]),
            (Border::Edge, [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2]),
            (Border::Wrap, [2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2, 0]),
        ] {
            let found: Vec<usize> = (-7..10).map(|at| border.source(at, 3).unwrap()).collect();
            assert_eq!(found, expected, "{border:?}");
            assert!((-9..9).all(|at| border.source(at, 1) == Some(0)), "{border:?}");
        }
        let found: Vec<_> = (-2..4).map(|at| Border::Constant(1.0).source(at, 2)).collect();
        assert_eq!(found, [None, None, Some(0), Some(1), None, None]);
    }

    #[test]
    fn places_are_the_inverse() {
        let sources: Vec<_> = (-4..8).map(|at| Border::Reflect.source(at, 3)).collect();
        let places = Places::new(&sources, 3);
        assert_eq!(places.of(0), [0, 4, 8]);
        assert_eq!(places.of(1), [1, 3, 5, 7, 9, 11]);
        assert_eq!(places.of(2), [2, 6, 10]);
        assert_eq!(Places::new(&[None, Some(1)], 2).of(0), [0usize; 0]);
    }

    #[test]
    fn constants_are_in_range() {
        assert_eq!(Border::Constant(0.1).constant::<f32>().unwrap(), 0.1);
        assert!(matches!(Border::Constant(1e300).constant::<f32>(), Err(Error::Parameter { .. })));
        assert!(Border::Constant(f64::NAN).constant::<f64>().is_err());
    }
}
