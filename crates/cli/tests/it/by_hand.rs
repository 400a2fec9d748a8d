//! The protocol spoken by hand: what an honest end never says, and a dishonest or broken one might.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac as _};
use serde_json::Value;
use sha2::Sha256;
use tickpong_record::{Api, ClockFacts, Cpu, HOST_FORMAT, HostFacts, InForce, Memory, ReflectorReport, Sockets};
use tickpong_units::{Instant, Seq};
use tickpong_wire::control::{
    FRAME_HEADER_LEN, FrameHeader, MAX_REPORT, Mac, Message, Nonce, OLDEST_PROTOCOL, PROTOCOL, SEAL_LEN,
};
use tickpong_wire::{Datagram, HEADER_LEN, Kind, Token, datagram};

/// What both ends share, where they share something.
pub(crate) const KEY: &str = "0123456789abcdef0123456789abcdef";
pub(crate) const PINGER_PROVES: &str = "tickpong pinger proves";
pub(crate) const REFLECTOR_PROVES: &str = "tickpong reflector proves";
const PINGER_SEALS: &str = "tickpong pinger seals";
const REFLECTOR_SEALS: &str = "tickpong reflector seals";
const TOKEN: &str = "tickpong session token";
/// Longer than any honest answer takes, and than the reflector keeps a silent session.
const PATIENCE: Duration = Duration::from_secs(12);
/// How long an answer that must not come is waited for.
const NO_ANSWER: Duration = Duration::from_millis(300);

/// A control connection.
pub(crate) struct Line {
    pub(crate) stream: TcpStream,
    frame: Vec<u8>,
    /// What this end seals with, and what the other does: key, and number of the next frame.
    seals: Option<[(Mac, u64); 2]>,
}

impl Line {
    pub(crate) fn connect(reflector: SocketAddr) -> Self {
        Self::new(TcpStream::connect(reflector).unwrap())
    }

    pub(crate) fn new(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, frame: Vec::new(), seals: None }
    }

    pub(crate) fn say(&mut self, message: &Message<'_>) {
        let bytes = self.sealed(message);
        self.stream.write_all(&bytes).unwrap();
    }

    /// The bytes of a message in its turn.
    pub(crate) fn sealed(&mut self, message: &Message<'_>) -> Vec<u8> {
        let mut bytes = frame(message);
        if let Some([ours, _]) = &mut self.seals {
            let seal = seal(ours, &bytes);
            bytes.extend(seal);
        }
        bytes
    }

    /// From here on messages are sealed: by a pinger, or by a reflector.
    fn seal(&mut self, key: &str, [ours, theirs]: [&str; 2], pinger: Nonce, reflector: Nonce) {
        self.seals = Some([ours, theirs].map(|purpose| (mac(key, purpose, pinger, reflector), 0)));
    }

    pub(crate) fn hear(&mut self) -> io::Result<Message<'_>> {
        let mut front = [0; FRAME_HEADER_LEN];
        self.stream.read_exact(&mut front)?;
        let header = FrameHeader::parse(&front, MAX_REPORT).map_err(io::Error::other)?;
        self.frame.resize(header.body_len, 0);
        self.stream.read_exact(&mut self.frame)?;
        if let Some([_, theirs]) = &mut self.seals {
            let mut theirs_said = [0; SEAL_LEN];
            self.stream.read_exact(&mut theirs_said)?;
            assert_eq!(theirs_said, seal(theirs, &[&front[..], &self.frame].concat()), "every message is sealed");
        }
        Message::parse(header, &self.frame).map_err(io::Error::other)
    }

    /// Introduces itself; the other end's nonce.
    pub(crate) fn greet(&mut self, nonce: Nonce) -> Nonce {
        self.say(&Message::Hello { newest: PROTOCOL, oldest: OLDEST_PROTOCOL, nonce, version: "by hand" });
        match self.hear().unwrap() {
            Message::Welcome { nonce, .. } => nonce,
            other => panic!("{other:?}"),
        }
    }

    /// Nothing more comes: the other end has closed.
    pub(crate) fn is_closed(&mut self) -> bool {
        match self.stream.read(&mut [0; 64]) {
            Ok(read) => read == 0,
            Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
        }
    }
}

/// The bytes of a message.
pub(crate) fn frame(message: &Message<'_>) -> Vec<u8> {
    let mut frame = vec![0; 1 << 16];
    let length = message.emit(&mut frame).unwrap();
    frame.truncate(length);
    frame
}

