use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::*;
use crate::clock::monotonic_ns;

const PATIENCE: Nanos = Nanos::from_secs(5);
const LOOPBACKS: [IpAddr; 2] = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];

fn open(setup: &SocketSetup) -> UdpSocket {
    UdpSocket::open(setup).unwrap()
}

fn at(ip: IpAddr) -> SocketSetup {
    SocketSetup { receive_timeout: Some(PATIENCE), ..SocketSetup::new(SocketAddr::new(ip, 0)) }
}

/// Two sockets connected to each other, of every family this host has.
fn pairs() -> impl Iterator<Item = (UdpSocket, UdpSocket)> {
    LOOPBACKS.into_iter().filter_map(|ip| {
        let left = match UdpSocket::open(&at(ip)) {
            Ok(left) => left,
            Err(_) if ip.is_ipv6() => return None,
            Err(error) => panic!("{error}"),
        };
        let right = open(&at(ip));
        left.connect(right.local_addr().unwrap()).unwrap();
        right.connect(left.local_addr().unwrap()).unwrap();
        Some((left, right))
    })
}

/// Repeats `done` until it says so, or fails after a time that no sane host takes.
fn until(done: impl Fn() -> bool) {
    let start = monotonic_ns();
    while !done() {
        assert!(monotonic_ns() - start < PATIENCE.get(), "waited in vain");
        std::thread::yield_now();
    }
}

#[test]
fn datagrams_go_both_ways() {
    for (left, right) in pairs() {
        let mut buffer = [0; 64];
        assert_eq!(right.receive(&mut buffer), None);
        assert_eq!(left.send(b"ping"), Sent::Accepted);
        assert!(right.wait(Some(PATIENCE)));
        assert_eq!(right.receive(&mut buffer), Some(4));
        assert_eq!(&buffer[..4], b"ping");
        assert_eq!(right.send(b""), Sent::Accepted);
        assert_eq!(left.receive_waiting(&mut buffer), Some(0), "an empty datagram is one");
        assert_eq!((left.pending_errors(), right.drops()), (0, Some(0)));
        assert!(left.path_mtu().unwrap() >= 1_280);
    }
}

#[test]
fn the_largest_payload_passes_and_one_more_does_not() {
    for (left, right) in pairs() {
        // 65,535 less a UDP header of 8 and an IPv4 header of 20; IPv6 does not count its own.
        let largest = if left.local_addr().unwrap().is_ipv4() { 65_507 } else { 65_527 };
        let datagram = vec![7; largest + 1];
        let mut buffer = vec![0; largest + 1];
        assert_eq!(left.send(&datagram[..largest]), Sent::Accepted);
        assert_eq!(right.receive_waiting(&mut buffer), Some(largest));
        assert_eq!(left.send(&datagram), Sent::Refused(libc::EMSGSIZE));
    }
}

#[test]
fn a_truncated_datagram_tells_its_true_length() {
    for (left, right) in pairs() {
        let mut buffer = [0; 10];
        assert_eq!(left.send(&[1; 100]), Sent::Accepted);
        assert_eq!(right.receive_waiting(&mut buffer), Some(100));
        assert_eq!(buffer, [1; 10]);
        assert_eq!(left.send(&[1; 10]), Sent::Accepted);
        assert_eq!(right.receive_waiting(&mut buffer), Some(10), "nothing is left over of the first");
    }
}

#[test]
fn buffers_say_what_was_granted() {
    let small = open(&SocketSetup { buffer_bytes: 65_536, ..at(LOOPBACKS[0]) }).buffers();
    for buffer in [small.receive, small.send] {
        assert_eq!((buffer.asked_bytes, buffer.granted_bytes), (65_536, Some(65_536)), "within any host's limit");
    }
    let huge = open(&SocketSetup { buffer_bytes: usize::MAX, ..at(LOOPBACKS[0]) }).buffers();
    let whole = huge.receive.granted_bytes.unwrap() >= (1 << 30) - 1;
    assert!(whole || !huge.receive.forced, "{huge:?}");
}

#[test]
fn every_datagram_is_received_or_counted_as_dropped() {
    let right = open(&SocketSetup { buffer_bytes: 0, ..at(LOOPBACKS[0]) });
    let left = open(&at(LOOPBACKS[0]));
    left.connect(right.local_addr().unwrap()).unwrap();
    let sent = (0..200).filter(|_| left.send(&[0; 264]) == Sent::Accepted).count();
    let received = std::cell::Cell::new(0);
    until(|| {
        let arrived = std::iter::from_fn(|| right.receive(&mut [0; 300])).count();
        received.set(received.get() + arrived);
        received.get() + right.drops().unwrap() as usize == sent
    });
    assert!(received.get() > 0 && received.get() < sent, "received {} of {sent}", received.get());
}

#[test]
fn a_peer_that_does_not_listen_is_counted_and_does_not_stop_the_sender() {
    let closed = open(&at(LOOPBACKS[0])).local_addr().unwrap();
    let socket = open(&at(LOOPBACKS[0]));
    socket.connect(closed).unwrap();
    assert_eq!(socket.send(b"one"), Sent::Accepted);
    until(|| socket.receive(&mut [0; 8]).is_none() && socket.pending_errors() == 1);
    assert_eq!(socket.send(b"two"), Sent::Accepted);
    assert!(socket.wait(Some(PATIENCE)), "an error wakes, too");
    // The kernel reports the second's error in place of the third, which is sent nevertheless.
    assert_eq!(socket.send(b"three"), Sent::Accepted);
    assert!(socket.pending_errors() >= 2);
}

