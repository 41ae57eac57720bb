//! Pyramids of bits against dense arrays: every input, shape and level, changes, queries, sets, neighbours, files.

use crate::common::levels;
use crate::common::mipmap::{Fill, assert_pyramid, dilated, eroded, rows};
use crate::common::mipmap_case::{Input, MipmapCase};
use crate::common::mipmap_strategy::{shapes, some_levels};
use crate::common::problems::check_random;
use crate::common::random::Random;
use crate::common::strides::Strides;
use crate::common::threads;
use ndarray::{Array2, Array3, Zip, array, s};
use proptest::prelude::*;
use proptest::sample::select;
use pullback::Error;
use pullback::mipmap::{Connectivity, Mapping, Occupancy, Pyramid, PyramidBuilder, Tuning, full_levels};

fn tunings() -> impl Strategy<Value = Tuning> {
    let task = prop_oneof![Just(None), (1usize..20).prop_map(Some)];
    let switch = any::<Option<bool>>;
    (switch(), switch(), switch(), task).prop_map(|(parallel, fused, stream, task)| {
        let mut tuning = Tuning::default();
        (tuning.parallel, tuning.fused, tuning.stream, tuning.task) = (parallel, fused, stream, task);
        tuning
    })
}

fn problems() -> impl Strategy<Value = MipmapCase> {
    let strides = prop_oneof![
        1 => Just(Strides::default()),
        1 => (0usize..6, 0u8..8, 0u8..8).prop_map(|(order, reversed, halved)| Strides {
            order,
            reversed,
            halved,
            broadcast: 0
        }),
    ];
    let what = (shapes(), select(Fill::ALL.to_vec()), select(Input::ALL.to_vec()), any::<bool>());
    let how = (some_levels(), tunings(), strides, 0usize..5, select(threads::COUNTS.to_vec()), any::<u64>());
    (what, how).prop_map(|((shape, fill, input, slabs), (levels, tuning, strides, changes, threads, seed))| {
        MipmapCase { shape, fill, input, slabs, levels, tuning, strides, changes, threads, seed }
    })
}

#[test]
fn random_problems() {
    levels::each(|level| check_random(250, &problems(), |case| case.check(level)));
}

/// Every length along each axis, of every input.
#[test]
fn every_size() {
    levels::each(|level| {
        for (n, (at, input)) in (1..=70).flat_map(|n| Input::ALL.into_iter().enumerate().map(move |i| (n, i))) {
            let shape = [[5, 6, n], [4, 4, n], [3, 2, n], [n, 5, 6], [6, n, 5], [1, 1, n], [1, n, 1]][(n + at) % 7];
            let case =
                MipmapCase { input, changes: 1, fill: Fill::ALL[n % 6], seed: n as u64, ..MipmapCase::default() };
            MipmapCase { shape, slabs: at % 2 == 0, ..case.clone() }.check(level);
            MipmapCase { shape: [4, 5, n], fill: Fill::Half, ..case }.check(level);
        }
    });
}

#[test]
fn every_small_shape() {
    levels::each(|level| {
        for at in 0..216 {
            let shape = [at / 36 + 1, at / 6 % 6 + 1, at % 6 + 1];
            let case = MipmapCase { shape, input: Input::ALL[at % 12], seed: at as u64, ..MipmapCase::default() };
            case.check(level);
            MipmapCase { fill: Fill::One, slabs: true, ..case }.check(level);
        }
    });
}

/// Every bit of a row has its place.
#[test]
fn the_order_of_rows() {
    let shape = [2, 3, 70];
    for cell in [[0, 0, 0], [0, 0, 63], [0, 0, 64], [0, 2, 69], [1, 0, 1], [1, 2, 65]] {
        let mut pyramid = Pyramid::empty(shape).unwrap();
        pyramid.set(cell).unwrap();
        let rows = pyramid.level(0).unwrap().rows().unwrap();
        assert_eq!(rows.len(), 2 * 3 * 128);
        let [x, y, z] = cell;
        let mut words = [0u64; 12];
        words[(x * 3 + y) * 2 + z / 64] = 1 << (z % 64);
        assert_eq!(rows.as_raw_slice(), words);
        assert_eq!(Pyramid::from_bits(&rows, shape).unwrap(), pyramid);
    }
}

