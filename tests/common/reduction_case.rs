//! A problem for the reductions of gathered rows, from a few small numbers, and what their checks share.

use super::cells::{Cell, assert_cells, assert_same};
use super::gather::{Id, draw_id, first_bad, row};
use super::gather_case::IdType;
use super::groups::Groups;
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::{Value, Values};
use ndarray::{Array2, ArrayD, ArrayRef, ArrayViewMut, Dimension, Ix1};
use pullback::gather::{OutOfRange, Tuning};
use pullback::{Error, Level, Result};

/// How indices fall into groups.
#[derive(Clone, Debug)]
pub enum Form {
    /// (B, P, S)
    Batched([usize; 3]),
    /// (P, S)
    Unbatched([usize; 2]),
    /// The length of each group.
    Ragged(Vec<usize>),
}

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    pub indices: Strides,
    pub x: Strides,
    pub w: Strides,
    pub grad_y: Strides,
    /// Results, or the gradient to the features.
    pub first: Strides,
    /// Arguments, or the gradient to the weights.
    pub second: Strides,
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct Problem {
    pub form: Form,
    /// The rows of the features, or the segments.
    pub rows: usize,
    pub channels: usize,
    pub policy: OutOfRange,
    /// One index in this many lies outside `0..rows`, none where it is 0.
    pub outside: usize,
    /// Whether half of the indices are equal.
    pub hub: bool,
    pub id: IdType,
    /// Whether elements are f64.
    pub double: bool,
    pub values: Values,
    /// The extreme element of an empty group.
    pub empty: f64,
    pub layout: Layout,
    pub tuning: Tuning,
    pub threads: usize,
    pub seed: u64,
}

impl Default for Problem {
    /// Two batches of 3 groups of 4 valid i32 indices into 5 rows of 6 f32, in standard layout, tuned by size.
    fn default() -> Self {
        Self {
            form: Form::Batched([2, 3, 4]),
            rows: 5,
            channels: 6,
            policy: OutOfRange::Error,
            outside: 0,
            hub: false,
            id: IdType::I32,
            double: false,
            values: Values::Spread,
            empty: 0.0,
            layout: Layout::default(),
            tuning: Tuning::default(),
            threads: 2,
            seed: 0,
        }
    }
}

/// A family of operators that a problem can be given to.
pub trait Family {
    /// Runs every form of the operators at a level and compares all cells, inside and around their outputs.
    fn check<T: Value, I: Id>(problem: &Problem, level: Level);
}

impl Problem {
    pub fn check<F: Family>(&self, level: Level) {
        threads::with(self.threads, || match (self.double, self.id) {
            (false, IdType::I32) => F::check::<f32, i32>(self, level),
            (false, IdType::I64) => F::check::<f32, i64>(self, level),
            (false, IdType::U32) => F::check::<f32, u32>(self, level),
            (false, IdType::Usize) => F::check::<f32, usize>(self, level),
            (true, IdType::I32) => F::check::<f64, i32>(self, level),
            (true, IdType::I64) => F::check::<f64, i64>(self, level),
            (true, IdType::U32) => F::check::<f64, u32>(self, level),
            (true, IdType::Usize) => F::check::<f64, usize>(self, level),
        });
    }

    /// The number of indices of each group.
    pub fn lengths(&self) -> Vec<usize> {
        match &self.form {
            Form::Batched([_, count, size]) | Form::Unbatched([count, size]) => vec![*size; *count],
            Form::Ragged(lengths) => lengths.clone(),
        }
    }

    pub fn batches(&self) -> usize {
        if let Form::Batched([batches, ..]) = self.form { batches } else { 1 }
    }

    pub fn indices<I: Id, D: Dimension>(&self, shape: D) -> Strided<I, D> {
        let mut random = Random::new(self.seed);
        Strided::new(shape, self.layout.indices, || draw_id(&mut random, self.rows, self.outside, self.hub))
    }

    /// Where each group starts, and where the last one ends.
    pub fn offsets<I: Id>(&self) -> Strided<I, Ix1> {
        let lengths = self.lengths();
        let number = |n: usize| I::try_from(n as i128).ok().expect("indices are few");
        let strides = Strides { broadcast: 0, ..self.layout.indices };
        let mut offsets = Strided::new(Ix1(lengths.len() + 1), strides, || number(0));
        let mut end = 0;
        for (offset, length) in offsets.view_mut().iter_mut().zip(lengths.into_iter().chain([0])) {
            *offset = number(end);
            end += length;
        }
        offsets
    }

    /// What was made of indices, unless it had to be refused.
    pub fn accepted<O, I: Id, D: Dimension>(
        &self,
        argument: &'static str,
        made: Result<O>,
        indices: &ArrayRef<I, D>,
    ) -> Option<O> {
        match first_bad(indices, self.rows, self.policy) {
            None => Some(made.expect("the indices are good")),
            Some((position, value)) => {
                let bad = Error::IndexOutOfRange { argument, position, value, bound: self.rows };
                assert_eq!(made.err(), Some(bad));
                None
            }
        }
    }

    /// Good indices as the references take them.
    pub fn groups<I: Id, D: Dimension>(&self, indices: &ArrayRef<I, D>) -> Groups {
        let lengths = self.lengths();
        let shape = [self.batches(), lengths.iter().sum()];
        let named = indices.iter().map(|&index| row(index, self.rows, self.policy)).collect();
        Groups { named: Array2::from_shape_vec(shape, named).expect("a row an index"), lengths, rows: self.rows }
    }

    /// The data of the problem, drawn in turn.
    pub fn draw<T: Value>(&self) -> impl FnMut() -> T {
        let (mut random, values) = (Random::new(!self.seed), self.values);
        move || values.draw(&mut random)
    }
}

/// The elements of an array in the shape that the references take.
pub fn flat<T: Copy, D: Dimension, const N: usize>(array: &ArrayRef<T, D>, shape: [usize; N]) -> ArrayD<T> {
    ArrayD::from_shape_vec(&shape[..], array.iter().copied().collect()).expect("as many elements")
}

/// The elements of `found`, in the shape of `expected`, are as expected.
#[track_caller]
pub fn assert_flat<T: Value, D: Dimension>(what: &str, found: &ArrayRef<T, D>, expected: &ArrayD<Cell<T>>) {
    let flat = ArrayD::from_shape_vec(expected.shape(), found.iter().copied().collect());
    assert_cells(what, &flat.unwrap_or_else(|_| panic!("{what} has shape {:?}", found.shape())), expected);
}

/// `write` makes the cells of an output like `start` the expected ones and touches nothing else.
#[track_caller]
pub fn check_into<T: Value, D: Dimension>(
    what: &str,
    start: &Strided<T, D>,
    expected: &ArrayD<Cell<T>>,
    write: impl FnOnce(ArrayViewMut<'_, T, D>) -> Result<()>,
) {
    let mut output = start.clone();
    write(output.view_mut()).expect("the shapes are right");
    assert_flat(what, &output.view(), expected);
    assert_same("the memory around", &output.outside(T::zero()), &start.outside(T::zero()));
}

/// [`check_into`] of arguments.
#[track_caller]
pub fn check_arguments<D: Dimension>(
    strides: Strides,
    shape: D,
    expected: &ArrayD<u32>,
    write: impl FnOnce(ArrayViewMut<'_, u32, D>),
) {
    let start = Strided::new(shape, strides, || 77);
    let mut output = start.clone();
    write(output.view_mut());
    assert!(output.view().iter().eq(expected), "arguments {:?}, not {expected:?}", output.view());
    assert_eq!(output.outside(0), start.outside(0), "the memory around");
}
