//! The story: what the library is for, family by family.

use super::pictures::Pictures;
use super::table::Table;
use super::{blurred, interpolated, neighbours, occupied, series};
use pullback::ndarray::Array2;
use std::error::Error;

/// Of everything that is random.
pub const SEED: u64 = 1;

/// What chapters add to.
pub struct Story {
    pub table: Table,
    pub pictures: Pictures,
}

/// Takes `points` (N, 3) through all chapters. Returns what was found.
pub fn chapters(points: &Array2<f64>, story: &mut Story) -> Result<String, Box<dyn Error>> {
    story.table.chapter("kdtree and gather: features smoothed over neighbours");
    let summary = neighbours::chapter(points, story)?;
    story.table.chapter("kdtree: heights interpolated to a grid");
    interpolated::chapter(points, story)?;
    story.table.chapter("mipmap: an occupancy grid, what a camera sees of it, and a pyramid of numbers");
    let near = occupied::chapter(points, story)?;
    story.table.chapter("gaussian: that picture out of focus, a kernel a pixel");
    blurred::chapter(&near, story)?;
    story.table.chapter("triconv: a rotating frame by Taylor series");
    series::chapter(story)?;
    Ok(summary)
}
