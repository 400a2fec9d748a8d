//! Whether a series rises, and how fast: Theil and Sen's slope, Kendall's test.

use thiserror::Error;

/// A series that no slope can be taken of.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum TrendError {
    /// One point has no slope.
    #[error("take the trend of {points} points: want at least {MIN_POINTS}")]
    TooFew {
        /// Points there are.
        points: usize,
    },
    /// NaN and the infinities have no order or no difference.
    #[error("take the trend of a series: value {index} is {value}")]
    NotFinite {
        /// From zero.
        index: usize,
        /// The value.
        value: f64,
    },
}

/// The fewest points that [`trend`] judges: with fewer, no order is rare enough to mean anything.
pub const MIN_POINTS: usize = 4;

/// How a series moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trend {
    /// Median of the slopes between all pairs of points, in units of the value a step.
    pub slope: f64,
    /// One-sided p of Kendall's test against "it does not rise", by the normal approximation with continuity correction; ties are
    /// allowed for in the variance.
    pub p_rises: f64,
}

/// The trend of equally spaced values.
///
/// Up to 29 % of the points may lie anywhere without moving the slope far (Sen, *Estimates of the Regression Coefficient Based on Kendall's
/// Tau*, JASA 63, 1968; Mann, *Nonparametric Tests Against Trend*, Econometrica 13, 1945). Takes time and memory by the square of the number
/// of points.
///
/// # Errors
///
/// Fewer than [`MIN_POINTS`] points, or one that is not finite.
///
/// ```
/// # use tickpong_stats::trend::trend;
/// let rising = trend(&[1.0, 2.0, 3.0, 100.0, 5.0, 6.0, 7.0, 8.0])?;
/// assert_eq!(rising.slope, 1.0, "one wild value moves it little");
/// assert!(rising.p_rises < 0.05);
/// # Ok::<(), tickpong_stats::trend::TrendError>(())
/// ```
pub fn trend(values: &[f64]) -> Result<Trend, TrendError> {
    if values.len() < MIN_POINTS {
        return Err(TrendError::TooFew { points: values.len() });
    }
    if let Some((index, &value)) = values.iter().enumerate().find(|(_, value)| !value.is_finite()) {
        return Err(TrendError::NotFinite { index, value });
    }
    let mut slopes = Vec::with_capacity(values.len() * (values.len() - 1) / 2);
    let mut score = 0_i64;
    for (i, &earlier) in values.iter().enumerate() {
        for (steps, &later) in (1_u32..).zip(&values[i + 1..]) {
            let rise = later - earlier;
            score += i64::from(rise > 0.0) - i64::from(rise < 0.0);
            slopes.push(rise / f64::from(steps));
        }
    }
    Ok(Trend { slope: median(&mut slopes), p_rises: p_rises(score, values) })
}

/// The value in the middle, or the mean of the two.
fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { f64::midpoint(values[middle - 1], values[middle]) }
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
fn p_rises(score: i64, values: &[f64]) -> f64 {
    let term = |n: usize| (n * (n - 1) * (2 * n + 5)) as f64;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(|a, b| a >= b).map(|tied| term(tied.len())).sum();
    let variance = (term(values.len()) - ties) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let z = (score - 1) as f64 / variance.sqrt();
    0.5 * libm::erfc(z / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[f64]) -> Trend {
        trend(values).unwrap()
    }

    /// By hand: Kendall's S = 10 of 10 pairs, variance 5·4·15/18.
    #[test]
    fn five_rising_values() {
        let Trend { slope, p_rises } = of(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!(slope.to_bits(), 1.0_f64.to_bits());
        let z = 9.0 / (300.0_f64 / 18.0).sqrt();
        assert!((p_rises - 0.5 * libm::erfc(z / 2.0_f64.sqrt())).abs() < 1e-15);
        assert!((p_rises - 0.013_742_9).abs() < 1e-6, "{p_rises}");
    }

    #[test]
    fn what_does_not_rise_does_not_rise() {
        assert_eq!(of(&[3.0; 9]), Trend { slope: 0.0, p_rises: 1.0 });
        let falling = of(&[9.0, 7.0, 5.0, 3.0, 1.0]);
        assert!(falling.slope < 0.0 && falling.p_rises > 0.98, "{falling:?}");
        let shaking = of(&[1.0, 2.0, 1.0, 2.0, 1.0, 2.0, 1.0, 2.0]);
        assert!(shaking.p_rises > 0.2, "{shaking:?}");
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(trend(&[1.0; 3]), Err(TrendError::TooFew { points: 3 }));
        let error = trend(&[1.0, f64::INFINITY, 2.0, 3.0]).unwrap_err();
        assert_eq!(error.to_string(), "take the trend of a series: value 1 is inf");
        assert!(matches!(trend(&[f64::NAN; 5]), Err(TrendError::NotFinite { index: 0, .. })));
    }

    proptest! {
        #[test]
        fn a_line_has_its_own_slope(slope in -1e3..1e3_f64, start in -1e3..1e3_f64, n in 4_usize..60) {
            let values: Vec<f64> = (0_u32..).take(n).map(|i| start + slope * f64::from(i)).collect();
            prop_assert!((of(&values).slope - slope).abs() < 1e-8 * slope.abs().max(1.0));
        }

        #[test]
        fn backwards_it_falls(values in prop::collection::vec(-1e6..1e6_f64, 4..40)) {
            let backwards: Vec<f64> = values.iter().rev().copied().collect();
            let (forth, back) = (of(&values), of(&backwards));
            prop_assert!((forth.slope + back.slope).abs() < 1e-6);
            prop_assert!(forth.p_rises + back.p_rises >= 1.0 - 1e-12);
        }
    }
}
