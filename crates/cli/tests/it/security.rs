//! A reflector cannot be used against a third party, nor be kept from serving by who has no business with it.

use std::fs;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use tempfile::tempdir;
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_units::Nanos;
use tickpong_wire::control::{Message, OLDEST_PROTOCOL, PROTOCOL};
use tickpong_wire::{Datagram, Kind, Token};

use crate::by_hand::{
    self, HERE, KEY, Line, Noise, PINGER_PROVES, PLANNED, REFLECTOR_PROVES, SHORTEST, Session, answer_on, frame, mac,
    offer, offered, open_message, payload, trusted, trusting,
};
use crate::support::{
    Reflector, Running, alone, assert_fates_add_up, key_file, number, ping, pinger, run, valid_run, within,
};

/// The reflector is to be free within two seconds; a machine that others use gets more.
const SOON: Duration = Duration::from_secs(5);

#[test]
fn a_reflector_without_a_key_stays_on_loopback() {
    for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1"] {
        let words = "without a key: anybody who can reach it could make this host answer; give both sides --key-file";
        run(&["reflect", "--listen", listen]).is_refusal(2, &["failed to listen on ", words, "or say --insecure"]);
    }
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let keyed = Reflector::listen("0.0.0.0:0", &["--key-file", &key]);
    let at = format!("127.0.0.1:{}", keyed.address.port());
    valid_run(&at, &["--key-file", &key]);
    let insecure = Reflector::listen("0.0.0.0:0", &["--insecure"]);
    valid_run(&format!("127.0.0.1:{}", insecure.address.port()), &[]);
}

#[test]
fn only_the_peer_of_a_session_is_answered() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let session = Session::open(reflector.address, "");
    assert!(session.exchange(&session.ping(0, 264)).is_some());
    for address in ["127.0.0.1:0", "127.0.0.2:0"] {
        let stranger = UdpSocket::bind(address).unwrap();
        // A refusal by the kernel, should one come, is no answer either.
        for token in [session.token, Token::new([0; 8])] {
            for kind in [Kind::Ping, Kind::PathProbe] {
                let _ = stranger.send_to(&payload(kind, token, 1, 264), session.data);
                assert_eq!(answer_on(&stranger), None, "{address} is not the peer");
            }
        }
    }
    assert!(session.exchange(&session.ping(1, 264)).is_some());
    let report = session.finish();
    assert_eq!((number(&report, "/received"), number(&report, "/foreign")), (2, 0), "{report:#}");
}

#[test]
fn nothing_but_the_sessions_pings_is_answered_and_all_else_is_counted() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let session = Session::open(reflector.address, "");
    let good = session.ping(0, 264);
    let with = |at: usize, byte: u8| {
        let mut changed = good.clone();
        changed[at] = byte;
        changed
    };
    let malformed = [
        vec![],
        vec![0; 1],
        vec![0xff; 1_472],
        good[..SHORTEST - 1].to_vec(),
        good[..200].to_vec(),
        [&good[..], &[0; 1]].concat(),
        with(0, b'x'),
        with(4, 9),
        with(5, 200),
        Noise(1).bytes(65_507),
    ];
    for datagram in &malformed {
        assert_eq!(session.exchange(datagram), None, "{} bytes", datagram.len());
    }
    let other = Token::new([0x55; 8]);
    let foreign = [
        payload(Kind::Ping, other, 0, 264),
        payload(Kind::PathProbe, other, 0, 264),
        payload(Kind::Pong, session.token, 0, 264),
        payload(Kind::PathAnswer, session.token, 0, 264),
    ];
    for datagram in &foreign {
        assert_eq!(session.exchange(datagram), None, "{:?}", Datagram::parse(datagram));
    }
    assert!(session.exchange(&good).is_some());
    let report = session.finish();
    assert_eq!(number(&report, "/malformed"), malformed.len() as u64, "{report:#}");
    assert_eq!(number(&report, "/foreign"), foreign.len() as u64, "{report:#}");
    assert_eq!(number(&report, "/received"), 1, "{report:#}");
}

