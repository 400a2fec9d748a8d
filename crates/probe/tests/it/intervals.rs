//! Which interval a message belongs to, and when an interval is handed over.

use tickpong_record::{Plan, ScheduleKind, Trace};
use tickpong_units::Nanos;

use crate::play::{Played, open, play, play_trace};
use crate::world::{Fault, Faults, START, World, ms};

fn with_fault(seq: u64, fault: Fault) -> Played {
    play(&open(1_000), &mut World::<1>::with_fault(seq, fault))
}

#[test]
fn a_message_belongs_to_the_interval_of_its_intended_instant() {
    // Answered, and in the second case sent, within the next interval.
    for (seq, fault) in [(199, Fault::Delayed(ms(5))), (198, Fault::SlowSend(ms(5)))] {
        let played = with_fault(seq, fault);
        for index in 0..10 {
            assert_eq!((played.sends[index].sent, played.receives[index].answered), (100, 100), "{fault:?}");
        }
    }
}

#[test]
fn the_longest_value_is_named_by_its_intended_instant() {
    let played = with_fault(250, Fault::Delayed(50_000));
    let interval = &played.receives[2];
    for measured in [&interval.supply_to_receive, &interval.rtt] {
        assert_eq!(measured.longest_at, Nanos::from_millis(250));
        assert_eq!(measured.histogram.max(), Some(Nanos::new(52_300)));
    }
    let played = with_fault(300, Fault::SlowSend(ms(10)));
    let interval = &played.sends[3];
    for measured in [&interval.lateness, &interval.gap] {
        assert_eq!(measured.longest_at, Nanos::from_millis(301));
    }
    assert_eq!(interval.lateness.histogram.max(), Some(Nanos::from_millis(9)));
    assert_eq!(interval.gap.histogram.max(), Some(Nanos::from_millis(10)));
}

#[test]
fn intervals_in_which_nothing_is_due_come_too() {
    let trace = Trace::parse("350000000 264").unwrap();
    let schedule = ScheduleKind::Trace(trace.digest().into());
    let plan = Plan { schedule, offered_rate_hz: Some(trace.mean_rate()), ..open(1) }.checked().unwrap();
    let played = play_trace(&plan, Some(&trace), &mut World::<1>::new());
    let sent: Vec<_> = played.sends.iter().map(|interval| interval.sent).collect();
    assert_eq!(sent, [0, 0, 0, 1, 0, 0, 0, 1, 0, 0]);
    let answered: Vec<_> = played.receives.iter().map(|interval| interval.answered).collect();
    assert_eq!(answered, [0, 0, 0, 1, 0, 0, 0, 1]);
}

#[test]
fn silent_intervals_end_by_the_clock_and_not_with_the_next_message() {
    let trace = Trace::parse("850000000 264").unwrap();
    let schedule = ScheduleKind::Trace(trace.digest().into());
    let plan = Plan { schedule, offered_rate_hz: Some(trace.mean_rate()), ..open(1) }.checked().unwrap();
    let mut world = World::<1>::new();
    world.stop_at = Some(START + ms(725));
    let played = play_trace(&plan, Some(&trace), &mut world);
    assert_eq!((played.closed_early, played.sends.len()), (7, 8));
}

#[test]
fn a_complete_interval_is_handed_over_soon_after_its_end() {
    for (stop_at, closed) in [(99, 0), (103, 1), (203, 2), (903, 9)] {
        let mut world = World::<1>::new();
        world.stop_at = Some(START + ms(stop_at));
        assert_eq!(play(&open(1_000), &mut world).closed_early, closed, "{stop_at} ms");
    }
}

#[test]
fn an_interval_with_a_loss_is_handed_over_two_deadlines_after_its_end() {
    for (stop_at, closed) in [(299, 0), (304, 3)] {
        let mut world = World::<1>::with_fault(50, Fault::LostPing);
        world.stop_at = Some(START + ms(stop_at));
        assert_eq!(play(&open(1_000), &mut world).closed_early, closed, "{stop_at} ms");
    }
}

#[test]
fn intervals_that_close_at_once_after_a_stall_are_all_known_to_be_complete() {
    // After the stall, all of intervals 1 to 5 is sent at 600 ms.
    let faults = Faults { of: [(100, Fault::SlowSend(ms(500)))].into(), ..Faults::default() };
    let plan = Plan { deadline_ns: Nanos::from_millis(600), ..open(1_000) }.checked().unwrap();
    let mut world = World::<1>::with_faults(faults);
    world.stop_at = Some(START + ms(606));
    let played = play(&plan, &mut world);
    assert_eq!(played.closed_early, 6);
    assert_eq!(played.fates().answered, 606);
}

#[test]
fn without_any_answer_intervals_still_come() {
    let of = (0..1_000).map(|seq| (seq, Fault::LostPing)).collect();
    let played = play(&open(1_000), &mut World::<1>::with_faults(Faults { of, ..Faults::default() }));
    assert_eq!(played.fates().lost, 1_000);
    assert_eq!(played.closed_early, 7, "all that ended two deadlines before the last message");
}
