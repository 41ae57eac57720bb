//! Rows of features at given indices, and the transpose: gradients summed at the rows they came from.
//!
//! | operator | forward | adjoint |
//! |---|---|---|
//! | [`Gather`] | `y[b, .., :] = x[b, indices[b, ..], :]` | `gx[b, n, :]` = sum of `gy[b, .., :]` where the index is `n` |
//! | [`Weighted`] | `y[b, p, :]` = sum of `w[b, p, s] x[b, indices[b, p, s], :]` | to `x` as above, to `w` the dot products |
//! | [`Pooled`] | sum, mean, max or min over s of `x[b, indices[b, p, s], :]` | to the rows that were added or chosen |
//! | [`Segments`] | sum, mean, product, max, min, softmax, log-sum-exp of rows by segment | to the rows |
//!
//! # Why it is fast
//!
//! The adjoint of a gather is a scatter with collisions, which other libraries run as atomic additions, on one thread, or
//! after a sort on every call. Here every row of the gradient has one owner that reads what belongs to it, in ascending
//! order: nothing is locked, nothing is zeroed and then written again, and the result is that of the naive loop, bit for
//! bit, for every number of threads. An operator checks its indices once; what the adjoint needs to know of them is
//! built on first need and kept.
//!
//! # How it is laid out
//!
//! `plan` checks indices, `groups` knows which belong together, `inverse` turns them round. The inner loops over rows are
//! in `kernels` (copy, add, multiply), `terms` (fold in registers), `pull` (two gradients at once), `choices` (max and min),
//! `maps` (element by element) and `scalars`. `reduce` holds the sums at rows that every adjoint needs, `choose` the choice
//! that pooling and segments share. The operators are `rows` and `compact`, `weighted` and `weighted_adjoint`, `pool` and
//! `pool_extremes`, `segment` with `segment_extremes` and `segment_exp`.

mod choices;
mod choose;
mod compact;
mod groups;
mod inverse;
mod kernels;
mod maps;
mod plan;
mod pool;
mod pool_extremes;
mod pull;
mod reduce;
mod rows;
mod scalars;
mod segment;
mod segment_exp;
mod segment_extremes;
mod terms;
mod weighted;
mod weighted_adjoint;

pub use choices::Extremum;
pub use choose::{Extremes, Ties};
pub use compact::CompactGradient;
pub(crate) use kernels::Kernels;
pub use plan::{Index, OutOfRange};
#[doc(hidden)]
pub use plan::{Reduction, Tuning};
pub use pool::{Linear, Pooled};
pub use rows::{Gather, index_points, index_points_adjoint};
pub use segment::Segments;
pub use weighted::Weighted;
pub use weighted_adjoint::WeightedGradients;
