//! Rays against the walk through the cells of level 0, and the rays that are refused.

use crate::common::mipmap::{Cell, Fill, cells_of};
use crate::common::mipmap_strategy::{shapes, some_levels};
use crate::common::mipmap_walk::{Rays, RaysCase, check_rays};
use crate::common::problems::check_random;
use crate::common::random::Random;
use crate::common::strides::Strides;
use crate::common::threads;
use crate::common::values::Value;
use ndarray::{Array2, Array3, array};
use proptest::prelude::*;
use proptest::sample::select;
use pullback::Error;
use pullback::mipmap::{Occupancy, Pyramid, full_levels};

fn problems() -> impl Strategy<Value = RaysCase> {
    let t_max = prop_oneof![
        3 => Just(f64::INFINITY),
        1 => select(vec![0.0, -0.0, 0.5, 1.0, 2.0, 5e-324, 1e-300, 1e300]),
        1 => 0.0..4.0f64,
    ];
    let mapping = prop_oneof![
        1 => Just(None),
        1 => (select(vec![0.0, -16.0, 0.1, 7.3, 1e4]), select(vec![1.0, 0.1, 16.0, 0.3, 1e-3]))
            .prop_map(|(at, voxel)| Some(([at, -at, at / 3.0], voxel))),
    ];
    let strides = (0usize..2, 0u8..4, 0u8..4);
    let what = (shapes(), select(Fill::ALL.to_vec()), select(Rays::ALL.to_vec()), 0usize..40, t_max);
    let how = (some_levels(), mapping, any::<bool>(), strides, select(threads::COUNTS.to_vec()), any::<u64>());
    (what, how).prop_map(
        |((shape, fill, rays, count, t_max), (levels, mapping, double, (order, reversed, halved), threads, seed))| {
            let strides = Strides { order, reversed, halved, broadcast: 0 };
            RaysCase { shape, fill, rays, count, t_max, levels, mapping, double, strides, threads, seed }
        },
    )
}

#[test]
fn random_problems() {
    check_random(3000, &problems(), |case| case.check());
}

/// Far more rays than go side by side.
#[test]
fn many_rays() {
    for (seed, rays) in (0..).zip(Rays::ALL) {
        for (double, threads, fill) in [(false, 7, Fill::Sparse), (true, 1, Fill::One), (true, 2, Fill::Empty)] {
            let case = RaysCase { rays, double, threads, fill, seed, count: 3000, ..RaysCase::default() };
            RaysCase { shape: [65, 33, 70], ..case.clone() }.check();
            RaysCase { shape: [1, 90, 130], t_max: 1.5, ..case }.check();
        }
    }
}

/// All rays of `origins` and of `directions`, through several grids, at all numbers of levels.
fn every_pair<T: Value>(shape: Cell, origins: &[[T; 3]], directions: &[[T; 3]]) {
    let pairs: Vec<([T; 3], [T; 3])> = origins.iter().flat_map(|o| directions.iter().map(|d| (*o, *d))).collect();
    let [origins, directions] =
        [0, 1].map(|at| Array2::from_shape_fn([pairs.len(), 3], |(r, a)| [pairs[r].0, pairs[r].1][at][a]));
    let mut random = Random::new(3);
    for fill in [Fill::Half, Fill::One, Fill::Sparse, Fill::Full] {
        let grid = fill.grid(shape, &mut random);
        let occupancy = Occupancy::from_nonzero(grid.view()).unwrap();
        for levels in 1..=full_levels(shape) {
            let pyramid = Pyramid::build_to(occupancy.clone(), levels).unwrap();
            for t_max in [f64::INFINITY, 2.0] {
                check_rays(&pyramid, &grid, &origins, &directions, Strides::default(), t_max);
            }
        }
    }
}

/// In each octant, diagonal half-spaces and along axes, from every face, edge and corner of cells in and around a grid.
#[test]
fn every_octant_through_every_feature() {
    fn check<T: Value>() {
        let number = |at: usize, by: f64| T::from_f64(at as f64 * by).unwrap();
        let ways: Vec<[T; 3]> = cells_of([0; 3], [3; 3])
            .filter(|at| *at != [1; 3])
            .map(|at| at.map(|at| number(at, 1.0) - T::one()))
            .collect();
        let skew: Vec<[T; 3]> = cells_of([0; 3], [5; 3])
            .filter(|at| at.iter().any(|at| *at % 2 == 1) && at.iter().sum::<usize>() % 3 != 0)
            .map(|at| at.map(|at| (number(at, 1.0) - number(2, 1.0)) * number(1, 0.75)))
            .filter(|way| way.iter().any(|d| *d != T::zero()))
            .collect();
        // From half a cell before the grid to half a cell behind it.
        let shape = [3, 2, 5];
        let origins: Vec<[T; 3]> = cells_of([0; 3], shape.map(|n| 2 * n + 3))
            .map(|at| at.map(|at| number(at, 0.5) - number(1, 0.5)))
            .collect();
        every_pair(shape, &origins, &ways);
        every_pair(shape, &origins, &skew);
    }
    check::<f32>();
    check::<f64>();
}

