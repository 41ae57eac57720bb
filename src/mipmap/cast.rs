//! Rays as users see them.

use super::bricks::Cell;
use super::flight;
use super::march::{Grids, March, Rung, Step};
use super::occupancy::wide;
use super::pyramid::Pyramid;
use super::ray::{Place, Ray, Walk};
use crate::Real;
use crate::buffer::{Both, Buffer, Output};
use crate::error::{Error, Result};
use crate::layout::{check_shape, elements};
use crate::parallel::{Cut, for_each_tile_of_both};
use ndarray::{Array1, Array2, ArrayView2};
use rayon::prelude::*;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Rays that one task casts.
const RAYS: usize = 256;

/// What rays hit first.
#[derive(Clone, Debug, PartialEq)]
pub struct Hits {
    /// (R, 3): the first occupied cell of each ray, (-1, -1, -1) where there is none.
    pub cells: Array2<i64>,
    /// (R,): when it is entered, in lengths of the ray's direction, +inf where there is none.
    pub t: Array1<f64>,
}

/// The stretches of rays within occupied cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Intervals {
    /// Ray `r` has `intervals[offsets[r]..offsets[r + 1]]`, in the order of its walk.
    pub offsets: Vec<usize>,
    /// Those of all rays.
    pub intervals: Vec<Interval>,
}

/// A stretch of a ray: occupied cells that it visits one after the other, with empty ones or the end on both sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// When the first cell is entered, in lengths of the ray's direction.
    pub t_in: f64,
    /// When the last cell is left, or the end of the ray, where it ends in that cell.
    pub t_out: f64,
    /// The first cell.
    pub first: [usize; 3],
    /// The last cell.
    pub last: [usize; 3],
}

/// A cell that a ray visits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Visit {
    /// The cell.
    pub cell: [usize; 3],
    /// When it is entered, in lengths of the ray's direction.
    pub t: f64,
}

/// Every cell of level 0 that a ray visits, in order: [`Pyramid::cells`].
#[derive(Clone, Debug)]
pub struct Cells {
    walk: Walk,
}

impl Iterator for Cells {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        self.walk.next().map(|(cell, t)| Visit { cell: inside(cell), t })
    }
}

fn inside(cell: Place) -> Cell {
    cell.map(|i| i as usize)
}

