//! From the host's words to facts; nothing here reads a file.

use std::collections::BTreeSet;

use super::FactValue;
use crate::thread::{Cpu, CpuList};

/// How a file's text becomes a fact.
pub(super) type Parse = fn(&str) -> Option<FactValue>;

/// The whole text, if there is any.
pub(super) fn text(text: &str) -> Option<FactValue> {
    let trimmed = text.trim();
    (!trimmed.is_empty()).then(|| FactValue::Text(trimmed.to_owned()))
}

/// The whole text, where none means that the set is empty, which the kernel also writes as `(null)`.
#[expect(clippy::unnecessary_wraps, reason = "stands in a table with parsers that may find nothing")]
pub(super) fn cpu_list(text: &str) -> Option<FactValue> {
    let trimmed = text.trim();
    Some(FactValue::Text(if trimmed.is_empty() || trimmed == "(null)" { "none" } else { trimmed }.to_owned()))
}

pub(super) fn integer(text: &str) -> Option<FactValue> {
    text.trim().parse().ok().map(FactValue::Integer)
}

/// A number in hexadecimal.
pub(super) fn hexadecimal(text: &str) -> Option<FactValue> {
    i64::from_str_radix(text.trim().trim_start_matches("0x"), 16).ok().map(FactValue::Integer)
}

/// On or off, in any of the kernel's ways to write it.
pub(super) fn flag(text: &str) -> Option<FactValue> {
    match text.trim() {
        "0" | "N" | "n" => Some(FactValue::Flag(false)),
        "Y" | "y" => Some(FactValue::Flag(true)),
        number => number.parse::<i64>().ok().map(|number| FactValue::Flag(number != 0)),
    }
}

pub(super) fn words(text: &str) -> Option<FactValue> {
    let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
    (!words.is_empty()).then_some(FactValue::List(words))
}

/// The word in brackets, by which the kernel marks the choice that holds: `always [madvise] never`.
pub(super) fn chosen(text: &str) -> Option<FactValue> {
    let (_, rest) = text.split_once('[')?;
    rest.split_once(']').map(|(word, _)| FactValue::Text(word.to_owned()))
}

/// `PRETTY_NAME` of os-release.
pub(super) fn os_name(os_release: &str) -> Option<FactValue> {
    let value = os_release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME="))?;
    text(value.trim().trim_matches(['"', '\'']))
}

/// A field of /proc/cpuinfo, of the first CPU that has it.
pub(super) fn cpuinfo(cpuinfo: &str, name: &str) -> Option<String> {
    let mut fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    fields.find(|(field, _)| field.trim() == name).map(|(_, value)| value.trim().to_owned())
}

/// Whether the CPU lists a flag. `None` where CPUs list none.
pub(super) fn cpu_flag(text: &str, name: &str) -> Option<FactValue> {
    cpuinfo(text, "flags").map(|flags| FactValue::Flag(flags.split_whitespace().any(|flag| flag == name)))
}

/// A line of /proc/meminfo, in bytes.
pub(super) fn meminfo_bytes(meminfo: &str, name: &str) -> Option<FactValue> {
    let kib = crate::usage::status_kib(meminfo, name)?;
    i64::try_from(kib * 1_024).ok().map(FactValue::Integer)
}

/// A line of /proc/meminfo that counts.
pub(super) fn meminfo_number(meminfo: &str, name: &str) -> Option<FactValue> {
    integer(crate::usage::status_value(meminfo, name)?)
}

/// The load over the last minute, as the kernel writes it.
pub(super) fn load(loadavg: &str) -> Option<FactValue> {
    text(loadavg.split_whitespace().next()?)
}

/// The whole seconds of /proc/uptime.
pub(super) fn uptime_seconds(uptime: &str) -> Option<FactValue> {
    integer(uptime.split_once('.')?.0)
}

/// The environment variables that steer a kernel-bypass library: name, and value without addresses and secrets.
pub(super) fn bypass_variables(environment: impl Iterator<Item = (String, String)>) -> Vec<(String, FactValue)> {
    const PREFIXES: [&str; 6] = ["EF_", "VMA_", "XLIO_", "ONLOAD", "EXASOCK_", "CI_"];
    let ours = environment.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
    ours.map(|(name, value)| {
        let told = super::redact::argument(&format!("{name}={value}"));
        let value = told.split_once('=').map_or("", |(_, value)| value).to_owned();
        (name, FactValue::Text(value))
    })
    .collect()
}

