//! What memory allows: the rates that kernels which move bytes are held against.
#![allow(unsafe_code, reason = "a streaming store takes an address")]

use crate::measure::{Limit, Suite, entry, rounds, summary};
use rayon::prelude::*;

/// Bytes of an array: several times a last-level cache.
const BYTES: usize = 256 << 20;

/// Bytes that one task touches.
const TASK: usize = 1 << 20;

/// A cache line, the unit of every loop here.
type Line = [u64; 8];

/// Arrays of several last-level caches, and the loops over them.
pub struct Memory {
    from: Vec<Line>,
    to: Vec<Line>,
}

impl Memory {
    pub fn new() -> Self {
        let lines = BYTES / size_of::<Line>() + 1;
        let filled = || {
            let mut memory = Vec::with_capacity(lines);
            memory.par_extend((0..lines).into_par_iter().map(|i| [i as u64; 8]));
            memory
        };
        Self { from: filled(), to: filled() }
    }

    fn lines() -> usize {
        TASK / size_of::<Line>()
    }

    pub fn read(&self) {
        let sum = self.from.par_chunks(Self::lines()).map(|lines| {
            let mut sums = [[0u64; 8]; 4];
            for four in lines.chunks_exact(4) {
                for (sum, line) in sums.iter_mut().zip(four) {
                    sum.iter_mut().zip(line).for_each(|(sum, word)| *sum = sum.wrapping_add(*word));
                }
            }
            sums.iter().flatten().fold(0u64, |sum, word| sum.wrapping_add(*word))
        });
        std::hint::black_box(sum.reduce(|| 0, u64::wrapping_add));
    }

    pub fn fill(&mut self) {
        self.to.par_chunks_mut(Self::lines()).for_each(|lines| lines.fill(std::hint::black_box([3; 8])));
    }

    pub fn fill_streaming(&mut self) {
        self.to.par_chunks_mut(Self::lines()).for_each(|lines| {
            let line = std::hint::black_box([3; 8]);
            stream(lines, |_| line);
        });
    }

    pub fn copy(&mut self) {
        let from = self.from.par_chunks(Self::lines());
        self.to.par_chunks_mut(Self::lines()).zip(from).for_each(|(to, from)| to.copy_from_slice(from));
    }

    pub fn copy_streaming(&mut self) {
        let from = self.from.par_chunks(Self::lines());
        self.to.par_chunks_mut(Self::lines()).zip(from).for_each(|(to, from)| stream(to, |i| from[i]));
    }

    /// The time that reading `bytes` takes here.
    pub fn limit_read(&self, bytes: usize) -> Limit<'_> {
        Limit { call: Box::new(|| self.read()), scale: bytes as f64 / BYTES as f64 }
    }

    /// The time that filling `bytes` takes here.
    pub fn limit_fill(&mut self, bytes: usize) -> Limit<'_> {
        Limit { call: Box::new(|| self.fill_streaming()), scale: bytes as f64 / BYTES as f64 }
    }

    /// The time that copying takes here, where `bytes` are read and written in all.
    pub fn limit_copy(&mut self, bytes: usize) -> Limit<'_> {
        Limit { call: Box::new(|| self.copy_streaming()), scale: bytes as f64 / (2 * BYTES) as f64 }
    }
}

