//! When messages are due: fixed before the run, never moved by what happens in it.

use std::sync::Arc;

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use tickpong_record::{Plan, ScheduleKind, Trace, TraceStep};
use tickpong_units::{Nanos, PayloadLen, Rate};

const NS_PER_S: u64 = 1_000_000_000;
const PS_PER_NS: u64 = 1_000;
const PS_PER_S: f64 = 1e12;

/// A message's place in the schedule.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Due {
    /// When, from the start of the run.
    pub at: Nanos,
    /// How large.
    pub len: PayloadLen,
}

/// Yields when each message is due, in order, without end.
#[derive(Clone, Debug)]
pub struct Schedule {
    kind: Kind,
    len: PayloadLen,
}

#[derive(Clone, Debug)]
enum Kind {
    Fixed(Even),
    Burst { even: Even, size: u32, left: u32, at: Nanos },
    Poisson { random: Xoshiro256PlusPlus, mean_ps: f64, at: Nanos, rest_ps: u64 },
    Trace { steps: Arc<[TraceStep]>, next: usize, at: Nanos },
}

impl Schedule {
    /// The schedule of a plan; `trace` where the plan plays one.
    ///
    /// # Panics
    ///
    /// When the plan plays a trace and none is given, or it has neither a rate nor a trace.
    pub fn new(plan: &Plan, trace: Option<&Trace>) -> Self {
        let rate = || plan.offered_rate_hz.expect("an open loop has a rate");
        let kind = match plan.schedule {
            ScheduleKind::Fixed => Kind::Fixed(Even::new(rate(), 1)),
            ScheduleKind::Burst(size) => Kind::Burst { even: Even::new(rate(), size), size, left: 0, at: Nanos::ZERO },
            ScheduleKind::Poisson => Kind::Poisson {
                random: Xoshiro256PlusPlus::seed_from_u64(plan.seed.get()),
                #[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
                mean_ps: PS_PER_S / rate().get() as f64,
                at: Nanos::ZERO,
                rest_ps: 0,
            },
            ScheduleKind::Trace(_) => {
                let steps = Arc::clone(trace.expect("a plan that plays a trace comes with it").steps());
                Kind::Trace { steps, next: 0, at: Nanos::ZERO }
            }
        };
        Self { kind, len: plan.payload_bytes }
    }

    /// The next message.
    #[inline]
    pub fn next_due(&mut self) -> Due {
        match &mut self.kind {
            Kind::Fixed(even) => Due { at: even.next(), len: self.len },
            Kind::Burst { even, size, left, at } => {
                if *left == 0 {
                    (*at, *left) = (even.next(), *size);
                }
                *left -= 1;
                Due { at: *at, len: self.len }
            }
            Kind::Poisson { random, mean_ps, at, rest_ps } => {
                let ps = *rest_ps + exponential(random, *mean_ps);
                *at = at.saturating_add(Nanos::new(ps / PS_PER_NS));
                *rest_ps = ps % PS_PER_NS;
                Due { at: *at, len: self.len }
            }
            Kind::Trace { steps, next, at } => {
                let step = steps[*next];
                *next = if *next + 1 == steps.len() { 0 } else { *next + 1 };
                *at = at.saturating_add(step.gap);
                Due { at: *at, len: step.payload }
            }
        }
    }

    /// Passes over all messages due before `end`: how many they were, and the one behind them. Where the plan is even, that takes a
    /// division, however many they were.
    pub fn pass_over(&mut self, end: Nanos) -> (u64, Due) {
        let mut passed = match &mut self.kind {
            Kind::Fixed(even) => even.pass_over(end),
            Kind::Burst { left, at, .. } if *left > 0 && *at >= end => 0,
            Kind::Burst { even, size, left, .. } => {
                u64::from(std::mem::take(left)) + even.pass_over(end).saturating_mul(u64::from(*size))
            }
            Kind::Poisson { .. } | Kind::Trace { .. } => 0,
        };
        loop {
            let due = self.next_due();
            if due.at >= end {
                return (passed, due);
            }
            passed += 1;
        }
    }
}

/// `⌊k × burst × 10⁹ / rate⌋` for k = 0, 1, 2 …, without a division: whole nanoseconds and the remainder are carried along exactly.
#[derive(Clone, Debug)]
struct Even {
    at: u64,
    remainder: u64,
    step: u64,
    step_remainder: u64,
    rate: u64,
}

impl Even {
    fn new(rate: Rate, burst: u32) -> Self {
        let (period, rate) = (NS_PER_S * u64::from(burst), rate.get());
        Self { at: 0, remainder: 0, step: period / rate, step_remainder: period % rate, rate }
    }

    #[inline]
    fn next(&mut self) -> Nanos {
        let due = Nanos::new(self.at);
        self.at = self.at.saturating_add(self.step);
        self.remainder += self.step_remainder;
        if self.remainder >= self.rate {
            self.remainder -= self.rate;
            self.at = self.at.saturating_add(1);
        }
        due
    }

    fn pass_over(&mut self, end: Nanos) -> u64 {
        // In units of a nanosecond over the rate, everything is whole.
        let whole = |ns: u64, remainder| u128::from(ns) * u128::from(self.rate) + u128::from(remainder);
        let (now, step) = (whole(self.at, self.remainder), whole(self.step, self.step_remainder));
        let passed = whole(end.get(), 0).saturating_sub(now).div_ceil(step);
        let next = now + passed * step;
        self.at = u64::try_from(next / u128::from(self.rate)).unwrap_or(u64::MAX);
        self.remainder = u64::try_from(next % u128::from(self.rate)).unwrap_or_default();
        u64::try_from(passed).unwrap_or(u64::MAX)
    }
}

