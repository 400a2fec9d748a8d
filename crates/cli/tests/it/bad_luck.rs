//! Hosts that stall, die, vanish or lack a right; people who change their mind; disks that are full; rates that nobody can play.

use nix::sys::signal::Signal;
use tempfile::TempDir;
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_record::{Figure, Run, RunDirectory};
use tickpong_units::Nanos;

use crate::two_hosts::{AS_NOBODY, Ended, NamedHosts, Process, TICKPONG, eventually, for_anybody, undisturbed};

const fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn finite(figure: Figure) -> Nanos {
    let Figure::Finite(ns) = figure else { panic!("{figure:?}") };
    Nanos::new(ns)
}

/// A run that is about to be disturbed: past its path probes and its warm-up.
fn running(hosts: &NamedHosts, reflector: &Process, arguments: &[&str]) -> Process {
    let pinger = hosts.ping(arguments);
    reflector.await_datagrams(2_000);
    pinger
}

/// Coordinated omission avoided: every message that was due while the reflector stood still has waited, and counts.
#[test]
fn a_reflector_that_stands_still_for_a_second_shows_in_every_message_of_it() {
    let played = undisturbed(|| {
        let hosts = NamedHosts::up()?;
        let reflector = hosts.reflect(&["--once"]);
        let plan = ["--rate=10k", "--duration=4s", "--interval=400ms", "--deadline=3s"];
        let pinger = running(&hosts, &reflector, &plan);
        sleep(ms(1_000));
        reflector.signal(Signal::SIGSTOP);
        sleep(ms(1_000));
        reflector.signal(Signal::SIGCONT);
        Some((pinger.end().run(), ()))
    });
    let Some((run, ())) = played else { return };
    let felt = run.whole.supply_to_receive_ns.unwrap();
    assert_eq!((run.fates.lost, run.fates.late), (0, 0), "{:?} {:?}", run.losses, run.fates);
    assert!(finite(felt.p99) >= ms(800), "{felt:?}");
    assert!(finite(felt.p90) >= ms(300), "{felt:?}");
    assert!(finite(felt.p50) <= ms(50), "{felt:?}");
    assert!(felt.max.unwrap() >= ms(950).get(), "{felt:?}");
}

fn is_lost(run: &Run) -> bool {
    !run.valid && run.invalid_because.iter().any(|why| why.starts_with("reflector-lost: "))
}

#[test]
fn a_reflector_that_dies_ends_the_run_with_what_was_measured() {
    let Some(hosts) = NamedHosts::up() else { return };
    let directory = TempDir::new().unwrap();
    let target = directory.path().join("run");
    let reflector = hosts.reflect(&[]);
    let pinger = running(&hosts, &reflector, &["--duration=20s", &format!("--output={}", target.display())]);
    reflector.signal(Signal::SIGKILL);
    let killed = monotonic_ns();
    let ended = pinger.end();
    // What was sent last could still be answered in time a second after, and is waited for a second more.
    assert!(monotonic_ns() - killed < ms(1_000 + 1_000 + 1_000).get(), "{ended:?}");
    let run = ended.run();
    assert!(is_lost(&run) && run.interrupted && ended.code == 5, "{} {:?}", ended.code, run.invalid_because);
    assert!(run.fates.answered > 1_000, "{:?}", run.fates);
    let written = RunDirectory::read(&target).unwrap();
    assert_eq!(written.run, run);
}

#[test]
fn a_pinger_that_dies_leaves_the_reflector_to_the_next() {
    let Some(hosts) = NamedHosts::up() else { return };
    let reflector = hosts.reflect(&["--once"]);
    drop(reflector);
    let reflector = hosts.reflect(&[]);
    let pinger = running(&hosts, &reflector, &["--duration=20s"]);
    pinger.signal(Signal::SIGKILL);
    let killed = monotonic_ns();
    let mut last = None;
    eventually("the reflector serves the next", || {
        let ended = hosts.ping(&["--duration=100ms"]).end();
        let is_served = !ended.out.is_empty();
        last = Some(ended);
        is_served
    });
    let (waited, run) = (Nanos::new(monotonic_ns() - killed), last.unwrap().run());
    assert!(waited < ms(5_000), "{waited}");
    assert!(run.fates.answered > 0, "{:?}", run.fates);
}

