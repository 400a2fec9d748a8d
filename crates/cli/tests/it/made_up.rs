//! Answers that no message asked for: bits that flip on the way, and ends that hold the token and make something up.

use std::net::UdpSocket;

use tickpong_units::{Instant, Seq};
use tickpong_wire::Datagram;

use crate::by_hand;
use crate::support::{Outcome, alone, assert_fates_add_up, number, ping};

/// What a run comes to whose reflector answers like this.
fn played(arguments: &[&str], answer: impl FnMut(&UdpSocket, Vec<u8>) + Send + 'static) -> Outcome {
    let report = serde_json::to_vec(&by_hand::report(800)).unwrap();
    let (address, far) = by_hand::reflector(answer, report);
    let outcome = ping(&address.to_string(), &[&["--format", "json"], arguments].concat());
    far.join().unwrap();
    outcome
}

/// The answer to another message.
fn with_seq(pong: &[u8], seq: u64) -> Vec<u8> {
    let mut changed = pong.to_vec();
    Datagram { seq: Seq::new(seq), ..Datagram::parse(pong).unwrap() }.emit(&mut changed);
    changed
}

fn check_unsent_seqs(arguments: &[&str]) {
    let mut pings = 0;
    let outcome = played(arguments, move |socket, pong| {
        pings += 1;
        if pings <= 5 {
            for seq in [u64::MAX, 1 << 40, 1_000_000] {
                socket.send(&with_seq(&pong, seq)).unwrap();
            }
        }
        socket.send(&pong).unwrap();
    });
    let run = outcome.played();
    assert_eq!(number(&run, "/ignored/corrupt"), 15, "{run:#}");
    assert_eq!(run["fates"]["answered"], run["fates"]["scheduled"], "{run:#}");
}

#[test]
fn an_answer_to_a_message_that_was_never_sent_costs_no_other_answer() {
    let _alone = alone();
    check_unsent_seqs(&[]);
}

#[test]
fn nor_does_it_where_another_thread_sends() {
    let _alone = alone();
    check_unsent_seqs(&["--tx-cpu=0", "--rx-cpu=0"]);
}

#[test]
fn more_answers_than_messages_make_a_run_invalid_and_end_it_not() {
    let _alone = alone();
    // Message 300 is of the second interval, which therefore waits; and all those of the third say that they are of it, too.
    let outcome = played(&[], |socket, pong| {
        let header = Datagram::parse(&pong).unwrap();
        let mut answer = pong.clone();
        if (400..600).contains(&header.seq.get()) {
            let intended = Instant::from_clock(header.intended.to_wire() - 100_000_000);
            Datagram { intended, ..header }.emit(&mut answer);
        }
        if header.seq != Seq::new(300) {
            socket.send(&answer).unwrap();
        }
    });
    let run = outcome.played();
    assert_fates_add_up(&run);
    let because = run["invalid_because"].as_array().unwrap();
    let told = because.iter().any(|why| why.as_str().unwrap().starts_with("impossible-answers: "));
    assert!(told && outcome.code == Some(5), "{run:#}");
}
