//! The command line.

mod many;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use tickpong_hostio::clock::ClockChoice;
use tickpong_hostio::hosts::Hosts;
use tickpong_hostio::thread::Cpu;
use tickpong_record::Api;
use tickpong_runner::{DEFAULT_PORT, HotSettings, Key, KeyError};
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};

pub(crate) use many::{CompareArguments, ResultsArguments, SuiteArguments, SuiteFormat, SweepArguments};

/// A benchmark of the host network stack under a market-data workload.
///
/// Two hosts play UDP ping-pong at a fixed offered rate; every message is accounted for from the moment it was due.
#[derive(Debug, Parser)]
#[command(name = "tickpong", version, after_help = EXIT_CODES)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 a valid run, or a run of any kind that could be read again; 2 usage or data error; \
    4 two hosts differ in what must match; 5 the run was invalid, or could not be made; \
    130 interrupted before the plan's end, what was measured is written; 101 is a bug.";

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Two hosts on this machine, a short suite, a report: nothing to set up. With a rate or another part of a plan: that one run.
    Demo(DemoArguments),
    /// The far end; serves one session at a time.
    Reflect(ReflectArguments),
    /// One run against a reflector.
    Ping(PingArguments),
    /// Many runs by a plan: base-rate latency, highest sustained rate, latency at that rate, and others.
    Suite(SuiteArguments),
    /// The highest sustained rate alone.
    Sweep(SweepArguments),
    /// A run or a suite again, from what is on disk.
    Report(ReportArguments),
    /// Two runs, or two suites, side by side.
    Compare(CompareArguments),
    /// What this host is and how it is set, or how two hosts differ.
    Disclose(DiscloseArguments),
    /// Completions for a shell, to standard output.
    Completions {
        /// Which shell.
        shell: Shell,
    },
    /// The manual page, to standard output.
    Man,
}

/// Reads the command line; ends the process where it makes no sense, or asks for help.
pub(crate) fn parse() -> Command {
    Arguments::parse().command
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum Format {
    /// For programs: what is on disk.
    Json,
    /// For people.
    #[default]
    Text,
}

/// What to play.
#[derive(Debug, Args)]
pub(crate) struct PlanArguments {
    /// Messages a second, such as 100k or 1.5M [default: 100k].
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// Bytes of UDP payload, 56 to 65507 [default: 264].
    #[arg(long, value_name = "BYTES")]
    pub(crate) size: Option<PayloadLen>,
    /// How long after the warm-up, such as 10s.
    #[arg(long, value_name = "TIME")]
    pub(crate) duration: Option<Nanos>,
    /// How long to warm up; sent and recorded, a whole number of intervals [default: one interval].
    #[arg(long, value_name = "TIME")]
    pub(crate) warm_up: Option<Nanos>,
    /// Length of an interval.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) interval: Nanos,
    /// How long after its intended instant a message may be answered.
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) deadline: Nanos,
    /// When messages are due: fixed, poisson, burst N, or trace FILE (inter-arrival in ns and bytes, a message a line).
    #[arg(long, value_name = "KIND", num_args = 1..=2, default_value = "fixed")]
    pub(crate) schedule: Vec<String>,
    /// Where the chance of a poisson schedule comes from.
    #[arg(long, value_name = "SEED", default_value = "1")]
    pub(crate) seed: Seed,
    /// How to send and receive: udp-spin, udp-block or udp-busy-poll.
    #[arg(long, value_name = "API", default_value = "udp-spin")]
    pub(crate) api: Api,
    /// Closed loop: the next message waits for the answer to the last, for comparison with classic ping-pong tools.
    #[arg(long, conflicts_with = "rate")]
    pub(crate) closed: bool,
}

impl PlanArguments {
    /// Whether nothing but the network API was asked for.
    pub(crate) fn is_the_usual(&self) -> bool {
        let Self { rate, size, duration, warm_up, interval, deadline, schedule, seed, api: _, closed } = self;
        let is_usual = rate.is_none() && size.is_none() && duration.is_none() && warm_up.is_none() && !closed;
        let second = Nanos::from_secs(1);
        is_usual && (*interval, *deadline, *seed) == (second, second, Seed::new(1)) && schedule == &["fixed"]
    }
}

