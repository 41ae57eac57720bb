//! Gaussian kernels and their gradients as plain loops, written from the contract, with bounds of how far the library may be
//! away from them.
//!
//! With u half an epsilon, an entry is right within `32 u + 4 u (Q + Qbar)` of itself, Q the form with magnitudes in place of
//! its terms, Qbar its mean: of the numbers as they are given, and of samples less the offset.
//!
//! A gradient is `sum p (g - s) d`, d the slopes of -q / 2. The contract's bound is `E + 64 u` of the terms' magnitudes, E the
//! largest bound of an entry. It leaves out that s itself is rounded, by as much of D, the mean of |g - s|: where all of g that
//! differs from s is on samples without a slope, nothing would be allowed. So here the bound has |g - s| + D in place of |g - s|.
//! What is less than u^2 of the largest |g - s| may be lost, as kernels of a single sample have gradients of any smallness.
//!
//! Below the smallest normal number nothing is promised but that nothing is there.

use super::wide::{Referred, Tracked, Wide};
use pullback::gaussian::Parameters;

/// A number and how far from it is near enough.
#[derive(Clone, Copy, Debug)]
pub struct Bounded<W> {
    pub value: W,
    pub error: f64,
}

impl<W: Wide> Bounded<W> {
    pub fn exactly(value: W) -> Self {
        Self { value, error: 0.0 }
    }

    /// Whether `found` is near enough. Where the number is beyond the type's largest, or not known to be below, anything is.
    pub fn accepts<T: Referred<Wide = W>>(self, found: T) -> bool {
        let most = T::max_value().to_f64().expect("an element is an f64") / 4.0;
        let beyond = self.value.to_f64().abs() + self.error;
        beyond.is_nan() || beyond > most || (found.wide() - self.value).to_f64().abs() <= self.error
    }

    /// [`Bounded::accepts`] the number added to `start`.
    pub fn accepts_sum<T: Referred<Wide = W>>(self, start: T, found: T) -> bool {
        let value = start.wide() + self.value;
        let rounding = 2.0 * T::unit() * (start.wide().to_f64().abs() + self.value.to_f64().abs() + self.error);
        Self { value, error: self.error + rounding }.accepts(found)
    }
}

/// How the numbers of a kernel are read.
#[derive(Clone, Copy)]
struct Form<'a, W> {
    parameters: Parameters,
    numbers: &'a [Tracked<W>],
    /// Of the angle.
    sin_cos: [Tracked<W>; 2],
}

/// `-q / 2` at a sample, and its slopes to the numbers and to the offset.
struct Slopes<W> {
    numbers: Vec<Tracked<W>>,
    offset: [Tracked<W>; 2],
}

