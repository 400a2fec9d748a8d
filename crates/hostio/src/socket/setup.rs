//! From a wish to a bound socket.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use socket2::{Domain, InterfaceIndexOrAddress, Protocol, Socket, Type};
use tickpong_units::Nanos;

use super::error::{SocketError, SocketWarning};
use super::{UdpSocket, options};

/// What a socket shall be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SocketSetup {
    /// The address to bind; for a receiver of multicast, the group and its port. A link-local IPv6 address needs its scope, or
    /// `interface`.
    pub bind: SocketAddr,
    /// The one interface to send and receive by, whatever the routes say.
    pub interface: Option<String>,
    /// The size of either buffer, in bytes of memory by the kernel's own account: a small datagram costs some 800 of them.
    pub buffer_bytes: usize,
    /// How long a blocking receive polls the network card before it sleeps, in microseconds. Refusal is a warning.
    pub busy_poll_us: Option<u32>,
    /// How long [`UdpSocket::receive_waiting`] waits, to the kernel's timer tick; for ever without.
    pub receive_timeout: Option<Nanos>,
    /// The group to receive.
    pub join: Option<MulticastGroup>,
}

impl SocketSetup {
    /// A socket at `bind` with buffers of [`SocketSetup::BUFFER_BYTES`], and nothing else asked for.
    pub const fn new(bind: SocketAddr) -> Self {
        let buffer_bytes = Self::BUFFER_BYTES;
        Self { bind, interface: None, buffer_bytes, busy_poll_us: None, receive_timeout: None, join: None }
    }

    /// Room for some 5,000 small datagrams: 5 ms of a million a second.
    pub const BUFFER_BYTES: usize = 4 << 20;
}

/// A multicast group, and where it is heard.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct MulticastGroup {
    /// Its address.
    pub group: IpAddr,
    /// The interface's name, or its number in decimal.
    pub interface: String,
}

/// One buffer: what was asked and what was got.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferGrant {
    /// As in [`SocketSetup::buffer_bytes`].
    pub asked_bytes: usize,
    /// What the kernel keeps, comparable with what was asked: half of what it reports, since it doubles a request. `None`
    /// where it does not say.
    pub granted_bytes: Option<usize>,
    /// Whether the host's limit was passed by privilege.
    pub forced: bool,
}

/// Both buffers of a socket.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct BufferFacts {
    /// Where arriving datagrams wait.
    pub receive: BufferGrant,
    /// Where departing ones do.
    pub send: BufferGrant,
}

/// Opens, sets and binds.
pub(super) fn open(setup: &SocketSetup) -> Result<UdpSocket, SocketError> {
    let bind = setup.bind;
    let opening = |source| SocketError::Open { bind, source };
    let socket = Socket::new(Domain::for_address(bind), Type::DGRAM, Some(Protocol::UDP)).map_err(opening)?;
    if bind.is_ipv6() {
        // Else `[::]` would also take IPv4, in disguise, and the two ends would disagree on what was measured.
        socket.set_only_v6(true).map_err(refused("IPV6_V6ONLY"))?;
    }
    // Before the bind: a datagram may arrive the moment after.
    let buffers = BufferFacts {
        receive: grow(&socket, [libc::SO_RCVBUFFORCE, libc::SO_RCVBUF], setup.buffer_bytes),
        send: grow(&socket, [libc::SO_SNDBUFFORCE, libc::SO_SNDBUF], setup.buffer_bytes),
    };
    if let Some(interface) = &setup.interface {
        bind_device(&socket, interface)?;
    }
    if setup.join.is_some() {
        // Several members of a group may live on one host.
        socket.set_reuse_address(true).map_err(refused("SO_REUSEADDR"))?;
    }
    socket.bind(&bind.into()).map_err(|source| SocketError::Bind { bind, source })?;
    if let Some(join) = &setup.join {
        join_group(&socket, join)?;
    }
    if let Some(timeout) = setup.receive_timeout {
        // Zero would mean for ever.
        let timeout = timeout.max(Nanos::from_micros(1));
        socket.set_read_timeout(Some(timeout.into())).map_err(refused("SO_RCVTIMEO"))?;
    }
    let warnings = setup.busy_poll_us.map(|us| busy_poll(&socket, us)).unwrap_or_default();
    Ok(UdpSocket::new(socket, buffers, warnings))
}

