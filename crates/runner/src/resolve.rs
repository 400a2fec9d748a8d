//! From what a person types to addresses.

use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, ToSocketAddrs};

use tickpong_hostio::stream;
use tickpong_units::Nanos;

use crate::connection::Connection;
use crate::{DEFAULT_PORT, RunnerError};

const CONNECT_PATIENCE: Nanos = Nanos::from_secs(3);

/// Splits `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare `V6`, each with a scope if it has one. `None` when it is none of these.
fn split(host: &str) -> Option<(&str, u16)> {
    let is_v6 = |name: &str| name.split('%').next().is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    let port = |text: &str| text.parse().ok().filter(|port| *port != 0);
    let (name, port) = if let Some(rest) = host.strip_prefix('[') {
        let (name, behind) = rest.split_once(']').filter(|(name, _)| is_v6(name))?;
        (name, if behind.is_empty() { DEFAULT_PORT } else { port(behind.strip_prefix(':')?)? })
    } else if is_v6(host) {
        (host, DEFAULT_PORT)
    } else {
        host.split_once(':').map_or(Some((host, DEFAULT_PORT)), |(name, text)| Some((name, port(text)?)))?
    };
    (!name.is_empty()).then_some((name, port))
}

/// All addresses of a host, those of `bind`'s family first where that is given: data usually goes where control does.
pub(crate) fn resolve(host: &str, bind: Option<IpAddr>) -> Result<Vec<SocketAddr>, RunnerError> {
    let (name, port) = split(host).ok_or_else(|| RunnerError::Host { host: host.to_owned() })?;
    let found =
        (name, port).to_socket_addrs().map_err(|source| RunnerError::Resolve { host: name.to_owned(), source })?;
    let mut addresses: Vec<_> = found.map(canonical).collect();
    addresses.sort_by_key(|address| bind.is_some_and(|bind| bind.is_ipv4() != address.is_ipv4()));
    if addresses.is_empty() {
        return Err(RunnerError::NoAddress { host: name.to_owned() });
    }
    Ok(addresses)
}

/// Connects to the first address that answers, or tells why the last did not.
pub(crate) fn connect(
    addresses: &[SocketAddr],
    interface: Option<&str>,
) -> Result<(Connection, SocketAddr), RunnerError> {
    let mut failed = None;
    for &address in addresses {
        match stream::connect(address, interface, CONNECT_PATIENCE).and_then(Connection::new) {
            Ok(connection) => return Ok((connection, address)),
            Err(source) => failed = Some(RunnerError::Connect { address, source }),
        }
    }
    Err(failed.unwrap_or_else(|| unreachable!("at least one address was tried")))
}

/// The same address in the family that it is spoken in: a listener on `[::]` sees IPv4 as IPv6 that only looks so.
pub(crate) fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(v4) => (v4, address.port()).into(),
        IpAddr::V6(_) => address,
    }
}

/// The data address that the other end announced over `control`: what it leaves open is the control connection's, and so is the scope,
/// which means nothing on another host.
pub(crate) fn data_address(announced: SocketAddr, control: SocketAddr) -> SocketAddr {
    if announced.ip().is_unspecified() {
        let mut address = control;
        address.set_port(announced.port());
        return address;
    }
    match (canonical(announced), control) {
        (SocketAddr::V6(data), SocketAddr::V6(control)) if data.ip().is_unicast_link_local() => {
            SocketAddrV6::new(*data.ip(), data.port(), 0, control.scope_id()).into()
        }
        (data, _) => data,
    }
}

/// What to announce as the host of a data address: none, where it is the control connection's.
pub(crate) fn announce(data: IpAddr, control: IpAddr) -> IpAddr {
    let unspecified = if data.is_ipv4() { [0, 0, 0, 0].into() } else { [0_u16; 8].into() };
    if data == control { unspecified } else { data }
}

/// With the scope of the control connection, where the address wants one and has none.
pub(crate) fn scoped(mut address: SocketAddr, control: SocketAddr) -> SocketAddr {
    if let (SocketAddr::V6(address), SocketAddr::V6(control)) = (&mut address, control)
        && address.ip().is_unicast_link_local()
        && address.scope_id() == 0
    {
        address.set_scope_id(control.scope_id());
    }
    address
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
            ("host:65535", "host", 65535),
        ];
        for (host, name, port) in table {
            assert_eq!(split(host), Some((name, port)), "{host}");
        }
    }

    #[test]
    fn what_is_no_host_is_not_taken_for_one() {
        for host in [
            "",
            ":9",
            "host:",
            "host:x",
            "host:0",
            "host:65536",
            "host:-1",
            "host:1:2",
            "10.0.0.1:99999",
            "[::1]:99999",
            "[::1]x",
            "[::1]:",
            "[::1]:0",
            "[::1]9",
            "[::1",
            "[]",
            "[host]:9",
            "[10.0.0.1]:9",
            "::1:99999",
        ] {
            assert_eq!(split(host), None, "{host}");
        }
    }

    #[test]
    fn ipv4_that_looks_like_ipv6_is_ipv4() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(canonical(address("[::ffff:10.0.0.1]:5")), address("10.0.0.1:5"));
        for real in ["10.0.0.1:5", "[fd00::1]:5", "[fe80::1%3]:5"] {
            assert_eq!(canonical(address(real)), address(real));
        }
        assert_eq!(data_address(address("[::ffff:10.0.0.9]:5"), address("10.0.0.1:7410")), address("10.0.0.9:5"));
    }

    #[test]
    fn what_is_left_open_is_the_control_connections() {
        let address = |text: &str| text.parse::<SocketAddr>().unwrap();
        assert_eq!(data_address(address("0.0.0.0:5"), address("10.0.0.1:7410")), address("10.0.0.1:5"));
        assert_eq!(data_address(address("10.0.0.9:5"), address("10.0.0.1:7410")), address("10.0.0.9:5"));
        let scoped_to_3 = || address("[fe80::1%3]:7410");
        assert_eq!(
            data_address(address("[::]:5"), scoped_to_3()),
            SocketAddrV6::new("fe80::1".parse().unwrap(), 5, 0, 3).into()
        );
        assert_eq!(
            data_address(address("[fe80::2]:5"), scoped_to_3()),
            SocketAddrV6::new("fe80::2".parse().unwrap(), 5, 0, 3).into()
        );
        let ip = |text: &str| text.parse::<IpAddr>().unwrap();
        assert_eq!(announce(ip("10.0.0.1"), ip("10.0.0.1")), ip("0.0.0.0"));
        assert_eq!(announce(ip("10.0.0.2"), ip("10.0.0.1")), ip("10.0.0.2"));
        assert_eq!(scoped(address("[fe80::2]:5"), scoped_to_3()), address("[fe80::2%3]:5"));
        assert_eq!(scoped(address("[fe80::2%4]:5"), scoped_to_3()), address("[fe80::2%4]:5"));
        assert_eq!(scoped(address("[fd00::2]:5"), scoped_to_3()), address("[fd00::2]:5"));
    }
}
