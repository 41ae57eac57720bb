//! The inner loops of pyramids of numbers: planes of windows of 2 x 2 x 2.
//!
//! A vector of neighbouring windows is computed from four pairs of vectors of children, one for each row of a window. Children that
//! do not exist are stood in for by something that changes nothing: for a maximum by their neighbour in the window, which comes
//! before them and so is chosen first; in a sum by -0.0.

use crate::buffer::Tile;
use crate::element::Element;
use crate::simd::{Level, MOST_LANES, Mask, Simd, Vector, at};

/// Children of a plane of windows: one or two planes of `rows` rows of `width`.
#[derive(Clone, Copy)]
pub struct Planes<'a, T> {
    pub first: &'a [T],
    pub second: Option<&'a [T]>,
    pub rows: usize,
    pub width: usize,
}

/// What reaches the children of a plane of windows from above: the gradients of the windows, and for a maximum which child of each
/// was chosen.
#[derive(Clone, Copy)]
pub struct Above<'a, T> {
    pub grads: &'a [T],
    pub chosen: Option<&'a [u8]>,
}

/// A plane of children whose gradients are to be written.
#[derive(Clone, Copy)]
pub struct Children<'a, T> {
    /// Whether it is the second plane of its windows.
    pub second: bool,
    pub rows: usize,
    pub width: usize,
    /// Gradients of its own.
    pub cotangents: Option<&'a [T]>,
}

/// Voxels of the cells of a plane.
#[derive(Clone, Copy)]
pub struct Counts<'a> {
    pub x: u64,
    pub y: &'a [u64],
    pub z: &'a [u64],
}

/// The kernels of pyramids of numbers, compiled here once for `f32` and `f64`.
pub trait Kernels: Sized {
    /// The maxima of windows, and which child each is.
    fn max_plane(level: Level, children: Planes<'_, Self>, out: &mut [Self], chosen: &mut [u8]);

    /// The sums of windows.
    fn sum_plane(level: Level, children: Planes<'_, Self>, out: &mut [Self]);

    /// Divides the cells of a plane by their numbers of voxels.
    fn divide_plane(level: Level, counts: Counts<'_>, cells: &mut [Self]);

    /// The gradients of a plane of children. `numbers` has room for a row of windows; `stream` writes past the caches.
    fn spread_plane(
        level: Level,
        above: Above<'_, Self>,
        children: Children<'_, Self>,
        numbers: &mut [Self],
        stream: bool,
        tile: &mut Tile<'_, Self>,
    );
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn max_plane(level: Level, children: Planes<'_, $t>, out: &mut [$t], chosen: &mut [u8]) {
            at!(level, |s| max_plane(s, children, out, chosen));
        }
        fn sum_plane(level: Level, children: Planes<'_, $t>, out: &mut [$t]) {
            at!(level, |s| sum_plane(s, children, out));
        }
        fn divide_plane(level: Level, counts: Counts<'_>, cells: &mut [$t]) {
            at!(level, |s| divide_plane(s, counts, cells));
        }
        fn spread_plane(
            level: Level,
            above: Above<'_, $t>,
            children: Children<'_, $t>,
            numbers: &mut [$t],
            stream: bool,
            tile: &mut Tile<'_, $t>,
        ) {
            match (above.chosen, stream) {
                (Some(chosen), true) => {
                    at!(level, |s| spread_chosen::<_, _, true>(s, above.grads, chosen, children, numbers, tile));
                }
                (Some(chosen), false) => {
                    at!(level, |s| spread_chosen::<_, _, false>(s, above.grads, chosen, children, numbers, tile));
                }
                (None, true) => at!(level, |s| spread::<_, _, true>(s, above.grads, children, tile)),
                (None, false) => at!(level, |s| spread::<_, _, false>(s, above.grads, children, tile)),
            }
        }
    })* };
}
kernels!(f32, f64);

