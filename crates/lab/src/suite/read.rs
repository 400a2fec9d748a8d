//! From a suite's text to the suite, or to everything that is wrong with it.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};
use tickpong_record::{Api, Pacing, Plan, ScheduleKind, Trace, hex};
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fields::{Problems, Table};
use super::{Problem, Scenario, Suite, Sweep};
use crate::search::{Limits, Strategy};

/// The version of the files that this reads.
const FORMAT: u32 = 1;
const ROOT: &[&str] = &["format", "suite", "about", "defaults", "base_rate", "highest_rate", "top_rate", "scenario"];
const PLAY: &[&str] = &[
    "rate",
    "size",
    "schedule",
    "trace",
    "duration",
    "warm_up",
    "interval",
    "deadline",
    "api",
    "closed",
    "seed",
    "repetitions",
];
const SEARCH: &[&str] = &["from", "to", "step", "resolution", "allow_loss", "allow_shortfall"];
/// Intervals that a run of the search must have after its warm-up: with fewer, no rise is certain.
const LEAST_INTERVALS: u64 = 8;
/// Directories of the parts that have no name of their own.
pub(crate) const BASE_RATE: &str = "base-rate";
pub(crate) const TOP_RATE: &str = "top-rate";
pub(crate) const HIGHEST_RATE: &str = "highest-rate";

type TraceText<'t> = &'t dyn Fn(&str) -> Result<String, String>;

pub(super) fn suite(text: &str, trace: TraceText<'_>) -> Result<Suite, Vec<Problem>> {
    let (root, errors) = DeTable::parse_recoverable(text);
    let mut problems = Problems::new(text);
    for error in errors {
        problems.at(error.span().map_or(0, |span| span.start), error.message());
    }
    let root = Table::root(&root);
    root.know(ROOT, &mut problems);
    match root.number("format", FORMAT..=FORMAT, &mut problems) {
        None if !root.has("format") => problems.at(0, format!("no format; begin the file with `format = {FORMAT}`")),
        _ => {}
    }
    let name = root.text("suite", &mut problems).unwrap_or_default().to_owned();
    if name.is_empty() {
        problems.at(0, "no name; say `suite = \"…\"`");
    }
    let about = root.text("about", &mut problems).unwrap_or_default().to_owned();
    let mut sub = |key: &str, known: &[&[&str]]| {
        let table = Table::new(root.value(key)?, &mut problems, key)?;
        table.know(&known.concat(), &mut problems);
        Some(table)
    };
    let defaults = sub("defaults", &[PLAY]);
    let base = sub("base_rate", &[PLAY]).map(|table| table.or(defaults));
    let search = sub("highest_rate", &[PLAY, SEARCH]).map(|table| table.or(defaults));
    let top = sub("top_rate", &[PLAY]).map(|table| table.or(defaults));
    let mut reader = Reader { trace, problems };
    let base_rate = base.and_then(|table| reader.scenario(&table, BASE_RATE.to_owned()));
    let highest_rate = search.and_then(|table| reader.sweep(&table));
    let top_rate = top.and_then(|table| reader.top(&table, search.is_some(), highest_rate.as_ref()));
    let scenarios = reader.scenarios(root.value("scenario"), defaults);
    let mut problems = reader.problems;
    if base.is_none() && search.is_none() && scenarios.is_empty() && !problems.any() {
        problems.at(0, "nothing to play; want [base_rate], [highest_rate] or [[scenario]]");
    }
    if problems.any() {
        return Err(problems.list());
    }
    let (digest, text) = (hex(&Sha256::digest(text)), text.to_owned());
    Ok(Suite { name, about, base_rate, highest_rate, top_rate, scenarios, text, digest })
}

struct Reader<'a> {
    trace: TraceText<'a>,
    problems: Problems<'a>,
}

impl<'a> Reader<'a> {
    fn scenarios(&mut self, value: Option<&'a Spanned<DeValue<'a>>>, defaults: Option<Table<'a>>) -> Vec<Scenario> {
        let Some(value) = value else { return Vec::new() };
        let Some(all) = value.get_ref().as_array() else {
            self.problems.at(value.span().start, "scenario is no list: want [[scenario]]");
            return Vec::new();
        };
        let mut seen = BTreeMap::from([BASE_RATE, TOP_RATE, HIGHEST_RATE].map(|taken| (taken.to_owned(), 0)));
        let mut scenarios = Vec::new();
        for value in all {
            let Some(table) = Table::new(value, &mut self.problems, "scenario") else { continue };
            table.know(&[&["name"], PLAY].concat(), &mut self.problems);
            let name = table.text("name", &mut self.problems).unwrap_or_default().to_owned();
            let byte = table.value("name").map_or(table.byte, |value| value.span().start);
            let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
            if name.is_empty() || name.len() > 64 || name.starts_with('.') || !name.chars().all(is_word) {
                let what = "a scenario's name is its directory's: want `name` of 1 to 64 of a-z, 0-9, -, _ and .";
                self.problems.at(byte, what);
            } else if let Some(first) = seen.insert(name.clone(), byte) {
                let taken = if first == 0 { "is the suite's own" } else { "is another scenario's, too" };
                self.problems.at(byte, format!("the name `{name}` {taken}: names must differ"));
            }
            scenarios.extend(self.scenario(&table.or(defaults), name));
        }
        scenarios
    }

    fn scenario(&mut self, table: &Table<'a>, name: String) -> Option<Scenario> {
        let rate = table.rate("rate", &mut self.problems);
        self.play(table, rate, name)
    }

