//! The walk of a ray that skips what is empty, by the largest box that is.
//!
//! A word that is 0 says that 64 cells are empty, and the words above it whether their neighbours are, too. A box of several empty
//! words is left in one step. Elsewhere the walk goes from cell to cell, which costs less than to find out where a single empty word
//! is left.

use super::bricks::{Cell, Frame};
use super::ray::{Place, Ray};
use std::hint::select_unpredictable;

/// A grid of a pyramid, as marches read it: of which box of cells every word is.
pub(super) struct Rung<'a> {
    pub words: &'a [u64],
    /// A box has `2^log` cells of level 0 on each axis.
    pub log: [u32; 3],
    /// Boxes on the last two axes.
    pub grid: [usize; 2],
}

impl Rung<'_> {
    /// Whether the box of a cell is empty.
    #[inline(always)]
    fn is_empty(&self, cell: Place) -> bool {
        let [x, y, z] = [cell[0] >> self.log[0], cell[1] >> self.log[1], cell[2] >> self.log[2]];
        self.words[(x as usize * self.grid[0] + y as usize) * self.grid[1] + z as usize] == 0
    }
}

/// Level 0 of a pyramid, and its grids from the finest.
#[derive(Clone, Copy)]
pub(super) struct Grids<'a> {
    pub frame: Frame,
    pub rungs: &'a [Rung<'a>],
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
    /// When the one behind it is: known before it is waited for.
    after: [f64; 3],
    /// The one behind it.
    boundary: [f64; 3],
    /// From a boundary, or a cell, to the next one.
    unit: [f64; 3],
    step: Place,
    /// The word of the cell, and from it to the one in the next brick of each axis.
    word: i64,
    next: Place,
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// In another cell.
    Inside,
    /// In another cell, in another box of 16 x 16 x 16.
    Across,
    /// Outside of the grid.
    Outside,
    /// There is none: the ray is not that long.
    None,
}

impl<'a> March<'a> {
    /// The march from the first cell of the grid, if the ray has one.
    #[inline(always)]
    pub fn new(grids: Grids<'a>, ray: Ray) -> Option<Self> {
        let (cell, t) = ray.enter(grids.frame.shape)?;
        Some(Self::at(grids, ray, cell, t))
    }

    /// The march from a cell that the ray visits.
    #[inline(always)]
    pub fn at(grids: Grids<'a>, ray: Ray, cell: Place, t: f64) -> Self {
        let step = ray.direction.map(|d| if d > 0.0 { 1 } else { -1 });
        let [height, width] = grids.rungs[0].grid.map(|n| n as i64);
        let mut march = Self {
            grids,
            words: grids.rungs[0].words,
            frame: grids.frame,
            ray,
            cell,
            t,
            times: [f64::INFINITY; 3],
            after: [f64::INFINITY; 3],
            boundary: [0.0; 3],
            unit: step.map(|step| step as f64),
            step,
            word: 0,
            next: [step[0] * height * width, step[1] * width, step[2]],
        };
        march.look_ahead();
        march
    }

    #[inline(always)]
    fn look_ahead(&mut self) {
        for axis in 0..3 {
            let boundary = self.ray.exit(axis, self.cell[axis]) as f64;
            self.times[axis] = self.ray.time_of(axis, boundary);
            self.boundary[axis] = boundary + self.unit[axis];
            self.after[axis] = self.ray.time_of(axis, self.boundary[axis]);
        }
        self.word = self.frame.place(self.place()).0 as i64;
    }

    #[inline(always)]
    fn place(&self) -> Cell {
        [self.cell[0] as usize, self.cell[1] as usize, self.cell[2] as usize]
    }

    #[inline(always)]
    pub fn is_occupied(&self) -> bool {
        let (_, bit) = self.frame.place(self.place());
        self.words[self.word as usize] >> bit & 1 != 0
    }

    /// The next cell of the walk. Which axis it is on cannot be predicted, so that nothing branches on it.
    #[inline(always)]
    pub fn step(&mut self) -> Step {
        let (t, axis) = Ray::first(self.times);
        if t == f64::INFINITY {
            return Step::None;
        }
        // Never -0.0.
        self.t = t + 0.0;
        self.times[axis] = self.after[axis];
        self.boundary[axis] += self.unit[axis];
        self.after[axis] = self.ray.time_of(axis, self.boundary[axis]);
        let before = self.cell[axis];
        let cell = before + self.step[axis];
        self.cell[axis] = cell;
        if cell as u64 >= self.frame.shape[axis] as u64 {
            return Step::Outside;
        }
        let changed = before ^ cell;
        self.word += select_unpredictable(changed >> self.frame.log[axis] != 0, self.next[axis], 0);
        if changed >> 4 != 0 { Step::Across } else { Step::Inside }
    }

    /// Goes on to the first cell that is occupied, this one or one behind it. Returns whether there is one.
    #[inline(always)]
    pub fn seek(&mut self) -> bool {
        let mut across = true;
        loop {
            if across {
                match skip(self.grids, &self.ray, self.cell) {
                    Skip::Nothing => {}
                    Skip::To(cell, t) => {
                        (self.cell, self.t) = (cell, t);
                        self.look_ahead();
                    }
                    Skip::Out => return false,
                }
            }
            if self.is_occupied() {
                return true;
            }
            across = match self.step() {
                Step::Inside => false,
                Step::Across => true,
                Step::Outside | Step::None => return false,
            };
        }
    }
}

/// Where the empty boxes end that a cell lies in.
pub(super) enum Skip {
    /// It lies in none.
    Nothing,
    /// In a cell, which is entered then.
    To(Place, f64),
    /// Outside of the grid, or beyond the end of the ray.
    Out,
}

/// Leaves empty boxes of several words, the largest of the tree that there are, until there is none.
#[inline(always)]
pub(super) fn skip(grids: Grids<'_>, ray: &Ray, cell: Place) -> Skip {
    match grids.rungs.get(1) {
        Some(rung) if rung.is_empty(cell) => leave_boxes(grids, ray, cell),
        _ => Skip::Nothing,
    }
}

/// Leaves the largest box that holds a cell, and is empty, and those behind it. The box of the second rung is.
fn leave_boxes(grids: Grids<'_>, ray: &Ray, mut cell: Place) -> Skip {
    let (shape, rungs) = (grids.frame.shape, &grids.rungs[1..]);
    loop {
        let mut largest = 0;
        while rungs.get(largest + 1).is_some_and(|rung| rung.is_empty(cell)) {
            largest += 1;
        }
        let log = rungs[largest].log;
        let (mut lo, mut hi) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            lo[axis] = cell[axis] >> log[axis] << log[axis];
            hi[axis] = (lo[axis] + (1 << log[axis])).min(shape[axis] as i64);
        }
        let Some((next, (t, axis))) = ray.leave(cell, lo, hi) else { return Skip::Out };
        if next[axis] as u64 >= shape[axis] as u64 {
            return Skip::Out;
        }
        cell = next;
        if !rungs[0].is_empty(cell) {
            // Never -0.0.
            return Skip::To(cell, t + 0.0);
        }
    }
}
