//! How closed intervals and raw observations leave a hot thread: by rings that neither wait nor allocate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use tickpong_probe::{Exchange, Observe};
use tickpong_record::capture::Observation;

/// Buffers beside those in the engine's hands: the collector may be this many intervals behind.
const SPARE: usize = 4;
/// Raw observations under way to the disk; 2 MiB.
const OBSERVATIONS: usize = 1 << 16;

/// Counts what found no room. Zero at the end of every valid run.
pub(crate) type Overflow = Arc<AtomicU64>;

/// The hot thread's end of the rings for closed intervals.
#[derive(Debug)]
pub(crate) struct Hand<T> {
    full: Producer<Box<T>>,
    empty: Consumer<Box<T>>,
    overflow: Overflow,
}

/// The collector's end.
#[derive(Debug)]
pub(crate) struct Basket<T> {
    full: Consumer<Box<T>>,
    empty: Producer<Box<T>>,
}

/// Rings for closed intervals, with their spare buffers.
pub(crate) fn rings<T: Default>(overflow: &Overflow) -> (Hand<T>, Basket<T>) {
    let (full_in, full_out) = RingBuffer::new(SPARE + 1);
    let (mut empty_in, empty_out) = RingBuffer::new(SPARE + 1);
    for _ in 0..SPARE {
        empty_in.push(Box::default()).unwrap_or_else(|_| unreachable!("the ring is longer"));
    }
    let overflow = Arc::clone(overflow);
    (Hand { full: full_in, empty: empty_out, overflow }, Basket { full: full_out, empty: empty_in })
}

impl<T> Exchange<T> for Hand<T> {
    fn exchange(&mut self, buffer: &mut Box<T>) {
        match self.empty.pop() {
            Ok(spare) => {
                let closed = std::mem::replace(buffer, spare);
                if self.full.push(closed).is_err() {
                    self.overflow.fetch_add(1, Ordering::Relaxed);
                }
            }
            // The collector is far behind: this interval is lost, and the run is invalid.
            Err(_) => drop(self.overflow.fetch_add(1, Ordering::Relaxed)),
        }
    }
}

impl<T> Basket<T> {
    /// The oldest closed interval that is there.
    pub(crate) fn take(&mut self) -> Option<Box<T>> {
        self.full.pop().ok()
    }

    /// Gives a buffer back.
    pub(crate) fn give_back(&mut self, buffer: Box<T>) {
        // A full ring would mean more buffers than there are; the buffer is then simply freed, on this thread.
        let _ = self.empty.push(buffer);
    }
}

/// The hot thread's end of the ring for raw observations; does nothing where nobody wants them.
#[derive(Debug)]
pub(crate) struct Raw {
    ring: Option<Producer<Observation>>,
    overflow: Overflow,
}

impl Raw {
    /// Nobody wants them.
    pub(crate) fn unwanted(overflow: &Overflow) -> Self {
        Self { ring: None, overflow: Arc::clone(overflow) }
    }

    /// Somebody does.
    pub(crate) fn wanted(overflow: &Overflow) -> (Self, Consumer<Observation>) {
        let (ring, out) = RingBuffer::new(OBSERVATIONS);
        (Self { ring: Some(ring), overflow: Arc::clone(overflow) }, out)
    }
}

impl Observe for Raw {
    #[inline]
    fn observe(&mut self, observation: Observation) {
        if let Some(ring) = &mut self.ring
            && ring.push(observation).is_err()
        {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_nothing_waits() {
        let overflow = Overflow::default();
        let (mut hand, mut basket) = rings::<u64>(&overflow);
        let mut buffer = Box::new(0);
        for closed in 1..=6 {
            *buffer = closed;
            hand.exchange(&mut buffer);
        }
        assert_eq!(overflow.load(Ordering::Relaxed), 2);
        let taken: Vec<_> = std::iter::from_fn(|| basket.take()).map(|buffer| *buffer).collect();
        assert_eq!(taken, [1, 2, 3, 4]);
        basket.give_back(Box::new(9));
        hand.exchange(&mut buffer);
        assert_eq!(*buffer, 9);
        assert_eq!(overflow.load(Ordering::Relaxed), 2);
    }
}
