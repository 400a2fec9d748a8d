//! The reflector answers its session, and nobody else.

use proptest::prelude::*;
use tickpong_probe::{Platform, Reflector, ReflectorTotals, Reflects, TurnedAround, reflect};
use tickpong_record::capture::Turns;
use tickpong_units::{Instant, Nanos, ReflectorClock, Seq};
use tickpong_wire::{Datagram, HEADER_LEN, Kind, Token, datagram};

use crate::world::TOKEN;

fn reflector() -> Reflector {
    Reflector::new(TOKEN, Nanos::from_secs(1))
}

fn of_kind(kind: Kind, token: Token, seq: u64) -> [u8; 100] {
    let mut payload = [0; 100];
    datagram::fill(&mut payload, token);
    let header = Datagram {
        kind,
        token,
        seq: Seq::new(seq),
        intended: Instant::from_clock(1),
        sent: Instant::from_clock(2),
        arrival: Instant::from_clock(0),
        departure: Instant::from_clock(0),
    };
    header.emit(&mut payload);
    payload
}

fn ping(seq: u64) -> [u8; 100] {
    of_kind(Kind::Ping, TOKEN, seq)
}

fn handle(reflector: &mut Reflector, payload: &mut [u8]) -> bool {
    let answers = reflector.handle(Instant::from_clock(10), payload);
    if answers {
        datagram::depart(Instant::from_clock(13), payload);
    }
    answers
}

#[test]
fn a_ping_goes_back_stamped_and_otherwise_as_it_came() {
    let (mut reflector, asked) = (reflector(), ping(4));
    let mut answer = asked;
    assert!(handle(&mut reflector, &mut answer));
    let (ping, pong) = (Datagram::parse(&asked).unwrap(), Datagram::parse(&answer).unwrap());
    let (arrival, departure) = (Instant::from_clock(10), Instant::from_clock(13));
    assert_eq!(pong, Datagram { kind: Kind::Pong, arrival, departure, ..ping });
    assert_eq!(answer[HEADER_LEN..], asked[HEADER_LEN..]);
    assert_eq!(reflector.totals(), ReflectorTotals { received: 1, ..ReflectorTotals::default() });
}

#[test]
fn a_ping_that_comes_again_is_answered_again() {
    let mut reflector = reflector();
    assert!([4, 4, 3, 4].iter().all(|&seq| handle(&mut reflector, &mut ping(seq))));
    assert_eq!(reflector.totals(), ReflectorTotals { received: 2, duplicate: 2, ..ReflectorTotals::default() });
}

#[test]
fn who_does_not_hold_the_token_gets_nothing() {
    let mut reflector = reflector();
    let other = Token::new(*b"another!");
    for kind in [Kind::Ping, Kind::Pong, Kind::PathProbe, Kind::PathAnswer] {
        assert!(!handle(&mut reflector, &mut of_kind(kind, other, 0)), "{kind:?}");
    }
    assert_eq!(reflector.totals(), ReflectorTotals { foreign: 4, ..ReflectorTotals::default() });
}

#[test]
fn an_answer_is_not_answered_even_to_its_session() {
    // Or two reflectors would play for ever.
    let mut reflector = reflector();
    assert!(!handle(&mut reflector, &mut of_kind(Kind::Pong, TOKEN, 0)));
    assert!(!handle(&mut reflector, &mut of_kind(Kind::PathAnswer, TOKEN, 0)));
    assert_eq!(reflector.totals(), ReflectorTotals { foreign: 2, ..ReflectorTotals::default() });
}

#[test]
fn a_path_probe_is_answered_and_not_counted() {
    let (mut reflector, mut probe) = (reflector(), of_kind(Kind::PathProbe, TOKEN, 0));
    assert!(handle(&mut reflector, &mut probe));
    assert_eq!(Datagram::parse(&probe).unwrap().kind, Kind::PathAnswer);
    assert_eq!(reflector.totals(), ReflectorTotals::default());
    assert!(handle(&mut reflector, &mut ping(0)));
    assert_eq!(reflector.totals().duplicate, 0, "the numbers of probes are their own");
}

