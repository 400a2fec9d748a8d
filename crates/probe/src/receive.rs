//! The receiving side: what became of each message.

use tickpong_record::Plan;
use tickpong_record::capture::{Observation, ReceiveInterval, ReceiveTotals};
use tickpong_record::{ScheduleKind, Trace};
use tickpong_units::{Instant, Nanos, PingerClock, Seq};
use tickpong_wire::{Datagram, HEADER_LEN, Kind, Token, datagram};

use crate::{ClosedInterval, Exchange, Observe, Seen, SeqWindow};

/// An answer counts until this many deadlines after its message was sent. Within the deadline, which begins with the intended instant, it
/// is in time; after that, late.
pub(crate) const WAITED_DEADLINES: u64 = 2;
/// How often the loop looks whether an interval is complete.
const LOOK: Nanos = Nanos::from_millis(2);

/// Takes answers, and records what became of each message.
#[derive(Debug)]
pub struct Receiver<X, O> {
    token: Token,
    start: Instant<PingerClock>,
    deadline: Nanos,
    waited: Nanos,
    window: SeqWindow,
    /// What the whole payload of an answer must be behind its header.
    filler: Box<[u8]>,
    open: OpenIntervals,
    next_look: Instant<PingerClock>,
    /// The messages below this are known to have been sent.
    sent_below: Seq,
    totals: ReceiveTotals,
    exchange: X,
    observe: O,
}

/// What a datagram was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// The first answer to a message, in time.
    Answered(Seq),
    /// An answer whose payload is not what was sent, or to what was not sent.
    Corrupt,
    /// A further answer.
    Duplicate,
    /// Of another session, or not for a pinger.
    Foreign,
    /// The first answer to a message, after its deadline.
    Late(Seq),
    /// Not a datagram of ours.
    Malformed,
    /// The answer to a path probe, which counts for nothing.
    Path,
    /// The answer to a message that is no longer waited for.
    Stale,
}

impl<X: Exchange<ReceiveInterval>, O: Observe> Receiver<X, O> {
    /// Receives for `plan` from `start`, in the session of `token`. All memory is taken here.
    pub fn new(
        plan: &Plan,
        trace: Option<&Trace>,
        token: Token,
        start: Instant<PingerClock>,
        exchange: X,
        observe: O,
    ) -> Self {
        let burst = match &plan.schedule {
            ScheduleKind::Burst(size) => u64::from(*size),
            ScheduleKind::Trace(_) => trace.map_or(0, |trace| trace.steps().len() as u64),
            ScheduleKind::Fixed | ScheduleKind::Poisson => 0,
        };
        let mut filler = vec![0; plan.payload_bytes.get()];
        datagram::fill(&mut filler, token);
        Self {
            token,
            start,
            deadline: plan.deadline_ns,
            waited: waited(plan),
            window: SeqWindow::for_rate(plan.offered_rate_hz, waited(plan), burst),
            filler: filler.into(),
            open: OpenIntervals::new(plan),
            next_look: start + plan.interval_ns,
            sent_below: Seq::default(),
            totals: ReceiveTotals::default(),
            exchange,
            observe,
        }
    }

    /// Takes what arrived at `at`, whatever it is. `next` is the message that has not been sent yet.
    #[inline]
    pub fn handle(&mut self, at: Instant<PingerClock>, payload: &[u8], next: impl FnOnce() -> Seq) -> Verdict {
        let verdict = match Datagram::parse(payload) {
            Ok(pong) if pong.kind == Kind::Pong && pong.token == self.token => self.pong(at, &pong, payload, next),
            Ok(other) if other.kind == Kind::PathAnswer && other.token == self.token => Verdict::Path,
            Ok(_) => Verdict::Foreign,
            Err(_) => Verdict::Malformed,
        };
        if !matches!(verdict, Verdict::Answered(_)) {
            self.count(verdict);
        }
        verdict
    }

