//! One operator of every family, fresh and used first by many threads at once: of pools of one thread to more than there
//! are processors, of pools within pools, of no pool. It gives the bits that it gives alone, and nobody waits for ever.

mod common;

use common::levels;
use common::threads::{self, COUNTS, in_time};
use common::values::{Value, Values};
use ndarray::{Array, Array1, Array2, Dimension, IntoDimension, s};
use pullback::gather::{Extremum, Gather, Linear, OutOfRange, Pooled, Segments, Ties, Weighted};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Parameters, Scatter};
use pullback::kdtree::{Interpolate, Interpolation, KdTreeDyn, PerQuery};
use pullback::mipmap::{MaxPyramid, MeanPyramid, PyramidBuilder};
use pullback::triconv::{Correlation, Method, Product, Scan, Weights};
use pullback::{Level, gather, gaussian, kdtree, mipmap, triconv};
use rayon::prelude::*;
use std::thread;

/// Rounds for an operator that builds something at its first call, which threads that steal work could wait for.
const LAZY: usize = 1000;

/// Rounds for one that does not.
const FEW: usize = 12;

/// What a call returned, as bits.
type Bits = Vec<u64>;

/// A use of an operator. Operators are made anew for every round, since only a first call can be at fault.
type Use = Box<dyn Fn() -> Bits + Send + Sync>;

fn bits<T: Value, D: Dimension>(arrays: &[&Array<T, D>]) -> Bits {
    arrays.iter().flat_map(|array| array.iter().map(|x| x.to_bits())).collect()
}

fn numbers<D: IntoDimension>(shape: D, seed: u64) -> Array<f32, D::Dim> {
    Values::Integers.array(shape, seed).mapv(|x: f32| x / 8.0)
}

fn check(rounds: usize, fresh: impl Fn(Level) -> Use + Send + Sync + Copy + 'static) {
    levels::each(|level| {
        in_time(move || {
            let alone = threads::with(1, fresh(level));
            for count in COUNTS {
                threads::with(count, || {
                    for _ in 0..rounds {
                        let used = fresh(level);
                        (0..2 * count).into_par_iter().for_each(|_| assert_eq!(used(), alone, "{count} threads"));
                    }
                });
            }
            for _ in 0..rounds.div_ceil(8) {
                // Each thread of a pool enters another one, and both wait for each other's.
                let used = fresh(level);
                threads::with(3, || {
                    (0..8).into_par_iter().for_each(|at| assert_eq!(threads::with(COUNTS[at % 4], &used), alone));
                });
                let used = fresh(level);
                thread::scope(|scope| {
                    for at in 0..6 {
                        let (used, alone) = (&used, &alone);
                        scope.spawn(move || match at % 2 {
                            0 => assert_eq!(&used(), alone),
                            _ => assert_eq!(&threads::with(COUNTS[at / 2 + 1], used), alone),
                        });
                    }
                });
            }
        });
    });
}

fn indices(groups: usize, size: usize, rows: usize) -> Array2<usize> {
    Array2::from_shape_fn((groups, size), |(p, s)| (p * p + 3 * s) % rows)
}

fn gather_tuning() -> gather::Tuning {
    gather::Tuning { parallel: Some(true), tile: Some(2), hub: Some(4), ..gather::Tuning::default() }
}

#[test]
fn gather_rows_and_groups() {
    check(LAZY, |level| {
        let (indices, rows) = (indices(40, 3, 9), 9);
        let gather = Gather::unbatched(indices.view(), rows, OutOfRange::Error).unwrap().with_level(level).unwrap();
        let weighted = Weighted::unbatched(indices.view(), rows, OutOfRange::Error).unwrap().with_level(level).unwrap();
        let (gather, weighted) = (gather.with_tuning(gather_tuning()), weighted.with_tuning(gather_tuning()));
        let (x, w, y) = (numbers([rows, 3], 1), numbers([40, 3], 2), numbers([40, 3], 3));
        Box::new(move || {
            let copied = gather.forward(x.view()).unwrap();
            let summed = gather.adjoint(copied.view()).unwrap();
            let found = weighted.adjoint(y.view(), x.view(), w.view()).unwrap();
            let counts = gather.counts().unwrap().mapv(|n| n as f32).into_dyn();
            let arrays =
                [copied.into_dyn(), summed.into_dyn(), found.grad_x.into_dyn(), found.grad_w.into_dyn(), counts];
            bits(&arrays.each_ref())
        })
    });
}

