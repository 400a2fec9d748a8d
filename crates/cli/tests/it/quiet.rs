//! Plans with long silent stretches: nothing is lost in them, and nothing runs out.

use std::fs;

use tempfile::tempdir;

use crate::support::{Reflector, alone, number, text, valid_run};

const SHORT_INTERVALS: [&str; 6] = ["--interval", "10ms", "--warm-up", "0ms", "--duration", "2500ms"];

#[test]
fn a_second_without_a_message_between_a_hundred_intervals_is_valid() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    for deadline in ["10ms", "100ms"] {
        let plan = [SHORT_INTERVALS.as_slice(), &["--rate", "1", "--deadline", deadline]].concat();
        let run = valid_run(&reflector.host(), &plan);
        assert_eq!(number(&run, "/fates/scheduled"), 3, "{run:#}");
    }
}

#[test]
fn a_trace_with_a_quiet_stretch_has_a_row_for_every_interval() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let dir = tempdir().unwrap();
    let (trace, directory) = (text(&dir.path().join("trace")), text(&dir.path().join("run")));
    fs::write(&trace, "1000000 264\n0 264\n1200000000 264\n").unwrap();
    for api in ["udp-block", "udp-spin"] {
        let plan = ["--schedule", "trace", &trace, "--deadline", "10ms", "--api", api, "-o", &directory];
        let run = valid_run(&reflector.host(), &[SHORT_INTERVALS.as_slice(), &plan].concat());
        // At 1, 1, 1201, 1202, 1202, 2402, 2403 and 2403 ms.
        assert_eq!(number(&run, "/fates/scheduled"), 8, "{run:#}");
        let rows = fs::read_to_string(dir.path().join("run/intervals.csv")).unwrap();
        assert_eq!(rows.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).count(), 250);
        fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn nor_does_silence_run_out_where_another_thread_sends() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let threads = ["--rate", "1", "--deadline", "100ms", "--tx-cpu=0", "--rx-cpu=0"];
    let run = valid_run(&reflector.host(), &[SHORT_INTERVALS.as_slice(), &threads].concat());
    assert_eq!(number(&run, "/fates/scheduled"), 3, "{run:#}");
}