fn pyramid(grid: &Array3<bool>) -> Pyramid {
    Pyramid::from_nonzero(grid.view()).expect("a good grid")
}

#[test]
fn sets_and_neighbours() {
    let mut random = Random::new(5);
    for at in 0..300 {
        let shape = [0; 3].map(|_| 1 + random.below(if at % 3 == 0 { 5 } else { 21 }));
        let [one, other] = [0; 2].map(|_| random.one_of(&Fill::ALL).grid(shape, &mut random));
        let (a, b) = (pyramid(&one), pyramid(&other));
        let combined = |by: fn(bool, bool) -> bool| Zip::from(&one).and(&other).map_collect(|&a, &b| by(a, b));
        let changed = |by: fn(&mut Pyramid, &Pyramid) -> pullback::Result<()>| {
            let mut changed = a.clone();
            by(&mut changed, &b).expect("the same shape");
            changed
        };
        assert_pyramid(&changed(Pyramid::or_with), &combined(|a, b| a | b));
        assert_pyramid(&changed(Pyramid::and_with), &combined(|a, b| a & b));
        assert_pyramid(&changed(Pyramid::and_not_with), &combined(|a, b| a & !b));
        assert_pyramid(&changed(Pyramid::xor_with), &combined(|a, b| a ^ b));
        for neighbours in [Connectivity::Six, Connectivity::TwentySix] {
            assert_pyramid(&a.dilate(neighbours).unwrap(), &dilated(&one, neighbours));
            assert_pyramid(&a.erode(neighbours).unwrap(), &eroded(&one, neighbours));
        }
    }
}

/// Levels of the other, and the mapping of either, do not matter.
#[test]
fn sets_of_other_levels() {
    let mut random = Random::new(6);
    let [one, other] = [0; 2].map(|_| Fill::Sparse.grid([13, 9, 30], &mut random));
    let grid = |grid: &Array3<bool>| Occupancy::from_nonzero(grid.view()).unwrap();
    for (mine, theirs) in [(1, 6), (6, 1), (3, 2), (2, 6)] {
        let mut a = Pyramid::build_to(grid(&one), mine).unwrap().with_mapping([1.0, 2.0, 3.0], 0.5).unwrap();
        a.or_with(&Pyramid::build_to(grid(&other), theirs).unwrap()).unwrap();
        assert_eq!((a.levels(), a.mapping()), (mine, Some(Mapping { origin: [1.0, 2.0, 3.0], voxel: 0.5 })));
        assert_pyramid(&a, &Zip::from(&one).and(&other).map_collect(|a, b| a | b));
    }
}

#[test]
fn files() {
    let mut random = Random::new(7);
    for at in 0..120 {
        let shape = [0; 3].map(|_| 1 + random.below(if at % 3 == 0 { 5 } else { 40 }));
        let grid = random.one_of(&Fill::ALL).grid(shape, &mut random);
        let levels = 1 + random.below(full_levels(shape));
        let saved = Pyramid::build_to(Occupancy::from_nonzero(grid.view()).unwrap(), levels).unwrap();
        let saved = if at % 2 == 0 { saved } else { saved.with_mapping([-1.5, 0.0, 1e9], 0.125).unwrap() };
        let mut bytes = vec![];
        saved.write(&mut bytes).unwrap();
        let read = Pyramid::read(&bytes[..]).unwrap();
        assert_eq!((&read, read.mapping(), read.levels()), (&saved, saved.mapping(), levels));
        assert_pyramid(&read, &grid);
        // Half of a file and a file with a byte changed are none.
        assert!(Pyramid::read(&bytes[..random.below(bytes.len())]).is_err());
        let changed = random.below(bytes.len());
        bytes[changed] ^= 1 << random.below(8);
        assert!(Pyramid::read(&bytes[..]).is_err(), "byte {changed} of {}", bytes.len());
    }
}

