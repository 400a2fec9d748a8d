//! What the engine itself costs a message, and what a loop costs that was written by hand for the same work.
//!
//! There is no system call: the platform lives in memory, and its clock is a counter that costs an addition to read. A real reading of a
//! clock, and the calls that send and receive, come on top. What is timed is all else: schedule, encode, parse, filler, window, five
//! histograms, and the rolling of intervals, with round trips from 3 µs to 3 ms.

mod by_hand;
mod memory;

use std::hint::black_box;
use std::time::Duration;

use criterion::{BatchSize, Bencher, Criterion, Throughput, criterion_group, criterion_main};
use tickpong_probe::{Exchange, Receiver, Schedule, SeqWindow, Transmitter, Unobserved, ping};
use tickpong_record::capture::Measured;
use tickpong_record::{Api, Pacing, Plan, ScheduleKind};
use tickpong_units::{Instant, Nanos, PayloadLen, Rate, Seed, Seq};
use tickpong_wire::{Datagram, Kind, Token, datagram};

use crate::by_hand::ByHand;
use crate::memory::{Memory, START, round_trips};

/// Twenty intervals of them.
const MESSAGES: u64 = 200_000;
const TOKEN: Token = Token::new(*b"a token!");
/// Of one part, in a row.
const REPEATED: u64 = 4_096;

fn whole(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a message");
    group.throughput(Throughput::Elements(MESSAGES));
    group.bench_function("engine", |bencher| play::<1>(bencher, ScheduleKind::Fixed));
    group.bench_function("by hand", |bencher| {
        let set_up = || (Memory::<1>::new(TOKEN), ByHand::new(*b"a token!", MESSAGES));
        bencher.iter_batched_ref(
            set_up,
            |(memory, by_hand)| {
                by_hand.play(memory);
                assert_eq!(by_hand.answered(), MESSAGES);
            },
            BatchSize::PerIteration,
        );
    });
    group.bench_function("engine, Poisson", |bencher| play::<1>(bencher, ScheduleKind::Poisson));
    group.bench_function("engine, 32 in a call", |bencher| play::<32>(bencher, ScheduleKind::Burst(32)));
    group.finish();
}

/// Plays 20 s at 10 kHz through the engine.
fn play<const MOST: usize>(bencher: &mut Bencher<'_>, schedule: ScheduleKind) {
    let (plan, start) = (plan(schedule), Instant::from_clock(START));
    let set_up = || {
        let transmitter = Transmitter::new(&plan, None, TOKEN, start, recycle());
        let receiver = Receiver::new(&plan, None, TOKEN, start, recycle(), Unobserved);
        (Memory::<MOST>::new(TOKEN), transmitter, receiver)
    };
    bencher.iter_batched_ref(
        set_up,
        |(memory, transmitter, receiver)| {
            ping(memory, transmitter, receiver);
            assert_eq!(receiver.answered(), transmitter.sent());
            assert!(
                transmitter.sent().abs_diff(MESSAGES) < MESSAGES / 50,
                "chance moves a Poisson run's count a little"
            );
        },
        BatchSize::PerIteration,
    );
}

fn parts(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a part");
    group.throughput(Throughput::Elements(REPEATED));
    let mut payload = [0; 264];
    datagram::fill(&mut payload, TOKEN);
    group.bench_function("encode", |bencher| {
        bencher.iter(|| (0..REPEATED).for_each(|seq| header(seq).emit(black_box(&mut payload))));
    });
    header(0).emit(&mut payload);
    group.bench_function("parse", |bencher| {
        bencher.iter(|| (0..REPEATED).filter(|_| black_box(Datagram::parse(black_box(&payload))).is_ok()).count());
    });
    group.bench_function("mark, in order", |bencher| {
        let (mut window, mut next) = (SeqWindow::new(1 << 16), 0);
        bencher.iter(|| {
            (next..next + REPEATED).for_each(|seq| _ = black_box(window.mark(Seq::new(seq))));
            next += REPEATED;
        });
    });
    group.bench_function("record", |bencher| {
        let (mut measured, values) = (Measured::default(), round_trips());
        bencher.iter(|| values.iter().for_each(|&ns| measured.record(Nanos::new(black_box(ns)), Nanos::ZERO)));
    });
    for (name, kind) in [("schedule, fixed", ScheduleKind::Fixed), ("schedule, Poisson", ScheduleKind::Poisson)] {
        let mut schedule = Schedule::new(&plan(kind), None);
        group.bench_function(name, |bencher| {
            bencher.iter(|| (0..REPEATED).for_each(|_| _ = black_box(schedule.next_due())));
        });
    }
    group.finish();
}

fn plan(schedule: ScheduleKind) -> Plan {
    let second = Nanos::from_secs(1);
    Plan {
        offered_rate_hz: Rate::new(10_000),
        payload_bytes: PayloadLen::STANDARD,
        duration_ns: Nanos::from_secs(19),
        warm_up_ns: second,
        interval_ns: second,
        deadline_ns: second,
        pacing: Pacing::Open,
        schedule,
        seed: Seed::new(1),
        api_pinger: Api::UdpSpin,
        api_reflector: Api::UdpSpin,
        tx_cpu: None,
        rx_cpu: None,
    }
}

fn header(seq: u64) -> Datagram {
    Datagram {
        kind: Kind::Ping,
        token: TOKEN,
        seq: Seq::new(seq),
        intended: Instant::from_clock(seq),
        sent: Instant::from_clock(seq + 1),
        arrival: Instant::from_clock(0),
        departure: Instant::from_clock(0),
    }
}

/// Gives back the interval that it was given before.
struct Recycle<T>(Box<T>);

fn recycle<T: Default>() -> Recycle<T> {
    Recycle(Box::default())
}

impl<T> Exchange<T> for Recycle<T> {
    fn exchange(&mut self, buffer: &mut Box<T>) {
        std::mem::swap(buffer, &mut self.0);
    }

    fn pass(&mut self, _: u64) {}
}

criterion_group! {
    name = engine;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(500))
        .measurement_time(Duration::from_secs(2))
        .without_plots();
    targets = whole, parts
}
criterion_main!(engine);
