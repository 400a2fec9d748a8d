//! What a run is asked to do.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use thiserror::Error;
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};

use crate::serial;

/// What a run is asked to do. A `Plan` that exists can be run: [`Plan::checked`] is the only check.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Plan {
    /// Messages a second; `null` in a closed loop, which has none.
    #[serde(with = "serial::rate")]
    #[schemars(with = "Option<u64>")]
    pub offered_rate_hz: Option<Rate>,
    /// Bytes of UDP payload; of a trace, the largest.
    #[serde(with = "serial::payload")]
    #[schemars(with = "u64")]
    pub payload_bytes: PayloadLen,
    /// How long, after the warm-up.
    #[serde(with = "serial::nanos")]
    #[schemars(with = "u64")]
    pub duration_ns: Nanos,
    /// The leading part, sent and recorded like the rest; whole intervals.
    #[serde(with = "serial::nanos")]
    #[schemars(with = "u64")]
    pub warm_up_ns: Nanos,
    /// Length of an interval.
    #[serde(with = "serial::nanos")]
    #[schemars(with = "u64")]
    pub interval_ns: Nanos,
    /// How long after its intended instant a message may be answered and still count as answered.
    #[serde(with = "serial::nanos")]
    #[schemars(with = "u64")]
    pub deadline_ns: Nanos,
    /// Whether the next message waits for the answer.
    pub pacing: Pacing,
    /// When messages are due.
    pub schedule: ScheduleKind,
    /// Where the schedule's chance comes from.
    #[serde(with = "serial::seed")]
    #[schemars(with = "u64")]
    pub seed: Seed,
    /// How the pinger sends and receives.
    pub api_pinger: Api,
    /// How the reflector does.
    pub api_reflector: Api,
    /// CPU of the pinger's one hot thread, or of its sender.
    pub tx_cpu: Option<u64>,
    /// CPU of the pinger's receiver, where that is a thread of its own.
    pub rx_cpu: Option<u64>,
}

impl Plan {
    /// The longest receive deadline: a histogram's range must hold every answer in time.
    pub const MAX_DEADLINE: Nanos = Nanos::from_secs(60);
    /// The longest run, warm-up included.
    pub const MAX_LENGTH: Nanos = Nanos::from_secs(7 * 24 * 3_600);
    /// The most intervals that a deadline may span: all of them are open at once, and each takes memory.
    pub const MAX_INTERVALS_A_DEADLINE: u64 = 10;
    /// The most messages a second of a schedule that must be gone through one by one. Those that a pinger could not send are counted after
    /// the run; at ten nanoseconds each, that takes a tenth of the plan at the most.
    pub const MAX_STEPPED_RATE: Rate = Rate::new(10_000_000).expect("not zero");
    /// The shortest interval: below it, closing intervals would disturb what they measure.
    pub const MIN_INTERVAL: Nanos = Nanos::from_millis(10);

    /// The plan, if it can be run.
    ///
    /// # Errors
    ///
    /// Names the first thing that makes it impossible.
    pub fn checked(self) -> Result<Self, PlanError> {
        let Self { duration_ns: duration, warm_up_ns: warm_up, interval_ns: interval, deadline_ns: deadline, .. } =
            self;
        if duration == Nanos::ZERO {
            return Err(PlanError::NoDuration);
        }
        if interval < Self::MIN_INTERVAL {
            return Err(PlanError::ShortInterval { interval });
        }
        if deadline == Nanos::ZERO || deadline > Self::MAX_DEADLINE {
            return Err(PlanError::Deadline { deadline });
        }
        if deadline.whole(interval) > Self::MAX_INTERVALS_A_DEADLINE {
            return Err(PlanError::DeadlineOverInterval { deadline, interval });
        }
        if warm_up.get() % interval.get() != 0 {
            return Err(PlanError::WarmUp { warm_up, interval });
        }
        if self.length() > Self::MAX_LENGTH {
            return Err(PlanError::TooLong { length: self.length() });
        }
        if (self.pacing == Pacing::Closed) != self.offered_rate_hz.is_none() {
            return Err(PlanError::ClosedWithRate);
        }
        if self.pacing == Pacing::Closed && self.schedule != ScheduleKind::Fixed {
            return Err(PlanError::ClosedWithSchedule { schedule: self.schedule });
        }
        let stepped = matches!(self.schedule, ScheduleKind::Poisson | ScheduleKind::Trace(_));
        if let Some(rate) = self.offered_rate_hz.filter(|rate| stepped && *rate > Self::MAX_STEPPED_RATE) {
            return Err(PlanError::SteppedTooFast { schedule: self.schedule, rate });
        }
        if self.pacing == Pacing::Closed && self.rx_cpu.is_some() {
            return Err(PlanError::ClosedWithTwoThreads);
        }
        Ok(self)
    }

