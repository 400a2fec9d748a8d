//! From what a person types to addresses.

use std::net::{IpAddr, SocketAddr, SocketAddrV6, TcpStream, ToSocketAddrs};
use std::time::Duration;

use crate::connection::Connection;
use crate::{DEFAULT_PORT, RunnerError};

const CONNECT_PATIENCE: Duration = Duration::from_secs(3);

/// Splits `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare `V6`, each with a scope if it has one.
pub(crate) fn split(host: &str) -> (&str, u16) {
    if let Some((inside, port)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (inside, port.strip_prefix(':').and_then(|port| port.parse().ok()).unwrap_or(DEFAULT_PORT));
    }
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') => port.parse().map_or((host, DEFAULT_PORT), |port| (name, port)),
        _ => (host, DEFAULT_PORT),
    }
}

/// All addresses of a host, of `bind`'s family where that is given.
pub(crate) fn resolve(host: &str, bind: Option<IpAddr>) -> Result<Vec<SocketAddr>, RunnerError> {
    let (name, port) = split(host);
    let found =
        (name, port).to_socket_addrs().map_err(|source| RunnerError::Resolve { host: name.to_owned(), source })?;
    let addresses: Vec<_> =
        found.filter(|address| bind.is_none_or(|bind| bind.is_ipv4() == address.is_ipv4())).collect();
    if addresses.is_empty() {
        return Err(RunnerError::NoAddress { host: name.to_owned(), bound: bind.is_some() });
    }
    Ok(addresses)
}

/// Connects to the first address that answers, or tells why the last did not.
pub(crate) fn connect(addresses: &[SocketAddr]) -> Result<(Connection, SocketAddr), RunnerError> {
    let mut failed = None;
    for &address in addresses {
        match TcpStream::connect_timeout(&address, CONNECT_PATIENCE).and_then(Connection::new) {
            Ok(connection) => return Ok((connection, address)),
            Err(source) => failed = Some(RunnerError::Connect { address, source }),
        }
    }
    Err(failed.unwrap_or_else(|| unreachable!("at least one address was tried")))
}

/// The data address that the other end announced over `control`: what it leaves open is the control connection's, and so is the scope,
/// which means nothing on another host.
pub(crate) fn data_address(announced: SocketAddr, control: SocketAddr) -> SocketAddr {
    if announced.ip().is_unspecified() {
        let mut address = control;
        address.set_port(announced.port());
        return address;
    }
    match (announced, control) {
        (SocketAddr::V6(data), SocketAddr::V6(control)) if data.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*data.ip(), data.port(), 0, control.scope_id()).into()
        }
        _ => announced,
    }
}

/// What to announce as a data address: nothing but the port, where the address is the control connection's.
pub(crate) fn announce(data: SocketAddr, control: SocketAddr) -> SocketAddr {
    let unspecified: IpAddr = if data.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    SocketAddr::new(if data.ip() == control.ip() { unspecified } else { data.ip() }, data.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_written_in_many_ways() {
        let table = [
            ("host", "host", 7410),
            ("host:9", "host", 9),
            ("10.0.0.1:9", "10.0.0.1", 9),
            ("fe80::1%eth0", "fe80::1%eth0", 7410),
            ("[fe80::1%eth0]:9", "fe80::1%eth0", 9),
            ("[::1]", "::1", 7410),
            ("::1", "::1", 7410),
        ];
        for (host, name, port) in table {
            assert_eq!(split(host), (name, port), "{host}");
        }
    }

    #[test]
    fn what_is_left_open_is_the_control_connections() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(data_address(address("0.0.0.0:5"), address("10.0.0.1:7410")), address("10.0.0.1:5"));
        assert_eq!(data_address(address("10.0.0.9:5"), address("10.0.0.1:7410")), address("10.0.0.9:5"));
        let scoped: SocketAddr = SocketAddrV6::new("fe80::1".parse().unwrap(), 7410, 0, 3).into();
        assert_eq!(
            data_address(address("[::]:5"), scoped),
            SocketAddrV6::new("fe80::1".parse().unwrap(), 5, 0, 3).into()
        );
        assert_eq!(
            data_address(address("[fe80::2]:5"), scoped),
            SocketAddrV6::new("fe80::2".parse().unwrap(), 5, 0, 3).into()
        );
        assert_eq!(announce(address("10.0.0.1:5"), address("10.0.0.1:7410")), address("0.0.0.0:5"));
        assert_eq!(announce(address("10.0.0.2:5"), address("10.0.0.1:7410")), address("10.0.0.2:5"));
    }
}
