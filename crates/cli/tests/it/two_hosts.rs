//! What the tests of real runs share: their turn on this machine, processes that end with their test, and two hosts between which trouble
//! can be planted.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tempfile::{NamedTempFile, TempDir};
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_hostio::thread::{allowed_cpus, default_cpus};
use tickpong_record::Run;
use tickpong_units::Nanos;

/// The command under test.
pub(crate) const TICKPONG: &str = env!("CARGO_BIN_EXE_tickpong");
/// How long anything may take on a machine that is very busy.
pub(crate) const PATIENCE: Nanos = Nanos::from_secs(20);

const LOOK: Nanos = Nanos::from_millis(10);

/// The right to measure: two runs at once would measure each other. Held against the other tests of this process, and of others.
pub(crate) struct Turn {
    _processes: File,
    _threads: MutexGuard<'static, ()>,
}

impl Turn {
    pub(crate) fn take() -> Self {
        static THREADS: Mutex<()> = Mutex::new(());
        let threads = THREADS.lock().unwrap_or_else(PoisonError::into_inner);
        let path = std::env::temp_dir().join("tickpong-tests.lock");
        // Whoever came first has made the file, perhaps as another user; to lock it, reading is enough.
        let processes = File::open(&path).or_else(|_| File::create(&path)).unwrap();
        processes.lock().unwrap();
        Self { _processes: processes, _threads: threads }
    }
}

/// Says why a test is skipped; fails instead where the machine has been promised to allow everything.
#[expect(clippy::print_stdout, reason = "what a test prints is for whoever reads its output")]
pub(crate) fn skip(reason: &str) {
    assert!(std::env::var_os("TICKPONG_REQUIRE_NET").is_none_or(|value| value != "1"), "not to be skipped: {reason}");
    println!("skipped: {reason}");
}

/// The arguments of a short run, told as data; of a flag that is given, the last counts.
///
/// The threads wait for datagrams: the kernel is quick to give a CPU to one that wakes, even where a spinning one would wait for it long.
pub(crate) fn short<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let usual = ["--rate=5k", "--duration=1s", "--interval=100ms", "--deadline=1s", "--api=udp-block", "--format=json"];
    let is_closed = arguments.contains(&"--closed");
    let all = [&usual[usize::from(is_closed)..], arguments].concat();
    let is_last = |at: usize| !all[at + 1..].iter().any(|later| flag(later) == flag(all[at]));
    (0..all.len()).filter(|&at| is_last(at)).map(|at| all[at]).collect()
}

fn flag(argument: &str) -> &str {
    argument.split_once('=').map_or(argument, |(flag, _)| flag)
}

/// Waits until `what` is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let until = monotonic_ns() + PATIENCE.get();
    while !is_so() {
        assert!(monotonic_ns() < until, "waited {PATIENCE} for nothing: {what}");
        sleep(LOOK);
    }
}

/// A process that ends with its test.
pub(crate) struct Process {
    child: Child,
    out: NamedTempFile,
    err: NamedTempFile,
    started_ns: u64,
}

