//! A problem for products or correlations of two sequences, from a few small numbers, and what its check compares.

use super::cells::assert_same;
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::triconv_bounds::number;
use super::triconv_product_reference::{ProductReference, WiderProduct};
use super::triconv_scan_case::{Data, Kind};
use super::wide::Referred;
use ndarray::{ArrayD, ArrayViewMut, IxDyn};
use pullback::triconv::{Correlation, Product, Tuning, Weights};
use pullback::{Level, Result};
use std::ops::Range;

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProductLayout {
    pub first: Strides,
    pub second: Strides,
    pub output: Strides,
    pub grad_output: Strides,
    pub grad_first: Strides,
    pub grad_second: Strides,
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct ProductCase {
    /// Whether it is a correlation: of `A` and `G` instead of `A` and `B`.
    pub correlation: bool,
    /// Which matrices are computed. Those of a correlation begin with the first.
    pub range: Range<usize>,
    /// How many matrices the first sequence has, and the second.
    pub lengths: [usize; 2],
    pub p: usize,
    pub m: usize,
    pub q: usize,
    /// The axes before those of a sequence.
    pub leading: Vec<usize>,
    /// Whether one second sequence is that of all.
    pub shared: bool,
    /// R, if there is such an axis.
    pub cotangents: Option<usize>,
    pub weights: Weights,
    pub kind: Kind,
    pub data: Data,
    pub layout: ProductLayout,
    pub tuning: Tuning,
    pub threads: usize,
    pub seed: u64,
}

impl Default for ProductCase {
    /// Five matrices of a product of two sequences of 2 x 3 and 3 x 4 matrices in f64, in standard layout, tuned by size.
    fn default() -> Self {
        Self {
            correlation: false,
            range: 0..5,
            lengths: [5, 5],
            p: 2,
            m: 3,
            q: 4,
            leading: vec![2],
            shared: false,
            cotangents: None,
            weights: Weights::Binomial,
            kind: Kind::F64,
            data: Data::Flat,
            layout: ProductLayout::default(),
            tuning: Tuning::default(),
            threads: 2,
            seed: 0,
        }
    }
}

/// One of both operators.
pub enum Either<T> {
    Product(Product<T>),
    Correlation(Correlation<T>),
}

/// What either calls the gradients of its two sequences.
pub struct Gradients<T> {
    pub first: ArrayD<T>,
    pub second: ArrayD<T>,
}

type View<'a, T> = ndarray::ArrayView<'a, T, IxDyn>;
type ViewMut<'a, T> = ArrayViewMut<'a, T, IxDyn>;

impl<T: Referred> Either<T> {
    pub fn forward(&self, x: &View<'_, T>, y: &View<'_, T>) -> Result<ArrayD<T>> {
        match self {
            Self::Product(product) => product.forward(x.view(), y.view()),
            Self::Correlation(correlation) => correlation.forward(x.view(), y.view()),
        }
    }

    pub fn adjoint(&self, grad: &View<'_, T>, x: &View<'_, T>, y: &View<'_, T>) -> Result<Gradients<T>> {
        match self {
            Self::Product(product) => {
                let found = product.adjoint(grad.view(), x.view(), y.view())?;
                Ok(Gradients { first: found.grad_a, second: found.grad_b })
            }
            Self::Correlation(correlation) => {
                let found = correlation.adjoint(grad.view(), x.view(), y.view())?;
                Ok(Gradients { first: found.grad_a, second: found.grad_g })
            }
        }
    }

    fn forward_into(&self, [x, y]: [&View<'_, T>; 2], z: ViewMut<'_, T>) -> Result<()> {
        match self {
            Self::Product(product) => product.forward_into(x.view(), y.view(), z),
            Self::Correlation(correlation) => correlation.forward_into(x.view(), y.view(), z),
        }
    }

    fn adjoint_into(&self, [grad, x, y]: [&View<'_, T>; 3], [to_x, to_y]: [ViewMut<'_, T>; 2]) -> Result<()> {
        match self {
            Self::Product(product) => product.adjoint_into(grad.view(), x.view(), y.view(), to_x, to_y),
            Self::Correlation(correlation) => correlation.adjoint_into(grad.view(), x.view(), y.view(), to_x, to_y),
        }
    }

    fn adjoint_add(&self, [grad, x, y]: [&View<'_, T>; 3], [to_x, to_y]: [ViewMut<'_, T>; 2]) -> Result<()> {
        match self {
            Self::Product(product) => product.adjoint_add(grad.view(), x.view(), y.view(), to_x, to_y),
            Self::Correlation(correlation) => correlation.adjoint_add(grad.view(), x.view(), y.view(), to_x, to_y),
        }
    }

    fn level(&self) -> Level {
        match self {
            Self::Product(product) => product.level(),
            Self::Correlation(correlation) => correlation.level(),
        }
    }

    /// What errors call the results.
    pub fn names(&self) -> [&'static str; 3] {
        match self {
            Self::Product(_) => ["c", "grad_a", "grad_b"],
            Self::Correlation(_) => ["d", "grad_a", "grad_g"],
        }
    }
}

/// The arrays of a problem.
pub struct ProductScene<T> {
    pub first: Strided<T, IxDyn>,
    pub second: Strided<T, IxDyn>,
    pub grad_output: Strided<T, IxDyn>,
    pub random: Random,
}

impl ProductCase {
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.kind {
            Kind::F64 => self.check_scene(level, self.scene::<f64>()),
            _ => self.check_scene(level, self.scene::<f32>()),
        });
    }

    pub fn batch(&self) -> usize {
        self.leading.iter().product()
    }

    /// The matrices of the first sequence, of the second, of the result.
    pub fn matrices(&self) -> [[usize; 2]; 3] {
        let Self { p, m, q, .. } = *self;
        if self.correlation { [[p, m], [p, q], [m, q]] } else { [[p, m], [m, q], [p, q]] }
    }

    fn shape(&self, cotangents: bool, shared: bool, len: usize, matrix: [usize; 2]) -> IxDyn {
        let r = self.cotangents.filter(|_| cotangents);
        let leading: &[usize] = if shared { &[] } else { &self.leading };
        let axes = leading.iter().copied().chain([len]).chain(matrix);
        IxDyn(&r.into_iter().chain(axes).collect::<Vec<_>>())
    }

    pub fn shape_of_first(&self, cotangents: bool) -> IxDyn {
        self.shape(cotangents, false, self.lengths[0], self.matrices()[0])
    }

    pub fn shape_of_second(&self, cotangents: bool) -> IxDyn {
        self.shape(cotangents, self.shared, self.lengths[1], self.matrices()[1])
    }

    pub fn shape_of_output(&self, cotangents: bool) -> IxDyn {
        self.shape(cotangents, false, self.range.len(), self.matrices()[2])
    }

    pub fn operator<T: Referred>(&self, level: Level) -> Either<T> {
        let wide = self.kind == Kind::Accumulated;
        if self.correlation {
            assert_eq!(self.range.start, 0, "a correlation begins with the first");
            let correlation = Correlation::new(self.range.end, self.weights).expect("a number of matrices");
            let correlation = correlation.with_level(level).expect("an available level").with_tuning(self.tuning);
            return Either::Correlation(if wide { correlation.with_f64_accumulation() } else { correlation });
        }
        let product = match self.range.start {
            0 => Product::new(self.range.end, self.weights),
            _ => Product::middle(self.range.clone(), self.weights),
        };
        let product = product.expect("a range").with_level(level).expect("an available level").with_tuning(self.tuning);
        Either::Product(if wide { product.with_f64_accumulation() } else { product })
    }

    pub fn scene<T: Referred>(&self) -> ProductScene<T> {
        let (mut random, weights) = (Random::new(self.seed), self.weights);
        // The magnitude of integers does not depend on it.
        let inner = if self.data == Data::Integers { 2 } else { self.m };
        let mut array = |shape, strides| self.data.array::<T>(weights, shape, inner, strides, &mut random);
        let first = array(self.shape_of_first(false), self.layout.first);
        let second = array(self.shape_of_second(false), self.layout.second);
        let grad_output = array(self.shape_of_output(true), self.layout.grad_output);
        ProductScene { first, second, grad_output, random }
    }

    /// All that is computed, one after another; an error ends it.
    pub fn results<T: Referred>(&self, scene: &ProductScene<T>, level: Level) -> Result<Vec<T>> {
        let either = self.operator(level);
        let (x, y) = (&scene.first.view(), &scene.second.view());
        let z = either.forward(x, y)?;
        let gradients = either.adjoint(&scene.grad_output.view(), x, y)?;
        Ok(z.into_iter().chain(gradients.first).chain(gradients.second).collect())
    }

    /// Of any arrays of the right shapes.
    pub fn check_scene<T: Referred>(&self, level: Level, mut scene: ProductScene<T>) {
        let either = self.operator::<T>(level);
        assert_eq!(either.level(), level);
        let (x, y, grad) = (&scene.first.view(), &scene.second.view(), &scene.grad_output.view());
        let found = either.forward(x, y);
        let expected = match self.kind {
            Kind::Accumulated => Expectation::Rounded(Box::new(WiderProduct::new(self, &scene, level))),
            _ => Expectation::Near(ProductReference::new(self, &scene)),
        };
        match &expected {
            Expectation::Near(reference) => reference.check_forward(&either, &found),
            Expectation::Rounded(wider) => wider.check_forward(&either, &found),
        }
        if let Ok(z) = &found {
            let start = Strided::new(z.raw_dim(), self.layout.output, || number(7.5));
            let mut output = start.clone();
            either.forward_into([x, y], output.view_mut()).expect("as accepted as before");
            assert_same("forward_into", &output.view(), z);
            assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));
        }

        let found = either.adjoint(grad, x, y);
        let added = found.as_ref().ok().map(|found| {
            let random = &mut scene.random;
            let mut drawn = |shape: IxDyn, strides| Strided::new(shape, strides, || number(random.normal()));
            let first = drawn(self.shape_of_first(true), self.layout.grad_first);
            let second = drawn(self.shape_of_second(true), self.layout.grad_second);
            let (mut into_x, mut into_y) = (first.clone(), second.clone());
            either.adjoint_into([grad, x, y], [into_x.view_mut(), into_y.view_mut()]).expect("as accepted as before");
            assert_same("the first of adjoint_into", &into_x.view(), &found.first);
            assert_same("the second of adjoint_into", &into_y.view(), &found.second);
            let (mut added_x, mut added_y) = (first.clone(), second.clone());
            either.adjoint_add([grad, x, y], [added_x.view_mut(), added_y.view_mut()]).expect("as accepted as before");
            for (output, start) in [(&into_x, &first), (&added_x, &first), (&into_y, &second), (&added_y, &second)] {
                assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));
            }
            [first, added_x, second, added_y].map(|array| array.view().to_owned())
        });
        match &expected {
            Expectation::Near(reference) => reference.check_adjoint(&either, &found, added.as_ref()),
            Expectation::Rounded(wider) => wider.check_adjoint(&either, &found, added.as_ref()),
        }
    }
}

enum Expectation<'a, T: Referred> {
    Near(ProductReference<'a, T>),
    /// The results of f64, which have problems of their own.
    Rounded(Box<WiderProduct>),
}
