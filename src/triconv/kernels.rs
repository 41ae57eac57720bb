//! The inner loops: sums of products of matrices, a register block of the result at a time.
//!
//! Every operator of the family is a set of sums `out_x = sum_j w(x, j) L_j R_i`, with i = x - j or the like. A block
//! of the result, some rows of `L` by one or two vectors, stays in registers for the whole sum over j, while two
//! pointers walk the sequences, one forward and one backward: a matrix is never written to be read again, and no call
//! is made a product.
//!
//! What lanes stand for is left to the callers, who say by strides where a vector of `R` is: neighbouring columns of
//! one matrix, the same element for neighbouring outputs, or the same element of neighbouring members of a batch. In
//! the last case `L` has a vector an element too; elsewhere an element of `L` is the same for all lanes.
//!
//! A weight is the same for a whole product, so it is applied to the product's sum over the inner index, not to
//! factors: one multiplication where the inner index takes as many as it is long. An element's sum is taken in the same
//! order at every level, whatever the block that it lies in.

use super::interleave::{items_of_lanes, lanes_of_items};
use super::weights::Tabled;
use super::window::{Window, window};
use crate::element::Element;
use crate::simd::{Level, MOST_LANES, Mask, Simd, Vector, at};

/// Cells before and after what vectors of neighbouring outputs are loaded from: loads may begin or end there.
pub(super) const LEAD: usize = MOST_LANES;

/// How the elements of a matrix of `left` lie.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// The inner index is contiguous.
    Rows,
    /// The row is contiguous.
    Columns,
    /// A vector an element, which is contiguous; strides are multiples of it.
    Vectors,
}

/// A block of sums of products: for every row r and vector v of the result, over terms t and inner indices c,
/// `weights[t] * sum_c left[t, r, c] * right[t, c, v]`.
#[derive(Clone, Copy)]
pub struct Sums<'a, T> {
    pub left: &'a [T],
    pub kind: Left,
    /// From a term to the next, from a row, from an inner index.
    pub left_steps: [usize; 3],
    pub right: &'a [T],
    /// Where the vector of the first term, inner index and column is.
    pub right_at: usize,
    /// From a term to the next, forward or backward.
    pub right_step: isize,
    /// From an inner index to the next, from a vector.
    pub right_steps: [usize; 2],
    pub rows: usize,
    pub vectors: usize,
    pub inner: usize,
    pub terms: usize,
    pub weights: Option<Weighting<'a, T>>,
}

/// A vector of weights a term.
#[derive(Clone, Copy)]
pub struct Weighting<'a, T> {
    pub cells: &'a [T],
    pub at: usize,
    pub step: isize,
}

/// What a scan divides by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divide {
    Nothing,
    /// The sum of output x by x.
    Sums,
    /// The matrix of index x by `last - x`, before it is a factor of later sums; that of index `last` is none.
    Factors {
        last: usize,
    },
}

/// The end of the sums of neighbouring outputs of a scan: one lane after another is settled, and then adds to the sums
/// of those behind it.
#[derive(Clone, Copy)]
pub struct Settle<'a, T> {
    pub right: &'a [T],
    /// Where the vector of the first lane is, which is `LEAD` short of the second matrix.
    pub right_at: usize,
    pub right_steps: [usize; 2],
    pub rows: usize,
    /// Rows and columns of a matrix of `right`.
    pub inner: usize,
    pub weights: Option<Weighting<'a, T>>,
    /// The index of the first lane's matrix.
    pub first: usize,
    pub lanes: usize,
    pub divide: Divide,
}

