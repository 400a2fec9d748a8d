//! Runs that nobody made, for tests.

use std::path::Path;

use tickpong_record::{
    Api, ClockFacts, Ends, Fates, Figure, Identity, Ignored, IntervalRow, IntervalTable, Losses, Pacing, Plan,
    RUN_FORMAT, Run, ScheduleKind, Sockets, Source, Summary, Window,
};
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};

/// A plan of one second in ten intervals.
pub(crate) fn plan(hz: u64) -> Plan {
    Plan {
        offered_rate_hz: Rate::new(hz),
        payload_bytes: PayloadLen::STANDARD,
        duration_ns: Nanos::from_secs(1),
        warm_up_ns: Nanos::ZERO,
        interval_ns: Nanos::from_millis(100),
        deadline_ns: Nanos::from_secs(1),
        pacing: Pacing::Open,
        schedule: ScheduleKind::Fixed,
        seed: Seed::new(1),
        api_pinger: Api::default(),
        api_reflector: Api::default(),
        tx_cpu: None,
        rx_cpu: None,
    }
}

/// A flawless run of it.
pub(crate) fn run(hz: u64) -> Run {
    of_plan(plan(hz))
}

#[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
pub(crate) fn of_plan(plan: Plan) -> Run {
    let rate = plan.offered_rate_hz.map_or(0, Rate::get);
    let scheduled = plan.offered_rate_hz.map_or(0, |rate| rate.due_within(plan.length()));
    let fates = Fates { scheduled, answered: scheduled, ..Fates::default() };
    let window = Window { supply_to_receive_ns: Some(summary(scheduled)), ..Window::default() };
    Run {
        format: RUN_FORMAT,
        source: Source::Hardware,
        engine: "probe".to_owned(),
        seed: plan.seed,
        valid: true,
        invalid_because: Vec::new(),
        interrupted: false,
        warnings: Vec::new(),
        labels: [].into(),
        identity: Identity { plan_hash: plan.hash(), ..Identity::default() },
        plan,
        fates,
        fates_after_warm_up: fates,
        losses: Losses::default(),
        ignored: Ignored::default(),
        achieved_rate_hz: Some(rate as f64),
        answered_rate_hz: Some(rate as f64),
        fall_behinds: 0,
        whole: window.clone(),
        after_warm_up: window,
        cpu: Ends::default(),
        memory: Ends::default(),
        in_force: Ends::default(),
        clock: ClockFacts::default(),
        reflector_clock: None,
        sockets: Sockets::default(),
    }
}

/// Tens of microseconds.
pub(crate) fn summary(count: u64) -> Summary {
    let at = |us: u64| Figure::Finite(us * 1_000);
    Summary {
        count,
        denominator: count,
        min: Some(9_000),
        mean: Some(10_500.0),
        sd: Some(500.0),
        p50: at(10),
        p90: at(11),
        p99: at(15),
        p999: at(30),
        p9999: at(60),
        max: Some(90_000),
        max_at_interval: Some(0),
        max_at_ns: Some(1_000),
        clamped: 0,
        thin: Vec::new(),
    }
}

/// Intervals with these medians, in microseconds.
pub(crate) fn intervals(lateness_us: &[u64], rtt_us: &[u64]) -> IntervalTable {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("intervals.csv");
    write_intervals(&file, lateness_us, rtt_us);
    IntervalTable::read(&file).unwrap()
}

pub(crate) fn write_intervals(file: &Path, lateness_us: &[u64], rtt_us: &[u64]) {
    let with_median = |us: u64| Some(Summary { p50: Figure::Finite(us * 1_000), ..summary(1_000) });
    let rows = (0..).zip(lateness_us.iter().zip(rtt_us)).map(|(interval, (&lateness, &rtt))| {
        let row = IntervalRow {
            interval,
            send_lateness: with_median(lateness),
            rtt: with_median(rtt),
            supply_to_receive: with_median(lateness + rtt),
            ..IntervalRow::default()
        };
        row.to_csv() + "\n"
    });
    let text = IntervalRow::header() + "\n" + &rows.collect::<String>();
    std::fs::write(file, text).unwrap();
}
