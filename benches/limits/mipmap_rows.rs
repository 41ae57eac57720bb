//! The layout that pyramids do not have: a bit a cell in rows along the last axis, at every level.

use rayon::prelude::*;

/// Every level, the finest first.
pub struct RowBits {
    levels: Vec<Vec<u64>>,
    shape: [usize; 3],
}

impl RowBits {
    /// From rows that start on words.
    pub fn new(rows: &[u64], mut shape: [usize; 3]) -> Self {
        let mut bits = Self { levels: vec![rows.to_vec()], shape };
        while shape != [1; 3] {
            let below = bits.levels.last().expect("level 0");
            let next = halved(below, shape);
            shape = shape.map(|n| n.div_ceil(2));
            bits.levels.push(next);
        }
        bits
    }

    /// Whether a cell of level 0 is occupied.
    pub fn get(&self, [x, y, z]: [usize; 3]) -> bool {
        let row = (x * self.shape[1] + y) * self.shape[2].div_ceil(64);
        self.levels[0][row + z / 64] >> (z % 64) & 1 != 0
    }
}

/// The level above: four rows become one, and two bits of it one.
fn halved(rows: &[u64], shape: [usize; 3]) -> Vec<u64> {
    let [_, height, width] = shape.map(|n| n.div_ceil(2));
    let (words, below) = (width.div_ceil(64), shape[2].div_ceil(64));
    let mut halved = vec![0; shape[0].div_ceil(2) * height * words];
    halved.par_chunks_mut(height * words).enumerate().for_each(|(x, plane)| {
        for (y, out) in plane.chunks_exact_mut(words).enumerate() {
            for (word, out) in out.iter_mut().enumerate() {
                let mut two = [0; 2];
                for x in 2 * x..shape[0].min(2 * x + 2) {
                    for y in 2 * y..shape[1].min(2 * y + 2) {
                        let row = &rows[(x * shape[1] + y) * below..][..below];
                        two[0] |= row[2 * word];
                        two[1] |= row.get(2 * word + 1).copied().unwrap_or(0);
                    }
                }
                *out = every_second(two[0] | two[0] >> 1) | every_second(two[1] | two[1] >> 1) << 32;
            }
        }
    });
    halved
}

/// Bits 0, 2, 4 and so on, side by side.
fn every_second(x: u64) -> u64 {
    let x = x & 0x5555_5555_5555_5555;
    let x = (x | x >> 1) & 0x3333_3333_3333_3333;
    let x = (x | x >> 2) & 0x0f0f_0f0f_0f0f_0f0f;
    let x = (x | x >> 4) & 0x00ff_00ff_00ff_00ff;
    let x = (x | x >> 8) & 0x0000_ffff_0000_ffff;
    (x | x >> 16) & 0xffff_ffff
}
