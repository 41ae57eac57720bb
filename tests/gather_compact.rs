//! The gradient of touched rows alone, and counts, against the whole gradient.

mod family;

use family::{POLICIES, Random, assert_bits, levels, row, strided, tunings};
use pullback::Real;
use pullback::gather::{Gather, OutOfRange};
use pullback::ndarray::{Array, Array2, Array3, Axis, s};

fn check<T: Real>(shape: (usize, usize), rows: usize, channels: usize, policy: OutOfRange) {
    let mut random = Random::new(rows as u64);
    let indices = Array2::from_shape_simple_fn(shape, || random.index(rows, policy));
    let grad_y: Array3<T> = random.array((shape.0, shape.1, channels));
    let mut counts = Array2::<u32>::zeros((shape.0, rows));
    for ((batch, _), &index) in indices.indexed_iter() {
        if let Some(row) = row(index, rows, policy) {
            counts[[batch, row]] += 1;
        }
    }
    for level in levels() {
        for tuning in tunings() {
            let op = Gather::new(indices.view(), rows, policy).unwrap().with_level(level).unwrap().with_tuning(tuning);
            assert_eq!(op.counts(), counts);
            let whole = op.adjoint(grad_y.view()).unwrap();
            let compact = op.adjoint_compact(strided(&grad_y).view()).unwrap();
            let mut scattered = Array::zeros(whole.raw_dim());
            assert_eq!(compact.offsets.len(), shape.0 + 1);
            assert_eq!(compact.gradients.dim(), (compact.rows.len(), channels));
            for batch in 0..shape.0 {
                let part = compact.offsets[batch]..compact.offsets[batch + 1];
                let touched = compact.rows.slice(s![part.clone()]);
                let expected = counts.row(batch).iter().filter(|&&n| n > 0).count();
                assert_eq!(touched.len(), expected);
                assert!(touched.windows(2).into_iter().all(|pair| pair[0] < pair[1]));
                for (&row, gradient) in touched.iter().zip(compact.gradients.slice(s![part, ..]).axis_iter(Axis(0))) {
                    scattered.slice_mut(s![batch, row as usize, ..]).assign(&gradient);
                }
            }
            assert_bits("gradients", &scattered, &whole);
        }
    }
}

#[test]
fn equal_to_the_whole_gradient() {
    for policy in POLICIES {
        for channels in [0, 1, 16, 19] {
            check::<f32>((3, 7), 40, channels, policy);
            check::<f64>((4, 9), 3, channels, policy);
        }
        check::<f32>((3, 0), 4, 5, policy);
        check::<f32>((0, 3), 4, 5, policy);
    }
    check::<f64>((2, 3), 0, 5, OutOfRange::Skip { fill: 1.0 });
}
