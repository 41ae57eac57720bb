//! Kernel maps beside the time that filling them takes, and the fused blur beside the arithmetic that it cannot avoid.
//!
//! The peer of the blur is what there is without it: all kernels in memory, and a loop over their windows.

use crate::arithmetic;
use crate::measure::{Limit, Random, Suite, entry, job};
use crate::memory::Memory;
use pullback::Real;
use pullback::gaussian::{Blur, Border, Centre, KernelMaps};
use pullback::ndarray::{Array3, Array4, Array5, ArrayView4};
use rayon::prelude::*;
use std::hint::black_box;

/// Samples of a kernel along an axis, where a job does not say otherwise.
const K: usize = 21;

/// A batch and its pixels.
const PIXELS: [usize; 2] = [16, 10_000];

pub fn report(suite: &Suite) {
    single(suite);
    double(suite);
    sizes(suite);
    blur(suite);
}

/// Normally distributed entries of `deviation`.
fn factors<T: Real>(random: &mut Random, shape: [usize; 2], deviation: f32) -> Array4<T> {
    let mut normal = || (0..12).map(|_| random.unit()).sum::<f32>() - 6.0;
    Array4::from_shape_simple_fn((shape[0], shape[1], 2, 2), || T::from_f32(deviation * normal()).expect("an element"))
}

macro_rules! jobs {
    ($name:ident, $t:ty) => {
        /// Forward into an array that is there, and the gradient of the shapes.
        fn $name(suite: &Suite) {
            for (centre, deviation, label) in [(Centre::Middle, 0.3, "middle"), (Centre::Corner, 1.0, "corner")] {
                let name = |job: &str| format!("gaussian/{job}-{label}/160000x{K}x{K}/{}", stringify!($t));
                let jobs = [name("forward"), name("adjoint")];
                if !jobs.iter().any(|job| suite.wants(job)) {
                    continue;
                }
                let mut random = Random::new(7);
                let pixels = [PIXELS[0], suite.size(PIXELS[1])];
                let shapes = factors::<$t>(&mut random, pixels, deviation);
                let maps = KernelMaps::<$t>::new(K, centre).expect("a size");
                let mut out = Array4::<$t>::zeros((pixels[0], pixels[1], K, K));
                let mut memory = Memory::new();
                let bytes = out.len() * size_of::<$t>();
                if suite.wants(&jobs[0]) {
                    let ours = || maps.forward_into(shapes.view(), out.view_mut()).expect("shapes");
                    job(suite, &jobs[0], memory.limit_fill(bytes), entry("into", ours), vec![]);
                }
                if suite.wants(&jobs[1]) {
                    let grad = Array4::from_shape_simple_fn(out.raw_dim(), || random.unit() as $t);
                    drop(out);
                    let mut grad_shapes = shapes.clone();
                    let ours = || {
                        maps.adjoint_into(grad.view(), shapes.view(), grad_shapes.view_mut()).expect("shapes");
                    };
                    job(suite, &jobs[1], memory.limit_fill(bytes), entry("into", ours), vec![]);
                }
            }
        }
    };
}
jobs!(single, f32);
jobs!(double, f64);

/// As many samples in kernels of other sizes, beside those of 21 x 21.
fn sizes(suite: &Suite) {
    let samples = suite.size(40_000) * K * K;
    let mut random = Random::new(8);
    let mut of = |k: usize| {
        let shapes = factors::<f32>(&mut random, [1, samples / (k * k)], 0.3 * K as f32 / k as f32);
        let out = Array4::<f32>::zeros((1, samples / (k * k), k, k));
        (KernelMaps::<f32>::new(k, Centre::Middle).expect("a size"), shapes, out)
    };
    for k in [5, 7, 15, 25, 41] {
        let name = format!("gaussian/forward-k{k}/{samples}/f32");
        if !suite.wants(&name) {
            continue;
        }
        let ((maps, shapes, mut out), (same, their_shapes, mut their_out)) = (of(k), of(K));
        let mut memory = Memory::new();
        let ours = || maps.forward_into(shapes.view(), out.view_mut()).expect("shapes");
        let theirs = || same.forward_into(their_shapes.view(), their_out.view_mut()).expect("shapes");
        job(suite, &name, memory.limit_fill(samples * 4), entry("into", ours), vec![entry("k=21", theirs)]);
    }
}

