//! Inputs that broke other libraries' reductions of gathered rows, each with the right answer.

use crate::common::gather::{REDUCTIONS, by, random_ids};
use crate::common::levels;
use crate::common::values::Values;
use ndarray::{Array1, Array2, Array3, ArrayView3, Axis, array, s};
use pullback::Error;
use pullback::gather::{Extremum, Gather, Index, Linear, OutOfRange, Pooled, Segments, Ties, Weighted};

const SKIP: OutOfRange = OutOfRange::Skip { fill: 9.0 };

/// Runs `test` with both operators at every level with each reduction.
fn operators<I: Index>(indices: ArrayView3<'_, I>, rows: usize, policy: OutOfRange, test: impl Fn(&Weighted, &Pooled)) {
    levels::each(|level| {
        for tuning in REDUCTIONS.map(by) {
            let weighted = Weighted::new(indices, rows, policy).unwrap().with_level(level).unwrap();
            let pooled = Pooled::new(indices, rows, policy).unwrap().with_level(level).unwrap();
            test(&weighted.with_tuning(tuning), &pooled.with_tuning(tuning));
        }
    });
}

/// Runs `test` on segments at every level with each reduction.
fn segments(make: impl Fn() -> Segments, test: impl Fn(&Segments)) {
    levels::each(|level| {
        REDUCTIONS.into_iter().for_each(|r| test(&make().with_level(level).unwrap().with_tuning(by(r))));
    });
}

fn bad_index(argument: &'static str, position: &[usize], value: i128, bound: usize) -> Option<Error> {
    Some(Error::IndexOutOfRange { argument, position: position.to_vec(), value, bound })
}

/// A ball query writes -1 where it finds fewer neighbours than asked for.
#[test]
fn minus_one_of_a_ball_query() {
    let indices = array![[[0, -1]]];
    let bad = bad_index("indices", &[0, 0, 1], -1, 2);
    assert_eq!(Weighted::new(indices.view(), 2, OutOfRange::Error).err(), bad);
    assert_eq!(Pooled::new(indices.view(), 2, OutOfRange::Error).err(), bad);
    operators(indices.view(), 2, SKIP, |weighted, pooled| {
        let (x, w) = (array![[[2.0], [f64::NAN]]], array![[[3.0, f64::NAN]]]);
        assert_eq!(weighted.forward(x.view(), w.view()).unwrap(), array![[[6.0]]]);
        let found = weighted.adjoint(array![[[5.0]]].view(), x.view(), w.view()).unwrap();
        assert_eq!(found.grad_x, array![[[15.0], [0.0]]]);
        assert_eq!(found.grad_w.mapv(f64::to_bits), array![[[10f64.to_bits(), 0]]]);
        for linear in [Linear::Sum, Linear::Mean] {
            assert_eq!(pooled.forward(linear, x.view()).unwrap(), array![[[2.0]]]);
            assert_eq!(pooled.adjoint(linear, array![[[5.0]]].view()).unwrap(), array![[[5.0], [0.0]]]);
        }
        for which in [Extremum::Max, Extremum::Min] {
            let found = pooled.extremes(which, x.view()).unwrap();
            assert_eq!((found.values, found.arguments), (array![[[2.0]]], array![[[0]]]));
        }
    });
}

/// Nor is 0 times NaN what padding adds, and what has only padding is empty.
#[test]
fn padding_alone_is_an_empty_group() {
    operators(array![[[-1, 5], [i64::MAX, i64::MIN]]].view(), 1, SKIP, |weighted, pooled| {
        let (x, nan) = (array![[[f32::NAN]]], Array3::from_elem([1, 2, 2], f32::NAN));
        let zero = Array3::from_elem([1, 2, 1], 0u32);
        assert_eq!(weighted.forward(x.view(), nan.view()).unwrap().mapv(f32::to_bits), zero);
        let grad_y = Array3::from_elem([1, 2, 1], f32::NAN);
        let found = weighted.adjoint(grad_y.view(), x.view(), nan.view()).unwrap();
        assert_eq!(found.grad_x.mapv(f32::to_bits), array![[[0]]]);
        assert!(found.grad_w.iter().all(|w| w.to_bits() == 0));
        for linear in [Linear::Sum, Linear::Mean] {
            assert_eq!(pooled.forward(linear, x.view()).unwrap().mapv(f32::to_bits), zero);
            assert_eq!(pooled.adjoint(linear, grad_y.view()).unwrap(), array![[[0.0]]]);
        }
        let found = pooled.extremes(Extremum::Max, x.view()).unwrap();
        assert_eq!(found.values.mapv(f32::to_bits), zero);
        assert_eq!(found.arguments, Array3::from_elem([1, 2, 1], u32::MAX));
        for ties in [Ties::First(found.arguments.view()), Ties::Even(Extremum::Max, x.view())] {
            assert_eq!(pooled.extremes_adjoint(grad_y.view(), ties).unwrap(), array![[[0.0]]]);
        }
    });
}

