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
        let (mut sent, mut received) = (VecDeque::new(), VecDeque::new());
        loop {
            let last_look = done.load(Ordering::Acquire);
            position.elapsed = Nanos::new(monotonic_ns().saturating_sub(self.start_ns));
            let passed = position.elapsed >= self.plan.interval_ns.saturating_mul(position.boundary + 1);
            if passed {
                position.boundary = position.elapsed.whole(self.plan.interval_ns);
                position.pinger.insert(position.boundary - 1, self.meter.used());
            }
            let waiting = sent.len();
            sent.extend(std::iter::from_fn(|| self.sent.take().map(|interval| Sending::of(interval, &mut self.sent))));
            let many_at_once = sent.len() > waiting + 1;
            received.extend(std::iter::from_fn(|| self.received.take()));
            // The last one waits for the end of the threads, and has all that they used then.
            while last_look || !sent.front().is_some_and(|first| self.is_last(first)) {
                let Some((sending, receiving)) = next_pair(&mut sent, &mut received, last_look) else { break };
                self.add(&mut collected, &mut position, sending, receiving, last_look && sent.is_empty());
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

    /// Whether this is the last interval: of the plan, or of one that was cut.
    fn is_last(&self, sending: &Sending) -> bool {
        let end = self.plan.interval_ns.saturating_mul(sending.index() + 1);
        sending.length() < self.plan.interval_ns || end >= self.plan.length()
    }

    fn add(
        &mut self,
        collected: &mut Collected,
        position: &mut Position,
        mut sending: Box<SendInterval>,
        mut receiving: Box<ReceiveInterval>,
        last: bool,
    ) {
        let pinger = take(&mut position.pinger, sending.index);
        let pinger = if last { Some(self.meter.used()) } else { pinger };
        let row = collected.add(&sending, &receiving, Ends { pinger, reflector: self.reflector_used(sending.index) });
        position.lost += row.lost;
        position.p99 = row.supply_to_receive.map(|summary| summary.p99);
        // Emptied here, so that the hot thread has nothing to clear.
        sending.reset(0);
        receiving.reset(0);
        self.sent.give_back(sending);
        self.received.give_back(receiving);
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

/// The sending side of an interval, until the receiving side is there.
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
    /// Gives the buffer of an empty interval back at once: the hot thread may be waiting for it.
    fn of(interval: Box<SendInterval>, basket: &mut Basket<SendInterval>) -> Self {
        if interval.sent > 0 {
            return Self::Measured(interval);
        }
        let SendInterval { index, length, refused, unsent, fall_behinds, .. } = *interval;
        basket.give_back(interval);
        Self::Counts { index, length, refused, unsent, fall_behinds }
    }

    fn index(&self) -> u64 {
        match self {
            Self::Measured(interval) => interval.index,
            Self::Counts { index, .. } => *index,
        }
    }

    fn length(&self) -> Nanos {
        match self {
            Self::Measured(interval) => interval.length,
            Self::Counts { length, .. } => *length,
        }
    }

    fn whole(self) -> Box<SendInterval> {
        match self {
            Self::Measured(interval) => interval,
            Self::Counts { index, length, refused, unsent, fall_behinds } => {
                Box::new(SendInterval { index, length, refused, unsent, fall_behinds, ..SendInterval::default() })
            }
        }
    }
}

/// The next interval of which both sides are there. A side that is missing before others of its kind found no room in the rings, and the
/// other is passed over. At the `last` look, what one side lacks at the end is empty: no answer at all came for those intervals.
fn next_pair(
    sent: &mut VecDeque<Sending>,
    received: &mut VecDeque<Box<ReceiveInterval>>,
    last: bool,
) -> Option<(Box<SendInterval>, Box<ReceiveInterval>)> {
    loop {
        let (sending, receiving) = match (sent.front(), received.front()) {
            (Some(sending), Some(receiving)) => (sending.index(), receiving.index),
            (Some(sending), None) if last => {
                let nothing = ReceiveInterval { index: sending.index(), ..ReceiveInterval::default() };
                return sent.pop_front().map(Sending::whole).zip(Some(Box::new(nothing)));
            }
            _ => return None,
        };
        match sending.cmp(&receiving) {
            std::cmp::Ordering::Equal => return sent.pop_front().map(Sending::whole).zip(received.pop_front()),
            std::cmp::Ordering::Less => drop(sent.pop_front()),
            std::cmp::Ordering::Greater => drop(received.pop_front()),
        }
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
    use super::*;

    #[test]
    fn sides_are_paired_by_interval_and_what_was_never_answered_counts() {
        let sent = |index| Sending::Measured(Box::new(SendInterval { index, ..SendInterval::default() }));
        let received = |index| Box::new(ReceiveInterval { index, ..ReceiveInterval::default() });
        let pairs = |sends: &[u64], receives: &[u64], last| {
            let mut sends: VecDeque<_> = sends.iter().map(|&index| sent(index)).collect();
            let mut receives: VecDeque<_> = receives.iter().map(|&index| received(index)).collect();
            let next = || next_pair(&mut sends, &mut receives, last).map(|(s, r)| (s.index, r.index));
            std::iter::from_fn(next).collect::<Vec<_>>()
        };
        assert_eq!(pairs(&[0, 1, 2], &[0, 1], false), [(0, 0), (1, 1)]);
        assert_eq!(pairs(&[0, 1, 2], &[0, 1], true), [(0, 0), (1, 1), (2, 2)]);
        assert_eq!(pairs(&[0, 1, 3], &[0, 2, 3], true), [(0, 0), (3, 3)], "one of each found no room");
    }
}
