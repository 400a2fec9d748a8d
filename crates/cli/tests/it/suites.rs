//! Suites and searches on real sockets.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::tempdir;

use crate::support::{Outcome, Reflector, Running, alone, run, text, tickpong, within};

/// Low rates and few messages: what is tested is what becomes of the runs.
const SMALL: &str = r#"format = 1
suite = "small"
about = "three figures that nobody wants"

[defaults]
api = "udp-block"
duration = "200ms"
warm_up = "50ms"
interval = "50ms"
deadline = "400ms"
repetitions = 2

[base_rate]
rate = "1k"

[highest_rate]
from = "500"
to = "1k"
duration = "400ms"
allow_loss = 1.0
allow_shortfall = 1.0

[top_rate]
repetitions = 1

[[scenario]]
name = "poisson"
rate = "1k"
schedule = "poisson"
"#;

fn suite_file(dir: &Path, text: &str) -> String {
    let file = dir.join("small.toml");
    fs::write(&file, text).unwrap();
    self::text(&file)
}

fn suite(file: &str, host: &str, results: &Path, more: &[&str]) -> Outcome {
    let results = text(results);
    run(&[&["suite", file, host, "-o", &results, "--format", "json"], more].concat())
}

fn runs(result: &Value, series: &str) -> usize {
    result.pointer(&format!("{series}/runs")).and_then(Value::as_array).map_or(0, Vec::len)
}

#[test]
fn a_suite_is_played_reported_and_compared() {
    let _alone = alone();
    let (dir, reflector) = (tempdir().unwrap(), Reflector::start(&[]));
    let (file, results) = (suite_file(dir.path(), SMALL), dir.path().join("results"));
    let played = suite(&file, &reflector.host(), &results, &["--order", "7", "--label", "nic=none"]);
    // A machine that others use may make a run invalid; it is among the results all the same.
    assert!(matches!(played.code, Some(0 | 5)), "{played:#?}");
    let result = played.json();
    assert_eq!((runs(&result, "/base_rate"), runs(&result, "/top_rate"), runs(&result, "/scenarios/0")), (2, 1, 2));
    assert_eq!(result["highest_rate"]["sustained_hz"], 1_000, "{:#}", result["highest_rate"]);
    assert_eq!(result["base_rate"]["runs"][0]["labels"]["nic"], "none");
    let identity = &result["scenarios"][0]["runs"][1]["identity"];
    assert_eq!((&identity["scenario"], &identity["repetition"]), (&"poisson".into(), &2.into()));
    assert!(played.err.contains("at most ") && played.err.contains("poisson: 2 × "), "{}", played.err);
    assert!(played.err.contains("base-rate 1/2 at 1k/s: "), "a line a run: {}", played.err);
    // Everything is on disk.
    let on_disk = fs::read_to_string(results.join("suite.json")).unwrap();
    assert_eq!(on_disk, played.out);
    let again = run(&["report", &text(&results), "--format", "json"]);
    assert_eq!((again.code, again.out), (Some(0), played.out.clone()));
    let page = run(&["report", &text(&results)]);
    assert!(page.out.contains("highest sustained rate"), "{page:#?}");
    assert!(fs::read_to_string(results.join("summary.md")).unwrap().starts_with("# small\n"));
    let one = run(&["report", &text(&results.join("poisson/2")), "--format", "json"]);
    assert_eq!(one.json()["plan"]["schedule"], "poisson");
    // Played again, nothing is played.
    let kept = suite(&file, &reflector.host(), &results, &[]);
    assert_eq!(kept.out, played.out, "with the order it was begun with");
    assert!(kept.err.contains("taking up ") && !kept.err.contains("base-rate 1/2 at 1k/s: "), "{}", kept.err);
    // Another suite is refused.
    let other = suite_file(dir.path(), &SMALL.replace("1k", "2k"));
    let refused = suite(&other, &reflector.host(), &results, &[]);
    refused.is_refusal(2, &["it holds those of another version of the suite small", "name another with -o"]);
    // Side by side with itself.
    let compared = run(&["compare", &text(&results), &text(&results)]);
    assert!(compared.out.contains("overlap in every figure"), "{compared:#?}");
    let (first, second) = (text(&results.join("base-rate/1")), text(&results.join("base-rate/2")));
    let compared = run(&["compare", &first, &second]);
    assert!(
        compared.out.contains("no difference below is a finding") && compared.out.contains("p99.9"),
        "{compared:#?}"
    );
    run(&["compare", &first, &text(&results)]).is_refusal(2, &["one is a run, the other a suite"]);
}

