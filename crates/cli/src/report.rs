//! `tickpong report`.

use std::path::Path;

use tickpong_lab::directory::read_result;
use tickpong_record::RunDirectory;

use crate::arguments::{ReportArguments, SuiteFormat};
use crate::{exit, output, suite};

/// Whether the run was valid is what it says; this command has done what it should when it could read it.
pub(crate) fn run(arguments: &ReportArguments) -> anyhow::Result<u8> {
    let several = arguments.directories.len() > 1;
    for directory in &arguments.directories {
        let text = text(directory, arguments.format)?;
        if several && arguments.format == SuiteFormat::Text {
            output::result(&format!("=== {}\n", directory.display()))?;
        }
        output::result(&text)?;
    }
    Ok(exit::OK)
}

/// What a directory holds: a suite's results, or a run.
fn text(directory: &Path, format: SuiteFormat) -> anyhow::Result<String> {
    if let Some(result) = read_result(directory)? {
        return Ok(suite::shown(&result, format));
    }
    let read = RunDirectory::read(directory)?;
    Ok(match format {
        SuiteFormat::Json => tickpong_report::json(&read.run),
        SuiteFormat::Markdown => {
            format!(
                "```\n{}```\n",
                tickpong_report::text(&read.run, &read.histograms, tickpong_report::Style::default())
            )
        }
        SuiteFormat::Text => tickpong_report::text(&read.run, &read.histograms, output::style()),
    })
}
