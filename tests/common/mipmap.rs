//! Dense references for `mipmap`: levels by "or", boxes, neighbours and rows, one voxel after the other.

use super::random::Random;
use ndarray::Array3;
use pullback::bitvec::prelude::{BitVec, Lsb0};
use pullback::mipmap::{Connectivity, Pyramid};

/// A cell, or a shape.
pub type Cell = [usize; 3];

/// What part of a grid is occupied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fill {
    Empty,
    /// One voxel.
    One,
    /// One voxel in 50.
    Sparse,
    Half,
    /// All but one voxel in 50.
    Dense,
    Full,
}

impl Fill {
    pub const ALL: [Self; 6] = [Self::Empty, Self::One, Self::Sparse, Self::Half, Self::Dense, Self::Full];

    pub fn grid(self, shape: Cell, random: &mut Random) -> Array3<bool> {
        let one = shape.map(|n| random.below(n.max(1)));
        Array3::from_shape_fn(shape, |(x, y, z)| match self {
            Self::Empty => false,
            Self::One => [x, y, z] == one,
            Self::Sparse => random.below(50) == 0,
            Self::Half => random.below(2) == 0,
            Self::Dense => random.below(50) != 0,
            Self::Full => true,
        })
    }
}

pub fn shape_of<T>(grid: &Array3<T>) -> Cell {
    let (x, y, z) = grid.dim();
    [x, y, z]
}

/// Cells `lo..hi` in row-major order.
pub fn cells_of(lo: Cell, hi: Cell) -> impl Iterator<Item = Cell> {
    (lo[0]..hi[0]).flat_map(move |x| (lo[1]..hi[1]).flat_map(move |y| (lo[2]..hi[2]).map(move |z| [x, y, z])))
}

/// Half the size: a cell is occupied where one of its children is.
pub fn coarser(grid: &Array3<bool>) -> Array3<bool> {
    let mut above = Array3::from_elem(shape_of(grid).map(|n| n.div_ceil(2)), false);
    for ((x, y, z), &occupied) in grid.indexed_iter() {
        above[[x / 2, y / 2, z / 2]] |= occupied;
    }
    above
}

/// Every level down to one cell.
pub fn levels(grid: &Array3<bool>) -> Vec<Array3<bool>> {
    let mut levels = vec![grid.clone()];
    while let Some(last) = levels.last().filter(|last| last.len() > 1) {
        levels.push(coarser(last));
    }
    levels
}

/// Rows along the last axis, the first cell in the lowest bit of a word, each row in words of its own.
pub fn rows(grid: &Array3<bool>) -> BitVec<u64, Lsb0> {
    let (x, y, z) = grid.dim();
    let words = z.div_ceil(64);
    let mut memory = vec![0u64; x * y * words];
    for ((i, j, k), _) in grid.indexed_iter().filter(|(_, occupied)| **occupied) {
        memory[(i * y + j) * words + k / 64] |= 1 << (k % 64);
    }
    BitVec::from_vec(memory)
}

/// First and one behind the last occupied cell an axis.
pub fn bounds(grid: &Array3<bool>) -> Option<(Cell, Cell)> {
    let mut found: Option<(Cell, Cell)> = None;
    for ((x, y, z), _) in grid.indexed_iter().filter(|(_, occupied)| **occupied) {
        let (lo, hi) = found.get_or_insert(([x, y, z], [x + 1, y + 1, z + 1]));
        for (axis, at) in [x, y, z].into_iter().enumerate() {
            lo[axis] = lo[axis].min(at);
            hi[axis] = hi[axis].max(at + 1);
        }
    }
    found
}

pub fn count_in_box(grid: &Array3<bool>, lo: Cell, hi: Cell) -> u64 {
    cells_of(lo, hi).filter(|cell| grid[*cell]).count() as u64
}

/// The cells around `cell` that exist.
fn around(shape: Cell, cell: Cell, neighbours: Connectivity) -> impl Iterator<Item = Cell> {
    cells_of([0; 3], [3; 3]).filter_map(move |step| {
        let moved = step.iter().filter(|&&by| by != 1).count();
        if moved == 0 || neighbours == Connectivity::Six && moved > 1 {
            return None;
        }
        let mut to = [0; 3];
        for axis in 0..3 {
            to[axis] = (cell[axis] + step[axis]).checked_sub(1).filter(|at| *at < shape[axis])?;
        }
        Some(to)
    })
}

pub fn dilated(grid: &Array3<bool>, neighbours: Connectivity) -> Array3<bool> {
    let shape = shape_of(grid);
    Array3::from_shape_fn(shape, |(x, y, z)| {
        grid[[x, y, z]] || around(shape, [x, y, z], neighbours).any(|cell| grid[cell])
    })
}

pub fn eroded(grid: &Array3<bool>, neighbours: Connectivity) -> Array3<bool> {
    let shape = shape_of(grid);
    Array3::from_shape_fn(shape, |(x, y, z)| {
        grid[[x, y, z]] && around(shape, [x, y, z], neighbours).all(|cell| grid[cell])
    })
}

/// The levels that `pyramid` has are those of `grid`, looked at in every way.
#[track_caller]
pub fn assert_pyramid(pyramid: &Pyramid, grid: &Array3<bool>) {
    let expected = levels(grid);
    assert_eq!(pyramid.shape(), shape_of(grid));
    assert!((1..=expected.len()).contains(&pyramid.levels()), "{} levels", pyramid.levels());
    for (k, expected) in expected.iter().enumerate().take(pyramid.levels()) {
        let level = pyramid.level(k).expect("the level is there");
        assert_eq!(level.shape(), shape_of(expected), "shape of level {k}");
        assert_eq!(&level.to_array::<bool>().expect("memory"), expected, "level {k} of {:?}", pyramid.shape());
        assert_eq!(level.to_array::<u8>().expect("memory"), expected.mapv(u8::from), "level {k}");
        assert_eq!(level.to_array::<i32>().expect("memory"), expected.mapv(i32::from), "level {k}");
        assert_eq!(level.rows().expect("memory").as_raw_slice(), rows(expected).as_raw_slice(), "rows of level {k}");
        let occupied = expected.indexed_iter().filter(|(_, occupied)| **occupied);
        let occupied: Vec<Cell> = occupied.map(|((x, y, z), _)| [x, y, z]).collect();
        assert_eq!(level.count(), occupied.len() as u64, "count of level {k}");
        assert_eq!(level.bounds(), bounds(expected), "bounds of level {k}");
        assert!(level.iter_occupied().eq(occupied), "occupied cells of level {k}");
        let mut random = Random::new(k as u64);
        for _ in 0..20 {
            let cell = level.shape().map(|n| random.below(n));
            assert_eq!(level.get(cell), Ok(expected[cell]), "level {k}, cell {cell:?}");
        }
    }
}

/// A box of `shape`, of length 0 along some axes now and then.
pub fn random_box(shape: Cell, random: &mut Random) -> (Cell, Cell) {
    let (mut lo, mut hi) = ([0; 3], [0; 3]);
    for axis in 0..3 {
        let ends = [random.below(shape[axis] + 1), random.below(shape[axis] + 1)];
        lo[axis] = ends[0].min(ends[1]);
        hi[axis] = ends[0].max(ends[1]);
        if random.below(3) == 0 {
            hi[axis] = (lo[axis] + 1).min(shape[axis]);
        }
    }
    (lo, hi)
}
