//! `tickpong ping`, and what it shares with `tickpong demo`.

use std::collections::BTreeMap;
use std::fs;
use std::sync::atomic::AtomicBool;

use anyhow::{Context, anyhow};
use tickpong_record::{Api, Pacing, Plan, ScheduleKind, Trace};
use tickpong_runner::{HotCpus, PingSettings, RunnerError, ping};
use tickpong_units::{Nanos, PayloadLen, Rate};

use crate::arguments::{FarArguments, Format, PingArguments, PlanArguments};
use crate::output;
use crate::progress::ProgressLine;
use crate::stop;

const DEFAULT_RATE_HZ: u64 = 100_000;
const DEFAULT_DURATION: Nanos = Nanos::from_secs(10);
/// The largest trace file that is read: a million lines of a trace are a quarter of it.
const MAX_TRACE_BYTES: u64 = 64 << 20;

pub(crate) fn run(arguments: &PingArguments) -> anyhow::Result<u8> {
    let stop = stop::on_signals()?;
    let (plan, trace) = plan(&arguments.plan, DEFAULT_DURATION)?;
    let mut settings = settings(&arguments.far, plan)?;
    settings.trace = trace;
    settings.labels = arguments.output.labels();
    settings.output.clone_from(&arguments.output.output);
    settings.observations = arguments.output.observations;
    play(&settings, arguments.output.format, &stop)
}

/// How to reach the reflector and play `plan` with it.
pub(crate) fn settings(far: &FarArguments, plan: Plan) -> anyhow::Result<PingSettings> {
    Ok(PingSettings {
        host: far.host.clone(),
        plan,
        trace: None,
        bind: far.bind,
        interface: far.interface.clone(),
        control_interface: far.control_interface.clone(),
        key: far.key.key().map_err(RunnerError::from)?,
        cpus: match (far.tx_cpu, far.rx_cpu) {
            (None, None) => HotCpus::One(far.cpu),
            (tx, rx) => HotCpus::Two { tx, rx },
        },
        avoid: Vec::new(),
        hosts: None,
        warnings: Vec::new(),
        hot: far.machine.hot(),
        clock: far.machine.clock(),
        buffer_bytes: far.machine.socket_buffer,
        scenario: None,
        labels: BTreeMap::new(),
        output: None,
        observations: false,
    })
}

/// Makes the run, with its progress, and prints it.
pub(crate) fn play(settings: &PingSettings, format: Format, stop: &AtomicBool) -> anyhow::Result<u8> {
    let mut line = ProgressLine::new();
    let finished = ping(settings, stop, &mut |progress| line.show(progress));
    line.clear();
    output::finished(&finished?, format)
}

/// The plan that the arguments mean, with its trace where it plays one.
pub(crate) fn plan(arguments: &PlanArguments, duration: Nanos) -> anyhow::Result<(Plan, Option<Trace>)> {
    let trace = match arguments.schedule.as_slice() {
        [kind, file] if kind == "trace" => Some(read_trace(file)?),
        _ => None,
    };
    let schedule: ScheduleKind = match &trace {
        Some(trace) => ScheduleKind::Trace(trace.digest().to_owned()),
        None => arguments.schedule.join(" ").parse().map_err(|error: String| anyhow!(error))?,
    };
    if trace.is_some() && (arguments.rate.is_some() || arguments.size.is_some()) {
        return Err(anyhow!("plan a trace at another rate or size: a trace has its own; leave --rate and --size away"));
    }
    let rate = match &trace {
        Some(trace) => Some(trace.mean_rate()),
        None => arguments.rate.or(Rate::new(DEFAULT_RATE_HZ)),
    };
    let plan = Plan {
        offered_rate_hz: if arguments.closed { None } else { rate },
        payload_bytes: trace.as_ref().map_or(arguments.size.unwrap_or(PayloadLen::STANDARD), Trace::largest),
        duration_ns: arguments.duration.or(trace.as_ref().map(Trace::length)).unwrap_or(duration),
        warm_up_ns: arguments.warm_up.unwrap_or(arguments.interval),
        interval_ns: arguments.interval,
        deadline_ns: arguments.deadline,
        pacing: if arguments.closed { Pacing::Closed } else { Pacing::Open },
        schedule,
        seed: arguments.seed,
        api_pinger: arguments.api,
        api_reflector: Api::default(),
        tx_cpu: None,
        rx_cpu: None,
    };
    Ok((plan.checked().map_err(RunnerError::from)?, trace))
}

fn read_trace(file: &str) -> anyhow::Result<Trace> {
    let doing = || format!("read the trace {file}");
    let length = fs::metadata(file).with_context(doing)?.len();
    if length > MAX_TRACE_BYTES {
        return Err(anyhow!("the file has {length} bytes; at most {MAX_TRACE_BYTES} are read")).with_context(doing);
    }
    Trace::parse(&fs::read_to_string(file).with_context(doing)?).with_context(doing)
}
