//! Data-parallel numerical kernels for machines without a GPU, each with its hand-written adjoint.
//!
//! An adjoint (pullback, vector-Jacobian product) takes the gradient of a loss with respect to an operator's output and
//! returns the gradient with respect to its inputs, so every operator here can stand inside a gradient computation.
//!
//! | family | forward | adjoint |
//! |---|---|---|
//! | [`gather`] | rows of features at given indices | sums of gradient rows at the rows they came from |
//! | [`gaussian`] | anisotropic Gaussian kernels, each sample by sample; blurs with a kernel a pixel | to what describes kernels, offsets, images |
//! | [`kdtree`] | exact nearest neighbours, within a radius, in periodic boxes; interpolation | to values, queries and points |
//! | [`mipmap`] | occupancy grids of bits with every coarser level, boxes and rays through them; pyramids of numbers | to the finest level |
//! | [`triconv`] | triangular convolutions of sequences of matrices: scans, products, correlations | to every matrix |
//!
//! An operator is a value that holds what is known before the data. It is checked once, reused, and shared between
//! threads:
//!
//! ```
//! use pullback::gather::{Gather, OutOfRange};
//! use pullback::ndarray::{Array3, array};
//!
//! let indices = array![[[0, 1, 1], [3, 3, 2]]]; // (B, P, S): three neighbours of each of two points
//! let gather = Gather::new(indices.view(), 4, OutOfRange::Error)?; // all that can fail early fails here
//! let x = Array3::<f32>::ones((1, 4, 64)); // (B, N, C)
//! let y = gather.forward(x.view())?; // (B, P, S, C)
//! let grad_x = gather.adjoint(y.view())?; // (B, N, C)
//! assert_eq!(grad_x[[0, 3, 0]], 2.0);
//! # Ok::<(), pullback::Error>(())
//! ```
//!
//! # Promises
//!
//! - **The same bits everywhere.** Where a family's documentation says so, results are exactly those of the naive loop
//!   written there, on every instruction set and for every number of threads. A NaN made by arithmetic is only promised
//!   to be a NaN; the default floating-point environment is assumed.
//! - **Bad input is an error, and nothing is written.** Every call returns [`Result`]. A panic is a bug.
//! - **Near the limit of the machine.** `cargo bench --bench limits` prints each kernel's time beside the time that the
//!   machine needs to move the bytes that must move.
//!
//! # Threads and instruction sets
//!
//! Work runs on the rayon pool that the caller is in; small problems stay on the calling thread. Kernels are compiled
//! for three [`Level`]s of instructions, chosen at run time.

mod buffer;
mod element;
mod error;
mod exponent;
mod file;
mod layout;
mod parallel;
mod settings;
mod simd;

pub mod gather;
pub mod gaussian;
pub mod kdtree;
pub mod mipmap;
pub mod triconv;

pub use bitvec;
pub use element::Element;
pub use error::{Error, FileFault, Result};
pub use ndarray;
pub use simd::Level;

/// The floating-point types that operators take: `f32` and `f64`.
///
/// Its supertraits are the families' kernels. They are compiled once, in this crate, so that an unoptimised program that
/// uses them runs them at full speed.
pub trait Real:
    Element + gather::Kernels + gaussian::Kernels + kdtree::Calls + triconv::Kernels + mipmap::Kernels
{
}
impl Real for f32 {}
impl Real for f64 {}

/// The README's program, compiled and run with the documentation's examples.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
