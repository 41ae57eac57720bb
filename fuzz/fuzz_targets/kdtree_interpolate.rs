//! Interpolation and the gradients of distances against plain loops, on problems that the fuzzer makes up.
#![no_main]

use arbitrary::Arbitrary;
use common::adjoint_case::{AdjointCase, AdjointLayout, Named};
use common::interpolate_case::{EPSILONS, InterpolateCase, InterpolateLayout, POWERS};
use common::limits::Limit;
use common::neighbors_case::Case;
use common::search_case::SearchCase;
use common::space::{Axes, METRICS};
use common::strides::Strides;
use kdtree_input::{Input, one_of};
use libfuzzer_sys::fuzz_target;

mod kdtree_input;

// Without the strategies, which need proptest.
#[allow(dead_code)]
#[path = "../../tests/common"]
mod common {
    pub mod adjoint_case;
    pub mod cells;
    pub mod cloud;
    pub mod distance_gradients;
    pub mod gather;
    pub mod gather_case;
    pub mod groups;
    pub mod interpolate_case;
    pub mod interpolation;
    pub mod limits;
    pub mod neighbors;
    pub mod neighbors_case;
    pub mod random;
    pub mod ranges;
    pub mod reduction_case;
    pub mod scaled;
    pub mod search_case;
    pub mod space;
    pub mod strides;
    pub mod threads;
    pub mod values;
}

/// What is asked of a tree: the gradients of distances, or an interpolation.
#[derive(Arbitrary, Debug)]
struct Question {
    metric: u8,
    periodic: u8,
    /// No bound where it is even.
    bound: u8,
    each: bool,
    squared: bool,
    /// Interpolation where it is 3, otherwise which indices the gradients of distances have.
    named: u8,
    channels: u8,
    power: u8,
    eps: u8,
    fill: i8,
    first: Layout,
    second: Layout,
    third: Layout,
    tree: Input,
}

#[derive(Arbitrary, Debug)]
struct Layout {
    order: bool,
    reversed: u8,
    halved: u8,
    broadcast: u8,
}

impl Layout {
    /// Mostly not broadcast.
    fn input(&self) -> Strides {
        Strides { broadcast: if self.broadcast < 4 { self.broadcast } else { 0 }, ..self.output() }
    }

    fn output(&self) -> Strides {
        Strides { order: self.order.into(), reversed: self.reversed % 4, halved: self.halved % 4, broadcast: 0 }
    }
}

fuzz_target!(|question: Question| {
    let case = question.tree.case();
    let case = Case { k: case.k.min(70), absent: true, ..case };
    let search = SearchCase {
        case,
        metric: one_of(&METRICS, question.metric),
        periodic: one_of(&[Axes::None, Axes::Some, Axes::All], question.periodic),
        bound: (question.bound % 2 == 1).then(|| one_of(&Limit::ALL, question.bound / 2)),
        each: question.each,
        squared: question.squared,
        ..SearchCase::default()
    };
    let [first, second, third] = [&question.first, &question.second, &question.third];
    let level = question.tree.level();
    if let Some(&named) = Named::ALL.get(usize::from(question.named % 4)) {
        let layout = AdjointLayout {
            queries: first.input(),
            indices: second.input(),
            grad_distances: third.input(),
            grad_queries: second.output(),
            grad_points: third.output(),
        };
        return AdjointCase { search, named, layout }.check(level);
    }
    let layout = InterpolateLayout {
        queries: first.input(),
        values: second.input(),
        grad_y: third.input(),
        y: first.output(),
        grad_queries: second.output(),
        grad_points: third.output(),
    };
    let channels = usize::from(question.channels % 40);
    let (power, eps) = (one_of(&POWERS, question.power), one_of(&EPSILONS, question.eps));
    InterpolateCase { search, channels, power, eps, fill: question.fill.into(), layout }.check(level);
});
