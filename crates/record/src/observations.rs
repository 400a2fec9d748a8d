//! `observations.bin`: a row for every answered or late message, in the order their answers came. Only written when asked for.
//!
//! A head of 16 bytes (`tpob`, format 1 in 4 bytes, bytes a row in 4, four of zero), then rows of five little-endian 64-bit numbers:
//! sequence number; intended, sent and received, in ns from the start of the run; turnaround in ns. A message that has no row was lost or
//! never sent.

use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::PathBuf;

use tickpong_units::Nanos;

use crate::RecordError;
use crate::capture::Observation;

/// Bytes of a row.
pub const ROW_LEN: usize = 40;

const HEAD: [u8; 16] = *b"tpob\x01\0\0\0\x28\0\0\0\0\0\0\0";

/// Writes observations into a run directory that is being written, on a thread of its own.
#[derive(Debug)]
pub struct ObservationWriter {
    out: BufWriter<File>,
    path: PathBuf,
}

impl ObservationWriter {
    pub(crate) fn create(path: PathBuf) -> Result<Self, RecordError> {
        let file = File::create_new(&path).map_err(RecordError::io("create", &path))?;
        let mut out = BufWriter::with_capacity(1 << 16, file);
        write_head(&mut out).map_err(RecordError::io("write", &path))?;
        Ok(Self { out, path })
    }

    /// Adds one row.
    ///
    /// # Errors
    ///
    /// When the disk is full, or fails otherwise.
    pub fn write(&mut self, row: &Observation) -> Result<(), RecordError> {
        write_row(&mut self.out, row).map_err(RecordError::io("write", &self.path))
    }

    /// Puts everything on the disk.
    ///
    /// # Errors
    ///
    /// When the disk is full, or fails otherwise.
    pub fn finish(mut self) -> Result<(), RecordError> {
        let settled = self.out.flush().and_then(|()| self.out.get_ref().sync_all());
        settled.map_err(RecordError::io("write", self.path))
    }
}

/// Writes the head.
///
/// # Errors
///
/// When writing fails.
pub fn write_head(out: &mut impl Write) -> io::Result<()> {
    out.write_all(&HEAD)
}

/// Writes one row.
///
/// # Errors
///
/// When writing fails.
pub fn write_row(out: &mut impl Write, row: &Observation) -> io::Result<()> {
    let fields = [row.seq, row.intended.get(), row.sent.get(), row.received.get(), row.turnaround.get()];
    fields.iter().try_for_each(|field| out.write_all(&field.to_le_bytes()))
}

/// Reads all rows.
///
/// # Errors
///
/// When reading fails, the head is another's, or the last row is cut short.
pub fn read(input: &mut impl Read) -> io::Result<Vec<Observation>> {
    let mut head = [0; HEAD.len()];
    input.read_exact(&mut head)?;
    if head != HEAD {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not a file of observations, or of another format"));
    }
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let (rows, rest) = bytes.as_chunks::<ROW_LEN>();
    if !rest.is_empty() {
        return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the last observation is cut short"));
    }
    Ok(rows.iter().map(row).collect())
}

fn row(bytes: &[u8; ROW_LEN]) -> Observation {
    let (fields, _) = bytes.as_chunks::<8>();
    let field = |k: usize| u64::from_le_bytes(fields[k]);
    Observation {
        seq: field(0),
        intended: Nanos::new(field(1)),
        sent: Nanos::new(field(2)),
        received: Nanos::new(field(3)),
        turnaround: Nanos::new(field(4)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_read_back_and_a_cut_one_is_refused() {
        let mut file = Vec::new();
        write_head(&mut file).unwrap();
        let ns = Nanos::new;
        let rows = [1, u64::MAX].map(|seq| Observation {
            seq,
            intended: ns(2),
            sent: ns(3),
            received: ns(4),
            turnaround: ns(5),
        });
        for row in &rows {
            write_row(&mut file, row).unwrap();
        }
        assert_eq!(read(&mut &*file).unwrap(), rows);
        assert!(read(&mut &file[..file.len() - 1]).is_err());
        assert!(read(&mut &file[1..]).is_err());
    }
}
