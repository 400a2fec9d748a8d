//! The reflecting side: every ping of the session goes back, stamped; nothing else does.

use tickpong_record::capture::Turns;
use tickpong_units::{Instant, Nanos, Rate, ReflectorClock};
use tickpong_wire::{Datagram, Kind, Malformed, Token, datagram};

use crate::{Reflects, Seen, SeqWindow};

/// Answers the pings of one session.
#[derive(Debug)]
pub struct Reflector {
    token: Token,
    window: SeqWindow,
    totals: ReflectorTotals,
}

/// What a reflector counted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReflectorTotals {
    /// Pings of the session, each once.
    pub received: u64,
    /// Pings that came again. Each is answered again: what the network doubles, the pinger is to see.
    pub duplicate: u64,
    /// Answers to pings that the kernel refused, or that found no room.
    pub unanswered: u64,
    /// Datagrams that are none of ours.
    pub malformed: u64,
    /// Datagrams of another session, or that no reflector can get.
    pub foreign: u64,
}

impl Reflector {
    /// Answers what carries `token`. Remembers the pings of `span` at 1.5 million messages a second. All memory is taken here.
    pub fn new(token: Token, span: Nanos) -> Self {
        let window = SeqWindow::for_rate(Rate::new(1_500_000), span, 0);
        Self { token, window, totals: ReflectorTotals::default() }
    }

    /// Looks at what arrived; makes it the answer where it deserves one, all but its departure, and says whether it does.
    #[inline]
    pub fn handle(&mut self, arrival: Instant<ReflectorClock>, payload: &mut [u8]) -> bool {
        match Datagram::parse(payload) {
            Ok(ping) if ping.token == self.token && ping.kind == Kind::Ping => match self.window.mark(ping.seq) {
                Seen::First { .. } => self.totals.received += 1,
                Seen::Again | Seen::Forgotten => self.totals.duplicate += 1,
            },
            Ok(probe) if probe.token == self.token && probe.kind == Kind::PathProbe => {}
            other => {
                self.ignore(other);
                return false;
            }
        }
        datagram::answer(arrival, payload);
        true
    }

    const fn pings(&self) -> u64 {
        self.totals.received + self.totals.duplicate
    }

    #[cold]
    #[inline(never)]
    fn ignore(&mut self, datagram: Result<Datagram, Malformed>) {
        match datagram {
            Ok(_) => self.totals.foreign += 1,
            Err(_) => self.totals.malformed += 1,
        }
    }

    /// What was counted.
    pub const fn totals(&self) -> ReflectorTotals {
        self.totals
    }
}

/// Answers until asked to stop. Turns are counted from the one that brings the first ping to the one that brings the last.
pub fn reflect<P: Reflects>(platform: &mut P, reflector: &mut Reflector) -> Turns {
    let (mut turns, mut up_to_last) = (Turns::default(), Turns::default());
    while !platform.stop_asked() {
        let pings_before = reflector.pings();
        let mut answers = 0;
        let handle = |arrival, payload: &mut [u8]| {
            let answer = reflector.handle(arrival, payload);
            answers += u64::from(answer);
            answer
        };
        let turned = platform.turn_around(handle, datagram::depart);
        if pings_before == 0 {
            turns = Turns::default();
        }
        turns.all += 1;
        turns.busy += u64::from(turned.received > 0);
        let pings = reflector.pings() - pings_before;
        if pings == 0 {
            continue;
        }
        up_to_last = turns;
        // Path probes are answered in the same calls, before the run; a refused answer to one is not a ping's.
        reflector.totals.unanswered += (answers - (turned.answered as u64).min(answers)).min(pings);
    }
    up_to_last
}
