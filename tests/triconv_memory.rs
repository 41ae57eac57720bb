//! How often triangular convolutions ask for memory where the caller has the outputs: not once more for longer sequences.

mod common;

use common::counting::{Counting, calls_of, peak_of};
use ndarray::{Array2, Array3};
use pullback::Level;
use pullback::triconv::{Correlation, Product, Scan, Side, Tuning, Weights};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Scratch of a call: a row of weights, sequences turned round, accumulators.
const FEW: usize = 24;
/// What does not grow with anything.
const FIXED: usize = 512 << 10;

const M: usize = 16;

/// Decaying, so that binomial weights do not make it overflow.
fn sequence(len: usize) -> Array3<f64> {
    let cell = |k: usize, r: usize, c: usize| ((k * 5 + r * 3 + c * 7) % 9) as f64 / 90.0 - 0.04;
    Array3::from_shape_fn([len, M, M], |(k, r, c)| cell(k, r, c) / 100f64.powi(k.min(50) as i32))
}

/// How often each form asks for memory at `n` steps, and the most bytes that one of them has beside the caller's.
fn forms(n: usize, weights: Weights, side: Side, parallel: Option<bool>) -> ([usize; 8], usize) {
    let tuning = Tuning { parallel, ..Tuning::default() };
    let scan = Scan::<f64>::new(n, weights).expect("a number of steps").with_side(side).with_tuning(tuning);
    let product = Product::<f64>::new(n, weights).expect("a number").with_tuning(tuning);
    let correlation = Correlation::<f64>::new(n, weights).expect("a number").with_tuning(tuning);
    let (a0, b) = (Array2::<f64>::eye(M), sequence(n));
    let s = sequence(n + 1);
    let [mut a, grad] = [Array3::zeros([n + 1, M, M]), sequence(n + 1)];
    let (mut grad_s, mut grad_b, mut c) = (a.clone(), b.clone(), b.clone());
    let mut most = 0;
    let mut count = |name: &str, work: &mut dyn FnMut()| {
        // What is made once, by whoever comes first, belongs to no call.
        work();
        let (((), bytes), calls) = calls_of(|| peak_of(work));
        most = most.max(bytes);
        eprintln!("{name} of {n} steps, {weights:?}, {side:?}, threads {parallel:?}: {calls} calls, {bytes} bytes");
        calls
    };
    let good = "in range";
    let calls = [
        count("forward_into", &mut || scan.forward_into(a0.view(), b.view(), a.view_mut()).expect(good)),
        count("forward_with_into", &mut || scan.forward_with_into(s.view(), b.view(), a.view_mut()).expect(good)),
        count("adjoint_into", &mut || {
            scan.adjoint_into(grad.view(), s.view(), b.view(), grad_s.view_mut(), grad_b.view_mut()).expect(good);
        }),
        count("adjoint_add", &mut || {
            scan.adjoint_add(grad.view(), s.view(), b.view(), grad_s.view_mut(), grad_b.view_mut()).expect(good);
        }),
        count("product", &mut || product.forward_into(b.view(), b.view(), c.view_mut()).expect(good)),
        count("adjoint of a product", &mut || {
            let (to_a, to_b) = (grad_b.view_mut(), c.view_mut());
            product.adjoint_into(b.view(), b.view(), b.view(), to_a, to_b).expect(good);
        }),
        count("correlation", &mut || correlation.forward_into(b.view(), b.view(), c.view_mut()).expect(good)),
        count("adjoint of a correlation", &mut || {
            let (to_a, to_g) = (grad_b.view_mut(), c.view_mut());
            correlation.adjoint_into(b.view(), b.view(), b.view(), to_a, to_g).expect(good);
        }),
    ];
    (calls, most)
}

// One test, so that nothing else allocates meanwhile.
#[test]
fn calls_do_not_grow_with_the_length() {
    // Threads of the pool, and what they keep, belong to no call.
    rayon::join(|| (), || ());
    eprintln!("at {}", Level::current().expect("a level"));
    for (weights, side, steps, few, more) in [
        (Weights::Taylor, Side::Right, [40, 320], FEW, 0),
        (Weights::Plain, Side::Left, [40, 320], FEW, 0),
        (Weights::Binomial, Side::Right, [40, 120], FEW, 0),
        // Sequences with exponents apart are scratch too, of which a list doubles now and then.
        (Weights::Binomial, Side::Left, [140, 320], 2 * FEW, 2),
    ] {
        let [(short, _), (long, most)] = steps.map(|n| forms(n, weights, side, Some(false)));
        assert!(long.iter().all(|&calls| calls <= few), "{long:?} calls");
        let grown = |(long, short): (&usize, &usize)| *long > short + more;
        assert!(!long.iter().zip(&short).any(grown), "{long:?} calls, {short:?} of fewer steps");
        let given = (steps[1] + 1) * M * M * 8;
        assert!(most <= 8 * given + FIXED, "{most} bytes beside the caller's, of whose arrays each has {given}");

        // Where there are threads, their queues grow now and then.
        let [(short, _), (long, _)] = steps.map(|n| forms(n, weights, side, Some(true)));
        assert!(long.iter().zip(&short).all(|(long, short)| *long <= short + 32), "{long:?} calls, {short:?} of fewer");
    }
}
