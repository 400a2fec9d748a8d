//! The collector: takes closed intervals from the hot threads while the run goes on, adds them up, and writes them down.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rtrb::Consumer;
use tickpong_analyse::Analysis;
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_record::capture::{Observation, ReceiveInterval, SendInterval};
use tickpong_record::observations::ObservationWriter;
use tickpong_record::{Ends, Figure, IntervalRow, Metric, Plan, RecordError, Resources, RunWriter};
use tickpong_units::Nanos;

use crate::meter::Meter;
use crate::platform::SentCount;
use crate::rings::Basket;

/// The longest the collector sleeps. Where there are no more CPUs than hot threads, each of its turns is in somebody's way.
const NAP: Nanos = Nanos::from_millis(250);
/// How often raw observations are taken out of their ring: at 1.5 million a second, a third of it.
const OBSERVATION_NAP: Nanos = Nanos::from_millis(10);

/// How a run stands, told at the end of each interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Nanos,
    /// Of the whole run, warm-up included.
    pub length: Nanos,
    /// Messages sent, a second, since this was told last, whenever they were due.
    pub sent_rate_hz: f64,
    /// Messages lost in the intervals that are complete.
    pub lost: u64,
    /// p99 of SupplyToReceive in the last interval that is complete: where messages are lost, that is some deadlines ago.
    pub p99: Option<Figure>,
}

/// Everything the collector works with.
pub(crate) struct Collector<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sent: Basket<SendInterval>,
    pub(crate) received: Basket<ReceiveInterval>,
    pub(crate) meter: &'a Meter,
    pub(crate) sent_count: &'a SentCount,
    /// When the run starts, by the host's monotonic clock.
    pub(crate) start_ns: u64,
    pub(crate) writer: Option<RunWriter>,
    pub(crate) reflector: &'a Mutex<BTreeMap<u64, Resources>>,
    pub(crate) progress: &'a mut (dyn FnMut(Progress) + Send),
}

/// What the collector has at the end.
pub(crate) struct Collected {
    pub(crate) analysis: Analysis,
    pub(crate) writer: Option<RunWriter>,
    /// The first thing that went wrong with the disk. The run went on.
    pub(crate) failed: Option<RecordError>,
}

/// How far the collector is.
#[derive(Default)]
struct Position {
    elapsed: Nanos,
    /// Ends of intervals that the clock has passed.
    boundary: u64,
    /// Messages sent by then, and when that was.
    sent: (u64, Nanos),
    lost: u64,
    p99: Option<Figure>,
    /// What the pinger had used by the end of an interval.
    pinger: BTreeMap<u64, Resources>,
}

impl Collector<'_> {
    /// Collects until `done`, and then whatever is still in the rings.
    pub(crate) fn run(mut self, done: &AtomicBool) -> Collected {
        let mut collected = Collected { analysis: Analysis::new(self.plan), writer: self.writer.take(), failed: None };
        let mut position = Position::default();
        let mut sides = Sides::new(self.plan);
        loop {
            let last_look = done.load(Ordering::Acquire);
            position.elapsed = Nanos::new(monotonic_ns().saturating_sub(self.start_ns));
            let passed = position.elapsed >= self.plan.interval_ns.saturating_mul(position.boundary + 1);
            if passed {
                position.boundary = position.elapsed.whole(self.plan.interval_ns);
                position.pinger.insert(position.boundary - 1, self.meter.used());
            }
            let many_at_once = sides.take(&mut self.sent, &mut self.received, last_look);
            // The last one waits for the end of the threads, and has all that they used then.
            while let Some(pair) = sides.next_pair(last_look) {
                let last = last_look && sides.is_done();
                self.add(&mut collected, &mut position, &mut sides, pair, last);
            }
            if last_look {
                return collected;
            }
            if passed {
                self.tell(&mut position);
            }
            let next_boundary = self.plan.interval_ns.saturating_mul(position.boundary + 1);
            // Where several intervals came at once, more may be waiting for room.
            let nap = if many_at_once { Nanos::ZERO } else { next_boundary.saturating_sub(position.elapsed).min(NAP) };
            // Parked, not asleep: who sets `done` wakes us.
            std::thread::park_timeout(nap.max(Nanos::from_millis(1)).into());
        }
    }

    fn add(&mut self, collected: &mut Collected, position: &mut Position, sides: &mut Sides, pair: Pair, last: bool) {
        let Pair { index, sent, received } = pair;
        let pinger = take(&mut position.pinger, index);
        let pinger = if last { Some(self.meter.used()) } else { pinger };
        let (sending, receiving) = sides.measured(index, sent.as_ref(), received.as_deref());
        let row = collected.add(sending, receiving, Ends { pinger, reflector: self.reflector_used(index) });
        position.lost += row.lost;
        position.p99 = row.supply_to_receive.map(|summary| summary.p99);
        // Emptied here, so that the hot thread has nothing to clear.
        if let Some(Sending::Measured(mut buffer)) = sent {
            buffer.reset(0);
            self.sent.give_back(buffer);
        }
        if let Some(mut buffer) = received {
            buffer.reset(0);
            self.received.give_back(buffer);
        }
    }

    fn tell(&mut self, position: &mut Position) {
        let now = (self.sent_count.get(), position.elapsed);
        let (sent, at) = std::mem::replace(&mut position.sent, now);
        #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
        let sent_rate_hz = (now.0 - sent) as f64 / now.1.saturating_sub(at).as_secs_f64();
        let Position { elapsed, lost, p99, .. } = *position;
        (self.progress)(Progress { elapsed, length: self.plan.length(), sent_rate_hz, lost, p99 });
    }

    fn reflector_used(&self, index: u64) -> Option<Resources> {
        take(&mut self.reflector.lock().unwrap_or_else(PoisonError::into_inner), index)
    }
}

