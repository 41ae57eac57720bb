//! Interpolation by inverse distances, from five neighbours and with 32 channels.
//!
//! The limit is the search alone: it finds what is interpolated between, and nothing can be done before. `forward` and
//! `fresh` search themselves; `adjoint` is at neighbours that were found before, as in a step that has gone forward.

use crate::measure::{Limit, Random, Suite, entry, job};
use pullback::kdtree::{Interpolate, KdTree};
use pullback::ndarray::Array2;
use std::hint::black_box;

/// Neighbours a query.
const K: usize = 5;
const CHANNELS: usize = 32;

pub fn report(suite: &Suite) {
    let name = |job: &str| format!("kdtree/interpolate/{job}/1000000x3x{CHANNELS}/f32");
    let jobs = [name("forward"), name("adjoint"), name("fresh"), name("values")];
    if !jobs.iter().any(|job| suite.wants(job)) {
        return;
    }
    let mut random = Random::new(4);
    let rows = suite.size(1_000_000);
    let mut uniform = |columns: usize| Array2::from_shape_simple_fn((rows, columns), || random.unit());
    let (points, queries) = (uniform(3), uniform(3));
    let (values, grad_y) = (uniform(CHANNELS), uniform(CHANNELS));
    let tree = KdTree::<f32, 3>::new(points.view()).expect("finite points");
    let shepard = Interpolate::new(&tree, K, 2.0, 1e-6).expect("a power and an eps");
    let at = shepard.at(queries.view()).expect("finite queries");
    let search = || {
        let call = Box::new(|| drop(black_box(tree.knn(queries.view(), K).expect("finite queries"))));
        Limit { call, scale: 1.0 }
    };
    let (x, y) = (values.view(), grad_y.view());
    if suite.wants(&jobs[0]) {
        let ours = || drop(black_box(shepard.forward(x, queries.view()).expect("shapes")));
        job(suite, &jobs[0], search(), entry("k=5", ours), vec![]);
    }
    if suite.wants(&jobs[1]) {
        let ours = || drop(black_box(at.adjoint(y, x).expect("shapes")));
        job(suite, &jobs[1], search(), entry("k=5", ours), vec![]);
    }
    if suite.wants(&jobs[2]) {
        let ours = || drop(black_box(shepard.adjoint(y, x, queries.view()).expect("shapes")));
        job(suite, &jobs[2], search(), entry("k=5", ours), vec![]);
    }
    if suite.wants(&jobs[3]) {
        let ours = || drop(black_box(at.forward(x).expect("shapes")));
        job(suite, &jobs[3], search(), entry("k=5", ours), vec![]);
    }
}
