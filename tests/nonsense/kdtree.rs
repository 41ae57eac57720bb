//! Every entry of `kdtree`.

use crate::common::values::Value;
use crate::driver::{Drawn, Input, Nonsense, Output, drive};
use ndarray::{Array1, Ix1, Ix2};
use pullback::kdtree::{Builder, Interpolate, KdTree, KdTreeDyn, Metric, PerQuery, Search, Tuning};

const FALLIBLE: [&str; 41] = [
    "KdTree::new",
    "KdTree::read",
    "KdTree::load",
    "KdTreeDyn::new",
    "KdTreeDyn::read",
    "KdTreeDyn::load",
    "KdTreeDyn::save",
    "KdTreeDyn::knn",
    "KdTreeDyn::knn_self",
    "KdTreeDyn::radius",
    "KdTreeDyn::radius_count",
    "KdTreeDyn::pairs_within",
    "KdTreeDyn::knn_adjoint",
    "KdTreeDyn::knn_self_adjoint",
    "Builder::build",
    "Builder::build_dyn",
    "Search::knn",
    "Search::knn_self",
    "Search::radius",
    "Search::radius_count",
    "Search::pairs_within",
    "Search::knn_adjoint",
    "Search::knn_adjoint_into",
    "Search::knn_adjoint_add",
    "Search::knn_self_adjoint",
    "Search::knn_self_adjoint_into",
    "Search::knn_self_adjoint_add",
    "Interpolate::new",
    "Interpolate::at",
    "Interpolate::forward",
    "Interpolate::adjoint",
    "Interpolation::forward",
    "Interpolation::forward_into",
    "Interpolation::adjoint",
    "Interpolation::adjoint_into",
    "Interpolation::adjoint_add",
    "Interpolation::adjoint_values",
    "Interpolation::adjoint_values_into",
    "Interpolation::adjoint_values_add",
    "KdTree::map",
    "KdTreeDyn::map",
];

const INFALLIBLE: [&str; 16] = [
    "KdTree::with_level",
    "KdTree::into_dyn",
    "KdTree::builder",
    "KdTreeDyn::builder",
    "KdTreeDyn::with_level",
    "KdTreeDyn::level",
    "KdTreeDyn::len",
    "KdTreeDyn::is_empty",
    "KdTreeDyn::dims",
    "KdTreeDyn::search",
    "KdTreeDyn::write",
    "Neighbors::counts",
    "Neighbors::mask",
    "RadiusNeighbors::counts",
    "Interpolation::neighbors",
    "Interpolation::weights",
];

#[test]
fn kdtree() {
    let fallible: Vec<_> =
        FALLIBLE.into_iter().filter(|entry| cfg!(feature = "mmap") || !entry.ends_with("map")).collect();
    drive(&fallible, &INFALLIBLE, 2500, |n| if n.chance(2) { of::<f32>(n) } else { of::<f64>(n) });
}

fn value<T: Value>(x: f64) -> T {
    T::from_f64(x).expect("every f64 rounds to an element")
}

fn of<T: Value + Drawn>(n: &mut Nonsense) {
    let rows = if n.chance(3) { 40 + n.random.below(300) } else { n.size() };
    let dims = if n.chance(12) { n.random.one_of(&[0, 16, 17, usize::MAX >> 8]) } else { 1 + n.random.below(4) };
    let points: Input<T, _> = n.input(Ix2(rows, dims));
    let mut builder: Builder<T> = n.call("KdTreeDyn::builder", || Ok(KdTreeDyn::builder())).expect("no error");
    builder = builder.leaf_size(n.count());
    if n.chance(2) {
        builder = builder.non_finite_is_absent();
    }
    if n.chance(3) {
        let axes = if n.chance(6) { n.small() } else { points.view().ncols().min(17) };
        let lengths: Vec<Option<T>> = (0..axes).map(|_| n.chance(2).then(|| value(n.parameter() + 0.5))).collect();
        let origin: Vec<T> = (0..if n.chance(6) { n.small() } else { axes }).map(|_| value(n.parameter())).collect();
        builder = builder.periodic(&lengths);
        if n.chance(2) {
            builder = builder.origin(&origin);
        }
    }
    n.call("KdTreeDyn::new", || KdTreeDyn::new(points.view()));
    fixed(n, &builder, &points);
    let Some(tree) = n.call("Builder::build_dyn", || builder.build_dyn(points.view())) else { return };
    let level = n.level();
    let Some(tree) = n.call("KdTreeDyn::with_level", || tree.with_level(level)) else { return };
    let tree = tree.with_tuning(Tuning { parallel: n.choice(), packets: n.choice(), sort: n.choice() });
    n.call("KdTreeDyn::level", || Ok(tree.level()));
    n.call("KdTreeDyn::is_empty", || Ok(tree.is_empty()));
    let len = n.call("KdTreeDyn::len", || Ok(tree.len())).expect("no error");
    n.shape("KdTreeDyn::len", &[len], &[points.view().nrows()]);
    let dims = n.call("KdTreeDyn::dims", || Ok(tree.dims())).expect("no error");
    files(n, &tree);
    let queries = if n.chance(4) { 100 + n.random.below(300) } else { n.size() };
    let queries: Input<T, _> = n.input(Ix2(queries, dims));
    let k = if n.chance(8) { n.count() } else { n.small() };
    searches(n, &tree, &queries, k);
    adjoints(n, &tree, &queries, k);
    interpolations(n, &tree, &queries, k);
}

