//! The reflector's side: listens for pingers, serves one session at a time.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use tickpong_hostio::clock::{ClockChoice, HostClock, monotonic_ns, sleep};
use tickpong_hostio::stream;
use tickpong_hostio::thread::Cpu;
use tickpong_record::Api;
use tickpong_units::Nanos;
use tickpong_wire::control::Message;

use crate::RunnerError;
use crate::connection::Connection;
use crate::handshake::{Greeted, PATIENCE, hear, prove};
use crate::hot::{HotSettings, Placed, describe, keep_off_hot_cpus, place};
use crate::key::Key;
use crate::resolve::canonical;
use crate::serve::Request;

/// How often the listener looks for pingers and for a wish to stop …
const LOOK: Nanos = Nanos::from_millis(20);
/// … and while a session is on: seldom, because its turns may be in a hot thread's way.
const LOOK_IN_SESSION: Nanos = Nanos::from_millis(200);
/// Visitors that are being heard out at once. One more, and the oldest has to go: who means it is done in a moment.
const MOST_STRANGERS: usize = 32;
const CALIBRATION: Nanos = Nanos::from_millis(100);
/// Threads of ours need no more; with locked memory, all of it is resident.
pub(crate) const STACK: usize = 256 << 10;

/// What a reflector is asked to do.
#[derive(Clone, Debug)]
pub struct ReflectSettings {
    /// Where to listen for pingers.
    pub listen: SocketAddr,
    /// The data address; the control connection's address and a port of its own for each session otherwise.
    pub data: Option<SocketAddr>,
    /// The interface that data goes through.
    pub interface: Option<String>,
    /// The interface that control connections come through.
    pub control_interface: Option<String>,
    /// A multicast group to receive pings on; answers go out by unicast.
    pub join: Option<IpAddr>,
    /// The CPU of the hot thread.
    pub cpu: Option<Cpu>,
    /// CPUs that are somebody else's, where there are others.
    pub avoid: Vec<Cpu>,
    /// How it receives and sends.
    pub api: Api,
    /// The shared key.
    pub key: Key,
    /// Listen beyond loopback without a key.
    pub insecure: bool,
    /// End after one session.
    pub once: bool,
    /// What to ask of the kernel.
    pub hot: HotSettings,
    /// Which clock.
    pub clock: ClockChoice,
    /// Bytes of socket buffer to ask for, each way.
    pub buffer_bytes: usize,
}

/// What happens at a reflector, for a person to read.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are what the names say")]
pub enum ReflectEvent {
    /// Pingers may come.
    Listening { address: SocketAddr },
    /// A pinger was not let in.
    SentAway { peer: SocketAddr, why: String },
    /// A session began.
    Opened { peer: SocketAddr, data: SocketAddr },
    /// A session is over.
    Closed { peer: SocketAddr, received: u64, answered: u64, how: String },
}

/// Serves pingers until `stop` is set, or after one session where that was asked for.
///
/// # Errors
///
/// When the reflector cannot listen, or would be open to everybody.
pub fn reflect(
    settings: &ReflectSettings,
    stop: &AtomicBool,
    event: &(dyn Fn(ReflectEvent) + Sync),
) -> Result<(), RunnerError> {
    if !settings.key.is_some() && !settings.insecure && !settings.listen.ip().is_loopback() {
        return Err(RunnerError::Unprotected { address: settings.listen });
    }
    let Placed { hot, helpers } = place(&[settings.cpu], &settings.avoid)?;
    let clock = HostClock::choose(settings.clock, CALIBRATION)
        .map_err(|refused| RunnerError::Clock { reason: refused.to_string() })?;
    let listening = |source| RunnerError::Listen { address: settings.listen, source };
    let listener = stream::listen(settings.listen, settings.control_interface.as_deref()).map_err(listening)?;
    listener.set_nonblocking(true).map_err(listening)?;
    // And no more than that: what this thread starts is to start the hot ones.
    keep_off_hot_cpus(&helpers);
    event(ReflectEvent::Listening { address: listener.local_addr().map_err(listening)? });
    let service = Service {
        settings,
        clock,
        cpu: hot.first().copied(),
        event,
        stop,
        finished: AtomicBool::new(false),
        busy_until: Mutex::new(None),
        strangers: Mutex::default(),
    };
    let mut visits = 0;
    std::thread::scope(|scope| {
        while !(stop.load(Ordering::Relaxed) || settings.once && service.finished.load(Ordering::Relaxed)) {
            match listener.accept() {
                Ok((stream, peer)) => {
                    let service = &service;
                    visits += 1;
                    let number = visits;
                    if service.let_in(number, &stream).is_err() {
                        continue;
                    }
                    let visit = Builder::new().name("tickpong visit".to_owned()).stack_size(STACK);
                    let visiting = visit.spawn_scoped(scope, move || {
                        service.receive_visitor(number, stream, canonical(peer));
                        service.is_no_stranger(number);
                    });
                    if visiting.is_err() {
                        service.is_no_stranger(number);
                    }
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    sleep(if service.seconds_left().is_some() { LOOK_IN_SESSION } else { LOOK });
                }
                // A connection that ended before it was accepted, or too many open files: the next may fare better.
                Err(_) => sleep(LOOK),
            }
        }
    });
    Ok(())
}

