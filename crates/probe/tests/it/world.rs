//! A made-up world: one pinger, a network with planted faults, and a reflector, in virtual time. It allocates nothing while it plays.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use tickpong_probe::{Platform, Receives, Reflector, ReflectorTotals, Sends, Sent};
use tickpong_units::{Instant, Nanos, PayloadLen, PingerClock};
use tickpong_wire::{Datagram, HEADER_LEN, Kind, Token, datagram};

/// The session of every test.
pub(crate) const TOKEN: Token = Token::new(*b"a token!");
/// When every run starts, by the pinger's clock.
pub(crate) const START: u64 = 5_000_000_000;
/// What the reflector's clock shows more than the pinger's.
const OFFSET: u64 = 77_000_000_000_000;
/// Datagrams under way at the most, and their longest.
const UNDER_WAY: usize = 1 << 14;
const LONGEST: usize = 1_024;

pub(crate) fn ms(ms: u64) -> u64 {
    ms * 1_000_000
}

/// What each of the pinger's actions takes, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Costs {
    pub(crate) now: u64,
    /// A send call, however many datagrams it takes.
    pub(crate) send: u64,
    pub(crate) receive: u64,
}

/// What happens to one message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fault {
    /// A bit of the pong's filler flips.
    CorruptFiller,
    /// The pong says that it was intended in the far future.
    CorruptIntended,
    /// The pong says that it was sent in the far future.
    CorruptSent,
    /// The pong says that it answers a message that was never sent.
    CorruptSeq,
    /// The pong comes so much later.
    Delayed(u64),
    /// The pong comes again, so much later.
    Doubled(u64),
    /// The pong comes, and is of another session.
    Foreign,
    LostPing,
    LostPong,
    /// The ping comes twice to the reflector.
    PingDoubled,
    /// The send call takes so long.
    SlowSend(u64),
    /// The pong is cut short.
    Truncated,
}

/// Everything that goes wrong.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    pub(crate) of: BTreeMap<u64, Fault>,
    /// How often there is no room for a message.
    pub(crate) full: BTreeMap<u64, u32>,
    pub(crate) refused: BTreeSet<u64>,
    /// From when to when, from the start, the reflector does nothing.
    pub(crate) stalled: Option<(u64, u64)>,
}

/// What a datagram handed to the pinger is, by the one who made it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum Made {
    Good,
    Again,
    Corrupt,
    Garbage,
    Foreign,
    Path,
}

/// A datagram on its way to the pinger: when it arrives, a number that breaks ties, where its bytes are, how long, and what it is.
type Flight = Reverse<(u64, u64, usize, usize, Made)>;

#[derive(Debug)]
pub(crate) struct World<const MOST: usize> {
    pub(crate) time: u64,
    pub(crate) costs: Costs,
    pub(crate) faults: Faults,
    /// One way takes so long at least, and up to so much more.
    pub(crate) delay: (u64, u64),
    pub(crate) turnaround: u64,
    /// When somebody asks the pinger to stop, by its clock.
    pub(crate) stop_at: Option<u64>,
    /// So many datagrams of each kind were handed to the pinger.
    pub(crate) handed: [u64; 6],
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    /// The most pings that waited for their answer at one time.
    pub(crate) most_outstanding: u64,
    outstanding: u64,
    chance: u64,
    reflector: Reflector,
    slots: Vec<u8>,
    flights: BinaryHeap<Flight>,
    bytes: Vec<u8>,
    free: Vec<usize>,
    order: u64,
}

impl<const MOST: usize> World<MOST> {
    /// A world without faults where nothing costs time but the way: a microsecond each.
    pub(crate) fn new() -> Self {
        Self {
            time: START - ms(1),
            costs: Costs::default(),
            faults: Faults::default(),
            delay: (1_000, 0),
            turnaround: 300,
            stop_at: None,
            handed: [0; 6],
            accepted: 0,
            refused: 0,
            most_outstanding: 0,
            outstanding: 0,
            chance: 0x9e37_79b9_7f4a_7c15,
            reflector: Reflector::new(TOKEN, Nanos::from_secs(1)),
            slots: vec![0; MOST * LONGEST],
            flights: BinaryHeap::with_capacity(UNDER_WAY),
            bytes: vec![0; UNDER_WAY * LONGEST],
            free: (0..UNDER_WAY).collect(),
            order: 0,
        }
    }

    pub(crate) fn with_faults(faults: Faults) -> Self {
        Self { faults, ..Self::new() }
    }

    /// One fault alone, of one message.
    pub(crate) fn with_fault(seq: u64, fault: Fault) -> Self {
        Self::with_faults(Faults { of: BTreeMap::from([(seq, fault)]), ..Faults::default() })
    }

    pub(crate) fn seeded(mut self, seed: u64) -> Self {
        self.chance = seed | 1;
        self
    }

    pub(crate) fn handed(&self, made: Made) -> u64 {
        self.handed[made as usize]
    }

    pub(crate) fn reflector(&self) -> ReflectorTotals {
        self.reflector.totals()
    }

    /// Has `payload` arrive at the pinger `at` from the start.
    pub(crate) fn inject(&mut self, at: u64, payload: &[u8], made: Made) {
        let buffer = self.buffer(payload);
        self.fly(START + at, buffer, payload.len(), made);
    }

    fn buffer(&mut self, payload: &[u8]) -> usize {
        let buffer = self.free.pop().expect("fewer datagrams under way");
        self.bytes[buffer * LONGEST..][..payload.len()].copy_from_slice(payload);
        buffer
    }

