//! Numbers that know what they are.
//!
//! Owns: spans and instants of time, rates, sequence numbers, payload sizes, quantiles, seeds, and how each is parsed and printed.
//! Does not own: any clock, any input or output, any statistics.
//!
//! A suffix such as `_ns` or `_hz` belongs where types end: in files, on the command line, on the wire. Inside, the type says it.
#![forbid(unsafe_code)]

mod message;
mod quantile;
mod rate;
mod seed;
mod time;

pub use message::{PayloadLen, PayloadLenError, Seq};
pub use quantile::{Quantile, QuantileError};
pub use rate::{ParseRateError, Rate};
pub use seed::{ParseSeedError, Seed};
pub use time::{Clock, Instant, Nanos, ParseNanosError, PingerClock, ReflectorClock};
