//! Every entry of `gather`.

use crate::common::values::Value;
use crate::driver::{Drawn, Input, Nonsense, drive};
use ndarray::{Dimension, Ix1, Ix2, Ix3, Ix4, IxDyn};
use pullback::gather::{
    Extremum, Gather, Index, Linear, OutOfRange, Pooled, Reduction, Segments, Ties, Tuning, Weighted, index_points,
    index_points_adjoint,
};

const FALLIBLE: [&str; 59] = [
    "index_points",
    "index_points_adjoint",
    "Gather::new",
    "Gather::unbatched",
    "Gather::forward",
    "Gather::forward_into",
    "Gather::adjoint",
    "Gather::adjoint_into",
    "Gather::adjoint_add",
    "Gather::adjoint_compact",
    "Gather::counts",
    "Weighted::new",
    "Weighted::unbatched",
    "Weighted::ragged",
    "Weighted::forward",
    "Weighted::forward_into",
    "Weighted::adjoint",
    "Weighted::adjoint_into",
    "Weighted::adjoint_add",
    "Weighted::adjoint_x",
    "Weighted::adjoint_x_into",
    "Weighted::adjoint_x_add",
    "Weighted::adjoint_w",
    "Weighted::adjoint_w_into",
    "Weighted::adjoint_w_add",
    "Pooled::new",
    "Pooled::unbatched",
    "Pooled::ragged",
    "Pooled::forward",
    "Pooled::forward_into",
    "Pooled::adjoint",
    "Pooled::adjoint_into",
    "Pooled::adjoint_add",
    "Pooled::extremes",
    "Pooled::extremes_into",
    "Pooled::extremes_adjoint",
    "Pooled::extremes_adjoint_into",
    "Pooled::extremes_adjoint_add",
    "Segments::new",
    "Segments::from_offsets",
    "Segments::from_lengths",
    "Segments::forward",
    "Segments::forward_into",
    "Segments::adjoint",
    "Segments::adjoint_into",
    "Segments::adjoint_add",
    "Segments::product",
    "Segments::product_into",
    "Segments::product_adjoint",
    "Segments::product_adjoint_into",
    "Segments::product_adjoint_add",
    "Segments::softmax",
    "Segments::softmax_into",
    "Segments::softmax_adjoint",
    "Segments::softmax_adjoint_into",
    "Segments::softmax_adjoint_add",
    "Segments::log_sum_exp",
    "Segments::log_sum_exp_into",
    "Segments::log_sum_exp_adjoint",
];

const FALLIBLE_TOO: [&str; 7] = [
    "Segments::log_sum_exp_adjoint_into",
    "Segments::log_sum_exp_adjoint_add",
    "Segments::extremes",
    "Segments::extremes_into",
    "Segments::extremes_adjoint",
    "Segments::extremes_adjoint_into",
    "Segments::extremes_adjoint_add",
];

const INFALLIBLE: [&str; 13] = [
    "Gather::level",
    "Gather::with_level",
    "Weighted::level",
    "Weighted::with_level",
    "Pooled::level",
    "Pooled::with_level",
    "Pooled::with_empty",
    "Segments::level",
    "Segments::with_level",
    "Segments::with_empty",
    "Segments::len",
    "Segments::is_empty",
    "Segments::counts",
];

#[test]
fn gather() {
    let fallible = [&FALLIBLE[..], &FALLIBLE_TOO[..]].concat();
    drive(&fallible, &INFALLIBLE, 3000, |n| match n.random.below(4) {
        0 => of_index::<i32>(n),
        1 => of_index::<i64>(n),
        2 => of_index::<u32>(n),
        _ => of_index::<usize>(n),
    });
}

fn of_index<I: Index + Drawn>(n: &mut Nonsense) {
    if n.chance(2) { of_both::<f32, I>(n) } else { of_both::<f64, I>(n) }
}

fn of_both<T: Value + Drawn, I: Index + Drawn>(n: &mut Nonsense) {
    match n.random.below(4) {
        0 => rows::<T, I>(n),
        1 => weighted::<T, I>(n),
        2 => pooled::<T, I>(n),
        _ => segments::<T, I>(n),
    }
}

