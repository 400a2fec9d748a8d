//! What only /sys/class/net tells. It shows the network namespace of whoever mounted it, so it is asked only when it shows this one.

use std::collections::BTreeSet;
use std::path::Path;

use nix::net::if_::if_nameindex;

use super::super::{FactValue, HostFacts, entries, file_name, parse, read as read_file, sorted_entries};

/// Facts that are one file of the device each.
const FILES: [(&str, &str, parse::Parse); 3] = [
    ("nic.gro_flush_timeout_ns", "gro_flush_timeout", parse::integer),
    ("nic.napi_defer_hard_irqs", "napi_defer_hard_irqs", parse::integer),
    ("nic.threaded_napi", "threaded", parse::flag),
];
/// Facts that every queue of a direction has for itself.
const OF_QUEUES: [(&str, &str, &str); 3] = [
    ("nic.rps_cpu_masks", "rx-", "rps_cpus"),
    ("nic.rps_flows", "rx-", "rps_flow_cnt"),
    ("nic.xps_cpu_masks", "tx-", "xps_cpus"),
];

pub(super) fn read(facts: &mut HostFacts, name: Result<&str, &str>, index: Result<u32, String>) {
    let root = Path::new("/sys/class/net");
    let folder = name.map_err(str::to_owned).and_then(|name| {
        index?;
        if shows_this_namespace(root)? {
            Ok(root.join(name))
        } else {
            Err("the mounted /sys shows another network namespace".to_owned())
        }
    });
    for (key, file, parse) in FILES {
        let value = folder.clone().and_then(|folder| {
            let path = folder.join(file);
            parse(&read_file(&path)?).ok_or_else(|| format!("{}: not in it", path.display()))
        });
        facts.put(key, value);
    }
    for (key, prefix, file) in OF_QUEUES {
        facts.put(key, folder.clone().and_then(|folder| of_queues(&folder.join("queues"), prefix, file)));
    }
}

/// Whether the devices that a folder lists are those of the calling thread's network namespace.
fn shows_this_namespace(root: &Path) -> Result<bool, String> {
    let listed = entries(root)?;
    let index = |path: &Path| read_file(&path.join("ifindex")).ok()?.trim().parse::<u32>().ok();
    // What has no index is no device: bonding keeps a file there.
    let listed: BTreeSet<_> = listed.iter().filter_map(|path| Some((file_name(path), index(path)?))).collect();
    let own = if_nameindex().map_err(|errno| format!("if_nameindex: {errno}"))?;
    let own: BTreeSet<_> =
        own.iter().map(|device| (device.name().to_string_lossy().into_owned(), device.index())).collect();
    Ok(listed == own)
}

/// What all queues of a direction have under this name: one value where they agree, else each with its queue.
fn of_queues(folder: &Path, prefix: &str, file: &str) -> Result<FactValue, String> {
    let queues = sorted_entries(folder, prefix)?;
    let value = |queue: &std::path::PathBuf| Ok((file_name(queue), read_file(&queue.join(file))?.trim().to_owned()));
    let values: Vec<(String, String)> = queues.iter().map(value).collect::<Result<_, String>>()?;
    let Some((_, first)) = values.first() else { return Err(format!("{}: no queue is there", folder.display())) };
    if values.iter().all(|(_, value)| value == first) {
        return Ok(FactValue::Text(first.clone()));
    }
    let each = values.iter().map(|(queue, value)| format!("{queue}: {value}"));
    Ok(FactValue::Text(each.collect::<Vec<_>>().join("; ")))
}
