//! Images of any strides and either layout, copied into planes and out of them.

use super::border::{Border, Places};
use super::window::Window;
use crate::Real;
use crate::buffer::{Filled, Output, Start};
use crate::error::{Error, Result};
use crate::parallel::{Cut, for_each_tile};
use ndarray::{ArrayView1, ArrayView4, ArrayViewMut1, s};
use std::ops::Range;

/// The order of the axes of images.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// (B, H, W, C).
    #[default]
    ChannelsLast,
    /// (B, C, H, W).
    ChannelsFirst,
}

impl Layout {
    /// The axes B, C, H and W of an array in this layout.
    pub(super) fn channels_first<X>(self, [a, b, c, d]: [X; 4]) -> [X; 4] {
        match self {
            Self::ChannelsLast => [a, d, b, c],
            Self::ChannelsFirst => [a, b, c, d],
        }
    }

    /// The shape in this layout of an array with the axes B, C, H and W.
    pub(super) fn shape(self, [b, c, h, w]: [usize; 4]) -> [usize; 4] {
        match self {
            Self::ChannelsLast => [b, h, w, c],
            Self::ChannelsFirst => [b, c, h, w],
        }
    }

    /// The array with the axes B, C, H and W.
    pub(super) fn view<'a, T>(self, array: &'a ArrayView4<'_, T>) -> ArrayView4<'a, T> {
        array.view().permuted_axes(self.channels_first([0, 1, 2, 3]))
    }
}

/// Samples of kernels that one task computes, at least: tens of microseconds.
const TILE: usize = 1 << 17;

/// What copying a cell costs, in samples of kernels.
pub(super) const COPIED: usize = 4;

/// How rows are shared between tasks.
#[derive(Clone, Copy)]
pub(super) struct Sharing {
    pub(super) tile: Option<usize>,
    pub(super) parallel: Option<bool>,
}

impl Sharing {
    /// For rows of `width` cells that cost `work` each.
    pub(super) fn cut(self, rows: usize, group: usize, width: usize, work: usize) -> Cut {
        let row = width.saturating_mul(work).max(1);
        Cut {
            group,
            tile: self.tile.unwrap_or(TILE / row).max(1),
            width,
            parallel: self
                .parallel
                .unwrap_or_else(|| rows.saturating_mul(row) >= 2 * TILE && rayon::current_num_threads() > 1),
        }
    }

    /// Runs `fill` once a row of planes, with the row's number and its cells.
    pub(super) fn rows<T: Real>(
        self,
        planes: &mut [T],
        group: usize,
        width: usize,
        work: usize,
        fill: impl Fn(usize, &mut [T]) + Sync,
    ) {
        let rows = planes.len() / width;
        let cut = self.cut(rows, group, width, work);
        self.tiles(planes, &cut, |first, cells| {
            for (row, cells) in (first..).zip(cells.chunks_exact_mut(width)) {
                fill(row, cells);
            }
        });
    }

    /// Runs `fill` once a tile of rows of planes, with the number of its first row and its cells, which hold their values.
    pub(super) fn tiles<T: Real>(self, planes: &mut [T], cut: &Cut, fill: impl Fn(usize, &mut [T]) + Sync) {
        let rows = planes.len() / cut.width;
        if rows == 0 {
            return;
        }
        let out = Output::array(ArrayViewMut1::from(planes), Start::Values);
        let _ = for_each_tile(out, rows, cut, &|group, rows, tile| {
            fill(group * cut.group + rows.start, tile.accumulators());
        });
    }
}

/// Planes of zeros.
pub(super) fn planes<T: Real>(rows: usize, width: usize) -> Result<Vec<T>> {
    let cells = rows.saturating_mul(width);
    let mut planes = Vec::new();
    let bytes = cells.saturating_mul(size_of::<T>());
    planes.try_reserve_exact(cells).map_err(|_| Error::Allocation { bytes })?;
    planes.resize(cells, T::zero());
    Ok(planes)
}

/// What an iterator gives, whose length an image decides that may be one pixel all over.
fn listed<X>(items: impl ExactSizeIterator<Item = X>) -> Result<Vec<X>> {
    let mut list = Vec::new();
    let bytes = items.len().saturating_mul(size_of::<X>());
    list.try_reserve_exact(items.len()).map_err(|_| Error::Allocation { bytes })?;
    list.extend(items);
    Ok(list)
}

/// Where the cells of padded planes come from.
pub(super) struct Padding<T> {
    /// The image's row of every padded row, and the image's column of every cell of one channel's.
    rows: Vec<Option<usize>>,
    columns: Vec<Option<usize>>,
    constant: T,
}

