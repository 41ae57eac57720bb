//! Weighted sums and maxima of gathered rows, which never build the gathered rows.
//!
//! Limits. What mainly writes is held against the rate of a streaming copy, what mainly reads against that of reading:
//!
//! - weighted, forward: x, w, the indices and y, each once, copied. A batch of x (4 MB) is gathered from cache.
//! - weighted, adjoint: `grad_y`, x, w, the indices and both gradients, each once, read. Two passes would read `grad_y`
//!   twice.
//! - maximum, forward: the time of reading every row that an index names from cache, in its order, and writing a row a
//!   group (`memory::read_rows`). The bytes that must leave the cache are a fifth of these.
//! - maximum, adjoint: `grad_y`, the arguments, the indices and `grad_x`, each once, copied.
//! - an owned output: the same call into the caller's buffer, and the faults of the output's pages.

use crate::gather::copy_rows;
use crate::measure::{Limit, Random, Suite, entry, job};
use crate::memory::{Memory, fresh_pages, read_rows};
use pullback::gather::{Extremum, OutOfRange, Pooled, Ties, Weighted};
use pullback::ndarray::{Array3, Array4, Axis, aview1};
use rayon::prelude::*;
use std::hint::black_box;

pub fn report(suite: &Suite) {
    let name = "weighted(16,4096,256)x(16,16384,3)";
    if suite.wants(name) {
        weighted(suite, name);
    }
    let name = "maxpool(16,4096,64)x(16,1024,32)";
    if suite.wants(name) {
        maximum(suite, name);
    }
}

fn weighted(suite: &Suite, name: &str) {
    let (b, n, c, p, s) = (16, 4096, 256, suite.size(16_384), 3);
    let mut random = Random::new(5);
    let indices = Array3::from_shape_simple_fn((b, p, s), || random.below(n) as i32);
    let w = Array3::from_shape_simple_fn((b, p, s), || random.unit());
    let x = Array3::from_shape_simple_fn((b, n, c), || random.unit());
    let op = Weighted::new(indices.view(), n, OutOfRange::Error).expect("indices in range");
    let grad_y = op.forward(x.view(), w.view()).expect("shapes agree");
    let (mut y, mut grad_x, mut grad_w) = (grad_y.clone(), x.clone(), w.clone());
    let (mut peer_y, mut peer_x, mut peer_w) = (grad_y.clone(), x.clone(), w.clone());
    let mut memory = Memory::new();
    let bytes = |cells: usize| cells * 4;

    let forward = format!("{name}/forward");
    job(
        suite,
        &forward,
        memory.limit_copy(bytes(x.len() + w.len() + indices.len() + grad_y.len())),
        entry("into", || op.forward_into(x.view(), w.view(), y.view_mut()).expect("shapes agree")),
        vec![entry("rayon-loop", || weigh(&x, &indices, &w, &mut peer_y))],
    );
    let limit = || {
        op.forward_into(x.view(), w.view(), y.view_mut()).expect("shapes agree");
        fresh_pages(bytes(grad_y.len()));
    };
    job(
        suite,
        &forward,
        Limit { call: Box::new(limit), scale: 1.0 },
        entry("owned", || drop(black_box(op.forward(x.view(), w.view())))),
        vec![entry("ndarray-select-then-sum", || select_and_weigh(&x, &indices, &w))],
    );
    let adjoint = format!("{name}/adjoint");
    let moved = bytes(grad_y.len() + 2 * (x.len() + w.len()) + indices.len());
    let views = || (grad_y.view(), x.view(), w.view());
    job(
        suite,
        &adjoint,
        memory.limit_read(moved),
        entry("into", || {
            let (grad_y, x, w) = views();
            op.adjoint_into(grad_y, x, w, grad_x.view_mut(), grad_w.view_mut()).expect("shapes agree");
        }),
        vec![entry("rayon-over-batches", || weigh_back(&grad_y, &x, &indices, &w, &mut peer_x, &mut peer_w))],
    );
    let limit = || {
        let (grad_y, x, w) = views();
        op.adjoint_into(grad_y, x, w, grad_x.view_mut(), grad_w.view_mut()).expect("shapes agree");
        fresh_pages(bytes(x.len() + w.len()));
    };
    let owned = || {
        let (grad_y, x, w) = views();
        drop(black_box(op.adjoint(grad_y, x, w)));
    };
    job(suite, &adjoint, Limit { call: Box::new(limit), scale: 1.0 }, entry("owned", owned), vec![]);
}