    #[inline]
    fn pong(
        &mut self,
        at: Instant<PingerClock>,
        pong: &Datagram,
        payload: &[u8],
        next: impl FnOnce() -> Seq,
    ) -> Verdict {
        // What was answered before it was sent, or sent before it was intended, is not what was sent: no number in it can be trusted.
        let in_order = pong.intended <= pong.sent && pong.sent <= at;
        if !in_order || self.filler.get(HEADER_LEN..payload.len()) != payload.get(HEADER_LEN..) {
            return Verdict::Corrupt;
        }
        // A number from the future would move the window, and every true answer would lie below it.
        if pong.seq >= self.sent_below {
            self.sent_below = next();
            if pong.seq >= self.sent_below {
                return Verdict::Corrupt;
            }
        }
        let round_trip = at.saturating_since(pong.sent);
        if round_trip > self.waited {
            return self.too_late(pong.seq);
        }
        let intended = pong.intended.saturating_since(self.start);
        let Some(interval) = self.open.at(intended, &mut self.exchange) else {
            return self.too_late(pong.seq);
        };
        match self.window.mark(pong.seq) {
            Seen::First { reordered: false } => {}
            Seen::First { reordered: true } => {
                interval.reordered += 1;
                self.totals.reordered += 1;
            }
            Seen::Again => {
                interval.duplicate += 1;
                return Verdict::Duplicate;
            }
            Seen::Forgotten => return Verdict::Stale,
        }
        let supply_to_receive = at.saturating_since(pong.intended);
        let turnaround = pong.departure.saturating_since(pong.arrival);
        self.observe.observe(Observation {
            seq: pong.seq.get(),
            intended,
            sent: pong.sent.saturating_since(self.start),
            received: at.saturating_since(self.start),
            turnaround,
        });
        if supply_to_receive > self.deadline {
            interval.late += 1;
            return Verdict::Late(pong.seq);
        }
        interval.answered += 1;
        self.totals.answered += 1;
        interval.supply_to_receive.record(supply_to_receive, intended);
        interval.rtt.record(round_trip, intended);
        interval.turnaround.record(turnaround, intended);
        Verdict::Answered(pong.seq)
    }

    /// What an answer is that no longer counts, or whose interval is closed.
    #[cold]
    #[inline(never)]
    fn too_late(&mut self, seq: Seq) -> Verdict {
        match self.window.mark(seq) {
            Seen::Again => {
                self.open.oldest().duplicate += 1;
                Verdict::Duplicate
            }
            Seen::First { .. } | Seen::Forgotten => Verdict::Stale,
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Answered(_) | Verdict::Path => {}
            Verdict::Corrupt => self.totals.corrupt += 1,
            Verdict::Duplicate => self.totals.duplicate += 1,
            Verdict::Foreign => self.totals.foreign += 1,
            Verdict::Late(_) => self.totals.late += 1,
            Verdict::Malformed => self.totals.malformed += 1,
            Verdict::Stale => self.totals.stale += 1,
        }
    }

    /// Whether it is time to [`Receiver::look`].
    #[inline]
    pub fn look_due(&self, now: Instant<PingerClock>) -> bool {
        now >= self.next_look
    }

    /// Hands over the intervals that are complete, or too old for an answer. `reached` is how far through the plan the sending is: the
    /// age of an interval is told by the plan and not by the clock, for else what is sent very late would be forgotten before it is
    /// answered.
    #[cold]
    #[inline(never)]
    pub fn look(&mut self, now: Instant<PingerClock>, reached: Instant<PingerClock>) {
        self.next_look = now + LOOK;
        self.open.close_settled(reached.saturating_since(self.start), &mut self.exchange);
    }

    /// No more messages of the interval will be sent: once they are answered, it is complete.
    pub fn expect(&mut self, closed: ClosedInterval) {
        self.open.expect(closed);
    }

    /// How many messages have been answered, in time or late.
    #[inline]
    pub fn answered(&self) -> u64 {
        self.totals.answered + self.totals.late
    }

    /// Hands over all intervals, and gives the totals.
    pub fn finish(mut self) -> ReceiveTotals {
        self.open.close_all(&mut self.exchange);
        self.totals
    }
}

/// How many intervals of `plan` may wait for answers at the same time.
pub fn open_intervals(plan: &Plan) -> u64 {
    waited(plan).whole(plan.interval_ns) + 2
}

fn waited(plan: &Plan) -> Nanos {
    plan.deadline_ns.saturating_mul(WAITED_DEADLINES)
}