#[test]
fn an_interrupted_suite_is_taken_up_again() {
    let _alone = alone();
    let (dir, reflector) = (tempdir().unwrap(), Reflector::start(&[]));
    let (file, results) = (suite_file(dir.path(), SMALL), dir.path().join("results"));
    let started = Running::start(&mut tickpong(&["suite", &file, &reflector.host(), "-o", &text(&results)]));
    let half = results.join("top-rate");
    within(std::time::Duration::from_secs(30), || half.exists().then_some(())).expect("half of it is played");
    kill(Pid::from_raw(started.id().cast_signed()), Signal::SIGINT).unwrap();
    let interrupted = started.finish();
    if interrupted.code != Some(130) {
        // The top rate was the last to be played.
        assert!(matches!(interrupted.code, Some(0 | 5)), "{interrupted:#?}");
        return;
    }
    assert!(interrupted.out.starts_with("INTERRUPTED"), "{interrupted:#?}");
    let rest = suite(&file, &reflector.host(), &results, &[]);
    let result = rest.json();
    assert_eq!((runs(&result, "/base_rate"), runs(&result, "/scenarios/0")), (2, 2), "{rest:#?}");
    assert_eq!(result["interrupted"], false);
}

#[test]
fn what_cannot_be_played_is_refused_before_the_first_packet() {
    let dir = tempdir().unwrap();
    let file = suite_file(dir.path(), "format = 1\nsuite = \"bad\"\n[[scenario]]\nname = \"a\"\nrate = 0\nsise = 64\n");
    let results = dir.path().join("results");
    let zero = format!("{file}:5: rate: read `0` as a rate");
    let unknown = format!("{file}:6: unknown key `sise`; did you mean `size`?");
    suite(&file, "127.0.0.1:9", &results, &[]).is_refusal(2, &[&zero, &unknown]);
    suite("quick", "127.0.0.1:9", &results, &[]).is_refusal(5, &["nobody listens there"]);
    suite("quikc", "127.0.0.1:9", &results, &[]).is_refusal(2, &["give a file, or one of market-data, quick"]);
    suite("quick", "127.0.0.1:9", &results, &["--cpu", "4000"]).is_refusal(2, &["use CPU 4000"]);
    let _alone = alone();
    let blocking = Reflector::start(&[]);
    let by_spinning =
        "base-rate, top-rate, highest-rate: want udp-spin at both ends, and the reflector plays by udp-block";
    suite("quick", &blocking.host(), &results, &[]).is_refusal(2, &[by_spinning, "start it with --api udp-spin"]);
    assert!(!results.exists(), "nothing was begun");
    let planned = suite("market-data", "127.0.0.1:9", &results, &["--plan-only"]);
    assert_eq!(planned.code, Some(0));
    assert!(planned.err.contains("highest-rate: a search of ") && planned.err.contains(" min in all"), "{planned:#?}");
}

#[test]
fn a_reflector_that_goes_away_is_reported_and_the_suite_goes_on_to_its_end() {
    let _alone = alone();
    let (dir, reflector) = (tempdir().unwrap(), Reflector::start(&[]));
    let fixed = "format = 1\nsuite = \"lost\"\n[defaults]\napi = \"udp-block\"\nduration = \"100ms\"\ninterval = \"50ms\"\n\
        deadline = \"200ms\"\n[[scenario]]\nname = \"only\"\nrate = \"1k\"\nrepetitions = 3\n";
    let (file, results) = (suite_file(dir.path(), fixed), dir.path().join("results"));
    let host = reflector.host();
    let started = Running::start(&mut tickpong(&["suite", &file, &host, "-o", &text(&results), "--format", "json"]));
    within(std::time::Duration::from_secs(30), || fs::read_dir(results.join("only")).ok()).expect("one is played");
    drop(reflector);
    let outcome = started.finish();
    let result = outcome.json();
    assert_eq!(outcome.code, Some(5), "{outcome:#?}");
    let failed = result["scenarios"][0]["failed"].as_array().unwrap();
    let gone = |run: &Value| run["because"].as_str().unwrap().contains("nobody listens there");
    assert!(failed.iter().any(gone), "{failed:#?} {}", outcome.err);
    assert!(outcome.err.contains("; once more"), "{}", outcome.err);
}

#[test]
fn a_search_alone_needs_no_directory() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let plan = ["--from", "500", "--to", "1k", "--duration", "400ms", "--interval", "50ms", "--api", "udp-block"];
    let lenient = ["--allow-loss", "1", "--allow-shortfall", "1", "--format", "json"];
    let host = reflector.host();
    let found = run(&[&["sweep", &host], &plan[..], &lenient[..]].concat());
    assert_eq!(found.json()["highest_rate"]["sustained_hz"], 1_000, "{found:#?}");
    run(&["sweep", &host, "--from", "2k", "--to", "1k"]).is_refusal(2, &["a search from 2k to 1k"]);
    run(&["sweep", &host, "--duration", "1s"]).is_refusal(2, &["want 8 at least, to see a wait grow"]);
}