/// No end of a connection is seen where the cable is pulled: each side waits for a word, and not for ever.
#[test]
fn a_cable_that_is_pulled_ends_both_sides() {
    let Some(hosts) = NamedHosts::up() else { return };
    let reflector = hosts.reflect(&[]);
    let pinger = running(&hosts, &reflector, &[]);
    hosts.set_link("down");
    let ended = pinger.end();
    let run = ended.run();
    assert!(is_lost(&run) && ended.code == 5, "{} {:?}", ended.code, run.invalid_because);
    // The plan was over before the silence had lasted long enough.
    assert!(!run.interrupted && run.fates.answered > 1_000, "{:?}", run.fates);
    reflector.await_line(" closed: ");
    hosts.set_link("up");
    let run = hosts.ping(&[]).end().run();
    assert!(run.fates.answered > 1_000, "{:?}", run.fates);
}

#[test]
fn what_was_measured_before_a_person_ended_the_run_is_written() {
    let Some(hosts) = NamedHosts::up() else { return };
    let directory = TempDir::new().unwrap();
    let target = directory.path().join("run");
    let reflector = hosts.reflect(&[]);
    let pinger = running(&hosts, &reflector, &["--duration=20s", &format!("--output={}", target.display())]);
    pinger.signal(Signal::SIGINT);
    let ended = pinger.end();
    assert!(ended.took < ms(10_000), "{ended:?}");
    let run = ended.run();
    assert_eq!((ended.code, run.interrupted, run.valid), (130, true, false));
    assert!(run.invalid_because[0].starts_with("interrupted: "), "{:?}", run.invalid_because);
    // What was not yet due is no part of it.
    assert!(run.fates.answered > 1_000 && run.fates.unsent < 100, "{:?}", run.fates);
    let (achieved, answered) = (run.achieved_rate_hz.unwrap(), run.answered_rate_hz.unwrap());
    assert!((4_500.0..5_100.0).contains(&achieved) && answered <= achieved, "{achieved} {answered}");
    assert!(run.memory.reflector.is_some(), "the reflector has reported");
    assert_eq!(RunDirectory::read(&target).unwrap().run, run);
}

#[test]
fn a_person_who_insists_ends_it_at_once() {
    let Some(hosts) = NamedHosts::up() else { return };
    let reflector = hosts.reflect(&[]);
    let pinger = running(&hosts, &reflector, &["--duration=20s", "--interval=5s", "--deadline=50s"]);
    // What is under way stays so, and the first wish waits for it.
    reflector.signal(Signal::SIGSTOP);
    sleep(ms(100));
    pinger.signal(Signal::SIGINT);
    sleep(ms(1_000));
    assert!(pinger.is_running(), "{pinger}");
    pinger.signal(Signal::SIGINT);
    let asked = monotonic_ns();
    let ended = pinger.end();
    assert!(monotonic_ns() - asked < ms(1_000).get(), "{ended:?}");
    assert_eq!((ended.code, ended.out.as_str()), (130, ""));
}

/// A run whose directory is to lie on a disk of `size`; beside it, what lies on the disk afterwards.
fn on_a_small_disk(hosts: &NamedHosts, size: &str, arguments: &[&str]) -> (Ended, String) {
    let _reflector = hosts.reflect(&["--once"]);
    let disk = TempDir::new().unwrap();
    let script =
        "mount -t tmpfs -o size=$0 none $1 && shift && \"$@\"; code=$?; echo left: $(ls -A $disk) >&2; exit $code";
    let script = script.replace("$disk", disk.path().to_str().unwrap());
    let target = format!("--output={}", disk.path().join("run").display());
    let by = ["unshare", "--mount", "sh", "-c", &script, size, disk.path().to_str().unwrap(), TICKPONG];
    let ended = hosts.ping_by(&by, NamedHosts::REFLECTOR, &[&[target.as_str()], arguments].concat()).end();
    let left = ended.err.split_once("left: ").map(|(_, left)| left.trim().to_owned());
    (ended, left.unwrap_or_default())
}

