//! What hot threads use and under what they run, told by themselves, so that others can ask at any time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tickpong_hostio::thread::{self, CpuList, Tid};
use tickpong_hostio::usage::{MemoryUsage, ThreadUsage, process_memory, thread_cpu, thread_usage, thread_usage_of};
use tickpong_record::{Resources, ThreadCpu, ThreadInForce};
use tickpong_units::Nanos;

/// The account of the hot threads of one end.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    account: Mutex<Account>,
}

#[derive(Debug, Default)]
struct Account {
    threads: Vec<Metered>,
    /// Of the process, while the engine's buffers were still there.
    memory: Option<MemoryUsage>,
}

/// One hot thread.
#[derive(Debug, Default)]
struct Metered {
    name: &'static str,
    /// Once it runs.
    tid: Option<Tid>,
    in_force: ThreadInForce,
    before: ThreadUsage,
    /// Once it has played: what it used since it began to.
    over: Option<ThreadUsage>,
}

/// A hot thread's own entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    meter: &'a Meter,
    index: usize,
}

/// What the hot threads came to.
#[derive(Debug, Default)]
pub(crate) struct Metering {
    pub(crate) threads: Vec<ThreadCpu>,
    pub(crate) in_force: Vec<ThreadInForce>,
    pub(crate) memory: MemoryUsage,
}

impl Meter {
    /// Opens an entry for a thread that is about to be started.
    pub(crate) fn entry(&self, name: &'static str) -> Entry<'_> {
        let mut account = self.lock();
        account.threads.push(Metered { name, ..Metered::default() });
        Entry { meter: self, index: account.threads.len() - 1 }
    }

    /// What the hot threads have used so far, each since it began to play; a thread that has ended counts with all that it used.
    pub(crate) fn used(&self) -> Resources {
        // Held while /proc is read: no thread whose entry there is asked for is gone.
        let account = self.lock();
        let mut used = Resources::default();
        for thread in &account.threads {
            let (cpu_ns, usage) = thread.used();
            used.cpu_ns += cpu_ns;
            used.user_ns += usage.user.get();
            used.system_ns += usage.system.get();
            used.voluntary_switches += usage.voluntary_switches;
            used.involuntary_switches += usage.involuntary_switches;
            used.minor_faults += usage.minor_faults;
            used.major_faults += usage.major_faults;
        }
        let memory = account.memory.or_else(|| process_memory().ok()).unwrap_or_default();
        Resources { resident_bytes: memory.resident_bytes, peak_bytes: memory.peak_bytes, ..used }
    }

    /// What it all came to, once the threads have ended.
    pub(crate) fn finish(&self) -> Metering {
        let account = self.lock();
        Metering {
            threads: account.threads.iter().map(Metered::cpu).collect(),
            in_force: account.threads.iter().map(|thread| thread.in_force.clone()).collect(),
            memory: account.memory.unwrap_or_default(),
        }
    }

    /// A thread that panicked while it held the account has at worst not told of itself.
    fn lock(&self) -> MutexGuard<'_, Account> {
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entry<'_> {
    /// The calling thread is the entry's and is set up: this is under what it runs.
    pub(crate) fn set_up(&self) {
        let cpus = thread::allowed_cpus().map_or_else(|_| String::new(), |cpus| CpuList::new(cpus).to_string());
        let scheduling = thread::scheduling().unwrap_or_default();
        let mut account = self.meter.lock();
        let entry = &mut account.threads[self.index];
        entry.in_force = ThreadInForce { name: entry.name.to_owned(), cpus, scheduling };
    }

    /// The calling thread counts from here on.
    pub(crate) fn begin(&self) {
        let mut account = self.meter.lock();
        let entry = &mut account.threads[self.index];
        entry.tid = Some(thread::current_tid());
        entry.before = thread_usage().unwrap_or_default();
    }

    /// It has played. To be called while all that it played with is still there.
    pub(crate) fn end(&self) {
        let now = thread_usage().unwrap_or_default();
        let memory = process_memory().ok();
        let mut account = self.meter.lock();
        account.memory = memory.or(account.memory);
        let entry = &mut account.threads[self.index];
        entry.over = Some(now.since(&entry.before));
    }
}

impl Metered {
    /// CPU time, and everything else.
    fn used(&self) -> (u64, ThreadUsage) {
        let total = |usage: &ThreadUsage| usage.user.get() + usage.system.get();
        match (self.over, self.tid) {
            (Some(over), _) => (total(&over), over),
            (None, Some(tid)) => {
                let cpu_ns = thread_cpu(tid).map_or(0, Nanos::get).saturating_sub(total(&self.before));
                (cpu_ns, thread_usage_of(tid).unwrap_or_default().since(&self.before))
            }
            (None, None) => Default::default(),
        }
    }

    fn cpu(&self) -> ThreadCpu {
        let used = self.over.unwrap_or_default();
        ThreadCpu {
            name: self.name.to_owned(),
            user_ns: used.user.get(),
            system_ns: used.system.get(),
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            minor_faults: used.minor_faults,
            major_faults: used.major_faults,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses at least 20 ms of CPU time.
    fn burn() {
        let before = thread_usage().unwrap();
        let used = || thread_usage().unwrap().since(&before);
        while used().user.get() + used().system.get() < 20_000_000 {
            std::hint::black_box((0..10_000_u64).fold(0, u64::wrapping_add));
        }
    }

    #[test]
    fn a_thread_counts_from_its_begin_on_and_after_its_end() {
        let meter = Meter::default();
        let entry = meter.entry("pinger");
        assert_eq!(meter.used().cpu_ns, 0, "it has not begun");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                burn();
                entry.set_up();
                entry.begin();
                entry.end();
            });
        });
        assert!(meter.used().cpu_ns < 10_000_000, "{:?}", meter.used());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                entry.begin();
                burn();
                entry.end();
            });
        });
        let (used, metering) = (meter.used(), meter.finish());
        assert!(used.cpu_ns >= 20_000_000 && used.resident_bytes > 0, "{used:?}");
        let [thread] = metering.threads.as_slice() else { panic!("{metering:?}") };
        assert_eq!((used.cpu_ns, &*thread.name), (thread.user_ns + thread.system_ns, "pinger"));
        assert_eq!(metering.in_force[0].scheduling, "other");
        assert!(!metering.in_force[0].cpus.is_empty(), "{metering:?}");
    }
}