/// The address that this host sends from to reach `peer`, by its routes, or by `interface` whatever they say; with port zero.
///
/// # Errors
///
/// When no route leads there, or there is no such interface.
pub fn source_towards(peer: SocketAddr, interface: Option<&str>) -> Result<SocketAddr, SocketError> {
    let opening = |source| SocketError::Open { bind: peer, source };
    let socket = Socket::new(Domain::for_address(peer), Type::DGRAM, Some(Protocol::UDP)).map_err(opening)?;
    if let Some(interface) = interface {
        bind_device(&socket, interface)?;
    }
    // Connecting sends nothing: it asks the routes. Any port will do.
    let mut anywhere_there = peer;
    anywhere_there.set_port(DISCARD_PORT);
    socket.connect(&anywhere_there.into()).map_err(|source| SocketError::Connect { peer, source })?;
    let mut source = local_addr(&socket)?;
    source.set_port(0);
    Ok(source)
}

pub(super) fn local_addr(socket: &Socket) -> Result<SocketAddr, SocketError> {
    let address = socket.local_addr().map_err(SocketError::LocalAddr)?;
    address.as_socket().ok_or_else(|| SocketError::LocalAddr(io::ErrorKind::Unsupported.into()))
}

/// An interface's number, by its name or by that number itself.
pub(super) fn interface_index(interface: &str) -> Result<u32, SocketError> {
    let by_name = nix::net::if_::if_nametoindex(interface);
    by_name
        .or_else(|errno| interface.parse().map_err(|_| errno))
        .map_err(|errno| SocketError::Interface { interface: interface.to_owned(), source: errno.into() })
}

pub(super) fn refused(option: &'static str) -> impl Fn(io::Error) -> SocketError {
    move |source| SocketError::Option { option, source }
}

/// First by privilege, past the host's limit; else as far as that goes.
fn grow(socket: &Socket, [forced, plain]: [libc::c_int; 2], asked_bytes: usize) -> BufferGrant {
    // The kernel doubles the number, in an int.
    let size = libc::c_int::try_from(asked_bytes).unwrap_or(libc::c_int::MAX).min(libc::c_int::MAX / 2);
    let set = |name| options::set(socket.as_fd(), libc::SOL_SOCKET, name, &size).is_ok();
    let by_force = set(forced);
    if !by_force {
        // What came of it is read back below.
        set(plain);
    }
    let granted = options::word::<1>(socket.as_fd(), libc::SOL_SOCKET, plain).ok().flatten();
    BufferGrant { asked_bytes, granted_bytes: granted.map(|doubled| doubled as usize / 2), forced: by_force }
}

fn bind_device(socket: &Socket, interface: &str) -> Result<(), SocketError> {
    socket.bind_device(Some(interface.as_bytes())).map_err(|source| {
        let interface = interface.to_owned();
        match source.raw_os_error() {
            Some(libc::EPERM) => SocketError::BindDeviceForbidden { interface },
            _ => SocketError::BindDevice { interface, source },
        }
    })
}

fn join_group(socket: &Socket, join: &MulticastGroup) -> Result<(), SocketError> {
    let index = interface_index(&join.interface)?;
    let joined = match join.group {
        IpAddr::V4(group) => socket
            .join_multicast_v4_n(&group, &InterfaceIndexOrAddress::Index(index))
            // Not what other sockets of this host joined, on other interfaces.
            .and_then(|()| socket.set_multicast_all_v4(false)),
        IpAddr::V6(group) => socket.join_multicast_v6(&group, index).and_then(|()| socket.set_multicast_all_v6(false)),
    };
    joined.map_err(|source| SocketError::Join { group: join.group, interface: join.interface.clone(), source })
}

fn busy_poll(socket: &Socket, us: u32) -> Vec<SocketWarning> {
    let us = libc::c_int::try_from(us).unwrap_or(libc::c_int::MAX);
    [
        ("SO_PREFER_BUSY_POLL", SO_PREFER_BUSY_POLL, 1),
        ("SO_BUSY_POLL", SO_BUSY_POLL, us),
        ("SO_BUSY_POLL_BUDGET", SO_BUSY_POLL_BUDGET, BUSY_POLL_BUDGET),
    ]
    .into_iter()
    .filter_map(|(option, name, value)| {
        let source = options::set(socket.as_fd(), libc::SOL_SOCKET, name, &value).err()?;
        Some(SocketWarning { option, source })
    })
    .collect()
}

const DISCARD_PORT: u16 = 9;
// asm-generic/socket.h; not in libc for every target.
pub(super) const SO_BUSY_POLL: libc::c_int = 46;
const SO_PREFER_BUSY_POLL: libc::c_int = 69;
const SO_BUSY_POLL_BUDGET: libc::c_int = 70;
/// Packets a poll may take: as many as the kernel itself takes in one (`NAPI_POLL_WEIGHT`).
const BUSY_POLL_BUDGET: libc::c_int = 64;
