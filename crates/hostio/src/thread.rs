//! What a thread asks of the kernel for a run: its CPU, its priority, memory that stays, CPUs that stay awake.
//!
//! Nothing here is needed to measure; each wish may be refused, and a caller reports the refusal and goes on.

mod cpus;
mod prefault;

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::mman::{MlockAllFlags, mlockall};
use nix::sys::prctl::set_timerslack;
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
use nix::unistd::{Pid, gettid};
use thiserror::Error;
use tickpong_units::Nanos;

pub use cpus::{Cpu, CpuChoice, CpuList, ParseCpuListError, default_cpus};
pub use prefault::prefault_memory;

/// The kernel's number of a thread.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Tid(i32);

impl Tid {
    /// The number.
    pub const fn get(self) -> i32 {
        self.0
    }
}

impl fmt::Display for Tid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Why a wish was refused.
#[derive(Debug, Error)]
pub enum ThreadError {
    /// The kernel did not say where the thread may run.
    #[error("read the CPUs that this thread may run on")]
    AllowedCpus(#[source] io::Error),
    /// The thread stays where it was.
    #[error("keep this thread on CPU {cpus} (want CPUs that are online and allowed, see `taskset -p`)")]
    Affinity {
        /// The CPUs asked for.
        cpus: CpuList,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Memory may be paged out, or not be there yet, at a bad moment.
    #[error("lock this process's memory (want CAP_IPC_LOCK or `ulimit -l unlimited`)")]
    LockMemory(#[source] io::Error),
    /// The limit would be met in the middle of the run, where it ends the program.
    #[error(
        "lock this process's memory: the limit of {limit_bytes} bytes is too near (want at least {needed_bytes}, see `ulimit -l`)"
    )]
    MemoryLimit {
        /// What the user may lock.
        limit_bytes: u64,
        /// What is mapped now, and room to grow.
        needed_bytes: u64,
    },
    /// The first use of a page takes longer than the next.
    #[error("bring this process's memory in before it is used (want Linux 5.14 or later)")]
    Prefault(#[source] io::Error),
    /// The kernel did not say how the thread is scheduled.
    #[error("read how this thread is scheduled")]
    Scheduling(#[source] io::Error),
    /// Idle CPUs may fall into deep sleep.
    #[error("hold {DMA_LATENCY} at 0 µs (want root, or write access to it)")]
    DmaLatency(#[source] io::Error),
    /// The thread is scheduled as any other.
    #[error(
        "schedule this thread SCHED_FIFO at priority {priority} (want CAP_SYS_NICE or `ulimit -r` that high; 1 to 99)"
    )]
    Fifo {
        /// The priority asked for.
        priority: u8,
        /// The kernel's answer.
        #[source]
        source: io::Error,
    },
    /// Sleeps may end later than asked.
    #[error("set this thread's timer slack to 1 ns")]
    TimerSlack(#[source] io::Error),
    /// The thread competes with others as an equal.
    #[error("set this thread's nice value to 19")]
    Nice(#[source] io::Error),
}

/// The calling thread's number.
pub fn current_tid() -> Tid {
    Tid(gettid().as_raw())
}

/// The CPUs that the calling thread may run on, lowest first.
///
/// # Errors
///
/// When the kernel does not say, as with more than 1024 CPUs.
pub fn allowed_cpus() -> Result<Vec<Cpu>, ThreadError> {
    let set = sched_getaffinity(CALLER).map_err(|errno| ThreadError::AllowedCpus(errno.into()))?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).map(Cpu::new).collect())
}

/// Keeps the calling thread on one CPU.
///
/// # Errors
///
/// When that CPU is offline, forbidden to the process, or none.
pub fn pin_current_thread(cpu: Cpu) -> Result<(), ThreadError> {
    set_affinity(&[cpu])
}

/// Keeps the calling thread, and the threads it starts later, on these CPUs.
///
/// # Errors
///
/// When none of them is online and allowed, or one is beyond what the kernel can count.
pub fn set_affinity(cpus: &[Cpu]) -> Result<(), ThreadError> {
    let set = || {
        let mut set = CpuSet::new();
        cpus.iter().try_for_each(|cpu| set.set(cpu.get()))?;
        sched_setaffinity(CALLER, &set)
    };
    set().map_err(|errno| ThreadError::Affinity { cpus: CpuList::new(cpus.to_vec()), source: errno.into() })
}

/// Keeps all memory of the process, present and future, in RAM, and there before its first use.
///
/// # Errors
///
/// When it is not permitted, or when the limit on locked memory is less than the process has mapped and 256 MiB: the kernel
/// would agree, and a later allocation would fail.
pub fn lock_memory() -> Result<(), ThreadError> {
    let (limit_bytes, _) =
        getrlimit(Resource::RLIMIT_MEMLOCK).map_err(|errno| ThreadError::LockMemory(errno.into()))?;
    if limit_bytes != RLIM_INFINITY && !may_lock_without_limit() {
        let needed_bytes = mapped_bytes() + LOCK_HEADROOM_BYTES;
        if limit_bytes < needed_bytes {
            return Err(ThreadError::MemoryLimit { limit_bytes, needed_bytes });
        }
    }
    mlockall(MlockAllFlags::MCL_CURRENT | MlockAllFlags::MCL_FUTURE)
        .map_err(|errno| ThreadError::LockMemory(errno.into()))
}

/// While it lives, idle CPUs only doze: the kernel promises to leave idle states within 0 µs.
#[derive(Debug)]
pub struct DmaLatencyHold {
    /// The promise lasts as long as the file is open.
    _file: File,
}

/// Asks that no idle CPU falls into a sleep that takes time to wake from.
///
/// # Errors
///
/// When the file is missing or not this user's to write.
pub fn hold_dma_latency() -> Result<DmaLatencyHold, ThreadError> {
    let hold = || {
        let mut file = OpenOptions::new().write(true).open(DMA_LATENCY)?;
        file.write_all(&0_i32.to_ne_bytes())?;
        Ok(DmaLatencyHold { _file: file })
    };
    hold().map_err(ThreadError::DmaLatency)
}

/// Lets the calling thread run before all ordinary ones, from 1 to 99; what runs at 99 also runs before the kernel's own threads.
///
/// A thread that spins this way starves its CPU: see [`real_time_throttling`].
///
/// # Errors
///
/// When the privilege is missing, or there is no such priority.
pub fn set_fifo(priority: u8) -> Result<(), ThreadError> {
    // The system call, since musl's function of this name only says that it does not exist.
    let parameter = libc::c_int::from(priority);
    #[expect(unsafe_code, reason = "nix has no wrapper")]
    // SAFETY: sched_setscheduler(2) takes a thread's number, 0 for the caller, a policy, and a pointer to a struct of one int,
    // which it only reads: `parameter` is a local that outlives the call.
    let status = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, libc::SCHED_FIFO, &raw const parameter) };
    if status == 0 { Ok(()) } else { Err(ThreadError::Fifo { priority, source: io::Error::last_os_error() }) }
}

