//! The engine: what decides when a message is sent, what became of it, and in which order a pinger drains, sends and waits.
//!
//! Owns: `Schedule`, `Transmitter`, `Receiver`, `Reflector`, the sequence window, and the loops that drive them, generic over a `Platform`.
//! Does not own: input and output, clocks, threads. Time is an argument, and nothing allocates once it is made.
//!
//! The loops are part of the engine because their order decides what is measured: a pinger that does not empty its receive queue between
//! two sends measures its own queue.
#![forbid(unsafe_code)]

mod exchange;
mod path;
mod pinger;
mod platform;
mod receive;
mod reflect;
mod schedule;
mod transmit;
mod window;

pub use exchange::{Exchange, Observe, Unobserved};
pub use path::{PathProbe, probe_path};
pub use pinger::{Handover, ping, receive_only, send_only};
pub use platform::{Platform, Receives, Reflects, Sends, Sent, TurnedAround};
pub use receive::{Receiver, Verdict, open_intervals};
pub use reflect::{Reflector, ReflectorTotals, reflect};
pub use schedule::{Due, Schedule};
pub use transmit::{ClosedInterval, Transmitter};
pub use window::{Seen, SeqWindow};
