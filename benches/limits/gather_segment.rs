//! Sums by segment, and the gradient of touched rows alone.
//!
//! Limits. What mainly writes is held against the rate of a streaming copy, what mainly reads against that of reading:
//!
//! - segment sum: x, an id a row (or the offsets) and y, each once, read.
//! - its adjoint: `grad_y`, the ids and `grad_x`, each once, copied.
//! - compact adjoint: `grad_y`, the indices, and the touched rows with their numbers, each once, copied. That there are
//!   N rows costs nothing that must be.
//! - an owned output: the same call into the caller's buffer, and the faults of the output's pages.

use crate::measure::{Limit, Random, Suite, entry, job};
use crate::memory::{Memory, fresh_pages};
use pullback::gather::{Gather, Linear, OutOfRange, Segments};
use pullback::ndarray::{Array1, Array2, Axis, s};
use rayon::prelude::*;
use std::hint::black_box;

const CHANNELS: usize = 64;

pub fn report(suite: &Suite) {
    let (rows, segments) = (suite.size(1_000_000), suite.size(100_000));
    let mut random = Random::new(7);
    let name = "segment-sum(1000000,64)x100000/offsets";
    if suite.wants(name) {
        let mut offsets = Array1::from_shape_simple_fn(segments + 1, || random.below(rows) as u32);
        (offsets[0], offsets[segments]) = (0, rows as u32);
        offsets.as_slice_mut().expect("standard").sort_unstable();
        let ids = (0..).zip(offsets.windows(2)).flat_map(|(id, ends)| (ends[0]..ends[1]).map(move |_| id)).collect();
        let make = || Segments::from_offsets(offsets.view(), rows).expect("ascending offsets");
        sums(suite, name, make, &ids, Some(&offsets));
    }
    let name = "segment-sum(1000000,64)x100000/ids";
    if suite.wants(name) {
        let ids = Array1::from_shape_simple_fn(rows, || random.below(segments) as i32);
        let make = || Segments::new(ids.view(), segments, OutOfRange::Error).expect("ids in range");
        sums(suite, name, make, &ids, None);
    }
    let name = "compact(1,4000000,64)x(1,100000)";
    if suite.wants(name) {
        compact(suite, name);
    }
}

fn sums(suite: &Suite, name: &str, make: impl Fn() -> Segments, ids: &Array1<i32>, offsets: Option<&Array1<u32>>) {
    let op = make();
    let mut random = Random::new(8);
    let x = Array2::from_shape_simple_fn((ids.len(), CHANNELS), || random.unit());
    let grad_y = op.forward(Linear::Sum, x.view()).expect("shapes agree");
    let (mut y, mut grad_x, mut peer_y, mut peer_x) = (grad_y.clone(), x.clone(), grad_y.clone(), x.clone());
    let mut memory = Memory::new();
    let moved = 4 * (x.len() + ids.len() + grad_y.len());

    let forward = format!("{name}/forward");
    let peer = match offsets {
        Some(offsets) => entry("rayon-over-segments", || sum_segments(&x, offsets, &mut peer_y)),
        None => entry("plain-loop", || add_rows(&x, ids, &mut peer_y)),
    };
    job(
        suite,
        &forward,
        memory.limit_read(moved),
        entry("into", || op.forward_into(Linear::Sum, x.view(), y.view_mut()).expect("shapes agree")),
        vec![peer],
    );
    let with_new_plan = || make().forward_into(Linear::Sum, x.view(), y.view_mut()).expect("shapes agree");
    job(suite, &forward, memory.limit_read(moved), entry("new-plan", with_new_plan), vec![]);
    let limit = || {
        op.forward_into(Linear::Sum, x.view(), y.view_mut()).expect("shapes agree");
        fresh_pages(4 * grad_y.len());
    };
    job(
        suite,
        &forward,
        Limit { call: Box::new(limit), scale: 1.0 },
        entry("owned", || drop(black_box(op.forward(Linear::Sum, x.view())))),
        offsets.map(|offsets| entry("ndarray-sum-axis", || sum_axis(&x, offsets))).into_iter().collect(),
    );

    let adjoint = format!("{name}/adjoint");
    job(
        suite,
        &adjoint,
        memory.limit_copy(moved),
        entry("into", || op.adjoint_into(Linear::Sum, grad_y.view(), grad_x.view_mut()).expect("shapes agree")),
        vec![entry("rayon-loop", || copy_rows(&grad_y, ids, &mut peer_x))],
    );
    let limit = || {
        op.adjoint_into(Linear::Sum, grad_y.view(), grad_x.view_mut()).expect("shapes agree");
        fresh_pages(4 * x.len());
    };
    job(
        suite,
        &adjoint,
        Limit { call: Box::new(limit), scale: 1.0 },
        entry("owned", || drop(black_box(op.adjoint(Linear::Sum, grad_y.view())))),
        vec![entry("ndarray-select", || {
            let flat: Vec<usize> = ids.iter().map(|&id| id as usize).collect();
            black_box(grad_y.select(Axis(0), &flat));
        })],
    );
}

