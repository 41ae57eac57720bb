//! Everything once beside a dense array.

use super::*;
use crate::simd::Level;
use ndarray::{Array2, Array3, Axis, s};

const SHAPES: [[usize; 3]; 11] = [
    [1, 1, 1],
    [4, 4, 4],
    [5, 6, 70],
    [17, 9, 33],
    [1, 40, 70],
    [2, 19, 65],
    [70, 3, 5],
    [1, 1, 200],
    [130, 1, 1],
    [33, 18, 129],
    [8, 8, 520],
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, n: usize) -> usize {
        self.next() as usize % n
    }
}

fn array(random: &mut Random, shape: [usize; 3], share: usize) -> Array3<bool> {
    Array3::from_shape_simple_fn(shape, || random.below(1000) < share)
}

/// Level 1 of what is a level.
fn coarser(cells: &Array3<bool>) -> Array3<bool> {
    let (x, y, z) = cells.dim();
    let mut above = Array3::from_elem((x.div_ceil(2), y.div_ceil(2), z.div_ceil(2)), false);
    for ((x, y, z), &cell) in cells.indexed_iter() {
        above[[x / 2, y / 2, z / 2]] |= cell;
    }
    above
}

fn check(pyramid: &Pyramid, cells: &Array3<bool>) {
    let mut expected = cells.clone();
    for k in 0..pyramid.levels() {
        let level = pyramid.level(k).unwrap();
        assert_eq!(level.to_array::<bool>().unwrap(), expected, "level {k} of {:?}", cells.dim());
        assert_eq!(level.count(), expected.iter().filter(|&&cell| cell).count() as u64);
        let occupied: Vec<[usize; 3]> =
            expected.indexed_iter().filter(|(_, cell)| **cell).map(|(at, _)| at.into()).collect();
        assert_eq!(level.iter_occupied().collect::<Vec<[usize; 3]>>(), occupied);
        assert!(expected.indexed_iter().all(|(at, &cell)| level.get(at.into()).unwrap() == cell));
        let bounds = (!occupied.is_empty()).then(|| {
            let fold = |axis: usize, f: fn(usize, usize) -> usize| occupied.iter().map(|c| c[axis]).reduce(f).unwrap();
            ([0, 1, 2].map(|axis| fold(axis, usize::min)), [0, 1, 2].map(|axis| fold(axis, usize::max) + 1))
        });
        assert_eq!(level.bounds(), bounds);
        expected = coarser(&expected);
    }
}

#[test]
fn builds_from_every_input() {
    let random = &mut Random(1);
    for shape in SHAPES {
        let cells = array(random, shape, 60);
        let floats = cells.mapv(|cell| if cell { 1.5f32 } else { -0.0 });
        let (doubles, ints, wide) = (floats.mapv(f64::from), cells.mapv(i32::from), cells.mapv(i64::from));
        for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
            for task in [1, 100, 10_000] {
                let tuning = Tuning { task: Some(task), parallel: Some(task == 100), ..Tuning::default() };
                let builder = PyramidBuilder::new(shape).unwrap().with_level(level).unwrap().with_tuning(tuning);
                check(&builder.clone().threshold(floats.view(), 0.0).unwrap(), &cells);
                let built = builder.clone().threshold(doubles.view(), 0.0).unwrap();
                assert_eq!(built, builder.clone().nonzero(ints.view()).unwrap());
                assert_eq!(built, builder.clone().nonzero(wide.view()).unwrap());
                assert_eq!(built, builder.clone().nonzero(cells.view()).unwrap());
                let rows = built.level(0).unwrap().rows().unwrap();
                assert_eq!(built, builder.clone().bits(&rows).unwrap());
                let mut slabs = builder.clone();
                let mut at = 0;
                while at < shape[0] {
                    let planes = random.below(shape[0] - at + 1);
                    slabs.push_slab(floats.slice(s![at..at + planes, .., ..]), 0.0).unwrap();
                    at += planes;
                }
                assert_eq!(built, slabs.finish().unwrap());
                let mut turned = doubles.view();
                turned.invert_axis(Axis(2));
                let mut expected = cells.clone();
                expected.invert_axis(Axis(2));
                check(&builder.with_levels(1).unwrap().threshold(turned, 0.0).unwrap(), &expected);
            }
        }
    }
}

fn random_box(random: &mut Random, shape: [usize; 3]) -> ([usize; 3], [usize; 3]) {
    let lo = shape.map(|n| random.below(n + 1));
    let hi = [0, 1, 2].map(|axis| lo[axis] + random.below(shape[axis] - lo[axis] + 1));
    (lo, hi)
}

