//! What can keep a run from being made.

use std::io;
use std::net::SocketAddr;

use thiserror::Error;
use tickpong_hostio::socket::SocketError;
use tickpong_record::{PlanError, RecordError};
use tickpong_wire::control::BadMessage;

use crate::key::KeyError;

/// Why a run could not be made, or a reflector not be started: what was tried, on what, and what to do about it.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the fields are what the messages show")]
pub enum RunnerError {
    #[error("read `{host}` as a host: want HOST, HOST:PORT or [IPV6]:PORT, with a port from 1 to 65535")]
    Host { host: String },
    #[error("resolve the host name `{host}`")]
    Resolve {
        host: String,
        #[source]
        source: io::Error,
    },
    #[error("resolve the host name `{host}`: it has no address")]
    NoAddress { host: String },
    #[error("connect to the reflector at {address}: {}", connect_advice(.source))]
    Connect {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error("listen on {address} for pingers")]
    Listen {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
    #[error(
        "listen on {address} without a key: anybody who can reach it could make this host answer; give both sides --key-file FILE, or say --insecure"
    )]
    Unprotected { address: SocketAddr },
    #[error("{doing} over the control connection")]
    Control {
        doing: &'static str,
        #[source]
        source: io::Error,
    },
    #[error("{doing}: the other end was silent for {seconds} s")]
    Silent { doing: &'static str, seconds: u64 },
    #[error("{doing}: {source}")]
    BadMessage { doing: &'static str, source: BadMessage },
    #[error("{doing}: the other end answered out of turn")]
    OutOfTurn { doing: &'static str },
    #[error(
        "talk to the reflector: it speaks control protocol {oldest} to {newest} (tickpong {theirs}), \
         this pinger {our_oldest} to {our_newest} (tickpong {ours}); install the same version of tickpong on both hosts"
    )]
    Incompatible { oldest: u16, newest: u16, theirs: String, our_oldest: u16, our_newest: u16, ours: &'static str },
    #[error("use the reflector at {address}: busy with another session, {seconds_left} s left")]
    Busy { address: SocketAddr, seconds_left: u32 },
    #[error("use the reflector at {address}: it refused: {reason}")]
    Refused { address: SocketAddr, reason: String },
    #[error(
        "trust the reflector at {address}: it could not prove that it holds the key; give both sides the same --key-file"
    )]
    NotProven { address: SocketAddr },
    #[error(
        "use the reflector at {address}: it wants data sent to {data}, and without a key nothing shows that it speaks for that host; \
         give both sides the same --key-file"
    )]
    Elsewhere { address: SocketAddr, data: std::net::IpAddr },
    #[error("bind data to {bind}: the reflector's data address is {data}, of the other family")]
    OtherFamily { bind: std::net::IpAddr, data: std::net::IpAddr },
    #[error("read the key: {0}")]
    Key(#[from] KeyError),
    #[error("{0}")]
    Plan(#[from] PlanError),
    #[error("{0}")]
    Socket(#[from] SocketError),
    #[error("{0}")]
    Record(#[from] RecordError),
    #[error("use CPU {cpu}: this process may run on {allowed} only")]
    NoSuchCpu { cpu: usize, allowed: String },
    #[error("choose CPUs for the run")]
    Cpus {
        #[source]
        source: tickpong_hostio::thread::ThreadError,
    },
    #[error("{reason}")]
    Clock { reason: String },
    #[error(
        "reach {data}: {sent} probes of {bytes} bytes went there and none came back; does a firewall drop UDP, or is the address another host's?{}",
        if *.refused > 0 { " This host's own kernel refused some of them." } else { "" }
    )]
    NoPath { data: SocketAddr, sent: u64, refused: u64, bytes: usize },
    #[error("draw random bytes: {0}")]
    Random(String),
    #[error("set up two hosts on this machine: {0}")]
    Hosts(#[from] tickpong_hostio::hosts::HostsError),
    #[error("start the reflector of the demonstration")]
    StartReflector {
        #[source]
        source: io::Error,
    },
    #[error("start the reflector of the demonstration: it ended before it listened; {said}")]
    ReflectorEnded { said: String },
    #[error("serve a session any longer: its plan was {planned}")]
    Overtime { planned: tickpong_units::Nanos },
    #[error("go on: interrupted")]
    Interrupted,
}

/// What to do about a connection that was not made.
fn connect_advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "nobody listens there; start `tickpong reflect` on that host",
        io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock => {
            "no answer; is the host up, and does a firewall let TCP through?"
        }
        io::ErrorKind::NetworkUnreachable | io::ErrorKind::HostUnreachable => "this host knows no way there",
        _ => "no connection",
    }
}
