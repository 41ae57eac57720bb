//! Pooling against plain loops, bit for bit.

mod family;

use family::{POLICIES, Random, assert_bits, levels, row, strided, tunings, with_threads};
use pullback::gather::{Extremum, Gather, Linear, OutOfRange, Pooled, Ties};
use pullback::ndarray::{Array, Array1, Array2, Array3, Axis, array, s};
use pullback::{Error, Real};

/// Which element of a group is extreme: the first NaN, else the first that no other beats.
fn extreme<T: Real>(which: Extremum, values: &[(u32, T)]) -> Option<(u32, T)> {
    if let Some(&nan) = values.iter().find(|(_, value)| value.is_nan()) {
        return Some(nan);
    }
    let beats = |a: T, b: T| if which == Extremum::Max { a > b } else { a < b };
    values.iter().copied().find(|&(_, value)| values.iter().all(|&(_, other)| !beats(other, value)))
}

fn equal<T: Real>(a: T, b: T) -> bool {
    a == b
}

/// Everything about groups of rows of one batch.
struct Naive<T> {
    linear: [Array2<T>; 2],
    linear_adjoints: [Array2<T>; 2],
    /// Maximum, minimum.
    values: [Array2<T>; 2],
    arguments: [Array2<u32>; 2],
    /// First, even of each.
    adjoints: [[Array2<T>; 2]; 2],
}

fn naive<T: Real>(
    groups: &[Vec<Option<usize>>],
    x: &Array2<T>,
    grad_y: &Array2<T>,
    empty: T,
    start: &Array2<T>,
) -> Naive<T> {
    let shape = (groups.len(), x.dim().1);
    let zeros = || [Array2::zeros(shape), Array2::zeros(shape)];
    let mut found = Naive {
        linear: zeros(),
        linear_adjoints: [start.clone(), start.clone()],
        values: zeros(),
        arguments: [Array2::zeros(shape), Array2::zeros(shape)],
        adjoints: [(); 2].map(|()| [start.clone(), start.clone()]),
    };
    for ((p, c), &gy) in grad_y.indexed_iter() {
        let present: Vec<(u32, usize)> = (0..).zip(&groups[p]).filter_map(|(s, row)| row.map(|row| (s, row))).collect();
        let n = T::from_usize(present.len()).unwrap();
        let mut sum = T::zero();
        for &(_, row) in &present {
            sum = sum + x[[row, c]];
            let adjoints = &mut found.linear_adjoints;
            adjoints[0][[row, c]] = adjoints[0][[row, c]] + gy;
            adjoints[1][[row, c]] = adjoints[1][[row, c]] + gy / n;
        }
        found.linear[0][[p, c]] = sum;
        found.linear[1][[p, c]] = if present.is_empty() { sum } else { sum / n };
        let elements: Vec<(u32, T)> = present.iter().map(|&(s, row)| (s, x[[row, c]])).collect();
        for (w, which) in [Extremum::Max, Extremum::Min].into_iter().enumerate() {
            let chosen = extreme(which, &elements);
            let (argument, value) = chosen.unwrap_or((u32::MAX, empty));
            found.values[w][[p, c]] = value;
            found.arguments[w][[p, c]] = argument;
            let takes = |s: u32, element: T| s == argument || equal(element, value);
            let ties = elements.iter().filter(|&&(s, element)| takes(s, element)).count();
            let share = gy / T::from_usize(ties).unwrap();
            for &(s, row) in &present {
                let [first, even] = &mut found.adjoints[w];
                if s == argument {
                    first[[row, c]] = first[[row, c]] + gy;
                }
                if takes(s, x[[row, c]]) {
                    even[[row, c]] = even[[row, c]] + share;
                }
            }
        }
    }
    found
}

fn stack<T: Clone>(
    batches: &[Naive<T>],
    of: impl Fn(&Naive<T>) -> Array2<T>,
    shape: (usize, usize, usize),
) -> Array3<T> {
    let cells: Vec<T> = batches.iter().flat_map(|naive| of(naive).into_iter()).collect();
    Array::from_shape_vec(shape, cells).unwrap()
}

