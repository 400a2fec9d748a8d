//! A run: what was asked, what happened, on what. The content of `run.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tickpong_units::Seed;

use crate::{Cpu, Figure, FormatVersion, InForce, Memory, Metric, Plan, serial};

/// One run, complete.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Run {
    /// Version of this file.
    pub format: FormatVersion,
    /// Where the numbers come from.
    pub source: Source,
    /// Which implementation played: `probe` on hardware.
    pub engine: String,
    /// Where chance came from.
    #[serde(with = "serial::seed")]
    #[schemars(with = "u64")]
    pub seed: Seed,
    /// Whether the run offered what its plan asks, undisturbed by tickpong itself.
    pub valid: bool,
    /// Why it did not; empty for a valid run. Each begins with a stable word and a colon.
    pub invalid_because: Vec<String>,
    /// Whether its plan was cut, by a person or by the loss of the other end: what was not yet due is no part of it.
    pub interrupted: bool,
    /// What weakens the figures without making them wrong.
    pub warnings: Vec<String>,
    /// What the user said of it.
    pub labels: BTreeMap<String, String>,
    /// What tells this run from others.
    pub identity: Identity,
    /// What was asked.
    pub plan: Plan,
    /// What became of every scheduled message, over the whole run.
    pub fates: Fates,
    /// The same without the warm-up.
    pub fates_after_warm_up: Fates,
    /// Where the lost ones went, as far as the two hosts can see.
    pub losses: Losses,
    /// What arrived and was none of the run's messages.
    pub ignored: Ignored,
    /// Messages sent by the plan's end, a second of what was played of it.
    pub achieved_rate_hz: Option<f64>,
    /// Messages answered in time, a second of what was played of the plan.
    pub answered_rate_hz: Option<f64>,
    /// Sends that went out when the next message was already due.
    pub fall_behinds: u64,
    /// Every message, the warm-up included.
    pub whole: Window,
    /// The messages after the warm-up.
    pub after_warm_up: Window,
    /// CPU of both ends.
    pub cpu: Ends<Cpu>,
    /// Memory of both ends.
    pub memory: Ends<Memory>,
    /// What the kernel granted both ends.
    pub in_force: Ends<InForce>,
    /// The pinger's clock, by which everything but the turnaround is measured.
    pub clock: ClockFacts,
    /// The reflector's clock, which measures the turnaround.
    pub reflector_clock: Option<ClockFacts>,
    /// The pinger's socket, and the reflector's in it.
    pub sockets: Sockets,
}

/// Where a run's numbers come from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// Two hosts.
    Hardware,
    /// The simulator.
    Simulated,
}

/// What tells a run from others.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Identity {
    /// Wall time of the start, RFC 3339, UTC.
    pub started_at: Option<String>,
    /// Which kind of two hosts one machine was made: `namespaces`, `user-namespaces` or `loopback`; `null` where the hosts were given.
    pub hosts: Option<String>,
    /// Which pair of hosts, by the lab's name.
    pub testbed: Option<String>,
    /// Which scenario of a suite.
    pub scenario: Option<String>,
    /// Which boot of the hosts, or which day.
    pub occasion: Option<String>,
    /// Which repetition of its plan, from one.
    pub repetition: Option<u64>,
    /// SHA-256 of the plan.
    pub plan_hash: String,
    /// The pinger's tickpong.
    pub tickpong_version: String,
    /// SHA-256 of the pinger's program.
    pub binary_sha256: Option<String>,
    /// The kernel's name for this boot of each host.
    pub boot_id: Ends<String>,
    /// SHA-256 of each host's disclosure.
    pub host_hash: Ends<String>,
}

/// Something of each of the two hosts, where it is known.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Ends<T> {
    /// The pinger's.
    pub pinger: Option<T>,
    /// The reflector's.
    pub reflector: Option<T>,
}

/// What became of messages. `answered + lost + late + unsent` is `scheduled`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Fates {
    /// Messages that the plan wanted sent.
    pub scheduled: u64,
    /// Answered before their deadline.
    pub answered: u64,
    /// Sent, and never answered.
    pub lost: u64,
    /// Answered after their deadline.
    pub late: u64,
    /// Not sent: the run's end came first, or the kernel refused them.
    pub unsent: u64,
    /// Further answers to answered messages; counted beside.
    pub duplicate: u64,
    /// Answers that came after an answer to a later message (RFC 4737); counted beside.
    pub reordered: u64,
}

impl Fates {
    /// Whether the fates add up to what was scheduled.
    pub const fn add_up(&self) -> bool {
        self.answered + self.lost + self.late + self.unsent == self.scheduled
    }
}

/// Where lost messages went. The first four add up to `lost`.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Losses {
    /// Answers dropped because the pinger's socket buffer was full.
    pub pinger_socket: u64,
    /// Pings dropped because the reflector's socket buffer was full.
    pub reflector_socket: u64,
    /// Pings that the reflector had in hand and whose answer its kernel refused.
    pub reflector_unanswered: u64,
    /// Lost where neither host can see: in a network, an adapter, a firewall.
    pub unexplained: u64,
    /// Of the unexplained, those that never reached the reflector; `null` where it made no report.
    pub unexplained_outbound: Option<u64>,
    /// Of the unexplained, those whose answer was lost on its way back; `null` where the reflector made no report.
    pub unexplained_inbound: Option<u64>,
    /// Of the unsent messages, those that the pinger's kernel refused.
    pub send_refused: u64,
}

