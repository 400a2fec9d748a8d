//! What a suite plays.

mod builtin;
mod fields;
mod read;

use std::path::Path;

use sha2::{Digest, Sha256};
use thiserror::Error;
use tickpong_record::{Api, Plan, Trace, hex};
use tickpong_units::{Nanos, Rate};

use crate::search::{Limits, Strategy};

pub use builtin::BUILT_IN;
pub(crate) use read::HIGHEST_RATE;

/// What starting, connecting, calibrating and writing take beside a run, for the forecast of a suite's time.
const OVERHEAD: Nanos = Nanos::from_millis(700);

/// A suite that can be played: [`Suite::find`] and [`Suite::read`] are the only ways to one.
#[derive(Clone, Debug, PartialEq)]
pub struct Suite {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub about: String,
    /// Latency at the base rate.
    pub base_rate: Option<Scenario>,
    /// The search for the highest sustained rate.
    pub highest_rate: Option<Sweep>,
    /// Latency at that rate; the rate in its plan stands for the one that the search will find.
    pub top_rate: Option<Scenario>,
    /// All others.
    pub scenarios: Vec<Scenario>,
    /// The text that it was read from.
    pub text: String,
    /// Its SHA-256: what a directory of results belongs to.
    pub digest: String,
}

/// One plan, played several times.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// Unique in its suite; also the name of its directory.
    pub name: String,
    /// What to play.
    pub plan: Plan,
    /// The trace, where the plan plays one.
    pub trace: Option<Trace>,
    /// How often.
    pub repetitions: u32,
}

/// A search for the highest sustained rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// What to play; its rate is replaced by each candidate.
    pub plan: Plan,
    /// Which candidates.
    pub strategy: Strategy,
    /// What counts as sustained.
    pub limits: Limits,
}

/// Everything that is wrong with a suite, at once.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("play the suite {file}: {}", list(.problems, .file))]
pub struct SuiteProblems {
    /// Where it was read from.
    pub file: String,
    /// In the order of the file.
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Problem {
    /// From one; zero where it is none of the text's lines.
    pub line: usize,
    /// What is wrong, and what to do.
    pub what: String,
}

fn list(problems: &[Problem], file: &str) -> String {
    let line = |problem: &Problem| match problem.line {
        0 => format!("\n  {}", problem.what),
        line => format!("\n  {file}:{line}: {}", problem.what),
    };
    problems.iter().map(line).collect()
}

impl Suite {
    /// The suite of this name, or in this file.
    ///
    /// # Errors
    ///
    /// When there is none, or with everything that is wrong with it.
    pub fn find(name_or_file: &str) -> Result<Self, SuiteProblems> {
        if let Some((name, text)) = BUILT_IN.iter().find(|(name, _)| *name == name_or_file) {
            return Self::read(&format!("{name}.toml"), text, &builtin::trace);
        }
        let path = Path::new(name_or_file);
        let text = std::fs::read_to_string(path).map_err(|error| {
            let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let what = format!("{error}; give a file, or one of {}", names.join(", "));
            SuiteProblems { file: name_or_file.to_owned(), problems: vec![Problem { line: 0, what }] }
        })?;
        Self::read(name_or_file, &text, &|name| {
            let beside = path.parent().unwrap_or(Path::new("")).join(name);
            std::fs::read_to_string(&beside).map_err(|error| format!("read {}: {error}", beside.display()))
        })
    }

    /// Reads a suite; `trace` gives the text of a trace that it names.
    ///
    /// # Errors
    ///
    /// With everything that is wrong with it.
    pub fn read(file: &str, text: &str, trace: &dyn Fn(&str) -> Result<String, String>) -> Result<Self, SuiteProblems> {
        read::suite(text, trace).map_err(|problems| SuiteProblems { file: file.to_owned(), problems })
    }

    /// The scenarios whose plans are complete before anything is played: those of the base rate and all others.
    pub fn known(&self) -> impl Iterator<Item = &Scenario> {
        self.base_rate.iter().chain(&self.scenarios)
    }

