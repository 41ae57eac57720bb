//! Anisotropic Gaussian kernels, a different one at every pixel, and the gradients of what describes them.
//!
//! | operator | forward | adjoint |
//! |---|---|---|
//! | [`Blur`] | an image, and what describes a kernel for every pixel of the result -> the blurred image | to the image, and to what describes the kernels |
//! | [`Scatter`] | the transpose of a blur: pixels, each spread by a kernel of its own -> an image | to the pixels, and to what describes the kernels |
//! | [`KernelMaps`] | what describes kernels -> the kernels (..., kh, kw), each with the sum 1 | to what describes them, and to offsets |
//!
//! # Conventions
//!
//! Positions are `z = (x, y)` in samples, `x` to the right along columns and `y` down along rows; a kernel is indexed
//! `[row, column]`. Where the middle of a kernel lies is a [`Centre`]; what its numbers mean is one of [`Parameters`].
//!
//! # Why it is fast
//!
//! Kernels are the largest array of what they are used for: the adjoint reads the gradient of them once and computes the
//! kernels again, which costs less than to read them. `exp` is `exp2` with its constant in the numbers of the kernel, computed
//! for a vector at a time; where a grid is its own mirror image, half of the exponentials serve for both halves. Large
//! outputs are written past the caches.
//!
//! A blur needs no kernels in memory at all. There a vector is a row of neighbouring pixels, each with its own kernel, and a loop
//! over the samples of the window computes their weights in registers and uses them at once, once for two opposite samples
//! where they are equal. The transpose is computed by the pixels that are added up, not by those that are spread: no two threads
//! write to one place.
//!
//! # How it is laid out
//!
//! `grid` knows where the samples are, `shape` checks what describes kernels and `pull` takes gradients back to it, with the
//! products that must not be rounded in `exact`. `form` chooses how a kernel is computed. The inner loops are in `kernels` and
//! `moments`, and in `narrow` for kernels that are nearly a single sample. The operator is `maps` and `maps_adjoint`.
//!
//! `blur` and `scatter` are thin: what they share is `operator`, their public face, and `per_pixel`, which copies arrays into
//! `planes` by the rule of a `border`, runs the inner loops of `blur_kernels` over a `window` of such planes, and copies results
//! out. The few kernels that lanes of neighbours cannot compute are computed one at a time, as `maps` does.

mod blur;
mod blur_kernels;
mod border;
mod exact;
mod form;
mod grid;
mod kernels;
mod maps;
mod maps_adjoint;
mod moments;
mod narrow;
mod operator;
mod per_pixel;
mod planes;
mod pull;
mod scatter;
mod shape;
mod window;

pub use blur::{Blur, BlurGradients};
pub use border::Border;
#[doc(hidden)]
pub use form::Path;
pub use grid::Centre;
pub(crate) use kernels::Kernels;
pub use maps::KernelMaps;
#[doc(hidden)]
pub use maps::Tuning;
pub use maps_adjoint::KernelMapsGradients;
pub use planes::Layout;
pub use scatter::Scatter;
pub use shape::Parameters;