    /// Warm-up and duration together.
    pub fn length(&self) -> Nanos {
        self.warm_up_ns.saturating_add(self.duration_ns)
    }

    /// How many intervals the warm-up is.
    pub fn warm_up_intervals(&self) -> u64 {
        self.warm_up_ns.whole(self.interval_ns)
    }

    /// SHA-256 of the plan's canonical JSON, in hexadecimal, without the numbers of CPUs: they may be tickpong's choice, and mean nothing on
    /// another host. How many threads play, and how the reflector does, belongs to what is played: the same plan has the same hash on
    /// every host.
    ///
    /// # Panics
    ///
    /// Never: a plan always serialises.
    pub fn hash(&self) -> String {
        let anywhere = Self { tx_cpu: None, rx_cpu: self.rx_cpu.map(|_| 0), ..self.clone() };
        hex(&Sha256::digest(serde_json::to_vec(&anywhere).expect("a plan serialises")))
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Why a plan cannot be run.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[expect(missing_docs, reason = "the fields are the numbers that the messages show")]
pub enum PlanError {
    /// Nothing would be measured.
    #[error("plan a run of no duration: want --duration 1s or more")]
    NoDuration,
    /// Too short to close in time.
    #[error("plan intervals of {interval}: want at least {}", Plan::MIN_INTERVAL)]
    ShortInterval { interval: Nanos },
    /// Out of range.
    #[error("plan a deadline of {deadline}: want more than nothing and at most {}", Plan::MAX_DEADLINE)]
    Deadline { deadline: Nanos },
    /// All intervals younger than the deadline are open, and each takes memory.
    #[error(
        "plan a deadline of {deadline} with intervals of {interval}: at most ten intervals may fit a deadline; lengthen --interval or shorten --deadline"
    )]
    DeadlineOverInterval { deadline: Nanos, interval: Nanos },
    /// An interval would belong to both parts.
    #[error("plan a warm-up of {warm_up} with intervals of {interval}: want a whole number of intervals")]
    WarmUp { warm_up: Nanos, interval: Nanos },
    /// A week at most.
    #[error("plan a run of {length}: want a week at most")]
    TooLong { length: Nanos },
    /// Contradiction.
    #[error("plan a closed loop with a rate, or an open one without: a closed loop goes as fast as answers come")]
    ClosedWithRate,
    /// Contradiction.
    #[error("plan a closed loop with the schedule `{schedule}`: in a closed loop the answers are the schedule")]
    ClosedWithSchedule { schedule: ScheduleKind },
    /// What a pinger cannot send is counted after the run.
    #[error(
        "plan {rate} messages a second by the schedule `{schedule}`: want at most {}; counting what could not be sent would take too long",
        Plan::MAX_STEPPED_RATE
    )]
    SteppedTooFast { schedule: ScheduleKind, rate: Rate },
    /// One thread must do both.
    #[error(
        "plan a closed loop on two threads: sending waits for receiving; use --cpu instead of --tx-cpu and --rx-cpu"
    )]
    ClosedWithTwoThreads,
}

/// Whether the next message waits for the answer to the last.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pacing {
    /// It does: classic ping-pong.
    Closed,
    /// It does not: messages are due by a schedule.
    Open,
}

/// When messages are due.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub enum ScheduleKind {
    /// So many at the same instant, at the mean rate.
    Burst(u32),
    /// Evenly, at the rate.
    Fixed,
    /// With exponential gaps, at the mean rate, by the plan's seed.
    Poisson,
    /// As a file says; its digest, so that two plans with other traces differ.
    Trace(String),
}

impl fmt::Display for ScheduleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Burst(n) => write!(f, "burst {n}"),
            Self::Fixed => f.write_str("fixed"),
            Self::Poisson => f.write_str("poisson"),
            Self::Trace(digest) => write!(f, "trace {digest}"),
        }
    }
}

