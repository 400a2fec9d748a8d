//! A suite, played: every run once, in an order by chance, into a directory that can be taken up again.

mod curve;
mod shuffle;
mod spread;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

use thiserror::Error;
use tickpong_hostio::clock::sleep;
use tickpong_record::{
    FailedRun, HighestRate, IntervalTable, Plan, Run, SUITE_FORMAT, Series, SeriesRun, SuiteResult, file,
};
use tickpong_runner::Progress;
use tickpong_units::{Nanos, Rate, Seed};

use crate::directory::{DirectoryError, SuiteDirectory};
use crate::judge;
use crate::player::{Job, PlayError, Player};
use crate::search::Search;
use crate::suite::{HIGHEST_RATE, Scenario, Suite, Sweep, run_time};

/// What can end a suite before its time.
#[derive(Debug, Error)]
pub enum CampaignError {
    /// Its directory.
    #[error("{0}")]
    Directory(#[from] DirectoryError),
}

/// What happens while a suite is played.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A run begins.
    Begin(Coming<'a>),
    /// It goes on.
    Progress(Progress),
    /// It ended as a run; whether it was made before and only read.
    Made {
        /// The run.
        run: &'a Run,
        /// Whether it was there already.
        kept: bool,
    },
    /// It could not be made.
    Failed {
        /// Why not.
        because: &'a str,
        /// Whether it is tried again.
        again: bool,
    },
}

/// The run that begins.
#[derive(Clone, Copy, Debug)]
pub struct Coming<'a> {
    /// Its scenario.
    pub scenario: &'a str,
    /// Its number, of its scenario's.
    pub repetition: u32,
    /// How many its scenario has; unknown of a search.
    pub of: Option<u32>,
    /// Its rate.
    pub rate: Option<Rate>,
    /// What is left of the suite, this run included, at most.
    pub left: Nanos,
}

/// A suite under way.
pub struct Campaign<'a> {
    /// What is played.
    pub suite: &'a Suite,
    /// Where it goes.
    pub directory: &'a SuiteDirectory,
    /// What makes runs.
    pub player: &'a mut dyn Player,
    /// Whether the first run that cannot be made is the last.
    pub fail_fast: bool,
    /// Set by a person.
    pub stop: &'a AtomicBool,
    /// How long a reflector that was lost has to come back.
    pub patience: Nanos,
    /// Told of everything.
    pub watch: &'a mut (dyn FnMut(Event<'_>) + Send),
}

/// How one wanted run ended.
enum Outcome {
    Made(Box<Run>),
    Failed(String),
    /// By a person, or by `fail_fast`.
    Over,
}

/// A repetition that is still to be played.
struct Turn {
    scenario: Scenario,
    repetition: u32,
}

impl std::fmt::Debug for Campaign<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Campaign").field("suite", &self.suite.name).finish_non_exhaustive()
    }
}

