//! What people and programs read: results on standard output, advice and progress on standard error.

use std::io::{self, IsTerminal, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use tickpong_record::Figure;
use tickpong_report::Style;
use tickpong_runner::Finished;
use tickpong_units::Nanos;

use crate::arguments::{Arguments, Format};
use crate::exit;

/// Writes a result.
pub(crate) fn result(text: &str) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

/// Writes advice. Nobody reading it is no reason to fail.
pub(crate) fn advise(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// How text is to look on this standard output.
pub(crate) fn style() -> Style {
    let width = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    Style {
        width: width.unwrap_or(Style::default().width),
        colour: io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()),
    }
}

/// Prints a run that was made, and gives its exit code.
pub(crate) fn finished(finished: &Finished, format: Format) -> anyhow::Result<u8> {
    result(&match format {
        Format::Json => tickpong_report::json(&finished.run),
        Format::Text => tickpong_report::text(&finished.run, &finished.histograms, style()),
    })?;
    if let Some(error) = &finished.not_written {
        let cause = std::error::Error::source(error).map(|source| format!(": {source}")).unwrap_or_default();
        advise(&format!(
            "error: failed to {error}{cause}; the run above is not on disk, and nothing of it was left there"
        ));
        return Ok(exit::USAGE);
    }
    Ok(exit::of_run(&finished.run))
}

/// A quantile as it stands in a line.
pub(crate) fn figure(figure: Figure) -> String {
    match figure {
        Figure::Finite(ns) => Nanos::new(ns).to_string(),
        Figure::Infinite => "inf".to_owned(),
        Figure::Unsupported => "–".to_owned(),
    }
}

/// Prints completions for a shell.
pub(crate) fn completions(shell: Shell) -> anyhow::Result<u8> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Arguments::command(), "tickpong", &mut text);
    result(&String::from_utf8_lossy(&text))?;
    Ok(exit::OK)
}

/// Prints the manual page.
pub(crate) fn man() -> anyhow::Result<u8> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Arguments::command()).render(&mut text)?;
    result(&String::from_utf8_lossy(&text))?;
    Ok(exit::OK)
}
