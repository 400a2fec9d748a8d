//! The engine, played in a made-up world where every fault is planted and every nanosecond is known.
#![expect(clippy::unwrap_used, reason = "a test; clippy.toml exempts only the test functions themselves")]

mod allocation;
mod closed;
mod fates;
mod faults;
mod intervals;
mod pacing;
mod path;
mod play;
mod reflector;
mod threads;
mod world;
