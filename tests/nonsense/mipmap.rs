//! Every entry of `mipmap`.

use crate::common::values::Value;
use crate::driver::{Drawn, Input, Nonsense, Output, drive};
use ndarray::{Array3, Ix2, Ix3};
use pullback::bitvec::prelude::{BitVec, Lsb0};
use pullback::mipmap::{
    Connectivity, LevelView, MaxPyramid, MeanPyramid, Occupancy, Pyramid, PyramidBuilder, SumPyramid, Tuning, Voxel,
    full_levels,
};

const FALLIBLE: [&str; 63] = [
    "PyramidBuilder::new",
    "PyramidBuilder::with_levels",
    "PyramidBuilder::with_mapping",
    "PyramidBuilder::threshold",
    "PyramidBuilder::nonzero",
    "PyramidBuilder::bits",
    "PyramidBuilder::push_slab",
    "PyramidBuilder::push_slab_nonzero",
    "PyramidBuilder::finish",
    "Pyramid::build_to",
    "Pyramid::extend_to",
    "Pyramid::from_threshold",
    "Pyramid::from_nonzero",
    "Pyramid::from_bits",
    "Pyramid::from_points",
    "Pyramid::empty",
    "Pyramid::with_mapping",
    "Pyramid::level",
    "Pyramid::raycast",
    "Pyramid::traverse",
    "Pyramid::cells",
    "Pyramid::any_in_box",
    "Pyramid::count_in_box",
    "Pyramid::all_in_box",
    "Pyramid::set",
    "Pyramid::clear",
    "Pyramid::set_box",
    "Pyramid::update",
    "Pyramid::update_nonzero",
    "Pyramid::update_bits",
    "Pyramid::or_with",
    "Pyramid::and_with",
    "Pyramid::and_not_with",
    "Pyramid::xor_with",
    "Pyramid::save",
    "Pyramid::load",
    "Pyramid::read",
    "Occupancy::from_threshold",
    "Occupancy::from_nonzero",
    "Occupancy::from_bits",
    "Occupancy::from_points",
    "Occupancy::empty",
    "Occupancy::with_mapping",
    "LevelView::get",
    "SumPyramid::new",
    "SumPyramid::with_levels",
    "SumPyramid::forward",
    "SumPyramid::forward_into",
    "SumPyramid::adjoint",
    "SumPyramid::adjoint_into",
    "SumPyramid::adjoint_add",
    "MeanPyramid::new",
    "MeanPyramid::with_levels",
    "MeanPyramid::forward",
    "MeanPyramid::forward_into",
    "MeanPyramid::adjoint",
    "MeanPyramid::adjoint_into",
    "MeanPyramid::adjoint_add",
    "MaxPyramid::new",
    "MaxPyramid::with_levels",
    "MaxPyramid::forward",
    "MaxPyramid::forward_into",
    "MaxPyramid::adjoint",
];

const INFALLIBLE: [&str; 38] = [
    "Pyramid::dilate",
    "Pyramid::erode",
    "Pyramid::build",
    "full_levels",
    "PyramidBuilder::simd_level",
    "PyramidBuilder::with_level",
    "PyramidBuilder::planes",
    "Pyramid::write",
    "Pyramid::into_occupancy",
    "Pyramid::mapping",
    "Pyramid::simd_level",
    "Pyramid::with_level",
    "Pyramid::shape",
    "Pyramid::levels",
    "Pyramid::bytes",
    "Occupancy::mapping",
    "Occupancy::shape",
    "Occupancy::grid",
    "LevelView::shape",
    "LevelView::count",
    "LevelView::iter_occupied",
    "LevelView::bounds",
    "LevelView::to_array",
    "LevelView::rows",
    "Cells::next",
    "SumPyramid::simd_level",
    "SumPyramid::with_level",
    "SumPyramid::shape",
    "SumPyramid::levels",
    "SumPyramid::level_shape",
    "MeanPyramid::simd_level",
    "MeanPyramid::with_level",
    "MeanPyramid::shape",
    "MeanPyramid::levels",
    "MeanPyramid::level_shape",
    "MaxPyramid::simd_level",
    "MaxPyramid::with_level",
    "MaxPyramid::shape",
];