fn check_full_disk(size: &str, arguments: &[&str]) {
    let Some(hosts) = NamedHosts::up() else { return };
    let (ended, left) = on_a_small_disk(&hosts, size, arguments);
    let run = ended.run();
    assert!(ended.code == 2 && ended.err.contains("No space left on device"), "{} {}", ended.code, ended.err);
    assert!(run.fates.answered > 1_000, "{:?}", run.fates);
    assert!(!run.invalid_because.iter().any(|why| why.starts_with("overflow")), "{:?}", run.invalid_because);
    assert_eq!(left, "", "{}", ended.err);
}

#[test]
fn a_disk_that_fills_with_intervals_costs_the_directory_and_not_the_run() {
    check_full_disk("40k", &["--duration=2s", "--interval=20ms", "--deadline=200ms"]);
}

#[test]
fn a_disk_that_fills_with_observations_costs_the_directory_and_not_the_run() {
    // More than fit the ring between the hot thread and the disk.
    check_full_disk("128k", &["--interval=500ms", "--observations", "--rate=50k", "--duration=3s"]);
}

#[test]
fn a_disk_that_is_full_at_the_end_costs_the_directory_and_not_the_run() {
    check_full_disk("16k", &["--interval=500ms"]);
}

#[test]
fn a_disk_with_room_takes_the_directory() {
    let Some(hosts) = NamedHosts::up() else { return };
    let (ended, left) = on_a_small_disk(&hosts, "16m", &[]);
    assert!(ended.run().fates.answered > 1_000 && left == "run", "{left} {}", ended.err);
}

fn check_rate_beyond_the_machine(rate: &str, scheduled: u64, schedule: &str) {
    let Some(hosts) = NamedHosts::up() else { return };
    let _reflector = hosts.reflect(&["--once"]);
    let rate = format!("--rate={rate}");
    let mut plan = vec![&rate, "--duration=2s", "--deadline=200ms", "--api=udp-spin", "--schedule"];
    plan.extend(schedule.split(' '));
    let ended = hosts.ping(&plan).end();
    let run = ended.run();
    let drawn = run.fates.scheduled.abs_diff(scheduled) < if schedule == "poisson" { scheduled / 100 } else { 1 };
    assert!(drawn, "{:?}", run.fates);
    // The plan and its grace; two deadlines of the last; and what it takes to come and go.
    assert!(ended.took < ms(2_100 + 100 + 400 + 1_200), "{}: {}", ended.took, ended.err);
    let [why] = run.invalid_because.as_slice() else { panic!("{:?}", run.invalid_because) };
    assert!(why.starts_with("generator-behind: ") && ended.code == 5, "{} {why}", ended.code);
    let lateness = run.whole.send_lateness_ns.unwrap();
    assert!(lateness.max.unwrap() > ms(500).get(), "{lateness:?}");
    assert!(run.fates.unsent > 1_000_000, "{:?}", run.fates);
}

#[test]
fn a_rate_beyond_the_machine_ends_on_time_and_says_so() {
    check_rate_beyond_the_machine("3M", 6_300_000, "fixed");
}

/// Messages that were never sent are too many to be counted one by one.
#[test]
fn a_rate_beyond_any_machine_does_so_too() {
    check_rate_beyond_the_machine("100M", 210_000_000, "fixed");
    check_rate_beyond_the_machine("1000M", 2_100_000_000, "burst 1000");
}

#[test]
fn and_so_does_the_highest_rate_that_must_be_drawn() {
    check_rate_beyond_the_machine("10M", 21_000_000, "poisson");
}

