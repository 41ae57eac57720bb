//! From sums over the samples of a kernel back to the numbers that describe it.

use super::exact::normalized;
use super::shape::Parameters;
use crate::exponent::ldexp;

/// Sums over the samples of a kernel `p` with the gradient `g`: with `s = sum p g` and `h = p (g - s)`, `x = sum h x` and so
/// on, of positions divided by `2^scale`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub x: f64,
    pub y: f64,
    pub xx: f64,
    pub xy: f64,
    pub yy: f64,
    pub scale: i32,
}

impl Moments {
    /// `S v` for `S = sum h z z^T`.
    fn times(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [x * self.xx + y * self.xy, x * self.xy + y * self.yy]
    }
}

/// Entries below this one times moments of an `f64` grid that is not scaled do not overflow.
const SAFE: f64 = 1e150;

fn dot(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

/// A product of which one factor may be infinite, and the other is exactly 0 where the truth is.
fn product(a: f64, b: f64) -> f64 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

impl Parameters {
    /// The gradient with respect to the numbers of a kernel: as `p` depends on `q`, `dL = -1/2 sum h dq`, and `dq = z^T dP z`.
    /// The fourth is 0 where there are three.
    pub(crate) fn gradient(self, values: [f64; 4], sums: &Moments) -> [f64; 4] {
        let squared = 2 * sums.scale;
        if self == Self::Precision {
            // dq = da x^2 + 2 db x y + dc y^2.
            let [a, c] = [sums.xx, sums.yy].map(|sum| -0.5 * ldexp(sum, squared));
            return [a, -ldexp(sums.xy, squared), c, 0.0];
        }
        let [m11, m12, m21, m22] = self.factor(values);
        // By far most factors need no care for the range of numbers.
        if self == Self::Factor && squared == 0 && values.iter().all(|m| m.abs() < SAFE) {
            let ([a, b], [c, d]) = (sums.times([m11, m12]), sums.times([m21, m22]));
            return [-a, -b, -c, -d];
        }
        let ((first, e1), (second, e2)) = (normalized([m11, m12]), normalized([m21, m22]));
        let (t1, t2) = (sums.times(first), sums.times(second));
        // M S M^T. Its entries without the axis' own width are those of the moments along and across it.
        let t11 = ldexp(dot(first, t1), 2 * e1 + squared);
        let t12 = ldexp(dot(first, t2), e1 + e2 + squared);
        let t22 = ldexp(dot(second, t2), 2 * e2 + squared);
        let [p, q, _, _] = values;
        match self {
            // -M S.
            Self::Factor => {
                let [a, b] = t1.map(|sum| -ldexp(sum, e1 + squared));
                let [c, d] = t2.map(|sum| -ldexp(sum, e2 + squared));
                [a, b, c, d]
            }
            // q = (u / sx)^2 + (v / sy)^2, and du / dtheta = v, dv / dtheta = -u.
            Self::Sigmas => [t11 / p, t22 / q, -product(t12, (q - p) / p + (q - p) / q), 0.0],
            // The same with s = sqrt(l).
            Self::Variances => {
                let angle = product(t12, (q - p) / p.sqrt() / q.sqrt());
                [0.5 * t11 / p, 0.5 * t22 / q, -angle, 0.0]
            }
            // dP = -P dSigma P, so that dL = 1/2 <P S P, dSigma>, and P S P = M^T (M S M^T) M.
            Self::Covariance => {
                let [xx, xy, yy] =
                    [(m11, m21, m11, m21), (m11, m21, m12, m22), (m12, m22, m12, m22)].map(|(a, b, c, d)| {
                        let row = [product(t11, c) + product(t12, d), product(t12, c) + product(t22, d)];
                        product(row[0], a) + product(row[1], b)
                    });
                [0.5 * xx, xy, 0.5 * yy, 0.0]
            }
            Self::Precision => unreachable!("returned above"),
        }
    }

    /// The gradient with respect to the offset `o` of a kernel of `z - o`: `P sum h z = M^T M sum h z`.
    pub(crate) fn offset_gradient(self, values: [f64; 4], sums: &Moments) -> [f64; 2] {
        let [m11, m12, m21, m22] = self.factor(values);
        let part = |row: [f64; 2]| {
            let (row, e) = normalized(row);
            let along = dot(row, [sums.x, sums.y]);
            row.map(|m| ldexp(m * along, 2 * e + sums.scale))
        };
        let (first, second) = (part([m11, m12]), part([m21, m22]));
        [first[0] + second[0], first[1] + second[1]]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `sum over samples of w exp(-q / 2)` without a norm, whose gradient has `h = p w`.
    fn loss(parameters: Parameters, values: [f64; 4], offset: [f64; 2]) -> (f64, Moments) {
        let (mut loss, mut sums) = (0.0, Moments::default());
        for i in 0..35 {
            let (x, y) = (f64::from(i % 7) - 2.6 - offset[0], f64::from(i / 7) - 2.2 - offset[1]);
            let [m11, m12, m21, m22] = parameters.factor(values);
            let q = (m11 * x + m12 * y).powi(2) + (m21 * x + m22 * y).powi(2);
            let term = (f64::from(i) * 0.7).sin() * (-0.5 * q).exp();
            loss += term;
            sums.x += term * x;
            sums.y += term * y;
            sums.xx += term * x * x;
            sums.xy += term * x * y;
            sums.yy += term * y * y;
        }
        (loss, sums)
    }

    #[test]
    fn gradients_are_those_of_differences() {
        for (parameters, values) in [
            (Parameters::Factor, [0.3, -0.2, 0.5, 0.4]),
            (Parameters::Precision, [0.3, -0.1, 0.2, 0.0]),
            (Parameters::Sigmas, [2.0, 1.5, 0.7, 0.0]),
            (Parameters::Sigmas, [1.0, 3.0, -2.0, 0.0]),
            (Parameters::Variances, [2.0, 5.0, 0.3, 0.0]),
            (Parameters::Covariance, [4.0, 1.0, 2.0, 0.0]),
            (Parameters::Covariance, [2.0, -1.0, 3.0, 0.0]),
        ] {
            let offset = [0.2, -0.3];
            let (_, sums) = loss(parameters, values, offset);
            let step = 1e-5;
            let close = |found: f64, of: &dyn Fn(f64) -> f64| {
                let expected = (of(step) - of(-step)) / (2.0 * step);
                assert!((found - expected).abs() < 1e-8, "{parameters:?} {values:?}: {found} is not {expected}");
            };
            let gradient = parameters.gradient(values, &sums);
            for at in 0..parameters.count() {
                close(gradient[at], &|step| {
                    let mut values = values;
                    values[at] += step;
                    loss(parameters, values, offset).0
                });
            }
            let gradient = parameters.offset_gradient(values, &sums);
            for at in 0..2 {
                close(gradient[at], &|step| {
                    let mut offset = offset;
                    offset[at] += step;
                    loss(parameters, values, offset).0
                });
            }
        }
    }

    #[test]
    fn scaled_sums_give_the_same_gradient() {
        let values = [0.3, -0.2, 0.5, 0.4];
        let (_, sums) = loss(Parameters::Factor, values, [0.0; 2]);
        let scaled = Moments {
            x: sums.x / 8.0,
            y: sums.y / 8.0,
            xx: sums.xx / 64.0,
            xy: sums.xy / 64.0,
            yy: sums.yy / 64.0,
            scale: 3,
        };
        for parameters in [Parameters::Factor, Parameters::Precision, Parameters::Sigmas] {
            let values = values.map(f64::abs);
            assert_eq!(parameters.gradient(values, &sums), parameters.gradient(values, &scaled));
            assert_eq!(parameters.offset_gradient(values, &sums), parameters.offset_gradient(values, &scaled));
        }
    }

    #[test]
    fn extremes_give_no_nan() {
        let sums = [Moments::default(), Moments { x: 1.0, y: -1.0, xx: 1.0, xy: -1.0, yy: 1.0, scale: 900 }];
        let tiny = f64::from_bits(1);
        for (parameters, values) in [
            (Parameters::Factor, [f64::MAX, f64::MIN, tiny, 0.0]),
            (Parameters::Precision, [f64::MAX, 0.0, tiny, 0.0]),
            (Parameters::Sigmas, [tiny, f64::MAX, 0.3, 0.0]),
            (Parameters::Sigmas, [tiny, tiny, 0.3, 0.0]),
            (Parameters::Variances, [tiny, f64::MAX, 0.3, 0.0]),
            (Parameters::Covariance, [tiny, 0.0, f64::MAX, 0.0]),
        ] {
            let gradient = parameters.gradient(values, &sums[0]);
            assert_eq!(gradient, [0.0; 4], "{parameters:?} {values:?}");
            for sums in &sums {
                assert!(parameters.gradient(values, sums).iter().all(|x| !x.is_nan()), "{parameters:?} {values:?}");
            }
        }
    }
}
