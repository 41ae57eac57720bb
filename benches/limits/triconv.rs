//! Scans beside the arithmetic that they cannot avoid: the fused multiply-adds of n (n + 1) / 2 products of matrices.
//!
//! The peer of long products is the rate of a large matrix product by faer, that of long scans the direct method.

use crate::arithmetic;
use crate::measure::{Entry, Random, Suite, entry, job};
use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, Par};
use pullback::ndarray::{Array3, Array4};
use pullback::triconv::{Method, Scan, Weights};

/// Items, steps, and rows and columns of a matrix.
const SIZES: [[usize; 3]; 8] =
    [[1, 256, 16], [1, 128, 64], [1, 1024, 16], [1, 512, 8], [1, 64, 4], [1024, 16, 4], [1, 4096, 1], [1, 5, 1]];

/// Of them, those beside faer.
const LONG: [[usize; 3]; 3] = [[1, 256, 16], [1, 128, 64], [1, 1024, 16]];

/// Steps, and rows and columns of a matrix, of a relaxed scan.
const RELAXED: [usize; 2] = [4096, 16];

/// Rows and columns of faer's matrices.
const SIDE: usize = 1024;

/// Numbers of a vector of 64 bytes.
const LANES: usize = 8;

/// Vectors of arithmetic that a round takes at least, and the calls that it makes of small problems at most: the first ones of a
/// round find nothing in caches.
const LEAST: usize = 1 << 20;
const MOST_CALLS: usize = 1 << 16;

pub fn report(suite: &Suite) {
    direct(suite);
    relaxed(suite);
}

/// The time that so many fused multiply-adds take in a matrix product by faer.
fn rate_of_faer<'a>(operations: usize) -> Entry<'a> {
    let entries = |i: usize, j: usize| ((i * 7 + j * 3) % 11) as f64 - 5.0;
    let (left, right) = (Mat::from_fn(SIDE, SIDE, entries), Mat::from_fn(SIDE, SIDE, entries));
    let mut product = Mat::<f64>::zeros(SIDE, SIDE);
    let call = move || matmul(product.as_mut(), Accum::Replace, left.as_ref(), right.as_ref(), 1.0, Par::rayon(0));
    Entry { name: "faer", call: Box::new(call), scale: operations as f64 / SIDE.pow(3) as f64 }
}

/// Taylor coefficients in `f64`: the scan into an array that is there, and the gradients of both operands.
fn direct(suite: &Suite) {
    for [items, n, m] in SIZES {
        let products = items * n * (n + 1) / 2 * m * m * m;
        let calls = (LEAST * LANES / products).clamp(1, MOST_CALLS);
        let name = |job: &str| match calls {
            1 => format!("triconv/{job}/{items}x{n}x{m}x{m}/f64"),
            _ => format!("triconv/{job}/{items}x{n}x{m}x{m}/f64/{calls} calls"),
        };
        let jobs = [name("forward"), name("adjoint")];
        if !jobs.iter().any(|job| suite.wants(job)) {
            continue;
        }
        let mut random = Random::new(3);
        let mut small = || (f64::from(random.unit()) - 0.5) / m as f64;
        let a0 = Array3::from_shape_simple_fn((items, m, m), &mut small);
        let b = Array4::from_shape_simple_fn((items, n, m, m), &mut small);
        let scan = Scan::<f64>::new(n, Weights::Taylor).expect("a number of steps");
        let mut a = Array4::zeros((items, n + 1, m, m));
        let vectors = (calls * products).div_ceil(LANES);
        scan.forward_into(a0.view(), b.view(), a.view_mut()).expect("in range");
        if suite.wants(&jobs[0]) {
            let mut out = a.clone();
            let ours = || {
                for _ in 0..calls {
                    scan.forward_into(a0.view(), b.view(), out.view_mut()).expect("in range");
                }
            };
            let peers = if LONG.contains(&[items, n, m]) { vec![rate_of_faer(calls * products)] } else { vec![] };
            job(suite, &jobs[0], arithmetic::limit(vectors), entry("into", ours), peers);
        }
        if suite.wants(&jobs[1]) {
            let grad = a.clone();
            let ours = || {
                for _ in 0..calls {
                    scan.adjoint(grad.view(), a.view(), b.view()).expect("in range");
                }
            };
            job(suite, &jobs[1], arithmetic::limit(2 * vectors), entry("owned", ours), vec![]);
        }
    }
}

/// Taylor coefficients of flat magnitudes by transforms, beside the limit and the time of all products of matrices.
fn relaxed(suite: &Suite) {
    let [n, m] = [suite.size(RELAXED[0]), RELAXED[1]];
    let name = format!("triconv/relaxed/1x{n}x{m}x{m}/f64");
    if !suite.wants(&name) {
        return;
    }
    let mut random = Random::new(3);
    let mut small = || (f64::from(random.unit()) - 0.5) / m as f64;
    let a0 = Array3::from_shape_simple_fn((1, m, m), &mut small);
    let b = Array4::from_shape_simple_fn((1, n, m, m), &mut small);
    let scan = || Scan::<f64>::new(n, Weights::Taylor).expect("a number of steps");
    let (direct, relaxed) = (scan(), scan().with_method(Method::Relaxed { tolerance: 1e-9 }).expect("a tolerance"));
    let mut outputs = [(); 2].map(|()| Array4::zeros((1, n + 1, m, m)));
    let [ours, peer] = &mut outputs;
    let ours = || relaxed.forward_into(a0.view(), b.view(), ours.view_mut()).expect("in range");
    let peer = || direct.forward_into(a0.view(), b.view(), peer.view_mut()).expect("in range");
    let vectors = (n * (n + 1) / 2 * m.pow(3)).div_ceil(LANES);
    job(suite, &name, arithmetic::limit(vectors), entry("into", ours), vec![entry("direct", peer)]);
}
