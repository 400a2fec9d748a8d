//! The run itself: hot threads that play, a collector that adds up, a watch over the other end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, Scope};

use tickpong_hostio::clock::{HostClock, monotonic_ns, sleep};
use tickpong_hostio::socket::UdpSocket;
use tickpong_hostio::thread::Cpu;
use tickpong_probe::{Handover, Receiver, Transmitter, open_intervals, ping, receive_only, send_only};
use tickpong_record::capture::{ReceiveInterval, ReceiveTotals, SendInterval, SendTotals, Turns};
use tickpong_record::{Plan, RecordError, Resources, RunWriter, Trace};
use tickpong_units::{Instant, Nanos, PingerClock};
use tickpong_wire::Token;

use crate::Progress;
use crate::collect::{Collected, Collector, write_observations};
use crate::connection::Connection;
use crate::hot::{HotThread, Warnings, become_helper};
use crate::meter::{Entry, Meter, Metering};
use crate::platform::{HostPlatform, SentCount};
use crate::rings::{Hand, Overflow, Raw, rings};
use crate::watch::{Watched, watch};

/// From the decision to start to the first message: the engine's memory is taken and brought in, and threads come up.
pub(crate) const LEAD: Nanos = Nanos::from_millis(60);
/// A hot thread wakes so long before the start, and spins until it begins to play …
const AWAKE: Nanos = Nanos::from_millis(5);
/// … so long before the first message: its account is made in between.
const READY: Nanos = Nanos::from_micros(50);
/// Threads of ours need no more; with locked memory, all of it is resident.
const STACK: usize = 256 << 10;
/// Compressing histograms takes more where it is not optimised.
const COLLECTOR_STACK: usize = 1 << 20;

/// What a run is played with.
pub(crate) struct Stage<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) trace: Option<&'a Trace>,
    pub(crate) token: Token,
    pub(crate) socket: &'a UdpSocket,
    pub(crate) clock: &'a HostClock,
    pub(crate) connection: &'a mut Connection,
    /// One for a thread that sends and receives; two for one each.
    pub(crate) cpus: &'a [Cpu],
    pub(crate) helpers: &'a [Cpu],
    pub(crate) fifo: Option<u8>,
    pub(crate) warnings: &'a Warnings,
}

/// What was played.
pub(crate) struct Played {
    pub(crate) sent: SendTotals,
    pub(crate) received: ReceiveTotals,
    pub(crate) collected: Collected,
    pub(crate) turns: Turns,
    /// What the hot threads used, and under what they ran.
    pub(crate) metering: Metering,
    pub(crate) overflowed: u64,
    pub(crate) watched: Watched,
    /// How writing raw observations went.
    pub(crate) observations: Result<(), RecordError>,
}

type Sending = Transmitter<Hand<SendInterval>>;
type Receiving = Receiver<Hand<ReceiveInterval>, Raw>;

/// Plays the plan. Ends by the plan, by `stop`, or with the loss of the other end.
pub(crate) fn play(
    stage: &mut Stage<'_>,
    mut writer: Option<RunWriter>,
    stop: &AtomicBool,
    progress: &mut (dyn FnMut(Progress) + Send),
) -> Played {
    let shared = Shared::default();
    let Shared { end, sent_count, overflow, meter } = &shared;
    let (hand_sent, sent) = rings(overflow, open_intervals(stage.plan));
    let (hand_received, received) = rings(overflow, open_intervals(stage.plan));
    let file = writer.as_mut().and_then(RunWriter::take_observations);
    let (raw, raw_ring) = match file.map(|file| (Raw::wanted(overflow), file)) {
        Some(((raw, ring), file)) => (raw, Some((ring, file))),
        None => (Raw::unwanted(overflow), None),
    };
    let start = stage.clock.now::<PingerClock>() + LEAD;
    let start_ns = monotonic_ns() + LEAD.get();
    let sending = Transmitter::new(stage.plan, stage.trace, stage.token, start, hand_sent);
    let receiving = Receiver::new(stage.plan, stage.trace, stage.token, start, hand_received, raw);

    let (hot_done, all_done) = (AtomicBool::new(false), AtomicBool::new(false));
    let noted: Mutex<BTreeMap<u64, Resources>> = Mutex::default();
    let Stage { plan, clock, helpers, socket, fifo, warnings, .. } = *stage;
    let hot = Hot { plan, socket, clock, fifo, warnings, start, shared: &shared };
    let (cpus, connection) = (stage.cpus, &mut *stage.connection);
    std::thread::scope(|scope| {
        let players = match *cpus {
            [tx, rx] => hot.two(scope, tx, rx, sending, receiving),
            _ => vec![hot.one(scope, cpus.first().copied(), sending, receiving)],
        };
        let watching = spawn(scope, "watch", STACK, || {
            become_helper(helpers);
            watch(connection, stop, end, &all_done, &noted)
        });
        let collector =
            Collector { plan, sent, received, meter, sent_count, start_ns, writer, reflector: &noted, progress };
        let collecting = spawn(scope, "collector", COLLECTOR_STACK, || {
            become_helper(helpers);
            collector.run(&hot_done)
        });
        let observing = raw_ring.map(|(ring, file)| {
            spawn(scope, "observations", STACK, || {
                become_helper(helpers);
                write_observations(ring, file, &hot_done)
            })
        });
        let mut played = Part::default();
        for player in players {
            played.merge(join(player));
        }
        hot_done.store(true, Ordering::Release);
        collecting.thread().unpark();
        let (collected, observations) = (join(collecting), observing.map_or(Ok(()), join));
        all_done.store(true, Ordering::Release);
        Played {
            sent: played.sent.unwrap_or_default(),
            received: played.received.unwrap_or_default(),
            collected,
            turns: played.turns,
            metering: meter.finish(),
            overflowed: overflow.count(),
            watched: join(watching),
            observations,
        }
    })
}

