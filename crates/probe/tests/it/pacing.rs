//! Whoever falls behind, the wait is counted, from the instant that the plan intended.

use tickpong_record::Plan;
use tickpong_record::capture::Measured;
use tickpong_units::{Nanos, Quantile};

use crate::play::{Fates, Played, closed, open, play};
use crate::world::{Fault, Faults, START, World, ms};

const RTT: u64 = 2_300;

/// Ten seconds at 1 kHz, in intervals of a second, with a deadline of two.
fn ten_seconds() -> Plan {
    let second = Nanos::from_secs(1);
    Plan {
        duration_ns: Nanos::from_secs(9),
        warm_up_ns: second,
        interval_ns: second,
        deadline_ns: Nanos::from_secs(2),
        ..open(1_000)
    }
    .checked()
    .unwrap()
}

/// All exact values of a metric, in order of length.
fn sorted(values: impl Iterator<Item = Nanos>) -> Vec<u64> {
    let mut values: Vec<_> = values.map(Nanos::get).collect();
    values.sort_unstable();
    values
}

/// By nearest rank, of ten thousand.
fn rank(sorted: &[u64], q: Quantile) -> u64 {
    sorted[usize::try_from(q.rank(10_000)).unwrap() - 1]
}

fn merged<T>(intervals: &[T], of: fn(&T) -> &Measured) -> Measured {
    let mut merged = Measured::default();
    for interval in intervals {
        merged.merge(of(interval));
    }
    merged
}

fn supply_to_receive(played: &Played) -> Vec<u64> {
    sorted(played.observations.iter().map(|seen| seen.received.saturating_sub(seen.intended)))
}

fn rtt(played: &Played) -> Vec<u64> {
    sorted(played.observations.iter().map(|seen| seen.received.saturating_sub(seen.sent)))
}

#[test]
fn a_stalled_reflector_is_felt_by_every_message_that_was_due() {
    let faults = Faults { stalled: Some((ms(4_000), ms(5_000))), ..Faults::default() };
    let played = play(&ten_seconds(), &mut World::<1>::with_faults(faults));
    assert_eq!(played.fates(), Fates { answered: 10_000, lost: 0, late: 0, unsent: 0 });
    let values = supply_to_receive(&played);
    // Messages 4000 to 4999 waited for the end of the stall, the first a whole second, the last a millisecond.
    let expected = sorted((0..10_000).map(|k| {
        Nanos::new(match k {
            4_000..5_000 => ms(5_000 - k) + 1_300,
            _ => RTT,
        })
    }));
    assert_eq!(values, expected);
    assert_eq!(rank(&values, Quantile::P90), RTT);
    assert_eq!(rank(&values, Quantile::P99), ms(900) + 1_300);
    assert_eq!(*values.last().unwrap(), ms(1_000) + 1_300);
    let recorded = merged(&played.receives, |interval| &interval.supply_to_receive).histogram;
    let p99 = recorded.value_at_rank(9_900).unwrap().get();
    assert!((ms(900) + 1_300..=ms(901)).contains(&p99), "{p99}");
    assert_eq!(recorded.max(), Some(Nanos::new(ms(1_000) + 1_300)));
    assert_eq!(played.receives[4].supply_to_receive.longest_at, Nanos::from_secs(4));
    // Nothing kept the pinger from sending, so that the round trip says the same.
    assert_eq!(rtt(&played), values);
    assert_eq!(merged(&played.sends, |interval| &interval.lateness).histogram.max(), Some(Nanos::ZERO));
}

#[test]
fn a_stalled_pinger_is_felt_from_the_intended_instant_and_not_in_the_round_trip() {
    let played = play(&ten_seconds(), &mut World::<1>::with_fault(4_000, Fault::SlowSend(ms(1_000))));
    assert_eq!(played.fates(), Fates { answered: 10_000, lost: 0, late: 0, unsent: 0 });
    for seen in &played.observations {
        let (intended, sent, received) = match seen.seq {
            4_000 => (ms(4_000), ms(4_000), ms(5_000)),
            k @ 4_001..5_000 => (ms(k), ms(5_000), ms(5_000) + RTT),
            k => (ms(k), ms(k), ms(k) + RTT),
        };
        assert_eq!([seen.intended, seen.sent, seen.received].map(Nanos::get), [intended, sent, received]);
    }
    assert_eq!(rank(&supply_to_receive(&played), Quantile::P99), ms(900) + RTT);
    assert_eq!(rank(&rtt(&played), Quantile::P99), RTT, "the round trip alone does not show it");
    let lateness = merged(&played.sends, |interval| &interval.lateness).histogram;
    assert_eq!((lateness.max(), lateness.value_at_rank(9_001)), (Some(Nanos::from_millis(999)), Some(Nanos::ZERO)));
    assert_eq!(played.sends.iter().map(|interval| interval.fall_behinds).sum::<u64>(), 999);
    assert_eq!((played.sent.sent_by_plan_end, played.sent.scheduled), (10_000, 10_000));
}

