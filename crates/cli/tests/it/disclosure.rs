//! What is disclosed of real hosts: all that can be read, nothing that tells more than it should, and every change of a setting.

use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use tickpong_hostio::facts::HostFacts as Read;
use tickpong_record::host::{Class, KEYS, class_of, matches, named};
use tickpong_record::{HostFacts, RunDirectory};

use crate::support::{run, text, tickpong};
use crate::two_hosts::{NamedHosts, Side, TICKPONG, ip, skip};

#[test]
fn every_key_has_a_row_and_every_row_a_key() {
    let (alone, of_loopback) = (Read::read(None), Read::read(Some("lo")));
    let told: Vec<&String> =
        [&alone, &of_loopback].into_iter().flat_map(|read| read.facts.keys().chain(read.absent.keys())).collect();
    for key in &told {
        assert!(named(key).is_some(), "{key} has no class");
    }
    // These exist only where a bypass library does.
    let optional = ["bypass.parameter.*", "bypass.variable.*"];
    for (pattern, _) in KEYS.iter().filter(|(pattern, _)| !optional.contains(pattern)) {
        assert!(told.iter().any(|key| matches(pattern, key)), "{pattern} classifies nothing");
    }
}

#[test]
fn what_every_linux_tells_is_told() {
    let host: HostFacts = serde_json::from_value(disclose(&["--interface", "lo"], &[])).unwrap();
    for key in [
        "bypass.libraries",
        "bypass.modules",
        "bypass.preload",
        "cpu.cores",
        "cpu.online",
        "kernel.command_line",
        "kernel.release",
        "kernel.rt_runtime_us",
        "kernel.version",
        "kernel.vm_stat_interval_s",
        "memory.locked_limit",
        "memory.swap_bytes",
        "memory.swappiness",
        "memory.total_bytes",
        "net.max_backlog",
        "net.rmem_max_bytes",
        "nic.kind",
        "nic.mtu",
        "nic.name",
        "nic.offload.rx-gro",
        "nic.offload.tx-generic-segmentation",
        "nic.qdiscs",
        "nic.tx_queue_length",
        "os.name",
        "process.command_line",
        "services.irqbalance",
        "services.running",
        "state.load",
        "state.uptime_s",
    ] {
        assert!(host.facts.contains_key(key), "{key}: {:?}", host.absent.get(key));
    }
    assert_eq!(host.role, "alone");
    assert!(host.absent.values().all(|reason| !reason.is_empty()));
}

#[test]
fn no_address_and_no_secret_is_told() {
    let secrets = [
        ("TICKPONG_KEY", "a-key-that-nobody-may-see"),
        ("EF_LICENCE_TOKEN", "a-token-that-nobody-may-see"),
        ("VMA_PASSWORD", "a-word-that-nobody-may-see"),
        ("XLIO_PEER", "192.0.2.9"),
        ("EF_VI_MAC", "02:00:5e:10:00:01"),
        ("HOME", "/a-home-that-nobody-may-see"),
    ];
    let told = disclose(&["--interface", "lo"], &secrets).to_string();
    assert!(told.contains("\"bypass.variable.ef_licence_token\":{\"text\":\"<withheld>\"}"), "{told}");
    let mut hidden: Vec<String> = secrets.iter().map(|(_, secret)| (*secret).to_owned()).collect();
    for file in ["/etc/machine-id", "/proc/sys/kernel/hostname", "/sys/class/dmi/id/product_serial"] {
        hidden.extend(fs::read_to_string(file).map(|text| text.trim().to_owned()));
    }
    for device in fs::read_dir("/sys/class/net").unwrap() {
        hidden.extend(fs::read_to_string(device.unwrap().path().join("address")).map(|text| text.trim().to_owned()));
    }
    // Two letters may stand anywhere.
    for hidden in hidden.iter().filter(|hidden| hidden.len() > 4) {
        assert!(!told.contains(hidden.as_str()), "{hidden} is told: {told}");
    }
    let words = told.split(|c: char| !(c.is_ascii_hexdigit() || c == '.' || c == ':'));
    let addresses: Vec<&str> = words.filter(|word| word.len() > 3 && word.parse::<IpAddr>().is_ok()).collect();
    assert_eq!(addresses, <[&str; 0]>::default());
}

/// A setting of one host changes its key and the hash, and no other key, whichever setting it is.
#[test]
fn a_setting_that_changes_is_the_one_key_that_differs() {
    let Some(hosts) = NamedHosts::up() else { return };
    let name = hosts.name(Side::Pinger);
    // One word for the shell that reads it, with another blank in it.
    let write = |value: &str, path: &str| format!("echo\u{a0}{value}\u{a0}>{path}");
    let changes = [
        ("nic.mtu", format!("ip -n {name} link set tp-1 mtu 1400")),
        ("nic.tx_queue_length", format!("ip -n {name} link set tp-1 txqueuelen 77")),
        ("nic.gso_max_bytes", format!("ip -n {name} link set tp-1 gso_max_size 32768")),
        ("nic.promiscuous", format!("ip -n {name} link set tp-1 promisc on")),
        ("nic.qdiscs", format!("tc -n {name} qdisc add dev tp-1 root pfifo")),
        (
            "nic.rps_cpu_masks",
            format!("ip netns exec {name} sh -c {}", write("2", "/sys/class/net/tp-1/queues/rx-0/rps_cpus")),
        ),
        (
            "net.udp_early_demux",
            format!("ip netns exec {name} sh -c {}", write("0", "/proc/sys/net/ipv4/udp_early_demux")),
        ),
    ];
    let mut before = disclosed(&hosts);
    for (key, change) in changes {
        let words: Vec<String> = change.split(' ').map(|word| word.replace('\u{a0}', " ")).collect();
        let done = Command::new(&words[0]).args(&words[1..]).output();
        if !done.as_ref().is_ok_and(|done| done.status.success()) {
            skip(&format!("{change}: {done:?}"));
            continue;
        }
        let after = disclosed(&hosts);
        let differ: Vec<&str> = before.differences(&after).iter().map(|difference| difference.key).collect();
        assert_eq!(differ, [key]);
        assert!(matches!(class_of(key), Class::MustMatch(_)), "{key}");
        assert_ne!(before.hash(), after.hash(), "{key}");
        before = after;
    }
}

