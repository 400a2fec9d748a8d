//! The arguments of commands that make many runs.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use tickpong_record::Api;
use tickpong_units::{Nanos, PayloadLen, Rate, Seed};

use super::{FarArguments, label};

/// What becomes of many runs.
#[derive(Debug, Args)]
pub(crate) struct ResultsArguments {
    /// Where the order of the runs comes from [default: chance, recorded].
    #[arg(long, value_name = "SEED")]
    pub(crate) order: Option<Seed>,
    /// Stop at the first run that cannot be made.
    #[arg(long)]
    pub(crate) fail_fast: bool,
    /// Say something of every run, as in nic=x2522; may be repeated.
    #[arg(long, value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) label: Vec<(String, String)>,
    /// Print text, Markdown or JSON.
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: SuiteFormat,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub(crate) enum SuiteFormat {
    /// For programs: what suite.json holds.
    Json,
    /// For pull requests.
    Markdown,
    /// For people.
    #[default]
    Text,
}

#[derive(Debug, Args)]
pub(crate) struct SuiteArguments {
    /// market-data, quick, size-sweep, bursts, or a file.
    #[arg(value_name = "SUITE")]
    pub(crate) suite: String,
    #[command(flatten)]
    pub(crate) far: FarArguments,
    /// The directory of the results; of the same suite, it is taken up again.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    #[command(flatten)]
    pub(crate) results: ResultsArguments,
    /// Say what would be played, and how long it would take; play nothing.
    #[arg(long)]
    pub(crate) plan_only: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArguments {
    #[command(flatten)]
    pub(crate) far: FarArguments,
    /// The first rate.
    #[arg(long, value_name = "RATE", default_value = "100k")]
    pub(crate) from: Rate,
    /// The highest rate that is tried.
    #[arg(long, value_name = "RATE", default_value = "10M")]
    pub(crate) to: Rate,
    /// Try every step in turn, as published results do [default: double, then halve what lies between].
    #[arg(long, value_name = "RATE", conflicts_with = "resolution")]
    pub(crate) step: Option<Rate>,
    /// How close the highest sustained rate and the lowest that failed must come, as a share.
    #[arg(long, value_name = "SHARE", default_value = "0.02")]
    pub(crate) resolution: f64,
    /// Messages that a sustained rate may lose, as a share.
    #[arg(long, value_name = "SHARE", default_value = "0")]
    pub(crate) allow_loss: f64,
    /// How far a sustained rate may stay below what was offered, and how fast a wait may grow, as a share.
    #[arg(long, value_name = "SHARE", default_value = "0.001")]
    pub(crate) allow_shortfall: f64,
    /// Bytes of UDP payload, 56 to 65507.
    #[arg(long, value_name = "BYTES", default_value = "264")]
    pub(crate) size: PayloadLen,
    /// How long each run takes after its warm-up of one interval.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) duration: Nanos,
    /// Length of an interval; a run must have eight of them.
    #[arg(long, value_name = "TIME", default_value = "250ms")]
    pub(crate) interval: Nanos,
    /// How to send and receive: udp-spin, udp-block or udp-busy-poll.
    #[arg(long, value_name = "API", default_value = "udp-spin")]
    pub(crate) api: Api,
    /// The directory of the results; of the same search, it is taken up again.
    #[arg(short, long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) results: ResultsArguments,
}

#[derive(Debug, Args)]
pub(crate) struct CompareArguments {
    /// The directory of a run or a suite.
    #[arg(value_name = "A")]
    pub(crate) a: PathBuf,
    /// The directory of another.
    #[arg(value_name = "B")]
    pub(crate) b: PathBuf,
}