/// The kernels of this family, compiled here once for `f32` and `f64`.
pub trait Kernels: Tabled {
    /// `out[r, v] = sums`, a vector a cell; added to what is there if `continued`.
    fn sums(level: Level, sums: &Sums<'_, Self>, continued: bool, out: &mut [Self]);

    /// [`Kernels::sums`], continued, of terms that not all lanes have: lane l has a term t if `first + l`, plus or
    /// minus t as `right_step` says, is within `0..len`.
    fn edge(level: Level, sums: &Sums<'_, Self>, first: isize, len: usize, out: &mut [Self]);

    /// Adds to sums of numbers, lanes along outputs.
    fn window(level: Level, window: &Window<'_, Self>, out: &mut [Self]);

    /// The cells of items side by side.
    fn interleave(level: Level, items: &[&[Self]; MOST_LANES], out: &mut [Self]);

    /// Back from there, to items so many cells apart.
    fn deinterleave(level: Level, cells: &[Self], step: usize, out: &mut [Self]);

    /// The sums divided by a number, added to what is there if `continued`, to 0 if not. Whether all of that is finite.
    fn quotients(level: Level, sums: &[Self], divisor: Self, continued: bool, out: &mut [Self]) -> bool;

    /// Adds `sums` to the matrices of `results` that they belong to, of which `factors` are what later sums take, if
    /// not they themselves.
    fn settle(
        level: Level,
        settle: &Settle<'_, Self>,
        sums: &mut [Self],
        results: &mut [Self],
        factors: Option<&mut [Self]>,
    );
}

macro_rules! kernels {
    ($($t:ty),*) => { $(impl Kernels for $t {
        fn sums(level: Level, sums: &Sums<'_, $t>, continued: bool, out: &mut [$t]) {
            at!(level, |s| sums_of_kind(s, sums, continued, out));
        }
        fn edge(level: Level, sums: &Sums<'_, $t>, first: isize, len: usize, out: &mut [$t]) {
            at!(level, |s| edge(s, sums, first, len, out));
        }
        fn window(level: Level, job: &Window<'_, $t>, out: &mut [$t]) {
            at!(level, |s| window(s, job, out));
        }
        fn interleave(level: Level, items: &[&[$t]; MOST_LANES], out: &mut [$t]) {
            at!(level, |s| lanes_of_items(s, items, out));
        }
        fn deinterleave(level: Level, cells: &[$t], step: usize, out: &mut [$t]) {
            at!(level, |s| items_of_lanes(s, cells, step, out));
        }
        fn quotients(level: Level, sums: &[$t], divisor: $t, continued: bool, out: &mut [$t]) -> bool {
            at!(level, |s| quotients(s, sums, divisor, continued, out))
        }
        fn settle(
            level: Level,
            job: &Settle<'_, $t>,
            sums: &mut [$t],
            results: &mut [$t],
            factors: Option<&mut [$t]>,
        ) {
            at!(level, |s| settle(s, job, sums, results, factors));
        }
    })* };
}
kernels!(f32, f64);

/// [`Kernels::sums`].
#[inline(always)]
fn sums_of_kind<T: Element, S: Simd>(s: S, job: &Sums<'_, T>, continued: bool, out: &mut [T]) {
    match (job.kind, job.weights.is_some()) {
        (Left::Rows, false) => blocks::<_, _, ROWS, false>(s, job, continued, out),
        (Left::Rows, true) => blocks::<_, _, ROWS, true>(s, job, continued, out),
        (Left::Columns, false) => blocks::<_, _, COLUMNS, false>(s, job, continued, out),
        (Left::Columns, true) => blocks::<_, _, COLUMNS, true>(s, job, continued, out),
        (Left::Vectors, false) => blocks::<_, _, VECTORS, false>(s, job, continued, out),
        (Left::Vectors, true) => blocks::<_, _, VECTORS, true>(s, job, continued, out),
    }
}

// `Left`, as an argument of types.
const ROWS: u8 = 0;
const COLUMNS: u8 = 1;
const VECTORS: u8 = 2;

/// The whole of a result, block by block: as large as registers allow, and smaller ones at the ends. Where a weighted
/// block has sums within sums, it is half as large.
#[inline(always)]
fn blocks<T: Element, S: Simd, const LEFT: u8, const WEIGHTED: bool>(
    s: S,
    job: &Sums<'_, T>,
    continued: bool,
    out: &mut [T],
) {
    let most = if WEIGHTED { S::ACCUMULATORS / 2 } else { S::ACCUMULATORS };
    let mut row = 0;
    while row < job.rows {
        let left = job.rows - row;
        row += if LEFT == VECTORS && most >= 8 && left >= 4 {
            // As many elements of either side, of which each is a load.
            block_row::<_, _, LEFT, WEIGHTED, 4, 4>(s, job, row, continued, out)
        } else if most >= 8 && left >= 8 {
            block_row::<_, _, LEFT, WEIGHTED, 8, 2>(s, job, row, continued, out)
        } else if most >= 4 && left >= 4 {
            // Two vectors where registers are many.
            if S::ACCUMULATORS >= 8 {
                block_row::<_, _, LEFT, WEIGHTED, 4, 2>(s, job, row, continued, out)
            } else {
                block_row::<_, _, LEFT, WEIGHTED, 4, 1>(s, job, row, continued, out)
            }
        } else if left >= 2 {
            if most >= 4 {
                block_row::<_, _, LEFT, WEIGHTED, 2, 2>(s, job, row, continued, out)
            } else {
                block_row::<_, _, LEFT, WEIGHTED, 2, 1>(s, job, row, continued, out)
            }
        } else {
            block_row::<_, _, LEFT, WEIGHTED, 1, 2>(s, job, row, continued, out)
        };
    }
}

/// `R` rows, `V` vectors at a time. Returns the number of rows.
#[inline(always)]
fn block_row<T: Element, S: Simd, const LEFT: u8, const WEIGHTED: bool, const R: usize, const V: usize>(
    s: S,
    job: &Sums<'_, T>,
    row: usize,
    continued: bool,
    out: &mut [T],
) -> usize {
    let mut vector = 0;
    while vector + V <= job.vectors {
        block::<_, _, LEFT, WEIGHTED, R, V>(s, job, row, vector, continued, out);
        vector += V;
    }
    while V > 1 && vector < job.vectors {
        block::<_, _, LEFT, WEIGHTED, R, 1>(s, job, row, vector, continued, out);
        vector += 1;
    }
    R
}

/// `R` rows of `V` vectors.
#[inline(always)]
fn block<T: Element, S: Simd, const LEFT: u8, const WEIGHTED: bool, const R: usize, const V: usize>(
    s: S,
    job: &Sums<'_, T>,
    row: usize,
    vector: usize,
    continued: bool,
    out: &mut [T],
) {
    let out = &mut out[(row * job.vectors + vector) * T::LANES..];
    let stride = job.vectors * T::LANES;
    let mut sums = [[s.splat(T::zero()); V]; R];
    if continued {
        for (r, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = s.load(&out[r * stride + v * T::LANES..]);
            }
        }
    }
    let [term, row_step, _] = job.left_steps;
    let mut left = row * row_step;
    let mut right = job.right_at + vector * job.right_steps[1];
    let mut weight = job.weights.map_or(0, |weights| weights.at);
    for _ in 0..job.terms {
        if WEIGHTED {
            let mut products = [[s.splat(T::zero()); V]; R];
            add_products::<_, _, LEFT, R, V>(s, job, left, right, &mut products);
            let weights = job.weights.expect("weights of a weighted sum");
            let w = s.load(&weights.cells[weight..]);
            for (sums, products) in sums.iter_mut().zip(&products) {
                for (sum, &product) in sums.iter_mut().zip(products) {
                    *sum = product.mul_add(w, *sum);
                }
            }
            weight = weight.wrapping_add_signed(weights.step);
        } else {
            add_products::<_, _, LEFT, R, V>(s, job, left, right, &mut sums);
        }
        left += term;
        right = right.wrapping_add_signed(job.right_step);
    }
    for (r, sums) in sums.iter().enumerate() {
        for (v, sum) in sums.iter().enumerate() {
            sum.store(&mut out[r * stride + v * T::LANES..]);
        }
    }
}

/// Adds the products of one term.
#[inline(always)]
fn add_products<T: Element, S: Simd, const LEFT: u8, const R: usize, const V: usize>(
    s: S,
    job: &Sums<'_, T>,
    left: usize,
    right: usize,
    sums: &mut [[S::V<T>; V]; R],
) {
    let [_, row_step, inner_step] = job.left_steps;
    let [right_inner, right_vector] = job.right_steps;
    let mut rows: [&[T]; R] = [&[]; R];
    if LEFT == ROWS {
        for (r, row) in rows.iter_mut().enumerate() {
            *row = &job.left[left + r * row_step..][..job.inner];
        }
    }
    #[expect(clippy::needless_range_loop, reason = "rows are not read in every case")]
    for c in 0..job.inner {
        let mut b = [s.splat(T::zero()); V];
        for (v, b) in b.iter_mut().enumerate() {
            *b = s.load(&job.right[right + c * right_inner + v * right_vector..]);
        }
        for (r, sums) in sums.iter_mut().enumerate() {
            let a = match LEFT {
                ROWS => s.splat(rows[r][c]),
                COLUMNS => s.splat(job.left[left + c * inner_step..][..R][r]),
                _ => s.load(&job.left[left + c * inner_step + r * row_step..]),
            };
            for (sum, &b) in sums.iter_mut().zip(&b) {
                *sum = a.mul_add(b, *sum);
            }
        }
    }
}

/// [`Kernels::edge`].
#[inline(always)]
fn edge<T: Element, S: Simd>(s: S, job: &Sums<'_, T>, first: isize, len: usize, out: &mut [T]) {
    let mut lanes = [T::zero(); MOST_LANES];
    let mut lane = T::zero();
    for cell in &mut lanes {
        *cell = lane;
        lane = lane + T::one();
    }
    let lanes = s.load(&lanes);
    let [term, row_step, inner_step] = job.left_steps;
    for t in 0..job.terms {
        let index = first + job.right_step * t as isize;
        let (from, to) = ((-index).max(0), (len as isize - index).max(0));
        let (from, to) = (lane_number(from), lane_number(to));
        let has = s.splat::<T>(from).le(lanes).and(lanes.lt(s.splat(to)));
        let left = t * term;
        let right = job.right_at.wrapping_add_signed(job.right_step * t as isize);
        for row in 0..job.rows {
            for vector in 0..job.vectors {
                let mut product = s.splat(T::zero());
                for c in 0..job.inner {
                    let a = s.splat(job.left[left + row * row_step + c * inner_step]);
                    let b = s.load(&job.right[right + c * job.right_steps[0] + vector * job.right_steps[1]..]);
                    product = a.mul_add(b, product);
                }
                let out = &mut out[(row * job.vectors + vector) * T::LANES..];
                let sum = s.load(out);
                let more = match &job.weights {
                    Some(weights) => {
                        let at = weights.at.wrapping_add_signed(weights.step * t as isize);
                        product.mul_add(s.load(&weights.cells[at..]), sum)
                    }
                    None => sum + product,
                };
                S::V::select(has, more, sum).store(out);
            }
        }
    }
}

/// A lane, or any that is beyond all.
#[inline(always)]
fn lane_number<T: Element>(lane: isize) -> T {
    T::from_usize(lane.unsigned_abs().min(MOST_LANES)).expect("a small number")
}

/// [`Kernels::settle`].
#[inline(always)]
fn settle<T: Element, S: Simd>(
    s: S,
    job: &Settle<'_, T>,
    sums: &mut [T],
    results: &mut [T],
    mut factors: Option<&mut [T]>,
) {
    let cells = job.rows * job.inner;
    for lane in 0..job.lanes {
        let index = job.first + lane;
        let result = &mut results[index * cells..][..cells];
        let divisor = if job.divide == Divide::Sums { number(index) } else { T::one() };
        for (cell, sums) in result.iter_mut().zip(sums.chunks_exact(T::LANES)) {
            *cell = *cell + sums[lane] / divisor;
        }
        if let (Divide::Factors { last }, Some(factors)) = (job.divide, &mut factors) {
            let divisor = number::<T>((last - index).max(1));
            for (factor, &cell) in factors[index * cells..][..cells].iter_mut().zip(&*result) {
                *factor = cell / divisor;
            }
        }
        if lane + 1 < job.lanes {
            let left = match &factors {
                Some(factors) => &factors[index * cells..][..cells],
                None => &results[index * cells..][..cells],
            };
            let mut weights = job.weights;
            if let Some(weights) = &mut weights {
                weights.at = weights.at.wrapping_add_signed(weights.step * lane as isize);
            }
            let push = Sums {
                left,
                kind: Left::Rows,
                left_steps: [cells, job.inner, 1],
                right: job.right,
                right_at: job.right_at - lane,
                right_step: -1,
                right_steps: job.right_steps,
                rows: job.rows,
                vectors: job.inner,
                inner: job.inner,
                terms: 1,
                weights,
            };
            sums_of_kind(s, &push, true, sums);
        }
    }
}

/// [`Kernels::quotients`].
#[inline(always)]
fn quotients<T: Element, S: Simd>(_: S, sums: &[T], divisor: T, continued: bool, out: &mut [T]) -> bool {
    let mut finite = true;
    for (out, &sum) in out.iter_mut().zip(sums) {
        let start = if continued { *out } else { T::zero() };
        *out = start + sum / divisor;
        finite &= out.is_finite();
    }
    finite
}

/// The element nearest to an integer.
#[inline(always)]
pub(super) fn number<T: Element>(n: usize) -> T {
    T::from_usize(n).expect("every integer rounds to an element")
}
