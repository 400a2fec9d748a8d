//! Linux, as tickpong meets it.
//!
//! Owns: sockets, clocks, what a thread asks of the kernel, two hosts on one machine, resource usage, host facts; all of tickpong's `unsafe`.
//! Does not own: the schedule and the loop (see `probe`), the wire format (see `wire`), what is done about a refused wish (see `runner`).

pub mod clock;
pub mod facts;
pub mod hosts;
mod netlink;
pub mod signal;
pub mod socket;
pub mod stream;
pub mod thread;
pub mod usage;
