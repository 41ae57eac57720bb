//! The tour's checks pass on what is right and fail on what is wrong.

use crate::check::{self, Check, nearest};
use crate::features::features;
use crate::random::Random;
use crate::scan::scan;
use crate::smooth::{Smooth, loss};
use pullback::mipmap::Hits;
use pullback::ndarray::{Array1, Array2, Array3, ArrayView2, arr1, array, s};
use std::collections::HashSet;

/// Neighbours by brute force, as the tree returns them.
fn brute(points: &Array2<f64>, count: usize) -> (Array2<f64>, Array2<u32>) {
    let (coordinates, _) = points.as_slice().unwrap().as_chunks::<3>();
    let all: Vec<_> = (0..coordinates.len()).map(|row| nearest(coordinates, row, count)).collect();
    let shape = (coordinates.len(), count);
    (Array2::from_shape_fn(shape, |(i, j)| all[i][j].0), Array2::from_shape_fn(shape, |(i, j)| all[i][j].1))
}

#[test]
fn brute_force_breaks_ties_by_index_and_pads() {
    // The duplicate is a neighbour, the point itself is not.
    let points = [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [-1.0, 2.0, 0.0], [1.0, 2.0, 0.0]];
    let root = 2f64.sqrt();
    assert_eq!(nearest(&points, 0, 2), [(0.0, 1), (root, 2)]);
    assert_eq!(nearest(&points, 2, 4), [(root, 0), (root, 1), (2.0, 3), (f64::INFINITY, 4)]);
    assert_eq!(nearest(&points[..1], 0, 1), [(f64::INFINITY, 1)]);
}

#[test]
fn checks_pass_on_right_results_and_fail_on_wrong_ones() {
    // The last two clouds are smaller than the number of neighbours.
    for count in [300, 16, 1] {
        let points = scan(count, 1);
        let (distances, indices) = brute(&points, 16);
        let passed = |check: Check| check.passed;
        assert!(passed(check::neighbours(&points, 16, distances.view(), indices.view())));

        let x = features(points.view());
        let smooth = Smooth::new(indices.view()).unwrap();
        let gathered = smooth.gather.forward(x.view()).unwrap();
        assert!(passed(check::gathered(x.view(), indices.view(), gathered.view())));
        let mut random = Random::new(2);
        let y = x.mapv(|_| random.signed());
        let (means, adjoint) = (smooth.forward(x.view()).unwrap(), smooth.adjoint(y.view()).unwrap());
        assert!(passed(check::identity(&means, &y, &x, &adjoint)));
        let difference = &x - &means;
        let gradient = &difference - &smooth.adjoint(difference.view()).unwrap();
        let mut by_difference = |gradient: &Array2<f64>| {
            let loss = |x: ArrayView2<'_, f64>| smooth.forward(x).map(|means| loss(x, means.view()));
            check::gradient(&x, gradient, &mut random, loss).unwrap()
        };
        assert!(passed(by_difference(&gradient)));

        let mut wrong = distances.clone();
        wrong[[0, 0]] = f64::from_bits(wrong[[0, 0]].to_bits() ^ 1);
        assert!(!passed(check::neighbours(&points, 16, wrong.view(), indices.view())));
        let narrow = distances.slice(s![.., ..15]);
        assert!(!passed(check::neighbours(&points, 16, narrow, indices.view())));
        let mut wrong = indices.clone();
        wrong[[0, 15]] ^= 1;
        assert!(!passed(check::neighbours(&points, 16, distances.view(), wrong.view())));
        let mut wrong = gathered.clone();
        wrong[[0, 3, 7]] += 1e-9;
        assert!(!passed(check::gathered(x.view(), indices.view(), wrong.view())));
        let mut wrong = adjoint.clone();
        // The intensity, which is not 0 anywhere.
        wrong[[0, 6]] += 1e-6;
        assert!(!passed(check::identity(&means, &y, &x, &wrong)));
        wrong[[0, 6]] = f64::NAN;
        assert!(!passed(check::identity(&means, &y, &x, &wrong)));
        let mut wrong = gradient.clone();
        wrong[[0, 0]] += 1e-6;
        assert!(!passed(by_difference(&wrong)));
    }
}

