//! The inner loops of maximum and minimum: choose, remember what was chosen, and send gradients back there.

use super::kernels::AHEAD;
use super::plan::ABSENT;
use super::terms::count;
use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::{Ids, IdsOf, Level, MOST_LANES, Simd, Vector, at, prefetch};
use std::ops::Range;

/// Largest or smallest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extremum {
    /// The largest element.
    Max,
    /// The smallest element.
    Min,
}

/// The rows that groups choose from: group `g` has the edges `offsets[g]..offsets[g + 1]`, an edge the row `order[edge]`.
#[derive(Clone, Copy)]
pub struct Candidates<'a> {
    pub offsets: &'a [u32],
    pub order: &'a [u32],
    pub number: Number,
}

/// The channels `start..end` of rows of `width`.
#[derive(Clone, Copy)]
pub struct Channels {
    pub width: usize,
    pub start: usize,
    pub end: usize,
}

/// What names an edge as an argument.
#[derive(Clone, Copy, PartialEq)]
pub enum Number {
    /// Its place in the group.
    Place,
    /// Its row.
    Row,
}

impl Candidates<'_> {
    /// Hands out the edges of a group that are not padding, each with its row and its number.
    #[inline(always)]
    fn each(self, group: usize, mut take: impl FnMut(usize, usize, u32)) {
        let edges = self.offsets[group] as usize..self.offsets[group + 1] as usize;
        let first = edges.start;
        for edge in edges {
            let row = self.order[edge];
            if row != ABSENT {
                take(edge, row as usize, if self.number == Number::Row { row } else { (edge - first) as u32 });
            }
        }
    }
}

/// A row of sums that a group may have chosen from, under a number.
#[derive(Clone, Copy, Default)]
pub struct Pick {
    pub group: u32,
    pub to: u32,
    pub number: u32,
}

/// What each element of each group sends back, and to which argument. `tied` holds the rows that the groups chose from,
/// numbered as the sums, and the chosen values: elements equal to those are taken as well.
#[derive(Clone, Copy)]
pub struct Chosen<'a, T> {
    pub shares: &'a [T],
    pub arguments: &'a [u32],
    pub tied: Option<[&'a [T]; 2]>,
}

/// The kernels of this file, compiled here once for `f32` and `f64`.
pub trait Kernels: Element {
    /// The extreme element of each of the `channels` of every group, and its number; `empty` and [`ABSENT`] where all is padding.
    #[expect(clippy::too_many_arguments, reason = "a kernel")]
    fn choose_rows(
        level: Level,
        which: Extremum,
        source: &[Self],
        rows: Candidates<'_>,
        channels: Channels,
        empty: Self,
        ahead: bool,
        values: &mut Tile<'_, Self>,
        arguments: &mut Tile<'_, u32>,
    );

    /// `sums[to] += shares[group]` where the group chose the pick, for every pick in turn.
    fn add_chosen(level: Level, picks: &[Pick], from: Chosen<'_, Self>, width: usize, sums: &mut [Self]);

    /// `grad / n` where `n` elements of a group are equal to the chosen one: what each of them gets. `counts` is of `width`.
    fn share_rows(
        level: Level,
        grad: &[Self],
        from: Chosen<'_, Self>,
        rows: Candidates<'_>,
        groups: Range<usize>,
        counts: &mut [u32],
        tile: &mut Tile<'_, Self>,
    );
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn choose_rows(
            level: Level,
            which: Extremum,
            source: &[$t],
            rows: Candidates<'_>,
            channels: Channels,
            empty: $t,
            ahead: bool,
            values: &mut Tile<'_, $t>,
            arguments: &mut Tile<'_, u32>,
        ) {
            match which {
                Extremum::Max => at!(level, |s| choose_rows::<_, _, false>(s, source, rows, channels, empty, ahead, values, arguments)),
                Extremum::Min => at!(level, |s| choose_rows::<_, _, true>(s, source, rows, channels, empty, ahead, values, arguments)),
            }
        }
        fn add_chosen(level: Level, picks: &[Pick], from: Chosen<'_, $t>, width: usize, sums: &mut [$t]) {
            at!(level, |_s| add_chosen(picks, from, width, sums));
        }
        fn share_rows(
            level: Level,
            grad: &[$t],
            from: Chosen<'_, $t>,
            rows: Candidates<'_>,
            groups: Range<usize>,
            counts: &mut [u32],
            tile: &mut Tile<'_, $t>,
        ) {
            at!(level, |_s| share_rows(grad, from, rows, groups, counts, tile));
        }
    })* };
}
kernels!(f32, f64);

