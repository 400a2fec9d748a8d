//! Runs made up for the tests.

use std::collections::BTreeMap;

use tickpong_record::{
    Api, ClockFacts, Cpu, Ends, Fates, Figure, Identity, Ignored, InForce, Losses, Memory, Metric, Pacing, Plan,
    RUN_FORMAT, Run, ScheduleKind, Sockets, Source, Summary, ThreadCpu, ThreadInForce, UdpCounters, Window,
};
use tickpong_stats::{Histogram, Value};
use tickpong_units::{Nanos, PayloadLen, Quantile, Rate, Seed};

/// A run, and its histograms: what a report is made of.
#[derive(Clone)]
pub(crate) struct Made {
    pub(crate) run: Run,
    pub(crate) histograms: BTreeMap<Metric, Histogram>,
}

/// Numbers that look random and are the same everywhere.
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new() -> Self {
        Self(0x9e37_79b9_7f4a_7c15)
    }

    /// From zero to below `n`.
    pub(crate) fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }
}

/// Values of one metric, each with the instant at which its message was due.
#[derive(Clone, Default)]
pub(crate) struct Values(pub(crate) Vec<(u64, u64)>);

impl Values {
    fn histogram(&self) -> Histogram {
        let mut histogram = Histogram::new();
        for (_, ns) in &self.0 {
            histogram.record(Nanos::new(*ns));
        }
        histogram
    }

    /// Those due at `from` or later.
    fn since(&self, from: u64) -> Self {
        Self(self.0.iter().copied().filter(|(due, _)| *due >= from).collect())
    }

    /// Their summary, over `denominator` messages.
    pub(crate) fn summary(&self, denominator: u64) -> Option<Summary> {
        let histogram = self.histogram();
        let quantile = |q| Figure::from(histogram.quantile_of(q, denominator));
        let named = [("p50", Quantile::P50), ("p90", Quantile::P90), ("p99", Quantile::P99), ("p999", Quantile::P999)];
        let named = named.into_iter().chain([("p9999", Quantile::P9999)]);
        let thin = |q: Quantile| {
            denominator.saturating_sub(q.rank(denominator)) < 10
                && histogram.quantile_of(q, denominator) != Value::Unsupported
        };
        let longest = self.0.iter().rev().max_by_key(|(_, ns)| *ns);
        (denominator > 0).then(|| Summary {
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
            max_at_interval: longest.map(|(due, _)| due / 1_000_000_000),
            max_at_ns: longest.map(|(due, _)| *due),
            clamped: histogram.clamped(),
            thin: named.filter(|(_, q)| thin(*q)).map(|(name, _)| name.to_owned()).collect(),
        })
    }
}

impl Made {
    /// A valid run of 10,000 messages a second for ten seconds after one: a quiet pair of hosts, with a slow moment in the warm-up.
    pub(crate) fn quiet() -> Self {
        let mut made = Self { run: run(), histograms: BTreeMap::new() };
        let (mut supply, mut rtt, mut lateness, mut turnaround, mut gap) = Default::default();
        let mut dice = Dice::new();
        let mut before = 0;
        for k in 0..110_000_u64 {
            let due = k * 100_000;
            let late = 30 + dice.below(40) + if k % 5_003 == 7 { dice.below(90_000) } else { 0 };
            let spread: u64 = (0..4).map(|_| dice.below(1_500)).sum();
            let tail = if dice.below(700) == 0 { dice.below(60_000) } else { 0 };
            let stall = if k == 3_124 { 812_345 } else { 0 };
            let there_and_back = 14_200 + spread + tail + stall;
            push(&mut supply, due, late + there_and_back);
            push(&mut rtt, due, there_and_back);
            push(&mut lateness, due, late);
            push(&mut turnaround, due, 2_100 + dice.below(700));
            if k > 0 {
                push(&mut gap, due, due + late - before);
            }
            before = due + late;
        }
        made.measured(&[supply, rtt, lateness, turnaround, gap]);
        made
    }

    /// Takes these values for what was measured; messages without an answer are already in the fates.
    pub(crate) fn measured(&mut self, values: &[Values; 5]) {
        let from = self.run.plan.warm_up_ns.get();
        let later = values.clone().map(|values| values.since(from));
        self.run.whole = window(values, self.run.fates.scheduled);
        self.run.after_warm_up = window(&later, self.run.fates_after_warm_up.scheduled);
        self.histograms = Metric::ALL.into_iter().zip(values.iter().map(Values::histogram)).collect();
    }

    /// The run with something else about it.
    pub(crate) fn but(mut self, change: impl FnOnce(&mut Run)) -> Self {
        change(&mut self.run);
        self
    }
}

pub(crate) fn push(values: &mut Values, due: u64, ns: u64) {
    values.0.push((due, ns));
}

fn window(values: &[Values; 5], scheduled: u64) -> Window {
    let [supply, rtt, lateness, turnaround, gap] = values;
    let of_values = |values: &Values| values.summary(values.0.len() as u64);
    Window {
        supply_to_receive_ns: supply.summary(scheduled),
        rtt_ns: of_values(rtt),
        send_lateness_ns: of_values(lateness),
        turnaround_ns: of_values(turnaround),
        send_gap_ns: of_values(gap),
    }
}

