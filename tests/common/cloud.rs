//! Points and queries of many kinds, the harmless and those that rounding, ties and overflow make hard.

use super::random::Random;
use super::values::Value;
use ndarray::{Array1, Array2};

/// Where points are drawn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cloud {
    /// -1 to 1 on every axis.
    Uniform,
    /// 0 to 3 on every axis, integers: duplicates, and ties of every distance.
    Lattice,
    /// One point.
    Equal,
    /// Eight small balls far from each other.
    Clustered,
    /// The corners of a box: all at one distance from the origin.
    Corners,
    /// The first axis is constant.
    Flat,
    /// On a line through the origin.
    Line,
    /// Axes of lengths 1, 100 and 10,000 in turns.
    Stretched,
    /// Spacing 1e-3 at 1e4, where an f32 is rounded to 1e-3.
    Offset,
    /// Magnitudes so far apart that sums in another order have other bits.
    Spread,
    /// Near the largest values of either sign: differences overflow.
    Huge,
    /// Near the root of the largest value: some squares overflow, some do not.
    Overflow,
    /// Near the root of the least normal value: squares are subnormal.
    Underflow,
    /// A few of the least subnormal values of either sign: squares are zero.
    Subnormal,
    /// Zeros of either sign.
    Zeros,
    /// Two adjacent values.
    Adjacent,
    /// Four given values, finite or not.
    Palette([f64; 4]),
}

impl Cloud {
    /// All that are finite.
    pub const ALL: [Self; 16] = [
        Self::Uniform,
        Self::Lattice,
        Self::Equal,
        Self::Clustered,
        Self::Corners,
        Self::Flat,
        Self::Line,
        Self::Stretched,
        Self::Offset,
        Self::Spread,
        Self::Huge,
        Self::Overflow,
        Self::Underflow,
        Self::Subnormal,
        Self::Zeros,
        Self::Adjacent,
    ];

    /// A row of a cloud, which all rows of one `shape` are of.
    fn row<T: Value>(self, dims: usize, shape: u64, random: &mut Random) -> Vec<T> {
        // One number that all axes of the row share.
        let common = random.bits();
        let coordinate = |axis: usize| {
            let number = |x: f64| T::from_f64(x).expect("rounded");
            let mut unit = || number(unit(random.bits()));
            match self {
                Self::Uniform => unit(),
                Self::Lattice => number(random.below(4) as f64),
                Self::Equal => number(0.1 + axis as f64),
                Self::Clustered => unit() * number(1e-3) + number(100.0 * fixed(shape ^ (common % 8), axis)),
                Self::Corners => random.one_of(&[T::one(), -T::one()]) * number(fixed(shape, axis)),
                Self::Flat if axis == 0 => number(0.7),
                Self::Flat => unit(),
                Self::Line => number(self::unit(common) * (axis as f64 + 1.0)),
                Self::Stretched => unit() * number([1.0, 1e2, 1e4][axis % 3]),
                Self::Offset => number(1e4 + 1e-3 * random.below(500) as f64),
                Self::Spread => T::spread(random.bits()),
                Self::Huge => {
                    let big = T::max_value() * number(0.9);
                    let between = unit() * big;
                    let small = unit();
                    random.one_of(&[big, -big, between, small])
                }
                Self::Overflow => unit() * T::max_value().sqrt(),
                Self::Underflow => unit() * T::min_positive_value().sqrt() * number(2.0),
                Self::Subnormal => {
                    let least = T::min_positive_value() * T::epsilon();
                    least * number(random.below(17) as f64 - 8.0)
                }
                Self::Zeros => random.one_of(&[T::zero(), -T::zero()]),
                Self::Adjacent => random.one_of(&[T::one(), T::one() + T::epsilon()]),
                Self::Palette(values) => number(random.one_of(&values)),
            }
        };
        (0..dims).map(coordinate).collect()
    }

    pub fn points<T: Value>(self, rows: usize, dims: usize, random: &mut Random) -> Array2<T> {
        let (shape, mut points) = (random.bits(), Array2::zeros([rows, dims]));
        for mut row in points.outer_iter_mut() {
            row.assign(&Array1::from_vec(self.row(dims, shape, random)));
        }
        points
    }

    /// Queries between the points, at them, an ulp beside them, outside of their box, far away and at the origin.
    pub fn queries<T: Value>(self, points: &Array2<T>, rows: usize, random: &mut Random) -> Array2<T> {
        let dims = points.ncols();
        let mut queries = self.points(rows, dims, random);
        let finite = |x: T| x.max(T::min_value()).min(T::max_value());
        let far = [T::max_value(), T::from_f32(1e6).expect("a round number")];
        for mut query in queries.outer_iter_mut() {
            match random.below(8) {
                0..2 if points.nrows() > 0 => query.assign(&points.row(random.below(points.nrows()))),
                2 if points.nrows() > 0 => {
                    query.assign(&points.row(random.below(points.nrows())));
                    query.mapv_inplace(|x| finite(x + x * T::epsilon()));
                }
                3 => query.mapv_inplace(|x| finite(x + x + x)),
                4 => {
                    let far = random.one_of(&far);
                    query.mapv_inplace(|x| x.signum() * far);
                }
                5 => query.fill(T::zero()),
                _ => {}
            }
        }
        queries
    }
}

/// -1 to 1.
fn unit(bits: u64) -> f64 {
    bits as f64 / (1u64 << 63) as f64 - 1.0
}

/// -1 to 1, the same number for the same arguments.
fn fixed(seed: u64, axis: usize) -> f64 {
    unit(Random::new(Random::new(seed).bits() ^ axis as u64).bits())
}
