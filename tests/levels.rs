//! Every operator once, tiny, at every level: what emulators and memory checkers, which are hundreds of times slower, run.

mod common;

use common::adjoint_case::{AdjointCase, Named};
use common::blur_case::{BORDERS, BlurCase};
use common::cells::assert_cells;
use common::gather::{adjoint, adjoint_add, forward, operator, random_ids};
use common::interpolate_case::InterpolateCase;
use common::levels;
use common::limits::Limit;
use common::maps_case::{Data as Shapes, MapsCase, PARAMETERS};
use common::maps_strategy::PATHS;
use common::mipmap_case::{Input, MipmapCase};
use common::mipmap_floats::{Family as Windows, FloatsCase};
use common::mipmap_walk::{Rays, RaysCase};
use common::neighbors::assert_exact;
use common::neighbors_case::Case;
use common::pooled_case::Pooling;
use common::reduction_case::{Family, Form, Problem};
use common::search_case::SearchCase;
use common::segment_case::BySegment;
use common::space::{Axes, METRICS};
use common::triconv_product_case::ProductCase;
use common::triconv_scan_case::{Data, KINDS, SIDES, ScanCase, WEIGHTS};
use common::triconv_strategy::LANES;
use common::values::{Value, Values};
use common::weighted_case::WeightedSums;
use ndarray::{ArrayViewMut, array, s};
use pullback::Level;
use pullback::gather::{OutOfRange, Reduction, Tuning};
use pullback::gaussian;
use pullback::kdtree::Builder;
use pullback::mipmap;
use pullback::triconv;

fn rows<T: Value>(level: Level, channels: usize, tuning: Tuning) {
    let (rows, policy) = (3, OutOfRange::Skip { fill: 0.5 });
    let indices = random_ids([2, 3, 2], rows + 1);
    let mut x = Values::Adversarial.array::<T, _>([2, rows, channels], 1);
    let y = Values::Adversarial.array::<T, _>([2, 3, 2, channels], 2);
    let gather = operator(level, &indices, rows, policy).with_tuning(tuning);

    let expected = forward(&x, &indices, policy);
    assert_cells("y", &gather.forward(x.view()).unwrap(), &expected);
    // Where 16 bytes are aligned and where they are not.
    for offset in [4, 1] {
        let mut memory = vec![T::zero(); offset + y.len()];
        let mut output = ArrayViewMut::from_shape(y.raw_dim(), &mut memory[offset..]).unwrap();
        gather.forward_into(x.view(), output.view_mut()).unwrap();
        assert_cells("y", &output, &expected);
    }
    assert_cells("grad_x", &gather.adjoint(y.view()).unwrap(), &adjoint(&y, &indices, policy, rows));
    let expected = adjoint_add(&y, &indices, policy, &x);
    gather.adjoint_add(y.view(), x.view_mut()).unwrap();
    assert_cells("grad_x", &x, &expected);
}

#[test]
fn gather_rows() {
    levels::each(|level| {
        for (reduction, on) in [(Reduction::Slab, false), (Reduction::Inverse, true)] {
            let tuning = Tuning {
                stream: Some(on),
                prefetch: Some(on),
                parallel: Some(on),
                reduction: Some(reduction),
                tile: Some(2),
                hub: Some(3),
            };
            for channels in [3, 16, 36] {
                rows::<f32>(level, channels, tuning);
                rows::<f64>(level, channels, tuning);
            }
        }
    });
}

/// A few groups of each form, with padding, ties and zeros of both signs.
fn reductions<F: Family>() {
    levels::each(|level| {
        for (reduction, on) in [(Reduction::Slab, false), (Reduction::Inverse, true)] {
            let tuning = Tuning {
                stream: Some(on),
                prefetch: Some(on),
                parallel: Some(on),
                reduction: Some(reduction),
                tile: Some(2),
                hub: Some(3),
            };
            for (form, channels, double) in [
                (Form::Batched([2, 3, 2]), 3, false),
                (Form::Unbatched([4, 3]), 16, on),
                (Form::Ragged(vec![3, 0, 2]), 36, !on),
            ] {
                let policy = OutOfRange::Skip { fill: 0.5 };
                let problem = Problem { form, rows: 4, channels, double, policy, outside: 4, ..Problem::default() };
                Problem { tuning, values: Values::Tied, ..problem }.check::<F>(level);
            }
        }
    });
}

#[test]
fn gather_weighted() {
    reductions::<WeightedSums>();
}

