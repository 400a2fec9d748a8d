//! The summary of a suite.

use insta::assert_snapshot;
use tickpong_record::{
    AcrossIntervals, AcrossRuns, FailedRun, Figure, GaveWay, HighestRate, Range, SUITE_FORMAT, Series, SeriesRun,
    Spread, SuiteResult, TriedRate, Used,
};
use tickpong_report::{Style, compare_suites, suite_json, suite_markdown, suite_text};
use tickpong_units::{Rate, Seed};

use crate::build::Made;

fn page(result: &SuiteResult, width: usize) -> String {
    suite_text(result, Style { width, colour: false })
}

#[expect(clippy::unnecessary_wraps, reason = "as a field wants it")]
fn spread(lowest: u64, median: u64, highest: u64) -> Option<Spread> {
    let [lowest, median, highest] = [lowest, median, highest].map(Figure::Finite);
    Some(Spread { lowest, median, highest })
}

fn series(name: &str, rate: u64, repetitions: u32) -> Series {
    let range = |lowest, highest| Some(Range { lowest: Figure::Finite(lowest), highest: Figure::Finite(highest) });
    let across_intervals = AcrossIntervals {
        p50: range(16_900, 17_400),
        p99: range(21_000, 44_000),
        max: range(70_000, 95_000),
        first_max: Some(Figure::Finite(832_000)),
        later_max: Some(Figure::Finite(95_000)),
    };
    let run = Made::quiet().but(|run| run.plan.offered_rate_hz = Rate::new(rate)).run;
    let made = |n: u32| SeriesRun { directory: format!("{name}/{n}"), across_intervals, run: run.clone() };
    let across = AcrossRuns {
        runs: repetitions.into(),
        mean: spread(17_100, 17_200, 17_900),
        p50: spread(17_000, 17_100, 17_400),
        p99: spread(21_000, 25_000, 44_000),
        p999: spread(61_000, 70_000, 81_000),
        max: spread(95_000, 830_000, 1_200_000),
    };
    Series {
        name: name.to_owned(),
        repetitions,
        whole: across,
        after_warm_up: AcrossRuns { max: spread(80_000, 90_000, 95_000), ..across },
        used: Used {
            pinger_ns_per_message: Some(9_876.5),
            reflector_ns_per_message: Some(10_012.3),
            pinger_cores: Some(0.987),
            reflector_cores: Some(1.0),
            pinger_busy_share: Some(0.0816),
            reflector_busy_share: None,
            pinger_peak_bytes: Some(19 << 20),
            reflector_peak_bytes: Some(8 << 20),
        },
        runs: (1..=repetitions).map(made).collect(),
        failed: Vec::new(),
    }
}

fn tried(rate: u64, held: bool, p99_us: u64) -> TriedRate {
    TriedRate {
        directory: format!("highest-rate/{rate}"),
        offered_rate_hz: rate,
        achieved_rate_hz: Some(100_000.0),
        held,
        gave_way: (!held).then_some(GaveWay::Generator),
        because: (!held).then(|| "sent later and later, by 5 ms a second".to_owned()),
        missing: 0,
        supply_to_receive_p50_ns: Figure::Finite(p99_us * 400),
        supply_to_receive_p99_ns: Figure::Finite(p99_us * 1_000),
        supply_to_receive_max_ns: Some(p99_us * 9_000),
        pinger_ns_per_message: None,
        pinger_busy_share: None,
        reflector_busy_share: None,
    }
}

