//! How figures moved: from run to run, and within a run from interval to interval.

use tickpong_record::{
    AcrossIntervals, AcrossRuns, Cpu, Figure, IntervalTable, Memory, Plan, Range, Run, Series, Spread, Summary, Used,
    Window,
};
use tickpong_units::Quantile;

/// The series with its runs in order and everything that they come to.
pub(super) fn summed_up(mut series: Series) -> Series {
    // The directory ends in the repetition.
    series.runs.sort_by_key(|run| (run.directory.len(), run.directory.clone()));
    let runs: Vec<&Run> = series.runs.iter().map(|made| &made.run).filter(|run| run.valid).collect();
    (series.whole, series.after_warm_up) =
        (across_runs(&runs, |run| &run.whole), across_runs(&runs, |run| &run.after_warm_up));
    series.used = used(&runs);
    series
}

fn across_runs(runs: &[&Run], window: fn(&Run) -> &Window) -> AcrossRuns {
    let spread = |pick: fn(&Summary) -> Figure| {
        let felt = runs.iter().filter_map(|run| window(run).supply_to_receive_ns.as_ref());
        spread(felt.map(pick).collect())
    };
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a mean of nanoseconds, cut off")]
    let mean = |summary: &Summary| summary.mean.map_or(Figure::Unsupported, |mean| Figure::Finite(mean as u64));
    AcrossRuns {
        runs: runs.len() as u64,
        mean: spread(mean),
        p50: spread(|summary| summary.p50),
        p99: spread(|summary| summary.p99),
        p999: spread(|summary| summary.p999),
        max: spread(|summary| summary.max.map_or(Figure::Unsupported, Figure::Finite)),
    }
}

fn spread(mut figures: Vec<Figure>) -> Option<Spread> {
    figures.retain(|figure| *figure != Figure::Unsupported);
    figures.sort_by_key(|figure| in_order(*figure));
    let (lowest, highest) = (*figures.first()?, *figures.last()?);
    let middle = usize::try_from(Quantile::P50.rank(figures.len() as u64)).unwrap_or(1) - 1;
    Some(Spread { lowest, median: figures[middle], highest })
}

fn used(runs: &[&Run]) -> Used {
    let pinger = |pick: fn(&Cpu, &Plan) -> Option<f64>| {
        median(runs.iter().filter_map(|run| pick(run.cpu.pinger.as_ref()?, &run.plan)).collect())
    };
    let reflector = |pick: fn(&Cpu, &Plan) -> Option<f64>| {
        median(runs.iter().filter_map(|run| pick(run.cpu.reflector.as_ref()?, &run.plan)).collect())
    };
    let peak = |memory: fn(&Run) -> Option<Memory>| runs.iter().filter_map(|run| Some(memory(run)?.peak_bytes)).max();
    Used {
        pinger_ns_per_message: pinger(|cpu, _| cpu.ns_per_message),
        reflector_ns_per_message: reflector(|cpu, _| cpu.ns_per_message),
        pinger_cores: pinger(cores),
        reflector_cores: reflector(cores),
        pinger_busy_share: pinger(|cpu, _| cpu.busy_share),
        reflector_busy_share: reflector(|cpu, _| cpu.busy_share),
        pinger_peak_bytes: peak(|run| run.memory.pinger),
        reflector_peak_bytes: peak(|run| run.memory.reflector),
    }
}

#[expect(clippy::unnecessary_wraps, reason = "one of several that may know nothing")]
#[expect(clippy::cast_precision_loss, reason = "nanoseconds of a run are far below 2^53")]
fn cores(cpu: &Cpu, plan: &Plan) -> Option<f64> {
    Some((cpu.user_ns + cpu.system_ns) as f64 / plan.length().get() as f64)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let rank = usize::try_from(Quantile::P50.rank(values.len() as u64)).ok()?;
    values.get(rank - 1).copied()
}

/// How SupplyToReceive moved from interval to interval after the warm-up, and the first interval's maximum beside all others'.
pub(super) fn across_intervals(table: &IntervalTable, plan: &Plan) -> AcrossIntervals {
    let warm_up = usize::try_from(plan.warm_up_intervals()).unwrap_or(usize::MAX);
    let range = |column: &str| {
        let all = spread(table.column(column).into_iter().skip(warm_up).collect())?;
        Some(Range { lowest: all.lowest, highest: all.highest })
    };
    let mut maxima = table.column("supply_to_receive_max_ns");
    let later = if maxima.is_empty() { Vec::new() } else { maxima.split_off(1) };
    AcrossIntervals {
        p50: range("supply_to_receive_p50_ns"),
        p99: range("supply_to_receive_p99_ns"),
        max: range("supply_to_receive_max_ns"),
        first_max: spread(maxima).map(|first| first.highest),
        later_max: spread(later).map(|later| later.highest),
    }
}

/// Infinite above everything.
fn in_order(figure: Figure) -> u128 {
    match figure {
        Figure::Finite(ns) => ns.into(),
        Figure::Infinite => u128::MAX,
        Figure::Unsupported => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    #[test]
    fn the_first_interval_is_told_apart() {
        let table = fixture::intervals(&[5_000, 1, 2, 3], &[9, 9, 9, 9]);
        let across = across_intervals(&table, &fixture::plan(1_000));
        assert_eq!(across.p50, Some(Range { lowest: Figure::Finite(10_000), highest: Figure::Finite(5_009_000) }));
        let warm = Plan { warm_up_ns: fixture::plan(1).interval_ns, ..fixture::plan(1_000) };
        let across = across_intervals(&table, &warm);
        assert_eq!(across.p50, Some(Range { lowest: Figure::Finite(10_000), highest: Figure::Finite(12_000) }));
        assert_eq!((across.first_max, across.later_max), (Some(Figure::Finite(90_000)), Some(Figure::Finite(90_000))));
        assert_eq!(across_intervals(&IntervalTable::default(), &warm), AcrossIntervals::default());
    }

    #[test]
    fn a_spread_has_a_middle_and_infinity_on_top() {
        let finite = Figure::Finite;
        let of = |figures: &[Figure]| spread(figures.to_vec());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[Figure::Unsupported]), None);
        let all = [finite(3), Figure::Infinite, finite(1), finite(2), Figure::Unsupported];
        assert_eq!(of(&all), Some(Spread { lowest: finite(1), median: finite(2), highest: Figure::Infinite }));
    }

    #[test]
    fn an_invalid_run_moves_no_figure() {
        let made = |valid: bool, p50: u64| {
            let mut run = fixture::run(1_000);
            run.valid = valid;
            run.whole.supply_to_receive_ns.as_mut().unwrap().p50 = Figure::Finite(p50);
            let across_intervals = AcrossIntervals::default();
            tickpong_record::SeriesRun { directory: format!("a/{p50}"), across_intervals, run }
        };
        let runs = vec![made(true, 10), made(false, 9_000), made(true, 9)];
        let series = summed_up(Series { runs, ..Series::default() });
        assert_eq!(series.whole.runs, 2);
        assert_eq!(series.whole.p50.unwrap().highest, Figure::Finite(10));
        let order: Vec<_> = series.runs.iter().map(|run| run.directory.as_str()).collect();
        assert_eq!(order, ["a/9", "a/10", "a/9000"]);
    }
}
