//! Sessions between a pinger and a reflector on one host, from the command line to what is printed.

use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv6Addr, TcpListener, UdpSocket};
use std::process::Command;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::tempdir;
use tickpong_hostio::clock::sleep;
use tickpong_hostio::socket::source_towards;
use tickpong_hostio::thread::allowed_cpus;
use tickpong_record::observations;
use tickpong_units::Nanos;
use tickpong_wire::control::{Message, PROTOCOL};

use crate::by_hand::{self, KEY, Line};
use crate::support::{
    Reflector, Running, alone, assert_fates_add_up, key_file, number, ping, pinger, run, text, valid, valid_run,
};

/// What other programs may rely on.
const KEYS: [&str; 23] = [
    "/ format source engine seed valid invalid_because interrupted labels identity plan fates losses",
    "/ achieved_rate_hz answered_rate_hz whole after_warm_up cpu memory clock sockets",
    "/identity started_at hosts testbed scenario occasion repetition plan_hash tickpong_version binary_sha256",
    "/identity/boot_id pinger reflector",
    "/identity/host_hash pinger reflector",
    "/plan offered_rate_hz payload_bytes duration_ns warm_up_ns interval_ns deadline_ns pacing schedule",
    "/plan api_pinger api_reflector",
    "/fates scheduled answered lost late unsent duplicate reordered",
    "/losses pinger_socket reflector_socket reflector_unanswered unexplained",
    "/whole supply_to_receive_ns rtt_ns send_lateness_ns turnaround_ns",
    "/after_warm_up supply_to_receive_ns rtt_ns send_lateness_ns turnaround_ns",
    "/whole/supply_to_receive_ns count denominator min mean sd p50 p90 p99 p999 p9999 max max_at_interval thin",
    "/after_warm_up/rtt_ns count denominator min mean sd p50 p90 p99 p999 p9999 max max_at_interval thin",
    "/cpu/pinger user_ns system_ns ns_per_message busy_share voluntary_switches involuntary_switches",
    "/cpu/reflector user_ns system_ns ns_per_message busy_share voluntary_switches involuntary_switches",
    "/memory/pinger resident_bytes peak_bytes minor_faults major_faults",
    "/memory/reflector resident_bytes peak_bytes minor_faults major_faults",
    "/in_force/pinger threads memory_locked dma_latency_held busy_poll_us",
    "/in_force/reflector threads memory_locked dma_latency_held busy_poll_us",
    "/in_force/reflector/threads/0 name cpus scheduling",
    "/clock kind frequency_hz read_cost_ns drift_ppm",
    "/sockets receive_buffer_asked receive_buffer_granted",
    "/whole/turnaround_ns count denominator min mean sd p50 p90 p99 p999 p9999 max max_at_interval thin",
];

#[test]
fn a_run_says_all_that_programs_rely_on() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let run = valid_run(&reflector.host(), &["--label", "nic=none", "--label", "note=a=b"]);
    for keys in KEYS {
        let mut words = keys.split(' ');
        let at = words.next().unwrap().trim_end_matches('/');
        for key in words {
            assert!(run.pointer(&format!("{at}/{key}")).is_some(), "{at}/{key} is missing in {run:#}");
        }
    }
    assert_fates_add_up(&run);
    assert_eq!(number(&run, "/fates/scheduled"), 800);
    assert_eq!(number(&run, "/fates_after_warm_up/scheduled"), 600);
    assert_eq!(number(&run, "/whole/supply_to_receive_ns/denominator"), 800);
    assert_eq!(run["labels"], serde_json::json!({"nic": "none", "note": "a=b"}));
    assert_eq!((&run["format"], &run["source"]), (&"1.0".into(), &"hardware".into()));
    assert_eq!((&run["plan"]["api_pinger"], &run["plan"]["api_reflector"]), (&"udp-block".into(), &"udp-block".into()));
    for metric in ["supply_to_receive_ns", "rtt_ns", "turnaround_ns", "send_lateness_ns"] {
        let of = |figure: &str| number(&run, &format!("/whole/{metric}/{figure}"));
        assert!(of("min") <= of("p50") && of("p50") <= of("p90"), "{metric} in {run:#}");
        let mean = run["whole"][metric]["mean"].as_f64().unwrap();
        #[expect(clippy::cast_precision_loss, reason = "far below 2^53")]
        let (min, max) = (of("min") as f64, of("max") as f64);
        assert!(min <= mean && mean <= max, "{metric} in {run:#}");
    }
    let line = reflector.says(" closed: ");
    assert!(line.ends_with("closed: 800 received, 800 answered; finished"), "{line}");
}

