//! Messages per second.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use thiserror::Error;

use crate::time::{Scaled, scale_decimal};
use crate::{Nanos, Seq};

/// Messages per second; never zero.
///
/// ```
/// # use tickpong_units::{Nanos, Rate, Seq};
/// let rate: Rate = "1.5M".parse()?;
/// assert_eq!(rate.get(), 1_500_000);
/// assert_eq!(rate.due(Seq::new(3)), Nanos::from_micros(2));
/// # Ok::<(), tickpong_units::ParseRateError>(())
/// ```
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Rate(NonZeroU64);

impl Rate {
    /// So many messages per second, or `None` for zero.
    pub const fn new(hz: u64) -> Option<Self> {
        match NonZeroU64::new(hz) {
            Some(hz) => Some(Self(hz)),
            None => None,
        }
    }

    /// Messages per second.
    pub const fn get(self) -> u64 {
        self.0.get()
    }

    /// How long after the start message `k` (from zero) is due: `⌊k × 10⁹ / rate⌋` ns.
    ///
    /// Computed from `k` each time, so truncation cannot accumulate. [`Nanos::MAX`] where it does not fit.
    pub fn due(self, k: Seq) -> Nanos {
        let ns = u128::from(k.get()) * 1_000_000_000 / u128::from(self.get());
        Nanos::new(u64::try_from(ns).unwrap_or(u64::MAX))
    }

    /// How many messages are due before `span` has passed: the smallest `k` with `due(k) >= span`.
    pub fn due_within(self, span: Nanos) -> u64 {
        let k = (u128::from(span.get()) * u128::from(self.get())).div_ceil(1_000_000_000);
        u64::try_from(k).unwrap_or(u64::MAX)
    }
}

impl fmt::Display for Rate {
    /// The way it may be typed: `100k`, `1.5M`, `12345`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hz = self.get();
        let (unit, suffix) = match hz {
            _ if hz >= 1_000_000 && hz.is_multiple_of(1_000) => (1_000_000, "M"),
            _ if hz >= 1_000 && hz.is_multiple_of(10) => (1_000, "k"),
            _ => (1, ""),
        };
        let (whole, rest) = (hz / unit, hz % unit);
        let text = match rest {
            0 => format!("{whole}{suffix}"),
            _ => {
                let width = if unit == 1_000_000 { 6 } else { 3 };
                format!("{whole}.{}{suffix}", format!("{rest:0width$}").trim_end_matches('0'))
            }
        };
        f.pad(&text)
    }
}

/// Why a rate could not be read.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ParseRateError {
    /// Nothing would ever be sent.
    #[error("read `{0}` as a rate: a rate of zero sends nothing; want at least 1 message a second")]
    Zero(String),
    /// Not a whole number of messages per second.
    #[error("read `{0}` as a rate: want whole messages a second, such as 12345, 100k or 1.5M")]
    Malformed(String),
    /// Beyond one message a nanosecond.
    #[error("read `{0}` as a rate: beyond one message a nanosecond")]
    TooHigh(String),
}

impl FromStr for Rate {
    type Err = ParseRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let (number, unit) = match trimmed.strip_suffix(['k', 'K']) {
            Some(number) => (number, 1_000),
            None => trimmed.strip_suffix('M').map_or((trimmed, 1), |number| (number, 1_000_000)),
        };
        match scale_decimal(number, unit) {
            Scaled::Exact(hz) if hz > 1_000_000_000 => Err(ParseRateError::TooHigh(text.to_owned())),
            Scaled::Exact(hz) => Self::new(hz).ok_or_else(|| ParseRateError::Zero(text.to_owned())),
            Scaled::TooLarge => Err(ParseRateError::TooHigh(text.to_owned())),
            Scaled::Fraction | Scaled::Malformed => Err(ParseRateError::Malformed(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn rates_are_read_as_people_write_them() {
        let read = |text: &str| text.parse::<Rate>().map(Rate::get);
        assert_eq!(read("100k"), Ok(100_000));
        assert_eq!(read("1.5M"), Ok(1_500_000));
        assert_eq!(read("2500"), Ok(2_500));
        assert_eq!(read("0"), Err(ParseRateError::Zero("0".into())));
        assert_eq!(read("2G"), Err(ParseRateError::Malformed("2G".into())));
        assert_eq!(read("0.5"), Err(ParseRateError::Malformed("0.5".into())));
        assert_eq!(read("-1"), Err(ParseRateError::Malformed("-1".into())));
        assert_eq!(read("2000M"), Err(ParseRateError::TooHigh("2000M".into())));
    }

    proptest! {
        #[test]
        fn what_is_printed_reads_back(hz in 1_u64..1_000_000_000) {
            let rate = Rate::new(hz).unwrap();
            prop_assert_eq!(rate.to_string().parse(), Ok(rate));
        }

        #[test]
        fn due_within_counts_exactly_the_messages_due_before(hz in 1_u64..10_000_000, ns in 0_u64..100_000_000_000) {
            let (rate, span) = (Rate::new(hz).unwrap(), Nanos::new(ns));
            let k = rate.due_within(span);
            prop_assert!(rate.due(Seq::new(k)) >= span);
            prop_assert!(k == 0 || rate.due(Seq::new(k - 1)) < span);
        }
    }
}
