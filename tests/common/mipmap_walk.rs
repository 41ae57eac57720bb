//! The walk of a ray through the cells of a dense grid, one boundary after the other, and a problem of rays with its check.

use super::mipmap::{Cell, Fill};
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::Value;
use ndarray::{Array2, Array3, Ix2};
use pullback::mipmap::{Hits, Interval, Pyramid, Visit};

/// The cells of the grid on the way, and when the ray steps out of it, if it does.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    pub visits: Vec<(Cell, f64)>,
    pub exit: Option<f64>,
}

/// Where it starts and where it goes are in units of cells.
pub fn walk(shape: Cell, origin: [f64; 3], direction: [f64; 3], t_max: f64) -> Walk {
    let mut at = origin.map(|o| o.floor() as i64);
    let mut walk = Walk { visits: vec![], exit: None };
    let mut now = 0.0;
    loop {
        let inside = |axis: usize| (0..shape[axis] as i64).contains(&at[axis]);
        if (0..3).all(inside) {
            walk.visits.push((at.map(|at| at as usize), now));
        } else {
            // A ray that has left does not come back; one that is not there yet may.
            let lost = |axis: usize| {
                at[axis] < 0 && direction[axis] <= 0.0 || at[axis] >= shape[axis] as i64 && direction[axis] >= 0.0
            };
            if (0..3).any(lost) {
                walk.exit = (!walk.visits.is_empty()).then_some(now);
                return walk;
            }
        }
        let mut step: Option<(usize, f64)> = None;
        for axis in 0..3 {
            let (o, d) = (origin[axis], direction[axis]);
            if d == 0.0 {
                continue;
            }
            let boundary = if d > 0.0 { at[axis] + 1 } else { at[axis] };
            let t = (boundary as f64 - o) / d;
            let taken = t.is_finite() && (t < t_max || t == t_max && d > 0.0);
            if taken && step.is_none_or(|(_, first)| t <= first) {
                step = Some((axis, t));
            }
        }
        let Some((axis, t)) = step else { return walk };
        at[axis] += if direction[axis] > 0.0 { 1 } else { -1 };
        now = t + 0.0;
    }
}

/// The runs of occupied cells of a walk.
pub fn intervals(grid: &Array3<bool>, walk: &Walk, t_max: f64) -> Vec<Interval> {
    let mut found: Vec<Interval> = vec![];
    let mut before = false;
    for &(cell, t) in &walk.visits {
        match (before, grid[cell]) {
            (false, true) => found.push(Interval { t_in: t, t_out: f64::NAN, first: cell, last: cell }),
            (true, true) => found.last_mut().expect("it has begun").last = cell,
            (true, false) => found.last_mut().expect("it has begun").t_out = t,
            (false, false) => {}
        }
        before = grid[cell];
    }
    if before {
        found.last_mut().expect("it has begun").t_out = walk.exit.unwrap_or(t_max);
    }
    found
}

/// Where rays come from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rays {
    /// All from one point outside, in nearby directions.
    Camera,
    /// From and to points in or around the grid that are decimal fractions: sums and products are not exact.
    Decimal,
    /// From and along whole and half numbers: ties are the rule.
    Lattice,
    /// From corners, edges and the middles of sides, to others.
    Features,
    /// Steep and flat, with components of either zero and of far smaller magnitude.
    Extreme,
}

impl Rays {
    pub const ALL: [Self; 5] = [Self::Camera, Self::Decimal, Self::Lattice, Self::Features, Self::Extreme];

    /// An origin and a direction, in cells; the direction is not 0.
    fn draw(self, shape: Cell, random: &mut Random) -> [[f64; 3]; 2] {
        let n = shape.map(|n| n as f64);
        loop {
            let [mut origin, mut direction] = [[0.0; 3]; 2];
            for axis in 0..3 {
                let anywhere = |random: &mut Random| (random.uniform() * 2.0 - 0.5) * n[axis];
                let decimal = |x: f64| (x * 10.0).round() / 10.0;
                let feature = |random: &mut Random| random.one_of(&[0.0, 0.5, 1.0]) * n[axis];
                (origin[axis], direction[axis]) = match self {
                    Self::Camera => {
                        ([-1.3, 0.4, 0.7][axis] * n[axis], [1.8, 0.1, -0.2][axis] * n[axis] + random.normal())
                    }
                    Self::Decimal => (decimal(anywhere(random)), decimal(anywhere(random)) - decimal(anywhere(random))),
                    Self::Lattice => ((anywhere(random) * 2.0).round() / 2.0, random.below(7) as f64 - 3.0),
                    Self::Features => {
                        let from = feature(random);
                        (from, feature(random) - from)
                    }
                    Self::Extreme => {
                        let small = [0.0, -0.0, 1e-9, -1e-9, 1e-30, -1e-300, 5e-324, 1.0, -1.0, 1e10, -1e200];
                        let start = [0.0, -0.0, -1e-20, 0.5, n[axis], -0.5, 1e-20, n[axis].next_down()];
                        (random.one_of(&start), random.one_of(&small))
                    }
                };
            }
            if direction.iter().any(|d| *d != 0.0) {
                return [origin, direction];
            }
        }
    }
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct RaysCase {
    pub shape: Cell,
    pub fill: Fill,
    pub rays: Rays,
    pub count: usize,
    pub t_max: f64,
    /// Levels of the pyramid, or all.
    pub levels: Option<usize>,
    pub mapping: Option<([f64; 3], f64)>,
    pub double: bool,
    pub strides: Strides,
    pub threads: usize,
    pub seed: u64,
}

impl Default for RaysCase {
    /// 40 decimal rays through 12 x 9 x 17 cells of which few are occupied, in f64.
    fn default() -> Self {
        Self {
            shape: [12, 9, 17],
            fill: Fill::Sparse,
            rays: Rays::Decimal,
            count: 40,
            t_max: f64::INFINITY,
            levels: None,
            mapping: None,
            double: true,
            strides: Strides::default(),
            threads: 2,
            seed: 0,
        }
    }
}

impl RaysCase {
    pub fn check(&self) {
        threads::with(self.threads, || match self.double {
            false => self.check_element::<f32>(),
            true => self.check_element::<f64>(),
        });
    }