#[test]
fn a_report_from_the_directory_is_what_was_printed() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("runs/one");
    let printed = valid(|| pinger(&reflector.host(), &["-o", &text(&target)]), Some(&target));
    assert!(printed.out.lines().next().unwrap().to_lowercase().contains("valid"), "{printed:#?}");
    assert_eq!(printed.err, "", "no progress where standard error is no terminal");
    let report = |arguments: &[&str]| run(&[&["report", &text(&target)], arguments].concat());
    assert_eq!(report(&[]).out, printed.out);
    let json = report(&["--format", "json"]);
    assert_eq!((json.code, json.out), (Some(0), fs::read_to_string(target.join("run.json")).unwrap()));
    let both = report(&[&text(&target)]);
    assert_eq!(both.out.matches(&printed.out).count(), 2, "{both:#?}");
}

#[test]
fn every_schedule_is_played() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let poisson = valid_run(&reflector.host(), &["--schedule", "poisson", "--seed", "42"]);
    assert_fates_add_up(&poisson);
    // Within five standard deviations of the mean, which is the variance.
    assert!(number(&poisson, "/fates/scheduled").abs_diff(800) < 5 * 29, "{poisson:#}");
    assert_eq!((&poisson["plan"]["schedule"], number(&poisson, "/seed")), (&"poisson".into(), 42));
    let burst = valid_run(&reflector.host(), &["--schedule", "burst", "16"]);
    assert_fates_add_up(&burst);
    assert_eq!(number(&burst, "/fates/scheduled") % 16, 0, "{burst:#}");
    assert_eq!(burst["plan"]["schedule"], "burst 16");
    let trace = text(&dir.path().join("trace"));
    fs::write(&trace, "1000000 264\n0 1472\n500000 56 # the shortest\n").unwrap();
    let traced = valid_run(&reflector.host(), &["--schedule", "trace", &trace]);
    assert_fates_add_up(&traced);
    assert_eq!(
        (number(&traced, "/fates/scheduled"), number(&traced, "/plan/payload_bytes")),
        (798, 1_472),
        "266 rounds"
    );
    assert!(traced["plan"]["schedule"].as_str().unwrap().starts_with("trace "), "{traced:#}");
    let again = valid_run(&reflector.host(), &["--schedule", "poisson", "--seed", "42"]);
    assert_eq!(again["fates"]["scheduled"], poisson["fates"]["scheduled"], "the seed decides");
    assert_eq!(again["identity"]["plan_hash"], poisson["identity"]["plan_hash"]);
}

#[test]
fn a_closed_loop_has_no_rate_and_no_lateness() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let closed = valid_run(&reflector.host(), &["--closed"]);
    assert_fates_add_up(&closed);
    assert_eq!(closed["plan"]["pacing"], "closed");
    assert!(closed["plan"]["offered_rate_hz"].is_null() && closed["whole"]["send_lateness_ns"].is_null(), "{closed:#}");
    assert!(number(&closed, "/fates/answered") > 100, "{closed:#}");
}

#[test]
fn every_network_api_plays() {
    let _alone = alone();
    for api in ["udp-block", "udp-spin", "udp-busy-poll"] {
        let reflector = Reflector::of(crate::support::tickpong(&["reflect", "--listen", "127.0.0.1:0", "--api", api]));
        let run = ping(&reflector.host(), &["--api", api, "--rate", "1k", "--format", "json"]).played();
        assert_fates_add_up(&run);
        assert_eq!((&run["plan"]["api_pinger"], &run["plan"]["api_reflector"]), (&api.into(), &api.into()));
    }
}

#[test]
fn two_threads_play_where_there_are_two_cpus() {
    let _alone = alone();
    let allowed = allowed_cpus().unwrap();
    let &[tx, rx, ..] = &*allowed else {
        println!("skipped: one CPU is allowed here, and two threads need two");
        return;
    };
    let reflector = Reflector::start(&[]);
    let (tx, rx) = (tx.get().to_string(), rx.get().to_string());
    let run = ping(&reflector.host(), &["--tx-cpu", &tx, "--rx-cpu", &rx, "--format", "json"]).played();
    assert_fates_add_up(&run);
    let threads = run["in_force"]["pinger"]["threads"].as_array().unwrap();
    let word = |thread: &serde_json::Value, key: &str| thread[key].as_str().unwrap().to_owned();
    let placed: Vec<_> = threads.iter().map(|thread| (word(thread, "name"), word(thread, "cpus"))).collect();
    assert_eq!(placed, [("sender".to_owned(), tx), ("receiver".to_owned(), rx)]);
    assert!(number(&run, "/fates/answered") > 0, "{run:#}");
}