/// How the calling thread is scheduled, in a word, with its priority or niceness where it has one: `other`, `other nice 19`, `fifo 50`.
///
/// # Errors
///
/// When /proc is not there.
pub fn scheduling() -> Result<String, ThreadError> {
    let stat = fs::read_to_string("/proc/thread-self/stat").map_err(ThreadError::Scheduling)?;
    let scheduling = crate::usage::Stat::parse(&stat).map(|stat| stat.scheduling());
    scheduling.ok_or_else(|| ThreadError::Scheduling(io::ErrorKind::InvalidData.into()))
}

/// How much of each period the kernel lets real-time threads have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct RealTimeThrottling {
    /// What they may use.
    pub runtime: Nanos,
    /// Of how much.
    pub period: Nanos,
}

impl RealTimeThrottling {
    /// How long a real-time thread that spins stands still in every period: 50 ms a second as kernels come.
    pub fn stall(self) -> Nanos {
        self.period.checked_sub(self.runtime).unwrap_or(Nanos::ZERO)
    }
}

/// Whether the kernel stalls real-time threads that do not yield; `None` when it does not, or does not say.
///
/// From Linux 6.12 on it does so only while an ordinary thread waits for that CPU.
pub fn real_time_throttling() -> Option<RealTimeThrottling> {
    let read = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    throttling(&read("sched_rt_runtime_us")?, &read("sched_rt_period_us")?)
}

/// Lets the calling thread's sleeps end when asked, not up to 50 µs later.
///
/// # Errors
///
/// When the kernel does not know how.
pub fn set_timer_slack_1ns() -> Result<(), ThreadError> {
    set_timerslack(1).map_err(|errno| ThreadError::TimerSlack(errno.into()))
}

/// Makes the calling thread, and no other, give way to all that are not nice.
///
/// # Errors
///
/// When the kernel refuses, for which no cause is known.
pub fn make_helper_nice() -> Result<(), ThreadError> {
    #[expect(unsafe_code, reason = "nix has no wrapper")]
    // SAFETY: three numbers. On Linux PRIO_PROCESS with 0 is the calling thread alone, setpriority(2), "C library/kernel
    // differences".
    let status = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, 19) };
    if status == 0 { Ok(()) } else { Err(ThreadError::Nice(io::Error::last_os_error())) }
}

