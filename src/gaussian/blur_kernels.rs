//! The inner loops of blurs: lanes are neighbouring kernels, and each loop runs over the samples of a window.
//!
//! A sample's weight is computed in registers where it is used and never stored, so that no array is as large as all kernels.
//! Sums are taken over a row of samples and then over rows, so that rounding grows with kw + kh and not with their product. In
//! a window that is its own mirror image two opposite samples have one weight, which is computed once.
//!
//! Exponents are those of 2. `a`, `b` and `c` are at most so large that their rounding stays well below 1, and the largest
//! exponent of a kernel has been subtracted: none is above 1/2.

use super::window::{NUMBERS, Window};
use crate::element::Element;
use crate::simd::math::exp2;
use crate::simd::{Level, MOST_LANES, Simd, Vector, at};

/// Channels whose sums are kept in registers together.
const BLOCK: usize = 4;

/// What [`Kernels::blur_moments`] finds of a kernel: the moments xx, xy and yy of its weights with a gradient, and 1 / the sum of weights.
pub const MOMENTS: usize = 4;

/// The inner loops of blurs, compiled here once for `f32` and `f64`. Rows are those of [`window`](super::window).
pub trait Kernels: Element {
    /// The largest exponent of each kernel of a row, negated, into the row.
    fn blur_peaks(level: Level, window: &Window<Self>, kernels: &mut [Self]);

    /// 1 / the sum of the weights of each kernel of a row.
    fn blur_shares(level: Level, window: &Window<Self>, kernels: &[Self], out: &mut [Self]);

    /// The mean of an image under each kernel of a row, channel by channel. `image` starts at the row of the first samples.
    fn blur_row(
        level: Level,
        window: &Window<Self>,
        kernels: &[Self],
        image: &[Self],
        channels: usize,
        out: &mut [Self],
    );

    /// Adds, to a row of a padded image, all kernels over it, each times its number in `x`. `kernels` and `x` are those of a
    /// batch; `scratch` has room for two planes of a row of kernels.
    fn scatter_row(
        level: Level,
        window: &Window<Self>,
        kernels: [&[Self]; 2],
        row: usize,
        channels: usize,
        scratch: &mut [Self],
        out: &mut [Self],
    );

    /// [`MOMENTS`] of each kernel of a row, where a sample has the gradient `sum over channels of x * image`.
    fn blur_moments(
        level: Level,
        window: &Window<Self>,
        kernels: [&[Self]; 2],
        image: &[Self],
        channels: usize,
        out: &mut [Self],
    );
}

/// Runs a kernel body for `C` of 1 to [`BLOCK`] channels at a level.
macro_rules! of_channels {
    ($channels:expr, $level:expr, |$s:ident, $c:ident| $body:expr) => {
        match $channels {
            1 => of_channels!(1, $level, $s, $c, $body),
            2 => of_channels!(2, $level, $s, $c, $body),
            3 => of_channels!(3, $level, $s, $c, $body),
            _ => of_channels!(BLOCK, $level, $s, $c, $body),
        }
    };
    ($channels:expr, $level:expr, $s:ident, $c:ident, $body:expr) => {{
        const $c: usize = $channels;
        at!($level, |$s| $body)
    }};
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn blur_peaks(level: Level, window: &Window<$t>, kernels: &mut [$t]) {
            at!(level, |s| peaks(s, window, kernels));
        }
        fn blur_shares(level: Level, window: &Window<$t>, kernels: &[$t], out: &mut [$t]) {
            if window.mirrored {
                at!(level, |s| gather::<_, _, 0, true>(s, window, kernels, &[], 0, out));
            } else {
                at!(level, |s| gather::<_, _, 0, false>(s, window, kernels, &[], 0, out));
            }
        }
        fn blur_row(
            level: Level,
            window: &Window<$t>,
            kernels: &[$t],
            image: &[$t],
            channels: usize,
            out: &mut [$t],
        ) {
            let pitch = channels * window.channel();
            for (block, out) in out.chunks_mut(BLOCK * window.width).enumerate() {
                let (image, n) = (&image[block * BLOCK * window.channel()..], out.len() / window.width);
                if window.mirrored {
                    of_channels!(n, level, |s, C| gather::<_, _, C, true>(s, window, kernels, image, pitch, out));
                } else {
                    of_channels!(n, level, |s, C| gather::<_, _, C, false>(s, window, kernels, image, pitch, out));
                }
            }
        }
        fn scatter_row(
            level: Level,
            window: &Window<$t>,
            [kernels, x]: [&[$t]; 2],
            row: usize,
            channels: usize,
            scratch: &mut [$t],
            out: &mut [$t],
        ) {
            let pitch = channels * window.kernel_width();
            for (block, out) in out.chunks_mut(BLOCK * window.channel()).enumerate() {
                let (x, n) = (&x[block * BLOCK * window.kernel_width()..], out.len() / window.channel());
                of_channels!(n, level, |s, C| scatter::<_, _, C>(s, window, [kernels, x], pitch, row, scratch, out));
            }
        }
        fn blur_moments(
            level: Level,
            window: &Window<$t>,
            [kernels, x]: [&[$t]; 2],
            image: &[$t],
            channels: usize,
            out: &mut [$t],
        ) {
            if channels > BLOCK {
                if window.mirrored {
                    at!(level, |s| pull::<_, _, 0, true>(s, window, kernels, x, image, out));
                } else {
                    at!(level, |s| pull::<_, _, 0, false>(s, window, kernels, x, image, out));
                }
            } else if window.mirrored {
                of_channels!(channels, level, |s, C| pull::<_, _, C, true>(s, window, kernels, x, image, out));
            } else {
                of_channels!(channels, level, |s, C| pull::<_, _, C, false>(s, window, kernels, x, image, out));
            }
        }
    })* };
}
kernels!(f32, f64);

