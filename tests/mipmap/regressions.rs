//! Inputs that are known to break others, by name, with results that are known.

use crate::common::levels;
use ndarray::{Array2, Array3, array};
use pullback::mipmap::{MaxPyramid, MeanPyramid, Occupancy, Pyramid, PyramidBuilder, Visit, full_levels};

/// A row along the last axis.
fn row(values: &[f32]) -> Array3<f32> {
    Array3::from_shape_vec([1, 1, values.len()], values.to_vec()).expect("a row")
}

fn visits(pyramid: &Pyramid, origin: [f64; 3], direction: [f64; 3], t_max: f64) -> Vec<([usize; 3], f64)> {
    let cells = pyramid.cells(origin, direction, t_max).expect("a good ray");
    cells.map(|Visit { cell, t }| (cell, t)).collect()
}

fn hit(pyramid: &Pyramid, origin: [f64; 3], direction: [f64; 3], t_max: f64) -> Option<([i64; 3], f64)> {
    let [origins, directions] = [origin, direction].map(|v| Array2::from_shape_fn([1, 3], |(_, axis)| v[axis]));
    let hits = pyramid.raycast(origins.view(), directions.view(), t_max).expect("a good ray");
    let cell = [0, 1, 2].map(|axis| hits.cells[[0, axis]]);
    assert_eq!(cell == [-1; 3], hits.t[0] == f64::INFINITY);
    (cell != [-1; 3]).then_some((cell, hits.t[0]))
}

fn occupied(pyramid: &Pyramid, k: usize) -> Vec<[usize; 3]> {
    pyramid.level(k).expect("the level is there").iter_occupied().collect()
}

#[test]
fn four_voxels_of_a_cube_of_four() {
    levels::each(|level| {
        let mut grid = Array3::<f32>::zeros([4, 4, 4]);
        for cell in [[0, 0, 0], [2, 0, 0], [3, 3, 3], [0, 3, 3]] {
            grid[cell] = 1.0;
        }
        let builder = PyramidBuilder::new([4, 4, 4]).unwrap().with_level(level).unwrap();
        let pyramid = builder.threshold(grid.view(), 0.5).unwrap();
        assert_eq!(pyramid.levels(), 3);
        assert_eq!(occupied(&pyramid, 0), [[0, 0, 0], [0, 3, 3], [2, 0, 0], [3, 3, 3]]);
        assert_eq!(occupied(&pyramid, 1), [[0, 0, 0], [0, 1, 1], [1, 0, 0], [1, 1, 1]]);
        assert_eq!(occupied(&pyramid, 2), [[0, 0, 0]]);
    });
}

#[test]
fn an_odd_length_keeps_its_last_voxel() {
    levels::each(|level| {
        let length = |n| PyramidBuilder::new([1, 1, n]).unwrap().with_level(level).unwrap();
        let long = length(25).nonzero(Array3::from_elem([1, 1, 25], true).view()).unwrap();
        assert_eq!(long.level(1).unwrap().shape(), [1, 1, 13]);
        assert_eq!(long.level(1).unwrap().count(), 13);
        let short = length(5).threshold(row(&[0.0, 0.0, 0.0, 0.0, 1.0]).view(), 0.0).unwrap();
        assert_eq!(short.level(1).unwrap().to_array::<u8>().unwrap(), array![[[0, 0, 1]]]);
        assert_eq!(full_levels([1, 1, 5]), 4);
        assert_eq!(full_levels([1, 1, 1]), 1);
    });
}

#[test]
fn what_is_beyond_the_edge_is_no_zero() {
    levels::each(|level| {
        let pyramid = MaxPyramid::<f32>::new([1, 1, 3]).unwrap().with_levels(2).unwrap().with_level(level).unwrap();
        let found = pyramid.forward(row(&[-1.0, -2.0, -3.0]).view()).unwrap();
        assert_eq!(found.levels, [row(&[-1.0, -3.0])]);
        let pyramid = MeanPyramid::<f32>::new([1, 1, 11]).unwrap().with_level(level).unwrap();
        let found = pyramid.forward(row(&[1.0; 11]).view()).unwrap();
        let shapes: Vec<usize> = found.iter().map(Array3::len).collect();
        assert_eq!(shapes, [6, 3, 2, 1]);
        assert!(found.iter().flatten().all(|mean| *mean == 1.0), "{found:?}");
    });
}

#[test]
fn the_maximum_of_a_window_and_a_rest() {
    levels::each(|level| {
        let pyramid = MaxPyramid::<f32>::new([1, 1, 3]).unwrap().with_levels(2).unwrap().with_level(level).unwrap();
        assert_eq!(pyramid.forward(row(&[0.0, 9.0, 0.0]).view()).unwrap().levels, [row(&[9.0, 0.0])]);
    });
}

