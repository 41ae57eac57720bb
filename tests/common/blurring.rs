//! Blurs with a kernel a pixel as plain loops, and their transposes, written from the contract.
//!
//! A sum of n products in any order is within n u of their magnitudes, beside what the factors are off. Images lie as
//! (B, H, W, C).

use super::gaussian::{Bounded, Gradient, Map, Window};
use super::wide::{Referred, Wide};
use ndarray::{Array4, ArrayView4};
use pullback::gaussian::Border;

/// Which of `n` samples stands at `at`, by the rules of numpy.pad, one fold at a time. None is the constant.
pub fn source(border: Border, at: isize, n: usize) -> Option<usize> {
    let (mut at, n) = (at, n as isize);
    while !(0..n).contains(&at) {
        at = match border {
            Border::Reflect if n == 1 => 0,
            Border::Reflect if at < 0 => -at,
            Border::Reflect => 2 * (n - 1) - at,
            Border::Symmetric if at < 0 => -1 - at,
            Border::Symmetric => 2 * n - 1 - at,
            Border::Edge if at < 0 => 0,
            Border::Edge => n - 1,
            Border::Wrap if at < 0 => at + n,
            Border::Wrap => at - n,
            _ => return None,
        };
    }
    Some(at as usize)
}

/// How kernels lie on an image.
#[derive(Clone, Copy, Debug)]
pub struct Placement {
    /// (kh, kw)
    pub window: [usize; 2],
    pub border: Border,
    pub stride: usize,
    /// H, W
    pub size: [usize; 2],
}

/// A kernel a pixel, row by row: (B, H', W').
pub struct Kernels<T: Referred> {
    pub placement: Placement,
    pub maps: Vec<Map<T>>,
}

impl Placement {
    /// H', W'
    pub fn outputs(&self) -> [usize; 2] {
        self.size.map(|n| n.div_ceil(self.stride))
    }

    /// The image's pixel under each sample of the kernel at `[u, v]`.
    fn under(&self, [u, v]: [usize; 2]) -> Vec<Option<[usize; 2]>> {
        let [kh, kw] = self.window;
        let along = |at: usize, j: usize, k: usize, n: usize| {
            source(self.border, (self.stride * at + j) as isize - (k / 2) as isize, n)
        };
        let samples = (0..kh).flat_map(|y| (0..kw).map(move |x| (y, x)));
        samples.map(|(y, x)| Some([along(u, y, kh, self.size[0])?, along(v, x, kw, self.size[1])?])).collect()
    }

    fn constant<T: Referred>(&self) -> T {
        if let Border::Constant(value) = self.border { T::from_f64(value).expect("rounded") } else { T::zero() }
    }
}

/// A sum of products with factors that are off.
struct Sum<W> {
    value: W,
    magnitude: f64,
    error: f64,
    terms: usize,
}

impl<W: Wide> Sum<W> {
    fn new() -> Self {
        Self::starting_at(W::zero())
    }

    fn starting_at(value: W) -> Self {
        Self { value, magnitude: value.to_f64().abs(), error: 0.0, terms: 0 }
    }

    fn add(&mut self, entry: Bounded<W>, factor: W) {
        let size = factor.to_f64().abs();
        self.value = self.value + entry.value * factor;
        self.magnitude += entry.value.to_f64() * size;
        self.error += entry.error * size;
        self.terms += 1;
    }

    fn bounded<T: Referred>(&self) -> Bounded<W> {
        let terms = (self.terms + 4) as f64;
        Bounded { value: self.value, error: self.error + terms * (T::unit() * self.magnitude + T::tiny()) }
    }
}

impl<T: Referred> Kernels<T> {
    /// Every output pixel, its kernel, and what is under it.
    fn each(&self, mut work: impl FnMut([usize; 3], &Map<T>, Vec<Option<[usize; 2]>>)) {
        let [rows, columns] = self.placement.outputs();
        for (at, map) in self.maps.iter().enumerate() {
            let pixel = [at / columns / rows, at / columns % rows, at % columns];
            work(pixel, map, self.placement.under([pixel[1], pixel[2]]));
        }
    }