fn fixed<T: Value + Drawn>(n: &mut Nonsense, builder: &Builder<T>, points: &Input<T, Ix2>) {
    n.call("KdTree::builder", || Ok(KdTree::<T, 3>::builder()));
    n.call("KdTree::new", || KdTree::<T, 3>::new(points.view()));
    let Some(tree) = n.call("Builder::build", || builder.build::<2>(points.view())) else { return };
    let level = n.level();
    if let Some(tree) = n.call("KdTree::with_level", || tree.with_level(level)) {
        let mut bytes = Vec::new();
        n.call("KdTreeDyn::write", || tree.write(&mut bytes));
        n.call("KdTree::read", || KdTree::<T, 2>::read(&bytes[..]));
        damage(n, &mut bytes);
        n.call("KdTree::read", || KdTree::<T, 2>::read(&bytes[..]));
        n.call("KdTree::into_dyn", || Ok(tree.into_dyn()));
    }
}

/// Another byte somewhere, or fewer.
fn damage(n: &mut Nonsense, bytes: &mut Vec<u8>) {
    let at = n.random.below(bytes.len());
    if n.chance(3) {
        bytes.truncate(at);
    } else {
        bytes[at] = bytes[at].wrapping_add(1 + n.random.below(255) as u8);
    }
}

fn files<T: Value + Drawn>(n: &mut Nonsense, tree: &KdTreeDyn<T>) {
    let mut bytes = Vec::new();
    n.call("KdTreeDyn::write", || tree.write(&mut bytes));
    n.call("KdTreeDyn::read", || KdTreeDyn::<T>::read(&bytes[..]));
    damage(n, &mut bytes);
    n.call("KdTreeDyn::read", || KdTreeDyn::<T>::read(&bytes[..]));
    if !n.chance(20) {
        return;
    }
    let scratch = crate::common::scratch::Scratch::new();
    let path = scratch.path("tree");
    n.call("KdTreeDyn::save", || tree.save(scratch.path("no/where")));
    n.call("KdTreeDyn::save", || tree.save(&path));
    let damaged = scratch.path("damaged");
    std::fs::write(&damaged, &bytes).expect("a file");
    for path in [path, damaged, scratch.path("nothing")] {
        n.call("KdTree::load", || KdTree::<T, 2>::load(&path));
        n.call("KdTreeDyn::load", || KdTreeDyn::<T>::load(&path));
        #[cfg(feature = "mmap")]
        {
            n.call("KdTree::map", || KdTree::<T, 2>::map(&path));
            n.call("KdTreeDyn::map", || KdTreeDyn::<T>::map(&path));
        }
    }
}

fn search<'a, T: Value + Drawn>(n: &mut Nonsense, tree: &'a KdTreeDyn<T>) -> Search<'a, T> {
    let search = n.call("KdTreeDyn::search", || Ok(tree.search())).expect("no error");
    let search = search.metric(n.random.one_of(&[Metric::L2, Metric::L1, Metric::Linf]));
    let search = if n.chance(2) { search.squared() } else { search };
    if n.chance(2) { search.by_distance() } else { search }
}

/// One radius, or mostly as many as there are queries.
fn radii<T: Value + Drawn>(n: &mut Nonsense, queries: usize) -> Result<T, Input<T, Ix1>> {
    let one = value(n.parameter());
    if n.chance(2) { Ok(one) } else { Err(n.input(Ix1(queries))) }
}

