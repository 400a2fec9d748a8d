//! A relay between pinger and reflector, which does to datagrams what a network may do, exactly as often as a test says.
//!
//! The pinger takes the relay for the reflector, and the reflector takes it for the pinger: each hears that one address only.

use std::io;
use std::net::{Ipv4Addr, Shutdown, SocketAddr, SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, connect, socket};
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_record::{Fates, Ignored, Losses, Run};
use tickpong_units::Nanos;
use tickpong_wire::{Datagram, HEADER_LEN, Kind};

use crate::two_hosts::{Process, TICKPONG, Turn, short};

const REFLECTOR: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
const RELAY: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 3);
/// Of no session.
const ELSEWHERE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 9);
const LOOK: Duration = Duration::from_millis(2);

/// What happens to a datagram.
#[derive(Clone, Copy)]
enum Trouble {
    /// These go in its place.
    Becomes(fn(&[u8]) -> Vec<Vec<u8>>),
    /// It is kept until so many later ones have gone.
    Overtaken(u32),
    /// It is kept for so long.
    Delayed(Nanos),
    /// A copy goes ahead, from an address that has nothing to do with it.
    Copied,
}

/// What happens to which.
struct Rule(Kind, &'static [u64], Trouble);

/// One way through the relay.
struct Lane<'a> {
    kind: Kind,
    rules: &'a [Rule],
    from: &'a UdpSocket,
    /// Sends on, by the relay's socket on the other side.
    to: (&'a UdpSocket, SocketAddr),
    elsewhere: &'a UdpSocket,
    held: Vec<Held>,
}

struct Held {
    payload: Vec<u8>,
    /// Until so many more have passed, and until then.
    overtakers: u32,
    until: u64,
}

impl Lane<'_> {
    fn relay(mut self, done: &AtomicBool) {
        self.from.set_read_timeout(Some(LOOK)).unwrap();
        let mut inbox = vec![0; 1 << 16];
        while !done.load(Ordering::Relaxed) {
            // Nothing came, or an old message found nobody at home.
            if let Ok(length) = self.from.recv(&mut inbox) {
                self.pass(&inbox[..length]);
            }
            let (due, held) =
                self.held.drain(..).partition(|held| held.overtakers == 0 && held.until <= monotonic_ns());
            self.held = held;
            for Held { payload, .. } in due {
                self.send(&payload);
            }
        }
    }

    fn pass(&mut self, payload: &[u8]) {
        let read = Datagram::parse(payload).ok().filter(|datagram| datagram.kind == self.kind);
        let is_meant = |rule: &&Rule| read.is_some_and(|it| it.kind == rule.0 && rule.1.contains(&it.seq.get()));
        let hold = |overtakers, until| Held { payload: payload.to_owned(), overtakers, until };
        match self.rules.iter().find(is_meant).map(|rule| rule.2) {
            Some(Trouble::Overtaken(overtakers)) => return self.held.push(hold(overtakers, 0)),
            Some(Trouble::Delayed(delay)) => return self.held.push(hold(0, monotonic_ns() + delay.get())),
            Some(Trouble::Becomes(others)) => others(payload).iter().for_each(|other| self.send(other)),
            Some(Trouble::Copied) => {
                self.elsewhere.send_to(payload, self.to.1).unwrap();
                self.send(payload);
            }
            None => self.send(payload),
        }
        self.held.iter_mut().for_each(|held| held.overtakers = held.overtakers.saturating_sub(1));
    }

    fn send(&self, payload: &[u8]) {
        // Refused when the other side has just gone: the run is over then.
        let _ = self.to.0.send_to(payload, self.to.1);
    }
}

