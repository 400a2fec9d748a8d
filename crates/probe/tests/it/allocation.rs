//! The hot loop takes no memory: all of it was taken before.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::hint::black_box;

use tickpong_probe::{Exchange, Observe, Receiver, Transmitter, ping};
use tickpong_record::capture::{Observation, ReceiveInterval, SendInterval};
use tickpong_record::{Plan, ScheduleKind, Trace};
use tickpong_units::Nanos;

use crate::play::{closed, lasting, open, start};
use crate::world::{Costs, Fault, Faults, TOKEN, World, ms};

/// The system's allocator; it counts what an armed thread takes.
struct Counting;

thread_local! {
    /// What this thread took since it was armed.
    static TAKEN: Cell<Option<u64>> = const { Cell::new(None) };
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; this one hands every call on as it is")]
// SAFETY: every method hands its arguments on to the system's allocator, and its result back, unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise about `layout` is the one asked for here.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: `pointer` came from the system's allocator, with `layout`; the caller promises the rest.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from the system's allocator, with `layout`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

fn count() {
    TAKEN.set(TAKEN.get().map(|taken| taken + 1));
}

/// How often `work` takes memory.
fn taken_by(work: impl FnOnce()) -> u64 {
    TAKEN.set(Some(0));
    work();
    TAKEN.replace(None).unwrap_or_default()
}

/// Gives back the interval that it was given before.
struct Recycle<T> {
    spare: Box<T>,
    given: u64,
}

impl<T: Default> Recycle<T> {
    fn new() -> Self {
        Self { spare: Box::default(), given: 0 }
    }
}

impl<T> Exchange<T> for Recycle<T> {
    fn exchange(&mut self, buffer: &mut Box<T>) {
        std::mem::swap(buffer, &mut self.spare);
        self.given += 1;
    }

    fn pass(&mut self, _: u64) {}
}

struct Last(Observation);

impl Observe for Last {
    fn observe(&mut self, observation: Observation) {
        self.0 = observation;
    }
}

fn assert_takes_nothing<const MOST: usize>(plan: &Plan, trace: Option<&Trace>) {
    let of = [
        (50, Fault::LostPing),
        (60, Fault::Delayed(ms(150))),
        (70, Fault::Delayed(ms(700))),
        (80, Fault::Doubled(ms(500))),
        (90, Fault::CorruptFiller),
        (400, Fault::SlowSend(ms(250))),
    ];
    let mut world = World::<MOST>::with_faults(Faults { of: of.into(), full: [(55, 3)].into(), ..Faults::default() });
    world.costs = Costs { now: 20, send: 500, receive: 200 };
    let mut transmitter = Transmitter::new(plan, trace, TOKEN, start(), Recycle::<SendInterval>::new());
    let last = Last(Observation::default());
    let mut receiver = Receiver::new(plan, trace, TOKEN, start(), Recycle::<ReceiveInterval>::new(), last);
    let taken = taken_by(|| {
        black_box(ping(&mut world, &mut transmitter, &mut receiver));
    });
    assert_eq!(taken, 0, "{} by {}", plan.schedule, world.accepted);
    assert!(world.accepted > 500, "{} were sent", world.accepted);
}

#[test]
fn the_counter_counts() {
    assert_eq!(taken_by(|| drop(black_box(Box::new(1)))), 1);
    assert_eq!(taken_by(|| drop(black_box(vec![0_u8; 10]))), 1);
    assert_eq!(taken_by(|| ()), 0);
}

#[test]
fn no_open_loop_takes_memory_while_it_runs() {
    for schedule in [ScheduleKind::Fixed, ScheduleKind::Poisson, ScheduleKind::Burst(5)] {
        let plan = Plan { schedule, ..open(5_000) }.checked().unwrap();
        assert_takes_nothing::<1>(&plan, None);
        assert_takes_nothing::<8>(&plan, None);
    }
    let trace = Trace::parse("200000 264\n0 100\n1000000 264").unwrap();
    let schedule = ScheduleKind::Trace(trace.digest().into());
    let plan = Plan { schedule, offered_rate_hz: Some(trace.mean_rate()), ..open(1) }.checked().unwrap();
    assert_takes_nothing::<8>(&plan, Some(&trace));
}

#[test]
fn no_closed_loop_takes_memory_while_it_runs() {
    let plan = Plan { deadline_ns: Nanos::from_millis(20), ..lasting(closed(), 900) };
    assert_takes_nothing::<1>(&plan, None);
}
