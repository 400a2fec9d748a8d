//! The sending side: what is due is sent, late or not, and the plan does not move.

use tickpong_record::capture::{SendInterval, SendTotals};
use tickpong_record::{Pacing, Plan, Trace};
use tickpong_units::{Instant, Nanos, PingerClock, Seq};
use tickpong_wire::{Datagram, Kind, Token, datagram};

use crate::{Due, Exchange, Schedule, Sends};

/// After the plan's end, what is due may still be sent for this part of the duration …
const GRACE_SHARE: u64 = 20;
/// … and no longer than this. A stall of the machine at the very end is lateness, not loss.
const MOST_GRACE: Nanos = Nanos::from_millis(100);
/// The most messages of one call that the engine prepares.
const MOST_AHEAD: usize = 64;

/// Sends the messages of a plan, and records how late each went out.
#[derive(Debug)]
pub struct Transmitter<X> {
    pacing: Pacer,
    token: Token,
    start: Instant<PingerClock>,
    /// No message due from here on is part of the run.
    plan_end: Nanos,
    /// What is due is sent until here.
    send_end: Nanos,
    deadline: Nanos,
    interval: Nanos,
    /// Messages taken from the schedule and not yet sent.
    ahead: [Due; MOST_AHEAD],
    waiting: usize,
    next: Seq,
    last_sent: Option<Instant<PingerClock>>,
    last_intended: Instant<PingerClock>,
    current: Box<SendInterval>,
    current_end: Nanos,
    closed: Option<(u64, u64)>,
    totals: SendTotals,
    exchange: X,
}

#[derive(Debug)]
enum Pacer {
    Open(Schedule),
    /// Until then the answer may still come; the next message goes once it has, or then.
    Closed {
        unanswered_until: Option<Instant<PingerClock>>,
    },
}

impl<X: Exchange<SendInterval>> Transmitter<X> {
    /// Sends by `plan` from `start`, in the session of `token`. All memory is taken here.
    pub fn new(plan: &Plan, trace: Option<&Trace>, token: Token, start: Instant<PingerClock>, exchange: X) -> Self {
        let pacing = match plan.pacing {
            Pacing::Closed => Pacer::Closed { unanswered_until: None },
            Pacing::Open => Pacer::Open(Schedule::new(plan, trace)),
        };
        let grace = Nanos::new(plan.duration_ns.whole(Nanos::new(GRACE_SHARE))).min(MOST_GRACE);
        Self {
            pacing,
            token,
            start,
            plan_end: plan.length(),
            send_end: plan.length() + grace,
            deadline: plan.deadline_ns,
            interval: plan.interval_ns,
            ahead: [Due { at: Nanos::MAX, len: plan.payload_bytes }; MOST_AHEAD],
            waiting: 0,
            next: Seq::default(),
            last_sent: None,
            last_intended: start,
            current: Box::default(),
            current_end: plan.interval_ns,
            closed: None,
            totals: SendTotals::default(),
            exchange,
        }
    }

    /// Puts the session's filler into the platform's buffers.
    pub fn prepare<P: Sends<Clock = PingerClock>>(&self, platform: &mut P) {
        (0..P::MOST).for_each(|index| datagram::fill(platform.slot(index, self.ahead[0].len), self.token));
    }

    /// Sends what is due at `now`, in one call. Says whether anything was.
    #[inline]
    pub fn transmit<P: Sends<Clock = PingerClock>>(&mut self, now: Instant<PingerClock>, platform: &mut P) -> bool {
        let count = self.fill(now, platform);
        if count == 0 {
            return false;
        }
        let sent = platform.send(count, self.ahead[0].len);
        let settled = (sent.accepted + sent.refused).min(count);
        for index in 0..settled {
            self.account(now, self.ahead[index], index < sent.accepted);
        }
        self.forget(settled);
        self.note_fall_behind(now, settled);
        true
    }

    /// Writes the headers of what is due, as many as one call sends and of one size.
    #[inline]
    fn fill<P: Sends<Clock = PingerClock>>(&mut self, now: Instant<PingerClock>, platform: &mut P) -> usize {
        let mut count = 0;
        while count < P::MOST.min(MOST_AHEAD) && (count < self.waiting || self.take_next(now)) {
            let due = self.ahead[count];
            let intended = self.start + due.at;
            if intended > now || due.at >= self.plan_end || due.len != self.ahead[0].len {
                break;
            }
            let header = Datagram {
                kind: Kind::Ping,
                token: self.token,
                seq: Seq::new(self.next.get() + count as u64),
                intended,
                sent: now,
                arrival: Instant::from_clock(0),
                departure: Instant::from_clock(0),
            };
            header.emit(platform.slot(count, due.len));
            count += 1;
        }
        count
    }

    /// Takes the next message from the schedule. In a closed loop there is none while the last is unanswered, and it is due now.
    #[inline]
    fn take_next(&mut self, now: Instant<PingerClock>) -> bool {
        let due = match &mut self.pacing {
            Pacer::Open(schedule) => schedule.next_due(),
            Pacer::Closed { unanswered_until: Some(until) } if *until > now => return false,
            Pacer::Closed { .. } if self.waiting > 0 || now < self.start => return false,
            Pacer::Closed { .. } => Due { at: now.since(self.start), len: self.ahead[0].len },
        };
        self.ahead[self.waiting] = due;
        self.waiting += 1;
        true
    }

