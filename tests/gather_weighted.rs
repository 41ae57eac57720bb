//! Weighted sums against plain loops, bit for bit.

mod family;

use family::{POLICIES, Random, assert_bits, levels, row, strided, tunings, with_threads};
use pullback::gather::{OutOfRange, Weighted, WeightedGradients};
use pullback::ndarray::{Array, Array1, Array2, Array3, ArrayView1, array, s};
use pullback::{Error, Real};

/// The sum over lanes and then over their tree, as the documentation of [`Weighted`] says.
fn dot<T: Real>(a: ArrayView1<'_, T>, b: ArrayView1<'_, T>) -> T {
    let lanes = if size_of::<T>() == 4 { 16 } else { 8 };
    let mut sums = vec![T::zero(); lanes];
    for (channel, (&a, &b)) in a.iter().zip(b).enumerate() {
        sums[channel % lanes] = sums[channel % lanes] + a * b;
    }
    while sums.len() > 1 {
        let upper = sums.split_off(sums.len() / 2);
        sums.iter_mut().zip(upper).for_each(|(sum, upper)| *sum = *sum + upper);
    }
    sums[0]
}

/// One batch in groups: the loops of the contract.
struct Naive<T> {
    y: Array2<T>,
    grad_x: Array2<T>,
    grad_w: Array1<T>,
}

fn naive<T: Real>(
    groups: &[Vec<Option<usize>>],
    x: &Array2<T>,
    w: &Array1<T>,
    grad_y: &Array2<T>,
    start: (Array2<T>, Array1<T>),
) -> Naive<T> {
    let channels = x.dim().1;
    let mut y = Array2::zeros((groups.len(), channels));
    let (mut grad_x, mut grad_w) = start;
    let mut edge = 0;
    for (p, group) in groups.iter().enumerate() {
        for &row in group {
            if let Some(row) = row {
                for c in 0..channels {
                    y[[p, c]] = y[[p, c]] + w[edge] * x[[row, c]];
                    grad_x[[row, c]] = grad_x[[row, c]] + w[edge] * grad_y[[p, c]];
                }
                grad_w[edge] = grad_w[edge] + dot(grad_y.row(p), x.row(row));
            }
            edge += 1;
        }
    }
    Naive { y, grad_x, grad_w }
}

fn check_batched<T: Real>(shape: (usize, usize, usize), rows: usize, channels: usize, policy: OutOfRange) {
    let mut random = Random::new((rows * 31 + channels) as u64);
    let (b, p, size) = shape;
    let indices = Array3::from_shape_simple_fn(shape, || random.index(rows, policy));
    let x: Array3<T> = random.array((b, rows, channels));
    let mut w: Array3<T> = random.array(shape);
    let grad_y: Array3<T> = random.array((b, p, channels));
    let start: (Array3<T>, Array3<T>) = (random.array((b, rows, channels)), random.array(shape));
    let mut expected = [(); 4].map(|()| Vec::new());
    for batch in 0..b {
        let groups: Vec<Vec<_>> =
            (0..p).map(|p| (0..size).map(|s| row(indices[[batch, p, s]], rows, policy)).collect()).collect();
        // A weight that is not to be used spoils what uses it.
        for ((p, s), w) in w.slice_mut(s![batch, .., ..]).indexed_iter_mut() {
            if groups[p][s].is_none() {
                *w = T::nan();
            }
        }
        let (x, grad_y) = (x.slice(s![batch, .., ..]).to_owned(), grad_y.slice(s![batch, .., ..]).to_owned());
        let flat = Array1::from_iter(w.slice(s![batch, .., ..]).iter().copied());
        let zeros = (Array2::zeros((rows, channels)), Array1::zeros(p * size));
        let naive_zero = naive(&groups, &x, &flat, &grad_y, zeros);
        let values = (
            start.0.slice(s![batch, .., ..]).to_owned(),
            Array1::from_iter(start.1.slice(s![batch, .., ..]).iter().copied()),
        );
        let naive_add = naive(&groups, &x, &flat, &grad_y, values);
        expected[0].extend(naive_zero.y);
        expected[1].extend(naive_zero.grad_x);
        expected[2].extend(naive_zero.grad_w);
        expected[3].extend(naive_add.grad_x);
        expected[3].extend(naive_add.grad_w);
        assert_eq!(naive_add.y.len(), p * channels);
    }
    let y = Array::from_shape_vec((b, p, channels), std::mem::take(&mut expected[0])).unwrap();
    let grad_x = Array::from_shape_vec((b, rows, channels), std::mem::take(&mut expected[1])).unwrap();
    let grad_w = Array::from_shape_vec(shape, std::mem::take(&mut expected[2])).unwrap();
    for level in levels() {
        for tuning in tunings() {
            let op =
                Weighted::new(indices.view(), rows, policy).unwrap().with_level(level).unwrap().with_tuning(tuning);
            assert_bits("y", &op.forward(x.view(), w.view()).unwrap(), &y);
            let found = op.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
            assert_bits("grad_x", &found.grad_x, &grad_x);
            assert_bits("grad_w", &found.grad_w, &grad_w);
            assert_bits("grad_x alone", &op.adjoint_x(grad_y.view(), w.view()).unwrap(), &grad_x);
            assert_bits("grad_w alone", &op.adjoint_w(grad_y.view(), x.view()).unwrap(), &grad_w);

            let (x, w, grad_y) = (strided(&x), strided(&w), strided(&grad_y));
            let (mut found_y, mut found_x, mut found_w) = (strided(&y), strided(&start.0), strided(&start.1));
            op.forward_into(x.view(), w.view(), found_y.view_mut()).unwrap();
            assert_bits("y into", &found_y, &y);
            op.adjoint_add(grad_y.view(), x.view(), w.view(), found_x.view_mut(), found_w.view_mut()).unwrap();
            let mut added = Vec::new();
            for batch in 0..b {
                added.extend(found_x.slice(s![batch, .., ..]).iter().copied());
                added.extend(found_w.slice(s![batch, .., ..]).iter().copied());
            }
            assert_bits("added", &Array1::from(added), &Array1::from(expected[3].clone()));
            let mut dense_w = start.1.clone();
            op.adjoint_into(grad_y.view(), x.view(), w.view(), found_x.view_mut(), dense_w.view_mut()).unwrap();
            assert_bits("grad_x into", &found_x, &grad_x);
            assert_bits("grad_w into", &dense_w, &grad_w);
        }
    }
}

