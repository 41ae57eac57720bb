//! The walk of a ray that skips what is empty, by the largest box that is.
//!
//! A word that is 0 says that 64 cells are empty, and the words above it whether their neighbours are, too. Such a box is left
//! in one step. In a word that is not 0 the walk goes from cell to cell: its bits are in a register.

use super::bricks::{Bricks, Cell, Frame};
use super::ray::{Place, Ray};

/// The grids of a pyramid, as marches read them.
#[derive(Clone, Copy)]
pub(super) struct Grids<'a> {
    pub tree: &'a [Bricks],
    /// A cell of grid `s` has `2^exponents[s]` cells of level 0 on each axis; one more than there are grids.
    pub exponents: &'a [[u32; 3]],
}

/// A ray on its way.
pub(super) struct March<'a> {
    grids: Grids<'a>,
    words: &'a [u64],
    frame: Frame,
    ray: Ray,
    pub cell: Place,
    /// When the cell was entered.
    pub t: f64,
    /// When the next boundary of each axis is crossed.
    times: [f64; 3],
}

/// How a step ended.
pub(super) enum Step {
    /// In another cell.
    Inside,
    /// Outside of the grid.
    Outside,
    /// There is none: the ray is not that long.
    None,
}

impl<'a> March<'a> {
    /// The march from the first cell of the grid, if the ray has one.
    #[inline(always)]
    pub fn new(grids: Grids<'a>, ray: Ray) -> Option<Self> {
        let ground = &grids.tree[0];
        let (cell, t) = ray.enter(ground.frame.shape)?;
        let mut march =
            Self { grids, words: ground.words(), frame: ground.frame, ray, cell, t, times: [f64::INFINITY; 3] };
        march.look_ahead();
        Some(march)
    }

    #[inline(always)]
    fn look_ahead(&mut self) {
        for axis in 0..3 {
            self.times[axis] = self.ray.time(axis, self.ray.exit(axis, self.cell[axis]));
        }
    }

    #[inline(always)]
    fn place(&self) -> Cell {
        [self.cell[0] as usize, self.cell[1] as usize, self.cell[2] as usize]
    }

    pub fn is_occupied(&self) -> bool {
        let (word, bit) = self.frame.place(self.place());
        self.words[word] >> bit & 1 != 0
    }

    /// The next cell of the walk.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        let (t, axis) = Ray::first(self.times);
        if t == f64::INFINITY {
            return Step::None;
        }
        self.cell[axis] += if self.ray.direction[axis] > 0.0 { 1 } else { -1 };
        // Never -0.0.
        self.t = t + 0.0;
        if self.cell[axis] as u64 >= self.frame.shape[axis] as u64 {
            return Step::Outside;
        }
        self.times[axis] = self.ray.time(axis, self.ray.exit(axis, self.cell[axis]));
        Step::Inside
    }

    /// Goes on to the first cell that is occupied, this one or one behind it. Returns whether there is one.
    #[inline(always)]
    pub fn seek(&mut self) -> bool {
        if self.frame.is_cubic() { self.seek_with::<true>() } else { self.seek_with::<false>() }
    }

    #[inline(always)]
    fn seek_with<const CUBIC: bool>(&mut self) -> bool {
        let mut frame = self.frame;
        if CUBIC {
            // So that the shifts below are constants.
            frame.log = [2; 3];
        }
        loop {
            let (at, mut bit) = frame.place(self.place());
            let word = self.words[at];
            if word == 0 {
                if !self.skip() {
                    return false;
                }
                continue;
            }
            loop {
                if word >> bit & 1 != 0 {
                    return true;
                }
                if !matches!(self.step(), Step::Inside) {
                    return false;
                }
                let (now, next) = frame.place(self.place());
                if now != at {
                    break;
                }
                bit = next;
            }
        }
    }

    /// Leaves the largest box of the tree that is empty; the brick of the cell is. Returns whether the ray is still in the grid.
    fn skip(&mut self) -> bool {
        let tree = self.grids.tree;
        let mut s = 1;
        while let Some(bricks) = tree.get(s) {
            let log = self.grids.exponents[s];
            let (word, _) = bricks.frame.place([0, 1, 2].map(|axis| self.cell[axis] as usize >> log[axis]));
            if bricks.words()[word] != 0 {
                break;
            }
            s += 1;
        }
        let log = self.grids.exponents[s];
        let (mut lo, mut hi) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            lo[axis] = self.cell[axis] >> log[axis] << log[axis];
            hi[axis] = (lo[axis] + (1 << log[axis])).min(self.frame.shape[axis] as i64);
        }
        let Some((cell, (t, axis))) = self.ray.leave(self.cell, lo, hi) else { return false };
        self.cell = cell;
        self.t = t + 0.0;
        if cell[axis] as u64 >= self.frame.shape[axis] as u64 {
            return false;
        }
        self.look_ahead();
        true
    }
}

/// The first occupied cell of a ray, and when it is entered. Compiled here, not where types of coordinates are known.
pub(super) fn cast(grids: Grids<'_>, ray: Ray) -> Option<(Place, f64)> {
    let mut march = March::new(grids, ray)?;
    march.seek().then_some((march.cell, march.t))
}