    #[inline]
    fn account(&mut self, now: Instant<PingerClock>, due: Due, accepted: bool) {
        if due.at >= self.current_end {
            self.roll(due.at);
        }
        self.totals.scheduled += 1;
        self.last_intended = self.start + due.at;
        if !accepted {
            self.totals.refused += 1;
            self.current.refused += 1;
            return;
        }
        self.current.sent += 1;
        self.totals.sent += 1;
        self.totals.sent_by_plan_end += u64::from(now.saturating_since(self.start) < self.plan_end);
        match &mut self.pacing {
            Pacer::Open(_) => self.current.lateness.record(now.since(self.last_intended), due.at),
            Pacer::Closed { unanswered_until } => *unanswered_until = Some(now + self.deadline),
        }
        if let Some(before) = self.last_sent {
            let gap = now.saturating_since(before);
            self.current.gap.record(gap, due.at);
            self.totals.sending += gap;
        }
        self.last_sent = Some(now);
    }

    /// Drops the first `settled` messages of those ahead; their sequence numbers are used up.
    #[inline]
    fn forget(&mut self, settled: usize) {
        self.next = Seq::new(self.next.get() + settled as u64);
        self.waiting -= settled;
        if self.waiting > 0 {
            self.ahead.copy_within(settled..settled + self.waiting, 0);
        }
    }

    /// Counts the send as a fall-behind when the message after it was due already, and not at the same instant by plan.
    #[inline]
    fn note_fall_behind(&mut self, now: Instant<PingerClock>, settled: usize) {
        if matches!(self.pacing, Pacer::Closed { .. }) || settled == 0 {
            return;
        }
        if self.waiting == 0 {
            self.take_next(now);
        }
        let (next, last) = (self.start + self.ahead[0].at, self.last_intended);
        self.current.fall_behinds += u64::from(next <= now && next > last);
    }

    /// Closes the current interval and those that nothing was due in, up to the one of `at`.
    #[cold]
    #[inline(never)]
    fn roll(&mut self, at: Nanos) {
        while at >= self.current_end {
            self.close();
        }
    }

    fn close(&mut self) {
        let index = self.current.index;
        self.closed = Some((index, self.current.sent));
        self.exchange.exchange(&mut self.current);
        self.current.reset(index + 1);
        self.current_end = self.interval.saturating_mul(index + 2);
    }

    /// When the loop must come back to send, at the latest. `None`: nothing more will be sent.
    #[inline]
    pub fn next_due(&mut self, now: Instant<PingerClock>) -> Option<Instant<PingerClock>> {
        if let Pacer::Closed { unanswered_until } = self.pacing {
            let end = self.start + self.plan_end;
            return if now >= end { None } else { Some(unanswered_until.unwrap_or(self.start).min(end)) };
        }
        if self.waiting == 0 {
            self.take_next(now);
        }
        let due = self.ahead[0].at;
        (due < self.plan_end && now < self.start + self.send_end).then(|| self.start + due)
    }

    /// In a closed loop: the answer to `seq` is there, so the next message may go. Says whether that is so.
    #[inline]
    pub fn release(&mut self, seq: Seq) -> bool {
        match &mut self.pacing {
            Pacer::Closed { unanswered_until } if seq.next() == self.next => {
                *unanswered_until = None;
                true
            }
            Pacer::Closed { .. } | Pacer::Open(_) => false,
        }
    }

    /// Ends the run at `now`: what is not yet due is no longer part of it.
    pub fn stop(&mut self, now: Instant<PingerClock>) {
        self.plan_end = self.plan_end.min(now.saturating_since(self.start));
        self.send_end = self.plan_end;
    }

    /// Until when answers may come in time, once the last message is sent.
    pub fn drain_end(&self) -> Instant<PingerClock> {
        // A message sent late has its deadline behind it; its answer is late and still wanted.
        (self.last_intended + self.deadline).max(self.last_sent.unwrap_or(self.start) + self.deadline)
    }

    /// How many messages the kernel has taken.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.totals.sent
    }

    /// The interval closed last since this was asked: its number, and how many messages of it were sent.
    #[inline]
    pub fn closed_interval(&mut self) -> Option<(u64, u64)> {
        self.closed.take()
    }

    /// Counts what the end of the run came before, closes all intervals up to the plan's end, and gives the totals.
    pub fn finish(mut self) -> SendTotals {
        loop {
            if self.waiting == 0 && matches!(self.pacing, Pacer::Open(_)) {
                self.take_next(self.start);
            }
            let Some(due) = self.ahead[..self.waiting].first().filter(|due| due.at < self.plan_end).copied() else {
                break;
            };
            self.roll(due.at);
            self.totals.scheduled += 1;
            self.current.unsent += 1;
            self.forget(1);
        }
        self.roll(self.plan_end.saturating_sub(Nanos::new(1)));
        self.close();
        self.totals
    }
}
