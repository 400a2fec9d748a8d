//! What each key of a disclosure means for a comparison: data, in one table.

use Class::{Informative, MustMatch, Passing};
use Group::{Bios, Bypass, Cpu, Driver, Firmware, Kernel, Machine, Nic, Settings};

/// What a key means when two runs are compared.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Class {
    /// Runs whose values differ do not compare, unless the difference is what is on trial. These make the hash.
    MustMatch(Group),
    /// Worth telling, and no reason for or against.
    Informative,
    /// Of one process or one moment: never compared.
    Passing,
}

/// A part of a host that is changed as one.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Group {
    /// The computer, its memory modules.
    Machine,
    /// The firmware of the computer.
    Bios,
    /// The processor.
    Cpu,
    /// The kernel and how it was started.
    Kernel,
    /// The adapter's driver.
    Driver,
    /// The firmware of the adapter and the processor.
    Firmware,
    /// The adapter, its module and its place in the computer.
    Nic,
    /// A kernel-bypass library, its modules and variables.
    Bypass,
    /// What can be set while the host runs.
    Settings,
}

impl Group {
    /// All of them.
    pub const ALL: [Self; 9] = [Machine, Bios, Cpu, Kernel, Driver, Firmware, Nic, Bypass, Settings];

    /// Its name where people and programs name it.
    pub const fn name(self) -> &'static str {
        match self {
            Machine => "machine",
            Bios => "bios",
            Cpu => "cpu",
            Kernel => "kernel",
            Driver => "driver",
            Firmware => "firmware",
            Nic => "nic",
            Bypass => "bypass",
            Settings => "settings",
        }
    }
}

/// The class of a key. One that no row names counts as a setting: a newer tickpong wrote it, and what is not understood is not ignored.
pub fn class_of(key: &str) -> Class {
    named(key).unwrap_or(MustMatch(Settings))
}

/// The class of a key, if a row names it: the longest that does.
pub fn named(key: &str) -> Option<Class> {
    let rows = KEYS.iter().filter(|(pattern, _)| matches(pattern, key));
    rows.max_by_key(|(pattern, _)| pattern.len()).map(|(_, class)| *class)
}

/// Whether a row names a key: `a.b` itself, `a.b.*` also all below it.
pub fn matches(pattern: &str, key: &str) -> bool {
    match pattern.strip_suffix(".*") {
        Some(family) => key.strip_prefix(family).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')),
        None => key == pattern,
    }
}

