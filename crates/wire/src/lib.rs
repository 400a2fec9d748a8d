//! What travels between pinger and reflector.
//!
//! Owns: the datagram and the control messages; field offsets, checked parsing, emitting.
//! Does not own: sockets, clocks, memory. Nothing here allocates, and no bytes make it panic.
#![forbid(unsafe_code)]

pub mod control;
mod cursor;
pub mod datagram;

pub use datagram::{Datagram, HEADER_LEN, Kind, Malformed, Token};
