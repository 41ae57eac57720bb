//! The depth image out of focus: a kernel a pixel, the wider the farther away it is, and along edges.

use super::chapters::{SEED, Story};
use super::check;
use super::picture;
use super::random::Random;
use pullback::Level;
use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Parameters};
use pullback::ndarray::{Array2, Array3, Array4, Axis, Ix4, s};
use std::error::Error;

/// Samples of a kernel along an axis.
const K: usize = 15;

pub fn chapter(near: &Array2<f64>, story: &mut Story) -> Result<(), Box<dyn Error>> {
    let table = &mut story.table;
    let ((h, w), level) = (near.dim(), Some(Level::current()?));
    let (image, shapes) = (near.clone().insert_axis(Axis(0)).insert_axis(Axis(3)), field(near));
    let (pixels, kernels) = (format!("(1, {h}, {w}, 1)"), format!("(1, {h}, {w}, 3)"));

    // Kernels themselves, of a row of pixels.
    let maps = KernelMaps::<f64>::new(K, Centre::Middle)?.with_parameters(Parameters::Sigmas);
    let row = shapes.slice(s![0, h / 2, .., ..]);
    let built = table.run("kernel maps", format!("({w}, 3) -> ({w}, {K}, {K})"), level, || maps.forward(row))?;
    table.check(check::kernels(row, &built));
    let mut random = Random::new(SEED);
    let target = built.mapv(|p| p * random.unit());
    let grad_maps = &built - &target;
    let grad_row = table
        .run("their adjoint", format!("({w}, {K}, {K}) -> ({w}, 3)"), level, || maps.adjoint(grad_maps.view(), row))?;
    let loss = |shapes: &Array2<f64>| -> pullback::Result<f64> {
        Ok((maps.forward(shapes.view())? - &target).mapv(|d| d * d / 2.0).sum())
    };
    table.check(check::slope(&row.to_owned(), &grad_row.into_dimensionality()?, &mut random, loss)?);

    let blur = Blur::<f64>::new(K, Centre::Middle, Border::Edge, 1)?.with_parameters(Parameters::Sigmas);
    let forward = || blur.forward(image.view(), shapes.view());
    let blurred = table.run("blur", format!("{pixels}, {kernels} -> {pixels}"), level, forward)?;
    let y = blurred.mapv(|_| random.signed());
    let adjoint = || blur.adjoint(y.view(), image.view(), shapes.view());
    let gradients = table.run("its adjoint", format!("{pixels} -> {pixels}, {kernels}"), level, adjoint)?;
    table.check(check::identity(&blurred, &y, &image, &gradients.grad_image));
    let grad_shapes = gradients.grad_shapes.into_dimensionality::<Ix4>()?;
    let loss = |shapes: &Array4<f64>| Ok::<_, pullback::Error>((blur.forward(image.view(), shapes.view())? * &y).sum());
    table.check(check::slope(&shapes, &grad_shapes, &mut random, loss)?);

    story.pictures.write("blurred.png", picture::shaded(&blurred.slice(s![0, .., .., 0]).to_owned()).view())?;
    story.pictures.write("kernels.png", drawn(&shapes)?.view())
}

/// (1, H, W, 3): standard deviations and the angle of the first.
fn field(near: &Array2<f64>) -> Array4<f64> {
    let (h, w) = near.dim();
    let at = |row: usize, column: usize| near[[row.min(h - 1), column.min(w - 1)]];
    Array4::from_shape_fn((1, h, w, 3), |(_, row, column, number)| {
        let width = 0.5 + 4.0 * (1.0 - near[[row, column]]);
        let down = at(row + 1, column) - at(row.saturating_sub(1), column);
        let right = at(row, column + 1) - at(row, column.saturating_sub(1));
        match number {
            0 => width,
            1 => (width / (1.0 + 8.0 * down.hypot(right))).max(0.3),
            // Along the edge.
            _ => right.atan2(-down),
        }
    })
}

/// Every 16th kernel, each with its greatest weight white.
fn drawn(shapes: &Array4<f64>) -> pullback::Result<Array3<f32>> {
    let few = shapes.slice(s![0, ..;K + 1, ..;K + 1, ..]);
    let maps = KernelMaps::<f64>::new(K, Centre::Middle)?.with_parameters(Parameters::Sigmas).forward(few)?;
    let (rows, columns) = (few.shape()[0], few.shape()[1]);
    let greatest = Array2::from_shape_fn((rows, columns), |(row, column)| {
        maps.slice(s![row, column, .., ..]).iter().fold(0.0, |a: f64, &b| a.max(b))
    });
    Ok(Array3::from_shape_fn((rows * K, columns * K, 1), |(y, x, _)| {
        (maps[[y / K, x / K, y % K, x % K]] / greatest[[y / K, x / K]]) as f32
    }))
}