pub(crate) fn fates(answered: u64, lost: u64, late: u64, unsent: u64) -> Fates {
    Fates { scheduled: answered + lost + late + unsent, answered, lost, late, unsent, duplicate: 0, reordered: 0 }
}

fn run() -> Run {
    Run {
        format: RUN_FORMAT,
        source: Source::Hardware,
        engine: "probe".into(),
        seed: Seed::new(1),
        valid: true,
        invalid_because: vec![],
        interrupted: false,
        warnings: vec![],
        labels: BTreeMap::from([("hosts".into(), "alder, birch".into()), ("kernel".into(), "6.18".into())]),
        identity: Identity {
            started_at: Some("2026-03-14T09:26:53.589Z".into()),
            testbed: Some("rack-7".into()),
            tickpong_version: "0.1.0".into(),
            ..Identity::default()
        },
        plan: plan(),
        fates: fates(110_000, 0, 0, 0),
        fates_after_warm_up: fates(100_000, 0, 0, 0),
        losses: Losses::default(),
        ignored: Ignored { reflector_malformed: Some(0), ..Ignored::default() },
        achieved_rate_hz: Some(10_000.0),
        answered_rate_hz: Some(10_000.0),
        fall_behinds: 4,
        whole: Window::default(),
        after_warm_up: Window::default(),
        cpu: Ends { pinger: Some(cpu("pinger")), reflector: Some(reflector_cpu()) },
        memory: Ends {
            pinger: Some(memory()),
            reflector: Some(Memory { minor_faults: 3, resident_bytes: 9_400_000, ..memory() }),
        },
        in_force: Ends { pinger: Some(in_force(&[("pinger", "2")])), reflector: Some(in_force(&[("reflector", "3")])) },
        clock: clock("tsc"),
        reflector_clock: Some(ClockFacts { frequency_hz: Some(2_100_000_000), drift_ppm: -0.07, ..clock("tsc") }),
        sockets: Sockets {
            reflector: Some(Box::new(Sockets { receive_buffer_granted: 425_984, forced: false, ..sockets() })),
            ..sockets()
        },
    }
}

pub(crate) fn plan() -> Plan {
    Plan {
        offered_rate_hz: Rate::new(10_000),
        payload_bytes: PayloadLen::STANDARD,
        duration_ns: Nanos::from_secs(10),
        warm_up_ns: Nanos::from_secs(1),
        interval_ns: Nanos::from_secs(1),
        deadline_ns: Nanos::from_secs(1),
        pacing: Pacing::Open,
        schedule: ScheduleKind::Fixed,
        seed: Seed::new(1),
        api_pinger: Api::UdpSpin,
        api_reflector: Api::UdpBlock,
        tx_cpu: Some(2),
        rx_cpu: None,
    }
}

pub(crate) fn in_force(threads: &[(&str, &str)]) -> InForce {
    let thread = |&(name, cpus): &(&str, &str)| ThreadInForce {
        name: name.into(),
        cpus: cpus.into(),
        scheduling: "other".into(),
    };
    InForce {
        threads: threads.iter().map(thread).collect(),
        memory_locked: true,
        dma_latency_held: true,
        busy_poll_us: Some(0),
    }
}

fn cpu(name: &str) -> Cpu {
    let thread = ThreadCpu { name: name.into(), ..ThreadCpu::default() };
    Cpu {
        user_ns: 9_876_543_210,
        system_ns: 1_123_400_000,
        ns_per_message: Some(99_999.5),
        busy_share: Some(0.0732),
        voluntary_switches: 0,
        involuntary_switches: 12,
        threads: vec![thread],
    }
}

/// It waits in the kernel, so it used little.
fn reflector_cpu() -> Cpu {
    Cpu {
        user_ns: 301_200_000,
        system_ns: 1_412_900_000,
        ns_per_message: Some(15_582.7),
        busy_share: None,
        voluntary_switches: 109_998,
        ..cpu("reflector")
    }
}

fn memory() -> Memory {
    Memory {
        resident_bytes: 13_000_000,
        peak_bytes: 14_100_000,
        locked_bytes: 13_000_000,
        minor_faults: 0,
        major_faults: 0,
    }
}

fn clock(kind: &str) -> ClockFacts {
    ClockFacts {
        kind: kind.into(),
        frequency_hz: Some(2_995_200_000),
        resolution_ns: 10,
        read_cost_ns: 8.4,
        drift_ppm: 0.12,
        counter_refused: None,
    }
}

fn sockets() -> Sockets {
    Sockets {
        receive_buffer_asked: 4 << 20,
        receive_buffer_granted: 8 << 20,
        send_buffer_asked: 1 << 20,
        send_buffer_granted: 2 << 20,
        forced: true,
        drops: Some(0),
        path_mtu_bytes: Some(1_500),
        host_udp: Some(UdpCounters { in_datagrams: 110_012, out_datagrams: 110_010, ..UdpCounters::default() }),
        reflector: None,
    }
}
