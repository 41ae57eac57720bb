//! What a blur and a scatter share of their public face.

/// What can be set of both.
macro_rules! adjustable {
    ($operator:ident) => {
        crate::settings::settings!(level of [T: Real] $operator<T> { core.level, core.tuning }, same bits from V3);

        impl<T: Real> $operator<T> {
            /// The same operator on kernels that other numbers describe.
            #[must_use]
            pub fn with_parameters(mut self, parameters: Parameters) -> Self {
                self.core.parameters = parameters;
                self
            }

            /// The same operator on images in another layout.
            #[must_use]
            pub fn with_layout(mut self, layout: Layout) -> Self {
                self.core.layout = layout;
                self
            }
        }
    };
}
pub(super) use adjustable;

/// The gradients of an operator of `$x` and shapes, which its `check_adjoint` looks at and its `pull` computes.
macro_rules! adjoint_forms {
    ($operator:ident, $x:ident => $grad_x:ident) => {
        impl<T: Real> $operator<T> {
            #[doc = concat!("The gradients of [`Self::forward`] at `", stringify!($x), "` and `shapes` for the gradient `grad_y`")]
            /// of its result: new arrays. O(B H' W' kh kw C).
            ///
            /// # Errors
            ///
            /// As [`Self::forward`], and [`Error::Shape`](crate::Error::Shape) for `grad_y`.
            pub fn adjoint(
                &self,
                grad_y: ArrayView4<'_, T>,
                $x: ArrayView4<'_, T>,
                shapes: ArrayView<'_, T, impl Dimension>,
            ) -> Result<BlurGradients<T>> {
                self.check_adjoint(grad_y.shape(), $x.shape(), shapes.shape())?;
                let mut of_x = Buffer::new(elements::<T>($x.shape())?)?;
                let mut of_shapes = Buffer::new(elements::<T>(shapes.shape())?)?;
                let outputs = (Output::fresh(of_x.cells()), Output::fresh(of_shapes.cells()));
                let filled = self.pull(&grad_y, &$x, &shapes, outputs)?;
                Ok(BlurGradients {
                    grad_image: of_x.finish(filled.0, $x.shape()),
                    grad_shapes: of_shapes.finish(filled.1, shapes.shape()),
                })
            }

            /// [`Self::adjoint`] into the caller's arrays, which are overwritten.
            ///
            /// # Errors
            ///
            /// As [`Self::adjoint`]; nothing is written then.
            pub fn adjoint_into(
                &self,
                grad_y: ArrayView4<'_, T>,
                $x: ArrayView4<'_, T>,
                shapes: ArrayView<'_, T, impl Dimension>,
                $grad_x: ArrayViewMut4<'_, T>,
                grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
            ) -> Result<()> {
                self.adjoint_from(&grad_y, &$x, &shapes, ($grad_x, grad_shapes), Start::Zero)
            }

            /// [`Self::adjoint`] added to the caller's arrays.
            ///
            /// # Errors
            ///
            /// As [`Self::adjoint`]; nothing is written then.
            pub fn adjoint_add(
                &self,
                grad_y: ArrayView4<'_, T>,
                $x: ArrayView4<'_, T>,
                shapes: ArrayView<'_, T, impl Dimension>,
                $grad_x: ArrayViewMut4<'_, T>,
                grad_shapes: ArrayViewMut<'_, T, impl Dimension>,
            ) -> Result<()> {
                self.adjoint_from(&grad_y, &$x, &shapes, ($grad_x, grad_shapes), Start::Values)
            }

            fn adjoint_from(
                &self,
                grad_y: &ArrayView4<'_, T>,
                $x: &ArrayView4<'_, T>,
                shapes: &ArrayView<'_, T, impl Dimension>,
                ($grad_x, grad_shapes): (ArrayViewMut4<'_, T>, ArrayViewMut<'_, T, impl Dimension>),
                start: Start,
            ) -> Result<()> {
                self.check_adjoint(grad_y.shape(), $x.shape(), shapes.shape())?;
                check_shape(stringify!($grad_x), $grad_x.shape(), $x.shape())?;
                check_shape("grad_shapes", grad_shapes.shape(), shapes.shape())?;
                let outputs = (Output::array($grad_x, start), Output::array(grad_shapes, start));
                let _ = self.pull(grad_y, $x, shapes, outputs)?;
                Ok(())
            }
        }
    };
}
pub(super) use adjoint_forms;