#[test]
fn gather_pooled() {
    reductions::<Pooling>();
}

#[test]
fn gather_segment() {
    reductions::<BySegment>();
}

#[test]
fn gather_compact() {
    levels::each(|level| {
        let gather = operator(level, &array![[5, 0, 5], [1, 1, -1]], 9, OutOfRange::Skip { fill: 0.0 });
        assert_eq!(gather.counts().unwrap().sum(), 5);
        let grad_y = Values::Integers.array::<f32, _>([2, 3, 19], 1);
        let compact = gather.adjoint_compact(grad_y.view()).unwrap();
        assert_eq!((compact.offsets, compact.rows), (array![0, 2, 3], array![0, 5, 1]));
        let row = |batch, row| grad_y.slice(s![batch, row, ..]);
        assert_eq!(compact.gradients.row(0), row(0, 1));
        assert_eq!(compact.gradients.row(1), &row(0, 0) + &row(0, 2));
        assert_eq!(compact.gradients.row(2), &row(1, 0) + &row(1, 1));
    });
}

#[test]
fn kdtree_knn() {
    fn check<T: Value, const D: usize>(level: Level) {
        let points = Values::Spread.array::<T, _>([40, D], 3);
        let queries = Values::Spread.array([17, D], 4);
        for k in [5, 20] {
            assert_exact::<T, D>(level, Builder::default(), &points, &queries, k);
        }
    }
    levels::each(|level| {
        check::<f32, 3>(level);
        check::<f64, 2>(level);
        check::<f32, 7>(level);
    });
}

/// Bounds, radii, pairs: by every metric, in open and in periodic space.
#[test]
fn kdtree_searches() {
    levels::each(|level| {
        for (metric, periodic) in METRICS.into_iter().flat_map(|metric| [(metric, Axes::None), (metric, Axes::All)]) {
            for (dims, double, each) in [(3, false, true), (2, true, false), (7, false, false)] {
                let case = Case { dims, double, points: 50, queries: 17, k: 3, ..Case::default() };
                let search = SearchCase { case, metric, periodic, each, by_distance: double, ..SearchCase::default() };
                SearchCase { bound: Some(Limit::Any), squared: each, ..search }.check(level);
            }
        }
    });
}

/// Gradients of distances, with padding and a point that all name.
#[test]
fn kdtree_adjoint() {
    levels::each(|level| {
        for (metric, named) in METRICS.into_iter().zip(Named::ALL) {
            for (dims, double, periodic) in [(3, false, Axes::None), (2, true, Axes::All), (7, false, Axes::Some)] {
                let case = Case { dims, double, points: 30, queries: 17, k: 3, ..Case::default() };
                let search =
                    SearchCase { case, metric, periodic, squared: double, each: true, ..SearchCase::default() };
                let search = SearchCase { bound: Some(Limit::Any), ..search };
                AdjointCase { search, named, ..AdjointCase::default() }.check(level);
            }
        }
    });
}

/// Weights by products and by powers, with coincident points, padding, and a tail of channels.
#[test]
fn kdtree_interpolate() {
    levels::each(|level| {
        for (power, eps) in [(2.0, 0.0), (3.0, 1.0), (2.5, 0.0), (0.5, 1e-3)] {
            for (dims, double, channels) in [(3, false, 3), (2, true, 17), (7, false, 36)] {
                let case = Case { dims, double, points: 30, queries: 17, k: 5, ..Case::default() };
                let search = SearchCase { case, bound: Some(Limit::Between), each: true, ..SearchCase::default() };
                InterpolateCase { search, power, eps, channels, ..InterpolateCase::default() }.check(level);
            }
        }
    });
}

/// Entries and gradients of every kind of numbers in every form, on windows of less and more than a vector.
#[test]
fn gaussian_maps() {
    levels::each(|level| {
        for (at, (parameters, path)) in PARAMETERS.into_iter().flat_map(|p| PATHS.map(|path| (p, path))).enumerate() {
            for (double, window) in [(false, [3, 7]), (true, [5, 4]), (at % 2 == 1, [9, 9])] {
                let (offsets, on) = ((at % 2 == 1).then_some(0.4), Some(double));
                let tuning = gaussian::Tuning { stream: on, parallel: on, tile: Some(2), mirror: on, path };
                let case = MapsCase { parameters, double, window, offsets, tuning, ..MapsCase::default() };
                MapsCase { data: Shapes::Mixed, leading: vec![3], ..case }.check(level);
            }
        }
    });
}