/// The data are a x, a = [1, 1, NaN]: the gradient of the sum of segment 0 to the dropped row is 0, not NaN.
#[test]
fn a_dropped_row_of_nan() {
    segments(
        || Segments::new(array![0, 1, -1].view(), 2, SKIP).unwrap(),
        |op| {
            let x = array![[1.0], [1.0], [f64::NAN]];
            let grad_y = array![[1.0], [0.0]];
            assert_eq!(op.forward(Linear::Sum, x.view()).unwrap(), array![[1.0], [1.0]]);
            let bits = |gradient: Array2<f64>| assert_eq!(gradient[[2, 0]].to_bits(), 0);
            assert_eq!(op.adjoint(Linear::Sum, grad_y.view()).unwrap(), array![[1.0], [0.0], [0.0]]);
            bits(op.adjoint(Linear::Sum, grad_y.view()).unwrap());
            bits(op.adjoint(Linear::Mean, grad_y.view()).unwrap());
            bits(op.product_adjoint(grad_y.view(), x.view()).unwrap());
            bits(op.extremes_adjoint(grad_y.view(), Ties::Even(Extremum::Max, x.view())).unwrap());
            let y = op.log_sum_exp(x.view()).unwrap();
            assert_eq!(y, array![[1.0], [1.0]]);
            bits(op.log_sum_exp_adjoint(grad_y.view(), x.view(), y.view()).unwrap());
            let y = op.softmax(x.view()).unwrap();
            assert_eq!(y, array![[1.0], [1.0], [0.0]]);
            bits(op.softmax_adjoint(x.view(), y.view()).unwrap());
        },
    );
}

#[test]
fn index_three_of_three_rows_agrees_in_both_directions() {
    let (indices, x, grad_y) = (array![[[3, 0]]], array![[[1.0], [2.0], [4.0]]], array![[[10.0]]]);
    let w = array![[[2.0, 3.0]]];
    let bad = bad_index("indices", &[0, 0, 0], 3, 3);
    assert_eq!(Weighted::new(indices.view(), 3, OutOfRange::Error).err(), bad);
    assert_eq!(Pooled::new(indices.view(), 3, OutOfRange::Error).err(), bad);
    operators(indices.view(), 3, SKIP, |weighted, pooled| {
        assert_eq!(weighted.forward(x.view(), w.view()).unwrap(), array![[[3.0]]]);
        assert_eq!(weighted.adjoint_x(grad_y.view(), w.view()).unwrap(), array![[[30.0], [0.0], [0.0]]]);
        assert_eq!(weighted.adjoint_w(grad_y.view(), x.view()).unwrap(), array![[[0.0, 10.0]]]);
        assert_eq!(pooled.forward(Linear::Mean, x.view()).unwrap(), array![[[1.0]]]);
        assert_eq!(pooled.adjoint(Linear::Mean, grad_y.view()).unwrap(), array![[[10.0], [0.0], [0.0]]]);
        assert_eq!(pooled.extremes(Extremum::Max, x.view()).unwrap().arguments, array![[[1]]]);
    });
    operators(indices.view(), 3, OutOfRange::Clamp, |weighted, pooled| {
        assert_eq!(weighted.forward(x.view(), w.view()).unwrap(), array![[[11.0]]]);
        assert_eq!(weighted.adjoint_x(grad_y.view(), w.view()).unwrap(), array![[[30.0], [0.0], [20.0]]]);
        assert_eq!(weighted.adjoint_w(grad_y.view(), x.view()).unwrap(), array![[[40.0, 10.0]]]);
        assert_eq!(pooled.forward(Linear::Mean, x.view()).unwrap(), array![[[2.5]]]);
        assert_eq!(pooled.adjoint(Linear::Mean, grad_y.view()).unwrap(), array![[[5.0], [0.0], [5.0]]]);
        assert_eq!(pooled.extremes(Extremum::Max, x.view()).unwrap().arguments, array![[[0]]]);
    });
}

