//! One fault alone, and what it counts as.

use std::collections::{BTreeMap, BTreeSet};

use tickpong_record::capture::ReceiveTotals;
use tickpong_units::{Instant, Nanos, Seq};
use tickpong_wire::{Datagram, Kind};

use crate::play::{Fates, Played, open, play, start};
use crate::world::{Fault, Faults, Made, TOKEN, World, ms};

/// A thousand messages, a millisecond apart, each answered after 2.3 µs but for what goes wrong.
fn played(mut world: World<1>) -> Played {
    play(&open(1_000), &mut world)
}

/// The fault of message 500, and what the totals are beside the thousand answers that there would be without it.
fn check(fault: Fault, lost: u64, late: u64, counted: ReceiveTotals) -> Played {
    let played = played(World::with_fault(500, fault));
    let answered = 1_000 - lost - late;
    assert_eq!(played.fates(), Fates { answered, lost, late, unsent: 0 }, "{fault:?}");
    assert_eq!(played.received, ReceiveTotals { answered, late, ..counted }, "{fault:?}");
    played
}

#[test]
fn without_faults_every_message_is_answered_and_timed_exactly() {
    let played = check(Fault::SlowSend(0), 0, 0, ReceiveTotals::default());
    assert_eq!(played.ended, ms(999) + 2_300, "the last answer ends the run");
    assert_eq!(played.sent.sent_by_plan_end, 1_000);
    assert_eq!(played.sent.sending, Nanos::from_millis(999));
    for (k, seen) in (0..).zip(&played.observations) {
        assert_eq!((seen.seq, seen.intended.get(), seen.sent.get()), (k, ms(k), ms(k)));
        assert_eq!((seen.received.get(), seen.turnaround.get()), (ms(k) + 2_300, 300));
    }
    assert_eq!(played.turns.busy, 2_000, "a turn that sends and a turn that receives for each");
}

#[test]
fn a_lost_ping_and_a_lost_pong_are_lost_and_waited_for() {
    for fault in [Fault::LostPing, Fault::LostPong] {
        let played = check(fault, 1, 0, ReceiveTotals::default());
        assert_eq!((played.ended, played.drain_end), (ms(1_199), ms(1_199)));
    }
}

#[test]
fn a_second_answer_is_a_duplicate_whatever_doubled_it() {
    let duplicate = ReceiveTotals { duplicate: 1, ..ReceiveTotals::default() };
    let played = check(Fault::Doubled(10_000), 0, 0, duplicate);
    assert_eq!(played.receives[5].duplicate, 1);
    check(Fault::PingDoubled, 0, 0, duplicate);
    // After a later answer it is still no reordering: that is told of first answers alone.
    check(Fault::Doubled(5_500_000), 0, 0, duplicate);
}

#[test]
fn a_duplicate_of_a_closed_interval_counts_in_the_oldest_open_one() {
    // Message 599 is the last of interval 5, which is complete, and handed over, long before 620 ms.
    let played = played(World::with_fault(599, Fault::Doubled(ms(20))));
    assert_eq!((played.received.duplicate, played.received.stale), (1, 0));
    assert_eq!([5, 6].map(|index: usize| played.receives[index].duplicate), [0, 1]);
}

#[test]
fn an_answer_after_a_later_one_is_reordered_and_nothing_else() {
    let played = check(Fault::Delayed(1_500_000), 0, 0, ReceiveTotals { reordered: 1, ..ReceiveTotals::default() });
    assert_eq!(played.receives[5].reordered, 1);
}

#[test]
fn an_answer_is_in_time_up_to_its_deadline_to_the_nanosecond_and_then_late() {
    let reordered = ReceiveTotals { reordered: 1, ..ReceiveTotals::default() };
    check(Fault::Delayed(ms(100) - 2_300), 0, 0, reordered);
    let played = check(Fault::Delayed(ms(100) - 2_299), 0, 1, reordered);
    assert_eq!((played.receives[5].late, played.receives[5].answered), (1, 99));
    let late = played.observations.iter().find(|seen| seen.seq == 500).unwrap();
    assert_eq!(late.received.get(), ms(600) + 1, "a late message has its raw row too");
}

