//! What the runs of a search come to: the boundary, and the curve of latency by rate.

use tickpong_record::{FailedRun, Figure, HighestRate, Run, TriedRate};
use tickpong_units::Rate;

use crate::judge::{Failure, missing};
use crate::search::{Boundary, Limits, Search};

/// A p99 beyond so many times the least one lies behind the knee.
const BEHIND_THE_KNEE: u64 = 2;

/// What a run of the search says.
pub(super) fn tried(directory: String, rate: Rate, run: &Run, failure: Option<Failure>) -> TriedRate {
    let felt = run.after_warm_up.supply_to_receive_ns.as_ref();
    let (pinger, reflector) = (run.cpu.pinger.as_ref(), run.cpu.reflector.as_ref());
    TriedRate {
        directory,
        offered_rate_hz: rate.get(),
        achieved_rate_hz: run.achieved_rate_hz,
        held: failure.is_none(),
        gave_way: failure.as_ref().map(|failure| failure.gave_way),
        because: failure.map(|failure| failure.because),
        missing: missing(run),
        supply_to_receive_p50_ns: felt.map_or(Figure::Unsupported, |felt| felt.p50),
        supply_to_receive_p99_ns: felt.map_or(Figure::Unsupported, |felt| felt.p99),
        supply_to_receive_max_ns: felt.and_then(|felt| felt.max),
        pinger_ns_per_message: pinger.and_then(|cpu| cpu.ns_per_message),
        pinger_busy_share: pinger.and_then(|cpu| cpu.busy_share),
        reflector_busy_share: reflector.and_then(|cpu| cpu.busy_share),
    }
}

/// What the search came to.
pub(super) fn highest_rate(
    search: &Search,
    limits: Limits,
    runs: Vec<TriedRate>,
    failed: Vec<FailedRun>,
) -> HighestRate {
    let Boundary { sustained, failed: beyond } = search.boundary();
    // The last run at the rate that failed: the one that settled it.
    let settled =
        beyond.and_then(|beyond| runs.iter().rev().find(|run| run.offered_rate_hz == beyond.get() && !run.held));
    HighestRate {
        sustained_hz: sustained.map(Rate::get),
        uncertainty_hz: sustained.zip(beyond).map(|(held, beyond)| beyond.get() - held.get()),
        gave_way: settled.and_then(|run| run.gave_way),
        because: settled.and_then(|run| run.because.clone()),
        knee_hz: knee(&runs),
        allowed_loss: limits.loss,
        allowed_shortfall: limits.shortfall,
        runs,
        failed,
    }
}

/// The highest rate that held with a p99 not far beyond the least.
fn knee(runs: &[TriedRate]) -> Option<u64> {
    let held =
        || runs.iter().filter(|run| run.held).filter_map(|run| Some((run, run.supply_to_receive_p99_ns.finite()?)));
    let least = held().map(|(_, p99)| p99).min()?;
    let before = held().filter(|(_, p99)| *p99 <= least.saturating_mul(BEHIND_THE_KNEE));
    before.map(|(run, _)| run.offered_rate_hz).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn at(hz: u64, p99_us: u64, held: bool) -> TriedRate {
        let mut run = tried(String::new(), Rate::new(hz).unwrap(), &fixture::run(hz), None);
        run.held = held;
        run.supply_to_receive_p99_ns = Figure::Finite(p99_us * 1_000);
        run
    }

    #[test]
    fn the_knee_is_where_p99_has_not_doubled_yet() {
        let curve = [at(100, 10, true), at(200, 12, true), at(300, 20, true), at(400, 21, true), at(350, 12, false)];
        assert_eq!(knee(&curve), Some(300));
        assert_eq!(knee(&[]), None);
        assert_eq!(knee(&[at(100, 10, false)]), None);
    }
}
