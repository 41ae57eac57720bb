//! A kernel at every pixel: what blurs and scatters share, from arrays to planes, through the inner loops, and back.

use super::blur_kernels::MOMENTS;
use super::border::Border;
use super::form::Form;
use super::grid::{Centre, Grid};
use super::maps::Tuning;
use super::maps_adjoint::add;
use super::planes::{COPIED, Layout, Padding, Sharing, beside_kernels, planes, write};
use super::pull::Moments;
use super::shape::{Parameters, widened};
use super::window::{NUMBERS, Window};
use crate::Real;
use crate::buffer::{Filled, Output, Start};
use crate::error::{Error, Result};
use crate::layout::check_shape;
use crate::parallel::for_each_tile;
use crate::simd::Level;
use ndarray::{ArrayView, ArrayView4, ArrayViewMut1, Dimension};
use rayon::prelude::*;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// What an operator with a kernel a pixel knows before the data.
pub(super) struct PerPixel<T> {
    pub(super) grid: Grid<T>,
    pub(super) parameters: Parameters,
    pub(super) layout: Layout,
    pub(super) level: Level,
    pub(super) tuning: Tuning,
    border: Border,
    constant: T,
    stride: usize,
}

/// The sizes of a call.
#[derive(Clone, Copy)]
pub(super) struct Frame {
    pub(super) batches: usize,
    pub(super) channels: usize,
    /// (H, W), of the side with more pixels.
    pub(super) size: [usize; 2],
    /// (H', W'), of the side with a kernel a pixel.
    pub(super) outputs: [usize; 2],
}

impl Frame {
    /// B, C, H, W.
    pub(super) fn image(self) -> [usize; 4] {
        [self.batches, self.channels, self.size[0], self.size[1]]
    }

    /// B, C, H', W'.
    pub(super) fn small(self) -> [usize; 4] {
        [self.batches, self.channels, self.outputs[0], self.outputs[1]]
    }

    /// The number of kernels.
    fn kernels(self) -> usize {
        self.batches * self.outputs[0] * self.outputs[1]
    }
}

/// The kernels of a call.
pub(super) struct Kernels<'a, T> {
    pub(super) window: Window<T>,
    pub(super) frame: Frame,
    /// The numbers that describe them.
    shapes: &'a [T],
    /// Rows of [`NUMBERS`] planes.
    rows: Vec<T>,
    /// Those that are computed one at a time, ascending. In the rows, they are flat.
    sharp: Vec<usize>,
}

impl<T: Real> Kernels<'_, T> {
    /// The sharp kernels of some rows.
    fn sharp(&self, rows: Range<usize>) -> &[usize] {
        let columns = self.frame.outputs[1];
        let before = |row: usize| self.sharp.partition_point(|&kernel| kernel < row * columns);
        &self.sharp[before(rows.start)..before(rows.end)]
    }

    /// The row and the column of a kernel.
    fn place(&self, kernel: usize) -> (usize, usize) {
        (kernel / self.frame.outputs[1], kernel % self.frame.outputs[1])
    }

    /// Where in planes of rows of channels the number that belongs to a kernel is.
    fn beside(&self, kernel: usize, channel: usize) -> usize {
        let (row, column) = self.place(kernel);
        (row * self.frame.channels + channel) * self.window.kernel_width() + self.window.reach + column
    }

    /// Where in padded planes the first samples of a row of kernels are.
    fn padded_row(&self, row: usize) -> usize {
        let [rows, _] = self.frame.outputs;
        row / rows * self.window.padded_rows() + row % rows * self.window.stride
    }

    /// Cells of a padded row of all channels.
    fn padded_width(&self) -> usize {
        self.frame.channels * self.window.channel()
    }

    /// Where in a padded row of all channels the samples of a column are that belong to the kernel in column `at`.
    fn padded_cell(&self, at: usize, channel: usize, column: usize) -> usize {
        channel * self.window.channel() + self.window.at[column] + at
    }
}

/// What [`PerPixel::pull`] finds.
pub(super) struct Pulled<T> {
    /// Rows of [`MOMENTS`] planes.
    rows: Vec<T>,
    /// Of the sharp kernels.
    sharp: Vec<Moments>,
}

