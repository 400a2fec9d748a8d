//! From the host's words to facts; nothing here reads a file.

use super::FactValue;

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

/// Whether the CPU says that a hypervisor stands below it. `None` where CPUs do not list flags.
pub(super) fn hypervisor(text: &str) -> Option<FactValue> {
    cpuinfo(text, "flags").map(|flags| FactValue::Flag(flags.split_whitespace().any(|flag| flag == "hypervisor")))
}

/// A line of /proc/meminfo, in bytes.
pub(super) fn meminfo_bytes(meminfo: &str, name: &str) -> Option<FactValue> {
    let kib = crate::usage::status_kib(meminfo, name)?;
    i64::try_from(kib * 1_024).ok().map(FactValue::Integer)
}

/// The environment variables that choose or steer a kernel-bypass library, sorted, as `NAME=value`.
pub(super) fn bypass(environment: impl Iterator<Item = (String, String)>) -> FactValue {
    const PREFIXES: [&str; 5] = ["EF_", "VMA_", "XLIO_", "ONLOAD", "EXASOCK_"];
    let ours = environment.filter(|(name, _)| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
    let mut ours: Vec<String> = ours.map(|(name, value)| super::redact::argument(&format!("{name}={value}"))).collect();
    ours.sort_unstable();
    FactValue::List(ours)
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
        assert_eq!(hypervisor(info), Some(FactValue::Flag(true)));
        assert_eq!(hypervisor(&info.replace("hypervisor", "avx")), Some(FactValue::Flag(false)));
        assert_eq!(hypervisor("processor\t: 0\n"), None);
    }

    #[test]
    fn bypass_variables_are_kept_and_no_others() {
        let all =
            [("XLIO_X", "2"), ("HOME", "/root"), ("EF_POLL_USEC", "-1"), ("TICKPONG_KEY", "secret"), ("REEF_X", "1")];
        let all = all.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(bypass(all), FactValue::List(vec!["EF_POLL_USEC=-1".into(), "XLIO_X=2".into()]));
    }

    #[test]
    fn command_lines_name_no_other_host() {
        assert_eq!(arguments("tickpong\0ping\x00192.0.2.7:7410\0"), words_of("tickpong ping <address>:7410"));
        let line = "root=UUID=0a0a0a0a-1b1b-2c2c-3d3d-4e4e4e4e4e4e isolcpus=2-3 quiet\n";
        assert_eq!(kernel_command_line(line), words_of("root=UUID=<uuid> isolcpus=2-3 quiet"));
    }
}