impl Pyramid {
    /// The first occupied cell of each ray `origins[r] + t directions[r]` (R, 3) with t from 0 to `t_max`, which may be infinite.
    ///
    /// All numbers are computed in `f64`, in cell units: `o = (origin - mapping.origin) / mapping.voxel` and
    /// `d = direction / mapping.voxel` where the pyramid has a [`Mapping`](super::Mapping). Cells hold their lower bounds. The walk
    /// starts in the cell `floor(o)`, which counts even if the ray has no length; boundary `i` of an axis is crossed at
    /// `t(i) = (i - o) / d`, if that is finite and less than `t_max`, or `t_max` itself where `d > 0`; of two at the same t that of the
    /// higher axis is crossed first; an axis with `d = 0` crosses none. There is no tolerance: what is hit is what this walk visits,
    /// cell by cell, though most empty cells are not looked at.
    ///
    /// O(log n) for an empty grid; with something in it, about the number of empty boxes that the ray passes, and of cells in those
    /// boxes of 16 x 16 x 16 (of other shapes where an axis is short) that are not empty.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where the arrays are not (R, 3); [`Error::Distance`] where `t_max` is negative or NaN; for the first ray of
    /// which something is wrong, [`Error::NonFinite`], or [`Error::Direction`] where it has none; [`Error::Allocation`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::mipmap::Pyramid;
    /// use pullback::ndarray::array;
    ///
    /// let mut pyramid = Pyramid::empty([4, 4, 4])?;
    /// pyramid.set([0, 0, 2])?;
    /// let origins = array![[0.5, 0.5, -1.0], [1.5, 0.5, -1.0]];
    /// let directions = array![[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]];
    /// let hits = pyramid.raycast(origins.view(), directions.view(), f64::INFINITY)?;
    /// assert_eq!(hits.cells, array![[0, 0, 2], [-1, -1, -1]]);
    /// assert_eq!(hits.t, array![3.0, f64::INFINITY]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn raycast<T: Real>(
        &self,
        origins: ArrayView2<'_, T>,
        directions: ArrayView2<'_, T>,
        t_max: f64,
    ) -> Result<Hits> {
        let ray = self.rays(&origins, &directions, t_max)?;
        let count = origins.nrows();
        let (mut cells, mut times) = (Buffer::<i64>::new(elements::<i64>(&[count, 3])?)?, Buffer::<f64>::new(count)?);
        if count == 0 {
            return Ok(Hits { cells: Array2::zeros((0, 3)), t: Array1::zeros(0) });
        }
        let rungs = self.rungs();
        let grids = Grids { frame: self.tree[0].frame, rungs: &rungs };
        let parallel = self.tuning.parallel.unwrap_or_else(|| count > RAYS && rayon::current_num_threads() > 1);
        let cut = Cut { group: count, tile: RAYS, width: 3, parallel };
        let out = Both { first: Output::fresh(cells.cells()), second: Output::fresh(times.cells()), width: 1 };
        // The first ray that is refused: rays are made once, and looked at where they are cast.
        let unsound = AtomicUsize::new(usize::MAX);
        let filled = for_each_tile_of_both(out, count, &cut, &|_, rows, cells, times| {
            let rays: Vec<Ray> = rows.clone().map(&ray).collect();
            let mut found = vec![None; rays.len()];
            if let Some(at) = rays.iter().position(|ray| !ray.is_sound()) {
                unsound.fetch_min(rows.start + at, Relaxed);
            } else if self.tree[0].frame.is_cubic() {
                flight::cast(self.level, grids, &rays, &mut found);
            } else {
                for (&ray, found) in rays.iter().zip(&mut found) {
                    let mut march = March::new(grids, ray);
                    *found = march.as_mut().and_then(|march| march.seek().then_some((march.cell, march.t)));
                }
            }
            for hit in found {
                let (cell, t) = hit.unwrap_or(([-1; 3], f64::INFINITY));
                cells.push_slice(&cell);
                times.push_slice(&[t]);
            }
        });
        if let Some(error) = refused(unsound.into_inner(), &ray, &origins, &directions) {
            return Err(error);
        }
        let (cells, t) = crate::buffer::finish_both(cells, times, filled, [&[count, 3], &[count]]);
        Ok(Hits { cells, t })
    }

    /// The stretches of each ray within occupied cells, up to `t_max`. What a ray visits is told by [`Pyramid::raycast`].
    ///
    /// # Errors
    ///
    /// As [`Pyramid::raycast`].
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::mipmap::Pyramid;
    /// use pullback::ndarray::array;
    ///
    /// let mut pyramid = Pyramid::empty([1, 1, 9])?;
    /// pyramid.set_box([0, 0, 2], [1, 1, 5], true)?;
    /// pyramid.set([0, 0, 7])?;
    /// let found = pyramid.traverse(array![[0.5, 0.5, 0.5]].view(), array![[0.0, 0.0, 2.0]].view(), 3.5)?;
    /// assert_eq!(found.offsets, [0, 2]);
    /// let stretches: Vec<_> = found.intervals.iter().map(|interval| (interval.t_in, interval.t_out)).collect();
    /// assert_eq!(stretches, [(0.75, 2.25), (3.25, 3.5)]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn traverse<T: Real>(
        &self,
        origins: ArrayView2<'_, T>,
        directions: ArrayView2<'_, T>,
        t_max: f64,
    ) -> Result<Intervals> {
        let rays = self.rays(&origins, &directions, t_max)?;
        // Before any ray is looked at, of which there may be more than memory holds answers.
        let mut offsets = Vec::new();
        let bytes = origins.nrows().saturating_mul(size_of::<usize>());
        offsets.try_reserve_exact(origins.nrows() + 1).map_err(|_| Error::Allocation { bytes })?;
        offsets.push(0);
        let unsound = (0..origins.nrows()).into_par_iter().with_min_len(RAYS).find_first(|&row| !rays(row).is_sound());
        if let Some(error) = unsound.and_then(|row| refused(row, &rays, &origins, &directions)) {
            return Err(error);
        }
        let rungs = self.rungs();
        let grids = Grids { frame: self.tree[0].frame, rungs: &rungs };
        let count = origins.nrows();
        let of_task = |task: usize| {
            let (mut intervals, mut ends) = (Vec::new(), Vec::new());
            for row in task * RAYS..count.min((task + 1) * RAYS) {
                stretches(grids, rays(row), &mut intervals);
                ends.push(intervals.len());
            }
            (intervals, ends)
        };
        let tasks: Vec<(Vec<Interval>, Vec<usize>)> = (0..count.div_ceil(RAYS)).into_par_iter().map(of_task).collect();
        let mut all = Intervals { offsets, intervals: Vec::new() };
        for (intervals, ends) in tasks {
            let before = all.intervals.len();
            all.offsets.extend(ends.into_iter().map(|end| before + end));
            all.intervals.extend(intervals);
        }
        Ok(all)
    }

    /// Every cell of level 0 that a ray visits, occupied or not, in order.
    ///
    /// # Errors
    ///
    /// As [`Pyramid::raycast`], for the arguments `origin` and `direction`.
    ///
    /// # Examples
    ///
    /// ```
    /// use pullback::mipmap::Pyramid;
    ///
    /// let pyramid = Pyramid::empty([4, 4, 4])?;
    /// let visits = pyramid.cells([0.5, 0.5, -1.0], [0.0, 0.0, 1.0], f64::INFINITY)?;
    /// let visits: Vec<_> = visits.map(|visit| (visit.cell[2], visit.t)).collect();
    /// assert_eq!(visits, [(0, 1.0), (1, 2.0), (2, 3.0), (3, 4.0)]);
    /// # Ok::<(), pullback::Error>(())
    /// ```
    pub fn cells<T: Real>(&self, origin: [T; 3], direction: [T; 3], t_max: f64) -> Result<Cells> {
        check_t_max(t_max)?;
        let ray = self.ray(origin.map(wide), direction.map(wide), t_max);
        check_ray(&ray, None, (&origin.map(wide), &direction.map(wide)))?;
        Ok(Cells { walk: Walk::new(ray, self.shape()) })
    }

    fn rungs(&self) -> Vec<Rung<'_>> {
        let mut rungs = Vec::with_capacity(self.tree.len());
        for (s, bricks) in self.tree.iter().enumerate() {
            let [_, height, width] = bricks.frame.grid;
            rungs.push(Rung { words: bricks.words(), log: self.exponents(s + 1), grid: [height, width] });
        }
        rungs
    }

    /// In cell units.
    fn ray(&self, origin: [f64; 3], direction: [f64; 3], t_max: f64) -> Ray {
        let Some(mapping) = self.mapping else { return Ray::new(origin, direction, t_max) };
        let origin = [0, 1, 2].map(|axis| (origin[axis] - mapping.origin[axis]) / mapping.voxel);
        Ray::new(origin, direction.map(|x| x / mapping.voxel), t_max)
    }

    /// The rays of arrays, whose shapes are checked.
    fn rays<'a, T: Real>(
        &'a self,
        origins: &'a ArrayView2<'_, T>,
        directions: &'a ArrayView2<'_, T>,
        t_max: f64,
    ) -> Result<impl Fn(usize) -> Ray + Sync + 'a> {
        check_shape("origins", origins.shape(), &[origins.nrows(), 3])?;
        check_shape("directions", directions.shape(), origins.shape())?;
        check_t_max(t_max)?;
        Ok(move |at: usize| self.ray(row(origins, at), row(directions, at), t_max))
    }
}

