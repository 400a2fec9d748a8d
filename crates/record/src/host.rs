//! The configuration disclosure of one host.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::FormatVersion;
use crate::plan::hex;

/// The version of `host-pinger.json` and `host-reflector.json`.
///
/// - 1.0: first.
pub const HOST_FORMAT: FormatVersion = FormatVersion::new(1, 0);

/// What a host is and how it was set: one typed value a key, and the reason for each that could not be read.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct HostFacts {
    /// Version of this file.
    pub format: FormatVersion,
    /// `pinger` or `reflector`.
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

impl HostFacts {
    /// SHA-256 over the settings of the host, in key order; what belongs to this process alone (`process.…`) is left out, and a setting
    /// that could not be read counts as such.
    ///
    /// # Panics
    ///
    /// Never: settings always serialise.
    pub fn hash(&self) -> String {
        let lasting = |key: &&String| !key.starts_with("process.");
        let facts: BTreeMap<_, _> = self.facts.iter().filter(|(key, _)| lasting(key)).collect();
        let absent: Vec<_> = self.absent.keys().filter(lasting).collect();
        hex(&Sha256::digest(serde_json::to_vec(&(facts, absent)).expect("settings serialise")))
    }
}

#[cfg(test)]
mod tests {
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
                ("process.preload".into(), FactValue::Text(String::new())),
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
        assert_eq!(with(|facts| drop(facts.facts.remove("process.preload"))), hash);
        assert_eq!(with(|facts| facts.role = "reflector".into()), hash);
        assert_ne!(
            with(|facts| drop(facts.facts.insert("kernel.release".into(), FactValue::Text("6.19".into())))),
            hash
        );
        assert_ne!(with(|facts| facts.absent.clear()), hash);
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
