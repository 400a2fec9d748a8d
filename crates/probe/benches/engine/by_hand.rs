//! The yardstick: the same work for one plan, written out by hand: a fixed schedule, one message a call, 264 bytes, on one thread. No traits,
//! no unit types inside, no generality, but every check and every count that a run needs.

use tickpong_probe::{Platform, Receives, Sends};
use tickpong_record::capture::{ReceiveInterval, ReceiveTotals, SendInterval, SendTotals, Turns};
use tickpong_units::{Instant, Nanos, PayloadLen};
use tickpong_wire::{HEADER_LEN, Token, datagram};

use crate::memory::{Memory, PAYLOAD, START};

const PERIOD: u64 = 100_000;
const INTERVAL: u64 = 1_000_000_000;
const DEADLINE: u64 = 1_000_000_000;
const LOOK: u64 = 2_000_000;
const NAP: u64 = 20_000_000;
const DRAIN: usize = 16;
const WORDS: usize = 1 << 10;
/// Magic, version, kind and length of a ping, as they lie in memory; a pong has one bit more.
const PING: u64 = u64::from_le_bytes([b't', b'p', b'n', b'g', 1, 0, 8, 1]);
const PONG: u64 = PING | 1 << 40;

#[derive(Debug)]
pub(crate) struct ByHand {
    token: u64,
    filler: [u8; PAYLOAD],
    plan_end: u64,
    sending: Sending,
    receiving: Receiving,
    pub(crate) turns: Turns,
}

#[derive(Debug)]
struct Sending {
    seq: u64,
    due: u64,
    last_sent: u64,
    interval: Box<SendInterval>,
    spare: Box<SendInterval>,
    interval_end: u64,
    closed: u64,
    totals: SendTotals,
}

#[derive(Debug)]
struct Receiving {
    /// One above the highest number seen, and a bit for each of the last 65,536.
    top: u64,
    seen: Box<[u64; WORDS]>,
    /// Four may be open at a time, from the oldest on; one more lies in between.
    open: [Box<ReceiveInterval>; 4],
    spare: Box<ReceiveInterval>,
    oldest: u64,
    current: usize,
    begin: u64,
    end: u64,
    next_look: u64,
    totals: ReceiveTotals,
}

impl ByHand {
    pub(crate) fn new(token: [u8; 8], messages: u64) -> Self {
        let mut filler = [0; PAYLOAD];
        datagram::fill(&mut filler, Token::new(token));
        Self {
            token: u64::from_le_bytes(token),
            filler,
            plan_end: START + messages * PERIOD,
            sending: Sending {
                seq: 0,
                due: START,
                last_sent: 0,
                interval: Box::default(),
                spare: Box::default(),
                interval_end: START + INTERVAL,
                closed: 0,
                totals: SendTotals::default(),
            },
            receiving: Receiving {
                top: 0,
                seen: Box::new([0; WORDS]),
                open: Default::default(),
                spare: Box::default(),
                oldest: 0,
                current: 0,
                begin: START,
                end: START + INTERVAL,
                next_look: START + INTERVAL,
                totals: ReceiveTotals::default(),
            },
            turns: Turns::default(),
        }
    }

    pub(crate) fn answered(&self) -> u64 {
        self.receiving.totals.answered + self.receiving.totals.late
    }

    pub(crate) fn play(&mut self, memory: &mut Memory<1>) {
        loop {
            let now = memory.now().to_wire();
            if memory.stop_asked() {
                self.plan_end = self.plan_end.min(now);
            }
            let due = self.sending.due;
            let mut worked = false;
            if due <= now && due < self.plan_end && now < self.plan_end + NAP {
                encode(self.token, &self.sending, now, memory.slot(0, PayloadLen::STANDARD));
                let sent = memory.send(1, PayloadLen::STANDARD);
                worked = sent.accepted + sent.refused > 0;
                if worked {
                    self.sending.account(now, sent.accepted == 1, self.plan_end);
                }
            }
            let mut emptied = false;
            for _ in 0..DRAIN {
                let (token, filler, receiving) = (self.token, &self.filler, &mut self.receiving);
                let next = self.sending.seq;
                if memory.receive(|at, payload| receiving.decode(token, filler, next, at.to_wire(), payload)) == 0 {
                    emptied = true;
                    break;
                }
                worked = true;
            }
            self.turns.all += 1;
            self.turns.busy += u64::from(worked);
            if emptied && now >= self.receiving.next_look {
                self.receiving.look(now, self.sending.closed);
            }
            let wake =
                if self.sending.due < self.plan_end { self.sending.due } else { self.sending.last_sent + DEADLINE };
            if self.sending.due >= self.plan_end && (self.answered() >= self.sending.totals.sent || now >= wake) {
                return;
            }
            if !worked {
                memory.idle(Instant::from_clock(wake.min(now + NAP)));
            }
        }
    }
}

