//! Calls with arguments that nobody would pass, and what must hold of them whatever they return.

use crate::common::random::Random;
use crate::common::strides::{Strided, Strides};
use crate::common::values::{Value, Values};
use ndarray::{Array0, ArrayView, ArrayViewMut, Dimension, arr0};
use pullback::{Error, Level, Result};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Lengths of axes that no memory holds, of which ndarray makes views all the same.
const HUGE: [usize; 4] = [1 << 48, (1 << 52) + 1, usize::MAX >> 12, usize::MAX >> 8];

/// A call that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(15);

/// An element of an argument.
pub trait Drawn: Copy {
    fn draw(n: &mut Nonsense) -> Self;
    fn bits(self) -> u64;
}

macro_rules! floats {
    ($($t:ty),*) => { $(impl Drawn for $t {
        fn draw(n: &mut Nonsense) -> Self {
            n.values.draw(&mut n.random)
        }
        fn bits(self) -> u64 {
            Value::to_bits(self)
        }
    })* };
}
floats!(f32, f64);

macro_rules! integers {
    ($($t:ty),*) => { $(impl Drawn for $t {
        fn draw(n: &mut Nonsense) -> Self {
            let (below, special) = (n.random.below(n.bound.clamp(1, 1 << 20)), n.wild && n.random.below(6) == 0);
            let specials = [<$t>::MIN, <$t>::MAX, <$t>::MAX - 1, 0 as $t, (0 as $t).wrapping_sub(1), n.bound as $t];
            if special { n.random.one_of(&specials) } else { below as $t }
        }
        fn bits(self) -> u64 {
            self as u64
        }
    })* };
}
integers!(u8, u32, i32, i64, usize, u64);

impl Drawn for bool {
    fn draw(n: &mut Nonsense) -> Self {
        n.random.below(2) == 1
    }
    fn bits(self) -> u64 {
        self.into()
    }
}

/// How often entries returned, and how often they refused.
type Tally = BTreeMap<&'static str, [usize; 2]>;

/// A source of arguments, and a judge of what calls make of them.
pub struct Nonsense {
    pub random: Random,
    /// What indices are mostly below.
    pub bound: usize,
    wild: bool,
    values: Values,
    huge: bool,
    seed: u64,
    tally: Tally,
    faults: BTreeMap<String, (u64, String)>,
    current: Arc<Mutex<(&'static str, u64)>>,
}

/// Runs `case` with many seeds. Each entry of `fallible` must have returned and refused, each of `infallible` returned.
pub fn drive(fallible: &[&'static str], infallible: &[&'static str], rounds: u64, case: fn(&mut Nonsense)) {
    let current = Arc::new(Mutex::new(("", 0)));
    let shared = Arc::clone(&current);
    let (done, finished) = mpsc::channel();
    let worker = thread::spawn(move || {
        let mut n = Nonsense {
            random: Random::new(0),
            bound: 1,
            wild: false,
            values: Values::Integers,
            huge: false,
            seed: 0,
            tally: Tally::new(),
            faults: BTreeMap::new(),
            current: shared,
        };
        for seed in 0..rounds {
            n.begin(seed);
            case(&mut n);
            done.send(()).expect("the test waits");
        }
        (n.tally, n.faults)
    });
    loop {
        match finished.recv_timeout(PATIENCE) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("{:?} hangs", current.lock().expect("a name")),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
        }
    }
    let (tally, faults) = worker.join().unwrap_or_else(|failure| std::panic::resume_unwind(failure));
    assert!(faults.is_empty(), "faults and a seed of each: {faults:#?}");
    let expected: BTreeMap<_, _> =
        fallible.iter().map(|&entry| (entry, true)).chain(infallible.iter().map(|&entry| (entry, false))).collect();
    let tallied =
        expected.iter().map(|(entry, refuses)| (entry, *refuses, tally.get(entry).copied().unwrap_or_default()));
    let undriven: Vec<_> =
        tallied.filter(|(_, refuses, [returned, refused])| *returned == 0 || (*refused > 0) != *refuses).collect();
    assert!(
        undriven.is_empty(),
        "entries, whether they may refuse, how often they returned and refused: {undriven:#?}"
    );
    let unlisted: Vec<_> = tally.keys().filter(|entry| !expected.contains_key(*entry)).collect();
    assert!(unlisted.is_empty(), "{unlisted:?}");
}

impl Nonsense {
    fn begin(&mut self, seed: u64) {
        self.seed = seed;
        self.random = Random::new(seed);
        self.huge = self.random.below(4) == 0;
        self.reset();
    }

    fn reset(&mut self) {
        self.wild = self.random.below(3) == 0;
        self.values = match self.wild {
            true => self.random.one_of(&[Values::Adversarial, Values::Tied]),
            false => self.random.one_of(&[Values::Integers, Values::Spread]),
        };
    }

