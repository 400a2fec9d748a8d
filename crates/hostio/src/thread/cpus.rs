//! CPUs, lists of them, and which to take.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// The kernel's number of a logical CPU.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
#[repr(transparent)]
pub struct Cpu(usize);

impl Cpu {
    /// CPU number `n`.
    pub const fn new(n: usize) -> Self {
        Self(n)
    }

    /// The number.
    pub const fn get(self) -> usize {
        self.0
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// CPUs, each once, lowest first, in the kernel's writing: `0-3,8`.
#[derive(Clone, Debug, Default, Eq, Hash, PartialEq)]
pub struct CpuList(Vec<Cpu>);

impl CpuList {
    /// The list of these, in whatever order they come.
    pub fn new(mut cpus: Vec<Cpu>) -> Self {
        cpus.sort_unstable();
        cpus.dedup();
        Self(cpus)
    }

    /// The CPUs, lowest first.
    pub fn as_slice(&self) -> &[Cpu] {
        &self.0
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let runs = self.0.chunk_by(|a, b| a.0 + 1 == b.0).map(|run| match run {
            [one] => one.to_string(),
            _ => format!("{}-{}", run[0], run[run.len() - 1]),
        });
        f.pad(&runs.collect::<Vec<_>>().join(","))
    }
}

/// Not a list of CPUs.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("read `{0}` as a list of CPUs: want numbers and ranges, such as 0-3,8")]
pub struct ParseCpuListError(String);

impl FromStr for CpuList {
    type Err = ParseCpuListError;

    /// Reads the kernel's writing; nothing at all is the empty list.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = |text: &str| text.parse().ok().filter(|&n: &usize| n < MOST_CPUS);
        let run = |part: &str| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (number(first)?, number(last)?);
            (first <= last).then(|| (first..=last).map(Cpu))
        };
        let parts = text.trim().split(',').filter(|_| !text.trim().is_empty());
        let runs: Option<Vec<_>> = parts.map(run).collect();
        let runs = runs.ok_or_else(|| ParseCpuListError(text.to_owned()))?;
        Ok(Self::new(runs.into_iter().flatten().collect()))
    }
}

/// Which CPUs go to the threads that must not be disturbed, and which to the others.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CpuChoice {
    /// One for each hot thread, in their order. A CPU comes twice only when there are fewer than threads.
    pub hot: Vec<Cpu>,
    /// Where the helper threads may run.
    pub helpers: Vec<Cpu>,
}

impl CpuChoice {
    /// Whether two hot threads have to share a CPU: what they measure is then each other.
    pub fn is_shared(&self) -> bool {
        CpuList::new(self.hot.clone()).0.len() < self.hot.len()
    }
}

/// Picks CPUs for `wanted` hot threads out of `allowed`, the highest first; helpers get the rest, or all when there is no rest.
///
/// CPU 0 is left out where others suffice: it keeps the time, takes interrupts that nobody directed elsewhere, and can be
/// neither isolated nor made tickless. The rest of them tends to fall on the low numbers too.
/// Nothing is known here of hyper-threads or sockets. Without an allowed CPU there is no choice, and both lists are empty.
pub fn default_cpus(allowed: &[Cpu], wanted: usize) -> CpuChoice {
    let allowed = CpuList::new(allowed.to_vec()).0;
    // Highest first, so that CPU 0 comes last: it is taken only when the others do not suffice.
    let hot: Vec<Cpu> = allowed.iter().rev().copied().cycle().take(wanted).collect();
    let mut helpers: Vec<Cpu> = allowed.iter().copied().filter(|cpu| !hot.contains(cpu)).collect();
    if helpers.is_empty() {
        helpers = allowed;
    }
    CpuChoice { hot, helpers }
}

/// No kernel is built for as many; it bounds what a malformed range can cost.
const MOST_CPUS: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn cpus(text: &str) -> Vec<Cpu> {
        text.parse::<CpuList>().unwrap().0
    }

    #[test]
    fn lists_read_and_print_as_the_kernel_writes_them() {
        for text in ["", "0", "0-3,8", "1,3,5-6"] {
            assert_eq!(text.parse::<CpuList>().unwrap().to_string(), text);
        }
        assert_eq!("3,1-2,2\n".parse::<CpuList>().unwrap().to_string(), "1-3");
        for wrong in ["3-1", "a", "1,,2", "1-", "0-99999999999"] {
            assert_eq!(wrong.parse::<CpuList>(), Err(ParseCpuListError(wrong.into())));
        }
    }

    #[test]
    fn hot_threads_get_cpus_of_their_own_where_there_are() {
        for (allowed, wanted, hot, helpers, shared) in [
            ("0-7", 1, vec![7], "0-6", false),
            ("0-7", 3, vec![7, 6, 5], "0-4", false),
            ("0-1", 1, vec![1], "0", false),
            ("0-1", 2, vec![1, 0], "0-1", false),
            ("0-1", 3, vec![1, 0, 1], "0-1", true),
            ("0,4,9", 2, vec![9, 4], "0", false),
            ("5", 2, vec![5, 5], "5", true),
            ("0", 1, vec![0], "0", false),
            ("", 2, vec![], "", false),
        ] {
            let choice = default_cpus(&cpus(allowed), wanted);
            let hot: Vec<Cpu> = hot.into_iter().map(Cpu).collect();
            assert_eq!(choice, CpuChoice { hot, helpers: cpus(helpers) }, "{wanted} of {allowed}");
            assert_eq!(choice.is_shared(), shared, "{wanted} of {allowed}");
        }
    }
}
