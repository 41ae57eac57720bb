//! The steps of a real drive as sequences of 4 x 4 matrices.

use crate::common::random::Random;
use crate::common::strides::Strided;
use crate::common::triconv_bounds::number;
use crate::common::triconv_product_case::{ProductCase, ProductScene};
use crate::common::triconv_scan_case::{KINDS, Kind, SIDES, ScanCase, Scene};
use crate::common::wide::Referred;
use crate::common::{files, levels};
use ndarray::{Array, Array2, Array3, ArrayView2, Axis, Dimension, s};
use pullback::triconv::{Method, Scan, Weights};

/// Rotations and translations, as matrices that multiply column vectors.
fn matrices() -> Option<Array3<f64>> {
    let poses = files::poses()?;
    let cell = |(at, row, column): (usize, usize, usize)| match row {
        3 => f64::from(u8::from(column == 3)),
        _ => poses[[at, 4 * row + column]],
    };
    Some(Array3::from_shape_fn([poses.nrows(), 4, 4], cell))
}

fn given<T: Referred, D: Dimension>(array: &Array<f64, D>) -> Strided<T, ndarray::IxDyn> {
    Strided::standard(array.mapv(|x| number::<T>(x)).into_dyn().view())
}

/// Taylor coefficients of what such matrices move, and plain sums, forward and back.
#[test]
fn scans_of_a_drive() {
    fn check<T: Referred>(case: &ScanCase, poses: &Array3<f64>, level: pullback::Level) {
        let [rows, columns] = case.rows_and_columns();
        // Points of a few metres around the car, in homogeneous coordinates.
        let a0 = Array2::from_shape_fn(
            [rows, columns],
            |(r, c)| if (r + c) % 5 == 3 { 1.0 } else { (3 * r + c) as f64 - 4.0 },
        );
        let grad =
            Array3::from_shape_fn([case.n + 1, rows, columns], |(k, r, c)| ((k * 7 + r * 5 + c * 3) % 11) as f64 - 5.0);
        let b = poses.slice(s![..case.n, .., ..]).to_owned();
        case.check_scene(
            level,
            Scene { s: given::<T, _>(&a0), b: given(&b), grad_a: given(&grad), random: Random::new(1) },
        );
    }
    let Some(poses) = matrices() else { return };
    levels::each(|level| {
        for (at, (kind, side)) in KINDS.into_iter().flat_map(|kind| SIDES.map(|side| (kind, side))).enumerate() {
            let weights = [Weights::Taylor, Weights::Plain][at / 2 % 2];
            let case = ScanCase { n: 60, p: 5, m: 4, leading: vec![], kind, side, weights, ..ScanCase::default() };
            for method in [Method::Direct, Method::Relaxed { tolerance: 1e-7 }] {
                let case = ScanCase { method, ..case.clone() };
                match kind {
                    Kind::F64 => check::<f64>(&case, &poses, level),
                    _ => check::<f32>(&case, &poses, level),
                }
            }
        }
    });
}

/// The drive convolved with itself, and correlated with itself.
#[test]
fn products_of_a_drive() {
    let Some(poses) = matrices() else { return };
    levels::each(|level| {
        for correlation in [false, true] {
            let case = ProductCase {
                correlation,
                lengths: [60, 60],
                range: 0..90,
                p: 4,
                m: 4,
                q: 4,
                ..ProductCase::default()
            };
            let case = ProductCase { leading: vec![], weights: Weights::Plain, ..case };
            let every = |first: usize| poses.slice(s![first..;17, .., ..]).slice(s![..60, .., ..]).to_owned();
            let grad = poses.slice(s![500..590, .., ..]).to_owned();
            let scene = ProductScene {
                first: given::<f64, _>(&every(0)),
                second: given(&every(5)),
                grad_output: given(&grad),
                random: Random::new(2),
            };
            case.check_scene(level, scene);
        }
    });
}

/// One step of the drive taken again and again turns and moves as often: rotations stay rotations.
#[test]
fn one_step_again_and_again() {
    let Some(poses) = matrices() else { return };
    let mut b = Array3::zeros([100, 4, 4]);
    b.index_axis_mut(Axis(0), 0).assign(&poses.index_axis(Axis(0), 100));
    levels::each(|level| {
        let scan = Scan::<f64>::new(100, Weights::Binomial).unwrap().with_level(level).unwrap();
        let a = scan.forward(Array2::eye(4).view(), b.view()).unwrap();
        for k in 0..=100 {
            let power: ArrayView2<f64> = a.slice(s![k, .., ..]);
            let turn: ArrayView2<f64> = power.slice(s![..3, ..3]);
            let off = (turn.dot(&turn.t()) - Array2::<f64>::eye(3)).mapv(f64::abs).into_iter().fold(0.0, f64::max);
            // Each step is orthogonal to 1.6e-15 and its sums of three are rounded.
            assert!(off <= 1e-14 * (k + 1) as f64, "A_{k} is off a rotation by {off}");
            assert_eq!(power.row(3).to_vec(), [0.0, 0.0, 0.0, 1.0]);
        }
        let [half, whole]: [ArrayView2<f64>; 2] = [a.slice(s![50, .., ..]), a.slice(s![100, .., ..])];
        let off = (&half.dot(&half) - &whole).mapv(f64::abs).into_iter().fold(0.0, f64::max);
        assert!(off <= 1e-12 * whole.iter().fold(0.0, |most: f64, x| most.max(x.abs())), "{off}");
    });
}
