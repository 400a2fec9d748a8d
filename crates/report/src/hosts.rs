//! What both ends spent, and what they measured with.

use tickpong_record::{Api, ClockFacts, Cpu, Ends, InForce, Memory, Run, Sockets, UdpCounters};
use tickpong_units::Nanos;

use crate::clean::{clean, cut};
use crate::number::{ABSENT, bytes, count, decimal};
use crate::page::Page;

/// A line of the table: the pinger's value and the reflector's.
type Row = (&'static str, Ends<String>);

/// CPU, memory, sockets and clocks, the pinger beside the reflector.
pub(crate) fn ends(page: &mut Page, run: &Run) {
    let cpu = Ends { pinger: run.cpu.pinger.as_ref(), reflector: run.cpu.reflector.as_ref() };
    let memory = Ends { pinger: run.memory.pinger.as_ref(), reflector: run.memory.reflector.as_ref() };
    let sockets = Ends { pinger: Some(&run.sockets), reflector: run.sockets.reflector.as_deref() };
    let clock = Ends { pinger: Some(&run.clock), reflector: run.reflector_clock.as_ref() };
    let in_force = Ends { pinger: run.in_force.pinger.as_ref(), reflector: run.in_force.reflector.as_ref() };
    let groups = [cpu_rows(cpu), memory_rows(memory), in_force_rows(in_force), socket_rows(sockets), clock_rows(clock)];
    page.blank();
    table(page, &groups.concat());
    notes(page, run);
}

fn cpu_rows(cpu: Ends<&Cpu>) -> Vec<Row> {
    let per_message = |cpu: &Cpu| cpu.ns_per_message.map(|ns| format!("{} ns", decimal(ns, 1)));
    let busy = |cpu: &Cpu| cpu.busy_share.map(|share| format!("{} %", decimal(share * 100.0, 2)));
    let switches = |cpu: &Cpu| Some(pair(cpu.voluntary_switches, cpu.involuntary_switches));
    vec![
        ("CPU, user", each(cpu, |cpu| Some(Nanos::new(cpu.user_ns).to_string()))),
        ("CPU, system", each(cpu, |cpu| Some(Nanos::new(cpu.system_ns).to_string()))),
        ("CPU a message", each(cpu, per_message)),
        ("turns that did work", each(cpu, busy)),
        ("switches, voluntary + not", each(cpu, switches)),
    ]
}

fn memory_rows(memory: Ends<&Memory>) -> Vec<Row> {
    vec![
        ("page faults, minor + major", each(memory, |memory| Some(pair(memory.minor_faults, memory.major_faults)))),
        ("memory, resident", each(memory, |memory| Some(bytes(memory.resident_bytes)))),
        ("memory, peak", each(memory, |memory| Some(bytes(memory.peak_bytes)))),
        ("memory, locked", each(memory, |memory| Some(bytes(memory.locked_bytes)))),
    ]
}

fn in_force_rows(in_force: Ends<&InForce>) -> Vec<Row> {
    let yes_no = |yes: bool| Some(if yes { "yes" } else { "no" }.to_owned());
    let scheduling = |in_force: &InForce| {
        let threads: Vec<String> = in_force.threads.iter().map(|thread| clean(&thread.scheduling)).collect();
        Some(threads.join(", "))
    };
    let polls = |in_force: &InForce| in_force.busy_poll_us.map(|us| format!("{} µs", count(us)));
    vec![
        ("hot threads scheduled", each(in_force, scheduling)),
        ("memory all locked", each(in_force, |in_force| yes_no(in_force.memory_locked))),
        ("idle CPUs kept awake", each(in_force, |in_force| yes_no(in_force.dma_latency_held))),
        ("busy poll of the device", each(in_force, polls)),
    ]
}

fn socket_rows(sockets: Ends<&Sockets>) -> Vec<Row> {
    let buffer = |asked: u64, granted: u64| Some(format!("{} → {}", bytes(asked), bytes(granted)));
    let forced = |socket: &Sockets| Some(if socket.forced { "yes, by right" } else { "no" }.to_owned());
    let of_host = |pick: fn(&UdpCounters) -> (u64, u64)| {
        move |socket: &Sockets| socket.host_udp.as_ref().map(pick).map(|(one, other)| pair(one, other))
    };
    let mut rows: Vec<Row> = vec![
        ("receive buffer, asked → got", each(sockets, |s| buffer(s.receive_buffer_asked, s.receive_buffer_granted))),
        ("send buffer, asked → got", each(sockets, |s| buffer(s.send_buffer_asked, s.send_buffer_granted))),
        ("buffers past system's limit", each(sockets, forced)),
        ("dropped by the socket", each(sockets, |socket| socket.drops.map(count))),
        ("path MTU", each(sockets, |socket| socket.path_mtu_bytes.map(|mtu| format!("{} bytes", count(mtu))))),
    ];
    let udp: [Row; 3] = [
        ("host's UDP, in + out", each(sockets, of_host(|udp| (udp.in_datagrams, udp.out_datagrams)))),
        ("  no port + in errors", each(sockets, of_host(|udp| (udp.no_ports, udp.in_errors)))),
        ("  buffer full, in + out", each(sockets, of_host(|udp| (udp.receive_buffer_errors, udp.send_buffer_errors)))),
    ];
    let known = [sockets.pinger, sockets.reflector].into_iter().flatten().any(|socket| socket.host_udp.is_some());
    rows.extend(udp.into_iter().filter(|_| known));
    rows
}

#[expect(clippy::cast_precision_loss, reason = "a frequency to the kilohertz")]
fn clock_rows(clock: Ends<&ClockFacts>) -> Vec<Row> {
    let named = |text: &str| (!text.is_empty()).then(|| clean(text));
    let frequency = |clock: &ClockFacts| clock.frequency_hz.map(|hz| format!("{} MHz", decimal(hz as f64 / 1e6, 3)));
    let drift = |clock: &ClockFacts| {
        let sign = if clock.drift_ppm > 0.0 { "+" } else { "" };
        Some(format!("{sign}{} ppm", decimal(clock.drift_ppm, 2)))
    };
    vec![
        ("clock", each(clock, |clock| named(&clock.kind))),
        ("  frequency", each(clock, frequency)),
        ("  resolution", each(clock, |clock| Some(format!("{} ns", count(clock.resolution_ns))))),
        ("  cost of a reading", each(clock, |clock| Some(format!("{} ns", decimal(clock.read_cost_ns, 1))))),
        ("  drift", each(clock, drift)),
    ]
}

fn table(page: &mut Page, rows: &[Row]) {
    let label = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
    let room = page.width.saturating_sub(label + 4) / 2;
    let text = |value: &Option<String>| value.as_deref().map_or_else(|| ABSENT.to_owned(), |text| cut(text, room));
    let wide = |value: &Option<String>| text(value).chars().count();
    let pinger = rows.iter().map(|(_, ends)| wide(&ends.pinger)).max().unwrap_or(0).max("pinger".len());
    let reflector = rows.iter().map(|(_, ends)| wide(&ends.reflector)).max().unwrap_or(0).max("reflector".len());
    let mut line = |name: &str, left: &str, right: &str| {
        page.line(&format!("{name:<label$}  {left:>pinger$}  {right:>reflector$}"));
    };
    line("", "pinger", "reflector");
    for (name, ends) in rows {
        line(name, &text(&ends.pinger), &text(&ends.reflector));
    }
}

fn notes(page: &mut Page, run: &Run) {
    let clocks = [("pinger", Some(&run.clock)), ("reflector", run.reflector_clock.as_ref())];
    for (end, why) in clocks.into_iter().filter_map(|(end, clock)| Some((end, clock?.counter_refused.as_deref()?))) {
        page.blank();
        page.hang("", 0, &format!("The {end}'s CPU counter was not taken for a clock: {}", clean(why)));
    }
    let spins = |api: Api| matches!(api, Api::UdpSpin | Api::UdpBusyPoll);
    let of_spinning = [(run.plan.api_pinger, &run.cpu.pinger), (run.plan.api_reflector, &run.cpu.reflector)];
    if of_spinning
        .into_iter()
        .any(|(api, cpu)| spins(api) && cpu.as_ref().is_some_and(|cpu| cpu.ns_per_message.is_some()))
    {
        page.blank();
        page.hang(
            "",
            0,
            "A thread that spins takes its whole CPU, so CPU a message is one over the rate: see its turns.",
        );
    }
}

fn each<T: Copy>(ends: Ends<T>, text: impl Fn(T) -> Option<String>) -> Ends<String> {
    Ends { pinger: ends.pinger.and_then(&text), reflector: ends.reflector.and_then(&text) }
}

fn pair(one: u64, other: u64) -> String {
    format!("{} + {}", count(one), count(other))
}
