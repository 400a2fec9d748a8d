//! Whether a run sustained its rate, and what gave way where it did not. Pure.
//!
//! A rate above capacity need not lose anything: queues are deep, and a run is short. What betrays it is that the wait grows. A host that
//! is offered `r` and manages `c` falls behind by `1 − c / r` seconds every second, so the slope of the wait *is* the share that is missing,
//! and one allowance is right for both.

use tickpong_record::{Figure, GaveWay, IntervalTable, Run};
use tickpong_stats::trend::trend;
use tickpong_units::Nanos;

use crate::search::Limits;

/// How rare a rise must be, were there no trend, to count as one.
const RISE_P: f64 = 0.05;
/// Share of its turns with work from which on a reflector counts as busy all the time.
const BUSY: f64 = 0.9;

/// Why a rate was not sustained.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// What could not keep up.
    pub gave_way: GaveWay,
    /// How that showed.
    pub because: String,
}

/// Judges a run by its record and its intervals: `None` when it sustained its rate.
///
/// The first cause in the order of the path counts: clock, generator, reflector, queues, network.
pub fn failure(run: &Run, intervals: &IntervalTable, limits: Limits) -> Option<Failure> {
    clock(run)
        .or_else(|| generator(run, intervals, limits))
        .or_else(|| backlog(run, intervals, limits))
        .or_else(|| losses(run, limits))
        .or_else(|| invalid(run))
}

#[expect(clippy::unnecessary_wraps, reason = "the end of every check that fails")]
fn fails(gave_way: GaveWay, because: String) -> Option<Failure> {
    Some(Failure { gave_way, because })
}

fn clock(run: &Run) -> Option<Failure> {
    let why = run.invalid_because.iter().find(|why| why.starts_with("clock: "))?;
    fails(GaveWay::Clock, why.clone())
}

fn generator(run: &Run, intervals: &IntervalTable, limits: Limits) -> Option<Failure> {
    if let (Some(offered), Some(achieved)) = (run.plan.offered_rate_hz, run.achieved_rate_hz) {
        #[expect(clippy::cast_precision_loss, reason = "rates are far below 2^53")]
        let short = 1.0 - achieved / offered.get() as f64;
        if short > limits.shortfall {
            return fails(GaveWay::Generator, format!("sent {} less than offered", percent(short)));
        }
    }
    let slope = rise(run, &intervals.column("send_lateness_p50_ns"), limits)?;
    fails(GaveWay::Generator, format!("sent later and later, by {} a second", Nanos::new(slope)))
}

fn backlog(run: &Run, intervals: &IntervalTable, limits: Limits) -> Option<Failure> {
    let slope = rise(run, &intervals.column("rtt_p50_ns"), limits)?;
    let busy = run.cpu.reflector.as_ref().and_then(|cpu| cpu.busy_share);
    let (gave_way, who) = match busy {
        Some(busy) if busy >= BUSY => (GaveWay::Reflector, "the reflector had no idle turn"),
        _ => (GaveWay::Network, "neither end was short of time"),
    };
    fails(gave_way, format!("answers came later and later, by {} a second: {who}", Nanos::new(slope)))
}

fn losses(run: &Run, limits: Limits) -> Option<Failure> {
    let missing = missing(run);
    #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
    let share = missing as f64 / run.fates.scheduled.max(1) as f64;
    if share <= limits.loss {
        return None;
    }
    let lost = &run.losses;
    let queues = [(lost.reflector_socket, "reflector"), (lost.pinger_socket, "pinger")];
    if let Some((dropped, whose)) = queues.iter().find(|(dropped, _)| *dropped > 0) {
        return fails(GaveWay::Queue, format!("the {whose}'s socket buffer was full and dropped {dropped}"));
    }
    if lost.reflector_unanswered > 0 {
        let because = format!("the reflector's kernel refused {} answers", lost.reflector_unanswered);
        return fails(GaveWay::Reflector, because);
    }
    let fates = &run.fates;
    fails(GaveWay::Network, format!("{} lost and {} late, where neither host can see", fates.lost, fates.late))
}

/// An invalid run proves nothing, whatever its figures. A generator behind by what is allowed is judged already.
fn invalid(run: &Run) -> Option<Failure> {
    let why = run.invalid_because.iter().find(|why| !why.starts_with("generator-behind: "))?;
    fails(GaveWay::Generator, why.clone())
}

/// Messages of a run that were sent and came back too late or never.
pub fn missing(run: &Run) -> u64 {
    run.fates.lost + run.fates.late
}

