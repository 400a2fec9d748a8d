//! One run between two hosts.
//!
//! Owns: the control plane with its proofs of a shared key, the hot threads and what they ask of the kernel, the engine's `Platform` on real
//! sockets and clocks, the collecting of intervals while a run goes on, and two hosts on one machine for a demonstration.
//! Does not own: what is in a data datagram, the loop, statistics, printing.
#![forbid(unsafe_code)]

mod assemble;
mod collect;
mod connection;
mod error;
mod handshake;
mod host;
mod hot;
mod key;
pub mod local;
mod meter;
mod ping;
mod platform;
mod reflect;
mod resolve;
mod rings;
mod serve;
mod session;
mod watch;

pub use collect::Progress;
pub use error::RunnerError;
pub use host::disclosure;
pub use hot::HotSettings;
pub use key::{KEY_VARIABLE, Key, KeyError};
pub use ping::{Finished, HotCpus, PingSettings, ping, try_out};
pub use reflect::{ReflectEvent, ReflectSettings, reflect};

/// The control port, unless another is asked for.
pub const DEFAULT_PORT: u16 = 7_410;
/// The tickpong that this is.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