    fn check_element<T: Value>(&self) {
        let mut random = Random::new(self.seed);
        let grid = self.fill.grid(self.shape, &mut random);
        let (origin, voxel) = self.mapping.unwrap_or(([0.0; 3], 1.0));
        let number = |x: f64| T::from_f64(x).filter(|x| x.is_finite()).unwrap_or(T::one());
        let [mut origins, mut directions] = [0; 2].map(|_| Array2::from_elem([self.count, 3], T::zero()));
        for ray in 0..self.count {
            let [o, d] = self.rays.draw(self.shape, &mut random);
            for axis in 0..3 {
                origins[[ray, axis]] = number(o[axis] * voxel + origin[axis]);
                directions[[ray, axis]] = number(d[axis] * voxel);
            }
            // In f32 it may have become 0.
            if directions.row(ray).iter().all(|d| d.to_f64().is_none_or(|d| d / voxel == 0.0)) {
                directions[[ray, ray % 3]] = T::one();
            }
        }
        let pyramid = Pyramid::from_nonzero(grid.view()).expect("a good grid").into_occupancy();
        let pyramid = match self.levels {
            None => Pyramid::build(pyramid),
            Some(levels) => {
                let all = pullback::mipmap::full_levels(self.shape);
                Pyramid::build_to(pyramid, levels.clamp(1, all))
            }
        };
        let pyramid = pyramid.expect("as many levels");
        let pyramid = match self.mapping {
            Some((origin, voxel)) => pyramid.with_mapping(origin, voxel).expect("a good mapping"),
            None => pyramid,
        };
        check_rays(&pyramid, &grid, &origins, &directions, self.strides, self.t_max);
    }
}

fn arranged<T: Value>(values: &Array2<T>, strides: Strides) -> Strided<T, Ix2> {
    let mut strided = Strided::new(values.raw_dim(), strides, T::nan);
    strided.view_mut().assign(values);
    strided
}

/// Hits, intervals and cells are those of the walk through `grid`.
pub fn check_rays<T: Value>(
    pyramid: &Pyramid,
    grid: &Array3<bool>,
    origins: &Array2<T>,
    directions: &Array2<T>,
    strides: Strides,
    t_max: f64,
) {
    let (o, d) = (arranged(origins, strides), arranged(directions, strides));
    let Hits { cells, t } = pyramid.raycast(o.view(), d.view(), t_max).expect("good rays");
    let found = pyramid.traverse(o.view(), d.view(), t_max).expect("good rays");
    assert_eq!((cells.dim(), t.dim()), ((origins.nrows(), 3), origins.nrows()));
    assert_eq!(found.offsets.len(), origins.nrows() + 1);
    let (zero, one) = ([0.0; 3], 1.0);
    let (start, voxel) = pyramid.mapping().map_or((zero, one), |mapping| (mapping.origin, mapping.voxel));
    for ray in 0..origins.nrows() {
        let row = |array: &Array2<T>| [0, 1, 2].map(|axis| array[[ray, axis]]);
        let (origin, direction) = (row(origins), row(directions));
        let what = format!("ray {ray}, {origin:?} along {direction:?} to {t_max} in {:?}", pyramid.shape());
        let wide = |x: T| x.to_f64().expect("a number");
        let mut of_cells = [[0.0; 3]; 2];
        for axis in 0..3 {
            of_cells[0][axis] = (wide(origin[axis]) - start[axis]) / voxel;
            of_cells[1][axis] = wide(direction[axis]) / voxel;
        }
        let walk = walk(pyramid.shape(), of_cells[0], of_cells[1], t_max);
        let visits: Vec<Visit> = pyramid.cells(origin, direction, t_max).expect("a good ray").collect();
        let visits: Vec<(Cell, u64)> = visits.iter().map(|visit| (visit.cell, visit.t.to_bits())).collect();
        let expected: Vec<(Cell, u64)> = walk.visits.iter().map(|(cell, t)| (*cell, t.to_bits())).collect();
        assert_eq!(visits, expected, "cells of {what}");
        let hit = walk.visits.iter().find(|(cell, _)| grid[*cell]);
        let (cell, at) = hit.map_or(([-1; 3], f64::INFINITY), |(cell, t)| (cell.map(|at| at as i64), *t));
        assert_eq!(cells.row(ray).to_vec(), cell, "hit of {what}");
        assert_eq!(t[ray].to_bits(), at.to_bits(), "t of {what}: {} for {at}", t[ray]);
        let expected = intervals(grid, &walk, t_max);
        assert_eq!(found.intervals[found.offsets[ray]..found.offsets[ray + 1]], expected, "intervals of {what}");
    }
}
