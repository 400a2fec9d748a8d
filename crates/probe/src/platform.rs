//! What the engine needs of the world: real sockets and clocks, or virtual time.

use tickpong_units::{Clock, Instant, PayloadLen, ReflectorClock};

/// A thread's view of the world.
pub trait Platform {
    /// Whose clock it reads.
    type Clock: Clock;

    /// The time now.
    fn now(&mut self) -> Instant<Self::Clock>;

    /// Waits until `until` or until a datagram is there, whichever comes first; may return at any time before. A spinning platform returns
    /// at once.
    fn idle(&mut self, until: Instant<Self::Clock>);

    /// Whether somebody outside wants the loop to end.
    fn stop_asked(&self) -> bool;
}

/// Sends datagrams out of buffers of its own, several a call where it can.
pub trait Sends: Platform {
    /// The most datagrams of one call.
    const MOST: usize;

    /// The buffer of the `index`-th datagram of the next call. What was written to it before is still there.
    fn slot(&mut self, index: usize, len: PayloadLen) -> &mut [u8];

    /// Sends the first `count` slots, each `len` long. Says what became of them; it does not wait for room.
    fn send(&mut self, count: usize, len: PayloadLen) -> Sent;
}

/// What became of the datagrams of one call, in their order: first those taken, then those refused; the rest found no room and stay due.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Sent {
    /// Taken by the kernel.
    pub accepted: usize,
    /// Refused for good, as by a local firewall.
    pub refused: usize,
}

/// Receives datagrams, several a call where it can.
pub trait Receives: Platform {
    /// Hands over what one call brings, with the instant of its arrival, and says how many datagrams that were. Does not wait.
    fn receive(&mut self, handle: impl FnMut(Instant<Self::Clock>, &[u8])) -> usize;
}

/// Receives datagrams and sends them back out of the same buffer.
pub trait Reflects: Platform<Clock = ReflectorClock> {
    /// Hands over what one call brings, with the instant of its arrival, and sends back those that `handle` changed into answers, each
    /// stamped by `depart` with the clock just before the send call. A waiting platform waits here, but not so long that a wish to stop
    /// would go unheard.
    fn turn_around(
        &mut self,
        handle: impl FnMut(Instant<ReflectorClock>, &mut [u8]) -> bool,
        depart: impl Fn(Instant<ReflectorClock>, &mut [u8]),
    ) -> TurnedAround;
}

/// What one call of a reflector did.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TurnedAround {
    /// Datagrams received, whatever they were.
    pub received: usize,
    /// Answers that the kernel took.
    pub answered: usize,
}