#[inline]
fn encode(token: u64, sending: &Sending, now: u64, slot: &mut [u8]) {
    let header: &mut [u8; HEADER_LEN] = slot.first_chunk_mut().expect("a slot holds a header");
    header[..8].copy_from_slice(&PING.to_le_bytes());
    header[8..16].copy_from_slice(&token.to_le_bytes());
    header[16..24].copy_from_slice(&sending.seq.to_le_bytes());
    header[24..32].copy_from_slice(&sending.due.to_le_bytes());
    header[32..40].copy_from_slice(&now.to_le_bytes());
    header[40..].fill(0);
}

impl Sending {
    #[inline]
    fn account(&mut self, now: u64, accepted: bool, plan_end: u64) {
        if self.due >= self.interval_end {
            self.roll();
        }
        let at = Nanos::new(self.due - START);
        if accepted {
            self.interval.sent += 1;
            self.totals.sent += 1;
            self.totals.sent_by_plan_end += u64::from(now < plan_end);
            self.interval.lateness.record(Nanos::new(now - self.due), at);
            if self.last_sent != 0 {
                self.interval.gap.record(Nanos::new(now - self.last_sent), at);
            }
            self.last_sent = now;
        } else {
            self.interval.refused += 1;
            self.totals.refused += 1;
        }
        self.seq += 1;
        self.due += PERIOD;
        self.interval.fall_behinds += u64::from(self.due <= now && self.due < plan_end);
    }

    #[cold]
    #[inline(never)]
    fn roll(&mut self) {
        std::mem::swap(&mut self.interval, &mut self.spare);
        self.interval.reset(self.spare.index + 1);
        self.interval_end += INTERVAL;
        self.closed += 1;
    }
}

impl Receiving {
    #[inline]
    fn decode(&mut self, token: u64, filler: &[u8; PAYLOAD], next: u64, at: u64, payload: &[u8]) {
        let Some(header) = payload.first_chunk::<HEADER_LEN>() else {
            self.totals.malformed += 1;
            return;
        };
        let word = |index: usize| u64::from_le_bytes(header[index..index + 8].try_into().expect("eight bytes"));
        if word(0) != PONG || payload.len() != PAYLOAD {
            self.totals.malformed += 1;
            return;
        }
        if word(8) != token {
            self.totals.foreign += 1;
            return;
        }
        let (seq, due, sent, arrival, departure) = (word(16), word(24), word(32), word(40), word(48));
        if due > sent || sent > at || seq >= next || payload[HEADER_LEN..] != filler[HEADER_LEN..] {
            self.totals.corrupt += 1;
            return;
        }
        let of_current = self.begin <= due && due < self.end;
        if !of_current && !self.turn_to(due) {
            self.totals.stale += 1;
            return;
        }
        if seq == self.top {
            self.top += 1;
            let (cell, bit) = place(seq);
            self.seen[cell] = if seq.is_multiple_of(64) { bit } else { self.seen[cell] | bit };
        } else if !self.mark_elsewhere(seq) {
            return;
        }
        let interval = &mut self.open[self.current];
        if at - due > DEADLINE {
            interval.late += 1;
            self.totals.late += 1;
            return;
        }
        let intended = Nanos::new(due - START);
        interval.answered += 1;
        self.totals.answered += 1;
        interval.supply_to_receive.record(Nanos::new(at - due), intended);
        interval.rtt.record(Nanos::new(at - sent), intended);
        interval.turnaround.record(Nanos::new(departure.saturating_sub(arrival)), intended);
    }

    /// No answer is out of order here: what else there would be to do may be missing.
    #[cold]
    #[inline(never)]
    fn mark_elsewhere(&mut self, seq: u64) -> bool {
        let (cell, bit) = place(seq);
        let again = self.seen[cell] & bit != 0;
        self.seen[cell] |= bit;
        self.open[self.current].duplicate += u64::from(again);
        !again
    }

    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, due: u64) -> bool {
        let index = (due - START) / INTERVAL;
        if index < self.oldest {
            return false;
        }
        while index >= self.oldest + 4 {
            self.close();
        }
        self.current = slot(index);
        (self.begin, self.end) = (START + index * INTERVAL, START + (index + 1) * INTERVAL);
        true
    }

    #[cold]
    #[inline(never)]
    fn look(&mut self, now: u64, closed: u64) {
        self.next_look = now + LOOK;
        while self.oldest < closed && self.open[slot(self.oldest)].answered == INTERVAL / PERIOD {
            self.close();
        }
    }

    fn close(&mut self) {
        std::mem::swap(&mut self.open[slot(self.oldest)], &mut self.spare);
        self.open[slot(self.oldest)].reset(self.oldest + 4);
        self.oldest += 1;
        self.end = self.begin;
    }
}

#[inline]
fn place(seq: u64) -> (usize, u64) {
    ((seq / 64) as usize & (WORDS - 1), 1 << (seq % 64))
}

fn slot(index: u64) -> usize {
    (index % 4) as usize
}
