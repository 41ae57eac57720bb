//! What was once a panic, an abort or a wait without end, each by name.

use ndarray::{Array0, Array3, Array4, Array5, IxDyn, arr0};
use pullback::gather::{Gather, OutOfRange};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps};
use pullback::mipmap::Pyramid;
use pullback::triconv::{Product, Scan, Weights, binomial_row};
use pullback::{Error, Result};

/// More elements than any memory holds.
const MANY: usize = 1 << 52;

fn one() -> Array0<f32> {
    arr0(1.0)
}

#[track_caller]
fn not_allocated<R>(result: Result<R>) {
    assert!(matches!(result.err(), Some(Error::Allocation { .. })));
}

#[track_caller]
fn too_large<R>(result: Result<R>, named: &str) {
    assert!(matches!(result.err(), Some(Error::TooLarge { argument, .. }) if argument == named));
}

/// No array can be empty and have axes whose product is no number.
#[test]
fn an_empty_result_with_axes_beyond_the_address_space() {
    let index = arr0(0usize);
    let none = index.broadcast([0, 1 << 20, 1 << 10]).unwrap();
    let gather = Gather::new(none, 3, OutOfRange::Error).unwrap();
    let x = one();
    too_large(gather.forward(x.broadcast([0, 3, 1 << 40]).unwrap()), "elements of the output");
}

#[test]
fn rows_to_count_that_no_index_names() {
    let index = arr0(0usize);
    let gather = Gather::new(index.broadcast([MANY, 0]).unwrap(), 5, OutOfRange::Error).unwrap();
    not_allocated(gather.counts());
    not_allocated(gather.adjoint_compact(one().broadcast([MANY, 0, 1]).unwrap()));
}

#[test]
fn a_row_of_binomials_beyond_memory() {
    not_allocated(binomial_row(u64::MAX));
    not_allocated(binomial_row(u64::MAX >> 8));
    assert_eq!(binomial_row(0), Ok(vec![1.0]));
}

#[test]
fn sequences_of_more_terms_than_can_be_counted() {
    too_large(Scan::<f32>::new(usize::MAX, Weights::Plain), "n");
    too_large(Product::<f32>::new(usize::MAX, Weights::Plain), "terms");
    too_large(Product::<f32>::middle(usize::MAX - 1..usize::MAX, Weights::Binomial), "terms");
}

/// Beyond 32 steps binomial scans of `f32` are copied into `f64`.
#[test]
fn a_batch_beyond_memory_to_be_widened() {
    let (x, n) = (one(), 40);
    let scan = Scan::<f32>::new(n, Weights::Binomial).unwrap();
    let (a0, b) = (x.broadcast(IxDyn(&[MANY, 1, 1])).unwrap(), x.broadcast(IxDyn(&[n, 1, 1])).unwrap());
    not_allocated(scan.forward(a0, b.view()));
    let s = x.broadcast(IxDyn(&[MANY, n + 1, 1, 1])).unwrap();
    not_allocated(scan.forward_with(s.view(), b.view()));
    not_allocated(scan.adjoint(s.view(), s.view(), b.view()));
}

/// No sequence, of any length: their factorials alone would not fit.
#[test]
fn an_empty_batch_of_long_sequences() {
    let (x, n) = (one(), MANY);
    let scan = Scan::<f32>::new(n, Weights::Binomial).unwrap();
    let (a0, b) = (x.broadcast(IxDyn(&[0, 1, 1])).unwrap(), x.broadcast(IxDyn(&[0, n, 1, 1])).unwrap());
    not_allocated(scan.forward(a0, b));
}

#[test]
fn a_grid_of_samples_beyond_memory() {
    not_allocated(KernelMaps::<f32>::new(1 << 27, Centre::Middle));
    not_allocated(Blur::<f64>::new(1 << 26, Centre::Middle, Border::Edge, 1));
    not_allocated(KernelMaps::with_grid(one().broadcast([1, MANY, 2]).unwrap()));
}

/// A pixel is left, whatever the stride beyond the image.
#[test]
fn a_stride_beyond_the_image() {
    let image = Array4::from_shape_fn((1, 3, 4, 1), |(_, y, x, _)| (y * y + x) as f32);
    let shapes = Array5::from_elem((1, 1, 1, 2, 2), 0.5f32);
    for k in [1, 2, 5] {
        let blurred = |stride| {
            let blur = Blur::<f32>::new(k, Centre::Middle, Border::Reflect, stride).unwrap();
            let y = blur.forward(image.view(), shapes.view()).unwrap();
            (blur.adjoint(y.view(), image.view(), shapes.view()).unwrap(), y)
        };
        let expected = blurred(4);
        assert_eq!(expected.1.shape(), [1, 1, 1, 1]);
        for stride in [5, 1 << 40, usize::MAX / 2 + 1, usize::MAX] {
            assert_eq!(blurred(stride), expected, "{k} samples, stride {stride}");
        }
    }
}

/// An image that is one pixel all over may be larger than any memory, and its padding with it.
#[test]
fn an_image_beyond_memory() {
    let (x, size, stride) = (one(), 1 << 50, 1 << 49);
    let blur = Blur::<f32>::new(3, Centre::Middle, Border::Reflect, stride).unwrap();
    let shapes = Array5::zeros((1, 2, 1, 2, 2));
    not_allocated(blur.forward(x.broadcast([1, size, 1, 1]).unwrap(), shapes.view()));
    // Of columns, those alone are copied that a kernel looks at.
    let shapes = Array5::zeros((1, 1, 2, 2, 2));
    let y = blur.forward(x.broadcast([1, 1, size, 1]).unwrap(), shapes.view()).unwrap();
    assert_eq!(y.shape(), [1, 1, 2, 1]);
    assert!(y.iter().all(|y| (y - 1.0).abs() < 1e-6));
}

#[test]
fn rays_beyond_memory() {
    let pyramid = Pyramid::from_nonzero(Array3::from_elem((2, 2, 2), 1u8).view()).unwrap();
    let rays = one();
    let rays = rays.broadcast([MANY, 3]).unwrap();
    not_allocated(pyramid.traverse(rays, rays, 1.0));
    not_allocated(pyramid.raycast(rays, rays, 1.0));
}