/// Channels of the maximum: a constant, so that the limit keeps a row in registers.
const CHANNELS: usize = 64;

fn maximum(suite: &Suite, name: &str) {
    let (b, n, c, p, s) = (16, 4096, CHANNELS, suite.size(1024), 32);
    let mut random = Random::new(6);
    let indices = Array3::from_shape_simple_fn((b, p, s), || random.below(n) as i32);
    let x = Array3::from_shape_simple_fn((b, n, c), || random.unit());
    let op = Pooled::new(indices.view(), n, OutOfRange::Error).expect("indices in range");
    let max = op.extremes(Extremum::Max, x.view()).expect("shapes agree");
    let grad_y = max.values.clone();
    let (mut ours, mut theirs, mut loops) = (max.clone(), max.clone(), max.clone());
    let (mut gathered, mut grad_x, mut peer_x) = (Array4::zeros((b, p, s, c)), x.clone(), x.clone());
    let words: Vec<u32> = x.iter().map(|x| x.to_bits()).collect();
    let (mut read, flat) = (vec![0; grad_y.len()], indices.as_slice().expect("standard"));
    let mut memory = Memory::new();

    let forward = format!("{name}/forward");
    job(
        suite,
        &forward,
        Limit { call: Box::new(|| read_rows::<CHANNELS>(&words, flat, b, s, &mut read)), scale: 1.0 },
        entry("into", || {
            let (values, arguments) = (ours.values.view_mut(), ours.arguments.view_mut());
            op.extremes_into(Extremum::Max, x.view(), values, arguments).expect("shapes agree");
        }),
        vec![
            entry("rayon-gather-then-max", || {
                copy_rows(&x, &indices, &mut gathered);
                let gathered = gathered.as_slice().expect("standard");
                max_of(&mut theirs.values, &mut theirs.arguments, |group| {
                    gathered[group * s * c..][..s * c].chunks_exact(c)
                });
            }),
            entry("rayon-loop", || {
                let x = x.as_slice().expect("standard");
                max_of(&mut loops.values, &mut loops.arguments, |group| {
                    let x = &x[group / p * n * c..][..n * c];
                    flat[group * s..][..s].iter().map(move |&index| &x[index as usize * c..][..c])
                });
            }),
        ],
    );
    let limit = || {
        let (values, arguments) = (ours.values.view_mut(), ours.arguments.view_mut());
        op.extremes_into(Extremum::Max, x.view(), values, arguments).expect("shapes agree");
        fresh_pages(8 * grad_y.len());
    };
    job(
        suite,
        &forward,
        Limit { call: Box::new(limit), scale: 1.0 },
        entry("owned", || drop(black_box(op.extremes(Extremum::Max, x.view())))),
        vec![],
    );
    let first = || Ties::First(max.arguments.view());
    let adjoint = format!("{name}/adjoint");
    job(
        suite,
        &adjoint,
        memory.limit_copy(4 * (2 * grad_y.len() + indices.len() + x.len())),
        entry("into", || {
            op.extremes_adjoint_into(grad_y.view(), first(), grad_x.view_mut()).expect("shapes agree");
        }),
        vec![entry("rayon-over-batches", || send_back(&grad_y, &max.arguments, &indices, &mut peer_x))],
    );
    let limit = || {
        op.extremes_adjoint_into(grad_y.view(), first(), grad_x.view_mut()).expect("shapes agree");
        fresh_pages(4 * x.len());
    };
    job(
        suite,
        &adjoint,
        Limit { call: Box::new(limit), scale: 1.0 },
        entry("owned", || drop(black_box(op.extremes_adjoint(grad_y.view(), first())))),
        vec![],
    );
}

/// The loop that a user writes: a group at a time, on all threads.
fn weigh(x: &Array3<f32>, indices: &Array3<i32>, w: &Array3<f32>, y: &mut Array3<f32>) {
    let ((_, n, c), (_, p, s)) = (x.dim(), indices.dim());
    let (x, w) = (x.as_slice().expect("standard"), w.as_slice().expect("standard"));
    let indices = indices.as_slice().expect("standard");
    y.as_slice_mut().expect("standard").par_chunks_mut(c).enumerate().for_each(|(group, y)| {
        y.fill(0.0);
        for k in group * s..(group + 1) * s {
            let row = &x[(group / p * n + indices[k] as usize) * c..][..c];
            y.iter_mut().zip(row).for_each(|(y, x)| *y += w[k] * x);
        }
    });
}

