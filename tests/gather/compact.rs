//! The gradient of touched rows alone, and counts, against plain loops.

use crate::common::cells::{Cell, assert_cells};
use crate::common::gather::{Id, adjoint};
use crate::common::levels;
use crate::common::problems::check_random;
use crate::common::reduction_case::{Family, Form, Problem};
use crate::common::reduction_strategy::problems;
use crate::common::reduction_sweeps as sweeps;
use crate::common::strides::Strided;
use crate::common::values::Value;
use ndarray::{Array, Array2, ArrayD, Ix3, Ix4, array, s};
use pullback::Level;
use pullback::gather::{Gather, OutOfRange};

struct Compact;

impl Family for Compact {
    fn check<T: Value, I: Id>(problem: &Problem, level: Level) {
        let (rows, channels, lengths) = (problem.rows, problem.channels, problem.lengths());
        let shape = match problem.form {
            Form::Batched([b, p, s]) => Ix3(b, p, s),
            Form::Unbatched([p, s]) => Ix3(1, p, s),
            Form::Ragged(_) => Ix3(lengths.len(), 5, 1),
        };
        let indices = problem.indices::<I, _>(shape);
        let made = Gather::new(indices.view(), rows, problem.policy);
        let Some(op) = problem.accepted("indices", made, &indices.view()) else { return };
        let op = op.with_level(level).expect("the level is available").with_tuning(problem.tuning);
        let shape = Ix4(shape[0], shape[1], shape[2], channels);
        let grad_y = Strided::new(shape, problem.layout.grad_y, problem.draw::<T>());

        let mut counts = Array2::<u32>::zeros([shape[0], rows]);
        for ((batch, ..), &index) in indices.view().indexed_iter() {
            if let Some(row) = crate::common::gather::row(index, rows, problem.policy) {
                counts[[batch, row]] += 1;
            }
        }
        assert_eq!(op.counts().unwrap(), counts);

        let whole = adjoint(&grad_y.view(), &indices.view(), problem.policy, rows);
        let (mut offsets, mut touched, mut gradients) = (vec![0], Vec::new(), Vec::<Cell<T>>::new());
        for (batch, counts) in counts.outer_iter().enumerate() {
            for (row, _) in counts.indexed_iter().filter(|(_, n)| **n > 0) {
                touched.push(row as u32);
                gradients.extend(whole.slice(s![batch, row, ..]));
            }
            offsets.push(touched.len());
        }
        let expected = ArrayD::from_shape_vec(vec![touched.len(), channels], gradients).expect("a row each");
        let compact = op.adjoint_compact(grad_y.view()).expect("the shape is right");
        assert_eq!(compact.offsets.to_vec(), offsets);
        assert_eq!(compact.rows.to_vec(), touched);
        assert_cells("gradients", &compact.gradients, &expected);
    }
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(1000, &problems(), |problem| problem.check::<Compact>(level)));
}

#[test]
fn every_width() {
    sweeps::every_width::<Compact>();
}

#[test]
fn every_size() {
    sweeps::every_size::<Compact>();
}

#[test]
fn every_tuning() {
    sweeps::every_tuning::<Compact>();
}

#[test]
fn every_number_of_threads() {
    sweeps::every_number_of_threads::<Compact>();
}

#[test]
fn without_a_batch_axis() {
    let gather = Gather::unbatched(array![[3, 1], [-1, 3]].view(), 5, OutOfRange::Skip { fill: 0.0 }).unwrap();
    assert_eq!(gather.counts().unwrap(), array![0, 1, 0, 2, 0]);
    let compact = gather.adjoint_compact(array![[[1.0], [2.0]], [[4.0], [8.0]]].view()).unwrap();
    assert_eq!((compact.offsets, compact.rows), (array![0, 2], array![1, 3]));
    assert_eq!(compact.gradients, array![[2.0], [9.0]]);
}

/// In f32 they would stop at 2^24.
#[test]
fn counts_above_two_to_the_24() {
    let n = (1 << 24) + 3;
    let index = ndarray::arr0(1u32);
    let gather = Gather::unbatched(index.broadcast([n]).unwrap(), 2, OutOfRange::Error).unwrap();
    assert_eq!(gather.counts().unwrap(), array![0, n as u32]);
    let empty: Array<f32, _> = Array::zeros([n, 0]);
    let compact = gather.adjoint_compact(empty.view()).unwrap();
    assert_eq!((compact.rows, compact.gradients.dim()), (array![1], (1, 0)));
}
