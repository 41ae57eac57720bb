//! From rows of bits to bricks.
//!
//! Planes of a slab are read row by row, as they lie in memory, and packed into a scratch of bits that stays in the level-two
//! cache; bricks are cut from there. Reading the numbers of a brick together instead, from planes that are a megabyte
//! apart, takes several times as long.

use super::bricks::{Bricks, Cell, Frame, run};
use super::source::{Nonzero, Source};
use super::tuning::Tuning;
use crate::buffer::{Filled, Output, Start, Tile};
use crate::error::Result;
use crate::parallel::{Cut, PARALLEL_BYTES, for_each_tile, is_worth_threads};
use crate::simd::{Level, Simd, at};
use ndarray::{ArrayView3, ArrayViewMut1, s};
use rayon::prelude::*;
use std::ops::Range;

/// 64-bit words of packed rows that a task works on.
const SCRATCH: usize = 8 << 10;

/// Rows of bits whose words are transposed together.
const TOGETHER: usize = 8;

/// The kernel of this file, which has no type but that of its words.
pub trait Kernels: Sized {
    /// Cuts `rows` rows of bricks of 4 x 4 x 4 from `packed`: the planes of a slab, each of the rows that the bricks hold.
    #[doc(hidden)]
    fn cut(level: Level, frame: &Frame, packed: &[Self], rows: usize, tile: &mut Tile<'_, Self>);
}

impl Kernels for u64 {
    fn cut(level: Level, frame: &Frame, packed: &[u64], rows: usize, tile: &mut Tile<'_, u64>) {
        at!(level, |s| cubes(s, frame, packed, rows, tile));
    }
}

/// [`Kernels::cut`] for bricks of any shape.
fn cut(level: Level, frame: &Frame, packed: &[u64], rows: usize, tile: &mut Tile<'_, u64>) {
    if frame.is_cubic() {
        u64::cut(level, frame, packed, rows, tile);
    } else {
        blocks(frame, packed, rows, tile);
    }
}

/// Bricks of 4 x 4 x 4: 4 bits of each of 16 rows.
#[inline(always)]
fn cubes<S: Simd>(_: S, frame: &Frame, packed: &[u64], rows: usize, tile: &mut Tile<'_, u64>) {
    let words = frame.row_words();
    for row in 0..rows {
        let mut left = frame.grid[2];
        let mut at = 0;
        while at < words {
            let mut bricks = [0u64; 16 * TOGETHER];
            let taken = if words - at > 2 { TOGETHER.min(words - at) } else { 1 };
            if taken == TOGETHER {
                let mut lanes = [[0u64; TOGETHER]; 16];
                for (r, lanes) in lanes.iter_mut().enumerate() {
                    let from = ((r / 4 * rows + row) * 4 + r % 4) * words + at;
                    *lanes = *packed[from..].first_chunk().expect("words of a row");
                }
                transpose(&mut lanes);
                spread(&lanes, &mut bricks);
            } else if taken > 1 {
                let mut lanes = [[0u64; TOGETHER]; 16];
                for (r, lanes) in lanes.iter_mut().enumerate() {
                    let from = ((r / 4 * rows + row) * 4 + r % 4) * words + at;
                    for (lane, &word) in lanes.iter_mut().zip(&packed[from..][..taken]) {
                        *lane = word;
                    }
                }
                transpose(&mut lanes);
                spread(&lanes, &mut bricks);
            } else {
                let mut lanes = [[0u64; 1]; 16];
                for (r, lane) in lanes.iter_mut().enumerate() {
                    lane[0] = packed[((r / 4 * rows + row) * 4 + r % 4) * words + at];
                }
                transpose(&mut lanes);
                for (brick, lane) in bricks.iter_mut().zip(&lanes) {
                    *brick = lane[0];
                }
            }
            let cut = left.min(16 * taken);
            tile.push_slice(&bricks[..cut]);
            left -= cut;
            at += taken;
        }
    }
}

/// Nibble `c` of row `r` becomes nibble `r` of row `c`, in every lane.
#[inline(always)]
fn transpose<const W: usize>(rows: &mut [[u64; W]; 16]) {
    swap::<W, 8>(rows, 0x0000_0000_ffff_ffff);
    swap::<W, 4>(rows, 0x0000_ffff_0000_ffff);
    swap::<W, 2>(rows, 0x00ff_00ff_00ff_00ff);
    swap::<W, 1>(rows, 0x0f0f_0f0f_0f0f_0f0f);
}

/// Exchanges the nibbles that are on the wrong side of blocks of `2 HALF` rows. With constants for shifts, so that it is straight
/// code in registers.
#[inline(always)]
fn swap<const W: usize, const HALF: usize>(rows: &mut [[u64; W]; 16], mask: u64) {
    let mut upper = 0;
    while upper < 16 {
        if upper & HALF == 0 {
            let (mut a, mut b) = (rows[upper], rows[upper + HALF]);
            let mut lane = 0;
            while lane < W {
                let swap = (a[lane] >> (4 * HALF) ^ b[lane]) & mask;
                b[lane] ^= swap;
                a[lane] ^= swap << (4 * HALF);
                lane += 1;
            }
            rows[upper] = a;
            rows[upper + HALF] = b;
        }
        upper += 1;
    }
}

#[inline(always)]
fn spread(lanes: &[[u64; TOGETHER]; 16], bricks: &mut [u64; 16 * TOGETHER]) {
    for (lane, bricks) in bricks.chunks_exact_mut(16).enumerate() {
        for (brick, row) in bricks.iter_mut().zip(lanes) {
            *brick = row[lane];
        }
    }
}

/// Bricks of any shape.
fn blocks(frame: &Frame, packed: &[u64], rows: usize, tile: &mut Tile<'_, u64>) {
    let [a, b, c] = frame.log;
    let (words, mask) = (frame.row_words(), run(0, 1 << c));
    let mut line = vec![0u64; frame.grid[2]];
    for row in 0..rows {
        line.fill(0);
        for x in 0..1usize << a {
            for y in 0..1usize << b {
                let shift = x << (b + c) | y << c;
                let own = &packed[(((x * rows + row) << b) + y) * words..][..words];
                for (brick, line) in line.iter_mut().enumerate() {
                    let at = brick << c;
                    *line |= (own[at / 64] >> (at % 64) & mask) << shift;
                }
            }
        }
        tile.push_slice(&line);
    }
}

/// Writes all words of a frame.
pub(super) fn fill(source: &impl Source, frame: &Frame, level: Level, tuning: Tuning, out: Output<'_, u64>) -> Filled {
    let [a, b, _] = frame.log;
    let [slabs, height, width] = frame.grid;
    let words = frame.row_words() << (a + b);
    let tiles = Cut {
        group: height,
        tile: (tuning.task.unwrap_or(SCRATCH) / words).clamp(1, height),
        width,
        parallel: tuning.parallel.unwrap_or_else(|| is_worth_threads(source.bytes(), PARALLEL_BYTES)),
    };
    for_each_tile(out, slabs * height, &tiles, &|slab, rows, tile| {
        let mut packed = vec![0u64; words * rows.len()];
        let lines = rows.start << b..frame.shape[1].min(rows.end << b);
        let planes = slab << a..frame.shape[0].min((slab + 1) << a);
        for (x, plane) in planes.zip(packed.chunks_exact_mut((words * rows.len()) >> a)) {
            source.pack(level, x, lines.clone(), &mut plane[..lines.len() * frame.row_words()]);
        }
        cut(level, frame, &packed, rows.len(), tile);
    })
}

/// The bricks of a source.
pub(super) fn bricks(source: &impl Source, level: Level, tuning: Tuning) -> Result<Bricks> {
    let frame = Frame::new(source.shape())?;
    let mut buffer = Bricks::buffer(&frame)?;
    let filled = fill(source, &frame, level, tuning, Output::fresh(buffer.cells()));
    Ok(Bricks::new(frame, buffer.finish(filled, &[frame.words()])))
}

/// Cuts the slab of bricks whose planes are `packed`, as many as its bricks have cells along the first axis.
pub(super) fn slab(frame: &Frame, packed: &[u64], level: Level, parallel: bool, out: &mut [u64]) {
    let [a, b, _] = frame.log;
    let [_, height, width] = frame.grid;
    let words = frame.row_words();
    let rows = (SCRATCH / (words << (a + b))).clamp(1, height);
    let tiles = Cut { group: height, tile: rows, width, parallel };
    let plane = words * frame.shape[1];
    let out = Output::array(ArrayViewMut1::from(out), Start::Zero);
    let _ = for_each_tile(out, height, &tiles, &|_, rows: Range<usize>, tile| {
        let mut part = vec![0u64; (words * rows.len()) << (a + b)];
        let lines = rows.start << b..frame.shape[1].min(rows.end << b);
        for (part, plane) in part.chunks_exact_mut((words * rows.len()) << b).zip(packed.chunks_exact(plane)) {
            part[..lines.len() * words].copy_from_slice(&plane[lines.start * words..lines.end * words]);
        }
        cut(level, frame, &part, rows.len(), tile);
    });
}

/// Writes the box at `lo` that a source fills.
pub(super) fn write_box(bricks: &mut Bricks, lo: Cell, source: &impl Source, level: Level, tuning: Tuning) {
    let (frame, shape) = (bricks.frame, source.shape());
    if shape == frame.shape {
        let words = Output::array(ArrayViewMut1::from(bricks.words_mut()), Start::Zero);
        let _ = fill(source, &frame, level, tuning, words);
        return;
    }
    let hi = [lo[0] + shape[0], lo[1] + shape[1], lo[2] + shape[2]];
    let (first, end) = frame.bricks_of(lo, hi);
    let slab_words = frame.grid[1] * frame.grid[2];
    let slabs = &mut bricks.words_mut()[first[0] * slab_words..end[0] * slab_words];
    let write =
        |(slab, words): (usize, &mut [u64])| write_slab(&frame, first[0] + slab, (lo, hi), source, level, words);
    if tuning.parallel.unwrap_or_else(|| is_worth_threads(source.bytes(), PARALLEL_BYTES)) {
        slabs.par_chunks_mut(slab_words).enumerate().for_each(write);
    } else {
        slabs.chunks_mut(slab_words).enumerate().for_each(write);
    }
}

/// [`write_box`] of the words of the grid below, of a box from `lo` to before `hi`, where there are so few that to pack rows of
/// them costs more than to look at one after another.
pub(super) fn write_few(above: &mut Bricks, below: &Bricks, (lo, hi): (Cell, Cell)) {
    let (frame, words) = (above.frame, below.words());
    let (first, end) = frame.bricks_of(lo, hi);
    for brick in (first[0]..end[0]).flat_map(|x| (first[1]..end[1]).map(move |y| [x, y])) {
        for z in first[2]..end[2] {
            let brick = [brick[0], brick[1], z];
            let children = |axis: usize| {
                let start = brick[axis] << frame.log[axis];
                lo[axis].max(start)..hi[axis].min(start + (1 << frame.log[axis]))
            };
            let mut bits = 0;
            for x in children(0) {
                for y in children(1) {
                    let row = below.frame.index([x, y, 0]);
                    for z in children(2) {
                        bits |= u64::from(words[row + z] != 0) << frame.place([x, y, z]).1;
                    }
                }
            }
            let word = &mut above.words_mut()[frame.index(brick)];
            *word = *word & !frame.mask(brick, lo, hi) | bits;
        }
    }
}

/// The part of a box that lies in one slab of bricks.
fn write_slab(
    frame: &Frame,
    slab: usize,
    (lo, hi): (Cell, Cell),
    source: &impl Source,
    level: Level,
    words: &mut [u64],
) {
    let [a, b, c] = frame.log;
    let (first, end) = frame.bricks_of(lo, hi);
    let (rows, width) = (end[1] - first[1], end[2] - first[2]);
    // The bricks of the box as a grid of their own.
    let own = Frame { shape: [1 << a, rows << b, width << c], log: frame.log, grid: [1, rows, width] };
    let (row_words, from_words) = (own.row_words(), source.shape()[2].div_ceil(64));
    let (skip, shift) = (lo[1] - (first[1] << b), lo[2] - (first[2] << c));
    let mut packed = vec![0u64; row_words * own.shape[0] * own.shape[1]];
    let mut plane = vec![0u64; from_words * (hi[1] - lo[1])];
    let planes = lo[0].max(slab << a)..hi[0].min((slab + 1) << a);
    for x in planes.clone() {
        source.pack(level, x - lo[0], 0..hi[1] - lo[1], &mut plane);
        let to = &mut packed[((x - (slab << a)) * own.shape[1] + skip) * row_words..];
        for (from, to) in plane.chunks_exact(from_words).zip(to.chunks_exact_mut(row_words)) {
            shifted(from, shift, to);
        }
    }
    let mut fresh = vec![0u64; rows * width];
    let _ = Output::array(ArrayViewMut1::from(&mut fresh[..]), Start::Zero)
        .write(|tile| cut(level, &own, &packed, rows, tile));

    // Bricks that the box fills, or as much of them as there is, are copied.
    let whole = |axis: usize, brick: usize| {
        lo[axis] <= brick << frame.log[axis] && hi[axis] >= frame.shape[axis].min((brick + 1) << frame.log[axis])
    };
    let row_is_whole = whole(0, slab);
    let inner = first[2] + usize::from(!whole(2, first[2]))..end[2] - usize::from(!whole(2, end[2] - 1));
    for (y, fresh) in (first[1]..end[1]).zip(fresh.chunks_exact(width)) {
        let words = &mut words[y * frame.grid[2]..][..frame.grid[2]];
        let whole = row_is_whole && whole(1, y) && inner.start < inner.end;
        if whole {
            words[inner.clone()].copy_from_slice(&fresh[inner.start - first[2]..inner.end - first[2]]);
        }
        for z in first[2]..end[2] {
            if !(whole && inner.contains(&z)) {
                let mask = frame.mask([slab, y, z], lo, hi);
                words[z] = words[z] & !mask | fresh[z - first[2]];
            }
        }
    }
}

/// `from`, moved up by less than 64 bits.
fn shifted(from: &[u64], shift: usize, to: &mut [u64]) {
    if shift == 0 {
        to[..from.len()].copy_from_slice(from);
        return;
    }
    let mut carry = 0;
    for (at, to) in to.iter_mut().enumerate() {
        let word = from.get(at).copied().unwrap_or(0);
        *to = word << shift | carry;
        carry = word >> (64 - shift);
    }
}

/// One word a brick: the words of a grid as a source for the one above.
pub(super) fn words_of(bricks: &Bricks) -> Nonzero<'_, u64> {
    words_of_box(bricks, [0; 3], bricks.frame.grid)
}

/// [`words_of`] the bricks from `lo` to before `hi`.
pub(super) fn words_of_box(bricks: &Bricks, lo: Cell, hi: Cell) -> Nonzero<'_, u64> {
    let words = ArrayView3::from_shape(bricks.frame.grid, bricks.words()).expect("a word a brick");
    Nonzero { array: words.slice_move(s![lo[0]..hi[0], lo[1]..hi[1], lo[2]..hi[2]]) }
}
