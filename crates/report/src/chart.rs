//! The histogram, drawn in value order.

use tickpong_record::{Fates, Metric};
use tickpong_stats::Histogram;
use tickpong_units::Nanos;

use crate::number::{count, round_micros, share};
use crate::page::Page;

/// The most rows of a drawing.
const ROWS: usize = 16;
/// The longest bar.
const LONGEST_BAR: usize = 60;
/// Steps a decade that the edges may take; the finest that needs at most [`ROWS`] rows is taken. One a decade always does.
const STEPS: [u32; 23] = [1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160, 240, 320, 480];

/// One bar.
#[derive(Debug)]
struct Bar {
    label: String,
    count: u64,
    /// This and all bars above it.
    up_to_here: u128,
}

/// Bars of SupplyToReceive over the whole run, the messages that have none in the last.
pub(crate) fn draw(page: &mut Page, histogram: &Histogram, fates: &Fates) {
    let bars = bars(histogram, fates);
    let Some(all) = bars.last().map(|bar| bar.up_to_here).filter(|all| *all > 0) else { return };
    let most = bars.iter().map(|bar| bar.count).max().unwrap_or(0);
    let wide = |text: &str| text.chars().count();
    let label = bars.iter().map(|bar| wide(&bar.label)).max().unwrap_or(0);
    let counts = bars.iter().map(|bar| wide(&count(bar.count))).max().unwrap_or(0).max("messages".len());
    let shares = "100.0000 %".len();
    let room = page.width.saturating_sub(label + 2 + 2 + counts + 2 + shares).clamp(1, LONGEST_BAR);
    page.blank();
    page.line(&format!("{} of the whole run, in value order", Metric::SupplyToReceive));
    page.line(&format!("{:>label$}  {:room$}  {:>counts$}  {:>shares$}", "µs", "", "messages", "up to here"));
    for bar in &bars {
        let (drawn, number) = (drawn(bar.count, most, room), count(bar.count));
        let share = share(bar.up_to_here, all);
        page.line(&format!("{:>label$}  {drawn:room$}  {number:>counts$}  {share:>shares$}", bar.label));
    }
}

fn bars(histogram: &Histogram, fates: &Fates) -> Vec<Bar> {
    let mut bars = Vec::new();
    let mut up_to_here = 0;
    let mut push = |label: String, count: u64| {
        up_to_here += u128::from(count);
        bars.push(Bar { label, count, up_to_here });
    };
    let bins = bins(histogram);
    let wide = bins.iter().map(|bin| round_micros(bin.from).len().max(round_micros(bin.to).len())).max().unwrap_or(0);
    for bin in bins {
        push(format!("{:>wide$} – {:>wide$}", round_micros(bin.from), round_micros(bin.to)), bin.count);
    }
    let never = [fates.lost, fates.late, fates.unsent].into_iter().fold(0, u64::saturating_add);
    if never > 0 {
        push("never answered in time".to_owned(), never);
    }
    bars
}

/// A part of the range and how many values lie in it, from its lower edge to below its upper.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Bin {
    from: u64,
    to: u64,
    count: u64,
}

/// The values in bins of one ratio between round numbers, as fine as the rows allow; bins one behind the other that hold nothing are one.
fn bins(histogram: &Histogram) -> Vec<Bin> {
    let (Some((shortest, _)), Some((longest, _))) = (values(histogram).next(), values(histogram).last()) else {
        return Vec::new();
    };
    let filled = |steps: &u32| merged(counted(histogram, &edges(*steps, shortest.max(1), longest.max(1))));
    STEPS.iter().rev().map(filled).find(|bins| bins.len() <= ROWS).unwrap_or_default()
}

/// Each cell's value and count. Its upper edge stands for its values, but never beyond the maximum, as in a quantile.
fn values(histogram: &Histogram) -> impl Iterator<Item = (u64, u64)> {
    let max = histogram.max().unwrap_or(Nanos::ZERO);
    histogram.cells().map(move |(_, upper, n)| (upper.min(max).get(), n))
}