fn row<T: Real>(array: &ArrayView2<'_, T>, row: usize) -> [f64; 3] {
    [0, 1, 2].map(|axis| wide(array[[row, axis]]))
}

/// Why a ray is refused, if there is one in the row.
fn refused<T: Real>(
    at: usize,
    ray: impl Fn(usize) -> Ray,
    origins: &ArrayView2<'_, T>,
    directions: &ArrayView2<'_, T>,
) -> Option<Error> {
    let given = (at < origins.nrows()).then(|| (row(origins, at), row(directions, at)));
    given.and_then(|(origin, direction)| check_ray(&ray(at), Some(at), (&origin, &direction)).err())
}

fn check_t_max(t_max: f64) -> Result<()> {
    if t_max >= 0.0 {
        return Ok(());
    }
    Err(Error::Distance { argument: "t_max", position: None, value: format!("{t_max:?}") })
}

/// Refuses a ray that is not finite or has no direction in cell units. `row` is its place, `given` what was passed.
fn check_ray(ray: &Ray, row: Option<usize>, given: (&[f64; 3], &[f64; 3])) -> Result<()> {
    let names = if row.is_some() { ["origins", "directions"] } else { ["origin", "direction"] };
    for (argument, numbers, given) in [(names[0], &ray.origin, given.0), (names[1], &ray.direction, given.1)] {
        if let Some(axis) = numbers.iter().position(|x| !x.is_finite()) {
            let position = row.into_iter().chain([axis]).collect();
            return Err(Error::NonFinite { argument, position, value: format!("{:?}", given[axis]) });
        }
    }
    if ray.direction == [0.0; 3] {
        return Err(Error::Direction { argument: names[1], ray: row.unwrap_or(0) });
    }
    Ok(())
}

/// The stretches of one ray.
fn stretches(grids: Grids<'_>, ray: Ray, intervals: &mut Vec<Interval>) {
    let Some(mut march) = March::new(grids, ray) else { return };
    while march.seek() {
        let (t_in, first) = (march.t, inside(march.cell));
        let mut last = first;
        let (t_out, goes_on) = loop {
            match march.step() {
                Step::None => break (ray.t_max, false),
                Step::Outside => break (march.t, false),
                Step::Inside | Step::Across if march.is_occupied() => last = inside(march.cell),
                Step::Inside | Step::Across => break (march.t, true),
            }
        };
        intervals.push(Interval { t_in, t_out, first, last });
        if !goes_on {
            return;
        }
    }
}
