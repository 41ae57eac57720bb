//! A cloud as a grid of occupied cells, its levels, what a camera sees of it, and the gradient of a pyramid of maxima.

use super::chapters::{SEED, Story};
use super::check;
use super::frame::normalised;
use super::picture;
use super::random::Random;
use pullback::Level;
use pullback::mipmap::{MaxPyramid, Pyramid};
use pullback::ndarray::{Array, Array1, Array2, Array3, ArrayView1, Dimension, s};
use std::collections::HashSet;
use std::error::Error;

/// Cells along a side of the largest picture, and of the largest grid.
const CELLS: f64 = 128.0;
const ROWS: f64 = 240.0;

/// Returns how near the first thing is in every pixel: 1 the nearest, 0 where there is nothing.
pub fn chapter(points: &Array2<f64>, story: &mut Story) -> Result<Array2<f64>, Box<dyn Error>> {
    let table = &mut story.table;
    let (n, level) = (points.nrows(), Some(Level::current()?));
    let cells = (2.75 * (n as f64).cbrt()).clamp(4.0, CELLS) as usize;
    // From half a cell before the first point, so that rounding leaves none outside.
    let voxel = 2.0 / (cells - 1) as f64;
    let (grid, origin) = (format!("({cells}, {cells}, {cells})"), -1.0 - voxel / 2.0);
    let positions = normalised(points.view());
    let (pyramid, outside) = table.run("occupancy, all levels", format!("({n}, 3) -> {grid}"), level, || {
        Pyramid::from_points(positions.view(), [origin; 3], voxel, [cells; 3])
    })?;
    let cell = |p: ArrayView1<'_, f64>| [0, 1, 2].map(|axis| ((p[axis] - origin) / voxel).floor() as usize);
    let occupied: HashSet<[usize; 3]> = positions.outer_iter().map(cell).collect();
    let counts =
        (0..pyramid.levels()).map(|k| Ok(pyramid.level(k)?.count())).collect::<pullback::Result<Vec<u64>>>()?;
    table.check(check::levels(&occupied, &counts, outside));

    let rows = (0.75 * (n as f64).sqrt()).clamp(8.0, ROWS) as usize;
    let (origins, directions) = camera([rows, rows * 4 / 3], [-0.7, -0.8, 0.9]);
    let rays = format!("({}, 3)", origins.nrows());
    let hits = table.run("rays", rays, level, || pyramid.raycast(origins.view(), directions.view(), f64::INFINITY))?;
    let in_cells = (origins - origin) / voxel;
    table.check(check::rays(&occupied, &in_cells, &(&directions / voxel), &hits));

    // How many points a cell has, and the most in each cell of every level.
    let mut density = Array3::<f64>::zeros([cells; 3]);
    positions.outer_iter().for_each(|p| density[cell(p)] += 1.0);
    let maxima = MaxPyramid::<f64>::new([cells; 3])?;
    let found = table.run("maxima, all levels", grid.clone(), level, || maxima.forward(density.view()))?;
    let mut random = Random::new(SEED);
    let cotangents: Vec<Array3<f64>> = found.levels.iter().map(|level| level.mapv(|_| random.signed())).collect();
    let views: Vec<_> = std::iter::once(None).chain(cotangents.iter().map(|array| Some(array.view()))).collect();
    let grad = table.run("their adjoint", grid, level, || maxima.adjoint(&views, &found.arguments))?;
    table.check(check::identity(&flat(&found.levels), &flat(&cotangents), &flat(&[density]), &flat(&[grad])));

    let near = contrast(&hits.t.mapv(|t| if t.is_finite() { 1.0 / (1.0 + t) } else { 0.0 }));
    let near = near.into_shape_with_order((rows, rows * 4 / 3))?;
    story.pictures.write("depth.png", picture::shaded(&near).view())?;
    story.pictures.write("levels.png", levels(&pyramid)?.view())?;
    Ok(near)
}

/// All cells of some arrays, one behind the other.
fn flat(arrays: &[Array3<f64>]) -> Array1<f64> {
    arrays.iter().flat_map(|array| array.iter().copied()).collect()
}

/// What is above 0, from 0.15 to 1.
fn contrast<D: Dimension>(values: &Array<f64, D>) -> Array<f64, D> {
    let (least, most) = values.iter().filter(|&&x| x > 0.0).fold((1.0f64, 0.0f64), |(a, b), &x| (a.min(x), b.max(x)));
    let size = (most - least).max(1e-3);
    values.mapv(|x| if x > 0.0 { 1.0 - 0.85 * (most - x) / size } else { 0.0 })
}

/// Rays from an eye towards the middle of the cloud, those of a row from left to right.
fn camera([rows, columns]: [usize; 2], eye: [f64; 3]) -> (Array2<f64>, Array2<f64>) {
    let length = eye.iter().map(|x| x * x).sum::<f64>().sqrt();
    let forward = eye.map(|x| -x / length);
    let ground = forward[0].hypot(forward[1]);
    let right = [forward[1] / ground, -forward[0] / ground, 0.0];
    let up = [right[1] * forward[2], -right[0] * forward[2], right[0] * forward[1] - right[1] * forward[0]];
    let origins = Array2::from_shape_fn((rows * columns, 3), |(_, axis)| eye[axis]);
    let directions = Array2::from_shape_fn((rows * columns, 3), |(ray, axis)| {
        let across = ((ray % columns) as f64 + 0.5) / columns as f64 - 0.5;
        let along = 0.5 - ((ray / columns) as f64 + 0.5) / rows as f64;
        forward[axis] + 1.2 * across * right[axis] + 0.9 * along * up[axis]
    });
    (origins, directions)
}

/// Levels side by side from above: how high the highest occupied cell of a column is.
fn levels(pyramid: &Pyramid) -> pullback::Result<Array3<f32>> {
    const SIDE: usize = 128;
    let shown = pyramid.levels().min(5);
    let mut picture = Array3::zeros((SIDE, SIDE * shown, 3));
    for k in 0..shown {
        let view = pyramid.level(k)?;
        let [x, y, z] = view.shape();
        let mut heights = Array2::<f64>::zeros((y, x));
        for cell in view.iter_occupied() {
            let height = &mut heights[[y - 1 - cell[1], cell[0]]];
            *height = height.max((cell[2] + 1) as f64 / z as f64);
        }
        let heights = contrast(&heights);
        let tile = Array2::from_shape_fn((SIDE, SIDE), |(row, column)| heights[[row * y / SIDE, column * x / SIDE]]);
        let at = SIDE * k..SIDE * (k + 1);
        picture.slice_mut(s![.., at, ..]).assign(&picture::shaded(&tile));
    }
    Ok(picture)
}