#[test]
fn points() {
    let mut random = Random::new(8);
    let edge = [0.0, -0.0, -1e-300, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e30, 2.5, 0.1 + 0.2];
    for _ in 0..200 {
        let shape = [0; 3].map(|_| 1 + random.below(9));
        let origin = [0; 3].map(|_| random.one_of(&[0.0, -16.0, 0.1, 1e6]));
        let voxel = random.one_of(&[1.0, 0.1, 0.3, 16.0, 1e-3]);
        let points = Array2::from_shape_fn([50, 3], |(_, axis)| match random.below(12) {
            0 => random.one_of(&edge),
            1..4 => origin[axis] + voxel * random.below(10) as f64,
            _ => origin[axis] + voxel * 9.0 * random.uniform(),
        });
        let check = |points: &Array2<f64>, found: (Occupancy, usize)| {
            let (mut grid, mut outside) = (Array3::from_elem(shape, false), 0);
            for point in points.rows() {
                let cell = [0, 1, 2].map(|axis| ((point[axis] - origin[axis]) / voxel).floor());
                let inside = |axis: usize| cell[axis] >= 0.0 && cell[axis] < shape[axis] as f64;
                if (0..3).all(inside) {
                    grid[cell.map(|at| at as usize)] = true;
                } else {
                    outside += 1;
                }
            }
            assert_eq!(found.1, outside);
            assert_eq!(found.0.mapping(), Some(Mapping { origin, voxel }));
            assert_pyramid(&Pyramid::build(found.0).unwrap(), &grid);
        };
        check(&points, Occupancy::from_points(points.view(), origin, voxel, shape).unwrap());
        let single = points.mapv(|x| x as f32);
        let widened = single.mapv(f64::from);
        check(&widened, Occupancy::from_points(single.view(), origin, voxel, shape).unwrap());
        let (built, _) = Pyramid::from_points(points.view(), origin, voxel, shape).unwrap();
        let (grid, _) = Occupancy::from_points(points.view(), origin, voxel, shape).unwrap();
        assert_eq!(built, Pyramid::build(grid).unwrap());
    }
}

#[test]
fn boxes_that_are_refused() {
    let mut pyramid = Pyramid::empty([4, 5, 6]).unwrap();
    for (lo, hi) in [([0, 0, 0], [4, 5, 7]), ([5, 0, 0], [5, 1, 1]), ([2, 3, 3], [3, 2, 4]), ([0; 3], [usize::MAX; 3])]
    {
        let error = Error::Box { lo: lo.to_vec(), hi: hi.to_vec(), shape: vec![4, 5, 6] };
        assert_eq!(pyramid.any_in_box(lo, hi), Err(error.clone()));
        assert_eq!(pyramid.count_in_box(lo, hi), Err(error.clone()));
        assert_eq!(pyramid.all_in_box(lo, hi), Err(error.clone()));
        assert_eq!(pyramid.set_box(lo, hi, true), Err(error));
    }
    let error = Error::Box { lo: vec![3, 0, 0], hi: vec![5, 1, 1], shape: vec![4, 5, 6] };
    assert_eq!(pyramid.update([3, 0, 0], Array3::<f32>::ones([2, 1, 1]).view(), 0.0), Err(error.clone()));
    assert_eq!(pyramid.update_nonzero([3, 0, 0], Array3::<u8>::ones([2, 1, 1]).view()), Err(error));
    let error = |axis: usize, value: i128| Error::IndexOutOfRange {
        argument: "cell",
        position: vec![axis],
        value,
        bound: [4, 5, 6][axis],
    };
    assert_eq!(pyramid.set([0, 5, 6]), Err(error(1, 5)));
    assert_eq!(pyramid.clear([4, 0, 0]), Err(error(0, 4)));
    assert_eq!(pyramid.level(0).unwrap().get([0, 0, 6]), Err(error(2, 6)));
    assert_eq!(pyramid, Pyramid::empty([4, 5, 6]).unwrap());
    // A box of no cells may lie anywhere in the grid, its end too.
    assert_eq!(pyramid.any_in_box([4, 5, 6], [4, 5, 6]), Ok(false));
    assert_eq!(pyramid.all_in_box([4, 5, 6], [4, 5, 6]), Ok(true));
}

