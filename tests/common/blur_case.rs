//! A problem for blurs with a kernel a pixel, from a few small numbers, and what its check compares.

use super::blurring::{Kernels, Placement};
use super::cells::assert_same;
use super::gaussian::{Bounded, Gradient, Window, count};
use super::maps_case::{Data, assert_gradient, check_into, middle, number};
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::wide::Referred;
use ndarray::{Array3, Array4, ArrayD, ArrayView4, ArrayViewMut, Ix4, IxDyn};
use pullback::gaussian::{Blur, BlurGradients, Border, Centre, Layout, Parameters, Scatter};
use pullback::{Level, Result};

pub const BORDERS: [Border; 6] =
    [Border::Reflect, Border::Symmetric, Border::Edge, Border::Wrap, Border::Constant(0.0), Border::Constant(-2.5)];

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct BlurLayout {
    pub image: Strides,
    pub shapes: Strides,
    pub grad: Strides,
    pub first: Strides,
    pub second: Strides,
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct BlurCase {
    /// B, H, W, C of the image.
    pub image: [usize; 4],
    /// (kh, kw)
    pub window: [usize; 2],
    pub centre: Centre,
    pub border: Border,
    pub stride: usize,
    pub parameters: Parameters,
    pub data: Data,
    pub channels_first: bool,
    pub double: bool,
    pub layout: BlurLayout,
    pub threads: usize,
    pub seed: u64,
}

impl Default for BlurCase {
    /// Two images of 7 x 6 pixels of three channels in f32, factors on 5 x 5 samples, in standard layout.
    fn default() -> Self {
        Self {
            image: [2, 7, 6, 3],
            window: [5, 5],
            centre: Centre::Middle,
            border: Border::Reflect,
            stride: 1,
            parameters: Parameters::Factor,
            data: Data::Centred,
            channels_first: false,
            double: false,
            layout: BlurLayout::default(),
            threads: 2,
            seed: 0,
        }
    }
}

/// What an image is with a gradient added to it.
type AddedTo<'a, T> = dyn Fn(ArrayView4<'_, T>) -> Array4<Bounded<<T as Referred>::Wide>> + 'a;

/// The arrays of a problem, images as the operator takes them.
pub struct Scene<T> {
    pub image: Strided<T, Ix4>,
    /// Of what lies as the outputs do: a gradient, or what is scattered.
    pub outputs: Strided<T, Ix4>,
    pub shapes: Strided<T, IxDyn>,
    random: Random,
}

impl BlurCase {
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    pub fn placement(&self) -> Placement {
        let [_, height, width, _] = self.image;
        Placement { window: self.window, border: self.border, stride: self.stride, size: [height, width] }
    }

    fn axes(&self) -> Layout {
        if self.channels_first { Layout::ChannelsFirst } else { Layout::ChannelsLast }
    }

    pub fn blur<T: Referred>(&self, level: Level) -> Blur<T> {
        let blur = Blur::rectangular(self.window, self.centre, self.border, self.stride).expect("good numbers");
        blur.with_parameters(self.parameters).with_layout(self.axes()).with_level(level).expect("an available level")
    }

    pub fn scatter<T: Referred>(&self, level: Level) -> Scatter<T> {
        let scatter = Scatter::rectangular(self.window, self.centre, self.border, self.stride).expect("good numbers");
        scatter.with_parameters(self.parameters).with_layout(self.axes()).with_level(level).expect("an available level")
    }

    /// B, H, W, C in the order of the operator's axes.
    fn ordered(&self, [b, h, w, c]: [usize; 4]) -> Ix4 {
        if self.channels_first { Ix4(b, c, h, w) } else { Ix4(b, h, w, c) }
    }

