//! What matrices of triangular convolutions must be, and how far from it the library may be.
//!
//! With u half an epsilon, a sum of `products` products of numbers is right within `(products + 16) u` of the same sum of magnitudes,
//! with weights, and what underflow takes. Sums of integers are exact where those of magnitudes are.

use super::triconv::{Formula, Sequence, Table, gradient_scan, scan, zeros};
use super::triconv_magnitude::Magnitude;
use super::triconv_overflow::Beyond;
use super::wide::{Referred, Wide};
use ndarray::ArrayD;
use pullback::triconv::{Side, Weights};

pub fn number<T: Referred>(x: f64) -> T {
    T::from_f64(x).expect("rounded")
}

/// The largest number.
pub fn most<T: Referred>() -> f64 {
    T::max_value().to_f64().expect("an element is an f64")
}

/// Numbers that references compute with, and magnitudes.
#[derive(Clone, Debug)]
pub struct Measured<T: Referred> {
    pub wide: Sequence<T::Wide>,
    pub size: Sequence<Magnitude<T>>,
}

impl<T: Referred> Measured<T> {
    pub fn of(given: &Sequence<T>) -> Self {
        Self { wide: given.map(Referred::wide), size: given.map(|x| Magnitude::new(x.wide().to_f64())) }
    }

    /// Of [`Magnitude::rounded`] results.
    pub fn rounded(given: &Sequence<T>) -> Self {
        Self { size: given.map(|x| Magnitude::rounded(x.wide().to_f64())), ..Self::of(given) }
    }

    pub fn is_finite(&self) -> bool {
        self.size.cells.iter().all(|x| x.size.is_finite())
    }

    pub fn len(&self) -> usize {
        self.size.len()
    }
}

/// [`Table`]s for both.
pub struct MeasuredTable<T: Referred> {
    pub wide: Table<T::Wide>,
    pub size: Table<Magnitude<T>>,
}

impl<T: Referred> MeasuredTable<T> {
    pub fn new(weights: Weights, rows: usize) -> Self {
        Self { wide: Table::new(weights, rows), size: Table::new(weights, rows) }
    }

    pub fn of_product(weights: Weights, rows: usize) -> Self {
        Self { wide: Table::of_product(weights, rows), size: Table::of_product(weights, rows) }
    }
}

/// One matrix.
pub struct Expected<T: Referred> {
    pub values: Vec<T::Wide>,
    /// With magnitudes in place of all numbers.
    pub sizes: Vec<Magnitude<T>>,
    pub products: usize,
    /// What a relaxed sum may be off by beside roundings, relative to that of magnitudes.
    pub tolerance: f64,
}

impl<T: Referred> Expected<T> {
    /// Of nothing yet.
    pub fn zero(count: usize) -> Self {
        Self { values: zeros(count), sizes: zeros(count), products: 0, tolerance: 0.0 }
    }

    /// Matrix `k` of `start`.
    pub fn started(start: &Measured<T>, k: usize) -> Self {
        let (values, sizes) = (start.wide.cells(k).to_vec(), start.size.cells(k).to_vec());
        Self { values, sizes, products: 0, tolerance: 0.0 }
    }

    /// With a sum added to it.
    pub fn and(self, formula: &Formula, w: &MeasuredTable<T>, first: &Measured<T>, second: &Measured<T>) -> Self {
        Self {
            values: formula.sum(&w.wide, &first.wide, &second.wide, self.values),
            sizes: formula.sum(&w.size, &first.size, &second.size, self.sizes),
            products: self.products + formula.products(&first.size),
            ..self
        }
    }

    pub fn relaxed(self, tolerance: f64) -> Self {
        Self { tolerance, ..self }
    }

    /// `found` is near enough. What is beyond the largest number, or computed with what is, may be anything.
    #[track_caller]
    pub fn check(&self, what: &str, found: &[T]) {
        let bound = (self.products as f64 + 16.0) * T::unit() + self.tolerance;
        assert_eq!(found.len(), self.values.len(), "{what}");
        for (at, ((&found, &value), &magnitude)) in found.iter().zip(&self.values).zip(&self.sizes).enumerate() {
            let (wide, in_range, Magnitude { size, lost, .. }) = (value.to_f64(), magnitude.is_in_range(), magnitude);
            if !wide.is_finite() {
                let known = in_range || size.is_nan();
                assert!(!(known && found.is_finite()), "{what}: entry {at} is {found:?}, not {wide}");
            } else if in_range {
                let error = bound * size + lost;
                let off = (found.wide() - value).to_f64().abs();
                assert!(off <= error, "{what}: entry {at} is {found:?}, {off:e} from {value:?}, more than {error:e}");
            }
        }
    }