fn check<T: Real>(shape: (usize, usize, usize), rows: usize, channels: usize, policy: OutOfRange) {
    let mut random = Random::new((rows * 31 + channels) as u64);
    let (b, p, size) = shape;
    let indices = Array3::from_shape_simple_fn(shape, || random.index(rows, policy));
    let x: Array3<T> = Array::from_shape_simple_fn((b, rows, channels), || random.tied());
    let smooth: Array3<T> = random.array((b, rows, channels));
    let grad_y: Array3<T> = random.array((b, p, channels));
    let start: Array3<T> = random.array((b, rows, channels));
    let empty = T::from_f64(-2.5).unwrap();
    let groups: Vec<Vec<Vec<_>>> = (0..b)
        .map(|b| (0..p).map(|p| (0..size).map(|s| row(indices[[b, p, s]], rows, policy)).collect()).collect())
        .collect();
    let all = |x: &Array3<T>, start: &Array3<T>| -> Vec<Naive<T>> {
        (0..b)
            .map(|b| {
                let part = |array: &Array3<T>| array.index_axis(Axis(0), b).to_owned();
                naive(&groups[b], &part(x), &part(&grad_y), empty, &part(start))
            })
            .collect()
    };
    let (of_ties, of_smooth) = (all(&x, &Array::zeros(start.dim())), all(&smooth, &Array::zeros(start.dim())));
    let added = all(&x, &start);
    let (results, features) = ((b, p, channels), (b, rows, channels));
    for level in levels() {
        for tuning in tunings() {
            let op = Pooled::new(indices.view(), rows, policy).unwrap().with_level(level).unwrap();
            let op = op.with_tuning(tuning).with_empty(-2.5);
            for (l, linear) in [Linear::Sum, Linear::Mean].into_iter().enumerate() {
                let expected = stack(&of_smooth, |naive| naive.linear[l].clone(), results);
                assert_bits("y", &op.forward(linear, smooth.view()).unwrap(), &expected);
                let mut y = strided(&expected);
                op.forward_into(linear, strided(&smooth).view(), y.view_mut()).unwrap();
                assert_bits("y into", &y, &expected);
                let expected = stack(&of_smooth, |naive| naive.linear_adjoints[l].clone(), features);
                assert_bits("grad_x", &op.adjoint(linear, grad_y.view()).unwrap(), &expected);
                let mut grad_x = strided(&start);
                op.adjoint_into(linear, strided(&grad_y).view(), grad_x.view_mut()).unwrap();
                assert_bits("grad_x into", &grad_x, &expected);
                let mut grad_x = start.clone();
                op.adjoint_add(linear, strided(&grad_y).view(), grad_x.view_mut()).unwrap();
                let expected = stack(&added, |naive| naive.linear_adjoints[l].clone(), features);
                assert_bits("grad_x added", &grad_x, &expected);
            }
            for (w, which) in [Extremum::Max, Extremum::Min].into_iter().enumerate() {
                let values = stack(&of_ties, |naive| naive.values[w].clone(), results);
                let arguments: Vec<u32> = of_ties.iter().flat_map(|naive| naive.arguments[w].iter().copied()).collect();
                let arguments = Array::from_shape_vec(results, arguments).unwrap();
                let found = op.extremes(which, x.view()).unwrap();
                assert_bits("values", &found.values, &values);
                assert_eq!(found.arguments, arguments);
                let (mut into, mut into_arguments) = (strided(&values), Array3::<u32>::zeros((b, p, 2 * channels)));
                let every_second = into_arguments.slice_mut(s![.., .., ..;2]);
                op.extremes_into(which, strided(&x).view(), into.view_mut(), every_second).unwrap();
                assert_bits("values into", &into, &values);
                assert_eq!(into_arguments.slice(s![.., .., ..;2]), arguments);
                for even in [false, true] {
                    let ties = || match even {
                        false => Ties::First(found.arguments.view()),
                        true => Ties::Even(which, x.view()),
                    };
                    let expected = stack(&of_ties, |naive| naive.adjoints[w][usize::from(even)].clone(), features);
                    assert_bits("pulled", &op.extremes_adjoint(grad_y.view(), ties()).unwrap(), &expected);
                    let mut grad_x = strided(&start);
                    op.extremes_adjoint_into(strided(&grad_y).view(), ties(), grad_x.view_mut()).unwrap();
                    assert_bits("pulled into", &grad_x, &expected);
                    let mut grad_x = start.clone();
                    op.extremes_adjoint_add(grad_y.view(), ties(), grad_x.view_mut()).unwrap();
                    let expected = stack(&added, |naive| naive.adjoints[w][usize::from(even)].clone(), features);
                    assert_bits("pulled and added", &grad_x, &expected);
                }
            }
        }
    }
}

#[test]
fn equal_to_the_loops() {
    for policy in POLICIES {
        for channels in [0, 1, 3, 8, 15, 16, 17, 33, 64, 130] {
            check::<f32>((2, 5, 4), 7, channels, policy);
            check::<f64>((3, 4, 3), 3, channels, policy);
        }
        check::<f32>((1, 200, 3), 5, 4, policy);
        check::<f64>((2, 0, 3), 5, 4, policy);
        check::<f64>((2, 3, 0), 5, 4, policy);
        check::<f32>((0, 3, 2), 5, 4, policy);
    }
    check::<f32>((2, 3, 2), 0, 4, OutOfRange::Skip { fill: 1.0 });
    with_threads(3, || check::<f32>((5, 9, 3), 7, 20, OutOfRange::Skip { fill: 1.0 }));
}

