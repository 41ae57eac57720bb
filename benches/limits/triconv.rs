//! Scans beside the arithmetic that they cannot avoid: the fused multiply-adds of n (n + 1) / 2 products of matrices.

use crate::arithmetic;
use crate::measure::{Random, Suite, entry, job};
use pullback::ndarray::{Array3, Array4};
use pullback::triconv::{Scan, Weights};

/// Items, steps, and rows and columns of a matrix.
const SIZES: [[usize; 3]; 8] =
    [[1, 256, 16], [1, 128, 64], [1, 1024, 16], [1, 512, 8], [1, 64, 4], [1024, 16, 4], [1, 4096, 1], [1, 5, 1]];

/// Numbers of a vector of 64 bytes.
const LANES: usize = 8;

/// Vectors of arithmetic that a round takes at least: small calls are repeated.
const LEAST: usize = 1 << 17;

/// Taylor coefficients in `f64`: the scan into an array that is there, and the gradients of both operands.
pub fn report(suite: &Suite) {
    for [items, n, m] in SIZES {
        let products = items * n * (n + 1) / 2 * m * m * m;
        let calls = (LEAST * LANES / products).max(1);
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
            job(suite, &jobs[0], arithmetic::limit(vectors), entry("into", ours), vec![]);
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
