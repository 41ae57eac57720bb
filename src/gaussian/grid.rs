//! Where the samples of a kernel lie, and the tables that its inner loops read.

use crate::element::Element;
use crate::error::{Error, Result};
use crate::exponent::{exponent, ldexp};
use crate::layout::{dense, elements, zeros};
use ndarray::{Array3, ArrayView3};

/// Where the middle of a kernel lies on its grid of `kh` x `kw` samples.
///
/// Sample (row, column) has the position `z = (column - cx, row - cy)`, `x` to the right and `y` down. The formulas hold
/// for each axis, with `k` the `kw` of `x` or the `kh` of `y`. Libraries differ in which one they take, and a kernel that
/// is off by half a sample looks right.
///
/// # Examples
///
/// ```
/// use pullback::gaussian::{Centre, KernelMaps};
/// use pullback::ndarray::s;
///
/// let x = |centre| KernelMaps::<f64>::rectangular([1, 4], centre).unwrap().grid().slice(s![0, .., 0]).to_vec();
/// assert_eq!(x(Centre::Corner), [0.0, 1.0, 2.0, 3.0]);
/// assert_eq!(x(Centre::Middle), [-1.5, -0.5, 0.5, 1.5]);
/// assert_eq!(x(Centre::Half), [-2.0, -1.0, 0.0, 1.0]);
/// assert_eq!(x(Centre::ShiftCorrelation(2)), [-2.5, -1.5, -0.5, 0.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Centre {
    /// The first sample, 0.
    Corner,
    /// The middle of the window, `(k - 1) / 2`: between two samples where `k` is even.
    Middle,
    /// The sample `k / 2` rounded down, where convolution libraries put the middle.
    Half,
    /// `k / 2` rounded down, less `(sf - 1) / 2`: a kernel that is flipped, as a convolution flips it, and then applied with the
    /// stride `sf` keeps the middle of the image where it is.
    ShiftConvolution(usize),
    /// `k / 2` rounded down, plus `(sf - 1) / 2`: the same for a kernel that is not flipped.
    ShiftCorrelation(usize),
    /// This `x` and `y`, in samples.
    At(f64, f64),
}

impl Centre {
    /// The centre (x, y) on a grid of this shape (kh, kw).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] where a stride is 0 or a position is not finite.
    pub(crate) fn position(self, [kh, kw]: [usize; 2]) -> Result<[f64; 2]> {
        let half = |k: usize| (k / 2) as f64;
        let shift = |sf: usize| match sf {
            0 => Err(Error::Parameter { argument: "sf", value: sf.to_string(), expected: "at least 1" }),
            sf => Ok((sf - 1) as f64 / 2.0),
        };
        let finite = |argument, x: f64| match x {
            x if x.is_finite() => Ok(x),
            x => Err(Error::Parameter { argument, value: x.to_string(), expected: "a position in samples" }),
        };
        Ok(match self {
            Self::Corner => [0.0; 2],
            Self::Middle => [kw, kh].map(|k| (k as f64 - 1.0) / 2.0),
            Self::Half => [kw, kh].map(half),
            Self::ShiftConvolution(sf) => {
                let shift = shift(sf)?;
                [kw, kh].map(|k| half(k) - shift)
            }
            Self::ShiftCorrelation(sf) => {
                let shift = shift(sf)?;
                [kw, kh].map(|k| half(k) + shift)
            }
            Self::At(x, y) => [finite("centre x", x)?, finite("centre y", y)?],
        })
    }
}

/// Vectors that inner loops take in one step.
pub(crate) const BLOCK: usize = 2;

/// Grids whose largest coordinate is further from 1 than this power of two are scaled, so that squares stay in range.
const UNSCALED: i32 = 20;

/// The samples of a kernel, row by row, in tables.
///
/// Tables hold positions divided by `2^scale`, and zeros behind the last sample up to a whole number of blocks.
pub struct Grid<T> {
    /// (kh, kw).
    pub shape: [usize; 2],
    pub x: Vec<T>,
    pub y: Vec<T>,
    pub xx: Vec<T>,
    pub xy: Vec<T>,
    pub yy: Vec<T>,
    pub scale: i32,
    /// 0, 1, 2, ... a lane.
    pub lanes: Vec<T>,
    /// The largest coordinate in size, in tables and outside.
    pub reach: f64,
    pub distance: f64,
    /// The sample that is `z = 0`, where there is one: `q` is least there. The middle one of several on a mirrored grid.
    pub zero: Option<usize>,
    /// Whether sample `n - 1 - i` is `-z` of sample `i`, and half of the samples fill blocks of the others: `q(-z) = q(z)`.
    pub mirrored: bool,
    /// The positions as they are (kh, kw, 2).
    pub z: Array3<T>,
}

