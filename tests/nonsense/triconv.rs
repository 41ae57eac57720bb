//! Every entry of `triconv`.

use crate::common::values::Value;
use crate::driver::{Drawn, Input, Nonsense, Output, drive};
use ndarray::{ArrayD, ArrayView, ArrayViewMut, Dimension, IxDyn};
use pullback::Result;
use pullback::triconv::{Correlation, Lanes, Method, Product, Scan, Side, Tuning, Weights, binomial, binomial_row};

const FALLIBLE: [&str; 21] = [
    "Product::new",
    "Scan::new",
    "binomial_row",
    "Scan::with_method",
    "Scan::forward",
    "Scan::forward_into",
    "Scan::forward_with",
    "Scan::forward_with_into",
    "Scan::adjoint",
    "Scan::adjoint_into",
    "Scan::adjoint_add",
    "Product::middle",
    "Product::forward",
    "Product::forward_into",
    "Product::adjoint",
    "Product::adjoint_into",
    "Product::adjoint_add",
    "Correlation::forward",
    "Correlation::forward_into",
    "Correlation::adjoint",
    "Correlation::adjoint_into",
];

const INFALLIBLE: [&str; 8] = [
    "binomial",
    "Scan::with_level",
    "Scan::level",
    "Product::with_level",
    "Product::level",
    "Correlation::new",
    "Correlation::with_level",
    "Correlation::level",
];

#[test]
fn triconv() {
    let fallible = [&FALLIBLE[..], &["Correlation::adjoint_add"]].concat();
    drive(&fallible, &INFALLIBLE, 4000, |n| if n.chance(2) { of::<f32>(n) } else { of::<f64>(n) });
}

fn of<T: Value + Drawn>(n: &mut Nonsense) {
    match n.random.below(8) {
        0 => numbers(n),
        1..4 => scan::<T>(n),
        4..6 => product::<T>(n),
        _ => correlation::<T>(n),
    }
}

fn numbers(n: &mut Nonsense) {
    let [of, chosen] = [n.count() as u64, n.count() as u64];
    n.call("binomial", || Ok(binomial(of, chosen)));
    // A row of fewer numbers than memory holds takes as long as it is.
    let row = if of > 1 << 20 { u64::MAX >> (of % 3) } else { of };
    if let Some(row) = n.call("binomial_row", || binomial_row(row)) {
        n.shape("binomial_row", &[row.len()], &[of as usize + 1]);
    }
}

fn tuning(n: &mut Nonsense) -> Tuning {
    Tuning {
        parallel: n.choice(),
        rows: n.random.one_of(&[None, Some(1), Some(2)]),
        lanes: n.random.one_of(&[None, Some(Lanes::Columns), Some(Lanes::Time), Some(Lanes::Batch)]),
        chunk: n.random.one_of(&[None, Some(1), Some(3)]),
        scaled: n.choice(),
        leaf: n.random.one_of(&[None, Some(1), Some(4)]),
    }
}

fn weights(n: &mut Nonsense) -> Weights {
    n.random.one_of(&[Weights::Binomial, Weights::Taylor, Weights::Plain])
}

/// Axes that count sequences.
fn leading(n: &mut Nonsense) -> Vec<usize> {
    (0..n.random.below(3)).map(|_| n.size()).collect()
}

/// A length of a sequence: its square counts the products of matrices.
fn length(n: &mut Nonsense) -> usize {
    if n.chance(16) { n.count() } else { n.size() }
}

fn shape(parts: &[&[usize]]) -> IxDyn {
    IxDyn(&parts.concat())
}

/// The axes of an operand that all sequences share, at times.
fn maybe_shared(n: &mut Nonsense, leading: &[usize], last: &[usize]) -> IxDyn {
    if n.chance(2) { IxDyn(last) } else { shape(&[leading, last]) }
}

