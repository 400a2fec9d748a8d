//! How closed intervals and raw observations leave a hot thread: by rings that neither wait nor allocate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rtrb::{Consumer, Producer, RingBuffer};
use tickpong_hostio::clock::sleep;
use tickpong_probe::{Exchange, Observe};
use tickpong_record::capture::Observation;
use tickpong_units::Nanos;

/// The collector may be this many intervals behind.
const BEHIND: usize = 4;
/// Raw observations under way to the disk; 2 MiB.
const OBSERVATIONS: usize = 1 << 16;

/// What found no room, for all rings of a run.
#[derive(Debug, Default)]
pub(crate) struct Overflows {
    count: AtomicU64,
    loop_is_over: AtomicBool,
}

pub(crate) type Overflow = Arc<Overflows>;

impl Overflows {
    /// Zero at the end of every valid run.
    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// From here on a closed interval waits for room: the many that the end of a run may close at once are not lost.
    pub(crate) fn end_loop(&self) {
        self.loop_is_over.store(true, Ordering::Relaxed);
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// How long a closed interval waits for room once the loop is over, and how often it looks.
const PATIENCE: Nanos = Nanos::from_secs(10);
const LOOK: Nanos = Nanos::from_millis(1);

/// The hot thread's end of the rings for closed intervals.
#[derive(Debug)]
pub(crate) struct Hand<T> {
    full: Producer<Box<T>>,
    empty: Consumer<Box<T>>,
    passed: Arc<AtomicU64>,
    overflow: Overflow,
}

/// The collector's end.
#[derive(Debug)]
pub(crate) struct Basket<T> {
    full: Consumer<Box<T>>,
    empty: Producer<Box<T>>,
    passed: Arc<AtomicU64>,
}

/// Rings for closed intervals, with their spare buffers. `open` intervals may wait for answers at the same time.
pub(crate) fn rings<T: Default>(overflow: &Overflow, open: u64) -> (Hand<T>, Basket<T>) {
    // Where messages are lost, the sending side of an interval waits in the collector's hands until no answer can come any more.
    let spare = BEHIND + usize::try_from(open).unwrap_or_default();
    let (full_in, full_out) = RingBuffer::new(spare + 1);
    let (mut empty_in, empty_out) = RingBuffer::new(spare + 1);
    for _ in 0..spare {
        empty_in.push(Box::default()).unwrap_or_else(|_| unreachable!("the ring is longer"));
    }
    let (overflow, passed) = (Arc::clone(overflow), Arc::<AtomicU64>::default());
    let hand = Hand { full: full_in, empty: empty_out, passed: Arc::clone(&passed), overflow };
    (hand, Basket { full: full_out, empty: empty_in, passed })
}

impl<T> Hand<T> {
    fn spare(&mut self) -> Option<Box<T>> {
        for _ in 0..PATIENCE.whole(LOOK) {
            if let Ok(spare) = self.empty.pop() {
                return Some(spare);
            }
            if !self.overflow.loop_is_over.load(Ordering::Relaxed) || self.empty.is_abandoned() {
                break;
            }
            sleep(LOOK);
        }
        None
    }
}

impl<T> Exchange<T> for Hand<T> {
    fn exchange(&mut self, buffer: &mut Box<T>) {
        // The collector is far behind where there is none: this interval is lost, and the run is invalid.
        let Some(spare) = self.spare() else { return self.overflow.add() };
        let closed = std::mem::replace(buffer, spare);
        if self.full.push(closed).is_err() {
            self.overflow.add();
        }
    }

    fn pass(&mut self, index: u64) {
        self.passed.store(index, Ordering::Release);
    }
}

impl<T> Basket<T> {
    /// All intervals below are closed. What of them is not among those that [`Basket::take`] gives from now on is empty.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::Acquire)
    }

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
            self.overflow.add();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_counted_and_nothing_waits() {
        let overflow = Overflow::default();
        let (mut hand, mut basket) = rings::<u64>(&overflow, 6);
        let mut buffer = Box::new(0);
        for closed in 1..=12 {
            *buffer = closed;
            hand.exchange(&mut buffer);
        }
        assert_eq!(overflow.count(), 2);
        let taken: Vec<_> = std::iter::from_fn(|| basket.take()).map(|buffer| *buffer).collect();
        assert_eq!(taken, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
        basket.give_back(Box::new(9));
        hand.exchange(&mut buffer);
        assert_eq!(*buffer, 9);
        assert_eq!(overflow.count(), 2);
    }

    #[test]
    fn once_the_loop_is_over_nothing_is_lost() {
        let overflow = Overflow::default();
        let (mut hand, mut basket) = rings::<u64>(&overflow, 6);
        overflow.end_loop();
        let collected = std::thread::scope(|scope| {
            scope.spawn(move || {
                let mut buffer = Box::new(0);
                (1..=100).for_each(|closed| {
                    *buffer = closed;
                    hand.exchange(&mut buffer);
                });
            });
            let mut collected = Vec::new();
            while collected.len() < 100 {
                let Some(buffer) = basket.take() else { continue };
                collected.push(*buffer);
                basket.give_back(buffer);
            }
            collected
        });
        assert_eq!(collected, (1..=100).collect::<Vec<u64>>());
        assert_eq!(overflow.count(), 0);
    }
}
