//! One metric of one part of a run.

use tickpong_record::capture::Measured;
use tickpong_record::{Figure, Summary};
use tickpong_stats::Value;
use tickpong_units::{Nanos, Quantile};

/// Fewer observations beyond a quantile than this, and it is thin.
const THIN_BELOW: u64 = 10;

/// The summary of what was measured, with quantiles over `denominator` messages; `None` where there was no message at all.
pub fn summary(measured: &Measured, denominator: u64, interval: Nanos) -> Option<Summary> {
    let histogram = &measured.histogram;
    // More answers than messages are made up, and the run is invalid; quantiles then rest on what there is.
    let denominator = denominator.max(histogram.count());
    if denominator == 0 {
        return None;
    }
    let quantile = |q: Quantile| Figure::from(histogram.quantile_of(q, denominator));
    let named = [
        ("p50", Quantile::P50),
        ("p90", Quantile::P90),
        ("p99", Quantile::P99),
        ("p999", Quantile::P999),
        ("p9999", Quantile::P9999),
    ];
    let thin = |q: Quantile| denominator - q.rank(denominator) < THIN_BELOW;
    let longest_at = (histogram.count() > 0).then_some(measured.longest_at);
    Some(Summary {
        count: histogram.count(),
        denominator,
        min: histogram.min().map(Nanos::get),
        mean: histogram.mean(),
        sd: histogram.standard_deviation(),
        p50: quantile(Quantile::P50),
        p90: quantile(Quantile::P90),
        p99: quantile(Quantile::P99),
        p999: quantile(Quantile::P999),
        p9999: quantile(Quantile::P9999),
        max: histogram.max().map(Nanos::get),
        max_at_interval: longest_at.map(|at| at.whole(interval)),
        max_at_ns: longest_at.map(Nanos::get),
        clamped: histogram.clamped(),
        thin: named
            .into_iter()
            .filter(|&(_, q)| thin(q) && histogram.quantile_of(q, denominator) != Value::Unsupported)
            .map(|(name, _)| name.to_owned())
            .collect(),
    })
}
