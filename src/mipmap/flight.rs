//! Eight rays side by side, a lane each, from cell to cell of a grid of 4 x 4 x 4 bricks.
//!
//! Which axis a ray crosses next cannot be predicted, and where it does decides on a division. A ray alone waits for one or the
//! other at every cell. In lanes all axes are computed, and what is right selected; only what is rare is done one ray after
//! another: what a ray hits, how it ends, and boxes that may be skipped.

use super::bricks::{Cell, set_bits};
use super::march::{Grids, March, Rung, Skip, skip};
use super::ray::{Place, Ray};
use crate::simd::{Level, Mask, Simd, Vector, at};

type MaskOf<S> = <<S as Simd>::V<f64> as Vector<f64>>::Mask;

/// Rays of a flight.
const LANES: usize = 8;

/// A number of each axis and ray.
type Axes<T> = [[T; LANES]; 3];

/// Rays on their way. A lane that no ray is in has no boundary to cross.
#[doc(hidden)]
#[repr(C, align(64))] // A vector is a cache line.
pub struct Flight {
    origin: Axes<f64>,
    direction: Axes<f64>,
    /// From a boundary, or a cell, to the next one.
    unit: Axes<f64>,
    /// When the ray leaves the grid or comes to its end, or before: what happens from there on is not for lanes.
    end: [f64; LANES],
    /// The cell, above [`WHOLE`], and when it was entered.
    cell: Axes<f64>,
    t: [f64; LANES],
    /// When the next boundary of each axis is crossed, when the one behind it, and the one behind that.
    times: Axes<f64>,
    after: Axes<f64>,
    boundary: Axes<f64>,
    /// The word of the cell and its bit.
    word: [u64; LANES],
    bit: [u64; LANES],
    /// The cell as integers, and what is not 0 if the last step was into another box of 16 x 16 x 16.
    whole: Axes<u64>,
    across: [u64; LANES],
    /// A bit a lane: whether a ray is in it.
    live: u32,
    /// Words of the grid on the last two axes, and those of the grid above.
    grid: [u64; 2],
    above: [u64; 2],
    /// A bit a lane: whether the next boundary is not before the end.
    out: u32,
}

/// The bits of a float in 2^52..2^53 end with those of an integer.
const WHOLE: f64 = (1u64 << 52) as f64;
const INTEGER: u64 = (1 << 52) - 1;

/// The kernel of this file, which has no type but that of its numbers.
pub trait Kernels: Sized {
    /// Takes every ray from cell to cell of its walk, until one of them is over an occupied cell, in an empty box, which is one of
    /// 16 x 16 x 16 whose word in `boxes` is 0, or about to leave the grid or to end.
    #[doc(hidden)]
    fn fly(level: Level, flight: &mut Flight, words: &[u64], boxes: &[u64]);
}

impl Kernels for f64 {
    fn fly(level: Level, flight: &mut Flight, words: &[u64], boxes: &[u64]) {
        at!(level, |s| fly(s, flight, words, boxes));
    }
}

/// [`Kernels::fly`].
#[inline(always)]
fn fly<S: Simd>(s: S, flight: &mut Flight, words: &[u64], boxes: &[u64]) {
    let [mut times, mut after, mut boundary] =
        [load(s, &flight.times), load(s, &flight.after), load(s, &flight.boundary)];
    let [mut cell, unit] = [load(s, &flight.cell), load(s, &flight.unit)];
    let [origin, direction] = [load(s, &flight.origin), load(s, &flight.direction)];
    let (mut t, end) = (s.load(&flight.t), s.load(&flight.end));
    loop {
        let [x, y, z] = times;
        // Of equal ones the higher axis, as `Ray::first`.
        let later = y.min(x);
        let next = z.min(later);
        flight.out = end.le(next).bits() & flight.live;
        if flight.out != 0 {
            break;
        }
        t = next;
        let (on_z, y_or_z, not_z) = (z.le(later), y.le(x), later.lt(z));
        let (on, which) = ([x.lt(y).and(not_z), y_or_z.and(not_z), on_z], [y_or_z, on_z]);
        let way = selected::<S>(which, boundary) - selected::<S>(which, origin);
        let crossing = way / selected::<S>(which, direction);
        let mut cells = [[0.0; LANES]; 3];
        for axis in 0..3 {
            times[axis] = S::V::select(on[axis], after[axis], times[axis]);
            after[axis] = S::V::select(on[axis], crossing, after[axis]);
            boundary[axis] = S::V::select(on[axis], boundary[axis] + unit[axis], boundary[axis]);
            cell[axis] = S::V::select(on[axis], cell[axis] + unit[axis], cell[axis]);
            cell[axis].store(&mut cells[axis]);
        }
        flight.look(&cells);
        if flight.is_over(words, boxes) {
            break;
        }
    }
    for axis in 0..3 {
        times[axis].store(&mut flight.times[axis]);
        after[axis].store(&mut flight.after[axis]);
        boundary[axis].store(&mut flight.boundary[axis]);
        cell[axis].store(&mut flight.cell[axis]);
    }
    t.store(&mut flight.t);
}