impl<'a, T> Planes<'a, T> {
    /// The four rows of children of row `y` of windows; those that do not exist are none.
    #[inline(always)]
    fn rows_of(&self, y: usize) -> [Option<&'a [T]>; 4] {
        let (here, next) = (2 * y * self.width, (2 * y + 1) * self.width);
        let has_next = 2 * y + 1 < self.rows;
        let mut rows = [Some(&self.first[here..][..self.width]), None, None, None];
        if has_next {
            rows[1] = Some(&self.first[next..][..self.width]);
        }
        if let Some(second) = self.second {
            rows[2] = Some(&second[here..][..self.width]);
            if has_next {
                rows[3] = Some(&second[next..][..self.width]);
            }
        }
        rows
    }
}

impl<'a, T> Children<'a, T> {
    /// The cotangents of row `y` from `at` on.
    #[inline(always)]
    #[allow(clippy::manual_map, reason = "a closure here would not be compiled for the level")]
    fn own(&self, y: usize, at: usize) -> Option<&'a [T]> {
        match self.cotangents {
            Some(own) => Some(&own[y * self.width + at..(y + 1) * self.width]),
            None => None,
        }
    }
}

/// A vector of windows' children, four rows of two vectors.
type Pairs<V> = [(V, V); 4];

/// Loads the children of the `n` windows from `at` on, at most a vector of them. Cells behind a row's end are `pad`, or its
/// last cell where there is none.
#[inline(always)]
fn load<T: Element, S: Simd>(s: S, row: &[T], at: usize, pad: Option<T>) -> (S::V<T>, S::V<T>) {
    let cells = &row[2 * at..];
    if cells.len() >= 2 * T::LANES {
        return Vector::unzip(s.load(cells), s.load(&cells[T::LANES..]));
    }
    let mut padded = [T::zero(); 2 * MOST_LANES];
    let last = match pad {
        Some(pad) => pad,
        None => row[row.len() - 1],
    };
    for cell in &mut padded[..2 * T::LANES] {
        *cell = last;
    }
    padded[..cells.len()].copy_from_slice(cells);
    Vector::unzip(s.load(&padded), s.load(&padded[T::LANES..]))
}

#[inline(always)]
fn max_plane<T: Element, S: Simd>(s: S, children: Planes<'_, T>, out: &mut [T], chosen: &mut [u8]) {
    let width = children.width.div_ceil(2);
    // With the lowest bits of their mantissas for integers.
    let mut numbers = [s.splat(T::ROUNDING); 8];
    for number in 1..8 {
        numbers[number] = numbers[number - 1] + s.splat(T::one());
    }
    for (y, (out, chosen)) in out.chunks_exact_mut(width).zip(chosen.chunks_exact_mut(width)).enumerate() {
        let rows = children.rows_of(y);
        let first = rows[0].expect("a window has a child");
        // A row that is not there is one before it.
        let beside = rows[1].unwrap_or(first);
        let next = rows[2].unwrap_or(first);
        let rows = [first, beside, next, rows[3].unwrap_or(if rows[2].is_some() { next } else { beside })];
        let mut at = 0;
        while at < width {
            let n = T::LANES.min(width - at);
            let mut pairs: Pairs<S::V<T>> = [(s.splat(T::zero()), s.splat(T::zero())); 4];
            for (pair, row) in pairs.iter_mut().zip(rows) {
                *pair = load(s, row, at, None);
            }
            let (mut best, mut which) = (pairs[0].0, numbers[0]);
            // A NaN, or a sum of infinities, which is none but is looked at closer, too.
            let mut sum = pairs[0].0;
            for (number, &(even, odd)) in pairs.iter().enumerate() {
                for (child, candidate) in [(2 * number, even), (2 * number + 1, odd)] {
                    if child > 0 {
                        let larger = best.lt(candidate);
                        best = Vector::select(larger, candidate, best);
                        which = Vector::select(larger, numbers[child], which);
                        sum = sum + candidate;
                    }
                }
            }
            let all = (!0u32) >> (32 - T::LANES);
            let mut lanes = [T::zero(); MOST_LANES];
            if sum.le(sum).bits() == all {
                if n == T::LANES {
                    best.store(&mut out[at..]);
                } else {
                    best.store_head(&mut out[at..at + n]);
                }
                which.store(&mut lanes);
            } else {
                exact_max::<T, S>(&pairs, &mut out[at..at + n], &mut lanes);
            }
            if n == T::LANES {
                for (chosen, number) in chosen[at..][..T::LANES].iter_mut().zip(&lanes) {
                    *chosen = low_byte(number);
                }
            } else {
                for (chosen, number) in chosen[at..at + n].iter_mut().zip(&lanes) {
                    *chosen = low_byte(number);
                }
            }
            at += n;
        }
    }
}

