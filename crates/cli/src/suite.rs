//! `tickpong suite` and `tickpong sweep`, and what the demonstration shares with them.

use std::io::Stderr;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use anyhow::Context;
use tickpong_lab::campaign::{Campaign, Event};
use tickpong_lab::directory::{self, SuiteDirectory};
use tickpong_lab::judge::missing;
use tickpong_lab::player::{PingPlayer, Player, check};
use tickpong_lab::suite::{Scenario, Suite};
use tickpong_record::{Plan, Run, SuiteResult};
use tickpong_report::{clean, suite_json, suite_markdown, suite_text};
use tickpong_runner::PingSettings;
use tickpong_units::{Nanos, Seed};

use crate::arguments::{ResultsArguments, SuiteArguments, SuiteFormat, SweepArguments};
use crate::progress::ProgressLine;
use crate::{exit, output, ping, stop};

/// How long a reflector that was lost has to come back.
const PATIENCE: Nanos = Nanos::from_secs(2);

pub(crate) fn run(arguments: &SuiteArguments) -> anyhow::Result<u8> {
    let stop = stop::on_signals()?;
    let suite = Suite::find(&arguments.suite)?;
    let settings = ping::settings(&arguments.far, first_plan(&suite))?;
    if arguments.plan_only {
        advise_plan(&suite);
        return Ok(exit::OK);
    }
    play(&suite, settings, &arguments.output, &arguments.results, &stop)
}

pub(crate) fn sweep(arguments: &SweepArguments) -> anyhow::Result<u8> {
    let stop = stop::on_signals()?;
    let suite = Suite::read("arguments", &search_of(arguments), &|name| Err(name.to_owned()))?;
    let settings = ping::settings(&arguments.far, first_plan(&suite))?;
    match &arguments.output {
        Some(output) => play(&suite, settings, output, &arguments.results, &stop),
        None => {
            let dir = tempfile::tempdir().context("make a directory for the runs")?;
            play(&suite, settings, &dir.path().join("sweep"), &arguments.results, &stop)
        }
    }
}

/// The search as a suite, so that there is one way to play, to keep and to report.
fn search_of(arguments: &SweepArguments) -> String {
    let step = arguments
        .step
        .map_or_else(|| format!("resolution = {:?}", arguments.resolution), |step| format!("step = {}", step.get()));
    // As long as intervals allow, up to the usual.
    let deadline = Nanos::from_secs(1).min(arguments.interval.saturating_mul(Plan::MAX_INTERVALS_A_DEADLINE));
    format!(
        "format = 1\nsuite = \"sweep\"\nabout = \"the highest sustained rate of {size} bytes\"\n[highest_rate]\nfrom = {}\nto = {}\n{step}\n\
         allow_loss = {:?}\nallow_shortfall = {:?}\nsize = {size}\nduration = \"{}ns\"\ninterval = \"{}ns\"\ndeadline = \"{}ns\"\napi = \"{}\"\n",
        arguments.from.get(),
        arguments.to.get(),
        arguments.allow_loss,
        arguments.allow_shortfall,
        arguments.duration.get(),
        arguments.interval.get(),
        deadline.get(),
        arguments.api,
        size = arguments.size.get(),
    )
}

/// Any plan of the suite: what the settings are completed with until a run has its own.
fn first_plan(suite: &Suite) -> Plan {
    let of_sweep = suite.highest_rate.as_ref().map(|sweep| sweep.plan.clone());
    suite.known().next().map(|scenario| scenario.plan.clone()).or(of_sweep).expect("a suite plays something")
}

/// Plays the suite into `output`, and prints what it came to.
fn play(
    suite: &Suite,
    settings: PingSettings,
    output: &Path,
    results: &ResultsArguments,
    stop: &AtomicBool,
) -> anyhow::Result<u8> {
    check(suite, &settings)?;
    let settings = PingSettings { labels: results.label.iter().cloned().collect(), ..settings };
    let mut player = PingPlayer { settings, stop };
    let result = campaign(suite, &mut player, output, results.order, results.fail_fast, stop)?;
    print(&result, results.format)
}

/// Plays the suite into `output`, with its progress, and writes what it came to there.
pub(crate) fn campaign(
    suite: &Suite,
    player: &mut dyn Player,
    output: &Path,
    order: Option<Seed>,
    fail_fast: bool,
    stop: &AtomicBool,
) -> anyhow::Result<SuiteResult> {
    let seed = order.map_or_else(tickpong_lab::campaign::chance, Ok)?;
    let directory = SuiteDirectory::open(output, suite, seed)?;
    advise_plan(suite);
    if directory.taken_up {
        output::advise(&format!("taking up {} again: what was played is kept", output.display()));
    }
    let mut follow = Follow::new();
    let mut watch = |event: Event<'_>| follow.event(event);
    let campaign =
        Campaign { suite, directory: &directory, player, fail_fast, stop, patience: PATIENCE, watch: &mut watch };
    let played = campaign.play();
    follow.line.clear();
    let result = played?;
    directory.write(directory::RESULT, suite_json(&result).as_bytes())?;
    directory.write(directory::SUMMARY, suite_markdown(&result).as_bytes())?;
    Ok(result)
}