    pub fn chance(&mut self, of: usize) -> bool {
        self.random.below(of) == 0
    }

    /// The length of an axis, of which at most one of a round is huge.
    pub fn size(&mut self) -> usize {
        if self.huge && self.chance(6) {
            self.huge = false;
            return self.random.one_of(&HUGE);
        }
        self.small()
    }

    pub fn small(&mut self) -> usize {
        self.random.one_of(&[0, 1, 1, 2, 2, 3, 3, 4, 5, 9, 17])
    }

    /// A number that counts something, mostly small.
    pub fn count(&mut self) -> usize {
        match self.chance(12) {
            true => self.random.one_of(&[usize::MAX, usize::MAX - 1, isize::MAX as usize, 1 << 60]),
            false => self.small(),
        }
    }

    /// A parameter: mostly one that means something.
    pub fn parameter(&mut self) -> f64 {
        match self.chance(6) {
            true => self.random.one_of(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -1.0, -0.0, 1e308, 5e-324, 1e300]),
            false => self.random.one_of(&[0.0, 0.5, 1.0, 1.5, 2.0, 3.0]),
        }
    }

    pub fn level(&mut self) -> Level {
        let levels: Vec<_> = Level::ALL.into_iter().filter(|level| level.is_available()).collect();
        self.random.one_of(&levels)
    }

    /// None, or either.
    pub fn choice(&mut self) -> Option<bool> {
        self.random.one_of(&[None, Some(false), Some(true)])
    }

    /// Mostly as it is, at times with an axis of another length.
    fn disturbed<D: Dimension>(&mut self, mut shape: D) -> D {
        if shape.ndim() > 0 && self.chance(10) {
            let axis = self.random.below(shape.ndim());
            let n = shape[axis];
            shape[axis] = self.random.one_of(&[0, 1, n / 2, n.saturating_add(1), HUGE[n % 4]]);
        }
        shape
    }

    /// An input that is mostly of this shape, of any strides.
    pub fn input<T: Drawn, D: Dimension>(&mut self, right: D) -> Input<T, D> {
        self.reset();
        let mut shape = self.disturbed(right);
        let element = arr0(T::draw(self));
        if cells(&shape) <= 1 << 16 && !self.chance(8) {
            let strides = match self.chance(3) {
                true => Strides {
                    order: self.random.below(24),
                    reversed: self.random.below(256) as u8,
                    halved: self.random.below(256) as u8,
                    broadcast: self.random.below(256) as u8 & self.random.below(256) as u8,
                },
                false => Strides::default(),
            };
            return Input::Strided(Strided::new(shape, strides, || T::draw(self)));
        }
        while element.broadcast(shape.clone()).is_none() {
            let longest = (0..shape.ndim()).max_by_key(|&axis| shape[axis]).expect("several axes");
            // Not a length that memory holds, and that takes long.
            shape[longest] = 1;
        }
        Input::One(element, shape)
    }

    /// [`Nonsense::input`] that is not huge: for what takes as long as an input is, and no memory.
    pub fn input_in_memory<T: Drawn, D: Dimension>(&mut self, right: D) -> Input<T, D> {
        loop {
            let input = self.input(right.clone());
            if input.view().len() < 1 << 20 {
                return input;
            }
        }
    }

    /// An output that is mostly of this shape, of any strides.
    pub fn output<T: Drawn, D: Dimension>(&mut self, right: D) -> Output<T, D> {
        self.reset();
        let mut shape = self.disturbed(right);
        while cells(&shape) > 1 << 16 {
            let longest = (0..shape.ndim()).max_by_key(|&axis| shape[axis]).expect("several axes");
            shape[longest] = 7;
        }
        let strides = match self.chance(3) {
            true => Strides {
                order: self.random.below(24),
                reversed: self.random.below(256) as u8,
                halved: self.random.below(256) as u8,
                broadcast: 0,
            },
            false => Strides::default(),
        };
        let array = Strided::new(shape, strides, || T::draw(self));
        Output { before: array.view().iter().map(|x| x.bits()).collect(), array }
    }

    /// What `entry` returned, if it did.
    pub fn call<R>(&mut self, entry: &'static str, call: impl FnOnce() -> Result<R>) -> Option<R> {
        self.judged(entry, call).ok()
    }

    fn judged<R>(
        &mut self,
        entry: &'static str,
        call: impl FnOnce() -> Result<R>,
    ) -> std::result::Result<R, Option<Error>> {
        *self.current.lock().expect("a name") = (entry, self.seed);
        let returned = catch_unwind(AssertUnwindSafe(call));
        let tally = self.tally.entry(entry).or_default();
        match returned {
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(|&word| word.to_owned()));
                self.fault(format!("{entry} panicked"), said.unwrap_or_default());
                Err(None)
            }
            Ok(Ok(result)) => {
                tally[0] += 1;
                Ok(result)
            }
            Ok(Err(error)) => {
                tally[1] += 1;
                let (message, named) = (error.to_string(), named(&error));
                if named.is_empty() || !message.contains(&named) {
                    self.fault(format!("{entry} does not name {named}"), message);
                }
                Err(Some(error))
            }
        }
    }

    /// [`Nonsense::call`] of what writes to `out`, which keeps its bits where it is refused. Whether it was written.
    pub fn write<T: Drawn, D: Dimension>(
        &mut self,
        entry: &'static str,
        out: &mut Output<T, D>,
        call: impl FnOnce(ArrayViewMut<'_, T, D>) -> Result<()>,
    ) -> bool {
        let judged = self.judged(entry, || call(out.array.view_mut()));
        self.untouched(entry, &judged, out.is_as_before());
        judged.is_ok()
    }

    /// [`Nonsense::write`] of two outputs.
    pub fn write_both<T: Drawn, U: Drawn, D: Dimension, E: Dimension>(
        &mut self,
        entry: &'static str,
        (a, b): (&mut Output<T, D>, &mut Output<U, E>),
        call: impl FnOnce(ArrayViewMut<'_, T, D>, ArrayViewMut<'_, U, E>) -> Result<()>,
    ) -> bool {
        let judged = self.judged(entry, || call(a.array.view_mut(), b.array.view_mut()));
        self.untouched(entry, &judged, a.is_as_before() && b.is_as_before());
        judged.is_ok()
    }

    /// Notes a fault where a refused call wrote. An overflow is seen in what was written.
    pub fn untouched(&mut self, entry: &'static str, judged: &std::result::Result<(), Option<Error>>, as_before: bool) {
        if matches!(judged, Err(Some(error)) if !matches!(error, Error::Overflow { .. })) && !as_before {
            self.fault(format!("{entry} refused, and wrote"), String::new());
        }
    }

    /// [`Nonsense::call`] that says how it was refused.
    pub fn attempt(
        &mut self,
        entry: &'static str,
        call: impl FnOnce() -> Result<()>,
    ) -> std::result::Result<(), Option<Error>> {
        self.judged(entry, call)
    }

    fn fault(&mut self, what: String, how: String) {
        self.faults.entry(what).or_insert((self.seed, how));
    }

    /// Notes a fault where two shapes differ.
    pub fn shape(&mut self, entry: &'static str, found: &[usize], expected: &[usize]) {
        if found != expected {
            self.fault(format!("{entry} returns another shape"), format!("{found:?} for {expected:?}"));
        }
    }
}

