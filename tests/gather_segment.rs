//! Reductions by segment against plain loops.

mod family;

use family::{POLICIES, Random, assert_bits, levels, row, strided, tunings, with_threads};
use pullback::gather::{Extremum, Linear, OutOfRange, Segments, Ties};
use pullback::ndarray::{Array, Array1, Array2, Axis, array, s};
use pullback::{Error, Level, Real};

/// Plain loops over the rows of every segment in ascending order.
struct Naive<'a> {
    ids: &'a [Option<usize>],
    segments: usize,
}

impl Naive<'_> {
    fn members(&self, segment: usize) -> Vec<usize> {
        (0..self.ids.len()).filter(|&m| self.ids[m] == Some(segment)).collect()
    }

    /// A result a segment and channel.
    fn reduce<T: Real, R: Clone>(&self, x: &Array2<T>, f: impl Fn(&[(usize, T)]) -> R) -> Array2<R> {
        let (segments, channels) = (self.segments, x.dim().1);
        let members: Vec<_> = (0..segments).map(|segment| self.members(segment)).collect();
        Array2::from_shape_fn((segments, channels), |(segment, c)| {
            f(&members[segment].iter().map(|&m| (m, x[[m, c]])).collect::<Vec<_>>())
        })
    }

    /// A result a row and channel, from the row, the segment and its members.
    fn spread<T: Real>(
        &self,
        x: &Array2<T>,
        zero: &Array2<T>,
        f: impl Fn(usize, usize, usize, &[(usize, T)]) -> T,
    ) -> Array2<T> {
        let members: Vec<_> = (0..self.segments).map(|segment| self.members(segment)).collect();
        Array2::from_shape_fn(x.dim(), |(m, c)| match self.ids[m] {
            None => zero[[m, c]],
            Some(segment) => f(m, segment, c, &members[segment].iter().map(|&m| (m, x[[m, c]])).collect::<Vec<_>>()),
        })
    }
}

fn extreme<T: Real>(which: Extremum, elements: &[(usize, T)], empty: T) -> (u32, T) {
    let beats = |a: T, b: T| if which == Extremum::Max { a > b } else { a < b };
    let first_nan = elements.iter().find(|(_, element)| element.is_nan());
    let best = || elements.iter().find(|(_, element)| !elements.iter().any(|&(_, other)| beats(other, *element)));
    first_nan.or_else(best).map_or((u32::MAX, empty), |&(m, element)| (m as u32, element))
}

fn of<T: Real>(x: f64) -> T {
    T::from_f64(x).unwrap()
}

fn close<T: Real>(what: &str, found: &Array2<T>, expected: &Array2<f64>) {
    assert_eq!(found.shape(), expected.shape());
    let tolerance = if size_of::<T>() == 4 { 2e-5 } else { 1e-13 };
    for (&found, &expected) in found.iter().zip(expected) {
        let found = found.to_f64().unwrap();
        let same = found == expected || found.is_nan() && expected.is_nan();
        assert!(same || (found - expected).abs() <= tolerance * expected.abs().max(1.0), "{what}: {found} {expected}");
    }
}