proptest! {
    #[test]
    fn no_bytes_are_answered_by_chance(bytes in prop::collection::vec(any::<u8>(), 0..2_000)) {
        let (mut reflector, mut payload) = (reflector(), bytes.clone());
        prop_assert!(!handle(&mut reflector, &mut payload));
        prop_assert_eq!(payload, bytes, "what is not answered is left as it is");
        prop_assert_eq!(reflector.totals().malformed, 1);
    }

    /// Anything but the fields that say which message it is, and the filler, takes a ping out of the session.
    #[test]
    fn a_changed_ping_is_not_answered(at in 0_usize..16, bit in 0_u32..8, cut in 0_usize..100) {
        let (mut reflector, mut payload) = (reflector(), ping(1));
        prop_assert!(!handle(&mut reflector, &mut payload[..cut]));
        payload[at] ^= 1 << bit;
        let probe = at == 5 && payload[5] == Kind::PathProbe as u8;
        prop_assert_eq!(handle(&mut reflector, &mut payload), probe);
        prop_assert_eq!(reflector.totals().received, 0);
    }
}

/// One turn: what comes, and how many answers the kernel takes.
type Turn = (Vec<Vec<u8>>, usize);

struct Script {
    turns: std::vec::IntoIter<Turn>,
    time: u64,
    sent: Vec<Vec<u8>>,
}

impl Platform for Script {
    type Clock = ReflectorClock;

    fn now(&mut self) -> Instant<ReflectorClock> {
        Instant::from_clock(self.time)
    }

    fn idle(&mut self, _: Instant<ReflectorClock>) {}

    fn stop_asked(&self) -> bool {
        self.turns.len() == 0
    }
}

impl Reflects for Script {
    fn turn_around(
        &mut self,
        mut handle: impl FnMut(Instant<ReflectorClock>, &mut [u8]) -> bool,
        depart: impl Fn(Instant<ReflectorClock>, &mut [u8]),
    ) -> TurnedAround {
        self.time += 1;
        let (mut datagrams, room) = self.turns.next().expect("asked to stop");
        let received = datagrams.len();
        let mut answers = 0;
        for payload in &mut datagrams {
            if handle(Instant::from_clock(self.time), payload) {
                self.time += 1;
                depart(Instant::from_clock(self.time), payload);
                answers += 1;
                self.sent.push(payload.clone());
            }
        }
        TurnedAround { received, answered: answers.min(room) }
    }
}

#[test]
fn an_answer_departs_when_the_platform_says_so() {
    let turns = vec![(vec![ping(0).to_vec()], 1)];
    let mut platform = Script { turns: turns.into_iter(), time: 0, sent: Vec::new() };
    reflect(&mut platform, &mut reflector());
    let pong = Datagram::parse(&platform.sent[0]).unwrap();
    assert_eq!((pong.arrival, pong.departure), (Instant::from_clock(1), Instant::from_clock(2)));
}

fn script(turns: Vec<Turn>) -> (Turns, ReflectorTotals) {
    let (mut platform, mut reflector) = (Script { turns: turns.into_iter(), time: 0, sent: Vec::new() }, reflector());
    let turns = reflect(&mut platform, &mut reflector);
    (turns, reflector.totals())
}

#[test]
fn turns_are_counted_from_the_first_ping_to_the_last() {
    let nothing = || (vec![], 0);
    let probe = || (vec![of_kind(Kind::PathProbe, TOKEN, 0).to_vec()], 1);
    let one = |seq| (vec![ping(seq).to_vec()], 1);
    let noise = || (vec![b"noise".to_vec()], 0);
    let turns = vec![
        nothing(),
        probe(),
        nothing(),
        noise(),
        nothing(),
        nothing(),
        one(0),
        nothing(),
        noise(),
        nothing(),
        one(1),
        nothing(),
        noise(),
        nothing(),
    ];
    let (turns, totals) = script(turns);
    assert_eq!(turns, Turns { all: 5, busy: 3 });
    assert_eq!(totals, ReflectorTotals { received: 2, malformed: 2 + 1, ..ReflectorTotals::default() });
    assert_eq!(script(vec![nothing(), probe(), noise()]).0, Turns::default(), "no ping, no turns");
}

#[test]
fn answers_that_the_kernel_refused_are_counted_of_pings_alone() {
    let probe = of_kind(Kind::PathProbe, TOKEN, 0).to_vec();
    let turns = vec![
        (vec![probe.clone()], 0),
        (vec![ping(0).to_vec(), ping(1).to_vec(), ping(2).to_vec()], 1),
        (vec![ping(3).to_vec(), probe], 2),
        (vec![ping(4).to_vec(), b"noise".to_vec()], 0),
    ];
    let (_, totals) = script(turns);
    assert_eq!(totals, ReflectorTotals { received: 5, unanswered: 3, malformed: 1, ..ReflectorTotals::default() });
}
