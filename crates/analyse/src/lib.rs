//! From a capture to a summary.
//!
//! Owns: windows, fates, losses told apart, interval rows, and validity: did the run do what its plan asked?
//! Does not own: files, hosts, clocks, and any judgement between two runs.
#![forbid(unsafe_code)]

mod losses;
mod summary;
mod validity;

use std::collections::BTreeMap;

use tickpong_record::capture::{Measured, ReceiveInterval, ReceiveTotals, SendInterval, SendTotals};
use tickpong_record::{Ends, Fates, IntervalRow, Losses, Metric, Pacing, Plan, Resources, Window};
use tickpong_stats::Histogram;
use tickpong_units::Nanos;

pub use losses::{ReflectorSaw, Seen, losses};
pub use summary::summary;
pub use validity::{Disturbances, invalid_because};

/// Adds up a run, an interval at a time, in memory that does not grow with the run.
#[derive(Debug)]
pub struct Analysis {
    plan: Plan,
    warm_up: Part,
    after_warm_up: Part,
    used_before: Ends<Resources>,
    impossible: u64,
}

/// The warm-up, or what comes after it.
#[derive(Debug, Default)]
struct Part {
    fates: Fates,
    fall_behinds: u64,
    supply_to_receive: Measured,
    rtt: Measured,
    lateness: Measured,
    turnaround: Measured,
    gap: Measured,
}

/// What a whole run came to.
#[derive(Debug)]
pub struct Outcome {
    /// Over the whole run.
    pub fates: Fates,
    /// Without the warm-up.
    pub fates_after_warm_up: Fates,
    /// Sends that went out when the next message was already due.
    pub fall_behinds: u64,
    /// Messages sent by the plan's end, a second of what was played of it.
    pub achieved_rate_hz: Option<f64>,
    /// Messages answered in time, a second of what was played of the plan.
    pub answered_rate_hz: Option<f64>,
    /// Every message.
    pub whole: Window,
    /// Without the warm-up.
    pub after_warm_up: Window,
    /// Where the lost ones went.
    pub losses: Losses,
    /// Answers in intervals that sent fewer messages. No network makes them: somebody who knows the session does.
    pub impossible: u64,
    /// Values beyond a histogram's range, over all metrics.
    pub clamped: u64,
    /// The histograms of the whole run.
    pub histograms: BTreeMap<Metric, Histogram>,
}

impl Analysis {
    /// Nothing added yet.
    pub fn new(plan: &Plan) -> Self {
        Self {
            plan: plan.clone(),
            warm_up: Part::default(),
            after_warm_up: Part::default(),
            used_before: Ends::default(),
            impossible: 0,
        }
    }

    /// Adds one interval, both of its sides, and gives its row. `used` is what both ends had used by the end of it, where that is known.
    ///
    /// # Panics
    ///
    /// When the two sides are of different intervals.
    pub fn add(&mut self, sent: &SendInterval, received: &ReceiveInterval, used: Ends<Resources>) -> IntervalRow {
        assert_eq!(sent.index, received.index, "the two sides of one interval");
        let fates = fates(sent, received);
        self.impossible += received.answered + received.late - fates.answered - fates.late;
        let warm_up = sent.index < self.plan.warm_up_intervals();
        let part = if warm_up { &mut self.warm_up } else { &mut self.after_warm_up };
        part.add(&fates, sent, received);
        let row = self.row(warm_up, &fates, sent, received, used);
        // What is not known of one interval is part of what the next one used.
        self.used_before.pinger = used.pinger.or(self.used_before.pinger);
        self.used_before.reflector = used.reflector.or(self.used_before.reflector);
        row
    }

    fn row(
        &self,
        warm_up: bool,
        fates: &Fates,
        sent: &SendInterval,
        received: &ReceiveInterval,
        used: Ends<Resources>,
    ) -> IntervalRow {
        let interval = self.plan.interval_ns;
        let start = interval.saturating_mul(sent.index);
        let summary = |measured: &Measured, denominator| summary(measured, denominator, interval);
        let over = |now: Option<Resources>, before: Option<Resources>| Some(now?.since(&before.unwrap_or_default()));
        IntervalRow {
            interval: sent.index,
            start_ns: start.get(),
            length_ns: sent.length.get(),
            warm_up,
            scheduled: fates.scheduled,
            sent: sent.sent,
            answered: fates.answered,
            lost: fates.lost,
            late: fates.late,
            unsent: fates.unsent,
            duplicate: fates.duplicate,
            reordered: fates.reordered,
            achieved_rate_hz: per_second(sent.sent, sent.length),
            supply_to_receive: summary(&received.supply_to_receive, fates.scheduled),
            rtt: summary(&received.rtt, fates.answered),
            send_lateness: summary(&sent.lateness, sent.lateness.histogram.count()),
            fall_behinds: sent.fall_behinds,
            used: Ends {
                pinger: over(used.pinger, self.used_before.pinger),
                reflector: over(used.reflector, self.used_before.reflector),
            },
        }
    }