#[test]
fn unsorted_ids_given_as_offsets() {
    let ids = array![-9, -1024, 0];
    let least =
        |position, value, least, most| Some(Error::Offset { argument: "offsets", position, value, least, most });
    let rows = array![0, 0, 0];
    assert_eq!(Segments::from_offsets(ids.view(), 3).err(), least(0, -9, 0, 0));
    assert_eq!(Weighted::ragged(rows.view(), ids.view(), 1, SKIP).err(), least(0, -9, 0, 0));
    assert_eq!(Pooled::ragged(rows.view(), ids.view(), 1, SKIP).err(), least(0, -9, 0, 0));
    let unsorted = array![0, 2, 1, 3];
    assert_eq!(Segments::from_offsets(unsorted.view(), 3).err(), least(2, 1, 2, 3));
    assert_eq!(Pooled::ragged(rows.view(), unsorted.view(), 1, SKIP).err(), least(2, 1, 2, 3));
}

/// Its negation, and its product with anything, overflow.
#[test]
fn the_least_i32_of_many_segments() {
    let (ids, count) = (array![0, i32::MIN], (1 << 31) - 1);
    assert_eq!(Segments::new(ids.view(), count, OutOfRange::Error).err(), bad_index("ids", &[1], -1 << 31, count));
    segments(
        || Segments::new(ids.view(), 2, SKIP).unwrap(),
        |op| assert_eq!(op.forward(Linear::Sum, array![[1.0], [5.0]].view()).unwrap(), array![[1.0], [0.0]]),
    );
    segments(
        || Segments::new(ids.view(), 2, OutOfRange::Clamp).unwrap(),
        |op| assert_eq!(op.forward(Linear::Sum, array![[1.0], [5.0]].view()).unwrap(), array![[6.0], [0.0]]),
    );
}

#[test]
fn strided_indices_are_their_contiguous_copies() {
    let memory = random_ids([4, 6, 5], 7).mapv(|row| row as i32);
    let row = memory.slice(s![..1, .., ..]);
    let mut reversed = memory.view();
    (0..3).for_each(|axis| reversed.invert_axis(Axis(axis)));
    let views = [
        row.broadcast([4, 6, 5]).unwrap(),
        reversed,
        memory.view().permuted_axes([2, 0, 1]),
        memory.slice(s![..;2, 1..;2, ..;-2]),
    ];
    for indices in views {
        let (b, p, s) = indices.dim();
        let copy = Array3::from_shape_vec(indices.raw_dim(), indices.iter().copied().collect()).unwrap();
        let (x, w) = (Values::Spread.array::<f32, _>([b, 7, 3], 1), Values::Spread.array([b, p, s], 2));
        let [found, expected] = [indices, copy.view()].map(|indices| {
            let weighted = Weighted::new(indices, 7, OutOfRange::Error).unwrap();
            let pooled = Pooled::new(indices, 7, OutOfRange::Error).unwrap();
            let y = weighted.forward(x.view(), w.view()).unwrap();
            let max = pooled.extremes(Extremum::Max, x.view()).unwrap();
            (weighted.adjoint(y.view(), x.view(), w.view()).unwrap(), max)
        });
        assert_eq!(found, expected);

        // Ids and offsets along one axis, backwards, forwards and all the same.
        let (ids, rows) = (indices.slice(s![0, .., 0]), p);
        let x = Values::Spread.array::<f32, _>([rows, 3], 3);
        let [found, expected] = [ids, ids.to_owned().view()]
            .map(|ids| Segments::new(ids, 7, OutOfRange::Error).unwrap().forward(Linear::Sum, x.view()).unwrap());
        assert_eq!(found, expected);
    }
    let descending = array![4, 3, 1, 0];
    let op = Segments::from_offsets(descending.slice(s![..;-1]), 4).unwrap();
    assert_eq!(op.counts().unwrap(), array![1, 2, 1]);
    let one = ndarray::arr0(2i64);
    assert_eq!(Segments::from_lengths(one.broadcast([3]).unwrap(), 6).unwrap().counts().unwrap(), array![2, 2, 2]);
}

