//! What the terms of a sum are multiplied by.

use super::kernels::{LEAD, Weighting};
use crate::Real;
use crate::error::{Error, Result};
use crate::exponent::{exponent as exponent_of, ldexp};
use crate::layout::zeros;
use std::array::from_fn;
use std::sync::OnceLock;

/// What the sequences are, and with it the weight `w(k, j)` of `A_j B_{k-j}` in the sum over j.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Weights {
    /// Derivatives, or coefficients of exponential generating functions: `w(k, j)` is the binomial coefficient C(k, j),
    /// as in the rule of Leibniz. The numbers are the nearest floats up to k = 128; beyond, sums are taken with
    /// exponents apart, so that no weight overflows. Beyond k = 32, `f32` is computed in `f64`, and results are rounded
    /// once.
    #[default]
    Binomial,
    /// Taylor coefficients `f^(k) / k!`. In a scan `w(k, j) = 1 / (k + 1)`, and it is the sum that is divided, so it
    /// overflows where `k + 1` times the result would; in products and correlations 1, since a product of Taylor series
    /// has the plain product of the coefficients.
    Taylor,
    /// Plain sequences: `w(k, j) = 1`.
    Plain,
}

/// The binomial coefficient C(n, k): the nearest float below 2^127, within 1e-15 of the right value above, infinite
/// beyond `f64`; 0 where `k > n`. At most about a thousand multiplications.
///
/// # Examples
///
/// ```
/// use pullback::triconv::binomial;
///
/// assert_eq!(binomial(49, 21), 39_049_918_716_424.0);
/// assert_eq!(binomial(3, 4), 0.0);
/// ```
#[must_use]
pub fn binomial(n: u64, k: u64) -> f64 {
    if k > n {
        return 0.0;
    }
    let k = k.min(n - k);
    let exact = (0..k).try_fold(1u128, |c, i| Some(c.checked_mul(u128::from(n - i))? / u128::from(i + 1)));
    if let Some(exact) = exact {
        return exact as f64;
    }
    let mut c = Twofold::from(1);
    for i in 0..k {
        c = c.times(Twofold::from(n - i).over(i + 1));
        if !c.high.is_finite() {
            return f64::INFINITY;
        }
    }
    c.high
}

/// The row `C(n, 0), ..., C(n, n)`, each as by [`binomial`]. O(n) numbers.
///
/// # Errors
///
/// [`Error::Allocation`].
///
/// # Examples
///
/// ```
/// assert_eq!(pullback::triconv::binomial_row(4)?, [1.0, 4.0, 6.0, 4.0, 1.0]);
/// # Ok::<(), pullback::Error>(())
/// ```
pub fn binomial_row(n: u64) -> Result<Vec<f64>> {
    let mut row = zeros(usize::try_from(n).unwrap_or(usize::MAX).saturating_add(1))?;
    for k in 0..=n / 2 {
        let number = binomial(n, k);
        row[k as usize] = number;
        row[(n - k) as usize] = number;
    }
    Ok(row)
}

/// A number of twice the precision, the sum of two.
#[derive(Clone, Copy)]
struct Twofold {
    high: f64,
    low: f64,
}

impl Twofold {
    fn from(x: u64) -> Self {
        let high = x as f64;
        Self { high, low: (i128::from(x) - high as i128) as f64 }
    }

    fn times(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high) + (self.high * other.low + self.low * other.high);
        let sum = high + low;
        Self { high: sum, low: low - (sum - high) }
    }

    fn over(self, x: u64) -> Self {
        let divisor = Self::from(x);
        let high = self.high / divisor.high;
        let rest = (-high).mul_add(divisor.high, self.high) + (self.low - high * divisor.low);
        let low = rest / divisor.high;
        let sum = high + low;
        Self { high: sum, low: low - (sum - high) }
    }

    /// Times a power of two.
    fn scaled(self, power: f64) -> Self {
        Self { high: self.high * power, low: self.low * power }
    }
}

/// The largest n of the C(n, k) in a [`Table`]: C(128, 64) is within `f32`.
pub(super) const TABLED: usize = 128;

/// Cells of a row of a [`Table`]: zeros, C(n, k) or C(k, n) for all k, zeros.
const SIDE: usize = LEAD + TABLED + 1 + LEAD;

/// Every C(n, k) up to n = [`TABLED`], by n and by k.
pub struct Table<T> {
    by_n: Vec<T>,
    by_k: Vec<T>,
}

impl<T: Real> Table<T> {
    pub(super) fn new() -> Self {
        let zeros = vec![T::zero(); (TABLED + 1) * SIDE];
        let (mut by_n, mut by_k) = (zeros.clone(), zeros);
        let mut row = [0u128; TABLED + 1];
        row[0] = 1;
        for n in 0..=TABLED {
            if n > 0 {
                row = from_fn(|k| row[k] + k.checked_sub(1).map_or(0, |before| row[before]));
            }
            for (k, &c) in row[..=n].iter().enumerate() {
                let c = T::from_u128(c).expect("below the largest float");
                by_n[n * SIDE + LEAD + k] = c;
                by_k[k * SIDE + LEAD + n] = c;
            }
        }
        Self { by_n, by_k }
    }
}

/// Elements that have a table, made when it is first asked for.
pub trait Tabled: Sized + 'static {
    fn table() -> &'static Table<Self>;
}

macro_rules! tabled {
    ($($t:ty),*) => { $(impl Tabled for $t {
        fn table() -> &'static Table<$t> {
            static TABLE: OnceLock<Table<$t>> = OnceLock::new();
            TABLE.get_or_init(Table::new)
        }
    })* };
}
tabled!(f32, f64);