/// The seal of the next frame.
fn seal((key, number): &mut (Mac, u64), frame: &[u8]) -> [u8; SEAL_LEN] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).unwrap();
    mac.update(&number.to_le_bytes());
    mac.update(frame);
    *number += 1;
    *mac.finalize().into_bytes().first_chunk().unwrap()
}

/// What proves or derives something of a session.
pub(crate) fn mac(key: &str, purpose: &str, pinger: Nonce, reflector: Nonce) -> Mac {
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).unwrap();
    mac.update(purpose.as_bytes());
    mac.update(&PROTOCOL.to_le_bytes());
    mac.update(&pinger);
    mac.update(&reflector);
    mac.finalize().into_bytes().into()
}

fn token(key: &str, pinger: Nonce, reflector: Nonce) -> Token {
    Token::new(*mac(key, TOKEN, pinger, reflector).first_chunk().unwrap())
}

/// How long a session of a pinger by hand usually takes, in nanoseconds.
pub(crate) const PLANNED: u64 = 2_000_000_000;

/// What a pinger by hand asks for.
pub(crate) fn open_message(data: SocketAddr, planned_ns: u64) -> Message<'static> {
    Message::Open { data, planned_ns, deadline_ns: 1_000_000_000, interval_ns: 100_000_000 }
}

/// A session that a pinger by hand has opened.
pub(crate) struct Session {
    pub(crate) line: Line,
    pub(crate) token: Token,
    pub(crate) socket: UdpSocket,
    pub(crate) data: SocketAddr,
}

impl Session {
    /// With an empty key where there is none.
    pub(crate) fn open(reflector: SocketAddr, key: &str) -> Self {
        Self::open_for(reflector, key, PLANNED)
    }

    /// One that is planned to take so long.
    pub(crate) fn open_for(reflector: SocketAddr, key: &str, planned_ns: u64) -> Self {
        let (mut line, token) = offered(reflector, key);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        line.say(&open_message(SocketAddr::new([0, 0, 0, 0].into(), socket.local_addr().unwrap().port()), planned_ns));
        let data = match line.hear().unwrap() {
            Message::Opened { port } => SocketAddr::new(reflector.ip(), port),
            other => panic!("{other:?}"),
        };
        socket.connect(data).unwrap();
        line.say(&Message::Start);
        Self { line, token, socket, data }
    }

    pub(crate) fn ping(&self, seq: u64, bytes: usize) -> Vec<u8> {
        payload(Kind::Ping, self.token, seq, bytes)
    }

    /// What comes back for this.
    pub(crate) fn exchange(&self, payload: &[u8]) -> Option<Vec<u8>> {
        self.socket.send(payload).unwrap();
        answer_on(&self.socket)
    }