fn policy(n: &mut Nonsense) -> OutOfRange {
    let fill = n.parameter();
    n.random.one_of(&[OutOfRange::Error, OutOfRange::Skip { fill }, OutOfRange::Clamp])
}

fn tuning(n: &mut Nonsense) -> Tuning {
    Tuning {
        stream: n.choice(),
        prefetch: n.choice(),
        parallel: n.choice(),
        reduction: n.random.one_of(&[None, Some(Reduction::Slab), Some(Reduction::Inverse)]),
        tile: n.random.one_of(&[None, Some(1), Some(3)]),
        hub: n.random.one_of(&[None, Some(1), Some(3)]),
    }
}

fn rows<T: Value + Drawn, I: Index + Drawn>(n: &mut Nonsense) {
    let [b, p, s, c] = [n.size(), n.size(), n.size(), n.size()];
    let rows = if n.chance(8) { n.count() } else { n.size() };
    n.bound = rows;
    let indices: Input<I, _> = n.input(Ix3(b, p, s));
    let policy = policy(n);
    let (b, p, s) = indices.view().dim();
    let x: Input<T, _> = n.input(Ix3(b, rows, c));
    let grad_y: Input<T, _> = n.input(Ix4(b, p, s, c));
    n.call("index_points", || index_points(x.view(), indices.view()));
    n.call("index_points_adjoint", || index_points_adjoint(grad_y.view(), indices.view(), rows));
    if let Some(gather) = n.call("Gather::new", || Gather::new(indices.view(), rows, policy)) {
        use_rows(n, gather, &x, &grad_y, Ix3(b, rows, c));
    }
    let x: Input<T, _> = n.input(Ix2(rows, c));
    if let Some(gather) = n.call("Gather::unbatched", || Gather::unbatched(indices.view(), rows, policy)) {
        use_rows(n, gather, &x, &grad_y, Ix2(rows, c));
    }
    let axes = n.random.below(3);
    let any: Input<I, _> = n.input(IxDyn(&[b, p][..axes]));
    n.call("Gather::new", || Gather::new(any.view(), rows, policy));
}

fn use_rows<T: Value + Drawn, X: Dimension>(
    n: &mut Nonsense,
    gather: Gather<Ix3, X>,
    x: &Input<T, X>,
    grad_y: &Input<T, Ix4>,
    features: X,
) {
    let level = n.level();
    let Some(gather) = n.call("Gather::with_level", || gather.with_level(level)) else { return };
    let gather = gather.with_tuning(tuning(n));
    n.call("Gather::level", || Ok(gather.level()));
    let y = n.call("Gather::forward", || gather.forward(x.view()));
    let shape = y.map_or_else(|| grad_y.view().raw_dim(), |y| y.raw_dim());
    let mut out = n.output(shape);
    n.write("Gather::forward_into", &mut out, |y| gather.forward_into(x.view(), y));
    if let Some(grad_x) = n.call("Gather::adjoint", || gather.adjoint(grad_y.view())) {
        n.shape(
            "Gather::adjoint",
            &grad_x.shape()[..X::NDIM.unwrap_or(0) - 1],
            &features.slice()[..features.ndim() - 1],
        );
    }
    let mut out = n.output(features.clone());
    n.write("Gather::adjoint_into", &mut out, |grad_x| gather.adjoint_into(grad_y.view(), grad_x));
    let mut out = n.output(features.clone());
    n.write("Gather::adjoint_add", &mut out, |grad_x| gather.adjoint_add(grad_y.view(), grad_x));
    n.call("Gather::adjoint_compact", || gather.adjoint_compact(grad_y.view()));
    if let Some(counts) = n.call("Gather::counts", || gather.counts()) {
        n.shape("Gather::counts", counts.shape(), &features.slice()[..features.ndim() - 1]);
    }
}

/// Sizes of groups of indices.
struct Sizes {
    b: usize,
    p: usize,
    s: usize,
    rows: usize,
    c: usize,
}