impl Campaign<'_> {
    /// Plays what has not been played yet.
    ///
    /// # Errors
    ///
    /// When the directory fails. Runs that fail are among the results.
    pub fn play(mut self) -> Result<SuiteResult, CampaignError> {
        let suite = self.suite;
        let highest_rate = match &suite.highest_rate {
            Some(sweep) => Some(self.search(sweep)?),
            None => None,
        };
        let top = highest_rate.as_ref().and_then(|found| Rate::new(found.sustained_hz?));
        let mut series: BTreeMap<String, Series> = BTreeMap::new();
        let mut turns = Vec::new();
        for scenario in suite.known().cloned().chain(suite.top_rate.as_ref().zip(top).map(at_rate)) {
            let (name, repetitions) = (scenario.name.clone(), scenario.repetitions);
            series.insert(name.clone(), Series { name, repetitions, ..Series::default() });
            turns.extend((1..=repetitions).map(|repetition| Turn { scenario: scenario.clone(), repetition }));
        }
        shuffle::shuffle(&mut turns, self.directory.seed);
        let mut left: Nanos =
            turns.iter().fold(Nanos::ZERO, |sum, turn| sum.saturating_add(run_time(&turn.scenario.plan)));
        for turn in &turns {
            if !self.turn(turn, left, series.entry(turn.scenario.name.clone()).or_default())? {
                break;
            }
            left = Nanos::new(left.get().saturating_sub(run_time(&turn.scenario.plan).get()));
        }
        let mut take = |name: &str| {
            let series = series.remove(name)?;
            Some(spread::summed_up(series))
        };
        let unplayed = |scenario: &Scenario| Series {
            name: scenario.name.clone(),
            repetitions: scenario.repetitions,
            failed: vec![FailedRun { repetition: 1, because: "no rate was sustained".to_owned() }],
            ..Series::default()
        };
        Ok(SuiteResult {
            format: SUITE_FORMAT,
            suite: suite.name.clone(),
            about: suite.about.clone(),
            digest: suite.digest.clone(),
            seed: self.directory.seed,
            interrupted: self.is_stopped(),
            base_rate: suite.base_rate.as_ref().and_then(|scenario| take(&scenario.name)),
            highest_rate,
            top_rate: suite.top_rate.as_ref().map(|top| take(&top.name).unwrap_or_else(|| unplayed(top))),
            scenarios: suite.scenarios.iter().filter_map(|scenario| take(&scenario.name)).collect(),
        })
    }

    /// Plays one repetition; whether the suite goes on.
    fn turn(&mut self, turn: &Turn, left: Nanos, series: &mut Series) -> Result<bool, CampaignError> {
        let Turn { scenario, repetition } = turn;
        let name = format!("{}/{repetition}", scenario.name);
        let of = Some(scenario.repetitions);
        match self.run(&name, scenario, *repetition, of, left)? {
            Outcome::Made(run) => {
                let table = self.intervals(&name)?;
                let across_intervals = spread::across_intervals(&table, &run.plan);
                series.runs.push(SeriesRun { directory: name, across_intervals, run: *run });
                Ok(true)
            }
            Outcome::Failed(because) => {
                series.failed.push(FailedRun { repetition: *repetition, because });
                Ok(!self.fail_fast)
            }
            Outcome::Over => Ok(false),
        }
    }

    /// Searches for the highest sustained rate.
    fn search(&mut self, sweep: &Sweep) -> Result<HighestRate, CampaignError> {
        let mut search = Search::new(sweep.strategy);
        let (mut runs, mut failed) = (Vec::new(), Vec::new());
        let rest = self.suite.longest().get().saturating_sub(sweep.longest().get());
        while let Some(rate) = search.next() {
            let number = u32::try_from(runs.len()).unwrap_or(u32::MAX).saturating_add(1);
            let plan = sweep.at(rate);
            let name = format!("{HIGHEST_RATE}/{number:02}-{rate}");
            let still = sweep.strategy.most_runs().saturating_sub(u64::from(number) - 1);
            let left = run_time(&plan).saturating_mul(still).saturating_add(Nanos::new(rest));
            let scenario = Scenario { name: HIGHEST_RATE.to_owned(), plan, trace: None, repetitions: 1 };
            match self.run(&name, &scenario, number, None, left)? {
                Outcome::Made(run) => {
                    let failure = judge::failure(&run, &self.intervals(&name)?, sweep.limits);
                    search.tell(rate, failure.is_none());
                    runs.push(curve::tried(name, rate, &run, failure));
                }
                Outcome::Failed(because) => {
                    failed.push(FailedRun { repetition: number, because });
                    break;
                }
                Outcome::Over => break,
            }
        }
        Ok(curve::highest_rate(&search, sweep.limits, runs, failed))
    }

    /// One run: from the directory where it is there, else played; once more when the other end was lost.
    fn run(
        &mut self,
        name: &str,
        scenario: &Scenario,
        repetition: u32,
        of: Option<u32>,
        left: Nanos,
    ) -> Result<Outcome, CampaignError> {
        let Scenario { name: scenario, plan, trace, .. } = scenario;
        if let Some(found) = self.directory.finished(name, plan)? {
            (self.watch)(Event::Made { run: &found.run, kept: true });
            return Ok(Outcome::Made(Box::new(found.run)));
        }
        let output = self.directory.at(name);
        let job = Job { scenario, repetition, plan, trace: trace.as_ref(), output: &output };
        for again in [true, false] {
            if self.is_stopped() {
                return Ok(Outcome::Over);
            }
            (self.watch)(Event::Begin(Coming { scenario, repetition, of, rate: plan.offered_rate_hz, left }));
            let watch = &mut *self.watch;
            let played = self.player.play(&job, &mut |progress| watch(Event::Progress(progress)));
            let (because, may_come_back) = match played {
                Ok(run) if self.is_stopped() && run.interrupted => return Ok(Outcome::Over),
                Ok(run) => match lost(&run) {
                    Some(how) if again => {
                        self.directory.put_aside(name, "lost")?;
                        (how, true)
                    }
                    _ => {
                        (self.watch)(Event::Made { run: &run, kept: false });
                        return Ok(Outcome::Made(Box::new(run)));
                    }
                },
                Err(PlayError::Interrupted) => return Ok(Outcome::Over),
                Err(PlayError::Lost(because)) => (because, true),
                Err(PlayError::Failed(because)) => (because, false),
            };
            let again = again && may_come_back;
            (self.watch)(Event::Failed { because: &because, again });
            if !again {
                return Ok(Outcome::Failed(because));
            }
            sleep(self.patience);
        }
        Ok(Outcome::Over)
    }

    fn intervals(&self, name: &str) -> Result<IntervalTable, CampaignError> {
        let path = self.directory.at(name).join(file::INTERVALS);
        Ok(IntervalTable::read(&path).map_err(DirectoryError::from)?)
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A seed by chance.
///
/// # Errors
///
/// When the system has no random numbers.
pub fn chance() -> io::Result<Seed> {
    let mut bytes = [0; 4];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(Seed::new(u32::from_le_bytes(bytes).into()))
}

/// How the other end was lost, if it was.
fn lost(run: &Run) -> Option<String> {
    run.invalid_because.iter().find(|why| why.starts_with("reflector-lost: ")).cloned()
}

/// The scenario of the top rate, at that rate.
fn at_rate((top, rate): (&Scenario, Rate)) -> Scenario {
    Scenario { plan: Plan { offered_rate_hz: Some(rate), ..top.plan.clone() }, ..top.clone() }
}

#[cfg(test)]
mod tests;
