//! The data that outlives a run.
//!
//! Owns: `Plan`, what a capture hands over, `Run` with everything that was found out, host facts, the run directory and its format versions.
//! Does not own: how a figure is derived, any clock, any judgement.
#![forbid(unsafe_code)]

pub mod capture;
mod directory;
mod error;
mod figure;
mod format;
mod hlog;
pub mod host;
mod intervals;
mod metric;
pub mod observations;
mod plan;
mod reflector;
mod resources;
mod run;
mod serial;
mod suite;
mod trace;

pub use directory::{RunDirectory, RunWriter, file};
pub use error::RecordError;
pub use figure::Figure;
pub use format::{FormatVersion, RUN_FORMAT};
pub use hlog::{HlogWriter, read_histograms};
pub use host::{FactValue, HOST_FORMAT, HostFacts};
pub use intervals::{IntervalRow, IntervalTable};
pub use metric::Metric;
pub use plan::{Api, Pacing, Plan, PlanError, ScheduleKind, hex};
pub use reflector::ReflectorReport;
pub use resources::{Cpu, InForce, Memory, Resources, ThreadCpu, ThreadInForce};
pub use run::{ClockFacts, Ends, Fates, Identity, Ignored, Losses, Run, Sockets, Source, Summary, UdpCounters, Window};
pub use suite::{
    AcrossIntervals, AcrossRuns, FailedRun, GaveWay, HighestRate, Range, SUITE_FORMAT, Series, SeriesRun, Spread,
    SuiteResult, TriedRate, Used,
};
pub use trace::{Trace, TraceError, TraceStep};
