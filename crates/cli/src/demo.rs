//! `tickpong demo`: two hosts on this machine.

use std::sync::atomic::AtomicBool;

use anyhow::Context;
use tickpong_hostio::hosts::Hosts;
use tickpong_hostio::thread::{Cpu, CpuList, allowed_cpus, default_cpus};
use tickpong_lab::player::PingPlayer;
use tickpong_lab::suite::Suite;
use tickpong_record::{RunDirectory, RunWriter};
use tickpong_runner::local::LocalHosts;
use tickpong_runner::{HotCpus, Key, PingSettings, RunnerError};
use tickpong_units::{Nanos, Seed};

use crate::arguments::{DemoArguments, Format, SuiteFormat};
use crate::{output, ping, stop, suite};

const DURATION: Nanos = Nanos::from_secs(5);
const SHARED: &str =
    "both ends share one CPU: spinning, each waits for the other's time slice; --api udp-block does better";

pub(crate) fn run(arguments: &DemoArguments) -> anyhow::Result<u8> {
    let (plan, trace) = ping::plan(&arguments.plan, DURATION)?;
    let is_suite = arguments.plan.is_the_usual() && !arguments.output.observations;
    arguments.output.output.as_deref().map_or(Ok(()), RunWriter::refuse_existing).map_err(RunnerError::from)?;
    let allowed = allowed_cpus().map_err(|source| RunnerError::Cpus { source })?;
    if let Some(cpu) = [arguments.cpu, arguments.reflector_cpu].iter().flatten().find(|cpu| !allowed.contains(cpu)) {
        return Err(RunnerError::NoSuchCpu { cpu: cpu.get(), allowed: CpuList::new(allowed).to_string() }.into());
    }
    // First of all, while this process has one thread: a process with several cannot move between hosts.
    let local = LocalHosts::set_up(arguments.hosts)?;
    let stop = stop::on_signals()?;
    let kind = local.hosts.kind();
    let mut warnings: Vec<String> =
        local.refused.iter().map(|refused| format!("not {}: {}", refused.kind, refused.reason)).collect();
    for refused in &warnings {
        output::advise(refused);
    }
    output::advise(&format!("two hosts: {}", describe(kind)));
    warnings.extend(kind.what_it_costs().iter().map(ToString::to_string));
    let hot = default_cpus(&allowed, 2);
    if hot.is_shared() {
        warnings.push(SHARED.to_owned());
    }
    // Each end gets a CPU that the other has not asked for, where there is one.
    let free = |other: Option<Cpu>| hot.hot.iter().copied().find(|cpu| Some(*cpu) != other).or(other);
    let reflector_cpu = arguments.reflector_cpu.or_else(|| free(arguments.cpu));
    let cpu = arguments.cpu.or_else(|| free(reflector_cpu));
    let mut reflect = vec!["--api".to_owned(), arguments.plan.api.to_string()];
    reflect.extend(reflector_cpu.map(|cpu| format!("--cpu={}", cpu.get())));
    reflect.extend(cpu.map(|cpu| format!("--avoid-cpu={}", cpu.get())));
    reflect.extend(arguments.host.again());
    if !is_suite {
        reflect.push("--once".to_owned());
    }
    let reflector = local.start_reflector(&reflect)?;
    let settings = PingSettings {
        host: reflector.address.clone(),
        plan,
        trace,
        bind: Some(local.hosts.pinger_address()),
        interface: None,
        control_interface: None,
        key: Key::from_text(reflector.key()).map_err(RunnerError::from)?,
        cpus: HotCpus::One(cpu),
        avoid: reflector_cpu.into_iter().collect(),
        hosts: Some(kind),
        warnings,
        hot: arguments.host.hot(),
        clock: arguments.host.clock(),
        buffer_bytes: arguments.host.socket_buffer,
        scenario: None,
        labels: arguments.output.labels(),
        output: arguments.output.output.clone(),
        observations: arguments.output.observations,
    };
    if is_suite { suite(settings, arguments, &stop) } else { ping::play(&settings, arguments.output.format, &stop) }
}

/// The three figures in short: the run at the base rate in full, then what all came to.
fn suite(settings: PingSettings, arguments: &DemoArguments, stop: &AtomicBool) -> anyhow::Result<u8> {
    let mut suite = Suite::find("demo")?;
    suite.set_api(arguments.plan.api);
    let scratch = tempfile::tempdir().context("make a directory for the runs")?;
    let output = arguments.output.output.clone().unwrap_or_else(|| scratch.path().join("demo"));
    let mut player = PingPlayer { settings: PingSettings { output: None, ..settings }, stop };
    let result = suite::campaign(&suite, &mut player, &output, Some(Seed::new(1)), false, stop)?;
    if arguments.output.format == Format::Json {
        return suite::print(&result, SuiteFormat::Json);
    }
    if let Some(base) = result.base_rate.iter().flat_map(|base| &base.runs).next() {
        let read = RunDirectory::read(&output.join(&base.directory))?;
        output::result(&tickpong_report::text(&read.run, &read.histograms, output::style()))?;
        output::result("\n")?;
    }
    suite::print(&result, SuiteFormat::Text)
}

fn describe(kind: Hosts) -> &'static str {
    match kind {
        Hosts::Namespaces => "network namespaces of this machine, joined by a veth pair",
        Hosts::UserNamespaces => "network namespaces inside a user namespace of this machine, joined by a veth pair",
        Hosts::Loopback => "two addresses of this machine's loopback interface",
    }
}
