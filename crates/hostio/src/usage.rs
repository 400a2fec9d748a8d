//! What threads and the process have used: CPU time, switches, faults, memory.

mod parse;

use std::fs;
use std::io;

use nix::sys::resource::{Usage, UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use nix::unistd::{SysconfVar, sysconf};
use thiserror::Error;
use tickpong_units::Nanos;

use crate::thread::Tid;
pub(crate) use parse::{Stat, status_kib, status_value};

/// Why a usage could not be told.
#[derive(Debug, Error)]
pub enum UsageError {
    /// The kernel did not answer.
    #[error("read {what}")]
    Read {
        /// The file or the call.
        what: String,
        /// Its answer; not found when the thread has ended.
        #[source]
        source: io::Error,
    },
    /// The kernel answered in words not known here.
    #[error("understand {what}: no {missing} in it")]
    Malformed {
        /// The file.
        what: String,
        /// What it should have held.
        missing: &'static str,
    },
}

/// What a thread has used since its start.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ThreadUsage {
    /// CPU time in the program.
    pub user: Nanos,
    /// CPU time in the kernel on the program's behalf.
    pub system: Nanos,
    /// How often it gave the CPU up, to wait.
    pub voluntary_switches: u64,
    /// How often the CPU was taken from it.
    pub involuntary_switches: u64,
    /// Pages found in memory, but not yet mapped.
    pub minor_faults: u64,
    /// Pages read from a disk.
    pub major_faults: u64,
}

impl ThreadUsage {
    /// What was used since `earlier`; zero where the kernel's account went backwards, as its split of CPU time can.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user: nanos_since(self.user, earlier.user),
            system: nanos_since(self.system, earlier.system),
            voluntary_switches: self.voluntary_switches.saturating_sub(earlier.voluntary_switches),
            involuntary_switches: self.involuntary_switches.saturating_sub(earlier.involuntary_switches),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
        }
    }
}

/// What the calling thread has used.
///
/// # Errors
///
/// When the kernel does not say, for which no cause is known.
pub fn thread_usage() -> Result<ThreadUsage, UsageError> {
    let usage = getrusage(UsageWho::RUSAGE_THREAD);
    let read = |errno: nix::Error| UsageError::Read { what: "getrusage(RUSAGE_THREAD)".into(), source: errno.into() };
    Ok(from_rusage(&usage.map_err(read)?))
}

/// What another thread of this process has used; CPU times are in the kernel's ticks, 10 ms as a rule.
///
/// # Errors
///
/// When that thread has ended, or /proc is not there.
pub fn thread_usage_of(tid: Tid) -> Result<ThreadUsage, UsageError> {
    let (path, stat) = read_stat(tid)?;
    let (status_path, status) = read(format!("/proc/self/task/{tid}/status"))?;
    let switches = |name| parse::status_number(&status, name).ok_or_else(|| malformed(&status_path, name));
    let tick = tick().ok_or_else(|| malformed(&path, "known tick"))?;
    Ok(ThreadUsage {
        user: Nanos::new(stat.user_ticks.saturating_mul(tick.get())),
        system: Nanos::new(stat.system_ticks.saturating_mul(tick.get())),
        voluntary_switches: switches("voluntary_ctxt_switches")?,
        involuntary_switches: switches("nonvoluntary_ctxt_switches")?,
        minor_faults: stat.minor_faults,
        major_faults: stat.major_faults,
    })
}

/// The CPU time of another thread of this process, user and system together.
///
/// In nanoseconds where the kernel keeps such an account (up to the last scheduler tick of that thread), else in ticks.
///
/// # Errors
///
/// When that thread has ended, or /proc is not there.
pub fn thread_cpu(tid: Tid) -> Result<Nanos, UsageError> {
    let schedstat = read(format!("/proc/self/task/{tid}/schedstat")).ok();
    // A kernel without the account writes zeros.
    if let Some(cpu) = schedstat.and_then(|(_, text)| parse::schedstat_cpu(&text)).filter(|&cpu| cpu > Nanos::ZERO) {
        return Ok(cpu);
    }
    let (path, stat) = read_stat(tid)?;
    let tick = tick().ok_or_else(|| malformed(&path, "known tick"))?;
    Ok(Nanos::new(stat.user_ticks.saturating_add(stat.system_ticks).saturating_mul(tick.get())))
}

/// The memory of this process.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct MemoryUsage {
    /// In RAM now.
    pub resident_bytes: u64,
    /// The most that ever was.
    pub peak_bytes: u64,
    /// Locked into RAM.
    pub locked_bytes: u64,
}

/// The memory of this process.
///
/// # Errors
///
/// When /proc is not there.
pub fn process_memory() -> Result<MemoryUsage, UsageError> {
    let (path, status) = read("/proc/self/status".into())?;
    let bytes = |name| status_kib(&status, name).map(|kib| kib * 1_024).ok_or_else(|| malformed(&path, name));
    Ok(MemoryUsage { resident_bytes: bytes("VmRSS")?, peak_bytes: bytes("VmHWM")?, locked_bytes: bytes("VmLck")? })
}

