//! Up and down the levels of a pyramid of numbers, a few levels together while a plane is in cache.
//!
//! A task has a plane of level 3 and what is below it. It computes a plane as soon as both planes of its children are
//! there, and the gradients of a plane as soon as those of its parents are, so that levels 1 to 3 are written once and
//! read from cache.

use super::bricks::Cell;
use super::pyramid::{check_cells, check_levels, full_levels, level_shape};
use super::tuning::Tuning;
use super::windows::{Above, Children, Counts, Planes};
use crate::Real;
use crate::buffer::{Buffer, Filled, Output, STREAM_BYTES, Start};
use crate::error::{Error, Result};
use crate::layout::{check_shape, dense, elements};
use crate::parallel::{Cut, PARALLEL_BYTES, for_each_tile, is_worth_threads};
use crate::simd::Level;
use bytemuck::Pod;
use ndarray::{Array3, ArrayBase, ArrayView3, ArrayViewMut1, ArrayViewMut3, DataMut, Ix3, RawData};
use rayon::prelude::*;
use std::borrow::Cow;

/// Levels that a task computes together.
const TOGETHER: usize = 3;

/// What pyramids of numbers have in common: their shape and how they are computed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Climb {
    pub shape: Cell,
    pub levels: usize,
    pub level: Level,
    pub tuning: Tuning,
}

/// What becomes of windows.
pub(super) enum Kind<'a> {
    /// Their maxima, and the arguments of each level.
    Max(Vec<ArrayViewMut3<'a, u8>>),
    Sum,
    Mean,
}

impl Climb {
    pub fn new(shape: Cell) -> Result<Self> {
        check_cells(shape)?;
        elements::<f64>(&shape)?;
        Ok(Self { shape, levels: full_levels(shape), level: Level::current()?, tuning: Tuning::default() })
    }

    pub fn with_levels(mut self, levels: usize) -> Result<Self> {
        check_levels(self.shape, levels)?;
        self.levels = levels;
        Ok(self)
    }

    pub fn level_shape(&self, k: usize) -> Cell {
        level_shape(self.shape, k)
    }

    /// Cells of a plane of level `k`.
    fn plane(&self, k: usize) -> usize {
        let [_, y, z] = self.level_shape(k);
        y * z
    }

    fn parallel<T>(&self) -> bool {
        let bytes = self.shape.iter().product::<usize>() * size_of::<T>();
        self.tuning.parallel.unwrap_or_else(|| is_worth_threads(bytes, PARALLEL_BYTES))
    }

    pub fn check_x<T>(&self, x: &ArrayView3<'_, T>) -> Result<()> {
        check_shape("x", x.shape(), &self.shape)
    }

    /// New arrays for levels 1 and up, of zeros.
    pub fn arrays<V: Pod + Send + Sync>(&self) -> Result<Vec<Array3<V>>> {
        (1..self.levels).map(|k| zeros(self.level_shape(k))).collect()
    }

    /// Refuses arrays that are not those of levels 1 and up.
    pub fn check_arrays<S: RawData>(&self, argument: &'static str, arrays: &[ArrayBase<S, Ix3>]) -> Result<()> {
        check_shape(argument, &[arrays.len()], &[self.levels - 1])?;
        (1..).zip(arrays).try_for_each(|(k, array)| check_shape(argument, array.shape(), &self.level_shape(k)))
    }

    /// Computes levels 1 and up.
    pub fn forward<T: Real>(
        &self,
        x: &ArrayView3<'_, T>,
        mut levels: Vec<ArrayViewMut3<'_, T>>,
        kind: Kind<'_>,
    ) -> Result<()> {
        let cells = dense(x)?;
        let mean = matches!(kind, Kind::Mean);
        let mut arguments = if let Kind::Max(arguments) = kind { Some(arguments) } else { None };
        let standard = levels.iter().all(ArrayViewMut3::is_standard_layout)
            && arguments.iter().flatten().all(ArrayViewMut3::is_standard_layout);
        if standard {
            self.climb(&cells, slices(levels), arguments.map(slices), mean);
            return Ok(());
        }
        // The caller's arrays have strides.
        let mut fresh = self.arrays::<T>()?;
        let mut chosen = if arguments.is_some() { Some(self.arrays::<u8>()?) } else { None };
        let views = chosen.as_mut().map(|arrays| slices(views_mut(arrays)));
        self.climb(&cells, slices(views_mut(&mut fresh)), views, mean);
        levels.iter_mut().zip(&fresh).for_each(|(to, from)| to.assign(from));
        for (to, from) in arguments.iter_mut().flatten().zip(chosen.iter().flatten()) {
            to.assign(from);
        }
        Ok(())
    }

