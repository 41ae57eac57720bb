//! Nearest neighbours by a k-d tree, exactly as brute force finds them, and interpolation between them, with gradients.
//!
//! | call | result |
//! |---|---|
//! | [`KdTreeDyn::knn`] | the k nearest points of each query |
//! | [`KdTreeDyn::knn_self`] | the k nearest other points of each point |
//! | [`KdTreeDyn::radius`] | all points within a radius of each query |
//! | [`KdTreeDyn::radius_count`] | how many they are |
//! | [`KdTreeDyn::pairs_within`] | all pairs of points within a radius of each other |
//! | [`KdTreeDyn::search`] | the same in another [`Metric`], within a bound, squared, or by distance |
//! | [`KdTreeDyn::knn_adjoint`], [`KdTreeDyn::knn_self_adjoint`] | gradients of distances to queries and points |
//! | [`Interpolate`] | values at the points interpolated to queries; its adjoint to values, queries and points |
//! | [`KdTreeDyn::save`], [`KdTreeDyn::load`] | a tree in a file; `map`, of the feature `mmap`, searches it there |
//!
//! [`KdTree`] is the same tree with its number of dimensions in its type. [`Builder`] takes a periodic box.
//!
//! # Why it is fast
//!
//! The tree is a handful of flat arrays, built in place: leaves of 32 points, axis by axis, so that a whole vector of
//! points is compared with a query at once. Queries are searched in spatial order, whatever order they come in, and
//! where they are about as dense as the points, a whole vector of queries shares one traversal. An adjoint computes what a
//! pair of a query and a point adds where it is added, at either end, and keeps nothing of D numbers a pair between the two.
//!
//! # How it is laid out
//!
//! `arena` is the tree as flat arrays, `build` fills it by `partition`; `metric` and `periodic` are the geometry, as types
//! of kernels, `bound` turns distances into keys. `queries` brings queries in the order that `order` finds, `walk` searches
//! for one, `packet` for a vector of them, `best` keeps one's neighbours; `knn` and `radius` (with `rank`) choose and write
//! answers where they belong. `gradient` adds gradients of distances at queries and points, which `by_row` finds by row
//! number; `weights` turns distances into weights and back. `file` is the format of saved trees, which `save` writes and
//! `load` reads or maps, once `verify` has found nothing wrong. `kernels` compiles what runs at a level, `calls` all the
//! rest; `builder`, `tree`, `search`, `saved`, `per_query`, `neighbors`, `knn_adjoint`, `interpolate` and `interpolation`
//! are the public face.

mod arena;
mod best;
mod bound;
mod build;
mod builder;
mod by_row;
mod calls;
mod file;
mod finite;
mod gradient;
mod interpolate;
mod interpolation;
mod kernels;
mod knn;
mod knn_adjoint;
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
mod weights;

pub use builder::Builder;
pub(crate) use calls::Calls;
pub use interpolate::Interpolate;
pub use interpolation::{InterpolateGradients, Interpolation};
pub use knn_adjoint::KnnGradients;
pub use metric::Metric;
pub use neighbors::{Neighbors, RadiusNeighbors};
pub use per_query::PerQuery;
pub use search::Search;
#[doc(hidden)]
pub use search::Tuning;
pub use tree::{KdTree, KdTreeDyn};
