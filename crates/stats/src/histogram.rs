//! A histogram of spans of time, recorded on the hot path.

use std::fmt;

use tickpong_units::{Nanos, Quantile};

/// Cells of one power of two: the values of an octave are told apart to one part in 1024.
const CELLS_PER_OCTAVE: u64 = 1 << OCTAVE_BITS;
const OCTAVE_BITS: u32 = 10;
/// All cells; a power of two, so that a mask replaces the bounds check.
const CELLS: usize = 1 << 15;

/// Counts of spans from 0 to [`Histogram::HIGHEST`] in cells at most 0.1 % wide, with exact count, sum, sum of squares, minimum and maximum.
///
/// The cells are those of an `HdrHistogram` of three significant digits from 1 ns to 2⁴¹ − 1 ns, so that the standard tools open what is
/// written. The recorder is our own because it stands on the hot path: a third of the cost of the library's, and no way to panic.
///
/// A longer span than `HIGHEST` is counted in the last cell *and* among [`Histogram::clamped`]; it is never hidden.
#[derive(Clone)]
pub struct Histogram {
    cells: Box<[u64; CELLS]>,
    count: u64,
    clamped: u64,
    sum: u128,
    sum_of_squares: u128,
    min: u64,
    max: u64,
}

impl Histogram {
    /// The longest span told apart from longer ones: 2⁴¹ − 1 ns, 36 minutes.
    pub const HIGHEST: Nanos = Nanos::new((1 << 41) - 1);

    /// Nothing recorded; all memory is taken here.
    ///
    /// # Panics
    ///
    /// Never: the length is a constant.
    pub fn new() -> Self {
        let cells = vec![0_u64; CELLS].into_boxed_slice().try_into().expect("the length is the array's");
        Self { cells, count: 0, clamped: 0, sum: 0, sum_of_squares: 0, min: u64::MAX, max: 0 }
    }

    /// Counts one span. Says whether it is longer than all before it.
    #[inline]
    pub fn record(&mut self, span: Nanos) -> bool {
        let exact = span.get();
        let ns = exact.min(Self::HIGHEST.get());
        self.cells[cell_of(ns) & (CELLS - 1)] += 1;
        self.clamped += u64::from(ns != exact);
        self.count += 1;
        self.sum += u128::from(exact);
        self.sum_of_squares = self.sum_of_squares.saturating_add(u128::from(exact) * u128::from(exact));
        self.min = self.min.min(exact);
        let longest = exact > self.max || self.count == 1;
        self.max = self.max.max(exact);
        longest
    }

    /// Adds all that `other` holds. Both have the one geometry there is.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let touched = other.touched();
        for (mine, theirs) in self.cells[touched.clone()].iter_mut().zip(&other.cells[touched]) {
            *mine += theirs;
        }
        self.count += other.count;
        self.clamped += other.clamped;
        self.sum += other.sum;
        self.sum_of_squares = self.sum_of_squares.saturating_add(other.sum_of_squares);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything, and keeps the memory.
    pub fn clear(&mut self) {
        if self.count != 0 {
            let touched = self.touched();
            self.cells[touched].fill(0);
        }
        (self.count, self.clamped, self.sum, self.sum_of_squares) = (0, 0, 0, 0);
        (self.min, self.max) = (u64::MAX, 0);
    }

    /// How many spans were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// How many of them were longer than [`Histogram::HIGHEST`]: they stand in the last cell, and a quantile there is only a lower bound.
    pub fn clamped(&self) -> u64 {
        self.clamped
    }

    /// The shortest span, exact.
    pub fn min(&self) -> Option<Nanos> {
        (self.count > 0).then(|| Nanos::new(self.min))
    }

    /// The longest span, exact.
    pub fn max(&self) -> Option<Nanos> {
        (self.count > 0).then(|| Nanos::new(self.max))
    }

    /// The arithmetic mean in nanoseconds, from the exact sum.
    #[expect(clippy::cast_precision_loss, reason = "a quotient to 53 bits is what a mean is printed from")]
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// The sample standard deviation (n − 1) in nanoseconds, from exact sums; `None` below two spans.
    #[expect(clippy::cast_precision_loss, reason = "the cancelling subtraction is done in integers before")]
    pub fn standard_deviation(&self) -> Option<f64> {
        if self.count < 2 {
            return None;
        }
        let n = u128::from(self.count);
        // n·Σx² − (Σx)² in integers where it fits (spans below a second, 10¹⁰ of them); in floats, with the cancellation, beyond.
        let scatter = match (n.checked_mul(self.sum_of_squares), self.sum.checked_mul(self.sum)) {
            (Some(left), Some(right)) => left.saturating_sub(right) as f64,
            _ => (n as f64 * self.sum_of_squares as f64 - self.sum as f64 * self.sum as f64).max(0.0),
        };
        Some((scatter / (n as f64 * (n - 1) as f64)).sqrt())
    }