/// From well outside, towards every corner of every cell.
#[test]
fn towards_every_corner() {
    fn check<T: Value>() {
        let number = |x: f64| T::from_f64(x).unwrap();
        let shape = [5, 4, 6];
        for from in cells_of([0; 3], [3; 3]) {
            let from = [0, 1, 2].map(|axis: usize| [-3.1, 2.3, 8.7][from[axis]]);
            let directions: Vec<[T; 3]> = cells_of([0; 3], shape.map(|n| n + 1))
                .map(|to| [0, 1, 2].map(|axis: usize| number(to[axis] as f64 - from[axis])))
                .collect();
            every_pair(shape, &[from.map(number)], &directions);
        }
    }
    check::<f32>();
    check::<f64>();
}

/// Boxes of 16 x 16 x 16 with some cells and empty ones in turn: rays leave an empty one that is neither where they start nor where
/// they end. In flat grids boxes have other shapes.
#[test]
fn hits_behind_empty_boxes() {
    fn check<T: Value>(seed: u64, shape: Cell) {
        let mut random = Random::new(seed);
        let grid = Array3::from_shape_fn(shape, |(x, y, z)| {
            (x / 16 + y / 16 + z / 16) % 2 == seed as usize % 2 && random.below(250) == 0
        });
        let mut each = |of: &mut dyn FnMut(&mut Random, usize) -> f64| {
            Array2::from_shape_fn([2000, 3], |(_, axis)| T::from_f64(of(&mut random, axis)).unwrap())
        };
        let origins = each(&mut |random, axis| (1.4 * random.uniform() - 0.2) * shape[axis] as f64);
        let directions = each(&mut |random, _| random.normal());
        let occupancy = Occupancy::from_nonzero(grid.view()).unwrap();
        for levels in [1, 3, 5, full_levels(shape)] {
            let pyramid = Pyramid::build_to(occupancy.clone(), levels).unwrap();
            for t_max in [f64::INFINITY, 30.0] {
                check_rays(&pyramid, &grid, &origins, &directions, Strides::default(), t_max);
            }
        }
    }
    for (seed, shape) in (0..).zip([[150, 40, 70], [65, 90, 40], [9, 130, 140], [200, 5, 90], [100, 110, 14]]) {
        check::<f32>(seed, shape);
        check::<f64>(seed, shape);
    }
}

#[test]
fn rays_that_are_refused() {
    let pyramid = Pyramid::empty([4, 5, 6]).unwrap().with_mapping([0.0; 3], 2.0).unwrap();
    let good = array![[0.5, 0.5, 0.5], [1.0, 2.0, 3.0], [0.0, 0.0, 1.0]];
    let check = |origins: &Array2<f64>, directions: &Array2<f64>, t_max: f64, expected: &Error| {
        assert_eq!(pyramid.raycast(origins.view(), directions.view(), t_max).err().as_ref(), Some(expected));
        assert_eq!(pyramid.traverse(origins.view(), directions.view(), t_max).err().as_ref(), Some(expected));
    };
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let error = |argument, position: &[usize]| Error::NonFinite {
            argument,
            position: position.to_vec(),
            value: format!("{bad}"),
        };
        let mut one = good.clone();
        (one[[1, 2]], one[[2, 0]]) = (bad, f64::NAN);
        check(&one, &good, 1.0, &error("origins", &[1, 2]));
        check(&good, &one, 1.0, &error("directions", &[1, 2]));
        check(&one, &one, 1.0, &error("origins", &[1, 2]));
        assert_eq!(pyramid.cells([0.0, bad, bad], [1.0; 3], 1.0).err(), Some(error("origin", &[1])));
        assert_eq!(pyramid.cells([0.0; 3], [1.0, 0.0, bad], 1.0).err(), Some(error("direction", &[2])));
    }
    let mut still = good.clone();
    still.row_mut(1).assign(&array![0.0, -0.0, 0.0]);
    check(&good, &still, 1.0, &Error::Direction { argument: "directions", ray: 1 });
    still[[2, 1]] = f64::NAN;
    check(&good, &still, 1.0, &Error::Direction { argument: "directions", ray: 1 });
    // Zero in units of cells.
    still.row_mut(0).assign(&array![5e-324, 0.0, -5e-324]);
    check(&good, &still, 1.0, &Error::Direction { argument: "directions", ray: 0 });
    let error = Error::Direction { argument: "direction", ray: 0 };
    assert_eq!(pyramid.cells([0.0f32; 3], [0.0, -0.0, 0.0], 1.0).err(), Some(error));
    for t_max in [-1.0, f64::NAN, f64::NEG_INFINITY, -5e-324] {
        let refused = pyramid.raycast(good.view(), good.view(), t_max);
        assert!(matches!(refused, Err(Error::Distance { argument: "t_max", position: None, .. })), "{t_max}");
        assert!(matches!(pyramid.cells([0.0; 3], [1.0; 3], t_max), Err(Error::Distance { argument: "t_max", .. })));
    }
    let shape = |argument, found: [usize; 2], expected: [usize; 2]| Error::Shape {
        argument,
        found: found.to_vec(),
        expected: expected.to_vec(),
    };
    check(&Array2::ones([3, 2]), &good, 1.0, &shape("origins", [3, 2], [3, 3]));
    check(&good, &Array2::ones([2, 3]), 1.0, &shape("directions", [2, 3], [3, 3]));
}