#[test]
fn equal_to_the_loops() {
    for policy in POLICIES {
        for channels in [0, 1, 3, 8, 15, 16, 17, 33, 64, 130] {
            check_batched::<f32>((2, 5, 3), 7, channels, policy);
            check_batched::<f64>((3, 4, 2), 3, channels, policy);
        }
        check_batched::<f32>((1, 300, 2), 5, 4, policy);
        check_batched::<f64>((2, 0, 3), 5, 4, policy);
        check_batched::<f64>((2, 3, 0), 5, 4, policy);
        check_batched::<f32>((0, 3, 2), 5, 4, policy);
    }
    check_batched::<f32>((2, 3, 2), 0, 4, OutOfRange::Skip { fill: 1.0 });
    with_threads(3, || check_batched::<f32>((5, 9, 3), 7, 20, OutOfRange::Skip { fill: 1.0 }));
}

fn check_ragged<T: Real>(lengths: &[usize], rows: usize, channels: usize, policy: OutOfRange) {
    let mut random = Random::new(channels as u64);
    let edges: usize = lengths.iter().sum();
    let offsets: Vec<i32> = (0..=lengths.len()).map(|p| lengths[..p].iter().sum::<usize>() as i32).collect();
    let indices = Array1::from_shape_simple_fn(edges, || random.index(rows, policy));
    let groups: Vec<Vec<_>> = offsets
        .windows(2)
        .map(|ends| (ends[0]..ends[1]).map(|e| row(indices[e as usize], rows, policy)).collect())
        .collect();
    let (x, w, grad_y): (Array2<T>, Array1<T>, Array2<T>) =
        (random.array((rows, channels)), random.array(edges), random.array((lengths.len(), channels)));
    let expected = naive(&groups, &x, &w, &grad_y, (Array2::zeros(x.dim()), Array1::zeros(edges)));
    for level in levels() {
        for tuning in tunings() {
            let op = Weighted::ragged(indices.view(), Array1::from(offsets.clone()).view(), rows, policy).unwrap();
            let op = op.with_level(level).unwrap().with_tuning(tuning);
            assert_bits("y", &op.forward(x.view(), w.view()).unwrap(), &expected.y);
            let WeightedGradients { grad_x, grad_w } = op.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
            assert_bits("grad_x", &grad_x, &expected.grad_x);
            assert_bits("grad_w", &grad_w, &expected.grad_w);
            let mut halved = Array1::from_elem(2 * edges, T::one());
            let mut found_x = x.clone();
            let every_second = halved.slice_mut(s![..;-2]);
            op.adjoint_into(grad_y.view(), x.view(), w.view(), found_x.view_mut(), every_second).unwrap();
            assert_bits("grad_w into", &halved.slice(s![..;-2]).to_owned(), &expected.grad_w);
            assert!(halved.slice(s![..;2]).iter().all(|&w| w == T::one()));
        }
    }
}