fn sizes(n: &mut Nonsense) -> Sizes {
    let (b, p, s, c) = (n.size(), n.size(), n.size(), n.size());
    let rows = if n.chance(8) { n.count() } else { n.size() };
    n.bound = rows;
    Sizes { b, p, s, rows, c }
}

/// Offsets of groups, mostly of all entries.
fn offsets(n: &mut Nonsense, groups: usize, entries: usize) -> Input<usize, Ix1> {
    n.bound = entries + 1;
    let drawn: Input<usize, _> = n.input(Ix1(groups.min(64) + 1));
    if n.chance(4) {
        return drawn;
    }
    let mut sorted: Vec<usize> = (0..=groups.min(64)).map(|_| n.random.below(entries.clamp(1, 1 << 40) + 1)).collect();
    sorted.sort_unstable();
    sorted[0] = 0;
    if groups > 0 {
        sorted[groups.min(64)] = entries;
    }
    Input::Strided(crate::common::strides::Strided::standard(ndarray::Array1::from(sorted).view()))
}

fn weighted<T: Value + Drawn, I: Index + Drawn>(n: &mut Nonsense) {
    let Sizes { b, p, s, rows, c } = sizes(n);
    let policy = policy(n);
    let indices: Input<I, _> = n.input(Ix3(b, p, s));
    let (b, p, s) = indices.view().dim();
    if let Some(op) = n.call("Weighted::new", || Weighted::new(indices.view(), rows, policy)) {
        use_weighted::<T, _, _>(n, op, Ix3(b, rows, c), Ix3(b, p, s), Ix3(b, p, c));
    }
    n.bound = rows;
    let indices: Input<I, _> = n.input(Ix2(p, s));
    let (p, s) = indices.view().dim();
    if let Some(op) = n.call("Weighted::unbatched", || Weighted::unbatched(indices.view(), rows, policy)) {
        use_weighted::<T, _, _>(n, op, Ix2(rows, c), Ix2(p, s), Ix2(p, c));
    }
    n.bound = rows;
    let indices: Input<I, _> = n.input(Ix1(s));
    let s = indices.view().len();
    let offsets = offsets(n, p, s);
    if let Some(op) = n.call("Weighted::ragged", || Weighted::ragged(indices.view(), offsets.view(), rows, policy)) {
        let groups = offsets.view().len() - 1;
        use_weighted::<T, _, _>(n, op, Ix2(rows, c), Ix1(s), Ix2(groups, c));
    }
}

fn use_weighted<T: Value + Drawn, D: Dimension, X: Dimension>(
    n: &mut Nonsense,
    op: Weighted<D, X>,
    features: X,
    weights: D,
    results: X,
) {
    let level = n.level();
    let Some(op) = n.call("Weighted::with_level", || op.with_level(level)) else { return };
    let op = op.with_tuning(tuning(n));
    n.call("Weighted::level", || Ok(op.level()));
    let (x, w): (Input<T, _>, Input<T, _>) = (n.input(features.clone()), n.input(weights.clone()));
    let grad_y: Input<T, _> = n.input(results.clone());
    if let Some(y) = n.call("Weighted::forward", || op.forward(x.view(), w.view())) {
        let expected = [&results.slice()[..results.ndim() - 1], &x.view().shape()[results.ndim() - 1..]].concat();
        n.shape("Weighted::forward", y.shape(), &expected);
    }
    let mut y = n.output(results);
    n.write("Weighted::forward_into", &mut y, |y| op.forward_into(x.view(), w.view(), y));
    if let Some(found) = n.call("Weighted::adjoint", || op.adjoint(grad_y.view(), x.view(), w.view())) {
        n.shape("Weighted::adjoint", found.grad_x.shape(), x.view().shape());
        n.shape("Weighted::adjoint", found.grad_w.shape(), w.view().shape());
    }
    for add in [false, true] {
        let (mut to_x, mut to_w) = (n.output(features.clone()), n.output(weights.clone()));
        n.write_both(
            ["Weighted::adjoint_into", "Weighted::adjoint_add"][usize::from(add)],
            (&mut to_x, &mut to_w),
            |a, b| match add {
                false => op.adjoint_into(grad_y.view(), x.view(), w.view(), a, b),
                true => op.adjoint_add(grad_y.view(), x.view(), w.view(), a, b),
            },
        );
    }
    if let Some(found) = n.call("Weighted::adjoint_x", || op.adjoint_x(grad_y.view(), w.view())) {
        let channels = grad_y.view().shape()[features.ndim() - 1];
        n.shape(
            "Weighted::adjoint_x",
            found.shape(),
            &[&features.slice()[..features.ndim() - 1], &[channels]].concat(),
        );
    }
    let mut out = n.output(features.clone());
    n.write("Weighted::adjoint_x_into", &mut out, |out| op.adjoint_x_into(grad_y.view(), w.view(), out));
    let mut out = n.output(features);
    n.write("Weighted::adjoint_x_add", &mut out, |out| op.adjoint_x_add(grad_y.view(), w.view(), out));
    if let Some(found) = n.call("Weighted::adjoint_w", || op.adjoint_w(grad_y.view(), x.view())) {
        n.shape("Weighted::adjoint_w", found.shape(), weights.slice());
    }
    let mut out = n.output(weights.clone());
    n.write("Weighted::adjoint_w_into", &mut out, |out| op.adjoint_w_into(grad_y.view(), x.view(), out));
    let mut out = n.output(weights);
    n.write("Weighted::adjoint_w_add", &mut out, |out| op.adjoint_w_add(grad_y.view(), x.view(), out));
}

