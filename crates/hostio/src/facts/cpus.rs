//! What each CPU has for itself, told as one value where all agree.

use std::collections::BTreeSet;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::{FactValue, HostFacts, entries, file_name, parse, read, sorted_entries};

/// Files that every CPU has for itself.
const OF_EVERY_CPU: [(&str, &str); 6] = [
    ("cpu.energy_preference", "cpufreq/energy_performance_preference"),
    ("cpu.frequency_driver", "cpufreq/scaling_driver"),
    ("cpu.frequency_hardware_max_khz", "cpufreq/cpuinfo_max_freq"),
    ("cpu.frequency_max_khz", "cpufreq/scaling_max_freq"),
    ("cpu.frequency_min_khz", "cpufreq/scaling_min_freq"),
    ("cpu.governor", "cpufreq/scaling_governor"),
];

pub(super) fn read_cpus(facts: &mut HostFacts) {
    let root = Path::new("/sys/devices/system/cpu");
    let cpus = all(root);
    let cpus = cpus.as_deref().unwrap_or_default();
    for (key, name) in OF_EVERY_CPU {
        facts.put(key, of_every(cpus, name, |cpu| read(&cpu.join(name))));
    }
    facts.put("cpu.idle_states", of_every(cpus, "cpuidle", |cpu| idle_states(&cpu.join("cpuidle"))));
    facts.put("cpu.caches", caches(&root.join("cpu0/cache")));
    let packages = distinct(cpus, "topology/physical_package_id");
    facts.put("cpu.packages", packages.map(|packages| count(&packages)));
    let siblings = distinct(cpus, "topology/thread_siblings_list");
    facts.put("cpu.cores", siblings.as_ref().map_err(Clone::clone).map(|siblings| count(siblings)));
    facts.put("cpu.thread_siblings", siblings.map(|siblings| FactValue::Text(siblings.join("; "))));
    facts.put("cpu.turbo", turbo(root));
    facts.put("cpu.pstate_status", pstate_status(root));
    facts.put("cpu.power_limits_uw", power_limits(Path::new("/sys/class/powercap")));
    facts.put("state.dma_latency_us", dma_latency());
    facts.put("state.smi_count", smi_count());
    facts.put("state.throttle_count", throttle_count(cpus));
}

/// The folders of all CPUs, lowest first.
fn all(root: &Path) -> Result<Vec<(usize, PathBuf)>, String> {
    let number = |path: &Path| file_name(path).strip_prefix("cpu")?.parse().ok();
    let mut cpus: Vec<_> = entries(root)?.into_iter().filter_map(|path| Some((number(&path)?, path))).collect();
    cpus.sort_unstable();
    Ok(cpus)
}

fn of_every(
    cpus: &[(usize, PathBuf)],
    name: &str,
    of: impl Fn(&Path) -> Result<String, String>,
) -> Result<FactValue, String> {
    let values: Vec<_> =
        cpus.iter().filter_map(|(cpu, folder)| Some((*cpu, of(folder).ok()?.trim().to_owned()))).collect();
    parse::of_cpus(&values).ok_or_else(|| format!("/sys/devices/system/cpu/cpu*/{name}: none is there"))
}

/// Every value that occurs, in the order of the CPUs.
fn distinct(cpus: &[(usize, PathBuf)], name: &str) -> Result<Vec<String>, String> {
    let mut seen = BTreeSet::new();
    let values = cpus.iter().filter_map(|(_, folder)| read(&folder.join(name)).ok());
    let values: Vec<String> =
        values.map(|value| value.trim().to_owned()).filter(|value| seen.insert(value.clone())).collect();
    if values.is_empty() { Err(format!("/sys/devices/system/cpu/cpu*/{name}: none is there")) } else { Ok(values) }
}

fn count(of: &[String]) -> FactValue {
    FactValue::Integer(i64::try_from(of.len()).unwrap_or(i64::MAX))
}

