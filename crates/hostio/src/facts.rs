//! What this host is and how it is set, as far as it bears on a measurement.
//!
//! No serial number, no address of any kind and no secret is among the facts: they are made to be published.

mod cpus;
mod machine;
mod nic;
mod parse;
mod redact;
mod rows;
mod smbios;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::InterfaceFlags;
use nix::sys::socket::SockaddrStorage;
use thiserror::Error;

/// What a fact says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FactValue {
    /// Words, as the host has them.
    Text(String),
    /// A number; the key says of what.
    Integer(i64),
    /// Whether it is so.
    Flag(bool),
    /// Several words, in the host's order or, where it has none, sorted.
    List(Vec<String>),
}

impl fmt::Display for FactValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Integer(number) => fmt::Display::fmt(number, f),
            Self::Flag(true) => f.pad("yes"),
            Self::Flag(false) => f.pad("no"),
            Self::List(words) => f.pad(&words.join(", ")),
        }
    }
}

/// The facts of this host, by keys such as `cpu.governor`; every key is in one of the two maps.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct HostFacts {
    /// What was read.
    pub facts: BTreeMap<String, FactValue>,
    /// What could not be read, and why.
    pub absent: BTreeMap<String, String>,
}

impl HostFacts {
    /// Reads them all; those on the adapter are of `interface`, as the calling thread's network namespace knows it.
    pub fn read(interface: Option<&str>) -> Self {
        let mut facts = Self::default();
        rows::read_files(&mut facts);
        cpus::read_cpus(&mut facts);
        machine::read_machine(&mut facts);
        nic::read(&mut facts, interface);
        facts
    }

    fn put(&mut self, key: &str, value: Result<FactValue, String>) {
        match value {
            Ok(value) => drop(self.facts.insert(key.to_owned(), value)),
            Err(reason) => drop(self.absent.insert(key.to_owned(), reason)),
        }
    }
}

/// Why the host could not be asked.
#[derive(Debug, Error)]
pub enum FactsError {
    /// The number of this boot is not to be had.
    #[error("read {BOOT_ID}")]
    BootId(#[source] io::Error),
    /// The addresses are not to be had.
    #[error("list the addresses of this host")]
    Addresses(#[source] io::Error),
    /// The file that runs is not to be had.
    #[error("find the file of this program by /proc/self/exe")]
    BinaryPath(#[source] io::Error),
}

/// A number that the kernel makes anew at every boot: two runs with the same one saw the same boot.
///
/// # Errors
///
/// When /proc is not there.
pub fn boot_id() -> Result<String, FactsError> {
    fs::read_to_string(BOOT_ID).map(|id| id.trim().to_owned()).map_err(FactsError::BootId)
}

/// The device that has this address, in the calling thread's network namespace; `None` when none has.
///
/// Any loopback address is the loopback device's, listed or not.
///
/// # Errors
///
/// When the kernel does not list its addresses.
pub fn interface_of(address: IpAddr) -> Result<Option<String>, FactsError> {
    let all: Vec<_> = getifaddrs().map_err(|errno| FactsError::Addresses(errno.into()))?.collect();
    let exact = all.iter().find(|entry| entry.address.as_ref().and_then(ip) == Some(address));
    let loopback = || {
        let device = all.iter().find(|entry| entry.flags.contains(InterfaceFlags::IFF_LOOPBACK));
        device.filter(|_| address.is_loopback())
    };
    Ok(exact.or_else(loopback).map(|entry| entry.interface_name.clone()))
}

/// The file that this process runs.
///
/// # Errors
///
/// When /proc is not there.
pub fn binary_path() -> Result<PathBuf, FactsError> {
    env::current_exe().map_err(FactsError::BinaryPath)
}

fn ip(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// The text of a file, or why there is none.
fn read(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    Ok(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect())
}

/// Those entries whose names begin with `prefix`, in the order of the numbers that they end with, else of their names.
fn sorted_entries(folder: &Path, prefix: &str) -> Result<Vec<PathBuf>, String> {
    let mut found = entries(folder)?;
    found.retain(|path| file_name(path).starts_with(prefix));
    found.sort_by_cached_key(|path| {
        let name = file_name(path);
        let number = name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<u32>();
        (name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), number.unwrap_or(0), name)
    });
    Ok(found)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn every_key_is_a_fact_or_absent_with_a_reason() {
        let facts = HostFacts::read(Some("lo"));
        for key in
            ["kernel.release", "kernel.version", "cpu.online", "memory.total_bytes", "process.command_line", "nic.name"]
        {
            assert!(facts.facts.contains_key(key), "{key}: {:?}", facts.absent.get(key));
        }
        for (key, reason) in &facts.absent {
            assert!(!facts.facts.contains_key(key), "{key}");
            assert!(!reason.is_empty(), "{key}");
        }
        assert_eq!(facts.facts["nic.mtu"], FactValue::Integer(65_536));
        let without = HostFacts::read(None);
        let keys = |facts: &HostFacts| facts.facts.keys().chain(facts.absent.keys()).cloned().collect::<Vec<_>>();
        let holds = |keys: &[String], key: &str| keys.iter().any(|other| other == key);
        // A key such as `nic.offload` is absent as one and read as many.
        for key in keys(&without) {
            let many = keys(&facts).iter().any(|other| other.starts_with(&format!("{key}.")));
            assert!(holds(&keys(&facts), &key) || many, "{key} depends on the host");
        }
        for key in keys(&facts) {
            let one = key.rsplit_once('.').is_some_and(|(family, _)| holds(&keys(&without), family));
            assert!(holds(&keys(&without), &key) || one, "{key} depends on the host");
        }
        assert_eq!(without.absent["nic.mtu"], "no interface was named");
    }

    #[test]
    fn values_print_as_people_read_them() {
        let list = FactValue::List(vec!["a".into(), "b".into()]);
        assert_eq!(format!("{list} {} {}", FactValue::Flag(true), FactValue::Integer(-1)), "a, b yes -1");
    }

    #[test]
    fn a_loopback_address_is_the_loopback_devices() {
        assert_eq!(interface_of(Ipv4Addr::LOCALHOST.into()).unwrap().as_deref(), Some("lo"));
        assert_eq!(interface_of(Ipv4Addr::new(127, 0, 0, 2).into()).unwrap().as_deref(), Some("lo"));
        assert_eq!(interface_of(Ipv4Addr::new(192, 0, 2, 1).into()).unwrap(), None);
    }

    #[test]
    fn the_boot_and_the_binary_are_known() {
        assert_eq!(boot_id().unwrap().len(), 36);
        assert!(binary_path().unwrap().is_absolute());
    }
}
