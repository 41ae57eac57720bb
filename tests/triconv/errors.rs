//! Refusals: what they name, and that nothing was written.

use crate::common::refusals::{refused, shape_error, untouched, wrong};
use crate::common::values::Values;
use ndarray::{Array, Array3, ArrayD, ArrayViewMut, Dimension, IntoDimension};
use pullback::triconv::{Correlation, Method, Product, Scan, Side, Weights};
use pullback::{Error, Result};

/// Two sequences of four steps of 2 x 3 matrices, and what belongs to them.
const A0: [usize; 3] = [2, 2, 3];
const B: [usize; 4] = [2, 4, 3, 3];
const A: [usize; 4] = [2, 5, 2, 3];

fn scan() -> Scan<f32> {
    Scan::new(4, Weights::Binomial).unwrap()
}

fn ones<const D: usize>(shape: [usize; D]) -> ArrayD<f32> {
    ArrayD::ones(&shape[..])
}

/// `call` returns `expected` and leaves every cell of both its outputs as it was.
#[track_caller]
fn refused_both<D: Dimension, E: Dimension>(
    expected: &Error,
    first: impl IntoDimension<Dim = D>,
    second: impl IntoDimension<Dim = E>,
    call: impl FnOnce(ArrayViewMut<'_, f32, D>, ArrayViewMut<'_, f32, E>) -> Result<()>,
) {
    let found = untouched(first, |first| untouched(second, |second| call(first, second)));
    assert_eq!(found, Err(expected.clone()));
}

/// Every shape that differs from the right one in one of some axes, each at least 1 elsewhere.
fn wrong_in<const D: usize>(right: [usize; D], axes: &[usize]) -> Vec<[usize; D]> {
    let differs = |found: &[usize; D]| axes.iter().any(|&axis| found[axis] != right[axis]);
    wrong(right, D).into_iter().filter(differs).collect()
}

#[test]
fn tolerances() {
    for (bad, value) in [(0.0, "0"), (-1e-9, "-0.000000001"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
        match scan().with_method(Method::Relaxed { tolerance: bad }).err() {
            Some(Error::Parameter { argument: "tolerance", value: found, expected }) => {
                assert!(
                    found.parse::<f64>().is_ok_and(|x| x == bad || x.is_nan() && bad.is_nan()),
                    "{found}, not {value}"
                );
                assert!(!expected.is_empty());
            }
            other => panic!("{other:?} is no refusal of {value}"),
        }
    }
    let plain = Scan::<f32>::new(4, Weights::Plain).unwrap();
    assert!(plain.with_method(Method::Relaxed { tolerance: 5e-324 }).is_ok());
    assert!(scan().with_method(Method::Direct).is_ok());
}

#[test]
fn ranges() {
    #[expect(clippy::reversed_empty_ranges, reason = "what is refused")]
    let found = Product::<f64>::middle(5..3, Weights::Plain).err();
    assert!(matches!(found, Some(Error::Parameter { argument: "range", .. })), "{found:?}");
    assert!(Product::<f64>::middle(3..3, Weights::Plain).is_ok());
}

#[test]
fn axes_that_are_missing() {
    let few = |found: usize| ArrayD::<f32>::ones(vec![1; found]);
    let rank = |argument: &'static str, found: usize, least: usize| Error::Rank { argument, found, least };
    let (b, a) = (ones([4, 3, 3]), ones([5, 2, 3]));
    for found in 0..2 {
        assert_eq!(scan().forward(few(found).view(), b.view()), Err(rank("a0", found, 2)));
        refused(rank("a0", found, 2), [5, 2, 3], |y| scan().forward_into(few(found).view(), b.view(), y));
    }
    for found in 0..3 {
        assert_eq!(scan().forward(ones([2, 3]).view(), few(found).view()), Err(rank("b", found, 3)));
        assert_eq!(scan().forward_with(few(found).view(), b.view()), Err(rank("s", found, 3)));
        refused(rank("s", found, 3), [5, 2, 3], |y| scan().forward_with_into(few(found).view(), b.view(), y));
        assert_eq!(scan().adjoint(a.view(), few(found).view(), b.view()), Err(rank("a", found, 3)));
        assert_eq!(scan().adjoint(a.view(), a.view(), few(found).view()), Err(rank("b", found, 3)));
        let product = Product::<f32>::new(4, Weights::Plain).unwrap();
        assert_eq!(product.forward(few(found).view(), b.view()), Err(rank("a", found, 3)));
        assert_eq!(product.forward(b.view(), few(found).view()), Err(rank("b", found, 3)));
        let correlation = Correlation::<f32>::new(4, Weights::Plain).unwrap();
        assert_eq!(correlation.forward(few(found).view(), b.view()), Err(rank("a", found, 3)));
        assert_eq!(correlation.forward(b.view(), few(found).view()), Err(rank("g", found, 3)));
    }
    assert_eq!(rank("a0", 1, 2).to_string(), "a0 has 1 axes, expected at least 2");
}

#[test]
fn matrices_without_rows_or_columns() {
    let zero = |argument: &'static str, result: Option<Error>| match result {
        Some(Error::Parameter { argument: found, value, .. }) => assert_eq!((found, &value[..]), (argument, "0")),
        other => panic!("{other:?} is no refusal of {argument} = 0"),
    };
    let plain = Weights::Plain;
    zero("p", scan().forward(ones([0, 3]).view(), ones([4, 3, 3]).view()).err());
    zero("m", scan().forward(ones([2, 0]).view(), ones([4, 0, 0]).view()).err());
    let left = || scan().with_side(Side::Left);
    zero("p", left().forward(ones([3, 0]).view(), ones([4, 3, 3]).view()).err());
    zero("m", left().forward(ones([0, 2]).view(), ones([4, 0, 0]).view()).err());
    zero("p", scan().forward_with(ones([5, 0, 3]).view(), ones([4, 3, 3]).view()).err());
    zero("p", scan().adjoint(ones([5, 0, 3]).view(), ones([5, 0, 3]).view(), ones([4, 3, 3]).view()).err());
    zero("m", scan().adjoint(ones([5, 2, 0]).view(), ones([5, 2, 0]).view(), ones([4, 0, 0]).view()).err());
    let product = || Product::<f32>::new(4, plain).unwrap();
    zero("p", product().forward(ones([4, 0, 3]).view(), ones([4, 3, 5]).view()).err());
    zero("m", product().forward(ones([4, 2, 0]).view(), ones([4, 0, 5]).view()).err());
    zero("q", product().forward(ones([4, 2, 3]).view(), ones([4, 3, 0]).view()).err());
    let correlation = || Correlation::<f32>::new(4, plain).unwrap();
    zero("p", correlation().forward(ones([4, 0, 3]).view(), ones([4, 0, 5]).view()).err());
    zero("m", correlation().forward(ones([4, 2, 0]).view(), ones([4, 2, 5]).view()).err());
    zero("q", correlation().forward(ones([4, 2, 3]).view(), ones([4, 2, 0]).view()).err());
    // Of no sequences at all, the matrices still are some.
    zero("m", scan().forward(ones([0, 2, 0]).view(), ones([0, 4, 0, 0]).view()).err());
    assert!(scan().forward(ones([0, 2, 3]).view(), ones([0, 4, 3, 3]).view()).is_ok());
}