#[test]
fn hosts_may_be_named_in_many_ways() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    valid_run(&format!("localhost:{}", reflector.address.port()), &[]);
    if TcpListener::bind((Ipv6Addr::LOCALHOST, 0)).is_err() {
        println!("skipped: no IPv6 on this host");
        return;
    }
    let v6 = Reflector::listen("[::1]:0", &[]);
    assert!(v6.address.is_ipv6());
    assert_fates_add_up(&valid_run(&v6.host(), &[]));
    let other_family = ping(&v6.host(), &["--bind", "127.0.0.1"]);
    other_family.is_refusal(5, &["bind data to 127.0.0.1: the reflector's data address is ::1, of the other family"]);
    // One that listens on every address hears IPv4, too.
    let everywhere = Reflector::listen("[::]:0", &["--insecure"]);
    for host in ["127.0.0.1", "[::1]", "[::ffff:127.0.0.1]"] {
        assert_fates_add_up(&valid_run(&format!("{host}:{}", everywhere.address.port()), &[]));
    }
    everywhere.says("127.0.0.1:");
}

#[test]
fn a_host_that_cannot_be_read_is_no_other_host() {
    for host in ["[::1]:99999", "[::1]x", "127.0.0.1:x", "127.0.0.1:0", "[127.0.0.1", ""] {
        let words = format!("failed to read `{host}` as a host: want HOST, HOST:PORT or [IPV6]:PORT");
        ping(host, &[]).is_refusal(2, &[&words]);
    }
}

#[test]
fn observations_have_a_row_for_every_answer() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let reflector = Reflector::start(&[]);
    let target = dir.path().join("run");
    let run = valid_run(&reflector.host(), &["-o", &text(&target), "--observations"]);
    let rows = observations::read(&mut File::open(target.join("observations.bin")).unwrap()).unwrap();
    assert_eq!(rows.len() as u64, number(&run, "/fates/answered") + number(&run, "/fates/late"));
    let mut seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    seqs.sort_unstable();
    seqs.dedup();
    assert_eq!(seqs.len(), rows.len(), "each message once");
    for row in &rows {
        assert_eq!(row.intended.get(), row.seq * 500_000, "at 2000 a second, by multiplication");
        assert!(row.intended <= row.sent && row.sent <= row.received, "{row:?}");
    }
    let longest = rows.iter().map(|row| row.received.get() - row.intended.get()).max().unwrap();
    assert_eq!(longest, number(&run, "/whole/supply_to_receive_ns/max"));
}

#[test]
fn data_may_go_another_way_than_control() {
    let _alone = alone();
    let reflector = Reflector::start(&["--data", "127.0.0.3"]);
    let words = "it wants data sent to 127.0.0.3, and without a key nothing shows that it speaks for that host";
    ping(&reflector.host(), &[]).is_refusal(5, &[words]);
    let reflector = Reflector::start(&[]);
    let elsewhere = ping(&reflector.host(), &["--bind", "127.0.0.2"]);
    let words = "it refused: without a key, data goes only to the address that asks for it, not to 127.0.0.2";
    elsewhere.is_refusal(5, &[words]);
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let keyed = Reflector::start(&["--data", "127.0.0.3", "--key-file", &key]);
    valid_run(&keyed.host(), &["--bind", "127.0.0.2", "--key-file", &key]);
    assert!(keyed.says("opened a session").contains("data from 127.0.0.2:"));
}

/// Else pings would go one way and pongs another.
#[test]
fn data_comes_from_where_its_way_begins_and_not_from_where_controls_does() {
    // No datagram goes there: it only tells an address of this host that is not the loopback device's.
    let Ok(own) = source_towards("192.0.2.1:9".parse().unwrap(), None) else {
        println!("skipped: this host has no way to others");
        return;
    };
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let control = Reflector::listen(&own.to_string(), &["--data", "127.0.0.3", "--key-file", &key]);
    valid_run(&control.host(), &["--key-file", &key]);
    assert!(control.says("opened a session").contains("data from 127.0.0.1:"));
}