#[test]
fn equal_indices_in_two_batches_do_not_collide() {
    let indices = array![[[1, 1]], [[1, 1]]];
    operators(indices.view(), 2, OutOfRange::Error, |weighted, pooled| {
        let (x, w) = (array![[[1.0], [2.0]], [[3.0], [4.0]]], array![[[1.0, 2.0]], [[10.0, 20.0]]]);
        assert_eq!(weighted.forward(x.view(), w.view()).unwrap(), array![[[6.0]], [[120.0]]]);
        let grad_y = array![[[1.0]], [[100.0]]];
        let found = weighted.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
        assert_eq!(found.grad_x, array![[[0.0], [3.0]], [[0.0], [3000.0]]]);
        assert_eq!(found.grad_w, array![[[2.0, 2.0]], [[400.0, 400.0]]]);
        assert_eq!(pooled.forward(Linear::Sum, x.view()).unwrap(), array![[[4.0]], [[8.0]]]);
        assert_eq!(pooled.adjoint(Linear::Sum, grad_y.view()).unwrap(), array![[[0.0], [2.0]], [[0.0], [200.0]]]);
        let max = pooled.extremes(Extremum::Max, x.view()).unwrap();
        let first = pooled.extremes_adjoint(grad_y.view(), Ties::First(max.arguments.view())).unwrap();
        assert_eq!(first, array![[[0.0], [1.0]], [[0.0], [100.0]]]);
    });
    let gather = Gather::new(indices.view(), 2, OutOfRange::Error).unwrap();
    assert_eq!(gather.counts().unwrap(), array![[0, 2], [0, 2]]);
    let compact = gather.adjoint_compact(array![[[[1.0], [2.0]]], [[[10.0], [20.0]]]].view()).unwrap();
    assert_eq!((compact.offsets, compact.rows), (array![0, 1, 2], array![1, 1]));
    assert_eq!(compact.gradients, array![[3.0], [30.0]]);
}

#[test]
fn no_channels_no_indices_no_batch() {
    for (shape, channels) in [([4, 2, 3], 0), ([4, 0, 3], 2), ([4, 2, 0], 2), ([0, 2, 3], 2)] {
        let [b, p, s] = shape;
        operators(Array3::<i32>::ones(shape).view(), 5, OutOfRange::Error, |weighted, pooled| {
            let (x, w, grad_y) =
                (Array3::<f32>::ones([b, 5, channels]), Array3::ones(shape), Array3::ones([b, p, channels]));
            let zeros = Array3::<f32>::zeros([b, p, channels]);
            assert_eq!(weighted.forward(x.view(), w.view()).unwrap(), zeros);
            let found = weighted.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
            assert_eq!(found.grad_x, Array3::zeros([b, 5, channels]));
            assert_eq!(found.grad_w, Array3::zeros([b, p, s]));
            for linear in [Linear::Sum, Linear::Mean] {
                assert_eq!(pooled.forward(linear, x.view()).unwrap(), zeros);
                assert_eq!(pooled.adjoint(linear, grad_y.view()).unwrap(), found.grad_x);
            }
            let max = pooled.extremes(Extremum::Max, x.view()).unwrap();
            assert_eq!(max.values, zeros);
            assert_eq!(max.arguments, Array3::from_elem([b, p, channels], u32::MAX));
            for ties in [Ties::First(max.arguments.view()), Ties::Even(Extremum::Max, x.view())] {
                assert_eq!(pooled.extremes_adjoint(grad_y.view(), ties).unwrap(), found.grad_x);
            }
        });
    }
    let gather = Gather::new(Array3::<i32>::ones([4, 0, 3]).view(), 5, OutOfRange::Error).unwrap();
    assert_eq!(gather.counts().unwrap(), Array2::zeros([4, 5]));
    let compact = gather.adjoint_compact(ndarray::Array4::<f32>::zeros([4, 0, 3, 2]).view()).unwrap();
    assert_eq!((compact.offsets, compact.gradients.dim()), (Array1::zeros(5), (0, 2)));
    segments(
        || Segments::new(Array1::<i32>::zeros(0).view(), 0, OutOfRange::Clamp).unwrap(),
        |op| {
            let none = Array2::<f64>::zeros([0, 3]);
            assert_eq!(op.forward(Linear::Sum, none.view()).unwrap(), none);
            assert_eq!(op.product_adjoint(none.view(), none.view()).unwrap(), none);
            assert_eq!(op.softmax(none.view()).unwrap(), none);
            assert_eq!(op.log_sum_exp(none.view()).unwrap(), none);
        },
    );
}

