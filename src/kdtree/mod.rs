//! Nearest neighbours by a k-d tree, exactly as brute force finds them.
//!
//! | call | result |
//! |---|---|
//! | [`KdTree::knn`] | the k nearest points of each query |
//! | [`KdTree::knn_self`] | the k nearest other points of each point |
//!
//! # Why it is fast
//!
//! The tree is a handful of flat arrays, built in place: leaves of 32 points, axis by axis, so that a whole vector of
//! points is compared with a query at once. Queries are searched in spatial order, whatever order they come in, and
//! where they are about as dense as the points, a whole vector of queries shares one traversal.
//!
//! # How it is laid out
//!
//! `arena` is the tree as flat arrays, `build` fills it by `partition`; `order` sorts queries, `walk` searches for one,
//! `packet` for a vector of them, `best` keeps one's neighbours; `knn` chooses and writes answers where they belong.
//! `kernels` compiles what runs at a level, `calls` all the rest; `tree` is the public face.

mod arena;
mod best;
mod build;
mod calls;
mod finite;
mod kernels;
mod knn;
mod neighbors;
mod order;
mod packet;
mod partition;
mod tree;
mod walk;

pub(crate) use calls::Calls;
#[doc(hidden)]
pub use knn::Tuning;
pub use neighbors::Neighbors;
pub use tree::{Builder, KdTree};
