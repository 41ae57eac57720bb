//! Rays of the fuzzer's numbers, and of drawn ones, against the walk through the cells of level 0.
#![no_main]

use arbitrary::Arbitrary;
use common::mipmap::Fill;
use common::mipmap_walk::{Rays, RaysCase, check_rays};
use common::random::Random;
use common::strides::Strides;
use common::threads;
use libfuzzer_sys::fuzz_target;
use ndarray::Array2;
use pullback::mipmap::Pyramid;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod mipmap;
    pub mod mipmap_walk;
    pub mod random;
    pub mod strides;
    pub mod threads;
    pub mod values;
}

/// One byte for each small number of a problem.
#[derive(Arbitrary, Debug)]
struct Input {
    shape: [u8; 3],
    fill: u8,
    /// The very numbers of the input, where it is 0.
    rays: u8,
    count: u8,
    t_max: f64,
    /// All where it is 0.
    levels: u8,
    double: bool,
    mapped: bool,
    voxel: u8,
    threads: u8,
    seed: u64,
    origin: [f64; 3],
    direction: [f64; 3],
}

fn one_of<T: Copy>(choices: &[T], at: u8) -> T {
    choices[usize::from(at) % choices.len()]
}

fuzz_target!(|input: Input| {
    let shape = input.shape.map(|n| 1 + usize::from(n) % 70);
    let fill = one_of(&Fill::ALL, input.fill);
    let t_max = if input.t_max.is_nan() { f64::INFINITY } else { input.t_max.abs() };
    if input.rays > 0 {
        let voxel = one_of(&[1.0, 0.1, 16.0, 0.3, 1e-3], input.voxel);
        let case = RaysCase {
            shape,
            fill,
            rays: one_of(&Rays::ALL, input.rays),
            count: usize::from(input.count % 50),
            t_max,
            levels: (input.levels > 0).then_some(input.levels.into()),
            mapping: input.mapped.then_some(([0.1, -16.0, 7.3], voxel)),
            double: input.double,
            strides: Strides::default(),
            threads: one_of(&threads::COUNTS, input.threads),
            seed: input.seed,
        };
        return case.check();
    }
    // The walk takes every step on the way to the grid.
    let near = input.origin.iter().all(|o| o.abs() < 1e4);
    let moving = input.direction.iter().all(|d| d.is_finite()) && input.direction.iter().any(|d| *d != 0.0);
    if near && moving {
        let grid = fill.grid(shape, &mut Random::new(input.seed));
        let pyramid = Pyramid::from_nonzero(grid.view()).expect("a good grid");
        let [origins, directions] =
            [input.origin, input.direction].map(|row| Array2::from_shape_fn([1, 3], |(_, axis)| row[axis]));
        check_rays(&pyramid, &grid, &origins, &directions, Strides::default(), t_max);
    }
});
