//! Versions of what is on disk.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The version of a file: another major cannot be read, a higher minor only adds.
#[derive(Clone, Copy, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(into = "String", try_from = "String")]
#[schemars(with = "String")]
pub struct FormatVersion {
    major: u16,
    minor: u16,
}

/// The version of `run.json`.
///
/// - 1.0: first.
pub const RUN_FORMAT: FormatVersion = FormatVersion::new(1, 0);

impl FormatVersion {
    /// Version `major.minor`.
    pub const fn new(major: u16, minor: u16) -> Self {
        Self { major, minor }
    }

    /// Whether a program that writes `self` reads a file of version `file`.
    pub const fn reads(self, file: Self) -> bool {
        self.major == file.major
    }
}

impl fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<FormatVersion> for String {
    fn from(version: FormatVersion) -> Self {
        version.to_string()
    }
}

impl TryFrom<String> for FormatVersion {
    type Error = String;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl FromStr for FormatVersion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        parts.map(|(major, minor)| Self { major, minor }).ok_or_else(|| format!("`{text}` is no format version"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_higher_minor_is_read_and_another_major_is_not() {
        assert!(RUN_FORMAT.reads("1.9".parse().unwrap()));
        assert!(!RUN_FORMAT.reads("2.0".parse().unwrap()));
        assert!("1".parse::<FormatVersion>().is_err());
    }
}
