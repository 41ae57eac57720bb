//! Arrays that begin or end where memory does: nothing is read or written beside them, streamed or not, wherever in a
//! cache line they lie. `AddressSanitizer` does not see what instructions for streaming do; the memory management does.
#![cfg(unix)]
#![allow(unsafe_code, reason = "pages that must not be touched")]

mod common;

use common::cells::assert_same;
use common::levels;
use common::random::Random;
use common::values::{Value, Values};
use ndarray::{Array, Array2, ArrayView, ArrayViewMut, Dimension, IntoDimension};
use pullback::gather::{Extremum, Gather, Linear, OutOfRange, Pooled, Reduction, Segments, Ties, Weighted};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Parameters, Scatter};
use pullback::kdtree::{Interpolate, KdTreeDyn};
use pullback::mipmap::{MaxPyramid, MeanPyramid, Pyramid, PyramidBuilder, SumPyramid};
use pullback::triconv::{Correlation, Product, Scan, Weights};
use pullback::{Level, gather, gaussian, kdtree, mipmap, triconv};
use std::ptr;

/// A span of memory between two pages that must not be touched.
struct Span {
    base: *mut u8,
    bytes: usize,
    page: usize,
}

impl Span {
    /// Room for so many bytes, rounded up to pages.
    fn new(bytes: usize) -> Self {
        // SAFETY: asks for a number.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
        let bytes = bytes.next_multiple_of(page).max(page);
        let (all, access) = (bytes + 2 * page, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a new mapping of nothing that exists.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), all, libc::PROT_NONE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0)
        };
        assert_ne!(base, libc::MAP_FAILED, "a mapping");
        let base = base.cast::<u8>();
        // SAFETY: the pages between the first and the last of the mapping.
        let opened = unsafe { libc::mprotect(base.add(page).cast(), bytes, access) };
        assert_eq!(opened, 0, "pages that may be touched");
        Self { base, bytes, page }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        // SAFETY: the whole of the mapping, which nothing borrows any more.
        unsafe { libc::munmap(self.base.cast(), self.bytes + 2 * self.page) };
    }
}

/// Where in its pages an array lies: so many elements behind the first one, or so many before the end.
#[derive(Clone, Copy, Debug)]
enum Place {
    Start(usize),
    End(usize),
}

impl Place {
    /// Every place in a cache line, at either end.
    fn all<T>() -> impl Iterator<Item = Self> {
        (0..64 / size_of::<T>()).flat_map(|offset| [Self::Start(offset), Self::End(offset)])
    }

    /// A copy of an array here.
    fn of<T: Value, D: Dimension>(self, array: &Array<T, D>) -> Guarded<T, D> {
        Guarded::new(array, self)
    }

    /// An array here, to be overwritten.
    fn room<T: Value, D: IntoDimension>(self, shape: D) -> Guarded<T, D::Dim> {
        Guarded::new(&Array::from_elem(shape, T::nan()), self)
    }
}

/// An array beside a page that must not be touched.
struct Guarded<T, D> {
    // Holds the memory that `first` points into.
    _span: Span,
    first: *mut T,
    shape: D,
}

impl<T: Value, D: Dimension> Guarded<T, D> {
    fn new(array: &Array<T, D>, place: Place) -> Self {
        let size = size_of::<T>();
        let span = Span::new((array.len() + 64 / size) * size);
        let at = match place {
            Place::Start(offset) => offset * size,
            Place::End(offset) => span.bytes - (array.len() + offset) * size,
        };
        // SAFETY: inside of the pages that were opened, which have room for the array and a cache line.
        let first = unsafe { span.base.add(span.page + at) }.cast::<T>();
        for (i, &x) in array.iter().enumerate() {
            // SAFETY: `array.len()` elements from `first` on are in these pages, which are aligned.
            unsafe { first.add(i).write(x) };
        }
        Self { _span: span, first, shape: array.raw_dim() }
    }

