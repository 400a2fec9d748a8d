//! The suites that come with the program.

/// Names and texts.
pub const BUILT_IN: &[(&str, &str)] = &[
    ("market-data", include_str!("../../suites/market-data.toml")),
    ("quick", include_str!("../../suites/quick.toml")),
    ("size-sweep", include_str!("../../suites/size-sweep.toml")),
    ("bursts", include_str!("../../suites/bursts.toml")),
    ("demo", include_str!("../../suites/demo.toml")),
];

/// The traces that they name.
const TRACES: &[(&str, &str)] = &[("market-open.trace", include_str!("../../suites/market-open.trace"))];

pub(super) fn trace(name: &str) -> Result<String, String> {
    let found = TRACES.iter().find(|(trace, _)| *trace == name);
    found
        .map(|(_, text)| (*text).to_owned())
        .ok_or_else(|| format!("read {name}: no trace of this name comes with tickpong"))
}
