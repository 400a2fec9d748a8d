//! What the network namespace counts of its UDP.

use std::fs;

/// UDP datagrams of this thread's network namespace, IPv4 and IPv6 together, since it began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UdpCounters {
    /// Delivered to sockets.
    pub in_datagrams: u64,
    /// Arrived for a port where nobody listened.
    pub no_ports: u64,
    /// Arrived and not delivered, for another reason: those of `receive_buffer_errors`, and wrong checksums.
    pub in_errors: u64,
    /// Sent.
    pub out_datagrams: u64,
    /// Dropped at a socket's full receive buffer.
    pub receive_buffer_errors: u64,
    /// Not sent for want of buffer space.
    pub send_buffer_errors: u64,
}

impl UdpCounters {
    /// What was counted after `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            in_datagrams: self.in_datagrams.saturating_sub(earlier.in_datagrams),
            no_ports: self.no_ports.saturating_sub(earlier.no_ports),
            in_errors: self.in_errors.saturating_sub(earlier.in_errors),
            out_datagrams: self.out_datagrams.saturating_sub(earlier.out_datagrams),
            receive_buffer_errors: self.receive_buffer_errors.saturating_sub(earlier.receive_buffer_errors),
            send_buffer_errors: self.send_buffer_errors.saturating_sub(earlier.send_buffer_errors),
        }
    }

    fn add(&mut self, name: &str, value: &str) {
        let field = match name {
            "InDatagrams" => &mut self.in_datagrams,
            "NoPorts" => &mut self.no_ports,
            "InErrors" => &mut self.in_errors,
            "OutDatagrams" => &mut self.out_datagrams,
            "RcvbufErrors" => &mut self.receive_buffer_errors,
            "SndbufErrors" => &mut self.send_buffer_errors,
            _ => return,
        };
        *field += value.parse::<u64>().unwrap_or_default();
    }
}

/// Reads the counters; `None` where the kernel does not show them.
///
/// A stack that bypasses the kernel does not count here.
pub fn udp_counters() -> Option<UdpCounters> {
    let ipv4 = read("snmp")?;
    // Not there where IPv6 is switched off.
    let ipv6 = read("snmp6").unwrap_or_default();
    parse(&ipv4, &ipv6)
}

/// This thread's namespace may not be its process's.
fn read(name: &str) -> Option<String> {
    let thread = fs::read_to_string(format!("/proc/thread-self/net/{name}"));
    thread.or_else(|_| fs::read_to_string(format!("/proc/net/{name}"))).ok()
}

/// The first text holds a line of names and one of numbers, both `Udp:`; the second a `Udp6Name number` a line.
fn parse(ipv4: &str, ipv6: &str) -> Option<UdpCounters> {
    let mut lines = ipv4.lines().filter_map(|line| line.strip_prefix("Udp:"));
    let (names, values) = (lines.next()?, lines.next()?);
    let mut counters = UdpCounters::default();
    for (name, value) in names.split_whitespace().zip(values.split_whitespace()) {
        counters.add(name, value);
    }
    for (name, value) in ipv6.lines().filter_map(|line| line.strip_prefix("Udp6")?.split_once(char::is_whitespace)) {
        counters.add(name, value.trim());
    }
    Some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNMP: &str = "Tcp: InSegs\nTcp: 5\n\
        Udp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors SndbufErrors InCsumErrors\n\
        Udp: 10 2 3 40 5 6 7\nUdpLite: InDatagrams\nUdpLite: 99\n";
    const SNMP6: &str =
        "Ip6InReceives \t7\nUdp6InDatagrams                 \t100\nUdp6RcvbufErrors\t1\nUdpLite6InDatagrams\t9\n";

    #[test]
    fn both_families_are_counted_together() {
        let want = UdpCounters {
            in_datagrams: 110,
            no_ports: 2,
            in_errors: 3,
            out_datagrams: 40,
            receive_buffer_errors: 6,
            send_buffer_errors: 6,
        };
        assert_eq!(parse(SNMP, SNMP6), Some(want));
        assert_eq!(parse("Tcp: InSegs\nTcp: 5\n", SNMP6), None);
        let only_ipv4 = parse(SNMP, "").unwrap();
        assert_eq!(want.since(&only_ipv4).in_datagrams, 100);
        assert_eq!(want.since(&only_ipv4).out_datagrams, 0);
    }

    #[test]
    fn this_host_shows_its_counters() {
        assert!(udp_counters().is_some());
    }
}