    /// What the run came to. `seen` is what both hosts saw beside the messages.
    pub fn finish(self, sent: &SendTotals, received: &ReceiveTotals, seen: &Seen) -> Outcome {
        let Self { plan, warm_up, after_warm_up, impossible, .. } = self;
        let window_after = after_warm_up.window(&plan);
        let fates_after_warm_up = after_warm_up.fates;
        let mut whole = warm_up;
        whole.merge(&after_warm_up);
        let length = if plan.pacing == Pacing::Closed { sent.sending } else { sent.length };
        Outcome {
            fates: whole.fates,
            fates_after_warm_up,
            fall_behinds: whole.fall_behinds,
            achieved_rate_hz: per_second(sent.sent_by_plan_end, length),
            answered_rate_hz: per_second(received.answered, length),
            whole: whole.window(&plan),
            after_warm_up: window_after,
            losses: losses(sent, whole.fates.lost, seen),
            impossible,
            clamped: whole.measured().iter().map(|(_, measured)| measured.histogram.clamped()).sum(),
            histograms: whole.into_histograms(),
        }
    }
}

impl Part {
    fn add(&mut self, fates: &Fates, sent: &SendInterval, received: &ReceiveInterval) {
        add_fates(&mut self.fates, fates);
        self.fall_behinds += sent.fall_behinds;
        self.lateness.merge(&sent.lateness);
        self.gap.merge(&sent.gap);
        self.supply_to_receive.merge(&received.supply_to_receive);
        self.rtt.merge(&received.rtt);
        self.turnaround.merge(&received.turnaround);
    }

    fn merge(&mut self, other: &Self) {
        add_fates(&mut self.fates, &other.fates);
        self.fall_behinds += other.fall_behinds;
        self.lateness.merge(&other.lateness);
        self.gap.merge(&other.gap);
        self.supply_to_receive.merge(&other.supply_to_receive);
        self.rtt.merge(&other.rtt);
        self.turnaround.merge(&other.turnaround);
    }

    fn window(&self, plan: &Plan) -> Window {
        let of_values = |measured: &Measured| summary(measured, measured.histogram.count(), plan.interval_ns);
        Window {
            supply_to_receive_ns: summary(&self.supply_to_receive, self.fates.scheduled, plan.interval_ns),
            rtt_ns: of_values(&self.rtt),
            send_lateness_ns: if plan.pacing == Pacing::Closed { None } else { of_values(&self.lateness) },
            turnaround_ns: of_values(&self.turnaround),
            send_gap_ns: of_values(&self.gap),
        }
    }

    fn measured(&self) -> [(Metric, &Measured); 5] {
        [
            (Metric::SupplyToReceive, &self.supply_to_receive),
            (Metric::Rtt, &self.rtt),
            (Metric::SendLateness, &self.lateness),
            (Metric::Turnaround, &self.turnaround),
            (Metric::SendGap, &self.gap),
        ]
    }

    fn into_histograms(self) -> BTreeMap<Metric, Histogram> {
        BTreeMap::from([
            (Metric::SupplyToReceive, self.supply_to_receive.histogram),
            (Metric::Rtt, self.rtt.histogram),
            (Metric::SendLateness, self.lateness.histogram),
            (Metric::Turnaround, self.turnaround.histogram),
            (Metric::SendGap, self.gap.histogram),
        ])
    }
}

/// What became of the messages of one interval. They add up, whatever answers somebody has made up.
fn fates(sent: &SendInterval, received: &ReceiveInterval) -> Fates {
    let answered = received.answered.min(sent.sent);
    let late = received.late.min(sent.sent - answered);
    Fates {
        scheduled: sent.sent + sent.refused + sent.unsent,
        answered,
        lost: sent.sent - answered - late,
        late,
        unsent: sent.unsent + sent.refused,
        duplicate: received.duplicate,
        reordered: received.reordered,
    }
}

fn add_fates(sum: &mut Fates, more: &Fates) {
    sum.scheduled += more.scheduled;
    sum.answered += more.answered;
    sum.lost += more.lost;
    sum.late += more.late;
    sum.unsent += more.unsent;
    sum.duplicate += more.duplicate;
    sum.reordered += more.reordered;
}

#[expect(clippy::cast_precision_loss, reason = "counts far below 2^53")]
fn per_second(count: u64, length: Nanos) -> Option<f64> {
    (length > Nanos::ZERO).then(|| count as f64 / length.as_secs_f64())
}

#[cfg(test)]
mod tests;