#[test]
fn an_answer_is_never_longer_than_what_it_answers() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let session = Session::open(reflector.address, "");
    for (seq, bytes) in (0..).zip([SHORTEST, 57, 264, 1_472, 9_000, 65_507]) {
        for kind in [Kind::PathProbe, Kind::Ping] {
            let sent = payload(kind, session.token, seq, bytes);
            let answer = session.exchange(&sent).unwrap();
            assert_eq!(answer.len(), bytes);
            assert_eq!(answer[SHORTEST..], sent[SHORTEST..], "nothing of the reflector's memory is in it");
            assert_eq!(answer_on(&session.socket), None, "one answer each");
        }
    }
    // What the network doubles, the pinger is to see: again one answer each.
    let again = session.ping(0, 264);
    assert!(session.exchange(&again).is_some());
    let report = session.finish();
    assert_eq!((number(&report, "/received"), number(&report, "/duplicate")), (6, 1), "{report:#}");
}

#[test]
fn a_proof_serves_once_and_for_its_maker() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let reflector = Reflector::start(&["--key-file", &key]);
    let refused = |proof: &dyn Fn([u8; 16]) -> [u8; 32]| {
        let mut line = Line::connect(reflector.address);
        let theirs = line.greet([7; 16]);
        line.say(&Message::Authenticate { mac: proof(theirs) });
        assert!(matches!(line.hear().unwrap(), Message::Refused { reason } if reason.contains("the key is another")));
        assert!(line.is_closed());
        reflector.says("was sent away: it does not hold the key");
        theirs
    };
    let ours = [7; 16];
    let first = refused(&|theirs| mac("another key of sixteen", PINGER_PROVES, ours, theirs));
    let second = refused(&|_| mac(KEY, PINGER_PROVES, ours, first));
    assert_ne!(first, second, "a nonce serves once");
    refused(&|theirs| mac(KEY, REFLECTOR_PROVES, ours, theirs));
    refused(&|theirs| mac("", PINGER_PROVES, ours, theirs));
    refused(&|_| [0; 32]);
    let (line, _) = trusted(reflector.address, KEY);
    drop(line);
    reflector.says("was sent away: ");
    valid_run(&reflector.host(), &["--key-file", &key]);
}

#[test]
fn a_reflector_that_cannot_prove_itself_is_not_trusted() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let (address, far) = by_hand::listener(|stream| {
        let mut line = Line::new(stream);
        line.hear().unwrap();
        line.say(&Message::Welcome { protocol: PROTOCOL, nonce: [9; 16], keyed: true, version: "by hand" });
        let Message::Authenticate { mac } = line.hear().unwrap() else { panic!("no proof") };
        // Sent back to where it came from, as one would who has no key.
        line.say(&Message::Authenticated { mac });
        assert!(line.hear().is_err(), "no plan is told to who is not trusted");
    });
    let outcome = ping(&address.to_string(), &["--key-file", &key]);
    outcome.is_refusal(5, &[&format!("trust the reflector at {address}: it could not prove that it holds the key")]);
    far.join().unwrap();
}

#[test]
fn without_a_key_data_goes_to_who_asks_alone() {
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let (open, keyed) = (Reflector::start(&[]), Reflector::start(&["--key-file", &key]));
    let victim: SocketAddr = "127.0.0.9:9".parse().unwrap();
    let ask = |reflector: &Reflector, key: &str| {
        let (mut line, _) = offered(reflector.address, key);
        line.say(&open_message(victim, PLANNED));
        match line.hear().unwrap() {
            Message::Refused { reason } => Some(reason.to_owned()),
            Message::Opened { .. } => None,
            other => panic!("{other:?}"),
        }
    };
    let reason = ask(&open, "").unwrap();
    assert_eq!(reason, "without a key, data goes only to the address that asks for it, not to 127.0.0.9");
    assert_eq!(ask(&keyed, KEY), None, "who holds the key answers for it");
    valid_run(&open.host(), &[]);
}

