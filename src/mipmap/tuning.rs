//! Choices that are made by size, for tests that make them otherwise.

/// Choices that change no bit.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tuning {
    /// Several threads.
    pub parallel: Option<bool>,
    /// Levels of numbers while their children are in cache.
    pub fused: Option<bool>,
    /// Gradients past the caches.
    pub stream: Option<bool>,
    /// Words of packed rows that a task works on, at least 1.
    pub task: Option<usize>,
}
