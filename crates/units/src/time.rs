//! Spans of time, and readings of clocks that do not mix.

use std::cmp::Ordering;
use std::fmt;
use std::iter::Sum;
use std::marker::PhantomData;
use std::ops::{Add, AddAssign};
use std::str::FromStr;
use std::time::Duration;

use thiserror::Error;

/// A span of time in whole nanoseconds; never negative, 584 years at most.
///
/// There is deliberately no `From<u64>`: a bare number has no unit.
///
/// ```
/// # use tickpong_units::Nanos;
/// assert_eq!("250us".parse(), Ok(Nanos::from_micros(250)));
/// assert_eq!(Nanos::from_micros(250).to_string(), "250 µs");
/// assert!("250".parse::<Nanos>().is_err(), "a time without a unit is refused");
/// ```
#[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Nanos(u64);

impl Nanos {
    /// The longest span.
    pub const MAX: Self = Self(u64::MAX);
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many nanoseconds.
    pub const fn new(ns: u64) -> Self {
        Self(ns)
    }

    /// So many microseconds.
    ///
    /// # Panics
    ///
    /// When the span does not fit.
    pub const fn from_micros(us: u64) -> Self {
        Self(us.checked_mul(1_000).expect("span fits"))
    }

    /// So many milliseconds.
    ///
    /// # Panics
    ///
    /// When the span does not fit.
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms.checked_mul(1_000_000).expect("span fits"))
    }

    /// So many seconds.
    ///
    /// # Panics
    ///
    /// When the span does not fit.
    pub const fn from_secs(s: u64) -> Self {
        Self(s.checked_mul(1_000_000_000).expect("span fits"))
    }

    /// The number of nanoseconds.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// In seconds, for printing and for rates.
    #[expect(clippy::cast_precision_loss, reason = "exact below 2^53 ns, 104 days")]
    pub const fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The sum, or `None` where it does not fit.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// The difference, or `None` where `other` is longer.
    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(ns) => Some(Self(ns)),
            None => None,
        }
    }

    /// The difference, zero where `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }

    /// The sum, [`Nanos::MAX`] where it does not fit.
    #[must_use]
    pub const fn saturating_add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }

    /// How many whole `step`s fit into this span.
    ///
    /// # Panics
    ///
    /// When `step` is zero.
    pub const fn whole(self, step: Self) -> u64 {
        self.0 / step.0
    }

    /// This span `times` over, [`Nanos::MAX`] where it does not fit.
    #[must_use]
    pub const fn saturating_mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl Add for Nanos {
    type Output = Self;

    /// # Panics
    ///
    /// When the sum does not fit.
    fn add(self, other: Self) -> Self {
        self.checked_add(other).expect("span fits")
    }
}

impl AddAssign for Nanos {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Nanos {
    fn sum<I: Iterator<Item = Self>>(spans: I) -> Self {
        spans.fold(Self::ZERO, Self::add)
    }
}

impl From<Nanos> for Duration {
    fn from(span: Nanos) -> Self {
        Self::from_nanos(span.0)
    }
}

impl TryFrom<Duration> for Nanos {
    type Error = std::num::TryFromIntError;

    fn try_from(duration: Duration) -> Result<Self, Self::Error> {
        u64::try_from(duration.as_nanos()).map(Self)
    }
}

impl fmt::Display for Nanos {
    /// In the largest unit that leaves a whole part, with the digits that three decimals hold and no trailing zeros.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "µs"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let (whole, thousandths) = (self.0 / unit, self.0 % unit * 1_000 / unit);
        let text = match thousandths {
            0 => format!("{whole} {name}"),
            _ => format!("{whole}.{} {name}", format!("{thousandths:03}").trim_end_matches('0')),
        };
        f.pad(&text)
    }
}

/// Why a span of time could not be read.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ParseNanosError {
    /// A number alone: nobody can know which unit was meant.
    #[error("read `{0}` as a time: the unit is missing; write {0}ns, {0}us, {0}ms or {0}s")]
    NoUnit(String),
    /// Not a number with one of the units.
    #[error("read `{0}` as a time: want a number and a unit (ns, us, ms, s, m, h), such as 250us or 10s")]
    Malformed(String),
    /// Longer than 584 years.
    #[error("read `{0}` as a time: too long")]
    TooLong(String),
}

impl FromStr for Nanos {
    type Err = ParseNanosError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = || ParseNanosError::Malformed(text.to_owned());
        let split = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '_').unwrap_or(text.len());
        let (number, unit) = (text[..split].trim(), text[split..].trim());
        if number.is_empty() {
            return Err(malformed());
        }
        let unit: u64 = match unit {
            "" => return Err(ParseNanosError::NoUnit(number.to_owned())),
            "ns" => 1,
            "us" | "µs" | "μs" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" | "min" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(malformed()),
        };
        match scale_decimal(number, unit) {
            Scaled::Exact(ns) => Ok(Self(ns)),
            Scaled::TooLarge => Err(ParseNanosError::TooLong(text.to_owned())),
            Scaled::Malformed | Scaled::Fraction => Err(malformed()),
        }
    }
}

/// What became of a decimal number times a whole unit.
pub(crate) enum Scaled {
    Exact(u64),
    Fraction,
    TooLarge,
    Malformed,
}

