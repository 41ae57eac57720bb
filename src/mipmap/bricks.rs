//! Words of 64 voxels: which voxels a word holds, where it lies, and what can be said of one word.

use crate::buffer::Buffer;
use crate::error::{Error, Result};
use crate::layout::elements;
use ndarray::Array1;
use rayon::prelude::*;

/// A cell, its index on each axis.
pub(super) type Cell = [usize; 3];

/// Multiples of 2^c: bit `i << c` for every `i`.
const EVERY: [u64; 7] = [
    !0,
    0x5555_5555_5555_5555,
    0x1111_1111_1111_1111,
    0x0101_0101_0101_0101,
    0x0001_0001_0001_0001,
    0x0000_0001_0000_0001,
    1,
];

/// Of a brick of 4 x 4 x 4, the bits where [`halved`] has the cells of the level above.
pub(super) const HALVES: u64 = 0x0000_0505_0000_0505;

/// How a grid is cut into words, its bricks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Frame {
    /// Cells on each axis, at least 1.
    pub shape: Cell,
    /// A brick has 2^log cells on each axis, 64 in all.
    pub log: [u32; 3],
    /// Bricks on each axis.
    pub grid: Cell,
}

impl Frame {
    pub fn new(shape: Cell) -> Result<Self> {
        let log = exponents(shape);
        let grid = bricks(shape, log);
        elements::<u64>(&grid)?;
        Ok(Self { shape, log, grid })
    }

    /// Whether bricks are 4 x 4 x 4.
    pub fn is_cubic(&self) -> bool {
        self.log == [2; 3]
    }

    /// The number of words.
    pub fn words(&self) -> usize {
        self.grid.iter().product()
    }

    /// The word of a brick.
    #[inline(always)]
    pub fn index(&self, brick: Cell) -> usize {
        (brick[0] * self.grid[1] + brick[1]) * self.grid[2] + brick[2]
    }

    /// The word that holds a cell, and its bit.
    #[inline(always)]
    pub fn place(&self, cell: Cell) -> (usize, u32) {
        let [a, b, c] = self.log;
        let within = |axis: usize| (cell[axis] & ((1 << self.log[axis]) - 1)) as u32;
        let bit = within(0) << (b + c) | within(1) << c | within(2);
        (self.index([cell[0] >> a, cell[1] >> b, cell[2] >> c]), bit)
    }

    /// The cell of a bit of a brick.
    #[inline(always)]
    pub fn cell(&self, brick: Cell, bit: u32) -> Cell {
        let [a, b, c] = self.log;
        let within = [bit >> (b + c), bit >> c & ((1 << b) - 1), bit & ((1 << c) - 1)];
        [brick[0] << a | within[0] as usize, brick[1] << b | within[1] as usize, brick[2] << c | within[2] as usize]
    }

    /// The bits of a brick that lie in the box from `lo` to before `hi`.
    #[inline(always)]
    pub fn mask(&self, brick: Cell, lo: Cell, hi: Cell) -> u64 {
        let (mut low, mut high) = ([0; 3], [0; 3]);
        for axis in 0..3 {
            let (first, size) = (brick[axis] << self.log[axis], 1 << self.log[axis]);
            low[axis] = lo[axis].saturating_sub(first).min(size) as u32;
            high[axis] = hi[axis].saturating_sub(first).min(size) as u32;
        }
        let [_, b, c] = self.log;
        let z = run(low[2], high[2]);
        let yz = z.wrapping_mul(EVERY[c as usize] & run(low[1] << c, high[1] << c));
        yz.wrapping_mul(EVERY[(b + c) as usize] & run(low[0] << (b + c), high[0] << (b + c)))
    }

    /// The bits of a brick that are cells of the grid.
    pub fn inside(&self, brick: Cell) -> u64 {
        self.mask(brick, [0; 3], self.shape)
    }

    /// The bricks that hold cells of a box that is not empty: the first ones, and behind the last ones.
    pub fn bricks_of(&self, lo: Cell, hi: Cell) -> (Cell, Cell) {
        let (mut first, mut end) = (lo, hi);
        for axis in 0..3 {
            first[axis] = lo[axis] >> self.log[axis];
            end[axis] = ((hi[axis] - 1) >> self.log[axis]) + 1;
        }
        (first, end)
    }

    /// 64-bit words of a row along the last axis.
    pub fn row_words(&self) -> usize {
        self.shape[2].div_ceil(64)
    }

    /// Writes the row of cells `(x, y, ..)` into `row`, the first lowest, with zeros behind it.
    pub fn row(&self, words: &[u64], x: usize, y: usize, row: &mut [u64]) {
        let [a, b, c] = self.log;
        let first = self.index([x >> a, y >> b, 0]);
        let within = |at: usize, log: u32| (at & ((1 << log) - 1)) as u32;
        let shift = within(x, a) << (b + c) | within(y, b) << c;
        let (size, mask) = (1 << c, run(0, 1 << c));
        row.fill(0);
        for (brick, &word) in words[first..][..self.grid[2]].iter().enumerate() {
            let at = brick * size;
            row[at / 64] |= (word >> shift & mask) << (at % 64);
        }
    }
}

/// Bits `low` to before `high`, at most 64.
#[inline(always)]
pub(super) fn run(low: u32, high: u32) -> u64 {
    if low >= high { 0 } else { (!0 >> (64 - (high - low))) << low }
}