/// The cells of memory that an array of this shape may lie in: an axis of none can have some between its elements.
fn cells<D: Dimension>(shape: &D) -> u128 {
    shape.slice().iter().map(|&n| n.max(1) as u128).try_fold(1u128, u128::checked_mul).unwrap_or(u128::MAX)
}

/// An input, or one element all over it.
pub enum Input<T, D> {
    Strided(Strided<T, D>),
    One(Array0<T>, D),
}

impl<T: Drawn, D: Dimension> Input<T, D> {
    pub fn view(&self) -> ArrayView<'_, T, D> {
        match self {
            Self::Strided(array) => array.view(),
            Self::One(element, shape) => element.broadcast(shape.clone()).expect("tried before"),
        }
    }
}

pub struct Output<T, D> {
    pub array: Strided<T, D>,
    before: Vec<u64>,
}

impl<T: Drawn, D: Dimension> Output<T, D> {
    pub fn is_as_before(&self) -> bool {
        self.array.view().iter().zip(&self.before).all(|(x, before)| x.bits() == *before)
    }
}

/// What the message of an error must have in it.
fn named(error: &Error) -> String {
    let word = |x: &dyn Display| x.to_string();
    match error {
        Error::Shape { argument, .. }
        | Error::Rank { argument, .. }
        | Error::IndexOutOfRange { argument, .. }
        | Error::Offset { argument, .. }
        | Error::NonFinite { argument, .. }
        | Error::Distance { argument, .. }
        | Error::Length { argument, .. }
        | Error::Parameter { argument, .. }
        | Error::KernelShape { argument, .. }
        | Error::Direction { argument, .. }
        | Error::TooLarge { argument, .. } => word(argument),
        Error::Overflow { result, .. } => word(result),
        Error::Allocation { bytes } => word(bytes),
        Error::LevelUnavailable { level, .. } => word(level),
        Error::MethodUnavailable { method, .. } => word(method),
        Error::Environment { variable, .. } => word(variable),
        Error::Io { name, .. } | Error::File { name, .. } => word(name),
        Error::Box { .. } => word(&"box"),
        Error::Dimensions { found, .. } => word(found),
        _ => String::new(),
    }
}
