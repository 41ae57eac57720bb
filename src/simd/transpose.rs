//! Squares of elements turned about their diagonal in registers.

use super::{MOST_LANES, Simd, Vector};
use crate::element::Element;

/// As many vectors as there are lanes, a row each, become a column each.
///
/// Zipping vectors i and i + half takes the highest bit of the row's number to the lowest of the lane's, and the highest of the
/// lane's to the lowest of the row's: after as many rounds as there are bits, rows and lanes have changed places.
#[inline(always)]
pub fn transpose<T: Element, S: Simd>(_: S, rows: &mut [S::V<T>; MOST_LANES]) {
    let half = T::LANES / 2;
    for _ in 0..T::LANES.ilog2() {
        let from = *rows;
        for i in 0..half {
            (rows[2 * i], rows[2 * i + 1]) = Vector::zip(from[i], from[i + half]);
        }
    }
}