impl<W: Wide> Form<'_, W> {
    /// z along both axes.
    fn along(&self, [x, y]: [Tracked<W>; 2]) -> [Tracked<W>; 2] {
        let [sin, cos] = self.sin_cos;
        [cos * x + sin * y, cos * y - sin * x]
    }

    /// The inverse of the covariance, times z.
    fn solve(&self, [x, y]: [Tracked<W>; 2]) -> [Tracked<W>; 2] {
        // Near 1, as their products may be beyond all numbers.
        let largest = self.numbers[0].size.max(self.numbers[2].size);
        let exponent = largest.log2() as i32;
        let [xx, xy, yy] = [0, 1, 2].map(|n| Tracked::new(self.numbers[n].value.scaled(-exponent)));
        let determinant = Tracked::new(xx.value * yy.value - xy.value * xy.value);
        [(yy * x - xy * y) / determinant, (xx * y - xy * x) / determinant].map(|z| z.scaled(-exponent))
    }

    /// q
    fn at(&self, z: [Tracked<W>; 2]) -> Tracked<W> {
        let ([x, y], n) = (z, self.numbers);
        match self.parameters {
            Parameters::Factor => {
                let rows = [n[0] * x + n[1] * y, n[2] * x + n[3] * y];
                rows[0] * rows[0] + rows[1] * rows[1]
            }
            Parameters::Precision => n[0] * x * x + n[1].times(2.0) * x * y + n[2] * y * y,
            Parameters::Sigmas => {
                let [along, across] = self.along(z);
                let (along, across) = (along / n[0], across / n[1]);
                along * along + across * across
            }
            Parameters::Variances => {
                let [along, across] = self.along(z);
                along * along / n[0] + across * across / n[1]
            }
            Parameters::Covariance => {
                let solved = self.solve(z);
                x * solved[0] + y * solved[1]
            }
            _ => unreachable!("all there are"),
        }
    }

    fn slopes(&self, z: [Tracked<W>; 2]) -> Slopes<W> {
        let ([x, y], n) = (z, self.numbers);
        let half = |slope: Tracked<W>| slope.times(0.5);
        match self.parameters {
            Parameters::Factor => {
                let rows = [n[0] * x + n[1] * y, n[2] * x + n[3] * y];
                Slopes {
                    numbers: vec![-(rows[0] * x), -(rows[0] * y), -(rows[1] * x), -(rows[1] * y)],
                    offset: [n[0] * rows[0] + n[2] * rows[1], n[1] * rows[0] + n[3] * rows[1]],
                }
            }
            Parameters::Precision => Slopes {
                numbers: vec![-half(x * x), -(x * y), -half(y * y)],
                offset: [n[0] * x + n[1] * y, n[1] * x + n[2] * y],
            },
            Parameters::Sigmas | Parameters::Variances => {
                let [along, across] = self.along(z);
                let variances = if matches!(self.parameters, Parameters::Sigmas) {
                    [n[0] * n[0], n[1] * n[1]]
                } else {
                    [n[0], n[1]]
                };
                let weighed = [along / variances[0], across / variances[1]];
                let [sin, cos] = self.sin_cos;
                // The axes turn: d along / d theta = across, d across / d theta = -along.
                let turned = -(weighed[0] * across) + weighed[1] * along;
                let of_spread = |at: usize, z: Tracked<W>| {
                    let slope = weighed[at] * z / n[at];
                    if matches!(self.parameters, Parameters::Sigmas) { slope } else { half(slope) }
                };
                Slopes {
                    numbers: vec![of_spread(0, along), of_spread(1, across), turned],
                    offset: [cos * weighed[0] - sin * weighed[1], sin * weighed[0] + cos * weighed[1]],
                }
            }
            Parameters::Covariance => {
                let [first, second] = self.solve(z);
                Slopes {
                    numbers: vec![half(first * first), first * second, half(second * second)],
                    offset: [first, second],
                }
            }
            _ => unreachable!("all there are"),
        }
    }
}

/// How many numbers a kernel has.
pub fn count(parameters: Parameters) -> usize {
    if matches!(parameters, Parameters::Factor) { 4 } else { 3 }
}

/// The numbers of a form whose q is 2^-1200 times as large.
fn shrunk<T: Referred>(parameters: Parameters, numbers: &[T]) -> Vec<T::Wide> {
    let [by_first, by_third] = match parameters {
        Parameters::Factor => [-SHRINKING / 2; 2],
        Parameters::Precision => [-SHRINKING; 2],
        Parameters::Sigmas => [SHRINKING / 2, 0],
        Parameters::Variances => [SHRINKING, 0],
        _ => [SHRINKING; 2],
    };
    let by = |at: usize| if at < 2 { by_first } else { by_third };
    numbers.iter().enumerate().map(|(at, x)| x.wide().scaled(by(at))).collect()
}

const SHRINKING: i32 = 1200;

/// The samples of a window and what describes the kernels on it.
pub struct Window<T> {
    pub samples: Vec<[T; 2]>,
    pub parameters: Parameters,
}

