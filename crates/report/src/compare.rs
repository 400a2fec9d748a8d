//! Two runs, or two suites, side by side.

use std::collections::BTreeMap;

use tickpong_record::{AcrossRuns, Figure, Metric, Run, RunDirectory, Series, Spread, SuiteResult};
use tickpong_stats::Histogram;
use tickpong_units::{Nanos, Quantile};

use crate::Style;
use crate::clean::clean;
use crate::grid::Grid;
use crate::number::{ABSENT, count, decimal, quantile, whole_micros};
use crate::page::Page;

/// Where the shift function is taken, in parts of a hundred thousand.
const SHARES: [u32; 9] = [10_000, 25_000, 50_000, 75_000, 90_000, 95_000, 99_000, 99_900, 99_990];

/// Two runs side by side: what differs about them, and the shift of every quantile.
///
/// Says first that one run each supports no conclusion.
pub fn compare_runs(a: &RunDirectory, b: &RunDirectory, style: Style) -> String {
    let mut page = Page::new(style);
    page.field(
        "A and B",
        "one run each: no difference below is a finding. Two runs of the same hosts differ, too, and how much cannot be seen from one \
         of each; compare two suites of several runs",
    );
    differences(&mut page, &a.run, &b.run);
    for metric in [Metric::SupplyToReceive, Metric::Rtt] {
        let of = |run: &RunDirectory| {
            let denominator = run.run.whole.metric(metric).map_or(0, |summary| summary.denominator);
            (run.histograms.get(&metric).cloned().unwrap_or_default(), denominator)
        };
        page.blank();
        page.line(&format!("{metric} of the whole runs, µs"));
        shift(of(a), of(b)).text(&mut page);
    }
    page.finish()
}

/// Two suites side by side, scenario by scenario.
pub fn compare_suites(a: &SuiteResult, b: &SuiteResult, style: Style) -> String {
    let mut page = Page::new(style);
    if a.digest != b.digest {
        let what = format!(
            "not the same suite: A is {}, B is {}, or they are of different text",
            clean(&a.suite),
            clean(&b.suite)
        );
        page.field("A and B", &what);
    }
    if let (Some(one), Some(other)) = (&a.highest_rate, &b.highest_rate) {
        let rate = |hz: Option<u64>| hz.map_or_else(|| "none".to_owned(), |hz| format!("{}/s", count(hz)));
        let unsure = one.uncertainty_hz.unwrap_or(0).max(other.uncertainty_hz.unwrap_or(0));
        let (one, other) = (one.sustained_hz, other.sustained_hz);
        let within = match (one, other) {
            (Some(one), Some(other)) if one.abs_diff(other) <= unsure => "; within what the search can tell apart",
            _ => "; one search each: a difference is no finding yet",
        };
        page.field("highest rate", &format!("{} → {}{within}", rate(one), rate(other)));
    }
    let others: BTreeMap<&str, &Series> = b.series().map(|series| (series.name.as_str(), series)).collect();
    for series in a.series() {
        let Some(other) = others.get(series.name.as_str()) else {
            page.field("only in A", &clean(&series.name));
            continue;
        };
        page.blank();
        page.line(&format!("{}, whole runs, SupplyToReceive in µs", clean(&series.name)));
        if let (Some(one), Some(two)) = (series.runs.first(), other.runs.first()) {
            differences(&mut page, &one.run, &two.run);
        }
        side_by_side(&series.whole, &other.whole).text(&mut page);
        conclusion(&mut page, &series.whole, &other.whole);
    }
    for name in others.keys().filter(|name| !a.series().any(|series| series.name == **name)) {
        page.field("only in B", &clean(name));
    }
    page.finish()
}

/// What must be the same for figures to be compared, and is not.
fn differences(page: &mut Page, a: &Run, b: &Run) {
    let rate =
        |run: &Run| run.plan.offered_rate_hz.map_or_else(|| "closed loop".to_owned(), |rate| format!("{rate}/s"));
    let hash = |hash: &Option<String>| hash.as_deref().map_or(ABSENT, |hash| hash.get(..12).unwrap_or(hash)).to_owned();
    let both = |pick: &dyn Fn(&Run) -> String| (pick(a), pick(b));
    let all = [
        ("valid", both(&|run| run.valid.to_string())),
        ("source", both(&|run| format!("{:?}", run.source).to_lowercase())),
        ("rate", both(&rate)),
        ("size", both(&|run| run.plan.payload_bytes.to_string())),
        ("schedule", both(&|run| run.plan.schedule.to_string())),
        ("duration", both(&|run| run.plan.duration_ns.to_string())),
        ("warm-up", both(&|run| run.plan.warm_up_ns.to_string())),
        ("network API", both(&|run| format!("{} / {}", run.plan.api_pinger, run.plan.api_reflector))),
        ("tickpong", both(&|run| run.identity.tickpong_version.clone())),
        ("pinger", both(&|run| hash(&run.identity.host_hash.pinger))),
        ("reflector", both(&|run| hash(&run.identity.host_hash.reflector))),
        ("lost + late", both(&|run| count(run.fates.lost.saturating_add(run.fates.late)))),
    ];
    for (key, (one, other)) in all.iter().filter(|(_, (one, other))| one != other) {
        page.field(key, &format!("{} → {}", clean(one), clean(other)));
    }
}

