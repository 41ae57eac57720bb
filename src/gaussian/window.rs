//! Where the samples of every kernel of an image lie in planes, the form in which inner loops read images.
//!
//! Lanes are neighbouring kernels of a row. Sample `j` of neighbouring kernels reads every `stride`-th pixel of a padded image,
//! so a row of one channel is stored by phases: pixel `r` is number `r / stride` of phase `r % stride`. A sample of a vector of
//! kernels is then a vector, wherever the stride.
//!
//! | planes | rows | a row |
//! |---|---|---|
//! | of kernels | H' a batch | `a`, `b`, `c` and the largest exponent, negated, of each kernel; [`Window::kernel_width`] each |
//! | of what belongs to kernels | H' a batch | a channel after the other, [`Window::kernel_width`] each |
//! | of a padded image | [`Window::padded_rows`] a batch | a channel after the other, [`Window::channel`] each |
//! | of results | H' a batch | [`Window::width`] each |
//!
//! Cells that stand for nothing are 0.

use super::grid::Grid;
use crate::element::Element;

/// The planes of a kernel's numbers.
pub const NUMBERS: usize = 4;

/// The samples of a window, and where they are in planes.
pub struct Window<T> {
    /// (kh, kw).
    pub shape: [usize; 2],
    pub stride: usize,
    /// (H', W').
    pub outputs: [usize; 2],
    /// The position of every column and of every row, divided by a power of two.
    pub x: Vec<T>,
    pub y: Vec<T>,
    /// Whether the last samples are those opposite to the first.
    pub mirrored: bool,
    /// Row and column of the sample nearest to the middle of kernels.
    pub nearest: [usize; 2],
    /// Where the first kernel finds the samples of every column, in a row of one channel.
    pub at: Vec<usize>,
    /// Kernels of a row, up to whole vectors.
    pub width: usize,
    /// How many kernels before the one at its number a pixel is among the samples of.
    pub reach: usize,
    /// Phases that samples are in.
    pub phases: usize,
    /// Cells of a phase.
    pub phase_width: usize,
}

impl<T: Element> Window<T> {
    /// For images of which kernels make `outputs` pixels, not none. Whether a window is its own mirror image is seen, if `mirror`.
    pub(super) fn new(grid: &Grid<T>, mirror: bool, stride: usize, outputs: [usize; 2]) -> Self {
        let [kh, kw] = grid.shape;
        let (x, y) = (grid.x[..kw].to_vec(), (0..kh).map(|row| grid.y[row * kw]).collect::<Vec<T>>());
        let width = outputs[1].next_multiple_of(T::LANES);
        let reach = (kw - 1) / stride;
        let phase_width = (width + reach).next_multiple_of(T::LANES);
        let mirrored = |z: &[T]| z.iter().zip(z.iter().rev()).all(|(&a, &b)| a == -b);
        let nearest =
            |z: &[T]| (1..z.len()).fold(0, |nearest, i| if z[i].abs() < z[nearest].abs() { i } else { nearest });
        Self {
            shape: grid.shape,
            stride,
            outputs,
            mirrored: mirror && mirrored(&x) && mirrored(&y),
            nearest: [nearest(&y), nearest(&x)],
            at: (0..kw).map(|column| column % stride * phase_width + column / stride).collect(),
            x,
            y,
            width,
            reach,
            phases: stride.min(kw),
            phase_width,
        }
    }

    /// Rows of a padded image.
    pub(super) fn padded_rows(&self) -> usize {
        self.stride * (self.outputs[0] - 1) + self.shape[0]
    }

    /// Cells of a row of one channel of a padded image.
    #[inline(always)]
    pub(super) fn channel(&self) -> usize {
        self.phases * self.phase_width
    }

    /// The column of a padded image that a cell of a row stands for.
    pub(super) fn padded_column(&self, cell: usize) -> Option<usize> {
        // Saturating: no kernel is where a stride that is longer than the image leads.
        let column = (cell % self.phase_width).saturating_mul(self.stride).saturating_add(cell / self.phase_width);
        (column < self.stride * (self.outputs[1] - 1) + self.shape[1]).then_some(column)
    }

    /// Cells of a row of what kernels are described by, of which the first [`Window::reach`] are before the first kernel.
    #[inline(always)]
    pub(super) fn kernel_width(&self) -> usize {
        self.reach + self.phase_width
    }

    /// The number of samples.
    pub(super) fn samples(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    /// The rows of kernels that have a sample in a row of a padded image, and the row of samples that it is, which ascends.
    #[inline(always)]
    pub(super) fn rows_over(&self, padded_row: usize) -> impl Iterator<Item = (usize, usize)> {
        let (stride, rows) = (self.stride, self.outputs[0]);
        let samples = (padded_row % stride..self.shape[0].min(padded_row + 1)).step_by(stride);
        samples
            .map(
                #[inline(always)]
                move |sample| ((padded_row - sample) / stride, sample),
            )
            .filter(
                #[inline(always)]
                move |&(row, _)| row < rows,
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gaussian::Centre;

    #[test]
    fn every_sample_of_every_kernel_has_a_cell() {
        for (kernel, stride, outputs) in
            [([3, 5], 1, [4, 20]), ([4, 9], 2, [3, 16]), ([5, 2], 3, [2, 17]), ([1, 40], 7, [1, 1])]
        {
            let grid = Grid::<f32>::new(kernel, Centre::Middle).unwrap();
            let window = Window::new(&grid, true, stride, outputs);
            for column in 0..kernel[1] {
                for kernel in 0..outputs[1] {
                    let cell = window.at[column] + kernel;
                    assert_eq!(window.padded_column(cell), Some(stride * kernel + column));
                }
                assert!(window.at[column] + window.width <= window.channel());
            }
            for row in 0..window.padded_rows() {
                let expected: Vec<_> = (0..kernel[0])
                    .flat_map(|sample| (0..outputs[0]).map(move |kernel| (kernel, sample)))
                    .filter(|(kernel, sample)| stride * kernel + sample == row)
                    .collect();
                assert_eq!(window.rows_over(row).collect::<Vec<_>>(), expected);
            }
        }
    }

    #[test]
    fn the_nearest_sample_is_found() {
        let nearest = |shape, centre| Window::new(&Grid::<f64>::new(shape, centre).unwrap(), false, 1, [1, 1]).nearest;
        assert_eq!(nearest([21, 21], Centre::Middle), [10, 10]);
        assert_eq!(nearest([4, 6], Centre::Half), [2, 3]);
        assert_eq!(nearest([4, 6], Centre::At(9.0, -3.0)), [0, 5]);
    }
}
