//! Makes the namespaces and the pair between them: first in a child that may fail, then here.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, OwnedFd};
use std::panic;
use std::time::Duration;

use nix::fcntl::OFlag;
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, getegid, geteuid, pipe2};

use super::Hosts;
use super::error::{HostsError, Obstacle, Settings};
use super::rtnetlink::{Rtnetlink, VethEnd};

/// One host: its device and its address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Host {
    interface: &'static str,
    pub(super) v4: Ipv4Addr,
    mac: [u8; 6],
}

pub(super) const PINGER: Host =
    Host { interface: "tp-pinger", v4: Ipv4Addr::new(10, 77, 0, 1), mac: [0x02, 0, 0, 0, 0x77, 1] };

pub(super) const REFLECTOR: Host =
    Host { interface: "tp-reflector", v4: Ipv4Addr::new(10, 77, 0, 2), mac: [0x02, 0, 0, 0, 0x77, 2] };

/// The loopback device of every namespace.
const LOOPBACK_INDEX: u32 = 1;
/// Free in a new namespace, where only lo and perhaps tunnels with low numbers exist: to choose the number saves asking for it.
const VETH_INDEX: u32 = 77;
/// How long one try to pass a datagram waits each way, and how many there are: some seconds, for a machine that is very busy.
const PASS_TIMEOUT: Duration = Duration::from_millis(10);
const PASS_ATTEMPTS: u32 = 500;

/// Tries in a child whether hosts of `kind` can be made, and makes them here if so: the process is then in the pinger's, and the
/// reflector's namespace is the one returned.
pub(super) fn rehearse_and_move(kind: Hosts) -> Result<OwnedFd, HostsError> {
    // Left behind in the old namespace, another thread would measure a network that nobody thinks of.
    let threads = fs::read_dir("/proc/self/task").map_err(HostsError::CountThreads)?.count();
    if threads != 1 {
        return Err(HostsError::Threads { threads });
    }
    let refuse = |Failed { step, source }| {
        let obstacle = Obstacle::new(kind, &source, Settings::read());
        HostsError::Refused { step, obstacle, source }
    };
    rehearse(kind).map_err(HostsError::Rehearse)?.map_err(refuse)?;
    move_process(kind).map_err(refuse)
}

/// A step that the kernel refused.
#[derive(Debug)]
struct Failed {
    step: String,
    source: io::Error,
}

/// Makes the hosts in a child and lets them go with it: there is no way back out of a user namespace, so the first try must
/// not be made by this process.
fn rehearse(kind: Hosts) -> io::Result<Result<(), Failed>> {
    let (answer, word) = pipe2(OFlag::O_CLOEXEC)?;
    #[expect(unsafe_code, reason = "a rehearsal takes a process of its own, without another program")]
    // SAFETY: the caller has seen that this process has one thread, so the child starts with no lock held by a thread that
    // it does not have, and may allocate; fork(2) asks no more.
    let forked = unsafe { nix::unistd::fork() }?;
    match forked {
        ForkResult::Child => {
            // A panic must not unwind into a second life of the caller; it ends the child without a word.
            let text = match panic::catch_unwind(|| move_process(kind)) {
                Err(_) => String::new(),
                Ok(Ok(_)) => "0".to_owned(),
                Ok(Err(failed)) => format!("{} {}", failed.source.raw_os_error().unwrap_or(libc::EIO), failed.step),
            };
            // A word that does not arrive is an error to the one who waits for it.
            let told = File::from(word).write_all(text.as_bytes()).is_ok();
            #[expect(unsafe_code, reason = "the child must not run what the parent left for its own exit")]
            // SAFETY: _exit(2) takes a number and does not return; nothing of the child's is needed after it.
            unsafe {
                libc::_exit(i32::from(!told))
            }
        }
        ForkResult::Parent { child } => {
            drop(word);
            let mut text = String::new();
            File::from(answer).read_to_string(&mut text)?;
            waitpid(child, None)?;
            read_word(&text).ok_or_else(|| io::Error::other("the child ended without a word"))
        }
    }
}

/// Reads what the rehearsal said: `0`, or an error number and the step it came from.
fn read_word(text: &str) -> Option<Result<(), Failed>> {
    if text == "0" {
        return Some(Ok(()));
    }
    let (errno, step) = text.split_once(' ')?;
    Some(Err(Failed { step: step.to_owned(), source: io::Error::from_raw_os_error(errno.parse().ok()?) }))
}

/// Makes the hosts and moves the process into the pinger's; on failure back home, where the kernel lets it.
fn move_process(kind: Hosts) -> Result<OwnedFd, Failed> {
    let home = own_namespace()?;
    if kind == Hosts::UserNamespaces {
        enter_user_namespace()?;
    }
    make_hosts().inspect_err(|_| {
        // Refused within a user namespace, which has no power over home; the error that is already there says more.
        let _ = setns(&home, CloneFlags::CLONE_NEWNET);
    })
}

/// Enters a new user namespace, as its root.
fn enter_user_namespace() -> Result<(), Failed> {
    // Asked before, since afterwards both are the overflow numbers.
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER).failed("create a user namespace")?;
    for (file, line) in [
        // Without this a user may not map a group: it could drop one that denies it something.
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("0 {user} 1")),
        ("/proc/self/gid_map", format!("0 {group} 1")),
    ] {
        fs::write(file, line).failed(&format!("become root of the new user namespace by {file}"))?;
    }
    Ok(())
}