/// The bits of a word that are set, the lowest first.
#[inline(always)]
pub(super) fn set_bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let bit = (word != 0).then(|| word.trailing_zeros())?;
        word &= word - 1;
        Some(bit)
    })
}

/// A brick of 4 x 4 x 4 at the level above: a bit of [`HALVES`] is set where one of its 2 x 2 x 2 is.
#[inline(always)]
pub(super) fn halved(word: u64) -> u64 {
    let word = word | word >> 1;
    let word = word | word >> 4;
    (word | word >> 16) & HALVES
}

fn bricks(shape: Cell, log: [u32; 3]) -> Cell {
    std::array::from_fn(|axis| shape[axis].div_ceil(1 << log[axis]))
}

/// 4 x 4 x 4 voxels a word, but for grids that would leave most of such a word empty.
fn exponents(shape: Cell) -> [u32; 3] {
    const CUBE: [u32; 3] = [2; 3];
    if shape.iter().all(|&n| n >= 4) {
        return CUBE;
    }
    let words = |log: [u32; 3]| bricks(shape, log).iter().fold(1, |words: u128, &n| words.saturating_mul(n as u128));
    let all = (0..=6).flat_map(|a| (0..=6 - a).map(move |b| [a, b, 6 - a - b]));
    all.min_by_key(|&log| (words(log), log.into_iter().max())).unwrap_or(CUBE)
}

/// A grid of bits. Those that are no cells are 0.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bricks {
    pub frame: Frame,
    words: Array1<u64>,
}

impl Bricks {
    pub fn new(frame: Frame, words: Array1<u64>) -> Self {
        assert_eq!(words.len(), frame.words(), "a word a brick");
        Self { frame, words }
    }

    /// Nothing is occupied.
    pub fn empty(shape: Cell) -> Result<Self> {
        let frame = Frame::new(shape)?;
        let mut words = Vec::new();
        let bytes = frame.words().saturating_mul(8);
        words.try_reserve_exact(frame.words()).map_err(|_| Error::Allocation { bytes })?;
        drop(words);
        // Zeroed by the system, page by page, where it is touched.
        words = vec![0; frame.words()];
        Ok(Self { frame, words: words.into() })
    }

    /// Memory for the words of a frame.
    pub fn buffer(frame: &Frame) -> Result<Buffer<u64>> {
        Buffer::new(frame.words())
    }

    #[inline(always)]
    pub fn words(&self) -> &[u64] {
        self.words.as_slice().expect("words in a row")
    }

    #[inline(always)]
    pub fn words_mut(&mut self) -> &mut [u64] {
        self.words.as_slice_mut().expect("words in a row")
    }

    /// The first brick with a bit that is no cell.
    pub fn first_outside(&self) -> Option<Cell> {
        let (frame, [_, y, z]) = (&self.frame, self.frame.grid);
        let ends = |brick: Cell| (0..3).any(|axis| brick[axis] + 1 == frame.grid[axis]);
        let brick = |at: usize| [at / (y * z), at / z % y, at % z];
        let outside = |&at: &usize| ends(brick(at)) && self.words()[at] & !frame.inside(brick(at)) != 0;
        (0..frame.words()).into_par_iter().with_min_len(1 << 12).find_first(outside).map(brick)
    }

    #[inline(always)]
    pub fn get(&self, cell: Cell) -> bool {
        let (word, bit) = self.frame.place(cell);
        self.words()[word] >> bit & 1 != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_few_where_an_axis_is_short() {
        let log = |shape| Frame::new(shape).unwrap().log;
        assert_eq!(log([512, 512, 512]), [2, 2, 2]);
        assert_eq!(log([4, 5, 4]), [2, 2, 2]);
        assert_eq!(log([1, 1024, 1024]), [0, 3, 3]);
        assert_eq!(log([1024, 2, 1024]), [2, 1, 3]);
        assert_eq!(log([1, 1, 4096]), [0, 0, 6]);
        assert_eq!(log([1, 1, 1]), [2, 2, 2]);
        for shape in [[1, 1000, 1000], [2, 700, 900], [700, 3, 900], [3, 5, 4000], [4000, 1, 1], [3, 300, 3]] {
            let bits = 64 * Frame::new(shape).unwrap().words();
            assert!(bits <= 2 * shape.iter().product::<usize>(), "{shape:?}");
        }
    }

    #[test]
    fn masks_and_places_agree() {
        for shape in [[5, 6, 9], [1, 11, 19], [2, 3, 70], [1, 1, 130], [130, 1, 1]] {
            let frame = Frame::new(shape).unwrap();
            let (lo, hi) = ([shape[0] / 3, 0, 1.min(shape[2] - 1)], [shape[0], shape[1].div_ceil(2), shape[2]]);
            let mut expected = vec![0u64; frame.words()];
            for x in lo[0]..hi[0] {
                for y in lo[1]..hi[1] {
                    for z in lo[2]..hi[2] {
                        let (word, bit) = frame.place([x, y, z]);
                        expected[word] |= 1 << bit;
                    }
                }
            }
            for x in 0..frame.grid[0] {
                for y in 0..frame.grid[1] {
                    for z in 0..frame.grid[2] {
                        let word = frame.index([x, y, z]);
                        assert_eq!(frame.mask([x, y, z], lo, hi), expected[word], "{shape:?}");
                        for bit in 0..64 {
                            let cell = frame.cell([x, y, z], bit);
                            assert_eq!(frame.place(cell), (word, bit));
                        }
                    }
                }
            }
        }
    }
}
