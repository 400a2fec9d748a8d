//! Pure mathematics on samples.
//!
//! Owns: the fixed-geometry histogram that every metric is recorded into, its exact moments, its quantiles by integer rank, and its exchange
//! with `HdrHistogram`; trends.
//! Does not own: packets, files, hosts, clocks, and any judgement.
#![forbid(unsafe_code)]

mod histogram;
mod interchange;
pub mod trend;

pub use histogram::{Histogram, Value};
pub use interchange::{ExchangeError, geometry};