    /// What each kernel makes of the image under it, beside what is there at the `start`; `constant` stands outside.
    fn gathered(
        &self,
        image: ArrayView4<'_, T>,
        constant: T,
        start: Option<ArrayView4<'_, T>>,
    ) -> Array4<Bounded<T::Wide>> {
        let (batches, .., channels) = image.dim();
        let [rows, columns] = self.placement.outputs();
        let mut sums = match start {
            Some(start) => start.map(|x| Sum::starting_at(x.wide())),
            None => Array4::from_shape_simple_fn([batches, rows, columns, channels], Sum::new),
        };
        self.each(|[b, u, v], map, under| {
            for (at, under) in under.iter().enumerate() {
                let entry = map.entry(at);
                for c in 0..channels {
                    sums[[b, u, v, c]].add(entry, under.map_or(constant, |[y, x]| image[[b, y, x, c]]).wide());
                }
            }
        });
        sums.map(Sum::bounded::<T>)
    }

    /// What is under each kernel gets as much of its pixel as the kernel says, beside what it has at the `start`; outside nothing
    /// does.
    pub fn spread(&self, x: ArrayView4<'_, T>, start: Option<ArrayView4<'_, T>>) -> Array4<Bounded<T::Wide>> {
        let (batches, .., channels) = x.dim();
        let [height, width] = self.placement.size;
        let mut sums = match start {
            Some(start) => start.map(|x| Sum::starting_at(x.wide())),
            None => Array4::from_shape_simple_fn([batches, height, width, channels], Sum::new),
        };
        self.each(|[b, u, v], map, under| {
            for (at, under) in under.iter().enumerate() {
                let (Some([row, column]), entry) = (*under, map.entry(at)) else { continue };
                for c in 0..channels {
                    sums[[b, row, column, c]].add(entry, x[[b, u, v, c]].wide());
                }
            }
        });
        sums.map(Sum::bounded::<T>)
    }

    /// The gradients to the kernels' numbers, where those of a pixel's entries are products of what the pixel has in `at` and of
    /// what is under them in `image`.
    fn gradients(
        &self,
        window: &Window<T>,
        at: ArrayView4<'_, T>,
        image: ArrayView4<'_, T>,
        constant: T,
    ) -> Vec<Gradient<T::Wide>> {
        let channels = at.dim().3;
        let mut gradients = vec![];
        self.each(|[b, u, v], map, under| {
            let of_entry = |under: &Option<[usize; 2]>| {
                let mut sum = Sum::new();
                for c in 0..channels {
                    let value = under.map_or(constant, |[y, x]| image[[b, y, x, c]]);
                    let factor = at[[b, u, v, c]].wide();
                    sum.value = sum.value + factor * value.wide();
                    sum.magnitude += (factor * value.wide()).to_f64().abs();
                    sum.terms += 1;
                }
                sum.bounded::<T>()
            };
            let grad: Vec<_> = under.iter().map(of_entry).collect();
            gradients.push(window.gradient_from_first(map, &grad));
        });
        gradients
    }

    /// `out[u] = sum_j p_u[j] image[s u + j - k // 2]`
    pub fn blur(&self, image: ArrayView4<'_, T>) -> Array4<Bounded<T::Wide>> {
        self.gathered(image, self.placement.constant(), None)
    }

    /// The gradients of a blur to the kernels' numbers.
    pub fn blur_gradients(
        &self,
        window: &Window<T>,
        grad_y: ArrayView4<'_, T>,
        image: ArrayView4<'_, T>,
    ) -> Vec<Gradient<T::Wide>> {
        self.gradients(window, grad_y, image, self.placement.constant())
    }

    /// The gradient of [`Kernels::spread`] to what it spreads.
    pub fn collect(&self, grad_y: ArrayView4<'_, T>, start: Option<ArrayView4<'_, T>>) -> Array4<Bounded<T::Wide>> {
        self.gathered(grad_y, T::zero(), start)
    }

    /// The gradients of [`Kernels::spread`] to the kernels' numbers.
    pub fn spread_gradients(
        &self,
        window: &Window<T>,
        grad_y: ArrayView4<'_, T>,
        x: ArrayView4<'_, T>,
    ) -> Vec<Gradient<T::Wide>> {
        self.gradients(window, x, grad_y, T::zero())
    }
}
