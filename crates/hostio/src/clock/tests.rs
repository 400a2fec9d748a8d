use tickpong_units::PingerClock;

use super::*;

const SPAN: Nanos = Nanos::from_millis(10);

#[test]
fn every_choice_makes_a_clock_that_runs_forwards_and_keeps_time() {
    for choice in [ClockChoice::Auto, ClockChoice::Vdso] {
        let clock = HostClock::choose(choice, SPAN).unwrap();
        let start = clock.now::<PingerClock>();
        let mut previous = start;
        for _ in 0..100_000 {
            let now = clock.now();
            assert!(now >= previous);
            previous = now;
        }
        sleep(SPAN);
        assert!(clock.now::<PingerClock>().since(start) >= Nanos::from_millis(9));
        let check = clock.check();
        assert!(check.elapsed >= SPAN);
        assert!(check.drift_ppm.abs() < 5_000.0 + check.uncertainty_ppm, "{check:?}");
    }
}

#[test]
fn facts_say_what_the_clock_is() {
    let vdso = HostClock::choose(ClockChoice::Vdso, SPAN).unwrap();
    assert_eq!(vdso.facts().kind.name(), "monotonic");
    assert_eq!(vdso.facts().frequency_hz, None);
    assert_eq!(vdso.facts().refused, Some(CounterRefused::Disabled));
    assert!(vdso.facts().resolution.is_some());
    assert!(vdso.facts().read_cost_ns > 0.0);
    let best = HostClock::choose(ClockChoice::Auto, SPAN).unwrap();
    assert_eq!(best.facts().refused.is_some(), best.facts().kind == ClockKind::Monotonic);
    assert_eq!(best.facts().frequency_hz.is_none(), best.facts().kind == ClockKind::Monotonic);
}