fn check<T: Real>(op: &Segments, ids: &[Option<usize>], channels: usize) {
    let naive = Naive { ids, segments: op.len() };
    let mut random = Random::new(channels as u64);
    let rows = ids.len();
    let x: Array2<T> = random.array((rows, channels));
    let ties: Array2<T> = Array2::from_shape_simple_fn((rows, channels), || random.tied());
    let start: Array2<T> = random.array((rows, channels));
    let zero = Array2::zeros((rows, channels));
    let grad_y: Array2<T> = random.array((op.len(), channels));

    for linear in [Linear::Sum, Linear::Mean] {
        let divide = |sum: T, n: usize| if linear == Linear::Mean && n > 0 { sum / of(n as f64) } else { sum };
        let y = naive.reduce(&x, |elements| {
            divide(elements.iter().fold(T::zero(), |sum, &(_, element)| sum + element), elements.len())
        });
        assert_bits("y", &op.forward(linear, x.view()).unwrap(), &y);
        assert_bits("y of strided", &op.forward(linear, strided(&x).view()).unwrap(), &y);
        let mut into = strided(&y);
        op.forward_into(linear, x.view(), into.view_mut()).unwrap();
        assert_bits("y into", &into, &y);
        let grad_x = naive.spread(&x, &zero, |_, s, c, elements| divide(grad_y[[s, c]], elements.len()));
        assert_bits("grad_x", &op.adjoint(linear, grad_y.view()).unwrap(), &grad_x);
        let mut into = strided(&start);
        op.adjoint_into(linear, strided(&grad_y).view(), into.view_mut()).unwrap();
        assert_bits("grad_x into", &into, &grad_x);
        let mut added = start.clone();
        op.adjoint_add(linear, strided(&grad_y).view(), added.view_mut()).unwrap();
        let sums = naive.spread(&x, &start, |m, s, c, elements| start[[m, c]] + divide(grad_y[[s, c]], elements.len()));
        assert_bits("grad_x added", &added, &sums);
    }

    for x in [&x, &ties] {
        let product = naive.reduce(x, |elements| elements.iter().fold(T::one(), |product, &(_, x)| product * x));
        assert_bits("product", &op.product(x.view()).unwrap(), &product);
        let mut into = strided(&product);
        op.product_into(strided(x).view(), into.view_mut()).unwrap();
        assert_bits("product into", &into, &product);
        let pulled = naive.spread(x, &zero, |m, s, c, elements| {
            let before = elements.iter().filter(|(k, _)| *k < m).fold(T::one(), |product, &(_, x)| product * x);
            let after = elements.iter().rev().filter(|(k, _)| *k > m).fold(T::one(), |product, &(_, x)| product * x);
            grad_y[[s, c]] * (before * after)
        });
        assert_bits("product adjoint", &op.product_adjoint(grad_y.view(), x.view()).unwrap(), &pulled);
        let mut into = strided(&start);
        op.product_adjoint_into(strided(&grad_y).view(), strided(x).view(), into.view_mut()).unwrap();
        assert_bits("product adjoint into", &into, &pulled);
    }

    for which in [Extremum::Max, Extremum::Min] {
        let values = naive.reduce(&ties, |elements| extreme(which, elements, of(-2.5)).1);
        let arguments = naive.reduce(&ties, |elements| extreme(which, elements, of(-2.5)).0);
        let found = op.extremes(which, ties.view()).unwrap();
        assert_bits("values", &found.values, &values);
        assert_eq!(found.arguments, arguments);
        let (mut into, mut into_arguments) = (strided(&values), Array2::zeros((op.len(), 2 * channels)));
        op.extremes_into(which, strided(&ties).view(), into.view_mut(), into_arguments.slice_mut(s![.., ..;2]))
            .unwrap();
        assert_bits("values into", &into, &values);
        assert_eq!(into_arguments.slice(s![.., ..;2]), arguments);
        for even in [false, true] {
            let shared = || match even {
                false => Ties::First(arguments.view()),
                true => Ties::Even(which, ties.view()),
            };
            let pull = |start: &Array2<T>| {
                naive.spread(&ties, start, |m, s, c, elements| {
                    let takes = |k: usize, x: T| k as u32 == arguments[[s, c]] || even && x == values[[s, c]];
                    let n = elements.iter().filter(|&&(k, x)| takes(k, x)).count();
                    let share = if even { grad_y[[s, c]] / of(n as f64) } else { grad_y[[s, c]] };
                    if takes(m, ties[[m, c]]) { start[[m, c]] + share } else { start[[m, c]] }
                })
            };
            assert_bits("pulled", &op.extremes_adjoint(grad_y.view(), shared()).unwrap(), &pull(&zero));
            let (mut into, mut added) = (strided(&start), start.clone());
            op.extremes_adjoint_into(strided(&grad_y).view(), shared(), into.view_mut()).unwrap();
            assert_bits("pulled into", &into, &pull(&zero));
            op.extremes_adjoint_add(grad_y.view(), shared(), added.view_mut()).unwrap();
            assert_bits("pulled and added", &added, &pull(&start));
        }
    }
    check_exponentials(op, &naive, &x.mapv(|x| x / of(100.0)), &grad_y);
}