/// What one hot thread did.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    sent: Option<SendTotals>,
    received: Option<ReceiveTotals>,
    turns: Turns,
}

impl Part {
    fn merge(&mut self, other: Self) {
        self.sent = self.sent.or(other.sent);
        self.received = self.received.or(other.received);
        self.turns.all += other.turns.all;
        self.turns.busy += other.turns.busy;
    }
}

/// What hot threads share with those around them.
#[derive(Debug, Default)]
struct Shared {
    /// Set to cut the plan.
    end: AtomicBool,
    sent_count: SentCount,
    overflow: Overflow,
    meter: Meter,
}

/// What hot threads are started with.
#[derive(Clone, Copy)]
struct Hot<'a> {
    plan: &'a Plan,
    socket: &'a UdpSocket,
    clock: &'a HostClock,
    fifo: Option<u8>,
    warnings: &'a Warnings,
    start: Instant<PingerClock>,
    shared: &'a Shared,
}

type Player<'scope> = std::thread::ScopedJoinHandle<'scope, Part>;

impl<'a> Hot<'a> {
    /// One thread that sends and receives in turn.
    fn one<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
        cpu: Option<Cpu>,
        mut sending: Sending,
        mut receiving: Receiving,
    ) -> Player<'scope> {
        let entry = self.shared.meter.entry("pinger");
        spawn(scope, "pinger", STACK, move || {
            let mut platform = self.platform().counting(&self.shared.sent_count);
            let thread = HotThread { name: "pinger", cpu, fifo: self.fifo };
            let turns = self.play(thread, entry, || ping(&mut platform, &mut sending, &mut receiving));
            Part { sent: Some(sending.finish()), received: Some(receiving.finish()), turns }
        })
    }

    /// One that sends, one that receives.
    fn two<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
        tx: Cpu,
        rx: Cpu,
        mut sending: Sending,
        mut receiving: Receiving,
    ) -> Vec<Player<'scope>> {
        let handover = std::sync::Arc::new(Handover::new());
        let for_tx = std::sync::Arc::clone(&handover);
        let (of_tx, of_rx) = (self.shared.meter.entry("sender"), self.shared.meter.entry("receiver"));
        let receiving_thread = spawn(scope, "receiver", STACK, move || {
            let mut platform = self.platform();
            let thread = HotThread { name: "receiver", cpu: Some(rx), fifo: self.fifo };
            let turns = self.play(thread, of_rx, || receive_only(&mut platform, &mut receiving, &handover));
            Part { sent: None, received: Some(receiving.finish()), turns }
        });
        let transmitting = spawn(scope, "sender", STACK, move || {
            let mut platform = self.platform().counting(&self.shared.sent_count);
            let thread = HotThread { name: "sender", cpu: Some(tx), fifo: self.fifo };
            let turns = self.play(thread, of_tx, || send_only(&mut platform, &mut sending, &for_tx));
            Part { sent: Some(sending.finish()), received: None, turns }
        });
        vec![transmitting, receiving_thread]
    }

    fn platform(&self) -> HostPlatform<'a, PingerClock> {
        HostPlatform::new(self.socket, self.clock, self.plan.api_pinger, &self.shared.end)
    }

    /// Plays on the calling thread, from just before the start.
    fn play(&self, thread: HotThread, entry: Entry<'_>, body: impl FnOnce() -> Turns) -> Turns {
        thread.set_up(self.warnings);
        entry.set_up();
        self.await_start();
        entry.begin();
        let turns = body();
        entry.end();
        self.shared.overflow.end_loop();
        turns
    }

    /// Until just before the start: what a thread spins away before is no part of the run.
    fn await_start(&self) {
        let left = || self.start.saturating_since(self.clock.now());
        sleep(left().saturating_sub(AWAKE));
        while left() > READY && !self.shared.end.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
    }
}

/// Starts a thread of the run.
///
/// # Panics
///
/// When the system gives no thread: there is no run without.
fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    stack: usize,
    body: impl FnOnce() -> T + Send + 'scope,
) -> std::thread::ScopedJoinHandle<'scope, T> {
    let builder = Builder::new().name(format!("tickpong {name}")).stack_size(stack);
    builder.spawn_scoped(scope, body).expect("the system gives a thread")
}

/// What a thread of the run came to; its panic goes on in this thread.
fn join<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
