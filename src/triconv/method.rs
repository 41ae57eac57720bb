//! How a scan is computed.

/// How a [`Scan`](super::Scan) is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Method {
    /// Every product of matrices: O(n^2) of them.
    #[default]
    Direct,
    /// Blocks of results by real transforms, for long sequences of Taylor coefficients or plain numbers. With [`Weights`] that
    /// are binomial it is refused: their sums are no convolutions.
    ///
    /// Given the `A_0` to `A_k` that were computed, an entry of `A_{k+1}` is within `(((k + 1) m + 16) u + tolerance)
    /// (|S_{k+1}| + sum w |A_j| |B_{k-j}|)`: the error of the direct method and a tolerance, relative to the magnitudes of
    /// the entry's own terms. A transform alone has no such bound, it loses what is small beside the largest numbers of
    /// its block. So the error of every pair of blocks is bounded, and where it might be too large for any entry, blocks are
    /// halved, down to short ones that are summed directly: factorial decay, matrices of different magnitudes and numbers that
    /// are not finite cost time, not digits. Geometric decay or growth is levelled before transforms. Results are the same bits
    /// for every number of threads; integers are not exact.
    ///
    /// Where blocks pass, n log n products of matrices and m^2 n log^2 n operations of transforms; where none does, about those
    /// of the direct method. Sequences of up to 64 results are direct. In gradients the scan backwards is relaxed too, with
    /// the same bound; the sums for B are direct.
    ///
    /// [`Weights`]: super::Weights
    Relaxed {
        /// What is added to the relative error of a sum: finite and above 0. Transforms of sequences whose magnitudes are alike
        /// pass in blocks of thousands down to about 1e-9, and in shorter ones somewhat below; at 1e-13 all is direct.
        /// Those of `f32` are computed in `f64`, so that 1e-8, which is less than a rounding, loses no speed.
        tolerance: f64,
    },
}
