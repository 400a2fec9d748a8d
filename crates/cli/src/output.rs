//! What people and programs read: results on standard output, advice and progress on standard error.

use std::io::{self, IsTerminal, Write};

use clap::CommandFactory;
use clap_complete::Shell;
use tickpong_record::Figure;
use tickpong_report::Style;
use tickpong_runner::{Finished, Progress};
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

/// Prints a run that was made, and gives its exit code. `stopped` says whether a person ended it.
pub(crate) fn finished(finished: &Finished, format: Format, stopped: bool) -> anyhow::Result<u8> {
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
    Ok(match (stopped, finished.run.valid) {
        (true, _) => exit::INTERRUPTED,
        (false, true) => exit::OK,
        (false, false) => exit::INVALID,
    })
}

/// One line on a terminal that follows a run; silent elsewhere.
pub(crate) struct ProgressLine {
    shown: bool,
    last_width: usize,
    head: String,
}

impl ProgressLine {
    pub(crate) fn new() -> Self {
        Self { shown: io::stderr().is_terminal(), last_width: 0, head: String::new() }
    }

    /// What stands before what changes.
    pub(crate) fn head(&mut self, head: String) {
        self.head = head;
    }

    pub(crate) fn show(&mut self, progress: Progress) {
        if !self.shown {
            return;
        }
        let Progress { elapsed, length, achieved_rate_hz, lost, p99 } = progress;
        let p99 = figure(p99.unwrap_or(Figure::Unsupported));
        let (elapsed, length) = (elapsed.as_secs_f64().min(length.as_secs_f64()), length.as_secs_f64());
        let rate = achieved_rate_hz.unwrap_or_default();
        let head = &self.head;
        let line = format!("{head}{elapsed:5.1} of {length:.1} s   {rate:9.0} messages/s   {lost} lost   p99 {p99}");
        let _ = write!(io::stderr(), "\r{line:<width$}", width = self.last_width);
        self.last_width = line.chars().count();
    }

    /// Takes the line away again.
    pub(crate) fn clear(&mut self) {
        if self.last_width > 0 {
            let _ = write!(io::stderr(), "\r{:width$}\r", "", width = self.last_width);
            self.last_width = 0;
        }
    }
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
