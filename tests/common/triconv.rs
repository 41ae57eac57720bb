//! Triangular convolutions as plain loops over the formulas of the contract, in any numbers: exact integers, twice the precision
//! of an element, magnitudes.
//!
//! Every matrix that the family computes is a first value and a sum of products of two matrices with weights, and every formula here
//! says which. What the error of any evaluation is proportional to is the same formula on magnitudes.

use super::wide::Wide;
use pullback::triconv::{Side, Weights};
use std::ops::{Add, Mul, Range};

/// What references compute with.
pub trait Number: Copy + Add<Output = Self> + Mul<Output = Self> {
    fn integer(n: i64) -> Self;
    /// `1 / n`
    fn part(n: i64) -> Self;

    fn term(weight: Self, x: Self, y: Self) -> Self {
        weight * x * y
    }
}

impl<W: Wide> Number for W {
    fn integer(n: i64) -> Self {
        Self::from_f64(n as f64)
    }

    fn part(n: i64) -> Self {
        Self::integer(1) / Self::integer(n)
    }
}

/// Sums are exact or refused: overflow is checked.
impl Number for i128 {
    fn integer(n: i64) -> Self {
        n.into()
    }

    fn part(n: i64) -> Self {
        assert_eq!(n, 1, "no integer");
        1
    }
}

/// The weights of the first rows, `w(k, j)`.
pub enum Table<N> {
    Pascal(Vec<Vec<N>>),
    Taylor,
    Plain,
}

impl<N: Number> Table<N> {
    /// With rows 0 to `rows - 1`.
    pub fn new(weights: Weights, rows: usize) -> Self {
        match weights {
            Weights::Taylor => Self::Taylor,
            Weights::Plain => Self::Plain,
            Weights::Binomial => Self::Pascal(pascal(rows)),
        }
    }

    /// Of a product, where those of Taylor coefficients are plain.
    pub fn of_product(weights: Weights, rows: usize) -> Self {
        if weights == Weights::Binomial { Self::new(weights, rows) } else { Self::Plain }
    }

    pub fn at(&self, k: usize, j: usize) -> N {
        match self {
            Self::Pascal(rows) => rows[k][j],
            Self::Taylor => N::part(k as i64 + 1),
            Self::Plain => N::integer(1),
        }
    }
}

/// By addition: exact where the numbers are, and otherwise off by a rounding a row.
pub fn pascal<N: Number>(rows: usize) -> Vec<Vec<N>> {
    let mut all: Vec<Vec<N>> = Vec::with_capacity(rows);
    for k in 0..rows {
        let one = N::integer(1);
        let inner = |j: usize| all[k - 1][j - 1] + all[k - 1][j];
        let row = (0..=k).map(|j| if j == 0 || j == k { one } else { inner(j) }).collect();
        all.push(row);
    }
    all
}

/// C(n, k) where it is below 2^127, by products of whole numbers.
pub fn binomial(n: u64, k: u64) -> Option<u128> {
    let mut product = 1u128;
    for step in 0..k.min(n.checked_sub(k)?) {
        let (factor, divisor) = (u128::from(n - step), u128::from(step + 1));
        // C(n, step) (n - step) / (step + 1), of which the first two may be beyond u128 though the result is not.
        let common = gcd(product, divisor);
        product = (product / common).checked_mul(factor / (divisor / common))?;
    }
    (product < 1 << 127).then_some(product)
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Matrices one after another, each by rows.
#[derive(Clone, Debug)]
pub struct Sequence<N> {
    pub shape: [usize; 2],
    pub cells: Vec<N>,
}

impl<N: Copy> Sequence<N> {
    pub fn new(shape: [usize; 2], cells: Vec<N>) -> Self {
        assert!(cells.len().is_multiple_of(shape[0] * shape[1]), "whole matrices");
        Self { shape, cells }
    }

    fn size(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    pub fn len(&self) -> usize {
        self.cells.len() / self.size()
    }

    /// Of matrix `k`.
    pub fn cells(&self, k: usize) -> &[N] {
        &self.cells[k * self.size()..(k + 1) * self.size()]
    }

    pub fn map<M: Copy>(&self, to: impl Fn(N) -> M) -> Sequence<M> {
        Sequence::new(self.shape, self.cells.iter().map(|&x| to(x)).collect())
    }

    /// Matrix `k` for reading, or its transpose.
    fn matrix(&self, k: usize, transposed: bool) -> Matrix<'_, N> {
        let ([rows, columns], cells) = (self.shape, self.cells(k));
        match transposed {
            false => Matrix { cells, shape: [rows, columns], strides: [columns, 1] },
            true => Matrix { cells, shape: [columns, rows], strides: [1, columns] },
        }
    }
}

struct Matrix<'a, N> {
    cells: &'a [N],
    shape: [usize; 2],
    strides: [usize; 2],
}

/// Products of the matrices of two sequences, of which one matrix is the sum.
pub struct Formula {
    /// `[k, j]` of a weight, and which matrices of the first and of the second sequence it is the weight of.
    terms: Vec<([usize; 2], usize, usize)>,
    /// Which sequence's matrices are transposed.
    transposed: [bool; 2],
    /// Whether the second sequence is on the right.
    side: Side,
}

impl Formula {
    /// How many products of numbers each entry is a sum of.
    pub fn products<N: Copy>(&self, first: &Sequence<N>) -> usize {
        // The inner axis is the same in both.
        let columns_count = (self.side == Side::Right) != self.transposed[0];
        self.terms.len() * first.shape[usize::from(columns_count)]
    }

