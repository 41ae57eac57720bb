//! What the k-d tree allocates beside the caller's points and the answers, as a multiple of the points' bytes: tree and
//! scratch of a build and of `knn_self`, k = 5, on 14 million points in three dimensions.

#![allow(clippy::print_stdout, reason = "printing is what this program is for")]
#![allow(unsafe_code, reason = "an allocator that counts")]

#[allow(dead_code, reason = "every benchmark uses a part of it")]
mod random;

use pullback::kdtree::KdTree;
use pullback::ndarray::Array2;
use random::Random;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with the bytes in use and the most that were.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is the system's allocator's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(USED.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() {
    const K: usize = 5;
    let quick = std::env::args().any(|word| word == "--quick");
    let n = if quick { 200_000 } else { 14_000_000 };
    let mut random = Random::new(3);
    let points = Array2::<f32>::from_shape_simple_fn((n, 3), || random.unit());
    let bytes = (n * 3 * size_of::<f32>()) as f64;
    let before = USED.load(Relaxed);
    MOST.store(before, Relaxed);
    let tree = KdTree::<f32, 3>::new(points.view()).expect("finite points");
    let built = MOST.load(Relaxed) - before;
    let kept = USED.load(Relaxed) - before;
    let found = tree.knn_self(K).expect("memory for the answers");
    let answers = found.indices.len() * (size_of::<f32>() + size_of::<u32>());
    let searched = MOST.load(Relaxed) - before - answers;
    let times = |allocated: usize| allocated as f64 / bytes;
    println!(
        "MEMORY job=kdtree/knn-self/{n}x3/f32 build={:.3} tree={:.3} search={:.3} of the points' bytes",
        times(built),
        times(kept),
        times(searched)
    );
}
