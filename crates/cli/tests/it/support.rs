//! The command under test, and what it says.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_units::Nanos;

use crate::two_hosts::Turn;

/// Longer than anything here takes, even on a machine that is busy with something else.
const PATIENCE: Duration = Duration::from_secs(40);
/// A run that two CPUs play beside their other work.
const MODEST_PLAN: [(&str, &str); 6] = [
    ("--rate", "2k"),
    ("--duration", "300ms"),
    ("--interval", "100ms"),
    ("--warm-up", "100ms"),
    ("--deadline", "200ms"),
    ("--api", "udp-block"),
];
/// A machine that others use too may fail a run's plan by its own doing; not so many times in a row.
const TRIES: usize = 6;

/// Held by a test that plays: runs at the same time would measure each other.
pub(crate) fn alone() -> Turn {
    Turn::take()
}

/// The command, with nothing of this process's own settings.
pub(crate) fn tickpong(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tickpong"));
    command.args(arguments).env_remove("TICKPONG_KEY").env_remove("COLUMNS").env_remove("RUST_BACKTRACE");
    command.stdin(Stdio::null());
    command
}

/// Runs the command to its end.
pub(crate) fn run(arguments: &[&str]) -> Outcome {
    Running::start(&mut tickpong(arguments)).finish()
}

/// What a command came to.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
    pub(crate) took: Nanos,
}

impl Outcome {
    /// The run that was printed.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("no JSON: {error}: {self:#?}"))
    }

    /// It was refused with this exit code, in words for people that hold all of these.
    #[track_caller]
    pub(crate) fn is_refusal(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.out, "", "a refusal prints no result");
        assert!(self.err.starts_with("error: "), "{self:#?}");
        for word in words {
            assert!(self.err.contains(word), "`{word}` is missing: {self:#?}");
        }
        for junk in
            ["Os {", "Custom {", "kind:", "Some(", "None", "Err(", "panicked", "RUST_BACKTRACE", "std::", "Error", "{ "]
        {
            assert!(!self.err.contains(junk), "`{junk}` means nothing to a person: {self:#?}");
        }
    }

    /// It played, well or badly, and the exit code tells which.
    #[track_caller]
    pub(crate) fn played(&self) -> Value {
        let run = self.json();
        assert_eq!(self.code, Some(if run["valid"] == true { 0 } else { 5 }), "{self:#?}");
        run
    }
}

/// A command that runs; killed when dropped.
pub(crate) struct Running {
    child: Child,
    out: Option<JoinHandle<String>>,
    err: Option<JoinHandle<String>>,
    since: u64,
}

impl Running {
    pub(crate) fn start(command: &mut Command) -> Self {
        let since = monotonic_ns();
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let out = Some(collect(child.stdout.take().unwrap()));
        let err = Some(collect(child.stderr.take().unwrap()));
        Self { child, out, err, since }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it as nobody can refuse to be ended.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Outcome {
        let status = wait(&mut self.child);
        let took = Nanos::new(monotonic_ns() - self.since);
        let (out, err) = (self.out.take().unwrap().join().unwrap(), self.err.take().unwrap().join().unwrap());
        let status = status.unwrap_or_else(|| panic!("it did not end in {PATIENCE:?}: {out}{err}"));
        Outcome { code: status.code(), out, err, took }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut text = String::new();
        from.read_to_string(&mut text).unwrap();
        text
    })
}

