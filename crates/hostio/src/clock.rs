//! The clock that stamps every message, and the few other reads of time that a run needs.
//!
//! Owns: the choice of a clock, its calibration, its reading, and the check after the run of whether it kept time.
//! Does not own: what the readings mean (see `units`), or which of two hosts a clock belongs to.

mod counter;
mod scale;
mod trust;

use std::fmt;
use std::hint::black_box;
use std::sync::Arc;
use std::time::SystemTime;

use nix::time::{ClockId, ClockNanosleepFlags, clock_gettime, clock_nanosleep};
use tickpong_units::{Clock, Instant, Nanos};

use self::scale::{Pair, Scale, float};
pub use self::trust::CounterRefused;

/// The most that the processor's counter may differ from the kernel's raw clock over a run, in millionths.
///
/// Both count the same crystal or two good ones (± 30 ppm), and a calibration of 20 ms leaves a few ppm. Of an RTT of 10 µs,
/// 50 ppm are half a nanosecond; of the offered rate, they are a twentieth of the 0.1 % by which a run may miss its plan.
pub const TRUSTED_DRIFT_PPM: f64 = 50.0;

/// The most that `CLOCK_MONOTONIC` may differ from the kernel's raw clock over a run, in millionths.
///
/// NTP steers that clock on purpose: by up to 500 ppm in frequency, and by another 500 ppm while adjtime(3) works off an offset.
/// Steered within that it is no worse for it; beyond, something else is wrong.
pub const TRUSTED_SLEW_PPM: f64 = 1_000.0;

/// Which clock to take.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum ClockChoice {
    /// The processor's counter where it can be trusted, else the vDSO's clock.
    #[default]
    Auto,
    /// The processor's counter, even where its flags or the kernel speak against it.
    Counter,
    /// `CLOCK_MONOTONIC`, by the vDSO.
    Vdso,
}

/// What counts the time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClockKind {
    /// The time stamp counter of x86-64.
    Tsc,
    /// The generic counter of aarch64, `cntvct_el0`.
    ArmCounter,
    /// `CLOCK_MONOTONIC`.
    Monotonic,
}

impl ClockKind {
    /// Its name in files: `tsc`, `arm-counter` or `monotonic`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::ArmCounter => "arm-counter",
            Self::Monotonic => "monotonic",
        }
    }
}

impl fmt::Display for ClockKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What is known of a clock before the run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClockFacts {
    /// What counts.
    pub kind: ClockKind,
    /// Ticks per second as calibrated; `None` for a clock that has no ticks.
    pub frequency_hz: Option<u64>,
    /// The smallest step seen between two reads, so never below what one read takes; `None` if the clock stood still.
    pub resolution: Option<Nanos>,
    /// What one read costs, in nanoseconds, by the fastest of a few batches.
    pub read_cost_ns: f64,
    /// Why the processor's counter was not taken, or what [`ClockChoice::Counter`] went over.
    pub refused: Option<CounterRefused>,
}

/// A clock compared with the kernel's raw one, from the end of its calibration until now.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockCheck {
    /// The time between, by the kernel's raw clock.
    pub elapsed: Nanos,
    /// How much more the clock counted than the kernel's raw one, in millionths.
    pub drift_ppm: f64,
    /// How far off `drift_ppm` may be, since two clocks cannot be read at once; large only after a short time.
    pub uncertainty_ppm: f64,
    /// The bound that holds for this kind of clock: [`TRUSTED_DRIFT_PPM`] or [`TRUSTED_SLEW_PPM`].
    pub limit_ppm: f64,
}

impl ClockCheck {
    /// Whether the drift is within the bound, as far as can be told.
    pub fn is_trustworthy(&self) -> bool {
        self.drift_ppm.abs() <= self.limit_ppm + self.uncertainty_ppm
    }
}

/// A clock for stamping messages: nanoseconds since an origin near the host's start, in one read of some ten nanoseconds.
///
/// Cheap to clone; clones show the same time, on every processor.
#[derive(Clone, Debug)]
pub struct HostClock {
    source: Source,
    calibrated: Pair,
    facts: Arc<ClockFacts>,
}

impl HostClock {
    /// The clock asked for; takes `span`, at least 1 ms, if the processor's counter has to be calibrated.
    ///
    /// # Errors
    ///
    /// When [`ClockChoice::Counter`] asks for a counter that is not there or does not tick steadily.
    pub fn choose(choice: ClockChoice, span: Nanos) -> Result<Self, CounterRefused> {
        // A file that cannot be read says nothing in the counter's favour.
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let clocksource = std::fs::read_to_string(CLOCKSOURCE).unwrap_or_default();
        let counter = trust::candidate(choice, counter::KIND, &cpuinfo, &clocksource)
            .and_then(|candidate| Ok((candidate, Scale::calibrate(span)?)));
        match counter {
            Ok((candidate, (scale, calibrated))) => {
                let frequency_hz = Some(scale.frequency_hz());
                Ok(Self::new(Source::Counter(scale), calibrated, candidate.kind, frequency_hz, candidate.overruled))
            }
            Err(reason) if choice == ClockChoice::Counter => Err(reason),
            Err(reason) => Ok(Self::monotonic(reason)),
        }
    }

