//! How work is shared between threads.
//!
//! An output is a sequence of groups (batches), each of the same number of rows, and is cut into tiles that never cross
//! a group. Where the cuts are depends on the problem alone, never on the number of threads, and every tile has one
//! owner, so the bits of a result cannot depend on who computed it. Threads are those of the rayon pool that the caller
//! is in.

use crate::buffer::{Both, Filled, Output, Split, Tile};
use bytemuck::Pod;
use std::ops::Range;

/// Below this many bytes moved, waking a second thread costs more than it saves (measured by `benches/gather.rs`).
pub(crate) const PARALLEL_BYTES: usize = 128 << 10;

/// Where an output is cut.
#[derive(Clone, Copy)]
pub(crate) struct Cut {
    /// Rows of a group.
    pub group: usize,
    /// Rows of a tile, at least 1; the last tile of a group may be shorter.
    pub tile: usize,
    /// Cells of a row, at least 1.
    pub width: usize,
    /// Whether tiles may run on several threads.
    pub parallel: bool,
}

impl Cut {
    fn tiles_a_group(&self) -> usize {
        self.group.div_ceil(self.tile)
    }

    /// The tile that a row lies in.
    fn tile_of(&self, row: usize) -> usize {
        row / self.group * self.tiles_a_group() + row % self.group / self.tile
    }

    /// The first row of a tile.
    fn first_row(&self, tile: usize) -> usize {
        let per_group = self.tiles_a_group();
        tile / per_group * self.group + tile % per_group * self.tile
    }
}

/// Runs `kernel` once a tile, with the group, the rows within it, and the tile. `rows` is the number of rows of `out`,
/// not 0. A tile of strided memory may come in several parts.
pub(crate) fn for_each_tile<T: Pod + Send + Sync>(
    out: Output<'_, T>,
    rows: usize,
    cut: &Cut,
    kernel: &(impl Fn(usize, Range<usize>, &mut Tile<'_, T>) + Sync),
) -> Filled {
    split(out, 0..rows, cut, &|out: Output<'_, T>, group, rows| out.write(|tile| kernel(group, rows, tile)))
}

/// [`for_each_tile`] of two outputs; `cut` speaks of the first.
pub(crate) fn for_each_tile_of_both<A: Pod + Send + Sync, B: Pod + Send + Sync>(
    out: Both<'_, '_, A, B>,
    rows: usize,
    cut: &Cut,
    kernel: &(impl Fn(usize, Range<usize>, &mut Tile<'_, A>, &mut Tile<'_, B>) + Sync),
) -> Filled {
    split(out, 0..rows, cut, &|out: Both<'_, '_, A, B>, group, rows| out.write(|a, b| kernel(group, rows, a, b)))
}

/// Runs `write` once a tile, with the tile's part of `out`, the group, and the rows within it.
fn split<O: Split>(
    out: O,
    rows: Range<usize>,
    cut: &Cut,
    write: &(impl Fn(O, usize, Range<usize>) -> Filled + Sync),
) -> Filled {
    let (first, last) = (cut.tile_of(rows.start), cut.tile_of(rows.end - 1));
    if first == last {
        let group = rows.start / cut.group;
        let within = rows.start - group * cut.group..rows.end - group * cut.group;
        return write(out, group, within);
    }
    let middle = cut.first_row(first + (last - first).div_ceil(2));
    let (a, taken, b) = out.split_near(middle - rows.start, cut.width);
    let middle = rows.start + taken;
    let (left, right) = (rows.start..middle, middle..rows.end);
    if cut.parallel {
        let (a, b) = rayon::join(|| split(a, left, cut, write), || split(b, right, cut, write));
        a.and(b)
    } else {
        split(a, left, cut, write).and(split(b, right, cut, write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Start;
    use ndarray::Array2;
    use std::collections::HashSet;
    use std::sync::{Condvar, Mutex};
    use std::time::Duration;

    /// Writes the row's number into every cell and returns the tiles that ran.
    fn number_rows(out: &mut Array2<f64>, cut: Cut) -> Vec<(usize, Range<usize>)> {
        let tiles = Mutex::new(Vec::new());
        let (rows, width) = out.dim();
        let filled = for_each_tile(Output::array(out.view_mut(), Start::Zero), rows, &cut, &|group, rows, tile| {
            tiles.lock().unwrap().push((group, rows.clone()));
            for row in rows {
                tile.push_slice(&vec![(group * cut.group + row) as f64; width]);
            }
        });
        assert_eq!(filled, Filled::cells(rows * width));
        let mut tiles = tiles.into_inner().unwrap();
        tiles.sort_by_key(|(group, rows)| (*group, rows.start));
        tiles
    }

    #[test]
    fn tiles_cover_every_row_once_and_never_cross_a_group() {
        for (groups, group, tile) in [(1, 1, 1), (3, 7, 2), (4, 5, 5), (2, 9, 100), (5, 1, 3), (1, 64, 7)] {
            for parallel in [false, true] {
                let mut out = Array2::zeros((groups * group, 3));
                let tiles = number_rows(&mut out, Cut { group, tile, width: 3, parallel });
                for (row, cells) in out.outer_iter().enumerate() {
                    assert!(cells.iter().all(|&cell| cell == row as f64));
                }
                let expected: Vec<_> = (0..groups)
                    .flat_map(|g| (0..group).step_by(tile).map(move |row| (g, row..(row + tile).min(group))))
                    .collect();
                assert_eq!(tiles, expected);
            }
        }
    }

    #[test]
    fn strided_outputs_are_cut_at_the_same_rows() {
        let (groups, group, tile) = (3, 10, 4);
        let mut wide = Array2::from_elem((groups * group, 6), -1.0);
        let mut out = wide.slice_mut(ndarray::s![.., ..;2]);
        let filled = for_each_tile(
            Output::array(out.view_mut(), Start::Zero),
            groups * group,
            &Cut { group, tile, width: 3, parallel: true },
            &|group, rows, tile| {
                assert!(rows.start.is_multiple_of(4));
                for row in rows {
                    tile.push_slice(&[(10 * group + row) as f64; 3]);
                }
            },
        );
        assert_eq!(filled, Filled::cells(groups * group * 3));
        for ((row, column), &cell) in wide.indexed_iter() {
            assert_eq!(cell, if column % 2 == 0 { row as f64 } else { -1.0 });
        }
    }

    #[test]
    fn more_than_one_thread_takes_a_tile() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let (seen, arrived) = (Mutex::new(HashSet::new()), Condvar::new());
        let mut out = Array2::<f32>::zeros((64, 1));
        pool.install(|| {
            let cut = Cut { group: 64, tile: 1, width: 1, parallel: true };
            let filled = for_each_tile(Output::array(out.view_mut(), Start::Zero), 64, &cut, &|_, _, tile| {
                let mut threads = seen.lock().unwrap();
                threads.insert(std::thread::current().id());
                arrived.notify_all();
                // The first tile waits until another thread has come for one.
                let waited = arrived.wait_timeout_while(threads, Duration::from_secs(60), |t| t.len() < 2);
                assert!(!waited.unwrap().1.timed_out(), "a second thread never came");
                tile.push_slice(&[1.0]);
            });
            assert_eq!(filled, Filled::cells(64));
        });
    }
}
