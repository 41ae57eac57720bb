//! Windows of many samples, and grids whose positions are nowhere near to 1.

use crate::common::levels;
use crate::common::maps_case::{Data, MapsCase};
use ndarray::{Array3, array};
use pullback::gaussian::{Centre, KernelMaps};

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