    /// Ends the session as an honest pinger does; the reflector's report.
    pub(crate) fn finish(mut self) -> Value {
        self.line.say(&Message::Finish);
        loop {
            match self.line.hear().unwrap() {
                Message::Pulse(_) => {}
                Message::Report { json } => return serde_json::from_slice(json).unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// A connection whose ends trust each other, and the token of the session to be.
pub(crate) fn trusted(reflector: SocketAddr, key: &str) -> (Line, Token) {
    let mut line = Line::connect(reflector);
    let pinger = [7; 16];
    let theirs = line.greet(pinger);
    line.say(&Message::Authenticate { mac: mac(key, PINGER_PROVES, pinger, theirs) });
    let proof = mac(key, REFLECTOR_PROVES, pinger, theirs);
    assert_eq!(line.hear().unwrap(), Message::Authenticated { mac: proof }, "the reflector proves itself too");
    line.seal(key, [PINGER_SEALS, REFLECTOR_SEALS], pinger, theirs);
    (line, token(key, pinger, theirs))
}

/// The same, where the reflector has said that data goes to its control address.
pub(crate) fn offered(reflector: SocketAddr, key: &str) -> (Line, Token) {
    let (mut line, token) = trusted(reflector, key);
    match line.hear().unwrap() {
        Message::Offer { host, .. } => assert!(host.is_unspecified(), "{host}"),
        other => panic!("{other:?}"),
    }
    (line, token)
}

/// A datagram of the session.
pub(crate) fn payload(kind: Kind, token: Token, seq: u64, bytes: usize) -> Vec<u8> {
    let mut payload = vec![0; bytes];
    datagram::fill(&mut payload, token);
    let (intended, sent) = (Instant::from_clock(1), Instant::from_clock(2));
    let (arrival, departure) = (Instant::from_clock(0), Instant::from_clock(0));
    Datagram { kind, token, seq: Seq::new(seq), intended, sent, arrival, departure }.emit(&mut payload);
    payload
}

/// What arrives, if anything does.
pub(crate) fn answer_on(socket: &UdpSocket) -> Option<Vec<u8>> {
    socket.set_read_timeout(Some(NO_ANSWER)).unwrap();
    let mut answer = vec![0; 1 << 16];
    let length = socket.recv(&mut answer).ok()?;
    answer.truncate(length);
    Some(answer)
}

/// A program that listens, and deals with the first that connects as the test wants.
pub(crate) fn listener(deal: impl FnOnce(TcpStream) + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (address, std::thread::spawn(move || deal(listener.accept().unwrap().0)))
}

/// The reflector's side of a greeting, by hand: a line whose ends trust each other.
pub(crate) fn trusting(stream: TcpStream, key: &str) -> Line {
    let mut line = Line::new(stream);
    let Message::Hello { nonce: pinger, .. } = line.hear().unwrap() else { panic!("no greeting") };
    let ours = [9; 16];
    line.say(&Message::Welcome { protocol: PROTOCOL, nonce: ours, keyed: !key.is_empty(), version: "by hand" });
    assert_eq!(line.hear().unwrap(), Message::Authenticate { mac: mac(key, PINGER_PROVES, pinger, ours) });
    line.say(&Message::Authenticated { mac: mac(key, REFLECTOR_PROVES, pinger, ours) });
    line.seal(key, [REFLECTOR_SEALS, PINGER_SEALS], pinger, ours);
    line
}

/// What a reflector by hand offers: data to this host, or none for the one that was asked.
pub(crate) fn offer(host: IpAddr) -> Message<'static> {
    Message::Offer { host, api: "udp-block" }
}

pub(crate) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A reflector by hand, for one pinger: `answer` deals with each ping, and `report` is its last word.
pub(crate) fn reflector(
    mut answer: impl FnMut(&UdpSocket, Vec<u8>) + Send + 'static,
    report: Vec<u8>,
) -> (SocketAddr, JoinHandle<()>) {
    listener(move |stream| {
        let mut line = trusting(stream, "");
        line.say(&offer(HERE));
        let Message::Open { data, .. } = line.hear().unwrap() else { panic!("no plan") };
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.connect((Ipv4Addr::LOCALHOST, data.port())).unwrap();
        let port = socket.local_addr().unwrap().port();
        line.say(&Message::Opened { port });
        let done = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&done);
        let answering = std::thread::spawn(move || {
            while !until.load(Ordering::Relaxed) {
                let Some(mut ping) = answer_on(&socket) else { continue };
                let parsed = Datagram::parse(&ping).unwrap();
                datagram::answer(Instant::from_clock(5), &mut ping);
                datagram::depart(Instant::from_clock(6), &mut ping);
                match parsed.kind {
                    Kind::PathProbe => drop(socket.send(&ping)),
                    _ => answer(&socket, ping),
                }
            }
        });
        while !matches!(line.hear().unwrap(), Message::Finish) {}
        done.store(true, Ordering::Relaxed);
        answering.join().unwrap();
        line.say(&Message::Report { json: &report });
    })
}

/// A report that a reflector might make.
pub(crate) fn report(received: u64) -> ReflectorReport {
    ReflectorReport {
        api: Api::UdpBlock,
        received,
        duplicate: 0,
        unanswered: 0,
        malformed: 0,
        foreign: 0,
        cpu: Cpu::default(),
        memory: Memory::default(),
        in_force: InForce::default(),
        clock: ClockFacts::default(),
        clock_trustworthy: true,
        sockets: Sockets::default(),
        host: HostFacts {
            format: HOST_FORMAT,
            role: "reflector".to_owned(),
            boot_id: None,
            tickpong_version: "by hand".to_owned(),
            binary_sha256: None,
            facts: BTreeMap::new(),
            absent: BTreeMap::new(),
        },
        warnings: Vec::new(),
    }
}

/// Bytes without a pattern, the same every time.
pub(crate) struct Noise(pub(crate) u64);

impl Noise {
    pub(crate) fn next(&mut self) -> u64 {
        // Marsaglia's xorshift (2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count).map(|_| self.next().to_le_bytes()[3]).collect()
    }
}

/// The header alone is as short as a ping can be.
pub(crate) const SHORTEST: usize = HEADER_LEN;

/// Reads what comes until the other end closes; whether it does.
pub(crate) fn drains(stream: &mut TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    match io::copy(stream, &mut io::sink()) {
        Ok(_) => true,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}