#[test]
fn wrong_shapes_of_scans() {
    let (a0, b, s, a) = (ones(A0), ones(B), ones(A), ones(A));
    for found in wrong_in(B, &[0, 1, 2, 3]) {
        let (bad, error) = (ones(found), shape_error("b", found, B));
        assert_eq!(scan().forward(a0.view(), bad.view()), Err(error.clone()));
        assert_eq!(scan().forward_with(s.view(), bad.view()), Err(error.clone()));
        assert_eq!(scan().adjoint(a.view(), a.view(), bad.view()), Err(error.clone()));
        refused(error.clone(), A, |y| scan().forward_into(a0.view(), bad.view(), y));
        refused(error.clone(), A, |y| scan().forward_with_into(s.view(), bad.view(), y));
        refused_both(&error, A, found, |x, y| scan().adjoint_into(a.view(), a.view(), bad.view(), x, y));
        refused_both(&error, A, B, |x, y| scan().adjoint_add(a.view(), a.view(), bad.view(), x, y));
    }
    // One B of all.
    let all = [4, 3, 3];
    for found in wrong_in(all, &[0, 1, 2]) {
        let error = shape_error("b", found, all);
        assert_eq!(scan().forward(a0.view(), ones(found).view()), Err(error.clone()));
        assert_eq!(scan().adjoint(a.view(), a.view(), ones(found).view()), Err(error));
    }
    for found in wrong_in(A, &[1]) {
        let error = shape_error("s", found, A);
        assert_eq!(scan().forward_with(ones(found).view(), b.view()), Err(error.clone()));
        refused(error, A, |y| scan().forward_with_into(ones(found).view(), b.view(), y));
        let error = shape_error("a", found, A);
        assert_eq!(scan().adjoint(a.view(), ones(found).view(), b.view()), Err(error.clone()));
        refused_both(&error, A, B, |x, y| scan().adjoint_into(a.view(), ones(found).view(), b.view(), x, y));
    }
    for found in wrong_in(A, &[0, 1, 2, 3]) {
        let error = shape_error("grad_a", found, A);
        assert_eq!(scan().adjoint(ones(found).view(), a.view(), b.view()), Err(error.clone()));
        refused_both(&error, A, B, |x, y| scan().adjoint_into(ones(found).view(), a.view(), b.view(), x, y));
        refused_both(&error, A, B, |x, y| scan().adjoint_add(ones(found).view(), a.view(), b.view(), x, y));
    }
}