/// The numbers of a vector of kernels: a, b, c and the exponent that is added.
#[inline(always)]
fn numbers<T: Element, S: Simd>(s: S, window: &Window<T>, kernels: &[T], at: usize) -> [S::V<T>; NUMBERS] {
    let width = window.kernel_width();
    [
        s.load(&kernels[at..]),
        s.load(&kernels[width + at..]),
        s.load(&kernels[2 * width + at..]),
        s.load(&kernels[3 * width + at..]),
    ]
}

/// The exponents of a row of samples: `x (a x + b y) + (c y y + d)`.
#[derive(Clone, Copy)]
struct Row<V> {
    a: V,
    by: V,
    base: V,
}

impl<V: Copy> Row<V> {
    #[inline(always)]
    fn new<T: Element>([a, b, c, d]: [V; NUMBERS], y: V) -> Self
    where
        V: Vector<T>,
    {
        Self { a, by: b * y, base: (c * y).mul_add(y, d) }
    }

    #[inline(always)]
    fn at<T: Element>(self, x: V) -> V
    where
        V: Vector<T>,
    {
        x.mul_add(self.a.mul_add(x, self.by), self.base)
    }
}

#[inline(always)]
fn peaks<T: Element, S: Simd>(s: S, window: &Window<T>, kernels: &mut [T]) {
    let zero = s.splat(T::zero());
    for v in (0..window.width).step_by(T::LANES) {
        let [a, b, c, _] = numbers(s, window, kernels, window.reach + v);
        let mut most = s.splat(T::neg_infinity());
        for &y in &window.y {
            let row = Row::new([a, b, c, zero], s.splat(y));
            for &x in &window.x {
                most = most.max(row.at(s.splat(x)));
            }
        }
        (zero - most).store(&mut kernels[3 * window.kernel_width() + window.reach + v..]);
    }
}

/// 1 / x a lane.
#[inline(always)]
fn reciprocal<T: Element, S: Simd>(s: S, x: S::V<T>) -> S::V<T> {
    let mut lanes = [T::one(); MOST_LANES];
    x.store(&mut lanes);
    for lane in &mut lanes {
        *lane = T::one() / *lane;
    }
    s.load(&lanes)
}

/// Rows of samples that are looped over, the last with so many samples, and whether one sample in the middle is left.
#[inline(always)]
fn half<T: Element, const MIRRORED: bool>(window: &Window<T>) -> (usize, usize, bool) {
    let [kh, kw] = window.shape;
    if !MIRRORED {
        return (kh, kw, false);
    }
    if kh % 2 == 1 { (kh / 2 + 1, kw / 2, kw % 2 == 1) } else { (kh / 2, kw, false) }
}

