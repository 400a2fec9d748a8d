//! The configuration disclosure of one host, what its keys mean, and how two of them differ.

mod keys;
mod upgrade;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::FormatVersion;
use crate::plan::hex;

pub use keys::{Class, Group, KEYS, class_of, matches, named};
pub(crate) use upgrade::upgrade;

/// The version of `host-pinger.json` and `host-reflector.json`.
///
/// - 1.1: many more keys, each with a class; some are told by key instead of in a list, or with their unit in the name.
/// - 1.0: first.
pub const HOST_FORMAT: FormatVersion = FormatVersion::new(1, 1);

/// What a host is and how it was set: one typed value a key, and the reason for each that could not be read.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct HostFacts {
    /// Version of this file.
    pub format: FormatVersion,
    /// `pinger` or `reflector`; `alone` where no run was made.
    pub role: String,
    /// The kernel's name for this boot.
    pub boot_id: Option<String>,
    /// The tickpong that read this.
    pub tickpong_version: String,
    /// SHA-256 of the program that read this.
    pub binary_sha256: Option<String>,
    /// Settings by dotted key, such as `kernel.release`.
    pub facts: BTreeMap<String, FactValue>,
    /// Keys that could not be read, and why.
    pub absent: BTreeMap<String, String>,
}

/// The value of a setting.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FactValue {
    /// On or off.
    Flag(bool),
    /// A whole number; the key says its unit.
    Integer(i64),
    /// Several texts, in order.
    List(Vec<String>),
    /// A text.
    Text(String),
}

/// A key whose values differ between two hosts, or two moments of one.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Difference<'a> {
    /// The key.
    pub key: &'a str,
    /// What that means.
    pub class: Class,
    /// What the first host says.
    pub first: Reading<'a>,
    /// What the second says.
    pub second: Reading<'a>,
}

/// What a disclosure says of a key.
#[derive(Clone, Copy, Debug)]
pub enum Reading<'a> {
    /// Its value.
    Value(&'a FactValue),
    /// That it could not be read, and why.
    Absent(&'a str),
    /// Nothing: the host has no such thing, or that tickpong did not ask.
    Untold,
}

impl PartialEq for Reading<'_> {
    /// A key that could not be read is like any other that could not, whatever the reason.
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Value(value), Self::Value(other)) => value == other,
            (Self::Absent(_), Self::Absent(_)) | (Self::Untold, Self::Untold) => true,
            _ => false,
        }
    }
}

impl Eq for Reading<'_> {}

impl HostFacts {
    /// SHA-256, in hexadecimal, over the keys that must match; two hosts have the same exactly when no such key differs.
    ///
    /// What is hashed is UTF-8 text, one line a key, in the order of the keys' bytes: the key, a tab, what it says, a line feed. What it says
    /// is the value as it stands in the file, as JSON without blanks (`{"integer":1500}`), or `absent`; the reason does not count.
    ///
    /// # Panics
    ///
    /// Never: values serialise.
    pub fn hash(&self) -> String {
        let mut sha = Sha256::new();
        for key in self.keys().filter(|key| matches!(class_of(key), Class::MustMatch(_))) {
            let said = match self.reading(key) {
                Reading::Value(value) => serde_json::to_string(value).expect("values serialise"),
                Reading::Absent(_) | Reading::Untold => "absent".to_owned(),
            };
            sha.update(format!("{key}\t{said}\n"));
        }
        hex(&sha.finalize())
    }