#[test]
fn ragged_groups_are_equal_to_even_ones() {
    let mut random = Random::new(1);
    let skip = OutOfRange::Skip { fill: 0.0 };
    let even = Array2::from_shape_simple_fn((40, 3), || random.index(6, skip));
    // Without its padding, the same groups are ragged; the order is kept.
    let kept: Vec<Vec<i64>> =
        even.outer_iter().map(|g| g.iter().copied().filter(|i| (0..6).contains(i)).collect()).collect();
    let offsets = Array1::from_iter((0..=kept.len()).map(|p| kept[..p].iter().map(Vec::len).sum::<usize>()));
    let flat = Array1::from(kept.concat());
    let (x, grad_y): (Array2<f32>, Array2<f32>) = (random.array((6, 20)), random.array((40, 20)));
    let even = Pooled::unbatched(even.view(), 6, skip).unwrap();
    for tuning in tunings() {
        let ragged = Pooled::ragged(flat.view(), offsets.view(), 6, OutOfRange::Error).unwrap().with_tuning(tuning);
        for linear in [Linear::Sum, Linear::Mean] {
            assert_eq!(ragged.forward(linear, x.view()), even.forward(linear, x.view()));
            assert_eq!(ragged.adjoint(linear, grad_y.view()), even.adjoint(linear, grad_y.view()));
        }
        let (a, b) =
            (ragged.extremes(Extremum::Max, x.view()).unwrap(), even.extremes(Extremum::Max, x.view()).unwrap());
        assert_eq!(a.values, b.values);
        let pulled = ragged.extremes_adjoint(grad_y.view(), Ties::First(a.arguments.view()));
        assert_eq!(pulled, even.extremes_adjoint(grad_y.view(), Ties::First(b.arguments.view())));
        let pulled = ragged.extremes_adjoint(grad_y.view(), Ties::Even(Extremum::Max, x.view()));
        assert_eq!(pulled, even.extremes_adjoint(grad_y.view(), Ties::Even(Extremum::Max, x.view())));
    }
}

#[test]
fn a_pooled_sum_is_a_sum_of_gathered_rows() {
    let mut random = Random::new(2);
    let indices = Array3::from_shape_simple_fn((2, 9, 4), || random.below(11));
    let x: Array3<f64> = random.array((2, 11, 13));
    let y: Array3<f64> = random.array((2, 9, 13));
    let pool = Pooled::new(indices.view(), 11, OutOfRange::Error).unwrap();
    let rows = Gather::new(indices.view(), 11, OutOfRange::Error).unwrap().forward(x.view()).unwrap();
    let sums = pool.forward(Linear::Sum, x.view()).unwrap();
    assert!((&sums - &rows.sum_axis(Axis(2))).iter().all(|difference| difference.abs() < 1e-8));
    for linear in [Linear::Sum, Linear::Mean] {
        let left = (pool.forward(linear, x.view()).unwrap() * &y).sum();
        let right = (pool.adjoint(linear, y.view()).unwrap() * &x).sum();
        assert!((left - right).abs() < 1e-9 * left.abs().max(1e6));
    }
}

#[test]
fn bad_arguments_are_refused_before_writing() {
    let pool = Pooled::unbatched(array![[0, 1], [1, -1]].view(), 2, OutOfRange::Skip { fill: 0.0 }).unwrap();
    let grad_y = array![[1.0], [1.0]];
    let pull = |arguments: Array2<u32>| pool.extremes_adjoint(grad_y.view(), Ties::First(arguments.view()));
    let refused = Error::IndexOutOfRange { argument: "arguments", position: vec![1, 0], value: 2, bound: 2 };
    assert_eq!(pull(array![[1], [2]]), Err(refused));
    // A place that is padding took no part.
    assert_eq!(pull(array![[u32::MAX], [1]]), Ok(array![[0.0], [0.0]]));
    assert_eq!(pull(array![[1], [0]]), Ok(array![[0.0], [2.0]]));
    let mut grad_x = array![[5.0], [5.0]];
    let arguments = array![[1], [2]];
    assert!(pool.extremes_adjoint_into(grad_y.view(), Ties::First(arguments.view()), grad_x.view_mut()).is_err());
    assert_eq!(grad_x, array![[5.0], [5.0]]);
    let shape = pool.forward(Linear::Sum, array![[1.0]].view());
    assert!(matches!(shape, Err(Error::Shape { argument: "x", .. })));
}

#[test]
fn an_extreme_element_keeps_its_bits() {
    let nans = [0x7fc0_1234, 0xffa0_4321, 0x7f80_0001u32].map(f32::from_bits);
    let x = array![[1.0, -0.0], [nans[1], 0.0], [nans[0], 0.0], [nans[2], -0.0]];
    let indices = array![[0, 1, 2], [2, 3, 0], [3, 1, 0]];
    for level in levels() {
        let pool = Pooled::unbatched(indices.view(), 4, OutOfRange::Error).unwrap().with_level(level).unwrap();
        for which in [Extremum::Max, Extremum::Min] {
            let found = pool.extremes(which, x.view()).unwrap();
            let bits = found.values.mapv(f32::to_bits);
            assert_eq!(bits, array![[nans[1], -0.0], [nans[0], 0.0], [nans[2], -0.0]].mapv(f32::to_bits));
            assert_eq!(found.arguments, array![[1, 0], [0, 0], [0, 0]]);
        }
    }
}
