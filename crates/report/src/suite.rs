//! The summary of a suite: the three figures first, then every scenario, as text and as Markdown.

use tickpong_record::{AcrossRuns, Figure, HighestRate, Run, Spread, SuiteResult, TriedRate};

use crate::Style;
use crate::clean::clean;
use crate::grid::Grid;
use crate::number::{ABSENT, bytes, count, decimal, quantile, whole_micros};
use crate::page::{Colour, Page};

/// The longest bar of the curve, and what stands beside it.
const LONGEST_BAR: usize = 30;
const BESIDE_BAR: usize = 66;

/// One block of the summary: a heading, and a table or lines.
struct Block {
    heading: String,
    body: Body,
}

enum Body {
    Grid(Grid),
    Lines(Vec<String>),
}

/// The summary as a page for people.
pub fn suite_text(result: &SuiteResult, style: Style) -> String {
    let mut page = Page::new(style);
    let (word, colour, why) = verdict(result);
    page.verdict(word, colour, &why);
    page.blank();
    page.field("suite", &format!("{}: {}", clean(&result.suite), clean(&result.about)));
    page.field("order by", &format!("seed {}", result.seed));
    for Block { heading, body } in blocks(result, style.width.max(Style::MIN_WIDTH).saturating_sub(BESIDE_BAR)) {
        page.blank();
        page.hang("", 0, &heading);
        match body {
            Body::Grid(grid) => grid.text(&mut page),
            Body::Lines(lines) => lines.iter().for_each(|line| page.hang("  ", 2, line)),
        }
    }
    page.finish()
}

/// The same as Markdown, for a pull request or a file beside the results.
pub fn suite_markdown(result: &SuiteResult) -> String {
    let (word, _, why) = verdict(result);
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    let mut text = format!("# {}\n\n**{word}**{why}\n\n{}\n", clean(&result.suite), clean(&result.about));
    for Block { heading, body } in blocks(result, LONGEST_BAR) {
        let body = match body {
            Body::Grid(grid) => grid.markdown(),
            Body::Lines(lines) => format!("- {}\n", lines.join("\n- ")),
        };
        for part in ["\n## ", &heading, "\n\n", &body] {
            text.push_str(part);
        }
    }
    text
}

/// `suite.json`, as it is written, with its last line's end.
///
/// # Panics
///
/// Never: a result serialises.
pub fn suite_json(result: &SuiteResult) -> String {
    crate::escaped(serde_json::to_string_pretty(result).expect("a result serialises"))
}

fn verdict(result: &SuiteResult) -> (&'static str, Colour, String) {
    let not_made: usize = result.series().map(|series| series.failed.len()).sum();
    let not_made = not_made + result.highest_rate.as_ref().map_or(0, |highest| highest.failed.len());
    let made = || result.series().flat_map(|series| &series.runs);
    let invalid = made().filter(|made| !made.run.valid).count();
    let mut why = Vec::new();
    if not_made > 0 {
        why.push(format!("{not_made} runs could not be made"));
    }
    if invalid > 0 {
        why.push(format!("{invalid} runs are invalid"));
    }
    match (result.interrupted, why.is_empty()) {
        (true, _) => ("INTERRUPTED", Colour::Yellow, "the same command takes it up again".to_owned()),
        (false, true) => ("COMPLETE", Colour::Green, String::new()),
        (false, false) => ("INCOMPLETE", Colour::Red, why.join("; ")),
    }
}

fn blocks(result: &SuiteResult, room: usize) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut add = |heading: &str, body: Option<Body>| {
        blocks.extend(body.map(|body| Block { heading: heading.to_owned(), body }));
    };
    add(
        "latency, SupplyToReceive in µs: of each figure the middle one of all valid runs, the lowest, the highest",
        figures(result),
    );
    let highest = result.highest_rate.as_ref();
    add("highest sustained rate", highest.map(|highest| Body::Lines(highest_rate(highest))));
    add(
        "latency by offered rate, after warm-up, µs",
        highest.and_then(|highest| curve(highest, room.clamp(1, LONGEST_BAR))),
    );
    add("from interval to interval within a run, µs: lowest and highest of all runs", within(result));
    add("where the maximum was", Some(Body::Lines(maxima(result))).filter(|_| result.series().next().is_some()));
    add("CPU and memory: the middle run, and the most memory of any", used(result));
    let not_made = not_made(result);
    add("not made, or invalid", (!not_made.is_empty()).then_some(Body::Lines(not_made)));
    blocks
}

fn figures(result: &SuiteResult) -> Option<Body> {
    let mut grid = Grid::new(["", "rate/s", "bytes", "runs", "mean", "p50", "p99", "p99.9", "max"]);
    for series in result.series().filter(|series| !series.runs.is_empty()) {
        let run = &series.runs[0].run;
        let [rate, size] = played(run);
        let runs = format!("{} of {}", series.whole.runs, series.repetitions);
        rows(&mut grid, [clean(&series.name), rate, size, runs], &series.whole);
        if run.plan.warm_up_ns.get() > 0 {
            let beside = ["  after warm-up".to_owned(), String::new(), String::new(), String::new()];
            rows(&mut grid, beside, &series.after_warm_up);
        }
    }
    (!grid.is_empty()).then_some(Body::Grid(grid))
}