#[test]
fn mipmap() {
    let fallible = [&FALLIBLE[..], &["MaxPyramid::adjoint_into", "MaxPyramid::adjoint_add"]].concat();
    let infallible = [&INFALLIBLE[..], &["MaxPyramid::levels", "MaxPyramid::level_shape"]].concat();
    drive(&fallible, &infallible, 3000, |n| match n.random.below(8) {
        0 => sums::<f32>(n),
        1 => means::<f64>(n),
        2 => maxima::<f32>(n),
        3 => maxima::<f64>(n),
        4 => grids::<f32, u8>(n),
        5 => grids::<f64, bool>(n),
        6 => grids::<f32, i32>(n),
        _ => builders::<f64, u8>(n),
    });
}

fn tuning(n: &mut Nonsense) -> Tuning {
    let task = n.random.one_of(&[None, Some(1), Some(3)]);
    Tuning { parallel: n.choice(), fused: n.choice(), stream: n.choice(), task }
}

/// A shape of a grid: mostly one that exists, with a last axis of a few words.
fn shape(n: &mut Nonsense) -> [usize; 3] {
    if n.chance(6) {
        return [n.size(), n.size(), n.size()];
    }
    [1 + n.random.below(9), 1 + n.random.below(9), n.random.one_of(&[1, 3, 64, 65, 130])]
}

/// A cell: mostly of the grid.
fn cell(n: &mut Nonsense, shape: [usize; 3]) -> [usize; 3] {
    shape.map(|axis| if n.chance(12) { n.count() } else { n.random.below(axis.clamp(1, 1 << 30)) })
}

/// A box: mostly of the grid.
fn range(n: &mut Nonsense, shape: [usize; 3]) -> ([usize; 3], [usize; 3]) {
    let (a, b) = (cell(n, shape), cell(n, shape));
    if n.chance(6) {
        return (a, b);
    }
    ([0, 1, 2].map(|axis| a[axis].min(b[axis])), [0, 1, 2].map(|axis| a[axis].max(b[axis])))
}

/// Bits of the rows of a grid, mostly as many as it needs.
fn bits(n: &mut Nonsense, shape: [usize; 3]) -> BitVec<u64, Lsb0> {
    let words = shape[2].div_ceil(64).saturating_mul(shape[0]).saturating_mul(shape[1]);
    let words = if words > 1 << 14 || n.chance(8) { n.small() } else { words };
    let mut bits = BitVec::from_vec((0..words).map(|_| n.random.bits() & n.random.bits()).collect());
    if n.chance(10) {
        bits.truncate(bits.len().saturating_sub(n.small()));
    }
    bits
}

fn mapping(n: &mut Nonsense) -> ([f64; 3], f64) {
    ([n.parameter(), n.parameter(), n.parameter()], n.parameter() + 0.25)
}