#[test]
fn ragged_groups() {
    for policy in POLICIES {
        check_ragged::<f32>(&[1, 0, 5, 4, 0], 6, 20, policy);
        check_ragged::<f64>(&[0, 0, 3, 40], 4, 9, policy);
        check_ragged::<f64>(&[], 4, 9, policy);
        check_ragged::<f32>(&[300, 1, 300], 2, 1, policy);
    }
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let mut random = Random::new(3);
    let indices = Array2::from_shape_simple_fn((6, 3), || random.below(4));
    let op = Weighted::unbatched(indices.view(), 4, OutOfRange::Error).unwrap();
    let random_array = |random: &mut Random, shape: (usize, usize)| {
        Array2::from_shape_simple_fn(shape, || random.below(1000) as f64 / 500.0 - 1.0)
    };
    let (x, w) = (random_array(&mut random, (4, 5)), random_array(&mut random, (6, 3)));
    let grad_y = random_array(&mut random, (6, 5));
    let loss = |x: &Array2<f64>, w: &Array2<f64>| (op.forward(x.view(), w.view()).unwrap() * &grad_y).sum();
    let gradients = op.adjoint(grad_y.view(), x.view(), w.view()).unwrap();
    let h = 1e-6;
    for (at, &gradient) in gradients.grad_x.indexed_iter() {
        let (mut above, mut below) = (x.clone(), x.clone());
        above[at] += h;
        below[at] -= h;
        assert!(((loss(&above, &w) - loss(&below, &w)) / (2.0 * h) - gradient).abs() < 1e-8);
    }
    for (at, &gradient) in gradients.grad_w.indexed_iter() {
        let (mut above, mut below) = (w.clone(), w.clone());
        above[at] += h;
        below[at] -= h;
        assert!(((loss(&x, &above) - loss(&x, &below)) / (2.0 * h) - gradient).abs() < 1e-8);
    }
    // The transpose, with fewer points than queries.
    let (left, right) = (loss(&x, &w), (&gradients.grad_x * &x).sum());
    assert!((left - right).abs() < 1e-12 * left.abs().max(1.0));
}

#[test]
fn padding_is_never_multiplied() {
    // Neither the weight nor the row nor the gradient of what is dropped counts.
    let op = Weighted::unbatched(array![[0, -1]].view(), 1, OutOfRange::Skip { fill: 0.0 }).unwrap();
    let (x, w) = (array![[2.0]], array![[3.0, f64::NAN]]);
    assert_eq!(op.forward(x.view(), w.view()).unwrap(), array![[6.0]]);
    let found = op.adjoint(array![[f64::NAN]].view(), x.view(), w.view()).unwrap();
    assert!(found.grad_w[[0, 0]].is_nan());
    assert_eq!(found.grad_w[[0, 1]].to_bits(), 0.0f64.to_bits());
    let mut kept = array![[0.0, -0.0]];
    let mut grad_x = array![[0.0]];
    op.adjoint_add(array![[1.0]].view(), x.view(), w.view(), grad_x.view_mut(), kept.view_mut()).unwrap();
    assert_eq!(kept[[0, 1]].to_bits(), (-0.0f64).to_bits());
}

#[test]
fn bad_input_is_refused_before_writing() {
    let bad = Weighted::new(array![[[0, 1], [2, -1]]].view(), 3, OutOfRange::Error);
    let position = vec![0, 1, 1];
    let error = Error::IndexOutOfRange { argument: "indices", position, value: -1, bound: 3 };
    assert_eq!(bad.err(), Some(error));
    let ragged = |offsets: &[i64]| {
        let offsets = Array1::from(offsets.to_vec());
        Weighted::ragged(array![0, 1, 2].view(), offsets.view(), 3, OutOfRange::Error).err()
    };
    let offset =
        |position, value, least, most| Some(Error::Offset { argument: "offsets", position, value, least, most });
    assert_eq!(ragged(&[0, 2, 3]), None);
    assert_eq!(ragged(&[-9, -1024, 0]), offset(0, -9, 0, 0));
    assert_eq!(ragged(&[0, 2, 1, 3]), offset(2, 1, 2, 3));
    assert_eq!(ragged(&[0, 2, 7, -1]), offset(2, 7, 2, 3));
    assert_eq!(ragged(&[0, 2]), offset(1, 2, 3, 3));
    assert_eq!(ragged(&[0]), offset(0, 0, 3, 3));
    assert!(matches!(ragged(&[]), Some(Error::Shape { argument: "offsets", .. })));

    let op = Weighted::unbatched(array![[0, 1]].view(), 3, OutOfRange::Error).unwrap();
    let (x, w) = (Array2::<f32>::ones((3, 2)), Array2::ones((1, 2)));
    let (mut grad_x, mut grad_w) = (Array2::from_elem((3, 2), 5.0), Array2::from_elem((2, 1), 5.0));
    let refused = op.adjoint_into(x.slice(s![..1, ..]), x.view(), w.view(), grad_x.view_mut(), grad_w.view_mut());
    assert!(matches!(refused, Err(Error::Shape { argument: "grad_w", .. })));
    assert!(grad_x.iter().all(|&g| g == 5.0));
    let refused = op.forward(x.view(), w.slice(s![.., ..1])).err();
    let shape = Error::Shape { argument: "w", found: vec![1, 1], expected: vec![1, 2] };
    assert_eq!(refused, Some(shape));
}
