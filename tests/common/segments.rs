//! Reductions by segment as plain loops, written from their contracts.

use super::cells::Cell;
use super::groups::{add, choose, copied, zeros};
use super::values::Value;
use ndarray::{Array2, ArrayD};
use pullback::gather::Extremum;

/// The segment of each row (M), none for padding, out of `count`.
pub struct SegmentIds {
    pub ids: Vec<Option<usize>>,
    pub count: usize,
}

impl SegmentIds {
    /// Rows and their segments, in ascending order.
    fn each(&self) -> impl DoubleEndedIterator<Item = (usize, usize)> {
        self.ids.iter().enumerate().filter_map(|(row, id)| id.map(|segment| (row, segment)))
    }

    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes = vec![0; self.count];
        self.each().for_each(|(_, segment)| sizes[segment] += 1);
        sizes
    }

    /// A number a segment and channel, folded over the rows in ascending order.
    pub fn fold<T: Value>(&self, x: &ArrayD<T>, start: T, f: impl Fn(T, T) -> T) -> ArrayD<Cell<T>> {
        let channels = x.shape()[1];
        let mut y = zeros([self.count, channels]).mapv(|_: T| Cell::Copied(start));
        for (row, segment) in self.each() {
            for c in 0..channels {
                let cell = &mut y[[segment, c]];
                *cell = Cell::Computed(f(cell.value(), x[[row, c]]));
            }
        }
        y
    }

    /// `y[s, :] += x[m, :]`
    pub fn sum<T: Value>(&self, mean: bool, x: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let mut y = self.fold(x, T::zero(), |sum, element| sum + element);
        for (segment, &n) in self.sizes().iter().enumerate().filter(|(_, n)| mean && **n > 0) {
            for c in 0..x.shape()[1] {
                let sum = &mut y[[segment, c]];
                *sum = Cell::Computed(sum.value() / T::from_u32(n).expect("a count"));
            }
        }
        y
    }

    /// `gx[m, :] = gy[s, :]`, added to `start` where there is one.
    pub fn sum_adjoint<T: Value>(&self, mean: bool, grad_y: &ArrayD<T>, start: Option<&ArrayD<T>>) -> ArrayD<Cell<T>> {
        let (sizes, channels) = (self.sizes(), grad_y.shape()[1]);
        let mut grad_x = start.map_or_else(|| copied(&zeros([self.ids.len(), channels])), copied);
        for (row, segment) in self.each() {
            for c in 0..channels {
                let cell = &mut grad_x[[row, c]];
                let mut term = Cell::Copied(grad_y[[segment, c]]);
                if mean {
                    term = Cell::Computed(term.value() / T::from_u32(sizes[segment]).expect("a count"));
                }
                *cell = if start.is_some() { Cell::Computed(cell.value() + term.value()) } else { term };
            }
        }
        grad_x
    }

    /// `gradient`, a row a row, added to what was there before where the row has a segment.
    pub fn added<T: Value>(&self, gradient: &ArrayD<Cell<T>>, start: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        for (row, _) in self.each() {
            for c in 0..start.shape()[1] {
                sums[[row, c]] = Cell::Computed(start[[row, c]] + gradient[[row, c]].value());
            }
        }
        sums
    }

    /// `gx[m, :] = gy[s, :] * (before * after)`
    pub fn product_adjoint<T: Value>(&self, grad_y: &ArrayD<T>, x: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let shape = [self.ids.len(), x.shape()[1]];
        let (mut before, mut after) = (zeros::<T, 2>(shape), zeros::<T, 2>(shape));
        for c in 0..shape[1] {
            let mut running = vec![T::one(); self.count];
            for (row, segment) in self.each() {
                before[[row, c]] = running[segment];
                running[segment] = running[segment] * x[[row, c]];
            }
            running.fill(T::one());
            for (row, segment) in self.each().rev() {
                after[[row, c]] = running[segment];
                running[segment] = running[segment] * x[[row, c]];
            }
        }
        let mut grad_x = copied(&zeros(shape));
        for (row, segment) in self.each() {
            for c in 0..shape[1] {
                let product = grad_y[[segment, c]] * (before[[row, c]] * after[[row, c]]);
                grad_x[[row, c]] = Cell::Computed(product);
            }
        }
        grad_x
    }

    /// Extreme elements and their rows.
    pub fn extremes<T: Value>(&self, which: Extremum, x: &ArrayD<T>, empty: f64) -> (ArrayD<Cell<T>>, ArrayD<u32>) {
        let mut members = vec![Vec::new(); self.count];
        self.each().for_each(|(row, segment)| members[segment].push(row));
        let chosen = Array2::from_shape_fn([self.count, x.shape()[1]], |(segment, c)| {
            choose(which, members[segment].iter().map(|&row| (row as u32, x[[row, c]])))
        });
        let values = chosen.mapv(|chosen| chosen.map_or(T::rounded(empty), |(_, value)| Cell::Copied(value)));
        (values.into_dyn(), chosen.mapv(|chosen| chosen.map_or(u32::MAX, |(row, _)| row)).into_dyn())
    }

    /// To the rows that `arguments` names; a row of another segment gets nothing.
    pub fn first_adjoint<T: Value>(
        &self,
        grad_y: &ArrayD<T>,
        arguments: &ArrayD<u32>,
        start: &ArrayD<T>,
    ) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        for (row, segment) in self.each() {
            for c in 0..grad_y.shape()[1] {
                if arguments[[segment, c]] == row as u32 {
                    add(&mut sums[[row, c]], grad_y[[segment, c]]);
                }
            }
        }
        sums
    }

    pub fn even_adjoint<T: Value>(
        &self,
        which: Extremum,
        x: &ArrayD<T>,
        grad_y: &ArrayD<T>,
        start: &ArrayD<T>,
    ) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        let (values, arguments) = self.extremes(which, x, 0.0);
        for c in 0..grad_y.shape()[1] {
            let takes = |&(row, segment): &(usize, usize)| {
                arguments[[segment, c]] == row as u32 || x[[row, c]] == values[[segment, c]].value()
            };
            let mut ties = vec![0; self.count];
            self.each().filter(takes).for_each(|(_, segment)| ties[segment] += 1);
            for (row, segment) in self.each().filter(takes) {
                let share = grad_y[[segment, c]] / T::from_u32(ties[segment]).expect("a count");
                add(&mut sums[[row, c]], share);
            }
        }
        sums
    }

    /// The largest element of each segment, or 0 where that is infinite or NaN.
    fn maxima(&self, x: &ArrayD<f64>) -> ArrayD<f64> {
        let (largest, _) = self.extremes(Extremum::Max, x, 0.0);
        largest.mapv(|max| if max.value().is_finite() { max.value() } else { 0.0 })
    }

    /// `max + ln(sum of exp(x - max))` and a bound on the error of an element type with this epsilon.
    pub fn log_sum_exp(&self, x: &ArrayD<f64>, epsilon: f64) -> ArrayD<(f64, f64)> {
        let (maxima, sizes) = (self.maxima(x), self.sizes());
        let mut sums = zeros::<f64, 2>([self.count, x.shape()[1]]);
        for (row, segment) in self.each() {
            for c in 0..x.shape()[1] {
                sums[[segment, c]] += (x[[row, c]] - maxima[[segment, c]]).exp();
            }
        }
        ArrayD::from_shape_fn(sums.raw_dim(), |at| {
            let segment = at[0];
            let y = maxima[&at] + sums[&at].ln();
            // One rounding of each difference and sum, and a few units for each function; a term t exp(-t) is below 1.
            (y, epsilon * (2.0 * f64::from(sizes[segment]) + 8.0 + 2.0 * y.abs() + maxima[&at].abs()))
        })
    }

    /// `exp(x - max) / sum` and a bound.
    pub fn softmax(&self, x: &ArrayD<f64>, epsilon: f64, tiny: f64) -> ArrayD<(f64, f64)> {
        let (maxima, sizes) = (self.maxima(x), self.sizes());
        let mut sums = zeros::<f64, 2>([self.count, x.shape()[1]]);
        let mut y = zeros::<f64, 2>([self.ids.len(), x.shape()[1]]).mapv(|zero| (zero, 0.0));
        for (row, segment) in self.each() {
            for c in 0..x.shape()[1] {
                sums[[segment, c]] += (x[[row, c]] - maxima[[segment, c]]).exp();
            }
        }
        for (row, segment) in self.each() {
            for c in 0..x.shape()[1] {
                let difference = x[[row, c]] - maxima[[segment, c]];
                let share = difference.exp() / sums[[segment, c]];
                let roundings = difference.abs() + 2.0 * f64::from(sizes[segment]) + 8.0;
                y[[row, c]] = (share, share * epsilon * roundings + tiny);
            }
        }
        y
    }

    /// `gy[s, :] * exp(x[m, :] - y[s, :])` and a bound.
    pub fn log_sum_exp_adjoint(
        &self,
        [grad_y, x, y]: [&ArrayD<f64>; 3],
        epsilon: f64,
        tiny: f64,
    ) -> ArrayD<(f64, f64)> {
        let mut grad_x = zeros::<f64, 2>([self.ids.len(), x.shape()[1]]).mapv(|zero| (zero, 0.0));
        for (row, segment) in self.each() {
            for c in 0..x.shape()[1] {
                let whole = y[[segment, c]];
                let difference = if whole == f64::NEG_INFINITY { x[[row, c]] } else { x[[row, c]] - whole };
                let gradient = grad_y[[segment, c]] * difference.exp();
                let roundings = if difference.is_finite() { difference.abs() + 8.0 } else { 0.0 };
                let bound = gradient.abs() * epsilon * roundings;
                grad_x[[row, c]] = (gradient, bound + tiny * (1.0 + grad_y[[segment, c]].abs()));
            }
        }
        grad_x
    }

    /// `y * (gy - sum of y * gy)` and a bound.
    pub fn softmax_adjoint(
        &self,
        grad_y: &ArrayD<f64>,
        y: &ArrayD<f64>,
        epsilon: f64,
        tiny: f64,
    ) -> ArrayD<(f64, f64)> {
        let (sizes, shape) = (self.sizes(), [self.count, y.shape()[1]]);
        let (mut dots, mut magnitudes) = (zeros::<f64, 2>(shape), zeros::<f64, 2>(shape));
        for (row, segment) in self.each() {
            for c in 0..shape[1] {
                let term = y[[row, c]] * grad_y[[row, c]];
                dots[[segment, c]] += term;
                magnitudes[[segment, c]] += term.abs();
            }
        }
        let mut grad_x = zeros::<f64, 2>([self.ids.len(), shape[1]]).mapv(|zero| (zero, 0.0));
        for (row, segment) in self.each() {
            for c in 0..shape[1] {
                let (y, grad) = (y[[row, c]], grad_y[[row, c]]);
                let sum = magnitudes[[segment, c]] * (f64::from(sizes[segment]) + 4.0) + 4.0 * grad.abs();
                let bound = y.abs() * (epsilon * sum + tiny * f64::from(sizes[segment])) + tiny;
                grad_x[[row, c]] = (y * (grad - dots[[segment, c]]), bound);
            }
        }
        grad_x
    }
}