fn grids<T: Value + Drawn, V: Voxel + Drawn>(n: &mut Nonsense) {
    let shape = shape(n);
    n.call("full_levels", || Ok(full_levels(shape)));
    n.bound = 3;
    let numbers: Input<T, _> = n.input(Ix3(shape[0], shape[1], shape[2]));
    let voxels: Input<V, _> = n.input(Ix3(shape[0], shape[1], shape[2]));
    let rows = bits(n, shape);
    let points = n.small();
    let points: Input<T, _> = n.input_in_memory(Ix2(points, 3));
    let (origin, voxel) = mapping(n);
    let threshold = T::from_f64(n.parameter()).expect("rounded");
    let by_points = n.call("Occupancy::from_points", || Occupancy::from_points(points.view(), origin, voxel, shape));
    let occupancies = [
        n.call("Occupancy::from_threshold", || Occupancy::from_threshold(numbers.view(), threshold)),
        n.call("Occupancy::from_nonzero", || Occupancy::from_nonzero(voxels.view())),
        n.call("Occupancy::from_bits", || Occupancy::from_bits(&rows, shape)),
        by_points.map(|found| found.0),
        n.call("Occupancy::empty", || Occupancy::empty(shape)),
    ];
    let levels = if n.chance(4) { n.count() } else { 1 + n.random.below(4) };
    for (at, occupancy) in occupancies.into_iter().flatten().enumerate() {
        let mapped = mapping(n);
        let occupancy = match n.chance(4) {
            true => n.call("Occupancy::with_mapping", || occupancy.with_mapping(mapped.0, mapped.1)),
            false => Some(occupancy),
        };
        let Some(occupancy) = occupancy else { continue };
        n.call("Occupancy::mapping", || Ok(occupancy.mapping()));
        n.call("Occupancy::shape", || Ok(occupancy.shape()));
        n.call("Occupancy::grid", || Ok(occupancy.grid().shape()));
        match at % 2 {
            0 => n.call("Pyramid::build", || Pyramid::build(occupancy)),
            _ => n.call("Pyramid::build_to", || Pyramid::build_to(occupancy, levels)),
        };
    }
    let by_points = n.call("Pyramid::from_points", || Pyramid::from_points(points.view(), origin, voxel, shape));
    let pyramids = [
        n.call("Pyramid::from_threshold", || Pyramid::from_threshold(numbers.view(), threshold)),
        n.call("Pyramid::from_nonzero", || Pyramid::from_nonzero(voxels.view())),
        n.call("Pyramid::from_bits", || Pyramid::from_bits(&rows, shape)),
        by_points.map(|found| found.0),
        n.call("Pyramid::empty", || Pyramid::empty(shape)),
    ];
    let mut pyramids: Vec<Pyramid> = pyramids.into_iter().flatten().collect();
    if pyramids.is_empty() {
        return;
    }
    let other = pyramids.swap_remove(n.random.below(pyramids.len()));
    let Some(pyramid) = pyramids.pop() else { return };
    let level = n.level();
    let Some(pyramid) = n.call("Pyramid::with_level", || pyramid.with_level(level)) else { return };
    let mut pyramid = pyramid.with_tuning(tuning(n));
    let mapped = mapping(n);
    if n.chance(2) {
        let Some(mapped) = n.call("Pyramid::with_mapping", || pyramid.with_mapping(mapped.0, mapped.1)) else { return };
        pyramid = mapped;
    }
    n.call("Pyramid::extend_to", || pyramid.extend_to(levels));
    n.call("Pyramid::simd_level", || Ok(pyramid.simd_level()));
    n.call("Pyramid::mapping", || Ok(pyramid.mapping()));
    n.call("Pyramid::bytes", || Ok(pyramid.bytes()));
    asked(n, &pyramid);
    rays::<T>(n, &pyramid);
    changed::<T, V>(n, &mut pyramid, &other);
    n.call("Pyramid::into_occupancy", || Ok(pyramid.into_occupancy()));
}

fn asked(n: &mut Nonsense, pyramid: &Pyramid) {
    let shape = n.call("Pyramid::shape", || Ok(pyramid.shape())).expect("no error");
    let levels = n.call("Pyramid::levels", || Ok(pyramid.levels())).expect("no error");
    let k = if n.chance(4) { n.count() } else { n.random.below(levels) };
    if let Some(level) = n.call("Pyramid::level", || pyramid.level(k)) {
        view(n, level);
    }
    let (lo, hi) = range(n, shape);
    n.call("Pyramid::any_in_box", || pyramid.any_in_box(lo, hi));
    n.call("Pyramid::count_in_box", || pyramid.count_in_box(lo, hi));
    n.call("Pyramid::all_in_box", || pyramid.all_in_box(lo, hi));
    let neighbours = n.random.one_of(&[Connectivity::Six, Connectivity::TwentySix]);
    n.call("Pyramid::dilate", || pyramid.dilate(neighbours));
    n.call("Pyramid::erode", || pyramid.erode(neighbours));
    let mut bytes = Vec::new();
    n.call("Pyramid::write", || pyramid.write(&mut bytes));
    n.call("Pyramid::read", || Pyramid::read(&bytes[..]));
    let at = n.random.below(bytes.len());
    bytes[at] ^= 1 << n.random.below(8);
    bytes.truncate(if n.chance(2) { bytes.len() } else { n.random.below(bytes.len()) });
    n.call("Pyramid::read", || Pyramid::read(&bytes[..]));
    if n.chance(20) {
        let scratch = crate::common::scratch::Scratch::new();
        n.call("Pyramid::save", || pyramid.save(scratch.path("no/where")));
        n.call("Pyramid::save", || pyramid.save(scratch.path("pyramid")));
        n.call("Pyramid::load", || Pyramid::load(scratch.path("pyramid")));
        n.call("Pyramid::load", || Pyramid::load(scratch.path("nothing")));
    }
}

