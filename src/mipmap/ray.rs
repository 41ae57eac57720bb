//! Where a ray is: the walk over the cells of level 0, and how to be where it would be without walking.
//!
//! All follows from one rule. Boundary `i` of an axis is crossed at `t(i) = (i - o) / d`, and boundaries are crossed in the
//! order of their `t`, of equal ones those of the higher axis first. So "the walk has crossed this boundary when it
//! crosses that one" is a comparison of two numbers, and what a skipped box would have changed is found without it.

use super::bricks::Cell;
use std::hint::select_unpredictable;

/// More than the relative errors of a position, `o + t d`, and of the t of a boundary, `(i - o) / d`: two roundings each.
const DOUBT: f64 = 8.0 * f64::EPSILON;

/// A ray in cell units.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ray {
    pub origin: [f64; 3],
    pub direction: [f64; 3],
    pub t_max: f64,
    /// The largest t of a step of each axis; NaN where there is no step.
    pub limits: [f64; 3],
}

/// A cell that is perhaps outside.
pub(super) type Place = [i64; 3];

/// A crossing: its t, finite, and its axis.
pub(super) type Event = (f64, usize);

impl Ray {
    pub fn new(origin: [f64; 3], direction: [f64; 3], t_max: f64) -> Self {
        let limits = direction.map(|direction| match direction {
            // At the end of the ray a cell is entered from below, since cells hold their lower bound.
            d if d > 0.0 => t_max.min(f64::MAX),
            d if d < 0.0 && t_max == f64::INFINITY => f64::MAX,
            d if d < 0.0 => t_max.next_down(),
            _ => f64::NAN,
        });
        Self { origin, direction, t_max, limits }
    }

    /// Whether it has a direction, and all numbers are finite.
    #[inline(always)]
    pub fn is_sound(&self) -> bool {
        let finite = self.origin.iter().chain(&self.direction).fold(true, |finite, x| finite & x.is_finite());
        finite & (self.direction != [0.0; 3])
    }

    /// When boundary `i` of an axis is crossed, +inf where it never is.
    #[inline(always)]
    pub fn time(&self, axis: usize, i: i64) -> f64 {
        self.time_of(axis, i as f64)
    }

    /// [`Ray::time`] of a boundary as a float.
    #[inline(always)]
    pub fn time_of(&self, axis: usize, boundary: f64) -> f64 {
        let t = (boundary - self.origin[axis]) / self.direction[axis];
        // Not a branch, which would wait for the division.
        select_unpredictable(t <= self.limits[axis], t, f64::INFINITY)
    }

    /// The boundary by which the ray leaves cell `i` of an axis.
    #[inline(always)]
    pub fn exit(&self, axis: usize, i: i64) -> i64 {
        i + i64::from(self.direction[axis] > 0.0)
    }

    /// Whether the walk has crossed a boundary when it has taken the step of `event`.
    #[inline(always)]
    fn crossed(&self, axis: usize, i: i64, event: Event) -> bool {
        let t = self.time(axis, i);
        t < event.0 || (t == event.0 && axis > event.1)
    }

    /// What [`Ray::after`] most likely is, and whether that is sure.
    #[inline(always)]
    fn guess(&self, axis: usize, from: i64, last: i64, event: Event) -> (i64, bool) {
        let (way, start) = (event.0 * self.direction[axis], self.origin[axis]);
        let position = start + way;
        // No cell of a grid is negative, so that rounding towards 0 is as good as down.
        let guess = position as i64;
        // Farther from the next boundaries than all roundings of their t and of the position together, it is right.
        let within = position - guess as f64;
        let doubt = DOUBT * (1.0 + start.abs() + way.abs());
        (guess.clamp(from.min(last), from.max(last)), (within > doubt) & (within < 1.0 - doubt))
    }

    /// The cell of an axis that does not take the step of `event`, right after it. It is `from` or beyond, up to `last`.
    #[inline(always)]
    fn after(&self, axis: usize, from: i64, last: i64, event: Event) -> i64 {
        let direction = self.direction[axis];
        if direction == 0.0 || from == last {
            return from;
        }
        match self.guess(axis, from, last, event) {
            (cell, true) => cell,
            (cell, false) => self.corrected(axis, cell, [from, last], event),
        }
    }

    /// [`Ray::after`] from any cell that is near.
    fn corrected(&self, axis: usize, guess: i64, [from, last]: [i64; 2], event: Event) -> i64 {
        if self.direction[axis] > 0.0 {
            let mut cell = guess;
            while cell < last && self.crossed(axis, cell + 1, event) {
                cell += 1;
            }
            while cell > from && !self.crossed(axis, cell, event) {
                cell -= 1;
            }
            cell
        } else {
            let mut cell = guess;
            while cell > last && self.crossed(axis, cell, event) {
                cell -= 1;
            }
            while cell < from && !self.crossed(axis, cell + 1, event) {
                cell += 1;
            }
            cell
        }
    }

