//! What makes no sense, or cannot be: every refusal names what was tried, on what, and why not.

use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;
use tempfile::tempdir;

use crate::by_hand::KEY;
use crate::support::{Reflector, alone, key_file, ping, run, text};

/// Nobody listens on the discard port of this address, and no refusal below comes as far as looking.
const NOBODY: &str = "127.0.0.1:9";

fn refused(arguments: &[&str], words: &[&str]) {
    run(arguments).is_refusal(2, words);
}

#[test]
fn an_unknown_host_is_named() {
    let outcome = ping("no-such-host.invalid", &[]);
    outcome.is_refusal(5, &["failed to resolve the host name `no-such-host.invalid`: "]);
}

#[test]
fn nobody_listening_is_told_at_once() {
    // A port that was just free.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let outcome = ping(&address, &[]);
    let advice = "nobody listens there; start `tickpong reflect` on that host";
    outcome.is_refusal(5, &[&format!("failed to connect to the reflector at {address}: {advice}")]);
    assert!(outcome.took.get() < 5_000_000_000, "{outcome:#?}");
}

#[test]
fn a_wrong_or_missing_key_says_what_to_do() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let (ours, other) = (key_file(dir.path(), "ours", KEY), key_file(dir.path(), "other", &KEY.replace('0', "f")));
    let keyed = Reflector::start(&["--key-file", &ours]);
    let at = format!("failed to use the reflector at {}: it refused: ", keyed.address);
    let wrong = ping(&keyed.host(), &["--key-file", &other]);
    wrong.is_refusal(5, &[&at, "the key is another; give both sides the same --key-file"]);
    keyed.says("was sent away: it does not hold the key");
    ping(&keyed.host(), &[]).is_refusal(5, &[&at, "it wants a key; give this side the same --key-file"]);
    let open = Reflector::start(&[]);
    let outcome = ping(&open.host(), &["--key-file", &ours]);
    outcome.is_refusal(5, &["it has no key; give it the same --key-file, or leave this side's away"]);
}

#[test]
fn a_key_that_is_none_is_refused_on_either_side() {
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let words = [&*format!("failed to read the key: {key} may be read by others (mode 644); chmod 600 it")];
    refused(&["ping", NOBODY, "--key-file", &key], &words);
    refused(&["reflect", "--key-file", &key], &words);
    let short = key_file(dir.path(), "short", "secret");
    refused(&["reflect", "--key-file", &short], &[&format!("{short} holds 6 bytes; want 16 to 4096, such as from")]);
    let none = text(&dir.path().join("none"));
    refused(&["ping", NOBODY, "--key-file", &none], &[&format!("open {none}: No such file or directory")]);
    refused(&["ping", NOBODY, "--key-file", &text(dir.path())], &["is no regular file"]);
}

#[test]
fn a_short_key_in_the_environment_is_refused() {
    let mut command = crate::support::tickpong(&["reflect"]);
    let outcome = crate::support::Running::start(command.env("TICKPONG_KEY", "short")).finish();
    outcome.is_refusal(2, &["failed to read the key: TICKPONG_KEY holds 5 bytes; want 16 to 4096"]);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let rows: [(&[&str], &str); 12] = [
        (&["--rate", "0"], "a rate of zero sends nothing; want at least 1 message a second"),
        (&["--rate", "-5"], "-5"),
        (&["--rate", "fast"], "read `fast` as a rate: want whole messages a second, such as 12345, 100k or 1.5M"),
        (&["--size", "55"], "use a message of 55 bytes: the header alone is 56; want 56 to 65507"),
        (&["--size", "65508"], "use a message of 65508 bytes: one datagram carries at most 65507; want 56 to 65507"),
        (&["--duration", "10"], "read `10` as a time: the unit is missing; write 10ns, 10us, 10ms or 10s"),
        (&["--duration", "0s"], "plan a run of no duration"),
        (&["--warm-up", "150ms", "--interval", "100ms"], "want a whole number of intervals"),
        (&["--interval", "1ms"], "plan intervals of 1 ms: want at least 10 ms"),
        (&["--deadline", "30s"], "at most ten intervals may fit a deadline"),
        (&["--duration", "1000000s"], "want a week at most"),
        (&["--seed", "dice"], "dice"),
    ];
    for (arguments, words) in rows {
        refused(&[&["ping", NOBODY], arguments].concat(), &[words]);
        refused(&[&["demo"], arguments].concat(), &[words]);
    }
}

