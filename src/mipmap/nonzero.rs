//! Integers and booleans as voxels: occupied where they are not 0.

use crate::simd::{Level, Simd, at};

mod sealed {
    pub trait Sealed {}
}

/// What a voxel can be read from, beside numbers that are compared with a threshold: `bool` and the integers of 8 to 64 bits.
/// Those that are not 0 (false) are occupied.
pub trait Voxel: sealed::Sealed + Copy + Send + Sync {
    /// See [`Kernels::pack_nonzero`].
    #[doc(hidden)]
    fn pack(level: Level, rows: &[Self], width: usize, out: &mut [u64]);
}

/// The kernels that compare with 0, compiled here once for each size of integers.
pub trait Kernels: Sized {
    /// Whether each number of each row of `width` is not 0, into as many words a row as it needs.
    fn pack_nonzero(level: Level, rows: &[Self], width: usize, out: &mut [u64]);
}

/// An unsigned integer.
trait Word: Copy {
    /// A bit each, the first lowest: whether the number is not 0.
    fn bits<S: Simd>(s: S, words: &[Self; 64]) -> u64;
}

impl Word for u8 {
    #[inline(always)]
    fn bits<S: Simd>(s: S, words: &[Self; 64]) -> u64 {
        s.nonzero(words)
    }
}

impl Word for u64 {
    #[inline(always)]
    fn bits<S: Simd>(s: S, words: &[Self; 64]) -> u64 {
        s.nonzero_words(words)
    }
}

macro_rules! words {
    ($($t:ty),*) => { $(impl Word for $t {
        #[inline(always)]
        fn bits<S: Simd>(s: S, words: &[Self; 64]) -> u64 {
            let mut bytes = [0; 64];
            let mut at = 0;
            while at < 64 {
                bytes[at] = u8::from(words[at] != 0);
                at += 1;
            }
            s.nonzero(&bytes)
        }
    })* };
}
words!(u16, u32);

macro_rules! kernels {
    ($($t:ty: $($voxel:ty),*;)*) => { $(
        impl Kernels for $t {
            fn pack_nonzero(level: Level, rows: &[$t], width: usize, out: &mut [u64]) {
                at!(level, |s| nonzero(s, rows, width, out));
            }
        }
        $(
            impl sealed::Sealed for $voxel {}
            impl Voxel for $voxel {
                fn pack(level: Level, rows: &[Self], width: usize, out: &mut [u64]) {
                    <$t>::pack_nonzero(level, bytemuck::cast_slice(rows), width, out);
                }
            }
        )*
    )* };
}
kernels!(u8: u8, i8, bool; u16: u16, i16; u32: u32, i32; u64: u64, i64;);

#[inline(always)]
fn nonzero<W: Word + Default, S: Simd>(s: S, rows: &[W], width: usize, out: &mut [u64]) {
    // Rows of whole words are one row.
    let (width, words) = if width.is_multiple_of(64) { (rows.len(), out.len()) } else { (width, width.div_ceil(64)) };
    for (row, out) in rows.chunks_exact(width).zip(out.chunks_exact_mut(words)) {
        let mut cells = row.chunks_exact(64);
        let mut out = out.iter_mut();
        for (cells, out) in cells.by_ref().zip(out.by_ref()) {
            *out = W::bits(s, cells.try_into().expect("64 cells"));
        }
        if let Some(out) = out.next() {
            let mut tail = [W::default(); 64];
            tail[..cells.remainder().len()].copy_from_slice(cells.remainder());
            *out = W::bits(s, &tail);
        }
    }
}