    /// The span at rank `rank` (from one) in order of length: the upper edge of its cell, but never beyond the exact
    /// maximum.
    /// `None` for rank zero and for a rank beyond the count.
    pub fn value_at_rank(&self, rank: u64) -> Option<Nanos> {
        if rank == 0 || rank > self.count {
            return None;
        }
        let mut below = 0;
        let cell = self.cells.iter().position(|&n| {
            below += n;
            below >= rank
        })?;
        Some(Nanos::new(upper_edge(cell).min(self.max)))
    }

    /// The quantile by nearest rank over `denominator` observations, of which those recorded here are the shortest: the rest (lost, late,
    /// unsent) lie above every recorded one.
    ///
    /// [`Value::Infinite`] where the rank falls among the rest; [`Value::Unsupported`] where no observation lies beyond the rank.
    ///
    /// # Panics
    ///
    /// When the denominator is smaller than the count.
    pub fn quantile_of(&self, q: Quantile, denominator: u64) -> Value {
        assert!(denominator >= self.count, "more recorded than there were");
        if denominator == 0 {
            return Value::Unsupported;
        }
        let rank = q.rank(denominator);
        match denominator - rank {
            0 => Value::Unsupported,
            _ => self.value_at_rank(rank).map_or(Value::Infinite, Value::Finite),
        }
    }

    /// The cells that hold something, in order: lower edge, upper edge, count.
    pub fn cells(&self) -> impl Iterator<Item = (Nanos, Nanos, u64)> {
        let counted = self.cells.iter().enumerate().filter(|&(_, &n)| n > 0);
        counted.map(|(cell, &n)| (Nanos::new(lower_edge(cell)), Nanos::new(upper_edge(cell)), n))
    }

    /// The range of cells that may be other than zero.
    fn touched(&self) -> std::ops::RangeInclusive<usize> {
        let cell = |ns: u64| cell_of(ns.min(Self::HIGHEST.get()));
        cell(self.min)..=cell(self.max)
    }

    /// Rebuilds a histogram from counted cells: the exact moments are lost, and the edges stand for the values.
    pub(crate) fn from_cells(cells: impl Iterator<Item = (u64, u64)>) -> Self {
        let mut built = Self::new();
        for (ns, n) in cells.filter(|&(_, n)| n > 0) {
            built.cells[cell_of(ns.min(Self::HIGHEST.get()))] += n;
            built.count += n;
            built.sum += u128::from(ns) * u128::from(n);
            let squares = (u128::from(ns) * u128::from(ns)).saturating_mul(u128::from(n));
            built.sum_of_squares = built.sum_of_squares.saturating_add(squares);
            built.min = built.min.min(ns);
            built.max = built.max.max(ns);
        }
        built
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Histogram {{ count: {}, min: {:?}, max: {:?} }}", self.count, self.min(), self.max())
    }
}

/// A quantile: a span, beyond every span, or more than the data can say.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Value {
    /// So long.
    Finite(Nanos),
    /// The rank falls among what was never answered.
    Infinite,
    /// No observation lies beyond the rank: any value would be a guess.
    Unsupported,
}

/// The cell of a span: exact below 2 048 ns, 1 024 cells an octave above.
#[inline]
const fn cell_of(ns: u64) -> usize {
    let shift = (63 - OCTAVE_BITS) - (ns | CELLS_PER_OCTAVE).leading_zeros();
    #[expect(clippy::cast_possible_truncation, reason = "below 2^15 for every span up to HIGHEST")]
    let cell = (((shift as u64) << OCTAVE_BITS) + (ns >> shift)) as usize;
    cell
}

/// The shortest span of a cell.
const fn lower_edge(cell: usize) -> u64 {
    let (octave, within) = (cell as u64 >> OCTAVE_BITS, cell as u64 & (CELLS_PER_OCTAVE - 1));
    match octave {
        0 => within,
        _ => (within | CELLS_PER_OCTAVE) << (octave - 1),
    }
}

