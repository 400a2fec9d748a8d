//! Tests of what adds intervals up.

use proptest::prelude::*;
use tickpong_record::{Api, Figure, ScheduleKind};
use tickpong_units::{PayloadLen, Rate, Seed};

use super::*;
use crate::losses::ReflectorSaw;

fn plan() -> Plan {
    let second = Nanos::from_secs(1);
    Plan {
        offered_rate_hz: Rate::new(10),
        payload_bytes: PayloadLen::STANDARD,
        duration_ns: Nanos::from_secs(2),
        warm_up_ns: second,
        interval_ns: second,
        deadline_ns: second,
        pacing: Pacing::Open,
        schedule: ScheduleKind::Fixed,
        seed: Seed::new(1),
        api_pinger: Api::UdpSpin,
        api_reflector: Api::UdpSpin,
        tx_cpu: None,
        rx_cpu: None,
    }
}

fn sides(index: u64, sent: u64, unsent: u64, answers_us: &[u64]) -> (SendInterval, ReceiveInterval) {
    let at = Nanos::from_secs(index);
    let mut sending = SendInterval { index, length: Nanos::from_secs(1), sent, unsent, ..SendInterval::default() };
    (0..sent).for_each(|_| sending.lateness.record(Nanos::new(100), at));
    let mut receiving = ReceiveInterval { index, answered: answers_us.len() as u64, ..ReceiveInterval::default() };
    for &us in answers_us {
        receiving.supply_to_receive.record(Nanos::from_micros(us), at);
        receiving.rtt.record(Nanos::from_micros(us), at);
    }
    (sending, receiving)
}

fn totals(sent: u64, answered: u64) -> (SendTotals, ReceiveTotals) {
    let length = plan().length();
    let sending = SendTotals { length, scheduled: sent, sent, sent_by_plan_end: sent, ..SendTotals::default() };
    (sending, ReceiveTotals { answered, ..ReceiveTotals::default() })
}

#[test]
fn the_warm_up_is_apart_and_in_the_whole() {
    let mut analysis = Analysis::new(&plan());
    let rows: Vec<_> = [[900; 10].as_slice(), &[5; 10], &[7; 10]]
        .iter()
        .zip(0..)
        .map(|(answers, index)| {
            let (sending, receiving) = sides(index, 10, 0, answers);
            analysis.add(&sending, &receiving, Ends::default())
        })
        .collect();
    assert_eq!(rows.iter().map(|row| row.warm_up).collect::<Vec<_>>(), [true, false, false]);
    assert_eq!(rows[1].achieved_rate_hz, Some(10.0));
    let (sent, received) = totals(30, 30);
    let outcome = analysis.finish(&sent, &received, &Seen::default());
    let (whole, after) =
        (outcome.whole.supply_to_receive_ns.unwrap(), outcome.after_warm_up.supply_to_receive_ns.unwrap());
    assert_eq!((whole.count, whole.max, whole.max_at_interval), (30, Some(900_000), Some(0)));
    assert_eq!((after.count, after.max, after.max_at_interval), (20, Some(7_000), Some(2)));
    assert_eq!(outcome.fates_after_warm_up.scheduled, 20);
    assert_eq!(outcome.achieved_rate_hz, Some(10.0));
}

#[test]
fn a_plan_that_was_cut_has_the_rates_of_what_was_played() {
    let mut analysis = Analysis::new(&plan());
    let half = Nanos::from_millis(500);
    let (sending, receiving) = sides(0, 10, 0, &[5; 10]);
    analysis.add(&sending, &receiving, Ends::default());
    let (mut sending, receiving) = sides(1, 5, 0, &[5; 4]);
    sending.length = half;
    let row = analysis.add(&sending, &receiving, Ends::default());
    assert_eq!((row.length_ns, row.achieved_rate_hz), (half.get(), Some(10.0)));
    let (mut sent, received) = totals(15, 12);
    sent.length = Nanos::from_millis(1_500);
    let outcome = analysis.finish(&sent, &received, &Seen::default());
    assert_eq!((outcome.achieved_rate_hz, outcome.answered_rate_hz), (Some(10.0), Some(8.0)));
}

#[test]
fn what_was_used_adds_up_where_an_interval_is_not_known() {
    let mut analysis = Analysis::new(&plan());
    let known = |cpu_ns| Some(Resources { cpu_ns, ..Resources::default() });
    let mut add = |index, pinger, reflector| {
        let (sending, receiving) = sides(index, 0, 0, &[]);
        let used = analysis.add(&sending, &receiving, Ends { pinger, reflector }).used;
        (used.pinger.map(|used| used.cpu_ns), used.reflector.map(|used| used.cpu_ns))
    };
    assert_eq!(add(0, known(10), known(7)), (Some(10), Some(7)));
    assert_eq!(add(1, None, known(9)), (None, Some(2)));
    assert_eq!(add(2, known(35), None), (Some(25), None));
    assert_eq!(add(3, known(40), known(20)), (Some(5), Some(11)));
}