#[test]
fn interpolated_heights_by_brute_force() {
    let points = array![[0.0, 0.0, 1.0], [0.0, 0.0, 3.0], [0.6, 0.8, 5.0], [-9.0, 0.0, 7.0]];
    // The mean of two points that coincide, and weights of 1/4, 1/4 and 4.
    let places = array![[0.0, 0.0], [0.3, 0.4]];
    let weighed = (4.0 * 1.0 + 4.0 * 3.0 + 4.0 * 5.0) / 12.0;
    let field = array![[2.0], [weighed]];
    assert!(check::interpolated(&points, &places, 3, &field).passed);
    assert!(!check::interpolated(&points, &places, 4, &field).passed);
    for wrong in [1e-9, f64::NAN] {
        assert!(!check::interpolated(&points, &places, 3, &array![[2.0], [weighed + wrong]]).passed);
    }
    let alone = check::interpolated(&points.slice_move(s![3.., ..]), &places, 8, &array![[7.0], [7.0]]);
    assert!(alone.passed, "{}", alone.detail);
}

#[test]
fn levels_and_rays_by_cells() {
    let occupied = HashSet::from([[0, 0, 0], [3, 3, 3], [3, 2, 3]]);
    assert!(check::levels(&occupied, &[3, 2, 1], 0).passed);
    assert!(!check::levels(&occupied, &[3, 2, 1], 1).passed);
    assert!(!check::levels(&occupied, &[3, 1, 1], 0).passed);

    let (origins, directions) = (
        array![[0.5, 0.5, -2.0], [9.0, 3.5, 3.5], [9.0, 3.5, 3.5]],
        array![[0.0, 0.0, 2.0], [-1.0, 0.0, 0.0], [1.0, 0.0, 0.0]],
    );
    let cells = array![[0, 0, 0], [3, 3, 3], [-1, -1, -1]];
    let passes = |cells: &Array2<i64>, t: [f64; 3]| {
        check::rays(&occupied, &origins, &directions, &Hits { cells: cells.clone(), t: arr1(&t) }).passed
    };
    assert!(passes(&cells, [1.0, 5.0, f64::INFINITY]));
    assert!(!passes(&cells, [1.0, 5.1, f64::INFINITY]));
    assert!(!passes(&cells, [f64::INFINITY, 5.0, f64::INFINITY]));
    assert!(!passes(&cells, [1.0, 5.0, 1.0]));
    assert!(!passes(&array![[0, 0, 0], [3, 2, 3], [-1, -1, -1]], [1.0, 5.0, f64::INFINITY]));
}

#[test]
fn kernels_and_slopes() {
    // A kernel as wide as it is high has nine weights of three kinds.
    let weights = [1.0, (-0.5f64).exp(), (-1.0f64).exp()];
    let all = weights[0] + 4.0 * (weights[1] + weights[2]);
    let kernel =
        Array3::from_shape_fn((1, 3, 3), |(_, row, column)| weights[row.abs_diff(1) + column.abs_diff(1)] / all);
    let shapes = array![[1.0, 1.0, 0.7]];
    assert!(check::kernels(shapes.view(), &kernel.clone().into_dyn()).passed);
    assert!(!check::kernels(array![[1.0, 1.001, 0.7]].view(), &kernel.clone().into_dyn()).passed);
    assert!(!check::kernels(shapes.view(), &(kernel * f64::NAN).into_dyn()).passed);

    let x = array![0.3, -1.0, 2.0];
    let loss = |x: &Array1<f64>| Ok::<_, ()>(x.mapv(f64::sin).sum());
    let slope = |gradient: &Array1<f64>| check::slope(&x, gradient, &mut Random::new(3), loss).unwrap();
    assert!(slope(&x.mapv(f64::cos)).passed);
    let wrong = slope(&(x.mapv(f64::cos) * 1.000_01));
    assert!(!wrong.passed, "{}", wrong.detail);
}
