//! What folders and lists of the machine tell: weaknesses, memory, tasks, kernel modules, the process's surroundings.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use sha2::{Digest, Sha256};

use super::{FactValue, HostFacts, entries, file_name, parse, read, redact, smbios, sorted_entries};

pub(super) fn read_machine(facts: &mut HostFacts) {
    // The one in /usr/lib is there where /etc is bare.
    let os_release = read(Path::new("/etc/os-release")).or_else(|_| read(Path::new("/usr/lib/os-release")));
    let no_name = || "os-release: no PRETTY_NAME in it".to_owned();
    facts.put("os.name", os_release.and_then(|text| parse::os_name(&text).ok_or_else(no_name)));
    facts.put("kernel.config_sha256", kernel_config());
    let weaknesses = sorted_entries(Path::new("/sys/devices/system/cpu/vulnerabilities"), "");
    put_folder(facts, "kernel.mitigations", weaknesses, |_, text| FactValue::Text(text.to_owned()));
    facts.put("memory.numa_cpus", of_nodes(|node| Ok(vec![read(&node.join("cpulist"))?.trim().to_owned()])));
    facts.put("memory.hugepages", of_nodes(hugepages));
    facts.put("memory.dimms", dimms());
    facts.put("iommu.units", entries(Path::new("/sys/class/iommu")).map(|units| count(units.len())));
    let modules = read(Path::new("/proc/modules"));
    facts.put("net.firewall_modules", modules.map(|text| parse::firewall_modules(&text)));
    read_tasks(facts);
    read_bypass(facts);
    facts.put("memory.locked_limit", locked_limit());
}

/// SHA-256 of the kernel's configuration, and which file it is of: one is compressed.
fn kernel_config() -> Result<FactValue, String> {
    let release = read(Path::new("/proc/sys/kernel/osrelease"))?;
    let boot = format!("/boot/config-{}", release.trim());
    let hash = |name: &str, path: &str| {
        let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
        Ok(FactValue::Text(format!("{name} {}", sha256(&bytes))))
    };
    hash("config.gz", "/proc/config.gz").or_else(|_: String| hash("config", &boot))
}

/// One key a file; the folder's key is absent where it cannot be read.
fn put_folder(
    facts: &mut HostFacts,
    key: &str,
    files: Result<Vec<std::path::PathBuf>, String>,
    value: impl Fn(&str, &str) -> FactValue,
) {
    let files = match files {
        Ok(files) => files,
        Err(reason) => return facts.put(key, Err(reason)),
    };
    for file in files {
        let name = file_name(&file);
        let key = format!("{key}.{}", parse::key_part(&name));
        facts.put(&key, read(&file).map(|text| value(&name, text.trim())));
    }
}

/// What `of` finds at every NUMA node, as `node0: …`.
fn of_nodes(of: impl Fn(&Path) -> Result<Vec<String>, String>) -> Result<FactValue, String> {
    let nodes = sorted_entries(Path::new("/sys/devices/system/node"), "node")?;
    let mut told = Vec::new();
    for node in nodes {
        told.extend(of(&node)?.into_iter().map(|value| format!("{}: {value}", file_name(&node))));
    }
    Ok(FactValue::List(told))
}

fn hugepages(node: &Path) -> Result<Vec<String>, String> {
    let sizes = sorted_entries(&node.join("hugepages"), "hugepages-")?;
    let size = |size: std::path::PathBuf| {
        let pages = read(&size.join("nr_hugepages"))?;
        Ok(format!("{} × {}", pages.trim(), file_name(&size).trim_start_matches("hugepages-")))
    };
    sizes.into_iter().map(size).collect()
}

fn dimms() -> Result<FactValue, String> {
    let path = "/sys/firmware/dmi/tables/DMI";
    let table = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    Ok(FactValue::List(smbios::dimms(&table)))
}

/// Programs that are known to disturb a measurement, or to set a host up; the kernel cuts names at 15 bytes.
const SERVICES: [&str; 33] = [
    "auditd",
    "chronyd",
    "collectd",
    "containerd",
    "cpupower",
    "cron",
    "crond",
    "dockerd",
    "firewalld",
    "irqbalance",
    "ksmtuned",
    "kubelet",
    "libvirtd",
    "netdata",
    "NetworkManager",
    "node_exporter",
    "ntpd",
    "numad",
    "onload_cp_serve",
    "opensm",
    "phc2sys",
    "power-profiles-",
    "powerd",
    "ptp4l",
    "rsyslogd",
    "sfptpd",
    "snapd",
    "sshd",
    "systemd-journal",
    "systemd-timesyn",
    "telegraf",
    "thermald",
    "tuned",
];

