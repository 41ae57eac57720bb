//! What a scan must give.

use super::triconv::{Sequence, of_grad_b, of_gradient, of_step};
use super::triconv_bounds::{Expected, Measured, MeasuredTable, WholeScan, check_exact, items};
use super::triconv_overflow::{Beyond, assert_added, assert_overflow, finite_items, finite_results, same_rounded};
use super::triconv_scan_case::{Data, Kind, ScanCase, Scene};
use super::wide::{Referred, Wide};
use ndarray::{ArrayD, Dimension};
use pullback::triconv::{Method, Scan, ScanGradients, Weights};
use pullback::{Error, Level, Result};

/// What a scan of a scene must give.
pub struct ScanReference<'a, T: Referred> {
    case: &'a ScanCase,
    w: MeasuredTable<T>,
    s: Vec<Measured<T>>,
    /// One for each S.
    b: Vec<Measured<T>>,
    /// Those of one cotangent after those of another.
    grad_a: Vec<Measured<T>>,
}

impl<'a, T: Referred> ScanReference<'a, T> {
    pub fn new(case: &'a ScanCase, scene: &Scene<T>) -> Self {
        let (batch, shape) = (case.batch(), case.rows_and_columns());
        let measured = |array: ArrayD<T>, count: usize, shape: [usize; 2]| -> Vec<Measured<T>> {
            items(&array, count, shape).iter().map(Measured::of).collect()
        };
        let mut s = items(&scene.s.view().to_owned(), batch, shape);
        for s in &mut s {
            s.cells.resize((case.n + 1) * case.p * case.m, T::zero());
        }
        let mut b = measured(scene.b.view().to_owned(), if case.shared { 1 } else { batch }, [case.m; 2]);
        if case.shared {
            b = vec![b[0].clone(); batch];
        }
        let grad_a = measured(scene.grad_a.view().to_owned(), case.cotangents.unwrap_or(1) * batch, shape);
        let s = s.iter().map(Measured::of).collect();
        Self { case, w: MeasuredTable::new(case.weights, case.n), s, b, grad_a }
    }

    /// A result, from which later ones are computed: in `f32`, with large weights, before it is rounded.
    fn computed(&self, found: &Sequence<T>) -> Measured<T> {
        let case = self.case;
        let wide = case.kind == Kind::F32 && case.weights == Weights::Binomial;
        if wide && (case.n > 33 || case.tuning.scaled == Some(true)) {
            Measured::rounded(found)
        } else {
            Measured::of(found)
        }
    }

    fn tolerance(&self) -> f64 {
        match self.case.method {
            Method::Direct => 0.0,
            Method::Relaxed { tolerance } => tolerance,
        }
    }

    /// Whether integers are promised to be exact.
    fn counts(&self) -> bool {
        let weights =
            self.case.weights == Weights::Plain || self.case.weights == Weights::Binomial && self.case.n <= 57;
        let direct = self.case.method == Method::Direct && self.case.tuning.scaled != Some(true);
        self.case.data == Data::Integers && weights && direct
    }