#[inline(always)]
fn load<S: Simd>(s: S, axes: &Axes<f64>) -> [S::V<f64>; 3] {
    [s.load(&axes[0]), s.load(&axes[1]), s.load(&axes[2])]
}

/// The number of the axis that is crossed.
#[inline(always)]
fn selected<S: Simd>([y_or_z, z]: [MaskOf<S>; 2], of: [S::V<f64>; 3]) -> S::V<f64> {
    S::V::select(z, of[2], S::V::select(y_or_z, of[1], of[0]))
}

/// The number of a word.
#[inline(always)]
fn index([x, y, z]: [u64; 3], grid: [u64; 2]) -> u64 {
    x.wrapping_mul(grid[0]).wrapping_add(y).wrapping_mul(grid[1]).wrapping_add(z)
}

/// The word of a cell and its bit.
#[inline(always)]
fn located([x, y, z]: [u64; 3], grid: [u64; 2]) -> (u64, u64) {
    (index([x >> 2, y >> 2, z >> 2], grid), (x & 3) << 4 | (y & 3) << 2 | (z & 3))
}

impl Flight {
    fn new(grids: Grids<'_>) -> Self {
        let grid_of = |rung: &Rung<'_>| rung.grid.map(|n| n as u64);
        Self {
            live: 0,
            grid: grid_of(&grids.rungs[0]),
            above: grids.rungs.get(1).map_or([0; 2], grid_of),
            origin: [[0.0; LANES]; 3],
            direction: [[1.0; LANES]; 3],
            unit: [[0.0; LANES]; 3],
            end: [f64::INFINITY; LANES],
            cell: [[WHOLE; LANES]; 3],
            t: [0.0; LANES],
            times: [[f64::INFINITY; LANES]; 3],
            after: [[f64::INFINITY; LANES]; 3],
            boundary: [[0.0; LANES]; 3],
            out: 0,
            word: [0; LANES],
            bit: [0; LANES],
            whole: [[0; LANES]; 3],
            across: [0; LANES],
        }
    }

    /// Finds the word and the bit of every cell, and whether it is in another box.
    #[inline(always)]
    fn look(&mut self, cell: &Axes<f64>) {
        // Copies, so that it is plain that nothing written here is read here.
        let (grid, before) = (self.grid, self.whole);
        let (mut word, mut bit, mut whole, mut across) = ([0; LANES], [0; LANES], [[0; LANES]; 3], [0; LANES]);
        for lane in 0..LANES {
            let x = cell[0][lane].to_bits() & INTEGER;
            let y = cell[1][lane].to_bits() & INTEGER;
            let z = cell[2][lane].to_bits() & INTEGER;
            (word[lane], bit[lane]) = located([x, y, z], grid);
            across[lane] = ((x ^ before[0][lane]) | (y ^ before[1][lane]) | (z ^ before[2][lane])) >> 4;
            whole[0][lane] = x;
            whole[1][lane] = y;
            whole[2][lane] = z;
        }
        (self.word, self.bit, self.whole, self.across) = (word, bit, whole, across);
    }

    /// Whether a ray is over an occupied cell, or in another box, which is empty.
    #[inline(always)]
    fn is_over(&self, words: &[u64], boxes: &[u64]) -> bool {
        for lane in 0..LANES {
            // A branch that is rarely taken: eight words are loaded faster than they are gathered.
            if words[self.word[lane] as usize] >> self.bit[lane] & 1 != 0 && self.live >> lane & 1 != 0 {
                return true;
            }
        }
        if !boxes.is_empty() && self.across.iter().fold(0, |any, across| any | across) != 0 {
            for lane in 0..LANES {
                let [x, y, z] = [self.whole[0][lane], self.whole[1][lane], self.whole[2][lane]];
                if self.across[lane] != 0 && boxes[index([x >> 4, y >> 4, z >> 4], self.above) as usize] == 0 {
                    return true;
                }
            }
        }
        false
    }