    fn view(&self) -> ArrayView<'_, T, D> {
        // SAFETY: as many elements as the shape has were written from there on, and are borrowed with `self`.
        unsafe { ArrayView::from_shape_ptr(self.shape.clone(), self.first) }
    }

    fn view_mut(&mut self) -> ArrayViewMut<'_, T, D> {
        // SAFETY: as in `view`, borrowed mutably.
        unsafe { ArrayViewMut::from_shape_ptr(self.shape.clone(), self.first) }
    }
}

/// What one operator computes at a place, given a draw of numbers.
fn everywhere<T: Value>(check: impl Fn(Level, Place)) {
    levels::each(|level| Place::all::<T>().for_each(|place| check(level, place)));
}

fn numbers<T: Value, D: IntoDimension>(shape: D, seed: u64) -> Array<T, D::Dim> {
    Values::Spread.array(shape, seed)
}

/// Runs a call that writes to one array in ordinary memory and at a place, where the array holds the same before.
#[track_caller]
fn same<T: Value, D: Dimension>(
    what: &str,
    place: Place,
    before: &Array<T, D>,
    call: impl Fn(ArrayViewMut<'_, T, D>) -> pullback::Result<()>,
) {
    let (mut expected, mut guarded) = (before.clone(), place.of(before));
    call(expected.view_mut()).expect("valid input");
    call(guarded.view_mut()).expect("valid input");
    assert_same(&format!("{what} at {place:?}"), &guarded.view(), &expected);
}

/// [`same`] of a call that writes to two arrays.
#[track_caller]
fn both_same<T: Value, D: Dimension, E: Dimension>(
    what: &str,
    place: Place,
    (a, b): (&Array<T, D>, &Array<T, E>),
    call: impl Fn(ArrayViewMut<'_, T, D>, ArrayViewMut<'_, T, E>) -> pullback::Result<()>,
) {
    let (mut expected, mut guarded) = ((a.clone(), b.clone()), (place.of(a), place.of(b)));
    call(expected.0.view_mut(), expected.1.view_mut()).expect("valid input");
    call(guarded.0.view_mut(), guarded.1.view_mut()).expect("valid input");
    assert_same(&format!("{what} at {place:?}"), &guarded.0.view(), &expected.0);
    assert_same(&format!("{what} at {place:?}"), &guarded.1.view(), &expected.1);
}

/// Tunings of gather that stream, with every reduction, and one that asks for rows ahead.
fn gather_tunings() -> [gather::Tuning; 2] {
    [Reduction::Slab, Reduction::Inverse].map(|reduction| gather::Tuning {
        stream: Some(true),
        prefetch: Some(true),
        parallel: Some(false),
        reduction: Some(reduction),
        tile: Some(2),
        hub: Some(3),
    })
}

fn gather_at<T: Value>(level: Level, place: Place, channels: usize) {
    const ROWS: usize = 7;
    let mut random = Random::new(3);
    let indices = Array2::from_shape_simple_fn([5, 3], || random.below(ROWS));
    let (x, y) = (numbers::<T, _>([ROWS, channels], 1), numbers::<T, _>([5, 3, channels], 2));
    let (w, sums) = (numbers::<T, _>([5, 3], 3), numbers::<T, _>([5, channels], 4));
    let (x_here, y_here, w_here, sums_here) = (place.of(&x), place.of(&y), place.of(&w), place.of(&sums));
    let (x_here, y_here, w_here, sums_here) = (x_here.view(), y_here.view(), w_here.view(), sums_here.view());
    for tuning in gather_tunings() {
        let op = Gather::unbatched(indices.view(), ROWS, OutOfRange::Error).unwrap();
        let op = op.with_level(level).unwrap().with_tuning(tuning);
        same("y", place, &y, |out| op.forward_into(x_here, out));
        same("grad_x", place, &x, |out| op.adjoint_into(y_here, out));
        same("grad_x", place, &x, |out| op.adjoint_add(y_here, out));
        let op = Weighted::unbatched(indices.view(), ROWS, OutOfRange::Error).unwrap();
        let op = op.with_level(level).unwrap().with_tuning(tuning);
        same("sums", place, &sums, |out| op.forward_into(x_here, w_here, out));
        both_same("gradients", place, (&x, &w), |a, b| op.adjoint_into(sums_here, x_here, w_here, a, b));
        both_same("gradients", place, (&x, &w), |a, b| op.adjoint_add(sums_here, x_here, w_here, a, b));
        let op = Pooled::unbatched(indices.view(), ROWS, OutOfRange::Error).unwrap();
        let op = op.with_level(level).unwrap().with_tuning(tuning);
        same("means", place, &sums, |out| op.forward_into(Linear::Mean, x_here, out));
        same("grad_x", place, &x, |out| op.adjoint_into(Linear::Mean, sums_here, out));
        let even = || Ties::Even(Extremum::Max, x_here);
        same("grad_x", place, &x, |out| op.extremes_adjoint_add(sums_here, even(), out));
        let found = op.extremes(Extremum::Max, x.view()).unwrap();
        let mut values = place.room([5, channels]);
        let mut arguments = Array2::zeros([5, channels]);
        op.extremes_into(Extremum::Max, x_here, values.view_mut(), arguments.view_mut()).unwrap();
        assert_same("extremes", &values.view(), &found.values);
        let ids = indices.column(0);
        let op = Segments::new(ids, ROWS, OutOfRange::Error).unwrap().with_level(level).unwrap().with_tuning(tuning);
        same("sums", place, &x, |out| op.forward_into(Linear::Sum, sums_here, out));
        same("products", place, &x, |out| op.product_into(sums_here, out));
        same("shares", place, &sums, |out| op.softmax_into(sums_here, out));
        same("grad_x", place, &sums, |out| op.adjoint_add(Linear::Mean, x_here, out));
    }
}

#[test]
fn gather_beside_guard_pages() {
    for channels in [1, 3, 16, 17, 36] {
        everywhere::<f32>(|level, place| gather_at::<f32>(level, place, channels));
        everywhere::<f64>(|level, place| gather_at::<f64>(level, place, channels));
    }
}

fn maps_at<T: Value>(level: Level, place: Place, window: [usize; 2], mirror: bool) {
    let shapes = numbers::<T, _>([3, 2, 2], 1).mapv(|x| x / T::from_f64(1e6).unwrap()).into_dyn();
    let maps = numbers::<T, _>([3, window[0], window[1]], 2).into_dyn();
    let (shapes_here, maps_here) = (place.of(&shapes), place.of(&maps));
    let tuning = gaussian::Tuning {
        stream: Some(true),
        parallel: Some(false),
        tile: Some(2),
        mirror: Some(mirror),
        ..gaussian::Tuning::default()
    };
    let op = KernelMaps::<T>::rectangular(window, Centre::Middle).unwrap().with_level(level).unwrap();
    let op = op.with_tuning(tuning);
    same("maps", place, &maps, |out| op.forward_into(shapes_here.view(), out));
    same("grad_shapes", place, &shapes, |out| op.adjoint_into(maps_here.view(), shapes_here.view(), out));
    same("grad_shapes", place, &shapes, |out| op.adjoint_add(maps_here.view(), shapes_here.view(), out));
}

fn blurs_at<T: Value>(level: Level, place: Place, border: Border, width: usize) {
    let (image, small) = (numbers::<T, _>([1, 4, width, 2], 1), numbers::<T, _>([1, 4, width, 2], 2));
    let shapes = numbers::<T, _>([1, 4, width, 3], 3).mapv(|x| T::one() + x.abs() / T::from_f64(1e6).unwrap());
    let shapes = shapes.into_dyn();
    let (x, y, s) = (place.of(&image), place.of(&small), place.of(&shapes));
    let tuning =
        gaussian::Tuning { stream: Some(true), parallel: Some(false), tile: Some(2), ..gaussian::Tuning::default() };
    let op = Blur::<T>::rectangular([3, 5], Centre::Middle, border, 1).unwrap().with_level(level).unwrap();
    let op = op.with_parameters(Parameters::Sigmas).with_tuning(tuning);
    same("blurred", place, &small, |out| op.forward_into(x.view(), s.view(), out));
    both_same("gradients", place, (&image, &shapes), |a, b| op.adjoint_into(y.view(), x.view(), s.view(), a, b));
    let op = Scatter::<T>::rectangular([3, 5], Centre::Middle, border, 1).unwrap().with_level(level).unwrap();
    let op = op.with_parameters(Parameters::Sigmas).with_tuning(tuning);
    same("scattered", place, &image, |out| op.forward_into(y.view(), s.view(), out));
    both_same("gradients", place, (&small, &shapes), |a, b| op.adjoint_add(x.view(), y.view(), s.view(), a, b));
}

#[test]
fn gaussian_beside_guard_pages() {
    for (window, mirror) in [([3, 3], true), ([5, 7], false), ([16, 16], true), ([9, 17], true)] {
        everywhere::<f32>(|level, place| maps_at::<f32>(level, place, window, mirror));
        everywhere::<f64>(|level, place| maps_at::<f64>(level, place, window, mirror));
    }
    for (border, width) in [(Border::Reflect, 5), (Border::Wrap, 16), (Border::Constant(1.0), 19)] {
        everywhere::<f32>(|level, place| blurs_at::<f32>(level, place, border, width));
        everywhere::<f64>(|level, place| blurs_at::<f64>(level, place, border, width));
    }
}

fn triconv_at<T: Value>(level: Level, place: Place, lanes: Option<triconv::Lanes>, [n, p, m]: [usize; 3]) {
    let draw = |n: usize, p: usize, m: usize, seed| {
        let small = Values::Integers.array::<T, _>([2, n, p, m], seed);
        small.mapv(|x| x / T::from_f64(8.0).unwrap()).into_dyn()
    };
    let tuning = triconv::Tuning { lanes, parallel: Some(false), rows: Some(2), ..triconv::Tuning::default() };
    let (s, b) = (draw(n + 1, p, m, 1), draw(n, m, m, 2));
    let (s_here, b_here) = (place.of(&s), place.of(&b));
    let op = Scan::<T>::new(n, Weights::Taylor).unwrap().with_level(level).unwrap().with_tuning(tuning);
    same("a", place, &s, |out| op.forward_with_into(s_here.view(), b_here.view(), out));
    let scanned = op.forward_with(s.view(), b.view()).unwrap();
    let a = place.of(&scanned);
    both_same("gradients", place, (&s, &b), |x, y| op.adjoint_add(s_here.view(), a.view(), b_here.view(), x, y));
    let op = Product::<T>::new(n, Weights::Binomial).unwrap().with_level(level).unwrap().with_tuning(tuning);
    let c = draw(n, p, m, 3);
    let c_here = place.of(&c);
    same("c", place, &c, |out| op.forward_into(s_here.view(), b_here.view(), out));
    both_same("gradients", place, (&s, &b), |x, y| op.adjoint_into(c_here.view(), s_here.view(), b_here.view(), x, y));
    let op = Correlation::<T>::new(n, Weights::Plain).unwrap().with_level(level).unwrap().with_tuning(tuning);
    same("d", place, &b, |out| op.forward_into(s_here.view(), c_here.view(), out));
}

#[test]
fn triconv_beside_guard_pages() {
    for (at, sizes) in [[3, 1, 1], [5, 2, 3], [4, 3, 16], [4, 2, 17]].into_iter().enumerate() {
        let lanes = [None, Some(triconv::Lanes::Columns), Some(triconv::Lanes::Time), Some(triconv::Lanes::Batch)][at];
        for lanes in [None, lanes] {
            everywhere::<f32>(|level, place| triconv_at::<f32>(level, place, lanes, sizes));
            everywhere::<f64>(|level, place| triconv_at::<f64>(level, place, lanes, sizes));
        }
    }
}

fn kdtree_at<T: Value>(level: Level, place: Place, dims: usize) {
    let (points, queries) = (numbers::<T, _>([37, dims], 1), numbers::<T, _>([19, dims], 2));
    let (points_here, queries_here) = (place.of(&points), place.of(&queries));
    let queries_here = queries_here.view();
    for on in [false, true] {
        let tuning = kdtree::Tuning { packets: Some(on), sort: Some(on), parallel: Some(false) };
        let tree = KdTreeDyn::new(points_here.view()).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let found = tree.knn(queries_here, 3).unwrap();
        assert_eq!(found, tree.knn(queries.view(), 3).unwrap());
        let radius = kdtree::PerQuery::One(found.distances[[0, 2]]);
        assert_eq!(tree.radius(queries_here, radius).unwrap(), tree.radius(queries.view(), radius).unwrap());
        let grads = numbers::<T, _>([19, 3], 3);
        let grads_here = place.of(&grads);
        both_same("gradients", place, (&queries, &points), |a, b| {
            tree.search().knn_adjoint_add(grads_here.view(), queries_here, found.indices.view(), a, b)
        });
        let interpolate = Interpolate::new(&tree, 3, T::from_f64(2.0).unwrap(), T::zero()).unwrap();
        let at = interpolate.at(queries_here).unwrap();
        for channels in [3, 16] {
            let (values, y) = (numbers::<T, _>([37, channels], 4), numbers::<T, _>([19, channels], 5));
            let (values_here, y_here) = (place.of(&values), place.of(&y));
            same("y", place, &y, |out| at.forward_into(values_here.view(), out));
            both_same("gradients", place, (&values, &queries), |a, b| {
                let mut c = place.room([37, dims]);
                at.adjoint_into(y_here.view(), values_here.view(), a, b, c.view_mut())
            });
        }
    }
}

#[test]
fn kdtree_beside_guard_pages() {
    for dims in [1, 2, 3, 4, 7] {
        everywhere::<f32>(|level, place| kdtree_at::<f32>(level, place, dims));
        everywhere::<f64>(|level, place| kdtree_at::<f64>(level, place, dims));
    }
}

fn mipmap_at<T: Value>(level: Level, place: Place, shape: [usize; 3]) {
    let x = numbers::<T, _>(shape, 1);
    let x_here = place.of(&x);
    for fused in [false, true] {
        let tuning = mipmap::Tuning { parallel: Some(false), fused: Some(fused), stream: Some(true), task: Some(1) };
        let build = |array| {
            let builder = PyramidBuilder::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
            builder.threshold(array, T::zero()).unwrap()
        };
        let pyramid: Pyramid = build(x_here.view());
        assert!(pyramid == build(x.view()));
        let rays = numbers::<T, _>([5, 3], 2).mapv(|x| x / T::from_f64(1e4).unwrap());
        let rays_here = place.of(&rays);
        let cast = |rays: ArrayView<'_, T, ndarray::Ix2>| pyramid.raycast(rays, rays, 100.0).unwrap();
        let (found, expected) = (cast(rays_here.view()), cast(rays.view()));
        assert_eq!((found.cells, found.t), (expected.cells, expected.t));
        let sums = SumPyramid::<T>::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let levels = sums.forward(x.view()).unwrap();
        assert_eq!(sums.forward(x_here.view()).unwrap(), levels);
        let grads: Vec<_> = std::iter::once(&x).chain(&levels).map(|level| place.of(level)).collect();
        let grads: Vec<_> = grads.iter().map(|grad| Some(grad.view())).collect();
        same("grad_x", place, &x, |out| sums.adjoint_into(&grads, out));
        let means = MeanPyramid::<T>::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
        same("grad_x", place, &x, |out| means.adjoint_into(&grads, out));
        let maxima = MaxPyramid::<T>::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let largest = maxima.forward(x_here.view()).unwrap();
        assert_eq!(largest, maxima.forward(x.view()).unwrap());
        same("grad_x", place, &x, |out| maxima.adjoint_into(&grads, &largest.arguments, out));
    }
}

#[test]
fn mipmap_beside_guard_pages() {
    for shape in [[1, 1, 1], [2, 3, 5], [4, 4, 32], [3, 2, 67]] {
        everywhere::<f32>(|level, place| mipmap_at::<f32>(level, place, shape));
        everywhere::<f64>(|level, place| mipmap_at::<f64>(level, place, shape));
    }
}