fn searches<T: Value + Drawn>(n: &mut Nonsense, tree: &KdTreeDyn<T>, queries: &Input<T, Ix2>, k: usize) {
    let (bounds, radii) = (radii::<T>(n, queries.view().nrows()), radii::<T>(n, queries.view().nrows()));
    let search = search(n, tree);
    let each = |radii: &Result<T, Input<T, Ix1>>| match radii {
        Ok(_) => Array1::zeros(0),
        // What a view could not be copied from is refused for its length.
        Err(radii) if radii.view().len() > 1 << 20 => Array1::zeros(1 << 20),
        Err(radii) => radii.view().to_owned(),
    };
    let (bounds_of_each, radii_of_each) = (each(&bounds), each(&radii));
    fn per_query<'a, T: Copy>(one: &Result<T, Input<T, Ix1>>, each: &'a Array1<T>) -> PerQuery<'a, T> {
        match one {
            Ok(one) => PerQuery::One(*one),
            Err(_) => PerQuery::Each(each.view()),
        }
    }
    let (bound, radius) = (|| per_query(&bounds, &bounds_of_each), || per_query(&radii, &radii_of_each));
    let search = if n.chance(2) { search.within(bound()) } else { search };
    let found = [
        n.call("KdTreeDyn::knn", || tree.knn(queries.view(), k)),
        n.call("Search::knn", || search.knn(queries.view(), k)),
        n.call("KdTreeDyn::knn_self", || tree.knn_self(k)),
        n.call("Search::knn_self", || search.knn_self(k)),
    ];
    for (found, rows) in found.into_iter().zip([queries.view().nrows(), queries.view().nrows(), tree.len(), tree.len()])
    {
        let Some(found) = found else { continue };
        n.shape("Search::knn", found.indices.shape(), &[rows, k]);
        n.shape("Search::knn", found.distances.shape(), &[rows, k]);
        n.call("Neighbors::counts", || Ok(found.counts()));
        n.call("Neighbors::mask", || Ok(found.mask()));
    }
    let found = [
        n.call("KdTreeDyn::radius", || tree.radius(queries.view(), radius())),
        n.call("Search::radius", || search.radius(queries.view(), radius())),
    ];
    for found in found.into_iter().flatten() {
        n.shape("Search::radius", found.offsets.shape(), &[queries.view().nrows() + 1]);
        n.shape("Search::radius", found.indices.shape(), found.distances.shape());
        n.call("RadiusNeighbors::counts", || Ok(found.counts()));
    }
    n.call("KdTreeDyn::radius_count", || tree.radius_count(queries.view(), radius()));
    n.call("Search::radius_count", || search.radius_count(queries.view(), radius()));
    let r = value(n.parameter());
    n.call("KdTreeDyn::pairs_within", || tree.pairs_within(r));
    n.call("Search::pairs_within", || search.pairs_within(r));
}

fn adjoints<T: Value + Drawn>(n: &mut Nonsense, tree: &KdTreeDyn<T>, queries: &Input<T, Ix2>, k: usize) {
    let search = search(n, tree);
    n.bound = tree.len();
    let (rows, dims) = (queries.view().nrows(), tree.dims());
    let (indices, grads): (Input<u32, _>, Input<T, _>) = (n.input(Ix2(rows, k)), n.input(Ix2(rows, k)));
    let (to_queries, to_points) = (Ix2(rows, dims), Ix2(tree.len(), dims));
    let found = [
        n.call("KdTreeDyn::knn_adjoint", || tree.knn_adjoint(grads.view(), queries.view(), indices.view())),
        n.call("Search::knn_adjoint", || search.knn_adjoint(grads.view(), queries.view(), indices.view())),
    ];
    for found in found.into_iter().flatten() {
        n.shape("Search::knn_adjoint", found.grad_queries.shape(), queries.view().shape());
        n.shape("Search::knn_adjoint", found.grad_points.shape(), &[tree.len(), dims]);
    }
    let (mut a, mut b): (Output<T, _>, Output<T, _>) = (n.output(to_queries), n.output(to_points));
    n.write_both("Search::knn_adjoint_into", (&mut a, &mut b), |a, b| {
        search.knn_adjoint_into(grads.view(), queries.view(), indices.view(), a, b)
    });
    let (mut a, mut b): (Output<T, _>, Output<T, _>) = (n.output(to_queries), n.output(to_points));
    n.write_both("Search::knn_adjoint_add", (&mut a, &mut b), |a, b| {
        search.knn_adjoint_add(grads.view(), queries.view(), indices.view(), a, b)
    });
    let k = k.min(40);
    let (indices, grads): (Input<u32, _>, Input<T, _>) = (n.input(Ix2(tree.len(), k)), n.input(Ix2(tree.len(), k)));
    n.call("KdTreeDyn::knn_self_adjoint", || tree.knn_self_adjoint(grads.view(), indices.view()));
    n.call("Search::knn_self_adjoint", || search.knn_self_adjoint(grads.view(), indices.view()));
    let mut out = n.output(to_points);
    n.write("Search::knn_self_adjoint_into", &mut out, |out| {
        search.knn_self_adjoint_into(grads.view(), indices.view(), out)
    });
    let mut out = n.output(to_points);
    n.write("Search::knn_self_adjoint_add", &mut out, |out| {
        search.knn_self_adjoint_add(grads.view(), indices.view(), out)
    });
}

