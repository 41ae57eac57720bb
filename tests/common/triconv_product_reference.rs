//! What a product or a correlation must give.

use super::triconv::{
    Formula, of_correlation, of_correlation_a, of_correlation_g, of_product, of_product_a, of_product_b,
};
use super::triconv_bounds::{Expected, Measured, MeasuredTable, check_exact, items};
use super::triconv_overflow::{
    Beyond, Borrowed, assert_added, assert_overflow, finite_items, finite_results, same_rounded,
};
use super::triconv_product_case::{Either, Gradients, ProductCase, ProductScene};
use super::triconv_scan_case::{Data, Kind};
use super::triconv_scan_reference::widened;
use super::wide::Referred;
use ndarray::{ArrayD, Dimension};
use pullback::triconv::Weights;
use pullback::{Error, Level, Result};

pub struct ProductReference<'a, T: Referred> {
    case: &'a ProductCase,
    w: MeasuredTable<T>,
    first: Vec<Measured<T>>,
    /// One for each of the first.
    second: Vec<Measured<T>>,
    /// Those of one cotangent after those of another.
    grad: Vec<Measured<T>>,
}

/// A result: each of its sequences is a sum over some items.
struct Sums<'a> {
    len: usize,
    matrix: [usize; 2],
    members: Vec<Vec<usize>>,
    formula: &'a dyn Fn(usize) -> Formula,
}

impl<'a, T: Referred> ProductReference<'a, T> {
    pub fn new(case: &'a ProductCase, scene: &ProductScene<T>) -> Self {
        let (batch, [first, second, output]) = (case.batch(), case.matrices());
        let measured = |array: ArrayD<T>, count: usize, matrix: [usize; 2]| -> Vec<Measured<T>> {
            items(&array, count, matrix).iter().map(Measured::of).collect()
        };
        let mut of_second = measured(scene.second.view().to_owned(), if case.shared { 1 } else { batch }, second);
        if case.shared {
            of_second = vec![of_second[0].clone(); batch];
        }
        // The largest index of a weight is that of a result, or of what is correlated.
        let rows = if case.correlation { case.lengths[1] } else { case.range.end };
        Self {
            case,
            w: MeasuredTable::of_product(case.weights, rows),
            first: measured(scene.first.view().to_owned(), batch, first),
            second: of_second,
            grad: measured(scene.grad_output.view().to_owned(), case.cotangents.unwrap_or(1) * batch, output),
        }
    }

    fn counts(&self) -> bool {
        let rows = if self.case.correlation { self.case.lengths[1] } else { self.case.range.end };
        let weights = self.case.weights != Weights::Binomial || rows <= 57;
        self.case.data == Data::Integers && weights && self.case.tuning.scaled != Some(true)
    }

    pub fn check_forward(&self, either: &Either<T>, found: &Result<ArrayD<T>>) {
        let case = self.case;
        let of_output = |k: usize| match case.correlation {
            false => of_product(case.lengths, case.range.start + k),
            true => of_correlation(case.lengths, k),
        };
        if let Ok(found) = found {
            assert_eq!(found.shape(), case.shape_of_output(false).slice());
        }
        let members = (0..case.batch()).map(|at| vec![at]).collect();
        let sums = Sums { len: case.range.len(), matrix: case.matrices()[2], members, formula: &of_output };
        self.check(either.names()[0], &sums, [&self.first[..], &self.second], found.as_ref(), None);
    }

    /// `added` are the arrays that gradients were added to, before and after, of the first and of the second.
    pub fn check_adjoint(&self, either: &Either<T>, found: &Result<Gradients<T>>, added: Option<&[ArrayD<T>; 4]>) {
        let (case, batch) = (self.case, self.case.batch());
        let ([la, lb], n, range) = (case.lengths, case.range.len(), || case.range.clone());
        let (cotangents, [first, second, _]) = (case.cotangents.unwrap_or(1), case.matrices());
        let of_first = |j: usize| match case.correlation {
            false => of_product_a(lb, range(), j),
            true => of_correlation_a(lb, n, j),
        };
        let of_second = |i: usize| match case.correlation {
            false => of_product_b(la, range(), i),
            true => of_correlation_g(la, n, i),
        };
        let each: Vec<Vec<usize>> = (0..cotangents * batch).map(|at| vec![at]).collect();
        let all = (0..cotangents).map(|r| (r * batch..(r + 1) * batch).collect()).collect();
        let of_second = Sums {
            len: lb,
            matrix: second,
            members: if case.shared { all } else { each.clone() },
            formula: &of_second,
        };
        let of_first = Sums { len: la, matrix: first, members: each, formula: &of_first };
        // The gradient of the first is that of the result times the second; that of the second is the first times that of the
        // result. A correlation has the second on the left.
        let of_grads = if case.correlation { [&self.second[..], &self.grad] } else { [&self.grad[..], &self.second] };
        let (found, [_, name_first, name_second]) = (found.as_ref(), either.names());
        if let Ok(found) = found {
            assert_eq!(found.first.shape(), case.shape_of_first(true).slice());
            assert_eq!(found.second.shape(), case.shape_of_second(true).slice());
        }
        let named = |name: &str| matches!(found, Err(Error::Overflow { result, .. }) if *result == name);
        if !named(name_second) {
            let added = added.map(|added| [&added[0], &added[1]]);
            self.check(name_first, &of_first, of_grads, found.map(|g| &g.first), added);
        }
        if !named(name_first) {
            let added = added.map(|added| [&added[2], &added[3]]);
            self.check(name_second, &of_second, [&self.first[..], &self.grad], found.map(|g| &g.second), added);
        }
    }