    /// The levels that are computed together, each group from the level in front of it.
    fn groups(&self) -> Vec<(usize, usize)> {
        let most = if self.tuning.fused.unwrap_or(true) { TOGETHER } else { 1 };
        let top = self.levels - 1;
        (0..top).step_by(most).map(|below| (below, top.min(below + most))).collect()
    }

    fn climb<T: Real>(&self, x: &[T], mut levels: Vec<&mut [T]>, mut chosen: Option<Vec<&mut [u8]>>, mean: bool) {
        for (below, top) in self.groups() {
            let (under, own) = levels.split_at_mut(below);
            let x = under.last().map_or(x, |level| level);
            let mut tasks: Vec<Task<'_, T>> = (0..self.level_shape(top)[0]).map(|_| Task::default()).collect();
            let mut arguments = chosen.as_mut().map(|levels| levels[below..top].iter_mut());
            for (k, level) in (below + 1..=top).zip(own) {
                let planes = self.plane(k) << (top - k);
                let parts = tasks.iter_mut().zip(level.chunks_mut(planes));
                parts.for_each(|(task, part)| task.levels.push(part));
                if let Some(chosen) = arguments.as_mut().and_then(Iterator::next) {
                    let parts = tasks.iter_mut().zip(chosen.chunks_mut(planes));
                    parts.for_each(|(task, part)| task.chosen.push(part));
                }
            }
            let parts = x.par_chunks(self.plane(below) << (top - below));
            if self.parallel::<T>() {
                tasks.into_par_iter().zip(parts).for_each(|(task, x)| self.climb_task(task, x, below, top));
            } else {
                let parts = x.chunks(self.plane(below) << (top - below));
                tasks.into_iter().zip(parts).for_each(|(task, x)| self.climb_task(task, x, below, top));
            }
        }
        if mean {
            // Not before the sums above are there.
            (1..).zip(levels).for_each(|(k, level)| self.divide(k, level));
        }
    }

    /// Computes the planes of a task as soon as their children are there.
    fn climb_task<T: Real>(&self, mut task: Task<'_, T>, x: &[T], below: usize, top: usize) {
        for first in 0..task.levels[0].len() / self.plane(below + 1) {
            let mut plane = first;
            for k in below + 1..=top {
                self.window_plane(&mut task, x, below, k, plane);
                let planes = task.levels[k - below - 1].len() / self.plane(k);
                if plane % 2 == 0 && plane + 1 < planes {
                    break;
                }
                plane /= 2;
            }
        }
    }

    /// Computes a plane of level `k`.
    fn window_plane<T: Real>(&self, task: &mut Task<'_, T>, x: &[T], below: usize, k: usize, plane: usize) {
        let (under, own) = task.levels.split_at_mut(k - below - 1);
        let children: &[T] = under.last().map_or(x, |level| level);
        let ([_, rows, width], cells) = (self.level_shape(k - 1), self.plane(k - 1));
        let mut planes = children.chunks_exact(cells).skip(2 * plane);
        let first = planes.next().expect("a window has a child");
        let children = Planes { first, second: planes.next(), rows, width };
        let range = plane * self.plane(k)..(plane + 1) * self.plane(k);
        let out = &mut own[0][range.clone()];
        match task.chosen.get_mut(k - below - 1) {
            Some(chosen) => T::max_plane(self.level, children, out, &mut chosen[range]),
            None => T::sum_plane(self.level, children, out),
        }
    }

    /// Divides each cell of level `k` by the number of voxels below it.
    pub fn divide<T: Real>(&self, k: usize, cells: &mut [T]) {
        let voxels = |axis: usize| -> Vec<u64> {
            let (n, size) = (self.shape[axis] as u64, 1u64 << k);
            (0..self.level_shape(k)[axis] as u64).map(|i| size.min(n - i * size)).collect()
        };
        let (x, y, z) = (voxels(0), voxels(1), voxels(2));
        let divide = |(&x, plane): (&u64, &mut [T])| T::divide_plane(self.level, Counts { x, y: &y, z: &z }, plane);
        if self.parallel::<T>() {
            x.par_iter().zip(cells.par_chunks_mut(self.plane(k))).for_each(divide);
        } else {
            x.iter().zip(cells.chunks_mut(self.plane(k))).for_each(divide);
        }
    }

