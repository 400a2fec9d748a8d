//! What holds of every page.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tickpong_record::{Fates, Figure, Metric, Run, Summary};
use tickpong_report::{Style, json, text};
use tickpong_stats::Histogram;
use tickpong_units::Nanos;

use crate::build::Made;

/// Of every size alike.
fn size() -> impl Strategy<Value = u64> {
    (any::<u64>(), 0_u32..64).prop_map(|(n, shift)| n >> shift)
}

fn figure() -> impl Strategy<Value = Figure> {
    prop_oneof![size().prop_map(Figure::Finite), Just(Figure::Infinite), Just(Figure::Unsupported)]
}

prop_compose! {
    fn summary()(
        count in size(),
        spans in prop::option::of((size(), size())),
        moments in prop::option::of((any::<f64>(), any::<f64>())),
        figures in prop::array::uniform5(figure()),
        at in prop::option::of((size(), size())),
        thin in prop::sample::subsequence(vec!["p50", "p90", "p99", "p999", "p9999"], 0..=5),
    ) -> Summary {
        let [p50, p90, p99, p999, p9999] = figures;
        Summary {
            count,
            denominator: count,
            min: spans.map(|(min, _)| min),
            mean: moments.map(|(mean, _)| mean),
            sd: moments.map(|(_, sd)| sd),
            p50, p90, p99, p999, p9999,
            max: spans.map(|(_, max)| max),
            max_at_interval: at.map(|(interval, _)| interval),
            max_at_ns: at.map(|(_, ns)| ns),
            clamped: count / 3,
            thin: thin.into_iter().map(str::to_owned).collect(),
        }
    }
}

prop_compose! {
    fn any_fates()(counts in prop::array::uniform7(size())) -> Fates {
        let [scheduled, answered, lost, late, unsent, duplicate, reordered] = counts;
        Fates { scheduled, answered, lost, late, unsent, duplicate, reordered }
    }
}

prop_compose! {
    /// Any numbers and any strings: nothing need fit together, as in a file that somebody edited.
    fn any_run()(
        fates in prop::array::uniform2(any_fates()),
        summaries in prop::array::uniform5(prop::option::of(summary())),
        later in prop::array::uniform5(prop::option::of(summary())),
        counts in prop::array::uniform8(size()),
        floats in prop::array::uniform4(prop::option::of(any::<f64>())),
        strings in prop::array::uniform8(any::<String>()),
        flags in prop::array::uniform4(any::<bool>()),
    ) -> Run {
        Made { run: base(), histograms: BTreeMap::new() }.but(|run| {
            [run.fates, run.fates_after_warm_up] = fates;
            for (window, of) in [(&mut run.whole, summaries), (&mut run.after_warm_up, later)] {
                [
                    window.supply_to_receive_ns,
                    window.rtt_ns,
                    window.send_lateness_ns,
                    window.turnaround_ns,
                    window.send_gap_ns,
                ] = of;
            }
            [run.losses.pinger_socket, run.losses.unexplained, run.ignored.stale, run.fall_behinds, ..] = counts;
            [_, _, _, _, run.sockets.receive_buffer_asked, run.sockets.receive_buffer_granted, ..] = counts;
            run.plan.interval_ns = Nanos::new(counts[6]);
            run.plan.warm_up_ns = Nanos::new(if flags[0] { counts[7] } else { 0 });
            [run.achieved_rate_hz, run.answered_rate_hz, ..] = floats;
            run.clock.drift_ppm = floats[2].unwrap_or(f64::NAN);
            if let Some(cpu) = &mut run.cpu.pinger {
                (cpu.ns_per_message, cpu.busy_share, cpu.user_ns) = (floats[3], floats[2], counts[0]);
                (cpu.voluntary_switches, cpu.involuntary_switches) = (counts[1], counts[2]);
            }
            [_, run.valid, run.interrupted, _] = flags;
            let [why, key, value, warning, version, kind, refused, testbed] = strings;
            run.invalid_because = if flags[3] { vec![why] } else { vec![] };
            run.labels = BTreeMap::from([(key, value)]);
            run.warnings = vec![warning];
            run.identity.tickpong_version = version;
            run.clock.kind = kind;
            run.clock.counter_refused = Some(refused);
            run.identity.testbed = Some(testbed);
        }).run
    }
}

