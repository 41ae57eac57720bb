//! The k best neighbours of one query so far, by (key, row number).

use crate::element::Element;

/// From this many neighbours on, a heap beats a sorted list.
const HEAP: usize = 32;

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
    pub(super) fn offer(&mut self, key: T, id: u32) {
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
        while at > 0 && self.before((key, id), at - 1) {
            self.keys[at] = self.keys[at - 1];
            self.ids[at] = self.ids[at - 1];
            at -= 1;
        }
        self.keys[at] = key;
        self.ids[at] = id;
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
