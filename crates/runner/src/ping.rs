//! The pinger's side of a run, from the host's name to the run directory.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use tickpong_hostio::clock::{ClockChoice, HostClock, wall_time};
use tickpong_hostio::facts::interface_of;
use tickpong_hostio::hosts::Hosts;
use tickpong_hostio::socket::{SocketSetup, UdpSocket, source_towards, udp_counters};
use tickpong_hostio::thread::Cpu;
use tickpong_probe::probe_path;
use tickpong_record::{Api, Metric, Plan, RecordError, ReflectorReport, Run, RunWriter, Trace};
use tickpong_stats::Histogram;
use tickpong_units::{Nanos, PingerClock};
use tickpong_wire::Token;
use tickpong_wire::control::Message;

use crate::assemble::Parts;
use crate::connection::Connection;
use crate::handshake::{PATIENCE, greet, refusal};
use crate::hot::{Held, HotSettings, Placed, Warnings, hold, place, warn};
use crate::key::{Key, Role};
use crate::platform::HostPlatform;
use crate::resolve::{announce, connect, data_address, resolve, scoped};
use crate::session::{Stage, play};
use crate::{Progress, RunnerError, host};

/// How long the clock is calibrated before a run.
const CALIBRATION: Nanos = Nanos::from_millis(100);
/// Path probes, and the time between them: two seconds in all.
const PATH_TRIES: u64 = 20;
const PATH_GAP: Nanos = Nanos::from_millis(100);
/// How long the reflector may take to report.
const REPORT_PATIENCE: Nanos = Nanos::from_secs(5);
/// IP and UDP headers, which count against the path MTU.
const V4_HEADERS: usize = 28;
const V6_HEADERS: usize = 48;

/// What a pinger is asked to do.
#[derive(Clone, Debug)]
pub struct PingSettings {
    /// The reflector: `HOST` or `HOST:PORT`.
    pub host: String,
    /// What to play. Its `api_reflector` is filled in from what the reflector says.
    pub plan: Plan,
    /// The trace, where the plan plays one.
    pub trace: Option<Trace>,
    /// The local data address; the one that the way to the reflector's data address has otherwise.
    pub bind: Option<IpAddr>,
    /// The interface that data goes through.
    pub interface: Option<String>,
    /// The interface that the control connection goes through.
    pub control_interface: Option<String>,
    /// The shared key.
    pub key: Key,
    /// Hot threads and their CPUs.
    pub cpus: HotCpus,
    /// CPUs that are somebody else's, where there are others.
    pub avoid: Vec<Cpu>,
    /// The kind of two hosts, where both are this machine.
    pub hosts: Option<Hosts>,
    /// What is known beforehand to weaken the figures.
    pub warnings: Vec<String>,
    /// What to ask of the kernel.
    pub hot: HotSettings,
    /// Which clock.
    pub clock: ClockChoice,
    /// Bytes of socket buffer to ask for, each way.
    pub buffer_bytes: usize,
    /// The scenario of a suite that this is a run of, and which one of its repetitions.
    pub scenario: Option<(String, u64)>,
    /// What the user says of the run.
    pub labels: BTreeMap<String, String>,
    /// Where to write the run directory.
    pub output: Option<PathBuf>,
    /// Whether to write raw observations there, too.
    pub observations: bool,
}

/// The pinger's hot threads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HotCpus {
    /// One that sends and receives in turn; on this CPU, or on one of those allowed.
    One(Option<Cpu>),
    /// One that sends and one that receives.
    Two {
        /// The sender's CPU.
        tx: Option<Cpu>,
        /// The receiver's.
        rx: Option<Cpu>,
    },
}

/// A run that was made.
#[derive(Debug)]
pub struct Finished {
    /// What was found out.
    pub run: Run,
    /// All intervals merged.
    pub histograms: BTreeMap<Metric, Histogram>,
    /// Why the run directory could not be written, where one was asked for and could not.
    pub not_written: Option<RecordError>,
}

/// A session with its sockets, before anything is sent.
struct Opened {
    connection: Connection,
    token: Token,
    socket: UdpSocket,
    data: SocketAddr,
    plan: Plan,
    cpus: Vec<Cpu>,
    helpers: Vec<Cpu>,
}