    fn monotonic(refused: CounterRefused) -> Self {
        Self::new(Source::Monotonic, Pair::read(monotonic_ns), ClockKind::Monotonic, None, Some(refused))
    }

    fn new(
        source: Source,
        calibrated: Pair,
        kind: ClockKind,
        frequency_hz: Option<u64>,
        refused: Option<CounterRefused>,
    ) -> Self {
        let (resolution, read_cost_ns) = measure_reads(|| source.now_ns());
        let facts = ClockFacts { kind, frequency_hz, resolution, read_cost_ns, refused };
        Self { source, calibrated, facts: Arc::new(facts) }
    }

    /// Nanoseconds since the clock's origin.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.source.now_ns()
    }

    /// The same, as a reading of the clock that this one is in the run.
    #[inline]
    pub fn now<C: Clock>(&self) -> Instant<C> {
        Instant::from_clock(self.now_ns())
    }

    /// What is known of this clock.
    pub fn facts(&self) -> &ClockFacts {
        &self.facts
    }

    /// Compares with the kernel's raw clock, which nobody steers: did this one keep time since it was made?
    pub fn check(&self) -> ClockCheck {
        let now = Pair::read(|| self.now_ns());
        let limit_ppm = match self.source {
            Source::Counter(_) => TRUSTED_DRIFT_PPM,
            Source::Monotonic => TRUSTED_SLEW_PPM,
        };
        self.calibrated.compare(now, limit_ppm)
    }
}

/// Wall time, for a manifest: never for a difference.
#[expect(clippy::disallowed_methods, reason = "the one read of wall time")]
pub fn wall_time() -> SystemTime {
    SystemTime::now()
}

/// `CLOCK_MONOTONIC` in nanoseconds: for the waits of helper threads, never beside a [`HostClock`]'s readings.
///
/// # Panics
///
/// Never: every Linux has that clock.
#[inline]
pub fn monotonic_ns() -> u64 {
    kernel_ns(ClockId::CLOCK_MONOTONIC)
}

/// Sleeps for `span` at least, through any signal.
///
/// # Panics
///
/// Never: the kernel can wait until any instant of `CLOCK_MONOTONIC`.
pub fn sleep(span: Nanos) {
    // Until an instant and not for a span, so that signals do not add up.
    let until = nix::sys::time::TimeSpec::from_duration(
        Nanos::new(monotonic_ns()).saturating_add(span).min(Nanos::new(i64::MAX.unsigned_abs())).into(),
    );
    while let Err(error) = clock_nanosleep(ClockId::CLOCK_MONOTONIC, ClockNanosleepFlags::TIMER_ABSTIME, &until) {
        assert_eq!(error, nix::errno::Errno::EINTR, "clock_nanosleep(2) on CLOCK_MONOTONIC");
    }
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Counter(Scale),
    Monotonic,
}

impl Source {
    #[inline]
    fn now_ns(&self) -> u64 {
        match self {
            Self::Counter(scale) => scale.to_ns(counter::read()),
            Self::Monotonic => monotonic_ns(),
        }
    }
}

/// The smallest step and the mean cost of a read, from the fastest batch.
fn measure_reads(now_ns: impl Fn() -> u64) -> (Option<Nanos>, f64) {
    let (mut smallest, mut fastest) = (u64::MAX, u64::MAX);
    for _ in 0..BATCHES {
        let first = now_ns();
        let mut previous = first;
        for _ in 0..BATCH {
            let now = black_box(now_ns());
            // Zero wraps to the largest: a step of nothing is none.
            smallest = smallest.min(now.wrapping_sub(previous).wrapping_sub(1));
            previous = now;
        }
        fastest = fastest.min(previous.wrapping_sub(first));
    }
    let resolution = (smallest != u64::MAX).then(|| Nanos::new(smallest + 1));
    (resolution, float(fastest) / f64::from(BATCH))
}

#[inline]
fn kernel_ns(clock: ClockId) -> u64 {
    let time = clock_gettime(clock).expect("every Linux has this clock");
    time.tv_sec().cast_unsigned() * 1_000_000_000 + time.tv_nsec().cast_unsigned()
}

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const BATCHES: u32 = 8;
const BATCH: u32 = 250;

#[cfg(test)]
mod tests;