fn compact(suite: &Suite, name: &str) {
    let (n, m) = (suite.size(4_000_000), suite.size(100_000));
    let mut random = Random::new(9);
    let indices = Array1::from_shape_simple_fn(m, || random.below(n) as i32);
    let grad_y = Array2::from_shape_simple_fn((m, CHANNELS), || random.unit());
    let make = || Gather::unbatched(indices.view(), n, OutOfRange::Error).expect("indices in range");
    let op = make();
    let touched = op.adjoint_compact(grad_y.view()).expect("shapes agree").rows.len();
    let mut memory = Memory::new();
    let moved = 4 * (grad_y.len() + m + touched * (CHANNELS + 1));
    let run = |op: &Gather<_, _>| drop(black_box(op.adjoint_compact(grad_y.view())));
    // In training the indices are new in every step.
    job(
        suite,
        name,
        memory.limit_copy(moved),
        entry("new-plan", || run(&make())),
        vec![
            entry("sort-then-sum", || sort_and_sum(&grad_y, &indices)),
            entry("whole-gradient", || drop(black_box(make().adjoint(grad_y.view())))),
        ],
    );
    job(suite, name, memory.limit_copy(moved), entry("kept-plan", || run(&op)), vec![]);
}

/// The loop that a user writes: a segment at a time, on all threads.
fn sum_segments(x: &Array2<f32>, offsets: &Array1<u32>, y: &mut Array2<f32>) {
    let x = x.as_slice().expect("standard");
    let y = y.as_slice_mut().expect("standard").par_chunks_mut(CHANNELS);
    y.zip(offsets.as_slice().expect("standard").par_windows(2)).for_each(|(y, ends)| {
        y.fill(0.0);
        let rows = ends[0] as usize * CHANNELS..ends[1] as usize * CHANNELS;
        for row in x[rows].chunks_exact(CHANNELS) {
            y.iter_mut().zip(row).for_each(|(y, x)| *y += x);
        }
    });
}

/// What `ndarray` has for this.
fn sum_axis(x: &Array2<f32>, offsets: &Array1<u32>) {
    let mut y = Array2::zeros((offsets.len() - 1, CHANNELS));
    for (mut y, ends) in y.outer_iter_mut().zip(offsets.windows(2)) {
        y.assign(&x.slice(s![ends[0] as usize..ends[1] as usize, ..]).sum_axis(Axis(0)));
    }
    black_box(y);
}

/// The loop that a user writes: one thread, since rows collide.
fn add_rows(x: &Array2<f32>, ids: &Array1<i32>, y: &mut Array2<f32>) {
    let y = y.as_slice_mut().expect("standard");
    y.fill(0.0);
    for (row, &id) in x.as_slice().expect("standard").chunks_exact(CHANNELS).zip(ids) {
        y[id as usize * CHANNELS..][..CHANNELS].iter_mut().zip(row).for_each(|(y, x)| *y += x);
    }
}

/// The loop that a user writes: a row at a time, on all threads.
fn copy_rows(grad_y: &Array2<f32>, ids: &Array1<i32>, grad_x: &mut Array2<f32>) {
    let (grad_y, ids) = (grad_y.as_slice().expect("standard"), ids.as_slice().expect("standard"));
    grad_x.as_slice_mut().expect("standard").par_chunks_mut(CHANNELS).zip(ids).for_each(|(grad_x, &id)| {
        grad_x.copy_from_slice(&grad_y[id as usize * CHANNELS..][..CHANNELS]);
    });
}

/// What a user writes to touch as few rows: positions sorted by index, equal ones summed.
fn sort_and_sum(grad_y: &Array2<f32>, indices: &Array1<i32>) {
    let mut order: Vec<(i32, u32)> = indices.iter().copied().zip(0..).collect();
    order.par_sort_unstable();
    let groups: Vec<&[(i32, u32)]> = order.chunk_by(|a, b| a.0 == b.0).collect();
    let rows: Vec<i32> = groups.iter().map(|group| group[0].0).collect();
    let mut sums = vec![0.0f32; groups.len() * CHANNELS];
    let grad_y = grad_y.as_slice().expect("standard");
    sums.par_chunks_mut(CHANNELS).zip(groups).for_each(|(sum, group)| {
        for &(_, position) in group {
            let row = &grad_y[position as usize * CHANNELS..][..CHANNELS];
            sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
        }
    });
    black_box((rows, sums));
}
