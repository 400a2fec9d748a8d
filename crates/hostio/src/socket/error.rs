//! What can go wrong before the first datagram.

use std::io;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;

/// Why a socket could not be had as asked.
#[derive(Debug, Error)]
pub enum SocketError {
    /// socket(2) failed.
    #[error("open a UDP socket for {bind}")]
    Open {
        /// The address it was for.
        bind: SocketAddr,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// The address is not this host's, or is taken.
    #[error("bind to {bind}")]
    Bind {
        /// The address.
        bind: SocketAddr,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// There is no such interface.
    #[error("find interface `{interface}`")]
    Interface {
        /// Its name, or number.
        interface: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// `SO_BINDTODEVICE` failed.
    #[error("bind the socket to interface `{interface}`")]
    BindDevice {
        /// Its name.
        interface: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// `SO_BINDTODEVICE` is for the privileged here.
    #[error("bind the socket to interface `{interface}`: the capability CAP_NET_RAW is missing")]
    BindDeviceForbidden {
        /// Its name.
        interface: String,
    },
    /// The group is none, or the interface cannot multicast.
    #[error("join {group} on interface `{interface}`")]
    Join {
        /// The group.
        group: IpAddr,
        /// The interface's name, or number.
        interface: String,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// An option that the socket cannot do without.
    #[error("set {option}")]
    Option {
        /// Its name in socket(7), ip(7) or ipv6(7).
        option: &'static str,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// connect(2) failed.
    #[error("connect to {peer}")]
    Connect {
        /// The peer.
        peer: SocketAddr,
        /// The system's word.
        #[source]
        source: io::Error,
    },
    /// getsockname(2) failed.
    #[error("read the socket's own address")]
    LocalAddr(#[source] io::Error),
}

/// An option that was asked for and refused, without which the socket still works.
#[derive(Debug, Error)]
#[error("{option} was refused: {source}")]
pub struct SocketWarning {
    /// Its name in socket(7).
    pub option: &'static str,
    /// The system's word; `EPERM` means that `CAP_NET_ADMIN` is missing.
    pub source: io::Error,
}