    pub fn check_forward(&self, found: &Result<ArrayD<T>>) {
        let (case, side) = (self.case, self.case.side);
        let whole = |item: usize| WholeScan::new(side, &self.w, &self.s[item], &self.b[item]).relaxed(self.tolerance());
        let finite = |item: usize| self.s[item].is_finite() && self.b[item].is_finite();
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let scans = (0..case.batch()).filter(|&item| finite(item)).map(whole);
                let known: Vec<_> = scans.flat_map(|scan| scan.beyond()).collect();
                return assert_overflow("a", error, &known, false);
            }
        };
        assert_eq!(found.shape(), case.shape_of_a(false).slice());
        for (item, found) in items(found, case.batch(), case.rows_and_columns()).iter().enumerate() {
            let (s, b, measured) = (&self.s[item], &self.b[item], self.computed(found));
            for k in 0..=case.n {
                let expected = Expected::started(s, k);
                let expected = if k == 0 { expected } else { expected.and(&of_step(side, k), &self.w, &measured, b) };
                expected.relaxed(self.tolerance()).check(&format!("A_{k} of item {item}"), found.cells(k));
            }
            let same = |(&found, &given): (&T, &T::Wide)| found.wide() == given || !given.to_f64().is_finite();
            assert!(found.cells(0).iter().zip(s.wide.cells(0)).all(same), "A_0 of item {item} is not what was given");
            if finite(item) {
                assert!(found.cells.iter().all(|x| x.is_finite()), "item {item} overflows without an error");
                let whole = whole(item);
                whole.check(&format!("A of item {item}"), found);
                if self.counts() {
                    whole.check_integers(&format!("A of item {item}"), found);
                }
            }
        }
    }

    /// `added` are the arrays that gradients were added to, before and after, of `grad_s` and of `grad_b`.
    pub fn check_adjoint(&self, a: &ArrayD<T>, found: &Result<ScanGradients<T>>, added: Option<&[ArrayD<T>; 4]>) {
        let (case, side, batch) = (self.case, self.case.side, self.case.batch());
        let a: Vec<_> = items(a, batch, case.rows_and_columns()).iter().map(Measured::of).collect();
        let whole = |at: usize| {
            let whole = WholeScan::of_gradients(side, &self.w, &self.grad_a[at], &self.b[at % batch]);
            whole.relaxed(self.tolerance())
        };
        let finite =
            |at: usize| self.grad_a[at].is_finite() && self.b[at % batch].is_finite() && a[at % batch].is_finite();
        let cotangents = case.cotangents.unwrap_or(1);
        // One sum for all of a batch, or one each.
        let summed: Vec<Vec<usize>> = match case.shared {
            true => (0..cotangents).map(|r| (r * batch..(r + 1) * batch).collect()).collect(),
            false => (0..cotangents * batch).map(|at| vec![at]).collect(),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                let scans: Vec<_> = (0..self.grad_a.len()).map(|at| finite(at).then(|| whole(at))).collect();
                if !matches!(error, Error::Overflow { result: "grad_b", .. }) {
                    let known: Vec<_> = scans.iter().flatten().flat_map(WholeScan::beyond).collect();
                    return assert_overflow("grad_s", error, &known, true);
                }
                let g: Vec<_> = scans.into_iter().map(|scan| scan.map(WholeScan::measured)).collect();
                let finite = summed.iter().map(|members| (members, members.iter().all(|&at| g[at].is_some())));
                let known = finite.filter(|(_, finite)| *finite).flat_map(|(members, _)| {
                    (0..case.n).map(|i| {
                        let g = |at: usize| g[at].as_ref().expect("finite");
                        let sum = self.of_b(i, members, &a, g);
                        Beyond::of(i, &sum.values, &sum.sizes, 1.0)
                    })
                });
                return assert_overflow("grad_b", error, &known.collect::<Vec<_>>(), false);
            }
        };
        assert_eq!(found.grad_s.shape(), case.shape_of_a(true).slice());
        assert_eq!(found.grad_b.shape(), case.shape_of_b(true).slice());
        let grad_s = items(&found.grad_s, cotangents * batch, case.rows_and_columns());
        let g: Vec<_> = grad_s.iter().map(|found| self.computed(found)).collect();
        for (at, grad_s) in grad_s.iter().enumerate() {
            for j in 0..=case.n {
                let expected = self.of_s(at, j, &g[at]);
                expected.check(&format!("grad_s[{j}] of item {at}"), grad_s.cells(j));
            }
            if finite(at) {
                assert!(grad_s.cells.iter().all(|x| x.is_finite()), "item {at} of grad_s overflows without an error");
                let whole = whole(at);
                whole.check(&format!("grad_s of item {at}"), grad_s);
                if self.counts() {
                    whole.check_integers(&format!("grad_s of item {at}"), grad_s);
                }
            }
        }
        let of = |at: usize, shape: [usize; 2], count: usize| added.map(|added| items(&added[at], count, shape));
        let shape = case.rows_and_columns();
        let [from_s, to_s] = [0, 1].map(|at| of(at, shape, g.len()));
        let [from_b, to_b] = [2, 3].map(|at| of(at, [case.m; 2], summed.len()));
        if let (Some(from), Some(to)) = (from_s, to_s) {
            for (at, (from, to)) in from.iter().zip(&to).enumerate() {
                for j in 0..=case.n {
                    let expected = self.of_s(at, j, &g[at]);
                    let what = format!("grad_s[{j}] of item {at}, added");
                    expected.check_added(&what, from.cells(j), to.cells(j));
                }
            }
        }
        for (at, grad_b) in items(&found.grad_b, summed.len(), [case.m; 2]).iter().enumerate() {
            for i in 0..case.n {
                let members = &summed[at];
                let expected = self.of_b(i, members, &a, |at| &g[at]);
                let what = format!("grad_b[{i}] of items {members:?}");
                expected.check(&what, grad_b.cells(i));
                if self.counts() {
                    check_exact(&what, &expected, grad_b.cells(i));
                }
                let known = members.iter().all(|&at| finite(at));
                assert!(!known || grad_b.cells(i).iter().all(|x| x.is_finite()), "{what} overflow without an error");
                if let (Some(from), Some(to)) = (&from_b, &to_b) {
                    expected.check_added(&what, from[at].cells(i), to[at].cells(i));
                }
            }
        }
    }

    /// The gradient of `S_j` of an item.
    fn of_s(&self, at: usize, j: usize, g: &Measured<T>) -> Expected<T> {
        let formula = of_gradient(self.case.side, self.case.n, j);
        let expected = Expected::started(&self.grad_a[at], j);
        expected.and(&formula, &self.w, g, &self.b[at % self.case.batch()]).relaxed(self.tolerance())
    }

    /// The gradient of `B_i`, summed over some items.
    fn of_b<'g>(
        &self,
        i: usize,
        members: &[usize],
        a: &[Measured<T>],
        g: impl Fn(usize) -> &'g Measured<T>,
    ) -> Expected<T>
    where
        T::Wide: 'g,
    {
        let formula = of_grad_b(self.case.side, self.case.n, i);
        let start = Expected::zero(self.case.m * self.case.m);
        members.iter().fold(start, |sum, &at| sum.and(&formula, &self.w, &a[at % self.case.batch()], g(at)))
    }
}

