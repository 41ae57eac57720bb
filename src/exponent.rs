//! Powers of two, taken apart and put together.

/// `x * 2^e`, rounded once where the result is normal; infinite or 0 beyond the range.
#[inline]
pub(crate) fn ldexp(mut x: f64, e: i32) -> f64 {
    // In steps that are normal numbers. Twice the largest exponent and more, whatever is asked for.
    let mut left = e.clamp(-2200, 2200);
    while left != 0 {
        let step = left.clamp(-1000, 1000);
        x *= f64::from_bits(((1023 + step) as u64) << 52);
        left -= step;
    }
    x
}

/// The `e` with `2^e <= |x| < 2^(e + 1)`, for finite `x` other than 0.
pub(crate) fn exponent(x: f64) -> i32 {
    let field = |x: f64| (x.to_bits() >> 52 & 0x7ff) as i32;
    match field(x) {
        // Subnormal.
        0 => field(x * 2f64.powi(54)) - 54 - 1023,
        field => field - 1023,
    }
}