impl Process {
    pub(crate) fn start(command: &mut Command) -> Self {
        // Files and not pipes: nobody need read along.
        let (out, err) = (NamedTempFile::new().unwrap(), NamedTempFile::new().unwrap());
        command.stdin(Stdio::null()).stdout(out.reopen().unwrap()).stderr(err.reopen().unwrap());
        let started_ns = monotonic_ns();
        Self { child: command.spawn().unwrap(), out, err, started_ns }
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(self.child.id().try_into().unwrap())
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).unwrap();
    }

    /// What it has written to standard output so far.
    pub(crate) fn said(&self) -> String {
        fs::read_to_string(self.out.path()).unwrap()
    }

    /// Waits until it has written `mark`, and gives the rest of that line.
    pub(crate) fn await_line(&self, mark: &str) -> String {
        let after = |said: &str| {
            let (_, rest) = said.split_once(mark)?;
            rest.split_once('\n').map(|(line, _)| line.to_owned())
        };
        eventually(&format!("`{mark}` from process {}", self.child.id()), || {
            let is_said = after(&self.said()).is_some();
            assert!(is_said || self.is_running(), "never said `{mark}`: {self}");
            is_said
        });
        after(&self.said()).unwrap()
    }

    /// Waits until its host has taken in so many more datagrams: a run is going on.
    pub(crate) fn await_datagrams(&self, count: u64) {
        let before = self.datagrams();
        eventually(&format!("{count} datagrams at process {}", self.child.id()), || {
            assert!(self.is_running(), "{self}");
            self.datagrams() >= before + count
        });
    }

    fn datagrams(&self) -> u64 {
        let of = |file: &str| fs::read_to_string(format!("/proc/{}/net/{file}", self.child.id())).unwrap_or_default();
        let (v4, v6) = (of("snmp"), of("snmp6"));
        let mut words =
            v4.lines().filter(|line| line.starts_with("Udp: ")).nth(1).unwrap_or_default().split(' ').skip(1);
        let v6 = v6.lines().find_map(|line| line.strip_prefix("Udp6InDatagrams"));
        [words.next(), v6.map(str::trim)].iter().flatten().filter_map(|count| count.parse::<u64>().ok()).sum()
    }

    /// Takes nothing away from who waits for its end.
    pub(crate) fn is_running(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        waitid(Id::Pid(self.pid()), flags) == Ok(WaitStatus::StillAlive)
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        let id = self.child.id();
        eventually(&format!("the end of process {id}"), || !self.is_running());
        let took = Nanos::new(monotonic_ns() - self.started_ns);
        let status = self.child.wait().unwrap();
        let said = |file: &NamedTempFile| fs::read_to_string(file.path()).unwrap();
        // The shell's way of saying which signal it was.
        let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or_default();
        Ended { code, out: said(&self.out), err: said(&self.err), took }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = |path: &Path| fs::read_to_string(path).unwrap_or_default();
        write!(f, "process {}:\n{}\n{}", self.child.id(), said(self.out.path()), said(self.err.path()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came of a process.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Nanos,
}

impl Ended {
    /// The run that it printed as data, whose every sum is right.
    pub(crate) fn run(&self) -> Run {
        let run: Run = serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        assert_adds_up(&run);
        run
    }
}

/// Plays until a busy machine has left a run alone, for some time. `play` gives nothing where it is skipped.
///
/// A run was not left alone when it was kept from its CPUs for longer than its deadline: what was then still in the sockets counts as lost.
pub(crate) fn undisturbed<T>(mut play: impl FnMut() -> Option<(Run, T)>) -> Option<(Run, T)> {
    let until = monotonic_ns() + PATIENCE.get();
    while monotonic_ns() < until {
        let (run, with) = play()?;
        if run.fates.late == 0 && run.ignored.stale == 0 {
            return Some((run, with));
        }
    }
    play()
}

/// Every scheduled message has one fate, every lost one a place.
pub(crate) fn assert_adds_up(run: &Run) {
    let losses = run.losses;
    assert!(run.fates.add_up() && run.fates_after_warm_up.add_up(), "{:?}", run.fates);
    let lost = losses.pinger_socket + losses.reflector_socket + losses.reflector_unanswered + losses.unexplained;
    assert_eq!(lost, run.fates.lost, "{losses:?}");
    if let (Some(outbound), Some(inbound)) = (losses.unexplained_outbound, losses.unexplained_inbound) {
        assert_eq!(outbound + inbound, losses.unexplained, "{losses:?}");
    }
    assert!(losses.send_refused <= run.fates.unsent, "{losses:?} {:?}", run.fates);
}

/// The command where a user without rights may run it.
pub(crate) fn for_anybody() -> (TempDir, String) {
    let directory = TempDir::new().unwrap();
    let copy = directory.path().join("tickpong");
    fs::copy(TICKPONG, &copy).unwrap();
    for path in [directory.path(), &copy] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let copy = copy.to_str().unwrap().to_owned();
    (directory, copy)
}

/// What makes a program run without any right.
pub(crate) const AS_NOBODY: &[&str] = &["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

/// One of two hosts.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    Pinger,
    Reflector,
}

/// Each side by itself would choose the same CPU.
fn cpu(side: Side) -> String {
    let hot = default_cpus(&allowed_cpus().unwrap(), 2).hot;
    format!("--cpu={}", hot[side as usize].get())
}

/// A datagram's kind, as it stands in its header.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    Ping = 0,
    Pong = 1,
}

/// A rule that drops one of every `of` datagrams of a kind, where a host takes them in or lets them out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planted {
    pub(crate) side: Side,
    pub(crate) hook: &'static str,
    pub(crate) kind: Kind,
    pub(crate) of: u32,
}

