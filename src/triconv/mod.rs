//! Triangular convolutions of sequences of matrices: scans, products and correlations, and their gradients.
//!
//! | operator | forward | adjoint |
//! |---|---|---|
//! | [`Scan`] | `A_{k+1} = S_{k+1} + sum over j <= k of w(k, j) A_j B_{k-j}`, from `A_0` | to `A_0`, every S, every B |
//! | [`Product`] | `C_k = sum over j of w(k, j) A_j B_{k-j}` | to A and B |
//! | [`Correlation`] | `D_i = sum over j of w(i + j, j) A_j^T G_{i+j}` | to A and G |
//!
//! It is the rule of Leibniz, for whoever takes many derivatives at once: of a propagator `A' = A B`, of a product of
//! series, of generating functions. What the sequences are, derivatives, Taylor coefficients or plain numbers, is one
//! of [`Weights`].
//!
//! # Why it is fast
//!
//! Only the n (n + 1) / 2 products that exist are computed, and none of them by a call: the sum over j is one long
//! matrix product, whose result stays in registers while one pointer walks A forward and another B backward. A row of
//! the results depends on the same row of earlier ones alone, so threads take rows and never wait for each other,
//! though every result is a factor of the next.
//!
//! Sequences of thousands have a faster method on request, [`Method::Relaxed`]: of Taylor coefficients and plain numbers the
//! sums are convolutions, and what a block of known results gives to a block of later ones goes through real transforms,
//! guarded so that no small number is drowned by a large neighbour.
//!
//! Lanes run along the columns of a matrix where they fill vectors. Smaller matrices have them run along neighbouring
//! outputs, whose sums differ by a shift of B alone, or along the members of a batch. Numbers, matrices of one row and column,
//! have a loop of their own, which loads one vector where it multiplies several.
//!
//! # How it is laid out
//!
//! `weights` are the binomial coefficients; `kernels` the inner loops, over a register block of a result, `window` that over
//! numbers; `sequence` copies right factors to where they are read as vectors, `interleave` batches; `tuning` has the choices
//! by size. `recurrence` runs a scan, forward or backward, with lanes along `columns`, `neighbors` or `members`, or `relaxed` by
//! halving blocks, which `spectra` multiplies; `triangle` runs everything whose factors are all known, by the `pairing` of its
//! terms; `numbers` is what both do with numbers. `scan`, `scan_adjoint`, `product` and `correlation` are the public face, with
//! what they share in `operator`, `shapes` and `faults`.

mod columns;
mod correlation;
mod faults;
mod interleave;
mod kernels;
mod members;
mod method;
mod neighbors;
mod numbers;
mod operator;
mod pairing;
mod product;
mod recurrence;
mod relaxed;
mod scan;
mod scan_adjoint;
mod sequence;
mod shapes;
mod spectra;
mod triangle;
mod tuning;
mod weights;
mod window;

pub use correlation::{Correlation, CorrelationGradients};
pub(crate) use kernels::Kernels;
pub use method::Method;
pub use product::{Product, ProductGradients};
pub use scan::{Scan, Side};
pub use scan_adjoint::ScanGradients;
#[doc(hidden)]
pub use tuning::{Lanes, Tuning};
pub use weights::{Weights, binomial, binomial_row};
