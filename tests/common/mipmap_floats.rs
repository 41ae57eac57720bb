//! Pyramids of numbers as a chain of 2 x 2 x 2 windows, one level after the other, and a problem with its check.

use super::cells::{Cell as Bits, assert_cells, assert_same};
use super::mipmap::{Cell, cells_of, shape_of};
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::{Value, Values};
use ndarray::{Array3, ArrayBase, ArrayView3, ArrayViewMut3, Ix3};
use pullback::mipmap::{MaxPyramid, MeanPyramid, SumPyramid, Tuning, full_levels};
use pullback::{Level, Result};

fn above(shape: Cell) -> Cell {
    shape.map(|n| n.div_ceil(2))
}

fn array<A>(shape: Cell, mut value: impl FnMut(Cell) -> A) -> Array3<A> {
    Array3::from_shape_fn(shape, |(x, y, z)| value([x, y, z]))
}

/// The children of a cell by their numbers in the window; `None` beyond the edge.
fn children(below: Cell, cell: Cell) -> [Option<Cell>; 8] {
    [0, 1, 2, 3, 4, 5, 6, 7].map(|child| {
        let at = [2 * cell[0] + child / 4, 2 * cell[1] + child / 2 % 2, 2 * cell[2] + child % 2];
        (0..3).all(|axis| at[axis] < below[axis]).then_some(at)
    })
}

/// The number of the child that is the maximum of its window: the first NaN, else the first that no other is above.
fn argument<T: Value>(below: &Array3<T>, cell: Cell) -> usize {
    let window = children(shape_of(below), cell);
    let real = || window.iter().enumerate().filter_map(|(child, at)| at.map(|at| (child, below[at])));
    let nan = real().find(|(_, x)| x.is_nan());
    let first = || real().find(|(_, x)| real().all(|(_, other)| other <= *x));
    nan.or_else(first).expect("a window has a child").0
}

fn sum<T: Value>(below: &Array3<T>, cell: Cell) -> T {
    let window = children(shape_of(below), cell).map(|at| at.map(|at| below[at]));
    let add = |a: Option<T>, b: Option<T>| match (a, b) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    };
    let [a, b, c, d, e, f, g, h] = window;
    add(add(add(a, b), add(c, d)), add(add(e, f), add(g, h))).expect("a window has a child")
}

/// How many voxels of level 0 lie under a cell of level `k`.
fn voxels(shape: Cell, k: usize, cell: Cell) -> usize {
    (0..3).map(|axis| ((cell[axis] + 1) << k).min(shape[axis]) - (cell[axis] << k)).product()
}

fn count<T: Value>(shape: Cell, k: usize, cell: Cell) -> T {
    T::from_usize(voxels(shape, k, cell)).expect("a count")
}

/// What is made of the children of a window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Family {
    Max,
    Mean,
    Sum,
}

impl Family {
    pub const ALL: [Self; 3] = [Self::Max, Self::Mean, Self::Sum];
}

/// Levels 1 and up, and for maxima the number of the child that each is of.
pub fn forward<T: Value>(family: Family, x: &Array3<T>, levels: usize) -> (Vec<Array3<T>>, Vec<Array3<u8>>) {
    let (mut found, mut arguments, mut last) = (vec![], vec![], x.clone());
    for k in 1..levels {
        let shape = above(shape_of(&last));
        if family == Family::Max {
            let chosen = array(shape, |cell| argument(&last, cell));
            last = array(shape, |cell| last[children(shape_of(&last), cell)[chosen[cell]].expect("it is real")]);
            arguments.push(chosen.mapv(|child| child as u8));
            found.push(last.clone());
        } else {
            last = array(shape, |cell| sum(&last, cell));
            let mean = |cell: Cell| last[cell] / count(shape_of(x), k, cell);
            found.push(if family == Family::Mean { array(shape, mean) } else { last.clone() });
        }
    }
    (found, arguments)
}

