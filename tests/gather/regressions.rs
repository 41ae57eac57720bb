//! Inputs that broke other libraries, each with the right answer.

use crate::common::gather::{REDUCTIONS, by, operator, random_ids};
use crate::common::levels;
use crate::common::values::Values;
use ndarray::{Array2, Array3, Array4, ArrayView3, Axis, Ix3, array, s};
use pullback::Error;
use pullback::gather::{Gather, OutOfRange, index_points, index_points_adjoint};

/// Runs `test` with an operator at every level with each reduction.
fn operators(indices: ArrayView3<'_, i32>, rows: usize, policy: OutOfRange, test: impl Fn(&Gather<Ix3>)) {
    levels::each(|level| {
        for reduction in REDUCTIONS {
            test(&operator(level, &indices, rows, policy).with_tuning(by(reduction)));
        }
    });
}

/// A ball query writes -1 where it finds fewer neighbours than asked for; Python reads the last row there.
#[test]
fn minus_one_of_a_ball_query() {
    let indices = array![[[0, -1]]];
    let unaccepted = Error::IndexOutOfRange { argument: "indices", position: vec![0, 0, 1], value: -1, bound: 2 };
    assert_eq!(Gather::new(indices.view(), 2, OutOfRange::Error).err(), Some(unaccepted));
    let error = Gather::new(array![[0, -1]].view(), 2, OutOfRange::Error).err().unwrap();
    assert_eq!(error.to_string(), "indices[0, 1] = -1 is outside 0..2");
    operators(indices.view(), 2, OutOfRange::Skip { fill: 9.0 }, |gather| {
        assert_eq!(gather.forward(array![[[1.0], [2.0]]].view()).unwrap(), array![[[[1.0], [9.0]]]]);
        assert_eq!(gather.adjoint(array![[[[3.0], [4.0]]]].view()).unwrap(), array![[[3.0], [0.0]]]);
    });
}

#[test]
fn index_three_of_three_rows_agrees_in_both_directions() {
    let (indices, x, grad_y) = (array![[[3, 0]]], array![[[1.0], [2.0], [4.0]]], array![[[[10.0], [20.0]]]]);
    let bad = Error::IndexOutOfRange { argument: "indices", position: vec![0, 0, 0], value: 3, bound: 3 };
    assert_eq!(index_points(x.view(), indices.view()), Err(bad.clone()));
    assert_eq!(index_points_adjoint(grad_y.view(), indices.view(), 3), Err(bad));
    operators(indices.view(), 3, OutOfRange::Skip { fill: 0.0 }, |gather| {
        assert_eq!(gather.forward(x.view()).unwrap(), array![[[[0.0], [1.0]]]]);
        assert_eq!(gather.adjoint(grad_y.view()).unwrap(), array![[[20.0], [0.0], [0.0]]]);
    });
    operators(indices.view(), 3, OutOfRange::Clamp, |gather| {
        assert_eq!(gather.forward(x.view()).unwrap(), array![[[[4.0], [1.0]]]]);
        assert_eq!(gather.adjoint(grad_y.view()).unwrap(), array![[[20.0], [0.0], [10.0]]]);
    });
}

#[test]
fn strided_indices_are_their_contiguous_copies() {
    let memory = random_ids([4, 6, 5], 7).mapv(|row| row as i32);
    let row = memory.slice(s![..1, .., ..]);
    let mut reversed = memory.view();
    (0..3).for_each(|axis| reversed.invert_axis(Axis(axis)));
    let views = [
        ("broadcast", row.broadcast([4, 6, 5]).unwrap()),
        ("reversed", reversed),
        ("transposed", memory.view().permuted_axes([2, 0, 1])),
        ("every second", memory.slice(s![..;2, 1..;2, ..;-2])),
    ];
    for (name, indices) in views {
        let x = Values::Spread.array::<f32, _>([indices.shape()[0], 7, 3], 1);
        let copy = Array3::from_shape_vec(indices.raw_dim(), indices.iter().copied().collect()).unwrap();
        let y = index_points(x.view(), indices.view()).unwrap();
        assert_eq!(y, index_points(x.view(), copy.view()).unwrap(), "{name}");
        let grad_x = index_points_adjoint(y.view(), indices.view(), 7).unwrap();
        assert_eq!(grad_x, index_points_adjoint(y.view(), copy.view(), 7).unwrap(), "{name}");
        for ((at, &index), row) in copy.indexed_iter().zip(y.rows()) {
            assert_eq!(row, x.slice(s![at.0, index, ..]), "{name}");
        }
    }
}

#[test]
fn equal_indices_in_two_batches_do_not_collide() {
    let x = array![[[1.0], [2.0]], [[3.0], [4.0]]];
    operators(array![[[1, 1]], [[1, 1]]].view(), 2, OutOfRange::Error, |gather| {
        assert_eq!(gather.forward(x.view()).unwrap(), array![[[[2.0], [2.0]]], [[[4.0], [4.0]]]]);
        let grad_x = gather.adjoint(array![[[[1.0], [10.0]]], [[[100.0], [1000.0]]]].view()).unwrap();
        assert_eq!(grad_x, array![[[0.0], [11.0]], [[0.0], [1100.0]]]);
    });
}

