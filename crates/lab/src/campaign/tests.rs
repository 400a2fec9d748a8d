//! Suites against a player that makes runs up.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::AtomicBool;

use tempfile::tempdir;
use tickpong_record::{HOST_FORMAT, HostFacts, RunWriter};
use tickpong_units::Seed;

use super::*;
use crate::fixture;

const SUITE: &str = r#"
format = 1
suite = "three"
[defaults]
duration = "1s"
warm_up = "0s"
interval = "100ms"
repetitions = 2
[base_rate]
rate = "100k"
[highest_rate]
from = "100k"
[top_rate]
[[scenario]]
name = "small"
rate = "1k"
size = 64
"#;

fn suite() -> Suite {
    Suite::read("three.toml", SUITE, &|_| Err(String::new())).unwrap()
}

/// A machine that carries `capacity` messages a second, and what is to happen at which run.
struct MadeUp<'a> {
    capacity: u64,
    played: Vec<String>,
    fate: BTreeMap<usize, Fate>,
    stop: &'a AtomicBool,
}

#[derive(Clone, Copy, PartialEq)]
enum Fate {
    Unreachable,
    Lost,
    Broken,
    Interrupted,
}

impl<'a> MadeUp<'a> {
    fn new(stop: &'a AtomicBool) -> Self {
        Self { capacity: 250_000, played: Vec::new(), fate: BTreeMap::new(), stop }
    }
}

impl Player for MadeUp<'_> {
    fn play(&mut self, job: &Job<'_>, _: &mut (dyn FnMut(Progress) + Send)) -> Result<Run, PlayError> {
        let hz = job.plan.offered_rate_hz.unwrap().get();
        self.played.push(format!("{} {} at {hz}", job.scenario, job.repetition));
        let mut run = fixture::of_plan(job.plan.clone());
        let behind = if hz > self.capacity { 1_000 } else { 0 };
        match self.fate.get(&self.played.len()) {
            Some(Fate::Unreachable) => return Err(PlayError::Lost("nobody listens there".to_owned())),
            Some(Fate::Broken) => return Err(PlayError::Failed("it is broken".to_owned())),
            Some(Fate::Lost) => {
                run.invalid_because = vec!["reflector-lost: it hung up".to_owned()];
                (run.valid, run.interrupted) = (false, true);
            }
            Some(Fate::Interrupted) => {
                self.stop.store(true, Ordering::Relaxed);
                run.interrupted = true;
            }
            None => {}
        }
        write(job.output, &run, behind);
        Ok(run)
    }
}

/// A run directory whose intervals are later by so many microseconds each.
fn write(path: &Path, run: &Run, later_us: u64) {
    let facts = HostFacts {
        format: HOST_FORMAT,
        role: "pinger".to_owned(),
        boot_id: None,
        tickpong_version: String::new(),
        binary_sha256: None,
        facts: BTreeMap::new(),
        absent: BTreeMap::new(),
    };
    RunWriter::create(path, None, false).unwrap().finish(run, &facts, None).unwrap();
    let lateness: Vec<u64> = (0..10).map(|interval| 10 + interval * later_us).collect();
    fixture::write_intervals(&path.join(file::INTERVALS), &lateness, &[10; 10]);
}

/// Plays the suite into `path`; the result, and what was told.
fn play(path: &Path, player: &mut MadeUp<'_>, fail_fast: bool) -> (SuiteResult, Vec<String>) {
    let (suite, stop, mut told) = (suite(), player.stop, Vec::new());
    let directory = SuiteDirectory::open(path, &suite, Seed::new(7)).unwrap();
    let mut watch = |event: Event<'_>| match event {
        Event::Failed { because, again } => told.push(format!("{because}{}", if again { ", again" } else { "" })),
        Event::Made { kept: true, .. } => told.push("kept".to_owned()),
        _ => {}
    };
    let campaign = Campaign {
        suite: &suite,
        directory: &directory,
        player,
        fail_fast,
        stop,
        patience: Nanos::ZERO,
        watch: &mut watch,
    };
    (campaign.play().unwrap(), told)
}

