//! TCP by an interface of choice.
//!
//! Owns: connecting and listening.
//! Does not own: what is said (see `runner`).

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};

use socket2::{Domain, Protocol, Socket, Type};
use tickpong_units::Nanos;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 128;

/// Connects within `patience`; by this interface, whatever the routes say.
///
/// # Errors
///
/// When nobody answers there, or there is no such interface.
pub fn connect(peer: SocketAddr, interface: Option<&str>, patience: Nanos) -> io::Result<TcpStream> {
    let socket = open(peer, interface)?;
    socket.connect_timeout(&peer.into(), patience.into())?;
    Ok(socket.into())
}

/// Listens; by this interface alone. On `[::]`, for IPv4 too.
///
/// # Errors
///
/// When the address is not this host's or is taken, or there is no such interface.
pub fn listen(address: SocketAddr, interface: Option<&str>) -> io::Result<TcpListener> {
    let socket = open(address, interface)?;
    if address.ip().is_unspecified() && address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // Else the address stays taken for a minute after each session.
    socket.set_reuse_address(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

fn open(address: SocketAddr, interface: Option<&str>) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if let Some(interface) = interface {
        socket.bind_device(Some(interface.as_bytes()))?;
    }
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Nanos = Nanos::from_secs(1);

    #[test]
    fn an_interface_may_be_chosen_at_both_ends() {
        let listener = listen("127.0.0.1:0".parse().unwrap(), Some("lo")).unwrap();
        let address = listener.local_addr().unwrap();
        let near = connect(address, Some("lo"), PATIENCE).unwrap();
        assert_eq!(listener.accept().unwrap().1, near.local_addr().unwrap());
        for refused in [connect(address, Some("none0"), PATIENCE).err(), listen(address, Some("none0")).err()] {
            assert_eq!(refused.unwrap().raw_os_error(), Some(libc::ENODEV));
        }
    }

    #[test]
    fn a_listener_everywhere_hears_both_families() {
        // No IPv6 on this host.
        let Ok(listener) = listen("[::]:0".parse().unwrap(), None) else { return };
        let port = listener.local_addr().unwrap().port();
        for near in ["127.0.0.1", "::1"] {
            connect((near.parse::<std::net::IpAddr>().unwrap(), port).into(), None, PATIENCE).unwrap();
        }
    }
}