/// The pinger sends far more than a handshake: it does so only to whom it asked, or to whom the key speaks for.
#[test]
fn without_a_key_a_pinger_sends_to_whom_it_asked_alone() {
    for victim in ["127.0.0.9", "::1", "192.0.2.9", "::ffff:192.0.2.9"] {
        let victim: std::net::IpAddr = victim.parse().unwrap();
        let (address, far) = by_hand::listener(move |stream| {
            let mut line = trusting(stream, "");
            line.say(&offer(victim));
            assert!(line.hear().is_err(), "no plan is told");
        });
        let words = format!("use the reflector at {address}: it wants data sent to {}", victim.to_canonical());
        ping(&address.to_string(), &[]).is_refusal(5, &[&words, "give both sides the same --key-file"]);
        far.join().unwrap();
    }
}

/// What somebody on the path may do to what the pinger says.
#[test]
fn a_pinger_is_heard_in_its_own_words_alone() {
    type Tamper = fn(&mut Session);
    const WRONG: &str = "a control message with a wrong seal";
    let rows: [(&str, Tamper); 6] = [
        ("changed", |session| {
            let mut alive = session.line.sealed(&Message::Alive);
            // Another kind, as long: the run would be over.
            alive[4..6].copy_from_slice(&frame(&Message::Finish)[4..6]);
            session.line.stream.write_all(&alive).unwrap();
        }),
        ("with another seal", |session| {
            let mut alive = session.line.sealed(&Message::Alive);
            *alive.last_mut().unwrap() ^= 1;
            session.line.stream.write_all(&alive).unwrap();
        }),
        ("repeated", |session| {
            let alive = session.line.sealed(&Message::Alive);
            session.line.stream.write_all(&[&alive[..], &alive].concat()).unwrap();
        }),
        ("left out", |session| {
            session.line.sealed(&Message::Alive);
            session.line.say(&Message::Alive);
        }),
        ("reordered", |session| {
            let (first, second) = (session.line.sealed(&Message::Alive), session.line.sealed(&Message::Finish));
            session.line.stream.write_all(&[second, first].concat()).unwrap();
        }),
        ("not sealed at all", |session| {
            let finish = [frame(&Message::Finish), vec![0; 16]].concat();
            session.line.stream.write_all(&finish).unwrap();
        }),
    ];
    let _alone = alone();
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    let reflector = Reflector::start(&["--key-file", &key]);
    for (how, tamper) in rows {
        let mut session = Session::open(reflector.address, KEY);
        tamper(&mut session);
        let line = reflector.says(" closed: ");
        assert!(line.contains(WRONG), "{how}: {line}");
        assert!(by_hand::drains(&mut session.line.stream), "{how}");
    }
    // The first word is no exception: where answers are to go.
    let (mut line, _) = offered(reflector.address, KEY);
    let mut open = line.sealed(&open_message("127.0.0.1:9".parse().unwrap(), PLANNED));
    open[16] ^= 8;
    line.stream.write_all(&open).unwrap();
    assert!(reflector.says("was sent away: ").contains(WRONG));
    valid_run(&reflector.host(), &["--key-file", &key]);
}

/// And to what the reflector says.
#[test]
fn a_reflector_is_heard_in_its_own_words_alone() {
    let dir = tempdir().unwrap();
    let key = key_file(dir.path(), "key", KEY);
    for byte in [12, 13, 20, 29] {
        let (address, far) = by_hand::listener(move |stream| {
            let mut line = trusting(stream, KEY);
            let mut offered = line.sealed(&offer(HERE));
            offered[byte] ^= 1;
            line.stream.write_all(&offered).unwrap();
            assert!(line.hear().is_err(), "no plan is told");
        });
        let outcome = ping(&address.to_string(), &["--key-file", &key]);
        outcome.is_refusal(5, &["open the session: a control message with a wrong seal"]);
        far.join().unwrap();
    }
}

