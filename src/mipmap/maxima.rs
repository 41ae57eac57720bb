//! The pyramid of maxima.

use super::climb::{Climb, Kind, levels, views_mut};
use super::tuning::Tuning;
use crate::Real;
use crate::buffer::{Output, Start};
use crate::error::{Error, Result};
use crate::layout::dense;
use ndarray::{Array3, ArrayBase, ArrayView3, ArrayViewMut3, Data, DataMut, Ix3};
use rayon::prelude::*;
use std::borrow::Cow;
use std::marker::PhantomData;

/// Every coarser level of an array: the maximum of each window of 2 x 2 x 2, and of those again, up to a single cell.
///
/// `level[k + 1][x, y, z] = max of level[k][2x..2x + 2, 2y..2y + 2, 2z..2z + 2]`. Cells beyond the edge do not exist: they never
/// take part. A window with a NaN has a NaN, the first one; else of equal maxima the first counts, in row-major order of the window,
/// also of +0.0 and -0.0. Values are copies, bits and all.
///
/// | array | shape |
/// |---|---|
/// | x, level 0 | (X, Y, Z) |
/// | level k | ceil(n / 2^k) an axis |
/// | argument of a cell of level k | 4 dx + 2 dy + dz of the chosen child, a byte |
///
/// Results are the same bits at every level of instructions and for every number of threads.
///
/// # Gradients
///
/// The adjoint takes cotangents of any levels. From the highest down, `G[k] = cotangent[k] + routed G[k + 1]`: the chosen child
/// of a window gets its gradient, the others +0.0. It needs the arguments of `forward`, and no values.
///
/// # Examples
///
/// ```
/// use pullback::mipmap::MaxPyramid;
/// use pullback::ndarray::{Array3, array};
///
/// let x = array![[[0.0, 9.0, 0.0, 3.0, 7.0]]];
/// let pyramid = MaxPyramid::<f64>::new([1, 1, 5])?;
/// let levels = pyramid.forward(x.view())?;
/// assert_eq!(levels.levels[0], array![[[9.0, 3.0, 7.0]]]);
/// assert_eq!(levels.levels[2], array![[[9.0]]]);
/// assert_eq!(levels.arguments[0], array![[[1, 1, 0]]]);
///
/// // The gradient of the whole maximum plus twice the sum of level 1.
/// let (one, two) = (Array3::ones((1, 1, 1)), Array3::from_elem((1, 1, 3), 2.0));
/// let cotangents = [None, Some(two.view()), None, Some(one.view())];
/// let grad_x = pyramid.adjoint(&cotangents, &levels.arguments)?;
/// assert_eq!(grad_x, array![[[0.0, 3.0, 0.0, 2.0, 2.0]]]);
/// # Ok::<(), pullback::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct MaxPyramid<T> {
    climb: Climb,
    element: PhantomData<T>,
}

/// Levels 1 and up of a [`MaxPyramid`].
#[derive(Clone, Debug, PartialEq)]
pub struct MaxLevels<T> {
    /// `levels[i]` is level i + 1.
    pub levels: Vec<Array3<T>>,
    /// `arguments[i]` says which children level i + 1 has its values from.
    pub arguments: Vec<Array3<u8>>,
}

levels!(MaxPyramid);

impl<T: Real> MaxPyramid<T> {
    /// Levels 1 and up of `x`: new arrays. O(X Y Z).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where `x` has another shape; [`Error::Allocation`].
    pub fn forward(&self, x: ArrayView3<'_, T>) -> Result<MaxLevels<T>> {
        self.climb.check_x(&x)?;
        let (mut levels, mut arguments) = (self.climb.arrays()?, self.climb.arrays()?);
        self.climb.forward(&x, views_mut(&mut levels), Kind::Max(views_mut(&mut arguments)))?;
        Ok(MaxLevels { levels, arguments })
    }

    /// [`MaxPyramid::forward`] into the caller's arrays or views, one for each of levels 1 and up, which are overwritten.
    ///
    /// # Errors
    ///
    /// As [`MaxPyramid::forward`], and [`Error::Shape`] for `levels` and `arguments`; nothing is written then.
    pub fn forward_into(
        &self,
        x: ArrayView3<'_, T>,
        levels: &mut [ArrayBase<impl DataMut<Elem = T>, Ix3>],
        arguments: &mut [ArrayBase<impl DataMut<Elem = u8>, Ix3>],
    ) -> Result<()> {
        self.climb.check_x(&x)?;
        self.climb.check_arrays("levels", levels)?;
        self.climb.check_arrays("arguments", arguments)?;
        self.climb.forward(&x, views_mut(levels), Kind::Max(views_mut(arguments)))
    }

