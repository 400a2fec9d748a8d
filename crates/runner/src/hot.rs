//! What a hot thread asks of the kernel, and what it used.

use std::sync::Mutex;
use std::sync::mpsc::Sender;

use tickpong_hostio::thread::{self, Cpu, DmaLatencyHold, Tid};
use tickpong_hostio::usage::{ThreadUsage, thread_usage};
use tickpong_record::ThreadCpu;

use crate::RunnerError;

/// What a run asks of the kernel beside its sockets. What the system refuses is a warning in the run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HotSettings {
    /// Hold `/dev/cpu_dma_latency` at zero, so that idle CPUs stay awake.
    pub dma_latency: bool,
    /// Lock all memory, so that none of it is paged out or faulted in during the run.
    pub lock_memory: bool,
    /// Run hot threads under `SCHED_FIFO` at this priority.
    pub fifo: Option<u8>,
}

impl Default for HotSettings {
    fn default() -> Self {
        Self { dma_latency: true, lock_memory: true, fifo: None }
    }
}

/// Warnings gathered from several threads.
pub(crate) type Warnings = Mutex<Vec<String>>;

/// Adds a warning. A thread that panicked while it held the list has at worst not added its own.
pub(crate) fn warn(warnings: &Warnings, warning: String) {
    warnings.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(warning);
}

/// What holds for the whole process while a run goes on.
#[derive(Debug)]
pub(crate) struct Held {
    _dma_latency: Option<DmaLatencyHold>,
}

/// Asks for what the whole process gets. To be called once all large memory is taken, so that locking faults it in.
pub(crate) fn hold(settings: HotSettings, warnings: &Warnings) -> Held {
    if settings.lock_memory
        && let Err(error) = thread::lock_memory()
    {
        warn(warnings, describe(&error));
    }
    let refused = |error| warn(warnings, format!("{}; idle CPUs may sleep, and waking them shows", describe(&error)));
    let dma_latency = settings.dma_latency.then(thread::hold_dma_latency).and_then(|held| held.map_err(refused).ok());
    if settings.fifo.is_some()
        && let Some(throttling) = thread::real_time_throttling()
    {
        warn(
            warnings,
            format!(
                "SCHED_FIFO: the kernel stalls a spinning real-time thread for {} of every {}; set /proc/sys/kernel/sched_rt_runtime_us to -1, or do without",
                throttling.stall(),
                throttling.period
            ),
        );
    }
    Held { _dma_latency: dma_latency }
}

/// Which hot thread this is, and where it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotThread {
    pub(crate) name: &'static str,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) fifo: Option<u8>,
}

impl HotThread {
    /// Runs `body` on the calling thread as a hot one; tells its id to `tid` first.
    pub(crate) fn run<T>(self, warnings: &Warnings, tid: &Sender<Tid>, body: impl FnOnce() -> T) -> (T, ThreadCpu) {
        let asked = [
            self.cpu.map_or(Ok(()), thread::pin_current_thread),
            thread::set_timer_slack_1ns(),
            self.fifo.map_or(Ok(()), thread::set_fifo),
        ];
        for error in asked.into_iter().filter_map(Result::err) {
            warn(warnings, format!("{} thread: {}", self.name, describe(&error)));
        }
        // Nobody listening any more means that the run is being given up.
        let _ = tid.send(thread::current_tid());
        let before = thread_usage().unwrap_or_default();
        let done = body();
        let used = thread_usage().unwrap_or_default().since(&before);
        (done, self.used(&used))
    }

    fn used(self, used: &ThreadUsage) -> ThreadCpu {
        ThreadCpu {
            name: self.name.to_owned(),
            cpu: self.cpu.map(|cpu| cpu.get() as u64),
            user_ns: used.user.get(),
            system_ns: used.system.get(),
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            minor_faults: used.minor_faults,
            major_faults: used.major_faults,
        }
    }
}

/// An error with its causes, on one line.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(source) = cause {
        let said = source.to_string();
        if !text.contains(&said) {
            text = format!("{text}: {said}");
        }
        cause = source.source();
    }
    text
}

/// The CPUs for `wanted` hot threads, with those asked for checked; helpers get the rest.
pub(crate) fn place(asked: &[Option<Cpu>]) -> Result<(Vec<Cpu>, Vec<Cpu>), RunnerError> {
    let allowed = thread::allowed_cpus().map_err(|source| RunnerError::Cpus { source })?;
    if let Some(cpu) = asked.iter().flatten().find(|cpu| !allowed.contains(cpu)) {
        let allowed = thread::CpuList::new(allowed).to_string();
        return Err(RunnerError::NoSuchCpu { cpu: cpu.get(), allowed });
    }
    let free: Vec<Cpu> = allowed.iter().copied().filter(|cpu| !asked.contains(&Some(*cpu))).collect();
    let unasked = asked.iter().filter(|cpu| cpu.is_none()).count();
    let mut chosen = thread::default_cpus(if free.is_empty() { &allowed } else { &free }, unasked).hot.into_iter();
    let hot: Vec<Cpu> = asked.iter().filter_map(|cpu| cpu.or_else(|| chosen.next())).collect();
    let helpers: Vec<Cpu> = allowed.iter().copied().filter(|cpu| !hot.contains(cpu)).collect();
    Ok((hot, if helpers.is_empty() { allowed } else { helpers }))
}

/// Makes the calling thread a helper: off the hot CPUs where it can be, and nice where it cannot.
pub(crate) fn become_helper(helpers: &[Cpu]) {
    // A helper in the way is a blemish, and a refusal here is no reason to bother anybody.
    let _ = thread::set_affinity(helpers);
    let _ = thread::make_helper_nice();
}
