//! Two clocks side by side: how ticks become nanoseconds, and how far one clock has left another.

use nix::time::ClockId;
use tickpong_units::Nanos;

use super::{ClockCheck, CounterRefused, counter, kernel_ns, sleep};

/// How ticks become nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    base_ticks: u64,
    base_ns: u64,
    /// Times 2^48: rounding it moves no clock by a millionth of a ppm, and a counter as slow as 16 kHz fits.
    ns_per_tick: u64,
}

impl Scale {
    /// Sleeps `span` between readings of counter and kernel; also says how the two stood at the end.
    pub(super) fn calibrate(span: Nanos) -> Result<(Self, Pair), CounterRefused> {
        let half = Nanos::new(span.max(SHORTEST_CALIBRATION).get() / 2);
        let first = Pair::read(counter::read);
        sleep(half);
        let middle = Pair::read(counter::read);
        sleep(half);
        let last = Pair::read(counter::read);
        Self::from_pairs([first, middle, last])
    }

    fn from_pairs([first, middle, last]: [Pair; 3]) -> Result<(Self, Pair), CounterRefused> {
        let [early, late] = [(first, middle), (middle, last)].map(|(from, to)| Stretch::between(from, to));
        if early.ticks == 0 || late.ticks == 0 {
            return Err(CounterRefused::Stopped);
        }
        let change = (late.ns_per_tick() / early.ns_per_tick() - 1.0).abs();
        let beyond_ppm = (change - early.doubt - late.doubt) * 1e6;
        if beyond_ppm > UNSTEADY_PPM {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
            return Err(CounterRefused::Unsteady { ppm: beyond_ppm.round() as u64 });
        }
        let whole = Stretch::between(first, last);
        let ns_per_tick = (u128::from(whole.ns) << FRACTION_BITS) / u128::from(whole.ticks);
        let ns_per_tick = u64::try_from(ns_per_tick).map_err(|_| CounterRefused::Stopped)?;
        let scale = Self { base_ticks: first.read, base_ns: first.raw_ns, ns_per_tick };
        let end = Pair { read: scale.to_ns(last.read), raw_ns: last.raw_ns, width: scale.span_ns(last.width) };
        Ok((scale, end))
    }

    #[inline]
    pub(super) fn to_ns(self, ticks: u64) -> u64 {
        self.base_ns.wrapping_add(self.span_ns(ticks.wrapping_sub(self.base_ticks)))
    }

    pub(super) fn frequency_hz(self) -> u64 {
        let hz = (1_000_000_000_u128 << FRACTION_BITS) / u128::from(self.ns_per_tick.max(1));
        u64::try_from(hz).unwrap_or(u64::MAX)
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "below 2^64 ns for 584 years")]
    fn span_ns(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_tick)) >> FRACTION_BITS) as u64
    }
}

/// A clock and the kernel's raw one, read as nearly at once as can be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pair {
    /// The clock under test, in its own unit, halfway between the reads on both sides of the raw one.
    read: u64,
    raw_ns: u64,
    /// The distance of those two reads, in the same unit.
    width: u64,
}

impl Pair {
    /// The tightest of several tries: an interrupt, or a hypervisor that takes the processor away, widens one and not all.
    pub(super) fn read(clock: impl Fn() -> u64) -> Self {
        let once = |_| {
            let before = clock();
            let raw_ns = kernel_ns(ClockId::CLOCK_MONOTONIC_RAW);
            let width = clock().wrapping_sub(before);
            Self { read: before.wrapping_add(width / 2), raw_ns, width }
        };
        (0..PAIR_TRIES).map(once).min_by_key(|pair| pair.width).expect("at least one try")
    }

    /// How far the clock left the kernel's raw one from this pair to `later`; both in nanoseconds.
    pub(super) fn compare(self, later: Self, limit_ppm: f64) -> ClockCheck {
        let elapsed_ns = later.raw_ns.saturating_sub(self.raw_ns);
        let ppm = |ns: f64| ns / float(elapsed_ns.max(1)) * 1e6;
        // Signed, so that a clock that ran backwards shows as such; and a difference before it is a float, which keeps it whole.
        let beyond = later.read.wrapping_sub(self.read).wrapping_sub(elapsed_ns).cast_signed();
        ClockCheck {
            elapsed: Nanos::new(elapsed_ns),
            drift_ppm: ppm(float(beyond.unsigned_abs())).copysign(if beyond < 0 { -1.0 } else { 1.0 }),
            uncertainty_ppm: ppm(float(self.width + later.width) / 2.0),
            limit_ppm,
        }
    }
}