impl FromStr for ScheduleKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let burst = |n: &str| n.parse().ok().filter(|&n| (1..=1_000_000).contains(&n)).map(Self::Burst);
        match text.split_once(' ') {
            None if text == "fixed" => Ok(Self::Fixed),
            None if text == "poisson" => Ok(Self::Poisson),
            Some(("burst", n)) => burst(n).ok_or_else(|| format!("read `{n}` as a burst: want 1 to 1000000 messages")),
            Some(("trace", digest)) => Ok(Self::Trace(digest.to_owned())),
            _ => Err(format!("read `{text}` as a schedule: want fixed, poisson, burst N or trace FILE")),
        }
    }
}

impl From<ScheduleKind> for String {
    fn from(kind: ScheduleKind) -> Self {
        kind.to_string()
    }
}

impl TryFrom<String> for ScheduleKind {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

/// How a side sends and receives.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Api {
    /// Sockets; waits in the kernel.
    UdpBlock,
    /// Sockets; asks again and again, and each call polls the device's queue itself.
    UdpBusyPoll,
    /// Sockets; asks again and again.
    #[default]
    UdpSpin,
}

impl Api {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::UdpBlock, Self::UdpBusyPoll, Self::UdpSpin];
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::UdpBlock => "udp-block",
            Self::UdpBusyPoll => "udp-busy-poll",
            Self::UdpSpin => "udp-spin",
        })
    }
}

impl FromStr for Api {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|api| api.to_string() == text);
        found.ok_or_else(|| format!("use `{text}` as a network API: want udp-spin, udp-block or udp-busy-poll"))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn plan() -> Plan {
        Plan {
            offered_rate_hz: Rate::new(100_000),
            payload_bytes: PayloadLen::STANDARD,
            duration_ns: Nanos::from_secs(10),
            warm_up_ns: Nanos::from_secs(1),
            interval_ns: Nanos::from_secs(1),
            deadline_ns: Nanos::from_secs(1),
            pacing: Pacing::Open,
            schedule: ScheduleKind::Fixed,
            seed: Seed::new(1),
            api_pinger: Api::UdpSpin,
            api_reflector: Api::UdpBlock,
            tx_cpu: Some(2),
            rx_cpu: None,
        }
    }

    #[test]
    fn an_impossible_plan_says_what_is_impossible() {
        let refused = |change: fn(&mut Plan)| {
            let mut plan = plan();
            change(&mut plan);
            plan.checked().unwrap_err().to_string()
        };
        let said = [
            refused(|plan| plan.duration_ns = Nanos::ZERO),
            refused(|plan| plan.interval_ns = Nanos::from_millis(1)),
            refused(|plan| plan.warm_up_ns = Nanos::from_millis(1_500)),
            refused(|plan| plan.deadline_ns = Nanos::from_secs(61)),
            refused(|plan| plan.deadline_ns = Nanos::from_secs(30)),
            refused(|plan| plan.duration_ns = Nanos::MAX),
            refused(|plan| {
                plan.offered_rate_hz = Rate::new(10_000_001);
                plan.schedule = ScheduleKind::Poisson;
            }),
            refused(|plan| plan.pacing = Pacing::Closed),
            refused(|plan| {
                plan.pacing = Pacing::Closed;
                plan.offered_rate_hz = None;
                plan.schedule = ScheduleKind::Poisson;
            }),
        ];
        insta::assert_snapshot!(said.join("\n"));
    }

    #[test]
    fn the_hash_follows_the_plan() {
        let (one, mut other) = (plan(), plan());
        assert_eq!(one.hash(), other.hash());
        assert_eq!(one.hash().len(), 64);
        (other.tx_cpu, other.rx_cpu) = (Some(1), None);
        assert_eq!(one.hash(), other.hash(), "where it is played is not what is played");
        other.rx_cpu = Some(2);
        assert_ne!(one.hash(), other.hash(), "two threads are another plan");
        other = Plan { seed: Seed::new(2), ..one.clone() };
        assert_ne!(one.hash(), other.hash());
    }

    #[test]
    fn a_plan_reads_back_from_its_json() {
        let json = serde_json::to_string_pretty(&plan()).unwrap();
        insta::assert_snapshot!(json);
        assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan());
    }
}