/// The binomial coefficients of a triangle of pairs, as C(n, k) for output x and term j.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binomials {
    /// C(x, j): convolutions.
    OfOutput,
    /// C(x + j, j): correlations.
    OfSum,
    /// C(j + first, x): correlations with the sums over the longer index, which are given from `first` on.
    OfTerm {
        /// The index of term 0.
        first: usize,
    },
    /// C(last - j, x - j): a scan backwards, in which output x is index `last + 1 - x` and term j index `last + 1 - j`.
    Backwards {
        /// The n of the scan's last step.
        last: usize,
    },
}

impl Binomials {
    /// n and k.
    pub(super) fn of(self, x: usize, j: usize) -> (usize, usize) {
        match self {
            Self::OfOutput => (x, j),
            Self::OfSum => (x + j, j),
            Self::OfTerm { first } => (j + first, x),
            Self::Backwards { last } => (last - j, x - j),
        }
    }

    /// The weight of one pair.
    pub(super) fn weight<T: Real>(self, table: &Table<T>, x: usize, j: usize) -> T {
        let (n, k) = self.of(x, j);
        table.by_n[n * SIDE + LEAD + k]
    }

    /// The weights of outputs from `x` for terms from `j`. Where there is no pair, they are some numbers of the table.
    pub(super) fn lanes<T: Real>(self, table: &Table<T>, x: usize, j: usize) -> Weighting<'_, T> {
        let side = SIDE as isize;
        let (cells, at, step) = match self {
            Self::OfOutput => (&table.by_k, j * SIDE + LEAD + x, side),
            Self::OfSum => (&table.by_k, j * SIDE + LEAD + x + j, side + 1),
            Self::OfTerm { first } => (&table.by_n, (j + first) * SIDE + LEAD + x, side),
            Self::Backwards { last } => (&table.by_n, (last - j) * SIDE + LEAD + x - j, -side - 1),
        };
        Weighting { cells, at, step }
    }
}

/// Factorials as mantissas in 1..2 and powers of two, for binomial coefficients of any size.
pub(super) struct Factorials {
    mantissas: Vec<f64>,
    inverses: Vec<f64>,
    exponents: Vec<i32>,
}

impl Factorials {
    /// Those of `0..=most`.
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`]: where there are no sequences, no memory says how long they may be.
    pub(super) fn new(most: usize) -> Result<Self> {
        fn room<V>(len: usize) -> Result<Vec<V>> {
            let mut room = Vec::new();
            let bytes = len.saturating_mul(size_of::<V>());
            room.try_reserve_exact(len).map_err(|_| Error::Allocation { bytes })?;
            Ok(room)
        }
        let len = most.saturating_add(1);
        let mut factorials = Self { mantissas: room(len)?, inverses: room(len)?, exponents: room(len)? };
        let (mut product, mut exponent) = (Twofold::from(1), 0);
        for k in 0..=most {
            product = product.times(Twofold::from(k.max(1) as u64));
            if product.high >= 2.0 {
                let bits = exponent_of(product.high);
                product = product.scaled(ldexp(1.0, -bits));
                exponent += bits;
            }
            factorials.mantissas.push(product.high);
            factorials.inverses.push(1.0 / product.high);
            factorials.exponents.push(exponent);
        }
        Ok(factorials)
    }

    /// C(n, k) as a number and the power of two that it is times; within 4 roundings.
    pub(super) fn binomial(&self, (n, k): (usize, usize)) -> (f64, i32) {
        let mantissa = self.mantissas[n] * (self.inverses[k] * self.inverses[n - k]);
        (mantissa, self.exponents[n] - self.exponents[k] - self.exponents[n - k])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_binomials_are_within_their_error() {
        assert_eq!(binomial(34, 15), 1_855_967_520.0);
        assert_eq!(binomial(1100, 1), 1100.0);
        assert!((binomial(1020, 510) / 2.806_267_768_299_622_5e305 - 1.0).abs() < 1e-15);
        assert_eq!(binomial(1100, 550), f64::INFINITY);
        assert_eq!(binomial(u64::MAX, 1), u64::MAX as f64);
        assert_eq!(binomial(u64::MAX, u64::MAX / 2), f64::INFINITY);
    }

    #[test]
    fn factorials_make_the_same_binomials() {
        let factorials = Factorials::new(1000).unwrap();
        for (n, k) in [(0, 0), (1, 1), (56, 28), (128, 64), (1000, 500), (1000, 3)] {
            let (mantissa, exponent) = factorials.binomial((n, k));
            let expected = binomial(n as u64, k as u64);
            assert!((mantissa * f64::from(exponent).exp2() / expected - 1.0).abs() < 4.0 * f64::EPSILON, "{n} {k}");
        }
    }

    #[test]
    fn tables_hold_the_weights_of_pairs() {
        let table = Table::<f64>::new();
        for (rule, x, j, expected) in [
            (Binomials::OfOutput, 9, 4, binomial(9, 4)),
            (Binomials::OfSum, 9, 4, binomial(13, 4)),
            (Binomials::OfTerm { first: 2 }, 4, 7, binomial(9, 4)),
            (Binomials::Backwards { last: 20 }, 9, 4, binomial(16, 5)),
        ] {
            assert_eq!(rule.weight(&table, x, j), expected);
            let lanes = rule.lanes(&table, x - 1, j - 1);
            assert_eq!(lanes.cells[lanes.at.wrapping_add_signed(lanes.step) + 1], expected, "{rule:?}");
        }
    }
}