impl<T: Element> Grid<T> {
    /// The grid of this shape (kh, kw).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`] for sizes of 0 and centres that `T` does not reach, [`Error::TooLarge`], [`Error::Allocation`].
    pub(crate) fn new(shape: [usize; 2], centre: Centre) -> Result<Self> {
        check_sizes(shape)?;
        let centre = centre.position(shape)?;
        // The furthest sample from the centre is the first or the last of an axis.
        for (argument, c, k) in [("centre x", centre[0], shape[1]), ("centre y", centre[1], shape[0])] {
            let furthest = c.abs().max((c - (k - 1) as f64).abs());
            if !T::from_f64(furthest).is_some_and(T::is_finite) {
                let expected = "in range of the kernel's type";
                return Err(Error::Parameter { argument, value: c.to_string(), expected });
            }
        }
        let at = |(row, column, axis): (usize, usize, usize)| {
            let z = [column, row][axis] as f64 - centre[axis];
            T::from_f64(z).expect("every f64 rounds to an element")
        };
        elements::<T>(&[shape[0], shape[1], 8])?;
        let mut z = Array3::from_shape_vec((shape[0], shape[1], 2), zeros(2 * shape[0] * shape[1])?).expect("so many");
        z.indexed_iter_mut().for_each(|(place, z)| *z = at(place));
        Self::of(z)
    }

    /// The grid of these positions (kh, kw, 2), x first.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`], [`Error::Parameter`] for sizes of 0, [`Error::NonFinite`], [`Error::Allocation`].
    pub(crate) fn with_positions(z: ArrayView3<'_, T>) -> Result<Self> {
        let (kh, kw, axes) = z.dim();
        if axes != 2 {
            return Err(Error::Shape { argument: "z", found: z.shape().to_vec(), expected: vec![kh, kw, 2] });
        }
        check_sizes([kh, kw])?;
        elements::<T>(&[kh, kw, 8])?;
        let z = Array3::from_shape_vec((kh, kw, 2), dense(&z)?.into_owned()).expect("so many");
        if let Some(((row, column, axis), value)) = z.indexed_iter().find(|(_, value)| !value.is_finite()) {
            let position = vec![row, column, axis];
            return Err(Error::NonFinite { argument: "z", position, value: format!("{value:?}") });
        }
        Self::of(z)
    }

    fn of(z: Array3<T>) -> Result<Self> {
        let (kh, kw, _) = z.dim();
        let n = kh * kw;
        let float = |x: T| x.to_f64().expect("a float is an f64");
        let distance = z.iter().fold(0.0, |distance: f64, &x| distance.max(float(x).abs()));
        let scale = if distance == 0.0 { 0 } else { exponent(distance) };
        let scale = if scale.abs() <= UNSCALED { 0 } else { scale };
        let positions = || z.iter().map(|&x| ldexp(float(x), -scale));
        let padded = n.div_ceil(BLOCK * T::LANES) * BLOCK * T::LANES;
        let table = |value: &dyn Fn(f64, f64) -> f64| {
            let mut cells = Vec::new();
            cells.try_reserve_exact(padded).map_err(|_| Error::Allocation { bytes: padded * size_of::<T>() })?;
            let samples = positions().step_by(2).zip(positions().skip(1).step_by(2));
            // Products of two elements are rounded once: in f64 those of f32 are exact.
            cells.extend(samples.map(|(x, y)| T::from_f64(value(x, y)).expect("every f64 rounds to an element")));
            cells.resize(padded, T::zero());
            Ok(cells)
        };
        let (x, y) = (table(&|x, _| x)?, table(&|_, y| y)?);
        let is_zero = |i: usize| x[i] == T::zero() && y[i] == T::zero();
        let half = (n / 2 + 1).div_ceil(BLOCK * T::LANES) * BLOCK * T::LANES;
        let opposite = |i: usize| x[i] == -x[n - 1 - i] && y[i] == -y[n - 1 - i];
        Ok(Self {
            shape: [kh, kw],
            zero: [n / 2].into_iter().chain(0..n).find(|&i| is_zero(i)),
            mirrored: half <= n && (0..n.div_ceil(2)).all(opposite),
            xx: table(&|x, _| x * x)?,
            xy: table(&|x, y| x * y)?,
            yy: table(&|_, y| y * y)?,
            x,
            y,
            scale,
            lanes: (0..T::LANES).map(|lane| T::from_usize(lane).expect("a small number")).collect(),
            reach: ldexp(distance, -scale),
            distance,
            z,
        })
    }