/// Two hosts with names: network namespaces joined by a veth pair, into which tests can reach. They go with this value.
pub(crate) struct NamedHosts {
    names: [String; 2],
    _turn: Turn,
}

impl NamedHosts {
    pub(crate) const REFLECTOR: &str = "10.78.0.2";
    pub(crate) const REFLECTOR_V6: &str = "fd78::2";
    /// Means something with an interface only.
    pub(crate) const REFLECTOR_LINK_LOCAL: &str = "fe80::2";
    pub(crate) const PINGER_INTERFACE: &str = "tp-1";
    pub(crate) const REFLECTOR_INTERFACE: &str = "tp-2";

    /// Sets them up, once it is this test's turn; `None` where the machine refuses, and the test is skipped.
    pub(crate) fn up() -> Option<Self> {
        let turn = Turn::take();
        let names = ["pinger", "reflector"].map(|side| format!("tickpong-{}-{side}", std::process::id()));
        let hosts = Self { names, _turn: turn };
        match hosts.set_up() {
            Ok(()) => Some(hosts),
            Err(refused) => {
                skip(&refused);
                None
            }
        }
    }

    fn set_up(&self) -> Result<(), String> {
        let [pinger, reflector] = &self.names;
        for name in &self.names {
            ip(&format!("netns add {name}"))?;
        }
        let peer = format!("peer name tp-2 address 02:00:00:00:78:02 netns {reflector}");
        ip(&format!("-n {pinger} link add tp-1 address 02:00:00:00:78:01 type veth {peer}"))?;
        for (own, other, name) in [(1, 2, pinger), (2, 1, reflector)] {
            ip(&format!("-n {name} link set lo up"))?;
            ip(&format!("-n {name} link set tp-{own} addrgenmode none"))?;
            ip(&format!("-n {name} link set tp-{own} up"))?;
            for prefix in ["10.78.0.", "fd78::", "fe80::"] {
                let length = if prefix.contains('.') { "24" } else { "64 nodad" };
                ip(&format!("-n {name} addr add {prefix}{own}/{length} dev tp-{own}"))?;
                let known = format!("{prefix}{other} lladdr 02:00:00:00:78:0{other} dev tp-{own} nud permanent");
                ip(&format!("-n {name} neigh replace {known}"))?;
            }
        }
        for (own, name) in (1..).zip(&self.names) {
            // An end that is up drops what it is given until it has seen that the other is up as well.
            let is_up = || ip(&format!("-n {name} link show tp-{own}")).is_ok_and(|said| said.contains("state UP"));
            eventually("the pair is up", is_up);
        }
        self.nft(Side::Pinger, "list ruleset").map(drop)
    }

    pub(crate) fn name(&self, side: Side) -> &str {
        match side {
            Side::Pinger => &self.names[0],
            Side::Reflector => &self.names[1],
        }
    }

    /// A command on one of the hosts. Its process is the program's own.
    pub(crate) fn command(&self, side: Side, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", self.name(side), program]).env_remove("TICKPONG_KEY");
        command
    }

