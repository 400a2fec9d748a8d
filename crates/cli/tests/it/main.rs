//! The command as people and programs use it: real processes, sockets and files, on this host alone.
#![expect(clippy::unwrap_used, reason = "a test; clippy.toml exempts only the test functions themselves")]

mod bad_input;
mod bad_luck;
mod by_hand;
mod disclosure;
mod hosts;
mod losses;
mod made_up;
mod quiet;
mod relay;
mod run_directory;
mod security;
mod sessions;
mod suites;
mod support;
mod two_hosts;