/// What to ask of this host.
#[derive(Debug, Args)]
pub(crate) struct HostArguments {
    /// Leave /dev/cpu_dma_latency alone: idle CPUs may then sleep.
    #[arg(long)]
    no_dma_latency: bool,
    /// Do not lock memory.
    #[arg(long)]
    no_lock_memory: bool,
    /// Run hot threads under SCHED_FIFO at this priority.
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(1..=99))]
    fifo: Option<u8>,
    /// Which clock: auto, counter (of the CPU) or vdso (the kernel's).
    #[arg(long, value_name = "CLOCK", default_value = "auto")]
    clock: ClockName,
    /// Bytes of socket buffer to ask for, each way.
    #[arg(long, value_name = "BYTES", default_value_t = 64 << 20)]
    pub(crate) socket_buffer: usize,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ClockName {
    Auto,
    Counter,
    Vdso,
}

impl HostArguments {
    pub(crate) fn hot(&self) -> HotSettings {
        HotSettings { dma_latency: !self.no_dma_latency, lock_memory: !self.no_lock_memory, fifo: self.fifo }
    }

    pub(crate) fn clock(&self) -> ClockChoice {
        match self.clock {
            ClockName::Auto => ClockChoice::Auto,
            ClockName::Counter => ClockChoice::Counter,
            ClockName::Vdso => ClockChoice::Vdso,
        }
    }

    /// The same, for the command line of another process of this host.
    pub(crate) fn again(&self) -> Vec<String> {
        let mut again = vec!["--socket-buffer".to_owned(), self.socket_buffer.to_string()];
        again.extend(self.no_dma_latency.then(|| "--no-dma-latency".to_owned()));
        again.extend(self.no_lock_memory.then(|| "--no-lock-memory".to_owned()));
        again.extend(self.fifo.map(|priority| format!("--fifo={priority}")));
        let clock = self.clock.to_possible_value();
        again.extend(clock.map(|clock| format!("--clock={}", clock.get_name())));
        again
    }
}

/// What becomes of the run.
#[derive(Debug, Args)]
pub(crate) struct OutputArguments {
    /// Write the run directory here; it must not exist.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Write a row for every answered or late message there, too.
    #[arg(long, requires = "output")]
    pub(crate) observations: bool,
    /// Say something of the run, as in nic=x2522; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// Print text or JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
}

impl OutputArguments {
    pub(crate) fn labels(&self) -> BTreeMap<String, String> {
        self.label.iter().cloned().collect()
    }
}

#[derive(Debug, Args)]
pub(crate) struct KeyArguments {
    /// File with the shared key, which nobody else may read; the environment variable TICKPONG_KEY otherwise.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl KeyArguments {
    pub(crate) fn key(&self) -> Result<Key, KeyError> {
        self.key_file.as_deref().map_or_else(Key::from_environment, Key::from_file)
    }
}

#[derive(Debug, Args)]
pub(crate) struct DemoArguments {
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    #[command(flatten)]
    pub(crate) host: HostArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
    /// Which two hosts: namespaces, user-namespaces or loopback [default: the first that this machine allows].
    #[arg(long, value_name = "HOSTS")]
    pub(crate) hosts: Option<Hosts>,
    /// The pinger's CPU.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) cpu: Option<Cpu>,
    /// The reflector's CPU.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) reflector_cpu: Option<Cpu>,
}

#[derive(Debug, Args)]
pub(crate) struct PingArguments {
    #[command(flatten)]
    pub(crate) far: FarArguments,
    #[command(flatten)]
    pub(crate) plan: PlanArguments,
    #[command(flatten)]
    pub(crate) output: OutputArguments,
}

