//! A problem for kernel maps, from a few small numbers, and what its check compares.

use super::cells::assert_same;
use super::gaussian::{Bounded, Gradient, Map, Window, as_given, assert_normalised, count};
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::wide::Referred;
use ndarray::{Array3, ArrayD, ArrayViewMut, IxDyn};
use pullback::gaussian::{Centre, KernelMaps, KernelMapsGradients, Parameters, Tuning};
use pullback::{Error, Level, Result};

pub const PARAMETERS: [Parameters; 5] =
    [Parameters::Factor, Parameters::Precision, Parameters::Sigmas, Parameters::Variances, Parameters::Covariance];

/// What kernels look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// Factors of standard normal numbers: in a corner most samples underflow.
    Seed,
    /// A few pixels wide.
    Centred,
    /// Below a pixel, down to a thousandth.
    Narrow,
    /// Ten to ten thousand pixels.
    Wide,
    /// Long and narrow, at any angle.
    Ridge,
    /// Any of these, no kernel at all, and what is infinitely long.
    Mixed,
}

impl Data {
    pub const ALL: [Self; 6] = [Self::Seed, Self::Centred, Self::Narrow, Self::Wide, Self::Ridge, Self::Mixed];

    /// Standard deviations along two axes, and the angle of the first one.
    fn spreads(self, random: &mut Random) -> [f64; 3] {
        let angle = 4.0 * random.normal();
        let mut power = |low: f64, high: f64| 10f64.powf(low + (high - low) * random.uniform());
        let [first, second] = match self {
            Self::Seed => [power(-0.5, 0.5), power(-0.5, 0.5)],
            Self::Centred => [power(0.0, 1.0), power(0.0, 1.0)],
            Self::Narrow => [power(-3.0, -0.5), power(-3.0, -0.5)],
            Self::Wide => [power(1.0, 4.0), power(1.0, 4.0)],
            Self::Ridge => [power(0.5, 1.5), power(-1.3, -0.1)],
            Self::Mixed => return random.one_of(&Self::ALL[..5]).spreads(random),
        };
        [first, second, angle]
    }

    /// The numbers of one kernel.
    pub fn draw<T: Referred>(self, parameters: Parameters, random: &mut Random) -> Vec<T> {
        let drawn = if self == Self::Mixed && random.below(4) == 0 {
            Self::limit(parameters, random)
        } else {
            self.regular(parameters, 1.0 - 16.0 * T::unit(), random)
        };
        drawn.into_iter().map(number).collect()
    }

    /// Products outside the diagonal are a little `below` those that they are rounded from, so that a form that is positive
    /// stays so.
    fn regular(self, parameters: Parameters, below: f64, random: &mut Random) -> Vec<f64> {
        let [first, second, angle] = self.spreads(random);
        let (sin, cos) = angle.sin_cos();
        let symmetric = |a: f64, b: f64| {
            vec![cos * cos * a + sin * sin * b, cos * sin * (a - b) * below, sin * sin * a + cos * cos * b]
        };
        match (parameters, self) {
            (Parameters::Factor, Self::Seed) => (0..4).map(|_| random.normal()).collect(),
            (Parameters::Factor, Self::Centred) => (0..4).map(|_| 0.3 * random.normal()).collect(),
            (Parameters::Factor, _) => {
                // Turned on the left, which changes the factor and not the kernel.
                let (s, c) = random.normal().sin_cos();
                let [a, b] = [[cos / first, sin / first], [-sin / second, cos / second]];
                vec![c * a[0] - s * b[0], c * a[1] - s * b[1], s * a[0] + c * b[0], s * a[1] + c * b[1]]
            }
            (Parameters::Precision, _) => symmetric(first.powi(-2), second.powi(-2)),
            (Parameters::Sigmas, _) => vec![first, second, angle],
            (Parameters::Variances, _) => vec![first * first, second * second, angle],
            _ => symmetric(first * first, second * second),
        }
    }

