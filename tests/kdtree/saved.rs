//! Trees that were saved answer as they did before, read, loaded or mapped.

use crate::common::cloud::Cloud;
use crate::common::random::Random;
use crate::common::saved::{HEADER, SECTIONS, assert_same_answers, crc32, section, u32_at, u64_at, written};
use crate::common::scratch::{Scratch, opened};
use crate::common::space::Axes;
use crate::common::values::Value;
use crate::common::{levels, threads};
use ndarray::{Array2, array};
use pullback::kdtree::{Builder, KdTree, KdTreeDyn};
use std::fs;

/// Saves a tree, and what is loaded is the same tree.
fn round_trip<T: Value>(builder: &Builder<T>, points: &Array2<T>, queries: &Array2<T>, scratch: &Scratch) {
    let path = scratch.path("tree");
    let built = builder.build_dyn(points.view()).unwrap();
    built.save(&path).unwrap();
    let file = written(&built);
    assert_eq!(fs::read(&path).unwrap(), file);
    assert_eq!(scratch.files(), ["tree"], "nothing is left beside the file");
    for tree in opened::<T>(&path) {
        let tree = tree.unwrap();
        assert_eq!(tree.level(), built.level());
        assert_same_answers(&tree, &built, queries.view());
        assert_eq!(written(&tree), file, "written again");
    }
}

fn every_shape<T: Value>() {
    let (mut random, scratch) = (Random::new(1), Scratch::new());
    for dims in 1..=16 {
        for (at, n) in [0, 1, 15, 16, 17, 33, 100].into_iter().enumerate() {
            let leaf = [16, 32, 64][(dims + at) % 3];
            let axes = [Axes::None, Axes::Some, Axes::All][(dims + at / 2) % 3];
            let mut points: Array2<T> = Cloud::Uniform.points(n, dims, &mut random);
            let queries = Cloud::Uniform.queries(&points, 9, &mut random);
            let mut builder = axes.space(&points, &mut random).builder().leaf_size(leaf);
            if (dims + at) % 2 == 1 {
                builder = builder.non_finite_is_absent();
                points.iter_mut().step_by(3 * dims + 1).for_each(|x| *x = T::nan());
            }
            round_trip(&builder, &points, &queries, &scratch);
        }
    }
}

#[test]
fn every_shape_of_f32() {
    every_shape::<f32>();
}

#[test]
fn every_shape_of_f64() {
    every_shape::<f64>();
}

#[test]
fn clouds() {
    let scratch = Scratch::new();
    for cloud in Cloud::ALL {
        let mut random = Random::new(2);
        let points: Array2<f32> = cloud.points(100, 3, &mut random);
        let queries = cloud.queries(&points, 20, &mut random);
        round_trip(&Builder::default().leaf_size(16), &points, &queries, &scratch);
        for axes in [Axes::Some, Axes::All] {
            round_trip(&axes.space(&points, &mut random).builder(), &points, &queries, &scratch);
        }
    }
}

/// So large that several threads verify it.
#[test]
fn by_many_threads() {
    let (mut random, scratch) = (Random::new(3), Scratch::new());
    let points: Array2<f32> = Cloud::Clustered.points(140_001, 2, &mut random);
    let built = KdTreeDyn::<f32>::builder().leaf_size(16).build_dyn(points.view()).unwrap();
    let path = scratch.path("tree");
    built.save(&path).unwrap();
    let expected = built.knn_self(3).unwrap();
    for count in threads::COUNTS {
        threads::with(count, || {
            for tree in opened::<f32>(&path) {
                assert!(tree.unwrap().knn_self(3).unwrap() == expected);
            }
        });
    }
}

#[test]
fn at_every_level() {
    let (mut random, scratch) = (Random::new(4), Scratch::new());
    let points: Array2<f64> = Cloud::Lattice.points(200, 3, &mut random);
    let built = KdTree::<f64, 3>::new(points.view()).unwrap();
    built.save(scratch.path("tree")).unwrap();
    levels::each(|level| {
        for tree in opened::<f64>(&scratch.path("tree")) {
            assert_same_answers(&tree.unwrap().with_level(level).unwrap(), &built, points.view());
        }
    });
}

#[test]
fn dimensions_in_the_type() {
    let scratch = Scratch::new();
    let path = scratch.path("tree");
    let built = KdTree::<f32, 2>::new(array![[0.0, 1.0], [2.0, 3.0]].view()).unwrap();
    built.save(&path).unwrap();
    let expected = built.knn_self(1).unwrap();
    assert_eq!(KdTree::<f32, 2>::load(&path).unwrap().knn_self(1).unwrap(), expected);
    assert_eq!(KdTree::<f32, 2>::read(fs::File::open(&path).unwrap()).unwrap().knn_self(1).unwrap(), expected);
    #[cfg(feature = "mmap")]
    assert_eq!(KdTree::<f32, 2>::map(&path).unwrap().knn_self(1).unwrap(), expected);
}

/// Queries that are not finite are without neighbours after loading, too.
#[test]
fn absent_queries_stay_absent() {
    let points = array![[0.0f32, 0.0], [f32::NAN, 0.0], [1.0, 1.0]];
    let built = KdTreeDyn::<f32>::builder().non_finite_is_absent().build_dyn(points.view()).unwrap();
    let tree = KdTreeDyn::<f32>::read(&written(&built)[..]).unwrap();
    let found = tree.knn(points.view(), 2).unwrap();
    assert_eq!(found.indices, array![[0, 2], [3, 3], [2, 0]]);
}

