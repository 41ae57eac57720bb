//! Boxes, looked up through the tree: what is empty, or known, above is not looked at below.

use super::bricks::{Cell, Frame, set_bits};
use super::pyramid::Pyramid;
use crate::error::{Error, Result};

/// Refuses a box that is none of the grid. Returns whether it holds a cell.
pub(super) fn check_box(lo: Cell, hi: Cell, shape: Cell) -> Result<bool> {
    if (0..3).any(|axis| lo[axis] > hi[axis] || hi[axis] > shape[axis]) {
        return Err(Error::Box { lo: lo.to_vec(), hi: hi.to_vec(), shape: shape.to_vec() });
    }
    Ok((0..3).all(|axis| lo[axis] < hi[axis]))
}

/// A box of level 0 at each grid of the tree.
struct Steps {
    /// Cells that the box touches, from the first to behind the last, and those that lie in it.
    boxes: Vec<[(Cell, Cell); 2]>,
}

impl Steps {
    fn new(pyramid: &Pyramid, lo: Cell, hi: Cell) -> Self {
        let shape = pyramid.shape();
        let at = |s: usize| {
            let log = pyramid.exponents(s);
            let (mut touched, mut inner) = ((lo, hi), (lo, hi));
            for axis in 0..3 {
                let log = log[axis];
                touched.0[axis] = lo[axis] >> log;
                touched.1[axis] = ((hi[axis] - 1) >> log) + 1;
                // The last cell of an axis may have fewer below it.
                let behind = touched.1[axis];
                let ends = hi[axis] == shape[axis] || behind << log == hi[axis];
                inner.0[axis] = ((lo[axis] + (1 << log)) - 1) >> log;
                inner.1[axis] = if ends { behind } else { behind - 1 };
            }
            [touched, inner]
        };
        Self { boxes: (0..pyramid.tree.len()).map(at).collect() }
    }
}

impl Pyramid {
    /// Whether a cell from `lo` to before `hi` is occupied; false for an empty box. O(log n) words beside those on the box's
    /// surface that are occupied.
    ///
    /// # Errors
    ///
    /// [`Error::Box`] where the box is not one of the grid.
    pub fn any_in_box(&self, lo: [usize; 3], hi: [usize; 3]) -> Result<bool> {
        Ok(check_box(lo, hi, self.shape())? && self.any(lo, hi))
    }

    /// The number of occupied cells from `lo` to before `hi`. O(words that are occupied).
    ///
    /// # Errors
    ///
    /// [`Error::Box`] where the box is not one of the grid.
    pub fn count_in_box(&self, lo: [usize; 3], hi: [usize; 3]) -> Result<u64> {
        if !check_box(lo, hi, self.shape())? {
            return Ok(0);
        }
        let steps = Steps::new(self, lo, hi);
        let mut sum = 0;
        self.each_top(&steps, |s, brick| {
            sum += self.count_below(&steps, s, brick);
            true
        });
        Ok(sum)
    }

    /// Whether all cells from `lo` to before `hi` are occupied; true for an empty box. O(words), fewer where the answer is no.
    ///
    /// # Errors
    ///
    /// [`Error::Box`] where the box is not one of the grid.
    pub fn all_in_box(&self, lo: [usize; 3], hi: [usize; 3]) -> Result<bool> {
        if !check_box(lo, hi, self.shape())? {
            return Ok(true);
        }
        let steps = Steps::new(self, lo, hi);
        Ok(self.each_top(&steps, |s, brick| self.all_below(&steps, s, brick)))
    }

    /// [`Pyramid::any_in_box`] of a box that is checked and not empty.
    pub(super) fn any(&self, lo: Cell, hi: Cell) -> bool {
        let steps = Steps::new(self, lo, hi);
        !self.each_top(&steps, |s, brick| !self.any_below(&steps, s, brick))
    }

    /// Runs `f` on the bricks of the highest grid that the box touches, as long as it says so. Returns whether it always did.
    fn each_top(&self, steps: &Steps, mut f: impl FnMut(usize, Cell) -> bool) -> bool {
        let s = self.tree.len() - 1;
        let [(lo, hi), _] = steps.boxes[s];
        let (first, end) = self.tree[s].frame.bricks_of(lo, hi);
        for x in first[0]..end[0] {
            for y in first[1]..end[1] {
                for z in first[2]..end[2] {
                    if !f(s, [x, y, z]) {
                        return false;
                    }
                }
            }
        }
        true
    }

    fn any_below(&self, steps: &Steps, s: usize, brick: Cell) -> bool {
        let frame = &self.tree[s].frame;
        let [touched, inner] = steps.boxes[s];
        let bits = self.tree[s].words()[frame.index(brick)] & frame.mask(brick, touched.0, touched.1);
        let known = bits != 0 && bits & frame.mask(brick, inner.0, inner.1) != 0;
        known || each_bit(frame, brick, bits, |cell| !self.any_below(steps, s - 1, cell))
    }

    fn count_below(&self, steps: &Steps, s: usize, brick: Cell) -> u64 {
        let frame = &self.tree[s].frame;
        let [touched, _] = steps.boxes[s];
        let bits = self.tree[s].words()[frame.index(brick)] & frame.mask(brick, touched.0, touched.1);
        if s == 0 {
            return bits.count_ones().into();
        }
        let mut sum = 0;
        each_bit(frame, brick, bits, |cell| {
            sum += self.count_below(steps, s - 1, cell);
            true
        });
        sum
    }

    fn all_below(&self, steps: &Steps, s: usize, brick: Cell) -> bool {
        let frame = &self.tree[s].frame;
        let [touched, _] = steps.boxes[s];
        let mask = frame.mask(brick, touched.0, touched.1);
        let bits = self.tree[s].words()[frame.index(brick)] & mask;
        bits == mask && (s == 0 || !each_bit(frame, brick, bits, |cell| self.all_below(steps, s - 1, cell)))
    }
}

/// Runs `f` on the cells of a brick whose bits are set, as long as it says so. Returns whether it stopped.
fn each_bit(frame: &Frame, brick: Cell, bits: u64, mut f: impl FnMut(Cell) -> bool) -> bool {
    set_bits(bits).any(|bit| !f(frame.cell(brick, bit)))
}
