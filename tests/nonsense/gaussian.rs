//! Every entry of `gaussian`.

use crate::common::values::Value;
use crate::driver::{Drawn, Input, Nonsense, Output, drive};
use ndarray::{Ix3, Ix4, IxDyn};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Layout, Parameters, Path, Scatter, Tuning};

const FALLIBLE: [&str; 28] = [
    "KernelMaps::new",
    "KernelMaps::rectangular",
    "KernelMaps::with_grid",
    "KernelMaps::forward",
    "KernelMaps::forward_into",
    "KernelMaps::forward_at",
    "KernelMaps::forward_at_into",
    "KernelMaps::adjoint",
    "KernelMaps::adjoint_into",
    "KernelMaps::adjoint_add",
    "KernelMaps::adjoint_at",
    "KernelMaps::adjoint_at_into",
    "KernelMaps::adjoint_at_add",
    "Blur::new",
    "Blur::rectangular",
    "Blur::forward",
    "Blur::forward_into",
    "Blur::adjoint",
    "Blur::adjoint_into",
    "Blur::adjoint_add",
    "Blur::adjoint_image",
    "Blur::adjoint_image_into",
    "Blur::adjoint_image_add",
    "Scatter::new",
    "Scatter::rectangular",
    "Scatter::forward",
    "Scatter::forward_into",
    "Scatter::adjoint",
];

const FALLIBLE_TOO: [&str; 2] = ["Scatter::adjoint_into", "Scatter::adjoint_add"];

const INFALLIBLE: [&str; 8] = [
    "KernelMaps::with_level",
    "KernelMaps::level",
    "KernelMaps::shape",
    "KernelMaps::grid",
    "Blur::with_level",
    "Blur::level",
    "Scatter::with_level",
    "Scatter::level",
];

#[test]
fn gaussian() {
    let fallible = [&FALLIBLE[..], &FALLIBLE_TOO].concat();
    drive(&fallible, &INFALLIBLE, 5000, |n| if n.chance(2) { of::<f32>(n) } else { of::<f64>(n) });
}

fn of<T: Value + Drawn>(n: &mut Nonsense) {
    if n.chance(2) { maps::<T>(n) } else { blurs::<T>(n) }
}

fn centre(n: &mut Nonsense) -> Centre {
    let at = Centre::At(n.parameter(), n.parameter());
    let stride = n.count();
    let (convolution, correlation) = (Centre::ShiftConvolution(stride), Centre::ShiftCorrelation(stride));
    n.random.one_of(&[Centre::Corner, Centre::Middle, Centre::Half, convolution, correlation, at])
}

fn parameters(n: &mut Nonsense) -> Parameters {
    use Parameters::{Covariance, Factor, Precision, Sigmas, Variances};
    n.random.one_of(&[Factor, Precision, Sigmas, Variances, Covariance])
}

fn tuning(n: &mut Nonsense) -> Tuning {
    Tuning {
        stream: n.choice(),
        parallel: n.choice(),
        tile: n.random.one_of(&[None, Some(1), Some(3)]),
        mirror: n.choice(),
        path: n.random.one_of(&[None, Some(Path::Rows), Some(Path::Narrow)]),
    }
}

/// Samples on an axis: mostly few.
fn samples(n: &mut Nonsense) -> usize {
    if n.chance(10) { n.count().max(n.small()) } else { 1 + n.random.below(7) }
}

/// Numbers that mostly describe kernels.
fn shapes<T: Value + Drawn>(n: &mut Nonsense, shape: &[usize]) -> Input<T, IxDyn> {
    if n.chance(3) {
        return n.input(IxDyn(shape));
    }
    let cells: usize = shape.iter().fold(1, |cells: usize, &n| cells.saturating_mul(n));
    if cells > 1 << 14 {
        return Input::One(ndarray::arr0(T::one()), IxDyn(&[2, 2]));
    }
    let scale = n.parameter().abs();
    let scale = if scale.is_finite() { scale } else { 1e-3 };
    let numbers = (0..cells).map(|at| T::from_f64(scale * [1.0, 0.25, 1.5][at % 3] + 0.1).expect("rounded")).collect();
    let array = ndarray::ArrayD::from_shape_vec(IxDyn(shape), numbers).expect("so many");
    Input::Strided(crate::common::strides::Strided::standard(array.view()))
}

fn axes(parameters: Parameters) -> &'static [usize] {
    if parameters == Parameters::Factor { &[2, 2] } else { &[3] }
}

