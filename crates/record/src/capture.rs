//! What the engine hands over while a run goes on: one interval at a time, in buffers that go back to it.

use tickpong_stats::Histogram;
use tickpong_units::Nanos;

/// A metric within one interval: its histogram, and when its longest value was due.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// All values.
    pub histogram: Histogram,
    /// The intended instant, from the start of the run, of the message with the longest value.
    pub longest_at: Nanos,
}

impl Measured {
    /// Counts one value, of the message intended at `at` from the start.
    #[inline]
    pub fn record(&mut self, value: Nanos, at: Nanos) {
        if self.histogram.record(value) {
            self.longest_at = at;
        }
    }

    /// Adds what `other` holds.
    pub fn merge(&mut self, other: &Self) {
        if other.histogram.max() > self.histogram.max() {
            self.longest_at = other.longest_at;
        }
        self.histogram.merge(&other.histogram);
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        self.histogram.clear();
        self.longest_at = Nanos::ZERO;
    }
}

/// The sending side of one interval: the messages that the plan wanted sent within it.
#[derive(Clone, Debug, Default)]
pub struct SendInterval {
    /// Which interval, from zero, warm-up included.
    pub index: u64,
    /// How much of it was played: all, but for the last of a plan, or of one that was cut.
    pub length: Nanos,
    /// Messages that the kernel took.
    pub sent: u64,
    /// Messages that the kernel refused.
    pub refused: u64,
    /// Messages that the end of the run came before.
    pub unsent: u64,
    /// Sends that went out when the next message was already due.
    pub fall_behinds: u64,
    /// Sent less intended.
    pub lateness: Measured,
    /// A send less the send before it.
    pub gap: Measured,
}

impl SendInterval {
    /// Whether nothing was due in it.
    pub fn is_empty(&self) -> bool {
        self.sent + self.refused + self.unsent == 0
    }

    /// Makes the buffer ready for interval `index`.
    pub fn reset(&mut self, index: u64) {
        (self.index, self.length) = (index, Nanos::ZERO);
        (self.sent, self.refused, self.unsent, self.fall_behinds) = (0, 0, 0, 0);
        self.lateness.clear();
        self.gap.clear();
    }
}

/// The receiving side of one interval: the answers to messages that the plan wanted sent within it.
#[derive(Clone, Debug, Default)]
pub struct ReceiveInterval {
    /// Which interval, from zero, warm-up included.
    pub index: u64,
    /// Messages answered before their deadline.
    pub answered: u64,
    /// Messages answered after it.
    pub late: u64,
    /// Further answers to answered messages.
    pub duplicate: u64,
    /// Answers that came after an answer to a later message.
    pub reordered: u64,
    /// Received less intended, of the answered.
    pub supply_to_receive: Measured,
    /// Received less sent, of the answered.
    pub rtt: Measured,
    /// Reflector's departure less its arrival, of the answered.
    pub turnaround: Measured,
}

impl ReceiveInterval {
    /// Whether nothing came for it.
    pub fn is_empty(&self) -> bool {
        self.answered + self.late + self.duplicate + self.reordered == 0
    }

    /// Makes the buffer ready for interval `index`.
    pub fn reset(&mut self, index: u64) {
        (self.index, self.answered, self.late, self.duplicate, self.reordered) = (index, 0, 0, 0, 0);
        self.supply_to_receive.clear();
        self.rtt.clear();
        self.turnaround.clear();
    }
}

/// One answered or late message, raw.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Observation {
    /// Its sequence number.
    pub seq: u64,
    /// When the plan wanted it sent, from the start of the run.
    pub intended: Nanos,
    /// When it was sent, from the start.
    pub sent: Nanos,
    /// When its answer came, from the start.
    pub received: Nanos,
    /// How long the reflector kept it.
    pub turnaround: Nanos,
}

/// What the sending side counted over the run, beside the intervals.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SendTotals {
    /// How much of the plan was played: all of it, or less where it was cut.
    pub length: Nanos,
    /// Messages whose intended instant lies within that.
    pub scheduled: u64,
    /// Messages that the kernel took.
    pub sent: u64,
    /// Those of them sent before its end.
    pub sent_by_plan_end: u64,
    /// Messages that the kernel refused.
    pub refused: u64,
    /// From the first to the last send.
    pub sending: Nanos,
}

/// What the receiving side counted over the run, beside the intervals.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ReceiveTotals {
    /// Messages answered in time.
    pub answered: u64,
    /// Messages answered after the deadline.
    pub late: u64,
    /// Further answers to answered messages.
    pub duplicate: u64,
    /// Answers that came after an answer to a later message.
    pub reordered: u64,
    /// Datagrams that are none of ours.
    pub malformed: u64,
    /// Datagrams of another session, or that no pinger can get.
    pub foreign: u64,
    /// Answers whose payload is not what was sent, or to what was not sent.
    pub corrupt: u64,
    /// Answers to messages that were no longer waited for.
    pub stale: u64,
}

/// How the loop spent its turns.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Turns {
    /// All of them.
    pub all: u64,
    /// Those that sent or received something.
    pub busy: u64,
}

impl Turns {
    /// The part of the turns that did work; zero where there were none.
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    pub fn busy_share(self) -> f64 {
        if self.all == 0 { 0.0 } else { self.busy as f64 / self.all as f64 }
    }
}
