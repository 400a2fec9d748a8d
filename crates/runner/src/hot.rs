//! What a hot thread asks of the kernel, and where it runs.

use std::sync::Mutex;

use tickpong_hostio::socket::UdpSocket;
use tickpong_hostio::thread::{self, Cpu, DmaLatencyHold};
use tickpong_record::{InForce, ThreadInForce};

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
    dma_latency: Option<DmaLatencyHold>,
    memory_locked: bool,
}

impl Held {
    /// What is in force at one end.
    pub(crate) fn in_force(&self, threads: Vec<ThreadInForce>, socket: &UdpSocket) -> InForce {
        InForce {
            threads,
            memory_locked: self.memory_locked,
            dma_latency_held: self.dma_latency.is_some(),
            busy_poll_us: socket.busy_poll_us().map(u64::from),
        }
    }
}

/// Asks for what the whole process gets. Where memory is locked, what is taken later is there before its first use, too.
pub(crate) fn hold(settings: HotSettings, warnings: &Warnings) -> Held {
    let locked = settings.lock_memory.then(thread::lock_memory);
    let memory_locked = matches!(locked, Some(Ok(())));
    if let Some(Err(error)) = locked {
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
    Held { dma_latency, memory_locked }
}

/// Which hot thread this is, and where it runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HotThread {
    pub(crate) name: &'static str,
    pub(crate) cpu: Option<Cpu>,
    pub(crate) fifo: Option<u8>,
}

impl HotThread {
    /// Makes the calling thread a hot one. To be called when it has all that it plays with: no page of that will be faulted in later.
    pub(crate) fn set_up(self, warnings: &Warnings) {
        let asked = [
            self.cpu.map_or(Ok(()), thread::pin_current_thread),
            thread::set_timer_slack_1ns(),
            self.fifo.map_or(Ok(()), thread::set_fifo),
            thread::prefault_memory(),
        ];
        for error in asked.into_iter().filter_map(Result::err) {
            warn(warnings, format!("{} thread: {}", self.name, describe(&error)));
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

/// Where the threads of one end run.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Placed {
    /// One for each hot thread.
    pub(crate) hot: Vec<Cpu>,
    /// For all other threads.
    pub(crate) helpers: Vec<Cpu>,
}

/// The CPUs for hot threads, with those `asked` for checked; helpers get the rest. All keep off those to `avoid` where there are others.
pub(crate) fn place(asked: &[Option<Cpu>], avoid: &[Cpu]) -> Result<Placed, RunnerError> {
    let allowed = thread::allowed_cpus().map_err(|source| RunnerError::Cpus { source })?;
    if let Some(cpu) = asked.iter().flatten().find(|cpu| !allowed.contains(cpu)) {
        let allowed = thread::CpuList::new(allowed).to_string();
        return Err(RunnerError::NoSuchCpu { cpu: cpu.get(), allowed });
    }
    Ok(place_among(&allowed, asked, avoid))
}

fn place_among(allowed: &[Cpu], asked: &[Option<Cpu>], avoid: &[Cpu]) -> Placed {
    let without = |taken: &[Cpu], from: &[Cpu]| {
        let rest: Vec<Cpu> = from.iter().copied().filter(|cpu| !taken.contains(cpu)).collect();
        if rest.is_empty() { from.to_vec() } else { rest }
    };
    let named: Vec<Cpu> = asked.iter().flatten().copied().collect();
    let unasked = asked.len() - named.len();
    let free = without(avoid, &without(&named, allowed));
    let mut chosen = thread::default_cpus(&free, unasked).hot.into_iter();
    let hot: Vec<Cpu> = asked.iter().filter_map(|cpu| cpu.or_else(|| chosen.next())).collect();
    let helpers = without(avoid, &without(&hot, allowed));
    Placed { hot, helpers }
}

/// Makes the calling thread a helper: off the hot CPUs where it can be, and nice where it cannot.
pub(crate) fn become_helper(helpers: &[Cpu]) {
    keep_off_hot_cpus(helpers);
    give_way();
}

/// Keeps the calling thread, and those that it starts, off the hot CPUs where there are others.
pub(crate) fn keep_off_hot_cpus(helpers: &[Cpu]) {
    // A helper in the way is a blemish, and a refusal here is no reason to bother anybody.
    let _ = thread::set_affinity(helpers);
}

/// Makes the calling thread nice. Not to be called before it has started a hot one: that would be as nice, and could not be otherwise again.
pub(crate) fn give_way() {
    let _ = thread::make_helper_nice();
}

#[cfg(test)]
mod tests {
    use tickpong_hostio::thread::CpuList;

    use super::*;

    #[test]
    fn threads_keep_off_each_other_and_off_the_other_end_where_there_is_room() {
        for (allowed, asked, avoid, hot, helpers) in [
            ("0-3", &[None][..], "", "3", "0-2"),
            ("0-3", &[Some(3)], "2", "3", "0-1"),
            ("0-3", &[None], "3", "2", "0-1"),
            ("0-3", &[Some(3), None], "2", "1,3", "0"),
            ("0-1", &[Some(1)], "0", "1", "0"),
            ("0", &[None], "0", "0", "0"),
            ("0-1", &[None, None], "", "0-1", "0-1"),
        ] {
            let list = |text: &str| text.parse::<CpuList>().unwrap();
            let asked: Vec<_> = asked.iter().map(|cpu| cpu.map(Cpu::new)).collect();
            let placed = place_among(list(allowed).as_slice(), &asked, list(avoid).as_slice());
            let got = (CpuList::new(placed.hot).to_string(), CpuList::new(placed.helpers).to_string());
            assert_eq!(got, (hot.to_owned(), helpers.to_owned()), "{asked:?} of {allowed} without {avoid}");
        }
    }
}
