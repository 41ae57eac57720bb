//! Sorting the hits of a query, a few dozen, by rank: how many of them come before each.
//!
//! A vector of hits is compared at once and no comparison is branched on, where a sort of so few waits for branches that
//! cannot be predicted. It needs memory for a second copy.

use super::kernels::Hit;
use crate::element::Element;
use crate::simd::{Ids, IdsOf, Mask, Simd, Vector};

/// The most hits that are worth ranking; their number is squared.
pub(super) const MOST: usize = 128;

/// Sorts the runs of `hits` that are `counts` long, none longer than [`MOST`] or else left as it is, by row number or by
/// (key, row number). Keys are numbers.
#[inline(always)]
pub(super) fn sort<T: Element, S: Simd>(s: S, hits: &mut [Hit<T>], counts: &[usize], by_distance: bool) {
    // Behind the last hit nothing comes before anything.
    let (mut keys, mut ids) = ([T::infinity(); MOST], [u32::MAX; MOST]);
    let mut from = [Hit { key: T::zero(), id: 0 }; MOST];
    let mut start = 0;
    for &count in counts {
        let run = &mut hits[start..start + count];
        start += count;
        if !(2..=MOST).contains(&count) {
            continue;
        }
        let padded = count.next_multiple_of(T::LANES);
        for (at, &hit) in run.iter().enumerate() {
            from[at] = hit;
            keys[at] = hit.key;
            ids[at] = hit.id;
        }
        keys[count..padded].fill(T::infinity());
        ids[count..padded].fill(u32::MAX);
        for hit in &from[..count] {
            let (key, id) = (s.splat(hit.key), IdsOf::<T, S>::all(s, hit.id));
            let mut rank = 0;
            for at in (0..padded).step_by(T::LANES) {
                let lower = IdsOf::<T, S>::read(s, &ids[at..]).below(id);
                let before = if by_distance {
                    let other: S::V<T> = s.load(&keys[at..]);
                    other.lt(key).or(other.le(key).and(lower))
                } else {
                    lower
                };
                rank += before.bits().count_ones() as usize;
            }
            run[rank] = *hit;
        }
    }
}