/// Prints a suite's result, and gives its exit code.
pub(crate) fn print(result: &SuiteResult, format: SuiteFormat) -> anyhow::Result<u8> {
    output::result(&shown(result, format))?;
    let not_made = result.series().any(|series| !series.failed.is_empty());
    let invalid = result.series().flat_map(|series| &series.runs).any(|made| !made.run.valid);
    let search_failed = result.highest_rate.as_ref().is_some_and(|highest| !highest.failed.is_empty());
    Ok(match (result.interrupted, not_made || invalid || search_failed) {
        (true, _) => exit::INTERRUPTED,
        (false, true) => exit::INVALID,
        (false, false) => exit::OK,
    })
}

pub(crate) fn shown(result: &SuiteResult, format: SuiteFormat) -> String {
    match format {
        SuiteFormat::Json => suite_json(result),
        SuiteFormat::Markdown => suite_markdown(result),
        SuiteFormat::Text => suite_text(result, output::style()),
    }
}

/// What will be played, how often, and how long it takes.
fn advise_plan(suite: &Suite) {
    output::advise(&format!("suite {}: {}", clean(&suite.name), clean(&suite.about)));
    if let Some(sweep) = &suite.highest_rate {
        let (most, each) = (sweep.strategy.most_runs(), seconds(sweep.plan.length()));
        output::advise(&format!(
            "  highest-rate: a search of {most} runs of {each} at most, {}",
            seconds(sweep.longest())
        ));
    }
    for scenario in suite.known().chain(&suite.top_rate) {
        let Scenario { name, plan, repetitions, .. } = scenario;
        let is_top = suite.top_rate.as_ref().is_some_and(|top| &top.name == name);
        let rate = match plan.offered_rate_hz {
            _ if is_top => "the highest sustained rate".to_owned(),
            Some(rate) => format!("{rate}/s"),
            None => "a closed loop".to_owned(),
        };
        let schedule = plan.schedule.to_string();
        let schedule = schedule.split_once(' ').map_or(schedule.as_str(), |(kind, _)| kind).to_owned();
        output::advise(&format!(
            "  {name}: {repetitions} × {} at {rate}, {} bytes, {schedule}, {}",
            seconds(plan.length()),
            plan.payload_bytes,
            seconds(scenario.longest()),
        ));
    }
    output::advise(&format!("  at most {} in all", seconds(suite.longest())));
}

fn seconds(span: Nanos) -> String {
    let s = span.as_secs_f64();
    if s < 90.0 { format!("{s:.1} s") } else { format!("{:.1} min", s / 60.0) }
}

/// Follows a suite: on a terminal with a line that moves, elsewhere with a line a run.
struct Follow {
    line: ProgressLine<Stderr>,
    what: String,
}

impl Follow {
    fn new() -> Self {
        Self { line: ProgressLine::new(), what: String::new() }
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Begin(coming) => {
                let of = coming.of.map_or_else(String::new, |of| format!("/{of}"));
                let rate = coming.rate.map_or_else(String::new, |rate| format!(" at {rate}/s"));
                self.what = format!("{} {}{of}{rate}", coming.scenario, coming.repetition);
                self.line.head(format!("{}, {} left   ", self.what, seconds(coming.left)));
            }
            Event::Progress(progress) => self.line.show(progress),
            Event::Made { kept: true, .. } => {}
            Event::Made { run, kept: false } => self.say(&outcome(run)),
            Event::Failed { because, again: true } => self.say(&format!("{}; once more", clean(because))),
            Event::Failed { because, again: false } => self.say(&clean(because)),
        }
    }

    fn say(&mut self, how: &str) {
        self.line.clear();
        output::advise(&format!("{}: {how}", self.what));
    }
}

/// A run in one line.
fn outcome(run: &Run) -> String {
    if !run.valid {
        return clean(&run.invalid_because.join("; "));
    }
    let felt = run.after_warm_up.supply_to_receive_ns.as_ref();
    let quantile = |figure| output::figure(figure);
    let felt = felt.map(|felt| format!("p50 {}, p99 {}", quantile(felt.p50), quantile(felt.p99)));
    format!("{}, {} missing", felt.unwrap_or_default(), missing(run))
}
