//! What plays one run of many.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use thiserror::Error;
use tickpong_record::{Api, Plan, Run, Trace};
use tickpong_runner::{PingSettings, Progress, RunnerError, ping, try_out};

use crate::suite::{HIGHEST_RATE, Problem, Suite, SuiteProblems};

/// One run that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// Its scenario.
    pub scenario: &'a str,
    /// From one.
    pub repetition: u32,
    /// What to play.
    pub plan: &'a Plan,
    /// The trace, where the plan plays one.
    pub trace: Option<&'a Trace>,
    /// Where its directory goes; it does not exist yet.
    pub output: &'a Path,
}

/// Makes runs.
pub trait Player {
    /// Makes one, and writes its directory.
    ///
    /// # Errors
    ///
    /// When it could not be made, or not be written. A run that went wrong is a run, and says so.
    fn play(&mut self, job: &Job<'_>, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Run, PlayError>;
}

/// Why a run was not made.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum PlayError {
    /// The other end could not be reached, or spoke to: it may be back in a moment.
    #[error("{0}")]
    Lost(String),
    /// It will not be better the next time.
    #[error("{0}")]
    Failed(String),
    /// A person wants it to end.
    #[error("interrupted")]
    Interrupted,
}

/// Plays against a reflector in this process.
#[derive(Debug)]
pub struct PingPlayer<'a> {
    /// Everything but plan, trace and output.
    pub settings: PingSettings,
    /// Set by a person.
    pub stop: &'a AtomicBool,
}

impl Player for PingPlayer<'_> {
    fn play(&mut self, job: &Job<'_>, progress: &mut (dyn FnMut(Progress) + Send)) -> Result<Run, PlayError> {
        let mut settings = self.settings.clone();
        settings.plan = job.plan.clone();
        settings.trace = job.trace.cloned();
        settings.output = Some(job.output.to_owned());
        settings.scenario = Some((job.scenario.to_owned(), job.repetition.into()));
        let finished = ping(&settings, self.stop, progress).map_err(|error| play_error(&error))?;
        match finished.not_written {
            Some(error) => Err(PlayError::Failed(in_full(&error))),
            None => Ok(finished.run),
        }
    }
}

/// What keeps a suite from being played here.
#[derive(Debug, Error)]
#[error("{problems}")]
pub struct Unplayable {
    /// Each cause once, with the scenarios that it concerns.
    pub problems: SuiteProblems,
    /// Whether other arguments would help; else the hosts must change.
    pub is_usage: bool,
}

/// Finds out what would keep a suite from being played here, before the first packet: a session of each kind is opened and let go.
///
/// # Errors
///
/// With everything that is wrong, and the scenarios that it concerns.
pub fn check(suite: &Suite, settings: &PingSettings) -> Result<(), Unplayable> {
    let plans = suite.known().chain(&suite.top_rate).map(|scenario| (scenario.name.as_str(), &scenario.plan));
    let search = suite.highest_rate.iter().map(|sweep| (HIGHEST_RATE, &sweep.plan));
    let mut tried: BTreeMap<String, Result<Api, RunnerError>> = BTreeMap::new();
    let mut wrong: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let mut is_usage = true;
    for (name, plan) in plans.chain(search) {
        let asked = PingSettings { plan: plan.clone(), ..settings.clone() };
        match tried.entry(plan.api_pinger.to_string()).or_insert_with(|| try_out(&asked)) {
            Ok(api) if *api == plan.api_pinger => {}
            Ok(api) => {
                let wanted = plan.api_pinger;
                let why = format!(
                    "want {wanted} at both ends, and the reflector plays by {api}; start it with --api {wanted}"
                );
                wrong.entry(why).or_default().push(name);
            }
            Err(error) => {
                is_usage &= matches!(error, RunnerError::NoSuchCpu { .. } | RunnerError::Plan(_) | RunnerError::Key(_));
                wrong.entry(in_full(error)).or_default().push(name);
            }
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let what = |(why, names): (String, Vec<&str>)| Problem { line: 0, what: format!("{}: {why}", names.join(", ")) };
    let problems = SuiteProblems { file: suite.name.clone(), problems: wrong.into_iter().map(what).collect() };
    Err(Unplayable { problems, is_usage })
}

fn play_error(error: &RunnerError) -> PlayError {
    match error {
        RunnerError::Interrupted => PlayError::Interrupted,
        RunnerError::Connect { .. }
        | RunnerError::Control { .. }
        | RunnerError::Silent { .. }
        | RunnerError::Busy { .. } => PlayError::Lost(in_full(error)),
        _ => PlayError::Failed(in_full(error)),
    }
}

/// An error with its causes.
pub(crate) fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let words = error.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        cause = error.source();
    }
    text
}