    /// [`Expected::check`] of a sum that `start` was added to at the end.
    #[track_caller]
    pub fn check_added(&self, what: &str, start: &[T], found: &[T]) {
        let plus = |(&x, &s): (&Magnitude<T>, &T)| x + Magnitude::new(s.wide().to_f64());
        let sizes = self.sizes.iter().zip(start).map(plus).collect();
        let values = self.values.iter().zip(start).map(|(&x, &s)| x + s.wide()).collect();
        let added = Self { values, sizes, products: self.products + 1, ..*self };
        added.check(what, found);
    }
}

/// What a whole scan must be, from `A_0` and every S.
pub struct WholeScan<T: Referred> {
    pub values: Sequence<T::Wide>,
    pub sizes: Sequence<Magnitude<T>>,
    /// (k + 1) ((k + 1) m + 16) u of each matrix A_{k+1}.
    bounds: Vec<f64>,
}

impl<T: Referred> WholeScan<T> {
    pub fn new(side: Side, w: &MeasuredTable<T>, s: &Measured<T>, b: &Measured<T>) -> Self {
        let m = b.size.shape[0] as f64;
        let bound = |steps: usize| steps as f64 * (steps as f64 * m + 16.0) * T::unit();
        Self {
            values: scan(side, &w.wide, &s.wide, &b.wide),
            sizes: scan(side, &w.size, &s.size, &b.size),
            bounds: (0..s.len()).map(bound).collect(),
        }
    }

    /// Of the gradients G, which are those of a scan that runs backwards.
    pub fn of_gradients(side: Side, w: &MeasuredTable<T>, grad_a: &Measured<T>, b: &Measured<T>) -> Self {
        let (m, n) = (b.size.shape[0] as f64, grad_a.len() - 1);
        let bound = |steps: usize| steps as f64 * (steps as f64 * m + 16.0) * T::unit();
        Self {
            values: gradient_scan(side, &w.wide, &grad_a.wide, &b.wide),
            sizes: gradient_scan(side, &w.size, &grad_a.size, &b.size),
            bounds: (0..=n).map(|j| bound(n - j)).collect(),
        }
    }

    /// With the same in every step.
    pub fn relaxed(mut self, tolerance: f64) -> Self {
        let last = self.bounds.len() - 1;
        let backwards = self.bounds[0] > self.bounds[last];
        for (k, bound) in self.bounds.iter_mut().enumerate() {
            *bound += tolerance * if backwards { last - k } else { k } as f64;
        }
        self
    }

    /// `found` is near enough.
    #[track_caller]
    pub fn check(&self, what: &str, found: &Sequence<T>) {
        for (k, &bound) in self.bounds.iter().enumerate() {
            let cells = found.cells(k).iter().zip(self.values.cells(k)).zip(self.sizes.cells(k));
            for (at, ((&found, &value), magnitude)) in cells.enumerate() {
                if magnitude.is_in_range() {
                    let off = (found.wide() - value).to_f64().abs();
                    let error = bound * magnitude.size + magnitude.lost;
                    assert!(off <= error, "{what}, matrix {k}: entry {at} is {found:?}, {off:e} from {value:?}");
                }
            }
        }
    }

    pub fn beyond(&self) -> Vec<Beyond> {
        let of = |(k, &bound)| Beyond::of(k, self.values.cells(k), self.sizes.cells(k), bound);
        self.bounds.iter().enumerate().map(of).collect()
    }

    pub fn measured(self) -> Measured<T> {
        Measured { wide: self.values, size: self.sizes }
    }

    /// `found` is what integers give: exactly that, up to the first matrix whose sums of magnitudes are beyond what an element counts to.
    #[track_caller]
    pub fn check_integers(&self, what: &str, found: &Sequence<T>) {
        let exact = 1.0 / T::unit();
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|&a, &b| self.bounds[a].total_cmp(&self.bounds[b]));
        let exact = |&k: &usize| self.sizes.cells(k).iter().all(|x| x.size < exact);
        for k in order.into_iter().take_while(exact) {
            let expected: Vec<f64> = self.values.cells(k).iter().map(|value| value.to_f64()).collect();
            let found: Vec<f64> = found.cells(k).iter().map(|x| x.wide().to_f64()).collect();
            assert_eq!(found, expected, "{what}, matrix {k}");
        }
    }
}

/// The matrices of an array whose axes before the last three, or two, count items.
pub fn items<T: Copy>(array: &ArrayD<T>, items: usize, shape: [usize; 2]) -> Vec<Sequence<T>> {
    let cells: Vec<T> = array.iter().copied().collect();
    let each = cells.len().checked_div(items).unwrap_or(0);
    (0..items).map(|item| Sequence::new(shape, cells[item * each..(item + 1) * each].to_vec())).collect()
}

/// Sums of integers are exact where those of magnitudes are below what an element counts to.
#[track_caller]
pub fn check_exact<T: Referred>(what: &str, expected: &Expected<T>, found: &[T]) {
    let exact = 1.0 / T::unit();
    for ((value, magnitude), found) in expected.values.iter().zip(&expected.sizes).zip(found) {
        assert!(magnitude.size >= exact || found.wide() == *value, "{what}: {found:?} is not {value:?}");
    }
}