/// Whether the limit on locked memory is not for this process: it has `CAP_IPC_LOCK`, and not only within a user namespace.
fn may_lock_without_limit() -> bool {
    let own = |name: &str| fs::read_to_string(format!("/proc/self/{name}")).unwrap_or_default();
    has_capability(&own("status"), CAP_IPC_LOCK) && is_initial_user_namespace(&own("uid_map"))
}

fn has_capability(status: &str, capability: u32) -> bool {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).is_some_and(|set| set & (1 << capability) != 0)
}

/// The initial user namespace maps every user to itself.
fn is_initial_user_namespace(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

/// What counts against the limit: all that is mapped, touched or not.
fn mapped_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    crate::usage::status_kib(&status, "VmSize").unwrap_or(0) * 1_024
}

fn throttling(runtime_us: &str, period_us: &str) -> Option<RealTimeThrottling> {
    // -1 is "no limit", and no number without a sign.
    let micros = |text: &str| text.trim().parse().ok().and_then(|us: u64| us.checked_mul(1_000)).map(Nanos::new);
    let (runtime, period) = (micros(runtime_us)?, micros(period_us)?);
    (runtime < period).then_some(RealTimeThrottling { runtime, period })
}

/// To `sched_setaffinity(2)` and its like, 0 is the calling thread.
const CALLER: Pid = Pid::from_raw(0);
const CAP_IPC_LOCK: u32 = 14;
const DMA_LATENCY: &str = "/dev/cpu_dma_latency";
/// Histograms, rings and stacks of a long run are far below this.
const LOCK_HEADROOM_BYTES: u64 = 256 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put() {
        let allowed = allowed_cpus().unwrap();
        let last = *allowed.last().unwrap();
        pin_current_thread(last).unwrap();
        assert_eq!(allowed_cpus().unwrap(), [last]);
        set_affinity(&allowed).unwrap();
        assert_eq!(allowed_cpus().unwrap(), allowed);
    }

    #[test]
    fn no_cpu_is_a_refusal() {
        assert!(matches!(set_affinity(&[]), Err(ThreadError::Affinity { .. })));
        let error = pin_current_thread(Cpu::new(100_000)).unwrap_err();
        assert!(error.to_string().contains("CPU 100000"), "{error}");
    }

    #[test]
    fn niceness_is_the_threads_own() {
        let nice = |tid: Tid| {
            let stat = fs::read_to_string(format!("/proc/self/task/{tid}/stat")).unwrap();
            stat.rsplit_once(')').unwrap().1.split_whitespace().nth(16).unwrap().to_owned()
        };
        let mine = nice(current_tid());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                make_helper_nice().unwrap();
                assert_eq!(nice(current_tid()), "19");
            });
        });
        assert_eq!(nice(current_tid()), mine);
        assert_ne!(mine, "19");
    }

    #[test]
    fn timer_slack_is_set() {
        std::thread::spawn(|| {
            set_timer_slack_1ns().unwrap();
            assert_eq!(nix::sys::prctl::get_timerslack(), Ok(1));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn a_wish_is_granted_or_refused_with_advice() {
        // What the machine allows is its own affair; a refusal says what was asked and what would help.
        if let Err(error) = hold_dma_latency() {
            assert!(error.to_string().contains("want root"), "{error}");
        }
        std::thread::spawn(|| {
            match set_fifo(1) {
                Ok(()) => assert_eq!(scheduling().unwrap(), "fifo 1"),
                Err(error) => {
                    assert!(error.to_string().contains("priority 1 (want"), "{error}");
                    assert_eq!(scheduling().unwrap(), "other");
                }
            }
            assert!(matches!(set_fifo(100), Err(ThreadError::Fifo { priority: 100, .. })));
        })
        .join()
        .unwrap();
    }

    #[test]
    fn throttling_is_what_the_kernel_says() {
        let default = throttling("950000\n", "1000000\n").unwrap();
        assert_eq!(default.stall(), Nanos::from_millis(50));
        assert_eq!(throttling("-1\n", "1000000\n"), None);
        assert_eq!(throttling("1000000\n", "1000000\n"), None);
        assert_eq!(throttling("", "1000000\n"), None);
    }

    #[test]
    fn privilege_within_a_user_namespace_does_not_count() {
        let status = "Name:\tx\nCapEff:\t0000000000004000\n";
        assert!(has_capability(status, CAP_IPC_LOCK));
        assert!(!has_capability(status, CAP_IPC_LOCK + 1));
        assert!(!has_capability("", CAP_IPC_LOCK));
        assert!(is_initial_user_namespace("         0          0 4294967295\n"));
        assert!(!is_initial_user_namespace("         0       1000          1\n"));
    }
}