/// The results of f64 for the same numbers.
pub struct WiderScan {
    scan: Scan<f64>,
    a: Result<ArrayD<f64>>,
    b: ArrayD<f64>,
    grad_a: ArrayD<f64>,
    shared: bool,
    /// Of each item, whether all of what A is computed from is, and whether B is.
    finite: [Vec<bool>; 2],
}

pub fn widened<T: Referred>(array: ArrayD<T>) -> ArrayD<f64> {
    array.mapv(|x| x.to_f64().expect("an element is an f64"))
}

impl WiderScan {
    pub fn new<T: Referred>(case: &ScanCase, scene: &Scene<T>, level: Level) -> Self {
        let scan = ScanCase { kind: Kind::F64, ..case.clone() }.operator(level);
        let [s, b, grad_a] = [&scene.s, &scene.b, &scene.grad_a].map(|array| widened(array.view().to_owned()));
        let a = if case.sources { scan.forward_with(s.view(), b.view()) } else { scan.forward(s.view(), b.view()) };
        let batch = case.batch();
        let of_b = finite_items(&b, if case.shared { 1 } else { batch });
        let of_b: Vec<bool> = (0..batch).map(|item| of_b[item % of_b.len()]).collect();
        let of_a = finite_items(&s, batch).iter().zip(&of_b).map(|(s, b)| *s && *b).collect();
        Self { scan, a, b, grad_a, shared: case.shared, finite: [of_a, of_b] }
    }

    pub fn check_forward<T: Referred>(&self, found: &Result<ArrayD<T>>) {
        same_rounded("a", found.as_ref(), self.a.as_ref(), &self.finite[0]);
    }

    pub fn check_adjoint<T: Referred>(
        &self,
        a: &ArrayD<T>,
        found: &Result<ScanGradients<T>>,
        added: Option<&[ArrayD<T>; 4]>,
    ) {
        let wide = self.scan.adjoint(self.grad_a.view(), widened(a.clone()).view(), self.b.view());
        let (found, wide) = (found.as_ref(), wide.as_ref());
        let batch = self.finite[1].len();
        let (of_a, cotangents) = (finite_items(a, batch), self.grad_a.len().checked_div(a.len()).unwrap_or(0));
        let of_grad = finite_items(&self.grad_a, cotangents * batch);
        let of_item = |item: usize| of_a[item] && self.finite[1][item];
        let each: Vec<bool> = of_grad.iter().enumerate().map(|(at, grad)| *grad && of_item(at % batch)).collect();
        // Those of S are looked at first.
        if !matches!(found, Err(Error::Overflow { result: "grad_b", .. })) {
            same_rounded("grad_s", found.map(|g| &g.grad_s), wide.map(|g| &g.grad_s), &each);
        }
        if !matches!(found, Err(Error::Overflow { result: "grad_s", .. })) {
            same_rounded(
                "grad_b",
                found.map(|g| &g.grad_b),
                wide.map(|g| &g.grad_b),
                &finite_results(&each, batch, self.shared),
            );
        }
        if let (Some([from_s, to_s, from_b, to_b]), Ok(found)) = (added, found) {
            assert_added("grad_s", from_s, &found.grad_s, to_s);
            assert_added("grad_b", from_b, &found.grad_b, to_b);
        }
    }
}
