//! Problems for the reductions of gathered rows along one quantity at a time.

use super::gather::{REDUCTIONS, by};
use super::gather_strategy::widths;
use super::levels;
use super::problems::check_random;
use super::reduction_case::{Family, Form, Layout, Problem};
use super::reduction_strategy::problems;
use super::strides::Strides;
use super::threads;
use super::values::Values;
use pullback::gather::{OutOfRange, Tuning};

const SKIP: OutOfRange = OutOfRange::Skip { fill: 7.0 };

pub fn random<F: Family>(n: u32) {
    levels::each(|level| check_random(n, &problems(), |problem| problem.check::<F>(level)));
}

pub fn every_width<F: Family>() {
    levels::each(|level| {
        for (channels, double) in widths().flat_map(|width| [(width, false), (width, true)]) {
            for (stream, reduction) in [false, true].into_iter().zip(REDUCTIONS) {
                let tuning = Tuning { stream: Some(stream), ..by(reduction) };
                let values = if stream { Values::Adversarial } else { Values::Tied };
                let problem = Problem { channels, double, tuning, values, hub: true, ..Problem::default() };
                Problem { policy: SKIP, outside: 3, ..problem }.check::<F>(level);
            }
        }
    });
}

/// None, one and several batches, groups, indices a group and rows.
pub fn every_size<F: Family>() {
    let sizes = [0, 1, 2, 5];
    levels::each(|level| {
        for (b, p) in [0, 1, 3].into_iter().flat_map(|b| sizes.map(|p| (b, p))) {
            for (s, rows) in sizes.into_iter().flat_map(|s| sizes.map(|rows| (s, rows))) {
                for (channels, reduction) in [0, 1, 17].into_iter().flat_map(|c| REDUCTIONS.map(|r| (c, r))) {
                    let tuning = by(reduction);
                    let problem = Problem { rows, channels, tuning, policy: SKIP, outside: 4, ..Problem::default() };
                    Problem { form: Form::Batched([b, p, s]), ..problem }.check::<F>(level);
                }
            }
        }
        for lengths in [vec![], vec![0], vec![1], vec![0, 0, 1], vec![1, 0, 5, 4, 0], vec![70, 1, 0, 129], vec![300]] {
            for (channels, reduction) in [0, 1, 18].into_iter().flat_map(|c| REDUCTIONS.map(|r| (c, r))) {
                let form = Form::Ragged(lengths.clone());
                let problem = Problem { form, channels, tuning: by(reduction), ..Problem::default() };
                Problem { rows: 1, ..problem.clone() }.check::<F>(level);
                Problem { double: true, rows: 40, policy: OutOfRange::Clamp, outside: 3, ..problem }.check::<F>(level);
            }
        }
        for form in [Form::Unbatched([300, 1]), Form::Unbatched([1, 300]), Form::Batched([2, 90, 3])] {
            for reduction in REDUCTIONS {
                let problem = Problem { form: form.clone(), channels: 5, tuning: by(reduction), ..Problem::default() };
                problem.check::<F>(level);
            }
        }
    });
}

pub fn every_tuning<F: Family>() {
    let switches = [false, true].map(Some);
    levels::each(|level| {
        for (stream, prefetch) in switches.into_iter().flat_map(|s| switches.map(|p| (s, p))) {
            for (parallel, reduction) in switches.into_iter().flat_map(|p| REDUCTIONS.map(|r| (p, Some(r)))) {
                for (tile, hub) in
                    [None, Some(1), Some(2), Some(7)].into_iter().flat_map(|t| [None, Some(0), Some(4)].map(|h| (t, h)))
                {
                    let tuning = Tuning { stream, prefetch, parallel, reduction, tile, hub };
                    let problem = Problem { tuning, rows: 7, channels: 36, hub: true, ..Problem::default() };
                    problem.check::<F>(level);
                    let form = Form::Ragged(vec![3, 0, 9, 1]);
                    Problem { form, channels: 32, double: true, policy: SKIP, outside: 4, ..problem }.check::<F>(level);
                }
            }
        }
    });
}

pub fn every_pattern_of_strides<F: Family>() {
    let one_axis = |axis: u8| {
        let bit = 1u8 << axis;
        [(bit, 0, 0), (0, bit, 0), (0, 0, bit)]
    };
    let of_axes = (0..3).flat_map(one_axis).chain([(7, 0, 0), (0, 7, 0), (0, 0, 7), (5, 2, 2), (7, 7, 4)]);
    let patterns: Vec<_> = of_axes
        .map(|(reversed, halved, broadcast)| Strides { reversed, halved, broadcast, order: 0 })
        .chain((0..6).map(|order| Strides { order, ..Strides::default() }))
        .collect();
    levels::each(|level| {
        for &input in &patterns {
            let output = Strides { broadcast: 0, ..input };
            let standard = Layout::default();
            for layout in [
                Layout { indices: input, ..standard },
                Layout { x: input, ..standard },
                Layout { w: input, ..standard },
                Layout { grad_y: input, ..standard },
                Layout { first: output, ..standard },
                Layout { second: output, ..standard },
                Layout { indices: input, x: input, w: input, grad_y: input, first: output, second: output },
            ] {
                for reduction in REDUCTIONS {
                    let tuning = Tuning { parallel: Some(true), tile: Some(2), ..by(reduction) };
                    let problem = Problem { layout, tuning, channels: 18, ..Problem::default() };
                    problem.check::<F>(level);
                    Problem { form: Form::Unbatched([7, 3]), double: true, ..problem.clone() }.check::<F>(level);
                    Problem { form: Form::Ragged(vec![2, 0, 5, 1]), ..problem }.check::<F>(level);
                }
            }
        }
    });
}

pub fn every_number_of_threads<F: Family>() {
    levels::each(|level| {
        for (threads, reduction) in threads::COUNTS.into_iter().flat_map(|n| REDUCTIONS.map(|r| (n, r))) {
            let tuning = Tuning { parallel: Some(true), tile: Some(5), hub: Some(20), ..by(reduction) };
            let problem = Problem { rows: 60, channels: 33, hub: true, threads, tuning, ..Problem::default() };
            Problem { form: Form::Batched([3, 20, 5]), ..problem.clone() }.check::<F>(level);
            let lengths = (0..40).map(|group| group * 7 % 11).collect();
            Problem { form: Form::Ragged(lengths), double: true, ..problem }.check::<F>(level);
        }
    });
}