/// What `ndarray` has for this: the rows are gathered, then multiplied, then summed.
fn select_and_weigh(x: &Array3<f32>, indices: &Array3<i32>, w: &Array3<f32>) {
    let (_, p, s) = indices.dim();
    for ((x, indices), w) in x.outer_iter().zip(indices.outer_iter()).zip(w.outer_iter()) {
        let flat: Vec<usize> = indices.iter().map(|&index| index as usize).collect();
        let rows = x.select(Axis(0), &flat).into_shape_with_order((p, s, x.ncols())).expect("a row an index");
        black_box((rows * w.insert_axis(Axis(2))).sum_axis(Axis(1)));
    }
}

/// The loop that a user writes: rows collide within a batch, so a batch has one thread.
fn weigh_back(
    grad_y: &Array3<f32>,
    x: &Array3<f32>,
    indices: &Array3<i32>,
    w: &Array3<f32>,
    grad_x: &mut Array3<f32>,
    grad_w: &mut Array3<f32>,
) {
    let ((_, n, c), (_, p, s)) = (x.dim(), indices.dim());
    let (x, w) = (x.as_slice().expect("standard"), w.as_slice().expect("standard"));
    let (grad_y, indices) = (grad_y.as_slice().expect("standard"), indices.as_slice().expect("standard"));
    let grad_x = grad_x.as_slice_mut().expect("standard").par_chunks_mut(n * c);
    let grad_w = grad_w.as_slice_mut().expect("standard").par_chunks_mut(p * s);
    grad_x.zip(grad_w).enumerate().for_each(|(batch, (grad_x, grad_w))| {
        grad_x.fill(0.0);
        for (k, grad_w) in grad_w.iter_mut().enumerate() {
            let grad = &grad_y[(batch * p + k / s) * c..][..c];
            let (k, n) = (batch * p * s + k, batch * n);
            let row = indices[k] as usize;
            *grad_w = aview1(grad).dot(&aview1(&x[(n + row) * c..][..c]));
            grad_x[row * c..][..c].iter_mut().zip(grad).for_each(|(sum, grad)| *sum += w[k] * grad);
        }
    });
}

/// The loop that a user writes: the largest element, and which it is, a group at a time, on all threads.
fn max_of<'a, R: Iterator<Item = &'a [f32]>>(
    values: &mut Array3<f32>,
    arguments: &mut Array3<u32>,
    rows: impl Fn(usize) -> R + Sync,
) {
    let c = values.dim().2;
    let values = values.as_slice_mut().expect("standard").par_chunks_mut(c);
    let arguments = arguments.as_slice_mut().expect("standard").par_chunks_mut(c);
    values.zip(arguments).enumerate().for_each(|(group, (values, arguments))| {
        values.fill(f32::NEG_INFINITY);
        arguments.fill(0);
        for (s, row) in (0..).zip(rows(group)) {
            for ((value, argument), &x) in values.iter_mut().zip(arguments.iter_mut()).zip(row) {
                if x > *value {
                    (*value, *argument) = (x, s);
                }
            }
        }
    });
}

/// The loop that a user writes: elements collide within a batch, so a batch has one thread.
fn send_back(grad_y: &Array3<f32>, arguments: &Array3<u32>, indices: &Array3<i32>, grad_x: &mut Array3<f32>) {
    let ((_, n, c), (_, p, s)) = (grad_x.dim(), indices.dim());
    let (grad_y, arguments) = (grad_y.as_slice().expect("standard"), arguments.as_slice().expect("standard"));
    let indices = indices.as_slice().expect("standard");
    grad_x.as_slice_mut().expect("standard").par_chunks_mut(n * c).enumerate().for_each(|(batch, grad_x)| {
        grad_x.fill(0.0);
        for cell in batch * p * c..(batch + 1) * p * c {
            let row = indices[cell / c * s + arguments[cell] as usize] as usize;
            grad_x[row * c + cell % c] += grad_y[cell];
        }
    });
}