fn scan<T: Value + Drawn>(n: &mut Nonsense) {
    let (steps, leading) = (length(n), leading(n));
    let weights = weights(n);
    let Some(scan) = n.call("Scan::new", || Scan::<T>::new(steps, weights)) else { return };
    let level = n.level();
    let Some(scan) = n.call("Scan::with_level", || scan.with_level(level)) else { return };
    n.call("Scan::level", || Ok(scan.level()));
    let scan = scan.with_tuning(tuning(n)).with_side(n.random.one_of(&[Side::Right, Side::Left]));
    let scan = if n.chance(4) { scan.with_f64_accumulation() } else { scan };
    let scan = if n.chance(3) {
        let method = n.random.one_of(&[Method::Direct, Method::Relaxed { tolerance: 1e-6 }]);
        let method = if n.chance(4) { Method::Relaxed { tolerance: n.parameter() } } else { method };
        let Some(scan) = n.call("Scan::with_method", || scan.with_method(method)) else { return };
        scan
    } else {
        scan
    };
    let (p, m) = (n.size(), n.size());
    // Either side, so that half of them are wrong where p is not m.
    let square = [steps, m, m];
    let all = [&leading[..], &[steps.saturating_add(1), p, m]].concat();
    let a0: Input<T, _> = n.input(shape(&[&leading, &[p, m]]));
    let of_b = maybe_shared(n, &leading, &square);
    let (s, b): (Input<T, _>, Input<T, _>) = (n.input(IxDyn(&all)), n.input(of_b.clone()));
    if let Some(a) = n.call("Scan::forward", || scan.forward(a0.view(), b.view())) {
        let axes = a0.view().ndim() - 2;
        n.shape("Scan::forward", &a.shape()[axes..axes + 1], &[steps + 1]);
        n.shape("Scan::forward", &a.shape()[axes + 1..], &a0.view().shape()[axes..]);
    }
    let mut a: Output<T, _> = n.output(IxDyn(&all));
    n.write("Scan::forward_into", &mut a, |a| scan.forward_into(a0.view(), b.view(), a));
    if let Some(a) = n.call("Scan::forward_with", || scan.forward_with(s.view(), b.view())) {
        n.shape("Scan::forward_with", a.shape(), s.view().shape());
    }
    let mut a: Output<T, _> = n.output(IxDyn(&all));
    n.write("Scan::forward_with_into", &mut a, |a| scan.forward_with_into(s.view(), b.view(), a));
    adjoints(
        n,
        ["Scan::adjoint", "Scan::adjoint_into", "Scan::adjoint_add"],
        [&all, &all, of_b.slice()],
        |g, a, b| scan.adjoint(g, a, b).map(|found| (found.grad_s, found.grad_b)),
        |g, a, b, to_a, to_b, add| {
            if add { scan.adjoint_add(g, a, b, to_a, to_b) } else { scan.adjoint_into(g, a, b, to_a, to_b) }
        },
    );
}

type View<'a, T> = ArrayView<'a, T, IxDyn>;
type ViewMut<'a, T> = ArrayViewMut<'a, T, IxDyn>;