#[test]
fn a_schedule_that_is_none_is_refused() {
    let rows: [(&[&str], &str); 7] = [
        (&["--schedule", "sometimes"], "read `sometimes` as a schedule: want fixed, poisson, burst N or trace FILE"),
        (&["--schedule", "burst"], "read `burst` as a schedule"),
        (&["--schedule", "burst", "0"], "read `0` as a burst: want 1 to 1000000 messages"),
        (&["--schedule", "burst", "many"], "read `many` as a burst"),
        (&["--schedule", "fixed", "3"], "read `fixed 3` as a schedule"),
        (&["--schedule", "trace"], "read `trace` as a schedule"),
        (&["--schedule", ""], "read `` as a schedule"),
    ];
    for (arguments, words) in rows {
        refused(&[&["ping", NOBODY], arguments].concat(), &[words]);
    }
}

#[test]
fn contradictions_are_refused() {
    let rows: [(&[&str], &str); 6] = [
        (&["--closed", "--rate", "1k"], "'--closed' cannot be used with '--rate <RATE>'"),
        (&["--closed", "--schedule", "poisson"], "plan a closed loop with the schedule `poisson`"),
        (&["--closed", "--tx-cpu", "0", "--rx-cpu", "0"], "plan a closed loop on two threads"),
        (&["--cpu", "0", "--rx-cpu", "0"], "'--cpu <CPU>' cannot be used with '--rx-cpu <CPU>'"),
        (&["--observations"], "--output <DIR>"),
        (&["--label", "garbage"], "read `garbage` as a label: want KEY=VALUE"),
    ];
    for (arguments, words) in rows {
        refused(&[&["ping", NOBODY], arguments].concat(), &[words]);
    }
}

#[test]
fn a_cpu_that_does_not_exist_is_named_on_every_side() {
    let words = ["failed to use CPU 4321: this process may run on ", " only"];
    for flag in ["--cpu", "--tx-cpu", "--rx-cpu"] {
        refused(&["ping", NOBODY, flag, "4321"], &words);
    }
    refused(&["reflect", "--listen", "127.0.0.1:0", "--cpu", "4321"], &words);
    for flag in ["--cpu", "--reflector-cpu"] {
        refused(&["demo", "--hosts", "loopback", flag, "4321"], &words);
    }
    refused(&["ping", NOBODY, "--cpu", "-1"], &["-1"]);
}

#[test]
fn a_trace_that_is_none_is_refused_with_its_line() {
    let dir = tempdir().unwrap();
    let file = text(&dir.path().join("trace"));
    let play = ["ping", NOBODY, "--schedule", "trace", &file];
    let read = format!("failed to read the trace {file}: ");
    refused(&play, &[&read, "No such file or directory"]);
    for (content, words) in [
        ("1000 264\n10us 264\n", "line 2: read `10us 264` as a message: want inter-arrival in nanoseconds and payload"),
        ("1000 264 9\n", "line 1: read `1000 264 9` as a message"),
        ("5 10\n", "line 1: use a message of 10 bytes: the header alone is 56"),
        ("# only a comment\n\n", "there is no message in it"),
        ("0 264\n", "all its messages are due at the same instant"),
    ] {
        fs::write(&file, content).unwrap();
        refused(&play, &[&read, words]);
    }
    fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    refused(&play, &[&read, "UTF-8"]);
    fs::write(&file, "1000 264\n").unwrap();
    refused(&[&play[..], &["--rate", "1k"]].concat(), &["a trace has its own; leave --rate and --size away"]);
    refused(&["ping", NOBODY, "--schedule", "trace", &text(dir.path())], &["failed to read the trace"]);
}

#[test]
fn an_output_that_exists_is_never_replaced() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let words = "it exists already, and a run is never overwritten; name another with -o";
    let target = dir.path().join("run");
    fs::create_dir(&target).unwrap();
    fs::write(target.join("run.json"), "precious").unwrap();
    let refusal = format!("failed to write the run to {}: {words}", target.display());
    ping(&reflector.host(), &["-o", &text(&target)]).is_refusal(2, &[&refusal]);
    refused(&["demo", "--hosts", "loopback", "-o", &text(&target)], &[&refusal]);
    assert_eq!(fs::read_to_string(target.join("run.json")).unwrap(), "precious");
    let dangling = dir.path().join("dangling");
    std::os::unix::fs::symlink("nowhere", &dangling).unwrap();
    ping(&reflector.host(), &["-o", &text(&dangling)]).is_refusal(2, &[words]);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2, "nothing was left beside");
}

