//! Triangular convolutions and their gradients against plain loops in twice the precision, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::random::Random;
use common::strides::{Strided, Strides};
use common::threads;
use common::triconv_product_case::{ProductCase, ProductLayout};
use common::triconv_scan_case::{Data, KINDS, Kind, SIDES, ScanCase, ScanLayout, Scene, WEIGHTS};
use common::wide::Referred;
use libfuzzer_sys::fuzz_target;
use ndarray::IxDyn;
use pullback::Level;
use pullback::triconv::{Lanes, Method, Tuning, Weights};

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod random;
    pub mod strides;
    pub mod threads;
    pub mod triconv;
    pub mod triconv_bounds;
    pub mod triconv_magnitude;
    pub mod triconv_overflow;
    pub mod triconv_product_case;
    pub mod triconv_product_reference;
    pub mod triconv_scan_case;
    pub mod triconv_scan_reference;
    pub mod values;
    pub mod wide;
}

/// One byte for each small number of a problem.
#[derive(Arbitrary, Debug)]
struct Input {
    level: u8,
    /// A scan of drawn matrices, one of the very numbers, a product or a correlation.
    family: u8,
    weights: u8,
    side: u8,
    kind: u8,
    data: u8,
    steps: [u8; 3],
    sizes: [u8; 3],
    /// The number of leading axes, and these.
    leading: [u8; 3],
    shared: bool,
    sources: bool,
    cotangents: Option<u8>,
    parallel: Option<bool>,
    scaled: Option<bool>,
    lanes: u8,
    rows: u8,
    chunk: u8,
    threads: u8,
    layouts: [Axes; 6],
    seed: u64,
    numbers: [i8; 16],
    /// Digits of the tolerance of a scan by blocks, and the results of the shortest of these.
    digits: u8,
    leaf: u8,
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

/// How many products of numbers references may add up.
const COST: usize = 100_000;

impl Input {
    fn level(&self) -> Level {
        let available = Level::ALL.into_iter().filter(|level| level.is_available());
        one_of(&available.collect::<Vec<_>>(), self.level)
    }

    fn tuning(&self) -> Tuning {
        let some = |byte: u8| (byte > 0).then_some(usize::from(byte));
        Tuning {
            parallel: self.parallel,
            rows: some(self.rows),
            lanes: one_of(&[None, Some(Lanes::Columns), Some(Lanes::Time), Some(Lanes::Batch)], self.lanes),
            chunk: some(self.chunk),
            scaled: self.scaled,
            leaf: some(self.leaf),
        }
    }

    /// That of any weights is direct.
    fn method(&self, weights: Weights) -> Method {
        match self.digits % 16 {
            0 => Method::Direct,
            _ if weights == Weights::Binomial => Method::Direct,
            digits => Method::Relaxed { tolerance: 0.1f64.powi(digits.into()) },
        }
    }

    fn leading(&self) -> Vec<usize> {
        let [axes, sizes @ ..] = self.leading.map(usize::from);
        sizes[..axes % 3].iter().map(|n| n % 10).collect()
    }

    fn sizes(&self) -> [usize; 3] {
        self.sizes.map(|n| usize::from(n) % 35 + 1)
    }

    /// `steps`, or fewer where each step takes so many products in every item.
    fn affordable(&self, steps: u8, products: usize) -> usize {
        let batch: usize = self.leading().iter().product();
        let each = products * batch.max(1) * (1 + 2 * usize::from(self.cotangents.unwrap_or(1) % 3));
        usize::from(steps).min((COST / each).isqrt() + 2)
    }

    fn scan(&self) -> ScanCase {
        let [p, m, _] = self.sizes();
        let [s, b, a, grad_a, grad_s, grad_b] = [0, 1, 2, 3, 4, 5].map(|at: usize| self.layouts[at].strides());
        ScanCase {
            n: self.affordable(self.steps[0], p * m * m),
            p,
            m,
            leading: self.leading(),
            shared: self.shared,
            cotangents: self.cotangents.map(|r| usize::from(r % 3)),
            weights: one_of(&WEIGHTS, self.weights),
            side: one_of(&SIDES, self.side),
            method: self.method(one_of(&WEIGHTS, self.weights)),
            sources: self.sources,
            kind: one_of(&KINDS, self.kind),
            data: one_of(&[&Data::ALL[..], &[Data::Factorial]].concat(), self.data),
            layout: ScanLayout { s, b, a, grad_a, grad_s, grad_b },
            tuning: self.tuning(),
            threads: one_of(&threads::COUNTS, self.threads),
            seed: self.seed,
        }
    }

    /// Of numbers of any magnitude, some of them not finite.
    fn numbers(&self) {
        fn check<T: Referred>(case: &ScanCase, numbers: &[i8; 16], level: Level) {
            let mut random = Random::new(case.seed);
            let mut array = |shape: IxDyn| -> Strided<T, IxDyn> {
                Strided::new(shape, Strides::default(), || {
                    let exponent = numbers[random.below(16)];
                    let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0];
                    let x = match special.get(usize::from(exponent.abs_diff(i8::MIN))) {
                        Some(&special) => special,
                        None => random.normal() * 2f64.powi(i32::from(exponent)),
                    };
                    T::from_f64(x).expect("rounded")
                })
            };
            let s = array(case.shape_of_a(false));
            let (b, grad_a) = (array(case.shape_of_b(false)), array(case.shape_of_a(true)));
            case.check_scene(level, Scene { s, b, grad_a, random: Random::new(1) });
        }
        // Integers are exact where all are, and tolerances are of sums that do not overflow.
        let case = ScanCase { data: Data::Flat, sources: true, ..self.scan() };
        threads::with(case.threads, || match case.kind {
            Kind::F64 => check::<f64>(&case, &self.numbers, self.level()),
            _ => check::<f32>(&case, &self.numbers, self.level()),
        });
    }

    fn product(&self, correlation: bool) -> ProductCase {
        let [p, m, q] = self.sizes();
        let [la, lb, n] = self.steps.map(|n| self.affordable(n, p * m * q));
        let [first, second, output, grad_output, grad_first, grad_second] =
            [0, 1, 2, 3, 4, 5].map(|at: usize| self.layouts[at].strides());
        ProductCase {
            correlation,
            range: if correlation || !self.sources { 0..n } else { n / 2..n },
            lengths: [la, lb],
            p,
            m,
            q,
            leading: self.leading(),
            shared: self.shared,
            cotangents: self.cotangents.map(|r| usize::from(r % 3)),
            weights: one_of(&WEIGHTS, self.weights),
            kind: one_of(&KINDS, self.kind),
            data: one_of(&Data::ALL, self.data),
            layout: ProductLayout { first, second, output, grad_output, grad_first, grad_second },
            tuning: self.tuning(),
            threads: one_of(&threads::COUNTS, self.threads),
            seed: self.seed,
        }
    }
}

fuzz_target!(|input: Input| {
    match input.family % 4 {
        0 => input.scan().check(input.level()),
        1 => input.numbers(),
        2 => input.product(false).check(input.level()),
        _ => input.product(true).check(input.level()),
    }
});
