//! UDP sockets: opened with everything that a measurement wants to know of them, and the calls of the hot loop.
//!
//! Owns: options, buffers and what was granted of them, multicast membership, sending, receiving and waiting, drop counts.
//! Does not own: what is in a datagram (see `wire`), or when to send one (see `probe`).
//!
//! Every call goes through the C library's symbols, never by a system call of our own: libraries that bypass the kernel
//! (`OpenOnload` and its like) put themselves in between there, and are to be measured too.

mod counters;
mod error;
mod options;
mod setup;

use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::MsgFlags;
use nix::sys::time::TimeSpec;
use socket2::{SockAddr, Socket};
use tickpong_units::Nanos;

pub use self::counters::{UdpCounters, udp_counters};
pub use self::error::{SocketError, SocketWarning};
pub use self::setup::{BufferFacts, BufferGrant, MulticastGroup, SocketSetup, source_towards};

/// What became of a send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sent {
    /// The stack took the datagram.
    Accepted,
    /// The send buffer had no room; nothing was sent.
    Full,
    /// Nothing was sent, for the reason of this errno.
    Refused(i32),
}

/// A bound UDP socket.
///
/// Sends go to the connected peer, or to the one of [`UdpSocket::set_peer`].
#[derive(Debug)]
pub struct UdpSocket {
    socket: Socket,
    peer: Option<SockAddr>,
    // Atomic so that a sending and a receiving thread may share the socket; touched only when an error comes in.
    pending_errors: AtomicU64,
    buffers: BufferFacts,
    warnings: Vec<SocketWarning>,
}

impl UdpSocket {
    /// Opens a socket as asked.
    ///
    /// # Errors
    ///
    /// When address, interface or group cannot be had. A smaller buffer is no error, see [`UdpSocket::buffers`]; neither is
    /// a refused option of which [`UdpSocket::warnings`] tells.
    pub fn open(setup: &SocketSetup) -> Result<Self, SocketError> {
        setup::open(setup)
    }

    fn new(socket: Socket, buffers: BufferFacts, warnings: Vec<SocketWarning>) -> Self {
        Self { socket, peer: None, pending_errors: AtomicU64::new(0), buffers, warnings }
    }

    /// What was granted of the buffers.
    pub fn buffers(&self) -> BufferFacts {
        self.buffers
    }

    /// How long a receive call polls the network card, in microseconds, as the kernel has it now; `None` where it does not say.
    pub fn busy_poll_us(&self) -> Option<u32> {
        options::word::<1>(self.as_fd(), libc::SOL_SOCKET, setup::SO_BUSY_POLL).ok().flatten()
    }

    /// The options that were refused and can be done without.
    pub fn warnings(&self) -> &[SocketWarning] {
        &self.warnings
    }

    /// Fixes the peer: sends go there, and only its datagrams are received.
    ///
    /// A socket bound to a multicast group still receives what the peer sends to that group, and sends from its host's own
    /// address.
    ///
    /// # Errors
    ///
    /// When no route leads there, or the address is of the other family.
    pub fn connect(&self, peer: SocketAddr) -> Result<(), SocketError> {
        self.socket.connect(&peer.into()).map_err(|source| SocketError::Connect { peer, source })
    }

    /// Names where sends go without being connected: answers are then received from anywhere, as one to a multicast ping is.
    pub fn set_peer(&mut self, peer: SocketAddr) {
        self.peer = Some(peer.into());
    }

    /// The address the socket is bound to, with the port the kernel chose if none was asked for.
    ///
    /// # Errors
    ///
    /// When the kernel does not tell.
    pub fn local_addr(&self) -> Result<SocketAddr, SocketError> {
        setup::local_addr(&self.socket)
    }

    /// Sends multicast by this interface, given by name or number. It stays on that network: the system lets it pass no router.
    ///
    /// # Errors
    ///
    /// When there is no such interface, or it cannot multicast.
    pub fn set_multicast_interface(&self, interface: &str) -> Result<(), SocketError> {
        let index = setup::interface_index(interface)?;
        if self.local_addr()?.is_ipv6() {
            return self.socket.set_multicast_if_v6(index).map_err(setup::refused("IPV6_MULTICAST_IF"));
        }
        let any = libc::in_addr { s_addr: libc::INADDR_ANY };
        let index = i32::try_from(index).unwrap_or(i32::MAX);
        let request = libc::ip_mreqn { imr_multiaddr: any, imr_address: any, imr_ifindex: index };
        options::set(self.as_fd(), libc::IPPROTO_IP, libc::IP_MULTICAST_IF, &request)
            .map_err(setup::refused("IP_MULTICAST_IF"))
    }

