//! The map of a building, each of whose sides is odd.

use crate::common::mipmap::{assert_pyramid, count_in_box, random_box, rows, shape_of};
use crate::common::mipmap_walk::check_rays;
use crate::common::random::Random;
use crate::common::scratch::Scratch;
use crate::common::strides::Strides;
use crate::common::{files, levels};
use ndarray::{Array2, Array3};
use pullback::mipmap::{Pyramid, PyramidBuilder};

/// Where there is a wall, and where anything is known.
fn grids() -> Option<[Array3<bool>; 2]> {
    let voxels = files::building()?;
    Some([voxels.mapv(|voxel| voxel == 2), voxels.mapv(|voxel| voxel > 0)])
}

#[test]
fn every_input() {
    let Some(voxels) = files::building() else { return };
    let [walls, known] = grids().expect("the file is there");
    let shape = shape_of(&voxels);
    levels::each(|level| {
        let builder = || PyramidBuilder::new(shape).unwrap().with_level(level).unwrap();
        let pyramid = builder().nonzero(walls.mapv(u8::from).view()).unwrap();
        assert_eq!(pyramid.level(0).unwrap().count(), 185_673);
        assert_pyramid(&pyramid, &walls);
        assert_eq!(builder().bits(&rows(&walls)).unwrap(), pyramid);
        assert_eq!(builder().threshold(voxels.mapv(f32::from).view(), 1.5).unwrap(), pyramid);

        let pyramid = builder().nonzero(voxels.view()).unwrap();
        assert_eq!(pyramid.level(0).unwrap().count(), 185_673 + 950_759);
        assert_pyramid(&pyramid, &known);
        assert_eq!(builder().bits(&rows(&known)).unwrap(), pyramid);
    });
}

#[test]
fn saved_and_loaded() {
    let (Some(grids), directory) = (grids(), Scratch::new()) else { return };
    for grid in grids {
        let pyramid = Pyramid::from_nonzero(grid.view()).unwrap().with_mapping([-18.0, 3.5, -1.0], 0.05).unwrap();
        let path = directory.path("building");
        pyramid.save(&path).unwrap();
        let loaded = Pyramid::load(&path).unwrap();
        assert_eq!((&loaded, loaded.mapping()), (&pyramid, pyramid.mapping()));
        assert_pyramid(&loaded, &grid);
    }
}

#[test]
fn boxes() {
    let Some(grids) = grids() else { return };
    let mut random = Random::new(1);
    for grid in grids {
        let pyramid = Pyramid::from_nonzero(grid.view()).unwrap();
        for _ in 0..100 {
            let (lo, hi) = random_box(shape_of(&grid), &mut random);
            let (count, cells) =
                (count_in_box(&grid, lo, hi), (0..3).map(|axis| (hi[axis] - lo[axis]) as u64).product());
            assert_eq!(pyramid.count_in_box(lo, hi), Ok(count));
            assert_eq!(pyramid.any_in_box(lo, hi), Ok(count > 0));
            assert_eq!(pyramid.all_in_box(lo, hi), Ok(count == cells));
        }
    }
}

/// Through the walls and along them, from inside and outside.
#[test]
fn rays() {
    let Some(grids) = grids() else { return };
    let mut random = Random::new(2);
    for grid in grids {
        let pyramid = Pyramid::from_nonzero(grid.view()).unwrap();
        let n = shape_of(&grid).map(|n| n as f64);
        let [from, to] = [0; 2].map(|_| {
            // Half of them in tenths of a cell.
            Array2::from_shape_fn([1000, 3], |(ray, axis)| {
                let at = (random.uniform() * 1.4 - 0.2) * n[axis];
                if ray % 2 == 0 { at } else { (at * 10.0).round() / 10.0 }
            })
        });
        let level = Array2::from_shape_fn(
            [1000, 3],
            |(ray, axis)| if axis == 2 { 0.0 } else { to[[ray, axis]] - from[[ray, axis]] },
        );
        for (directions, t_max) in [(&to - &from, f64::INFINITY), (&to - &from, 0.5), (level, f64::INFINITY)] {
            check_rays(&pyramid, &grid, &from, &directions, Strides::default(), t_max);
            let [from, directions] = [&from, &directions].map(|rows| rows.mapv(|x| x as f32));
            check_rays(&pyramid, &grid, &from, &directions, Strides::default(), t_max);
        }
    }
}
