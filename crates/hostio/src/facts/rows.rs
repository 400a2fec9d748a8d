//! Facts that are one file each: where each is read from.

use std::collections::BTreeMap;
use std::path::Path;

use super::parse::{self, Parse, cpuinfo};
use super::{FactValue, HostFacts, read};

const FILES: [(&str, &str, Parse); 71] = [
    ("bios.date", "/sys/class/dmi/id/bios_date", parse::text),
    ("bios.vendor", "/sys/class/dmi/id/bios_vendor", parse::text),
    ("bios.version", "/sys/class/dmi/id/bios_version", parse::text),
    ("clock.available", "/sys/devices/system/clocksource/clocksource0/available_clocksource", parse::words),
    ("clock.source", "/sys/devices/system/clocksource/clocksource0/current_clocksource", parse::text),
    ("cpu.constant_tsc", CPUINFO, |text| parse::cpu_flag(text, "constant_tsc")),
    ("cpu.hypervisor", CPUINFO, |text| parse::cpu_flag(text, "hypervisor")),
    ("cpu.hypervisor_type", "/sys/hypervisor/type", parse::text),
    ("cpu.idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver", parse::text),
    ("cpu.idle_governor", "/sys/devices/system/cpu/cpuidle/current_governor_ro", parse::text),
    ("cpu.isolated", "/sys/devices/system/cpu/isolated", parse::cpu_list),
    ("cpu.microcode", CPUINFO, |text| cpuinfo(text, "microcode").map(FactValue::Text)),
    ("cpu.model", CPUINFO, |text| cpuinfo(text, "model name").map(FactValue::Text)),
    ("cpu.nohz_full", "/sys/devices/system/cpu/nohz_full", parse::cpu_list),
    ("cpu.nonstop_tsc", CPUINFO, |text| parse::cpu_flag(text, "nonstop_tsc")),
    ("cpu.online", "/sys/devices/system/cpu/online", parse::text),
    ("cpu.smt", "/sys/devices/system/cpu/smt/control", parse::text),
    ("cpu.smt_active", "/sys/devices/system/cpu/smt/active", parse::flag),
    ("irq.default_cpu_mask", "/proc/irq/default_smp_affinity", parse::text),
    ("kernel.command_line", "/proc/cmdline", parse::kernel_command_line),
    (
        "kernel.mce_check_interval_s",
        "/sys/devices/system/machinecheck/machinecheck0/check_interval",
        parse::hexadecimal,
    ),
    ("kernel.nmi_watchdog", "/proc/sys/kernel/nmi_watchdog", parse::flag),
    ("kernel.release", "/proc/sys/kernel/osrelease", parse::text),
    ("kernel.rt_period_us", "/proc/sys/kernel/sched_rt_period_us", parse::integer),
    ("kernel.rt_runtime_us", "/proc/sys/kernel/sched_rt_runtime_us", parse::integer),
    ("kernel.selinux_enforcing", "/sys/fs/selinux/enforce", parse::flag),
    ("kernel.soft_watchdog", "/proc/sys/kernel/soft_watchdog", parse::flag),
    ("kernel.tainted", "/proc/sys/kernel/tainted", parse::integer),
    ("kernel.timer_migration", "/proc/sys/kernel/timer_migration", parse::flag),
    ("kernel.version", "/proc/sys/kernel/version", parse::text),
    ("kernel.vm_stat_interval_s", "/proc/sys/vm/stat_interval", parse::integer),
    ("kernel.watchdog", "/proc/sys/kernel/watchdog", parse::flag),
    ("kernel.watchdog_cpus", "/proc/sys/kernel/watchdog_cpumask", parse::cpu_list),
    ("kernel.workqueue_cpu_mask", "/sys/devices/virtual/workqueue/cpumask", parse::text),
    ("kernel.writeback_cpu_mask", "/sys/devices/virtual/workqueue/writeback/cpumask", parse::text),
    ("memory.compaction_proactiveness", "/proc/sys/vm/compaction_proactiveness", parse::integer),
    ("memory.hugepage_bytes", MEMINFO, |text| parse::meminfo_bytes(text, "Hugepagesize")),
    ("memory.hugepages_total", MEMINFO, |text| parse::meminfo_number(text, "HugePages_Total")),
    ("memory.ksm", "/sys/kernel/mm/ksm/run", parse::integer),
    ("memory.numa_balancing", "/proc/sys/kernel/numa_balancing", parse::integer),
    ("memory.numa_nodes", "/sys/devices/system/node/online", parse::text),
    ("memory.swap_bytes", MEMINFO, |text| parse::meminfo_bytes(text, "SwapTotal")),
    ("memory.swappiness", "/proc/sys/vm/swappiness", parse::integer),
    ("memory.total_bytes", MEMINFO, |text| parse::meminfo_bytes(text, "MemTotal")),
    ("memory.transparent_hugepage_defrag", "/sys/kernel/mm/transparent_hugepage/defrag", parse::chosen),
    ("memory.transparent_hugepages", "/sys/kernel/mm/transparent_hugepage/enabled", parse::chosen),
    ("net.budget", "/proc/sys/net/core/netdev_budget", parse::integer),
    ("net.budget_us", "/proc/sys/net/core/netdev_budget_usecs", parse::integer),
    ("net.busy_poll_us", "/proc/sys/net/core/busy_poll", parse::integer),
    ("net.busy_read_us", "/proc/sys/net/core/busy_read", parse::integer),
    ("net.default_qdisc", "/proc/sys/net/core/default_qdisc", parse::text),
    ("net.device_weight", "/proc/sys/net/core/dev_weight", parse::integer),
    ("net.gro_batch", "/proc/sys/net/core/gro_normal_batch", parse::integer),
    ("net.max_backlog", "/proc/sys/net/core/netdev_max_backlog", parse::integer),
    ("net.rmem_default_bytes", "/proc/sys/net/core/rmem_default", parse::integer),
    ("net.rmem_max_bytes", "/proc/sys/net/core/rmem_max", parse::integer),
    ("net.rps_flow_entries", "/proc/sys/net/core/rps_sock_flow_entries", parse::integer),
    ("net.udp_early_demux", "/proc/sys/net/ipv4/udp_early_demux", parse::flag),
    ("net.udp_memory_pages", "/proc/sys/net/ipv4/udp_mem", parse::words),
    ("net.wmem_default_bytes", "/proc/sys/net/core/wmem_default", parse::integer),
    ("net.wmem_max_bytes", "/proc/sys/net/core/wmem_max", parse::integer),
    ("pcie.aspm_policy", "/sys/module/pcie_aspm/parameters/policy", parse::chosen),
    ("process.command_line", "/proc/self/cmdline", parse::arguments),
    ("server.board", "/sys/class/dmi/id/board_name", parse::text),
    ("server.product", "/sys/class/dmi/id/product_name", parse::text),
    ("server.vendor", "/sys/class/dmi/id/sys_vendor", parse::text),
    ("state.available_memory_bytes", MEMINFO, |text| parse::meminfo_bytes(text, "MemAvailable")),
    ("state.cpu0_frequency_khz", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", parse::integer),
    ("state.load", "/proc/loadavg", parse::load),
    ("state.uptime_s", "/proc/uptime", parse::uptime_seconds),
    ("tuned.profile", "/etc/tuned/active_profile", parse::text),
];

/// Facts of the machine, its kernel and the process that single files tell.
pub(super) fn read_files(facts: &mut HostFacts) {
    // Each file once: /proc/cpuinfo of many CPUs is long, and slow to make.
    let mut texts: BTreeMap<&str, Result<String, String>> = BTreeMap::new();
    for (key, path, parse) in FILES {
        let text = texts.entry(path).or_insert_with(|| read(Path::new(path)));
        let value = text.as_ref().map_err(Clone::clone);
        facts.put(key, value.and_then(|text| parse(text).ok_or_else(|| format!("{path}: not in it"))));
    }
}

const CPUINFO: &str = "/proc/cpuinfo";
const MEMINFO: &str = "/proc/meminfo";