fn check_exponentials<T: Real>(op: &Segments, naive: &Naive<'_>, x: &Array2<T>, grad_y: &Array2<T>) {
    let exact = x.mapv(|x| x.to_f64().unwrap());
    let zero = Array2::zeros(x.dim());
    let lse = naive.reduce(&exact, |elements| {
        let max = elements.iter().fold(f64::NEG_INFINITY, |max, &(_, x)| max.max(x));
        if elements.is_empty() { max } else { max + elements.iter().map(|&(_, x)| (x - max).exp()).sum::<f64>().ln() }
    });
    let found = op.log_sum_exp(x.view()).unwrap();
    close("log_sum_exp", &found, &lse);
    let mut into = strided(&found);
    op.log_sum_exp_into(strided(x).view(), into.view_mut()).unwrap();
    assert_bits("log_sum_exp into", &into, &found);
    let exact_grad = grad_y.mapv(|g| g.to_f64().unwrap() / 1e4);
    let grad = exact_grad.mapv(of::<T>);
    let pulled = naive.spread(&exact, &zero, |m, s, c, _| exact_grad[[s, c]] * (exact[[m, c]] - lse[[s, c]]).exp());
    let found_pulled = op.log_sum_exp_adjoint(grad.view(), x.view(), found.view()).unwrap();
    close("log_sum_exp adjoint", &found_pulled, &pulled);
    let mut into = strided(x);
    op.log_sum_exp_adjoint_into(strided(&grad).view(), strided(x).view(), strided(&found).view(), into.view_mut())
        .unwrap();
    assert_bits("log_sum_exp adjoint into", &into, &found_pulled);

    let y = naive.spread(&exact, &zero, |m, s, c, _| (exact[[m, c]] - lse[[s, c]]).exp());
    let found = op.softmax(x.view()).unwrap();
    close("softmax", &found, &y);
    let mut into = strided(x);
    op.softmax_into(strided(x).view(), into.view_mut()).unwrap();
    assert_bits("softmax into", &into, &found);
    let dots = naive.reduce(&(&y * &exact), |elements| elements.iter().map(|(_, product)| product).sum::<f64>());
    let pulled = naive.spread(&exact, &zero, |m, s, c, _| y[[m, c]] * (exact[[m, c]] - dots[[s, c]]));
    let found_pulled = op.softmax_adjoint(x.view(), found.view()).unwrap();
    let scale = exact.iter().fold(1.0, |max: f64, x| max.max(x.abs()));
    close("softmax adjoint", &found_pulled.mapv(|x| x / of(scale)), &pulled.mapv(|x| x / scale));
    let mut into = strided(x);
    op.softmax_adjoint_into(strided(x).view(), strided(&found).view(), into.view_mut()).unwrap();
    assert_bits("softmax adjoint into", &into, &found_pulled);
}

/// By ids in any order, with every level and choice.
fn check_ids<T: Real>(rows: usize, segments: usize, channels: usize, policy: OutOfRange) {
    let mut random = Random::new((rows + segments) as u64);
    let ids = Array1::from_shape_simple_fn(rows, || random.index(segments, policy));
    let meant: Vec<_> = ids.iter().map(|&id| row(id, segments, policy)).collect();
    for level in levels() {
        for tuning in tunings() {
            let op = Segments::new(ids.view(), segments, policy).unwrap().with_level(level).unwrap();
            check::<T>(&op.with_tuning(tuning).with_empty(-2.5), &meant, channels);
        }
    }
}

#[test]
fn equal_to_the_loops() {
    for policy in POLICIES {
        for channels in [0, 1, 3, 8, 15, 16, 17, 33] {
            check_ids::<f32>(23, 5, channels, policy);
            check_ids::<f64>(12, 4, channels, policy);
        }
        check_ids::<f32>(5, 40, 3, policy);
        check_ids::<f32>(0, 4, 3, policy);
        check_ids::<f64>(120, 1, 2, policy);
    }
    check_ids::<f64>(0, 0, 2, OutOfRange::Error);
    check_ids::<f64>(4, 0, 2, OutOfRange::Skip { fill: 3.0 });
    with_threads(3, || check_ids::<f32>(80, 7, 20, OutOfRange::Skip { fill: 3.0 }));
}

#[test]
fn segments_that_follow_each_other() {
    let ids: Vec<_> = [0, 2, 2, 2, 2, 2, 3, 3, 3, 3].map(Some).to_vec();
    for level in levels() {
        for tuning in tunings() {
            let ready = |op: Segments| op.with_level(level).unwrap().with_tuning(tuning).with_empty(-2.5);
            let by_lengths = ready(Segments::from_lengths(array![1, 0, 5, 4, 0].view(), 10).unwrap());
            assert_eq!(by_lengths.len(), 5);
            assert_eq!(by_lengths.counts(), array![1, 0, 5, 4, 0]);
            check::<f32>(&by_lengths, &ids, 20);
            let by_offsets = ready(Segments::from_offsets(array![0u32, 1, 1, 6, 10, 10].view(), 10).unwrap());
            check::<f64>(&by_offsets, &ids, 3);
        }
    }
    let none = Segments::from_lengths(Array1::<i64>::zeros(0).view(), 0).unwrap();
    assert!(none.is_empty());
    check::<f32>(&none, &[], 3);
}