/// The bytes are those that the format's description says.
#[test]
fn the_format_is_the_documented_one() {
    let points = array![[3.0f32, 5.0], [1.0, 4.0], [2.0, 6.0]];
    let builder = KdTreeDyn::<f32>::builder().periodic(&[Some(4.0), None]).origin(&[0.5, 0.0]);
    let file = written(&builder.build_dyn(points.view()).unwrap());
    assert_eq!(file[..8], [0x89, b'P', b'B', b'K', b'D', b'\r', b'\n', 0x1a]);
    assert_eq!((u32_at(&file, 8), &file[12..16]), (1, &[4, 2, 2, 0][..]));
    let numbers: Vec<u64> = (16..48).step_by(8).map(|at| u64_at(&file, at)).collect();
    // A leaf of 32 slots of 2 elements of 4 bytes and a row number.
    assert_eq!(numbers, [32, 3, 3, file.len() as u64]);
    let ranges = SECTIONS.map(|which| section(&file, which));
    assert_eq!(ranges, [192..208, 256..512, 512..640, 640..640, 640..656]);
    assert_eq!(file.len(), 704);
    for (at, range) in ranges.iter().enumerate() {
        let checksum = crc32(&file[range.start..range.end.next_multiple_of(64)]);
        assert_eq!((u32_at(&file, 64 + 24 * at), u32_at(&file, 68 + 24 * at)), (checksum, 0));
    }
    assert!(file[168..188].iter().all(|&byte| byte == 0));
    assert_eq!(u32_at(&file, HEADER - 4), crc32(&file[..HEADER - 4]));

    let elements = |range: std::ops::Range<usize>| -> Vec<f32> {
        file[range].chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
    };
    assert_eq!(elements(192..208), [0.5, 0.0, 4.0, f32::INFINITY]);
    let (x, y) = (elements(256..384), elements(384..512));
    assert_eq!((&x[..3], &y[..3]), (&[3.0, 1.0, 2.0][..], &[5.0, 4.0, 6.0][..]));
    assert!(x[3..].iter().chain(&y[3..]).all(|&x| x == f32::INFINITY));
    let rows: Vec<u32> = (512..640).step_by(4).map(|at| u32_at(&file, at)).collect();
    assert_eq!((&rows[..3], rows[3..].iter().all(|&row| row == u32::MAX)), (&[0, 1, 2][..], true));
    assert_eq!(elements(640..656), [1.0, 4.0, 3.0, 6.0]);
}

/// A tree that is saved where it was mapped from replaces the file, not what is mapped.
#[cfg(feature = "mmap")]
#[test]
fn a_map_outlives_its_file() {
    let scratch = Scratch::new();
    let path = scratch.path("tree");
    let points: Array2<f64> = Cloud::Uniform.points(500, 3, &mut Random::new(5));
    let built = KdTree::<f64, 3>::new(points.view()).unwrap();
    built.save(&path).unwrap();
    let mapped = KdTree::<f64, 3>::map(&path).unwrap();
    mapped.save(&path).unwrap();
    KdTree::<f64, 3>::new(points.view()).unwrap().save(&path).unwrap();
    assert_same_answers(&mapped, &built, points.view());
    assert_same_answers(&KdTree::<f64, 3>::map(&path).unwrap(), &built, points.view());
    // Other systems do not remove what is mapped.
    if cfg!(unix) {
        fs::remove_file(&path).unwrap();
        assert_same_answers(&mapped, &built, points.view());
        fs::write(&path, []).unwrap();
    }
}

/// A file that changes under its map gives some answers or an error, but no panic.
#[cfg(feature = "mmap")]
#[test]
fn a_file_that_changes_under_its_map() {
    use crate::common::saved::search_all;
    use std::io::{Seek, SeekFrom, Write};

    fn check<T: Value>(periodic: bool, scratch: &Scratch) {
        let (mut random, path) = (Random::new(6), scratch.path("tree"));
        let points: Array2<T> = Cloud::Uniform.points(300, 3, &mut random);
        let axes = if periodic { Axes::All } else { Axes::None };
        let builder = axes.space(&points, &mut random).builder().leaf_size(16);
        builder.build_dyn(points.view()).unwrap().save(&path).unwrap();
        let file = fs::read(&path).unwrap();
        for round in 0..64 {
            fs::write(&path, &file).unwrap();
            let tree = KdTreeDyn::<T>::map(&path).unwrap();
            let range = section(&file, SECTIONS[1 + round % 4]);
            let mut open = fs::OpenOptions::new().write(true).open(&path).unwrap();
            let all = round % 8 < 4;
            for _ in 0..if all { 1 } else { 1 + random.below(8) } {
                let at = if all { range.start } else { range.start + random.below(range.len()) };
                let len = if all { range.len() } else { range.end.min(at + 4) - at };
                let byte = random.one_of(&[0, 0x7f, 0x80, 0xff, 3, 0x55]);
                let bytes: Vec<u8> =
                    (0..len).map(|_| if round % 16 < 8 { byte } else { random.below(256) as u8 }).collect();
                open.seek(SeekFrom::Start(at as u64)).unwrap();
                open.write_all(&bytes).unwrap();
            }
            search_all(tree, points.view());
        }
    }
    let scratch = Scratch::new();
    for periodic in [false, true] {
        check::<f32>(periodic, &scratch);
        check::<f64>(periodic, &scratch);
    }
}
