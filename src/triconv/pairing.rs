//! Which terms a sum of a triangle has.

use std::ops::Range;

/// Which right factor belongs to term j of output x.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pairing {
    /// x - j.
    Convolution,
    /// x + j - first: right factors are given from index `first` on.
    Correlation { first: usize },
    /// j + first - x: left factors are given from index `first` on.
    Shift { first: usize },
}

impl Pairing {
    /// The terms of outputs x..x + lanes that some of them have both factors of, where there are so many of each, and
    /// those that all have.
    pub(super) fn terms(self, x: usize, lanes: usize, left: usize, right: usize) -> (Range<usize>, Range<usize>) {
        let last = x + lanes - 1;
        let (some, all) = match self {
            Self::Convolution => ((x + 1).saturating_sub(right)..last + 1, (last + 1).saturating_sub(right)..x + 1),
            Self::Correlation { first } => {
                let end = |x: usize| (right + first).saturating_sub(x);
                (first.saturating_sub(last)..end(x), first.saturating_sub(x)..end(last))
            }
            Self::Shift { first } => {
                let (start, end) = (|x: usize| x.saturating_sub(first), |x: usize| (x + right).saturating_sub(first));
                (start(x)..end(last), start(last)..end(x))
            }
        };
        let within = |range: Range<usize>| range.start..range.end.min(left);
        let (some, all) = (within(some), within(all));
        match (right == 0 || some.is_empty(), all.is_empty()) {
            (true, _) => (0..0, 0..0),
            (_, true) => (some.clone(), some.end..some.end),
            _ => (some, all),
        }
    }

    /// The right factor.
    pub(super) fn right(self, x: usize, j: usize) -> usize {
        match self {
            Self::Convolution => x - j,
            Self::Correlation { first } => x + j - first,
            Self::Shift { first } => j + first - x,
        }
    }

    /// From one term's right factor to the next one's.
    pub(super) fn step(self) -> isize {
        if self == Self::Convolution { -1 } else { 1 }
    }

    /// The place of the right factor among those in order of ascending outputs, which may be before the first.
    pub(super) fn place(self, x: usize, j: usize, right: usize) -> isize {
        let signed = |n: usize| n as isize;
        match self {
            Self::Convolution => signed(x) - signed(j),
            Self::Correlation { first } => signed(x + j) - signed(first),
            Self::Shift { first } => signed(x + right) - 1 - signed(j + first),
        }
    }

    /// From one term's place to the next one's.
    pub(super) fn place_step(self) -> isize {
        if matches!(self, Self::Correlation { .. }) { 1 } else { -1 }
    }

    /// Larger than every index of a weight.
    pub(super) fn most(self, left: usize, right: usize) -> usize {
        match self {
            Self::Convolution => left.saturating_add(right),
            Self::Correlation { first } | Self::Shift { first } => left.saturating_add(right).saturating_add(first),
        }
    }
}