    /// The number of samples.
    pub(crate) fn samples(&self) -> usize {
        self.shape[0] * self.shape[1]
    }
}

fn check_sizes(shape: [usize; 2]) -> Result<()> {
    for (argument, size) in [("kh", shape[0]), ("kw", shape[1])] {
        if size == 0 {
            return Err(Error::Parameter { argument, value: size.to_string(), expected: "at least 1" });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::array;

    #[test]
    fn centres_are_where_they_say() {
        let at = |centre: Centre, shape| centre.position(shape).unwrap();
        assert_eq!(at(Centre::Corner, [5, 8]), [0.0, 0.0]);
        assert_eq!(at(Centre::Middle, [5, 8]), [3.5, 2.0]);
        assert_eq!(at(Centre::Half, [5, 8]), [4.0, 2.0]);
        assert_eq!(at(Centre::ShiftConvolution(4), [21, 8]), [2.5, 8.5]);
        assert_eq!(at(Centre::ShiftCorrelation(4), [21, 8]), [5.5, 11.5]);
        assert_eq!(at(Centre::ShiftCorrelation(1), [3, 3]), at(Centre::Half, [3, 3]));
        assert_eq!(at(Centre::At(0.25, -7.0), [3, 3]), [0.25, -7.0]);
        for centre in [Centre::ShiftConvolution(0), Centre::ShiftCorrelation(0), Centre::At(f64::NAN, 0.0)] {
            assert!(matches!(centre.position([3, 3]), Err(Error::Parameter { .. })), "{centre:?}");
        }
        assert!(matches!(Grid::<f32>::new([3, 3], Centre::At(0.0, 1e300)), Err(Error::Parameter { .. })));
        assert!(Grid::<f64>::new([3, 3], Centre::At(0.0, 1e300)).is_ok());
    }

    #[test]
    fn tables_hold_the_samples_row_by_row() {
        let grid = Grid::<f32>::new([2, 3], Centre::At(1.0, 0.5)).unwrap();
        assert_eq!(grid.x[..6], [-1.0, 0.0, 1.0, -1.0, 0.0, 1.0]);
        assert_eq!(grid.y[..6], [-0.5, -0.5, -0.5, 0.5, 0.5, 0.5]);
        assert_eq!(grid.xy[..6], [0.5, 0.0, -0.5, -0.5, 0.0, 0.5]);
        assert_eq!((grid.x.len(), grid.xx[6], grid.scale, grid.reach), (32, 0.0, 0, 1.0));
        assert_eq!(grid.zero, None);
        assert_eq!(grid.z[[1, 2, 0]], 1.0);
    }

    #[test]
    fn symmetry_is_seen() {
        let of = |shape, centre| {
            let grid = Grid::<f64>::new(shape, centre).unwrap();
            (grid.zero.is_some(), grid.mirrored)
        };
        assert_eq!(of([21, 21], Centre::Middle), (true, true));
        assert_eq!(of([21, 21], Centre::Half), (true, true));
        assert_eq!(of([20, 20], Centre::Middle), (false, true));
        assert_eq!(of([20, 20], Centre::Half), (true, false));
        assert_eq!(of([21, 21], Centre::Corner), (true, false));
        // Too small for a half of whole blocks.
        assert_eq!(of([3, 3], Centre::Middle), (true, false));
    }

    #[test]
    fn far_positions_are_scaled() {
        let z = array![[[1e30f32, 0.0], [-3e30, 1.0]]];
        let grid = Grid::with_positions(z.view()).unwrap();
        assert_eq!(grid.scale, 101);
        assert!((1.0..2.0).contains(&grid.reach) && grid.xx[1].is_finite());
        assert_eq!(f64::from(grid.x[0]) * 2f64.powi(101), f64::from(1e30f32));
        let near = Grid::with_positions(array![[[1e-40f32, -1e-39]]].view()).unwrap();
        assert!((1.0..2.0).contains(&near.reach));
        assert!(matches!(
            Grid::with_positions(array![[[1.0f32, f32::INFINITY]]].view()),
            Err(Error::NonFinite { argument: "z", position, .. }) if position == [0, 0, 1]
        ));
    }
}
