//! Plays a plan in a world, and holds what came out against the laws that every run obeys.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use tickpong_probe::{Exchange, Observe, Receiver, Transmitter, ping};
use tickpong_record::capture::{
    Measured, Observation, ReceiveInterval, ReceiveTotals, SendInterval, SendTotals, Turns,
};
use tickpong_record::{Api, Pacing, Plan, ScheduleKind, Trace};
use tickpong_units::{Instant, Nanos, PayloadLen, PingerClock, Rate, Seed};

use crate::world::{START, TOKEN, World, ms};

/// Keeps everything that is handed to it. It gives back a buffer full of old values: the engine must not rely on a clean one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Kept<T>(Arc<Mutex<Vec<T>>>);

impl<T: Debug> Kept<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Mutex::new(Vec::new())))
    }

    pub(crate) fn all(self) -> Vec<T> {
        Arc::try_unwrap(self.0).expect("the engine is done").into_inner().unwrap()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// A side of an interval.
pub(crate) trait Side: Clone {
    fn empty(index: u64) -> Self;
}

impl Side for SendInterval {
    fn empty(index: u64) -> Self {
        Self { index, ..Self::default() }
    }
}

impl Side for ReceiveInterval {
    fn empty(index: u64) -> Self {
        Self { index, ..Self::default() }
    }
}

impl<T: Side> Exchange<T> for Kept<T> {
    fn exchange(&mut self, buffer: &mut Box<T>) {
        self.0.lock().unwrap().push((**buffer).clone());
    }

    fn pass(&mut self, index: u64) {
        let mut kept = self.0.lock().unwrap();
        let next = kept.len() as u64;
        kept.extend((next..index).map(T::empty));
    }
}

impl Observe for Kept<Observation> {
    fn observe(&mut self, observation: Observation) {
        self.0.lock().unwrap().push(observation);
    }
}

/// All that a run left behind.
#[derive(Debug)]
pub(crate) struct Played {
    pub(crate) sends: Vec<SendInterval>,
    pub(crate) receives: Vec<ReceiveInterval>,
    pub(crate) observations: Vec<Observation>,
    pub(crate) sent: SendTotals,
    pub(crate) received: ReceiveTotals,
    pub(crate) turns: Turns,
    /// When the loop ended, from the start.
    pub(crate) ended: u64,
    /// Until when answers were to be waited for, from the start.
    pub(crate) drain_end: u64,
    /// So many intervals of answers had been handed over when the loop ended.
    pub(crate) closed_early: usize,
}

/// What became of the scheduled messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Fates {
    pub(crate) answered: u64,
    pub(crate) lost: u64,
    pub(crate) late: u64,
    pub(crate) unsent: u64,
}

/// An open loop of one second at `hz`, in intervals of 100 ms with a deadline of 100 ms.
pub(crate) fn open(hz: u64) -> Plan {
    let plan = Plan {
        offered_rate_hz: Rate::new(hz),
        payload_bytes: PayloadLen::STANDARD,
        duration_ns: Nanos::from_millis(900),
        warm_up_ns: Nanos::from_millis(100),
        interval_ns: Nanos::from_millis(100),
        deadline_ns: Nanos::from_millis(100),
        pacing: Pacing::Open,
        schedule: ScheduleKind::Fixed,
        seed: Seed::new(11),
        api_pinger: Api::UdpSpin,
        api_reflector: Api::UdpSpin,
        tx_cpu: None,
        rx_cpu: None,
    };
    plan.checked().unwrap()
}

pub(crate) fn closed() -> Plan {
    Plan { offered_rate_hz: None, pacing: Pacing::Closed, ..open(1) }.checked().unwrap()
}

pub(crate) fn start() -> Instant<PingerClock> {
    Instant::from_clock(START)
}

/// Plays `plan` on one thread.
pub(crate) fn play<const MOST: usize>(plan: &Plan, world: &mut World<MOST>) -> Played {
    play_trace(plan, None, world)
}

pub(crate) fn play_trace<const MOST: usize>(plan: &Plan, trace: Option<&Trace>, world: &mut World<MOST>) -> Played {
    let (sends, receives, observations) = (Kept::new(), Kept::new(), Kept::new());
    let mut transmitter = Transmitter::new(plan, trace, TOKEN, start(), sends.clone());
    let mut receiver = Receiver::new(plan, trace, TOKEN, start(), receives.clone(), observations.clone());
    let turns = ping(world, &mut transmitter, &mut receiver);
    let played = Played {
        drain_end: transmitter.drain_end().saturating_since(start()).get(),
        closed_early: receives.len(),
        sent: transmitter.finish(),
        received: receiver.finish(),
        sends: sends.all(),
        receives: receives.all(),
        observations: observations.all(),
        turns,
        ended: world.time.saturating_sub(START),
    };
    played.assert_lawful(plan);
    played
}