fn maps<T: Value + Drawn>(n: &mut Nonsense) {
    let (kh, kw) = (samples(n), samples(n));
    let at = centre(n);
    let z: Input<T, _> = n.input(Ix3(kh.min(9), kw, 2));
    let made = match n.random.below(3) {
        0 => n.call("KernelMaps::new", || KernelMaps::<T>::new(kh, at)),
        1 => n.call("KernelMaps::rectangular", || KernelMaps::rectangular([kh, kw], at)),
        _ => n.call("KernelMaps::with_grid", || KernelMaps::with_grid(z.view())),
    };
    let Some(op) = made else { return };
    let level = n.level();
    let Some(op) = n.call("KernelMaps::with_level", || op.with_level(level)) else { return };
    let parameters = parameters(n);
    let op = op.with_parameters(parameters).with_tuning(tuning(n));
    n.call("KernelMaps::level", || Ok(op.level()));
    let window = n.call("KernelMaps::shape", || Ok(op.shape())).expect("no error");
    let grid = n.call("KernelMaps::grid", || Ok(op.grid())).expect("no error");
    n.shape("KernelMaps::grid", grid.shape(), &[window[0], window[1], 2]);
    let leading: Vec<usize> = (0..n.random.below(3)).map(|_| n.size()).collect();
    let of_shapes = [&leading, axes(parameters)].concat();
    let (of_maps, of_offsets) = ([&leading[..], &window].concat(), [&leading[..], &[2]].concat());
    let shapes: Input<T, _> = shapes(n, &of_shapes);
    let (offsets, grads): (Input<T, _>, Input<T, _>) = (n.input(IxDyn(&of_offsets)), n.input(IxDyn(&of_maps)));
    let (shapes, offsets, grads) = (shapes.view(), offsets.view(), grads.view());
    if let Some(maps) = n.call("KernelMaps::forward", || op.forward(shapes.view())) {
        n.shape("KernelMaps::forward", &maps.shape()[maps.ndim() - 2..], &window);
    }
    let mut out: Output<T, _> = n.output(IxDyn(&of_maps));
    n.write("KernelMaps::forward_into", &mut out, |out| op.forward_into(shapes.view(), out));
    if let Some(maps) = n.call("KernelMaps::forward_at", || op.forward_at(shapes.view(), offsets.view())) {
        n.shape("KernelMaps::forward_at", &maps.shape()[maps.ndim() - 2..], &window);
    }
    let mut out: Output<T, _> = n.output(IxDyn(&of_maps));
    n.write("KernelMaps::forward_at_into", &mut out, |out| op.forward_at_into(shapes.view(), offsets.view(), out));
    if let Some(found) = n.call("KernelMaps::adjoint", || op.adjoint(grads.view(), shapes.view())) {
        n.shape("KernelMaps::adjoint", found.shape(), shapes.shape());
    }
    let mut out: Output<T, _> = n.output(IxDyn(&of_shapes));
    n.write("KernelMaps::adjoint_into", &mut out, |out| op.adjoint_into(grads.view(), shapes.view(), out));
    let mut out: Output<T, _> = n.output(IxDyn(&of_shapes));
    n.write("KernelMaps::adjoint_add", &mut out, |out| op.adjoint_add(grads.view(), shapes.view(), out));
    let found = n.call("KernelMaps::adjoint_at", || op.adjoint_at(grads.view(), shapes.view(), offsets.view()));
    if let Some(found) = found {
        n.shape("KernelMaps::adjoint_at", found.grad_shapes.shape(), shapes.shape());
        n.shape("KernelMaps::adjoint_at", found.grad_offsets.shape(), offsets.shape());
    }
    for add in [false, true] {
        let (mut a, mut b): (Output<T, _>, Output<T, _>) = (n.output(IxDyn(&of_shapes)), n.output(IxDyn(&of_offsets)));
        let entry = if add { "KernelMaps::adjoint_at_add" } else { "KernelMaps::adjoint_at_into" };
        n.write_both(entry, (&mut a, &mut b), |a, b| match add {
            false => op.adjoint_at_into(grads.view(), shapes.view(), offsets.view(), a, b),
            true => op.adjoint_at_add(grads.view(), shapes.view(), offsets.view(), a, b),
        });
    }
}

fn border(n: &mut Nonsense) -> Border {
    let constant = Border::Constant(n.parameter());
    n.random.one_of(&[Border::Reflect, Border::Symmetric, Border::Edge, Border::Wrap, constant])
}

