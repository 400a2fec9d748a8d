//! Whether a run did what its plan asked, undisturbed by tickpong itself.

use tickpong_record::capture::SendTotals;
use tickpong_record::{Pacing, Plan};
use tickpong_units::Nanos;

/// Of this many messages scheduled, at most one may be sent after the plan's end or never: 0.1 %.
const SHORTFALL: u64 = 1_000;

/// What disturbed a run, beside the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Disturbances {
    /// Where a person ended the run: after how long.
    pub interrupted_after: Option<Nanos>,
    /// Where the other end was lost: how.
    pub reflector_lost: Option<String>,
    /// Values beyond a histogram's range.
    pub clamped: u64,
    /// Answers in intervals that sent fewer messages.
    pub impossible: u64,
    /// Closed intervals, or raw observations, that found no room in tickpong's own rings.
    pub overflowed: u64,
    /// Why a clock is not to be trusted.
    pub clocks: Vec<String>,
}

/// Why the run is invalid: a stable word, a colon, what happened. Empty for a valid run. Losses are a result and make no run invalid.
pub fn invalid_because(plan: &Plan, sent: &SendTotals, disturbances: &Disturbances) -> Vec<String> {
    let mut because = Vec::new();
    if let Some(after) = disturbances.interrupted_after {
        because.push(format!("interrupted: ended after {after} of {}", plan.length()));
    }
    if let Some(how) = &disturbances.reflector_lost {
        because.push(format!("reflector-lost: {how}"));
    }
    if sent.sent == 0 {
        because.push("nothing-sent: not one message left".to_owned());
    } else if plan.pacing == Pacing::Open && fell_short(sent) {
        because.push(fell_behind(sent));
    }
    if disturbances.clamped > 0 {
        because.push(format!("clamped: {} values beyond the range of a histogram", disturbances.clamped));
    }
    if disturbances.overflowed > 0 {
        let count = disturbances.overflowed;
        because.push(format!("overflow: {count} intervals or observations found no room in tickpong's own rings"));
    } else if disturbances.impossible > 0 {
        // Not told of a run that overflowed: where the sending side of an interval is missing, its answers are too many.
        let count = disturbances.impossible;
        because
            .push(format!("impossible-answers: {count} more than messages in their intervals; somebody makes them up"));
    }
    because.extend(disturbances.clocks.iter().map(|clock| format!("clock: {clock}")));
    because
}

fn fell_short(sent: &SendTotals) -> bool {
    let missing = sent.scheduled.saturating_sub(sent.sent_by_plan_end);
    missing.saturating_mul(SHORTFALL) > sent.scheduled
}

fn fell_behind(sent: &SendTotals) -> String {
    let SendTotals { scheduled, sent_by_plan_end, refused, .. } = *sent;
    if refused.saturating_mul(SHORTFALL) > scheduled {
        return format!(
            "send-refused: the pinger's kernel refused {refused} of {scheduled} messages (a local firewall?)"
        );
    }
    format!(
        "generator-behind: {sent_by_plan_end} of {scheduled} messages were sent by the plan's end; the pinger is not fast enough"
    )
}
