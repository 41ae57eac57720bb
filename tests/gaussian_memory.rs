//! How much memory kernel maps, blurs and their adjoints take: nothing that grows with pixels times samples but what is returned.

mod common;

use common::counting::{Counting, peak_of};
use ndarray::{Array3, Array4, ArrayD};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Layout, Parameters, Scatter};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What does not grow with the pixels: alignment of outputs, kernels and lists of a thread.
const FIXED: usize = 512 << 10;

/// Pixels of a side, and of a window.
const SIDE: usize = 128;
const K: usize = 25;
/// Bytes of an f32 for every pixel and sample.
const ALL: usize = SIDE * SIDE * K * K * 4;

fn shapes() -> Array4<f32> {
    Array4::from_shape_fn([SIDE, SIDE, 2, 2], |(y, x, r, c)| if r == c { 0.2 + (x * y % 7) as f32 / 9.0 } else { 0.1 })
}

// One test, so that nothing else allocates meanwhile.
#[test]
fn nothing_grows_with_pixels_times_samples() {
    // Threads of the pool, and what they keep, belong to no call.
    rayon::join(|| (), || ());
    let shapes = shapes();
    let of_shapes = size_of_val(shapes.as_slice().expect("standard layout"));
    assert!(ALL > 10 * (FIXED + 4 * of_shapes), "what is forbidden stands out");

    for centre in [Centre::Middle, Centre::Corner] {
        let maps = KernelMaps::<f32>::new(K, centre).expect("a good window");
        let (y, forward) = peak_of(|| maps.forward(shapes.view()).expect("good kernels"));
        assert!(forward <= ALL + FIXED, "maps took {forward} bytes for {ALL}");
        let mut output = y.clone();
        let (_, into) = peak_of(|| maps.forward_into(shapes.view(), output.view_mut()).expect("good kernels"));
        assert!(into <= FIXED, "maps took {into} bytes beside the caller's");

        let (found, adjoint) = peak_of(|| maps.adjoint(y.view(), shapes.view()).expect("good kernels"));
        assert!(adjoint <= of_shapes + FIXED, "the adjoint of maps took {adjoint} bytes for {of_shapes}");
        assert_eq!(found.shape(), shapes.shape());
        let offsets = Array3::from_elem([SIDE, SIDE, 2], 0.25);
        let (_, at) = peak_of(|| maps.adjoint_at(y.view(), shapes.view(), offsets.view()).expect("good kernels"));
        assert!(at <= of_shapes * 3 / 2 + FIXED, "the adjoint of moved maps took {at} bytes for {of_shapes}");
    }

    // Sigmas of which factors are made.
    let sigmas = Array3::from_elem([SIDE, SIDE, 3], 1.5f32);
    let maps = KernelMaps::<f32>::new(K, Centre::Middle).expect("a good window").with_parameters(Parameters::Sigmas);
    let grads = ArrayD::ones(&[SIDE, SIDE, K, K][..]);
    let (_, adjoint) = peak_of(|| maps.adjoint(grads.view(), sigmas.view()).expect("good kernels"));
    assert!(adjoint <= 2 * of_shapes + FIXED, "the adjoint of sigmas took {adjoint} bytes for {of_shapes}");
    drop(grads);

    let shapes = shapes.into_shape_with_order([1, SIDE, SIDE, 2, 2]).expect("one batch more");
    for (layout, border) in [(Layout::ChannelsLast, Border::Reflect), (Layout::ChannelsFirst, Border::Constant(1.0))] {
        let size = if layout == Layout::ChannelsFirst { [1, 3, SIDE, SIDE] } else { [1, SIDE, SIDE, 3] };
        let image = Array4::from_shape_fn(size, |(_, a, b, c)| (a * 5 + b * 3 + c) as f32 % 7.0);
        let all = size_of_val(image.as_slice().expect("standard layout")) + of_shapes;
        let blur = Blur::<f32>::new(K, Centre::Middle, border, 1).expect("good numbers").with_layout(layout);
        let scatter = Scatter::<f32>::new(K, Centre::Middle, border, 1).expect("good numbers").with_layout(layout);
        let limit = 4 * all + FIXED;
        let check = |what: &str, bytes: usize| assert!(bytes <= limit, "{what} took {bytes} bytes for {all}");
        let (y, bytes) = peak_of(|| blur.forward(image.view(), shapes.view()).expect("good kernels"));
        check("a blur", bytes);
        let (found, bytes) = peak_of(|| blur.adjoint(y.view(), image.view(), shapes.view()).expect("good kernels"));
        check("the adjoint of a blur", bytes);
        assert!(found.grad_shapes.iter().any(|g| *g != 0.0));
        let (_, bytes) = peak_of(|| blur.adjoint_image(y.view(), shapes.view(), [SIDE, SIDE]).expect("good kernels"));
        check("the transpose of a blur", bytes);
        let (y, bytes) = peak_of(|| scatter.forward(image.view(), shapes.view(), [SIDE, SIDE]).expect("good kernels"));
        check("a scatter", bytes);
        let (_, bytes) = peak_of(|| scatter.adjoint(y.view(), image.view(), shapes.view()).expect("good kernels"));
        check("the adjoint of a scatter", bytes);
    }
}
