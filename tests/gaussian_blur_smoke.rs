//! Blurs and scatters near to plain loops in f64 over kernels that `KernelMaps` makes, at every level, on few sizes.

use ndarray::{Array4, ArrayD, ArrayView4, IxDyn, s};
use pullback::gaussian::{Blur, Border, Centre, KernelMaps, Layout, Path, Scatter, Tuning};
use pullback::{Level, Real, ndarray};

/// A generator of numbers from -1 to 1.
struct Random(u64);

impl Random {
    fn number(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

#[derive(Clone, Copy, Debug)]
struct Case {
    /// B, H, W, C.
    image: [usize; 4],
    window: [usize; 2],
    stride: usize,
    centre: Centre,
    border: Border,
    tuning: Tuning,
}

impl Case {
    fn small(&self) -> [usize; 4] {
        let [b, h, w, c] = self.image;
        [b, h.div_ceil(self.stride), w.div_ceil(self.stride), c]
    }

    /// The pixel at a sample of a window, in numpy's words: the padded index, one fold at a time.
    fn under(&self, u: usize, j: usize, axis: usize) -> Option<usize> {
        let (n, k) = (self.image[1 + axis] as isize, self.window[axis] as isize);
        let mut at = (self.stride * u + j) as isize - k / 2;
        while !(0..n).contains(&at) {
            at = match self.border {
                Border::Reflect if n == 1 => 0,
                Border::Reflect if at < 0 => -at,
                Border::Reflect => 2 * (n - 1) - at,
                Border::Symmetric if at < 0 => -1 - at,
                Border::Symmetric => 2 * n - 1 - at,
                Border::Edge => at.clamp(0, n - 1),
                Border::Wrap => at.rem_euclid(n),
                _ => return None,
            };
        }
        Some(at as usize)
    }

    /// Calls `each` with the pixel, the sample and what is under it.
    fn each(&self, mut each: impl FnMut([usize; 3], [usize; 2], Option<[usize; 2]>)) {
        let [batches, rows, columns, _] = self.small();
        let pixels = (0..batches).flat_map(|b| (0..rows).flat_map(move |v| (0..columns).map(move |u| [b, v, u])));
        for pixel in pixels {
            for (jy, jx) in (0..self.window[0]).flat_map(|jy| (0..self.window[1]).map(move |jx| (jy, jx))) {
                let under = self.under(pixel[1], jy, 0).zip(self.under(pixel[2], jx, 1));
                each(pixel, [jy, jx], under.map(|(y, x)| [y, x]));
            }
        }
    }

    fn check<T: Real>(&self, level: Level, tolerance: f64) {
        let mut random = Random(7);
        let number = |x: f64| T::from_f64(x).unwrap();
        let float = |x: &T| x.to_f64().unwrap();
        let constant = if let Border::Constant(value) = self.border { value } else { 0.0 };
        let image = Array4::from_shape_simple_fn(self.image, || number(random.number()));
        let x = Array4::from_shape_simple_fn(self.small(), || number(random.number()));
        let [b, v, u, _] = self.small();
        let mut shapes = ArrayD::from_shape_simple_fn(IxDyn(&[b, v, u, 2, 2]), || number(0.7 * random.number()));
        // Sharp and flat ones among them.
        for (at, mut factor) in shapes.exact_chunks_mut(IxDyn(&[1, 1, 1, 2, 2])).into_iter().enumerate() {
            match at % 11 {
                3 => factor.mapv_inplace(|m| m * number(300.0)),
                7 => factor.fill(T::zero()),
                9 => factor.mapv_inplace(|m| m * number(1e7)),
                _ => (),
            }
        }

        let maps = KernelMaps::<f64>::rectangular(self.window, self.centre).unwrap();
        let wide = shapes.mapv(|m| float(&m));
        let kernels = maps.forward(wide.view()).unwrap();
        let (mut blurred, mut spread) = (Array4::zeros(self.small()), Array4::<f64>::zeros(self.image));
        let mut collected = Array4::<f64>::zeros(self.small());
        let (mut grad_blur, mut grad_spread) = (ArrayD::zeros(kernels.raw_dim()), ArrayD::zeros(kernels.raw_dim()));
        self.each(|[b, v, u], [jy, jx], under| {
            let p = kernels[[b, v, u, jy, jx]];
            for c in 0..self.image[3] {
                let own = float(&x[[b, v, u, c]]);
                let pixel = under.map_or(constant, |[y, x]| float(&image[[b, y, x, c]]));
                blurred[[b, v, u, c]] += p * pixel;
                grad_blur[[b, v, u, jy, jx]] += own * pixel;
                if let Some([y, x]) = under {
                    spread[[b, y, x, c]] += p * own;
                    collected[[b, v, u, c]] += p * pixel;
                    grad_spread[[b, v, u, jy, jx]] += own * pixel;
                }
            }
        });
        let of_blur = maps.adjoint(grad_blur.view(), wide.view()).unwrap();
        let of_spread = maps.adjoint(grad_spread.view(), wide.view()).unwrap();
        // Where a gradient is made of differences that nearly vanish beside huge factors, its error says nothing here.
        let near = |what: &str, found: ArrayD<T>, expected: ArrayD<f64>| {
            assert_eq!(found.shape(), expected.shape());
            for ((at, found), expected) in found.indexed_iter().zip(&expected) {
                let off = (float(found) - expected).abs();
                assert!(
                    off <= tolerance * (1.0 + expected.abs()),
                    "{what}{at:?} {found:?} {expected}: {self:?}, {level}"
                );
            }
        };
        let mild = |gradient: ArrayD<T>| {
            let of = |at: usize| [3, 9].contains(&(at / 4 % 11));
            ArrayD::from_shape_vec(
                gradient.raw_dim(),
                gradient.iter().enumerate().map(|(at, &g)| if of(at) { T::zero() } else { g }).collect(),
            )
            .unwrap()
        };
        let mild_wide = |gradient: ArrayD<f64>| {
            let of = |at: usize| [3, 9].contains(&(at / 4 % 11));
            ArrayD::from_shape_vec(
                gradient.raw_dim(),
                gradient.iter().enumerate().map(|(at, &g)| if of(at) { 0.0 } else { g }).collect(),
            )
            .unwrap()
        };

        let blur = Blur::<T>::rectangular(self.window, self.centre, self.border, self.stride).unwrap();
        let blur = blur.with_tuning(self.tuning).with_level(level).unwrap();
        let scatter = Scatter::<T>::rectangular(self.window, self.centre, self.border, self.stride).unwrap();
        let scatter = scatter.with_tuning(self.tuning).with_level(level).unwrap();
        let size = [self.image[1], self.image[2]];
        near("blur", blur.forward(image.view(), shapes.view()).unwrap().into_dyn(), blurred.into_dyn());
        let gradients = blur.adjoint(x.view(), image.view(), shapes.view()).unwrap();
        near("grad_image", gradients.grad_image.clone().into_dyn(), spread.clone().into_dyn());
        near("grad_shapes", mild(gradients.grad_shapes), mild_wide(of_blur));
        let scattered = scatter.forward(x.view(), shapes.view(), size).unwrap();
        assert_eq!(scattered, blur.adjoint_image(x.view(), shapes.view(), size).unwrap());
        near("scatter", scattered.clone().into_dyn(), spread.into_dyn());
        let of_scatter = scatter.adjoint(image.view(), x.view(), shapes.view()).unwrap();
        near("grad_x", of_scatter.grad_image.into_dyn(), collected.into_dyn());
        near("grad_shapes of scatter", mild(of_scatter.grad_shapes), mild_wide(of_spread));

        // The other layout, into the caller's arrays of any strides.
        let first = |array: ArrayView4<'_, T>| array.permuted_axes([0, 3, 1, 2]).as_standard_layout().to_owned();
        let blur = blur.with_layout(Layout::ChannelsFirst);
        let mut wide = Array4::from_elem([b, 2 * self.image[3], v, u], T::one());
        let mut y = wide.slice_mut(s![.., ..;2, ..;-1, ..]);
        blur.forward_into(first(image.view()).view(), shapes.view(), y.view_mut()).unwrap();
        assert_eq!(y, blur.forward(first(image.view()).view(), shapes.view()).unwrap());
        let mut sums = (first(scattered.view()), ArrayD::<T>::zeros(shapes.raw_dim()));
        let (x, image) = (first(x.view()), first(image.view()));
        blur.adjoint_add(x.view(), image.view(), shapes.view(), sums.0.view_mut(), sums.1.view_mut()).unwrap();
        for (sum, once) in sums.0.iter().zip(&first(scattered.view())) {
            assert!((float(sum) - 2.0 * float(once)).abs() <= tolerance * (1.0 + float(once).abs()));
        }
    }
}

#[test]
fn blurs_are_near_to_plain_loops() {
    let plain = Tuning::default();
    let case = Case {
        image: [2, 7, 18, 3],
        window: [5, 5],
        stride: 1,
        centre: Centre::Middle,
        border: Border::Reflect,
        tuning: plain,
    };
    let cases = [
        case,
        Case { stride: 2, window: [4, 7], border: Border::Symmetric, ..case },
        Case { stride: 3, window: [9, 2], border: Border::Wrap, centre: Centre::Half, ..case },
        Case { image: [1, 2, 35, 1], window: [3, 1], border: Border::Edge, centre: Centre::Corner, ..case },
        Case { image: [1, 3, 3, 5], window: [6, 9], border: Border::Constant(1.5), ..case },
        Case { image: [1, 5, 4, 2], window: [1, 1], stride: 2, border: Border::Reflect, ..case },
        Case { image: [1, 1, 40, 4], window: [3, 21], centre: Centre::At(3.7, 1.2), ..case },
        Case { tuning: Tuning { mirror: Some(false), tile: Some(2), parallel: Some(true), ..plain }, ..case },
        Case { tuning: Tuning { path: Some(Path::Rows), tile: Some(1), parallel: Some(true), ..plain }, ..case },
    ];
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        for case in cases {
            case.check::<f32>(level, 2e-4);
            case.check::<f64>(level, 1e-11);
        }
    }
}