    /// The cells of cotangents, checked, by level. `mean` divides them by their numbers of voxels.
    pub fn cotangents<'a, T: Real>(
        &self,
        cotangents: &'a [Option<ArrayView3<'_, T>>],
        mean: bool,
    ) -> Result<Vec<Option<Cow<'a, [T]>>>> {
        if cotangents.len() > self.levels {
            return Err(Error::Shape {
                argument: "cotangents",
                found: vec![cotangents.len()],
                expected: vec![self.levels],
            });
        }
        for (k, cotangent) in cotangents.iter().enumerate() {
            if let Some(cotangent) = cotangent {
                check_shape("cotangents", cotangent.shape(), &self.level_shape(k))?;
            }
        }
        let mut all = Vec::with_capacity(self.levels);
        for (k, cotangent) in cotangents.iter().enumerate() {
            let Some(cotangent) = cotangent else {
                all.push(None);
                continue;
            };
            let mut cells = dense(cotangent)?;
            if mean && k > 0 {
                self.divide(k, cells.to_mut());
            }
            all.push(Some(cells));
        }
        all.resize_with(self.levels, || None);
        Ok(all)
    }

    /// Takes gradients down to level 0.
    pub fn descend<T: Real>(
        &self,
        cotangents: &[Option<Cow<'_, [T]>>],
        arguments: Option<&[Cow<'_, [u8]>]>,
        out: Output<'_, T>,
    ) -> Result<Filled> {
        let top = self.levels - 1;
        if top == 0 {
            let plane = self.plane(0);
            return Ok(for_each_tile(
                out,
                self.shape[0],
                &self.cut::<T>(0, 0),
                &|_, planes, tile| match &cotangents[0] {
                    Some(cells) if !tile.continues() => {
                        tile.push_slice(&cells[planes.start * plane..planes.end * plane]);
                    }
                    Some(cells) => {
                        let sums = tile.accumulators().iter_mut().zip(&cells[planes.start * plane..]);
                        sums.for_each(|(sum, &grad)| *sum = *sum + grad);
                    }
                    None => {
                        tile.accumulators();
                    }
                },
            ));
        }
        let mut grads: Cow<'_, [T]> = match &cotangents[top] {
            Some(cells) => Cow::Borrowed(cells),
            None => Cow::Owned(vec![T::zero(); self.plane(top) * self.level_shape(top)[0]]),
        };
        let groups = self.groups();
        for &(below, top) in groups[1..].iter().rev() {
            let mut cells = vec![T::zero(); self.plane(below) * self.level_shape(below)[0]];
            let out = Output::array(ArrayViewMut1::from(&mut cells[..]), Start::Zero);
            let _ = self.descend_group(&grads, (below, top), cotangents, arguments, out);
            grads = Cow::Owned(cells);
        }
        Ok(self.descend_group(&grads, groups[0], cotangents, arguments, out))
    }

    fn cut<T>(&self, below: usize, top: usize) -> Cut {
        Cut {
            group: self.level_shape(below)[0],
            tile: 1 << (top - below),
            width: self.plane(below),
            parallel: self.parallel::<T>(),
        }
    }

    /// From the gradients of level `top` to those of level `below`.
    fn descend_group<T: Real>(
        &self,
        grads: &[T],
        (below, top): (usize, usize),
        cotangents: &[Option<Cow<'_, [T]>>],
        arguments: Option<&[Cow<'_, [u8]>]>,
        out: Output<'_, T>,
    ) -> Filled {
        let bytes = self.shape.iter().product::<usize>() * size_of::<T>();
        let stream = below == 0 && self.tuning.stream.unwrap_or(bytes >= STREAM_BYTES);
        let plane_of = |level: usize, plane: usize| plane * self.plane(level)..(plane + 1) * self.plane(level);
        let children = |k: usize, plane: usize| Children {
            second: plane % 2 == 1,
            rows: self.level_shape(k)[1],
            width: self.level_shape(k)[2],
            cotangents: cotangents[k].as_ref().map(|cells| &cells[plane_of(k, plane)]),
        };
        let above = |k: usize, plane: usize| arguments.map(|levels| &levels[k - 1][plane_of(k, plane)]);
        for_each_tile(out, self.level_shape(below)[0], &self.cut::<T>(below, top), &|_, planes, tile| {
            // A plane of each level between, and which one it is.
            let mut between: Vec<(usize, Vec<T>)> =
                (below + 1..top).map(|k| (usize::MAX, vec![T::zero(); self.plane(k)])).collect();
            let mut numbers = vec![T::zero(); self.level_shape(below + 1)[2]];
            for plane in planes {
                for k in (below + 1..top).rev() {
                    let own = plane >> (k - below);
                    let (lower, upper) = between.split_at_mut(k - below);
                    let (at, cells) = &mut lower[k - below - 1];
                    if *at == own {
                        continue;
                    }
                    *at = own;
                    let from = match upper.first() {
                        Some((_, cells)) => cells,
                        None => &grads[plane_of(top, own / 2)],
                    };
                    let from = Above { grads: from, chosen: above(k + 1, own / 2) };
                    let out = Output::array(ArrayViewMut1::from(&mut cells[..]), Start::Zero);
                    let _ = out.write(|tile| {
                        T::spread_plane(self.level, from, children(k, own), &mut numbers, false, tile);
                    });
                }
                let from = match between.first() {
                    Some((_, cells)) => cells,
                    None => &grads[plane_of(top, plane / 2)],
                };
                let from = Above { grads: from, chosen: above(below + 1, plane / 2) };
                T::spread_plane(self.level, from, children(below, plane), &mut numbers, stream, tile);
            }
        })
    }

    /// Runs `write` on a new array for the gradient of level 0.
    pub fn gradient<T: Real>(&self, write: impl FnOnce(Output<'_, T>) -> Result<Filled>) -> Result<Array3<T>> {
        let mut buffer = Buffer::new(elements::<T>(&self.shape)?)?;
        let filled = write(Output::fresh(buffer.cells()))?;
        Ok(buffer.finish(filled, &self.shape))
    }

    pub fn check_gradient<T>(&self, grad_x: &ArrayViewMut3<'_, T>) -> Result<()> {
        check_shape("grad_x", grad_x.shape(), &self.shape)
    }
}

/// The planes of a task, by level.
struct Task<'a, T> {
    levels: Vec<&'a mut [T]>,
    chosen: Vec<&'a mut [u8]>,
}

impl<T> Default for Task<'_, T> {
    fn default() -> Self {
        Self { levels: Vec::new(), chosen: Vec::new() }
    }
}

/// A new array of zeros.
fn zeros<V: Pod + Send + Sync>(shape: Cell) -> Result<Array3<V>> {
    let count = elements::<V>(&shape)?;
    let mut buffer = Buffer::new(count)?;
    let tile = (PARALLEL_BYTES / size_of::<V>()).max(1);
    let cut = Cut { group: count, tile, width: 1, parallel: is_worth_threads(count, tile) };
    let filled = for_each_tile(Output::fresh(buffer.cells()), count, &cut, &|_, _, tile| {
        tile.accumulators();
    });
    Ok(buffer.finish(filled, &shape))
}

/// Arrays as they are written to.
pub(super) fn views_mut<V, S: DataMut<Elem = V>>(arrays: &mut [ArrayBase<S, Ix3>]) -> Vec<ArrayViewMut3<'_, V>> {
    arrays.iter_mut().map(|array| array.view_mut()).collect()
}

