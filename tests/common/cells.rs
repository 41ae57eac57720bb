//! Comparison of bits.

use super::values::Value;
use ndarray::{ArrayD, ArrayRef, Dimension};

/// What a cell of an output must hold.
#[derive(Clone, Copy, Debug)]
pub enum Cell<T> {
    /// These very bits.
    Copied(T),
    /// These very bits, but any NaN for a NaN: arithmetic made it.
    Computed(T),
}

impl<T: Value> Cell<T> {
    pub fn value(self) -> T {
        let (Self::Copied(value) | Self::Computed(value)) = self;
        value
    }

    fn accepts(self, found: T) -> bool {
        let any_nan = matches!(self, Self::Computed(value) if value.is_nan());
        found.to_bits() == self.value().to_bits() || any_nan && found.is_nan()
    }
}

/// Every cell of `found` is as expected.
#[track_caller]
pub fn assert_cells<T: Value, D: Dimension>(what: &str, found: &ArrayRef<T, D>, expected: &ArrayD<Cell<T>>) {
    assert_eq!(found.shape(), expected.shape(), "shape of {what}");
    for ((position, &expected), &found) in expected.indexed_iter().zip(found) {
        let bits = found.to_bits();
        assert!(expected.accepts(found), "{what}{:?} = {found:?} ({bits:#x}), not {expected:?}", position.slice());
    }
}

/// `found` and `expected` are the same bits in the same shape.
#[track_caller]
pub fn assert_same<T: Value, D: Dimension>(what: &str, found: &ArrayRef<T, D>, expected: &ArrayRef<T, D>) {
    assert_cells(what, found, &expected.mapv(Cell::Copied).into_dyn());
}