/// The first NaN, else the first maximum.
#[inline(always)]
fn exact_max<T: Element, S: Simd>(pairs: &Pairs<S::V<T>>, out: &mut [T], which: &mut [T; MOST_LANES]) {
    let mut children = [[T::zero(); MOST_LANES]; 8];
    for (row, &(even, odd)) in pairs.iter().enumerate() {
        even.store(&mut children[2 * row]);
        odd.store(&mut children[2 * row + 1]);
    }
    for (lane, (out, which)) in out.iter_mut().zip(which).enumerate() {
        let mut best = 0;
        for child in 1..8 {
            let (candidate, so_far) = (children[child][lane], children[best][lane]);
            if !so_far.is_nan() && (candidate > so_far || candidate.is_nan()) {
                best = child;
            }
        }
        *out = children[best][lane];
        *which = T::ROUNDING + small(best);
    }
}

/// The lowest byte of a number's mantissa.
#[inline(always)]
fn low_byte<T: Element>(number: &T) -> u8 {
    let bytes = bytemuck::bytes_of(number);
    if cfg!(target_endian = "big") { bytes[bytes.len() - 1] } else { bytes[0] }
}

/// A number below 8.
#[inline(always)]
fn small<T: Element>(number: usize) -> T {
    let mut sum = T::zero();
    let mut at = 0;
    while at < number {
        sum = sum + T::one();
        at += 1;
    }
    sum
}

#[inline(always)]
fn sum_plane<T: Element, S: Simd>(s: S, children: Planes<'_, T>, out: &mut [T]) {
    let width = children.width.div_ceil(2);
    let nothing = -T::zero();
    for (y, out) in out.chunks_exact_mut(width).enumerate() {
        let rows = children.rows_of(y);
        let mut at = 0;
        while at < width {
            let n = T::LANES.min(width - at);
            let mut sums = [s.splat(nothing); 4];
            for (sum, row) in sums.iter_mut().zip(rows) {
                if let Some(row) = row {
                    let (even, odd) = load(s, row, at, Some(nothing));
                    *sum = even + odd;
                }
            }
            let sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
            if n == T::LANES {
                sum.store(&mut out[at..]);
            } else {
                sum.store_head(&mut out[at..at + n]);
            }
            at += n;
        }
    }
}

/// The number of voxels of a cell. Products of axes are whole numbers, rounded once.
#[inline(always)]
fn count<T: Element>(voxels: u64) -> T {
    T::from_u64(voxels).expect("a float for every integer")
}

#[inline(always)]
fn divide_plane<T: Element, S: Simd>(_: S, counts: Counts<'_>, cells: &mut [T]) {
    for (&y, row) in counts.y.iter().zip(cells.chunks_exact_mut(counts.z.len())) {
        divide_row(counts.x * y, counts.z, row);
    }
}

#[inline(always)]
fn divide_row<T: Element>(voxels: u64, z: &[u64], row: &mut [T]) {
    // All cells but the last of a row have as many voxels.
    let (inner, last) = row.split_at_mut(z.len() - 1);
    let divisor = count::<T>(voxels * z[0]);
    for cell in inner {
        *cell = *cell / divisor;
    }
    last[0] = last[0] / count(voxels * z[z.len() - 1]);
}