/// An exponential gap in picoseconds, by inversion. `libm` and not the platform's logarithm: the same seed is the same schedule everywhere.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 37 seconds, and not negative")]
fn exponential(random: &mut Xoshiro256PlusPlus, mean_ps: f64) -> u64 {
    // 53 random bits and a half: uniform in the open interval (0, 1).
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let uniform = ((random.next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
    (-libm::log(uniform) * mean_ps) as u64
}

/// Message `k`'s place in a fixed schedule, by multiplication: what [`Even`] must agree with.
#[cfg(test)]
fn by_multiplication(rate: Rate, k: u64) -> Nanos {
    rate.due(tickpong_units::Seq::new(k))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tickpong_record::{Api, Pacing};
    use tickpong_units::Seed;

    use super::*;

    fn plan(hz: u64, schedule: ScheduleKind) -> Plan {
        let (second, none) = (Nanos::from_secs(1), None);
        Plan {
            offered_rate_hz: Rate::new(hz),
            payload_bytes: PayloadLen::STANDARD,
            duration_ns: second,
            warm_up_ns: second,
            interval_ns: second,
            deadline_ns: second,
            pacing: Pacing::Open,
            schedule,
            seed: Seed::new(7),
            api_pinger: Api::UdpSpin,
            api_reflector: Api::UdpSpin,
            tx_cpu: none,
            rx_cpu: none,
        }
    }

    fn first(n: usize, schedule: &mut Schedule) -> Vec<u64> {
        std::iter::repeat_with(|| schedule.next_due().at.get()).take(n).collect()
    }

    proptest! {
        #[test]
        fn a_fixed_schedule_is_the_multiplication(hz in 1_u64..20_000_000, n in 1_usize..2_000) {
            let rate = Rate::new(hz).unwrap();
            let dues = first(n, &mut Schedule::new(&plan(hz, ScheduleKind::Fixed), None));
            for (k, due) in (0..).zip(dues) {
                prop_assert_eq!(due, by_multiplication(rate, k).get());
            }
        }
    }

    proptest! {
        #[test]
        fn passing_over_is_counting(
            hz in 1_u64..2_000_000,
            burst in prop::option::of(1_u32..50),
            taken in 0_usize..200,
            ends in prop::collection::vec(0_u64..2_000_000, 1..10),
        ) {
            let kind = burst.map_or(ScheduleKind::Fixed, ScheduleKind::Burst);
            let mut schedule = Schedule::new(&plan(hz, kind), None);
            first(taken, &mut schedule);
            let (mut counted, mut end) = (schedule.clone(), 0);
            for by in ends {
                end += by;
                let (passed, next) = schedule.pass_over(Nanos::new(end));
                let mut count = 0;
                let due = loop {
                    let due = counted.next_due();
                    if due.at.get() >= end {
                        break due;
                    }
                    count += 1;
                };
                prop_assert_eq!((passed, next), (count, due));
            }
        }
    }

    #[test]
    fn truncation_does_not_accumulate() {
        // A third of a nanosecond a message would be 100 ms after 3·10⁸ messages; the schedule is exact at every whole second.
        let mut schedule = Schedule::new(&plan(3_000_000, ScheduleKind::Fixed), None);
        let after_ten_seconds = std::iter::repeat_with(|| schedule.next_due().at).nth(30_000_000);
        assert_eq!(after_ten_seconds, Some(Nanos::from_secs(10)));
    }

    #[test]
    fn a_burst_is_due_at_one_instant_and_keeps_the_mean_rate() {
        let mut schedule = Schedule::new(&plan(1_000, ScheduleKind::Burst(3)), None);
        assert_eq!(first(7, &mut schedule), [0, 0, 0, 3_000_000, 3_000_000, 3_000_000, 6_000_000]);
    }

    #[test]
    fn a_poisson_schedule_repeats_by_seed_and_keeps_the_mean_rate() {
        let mut schedule = Schedule::new(&plan(100_000, ScheduleKind::Poisson), None);
        let again = &mut schedule.clone();
        let dues = first(1_000_000, &mut schedule);
        assert_eq!(dues, first(1_000_000, again));
        // The sum of 10⁶ gaps of mean 10 µs has a standard deviation of 0.1 %: five of them bound this fixed seed generously.
        assert!(dues[999_999].abs_diff(10_000_000_000) < 50_000_000, "{}", dues[999_999]);
        let below_mean = dues.windows(2).filter(|pair| pair[1] - pair[0] < 10_000).count();
        // 1 − 1/e of the gaps are below the mean.
        assert!(below_mean.abs_diff(632_120) < 3_000, "{below_mean}");
        // Known values: the same on every platform.
        assert_eq!(dues[..3], [28_938, 46_534, 49_853]);
    }

    #[test]
    fn a_trace_is_repeated() {
        let trace = Trace::parse("10 264\n0 1000\n5 56").unwrap();
        let mut schedule = Schedule::new(&plan(1, ScheduleKind::Trace(trace.digest().into())), Some(&trace));
        let dues: Vec<_> =
            std::iter::repeat_with(|| schedule.next_due()).take(5).map(|d| (d.at.get(), d.len.get())).collect();
        assert_eq!(dues, [(10, 264), (10, 1_000), (15, 56), (25, 264), (25, 1_000)]);
    }
}