fn from_rusage(usage: &Usage) -> ThreadUsage {
    let nanos = |time: TimeVal| Nanos::new(count(time.num_nanoseconds()));
    ThreadUsage {
        user: nanos(usage.user_time()),
        system: nanos(usage.system_time()),
        voluntary_switches: count(usage.voluntary_context_switches()),
        involuntary_switches: count(usage.involuntary_context_switches()),
        minor_faults: count(usage.minor_page_faults()),
        major_faults: count(usage.major_page_faults()),
    }
}

/// The kernel's counts are signed for history's sake, and never negative.
fn count(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

fn nanos_since(now: Nanos, earlier: Nanos) -> Nanos {
    now.checked_sub(earlier).unwrap_or(Nanos::ZERO)
}

fn read_stat(tid: Tid) -> Result<(String, Stat), UsageError> {
    let (path, text) = read(format!("/proc/self/task/{tid}/stat"))?;
    let stat = Stat::parse(&text).ok_or_else(|| malformed(&path, "times and faults"))?;
    Ok((path, stat))
}

fn read(path: String) -> Result<(String, String), UsageError> {
    match fs::read_to_string(&path) {
        Ok(text) => Ok((path, text)),
        Err(source) => Err(UsageError::Read { what: path, source }),
    }
}

fn malformed(what: &str, missing: &'static str) -> UsageError {
    UsageError::Malformed { what: what.to_owned(), missing }
}

/// How long the tick is that /proc counts in.
fn tick() -> Option<Nanos> {
    let hz = sysconf(SysconfVar::CLK_TCK).ok().flatten().and_then(|hz| u64::try_from(hz).ok())?;
    1_000_000_000_u64.checked_div(hz).map(Nanos::new)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::current_tid;

    #[test]
    fn work_is_accounted_to_the_thread_that_did_it() {
        let mine = thread_usage().unwrap();
        let worker = std::thread::spawn(|| {
            burn();
            std::hint::black_box(vec![1_u8; 4 << 20]);
            (current_tid(), thread_usage().unwrap(), thread_cpu(current_tid()).unwrap(), thread_usage_of(current_tid()))
        });
        let (tid, its, cpu, from_proc) = worker.join().unwrap();
        assert!(its.user.get() + its.system.get() >= 5_000_000, "{its:?}");
        assert!(cpu.get() >= 5_000_000, "{cpu}");
        let from_proc = from_proc.unwrap();
        assert!(from_proc.minor_faults >= its.minor_faults && its.minor_faults > 0, "{from_proc:?} {its:?}");
        assert!(from_proc.involuntary_switches >= its.involuntary_switches, "{from_proc:?} {its:?}");
        let total = |usage: &ThreadUsage| usage.user.get() + usage.system.get();
        let by_me = thread_usage().unwrap().since(&mine);
        assert!(total(&by_me) < total(&its), "{by_me:?} {its:?}");
        // Its /proc entry may outlast the join by a moment, so it is not this thread that is asked for.
        assert_ne!(tid, current_tid());
    }

    #[test]
    fn a_thread_that_is_none_is_an_error_that_names_it() {
        let tid = std::thread::spawn(current_tid).join().unwrap();
        // Its entry in /proc may outlast the join by a moment.
        let gone = (0..1_000_000).find_map(|_| {
            std::thread::yield_now();
            thread_cpu(tid).err()
        });
        let error = gone.expect("a thread that has ended is forgotten");
        assert!(error.to_string().contains(&tid.to_string()), "{error}");
    }

    #[test]
    fn memory_has_a_size_and_a_peak() {
        let before = process_memory().unwrap();
        assert!(before.resident_bytes > 0);
        assert!(before.peak_bytes >= before.resident_bytes);
        let touched = std::hint::black_box(vec![1_u8; 8 << 20]);
        let with_it = process_memory().unwrap();
        assert!(with_it.peak_bytes >= before.resident_bytes + (4 << 20) && touched[4 << 20] == 1, "{with_it:?}");
    }

    #[test]
    fn a_difference_is_never_negative() {
        let more = ThreadUsage { user: Nanos::new(5), minor_faults: 3, ..ThreadUsage::default() };
        let less = ThreadUsage { system: Nanos::new(5), ..ThreadUsage::default() };
        assert_eq!(less.since(&more), less);
        assert_eq!(more.since(&more), ThreadUsage::default());
    }

    /// Uses at least 5 ms of CPU time, by the account under test.
    fn burn() {
        while thread_usage().unwrap().user.get() < 5_000_000 {
            std::hint::black_box((0..10_000_u64).fold(0, u64::wrapping_add));
        }
    }
}
