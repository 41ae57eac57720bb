//! Refusals by interpolation: what they name, and that nothing was written.

use crate::common::refusals::{refused, shape_error, untouched, wrong};
use crate::common::values::Value;
use ndarray::{Array1, Array2, array};
use pullback::Error;
use pullback::kdtree::{Builder, Interpolate, Interpolation, KdTreeDyn, PerQuery};

/// (N, D), (M, D), (N, C), (M, C)
const POINTS: [usize; 2] = [5, 3];
const QUERIES: [usize; 2] = [4, 3];
const VALUES: [usize; 2] = [5, 6];
const RESULTS: [usize; 2] = [4, 6];

fn tree<T: Value>() -> KdTreeDyn<T> {
    let points = Array2::from_shape_fn(POINTS, |(row, axis)| T::from_usize(row * 3 + axis).unwrap());
    KdTreeDyn::new(points.view()).unwrap()
}

fn ones(shape: [usize; 2]) -> Array2<f32> {
    Array2::ones(shape)
}

fn at(tree: &KdTreeDyn<f32>) -> Interpolation<'_, f32> {
    Interpolate::new(tree, 2, 2.0, 0.0).unwrap().at(ones(QUERIES).view()).unwrap()
}

/// Names the argument and its value.
#[track_caller]
fn assert_names(error: Option<Error>, argument: &str, value: &str) {
    let message = error.expect("a refusal").to_string();
    let start = format!("{argument} = {value}");
    let rest = message.strip_prefix(&start).unwrap_or_else(|| panic!("{message:?} does not name {start:?}"));
    assert!(!rest.starts_with(|next: char| next.is_ascii_digit()), "{message:?} does not name {start:?}");
}

#[test]
fn a_power_is_finite_and_positive() {
    let (single, double) = (tree::<f32>(), tree::<f64>());
    for (power, word) in
        [(0.0, "0"), (-0.0, "-0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")]
    {
        assert_names(Interpolate::new(&single, 2, power as f32, 0.0).err(), "power", word);
        assert_names(Interpolate::new(&double, 2, power, 0.0).err(), "power", word);
        // Whatever else is wrong, and where there is nothing to weigh.
        assert_names(Interpolate::new(&double, 0, power, -1.0).err(), "power", word);
    }
    for power in [f32::from_bits(1), 1e-3, 1.0, 1e3, f32::MAX] {
        assert!(Interpolate::new(&single, 2, power, 0.0).is_ok(), "{power}");
    }
}

