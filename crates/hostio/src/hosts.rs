//! Two hosts on one machine: two anonymous network namespaces joined by a veth pair, or the loopback device where those are refused.
//!
//! The namespaces have no name and no file: they end with the last process in them, even one that was killed.

mod child;
mod error;
mod rtnetlink;
mod set_up;

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;
use std::thread;

use nix::sched::{CloneFlags, setns};
use thiserror::Error;

pub use child::die_with_parent;
pub use error::{HostsError, Obstacle};

/// How two hosts are made out of one machine, best first.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Hosts {
    /// Two network namespaces and a veth pair; wants root, or `CAP_SYS_ADMIN` and `CAP_NET_ADMIN`.
    Namespaces,
    /// The same within a new user namespace; wants no privilege where the machine lets users make those.
    UserNamespaces,
    /// Two loopback addresses of one network stack; always there.
    Loopback,
}

impl Hosts {
    /// All kinds, best first: the order in which [`TwoHosts::choose`] tries.
    pub const ALL: [Self; 3] = [Self::Namespaces, Self::UserNamespaces, Self::Loopback];

    /// What a measurement between hosts of this kind cannot show or do, a sentence each, for the reader of the report.
    pub const fn what_it_costs(self) -> &'static [&'static str] {
        match self {
            Self::Namespaces => &[VETH],
            Self::UserNamespaces => &[
                VETH,
                "socket buffers stop at net.core.rmem_max and wmem_max: to force them takes CAP_NET_ADMIN of the initial namespace",
                "memory is locked, and real-time scheduling granted, only within the limits of the user (ulimit -l, ulimit -r)",
                "/dev/cpu_dma_latency cannot be held: idle CPUs may sleep deeply between messages",
            ],
            Self::Loopback => &[
                "both ends share one network stack: its counters, buffers and limits are those of pinger and reflector together",
                "no device, driver or queue is passed: a datagram goes from send to receive on the sender's CPU",
                "loopback computes no checksum and its MTU is 65536: nothing is fragmented as it would be on a wire",
                "other programs of this machine use the same device",
            ],
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Namespaces => "namespaces",
            Self::UserNamespaces => "user-namespaces",
            Self::Loopback => "loopback",
        }
    }
}

const VETH: &str = "the wire is a veth pair: no adapter, driver, interrupt or cable takes part, only the network stack";

impl fmt::Display for Hosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Not a kind of two hosts.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("read `{0}` as a kind of two hosts: want namespaces, user-namespaces or loopback")]
pub struct ParseHostsError(String);

impl FromStr for Hosts {
    type Err = ParseHostsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text.trim());
        found.ok_or_else(|| ParseHostsError(text.to_owned()))
    }
}

/// A kind that this machine refused, and why.
#[derive(Debug)]
pub struct Refused {
    /// What was tried.
    pub kind: Hosts,
    /// What stood in the way.
    pub reason: HostsError,
}

/// Two hosts on this machine. The process that made them is the pinger's; children enter the reflector's.
///
/// They last as long as this value or a process inside.
#[derive(Debug)]
pub struct TwoHosts {
    kind: Hosts,
    /// The reflector's network namespace; none on loopback.
    reflector: Option<Arc<OwnedFd>>,
    has_v6: bool,
}

impl TwoHosts {
    /// Makes two hosts and moves the process into the pinger's: from here on it sees nothing of the machine's own network.
    ///
    /// It is rehearsed in a forked child, so that a refusal leaves this process where it was.
    ///
    /// # Errors
    ///
    /// When the process has other threads (a namespace takes one thread along, not the process), or when the machine refuses.
    pub fn set_up(kind: Hosts) -> Result<Self, HostsError> {
        match kind {
            Hosts::Loopback => Ok(Self::loopback()),
            Hosts::Namespaces | Hosts::UserNamespaces => {
                let made = set_up::rehearse_and_move(kind)?;
                Ok(Self { kind, reflector: Some(Arc::new(made.reflector)), has_v6: made.has_v6 })
            }
        }
    }

    /// Makes the best two hosts that the machine allows; beside them the better kinds, and why each was refused.
    ///
    /// Call it on the main thread, before there are others.
    pub fn choose() -> (Self, Vec<Refused>) {
        let mut refused = Vec::new();
        for kind in [Hosts::Namespaces, Hosts::UserNamespaces] {
            match Self::set_up(kind) {
                Ok(hosts) => return (hosts, refused),
                Err(reason) => refused.push(Refused { kind, reason }),
            }
        }
        (Self::loopback(), refused)
    }