fn pooled<T: Value + Drawn, I: Index + Drawn>(n: &mut Nonsense) {
    let Sizes { b, p, s, rows, c } = sizes(n);
    let policy = policy(n);
    let indices: Input<I, _> = n.input(Ix3(b, p, s));
    let (b, p, s) = indices.view().dim();
    if let Some(op) = n.call("Pooled::new", || Pooled::new(indices.view(), rows, policy)) {
        use_pooled::<T, _, _>(n, op, Ix3(b, rows, c), Ix3(b, p, c), s);
    }
    n.bound = rows;
    let indices: Input<I, _> = n.input(Ix2(p, s));
    let (p, s) = indices.view().dim();
    if let Some(op) = n.call("Pooled::unbatched", || Pooled::unbatched(indices.view(), rows, policy)) {
        use_pooled::<T, _, _>(n, op, Ix2(rows, c), Ix2(p, c), s);
    }
    n.bound = rows;
    let indices: Input<I, _> = n.input(Ix1(s));
    let s = indices.view().len();
    let offsets = offsets(n, p, s);
    if let Some(op) = n.call("Pooled::ragged", || Pooled::ragged(indices.view(), offsets.view(), rows, policy)) {
        let groups = offsets.view().len() - 1;
        use_pooled::<T, _, _>(n, op, Ix2(rows, c), Ix2(groups, c), s);
    }
}