/// Makes one run. A person may set `stop` at any time: what was measured until then is kept.
///
/// # Errors
///
/// When no run could be made. A run that went wrong is a [`Finished`] one, and says so.
pub fn ping(
    settings: &PingSettings,
    stop: &AtomicBool,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Result<Finished, RunnerError> {
    // First of all, so that a name that is taken costs nobody a session.
    settings.output.as_deref().map_or(Ok(()), RunWriter::refuse_existing)?;
    let clock = HostClock::choose(settings.clock, CALIBRATION)
        .map_err(|refused| RunnerError::Clock { reason: refused.to_string() })?;
    let warnings = Warnings::new(settings.warnings.clone());
    let mut opened = open(settings, &warnings)?;
    let started_at = wall_time();
    let prepared = prepare(&opened, settings, started_at, &clock, stop, &warnings);
    let (writer, held) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return opened.let_go(error),
    };
    opened.connection.send("start the run", &Message::Start)?;
    let drops_before = opened.socket.drops();
    let udp_before = udp_counters();
    let played = play(
        &mut Stage {
            plan: &opened.plan,
            trace: settings.trace.as_ref(),
            token: opened.token,
            socket: &opened.socket,
            clock: &clock,
            connection: &mut opened.connection,
            cpus: &opened.cpus,
            helpers: &opened.helpers,
            fifo: settings.hot.fifo,
            warnings: &warnings,
        },
        writer,
        stop,
        progress,
    );
    let clock_check = clock.check();
    let in_force = held.in_force(played.metering.in_force.clone(), &opened.socket);
    drop(held);
    let drops = opened.socket.drops().map(|now| u64::from(now.wrapping_sub(drops_before.unwrap_or_default())));
    host::warn_of_errors(&opened.socket, &warnings);
    let sockets = host::socket_facts(&opened.socket, drops, host::udp_difference(udp_before, udp_counters()));
    let mut watched = played.watched.clone();
    let report = if watched.lost.is_none() { fetch_report(&mut opened.connection, &mut watched.lost) } else { None };
    let pinger = host::disclose(Role::Pinger, opened.interface(settings).as_deref());
    let parts = Parts {
        settings,
        plan: opened.plan,
        clock: &clock,
        clock_check,
        started_at,
        sockets,
        in_force,
        report,
        warnings,
        pinger,
        watched,
    };
    Ok(parts.finish(played))
}

/// Opens the session of a run and lets it go, so that what keeps it from being made is known before the first packet: by which network
/// API the reflector would play.
///
/// # Errors
///
/// Everything that [`ping`] would say before it sends.
pub fn try_out(settings: &PingSettings) -> Result<Api, RunnerError> {
    let mut opened = open(settings, &Warnings::default())?;
    fetch_report(&mut opened.connection, &mut None);
    Ok(opened.plan.api_reflector)
}

/// Everything that may fail before the run starts: a directory that cannot be written costs no run, nor does a path that leads nowhere.
fn prepare(
    opened: &Opened,
    settings: &PingSettings,
    started_at: SystemTime,
    clock: &HostClock,
    stop: &AtomicBool,
    warnings: &Warnings,
) -> Result<(Option<RunWriter>, Held), RunnerError> {
    let writer = settings.output.as_ref();
    let writer = writer.map(|target| RunWriter::create(target, Some(started_at), settings.observations)).transpose()?;
    let held = hold(settings.hot, warnings);
    check_path(opened, clock, stop, warnings)?;
    Ok((writer, held))
}

impl Opened {
    /// The interface that data goes through, as far as it is known.
    fn interface(&self, settings: &PingSettings) -> Option<String> {
        let of_address = || interface_of(self.socket.local_addr().ok()?.ip()).ok().flatten();
        settings.interface.clone().or_else(of_address)
    }

    /// Ends the session in good order, so that the next one finds the reflector free, for this reason.
    fn let_go(mut self, because: RunnerError) -> Result<Finished, RunnerError> {
        fetch_report(&mut self.connection, &mut None);
        Err(because)
    }
}

