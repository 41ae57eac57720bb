//! Blocks of sequences of matrices as spectra, and their products: what takes a block of terms to a block of outputs in
//! fewer operations than there are pairs.
//!
//! With h terms and h outputs, `out_t = sum over s < h of L_s R_{h - 1 + t - s}` needs 2 h matrices R, a window of their
//! sequence. It is a part of the cyclic convolution of length 2 h, the one that nothing wraps into: at each frequency one
//! product of matrices. Lanes run along frequencies, so that a product of spectra is a sum over batches as any other.
//!
//! A window that decays or grows is levelled first: matrix i of both factors is divided by the i-th power of a number, and the
//! output behind i by that power again. What was geometric is flat then, and a transform as precise for its last number
//! as for its first.
//!
//! Numbers are `f64` whatever the elements are.

use super::kernels::{Kernels, Left, Sums};
use crate::Real;
use crate::element::Element;
use crate::simd::Level;
use realfft::num_complex::Complex;
use realfft::{ComplexToReal, RealFftPlanner, RealToComplex};
use std::ops::Range;
use std::sync::Arc;

const LANES: usize = <f64 as Element>::LANES;

/// Half an epsilon.
const U: f64 = f64::EPSILON / 2.0;

/// Below the smallest norm, and the smallest bound, that a block is judged by: what is lost to underflow is less.
const FLOOR: f64 = 1e-280;

/// Halves of a window whose magnitudes differ by fewer bits are as good as level.
const LEVEL_BITS: f64 = 4.0;

/// The power of two that levelling multiplies by at most.
const MOST_BITS: f64 = 900.0;

/// A bound of a Euclidean norm, from the largest magnitude and the sum of all, which overflow and underflow only where the
/// numbers do. It is no number where one of them is not finite.
fn norm(most: f64, sum: f64) -> f64 {
    most.sqrt() * sum.sqrt() + 0.0 * sum
}

/// The transforms of windows of 2 h matrices.
pub(super) struct Transform {
    /// h.
    half: usize,
    forward: Arc<dyn RealToComplex<f64>>,
    inverse: Arc<dyn ComplexToReal<f64>>,
}

/// A window of right factors: planes of real and imaginary parts a vector of frequencies.
pub(super) struct Window {
    cells: Vec<f64>,
    /// Of each entry.
    norms: Vec<f64>,
    /// What matrix i of both factors is multiplied by, and an output divided.
    pub(super) levelling: Vec<f64>,
}

/// Matrices as they lie in memory: entry e of matrix i is `cells[at + i * step + offset(e)]`.
pub(super) struct Entries<'a, T, F> {
    pub(super) cells: &'a [T],
    pub(super) at: usize,
    pub(super) step: usize,
    pub(super) offset: F,
    /// How many there are of either.
    pub(super) matrices: usize,
    pub(super) entries: usize,
}

impl<T: Real, F: Fn(usize) -> usize> Entries<'_, T, F> {
    fn entry(&self, i: usize, offset: usize) -> f64 {
        self.cells[self.at + i * self.step + offset].to_f64().expect("a float is an f64")
    }

    /// The power of two, a matrix, that they grow by.
    fn growth(&self) -> f64 {
        let most = |matrices: Range<usize>| {
            let entries = matrices.flat_map(|i| (0..self.entries).map(move |e| self.entry(i, (self.offset)(e)).abs()));
            entries.fold(0.0, f64::max)
        };
        let half = self.matrices / 2;
        let bits = (most(half..2 * half) / most(0..half)).log2();
        if !bits.is_finite() || bits.abs() < LEVEL_BITS {
            return 0.0;
        }
        // Few bits, so that every multiple is exact.
        const PARTS: f64 = 1024.0;
        let most = MOST_BITS / self.matrices as f64;
        (PARTS * (bits / half as f64).clamp(-most, most)).trunc() / PARTS
    }

    /// Of the levelled sequence of each entry. It is no number where it is so small that underflow would show.
    fn norms(&self, levelling: &[f64], norms: &mut Vec<f64>) {
        norms.clear();
        norms.resize(self.entries, 0.0);
        let mut sums = vec![0.0; self.entries];
        for (i, level) in (0..self.matrices).zip(levelling) {
            for (e, (most, sum)) in norms.iter_mut().zip(&mut sums).enumerate() {
                let x = self.entry(i, (self.offset)(e)).abs();
                let levelled = if x * level < f64::MIN_POSITIVE && x > 0.0 { f64::MIN_POSITIVE } else { x * level };
                *most = if levelled > *most { levelled } else { *most };
                *sum += levelled;
            }
        }
        for (most, sum) in norms.iter_mut().zip(sums) {
            *most = if *most > 0.0 && *most < FLOOR { f64::NAN } else { norm(*most, sum) };
        }
    }
}