/// The files of kernel-bypass libraries among those that /proc/PID/maps lists, without their folders.
pub(super) fn bypass_libraries(maps: &str) -> FactValue {
    const PREFIXES: [&str; 7] = ["libonload", "libciul", "libvma", "libxlio", "libexasock", "libexanic", "librte_"];
    let files = maps.lines().filter_map(|line| line.rsplit_once('/')).map(|(_, file)| file);
    let ours: BTreeSet<&str> = files.filter(|file| PREFIXES.iter().any(|prefix| file.starts_with(prefix))).collect();
    FactValue::List(ours.into_iter().map(str::to_owned).collect())
}

/// The modules that filter or track packets, of those that /proc/modules lists.
pub(super) fn firewall_modules(modules: &str) -> FactValue {
    const PREFIXES: [&str; 8] =
        ["arp_tables", "br_netfilter", "ebtable", "ip6_tables", "ip6table_", "ip_tables", "iptable_", "nf_"];
    let names = modules.lines().filter_map(|line| line.split_whitespace().next());
    let mut ours: Vec<String> =
        names.filter(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix))).map(str::to_owned).collect();
    ours.sort_unstable();
    FactValue::List(ours)
}

/// Values of CPUs as one: the value where all agree, else each with its CPUs, as in `0-3: performance; 4-7: powersave`.
pub(super) fn of_cpus(values: &[(usize, String)]) -> Option<FactValue> {
    let (_, first) = values.first()?;
    if values.iter().all(|(_, value)| value == first) {
        return integer(first).or_else(|| Some(FactValue::Text(first.clone())));
    }
    let mut groups: Vec<(&str, Vec<Cpu>)> = Vec::new();
    for (cpu, value) in values {
        match groups.iter_mut().find(|(other, _)| other == value) {
            Some((_, cpus)) => cpus.push(Cpu::new(*cpu)),
            None => groups.push((value, vec![Cpu::new(*cpu)])),
        }
    }
    let groups = groups.into_iter().map(|(value, cpus)| format!("{}: {value}", CpuList::new(cpus)));
    Some(FactValue::Text(groups.collect::<Vec<_>>().join("; ")))
}

/// A word as the last part of a key: lower case, and nothing that separates.
pub(super) fn key_part(word: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c.to_ascii_lowercase() } else { '_' };
    word.trim().chars().map(plain).collect()
}

/// The arguments of a cmdline file of /proc, each ended by a zero byte.
pub(super) fn arguments(cmdline: &str) -> Option<FactValue> {
    let arguments = cmdline.split_terminator('\0').map(super::redact::argument);
    text(&arguments.collect::<Vec<_>>().join(" "))
}