    /// Forms that are constant along a line or everywhere, or nearly so.
    fn limit(parameters: Parameters, random: &mut Random) -> Vec<f64> {
        let choices: &[[f64; 4]] = match parameters {
            Parameters::Factor => &[
                [0.0; 4],
                [1.0, 0.0, 0.0, 0.0],
                [2.0, -1.0, 4.0, -2.0],
                [0.0, 0.0, 3.0, 0.5],
                [1e-12, 0.0, 0.0, -1e-12],
            ],
            Parameters::Precision => {
                &[[0.0; 4], [1.0, 0.0, 0.0, 0.0], [4.0, 2.0, 1.0, 0.0], [1.0, -3.0, 9.0, 0.0], [0.0, 0.0, 1e-20, 0.0]]
            }
            Parameters::Covariance => &[[1.0, 0.0, 1e6, 0.0], [4.0, 1.0, 0.5, 0.0], [1e8, 0.0, 1e8, 0.0]],
            _ => &[[1.0, 1e6, 0.0, 0.0], [1e-3, 1e3, 0.5, 0.0], [1e6, 1e6, -1.0, 0.0]],
        };
        random.one_of(choices)[..count(parameters)].to_vec()
    }
}

/// What the gradients of entries look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Grads {
    Normal,
    /// Small differences of large numbers.
    LargeMean,
    /// Zeros but for every fifth.
    Sparse,
    /// The same for all entries of a kernel.
    Constant,
    /// One of the first sample that is larger than all others.
    Outlier,
}

impl Grads {
    pub const ALL: [Self; 5] = [Self::Normal, Self::LargeMean, Self::Sparse, Self::Constant, Self::Outlier];

    fn draw(self, first: bool, of_kernel: f64, random: &mut Random) -> f64 {
        match self {
            Self::Outlier if first => 1e5,
            Self::Normal | Self::Outlier => random.normal(),
            Self::LargeMean => 30_000.0 + random.normal(),
            Self::Sparse => random.normal() * f64::from(u8::from(random.below(5) == 0)),
            Self::Constant => of_kernel,
        }
    }
}

