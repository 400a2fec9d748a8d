//! What is disclosed of this host, in the words of `record`.

use std::fs::File;
use std::io::Read;

use sha2::{Digest, Sha256};
use tickpong_hostio::clock::{ClockCheck, HostClock};
use tickpong_hostio::facts::{self, FactValue as Fact};
use tickpong_hostio::socket::{BufferGrant, UdpCounters as Counters, UdpSocket};
use tickpong_hostio::usage::MemoryUsage;
use tickpong_record::{ClockFacts, FactValue, HOST_FORMAT, HostFacts, Memory, Sockets, ThreadCpu, UdpCounters};
use tickpong_units::Nanos;

use crate::VERSION;
use crate::hot::{Warnings, warn};
use crate::key::Role;

/// The disclosure of this host, in its role, with the interface that the data uses.
pub(crate) fn disclose(role: Role, interface: Option<&str>) -> HostFacts {
    let read = facts::HostFacts::read(interface);
    let value = |fact: Fact| match fact {
        Fact::Flag(flag) => FactValue::Flag(flag),
        Fact::Integer(integer) => FactValue::Integer(integer),
        Fact::List(list) => FactValue::List(list),
        Fact::Text(text) => FactValue::Text(text),
    };
    HostFacts {
        format: HOST_FORMAT,
        role: match role {
            Role::Pinger => "pinger".to_owned(),
            Role::Reflector => "reflector".to_owned(),
        },
        boot_id: facts::boot_id().ok(),
        tickpong_version: VERSION.to_owned(),
        binary_sha256: binary_sha256(),
        facts: read.facts.into_iter().map(|(key, fact)| (key, value(fact))).collect(),
        absent: read.absent,
    }
}

/// The disclosure of this host where no run is made, with what `interface` is and how it is set.
pub fn disclosure(interface: Option<&str>) -> HostFacts {
    HostFacts { role: "alone".to_owned(), ..disclose(Role::Pinger, interface) }
}

/// SHA-256 of the running program: two runs of one commit need not be of one build.
fn binary_sha256() -> Option<String> {
    let mut program = File::open(facts::binary_path().ok()?).ok()?;
    let (mut sha, mut chunk) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match program.read(&mut chunk).ok()? {
            0 => break,
            n => sha.update(&chunk[..n]),
        }
    }
    Some(tickpong_record::hex(&sha.finalize()))
}

/// A clock at the end of a run.
pub(crate) fn clock_facts(clock: &HostClock, check: &ClockCheck) -> ClockFacts {
    let facts = clock.facts();
    ClockFacts {
        kind: facts.kind.name().to_owned(),
        frequency_hz: facts.frequency_hz,
        resolution_ns: facts.resolution.map_or(0, Nanos::get),
        read_cost_ns: facts.read_cost_ns,
        drift_ppm: check.drift_ppm,
        counter_refused: facts.refused.as_ref().map(ToString::to_string),
    }
}

/// A data socket at the end of a run.
pub(crate) fn socket_facts(socket: &UdpSocket, drops: Option<u64>, host_udp: Option<UdpCounters>) -> Sockets {
    let buffers = socket.buffers();
    let granted = |grant: &BufferGrant| grant.granted_bytes.unwrap_or_default() as u64;
    Sockets {
        receive_buffer_asked: buffers.receive.asked_bytes as u64,
        receive_buffer_granted: granted(&buffers.receive),
        send_buffer_asked: buffers.send.asked_bytes as u64,
        send_buffer_granted: granted(&buffers.send),
        forced: buffers.receive.forced && buffers.send.forced,
        drops,
        path_mtu_bytes: socket.path_mtu().map(u64::from),
        host_udp,
        reflector: None,
    }
}

/// Warns of what a data socket did not get, and of what to do about it.
pub(crate) fn warn_of_socket(socket: &UdpSocket, warnings: &Warnings) {
    for warning in socket.warnings() {
        warn(warnings, format!("socket option {}: {}", warning.option, warning.source));
    }
    let buffers = socket.buffers();
    for (way, limit, grant) in [("receive", "rmem_max", buffers.receive), ("send", "wmem_max", buffers.send)] {
        let BufferGrant { asked_bytes: asked, granted_bytes, .. } = grant;
        if let Some(granted) = granted_bytes.filter(|granted| *granted < asked) {
            warn(
                warnings,
                format!(
                    "{way} buffer: {granted} of {asked} bytes; want sysctl net.core.{limit} raised, or CAP_NET_ADMIN"
                ),
            );
        }
    }
}

/// Warns of what the network sent back in a data socket's name.
pub(crate) fn warn_of_errors(socket: &UdpSocket, warnings: &Warnings) {
    let errors = socket.pending_errors();
    if errors > 0 {
        warn(
            warnings,
            format!(
                "{errors} ICMP errors came back for what was sent: something on the way, or the other end, refused it"
            ),
        );
    }
}

/// The host's UDP counters over a run.
pub(crate) fn udp_difference(before: Option<Counters>, now: Option<Counters>) -> Option<UdpCounters> {
    let over = now?.since(&before?);
    Some(UdpCounters {
        in_datagrams: over.in_datagrams,
        no_ports: over.no_ports,
        in_errors: over.in_errors,
        out_datagrams: over.out_datagrams,
        receive_buffer_errors: over.receive_buffer_errors,
        send_buffer_errors: over.send_buffer_errors,
    })
}

/// The memory of this process at the end of the run, with the page faults of its hot threads.
pub(crate) fn memory(at_end: &MemoryUsage, threads: &[ThreadCpu]) -> Memory {
    Memory {
        resident_bytes: at_end.resident_bytes,
        peak_bytes: at_end.peak_bytes,
        locked_bytes: at_end.locked_bytes,
        minor_faults: threads.iter().map(|thread| thread.minor_faults).sum(),
        major_faults: threads.iter().map(|thread| thread.major_faults).sum(),
    }
}

/// The hot threads of one end together.
pub(crate) fn cpu(threads: Vec<ThreadCpu>, messages: u64, busy_share: f64) -> tickpong_record::Cpu {
    let sum = |field: fn(&ThreadCpu) -> u64| threads.iter().map(field).sum::<u64>();
    let (user_ns, system_ns) = (sum(|thread| thread.user_ns), sum(|thread| thread.system_ns));
    #[expect(clippy::cast_precision_loss, reason = "a quotient for people")]
    let ns_per_message = (messages > 0).then(|| (user_ns + system_ns) as f64 / messages as f64);
    tickpong_record::Cpu {
        user_ns,
        system_ns,
        ns_per_message,
        busy_share: Some(busy_share),
        voluntary_switches: sum(|thread| thread.voluntary_switches),
        involuntary_switches: sum(|thread| thread.involuntary_switches),
        threads,
    }
}
