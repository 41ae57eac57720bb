//! Random problems for triangular convolutions, small ones around every boundary.

use super::maps_strategy::strides;
use super::threads;
use super::triconv_product_case::{ProductCase, ProductLayout};
use super::triconv_scan_case::{Data, KINDS, Kind, SIDES, ScanCase, ScanLayout, WEIGHTS};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use pullback::triconv::{Lanes, Method, Tuning, Weights};

/// Around the lengths of vectors and of blocks of rows and columns.
pub const SIZES: [usize; 13] = [1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 20];
const LARGE: [usize; 4] = [23, 24, 32, 33];

pub const LANES: [Option<Lanes>; 4] = [None, Some(Lanes::Columns), Some(Lanes::Time), Some(Lanes::Batch)];

/// How many products of numbers the references of a problem may add up.
const COST: usize = 60_000;

fn size() -> impl Strategy<Value = usize> {
    prop_oneof![4 => 1usize..5, 8 => select(SIZES.to_vec()), 1 => select(LARGE.to_vec())]
}

fn steps() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0usize..12, 6 => 0usize..41, 1 => 41usize..150]
}

fn leading() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        2 => Just(vec![]),
        3 => prop::collection::vec(0usize..11, 1),
        1 => prop::collection::vec(0usize..5, 2),
    ]
}

pub fn tunings() -> impl Strategy<Value = Tuning> {
    let switch = || option::of(any::<bool>());
    let few = |most: usize| option::of(1..most);
    // What is chosen by size comes first where a problem is made smaller.
    (switch(), few(10), select(LANES.to_vec()), few(9), switch(), few(20))
        .prop_map(|(parallel, rows, lanes, chunk, scaled, leaf)| Tuning { parallel, rows, lanes, chunk, scaled, leaf })
}

fn kinds() -> impl Strategy<Value = Kind> {
    select(KINDS.to_vec())
}

/// Halves what can be halved until the references are fast, the number of matrices last.
fn affordable(cost: impl Fn(usize, usize) -> usize, leading: &mut [usize], n: &mut usize, least: usize) {
    while cost(*n, leading.iter().product()) > COST {
        if let Some(axis) = leading.iter_mut().find(|axis| **axis > 1) {
            *axis /= 2;
        } else if *n > least {
            *n -= (*n / 8).max(1);
        } else {
            break;
        }
    }
}

pub fn scans() -> impl Strategy<Value = ScanCase> {
    let sizes = (steps(), size(), size(), leading(), any::<bool>(), option::of(0usize..4));
    let what = (select(WEIGHTS.to_vec()), select(SIDES.to_vec()), any::<bool>(), kinds(), select(Data::ALL.to_vec()));
    let layouts = (strides(true), strides(true), strides(false), strides(true), strides(false), strides(false))
        .prop_map(|(s, b, a, grad_a, grad_s, grad_b)| ScanLayout { s, b, a, grad_a, grad_s, grad_b });
    let run = (tunings(), select(threads::COUNTS.to_vec()), any::<u64>());
    (sizes, what, layouts, run).prop_map(
        |(
            (mut n, p, m, mut leading, shared, cotangents),
            (weights, side, sources, kind, data),
            layout,
            (tuning, threads, seed),
        )| {
            let gradients = 1 + 2 * cotangents.unwrap_or(1);
            affordable(|n, batch| n * (n + 1) / 2 * p * m * m * gradients * batch, &mut leading, &mut n, 3);
            let method = Method::Direct;
            let data = in_range(data, weights, kind, n);
            ScanCase {
                n,
                p,
                m,
                leading,
                shared,
                cotangents,
                weights,
                side,
                method,
                sources,
                kind,
                data,
                layout,
                tuning,
                threads,
                seed,
            }
        },
    )
}

/// Mostly without overflow.
fn in_range(data: Data, weights: Weights, kind: Kind, n: usize) -> Data {
    let small = kind != Kind::F64;
    match data {
        Data::Decaying | Data::Special => data,
        _ if weights == Weights::Binomial && n > if small { 30 } else { 100 } => Data::Decaying,
        Data::Growing | Data::Mixed if small && n > 30 => Data::Flat,
        _ => data,
    }
}

/// Scans of long sequences of small matrices, by the divided method.
pub fn relaxed_scans() -> impl Strategy<Value = ScanCase> {
    let what =
        (select(vec![Weights::Taylor, Weights::Plain]), select(vec![1e-6f64, 1e-9, 1e-12]), option::of(1usize..40));
    let all = (scans(), 0usize..300, 1usize..6, 1usize..6, prop::collection::vec(0usize..3, 0..2), what);
    all.prop_map(|(case, mut n, p, m, mut leading, (weights, tolerance, leaf))| {
        let cotangents = case.cotangents.filter(|&r| r < 3);
        let gradients = 1 + 2 * cotangents.unwrap_or(1);
        affordable(|n, batch| n * (n + 1) / 2 * p * m * m * gradients * batch / 3, &mut leading, &mut n, 3);
        let (kind, tolerance) = match case.kind {
            Kind::F32 => (Kind::F32, tolerance.max(1e-6)),
            kind => (kind, tolerance),
        };
        let data = match case.data {
            Data::Growing | Data::Mixed if kind != Kind::F64 => Data::Flat,
            data => data,
        };
        let tuning = Tuning { leaf, ..case.tuning };
        let method = Method::Relaxed { tolerance };
        ScanCase { n, p, m, leading, cotangents, weights, kind, data, tuning, method, ..case }
    })
}

/// Products, or correlations.
pub fn products(correlation: bool) -> impl Strategy<Value = ProductCase> {
    let lengths = (steps(), steps(), 0usize..20, any::<bool>());
    let sizes = (size(), size(), size(), leading(), any::<bool>(), option::of(0usize..4));
    let what = (select(WEIGHTS.to_vec()), kinds(), select(Data::ALL.to_vec()));
    let layouts = (strides(true), strides(true), strides(false), strides(true), strides(false), strides(false))
        .prop_map(|(first, second, output, grad_output, grad_first, grad_second)| ProductLayout {
            first,
            second,
            output,
            grad_output,
            grad_first,
            grad_second,
        });
    let run = (tunings(), select(threads::COUNTS.to_vec()), any::<u64>());
    (lengths, sizes, what, layouts, run).prop_map(
        move |(
            (la, lb, more, middle),
            (p, m, q, mut leading, shared, cotangents),
            (weights, kind, data),
            layout,
            (tuning, threads, seed),
        )| {
            let gradients = 1 + 2 * cotangents.unwrap_or(1);
            let mut most = la.max(lb);
            affordable(|n, batch| n * n * p * m * q * gradients * batch / 2, &mut leading, &mut most, 4);
            let lengths = [la.min(most), lb.min(most)];
            let end = if correlation { lengths[1].min(lengths[0] + more) } else { (lengths[0] + more).min(2 * most) };
            let start = if middle && !correlation { end / 3 } else { 0 };
            let data = in_range(data, weights, kind, end.max(lengths[1]));
            ProductCase {
                correlation,
                range: start..end,
                lengths,
                p,
                m,
                q,
                leading,
                shared,
                cotangents,
                weights,
                kind,
                data,
                layout,
                tuning,
                threads,
                seed,
            }
        },
    )
}
