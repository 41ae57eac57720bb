//! The operators of `gather` at a small size, which one thread does from cache, and at a middle one: how long a call
//! takes, to compare with itself after a change. `limits` compares with the machine and with others.

#[allow(dead_code, reason = "every benchmark uses a part of it")]
mod random;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pullback::gather::{Extremum, Gather, Linear, OutOfRange, Pooled, Segments, Ties, Weighted};
use pullback::ndarray::{Array1, Array2, Array3, Array4};
use random::Random;
use std::hint::black_box;

/// (B, N, C) and (P, S).
const SIZES: [([usize; 3], [usize; 2]); 2] = [([1, 256, 16], [64, 8]), ([4, 4096, 64], [1024, 16])];

/// What rows are gathered from, and the indices.
struct Problem {
    x: Array3<f32>,
    indices: Array3<i32>,
    rows: usize,
    name: String,
}

impl Problem {
    fn all() -> impl Iterator<Item = Self> {
        SIZES.into_iter().map(|([b, n, c], [p, s])| {
            let mut random = Random::new(1);
            let x = Array3::from_shape_simple_fn((b, n, c), || random.unit());
            let indices = Array3::from_shape_simple_fn((b, p, s), || random.below(n) as i32);
            Self { x, indices, rows: n, name: format!("({b},{n},{c})x({b},{p},{s})") }
        })
    }

    /// Bytes of the gathered rows.
    fn gathered(&self) -> Throughput {
        Throughput::Bytes((self.indices.len() * self.x.dim().2 * size_of::<f32>()) as u64)
    }
}

fn rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gather/rows");
    for problem in Problem::all() {
        let Problem { x, indices, rows, name } = &problem;
        group.throughput(problem.gathered());
        let op = Gather::new(indices.view(), *rows, OutOfRange::Error).expect("indices in range");
        let (mut y, mut grad_x): (Array4<f32>, _) = (op.forward(x.view()).expect("shapes agree"), x.clone());
        group.bench_function(BenchmarkId::new("plan", name), |bencher| {
            bencher.iter(|| Gather::new(black_box(indices.view()), *rows, OutOfRange::Error));
        });
        group.bench_function(BenchmarkId::new("forward", name), |bencher| {
            bencher.iter(|| op.forward_into(x.view(), y.view_mut()));
        });
        group.bench_function(BenchmarkId::new("adjoint", name), |bencher| {
            bencher.iter(|| op.adjoint_into(y.view(), grad_x.view_mut()));
        });
    }
}

fn weighted(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gather/weighted");
    for problem in Problem::all() {
        let Problem { x, indices, rows, name } = &problem;
        group.throughput(problem.gathered());
        let op = Weighted::new(indices.view(), *rows, OutOfRange::Error).expect("indices in range");
        let mut random = Random::new(2);
        let w = indices.mapv(|_| random.unit());
        let mut y = op.forward(x.view(), w.view()).expect("shapes agree");
        let (mut grad_x, mut grad_w) = (x.clone(), w.clone());
        group.bench_function(BenchmarkId::new("forward", name), |bencher| {
            bencher.iter(|| op.forward_into(x.view(), w.view(), y.view_mut()));
        });
        group.bench_function(BenchmarkId::new("adjoint", name), |bencher| {
            bencher.iter(|| op.adjoint_into(y.view(), x.view(), w.view(), grad_x.view_mut(), grad_w.view_mut()));
        });
    }
}

fn pooled(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gather/pooled");
    for problem in Problem::all() {
        let Problem { x, indices, rows, name } = &problem;
        group.throughput(problem.gathered());
        let op = Pooled::new(indices.view(), *rows, OutOfRange::Error).expect("indices in range");
        let mut max = op.extremes(Extremum::Max, x.view()).expect("shapes agree");
        let mut mean = max.values.clone();
        let mut grad_x = x.clone();
        group.bench_function(BenchmarkId::new("max", name), |bencher| {
            bencher.iter(|| op.extremes_into(Extremum::Max, x.view(), max.values.view_mut(), max.arguments.view_mut()));
        });
        group.bench_function(BenchmarkId::new("max-adjoint", name), |bencher| {
            let first = || Ties::First(max.arguments.view());
            bencher.iter(|| op.extremes_adjoint_into(max.values.view(), first(), grad_x.view_mut()));
        });
        group.bench_function(BenchmarkId::new("mean", name), |bencher| {
            bencher.iter(|| op.forward_into(Linear::Mean, x.view(), mean.view_mut()));
        });
        group.bench_function(BenchmarkId::new("mean-adjoint", name), |bencher| {
            bencher.iter(|| op.adjoint_into(Linear::Mean, mean.view(), grad_x.view_mut()));
        });
    }
}

fn segments(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("gather/segments");
    for (rows, channels, segments) in [(512, 16, 64), (65_536, 64, 4096)] {
        let mut random = Random::new(3);
        let x: Array2<f32> = Array2::from_shape_simple_fn((rows, channels), || random.unit());
        let ids = Array1::from_shape_simple_fn(rows, || random.below(segments) as i32);
        let op = Segments::new(ids.view(), segments, OutOfRange::Error).expect("ids in range");
        let (mut y, mut grad_x) = (op.forward(Linear::Sum, x.view()).expect("shapes agree"), x.clone());
        let name = format!("({rows},{channels})x{segments}");
        group.throughput(Throughput::Bytes(size_of_val(x.as_slice().expect("standard")) as u64));
        group.bench_function(BenchmarkId::new("sum", &name), |bencher| {
            bencher.iter(|| op.forward_into(Linear::Sum, x.view(), y.view_mut()));
        });
        group.bench_function(BenchmarkId::new("sum-adjoint", &name), |bencher| {
            bencher.iter(|| op.adjoint_into(Linear::Sum, y.view(), grad_x.view_mut()));
        });
        group.bench_function(BenchmarkId::new("max", &name), |bencher| {
            bencher.iter(|| op.extremes(Extremum::Max, x.view()));
        });
        group.bench_function(BenchmarkId::new("softmax", &name), |bencher| {
            bencher.iter(|| op.softmax_into(x.view(), grad_x.view_mut()));
        });
    }
}

criterion_group!(benches, rows, weighted, pooled, segments);
criterion_main!(benches);
