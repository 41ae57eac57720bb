//! Shapes of grids, and numbers of levels, that are drawn.

use super::mipmap::Cell;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

/// Mostly small, with sides of one cell and of whole words now and then.
pub fn shapes() -> impl Strategy<Value = Cell> {
    let side = || prop_oneof![4 => 1usize..20, 1 => 1usize..71, 1 => Just(1usize), 1 => select(vec![2, 3, 4, 64])];
    [side(), side(), side()]
}

/// All, or so many.
pub fn some_levels() -> impl Strategy<Value = Option<usize>> {
    option::weighted(1.0 / 3.0, 1usize..8)
}
