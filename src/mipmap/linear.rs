//! The pyramids of sums and of means, which are linear.

use super::climb::{Climb, Kind, levels, views_mut};
use super::tuning::Tuning;
use crate::Real;
use crate::buffer::{Output, Start};
use crate::error::Result;
use ndarray::{Array3, ArrayBase, ArrayView3, ArrayViewMut3, DataMut, Ix3};
use std::marker::PhantomData;

/// Every coarser level of an array: the sum of each window of 2 x 2 x 2, and of those again, up to the sum of all.
///
/// With the children `c[dx dy dz]` of a window, the sum is `((c000 + c001) + (c010 + c011)) + ((c100 + c101) + (c110 +
/// c111))`, in this order. Children beyond the edge do not exist and are left out: a sum of one is that one. Level k
/// has `ceil(n / 2^k)` cells on an axis.
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

/// Every coarser level of an array: the mean of the voxels below each cell.
///
/// A cell of level k is the sum of its voxels, as a [`SumPyramid`] adds them up, divided by their
/// number: those that exist, so that a mean of ones is one at the edge, too, and every voxel has the same weight. Level
/// k has `ceil(n / 2^k)` cells on an axis.
///
/// Results are the same bits at every level of instructions and for every number of threads.
///
/// # Gradients
///
/// The adjoint takes cotangents of any levels. From the highest down,
/// `G[k] = cotangent[k] / number of voxels + G[k + 1] of its window`.
///
/// # Examples
///
/// ```
/// use pullback::mipmap::MeanPyramid;
/// use pullback::ndarray::{Array3, array};
///
/// let pyramid = MeanPyramid::<f32>::new([1, 1, 3])?;
/// let levels = pyramid.forward(array![[[1.0, 2.0, 6.0]]].view())?;
/// assert_eq!(levels, [array![[[1.5, 6.0]]], array![[[3.0]]]]);
///
/// let grads = array![[[1.0, 1.0]]];
/// let grad_x = pyramid.adjoint(&[None, Some(grads.view())])?;
/// assert_eq!(grad_x, array![[[0.5, 0.5, 1.0]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MeanPyramid<T> {
    climb: Climb,
    element: PhantomData<T>,
}

/// What a pyramid does that takes sums up, of one [`Kind`] or the other, and their cotangents down.
macro_rules! linear {
    ($pyramid:ident, $kind:ident) => {
        impl<T: Real> $pyramid<T> {
            /// Levels 1 and up of `x`, `levels[i]` being level i + 1: new arrays. O(X Y Z).
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) where `x` has another shape;
            /// [`Error::Allocation`](crate::Error::Allocation).
            pub fn forward(&self, x: ArrayView3<'_, T>) -> Result<Vec<Array3<T>>> {
                self.climb.check_x(&x)?;
                let mut levels = self.climb.arrays()?;
                self.climb.forward(&x, views_mut(&mut levels), Kind::$kind)?;
                Ok(levels)
            }

            /// [`Self::forward`] into the caller's arrays or views, one for each of levels 1 and up, which are overwritten.
            ///
            /// # Errors
            ///
            /// As [`Self::forward`], and [`Error::Shape`](crate::Error::Shape) for `levels`; nothing is written then.
            pub fn forward_into(
                &self,
                x: ArrayView3<'_, T>,
                levels: &mut [ArrayBase<impl DataMut<Elem = T>, Ix3>],
            ) -> Result<()> {
                self.climb.check_x(&x)?;
                self.climb.check_arrays("levels", levels)?;
                self.climb.forward(&x, views_mut(levels), Kind::$kind)
            }

            /// The gradient of `x` for `cotangents[k]` of each level `k`, level 0 included, `None` where there is none:
            /// a new array. O(X Y Z).
            ///
            /// # Errors
            ///
            /// [`Error::Shape`](crate::Error::Shape) where there are more cotangents than levels, or for an array of
            /// another shape; [`Error::Allocation`](crate::Error::Allocation).
            pub fn adjoint(&self, cotangents: &[Option<ArrayView3<'_, T>>]) -> Result<Array3<T>> {
                let cotangents = self.climb.cotangents(cotangents, matches!(Kind::$kind, Kind::Mean))?;
                self.climb.gradient(|out| self.climb.descend(&cotangents, None, out))
            }

            /// [`Self::adjoint`] into the caller's array, which is overwritten.
            ///
            /// # Errors
            ///
            /// As [`Self::adjoint`], and [`Error::Shape`](crate::Error::Shape) for `grad_x`; nothing is written then.
            pub fn adjoint_into(
                &self,
                cotangents: &[Option<ArrayView3<'_, T>>],
                grad_x: ArrayViewMut3<'_, T>,
            ) -> Result<()> {
                self.adjoint_from(cotangents, grad_x, Start::Zero)
            }

            /// [`Self::adjoint`] added to the caller's array.
            ///
            /// # Errors
            ///
            /// As [`Self::adjoint_into`].
            pub fn adjoint_add(
                &self,
                cotangents: &[Option<ArrayView3<'_, T>>],
                grad_x: ArrayViewMut3<'_, T>,
            ) -> Result<()> {
                self.adjoint_from(cotangents, grad_x, Start::Values)
            }

            fn adjoint_from(
                &self,
                cotangents: &[Option<ArrayView3<'_, T>>],
                grad_x: ArrayViewMut3<'_, T>,
                start: Start,
            ) -> Result<()> {
                self.climb.check_gradient(&grad_x)?;
                let cotangents = self.climb.cotangents(cotangents, matches!(Kind::$kind, Kind::Mean))?;
                let _ = self.climb.descend(&cotangents, None, Output::array(grad_x, start))?;
                Ok(())
            }
        }
    };
}

levels!(SumPyramid);
levels!(MeanPyramid);
linear!(SumPyramid, Sum);
linear!(MeanPyramid, Mean);