/// Takes what is noted for `index`, and forgets what is older.
fn take(noted: &mut BTreeMap<u64, Resources>, index: u64) -> Option<Resources> {
    let found = noted.remove(&index);
    *noted = noted.split_off(&index);
    found
}

/// The sides of the intervals that are closed, until both sides of one are there.
struct Sides {
    interval: Nanos,
    /// The last interval, where the plan is not cut.
    last: u64,
    /// The next interval to be put together; every one is, in order.
    next: u64,
    /// Both sides of all below are there, or empty.
    end: u64,
    sent: VecDeque<Sending>,
    received: VecDeque<Box<ReceiveInterval>>,
    /// Stand for sides that were not measured.
    unmeasured: (SendInterval, ReceiveInterval),
}

/// Both sides of an interval. One that was passed over is empty.
struct Pair {
    index: u64,
    sent: Option<Sending>,
    received: Option<Box<ReceiveInterval>>,
}

/// The sending side of an interval.
enum Sending {
    Measured(Box<SendInterval>),
    /// Nothing was sent in it: a pinger that cannot keep up, or was ended, leaves many of these at once.
    Counts {
        index: u64,
        length: Nanos,
        refused: u64,
        unsent: u64,
        fall_behinds: u64,
    },
}

impl Sending {
    /// Gives the buffer of an interval without messages back at once: the hot thread may be waiting for it.
    fn of(interval: Box<SendInterval>, basket: &mut Basket<SendInterval>) -> Self {
        if interval.sent > 0 {
            return Self::Measured(interval);
        }
        let SendInterval { index, length, refused, unsent, fall_behinds, .. } = *interval;
        basket.give_back(interval);
        Self::Counts { index, length, refused, unsent, fall_behinds }
    }

    /// Which interval, and how long it is.
    fn place(&self) -> (u64, Nanos) {
        match self {
            Self::Measured(interval) => (interval.index, interval.length),
            Self::Counts { index, length, .. } => (*index, *length),
        }
    }
}

impl Sides {
    fn new(plan: &Plan) -> Self {
        Self {
            interval: plan.interval_ns,
            last: plan.length().saturating_sub(Nanos::new(1)).whole(plan.interval_ns),
            next: 0,
            end: 0,
            sent: VecDeque::new(),
            received: VecDeque::new(),
            unmeasured: Default::default(),
        }
    }

    /// Takes what is in the rings, and says whether several intervals came at once. At the `last` look, no answer comes any more.
    fn take(&mut self, sent: &mut Basket<SendInterval>, received: &mut Basket<ReceiveInterval>, last: bool) -> bool {
        // Read before the rings are emptied: what was handed over before it was passed is then among what they give.
        self.end = if last { sent.passed() } else { sent.passed().min(received.passed()) };
        let waiting = self.sent.len();
        self.sent.extend(std::iter::from_fn(|| sent.take().map(|interval| Sending::of(interval, sent))));
        self.received.extend(std::iter::from_fn(|| received.take()));
        self.sent.len() > waiting + 1
    }

    /// Whether nothing is left of what was taken.
    fn is_done(&self) -> bool {
        self.next >= self.end
    }

    /// The next interval, where both its sides are there; the last one of the plan, or of one that was cut, only at the `last` look.
    fn next_pair(&mut self, last: bool) -> Option<Pair> {
        let index = self.next;
        let place = self.sent.front().map(Sending::place).filter(|(at, _)| *at == index);
        let is_last = index >= self.last || place.is_some_and(|(_, length)| length < self.interval);
        if self.is_done() || is_last && !last {
            return None;
        }
        self.next += 1;
        let received = self.received.front().is_some_and(|side| side.index == index);
        Some(Pair {
            index,
            sent: if place.is_some() { self.sent.pop_front() } else { None },
            received: if received { self.received.pop_front() } else { None },
        })
    }