/// The reflector, and how this host goes about reaching it.
#[derive(Debug, Args)]
pub(crate) struct FarArguments {
    /// The reflector: a name or an address, with a port if it is another than 7410.
    pub(crate) host: String,
    #[command(flatten)]
    pub(crate) machine: HostArguments,
    #[command(flatten)]
    pub(crate) key: KeyArguments,
    /// One thread on this CPU, which sends and receives in turn: right on few CPUs, and the default, on a CPU of tickpong's choice.
    #[arg(long, value_name = "CPU", value_parser = cpu, conflicts_with_all = ["tx_cpu", "rx_cpu"])]
    pub(crate) cpu: Option<Cpu>,
    /// The sender is a thread of its own, on this CPU.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) tx_cpu: Option<Cpu>,
    /// The receiver is a thread of its own, on this CPU.
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) rx_cpu: Option<Cpu>,
    /// The local data address [default: the one on the way to the reflector's data address].
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// The interface that data goes through.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// The interface that the control connection goes through [default: as the routes have it].
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) control_interface: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ReflectArguments {
    /// Where to listen for pingers: ADDRESS or ADDRESS:PORT; beyond loopback only with a key.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = control_address)]
    pub(crate) listen: SocketAddr,
    /// The data address: ADDRESS or ADDRESS:PORT; another than the control address only with a key [default: the control address, or
    /// the one of --interface; a port for each session].
    #[arg(long, value_name = "ADDRESS", value_parser = data_address)]
    pub(crate) data: Option<SocketAddr>,
    /// The interface that data goes through.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// The interface that control connections come through [default: any].
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) control_interface: Option<String>,
    /// Receive on this multicast group, and answer by unicast.
    #[arg(long, value_name = "GROUP", value_parser = group)]
    pub(crate) join: Option<IpAddr>,
    /// The CPU of the hot thread [default: of tickpong's choice].
    #[arg(long, value_name = "CPU", value_parser = cpu)]
    pub(crate) cpu: Option<Cpu>,
    /// A CPU that is the other end's: a demonstration says so.
    #[arg(long, value_name = "CPU", value_parser = cpu, hide = true)]
    pub(crate) avoid_cpu: Option<Cpu>,
    /// How to receive and send: udp-spin, udp-block or udp-busy-poll.
    #[arg(long, value_name = "API", default_value = "udp-spin")]
    pub(crate) api: Api,
    #[command(flatten)]
    pub(crate) key: KeyArguments,
    /// Listen beyond loopback without a key: anybody who can reach this host can make it answer.
    #[arg(long)]
    pub(crate) insecure: bool,
    /// End after one session.
    #[arg(long)]
    pub(crate) once: bool,
    #[command(flatten)]
    pub(crate) machine: HostArguments,
}

#[derive(Debug, Args)]
pub(crate) struct ReportArguments {
    /// Directories of runs or suites.
    #[arg(required = true, value_name = "DIR")]
    pub(crate) directories: Vec<PathBuf>,
    /// Print text, JSON, or of a suite Markdown.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: SuiteFormat,
}

#[derive(Debug, Args)]
pub(crate) struct DiscloseArguments {
    /// The interface to tell of; without one, only what is not of an interface.
    #[arg(long, value_name = "INTERFACE")]
    pub(crate) interface: Option<String>,
    /// Print text or JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// Write the disclosure here as JSON, too; the file must not exist.
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Compare two disclosures instead, or those of two runs: what must match first; exit code 4 if that differs.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with_all = ["interface", "output"])]
    pub(crate) diff: Vec<PathBuf>,
}

fn cpu(text: &str) -> Result<Cpu, String> {
    text.parse().map(Cpu::new).map_err(|_| format!("read `{text}` as a CPU: want its number, such as 3"))
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err(format!("read `{text}` as a label: want KEY=VALUE")),
    }
}

fn control_address(text: &str) -> Result<SocketAddr, String> {
    address(text, DEFAULT_PORT)
}

fn data_address(text: &str) -> Result<SocketAddr, String> {
    address(text, 0)
}

fn address(text: &str, port: u16) -> Result<SocketAddr, String> {
    if let Ok(address) = text.parse() {
        return Ok(address);
    }
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    let found = bare.parse().ok().map(|ip| SocketAddr::new(ip, port));
    found.or_else(|| scoped(text, port)).ok_or_else(|| {
        format!("read `{text}` as an address: want one of this host's, such as 10.0.0.1, 10.0.0.1:{DEFAULT_PORT} or [fd00::1]:{DEFAULT_PORT}")
    })
}

