//! An allocator that counts, for tests of how much memory something takes. Such a test is a crate with one test, and names it as its
//! allocator.

#![allow(unsafe_code, reason = "an allocator that counts is one")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// Bytes in use, and the most there were since [`peak_of`] began.
static USED: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
/// How often memory was asked for.
static CALLS: AtomicUsize = AtomicUsize::new(0);

pub struct Counting;

// SAFETY: every call is passed on to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.fetch_add(1, SeqCst);
        PEAK.fetch_max(USED.fetch_add(layout.size(), SeqCst) + layout.size(), SeqCst);
        // SAFETY: the caller keeps the contract of `alloc`, which is this one.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), SeqCst);
        // SAFETY: `pointer` came from `System.alloc` with this layout, by the caller's contract.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// The result of `work`, and the most bytes in use while it ran beyond those at its beginning.
pub fn peak_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = USED.load(SeqCst);
    PEAK.store(before, SeqCst);
    let result = work();
    (result, PEAK.load(SeqCst) - before)
}

/// The result of `work`, and how often it asked for memory.
pub fn calls_of<R>(work: impl FnOnce() -> R) -> (R, usize) {
    let before = CALLS.load(SeqCst);
    let result = work();
    (result, CALLS.load(SeqCst) - before)
}
