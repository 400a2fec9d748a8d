//! What this binary does as a child of its own tests. A role ends with a panic when what it checks does not hold.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::time::Duration;

use tickpong_hostio::facts::{FactValue, HostFacts, interface_of};
use tickpong_hostio::hosts::{Hosts, TwoHosts};

/// The environment variable that asks for a role.
pub(crate) const ROLE: &str = "TICKPONG_TEST_ROLE";
/// How a role says that the machine refused, and why.
pub(crate) const REFUSED: &str = "refused: ";
const ADDRESS: &str = "TICKPONG_TEST_ADDRESS";

pub(crate) fn play(role: &str) {
    let (role, kind) = role.split_once(' ').unwrap_or((role, "loopback"));
    let kind: Hosts = kind.parse().unwrap();
    match role {
        "exchange" => exchange(kind),
        "mother" => mother(kind),
        "choose" => choose(),
        "echo" => echo(),
        "there" => there(kind),
        "wait" => wait(),
        _ => panic!("no such role: {role}"),
    }
}

/// A command that plays `role` in a process of its own.
pub(crate) fn command(role: &str) -> Command {
    command_of(&env::current_exe().unwrap(), role)
}

/// The same by a copy of this program.
pub(crate) fn command_of(program: &Path, role: &str) -> Command {
    let mut command = Command::new(program);
    command.env(ROLE, role).stdout(Stdio::piped());
    command
}

/// Makes hosts and passes datagrams between them, with no neighbour asked for.
fn exchange(kind: Hosts) {
    let before = own_namespace();
    let hosts = match TwoHosts::set_up(kind) {
        Ok(hosts) => hosts,
        Err(error) => {
            assert_eq!(own_namespace(), before, "a refusal leaves the process where it was");
            return say_refused(&error);
        }
    };
    pass_datagrams(&hosts, hosts.pinger_address(), hosts.reflector_address());
    let here = interface_of(hosts.pinger_address()).unwrap().unwrap();
    let mut there = command(&format!("there {kind}"));
    there.env(ADDRESS, hosts.reflector_address().to_string());
    hosts.reflector_command(&mut there);
    let mut child = there.spawn().unwrap();
    let namespace = first_line(child.stdout.take().unwrap());
    assert!(child.wait().unwrap().success());
    if kind == Hosts::Loopback {
        assert_eq!((here.as_str(), own_namespace(), namespace), ("lo", before.clone(), before));
        return;
    }
    assert_ne!(own_namespace(), before);
    assert_ne!(namespace, own_namespace());
    assert_nobody_asked();
    let facts = HostFacts::read(Some(&here));
    assert_an_offload_is_one_key(&here, &facts);
    assert_eq!(facts.facts["nic.driver"], FactValue::Text("veth".into()));
    assert_eq!(facts.facts["nic.mtu"], FactValue::Integer(1_500));
    assert_eq!(facts.facts["nic.speed_mbps"], FactValue::Integer(10_000));
}

/// Turns an offload over and back again: its key changes, and none beside it.
fn assert_an_offload_is_one_key(interface: &str, before: &HostFacts) {
    const KEY: &str = "nic.offload.rx-gro";
    let FactValue::Flag(was_on) = before.facts[KEY] else { panic!("{:?}", before.facts[KEY]) };
    set_generic_receive_offload(interface, !was_on);
    let after = HostFacts::read(Some(interface));
    set_generic_receive_offload(interface, was_on);
    let lasting = |facts: &HostFacts| {
        let mut facts = facts.clone();
        facts.facts.retain(|key, _| !key.starts_with("state."));
        facts
    };
    let mut want = lasting(before);
    want.facts.insert(KEY.to_owned(), FactValue::Flag(!was_on));
    assert_eq!(lasting(&after), want);
}

/// What `ethtool -K INTERFACE gro` does.
fn set_generic_receive_offload(interface: &str, on: bool) {
    const SIOCETHTOOL: libc::Ioctl = 0x8946;
    const ETHTOOL_SGRO: u32 = 0x2c;
    // `struct ethtool_value`.
    let mut value = [ETHTOOL_SGRO, u32::from(on)];
    let mut name = [0; libc::IFNAMSIZ];
    for (to, from) in name.iter_mut().zip(interface.bytes()) {
        *to = libc::c_char::from_ne_bytes([from]);
    }
    let data = libc::__c_anonymous_ifr_ifru { ifru_data: value.as_mut_ptr().cast() };
    let mut request = libc::ifreq { ifr_name: name, ifr_ifru: data };
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    #[expect(unsafe_code, reason = "nix has no wrapper")]
    // SAFETY: SIOCETHTOOL with ETHTOOL_SGRO reads a struct of two words behind `ifru_data`: `value`, a local that outlives the call.
    let status = unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) };
    assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// Starts a reflector's child and passes datagrams to it and back: one of its own size, and one that is cut in pieces.
