//! Whatever goes wrong, the fates add up, and what the engine counted is what the world did.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use tickpong_probe::Schedule;
use tickpong_record::{Pacing, Plan, ScheduleKind, Trace};
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};

use crate::play::{Played, open, play_trace};
use crate::world::{Costs, Fault, Faults, Made, START, World, ms};

#[derive(Clone, Debug)]
struct Case {
    plan: Plan,
    trace: Option<Trace>,
    faults: Faults,
    costs: Costs,
    delay: (u64, u64),
    stop_at: Option<u64>,
    seed: u64,
}

fn traces() -> impl Strategy<Value = Trace> {
    let step = (0_u64..3_000_000, 56_u64..1_000);
    prop::collection::vec(step, 1..50).prop_map(|steps| {
        let lines: Vec<_> = steps.iter().map(|(gap, len)| format!("{gap} {len}")).collect();
        Trace::parse(&(lines.join("\n") + "\n200000 100")).unwrap()
    })
}

fn plans() -> impl Strategy<Value = (Plan, Option<Trace>)> {
    let schedule = prop_oneof![
        Just(Some(ScheduleKind::Fixed)),
        Just(Some(ScheduleKind::Poisson)),
        (1_u32..100).prop_map(|size| Some(ScheduleKind::Burst(size))),
        Just(None),
    ];
    let shape = (10_u64..60, 1_u64..8, 0_u64..3, 1_u64..80);
    (200_u64..20_000, shape, schedule, traces(), prop::bool::weighted(0.2), any::<u64>()).prop_map(
        |(hz, (interval, intervals, warm_up, deadline), schedule, trace, closed, seed)| {
            let shape = Plan {
                interval_ns: Nanos::from_millis(interval),
                // Not whole: the last interval is a short one.
                duration_ns: Nanos::from_millis(interval * intervals - 3),
                warm_up_ns: Nanos::from_millis(interval * warm_up),
                deadline_ns: Nanos::from_millis(deadline),
                seed: Seed::new(seed),
                ..open(hz)
            };
            let (plan, trace) = match schedule {
                _ if closed => (Plan { pacing: Pacing::Closed, offered_rate_hz: None, ..shape }, None),
                Some(schedule) => (Plan { schedule, ..shape }, None),
                None => (of_trace(&shape, &trace), Some(trace)),
            };
            (plan.checked().unwrap(), trace)
        },
    )
}

fn of_trace(plan: &Plan, trace: &Trace) -> Plan {
    Plan {
        schedule: ScheduleKind::Trace(trace.digest().into()),
        offered_rate_hz: Some(trace.mean_rate()),
        payload_bytes: trace.largest(),
        ..plan.clone()
    }
}

fn faults() -> impl Strategy<Value = Faults> {
    let fault = prop_oneof![
        Just(Fault::CorruptFiller),
        Just(Fault::CorruptIntended),
        Just(Fault::CorruptSent),
        Just(Fault::CorruptSeq),
        Just(Fault::Foreign),
        Just(Fault::LostPing),
        Just(Fault::LostPong),
        Just(Fault::PingDoubled),
        Just(Fault::Truncated),
        (0_u64..250).prop_map(|by| Fault::Delayed(ms(by))),
        (0_u64..2_000_000).prop_map(Fault::Delayed),
        (0_u64..250).prop_map(|by| Fault::Doubled(ms(by))),
        (0_u64..2_000_000).prop_map(Fault::Doubled),
        (0_u64..250).prop_map(|by| Fault::SlowSend(ms(by))),
    ];
    let seq = || prop_oneof![0_u64..20, 0_u64..2_000];
    let of = prop::collection::vec((seq(), fault), 0..60);
    let full = prop::collection::vec((seq(), 1_u32..40), 0..10);
    let refused = prop::collection::vec(seq(), 0..10);
    let stalled = prop::option::weighted(0.3, (0_u64..200, 1_u64..400));
    (of, full, refused, stalled).prop_map(|(of, full, refused, stalled)| Faults {
        of: BTreeMap::from_iter(of),
        full: BTreeMap::from_iter(full),
        refused: BTreeSet::from_iter(refused),
        stalled: stalled.map(|(from, lasting)| (ms(from), ms(from + lasting))),
    })
}

