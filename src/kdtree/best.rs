//! The k best neighbours of one query so far, by (key, row number).

use crate::element::Element;
use crate::simd::{Ids, IdsOf, Mask, Simd, Vector};

/// Beyond this many neighbours, a heap beats a sorted list.
const HEAP: usize = 256;

/// Beyond this many, at least a vector, the place in a sorted list is found a vector at a time and the rest moved at once.
const LINEAR: usize = 24;

/// The best so far, in the caller's memory: sorted, or beyond [`HEAP`] a heap with the worst first.
pub(super) struct Best<'a, T> {
    keys: &'a mut [T],
    ids: &'a mut [u32],
    heap: bool,
}

impl<'a, T: Element> Best<'a, T> {
    /// Starts with padding: key `bound`, row number `padding`, which every point of at most that key beats.
    #[inline(always)]
    pub(super) fn new(keys: &'a mut [T], ids: &'a mut [u32], bound: T, padding: u32) -> Self {
        keys.fill(bound);
        ids.fill(padding);
        let heap = keys.len() > HEAP;
        Self { keys, ids, heap }
    }

    /// The key that a point must not exceed to get in.
    #[inline(always)]
    pub(super) fn worst(&self) -> T {
        if self.heap { self.keys[0] } else { self.keys[self.keys.len() - 1] }
    }

    /// Whether the entry `a` comes before the entry at `b`.
    #[inline(always)]
    fn before(&self, a: (T, u32), b: usize) -> bool {
        a.0 < self.keys[b] || (a.0 == self.keys[b] && a.1 < self.ids[b])
    }

    /// Takes a point in if it is among the best.
    #[inline(always)]
    pub(super) fn offer<S: Simd>(&mut self, s: S, key: T, id: u32) {
        if self.heap {
            if self.before((key, id), 0) {
                self.sift((key, id), self.keys.len());
            }
            return;
        }
        let mut at = self.keys.len() - 1;
        if !self.before((key, id), at) {
            return;
        }
        if at >= LINEAR {
            let place = self.rank(s, (key, id));
            self.keys.copy_within(place..at, place + 1);
            self.ids.copy_within(place..at, place + 1);
            self.keys[place] = key;
            self.ids[place] = id;
            return;
        }
        while at > 0 && self.before((key, id), at - 1) {
            self.keys[at] = self.keys[at - 1];
            self.ids[at] = self.ids[at - 1];
            at -= 1;
        }
        self.keys[at] = key;
        self.ids[at] = id;
    }

    /// How many entries of a list of at least a vector come before the entry `a`, counted a vector at a time: no
    /// comparison is branched on.
    #[inline(always)]
    fn rank<S: Simd>(&self, s: S, a: (T, u32)) -> usize {
        let (key, id) = (s.splat(a.0), IdsOf::<T, S>::all(s, a.1));
        let mut rank = 0;
        for first in (0..self.keys.len()).step_by(T::LANES) {
            // The last vector starts early and leaves out the entries that were counted.
            let at = first.min(self.keys.len() - T::LANES);
            let other: S::V<T> = s.load(&self.keys[at..]);
            let lower = IdsOf::<T, S>::read(s, &self.ids[at..]).below(id);
            let before = other.lt(key).or(other.le(key).and(lower)).bits();
            rank += (before >> (first - at)).count_ones() as usize;
        }
        rank
    }

    /// Puts an entry in the place of the root of the heap of the first `n`.
    #[inline(always)]
    fn sift(&mut self, entry: (T, u32), n: usize) {
        let mut at = 0;
        loop {
            let mut child = 2 * at + 1;
            if child + 1 < n && self.before((self.keys[child], self.ids[child]), child + 1) {
                child += 1;
            }
            if child >= n || !self.before(entry, child) {
                break;
            }
            self.keys[at] = self.keys[child];
            self.ids[at] = self.ids[child];
            at = child;
        }
        self.keys[at] = entry.0;
        self.ids[at] = entry.1;
    }

    /// Leaves the entries in ascending order.
    #[inline(always)]
    pub(super) fn finish(mut self) {
        if self.heap {
            for last in (1..self.keys.len()).rev() {
                let entry = (self.keys[last], self.ids[last]);
                self.keys[last] = self.keys[0];
                self.ids[last] = self.ids[0];
                self.sift(entry, last);
            }
        }
    }
}
