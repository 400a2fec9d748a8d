//! The device behind the adapter and its interrupts; /sys/bus is not of a network namespace.

use std::path::{Path, PathBuf};

use super::super::{FactValue, HostFacts, file_name, parse, read as read_file, sorted_entries};

/// Facts that are one file of the device each.
const FILES: [(&str, &str, parse::Parse); 6] = [
    ("nic.local_cpus", "local_cpulist", parse::cpu_list),
    ("nic.numa_node", "numa_node", parse::integer),
    ("nic.pcie_max_speed", "max_link_speed", parse::text),
    ("nic.pcie_max_width", "max_link_width", parse::integer),
    ("nic.pcie_speed", "current_link_speed", parse::text),
    ("nic.pcie_width", "current_link_width", parse::integer),
];

pub(super) fn read(facts: &mut HostFacts, name: Result<&str, &str>, bus: Result<String, String>) {
    let device = bus.and_then(|bus| {
        let folder = Path::new("/sys/bus/pci/devices").join(&bus);
        // An empty name would be the folder of all devices.
        if bus.is_empty() || !folder.exists() { Err("no PCI device".to_owned()) } else { Ok((bus, folder)) }
    });
    let folder = device.as_ref().map(|(_, folder)| folder.as_path()).map_err(Clone::clone);
    for (key, file, parse) in FILES {
        let value = folder.clone().and_then(|folder| {
            let path = folder.join(file);
            parse(&read_file(&path)?).ok_or_else(|| format!("{}: not in it", path.display()))
        });
        facts.put(key, value);
    }
    facts.put("nic.pci_id", folder.clone().and_then(pci_id));
    let iommu = folder.clone().and_then(|folder| read_file(&folder.join("iommu_group/type")));
    facts.put("nic.iommu", iommu.map(|kind| FactValue::Text(kind.trim().to_owned())));
    let control = folder.and_then(|folder| {
        let path = folder.join("config");
        let config = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        device_control(&config).ok_or_else(|| "no PCI Express in what may be read of the configuration".to_owned())
    });
    let mut put = |key, of: fn(u16) -> FactValue| facts.put(key, control.clone().map(of));
    put("nic.pcie_relaxed_ordering", |control| FactValue::Flag(control & 1 << 4 != 0));
    put("nic.pcie_max_payload_bytes", |control| FactValue::Integer(128 << (control >> 5 & 7)));
    put("nic.pcie_max_read_request_bytes", |control| FactValue::Integer(128 << (control >> 12 & 7)));
    for (key, file) in
        [("nic.irq_affinity", "smp_affinity_list"), ("nic.irq_effective_affinity", "effective_affinity_list")]
    {
        let own = device.as_ref().map_err(Clone::clone);
        facts.put(key, own.and_then(|(bus, folder)| interrupts(folder, file, &[bus, name.unwrap_or_default()])));
    }
}

/// Vendor and device, and those of the card it is on, in hexadecimal.
fn pci_id(folder: &Path) -> Result<FactValue, String> {
    let id = |file| read_file(&folder.join(file)).map(|id| id.trim().trim_start_matches("0x").to_owned());
    let card = format!("{}:{}", id("subsystem_vendor")?, id("subsystem_device")?);
    Ok(FactValue::Text(format!("{}:{} on {card}", id("vendor")?, id("device")?)))
}

/// The Device Control register of PCI Express, found through the list of capabilities.
fn device_control(config: &[u8]) -> Option<u16> {
    const CAPABILITIES: usize = 0x34;
    const PCI_EXPRESS: u8 = 0x10;
    let mut at = usize::from(*config.get(CAPABILITIES)?);
    // A list that is broken may go in circles; there is room for no more than 48 entries.
    for _ in 0..48 {
        if at == 0 {
            return None;
        }
        if *config.get(at)? == PCI_EXPRESS {
            let bytes = config.get(at + 8..at + 10)?;
            return Some(u16::from_le_bytes([bytes[0], bytes[1]]));
        }
        at = usize::from(*config.get(at + 1)?);
    }
    None
}

/// Which CPUs each interrupt of the device goes to, by the interrupt's name. The device's own names are left out of that.
fn interrupts(folder: &Path, file: &str, own_names: &[&str]) -> Result<FactValue, String> {
    let table = read_file(Path::new("/proc/interrupts"))?;
    let irqs: Vec<PathBuf> = sorted_entries(&folder.join("msi_irqs"), "")?;
    let one = |irq: &PathBuf| {
        let number = file_name(irq);
        // An interrupt that was given up again has no name.
        let mut name = interrupt_name(&table, &number)?;
        for own in own_names.iter().filter(|own| !own.is_empty()) {
            name = name.replace(own, "<nic>");
        }
        let cpus = read_file(&Path::new("/proc/irq").join(&number).join(file)).ok()?;
        Some(format!("{name}: {}", cpus.trim()))
    };
    Ok(FactValue::List(irqs.iter().filter_map(one).collect()))
}

fn interrupt_name(table: &str, number: &str) -> Option<String> {
    let is_its = |line: &&str| line.trim_start().strip_prefix(number).is_some_and(|rest| rest.starts_with(':'));
    table.lines().find(is_its)?.split_whitespace().last().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_capability_is_found_or_the_list_ends() {
        let mut config = [0_u8; 256];
        assert_eq!(device_control(&config), None);
        config[0x34] = 0x40;
        config[0x40..0x42].copy_from_slice(&[0x05, 0x60]);
        config[0x60..0x62].copy_from_slice(&[0x10, 0]);
        config[0x68..0x6a].copy_from_slice(&0x2930_u16.to_le_bytes());
        assert_eq!(device_control(&config), Some(0x2930));
        assert_eq!(device_control(&config[..64]), None, "what a user may read");
        config[0x60..0x62].copy_from_slice(&[0x05, 0x40]);
        assert_eq!(device_control(&config), None, "a circle");
    }

    #[test]
    fn interrupts_have_names() {
        let table = "           CPU0       CPU1\n 24:   2   0  IO-APIC   5-edge   ACPI:Ged\n\
                     241:   0   9  PCI-MSIX-0000:01:00.0   1-edge   mlx5_comp0@pci:0000:01:00.0\n";
        assert_eq!(interrupt_name(table, "24").as_deref(), Some("ACPI:Ged"));
        assert_eq!(interrupt_name(table, "241").as_deref(), Some("mlx5_comp0@pci:0000:01:00.0"));
        assert_eq!(interrupt_name(table, "4"), None);
    }
}