/// Blurs and scatters, with windows that reach over every border.
#[test]
fn gaussian_blur() {
    levels::each(|level| {
        for (at, border) in BORDERS.into_iter().enumerate() {
            let (double, channels_first, stride) = (at % 2 == 1, at % 3 == 1, 1 + at % 2);
            let case = BlurCase { border, double, channels_first, stride, image: [1, 4, 5, 3], ..BlurCase::default() };
            BlurCase { window: [3, 9], parameters: PARAMETERS[at % 5], ..case }.check(level);
        }
    });
}

/// Scans and their gradients in every form, of a vector of columns and less, forward in time, and of a batch.
#[test]
fn triconv_scan() {
    levels::each(|level| {
        for (at, (lanes, kind)) in LANES.into_iter().flat_map(|lanes| KINDS.map(|kind| (lanes, kind))).enumerate() {
            let on = Some(at % 2 == 1);
            let tuning =
                triconv::Tuning { lanes, parallel: on, rows: Some(2), scaled: on, ..triconv::Tuning::default() };
            for (n, p, m) in [(3, 3, 9), (9, 1, 1), (4, 2, 3)] {
                let case = ScanCase { n, p, m, kind, tuning, weights: WEIGHTS[at % 3], ..ScanCase::default() };
                ScanCase { side: SIDES[at % 2], sources: at % 3 == 0, data: Data::Mixed, ..case }.check(level);
            }
        }
    });
}

/// Scans by blocks, and their gradients, with transforms of a few matrices.
#[test]
fn triconv_relaxed_scan() {
    levels::each(|level| {
        for (at, kind) in KINDS.into_iter().enumerate() {
            let tuning = triconv::Tuning { leaf: Some(2), parallel: Some(at == 1), ..triconv::Tuning::default() };
            for (n, p, m, data) in [(12, 3, 2, Data::Flat), (17, 1, 1, Data::Halving), (9, 2, 9, Data::Special)] {
                let case =
                    ScanCase { n, p, m, kind, tuning, data, weights: WEIGHTS[1 + at % 2], ..ScanCase::default() };
                let method = triconv::Method::Relaxed { tolerance: 1e-5 };
                ScanCase { side: SIDES[at % 2], sources: at == 0, method, ..case }.check(level);
            }
        }
    });
}

#[test]
fn triconv_product() {
    products(false);
}

#[test]
fn triconv_correlation() {
    products(true);
}

fn products(correlation: bool) {
    levels::each(|level| {
        for (at, (lanes, kind)) in LANES.into_iter().flat_map(|lanes| KINDS.map(|kind| (lanes, kind))).enumerate() {
            let on = Some(at % 2 == 1);
            let tuning =
                triconv::Tuning { lanes, parallel: on, rows: Some(2), scaled: on, ..triconv::Tuning::default() };
            for (p, m, q) in [(3, 9, 2), (1, 1, 1), (2, 3, 17)] {
                let case =
                    ProductCase { correlation, p, m, q, kind, tuning, lengths: [3, 4], ..ProductCase::default() };
                ProductCase { weights: WEIGHTS[at % 3], data: Data::Mixed, ..case }.check(level);
            }
        }
    });
}

/// Bits of every input in words of every kind, rays, and numbers with their gradients.
#[test]
fn mipmap() {
    levels::each(|level| {
        for (at, input) in Input::ALL.into_iter().enumerate() {
            let on = Some(at % 2 == 0);
            let tuning = mipmap::Tuning { parallel: on, fused: on, stream: on, task: Some(2) };
            let shape = [[5, 6, 70], [1, 3, 66], [2, 1, 5]][at % 3];
            MipmapCase { shape, input, tuning, slabs: at % 4 < 2, changes: 1, ..MipmapCase::default() }.check(level);
        }
        for (family, double) in Windows::ALL.into_iter().flat_map(|f| [(f, false), (f, true)]) {
            let tuning = mipmap::Tuning { parallel: Some(double), fused: Some(!double), ..mipmap::Tuning::default() };
            let case = FloatsCase { family, double, tuning, shape: [3, 5, 37], ..FloatsCase::default() };
            FloatsCase { values: Values::Adversarial, ..case.clone() }.check(level);
            FloatsCase { values: Values::Tied, shape: [4, 4, 32], ..case }.check(level);
        }
    });
    for (at, rays) in Rays::ALL.into_iter().enumerate() {
        RaysCase { rays, double: at % 2 == 0, count: 9, ..RaysCase::default() }.check();
    }
}
