//! What matrices of triangular convolutions must be, and how far from it the library may be.
//!
//! With u half an epsilon, a sum of `products` products of numbers is right within `(products + 16) u` of the same sum of magnitudes,
//! with weights. Sums of integers are exact where those of magnitudes are. Products that underflow may lose as much as the smallest
//! number, times their weights.

use super::triconv::{Formula, Sequence, Table, gradient_scan, scan, zeros};
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

/// The smallest number above 0.
pub fn smallest<T: Referred>() -> f64 {
    T::tiny() * 2.0 * T::unit()
}

/// Numbers that references compute with, and magnitudes.
#[derive(Clone, Debug)]
pub struct Measured<W> {
    pub wide: Sequence<W>,
    pub size: Sequence<f64>,
}

impl<W: Wide> Measured<W> {
    pub fn of<T: Referred<Wide = W>>(given: &Sequence<T>) -> Self {
        Self { wide: given.map(Referred::wide), size: given.map(|x| x.wide().to_f64().abs()) }
    }

    pub fn is_finite(&self) -> bool {
        self.size.cells.iter().all(|x| x.is_finite())
    }

    pub fn len(&self) -> usize {
        self.size.len()
    }
}

/// [`Table`]s for both.
pub struct MeasuredTable<W> {
    pub wide: Table<W>,
    pub size: Table<f64>,
}

impl<W: Wide> MeasuredTable<W> {
    pub fn new(weights: Weights, rows: usize) -> Self {
        Self { wide: Table::new(weights, rows), size: Table::new(weights, rows) }
    }

    pub fn of_product(weights: Weights, rows: usize) -> Self {
        Self { wide: Table::of_product(weights, rows), size: Table::of_product(weights, rows) }
    }
}

/// One matrix.
pub struct Expected<W> {
    pub values: Vec<W>,
    /// With magnitudes in place of all numbers.
    pub sizes: Vec<f64>,
    pub products: usize,
    /// The sum of the weights of all products.
    weights: f64,
}

impl<W: Wide> Expected<W> {
    /// Of nothing yet.
    pub fn zero(count: usize) -> Self {
        Self { values: zeros(count), sizes: vec![0.0; count], products: 0, weights: 0.0 }
    }

    /// Matrix `k` of `start`.
    pub fn started(start: &Measured<W>, k: usize) -> Self {
        let (values, sizes) = (start.wide.cells(k).to_vec(), start.size.cells(k).to_vec());
        Self { values, sizes, products: 0, weights: 0.0 }
    }

    /// With a sum added to it.
    pub fn and(self, formula: &Formula, w: &MeasuredTable<W>, first: &Measured<W>, second: &Measured<W>) -> Self {
        Self {
            values: formula.sum(&w.wide, &first.wide, &second.wide, self.values),
            sizes: formula.sum(&w.size, &first.size, &second.size, self.sizes),
            products: self.products + formula.products(&first.size),
            weights: self.weights + formula.weights(&w.size, &first.size),
        }
    }

    /// `found` is near enough. What is beyond the largest number, or computed with what is, may be anything.
    #[track_caller]
    pub fn check<T: Referred<Wide = W>>(&self, what: &str, found: &[T]) {
        let bound = (self.products as f64 + 16.0) * T::unit();
        assert_eq!(found.len(), self.values.len(), "{what}");
        for (at, ((&found, &value), &size)) in found.iter().zip(&self.values).zip(&self.sizes).enumerate() {
            let wide = value.to_f64();
            if !wide.is_finite() {
                let known = size < most::<T>() / 4.0 || size.is_nan();
                assert!(!(known && found.is_finite()), "{what}: entry {at} is {found:?}, not {wide}");
            } else if size < most::<T>() / 4.0 {
                let error = bound * size + (self.weights + 1.0) * smallest::<T>();
                let off = (found.wide() - value).to_f64().abs();
                assert!(off <= error, "{what}: entry {at} is {found:?}, {off:e} from {value:?}, more than {error:e}");
            }
        }
    }