/// The kernel's command line.
pub(super) fn kernel_command_line(cmdline: &str) -> Option<FactValue> {
    let arguments = cmdline.split_whitespace().map(super::redact::argument);
    text(&arguments.collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "what parsers that find something return")]
    fn words_of(value: &str) -> Option<FactValue> {
        Some(FactValue::Text(value.into()))
    }

    #[test]
    fn small_files_are_read() {
        assert_eq!(text(" tsc\n"), words_of("tsc"));
        assert_eq!(text("\n"), None);
        assert_eq!(cpu_list("2-3\n"), words_of("2-3"));
        assert_eq!(cpu_list("\n"), words_of("none"));
        assert_eq!(cpu_list("  (null)\n"), words_of("none"));
        assert_eq!(integer("212992\n"), Some(FactValue::Integer(212_992)));
        assert_eq!(integer("many"), None);
        assert_eq!(hexadecimal("12c\n"), Some(FactValue::Integer(300)));
        assert_eq!((flag("1\n"), flag("N\n")), (Some(FactValue::Flag(true)), Some(FactValue::Flag(false))));
        assert_eq!((flag("2"), flag("maybe")), (Some(FactValue::Flag(true)), None));
        assert_eq!(load("0.52 0.58 0.59 1/97 123\n"), words_of("0.52"));
        assert_eq!(uptime_seconds("350735.47 234388.90\n"), Some(FactValue::Integer(350_735)));
        assert_eq!(meminfo_number("HugePages_Total:       8\n", "HugePages_Total"), Some(FactValue::Integer(8)));
        assert_eq!(words("tsc hpet \n"), Some(FactValue::List(vec!["tsc".into(), "hpet".into()])));
        assert_eq!(chosen("always [madvise] never\n"), words_of("madvise"));
        assert_eq!(chosen("always"), None);
        assert_eq!(os_name("NAME=\"x\"\nPRETTY_NAME=\"Debian GNU/Linux 13\"\n"), words_of("Debian GNU/Linux 13"));
        assert_eq!(meminfo_bytes("MemTotal:       16 kB\n", "MemTotal"), Some(FactValue::Integer(16_384)));
    }

    #[test]
    fn the_cpu_tells_its_name_and_who_stands_below() {
        let info = "processor\t: 0\nmodel\t\t: 85\nmodel name\t: Some CPU @ 2.60GHz\nflags\t\t: fpu tsc hypervisor\n";
        assert_eq!(cpuinfo(info, "model name").as_deref(), Some("Some CPU @ 2.60GHz"));
        assert_eq!(cpuinfo(info, "microcode"), None);
        assert_eq!(cpu_flag(info, "hypervisor"), Some(FactValue::Flag(true)));
        assert_eq!(cpu_flag(info, "hyper"), Some(FactValue::Flag(false)));
        assert_eq!(cpu_flag("processor\t: 0\n", "hypervisor"), None);
    }

    #[test]
    fn bypass_variables_are_kept_and_no_others() {
        let all = [
            ("XLIO_X", "2"),
            ("HOME", "/root"),
            ("EF_POLL_USEC", "-1"),
            ("TICKPONG_KEY", "abc"),
            ("REEF_X", "1"),
            ("VMA_TOKEN", "abc"),
            ("EF_PEER", "192.0.2.9"),
        ];
        let all = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let told: Vec<String> = bypass_variables(all).iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(told, ["XLIO_X=2", "EF_POLL_USEC=-1", "VMA_TOKEN=<withheld>", "EF_PEER=<address>"]);
    }

    #[test]
    fn bypass_libraries_and_firewalls_are_known_by_name() {
        let maps = "7f00-7f01 r-xp 0 08:01 1  /usr/lib/libonload.so\n7f02-7f03 r--p 0 08:01 1  /usr/lib/libonload.so\n\
                    7f04-7f05 r-xp 0 08:01 2  /usr/lib/libc.so.6\n7f06-7f07 rw-p 0 00:00 0  [stack]\n";
        assert_eq!(bypass_libraries(maps), FactValue::List(vec!["libonload.so".into()]));
        let modules = "veth 1 0 - Live 0x0\nnf_tables 1 0 - Live 0x0\niptable_filter 1 0 - Live 0x0\n";
        assert_eq!(firewall_modules(modules), FactValue::List(vec!["iptable_filter".into(), "nf_tables".into()]));
    }

    #[test]
    fn cpus_that_agree_are_one_value() {
        let of = |values: &[&str]| of_cpus(&values.iter().map(|v| (*v).to_owned()).enumerate().collect::<Vec<_>>());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["800", "800"]), Some(FactValue::Integer(800)));
        assert_eq!(of(&["performance"]), words_of("performance"));
        assert_eq!(of(&["a", "b", "a", "a"]), words_of("0,2-3: a; 1: b"));
    }

    #[test]
    fn keys_hold_nothing_that_separates() {
        assert_eq!(key_part(" Link Down on.Close "), "link_down_on_close");
        assert_eq!(key_part("rx-gro-hw"), "rx-gro-hw");
    }

    #[test]
    fn command_lines_name_no_other_host() {
        assert_eq!(arguments("tickpong\0ping\x00192.0.2.7:7410\0"), words_of("tickpong ping <address>:7410"));
        let line = "root=UUID=0a0a0a0a-1b1b-2c2c-3d3d-4e4e4e4e4e4e isolcpus=2-3 quiet\n";
        assert_eq!(kernel_command_line(line), words_of("root=UUID=<uuid> isolcpus=2-3 quiet"));
    }
}
