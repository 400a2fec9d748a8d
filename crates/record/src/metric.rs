//! What is measured of each message.

use std::fmt;

/// A quantity that every message has one value of.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Metric {
    /// Received less intended: what an application feels, queueing before the send included.
    SupplyToReceive,
    /// Received less sent.
    Rtt,
    /// Sent less intended: whether the load generator itself kept up.
    SendLateness,
    /// Reflector's departure less its arrival.
    Turnaround,
    /// A send less the send before it: how even the offered load was.
    SendGap,
}

impl Metric {
    /// All of them, in the order of reports.
    pub const ALL: [Self; 5] = [Self::SupplyToReceive, Self::Rtt, Self::SendLateness, Self::Turnaround, Self::SendGap];

    /// Its name in files: the tag of a histogram log.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::SupplyToReceive => "supply_to_receive",
            Self::Rtt => "rtt",
            Self::SendLateness => "send_lateness",
            Self::Turnaround => "turnaround",
            Self::SendGap => "send_gap",
        }
    }

    /// The metric of a tag.
    pub fn from_tag(tag: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|metric| metric.tag() == tag)
    }
}

impl fmt::Display for Metric {
    /// Its name for people.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::SupplyToReceive => "SupplyToReceive",
            Self::Rtt => "RTT",
            Self::SendLateness => "send lateness",
            Self::Turnaround => "turnaround",
            Self::SendGap => "gap between sends",
        })
    }
}
