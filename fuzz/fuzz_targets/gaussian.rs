//! Gaussian kernels, blurs and their gradients against plain loops in twice the precision, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::blur_case::{BORDERS, BlurCase, BlurLayout};
use common::maps_case::{Data, Grads, Grid, MapsCase, MapsLayout, PARAMETERS, check_kernel};
use common::strides::Strides;
use common::threads;
use libfuzzer_sys::fuzz_target;
use pullback::Level;
use pullback::gaussian::{Centre, Path, Tuning};

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod blur_case;
    pub mod blurring;
    pub mod cells;
    pub mod gaussian;
    pub mod maps_case;
    pub mod random;
    pub mod strides;
    pub mod threads;
    pub mod values;
    pub mod wide;
}

/// One byte for each small number of a problem.
#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    /// Maps of drawn kernels, a kernel of the very numbers, or a blur.
    family: u8,
    double: bool,
    window: [u8; 2],
    centre: u8,
    at: [i8; 2],
    parameters: u8,
    data: u8,
    grads: u8,
    moved: bool,
    /// The number of leading axes, and these; those of an image.
    sizes: [u8; 4],
    tuning: [Option<bool>; 3],
    path: u8,
    tile: u8,
    layouts: [Axes; 6],
    threads: u8,
    seed: u64,
    numbers: [f32; 4],
    offset: [i16; 2],
    border: u8,
    stride: u8,
    channels_first: bool,
}

#[derive(Arbitrary, Debug)]
struct Axes {
    /// Standard layout where it is 0.
    order: u8,
    reversed: u8,
    halved: u8,
}

impl Axes {
    fn strides(&self) -> Strides {
        let Self { order, reversed, halved } = *self;
        if order == 0 { Strides::default() } else { Strides { order: order.into(), reversed, halved, broadcast: 0 } }
    }
}

fn one_of<T: Copy>(choices: &[T], byte: u8) -> T {
    choices[byte as usize % choices.len()]
}

impl Input {
    fn level(&self) -> Level {
        let available = Level::ALL.into_iter().filter(|level| level.is_available());
        one_of(&available.collect::<Vec<_>>(), self.level)
    }

    fn window(&self, most: u8) -> [usize; 2] {
        self.window.map(|k| usize::from(k % most) + 1)
    }

    fn centre(&self) -> Centre {
        let [x, y] = self.at.map(f64::from);
        let shift = self.at[0].unsigned_abs() as usize + 1;
        let choices = [Centre::Corner, Centre::Middle, Centre::Half, Centre::At(x / 8.0, y / 8.0)];
        one_of(
            &[&choices[..], &[Centre::ShiftConvolution(shift), Centre::ShiftCorrelation(shift)]].concat(),
            self.centre,
        )
    }

    fn tuning(&self) -> Tuning {
        let ([stream, parallel, mirror], tile) = (self.tuning, (self.tile > 0).then_some(self.tile.into()));
        let path = one_of(&[None, Some(Path::Rows), Some(Path::Narrow)], self.path);
        Tuning { stream, parallel, tile, mirror, path }
    }

    fn maps(&self) -> MapsCase {
        let sizes = self.sizes.map(|n| usize::from(n % 6));
        let [shapes, offsets, maps, grad_maps, grad_shapes, grad_offsets] =
            [0, 1, 2, 3, 4, 5].map(|at: usize| self.layouts[at].strides());
        MapsCase {
            leading: sizes[1..1 + sizes[0] % 4].to_vec(),
            window: self.window(26),
            grid: if self.centre == u8::MAX { Grid::Given } else { Grid::Centre(self.centre()) },
            parameters: one_of(&PARAMETERS, self.parameters),
            data: one_of(&Data::ALL, self.data),
            offsets: self.moved.then_some(0.7),
            grads: one_of(&Grads::ALL, self.grads),
            double: self.double,
            layout: MapsLayout { shapes, offsets, maps, grad_maps, grad_shapes, grad_offsets },
            tuning: self.tuning(),
            threads: one_of(&threads::COUNTS, self.threads),
            seed: self.seed,
        }
    }

    fn blur(&self) -> BlurCase {
        let [batches, height, width, channels] = self.sizes.map(usize::from);
        let [image, shapes, grad, first, second] = [0, 1, 2, 3, 4].map(|at: usize| self.layouts[at].strides());
        BlurCase {
            image: [batches % 3, height % 9, width % 20, channels % 6],
            window: self.window(12),
            centre: self.centre(),
            border: one_of(&BORDERS, self.border),
            stride: usize::from(self.stride % 5) + 1,
            parameters: one_of(&PARAMETERS, self.parameters),
            data: one_of(&Data::ALL, self.data),
            channels_first: self.channels_first,
            double: self.double,
            layout: BlurLayout { image, shapes, grad, first, second },
            threads: one_of(&threads::COUNTS, self.threads),
            seed: self.seed,
        }
    }

    /// A kernel of any numbers: subnormal, huge, not finite, not positive.
    fn kernel(&self) {
        let case = MapsCase { grid: Grid::Centre(self.centre()), double: false, ..self.maps() };
        let maps = case.operator::<f32>(&case.scene().z, self.level());
        let [kh, kw] = maps.shape();
        let mut random = common::random::Random::new(self.seed);
        let grad: Vec<f32> = (0..kh * kw).map(|_| random.normal() as f32).collect();
        let numbers = &self.numbers[..common::gaussian::count(case.parameters)];
        let offset = self.moved.then(|| self.offset.map(|offset| f32::from(offset) / 256.0));
        check_kernel(&maps, case.parameters, numbers, offset, &grad);
    }
}

fuzz_target!(|input: Input| {
    match input.family % 3 {
        0 => input.maps().check(input.level()),
        1 => input.kernel(),
        _ => input.blur().check(input.level()),
    }
});
