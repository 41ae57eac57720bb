//! Problems for weighted sums.

use super::gather::Id;
use super::groups::{Groups, zeros};
use super::reduction_case::{Family, Form, Problem, assert_flat, check_into, flat};
use super::strides::Strided;
use super::values::Value;
use ndarray::{Dimension, Ix1, Ix2, Ix3};
use pullback::Level;
use pullback::gather::Weighted;

pub struct WeightedSums;

impl Family for WeightedSums {
    fn check<T: Value, I: Id>(problem: &Problem, level: Level) {
        let Problem { rows, policy, channels, .. } = *problem;
        match problem.form {
            Form::Batched([batches, count, size]) => {
                let indices = problem.indices::<I, _>(Ix3(batches, count, size));
                let made = Weighted::new(indices.view(), rows, policy);
                if let Some(op) = problem.accepted("indices", made, &indices.view()) {
                    let shapes = [Ix3(batches, rows, channels), Ix3(batches, count, channels)];
                    let groups = problem.groups(&indices.view());
                    check_operator::<T, _, _>(problem, op, &groups, indices.view().raw_dim(), shapes, level);
                }
            }
            Form::Unbatched([count, size]) => {
                let indices = problem.indices::<I, _>(Ix2(count, size));
                let made = Weighted::unbatched(indices.view(), rows, policy);
                if let Some(op) = problem.accepted("indices", made, &indices.view()) {
                    let shapes = [Ix2(rows, channels), Ix2(count, channels)];
                    let groups = problem.groups(&indices.view());
                    check_operator::<T, _, _>(problem, op, &groups, indices.view().raw_dim(), shapes, level);
                }
            }
            Form::Ragged(ref lengths) => {
                let indices = problem.indices::<I, _>(Ix1(lengths.iter().sum()));
                let made = Weighted::ragged(indices.view(), problem.offsets::<I>().view(), rows, policy);
                if let Some(op) = problem.accepted("indices", made, &indices.view()) {
                    let shapes = [Ix2(rows, channels), Ix2(lengths.len(), channels)];
                    let groups = problem.groups(&indices.view());
                    check_operator::<T, _, _>(problem, op, &groups, indices.view().raw_dim(), shapes, level);
                }
            }
        }
    }
}

fn check_operator<T: Value, D: Dimension, X: Dimension>(
    problem: &Problem,
    op: Weighted<D, X>,
    groups: &Groups,
    weights: D,
    [features, results]: [X; 2],
    level: Level,
) {
    let op = op.with_level(level).expect("the level is available").with_tuning(problem.tuning);
    assert_eq!(op.level(), level);
    let (layout, channels) = (problem.layout, problem.channels);
    let mut draw = problem.draw::<T>();
    let x = Strided::new(features.clone(), layout.x, &mut draw);
    let w = Strided::new(weights.clone(), layout.w, &mut draw);
    let grad_y = Strided::new(results.clone(), layout.grad_y, &mut draw);
    let y = Strided::new(results, layout.first, &mut draw);
    let grad_x = Strided::new(features, layout.first, &mut draw);
    let grad_w = Strided::new(weights, layout.second, &mut draw);
    let (of_features, of_weights) = (groups.features(channels), [groups.batches(), groups.edges()]);
    let flat_x = flat(&x.view(), of_features);
    let flat_w = flat(&w.view(), of_weights);
    let flat_y = flat(&grad_y.view(), groups.results(channels));

    let expected = groups.weighted(&flat_x, &flat_w);
    assert_flat("forward", &op.forward(x.view(), w.view()).expect("the shapes are right"), &expected);
    check_into("forward_into", &y, &expected, |y| op.forward_into(x.view(), w.view(), y));

    let expected_x = groups.weighted_x(&flat_y, &flat_w, &zeros(of_features));
    let expected_w = groups.weighted_w(&flat_y, &flat_x, &zeros(of_weights));
    let found = op.adjoint(grad_y.view(), x.view(), w.view()).expect("the shapes are right");
    assert_flat("grad_x", &found.grad_x, &expected_x);
    assert_flat("grad_w", &found.grad_w, &expected_w);
    assert_flat("adjoint_x", &op.adjoint_x(grad_y.view(), w.view()).expect("the shapes are right"), &expected_x);
    assert_flat("adjoint_w", &op.adjoint_w(grad_y.view(), x.view()).expect("the shapes are right"), &expected_w);
    check_into("grad_x of adjoint_into", &grad_x, &expected_x, |gx| {
        check_into("grad_w of adjoint_into", &grad_w, &expected_w, |gw| {
            op.adjoint_into(grad_y.view(), x.view(), w.view(), gx, gw)
        });
        Ok(())
    });

    check_into("adjoint_x_into", &grad_x, &expected_x, |gx| op.adjoint_x_into(grad_y.view(), w.view(), gx));
    check_into("adjoint_w_into", &grad_w, &expected_w, |gw| op.adjoint_w_into(grad_y.view(), x.view(), gw));

    let sums_x = groups.weighted_x(&flat_y, &flat_w, &flat(&grad_x.view(), of_features));
    let sums_w = groups.weighted_w(&flat_y, &flat_x, &flat(&grad_w.view(), of_weights));
    check_into("grad_x of adjoint_add", &grad_x, &sums_x, |gx| {
        check_into("grad_w of adjoint_add", &grad_w, &sums_w, |gw| {
            op.adjoint_add(grad_y.view(), x.view(), w.view(), gx, gw)
        });
        Ok(())
    });
    check_into("adjoint_x_add", &grad_x, &sums_x, |gx| op.adjoint_x_add(grad_y.view(), w.view(), gx));
    check_into("adjoint_w_add", &grad_w, &sums_w, |gw| op.adjoint_w_add(grad_y.view(), x.view(), gw));
}
