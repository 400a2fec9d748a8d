//! What a run used of both ends: CPU and memory.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// CPU of one end: its hot threads.
///
/// The pinger's from the start of the plan until every message is answered, or no longer may be; the reflector's from the start of the plan
/// until the pinger, which is through by then, asks for its report. `busy_share` alone is of the time from the first ping to the last there.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Cpu {
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Both, over the messages handled. A spinning thread's is one over the rate: see `busy_share`.
    pub ns_per_message: Option<f64>,
    /// The part of the loop's turns that did work.
    pub busy_share: Option<f64>,
    /// Times it gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Each hot thread.
    pub threads: Vec<ThreadCpu>,
}

/// CPU of one hot thread.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ThreadCpu {
    /// What it does: `pinger`, `sender`, `receiver`, `reflector`.
    pub name: String,
    /// In user mode.
    pub user_ns: u64,
    /// In the kernel.
    pub system_ns: u64,
    /// Times it gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Page faults served from memory.
    pub minor_faults: u64,
    /// Page faults served from disk.
    pub major_faults: u64,
}

/// Memory of one end's process.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Memory {
    /// In RAM at the end of the run, before anything of it was given back.
    pub resident_bytes: u64,
    /// The most there was.
    pub peak_bytes: u64,
    /// Locked, so that it cannot be paged out.
    pub locked_bytes: u64,
    /// Page faults of the hot threads during the run, served from memory.
    pub minor_faults: u64,
    /// The same, served from disk.
    pub major_faults: u64,
}

/// What the kernel granted one end of what was asked of it, as it was during the run.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct InForce {
    /// Each hot thread, in the order of its CPU's account.
    pub threads: Vec<ThreadInForce>,
    /// Whether all memory of the process was locked.
    pub memory_locked: bool,
    /// Whether `/dev/cpu_dma_latency` was held at zero, so that idle CPUs stayed awake.
    pub dma_latency_held: bool,
    /// How long a receive call polled the device's queue, read back from the socket; `null` where the kernel does not say.
    pub busy_poll_us: Option<u64>,
}

/// Under what one hot thread ran; read back by itself.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct ThreadInForce {
    /// What it does: `pinger`, `sender`, `receiver`, `reflector`.
    pub name: String,
    /// The CPUs that it might run on, as in `0-3,8`: one, where it was pinned.
    pub cpus: String,
    /// Its scheduling policy, and its priority or niceness where it has one: `other`, `other nice 19`, `fifo 50`.
    pub scheduling: String,
}

/// What one end used so far, at the end of an interval.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Resources {
    /// CPU time of its hot threads since the start of the plan.
    pub cpu_ns: u64,
    /// Of that in user mode; the kernel counts it in ticks.
    pub user_ns: u64,
    /// Of that in the kernel; in ticks, too.
    pub system_ns: u64,
    /// Times the hot threads gave up the CPU.
    pub voluntary_switches: u64,
    /// Times the CPU was taken from them.
    pub involuntary_switches: u64,
    /// Page faults of the hot threads, served from memory.
    pub minor_faults: u64,
    /// The same, served from disk.
    pub major_faults: u64,
    /// Resident memory of the process.
    pub resident_bytes: u64,
    /// The most there was.
    pub peak_bytes: u64,
}

impl Resources {
    /// The columns of an interval's row, in order.
    pub(crate) const COLUMNS: [&str; 9] = [
        "cpu_ns",
        "user_ns",
        "system_ns",
        "voluntary_switches",
        "involuntary_switches",
        "minor_faults",
        "major_faults",
        "resident_bytes",
        "peak_bytes",
    ];

    pub(crate) const fn fields(&self) -> [u64; 9] {
        [
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

    /// What was used since `before`; memory is what it is.
    #[must_use]
    pub const fn since(&self, before: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            user_ns: self.user_ns.saturating_sub(before.user_ns),
            system_ns: self.system_ns.saturating_sub(before.system_ns),
            voluntary_switches: self.voluntary_switches.saturating_sub(before.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(before.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            ..*self
        }
    }
}