/// The longest span of a cell.
const fn upper_edge(cell: usize) -> u64 {
    lower_edge(cell + 1) - 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(spans: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &ns in spans {
            histogram.record(Nanos::new(ns));
        }
        histogram
    }

    fn spans() -> impl Strategy<Value = Vec<u64>> {
        let span = prop_oneof![0_u64..4_096, 1_000_u64..10_000_000, 0..=Histogram::HIGHEST.get(), any::<u64>()];
        prop::collection::vec(span, 1..200)
    }

    #[test]
    fn an_empty_histogram_says_nothing() {
        let empty = Histogram::new();
        assert_eq!((empty.min(), empty.max(), empty.mean(), empty.standard_deviation()), (None, None, None, None));
        assert_eq!(empty.value_at_rank(1), None);
        assert_eq!(empty.quantile_of(Quantile::P50, 0), Value::Unsupported);
        assert_eq!(empty.quantile_of(Quantile::P50, 10), Value::Infinite);
    }

    #[test]
    fn a_longer_span_than_the_range_is_counted_and_its_length_kept() {
        let histogram = of(&[5, 1 << 41, u64::MAX]);
        assert_eq!((histogram.count(), histogram.clamped()), (3, 2));
        assert_eq!(histogram.max(), Some(Nanos::MAX));
        assert_eq!(histogram.value_at_rank(3), Some(Histogram::HIGHEST));
    }

    #[test]
    fn zero_is_a_span_and_the_first_is_the_longest_so_far() {
        let mut histogram = Histogram::new();
        assert!(histogram.record(Nanos::ZERO));
        assert!(!histogram.record(Nanos::ZERO));
        assert!(histogram.record(Nanos::new(1)));
        assert_eq!(histogram.min(), Some(Nanos::ZERO));
    }

    #[test]
    fn what_was_never_answered_lies_above() {
        let histogram = of(&[10; 98]);
        assert_eq!(histogram.quantile_of(Quantile::P50, 100), Value::Finite(Nanos::new(10)));
        assert_eq!(histogram.quantile_of(Quantile::P99, 100), Value::Infinite);
        assert_eq!(histogram.quantile_of(Quantile::P999, 100), Value::Unsupported);
        assert_eq!(histogram.quantile_of(Quantile::P99, 98), Value::Unsupported);
    }

    #[test]
    fn the_deviation_of_nearly_equal_spans_survives() {
        let histogram = of(&[1_000_000_000, 1_000_000_001, 1_000_000_002]);
        assert_eq!(histogram.standard_deviation(), Some(1.0));
    }

    proptest! {
        #[test]
        fn cells_tile_the_range(ns in 0..=Histogram::HIGHEST.get()) {
            let cell = cell_of(ns);
            prop_assert!(cell < CELLS);
            prop_assert!(lower_edge(cell) <= ns && ns <= upper_edge(cell));
            prop_assert!(upper_edge(cell) - lower_edge(cell) <= ns / 1_000);
        }

        #[test]
        fn ranks_agree_with_sorting(mut values in spans(), at in 0.0_f64..1.0) {
            let histogram = of(&values);
            values.sort_unstable();
            let q = Quantile::new(at).unwrap();
            let n = values.len() as u64;
            let exact = values[usize::try_from(q.rank(n)).unwrap() - 1].min(Histogram::HIGHEST.get());
            let found = histogram.value_at_rank(q.rank(n)).unwrap().get();
            prop_assert!(exact <= found && found <= exact + exact / 1_000, "{exact} {found}");
            prop_assert_eq!(histogram.min().unwrap().get(), values[0]);
            prop_assert_eq!(histogram.max().unwrap().get(), values[values.len() - 1]);
        }

        #[test]
        fn merging_is_recording_both(left in spans(), right in spans()) {
            let mut merged = of(&left);
            merged.merge(&of(&right));
            let both = of(&[left, right].concat());
            prop_assert_eq!(merged.cells, both.cells);
            prop_assert_eq!((merged.count, merged.clamped, merged.sum), (both.count, both.clamped, both.sum));
            prop_assert_eq!((merged.min, merged.max, merged.sum_of_squares), (both.min, both.max, both.sum_of_squares));
        }

        #[test]
        fn clearing_leaves_nothing(values in spans()) {
            let mut histogram = of(&values);
            histogram.clear();
            prop_assert_eq!(histogram.cells, Histogram::new().cells);
            prop_assert_eq!(histogram.count, 0);
        }

        #[test]
        fn minimum_mean_and_maximum_are_in_order(values in prop::collection::vec(0_u64..1 << 41, 1..200)) {
            let histogram = of(&values);
            let (min, mean, max) = (histogram.min().unwrap(), histogram.mean().unwrap(), histogram.max().unwrap());
            #[expect(clippy::cast_precision_loss, reason = "exact below 2^53")]
            let (min, max) = (min.get() as f64, max.get() as f64);
            prop_assert!(min <= mean && mean <= max);
        }
    }
}