    /// What is said of a key. A file that says both of one key is taken at its value.
    pub fn reading(&self, key: &str) -> Reading<'_> {
        let absent = || self.absent.get(key).map_or(Reading::Untold, |reason| Reading::Absent(reason));
        self.facts.get(key).map_or_else(absent, Reading::Value)
    }

    /// Every key of which something is said, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.facts.keys().chain(self.absent.keys()).map(String::as_str).collect::<BTreeSet<_>>().into_iter()
    }

    /// The keys that differ: those that must match first, by group, then the informative ones. What is passing is not compared.
    pub fn differences<'a>(&'a self, other: &'a Self) -> Vec<Difference<'a>> {
        let keys: BTreeSet<&str> = self.keys().chain(other.keys()).collect();
        let differences = keys.into_iter().map(|key| Difference {
            key,
            class: class_of(key),
            first: self.reading(key),
            second: other.reading(key),
        });
        let mut differences: Vec<_> = differences
            .filter(|difference| difference.class != Class::Passing && difference.first != difference.second)
            .collect();
        differences.sort_by_key(|difference| (difference.class, difference.key));
        differences
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn facts() -> HostFacts {
        HostFacts {
            format: HOST_FORMAT,
            role: "pinger".into(),
            boot_id: None,
            tickpong_version: "0.1.0".into(),
            binary_sha256: None,
            facts: BTreeMap::from([
                ("kernel.release".into(), FactValue::Text("6.18".into())),
                ("process.scheduler".into(), FactValue::Text("other".into())),
            ]),
            absent: BTreeMap::from([("bios.version".into(), "no such file".into())]),
        }
    }

    #[test]
    fn the_hash_follows_settings_and_absence_and_not_the_process() {
        let hash = facts().hash();
        let with = |change: fn(&mut HostFacts)| {
            let mut changed = facts();
            change(&mut changed);
            changed.hash()
        };
        assert_eq!(with(|facts| drop(facts.facts.remove("process.scheduler"))), hash);
        assert_eq!(with(|facts| facts.role = "reflector".into()), hash);
        assert_eq!(with(|facts| drop(facts.absent.insert("bios.version".into(), "not permitted".into()))), hash);
        assert_eq!(with(|facts| drop(facts.facts.insert("nic.name".into(), FactValue::Text("eth7".into())))), hash);
        assert_eq!(hash, hex(&Sha256::digest("bios.version\tabsent\nkernel.release\t{\"text\":\"6.18\"}\n")));
        assert_ne!(
            with(|facts| drop(facts.facts.insert("kernel.release".into(), FactValue::Text("6.19".into())))),
            hash
        );
        assert_ne!(with(|facts| facts.absent.clear()), hash);
    }

    #[test]
    fn differences_come_with_what_must_match_first() {
        let mut other = facts();
        other.facts.insert("process.scheduler".into(), FactValue::Text("fifo".into()));
        other.facts.insert("nic.name".into(), FactValue::Text("eth7".into()));
        other.facts.insert("nic.mtu".into(), FactValue::Integer(9_000));
        other.facts.insert("bios.version".into(), FactValue::Text("2.1".into()));
        other.absent.clear();
        let first = facts();
        let keys: Vec<_> = first.differences(&other).iter().map(|d| (d.key, d.class)).collect();
        assert_eq!(
            keys,
            [
                ("bios.version", Class::MustMatch(Group::Bios)),
                ("nic.mtu", Class::MustMatch(Group::Settings)),
                ("nic.name", Class::Informative),
            ]
        );
        assert!(first.differences(&first).is_empty());
    }

    proptest! {
        #[test]
        fn hashes_are_equal_exactly_when_nothing_that_must_match_differs(
            one in proptest::collection::vec(0..3_u8, 4),
            other in proptest::collection::vec(0..3_u8, 4),
        ) {
            let host = |said: &[u8]| {
                let mut host = facts();
                for (key, said) in ["cpu.model", "nic.mtu", "nic.name", "state.load"].into_iter().zip(said) {
                    match said {
                        0 => drop(host.absent.insert(key.into(), "no".into())),
                        value => drop(host.facts.insert(key.into(), FactValue::Integer((*value).into()))),
                    }
                }
                host
            };
            let (one, other) = (host(&one), host(&other));
            let must = one.differences(&other).iter().any(|d| matches!(d.class, Class::MustMatch(_)));
            prop_assert_eq!(one.hash() == other.hash(), !must);
        }
    }

    #[test]
    fn the_published_schema_is_the_types() {
        let schema = serde_json::to_string_pretty(&schemars::schema_for!(HostFacts)).unwrap() + "\n";
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schemas/host.schema.json");
        if std::env::var_os("UPDATE_SCHEMAS").is_some() {
            std::fs::write(path, &schema).unwrap();
        }
        assert!(
            std::fs::read_to_string(path).unwrap() == schema,
            "schemas/host.schema.json is out of date: UPDATE_SCHEMAS=1"
        );
    }
}
