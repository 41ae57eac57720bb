//! How much memory a tree and a search of its points take.

mod common;

use common::cloud::Cloud;
use common::counting::{Counting, peak_of};
use common::random::Random;
use ndarray::{Array1, Array2};
use pullback::kdtree::{KdTree, KdTreeDyn};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What does not grow with the points: alignment of outputs, and the lists and stacks of a thread.
const FIXED: usize = 256 << 10;

/// 2.6 times the bytes of the points, tree and scratch together, beyond the points and what is returned.
#[track_caller]
fn check(points: &Array2<f32>, k: usize) {
    let input = size_of_val(points.as_slice().expect("standard layout"));
    let limit = input * 26 / 10 + FIXED;
    let (tree, building) = peak_of(|| KdTree::<f32, 3>::new(points.view()).expect("the points are good"));
    assert!(building <= limit, "building took {building} bytes for {input}");
    drop(tree);

    let output = points.nrows() * k * (size_of::<f32>() + size_of::<u32>());
    let search = || KdTree::<f32, 3>::new(points.view()).and_then(|tree| tree.knn_self(k));
    let (found, searching) = peak_of(search);
    assert_eq!(found.expect("the size is small").counts().len(), points.nrows());
    assert!(searching <= limit + output, "searching took {searching} bytes for {input} and {output}");
}

// One test, so that nothing else allocates meanwhile.
#[test]
fn a_tree_and_a_search_of_its_points_take_little_beyond_them() {
    // Threads of the pool, and what they keep, belong to no call.
    rayon::join(|| (), || ());
    let mut random = Random::new(2);
    for rows in [200_000, 20_000, 1000] {
        for (cloud, k) in [(Cloud::Uniform, 5), (Cloud::Clustered, 1), (Cloud::Stretched, 20)] {
            check(&cloud.points(rows, 3, &mut random), k);
        }
    }

    // Counts and rows of a radius take nothing that grows with all pairs.
    let points: Array2<f32> = Cloud::Uniform.points(20_000, 3, &mut random);
    let tree = KdTreeDyn::new(points.view()).expect("the points are good");
    let (counts, counting) = peak_of(|| tree.radius_count(points.view(), f32::INFINITY).expect("a good radius"));
    assert!(counts.iter().all(|&count| count == 20_000));
    let input = size_of_val(points.as_slice().expect("standard layout"));
    assert!(counting <= 3 * input + FIXED, "counting took {counting} bytes for {input}");

    // What is refused has not begun.
    let mut radii = Array1::from_elem(points.nrows(), f32::INFINITY);
    radii[points.nrows() - 1] = f32::NAN;
    let (found, refusing) = peak_of(|| tree.radius(points.view(), &radii).err());
    assert!(found.is_some() && refusing <= FIXED, "refusing took {refusing} bytes");
}
