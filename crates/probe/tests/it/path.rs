//! Before a run: does anything arrive?

use std::collections::BTreeSet;

use tickpong_probe::{PathProbe, probe_path};
use tickpong_units::{Nanos, PayloadLen};

use crate::play::{open, play};
use crate::world::{Fault, Faults, START, TOKEN, World, ms};

const RTT: Nanos = Nanos::new(2_300);

fn probe<const MOST: usize>(world: &mut World<MOST>) -> PathProbe {
    probe_path(world, TOKEN, PayloadLen::STANDARD, 5, Nanos::from_millis(20))
}

fn lost(seqs: std::ops::Range<u64>) -> Faults {
    Faults { of: seqs.map(|seq| (seq, Fault::LostPing)).collect(), ..Faults::default() }
}

#[test]
fn the_first_answer_ends_it() {
    let mut world = World::<1>::new();
    assert_eq!(probe(&mut world), PathProbe { sent: 1, refused: 0, answered: Some(RTT) });
    let mut world = World::<1>::with_faults(lost(0..2));
    assert_eq!(probe(&mut world), PathProbe { sent: 3, refused: 0, answered: Some(RTT) });
    assert_eq!(world.time, START - ms(1) + ms(40) + RTT.get(), "each is waited for as long as was asked");
    assert_eq!(world.reflector().received, 0, "a probe is no ping");
}

#[test]
fn of_answers_that_come_together_the_first_counts() {
    let mut world = World::<8>::with_fault(0, Fault::Delayed(ms(20)));
    assert_eq!(probe(&mut world).answered, Some(RTT + Nanos::from_millis(20)));
}

#[test]
fn silence_is_an_answer_too() {
    let mut world = World::<1>::with_faults(lost(0..100));
    assert_eq!(probe(&mut world), PathProbe { sent: 5, refused: 0, answered: None });
    assert_eq!(world.time, START - ms(1) + ms(100));
}

#[test]
fn a_refusal_is_counted() {
    let mut world = World::<1>::with_faults(Faults { refused: BTreeSet::from([0, 1]), ..Faults::default() });
    assert_eq!(probe(&mut world), PathProbe { sent: 1, refused: 2, answered: Some(RTT) });
}

#[test]
fn it_ends_when_asked_to_stop() {
    let mut world = World::<1>::with_faults(lost(0..100));
    world.stop_at = Some(START);
    world.time = START - ms(30);
    assert_eq!(probe(&mut world), PathProbe { sent: 2, refused: 0, answered: None });
}

#[test]
fn an_answer_to_a_probe_that_straggles_into_the_run_counts_for_nothing() {
    let mut world = World::<1>::with_fault(0, Fault::Delayed(ms(130)));
    world.time = START - ms(101);
    assert_eq!(probe(&mut world).sent, 2);
    world.faults = Faults::default();
    let played = play(&open(1_000), &mut world);
    assert_eq!((played.received.answered, played.received.foreign, played.received.duplicate), (1_000, 0, 0));
    assert_eq!(world.reflector().received, 1_000);
}
