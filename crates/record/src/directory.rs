//! The run directory: written beside its target, and moved into place whole.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tickpong_stats::Histogram;
use tickpong_units::Nanos;

use crate::host::upgrade;
use crate::observations::ObservationWriter;
use crate::{
    FormatVersion, HOST_FORMAT, HlogWriter, HostFacts, IntervalRow, Metric, RUN_FORMAT, RecordError, Run,
    read_histograms,
};

/// Names of the files in a run directory.
pub mod file {
    /// Plan, validity, fates, summary, provenance.
    pub const RUN: &str = "run.json";
    /// One row an interval.
    pub const INTERVALS: &str = "intervals.csv";
    /// All histograms.
    pub const HISTOGRAMS: &str = "histograms.hlog";
    /// The pinger's disclosure.
    pub const HOST_PINGER: &str = "host-pinger.json";
    /// The reflector's disclosure.
    pub const HOST_REFLECTOR: &str = "host-reflector.json";
    /// Raw rows, where asked for.
    pub const OBSERVATIONS: &str = "observations.bin";
}

/// A run directory while it is written. It appears under its name only when it is complete; dropped before that, nothing of it remains.
#[derive(Debug)]
pub struct RunWriter {
    target: PathBuf,
    partial: PathBuf,
    intervals: BufWriter<File>,
    hlog: HlogWriter<BufWriter<File>>,
    observations: Option<ObservationWriter>,
    complete: bool,
}

impl RunWriter {
    /// Begins a run directory that will be `target`.
    ///
    /// # Errors
    ///
    /// When the target exists, or the place beside it cannot be written.
    pub fn create(target: &Path, start: Option<SystemTime>, with_observations: bool) -> Result<Self, RecordError> {
        Self::refuse_existing(target)?;
        let name = target.file_name().ok_or_else(|| RecordError::Exists { path: target.to_owned() })?;
        let parent = match target.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        fs::create_dir_all(parent).map_err(RecordError::io("create", parent))?;
        let prefix = format!(".{}.partial-", name.to_string_lossy());
        sweep(parent, &prefix);
        let partial = parent.join(format!("{prefix}{}", std::process::id()));
        fs::create_dir(&partial).map_err(RecordError::io("create", &partial))?;
        Self::begin_files(target, &partial, start, with_observations)
            .inspect_err(|_| drop(fs::remove_dir_all(&partial)))
    }

    /// Refuses a target that exists, for whoever wants to know before a run is begun.
    ///
    /// # Errors
    ///
    /// When the target exists.
    pub fn refuse_existing(target: &Path) -> Result<(), RecordError> {
        match fs::symlink_metadata(target) {
            Ok(_) => Err(RecordError::Exists { path: target.to_owned() }),
            Err(_) => Ok(()),
        }
    }

    fn begin_files(target: &Path, partial: &Path, start: Option<SystemTime>, raw: bool) -> Result<Self, RecordError> {
        let open = |name: &str| {
            let path = partial.join(name);
            File::create_new(&path).map(BufWriter::new).map_err(RecordError::io("create", path))
        };
        let mut intervals = open(file::INTERVALS)?;
        writeln!(intervals, "{}", IntervalRow::header())
            .map_err(RecordError::io("write", partial.join(file::INTERVALS)))?;
        let histograms = open(file::HISTOGRAMS)?;
        let hlog =
            HlogWriter::begin(histograms, start).map_err(RecordError::io("write", partial.join(file::HISTOGRAMS)))?;
        let observations = raw.then(|| ObservationWriter::create(partial.join(file::OBSERVATIONS))).transpose()?;
        let (target, partial) = (target.to_owned(), partial.to_owned());
        Ok(Self { target, partial, intervals, hlog, observations, complete: false })
    }

    /// Adds an interval: its row, and its histograms.
    ///
    /// # Errors
    ///
    /// When the disk is full, or fails otherwise.
    pub fn interval(&mut self, row: &IntervalRow, histograms: &[(Metric, &Histogram)]) -> Result<(), RecordError> {
        writeln!(self.intervals, "{}", row.to_csv())
            .map_err(RecordError::io("write", self.partial.join(file::INTERVALS)))?;
        let (start, length) = (Nanos::new(row.start_ns), Nanos::new(row.length_ns));
        for (metric, histogram) in histograms {
            let written = self.hlog.write(*metric, start, length, histogram);
            written.map_err(RecordError::io("write", self.partial.join(file::HISTOGRAMS)))?;
        }
        Ok(())
    }

    /// What raw rows are written with, where they were asked for: it belongs to a thread of its own, which must have finished it before
    /// the directory is finished.
    pub fn take_observations(&mut self) -> Option<ObservationWriter> {
        self.observations.take()
    }