/// Memory that a task uses again and again, for transforms up to some length.
pub(super) struct Space {
    lines: Lines,
    left: Vec<f64>,
    norms: Vec<f64>,
    product: Vec<f64>,
    bounds: Vec<f64>,
    /// The outputs of [`Transform::multiply`], (h, rows, columns).
    pub(super) outputs: Vec<f64>,
}

impl Space {
    pub(super) fn new(largest: &Transform, [rows, inner, columns]: [usize; 3]) -> Self {
        let frequencies = largest.vectors() * LANES;
        Self {
            lines: Lines::new(largest),
            left: vec![0.0; 3 * frequencies * rows * inner],
            norms: Vec::with_capacity(rows * inner),
            product: vec![0.0; 2 * frequencies * rows * columns],
            bounds: Vec::with_capacity(rows * columns),
            outputs: vec![0.0; largest.half * rows * columns],
        }
    }
}

/// The sequences of a few entries, and the spectrum of one.
struct Lines {
    cells: Vec<f64>,
    spectrum: Vec<Complex<f64>>,
    scratch: Vec<Complex<f64>>,
}

impl Lines {
    fn new(largest: &Transform) -> Self {
        let scratch = largest.forward.get_scratch_len().max(largest.inverse.get_scratch_len());
        Self {
            cells: vec![0.0; 2 * largest.half * LANES],
            spectrum: vec![Complex::default(); largest.vectors() * LANES],
            scratch: vec![Complex::default(); scratch],
        }
    }
}

impl Transform {
    pub(super) fn new(planner: &mut RealFftPlanner<f64>, half: usize) -> Self {
        let (forward, inverse) = (planner.plan_fft_forward(2 * half), planner.plan_fft_inverse(2 * half));
        Self { half, forward, inverse }
    }

    /// Vectors of frequencies.
    fn vectors(&self) -> usize {
        (self.half + 1).div_ceil(LANES)
    }

    /// The relative error of a transform by Euclidean norms: Higham, Accuracy and Stability of Numerical Algorithms,
    /// theorem 24.2, with a step more than those of radix 2 for what makes it real.
    fn error(&self) -> f64 {
        let steps = (2 * self.half).ilog2() + 1;
        7.0 * U * f64::from(steps)
    }

    /// Transforms matrices, followed by zeros, to planes `PLANES` of parts: real, imaginary and negative imaginary are 0, 1
    /// and 2.
    fn transform<T: Real, const PLANES: usize>(
        &self,
        from: &Entries<'_, T, impl Fn(usize) -> usize>,
        levelling: &[f64],
        planes: [usize; PLANES],
        Lines { cells: lines, spectrum, scratch }: &mut Lines,
        cells: &mut [f64],
    ) {
        let (len, entries) = (2 * self.half, from.entries);
        let spectrum = &mut spectrum[..self.vectors() * LANES];
        spectrum[self.half + 1..].fill(Complex::default());
        let scratch = &mut scratch[..self.forward.get_scratch_len()];
        // As many entries as a line of memory has of them.
        for first in (0..entries).step_by(LANES) {
            let some = LANES.min(entries - first);
            let mut offsets = [0; LANES];
            for (e, offset) in offsets[..some].iter_mut().enumerate() {
                *offset = (from.offset)(first + e);
            }
            for (i, level) in (0..from.matrices).zip(levelling) {
                for (e, &offset) in offsets[..some].iter().enumerate() {
                    lines[e * len + i] = from.entry(i, offset) * level;
                }
            }
            for (e, line) in lines.chunks_exact_mut(len).enumerate().take(some) {
                line[from.matrices..].fill(0.0);
                self.forward
                    .process_with_scratch(line, &mut spectrum[..=self.half], scratch)
                    .expect("slices of the lengths that were asked for");
                let groups = spectrum.chunks_exact(LANES).zip(cells.chunks_exact_mut(PLANES * entries * LANES));
                for (frequencies, cells) in groups {
                    for (plane, part) in planes.iter().enumerate() {
                        let out = &mut cells[(plane * entries + first + e) * LANES..][..LANES];
                        for (out, x) in out.iter_mut().zip(frequencies) {
                            *out = match part {
                                0 => x.re,
                                1 => x.im,
                                _ => -x.im,
                            };
                        }
                    }
                }
            }
        }
    }

    /// A window of right factors.
    pub(super) fn window<T: Real>(&self, from: &Entries<'_, T, impl Fn(usize) -> usize>) -> Window {
        let (mut cells, mut norms) = (vec![0.0; self.vectors() * 2 * from.entries * LANES], Vec::new());
        let growth = from.growth();
        let levelling: Vec<f64> = (0..2 * self.half).map(|i| (-growth * i as f64).exp2()).collect();
        from.norms(&levelling, &mut norms);
        self.transform(from, &levelling, [0, 1], &mut Lines::new(self), &mut cells);
        Window { cells, norms, levelling }
    }