#[test]
fn gather_reductions() {
    check(LAZY, |level| {
        let (indices, rows) = (indices(40, 3, 9), 9);
        let pooled = Pooled::unbatched(indices.view(), rows, OutOfRange::Error).unwrap().with_level(level).unwrap();
        let ids = Array1::from_shape_fn(40, |row| row * row % 7);
        let segments = Segments::new(ids.view(), 7, OutOfRange::Error).unwrap().with_level(level).unwrap();
        let (pooled, segments) = (pooled.with_tuning(gather_tuning()), segments.with_tuning(gather_tuning()));
        let (x, y) = (numbers([rows, 3], 1), numbers([40, 3], 3));
        Box::new(move || {
            let ties = Ties::Even(Extremum::Max, x.view());
            let reduced = segments.forward(Linear::Mean, y.view()).unwrap();
            bits(&[
                &pooled.adjoint(Linear::Mean, y.view()).unwrap(),
                &pooled.extremes_adjoint(y.view(), ties).unwrap(),
                &segments.softmax(y.view()).unwrap(),
                &segments.product(y.view()).unwrap(),
                &segments.extremes(Extremum::Min, y.view()).unwrap().values,
                &segments.adjoint(Linear::Mean, reduced.view()).unwrap(),
            ])
        })
    });
}

#[test]
fn kdtree_searches_and_adjoints() {
    check(LAZY / 4, |level| {
        let (points, queries) = (numbers([60, 3], 1), numbers([20, 3], 2));
        let grads = numbers([20, 4], 3);
        let tuning = kdtree::Tuning { parallel: Some(true), ..kdtree::Tuning::default() };
        let tree = KdTreeDyn::new(points.view()).unwrap().with_level(level).unwrap().with_tuning(tuning);
        Box::new(move || {
            let found = tree.knn(queries.view(), 4).unwrap();
            let near = tree.radius(queries.view(), PerQuery::One(0.5)).unwrap();
            let pulled = tree.knn_adjoint(grads.view(), queries.view(), found.indices.view()).unwrap();
            let of_each = tree.knn_self(2).unwrap();
            let of_radius = near.distances.insert_axis(ndarray::Axis(1));
            let pairs = tree.pairs_within(0.25).unwrap().mapv(|i| i as f32);
            bits(&[&found.distances, &of_each.distances, &of_radius, &pairs, &pulled.grad_points, &pulled.grad_queries])
        })
    });
}

/// What an interpolation keeps is built at its first gradient, as the copy of the points that the tree keeps is.
#[test]
fn kdtree_interpolations() {
    levels::each(|level| {
        in_time(move || {
            let (points, queries) = (numbers([60, 3], 1), numbers([20, 3], 2));
            let (values, y) = (numbers([60, 5], 3), numbers([20, 5], 4));
            let tree = || KdTreeDyn::new(points.view()).unwrap().with_level(level).unwrap();
            let used = |tree: &KdTreeDyn<f32>, at: &Interpolation<'_, f32>| {
                let found = at.adjoint(y.view(), values.view()).unwrap();
                let own = at.adjoint_values(y.view()).unwrap();
                let whole =
                    Interpolate::new(tree, 4, 2.0, 0.0).unwrap().forward(values.view(), queries.view()).unwrap();
                bits(&[&found.grad_values, &found.grad_points, &found.grad_queries, &own, &whole])
            };
            fn fresh<'t>(tree: &'t KdTreeDyn<f32>, queries: &Array2<f32>) -> Interpolation<'t, f32> {
                Interpolate::new(tree, 4, 2.0, 0.0).unwrap().at(queries.view()).unwrap()
            }
            let first = tree();
            let alone = threads::with(1, || used(&first, &fresh(&first, &queries)));
            for count in COUNTS {
                threads::with(count, || {
                    for _ in 0..LAZY / 4 {
                        let tree = tree();
                        let at = fresh(&tree, &queries);
                        (0..2 * count).into_par_iter().for_each(|_| assert_eq!(used(&tree, &at), alone));
                    }
                });
            }
            threads::with(3, || {
                let tree = tree();
                let at = fresh(&tree, &queries);
                let within = |pool: usize| assert_eq!(threads::with(COUNTS[pool % 4], || used(&tree, &at)), alone);
                (0..8).into_par_iter().for_each(within);
            });
        });
    });
}