/// A kernel.
pub struct Map<T: Referred> {
    samples: Vec<[Tracked<T::Wide>; 2]>,
    numbers: Vec<Tracked<T::Wide>>,
    sin_cos: [Tracked<T::Wide>; 2],
    /// Normalised.
    pub entries: Vec<T::Wide>,
    limits: Vec<Limits>,
}

/// What an entry may be.
#[derive(Clone, Copy)]
struct Limits {
    /// How far it may be off, relative to it.
    relative: f64,
    /// The logarithm of the right value, and of the least and the greatest that are near enough, as far as these differ from it
    /// in more than the first order.
    log: f64,
    least: f64,
    most: f64,
}

/// The gradients to the numbers of a kernel and to its offset.
pub struct Gradient<W> {
    pub shape: Vec<Bounded<W>>,
    pub offset: [Bounded<W>; 2],
}

impl<T: Referred> Window<T> {
    pub fn map(&self, numbers: &[T], offset: Option<[T; 2]>) -> Map<T> {
        let zero = T::Wide::zero();
        let moved = |z: &[T; 2]| {
            let by = offset.map_or([zero; 2], |offset| offset.map(T::wide));
            [0, 1].map(|axis| Tracked::new(z[axis].wide() - by[axis]))
        };
        let samples: Vec<_> = self.samples.iter().map(moved).collect();
        let angle = match self.parameters {
            Parameters::Sigmas | Parameters::Variances => numbers[2].wide(),
            _ => zero,
        };
        let sin_cos = angle.sin_cos().map(Tracked::new);
        let tracked: Vec<_> = numbers.iter().map(|x| Tracked::new(x.wide())).collect();
        let form = Form { parameters: self.parameters, numbers: &tracked, sin_cos };
        let forms: Vec<_> = samples.iter().map(|&z| form.at(z)).collect();
        // What overflows is no number.
        let least = |forms: &[Tracked<T::Wide>]| {
            let finite = forms.iter().map(|q| q.value).filter(|q| q.to_f64().is_finite());
            finite.reduce(|a, b| if b < a { b } else { a })
        };
        let (forms, first, scale) = match least(&forms) {
            Some(first) => (forms, first, 0),
            None => {
                let numbers: Vec<_> = shrunk(self.parameters, numbers).into_iter().map(Tracked::new).collect();
                let form = Form { numbers: &numbers, ..form };
                let forms: Vec<_> = samples.iter().map(|&z| form.at(z)).collect();
                let first = least(&forms).expect("no form is as large as that");
                (forms, first, SHRINKING)
            }
        };
        let exponents: Vec<_> = forms.iter().map(|q| (first - q.value).scaled(-1)).collect();
        let weight = |x: &T::Wide| {
            let x = x.scaled(scale);
            if x.to_f64() > -1400.0 { x.exp() } else { zero }
        };
        let weights: Vec<_> = exponents.iter().map(weight).collect();
        let sum = weights.iter().fold(zero, |sum, &w| sum + w);
        let entries: Vec<_> = weights.into_iter().map(|w| w / sum).collect();
        let products = entries.iter().zip(&forms).map(|(p, q)| p.to_f64() * q.size);
        let mean: f64 = products.filter(|product| !product.is_nan()).sum();
        let limit = |(x, q): (&T::Wide, &Tracked<T::Wide>)| {
            let (x, off, fixed) = (x.to_f64(), 4.0 * T::unit() * (q.size + mean), 32.0 * T::unit());
            let log = |x: f64, fixed: f64| {
                // A form that overflows is far above the least one.
                if x.is_nan() { f64::NEG_INFINITY } else { x.scaled(scale) + fixed - sum.to_f64().ln() }
            };
            let relative = fixed + off.scaled(scale);
            Limits { relative, log: log(x, 0.0), least: log(x - off, -fixed), most: log(x + off, fixed) }
        };
        let limits = exponents.iter().zip(&forms).map(limit).collect();
        let mut map = Map { samples, numbers: tracked, sin_cos, entries, limits };
        let stray: f64 = map.uncertain().map(|at| map.most(at)).sum();
        for limits in &mut map.limits {
            limits.relative += stray;
            limits.least -= stray.ln_1p();
        }
        map
    }

