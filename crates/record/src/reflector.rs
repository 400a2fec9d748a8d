//! What the reflector saw: its report at the end of a session.

use serde::{Deserialize, Serialize};

use crate::{Api, ClockFacts, Cpu, HostFacts, InForce, Memory, Sockets};

/// The reflector's side of a run, as it travels over the control connection.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct ReflectorReport {
    /// How it sent and received.
    pub api: Api,
    /// Pings of the session, each once.
    pub received: u64,
    /// Pings that came again; each was answered again.
    pub duplicate: u64,
    /// Pings whose answer the kernel refused.
    pub unanswered: u64,
    /// Datagrams that are none of ours, or cut short.
    pub malformed: u64,
    /// Datagrams of another session.
    pub foreign: u64,
    /// CPU of its hot thread over the run.
    pub cpu: Cpu,
    /// Memory of its process.
    pub memory: Memory,
    /// What its kernel granted.
    pub in_force: InForce,
    /// Its clock.
    pub clock: ClockFacts,
    /// Whether the clock held to the end.
    pub clock_trustworthy: bool,
    /// Its data socket.
    pub sockets: Sockets,
    /// Its host.
    pub host: HostFacts,
    /// What the system refused it.
    pub warnings: Vec<String>,
}