#[test]
fn waits_end() {
    let hasty = open(&SocketSetup { receive_timeout: Some(Nanos::new(1)), ..at(LOOPBACKS[0]) });
    assert!(!hasty.wait(Some(Nanos::ZERO)));
    assert!(!hasty.wait(Some(Nanos::from_micros(100))));
    assert_eq!(hasty.receive_waiting(&mut [0; 8]), None);
}

#[test]
fn an_unconnected_sender_is_answered_from_anywhere() {
    let reflector = open(&at(LOOPBACKS[0]));
    let mut pinger = open(&at(LOOPBACKS[0]));
    pinger.set_peer(reflector.local_addr().unwrap());
    assert_eq!(pinger.send(b"ping"), Sent::Accepted);
    assert_eq!(reflector.receive_waiting(&mut [0; 8]), Some(4));
    let mut other = open(&at(LOOPBACKS[0]));
    other.set_peer(pinger.local_addr().unwrap());
    assert_eq!(other.send(b"pong!"), Sent::Accepted);
    assert_eq!(pinger.receive_waiting(&mut [0; 8]), Some(5));
    assert_eq!(pinger.path_mtu(), None);
}

#[test]
fn a_group_hears_pings_and_answers_from_the_hosts_own_address() {
    let group = IpAddr::V4(Ipv4Addr::new(239, 255, 77, 77));
    let join = Some(MulticastGroup { group, interface: "lo".into() });
    let reflector = open(&SocketSetup { join, bind: SocketAddr::new(group, 0), ..at(group) });
    let group = SocketAddr::new(group, reflector.local_addr().unwrap().port());
    let mut pinger = open(&at(LOOPBACKS[0]));
    pinger.set_multicast_interface("lo").unwrap();
    pinger.set_peer(group);
    reflector.connect(pinger.local_addr().unwrap()).unwrap();
    assert_eq!(reflector.local_addr().unwrap(), group, "connecting leaves the group in place");
    assert_eq!(pinger.send(b"ping"), Sent::Accepted);
    assert_eq!(reflector.receive_waiting(&mut [0; 8]), Some(4));
    assert_eq!(reflector.send(b"pong!"), Sent::Accepted);
    assert_eq!(pinger.receive_waiting(&mut [0; 8]), Some(5));
}

#[test]
fn the_route_decides_where_data_comes_from() {
    let towards = |peer: &str, interface| source_towards(peer.parse().unwrap(), interface);
    assert_eq!(towards("127.0.0.3:5", None).unwrap(), "127.0.0.1:0".parse().unwrap());
    assert_eq!(towards("127.0.0.3:0", Some("lo")).unwrap(), "127.0.0.1:0".parse().unwrap());
    assert!(towards("127.0.0.3:5", Some("none0")).unwrap_err().to_string().contains("interface `none0`"));
}

#[test]
fn a_socket_keeps_to_its_interface() {
    let setup = SocketSetup { interface: Some("lo".into()), ..at(LOOPBACKS[0]) };
    let socket = match UdpSocket::open(&setup) {
        // Kernels before 5.7 ask for the capability.
        Err(SocketError::BindDeviceForbidden { .. }) => return,
        other => other.unwrap(),
    };
    socket.connect(socket.local_addr().unwrap()).unwrap();
    assert_eq!(socket.send(b"self"), Sent::Accepted);
    assert_eq!(socket.receive_waiting(&mut [0; 8]), Some(4));
}

#[test]
fn what_cannot_be_had_is_named() {
    let failure = |setup| UdpSocket::open(&setup).unwrap_err().to_string();
    let foreign = SocketSetup::new(SocketAddr::from(([192, 0, 2, 1], 7)));
    assert_eq!(failure(foreign), "bind to 192.0.2.1:7");
    let interface = SocketSetup { interface: Some("none0".into()), ..at(LOOPBACKS[0]) };
    assert!(failure(interface).starts_with("bind the socket to interface `none0`"));
    let join = Some(MulticastGroup { group: LOOPBACKS[0], interface: "lo".into() });
    assert_eq!(failure(SocketSetup { join, ..at(LOOPBACKS[0]) }), "join 127.0.0.1 on interface `lo`");
    let join = Some(MulticastGroup { group: LOOPBACKS[0], interface: "none0".into() });
    assert_eq!(failure(SocketSetup { join, ..at(LOOPBACKS[0]) }), "find interface `none0`");
}

#[test]
fn busy_polling_is_in_force_or_a_warning() {
    let socket = open(&SocketSetup { busy_poll_us: Some(50), ..at(LOOPBACKS[0]) });
    assert!(socket.busy_poll_us() == Some(50) || !socket.warnings().is_empty(), "{:?}", socket.busy_poll_us());
    for warning in socket.warnings() {
        assert!(warning.option.contains("BUSY_POLL"), "{warning}");
    }
    assert!(open(&at(LOOPBACKS[0])).warnings().is_empty());
}

#[test]
fn sockets_may_be_shared_between_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    shared(&open(&at(LOOPBACKS[0])));
}
