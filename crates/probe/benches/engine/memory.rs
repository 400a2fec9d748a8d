//! A platform that lives in memory: what is sent is answered, after a round trip from a table, and nothing waits for anything.

use tickpong_probe::{Platform, Receives, Sends, Sent};
use tickpong_units::{Instant, PayloadLen, PingerClock};
use tickpong_wire::{Token, datagram};

/// When a run starts, by its clock.
pub(crate) const START: u64 = 1_000_000;
pub(crate) const PAYLOAD: usize = PayloadLen::STANDARD.get();
/// A power of two, so that a mask turns the table round.
const ROUND_TRIPS: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Memory<const MOST: usize> {
    time: u64,
    slots: [[u8; PAYLOAD]; MOST],
    /// So many slots hold a ping without an answer.
    waiting: usize,
    round_trips: Box<[u64; ROUND_TRIPS]>,
    turn: usize,
}

impl<const MOST: usize> Memory<MOST> {
    pub(crate) fn new(token: Token) -> Self {
        let mut slots = [[0; PAYLOAD]; MOST];
        for slot in &mut slots {
            datagram::fill(slot, token);
        }
        Self { time: 0, slots, waiting: 0, round_trips: round_trips(), turn: 0 }
    }

    #[inline]
    fn round_trip(&mut self) -> u64 {
        self.turn += 1;
        self.round_trips[self.turn & (ROUND_TRIPS - 1)]
    }
}

/// Round trips as a network shows them: log-normal around 20 µs, from 3 µs to 3 ms.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to what fits")]
pub(crate) fn round_trips() -> Box<[u64; ROUND_TRIPS]> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut uniform = || {
        // Marsaglia's xorshift (2003).
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        f64::from((state >> 32) as u32) / f64::from(u32::MAX)
    };
    let values: Vec<u64> = std::iter::repeat_with(|| {
        // Twelve uniform values less six are normal enough.
        let normal = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
        (20_000.0 * normal.exp()).clamp(3_000.0, 3_000_000.0) as u64
    })
    .take(ROUND_TRIPS)
    .collect();
    values.into_boxed_slice().try_into().expect("as many as were taken")
}

impl<const MOST: usize> Platform for Memory<MOST> {
    type Clock = PingerClock;

    #[inline]
    fn now(&mut self) -> Instant<PingerClock> {
        self.time += 20;
        Instant::from_clock(self.time)
    }

    #[inline]
    fn idle(&mut self, until: Instant<PingerClock>) {
        self.time = self.time.max(until.to_wire());
    }

    #[inline]
    fn stop_asked(&self) -> bool {
        false
    }
}

impl<const MOST: usize> Sends for Memory<MOST> {
    const MOST: usize = MOST;

    #[inline]
    fn slot(&mut self, index: usize, len: PayloadLen) -> &mut [u8] {
        &mut self.slots[index][..len.get()]
    }

    #[inline]
    fn send(&mut self, count: usize, _: PayloadLen) -> Sent {
        self.waiting = count;
        Sent { accepted: count, refused: 0 }
    }
}

impl<const MOST: usize> Receives for Memory<MOST> {
    #[inline]
    fn receive(&mut self, mut handle: impl FnMut(Instant<PingerClock>, &[u8])) -> usize {
        let count = std::mem::take(&mut self.waiting).min(MOST);
        for index in 0..count {
            let round_trip = self.round_trip();
            self.time += round_trip;
            let slot = &mut self.slots[index];
            datagram::answer(Instant::from_clock(0), slot);
            datagram::depart(Instant::from_clock(round_trip / 16), slot);
            handle(Instant::from_clock(self.time), slot);
        }
        count
    }
}