#[test]
fn gaussian_maps_blurs_and_scatters() {
    check(FEW, |level| {
        let tuning = gaussian::Tuning { parallel: Some(true), tile: Some(2), ..gaussian::Tuning::default() };
        let maps = KernelMaps::<f32>::rectangular([5, 7], Centre::Middle).unwrap().with_level(level).unwrap();
        let blur = Blur::<f32>::new(5, Centre::Middle, Border::Reflect, 1).unwrap().with_level(level).unwrap();
        let scatter = Scatter::<f32>::new(5, Centre::Middle, Border::Wrap, 1).unwrap().with_level(level).unwrap();
        let blur = blur.with_parameters(Parameters::Sigmas).with_tuning(tuning);
        let scatter = scatter.with_parameters(Parameters::Sigmas).with_tuning(tuning);
        let maps = maps.with_parameters(Parameters::Sigmas).with_tuning(tuning);
        let shapes = numbers([1, 9, 11, 3], 1).mapv(|x| 0.5 + x.abs());
        let (image, y, grads) = (numbers([1, 9, 11, 2], 2), numbers([1, 9, 11, 2], 3), numbers([1, 9, 11, 5, 7], 4));
        Box::new(move || {
            let pulled = blur.adjoint(y.view(), image.view(), shapes.view()).unwrap();
            let arrays = [
                maps.forward(shapes.view()).unwrap(),
                maps.adjoint(grads.view(), shapes.view()).unwrap(),
                blur.forward(image.view(), shapes.view()).unwrap().into_dyn(),
                pulled.grad_image.into_dyn(),
                pulled.grad_shapes,
                scatter.forward(y.view(), shapes.view(), [9, 11]).unwrap().into_dyn(),
            ];
            bits(&arrays.each_ref())
        })
    });
}

#[test]
fn triconv_scans_products_and_correlations() {
    check(FEW, |level| {
        let tuning =
            triconv::Tuning { parallel: Some(true), rows: Some(2), leaf: Some(4), ..triconv::Tuning::default() };
        let scan = |weights| Scan::<f32>::new(24, weights).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let direct = scan(Weights::Binomial);
        let relaxed = scan(Weights::Taylor).with_method(Method::Relaxed { tolerance: 1e-4 }).unwrap();
        let product = Product::<f32>::new(24, Weights::Plain).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let correlation =
            Correlation::<f32>::new(24, Weights::Taylor).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let (a0, b) = (numbers([2, 5, 3], 1), numbers([2, 24, 3, 3], 2).mapv(|x| x / 16.0));
        Box::new(move || {
            let a = relaxed.forward(a0.view(), b.view()).unwrap();
            let pulled = relaxed.adjoint(a.view(), a.view(), b.view()).unwrap();
            let large = direct.forward(a0.view(), b.slice(s![.., .., .., ..])).unwrap();
            let c = product.forward(a.view(), b.view()).unwrap();
            let d = correlation.forward(a.view(), a.view()).unwrap();
            bits(&[&a, &pulled.grad_s, &pulled.grad_b, &large, &c, &d])
        })
    });
}

#[test]
fn mipmap_pyramids_and_rays() {
    check(FEW, |level| {
        let tuning = mipmap::Tuning { parallel: Some(true), fused: Some(true), stream: None, task: Some(1) };
        let x = numbers([9, 10, 70], 1);
        let builder = || PyramidBuilder::new([9, 10, 70]).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let pyramid = builder().threshold(x.view(), 0.5).unwrap();
        let means = MeanPyramid::<f32>::new([9, 10, 70]).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let maxima = MaxPyramid::<f32>::new([9, 10, 70]).unwrap().with_level(level).unwrap().with_tuning(tuning);
        let origins = numbers([300, 3], 2);
        let directions = origins.mapv(|x| x + 1.5);
        Box::new(move || {
            let built = PyramidBuilder::new([9, 10, 70]).unwrap().with_level(level).unwrap().with_tuning(tuning);
            assert!(built.threshold(x.view(), 0.5).unwrap() == pyramid);
            let hits = pyramid.raycast(origins.view(), directions.view(), 1e3).unwrap();
            let crossed = pyramid.traverse(origins.view(), directions.view(), 1e3).unwrap();
            let (averaged, largest) = (means.forward(x.view()).unwrap(), maxima.forward(x.view()).unwrap());
            let grads: Vec<_> = std::iter::once(None).chain(averaged.iter().map(|level| Some(level.view()))).collect();
            let pulled = maxima.adjoint(&grads, &largest.arguments).unwrap();
            let mut all = bits(&averaged.iter().chain(&largest.levels).chain([&pulled]).collect::<Vec<_>>());
            all.extend(hits.t.iter().map(|t| t.to_bits()));
            all.extend(crossed.intervals.iter().map(|interval| interval.t_out.to_bits()));
            all
        })
    });
}