/// 512 x 512 pixels of three channels, a kernel a pixel.
fn blur(suite: &Suite) {
    let side = suite.size(512).max(32);
    let name = |job: &str| format!("gaussian/blur-{job}/{side}x{side}x3/f32");
    let jobs = [name("forward"), name("adjoint")];
    if !jobs.iter().any(|job| suite.wants(job)) {
        return;
    }
    let mut random = Random::new(9);
    let shapes: Array5<f32> =
        factors(&mut random, [side, side], 0.3).into_shape_with_order((1, side, side, 2, 2)).expect("a kernel a pixel");
    let image = Array4::from_shape_simple_fn((1, side, side, 3), || random.unit());
    let grad = Array4::from_shape_simple_fn((1, side, side, 3), || random.unit());
    let blur = Blur::<f32>::new(K, Centre::Middle, Border::Reflect, 1).expect("a size");
    // A vector of samples: a quadratic form (3), its exponential (10) and the sum of weights (1), all once for two opposite
    // samples; and the sum of each channel.
    let vectors = side * side * K * K / 16;
    let limit = |operations: usize| -> Limit<'_> { arithmetic::limit(vectors * operations) };
    if suite.wants(&jobs[0]) {
        let ours = || drop(black_box(blur.forward(image.view(), shapes.view()).expect("shapes")));
        let theirs = || drop(black_box(windows(&image.view(), &shapes)));
        job(suite, &jobs[0], limit(14 / 2 + 3), entry("new", ours), vec![entry("kernels-in-memory", theirs)]);
    }
    if suite.wants(&jobs[1]) {
        // The gradient of the image, where opposite samples belong to different kernels, and that of the shapes: weights, the
        // gradient of each sample over the channels, and eight sums.
        let operations = (13 + 3) + (14 / 2 + 3 + 8 / 2);
        let ours = || drop(black_box(blur.adjoint(grad.view(), image.view(), shapes.view()).expect("shapes")));
        job(suite, &jobs[1], limit(operations), entry("both", ours), vec![]);
    }
}

/// The blur with all kernels in memory first.
fn windows(image: &ArrayView4<'_, f32>, shapes: &Array5<f32>) -> Array3<f32> {
    let (_, height, width, channels) = image.dim();
    let kernels = KernelMaps::<f32>::new(K, Centre::Middle).expect("a size").forward(shapes.view()).expect("shapes");
    let kernels = kernels.as_slice().expect("a new array");
    let reflect = |at: isize, n: usize| {
        let last = n as isize - 1;
        (last - (last - at.abs()).abs()) as usize
    };
    let mut out = Array3::zeros((height, width, channels));
    let rows = out.as_slice_mut().expect("a new array").par_chunks_mut(width * channels);
    rows.enumerate().for_each(|(y, row)| {
        for (x, cells) in row.chunks_exact_mut(channels).enumerate() {
            let kernel = &kernels[(y * width + x) * K * K..][..K * K];
            for (j, weights) in kernel.chunks_exact(K).enumerate() {
                let at = reflect((y + j) as isize - (K / 2) as isize, height);
                for (i, &weight) in weights.iter().enumerate() {
                    let pixel = [0, at, reflect((x + i) as isize - (K / 2) as isize, width)];
                    for (channel, cell) in cells.iter_mut().enumerate() {
                        *cell += weight * image[[pixel[0], pixel[1], pixel[2], channel]];
                    }
                }
            }
        }
    });
    out
}