/// [`Kernels::blur_row`] for `C` channels, of an image with `pitch` cells a row; for none, [`Kernels::blur_shares`].
#[inline(always)]
fn gather<T: Element, S: Simd, const C: usize, const MIRRORED: bool>(
    s: S,
    window: &Window<T>,
    kernels: &[T],
    image: &[T],
    pitch: usize,
    out: &mut [T],
) {
    let ([kh, kw], channel) = (window.shape, window.channel());
    let zero = s.splat(T::zero());
    let (rows, last, middle) = half::<T, MIRRORED>(window);
    for v in (0..window.width).step_by(T::LANES) {
        let numbers = numbers(s, window, kernels, window.reach + v);
        let (mut total, mut totals) = (zero, [zero; C]);
        for (j, &y) in window.y[..rows].iter().enumerate() {
            let row = Row::new(numbers, s.splat(y));
            let samples = if j + 1 == rows { last } else { kw };
            let (mut sum, mut sums) = (zero, [zero; C]);
            let (own, opposite) = (&image[j * pitch..], &image[if MIRRORED { (kh - 1 - j) * pitch } else { 0 }..]);
            for i in 0..samples {
                let weight = exp2(s, row.at(s.splat(window.x[i])));
                sum = sum + weight;
                for (c, sum) in sums.iter_mut().enumerate() {
                    *sum = weight.mul_add(s.load(&own[c * channel + window.at[i] + v..]), *sum);
                    if MIRRORED {
                        *sum = weight.mul_add(s.load(&opposite[c * channel + window.at[kw - 1 - i] + v..]), *sum);
                    }
                }
            }
            total = total + sum;
            for (total, sum) in totals.iter_mut().zip(sums) {
                *total = *total + sum;
            }
        }
        if MIRRORED {
            total = total + total;
        }
        if middle {
            // At 0, where the exponent is.
            total = total + s.splat(T::one());
            for (c, total) in totals.iter_mut().enumerate() {
                *total = *total + s.load(&image[(kh / 2) * pitch + c * channel + window.at[kw / 2] + v..]);
            }
        }
        let share = reciprocal(s, total);
        if C == 0 {
            share.store(&mut out[v..]);
        }
        for (c, total) in totals.into_iter().enumerate() {
            (total * share).store(&mut out[c * window.width + v..]);
        }
    }
}

/// [`Kernels::scatter_row`] for `C` channels, of an `x` with `pitch` cells a row.
///
/// The exponents of a row of samples are of second order in `x` alone, with coefficients that are computed for a whole row of
/// kernels at first. Lanes are neighbouring pixels: `back` samples further, kernels are as many before.
#[inline(always)]
fn scatter<T: Element, S: Simd, const C: usize>(
    s: S,
    window: &Window<T>,
    [kernels, x]: [&[T]; 2],
    pitch: usize,
    padded_row: usize,
    scratch: &mut [T],
    out: &mut [T],
) {
    let width = window.kernel_width();
    let (slopes, bases) = scratch.split_at_mut(width);
    let zero = s.splat(T::zero());
    for (row, j) in window.rows_over(padded_row) {
        let (own, x) = (&kernels[row * NUMBERS * width..][..NUMBERS * width], &x[row * pitch..]);
        let y = s.splat(window.y[j]);
        for block in 0..width.div_ceil(T::LANES) {
            // The last one overlaps the one before.
            let at = (block * T::LANES).min(width - T::LANES);
            let Row { by, base, .. } = Row::new(numbers(s, window, own, at), y);
            by.store(&mut slopes[at..]);
            base.store(&mut bases[at..]);
        }
        for phase in 0..window.phases {
            for v in (0..window.phase_width).step_by(T::LANES) {
                let mut sums = [zero; C];
                let samples = window.x[phase..].iter().step_by(window.stride);
                // From the kernel at the number of the pixel back to the one whose last sample it is.
                let own_kernels = window.reach + v + 1 - samples.len()..window.reach + v + T::LANES;
                let a = own[own_kernels.clone()].windows(T::LANES).rev();
                let slopes = slopes[own_kernels.clone()].windows(T::LANES).rev();
                let bases = bases[own_kernels.clone()].windows(T::LANES).rev();
                let mut at = own_kernels.end - T::LANES;
                for (((&z, a), by), base) in samples.zip(a).zip(slopes).zip(bases) {
                    let row = Row { a: s.load(a), by: s.load(by), base: s.load(base) };
                    let weight = exp2(s, row.at(s.splat(z)));
                    for (c, sum) in sums.iter_mut().enumerate() {
                        *sum = weight.mul_add(s.load(&x[c * width + at..]), *sum);
                    }
                    at = at.wrapping_sub(1);
                }
                for (c, sum) in sums.into_iter().enumerate() {
                    let total = &mut out[c * window.channel() + phase * window.phase_width + v..];
                    (s.load(total) + sum).store(total);
                }
            }
        }
    }
}

/// The gradients of samples: the products of a vector of `x` with an image, over `C` channels, or over all if 0.
struct Products<'a, T, V, const C: usize> {
    first: [V; C],
    x: &'a [T],
    x_width: usize,
    image: &'a [T],
    pitch: usize,
    channel: usize,
}

impl<'a, T: Element, V: Vector<T>, const C: usize> Products<'a, T, V, C> {
    #[inline(always)]
    fn new(s: V::Token, window: &Window<T>, x: &'a [T], v: usize, image: &'a [T]) -> Self {
        let (x_width, channel) = (window.kernel_width(), window.channel());
        let pitch = x.len() / x_width * channel;
        let x = &x[window.reach + v..];
        let mut first = [V::splat(s, T::zero()); C];
        for (c, first) in first.iter_mut().enumerate() {
            *first = V::load(s, &x[c * x_width..]);
        }
        Self { first, x, x_width, image: &image[v..], pitch, channel }
    }