impl Played {
    pub(crate) fn fates(&self) -> Fates {
        let unsent = self.sends.iter().map(|interval| interval.unsent).sum::<u64>() + self.sent.refused;
        let (answered, late) = (self.received.answered, self.received.late);
        Fates { answered, late, unsent, lost: self.sent.sent - answered - late }
    }

    /// Everything that must add up does.
    pub(crate) fn assert_lawful(&self, plan: &Plan) {
        self.assert_sides_agree(plan);
        self.assert_send_side(plan);
        self.assert_receive_side(plan);
    }

    fn assert_sides_agree(&self, plan: &Plan) {
        let Fates { answered, lost, late, unsent } = self.fates();
        assert_eq!(answered + lost + late + unsent, self.sent.scheduled);
        assert!(self.receives.len() <= self.sends.len(), "an answer needs a message");
        for (sent, received) in self.sends.iter().zip(&self.receives) {
            assert!(received.answered + received.late <= sent.sent, "interval {}", sent.index);
        }
        assert_eq!(self.observations.len() as u64, answered + late);
        let mut supply_to_receive = 0;
        for seen in &self.observations {
            assert!(seen.intended <= seen.sent && seen.sent <= seen.received, "{seen:?}");
            let took = seen.received.saturating_sub(seen.intended);
            supply_to_receive += if took <= plan.deadline_ns { u128::from(took.get()) } else { 0 };
        }
        assert_eq!(total(&self.receives, |interval| &interval.supply_to_receive), (answered, supply_to_receive));
    }

    fn assert_send_side(&self, plan: &Plan) {
        let (totals, open) = (self.sent, plan.pacing == Pacing::Open);
        let sum = |of: fn(&SendInterval) -> u64| self.sends.iter().map(of).sum::<u64>();
        assert_eq!(sum(|interval| interval.sent), totals.sent);
        assert_eq!(sum(|interval| interval.refused), totals.refused);
        assert_eq!(totals.sent + totals.refused + sum(|interval| interval.unsent), totals.scheduled);
        assert!(totals.sent_by_plan_end <= totals.sent);
        let (last, before) = self.sends.split_last().expect("a run has an interval");
        let is_whole = |send: &SendInterval| send.length == plan.interval_ns || send.is_empty();
        assert!(before.iter().all(is_whole));
        let of_last = totals.length.saturating_sub(plan.interval_ns.saturating_mul(before.len() as u64));
        assert!(last.length == of_last || of_last == plan.interval_ns && last.is_empty(), "{last:?}");
        let (gaps, sending) = total(&self.sends, |interval| &interval.gap);
        assert_eq!((gaps, sending), (totals.sent.saturating_sub(1), u128::from(totals.sending.get())));
        for (index, interval) in (0..).zip(&self.sends) {
            assert_eq!(interval.index, index, "in order, and none left out");
            assert_eq!(interval.lateness.histogram.count(), if open { interval.sent } else { 0 });
            assert_within(plan, index, &interval.lateness);
            assert_within(plan, index, &interval.gap);
        }
    }

    fn assert_receive_side(&self, plan: &Plan) {
        let totals = self.received;
        let sum = |of: fn(&ReceiveInterval) -> u64| self.receives.iter().map(of).sum::<u64>();
        assert_eq!(sum(|interval| interval.answered), totals.answered);
        assert_eq!(sum(|interval| interval.late), totals.late);
        assert_eq!(sum(|interval| interval.duplicate), totals.duplicate);
        assert_eq!(sum(|interval| interval.reordered), totals.reordered);
        for (index, interval) in (0..).zip(&self.receives) {
            assert_eq!(interval.index, index, "in order, and none left out");
            for measured in [&interval.supply_to_receive, &interval.rtt, &interval.turnaround] {
                assert_eq!(measured.histogram.count(), interval.answered);
                assert_within(plan, index, measured);
            }
        }
    }
}

/// The longest value of interval `index` was due within it.
fn assert_within(plan: &Plan, index: u64, measured: &Measured) {
    if measured.histogram.count() > 0 {
        assert_eq!(measured.longest_at.whole(plan.interval_ns), index);
    }
}

/// Count and exact sum over all intervals.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sums far below 2^53")]
fn total<T>(intervals: &[T], of: fn(&T) -> &Measured) -> (u64, u128) {
    let mut merged = Measured::default();
    for interval in intervals {
        merged.merge(of(interval));
    }
    let count = merged.histogram.count();
    let mean = merged.histogram.mean().unwrap_or(0.0);
    #[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
    let sum = (mean * count as f64).round() as u128;
    (count, sum)
}

/// `ms` milliseconds of the plan, in intervals of 100 ms, after no warm-up.
pub(crate) fn lasting(plan: Plan, length: u64) -> Plan {
    Plan { duration_ns: Nanos::new(ms(length)), warm_up_ns: Nanos::ZERO, ..plan }.checked().unwrap()
}
