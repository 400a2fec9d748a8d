//! The pinger's watch over the control connection while a run goes on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use tickpong_hostio::clock::monotonic_ns;
use tickpong_record::Resources;
use tickpong_units::Nanos;
use tickpong_wire::control::Message;

use crate::connection::{Connection, Incoming};
use crate::hot::describe;

/// How often the pinger says that it lives.
const ALIVE: Nanos = Nanos::from_millis(500);
/// How often the watch looks whether a person wants the run to end: seldom, because its turns may be in a hot thread's way.
const LOOK: Nanos = Nanos::from_millis(200);
/// A reflector that says nothing for so long is lost. A host that stands still for some seconds is a result, not a loss.
const SILENCE: Nanos = Nanos::from_secs(15);

/// Why a run may have ended before its plan did.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Watched {
    /// A person wanted it to end.
    pub(crate) interrupted: bool,
    /// The other end was lost: how.
    pub(crate) lost: Option<String>,
}

/// Keeps the session alive until `done`; sets `end` when a person sets `stop`, or the other end is lost.
pub(crate) fn watch(
    connection: &mut Connection,
    stop: &AtomicBool,
    end: &AtomicBool,
    done: &AtomicBool,
    reflector: &Mutex<BTreeMap<u64, Resources>>,
) -> Watched {
    let mut watched = Watched::default();
    let (mut last_said, mut last_heard) = (0, monotonic_ns());
    while !done.load(Ordering::Acquire) {
        if stop.load(Ordering::Relaxed) && !watched.interrupted {
            watched.interrupted = true;
            end.store(true, Ordering::Relaxed);
        }
        let now = monotonic_ns();
        let said = if now - last_said >= ALIVE.get() {
            last_said = now;
            connection.send("say that the pinger lives", &Message::Alive)
        } else {
            Ok(())
        };
        let heard = said.and_then(|()| connection.poll("hear the reflector", LOOK));
        match heard {
            Ok(Incoming::Message(Message::Pulse(pulse))) => {
                last_heard = now;
                let used = Resources {
                    cpu_ns: pulse.cpu_ns,
                    user_ns: pulse.user_ns,
                    system_ns: pulse.system_ns,
                    voluntary_switches: pulse.voluntary_switches,
                    involuntary_switches: pulse.involuntary_switches,
                    minor_faults: pulse.minor_faults,
                    major_faults: pulse.major_faults,
                    resident_bytes: pulse.resident_bytes,
                    peak_bytes: pulse.peak_bytes,
                };
                let mut noted = reflector.lock().unwrap_or_else(PoisonError::into_inner);
                noted.insert(pulse.interval, used);
            }
            Ok(Incoming::Message(_)) => watched.lost = Some("it said what makes no sense here".to_owned()),
            Ok(Incoming::Nothing) if now - last_heard > SILENCE.get() => {
                watched.lost = Some(format!("it was silent for {SILENCE}"));
            }
            Ok(Incoming::Nothing) => {}
            Err(error) => watched.lost = Some(describe(&error)),
        }
        if watched.lost.is_some() {
            end.store(true, Ordering::Relaxed);
            return watched;
        }
    }
    watched
}
