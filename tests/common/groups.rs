//! Weighted sums and pooling as plain loops, written from their contracts.
//!
//! Arrays of the loops have a batch axis: features (B, N, C), results (B, P, C), one number an index (B, E).

use super::cells::Cell;
use super::values::Value;
use ndarray::{Array2, Array3, ArrayD};
use pullback::gather::Extremum;

/// Indices in groups, the same number to a group in every batch.
pub struct Groups {
    /// The row that each index names, (B, E), none for padding.
    pub named: Array2<Option<usize>>,
    /// The number of indices of each group.
    pub lengths: Vec<usize>,
    /// N.
    pub rows: usize,
}

/// An index that names a row.
#[derive(Clone, Copy)]
struct Named {
    batch: usize,
    group: usize,
    /// Its place in the group.
    place: usize,
    /// Its place among the indices of the batch.
    edge: usize,
    row: usize,
}

pub fn add<T: Value>(sum: &mut Cell<T>, term: T) {
    *sum = Cell::Computed(sum.value() + term);
}

pub fn copied<T: Value>(start: &ArrayD<T>) -> ArrayD<Cell<T>> {
    start.mapv(Cell::Copied)
}

pub fn zeros<T: Value, const N: usize>(shape: [usize; N]) -> ArrayD<T> {
    ArrayD::zeros(&shape[..])
}

/// The first NaN, else the first of the largest (smallest).
pub fn choose<T: Value>(which: Extremum, elements: impl Iterator<Item = (u32, T)>) -> Option<(u32, T)> {
    let mut best: Option<(u32, T)> = None;
    for (number, element) in elements {
        let better = best.is_none_or(|(_, best)| match which {
            _ if best.is_nan() => false,
            _ if element.is_nan() => true,
            Extremum::Max => element > best,
            Extremum::Min => element < best,
        });
        if better {
            best = Some((number, element));
        }
    }
    best
}

/// The dot product over channels: lanes, then a tree of halves.
pub fn dot<T: Value>(a: &[T], b: &[T]) -> T {
    let count = 64 / size_of::<T>();
    let mut lanes = vec![T::zero(); count];
    for (channel, (&a, &b)) in a.iter().zip(b).enumerate() {
        lanes[channel % count] = lanes[channel % count] + a * b;
    }
    let mut half = count / 2;
    while half > 0 {
        for lane in 0..half {
            lanes[lane] = lanes[lane] + lanes[lane + half];
        }
        half /= 2;
    }
    lanes[0]
}

impl Groups {
    pub fn batches(&self) -> usize {
        self.named.dim().0
    }

    pub fn edges(&self) -> usize {
        self.named.dim().1
    }

    pub fn features(&self, channels: usize) -> [usize; 3] {
        [self.batches(), self.rows, channels]
    }

    pub fn results(&self, channels: usize) -> [usize; 3] {
        [self.batches(), self.lengths.len(), channels]
    }

    /// Every index that names a row, in ascending order.
    fn each(&self) -> Vec<Named> {
        let places: Vec<_> =
            self.lengths.iter().enumerate().flat_map(|(group, &n)| (0..n).map(move |place| (group, place))).collect();
        assert_eq!(places.len(), self.edges());
        let named = |((batch, edge), &row): ((usize, usize), &Option<usize>)| {
            let (group, place) = places[edge];
            row.map(|row| Named { batch, group, place, edge, row })
        };
        self.named.indexed_iter().filter_map(named).collect()
    }

    fn counts(&self) -> Array2<usize> {
        let mut counts = Array2::zeros([self.batches(), self.lengths.len()]);
        self.each().iter().for_each(|at| counts[[at.batch, at.group]] += 1);
        counts
    }

    /// `y[b, p, :] += w[b, e] * x[b, i[b, e], :]`
    pub fn weighted<T: Value>(&self, x: &ArrayD<T>, w: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let channels = x.shape()[2];
        let mut y = copied(&zeros(self.results(channels)));
        for at in self.each() {
            for c in 0..channels {
                add(&mut y[[at.batch, at.group, c]], w[[at.batch, at.edge]] * x[[at.batch, at.row, c]]);
            }
        }
        y
    }

    /// `gx[b, i[b, e], :] += w[b, e] * gy[b, p, :]`
    pub fn weighted_x<T: Value>(&self, grad_y: &ArrayD<T>, w: &ArrayD<T>, start: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        for at in self.each() {
            for c in 0..grad_y.shape()[2] {
                add(&mut sums[[at.batch, at.row, c]], w[[at.batch, at.edge]] * grad_y[[at.batch, at.group, c]]);
            }
        }
        sums
    }