/// Datagrams that arrived and count for nothing.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Ignored {
    /// None of tickpong's, or cut short, at the pinger.
    pub malformed: u64,
    /// Of another session, at the pinger.
    pub foreign: u64,
    /// Answers whose payload is not what was sent, or to what was not sent.
    pub corrupt: u64,
    /// Answers to messages that were no longer waited for.
    pub stale: u64,
    /// None of tickpong's, or cut short, at the reflector.
    pub reflector_malformed: Option<u64>,
    /// Of another session, at the reflector.
    pub reflector_foreign: Option<u64>,
    /// Pings that came more than once, at the reflector; it answers each.
    pub reflector_duplicate: Option<u64>,
}

/// The metrics of one part of a run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Window {
    /// Received less intended: what an application feels. Quantiles are over scheduled messages.
    pub supply_to_receive_ns: Option<Summary>,
    /// Received less sent, over answered messages.
    pub rtt_ns: Option<Summary>,
    /// Sent less intended, over sent messages; `null` in a closed loop.
    pub send_lateness_ns: Option<Summary>,
    /// Reflector's departure less its arrival, over answered messages.
    pub turnaround_ns: Option<Summary>,
    /// A send less the send before it.
    pub send_gap_ns: Option<Summary>,
}

impl Window {
    /// The summary of a metric.
    pub const fn metric(&self, metric: Metric) -> Option<&Summary> {
        match metric {
            Metric::SupplyToReceive => self.supply_to_receive_ns.as_ref(),
            Metric::Rtt => self.rtt_ns.as_ref(),
            Metric::SendLateness => self.send_lateness_ns.as_ref(),
            Metric::Turnaround => self.turnaround_ns.as_ref(),
            Metric::SendGap => self.send_gap_ns.as_ref(),
        }
    }
}

/// One metric, summarised; nanoseconds.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Summary {
    /// Values there are.
    pub count: u64,
    /// Messages that the quantiles are over; those without a value lie above every value.
    pub denominator: u64,
    /// Exact.
    pub min: Option<u64>,
    /// Of the values there are.
    pub mean: Option<f64>,
    /// Sample standard deviation of the values there are.
    pub sd: Option<f64>,
    /// The median.
    pub p50: Figure,
    /// 0.9.
    pub p90: Figure,
    /// 0.99.
    pub p99: Figure,
    /// 0.999.
    pub p999: Figure,
    /// 0.9999.
    pub p9999: Figure,
    /// Exact; of the values there are.
    pub max: Option<u64>,
    /// The interval that held the maximum, from zero, by its message's intended instant.
    pub max_at_interval: Option<u64>,
    /// The intended instant of that message, from the start of the run.
    pub max_at_ns: Option<u64>,
    /// Values beyond the histogram's range: counted in its last cell.
    pub clamped: u64,
    /// Quantiles with fewer than ten observations beyond them.
    pub thin: Vec<String>,
}

/// A clock, and what it is worth.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ClockFacts {
    /// `tsc`, `arm-counter` or `monotonic`.
    pub kind: String,
    /// Of the counter.
    pub frequency_hz: Option<u64>,
    /// The smallest step seen.
    pub resolution_ns: u64,
    /// What one reading costs.
    pub read_cost_ns: f64,
    /// How far it ran from the kernel's raw clock over the run.
    pub drift_ppm: f64,
    /// Why the counter was refused.
    pub counter_refused: Option<String>,
}

/// The data socket of one end.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Sockets {
    /// Bytes of receive buffer asked for.
    pub receive_buffer_asked: u64,
    /// Bytes the kernel gives, comparable with what was asked: half of what it says, because it doubles a request for its own
    /// book-keeping.
    pub receive_buffer_granted: u64,
    /// Bytes of send buffer asked for.
    pub send_buffer_asked: u64,
    /// Bytes the kernel gives, by the same account.
    pub send_buffer_granted: u64,
    /// Whether the kernel's limit was passed by right (`CAP_NET_ADMIN`).
    pub forced: bool,
    /// Datagrams that this socket dropped because its buffer was full; `null` where the kernel does not say.
    pub drops: Option<u64>,
    /// Path MTU from here.
    pub path_mtu_bytes: Option<u64>,
    /// UDP counters of the whole host over the run.
    pub host_udp: Option<UdpCounters>,
    /// The reflector's.
    pub reflector: Option<Box<Self>>,
}

/// `Udp` counters of a host's network namespace, as differences over the run.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct UdpCounters {
    /// Delivered to programs.
    pub in_datagrams: u64,
    /// For ports nobody listens on.
    pub no_ports: u64,
    /// Not delivered, all causes.
    pub in_errors: u64,
    /// Sent.
    pub out_datagrams: u64,
    /// Not delivered because a receive buffer was full.
    pub receive_buffer_errors: u64,
    /// Not sent because a send buffer was full.
    pub send_buffer_errors: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        /// To the last bit: a report from the directory is to be the one that was printed.
        #[test]
        fn a_mean_reads_back_as_it_was_written(mean in 0.0_f64..1e12) {
            let json = serde_json::to_string(&mean).unwrap();
            proptest::prop_assert_eq!(serde_json::from_str::<f64>(&json).unwrap().to_bits(), mean.to_bits());
        }
    }

    /// The schema in the tree is the one the types have: who reads `run.json` may rely on it.
    #[test]
    fn the_published_schema_is_the_types() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(Run)).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/run.schema.json");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap();
        assert!(
            published == schema,
            "schemas/run.schema.json is out of date: UPDATE_SCHEMAS=1 cargo test -p tickpong-record"
        );
    }
}