/// From one pair to another.
struct Stretch {
    ticks: u64,
    ns: u64,
    /// The share by which either may be off: half a width at each end.
    doubt: f64,
}

impl Stretch {
    fn between(from: Pair, to: Pair) -> Self {
        let (ticks, ns) = (to.read.wrapping_sub(from.read), to.raw_ns.wrapping_sub(from.raw_ns));
        Self { ticks, ns, doubt: float(from.width + to.width) / 2.0 / float(ticks) }
    }

    fn ns_per_tick(&self) -> f64 {
        float(self.ns) / float(self.ticks)
    }
}

#[expect(clippy::cast_precision_loss, reason = "exact below 2^53, or only compared")]
pub(super) fn float(n: u64) -> f64 {
    n as f64
}

const SHORTEST_CALIBRATION: Nanos = Nanos::from_millis(1);
/// A counter whose rate changes by more within its calibration cannot be held to `TRUSTED_DRIFT_PPM` after it.
const UNSTEADY_PPM: f64 = 100.0;
const FRACTION_BITS: u32 = 48;
const PAIR_TRIES: u32 = 32;

#[cfg(test)]
mod tests {
    use super::super::{TRUSTED_DRIFT_PPM, TRUSTED_SLEW_PPM};
    use super::*;

    fn pair(read: u64, raw_ns: u64) -> Pair {
        Pair { read, raw_ns, width: 0 }
    }

    #[test]
    fn ticks_become_nanoseconds_from_the_first_reading_on() {
        // 25 MHz, 40 ns a tick; then for a year.
        let (scale, last) = Scale::from_pairs([pair(1_000, 7), pair(2_000, 40_007), pair(3_000, 80_007)]).unwrap();
        assert_eq!(scale.frequency_hz(), 25_000_000);
        assert_eq!((last.read, last.raw_ns), (80_007, 80_007));
        let year = 365 * 86_400 * 25_000_000;
        assert_eq!(scale.to_ns(1_000 + year), 7 + year * 40);
    }

    #[test]
    fn a_counter_that_changes_its_rate_or_stands_still_is_refused() {
        let unsteady = Scale::from_pairs([pair(0, 0), pair(1_000_000, 1_000_000), pair(2_000_000, 2_001_000)]);
        assert_eq!(unsteady.unwrap_err(), CounterRefused::Unsteady { ppm: 1_000 });
        // The same readings, no longer a contradiction if each may be off by a microsecond.
        let wide = |read, raw_ns| Pair { read, raw_ns, width: 1_000 };
        assert!(Scale::from_pairs([wide(0, 0), wide(1_000_000, 1_000_000), wide(2_000_000, 2_001_000)]).is_ok());
        let stopped = Scale::from_pairs([pair(5, 0), pair(5, 1_000_000), pair(5, 2_000_000)]);
        assert_eq!(stopped.unwrap_err(), CounterRefused::Stopped);
    }

    #[test]
    fn drift_is_what_the_clock_counted_beyond_the_kernels() {
        let fast = pair(0, 0).compare(pair(1_000_100_000, 1_000_000_000), TRUSTED_DRIFT_PPM);
        assert!((fast.drift_ppm - 100.0).abs() < 1e-6 && !fast.is_trustworthy());
        let backwards = pair(1_000, 0).compare(pair(0, 1_000_000), TRUSTED_SLEW_PPM);
        assert!(backwards.drift_ppm < -1_000_000.0 && !backwards.is_trustworthy());
        let steered = pair(0, 0).compare(pair(999_500_000, 1_000_000_000), TRUSTED_SLEW_PPM);
        assert!(steered.is_trustworthy());
        let brief = Pair { read: 0, raw_ns: 0, width: 100 }.compare(pair(1_050, 1_000), TRUSTED_DRIFT_PPM);
        assert!(brief.is_trustworthy(), "50 ns off, where the reading may be off by as much");
    }
}