/// Ends the relay, also when the test fails meanwhile.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Plays a thousand messages a second by the relay.
fn play(rules: &[Rule], arguments: &[&str]) -> Run {
    let _turn = Turn::take();
    let front = UdpSocket::bind((RELAY, 0)).unwrap();
    let elsewhere = UdpSocket::bind((ELSEWHERE, 0)).unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let data = format!("--data={}", SocketAddrV4::new(REFLECTOR, front.local_addr().unwrap().port()));
    let reflect = ["reflect", "--once", "--api=udp-block", "--listen=127.0.0.2:0", &data];
    let reflector = Process::start(Command::new(TICKPONG).args(reflect).env_remove("TICKPONG_KEY"));
    let control = reflector.await_line("listening on ").parse().unwrap();
    let listener = TcpListener::bind((RELAY, 0)).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let pace = if arguments.contains(&"--closed") { "--closed" } else { "--rate=1k" };
    let plan = [&[pace, "--deadline=1s", "--api=udp-block"], arguments].concat();
    let done = AtomicBool::new(false);
    let run = thread::scope(|scope| {
        scope.spawn(|| relay_control(scope, &listener, control, &done));
        scope.spawn(|| relay_data(&front, rules, &elsewhere, &done));
        let _done = Done(&done);
        let ping =
            Process::start(Command::new(TICKPONG).args(["ping", &host]).args(short(&plan)).env_remove("TICKPONG_KEY"));
        ping.end().run()
    });
    assert!(elsewhere.recv(&mut [0; 100]).is_err(), "nobody answers an address of no session");
    run
}

/// Lets the two talk.
fn relay_control<'scope>(
    scope: &'scope Scope<'scope, '_>,
    listener: &TcpListener,
    reflector: SocketAddrV4,
    done: &AtomicBool,
) {
    listener.set_nonblocking(true).unwrap();
    let front = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) if done.load(Ordering::Relaxed) => return,
            Err(_) => sleep(Nanos::from_millis(1)),
        }
    };
    front.set_nonblocking(false).unwrap();
    let back = connect_from_relay(reflector);
    let pass_on = |mut from: TcpStream, mut to: TcpStream| {
        // However it ended: the other side is to see an end, too.
        let _ = io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    };
    let (front_too, back_too) = (front.try_clone().unwrap(), back.try_clone().unwrap());
    scope.spawn(move || pass_on(front_too, back_too));
    pass_on(back, front);
}

/// The standard library does not let us choose where a connection comes from.
fn connect_from_relay(reflector: SocketAddrV4) -> TcpStream {
    let stream = socket(AddressFamily::Inet, SockType::Stream, SockFlag::SOCK_CLOEXEC, None).unwrap();
    bind(stream.as_raw_fd(), &SockaddrIn::from(SocketAddrV4::new(RELAY, 0))).unwrap();
    connect(stream.as_raw_fd(), &SockaddrIn::from(reflector)).unwrap();
    TcpStream::from(stream)
}

/// Passes datagrams on from the first, which tells the pinger's port, to the end.
fn relay_data(front: &UdpSocket, rules: &[Rule], elsewhere: &UdpSocket, done: &AtomicBool) {
    front.set_read_timeout(Some(LOOK)).unwrap();
    let pinger = loop {
        match front.peek_from(&mut [0; 100]) {
            Ok((_, pinger)) => break pinger,
            Err(_) if done.load(Ordering::Relaxed) => return,
            Err(_) => {}
        }
    };
    // The reflector expects the pinger's port at the address that its control connection comes from.
    let back = UdpSocket::bind((RELAY, pinger.port())).unwrap();
    let reflector = SocketAddr::from((REFLECTOR, front.local_addr().unwrap().port()));
    let lane = |kind, from, to| Lane { kind, rules, from, to, elsewhere, held: Vec::new() };
    thread::scope(|scope| {
        scope.spawn(|| lane(Kind::Pong, &back, (front, pinger)).relay(done));
        lane(Kind::Ping, front, (&back, reflector)).relay(done);
    });
}

/// Some messages of the run, apart from each other and from its ends.
const SEVEN: &[u64] = &[100, 200, 300, 400, 500, 600, 700];
const FIVE: &[u64] = &[150, 250, 350, 450, 550];
const THREE: &[u64] = &[170, 270, 370];

