//! A level, to look at: most of it is read as rows of bits.

use super::bricks::{Cell, halved, set_bits};
use super::pyramid::{Pyramid, level_shape};
use crate::error::{Error, Result};
use crate::layout::elements;
use crate::parallel::{PARALLEL_BYTES, is_worth_threads};
use bitvec::order::Lsb0;
use bitvec::vec::BitVec;
use ndarray::Array3;
use rayon::prelude::*;

/// Words of a level that one task looks at, at least: as many as take some microseconds.
const WORDS: usize = 1 << 14;

mod sealed {
    pub trait Sealed {}
}

/// What [`LevelView::to_array`] makes of a cell: `u8` and `i32` are 0 or 1, `bool` is whether it is occupied.
pub trait Value: sealed::Sealed + Copy + Send + Sync + 'static {
    /// A cell as a value.
    #[doc(hidden)]
    fn of(bit: bool) -> Self;
}

macro_rules! values {
    ($($t:ty),*) => { $(
        impl sealed::Sealed for $t {}
        impl Value for $t {
            fn of(bit: bool) -> Self {
                bit.into()
            }
        }
    )* };
}
values!(u8, i32, bool);

/// Where the cells of a level are.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// They are a grid of the tree.
    Grid(usize),
    /// They are the 2 x 2 x 2 of the bricks of a grid of the tree.
    Halves(usize),
    /// They are looked up through the tree.
    Boxes,
}

/// One level of a [`Pyramid`], or an [`Occupancy`](super::Occupancy).
///
/// # Examples
///
/// ```
/// use pullback::mipmap::Pyramid;
/// use pullback::ndarray::Array3;
///
/// let mut cells = Array3::from_elem((3, 5, 70), false);
/// cells[[1, 4, 69]] = true;
/// let pyramid = Pyramid::from_nonzero(cells.view())?;
/// let level = pyramid.level(1)?;
/// assert_eq!(level.shape(), [2, 3, 35]);
/// assert_eq!(level.bounds(), Some(([0, 2, 34], [1, 3, 35])));
/// assert_eq!(level.to_array::<u8>()?[[0, 2, 34]], 1);
///
/// // Rows start on words: 35 bits and 29 zeros each.
/// let rows = level.rows()?;
/// assert_eq!(rows.as_raw_slice()[2], 1 << 34);
/// assert_eq!(pyramid.level(0)?.to_array::<bool>()?, cells);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LevelView<'a> {
    pyramid: &'a Pyramid,
    k: usize,
    shape: Cell,
    place: Place,
}

impl<'a> LevelView<'a> {
    pub(super) fn new(pyramid: &'a Pyramid, k: usize) -> Self {
        // Of a grid that has one cell on an axis, it does not matter how many are below.
        let grid = |k: usize| {
            (0..pyramid.tree.len()).find(|&s| {
                let (log, shape) = (pyramid.exponents(s), pyramid.tree[s].frame.shape);
                (0..3).all(|axis| log[axis] as usize == k || (shape[axis] == 1 && log[axis] as usize <= k))
            })
        };
        let place = match (grid(k), k.checked_sub(1).and_then(grid)) {
            (Some(s), _) => Place::Grid(s),
            (None, Some(s)) if pyramid.tree[s].frame.is_cubic() => Place::Halves(s),
            _ => Place::Boxes,
        };
        Self { pyramid, k, shape: level_shape(pyramid.shape(), k), place }
    }

