//! A problem for scans, from a few small numbers, and what its check compares.

use super::cells::assert_same;
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::triconv_bounds::number;
use super::triconv_scan_reference::{ScanReference, WiderScan};
use super::wide::Referred;
use ndarray::{ArrayD, ArrayViewMut, IxDyn};
use pullback::triconv::{Method, Scan, Side, Tuning, Weights};
use pullback::{Level, Result};

pub const WEIGHTS: [Weights; 3] = [Weights::Binomial, Weights::Taylor, Weights::Plain];
pub const SIDES: [Side; 2] = [Side::Right, Side::Left];

/// Elements, and what sums are of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    F32,
    F64,
    /// Elements of f32, sums of f64.
    Accumulated,
}

pub const KINDS: [Kind; 3] = [Kind::F32, Kind::F64, Kind::Accumulated];

/// What matrices look like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Data {
    /// Few of them not 0, so that results stay small.
    Integers,
    Flat,
    /// `64^-k`
    Decaying,
    /// `k! 8^-k` or, where weights do not grow, `2^k`.
    Growing,
    /// `2^-k`
    Halving,
    /// `k!`, over 8.
    Factorial,
    /// Entries of any magnitude.
    Mixed,
    /// A NaN or an infinite entry in one of the matrices.
    Special,
}

impl Data {
    pub const ALL: [Self; 7] =
        [Self::Integers, Self::Flat, Self::Decaying, Self::Growing, Self::Halving, Self::Mixed, Self::Special];

    /// An entry of matrix `k` where `inner` of them are multiplied and added up.
    pub fn draw(self, weights: Weights, k: usize, inner: usize, random: &mut Random) -> f64 {
        let usual = random.normal() / (2.0 * (inner as f64).sqrt());
        let power = |base: f64| base.powi(k as i32);
        match self {
            Self::Integers => {
                let sign = [1.0, -1.0, 2.0][random.below(3)];
                if random.below(inner) < 2 { sign } else { 0.0 }
            }
            Self::Special if weights == Weights::Binomial => usual * power(1.0 / 64.0),
            Self::Flat | Self::Special => usual,
            Self::Decaying => usual * power(1.0 / 64.0),
            Self::Growing if weights == Weights::Binomial => {
                (1..=k).fold(usual, |product, factor| product * factor as f64 / 8.0)
            }
            Self::Growing => usual * power(2.0),
            Self::Halving => usual * power(0.5),
            Self::Factorial => (1..=k).fold(usual / 8.0, |product, factor| product * factor as f64),
            Self::Mixed => usual * 2f64.powi(random.below(16) as i32 - 12),
        }
    }

