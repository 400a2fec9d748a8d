//! The pages themselves: to be read by a person whenever one changes.

use insta::assert_snapshot;
use tickpong_record::{Ignored, Losses, Pacing, ScheduleKind};
use tickpong_report::{Style, json, text};
use tickpong_units::{Nanos, Rate};

use crate::build::{Dice, Made, Values, fates, in_force, push};

fn page(made: &Made, width: usize) -> String {
    text(&made.run, &made.histograms, Style { width, colour: false })
}

#[test]
fn a_valid_run_at_100() {
    assert_snapshot!(page(&Made::quiet(), 100));
}

#[test]
fn a_valid_run_at_80() {
    assert_snapshot!(page(&Made::quiet(), 80));
}

#[test]
fn a_valid_run_at_72() {
    assert_snapshot!(page(&Made::quiet(), 72));
}

/// Offered far more than the pinger can: everything waits, and waits longer.
fn overloaded() -> Made {
    let mut made = Made::quiet().but(|run| {
        run.valid = false;
        run.invalid_because = vec![
            "generator-behind: 4011873 of 6000000 messages were sent by the plan's end; the pinger is not fast enough"
                .into(),
            "overflow: 3 intervals or observations found no room in tickpong's own rings".into(),
        ];
        run.plan.offered_rate_hz = Rate::new(1_000_000);
        run.plan.duration_ns = Nanos::from_secs(6);
        run.plan.warm_up_ns = Nanos::ZERO;
        run.plan.rx_cpu = Some(4);
        run.in_force.pinger = Some(in_force(&[("sender", "2"), ("receiver", "4")]));
        run.fates = fates(39_990, 0, 8, 20_002);
        run.fates_after_warm_up = run.fates;
        run.achieved_rate_hz = Some(668_645.5);
        run.answered_rate_hz = Some(668_643.25);
        run.fall_behinds = 39_871;
        run.warnings = vec![
            "pinger thread: lock the memory: not permitted (CAP_IPC_LOCK); page faults may show in the figures".into(),
        ];
    });
    let (mut supply, mut rtt, mut lateness, mut turnaround, mut gap) = Default::default();
    let mut dice = Dice::new();
    for k in 0..39_990_u64 {
        let due = k * 150_000;
        let (late, back) = (due / 6 + dice.below(5_000), 22_000 + dice.below(90_000));
        push(&mut supply, due, late + back);
        push(&mut rtt, due, back);
        push(&mut lateness, due, late);
        push(&mut turnaround, due, 900 + dice.below(90));
        push(&mut gap, due, 1_300 + dice.below(300));
    }
    made.measured(&[supply, rtt, lateness, turnaround, gap]);
    made
}

#[test]
fn an_invalid_overloaded_run() {
    assert_snapshot!(page(&overloaded(), 100));
}

#[test]
fn a_lossy_run_with_infinite_and_thin_quantiles() {
    let mut made = Made::quiet().but(|run| {
        run.plan.duration_ns = Nanos::from_secs(1);
        run.plan.offered_rate_hz = Rate::new(500);
        run.plan.schedule = ScheduleKind::Burst(5);
        run.fates = fates(990, 8, 2, 0);
        (run.fates.duplicate, run.fates.reordered) = (3, 17);
        run.fates_after_warm_up = fates(494, 6, 0, 0);
        run.achieved_rate_hz = Some(500.0);
        run.answered_rate_hz = Some(495.0);
        run.losses = Losses {
            pinger_socket: 1,
            reflector_socket: 4,
            reflector_unanswered: 0,
            unexplained: 3,
            unexplained_outbound: Some(1),
            unexplained_inbound: Some(2),
            send_refused: 0,
        };
        run.ignored = Ignored { malformed: 2, corrupt: 1, reflector_duplicate: Some(3), ..Ignored::default() };
    });
    let mut dice = Dice::new();
    let mut values: [Values; 5] = Default::default();
    for k in (0..1_000_u64).filter(|k| k % 100 != 13) {
        let (due, back) = (k * 2_000_000, 45_000 + dice.below(4_000) + (k % 5) * 700);
        push(&mut values[0], due, 60 + back);
        push(&mut values[1], due, back);
        push(&mut values[2], due, 60);
        push(&mut values[3], due, 3_000);
        push(&mut values[4], due, if k % 5 == 0 { 9_996_000 } else { 1_000 });
    }
    made.measured(&values);
    assert_snapshot!("a_lossy_run_at_100", page(&made, 100));
    assert_snapshot!("a_lossy_run_at_80", page(&made, 80));
}