    /// `ceil(n / 2^k)` an axis.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        self.shape
    }

    /// Whether a cell is occupied. O(1), or O(log n) where an axis is short.
    ///
    /// # Errors
    ///
    /// [`Error::IndexOutOfRange`] where there is no such cell.
    pub fn get(&self, cell: [usize; 3]) -> Result<bool> {
        check_cell(cell, self.shape)?;
        Ok(match self.place {
            Place::Grid(s) => self.pyramid.tree[s].get(cell),
            Place::Halves(s) => {
                let frame = &self.pyramid.tree[s].frame;
                let word = self.pyramid.tree[s].words()[frame.index(cell.map(|i| i / 2))];
                halved(word) >> (32 * (cell[0] % 2) + 8 * (cell[1] % 2) + 2 * (cell[2] % 2)) & 1 != 0
            }
            Place::Boxes => self.covered(cell),
        })
    }

    /// Whether one of the cells of level 0 below a cell is occupied.
    fn covered(&self, cell: Cell) -> bool {
        let shape = self.pyramid.shape();
        let lo = cell.map(|i| i << self.k);
        let hi = [0, 1, 2].map(|axis| shape[axis].min(lo[axis] + (1 << self.k)));
        self.pyramid.any(lo, hi)
    }

    fn row_words(&self) -> usize {
        self.shape[2].div_ceil(64)
    }

    /// The cells `(x, y, ..)`, the first lowest, with zeros behind them.
    fn row(&self, x: usize, y: usize, row: &mut [u64]) {
        match self.place {
            Place::Grid(s) => {
                let bricks = &self.pyramid.tree[s];
                bricks.frame.row(bricks.words(), x, y, row);
            }
            Place::Halves(s) => {
                let bricks = &self.pyramid.tree[s];
                let (first, shift) = (bricks.frame.index([x / 2, y / 2, 0]), 32 * (x % 2) + 8 * (y % 2));
                row.fill(0);
                for (z, &word) in bricks.words()[first..][..bricks.frame.grid[2]].iter().enumerate() {
                    let two = halved(word) >> shift & 0b101;
                    row[z / 32] |= (two & 1 | two >> 1) << (2 * (z % 32));
                }
            }
            Place::Boxes => {
                row.fill(0);
                for z in 0..self.shape[2] {
                    row[z / 64] |= u64::from(self.covered([x, y, z])) << (z % 64);
                }
            }
        }
    }

    /// Whether the words say so that hold the cells `(x, y, ..)`, and others.
    fn is_empty_row(&self, x: usize, y: usize) -> bool {
        let (s, [x, y]) = match self.place {
            Place::Grid(s) => {
                let [a, b, _] = self.pyramid.tree[s].frame.log;
                (s, [x >> a, y >> b])
            }
            Place::Halves(s) => (s, [x / 2, y / 2]),
            Place::Boxes => return false,
        };
        let bricks = &self.pyramid.tree[s];
        let first = bricks.frame.index([x, y, 0]);
        bricks.words()[first..][..bricks.frame.grid[2]].iter().all(|&word| word == 0)
    }

    /// The number of occupied cells. O(cells / 64).
    #[must_use]
    pub fn count(&self) -> u64 {
        let ones = |words: &[u64], of: fn(u64) -> u64| -> u64 {
            let of_part = |part: &[u64]| part.iter().map(|&word| u64::from(of(word).count_ones())).sum::<u64>();
            words.par_chunks(WORDS).map(of_part).sum()
        };
        match self.place {
            Place::Grid(s) => ones(self.pyramid.tree[s].words(), |word| word),
            Place::Halves(s) => ones(self.pyramid.tree[s].words(), halved),
            Place::Boxes => {
                let [x, y, _] = self.shape;
                let of_row = |row: &mut Vec<u64>, at: usize| {
                    self.row(at / y, at % y, row);
                    row.iter().map(|word| u64::from(word.count_ones())).sum::<u64>()
                };
                let rows = (0..x * y).into_par_iter().with_min_len(WORDS.div_ceil(self.row_words()));
                rows.map_init(|| vec![0; self.row_words()], of_row).sum()
            }
        }
    }

    /// The occupied cells in row-major order.
    pub fn iter_occupied(&self) -> impl Iterator<Item = [usize; 3]> + 'a {
        let level = *self;
        let [x, y, _] = self.shape;
        let rows = (0..x).flat_map(move |x| (0..y).map(move |y| [x, y]));
        rows.filter(move |&[x, y]| !level.is_empty_row(x, y)).flat_map(move |[x, y]| {
            let mut row = vec![0; level.row_words()];
            level.row(x, y, &mut row);
            let words = row.into_iter().enumerate();
            words.flat_map(move |(at, word)| set_bits(word).map(move |bit| [x, y, 64 * at + bit as usize]))
        })
    }

    /// The smallest box that holds all occupied cells, from its first cell to behind its last one; none where nothing is occupied.
    /// O(X Y Z / 64) of level 0; where there are levels above it, O(X Y Z / 4096) and the occupied words.
    #[must_use]
    pub fn bounds(&self) -> Option<([usize; 3], [usize; 3])> {
        let tree = &self.pyramid.tree;
        let (ground, parts) = (&tree[0], tree.get(1).unwrap_or(&tree[0]));
        let [_, height, width] = parts.frame.grid;
        let of_word = |part: Cell, word: u64| match tree.len() {
            1 => Some(word_bounds(&ground.frame, part, word)),
            // A bit a word of level 0.
            _ => set_bits(word).fold(None, |bounds, bit| {
                let brick = parts.frame.cell(part, bit);
                hull(bounds, Some(word_bounds(&ground.frame, brick, ground.words()[ground.frame.index(brick)])))
            }),
        };
        let of_slab = |(slab, words): (usize, &[u64])| {
            let occupied = words.iter().enumerate().filter(|(_, word)| **word != 0);
            occupied.fold(None, |bounds, (at, &word)| hull(bounds, of_word([slab, at / width, at % width], word)))
        };
        let slabs = parts.words().par_chunks(height * width).enumerate().with_min_len(WORDS.div_ceil(height * width));
        let (lo, hi) = slabs.map(of_slab).reduce(|| None, hull)?;
        Some((lo.map(|i| i >> self.k), hi.map(|i| ((i - 1) >> self.k) + 1)))
    }

    /// The cells as an array.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn to_array<V: Value>(&self) -> Result<Array3<V>> {
        let (cells, [_, y, z]) = (elements::<V>(&self.shape)?, self.shape);
        let mut values: Vec<V> = Vec::new();
        let bytes = cells.saturating_mul(size_of::<V>());
        values.try_reserve_exact(cells).map_err(|_| Error::Allocation { bytes })?;
        values.resize(cells, V::of(false));
        let write = |bits: &mut Vec<u64>, (at, row): (usize, &mut [V])| {
            self.row(at / y, at % y, bits);
            for (&bits, row) in bits.iter().zip(row.chunks_mut(64)) {
                row.iter_mut().enumerate().for_each(|(bit, value)| *value = V::of(bits >> bit & 1 != 0));
            }
        };
        self.each_row(&mut values, z, write);
        Ok(shaped(self.shape, values))
    }

    /// The cells as rows of bits along the last axis, the first lowest, each row in whole words with zeros behind it.
    ///
    /// # Errors
    ///
    /// [`Error::TooLarge`] or [`Error::Allocation`].
    pub fn rows(&self) -> Result<BitVec<u64, Lsb0>> {
        let (width, [x, y, _]) = (self.row_words(), self.shape);
        let count = elements::<u64>(&[x, y, width])?;
        let mut words: Vec<u64> = Vec::new();
        words.try_reserve_exact(count).map_err(|_| Error::Allocation { bytes: 8 * count })?;
        words.resize(count, 0);
        self.each_row(&mut words, width, |_, (at, row)| self.row(at / y, at % y, row));
        BitVec::try_from_vec(words).map_err(|_| Error::TooLarge {
            argument: "bits of the rows",
            value: 64 * count as u128,
            limit: bitvec::slice::BitSlice::<u64, Lsb0>::MAX_BITS as u128,
        })
    }

    /// Runs `write` once a row of `width` values, with a scratch of a row's bits.
    fn each_row<V: Send>(
        &self,
        values: &mut [V],
        width: usize,
        write: impl Fn(&mut Vec<u64>, (usize, &mut [V])) + Sync + Send,
    ) {
        let scratch = || vec![0; self.row_words()];
        if is_worth_threads(size_of_val(values), PARALLEL_BYTES) {
            values.par_chunks_mut(width).enumerate().for_each_init(scratch, write);
        } else {
            let mut scratch = scratch();
            values.chunks_mut(width).enumerate().for_each(|row| write(&mut scratch, row));
        }
    }
}