/// The adjoint of an operator in its three forms, for one or several cotangents. Shapes are those of the cotangent and of
/// both operands.
fn adjoints<T: Value + Drawn>(
    n: &mut Nonsense,
    entries: [&'static str; 3],
    shapes: [&[usize]; 3],
    adjoint: impl Fn(View<'_, T>, View<'_, T>, View<'_, T>) -> Result<(ArrayD<T>, ArrayD<T>)>,
    write: impl Fn(View<'_, T>, View<'_, T>, View<'_, T>, ViewMut<'_, T>, ViewMut<'_, T>, bool) -> Result<()>,
) {
    let several: Vec<usize> = if n.chance(3) { vec![n.size()] } else { vec![] };
    let grad: Input<T, _> = n.input(shape(&[&several, shapes[0]]));
    let (a, b): (Input<T, _>, Input<T, _>) = (n.input(IxDyn(shapes[1])), n.input(IxDyn(shapes[2])));
    if let Some((to_a, to_b)) = n.call(entries[0], || adjoint(grad.view(), a.view(), b.view())) {
        let cut = to_a.ndim() - a.view().ndim();
        n.shape(entries[0], &to_a.shape()[cut..], a.view().shape());
        n.shape(entries[0], &to_b.shape()[cut..], b.view().shape());
    }
    for add in [false, true] {
        let mut to_a: Output<T, _> = n.output(shape(&[&several, shapes[1]]));
        let mut to_b: Output<T, _> = n.output(shape(&[&several, shapes[2]]));
        n.write_both(entries[1 + usize::from(add)], (&mut to_a, &mut to_b), |to_a, to_b| {
            write(grad.view(), a.view(), b.view(), to_a, to_b, add)
        });
    }
}

fn product<T: Value + Drawn>(n: &mut Nonsense) {
    let [from, to] = [length(n), length(n)];
    let weights = weights(n);
    let made = match n.chance(2) {
        true => n.call("Product::new", || Product::<T>::new(to, weights)).map(|product| (product, 0..to)),
        false => n.call("Product::middle", || Product::middle(from..to, weights)).map(|product| (product, from..to)),
    };
    let Some((product, range)) = made else { return };
    let level = n.level();
    let Some(product) = n.call("Product::with_level", || product.with_level(level)) else { return };
    n.call("Product::level", || Ok(product.level()));
    let product = product.with_tuning(tuning(n));
    let product = if n.chance(4) { product.with_f64_accumulation() } else { product };
    let (leading, [la, lb, p, m, q]) = (leading(n), [n.size(), n.size(), n.size(), n.size(), n.size()]);
    let of_a = shape(&[&leading, &[la, p, m]]);
    let of_b = maybe_shared(n, &leading, &[lb, m, q]);
    let of_c = shape(&[&leading, &[range.len(), p, q]]);
    let (a, b): (Input<T, _>, Input<T, _>) = (n.input(of_a.clone()), n.input(of_b.clone()));
    if let Some(c) = n.call("Product::forward", || product.forward(a.view(), b.view())) {
        n.shape("Product::forward", &c.shape()[c.ndim() - 3..c.ndim() - 2], &[range.len()]);
    }
    let mut c: Output<T, _> = n.output(of_c.clone());
    n.write("Product::forward_into", &mut c, |c| product.forward_into(a.view(), b.view(), c));
    adjoints(
        n,
        ["Product::adjoint", "Product::adjoint_into", "Product::adjoint_add"],
        [of_c.slice(), of_a.slice(), of_b.slice()],
        |g, a, b| product.adjoint(g, a, b).map(|found| (found.grad_a, found.grad_b)),
        |g, a, b, to_a, to_b, add| {
            if add { product.adjoint_add(g, a, b, to_a, to_b) } else { product.adjoint_into(g, a, b, to_a, to_b) }
        },
    );
}

fn correlation<T: Value + Drawn>(n: &mut Nonsense) {
    let (len, weights) = (length(n), weights(n));
    let Some(op) = n.call("Correlation::new", || Correlation::<T>::new(len, weights)) else { return };
    let level = n.level();
    let Some(op) = n.call("Correlation::with_level", || op.with_level(level)) else { return };
    n.call("Correlation::level", || Ok(op.level()));
    let op = op.with_tuning(tuning(n));
    let op = if n.chance(4) { op.with_f64_accumulation() } else { op };
    let (leading, [la, lg, p, m, q]) = (leading(n), [n.size(), n.size(), n.size(), n.size(), n.size()]);
    let of_a = shape(&[&leading, &[la, p, m]]);
    let of_g = maybe_shared(n, &leading, &[lg, p, q]);
    let of_d = shape(&[&leading, &[len, m, q]]);
    let (a, g): (Input<T, _>, Input<T, _>) = (n.input(of_a.clone()), n.input(of_g.clone()));
    if let Some(d) = n.call("Correlation::forward", || op.forward(a.view(), g.view())) {
        n.shape("Correlation::forward", &d.shape()[d.ndim() - 3..d.ndim() - 2], &[len]);
    }
    let mut d: Output<T, _> = n.output(of_d.clone());
    n.write("Correlation::forward_into", &mut d, |d| op.forward_into(a.view(), g.view(), d));
    adjoints(
        n,
        ["Correlation::adjoint", "Correlation::adjoint_into", "Correlation::adjoint_add"],
        [of_d.slice(), of_a.slice(), of_g.slice()],
        |d, a, g| op.adjoint(d, a, g).map(|found| (found.grad_a, found.grad_g)),
        |d, a, g, to_a, to_g, add| {
            if add { op.adjoint_add(d, a, g, to_a, to_g) } else { op.adjoint_into(d, a, g, to_a, to_g) }
        },
    );
}