    /// The first of three crossings. Nothing branches on which it is: that cannot be predicted.
    #[inline(always)]
    pub fn first([x, y, z]: [f64; 3]) -> Event {
        let later = if y < x { y } else { x };
        let t = if z < later { z } else { later };
        (t, select_unpredictable(z <= later, 2, usize::from(y <= x)))
    }

    /// The first cell of a grid that the ray visits, and when.
    pub fn enter(&self, shape: Cell) -> Option<(Place, f64)> {
        let n = shape.map(|n| n as i64);
        // Far outside the number saturates, which is outside too.
        let start = self.origin.map(|x| x.floor() as i64);
        if (0..3).all(|axis| (0..n[axis]).contains(&start[axis])) {
            return Some((start, 0.0));
        }
        // The last of the boundaries that must be crossed to be inside; of equal ones that of the lowest axis.
        let (mut event, mut from) = ((f64::NEG_INFINITY, 0), start);
        for axis in (0..3).rev() {
            let boundary = match start[axis] {
                i if i < 0 && self.direction[axis] > 0.0 => 0,
                i if i >= n[axis] && self.direction[axis] < 0.0 => n[axis],
                i if i < 0 || i >= n[axis] => return None,
                _ => continue,
            };
            let t = self.time(axis, boundary);
            if t == f64::INFINITY {
                return None;
            }
            from[axis] = if boundary == 0 { 0 } else { boundary - 1 };
            if t >= event.0 {
                event = (t, axis);
            }
        }
        let mut cell = from;
        for axis in 0..3 {
            if axis != event.1 && self.direction[axis] != 0.0 {
                let last = if self.direction[axis] > 0.0 { n[axis] - 1 } else { 0 };
                cell[axis] = self.after(axis, from[axis], last, event);
                // It may have left the grid before it is inside on all axes.
                if cell[axis] == last && self.crossed(axis, self.exit(axis, last), event) {
                    return None;
                }
            }
        }
        Some((cell, event.0 + 0.0))
    }

    /// Leaves the box from `lo` to before `hi`, which holds `cell`: the next cell and the step into it.
    #[inline(always)]
    pub fn leave(&self, cell: Place, lo: Place, hi: Place) -> Option<(Place, Event)> {
        let mut times = [0.0; 3];
        for axis in 0..3 {
            times[axis] = self.time(axis, if self.direction[axis] > 0.0 { hi[axis] } else { lo[axis] });
        }
        let event = Self::first(times);
        if event.0 == f64::INFINITY {
            return None;
        }
        let (mut next, mut all_sure) = (cell, true);
        for axis in 0..3 {
            let forward = self.direction[axis] > 0.0;
            let (last, beyond) = if forward { (hi[axis] - 1, hi[axis]) } else { (lo[axis], lo[axis] - 1) };
            let (guess, sure) = self.guess(axis, cell[axis], last, event);
            let crossed = axis == event.1;
            next[axis] = select_unpredictable(crossed, beyond, guess);
            all_sure &= sure | crossed;
        }
        if !all_sure {
            for axis in (0..3).filter(|&axis| axis != event.1) {
                let last = if self.direction[axis] > 0.0 { hi[axis] - 1 } else { lo[axis] };
                next[axis] = self.after(axis, cell[axis], last, event);
            }
        }
        Some((next, event))
    }
}

/// The walk over the cells of level 0.
#[derive(Clone, Debug)]
pub(super) struct Walk {
    ray: Ray,
    shape: Place,
    cell: Place,
    /// When the next boundary of each axis is crossed.
    times: [f64; 3],
    /// When the cell was entered; none where the walk has ended.
    t: Option<f64>,
}

impl Walk {
    pub fn new(ray: Ray, shape: Cell) -> Self {
        let start = ray.enter(shape);
        let (cell, t) = start.unwrap_or_default();
        let mut times = [0.0; 3];
        for axis in 0..3 {
            times[axis] = ray.time(axis, ray.exit(axis, cell[axis]));
        }
        Self { ray, shape: shape.map(|n| n as i64), cell, times, t: start.map(|_| t) }
    }
}

impl Iterator for Walk {
    type Item = (Place, f64);

    fn next(&mut self) -> Option<Self::Item> {
        let visit = (self.cell, self.t?);
        let (t, axis) = Ray::first(self.times);
        self.t = None;
        if t < f64::INFINITY {
            self.cell[axis] += if self.ray.direction[axis] > 0.0 { 1 } else { -1 };
            if (0..self.shape[axis]).contains(&self.cell[axis]) {
                self.times[axis] = self.ray.time(axis, self.ray.exit(axis, self.cell[axis]));
                // Never -0.0.
                self.t = Some(t + 0.0);
            }
        }
        Some(visit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_walk_of_the_negative_boundary() {
        let ray = Ray::new([0.0, 1.0, 0.0], [5.625, -1.0, 2.8125], 1.0);
        let cells: Vec<_> = Walk::new(ray, [6, 2, 3]).collect();
        assert_eq!(cells[..2], [([0, 1, 0], 0.0), ([0, 0, 0], 0.0)]);
        assert_eq!((cells.len(), cells[8].0), (9, [5, 0, 2]));
    }
}
