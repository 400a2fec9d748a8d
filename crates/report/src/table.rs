//! The table of figures, and where the longest values were.

use std::fmt::Write as _;

use tickpong_record::{Figure, Metric, Run, Summary, Window};
use tickpong_units::{Nanos, Quantile};

use crate::number::{ABSENT, count, micros, whole_micros};
use crate::page::Page;

const COLUMNS: usize = 9;

/// A number, and whether it is thin.
#[derive(Debug)]
struct Cell {
    text: String,
    thin: bool,
}

/// One metric in one part of the run.
#[derive(Debug)]
struct Row {
    name: String,
    cells: [Cell; COLUMNS],
}

/// One part of the run.
#[derive(Debug)]
struct Part {
    name: &'static str,
    rows: Vec<Row>,
}

/// What all tables of the page share, so that they stand in line.
#[derive(Debug)]
struct Layout {
    name: usize,
    columns: [usize; COLUMNS],
    starred: [bool; COLUMNS],
    gap: usize,
}

/// Every figure of the whole run, and again after the warm-up, where there was one.
pub(crate) fn figures(page: &mut Page, run: &Run) {
    let mut parts = vec![Part::new("whole run, µs", &run.whole)];
    if run.plan.warm_up_ns > Nanos::ZERO {
        parts.push(Part::new("after warm-up, µs", &run.after_warm_up));
    }
    if parts.iter().all(|part| part.rows.is_empty()) {
        page.blank();
        page.line("no message was measured");
        return;
    }
    let layout = Layout::of(&parts, page.width);
    for part in &parts {
        for columns in layout.blocks(page.width) {
            page.blank();
            layout.block(page, part, &columns);
        }
        if part.rows.is_empty() {
            page.line("no message was measured");
        }
    }
    footnotes(page, run, &parts);
}

impl Part {
    fn new(name: &'static str, window: &Window) -> Self {
        let mut rows = Vec::new();
        for metric in Metric::ALL {
            let Some(summary) = window.metric(metric) else { continue };
            rows.push(Row::new(metric.to_string(), summary, 1.0));
            if metric == Metric::Rtt {
                rows.push(Row::new("half-RTT ¹".to_owned(), summary, 0.5));
            }
        }
        Self { name, rows }
    }

    fn says(&self, text: &str) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.text == text)
    }

    fn has_thin(&self) -> bool {
        self.rows.iter().flat_map(|row| &row.cells).any(|cell| cell.thin)
    }
}

impl Row {
    #[expect(clippy::cast_precision_loss, reason = "four digits are printed")]
    fn new(name: String, summary: &Summary, scale: f64) -> Self {
        let span =
            |ns: Option<f64>| Cell { text: ns.map_or_else(|| ABSENT.to_owned(), |ns| micros(ns * scale)), thin: false };
        let exact = |ns: Option<u64>| span(ns.map(|ns| ns as f64));
        let quantile = |figure: Figure, name: &str| Cell {
            text: match figure {
                Figure::Finite(ns) => micros(ns as f64 * scale),
                Figure::Infinite => "inf".to_owned(),
                Figure::Unsupported => ABSENT.to_owned(),
            },
            thin: figure != Figure::Unsupported && summary.thin.iter().any(|thin| thin == name),
        };
        let cells = [
            exact(summary.min),
            span(summary.mean),
            span(summary.sd),
            quantile(summary.p50, "p50"),
            quantile(summary.p90, "p90"),
            quantile(summary.p99, "p99"),
            quantile(summary.p999, "p999"),
            quantile(summary.p9999, "p9999"),
            exact(summary.max),
        ];
        Self { name, cells }
    }
}

impl Layout {
    fn of(parts: &[Part], width: usize) -> Self {
        let rows = || parts.iter().flat_map(|part| &part.rows);
        let names = parts.iter().map(|part| part.name).chain(rows().map(|row| row.name.as_str()));
        let mut layout = Self {
            name: names.map(|name| name.chars().count()).max().unwrap_or(0),
            columns: headings().map(|heading| heading.chars().count()),
            starred: [false; COLUMNS],
            gap: 2,
        };
        for row in rows() {
            for (column, cell) in row.cells.iter().enumerate() {
                layout.columns[column] = layout.columns[column].max(cell.text.chars().count());
                layout.starred[column] |= cell.thin;
            }
        }
        if layout.blocks(width).len() > 1 {
            layout.gap = 1;
            if layout.blocks(width).len() > 1 {
                layout.gap = 2;
            }
        }
        layout
    }

    /// The columns, in as many blocks one below the other as the width asks for.
    fn blocks(&self, width: usize) -> Vec<Vec<usize>> {
        let mut blocks = vec![Vec::new()];
        let mut used = self.name;
        for column in 0..COLUMNS {
            let wide = self.gap + self.columns[column] + usize::from(self.starred[column]);
            if used + wide > width {
                blocks.push(Vec::new());
                used = self.name;
            }
            used += wide;
            blocks.last_mut().expect("there is always one").push(column);
        }
        blocks
    }