fn view(n: &mut Nonsense, level: LevelView<'_>) {
    let shape = n.call("LevelView::shape", || Ok(level.shape())).expect("no error");
    let cell = cell(n, shape);
    n.call("LevelView::get", || level.get(cell));
    let count = n.call("LevelView::count", || Ok(level.count()));
    let listed = n.call("LevelView::iter_occupied", || Ok(level.iter_occupied().count()));
    if let (Some(count), Some(listed)) = (count, listed) {
        n.shape("LevelView::count", &[count as usize], &[listed]);
    }
    n.call("LevelView::bounds", || Ok(level.bounds()));
    if let Some(array) = n.call("LevelView::to_array", || level.to_array::<bool>()) {
        n.shape("LevelView::to_array", array.shape(), &shape);
    }
    n.call("LevelView::rows", || level.rows());
}

fn rays<T: Value + Drawn>(n: &mut Nonsense, pyramid: &Pyramid) {
    let count = n.size();
    let (origins, directions): (Input<T, _>, Input<T, _>) = (n.input(Ix2(count, 3)), n.input(Ix2(count, 3)));
    let t_max = n.parameter();
    if let Some(hits) = n.call("Pyramid::raycast", || pyramid.raycast(origins.view(), directions.view(), t_max)) {
        n.shape("Pyramid::raycast", hits.cells.shape(), origins.view().shape());
        n.shape("Pyramid::raycast", hits.t.shape(), &[origins.view().nrows()]);
    }
    n.call("Pyramid::traverse", || pyramid.traverse(origins.view(), directions.view(), t_max));
    let draw = |n: &mut Nonsense| {
        [0; 3].map(|_| if n.chance(4) { T::draw(n) } else { T::from_f64(n.random.uniform() - 0.5).expect("rounded") })
    };
    let (origin, direction) = (draw(n), draw(n));
    if let Some(cells) = n.call("Pyramid::cells", || pyramid.cells(origin, direction, t_max)) {
        n.call("Cells::next", || Ok(cells.take(1000).count()));
    }
}

fn changed<T: Value + Drawn, V: Voxel + Drawn>(n: &mut Nonsense, pyramid: &mut Pyramid, other: &Pyramid) {
    let shape = pyramid.shape();
    let at = cell(n, shape);
    let mut bytes = Vec::new();
    pyramid.write(&mut bytes).expect("memory");
    // A refused change changes nothing.
    let mut change =
        |n: &mut Nonsense, entry: &'static str, call: &mut dyn FnMut(&mut Pyramid) -> pullback::Result<()>| {
            let before = bytes.clone();
            let judged = n.attempt(entry, || call(pyramid));
            bytes.clear();
            pyramid.write(&mut bytes).expect("memory");
            n.untouched(entry, &judged, before == bytes);
        };
    change(n, "Pyramid::set", &mut |pyramid| pyramid.set(at));
    change(n, "Pyramid::clear", &mut |pyramid| pyramid.clear(at));
    let (lo, hi) = range(n, shape);
    let occupied = n.chance(2);
    change(n, "Pyramid::set_box", &mut |pyramid| pyramid.set_box(lo, hi, occupied));
    let part = [0, 1, 2].map(|axis| hi[axis].saturating_sub(lo[axis]).min(1 << 50));
    let numbers: Input<T, _> = n.input(Ix3(part[0], part[1], part[2]));
    let voxels: Input<V, _> = n.input(Ix3(part[0], part[1], part[2]));
    let threshold = T::from_f64(n.parameter()).expect("rounded");
    change(n, "Pyramid::update", &mut |pyramid| pyramid.update(lo, numbers.view(), threshold));
    change(n, "Pyramid::update_nonzero", &mut |pyramid| pyramid.update_nonzero(lo, voxels.view()));
    let rows = bits(n, part);
    change(n, "Pyramid::update_bits", &mut |pyramid| pyramid.update_bits(lo, &rows, part));
    let smaller;
    let other = match n.chance(4) {
        true => {
            smaller = Pyramid::empty([1 + n.random.below(9), 2, 3]).expect("a small one");
            &smaller
        }
        false => other,
    };
    change(n, "Pyramid::or_with", &mut |pyramid| pyramid.or_with(other));
    change(n, "Pyramid::and_with", &mut |pyramid| pyramid.and_with(other));
    change(n, "Pyramid::and_not_with", &mut |pyramid| pyramid.and_not_with(other));
    change(n, "Pyramid::xor_with", &mut |pyramid| pyramid.xor_with(other));
}

