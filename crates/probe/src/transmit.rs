//! The sending side: what is due is sent, late or not, and the plan does not move.

use std::collections::VecDeque;

use tickpong_record::capture::{SendInterval, SendTotals};
use tickpong_record::{Pacing, Plan, Trace};
use tickpong_units::{Instant, Nanos, PayloadLen, PingerClock, Seq};
use tickpong_wire::{Datagram, Kind, Token, datagram};

use crate::receive::WAITED_DEADLINES;
use crate::{Due, Exchange, Schedule, Sends};

/// After the plan's end, what is due may still be sent for this part of the duration …
const GRACE_SHARE: u64 = 20;
/// … and no longer than this. A stall of the machine at the very end is lateness, not loss.
const MOST_GRACE: Nanos = Nanos::from_millis(100);
/// The most messages of one call that the engine prepares.
const MOST_AHEAD: usize = 64;
/// So many closed intervals with messages are remembered until somebody asks: as many as a stall may close at once.
const MOST_CLOSED: usize = 128;

/// Sends the messages of a plan, and records how late each went out.
#[derive(Debug)]
pub struct Transmitter<X> {
    pacing: Pacer,
    token: Token,
    /// The largest message.
    len: PayloadLen,
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
    /// When the first of them goes, and until when it still may. Kept, because the loop asks in every turn.
    next_due: Instant<PingerClock>,
    due_until: Instant<PingerClock>,
    first_sent: Instant<PingerClock>,
    last_sent: Instant<PingerClock>,
    last_intended: Instant<PingerClock>,
    /// Nothing due before this is still to be sent.
    reached: Instant<PingerClock>,
    current: Box<SendInterval>,
    current_end: Nanos,
    closed: VecDeque<ClosedInterval>,
    /// The intervals below this one are named in `closed`, or were.
    named: u64,
    totals: SendTotals,
    exchange: X,
}

