//! What a run leaves on disk: whole or not at all, and in agreement with itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use boon::{Compiler, Schemas};
use serde_json::Value;
use tempfile::tempdir;
use tickpong_hostio::clock::sleep;
use tickpong_record::{IntervalRow, Metric, RunDirectory, read_histograms};
use tickpong_units::Nanos;

use crate::support::{Reflector, Running, alone, number, pinger, run, text, valid_run, within};

const RUN_SCHEMA: &str = include_str!("../../../record/schemas/run.schema.json");
const HOST_SCHEMA: &str = include_str!("../../../record/schemas/host.schema.json");

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[track_caller]
fn assert_is_of(schema: &str, file: &Path) {
    let schema: Value = serde_json::from_str(schema).unwrap();
    let document: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let (mut schemas, mut compiler) = (Schemas::new(), Compiler::new());
    compiler.add_resource("schema.json", schema).unwrap();
    let schema = compiler.compile("schema.json", &mut schemas).unwrap();
    if let Err(error) = schemas.validate(&document, schema) {
        panic!("{}: {error:#}", file.display());
    }
    // A schema that takes anything would prove nothing.
    assert!(schemas.validate(&serde_json::json!({"format": "1.0"}), schema).is_err());
}

/// The rows of `intervals.csv`, a column's name to its field.
fn rows(file: &Path) -> Vec<BTreeMap<String, String>> {
    let text = fs::read_to_string(file).unwrap();
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap().split(',').collect();
    assert_eq!(header.join(","), IntervalRow::header());
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        assert_eq!(fields.len(), header.len(), "{line}");
        header.iter().zip(fields).map(|(name, field)| ((*name).to_owned(), field.to_owned())).collect()
    };
    lines.map(row).collect()
}

fn field(row: &BTreeMap<String, String>, name: &str) -> u64 {
    row[name].parse().unwrap_or_else(|error| panic!("{name}: {error}: {row:?}"))
}

#[test]
fn a_run_directory_is_complete_and_agrees_with_itself() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    let run = valid_run(&reflector.host(), &["-o", &text(&target), "--duration", "400ms"]);
    assert_eq!(names(dir.path()), ["run"], "nothing half-written is left beside");
    let files = ["histograms.hlog", "host-pinger.json", "host-reflector.json", "intervals.csv", "run.json"];
    assert_eq!(names(&target), files);
    assert_is_of(RUN_SCHEMA, &target.join("run.json"));
    assert_is_of(HOST_SCHEMA, &target.join("host-pinger.json"));
    assert_is_of(HOST_SCHEMA, &target.join("host-reflector.json"));
    let read = RunDirectory::read(&target).unwrap();
    assert_eq!(serde_json::to_value(&read.run).unwrap(), run);
    assert_eq!((&*read.pinger.role, &*read.reflector.unwrap().role), ("pinger", "reflector"));
    assert_eq!(run["identity"]["host_hash"]["pinger"], read.pinger.hash());
}

#[test]
fn intervals_add_up_to_the_run() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    // The last interval is half as long as the others.
    let run = valid_run(&reflector.host(), &["-o", &text(&target), "--duration", "450ms"]);
    let rows = rows(&target.join("intervals.csv"));
    assert_eq!(rows.len(), 6);
    for (index, row) in (0..).zip(&rows) {
        assert_eq!((field(row, "interval"), field(row, "start_ns")), (index, index * 100_000_000));
        assert_eq!(field(row, "length_ns"), if index == 5 { 50_000_000 } else { 100_000_000 });
        assert_eq!(field(row, "warm_up"), u64::from(index == 0));
        assert!(field(row, "pinger_resident_bytes") > 0, "{row:?}");
    }
    for fate in ["scheduled", "answered", "lost", "late", "unsent", "duplicate", "reordered"] {
        let sum = |rows: &[BTreeMap<String, String>]| rows.iter().map(|row| field(row, fate)).sum::<u64>();
        assert_eq!(sum(&rows), number(&run, &format!("/fates/{fate}")), "{fate}");
        assert_eq!(sum(&rows[1..]), number(&run, &format!("/fates_after_warm_up/{fate}")), "{fate} after warm-up");
    }
    for used in ["cpu", "user", "system"] {
        let sum: u64 = rows.iter().map(|row| field(row, &format!("pinger_{used}_ns"))).sum();
        let total = |key: &str| number(&run, &format!("/cpu/pinger/{key}_ns"));
        assert_eq!(sum, if used == "cpu" { total("user") + total("system") } else { total(used) }, "{used}");
    }
    for metric in ["supply_to_receive", "rtt"] {
        let longest = rows.iter().filter_map(|row| row[&format!("{metric}_max_ns")].parse::<u64>().ok()).max();
        assert_eq!(longest, Some(number(&run, &format!("/whole/{metric}_ns/max"))), "{metric}");
        let at = usize::try_from(number(&run, &format!("/whole/{metric}_ns/max_at_interval"))).unwrap();
        assert_eq!(rows[at][&format!("{metric}_max_ns")].parse().ok(), longest, "{metric} in interval {at}");
    }
}

#[test]
fn histograms_hold_what_the_run_counts() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    let run = valid_run(&reflector.host(), &["-o", &text(&target)]);
    let merged = read_histograms(&target.join("histograms.hlog")).unwrap();
    assert_eq!(merged.len(), Metric::ALL.len());
    for (metric, histogram) in merged {
        let count = number(&run, &format!("/whole/{}_ns/count", metric.tag()));
        assert_eq!(histogram.count(), count, "{metric}");
        assert!(count > 0, "{metric}");
    }
    let log = fs::read_to_string(target.join("histograms.hlog")).unwrap();
    assert_eq!(log.matches("Tag=rtt,").count(), 4, "one line an interval: {log}");
}

#[test]
fn a_killed_pinger_leaves_no_run_and_the_next_sweeps_up() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    let output = ["-o", &text(&target)];
    let arguments = [&output[..], &["--duration", "60s", "--observations"]].concat();
    let mut killed = Running::start(&mut pinger(&reflector.host(), &arguments));
    let partial = format!(".run.partial-{}", killed.id());
    let begun = within(std::time::Duration::from_secs(20), || dir.path().join(&partial).exists().then_some(()));
    assert!(begun.is_some(), "{:?}", names(dir.path()));
    sleep(Nanos::from_millis(400));
    assert!(!target.exists(), "a run that goes on has no directory of its name yet");
    killed.kill();
    assert_eq!(names(dir.path()), [partial]);
    reflector.says(" closed: ");
    // What another has left, or is still writing, is none of this run's business.
    let other = format!(".other.partial-{}", u32::MAX);
    let living = format!(".run.partial-{}", std::process::id());
    fs::create_dir(dir.path().join(&other)).unwrap();
    fs::create_dir(dir.path().join(&living)).unwrap();
    valid_run(&reflector.host(), &output);
    let mut expected = [other, living, "run".to_owned()];
    expected.sort();
    assert_eq!(names(dir.path()), expected);
}

#[test]
fn a_disclosure_of_another_major_version_is_not_read() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    valid_run(&reflector.host(), &["-o", &text(&target)]);
    for name in ["host-reflector.json", "host-pinger.json"] {
        let file = target.join(name);
        let later = fs::read_to_string(&file).unwrap().replacen("\"1.1\"", "\"2.0\"", 1);
        fs::write(&file, later).unwrap();
        run(&["report", &text(&target)]).is_refusal(2, &[name, "its format is 2.0, this tickpong reads 1.1"]);
    }
}