/// Where the arbitrary parts are put in.
fn base() -> Run {
    static BASE: std::sync::OnceLock<Run> = std::sync::OnceLock::new();
    BASE.get_or_init(|| Made::quiet().run).clone()
}

fn histogram(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    for &ns in values {
        histogram.record(Nanos::new(ns));
    }
    histogram
}

proptest! {
    #[test]
    fn no_line_is_wider_than_the_page(
        run in any_run(),
        values in prop::collection::vec(size(), 0..50),
        width in 72_usize..=160,
    ) {
        let histograms = BTreeMap::from([(Metric::SupplyToReceive, histogram(&values))]);
        let page = text(&run, &histograms, Style { width, colour: false });
        for line in page.lines() {
            prop_assert!(line.chars().count() <= width, "{} > {width}: {line}", line.chars().count());
            prop_assert!(line.trim_end() == line, "blanks at the end: {line:?}");
        }
        prop_assert!(page.chars().all(|c| c == '\n' || !c.is_control()));
        prop_assert!(page.ends_with('\n') && !page.contains("\n\n\n"), "one blank line at a time");
    }

    /// The widest drawing there can be, which chance seldom finds.
    #[test]
    fn the_widest_drawing_fits_the_narrowest_page(lost in u64::MAX - 9..=u64::MAX, ns in 1_u64 << 40..=u64::MAX) {
        let mut run = base();
        run.fates.lost = lost;
        let histograms = BTreeMap::from([(Metric::SupplyToReceive, histogram(&[1, 40, 900, ns]))]);
        let page = text(&run, &histograms, Style { width: 72, colour: false });
        prop_assert!(page.lines().all(|line| line.chars().count() <= 72));
    }

    #[test]
    fn no_width_panics(run in any_run(), width in 0_usize..80) {
        let page = text(&run, &BTreeMap::new(), Style { width, colour: true });
        prop_assert!(!page.is_empty());
    }

    /// What a terminal shows is in the order in which it is.
    #[test]
    fn minimum_mean_and_maximum_are_shown_in_order(raw in prop::collection::vec(size(), 1..60)) {
        let mut made = Made { run: base(), histograms: BTreeMap::new() };
        made.run.plan.warm_up_ns = Nanos::ZERO;
        let made_of = crate::build::Values(raw.iter().map(|ns| (0, ns >> 22)).collect());
        made.measured(&std::array::from_fn(|_| made_of.clone()));
        let page = text(&made.run, &made.histograms, Style { width: 160, colour: false });
        let row = page.lines().find(|line| line.starts_with("RTT")).unwrap();
        let number = |cell: &str| cell.trim_end_matches('*').replace(',', "").parse().unwrap_or(f64::NAN);
        let cells: Vec<f64> = row.split_whitespace().skip(1).map(number).collect();
        let (min, mean, max) = (cells[0], cells[1], cells[8]);
        prop_assert!(min <= mean && mean <= max, "{row}");
        prop_assert!(cells[3..8].iter().all(|q| q.is_nan() || (min <= *q && *q <= max)), "{row}");
    }

    #[test]
    fn json_reads_back(run in any_run()) {
        let text = json(&run);
        prop_assert_eq!(text.lines().last(), Some("}"));
        prop_assert!(text.ends_with('\n'));
        prop_assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
        let back: serde_json::Value = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&back["labels"], &serde_json::to_value(&run.labels).unwrap());
        prop_assert_eq!(&back["fates"], &serde_json::to_value(run.fates).unwrap());
    }
}