/// Makes the reflector's namespace, then the pinger's, in which the process stays, and joins them.
fn make_hosts() -> Result<OwnedFd, Failed> {
    let mut reflector = enter_new_host(REFLECTOR)?;
    let mut pinger = enter_new_host(PINGER)?;
    let pair = format!("create the veth pair {} and {}", PINGER.interface, REFLECTOR.interface);
    let namespace = reflector.namespace.as_fd();
    pinger.rtnetlink.create_veth(veth_end(PINGER), veth_end(REFLECTOR), namespace).failed(&pair)?;

    for made in [&mut pinger, &mut reflector] {
        // Before it is up, when it would begin to talk.
        silence_v6(made)?;
        made.rtnetlink.raise(VETH_INDEX).failed(&step("set up", made.host))?;
    }
    // Devices that are up: the kernel forgets the neighbours of one that is not.
    introduce(&mut pinger, REFLECTOR)?;
    introduce(&mut reflector, PINGER)?;
    pass_a_datagram(&pinger.socket, &reflector.socket)?;
    Ok(reflector.namespace)
}

/// A host being made, and what still speaks for it when the process has moved on.
#[derive(Debug)]
struct NewHost {
    host: Host,
    namespace: OwnedFd,
    rtnetlink: Rtnetlink,
    socket: UdpSocket,
}

/// Moves the process into a new network namespace, where only lo is, and that up.
fn enter_new_host(host: Host) -> Result<NewHost, Failed> {
    unshare(CloneFlags::CLONE_NEWNET).failed(&step("create a network namespace for", host))?;
    let namespace = own_namespace()?;
    let mut rtnetlink = Rtnetlink::open().failed(&step("open a netlink socket for", host))?;
    rtnetlink.raise(LOOPBACK_INDEX).failed(&step("set up lo beside", host))?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).failed(&step("open a UDP socket for", host))?;
    Ok(NewHost { host, namespace, rtnetlink, socket })
}

/// Gives a host its address, and tells it the other's device.
fn introduce(made: &mut NewHost, other: Host) -> Result<(), Failed> {
    let address = made.rtnetlink.add_address(VETH_INDEX, made.host.v4, 24);
    address.failed(&step("add an address to", made.host))?;
    let neighbour = made.rtnetlink.add_neighbour(VETH_INDEX, other.v4, other.mac);
    neighbour.failed(&step("add a neighbour to", made.host))
}

/// Waits until a datagram has gone to the reflector and one back.
///
/// The kernel's workers complete what was asked for after the answer: the end of the pair that was set up first drops what it is
/// given until one has seen that the other is up as well. Without the wait, the first messages of a run may be lost.
fn pass_a_datagram(pinger: &UdpSocket, reflector: &UdpSocket) -> Result<(), Failed> {
    let address = REFLECTOR.v4;
    let passes = || {
        let there = SocketAddr::from((address, reflector.local_addr()?.port()));
        pinger.send_to(&[0], there)?;
        let (_, back) = reflector.recv_from(&mut [0])?;
        reflector.send_to(&[0], back)?;
        pinger.recv_from(&mut [0])
    };
    let try_often = || -> io::Result<()> {
        for socket in [pinger, reflector] {
            socket.set_read_timeout(Some(PASS_TIMEOUT))?;
        }
        let passed = (0..PASS_ATTEMPTS).any(|_| passes().is_ok());
        if passed { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::ETIMEDOUT)) }
    };
    try_often().failed(&format!("pass a datagram from {} to {address} and back", PINGER.interface))
}

fn own_namespace() -> Result<OwnedFd, Failed> {
    const PATH: &str = "/proc/thread-self/ns/net";
    File::open(PATH).map(OwnedFd::from).failed(&format!("open {PATH}"))
}

const fn veth_end(host: Host) -> VethEnd {
    VethEnd { name: host.interface, index: VETH_INDEX, mac: host.mac }
}

/// Keeps a host from IPv6's housekeeping; a machine that has IPv6 switched off has none, and that is no error.
fn silence_v6(made: &mut NewHost) -> Result<(), Failed> {
    match made.rtnetlink.silence(VETH_INDEX) {
        // EACCES: net.ipv6.conf.*.disable_ipv6 is set; the others: not in the kernel, or ipv6.disable=1.
        Err(error) if matches!(error.raw_os_error(), Some(libc::EACCES | libc::EAFNOSUPPORT | libc::EOPNOTSUPP)) => {
            Ok(())
        }
        silenced => silenced.failed(&step("silence", made.host)),
    }
}

fn step(what: &str, host: Host) -> String {
    format!("{what} {}", host.interface)
}

/// Names the step that a result came from.
trait Step<T> {
    fn failed(self, step: &str) -> Result<T, Failed>;
}

impl<T, E: Into<io::Error>> Step<T> for Result<T, E> {
    fn failed(self, step: &str) -> Result<T, Failed> {
        self.map_err(|error| Failed { step: step.to_owned(), source: error.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_of_a_rehearsal_is_understood() {
        assert!(matches!(read_word("0"), Some(Ok(()))));
        let Some(Err(failed)) = read_word("1 create a user namespace") else { panic!("a failure") };
        assert_eq!(failed.step, "create a user namespace");
        assert_eq!(failed.source.raw_os_error(), Some(libc::EPERM));
        assert!(read_word("").is_none());
        assert!(read_word("later").is_none());
    }
}