    /// `gw[b, e] += dot(gy[b, p, :], x[b, i[b, e], :])`
    pub fn weighted_w<T: Value>(&self, grad_y: &ArrayD<T>, x: &ArrayD<T>, start: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        let row = |array: &ArrayD<T>, batch: usize, row: usize| -> Vec<T> {
            (0..array.shape()[2]).map(|c| array[[batch, row, c]]).collect()
        };
        for at in self.each() {
            let dot = dot(&row(grad_y, at.batch, at.group), &row(x, at.batch, at.row));
            add(&mut sums[[at.batch, at.edge]], dot);
        }
        sums
    }

    /// Sums, or means over the indices that are not padding.
    pub fn pooled<T: Value>(&self, mean: bool, x: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let channels = x.shape()[2];
        let mut y = copied(&zeros(self.results(channels)));
        for at in self.each() {
            (0..channels).for_each(|c| add(&mut y[[at.batch, at.group, c]], x[[at.batch, at.row, c]]));
        }
        for ((batch, group), &n) in self.counts().indexed_iter().filter(|(_, n)| mean && **n > 0) {
            for c in 0..channels {
                let sum = &mut y[[batch, group, c]];
                *sum = Cell::Computed(sum.value() / T::from_usize(n).expect("a count"));
            }
        }
        y
    }

    pub fn pooled_adjoint<T: Value>(&self, mean: bool, grad_y: &ArrayD<T>, start: &ArrayD<T>) -> ArrayD<Cell<T>> {
        let (mut sums, counts) = (copied(start), self.counts());
        for at in self.each() {
            for c in 0..grad_y.shape()[2] {
                let n = if mean { counts[[at.batch, at.group]] } else { 1 };
                let term = grad_y[[at.batch, at.group, c]] / T::from_usize(n).expect("a count");
                add(&mut sums[[at.batch, at.row, c]], term);
            }
        }
        sums
    }

    /// Extreme elements and their places.
    pub fn extremes<T: Value>(&self, which: Extremum, x: &ArrayD<T>, empty: f64) -> (ArrayD<Cell<T>>, ArrayD<u32>) {
        let shape = self.results(x.shape()[2]);
        let mut members = Array2::from_elem([shape[0], shape[1]], Vec::new());
        self.each().into_iter().for_each(|at| members[[at.batch, at.group]].push(at));
        let chosen = Array3::from_shape_fn(shape, |(batch, group, c)| {
            let here = members[[batch, group]].iter();
            choose(which, here.map(|at| (at.place as u32, x[[batch, at.row, c]])))
        });
        let values = chosen.mapv(|chosen| chosen.map_or(T::rounded(empty), |(_, value)| Cell::Copied(value)));
        (values.into_dyn(), chosen.mapv(|chosen| chosen.map_or(u32::MAX, |(place, _)| place)).into_dyn())
    }

    /// The gradient goes to the places that `arguments` names.
    pub fn first_adjoint<T: Value>(
        &self,
        grad_y: &ArrayD<T>,
        arguments: &ArrayD<u32>,
        start: &ArrayD<T>,
    ) -> ArrayD<Cell<T>> {
        let mut sums = copied(start);
        for at in self.each() {
            for c in 0..grad_y.shape()[2] {
                if arguments[[at.batch, at.group, c]] == at.place as u32 {
                    add(&mut sums[[at.batch, at.row, c]], grad_y[[at.batch, at.group, c]]);
                }
            }
        }
        sums
    }

    /// The gradient is divided between the elements that equal the extreme one; a NaN gets all.
    pub fn even_adjoint<T: Value>(
        &self,
        which: Extremum,
        x: &ArrayD<T>,
        grad_y: &ArrayD<T>,
        start: &ArrayD<T>,
    ) -> ArrayD<Cell<T>> {
        let (mut sums, each) = (copied(start), self.each());
        let (values, arguments) = self.extremes(which, x, 0.0);
        let takes = |at: &Named, c: usize| {
            let (group, row) = ([at.batch, at.group, c], [at.batch, at.row, c]);
            arguments[group] == at.place as u32 || x[row] == values[group].value()
        };
        let mut ties = Array3::<usize>::zeros(self.results(grad_y.shape()[2]));
        for at in &each {
            for c in (0..grad_y.shape()[2]).filter(|&c| takes(at, c)) {
                ties[[at.batch, at.group, c]] += 1;
            }
        }
        for at in &each {
            for c in (0..grad_y.shape()[2]).filter(|&c| takes(at, c)) {
                let group = [at.batch, at.group, c];
                let share = grad_y[group] / T::from_usize(ties[group]).expect("a count");
                add(&mut sums[[at.batch, at.row, c]], share);
            }
        }
        sums
    }
}
