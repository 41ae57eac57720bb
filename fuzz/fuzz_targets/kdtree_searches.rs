//! Every search of a tree by every metric, in open and in periodic space, against brute force, on problems that the fuzzer
//! makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::limits::Limit;
use common::neighbors_case::Case;
use common::search_case::SearchCase;
use common::space::{Axes, METRICS};
use kdtree_input::{Input, one_of};
use libfuzzer_sys::fuzz_target;

mod kdtree_input;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod cells;
    pub mod cloud;
    pub mod limits;
    pub mod neighbors;
    pub mod neighbors_case;
    pub mod random;
    pub mod ranges;
    pub mod search_case;
    pub mod space;
    pub mod threads;
    pub mod values;
}

/// What is asked of a tree.
#[derive(Arbitrary, Debug)]
struct Question {
    metric: u8,
    periodic: u8,
    /// No bound where it is even.
    bound: u8,
    radius: u8,
    each: bool,
    squared: bool,
    by_distance: bool,
    tree: Input,
}

fuzz_target!(|question: Question| {
    // All pairs of points are compared.
    let case = question.tree.case();
    let search = SearchCase {
        case: Case { points: case.points % 150, ..case },
        metric: one_of(&METRICS, question.metric),
        periodic: one_of(&[Axes::None, Axes::Some, Axes::All], question.periodic),
        bound: (question.bound % 2 == 1).then(|| one_of(&Limit::ALL, question.bound / 2)),
        radius: one_of(&Limit::ALL, question.radius),
        each: question.each,
        squared: question.squared,
        by_distance: question.by_distance,
    };
    search.check(question.tree.level());
});