impl<T: Real> PerPixel<T> {
    /// The errors of the public constructors.
    pub(super) fn new(shape: [usize; 2], centre: Centre, border: Border, stride: usize) -> Result<Self> {
        if stride == 0 {
            return Err(Error::Parameter { argument: "stride", value: stride.to_string(), expected: "at least 1" });
        }
        Ok(Self {
            grid: Grid::new(shape, centre)?,
            parameters: Parameters::default(),
            layout: Layout::default(),
            level: Level::current()?,
            tuning: Tuning::default(),
            border,
            constant: border.constant()?,
            stride,
        })
    }

    /// [`PerPixel::new`] for `k` x `k` samples.
    pub(super) fn square(k: usize, centre: Centre, border: Border, stride: usize) -> Result<Self> {
        if k == 0 {
            return Err(Error::Parameter { argument: "k", value: k.to_string(), expected: "at least 1" });
        }
        Self::new([k, k], centre, border, stride)
    }

    pub(super) fn sharing(&self) -> Sharing {
        Sharing { tile: self.tuning.tile, parallel: self.tuning.parallel }
    }

    /// The sizes for images of this shape in the operator's layout.
    pub(super) fn frame(&self, image: &[usize]) -> Frame {
        let [batches, channels, height, width] = self.layout.channels_first([image[0], image[1], image[2], image[3]]);
        self.frame_of(batches, channels, [height, width])
    }

    /// The sizes for images of (H, W) where the other side has this shape in the operator's layout.
    pub(super) fn frame_of_small(&self, small: &[usize], size: [usize; 2]) -> Frame {
        let [batches, channels, ..] = self.layout.channels_first([small[0], small[1], small[2], small[3]]);
        self.frame_of(batches, channels, size)
    }

    fn frame_of(&self, batches: usize, channels: usize, size: [usize; 2]) -> Frame {
        Frame { batches, channels, size, outputs: size.map(|n| n.div_ceil(self.stride)) }
    }

    /// Checks the shape of an array of the side with a kernel a pixel.
    pub(super) fn check_small(&self, argument: &'static str, found: &[usize], frame: Frame) -> Result<()> {
        check_shape(argument, found, &self.layout.shape(frame.small()))
    }

    /// Checks the shape of an array of the side with more pixels.
    pub(super) fn check_image(&self, argument: &'static str, found: &[usize], frame: Frame) -> Result<()> {
        check_shape(argument, found, &self.layout.shape(frame.image()))
    }

    /// Checks the shape of an array of shapes.
    pub(super) fn check_shapes(&self, argument: &'static str, found: &[usize], frame: Frame) -> Result<()> {
        let leading = [frame.batches, frame.outputs[0], frame.outputs[1]];
        check_shape(argument, found, &[&leading, self.parameters.axes()].concat())
    }

