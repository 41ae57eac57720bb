//! Occupancy grids of a bit a cell with every coarser level, rays and boxes through them; pyramids of numbers.
//!
//! | type | what it is |
//! |---|---|
//! | [`Occupancy`] | a grid: from a threshold, integers, packed rows or points |
//! | [`Pyramid`] | a grid and its coarser levels: boxes, changes, set operations, neighbours, rays |
//! | [`PyramidBuilder`] | a pyramid from slabs, or at a chosen level of instructions |
//! | [`LevelView`] | one level, to look at and to export |
//! | [`MaxPyramid`], [`MeanPyramid`], [`SumPyramid`] | every coarser level of an array of numbers, and the gradient of the finest |
//!
//! All results are the same bits at every level of instructions and for every number of threads: those of the loops that the
//! documentation describes.
//!
//! # Why it is fast
//!
//! A word holds a brick of 4 x 4 x 4 voxels, and bricks lie in row-major order. One bit a brick, whether its word is not 0, is a
//! grid again, which is level 2 and is stored in the same way, and so on up to a single word: a tree with 64 children a node. Level
//! 1 is the eight 2 x 2 x 2 blocks of each word, and is not stored. Levels above the finest one thus cost a 63rd of a bit a voxel, a
//! word read answers for three levels, and what is not occupied above is never read below.
//!
//! The other layout is a row of bits for every row of cells, at every level. To make all levels of a grid of 512^3 from packed rows
//! takes it as long or a little longer, though bricks have to be cut from such rows first: levels in between are not stored here. A
//! walk from cell to cell costs the same in both; but a word of a row says nothing of what lies beside the row. Both are in
//! `cargo bench --bench limits -- mipmap/build-rows mipmap/rays`. Rows are what is exchanged.
//!
//! Where an axis is shorter than 4 such bricks would be mostly empty. There a word has other exponents, 1 x 8 x 8 for a map or 64
//! voxels of a line: those that need the fewest words. The tree stays what it is; levels that fall between its grids are looked up
//! as boxes.
//!
//! # How it is laid out
//!
//! `bricks` knows what a word holds. Arrays come in as a `source`, which packs rows of bits in `pack` and `nonzero`; `cut` makes
//! bricks of rows, and the words of a grid are the source of the grid above it. `occupancy`, `pyramid`, `builder` and `level_view` are
//! what users see; `query`, `update` and `morphology` are methods of a pyramid. `ray` is the geometry of the walk over cells, `march`
//! skips what is empty, `flight` takes eight rays at once, `cast` has the operators. `saved` is the format of files.
//!
//! Pyramids of numbers are `maxima` and `linear`; `climb` takes planes up and down the levels, and `windows` has the inner
//! loops.

mod bricks;
mod builder;
mod cast;
mod climb;
mod cut;
#[cfg(test)]
mod dense;
mod flight;
mod level_view;
mod linear;
mod march;
mod maxima;
mod morphology;
mod nonzero;
#[cfg(test)]
mod numbers;
mod occupancy;
mod pack;
mod pyramid;
mod query;
mod ray;
mod saved;
mod source;
mod tuning;
mod update;
mod windows;

pub use builder::PyramidBuilder;
pub use cast::{Cells, Hits, Interval, Intervals, Visit};
pub use level_view::{LevelView, Value};
pub use linear::{MeanPyramid, SumPyramid};
pub use maxima::{MaxLevels, MaxPyramid};
pub use morphology::Connectivity;
pub use nonzero::Voxel;
pub use occupancy::Occupancy;
pub(crate) use pack::Kernels;
pub use pyramid::{Mapping, Pyramid, full_levels};
#[doc(hidden)]
pub use tuning::Tuning;