#[test]
fn a_generator_that_is_too_slow_says_so_and_still_ends() {
    let mut world = World::<1>::new();
    world.costs.send = ms(2);
    let plan = ten_seconds();
    let played = play(&plan, &mut world);
    assert!(played.ended <= ms(11_000), "{}", played.ended);
    let fates = played.fates();
    assert_eq!(played.sent.scheduled, 10_000);
    assert_eq!(played.sent.sent_by_plan_end, 5_000, "one each two milliseconds");
    assert_eq!(fates.unsent, 10_000 - played.sent.sent);
    let lateness: Vec<_> = played
        .sends
        .iter()
        .filter(|interval| interval.sent > 0)
        .map(|interval| interval.lateness.histogram.max())
        .collect();
    assert!(lateness.is_sorted() && lateness.len() == 6, "{lateness:?}");
    // Every ping was answered at once. That they were sent up to five seconds late makes the answers late, and none of them lost.
    assert_eq!((fates.lost, played.received.stale), (0, 0));
    assert_eq!(fates.answered + fates.late, played.sent.sent);
    assert!(fates.late > 2_000, "{fates:?}");
}

#[test]
fn a_stall_at_the_very_end_is_lateness_and_what_comes_after_the_plan_does_not_fall_behind() {
    // The send of message 998 lasts until 40 ms after the plan's end; 999 goes then.
    let played = play(&open(1_000), &mut World::<1>::with_fault(998, Fault::SlowSend(ms(42))));
    assert_eq!(played.fates(), Fates { answered: 1_000, lost: 0, late: 0, unsent: 0 });
    assert_eq!(played.sent.sent_by_plan_end, 999);
    assert_eq!(played.sends[9].lateness.histogram.max(), Some(Nanos::from_millis(41)));
    assert_eq!(played.sends[9].fall_behinds, 0);
    // Beyond the grace, a twentieth of the duration, nothing is sent.
    let played = play(&open(1_000), &mut World::<1>::with_fault(998, Fault::SlowSend(ms(48))));
    assert_eq!(played.fates(), Fates { answered: 999, lost: 0, late: 0, unsent: 1 });
}

#[test]
fn an_interrupted_run_counts_what_was_due_before() {
    let mut world = World::<1>::new();
    world.stop_at = Some(START + ms(450));
    let played = play(&open(1_000), &mut world);
    assert_eq!((played.sent.scheduled, played.sent.sent, played.received.answered), (450, 450, 450));
    assert_eq!((played.sent.length, played.sends[4].length), (Nanos::from_millis(450), Nanos::from_millis(50)));
    assert_eq!((played.sends.len(), played.receives.len()), (5, 5));
    // What was sent last is still waited for, for twice its deadline.
    let mut world = World::<1>::with_fault(449, Fault::LostPong);
    world.stop_at = Some(START + ms(450));
    let played = play(&open(1_000), &mut world);
    assert_eq!((played.fates().lost, played.ended), (1, ms(649)));
}

#[test]
fn an_interrupted_run_that_was_behind_has_unsent_messages() {
    let mut world = World::<1>::new();
    world.costs.send = ms(2);
    world.stop_at = Some(START + ms(450));
    let played = play(&open(1_000), &mut world);
    assert_eq!(played.sent.scheduled, 450);
    assert_eq!(played.fates().unsent, 450 - 225);
}

#[test]
fn a_run_interrupted_before_its_start_is_empty_and_does_not_wait_for_it() {
    for plan in [open(1_000), closed()] {
        let mut world = World::<1>::new();
        world.time = START - ms(500);
        world.stop_at = Some(START - ms(100));
        let played = play(&plan, &mut world);
        assert_eq!((played.sent.scheduled, played.sends.len()), (0, 1));
        // A waiting pinger looks each 20 ms.
        assert!(world.time <= START - ms(80), "{}", START - world.time);
    }
}