#[test]
fn no_channels() {
    operators(Array3::ones([4, 2, 3]).view(), 5, OutOfRange::Error, |gather| {
        assert_eq!(gather.forward(Array3::<f32>::zeros([4, 5, 0]).view()).unwrap().shape(), [4, 2, 3, 0]);
        assert_eq!(gather.adjoint(Array4::<f32>::zeros([4, 2, 3, 0]).view()).unwrap().shape(), [4, 5, 0]);
    });
}

#[test]
fn no_indices() {
    operators(Array3::zeros([4, 0, 3]).view(), 5, OutOfRange::Error, |gather| {
        assert_eq!(gather.forward(Array3::<f32>::ones([4, 5, 2]).view()).unwrap().shape(), [4, 0, 3, 2]);
        let grad_y = Array4::<f32>::zeros([4, 0, 3, 2]);
        assert_eq!(gather.adjoint(grad_y.view()).unwrap(), Array3::zeros([4, 5, 2]));
        let mut grad_x = Array3::from_elem([4, 5, 2], 7.0);
        gather.adjoint_add(grad_y.view(), grad_x.view_mut()).unwrap();
        assert_eq!(grad_x, Array3::from_elem([4, 5, 2], 7.0));
        gather.adjoint_into(grad_y.view(), grad_x.view_mut()).unwrap();
        assert_eq!(grad_x, Array3::zeros([4, 5, 2]));
    });
}

#[test]
fn no_batch() {
    operators(Array3::zeros([0, 2, 3]).view(), 5, OutOfRange::Error, |gather| {
        assert_eq!(gather.forward(Array3::<f32>::ones([0, 5, 2]).view()).unwrap().shape(), [0, 2, 3, 2]);
        assert_eq!(gather.adjoint(Array4::<f32>::ones([0, 2, 3, 2]).view()).unwrap().shape(), [0, 5, 2]);
    });
}

#[test]
fn no_rows() {
    operators(Array3::zeros([4, 0, 3]).view(), 0, OutOfRange::Clamp, |gather| {
        assert_eq!(gather.forward(Array3::<f32>::ones([4, 0, 2]).view()).unwrap().shape(), [4, 0, 3, 2]);
        assert_eq!(gather.adjoint(Array4::<f32>::ones([4, 0, 3, 2]).view()).unwrap().shape(), [4, 0, 2]);
    });
}

/// An assignment through indices keeps the last of equal ones.
#[test]
fn equal_indices_add() {
    operators(array![[[0, 0]]].view(), 1, OutOfRange::Error, |gather| {
        assert_eq!(gather.forward(array![[[0.1]]].view()).unwrap(), array![[[[0.1], [0.1]]]]);
        assert_eq!(gather.adjoint(array![[[[0.2], [0.3]]]].view()).unwrap(), array![[[0.5]]]);
    });
}

/// Its negation, and its product with anything, overflow.
#[test]
fn the_least_i32() {
    let (indices, rows) = (array![[[i32::MIN, 0]]], i32::MAX as usize);
    let error = Gather::new(indices.view(), rows, OutOfRange::Error).err().unwrap();
    assert_eq!(error.to_string(), "indices[0, 0, 0] = -2147483648 is outside 0..2147483647");
    operators(indices.view(), 2, OutOfRange::Clamp, |gather| {
        assert_eq!(gather.forward(array![[[1.0], [2.0]]].view()).unwrap(), array![[[[1.0], [1.0]]]]);
    });
    operators(indices.view(), 2, OutOfRange::Skip { fill: 3.0 }, |gather| {
        assert_eq!(gather.forward(array![[[1.0], [2.0]]].view()).unwrap(), array![[[[3.0], [1.0]]]]);
    });
}

#[test]
fn outputs_that_are_strided_slices() {
    let (x, indices) = (array![[[1.0, 2.0], [3.0, 4.0]]], array![[[1, 0, 1]]]);
    operators(indices.view(), 2, OutOfRange::Error, |gather| {
        let mut wide = Array2::from_elem([3, 5], -1.0);
        let y = wide.slice_mut(s![..;-1, 1..;2]).insert_axis(Axis(0)).insert_axis(Axis(0));
        gather.forward_into(x.view(), y).unwrap();
        assert_eq!(
            wide,
            array![[-1.0, 3.0, -1.0, 4.0, -1.0], [-1.0, 1.0, -1.0, 2.0, -1.0], [-1.0, 3.0, -1.0, 4.0, -1.0]]
        );

        let mut tall = Array2::from_elem([2, 3], -1.0);
        let grad_x = tall.slice_mut(s![.., ..2]).reversed_axes().insert_axis(Axis(0));
        gather.adjoint_add(array![[[[1.0, 10.0], [2.0, 20.0], [4.0, 40.0]]]].view(), grad_x).unwrap();
        assert_eq!(tall, array![[1.0, 4.0, -1.0], [19.0, 49.0, -1.0]]);
    });
}