#[test]
fn an_output_that_cannot_be_written_is_told_before_the_run() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    for target in [file.join("run"), file.join("deep/run")] {
        let outcome = ping(&reflector.host(), &["-o", &text(&target)]);
        outcome.is_refusal(2, &["failed to create ", &text(&file)]);
    }
    // The reflector was not left in the middle of a session.
    crate::support::valid_run(&reflector.host(), &[]);
}

#[test]
fn a_reflector_that_cannot_listen_says_why() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let listen = |address: &str| run(&["reflect", "--listen", address]);
    let words = format!("failed to listen on {address} for pingers: Address already in use");
    listen(&address).is_refusal(5, &[&words]);
    // An address from the block for documentation, which is no host's.
    let foreign = run(&["reflect", "--listen", "192.0.2.1", "--insecure"]);
    foreign.is_refusal(5, &["failed to listen on 192.0.2.1:7410 for pingers: Cannot assign requested address"]);
    listen("nonsense").is_refusal(2, &["read `nonsense` as an address"]);
}

#[test]
fn a_data_address_that_cannot_be_used_is_the_pingers_to_know() {
    let _alone = alone();
    let taken = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let reflector = Reflector::start(&["--data", &address]);
    ping(&reflector.host(), &[]).is_refusal(5, &["it refused: ", &address, "Address already in use"]);
    reflector.says("was sent away: ");
    let bound = ping(&reflector.host(), &["--bind", "192.0.2.1"]);
    bound.is_refusal(5, &["192.0.2.1", "Cannot assign requested address"]);
    let interface = ping(&reflector.host(), &["--interface", "none9"]);
    interface.is_refusal(5, &["none9", "No such device"]);
}

#[test]
fn a_directory_that_holds_no_run_is_not_reported() {
    let dir = tempdir().unwrap();
    let report = |path: &Path| run(&["report", &text(path)]);
    let none = dir.path().join("none");
    let missing = format!("failed to read {}: No such file or directory", none.join("run.json").display());
    report(&none).is_refusal(2, &[&missing]);
    report(dir.path()).is_refusal(2, &["run.json: No such file or directory"]);
    let run_json = dir.path().join("run.json");
    let read = format!("failed to read {} as a run: ", run_json.display());
    for (content, words) in [
        ("", "EOF"),
        ("garbage", "expected value at line 1 column 1"),
        ("[]", "line 1"),
        ("{\"format\": 7}", "line 1"),
        ("{\"format\": \"one\"}", "`one` is no format version"),
        ("{\"format\": \"1.0\"}", "missing field"),
    ] {
        fs::write(&run_json, content).unwrap();
        report(dir.path()).is_refusal(2, &[&read, words]);
    }
    fs::write(&run_json, "{\"format\": \"2.3\", \"anything\": null}").unwrap();
    let later = "its format is 2.3, this tickpong reads 1.";
    report(dir.path()).is_refusal(2, &[later, "read it with the version that wrote it"]);
    report(&run_json).is_refusal(2, &["Not a directory"]);
}

#[test]
fn a_run_that_was_damaged_is_named_by_file_and_line() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    let played: Value = crate::support::valid_run(&reflector.host(), &["-o", &text(&target)]);
    assert_eq!(played["valid"], true);
    let report = || run(&["report", &text(&target)]);
    let log = target.join("histograms.hlog");
    let whole = fs::read(&log).unwrap();
    fs::write(&log, &whole[..whole.len() - 7]).unwrap();
    report().is_refusal(2, &["histograms.hlog, line ", "the log ends in the middle of a line"]);
    fs::write(&log, &whole).unwrap();
    fs::write(target.join("host-reflector.json"), "{}").unwrap();
    report().is_refusal(2, &["host-reflector.json as a host's disclosure: missing field"]);
    fs::remove_file(target.join("host-pinger.json")).unwrap();
    report().is_refusal(2, &["host-pinger.json: No such file or directory"]);
}

#[test]
fn no_command_and_unknown_ones_are_usage() {
    for arguments in [&["dance"][..], &["ping"], &["report"], &["reflect", "--fifo", "0"], &["ping", "a", "b"]] {
        let outcome = run(arguments);
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(2), ""), "{outcome:#?}");
        assert!(outcome.err.contains("Usage: tickpong") || outcome.err.contains("--help"), "{outcome:#?}");
    }
    assert_eq!(run(&[]).code, Some(2));
    assert_eq!(run(&["--version"]).code, Some(0));
}
