//! `histograms.hlog`: a histogram log that the standard tools open.
//!
//! V2 compressed, which is what the Java, JavaScript and Python readers take; one tag a metric; one line a metric and interval; values in
//! nanoseconds, the human-readable maximum in milliseconds, as those tools expect.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram as Hdr;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use tickpong_stats::Histogram;
use tickpong_units::Nanos;

use crate::{Metric, RecordError};

/// Nanoseconds in the unit of the human-readable maximum.
const MAX_VALUE_DIVISOR: f64 = 1e6;
/// A compressed histogram of ours takes a few kilobytes; a line beyond this is not one.
const MAX_LINE: usize = 4 << 20;
/// A log of a week of intervals stays below.
const MAX_LOG: u64 = 4 << 30;

/// Writes a histogram log, a line at a time.
#[derive(Debug)]
pub struct HlogWriter<W> {
    out: W,
}

impl<W: Write> HlogWriter<W> {
    /// Writes the head of the log. Simulated runs have no start in wall time: they start at the epoch.
    ///
    /// # Errors
    ///
    /// When writing fails.
    pub fn begin(mut out: W, start: Option<SystemTime>) -> io::Result<Self> {
        let since_epoch = start.and_then(|start| start.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
        writeln!(out, "#[Histogram log format version 1.3]")?;
        writeln!(out, "#[StartTime: {:.3} (seconds since epoch)]", since_epoch.as_secs_f64())?;
        writeln!(out, "#[BaseTime: {:.3} (seconds since epoch)]", since_epoch.as_secs_f64())?;
        writeln!(out, "\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"Interval_Compressed_Histogram\"")?;
        Ok(Self { out })
    }

    /// Writes one histogram: of the interval of `length` that began at `start` from the start of the run.
    ///
    /// # Errors
    ///
    /// When writing fails.
    ///
    /// # Panics
    ///
    /// Never: a metric's tag holds neither comma nor blank.
    pub fn write(&mut self, metric: Metric, start: Nanos, length: Nanos, histogram: &Histogram) -> io::Result<()> {
        let mut serializer = V2DeflateSerializer::new();
        let mut builder = IntervalLogWriterBuilder::new();
        let tag = Tag::new(metric.tag()).expect("a metric's tag is a tag");
        // A log of its own for each line: the writer borrows what it writes to, and puts no head where none is asked for.
        let mut line = Vec::new();
        builder
            .with_max_value_divisor(MAX_VALUE_DIVISOR)
            .begin_log_with(&mut line, &mut serializer)
            .and_then(|mut log| {
                log.write_histogram(&histogram.to_hdr(), start.into(), length.into(), Some(tag))
                    .map_err(|error| io::Error::other(format!("{error:?}")))
            })
            .map_err(io::Error::other)?;
        // The library repeats the divisor in a comment of its own before every line.
        let entry = line.split_inclusive(|&b| b == b'\n').find(|line| !line.starts_with(b"#")).unwrap_or_default();
        self.out.write_all(entry)
    }

    /// What is written to.
    pub fn get_mut(&mut self) -> &mut W {
        &mut self.out
    }
}

/// Reads a histogram log and merges its lines, a histogram a metric; lines with a tag of nobody's are passed over.
///
/// # Errors
///
/// When the file cannot be read, a line is not a histogram of tickpong's geometry, or the log ends in the middle of a line.
pub fn read_histograms(path: &Path) -> Result<BTreeMap<Metric, Histogram>, RecordError> {
    let file = File::open(path).map_err(RecordError::io("open", path))?;
    let mut text = Vec::new();
    BufReader::new(file).take(MAX_LOG).read_to_end(&mut text).map_err(RecordError::io("read", path))?;
    let bad = |line: usize, reason: String| RecordError::Hlog { path: path.to_owned(), line, reason };
    if text.last().is_some_and(|&last| last != b'\n') {
        return Err(bad(text.split(|&b| b == b'\n').count(), "the log ends in the middle of a line".to_owned()));
    }
    let mut merged = BTreeMap::new();
    // Line by line, because the library's parser stops at the first line it cannot read and calls that the end.
    for (number, line) in (1..).zip(text.split_inclusive(|&b| b == b'\n')) {
        if line.starts_with(b"#") || line.starts_with(b"\"") || line.trim_ascii().is_empty() {
            continue;
        }
        let (tag, histogram) = entry(line).map_err(|reason| bad(number, reason))?;
        if let Some(metric) = Metric::from_tag(&tag) {
            merged.entry(metric).or_insert_with(Histogram::new).merge(&histogram);
        }
    }
    Ok(merged)
}

/// The tag and histogram of a line.
fn entry(line: &[u8]) -> Result<(String, Histogram), String> {
    if line.len() > MAX_LINE {
        return Err("a line longer than any histogram".to_owned());
    }
    let Some(Ok(LogEntry::Interval(interval))) = IntervalLogIterator::new(line).next() else {
        return Err("not a line of a histogram log".to_owned());
    };
    let tag = interval.tag().map_or("", |tag| tag.as_str()).to_owned();
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, interval.encoded_histogram())
        .map_err(|error| format!("not base64: {error}"))?;
    let hdr: Hdr<u64> = Deserializer::new()
        .deserialize(&mut &*bytes)
        .map_err(|error| format!("not a compressed histogram: {error}"))?;
    Histogram::from_hdr(&hdr).map(|histogram| (tag, histogram)).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn histogram(spans: &[u64]) -> Histogram {
        let mut histogram = Histogram::new();
        for &ns in spans {
            histogram.record(Nanos::new(ns));
        }
        histogram
    }