/// Writes the gradients of the children of a vector of windows, what reaches them from above and what is their own. `left` is the
/// number of children from the first of them to the end of the row.
#[inline(always)]
fn push<T: Element, S: Simd, const STREAM: bool>(
    s: S,
    routed: (S::V<T>, S::V<T>),
    own: Option<&[T]>,
    left: usize,
    tile: &mut Tile<'_, T>,
) {
    let (mut low, mut high) = Vector::zip(routed.0, routed.1);
    if left >= 2 * T::LANES {
        if let Some(own) = own {
            low = s.load(own) + low;
            high = s.load(&own[T::LANES..]) + high;
        }
        if tile.continues() {
            low = tile.start(s, 0) + low;
            high = tile.start(s, T::LANES) + high;
        }
        if STREAM {
            tile.push_streamed([low, high]);
        } else {
            tile.push(low);
            tile.push(high);
        }
        return;
    }
    let (head, tail) = (left.min(T::LANES), left.saturating_sub(T::LANES));
    if let Some(own) = own {
        low = s.load_head(&own[..head]) + low;
        high = s.load_head(&own[head..head + tail]) + high;
    }
    if tile.continues() {
        low = tile.start_head(s, head) + low;
    }
    tile.push_head(low, head);
    if tile.continues() {
        high = tile.start_head(s, tail) + high;
    }
    tile.push_head(high, tail);
}

/// Every child gets the gradient of its window.
#[inline(always)]
fn spread<T: Element, S: Simd, const STREAM: bool>(
    s: S,
    grads: &[T],
    children: Children<'_, T>,
    tile: &mut Tile<'_, T>,
) {
    let width = children.width.div_ceil(2);
    for y in 0..children.rows {
        let grads = &grads[y / 2 * width..][..width];
        let mut at = 0;
        while at < width {
            let n = T::LANES.min(width - at);
            let grad = if n == T::LANES { s.load(&grads[at..]) } else { s.load_head(&grads[at..]) };
            let own = children.own(y, 2 * at);
            push::<T, S, STREAM>(s, (grad, grad), own, children.width - 2 * at, tile);
            at += n;
        }
    }
}

/// The chosen child of a window gets its gradient.
#[inline(always)]
fn spread_chosen<T: Element, S: Simd, const STREAM: bool>(
    s: S,
    grads: &[T],
    chosen: &[u8],
    children: Children<'_, T>,
    numbers: &mut [T],
    tile: &mut Tile<'_, T>,
) {
    let width = children.width.div_ceil(2);
    let numbers = &mut numbers[..width];
    let zero = s.splat(T::zero());
    for y in 0..children.rows {
        if y % 2 == 0 {
            for (number, &chosen) in numbers.iter_mut().zip(&chosen[y / 2 * width..][..width]) {
                *number = T::from_u8(chosen).expect("a float for every integer");
            }
        }
        let first = 4 * usize::from(children.second) + 2 * (y % 2);
        let (even, odd) = (s.splat(small::<T>(first)), s.splat(small::<T>(first + 1)));
        let grads = &grads[y / 2 * width..][..width];
        let mut at = 0;
        while at < width {
            let n = T::LANES.min(width - at);
            let (grad, number) = if n == T::LANES {
                (s.load(&grads[at..]), s.load(&numbers[at..]))
            } else {
                (s.load_head(&grads[at..]), s.load_head(&numbers[at..]))
            };
            let is_even = number.le(even).and(even.le(number));
            let is_odd = number.le(odd).and(odd.le(number));
            let routed = (Vector::select(is_even, grad, zero), Vector::select(is_odd, grad, zero));
            let own = children.own(y, 2 * at);
            push::<T, S, STREAM>(s, routed, own, children.width - 2 * at, tile);
            at += n;
        }
    }
}