#[test]
fn control_keeps_to_its_interface() {
    let _alone = alone();
    let by_loopback = ["--control-interface", "lo"];
    let reflector = Reflector::start(&by_loopback);
    valid_run(&reflector.host(), &by_loopback);
    let by_none = ["--control-interface", "none9"];
    ping(&reflector.host(), &by_none).is_refusal(5, &["connect to the reflector at ", "No such device"]);
    run(&["reflect", "--control-interface", "none9"]).is_refusal(5, &["listen on 127.0.0.1:7410", "No such device"]);
}

/// As nohup has it: a reflector is to outlast the shell that started it.
#[test]
fn a_signal_that_is_ignored_from_the_start_stays_ignored() {
    let _alone = alone();
    let ignoring = |signals: &str| {
        let tickpong = crate::support::tickpong(&["reflect", "--api", "udp-block", "--listen", "127.0.0.1:0"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("trap '' {signals}; exec \"$0\" \"$@\"")]);
        shell.arg(tickpong.get_program()).args(tickpong.get_args()).env_remove("TICKPONG_KEY");
        Reflector::of(shell)
    };
    let hang_up = |reflector: &Reflector| {
        kill(Pid::from_raw(reflector.child.id().try_into().unwrap()), Signal::SIGHUP).unwrap();
    };
    let kept = ignoring("HUP");
    hang_up(&kept);
    valid_run(&kept.host(), &[]);
    let let_go = ignoring("USR1");
    hang_up(&let_go);
    assert!(let_go.end().success());
}

#[test]
fn a_message_may_be_as_large_as_a_datagram() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let run = valid_run(&reflector.host(), &["--size", "65507", "--rate", "500"]);
    assert_fates_add_up(&run);
    assert_eq!((number(&run, "/plan/payload_bytes"), number(&run, "/ignored/corrupt")), (65_507, 0));
    assert_eq!(number(&run, "/fates/answered"), 200, "{run:#}");
    valid_run(&reflector.host(), &["--size", "56"]);
}

#[test]
fn a_reflector_serves_once_or_many_times() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let reflector = Reflector::start(&["--key-file", &key]);
    for _ in 0..3 {
        let run = ping(&reflector.host(), &["--key-file", &key, "--format", "json"]).played();
        assert_eq!(number(&run, "/fates/answered"), 800, "{run:#}");
    }
    let once = Reflector::start(&["--once"]);
    // Whoever is sent away has had no session.
    ping(&once.host(), &["--key-file", &key]).is_refusal(5, &["it has no key"]);
    ping(&once.host(), &["--format", "json"]).played();
    assert!(once.end().success());
}

#[test]
fn a_busy_reflector_says_for_how_long() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let first = Running::start(&mut pinger(&reflector.host(), &["--duration", "3s", "--format", "json"]));
    reflector.says("opened a session");
    let busy = ping(&reflector.host(), &[]);
    let at = format!("failed to use the reflector at {}: busy with another session, ", reflector.address);
    busy.is_refusal(5, &[&at, " s left"]);
    let left: u64 = busy.err.strip_prefix(&format!("error: {at}")).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((1..=5).contains(&left), "{busy:#?}");
    let run = first.finish().played();
    assert_eq!(run["fates"]["answered"], run["fates"]["scheduled"], "the first was not disturbed: {run:#}");
}

#[test]
fn versions_that_cannot_talk_say_how_to_fix_it() {
    let (address, far) = by_hand::listener(|stream| {
        let mut line = Line::new(stream);
        assert!(matches!(line.hear().unwrap(), Message::Hello { newest: PROTOCOL, .. }));
        line.say(&Message::Incompatible { newest: 9, oldest: 8, version: "9.0.1" });
    });
    let words = ["it speaks control protocol 8 to 9 (tickpong 9.0.1)", "install the same version of tickpong on both"];
    ping(&address.to_string(), &[]).is_refusal(5, &words);
    far.join().unwrap();
    // A reflector that answers in a protocol nobody offered.
    let (address, far) = by_hand::listener(|stream| {
        let mut line = Line::new(stream);
        line.hear().unwrap();
        line.say(&Message::Welcome { protocol: 9, nonce: [1; 16], keyed: false, version: "9.0.1" });
    });
    let words = ["it speaks control protocol 9 to 9 (tickpong 9.0.1)", "install the same version of tickpong on both"];
    ping(&address.to_string(), &[]).is_refusal(5, &words);
    far.join().unwrap();
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let mut line = Line::connect(reflector.address);
    line.say(&Message::Hello { newest: 9, oldest: 8, nonce: [1; 16], version: "9.0.1\x1b[2J" });
    assert!(matches!(line.hear().unwrap(), Message::Incompatible { newest: PROTOCOL, .. }));
    let line = reflector.says("was sent away: it speaks protocol 8 to 9");
    assert!(!line.contains('\x1b'), "what the other end says does not act on this terminal: {line:?}");
    // A later version that still speaks ours is welcome.
    let mut line = Line::connect(reflector.address);
    line.say(&Message::Hello { newest: 9, oldest: 1, nonce: [1; 16], version: "9.0.1" });
    assert!(matches!(line.hear().unwrap(), Message::Welcome { protocol: PROTOCOL, .. }));
}