/// What came of the messages and of what was none, when that is all that happened.
#[track_caller]
fn assert_all(run: &Run, fates: Fates, losses: Losses, ignored: Ignored) {
    let scheduled = 1_100;
    let answered = scheduled - fates.lost - fates.late - run.fates.unsent;
    assert_eq!(run.fates, Fates { scheduled, answered, unsent: run.fates.unsent, ..fates }, "{:?}", run.ignored);
    let some = |losses: Losses| (losses.unexplained_outbound.unwrap_or(0), losses.unexplained_inbound.unwrap_or(0));
    assert_eq!((run.losses.unexplained, some(run.losses)), (fates.lost, some(losses)));
    let ignored = Ignored {
        reflector_malformed: Some(ignored.reflector_malformed.unwrap_or(0)),
        reflector_foreign: Some(ignored.reflector_foreign.unwrap_or(0)),
        reflector_duplicate: Some(ignored.reflector_duplicate.unwrap_or(0)),
        ..ignored
    };
    assert_eq!(run.ignored, ignored);
}

fn outbound(lost: u64) -> Losses {
    Losses { unexplained_outbound: Some(lost), ..Losses::default() }
}

fn inbound(lost: u64) -> Losses {
    Losses { unexplained_inbound: Some(lost), ..Losses::default() }
}

#[test]
fn a_relay_that_does_nothing_does_no_harm() {
    assert_all(&play(&[], &[]), Fates::default(), Losses::default(), Ignored::default());
}

#[test]
fn what_the_network_doubles_is_counted_on_both_sides() {
    const TWICE: Trouble = Trouble::Becomes(|payload| vec![payload.to_owned(); 2]);
    const THRICE: Trouble = Trouble::Becomes(|payload| vec![payload.to_owned(); 3]);
    let run =
        play(&[Rule(Kind::Ping, SEVEN, TWICE), Rule(Kind::Pong, FIVE, TWICE), Rule(Kind::Pong, THREE, THRICE)], &[]);
    let fates = Fates { duplicate: 7 + 5 + 3 * 2, ..Fates::default() };
    assert_all(&run, fates, Losses::default(), Ignored { reflector_duplicate: Some(7), ..Ignored::default() });
}

#[test]
fn what_is_overtaken_is_reordered_and_not_lost() {
    let rules = [Rule(Kind::Ping, SEVEN, Trouble::Overtaken(3)), Rule(Kind::Pong, FIVE, Trouble::Overtaken(1))];
    let run = play(&rules, &[]);
    assert_all(&run, Fates { reordered: 12, ..Fates::default() }, Losses::default(), Ignored::default());
}

#[test]
fn what_comes_after_its_deadline_is_late() {
    let late = Trouble::Delayed(Nanos::from_millis(1_400));
    let run = play(&[Rule(Kind::Ping, THREE, late), Rule(Kind::Pong, FIVE, late)], &[]);
    let fates = Fates { late: 8, reordered: run.fates.reordered, ..Fates::default() };
    assert!((1..=8).contains(&fates.reordered), "{fates:?}");
    assert_all(&run, fates, Losses::default(), Ignored::default());
}

#[test]
fn what_comes_when_it_is_forgotten_is_stale_and_lost() {
    let rules = [Rule(Kind::Pong, FIVE, Trouble::Delayed(Nanos::from_millis(1_500)))];
    let run = play(&rules, &["--deadline=500ms", "--duration=2500ms"]);
    assert_eq!((run.fates.lost, run.fates.duplicate, run.ignored.stale), (5, 0, 5), "{:?}", run.fates);
    assert_eq!(run.losses.unexplained_inbound, Some(5));
}

#[test]
fn what_comes_back_other_than_it_was_sent_is_corrupt_and_lost() {
    fn flip(payload: &[u8], at: usize) -> Vec<Vec<u8>> {
        let mut payload = payload.to_owned();
        payload[at] ^= 0x10;
        vec![payload]
    }
    const FILLER: Trouble = Trouble::Becomes(|payload| flip(payload, HEADER_LEN + 100));
    /// The last byte of the instant it was sent at: it was sent in centuries.
    const SENT: Trouble = Trouble::Becomes(|payload| flip(payload, 39));
    let run =
        play(&[Rule(Kind::Ping, SEVEN, FILLER), Rule(Kind::Pong, FIVE, FILLER), Rule(Kind::Pong, THREE, SENT)], &[]);
    let fates = Fates { lost: 15, ..Fates::default() };
    assert_all(&run, fates, inbound(15), Ignored { corrupt: 15, ..Ignored::default() });
}