    /// The gradient where the kernel's entries have the gradients `grad`.
    pub fn gradient(&self, map: &Map<T>, grad: &[Bounded<T::Wide>]) -> Gradient<T::Wide> {
        self.gradient_rounded(map, grad, false)
    }

    /// [`Window::gradient`] of sums of the gradients less that of the window's first sample, which may be far from the mean.
    pub fn gradient_from_first(&self, map: &Map<T>, grad: &[Bounded<T::Wide>]) -> Gradient<T::Wide> {
        self.gradient_rounded(map, grad, true)
    }

    fn gradient_rounded(&self, map: &Map<T>, grad: &[Bounded<T::Wide>], from_first: bool) -> Gradient<T::Wide> {
        let form = Form { parameters: self.parameters, numbers: &map.numbers, sin_cos: map.sin_cos };
        let (zero, numbers) = (T::Wide::zero(), map.numbers.len());
        // That of a number more is no other, and this one is exactly 0 where they are all the same.
        let shifted: Vec<_> = grad.iter().map(|g| g.value - grad[0].value).collect();
        let mean = map.entries.iter().zip(&shifted).fold(zero, |sum, (&p, &g)| sum + p * g);
        let sum = |term: &dyn Fn(usize) -> f64| -> f64 {
            (0..grad.len())
                .filter(|&at| map.entries[at].to_f64() != 0.0)
                .map(|at| map.entries[at].to_f64() * term(at))
                .sum()
        };
        let away = |at: usize| (shifted[at] - mean).to_f64().abs();
        let spread = sum(&away);
        let farthest = (0..grad.len()).map(away).fold(0.0, f64::max);
        let lost = if from_first { away(0) } else { T::unit() * farthest };
        let (grad_error, largest) = (sum(&|at| grad[at].error), map.largest());
        // What may count or not: how much, and how much of it from the mean.
        let stray = map.uncertain().map(|at| [map.most(at), map.most(at) * away(at)]);
        let [stray, stray_away] = stray.fold([0.0; 2], |[a, b], [c, d]| [a + c, b + d]);
        let mut sums = vec![Bounded::exactly(zero); numbers + 2];
        for (at, (&p, g)) in map.entries.iter().zip(grad).enumerate().filter(|(at, _)| map.is_possible(*at)) {
            let h = p * (shifted[at] - mean);
            let slopes = form.slopes(map.samples[at]);
            let weight = if map.is_normal(at) {
                p.to_f64()
                    * ((largest + 64.0 * T::unit() + stray) * (away(at) + spread)
                        + 64.0 * T::unit() * lost
                        + g.error
                        + grad_error
                        + stray_away)
            } else {
                map.most(at) * (away(at) + spread + stray_away + g.error + grad_error)
            };
            for (sum, slope) in sums.iter_mut().zip(slopes.numbers.iter().chain(&slopes.offset)) {
                sum.value = sum.value + h * slope.value;
                sum.error += weight * slope.size + T::tiny() * (1.0 + slope.size);
            }
        }
        let offset = [sums[numbers], sums[numbers + 1]];
        sums.truncate(numbers);
        Gradient { shape: sums, offset }
    }
}

impl<T: Referred> Map<T> {
    /// Whether the entry can be no other than a normal number. Within a thousandth of the smallest one it need not be.
    fn is_normal(&self, at: usize) -> bool {
        let limits = self.limits[at];
        limits.least.min(limits.log - 0.001) > T::tiny().ln()
    }

    /// Whether the entry can be a normal number.
    fn is_possible(&self, at: usize) -> bool {
        let limits = self.limits[at];
        limits.most.max(limits.log + 0.001) >= T::tiny().ln()
    }