#[test]
fn what_was_not_answered_lies_above_in_supply_to_receive_and_is_absent_in_rtt() {
    let mut analysis = Analysis::new(&plan());
    let (sending, receiving) = sides(0, 95, 5, &[5; 90]);
    let row = analysis.add(&sending, &receiving, Ends::default());
    assert_eq!((row.scheduled, row.answered, row.lost, row.unsent), (100, 90, 5, 5));
    let (sent, received) = totals(95, 90);
    let outcome = analysis.finish(&sent, &received, &Seen::default());
    let (supply, rtt) = (outcome.whole.supply_to_receive_ns.unwrap(), outcome.whole.rtt_ns.unwrap());
    assert_eq!(
        (supply.denominator, supply.p90, supply.p99, supply.p999),
        (100, Figure::Finite(5_000), Figure::Infinite, Figure::Unsupported)
    );
    assert_eq!((rtt.denominator, rtt.p99), (90, Figure::Unsupported));
    assert_eq!(supply.thin, ["p99"], "one observation beyond p99, ten beyond p90");
}

#[test]
fn answers_that_somebody_made_up_cannot_unbalance_the_fates() {
    let mut analysis = Analysis::new(&plan());
    let (sending, mut receiving) = sides(0, 10, 2, &[5; 15]);
    receiving.late = 4;
    let row = analysis.add(&sending, &receiving, Ends::default());
    assert_eq!((row.scheduled, row.answered, row.late, row.lost, row.unsent), (12, 10, 0, 0, 2));
    let (sending, mut receiving) = sides(1, 10, 0, &[5; 7]);
    receiving.late = 4;
    let row = analysis.add(&sending, &receiving, Ends::default());
    assert_eq!((row.answered, row.late, row.lost), (7, 3, 0));
    let (sent, received) = totals(20, 22);
    let outcome = analysis.finish(&sent, &received, &Seen::default());
    assert!(outcome.fates.add_up(), "{:?}", outcome.fates);
    assert_eq!(outcome.impossible, 9 + 1);
}

#[test]
fn losses_are_told_apart_and_add_up() {
    let (sent, _) = totals(1_000, 900);
    let saw = ReflectorSaw { received: 960, unanswered: 7, socket_drops: 30 };
    let seen = Seen { pinger_socket_drops: 20, reflector: Some(saw) };
    let found = losses(&sent, 100, &seen);
    assert_eq!(
        found,
        Losses {
            reflector_socket: 30,
            unexplained_outbound: Some(10),
            reflector_unanswered: 7,
            pinger_socket: 20,
            unexplained_inbound: Some(33),
            unexplained: 43,
            send_refused: 0,
        }
    );
    let alone = losses(&sent, 100, &Seen { pinger_socket_drops: 20, reflector: None });
    assert_eq!((alone.pinger_socket, alone.unexplained, alone.unexplained_outbound), (20, 80, None));
}

proptest! {
    #[test]
    fn causes_always_add_up_to_the_lost(
        sent in 0_u64..1_000,
        answered in 0_u64..1_000,
        saw in any::<Option<(u16, u16, u16)>>(),
        drops: u16,
    ) {
        let answered = answered.min(sent);
        let lost = sent - answered;
        let (sending, _) = totals(sent, answered);
        let reflector = saw.map(|(received, unanswered, socket_drops)| ReflectorSaw {
            received: u64::from(received),
            unanswered: u64::from(unanswered),
            socket_drops: u64::from(socket_drops),
        });
        let found = losses(&sending, lost, &Seen { pinger_socket_drops: u64::from(drops), reflector });
        let in_sockets = found.pinger_socket + found.reflector_socket;
        prop_assert_eq!(in_sockets + found.reflector_unanswered + found.unexplained, lost);
    }
}

#[test]
fn a_run_that_did_not_do_what_was_asked_says_what_it_did() {
    let (mut sent, _) = totals(100_000, 0);
    let because = |sent: &SendTotals, disturbances: &Disturbances| invalid_because(&plan(), sent, disturbances);
    assert_eq!(because(&sent, &Disturbances::default()), [""; 0]);
    sent.sent_by_plan_end = 99_900;
    assert_eq!(because(&sent, &Disturbances::default()), [""; 0], "0.1 % is within");
    sent.sent_by_plan_end = 99_899;
    let said = because(&sent, &Disturbances::default());
    assert!(said[0].starts_with("generator-behind: 99899 of 100000"), "{said:?}");
    (sent.sent, sent.refused) = (50_000, 50_000);
    assert!(because(&sent, &Disturbances::default())[0].starts_with("send-refused: "));
    let all = Disturbances {
        interrupted_after: Some(Nanos::from_secs(1)),
        reflector_lost: Some("the connection was reset".into()),
        clamped: 1,
        impossible: 3,
        overflowed: 2,
        clocks: vec!["the pinger's drifted".into()],
    };
    let made_up = because(&totals(10, 0).0, &Disturbances { impossible: 3, ..Disturbances::default() });
    assert!(made_up[0].starts_with("impossible-answers: 3 more "), "{made_up:?}");
    let said = because(&SendTotals::default(), &all);
    let words: Vec<_> = said.iter().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(words, ["interrupted", "reflector-lost", "nothing-sent", "clamped", "overflow", "clock"]);
}