    /// In a row of the image, at a cell. The order of sums is the same at all.
    #[inline(always)]
    fn at(&self, s: V::Token, row: usize, cell: usize) -> V {
        let image = &self.image[row * self.pitch + cell..];
        let mut sum = V::splat(s, T::zero());
        if C == 0 {
            for (c, x) in self.x.chunks(self.x_width).enumerate() {
                sum = V::load(s, x).mul_add(V::load(s, &image[c * self.channel..]), sum);
            }
        }
        for (c, x) in self.first.iter().enumerate() {
            sum = x.mul_add(V::load(s, &image[c * self.channel..]), sum);
        }
        sum
    }

    /// How far the gradient of a sample is above a number, and if `MIRRORED` that of the opposite sample, together.
    #[inline(always)]
    fn above<const MIRRORED: bool>(&self, s: V::Token, window: &Window<T>, j: usize, i: usize, number: V) -> V {
        let above = self.at(s, j, window.at[i]) - number;
        if !MIRRORED {
            return above;
        }
        let [kh, kw] = window.shape;
        above + (self.at(s, kh - 1 - j, window.at[kw - 1 - i]) - number)
    }
}

/// [`Kernels::blur_moments`] for `C` channels, or for any number if 0.
///
/// Weights are computed twice, first for the mean `s` of the gradients, then for the moments of `h = p (g - s)`. Both times
/// gradients are taken relative to that of the sample nearest to the middle: one that is the same at all samples gives exactly 0,
/// and a large mean costs no digits. What rounding leaves of `sum h`, which is 0, corrects the moments.
#[inline(always)]
fn pull<T: Element, S: Simd, const C: usize, const MIRRORED: bool>(
    s: S,
    window: &Window<T>,
    kernels: &[T],
    x: &[T],
    image: &[T],
    out: &mut [T],
) {
    let (kw, zero, one) = (window.shape[1], s.splat(T::zero()), s.splat(T::one()));
    let (rows, last, middle) = half::<T, MIRRORED>(window);
    for v in (0..window.width).step_by(T::LANES) {
        let numbers = numbers(s, window, kernels, window.reach + v);
        let gradients = Products::<T, S::V<T>, C>::new(s, window, x, v, image);
        let nearest = gradients.at(s, window.nearest[0], window.at[window.nearest[1]]);
        let (mut total, mut mean) = (zero, zero);
        for (j, &y) in window.y[..rows].iter().enumerate() {
            let row = Row::new(numbers, s.splat(y));
            let (mut weights, mut products) = (zero, zero);
            for i in 0..if j + 1 == rows { last } else { kw } {
                let weight = exp2(s, row.at(s.splat(window.x[i])));
                weights = weights + weight;
                products = weight.mul_add(gradients.above::<MIRRORED>(s, window, j, i, nearest), products);
            }
            (total, mean) = (total + weights, mean + products);
        }
        if MIRRORED {
            total = total + total;
        }
        if middle {
            // At 0, where the exponent is, and the gradient that all are relative to.
            total = total + one;
        }
        let share = reciprocal(s, total);
        let relative = mean * share;
        let mean = nearest + relative;
        // Sums of weights with xx, xy and yy, and of h, with 1 last.
        let (mut weights, mut products) = ([zero; 3], [zero; 4]);
        for (j, &y) in window.y[..rows].iter().enumerate() {
            let y = s.splat(y);
            let row = Row::new(numbers, y);
            // With 1, x and xx.
            let (mut of_weights, mut of_products) = ([zero; 3], [zero; 3]);
            for i in 0..if j + 1 == rows { last } else { kw } {
                let z = s.splat(window.x[i]);
                let weight = exp2(s, row.at(z));
                let along = weight * z;
                of_weights = [of_weights[0] + weight, of_weights[1] + along, along.mul_add(z, of_weights[2])];
                let product = weight * gradients.above::<MIRRORED>(s, window, j, i, mean);
                let along = product * z;
                of_products = [of_products[0] + product, of_products[1] + along, along.mul_add(z, of_products[2])];
            }
            for (sums, [one, along, squared]) in [(&mut weights[..], of_weights), (&mut products[..3], of_products)] {
                sums[0] = sums[0] + squared;
                sums[1] = along.mul_add(y, sums[1]);
                sums[2] = (one * y).mul_add(y, sums[2]);
            }
            products[3] = products[3] + of_products[0];
        }
        if MIRRORED {
            for sum in &mut weights {
                *sum = *sum + *sum;
            }
        }
        if middle {
            products[3] = products[3] + (nearest - mean);
        }
        let left = products[3] * share;
        for axis in 0..3 {
            let moment = share * (products[axis] - left * weights[axis]);
            moment.store(&mut out[axis * window.width + v..]);
        }
        share.store(&mut out[(MOMENTS - 1) * window.width + v..]);
    }
}
