//! Which messages have been seen, of the most recent ones.

use tickpong_units::{Nanos, Rate, Seq};

/// A window over the most recent sequence numbers, one bit each: was there an answer? Everything else that is known of a message travels
/// in its datagram.
#[derive(Clone, Debug)]
pub struct SeqWindow {
    bits: Box<[u64]>,
    /// One above the highest number seen.
    top: u64,
}

/// Whether a sequence number has come before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Seen {
    /// It has.
    Again,
    /// It has not.
    First {
        /// A higher one has (RFC 4737: the packet is reordered).
        reordered: bool,
    },
    /// It lies below the window: nobody knows.
    Forgotten,
}

impl SeqWindow {
    const MAX_NUMBERS: u64 = 1 << 27;
    const MIN_NUMBERS: u64 = 1 << 16;

    /// A window that remembers at least `numbers` sequence numbers; between 2¹⁶ − 64 and 2²⁷ − 64.
    pub fn new(numbers: u64) -> Self {
        // The word that the newest number lies in is cleared as a whole when it is begun.
        let numbers = numbers.saturating_add(64).clamp(Self::MIN_NUMBERS, Self::MAX_NUMBERS).next_power_of_two();
        let words = usize::try_from(numbers / 64).unwrap_or(usize::MAX);
        Self { bits: vec![0; words].into_boxed_slice(), top: 0 }
    }

    /// A window that remembers what was sent at `rate` within `span`, in bursts of up to `burst`. Without a rate (closed loop), as many as
    /// a closed loop can send.
    pub fn for_rate(rate: Option<Rate>, span: Nanos, burst: u64) -> Self {
        let rate = rate.unwrap_or_else(|| Rate::new(1_000_000).unwrap_or_else(|| unreachable!("not zero")));
        Self::new(rate.due_within(span).saturating_add(burst).saturating_add(1))
    }

    /// Marks a number as seen, and says whether it was before.
    #[inline]
    pub fn mark(&mut self, seq: Seq) -> Seen {
        let seq = seq.get();
        if seq != self.top {
            return self.mark_elsewhere(seq);
        }
        self.top = seq.saturating_add(1);
        let (word, bit) = self.place(seq);
        // A word that is begun is still that of one window ago.
        let before = if seq.is_multiple_of(64) { 0 } else { self.bits[word] };
        self.bits[word] = before | bit;
        Seen::First { reordered: false }
    }

    /// Not the number after the highest.
    #[cold]
    #[inline(never)]
    fn mark_elsewhere(&mut self, seq: u64) -> Seen {
        let reordered = seq < self.top;
        if !reordered {
            self.pass_over(seq);
        }
        // Whole words are forgotten, those that lie a window before the one of the highest number.
        if (self.top - 1) / 64 - seq / 64 >= self.bits.len() as u64 {
            return Seen::Forgotten;
        }
        let (word, bit) = self.place(seq);
        if self.bits[word] & bit != 0 {
            return Seen::Again;
        }
        self.bits[word] |= bit;
        Seen::First { reordered }
    }

    /// Makes `seq` the highest number, and forgets one window ago for every word begun on the way to it.
    fn pass_over(&mut self, seq: u64) {
        let (begun, last) = (self.top.div_ceil(64), seq / 64);
        if last - begun.min(last) >= self.bits.len() as u64 {
            self.bits.fill(0);
        } else {
            for word in begun..=last {
                let (word, _) = self.place(word * 64);
                self.bits[word] = 0;
            }
        }
        self.top = seq.saturating_add(1);
    }

    #[inline]
    fn place(&self, seq: u64) -> (usize, u64) {
        let word = (seq / 64) as usize & (self.bits.len() - 1);
        (word, 1 << (seq % 64))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const IN_ORDER: Seen = Seen::First { reordered: false };

    #[test]
    fn order_gaps_duplicates_and_age_are_told_apart() {
        let mut window = SeqWindow::new(0);
        let mut mark = |k| window.mark(Seq::new(k));
        assert_eq!([mark(0), mark(1), mark(4)], [IN_ORDER; 3]);
        assert_eq!(
            [mark(3), mark(3), mark(1), mark(2)],
            [Seen::First { reordered: true }, Seen::Again, Seen::Again, Seen::First { reordered: true }]
        );
        assert_eq!(mark(70_000), IN_ORDER);
        assert_eq!(mark(4), Seen::Forgotten);
        assert_eq!(mark(4_544), Seen::First { reordered: true }, "of the first word that is remembered");
        assert_eq!(mark(4_479), Seen::Forgotten);
        assert_eq!(mark(u64::MAX), IN_ORDER);
    }

    proptest! {
        /// Against a set that never forgets.
        #[test]
        fn within_its_span_it_is_a_set(steps in prop::collection::vec((0_u64..3_000, any::<bool>()), 1..3_000)) {
            let (mut window, mut all, mut top) = (SeqWindow::new(0), BTreeSet::new(), 0_u64);
            for (by, ahead) in steps {
                let seq = if ahead { top + by } else { top.saturating_sub(by * 30) };
                let expected = match () {
                    () if seq < top && (top - 1) / 64 - seq / 64 >= 1 << 10 => Seen::Forgotten,
                    () if all.contains(&seq) => Seen::Again,
                    () => Seen::First { reordered: seq < top },
                };
                prop_assert_eq!(window.mark(Seq::new(seq)), expected);
                all.insert(seq);
                top = top.max(seq + 1);
            }
        }
    }
}