fn shaped<V>(shape: Cell, values: Vec<V>) -> Array3<V> {
    Array3::from_shape_vec(shape, values).expect("as many values as cells")
}

pub(super) fn check_cell(cell: Cell, shape: Cell) -> Result<()> {
    match (0..3).find(|&axis| cell[axis] >= shape[axis]) {
        None => Ok(()),
        Some(axis) => Err(Error::IndexOutOfRange {
            argument: "cell",
            position: vec![axis],
            value: cell[axis] as i128,
            bound: shape[axis],
        }),
    }
}

/// The bounds of the cells of a word that is not 0.
fn word_bounds(frame: &super::bricks::Frame, brick: Cell, word: u64) -> (Cell, Cell) {
    let (mut low, mut high) = ([usize::MAX; 3], [0; 3]);
    for bit in set_bits(word) {
        let cell = frame.cell(brick, bit);
        for axis in 0..3 {
            low[axis] = low[axis].min(cell[axis]);
            high[axis] = high[axis].max(cell[axis] + 1);
        }
    }
    (low, high)
}

fn hull(a: Option<(Cell, Cell)>, b: Option<(Cell, Cell)>) -> Option<(Cell, Cell)> {
    let (Some((a_low, a_high)), Some((b_low, b_high))) = (a, b) else { return a.or(b) };
    let low = std::array::from_fn(|axis| a_low[axis].min(b_low[axis]));
    Some((low, std::array::from_fn(|axis| a_high[axis].max(b_high[axis]))))
}
