//! `tickpong report`.

use tickpong_record::RunDirectory;

use crate::arguments::{Format, ReportArguments};
use crate::{exit, output};

pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<u8> {
    let several = arguments.directories.len() > 1;
    for directory in &arguments.directories {
        let read = RunDirectory::read(directory)?;
        let text = match arguments.format {
            Format::Json => tickpong_report::json(&read.run),
            Format::Text => tickpong_report::text(&read.run, &read.histograms, output::style()),
        };
        if several && arguments.format == Format::Text {
            output::result(&format!("=== {}\n", directory.display()))?;
        }
        output::result(&text)?;
    }
    Ok(exit::OK)
}