#[test]
fn eps_is_finite_and_not_negative() {
    let (single, double) = (tree::<f32>(), tree::<f64>());
    for (eps, word) in
        [(-1.0, "-1"), (-0.5, "-0.5"), (f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf")]
    {
        assert_names(Interpolate::new(&single, 2, 2.0, eps as f32).err(), "eps", word);
        assert_names(Interpolate::new(&double, 2, 2.0, eps).err(), "eps", word);
    }
    for eps in [0.0, -0.0, f32::from_bits(1), 1.0, f32::MAX] {
        assert!(Interpolate::new(&single, 2, 2.0, eps).is_ok(), "{eps}");
    }
}

#[test]
fn a_negative_zero_is_no_eps() {
    let tree = KdTreeDyn::new(array![[0.0f32], [1.0]].view()).unwrap();
    let at = Interpolate::new(&tree, 2, 2.0, -0.0).unwrap().at(array![[0.0]].view()).unwrap();
    assert_eq!(at.weights(), array![[1.0, 0.0]]);
}

#[test]
fn queries_and_bounds_are_checked_as_in_a_search() {
    let tree = tree::<f32>();
    let interpolate = Interpolate::new(&tree, 2, 2.0, 0.0).unwrap();
    let (values, grad_y) = (ones(VALUES), ones(RESULTS));
    for columns in [0, 2, 4] {
        let (bad, error) = (ones([4, columns]), shape_error("queries", [4, columns], QUERIES));
        assert_eq!(interpolate.at(bad.view()).err(), Some(error.clone()));
        assert_eq!(interpolate.forward(values.view(), bad.view()).err(), Some(error.clone()));
        assert_eq!(interpolate.adjoint(grad_y.view(), values.view(), bad.view()).err(), Some(error));
    }
    for (value, word) in [(f32::NAN, "NaN"), (f32::INFINITY, "inf"), (f32::NEG_INFINITY, "-inf")] {
        let mut queries = ones(QUERIES);
        (queries[[2, 1]], queries[[3, 0]]) = (value, f32::NAN);
        let error = Error::NonFinite { argument: "queries", position: vec![2, 1], value: word.to_owned() };
        assert_eq!(interpolate.at(queries.view()).err(), Some(error.clone()));
        assert_eq!(interpolate.forward(values.view(), queries.view()).err(), Some(error.clone()));
        assert_eq!(interpolate.adjoint(grad_y.view(), values.view(), queries.view()).err(), Some(error));
    }
    let queries = ones(QUERIES);
    let distance = |position, value: &str| Error::Distance { argument: "within", position, value: value.to_owned() };
    assert_eq!(interpolate.within(-1.0).at(queries.view()).err(), Some(distance(None, "-1")));
    assert_eq!(interpolate.within(f32::NAN).forward(values.view(), queries.view()).err(), Some(distance(None, "NaN")));
    let bounds = array![1.0, 2.0, f32::NAN, -1.0];
    assert_eq!(interpolate.within(&bounds).at(queries.view()).err(), Some(distance(Some(2), "NaN")));
    for rows in [0, 3, 5] {
        let bounds = Array1::ones(rows);
        let error = shape_error("within", [rows], [4]);
        let interpolate = Interpolate::new(&tree, 2, 2.0, 0.0).unwrap();
        assert_eq!(interpolate.within(PerQuery::Each(bounds.view())).at(queries.view()).err(), Some(error));
    }
}

#[test]
fn wrong_shapes_are_refused_and_nothing_is_written() {
    let tree = tree::<f32>();
    let (at, values, grad_y) = (at(&tree), ones(VALUES), ones(RESULTS));
    // The channels are free: the values decide them.
    for bad in wrong(VALUES, 1) {
        let (values, error) = (ones(bad), shape_error("values", bad, VALUES));
        assert_eq!(at.forward(values.view()).err(), Some(error.clone()));
        refused(error.clone(), RESULTS, |y| at.forward_into(values.view(), y));
        assert_eq!(at.adjoint(grad_y.view(), values.view()).err(), Some(error));
    }
    for bad in wrong(RESULTS, 2) {
        refused(shape_error("y", bad, RESULTS), bad, |y| at.forward_into(values.view(), y));
        let error = shape_error("grad_y", bad, RESULTS);
        assert_eq!(at.adjoint(ones(bad).view(), values.view()).err(), Some(error));
    }
    for bad in wrong(RESULTS, 1) {
        let error = shape_error("grad_y", bad, RESULTS);
        assert_eq!(at.adjoint_values(ones(bad).view()).err(), Some(error.clone()));
        refused(error.clone(), VALUES, |grads| at.adjoint_values_into(ones(bad).view(), grads));
        refused(error, VALUES, |grads| at.adjoint_values_add(ones(bad).view(), grads));
    }
    for bad in wrong(VALUES, 2) {
        let error = shape_error("grad_values", bad, VALUES);
        refused(error.clone(), bad, |grads| at.adjoint_values_into(grad_y.view(), grads));
        refused(error, bad, |grads| at.adjoint_values_add(grad_y.view(), grads));
    }
}

#[test]
fn no_gradient_is_written_where_any_shape_is_wrong() {
    let tree = tree::<f32>();
    let at = at(&tree);
    let check =
        |grad_y: [usize; 2], values: [usize; 2], gv: [usize; 2], gq: [usize; 2], gp: [usize; 2], error: Error| {
            let (grad_y, values) = (ones(grad_y), ones(values));
            for add in [false, true] {
                let result = untouched(gv, |gv| {
                    untouched(gq, |gq| {
                        untouched(gp, |gp| match add {
                            false => at.adjoint_into(grad_y.view(), values.view(), gv, gq, gp),
                            true => at.adjoint_add(grad_y.view(), values.view(), gv, gq, gp),
                        })
                    })
                });
                assert_eq!(result, Err(error.clone()));
            }
        };
    for bad in wrong(RESULTS, 2) {
        check(bad, VALUES, VALUES, QUERIES, POINTS, shape_error("grad_y", bad, RESULTS));
    }
    for bad in wrong(VALUES, 1) {
        check(RESULTS, bad, VALUES, QUERIES, POINTS, shape_error("values", bad, VALUES));
    }
    for bad in wrong(VALUES, 2) {
        check(RESULTS, VALUES, bad, QUERIES, POINTS, shape_error("grad_values", bad, VALUES));
    }
    for bad in wrong(QUERIES, 2) {
        check(RESULTS, VALUES, VALUES, bad, POINTS, shape_error("grad_queries", bad, QUERIES));
    }
    for bad in wrong(POINTS, 2) {
        check(RESULTS, VALUES, VALUES, QUERIES, bad, shape_error("grad_points", bad, POINTS));
    }
}

#[test]
fn too_many_neighbors_are_refused() {
    let tree = tree::<f32>();
    for k in [isize::MAX as usize / 4, 1 << 62, usize::MAX] {
        let found = Interpolate::new(&tree, k, 2.0, 0.0).and_then(|interpolate| interpolate.at(ones(QUERIES).view()));
        assert!(matches!(found.err(), Some(Error::TooLarge { .. } | Error::Allocation { .. })), "{k}");
    }
}

/// Such queries have the fill where a tree was told to let them be.
#[test]
fn absent_queries_have_the_fill() {
    let points = array![[0.0f32, 0.0], [f32::NAN, 1.0], [2.0, 0.0]];
    let tree = Builder::default().non_finite_is_absent().build_dyn(points.view()).unwrap();
    let queries = array![[f32::NAN, 0.0], [1.0, 0.0]];
    let at = Interpolate::new(&tree, 3, 2.0, 0.0).unwrap().fill(9.0).at(queries.view()).unwrap();
    let values = array![[1.0], [f32::NAN], [3.0]];
    assert_eq!(at.forward(values.view()).unwrap(), array![[9.0], [2.0]]);
    let gradients = at.adjoint(array![[f32::NAN], [2.0]].view(), values.view()).unwrap();
    assert_eq!(gradients.grad_values, array![[1.0], [0.0], [1.0]]);
    assert_eq!(gradients.grad_queries, array![[0.0, 0.0], [4.0, 0.0]]);
    assert_eq!(gradients.grad_points, array![[-2.0, 0.0], [0.0, 0.0], [-2.0, 0.0]]);
}