/// Reads the row of `x` that each index names and writes a row a group of `group` indices: `C` words, which stay in
/// registers. A lower bound of any reduction of rows by index, since it does as little with a row as can be. Indices and
/// rows of `x` are split evenly between the batches.
pub fn read_rows<const C: usize>(x: &[u32], indices: &[i32], batches: usize, group: usize, out: &mut [u32]) {
    let (per_batch, table) = (indices.len() / batches, x.len() / batches);
    out.par_chunks_mut(C).enumerate().with_min_len(64).for_each(|(row, out)| {
        let first = row * group;
        let table = &x[first / per_batch * table..][..table];
        let indices = &indices[first..][..group];
        #[cfg(target_arch = "x86_64")]
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            // SAFETY: the CPU has the instructions.
            return unsafe { mix_avx512::<C>(table, indices, out) };
        } else if is_x86_feature_detected!("avx2") {
            // SAFETY: the CPU has the instructions.
            return unsafe { mix_avx2::<C>(table, indices, out) };
        }
        mix::<C>(table, indices, out);
    });
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl")]
fn mix_avx512<const C: usize>(table: &[u32], indices: &[i32], out: &mut [u32]) {
    mix::<C>(table, indices, out);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn mix_avx2<const C: usize>(table: &[u32], indices: &[i32], out: &mut [u32]) {
    mix::<C>(table, indices, out);
}

#[inline(always)]
fn mix<const C: usize>(table: &[u32], indices: &[i32], out: &mut [u32]) {
    let mut words = [0; C];
    for &index in indices {
        let row: &[u32; C] = table[index as usize * C..][..C].try_into().expect("C words");
        words.iter_mut().zip(row).for_each(|(word, row)| *word ^= row);
    }
    out.copy_from_slice(&words);
}

/// Allocates `bytes` as an owned output is, on huge pages where the system gives them, and touches every page: the faults
/// that a fresh output cannot avoid.
pub fn fresh_pages(bytes: usize) {
    const PAGE: usize = 4096;
    let mut memory: Vec<u8> = Vec::with_capacity(bytes);
    let cells = memory.spare_capacity_mut();
    #[cfg(target_os = "linux")]
    {
        let skip = cells.as_ptr().align_offset(PAGE);
        // SAFETY: the range lies within the allocation, and the advice changes no contents.
        unsafe {
            libc::madvise(cells.as_mut_ptr().add(skip).cast(), bytes.saturating_sub(skip), libc::MADV_HUGEPAGE);
        }
    }
    cells.par_chunks_mut(TASK).for_each(|task| {
        task.iter_mut().step_by(PAGE).for_each(|cell| {
            cell.write(1);
        });
    });
    std::hint::black_box(&mut memory);
}

/// Writes lines past the caches.
fn stream(lines: &mut [Line], line: impl Fn(usize) -> Line) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
        // Vectors of lines are allocated at multiples of 16 here: `Vec` gives 8, large allocations more.
        assert!(lines.as_ptr().addr().is_multiple_of(16), "large allocations are aligned to 16 bytes");
        for (i, to) in lines.iter_mut().enumerate() {
            let line = line(i);
            let (from, to) = (line.as_ptr().cast::<__m128i>(), to.as_mut_ptr().cast::<__m128i>());
            for part in 0..4 {
                // SAFETY: SSE2 is part of x86-64; both lines hold four parts; the store's address was checked.
                unsafe { _mm_stream_si128(to.add(part), _mm_loadu_si128(from.add(part))) };
            }
        }
        // SAFETY: SSE is part of x86-64.
        unsafe { _mm_sfence() };
    }
    #[cfg(not(target_arch = "x86_64"))]
    lines.iter_mut().enumerate().for_each(|(i, to)| *to = line(i));
}

/// Prints the rates.
pub fn report(suite: &Suite) {
    if !suite.wants("memory") {
        return;
    }
    let memory = std::cell::RefCell::new(Memory::new());
    let mut entries = [
        entry("read", || memory.borrow().read()),
        entry("fill", || memory.borrow_mut().fill()),
        entry("streaming-fill", || memory.borrow_mut().fill_streaming()),
        entry("copy", || memory.borrow_mut().copy()),
        entry("streaming-copy", || memory.borrow_mut().copy_streaming()),
    ];
    for (entry, times) in rounds(suite, &mut entries).into_iter().enumerate() {
        let name = entries[entry].name;
        let bytes = if name.ends_with("copy") { 2 * BYTES } else { BYTES };
        let (median, best, worst) = summary(times);
        let rate = |ms: f64| bytes as f64 / ms / 1e6;
        println!(
            "memory/{name:30} {median:9.3} ms  {:6.1} GB/s ({:.1} to {:.1})",
            rate(median),
            rate(worst),
            rate(best)
        );
        println!("MEMORY job={name} ms={median:.4} gb_per_s={:.2}", rate(median));
        suite.figure(format!("memory/{name}"), "gigabytes a second", rate(median));
    }
}