#[test]
fn lengths_with_an_empty_last_segment() {
    segments(
        || Segments::from_lengths(array![1, 0, 5, 4, 0].view(), 10).unwrap().with_empty(-7.0),
        |op| {
            assert_eq!((op.len(), op.counts().unwrap()), (5, array![1, 0, 5, 4, 0]));
            let x = Array2::from_shape_fn([10, 1], |(row, _)| row as f64);
            assert_eq!(op.forward(Linear::Sum, x.view()).unwrap(), array![[0.0], [0.0], [15.0], [30.0], [0.0]]);
            assert_eq!(op.forward(Linear::Mean, x.view()).unwrap(), array![[0.0], [0.0], [3.0], [7.5], [0.0]]);
            assert_eq!(op.product(x.view()).unwrap(), array![[0.0], [1.0], [120.0], [3024.0], [1.0]]);
            let max = op.extremes(Extremum::Max, x.view()).unwrap();
            assert_eq!(max.values, array![[0.0], [-7.0], [5.0], [9.0], [-7.0]]);
            assert_eq!(max.arguments, array![[0], [u32::MAX], [5], [9], [u32::MAX]]);
            let y = op.log_sum_exp(x.view()).unwrap();
            assert_eq!((y[[1, 0]], y[[4, 0]]), (f64::NEG_INFINITY, f64::NEG_INFINITY));
            let empty = Segments::from_lengths(array![1, 0, 5, 4, 0].view(), 10).unwrap();
            assert_eq!(empty.extremes(Extremum::Min, x.view()).unwrap().values[[4, 0]].to_bits(), 0);
        },
    );
}

#[test]
fn two_equal_elements_of_a_maximum() {
    let (x, grad_y) = (array![[2.0], [2.0]], array![[1.0]]);
    segments(
        || Segments::new(array![0, 0].view(), 1, OutOfRange::Error).unwrap(),
        |op| {
            for which in [Extremum::Max, Extremum::Min] {
                let found = op.extremes(which, x.view()).unwrap();
                assert_eq!((&found.values, &found.arguments), (&array![[2.0]], &array![[0]]));
                let first = op.extremes_adjoint(grad_y.view(), Ties::First(found.arguments.view())).unwrap();
                assert_eq!(first, array![[1.0], [0.0]]);
                let even = op.extremes_adjoint(grad_y.view(), Ties::Even(which, x.view())).unwrap();
                assert_eq!(even, array![[0.5], [0.5]]);
            }
        },
    );
    operators(array![[[0, 1]]].view(), 2, OutOfRange::Error, |_, pooled| {
        let (x, grad_y) = (x.view().insert_axis(Axis(0)), grad_y.view().insert_axis(Axis(0)));
        for which in [Extremum::Max, Extremum::Min] {
            let found = pooled.extremes(which, x).unwrap();
            let first = pooled.extremes_adjoint(grad_y, Ties::First(found.arguments.view())).unwrap();
            assert_eq!(first, array![[[1.0], [0.0]]]);
            let even = pooled.extremes_adjoint(grad_y, Ties::Even(which, x)).unwrap();
            assert_eq!(even, array![[[0.5], [0.5]]]);
        }
    });
}

