//! A problem for the row gather, from a few small numbers, and its check against the references.

use super::cells::{Cell, assert_cells};
use super::gather::{Id, adjoint, adjoint_add, draw_id, first_bad, forward};
use super::random::Random;
use super::strides::{Strided, Strides};
use super::threads;
use super::values::{Value, Values};
use ndarray::{ArrayD, ArrayView, ArrayViewD, Axis, Dimension, Ix2, Ix3, IxDyn};
use pullback::gather::{Gather, OutOfRange, Tuning};
use pullback::{Error, Level, Result};

/// The type of the indices.
#[derive(Clone, Copy, Debug)]
pub enum IdType {
    I32,
    I64,
    U32,
    Usize,
}

/// The strides of every array.
#[derive(Clone, Copy, Debug, Default)]
pub struct Layout {
    pub indices: Strides,
    pub x: Strides,
    pub y: Strides,
    pub grad_y: Strides,
    pub grad_x: Strides,
}

/// A problem. The data follow from `seed`.
#[derive(Clone, Debug)]
pub struct Case {
    /// Whether the first axis of the indices is the batch.
    pub batched: bool,
    /// The shape of the indices.
    pub shape: Vec<usize>,
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
    pub layout: Layout,
    pub tuning: Tuning,
    pub threads: usize,
    pub seed: u64,
}

impl Default for Case {
    /// Two batches of 3 x 4 valid i32 indices into 5 rows of 6 f32, in standard layout, tuned by size.
    fn default() -> Self {
        Self {
            batched: true,
            shape: vec![2, 3, 4],
            rows: 5,
            channels: 6,
            policy: OutOfRange::Error,
            outside: 0,
            hub: false,
            id: IdType::I32,
            double: false,
            values: Values::Spread,
            layout: Layout::default(),
            tuning: Tuning::default(),
            threads: 2,
            seed: 0,
        }
    }
}

impl Case {
    /// Runs every form of the operator at a level and compares all cells, inside and around its outputs.
    pub fn check(&self, level: Level) {
        threads::with(self.threads, || match self.double {
            false => self.check_element::<f32>(level),
            true => self.check_element::<f64>(level),
        });
    }

    fn check_element<T: Value>(&self, level: Level) {
        match self.id {
            IdType::I32 => self.check_index::<T, i32>(level),
            IdType::I64 => self.check_index::<T, i64>(level),
            IdType::U32 => self.check_index::<T, u32>(level),
            IdType::Usize => self.check_index::<T, usize>(level),
        }
    }

    fn check_index<T: Value, I: Id>(&self, level: Level) {
        let mut random = Random::new(self.seed);
        let ids = Strided::new(IxDyn(&self.shape), self.layout.indices, || {
            draw_id::<I>(&mut random, self.rows, self.outside, self.hub)
        });
        let indices = ids.view();
        if self.batched {
            let gather = Gather::new(indices.view(), self.rows, self.policy);
            self.check_made::<T, _, _>(gather, Ix3(self.shape[0], self.rows, self.channels), indices, level);
        } else {
            let gather = Gather::unbatched(indices.view(), self.rows, self.policy);
            self.check_made::<T, _, _>(gather, Ix2(self.rows, self.channels), indices, level);
        }
    }

    fn check_made<T: Value, I: Id, X: Dimension>(
        &self,
        made: Result<Gather<IxDyn, X>>,
        features: X,
        indices: ArrayViewD<'_, I>,
        level: Level,
    ) {
        if let Some((position, value)) = first_bad(&indices, self.rows, self.policy) {
            let bad = Error::IndexOutOfRange { argument: "indices", position, value, bound: self.rows };
            assert_eq!(made.err(), Some(bad));
            return;
        }
        let gather = made.and_then(|gather| gather.with_level(level)).expect("the indices are good");
        let gather = gather.with_tuning(self.tuning);
        let indices = self.batch(indices);
        let mut random = Random::new(!self.seed);
        let mut draw = || self.values.draw(&mut random);
        let gathered = IxDyn(&[&self.shape[..], &[self.channels]].concat());

        let x = Strided::<T, X>::new(features.clone(), self.layout.x, &mut draw);
        let expected = forward(&self.batch(x.view()), &indices, self.policy);
        let y = gather.forward(x.view()).expect("the shape is right");
        assert_cells("forward", &self.batch(y.view()), &expected);
        let y = Strided::new(gathered.clone(), self.layout.y, &mut draw);
        self.check_into("forward_into", y, &expected, |y| gather.forward_into(x.view(), y.view_mut()));

        let grad_y = Strided::new(gathered, self.layout.grad_y, &mut draw);
        let expected = adjoint(&self.batch(grad_y.view()), &indices, self.policy, self.rows);
        let grad_x = gather.adjoint(grad_y.view()).expect("the shape is right");
        assert_cells("adjoint", &self.batch(grad_x.view()), &expected);
        let grad_x = Strided::new(features, self.layout.grad_x, &mut draw);
        let sums = adjoint_add(&self.batch(grad_y.view()), &indices, self.policy, &self.batch(grad_x.view()));
        self.check_into("adjoint_into", grad_x.clone(), &expected, |gx| {
            gather.adjoint_into(grad_y.view(), gx.view_mut())
        });
        self.check_into("adjoint_add", grad_x, &sums, |gx| gather.adjoint_add(grad_y.view(), gx.view_mut()));
    }

    /// `write` makes the cells of `output` the expected ones and touches nothing else.
    fn check_into<T: Value, D: Dimension>(
        &self,
        what: &str,
        mut output: Strided<T, D>,
        expected: &ArrayD<Cell<T>>,
        write: impl FnOnce(&mut Strided<T, D>) -> Result<()>,
    ) {
        let around = output.outside(T::zero()).mapv(Cell::Copied).into_dyn();
        write(&mut output).expect("the shapes are right");
        assert_cells(what, &self.batch(output.view()), expected);
        assert_cells("the memory around", &output.outside(T::zero()), &around);
    }

    /// The array as the references take it.
    fn batch<'a, T, D: Dimension>(&self, array: ArrayView<'a, T, D>) -> ArrayViewD<'a, T> {
        let array = array.into_dyn();
        if self.batched { array } else { array.insert_axis(Axis(0)) }
    }
}