    /// Starts a reflector, and waits until it listens.
    pub(crate) fn reflect(&self, arguments: &[&str]) -> Process {
        self.reflect_by(&[TICKPONG], arguments)
    }

    /// The same by another command line than the program's name.
    pub(crate) fn reflect_by(&self, program: &[&str], arguments: &[&str]) -> Process {
        let mut command = self.command(Side::Reflector, program[0]);
        let listen = format!("--listen={}", Self::REFLECTOR);
        let usual = ["--api=udp-block", &listen, &cpu(Side::Reflector)];
        let is_given = |usual: &str| arguments.iter().any(|given| flag(given) == flag(usual));
        command.args(&program[1..]).args(["reflect", "--insecure"]).args(arguments);
        command.args(usual.into_iter().filter(|usual| !is_given(usual)));
        let reflector = Process::start(&mut command);
        reflector.await_line("listening on ");
        reflector
    }

    /// Starts a pinger with a short run.
    pub(crate) fn ping(&self, arguments: &[&str]) -> Process {
        self.ping_at(Self::REFLECTOR, arguments)
    }

    pub(crate) fn ping_at(&self, reflector: &str, arguments: &[&str]) -> Process {
        self.ping_by(&[TICKPONG], reflector, arguments)
    }

    /// The same by another command line than the program's name.
    pub(crate) fn ping_by(&self, program: &[&str], reflector: &str, arguments: &[&str]) -> Process {
        let mut command = self.command(Side::Pinger, program[0]);
        command.args(&program[1..]).args(["ping", reflector]).args(short(arguments));
        if !arguments.iter().any(|argument| argument.contains("cpu=")) {
            command.arg(cpu(Side::Pinger));
        }
        Process::start(&mut command)
    }

    /// Pulls the pinger's cable, or plugs it in again.
    pub(crate) fn set_link(&self, state: &str) {
        ip(&format!("-n {} link set {} {state}", self.name(Side::Pinger), Self::PINGER_INTERFACE)).unwrap();
    }

    /// Plants a rule. It leaves path probes alone, which are neither ping nor pong.
    pub(crate) fn plant(&self, planted: Planted) {
        let Planted { side, hook, kind, of } = planted;
        let kind = kind as u8;
        // The kind of a datagram stands in its sixth byte, behind eight of UDP's header.
        let matching = format!("meta l4proto udp @th,104,8 {kind} numgen inc mod {of} 0");
        let chain = format!("type filter hook {hook} priority 0; {matching} counter name lost drop;");
        let rules = format!("table inet {hook} {{ counter lost {{ }}; chain drops {{ {chain} }}; }}");
        self.nft(side, &rules).unwrap();
    }

    /// How many datagrams the rules of a hook have dropped, by the kernel's own count.
    pub(crate) fn dropped(&self, side: Side, hook: &str) -> u64 {
        let said = self.nft(side, &format!("list counter inet {hook} lost")).unwrap();
        let mut words = said.split_whitespace().skip_while(|word| *word != "packets").skip(1);
        words.next().unwrap().parse().unwrap()
    }

    fn nft(&self, side: Side, rules: &str) -> Result<String, String> {
        let output = self.command(side, "nft").arg(rules).output().map_err(|error| error.to_string())?;
        said(output).map_err(|refused| format!("nft: {refused}"))
    }
}

impl Drop for NamedHosts {
    fn drop(&mut self) {
        for name in &self.names {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

pub(crate) fn ip(arguments: &str) -> Result<String, String> {
    let output = Command::new("ip").args(arguments.split(' ')).output().map_err(|error| format!("run ip: {error}"))?;
    said(output).map_err(|refused| format!("ip {arguments}: {refused}"))
}

fn said(output: std::process::Output) -> Result<String, String> {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    if output.status.success() { Ok(text(output.stdout)) } else { Err(text(output.stderr).trim().to_owned()) }
}
