//! The k-d tree at a small and at a middle size: how long a call takes, to compare with itself after a change. `limits`
//! compares with others.

#[allow(dead_code, reason = "every benchmark uses a part of it")]
mod random;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use pullback::kdtree::KdTree;
use pullback::ndarray::Array2;
use random::Random;
use std::hint::black_box;

/// Neighbours a query.
const K: usize = 8;

fn searches(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kdtree");
    for n in [1000, 50_000] {
        let mut random = Random::new(1);
        let mut uniform = |rows| Array2::<f32>::from_shape_simple_fn((rows, 3), || random.unit());
        let (points, queries) = (uniform(n), uniform(n));
        let tree = KdTree::<f32, 3>::new(points.view()).expect("finite points");
        group.throughput(Throughput::Elements(n as u64));
        group.bench_function(BenchmarkId::new("build", n), |bencher| {
            bencher.iter(|| KdTree::<f32, 3>::new(black_box(points.view())));
        });
        group.bench_function(BenchmarkId::new("knn", n), |bencher| bencher.iter(|| tree.knn(queries.view(), K)));
        group.bench_function(BenchmarkId::new("knn_self", n), |bencher| bencher.iter(|| tree.knn_self(K)));
    }
}

criterion_group!(benches, searches);
criterion_main!(benches);