    /// The gradient of `x` for `cotangents[k]` of each level `k`, level 0 included, `None` where there is none, and the arguments of
    /// [`MaxPyramid::forward`]: a new array. O(X Y Z).
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] where there are more cotangents than levels, or for an array of another shape;
    /// [`Error::IndexOutOfRange`] for the first argument that names no child; [`Error::Allocation`].
    pub fn adjoint(
        &self,
        cotangents: &[Option<ArrayView3<'_, T>>],
        arguments: &[ArrayBase<impl Data<Elem = u8>, Ix3>],
    ) -> Result<Array3<T>> {
        let arguments = views(arguments);
        let (cotangents, arguments) = self.checked(cotangents, &arguments)?;
        self.climb.gradient(|out| self.climb.descend(&cotangents, Some(&arguments), out))
    }

    /// [`MaxPyramid::adjoint`] into the caller's array, which is overwritten.
    ///
    /// # Errors
    ///
    /// As [`MaxPyramid::adjoint`], and [`Error::Shape`] for `grad_x`; nothing is written then.
    pub fn adjoint_into(
        &self,
        cotangents: &[Option<ArrayView3<'_, T>>],
        arguments: &[ArrayBase<impl Data<Elem = u8>, Ix3>],
        grad_x: ArrayViewMut3<'_, T>,
    ) -> Result<()> {
        self.adjoint_from(cotangents, &views(arguments), grad_x, Start::Zero)
    }

    /// [`MaxPyramid::adjoint`] added to the caller's array.
    ///
    /// # Errors
    ///
    /// As [`MaxPyramid::adjoint_into`].
    pub fn adjoint_add(
        &self,
        cotangents: &[Option<ArrayView3<'_, T>>],
        arguments: &[ArrayBase<impl Data<Elem = u8>, Ix3>],
        grad_x: ArrayViewMut3<'_, T>,
    ) -> Result<()> {
        self.adjoint_from(cotangents, &views(arguments), grad_x, Start::Values)
    }

    fn adjoint_from(
        &self,
        cotangents: &[Option<ArrayView3<'_, T>>],
        arguments: &[ArrayView3<'_, u8>],
        grad_x: ArrayViewMut3<'_, T>,
        start: Start,
    ) -> Result<()> {
        self.climb.check_gradient(&grad_x)?;
        let (cotangents, arguments) = self.checked(cotangents, arguments)?;
        let _ = self.climb.descend(&cotangents, Some(&arguments), Output::array(grad_x, start))?;
        Ok(())
    }

    #[expect(clippy::type_complexity, reason = "cells by level")]
    fn checked<'a>(
        &self,
        cotangents: &'a [Option<ArrayView3<'_, T>>],
        arguments: &'a [ArrayView3<'_, u8>],
    ) -> Result<(Vec<Option<Cow<'a, [T]>>>, Vec<Cow<'a, [u8]>>)> {
        self.climb.check_arrays("arguments", arguments)?;
        (0..).zip(arguments).try_for_each(|(k, array)| self.check_arguments(k, array))?;
        let cotangents = self.climb.cotangents(cotangents, false)?;
        Ok((cotangents, arguments.iter().map(dense).collect::<Result<_>>()?))
    }

    /// Whether each argument of level `k + 1` names a child.
    fn check_arguments(&self, k: usize, arguments: &ArrayView3<'_, u8>) -> Result<()> {
        let below = self.climb.level_shape(k);
        // No cell has all eight children where an axis ends in half a window: there the limit is lower.
        let bad = |(x, y, z): (usize, usize, usize), argument: u8| {
            let child = [2 * x + usize::from(argument / 4), 2 * y + usize::from(argument / 2 % 2)];
            argument > 7
                || child[0] >= below[0]
                || child[1] >= below[1]
                || 2 * z + usize::from(argument % 2) >= below[2]
        };
        let of_plane = |x: usize| {
            let plane = arguments.index_axis(ndarray::Axis(0), x);
            let odd = below.iter().any(|n| n % 2 == 1);
            // Most planes need one look at each byte.
            if !odd
                && let Some(cells) = plane.as_slice()
                && cells.iter().fold(0, |all, &argument| all | argument) < 8
            {
                return None;
            }
            let found = plane.indexed_iter().find(|&((y, z), &argument)| bad((x, y, z), argument))?;
            Some(([x, found.0.0, found.0.1], *found.1))
        };
        let (planes, rows, width) = arguments.dim();
        let planes = (0..planes).into_par_iter().with_min_len((1usize << 18).div_ceil(rows * width));
        match planes.find_map_first(of_plane) {
            None => Ok(()),
            Some(([x, y, z], value)) => Err(Error::IndexOutOfRange {
                argument: "arguments",
                position: vec![k, x, y, z],
                value: value.into(),
                bound: 8,
            }),
        }
    }
}

fn views(arrays: &[ArrayBase<impl Data<Elem = u8>, Ix3>]) -> Vec<ArrayView3<'_, u8>> {
    arrays.iter().map(|array| array.view()).collect()
}
