//! Two hosts on one machine: two anonymous network namespaces joined by a veth pair, or the loopback device where those are refused.
//!
//! The namespaces have no name and no file: they end with the last process in them, even one that was killed.

mod child;
mod error;
mod rtnetlink;
mod set_up;

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::OwnedFd;
use std::process::Command;
use std::str::FromStr;
use std::sync::Arc;

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
            Hosts::Loopback => Ok(Self::LOOPBACK),
            Hosts::Namespaces | Hosts::UserNamespaces => {
                Ok(Self { kind, reflector: Some(Arc::new(set_up::rehearse_and_move(kind)?)) })
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
        (Self::LOOPBACK, refused)
    }

    /// How the hosts are made.
    pub fn kind(&self) -> Hosts {
        self.kind
    }

    /// The pinger's address.
    pub fn pinger_address(&self) -> IpAddr {
        self.address(set_up::PINGER.v4, Ipv4Addr::LOCALHOST)
    }

    /// The reflector's address.
    pub fn reflector_address(&self) -> IpAddr {
        self.address(set_up::REFLECTOR.v4, Ipv4Addr::new(127, 0, 0, 2))
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

    const LOOPBACK: Self = Self { kind: Hosts::Loopback, reflector: None };

    fn address(&self, in_namespace: Ipv4Addr, on_loopback: Ipv4Addr) -> IpAddr {
        IpAddr::V4(if self.reflector.is_some() { in_namespace } else { on_loopback })
    }
}

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
        assert_ne!(hosts.pinger_address(), hosts.reflector_address());
    }

    #[test]
    fn a_process_with_threads_is_told_so() {
        // The harness itself is the second thread, whatever the number of tests.
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let refused = TwoHosts::set_up(Hosts::Namespaces);
                assert!(matches!(refused, Err(HostsError::Threads { threads: 2.. })), "{refused:?}");
            });
        });
    }
}