/// The shift of each quantile, from A to B.
fn shift((a, of_a): (Histogram, u64), (b, of_b): (Histogram, u64)) -> Grid {
    let mut grid = Grid::new(["", "A", "B", "B − A", "%"]);
    for share in SHARES {
        let Ok(q) = Quantile::new(f64::from(share) / 1e5) else { continue };
        let (one, other) = (Figure::from(a.quantile_of(q, of_a)), Figure::from(b.quantile_of(q, of_b)));
        let [difference, percent] = moved(one, other);
        grid.row([q.to_string(), quantile(one), quantile(other), difference, percent]);
    }
    let ends = [("min", a.min(), b.min()), ("max", a.max(), b.max())];
    for (name, one, other) in ends {
        let figure = |span: Option<Nanos>| span.map_or(Figure::Unsupported, |span| Figure::Finite(span.get()));
        let (one, other) = (figure(one), figure(other));
        let [difference, percent] = moved(one, other);
        grid.row([name.to_owned(), quantile(one), quantile(other), difference, percent]);
    }
    grid
}

fn side_by_side(a: &AcrossRuns, b: &AcrossRuns) -> Grid {
    let mut grid = Grid::new(["", "A: middle", "lowest", "highest", "B: middle", "lowest", "highest", "B − A", "%"]);
    for (name, one, other) in figures(a, b) {
        let [a_middle, a_lowest, a_highest] = three(one);
        let [b_middle, b_lowest, b_highest] = three(other);
        let median = |spread: Option<Spread>| spread.map_or(Figure::Unsupported, |spread| spread.median);
        let [difference, percent] = moved(median(one), median(other));
        let name = name.to_owned();
        grid.row([name, a_middle, a_lowest, a_highest, b_middle, b_lowest, b_highest, difference, percent]);
    }
    grid
}

fn figures(a: &AcrossRuns, b: &AcrossRuns) -> [(&'static str, Option<Spread>, Option<Spread>); 5] {
    [
        ("mean", a.mean, b.mean),
        ("p50", a.p50, b.p50),
        ("p99", a.p99, b.p99),
        ("p99.9", a.p999, b.p999),
        ("max", a.max, b.max),
    ]
}

/// What so many runs can say: only where all of one lie beyond all of the other, and how often chance alone does that.
fn conclusion(page: &mut Page, a: &AcrossRuns, b: &AcrossRuns) {
    if a.runs < 2 || b.runs < 2 {
        page.line("one run of A or of B: no difference above is a finding");
        return;
    }
    let order = |figure: Figure| figure.finite().unwrap_or(u64::MAX);
    let apart = figures(a, b).into_iter().filter_map(|(name, one, other)| {
        let (one, other) = (one?, other?);
        if order(other.lowest) > order(one.highest) {
            Some(format!("{name} higher"))
        } else if order(other.highest) < order(one.lowest) {
            Some(format!("{name} lower"))
        } else {
            None
        }
    });
    let apart: Vec<String> = apart.collect();
    let text = if apart.is_empty() {
        "the runs of A and B overlap in every figure".to_owned()
    } else {
        format!(
            "every run of B beyond every run of A: {}; chance alone puts one figure so in 1 of {} comparisons",
            apart.join(", "),
            decimal(orders(a.runs, b.runs) / 2.0, 0),
        )
    };
    page.hang("", 0, &text);
}

/// In how many orders `a` and `b` runs can lie.
#[expect(clippy::cast_precision_loss, reason = "a few digits are printed")]
fn orders(a: u64, b: u64) -> f64 {
    (1..=a.min(1_000)).map(|k| (b + k) as f64 / k as f64).product()
}

fn three(spread: Option<Spread>) -> [String; 3] {
    let shown = |pick: fn(Spread) -> Figure| spread.map_or_else(|| ABSENT.to_owned(), |spread| quantile(pick(spread)));
    [shown(|spread| spread.median), shown(|spread| spread.lowest), shown(|spread| spread.highest)]
}

/// The difference in microseconds, and in per cent of A.
#[expect(clippy::cast_precision_loss, reason = "four digits are printed")]
fn moved(a: Figure, b: Figure) -> [String; 2] {
    let (Some(one), Some(other)) = (a.finite(), b.finite()) else { return [ABSENT, ABSENT].map(str::to_owned) };
    let sign = if other >= one { "+" } else { "−" };
    let difference = one.abs_diff(other);
    let percent = if one == 0 { f64::NAN } else { difference as f64 / one as f64 * 100.0 };
    [format!("{sign}{}", whole_micros(difference)), format!("{sign}{}", decimal(percent, 1))]
}
