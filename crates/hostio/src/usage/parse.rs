//! The words of /proc.

use tickpong_units::Nanos;

/// What /proc/PID/stat and /proc/PID/task/TID/stat tell, as far as it is asked for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Stat {
    pub(crate) minor_faults: u64,
    pub(crate) major_faults: u64,
    pub(crate) user_ticks: u64,
    pub(crate) system_ticks: u64,
    /// From -20 to 19; the higher, the more a thread gives way.
    pub(crate) nice: i64,
    /// Of a real-time policy, else zero.
    pub(crate) priority: u64,
    /// The number of the scheduling policy.
    pub(crate) policy: u64,
}

impl Stat {
    /// Reads the line; fields are numbered from one, as in proc(5).
    pub(crate) fn parse(text: &str) -> Option<Self> {
        // The name may hold spaces and parentheses: what follows its last parenthesis starts with field 3.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let text = |number: usize| fields.get(number - 3);
        let field = |number| text(number)?.parse().ok();
        Some(Self {
            minor_faults: field(10)?,
            major_faults: field(12)?,
            user_ticks: field(14)?,
            system_ticks: field(15)?,
            nice: text(19)?.parse().ok()?,
            priority: field(40)?,
            policy: field(41)?,
        })
    }

    /// The policy by its name, with its priority or niceness where it has one.
    pub(crate) fn scheduling(&self) -> String {
        let name = match self.policy {
            0 => "other",
            1 => "fifo",
            2 => "round-robin",
            3 => "batch",
            5 => "idle",
            6 => "deadline",
            7 => "ext",
            _ => "unknown",
        };
        match (self.priority, self.nice) {
            (0, 0) => name.to_owned(),
            (0, nice) => format!("{name} nice {nice}"),
            (priority, _) => format!("{name} {priority}"),
        }
    }
}

/// The number after `name:` in a status file.
pub(crate) fn status_number(status: &str, name: &str) -> Option<u64> {
    status_value(status, name)?.parse().ok()
}

/// The number of KiB after `name:` in a status file, or in /proc/meminfo.
pub(crate) fn status_kib(status: &str, name: &str) -> Option<u64> {
    status_value(status, name)?.strip_suffix("kB")?.trim().parse().ok()
}

/// The first number of a schedstat file: time on a CPU.
pub(crate) fn schedstat_cpu(text: &str) -> Option<Nanos> {
    text.split_whitespace().next()?.parse().ok().map(Nanos::new)
}

/// What stands after `name:`.
pub(crate) fn status_value<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "71 (tp (hot) 1) S 1 71 71 0 -1 4194304 1021 5 7 9 250 30 0 0 20 0 3 0 1234 9000000 500 \
                        18446744073709551615 1 1 0 0 0 0 0 4096 0 0 0 0 17 1 50 1 0 0 0 0 0 0 0 0 0 0 0\n";

    #[test]
    fn a_name_may_hold_what_it_likes() {
        let want = Stat {
            minor_faults: 1_021,
            major_faults: 7,
            user_ticks: 250,
            system_ticks: 30,
            nice: 0,
            priority: 50,
            policy: 1,
        };
        assert_eq!(Stat::parse(STAT), Some(want));
        assert_eq!(Stat::parse(&STAT.replace("tp (hot) 1", "a b) S 9 9")), Some(want));
        assert_eq!(want.scheduling(), "fifo 50");
        assert_eq!(Stat { priority: 0, policy: 0, ..want }.scheduling(), "other");
        assert_eq!(Stat { priority: 0, policy: 0, nice: 19, ..want }.scheduling(), "other nice 19");
        assert_eq!(Stat::parse("71 (short) S 1 71"), None);
        assert_eq!(Stat::parse(""), None);
    }

    #[test]
    fn status_lines_are_found_by_their_whole_name() {
        let status = "Name:\ttp\nVmRSS:\t    1234 kB\nvoluntary_ctxt_switches:\t7\nnonvoluntary_ctxt_switches:\t3\n";
        assert_eq!(status_kib(status, "VmRSS"), Some(1_234));
        assert_eq!(status_kib(status, "VmHWM"), None);
        assert_eq!(status_kib(status, "Name"), None);
        assert_eq!(status_number(status, "voluntary_ctxt_switches"), Some(7));
        assert_eq!(status_number(status, "nonvoluntary_ctxt_switches"), Some(3));
        assert_eq!(status_value(status, "Vm"), None);
    }

    #[test]
    fn schedstat_begins_with_the_time_on_a_cpu() {
        assert_eq!(schedstat_cpu("123456 789 12\n"), Some(Nanos::new(123_456)));
        assert_eq!(schedstat_cpu(""), None);
    }
}