#[test]
fn wrong_outputs_of_scans() {
    let (a0, b, a) = (ones(A0), ones(B), ones(A));
    for found in wrong_in(A, &[0, 1, 2, 3]) {
        let error = shape_error("a", found, A);
        refused(error.clone(), found, |y| scan().forward_into(a0.view(), b.view(), y));
        refused(error, found, |y| scan().forward_with_into(a.view(), b.view(), y));
        let error = shape_error("grad_s", found, A);
        refused_both(&error, found, B, |x, y| scan().adjoint_into(a.view(), a.view(), b.view(), x, y));
        refused_both(&error, found, B, |x, y| scan().adjoint_add(a.view(), a.view(), b.view(), x, y));
    }
    for found in wrong_in(B, &[0, 1, 2, 3]) {
        let error = shape_error("grad_b", found, B);
        refused_both(&error, A, found, |x, y| scan().adjoint_into(a.view(), a.view(), b.view(), x, y));
        refused_both(&error, A, found, |x, y| scan().adjoint_add(a.view(), a.view(), b.view(), x, y));
    }
    // Too few axes are a wrong shape where there is a right one.
    let error = Error::Shape { argument: "a", found: vec![5, 2, 3], expected: A.to_vec() };
    refused(error, [5, 2, 3], |y| scan().forward_into(a0.view(), b.view(), y));
    // Three cotangents, and gradients of one.
    let (of_s, of_b) = ([3, 2, 5, 2, 3], [3, 2, 4, 3, 3]);
    let grads = ones(of_s);
    let error = Error::Shape { argument: "grad_s", found: A.to_vec(), expected: of_s.to_vec() };
    refused_both(&error, A, of_b, |x, y| scan().adjoint_into(grads.view(), a.view(), b.view(), x, y));
    let error = Error::Shape { argument: "grad_b", found: B.to_vec(), expected: of_b.to_vec() };
    refused_both(&error, of_s, B, |x, y| scan().adjoint_into(grads.view(), a.view(), b.view(), x, y));
    // One B of all has one gradient each.
    let (shared, expected) = (ones([4, 3, 3]), vec![3, 4, 3, 3]);
    let error = Error::Shape { argument: "grad_b", found: of_b.to_vec(), expected };
    refused_both(&error, of_s, of_b, |x, y| scan().adjoint_into(grads.view(), a.view(), shared.view(), x, y));
}

#[test]
fn sides_have_shapes_of_their_own() {
    let left = || scan().with_side(Side::Left);
    assert!(left().forward(ones([2, 3, 2]).view(), ones(B).view()).is_ok());
    // 2 x 3 from the left takes 2 x 2.
    let error = shape_error("b", B, [2, 4, 2, 2]);
    assert_eq!(left().forward(ones(A0).view(), ones(B).view()), Err(error));
}

/// Four matrices of a product of three and five, and the same for a correlation.
#[test]
fn wrong_shapes_of_products() {
    let (a, b, c) = ([2, 3, 2, 3], [2, 5, 3, 4], [2, 4, 2, 4]);
    let product = || Product::<f32>::new(4, Weights::Binomial).unwrap();
    let (of_a, of_b, of_c) = (ones(a), ones(b), ones(c));
    for found in wrong_in(b, &[0, 2]) {
        let error = shape_error("b", found, b);
        assert_eq!(product().forward(of_a.view(), ones(found).view()), Err(error.clone()));
        assert_eq!(product().adjoint(of_c.view(), of_a.view(), ones(found).view()), Err(error.clone()));
        refused(error, c, |y| product().forward_into(of_a.view(), ones(found).view(), y));
    }
    for found in wrong_in(c, &[0, 1, 2, 3]) {
        refused(shape_error("c", found, c), found, |y| product().forward_into(of_a.view(), of_b.view(), y));
        let (error, bad) = (shape_error("grad_c", found, c), ones(found));
        assert_eq!(product().adjoint(bad.view(), of_a.view(), of_b.view()), Err(error.clone()));
        refused_both(&error, a, b, |x, y| product().adjoint_into(bad.view(), of_a.view(), of_b.view(), x, y));
        refused_both(&error, a, b, |x, y| product().adjoint_add(bad.view(), of_a.view(), of_b.view(), x, y));
    }
    for found in wrong_in(a, &[0, 1, 2, 3]) {
        let error = shape_error("grad_a", found, a);
        refused_both(&error, found, b, |x, y| product().adjoint_into(of_c.view(), of_a.view(), of_b.view(), x, y));
        refused_both(&error, found, b, |x, y| product().adjoint_add(of_c.view(), of_a.view(), of_b.view(), x, y));
    }
    for found in wrong_in(b, &[0, 1, 2, 3]) {
        let error = shape_error("grad_b", found, b);
        refused_both(&error, a, found, |x, y| product().adjoint_into(of_c.view(), of_a.view(), of_b.view(), x, y));
    }
}

