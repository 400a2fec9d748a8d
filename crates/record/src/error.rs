//! What can go wrong with what is on disk.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::FormatVersion;

/// An operation on a run directory that failed: what, on which file, why.
#[derive(Debug, Error)]
pub enum RecordError {
    /// Nothing on disk is ever replaced.
    #[error("write the run to {}: it exists already, and a run is never overwritten; name another with -o", path.display())]
    Exists {
        /// The directory asked for.
        path: PathBuf,
    },
    /// The disk or its permissions.
    #[error("{doing} {}", path.display())]
    Io {
        /// The operation, as in "create".
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Not the file it should be.
    #[error("read {} as {what}", path.display())]
    Json {
        /// What was expected there.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// Where it stops making sense.
        #[source]
        source: serde_json::Error,
    },
    /// Written by a later program.
    #[error("read {}: its format is {found}, this tickpong reads {readable}; read it with the version that wrote it", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: FormatVersion,
        /// Ours.
        readable: FormatVersion,
    },
    /// A table of intervals that is none.
    #[error("read {}, line {line}: {reason}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// From one.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A histogram log that ends early or holds what is no histogram of ours.
    #[error("read {}, line {line}: {reason}", path.display())]
    Hlog {
        /// The file.
        path: PathBuf,
        /// From one.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
}

impl RecordError {
    pub(crate) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { doing, path, source }
    }
}