/// How many messages of an interval were sent, once it is closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClosedInterval {
    /// Which it is.
    pub index: u64,
    /// How many.
    pub sent: u64,
    /// Nothing was sent in the intervals from this one up to it.
    pub silent_from: u64,
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
        let mut transmitter = Self {
            pacing,
            token,
            len: plan.payload_bytes,
            start,
            plan_end: plan.length(),
            send_end: plan.length() + grace,
            deadline: plan.deadline_ns,
            interval: plan.interval_ns,
            ahead: [Due { at: Nanos::MAX, len: plan.payload_bytes }; MOST_AHEAD],
            waiting: 0,
            next: Seq::default(),
            next_due: start,
            due_until: start,
            first_sent: start,
            last_sent: start,
            last_intended: start,
            reached: start,
            current: Box::default(),
            current_end: plan.interval_ns,
            closed: VecDeque::with_capacity(MOST_CLOSED),
            named: 0,
            totals: SendTotals::default(),
            exchange,
        };
        transmitter.look_ahead();
        transmitter
    }

    /// Puts the session's filler into the platform's buffers.
    pub fn prepare<P: Sends<Clock = PingerClock>>(&self, platform: &mut P) {
        (0..P::MOST).for_each(|index| datagram::fill(platform.slot(index, self.len), self.token));
    }

    /// Sends what is due at `now`, in one call. Says whether anything came of it: not so, where nothing is due or there is no room.
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
        self.look_ahead();
        // Fallen behind: the next message was due already, and not at the same instant by plan.
        let behind = self.next_due <= now && self.next_due > self.last_intended && now < self.due_until;
        let open = matches!(self.pacing, Pacer::Open(_));
        self.current.fall_behinds += u64::from(behind && open && settled > 0);
        settled > 0
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
            Pacer::Closed { .. } => Due { at: now.since(self.start), len: self.len },
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
        self.next = self.next.next();
        self.last_intended = self.start + due.at;
        self.reached = self.last_intended;
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
        if self.totals.sent == 1 {
            self.first_sent = now;
        } else {
            self.current.gap.record(now.since(self.last_sent), due.at);
        }
        self.last_sent = now;
    }

    /// Drops the first `settled` messages of those ahead.
    #[inline]
    fn forget(&mut self, settled: usize) {
        self.waiting -= settled;
        if self.waiting > 0 {
            self.ahead.copy_within(settled..settled + self.waiting, 0);
        }
    }

    /// Finds out when the next message goes. In a closed loop that is now, unless it waits for an answer.
    #[inline]
    fn look_ahead(&mut self) {
        (self.next_due, self.due_until) = match &mut self.pacing {
            Pacer::Open(schedule) => {
                if self.waiting == 0 {
                    (self.ahead[0], self.waiting) = (schedule.next_due(), 1);
                }
                let due = self.ahead[0].at;
                let until = if due < self.plan_end { self.send_end } else { Nanos::ZERO };
                (self.start + due, self.start + until)
            }
            Pacer::Closed { unanswered_until } => {
                let end = self.start + self.plan_end;
                (unanswered_until.unwrap_or(self.start).min(end), end)
            }
        };
    }

    /// Nothing was due up to `now` that has not been sent: intervals end by the clock where the plan is silent.
    #[inline]
    pub fn pass(&mut self, now: Instant<PingerClock>) {
        let waits_for = if self.waiting > 0 { self.ahead[0].at } else { Nanos::MAX };
        let last = self.plan_end.saturating_sub(Nanos::new(1));
        let passed = now.saturating_since(self.start).min(waits_for).min(last);
        self.reached = self.reached.max(self.start + passed);
        if passed >= self.current_end {
            self.roll(passed);
        }
    }

    /// Closes the current interval, and begins the one of `at`, which lies behind it.
    #[cold]
    #[inline(never)]
    fn roll(&mut self, at: Nanos) {
        self.close(at.whole(self.interval));
    }

    /// Closes the current interval, and begins `next`. Between the two, nothing was due.
    fn close(&mut self, next: u64) {
        let SendInterval { index, sent, .. } = *self.current;
        if !self.current.is_empty() {
            if self.closed.len() == MOST_CLOSED {
                self.closed.pop_front();
            }
            self.closed.push_back(ClosedInterval { index, sent, silent_from: self.named });
            self.named = index + 1;
            self.hand_over();
        }
        self.exchange.pass(next);
        self.current.reset(next);
        self.current_end = self.interval.saturating_mul(next + 1);
    }

    fn hand_over(&mut self) {
        let begin = self.interval.saturating_mul(self.current.index);
        self.current.length = self.interval.min(self.plan_end.saturating_sub(begin));
        self.exchange.exchange(&mut self.current);
    }

    /// When the loop must come back to send, at the latest. `None`: nothing more will be sent.
    #[inline]
    pub fn next_due(&self, now: Instant<PingerClock>) -> Option<Instant<PingerClock>> {
        (now < self.due_until).then_some(self.next_due)
    }

    /// In a closed loop: the answer to `seq` is there, so the next message may go. Says whether that is so.
    #[inline]
    pub fn release(&mut self, seq: Seq) -> bool {
        match &mut self.pacing {
            Pacer::Closed { unanswered_until } if seq.next() == self.next => {
                *unanswered_until = None;
                self.look_ahead();
                true
            }
            Pacer::Closed { .. } | Pacer::Open(_) => false,
        }
    }

    /// Ends the run at `now`: what is not yet due is no longer part of it.
    pub fn stop(&mut self, now: Instant<PingerClock>) {
        self.plan_end = self.plan_end.min(now.saturating_since(self.start));
        self.send_end = self.plan_end;
        self.look_ahead();
        // Not even the start is waited for.
        self.due_until = self.due_until.min(now);
    }

    /// Until when answers may still count, once the last message is sent.
    pub fn drain_end(&self) -> Instant<PingerClock> {
        self.last_sent + self.deadline.saturating_mul(WAITED_DEADLINES)
    }

    /// How many messages the kernel has taken.
    #[inline]
    pub fn sent(&self) -> u64 {
        self.totals.sent
    }

    /// The message that goes next: no number from here on has been sent.
    #[inline]
    pub fn next(&self) -> Seq {
        self.next
    }

    /// The next of the intervals closed. Each is named once.
    pub fn closed_interval(&mut self) -> Option<ClosedInterval> {
        self.closed.pop_front().or_else(|| {
            let silent_from = self.named;
            self.named = self.named.max(self.current.index);
            (self.named > silent_from).then(|| ClosedInterval { index: self.named - 1, sent: 0, silent_from })
        })
    }

    /// How far through the plan it is: all that was due before has been sent.
    #[inline]
    pub fn reached(&self) -> Instant<PingerClock> {
        self.reached
    }

    /// Counts what the end of the run came before, closes all intervals up to the plan's end, and gives the totals.
    pub fn finish(mut self) -> SendTotals {
        let last = self.plan_end.saturating_sub(Nanos::new(1)).whole(self.interval);
        loop {
            let index = self.current.index;
            let unsent = self.unsent_before(self.current_end.min(self.plan_end));
            self.current.unsent += unsent;
            self.totals.scheduled += unsent;
            if index < last {
                self.close(index + 1);
                continue;
            }
            // Whatever it holds: it alone may be shorter than the others. One that had only just begun is none.
            if index == last || !self.current.is_empty() {
                self.hand_over();
                self.exchange.pass(index + 1);
            }
            break;
        }
        self.totals.scheduled += self.totals.sent + self.totals.refused;
        self.totals.sending = self.last_sent.since(self.first_sent);
        self.totals.length = self.plan_end;
        self.totals
    }

    /// Takes what is due before `end` out of what is still to be sent, and says how many messages that is.
    fn unsent_before(&mut self, end: Nanos) -> u64 {
        let ahead = self.ahead[..self.waiting].iter().take_while(|due| due.at < end).count();
        self.forget(ahead);
        let mut unsent = ahead as u64;
        if let Pacer::Open(schedule) = &mut self.pacing
            && self.waiting == 0
        {
            let (passed, next) = schedule.pass_over(end);
            (self.ahead[0], self.waiting) = (next, 1);
            unsent += passed;
        }
        unsent
    }
}
