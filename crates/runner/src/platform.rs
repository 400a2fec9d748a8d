//! The engine's world on real sockets and clocks.

use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tickpong_hostio::clock::HostClock;
use tickpong_hostio::socket::{Sent as SocketSent, UdpSocket};
use tickpong_probe::{Platform, Receives, Reflects, Sends, Sent, TurnedAround};
use tickpong_record::Api;
use tickpong_units::{Clock, Instant, Nanos, PayloadLen, ReflectorClock};

/// One byte more than any datagram, so that an oversize one shows even where a bypass library does not tell the true length.
const INBOX: usize = 65_536;
/// How often a reflector tries again when its send buffer is full, before the answer counts as refused.
const SEND_TRIES: usize = 200;
/// Shorter waits than this are spun: a sleep of a few microseconds takes tens.
const WORTH_SLEEPING: Nanos = Nanos::from_micros(5);

/// How many datagrams a thread has sent, for others to read. On a cache line of its own: the thread that sends writes it all the time.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct SentCount(AtomicU64);

impl SentCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// One thread alone counts: it need not add in one step.
    #[inline]
    fn add_one(&self) {
        self.0.store(self.0.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

/// A thread's view of a UDP socket and the host's clock, for the side whose clock is `C`.
#[derive(Debug)]
pub(crate) struct HostPlatform<'a, C> {
    socket: &'a UdpSocket,
    clock: HostClock,
    waits: bool,
    stop: &'a AtomicBool,
    sent: Option<&'a SentCount>,
    outbox: Box<[u8]>,
    inbox: Box<[u8]>,
    side: PhantomData<C>,
}

impl<'a, C: Clock> HostPlatform<'a, C> {
    pub(crate) fn new(socket: &'a UdpSocket, clock: &HostClock, api: Api, stop: &'a AtomicBool) -> Self {
        Self {
            socket,
            clock: clock.clone(),
            waits: match api {
                Api::UdpBlock => true,
                Api::UdpBusyPoll | Api::UdpSpin => false,
            },
            stop,
            sent: None,
            outbox: vec![0; PayloadLen::MAX.get()].into(),
            inbox: vec![0; INBOX].into(),
            side: PhantomData,
        }
    }

    /// Counts what it sends.
    pub(crate) fn counting(self, sent: &'a SentCount) -> Self {
        Self { sent: Some(sent), ..self }
    }
}

impl<C: Clock> Platform for HostPlatform<'_, C> {
    type Clock = C;

    #[inline]
    fn now(&mut self) -> Instant<C> {
        self.clock.now()
    }

    #[inline]
    fn idle(&mut self, until: Instant<C>) {
        if self.waits {
            let left = until.saturating_since(self.clock.now());
            if left > WORTH_SLEEPING {
                self.socket.wait(Some(left));
            }
        }
    }

    #[inline]
    fn stop_asked(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

impl<C: Clock> Sends for HostPlatform<'_, C> {
    const MOST: usize = 1;

    #[inline]
    fn slot(&mut self, _: usize, len: PayloadLen) -> &mut [u8] {
        &mut self.outbox[..len.get()]
    }

    #[inline]
    fn send(&mut self, _: usize, len: PayloadLen) -> Sent {
        match self.socket.send(&self.outbox[..len.get()]) {
            SocketSent::Accepted => {
                self.sent.inspect(|sent| sent.add_one());
                Sent { accepted: 1, refused: 0 }
            }
            SocketSent::Full => Sent::default(),
            SocketSent::Refused(_) => Sent { accepted: 0, refused: 1 },
        }
    }
}

impl<C: Clock> Receives for HostPlatform<'_, C> {
    #[inline]
    fn receive(&mut self, mut handle: impl FnMut(Instant<C>, &[u8])) -> usize {
        match self.socket.receive(&mut self.inbox) {
            Some(length) => {
                let at = self.clock.now();
                handle(at, &self.inbox[..length.min(INBOX)]);
                1
            }
            None => 0,
        }
    }
}

impl Reflects for HostPlatform<'_, ReflectorClock> {
    #[inline]
    fn turn_around(
        &mut self,
        mut handle: impl FnMut(Instant<ReflectorClock>, &mut [u8]) -> bool,
        depart: impl Fn(Instant<ReflectorClock>, &mut [u8]),
    ) -> TurnedAround {
        let received = if self.waits {
            self.socket.receive_waiting(&mut self.inbox)
        } else {
            self.socket.receive(&mut self.inbox)
        };
        let Some(length) = received else { return TurnedAround::default() };
        let arrival = self.clock.now();
        let payload = &mut self.inbox[..length.min(INBOX)];
        if !handle(arrival, payload) {
            return TurnedAround { received: 1, answered: 0 };
        }
        for _ in 0..SEND_TRIES {
            depart(self.clock.now(), payload);
            match self.socket.send(payload) {
                SocketSent::Accepted => return TurnedAround { received: 1, answered: 1 },
                SocketSent::Full => {}
                SocketSent::Refused(_) => break,
            }
        }
        TurnedAround { received: 1, answered: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::net::{Ipv4Addr, UdpSocket as Far};

    use tickpong_hostio::clock::{ClockChoice, sleep};
    use tickpong_hostio::socket::SocketSetup;

    use super::*;

    #[test]
    fn a_turnaround_holds_all_that_a_reflector_does() {
        let here = || (Ipv4Addr::LOCALHOST, 0).into();
        let (socket, far) = (UdpSocket::open(&SocketSetup::new(here())).unwrap(), Far::bind(here()).unwrap());
        socket.connect(far.local_addr().unwrap()).unwrap();
        far.send_to(b"ping", socket.local_addr().unwrap()).unwrap();
        let clock = HostClock::choose(ClockChoice::Auto, Nanos::from_millis(10)).unwrap();
        let stop = AtomicBool::new(false);
        let mut platform = HostPlatform::new(&socket, &clock, Api::UdpBlock, &stop);
        let (work, arrived, departed) = (Nanos::from_millis(2), Cell::new(None), Cell::new(None));
        let handle = |arrival, _: &mut [u8]| {
            arrived.set(Some(arrival));
            sleep(work);
            true
        };
        let depart = |departure, payload: &mut [u8]| {
            departed.set(Some(departure));
            payload[0] = b'P';
        };
        let turned = platform.turn_around(handle, depart);
        assert_eq!(turned, TurnedAround { received: 1, answered: 1 });
        let turnaround = departed.get().unwrap().since(arrived.get().unwrap());
        assert!(turnaround >= work, "{turnaround}");
        let mut answer = [0; 8];
        assert_eq!(far.recv(&mut answer).unwrap(), 4);
        assert_eq!(&answer[..4], b"Ping", "stamped before it is sent");
    }
}