    fn log() -> Vec<u8> {
        let mut writer = HlogWriter::begin(Vec::new(), None).unwrap();
        let second = Nanos::from_secs(1);
        writer.write(Metric::Rtt, Nanos::ZERO, second, &histogram(&[5_900, 6_100])).unwrap();
        writer.write(Metric::SendGap, Nanos::ZERO, second, &histogram(&[])).unwrap();
        writer.write(Metric::Rtt, second, second, &histogram(&[7_000, 1 << 40])).unwrap();
        writer.get_mut().clone()
    }

    fn read(bytes: &[u8]) -> Result<BTreeMap<Metric, Histogram>, RecordError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("histograms.hlog");
        std::fs::write(&path, bytes).unwrap();
        read_histograms(&path)
    }

    #[test]
    fn a_log_reads_back_merged() {
        let merged = read(&log()).unwrap();
        let cells = |h: &Histogram| h.cells().collect::<Vec<_>>();
        assert_eq!(cells(&merged[&Metric::Rtt]), cells(&histogram(&[5_900, 6_100, 7_000, 1 << 40])));
        assert_eq!(merged[&Metric::SendGap].count(), 0);
        let text = String::from_utf8(log()).unwrap();
        assert!(
            text.starts_with("#[Histogram log format version 1.3]\n#[StartTime: 0.000 (seconds since epoch)]\n"),
            "{text}"
        );
        assert!(text.contains("\nTag=rtt,1.000,1.000,"), "{text}");
    }

    #[test]
    fn a_log_cut_short_or_damaged_is_refused_with_its_line() {
        let whole = log();
        for cut in 1..whole.len() {
            if whole[cut - 1] == b'\n' {
                assert!(read(&whole[..cut]).is_ok());
            } else {
                assert!(read(&whole[..cut]).is_err(), "cut to {cut}");
            }
        }
        let damaged = String::from_utf8(whole).unwrap().replacen("Tag=rtt,1.000,1.000", "Tag=rtt,one,1.000", 1);
        let said = read(damaged.as_bytes()).unwrap_err().to_string();
        assert!(said.ends_with("line 7: not a line of a histogram log"), "{said}");
    }
}
