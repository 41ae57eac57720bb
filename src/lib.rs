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
//! An operator is a value that holds what is known before the data: indices, a tree, sizes, weights. It is checked once,
//! reused, and shared between threads:
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
//! # What an adjoint is
//!
//! Let `y = f(x)` and let a number, a loss, depend on `y`. The gradient of the loss with respect to `x` is
//! `grad_x[i] = sum over j of dy[j]/dx[i] * grad_y[j]`: the transposed Jacobian of `f`, applied to the gradient `grad_y` that
//! arrived from behind. That product is the adjoint. The matrix is never made: an adjoint costs about as much as `f`, whatever
//! the number of inputs is. A chain of functions is pulled back by their adjoints in reverse order.
//!
//! | name | what it does |
//! |---|---|
//! | `forward(x)` | returns a new array |
//! | `forward_into(x, y)` | overwrites an array of the caller |
//! | `adjoint(grad_y, ..)` | takes the gradient of the result first, then what `forward` was given, as far as it is needed; returns new arrays |
//! | `adjoint_into(grad_y, .., grad_x)` | overwrites arrays of the caller |
//! | `adjoint_add(grad_y, .., grad_x)` | adds to what is there, as the gradients of one array from several uses add up |
//!
//! A linear operator needs nothing but `grad_y`. Others are differentiated where they were evaluated: pass the same inputs again.
//! Nothing is saved between the two calls that is cheaper to compute again, and what must be saved, which point was nearest and which
//! element was largest, is part of a result. Indices are constants: there is no gradient to a choice.
//!
//! # How to check one
//!
//! A linear operator and its adjoint satisfy `<forward(x), y> = <x, adjoint(y)>` for every `x` and `y`. Of any operator, the gradient
//! along a direction is the quotient of differences of the loss:
//!
//! ```
//! use pullback::gaussian::{Centre, KernelMaps, Parameters};
//! use pullback::ndarray::{Array3, array};
//!
//! let maps = KernelMaps::<f64>::new(5, Centre::Middle)?.with_parameters(Parameters::Sigmas);
//! let target = Array3::from_elem((1, 5, 5), 0.04);
//! let loss = |shapes: &pullback::ndarray::Array2<f64>| -> pullback::Result<f64> {
//!     Ok((maps.forward(shapes.view())? - &target).mapv(|d| d * d / 2.0).sum())
//! };
//! let (shapes, direction) = (array![[1.0, 2.0, 0.3]], array![[0.5, -0.2, 0.1]]); // sx, sy, theta
//! let grad_maps = maps.forward(shapes.view())? - &target;
//! let grad_shapes = maps.adjoint(grad_maps.view(), shapes.view())?;
//!
//! let h = 1e-4;
//! let difference = (loss(&(&shapes + &(&direction * h)))? - loss(&(&shapes - &(&direction * h)))?) / (2.0 * h);
//! assert!((difference - (&grad_shapes * &direction).sum()).abs() < 1e-9);
//! # Ok::<(), pullback::Error>(())
//! ```
//!
//! # In a training loop
//!
//! Make operators before the loop, and arrays that are written to; then a step allocates nothing large:
//!
//! ```
//! use pullback::gather::{Gather, OutOfRange};
//! use pullback::kdtree::KdTree;
//! use pullback::ndarray::{Array2, Array3};
//!
//! // Features (N, C) that should not differ between neighbours, and not from what was measured.
//! let points = Array2::from_shape_fn((60, 2), |(row, axis)| ((row * (7 + 6 * axis)) % 60) as f32);
//! let measured = Array2::from_shape_fn((60, 1), |(row, _)| (row % 3) as f32);
//! let neighbours = KdTree::<f32, 2>::new(points.view())?.knn_self(4)?;
//! let gather = Gather::unbatched(neighbours.indices.view(), 60, OutOfRange::Error)?;
//!
//! let mut features = measured.clone();
//! let (mut near, mut grad) = (Array3::zeros((60, 4, 1)), Array2::zeros((60, 1)));
//! let mut losses = vec![];
//! for _ in 0..20 {
//!     gather.forward_into(features.view(), near.view_mut())?;
//!     near -= &features.view().insert_axis(pullback::ndarray::Axis(1)); // differences (N, K, C)
//!     let kept = &features - &measured;
//!     losses.push(near.mapv(|d| d * d).sum() / 2.0 + kept.mapv(|d| d * d).sum() / 2.0);
//!     grad.assign(&(kept - near.sum_axis(pullback::ndarray::Axis(1)))); // through the points themselves
//!     gather.adjoint_add(near.view(), grad.view_mut())?; // and through their neighbours
//!     features.scaled_add(-0.05, &grad);
//! }
//! assert!(losses.windows(2).all(|pair| pair[1] < pair[0]));
//! # Ok::<(), pullback::Error>(())
//! ```
//!
//! # Promises
//!
//! - **The same bits everywhere.** Results of [`gather`], [`mipmap`] and the searches of [`kdtree`] are exactly those of the naive loop
//!   in their documentation, on every instruction set and for every number of threads. Those of [`gaussian`], [`triconv`] and of
//!   interpolation are the same bits for every number of threads, the same from [`Level::V3`] up, and within a stated error. A NaN made
//!   by arithmetic is only promised to be a NaN; the default floating-point environment is assumed.
//! - **Bad input is an error, and nothing is written.** Every call returns [`Result`], and looks at every shape, index and parameter
//!   before the first byte is written. Of several bad inputs the first is named. A panic is a bug.
//! - **Near the limit of the machine.** `cargo bench --bench limits` prints each kernel's time beside the time that the
//!   machine needs to move the bytes that must move, or for the arithmetic that must be done.
//!
//! # Threads, instruction sets, memory
//!
//! Work runs on the rayon pool that the caller is in, `ThreadPool::install` included; small problems stay on the calling thread. What a
//! task does depends on the problem's size, never on the number of threads. Operators are `Send + Sync`: any number of threads may use
//! one at once, the first time too.
//!
//! Kernels are compiled for three [`Level`]s of instructions and the highest that the CPU has is taken. `PULLBACK_SIMD=base|v3|v4`
//! lowers it for a program, `with_level` sets it for an operator.
//!
//! Arrays are views of [`ndarray`] with any strides; those in row-major order are not copied. New arrays are neither zeroed nor touched
//! before they are written. Scratch is of the order of indices or points, and what cannot be allocated is an [`Error`].

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