#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a kernel")]
fn choose_rows<T: Element, S: Simd, const MIN: bool>(
    s: S,
    source: &[T],
    rows: Candidates<'_>,
    channels: Channels,
    empty: T,
    ahead: bool,
    values: &mut Tile<'_, T>,
    arguments: &mut Tile<'_, u32>,
) {
    for group in 0..rows.offsets.len() - 1 {
        let mut channel = channels.start;
        while channel < channels.end {
            let left = channels.end - channel;
            let block = Block { source, rows, group, empty, channel, width: channels.width, ahead };
            channel += match left / T::LANES {
                4.. if S::ACCUMULATORS >= 8 => block.choose::<S, 4, MIN>(s, 4 * T::LANES, values, arguments),
                2.. if S::ACCUMULATORS >= 4 => block.choose::<S, 2, MIN>(s, 2 * T::LANES, values, arguments),
                1.. => block.choose::<S, 1, MIN>(s, T::LANES, values, arguments),
                0 => block.choose::<S, 1, MIN>(s, left, values, arguments),
            };
        }
    }
}

/// A group and the channels from one on.
struct Block<'a, T> {
    source: &'a [T],
    rows: Candidates<'a>,
    group: usize,
    empty: T,
    channel: usize,
    width: usize,
    ahead: bool,
}

impl<T: Element> Block<'_, T> {
    /// Chooses in `N` vectors of channels, or in the first `n` lanes of one, and returns how many channels that is.
    #[inline(always)]
    fn choose<S: Simd, const N: usize, const MIN: bool>(
        &self,
        s: S,
        n: usize,
        values: &mut Tile<'_, T>,
        arguments: &mut Tile<'_, u32>,
    ) -> usize {
        let mut best = [s.splat(self.empty); N];
        let mut numbers = [IdsOf::<T, S>::all(s, ABSENT); N];
        let mut first = true;
        self.rows.each(
            self.group,
            #[inline(always)]
            |edge, row, number| {
                if self.ahead
                    && let Some(&row) = self.rows.order.get(edge + AHEAD)
                    && row != ABSENT
                {
                    prefetch(&self.source[row as usize * self.width + self.channel..][..n]);
                }
                let row = &self.source[row * self.width + self.channel..][..n];
                let number = IdsOf::<T, S>::all(s, number);
                for v in 0..N {
                    let next = if n < T::LANES { s.load_head(row) } else { s.load(&row[v * T::LANES..]) };
                    if first {
                        (best[v], numbers[v]) = (next, number);
                    } else {
                        // What is chosen stays where it is no worse, and where it is NaN; a NaN is never no worse.
                        let stays = if MIN { best[v].le(next) } else { next.le(best[v]) };
                        let ordered = best[v].le(best[v]);
                        best[v] = S::V::select(stays, best[v], S::V::select(ordered, next, best[v]));
                        numbers[v] = Ids::choose(stays, numbers[v], Ids::choose(ordered, number, numbers[v]));
                    }
                }
                first = false;
            },
        );
        for (best, numbers) in best.into_iter().zip(numbers) {
            let mut lanes = [0; MOST_LANES];
            numbers.put(&mut lanes);
            if n < T::LANES {
                values.push_head(best, n);
                arguments.push_slice(&lanes[..n]);
            } else {
                values.push(best);
                arguments.push_slice(&lanes[..T::LANES]);
            }
        }
        n
    }
}

#[inline(always)]
fn add_chosen<T: Element>(picks: &[Pick], from: Chosen<'_, T>, width: usize, sums: &mut [T]) {
    for pick in picks {
        let (group, to) = (pick.group as usize * width, pick.to as usize * width);
        let chosen = from.shares[group..][..width].iter().zip(&from.arguments[group..][..width]);
        let sums = &mut sums[to..][..width];
        match from.tied {
            None => {
                for (sum, (&share, &argument)) in sums.iter_mut().zip(chosen) {
                    *sum = if argument == pick.number { *sum + share } else { *sum };
                }
            }
            Some([x, best]) => {
                let tied = x[to..][..width].iter().zip(&best[group..][..width]);
                for ((sum, (&share, &argument)), (x, best)) in sums.iter_mut().zip(chosen).zip(tied) {
                    let takes = argument == pick.number || x == best;
                    *sum = if takes { *sum + share } else { *sum };
                }
            }
        }
    }
}

#[inline(always)]
fn share_rows<T: Element>(
    grad: &[T],
    from: Chosen<'_, T>,
    rows: Candidates<'_>,
    groups: Range<usize>,
    counts: &mut [u32],
    tile: &mut Tile<'_, T>,
) {
    let width = counts.len();
    let [x, best] = from.tied.expect("shares are of ties");
    let mut shares = tile.accumulators().chunks_exact_mut(width);
    for group in groups {
        let row = group * width..(group + 1) * width;
        let (arguments, best) = (&from.arguments[row.clone()], &best[row.clone()]);
        counts.fill(0);
        rows.each(
            group,
            #[inline(always)]
            |_, row, number| {
                let x = &x[row * width..][..width];
                for (((n, x), best), &argument) in counts.iter_mut().zip(x).zip(best).zip(arguments) {
                    *n += u32::from(argument == number || x == best);
                }
            },
        );
        let shares = shares.next().expect("a row a group");
        for ((share, &grad), &n) in shares.iter_mut().zip(&grad[row]).zip(&*counts) {
            *share = if n == 0 { T::zero() } else { grad / count(n as usize) };
        }
    }
}
