//! Time against size, from calls of a single element to memory-sized ones: `cargo bench --bench scaling`, or
//! `cargo bench --bench scaling -- gather` for the operators whose name contains the word.
//!
//! A row is a size, a unit the smallest piece of work that the operator's documentation counts. What a unit costs falls while what a
//! call costs apart from its work is spread over more of them, and should never rise by much: a step up would be a cliff.

#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

#[allow(dead_code, reason = "every benchmark uses a part of it")]
mod random;

use pullback::gather::{Gather, Linear, OutOfRange, Pooled};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps};
use pullback::kdtree::{Interpolate, KdTree};
use pullback::mipmap::{MaxPyramid, Pyramid};
use pullback::ndarray::{Array2, Array3, Array4, Array5};
use pullback::triconv::{Product, Scan, Weights};
use random::Random;
use std::time::{Duration, Instant};

/// How long one size is measured at the least.
const LEAST: Duration = Duration::from_millis(60);

/// Prints a table of an operator: `prepare` makes the call of a size and says how many units of work it is.
fn table<'a>(name: &str, unit: &str, sizes: &[usize], prepare: impl Fn(usize) -> (usize, Box<dyn FnMut() + 'a>)) {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if !words.is_empty() && !words.iter().any(|word| name.contains(word.as_str())) {
        return;
    }
    println!("\n{name}\n{:>10} {:>14} {:>14} {:>10}", "size", unit, "ns a call", "ns a unit");
    for &size in sizes {
        let (units, mut call) = prepare(size);
        let ns = nanoseconds(&mut call);
        println!("{size:>10} {units:>14} {ns:>14.0} {:>10.3}", ns / units as f64);
    }
}

