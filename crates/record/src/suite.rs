//! What a suite found: the content of `suite.json`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tickpong_units::Seed;

use crate::{Figure, FormatVersion, Run, serial};

/// The version of `suite.json`.
///
/// - 1.0: first.
pub const SUITE_FORMAT: FormatVersion = FormatVersion::new(1, 0);

/// A suite's results: the three figures, and every scenario beside them.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SuiteResult {
    /// Version of this file.
    pub format: FormatVersion,
    /// Its name.
    pub suite: String,
    /// What it is for, in its own words.
    pub about: String,
    /// SHA-256 of the suite's text.
    pub digest: String,
    /// Where the order of the runs came from.
    #[serde(with = "serial::seed")]
    #[schemars(with = "u64")]
    pub seed: Seed,
    /// Whether it was ended before all was played.
    pub interrupted: bool,
    /// Latency at the base rate.
    pub base_rate: Option<Series>,
    /// The highest sustained rate.
    pub highest_rate: Option<HighestRate>,
    /// Latency at that rate.
    pub top_rate: Option<Series>,
    /// All others, in the suite's order.
    pub scenarios: Vec<Series>,
}

impl SuiteResult {
    /// Every series, by the order in which they are reported.
    pub fn series(&self) -> impl Iterator<Item = &Series> {
        self.base_rate.iter().chain(&self.top_rate).chain(&self.scenarios)
    }
}

/// One plan, played several times.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Series {
    /// The scenario.
    pub name: String,
    /// How often the suite asked for it.
    pub repetitions: u32,
    /// SupplyToReceive of whole runs, from run to run.
    pub whole: AcrossRuns,
    /// The same without the warm-up.
    pub after_warm_up: AcrossRuns,
    /// What the runs used.
    pub used: Used,
    /// The runs that were made, by repetition.
    pub runs: Vec<SeriesRun>,
    /// Those that could not be made, and why.
    pub failed: Vec<FailedRun>,
}

/// How the figures of SupplyToReceive moved from run to run, over the valid ones; nanoseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct AcrossRuns {
    /// Valid runs.
    pub runs: u64,
    /// Of the means, fractions cut off.
    pub mean: Option<Spread>,
    /// Of the medians.
    pub p50: Option<Spread>,
    /// Of the 99th percentiles.
    pub p99: Option<Spread>,
    /// Of 0.999.
    pub p999: Option<Spread>,
    /// Of the maxima of answered messages.
    pub max: Option<Spread>,
}

/// Lowest, middle and highest of the runs' figures. Of an even number the middle is the lower one of two.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Spread {
    /// The lowest.
    pub lowest: Figure,
    /// The one in the middle.
    pub median: Figure,
    /// The highest.
    pub highest: Figure,
}

/// What the runs of a series used, each in the median of its runs; memory is the most of any.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Used {
    /// CPU time of the pinger's hot threads a message.
    pub pinger_ns_per_message: Option<f64>,
    /// Of the reflector's.
    pub reflector_ns_per_message: Option<f64>,
    /// CPU time of the pinger's hot threads over the time of the plan.
    pub pinger_cores: Option<f64>,
    /// Of the reflector's.
    pub reflector_cores: Option<f64>,
    /// Share of the pinger's turns that did work.
    pub pinger_busy_share: Option<f64>,
    /// Of the reflector's.
    pub reflector_busy_share: Option<f64>,
    /// Peak memory of the pinger.
    pub pinger_peak_bytes: Option<u64>,
    /// Of the reflector.
    pub reflector_peak_bytes: Option<u64>,
}

/// A run of a series: all of `run.json`, and these.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct SeriesRun {
    /// Its directory, below the suite's.
    pub directory: String,
    /// SupplyToReceive interval by interval, the warm-up left out.
    pub across_intervals: AcrossIntervals,
    /// What `run.json` holds.
    #[serde(flatten)]
    pub run: Run,
}

/// How a run's quantiles of SupplyToReceive moved from interval to interval; nanoseconds.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct AcrossIntervals {
    /// Of the medians.
    pub p50: Option<Range>,
    /// Of the 99th percentiles.
    pub p99: Option<Range>,
    /// Of the maxima of the answered messages.
    pub max: Option<Range>,
    /// Maximum of the first interval of the run, warm-up or not.
    pub first_max: Option<Figure>,
    /// Greatest maximum of all later ones.
    pub later_max: Option<Figure>,
}

/// Lowest and highest.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Range {
    /// The lowest.
    pub lowest: Figure,
    /// The highest; infinite where messages of an interval were never answered.
    pub highest: Figure,
}

/// A run that could not be made.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct FailedRun {
    /// From one.
    pub repetition: u32,
    /// Why not.
    pub because: String,
}

/// The highest sustained rate, and how it was found.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct HighestRate {
    /// The highest rate that held, messages a second; `null` when none did.
    pub sustained_hz: Option<u64>,
    /// From there to the lowest rate above that failed; `null` when none failed up to the end of the search.
    pub uncertainty_hz: Option<u64>,
    /// What gave way at the lowest rate that failed.
    pub gave_way: Option<GaveWay>,
    /// How that showed.
    pub because: Option<String>,
    /// The highest rate at which p99 of SupplyToReceive is at most twice the least p99 of all rates.
    pub knee_hz: Option<u64>,
    /// Messages lost or late that a sustained rate may have, as a share.
    pub allowed_loss: f64,
    /// How far achieved may stay below offered, and how fast a backlog may grow, as a share.
    pub allowed_shortfall: f64,
    /// Every run of the search, in the order it was made.
    pub runs: Vec<TriedRate>,
    /// Runs of the search that could not be made, and why.
    pub failed: Vec<FailedRun>,
}

/// One run of the search.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct TriedRate {
    /// Its directory, below the suite's.
    pub directory: String,
    /// Messages a second.
    pub offered_rate_hz: u64,
    /// Sent by the plan's end.
    pub achieved_rate_hz: Option<f64>,
    /// Whether the rate was sustained.
    pub held: bool,
    /// What gave way, where it was not.
    pub gave_way: Option<GaveWay>,
    /// How that showed.
    pub because: Option<String>,
    /// Messages lost or late.
    pub missing: u64,
    /// Median of SupplyToReceive after the warm-up, nanoseconds.
    pub supply_to_receive_p50_ns: Figure,
    /// Its 99th percentile.
    pub supply_to_receive_p99_ns: Figure,
    /// Its maximum, of answered messages.
    pub supply_to_receive_max_ns: Option<u64>,
    /// The pinger's CPU time a message.
    pub pinger_ns_per_message: Option<f64>,
    /// Share of the pinger's turns that did work.
    pub pinger_busy_share: Option<f64>,
    /// Share of the reflector's turns that did work.
    pub reflector_busy_share: Option<f64>,
}

/// What could not keep up with a rate.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum GaveWay {
    /// A clock: the run proves nothing.
    Clock,
    /// The pinger did not send in time.
    Generator,
    /// The reflector, which was busy all the time, while a backlog grew.
    Reflector,
    /// A queue that the hosts can see overflowed.
    Queue,
    /// Neither host saw where messages went, or what delayed them.
    Network,
}

impl GaveWay {
    /// Its word in files.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Clock => "clock",
            Self::Generator => "generator",
            Self::Reflector => "reflector",
            Self::Queue => "queue",
            Self::Network => "network",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_schema_is_the_types() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(SuiteResult)).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/suite.schema.json");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        let published = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            published == schema,
            "schemas/suite.schema.json is out of date: UPDATE_SCHEMAS=1 cargo test -p tickpong-record"
        );
    }
}
