//! The row gather and its adjoint against plain loops: the same bits at every level, whatever the sizes, the strides, the
//! number of threads and the choices that are made by size.

use crate::common::gather::{REDUCTIONS, by};
use crate::common::gather_case::{Case, Layout};
use crate::common::gather_strategy::{cases, widths};
use crate::common::levels;
use crate::common::problems::check_random;
use crate::common::strides::Strides;
use crate::common::threads;
use crate::common::values::Values;
use pullback::gather::{OutOfRange, Tuning};

#[test]
fn random_problems() {
    levels::each(|level| check_random(1500, &cases(), |case| case.check(level)));
}

#[test]
fn every_width() {
    levels::each(|level| {
        for (channels, double) in widths().flat_map(|width| [(width, false), (width, true)]) {
            for (stream, reduction) in [false, true].into_iter().zip(REDUCTIONS) {
                let tuning = Tuning { stream: Some(stream), ..by(reduction) };
                Case { channels, double, tuning, hub: true, values: Values::Adversarial, ..Case::default() }
                    .check(level);
            }
        }
    });
}

#[test]
fn every_number_of_rows_and_indices() {
    levels::each(|level| {
        for (rows, points) in (1..=20).flat_map(|rows| [0, 1, 2, 3, 17, 50].map(|points| (rows, points))) {
            for reduction in REDUCTIONS {
                Case { rows, shape: vec![2, points, 1], tuning: by(reduction), ..Case::default() }.check(level);
            }
        }
    });
}

#[test]
fn every_tuning() {
    let switches = [false, true].map(Some);
    let tiles = [None, Some(1), Some(2), Some(7)];
    let hubs = [None, Some(0), Some(1), Some(4)];
    levels::each(|level| {
        for (stream, prefetch) in switches.into_iter().flat_map(|s| switches.map(|p| (s, p))) {
            for (parallel, reduction) in switches.into_iter().flat_map(|p| REDUCTIONS.map(|r| (p, Some(r)))) {
                for (tile, hub) in tiles.into_iter().flat_map(|tile| hubs.map(|hub| (tile, hub))) {
                    let tuning = Tuning { stream, prefetch, parallel, reduction, tile, hub };
                    let case = Case { tuning, rows: 7, channels: 36, hub: true, ..Case::default() };
                    case.check(level);
                    Case { double: true, policy: OutOfRange::Skip { fill: 0.5 }, outside: 4, ..case }.check(level);
                }
            }
        }
    });
}

#[test]
fn every_pattern_of_strides() {
    let one_axis = |axis: u8| {
        let bit = 1u8 << axis;
        [(bit, 0, 0), (0, bit, 0), (0, 0, bit)]
    };
    let of_axes = (0..4).flat_map(one_axis).chain([(15, 0, 0), (0, 15, 0), (0, 0, 7), (5, 10, 2), (15, 15, 8)]);
    let patterns: Vec<_> = of_axes
        .map(|(reversed, halved, broadcast)| Strides { reversed, halved, broadcast, order: 0 })
        .chain((0..24).map(|order| Strides { order, ..Strides::default() }))
        .collect();
    levels::each(|level| {
        for &input in &patterns {
            let output = Strides { broadcast: 0, ..input };
            let standard = Layout::default();
            for layout in [
                Layout { indices: input, ..standard },
                Layout { x: input, ..standard },
                Layout { y: output, ..standard },
                Layout { grad_y: input, ..standard },
                Layout { grad_x: output, ..standard },
                Layout { indices: input, x: input, y: output, grad_y: input, grad_x: output },
            ] {
                for reduction in REDUCTIONS {
                    let tuning = Tuning { parallel: Some(true), tile: Some(2), ..by(reduction) };
                    Case { layout, tuning, channels: 18, ..Case::default() }.check(level);
                }
            }
        }
    });
}

#[test]
fn every_number_of_threads() {
    levels::each(|level| {
        for (threads, reduction) in threads::COUNTS.into_iter().flat_map(|n| REDUCTIONS.map(|r| (n, r))) {
            let tuning = Tuning { parallel: Some(true), tile: Some(5), hub: Some(20), ..by(reduction) };
            let shape = vec![3, 40, 5];
            Case { shape, rows: 60, channels: 33, hub: true, threads, tuning, ..Case::default() }.check(level);
        }
    });
}