/// What serves pingers, shared by all their threads.
pub(crate) struct Service<'a> {
    pub(crate) settings: &'a ReflectSettings,
    pub(crate) clock: HostClock,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) event: &'a (dyn Fn(ReflectEvent) + Sync),
    pub(crate) stop: &'a AtomicBool,
    /// Whether a session has been served.
    pub(crate) finished: AtomicBool,
    /// Until when the present session lasts by its plan, by the monotonic clock; zero until it has told.
    busy_until: Mutex<Option<u64>>,
    /// The numbered visitors that have proven nothing yet, oldest first.
    strangers: Mutex<VecDeque<(u64, TcpStream)>>,
}

impl Service<'_> {
    /// Takes note of a visitor, and cuts off the oldest where there are too many.
    fn let_in(&self, visitor: u64, stream: &TcpStream) -> io::Result<()> {
        let mut strangers = self.strangers.lock().unwrap_or_else(PoisonError::into_inner);
        if strangers.len() >= MOST_STRANGERS
            && let Some((_, oldest)) = strangers.pop_front()
        {
            // It may have gone of its own accord.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        strangers.push_back((visitor, stream.try_clone()?));
        Ok(())
    }

    /// The visitor has proven that it holds the key, or is gone.
    fn is_no_stranger(&self, visitor: u64) {
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner).retain(|(number, _)| *number != visitor);
    }

    fn receive_visitor(&self, number: u64, stream: TcpStream, peer: SocketAddr) {
        let served = stream
            .set_nonblocking(false)
            .and_then(|()| Connection::new(stream))
            .map_err(|source| RunnerError::Control { doing: "accept a pinger", source })
            .and_then(|mut connection| self.visit(&mut connection, number, peer));
        if let Err(error) = served {
            (self.event)(ReflectEvent::SentAway { peer, why: describe(&error) });
        }
    }

    fn visit(&self, connection: &mut Connection, number: u64, peer: SocketAddr) -> Result<(), RunnerError> {
        let session = match hear(connection, &self.settings.key, || self.seconds_left())? {
            Greeted::Trusted { session } => session,
            Greeted::SentAway { why } => {
                (self.event)(ReflectEvent::SentAway { peer, why });
                return Ok(());
            }
        };
        let Some(place) = self.take_place() else {
            let seconds_left = self.seconds_left().unwrap_or_default();
            return connection.send("tell a pinger to wait", &Message::Busy { seconds_left });
        };
        self.is_no_stranger(number);
        let token = prove(connection, &self.settings.key, &session)?;
        let bind = match self.offer(connection, peer) {
            Ok(bind) => bind,
            Err(error) => return self.refuse(connection, peer, error),
        };
        let doing = "open a session";
        let Message::Open { data, planned_ns, deadline_ns, interval_ns } = connection.expect(doing, PATIENCE)? else {
            return Err(RunnerError::OutOfTurn { doing });
        };
        let ns = Nanos::new;
        let request = Request { data, planned: ns(planned_ns), deadline: ns(deadline_ns), interval: ns(interval_ns) };
        self.tell_end(request.planned);
        match self.open(connection, peer, bind, &request) {
            Ok((socket, warnings)) => {
                let served = self.serve(connection, token, &request, &socket, warnings);
                // Before the pinger hears that it is over: the next may come at once, and want the same port.
                drop((socket, place));
                self.close(connection, peer, served);
                Ok(())
            }
            Err(error) => self.refuse(connection, peer, error),
        }
    }

    /// Tells a pinger why there is no session for it.
    fn refuse(&self, connection: &mut Connection, peer: SocketAddr, error: RunnerError) -> Result<(), RunnerError> {
        let reason = match error {
            // Our own word: the pinger says itself who refused.
            RunnerError::Refused { reason, .. } => reason,
            other => describe(&other),
        };
        connection.send("refuse a session", &Message::Refused { reason: &reason })?;
        (self.event)(ReflectEvent::SentAway { peer, why: reason });
        Ok(())
    }

    /// Seconds until the present session is over by its plan, at least one; `None` when there is no session.
    fn seconds_left(&self) -> Option<u32> {
        let until = (*self.busy_until.lock().unwrap_or_else(PoisonError::into_inner))?;
        let left = until.saturating_sub(monotonic_ns()).div_ceil(1_000_000_000).max(1);
        Some(u32::try_from(left).unwrap_or(u32::MAX))
    }

    fn take_place(&self) -> Option<Place<'_>> {
        let mut busy = self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
        if busy.is_some() {
            return None;
        }
        *busy = Some(0);
        Some(Place { busy_until: &self.busy_until })
    }

    fn tell_end(&self, planned: Nanos) {
        let mut busy = self.busy_until.lock().unwrap_or_else(PoisonError::into_inner);
        *busy = Some(monotonic_ns().saturating_add(planned.get()));
    }
}

/// The one session's place; given up when dropped, whatever happened in between.
struct Place<'a> {
    busy_until: &'a Mutex<Option<u64>>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.busy_until.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