/// Connects, proves, agrees on data addresses. Nothing is sent to them yet.
fn open(settings: &PingSettings, warnings: &Warnings) -> Result<Opened, RunnerError> {
    let mut plan = settings.plan.clone();
    let asked = match settings.cpus {
        HotCpus::One(cpu) => vec![cpu],
        HotCpus::Two { tx, rx } => vec![tx, rx],
    };
    let Placed { hot: cpus, helpers } = place(&asked, &settings.avoid)?;
    plan.tx_cpu = cpus.first().map(|cpu| cpu.get() as u64);
    plan.rx_cpu = cpus.get(1).map(|cpu| cpu.get() as u64);
    let plan = plan.checked()?;

    let addresses = resolve(&settings.host, settings.bind)?;
    let (mut connection, address) = connect(&addresses, settings.control_interface.as_deref())?;
    let token = greet(&mut connection, &settings.key, address)?;
    let doing = "open the session";
    let local = connection.local_addr().map_err(|source| RunnerError::Control { doing, source })?;
    let (mut data, api_reflector) = match connection.expect(doing, PATIENCE)? {
        Message::Offer { host, api } => {
            (data_address(SocketAddr::new(host, 0), address), api.parse().unwrap_or_default())
        }
        other => return Err(refusal(other, doing, address)),
    };
    let multicast = data.ip().is_multicast();
    if !settings.key.is_some() && data.ip() != address.ip() && !multicast {
        // Anybody on the way may have said so. A group is on this network, and has asked for what is sent to it.
        return Err(RunnerError::Elsewhere { address, data: data.ip() });
    }
    let mut setup = SocketSetup::new(source(settings, data, local)?);
    setup.interface.clone_from(&settings.interface);
    setup.buffer_bytes = settings.buffer_bytes;
    setup.busy_poll_us = (plan.api_pinger == Api::UdpBusyPoll).then_some(crate::serve::BUSY_POLL_US);
    let mut socket = UdpSocket::open(&setup)?;
    host::warn_of_socket(&socket, warnings);
    let ours = socket.local_addr()?;
    connection.send(
        doing,
        &Message::Open {
            data: SocketAddr::new(announce(ours.ip(), local.ip()), ours.port()),
            // The last message is waited for until two deadlines after it was sent.
            planned_ns: plan.length().saturating_add(plan.deadline_ns.saturating_mul(2)).get(),
            deadline_ns: plan.deadline_ns.get(),
            interval_ns: plan.interval_ns.get(),
        },
    )?;
    match connection.expect(doing, PATIENCE)? {
        Message::Opened { port } => data.set_port(port),
        other => return Err(refusal(other, doing, address)),
    }
    if multicast {
        socket.set_peer(data);
        if let Some(interface) = &settings.interface {
            socket.set_multicast_interface(interface)?;
        }
    } else {
        socket.connect(data)?;
    }
    Ok(Opened { connection, token, socket, data, plan: Plan { api_reflector, ..plan }, cpus, helpers })
}

/// Where data is sent from: as asked for, or as the way to `data` has it, which need not be that of the `control` connection.
fn source(settings: &PingSettings, data: SocketAddr, control: SocketAddr) -> Result<SocketAddr, RunnerError> {
    match settings.bind {
        Some(bind) if bind.is_ipv4() != data.is_ipv4() => Err(RunnerError::OtherFamily { bind, data: data.ip() }),
        Some(bind) => Ok(scoped(SocketAddr::new(bind, 0), control)),
        // Most hosts have no route to a group: without an interface it is the one of the control connection.
        None if data.ip().is_multicast() && settings.interface.is_none() => {
            Ok(SocketAddr::new(control.ip(), 0)).map(|source| scoped(source, control))
        }
        None => Ok(source_towards(data, settings.interface.as_deref())?),
    }
}

/// Does anything arrive at all? And in how many pieces?
fn check_path(opened: &Opened, clock: &HostClock, stop: &AtomicBool, warnings: &Warnings) -> Result<(), RunnerError> {
    // The probes wait in the kernel, whatever the run does: there is no hurry yet.
    let mut platform = HostPlatform::<PingerClock>::new(&opened.socket, clock, Api::UdpBlock, stop);
    let bytes = opened.plan.payload_bytes;
    let probe = probe_path(&mut platform, opened.token, bytes, PATH_TRIES, PATH_GAP);
    if stop.load(Ordering::Relaxed) {
        return Err(RunnerError::Interrupted);
    }
    if probe.answered.is_none() {
        return Err(RunnerError::NoPath {
            data: opened.data,
            sent: probe.sent,
            refused: probe.refused,
            bytes: bytes.get(),
        });
    }
    let headers = if opened.data.is_ipv4() { V4_HEADERS } else { V6_HEADERS };
    if let Some(mtu) = opened.socket.path_mtu()
        && bytes.get() + headers > mtu as usize
    {
        warn(warnings, format!("messages of {bytes} bytes travel in several fragments: the path's MTU is {mtu}"));
    }
    Ok(())
}

/// Ends the session, and asks what the reflector saw.
fn fetch_report(connection: &mut Connection, lost: &mut Option<String>) -> Option<ReflectorReport> {
    let doing = "fetch the reflector's report";
    connection.allow_report();
    let fetched = connection.send(doing, &Message::Finish).and_then(|()| {
        loop {
            match connection.expect(doing, REPORT_PATIENCE)? {
                Message::Pulse(_) => {}
                Message::Report { json } => return Ok(serde_json::from_slice(json).map_err(|error| error.to_string())),
                _ => return Err(RunnerError::OutOfTurn { doing }),
            }
        }
    });
    let problem = match fetched {
        Ok(Ok(report)) => return Some(report),
        Ok(Err(error)) => format!("its report cannot be read: {error}"),
        Err(error) => crate::hot::describe(&error),
    };
    *lost = Some(problem);
    None
}