#[test]
fn wrong_shapes_of_correlations() {
    let (a, g, d) = ([2, 3, 2, 3], [2, 5, 2, 4], [2, 4, 3, 4]);
    let correlation = || Correlation::<f32>::new(4, Weights::Binomial).unwrap();
    let (of_a, of_g, of_d) = (ones(a), ones(g), ones(d));
    for found in wrong_in(g, &[0, 2]) {
        let error = shape_error("g", found, g);
        assert_eq!(correlation().forward(of_a.view(), ones(found).view()), Err(error.clone()));
        assert_eq!(correlation().adjoint(of_d.view(), of_a.view(), ones(found).view()), Err(error.clone()));
        refused(error, d, |y| correlation().forward_into(of_a.view(), ones(found).view(), y));
    }
    for found in wrong_in(d, &[0, 1, 2, 3]) {
        refused(shape_error("d", found, d), found, |y| correlation().forward_into(of_a.view(), of_g.view(), y));
        let (error, bad) = (shape_error("grad_d", found, d), ones(found));
        assert_eq!(correlation().adjoint(bad.view(), of_a.view(), of_g.view()), Err(error.clone()));
        refused_both(&error, a, g, |x, y| correlation().adjoint_into(bad.view(), of_a.view(), of_g.view(), x, y));
        refused_both(&error, a, g, |x, y| correlation().adjoint_add(bad.view(), of_a.view(), of_g.view(), x, y));
    }
    for found in wrong_in(a, &[0, 1, 2, 3]) {
        let error = shape_error("grad_a", found, a);
        refused_both(&error, found, g, |x, y| correlation().adjoint_into(of_d.view(), of_a.view(), of_g.view(), x, y));
    }
    for found in wrong_in(g, &[0, 1, 2, 3]) {
        let error = shape_error("grad_g", found, g);
        refused_both(&error, a, found, |x, y| correlation().adjoint_add(of_d.view(), of_a.view(), of_g.view(), x, y));
    }
}

#[test]
fn what_errors_say() {
    let error = shape_error("b", [3, 3, 3], [4, 3, 3]);
    assert_eq!(error.to_string(), "b has shape [3, 3, 3], expected [4, 3, 3]");
    let a: Array3<f64> = Array::from_elem([2, 1, 1], 1e200);
    let error = Product::new(2, Weights::Plain).unwrap().forward(a.view(), a.view()).unwrap_err();
    assert_eq!(error, Error::Overflow { result: "c", first_k: 0 });
    let text = error.to_string();
    assert!(text.contains('c') && text.contains('0') && text.contains("overflow"), "{text}");
}

/// Numbers of steps whose outputs no memory holds.
#[test]
fn sizes_beyond_memory() {
    let too_large = |error: Option<Error>| {
        assert!(matches!(error, Some(Error::TooLarge { .. } | Error::Allocation { .. })), "{error:?}");
    };
    let empty = Array3::<f32>::zeros([0, 2, 2]);
    for n in [usize::MAX / 2, usize::MAX / 64, 1 << 50] {
        let made =
            Product::<f32>::new(n, Weights::Plain).and_then(|product| product.forward(empty.view(), empty.view()));
        too_large(made.err());
        let made = Correlation::<f32>::new(n, Weights::Plain).and_then(|of| of.forward(empty.view(), empty.view()));
        too_large(made.err());
        // The sequence B of so many steps is one number all along.
        let one = ndarray::Array0::from_elem((), 1f32);
        let b = one.broadcast([1 << 50, 1, 1]).unwrap();
        let made = Scan::<f32>::new(1 << 50, Weights::Plain).and_then(|scan| scan.forward(ones([1, 1]).view(), b));
        too_large(made.err());
    }
}

/// The caller's array is as it was where a call is refused, whatever was in it.
#[test]
fn refused_calls_write_nothing() {
    let before = Values::Adversarial.array::<f32, _>([5, 2, 3], 3);
    let mut a = before.clone();
    assert!(scan().forward_into(ones([2, 3]).view(), ones([3, 3, 3]).view(), a.view_mut()).is_err());
    assert!(before.iter().zip(&a).all(|(x, y)| x.to_bits() == y.to_bits()));
}