#[test]
fn refused_when_made() {
    let skip = OutOfRange::Skip { fill: 0.0 };
    let ids = |ids: Array1<i32>, policy| Segments::new(ids.view(), (1 << 31) - 1, policy).err();
    let outside = |position: usize, value| {
        let bound = (1 << 31) - 1;
        Some(Error::IndexOutOfRange { argument: "ids", position: vec![position], value, bound })
    };
    assert_eq!(ids(array![0, i32::MIN, -1], OutOfRange::Error), outside(1, i32::MIN.into()));
    assert_eq!(ids(array![0, i32::MIN, -1], skip), None);
    let offset =
        |argument, position, value, least, most| Some(Error::Offset { argument, position, value, least, most });
    let offsets = |offsets: Array1<i64>| Segments::from_offsets(offsets.view(), 5).err();
    assert_eq!(offsets(array![-9, -1024, 0]), offset("offsets", 0, -9, 0, 0));
    assert_eq!(offsets(array![0, 2, 1, 5]), offset("offsets", 2, 1, 2, 5));
    assert_eq!(offsets(array![0, 2, 4]), offset("offsets", 2, 4, 5, 5));
    let lengths = |lengths: Array1<i64>| Segments::from_lengths(lengths.view(), 5).err();
    assert_eq!(lengths(array![2, 0, 3]), None);
    assert_eq!(lengths(array![2, -1, 4]), offset("lengths", 1, -1, 0, 3));
    assert_eq!(lengths(array![2, 4, 3]), offset("lengths", 1, 4, 0, 3));
    assert_eq!(lengths(array![2, 0, 2]), offset("lengths", 2, 2, 3, 3));
    assert!(matches!(lengths(array![]), Some(Error::Shape { argument: "lengths", .. })));
    let op = Segments::from_lengths(array![2, 3].view(), 5).unwrap();
    let x = Array2::<f32>::zeros((4, 2));
    let shape = Error::Shape { argument: "x", found: vec![4, 2], expected: vec![5, 2] };
    assert_eq!(op.softmax(x.view()), Err(shape));
    let arguments = Array2::from_elem((2, 2), 5);
    let refused = op.extremes_adjoint(Array2::<f32>::zeros((2, 2)).view(), Ties::First(arguments.view()));
    let position = vec![0, 0];
    assert_eq!(refused, Err(Error::IndexOutOfRange { argument: "arguments", position, value: 5, bound: 5 }));
}

#[test]
fn inputs_that_broke_others() {
    // A row that is dropped has the gradient 0, whatever it holds.
    let op = Segments::new(array![0, 1, -1].view(), 2, OutOfRange::Skip { fill: 0.0 }).unwrap();
    let x = array![[1.0], [1.0], [f64::NAN]];
    assert_eq!(op.forward(Linear::Sum, x.view()).unwrap(), array![[1.0], [1.0]]);
    assert_eq!(op.adjoint(Linear::Sum, array![[1.0], [0.0]].view()).unwrap(), array![[1.0], [0.0], [0.0]]);
    let one = Segments::from_lengths(array![3].view(), 3).unwrap();
    let pull = |x: Array2<f64>| one.product_adjoint(array![[1.0]].view(), x.view()).unwrap();
    assert_eq!(pull(array![[0.0], [2.0], [3.0]]), array![[6.0], [0.0], [0.0]]);
    assert_eq!(pull(array![[0.0], [0.0], [3.0]]), array![[0.0], [0.0], [0.0]]);
    assert_eq!(pull(array![[2.0], [5.0], [3.0]]), array![[15.0], [6.0], [10.0]]);
}