fn counted(histogram: &Histogram, edges: &[u64]) -> Vec<Bin> {
    let mut bins: Vec<Bin> = edges.windows(2).map(|pair| Bin { from: pair[0], to: pair[1], count: 0 }).collect();
    let mut at = 0;
    for (value, n) in values(histogram) {
        while at + 1 < bins.len() && bins[at].to <= value {
            at += 1;
        }
        if let Some(bin) = bins.get_mut(at) {
            bin.count += n;
        }
    }
    bins
}

fn merged(bins: Vec<Bin>) -> Vec<Bin> {
    let mut rows: Vec<Bin> = Vec::new();
    for bin in bins {
        match rows.last_mut() {
            Some(last) if last.count == 0 && bin.count == 0 => last.to = bin.to,
            _ => rows.push(bin),
        }
    }
    rows
}

/// The preferred numbers of `steps` a decade, from the last that is at most `low` to the first above `high`.
fn edges(steps: u32, low: u64, high: u64) -> Vec<u64> {
    let mut edges = Vec::new();
    for edge in (0..).map(|step| preferred_number(step, steps)) {
        if edge <= low {
            edges.clear();
        }
        if edges.last() != Some(&edge) {
            edges.push(edge);
        }
        if edge > high {
            break;
        }
    }
    edges
}

/// 10 to the `step / steps`, to as many digits as tell it from its neighbours.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive, and the cast saturates")]
fn preferred_number(step: u32, steps: u32) -> u64 {
    let digits = match steps {
        0..=20 => 2,
        21..=240 => 3,
        _ => 4,
    };
    let exact = 10_f64.powf(f64::from(step) / f64::from(steps));
    let unit = 10_f64.powi((exact.log10() + 1e-9).floor() as i32 + 1 - digits).max(1.0);
    ((exact / unit).round() * unit) as u64
}

/// A bar in eighths of a character; whatever is not zero is seen.
fn drawn(count: u64, most: u64, room: usize) -> String {
    let eighths = u128::from(count) * 8 * room as u128 / u128::from(most.max(1));
    let eighths = usize::try_from(eighths).unwrap_or(8 * room).clamp(usize::from(count > 0), 8 * room);
    let part = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"][eighths % 8];
    "█".repeat(eighths / 8) + part
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(values: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &ns in values {
            histogram.record(Nanos::new(ns));
        }
        histogram
    }

    #[test]
    fn edges_are_round_numbers() {
        let shown = |steps| edges(steps, 11_000, 90_000).into_iter().map(round_micros).collect::<Vec<_>>().join(" ");
        assert_eq!(shown(3), "10 22 46 100");
        assert_eq!(shown(10), "10 13 16 20 25 32 40 50 63 79 100");
        assert_eq!(edges(480, 1, Histogram::HIGHEST.get()).first(), Some(&1));
    }

    #[test]
    fn what_holds_nothing_is_one_row() {
        let bins = bins(&of(&[10_000, 10_000, 70_000_000]));
        assert_eq!(bins.iter().map(|bin| bin.count).collect::<Vec<_>>(), [2, 0, 1]);
        assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from));
    }

    #[test]
    fn what_is_not_zero_is_seen() {
        assert_eq!(drawn(0, 1_000_000, 10), "");
        assert_eq!(drawn(1, 1_000_000, 10), "▏");
        assert_eq!(drawn(1_000_000, 1_000_000, 3), "███");
        assert_eq!(drawn(u64::MAX, u64::MAX, 3), "███");
    }

    proptest! {
        #[test]
        fn every_value_stands_in_one_bar(raw in prop::collection::vec(any::<u64>(), 1..200)) {
            let values: Vec<u64> = raw.into_iter().map(|n| n >> (n % 64)).collect();
            let bins = bins(&of(&values));
            prop_assert!((1..=ROWS).contains(&bins.len()));
            prop_assert!(bins.iter().all(|bin| bin.from < bin.to));
            prop_assert!(bins.windows(2).all(|pair| pair[0].to == pair[1].from));
            prop_assert_eq!(bins.iter().map(|bin| bin.count).sum::<u64>(), values.len() as u64);
            prop_assert!(bins[0].count > 0 && bins[bins.len() - 1].count > 0);
        }
    }
}