#[test]
fn messages_above_the_paths_mtu_work_and_warn() {
    let Some(hosts) = NamedHosts::up() else { return };
    let _reflector = hosts.reflect(&[&format!("--listen={}", NamedHosts::REFLECTOR)]);
    for (size, fragments) in [("1472", false), ("1473", true), ("20000", true)] {
        let run = hosts.ping(&["--rate=500", "--duration=300ms", &format!("--size={size}")]).end().run();
        assert!(run.fates.answered > 100 && run.fates.lost == 0, "{:?}", run.fates);
        let warns = run.warnings.iter().any(|warning| warning.contains("in several fragments: the path's MTU is 1500"));
        assert_eq!(warns, fragments, "{size}: {:?}", run.warnings);
    }
}

fn check_answered(hosts: &NamedHosts, reflector: &str, arguments: &[&str]) -> Run {
    let ended = hosts.ping_at(reflector, &[&["--rate=2k"], arguments].concat()).end();
    let run = ended.run();
    assert!(run.fates.answered > 1_000 && run.fates.lost == 0, "{:?} {}", run.fates, ended.err);
    run
}

#[test]
fn ipv6_works_and_link_local_with_its_scope_too() {
    let Some(hosts) = NamedHosts::up() else { return };
    let link_local = |interface| format!("{}%{interface}", NamedHosts::REFLECTOR_LINK_LOCAL);
    let at_reflector = link_local(NamedHosts::REFLECTOR_INTERFACE);
    let at_pinger = link_local(NamedHosts::PINGER_INTERFACE);
    for (listen, reflector) in [
        ("[fd78::2]:7410", NamedHosts::REFLECTOR_V6),
        ("[::]:7410", &at_pinger),
        (at_reflector.as_str(), &at_pinger),
        (at_reflector.as_str(), &format!("[{at_pinger}]:7410")),
    ] {
        let _reflector = hosts.reflect(&["--once", &format!("--listen={listen}")]);
        check_answered(&hosts, reflector, &["--size=1453"]);
    }
}

#[test]
fn a_group_is_pinged_and_answers_one_to_one() {
    let Some(hosts) = NamedHosts::up() else { return };
    for (group, listen) in [("239.1.2.3", NamedHosts::REFLECTOR), ("ff15::7410", "[fd78::2]:7410")] {
        let join = ["--once", &format!("--join={group}"), &format!("--listen={listen}"), "--interface=tp-2"];
        let reflector = hosts.reflect(&join);
        let host = if listen.contains(':') { NamedHosts::REFLECTOR_V6 } else { listen };
        let run = check_answered(&hosts, host, &["--interface=tp-1"]);
        assert_eq!(run.ignored.foreign, 0);
        drop(reflector);
    }
}

#[test]
fn rights_that_are_missing_are_named_and_cost_no_run() {
    let Some(hosts) = NamedHosts::up() else { return };
    let (_directory, tickpong) = for_anybody();
    let by = [AS_NOBODY, &[&tickpong]].concat();
    let _reflector = hosts.reflect_by(&by, &["--once"]);
    let ended = hosts.ping_by(&by, NamedHosts::REFLECTOR, &[]).end();
    let run = ended.run();
    assert!(run.fates.answered > 1_000, "{:?}", run.fates);
    let (pinger, reflector) = (&run.sockets, run.sockets.reflector.as_deref().unwrap());
    for sockets in [pinger, reflector] {
        assert!(!sockets.forced, "{sockets:?}");
        assert!(sockets.receive_buffer_granted < sockets.receive_buffer_asked, "{sockets:?}");
    }
    for right in ["net.core.rmem_max", "net.core.wmem_max", "CAP_NET_ADMIN", "/dev/cpu_dma_latency"] {
        let (reflectors, pingers): (Vec<_>, Vec<_>) = run
            .warnings
            .iter()
            .filter(|warning| warning.contains(right))
            .partition(|warning| warning.starts_with("reflector: "));
        assert!(!reflectors.is_empty() && !pingers.is_empty(), "{right}, at each end: {:#?}", run.warnings);
    }
}