fn cases() -> impl Strategy<Value = Case> {
    let costs = (0_u64..100, prop_oneof![0_u64..3_000, 0_u64..300_000], 0_u64..500);
    let delay = (200_u64..60_000, prop_oneof![Just(0), 0_u64..300_000]);
    let stop_at = prop::option::weighted(0.3, (0_u64..400).prop_map(ms));
    (plans(), faults(), costs, delay, stop_at, any::<u64>()).prop_map(
        |((plan, trace), faults, (now, send, receive), delay, stop_at, seed)| Case {
            plan,
            trace,
            faults,
            costs: Costs { now, send, receive },
            delay,
            stop_at,
            seed,
        },
    )
}

fn check<const MOST: usize>(case: &Case) {
    let mut world = World::<MOST>::with_faults(case.faults.clone()).seeded(case.seed);
    (world.costs, world.delay) = (case.costs, case.delay);
    world.stop_at = case.stop_at.map(|at| START + at);
    let played = play_trace(&case.plan, case.trace.as_ref(), &mut world);
    assert_as_the_world_did(&played, &world);
    assert_ended_in_time(&played, case);
    if case.plan.pacing == Pacing::Open && case.stop_at.is_none() {
        assert_as_scheduled(&played, case);
    }
}

fn assert_as_the_world_did<const MOST: usize>(played: &Played, world: &World<MOST>) {
    let received = played.received;
    assert_eq!((played.sent.sent, played.sent.refused), (world.accepted, world.refused));
    let pongs = received.answered + received.late + received.duplicate + received.stale;
    assert_eq!(pongs, world.handed(Made::Good) + world.handed(Made::Again));
    assert_eq!(received.corrupt, world.handed(Made::Corrupt));
    assert_eq!(received.malformed, world.handed(Made::Garbage));
    assert_eq!(received.foreign, world.handed(Made::Foreign));
}

fn assert_ended_in_time(played: &Played, case: &Case) {
    let slow = |fault: &Fault| if let Fault::SlowSend(by) = fault { *by } else { 0 };
    let slowest = case.faults.of.values().map(slow).max().unwrap_or_default();
    // The turn that is under way at the time, in which a send may hang, and the one that finds the time to be over.
    let turns = 2 * (case.costs.now + case.costs.send + 17 * case.costs.receive) + slowest;
    let fates = played.fates();
    // A waiting pinger looks each 20 ms whether it is to stop.
    let stopped = case.stop_at.map_or(0, |at| at + ms(20));
    // What finds no room is tried until the grace is over.
    let grace = (case.plan.duration_ns.get() / 20).min(ms(100));
    let sending = if fates.unsent > 0 { case.plan.length().get() + grace } else { 0 };
    assert!(
        played.ended <= played.drain_end.max(stopped).max(sending) + turns,
        "{} {}",
        played.ended,
        played.drain_end
    );
    assert!(fates.lost == 0 || played.ended >= played.drain_end, "what may still come is waited for");
}

/// The schedule is the plan's, interval by interval, whatever happened.
fn assert_as_scheduled(played: &Played, case: &Case) {
    let mut schedule = Schedule::new(&case.plan, case.trace.as_ref());
    let mut due = schedule.next_due().at;
    let intervals = case.plan.length().get().div_ceil(case.plan.interval_ns.get());
    assert_eq!(played.sends.len() as u64, intervals);
    for interval in &played.sends {
        let end = case.plan.interval_ns.saturating_mul(interval.index + 1).min(case.plan.length());
        let mut scheduled = 0;
        while due < end {
            (scheduled, due) = (scheduled + 1, schedule.next_due().at);
        }
        assert_eq!(interval.sent + interval.refused + interval.unsent, scheduled, "interval {}", interval.index);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn they_add_up_one_message_a_call(case in cases()) {
        check::<1>(&case);
    }

    #[test]
    fn they_add_up_in_batches(case in cases()) {
        check::<8>(&case);
    }

    /// More than the engine prepares for one call.
    #[test]
    fn they_add_up_in_very_large_batches(case in cases()) {
        check::<100>(&case);
    }
}

#[test]
fn sizes_of_a_trace_are_not_mixed_in_one_call() {
    let trace = Trace::parse("1000000 100\n0 100\n0 900\n0 100").unwrap();
    let plan = of_trace(&open(1), &trace).checked().unwrap();
    let mut world = World::<8>::new();
    let played = play_trace(&plan, Some(&trace), &mut world);
    // Bursts of four at every millisecond from the first to the 999th, in three sizes each.
    assert_eq!(played.received.answered, 4 * 999);
    assert_eq!(played.turns.busy, 4 * 999, "three calls to send, one to receive");
    assert_eq!((plan.payload_bytes, plan.offered_rate_hz), (PayloadLen::new(900).unwrap(), Rate::new(4_000)));
}