    /// The kernels that checked numbers describe; none where there are none.
    pub(super) fn kernels<'a>(&self, frame: Frame, shapes: &'a [T]) -> Result<Option<Kernels<'a, T>>> {
        if frame.kernels() == 0 {
            return Ok(None);
        }
        let [rows, columns] = frame.outputs;
        let window = Window::new(&self.grid, self.tuning.mirror != Some(false), self.stride, frame.outputs);
        let width = window.kernel_width();
        let mut planes = planes(frame.batches * rows, NUMBERS * width)?;
        let sharp = Mutex::new(Vec::new());
        let work = COPIED + if self.grid.zero.is_some() { 0 } else { window.samples() / NUMBERS };
        self.sharing().rows(&mut planes, rows, NUMBERS * width, work, |row, cells| {
            let count = self.parameters.count();
            let numbers = shapes[row * columns * count..][..columns * count].chunks_exact(count);
            for (column, numbers) in numbers.enumerate() {
                match self.coefficients(widened(numbers)) {
                    Some(coefficients) => {
                        for (plane, x) in coefficients.into_iter().enumerate() {
                            cells[plane * width + window.reach + column] = x;
                        }
                    }
                    None => sharp.lock().unwrap_or_else(PoisonError::into_inner).push(row * columns + column),
                }
            }
            if self.grid.zero.is_none() {
                T::blur_peaks(self.level, &window, cells);
            }
        });
        let mut sharp = sharp.into_inner().unwrap_or_else(PoisonError::into_inner);
        sharp.sort_unstable();
        Ok(Some(Kernels { window, frame, shapes, rows: planes, sharp }))
    }

    /// The coefficients of the exponents of a kernel, where lanes can compute it.
    fn coefficients(&self, values: [f64; 4]) -> Option<[T; 3]> {
        if self.tuning.path.is_some() {
            return None;
        }
        if self.grid.samples() == 1 {
            return Some([T::zero(); 3]);
        }
        Form::coefficients(self.parameters, values, &self.grid)
    }

    /// The padded image (B, C, H, W) of the frame.
    pub(super) fn padding(&self, kernels: &Kernels<'_, T>, linear: bool) -> Result<Padding<T>> {
        let constant = if linear { T::zero() } else { self.constant };
        Padding::new(&kernels.window, self.border, kernels.frame.size, constant)
    }

    /// The mean of a padded image under each kernel: rows of channels.
    pub(super) fn gather(&self, kernels: &Kernels<'_, T>, padded: &[T]) -> Result<Vec<T>> {
        let Kernels { window, frame, .. } = kernels;
        let (channels, width) = (frame.channels, window.width);
        let mut means = planes(frame.batches * frame.outputs[0], channels * width)?;
        if means.is_empty() {
            return Ok(means);
        }
        self.sharing().rows(&mut means, frame.outputs[0], channels * width, window.samples(), |row, cells| {
            let image = &padded[kernels.padded_row(row) * kernels.padded_width()..];
            let numbers = &kernels.rows[row * NUMBERS * window.kernel_width()..][..NUMBERS * window.kernel_width()];
            T::blur_row(self.level, window, numbers, image, channels, cells);
            let mut scratch = self.scratch();
            for &kernel in kernels.sharp(row..row + 1) {
                let (p, column) = (self.weights(kernels, kernel, &mut scratch), kernels.place(kernel).1);
                for c in 0..channels {
                    cells[c * width + column] = p
                        .chunks_exact(window.shape[1])
                        .zip(image.chunks(kernels.padded_width()))
                        .map(|(p, image)| {
                            let terms =
                                p.iter().enumerate().map(|(i, &p)| p * image[kernels.padded_cell(column, c, i)]);
                            terms.fold(T::zero(), |sum, term| sum + term)
                        })
                        .fold(T::zero(), |sum, row| sum + row);
                }
            }
        });
        Ok(means)
    }

    /// Multiplies what belongs to kernels, in rows of channels, by what their weights must be multiplied by.
    pub(super) fn normalize(&self, kernels: &Kernels<'_, T>, x: &mut [T], pulled: Option<&Pulled<T>>) -> Result<()> {
        let Kernels { window, frame, .. } = kernels;
        let (width, all) = (window.kernel_width(), frame.channels * window.kernel_width());
        if x.is_empty() {
            return Ok(());
        }
        let work = if pulled.is_some() { COPIED } else { window.samples() };
        self.sharing().rows(x, frame.outputs[0], all, work, |row, x| {
            let mut own = Vec::new();
            let shares = match pulled {
                Some(pulled) => {
                    &pulled.rows[row * MOMENTS * window.width..][(MOMENTS - 1) * window.width..][..window.width]
                }
                None => {
                    own.resize(window.width, T::zero());
                    T::blur_shares(
                        self.level,
                        window,
                        &kernels.rows[row * NUMBERS * width..][..NUMBERS * width],
                        &mut own,
                    );
                    &own
                }
            };
            for x in x.chunks_exact_mut(width) {
                x[window.reach..].iter_mut().zip(shares).for_each(|(x, &share)| *x = *x * share);
            }
        });
        Ok(())
    }

    /// The sum, in padded planes, of all kernels, each times what belongs to it in rows of channels, which is overwritten.
    pub(super) fn spread(&self, kernels: &Kernels<'_, T>, mut x: Vec<T>, pulled: Option<&Pulled<T>>) -> Result<Vec<T>> {
        let Kernels { window, frame, .. } = kernels;
        let (channels, rows, width) = (frame.channels, window.padded_rows(), kernels.padded_width());
        let mut padded = planes(frame.batches * rows, width)?;
        if padded.is_empty() {
            return Ok(padded);
        }
        // Sharp kernels are nothing among the others.
        let cells = |&kernel: &usize| (0..channels).map(move |c| (kernel, c));
        let of_sharp = kernels.sharp.iter().flat_map(cells);
        let of_sharp: Vec<T> =
            of_sharp.map(|(kernel, c)| std::mem::replace(&mut x[kernels.beside(kernel, c)], T::zero())).collect();
        self.normalize(kernels, &mut x, pulled)?;
        let work = window.samples() / self.stride / window.phases + COPIED;
        let (numbers, beside) = (NUMBERS * window.kernel_width(), channels * window.kernel_width());
        self.sharing().rows(&mut padded, rows, width, work, |row, cells| {
            let (batch, row) = (row / rows, row % rows);
            let first = batch * frame.outputs[0];
            let own = [&kernels.rows[first * numbers..], &x[first * beside..]];
            let mut scratch = vec![T::zero(); 2 * window.kernel_width()];
            T::scatter_row(self.level, window, own, row, channels, &mut scratch, cells);
        });
        if !kernels.sharp.is_empty() {
            self.spread_sharp(kernels, &of_sharp, &mut padded);
        }
        Ok(padded)
    }

    /// The transpose of the linear part of a blur, applied to `x`.
    pub(super) fn transpose(
        &self,
        x: &ArrayView4<'_, T>,
        shapes: &ArrayView<'_, T, impl Dimension>,
        frame: Frame,
        out: Output<'_, T>,
    ) -> Result<Filled> {
        let cells = self.parameters.checked("shapes", shapes)?;
        let Some(kernels) = self.kernels(frame, &cells)? else { return Ok(Filled::NOTHING) };
        let x = beside_kernels(&kernels.window, &self.layout.view(x), self.sharing())?;
        let padded = self.spread(&kernels, x, None)?;
        self.write_image(&kernels, &padded, out)
    }

    /// Adds the sharp kernels to padded planes.
    fn spread_sharp(&self, kernels: &Kernels<'_, T>, x: &[T], padded: &mut [T]) {
        let Kernels { window, frame, .. } = kernels;
        let (channels, rows, width) = (frame.channels, window.padded_rows(), kernels.padded_width());
        // Bands so high that few kernels reach over several, for each of which they are computed again.
        let mut cut = self.sharing().cut(padded.len() / width, rows, width, window.samples());
        cut.tile = cut.tile.max(2 * window.shape[0]);
        self.sharing().tiles(padded, &cut, |first, cells| {
            let (batch, first) = (first / rows, first % rows);
            let behind = first + cells.len() / width;
            let start = (first + 1).saturating_sub(window.shape[0]).div_ceil(self.stride).min(frame.outputs[0]);
            let end = behind.div_ceil(self.stride).min(frame.outputs[0]);
            let own = kernels.sharp(batch * frame.outputs[0] + start..batch * frame.outputs[0] + end.max(start));
            let mut scratch = self.scratch();
            for &kernel in own {
                let at = kernels.sharp.binary_search(&kernel).expect("one of them");
                let (x, p) = (&x[at * channels..][..channels], self.weights(kernels, kernel, &mut scratch));
                let (row, column) = kernels.place(kernel);
                let top = row % frame.outputs[0] * self.stride;
                for (j, p) in p.chunks_exact(window.shape[1]).enumerate() {
                    let row = top + j;
                    if !(first..behind).contains(&row) {
                        continue;
                    }
                    let cells = &mut cells[(row - first) * width..][..width];
                    for (c, &x) in x.iter().enumerate() {
                        for (i, &p) in p.iter().enumerate() {
                            let cell = &mut cells[kernels.padded_cell(column, c, i)];
                            *cell = *cell + p * x;
                        }
                    }
                }
            }
        });
    }

    /// The moments of the kernels where a sample has the gradient `sum over channels of x * padded`, with what belongs to
    /// kernels, `x`, in rows of channels.
    pub(super) fn pull(&self, kernels: &Kernels<'_, T>, x: &[T], padded: &[T]) -> Result<Pulled<T>> {
        let Kernels { window, frame, .. } = kernels;
        let (channels, width) = (frame.channels, window.kernel_width());
        let mut moments = planes(frame.batches * frame.outputs[0], MOMENTS * window.width)?;
        let mut sharp = vec![Moments::default(); kernels.sharp.len()];
        if channels == 0 {
            return Ok(Pulled { rows: moments, sharp });
        }
        self.sharing().rows(&mut moments, frame.outputs[0], MOMENTS * window.width, window.samples(), |row, cells| {
            let image = &padded[kernels.padded_row(row) * kernels.padded_width()..];
            let numbers = &kernels.rows[row * NUMBERS * width..][..NUMBERS * width];
            let x = &x[row * channels * width..][..channels * width];
            T::blur_moments(self.level, window, [numbers, x], image, channels, cells);
        });
        let one = |(&kernel, sums): (&usize, &mut Moments)| {
            let (row, column) = kernels.place(kernel);
            let image = &padded[kernels.padded_row(row) * kernels.padded_width()..];
            let gradients: Vec<T> = image
                .chunks(kernels.padded_width())
                .take(window.shape[0])
                .flat_map(|image| (0..window.shape[1]).map(move |i| (image, i)))
                .map(|(image, i)| {
                    let terms =
                        (0..channels).map(|c| x[kernels.beside(kernel, c)] * image[kernels.padded_cell(column, c, i)]);
                    terms.fold(T::zero(), |sum, term| sum + term)
                })
                .collect();
            let mut weights = self.scratch();
            let forms = [self.form(kernels, kernel)];
            T::moments(self.level, &self.grid, &forms, &gradients, &mut weights.weights, std::slice::from_mut(sums));
        };
        let parallel = self.tuning.parallel.unwrap_or(sharp.len() > 64);
        if parallel {
            kernels.sharp.par_iter().zip(&mut sharp).for_each(one);
        } else {
            kernels.sharp.iter().zip(&mut sharp).for_each(one);
        }
        Ok(Pulled { rows: moments, sharp })
    }

    /// Writes the gradients of the shapes.
    pub(super) fn write_shapes(&self, kernels: &Kernels<'_, T>, pulled: &Pulled<T>, out: Output<'_, T>) -> Filled {
        let (count, width) = (self.parameters.count(), kernels.window.width);
        let rows = kernels.frame.kernels();
        let cut = self.sharing().cut(rows, rows, count, 4 * COPIED);
        for_each_tile(out, rows, &cut, &|_, rows, tile| {
            for (kernel, gradient) in rows.zip(tile.accumulators().chunks_exact_mut(count)) {
                let (row, column) = kernels.place(kernel);
                let values = widened(&kernels.shapes[kernel * count..][..count]);
                let sums = match kernels.sharp.binary_search(&kernel) {
                    Ok(at) => pulled.sharp[at],
                    Err(_) => {
                        let moment = |axis: usize| {
                            let x = pulled.rows[(row * MOMENTS + axis) * width + column];
                            x.to_f64().expect("a float is an f64")
                        };
                        let (xx, xy, yy) = (moment(0), moment(1), moment(2));
                        Moments { xx, xy, yy, scale: self.grid.scale, ..Moments::default() }
                    }
                };
                add(gradient, &self.parameters.gradient(values, &sums));
            }
        })
    }

    /// Writes what lies in rows of channels beside kernels.
    pub(super) fn write_small(&self, kernels: &Kernels<'_, T>, means: &[T], out: Output<'_, T>) -> Filled {
        let (frame, width) = (kernels.frame, kernels.window.width);
        write(out, self.layout, frame.small(), self.sharing(), &|[batch, c, row], cells: &mut [T]| {
            let at = ((batch * frame.outputs[0] + row) * frame.channels + c) * width;
            cells.copy_from_slice(&means[at..][..cells.len()]);
        })
    }

    /// Writes padded planes, folded back onto the image.
    pub(super) fn write_image(&self, kernels: &Kernels<'_, T>, padded: &[T], out: Output<'_, T>) -> Result<Filled> {
        let frame = kernels.frame;
        let folding = self.padding(kernels, true)?.folding(frame.size, frame.channels);
        let fold = |at, cells: &mut [T]| folding.row(padded, at, cells);
        Ok(write(out, self.layout, frame.image(), self.sharing(), &fold))
    }

    fn form(&self, kernels: &Kernels<'_, T>, kernel: usize) -> Form<T> {
        let count = self.parameters.count();
        let values = widened(&kernels.shapes[kernel * count..][..count]);
        Form::new(self.parameters, values, None, &self.grid, self.tuning.path)
    }

    /// Room for one kernel.
    fn scratch(&self) -> Scratch<T> {
        Scratch { weights: vec![T::zero(); 2 * self.grid.x.len()], kernel: vec![T::zero(); self.grid.samples()] }
    }

    /// A kernel, sample by sample.
    fn weights<'s>(&self, kernels: &Kernels<'_, T>, kernel: usize, scratch: &'s mut Scratch<T>) -> &'s [T] {
        let forms = [self.form(kernels, kernel)];
        let out = Output::array(ArrayViewMut1::from(&mut scratch.kernel[..]), Start::Zero);
        let _ = out.write(|tile| T::maps(self.level, &self.grid, &forms, false, &mut scratch.weights, tile));
        &scratch.kernel
    }
}

/// Room for one kernel.
struct Scratch<T> {
    weights: Vec<T>,
    kernel: Vec<T>,
}