    fn top(&mut self, table: &Table<'a>, has_sweep: bool, sweep: Option<&Sweep>) -> Option<Scenario> {
        if table.has("rate") || table.has("closed") || table.has("trace") {
            self.problems.at(table.byte, "top_rate has a rate of its own: it plays at the highest sustained one");
        }
        if !has_sweep {
            self.problems.at(table.byte, "top_rate without [highest_rate]: nothing would find its rate");
        }
        self.play(table, sweep?.plan.offered_rate_hz, TOP_RATE.to_owned())
    }

    fn play(&mut self, table: &Table<'a>, rate: Option<Rate>, name: String) -> Option<Scenario> {
        let repetitions = table.number("repetitions", 1..=1_000, &mut self.problems);
        let (plan, trace) = self.plan(table, rate)?;
        let repetitions = if table.value("repetitions").is_some() { repetitions? } else { 1 };
        Some(Scenario { name, plan, trace, repetitions })
    }

    /// A plan that can be run, if all of its fields make sense.
    fn plan(&mut self, table: &Table<'a>, rate: Option<Rate>) -> Option<(Plan, Option<Trace>)> {
        let p = &mut self.problems;
        let before = p.count();
        let trace = table.text("trace", p);
        let trace = trace.and_then(|name| {
            match (self.trace)(name).and_then(|text| Trace::parse(&text).map_err(|e| e.to_string())) {
                Ok(trace) => Some(trace),
                Err(what) => {
                    p.at(table.value("trace").map_or(table.byte, |value| value.span().start), what);
                    None
                }
            }
        });
        if table.has("trace") && (table.has("rate") || table.has("size") || table.has("schedule")) {
            p.at(table.byte, "a trace has its own rate, sizes and schedule: leave rate, size and schedule away");
        }
        let closed = table.flag("closed", p).unwrap_or_default();
        let schedule = table.parsed::<ScheduleKind>("schedule", p);
        let interval = table.time("interval", p).unwrap_or(Nanos::from_secs(1));
        let duration = table.time("duration", p).or(trace.as_ref().map(Trace::length));
        let plan = Plan {
            offered_rate_hz: if closed { None } else { trace.as_ref().map(Trace::mean_rate).or(rate) },
            payload_bytes: match &trace {
                Some(trace) => trace.largest(),
                None => table.size("size", p).unwrap_or(PayloadLen::STANDARD),
            },
            duration_ns: duration.unwrap_or(Nanos::from_secs(10)),
            warm_up_ns: table.time("warm_up", p).unwrap_or(interval),
            interval_ns: interval,
            deadline_ns: table.time("deadline", p).unwrap_or(Nanos::from_secs(1)),
            pacing: if closed { Pacing::Closed } else { Pacing::Open },
            schedule: match &trace {
                Some(trace) => ScheduleKind::Trace(trace.digest().to_owned()),
                None => schedule.unwrap_or(ScheduleKind::Fixed),
            },
            seed: table.parsed::<Seed>("seed", p).unwrap_or(Seed::new(1)),
            api_pinger: table.parsed::<Api>("api", p).unwrap_or_default(),
            api_reflector: Api::default(),
            tx_cpu: None,
            rx_cpu: None,
        };
        if !closed && plan.offered_rate_hz.is_none() && p.count() == before {
            p.at(table.byte, "no rate; say `rate = \"100k\"`, or `closed = true`, or name a trace");
        }
        if p.count() > before {
            return None;
        }
        match plan.checked() {
            Ok(plan) => Some((plan, trace)),
            Err(error) => {
                p.at(table.byte, error.to_string());
                None
            }
        }
    }

    fn sweep(&mut self, table: &Table<'a>) -> Option<Sweep> {
        let p = &mut self.problems;
        if table.has("rate") || table.has("closed") || table.has("trace") || table.has("repetitions") {
            p.at(
                table.byte,
                "highest_rate searches: it has `from` and `to`, and none of rate, closed, trace, repetitions",
            );
        }
        let before = p.count();
        let from = table.rate("from", p).or(Rate::new(100_000))?;
        let to = table.rate("to", p).or(Rate::new(10_000_000))?;
        let step = table.rate("step", p);
        let resolution = table.number("resolution", 0.001..=0.5, p).unwrap_or(Strategy::RESOLUTION);
        let mut limits = Limits::default();
        limits.loss = table.number("allow_loss", 0.0..=1.0, p).unwrap_or(limits.loss);
        limits.shortfall = table.number("allow_shortfall", 0.0..=1.0, p).unwrap_or(limits.shortfall);
        let judged = table.time("duration", p).unwrap_or(Nanos::from_secs(10));
        let interval = table.time("interval", p).unwrap_or(Nanos::from_secs(1));
        if judged.whole(interval) < LEAST_INTERVALS {
            let what =
                format!("{judged} of intervals of {interval}: want {LEAST_INTERVALS} at least, to see a wait grow");
            p.at(table.byte, what);
        }
        if from > to {
            p.at(table.byte, format!("a search from {from} to {to}: want the lower rate first"));
        }
        let sound = p.count() == before;
        let (plan, _) = self.plan(table, Some(from))?;
        let strategy = match step {
            Some(step) => Strategy::Steps { from, to, step },
            None => Strategy::Bisect { from, to, resolution },
        };
        sound.then_some(Sweep { plan, strategy, limits })
    }
}
