//! A share of a sample, in [0, 1].

use std::fmt;

use thiserror::Error;

/// A quantile, kept in parts of a billion so that ranks are whole-number arithmetic.
///
/// ```
/// # use tickpong_units::Quantile;
/// assert_eq!(Quantile::P99.rank(1_000), 990);
/// assert_eq!(Quantile::P999.rank(1_000), 999, "and not one rank too high, as 99.9 / 100.0 would have it");
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Quantile(u32);

impl Quantile {
    /// The median.
    pub const P50: Self = Self(500_000_000);
    /// 0.9.
    pub const P90: Self = Self(900_000_000);
    /// 0.99.
    pub const P99: Self = Self(990_000_000);
    /// 0.999.
    pub const P999: Self = Self(999_000_000);
    /// 0.9999.
    pub const P9999: Self = Self(999_900_000);

    /// The quantile nearest to `q`, to nine decimals.
    ///
    /// # Errors
    ///
    /// When `q` is not a number in [0, 1].
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in [0, 10⁹] by the check")]
    pub fn new(q: f64) -> Result<Self, QuantileError> {
        if (0.0..=1.0).contains(&q) { Ok(Self((q * 1e9).round() as u32)) } else { Err(QuantileError(q)) }
    }

    /// As a share.
    pub fn get(self) -> f64 {
        f64::from(self.0) / 1e9
    }

    /// The nearest rank, from one: the smallest `r` with `r / n >= q`, at least one.
    ///
    /// The one definition that report, files and gate share (definition 1 of Hyndman and Fan, 1996).
    ///
    /// # Panics
    ///
    /// Never: the rank is not above `n`.
    pub fn rank(self, n: u64) -> u64 {
        let rank = (u128::from(n) * u128::from(self.0)).div_ceil(1_000_000_000);
        u64::try_from(rank).expect("not above n").max(1)
    }
}

impl fmt::Display for Quantile {
    /// `p50`, `p99`, `p99.9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, rest) = (self.0 / 10_000_000, self.0 % 10_000_000);
        let text = match rest {
            0 => format!("p{whole}"),
            _ => format!("p{whole}.{}", format!("{rest:07}").trim_end_matches('0')),
        };
        f.pad(&text)
    }
}

/// Not a number in [0, 1].
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error("use {0} as a quantile: want a number from 0 to 1")]
pub struct QuantileError(f64);

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quantiles_print_as_percentiles() {
        for (q, name) in [(Quantile::P50, "p50"), (Quantile::P999, "p99.9"), (Quantile::P9999, "p99.99")] {
            assert_eq!(q.to_string(), name);
            assert_eq!(Quantile::new(q.get()), Ok(q));
        }
        for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert!(Quantile::new(wrong).is_err());
        }
    }

    proptest! {
        #[test]
        fn the_rank_is_the_smallest_that_covers(ppb in 0_u32..=1_000_000_000, n in 1_u64..1_000_000_000_000) {
            let covers = |r: u64| u128::from(r) * 1_000_000_000 >= u128::from(n) * u128::from(ppb);
            let rank = Quantile(ppb).rank(n);
            prop_assert!((1..=n).contains(&rank));
            prop_assert!(covers(rank));
            prop_assert!(rank == 1 || !covers(rank - 1));
        }
    }
}
