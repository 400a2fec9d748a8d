//! Before a run: does anything arrive at all?

use tickpong_units::{Instant, Nanos, PayloadLen, PingerClock, Seq};
use tickpong_wire::{Datagram, Kind, Token, datagram};

use crate::{Receives, Sends};

/// What a path was asked, and what it answered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PathProbe {
    /// Probes sent.
    pub sent: u64,
    /// Probes that the kernel refused.
    pub refused: u64,
    /// The round trip of the first answer.
    pub answered: Option<Nanos>,
}

/// Sends probes of the plan's size every `gap` until one is answered, `tries` at the most. Resolves neighbours and wakes paths, too.
pub fn probe_path<P>(platform: &mut P, token: Token, len: PayloadLen, tries: u64, gap: Nanos) -> PathProbe
where
    P: Sends<Clock = PingerClock> + Receives,
{
    let mut probe = PathProbe { sent: 0, refused: 0, answered: None };
    datagram::fill(platform.slot(0, len), token);
    for seq in (0..tries).map(Seq::new) {
        let now = platform.now();
        header(token, seq, now).emit(platform.slot(0, len));
        let sent = platform.send(1, len);
        probe.sent += sent.accepted as u64;
        probe.refused += sent.refused as u64;
        probe.answered = wait(platform, token, now + gap);
        if probe.answered.is_some() || platform.stop_asked() {
            break;
        }
    }
    probe
}

fn header(token: Token, seq: Seq, now: Instant<PingerClock>) -> Datagram {
    let none = Instant::from_clock(0);
    Datagram { kind: Kind::PathProbe, token, seq, intended: now, sent: now, arrival: none, departure: none }
}

fn wait<P: Receives<Clock = PingerClock>>(
    platform: &mut P,
    token: Token,
    until: Instant<PingerClock>,
) -> Option<Nanos> {
    let mut answered = None;
    while answered.is_none() && !platform.stop_asked() {
        if platform.now() >= until {
            break;
        }
        platform.idle(until);
        platform.receive(|at, payload| {
            if let Ok(answer) = Datagram::parse(payload)
                && answer.kind == Kind::PathAnswer
                && answer.token == token
            {
                answered = answered.or(Some(at.saturating_since(answer.sent)));
            }
        });
    }
    answered
}