    fn check(
        &self,
        name: &'static str,
        sums: &Sums<'_>,
        [x, y]: [&[Measured<T>]; 2],
        found: Borrowed<'_, T>,
        added: Option<[&ArrayD<T>; 2]>,
    ) {
        let batch = self.case.batch();
        let at_item = |of: &[Measured<T>], at: usize| -> usize { if of.len() > batch { at } else { at % batch } };
        let expected = |at: usize, k: usize| {
            let (formula, [rows, columns]) = ((sums.formula)(k), sums.matrix);
            sums.members[at].iter().fold(Expected::zero(rows * columns), |sum, &at| {
                sum.and(&formula, &self.w, &x[at_item(x, at)], &y[at_item(y, at)])
            })
        };
        let given = [&self.first, &self.second, &self.grad];
        let finite = |at: usize| {
            let mut members = sums.members[at].iter();
            members.all(|&at| {
                given[..if name.len() == 1 { 2 } else { 3 }].iter().all(|of| of[at_item(of, at)].is_finite())
            })
        };
        let count = sums.members.len();
        let found = match found {
            Ok(found) => items(found, count, sums.matrix),
            Err(error) => {
                let known = (0..count).filter(|&at| finite(at)).flat_map(|at| (0..sums.len).map(move |k| (at, k)));
                let known = known.map(|(at, k)| {
                    let sum = expected(at, k);
                    let error = (sum.products as f64 + 16.0) * T::unit();
                    Beyond::of(k, &sum.values, &sum.sizes, error)
                });
                return assert_overflow(name, error, &known.collect::<Vec<_>>(), false);
            }
        };
        let added = added.map(|added| added.map(|array| items(array, count, sums.matrix)));
        for (at, found) in found.iter().enumerate() {
            for k in 0..sums.len {
                let (expected, what) = (expected(at, k), format!("{name}[{k}] of items {:?}", sums.members[at]));
                expected.check(&what, found.cells(k));
                let known = found.cells(k).iter().all(|x| x.is_finite());
                assert!(known || !finite(at), "{what} overflow without an error");
                if self.counts() && finite(at) {
                    check_exact(&what, &expected, found.cells(k));
                }
                if let Some([from, to]) = &added {
                    expected.check_added(&what, from[at].cells(k), to[at].cells(k));
                }
            }
        }
    }
}

/// The results of f64 for the same numbers.
pub struct WiderProduct {
    z: Result<ArrayD<f64>>,
    gradients: Result<Gradients<f64>>,
    /// Of each result, whether all of what it is computed from is: the product, and both gradients.
    finite: [Vec<bool>; 3],
}

impl WiderProduct {
    pub fn new<T: Referred>(case: &ProductCase, scene: &ProductScene<T>, level: Level) -> Self {
        let either = ProductCase { kind: Kind::F64, ..case.clone() }.operator::<f64>(level);
        let all = [&scene.first, &scene.second, &scene.grad_output];
        let [x, y, grad] = all.map(|array| widened(array.view().to_owned()));
        let z = either.forward(&x.view(), &y.view());
        let batch = case.batch();
        let of_y = finite_items(&y, if case.shared { 1 } else { batch });
        let pair = |(item, x): (usize, &bool)| *x && of_y[item % of_y.len()];
        let pairs: Vec<bool> = finite_items(&x, batch).iter().enumerate().map(pair).collect();
        let of_grad = finite_items(&grad, case.cotangents.unwrap_or(1) * batch);
        let each: Vec<bool> = of_grad.iter().enumerate().map(|(at, grad)| *grad && pairs[at % batch]).collect();
        let finite = [pairs, each.clone(), finite_results(&each, batch, case.shared)];
        Self { z, finite, gradients: either.adjoint(&grad.view(), &x.view(), &y.view()) }
    }

    pub fn check_forward<T: Referred>(&self, either: &Either<T>, found: &Result<ArrayD<T>>) {
        same_rounded(either.names()[0], found.as_ref(), self.z.as_ref(), &self.finite[0]);
    }

    pub fn check_adjoint<T: Referred>(
        &self,
        either: &Either<T>,
        found: &Result<Gradients<T>>,
        added: Option<&[ArrayD<T>; 4]>,
    ) {
        let (found, wide, [_, first, second]) = (found.as_ref(), self.gradients.as_ref(), either.names());
        let named = |name: &str| matches!(found, Err(Error::Overflow { result, .. }) if *result == name);
        if !named(second) {
            same_rounded(first, found.map(|g| &g.first), wide.map(|g| &g.first), &self.finite[1]);
        }
        if !named(first) {
            same_rounded(second, found.map(|g| &g.second), wide.map(|g| &g.second), &self.finite[2]);
        }
        if let (Some([from_x, to_x, from_y, to_y]), Ok(found)) = (added, found) {
            assert_added(first, from_x, &found.first, to_x);
            assert_added(second, from_y, &found.second, to_y);
        }
    }
}
