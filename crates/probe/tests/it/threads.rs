//! The run on two threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver as Inbox, Sender as Outbox};
use std::thread;
use std::time::Duration;

use tickpong_probe::{
    Handover, Platform, Receiver, Receives, Reflector, Sends, Sent, Transmitter, Unobserved, receive_only, send_only,
};
use tickpong_record::Plan;
use tickpong_units::{Instant, Nanos, PayloadLen, PingerClock};

use crate::play::{Fates, Kept, Played, lasting, open, start};
use crate::world::{START, TOKEN, ms};

/// A clock that both threads read, and that goes on by a microsecond with each reading: nobody waits for real time.
#[derive(Clone, Debug)]
struct SharedClock(Arc<AtomicU64>);

impl SharedClock {
    fn new() -> Self {
        Self(Arc::new(AtomicU64::new(START - ms(1))))
    }

    fn read(&self) -> u64 {
        self.0.fetch_add(1_000, Ordering::SeqCst)
    }
}

struct Sending {
    clock: SharedClock,
    slots: [[u8; 264]; 4],
    reflector: Reflector,
    wire: Outbox<[u8; 264]>,
    /// One pong in so many is lost.
    lose_each: u64,
    stop_at: Option<u64>,
    last: u64,
    pings: u64,
}

impl Platform for Sending {
    type Clock = PingerClock;

    fn now(&mut self) -> Instant<PingerClock> {
        self.last = self.clock.read();
        Instant::from_clock(self.last)
    }

    fn idle(&mut self, _: Instant<PingerClock>) {
        thread::yield_now();
    }

    fn stop_asked(&self) -> bool {
        self.stop_at.is_some_and(|at| self.last >= START + at)
    }
}

impl Sends for Sending {
    const MOST: usize = 4;

    fn slot(&mut self, index: usize, len: PayloadLen) -> &mut [u8] {
        &mut self.slots[index][..len.get()]
    }

    fn send(&mut self, count: usize, _: PayloadLen) -> Sent {
        for index in 0..count {
            self.pings += 1;
            let mut pong = self.slots[index];
            assert!(self.reflector.handle(Instant::from_clock(1), &mut pong));
            if self.lose_each == 0 || !self.pings.is_multiple_of(self.lose_each) {
                self.wire.send(pong).unwrap();
            }
        }
        Sent { accepted: count, refused: 0 }
    }
}

struct Receiving {
    clock: SharedClock,
    wire: Inbox<[u8; 264]>,
    /// What came while it waited.
    waiting: Option<[u8; 264]>,
}

impl Platform for Receiving {
    type Clock = PingerClock;

    fn now(&mut self) -> Instant<PingerClock> {
        Instant::from_clock(self.clock.read())
    }

    /// Where nothing comes for a real millisecond, that is how far the clock goes: the sending thread is done, or has no CPU.
    fn idle(&mut self, _: Instant<PingerClock>) {
        self.waiting = self.wire.recv_timeout(Duration::from_millis(1)).ok();
        if self.waiting.is_none() {
            self.clock.0.fetch_add(ms(1), Ordering::SeqCst);
        }
    }

    fn stop_asked(&self) -> bool {
        false
    }
}

impl Receives for Receiving {
    fn receive(&mut self, mut handle: impl FnMut(Instant<PingerClock>, &[u8])) -> usize {
        let Some(payload) = self.waiting.take().or_else(|| self.wire.try_recv().ok()) else { return 0 };
        handle(Instant::from_clock(self.clock.read()), &payload);
        1
    }
}