#[test]
fn a_closed_loop_has_no_rate_and_no_lateness() {
    let made = Made::quiet().but(|run| {
        run.plan.offered_rate_hz = None;
        run.plan.pacing = Pacing::Closed;
        run.achieved_rate_hz = Some(54_321.98);
        run.answered_rate_hz = Some(54_321.98);
        run.fall_behinds = 0;
        run.whole.send_lateness_ns = None;
        run.after_warm_up.send_lateness_ns = None;
        run.clock.kind = "monotonic".into();
        run.clock.frequency_hz = None;
        run.clock.drift_ppm = -3.5;
        run.clock.counter_refused = Some("the kernel itself does not trust it: its clock source is hpet".into());
        run.sockets.forced = false;
        run.sockets.host_udp = None;
    });
    assert_snapshot!(page(&made, 100));
}

#[test]
fn an_interrupted_run_without_a_message() {
    let made = Made::quiet().but(|run| {
        run.valid = false;
        run.interrupted = true;
        run.invalid_because =
            vec!["interrupted: ended after 1.2 ms of 11 s".into(), "nothing-sent: not one message left".into()];
        (run.fates, run.fates_after_warm_up) = Default::default();
        (run.whole, run.after_warm_up) = Default::default();
        (run.achieved_rate_hz, run.answered_rate_hz, run.fall_behinds) = (None, None, 0);
        (run.cpu, run.memory) = Default::default();
        run.reflector_clock = None;
        run.sockets.reflector = None;
        run.sockets.drops = None;
        run.labels.clear();
    });
    let none = Made { histograms: std::collections::BTreeMap::default(), ..made };
    assert_snapshot!(page(&none, 80));
}

#[test]
fn a_run_without_a_report_of_the_reflector() {
    let made = Made::quiet().but(|run| {
        run.fates = fates(109_700, 300, 0, 0);
        run.losses = Losses { pinger_socket: 100, unexplained: 200, ..Losses::default() };
        run.cpu.reflector = None;
    });
    let page = page(&made, 80);
    let losses: Vec<&str> = page.lines().skip_while(|line| !line.starts_with("losses")).take(4).collect();
    assert_snapshot!(losses.join("\n"));
}

#[test]
fn hostile_strings_are_shown_and_not_obeyed() {
    let hostile = "x\u{1b}]0;owned\u{7}\u{1b}[2J\nVALID\r\u{9b}31m\u{202e}dlrow";
    let made = Made::quiet().but(|run| {
        run.valid = false;
        run.invalid_because = vec![format!("clock: {hostile}")];
        run.labels = [(hostile.to_owned(), hostile.to_owned())].into();
        run.warnings = vec![hostile.to_owned(), "word".repeat(60)];
        run.identity.tickpong_version = hostile.to_owned();
        run.identity.testbed = Some(hostile.to_owned());
        run.identity.started_at = Some(hostile.to_owned());
        run.engine = hostile.to_owned();
        run.plan.schedule = ScheduleKind::Trace(hostile.to_owned());
        run.clock.kind = hostile.to_owned();
        run.clock.counter_refused = Some(hostile.to_owned());
    });
    let page = page(&made, 100);
    assert!(page.chars().all(|c| c == '\n' || !c.is_control()), "no control character but the ends of lines");
    assert!(!page.contains('\u{202e}'));
    assert!(!page.lines().any(|line| line == "VALID"));
    let strings: Vec<&str> = page.lines().filter(|line| line.contains("owned") || line.contains("wordword")).collect();
    assert_snapshot!(strings.join("\n"));
    let json = json(&made.run);
    assert!(json.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn the_verdict_alone_is_coloured() {
    let made = overloaded().but(|run| run.interrupted = true);
    let coloured = text(&made.run, &made.histograms, Style { width: 100, colour: true });
    let plain = coloured.replace("\u{1b}[1;31m", "").replace("\u{1b}[1;33m", "").replace("\u{1b}[0m", "");
    assert_eq!(plain, page(&made, 100));
    let lines: Vec<&str> = coloured.lines().filter(|line| line.contains('\u{1b}')).collect();
    assert_snapshot!(lines.join("\n").replace('\u{1b}', "ESC"));
}