fn use_pooled<T: Value + Drawn, D: Dimension, X: Dimension>(
    n: &mut Nonsense,
    op: Pooled<D, X>,
    features: X,
    results: X,
    s: usize,
) {
    let level = n.level();
    let Some(op) = n.call("Pooled::with_level", || op.with_level(level)) else { return };
    let empty = n.parameter();
    let op = n.call("Pooled::with_empty", || Ok(op.with_empty(empty))).expect("no error").with_tuning(tuning(n));
    n.call("Pooled::level", || Ok(op.level()));
    let (linear, which) =
        (n.random.one_of(&[Linear::Sum, Linear::Mean]), n.random.one_of(&[Extremum::Max, Extremum::Min]));
    let (x, grad_y): (Input<T, _>, Input<T, _>) = (n.input(features.clone()), n.input(results.clone()));
    let expected = [&results.slice()[..results.ndim() - 1], &x.view().shape()[results.ndim() - 1..]].concat();
    if let Some(y) = n.call("Pooled::forward", || op.forward(linear, x.view())) {
        n.shape("Pooled::forward", y.shape(), &expected);
    }
    let mut y = n.output(results.clone());
    n.write("Pooled::forward_into", &mut y, |y| op.forward_into(linear, x.view(), y));
    if let Some(found) = n.call("Pooled::adjoint", || op.adjoint(linear, grad_y.view())) {
        let channels = grad_y.view().shape()[features.ndim() - 1];
        n.shape("Pooled::adjoint", found.shape(), &[&features.slice()[..features.ndim() - 1], &[channels]].concat());
    }
    let mut out = n.output(features.clone());
    n.write("Pooled::adjoint_into", &mut out, |out| op.adjoint_into(linear, grad_y.view(), out));
    let mut out = n.output(features.clone());
    n.write("Pooled::adjoint_add", &mut out, |out| op.adjoint_add(linear, grad_y.view(), out));

    if let Some(y) = n.call("Pooled::extremes", || op.extremes(which, x.view())) {
        n.shape("Pooled::extremes", y.values.shape(), &expected);
        n.shape("Pooled::extremes", y.arguments.shape(), &expected);
    }
    let (mut values, mut arguments) = (n.output(results.clone()), n.output(results.clone()));
    n.write_both("Pooled::extremes_into", (&mut values, &mut arguments), |values, arguments| {
        op.extremes_into(which, x.view(), values, arguments)
    });
    n.bound = s;
    let arguments: Input<u32, _> = n.input(results);
    let first = n.chance(2);
    let ties = || if first { Ties::First(arguments.view()) } else { Ties::Even(which, x.view()) };
    n.call("Pooled::extremes_adjoint", || op.extremes_adjoint(grad_y.view(), ties()));
    let mut out = n.output(features.clone());
    n.write("Pooled::extremes_adjoint_into", &mut out, |out| op.extremes_adjoint_into(grad_y.view(), ties(), out));
    let mut out = n.output(features);
    n.write("Pooled::extremes_adjoint_add", &mut out, |out| op.extremes_adjoint_add(grad_y.view(), ties(), out));
}

fn segments<T: Value + Drawn, I: Index + Drawn>(n: &mut Nonsense) {
    let (rows, c) = (n.size(), n.size());
    let groups = if n.chance(8) { n.count() } else { n.small() };
    let policy = policy(n);
    n.bound = groups;
    let ids: Input<I, _> = n.input(Ix1(rows));
    let rows = ids.view().len();
    let by_id = n.call("Segments::new", || Segments::new(ids.view(), groups, policy));
    let offsets = offsets(n, groups, rows);
    let by_offset = n.call("Segments::from_offsets", || Segments::from_offsets(offsets.view(), rows));
    let ends: Vec<usize> = offsets.view().iter().copied().take(64).collect();
    let lengths: ndarray::Array1<usize> = ends.windows(2).map(|ends| ends[1].wrapping_sub(ends[0])).collect();
    let by_length = n.call("Segments::from_lengths", || Segments::from_lengths(lengths.view(), rows));
    for op in [by_id, by_offset, by_length].into_iter().flatten() {
        use_segments::<T>(n, op, rows, c);
    }
}

