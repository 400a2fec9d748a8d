//! What starts many runs: suites, and the search for the highest sustained rate.
//!
//! Owns: suites and how they are read, which run comes next, what counts as sustained and what gave way, directories of many runs and how
//! they are taken up again.
//! Does not own: how one run is made, statistics, printing.
#![forbid(unsafe_code)]

pub mod campaign;
pub mod directory;
#[cfg(test)]
mod fixture;
pub mod judge;
pub mod player;
pub mod search;
pub mod suite;