fn result() -> SuiteResult {
    SuiteResult {
        format: SUITE_FORMAT,
        suite: "market-data".to_owned(),
        about: "latency at 100,000 messages/s, the highest sustained rate, and latency at that rate".to_owned(),
        digest: "00".to_owned(),
        seed: Seed::new(7),
        interrupted: false,
        base_rate: Some(series("base-rate", 100_000, 5)),
        highest_rate: Some(HighestRate {
            sustained_hz: Some(249_000),
            uncertainty_hz: Some(2_000),
            gave_way: Some(GaveWay::Generator),
            because: Some("sent later and later, by 5 ms a second".to_owned()),
            knee_hz: Some(200_000),
            allowed_loss: 0.0,
            allowed_shortfall: 0.001,
            runs: vec![
                tried(100_000, true, 17),
                tried(200_000, true, 31),
                tried(400_000, false, 250_000),
                tried(400_000, false, 240_000),
                tried(249_000, false, 900),
                tried(249_000, true, 120),
                tried(249_000, true, 140),
                tried(251_000, false, 9_000),
                tried(251_000, false, 9_500),
            ],
            failed: Vec::new(),
        }),
        top_rate: Some(series("top-rate", 249_000, 5)),
        scenarios: Vec::new(),
    }
}

#[test]
fn a_complete_suite_at_100() {
    assert_snapshot!(page(&result(), 100));
}

#[test]
fn a_complete_suite_at_72() {
    assert_snapshot!(page(&result(), 72));
}

#[test]
fn a_complete_suite_in_markdown() {
    assert_snapshot!(suite_markdown(&result()));
}

#[test]
fn a_suite_with_gaps_says_so() {
    let mut result = result();
    let highest = result.highest_rate.as_mut().unwrap();
    (highest.sustained_hz, highest.uncertainty_hz, highest.knee_hz) = (None, None, None);
    highest.runs = vec![tried(100_000, false, 17)];
    let mut small = series("64-bytes", 10_000, 2);
    small.runs[1].run.valid = false;
    small.runs[1].run.invalid_because = vec!["clock: ran away".to_owned()];
    small.whole.runs = 1;
    result.base_rate = None;
    result.top_rate = Some(Series {
        name: "top-rate".to_owned(),
        repetitions: 5,
        failed: vec![FailedRun { repetition: 1, because: "no rate was sustained".to_owned() }],
        ..Series::default()
    });
    result.scenarios = vec![small];
    assert_snapshot!(page(&result, 100));
    result.interrupted = true;
    assert!(page(&result, 100).starts_with("INTERRUPTED: the same command takes it up again\n"));
}

#[test]
fn a_suite_reads_back_and_cannot_act_on_a_terminal() {
    let mut result = result();
    let evil = "a\u{1b}[2J\nCOMPLETE".to_owned();
    result.about.clone_from(&evil);
    result.base_rate.as_mut().unwrap().name.clone_from(&evil);
    result.highest_rate.as_mut().unwrap().because = Some(evil.clone());
    result.top_rate.as_mut().unwrap().failed = vec![FailedRun { repetition: 1, because: evil }];
    for text in [page(&result, 80), suite_markdown(&result)] {
        assert!(!text.contains('\u{1b}') && !text.contains("\nCOMPLETE"), "{text}");
    }
    let json = suite_json(&result);
    let back: SuiteResult = serde_json::from_str(&json).unwrap();
    assert_eq!(back, result);
}

#[test]
fn no_line_is_wider_than_the_page() {
    let mut result = result();
    result.base_rate.as_mut().unwrap().name = "n".repeat(300);
    for width in [72, 80, 100, 200] {
        let page = page(&result, width);
        let widest = page.lines().map(|line| line.chars().count()).max().unwrap();
        assert!(widest <= width, "{widest} of {width}:\n{page}");
    }
}

#[test]
fn two_suites_side_by_side() {
    let (a, mut b) = (result(), result());
    let base = b.base_rate.as_mut().unwrap();
    base.whole.p50 = spread(18_000, 18_300, 18_900);
    base.runs[0].run.identity.host_hash.reflector = Some("feed".repeat(16));
    let top = b.top_rate.as_mut().unwrap();
    (top.repetitions, top.whole.runs) = (1, 1);
    b.highest_rate.as_mut().unwrap().sustained_hz = Some(250_000);
    assert_snapshot!(compare_suites(&a, &b, Style { width: 100, colour: false }));
}