#[test]
fn shapes_that_are_refused() {
    for shape in [[0, 1, 1], [3, 0, 3], [2, 2, 0]] {
        let error = Error::Parameter { argument: "shape", value: "0".into(), expected: "greater than 0" };
        assert_eq!(Occupancy::empty(shape).err(), Some(error.clone()));
        assert_eq!(Pyramid::from_nonzero(Array3::<u8>::zeros(shape).view()).err(), Some(error.clone()));
        assert_eq!(Pyramid::from_threshold(Array3::<f32>::zeros(shape).view(), 0.0).err(), Some(error.clone()));
        assert_eq!(PyramidBuilder::new(shape).err(), Some(error));
    }
    let grid = Array3::from_elem([4, 4, 4], true);
    let shape = |argument, found: &[usize], expected: &[usize]| {
        Some(Error::Shape { argument, found: found.to_vec(), expected: expected.to_vec() })
    };
    let builder = || PyramidBuilder::new([4, 4, 5]).unwrap();
    assert_eq!(builder().nonzero(grid.view()).err(), shape("array", &[4, 4, 4], &[4, 4, 5]));
    assert_eq!(builder().bits(&rows(&grid)[64..]).err(), shape("rows", &[15 * 64], &[16 * 64]));
    let mut slabs = PyramidBuilder::new([5, 4, 4]).unwrap();
    let other = Array3::from_elem([1, 4, 3], true);
    assert_eq!(slabs.push_slab_nonzero(other.view()).err(), shape("slab", &[1, 4, 3], &[1, 4, 4]));
    slabs.push_slab_nonzero(grid.view()).unwrap();
    assert_eq!(slabs.push_slab_nonzero(grid.view()).err(), shape("slabs", &[8], &[5]));
    assert_eq!(slabs.planes(), 4);
    assert_eq!(slabs.finish().err(), shape("slabs", &[4], &[5]));
    let mut a = pyramid(&grid);
    assert_eq!(a.or_with(&Pyramid::empty([4, 4, 5]).unwrap()).err(), shape("other", &[4, 4, 5], &[4, 4, 4]));
    let large = Error::TooLarge { argument: "level", value: 3, limit: 2 };
    assert_eq!(a.level(3).err(), Some(large));
    assert_eq!(a.extend_to(4), Err(Error::TooLarge { argument: "levels", value: 4, limit: 3 }));
    let points = array![[0.0f32, 1.0]];
    assert!(matches!(
        Occupancy::from_points(points.view(), [0.0; 3], 1.0, [4; 3]).err(),
        Some(Error::Shape { argument: "points", .. })
    ));
    for voxel in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let made = Pyramid::empty([4; 3]).unwrap().with_mapping([0.0; 3], voxel);
        assert!(matches!(made.err(), Some(Error::Parameter { argument: "voxel", .. })), "{voxel}");
    }
}

/// So many words that levels above a changed box are packed by rows, and so few that they are looked at one after another.
#[test]
fn large_and_small_boxes_are_those_of_a_new_build() {
    levels::each(|level| {
        let mut random = Random::new(8);
        let mut density = Array3::from_shape_simple_fn([150, 130, 140], || random.normal());
        let new = |density: &Array3<f64>| Pyramid::empty(density.dim().into()).unwrap().with_level(level).unwrap();
        let built = |density: &Array3<f64>| {
            let mut pyramid = new(density);
            pyramid.update([0; 3], density.view(), 1.5).unwrap();
            pyramid
        };
        let mut pyramid = built(&density);
        for (lo, hi) in [([3, 5, 7], [140, 125, 133]), ([0, 0, 64], [90, 130, 140]), ([17, 20, 21], [60, 50, 40])] {
            let mut part = density.slice_mut(s![lo[0]..hi[0], lo[1]..hi[1], lo[2]..hi[2]]);
            part.map_inplace(|x| *x = if random.below(300) == 0 { 2.0 } else { -1.0 });
            pyramid.update(lo, part.view(), 1.5).unwrap();
            assert_eq!(pyramid, built(&density), "{lo:?}");
            let part = density.slice(s![lo[0]..hi[0], lo[1]..hi[1], lo[2]..hi[2]]);
            let mut of_threshold = Pyramid::from_threshold(density.view(), 1.5).unwrap();
            assert_eq!(of_threshold, pyramid);
            of_threshold.set_box(lo, hi, false).unwrap();
            of_threshold.update_nonzero(lo, part.mapv(|x| u8::from(x > 1.5)).view()).unwrap();
            assert_eq!(of_threshold, pyramid);
        }
    });
}