#[test]
fn infinities_in_exponentials() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let op = Segments::from_lengths(array![2, 2, 2, 2, 0].view(), 8).unwrap();
    let x = array![[-inf], [-inf], [-inf], [1.0], [inf], [1.0], [nan], [1.0]];
    let y = op.log_sum_exp(x.view()).unwrap();
    assert_eq!(y.slice(s![..3, 0]), array![-inf, 1.0, inf]);
    assert!(y[[3, 0]].is_nan());
    assert_eq!(y[[4, 0]], -inf);
    let pulled = op.log_sum_exp_adjoint(Array2::ones((5, 1)).view(), x.view(), y.view()).unwrap();
    assert_eq!(pulled.slice(s![..4, 0]), array![0.0, 0.0, 0.0, 1.0]);
    let soft = op.softmax(x.view()).unwrap();
    assert_eq!(soft.slice(s![2..4, 0]), array![0.0, 1.0]);
    assert!(soft[[0, 0]].is_nan());
}

#[test]
fn gradients_are_those_of_finite_differences() {
    let mut random = Random::new(5);
    let ids = array![2, 0, 1, 0, 2, 2, 1, 0, 2];
    let op = Segments::new(ids.view(), 3, OutOfRange::Error).unwrap();
    let mut value = || random.below(1000) as f64 / 500.0 - 1.0;
    let x = Array2::from_shape_simple_fn((9, 4), &mut value);
    let of_results = Array2::from_shape_simple_fn((3, 4), &mut value);
    let of_rows = Array2::from_shape_simple_fn((9, 4), &mut value);
    let check = |pulled: Array2<f64>, loss: &dyn Fn(&Array2<f64>) -> f64| {
        for (at, &gradient) in pulled.indexed_iter() {
            let (mut above, mut below) = (x.clone(), x.clone());
            above[at] += 1e-5;
            below[at] -= 1e-5;
            let difference = (loss(&above) - loss(&below)) / 2e-5;
            assert!((difference - gradient).abs() < 1e-8, "{at:?}: {difference}, not {gradient}");
        }
    };
    for linear in [Linear::Sum, Linear::Mean] {
        check(op.adjoint(linear, of_results.view()).unwrap(), &|x| {
            (op.forward(linear, x.view()).unwrap() * &of_results).sum()
        });
    }
    check(op.product_adjoint(of_results.view(), x.view()).unwrap(), &|x| {
        (op.product(x.view()).unwrap() * &of_results).sum()
    });
    let lse = op.log_sum_exp(x.view()).unwrap();
    check(op.log_sum_exp_adjoint(of_results.view(), x.view(), lse.view()).unwrap(), &|x| {
        (op.log_sum_exp(x.view()).unwrap() * &of_results).sum()
    });
    let soft = op.softmax(x.view()).unwrap();
    check(op.softmax_adjoint(of_rows.view(), soft.view()).unwrap(), &|x| {
        (op.softmax(x.view()).unwrap() * &of_rows).sum()
    });
    for which in [Extremum::Max, Extremum::Min] {
        let found = op.extremes(which, x.view()).unwrap();
        check(op.extremes_adjoint(of_results.view(), Ties::First(found.arguments.view())).unwrap(), &|x| {
            (op.extremes(which, x.view()).unwrap().values * &of_results).sum()
        });
    }
}

#[test]
fn the_same_bits_for_every_number_of_threads_and_level() {
    let mut random = Random::new(6);
    let ids = Array1::from_shape_simple_fn(40_000, || random.index(50, OutOfRange::Clamp));
    let x: Array2<f32> = Array::from_shape_simple_fn((40_000, 5), || of(random.below(1000) as f64 / 100.0));
    let run = |threads: usize, level: Level| {
        with_threads(threads, || {
            let op = Segments::new(ids.view(), 50, OutOfRange::Clamp).unwrap().with_level(level).unwrap();
            let (soft, lse) = (op.softmax(x.view()).unwrap(), op.log_sum_exp(x.view()).unwrap());
            let pulled = op.softmax_adjoint(x.view(), soft.view()).unwrap();
            let grad_x = op.log_sum_exp_adjoint(lse.view(), x.view(), lse.view()).unwrap();
            let mean = op.forward(Linear::Mean, x.view()).unwrap();
            [soft, lse, pulled, grad_x, mean].map(|array| array.mapv(f32::to_bits))
        })
    };
    let expected = run(1, Level::Base);
    assert_eq!(expected[0].len_of(Axis(0)), 40_000);
    for level in levels() {
        for threads in [1, 2, 7] {
            assert!(run(threads, level) == expected);
        }
    }
}