    /// The two sides as they are added up.
    fn measured<'a>(
        &'a mut self,
        index: u64,
        sent: Option<&'a Sending>,
        received: Option<&'a ReceiveInterval>,
    ) -> (&'a SendInterval, &'a ReceiveInterval) {
        let (no_sends, no_answers) = &mut self.unmeasured;
        no_sends.reset(index);
        no_sends.length = self.interval;
        no_answers.reset(index);
        let sent = match sent {
            Some(Sending::Measured(interval)) => &**interval,
            Some(Sending::Counts { length, refused, unsent, fall_behinds, .. }) => {
                (no_sends.length, no_sends.refused) = (*length, *refused);
                (no_sends.unsent, no_sends.fall_behinds) = (*unsent, *fall_behinds);
                no_sends
            }
            None => no_sends,
        };
        (sent, received.unwrap_or(no_answers))
    }
}

impl Collected {
    fn add(&mut self, sent: &SendInterval, received: &ReceiveInterval, used: Ends<Resources>) -> IntervalRow {
        let row = self.analysis.add(sent, received, used);
        if let Some(writer) = &mut self.writer {
            let histograms = [
                (Metric::SupplyToReceive, &received.supply_to_receive.histogram),
                (Metric::Rtt, &received.rtt.histogram),
                (Metric::SendLateness, &sent.lateness.histogram),
                (Metric::Turnaround, &received.turnaround.histogram),
                (Metric::SendGap, &sent.gap.histogram),
            ];
            if let Err(error) = writer.interval(&row, &histograms) {
                self.failed = Some(error);
                // Dropping the writer removes what is half written.
                self.writer = None;
            }
        }
        row
    }
}

/// Writes raw observations until `done`, and then whatever is still in the ring. Where the disk fails it still empties the ring: what is not
/// written is no fault of the run.
pub(crate) fn write_observations(
    mut ring: Consumer<Observation>,
    writer: ObservationWriter,
    done: &AtomicBool,
) -> Result<(), RecordError> {
    let mut writer = Ok(writer);
    loop {
        let last_look = done.load(Ordering::Acquire);
        while let Ok(row) = ring.pop() {
            if let Err(error) = writer.as_mut().map_or(Ok(()), |writer| writer.write(&row)) {
                writer = Err(error);
            }
        }
        if last_look {
            return writer.and_then(ObservationWriter::finish);
        }
        sleep(OBSERVATION_NAP);
    }
}

#[cfg(test)]
mod tests {
    use tickpong_probe::Exchange;

    use super::*;
    use crate::rings::{Hand, Overflow, rings};

    const INTERVAL: Nanos = Nanos::from_secs(1);

    fn close(hand: &mut Hand<SendInterval>, index: u64, sent: u64) {
        hand.exchange(&mut Box::new(SendInterval { index, sent, length: INTERVAL, ..SendInterval::default() }));
        hand.pass(index + 1);
    }

    fn answer(hand: &mut Hand<ReceiveInterval>, index: u64, answered: u64) {
        hand.exchange(&mut Box::new(ReceiveInterval { index, answered, ..ReceiveInterval::default() }));
        hand.pass(index + 1);
    }

    #[test]
    fn sides_are_paired_by_interval_and_what_was_passed_over_is_empty() {
        let overflow = Overflow::default();
        let ((mut sends, mut sent), (mut receives, mut received)) = (rings(&overflow, 4), rings(&overflow, 4));
        let mut sides = Sides {
            interval: INTERVAL,
            last: 1_004,
            next: 0,
            end: 0,
            sent: VecDeque::new(),
            received: VecDeque::new(),
            unmeasured: Default::default(),
        };
        let mut pairs = |last| {
            sides.take(&mut sent, &mut received, last);
            let mut pairs = Vec::new();
            while let Some(Pair { index, sent, received }) = sides.next_pair(last) {
                let (sending, receiving) = sides.measured(index, sent.as_ref(), received.as_deref());
                assert_eq!((sending.index, sending.length, receiving.index), (index, INTERVAL, index));
                pairs.push((sending.sent, receiving.answered));
            }
            pairs
        };
        close(&mut sends, 0, 5);
        assert_eq!(pairs(false), [], "answers may still come");
        answer(&mut receives, 0, 4);
        assert_eq!(pairs(false), [(5, 4)]);
        // A thousand intervals of silence cost no buffer.
        (1..=1_001).for_each(|index| sends.pass(index));
        close(&mut sends, 1_001, 7);
        close(&mut sends, 1_002, 8);
        receives.pass(1_002);
        let paired = pairs(false);
        assert_eq!((paired.len(), paired[999], paired[1_000]), (1_001, (0, 0), (7, 0)), "no answer came for the seven");
        answer(&mut receives, 1_002, 8);
        close(&mut sends, 1_003, 2);
        close(&mut sends, 1_004, 3);
        answer(&mut receives, 1_004, 3);
        assert_eq!(pairs(false), [(8, 8), (2, 0)], "the last waits for the end of the threads");
        assert_eq!(pairs(true), [(3, 3)]);
        assert_eq!(overflow.count(), 0);
    }
}
