//! Problems for pooling.

use super::gather::Id;
use super::groups::{Groups, zeros};
use super::random::Random;
use super::reduction_case::{Family, Form, Problem, assert_flat, check_arguments, check_into, flat};
use super::strides::Strided;
use super::values::Value;
use ndarray::{ArrayD, Dimension, Ix1, Ix2, Ix3};
use pullback::Level;
use pullback::gather::{Extremum, Linear, Pooled, Ties};

pub struct Pooling;

impl Family for Pooling {
    fn check<T: Value, I: Id>(problem: &Problem, level: Level) {
        let Problem { rows, policy, channels, .. } = *problem;
        match problem.form {
            Form::Batched([batches, count, size]) => {
                let indices = problem.indices::<I, _>(Ix3(batches, count, size));
                let made = Pooled::new(indices.view(), rows, policy);
                if let Some(op) = problem.accepted("indices", made, &indices.view()) {
                    let shapes = [Ix3(batches, rows, channels), Ix3(batches, count, channels)];
                    check_operator::<T, _, _>(problem, op, &problem.groups(&indices.view()), shapes, level);
                }
            }
            Form::Unbatched([count, size]) => {
                let indices = problem.indices::<I, _>(Ix2(count, size));
                let made = Pooled::unbatched(indices.view(), rows, policy);
                if let Some(op) = problem.accepted("indices", made, &indices.view()) {
                    let shapes = [Ix2(rows, channels), Ix2(count, channels)];
                    check_operator::<T, _, _>(problem, op, &problem.groups(&indices.view()), shapes, level);
                }
            }
            Form::Ragged(ref lengths) => {
                let indices = problem.indices::<I, _>(Ix1(lengths.iter().sum()));
                let made = Pooled::ragged(indices.view(), problem.offsets::<I>().view(), rows, policy);
                if let Some(op) = problem.accepted("indices", made, &indices.view()) {
                    let shapes = [Ix2(rows, channels), Ix2(lengths.len(), channels)];
                    check_operator::<T, _, _>(problem, op, &problem.groups(&indices.view()), shapes, level);
                }
            }
        }
    }
}

fn check_operator<T: Value, D: Dimension, X: Dimension>(
    problem: &Problem,
    op: Pooled<D, X>,
    groups: &Groups,
    [features, results]: [X; 2],
    level: Level,
) {
    let op = op.with_level(level).expect("the level is available").with_tuning(problem.tuning);
    let op = op.with_empty(problem.empty);
    let (layout, channels) = (problem.layout, problem.channels);
    let mut draw = problem.draw::<T>();
    let x = Strided::new(features.clone(), layout.x, &mut draw);
    let grad_y = Strided::new(results.clone(), layout.grad_y, &mut draw);
    let y = Strided::new(results.clone(), layout.first, &mut draw);
    let grad_x = Strided::new(features, layout.first, &mut draw);
    let (of_features, of_results) = (groups.features(channels), groups.results(channels));
    let (flat_x, flat_y) = (flat(&x.view(), of_features), flat(&grad_y.view(), of_results));
    let (zero, start) = (zeros::<T, 3>(of_features), flat(&grad_x.view(), of_features));

    for (linear, mean) in [(Linear::Sum, false), (Linear::Mean, true)] {
        let expected = groups.pooled(mean, &flat_x);
        assert_flat("forward", &op.forward(linear, x.view()).expect("the shape is right"), &expected);
        check_into("forward_into", &y, &expected, |y| op.forward_into(linear, x.view(), y));
        let expected = groups.pooled_adjoint(mean, &flat_y, &zero);
        assert_flat("adjoint", &op.adjoint(linear, grad_y.view()).expect("the shape is right"), &expected);
        check_into("adjoint_into", &grad_x, &expected, |gx| op.adjoint_into(linear, grad_y.view(), gx));
        let sums = groups.pooled_adjoint(mean, &flat_y, &start);
        check_into("adjoint_add", &grad_x, &sums, |gx| op.adjoint_add(linear, grad_y.view(), gx));
    }

    for which in [Extremum::Max, Extremum::Min] {
        let (values, arguments) = groups.extremes(which, &flat_x, problem.empty);
        let found = op.extremes(which, x.view()).expect("the shape is right");
        assert_flat("extremes", &found.values, &values);
        assert!(found.arguments.iter().eq(&arguments), "arguments {:?}, not {arguments:?}", found.arguments);
        check_into("extremes_into", &y, &values, |values| {
            check_arguments(layout.second, results.clone(), &arguments, |arguments| {
                op.extremes_into(which, x.view(), values, arguments).expect("the shapes are right");
            });
            Ok(())
        });

        // Any place in its group is an argument, whatever was chosen.
        let mut random = Random::new(problem.seed);
        let mut any_place = |group: usize| match groups.lengths[group] {
            0 => u32::MAX,
            n => [random.below(n) as u32, u32::MAX, n as u32 - 1][random.below(3)],
        };
        let places = ArrayD::from_shape_fn(&of_results[..], |at| any_place(at[1]));
        for arguments in [arguments, places] {
            let mut strided = Strided::new(results.clone(), layout.second, || 0);
            strided.view_mut().iter_mut().zip(&arguments).for_each(|(to, &from)| *to = from);
            let ties = || Ties::First(strided.view());
            let expected = groups.first_adjoint(&flat_y, &arguments, &zero);
            let pulled = op.extremes_adjoint(grad_y.view(), ties()).expect("the arguments are good");
            assert_flat("adjoint to the first", &pulled, &expected);
            check_into("into", &grad_x, &expected, |gx| op.extremes_adjoint_into(grad_y.view(), ties(), gx));
            let sums = groups.first_adjoint(&flat_y, &arguments, &start);
            check_into("added", &grad_x, &sums, |gx| op.extremes_adjoint_add(grad_y.view(), ties(), gx));
        }
        let ties = || Ties::Even(which, x.view());
        let expected = groups.even_adjoint(which, &flat_x, &flat_y, &zero);
        let pulled = op.extremes_adjoint(grad_y.view(), ties()).expect("the shape is right");
        assert_flat("even adjoint", &pulled, &expected);
        check_into("even, into", &grad_x, &expected, |gx| op.extremes_adjoint_into(grad_y.view(), ties(), gx));
        let sums = groups.even_adjoint(which, &flat_x, &flat_y, &start);
        check_into("even, added", &grad_x, &sums, |gx| op.extremes_adjoint_add(grad_y.view(), ties(), gx));
    }
}
