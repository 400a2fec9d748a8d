//! From a run or a disclosure to what people and programs read.
//!
//! Owns: the text page of each and its JSON, how numbers are printed, and that nothing a file says can act on a terminal.
//! Does not own: any figure (half-RTT alone is derived here), any judgement, files, standard output.
#![forbid(unsafe_code)]

mod chart;
mod clean;
mod compare;
mod disclosure;
mod grid;
mod hosts;
mod number;
mod page;
mod played;
mod suite;
mod table;

use std::collections::BTreeMap;

use tickpong_record::{Metric, Run};
use tickpong_stats::Histogram;

pub use clean::clean;
pub use compare::{compare_runs, compare_suites};
pub use disclosure::{Compared, differences, differences_json, host, host_json};
use page::Page;
pub use suite::{suite_json, suite_markdown, suite_text};

/// How a text looks.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Style {
    /// Characters that a line may have; fewer than [`Style::MIN_WIDTH`] count as so many.
    pub width: usize,
    /// Whether the verdict is coloured, by ANSI escapes. Whether the terminal and `NO_COLOR` want it is for the caller to find out.
    pub colour: bool,
}

impl Style {
    /// The narrowest page: below it, tables would say nothing.
    pub const MIN_WIDTH: usize = 72;
}

impl Default for Style {
    fn default() -> Self {
        Self { width: 100, colour: false }
    }
}

/// The page of a run: its validity first, what was played and what became of it, the figures, both ends, warnings last.
///
/// `histograms` are those of the whole run; without that of SupplyToReceive there is no drawing.
pub fn text(run: &Run, histograms: &BTreeMap<Metric, Histogram>, style: Style) -> String {
    let mut page = Page::new(style);
    played::verdict(&mut page, run);
    played::played(&mut page, run);
    played::fates(&mut page, run);
    table::figures(&mut page, run);
    table::maxima(&mut page, run);
    if let Some(histogram) = histograms.get(&Metric::SupplyToReceive) {
        chart::draw(&mut page, histogram, &run.fates);
    }
    hosts::ends(&mut page, run);
    played::warnings(&mut page, run);
    page.finish()
}

/// `run.json`, as it is written, with its last line's end.
///
/// Control characters that JSON does not mind and terminals do are escaped: the value read back is the same.
///
/// # Panics
///
/// Never: a run serialises.
pub fn json(run: &Run) -> String {
    escaped(serde_json::to_string_pretty(run).expect("a run serialises"))
}

/// JSON without the characters that it does not mind and terminals do, and with its last line's end.
fn escaped(mut json: String) -> String {
    // They stand in strings only: outside of them, JSON has no such characters.
    for control in '\u{7f}'..='\u{9f}' {
        if json.contains(control) {
            json = json.replace(control, &format!("\\u{:04x}", u32::from(control)));
        }
    }
    json.push('\n');
    json
}
