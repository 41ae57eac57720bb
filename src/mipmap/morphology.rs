//! Growing and shrinking by a cell: bricks beside their neighbours.

use super::bricks::{Bricks, Cell, Frame};
use super::pyramid::Pyramid;
use crate::buffer::Output;
use crate::error::Result;
use crate::parallel::{Cut, PARALLEL_BYTES, for_each_tile, is_worth_threads};

/// Which cells are neighbours of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connectivity {
    /// Those that share a face.
    Six,
    /// Those that share a corner at least.
    TwentySix,
}

impl Pyramid {
    /// The cells that are occupied or have a neighbour that is, with as many levels. O(X Y Z / 64).
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn dilate(&self, connectivity: Connectivity) -> Result<Self> {
        self.grown_by_one(connectivity, false)
    }

    /// The cells that are occupied and whose neighbours are: those neighbours that exist, so that a cell at the edge can stay.
    /// With as many levels. O(X Y Z / 64).
    ///
    /// # Errors
    ///
    /// [`Error::Allocation`](crate::Error::Allocation).
    pub fn erode(&self, connectivity: Connectivity) -> Result<Self> {
        self.grown_by_one(connectivity, true)
    }

    /// What is empty grows if `empty`, else what is occupied.
    fn grown_by_one(&self, connectivity: Connectivity, empty: bool) -> Result<Self> {
        let ground = &self.tree[0];
        let grown = match connectivity {
            Connectivity::Six => step(ground, &[0, 1, 2], empty)?,
            Connectivity::TwentySix => step(&step(&step(ground, &[2], empty)?, &[1], empty)?, &[0], empty)?,
        };
        let mut pyramid = Self::over(grown, self.level, self.tuning).grown(self.levels)?;
        pyramid.mapping = self.mapping;
        Ok(pyramid)
    }
}

/// Every cell with its neighbours along `axes`.
fn step(bricks: &Bricks, axes: &[usize], empty: bool) -> Result<Bricks> {
    let (frame, words) = (bricks.frame, bricks.words());
    let [slabs, height, width] = frame.grid;
    let mut buffer = Bricks::buffer(&frame)?;
    let cut = Cut {
        group: height,
        tile: (4096 / width).max(1),
        width,
        parallel: is_worth_threads(size_of_val(words), PARALLEL_BYTES),
    };
    let filled = for_each_tile(Output::fresh(buffer.cells()), slabs * height, &cut, &|x, rows, tile| {
        let mut line = vec![0; width];
        for y in rows {
            for (z, line) in line.iter_mut().enumerate() {
                let brick = [x, y, z];
                let grown = axes.iter().fold(read(&frame, words, brick, empty), |grown, &axis| {
                    grown | along(&frame, words, brick, axis, empty)
                });
                *line = if empty { !grown } else { grown } & frame.inside(brick);
            }
            tile.push_slice(&line);
        }
    });
    Ok(Bricks::new(frame, buffer.finish(filled, &[frame.words()])))
}

/// A brick, or what of it is empty.
#[inline(always)]
fn read(frame: &Frame, words: &[u64], brick: Cell, empty: bool) -> u64 {
    let word = words[frame.index(brick)];
    if empty { !word & frame.inside(brick) } else { word }
}

/// The neighbours of a brick's cells along an axis, on both sides.
#[inline(always)]
fn along(frame: &Frame, words: &[u64], brick: Cell, axis: usize, empty: bool) -> u64 {
    let [_, b, c] = frame.log;
    // The bits of a cell and of the next one along the axis, and of the first and the last, are so far apart.
    let shift = 1u32 << [b + c, c, 0][axis];
    let last = shift * ((1 << frame.log[axis]) - 1);
    let first_layer = frame.mask([0; 3], [0; 3], layer(frame, axis));
    let last_layer = first_layer << last;
    let word = read(frame, words, brick, empty);
    let (mut below, mut above) = (0, 0);
    if frame.log[axis] > 0 {
        below = word << shift & !first_layer;
        above = word >> shift & !last_layer;
    }
    let mut beside = brick;
    if brick[axis] > 0 {
        beside[axis] = brick[axis] - 1;
        below |= read(frame, words, beside, empty) >> last & first_layer;
    }
    if brick[axis] + 1 < frame.grid[axis] {
        beside[axis] = brick[axis] + 1;
        above |= (read(frame, words, beside, empty) & first_layer) << last;
    }
    below | above
}

/// Behind the first layer of the first brick along an axis.
fn layer(frame: &Frame, axis: usize) -> Cell {
    std::array::from_fn(|other| if other == axis { 1 } else { 1 << frame.log[other] })
}