/// `number × unit` in whole arithmetic: no float may decide what a flag meant.
pub(crate) fn scale_decimal(number: &str, unit: u64) -> Scaled {
    let number = number.replace('_', "");
    let (whole, fraction) = number.split_once('.').unwrap_or((&number, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) || (whole.is_empty() && fraction.is_empty()) {
        return Scaled::Malformed;
    }
    if whole.len() > 20 || fraction.len() > 15 {
        return Scaled::TooLarge;
    }
    let value = |text: &str| text.bytes().fold(0_u128, |n, b| n * 10 + u128::from(b - b'0'));
    let denominator = 10_u128.pow(u32::try_from(fraction.len()).expect("at most fifteen digits"));
    let scaled = (value(whole) * denominator + value(fraction)).saturating_mul(u128::from(unit));
    if scaled % denominator != 0 {
        return Scaled::Fraction;
    }
    u64::try_from(scaled / denominator).map_or(Scaled::TooLarge, Scaled::Exact)
}

/// Names a clock: readings of two different ones cannot be subtracted.
pub trait Clock: Copy + fmt::Debug + 'static {}

/// The pinger's clock.
#[derive(Clone, Copy, Debug)]
pub enum PingerClock {}

/// The reflector's clock.
#[derive(Clone, Copy, Debug)]
pub enum ReflectorClock {}

impl Clock for PingerClock {}
impl Clock for ReflectorClock {}

/// A reading of clock `C`: nanoseconds since that clock's own, arbitrary origin.
///
/// Two readings can be subtracted only if they come from the same clock:
///
/// ```compile_fail
/// # use tickpong_units::{Instant, PingerClock, ReflectorClock};
/// fn one_way(sent: Instant<PingerClock>, arrived: Instant<ReflectorClock>) {
///     let _ = arrived.since(sent); // mismatched types
/// }
/// ```
#[repr(transparent)]
pub struct Instant<C> {
    ns: u64,
    clock: PhantomData<C>,
}

impl<C> Instant<C> {
    /// What a clock showed. Only clocks, and decoders of what clocks showed, make instants.
    pub const fn from_clock(ns: u64) -> Self {
        Self { ns, clock: PhantomData }
    }

    /// Nanoseconds since the clock's origin: for a wire or a file.
    pub const fn to_wire(self) -> u64 {
        self.ns
    }

    /// The time since `earlier`.
    ///
    /// # Panics
    ///
    /// When `earlier` is later: the clock ran backwards.
    #[inline]
    pub const fn since(self, earlier: Self) -> Nanos {
        assert!(self.ns >= earlier.ns, "the clock ran backwards");
        Nanos(self.ns - earlier.ns)
    }

    /// The time since `earlier`, zero where `earlier` is later.
    #[inline]
    pub const fn saturating_since(self, earlier: Self) -> Nanos {
        Nanos(self.ns.saturating_sub(earlier.ns))
    }
}

impl<C> Add<Nanos> for Instant<C> {
    type Output = Self;

    /// The last instant the clock can show, where the sum lies beyond.
    #[inline]
    fn add(self, span: Nanos) -> Self {
        Self::from_clock(self.ns.saturating_add(span.0))
    }
}

// By hand: derives would ask the same of `C`, which is only a name.
impl<C> Clone for Instant<C> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<C> Copy for Instant<C> {}
impl<C> fmt::Debug for Instant<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instant({} ns)", self.ns)
    }
}
impl<C> Eq for Instant<C> {}
impl<C> PartialEq for Instant<C> {
    fn eq(&self, other: &Self) -> bool {
        self.ns == other.ns
    }
}
impl<C> Ord for Instant<C> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.ns.cmp(&other.ns)
    }
}
impl<C> PartialOrd for Instant<C> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly_and_only_with_a_unit() {
        assert_eq!("1.5ms".parse(), Ok(Nanos::from_micros(1_500)));
        assert_eq!("0.000001s".parse(), Ok(Nanos::from_micros(1)));
        assert_eq!("1_000 ns".parse(), Ok(Nanos::from_micros(1)));
        assert_eq!("2m".parse(), Ok(Nanos::from_secs(120)));
        assert_eq!("10".parse::<Nanos>(), Err(ParseNanosError::NoUnit("10".into())));
        for wrong in ["", "s", "-1s", "1.5ns", "1e3s", "1..5s", "10 parsecs", ".s", "٣s"] {
            assert_eq!(wrong.parse::<Nanos>(), Err(ParseNanosError::Malformed(wrong.into())), "{wrong}");
        }
        for long in ["99999999999h", "999999999999999999999999s"] {
            assert_eq!(long.parse::<Nanos>(), Err(ParseNanosError::TooLong(long.into())));
        }
    }

    #[test]
    fn times_print_in_the_unit_that_fits() {
        let printed = |ns| Nanos::new(ns).to_string();
        assert_eq!(printed(0), "0 ns");
        assert_eq!(printed(999), "999 ns");
        assert_eq!(printed(5_930), "5.93 µs");
        assert_eq!(printed(1_000_000), "1 ms");
        assert_eq!(printed(61_000_500_000), "61 s");
    }

    #[test]
    #[should_panic(expected = "ran backwards")]
    fn a_clock_that_runs_backwards_is_a_bug() {
        let _ = Instant::<PingerClock>::from_clock(1).since(Instant::from_clock(2));
    }
}
