//! The walk of a ray that skips what is empty, by the largest box that is.
//!
//! A word that is 0 says that 64 cells are empty, and the words above it whether their neighbours are, too. Such a box is left
//! in one step. Elsewhere the walk goes from cell to cell: the bits of a word are in a register.

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
        if self.frame.is_cubic() { self.seek_in_cubes() } else { self.seek_in_blocks() }
    }

    /// Bricks of any shape.
    fn seek_in_blocks(&mut self) -> bool {
        loop {
            let (at, bit) = self.frame.place(self.place());
            let word = self.words[at];
            if word >> bit & 1 != 0 {
                return true;
            }
            if word == 0 {
                if !self.skip() {
                    return false;
                }
            } else if !matches!(self.step(), Step::Inside) {
                return false;
            }
        }
    }

    /// Bricks of 4 x 4 x 4. What changes from cell to cell is in registers, a step is a branch an axis that can be predicted, and
    /// the division for the step after the next one is not waited for. Crossing an empty brick cell by cell costs less than
    /// to find out where it is left, so that only larger boxes are skipped.
    fn seek_in_cubes(&mut self) -> bool {
        let ray = self.ray;
        let [_, height, width] = self.frame.grid;
        let shape = self.frame.shape.map(|n| n as i64);
        let step = ray.direction.map(|d| if d > 0.0 { 1 } else { -1 });
        let unit = step.map(|step| step as f64);
        // How a step moves the word and the bit, within a brick and to the next one.
        let words = [step[0] * (height * width) as i64, step[1] * width as i64, step[2]];
        'skipped: loop {
            let [mut x, mut y, mut z] = self.cell;
            let (mut at, mut t) = (self.frame.index(self.cell.map(|i| i as usize >> 2)) as i64, self.t);
            let [mut next_x, mut next_y, mut next_z] = self.times;
            let mut boundary = [0.0; 3];
            let mut after = [0.0; 3];
            for axis in 0..3 {
                boundary[axis] = ray.exit(axis, self.cell[axis]) as f64 + unit[axis];
                after[axis] = ray.time_of(axis, boundary[axis]);
            }
            let [mut after_x, mut after_y, mut after_z] = after;
            let [mut boundary_x, mut boundary_y, mut boundary_z] = boundary;
            let found = 'walk: loop {
                let word = self.words[at as usize];
                if word == 0 && self.is_wide([x, y, z]) {
                    self.cell = [x, y, z];
                    self.t = t;
                    if self.skip() {
                        continue 'skipped;
                    }
                    return false;
                }
                loop {
                    let bit = (x & 3) << 4 | (y & 3) << 2 | (z & 3);
                    if word >> bit & 1 != 0 {
                        break 'walk true;
                    }
                    macro_rules! cross {
                        ($axis:literal, $cell:ident, $next:ident, $after:ident, $boundary:ident) => {{
                            if $next == f64::INFINITY {
                                break 'walk false;
                            }
                            t = $next;
                            $next = $after;
                            $boundary += unit[$axis];
                            $after = ray.time_of($axis, $boundary);
                            let before = $cell;
                            $cell += step[$axis];
                            if $cell as u64 >= shape[$axis] as u64 {
                                break 'walk false;
                            }
                            if (before ^ $cell) & !3 != 0 {
                                at += words[$axis];
                                break;
                            }
                        }};
                    }
                    if next_z <= next_x && next_z <= next_y {
                        cross!(2, z, next_z, after_z, boundary_z);
                    } else if next_y <= next_x {
                        cross!(1, y, next_y, after_y, boundary_y);
                    } else {
                        cross!(0, x, next_x, after_x, boundary_x);
                    }
                }
            };
            self.cell = [x, y, z];
            // Never -0.0.
            self.t = t + 0.0;
            self.times = [next_x, next_y, next_z];
            return found;
        }
    }

    /// Whether more than the brick of a cell, which is, is empty.
    #[inline(always)]
    fn is_wide(&self, cell: Place) -> bool {
        self.grids.tree.get(1).is_some_and(|bricks| {
            let log = bricks.frame.log;
            let brick = [0, 1, 2].map(|axis| cell[axis] as usize >> (2 + log[axis]));
            bricks.words()[bricks.frame.index(brick)] == 0
        })
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