/// Where samples lie.
#[derive(Clone, Copy, Debug)]
pub enum Grid {
    Centre(Centre),
    /// Anywhere.
    Given,
}

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct MapsLayout {
    pub shapes: Strides,
    pub offsets: Strides,
    pub maps: Strides,
    pub grad_maps: Strides,
    pub grad_shapes: Strides,
    pub grad_offsets: Strides,
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct MapsCase {
    /// The axes before those of a kernel.
    pub leading: Vec<usize>,
    /// (kh, kw)
    pub window: [usize; 2],
    pub grid: Grid,
    pub parameters: Parameters,
    pub data: Data,
    /// How far kernels are moved, if they are.
    pub offsets: Option<f64>,
    pub grads: Grads,
    pub double: bool,
    pub layout: MapsLayout,
    pub tuning: Tuning,
    pub threads: usize,
    pub seed: u64,
}

impl Default for MapsCase {
    /// Two rows of three factors in f32 in the middle of 5 x 5 samples, in standard layout, tuned by size.
    fn default() -> Self {
        Self {
            leading: vec![2, 3],
            window: [5, 5],
            grid: Grid::Centre(Centre::Middle),
            parameters: Parameters::Factor,
            data: Data::Centred,
            offsets: None,
            grads: Grads::Normal,
            double: false,
            layout: MapsLayout::default(),
            tuning: Tuning::default(),
            threads: 2,
            seed: 0,
        }
    }
}

pub fn number<T: Referred>(x: f64) -> T {
    T::from_f64(x).expect("rounded")
}

/// What z is at column `x` or row `y` of `k`, from the words of the contract.
pub fn middle(centre: Centre, [kh, kw]: [usize; 2]) -> [f64; 2] {
    let of = |k: usize| match centre {
        Centre::Corner => 0.0,
        Centre::Middle => (k as f64 - 1.0) / 2.0,
        Centre::Half => (k / 2) as f64,
        Centre::ShiftConvolution(sf) => (k / 2) as f64 - (sf as f64 - 1.0) / 2.0,
        Centre::ShiftCorrelation(sf) => (k / 2) as f64 + (sf as f64 - 1.0) / 2.0,
        _ => f64::NAN,
    };
    if let Centre::At(x, y) = centre { [x, y] } else { [of(kw), of(kh)] }
}

/// The arrays of a problem.
pub struct Scene<T> {
    /// (kh, kw, 2)
    pub z: Array3<T>,
    pub shapes: Strided<T, IxDyn>,
    pub offsets: Option<Strided<T, IxDyn>>,
    pub grad_maps: Strided<T, IxDyn>,
    random: Random,
}

impl MapsCase {
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    fn shape(&self, last: &[usize]) -> IxDyn {
        IxDyn(&[&self.leading, last].concat())
    }

    fn shape_of_numbers(&self) -> IxDyn {
        self.shape(if count(self.parameters) == 4 { &[2, 2] } else { &[3] })
    }

    pub fn operator<T: Referred>(&self, z: &Array3<T>, level: Level) -> KernelMaps<T> {
        let made = match self.grid {
            Grid::Centre(centre) => KernelMaps::rectangular(self.window, centre),
            Grid::Given => KernelMaps::with_grid(z.view()),
        };
        let operator = made.expect("a good window").with_parameters(self.parameters);
        operator.with_level(level).expect("an available level").with_tuning(self.tuning)
    }

    pub fn scene<T: Referred>(&self) -> Scene<T> {
        let (mut random, [kh, kw]) = (Random::new(self.seed), self.window);
        let z = match self.grid {
            Grid::Centre(centre) => {
                let middle = middle(centre, self.window);
                Array3::from_shape_fn([kh, kw, 2], |(y, x, axis)| number([x, y][axis] as f64 - middle[axis]))
            }
            Grid::Given => Array3::from_shape_simple_fn([kh, kw, 2], || number(3.0 * random.normal())),
        };
        let mut shapes = Strided::new(self.shape_of_numbers(), self.layout.shapes, T::one);
        let mut numbers = std::iter::from_fn(|| Some(self.data.draw(self.parameters, &mut random))).flatten();
        shapes.view_mut().iter_mut().for_each(|cell| *cell = numbers.next().expect("no end"));
        drop(numbers);
        let offsets = self
            .offsets
            .map(|far| Strided::new(self.shape(&[2]), self.layout.offsets, || number(far * random.normal())));
        let (mut at, mut of_kernel) = (0, 0.0);
        let grad_maps = Strided::new(self.shape(&self.window), self.layout.grad_maps, || {
            if at % (kh * kw) == 0 {
                of_kernel = random.normal();
            }
            at += 1;
            number(self.grads.draw(at % (kh * kw) == 1, of_kernel, &mut random))
        });
        Scene { z, shapes, offsets, grad_maps, random }
    }

    /// All that is computed, one after another.
    pub fn results<T: Referred>(&self, scene: &Scene<T>, level: Level) -> Vec<T> {
        let operator = self.operator(&scene.z, level);
        let found = Found::of(&operator, scene);
        let mut all: Vec<T> = found.maps.into_iter().chain(found.grad_shapes).collect();
        all.extend(found.grad_offsets.into_iter().flatten());
        all
    }

    fn check_element<T: Referred>(&self, level: Level) {
        let mut scene = self.scene::<T>();
        let operator = self.operator(&scene.z, level);
        assert_eq!((operator.shape(), operator.level()), (self.window, level));
        assert_eq!(operator.grid(), scene.z, "the grid");
        let found = Found::of(&operator, &scene);
        self.check_forward(&operator, &scene, &found);
        self.check_adjoint(&operator, &mut scene, &found);
        self.check_values(&scene, &found);
    }

    /// Every entry and gradient is near enough to its reference.
    fn check_values<T: Referred>(&self, scene: &Scene<T>, found: &Found<T>) {
        let size = self.window.iter().product();
        let rows = |array: &ArrayD<T>, of: usize| -> Vec<Vec<T>> {
            let cells: Vec<T> = array.iter().copied().collect();
            cells.chunks_exact(of).map(<[T]>::to_vec).collect()
        };
        let window = Window::of(self.parameters, &scene.z);
        let numbers = rows(&scene.shapes.view().to_owned(), count(self.parameters));
        let offsets = scene.offsets.as_ref().map(|offsets| rows(&offsets.view().to_owned(), 2));
        let grad_maps = rows(&scene.grad_maps.view().to_owned(), size);
        let (maps, grad_shapes) = (rows(&found.maps, size), rows(&found.grad_shapes, count(self.parameters)));
        let grad_offsets = found.grad_offsets.as_ref().map(|offsets| rows(offsets, 2));
        let pixels: usize = self.leading.iter().product();
        assert_eq!([numbers.len(), maps.len(), grad_shapes.len()], [pixels; 3]);
        for (pixel, numbers) in numbers.iter().enumerate() {
            let offset = offsets.as_ref().map(|offsets| [offsets[pixel][0], offsets[pixel][1]]);
            let map = window.map(numbers, offset);
            let what = format!("pixel {pixel} of {numbers:?}, moved by {offset:?}");
            assert_map(&what, &maps[pixel], &map);
            let gradient = window.gradient(&map, &as_given(&grad_maps[pixel]));
            let of_offset = grad_offsets.as_ref().map(|offsets| &offsets[pixel][..]);
            let constant = grad_maps[pixel].iter().all(|g| *g == grad_maps[pixel][0]);
            assert_gradient(&what, &grad_shapes[pixel], of_offset, &gradient, constant);
        }
    }

    fn check_forward<T: Referred>(&self, operator: &KernelMaps<T>, scene: &Scene<T>, found: &Found<T>) {
        let start = Strided::new(self.shape(&self.window), self.layout.maps, || number(7.5));
        let shapes = scene.shapes.view();
        check_into("maps", &start, &found.maps, |maps| match &scene.offsets {
            None => operator.forward_into(shapes, maps),
            Some(offsets) => operator.forward_at_into(shapes, offsets.view(), maps),
        });
    }

    fn check_adjoint<T: Referred>(&self, operator: &KernelMaps<T>, scene: &mut Scene<T>, found: &Found<T>) {
        let random = &mut scene.random;
        let grad_shapes = Strided::new(self.shape_of_numbers(), self.layout.grad_shapes, || number(random.normal()));
        let grad_offsets = Strided::new(self.shape(&[2]), self.layout.grad_offsets, || number(random.normal()));
        let (shapes, grad_maps) = (scene.shapes.view(), scene.grad_maps.view());
        let sum = |start: &Strided<T, IxDyn>, gradient: &ArrayD<T>| &start.view() + gradient;
        let (mut added_shapes, mut added_offsets) = (grad_shapes.clone(), grad_offsets.clone());
        match (&scene.offsets, &found.grad_offsets) {
            (Some(offsets), Some(of_offsets)) => {
                check_into("grad_shapes", &grad_shapes, &found.grad_shapes, |grad_shapes| {
                    check_into("grad_offsets", &grad_offsets, of_offsets, |grad_offsets| {
                        operator.adjoint_at_into(
                            grad_maps.view(),
                            shapes.view(),
                            offsets.view(),
                            grad_shapes,
                            grad_offsets,
                        )
                    });
                    Ok(())
                });
                let [to_shapes, to_offsets] = [added_shapes.view_mut(), added_offsets.view_mut()];
                operator
                    .adjoint_at_add(grad_maps.view(), shapes.view(), offsets.view(), to_shapes, to_offsets)
                    .expect("the shapes are right");
                assert_added(
                    "grad_offsets",
                    &added_offsets,
                    &grad_offsets,
                    &sum(&grad_offsets, of_offsets),
                    of_offsets,
                );
            }
            _ => {
                check_into("grad_shapes", &grad_shapes, &found.grad_shapes, |grad_shapes| {
                    operator.adjoint_into(grad_maps.view(), shapes.view(), grad_shapes)
                });
                operator
                    .adjoint_add(grad_maps.view(), shapes.view(), added_shapes.view_mut())
                    .expect("the shapes are right");
            }
        }
        let (start, gradient) = (&grad_shapes, &found.grad_shapes);
        assert_added("grad_shapes", &added_shapes, start, &sum(start, gradient), gradient);
    }
}

/// What an operator returns.
struct Found<T> {
    maps: ArrayD<T>,
    grad_shapes: ArrayD<T>,
    grad_offsets: Option<ArrayD<T>>,
}

impl<T: Referred> Found<T> {
    fn of(operator: &KernelMaps<T>, scene: &Scene<T>) -> Self {
        let (shapes, grad_maps) = (scene.shapes.view(), scene.grad_maps.view());
        match &scene.offsets {
            None => Self {
                maps: operator.forward(shapes.view()).expect("good kernels"),
                grad_shapes: operator.adjoint(grad_maps, shapes).expect("good kernels"),
                grad_offsets: None,
            },
            Some(offsets) => {
                let maps = operator.forward_at(shapes.view(), offsets.view()).expect("good kernels");
                let gradients = operator.adjoint_at(grad_maps, shapes, offsets.view()).expect("good kernels");
                let KernelMapsGradients { grad_shapes, grad_offsets, .. } = gradients;
                Self { maps, grad_shapes, grad_offsets: Some(grad_offsets) }
            }
        }
    }
}

impl<T: Referred> Window<T> {
    pub fn of(parameters: Parameters, z: &Array3<T>) -> Self {
        let cells: Vec<T> = z.iter().copied().collect();
        Self { samples: cells.chunks_exact(2).map(|z| [z[0], z[1]]).collect(), parameters }
    }
}

/// `found` are the entries of a kernel.
#[track_caller]
pub fn assert_map<T: Referred>(what: &str, found: &[T], map: &Map<T>) {
    for (at, &found) in found.iter().enumerate() {
        if let Some(complaint) = map.complaint(at, found) {
            panic!("{what}: entry {at} is {complaint}");
        }
    }
    assert_normalised(found);
}

/// The gradients to a kernel's numbers and to its offset are near enough, and 0 where those of all entries are the same.
#[track_caller]
pub fn assert_gradient<T: Referred>(
    what: &str,
    to_shape: &[T],
    to_offset: Option<&[T]>,
    gradient: &Gradient<T::Wide>,
    constant: bool,
) {
    let one = |name: &str, at: usize, found: T, expected: Bounded<T::Wide>| {
        assert!(expected.accepts(found) && !found.is_nan(), "{what}: {name}[{at}] = {found:?}, not {expected:?}");
        assert!(!found.is_subnormal(), "{what}: {name}[{at}] = {found:?}");
        assert!(!constant || found == T::zero(), "{what}: {name}[{at}] = {found:?} of a constant");
    };
    to_shape.iter().zip(&gradient.shape).enumerate().for_each(|(at, (&x, &y))| one("grad_shapes", at, x, y));
    let to_offset = to_offset.unwrap_or_default();
    to_offset.iter().zip(&gradient.offset).enumerate().for_each(|(at, (&x, &y))| one("grad_offsets", at, x, y));
}

/// One kernel's entries and the gradients to its numbers where those of entries are `grad`, all near their references. None where
/// the numbers had to be refused.
#[track_caller]
pub fn check_kernel<T: Referred>(
    maps: &KernelMaps<T>,
    parameters: Parameters,
    numbers: &[T],
    offset: Option<[T; 2]>,
    grad: &[T],
) -> Option<(Vec<T>, Vec<T>)> {
    let what = format!("{parameters:?} {numbers:?} moved by {offset:?} at {}", maps.level());
    let shape = if count(parameters) == 4 { &[2, 2][..] } else { &[3] };
    let shape = ArrayD::from_shape_vec(shape, numbers.to_vec()).expect("as many numbers");
    let grads = ArrayD::from_shape_vec(&maps.shape()[..], grad.to_vec()).expect("a gradient an entry");
    let found = match offset {
        None => maps.forward(shape.view()).map(|found| (found, maps.adjoint(grads.view(), shape.view()), None)),
        Some(offset) => {
            let offset = ndarray::aview1(&offset);
            maps.forward_at(shape.view(), offset).map(|found| {
                let gradients = maps.adjoint_at(grads.view(), shape.view(), offset).expect("as accepted as before");
                (found, Ok(gradients.grad_shapes), Some(gradients.grad_offsets))
            })
        }
    };
    let finite = numbers.iter().all(|x| x.is_finite());
    let (found, gradient, of_offset) = match found {
        Ok(found) => found,
        Err(Error::NonFinite { argument: "shapes", .. }) if !finite => return None,
        Err(Error::KernelShape { argument: "shapes", .. }) if finite && !is_kernel(parameters, numbers) => return None,
        Err(error) => panic!("{what}: {error}"),
    };
    assert!(finite && is_kernel(parameters, numbers), "{what} is accepted");
    let (found, gradient) = (found.into_iter().collect::<Vec<T>>(), gradient.expect("as accepted as before"));
    let window = Window::of(parameters, &maps.grid());
    let map = window.map(numbers, offset);
    assert_map(&what, &found, &map);
    let constant = grad.iter().all(|g| *g == grad[0]);
    let gradient: Vec<T> = gradient.into_iter().collect();
    let of_offset = of_offset.map(|gradient| gradient.into_iter().collect::<Vec<T>>());
    assert_gradient(&what, &gradient, of_offset.as_deref(), &window.gradient(&map, &as_given(grad)), constant);
    Some((found, gradient))
}

/// Whether finite numbers describe a kernel. Products are those of f64, which are exact for f32.
fn is_kernel<T: Referred>(parameters: Parameters, numbers: &[T]) -> bool {
    let n: Vec<f64> = numbers.iter().map(|x| x.to_f64().expect("an element is an f64")).collect();
    match parameters {
        Parameters::Factor => true,
        Parameters::Precision => n[0] >= 0.0 && n[2] >= 0.0 && n[0] * n[2] >= n[1] * n[1],
        Parameters::Covariance => n[0] > 0.0 && n[0] * n[2] > n[1] * n[1],
        _ => n[0] > 0.0 && n[1] > 0.0,
    }
}

/// `write` makes the cells of an output like `start` those of `expected`, bit for bit, and touches nothing else.
#[track_caller]
pub fn check_into<T: Referred>(
    what: &str,
    start: &Strided<T, IxDyn>,
    expected: &ArrayD<T>,
    write: impl FnOnce(ArrayViewMut<'_, T, IxDyn>) -> Result<()>,
) {
    let mut output = start.clone();
    write(output.view_mut()).expect("the shapes are right");
    assert_same(what, &output.view(), expected);
    assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));
}

/// `found` is `start` with a gradient added to it, which is `sum` but for two roundings, and nothing else was touched.
#[track_caller]
fn assert_added<T: Referred>(
    what: &str,
    found: &Strided<T, IxDyn>,
    start: &Strided<T, IxDyn>,
    sum: &ArrayD<T>,
    gradient: &ArrayD<T>,
) {
    for (((at, &found), &sum), &gradient) in found.view().indexed_iter().zip(sum).zip(gradient) {
        let error = number::<T>(4.0 * T::unit()) * (sum.abs() + gradient.abs());
        let close = (found - sum).abs() <= error || !gradient.is_finite();
        assert!(close, "{what}{at:?} = {found:?} by adjoint_add, not {sum:?}");
    }
    assert_same("the memory around", &found.outside(T::zero()), &start.outside(T::zero()));
}
