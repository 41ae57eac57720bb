//! Every operator once, tiny, at every level: what emulators and memory checkers, which are hundreds of times slower, run.

mod common;

use common::cells::assert_cells;
use common::gather::{adjoint, adjoint_add, forward, operator, random_ids};
use common::levels;
use common::neighbors::assert_exact;
use common::values::{Value, Values};
use ndarray::{ArrayViewMut, array};
use pullback::Level;
use pullback::gather::{Extremum, Linear, OutOfRange, Pooled, Reduction, Segments, Ties, Tuning, Weighted};
use pullback::kdtree::Builder;

fn rows<T: Value>(level: Level, channels: usize, tuning: Tuning) {
    let (rows, policy) = (3, OutOfRange::Skip { fill: 0.5 });
    let indices = random_ids([2, 3, 2], rows + 1);
    let mut x = Values::Adversarial.array::<T, _>([2, rows, channels], 1);
    let y = Values::Adversarial.array::<T, _>([2, 3, 2, channels], 2);
    let gather = operator(level, &indices, rows, policy).with_tuning(tuning);

    let expected = forward(&x, &indices, policy);
    assert_cells("y", &gather.forward(x.view()).unwrap(), &expected);
    // Where 16 bytes are aligned and where they are not.
    for offset in [4, 1] {
        let mut memory = vec![T::zero(); offset + y.len()];
        let mut output = ArrayViewMut::from_shape(y.raw_dim(), &mut memory[offset..]).unwrap();
        gather.forward_into(x.view(), output.view_mut()).unwrap();
        assert_cells("y", &output, &expected);
    }
    assert_cells("grad_x", &gather.adjoint(y.view()).unwrap(), &adjoint(&y, &indices, policy, rows));
    let expected = adjoint_add(&y, &indices, policy, &x);
    gather.adjoint_add(y.view(), x.view_mut()).unwrap();
    assert_cells("grad_x", &x, &expected);
}

#[test]
fn gather_rows() {
    levels::each(|level| {
        for (reduction, on) in [(Reduction::Slab, false), (Reduction::Inverse, true)] {
            let tuning = Tuning {
                stream: Some(on),
                prefetch: Some(on),
                parallel: Some(on),
                reduction: Some(reduction),
                tile: Some(2),
                hub: Some(3),
            };
            for channels in [3, 16, 36] {
                rows::<f32>(level, channels, tuning);
                rows::<f64>(level, channels, tuning);
            }
        }
    });
}

#[test]
fn kdtree_knn() {
    fn check<T: Value, const D: usize>(level: Level) {
        let points = Values::Spread.array::<T, _>([40, D], 3);
        let queries = Values::Spread.array([17, D], 4);
        for k in [5, 20] {
            assert_exact::<T, D>(level, Builder::default(), &points, &queries, k);
        }
    }
    levels::each(|level| {
        check::<f32, 3>(level);
        check::<f64, 2>(level);
        check::<f32, 7>(level);
    });
}

/// The bits of all that the reductions return.
fn reductions<T: Value>(level: Level, channels: usize, tuning: Tuning) -> Vec<u64> {
    let (rows, policy) = (3, OutOfRange::Skip { fill: 0.0 });
    let indices = random_ids([2, 3, 2], rows + 1);
    let x = Values::Spread.array::<T, _>([2, rows, channels], 1);
    let w = Values::Spread.array::<T, _>([2, 3, 2], 2);
    let y = Values::Spread.array::<T, _>([2, 3, channels], 3);
    let mut found = Vec::new();

    let weighted = Weighted::new(indices.view(), rows, policy).and_then(|op| op.with_level(level)).unwrap();
    let weighted = weighted.with_tuning(tuning);
    let gradients = weighted.adjoint(y.view(), x.view(), w.view()).unwrap();
    found.extend([weighted.forward(x.view(), w.view()).unwrap(), gradients.grad_x, gradients.grad_w]);
    found.push(weighted.adjoint_w(y.view(), x.view()).unwrap());

    let pooled = Pooled::new(indices.view(), rows, policy).and_then(|op| op.with_level(level)).unwrap();
    let pooled = pooled.with_tuning(tuning);
    let max = pooled.extremes(Extremum::Max, x.view()).unwrap();
    for ties in [Ties::First(max.arguments.view()), Ties::Even(Extremum::Max, x.view())] {
        found.push(pooled.extremes_adjoint(y.view(), ties).unwrap());
    }
    found.extend([max.values, pooled.forward(Linear::Mean, x.view()).unwrap()]);
    found.push(pooled.adjoint(Linear::Mean, y.view()).unwrap());

    let segments = Segments::new(array![1, 0, 1, -1].view(), 3, policy).and_then(|op| op.with_level(level)).unwrap();
    let segments = segments.with_tuning(tuning);
    let x = Values::Integers.array::<T, _>([4, channels], 4);
    let y = Values::Spread.array::<T, _>([3, channels], 5);
    let soft = segments.softmax(x.view()).unwrap();
    let of_segments = [
        segments.forward(Linear::Mean, x.view()),
        segments.adjoint(Linear::Mean, y.view()),
        segments.product(x.view()),
        segments.product_adjoint(y.view(), x.view()),
        segments.extremes_adjoint(y.view(), Ties::Even(Extremum::Min, x.view())),
        segments.softmax_adjoint(x.view(), soft.view()),
        segments.log_sum_exp(x.view()),
    ];
    let of_segments = of_segments.into_iter().flat_map(|array| array.unwrap().into_iter());
    found.into_iter().flatten().chain(of_segments).map(T::to_bits).collect()
}

#[test]
fn gather_reductions() {
    levels::each(|level| {
        for (reduction, on) in [(Reduction::Slab, false), (Reduction::Inverse, true)] {
            let (stream, prefetch, parallel, tile) = (Some(on), Some(on), Some(on), Some(2));
            let tuning = Tuning { stream, prefetch, parallel, reduction: Some(reduction), tile, hub: Some(3) };
            for channels in [3, 16, 36] {
                let base = Level::Base;
                assert_eq!(reductions::<f32>(level, channels, tuning), reductions::<f32>(base, channels, tuning));
                assert_eq!(reductions::<f64>(level, channels, tuning), reductions::<f64>(base, channels, tuning));
            }
        }
    });
}