    /// In the order of the references' axes.
    pub fn standard<'a, T>(&self, array: ArrayView4<'a, T>) -> ArrayView4<'a, T> {
        if self.channels_first { array.permuted_axes([0, 2, 3, 1]) } else { array }
    }

    pub fn scene<T: Referred>(&self) -> Scene<T> {
        let mut random = Random::new(self.seed);
        let ([batches, .., channels], [rows, columns]) = (self.image, self.placement().outputs());
        let image = Strided::new(self.ordered(self.image), self.layout.image, || number(random.normal()));
        let of_outputs = self.ordered([batches, rows, columns, channels]);
        let outputs = Strided::new(of_outputs, self.layout.grad, || number(random.normal()));
        let last: &[usize] = if count(self.parameters) == 4 { &[2, 2] } else { &[3] };
        let shape = IxDyn(&[&[batches, rows, columns], last].concat());
        let mut shapes = Strided::new(shape, self.layout.shapes, T::one);
        let mut numbers = std::iter::from_fn(|| Some(self.data.draw(self.parameters, &mut random))).flatten();
        shapes.view_mut().iter_mut().for_each(|cell| *cell = numbers.next().expect("no end"));
        drop(numbers);
        Scene { image, outputs, shapes, random }
    }

    /// The window, and the kernel of every output pixel.
    pub fn kernels<T: Referred>(&self, shapes: &ArrayD<T>) -> (Window<T>, Kernels<T>) {
        let ([kh, kw], middle) = (self.window, middle(self.centre, self.window));
        let z = Array3::from_shape_fn([kh, kw, 2], |(y, x, axis)| number([x, y][axis] as f64 - middle[axis]));
        let window = Window::of(self.parameters, &z);
        let numbers: Vec<T> = shapes.iter().copied().collect();
        let maps = numbers.chunks_exact(count(self.parameters)).map(|numbers| window.map(numbers, None)).collect();
        (window, Kernels { placement: self.placement(), maps })
    }

    /// All that is computed, one after another.
    pub fn results<T: Referred>(&self, scene: &Scene<T>, level: Level) -> Vec<T> {
        let (blur, scatter) = (self.blur(level), self.scatter(level));
        let (image, outputs, shapes) = (scene.image.view(), scene.outputs.view(), scene.shapes.view());
        let y = blur.forward(image, shapes.view()).expect("good kernels");
        let of_blur = blur.adjoint(outputs, image, shapes.view()).expect("good kernels");
        let spread = scatter.forward(outputs, shapes.view(), self.placement().size).expect("good kernels");
        let of_scatter = scatter.adjoint(image, outputs, shapes.view()).expect("good kernels");
        let images = [y, of_blur.grad_image, spread, of_scatter.grad_image].into_iter().flatten();
        images.chain([of_blur.grad_shapes, of_scatter.grad_shapes].into_iter().flatten()).collect()
    }

    fn check_element<T: Referred>(&self, level: Level) {
        let mut scene = self.scene::<T>();
        let (window, kernels) = self.kernels(&scene.shapes.view().to_owned());
        self.check_blur(level, &mut scene, &window, &kernels);
        self.check_scatter(level, &mut scene, &window, &kernels);
    }

    fn check_blur<T: Referred>(&self, level: Level, scene: &mut Scene<T>, window: &Window<T>, kernels: &Kernels<T>) {
        let blur = self.blur(level);
        assert_eq!(blur.level(), level);
        let random = &mut scene.random;
        let (image, grad_y, shapes) = (scene.image.view(), scene.outputs.view(), scene.shapes.view());
        let y = blur.forward(image, shapes.view()).expect("good kernels");
        self.assert_image("y", &y, &kernels.blur(self.standard(image)));
        let start = Strided::new(y.raw_dim(), self.layout.first, || number(random.normal()));
        check_image("y of forward_into", &start, &y, |y| blur.forward_into(image, shapes.view(), y));

        let found = blur.adjoint(grad_y, image, shapes.view()).expect("good kernels");
        let transposed = kernels.spread(self.standard(grad_y), None);
        self.assert_image("grad_image", &found.grad_image, &transposed);
        let alone = blur.adjoint_image(grad_y, shapes.view(), self.placement().size).expect("good kernels");
        self.assert_image("grad_image of adjoint_image", &alone, &transposed);
        let start = Strided::new(image.raw_dim(), self.layout.second, || number(random.normal()));
        check_image("grad_image of adjoint_image_into", &start, &alone, |grad_image| {
            blur.adjoint_image_into(grad_y, shapes.view(), grad_image)
        });
        let mut added = start.clone();
        blur.adjoint_image_add(grad_y, shapes.view(), added.view_mut()).expect("good kernels");
        let sums = kernels.spread(self.standard(grad_y), Some(self.standard(start.view())));
        self.assert_image("grad_image of adjoint_image_add", &added.view().to_owned(), &sums);
        assert_same("the memory around", &added.outside(T::zero()), &start.outside(T::zero()));
        let expected = kernels.blur_gradients(window, self.standard(grad_y), self.standard(image));
        self.assert_shapes("blur", &found.grad_shapes, &expected);
        self.check_outputs(
            "blur",
            &found,
            random,
            (&|start| kernels.spread(self.standard(grad_y), Some(start)), &expected),
            |grad_image, grad_shapes| blur.adjoint_into(grad_y, image, shapes.view(), grad_image, grad_shapes),
            |grad_image, grad_shapes| blur.adjoint_add(grad_y, image, shapes.view(), grad_image, grad_shapes),
        );
    }

    fn check_scatter<T: Referred>(&self, level: Level, scene: &mut Scene<T>, window: &Window<T>, kernels: &Kernels<T>) {
        let scatter = self.scatter(level);
        assert_eq!(scatter.level(), level);
        let random = &mut scene.random;
        let (grad_y, x, shapes) = (scene.image.view(), scene.outputs.view(), scene.shapes.view());
        let y = scatter.forward(x, shapes.view(), self.placement().size).expect("good kernels");
        self.assert_image("y", &y, &kernels.spread(self.standard(x), None));
        let start = Strided::new(y.raw_dim(), self.layout.first, || number(random.normal()));
        check_image("y of forward_into", &start, &y, |y| scatter.forward_into(x, shapes.view(), y));

        let found = scatter.adjoint(grad_y, x, shapes.view()).expect("good kernels");
        self.assert_image("grad_x", &found.grad_image, &kernels.collect(self.standard(grad_y), None));
        let expected = kernels.spread_gradients(window, self.standard(grad_y), self.standard(x));
        self.assert_shapes("scatter", &found.grad_shapes, &expected);
        self.check_outputs(
            "scatter",
            &found,
            random,
            (&|start| kernels.collect(self.standard(grad_y), Some(start)), &expected),
            |grad_x, grad_shapes| scatter.adjoint_into(grad_y, x, shapes.view(), grad_x, grad_shapes),
            |grad_x, grad_shapes| scatter.adjoint_add(grad_y, x, shapes.view(), grad_x, grad_shapes),
        );
    }

    /// The forms of an adjoint that write to the caller's arrays.
    fn check_outputs<T: Referred>(
        &self,
        what: &str,
        found: &BlurGradients<T>,
        random: &mut Random,
        (added_to, expected): (&AddedTo<'_, T>, &[Gradient<T::Wide>]),
        into: impl Fn(ArrayViewMut<'_, T, Ix4>, ArrayViewMut<'_, T, IxDyn>) -> Result<()>,
        add: impl Fn(ArrayViewMut<'_, T, Ix4>, ArrayViewMut<'_, T, IxDyn>) -> Result<()>,
    ) {
        let image = Strided::new(found.grad_image.raw_dim(), self.layout.first, || number(random.normal()));
        let shapes = Strided::new(found.grad_shapes.raw_dim(), self.layout.second, || number(random.normal()));
        check_image(&format!("grad_image of {what}"), &image, &found.grad_image, |grad_image| {
            check_into(&format!("grad_shapes of {what}"), &shapes, &found.grad_shapes, |grad_shapes| {
                into(grad_image, grad_shapes)
            });
            Ok(())
        });
        let (mut added_image, mut added_shapes) = (image.clone(), shapes.clone());
        add(added_image.view_mut(), added_shapes.view_mut()).expect("the shapes are right");
        let sums = added_to(self.standard(image.view()));
        self.assert_image(&format!("grad_image of {what}, added"), &added_image.view().to_owned(), &sums);
        let [from, sums] = [&shapes, &added_shapes].map(|array| array.view().iter().copied().collect::<Vec<T>>());
        let expected = expected.iter().flat_map(|gradient| &gradient.shape);
        for (at, ((&from, &sum), expected)) in from.iter().zip(&sums).zip(expected).enumerate() {
            assert!(
                expected.accepts_sum(from, sum),
                "grad_shapes of {what}: {at} is {sum:?}, not {from:?} + {expected:?}"
            );
        }
        assert_same("the memory around", &added_image.outside(T::zero()), &image.outside(T::zero()));
        assert_same("the memory around", &added_shapes.outside(T::zero()), &shapes.outside(T::zero()));
    }

    #[track_caller]
    fn assert_image<T: Referred>(&self, what: &str, found: &Array4<T>, expected: &Array4<Bounded<T::Wide>>) {
        let found = self.standard(found.view());
        assert_eq!(found.dim(), expected.dim(), "shape of {what}");
        for ((at, &found), expected) in found.indexed_iter().zip(expected) {
            assert!(expected.accepts(found) && !found.is_nan(), "{what}{at:?} = {found:?}, not {expected:?}");
        }
    }

    #[track_caller]
    fn assert_shapes<T: Referred>(&self, what: &str, found: &ArrayD<T>, expected: &[Gradient<T::Wide>]) {
        let cells: Vec<T> = found.iter().copied().collect();
        let kernels = cells.chunks_exact(count(self.parameters));
        assert_eq!(kernels.len(), expected.len(), "{what}: shape {:?} of grad_shapes", found.shape());
        for (pixel, (found, expected)) in kernels.zip(expected).enumerate() {
            assert_gradient(&format!("{what}: pixel {pixel}"), found, None, expected, false);
        }
    }
}

/// [`check_into`] of an image.
#[track_caller]
fn check_image<T: Referred>(
    what: &str,
    start: &Strided<T, Ix4>,
    expected: &Array4<T>,
    write: impl FnOnce(ArrayViewMut<'_, T, Ix4>) -> Result<()>,
) {
    let mut output = start.clone();
    write(output.view_mut()).expect("the shapes are right");
    assert_same(what, &output.view(), expected);
    assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));
}
