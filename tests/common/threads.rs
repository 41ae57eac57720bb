//! Pools of threads.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::{LazyLock, mpsc};
use std::thread;
use std::time::Duration;

/// One thread, as many as most runners have, an odd number, more than any runner has.
pub const COUNTS: [usize; 4] = [1, 2, 3, 7];

static POOLS: LazyLock<[ThreadPool; 4]> = LazyLock::new(|| {
    COUNTS.map(|count| ThreadPoolBuilder::new().num_threads(count).build().expect("a pool of a few threads"))
});

/// Runs `work` in a pool of `count` threads, one of [`COUNTS`].
pub fn with<R: Send>(count: usize, work: impl FnOnce() -> R + Send) -> R {
    let pool = COUNTS.iter().position(|&n| n == count).expect("one of COUNTS");
    POOLS[pool].install(work)
}

/// Fails, where `work` hangs, instead of hanging too.
pub fn in_time(work: impl FnOnce() + Send + 'static) {
    let (done, finished) = mpsc::channel();
    let worker = thread::spawn(move || {
        work();
        done.send(()).expect("the test waits");
    });
    match finished.recv_timeout(Duration::from_secs(120)) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("a deadlock"),
        _ => worker.join().unwrap_or_else(|failure| std::panic::resume_unwind(failure)),
    }
}
