//! One session at the reflector: its data socket, its hot thread, and the watch over its pinger.

use std::net::SocketAddr;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Builder;

use tickpong_hostio::clock::monotonic_ns;
use tickpong_hostio::facts::interface_of;
use tickpong_hostio::socket::{MulticastGroup, SocketSetup, UdpCounters, UdpSocket, source_towards, udp_counters};
use tickpong_probe::{Reflector, ReflectorTotals, reflect as play};
use tickpong_record::capture::Turns;
use tickpong_record::{Api, InForce, ReflectorReport};
use tickpong_units::{Nanos, ReflectorClock};
use tickpong_wire::Token;
use tickpong_wire::control::{Message, Pulse};

use crate::connection::{Connection, Incoming};
use crate::hot::{HotThread, Warnings, describe, give_way, hold};
use crate::key::Role;
use crate::meter::{Meter, Metering};
use crate::platform::HostPlatform;
use crate::reflect::{ReflectEvent, STACK, Service};
use crate::resolve::{announce, canonical, data_address, scoped};
use crate::session::LEAD;
use crate::{RunnerError, host};

/// How long a receive call may poll the device's queue, by `udp-busy-poll`.
pub(crate) const BUSY_POLL_US: u32 = 50;
/// A session whose pinger says nothing for so long is dead.
const SILENCE: Nanos = Nanos::from_secs(5);
/// How much longer than its plan a session may take; then it is over, however lively its pinger is.
const OVERTIME: Nanos = Nanos::from_secs(10);
/// How often the watch looks what is to be done, unless a pulse is due before: seldom, because its turns may be in a hot thread's way.
const LOOK: Nanos = Nanos::from_millis(200);
/// How often a waiting hot thread looks whether it is to stop.
const HOT_LOOK: Nanos = Nanos::from_millis(50);
/// A deadline beyond this, or an interval below, makes no sense.
const MAX_DEADLINE: Nanos = Nanos::from_secs(3_600);
const MIN_INTERVAL: Nanos = Nanos::from_millis(1);
/// And so does a session beyond this: a run takes a week at most.
const MAX_PLANNED: Nanos = Nanos::from_secs(8 * 24 * 3_600);

/// What a pinger asked for.
pub(crate) struct Request {
    pub(crate) data: SocketAddr,
    pub(crate) planned: Nanos,
    pub(crate) deadline: Nanos,
    pub(crate) interval: Nanos,
}

