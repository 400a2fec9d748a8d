//! Whether the processor's counter may be the clock: decided from text alone.

use thiserror::Error;

use super::{ClockChoice, ClockKind};

/// Why the processor's counter is not the clock, or is only because it was asked for.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum CounterRefused {
    /// The rate follows the processor's frequency, or stops in its sleep.
    #[error("the processor's counter is not invariant: it lacks {missing}")]
    NotInvariant {
        /// The flag of `/proc/cpuinfo` that is not there.
        missing: &'static str,
    },
    /// The kernel knows the hardware better, and keeps time by something else.
    #[error("the kernel keeps time by `{clocksource}`, not by the processor's counter")]
    KernelDoesNotTrust {
        /// What `current_clocksource` says.
        clocksource: String,
    },
    /// Neither x86-64 nor aarch64.
    #[error("no processor counter is known on this architecture")]
    Architecture,
    /// The two halves of the calibration found different rates.
    #[error("the processor's counter changed its rate by {ppm} ppm while it was calibrated")]
    Unsteady {
        /// The difference, beyond what the readings themselves may be off, in millionths.
        ppm: u64,
    },
    /// It showed the same number twice.
    #[error("the processor's counter stands still")]
    Stopped,
    /// The vDSO's clock was asked for.
    #[error("the processor's counter was not wanted")]
    Disabled,
}

/// A counter that may be calibrated.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Candidate {
    pub(super) kind: ClockKind,
    /// What spoke against it, where the choice went over that.
    pub(super) overruled: Option<CounterRefused>,
}

/// Decides by what the host says of itself.
///
/// A counter asked for by name is taken over the word of flags and kernel; the calibration still may refuse it, and the check
/// after the run still measures it.
pub(super) fn candidate(
    choice: ClockChoice,
    architecture: Option<ClockKind>,
    cpuinfo: &str,
    clocksource: &str,
) -> Result<Candidate, CounterRefused> {
    if choice == ClockChoice::Vdso {
        return Err(CounterRefused::Disabled);
    }
    let kind = architecture.ok_or(CounterRefused::Architecture)?;
    match (choice, objection(kind, cpuinfo, clocksource.trim())) {
        (ClockChoice::Auto, Some(reason)) => Err(reason),
        (_, overruled) => Ok(Candidate { kind, overruled }),
    }
}

fn objection(kind: ClockKind, cpuinfo: &str, clocksource: &str) -> Option<CounterRefused> {
    let (flags, trusted): (&[_], _) = match kind {
        ClockKind::Tsc => (&["constant_tsc", "nonstop_tsc"], "tsc"),
        // The architecture itself demands a constant rate of the generic counter, so no flag says so.
        ClockKind::ArmCounter => (&[], "arch_sys_counter"),
        ClockKind::Monotonic => return None,
    };
    if let Some(&missing) = flags.iter().find(|flag| !every_processor_has(cpuinfo, flag)) {
        return Some(CounterRefused::NotInvariant { missing });
    }
    (clocksource != trusted).then(|| CounterRefused::KernelDoesNotTrust { clocksource: clocksource.to_owned() })
}

/// Whether each `flags` line holds `flag`; no line at all is a no.
fn every_processor_has(cpuinfo: &str, flag: &str) -> bool {
    let flags = || cpuinfo.lines().filter(|line| line.starts_with("flags"));
    flags().next().is_some() && flags().all(|line| line.split_whitespace().any(|word| word == flag))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "processor\t: 0\nflags\t\t: fpu tsc constant_tsc nonstop_tsc\n\nprocessor\t: 1\nflags\t\t: fpu tsc nonstop_tsc constant_tsc\n";
    const STOPS: &str = "flags\t\t: fpu tsc constant_tsc nonstop_tsc_s3\n";
    const MIXED: &str = "flags\t\t: constant_tsc nonstop_tsc\nflags\t\t: nonstop_tsc\n";

    fn refused(architecture: Option<ClockKind>, cpuinfo: &str, clocksource: &str) -> Option<CounterRefused> {
        candidate(ClockChoice::Auto, architecture, cpuinfo, clocksource).err()
    }

    #[test]
    fn a_counter_must_be_invariant_and_trusted_by_the_kernel() {
        let tsc = Some(ClockKind::Tsc);
        let lacks = |missing| Some(CounterRefused::NotInvariant { missing });
        let keeps =
            |clocksource: &str| Some(CounterRefused::KernelDoesNotTrust { clocksource: clocksource.to_owned() });
        for (architecture, cpuinfo, clocksource, want) in [
            (tsc, GOOD, "tsc\n", None),
            (tsc, STOPS, "tsc\n", lacks("nonstop_tsc")),
            (tsc, MIXED, "tsc\n", lacks("constant_tsc")),
            (tsc, "", "tsc\n", lacks("constant_tsc")),
            (tsc, GOOD, "kvm-clock\n", keeps("kvm-clock")),
            (tsc, GOOD, "", keeps("")),
            (Some(ClockKind::ArmCounter), "Features\t: fp asimd\n", "arch_sys_counter\n", None),
            (Some(ClockKind::ArmCounter), "", "timer\n", keeps("timer")),
            (None, GOOD, "tsc\n", Some(CounterRefused::Architecture)),
        ] {
            assert_eq!(refused(architecture, cpuinfo, clocksource), want, "{architecture:?} {cpuinfo} {clocksource}");
        }
    }

    #[test]
    fn a_choice_goes_over_flags_and_kernel_and_says_so() {
        let forced = candidate(ClockChoice::Counter, Some(ClockKind::Tsc), GOOD, "hpet").unwrap();
        let overruled = forced.overruled.unwrap();
        assert_eq!(overruled.to_string(), "the kernel keeps time by `hpet`, not by the processor's counter");
        let none = candidate(ClockChoice::Counter, None, GOOD, "tsc");
        assert_eq!(none, Err(CounterRefused::Architecture));
        let vdso = candidate(ClockChoice::Vdso, Some(ClockKind::Tsc), GOOD, "tsc");
        assert_eq!(vdso, Err(CounterRefused::Disabled));
    }
}
