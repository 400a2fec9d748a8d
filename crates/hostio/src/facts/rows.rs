//! Where each fact is read from.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

use super::{FactValue, HostFacts, parse, read};

/// How a file's text becomes a fact.
type Parse = fn(&str) -> Option<FactValue>;

/// Facts that are one file each.
const FILES: [(&str, &str, Parse); 27] = [
    ("bios.version", "/sys/class/dmi/id/bios_version", parse::text),
    ("clock.available", "/sys/devices/system/clocksource/clocksource0/available_clocksource", parse::words),
    ("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", parse::text),
    ("cpu.hypervisor", CPUINFO, parse::hypervisor),
    ("cpu.idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver", parse::text),
    ("cpu.isolated", "/sys/devices/system/cpu/isolated", parse::cpu_list),
    ("cpu.microcode", CPUINFO, |text| parse::cpuinfo(text, "microcode").map(FactValue::Text)),
    ("cpu.model", CPUINFO, |text| parse::cpuinfo(text, "model name").map(FactValue::Text)),
    ("cpu.nohz_full", "/sys/devices/system/cpu/nohz_full", parse::cpu_list),
    ("cpu.online", "/sys/devices/system/cpu/online", parse::text),
    ("cpu.smt", "/sys/devices/system/cpu/smt/control", parse::text),
    ("kernel.command_line", "/proc/cmdline", parse::kernel_command_line),
    ("kernel.release", "/proc/sys/kernel/osrelease", parse::text),
    ("kernel.rt_period_us", "/proc/sys/kernel/sched_rt_period_us", parse::integer),
    ("kernel.rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us", parse::integer),
    ("kernel.version", "/proc/sys/kernel/version", parse::text),
    ("memory.numa_balancing", "/proc/sys/kernel/numa_balancing", parse::integer),
    ("memory.total_bytes", "/proc/meminfo", |text| parse::meminfo_bytes(text, "MemTotal")),
    ("memory.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", parse::chosen),
    ("net.busy_poll", "/proc/sys/net/core/busy_poll", parse::integer),
    ("net.busy_read", "/proc/sys/net/core/busy_read", parse::integer),
    ("net.max_backlog", "/proc/sys/net/core/netdev_max_backlog", parse::integer),
    ("net.rmem_max", "/proc/sys/net/core/rmem_max", parse::integer),
    ("net.wmem_max", "/proc/sys/net/core/wmem_max", parse::integer),
    ("process.command_line", "/proc/self/cmdline", parse::arguments),
    ("server.product", "/sys/class/dmi/id/product_name", parse::text),
    ("server.vendor", "/sys/class/dmi/id/sys_vendor", parse::text),
];

/// Facts of the machine and its kernel, and what single files tell of the process.
pub(super) fn read_host(facts: &mut HostFacts) {
    for (key, path, parse) in FILES {
        facts.put_file(key, path, parse);
    }
    // The one in /usr/lib is there where /etc is bare.
    let os_release = read(Path::new("/etc/os-release")).or_else(|_| read(Path::new("/usr/lib/os-release")));
    let no_name = || "os-release: no PRETTY_NAME in it".to_owned();
    facts.put("os.name", os_release.and_then(|text| parse::os_name(&text).ok_or_else(no_name)));
    facts.put("cpu.frequency_driver", of_every_cpu("cpufreq/scaling_driver"));
    facts.put("cpu.governor", of_every_cpu("cpufreq/scaling_governor"));
    facts.put("cpu.idle_states", idle_states(Path::new("/sys/devices/system/cpu/cpu0/cpuidle")));
    facts.put("cpu.vulnerabilities", vulnerabilities(Path::new("/sys/devices/system/cpu/vulnerabilities")));
}

/// Facts of the process: its limits and its environment.
pub(super) fn read_process(facts: &mut HostFacts) {
    facts.put("memory.locked_limit", locked_limit());
    let preload = env::var_os("LD_PRELOAD").map(|list| list.to_string_lossy().into_owned());
    let preload = preload.filter(|list| !list.is_empty()).unwrap_or_else(|| "none".to_owned());
    facts.put("process.preload", Ok(FactValue::Text(preload)));
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let environment = env::vars_os().map(|(name, value)| (lossy(name), lossy(value)));
    facts.put("process.bypass", Ok(parse::bypass(environment)));
}

/// What all CPUs have under this name: one word when they agree, else all words that occur.
fn of_every_cpu(name: &str) -> Result<FactValue, String> {
    let root = Path::new("/sys/devices/system/cpu");
    let is_cpu = |name: &str| name.strip_prefix("cpu").is_some_and(|n| n.parse::<u32>().is_ok());
    let cpus = entries(root)?.into_iter().filter(|cpu| is_cpu(&file_name(cpu)));
    let values: BTreeSet<String> =
        cpus.filter_map(|cpu| read(&cpu.join(name)).ok()).map(|text| text.trim().to_owned()).collect();
    if values.is_empty() {
        return Err(format!("{}/cpu*/{name}: none is there", root.display()));
    }
    Ok(FactValue::Text(values.into_iter().collect::<Vec<_>>().join(", ")))
}

/// The idle states of a CPU, shallow first: name, time to leave it, and whether it is switched off.
fn idle_states(folder: &Path) -> Result<FactValue, String> {
    let mut states = entries(folder)?;
    states.retain(|state| file_name(state).starts_with("state"));
    states.sort_by_key(|state| file_name(state).trim_start_matches("state").parse::<u32>().unwrap_or(u32::MAX));
    let state = |state: PathBuf| {
        let file = |name| read(&state.join(name)).map(|text| text.trim().to_owned());
        let off = if file("disable").is_ok_and(|flag| flag != "0") { " off" } else { "" };
        Ok(format!("{} {} us{off}", file("name")?, file("latency")?))
    };
    states.into_iter().map(state).collect::<Result<_, String>>().map(FactValue::List)
}

/// Every known weakness of the CPU with the kernel's answer to it.
fn vulnerabilities(folder: &Path) -> Result<FactValue, String> {
    let mut files = entries(folder)?;
    files.sort_unstable();
    let answer = |file: PathBuf| Ok(format!("{}: {}", file_name(&file), read(&file)?.trim()));
    files.into_iter().map(answer).collect::<Result<_, String>>().map(FactValue::List)
}

fn locked_limit() -> Result<FactValue, String> {
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).map_err(|errno| format!("getrlimit: {errno}"))?;
    if soft == RLIM_INFINITY {
        return Ok(FactValue::Text("unlimited".to_owned()));
    }
    Ok(FactValue::Integer(i64::try_from(soft).unwrap_or(i64::MAX)))
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

const CPUINFO: &str = "/proc/cpuinfo";
