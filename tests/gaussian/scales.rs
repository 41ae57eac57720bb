//! Windows of many samples, grids whose positions are nowhere near to 1, and kernels that are next to nothing.

use crate::common::levels;
use crate::common::maps_case::{Data, MapsCase};
use ndarray::{Array3, array};
use pullback::gaussian::{Centre, KernelMaps, Parameters};

#[test]
fn windows_of_many_samples() {
    levels::each(|level| {
        for (double, window) in [(false, [127, 127]), (true, [127, 127]), (false, [200, 31]), (true, [1, 1000])] {
            for data in [Data::Mixed, Data::Wide] {
                MapsCase { double, window, data, leading: vec![3], ..MapsCase::default() }.check(level);
            }
        }
    });
}

/// Positions and factors that are scaled against each other by a power of two, or by any number, describe the same kernels.
#[test]
fn grids_far_from_one() {
    let factor = array![[0.5f32, 0.1], [0.0, 0.7]];
    let near = KernelMaps::<f32>::new(5, Centre::Middle).unwrap();
    let kernel = near.forward(factor.view()).unwrap();
    let gradient = near.adjoint(kernel.view(), factor.view()).unwrap();
    for scale in [1e30f32, 1e-30, 1e12, 2f32.powi(100)] {
        let z = Array3::from_shape_fn((5, 5, 2), |(y, x, axis)| scale * [x as f32 - 2.0, y as f32 - 2.0][axis]);
        let (maps, scaled) = (KernelMaps::with_grid(z.view()).unwrap(), factor.mapv(|m| m / scale));
        let found = maps.forward(scaled.view()).unwrap();
        assert!(found.iter().zip(&kernel).all(|(p, right)| (p - right).abs() <= 1e-5 * right), "{scale}: {found}");
        let found = maps.adjoint(kernel.view(), scaled.view()).unwrap();
        let near = |(g, right): (&f32, &f32)| (g / scale - right).abs() <= 1e-5 * right.abs();
        assert!(found.iter().zip(&gradient).all(near), "{scale}: {found}");
    }
}

/// A round kernel between four samples is a quarter on each, though its numbers are rounded and it is turned by any angle: within
/// the bound as long as that says anything, and then exactly.
#[test]
fn turned_ties() {
    levels::each(|level| {
        for angle in [0.0f64, 0.3, 1.0, 2.5, -0.7] {
            for sigma in [1e-3, 1e-6, 1e-9, 1e-12, 1e-30] {
                let maps = KernelMaps::<f64>::new(4, Centre::Middle).unwrap().with_level(level).unwrap();
                let maps = maps.with_parameters(Parameters::Sigmas);
                let found = maps.forward(array![sigma, sigma, angle].view()).unwrap();
                // Q is at most 1 / sigma^2 at these samples.
                let bound = if sigma < 1e-8 { 0.0 } else { f64::EPSILON * (16.0 + 4.0 / sigma.powi(2)) };
                for (at, &p) in found.indexed_iter() {
                    let share = if (1..3).contains(&at[0]) && (1..3).contains(&at[1]) { 0.25 } else { 0.0 };
                    assert!((p - share).abs() <= bound * share, "{level}, sigma {sigma}, angle {angle}: {found}");
                }
            }
        }
    });
}
