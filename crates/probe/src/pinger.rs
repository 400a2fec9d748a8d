//! The pinger's loops.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickpong_record::capture::{ReceiveInterval, SendInterval, Turns};
use tickpong_units::{Instant, Nanos, PingerClock, Seq};

use crate::{Exchange, Observe, Receiver, Receives, Sends, Transmitter, Verdict};

/// The most receive calls between two looks at the schedule: enough to empty a queue that arose while one message was sent.
const DRAIN: usize = 16;
/// The longest a waiting loop sleeps: then it looks whether it is to stop.
const NAP: Nanos = Nanos::from_millis(20);

/// Plays a whole run on one thread, sending and receiving in turn: the right way on few CPUs, and the only one in a closed loop.
///
/// Each turn sends what is due, then empties the receive queue, then waits for what comes first, the next due instant or the next answer.
pub fn ping<P, XS, XR, O>(platform: &mut P, transmitter: &mut Transmitter<XS>, receiver: &mut Receiver<XR, O>) -> Turns
where
    P: Sends<Clock = PingerClock> + Receives,
    XS: Exchange<SendInterval>,
    XR: Exchange<ReceiveInterval>,
    O: Observe,
{
    transmitter.prepare(platform);
    let mut turns = Turns::default();
    loop {
        let now = platform.now();
        if platform.stop_asked() {
            transmitter.stop(now);
        }
        let next_due = transmitter.next_due(now);
        let sent = next_due.is_some_and(|due| due <= now) && transmitter.transmit(now, platform);
        let (received, emptied) = drain(platform, transmitter, receiver);
        turns.all += 1;
        turns.busy += u64::from(sent || received > 0);
        // An interval is not old as long as its answers may lie in the queue.
        if emptied && receiver.look_due(now) {
            transmitter.pass(now);
            while let Some(closed) = transmitter.closed_interval() {
                receiver.expect(closed);
            }
            receiver.look(now, transmitter.reached());
        }
        let wake = match transmitter.next_due(now) {
            Some(due) => due,
            None if receiver.answered() >= transmitter.sent() || now >= transmitter.drain_end() => return turns,
            None => transmitter.drain_end(),
        };
        if !sent && received == 0 {
            platform.idle(wake.min(now + NAP));
        }
    }
}

/// Empties the receive queue, as far as some calls do; in a closed loop up to the answer that the next message waits for. Says how many
/// datagrams came, and whether the queue is empty.
#[inline]
fn drain<P, XS, XR, O>(
    platform: &mut P,
    transmitter: &mut Transmitter<XS>,
    receiver: &mut Receiver<XR, O>,
) -> (usize, bool)
where
    P: Receives<Clock = PingerClock>,
    XS: Exchange<SendInterval>,
    XR: Exchange<ReceiveInterval>,
    O: Observe,
{
    let mut received = 0;
    for _ in 0..DRAIN {
        let mut released = false;
        let arrived = platform.receive(|at, payload| {
            let verdict = receiver.handle(at, payload, || transmitter.next());
            if let Verdict::Answered(seq) | Verdict::Late(seq) = verdict {
                released |= transmitter.release(seq);
            }
        });
        received += arrived;
        if arrived == 0 || released {
            return (received, arrived == 0);
        }
    }
    (received, false)
}

/// What the sending thread tells the receiving one.
#[derive(Debug, Default)]
pub struct Handover {
    done: AtomicBool,
    reached: AtomicU64,
    /// No message from here on can have been sent.
    sent_below: AtomicU64,
    sent: AtomicU64,
    drain_end: AtomicU64,
}

impl Handover {
    /// Nothing told yet.
    pub const fn new() -> Self {
        Self {
            done: AtomicBool::new(false),
            reached: AtomicU64::new(0),
            sent_below: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            drain_end: AtomicU64::new(0),
        }
    }
}

/// The sending half of a run on two threads.
pub fn send_only<P, X>(platform: &mut P, transmitter: &mut Transmitter<X>, handover: &Handover) -> Turns
where
    P: Sends<Clock = PingerClock>,
    X: Exchange<SendInterval>,
{
    // Also when this thread panics: the receiving one must not wait for ever for a word that never comes.
    let _done = TellDone(handover);
    transmitter.prepare(platform);
    let mut turns = Turns::default();
    loop {
        let now = platform.now();
        if platform.stop_asked() {
            transmitter.stop(now);
        }
        let Some(due) = transmitter.next_due(now) else { break };
        let sent = due <= now && {
            // Before the call: the answer may be there before it returns.
            handover.sent_below.store(transmitter.next().get() + P::MOST as u64, Ordering::Release);
            transmitter.transmit(now, platform)
        };
        turns.all += 1;
        turns.busy += u64::from(sent);
        if !sent {
            transmitter.pass(now);
        }
        handover.reached.store(transmitter.reached().to_wire(), Ordering::Relaxed);
        if !sent {
            platform.idle(due.min(now + NAP));
        }
    }
    handover.sent.store(transmitter.sent(), Ordering::Relaxed);
    handover.drain_end.store(transmitter.drain_end().to_wire(), Ordering::Relaxed);
    turns
}

/// Tells the receiving thread, when dropped, that nothing more will be sent.
struct TellDone<'a>(&'a Handover);

impl Drop for TellDone<'_> {
    fn drop(&mut self) {
        self.0.done.store(true, Ordering::Release);
    }
}

/// The receiving half of a run on two threads. Ends when everything sent is answered, or may no longer be.
pub fn receive_only<P, X, O>(platform: &mut P, receiver: &mut Receiver<X, O>, handover: &Handover) -> Turns
where
    P: Receives<Clock = PingerClock>,
    X: Exchange<ReceiveInterval>,
    O: Observe,
{
    let mut turns = Turns::default();
    loop {
        let mut latest = None;
        let received = platform.receive(|at, payload| {
            receiver.handle(at, payload, || Seq::new(handover.sent_below.load(Ordering::Acquire)));
            latest = Some(at);
        });
        turns.all += 1;
        turns.busy += u64::from(received > 0);
        // Every turn asks for the time, or a flood of datagrams would keep the run from its end; an arrival spares a reading of the clock.
        let now = latest.unwrap_or_else(|| platform.now());
        if received == 0 && receiver.look_due(now) {
            receiver.look(now, Instant::from_clock(handover.reached.load(Ordering::Relaxed)));
        }
        if handover.done.load(Ordering::Acquire) {
            let all = receiver.answered() >= handover.sent.load(Ordering::Relaxed);
            if all || now >= Instant::from_clock(handover.drain_end.load(Ordering::Relaxed)) {
                return turns;
            }
        }
        if received == 0 {
            platform.idle(now + NAP);
        }
    }
}
