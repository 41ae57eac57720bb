//! Nearest neighbours by a k-d tree, exactly as brute force finds them.
//!
//! | call | result |
//! |---|---|
//! | [`KdTreeDyn::knn`] | the k nearest points of each query |
//! | [`KdTreeDyn::knn_self`] | the k nearest other points of each point |
//! | [`KdTreeDyn::radius`] | all points within a radius of each query |
//! | [`KdTreeDyn::radius_count`] | how many they are |
//! | [`KdTreeDyn::pairs_within`] | all pairs of points within a radius of each other |
//! | [`KdTreeDyn::search`] | the same in another [`Metric`], within a bound, squared, or by distance |
//! | [`KdTreeDyn::save`], [`KdTreeDyn::load`] | a tree in a file; `map`, of the feature `mmap`, searches it there |
//!
//! [`KdTree`] is the same tree with its number of dimensions in its type. [`Builder`] takes a periodic box.
//!
//! # Why it is fast
//!
//! The tree is a handful of flat arrays, built in place: leaves of 32 points, axis by axis, so that a whole vector of
//! points is compared with a query at once. Queries are searched in spatial order, whatever order they come in, and
//! where they are about as dense as the points, a whole vector of queries shares one traversal.
//!
//! # How it is laid out
//!
//! `arena` is the tree as flat arrays, `build` fills it by `partition`; `metric` and `periodic` are the geometry, as types
//! of kernels, `bound` turns distances into keys. `queries` brings queries in the order that `order` finds, `walk` searches
//! for one, `packet` for a vector of them, `best` keeps one's neighbours; `knn` and `radius` (with `rank`) choose and write
//! answers where they belong. `file` is the format of saved trees, which `save` writes and `load` reads or maps, once
//! `verify` has found nothing wrong. `kernels` compiles what runs at a level, `calls` all the rest; `builder`, `tree`,
//! `search`, `saved`, `per_query` and `neighbors` are the public face.

mod arena;
mod best;
mod bound;
mod build;
mod builder;
mod calls;
mod file;
mod finite;
mod kernels;
mod knn;
mod load;
mod metric;
mod neighbors;
mod order;
mod packet;
mod partition;
mod per_query;
mod periodic;
mod queries;
mod radius;
mod rank;
mod save;
mod saved;
mod search;
mod tree;
mod verify;
mod walk;

pub use builder::Builder;
pub(crate) use calls::Calls;
pub use metric::Metric;
pub use neighbors::{Neighbors, RadiusNeighbors};
pub use per_query::PerQuery;
pub use search::Search;
#[doc(hidden)]
pub use search::Tuning;
pub use tree::{KdTree, KdTreeDyn};
