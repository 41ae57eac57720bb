//! Refusals: what they name, how they read, and that nothing was written.

use crate::common::refusals::{refused, shape_error, wrong};
use crate::common::strides::{Strided, Strides};
use crate::common::threads;
use ndarray::{Array3, Array4, ArrayD, Ix3, IxDyn, arr0};
use pullback::Error;
use pullback::gather::{Gather, OutOfRange, index_points, index_points_adjoint};

/// (B, P, S, C)
const GATHERED: [usize; 4] = [2, 3, 4, 6];
/// (B, N, C)
const FEATURES: [usize; 3] = [2, 5, 6];

fn gather() -> Gather<Ix3> {
    Gather::new(Array3::<i32>::ones((2, 3, 4)).view(), 5, OutOfRange::Error).unwrap()
}

#[test]
fn forward_refuses_wrong_shapes_and_writes_nothing() {
    let gather = gather();
    // The channels of x are free: they decide those of y.
    for found in wrong(FEATURES, 2) {
        let x = Array3::<f32>::ones(found);
        let error = shape_error("x", found, FEATURES);
        refused(error.clone(), GATHERED, |y| gather.forward_into(x.view(), y));
        assert_eq!(gather.forward(x.view()).err(), Some(error));
    }
    let x = Array3::<f32>::ones(FEATURES);
    for found in wrong(GATHERED, 4) {
        refused(shape_error("y", found, GATHERED), found, |y| gather.forward_into(x.view(), y));
    }
}

#[test]
fn adjoint_refuses_wrong_shapes_and_writes_nothing() {
    let gather = gather();
    for found in wrong(GATHERED, 3) {
        let grad_y = Array4::<f32>::ones(found);
        let error = shape_error("grad_y", found, GATHERED);
        refused(error.clone(), FEATURES, |grad_x| gather.adjoint_into(grad_y.view(), grad_x));
        refused(error.clone(), FEATURES, |grad_x| gather.adjoint_add(grad_y.view(), grad_x));
        assert_eq!(gather.adjoint(grad_y.view()).err(), Some(error));
    }
    let grad_y = Array4::<f32>::ones(GATHERED);
    for found in wrong(FEATURES, 3) {
        let error = shape_error("grad_x", found, FEATURES);
        refused(error.clone(), found, |grad_x| gather.adjoint_into(grad_y.view(), grad_x));
        refused(error, found, |grad_x| gather.adjoint_add(grad_y.view(), grad_x));
    }
}

#[test]
fn functions_refuse_what_operators_refuse() {
    let indices = Array3::<i32>::ones([2, 3, 4]);
    let error = index_points(Array3::<f64>::ones([3, 5, 6]).view(), indices.view()).err();
    assert_eq!(error, Some(shape_error("x", [3, 5, 6], FEATURES)));
    let error = index_points_adjoint(Array4::<f64>::ones([2, 4, 4, 6]).view(), indices.view(), 5).err();
    assert_eq!(error, Some(shape_error("grad_y", [2, 4, 4, 6], GATHERED)));
    let error = index_points(Array3::<f64>::ones([2, 1, 6]).view(), indices.view()).err();
    assert_eq!(error.unwrap().to_string(), "indices[0, 0, 0] = 1 is outside 0..1");
}

#[test]
fn arrays_of_another_rank_are_refused() {
    let gather = Gather::new(ArrayD::<u32>::zeros(IxDyn(&[2, 3])).view(), 5, OutOfRange::Error).unwrap();
    let x = Array3::<f32>::ones(FEATURES);
    for shape in [&[][..], &[6], &[2, 6], &[2, 3], &[2, 3, 1, 6], &[1, 2, 3, 6]] {
        let error = Error::Shape { argument: "y", found: shape.to_vec(), expected: vec![2, 3, 6] };
        refused(error, IxDyn(shape), |y| gather.forward_into(x.view(), y));
        let channels = shape.last().copied().unwrap_or(0);
        let error = Error::Shape { argument: "grad_y", found: shape.to_vec(), expected: vec![2, 3, channels] };
        assert_eq!(gather.adjoint(ArrayD::<f32>::ones(shape).view()).err(), Some(error));
    }
}

#[test]
fn indices_need_a_batch_axis() {
    let expected = Some(Error::Rank { argument: "indices", found: 0, least: 1 });
    assert_eq!(Gather::new(arr0(0i32).view(), 5, OutOfRange::Error).err(), expected);
    assert_eq!(Gather::new(arr0(0i32).into_dyn().view(), 5, OutOfRange::Error).err(), expected);
}

/// The lowest of several bad indices is named, in the order of the array and not of its memory, by any number of threads.
#[test]
fn the_lowest_bad_position_is_named() {
    // Where two threads have half of the indices each, the higher of two finds its bad index long before the lower.
    let places = [[0, 0, 0], [0, 990, 0], [1, 0, 0], [1, 0, 1], [1, 999, 998]];
    let pairs = (1..places.len()).flat_map(|high| places[..high].iter().map(move |&low| (low, places[high])));
    for (low, high) in pairs {
        for (order, reversed) in [(0, 0), (5, 0), (1, 0b110), (0, 0b111)] {
            let mut indices =
                Strided::new(Ix3(2, 1000, 1000), Strides { order, reversed, ..Strides::default() }, || 0i32);
            let mut view = indices.view_mut();
            (view[high], view[low], view[[1, 999, 999]]) = (9, -5, i32::MIN);
            let position = low.to_vec();
            let expected = Some(Error::IndexOutOfRange { argument: "indices", position, value: -5, bound: 1 });
            for count in threads::COUNTS {
                let (view, policy) = (indices.view(), OutOfRange::Error);
                let batched = threads::with(count, || Gather::new(view, 1, policy).err());
                let unbatched = threads::with(count, || Gather::unbatched(view, 1, policy).err());
                assert_eq!((&batched, &unbatched), (&expected, &expected), "{count} threads, order {order}");
            }
        }
    }
}

#[test]
fn messages_name_the_argument_and_the_numbers() {
    let mut indices = Array3::zeros([3, 18, 4]);
    indices[[2, 17, 3]] = 5000;
    let gather = |rows| Gather::new(indices.view(), rows, OutOfRange::Error);
    assert_eq!(gather(4096).err().unwrap().to_string(), "indices[2, 17, 3] = 5000 is outside 0..4096");
    let x = Array3::<f32>::zeros([3, 5002, 1]);
    let error = gather(5001).unwrap().forward(x.view()).err();
    assert_eq!(error.unwrap().to_string(), "x has shape [3, 5002, 1], expected [3, 5001, 1]");
    let error = Gather::new(arr0(0).view(), 1, OutOfRange::Error).err();
    assert_eq!(error.unwrap().to_string(), "indices has 0 axes, expected at least 1");
    let error = Gather::unbatched(arr0(-1).view(), 1, OutOfRange::Error).err();
    assert_eq!(error.unwrap().to_string(), "indices[] = -1 is outside 0..1");
    let least = arr0(i64::MIN);
    let error = Gather::unbatched(least.view(), 0, OutOfRange::Clamp).err();
    assert_eq!(error.unwrap().to_string(), "indices[] = -9223372036854775808 is outside 0..0");
}
