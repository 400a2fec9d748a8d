//! To and from `HdrHistogram`, the field's common format.

use hdrhistogram::Histogram as Hdr;
use thiserror::Error;

use crate::Histogram;

/// The geometry of every histogram of tickpong, in `HdrHistogram`'s words: lowest and highest value in nanoseconds, significant digits.
pub const fn geometry() -> (u64, u64, u8) {
    (1, Histogram::HIGHEST.get(), 3)
}

/// Why two histograms do not exchange.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ExchangeError {
    /// Merging unlike cells moves values: refused.
    #[error(
        "take a histogram of {digits} digits from {low} to {high} ns: want 3 digits from 1 to at most {} ns",
        Histogram::HIGHEST.get()
    )]
    Geometry {
        /// Its lowest value.
        low: u64,
        /// Its highest value.
        high: u64,
        /// Its significant digits.
        digits: u8,
    },
}

impl Histogram {
    /// The same counts as an `HdrHistogram` of the same cells. Minimum and maximum become the edges of their cells.
    ///
    /// # Panics
    ///
    /// Never: the geometry is a constant that the library accepts, and every cell lies within it.
    pub fn to_hdr(&self) -> Hdr<u64> {
        let (low, high, digits) = geometry();
        let mut hdr = Hdr::new_with_bounds(low, high, digits).expect("the geometry is valid");
        for (_, upper, n) in self.cells() {
            hdr.record_n(upper.get(), n).expect("every cell lies within the bounds");
        }
        hdr
    }

    /// The counts of an `HdrHistogram`; exact minimum, maximum and moments are not in it, so cell edges stand for them.
    ///
    /// # Errors
    ///
    /// When its cells are not ours.
    pub fn from_hdr(hdr: &Hdr<u64>) -> Result<Self, ExchangeError> {
        let (low, high, digits) = (hdr.low(), hdr.high(), hdr.sigfig());
        if low > 1 || high > Self::HIGHEST.get() || digits != 3 {
            return Err(ExchangeError::Geometry { low, high, digits });
        }
        Ok(Self::from_cells(hdr.iter_recorded().map(|step| (step.value_iterated_to(), step.count_at_value()))))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tickpong_units::{Nanos, Quantile};

    use super::*;

    proptest! {
        #[test]
        fn the_library_sees_the_same_counts_and_quantiles(
            values in prop::collection::vec(0_u64..1 << 41, 1..300),
            at in 0.001_f64..1.0,
        ) {
            let mut ours = Histogram::new();
            for &ns in &values {
                ours.record(Nanos::new(ns));
            }
            let hdr = ours.to_hdr();
            prop_assert_eq!(hdr.len(), ours.count());
            let back = Histogram::from_hdr(&hdr).unwrap();
            prop_assert_eq!(back.cells().collect::<Vec<_>>(), ours.cells().collect::<Vec<_>>());
            let q = Quantile::new(at).unwrap();
            let rank = q.rank(ours.count());
            let found = ours.value_at_rank(rank).unwrap().get();
            prop_assert_eq!(hdr.lowest_equivalent(found), hdr.lowest_equivalent(value_by_rank(&hdr, rank)));
        }
    }

    fn value_by_rank(hdr: &Hdr<u64>, rank: u64) -> u64 {
        hdr.iter_recorded()
            .find(|step| {
                step.count_since_last_iteration() > 0 && rank <= hdr.count_between(0, step.value_iterated_to())
            })
            .unwrap()
            .value_iterated_to()
    }

    #[test]
    fn other_cells_are_refused() {
        let coarse = Hdr::<u64>::new_with_bounds(1, 1_000_000, 2).unwrap();
        assert_eq!(
            Histogram::from_hdr(&coarse).unwrap_err(),
            ExchangeError::Geometry { low: 1, high: 1_000_000, digits: 2 }
        );
    }
}