/// Every key, in alphabetical order.
pub const KEYS: [(&str, Class); 157] = [
    ("bios.date", Informative),
    ("bios.vendor", MustMatch(Bios)),
    ("bios.version", MustMatch(Bios)),
    ("bypass.libraries", MustMatch(Bypass)),
    ("bypass.modules", MustMatch(Bypass)),
    ("bypass.parameter.*", MustMatch(Bypass)),
    ("bypass.preload", MustMatch(Bypass)),
    ("bypass.variable.*", MustMatch(Bypass)),
    ("clock.available", Informative),
    ("clock.source", MustMatch(Settings)),
    ("cpu.caches", MustMatch(Cpu)),
    ("cpu.constant_tsc", MustMatch(Cpu)),
    ("cpu.cores", MustMatch(Cpu)),
    ("cpu.energy_preference", MustMatch(Settings)),
    ("cpu.frequency_driver", MustMatch(Settings)),
    ("cpu.frequency_hardware_max_khz", MustMatch(Cpu)),
    ("cpu.frequency_max_khz", MustMatch(Settings)),
    ("cpu.frequency_min_khz", MustMatch(Settings)),
    ("cpu.governor", MustMatch(Settings)),
    ("cpu.hypervisor", MustMatch(Machine)),
    ("cpu.hypervisor_type", MustMatch(Machine)),
    ("cpu.idle_driver", MustMatch(Settings)),
    ("cpu.idle_governor", MustMatch(Settings)),
    ("cpu.idle_states", MustMatch(Settings)),
    ("cpu.isolated", MustMatch(Kernel)),
    ("cpu.microcode", MustMatch(Firmware)),
    ("cpu.model", MustMatch(Cpu)),
    ("cpu.nohz_full", MustMatch(Kernel)),
    ("cpu.nonstop_tsc", MustMatch(Cpu)),
    ("cpu.online", MustMatch(Settings)),
    ("cpu.packages", MustMatch(Cpu)),
    ("cpu.power_limits_uw", MustMatch(Settings)),
    ("cpu.pstate_status", MustMatch(Settings)),
    ("cpu.smt", MustMatch(Settings)),
    ("cpu.smt_active", MustMatch(Settings)),
    ("cpu.thread_siblings", MustMatch(Settings)),
    ("cpu.turbo", MustMatch(Settings)),
    ("iommu.units", MustMatch(Settings)),
    ("irq.default_cpu_mask", MustMatch(Settings)),
    ("kernel.command_line", MustMatch(Kernel)),
    ("kernel.config_sha256", MustMatch(Kernel)),
    ("kernel.mce_check_interval_s", MustMatch(Settings)),
    ("kernel.mitigations.*", MustMatch(Kernel)),
    ("kernel.nmi_watchdog", MustMatch(Settings)),
    ("kernel.rcu_cpus", MustMatch(Kernel)),
    ("kernel.release", MustMatch(Kernel)),
    ("kernel.rt_period_us", MustMatch(Settings)),
    ("kernel.rt_runtime_us", MustMatch(Settings)),
    ("kernel.selinux_enforcing", MustMatch(Settings)),
    ("kernel.soft_watchdog", MustMatch(Settings)),
    ("kernel.tainted", Informative),
    ("kernel.timer_migration", MustMatch(Settings)),
    ("kernel.version", MustMatch(Kernel)),
    ("kernel.vm_stat_interval_s", MustMatch(Settings)),
    ("kernel.watchdog", MustMatch(Settings)),
    ("kernel.watchdog_cpus", MustMatch(Settings)),
    ("kernel.workqueue_cpu_mask", MustMatch(Settings)),
    ("kernel.writeback_cpu_mask", MustMatch(Settings)),
    ("memory.compaction_proactiveness", MustMatch(Settings)),
    ("memory.dimms", MustMatch(Machine)),
    ("memory.hugepage_bytes", MustMatch(Settings)),
    ("memory.hugepages", MustMatch(Settings)),
    ("memory.hugepages_total", MustMatch(Settings)),
    ("memory.ksm", MustMatch(Settings)),
    ("memory.locked_limit", Passing),
    ("memory.numa_balancing", MustMatch(Settings)),
    ("memory.numa_cpus", MustMatch(Machine)),
    ("memory.numa_nodes", MustMatch(Machine)),
    ("memory.swap_bytes", MustMatch(Settings)),
    ("memory.swappiness", MustMatch(Settings)),
    ("memory.total_bytes", Informative),
    ("memory.transparent_hugepage_defrag", MustMatch(Settings)),
    ("memory.transparent_hugepages", MustMatch(Settings)),
    ("net.budget", MustMatch(Settings)),
    ("net.budget_us", MustMatch(Settings)),
    ("net.busy_poll_us", MustMatch(Settings)),
    ("net.busy_read_us", MustMatch(Settings)),
    ("net.default_qdisc", MustMatch(Settings)),
    ("net.device_weight", MustMatch(Settings)),
    ("net.firewall_modules", MustMatch(Settings)),
    ("net.gro_batch", MustMatch(Settings)),
    ("net.max_backlog", MustMatch(Settings)),
    ("net.rmem_default_bytes", MustMatch(Settings)),
    ("net.rmem_max_bytes", MustMatch(Settings)),
    ("net.rps_flow_entries", MustMatch(Settings)),
    ("net.udp_early_demux", MustMatch(Settings)),
    ("net.udp_memory_pages", Informative),
    ("net.wmem_default_bytes", MustMatch(Settings)),
    ("net.wmem_max_bytes", MustMatch(Settings)),
    ("nic.advertised_modes", MustMatch(Settings)),
    ("nic.autonegotiation", MustMatch(Settings)),
    ("nic.bus", Informative),
    ("nic.channels.*", MustMatch(Settings)),
    ("nic.channels.combined_max", MustMatch(Nic)),
    ("nic.channels.rx_max", MustMatch(Nic)),
    ("nic.channels.tx_max", MustMatch(Nic)),
    ("nic.coalesce.*", MustMatch(Settings)),
    ("nic.driver", MustMatch(Driver)),
    ("nic.driver_version", MustMatch(Driver)),
    ("nic.duplex", MustMatch(Settings)),
    ("nic.eee.*", MustMatch(Settings)),
    ("nic.fec.*", MustMatch(Settings)),
    ("nic.fec.modes", MustMatch(Nic)),
    ("nic.firmware", MustMatch(Firmware)),
    ("nic.gro_flush_timeout_ns", MustMatch(Settings)),
    ("nic.gro_max_bytes", MustMatch(Settings)),
    ("nic.gso_max_bytes", MustMatch(Settings)),
    ("nic.iommu", MustMatch(Settings)),
    ("nic.irq_affinity", MustMatch(Settings)),
    ("nic.irq_effective_affinity", Informative),
    ("nic.kind", MustMatch(Nic)),
    ("nic.lanes", MustMatch(Settings)),
    ("nic.local_cpus", MustMatch(Nic)),
    ("nic.module.*", MustMatch(Nic)),
    ("nic.mtu", MustMatch(Settings)),
    ("nic.name", Informative),
    ("nic.napi_defer_hard_irqs", MustMatch(Settings)),
    ("nic.neighbours_permanent", Informative),
    ("nic.numa_node", MustMatch(Nic)),
    ("nic.offload.*", MustMatch(Settings)),
    ("nic.pause.*", MustMatch(Settings)),
    ("nic.pci_id", MustMatch(Nic)),
    ("nic.pcie_max_payload_bytes", MustMatch(Settings)),
    ("nic.pcie_max_read_request_bytes", MustMatch(Settings)),
    ("nic.pcie_max_speed", MustMatch(Nic)),
    ("nic.pcie_max_width", MustMatch(Nic)),
    ("nic.pcie_relaxed_ordering", MustMatch(Settings)),
    ("nic.pcie_speed", MustMatch(Nic)),
    ("nic.pcie_width", MustMatch(Nic)),
    ("nic.port", MustMatch(Nic)),
    ("nic.private_flag.*", MustMatch(Settings)),
    ("nic.promiscuous", MustMatch(Settings)),
    ("nic.qdiscs", MustMatch(Settings)),
    ("nic.ring.*", MustMatch(Settings)),
    ("nic.ring.rx_max", MustMatch(Nic)),
    ("nic.ring.tx_max", MustMatch(Nic)),
    ("nic.rps_cpu_masks", MustMatch(Settings)),
    ("nic.rps_flows", MustMatch(Settings)),
    ("nic.rss.*", MustMatch(Settings)),
    ("nic.rx_queues", MustMatch(Settings)),
    ("nic.speed_mbps", MustMatch(Settings)),
    ("nic.threaded_napi", MustMatch(Settings)),
    ("nic.timestamping.*", Informative),
    ("nic.tx_queue_length", MustMatch(Settings)),
    ("nic.tx_queues", MustMatch(Settings)),
    ("nic.xdp", MustMatch(Settings)),
    ("nic.xps_cpu_masks", MustMatch(Settings)),
    ("os.name", Informative),
    ("pcie.aspm_policy", MustMatch(Settings)),
    ("process.*", Passing),
    ("server.board", MustMatch(Machine)),
    ("server.product", MustMatch(Machine)),
    ("server.vendor", MustMatch(Machine)),
    ("services.irqbalance", MustMatch(Settings)),
    ("services.running", Informative),
    ("state.*", Passing),
    ("tuned.profile", MustMatch(Settings)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_order_and_each_is_named_once() {
        assert!(KEYS.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn the_longest_row_decides() {
        assert_eq!(class_of("nic.ring.rx"), MustMatch(Settings));
        assert_eq!(class_of("nic.ring.rx_max"), MustMatch(Nic));
        assert_eq!(class_of("kernel.mitigations.meltdown"), MustMatch(Kernel));
        assert_eq!(class_of("kernel.mitigations"), MustMatch(Kernel));
        assert_eq!(named("kernel.mitigationsx"), None);
        assert_eq!(class_of("from.the.future"), MustMatch(Settings));
        assert_eq!(class_of("state.load"), Passing);
    }
}