    /// [`Expected::check`] of a sum that `start` was added to at the end.
    #[track_caller]
    pub fn check_added<T: Referred<Wide = W>>(&self, what: &str, start: &[T], found: &[T]) {
        let plus = |x: &[f64]| x.iter().zip(start).map(|(x, s)| x + s.wide().to_f64().abs()).collect();
        let values = self.values.iter().zip(start).map(|(&x, &s)| x + s.wide()).collect();
        let added = Self { values, sizes: plus(&self.sizes), products: self.products + 1, weights: self.weights };
        added.check(what, found);
    }
}

/// What a whole scan must be, from `A_0` and every S.
pub struct WholeScan<W> {
    pub values: Sequence<W>,
    pub sizes: Sequence<f64>,
    /// (k + 1) ((k + 1) m + 16) u of each matrix A_{k+1}.
    bounds: Vec<f64>,
}

impl<W: Wide> WholeScan<W> {
    pub fn new<T: Referred<Wide = W>>(side: Side, w: &MeasuredTable<W>, s: &Measured<W>, b: &Measured<W>) -> Self {
        let m = b.size.shape[0] as f64;
        let bound = |steps: usize| steps as f64 * (steps as f64 * m + 16.0) * T::unit();
        Self {
            values: scan(side, &w.wide, &s.wide, &b.wide),
            sizes: scan(side, &w.size, &s.size, &b.size),
            bounds: (0..s.len()).map(bound).collect(),
        }
    }

    /// Of the gradients G, which are those of a scan that runs backwards.
    pub fn of_gradients<T: Referred<Wide = W>>(
        side: Side,
        w: &MeasuredTable<W>,
        grad_a: &Measured<W>,
        b: &Measured<W>,
    ) -> Self {
        let (m, n) = (b.size.shape[0] as f64, grad_a.len() - 1);
        let bound = |steps: usize| steps as f64 * (steps as f64 * m + 16.0) * T::unit();
        Self {
            values: gradient_scan(side, &w.wide, &grad_a.wide, &b.wide),
            sizes: gradient_scan(side, &w.size, &grad_a.size, &b.size),
            bounds: (0..=n).map(|j| bound(n - j)).collect(),
        }
    }

    /// `found` is near enough, if nothing underflows.
    #[track_caller]
    pub fn check<T: Referred<Wide = W>>(&self, what: &str, found: &Sequence<T>) {
        if self.sizes.cells.iter().any(|&size| size > 0.0 && size < T::tiny() / T::unit()) {
            return;
        }
        for (k, &bound) in self.bounds.iter().enumerate() {
            let cells = found.cells(k).iter().zip(self.values.cells(k)).zip(self.sizes.cells(k));
            for (at, ((&found, &value), &size)) in cells.enumerate() {
                if size < most::<T>() / 4.0 {
                    let (off, error) = ((found.wide() - value).to_f64().abs(), bound * size);
                    assert!(off <= error, "{what}, matrix {k}: entry {at} is {found:?}, {off:e} from {value:?}");
                }
            }
        }
    }

    pub fn beyond<T: Referred<Wide = W>>(&self) -> Vec<Beyond> {
        let of = |(k, &bound)| Beyond::of::<T>(k, self.values.cells(k), self.sizes.cells(k), bound);
        self.bounds.iter().enumerate().map(of).collect()
    }

    pub fn measured(self) -> Measured<W> {
        Measured { wide: self.values, size: self.sizes }
    }

    /// `found` is what integers give: exactly that, up to the first matrix whose sums of magnitudes are beyond what an element counts to.
    #[track_caller]
    pub fn check_integers<T: Referred<Wide = W>>(&self, what: &str, found: &Sequence<T>) {
        let exact = 1.0 / T::unit();
        let mut order: Vec<usize> = (0..found.len()).collect();
        order.sort_by(|&a, &b| self.bounds[a].total_cmp(&self.bounds[b]));
        let exact = |&k: &usize| self.sizes.cells(k).iter().all(|&size| size < exact);
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
pub fn check_exact<T: Referred>(what: &str, expected: &Expected<T::Wide>, found: &[T]) {
    let exact = 1.0 / T::unit();
    for ((value, &size), found) in expected.values.iter().zip(&expected.sizes).zip(found) {
        assert!(size >= exact || found.wide() == *value, "{what}: {found:?} is not {value:?}");
    }
}