/// Waits for a child, and kills it when that takes too long.
fn wait(child: &mut Child) -> Option<ExitStatus> {
    let ended = within(PATIENCE, || child.try_wait().unwrap());
    if ended.is_none() {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    ended
}

/// Looks for something until it is there or the time is over.
pub(crate) fn within<T>(patience: Duration, mut look: impl FnMut() -> Option<T>) -> Option<T> {
    let until = monotonic_ns() + u64::try_from(patience.as_nanos()).unwrap();
    loop {
        if let Some(found) = look() {
            return Some(found);
        }
        if monotonic_ns() >= until {
            return None;
        }
        sleep(Nanos::from_millis(10));
    }
}

/// A reflector in a process of its own; killed when dropped.
pub(crate) struct Reflector {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    lines: Receiver<String>,
}

impl Reflector {
    /// On this host's loopback address, without a key.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::listen("127.0.0.1:0", arguments)
    }

    pub(crate) fn listen(address: &str, arguments: &[&str]) -> Self {
        let fixed = ["reflect", "--api", "udp-block", "--listen", address];
        Self::of(tickpong(&[&fixed, arguments].concat()))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (tell, lines) = mpsc::channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| tell.send(line)));
        let first = lines.recv_timeout(PATIENCE).unwrap();
        let address = first.strip_prefix("listening on ").and_then(|address| address.parse().ok());
        Self { child, address: address.unwrap_or_else(|| panic!("{first}")), lines }
    }

    /// What a pinger calls it.
    pub(crate) fn host(&self) -> String {
        self.address.to_string()
    }

    /// The next line that says this; those before it are passed over.
    #[track_caller]
    pub(crate) fn says(&self, words: &str) -> String {
        let mut passed_over = Vec::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line.contains(words) => return line,
                Ok(line) => passed_over.push(line),
                Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                    panic!("it never said `{words}`, but {passed_over:?}")
                }
            }
        }
    }

    /// How it ended, of its own accord.
    #[track_caller]
    pub(crate) fn end(mut self) -> ExitStatus {
        wait(&mut self.child).expect("the reflector ends")
    }
}

impl Drop for Reflector {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A pinger with a modest plan, but for what is asked for.
pub(crate) fn pinger(host: &str, arguments: &[&str]) -> Command {
    let has = |flag: &str| arguments.contains(&flag);
    let own_pace = has("--closed") || has("trace");
    let mut command = tickpong(&["ping", host]);
    for (flag, value) in MODEST_PLAN {
        if !(has(flag) || own_pace && flag == "--rate") {
            command.args([flag, value]);
        }
    }
    command.args(arguments);
    command
}

/// Plays once.
pub(crate) fn ping(host: &str, arguments: &[&str]) -> Outcome {
    Running::start(&mut pinger(host, arguments)).finish()
}

/// Plays, prints JSON, and is valid: a machine that is busy elsewhere gets a few tries.
#[track_caller]
pub(crate) fn valid_run(host: &str, arguments: &[&str]) -> Value {
    valid(|| pinger(host, &[arguments, &["--format", "json"]].concat()), directory_of(arguments).as_deref()).json()
}

/// The first valid run of a few. What an invalid one left in `directory` is taken away.
#[track_caller]
pub(crate) fn valid(command: impl Fn() -> Command, directory: Option<&Path>) -> Outcome {
    let mut last = None;
    for _ in 0..TRIES {
        let outcome = Running::start(&mut command()).finish();
        match outcome.code {
            Some(0) => return outcome,
            Some(5) if !outcome.out.is_empty() => {
                if let Some(directory) = directory {
                    fs::remove_dir_all(directory).unwrap();
                }
            }
            _ => panic!("{outcome:#?}"),
        }
        last = Some(outcome);
    }
    panic!("{TRIES} runs, and none was valid: {last:#?}");
}

fn directory_of(arguments: &[&str]) -> Option<PathBuf> {
    arguments.windows(2).find(|pair| pair[0] == "-o").map(|pair| PathBuf::from(pair[1]))
}

/// A file that its owner alone may read.
pub(crate) fn key_file(directory: &Path, name: &str, key: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    fs::write(&path, format!("{key}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    text(&path)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A number of a run.
#[track_caller]
pub(crate) fn number(run: &Value, pointer: &str) -> u64 {
    run.pointer(pointer).and_then(Value::as_u64).unwrap_or_else(|| panic!("{pointer} in {run:#}"))
}

/// Every scheduled message has exactly one fate.
#[track_caller]
pub(crate) fn assert_fates_add_up(run: &Value) {
    for fates in ["/fates", "/fates_after_warm_up"] {
        let of = |fate: &str| number(run, &format!("{fates}/{fate}"));
        assert_eq!(of("answered") + of("lost") + of("late") + of("unsent"), of("scheduled"), "{run:#}");
    }
    let of = |cause: &str| number(run, &format!("/losses/{cause}"));
    let explained = of("pinger_socket") + of("reflector_socket") + of("reflector_unanswered") + of("unexplained");
    assert_eq!(explained, number(run, "/fates/lost"), "{run:#}");
}