#[test]
fn a_session_that_was_not_agreed_on_is_not_begun() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let nonce = [7; 16];
    let hello = Message::Hello { newest: PROTOCOL, oldest: OLDEST_PROTOCOL, nonce, version: "by hand" };
    let data: SocketAddr = "127.0.0.1:9".parse().unwrap();
    for first in [open_message(data, PLANNED), Message::Start, Message::Finish, Message::Authenticate { mac: [0; 32] }]
    {
        let mut line = Line::connect(reflector.address);
        line.say(&first);
        assert!(line.is_closed(), "{first:?} comes before any greeting");
        reflector.says("was sent away: hear a pinger's greeting: the other end answered out of turn");
    }
    let mut line = Line::connect(reflector.address);
    line.say(&hello);
    assert!(matches!(line.hear().unwrap(), Message::Welcome { .. }));
    line.say(&open_message(data, PLANNED));
    assert!(line.is_closed(), "a plan comes before any proof");
    let impossible = Message::Open { data, planned_ns: u64::MAX, deadline_ns: u64::MAX, interval_ns: 0 };
    let (mut line, _) = offered(reflector.address, "");
    line.say(&impossible);
    assert!(matches!(line.hear().unwrap(), Message::Refused { reason } if reason.contains("makes no sense")));
    valid_run(&reflector.host(), &[]);
}

#[test]
fn garbage_over_the_control_connection_kills_nothing() {
    let _alone = alone();
    let mut reflector = Reflector::start(&[]);
    let mut noise = Noise(0x5eed);
    for round in 0..200_u16 {
        let mut stream = TcpStream::connect(reflector.address).unwrap();
        let length = usize::try_from(noise.next() % 600).unwrap();
        let body = noise.bytes(length);
        let bytes = match round % 4 {
            0 => body,
            // A frame of some kind, with anything in it.
            1 => {
                let mut frame = [b"tpct", &(round % 20).to_le_bytes()[..], &[0; 2]].concat();
                frame.extend(u32::try_from(body.len()).unwrap().to_le_bytes());
                [frame, body].concat()
            }
            // A frame that says it is as long as there are bytes in the world.
            2 => [b"tpct", &(round % 20).to_le_bytes()[..], &[0, 0, 0xff, 0xff, 0xff, 0xff], &body].concat(),
            _ => {
                let nonce = [3; 16];
                let hello = Message::Hello { newest: PROTOCOL, oldest: OLDEST_PROTOCOL, nonce, version: "by hand" };
                [frame(&hello), body].concat()
            }
        };
        // The reflector may have hung up already: nothing wrong with that.
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(Shutdown::Write);
        assert!(by_hand::drains(&mut stream), "the reflector hangs up, round {round}");
    }
    assert!(reflector.child.try_wait().unwrap().is_none(), "the reflector lives");
    assert_fates_add_up(&valid_run(&reflector.host(), &[]));
}

#[test]
fn garbage_in_the_middle_of_a_session_ends_that_session_alone() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    // The last is a message that makes sense at another time.
    for garbage in [Some(b"tpct\xff\xff\0\0\0\0\0\0".to_vec()), Some(Noise(9).bytes(64)), None] {
        let mut session = Session::open(reflector.address, "");
        assert!(session.exchange(&session.ping(0, 264)).is_some());
        let garbage = garbage.unwrap_or_else(|| session.line.sealed(&Message::Busy { seconds_left: 1 }));
        session.line.stream.write_all(&garbage).unwrap();
        let line = reflector.says("closed: 1 received, 1 answered; ");
        assert!(!line.ends_with("finished"), "{line}");
        assert_eq!(session.exchange(&session.ping(1, 264)), None, "a session that is over answers nothing");
    }
    valid_run(&reflector.host(), &[]);
}

