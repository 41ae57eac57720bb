//! Whether threads share the work of triangular convolutions. It is seen by how long each has run, so that this test has the machine
//! for itself: beside others, a second thread comes late.

mod common;

use common::triconv_scan_case::{Data, SIDES, ScanCase};
use common::triconv_strategy::LANES;
use pullback::Level;
use pullback::triconv::Tuning;
use std::fs::read_to_string;
use std::time::{Duration, Instant};

/// How long each thread of a pool of two has run while `work` did, again and again for so long, in seconds.
fn busy(duration: Duration, work: impl Fn() + Sync) -> Option<Vec<f64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("a pool of two threads");
    let ran = || {
        let times = pool.broadcast(|_| read_to_string("/proc/thread-self/schedstat").ok());
        let first = |text: String| text.split_whitespace().next().and_then(|word| word.parse::<f64>().ok());
        times.into_iter().map(|text| text.and_then(first)).collect::<Option<Vec<f64>>>()
    };
    let before = ran()?;
    pool.install(|| {
        let start = Instant::now();
        while start.elapsed() < duration {
            work();
        }
    });
    Some(ran()?.iter().zip(before).map(|(after, before)| (after - before) / 1e9).collect())
}

/// Where that is asked for, rows and sequences are shared between threads, in every form.
#[test]
fn more_than_one_thread_takes_a_part() {
    let shapes = [(60, 24, 20, vec![]), (60, 1, 20, vec![24]), (150, 16, 4, vec![6]), (90, 9, 3, vec![9])];
    for (at, (side, (n, p, m, leading))) in
        SIDES.into_iter().flat_map(|side| shapes.clone().map(|of| (side, of))).enumerate()
    {
        let lanes = LANES[(at + at / 4) % 4];
        let tuning = Tuning { parallel: Some(true), lanes, rows: Some(2), ..Tuning::default() };
        let case = ScanCase { n, p, m, leading, side, tuning, data: Data::Decaying, ..ScanCase::default() };
        let (scene, level) = (case.scene::<f64>(), Level::current().expect("a level"));
        let scan = case.operator::<f64>(level);
        let a = scan.forward(scene.s.view(), scene.b.view()).expect("no overflow");
        let forward = || {
            scan.forward(scene.s.view(), scene.b.view()).expect("no overflow");
        };
        let adjoint = || {
            scan.adjoint(scene.grad_a.view(), a.view(), scene.b.view()).expect("no overflow");
        };
        let shares: [&(dyn Fn() + Sync); 2] = [&forward, &adjoint];
        for (name, work) in ["forward", "adjoint"].into_iter().zip(shares) {
            // Other processes may have one of the processors for a while: each time is longer. A thread with nothing to do sleeps.
            let mut all = vec![];
            let shared = (1..=20).any(|time| {
                let Some(times) = busy(time * Duration::from_millis(20), work) else { return true };
                let least = times.iter().copied().fold(f64::INFINITY, f64::min);
                let sum: f64 = times.iter().sum();
                all.push(times);
                least > 0.02 * sum
            });
            assert!(shared, "{name} of {case:?} ran on one thread: {all:?}");
        }
    }
}
