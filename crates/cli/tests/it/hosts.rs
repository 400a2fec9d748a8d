//! Two hosts on this machine, of every kind: a run between them, and nothing of them afterwards, however it ends.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use tickpong_hostio::hosts::Hosts;
use tickpong_record::Run;

use crate::two_hosts::{AS_NOBODY, Ended, Process, TICKPONG, Turn, eventually, for_anybody, short, skip};

/// A demonstration that runs.
struct Demo {
    process: Process,
    reflector: Pid,
    /// Both hosts' network namespaces.
    namespaces: BTreeSet<String>,
}

impl Demo {
    /// `None` where the machine refuses hosts of this kind.
    fn start(kind: Hosts, arguments: &[&str]) -> Option<Self> {
        let process = start(kind, arguments);
        let mut reflector = None;
        eventually("a demonstration has a reflector, or is refused", || {
            reflector = child_of(process.pid());
            reflector.is_some() || !process.is_running()
        });
        let Some(reflector) = reflector else {
            refused(&process.end());
            return None;
        };
        let namespaces = [process.pid(), reflector].into_iter().filter_map(namespace_of).collect();
        Some(Self { process, reflector, namespaces })
    }

    /// Waits until it plays.
    fn play(self) -> Self {
        self.process.await_datagrams(1_000);
        self
    }
}

/// In a process group of its own, as a shell would have it.
fn start(kind: Hosts, arguments: &[&str]) -> Process {
    let mut command = Command::new(TICKPONG);
    let arguments = [&["--rate=2k"], arguments].concat();
    command.args(["demo", &format!("--hosts={kind}")]).args(short(&arguments));
    Process::start(command.env_remove("TICKPONG_KEY").process_group(0))
}

fn refused(ended: &Ended) {
    assert!(ended.code == 5 && ended.err.contains("set up two hosts on this machine"), "{ended:?}");
    skip(&ended.err);
}

/// A process with its parent and its command line, of those that are not dead.
fn child_of(parent: Pid) -> Option<Pid> {
    let is_child = |pid: &Pid| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        // Behind the name, which may hold anything: state, parent.
        let mut fields = stat.rsplit_once(')').unwrap_or_default().1.split_whitespace();
        fields.next().is_some_and(|state| state != "Z") && fields.next() == Some(&parent.to_string())
    };
    let reflects = |pid: &Pid| {
        let line = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.split('\0').nth(1) == Some("reflect")
    };
    processes().find(|pid| is_child(pid) && reflects(pid))
}

fn processes() -> impl Iterator<Item = Pid> {
    let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
    names.filter_map(|name| name.to_str()?.parse().ok()).map(Pid::from_raw)
}

/// A network namespace, as in `net:[4026531840]`.
fn namespace_of(pid: Pid) -> Option<String> {
    fs::read_link(format!("/proc/{pid}/ns/net")).ok()?.to_str().map(str::to_owned)
}

/// Nothing is left: no process, none in its namespaces, no name of one, and no device of ours in this test's own host.
fn assert_nothing_left(reflector: Pid, namespaces: &BTreeSet<String>) {
    eventually("the reflector is gone", || kill(reflector, None) == Err(Errno::ESRCH) || is_dead(reflector));
    let home = namespace_of(Pid::this()).unwrap();
    let theirs: BTreeSet<_> = namespaces.iter().filter(|namespace| **namespace != home).collect();
    let inhabitants =
        || processes().filter(|pid| namespace_of(*pid).is_some_and(|namespace| theirs.contains(&namespace))).count();
    eventually("nobody is left on the hosts", || inhabitants() == 0);
    for name in fs::read_dir("/run/netns").into_iter().flatten().flatten() {
        let inode = fs::metadata(name.path()).map(|file| file.ino()).unwrap_or_default();
        assert!(!theirs.contains(&format!("net:[{inode}]")), "{} holds a namespace", name.path().display());
    }
    for device in ["tp-pinger", "tp-reflector"] {
        assert!(!Path::new("/sys/class/net").join(device).exists(), "{device} is left");
    }
}

/// Dead, and nobody has asked how: an init that does not care for orphans is not ours to blame.
fn is_dead(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['Z', 'X']))
}

fn of_every_kind(check: impl Fn(Hosts)) {
    let _turn = Turn::take();
    Hosts::ALL.into_iter().for_each(check);
}

/// Both ends have said everything of themselves.
fn assert_complete(run: &Run) {
    assert!(run.fates.lost == 0 && run.fates.answered >= 1_000, "{:?} {:?}", run.fates, run.losses);
    assert!(run.cpu.reflector.is_some() && run.memory.reflector.is_some() && run.reflector_clock.is_some());
    assert!(run.sockets.reflector.is_some() && run.identity.host_hash.reflector.is_some());
    assert_eq!(run.identity.boot_id.pinger, run.identity.boot_id.reflector, "it is one machine");
}