#[test]
fn nan_is_empty_and_infinity_is_occupied() {
    levels::each(|level| {
        let mut cube = Array3::from_elem([2, 2, 2], 1.0f32);
        cube[[1, 0, 1]] = f32::NAN;
        let builder = || PyramidBuilder::new([2, 2, 2]).unwrap().with_level(level).unwrap();
        assert_eq!(builder().threshold(cube.view(), 0.01).unwrap().level(0).unwrap().count(), 7);
        assert_eq!(builder().threshold(cube.view(), f32::NAN).unwrap().level(0).unwrap().count(), 0);
        let special = [f32::INFINITY, -0.0, 0.0, f32::NAN, f32::NEG_INFINITY, f32::from_bits(1), -1.0, 0.01];
        let special = Array3::from_shape_vec([2, 2, 2], special.to_vec()).unwrap();
        let found = builder().threshold(special.view(), 0.0).unwrap();
        assert_eq!(occupied(&found, 0), [[0, 0, 0], [1, 0, 1], [1, 1, 1]]);
        // Equality is empty.
        assert_eq!(occupied(&builder().threshold(special.view(), 0.01).unwrap(), 0), [[0, 0, 0]]);
    });
}

#[test]
fn the_maximum_of_nan_is_nan() {
    levels::each(|level| {
        for values in [[f32::NAN, 0.0], [0.0, f32::NAN]] {
            let pyramid = MaxPyramid::<f32>::new([1, 1, 2]).unwrap().with_level(level).unwrap();
            assert!(pyramid.forward(row(&values).view()).unwrap().levels[0][[0, 0, 0]].is_nan());
        }
    });
}

#[test]
fn small_values_have_one_maximum() {
    levels::each(|level| {
        let pyramid = MaxPyramid::<f32>::new([2, 2, 2]).unwrap().with_level(level).unwrap();
        for values in [[9e-6, 8e-6, 9e-6, 1e-7, 0.0, 9e-6, 1e-20, 3e-6], [1e-6; 8], [-9e-6; 8]] {
            let x = Array3::from_shape_vec([2, 2, 2], values.to_vec()).unwrap();
            let found = pyramid.forward(x.view()).unwrap();
            let one = array![[[1.0f32]]];
            let gradient = pyramid.adjoint(&[None, Some(one.view())], &found.arguments).unwrap();
            let mut expected = Array3::zeros([2, 2, 2]);
            expected[[0, 0, 0]] = 1.0;
            assert_eq!(gradient, expected, "{values:?}");
        }
    });
}

#[test]
fn the_gradient_goes_to_nan() {
    levels::each(|level| {
        let pyramid = MaxPyramid::<f64>::new([1, 2, 2]).unwrap().with_level(level).unwrap();
        let found = pyramid.forward(array![[[9.0, f64::NAN], [0.0, 3.0]]].view()).unwrap();
        let two = array![[[2.0]]];
        let gradient = pyramid.adjoint(&[None, Some(two.view())], &found.arguments).unwrap();
        assert_eq!(gradient, array![[[0.0, 2.0], [0.0, 0.0]]]);
    });
}

/// Row-major order would take (0, 2); each window by itself takes the first, and the first of the windows has (1, 0).
#[test]
fn equal_maxima_of_two_levels() {
    levels::each(|level| {
        let pyramid = MaxPyramid::<f32>::new([1, 4, 4]).unwrap().with_level(level).unwrap();
        let mut x = Array3::zeros([1, 4, 4]);
        (x[[0, 0, 2]], x[[0, 1, 0]]) = (5.0, 5.0);
        let found = pyramid.forward(x.view()).unwrap();
        let one = array![[[1.0f32]]];
        let gradient = pyramid.adjoint(&[None, None, Some(one.view())], &found.arguments).unwrap();
        let mut expected = Array3::zeros([1, 4, 4]);
        expected[[0, 1, 0]] = 1.0;
        assert_eq!(gradient, expected);
    });
}

#[test]
fn points_are_rounded_down() {
    let points = array![[-0.5, 0.5, 0.5], [0.5, 0.5, 0.5]];
    let (grid, outside) = Occupancy::from_points(points.view(), [0.0; 3], 1.0, [2, 2, 2]).unwrap();
    assert_eq!(outside, 1);
    assert_eq!(grid.grid().iter_occupied().collect::<Vec<_>>(), [[0, 0, 0]]);
    let (grid, outside) = Occupancy::from_points(points.view(), [-1.0, 0.0, 0.0], 1.0, [2, 2, 2]).unwrap();
    assert_eq!((grid.grid().count(), outside), (2, 0));
}