    /// The outputs of a block of left factors, of so many rows, and a window: whether each of them, levelled, is within
    /// `allowed`, which has a bound an entry. If not, they are anything.
    pub(super) fn multiply<T: Real>(
        &self,
        left: &Entries<'_, T, impl Fn(usize) -> usize>,
        window: &Window,
        [rows, inner, columns]: [usize; 3],
        allowed: &[f64],
        level: Level,
        space: &mut Space,
    ) -> bool {
        let Space { lines, left: spectra, norms, product, bounds, outputs } = space;
        left.norms(&window.levelling, norms);
        let error = 2.0 * self.error() * (1.0 + self.error()) + 3.0 * inner as f64 * U;
        bounds.clear();
        for (row, allowed) in norms.chunks_exact(inner).zip(allowed.chunks_exact(columns)) {
            for (column, &allowed) in allowed.iter().enumerate() {
                let norms = row.iter().enumerate().map(|(c, norm)| norm * window.norms[c * columns + column]);
                let bound = 1.01 * error * norms.sum::<f64>();
                if !is_within(bound, allowed) {
                    return false;
                }
                bounds.push(bound);
            }
        }
        // -Im behind Re, so that both parts of a product are sums of two terms.
        let spectra = &mut spectra[..self.vectors() * 3 * rows * inner * LANES];
        self.transform(left, &window.levelling, [1, 0, 2], lines, spectra);
        let (cells, squares) = (rows * columns, inner * columns);
        let product = &mut product[..self.vectors() * 2 * cells * LANES];
        let blocks = spectra.chunks_exact(3 * rows * inner * LANES).zip(window.cells.chunks_exact(2 * squares * LANES));
        for ((left, right), out) in blocks.zip(product.chunks_exact_mut(2 * cells * LANES)) {
            let (real, imaginary) = out.split_at_mut(cells * LANES);
            for (plane, out) in [imaginary, real].into_iter().enumerate() {
                let job = Sums {
                    left: &left[plane * rows * inner * LANES..],
                    kind: Left::Vectors,
                    left_steps: [rows * inner * LANES, inner * LANES, LANES],
                    right,
                    right_at: 0,
                    right_step: (squares * LANES) as isize,
                    right_steps: [columns * LANES, LANES],
                    rows,
                    vectors: columns,
                    inner,
                    terms: 2,
                    weights: None,
                };
                f64::sums(level, &job, false, out);
            }
        }
        let levelling = &window.levelling[self.half - 1..];
        self.outputs(product, levelling, lines, (bounds, allowed), &mut outputs[..self.half * cells])
    }

    /// Back from spectra.
    fn outputs(
        &self,
        product: &[f64],
        levelling: &[f64],
        Lines { cells: lines, spectrum, scratch }: &mut Lines,
        (bounds, allowed): (&[f64], &[f64]),
        outputs: &mut [f64],
    ) -> bool {
        let (len, cells, error) = (2 * self.half, allowed.len(), 1.01 * self.error());
        let spectrum = &mut spectrum[..self.vectors() * LANES];
        let scratch = &mut scratch[..self.inverse.get_scratch_len()];
        for first in (0..cells).step_by(LANES) {
            let some = LANES.min(cells - first);
            for (e, line) in lines.chunks_exact_mut(len).enumerate().take(some) {
                for (out, product) in spectrum.chunks_exact_mut(LANES).zip(product.chunks_exact(2 * cells * LANES)) {
                    let (real, imaginary) = product.split_at(cells * LANES);
                    let at = (first + e) * LANES;
                    for ((out, &re), &im) in out.iter_mut().zip(&real[at..][..LANES]).zip(&imaginary[at..][..LANES]) {
                        *out = Complex { re, im };
                    }
                }
                spectrum[0].im = 0.0;
                spectrum[self.half].im = 0.0;
                self.inverse
                    .process_with_scratch(&mut spectrum[..=self.half], line, scratch)
                    .expect("slices of the lengths that were asked for");
                let most = line.iter().fold(0.0f64, |most, x| most.max(x.abs()));
                let sum = line.iter().map(|x| x.abs()).sum();
                let bound = bounds[first + e] + error * norm(most, sum) / len as f64;
                if !is_within(bound, allowed[first + e]) {
                    return false;
                }
            }
            for ((t, out), level) in outputs.chunks_exact_mut(cells).enumerate().zip(levelling) {
                let scale = 1.0 / (len as f64 * level);
                for (e, out) in out[first..][..some].iter_mut().enumerate() {
                    *out = lines[e * len + self.half - 1 + t] * scale;
                }
            }
        }
        true
    }
}

/// Whether an error is allowed: none, or one that is, with what is lost to underflow.
fn is_within(bound: f64, allowed: f64) -> bool {
    bound == 0.0 || bound.is_finite() && bound + FLOOR <= allowed
}
