//! The adjoint is the transpose of forward, the gradient of what uses it, and a sum in ascending order.

use crate::common::gather::{REDUCTIONS, by, operator};
use crate::common::levels;
use crate::common::random::Random;
use crate::common::values::Values;
use ndarray::{Array, Array2, Array3, Dimension, Ix3, array};
use pullback::Level;
use pullback::gather::{Gather, OutOfRange};

/// Operators with more and with fewer outputs than inputs, under each policy. A fill of 0 keeps the operator linear.
fn operators(level: Level) -> impl Iterator<Item = (Gather<Ix3>, [usize; 3], [usize; 4])> {
    let sizes = [[2, 3, 9, 2, 17], [3, 40, 2, 1, 5], [1, 7, 7, 1, 33], [2, 1, 30, 3, 4]];
    let policies = [OutOfRange::Error, OutOfRange::Skip { fill: 0.0 }, OutOfRange::Clamp];
    let all = sizes.into_iter().flat_map(move |size| policies.map(|policy| (size, policy)));
    let all = all.flat_map(|(size, policy)| REDUCTIONS.map(|reduction| (size, policy, reduction)));
    all.map(move |([batches, rows, points, samples, channels], policy, reduction)| {
        let mut random = Random::new(rows as u64);
        let margin = if policy == OutOfRange::Error { 0 } else { 2 };
        let indices = Array3::from_shape_simple_fn([batches, points, samples], || {
            random.below(rows + 2 * margin) as i64 - margin as i64
        });
        let gather = operator(level, &indices, rows, policy).with_tuning(by(reduction));
        (gather, [batches, rows, channels], [batches, points, samples, channels])
    })
}

fn dot<D: Dimension>(a: &Array<f64, D>, b: &Array<f64, D>) -> f64 {
    assert_eq!(a.shape(), b.shape());
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn the_transpose_of_forward_exactly_on_integers() {
    levels::each(|level| {
        for (gather, features, gathered) in operators(level) {
            let x = Values::Integers.array(features, 1);
            let y = Values::Integers.array(gathered, 2);
            let forward = dot(&gather.forward(x.view()).unwrap(), &y);
            assert_eq!(forward, dot(&x, &gather.adjoint(y.view()).unwrap()));
            assert_ne!(forward, 0.0, "a product of 0 says nothing");
        }
    });
}

#[test]
fn the_transpose_of_forward_to_rounding() {
    levels::each(|level| {
        for (gather, features, gathered) in operators(level) {
            let x = Values::Spread.array::<f64, _>(features, 3);
            let y = Values::Spread.array::<f64, _>(gathered, 4);
            let z = gather.forward(x.view()).unwrap();
            // Each of the n products is added in another order: n roundings relative to the sum of magnitudes.
            let bound = y.len() as f64 * f64::EPSILON * dot(&z.abs(), &y.abs());
            assert!((dot(&z, &y) - dot(&x, &gather.adjoint(y.view()).unwrap())).abs() <= bound);
        }
    });
}

#[test]
fn the_gradient_of_a_loss_by_central_differences() {
    /// Half the size of a step; the loss is cubic in the features, so a difference is off by the square of it.
    const STEP: f64 = 1e-3;
    let cubic = |y: &Array<f64, _>| y.mapv(|y: f64| y * y * y / 3.0).sum();
    levels::each(|level| {
        for (gather, features, gathered) in operators(level) {
            let mut x = Values::Integers.array::<f64, _>(features, 5) / 4.0;
            let gradient = gather.adjoint(gather.forward(x.view()).unwrap().mapv(|y| y * y).view()).unwrap();
            // Every third feature.
            for at in ndarray::indices(features).into_iter().step_by(3) {
                let middle = x[at];
                let mut loss = |shift: f64| {
                    x[at] = middle + shift;
                    let loss = cubic(&gather.forward(x.view()).unwrap());
                    x[at] = middle;
                    loss
                };
                let difference = (loss(STEP) - loss(-STEP)) / (2.0 * STEP);
                let uses = gathered[1] * gathered[2];
                let bound = uses as f64 * STEP * STEP;
                assert!((gradient[at] - difference).abs() <= bound, "{at:?}: {} and {difference}", gradient[at]);
            }
        }
    });
}

#[test]
fn sums_start_at_the_callers_values_and_ascend() {
    // From 3: 8. In descending order it would be 6, and 11 with the start added at the end.
    let indices = array![[1, 0, 1, 1]];
    let grad_y = array![[[6f32], [-0.0], [1e8], [-1e8]]];
    levels::each(|level| {
        for reduction in REDUCTIONS {
            let gather = operator(level, &indices, 3, OutOfRange::Error).with_tuning(by(reduction));
            let untouched = f32::from_bits(0xffa0_0001);
            let mut grad_x = array![[[-0.0], [3.0], [untouched]]];
            gather.adjoint_add(grad_y.view(), grad_x.view_mut()).unwrap();
            let bits = grad_x.mapv(f32::to_bits);
            assert_eq!(bits, array![[[(-0.0f32).to_bits()], [8f32.to_bits()], [untouched.to_bits()]]]);

            let grad_x = gather.adjoint(grad_y.view()).unwrap().mapv(f32::to_bits);
            assert_eq!(grad_x, array![[[0f32.to_bits()], [8f32.to_bits()], [0f32.to_bits()]]]);
        }
    });
}

#[test]
fn adding_twice_is_adding_each_term_twice_in_order() {
    let gather = Gather::unbatched(array![0, 0, 1].view(), 2, OutOfRange::Error).unwrap();
    let grad_y = array![[0.1f32], [0.2], [0.3]];
    let mut grad_x = Array2::zeros([2, 1]);
    for _ in 0..2 {
        gather.adjoint_add(grad_y.view(), grad_x.view_mut()).unwrap();
    }
    assert_eq!(grad_x, array![[((0.1f32 + 0.2) + 0.1) + 0.2], [0.3f32 + 0.3]]);
}