#[test]
fn who_connects_and_says_nothing_is_in_nobodys_way() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    // Many more than are heard out at once: each for its whole time, one after the other, would outlast a pinger's patience.
    let mut idle: Vec<Line> = (0..300).map(|_| Line::connect(reflector.address)).collect();
    assert!(idle[0].is_closed(), "the oldest makes room");
    let youngest = &idle.last().unwrap().stream;
    youngest.set_nonblocking(true).unwrap();
    let heard = youngest.peek(&mut [0]).unwrap_err();
    assert_eq!(heard.kind(), std::io::ErrorKind::WouldBlock, "the youngest has its time");
    youngest.set_nonblocking(false).unwrap();
    assert_fates_add_up(&valid_run(&reflector.host(), &[]));
    for mut line in idle {
        assert!(line.is_closed(), "a connection that stays silent is closed");
    }
}

/// A report is long, and a pinger's to hear: nobody can make a reflector wait for one and keep it.
#[test]
fn a_reflector_takes_no_long_message() {
    let reflector = Reflector::start(&[]);
    let mut long = frame(&Message::Report { json: b"" });
    long[8..12].copy_from_slice(&1_025_u32.to_le_bytes());
    let words = "a control message longer than its kind may be";
    let mut line = Line::connect(reflector.address);
    line.stream.write_all(&long).unwrap();
    assert!(reflector.says("was sent away: ").contains(words));
    assert!(by_hand::drains(&mut line.stream));
    let mut session = Session::open(reflector.address, "");
    session.line.stream.write_all(&long).unwrap();
    assert!(reflector.says(" closed: ").contains(words));
}

#[test]
fn who_speaks_a_byte_at_a_time_is_cut_off() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let hello = Message::Hello { newest: 1, oldest: 1, nonce: [1; 16], version: "a slow one, with much to say" };
    let mut slow = TcpStream::connect(reflector.address).unwrap();
    let speaking = std::thread::spawn(move || {
        let since = monotonic_ns();
        // At this pace it would take more than half a minute.
        for byte in frame(&hello) {
            if slow.write_all(&[byte]).is_err() {
                break;
            }
            sleep(Nanos::from_millis(500));
        }
        monotonic_ns() - since
    });
    valid_run(&reflector.host(), &[]);
    let cut_after = Duration::from_nanos(speaking.join().unwrap());
    assert!(cut_after < Duration::from_secs(12), "cut off after {cut_after:?}");
}

#[test]
fn a_reflector_is_free_soon_after_its_pinger_was_killed() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    let mut killed = Running::start(&mut pinger(&reflector.host(), &["--duration", "60s"]));
    reflector.says("opened a session");
    sleep(Nanos::from_millis(500));
    killed.kill();
    let free = within(SOON, || {
        let mut line = Line::connect(reflector.address);
        line.say(&Message::Hello { newest: PROTOCOL, oldest: OLDEST_PROTOCOL, nonce: [1; 16], version: "by hand" });
        matches!(line.hear().unwrap(), Message::Welcome { .. }).then_some(())
    });
    assert!(free.is_some(), "busy for {SOON:?}");
    assert!(!reflector.says(" closed: ").ends_with("finished"));
    valid_run(&reflector.host(), &[]);
}

#[test]
fn a_pinger_that_falls_silent_loses_its_session() {
    let _alone = alone();
    let reflector = Reflector::start(&[]);
    // Alive as far as TCP can tell.
    let silent = Session::open(reflector.address, "");
    assert!(silent.exchange(&silent.ping(0, 264)).is_some());
    ping(&reflector.host(), &[]).is_refusal(5, &["busy with another session, ", " s left"]);
    let line = reflector.says(" closed: ");
    assert!(
        line.ends_with("closed: 1 received, 1 answered; hear the pinger: the other end was silent for 5 s"),
        "{line}"
    );
    assert_eq!(silent.exchange(&silent.ping(1, 264)), None);
    valid_run(&reflector.host(), &[]);
    // One that opens none at all has even less time.
    let (mut line, _) = offered(reflector.address, "");
    reflector.says("was sent away: open a session: the other end was silent for 3 s");
    assert!(line.is_closed());
}