#[test]
fn the_upper_bound_is_outside() {
    let points = array![[10.0f32, 0.0, 0.0], [10.0f32.next_down(), 0.0, 0.0]];
    let (grid, outside) = Occupancy::from_points(points.view(), [0.0; 3], 1.0, [10, 1, 1]).unwrap();
    assert_eq!(outside, 1);
    assert_eq!(grid.grid().iter_occupied().collect::<Vec<_>>(), [[9, 0, 0]]);
}

#[test]
fn a_ray_from_a_corner_where_three_boundaries_meet() {
    let pyramid = Pyramid::empty([6, 2, 3]).unwrap().with_mapping([0.0, -16.0, 0.0], 16.0).unwrap();
    let found = visits(&pyramid, [0.0; 3], [90.0, -16.0, 45.0], 1.0);
    assert_eq!(found[..2], [([0, 1, 0], 0.0), ([0, 0, 0], 0.0)]);
    assert_eq!((found.len(), found[8].0), (9, [5, 0, 2]));
}

#[test]
fn a_ray_from_below_enters_and_leaves() {
    let mut pyramid = Pyramid::empty([4, 4, 4]).unwrap();
    let (origin, direction) = ([0.5, 0.5, -1.0], [0.0, 0.0, 1.0]);
    let found = visits(&pyramid, origin, direction, f64::INFINITY);
    assert_eq!(found, [0, 1, 2, 3].map(|z| ([0, 0, z], z as f64 + 1.0)));
    assert_eq!(hit(&pyramid, origin, direction, f64::INFINITY), None);
    pyramid.set([0, 0, 3]).unwrap();
    assert_eq!(hit(&pyramid, origin, direction, f64::INFINITY), Some(([0, 0, 3], 4.0)));
    assert_eq!(hit(&pyramid, origin, direction, 4.0), Some(([0, 0, 3], 4.0)));
    assert_eq!(hit(&pyramid, origin, direction, 4.0f64.next_down()), None);
}