#[test]
fn whoever_else_listens_there_is_told_from_a_reflector() {
    let (silent, far) = by_hand::listener(|stream| {
        let mut line = Line::new(stream);
        line.hear().unwrap();
        assert!(line.is_closed(), "the pinger gives up");
    });
    let outcome = ping(&silent.to_string(), &[]);
    outcome.is_refusal(5, &["failed to greet the reflector: the other end was silent for 3 s"]);
    assert!(outcome.took.get() < 8_000_000_000, "{outcome:#?}");
    far.join().unwrap();
    for banner in ["HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", "SSH-2.0-OpenSSH_9.6\r\n", "220 hi\r\n"] {
        let (address, far) = by_hand::listener(move |mut stream| {
            stream.write_all(banner.as_bytes()).unwrap();
            assert!(by_hand::drains(&mut stream));
        });
        let outcome = ping(&address.to_string(), &[]);
        outcome.is_refusal(5, &["greet the reflector: the other end does not speak tickpong's control protocol"]);
        far.join().unwrap();
    }
    let (address, far) = by_hand::listener(drop);
    ping(&address.to_string(), &[]).is_refusal(5, &["failed to greet the reflector over the control connection: "]);
    far.join().unwrap();
}

#[test]
fn a_reflector_that_makes_no_sense_is_given_up_with_a_word_for_it() {
    let rows: [(Vec<u8>, &str); 5] = [
        (by_hand::frame(&Message::Start), "greet the reflector: the other end answered out of turn"),
        (b"tpct\xc8\0\0\0\0\0\0\0".to_vec(), "greet the reflector: a control message of unknown kind 200"),
        (b"tpct\x02\0\0\0\xff\xff\xff\xff".to_vec(), "a control message longer than its kind may be"),
        (b"tpct\x02\0\0\0\x01\0\0\0x".to_vec(), "a control message shorter than its kind is"),
        (by_hand::frame(&Message::Refused { reason: "\x1b[2Jbecause" }), "it refused: \\u{1b}[2Jbecause"),
    ];
    for (answer, words) in rows {
        let (address, far) = by_hand::listener(move |stream| {
            let mut line = Line::new(stream);
            line.hear().unwrap();
            line.stream.write_all(&answer).unwrap();
            assert!(by_hand::drains(&mut line.stream));
        });
        let outcome = ping(&address.to_string(), &[]);
        far.join().unwrap();
        assert_eq!((outcome.code, outcome.out.as_str()), (Some(5), ""), "{outcome:#?}");
        assert!(outcome.err.contains(words) && !outcome.err.contains('\x1b'), "{outcome:#?}");
    }
}

#[test]
fn what_the_network_sends_back_is_told() {
    let _alone = alone();
    let mut pings = 0;
    let answer = move |socket: &UdpSocket, pong: Vec<u8>| {
        pings += 1;
        if pings < 100 {
            socket.send(&pong).unwrap();
        } else {
            // From here on nobody hears the pinger, and its kernel is told so.
            socket.connect("127.0.0.1:9").unwrap();
        }
    };
    let (address, far) = by_hand::reflector(answer, serde_json::to_vec(&by_hand::report(100)).unwrap());
    let run = ping(&address.to_string(), &["--format", "json"]).played();
    far.join().unwrap();
    let warnings = run["warnings"].as_array().unwrap();
    let told = warnings.iter().any(|warning| warning.as_str().unwrap().contains(" ICMP errors came back"));
    assert!(told, "{run:#}");
}