/// Its plan is its word for how long the others wait.
#[test]
fn a_pinger_that_outstays_its_plan_loses_its_session() {
    let reflector = Reflector::start(&[]);
    let mut lively = Session::open_for(reflector.address, "", 1_000_000_000);
    let outstayed = Nanos::from_secs(12) + Nanos::new(monotonic_ns());
    while monotonic_ns() < outstayed.get() {
        // Told that it is over, it does not go.
        let alive = lively.line.sealed(&Message::Alive);
        let _ = lively.line.stream.write_all(&alive);
        sleep(Nanos::from_millis(500));
    }
    let line = reflector.says(" closed: ");
    assert!(line.ends_with("closed: 0 received, 0 answered; serve a session any longer: its plan was 1 s"), "{line}");
    assert_eq!(number(&Session::open(reflector.address, "").finish(), "/received"), 0);
}

#[test]
fn what_a_pinger_is_sent_beside_its_answers_is_counted() {
    let _alone = alone();
    let mut said = by_hand::report(600);
    (said.malformed, said.foreign, said.duplicate) = (3, 4, 5);
    let mut pings = 0;
    let (address, far) = by_hand::reflector(
        move |socket, pong| {
            pings += 1;
            if pings <= 5 {
                let last = pong.len() - 1;
                let corrupt = [&pong[..last], &[!pong[last]]].concat();
                let longer = [&pong[..], &[0; 8]].concat();
                let foreign = payload(Kind::Pong, Token::new([1; 8]), 0, 264);
                for wrong in [b"garbage", &pong[..100], &longer, &foreign, &corrupt] {
                    socket.send(wrong).unwrap();
                }
            }
            socket.send(&pong).unwrap();
        },
        serde_json::to_vec(&said).unwrap(),
    );
    let run = ping(&address.to_string(), &["--format", "json"]).played();
    far.join().unwrap();
    let ignored = |what: &str| number(&run, &format!("/ignored/{what}"));
    assert_eq!((ignored("malformed"), ignored("foreign"), ignored("corrupt")), (15, 5, 5), "{run:#}");
    let at_reflector = ["malformed", "foreign", "duplicate"].map(|what| ignored(&format!("reflector_{what}")));
    assert_eq!(at_reflector, [3, 4, 5]);
    assert_eq!(run["fates"]["answered"], run["fates"]["scheduled"], "{run:#}");
}

#[test]
fn a_report_that_cannot_be_read_costs_the_report_alone() {
    let _alone = alone();
    let answer = |socket: &UdpSocket, pong: Vec<u8>| drop(socket.send(&pong));
    let (address, far) = by_hand::reflector(answer, b"{\"api\": \"\x1b[31m".to_vec());
    let dir = tempdir().unwrap();
    let target = dir.path().join("run");
    let outcome = ping(&address.to_string(), &["--format", "json", "-o", &crate::support::text(&target)]);
    far.join().unwrap();
    let run = outcome.played();
    assert_eq!((outcome.code, &run["interrupted"]), (Some(5), &false.into()), "{run:#}");
    let because = run["invalid_because"].as_array().unwrap();
    let told = because.iter().any(|why| why.as_str().unwrap().contains("its report cannot be read"));
    assert!(told, "{run:#}");
    assert_eq!(run["fates"]["answered"], run["fates"]["scheduled"], "{run:#}");
    assert_eq!(fs::read_to_string(target.join("run.json")).unwrap(), outcome.out);
    assert!(!target.join("host-reflector.json").exists());
}