fn pass_datagrams(hosts: &TwoHosts, pinger: IpAddr, reflector: IpAddr) {
    let mut echo = command("echo");
    echo.env(ADDRESS, reflector.to_string());
    hosts.reflector_command(&mut echo);
    let mut child = echo.spawn().unwrap();
    let address: SocketAddr = first_line(child.stdout.take().unwrap()).parse().unwrap();
    let socket = UdpSocket::bind((pinger, 0)).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    for size in [56, 264, 9_000] {
        let ping = vec![0x77; size];
        socket.send_to(&ping, address).unwrap();
        let mut pong = vec![0; 10_000];
        let (len, from) = socket.recv_from(&mut pong).unwrap();
        assert_eq!((&pong[..len], from), (&ping[..], address));
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Every neighbour is permanent, and no solicitation was sent, nor anything else of IPv6's housekeeping but group reports.
fn assert_nobody_asked() {
    let arp = fs::read_to_string("/proc/thread-self/net/arp").unwrap();
    let neighbours: Vec<&str> = arp.lines().skip(1).collect();
    assert_eq!(neighbours.len(), 1, "{arp}");
    // Complete (2) and permanent (4).
    assert_eq!(neighbours[0].split_whitespace().nth(2), Some("0x6"), "{arp}");
    let Ok(counters) = fs::read_to_string("/proc/thread-self/net/snmp6") else { return };
    for name in ["Icmp6OutNeighborSolicits", "Icmp6InNeighborSolicits", "Icmp6OutRouterSolicits"] {
        let line = counters.lines().find(|line| line.split_whitespace().next() == Some(name)).unwrap();
        assert_eq!(line.split_whitespace().nth(1), Some("0"), "{line}");
    }
}

/// Makes hosts, starts a child on the reflector's, says both numbers, and stays until killed.
fn mother(kind: Hosts) {
    let hosts = match TwoHosts::set_up(kind) {
        Ok(hosts) => hosts,
        Err(error) => return say_refused(&error),
    };
    let mut wait_there = command("wait");
    hosts.reflector_command(&mut wait_there);
    let mut child = wait_there.spawn().unwrap();
    // It says a word when it is past exec, the wish made.
    first_line(child.stdout.take().unwrap());
    say(&child.id().to_string());
    child.wait().unwrap();
}

/// Says which hosts were chosen, and on further lines which were not and why.
fn choose() {
    let before = own_namespace();
    let (hosts, refused) = TwoHosts::choose();
    say(&hosts.kind().to_string());
    for refused in &refused {
        println!("{}: {:?}", refused.kind, refused.reason);
    }
    assert_eq!(hosts.kind() == Hosts::Loopback, own_namespace() == before);
}

/// Looks around on the reflector's host.
fn there(kind: Hosts) {
    let address: IpAddr = env::var(ADDRESS).unwrap().parse().unwrap();
    assert!(interface_of(address).unwrap().is_some(), "{address} is this host's");
    if kind != Hosts::Loopback {
        assert_nobody_asked();
    }
    say(&own_namespace());
}

fn echo() {
    let address: IpAddr = env::var(ADDRESS).unwrap().parse().unwrap();
    let socket = UdpSocket::bind((address, 0)).unwrap();
    say(&socket.local_addr().unwrap().to_string());
    let mut datagram = [0; 10_000];
    loop {
        let (len, from) = socket.recv_from(&mut datagram).unwrap();
        socket.send_to(&datagram[..len], from).unwrap();
    }
}

/// Stays for a while, far longer than a test does.
#[expect(clippy::disallowed_methods, reason = "there is nothing to measure")]
fn wait() {
    say("here");
    std::thread::sleep(Duration::from_mins(1));
}

fn say(word: &str) {
    println!("{word}");
    std::io::stdout().flush().unwrap();
}

fn say_refused(error: &dyn std::error::Error) {
    let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
    say(&format!("{REFUSED}{error}{cause}"));
}

pub(crate) fn first_line(from: ChildStdout) -> String {
    let mut line = String::new();
    BufReader::new(from).read_line(&mut line).unwrap();
    line.trim().to_owned()
}

fn own_namespace() -> String {
    fs::read_link("/proc/thread-self/ns/net").unwrap().into_os_string().into_string().unwrap()
}