fn blurs<T: Value + Drawn>(n: &mut Nonsense) {
    let (kh, kw, at, border) = (samples(n), samples(n), centre(n), border(n));
    let stride = if n.chance(8) { n.count() } else { 1 + n.random.below(3) };
    let (parameters, tuning, level) = (parameters(n), tuning(n), n.level());
    let layout = n.random.one_of(&[Layout::ChannelsLast, Layout::ChannelsFirst]);
    let scatters = n.chance(2);
    let square = n.chance(2);
    let [b, h, w, c] = [n.size(), n.size(), n.size(), n.size()];
    let small = [h, w].map(|n| n.div_ceil(stride.max(1)));
    let shaped = |[h, w]: [usize; 2]| match layout {
        Layout::ChannelsFirst => Ix4(b, c, h, w),
        _ => Ix4(b, h, w, c),
    };
    let of_shapes = [&[b][..], &small, axes(parameters)].concat();
    let shapes: Input<T, _> = shapes(n, &of_shapes);
    let shapes = shapes.view();
    let (large, result): (Input<T, _>, Input<T, _>) = (n.input(shaped([h, w])), n.input(shaped(small)));
    let (large, result) = (large.view(), result.view());
    let size = if n.chance(6) { [n.size(), n.count()] } else { [h, w] };
    let mut out: Output<T, _> = n.output(shaped(if scatters { [h, w] } else { small }));
    let to_large = shaped(if scatters { small } else { [h, w] });
    let outputs =
        |n: &mut Nonsense| -> (Output<T, Ix4>, Output<T, IxDyn>) { (n.output(to_large), n.output(IxDyn(&of_shapes))) };
    if scatters {
        let made = match square {
            true => n.call("Scatter::new", || Scatter::<T>::new(kh, at, border, stride)),
            false => n.call("Scatter::rectangular", || Scatter::rectangular([kh, kw], at, border, stride)),
        };
        let Some(op) = made else { return };
        let Some(op) = n.call("Scatter::with_level", || op.with_level(level)) else { return };
        n.call("Scatter::level", || Ok(op.level()));
        let op = op.with_parameters(parameters).with_layout(layout).with_tuning(tuning);
        n.call("Scatter::forward", || op.forward(result.view(), shapes.view(), size));
        n.write("Scatter::forward_into", &mut out, |out| op.forward_into(result.view(), shapes.view(), out));
        if let Some(found) = n.call("Scatter::adjoint", || op.adjoint(large.view(), result.view(), shapes.view())) {
            n.shape("Scatter::adjoint", found.grad_image.shape(), result.shape());
            n.shape("Scatter::adjoint", found.grad_shapes.shape(), shapes.shape());
        }
        let (mut a, mut b) = outputs(n);
        n.write_both("Scatter::adjoint_into", (&mut a, &mut b), |a, b| {
            op.adjoint_into(large.view(), result.view(), shapes.view(), a, b)
        });
        let (mut a, mut b) = outputs(n);
        n.write_both("Scatter::adjoint_add", (&mut a, &mut b), |a, b| {
            op.adjoint_add(large.view(), result.view(), shapes.view(), a, b)
        });
        return;
    }
    let made = match square {
        true => n.call("Blur::new", || Blur::<T>::new(kh, at, border, stride)),
        false => n.call("Blur::rectangular", || Blur::rectangular([kh, kw], at, border, stride)),
    };
    let Some(op) = made else { return };
    let Some(op) = n.call("Blur::with_level", || op.with_level(level)) else { return };
    n.call("Blur::level", || Ok(op.level()));
    let op = op.with_parameters(parameters).with_layout(layout).with_tuning(tuning);
    n.call("Blur::forward", || op.forward(large.view(), shapes.view()));
    n.write("Blur::forward_into", &mut out, |out| op.forward_into(large.view(), shapes.view(), out));
    n.call("Blur::adjoint_image", || op.adjoint_image(result.view(), shapes.view(), size));
    if let Some(found) = n.call("Blur::adjoint", || op.adjoint(result.view(), large.view(), shapes.view())) {
        n.shape("Blur::adjoint", found.grad_image.shape(), large.shape());
        n.shape("Blur::adjoint", found.grad_shapes.shape(), shapes.shape());
    }
    let (mut into, _) = outputs(n);
    n.write("Blur::adjoint_image_into", &mut into, |out| op.adjoint_image_into(result.view(), shapes.view(), out));
    let (mut added, _) = outputs(n);
    n.write("Blur::adjoint_image_add", &mut added, |out| op.adjoint_image_add(result.view(), shapes.view(), out));
    let (mut a, mut b) = outputs(n);
    n.write_both("Blur::adjoint_into", (&mut a, &mut b), |a, b| {
        op.adjoint_into(result.view(), large.view(), shapes.view(), a, b)
    });
    let (mut a, mut b) = outputs(n);
    n.write_both("Blur::adjoint_add", (&mut a, &mut b), |a, b| {
        op.adjoint_add(result.view(), large.view(), shapes.view(), a, b)
    });
}
