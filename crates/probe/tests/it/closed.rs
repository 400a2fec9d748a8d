//! The closed loop: the next ping waits for the answer, and not for ever.

use std::collections::{BTreeMap, BTreeSet};

use tickpong_record::capture::Observation;
use tickpong_units::Nanos;

use crate::play::{Fates, Played, closed, lasting, play};
use crate::world::{Fault, Faults, START, World, ms};

const RTT: u64 = 2_300;

/// 300 ms with a deadline of 100 ms.
fn played(world: &mut World<1>) -> Played {
    play(&lasting(closed(), 300), world)
}

fn message(played: &Played, seq: u64) -> Observation {
    *played.observations.iter().find(|seen| seen.seq == seq).unwrap()
}

#[test]
fn each_answer_brings_the_next_ping_at_once() {
    let mut world = World::new();
    let played = played(&mut world);
    let answered = ms(300).div_ceil(RTT);
    assert_eq!(played.fates(), Fates { answered, lost: 0, late: 0, unsent: 0 });
    assert_eq!(world.most_outstanding, 1);
    for (k, seen) in (0..).zip(&played.observations) {
        assert_eq!(
            (seen.seq, seen.intended.get(), seen.sent.get(), seen.received.get()),
            (k, k * RTT, k * RTT, (k + 1) * RTT)
        );
    }
    assert!(played.sends.iter().all(|interval| interval.lateness.histogram.count() == 0 && interval.fall_behinds == 0));
    assert_eq!(played.ended, answered * RTT);
}

#[test]
fn a_lost_answer_costs_its_deadline_and_no_more() {
    for fault in [Fault::LostPing, Fault::LostPong, Fault::CorruptFiller, Fault::Truncated] {
        let played = played(&mut World::with_fault(10, fault));
        assert_eq!(played.fates().lost, 1);
        assert_eq!(message(&played, 11).intended.get(), 10 * RTT + ms(100), "{fault:?}");
        assert_eq!(played.ended, played.drain_end, "it may still come, late: {fault:?}");
    }
}

#[test]
fn a_loop_without_any_answer_ends_on_time() {
    let of = (0..100).map(|seq| (seq, Fault::LostPong)).collect();
    let played = played(&mut World::with_faults(Faults { of, ..Faults::default() }));
    assert_eq!(played.fates(), Fates { answered: 0, lost: 3, late: 0, unsent: 0 });
    assert_eq!((played.ended, played.drain_end), (ms(400), ms(400)));
    assert_eq!(played.sends.iter().map(|interval| interval.sent).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn a_late_answer_is_late_and_releases_nothing() {
    let mut world = World::with_fault(10, Fault::Delayed(ms(150)));
    let played = played(&mut world);
    assert_eq!((played.fates().late, played.fates().lost), (1, 0));
    assert_eq!(message(&played, 10).received.get(), 11 * RTT + ms(150));
    assert_eq!(message(&played, 11).sent.get(), 10 * RTT + ms(100));
    assert_eq!(world.most_outstanding, 2, "the late one and the one after it");
}

#[test]
fn a_second_answer_releases_nothing() {
    let mut world = World::with_fault(10, Fault::Doubled(1_000));
    let played = played(&mut world);
    assert_eq!((played.received.duplicate, world.most_outstanding), (1, 1));
    assert_eq!(message(&played, 12).intended.get(), 12 * RTT);
}

#[test]
fn no_room_and_a_refusal_do_not_stop_it() {
    let faults = Faults { full: BTreeMap::from([(10, 5)]), refused: BTreeSet::from([20, 21]), ..Faults::default() };
    let mut world = World::with_faults(faults);
    world.costs.send = 100;
    let played = played(&mut world);
    assert_eq!((played.fates().lost, played.fates().unsent, played.sent.refused), (0, 2, 2));
    let waited = message(&played, 10);
    assert_eq!(waited.sent.saturating_sub(waited.intended), Nanos::new(500), "it was wanted from the first try on");
    assert_eq!(world.most_outstanding, 1);
}

#[test]
fn interrupted_it_waits_for_the_last_answer() {
    let mut world = World::new();
    world.stop_at = Some(START + ms(100));
    let played = played(&mut world);
    let answered = ms(100).div_ceil(RTT);
    assert_eq!(played.fates(), Fates { answered, lost: 0, late: 0, unsent: 0 });
    assert_eq!(played.ended, answered * RTT);
}