/// An address that means something on one link only, with the name of the interface there, such as `fe80::1%eth0`.
fn scoped(text: &str, port: u16) -> Option<SocketAddr> {
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, "")) => (host, port),
        Some((host, rest)) => (host, rest.strip_prefix(':')?.parse().ok()?),
        None => (text, port),
    };
    // The system alone knows its interfaces, and would take a name as well: none has this sign.
    host.contains('%').then(|| (host, port).to_socket_addrs().ok()).flatten()?.next()
}

fn group(text: &str) -> Result<IpAddr, String> {
    let address: Option<IpAddr> = text.parse().ok();
    address.filter(IpAddr::is_multicast).ok_or_else(|| format!("join `{text}`: not the address of a multicast group"))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_sound() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_is_as_reviewed() {
        let mut command = Arguments::command().term_width(100);
        let mut pages = vec![command.render_long_help().to_string()];
        for name in ["demo", "reflect", "ping", "suite", "sweep", "report", "compare"] {
            let sub = command.find_subcommand_mut(name).unwrap();
            pages.push(format!("===== {name}\n{}", sub.render_long_help()));
        }
        insta::assert_snapshot!(pages.join("\n"));
    }

    #[test]
    fn man_page_and_completions_are_as_reviewed() {
        let mut man = Vec::new();
        clap_mangen::Man::new(Arguments::command()).render(&mut man).unwrap();
        insta::assert_snapshot!("man", String::from_utf8(man).unwrap());
        let mut bash = Vec::new();
        clap_complete::generate(Shell::Bash, &mut Arguments::command(), "tickpong", &mut bash);
        insta::assert_snapshot!("bash", String::from_utf8(bash).unwrap());
    }

    #[test]
    fn addresses_are_written_in_many_ways() {
        let table = [
            ("10.0.0.1", "10.0.0.1:7410"),
            ("10.0.0.1:9", "10.0.0.1:9"),
            ("fd00::1", "[fd00::1]:7410"),
            ("[fd00::1]", "[fd00::1]:7410"),
            ("[fd00::1]:9", "[fd00::1]:9"),
            ("fe80::1%lo", "[fe80::1%1]:7410"),
            ("[fe80::1%lo]", "[fe80::1%1]:7410"),
            ("[fe80::1%lo]:9", "[fe80::1%1]:9"),
        ];
        for (text, address) in table {
            assert_eq!(control_address(text), Ok(address.parse().unwrap()), "{text}");
        }
        for text in ["localhost", "[fe80::1%lo]9", "[fe80::1%lo]:x", "fe80::1%nowhere"] {
            assert!(control_address(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_makes_no_sense_says_so() {
        let refused = |arguments: &[&str]| {
            let error = Arguments::try_parse_from(["tickpong"].iter().chain(arguments)).unwrap_err();
            error.to_string().lines().next().unwrap().to_owned()
        };
        let said = [
            refused(&["ping", "host", "--rate", "0"]),
            refused(&["ping", "host", "--size", "55"]),
            refused(&["ping", "host", "--size", "70000"]),
            refused(&["ping", "host", "--duration", "10"]),
            refused(&["ping", "host", "--cpu", "first"]),
            refused(&["ping", "host", "--closed", "--rate", "1k"]),
            refused(&["ping", "host", "--cpu", "1", "--tx-cpu", "2"]),
            refused(&["ping", "host", "--label", "novalue"]),
            refused(&["ping", "host", "--observations"]),
            refused(&["ping", "host", "--api", "carrier-pigeon"]),
            refused(&["reflect", "--listen", "somewhere"]),
            refused(&["reflect", "--join", "10.0.0.1"]),
            refused(&["demo", "--hosts", "three"]),
            refused(&["disclose", "--diff", "one.json"]),
            refused(&["disclose", "--diff", "one.json", "other.json", "--interface", "lo"]),
        ];
        insta::assert_snapshot!(said.join("\n"));
    }
}