    /// Writes what is known only at the end, and moves the directory to its name.
    ///
    /// # Errors
    ///
    /// When the disk is full, or somebody has taken the name meanwhile. Then nothing remains.
    pub fn finish(mut self, run: &Run, pinger: &HostFacts, reflector: Option<&HostFacts>) -> Result<(), RecordError> {
        self.json(file::RUN, run)?;
        self.json(file::HOST_PINGER, pinger)?;
        if let Some(reflector) = reflector {
            self.json(file::HOST_REFLECTOR, reflector)?;
        }
        let at = |name: &str| self.partial.join(name);
        settle(&mut self.intervals).map_err(RecordError::io("write", at(file::INTERVALS)))?;
        if let Some(raw) = self.observations.take() {
            raw.finish()?;
        }
        self.hlog.settle().map_err(RecordError::io("write", at(file::HISTOGRAMS)))?;
        self.publish()
    }

    fn json(&self, name: &str, value: &impl Serialize) -> Result<(), RecordError> {
        let path = self.partial.join(name);
        let text = serde_json::to_string_pretty(value).map_err(|source| RecordError::Json {
            what: "JSON to write",
            path: path.clone(),
            source,
        })?;
        let written = File::create_new(&path).and_then(|file| {
            let mut out = BufWriter::new(file);
            writeln!(out, "{text}")?;
            settle(&mut out)
        });
        written.map_err(RecordError::io("write", path))
    }

    fn publish(mut self) -> Result<(), RecordError> {
        let renamed = renameat2(AT_FDCWD, &self.partial, AT_FDCWD, &self.target, RenameFlags::RENAME_NOREPLACE);
        match renamed {
            Ok(()) => self.complete = true,
            Err(nix::Error::EEXIST) => return Err(RecordError::Exists { path: self.target.clone() }),
            Err(error) => return Err(RecordError::io("move into place", &self.target)(error.into())),
        }
        // The name itself lasts only when the directory that holds it is written.
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        File::open(parent).and_then(|parent| parent.sync_all()).map_err(RecordError::io("write", parent))
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        if !self.complete {
            // Nothing to do about a failure here: the name is hidden, says `partial`, and the next run of this name sweeps it.
            let _ = fs::remove_dir_all(&self.partial);
        }
    }
}

impl HlogWriter<BufWriter<File>> {
    fn settle(&mut self) -> io::Result<()> {
        settle(self.get_mut())
    }
}

/// Out of our buffers, and onto the disk.
fn settle(out: &mut BufWriter<File>) -> io::Result<()> {
    out.flush()?;
    out.get_ref().sync_all()
}

/// Removes what killed processes left under the same name.
fn sweep(parent: &Path, prefix: &str) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) =
            name.to_str().and_then(|name| name.strip_prefix(prefix)).and_then(|pid| pid.parse::<u32>().ok())
        else {
            continue;
        };
        if !Path::new("/proc").join(pid.to_string()).exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// A run read back from its directory.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    /// What was found out.
    pub run: Run,
    /// The pinger's disclosure.
    pub pinger: HostFacts,
    /// The reflector's, where it made a report.
    pub reflector: Option<HostFacts>,
    /// All intervals merged, a histogram a metric.
    pub histograms: BTreeMap<Metric, Histogram>,
}

impl RunDirectory {
    /// Reads a run directory.
    ///
    /// # Errors
    ///
    /// When a file is missing, is not what it should be, or was written by a later major version.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let run_path = path.join(file::RUN);
        check_format("a run", &run_path, RUN_FORMAT)?;
        let reflector = path.join(file::HOST_REFLECTOR);
        Ok(Self {
            run: read_json("a run", &run_path)?,
            pinger: HostFacts::read(&path.join(file::HOST_PINGER))?,
            reflector: reflector.exists().then(|| HostFacts::read(&reflector)).transpose()?,
            histograms: read_histograms(&path.join(file::HISTOGRAMS))?,
        })
    }
}

impl HostFacts {
    /// Reads a disclosure; one of format 1.0 in the keys of this one.
    ///
    /// # Errors
    ///
    /// When the file is missing, is not what it should be, or was written by a later major version.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        const WHAT: &str = "a host's disclosure";
        check_format(WHAT, path, HOST_FORMAT)?;
        let mut host = read_json(WHAT, path)?;
        upgrade(&mut host);
        Ok(host)
    }
}

fn read_json<T: DeserializeOwned>(what: &'static str, path: &Path) -> Result<T, RecordError> {
    let text = fs::read(path).map_err(RecordError::io("read", path))?;
    serde_json::from_slice(&text).map_err(|source| RecordError::Json { what, path: path.to_owned(), source })
}

/// The version first: another major need not have any of our fields.
fn check_format(what: &'static str, path: &Path, readable: FormatVersion) -> Result<(), RecordError> {
    #[derive(Deserialize)]
    struct Head {
        format: FormatVersion,
    }
    let Head { format: found } = read_json(what, path)?;
    if readable.reads(found) { Ok(()) } else { Err(RecordError::Format { path: path.to_owned(), found, readable }) }
}