fn builders<T: Value + Drawn, V: Voxel + Drawn>(n: &mut Nonsense) {
    let shape = shape(n);
    let levels = if n.chance(4) { n.count() } else { 1 + n.random.below(3) };
    let mapped = mapping(n);
    let (level, tuning) = (n.level(), tuning(n));
    let with = (n.chance(3), n.chance(3));
    let made = |n: &mut Nonsense| {
        let mut builder = n.call("PyramidBuilder::new", || PyramidBuilder::new(shape))?;
        if with.0 {
            builder = n.call("PyramidBuilder::with_levels", || builder.with_levels(levels))?;
        }
        if with.1 {
            builder = n.call("PyramidBuilder::with_mapping", || builder.with_mapping(mapped.0, mapped.1))?;
        }
        let builder = n.call("PyramidBuilder::with_level", || builder.with_level(level))?.with_tuning(tuning);
        n.call("PyramidBuilder::simd_level", || Ok(builder.simd_level()));
        Some(builder)
    };
    n.bound = 3;
    let numbers: Input<T, _> = n.input(Ix3(shape[0], shape[1], shape[2]));
    let voxels: Input<V, _> = n.input(Ix3(shape[0], shape[1], shape[2]));
    let rows = bits(n, shape);
    let threshold = T::from_f64(n.parameter()).expect("rounded");
    let Some(builder) = made(n) else { return };
    n.call("PyramidBuilder::threshold", || builder.threshold(numbers.view(), threshold));
    let Some(builder) = made(n) else { return };
    n.call("PyramidBuilder::nonzero", || builder.nonzero(voxels.view()));
    let Some(builder) = made(n) else { return };
    n.call("PyramidBuilder::bits", || builder.bits(&rows));
    let Some(mut builder) = made(n) else { return };
    for _ in 0..10 {
        let planes = n.call("PyramidBuilder::planes", || Ok(builder.planes())).expect("no error");
        let left = shape[0].saturating_sub(planes);
        let more = if n.chance(8) { n.size() } else { left.min(1 + n.random.below(5)) };
        if n.chance(2) {
            let slab: Input<T, _> = n.input(Ix3(more, shape[1], shape[2]));
            n.call("PyramidBuilder::push_slab", || builder.push_slab(slab.view(), threshold));
        } else {
            let slab: Input<V, _> = n.input(Ix3(more, shape[1], shape[2]));
            n.call("PyramidBuilder::push_slab_nonzero", || builder.push_slab_nonzero(slab.view()));
        }
    }
    n.call("PyramidBuilder::finish", || builder.finish());
}

/// Arrays of the levels from `first` on, mostly of their shapes.
fn arrays<X: Drawn>(
    n: &mut Nonsense,
    first: usize,
    levels: usize,
    shape: impl Fn(usize) -> [usize; 3],
) -> Vec<Array3<X>> {
    let last = if n.chance(8) { levels + n.small() } else { levels };
    (first..last.min(first + 70))
        .map(|k| {
            let [x, y, z] = shape(k.min(levels.saturating_sub(1)));
            let output: Output<X, _> = n.output(Ix3(x, y, z));
            output.array.view().to_owned()
        })
        .collect()
}

fn same<X: Drawn>(a: &[Array3<X>], b: &[Array3<X>]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.iter().zip(b).all(|(a, b)| a.bits() == b.bits()))
}