    /// Entries that may be a normal number or none. Where the right value is none of much, as q is the difference of products
    /// that are rounded by more than it, all others may be less by as much.
    fn uncertain(&self) -> impl Iterator<Item = usize> {
        (0..self.entries.len()).filter(|&at| self.is_possible(at) && !self.is_normal(at))
    }

    /// The greatest number that the entry may be, if it may be one.
    fn most(&self, at: usize) -> f64 {
        self.limits[at].most.max(self.limits[at].log + 0.001).min(0.0).exp()
    }

    /// Whether relative bounds of first order are bounds.
    fn is_close(&self, at: usize) -> bool {
        self.limits[at].relative <= 0.01
    }

    /// The largest bound of an entry that is a normal number.
    fn largest(&self) -> f64 {
        let of = |at: usize| {
            let relative = self.limits[at].relative;
            if self.is_close(at) { relative } else { relative.exp_m1() }
        };
        (0..self.entries.len()).filter(|&at| self.is_normal(at)).map(of).fold(0.0, f64::max)
    }

    /// The bounds of an entry, as a number and its error.
    pub fn entry(&self, at: usize) -> Bounded<T::Wide> {
        let (value, p) = (self.entries[at], self.entries[at].to_f64());
        let error = match (self.is_possible(at), self.is_close(at)) {
            (false, _) => p,
            (true, true) => p * self.limits[at].relative + if self.is_normal(at) { 0.0 } else { T::tiny() },
            (true, false) => self.most(at),
        };
        Bounded { value, error }
    }

    /// Why an entry is wrong, if it is.
    pub fn complaint(&self, at: usize, found: T) -> Option<String> {
        let (p, wide, limits) = (self.entries[at].to_f64(), found.wide().to_f64(), self.limits[at]);
        let right = if wide == 0.0 {
            !self.is_normal(at)
        } else if self.is_close(at) {
            let relative = ((found.wide() - self.entries[at]).to_f64() / p).abs();
            wide >= T::tiny() && self.is_possible(at) && relative <= limits.relative
        } else {
            wide >= T::tiny() && self.is_possible(at) && (limits.least..=limits.most).contains(&wide.ln())
        };
        (!right).then(|| {
            let off = (wide / p - 1.0) / T::unit();
            let bound = limits.relative / T::unit();
            format!("{found:?}, not {p:e}: off by {off} u of {bound}, z {:?}", self.samples[at])
        })
    }
}

/// The gradients of entries as they came.
pub fn as_given<T: Referred>(grad: &[T]) -> Vec<Bounded<T::Wide>> {
    grad.iter().map(|g| Bounded::exactly(g.wide())).collect()
}

/// The form of training code, in f64: `P = M^T M`, `q = z^T P z`, `exp(-q / 2)` over its sum, where column x and row y are z = (x, y).
pub fn seed(m: [[f64; 2]; 2], k: usize) -> Vec<f64> {
    let mut precision = [[0.0; 2]; 2];
    for (i, j, r) in (0..8).map(|n| (n & 1, n >> 1 & 1, n >> 2)) {
        precision[i][j] += m[r][i] * m[r][j];
    }
    let mut map = vec![];
    for (y, x) in (0..k).flat_map(|y| (0..k).map(move |x| (y, x))) {
        let z = [x as f64, y as f64];
        let mut q = 0.0;
        for (i, j) in (0..4).map(|n| (n & 1, n >> 1)) {
            q += z[i] * precision[i][j] * z[j];
        }
        map.push((-q / 2.0).exp());
    }
    let sum: f64 = map.iter().sum();
    map.into_iter().map(|e| e / sum).collect()
}

/// The sum of all entries is 1 within 2e-6, or as many units of f64.
#[track_caller]
pub fn assert_normalised<T: Referred>(map: &[T]) {
    let sum = map.iter().fold(T::Wide::zero(), |sum, p| sum + p.wide());
    let off = (sum - T::Wide::from_f64(1.0)).to_f64();
    assert!(off.abs() <= 2e-6 * T::unit() / f32::unit(), "the sum is 1 {off:+e}");
}
