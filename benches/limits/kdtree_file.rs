//! Saved trees: from a file in the page cache to the answer of the first query, by a map and by loading into memory, with
//! everything verified.
//!
//! The limit is reading the file's bytes once.

use crate::measure::{Random, Suite, entry, job};
use crate::memory::Memory;
use pullback::kdtree::KdTree;
use pullback::ndarray::{Array2, array};
use std::hint::black_box;

pub fn report(suite: &Suite) {
    map(suite, 1_000_000);
    if suite.names("14000000") {
        map(suite, 14_000_000);
    }
}

fn map(suite: &Suite, n: usize) {
    let name = format!("kdtree/map/{n}x3/f32");
    if !suite.wants(&name) {
        return;
    }
    let mut random = Random::new(3);
    let points = Array2::<f32>::from_shape_simple_fn((suite.size(n), 3), || random.unit());
    let path = std::env::temp_dir().join(format!("pullback-limits-{}.tree", std::process::id()));
    KdTree::<f32, 3>::new(points.view()).and_then(|tree| tree.save(&path)).expect("room for a file");
    let bytes = std::fs::metadata(&path).expect("the file was written").len() as usize;
    let query = array![[0.5, 0.5, 0.5]];
    let first = |tree: pullback::Result<KdTree<f32, 3>>| {
        drop(black_box(tree.expect("a good file").knn(query.view(), 5).expect("a finite query")));
    };
    let memory = Memory::new();
    let ours = entry("first-query", || first(KdTree::map(&path)));
    let peers = vec![entry("load", || first(KdTree::load(&path)))];
    job(suite, &name, memory.limit_read(bytes), ours, peers);
    std::fs::remove_file(&path).expect("the file was written");
}
