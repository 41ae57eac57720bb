//! A real frame of a depth camera: points with runs of NaN, neighbours that do not exist at the border.

use crate::common::cells::assert_same;
use crate::common::{files, levels};
use ndarray::{Array2, Array3};
use pullback::gather::{Gather, OutOfRange, Reduction, Tuning};

const HEIGHT: usize = 120;
const WIDTH: usize = 160;

/// (pixels, 9): the pixel and its neighbours, -1 where the frame ends.
fn neighbours() -> Array2<i32> {
    Array2::from_shape_fn([HEIGHT * WIDTH, 9], |(pixel, k)| {
        let (row, column) = ((pixel / WIDTH + k / 3) as i32 - 1, (pixel % WIDTH + k % 3) as i32 - 1);
        let inside = (0..HEIGHT as i32).contains(&row) && (0..WIDTH as i32).contains(&column);
        if inside { row * WIDTH as i32 + column } else { -1 }
    })
}

#[test]
fn neighbours_in_a_depth_frame() {
    let Some(x) = files::office() else { return };
    let indices = neighbours();
    let expected = Array3::from_shape_fn([HEIGHT * WIDTH, 9, 3], |(pixel, k, axis)| {
        usize::try_from(indices[[pixel, k]]).map_or(f32::INFINITY, |row| x[[row, axis]])
    });
    // Being a neighbour is mutual: each pixel is gathered as often as it has neighbours.
    let degrees = Array2::from_shape_fn([HEIGHT * WIDTH, 3], |(pixel, _)| {
        indices.row(pixel).iter().filter(|&&row| row >= 0).count() as f32
    });
    levels::each(|level| {
        let gather = Gather::unbatched(indices.view(), HEIGHT * WIDTH, OutOfRange::Skip { fill: f64::INFINITY });
        let mut gather = gather.unwrap().with_level(level).unwrap();
        assert_same("y", &gather.forward(x.view()).unwrap(), &expected);
        for reduction in [None, Some(Reduction::Slab), Some(Reduction::Inverse)] {
            gather = gather.with_tuning(Tuning { reduction, ..Tuning::default() });
            let grad_x = gather.adjoint(Array3::ones([HEIGHT * WIDTH, 9, 3]).view()).unwrap();
            assert_same("grad_x", &grad_x, &degrees);
        }
    });
}
