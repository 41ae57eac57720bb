//! Row gather and its adjoint against the bytes that must move.
//!
//! Features begin with a cache line, as every output of this library does. `into-16` gathers from a copy that begins 16 bytes
//! behind one, as large arrays of the system's allocator do: a row of whole lines then touches one line more.

use crate::measure::{Limit, Random, Suite, entry, job};
use crate::memory::{Memory, fresh_pages};
use pullback::gather::{Gather, OutOfRange};
use pullback::ndarray::{Array2, Array3, Array4, ArrayView2, ArrayView4, Axis};
use rayon::prelude::*;

/// A shape of the targets: `x` (B, N, C) by indices (B, P, S).
struct Shape {
    b: usize,
    n: usize,
    c: usize,
    p: usize,
    s: usize,
}

const SHAPES: [Shape; 3] = [
    Shape { b: 16, n: 4096, c: 64, p: 1024, s: 32 },
    Shape { b: 8, n: 16_384, c: 128, p: 4096, s: 32 },
    Shape { b: 1, n: 1_000_000, c: 64, p: 1_000_000, s: 5 },
];

pub fn report(suite: &Suite) {
    for Shape { b, n, c, p, s } in SHAPES {
        let name = format!("gather({b},{n},{c})x({b},{p},{s})");
        if suite.wants(&name) {
            rows(suite, &name, &Shape { b, n, c, p: suite.size(p), s });
        }
    }
}

fn rows(suite: &Suite, name: &str, shape: &Shape) {
    let &Shape { b, n, c, p, s } = shape;
    let mut random = Random::new(1);
    let indices = Array3::from_shape_simple_fn((b, p, s), || random.below(n) as i32);
    let unaligned = Array3::from_shape_simple_fn((b, n, c), || random.unit());
    let x = in_whole_lines(&unaligned);
    let gather = Gather::new(indices.view(), n, OutOfRange::Error).expect("indices in range");
    let grad_y = gather.forward(x.view()).expect("shapes agree");
    let (mut y, mut grad_x) = (grad_y.clone(), x.clone());
    let (mut peer_y, mut peer_x) = (grad_y.clone(), x.clone());
    let mut memory = Memory::new();
    // A table that is gathered from cache is read once; a larger one at every index.
    let (table, rows) = (size_of_val(x.as_slice().expect("standard")), grad_y.len() * 4);
    let forward = rows + if n * c * 4 > 32 << 20 { rows } else { table };

    job(
        suite,
        &format!("{name}/forward"),
        memory.limit_copy(forward),
        entry("into", || gather.forward_into(x.view(), y.view_mut()).expect("shapes agree")),
        vec![entry("rayon-loop", || copy_rows(&x, &indices, &mut peer_y))],
    );
    job(
        suite,
        &format!("{name}/forward"),
        memory.limit_copy(forward),
        entry("into-16", || gather.forward_into(unaligned.view(), y.view_mut()).expect("shapes agree")),
        vec![],
    );
    // An owned output costs what the caller's does, and the faults of its pages.
    let limit = || {
        gather.forward_into(x.view(), y.view_mut()).expect("shapes agree");
        fresh_pages(rows);
    };
    job(
        suite,
        &format!("{name}/forward"),
        Limit { call: Box::new(limit), scale: 1.0 },
        entry("owned", || drop(gather.forward(x.view()))),
        vec![entry("ndarray-select", || select(&x, &indices))],
    );
    job(
        suite,
        &format!("{name}/adjoint"),
        memory.limit_read(rows + table),
        entry("into", || gather.adjoint_into(grad_y.view(), grad_x.view_mut()).expect("shapes agree")),
        vec![entry("plain-loop", || add_rows(&grad_y, &indices, &mut peer_x))],
    );
    let mut with_new_plan = || {
        let gather = Gather::new(indices.view(), n, OutOfRange::Error).expect("indices in range");
        gather.adjoint_into(grad_y.view(), grad_x.view_mut()).expect("shapes agree");
    };
    let job_name = format!("{name}/adjoint");
    job(suite, &job_name, memory.limit_read(rows + table), entry("new-plan", &mut with_new_plan), vec![]);
}

/// A copy that begins with a cache line.
fn in_whole_lines(x: &Array3<f32>) -> Array3<f32> {
    let every_row = Array2::from_shape_fn((x.dim().0, x.dim().1), |(_, row)| row as i32);
    let gather = Gather::new(every_row.view(), x.dim().1, OutOfRange::Error).expect("indices in range");
    gather.forward(x.view()).expect("shapes agree")
}

/// The loop that a user writes: a row at a time, on all threads.
pub fn copy_rows(x: &Array3<f32>, indices: &Array3<i32>, y: &mut Array4<f32>) {
    let (m, c) = (indices.len() / x.dim().0, x.dim().2);
    let (x, indices) = (x.as_slice().expect("standard"), indices.as_slice().expect("standard"));
    let n = x.len() / c / (indices.len() / m);
    y.as_slice_mut().expect("standard").par_chunks_mut(c).zip(indices).enumerate().for_each(|(row, (y, &index))| {
        y.copy_from_slice(&x[(row / m * n + index as usize) * c..][..c]);
    });
}

/// What `ndarray` has for this.
fn select(x: &Array3<f32>, indices: &Array3<i32>) {
    let flat: Vec<usize> = indices.iter().map(|&index| index as usize).collect();
    let per_batch = flat.len() / x.dim().0;
    for (batch, indices) in x.outer_iter().zip(flat.chunks(per_batch)) {
        let batch: ArrayView2<'_, f32> = batch;
        std::hint::black_box(batch.select(Axis(0), indices));
    }
}

/// The loop that a user writes: one thread, since rows collide.
fn add_rows(grad_y: &Array4<f32>, indices: &Array3<i32>, grad_x: &mut Array3<f32>) {
    let grad_y: ArrayView4<'_, f32> = grad_y.view();
    let (n, c) = (grad_x.dim().1, grad_x.dim().2);
    let grad_y = grad_y.to_slice().expect("standard");
    let per_batch = indices.len() / grad_x.dim().0;
    let grad_x = grad_x.as_slice_mut().expect("standard");
    grad_x.fill(0.0);
    for (row, (grad, &index)) in grad_y.chunks_exact(c).zip(indices.iter()).enumerate() {
        let sum = &mut grad_x[(row / per_batch * n + index as usize) * c..][..c];
        sum.iter_mut().zip(grad).for_each(|(sum, grad)| *sum += grad);
    }
}