fn play_on_two_threads(plan: &Plan, lose_each: u64, stop_at: Option<u64>) -> Played {
    let (clock, (outbox, inbox), handover) = (SharedClock::new(), mpsc::channel(), Handover::new());
    let (sends, receives, observations) = (Kept::new(), Kept::new(), Kept::new());
    let mut transmitter = Transmitter::new(plan, None, TOKEN, start(), sends.clone());
    let mut receiver = Receiver::new(plan, None, TOKEN, start(), receives.clone(), observations.clone());
    let mut sending = Sending {
        clock: clock.clone(),
        slots: [[0; 264]; 4],
        reflector: Reflector::new(TOKEN, Nanos::from_secs(1)),
        wire: outbox,
        lose_each,
        stop_at,
        last: 0,
        pings: 0,
    };
    let mut receiving = Receiving { clock: clock.clone(), wire: inbox, waiting: None };
    let turns = thread::scope(|scope| {
        scope.spawn(|| send_only(&mut sending, &mut transmitter, &handover));
        receive_only(&mut receiving, &mut receiver, &handover)
    });
    let played = Played {
        drain_end: transmitter.drain_end().saturating_since(start()).get(),
        closed_early: receives.len(),
        sent: transmitter.finish(),
        received: receiver.finish(),
        sends: sends.all(),
        receives: receives.all(),
        observations: observations.all(),
        turns,
        ended: clock.read() - START,
    };
    played.assert_lawful(plan);
    played
}

#[test]
fn both_threads_together_account_for_every_message() {
    // Its deadline is long against whatever the threads wait for each other.
    let plan = lasting(Plan { deadline_ns: Nanos::from_secs(1), ..open(10_000) }, 500);
    let played = play_on_two_threads(&plan, 0, None);
    assert_eq!(played.fates(), Fates { answered: 5_000, lost: 0, late: 0, unsent: 0 });
    assert!(played.ended < played.drain_end, "the last answer ends it");
}

#[test]
fn losses_are_waited_for_until_two_deadlines_after_the_last() {
    let plan = lasting(open(10_000), 500);
    let played = play_on_two_threads(&plan, 100, None);
    assert_eq!((played.fates().lost, played.sent.scheduled), (50, 5_000));
    assert!(played.ended >= played.drain_end, "{} {}", played.ended, played.drain_end);
    assert!(played.closed_early > 0, "what is two deadlines old is handed over");
}

#[test]
fn an_interrupted_run_ends_both() {
    let played = play_on_two_threads(&open(10_000), 0, Some(ms(200)));
    assert!((1_990..=2_010).contains(&played.sent.scheduled), "{}", played.sent.scheduled);
    assert_eq!(played.fates().lost, 0);
}

/// Brings something at every call, for ever.
struct Flood(u64);

impl Platform for Flood {
    type Clock = PingerClock;

    fn now(&mut self) -> Instant<PingerClock> {
        self.0 += 1_000;
        Instant::from_clock(self.0)
    }

    fn idle(&mut self, _: Instant<PingerClock>) {}

    fn stop_asked(&self) -> bool {
        false
    }
}

impl Receives for Flood {
    fn receive(&mut self, mut handle: impl FnMut(Instant<PingerClock>, &[u8])) -> usize {
        let at = self.now();
        handle(at, b"garbage");
        assert!(self.0 < START + ms(10_000), "the run does not end");
        1
    }
}

#[test]
fn a_flood_of_garbage_does_not_keep_the_receiving_thread_from_its_end() {
    let (clock, (outbox, _inbox), handover) = (SharedClock::new(), mpsc::channel(), Handover::new());
    let plan = lasting(open(1_000), 100);
    let mut transmitter = Transmitter::new(&plan, None, TOKEN, start(), Kept::new());
    let mut sending = Sending {
        clock,
        slots: [[0; 264]; 4],
        reflector: Reflector::new(TOKEN, Nanos::from_secs(1)),
        wire: outbox,
        lose_each: 1,
        stop_at: None,
        last: 0,
        pings: 0,
    };
    send_only(&mut sending, &mut transmitter, &handover);
    let mut receiver = Receiver::new(&plan, None, TOKEN, start(), Kept::new(), Unobserved);
    receive_only(&mut Flood(START), &mut receiver, &handover);
    assert!(receiver.finish().malformed > 0);
}