    fn fly(&mut self, at: u64, buffer: usize, len: usize, made: Made) {
        self.order += 1;
        self.flights.push(Reverse((at, self.order, buffer, len, made)));
    }

    fn one_way(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.delay.0 + self.chance % (self.delay.1 + 1)
    }

    /// Takes the ping in slot `index` to the reflector, and its answer on the way back.
    fn carry(&mut self, index: usize, len: usize, ping: Datagram) {
        let fault = self.faults.of.get(&ping.seq.get()).copied();
        let there = self.time + self.one_way();
        if fault == Some(Fault::LostPing) {
            return;
        }
        self.reflect(index, len, ping, there, fault);
        if fault == Some(Fault::PingDoubled) {
            self.reflect(index, len, ping, there + 1, fault);
        }
    }

    fn reflect(&mut self, index: usize, len: usize, ping: Datagram, there: u64, fault: Option<Fault>) {
        let arrival = match self.faults.stalled {
            Some((from, to)) if (START + from..START + to).contains(&there) => START + to,
            _ => there,
        };
        let back = arrival + self.turnaround;
        let mut at = back + self.one_way();
        let mut payload = [0; LONGEST];
        let payload = &mut payload[..len];
        payload.copy_from_slice(&self.slots[index * LONGEST..][..len]);
        let known = self.reflector.totals().duplicate;
        let stamp = |time| Instant::from_clock(time + OFFSET);
        if !self.reflector.handle(stamp(arrival), payload) || fault == Some(Fault::LostPong) {
            return;
        }
        datagram::depart(stamp(back), payload);
        let mut made = match ping.kind {
            Kind::PathProbe => Made::Path,
            _ if self.reflector.totals().duplicate > known => Made::Again,
            _ => Made::Good,
        };
        let mut len = len;
        match fault {
            Some(Fault::CorruptFiller) => {
                // The shortest message has none.
                if let Some(byte) = payload.get_mut(HEADER_LEN) {
                    (*byte, made) = (!*byte, Made::Corrupt);
                }
            }
            Some(Fault::CorruptIntended) => {
                payload[31] = 0xff;
                made = Made::Corrupt;
            }
            Some(Fault::CorruptSent) => {
                payload[39] = 0xff;
                made = Made::Corrupt;
            }
            Some(Fault::CorruptSeq) => {
                payload[23] = 0xff;
                made = Made::Corrupt;
            }
            Some(Fault::Delayed(by)) => at += by,
            Some(Fault::Doubled(by)) => {
                let again = self.buffer(payload);
                self.fly(at + by, again, len, Made::Again);
            }
            Some(Fault::Foreign) => (payload[8], made) = (!payload[8], Made::Foreign),
            Some(Fault::Truncated) => (len, made) = (len - 1, Made::Garbage),
            Some(Fault::LostPing | Fault::LostPong | Fault::PingDoubled | Fault::SlowSend(_)) | None => {}
        }
        let buffer = self.buffer(&payload[..len]);
        self.fly(at, buffer, len, made);
    }
}

impl<const MOST: usize> Platform for World<MOST> {
    type Clock = PingerClock;

    fn now(&mut self) -> Instant<PingerClock> {
        self.time += self.costs.now;
        Instant::from_clock(self.time)
    }

    fn idle(&mut self, until: Instant<PingerClock>) {
        let next = self.flights.peek().map_or(u64::MAX, |Reverse((at, ..))| *at);
        self.time = self.time.max(until.to_wire().min(next));
    }

    fn stop_asked(&self) -> bool {
        self.stop_at.is_some_and(|at| self.time >= at)
    }
}

impl<const MOST: usize> Sends for World<MOST> {
    const MOST: usize = MOST;

    fn slot(&mut self, index: usize, len: PayloadLen) -> &mut [u8] {
        &mut self.slots[index * LONGEST..][..len.get()]
    }

    fn send(&mut self, count: usize, len: PayloadLen) -> Sent {
        assert!((1..=MOST).contains(&count));
        let (mut sent, mut slow) = (Sent::default(), 0);
        for index in 0..count {
            let ping =
                Datagram::parse(&self.slots[index * LONGEST..][..len.get()]).expect("the engine sends datagrams");
            let seq = ping.seq.get();
            if let Some(left) = self.faults.full.get_mut(&seq).filter(|left| **left > 0) {
                *left -= 1;
                break;
            }
            if self.faults.refused.contains(&seq) {
                sent.refused += 1;
                self.refused += 1;
                break;
            }
            sent.accepted += 1;
            self.accepted += 1;
            self.outstanding += 1;
            if let Some(Fault::SlowSend(by)) = self.faults.of.get(&seq) {
                slow = slow.max(*by);
            }
            self.carry(index, len.get(), ping);
        }
        self.most_outstanding = self.most_outstanding.max(self.outstanding);
        self.time += self.costs.send + slow;
        sent
    }
}

impl<const MOST: usize> Receives for World<MOST> {
    fn receive(&mut self, mut handle: impl FnMut(Instant<PingerClock>, &[u8])) -> usize {
        self.time += self.costs.receive;
        let mut handed = 0;
        while handed < MOST
            && let Some(Reverse((at, _, buffer, len, made))) = self.flights.peek().copied()
            && at <= self.time
        {
            self.flights.pop();
            handle(Instant::from_clock(self.time), &self.bytes[buffer * LONGEST..][..len]);
            self.free.push(buffer);
            self.handed[made as usize] += 1;
            self.outstanding = self.outstanding.saturating_sub(1);
            handed += 1;
        }
        handed
    }
}
