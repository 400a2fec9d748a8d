//! The directory of a suite's runs: begun, taken up again, and never another suite's.
//!
//! ```text
//! suite.toml                      what is played
//! order.json                      the seed of its order
//! <scenario>/<repetition>/        a run directory each
//! highest-rate/<number>-<rate>/   those of the search
//! suite.json  summary.md          what was found, written last
//! ```

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use tickpong_record::{FormatVersion, Plan, RecordError, RunDirectory, SUITE_FORMAT, SuiteResult};
use tickpong_units::Seed;

use crate::suite::Suite;

/// The file that a directory of results is known by.
const ORDER: &str = "order.json";
const SUITE: &str = "suite.toml";
/// What was found.
pub const RESULT: &str = "suite.json";
/// The same for people.
pub const SUMMARY: &str = "summary.md";

/// What is wrong with a directory of results.
#[derive(Debug, Error)]
#[expect(missing_docs, reason = "the fields are what the messages show")]
pub enum DirectoryError {
    #[error("{doing} {}", path.display())]
    Io {
        doing: &'static str,
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("put results into {}: it holds other things and no results; name another with -o", path.display())]
    Strange { path: PathBuf },
    #[error(
        "put results into {}: it holds those of {theirs}, and this is {ours}; name another with -o", path.display()
    )]
    Another { path: PathBuf, theirs: String, ours: String },
    #[error("put results into {}: another tickpong does so at this moment", path.display())]
    InUse { path: PathBuf },
    #[error("take up {} again: {reason}", path.display())]
    Damaged { path: PathBuf, reason: String },
    #[error("read {}: {reason}", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error("{0}")]
    Record(#[from] RecordError),
}

#[derive(Debug, Deserialize, Serialize)]
struct Order {
    format: u32,
    suite: String,
    digest: String,
    seed: u64,
}

/// A directory of results, this process's alone while it lives.
#[derive(Debug)]
pub struct SuiteDirectory {
    path: PathBuf,
    /// Where the order of the runs comes from.
    pub seed: Seed,
    /// Whether results were there already.
    pub taken_up: bool,
    /// Locked as long as it is open.
    _lock: File,
}

impl SuiteDirectory {
    /// Begins the directory, or takes it up again; then with the seed that it was begun with.
    ///
    /// # Errors
    ///
    /// When it is another suite's, in use, or cannot be written.
    pub fn open(path: &Path, suite: &Suite, seed: Seed) -> Result<Self, DirectoryError> {
        let io = |doing, path: &Path| {
            let path = path.to_owned();
            move |source| DirectoryError::Io { doing, path, source }
        };
        fs::create_dir_all(path).map_err(io("create", path))?;
        let file = path.join(ORDER);
        let mut entries = fs::read_dir(path).map_err(io("read", path))?;
        let taken_up = file.exists();
        if !taken_up && entries.next().is_some() {
            return Err(DirectoryError::Strange { path: path.to_owned() });
        }
        if !taken_up {
            write(&path.join(SUITE), suite.text.as_bytes())?;
            let order = Order { format: 1, suite: suite.name.clone(), digest: suite.digest.clone(), seed: seed.get() };
            write(&file, &json(&order))?;
        }
        let lock = File::open(&file).map_err(io("open", &file))?;
        lock.try_lock().map_err(|_| DirectoryError::InUse { path: path.to_owned() })?;
        let text = fs::read(&file).map_err(io("read", &file))?;
        let order: Order = serde_json::from_slice(&text)
            .map_err(|error| DirectoryError::Damaged { path: file, reason: error.to_string() })?;
        if order.digest != suite.digest {
            let (theirs, ours) = if order.suite == suite.name {
                (format!("another version of the suite {}", order.suite), "this one".to_owned())
            } else {
                (format!("the suite {}", order.suite), suite.name.clone())
            };
            return Err(DirectoryError::Another { path: path.to_owned(), theirs, ours });
        }
        Ok(Self { path: path.to_owned(), seed: Seed::new(order.seed), taken_up, _lock: lock })
    }

    /// Where something of this name is.
    pub fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The run of this name, if it was made to the end, of this plan. One that was cut short is put aside.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or is of another plan.
    pub fn finished(&self, name: &str, plan: &Plan) -> Result<Option<RunDirectory>, DirectoryError> {
        let path = self.at(name);
        if !path.exists() {
            return Ok(None);
        }
        let found = RunDirectory::read(&path)?;
        if asked(&found.run.plan) != asked(plan) {
            let reason = "its plan is another than the suite's".to_owned();
            return Err(DirectoryError::Damaged { path, reason });
        }
        if found.run.interrupted {
            self.put_aside(name, "interrupted")?;
            return Ok(None);
        }
        Ok(Some(found))
    }

    /// Keeps a run under another name: its place is wanted again.
    ///
    /// # Errors
    ///
    /// When it cannot be renamed.
    pub fn put_aside(&self, name: &str, why: &str) -> Result<(), DirectoryError> {
        let from = self.at(name);
        let named = |n: u32| self.at(&format!("{name}.{why}-{n}"));
        let to = (1..u32::MAX).map(named).find(|path| !path.exists()).unwrap_or_else(|| named(u32::MAX));
        fs::rename(&from, to).map_err(|source| DirectoryError::Io { doing: "put aside", path: from, source })
    }

    /// Writes a file, whole or not at all.
    ///
    /// # Errors
    ///
    /// When the disk is full, or fails otherwise.
    pub fn write(&self, name: &str, text: &[u8]) -> Result<(), DirectoryError> {
        write(&self.at(name), text)
    }
}

/// What was asked for, without what a run adds to its plan.
fn asked(plan: &Plan) -> Plan {
    Plan { api_reflector: plan.api_pinger, tx_cpu: None, rx_cpu: None, ..plan.clone() }
}

fn json(value: &impl Serialize) -> Vec<u8> {
    let mut text = serde_json::to_vec_pretty(value).unwrap_or_default();
    text.push(b'\n');
    text
}

fn write(path: &Path, text: &[u8]) -> Result<(), DirectoryError> {
    let partial = path.with_extension("partial");
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(text)?;
        file.sync_all()?;
        fs::rename(&partial, path)
    });
    written.map_err(|source| DirectoryError::Io { doing: "write", path: path.to_owned(), source })
}

/// What was found, where this is the directory of a suite that came to its end; `None` where it is none.
///
/// # Errors
///
/// When there is a result that cannot be read.
pub fn read_result(directory: &Path) -> Result<Option<SuiteResult>, DirectoryError> {
    #[derive(Deserialize)]
    struct Head {
        format: FormatVersion,
    }
    let path = directory.join(RESULT);
    if !path.exists() {
        return Ok(None);
    }
    let text = fs::read(&path).map_err(|source| DirectoryError::Io { doing: "read", path: path.clone(), source })?;
    let damaged = |reason: String| DirectoryError::Unreadable { path: path.clone(), reason };
    // The version first: another major need not have any of our fields.
    let Head { format } = serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
    if !SUITE_FORMAT.reads(format) {
        return Err(damaged(format!("its format is {format}, this tickpong reads {SUITE_FORMAT}")));
    }
    serde_json::from_slice(&text).map(Some).map_err(|error| damaged(error.to_string()))
}