fn interpolations<T: Value + Drawn>(n: &mut Nonsense, tree: &KdTreeDyn<T>, queries: &Input<T, Ix2>, k: usize) {
    let (power, eps, fill) = (value::<T>(n.parameter()), value::<T>(n.parameter()), value::<T>(n.parameter()));
    let Some(op) = n.call("Interpolate::new", || Interpolate::new(tree, k, power, eps)) else { return };
    let op = op.metric(n.random.one_of(&[Metric::L2, Metric::L1, Metric::Linf])).fill(fill);
    let bound = value::<T>(n.parameter());
    let op = if n.chance(2) { op.within(PerQuery::One(bound)) } else { op };
    let (c, dims) = (n.size(), tree.dims());
    let values: Input<T, _> = n.input(Ix2(tree.len(), c));
    let grad_y: Input<T, _> = n.input(Ix2(queries.view().nrows(), c));
    n.call("Interpolate::forward", || op.forward(values.view(), queries.view()));
    n.call("Interpolate::adjoint", || op.adjoint(grad_y.view(), values.view(), queries.view()));
    let Some(at) = n.call("Interpolate::at", || op.at(queries.view())) else { return };
    n.call("Interpolation::neighbors", || Ok(at.neighbors().counts()));
    let weights = n.call("Interpolation::weights", || Ok(at.weights())).expect("no error");
    n.shape("Interpolation::weights", weights.shape(), &[queries.view().nrows(), k]);
    if let Some(y) = n.call("Interpolation::forward", || at.forward(values.view())) {
        n.shape("Interpolation::forward", y.shape(), &[queries.view().nrows(), values.view().ncols()]);
    }
    let mut y = n.output(Ix2(queries.view().nrows(), c));
    n.write("Interpolation::forward_into", &mut y, |y| at.forward_into(values.view(), y));
    n.call("Interpolation::adjoint_values", || at.adjoint_values(grad_y.view()));
    let mut grads = n.output(Ix2(tree.len(), c));
    n.write("Interpolation::adjoint_values_into", &mut grads, |out| at.adjoint_values_into(grad_y.view(), out));
    let mut grads = n.output(Ix2(tree.len(), c));
    n.write("Interpolation::adjoint_values_add", &mut grads, |out| at.adjoint_values_add(grad_y.view(), out));
    if let Some(found) = n.call("Interpolation::adjoint", || at.adjoint(grad_y.view(), values.view())) {
        n.shape("Interpolation::adjoint", found.grad_values.shape(), values.view().shape());
        n.shape("Interpolation::adjoint", found.grad_queries.shape(), queries.view().shape());
        n.shape("Interpolation::adjoint", found.grad_points.shape(), &[tree.len(), dims]);
    }
    for (entry, add) in [("Interpolation::adjoint_into", false), ("Interpolation::adjoint_add", true)] {
        let mut a: Output<T, _> = n.output(Ix2(tree.len(), c));
        let mut b: Output<T, _> = n.output(Ix2(queries.view().nrows(), dims));
        let mut c: Output<T, _> = n.output(Ix2(tree.len(), dims));
        let judged = n.attempt(entry, || {
            let (a, b, c) = (a.array.view_mut(), b.array.view_mut(), c.array.view_mut());
            match add {
                false => at.adjoint_into(grad_y.view(), values.view(), a, b, c),
                true => at.adjoint_add(grad_y.view(), values.view(), a, b, c),
            }
        });
        n.untouched(entry, &judged, a.is_as_before() && b.is_as_before() && c.is_as_before());
    }
}