#[test]
fn a_suite_makes_its_three_figures() {
    let (dir, stop) = (tempdir().unwrap(), AtomicBool::new(false));
    let mut player = MadeUp::new(&stop);
    let (result, told) = play(dir.path(), &mut player, false);
    let highest = result.highest_rate.unwrap();
    let (sustained, uncertainty) = (highest.sustained_hz.unwrap(), highest.uncertainty_hz.unwrap());
    assert!(sustained <= 250_000 && sustained + uncertainty > 250_000 && uncertainty < 6_000, "{highest:?}");
    assert_eq!(highest.because.as_deref(), Some("sent later and later, by 10 ms a second"));
    assert_eq!(result.base_rate.unwrap().runs.len(), 2);
    let top = result.top_rate.unwrap();
    assert_eq!(top.runs[1].run.plan.offered_rate_hz.unwrap().get(), sustained);
    assert_eq!(top.runs[1].directory, "top-rate/2");
    assert_eq!(result.scenarios[0].runs.len(), 2);
    assert!(told.is_empty() && !result.interrupted);
    insta::assert_snapshot!(player.played.join("\n"));
}

#[test]
fn what_was_played_is_not_played_again() {
    let (dir, stop) = (tempdir().unwrap(), AtomicBool::new(false));
    let mut player = MadeUp::new(&stop);
    player.fate.insert(5, Fate::Interrupted);
    let (result, _) = play(dir.path(), &mut player, false);
    assert!(result.interrupted && result.base_rate.unwrap().runs.is_empty());
    assert_eq!(player.played.len(), 5);
    stop.store(false, Ordering::Relaxed);
    let mut rest = MadeUp::new(&stop);
    let (result, told) = play(dir.path(), &mut rest, false);
    assert_eq!((told, rest.played[0].as_str()), (vec!["kept".to_owned(); 4], "highest-rate 5 at 283000"));
    assert!(dir.path().join("highest-rate/05-283k.interrupted-1").exists());
    let (other, stop) = (tempdir().unwrap(), AtomicBool::new(false));
    let (at_once, _) = play(other.path(), &mut MadeUp::new(&stop), false);
    assert_eq!(result, at_once, "the same as in one go");
}

#[test]
fn a_lost_reflector_is_tried_once_more_and_then_reported() {
    let (dir, stop) = (tempdir().unwrap(), AtomicBool::new(false));
    let mut player = MadeUp::new(&stop);
    player.capacity = 50_000;
    // The base rate is not sustained: what fails is among the scenarios.
    player.fate =
        BTreeMap::from([(3, Fate::Unreachable), (5, Fate::Lost), (7, Fate::Unreachable), (8, Fate::Unreachable)]);
    let (result, told) = play(dir.path(), &mut player, false);
    let expected = [
        "nobody listens there, again",
        "reflector-lost: it hung up, again",
        "nobody listens there, again",
        "nobody listens there",
    ];
    assert_eq!(told, expected);
    assert_eq!(result.series().map(|series| series.failed.len()).sum::<usize>(), 2, "with that of the top rate");
    assert_eq!(result.top_rate.unwrap().failed[0].because, "no rate was sustained");
}

#[test]
fn a_run_that_fails_is_marked_and_the_suite_goes_on_unless_asked_not_to() {
    for fail_fast in [false, true] {
        let (dir, stop) = (tempdir().unwrap(), AtomicBool::new(false));
        let mut player = MadeUp::new(&stop);
        player.capacity = 50_000;
        player.fate.insert(3, Fate::Broken);
        let (_, told) = play(dir.path(), &mut player, fail_fast);
        assert_eq!(told, ["it is broken"]);
        assert_eq!(player.played.len(), if fail_fast { 3 } else { 6 });
    }
}

#[test]
fn a_directory_is_one_suites_and_one_processes() {
    let dir = tempdir().unwrap();
    let suite = suite();
    let open = |path: &Path, suite: &Suite| SuiteDirectory::open(path, suite, Seed::new(1)).map(|_| ());
    let said = |path: &Path, suite: &Suite| open(path, suite).unwrap_err().to_string();
    let ours = dir.path().join("ours");
    let held = SuiteDirectory::open(&ours, &suite, Seed::new(1)).unwrap();
    assert!(said(&ours, &suite).ends_with("another tickpong does so at this moment"));
    drop(held);
    let edited = Suite::read("three.toml", &SUITE.replace("1k", "2k"), &|_| Err(String::new())).unwrap();
    assert!(
        said(&ours, &edited).contains("it holds those of another version of the suite three, and this is this one")
    );
    let other = Suite::find("quick").unwrap();
    assert!(said(&ours, &other).contains("it holds those of the suite three, and this is quick; name another with -o"));
    assert!(said(dir.path(), &suite).contains("it holds other things and no results"));
    std::fs::write(ours.join("order.json"), "{").unwrap();
    assert!(said(&ours, &suite).contains("order.json again: EOF"));
}