    /// Has everything played by another network API; and so it is another suite.
    pub fn set_api(&mut self, api: Api) {
        let scenarios = self.base_rate.iter_mut().chain(&mut self.top_rate).chain(&mut self.scenarios);
        let plans = scenarios.map(|scenario| &mut scenario.plan);
        plans.chain(self.highest_rate.iter_mut().map(|sweep| &mut sweep.plan)).for_each(|plan| plan.api_pinger = api);
        self.text = format!("{}# All of it by {api}.\n", self.text);
        self.digest = hex(&Sha256::digest(&self.text));
    }

    /// How long all of it takes at most, but for what goes wrong.
    pub fn longest(&self) -> Nanos {
        let scenarios = self.known().chain(&self.top_rate).map(Scenario::longest);
        let sweep = self.highest_rate.as_ref().map_or(Nanos::ZERO, Sweep::longest);
        scenarios.fold(sweep, Nanos::saturating_add)
    }
}

impl Scenario {
    /// How long all its runs take.
    pub fn longest(&self) -> Nanos {
        run_time(&self.plan).saturating_mul(self.repetitions.into())
    }
}

impl Sweep {
    /// How long the search takes at most.
    pub fn longest(&self) -> Nanos {
        run_time(&self.plan).saturating_mul(self.strategy.most_runs())
    }

    /// The plan of one candidate.
    pub fn at(&self, rate: Rate) -> Plan {
        Plan { offered_rate_hz: Some(rate), ..self.plan.clone() }
    }
}

/// How long a run of this plan takes.
pub(crate) fn run_time(plan: &Plan) -> Nanos {
    plan.length().saturating_add(OVERHEAD)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> String {
        let nothing = |name: &str| Err(format!("read {name}: no such file"));
        Suite::read("mine.toml", text, &nothing)
            .map_or_else(|problems| problems.to_string(), |suite| format!("{:#?}", suite.scenarios))
    }

    #[test]
    fn the_suites_that_come_with_it_can_be_played() {
        let forecasts = BUILT_IN.iter().map(|(name, _)| {
            let suite = Suite::find(name).unwrap();
            assert_eq!(&suite.name, name);
            format!("{name}: {}\n", suite.longest())
        });
        insta::assert_snapshot!(forecasts.collect::<String>());
    }

    #[test]
    fn what_a_suite_leaves_out_is_its_defaults() {
        insta::assert_snapshot!(problems(
            r#"
format = 1
suite = "mine"
[defaults]
rate = "20k"
duration = "2s"
api = "udp-block"
[[scenario]]
name = "small"
size = 100
repetitions = 2
"#
        ));
    }

    #[test]
    fn everything_that_is_wrong_is_said_at_once() {
        insta::assert_snapshot!(problems(
            r#"format = 1
suite = "mine"
repititions = 3
[defaults]
rate = 0
durration = "2s"
[top_rate]
rate = "1k"
[[scenario]]
name = "twice"
rate = "1k"
size = 70000
[[scenario]]
name = "twice"
rate = "1k"
duration = 10
[[scenario]]
name = "../up"
rate = "1k"
[[scenario]]
name = "base-rate"
rate = "1k"
api = "carrier-pigeon"
repetitions = 0
[[scenario]]
name = "late"
rate = true
warm_up = "1500ms"
[[scenario]]
name = "played"
trace = "nowhere.trace"
"#
        ));
    }

    #[test]
    fn what_is_no_suite_says_so() {
        let said = ["", "format = 2\nsuite = \"x\"", "format = [", "scenario = 3\nformat=1\nsuite='x'"].map(problems);
        insta::assert_snapshot!(said.join("\n\n"));
        let error = Suite::find("market-date").unwrap_err().to_string();
        assert!(error.contains("give a file, or one of market-data, quick, size-sweep, bursts"), "{error}");
    }

    #[test]
    fn a_search_that_cannot_be_is_refused() {
        let search = |fields: &str| problems(&format!("format = 1\nsuite = \"x\"\n[highest_rate]\n{fields}\n"));
        let said = [
            search("from = \"2M\"\nto = \"1M\""),
            search("resolution = 2.0"),
            search("rate = \"1k\""),
            search("duration = \"1s\"\ninterval = \"1s\""),
        ];
        insta::assert_snapshot!(said.join("\n\n"));
    }
}
