//! What there is once a run is over, put together.

use std::sync::PoisonError;
use std::time::SystemTime;

use tickpong_analyse::{Analysis, Disturbances, Outcome, ReflectorSaw, Seen, invalid_because};
use tickpong_hostio::clock::{ClockCheck, HostClock};
use tickpong_record::capture::{ReceiveTotals, SendTotals};
use tickpong_record::{
    Cpu, Ends, HostFacts, Identity, Ignored, InForce, Memory, Plan, RUN_FORMAT, ReflectorReport, Run, Sockets, Source,
};

use crate::hot::Warnings;
use crate::ping::{Finished, PingSettings};
use crate::session::Played;
use crate::watch::Watched;
use crate::{VERSION, host};

/// Everything known of a run beside what was played.
pub(crate) struct Parts<'a> {
    pub(crate) settings: &'a PingSettings,
    pub(crate) plan: Plan,
    pub(crate) clock: &'a HostClock,
    pub(crate) clock_check: ClockCheck,
    pub(crate) started_at: SystemTime,
    pub(crate) sockets: Sockets,
    pub(crate) in_force: InForce,
    pub(crate) report: Option<ReflectorReport>,
    pub(crate) warnings: Warnings,
    pub(crate) pinger: HostFacts,
    pub(crate) watched: Watched,
}

impl Parts<'_> {
    /// Puts the run together, and moves its directory into place.
    pub(crate) fn finish(self, played: Played) -> Finished {
        let Played { sent, received, collected, turns, metering, overflowed, observations, .. } = played;
        let outcome = Analysis::finish(collected.analysis, &sent, &received, &self.seen());
        let disturbances = Disturbances {
            interrupted_after: (self.watched.interrupted && self.cut(&sent)).then_some(sent.length),
            reflector_lost: self.watched.lost.clone(),
            clamped: outcome.clamped,
            impossible: outcome.impossible,
            overflowed,
            clocks: self.clock_complaints(),
        };
        let because = invalid_because(&self.plan, &sent, &disturbances);
        let memory = host::memory(&metering.memory, &metering.threads);
        let cpu = host::cpu(metering.threads, sent.sent, turns.busy_share());
        let (run, histograms, pinger, reflector) = self.run(outcome, &received, &sent, because, (cpu, memory));
        let not_written = match (collected.failed.or(observations.err()), collected.writer) {
            (Some(error), _) => Some(error),
            (None, Some(writer)) => writer.finish(&run, &pinger, reflector.as_ref()).err(),
            (None, None) => None,
        };
        Finished { run, histograms, not_written }
    }

    /// Whether the plan was cut. A wish to stop that came after its end cut nothing, and neither did a loss of the other end.
    fn cut(&self, sent: &SendTotals) -> bool {
        sent.length < self.plan.length()
    }

    /// What both hosts saw beside the messages.
    fn seen(&self) -> Seen {
        Seen {
            pinger_socket_drops: self.sockets.drops.unwrap_or_default(),
            reflector: self.report.as_ref().map(|report| ReflectorSaw {
                received: report.received,
                unanswered: report.unanswered,
                socket_drops: report.sockets.drops.unwrap_or_default(),
            }),
        }
    }

    fn clock_complaints(&self) -> Vec<String> {
        let mut complaints = Vec::new();
        if !self.clock_check.is_trustworthy() {
            let (drift, limit) = (self.clock_check.drift_ppm, self.clock_check.limit_ppm);
            let ran = format!("the pinger's ran {drift:+.1} ppm from the kernel's raw clock; {limit:.0} are tolerated");
            complaints.push(ran);
        }
        if let Some(report) = self.report.as_ref().filter(|report| !report.clock_trustworthy) {
            complaints
                .push(format!("the reflector's ran {:+.1} ppm from its kernel's raw clock", report.clock.drift_ppm));
        }
        complaints
    }

    fn identity(&self) -> Identity {
        let reflector = self.report.as_ref().map(|report| &report.host);
        Identity {
            started_at: Some(humantime::format_rfc3339_millis(self.started_at).to_string()),
            hosts: self.settings.hosts.map(|hosts| hosts.to_string()),
            scenario: self.settings.scenario.as_ref().map(|(name, _)| name.clone()),
            repetition: self.settings.scenario.as_ref().map(|(_, repetition)| *repetition),
            plan_hash: self.plan.hash(),
            tickpong_version: VERSION.to_owned(),
            binary_sha256: self.pinger.binary_sha256.clone(),
            boot_id: Ends {
                pinger: self.pinger.boot_id.clone(),
                reflector: reflector.and_then(|host| host.boot_id.clone()),
            },
            host_hash: Ends { pinger: Some(self.pinger.hash()), reflector: reflector.map(HostFacts::hash) },
            ..Identity::default()
        }
    }

    fn run(
        self,
        outcome: Outcome,
        received: &ReceiveTotals,
        sent: &SendTotals,
        because: Vec<String>,
        (cpu, memory): (Cpu, Memory),
    ) -> (Run, Histograms, HostFacts, Option<HostFacts>) {
        let (identity, interrupted) = (self.identity(), self.cut(sent));
        let mut warnings = self.warnings.into_inner().unwrap_or_else(PoisonError::into_inner);
        let reflector = self.report;
        let said = reflector.iter().flat_map(|report| &report.warnings);
        warnings.extend(said.map(|said| format!("reflector: {said}")));
        let run = Run {
            format: RUN_FORMAT,
            source: Source::Hardware,
            engine: "probe".to_owned(),
            seed: self.plan.seed,
            valid: because.is_empty(),
            invalid_because: because,
            interrupted,
            warnings,
            labels: self.settings.labels.clone(),
            identity,
            fates: outcome.fates,
            fates_after_warm_up: outcome.fates_after_warm_up,
            losses: outcome.losses,
            ignored: ignored(received, reflector.as_ref()),
            achieved_rate_hz: outcome.achieved_rate_hz.filter(|_| sent.sent > 0),
            answered_rate_hz: outcome.answered_rate_hz.filter(|_| sent.sent > 0),
            fall_behinds: outcome.fall_behinds,
            whole: outcome.whole,
            after_warm_up: outcome.after_warm_up,
            memory: Ends { pinger: Some(memory), reflector: reflector.as_ref().map(|r| r.memory) },
            cpu: Ends { pinger: Some(cpu), reflector: reflector.as_ref().map(|r| r.cpu.clone()) },
            in_force: Ends { pinger: Some(self.in_force), reflector: reflector.as_ref().map(|r| r.in_force.clone()) },
            clock: host::clock_facts(self.clock, &self.clock_check),
            reflector_clock: reflector.as_ref().map(|r| r.clock.clone()),
            sockets: Sockets { reflector: reflector.as_ref().map(|r| Box::new(r.sockets.clone())), ..self.sockets },
            plan: self.plan,
        };
        (run, outcome.histograms, self.pinger, reflector.map(|report| report.host))
    }
}

/// All intervals merged, a histogram a metric.
type Histograms = std::collections::BTreeMap<tickpong_record::Metric, tickpong_stats::Histogram>;

fn ignored(received: &ReceiveTotals, reflector: Option<&ReflectorReport>) -> Ignored {
    Ignored {
        malformed: received.malformed,
        foreign: received.foreign,
        corrupt: received.corrupt,
        stale: received.stale,
        reflector_malformed: reflector.map(|r| r.malformed),
        reflector_foreign: reflector.map(|r| r.foreign),
        reflector_duplicate: reflector.map(|r| r.duplicate),
    }
}