#[test]
fn products_with_no_zero_with_one_and_with_several() {
    segments(
        || Segments::new(array![0, 0, 0].view(), 1, OutOfRange::Error).unwrap(),
        |op| {
            let x = array![[2.0, 0.0, 0.0, 0.0], [5.0, 2.0, 0.0, 0.0], [3.0, 3.0, 3.0, 0.0]];
            let gradient = op.product_adjoint(array![[1.0, 1.0, 1.0, 1.0]].view(), x.view()).unwrap();
            assert_eq!(gradient, array![[15.0, 6.0, 0.0, 0.0], [6.0, 0.0, 0.0, 0.0], [10.0, 0.0, 0.0, 0.0]]);
            assert_eq!(op.product(x.view()).unwrap(), array![[30.0, 0.0, 0.0, 0.0]]);
        },
    );
}

/// An assignment through indices keeps the last of equal ones.
#[test]
fn equal_indices_add() {
    operators(array![[[0], [0]]].view(), 1, OutOfRange::Error, |weighted, pooled| {
        let (x, w, grad_y) = (array![[[0.1]]], array![[[1.0], [1.0]]], array![[[0.2], [0.3]]]);
        assert_eq!(weighted.forward(x.view(), w.view()).unwrap(), array![[[0.1], [0.1]]]);
        assert_eq!(weighted.adjoint_x(grad_y.view(), w.view()).unwrap(), array![[[0.5]]]);
        assert_eq!(pooled.adjoint(Linear::Sum, grad_y.view()).unwrap(), array![[[0.5]]]);
        let max = pooled.extremes(Extremum::Max, x.view()).unwrap();
        let first = pooled.extremes_adjoint(grad_y.view(), Ties::First(max.arguments.view())).unwrap();
        assert_eq!(first, array![[[0.5]]]);
    });
}

#[test]
fn outputs_that_are_strided_slices() {
    operators(array![[[1, 0], [0, 0], [1, 1]]].view(), 2, OutOfRange::Error, |weighted, pooled| {
        let (x, w) = (array![[[1.0, 2.0], [3.0, 4.0]]], array![[[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]]]);
        let mut wide = Array2::from_elem([3, 5], -1.0);
        let y = wide.slice_mut(s![..;-1, 1..;2]).insert_axis(Axis(0));
        weighted.forward_into(x.view(), w.view(), y).unwrap();
        let expected = array![[-1.0, 3.0, -1.0, 4.0, -1.0], [-1.0, 2.0, -1.0, 4.0, -1.0], [-1.0, 4.0, -1.0, 6.0, -1.0]];
        assert_eq!(wide, expected);

        let (mut tall, mut weights) = (Array2::from_elem([2, 3], -1.0), Array2::from_elem([3, 4], -1.0));
        let grad_x = tall.slice_mut(s![.., ..2]).reversed_axes().insert_axis(Axis(0));
        let grad_w = weights.slice_mut(s![.., ..;2]).insert_axis(Axis(0));
        let grad_y = array![[[1.0, 0.0], [0.0, 1.0], [10.0, 10.0]]];
        weighted.adjoint_into(grad_y.view(), x.view(), w.view(), grad_x, grad_w).unwrap();
        assert_eq!(tall, array![[1.0, 11.0, -1.0], [2.0, 10.0, -1.0]]);
        assert_eq!(weights, array![[3.0, -1.0, 1.0, -1.0], [2.0, -1.0, 2.0, -1.0], [70.0, -1.0, 70.0, -1.0]]);

        let (mut wide, mut places) = (Array2::from_elem([3, 3], -1.0), Array2::from_elem([2, 3], 7));
        let values = wide.slice_mut(s![.., ..;2]).insert_axis(Axis(0));
        let arguments = places.view_mut().reversed_axes().insert_axis(Axis(0));
        pooled.extremes_into(Extremum::Max, x.view(), values, arguments).unwrap();
        assert_eq!(wide, array![[3.0, -1.0, 4.0], [1.0, -1.0, 2.0], [3.0, -1.0, 4.0]]);
        assert_eq!(places, array![[0, 0, 0], [0, 0, 0]]);
    });
}