macro_rules! linear {
    ($name:ident, $family:ident) => {
        fn $name<T: Value + Drawn>(n: &mut Nonsense) {
            let shape = shape(n);
            let made = n.call(concat!(stringify!($family), "::new"), || $family::<T>::new(shape));
            let Some(op) = made else { return };
            let levels = if n.chance(4) { n.count() } else { 1 + n.random.below(3) };
            let made = match n.chance(3) {
                true => n.call(concat!(stringify!($family), "::with_levels"), || op.with_levels(levels)),
                false => Some(op),
            };
            let Some(op) = made else { return };
            let level = n.level();
            let made = n.call(concat!(stringify!($family), "::with_level"), || op.with_level(level));
            let Some(op) = made else { return };
            let op = op.with_tuning(tuning(n));
            n.call(concat!(stringify!($family), "::simd_level"), || Ok(op.simd_level()));
            n.call(concat!(stringify!($family), "::shape"), || Ok(op.shape()));
            let levels = n.call(concat!(stringify!($family), "::levels"), || Ok(op.levels())).expect("no error");
            let beyond = n.count();
            n.call(concat!(stringify!($family), "::level_shape"), || Ok(op.level_shape(beyond)));
            let x: Input<T, _> = n.input(Ix3(shape[0], shape[1], shape[2]));
            let found = n.call(concat!(stringify!($family), "::forward"), || op.forward(x.view()));
            for (k, found) in (1..).zip(found.into_iter().flatten()) {
                n.shape(stringify!($family), found.shape(), &op.level_shape(k));
            }
            let mut out = arrays::<T>(n, 1, levels, |k| op.level_shape(k));
            let before = out.clone();
            let entry = concat!(stringify!($family), "::forward_into");
            let judged = n.attempt(entry, || op.forward_into(x.view(), &mut out));
            n.untouched(entry, &judged, same(&before, &out));
            let grads = arrays::<T>(n, 0, levels, |k| op.level_shape(k));
            let grads: Vec<_> = grads.iter().map(|grad| (!n.chance(4)).then(|| grad.view())).collect();
            if let Some(found) = n.call(concat!(stringify!($family), "::adjoint"), || op.adjoint(&grads)) {
                n.shape(stringify!($family), found.shape(), &shape);
            }
            let mut out: Output<T, _> = n.output(Ix3(shape[0], shape[1], shape[2]));
            n.write(concat!(stringify!($family), "::adjoint_into"), &mut out, |out| op.adjoint_into(&grads, out));
            let mut out: Output<T, _> = n.output(Ix3(shape[0], shape[1], shape[2]));
            n.write(concat!(stringify!($family), "::adjoint_add"), &mut out, |out| op.adjoint_add(&grads, out));
        }
    };
}
linear!(sums, SumPyramid);
linear!(means, MeanPyramid);

fn maxima<T: Value + Drawn>(n: &mut Nonsense) {
    let shape = shape(n);
    let Some(op) = n.call("MaxPyramid::new", || MaxPyramid::<T>::new(shape)) else { return };
    let levels = if n.chance(4) { n.count() } else { 1 + n.random.below(3) };
    let made = match n.chance(3) {
        true => n.call("MaxPyramid::with_levels", || op.with_levels(levels)),
        false => Some(op),
    };
    let Some(op) = made else { return };
    let level = n.level();
    let Some(op) = n.call("MaxPyramid::with_level", || op.with_level(level)) else { return };
    let op = op.with_tuning(tuning(n));
    n.call("MaxPyramid::simd_level", || Ok(op.simd_level()));
    n.call("MaxPyramid::shape", || Ok(op.shape()));
    let levels = n.call("MaxPyramid::levels", || Ok(op.levels())).expect("no error");
    let beyond = n.count();
    n.call("MaxPyramid::level_shape", || Ok(op.level_shape(beyond)));
    let x: Input<T, _> = n.input(Ix3(shape[0], shape[1], shape[2]));
    let found = n.call("MaxPyramid::forward", || op.forward(x.view()));
    let mut out = arrays::<T>(n, 1, levels, |k| op.level_shape(k));
    n.bound = 8;
    let mut arguments = arrays::<u8>(n, 1, levels, |k| op.level_shape(k));
    let before = (out.clone(), arguments.clone());
    let judged = n.attempt("MaxPyramid::forward_into", || op.forward_into(x.view(), &mut out, &mut arguments));
    n.untouched("MaxPyramid::forward_into", &judged, same(&before.0, &out) && same(&before.1, &arguments));
    let arguments = found.map_or(arguments, |found| found.arguments);
    let grads = arrays::<T>(n, 0, levels, |k| op.level_shape(k));
    let grads: Vec<_> = grads.iter().map(|grad| (!n.chance(4)).then(|| grad.view())).collect();
    if let Some(found) = n.call("MaxPyramid::adjoint", || op.adjoint(&grads, &arguments)) {
        n.shape("MaxPyramid::adjoint", found.shape(), &shape);
    }
    let mut out: Output<T, _> = n.output(Ix3(shape[0], shape[1], shape[2]));
    n.write("MaxPyramid::adjoint_into", &mut out, |out| op.adjoint_into(&grads, &arguments, out));
    let mut out: Output<T, _> = n.output(Ix3(shape[0], shape[1], shape[2]));
    n.write("MaxPyramid::adjoint_add", &mut out, |out| op.adjoint_add(&grads, &arguments, out));
}