#[test]
fn what_is_cut_short_is_malformed_and_lost() {
    const CUT: Trouble = Trouble::Becomes(|payload| vec![payload[..100].to_owned()]);
    const TO_A_BYTE: Trouble = Trouble::Becomes(|payload| vec![payload[..1].to_owned()]);
    let run = play(&[Rule(Kind::Pong, FIVE, CUT), Rule(Kind::Pong, THREE, TO_A_BYTE)], &[]);
    let fates = Fates { lost: 8, ..Fates::default() };
    assert_all(&run, fates, inbound(8), Ignored { malformed: 8, ..Ignored::default() });
    let run = play(&[Rule(Kind::Ping, FIVE, CUT), Rule(Kind::Ping, THREE, TO_A_BYTE)], &[]);
    assert_all(&run, fates, outbound(8), Ignored { reflector_malformed: Some(8), ..Ignored::default() });
}

#[test]
fn garbage_is_counted_and_ignored() {
    const GARBAGE: Trouble = Trouble::Becomes(|payload| {
        let magic_alone = [b"tpng", &[0xff; 300][..]].concat();
        vec![vec![], vec![0], vec![0xff; 65_507], magic_alone, payload.to_owned()]
    });
    let run = play(&[Rule(Kind::Ping, FIVE, GARBAGE), Rule(Kind::Pong, THREE, GARBAGE)], &[]);
    let ignored = Ignored { malformed: 12, reflector_malformed: Some(20), ..Ignored::default() };
    assert_all(&run, Fates::default(), Losses::default(), ignored);
}

#[test]
fn datagrams_of_another_session_are_counted_and_ignored() {
    const ANOTHERS: Trouble = Trouble::Becomes(|payload| {
        let mut anothers = payload.to_owned();
        anothers[8] ^= 1;
        vec![anothers, payload.to_owned()]
    });
    /// A pong for a reflector, a ping for a pinger.
    const WRONG_WAY: Trouble = Trouble::Becomes(|payload| {
        let mut back = payload.to_owned();
        back[5] ^= 1;
        vec![back, payload.to_owned()]
    });
    let run = play(
        &[Rule(Kind::Ping, SEVEN, ANOTHERS), Rule(Kind::Pong, FIVE, ANOTHERS), Rule(Kind::Pong, THREE, WRONG_WAY)],
        &[],
    );
    let ignored = Ignored { foreign: 8, reflector_foreign: Some(7), ..Ignored::default() };
    assert_all(&run, Fates::default(), Losses::default(), ignored);
}

#[test]
fn who_has_nothing_to_do_with_it_is_not_even_heard() {
    let rules = [Rule(Kind::Ping, SEVEN, Trouble::Copied), Rule(Kind::Pong, FIVE, Trouble::Copied)];
    assert_all(&play(&rules, &[]), Fates::default(), Losses::default(), Ignored::default());
}

/// Whatever else happens, a loss is a loss, and no count runs below zero.
#[test]
fn everything_at_once_adds_up_in_a_closed_loop_too() {
    const NOTHING: Trouble = Trouble::Becomes(|_| Vec::new());
    const TWICE: Trouble = Trouble::Becomes(|payload| vec![payload.to_owned(); 2]);
    let rules = [Rule(Kind::Ping, THREE, NOTHING), Rule(Kind::Ping, SEVEN, TWICE), Rule(Kind::Pong, FIVE, NOTHING)];
    let run = play(&rules, &["--closed", "--deadline=100ms", "--duration=2s"]);
    let lost = (run.losses.unexplained_outbound.unwrap(), run.losses.unexplained_inbound.unwrap() - run.ignored.stale);
    assert_eq!((lost, run.fates.lost), ((3, 5), 8 + run.ignored.stale), "{:?}", run.losses);
    assert_eq!((run.fates.duplicate, run.ignored.reflector_duplicate), (7, Some(7)), "{:?}", run.fates);
}