    /// `start` and the sum.
    pub fn sum<N: Number>(&self, w: &Table<N>, first: &Sequence<N>, second: &Sequence<N>, mut start: Vec<N>) -> Vec<N> {
        for &([k, j], of_first, of_second) in &self.terms {
            let factors = (first.matrix(of_first, self.transposed[0]), second.matrix(of_second, self.transposed[1]));
            let (left, right) = if self.side == Side::Right { factors } else { (factors.1, factors.0) };
            let ([rows, inner], [same, columns], weight) = (left.shape, right.shape, w.at(k, j));
            assert_eq!((inner, rows * columns), (same, start.len()), "matrices that can be multiplied");
            for (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
                let cell = &mut start[row * columns + column];
                for at in 0..inner {
                    let x = left.cells[row * left.strides[0] + at * left.strides[1]];
                    let y = right.cells[at * right.strides[0] + column * right.strides[1]];
                    *cell = *cell + N::term(weight, x, y);
                }
            }
        }
        start
    }
}

pub fn zeros<N: Number>(count: usize) -> Vec<N> {
    vec![N::integer(0); count]
}

fn formula(side: Side, transposed: [bool; 2], terms: impl Iterator<Item = ([usize; 2], usize, usize)>) -> Formula {
    Formula { terms: terms.collect(), transposed, side }
}

/// `A_k` less `S_k`, for k of at least 1: A, B.
pub fn of_step(side: Side, k: usize) -> Formula {
    formula(side, [false, false], (0..k).map(|j| ([k - 1, j], j, k - 1 - j)))
}

/// `G_j` less the gradient given of `A_j`, of a scan of n steps: G, B.
pub fn of_gradient(side: Side, n: usize, j: usize) -> Formula {
    formula(side, [false, true], (j..n).map(|k| ([k, j], k + 1, k - j)))
}

/// The gradient of `B_i`: A, G.
pub fn of_grad_b(side: Side, n: usize, i: usize) -> Formula {
    let terms = (0..n - i).map(|j| ([i + j, j], j, i + j + 1));
    formula(side, [true, false], terms)
}

/// `C_k` of a product of `la` and `lb` matrices: A, B.
pub fn of_product([la, lb]: [usize; 2], k: usize) -> Formula {
    let js = (0..la).filter(|&j| j <= k && k - j < lb);
    formula(Side::Right, [false, false], js.map(|j| ([k, j], j, k - j)))
}

/// The gradient of `A_j` of such a product of which `range` was computed: the gradients of C, B.
pub fn of_product_a(lb: usize, range: Range<usize>, j: usize) -> Formula {
    let ks = range.clone().filter(|&k| k >= j && k - j < lb);
    formula(Side::Right, [false, true], ks.map(|k| ([k, j], k - range.start, k - j)))
}

/// The gradient of `B_i` of such a product: A, the gradients of C.
pub fn of_product_b(la: usize, range: Range<usize>, i: usize) -> Formula {
    let js = (0..la).filter(|j| range.contains(&(i + j)));
    formula(Side::Right, [true, false], js.map(|j| ([i + j, j], j, i + j - range.start)))
}

/// `D_i` of a correlation of `la` and `lg` matrices: A, G.
pub fn of_correlation([la, lg]: [usize; 2], i: usize) -> Formula {
    let js = (0..la).filter(|j| i + j < lg);
    formula(Side::Right, [true, false], js.map(|j| ([i + j, j], j, i + j)))
}

/// The gradient of `A_j` of such a correlation of which n matrices were computed: G, the gradients of D.
pub fn of_correlation_a(lg: usize, n: usize, j: usize) -> Formula {
    let is = (0..n).filter(|i| i + j < lg);
    formula(Side::Right, [false, true], is.map(|i| ([i + j, j], i + j, i)))
}

/// The gradient of `G_k` of such a correlation: A, the gradients of D.
pub fn of_correlation_g(la: usize, n: usize, k: usize) -> Formula {
    let js = (0..la).filter(|&j| j <= k && k - j < n);
    formula(Side::Right, [false, false], js.map(|j| ([k, j], j, k - j)))
}

/// All of `A`, from `A_0` and every `S_k`.
pub fn scan<N: Number>(side: Side, w: &Table<N>, s: &Sequence<N>, b: &Sequence<N>) -> Sequence<N> {
    let mut a = Sequence::new(s.shape, s.cells(0).to_vec());
    for k in 1..s.len() {
        let next = of_step(side, k).sum(w, &a, b, s.cells(k).to_vec());
        a.cells.extend(next);
    }
    a
}

/// All of `G`, from the gradients of every `A_k`.
pub fn gradient_scan<N: Number>(side: Side, w: &Table<N>, grad_a: &Sequence<N>, b: &Sequence<N>) -> Sequence<N> {
    let (mut g, size, n) = (grad_a.clone(), grad_a.size(), b.len());
    for j in (0..n).rev() {
        let next = of_gradient(side, n, j).sum(w, &g, b, grad_a.cells(j).to_vec());
        g.cells[j * size..(j + 1) * size].copy_from_slice(&next);
    }
    g
}

/// The gradients of every `B_i`, from A and G.
pub fn grad_b<N: Number>(side: Side, w: &Table<N>, a: &Sequence<N>, g: &Sequence<N>, m: usize) -> Sequence<N> {
    let n = a.len() - 1;
    let cells = (0..n).flat_map(|i| of_grad_b(side, n, i).sum(w, a, g, zeros(m * m))).collect();
    Sequence::new([m, m], cells)
}