/// The middle, and where there are several runs the lowest and the highest below it.
fn rows(grid: &mut Grid, [name, rate, size, runs]: [String; 4], across: &AcrossRuns) {
    let of_all = |pick: fn(Spread) -> Figure| {
        let spreads = [across.mean, across.p50, across.p99, across.p999, across.max];
        spreads.map(|spread| spread.map_or_else(absent, |spread| quantile(pick(spread))))
    };
    let mut row = |[name, rate, size, runs]: [String; 4], [mean, p50, p99, p999, max]: [String; 5]| {
        grid.row([name, rate, size, runs, mean, p50, p99, p999, max]);
    };
    row([name, rate, size, runs], of_all(|spread| spread.median));
    if across.runs > 1 {
        let beside = |what: &str| [what.to_owned(), String::new(), String::new(), String::new()];
        row(beside("    lowest"), of_all(|spread| spread.lowest));
        row(beside("    highest"), of_all(|spread| spread.highest));
    }
}

fn played(run: &Run) -> [String; 2] {
    let rate = run.plan.offered_rate_hz.map_or_else(|| "closed".to_owned(), |rate| count(rate.get()));
    [rate, count(run.plan.payload_bytes.get() as u64)]
}

fn highest_rate(highest: &HighestRate) -> Vec<String> {
    let Some(held) = highest.sustained_hz else {
        let why = highest.because.as_deref().map_or_else(String::new, |because| format!(": {}", clean(because)));
        return vec![format!("none: not even the lowest rate was sustained{why}")];
    };
    let mut lines = vec![match highest.uncertainty_hz {
        Some(beyond) => format!("{}/s, and {}/s was not", count(held), count(held + beyond)),
        None => format!("{}/s: the end of the search, and nothing failed", count(held)),
    }];
    if let (Some(gave_way), Some(because)) = (highest.gave_way, &highest.because) {
        lines.push(format!("what gave way: {}: {}", gave_way.word(), clean(because)));
    }
    if let Some(knee) = highest.knee_hz {
        lines.push(format!("knee of the curve: {}/s, the highest with a p99 of at most twice the least", count(knee)));
    }
    let (loss, short) = (highest.allowed_loss * 100.0, highest.allowed_shortfall * 100.0);
    lines.push(format!(
        "sustained means: at most {loss} % lost or late, {short} % less sent than offered, no wait that grows by more than that, twice of \
         at most three runs"
    ));
    lines
}

/// One line a rate: of several runs the last that held, else the last.
fn curve(highest: &HighestRate, room: usize) -> Option<Body> {
    let mut rates: Vec<u64> = highest.runs.iter().map(|run| run.offered_rate_hz).collect();
    rates.sort_unstable();
    rates.dedup();
    let shown: Vec<&TriedRate> = rates
        .iter()
        .filter_map(|&rate| {
            let of_rate = || highest.runs.iter().rev().filter(move |run| run.offered_rate_hz == rate);
            of_rate().find(|run| run.held).or_else(|| of_rate().next())
        })
        .collect();
    let most = shown.iter().filter_map(|run| run.supply_to_receive_p99_ns.finite()).max()?;
    let least = shown.iter().filter_map(|run| run.supply_to_receive_p50_ns.finite()).min()?;
    let mut grid = Grid::new(["rate", "held", "p50", "p99", "max", "p99, log", ""]);
    for run in shown {
        let of_rate = || highest.runs.iter().filter(|other| other.offered_rate_hz == run.offered_rate_hz);
        let held = format!("{} of {}", of_rate().filter(|run| run.held).count(), of_rate().count());
        let is_answer = highest.sustained_hz == Some(run.offered_rate_hz);
        let is_knee = highest.knee_hz == Some(run.offered_rate_hz);
        let mark = match (is_answer, is_knee) {
            (true, true) => "◄ highest, knee",
            (true, false) => "◄ highest",
            (false, true) => "◄ knee",
            (false, false) => "",
        };
        grid.row([
            format!("{:>9}", count(run.offered_rate_hz)),
            held,
            quantile(run.supply_to_receive_p50_ns),
            quantile(run.supply_to_receive_p99_ns),
            run.supply_to_receive_max_ns.map_or_else(absent, whole_micros),
            format!("{:<room$}", bar(run.supply_to_receive_p99_ns, least, most, room)),
            format!("{mark:<15}"),
        ]);
    }
    Some(Body::Grid(grid))
}