#[test]
fn rays_along_the_sides_of_a_box() {
    let mut pyramid = Pyramid::empty([1, 1, 1]).unwrap();
    pyramid.set([0, 0, 0]).unwrap();
    let along = |x: f64| hit(&pyramid, [x, 0.5, -1.0], [0.0, 0.0, 1.0], f64::INFINITY);
    assert_eq!((along(0.0), along(1.0)), (Some(([0, 0, 0], 1.0)), None));
    let (origins, directions) = (array![[0.0, 0.5, -1.0], [1.0, 0.5, -1.0]], array![[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]);
    let found = pyramid.traverse(origins.view(), directions.view(), f64::INFINITY).unwrap();
    assert_eq!(found.offsets, [0, 1, 1]);
    assert_eq!((found.intervals[0].t_in, found.intervals[0].t_out), (1.0, 2.0));
}

#[test]
fn minus_zero_is_zero() {
    let pyramid = Pyramid::empty([3, 3, 3]).unwrap();
    for x in [0.0, -0.0, 1.0, 2.5, 3.0] {
        for t_max in [2.0, f64::INFINITY] {
            let [minus, plus] = [-0.0, 0.0].map(|zero| visits(&pyramid, [x, 1.0, 0.0], [zero, 0.0, 1.0], t_max));
            assert_eq!(minus, plus);
            assert_eq!(plus.len(), if x < 3.0 { 3 } else { 0 });
        }
    }
}

#[test]
fn a_ray_from_a_corner_starts_in_its_own_cell() {
    let pyramid = Pyramid::empty([3, 3, 3]).unwrap();
    let [up, down] = [1.0, -1.0].map(|d| visits(&pyramid, [1.0; 3], [d, 0.0, 0.0], f64::INFINITY));
    assert_eq!(up, [([1, 1, 1], 0.0), ([2, 1, 1], 1.0)]);
    assert_eq!(down, [([1, 1, 1], 0.0), ([0, 1, 1], 0.0)]);
}

#[test]
fn an_empty_grid_is_missed_at_once() {
    let pyramid = Pyramid::empty([512; 3]).unwrap();
    let [origins, directions] = [
        Array2::from_shape_fn([10_000, 3], |(ray, axis)| (ray * (axis + 3) % 1000) as f64 - 0.3),
        Array2::from_shape_fn([10_000, 3], |(ray, axis)| 1.0 + (ray * (axis + 1) % 17) as f64),
    ];
    let hits = pyramid.raycast(origins.view(), directions.view(), f64::INFINITY).unwrap();
    assert!(hits.cells.iter().all(|at| *at == -1) && hits.t.iter().all(|t| *t == f64::INFINITY));
}

#[test]
fn every_level_is_empty_when_every_voxel_is_cleared() {
    let shape = [7, 5, 9];
    let mut pyramid = Pyramid::from_nonzero(Array3::from_elem(shape, true).view()).unwrap();
    let cells = occupied(&pyramid, 0);
    assert_eq!(cells.len(), 7 * 5 * 9);
    for (left, cell) in (0..cells.len() as u64).rev().zip(cells) {
        pyramid.clear(cell).unwrap();
        assert_eq!(pyramid.level(0).unwrap().count(), left);
        assert_eq!(pyramid.level(pyramid.levels() - 1).unwrap().count(), u64::from(left > 0));
    }
    assert_eq!(pyramid, Pyramid::empty(shape).unwrap());
    for k in 0..pyramid.levels() {
        assert_eq!(pyramid.level(k).unwrap().count(), 0);
    }
}

/// More cells than 32 bits count.
#[test]
fn the_last_cell_of_a_large_grid() {
    let shape = [2048, 2048, 2048];
    let mut pyramid = Pyramid::empty(shape).unwrap();
    let last = shape.map(|n| n - 1);
    pyramid.set(last).unwrap();
    let index = last.iter().zip(shape).fold(0u64, |index, (at, n)| index * n as u64 + *at as u64);
    assert_eq!(index, 8_589_934_591);
    assert_eq!(pyramid.level(0).unwrap().bounds(), Some((last, shape)));
    assert_eq!(pyramid.levels(), 12);
    for k in 0..12 {
        assert_eq!(occupied(&pyramid, k), [last.map(|at| at >> k)]);
    }
    pyramid.set_box([0; 3], shape, true).unwrap();
    assert_eq!(pyramid.count_in_box([0; 3], shape), Ok(1 << 33));
    assert_eq!(hit(&pyramid, [-1.0, 2047.5, 2047.5], [1.0, 0.0, 0.0], 2.0), Some(([0, 2047, 2047], 1.0)));
}

/// A flat map of more columns than 32 bits count, with its columns along each pair of axes.
#[test]
fn the_last_cell_of_a_large_map() {
    for shape in [[65_536, 65_537, 1], [1, 65_536, 65_537]] {
        let mut pyramid = Pyramid::empty(shape).unwrap();
        assert!(pyramid.bytes() < 1 << 30);
        let (top, last) = (pyramid.levels() - 1, shape.map(|n| n - 1));
        let index = last.iter().zip(shape).fold(0u64, |index, (at, n)| index * n as u64 + *at as u64);
        assert_eq!((index, top), (4_295_032_831, 17));
        pyramid.set(last).unwrap();
        // Where it would be if its index were counted in 32 bits.
        let wrapped = if shape[2] == 1 { [0, 65_535, 0] } else { [0, 0, 65_535] };
        for (cell, expected) in [(last, true), (wrapped, false), ([0; 3], false)] {
            assert_eq!(pyramid.level(0).unwrap().get(cell), Ok(expected), "{cell:?}");
        }
        for k in 0..=top {
            let level = pyramid.level(k).unwrap();
            let at = last.map(|at| at >> k);
            assert_eq!(level.bounds(), Some((at, at.map(|at| at + 1))), "level {k}");
            assert_eq!(level.get(at), Ok(true), "level {k}");
            // Between the levels that words are kept of, every cell is looked for by itself; and rows may be of one cell.
            let few = level.shape().iter().product::<usize>() < 1 << 22;
            if few || k == 0 {
                assert_eq!(level.count(), 1, "level {k}");
            }
            if few || k == 0 && shape[2] > 1 {
                assert!(level.iter_occupied().eq([at]), "level {k}");
            }
        }
        assert_eq!(pyramid.count_in_box([0; 3], shape), Ok(1));
        assert_eq!(pyramid.any_in_box(wrapped, wrapped.map(|at| at + 1)), Ok(false));
        let hit_at = last.map(|at| at as i64);
        let (from, back) = (last.map(|at| at as f64 + 0.5), shape.iter().position(|n| *n == 65_537).unwrap());
        let mut origin = from;
        origin[back] += 2.0;
        let direction = [0, 1, 2].map(|axis| if axis == back { -1.0 } else { 0.0 });
        assert_eq!(hit(&pyramid, origin, direction, f64::INFINITY), Some((hit_at, 1.5)));
        pyramid.set_box([0; 3], shape, true).unwrap();
        assert_eq!(pyramid.count_in_box([0; 3], shape), Ok(index + 1));
        assert_eq!(pyramid.level(0).unwrap().count(), index + 1);
        assert_eq!(pyramid.all_in_box([0; 3], shape), Ok(true));
        pyramid.clear(last).unwrap();
        assert_eq!(pyramid.level(0).unwrap().get(last), Ok(false));
        assert_eq!(pyramid.count_in_box([0; 3], shape), Ok(index));
    }
}