/// The intervals that an answer may still belong to, in a ring.
#[derive(Debug)]
struct OpenIntervals {
    ring: Box<[Slot]>,
    interval: Nanos,
    /// How long after its end an interval stays open for answers.
    waited: Nanos,
    /// The number of the oldest open interval.
    oldest: u64,
    /// One above the newest that anything arrived for.
    newest_end: u64,
    /// The slot used last, and its interval's bounds: nearly every answer belongs to it.
    slot: usize,
    begin: Nanos,
    end: Nanos,
}

#[derive(Debug)]
struct Slot {
    buffer: Box<ReceiveInterval>,
    /// How many answers make it complete, once that is known.
    expected: Option<u64>,
}

impl OpenIntervals {
    fn new(plan: &Plan) -> Self {
        let (interval, waited) = (plan.interval_ns, waited(plan));
        let slot =
            |index| Slot { buffer: Box::new(ReceiveInterval { index, ..ReceiveInterval::default() }), expected: None };
        let ring = (0..open_intervals(plan)).map(slot).collect();
        Self { ring, interval, waited, oldest: 0, newest_end: 1, slot: 0, begin: Nanos::ZERO, end: interval }
    }

    /// The interval of what was intended at `at`; `None` where that is closed.
    #[inline]
    fn at(&mut self, at: Nanos, exchange: &mut impl Exchange<ReceiveInterval>) -> Option<&mut ReceiveInterval> {
        if !(self.begin <= at && at < self.end) {
            self.turn_to(at.whole(self.interval), exchange)?;
        }
        Some(&mut self.ring[self.slot].buffer)
    }

    #[cold]
    #[inline(never)]
    fn turn_to(&mut self, index: u64, exchange: &mut impl Exchange<ReceiveInterval>) -> Option<()> {
        if index < self.oldest {
            return None;
        }
        while index >= self.oldest + self.ring.len() as u64 {
            self.close_oldest(exchange);
        }
        self.newest_end = self.newest_end.max(index + 1);
        self.slot = self.slot_of(index);
        self.begin = self.interval.saturating_mul(index);
        self.end = self.interval.saturating_mul(index + 1);
        Some(())
    }

    /// The oldest open interval: what belongs to a closed one and must not go uncounted is counted there.
    fn oldest(&mut self) -> &mut ReceiveInterval {
        self.newest_end = self.newest_end.max(self.oldest + 1);
        let slot = self.slot_of(self.oldest);
        &mut self.ring[slot].buffer
    }

    fn close_settled(&mut self, reached: Nanos, exchange: &mut impl Exchange<ReceiveInterval>) {
        loop {
            let oldest = &self.ring[self.slot_of(self.oldest)];
            let complete = oldest.expected == Some(oldest.buffer.answered + oldest.buffer.late);
            let end = self.interval.saturating_mul(self.oldest + 1);
            if !complete && reached < end.saturating_add(self.waited) {
                return;
            }
            self.close_oldest(exchange);
        }
    }

    fn close_oldest(&mut self, exchange: &mut impl Exchange<ReceiveInterval>) {
        let (slot, next_use) = (self.slot_of(self.oldest), self.oldest + self.ring.len() as u64);
        let Slot { buffer, expected } = &mut self.ring[slot];
        if !buffer.is_empty() {
            exchange.exchange(buffer);
        }
        buffer.reset(next_use);
        *expected = None;
        self.oldest += 1;
        exchange.pass(self.oldest);
        // Whatever was cached may be gone: look it up again.
        (self.begin, self.end) = (Nanos::ZERO, Nanos::ZERO);
    }

    fn close_all(&mut self, exchange: &mut impl Exchange<ReceiveInterval>) {
        while self.oldest < self.newest_end {
            self.close_oldest(exchange);
        }
    }

    fn expect(&mut self, closed: ClosedInterval) {
        let end = self.oldest + self.ring.len() as u64;
        for index in closed.silent_from.max(self.oldest)..end.min(closed.index + 1) {
            let slot = self.slot_of(index);
            self.ring[slot].expected = Some(if index == closed.index { closed.sent } else { 0 });
        }
    }

    fn slot_of(&self, index: u64) -> usize {
        usize::try_from(index % self.ring.len() as u64).unwrap_or_default()
    }
}