    fn block(&self, page: &mut Page, part: &Part, columns: &[usize]) {
        let headings = headings();
        self.row(page, part.name, columns, |column| (&headings[column], false));
        for row in &part.rows {
            self.row(page, &row.name, columns, |column| (&row.cells[column].text, row.cells[column].thin));
        }
    }

    fn row<'a>(&self, page: &mut Page, name: &str, columns: &[usize], cell: impl Fn(usize) -> (&'a str, bool)) {
        let mut line = format!("{name:<0$}", self.name);
        for &column in columns {
            let (text, thin) = cell(column);
            let star = match (self.starred[column], thin) {
                (false, _) => "",
                (true, false) => " ",
                (true, true) => "*",
            };
            // Writing to a string does not fail.
            let _ = write!(line, "{:1$}{text:>2$}{star}", "", self.gap, self.columns[column]);
        }
        page.line(&line);
    }
}

fn headings() -> [String; COLUMNS] {
    let quantile = |q: Quantile| q.to_string();
    [
        "min".to_owned(),
        "mean".to_owned(),
        "sd".to_owned(),
        quantile(Quantile::P50),
        quantile(Quantile::P90),
        quantile(Quantile::P99),
        quantile(Quantile::P999),
        quantile(Quantile::P9999),
        "max".to_owned(),
    ]
}

/// What the marks in the tables mean; only of those that stand there.
fn footnotes(page: &mut Page, run: &Run, parts: &[Part]) {
    page.blank();
    let windows = || [&run.whole, &run.after_warm_up].into_iter().take(parts.len());
    let summaries = || windows().flat_map(|window| Metric::ALL.into_iter().filter_map(|metric| window.metric(metric)));
    let mut note = |mark: &str, text: &str| page.hang(&format!("{mark:<5}"), 5, text);
    if windows().any(|window| window.rtt_ns.is_some()) {
        note("¹", "RTT / 2: an estimate, never a one-way delay");
    }
    if parts.iter().any(Part::has_thin) {
        note("*", "thin: fewer than ten messages lie beyond the quantile");
    }
    if parts.iter().any(|part| part.says("inf")) {
        note("inf", "the quantile falls among messages that were never answered in time");
    }
    if parts.iter().any(|part| part.says(ABSENT)) {
        note(ABSENT, "more than the data can say: no message lies beyond the quantile, or there are too few values");
    }
    if let Some(all) = run.whole.supply_to_receive_ns.as_ref().filter(|all| all.count != all.denominator) {
        let text = format!(
            "SupplyToReceive: quantiles over the {} scheduled messages; min, mean, sd and max over the {} answered",
            count(all.denominator),
            count(all.count)
        );
        note("", &text);
    }
    let clamped: u64 = summaries().map(|summary| summary.clamped).max().unwrap_or(0);
    if clamped > 0 {
        let text = format!(
            "{} values of one metric lie beyond the histogram's range: its highest quantiles are lower bounds",
            count(clamped)
        );
        note("", &text);
    }
}

/// Which interval held the longest SupplyToReceive and RTT: on real systems often the first.
pub(crate) fn maxima(page: &mut Page, run: &Run) {
    let mut said: Vec<(String, String)> = Vec::new();
    for metric in [Metric::SupplyToReceive, Metric::Rtt] {
        let Some((text, in_warm_up)) = run.whole.metric(metric).and_then(|summary| maximum(run, summary)) else {
            continue;
        };
        said.push((metric.to_string(), text));
        let later = run.after_warm_up.metric(metric).filter(|_| in_warm_up);
        let later = later.and_then(|summary| maximum(run, summary));
        said.extend(later.map(|(text, _)| ("after warm-up".to_owned(), text)));
    }
    if !said.is_empty() {
        page.blank();
        page.line("longest, and when its message was due, from the start of the run");
    }
    for (name, text) in said {
        page.hang(&format!("  {name:<17}"), 19, &text);
    }
}

/// The maximum and its place in words, and whether that lies in the warm-up.
fn maximum(run: &Run, summary: &Summary) -> Option<(String, bool)> {
    let max = whole_micros(summary.max?);
    let at = summary.max_at_ns.map(Nanos::new);
    let in_warm_up = at.is_some_and(|at| at < run.plan.warm_up_ns);
    let interval = summary.max_at_interval.map_or_else(String::new, |n| format!(" in interval {n}"));
    let when = at.map_or_else(String::new, |at| format!(", at {at}"));
    let warm_up = if in_warm_up { " (warm-up)" } else { "" };
    Some((format!("{} µs{interval}{warm_up}{when}", glued(&format!("{max:>9}"))), in_warm_up))
}

/// Padding that no line break takes away.
fn glued(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}