/// The gradient of level 0.
pub fn adjoint<T: Value>(
    family: Family,
    shape: Cell,
    levels: usize,
    cotangents: &[Option<Array3<T>>],
    arguments: &[Array3<u8>],
) -> Array3<T> {
    let mut shapes = vec![shape];
    (1..levels).for_each(|k| shapes.push(above(shapes[k - 1])));
    let mut gradient: Option<Array3<T>> = None;
    for k in (0..levels).rev() {
        let cotangent = cotangents.get(k).and_then(Option::as_ref);
        let own = |cell: Cell| match (family, cotangent) {
            (_, None) => None,
            (Family::Mean, Some(own)) => Some(own[cell] / count(shape, k, cell)),
            (_, Some(own)) => Some(own[cell]),
        };
        let routed = |cell: Cell| {
            let (gradient, parent) = (gradient.as_ref()?, cell.map(|at| at / 2));
            let child = 4 * (cell[0] % 2) + 2 * (cell[1] % 2) + cell[2] % 2;
            let taken = family != Family::Max || usize::from(arguments[k][parent]) == child;
            Some(if taken { gradient[parent] } else { T::zero() })
        };
        gradient = Some(array(shapes[k], |cell| match (own(cell), routed(cell)) {
            (Some(own), Some(routed)) => own + routed,
            (one, other) => one.or(other).unwrap_or(T::zero()),
        }));
    }
    gradient.expect("there is a level")
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct FloatsCase {
    pub family: Family,
    pub shape: Cell,
    pub levels: Option<usize>,
    pub values: Values,
    /// Bit k: level k has a cotangent.
    pub cotangents: u16,
    pub double: bool,
    pub tuning: Tuning,
    /// Of x, of the cotangents, of the gradient.
    pub strides: [Strides; 3],
    pub threads: usize,
    pub seed: u64,
}

impl Default for FloatsCase {
    /// All cotangents of the maxima of 9 x 7 x 21 numbers in f32.
    fn default() -> Self {
        Self {
            family: Family::Max,
            shape: [9, 7, 21],
            levels: None,
            values: Values::Adversarial,
            cotangents: u16::MAX,
            double: false,
            tuning: Tuning::default(),
            strides: [Strides::default(); 3],
            threads: 2,
            seed: 0,
        }
    }
}

fn drawn<T: Value>(values: Values, shape: Cell, strides: Strides, random: &mut Random) -> Strided<T, Ix3> {
    let [x, y, z] = shape;
    Strided::new(Ix3(x, y, z), strides, || values.draw(random))
}

impl FloatsCase {
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    fn levels(&self) -> usize {
        let all = full_levels(self.shape);
        self.levels.map_or(all, |levels| levels.clamp(1, all))
    }

    fn check_element<T: Value>(&self, level: Level) {
        let mut random = Random::new(self.seed);
        let x = drawn::<T>(self.values, self.shape, self.strides[0], &mut random);
        let (expected, arguments) = forward(self.family, &x.view().to_owned(), self.levels());
        let mut shape = self.shape;
        let mut cotangents = vec![];
        for k in 0..self.levels() {
            let cotangent = drawn::<T>(self.values, shape, self.strides[1], &mut random);
            cotangents.push((self.cotangents >> k & 1 == 1).then_some(cotangent));
            shape = above(shape);
        }
        // Those that are missing at the end may be left out.
        while cotangents.last().is_some_and(Option::is_none) && random.below(2) == 0 {
            cotangents.pop();
        }
        let owned: Vec<_> = cotangents.iter().map(|c| c.as_ref().map(|c| c.view().to_owned())).collect();
        let gradient = adjoint(self.family, self.shape, self.levels(), &owned, &arguments);
        let views: Vec<_> = cotangents.iter().map(|c| c.as_ref().map(Strided::view)).collect();
        let mut grad_x = drawn::<T>(Values::Spread, self.shape, self.strides[2], &mut random);
        let outside = grad_x.outside(T::zero());
        self.compare(level, x.view(), &expected, &arguments, &views, &gradient, grad_x.view_mut());
        assert_same("memory around grad_x", &grad_x.outside(T::zero()), &outside);
    }

    #[allow(clippy::too_many_arguments, reason = "what is found of everything that is expected")]
    fn compare<T: Value>(
        &self,
        level: Level,
        x: ArrayView3<'_, T>,
        expected: &[Array3<T>],
        arguments: &[Array3<u8>],
        cotangents: &[Option<ArrayView3<'_, T>>],
        gradient: &Array3<T>,
        mut grad_x: ArrayViewMut3<'_, T>,
    ) {
        let what = format!("{:?} of {:?}", self.family, self.shape);
        let assert_levels = |found: &[Array3<T>]| {
            assert_eq!(found.len(), expected.len(), "levels of {what}");
            for (k, (found, expected)) in found.iter().zip(expected).enumerate() {
                // Maxima are copies.
                let bits = if self.family == Family::Max { Bits::Copied } else { Bits::Computed };
                assert_cells(&format!("level {}, {what}", k + 1), found, &expected.mapv(bits).into_dyn());
            }
        };
        let assert_gradient = |found: &Array3<T>| {
            assert_cells(&format!("gradient, {what}"), found, &gradient.mapv(Bits::Computed).into_dyn());
        };
        let mut sum = grad_x.to_owned();
        sum.zip_mut_with(gradient, |sum, &grad| *sum = *sum + grad);
        let assert_sum = |found: &ArrayViewMut3<'_, T>| {
            assert_cells(&format!("added gradient, {what}"), found, &sum.mapv(Bits::Computed).into_dyn());
        };
        // As the gradient lies, and the bytes the other way round.
        let lain = |level: &Array3<T>| Strided::new(level.raw_dim(), self.strides[2], || T::nan());
        let mut outputs: Vec<_> = expected.iter().map(lain).collect();
        let mut levels: Vec<_> = outputs.iter_mut().map(Strided::view_mut).collect();
        match self.family {
            Family::Max => {
                let made: Result<MaxPyramid<T>> = MaxPyramid::new(self.shape);
                let pyramid = made.and_then(|made| made.with_levels(self.levels()));
                let pyramid = pyramid.and_then(|made| made.with_level(level)).expect("good").with_tuning(self.tuning);
                let found = pyramid.forward(x).expect("a good array");
                assert_levels(&found.levels);
                assert_eq!(found.arguments, arguments, "arguments of {what}");
                let lain = |a: &Array3<u8>| Strided::new(a.raw_dim(), self.strides[0].of_an_output(), || 255);
                let mut outputs: Vec<_> = arguments.iter().map(lain).collect();
                let mut bytes: Vec<_> = outputs.iter_mut().map(Strided::view_mut).collect();
                pyramid.forward_into(x, &mut levels, &mut bytes).expect("good arrays");
                assert_eq!(bytes, arguments, "arguments of {what}");
                assert_gradient(&pyramid.adjoint(cotangents, &bytes).expect("good cotangents"));
                pyramid.adjoint_add(cotangents, arguments, grad_x.view_mut()).expect("good cotangents");
                assert_sum(&grad_x);
                pyramid.adjoint_into(cotangents, arguments, grad_x.view_mut()).expect("good cotangents");
            }
            Family::Mean => {
                let made: Result<MeanPyramid<T>> = MeanPyramid::new(self.shape);
                let pyramid = made.and_then(|made| made.with_levels(self.levels()));
                let pyramid = pyramid.and_then(|made| made.with_level(level)).expect("good").with_tuning(self.tuning);
                assert_levels(&pyramid.forward(x).expect("a good array"));
                pyramid.forward_into(x, &mut levels).expect("good arrays");
                assert_gradient(&pyramid.adjoint(cotangents).expect("good cotangents"));
                pyramid.adjoint_add(cotangents, grad_x.view_mut()).expect("good cotangents");
                assert_sum(&grad_x);
                pyramid.adjoint_into(cotangents, grad_x.view_mut()).expect("good cotangents");
            }
            Family::Sum => {
                let made: Result<SumPyramid<T>> = SumPyramid::new(self.shape);
                let pyramid = made.and_then(|made| made.with_levels(self.levels()));
                let pyramid = pyramid.and_then(|made| made.with_level(level)).expect("good").with_tuning(self.tuning);
                assert_levels(&pyramid.forward(x).expect("a good array"));
                pyramid.forward_into(x, &mut levels).expect("good arrays");
                assert_gradient(&pyramid.adjoint(cotangents).expect("good cotangents"));
                pyramid.adjoint_add(cotangents, grad_x.view_mut()).expect("good cotangents");
                assert_sum(&grad_x);
                pyramid.adjoint_into(cotangents, grad_x.view_mut()).expect("good cotangents");
            }
        }
        assert_levels(&levels.iter().map(ArrayBase::to_owned).collect::<Vec<_>>());
        assert_gradient(&grad_x.to_owned());
    }
}

/// Every cell once, at every level: the counts are those of the definition.
pub fn assert_counts(shape: Cell) {
    let ones = Array3::from_elem(shape, 1.0f64);
    for (k, level) in (1..).zip(forward(Family::Sum, &ones, full_levels(shape)).0) {
        for cell in cells_of([0; 3], shape_of(&level)) {
            assert_eq!(level[cell], voxels(shape, k, cell) as f64, "level {k}, {cell:?}");
        }
    }
}
