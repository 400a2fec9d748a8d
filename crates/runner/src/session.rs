//! The run itself: hot threads that play, a collector that adds up, a watch over the other end.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{Builder, Scope};

use tickpong_hostio::clock::{HostClock, monotonic_ns};
use tickpong_hostio::socket::UdpSocket;
use tickpong_hostio::thread::Cpu;
use tickpong_probe::{Handover, Receiver, Transmitter, open_intervals, ping, receive_only, send_only};
use tickpong_record::capture::{ReceiveInterval, ReceiveTotals, SendInterval, SendTotals, Turns};
use tickpong_record::{Plan, RecordError, Resources, RunWriter, ThreadCpu, Trace};
use tickpong_units::{Nanos, PingerClock};
use tickpong_wire::Token;

use crate::Progress;
use crate::collect::{Collected, Collector, write_observations};
use crate::connection::Connection;
use crate::hot::{HotThread, Warnings, become_helper};
use crate::platform::HostPlatform;
use crate::rings::{Hand, Overflow, Raw, rings};
use crate::watch::{Watched, watch};

/// From the decision to start to the first message: the engine's memory is taken, and threads come up.
const LEAD: Nanos = Nanos::from_millis(60);
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
    pub(crate) threads: Vec<ThreadCpu>,
    pub(crate) overflowed: u64,
    /// From the start to the end of the last hot thread.
    pub(crate) elapsed: Nanos,
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
    let overflow = Overflow::default();
    let (hand_sent, sent) = rings(&overflow, open_intervals(stage.plan));
    let (hand_received, received) = rings(&overflow, open_intervals(stage.plan));
    let (raw, raw_ring) = match writer.as_mut().and_then(RunWriter::take_observations) {
        Some(file) => {
            let (raw, ring) = Raw::wanted(&overflow);
            (raw, Some((ring, file)))
        }
        None => (Raw::unwanted(&overflow), None),
    };
    let start = stage.clock.now::<PingerClock>() + LEAD;
    let start_ns = monotonic_ns() + LEAD.get();
    let sending = Transmitter::new(stage.plan, stage.trace, stage.token, start, hand_sent);
    let receiving = Receiver::new(stage.plan, stage.trace, stage.token, start, hand_received, raw);

    let (end, hot_done, all_done) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
    let noted: Mutex<BTreeMap<u64, Resources>> = Mutex::default();
    let Stage { plan, clock, helpers, socket, fifo, warnings, .. } = *stage;
    let (tell, told) = mpsc::channel();
    let hot = Hot { plan, socket, clock, fifo, warnings, end: &end, overflow: &overflow, tell };
    let (cpus, connection) = (stage.cpus, &mut *stage.connection);
    std::thread::scope(|scope| {
        let players = match *cpus {
            [tx, rx] => hot.two(scope, tx, rx, sending, receiving),
            _ => vec![hot.one(scope, cpus.first().copied(), sending, receiving)],
        };
        let watching = spawn(scope, "watch", STACK, || {
            become_helper(helpers);
            watch(connection, stop, &end, &all_done, &noted)
        });
        let hot = told.iter().take(players.len()).collect();
        let collector = Collector { plan, sent, received, hot, start_ns, writer, reflector: &noted, progress };
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
        let elapsed = clock.now::<PingerClock>().saturating_since(start);
        hot_done.store(true, Ordering::Release);
        collecting.thread().unpark();
        let (collected, observations) = (join(collecting), observing.map_or(Ok(()), join));
        all_done.store(true, Ordering::Release);
        Played {
            sent: played.sent.unwrap_or_default(),
            received: played.received.unwrap_or_default(),
            collected,
            turns: played.turns,
            threads: played.threads,
            overflowed: overflow.count(),
            elapsed,
            watched: join(watching),
            observations,
        }
    })
}

/// What one hot thread did.
#[derive(Debug, Default)]
struct Part {
    sent: Option<SendTotals>,
    received: Option<ReceiveTotals>,
    turns: Turns,
    threads: Vec<ThreadCpu>,
}

impl Part {
    fn merge(&mut self, other: Self) {
        self.sent = self.sent.or(other.sent);
        self.received = self.received.or(other.received);
        self.turns.all += other.turns.all;
        self.turns.busy += other.turns.busy;
        self.threads.extend(other.threads);
    }
}

/// What hot threads are started with.
struct Hot<'a> {
    plan: &'a Plan,
    socket: &'a UdpSocket,
    clock: &'a HostClock,
    fifo: Option<u8>,
    warnings: &'a Warnings,
    end: &'a AtomicBool,
    overflow: &'a Overflow,
    tell: mpsc::Sender<tickpong_hostio::thread::Tid>,
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
        spawn(scope, "pinger", STACK, move || {
            let mut platform = HostPlatform::new(self.socket, self.clock, self.plan.api_pinger, self.end);
            let thread = HotThread { name: "pinger", cpu, fifo: self.fifo };
            let (turns, used) =
                thread.run(self.warnings, &self.tell, || ping(&mut platform, &mut sending, &mut receiving));
            self.overflow.end_loop();
            Part { sent: Some(sending.finish()), received: Some(receiving.finish()), turns, threads: vec![used] }
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
        let (for_tx, tell) = (std::sync::Arc::clone(&handover), self.tell.clone());
        let Self { plan, socket, clock, fifo, warnings, end, overflow, .. } = self;
        let receiving_thread = spawn(scope, "receiver", STACK, move || {
            let mut platform = HostPlatform::new(socket, clock, plan.api_pinger, end);
            let thread = HotThread { name: "receiver", cpu: Some(rx), fifo };
            let (turns, used) =
                thread.run(warnings, &self.tell, || receive_only(&mut platform, &mut receiving, &handover));
            overflow.end_loop();
            Part { sent: None, received: Some(receiving.finish()), turns, threads: vec![used] }
        });
        let transmitting = spawn(scope, "sender", STACK, move || {
            let mut platform = HostPlatform::new(socket, clock, plan.api_pinger, end);
            let thread = HotThread { name: "sender", cpu: Some(tx), fifo };
            let (turns, used) = thread.run(warnings, &tell, || send_only(&mut platform, &mut sending, &for_tx));
            overflow.end_loop();
            Part { sent: Some(sending.finish()), received: None, turns, threads: vec![used] }
        });
        vec![transmitting, receiving_thread]
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
