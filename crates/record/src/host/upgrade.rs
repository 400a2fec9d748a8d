//! Disclosures of format 1.0, in the keys of this one.

use super::{FactValue, HostFacts};

/// What 1.0 called a key, and what it is called now.
const RENAMED: [(&str, &str); 5] = [
    ("net.busy_poll", "net.busy_poll_us"),
    ("net.busy_read", "net.busy_read_us"),
    ("net.rmem_max", "net.rmem_max_bytes"),
    ("net.wmem_max", "net.wmem_max_bytes"),
    ("process.preload", "bypass.preload"),
];
/// Lists of 1.0, what stood between name and value in them, and the keys that have one entry each now.
const SPLIT: [(&str, &str, &str); 2] =
    [("cpu.vulnerabilities", ": ", "kernel.mitigations"), ("process.bypass", "=", "bypass.variable")];

/// Gives keys their present names; a file of 1.1 has no other.
pub(crate) fn upgrade(host: &mut HostFacts) {
    for (old, new) in RENAMED {
        if let Some(value) = host.facts.remove(old) {
            host.facts.insert(new.to_owned(), value);
        }
        if let Some(reason) = host.absent.remove(old) {
            host.absent.insert(new.to_owned(), reason);
        }
    }
    for (old, separator, family) in SPLIT {
        if let Some(FactValue::List(entries)) = host.facts.remove(old) {
            for (name, value) in entries.iter().filter_map(|entry| entry.split_once(separator)) {
                let key = format!("{family}.{}", name.to_ascii_lowercase());
                host.facts.insert(key, FactValue::Text(value.to_owned()));
            }
        }
        if let Some(reason) = host.absent.remove(old) {
            host.absent.insert(family.to_owned(), reason);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::named;

    #[test]
    fn a_disclosure_of_1_0_is_read_in_keys_of_today() {
        let mut host: HostFacts = serde_json::from_str(include_str!("../../tests/data/host-1.0.json")).unwrap();
        assert!(host.keys().any(|key| named(key).is_none()));
        upgrade(&mut host);
        let unknown: Vec<_> = host.keys().filter(|key| named(key).is_none()).collect();
        assert_eq!(unknown, <[&str; 0]>::default());
        assert_eq!(host.facts["net.busy_poll_us"], FactValue::Integer(50));
        assert_eq!(host.facts["kernel.mitigations.meltdown"], FactValue::Text("Not affected".into()));
        assert_eq!(host.facts["bypass.variable.ef_poll_usec"], FactValue::Text("-1".into()));
        let again = host.clone();
        upgrade(&mut host);
        assert_eq!(host, again);
    }
}