/// As long as the logarithm.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a few characters"
)]
fn bar(figure: Figure, least: u64, most: u64, room: usize) -> String {
    let share = match figure {
        Figure::Unsupported => return String::new(),
        Figure::Infinite => 1.0,
        Figure::Finite(ns) => {
            let above = |ns: u64| (ns.max(1) as f64 / least.max(1) as f64).ln().max(0.0);
            above(ns) / above(most).max(f64::MIN_POSITIVE)
        }
    };
    let length = 1 + (share.clamp(0.0, 1.0) * room.saturating_sub(1) as f64).round() as usize;
    "█".repeat(length)
}

fn within(result: &SuiteResult) -> Option<Body> {
    let mut grid = Grid::new(["", "p50", "p99", "max"]);
    for series in result.series().filter(|series| !series.runs.is_empty()) {
        let range = |pick: fn(&tickpong_record::AcrossIntervals) -> Option<tickpong_record::Range>| {
            let ranges: Vec<_> = series.runs.iter().filter_map(|run| pick(&run.across_intervals)).collect();
            let lowest = ranges.iter().filter_map(|range| range.lowest.finite()).min();
            let is_infinite = ranges.iter().any(|range| range.highest == Figure::Infinite);
            let highest = ranges.iter().filter_map(|range| range.highest.finite()).max();
            match (lowest, highest) {
                (Some(lowest), _) if is_infinite => format!("{} – inf", whole_micros(lowest)),
                (Some(lowest), Some(highest)) => format!("{} – {}", whole_micros(lowest), whole_micros(highest)),
                _ => absent(),
            }
        };
        grid.row([clean(&series.name), range(|of| of.p50), range(|of| of.p99), range(|of| of.max)]);
    }
    (!grid.is_empty()).then_some(Body::Grid(grid))
}

/// Whether the maxima are those of the first interval.
fn maxima(result: &SuiteResult) -> Vec<String> {
    let mut lines = Vec::new();
    for series in result.series().filter(|series| !series.runs.is_empty()) {
        let in_first =
            |run: &Run| run.whole.supply_to_receive_ns.as_ref().is_some_and(|felt| felt.max_at_interval == Some(0));
        let first = series.runs.iter().filter(|made| in_first(&made.run)).count();
        let greatest = |pick: fn(&tickpong_record::AcrossIntervals) -> Option<Figure>| {
            let all = series.runs.iter().filter_map(|run| pick(&run.across_intervals)?.finite());
            all.max().map_or_else(absent, |ns| format!("{} µs", whole_micros(ns)))
        };
        let warm = if series.runs[0].run.plan.warm_up_ns.get() > 0 { "warm-up" } else { "measured" };
        lines.push(format!(
            "{}: in the first interval ({warm}) of {first} of {} runs; greatest there {}, in all later intervals {}",
            clean(&series.name),
            series.runs.len(),
            greatest(|of| of.first_max),
            greatest(|of| of.later_max),
        ));
    }
    lines
}

fn used(result: &SuiteResult) -> Option<Body> {
    let mut grid = Grid::new(["", "CPU ns a message", "cores busy", "turns with work", "peak memory"]);
    let pair = |one: Option<f64>, other: Option<f64>, decimals: usize, unit: &str| {
        let text = |value: Option<f64>| value.map_or_else(absent, |value| decimal(value, decimals));
        format!("{} + {}{unit}", text(one), text(other))
    };
    for series in result.series().filter(|series| series.whole.runs > 0) {
        let used = &series.used;
        let [pinger_peak, reflector_peak] =
            [used.pinger_peak_bytes, used.reflector_peak_bytes].map(|peak| peak.map_or_else(absent, bytes));
        let percent = |share: Option<f64>| share.map(|share| share * 100.0);
        grid.row([
            clean(&series.name),
            pair(used.pinger_ns_per_message, used.reflector_ns_per_message, 0, ""),
            pair(used.pinger_cores, used.reflector_cores, 2, ""),
            pair(percent(used.pinger_busy_share), percent(used.reflector_busy_share), 1, " %"),
            format!("{pinger_peak} + {reflector_peak}"),
        ]);
    }
    (!grid.is_empty()).then_some(Body::Grid(grid))
}

fn not_made(result: &SuiteResult) -> Vec<String> {
    let mut lines = Vec::new();
    for series in result.series() {
        let failed = series.failed.iter().map(|run| (run.repetition.to_string(), run.because.clone()));
        let invalid = series.runs.iter().filter(|made| !made.run.valid);
        let invalid = invalid.map(|made| (made.directory.clone(), made.run.invalid_because.join("; ")));
        for (which, because) in failed.chain(invalid) {
            lines.push(format!("{} {}: {}", clean(&series.name), clean(&which), clean(&because)));
        }
    }
    let failed = result.highest_rate.iter().flat_map(|highest| &highest.failed);
    lines.extend(failed.map(|run| format!("highest-rate {}: {}", run.repetition, clean(&run.because))));
    lines
}

fn absent() -> String {
    ABSENT.to_owned()
}
