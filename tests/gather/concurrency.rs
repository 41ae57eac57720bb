//! One operator used from many threads at once.

use crate::common::cells::assert_same;
use crate::common::gather::{REDUCTIONS, operator, random_ids};
use crate::common::threads::in_time;
use crate::common::values::Values;
use crate::common::{levels, threads};
use ndarray::{Ix2, Ix3, IxDyn};
use pullback::gather::{Gather, OutOfRange, Tuning};
use rayon::prelude::*;

const _: () = {
    const fn shared<T: Send + Sync>() {}
    shared::<Gather<Ix3>>();
    shared::<Gather<IxDyn, Ix2>>();
};

/// A plan that is built inside a lock while its builder steals work that waits for the lock never ends.
#[test]
fn a_fresh_operator_first_used_in_parallel_never_deadlocks() {
    const ROUNDS: usize = 1000;
    levels::each(|level| {
        in_time(move || {
            // Plans of one channel: building them takes most of the time, long enough for other threads to steal a part.
            let (indices, rows) = (random_ids([32, 100, 2], 9), 9);
            let grad_y = Values::Spread.array::<f32, _>([32, 100, 2, 1], 1);
            let fresh = |tuning| operator(level, &indices, rows, OutOfRange::Error).with_tuning(tuning);
            let alone = fresh(Tuning { parallel: Some(false), ..Tuning::default() }).adjoint(grad_y.view()).unwrap();
            let tuning = Tuning { parallel: Some(true), tile: Some(2), hub: Some(4), ..Tuning::default() };
            threads::with(7, || {
                for round in 0..ROUNDS {
                    let gather = fresh(Tuning { reduction: Some(REDUCTIONS[round % 2]), ..tuning });
                    (0..14).into_par_iter().for_each(|_| {
                        assert_same("grad_x", &gather.adjoint(grad_y.view()).unwrap(), &alone);
                    });
                }
            });
        });
    });
}