/// In the middle of a run, at either end of an interval, and at the run's end.
#[test]
fn a_message_is_waited_for_until_two_deadlines_after_it_was_sent_wherever_it_is() {
    for seq in [0, 500, 550, 599, 899, 999] {
        let delayed = |by| played(World::with_fault(seq, Fault::Delayed(by)));
        let last = delayed(ms(200) - 2_300);
        assert_eq!(last.fates(), Fates { answered: 999, lost: 0, late: 1, unsent: 0 }, "{seq}");
        let beyond = delayed(ms(200) - 2_299);
        assert_eq!(beyond.fates(), Fates { answered: 999, lost: 1, late: 0, unsent: 0 }, "{seq}");
        assert_eq!(beyond.received.stale, u64::from(seq < 999), "after the run's end nobody listens");
    }
}

#[test]
fn an_answer_that_nobody_remembers_is_stale_and_its_message_lost() {
    let played = check(Fault::Delayed(ms(400)), 1, 0, ReceiveTotals { stale: 1, ..ReceiveTotals::default() });
    assert_eq!(played.receives[5].answered, 99);
}

#[test]
fn a_changed_answer_is_corrupt_and_no_number_in_it_is_believed() {
    for fault in [Fault::CorruptFiller, Fault::CorruptIntended, Fault::CorruptSent, Fault::CorruptSeq] {
        let played = check(fault, 1, 0, ReceiveTotals { corrupt: 1, ..ReceiveTotals::default() });
        assert_eq!(played.receives.len(), 10, "{fault:?}");
    }
}

#[test]
fn what_is_cut_short_is_malformed_and_what_is_of_another_session_foreign() {
    check(Fault::Truncated, 1, 0, ReceiveTotals { malformed: 1, ..ReceiveTotals::default() });
    check(Fault::Foreign, 1, 0, ReceiveTotals { foreign: 1, ..ReceiveTotals::default() });
}

#[test]
fn what_comes_from_nowhere_is_counted_beside_the_messages() {
    let mut world = World::<1>::new();
    let mut payload = [0; 264];
    let mut header = Datagram {
        kind: Kind::Ping,
        token: TOKEN,
        seq: Seq::new(7),
        intended: start(),
        sent: start(),
        arrival: Instant::from_clock(0),
        departure: Instant::from_clock(0),
    };
    world.inject(ms(100), b"", Made::Garbage);
    world.inject(ms(100), b"hello", Made::Garbage);
    world.inject(ms(101), &[0xff; 1_000], Made::Garbage);
    header.emit(&mut payload);
    world.inject(ms(102), &payload, Made::Foreign);
    header.kind = Kind::PathAnswer;
    header.emit(&mut payload);
    world.inject(ms(103), &payload, Made::Path);
    let played = played(world);
    let expected = ReceiveTotals { answered: 1_000, malformed: 3, foreign: 1, ..ReceiveTotals::default() };
    assert_eq!(played.received, expected);
}

#[test]
fn a_refused_message_is_unsent_and_the_next_goes_on_time() {
    let played = played(World::with_faults(Faults { refused: BTreeSet::from([500]), ..Faults::default() }));
    assert_eq!(played.fates(), Fates { answered: 999, lost: 0, late: 0, unsent: 1 });
    assert_eq!((played.sent.refused, played.sends[5].refused, played.sends[5].unsent), (1, 1, 0));
    assert_eq!(played.sends[5].lateness.histogram.max(), Some(Nanos::ZERO));
}

#[test]
fn a_message_that_finds_no_room_stays_due_and_its_wait_counts() {
    let faults = Faults { full: BTreeMap::from([(500, 3)]), ..Faults::default() };
    let mut world = World::<1>::with_faults(faults.clone());
    world.costs.send = 1_000;
    let slow = played(world);
    assert_eq!(slow.fates(), Fates { answered: 1_000, lost: 0, late: 0, unsent: 0 });
    assert_eq!(slow.sends[5].lateness.histogram.max(), Some(Nanos::new(3_000)));
    assert_eq!(slow.sends[5].lateness.longest_at, Nanos::from_millis(500));
    let played = played(World::with_faults(faults));
    assert_eq!(played.turns.busy, 2_000, "a turn that finds no room has done nothing");
}