    /// Puts a ray into a lane, at a cell.
    fn place(&mut self, lane: usize, ray: &Ray, shape: Cell, cell: Place, t: f64) {
        let mut end = ray.limits[0].min(ray.limits[1]).min(ray.limits[2]);
        for axis in 0..3 {
            let forward = ray.direction[axis] > 0.0;
            let (unit, last) = if forward { (1.0, shape[axis] as f64) } else { (-1.0, 0.0) };
            let boundary = ray.exit(axis, cell[axis]) as f64;
            end = end.min(ray.time_of(axis, last));
            self.origin[axis][lane] = ray.origin[axis];
            self.direction[axis][lane] = ray.direction[axis];
            self.unit[axis][lane] = unit;
            self.cell[axis][lane] = WHOLE + cell[axis] as f64;
            self.whole[axis][lane] = cell[axis] as u64;
            self.times[axis][lane] = ray.time_of(axis, boundary);
            self.after[axis][lane] = ray.time_of(axis, boundary + unit);
            self.boundary[axis][lane] = boundary + unit + unit;
        }
        self.end[lane] = end;
        self.t[lane] = t;
        (self.word[lane], self.bit[lane]) = located(cell.map(|i| i as u64), self.grid);
        self.live |= 1 << lane;
    }

    /// Nothing that is left of a ray in a lane moves.
    fn clear(&mut self, lane: usize) {
        for axis in 0..3 {
            self.times[axis][lane] = f64::INFINITY;
            self.after[axis][lane] = f64::INFINITY;
            self.unit[axis][lane] = 0.0;
            self.cell[axis][lane] = WHOLE;
            self.whole[axis][lane] = 0;
        }
        self.live &= !(1 << lane);
    }

    fn cell(&self, lane: usize) -> Place {
        [0, 1, 2].map(|axis| self.whole[axis][lane] as i64)
    }

    /// When the cell was entered, never -0.0.
    fn t(&self, lane: usize) -> f64 {
        self.t[lane] + 0.0
    }
}

/// The rays that are not in a lane yet, and what was found.
struct Rays<'a> {
    grids: Grids<'a>,
    words: &'a [u64],
    rays: &'a [Ray],
    /// The ray that is next.
    next: usize,
    /// The ray of each lane.
    of: [usize; LANES],
    found: &'a mut [Option<(Place, f64)>],
}

impl Rays<'_> {
    /// Puts the next ray into a lane that is not over where it starts.
    fn board(&mut self, flight: &mut Flight, lane: usize) {
        let shape = self.grids.frame.shape;
        while let Some(ray) = self.rays.get(self.next) {
            self.of[lane] = self.next;
            self.next += 1;
            let Some((cell, t)) = ray.enter(shape) else { continue };
            let (cell, t) = match skip(self.grids, ray, cell) {
                Skip::Nothing => (cell, t),
                Skip::To(cell, t) => (cell, t),
                Skip::Out => continue,
            };
            flight.place(lane, ray, shape, cell, t);
            if self.is_hit(flight, lane) {
                self.found[self.of[lane]] = Some((cell, t));
                continue;
            }
            return;
        }
        flight.clear(lane);
    }

    #[inline(always)]
    fn is_hit(&self, flight: &Flight, lane: usize) -> bool {
        self.words[flight.word[lane] as usize] >> flight.bit[lane] & 1 != 0
    }
}

/// The first occupied cell of each ray, and when it is entered, in a grid of 4 x 4 x 4 bricks.
pub(super) fn cast(level: Level, grids: Grids<'_>, rays: &[Ray], found: &mut [Option<(Place, f64)>]) {
    let (mut flight, words) = (Flight::new(grids), grids.rungs[0].words);
    // None where the boxes above are not sixteen cells long on every side: shifts by as much as a grid needs made every
    // walk slower, those through such flat grids by a third.
    let boxes = grids.rungs.get(1).filter(|rung| rung.log == [4; 3]).map_or(&[][..], |rung| rung.words);
    let mut rays = Rays { grids, words, rays, next: 0, of: [0; LANES], found };
    for lane in 0..LANES {
        rays.board(&mut flight, lane);
    }
    while flight.live != 0 {
        f64::fly(level, &mut flight, words, boxes);
        if flight.out != 0 {
            for lane in lanes(flight.out) {
                let mut march = March::at(grids, rays.rays[rays.of[lane]], flight.cell(lane), flight.t(lane));
                rays.found[rays.of[lane]] = march.seek().then_some((march.cell, march.t));
                rays.board(&mut flight, lane);
            }
            continue;
        }
        for lane in lanes(flight.live) {
            if flight.across[lane] != 0 {
                let ray = &rays.rays[rays.of[lane]];
                match skip(grids, ray, flight.cell(lane)) {
                    Skip::Nothing => {}
                    Skip::To(cell, t) => flight.place(lane, ray, grids.frame.shape, cell, t),
                    Skip::Out => rays.board(&mut flight, lane),
                }
            }
        }
        for lane in lanes(flight.live) {
            if rays.is_hit(&flight, lane) {
                rays.found[rays.of[lane]] = Some((flight.cell(lane), flight.t(lane)));
                rays.board(&mut flight, lane);
            }
        }
    }
}

/// The lanes whose bits are set.
fn lanes(bits: u32) -> impl Iterator<Item = usize> {
    set_bits(bits.into()).map(|lane| lane as usize)
}