#[test]
fn boxes_and_changes() {
    let random = &mut Random(2);
    for shape in SHAPES {
        for share in [0, 20, 500, 995, 1000] {
            let mut cells = array(random, shape, share);
            let mut pyramid = Pyramid::from_nonzero(cells.view()).unwrap();
            let ground = Pyramid::build_to(pyramid.clone().into_occupancy(), 1).unwrap();
            for _ in 0..40 {
                let (lo, hi) = random_box(random, shape);
                let part = cells.slice(s![lo[0]..hi[0], lo[1]..hi[1], lo[2]..hi[2]]);
                let count = part.iter().filter(|&&cell| cell).count();
                for pyramid in [&pyramid, &ground] {
                    assert_eq!(pyramid.count_in_box(lo, hi).unwrap(), count as u64);
                    assert_eq!(pyramid.any_in_box(lo, hi).unwrap(), count > 0);
                    assert_eq!(pyramid.all_in_box(lo, hi).unwrap(), count == part.len());
                }
            }
            for change in 0..6 {
                let (lo, hi) = random_box(random, shape);
                let mut part = cells.slice_mut(s![lo[0]..hi[0], lo[1]..hi[1], lo[2]..hi[2]]);
                if change % 3 == 0 {
                    part.fill(change == 0);
                    pyramid.set_box(lo, hi, change == 0).unwrap();
                } else {
                    part.iter_mut().for_each(|cell| *cell = random.below(5) == 0);
                    pyramid.update(lo, part.mapv(f32::from).view(), 0.5).unwrap();
                }
                let cell = shape.map(|n| random.below(n));
                cells[cell] = change % 2 == 0;
                if change % 2 == 0 {
                    pyramid.set(cell).unwrap();
                } else {
                    pyramid.clear(cell).unwrap();
                }
                check(&pyramid, &cells);
            }
        }
    }
}

#[test]
fn neighbours() {
    let random = &mut Random(3);
    for shape in SHAPES {
        for share in [5, 900] {
            let cells = array(random, shape, share);
            let pyramid = Pyramid::from_nonzero(cells.view()).unwrap();
            for (which, most) in [(Connectivity::Six, 1), (Connectivity::TwentySix, 3)] {
                let around = |at: (usize, usize, usize), value: bool| {
                    let at = [at.0, at.1, at.2];
                    (0..27).any(|i: usize| {
                        let step = [i / 9, i / 3 % 3, i % 3];
                        let near = [0, 1, 2].map(|axis| (at[axis] + step[axis]).wrapping_sub(1));
                        step.iter().filter(|&&d| d != 1).count() <= most && cells.get(near) == Some(&value)
                    })
                };
                let dilated = Array3::from_shape_fn(cells.dim(), |at| around(at, true));
                let eroded = Array3::from_shape_fn(cells.dim(), |at| !around(at, false));
                check(&pyramid.dilate(which).unwrap(), &dilated);
                check(&pyramid.erode(which).unwrap(), &eroded);
            }
        }
    }
}

#[test]
fn rays_skip_to_where_they_walk() {
    let random = &mut Random(4);
    for shape in SHAPES.into_iter().chain([[64, 64, 64], [100, 3, 90]]) {
        for share in [0, 2, 30, 300] {
            let cells = array(random, shape, share);
            let pyramid = Pyramid::from_nonzero(cells.view()).unwrap();
            let count = 400;
            // Many origins and directions on the lattice, so that boundaries tie.
            let mut number = |n: f64| match random.below(4) {
                0 => random.below(n as usize + 2) as f64 - 1.0,
                1 => (random.below(4 * n as usize + 8) as f64 - 4.0) / 4.0,
                _ => random.below(1 << 20) as f64 / f64::from(1 << 20) * (n + 4.0) - 2.0,
            };
            let origins = Array2::from_shape_fn((count, 3), |(_, axis)| number(shape[axis] as f64));
            let mut directions = Array2::from_shape_fn((count, 3), |_| number(4.0) - 2.0);
            directions.outer_iter_mut().filter(|d| d.iter().all(|&x| x == 0.0)).for_each(|mut d| d[1] = -1.0);
            for t_max in [0.0, 1.0, 2.5, 16.0, f64::INFINITY] {
                let hits = pyramid.raycast(origins.view(), directions.view(), t_max).unwrap();
                let found = pyramid.traverse(origins.view(), directions.view(), t_max).unwrap();
                for r in 0..count {
                    let three = |array: &Array2<f64>| [0, 1, 2].map(|axis| array[[r, axis]]);
                    let walk: Vec<Visit> = pyramid.cells(three(&origins), three(&directions), t_max).unwrap().collect();
                    let hit = walk.iter().find(|visit| cells[visit.cell]);
                    let expected = hit.map_or(([-1; 3], f64::INFINITY), |hit| (hit.cell.map(|i| i as i64), hit.t));
                    let got = ([0, 1, 2].map(|axis| hits.cells[[r, axis]]), hits.t[r]);
                    assert_eq!(got, expected, "{shape:?} {:?} {:?} {t_max}", three(&origins), three(&directions));
                    let own = &found.intervals[found.offsets[r]..found.offsets[r + 1]];
                    let mut runs = Vec::new();
                    for (i, visit) in walk.iter().enumerate().filter(|(_, visit)| cells[visit.cell]) {
                        if i == 0 || !cells[walk[i - 1].cell] {
                            runs.push((visit.t, visit.cell, visit.cell));
                        }
                        runs.last_mut().unwrap().2 = visit.cell;
                    }
                    assert_eq!(own.iter().map(|i| (i.t_in, i.first, i.last)).collect::<Vec<_>>(), runs);
                }
            }
        }
    }
}

#[test]
fn memory_is_little_more_than_a_bit_a_voxel() {
    for (shape, most) in [([512, 512, 512], 1.2), ([513, 511, 509], 1.2), ([1, 3000, 5000], 2.0), ([5000, 3, 3], 2.0)] {
        let pyramid = Pyramid::empty(shape).unwrap();
        let bits = 8.0 * pyramid.bytes() as f64 / shape.iter().product::<usize>() as f64;
        assert!(bits <= most, "{shape:?} {bits}");
    }
}
