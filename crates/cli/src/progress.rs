//! One line on a terminal that follows a run.

use std::io::{self, IsTerminal, Stderr, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::Builder;
use std::time::Duration;

use tickpong_record::Figure;
use tickpong_runner::Progress;

use crate::output::figure;

/// How long a terminal may take to lose the line again, before the result is printed all the same.
const PATIENCE: Duration = Duration::from_millis(200);

/// Follows runs on a terminal; silent elsewhere. Whoever tells it of a run never waits: the line is written by a thread of its own, and a
/// terminal that stands still misses some of it.
pub(crate) struct ProgressLine<W> {
    out: Option<W>,
    head: String,
    writing: Option<Writing>,
}

/// The thread that writes.
struct Writing {
    tell: Sender<Word>,
    /// Whether the last line is still to be written.
    behind: Arc<AtomicBool>,
}

enum Word {
    Line(String),
    /// Take the line away, and say so.
    Clear(Sender<()>),
}

impl ProgressLine<Stderr> {
    pub(crate) fn new() -> Self {
        Self::to(Some(io::stderr()).filter(IsTerminal::is_terminal))
    }
}

impl<W: Write + Send + 'static> ProgressLine<W> {
    fn to(out: Option<W>) -> Self {
        Self { out, head: String::new(), writing: None }
    }

    /// What stands before what changes.
    pub(crate) fn head(&mut self, head: String) {
        self.head = head;
    }

    /// Shows how the run stands, unless the line before is still being written. To be called from a helper of the run: the thread that writes
    /// is started by the first, and runs where that does, out of the hot threads' way.
    pub(crate) fn show(&mut self, progress: Progress) {
        if let Some(out) = self.out.take() {
            self.writing = Writing::start(out);
        }
        if let Some(Writing { tell, behind }) = &self.writing
            && !behind.swap(true, Ordering::Relaxed)
        {
            let _ = tell.send(Word::Line(line(&self.head, progress)));
        }
    }

    /// Takes the line away again, if the terminal lets us.
    pub(crate) fn clear(&mut self) {
        if let Some(Writing { tell, .. }) = &self.writing {
            let (cleared, done) = mpsc::channel();
            let _ = tell.send(Word::Clear(cleared));
            let _ = done.recv_timeout(PATIENCE);
        }
    }
}

impl Writing {
    /// `None` where the system gives no thread: then there is no line.
    fn start(out: impl Write + Send + 'static) -> Option<Self> {
        let (tell, told) = mpsc::channel();
        let behind = Arc::new(AtomicBool::new(false));
        let written = Arc::clone(&behind);
        let write = move || write(out, &told, &written);
        Builder::new().name("tickpong progress".to_owned()).spawn(write).ok()?;
        Some(Self { tell, behind })
    }
}

/// Writes what is told. Nobody reading it is no reason to fail.
fn write(mut out: impl Write, told: &Receiver<Word>, written: &AtomicBool) {
    let mut width = 0;
    for word in told {
        match word {
            Word::Line(line) => {
                let _ = write!(out, "\r{line:<width$}").and_then(|()| out.flush());
                width = line.chars().count();
                written.store(false, Ordering::Relaxed);
            }
            Word::Clear(cleared) => {
                if width > 0 {
                    let _ = write!(out, "\r{:width$}\r", "").and_then(|()| out.flush());
                }
                width = 0;
                // Whoever asked may have given up.
                let _ = cleared.send(());
            }
        }
    }
}

fn line(head: &str, progress: Progress) -> String {
    let Progress { elapsed, length, sent_rate_hz, lost, p99 } = progress;
    let p99 = figure(p99.unwrap_or(Figure::Unsupported));
    let (elapsed, length) = (elapsed.as_secs_f64().min(length.as_secs_f64()), length.as_secs_f64());
    format!("{head}{elapsed:5.1} of {length:.1} s   {sent_rate_hz:9.0} messages/s   {lost} lost   p99 {p99}")
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use tickpong_hostio::clock::monotonic_ns;
    use tickpong_units::Nanos;

    use super::*;

    const PROGRESS: Progress = Progress {
        elapsed: Nanos::from_secs(2),
        length: Nanos::from_secs(6),
        sent_rate_hz: 1_234.0,
        lost: 3,
        p99: Some(Figure::Finite(4_500)),
    };

    #[test]
    fn a_terminal_that_stands_still_holds_nobody_up() {
        // Nobody ever reads: when the pipe is full, whoever writes waits for ever.
        let (_reader, writer) = io::pipe().unwrap();
        let mut line = ProgressLine::to(Some(writer));
        let begun = monotonic_ns();
        for _ in 0..200_000 {
            line.show(PROGRESS);
            std::thread::yield_now();
        }
        line.clear();
        assert!(monotonic_ns() - begun < 5_000_000_000);
    }

    #[test]
    fn the_line_is_taken_away() {
        let (mut reader, writer) = io::pipe().unwrap();
        let mut line = ProgressLine::to(Some(writer));
        line.head("base 1/3   ".to_owned());
        line.show(PROGRESS);
        line.clear();
        line.clear();
        drop(line);
        let mut said = String::new();
        reader.read_to_string(&mut said).unwrap();
        let shown = "base 1/3     2.0 of 6.0 s        1234 messages/s   3 lost   p99 4.5 µs";
        assert_eq!(said, format!("\r{shown}\r{}\r", " ".repeat(shown.chars().count())));
    }
}