#[test]
fn a_setting_that_changes_between_two_runs_is_what_tells_them_apart() {
    let Some(hosts) = NamedHosts::up() else { return };
    let directory = TempDir::new().unwrap();
    let play = |name: &str| {
        let path = text(&directory.path().join(name));
        let reflector = hosts.reflect(&["--once"]);
        let ended = hosts.ping(&["-o", &path]).end();
        assert!([0, 5].contains(&ended.code), "{ended:?}");
        assert_eq!(reflector.end().code, 0);
        path
    };
    let (first, same) = (play("first"), play("same"));
    ip(&format!("-n {} link set tp-1 mtu 1400", hosts.name(Side::Pinger))).unwrap();
    let changed = play("changed");

    let compared = run(&["disclose", "--diff", &first, &same]);
    assert_eq!((compared.code, compared.out.as_str()), (Some(0), "COMPARABLE: no key that must match differs\n"));
    let compared = run(&["disclose", "--diff", &first, &changed]);
    let want = "DIFFERENT: one key that must match differs\n\npinger, must match: settings\n  \
                nic.mtu                           1500 → 1400\n";
    assert_eq!((compared.code, compared.out.as_str()), (Some(4), want));
    let hashes = |path: &str| {
        let read = RunDirectory::read(Path::new(path)).unwrap();
        assert_eq!(read.run.identity.host_hash.pinger, Some(read.pinger.hash()));
        read.run.identity.host_hash
    };
    let (first, same, changed) = (hashes(&first), hashes(&same), hashes(&changed));
    assert_eq!(first, same);
    assert_ne!(first.pinger, changed.pinger);
    assert_eq!(first.reflector, changed.reflector);
}

/// Two namespaces that are alike in all but what chance gave them.
struct Fresh([String; 2]);

impl Fresh {
    fn up() -> Result<Self, String> {
        let fresh = Self(["fresh", "again"].map(|name| format!("tickpong-{}-{name}", std::process::id())));
        for (name, first) in fresh.0.iter().zip([41, 51]) {
            ip(&format!("netns add {name}"))?;
            let pair = format!("tp-{first} index {first} type veth peer name tp-peer index {}", first + 1);
            ip(&format!("-n {name} link add {pair}"))?;
            ip(&format!("-n {name} link set tp-{first} up"))?;
            ip(&format!("-n {name} link set tp-peer up"))?;
        }
        Ok(fresh)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&format!("netns del {name}"));
        }
    }
}

#[test]
fn random_addresses_and_numbers_of_interfaces_do_not_make_another_host() {
    let fresh = match Fresh::up() {
        Ok(fresh) => fresh,
        Err(refused) => return skip(&refused),
    };
    let of = |name: &str, interface: &str| -> HostFacts {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", name, TICKPONG, "disclose", "--format=json", "--interface", interface]);
        serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
    };
    let (one, other) = (of(&fresh.0[0], "tp-41"), of(&fresh.0[1], "tp-51"));
    let differ: Vec<&str> = one.differences(&other).iter().map(|difference| difference.key).collect();
    assert_eq!(differ, ["nic.name"]);
    assert_eq!(one.hash(), other.hash());
}

#[test]
fn what_cannot_be_compared_is_refused() {
    let directory = TempDir::new().unwrap();
    let path = |name: &str| text(&directory.path().join(name));
    let one = path("one.json");
    assert_eq!(run(&["disclose", "-o", &one]).code, Some(0));
    run(&["disclose", "-o", &one]).is_refusal(2, &["create", "one.json", "exists"]);
    run(&["disclose", "--diff", &one, &path("none.json")]).is_refusal(2, &["none.json", "No such file"]);
    let later = fs::read_to_string(&one).unwrap().replacen("\"1.", "\"2.", 1);
    fs::write(path("later.json"), later).unwrap();
    run(&["disclose", "--diff", &one, &path("later.json")]).is_refusal(2, &["its format is 2.", "later.json"]);
    let compared = run(&["disclose", "--format=json", "--diff", &one, &one]);
    assert_eq!((compared.code, &compared.json()[0]["comparable"]), (Some(0), &Value::Bool(true)));
}

fn disclosed(hosts: &NamedHosts) -> HostFacts {
    let mut command = hosts.command(Side::Pinger, TICKPONG);
    command.args(["disclose", "--format=json", "--interface", NamedHosts::PINGER_INTERFACE]);
    serde_json::from_slice(&command.output().unwrap().stdout).unwrap()
}

fn disclose(arguments: &[&str], environment: &[(&str, &str)]) -> Value {
    let mut command = tickpong(&[&["disclose", "--format=json"], arguments].concat());
    let output = command.envs(environment.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}