#[test]
fn hosts_of_every_kind_make_a_complete_run_and_are_gone() {
    of_every_kind(|kind| {
        let Some(Demo { process, reflector, namespaces }) = Demo::start(kind, &[]) else { return };
        let hosts = if kind == Hosts::Loopback { 1 } else { 2 };
        assert_eq!(namespaces.len(), hosts, "{kind}");
        let ended = process.end();
        let run = ended.run();
        assert_complete(&run);
        assert_eq!(ended.code, if run.valid { 0 } else { 5 }, "{:?}", run.invalid_because);
        assert!(ended.err.starts_with("two hosts: "), "{}", ended.err);
        let costs = kind.what_it_costs();
        assert!(
            costs.iter().all(|cost| run.warnings.iter().any(|warning| warning == cost)),
            "{kind}: {:?}",
            run.warnings
        );
        assert_eq!(run.identity.hosts, Some(kind.to_string()));
        assert_nothing_left(reflector, &namespaces);
    });
}

#[test]
fn hosts_for_a_user_are_the_best_that_the_machine_allows() {
    let _turn = Turn::take();
    let (_directory, tickpong) = for_anybody();
    let by = [AS_NOBODY, &[&tickpong]].concat();
    let mut command = Command::new(by[0]);
    let ended = Process::start(command.args(&by[1..]).arg("demo").args(short(&["--rate=2k"]))).end();
    if ended.code != 0 && ended.err.starts_with("setpriv: ") {
        return skip(&ended.err);
    }
    assert!(
        ended.err.starts_with("not namespaces: create a network namespace for tp-reflector: not permitted"),
        "{}",
        ended.err
    );
    let run = ended.run();
    assert_complete(&run);
    assert!(!run.sockets.forced, "{:?}", run.sockets);
    assert!(run.warnings.iter().any(|warning| warning.starts_with("not namespaces: ")), "{:#?}", run.warnings);
    for right in ["CAP_NET_ADMIN", "/dev/cpu_dma_latency"] {
        assert!(run.warnings.iter().any(|warning| warning.contains(right)), "{right}: {:#?}", run.warnings);
    }
    if !ended.err.contains("two hosts: network namespaces inside a user namespace") {
        assert!(
            ended.err.contains("not user-namespaces: ") && ended.err.contains("two hosts: two addresses"),
            "{}",
            ended.err
        );
        skip(&ended.err);
    }
}

#[test]
fn hosts_are_gone_after_an_error() {
    of_every_kind(|kind| {
        // Found out when the hosts are there and the reflector listens.
        let Some(Demo { process, reflector, namespaces }) = Demo::start(kind, &["--output=/proc/nowhere/run"]) else {
            return;
        };
        let ended = process.end();
        assert!(ended.code == 2 && ended.err.contains("error: failed to create /proc/nowhere"), "{ended:?}");
        assert_nothing_left(reflector, &namespaces);
    });
}

/// A demonstration is ended in its middle.
fn check_interrupted(interrupt: impl Fn(&Demo)) {
    of_every_kind(|kind| {
        let Some(demo) = Demo::start(kind, &["--duration=20s"]).map(Demo::play) else { return };
        interrupt(&demo);
        let Demo { process, reflector, namespaces } = demo;
        let ended = process.end();
        let run = ended.run();
        assert_eq!((ended.code, run.interrupted), (130, true), "{kind}: {ended:?}");
        let says = |word: &str| run.invalid_because.iter().any(|why| why.starts_with(word));
        assert!(says("interrupted: ") && !says("reflector-lost: "), "{kind}: {:?}", run.invalid_because);
        assert!(run.cpu.reflector.is_some(), "the reflector has reported");
        assert_nothing_left(reflector, &namespaces);
    });
}

#[test]
fn hosts_are_gone_after_an_interrupt() {
    check_interrupted(|demo| demo.process.signal(Signal::SIGINT));
}

#[test]
fn hosts_are_gone_after_the_interrupt_of_a_terminal_which_goes_to_all() {
    check_interrupted(|demo| killpg(demo.process.pid(), Signal::SIGINT).unwrap());
}

#[test]
fn hosts_are_gone_after_a_kill() {
    of_every_kind(|kind| {
        let Some(Demo { process, reflector, namespaces }) = Demo::start(kind, &["--duration=20s"]).map(Demo::play)
        else {
            return;
        };
        process.signal(Signal::SIGKILL);
        assert_eq!(process.end().code, 128 + Signal::SIGKILL as i32);
        assert_nothing_left(reflector, &namespaces);
    });
}

#[test]
fn hosts_are_gone_when_the_reflector_is_killed() {
    of_every_kind(|kind| {
        let Some(Demo { process, reflector, namespaces }) = Demo::start(kind, &["--duration=20s"]).map(Demo::play)
        else {
            return;
        };
        kill(reflector, Signal::SIGKILL).unwrap();
        let ended = process.end();
        let run = ended.run();
        assert!(
            ended.code == 5 && run.invalid_because.iter().any(|why| why.starts_with("reflector-lost: ")),
            "{ended:?}"
        );
        assert_nothing_left(reflector, &namespaces);
    });
}