fn use_segments<T: Value + Drawn>(n: &mut Nonsense, op: Segments, rows: usize, c: usize) {
    let level = n.level();
    let Some(op) = n.call("Segments::with_level", || op.with_level(level)) else { return };
    let empty = n.parameter();
    let op = n.call("Segments::with_empty", || Ok(op.with_empty(empty))).expect("no error").with_tuning(tuning(n));
    n.call("Segments::level", || Ok(op.level()));
    n.call("Segments::is_empty", || Ok(op.is_empty()));
    n.call("Segments::counts", || op.counts());
    let groups = n.call("Segments::len", || Ok(op.len())).expect("no error");
    let (linear, which) =
        (n.random.one_of(&[Linear::Sum, Linear::Mean]), n.random.one_of(&[Extremum::Max, Extremum::Min]));
    let (features, results) = (Ix2(rows, c), Ix2(groups, c));
    let (x, grad_y, y): (Input<T, _>, Input<T, _>, Input<T, _>) =
        (n.input(features), n.input(results), n.input(results));
    let (grad_z, z): (Input<T, _>, Input<T, _>) = (n.input(features), n.input(features));
    let reduced = [groups, x.view().ncols()];
    if let Some(found) = n.call("Segments::forward", || op.forward(linear, x.view())) {
        n.shape("Segments::forward", found.shape(), &reduced);
    }
    let mut out = n.output(results);
    n.write("Segments::forward_into", &mut out, |out| op.forward_into(linear, x.view(), out));
    n.call("Segments::adjoint", || op.adjoint(linear, grad_y.view()));
    let mut out = n.output(features);
    n.write("Segments::adjoint_into", &mut out, |out| op.adjoint_into(linear, grad_y.view(), out));
    let mut out = n.output(features);
    n.write("Segments::adjoint_add", &mut out, |out| op.adjoint_add(linear, grad_y.view(), out));
    if let Some(found) = n.call("Segments::product", || op.product(x.view())) {
        n.shape("Segments::product", found.shape(), &reduced);
    }
    let mut out = n.output(results);
    n.write("Segments::product_into", &mut out, |out| op.product_into(x.view(), out));
    n.call("Segments::product_adjoint", || op.product_adjoint(grad_y.view(), x.view()));
    let mut out = n.output(features);
    n.write("Segments::product_adjoint_into", &mut out, |out| op.product_adjoint_into(grad_y.view(), x.view(), out));
    let mut out = n.output(features);
    n.write("Segments::product_adjoint_add", &mut out, |out| op.product_adjoint_add(grad_y.view(), x.view(), out));
    if let Some(found) = n.call("Segments::softmax", || op.softmax(x.view())) {
        n.shape("Segments::softmax", found.shape(), x.view().shape());
    }
    let mut out = n.output(features);
    n.write("Segments::softmax_into", &mut out, |out| op.softmax_into(x.view(), out));
    n.call("Segments::softmax_adjoint", || op.softmax_adjoint(grad_z.view(), z.view()));
    let mut out = n.output(features);
    n.write("Segments::softmax_adjoint_into", &mut out, |out| op.softmax_adjoint_into(grad_z.view(), z.view(), out));
    let mut out = n.output(features);
    n.write("Segments::softmax_adjoint_add", &mut out, |out| op.softmax_adjoint_add(grad_z.view(), z.view(), out));
    if let Some(found) = n.call("Segments::log_sum_exp", || op.log_sum_exp(x.view())) {
        n.shape("Segments::log_sum_exp", found.shape(), &reduced);
    }
    let mut out = n.output(results);
    n.write("Segments::log_sum_exp_into", &mut out, |out| op.log_sum_exp_into(x.view(), out));
    n.call("Segments::log_sum_exp_adjoint", || op.log_sum_exp_adjoint(grad_y.view(), x.view(), y.view()));
    let mut out = n.output(features);
    n.write("Segments::log_sum_exp_adjoint_into", &mut out, |out| {
        op.log_sum_exp_adjoint_into(grad_y.view(), x.view(), y.view(), out)
    });
    let mut out = n.output(features);
    n.write("Segments::log_sum_exp_adjoint_add", &mut out, |out| {
        op.log_sum_exp_adjoint_add(grad_y.view(), x.view(), y.view(), out)
    });
    if let Some(found) = n.call("Segments::extremes", || op.extremes(which, x.view())) {
        n.shape("Segments::extremes", found.values.shape(), &reduced);
        n.shape("Segments::extremes", found.arguments.shape(), &reduced);
    }
    let (mut values, mut arguments) = (n.output(results), n.output(results));
    n.write_both("Segments::extremes_into", (&mut values, &mut arguments), |values, arguments| {
        op.extremes_into(which, x.view(), values, arguments)
    });
    n.bound = rows;
    let arguments: Input<u32, _> = n.input(results);
    let first = n.chance(2);
    let ties = || if first { Ties::First(arguments.view()) } else { Ties::Even(which, x.view()) };
    n.call("Segments::extremes_adjoint", || op.extremes_adjoint(grad_y.view(), ties()));
    let mut out = n.output(features);
    n.write("Segments::extremes_adjoint_into", &mut out, |out| op.extremes_adjoint_into(grad_y.view(), ties(), out));
    let mut out = n.output(features);
    n.write("Segments::extremes_adjoint_add", &mut out, |out| op.extremes_adjoint_add(grad_y.view(), ties(), out));
}