/// The median time of a call, over batches of calls that take a millisecond or so.
fn nanoseconds(call: &mut dyn FnMut()) -> f64 {
    let once = |call: &mut dyn FnMut(), count: u32| {
        let start = Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed()
    };
    call();
    let mut count = 1;
    while once(call, count) < Duration::from_millis(1) {
        count *= 2;
    }
    let (start, mut times) = (Instant::now(), vec![]);
    while start.elapsed() < LEAST || times.len() < 5 {
        times.push(once(call, count).as_secs_f64() * 1e9 / f64::from(count));
    }
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// Powers of four.
fn fours(most: u32) -> Vec<usize> {
    (0..=most).map(|power| 4usize.pow(power)).collect()
}

fn gather() {
    const C: usize = 16;
    let problem = |n: usize| {
        let mut random = Random::new(1);
        let x = Array2::from_shape_simple_fn((n, C), || random.unit());
        let indices = Array2::from_shape_simple_fn((n, 4), || random.below(n) as u32);
        (x, indices)
    };
    table("gather: rows of 16 f32, forward_into", "rows", &fours(9), |n| {
        let (x, indices) = problem(n);
        let gather = Gather::unbatched(indices.view(), n, OutOfRange::Error).expect("indices in range");
        let mut y = Array3::zeros((n, 4, C));
        (4 * n, Box::new(move || gather.forward_into(x.view(), y.view_mut()).expect("shapes")))
    });
    table("gather: rows of 16 f32, adjoint_into", "rows", &fours(9), |n| {
        let (mut x, indices) = problem(n);
        let gather = Gather::unbatched(indices.view(), n, OutOfRange::Error).expect("indices in range");
        let grad_y = Array3::ones((n, 4, C));
        (4 * n, Box::new(move || gather.adjoint_into(grad_y.view(), x.view_mut()).expect("shapes")))
    });
    table("gather: means of four rows of 16 f32, forward_into", "rows", &fours(9), |n| {
        let (x, indices) = problem(n);
        let pooled = Pooled::unbatched(indices.view(), n, OutOfRange::Error).expect("indices in range");
        let mut y = x.clone();
        (4 * n, Box::new(move || pooled.forward_into(Linear::Mean, x.view(), y.view_mut()).expect("shapes")))
    });
}

fn kdtree() {
    let points = |n: usize| {
        let mut random = Random::new(2);
        Array2::from_shape_simple_fn((n, 3), || random.unit())
    };
    table("kdtree: build, f32, D = 3", "points", &fours(10), |n| {
        let points = points(n);
        (n, Box::new(move || drop(KdTree::<f32, 3>::new(points.view()).expect("finite points"))))
    });
    table("kdtree: knn_self, k = 5, f32, D = 3", "points", &fours(10), |n| {
        let tree = KdTree::<f32, 3>::new(points(n).view()).expect("finite points");
        (n, Box::new(move || drop(tree.knn_self(5).expect("memory"))))
    });
    table("kdtree: one query each, k = 5, of a tree of so many points", "queries", &fours(10), |n| {
        let tree = KdTree::<f32, 3>::new(points(n).view()).expect("finite points");
        let query = points(1);
        (1, Box::new(move || drop(tree.knn(query.view(), 5).expect("memory"))))
    });
    table("kdtree: interpolation of 16 channels from 5 of 65536 points, searched before", "queries", &fours(9), |n| {
        let tree: &'static _ =
            Box::leak(Box::new(KdTree::<f32, 3>::new(points(1 << 16).view()).expect("finite points")));
        let at = Interpolate::new(tree, 5, 2.0, 1e-6).expect("a rule").at(points(n).view()).expect("memory");
        let (values, mut y) = (Array2::ones((1 << 16, 16)), Array2::zeros((n, 16)));
        (n, Box::new(move || at.forward_into(values.view(), y.view_mut()).expect("shapes")))
    });
}

fn mipmap() {
    let cube = |n: usize| {
        let mut random = Random::new(3);
        Array3::from_shape_simple_fn((n, n, n), || random.unit())
    };
    let sides = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
    table("mipmap: all levels of an n^3 grid of bits from f32", "cells", &sides, |n| {
        let x = cube(n);
        (n.pow(3), Box::new(move || drop(Pyramid::from_threshold(x.view(), 0.5).expect("memory"))))
    });
    table("mipmap: all levels of maxima of n^3 f32, forward_into", "cells", &sides, |n| {
        let (x, pyramid) = (cube(n), MaxPyramid::new([n; 3]).expect("a shape"));
        let mut found = pyramid.forward(x.view()).expect("memory");
        let call = move || {
            pyramid.forward_into(x.view(), &mut found.levels, &mut found.arguments).expect("shapes");
        };
        (n.pow(3), Box::new(call))
    });
    table("mipmap: rays through 128^3 cells, 1 % of them occupied", "rays", &fours(10), |n| {
        let pyramid = Pyramid::from_threshold(cube(128).view(), 0.99).expect("memory");
        let mut random = Random::new(4);
        let origins = Array2::from_shape_simple_fn((n, 3), || 128.0 * random.unit());
        let directions = Array2::from_shape_simple_fn((n, 3), || random.unit() - 0.5);
        let call = move || drop(pyramid.raycast(origins.view(), directions.view(), f64::INFINITY).expect("directions"));
        (n, Box::new(call))
    });
}

fn triconv() {
    let matrices = |n: usize, m: usize| {
        let mut random = Random::new(5);
        Array3::from_shape_simple_fn((n, m, m), || f64::from(random.unit()) / m as f64)
    };
    for (m, most) in [(1, 6), (4, 5), (16, 4)] {
        let name = |what: &str| format!("triconv: {what} of n matrices of {m} x {m} f64");
        table(&name("scan, forward_into,"), "products", &fours(most), |n| {
            let scan = Scan::<f64>::new(n, Weights::Taylor).expect("weights");
            let (b, mut a) = (matrices(n, m), matrices(n + 1, m));
            let a0 = Array2::eye(m);
            let call = move || scan.forward_into(a0.view(), b.view(), a.view_mut()).expect("no overflow");
            (n * (n + 1) / 2, Box::new(call))
        });
        table(&name("product, forward_into,"), "products", &fours(most), |n| {
            let product = Product::<f64>::new(n, Weights::Plain).expect("weights");
            let (a, b, mut c) = (matrices(n, m), matrices(n, m), matrices(n, m));
            let call = move || product.forward_into(a.view(), b.view(), c.view_mut()).expect("no overflow");
            (n * (n + 1) / 2, Box::new(call))
        });
    }
}

fn gaussian() {
    const K: usize = 21;
    let shapes = |n: usize| {
        let mut random = Random::new(6);
        Array3::from_shape_simple_fn((n, 2, 2), || 0.3 * (random.unit() - 0.5))
    };
    table("gaussian: kernels of 21 x 21 f32, forward_into", "samples", &fours(8), |n| {
        let maps = KernelMaps::<f32>::new(K, Centre::Middle).expect("a size");
        let (shapes, mut out) = (shapes(n), Array3::zeros((n, K, K)));
        (n * K * K, Box::new(move || maps.forward_into(shapes.view(), out.view_mut()).expect("shapes")))
    });
    table("gaussian: kernels of 21 x 21 f32, adjoint_into", "samples", &fours(8), |n| {
        let maps = KernelMaps::<f32>::new(K, Centre::Middle).expect("a size");
        let (shapes, grad) = (shapes(n), Array3::ones((n, K, K)));
        let mut grad_shapes = shapes.clone();
        let call = move || {
            maps.adjoint_into(grad.view(), shapes.view(), grad_shapes.view_mut()).expect("shapes");
        };
        (n * K * K, Box::new(call))
    });
    table(
        "gaussian: blur of n x n x 1 f32 by 7 x 7, forward_into",
        "samples",
        &[1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
        |n| {
            let blur = Blur::<f32>::new(7, Centre::Middle, Border::Reflect, 1).expect("a size");
            let shapes =
                Array5::from_shape_vec((1, n, n, 2, 2), shapes(n * n).into_raw_vec_and_offset().0).expect("cells");
            let (image, mut y) = (Array4::ones((1, n, n, 1)), Array4::zeros((1, n, n, 1)));
            let call = move || blur.forward_into(image.view(), shapes.view(), y.view_mut()).expect("shapes");
            (n * n * 49, Box::new(call))
        },
    );
}

fn main() {
    let level = pullback::Level::current().expect("PULLBACK_SIMD");
    println!("level {level}, {} threads", rayon::current_num_threads());
    gather();
    kdtree();
    mipmap();
    triconv();
    gaussian();
}