/// How fast the medians of the intervals after the warm-up rise, in nanoseconds a second, if that is certain and more than allowed.
fn rise(run: &Run, medians: &[Figure], limits: Limits) -> Option<u64> {
    let warm_up = usize::try_from(run.plan.warm_up_intervals()).unwrap_or(usize::MAX);
    #[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run are far below 2^53")]
    let values: Vec<f64> =
        medians.iter().skip(warm_up).filter_map(|median| median.finite()).map(|ns| ns as f64).collect();
    let trend = trend(&values).ok()?;
    let a_second = trend.slope / run.plan.interval_ns.as_secs_f64();
    if trend.p_rises >= RISE_P || a_second <= limits.shortfall * 1e9 {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive by the check")]
    Some(a_second.round() as u64)
}

fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

#[cfg(test)]
mod tests {
    use tickpong_record::{Cpu, Ends, Losses};
    use tickpong_units::Rate;

    use super::*;
    use crate::fixture;

    /// A run whose medians, in microseconds, go like this.
    fn judged(change: impl FnOnce(&mut Run), lateness_us: &[u64], rtt_us: &[u64]) -> Option<Failure> {
        let mut run = fixture::run(100_000);
        change(&mut run);
        failure(&run, &fixture::intervals(lateness_us, rtt_us), Limits::default())
    }

    const FLAT: &[u64] = &[10, 9, 10, 11, 10, 9, 10, 10, 11, 10];
    /// Half a per cent of 100 ms intervals: 500 µs an interval.
    const RISING: &[u64] = &[10, 510, 1_010, 1_510, 2_010, 2_510, 3_010, 3_510, 4_010, 4_510];
    /// Stolen for 30 ms, and recovered.
    const STOLEN: &[u64] = &[10, 9, 10, 30_000, 20_000, 9, 10, 10, 11, 10];

    #[test]
    fn what_stays_flat_is_sustained_and_what_was_stolen_once_too() {
        assert_eq!(judged(|_| {}, FLAT, FLAT), None);
        assert_eq!(judged(|_| {}, STOLEN, STOLEN), None);
    }

    #[test]
    fn a_generator_that_falls_behind_gives_way_first() {
        let failure = judged(|_| {}, RISING, RISING).unwrap();
        assert_eq!(failure.gave_way, GaveWay::Generator);
        assert_eq!(failure.because, "sent later and later, by 5 ms a second");
        let short = judged(|run| run.achieved_rate_hz = Some(99_800.0), FLAT, FLAT).unwrap();
        assert_eq!((short.gave_way, short.because.as_str()), (GaveWay::Generator, "sent 0.20 % less than offered"));
        assert_eq!(judged(|run| run.achieved_rate_hz = Some(99_910.0), FLAT, FLAT), None);
    }

    #[test]
    fn a_backlog_behind_the_generator_is_the_reflectors_when_it_is_busy() {
        let busy = |share| {
            move |run: &mut Run| {
                run.cpu = Ends { pinger: None, reflector: Some(Cpu { busy_share: Some(share), ..Cpu::default() }) };
            }
        };
        assert_eq!(judged(busy(0.99), FLAT, RISING).unwrap().gave_way, GaveWay::Reflector);
        let network = judged(busy(0.3), FLAT, RISING).unwrap();
        assert_eq!(network.gave_way, GaveWay::Network);
        assert_eq!(network.because, "answers came later and later, by 5 ms a second: neither end was short of time");
    }

    #[test]
    fn losses_name_the_queue_that_dropped_them() {
        let lose = |losses: Losses| {
            move |run: &mut Run| {
                run.fates.lost = 3;
                run.losses = losses;
            }
        };
        let of = |losses| judged(lose(losses), FLAT, FLAT).unwrap();
        let queue = of(Losses { reflector_socket: 3, ..Losses::default() });
        assert_eq!(queue.gave_way, GaveWay::Queue);
        assert_eq!(queue.because, "the reflector's socket buffer was full and dropped 3");
        assert_eq!(of(Losses { pinger_socket: 3, ..Losses::default() }).gave_way, GaveWay::Queue);
        assert_eq!(of(Losses { unexplained: 3, ..Losses::default() }).gave_way, GaveWay::Network);
        assert_eq!(of(Losses { reflector_unanswered: 3, ..Losses::default() }).gave_way, GaveWay::Reflector);
    }

    #[test]
    fn allowances_allow() {
        let mut run = fixture::run(100_000);
        run.fates.lost = run.fates.scheduled / 1_000;
        run.achieved_rate_hz = Some(99_000.0);
        let limits = Limits { loss: 0.001, shortfall: 0.02 };
        assert_eq!(failure(&run, &fixture::intervals(RISING, FLAT), limits), None);
        assert_eq!(run.plan.offered_rate_hz, Rate::new(100_000));
    }

    #[test]
    fn an_invalid_run_proves_nothing() {
        let invalid = |why: &'static str| {
            move |run: &mut Run| {
                run.valid = false;
                run.invalid_because = vec![why.to_owned()];
            }
        };
        assert_eq!(judged(invalid("clock: ran away"), RISING, FLAT).unwrap().gave_way, GaveWay::Clock);
        assert_eq!(judged(invalid("overflow: 3 intervals"), FLAT, FLAT).unwrap().because, "overflow: 3 intervals");
    }
}
