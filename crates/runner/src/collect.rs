//! The collector: takes closed intervals from the hot threads while the run goes on, adds them up, and writes them down.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use rtrb::Consumer;
use tickpong_analyse::Analysis;
use tickpong_hostio::clock::{monotonic_ns, sleep};
use tickpong_hostio::thread::Tid;
use tickpong_record::capture::{Observation, ReceiveInterval, SendInterval};
use tickpong_record::observations::ObservationWriter;
use tickpong_record::{Ends, Figure, IntervalRow, Metric, Plan, RecordError, Resources, RunWriter};
use tickpong_units::Nanos;

use crate::host;
use crate::rings::Basket;

/// The longest the collector sleeps. Where there are no more CPUs than hot threads, each of its turns is in somebody's way.
const NAP: Nanos = Nanos::from_millis(250);
/// How often raw observations are taken out of their ring: at 1.5 million a second, a third of it.
const OBSERVATION_NAP: Nanos = Nanos::from_millis(10);

/// How a run stands, after each interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// Since the start.
    pub elapsed: Nanos,
    /// Of the whole run, warm-up included.
    pub length: Nanos,
    /// Messages sent, a second, in the last interval that is complete.
    pub achieved_rate_hz: Option<f64>,
    /// Messages lost so far.
    pub lost: u64,
    /// p99 of SupplyToReceive in the last interval that is complete.
    pub p99: Option<Figure>,
}

/// Everything the collector works with.
pub(crate) struct Collector<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) sent: Basket<SendInterval>,
    pub(crate) received: Basket<ReceiveInterval>,
    pub(crate) hot: Vec<Tid>,
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

impl Collector<'_> {
    /// Collects until `done`, and then whatever is still in the rings.
    pub(crate) fn run(mut self, done: &AtomicBool) -> Collected {
        let mut collected = Collected { analysis: Analysis::new(self.plan), writer: self.writer.take(), failed: None };
        let mut pinger = BTreeMap::new();
        let (mut sent, mut received) = (VecDeque::new(), VecDeque::new());
        let (mut lost, mut boundary) = (0, 0);
        loop {
            let last_look = done.load(Ordering::Acquire);
            let elapsed = Nanos::new(monotonic_ns().saturating_sub(self.start_ns));
            if elapsed >= self.plan.interval_ns.saturating_mul(boundary + 1) || last_look {
                boundary = elapsed.whole(self.plan.interval_ns).max(boundary + 1);
                pinger.insert(boundary - 1, host::used(&self.hot));
            }
            let waiting = sent.len();
            sent.extend(std::iter::from_fn(|| self.sent.take().map(|interval| Sending::of(interval, &mut self.sent))));
            let many_at_once = sent.len() > waiting + 1;
            received.extend(std::iter::from_fn(|| self.received.take()));
            while let Some((mut sending, mut receiving)) = next_pair(&mut sent, &mut received, last_look) {
                let used =
                    Ends { pinger: take(&mut pinger, sending.index), reflector: self.reflector_used(sending.index) };
                let row = collected.add(&sending, &receiving, used);
                lost += row.lost;
                (self.progress)(Progress {
                    elapsed,
                    length: self.plan.length(),
                    achieved_rate_hz: row.achieved_rate_hz,
                    lost,
                    p99: row.supply_to_receive.map(|summary| summary.p99),
                });
                // Emptied here, so that the hot thread has nothing to clear.
                sending.reset(0);
                receiving.reset(0);
                self.sent.give_back(sending);
                self.received.give_back(receiving);
            }
            if last_look {
                return collected;
            }
            let next_boundary = self.plan.interval_ns.saturating_mul(boundary + 1).saturating_sub(elapsed);
            // Where several intervals came at once, more may be waiting for room.
            let nap = if many_at_once { Nanos::ZERO } else { next_boundary.min(NAP) };
            // Parked, not asleep: who sets `done` wakes us.
            std::thread::park_timeout(nap.max(Nanos::from_millis(1)).into());
        }
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
        let SendInterval { index, refused, unsent, fall_behinds, .. } = *interval;
        basket.give_back(interval);
        Self::Counts { index, refused, unsent, fall_behinds }
    }

    fn index(&self) -> u64 {
        match self {
            Self::Measured(interval) => interval.index,
            Self::Counts { index, .. } => *index,
        }
    }

    fn whole(self) -> Box<SendInterval> {
        match self {
            Self::Measured(interval) => interval,
            Self::Counts { index, refused, unsent, fall_behinds } => {
                Box::new(SendInterval { index, refused, unsent, fall_behinds, ..SendInterval::default() })
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

/// Writes raw observations until `done`, and then whatever is still in the ring.
pub(crate) fn write_observations(
    mut ring: Consumer<Observation>,
    mut writer: ObservationWriter,
    done: &AtomicBool,
) -> Result<(), RecordError> {
    loop {
        let last_look = done.load(Ordering::Acquire);
        while let Ok(row) = ring.pop() {
            writer.write(&row)?;
        }
        if last_look {
            return writer.finish();
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