    /// Sends one datagram, without waiting for room.
    ///
    /// An ICMP error that an earlier datagram brought is reported by the kernel in place of the next call; it is counted (see
    /// [`UdpSocket::pending_errors`]) and the send is tried once more.
    #[inline]
    pub fn send(&self, datagram: &[u8]) -> Sent {
        let mut retried = false;
        loop {
            let result = match &self.peer {
                None => self.socket.send_with_flags(datagram, SEND_FLAGS),
                Some(peer) => self.socket.send_to_with_flags(datagram, peer, SEND_FLAGS),
            };
            let Err(error) = result else { return Sent::Accepted };
            match error.raw_os_error().unwrap_or_default() {
                libc::EAGAIN => return Sent::Full,
                libc::EINTR => {}
                libc::ECONNREFUSED => {
                    self.count_error();
                    if retried {
                        return Sent::Refused(libc::ECONNREFUSED);
                    }
                    retried = true;
                }
                errno => return Sent::Refused(errno),
            }
        }
    }

    /// Takes one datagram that has arrived, without waiting: its length, or `None` if there is none.
    ///
    /// The length is the datagram's own: if it exceeds `buffer`, then that holds only the beginning. A library that bypasses
    /// the kernel may report the truncated length instead; with a buffer larger by one byte than any datagram expected, one
    /// that is too long can be told in either case.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> Option<usize> {
        // A pending error is reported before the datagrams behind it, once.
        let first = self.receive_once(buffer, RECEIVE_FLAGS);
        first.or_else(|PendingError| self.receive_once(buffer, RECEIVE_FLAGS)).ok().flatten()
    }

    /// Takes one datagram, waiting as long as [`SocketSetup::receive_timeout`] says: its length as of
    /// [`UdpSocket::receive`], or `None` if none came, or a signal or an ICMP error did.
    #[inline]
    pub fn receive_waiting(&self, buffer: &mut [u8]) -> Option<usize> {
        self.receive_once(buffer, MsgFlags::MSG_TRUNC).ok().flatten()
    }

    /// Waits for a datagram or an error to take, for ever without a timeout: whether there is one.
    ///
    /// `false` also when a signal came.
    #[inline]
    pub fn wait(&self, timeout: Option<Nanos>) -> bool {
        let mut sockets = [PollFd::new(self.as_fd(), PollFlags::POLLIN)];
        let timeout = timeout.map(|span| TimeSpec::from_duration(span.into()));
        nix::poll::ppoll(&mut sockets, timeout, None).is_ok_and(|ready| ready > 0)
    }

    /// How many errors the kernel reported in place of a datagram: ICMP's answers to what was sent, such as that nobody
    /// listens there.
    pub fn pending_errors(&self) -> u64 {
        self.pending_errors.load(Ordering::Relaxed)
    }

    /// How many datagrams the kernel dropped at this socket since it was opened, for its receive buffer was full (or for a
    /// wrong checksum). Wraps at 2^32; `None` where it is not counted.
    ///
    /// Under a library that bypasses the kernel this is only the kernel's share.
    pub fn drops(&self) -> Option<u32> {
        options::word::<MEMINFO_WORDS>(self.as_fd(), libc::SOL_SOCKET, SO_MEMINFO).ok().flatten()
    }

    /// The largest IP packet that goes to the connected peer unfragmented, in bytes, as far as the kernel knows; `None` if
    /// unconnected.
    pub fn path_mtu(&self) -> Option<u32> {
        let (level, name) = match self.local_addr().ok()? {
            SocketAddr::V4(_) => (libc::IPPROTO_IP, libc::IP_MTU),
            SocketAddr::V6(_) => (libc::IPPROTO_IPV6, libc::IPV6_MTU),
        };
        options::word::<1>(self.as_fd(), level, name).ok().flatten()
    }

    #[inline]
    fn receive_once(&self, buffer: &mut [u8], flags: MsgFlags) -> Result<Option<usize>, PendingError> {
        match nix::sys::socket::recv(self.socket.as_raw_fd(), buffer, flags) {
            Ok(len) => Ok(Some(len)),
            Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
            Err(_) => {
                self.count_error();
                Err(PendingError)
            }
        }
    }

    #[cold]
    fn count_error(&self) {
        self.pending_errors.fetch_add(1, Ordering::Relaxed);
    }
}

/// The kernel reported, and thereby cleared, an error of an earlier datagram.
struct PendingError;

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

// A closed peer is no reason for a signal; that flag costs nothing.
const SEND_FLAGS: libc::c_int = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
const RECEIVE_FLAGS: MsgFlags = MsgFlags::MSG_DONTWAIT.union(MsgFlags::MSG_TRUNC);
/// asm-generic/socket.h; not in libc for every target.
const SO_MEMINFO: libc::c_int = 55;
/// The drop count is the last of them, `SK_MEMINFO_DROPS`.
const MEMINFO_WORDS: usize = 9;

#[cfg(test)]
mod tests;