impl<T: Real> Padding<T> {
    /// Of images of (H, W), with `constant` where nothing else stands.
    pub(super) fn new(window: &Window<T>, border: Border, [height, width]: [usize; 2], constant: T) -> Result<Self> {
        let before = window.shape.map(|k| (k / 2) as isize);
        let source = |at: usize, axis: usize, n: usize| border.source(at as isize - before[axis], n);
        // Rows that are between those of samples are not read.
        let is_read = |row: usize| row % window.stride < window.shape[0];
        let rows = (0..window.padded_rows()).map(|row| source(row, 0, height).filter(|_| is_read(row)));
        let columns =
            (0..window.channel()).map(|cell| window.padded_column(cell).and_then(|column| source(column, 1, width)));
        Ok(Self { rows: listed(rows)?, columns: listed(columns)?, constant })
    }

    /// A padded image (B, C, H, W) in planes.
    pub(super) fn pad(&self, image: &ArrayView4<'_, T>, sharing: Sharing) -> Result<Vec<T>> {
        let ((batches, channels, ..), channel) = (image.dim(), self.columns.len());
        let mut padded = planes(batches * self.rows.len(), channels * channel)?;
        if padded.is_empty() {
            return Ok(padded);
        }
        sharing.rows(&mut padded, self.rows.len(), channels * channel, COPIED, |row, cells| {
            let (batch, row) = (row / self.rows.len(), row % self.rows.len());
            for (c, cells) in cells.chunks_exact_mut(channel).enumerate() {
                let Some(row) = self.rows[row] else {
                    cells.fill(self.constant);
                    continue;
                };
                let row = image.slice(s![batch, c, row, ..]);
                for (cell, &column) in cells.iter_mut().zip(&self.columns) {
                    *cell = column.map_or(self.constant, |column| row[column]);
                }
            }
        });
        Ok(padded)
    }

    /// The transpose of [`Padding::pad`] without the constant.
    pub(super) fn folding(&self, [height, width]: [usize; 2], channels: usize) -> Folding {
        let (rows, columns) = (Places::new(&self.rows, height), Places::new(&self.columns, width));
        Folding { rows, columns, padded_rows: self.rows.len(), channel: self.columns.len(), channels }
    }
}

/// Which cells of padded planes an image's pixel is the sum of.
pub(super) struct Folding {
    rows: Places,
    columns: Places,
    padded_rows: usize,
    channel: usize,
    channels: usize,
}

impl Folding {
    /// One row of one channel of an image: sums over the cells of a padded row, then over rows.
    pub(super) fn row<T: Real>(&self, padded: &[T], [batch, channel, row]: [usize; 3], out: &mut [T]) {
        out.fill(T::zero());
        for &row in self.rows.of(row) {
            let at = ((batch * self.padded_rows + row) * self.channels + channel) * self.channel;
            let cells = &padded[at..][..self.channel];
            for (column, out) in out.iter_mut().enumerate() {
                *out = *out + self.columns.of(column).iter().fold(T::zero(), |sum, &cell| sum + cells[cell]);
            }
        }
    }
}

/// What belongs to kernels, (B, C, H', W'), in planes of rows.
pub(super) fn beside_kernels<T: Real>(
    window: &Window<T>,
    array: &ArrayView4<'_, T>,
    sharing: Sharing,
) -> Result<Vec<T>> {
    let ((batches, channels, rows, _), width) = (array.dim(), window.kernel_width());
    let mut beside = planes(batches * rows, channels * width)?;
    if beside.is_empty() {
        return Ok(beside);
    }
    sharing.rows(&mut beside, rows, channels * width, COPIED, |row, cells| {
        for (c, cells) in cells.chunks_exact_mut(width).enumerate() {
            let row: ArrayView1<'_, T> = array.slice(s![row / rows, c, row % rows, ..]);
            cells[window.reach..].iter_mut().zip(row).for_each(|(cell, &x)| *cell = x);
        }
    });
    Ok(beside)
}

/// Writes an image of the axes B, C, H and W in a layout. `row` makes a row of one channel.
pub(super) fn write<T: Real>(
    out: Output<'_, T>,
    layout: Layout,
    [batches, channels, height, width]: [usize; 4],
    sharing: Sharing,
    row: &(impl Fn([usize; 3], &mut [T]) + Sync),
) -> Filled {
    if batches * channels * height * width == 0 {
        return Filled::NOTHING;
    }
    let (group, cells) = match layout {
        Layout::ChannelsLast => (height, width * channels),
        Layout::ChannelsFirst => (height * channels, width),
    };
    let cut = sharing.cut(batches * group, group, cells, COPIED);
    for_each_tile(out, batches * group, &cut, &|batch, rows: Range<usize>, tile| {
        let mut one = vec![T::zero(); width];
        for (at, cells) in rows.zip(tile.accumulators().chunks_exact_mut(cells)) {
            match layout {
                Layout::ChannelsLast => {
                    for c in 0..channels {
                        row([batch, c, at], &mut one);
                        cells[c..].iter_mut().step_by(channels).zip(&one).for_each(|(cell, &x)| *cell = *cell + x);
                    }
                }
                Layout::ChannelsFirst => {
                    row([batch, at / height, at % height], &mut one);
                    cells.iter_mut().zip(&one).for_each(|(cell, &x)| *cell = *cell + x);
                }
            }
        }
    })
}
