//! The pyramid of sums.

use super::climb::{Climb, Kind};
use super::tuning::Tuning;
use crate::Real;
use crate::buffer::{Output, Start};
use crate::error::Result;
use crate::simd::Level;
use ndarray::{Array3, ArrayView3, ArrayViewMut3};
use std::marker::PhantomData;

/// Every coarser level of an array: the sum of each window of 2 x 2 x 2, and of those again, up to the sum of all.
///
/// With the children `c[dx dy dz]` of a window, the sum is
/// `((c000 + c001) + (c010 + c011)) + ((c100 + c101) + (c110 + c111))`, in this order. Children beyond the edge do not exist and are
/// left out: a sum of one is that one. Level k has `ceil(n / 2^k)` cells on an axis.
///
/// Results are the same bits at every level of instructions and for every number of threads.
///
/// # Gradients
///
/// The adjoint takes cotangents of any levels. From the highest down, `G[k] = cotangent[k] + G[k + 1] of its window`.
///
/// # Examples
///
/// ```
/// use pullback::mipmap::SumPyramid;
/// use pullback::ndarray::{Array3, array};
///
/// let pyramid = SumPyramid::<f32>::new([1, 2, 3])?;
/// let levels = pyramid.forward(array![[[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]].view())?;
/// assert_eq!(levels, [array![[[12.0, 9.0]]], array![[[21.0]]]]);
///
/// let grads = array![[[10.0, 20.0]]];
/// let grad_x = pyramid.adjoint(&[None, Some(grads.view())])?;
/// assert_eq!(grad_x, array![[[10.0, 10.0, 20.0], [10.0, 10.0, 20.0]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SumPyramid<T> {
    climb: Climb,
    element: PhantomData<T>,
}

impl<T: Real> SumPyramid<T> {
    /// A pyramid of every level of arrays of `shape`, which is not 0 on any axis. O(1).
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) where an axis has length 0; [`Error::TooLarge`](crate::Error::TooLarge), and [`Error::Environment`](crate::Error::Environment) from
    /// [`Level::current`].
    pub fn new(shape: [usize; 3]) -> Result<Self> {
        Ok(Self { climb: Climb::new(shape)?, element: PhantomData })
    }

    /// The same pyramid of levels 0 to before `levels`.
    ///
    /// # Errors
    ///
    /// [`Error::Parameter`](crate::Error::Parameter) or [`Error::TooLarge`](crate::Error::TooLarge) where there is no level or there are more than
    /// [`full_levels`](super::full_levels).
    pub fn with_levels(self, levels: usize) -> Result<Self> {
        Ok(Self { climb: self.climb.with_levels(levels)?, ..self })
    }

    /// The level of instructions that the kernels run at.
    #[must_use]
    pub fn simd_level(&self) -> Level {
        self.climb.level
    }

    /// The same pyramid at another level of instructions.
    ///
    /// # Errors
    ///
    /// [`Error::LevelUnavailable`](crate::Error::LevelUnavailable) where the CPU lacks the level.
    pub fn with_level(mut self, level: Level) -> Result<Self> {
        self.climb.level = level.checked()?;
        Ok(self)
    }

    /// The same pyramid with choices made by the caller instead of by size.
    #[doc(hidden)]
    #[must_use]
    pub fn with_tuning(mut self, tuning: Tuning) -> Self {
        self.climb.tuning = tuning;
        self
    }

    /// The shape of level 0.
    #[must_use]
    pub fn shape(&self) -> [usize; 3] {
        self.climb.shape
    }

    /// The number of levels, level 0 included.
    #[must_use]
    pub fn levels(&self) -> usize {
        self.climb.levels
    }

    /// The shape of level `k`: `ceil(n / 2^k)` an axis.
    #[must_use]
    pub fn level_shape(&self, k: usize) -> [usize; 3] {
        self.climb.level_shape(k)
    }

    /// Levels 1 and up of `x`, `levels[i]` being level i + 1: new arrays. O(X Y Z).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) where `x` has another shape; [`Error::Allocation`](crate::Error::Allocation).
    pub fn forward(&self, x: ArrayView3<'_, T>) -> Result<Vec<Array3<T>>> {
        self.climb.check_x(&x)?;
        let mut levels = self.climb.arrays()?;
        self.climb.forward(&x, &mut levels, Kind::Sum)?;
        Ok(levels)
    }

    /// [`SumPyramid::forward`] into the caller's arrays, one for each of levels 1 and up, which are overwritten.
    ///
    /// # Errors
    ///
    /// As [`SumPyramid::forward`], and [`Error::Shape`](crate::Error::Shape) for `levels`; nothing is written then.
    pub fn forward_into(&self, x: ArrayView3<'_, T>, levels: &mut [Array3<T>]) -> Result<()> {
        self.climb.check_x(&x)?;
        self.climb.check_arrays("levels", levels)?;
        self.climb.forward(&x, levels, Kind::Sum)
    }

    /// The gradient of `x` for `cotangents[k]` of each level `k`, level 0 included, `None` where there is none: a new array.
    /// O(X Y Z).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`](crate::Error::Shape) where there are more cotangents than levels, or for an array of another shape; [`Error::Allocation`](crate::Error::Allocation).
    pub fn adjoint(&self, cotangents: &[Option<ArrayView3<'_, T>>]) -> Result<Array3<T>> {
        let cotangents = self.climb.cotangents(cotangents, false)?;
        self.climb.gradient(|out| self.climb.descend(&cotangents, None, out))
    }

    /// [`SumPyramid::adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`SumPyramid::adjoint`], and [`Error::Shape`](crate::Error::Shape) for `grad_x`; nothing is written then.
    pub fn adjoint_into(&self, cotangents: &[Option<ArrayView3<'_, T>>], grad_x: ArrayViewMut3<'_, T>) -> Result<()> {
        self.climb.check_gradient(&grad_x)?;
        let cotangents = self.climb.cotangents(cotangents, false)?;
        let _ = self.climb.descend(&cotangents, None, Output::array(grad_x, Start::Zero))?;
        Ok(())
    }
}
