//! Answers that overflow, and results of f64 that are rounded.

use super::cells::assert_cells;
use super::triconv_bounds::most;
use super::triconv_magnitude::Magnitude;
use super::wide::{Referred, Wide};
use ndarray::ArrayD;
use pullback::Error;

/// A result of which only a part is looked at.
pub type Borrowed<'a, T> = Result<&'a ArrayD<T>, &'a Error>;

/// What references know of a matrix of a result.
#[derive(Clone, Copy, Debug)]
pub struct Beyond {
    pub k: usize,
    /// Whether the sums of magnitudes are near the largest number, so that a sum may be beyond it on the way.
    pub possible: bool,
    /// Whether an entry is beyond it, however it is rounded.
    pub certain: bool,
}

impl Beyond {
    /// Of entries that are right within `error` of their sizes.
    pub fn of<T: Referred>(k: usize, values: &[T::Wide], sizes: &[Magnitude<T>], error: f64) -> Self {
        let beyond = |(value, &Magnitude { size, lost, .. }): (&T::Wide, &Magnitude<T>)| {
            let value = value.to_f64().abs();
            value.is_finite() && value - (error + 1e-6) * size - lost > most::<T>()
        };
        Self {
            k,
            possible: sizes.iter().any(|size| !size.is_in_range()),
            certain: values.iter().zip(sizes).any(beyond),
        }
    }
}

/// `error` says that `result` overflows, and where it may: at the matrix itself or, where those after it are computed from one that
/// comes first, there.
#[track_caller]
pub fn assert_overflow(result: &'static str, error: &Error, known: &[Beyond], backwards: bool) {
    let &Error::Overflow { result: named, first_k } = error else { panic!("{error}") };
    assert_eq!(named, result, "{error}");
    let possible = known.iter().any(|b| b.possible && (b.k == first_k || backwards && b.k > first_k));
    assert!(possible, "{error}, where nothing is near it: {known:?}");
    let earlier = known.iter().find(|b| b.certain && b.k < first_k);
    assert!(earlier.is_none(), "{error}, not before it: {earlier:?}");
}

/// Of each of so many items, whether all of its cells are.
pub fn finite_items<T: Referred>(array: &ArrayD<T>, items: usize) -> Vec<bool> {
    let cells: Vec<T> = array.iter().copied().collect();
    let each = cells.len().checked_div(items).unwrap_or(0);
    (0..items).map(|item| cells[item * each..(item + 1) * each].iter().all(|x| x.is_finite())).collect()
}

/// Which results are made from numbers all of which are finite: those of each cotangent of each item or, where they are `summed`, of
/// each cotangent.
pub fn finite_results(each: &[bool], items: usize, summed: bool) -> Vec<bool> {
    if summed && items > 0 { each.chunks(items).map(|all| all.iter().all(|&x| x)).collect() } else { each.to_vec() }
}

/// `found` is what `wide` is rounded to, and an error where that is not finite in an item of which all inputs are, as `finite` says.
/// Matrices are along the last axis but two.
#[track_caller]
pub fn same_rounded<T: Referred>(
    result: &'static str,
    found: Borrowed<'_, T>,
    wide: Borrowed<'_, f64>,
    finite: &[bool],
) {
    let wide = match wide {
        Ok(wide) => wide,
        Err(Error::Overflow { result: of_wide, first_k: most }) => {
            // What is rounded may be beyond f32 in a matrix that comes earlier, or in a result that is looked at earlier.
            let Err(Error::Overflow { result: named, first_k }) = found else {
                panic!("{result} overflows in f64 alone")
            };
            assert!(
                named < of_wide || named == of_wide && first_k <= most,
                "{named}[{first_k}], not {of_wide}[{most}]"
            );
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let rounded = wide.mapv(T::rounded);
    let len = wide.shape()[wide.ndim() - 3];
    let matrix: usize = wide.shape()[wide.ndim() - 2..].iter().product();
    // By slices, as below.
    let [from, to] = [wide.mapv(f64::is_finite), rounded.map(|x| x.value().is_finite())]
        .map(|of| of.into_iter().collect::<Vec<_>>());
    let cells = from.iter().zip(&to).enumerate();
    let over = cells.filter(|(at, (wide, rounded))| **wide && !**rounded && finite[at / (matrix * len)]);
    let first = over.map(|(at, _)| at / matrix % len).min();
    match (found, first) {
        (Ok(found), None) => assert_cells(result, found, &rounded),
        (Err(Error::Overflow { result: named, first_k }), Some(first)) => {
            assert_eq!((*named, *first_k), (result, first));
        }
        (Err(error), _) => panic!("{error}, not the result of f64"),
        (Ok(_), Some(first)) => panic!("{result}[{first}] overflows without an error"),
    }
}

/// `found` is `start` with a gradient added to it, but for two roundings.
#[track_caller]
pub fn assert_added<T: Referred>(what: &str, start: &ArrayD<T>, gradient: &ArrayD<T>, found: &ArrayD<T>) {
    // By slices: memory checkers take the end of iterators over arrays for uninitialised memory.
    let [start, gradient, found] = [start, gradient, found].map(|array| array.iter().copied().collect::<Vec<T>>());
    for ((&start, &gradient), &found) in start.iter().zip(&gradient).zip(&found) {
        let sum = start.wide() + gradient.wide();
        let error = 4.0 * T::unit() * (start.wide().to_f64().abs() + gradient.wide().to_f64().abs());
        let close = (found.wide() - sum).to_f64().abs() <= error;
        assert!(close || !gradient.is_finite(), "{what} is {found:?} by adjoint_add, not {start:?} + {gradient:?}");
    }
}