/// The idle states of a CPU, shallow first: name, time to leave it, and whether it is switched off.
fn idle_states(folder: &Path) -> Result<String, String> {
    let state = |state: PathBuf| {
        let file = |name| read(&state.join(name)).map(|text| text.trim().to_owned());
        let off = if file("disable").is_ok_and(|flag| flag != "0") { " off" } else { "" };
        Ok(format!("{} {} us{off}", file("name")?, file("latency")?))
    };
    let states: Vec<String> = sorted_entries(folder, "state")?.into_iter().map(state).collect::<Result<_, String>>()?;
    Ok(states.join(", "))
}

/// The caches of the first CPU, nearest first.
fn caches(folder: &Path) -> Result<FactValue, String> {
    let cache = |cache: PathBuf| {
        let file = |name| read(&cache.join(name)).map(|text| text.trim().to_owned());
        Ok(format!("L{} {} {}", file("level")?, file("type")?, file("size")?))
    };
    sorted_entries(folder, "index")?.into_iter().map(cache).collect::<Result<_, String>>().map(FactValue::List)
}

fn turbo(root: &Path) -> Result<FactValue, String> {
    if let Ok(off) = read(&root.join("intel_pstate/no_turbo")) {
        return Ok(FactValue::Flag(off.trim() == "0"));
    }
    let boost = read(&root.join("cpufreq/boost"))?;
    parse::flag(&boost).ok_or_else(|| "cpufreq/boost: neither on nor off".to_owned())
}

fn pstate_status(root: &Path) -> Result<FactValue, String> {
    let text = |driver: &str| {
        let status = read(&root.join(driver).join("status"))?;
        Ok(FactValue::Text(format!("{driver} {}", status.trim())))
    };
    text("intel_pstate").or_else(|_: String| text("amd_pstate"))
}

/// What the processor may draw, as each limit is named.
fn power_limits(folder: &Path) -> Result<FactValue, String> {
    let mut limits = Vec::new();
    for zone in sorted_entries(folder, "")? {
        let file = |name: &str| read(&zone.join(name)).map(|text| text.trim().to_owned());
        for constraint in 0..3 {
            let limit = file(&format!("constraint_{constraint}_power_limit_uw"));
            let name = file(&format!("constraint_{constraint}_name"));
            if let (Ok(zone), Ok(name), Ok(limit)) = (file("name"), name, limit) {
                limits.push(format!("{zone} {name}: {limit}"));
            }
        }
    }
    if limits.is_empty() {
        Err(format!("{}: no limit is there", folder.display()))
    } else {
        Ok(FactValue::List(limits))
    }
}

/// The longest time that idle CPUs may take to wake, as everybody together has asked the kernel.
fn dma_latency() -> Result<FactValue, String> {
    let path = "/dev/cpu_dma_latency";
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let number = bytes.try_into().map(i32::from_ne_bytes).map_err(|_| format!("{path}: no number in it"))?;
    Ok(FactValue::Integer(number.into()))
}

/// Interrupts that the firmware took for itself, since the boot: Intel's `MSR_SMI_COUNT`.
fn smi_count() -> Result<FactValue, String> {
    const MSR_SMI_COUNT: u64 = 0x34;
    let path = "/dev/cpu/0/msr";
    let mut bytes = [0; 8];
    let read = File::open(path).and_then(|file| file.read_exact_at(&mut bytes, MSR_SMI_COUNT));
    read.map_err(|error| format!("{path}: {error}"))?;
    Ok(FactValue::Integer(i64::from_ne_bytes(bytes)))
}

/// How often cores were slowed because they were hot, since the boot, all together.
fn throttle_count(cpus: &[(usize, PathBuf)]) -> Result<FactValue, String> {
    let name = "thermal_throttle/core_throttle_count";
    let counts: Vec<i64> = cpus.iter().filter_map(|(_, cpu)| read(&cpu.join(name)).ok()?.trim().parse().ok()).collect();
    if counts.is_empty() {
        return Err(format!("/sys/devices/system/cpu/cpu*/{name}: none is there"));
    }
    Ok(FactValue::Integer(counts.iter().sum()))
}