/// The cells of arrays in standard layout.
fn slices<V>(arrays: Vec<ArrayViewMut3<'_, V>>) -> Vec<&mut [V]> {
    arrays.into_iter().map(|array| array.into_slice().expect("a standard layout")).collect()
}

/// What the operators on pyramids of numbers have in common: their levels and how they are computed.
macro_rules! levels {
    ($pyramid:ident) => {
        crate::settings::settings!(
            simd_level of [T: Real] $pyramid<T> { climb.level, climb.tuning }, same bits from Base
        );

        impl<T: Real> $pyramid<T> {
            /// A pyramid of every level of arrays of `shape`, which is not 0 on any axis. O(1).
            ///
            /// # Errors
            ///
            /// [`Error::Parameter`](crate::Error::Parameter) where an axis has length 0;
            /// [`Error::TooLarge`](crate::Error::TooLarge), and [`Error::Environment`](crate::Error::Environment) from
            /// [`Level::current`](crate::Level::current).
            pub fn new(shape: [usize; 3]) -> Result<Self> {
                Ok(Self { climb: Climb::new(shape)?, element: PhantomData })
            }

            /// The same pyramid of levels 0 to before `levels`.
            ///
            /// # Errors
            ///
            /// [`Error::Parameter`](crate::Error::Parameter) or [`Error::TooLarge`](crate::Error::TooLarge) where there
            /// is no level or there are more than [`full_levels`](super::full_levels).
            pub fn with_levels(self, levels: usize) -> Result<Self> {
                Ok(Self { climb: self.climb.with_levels(levels)?, ..self })
            }

            /// The shape of level 0.
            #[must_use]
            pub fn shape(&self) -> [usize; 3] {
                self.climb.shape
            }

            /// The number of levels, level 0 included.
            #[must_use]
            pub fn levels(&self) -> usize {
                self.climb.levels
            }

            /// The shape of level `k`: `ceil(n / 2^k)` an axis.
            #[must_use]
            pub fn level_shape(&self, k: usize) -> [usize; 3] {
                self.climb.level_shape(k)
            }
        }
    };
}
pub(super) use levels;