#[test]
fn a_trace_is_played_message_by_message() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let trace = text(&dir.path().join("trace"));
    fs::write(&trace, "1000000 264\n0 1472\n500000 56\n").unwrap();
    let (tell, sizes) = std::sync::mpsc::channel();
    let answer = move |socket: &UdpSocket, pong: Vec<u8>| {
        tell.send(pong.len()).unwrap();
        socket.send(&pong).unwrap();
    };
    let report = serde_json::to_vec(&by_hand::report(798)).unwrap();
    let (address, far) = by_hand::reflector(answer, report);
    ping(&address.to_string(), &["--schedule", "trace", &trace, "--format", "json"]).played();
    far.join().unwrap();
    let sizes: Vec<usize> = sizes.into_iter().collect();
    assert_eq!(sizes.len(), 798);
    assert!(sizes.chunks_exact(3).all(|round| round == [264, 1_472, 56]), "{:?}", &sizes[..12]);
}

/// A pinger with a reflector by hand that answers no ping.
fn unanswered(report: Vec<u8>) -> (Running, std::thread::JoinHandle<()>, std::sync::mpsc::Receiver<()>) {
    let (tell, pinged) = std::sync::mpsc::channel();
    let (address, far) = by_hand::reflector(move |_: &UdpSocket, _| tell.send(()).unwrap_or_default(), report);
    let arguments = ["--format", "json", "--interval", "100ms", "--deadline", "1s"];
    (Running::start(&mut pinger(&address.to_string(), &arguments)), far, pinged)
}

#[test]
fn a_wish_to_stop_after_the_last_message_cuts_nothing() {
    let _alone = alone();
    let (pinger, far, pinged) = unanswered(serde_json::to_vec(&by_hand::report(800)).unwrap());
    pinged.iter().take(800).for_each(drop);
    sleep(Nanos::from_millis(50));
    kill(Pid::from_raw(pinger.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let run = pinger.finish().played();
    far.join().unwrap();
    assert_eq!((number(&run, "/fates/scheduled"), number(&run, "/fates/lost")), (800, 800));
    assert_eq!(run["interrupted"], false, "{run:#}");
}

#[test]
fn a_run_that_is_complete_was_not_interrupted_by_the_loss_of_its_report() {
    let _alone = alone();
    let (pinger, far, _pinged) = unanswered(b"no report".to_vec());
    let run = pinger.finish().played();
    far.join().unwrap();
    let because = run["invalid_because"].as_array().unwrap();
    assert!(because.iter().any(|why| why.as_str().unwrap().starts_with("reflector-lost: its report")), "{run:#}");
    assert_eq!((&run["interrupted"], number(&run, "/fates/scheduled")), (&false.into(), 800));
}

#[test]
fn nothing_is_faulted_in_while_the_plan_is_played_even_where_no_memory_is_locked() {
    let _alone = alone();
    let reflector = Reflector::start(&["--no-lock-memory"]);
    let run = valid_run(&reflector.host(), &["--no-lock-memory", "--duration", "700ms"]);
    for end in ["pinger", "reflector"] {
        assert_eq!(run["in_force"][end]["memory_locked"], false);
        if run["warnings"].to_string().contains("want Linux 5.14") {
            println!("skipped: this kernel cannot bring memory in beforehand");
        } else {
            assert_eq!(number(&run, &format!("/memory/{end}/minor_faults")), 0, "at the {end}: {run:#}");
        }
    }
}

#[test]
fn hot_threads_do_not_give_way_as_helpers_do() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let run = ping(&reflector.host(), &["--format", "json"]).played();
    for end in ["pinger", "reflector"] {
        assert_eq!(run["in_force"][end]["threads"][0]["scheduling"], "other", "{run:#}");
    }
}

#[test]
fn what_is_in_force_is_read_back_from_the_threads() {
    let _alone = alone();
    let cpu = allowed_cpus().unwrap()[0].get().to_string();
    let on = ["--cpu", &cpu, "--no-dma-latency", "--fifo", "1"];
    let reflector = Reflector::start(&on);
    let run = ping(&reflector.host(), &[&on[..], &["--format", "json"]].concat()).played();
    let refused = |end: &str| {
        let warnings = run["warnings"].as_array().unwrap();
        warnings.iter().any(|said| said.as_str().unwrap().contains(&format!("{end} thread: schedule this thread")))
    };
    for end in ["pinger", "reflector"] {
        let in_force = &run["in_force"][end];
        let scheduling = if refused(end) { "other" } else { "fifo 1" };
        let thread = serde_json::json!({"name": end, "cpus": cpu, "scheduling": scheduling});
        assert_eq!(in_force["threads"], serde_json::json!([thread]));
        assert_eq!(in_force["dma_latency_held"], false);
        let locked = number(&run, &format!("/memory/{end}/locked_bytes")) > 0;
        assert_eq!(in_force["memory_locked"], locked, "{run:#}");
    }
}