impl Service<'_> {
    /// Tells the pinger where data is to go, and why not where that cannot be; the address to bind for it.
    pub(crate) fn offer(&self, connection: &mut Connection, peer: SocketAddr) -> Result<SocketAddr, RunnerError> {
        let settings = self.settings;
        let doing = "offer a session";
        let local = connection.local_addr().map_err(|source| RunnerError::Control { doing, source })?;
        let mut bind = match (settings.data, &settings.interface) {
            (Some(data), _) => scoped(canonical(data), local),
            (None, Some(interface)) if interface_of(local.ip()).ok().flatten().as_ref() != Some(interface) => {
                source_towards(peer, Some(interface))?
            }
            (None, _) => SocketAddr::new(local.ip(), 0),
        };
        if bind.ip().is_unspecified() {
            // Answers are to come from where pings go.
            bind.set_ip(local.ip());
        }
        bind = scoped(bind, local);
        let host = settings.join.unwrap_or_else(|| announce(bind.ip(), local.ip()));
        connection.send(doing, &Message::Offer { host, api: &settings.api.to_string() })?;
        Ok(bind)
    }

    /// Makes the data socket of a session, which hears and answers the pinger's address alone.
    pub(crate) fn open(
        &self,
        connection: &mut Connection,
        peer: SocketAddr,
        bind: SocketAddr,
        request: &Request,
    ) -> Result<(UdpSocket, Warnings), RunnerError> {
        let settings = self.settings;
        let pinger = data_address(request.data, peer);
        if !settings.key.is_some() && pinger.ip() != peer.ip() {
            // Without a key anybody may ask; the TCP connection alone has proven where they are.
            let reason =
                format!("without a key, data goes only to the address that asks for it, not to {}", pinger.ip());
            return Err(RunnerError::Refused { address: peer, reason });
        }
        if request.interval < MIN_INTERVAL || request.deadline > MAX_DEADLINE || request.planned > MAX_PLANNED {
            return Err(RunnerError::Refused { address: peer, reason: "its plan makes no sense".to_owned() });
        }
        let mut setup = SocketSetup::new(bind);
        setup.interface.clone_from(&settings.interface);
        setup.buffer_bytes = settings.buffer_bytes;
        setup.busy_poll_us = (settings.api == Api::UdpBusyPoll).then_some(BUSY_POLL_US);
        setup.receive_timeout = Some(HOT_LOOK);
        if let Some(group) = settings.join {
            setup.bind.set_ip(group);
            let interface = settings.interface.clone().or_else(|| interface_of(bind.ip()).ok().flatten());
            setup.join = Some(MulticastGroup { group, interface: interface.unwrap_or_default() });
        }
        let socket = UdpSocket::open(&setup)?;
        socket.connect(pinger)?;
        let warnings = Warnings::default();
        host::warn_of_socket(&socket, &warnings);
        connection.send("open a session", &Message::Opened { port: socket.local_addr()?.port() })?;
        (self.event)(ReflectEvent::Opened { peer, data: pinger });
        Ok((socket, warnings))
    }

    /// Serves one session to its end.
    pub(crate) fn serve(
        &self,
        connection: &mut Connection,
        token: Token,
        request: &Request,
        socket: &UdpSocket,
        warnings: Warnings,
    ) -> Served {
        let mut reflector = Reflector::new(token, request.deadline.saturating_mul(2));
        let (begin, end) = (AtomicBool::new(false), AtomicBool::new(false));
        let held = hold(self.settings.hot, &warnings);
        let meter = Meter::default();
        let (watched, turns) = std::thread::scope(|scope| {
            let hot = Builder::new().name("tickpong reflector".to_owned()).stack_size(STACK);
            let (clock, begin, end, warnings) = (&self.clock, &begin, &end, &warnings);
            let (reflector, entry) = (&mut reflector, meter.entry("reflector"));
            let hot = hot.spawn_scoped(scope, move || {
                let platform = |until| HostPlatform::<ReflectorClock>::new(socket, clock, self.settings.api, until);
                let (mut before, mut during) = (platform(begin), platform(end));
                let thread = HotThread { name: "reflector", cpu: self.cpu, fifo: self.settings.hot.fifo };
                thread.set_up(warnings);
                entry.set_up();
                // Until the plan starts; a ping that comes while nobody has said so is one all the same.
                let early = play(&mut before, reflector);
                entry.begin();
                let turns = play(&mut during, reflector);
                entry.end();
                Turns { all: early.all + turns.all, busy: early.busy + turns.busy }
            });
            let hot = hot.expect("the system gives a thread");
            give_way();
            let watching = Watching { request, socket, meter: &meter, begin };
            let watched = self.watch(connection, &watching);
            end.store(true, Ordering::Relaxed);
            begin.store(true, Ordering::Relaxed);
            let turns = hot.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            (watched, turns)
        });
        let metering = meter.finish();
        let in_force = held.in_force(metering.in_force.clone(), socket);
        drop(held);
        host::warn_of_errors(socket, &warnings);
        let totals = reflector.totals();
        let report = self.report(socket, &watched, totals, turns, (metering, in_force), warnings);
        Served { report, totals, how: watched.how }
    }

    /// Tells the pinger what was seen of its session, and a person how it went.
    pub(crate) fn close(&self, connection: &mut Connection, peer: SocketAddr, served: Served) {
        let Served { report, totals, how } = served;
        let sent = how.map_or_else(|| send_report(connection, &report), Err);
        let how = sent.map_or_else(|error| describe(&error), |()| "finished".to_owned());
        let answered = totals.received.saturating_sub(totals.unanswered);
        self.finished.store(true, Ordering::Relaxed);
        (self.event)(ReflectEvent::Closed { peer, received: totals.received, answered, how });
    }

    /// Watches over a session until the pinger finishes it, is gone, or says nothing for too long.
    fn watch(&self, connection: &mut Connection, watching: &Watching<'_>) -> Watched {
        let &Watching { request, socket, begin, .. } = watching;
        let mut watched = Watched { drops_before: socket.drops(), udp_before: udp_counters(), how: None };
        let (mut last_heard, mut start, mut pulses) = (monotonic_ns(), None, 0);
        let over_at = monotonic_ns().saturating_add((request.planned.saturating_add(OVERTIME)).get());
        loop {
            let now = monotonic_ns();
            if self.stop.load(Ordering::Relaxed) {
                watched.how = Some(RunnerError::Interrupted);
                return watched;
            }
            if start.is_some_and(|start| now >= start) {
                begin.store(true, Ordering::Relaxed);
            }
            if let Some(start) = start
                && now.saturating_sub(start) >= request.interval.saturating_mul(pulses + 1).get()
            {
                pulses = Nanos::new(now - start).whole(request.interval);
                let pulse = pulse(pulses - 1, watching.meter);
                if let Err(error) = connection.send("tell the pinger how it goes", &Message::Pulse(pulse)) {
                    watched.how = Some(error);
                    return watched;
                }
            }
            if now >= over_at {
                watched.how = Some(RunnerError::Overtime { planned: request.planned });
                return watched;
            }
            let next =
                |start| if now < start { start } else { start + request.interval.saturating_mul(pulses + 1).get() };
            let patience = start.map(next).map_or(LOOK, |at| LOOK.min(Nanos::new(at.saturating_sub(now))));
            match connection.poll("hear the pinger", patience) {
                Ok(Incoming::Nothing) if now - last_heard > SILENCE.get() => {
                    watched.how = Some(RunnerError::Silent { doing: "hear the pinger", seconds: 5 });
                    return watched;
                }
                Ok(Incoming::Nothing) => {}
                Ok(Incoming::Message(Message::Alive)) => last_heard = now,
                Ok(Incoming::Message(Message::Start)) => {
                    // What comes before the first message is no part of the run.
                    (last_heard, start) = (now, Some(now + LEAD.get()));
                    (watched.drops_before, watched.udp_before) = (socket.drops(), udp_counters());
                }
                Ok(Incoming::Message(Message::Finish)) => return watched,
                Ok(Incoming::Message(_)) => {
                    watched.how = Some(RunnerError::OutOfTurn { doing: "hear the pinger" });
                    return watched;
                }
                Err(error) => {
                    watched.how = Some(error);
                    return watched;
                }
            }
        }
    }

    fn report(
        &self,
        socket: &UdpSocket,
        watched: &Watched,
        totals: ReflectorTotals,
        turns: Turns,
        (metering, in_force): (Metering, InForce),
        warnings: Warnings,
    ) -> ReflectorReport {
        let check = self.clock.check();
        let local = socket.local_addr().map(|address| address.ip());
        let interface = self.settings.interface.clone().or_else(|| interface_of(local.ok()?).ok().flatten());
        let memory = host::memory(&metering.memory, &metering.threads);
        let cpu = host::cpu(metering.threads, totals.received, turns.busy_share());
        ReflectorReport {
            api: self.settings.api,
            received: totals.received,
            duplicate: totals.duplicate,
            unanswered: totals.unanswered,
            malformed: totals.malformed,
            foreign: totals.foreign,
            memory,
            cpu,
            in_force,
            clock: host::clock_facts(&self.clock, &check),
            clock_trustworthy: check.is_trustworthy(),
            sockets: host::socket_facts(
                socket,
                watched.drops(socket),
                host::udp_difference(watched.udp_before, udp_counters()),
            ),
            host: host::disclose(Role::Reflector, interface.as_deref()),
            warnings: warnings.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// A session that is over.
pub(crate) struct Served {
    report: ReflectorReport,
    totals: ReflectorTotals,
    /// Why the pinger is not there to take the report; `None` when it finished.
    how: Option<RunnerError>,
}

/// What a session is watched with.
struct Watching<'a> {
    request: &'a Request,
    socket: &'a UdpSocket,
    meter: &'a Meter,
    /// Set when the plan starts.
    begin: &'a AtomicBool,
}

/// What watching over a session came to.
struct Watched {
    drops_before: Option<u32>,
    udp_before: Option<UdpCounters>,
    /// Why the pinger is not there to take the report; `None` when it finished.
    how: Option<RunnerError>,
}

impl Watched {
    fn drops(&self, socket: &UdpSocket) -> Option<u64> {
        Some(u64::from(socket.drops()?.wrapping_sub(self.drops_before?)))
    }
}

fn send_report(connection: &mut Connection, report: &ReflectorReport) -> Result<(), RunnerError> {
    let doing = "send the report";
    let json = serde_json::to_vec(report).map_err(|error| RunnerError::Control { doing, source: error.into() })?;
    connection.send(doing, &Message::Report { json: &json })
}

/// What the session has used at the end of interval `interval`.
fn pulse(interval: u64, meter: &Meter) -> Pulse {
    let used = meter.used();
    Pulse {
        interval,
        cpu_ns: used.cpu_ns,
        user_ns: used.user_ns,
        system_ns: used.system_ns,
        voluntary_switches: used.voluntary_switches,
        involuntary_switches: used.involuntary_switches,
        minor_faults: used.minor_faults,
        major_faults: used.major_faults,
        resident_bytes: used.resident_bytes,
        peak_bytes: used.peak_bytes,
    }
}
