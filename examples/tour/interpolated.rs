//! The heights of a cloud interpolated to a grid on the ground, with gradients to heights, to cells and to points.
//!
//! Weights depend on ratios of distances alone. So nothing changes where cells and points move together, nor where both move away
//! from the origin in proportion: their gradients, summed one way and the other, are 0.

use super::chapters::{SEED, Story};
use super::check::{self, Check};
use super::frame::normalised;
use super::picture;
use super::random::Random;
use super::smooth::sum;
use pullback::Level;
use pullback::kdtree::{Interpolate, KdTree};
use pullback::ndarray::{Array2, s};
use std::error::Error;

const NEIGHBOURS: usize = 8;
const POWER: f64 = 2.0;

pub fn chapter(points: &Array2<f64>, story: &mut Story) -> Result<(), Box<dyn Error>> {
    let table = &mut story.table;
    let (n, side, level) = (points.nrows(), side(points.nrows()), Some(Level::current()?));
    let positions = normalised(points.view());
    let (ground, heights) = (positions.slice(s![.., ..2]), positions.slice(s![.., 2..]));
    // The first row at the top of a picture.
    let cells = Array2::from_shape_fn((side * side, 2), |(cell, axis)| {
        let step = if axis == 0 { cell % side } else { side - 1 - cell / side };
        (2 * step + 1) as f64 / side as f64 - 1.0
    });
    let (few, many) = (format!("({n}, 1)"), format!("({}, 1)", side * side));

    let tree = table.run("tree of the ground", format!("({n}, 2)"), level, || KdTree::<f64, 2>::new(ground))?;
    let at = table.run("weights", format!("({}, 2) -> ({0}, {NEIGHBOURS})", side * side), level, || {
        Interpolate::new(&tree, NEIGHBOURS, POWER, 0.0)?.at(cells.view())
    })?;
    let field = table.run("interpolation", format!("{few} -> {many}"), level, || at.forward(heights))?;
    table.check(check::interpolated(&positions, &cells, NEIGHBOURS, &field));

    let mut random = Random::new(SEED);
    let y = field.mapv(|_| random.signed());
    let gradients = table.run("its adjoint", format!("{many} -> {few}"), level, || at.adjoint(y.view(), heights))?;
    table.check(check::identity(&field, &y, &heights.to_owned(), &gradients.grad_values));
    let (to_cells, to_points) = (&gradients.grad_queries, &gradients.grad_points);
    let moved = to_cells.iter().chain(to_points);
    let stretched = (to_cells * &cells).into_iter().chain(to_points * &ground);
    let size = sum(moved.clone().map(|g| g.abs()));
    let zero = sum(moved.copied()).abs().max(sum(stretched).abs());
    table.check(Check::close("moved and stretched", zero, size));

    story.pictures.write("field.png", picture::shaded(&field.into_shape_with_order((side, side))?).view())
}

/// Cells along the side of a grid that has as many as there are points, but for small and large clouds.
fn side(points: usize) -> usize {
    (points as f64).sqrt().clamp(8.0, 256.0) as usize
}