    /// How the hosts are made.
    pub fn kind(&self) -> Hosts {
        self.kind
    }

    /// The pinger's IPv4 address.
    pub fn pinger_address(&self) -> IpAddr {
        self.v4(set_up::PINGER.v4, Ipv4Addr::LOCALHOST)
    }

    /// The reflector's IPv4 address.
    pub fn reflector_address(&self) -> IpAddr {
        self.v4(set_up::REFLECTOR.v4, Ipv4Addr::new(127, 0, 0, 2))
    }

    /// The pinger's IPv6 address; `None` when the machine has no IPv6.
    pub fn pinger_address_v6(&self) -> Option<IpAddr> {
        self.v6(set_up::PINGER.v6)
    }

    /// The reflector's IPv6 address; on loopback the same as the pinger's. `None` when the machine has no IPv6.
    pub fn reflector_address_v6(&self) -> Option<IpAddr> {
        self.v6(set_up::REFLECTOR.v6)
    }

    /// The name of the pinger's device, in its host.
    pub fn pinger_interface(&self) -> &'static str {
        if self.reflector.is_some() { set_up::PINGER.interface } else { LOOPBACK_DEVICE }
    }

    /// The name of the reflector's device, in its host.
    pub fn reflector_interface(&self) -> &'static str {
        if self.reflector.is_some() { set_up::REFLECTOR.interface } else { LOOPBACK_DEVICE }
    }

    /// Makes `command` run on the reflector's host, and die with the thread that spawns it.
    ///
    /// See [`die_with_parent`] for what that asks of the spawning thread.
    pub fn reflector_command(&self, command: &mut Command) {
        die_with_parent(command);
        if let Some(namespace) = &self.reflector {
            child::enter_namespace(command, Arc::clone(namespace));
        }
    }

    /// Runs `f` on the reflector's host, on a thread of its own, and waits for it.
    ///
    /// # Errors
    ///
    /// When the thread cannot be started, or not enter the host.
    ///
    /// # Panics
    ///
    /// When `f` does.
    pub fn in_reflector<T: Send>(&self, f: impl FnOnce() -> T + Send) -> io::Result<T> {
        thread::scope(|scope| {
            let entered = thread::Builder::new().name("in-reflector".into()).spawn_scoped(scope, || {
                if let Some(namespace) = &self.reflector {
                    setns(namespace, CloneFlags::CLONE_NEWNET)?;
                }
                Ok(f())
            })?;
            entered.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }

    fn loopback() -> Self {
        let has_v6 = std::net::UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok();
        Self { kind: Hosts::Loopback, reflector: None, has_v6 }
    }

    fn v4(&self, in_namespace: Ipv4Addr, on_loopback: Ipv4Addr) -> IpAddr {
        IpAddr::V4(if self.reflector.is_some() { in_namespace } else { on_loopback })
    }

    fn v6(&self, in_namespace: Ipv6Addr) -> Option<IpAddr> {
        let address = if self.reflector.is_some() { in_namespace } else { Ipv6Addr::LOCALHOST };
        self.has_v6.then_some(IpAddr::V6(address))
    }
}

const LOOPBACK_DEVICE: &str = "lo";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_back_as_printed() {
        for kind in Hosts::ALL {
            assert_eq!(kind.to_string().parse(), Ok(kind));
            assert!(!kind.what_it_costs().is_empty());
        }
        assert_eq!("netns".parse::<Hosts>(), Err(ParseHostsError("netns".into())));
    }

    #[test]
    fn loopback_is_always_there() {
        let hosts = TwoHosts::set_up(Hosts::Loopback).unwrap();
        assert_eq!(hosts.kind(), Hosts::Loopback);
        assert_eq!((hosts.pinger_interface(), hosts.reflector_interface()), ("lo", "lo"));
        assert_ne!(hosts.pinger_address(), hosts.reflector_address());
        assert_eq!(hosts.in_reflector(|| 7).unwrap(), 7);
    }

    #[test]
    fn a_process_with_threads_is_told_so() {
        // The harness itself is the second thread, whatever the number of tests.
        thread::scope(|scope| {
            scope.spawn(|| {
                let refused = TwoHosts::set_up(Hosts::Namespaces);
                assert!(matches!(refused, Err(HostsError::Threads { threads: 2.. })), "{refused:?}");
            });
        });
    }
}