    /// An array of one or more sequences, the last two axes those of a matrix. Where it is broadcast, all matrices are like the first.
    pub fn array<T: Referred>(
        self,
        weights: Weights,
        shape: IxDyn,
        inner: usize,
        strides: Strides,
        random: &mut Random,
    ) -> Strided<T, IxDyn> {
        if strides.broadcast != 0 {
            return Strided::new(shape, strides, || number(self.draw(weights, 0, inner, random)));
        }
        let mut array = Strided::new(shape, strides, T::zero);
        let axis = array.view().ndim().checked_sub(3);
        for (at, cell) in array.view_mut().indexed_iter_mut() {
            *cell = number(self.draw(weights, axis.map_or(0, |axis| at[axis]), inner, random));
        }
        let len = array.view().len();
        if self == Self::Special && len > 0 && random.below(2) > 0 {
            let special = random.one_of(&[T::nan(), T::infinity(), T::neg_infinity(), T::nan()]);
            *array.view_mut().iter_mut().nth(random.below(len)).expect("below the length") = special;
        }
        array
    }
}

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanLayout {
    /// Of `A_0`, or of it and every S.
    pub s: Strides,
    pub b: Strides,
    pub a: Strides,
    pub grad_a: Strides,
    pub grad_s: Strides,
    pub grad_b: Strides,
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct ScanCase {
    pub n: usize,
    pub p: usize,
    pub m: usize,
    /// The axes before those of a sequence.
    pub leading: Vec<usize>,
    /// Whether one sequence B is that of all.
    pub shared: bool,
    /// R, if there is such an axis.
    pub cotangents: Option<usize>,
    pub weights: Weights,
    pub side: Side,
    pub method: Method,
    /// Whether there are S.
    pub sources: bool,
    pub kind: Kind,
    pub data: Data,
    pub layout: ScanLayout,
    pub tuning: Tuning,
    pub threads: usize,
    pub seed: u64,
}

impl Default for ScanCase {
    /// Five steps of two sequences of 2 x 3 matrices in f64, in standard layout, tuned by size.
    fn default() -> Self {
        Self {
            n: 5,
            p: 2,
            m: 3,
            leading: vec![2],
            shared: false,
            cotangents: None,
            weights: Weights::Binomial,
            side: Side::Right,
            method: Method::Direct,
            sources: false,
            kind: Kind::F64,
            data: Data::Flat,
            layout: ScanLayout::default(),
            tuning: Tuning::default(),
            threads: 2,
            seed: 0,
        }
    }
}

/// The arrays of a problem.
pub struct Scene<T> {
    pub s: Strided<T, IxDyn>,
    pub b: Strided<T, IxDyn>,
    pub grad_a: Strided<T, IxDyn>,
    pub random: Random,
}

impl ScanCase {
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.kind {
            Kind::F64 => self.check_scene(level, self.scene::<f64>()),
            _ => self.check_scene(level, self.scene::<f32>()),
        });
    }

    pub fn batch(&self) -> usize {
        self.leading.iter().product()
    }

    pub fn rows_and_columns(&self) -> [usize; 2] {
        if self.side == Side::Right { [self.p, self.m] } else { [self.m, self.p] }
    }

    /// Of `A`, with the axis R where there is one.
    pub fn shape_of_a(&self, cotangents: bool) -> IxDyn {
        let r = self.cotangents.filter(|_| cotangents);
        let axes = self.leading.iter().copied().chain([self.n + 1]).chain(self.rows_and_columns());
        IxDyn(&r.into_iter().chain(axes).collect::<Vec<_>>())
    }

    pub fn shape_of_b(&self, cotangents: bool) -> IxDyn {
        let r = self.cotangents.filter(|_| cotangents);
        let leading: &[usize] = if self.shared { &[] } else { &self.leading };
        let axes = leading.iter().copied().chain([self.n, self.m, self.m]);
        IxDyn(&r.into_iter().chain(axes).collect::<Vec<_>>())
    }

    fn shape_of_s(&self) -> IxDyn {
        if self.sources {
            return self.shape_of_a(false);
        }
        IxDyn(&self.leading.iter().copied().chain(self.rows_and_columns()).collect::<Vec<_>>())
    }

    pub fn operator<T: Referred>(&self, level: Level) -> Scan<T> {
        let scan = Scan::new(self.n, self.weights).expect("a number of steps").with_side(self.side);
        let scan = scan.with_method(self.method).expect("a tolerance").with_level(level).expect("an available level");
        let scan = scan.with_tuning(self.tuning);
        if self.kind == Kind::Accumulated { scan.with_f64_accumulation() } else { scan }
    }

    pub fn scene<T: Referred>(&self) -> Scene<T> {
        let (mut random, weights) = (Random::new(self.seed), self.weights);
        let first = match self.data {
            Data::Integers | Data::Mixed | Data::Special => self.data,
            _ => Data::Flat,
        };
        // The magnitude of integers does not depend on it.
        let inner = if first == Data::Integers { 2 } else { 1 };
        let s = first.array(weights, self.shape_of_s(), inner, self.layout.s, &mut random);
        let b = self.data.array(weights, self.shape_of_b(false), self.m, self.layout.b, &mut random);
        let grad_a = first.array(weights, self.shape_of_a(true), inner, self.layout.grad_a, &mut random);
        Scene { s, b, grad_a, random }
    }

    fn forward<T: Referred>(&self, scan: &Scan<T>, scene: &Scene<T>) -> Result<ArrayD<T>> {
        let (s, b) = (scene.s.view(), scene.b.view());
        if self.sources { scan.forward_with(s, b) } else { scan.forward(s, b) }
    }

    fn forward_into<T: Referred>(&self, scan: &Scan<T>, scene: &Scene<T>, a: ArrayViewMut<'_, T, IxDyn>) -> Result<()> {
        let (s, b) = (scene.s.view(), scene.b.view());
        if self.sources { scan.forward_with_into(s, b, a) } else { scan.forward_into(s, b, a) }
    }

    /// All that is computed, one after another; an error ends it.
    pub fn results<T: Referred>(&self, scene: &Scene<T>, level: Level) -> Result<Vec<T>> {
        let scan = self.operator(level);
        let a = self.forward(&scan, scene)?;
        let gradients = scan.adjoint(scene.grad_a.view(), a.view(), scene.b.view())?;
        Ok(a.into_iter().chain(gradients.grad_s).chain(gradients.grad_b).collect())
    }

    /// Of any arrays of the right shapes.
    pub fn check_scene<T: Referred>(&self, level: Level, mut scene: Scene<T>) {
        let scan = self.operator::<T>(level);
        assert_eq!(scan.level(), level);
        let found = self.forward(&scan, &scene);
        let expected = match self.kind {
            Kind::Accumulated => Expectation::Rounded(Box::new(WiderScan::new(self, &scene, level))),
            _ => Expectation::Near(ScanReference::new(self, &scene)),
        };
        match &expected {
            Expectation::Near(reference) => reference.check_forward(&found),
            Expectation::Rounded(wider) => wider.check_forward(&found),
        }
        let Ok(a) = found else { return };
        let start = Strided::new(self.shape_of_a(false), self.layout.a, || number(7.5));
        let mut output = start.clone();
        self.forward_into(&scan, &scene, output.view_mut()).expect("as accepted as before");
        assert_same("a of forward_into", &output.view(), &a);
        assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));

        // As it lies in the memory of the output.
        let (grad_a, a, b) = (&scene.grad_a.view(), &output.view(), &scene.b.view());
        let found = scan.adjoint(grad_a.view(), a.view(), b.view());
        let added = found.as_ref().ok().map(|found| {
            let random = &mut scene.random;
            let mut drawn = |shape: IxDyn, strides| Strided::new(shape, strides, || number(random.normal()));
            let grad_s = drawn(self.shape_of_a(true), self.layout.grad_s);
            let grad_b = drawn(self.shape_of_b(true), self.layout.grad_b);
            let (mut into_s, mut into_b) = (grad_s.clone(), grad_b.clone());
            let (to_s, to_b) = (into_s.view_mut(), into_b.view_mut());
            scan.adjoint_into(grad_a.view(), a.view(), b.view(), to_s, to_b).expect("as accepted as before");
            assert_same("grad_s of adjoint_into", &into_s.view(), &found.grad_s);
            assert_same("grad_b of adjoint_into", &into_b.view(), &found.grad_b);
            let (mut added_s, mut added_b) = (grad_s.clone(), grad_b.clone());
            let (to_s, to_b) = (added_s.view_mut(), added_b.view_mut());
            scan.adjoint_add(grad_a.view(), a.view(), b.view(), to_s, to_b).expect("as accepted as before");
            for (output, start) in [(&into_s, &grad_s), (&added_s, &grad_s), (&into_b, &grad_b), (&added_b, &grad_b)] {
                assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));
            }
            [grad_s, added_s, grad_b, added_b].map(|array| array.view().to_owned())
        });
        match &expected {
            Expectation::Near(reference) => reference.check_adjoint(&a.to_owned(), &found, added.as_ref()),
            Expectation::Rounded(wider) => wider.check_adjoint(&a.to_owned(), &found, added.as_ref()),
        }
    }
}

enum Expectation<'a, T: Referred> {
    Near(ScanReference<'a, T>),
    /// The results of f64, which have problems of their own.
    Rounded(Box<WiderScan>),
}