/// What runs beside this process, by the names that are known; and where the kernel's RCU threads may run.
fn read_tasks(facts: &mut HostFacts) {
    let processes = entries(Path::new("/proc")).map(|entries| {
        let is_process = |path: &std::path::PathBuf| file_name(path).parse::<u32>().is_ok();
        entries.into_iter().filter(is_process).collect::<Vec<_>>()
    });
    let processes = match processes {
        Ok(processes) => processes,
        Err(reason) => {
            let keys = ["kernel.rcu_cpus", "services.irqbalance", "services.running", "state.processes_by_cpu"];
            return keys.iter().for_each(|key| facts.put(key, Err(reason.clone())));
        }
    };
    let (mut running, mut rcu, mut by_cpu) = (Vec::new(), BTreeMap::new(), BTreeMap::<u64, u64>::new());
    for process in processes {
        // One that has ended meanwhile is no matter.
        let Ok(name) = read(&process.join("comm")) else { continue };
        let name = name.trim();
        if SERVICES.contains(&name) {
            running.push(name.to_owned());
        }
        if name.starts_with("rcu") {
            let status = read(&process.join("status")).unwrap_or_default();
            let cpus = crate::usage::status_value(&status, "Cpus_allowed_list").unwrap_or("?").to_owned();
            // rcuop/0, rcuop/1 …: one kind of thread, each with a CPU's number.
            let kind = name.split('/').next().unwrap_or(name).to_owned();
            rcu.entry(kind).or_insert_with(std::collections::BTreeSet::new).insert(cpus);
        }
        if let Some(cpu) = last_cpu_of_user_process(&process) {
            *by_cpu.entry(cpu).or_default() += 1;
        }
    }
    running.sort_unstable();
    running.dedup();
    facts.put("services.irqbalance", Ok(FactValue::Flag(running.iter().any(|name| name == "irqbalance"))));
    facts.put("services.running", Ok(FactValue::List(running)));
    let rcu =
        rcu.into_iter().map(|(kind, cpus)| format!("{kind}: {}", cpus.into_iter().collect::<Vec<_>>().join("; ")));
    facts.put("kernel.rcu_cpus", Ok(FactValue::List(rcu.collect())));
    let by_cpu = by_cpu.into_iter().map(|(cpu, processes)| format!("{cpu}: {processes}"));
    facts.put("state.processes_by_cpu", Ok(FactValue::List(by_cpu.collect())));
}

/// Where a process ran last; none for threads of the kernel, which have no memory of their own.
fn last_cpu_of_user_process(process: &Path) -> Option<u64> {
    let stat = read(&process.join("stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    // Fields count from one, and what follows the name is the third: virtual memory is 23, the CPU 39, see proc(5).
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    field(23).filter(|&bytes| bytes > 0)?;
    field(39)
}

/// Kernel modules that stand below a bypass library, or are one's.
const BYPASS_MODULES: [&str; 8] =
    ["exanic", "exasock", "mlx5_core", "mlx5_ib", "onload", "sfc", "sfc_char", "sfc_resource"];

fn read_bypass(facts: &mut HostFacts) {
    let preload = env::var_os("LD_PRELOAD").map(|list| list.to_string_lossy().into_owned());
    let preload = preload.filter(|list| !list.is_empty()).unwrap_or_else(|| "none".to_owned());
    facts.put("bypass.preload", Ok(FactValue::Text(redact::argument(&preload))));
    let lossy = |text: std::ffi::OsString| text.to_string_lossy().into_owned();
    let environment = env::vars_os().map(|(name, value)| (lossy(name), lossy(value)));
    for (name, value) in parse::bypass_variables(environment) {
        facts.put(&format!("bypass.variable.{}", parse::key_part(&name)), Ok(value));
    }
    facts.put("bypass.libraries", read(Path::new("/proc/self/maps")).map(|maps| parse::bypass_libraries(&maps)));
    let mut modules = Vec::new();
    for module in BYPASS_MODULES {
        let folder = Path::new("/sys/module").join(module);
        if !folder.exists() {
            continue;
        }
        let version = read(&folder.join("version")).unwrap_or_default();
        modules.push(format!("{module} {}", version.trim()).trim_end().to_owned());
        let parameters = sorted_entries(&folder.join("parameters"), "").unwrap_or_default();
        put_folder(facts, &format!("bypass.parameter.{module}"), Ok(parameters), |name, text| {
            let told = redact::argument(&format!("{name}={text}"));
            FactValue::Text(told.split_once('=').map_or("", |(_, value)| value).to_owned())
        });
    }
    facts.put("bypass.modules", Ok(FactValue::List(modules)));
}

fn locked_limit() -> Result<FactValue, String> {
    let (soft, _) = getrlimit(Resource::RLIMIT_MEMLOCK).map_err(|errno| format!("getrlimit: {errno}"))?;
    if soft == RLIM_INFINITY {
        return Ok(FactValue::Text("unlimited".to_owned()));
    }
    Ok(FactValue::Integer(i64::try_from(soft).unwrap_or(i64::MAX)))
}

fn count(of: usize) -> FactValue {
    FactValue::Integer(i64::try_from(of).unwrap_or(i64::MAX))
}

/// In hexadecimal.
pub(super) fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
}
