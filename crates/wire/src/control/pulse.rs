//! What a session costs the reflector, told by the reflector at every interval.

use super::BadMessage;
use crate::cursor::Reader;

/// What a reflector has used since its session began, at the end of one of its intervals.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pulse {
    /// How many whole intervals have passed since the start.
    pub interval: u64,
    /// CPU time of its hot thread.
    pub cpu_ns: u64,
    /// Of that in user mode.
    pub user_ns: u64,
    /// Of that in the kernel.
    pub system_ns: u64,
    /// Times the hot thread gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Its page faults served from memory.
    pub minor_faults: u64,
    /// Its page faults served from disk.
    pub major_faults: u64,
    /// Resident memory of its process.
    pub resident_bytes: u64,
    /// The most there was.
    pub peak_bytes: u64,
}

impl Pulse {
    /// All fields, in the order in which they travel.
    pub(super) const fn fields(&self) -> [u64; 10] {
        [
            self.interval,
            self.cpu_ns,
            self.user_ns,
            self.system_ns,
            self.voluntary_switches,
            self.involuntary_switches,
            self.minor_faults,
            self.major_faults,
            self.resident_bytes,
            self.peak_bytes,
        ]
    }

    pub(super) fn parse(reader: &mut Reader<'_>) -> Result<Self, BadMessage> {
        Ok(Self {
            interval: reader.u64()?,
            cpu_ns: reader.u64()?,
            user_ns: reader.u64()?,
            system_ns: reader.u64()?,
            voluntary_switches: reader.u64()?,
            involuntary_switches: reader.u64()?,
            minor_faults: reader.u64()?,
            major_faults: reader.u64()?,
            resident_bytes: reader.u64()?,
            peak_bytes: reader.u64()?,
        })
    }
}
