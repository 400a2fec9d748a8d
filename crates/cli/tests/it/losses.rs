//! Losses are planted where they can happen, and told apart to the last one. None stops a run.

use nix::sys::signal::Signal;
use tickpong_hostio::clock::sleep;
use tickpong_record::{Losses, Run};
use tickpong_units::Nanos;

use crate::two_hosts::{Ended, Kind, NamedHosts, Planted, Side, undisturbed};

/// On the way out, before the reflector's socket.
const PINGS_ARRIVING: Planted = Planted { side: Side::Reflector, hook: "input", kind: Kind::Ping, of: 100 };
/// On the way back, before the pinger's.
const PONGS_ARRIVING: Planted = Planted { side: Side::Pinger, hook: "input", kind: Kind::Pong, of: 90 };
/// Refused by the reflector's kernel: it had the ping in hand.
const PONGS_LEAVING: Planted = Planted { side: Side::Reflector, hook: "output", kind: Kind::Pong, of: 80 };
/// Refused by the pinger's own kernel.
const PINGS_LEAVING: Planted = Planted { side: Side::Pinger, hook: "output", kind: Kind::Ping, of: 70 };

/// Plays with the rules planted: the run, how it ended, and what its losses must be.
fn play(planted: &[Planted], reflector: &[&str], pinger: &[&str]) -> Option<(Run, (Ended, Losses))> {
    undisturbed(|| {
        let hosts = NamedHosts::up()?;
        for rule in planted {
            hosts.plant(*rule);
        }
        let _reflector = hosts.reflect(&[&["--once"], reflector].concat());
        let ended = hosts.ping(pinger).end();
        let run = ended.run();
        let losses = as_planted(&hosts, planted);
        Some((run, (ended, losses)))
    })
}

/// By the kernels' own counters.
fn as_planted(hosts: &NamedHosts, planted: &[Planted]) -> Losses {
    let dropped = |wanted: Planted| {
        let is_wanted = |rule: &&Planted| (rule.side, rule.hook) == (wanted.side, wanted.hook);
        let dropped = planted.iter().find(is_wanted).map_or(0, |rule| hosts.dropped(rule.side, rule.hook));
        assert_eq!(dropped > 0, planted.iter().any(|rule| is_wanted(&rule)), "the rule had nothing to do");
        dropped
    };
    let (outbound, inbound) = (dropped(PINGS_ARRIVING), dropped(PONGS_ARRIVING));
    Losses {
        pinger_socket: 0,
        reflector_socket: 0,
        reflector_unanswered: dropped(PONGS_LEAVING),
        unexplained: outbound + inbound,
        unexplained_outbound: Some(outbound),
        unexplained_inbound: Some(inbound),
        send_refused: dropped(PINGS_LEAVING),
    }
}

fn check(planted: &[Planted], reflector: &[&str], pinger: &[&str]) {
    let Some((run, (ended, losses))) = play(planted, reflector, pinger) else { return };
    assert_eq!(run.losses, losses, "{:?}\n{}", run.fates, ended.err);
    assert_eq!(run.fates.duplicate + run.fates.reordered, 0, "{:?}", run.fates);
}

#[test]
fn pings_lost_before_the_reflector_are_outbound() {
    check(&[PINGS_ARRIVING], &[], &[]);
}

#[test]
fn pongs_lost_before_the_pinger_are_inbound() {
    check(&[PONGS_ARRIVING], &[], &[]);
}

#[test]
fn pongs_that_the_reflectors_kernel_refuses_are_unanswered() {
    check(&[PONGS_LEAVING], &[], &[]);
}

#[test]
fn pings_that_the_pingers_kernel_refuses_were_never_sent() {
    let Some((run, (ended, losses))) = play(&[PINGS_LEAVING], &[], &[]) else { return };
    assert_eq!((run.losses, run.fates.lost), (losses, 0), "{:?}", run.fates);
    let refused = run.invalid_because.iter().any(|why| why.starts_with("send-refused: "));
    assert!(refused && ended.code == 5, "{} {:?}", ended.code, run.invalid_because);
}

const EVERYWHERE: &[Planted] = &[PINGS_ARRIVING, PONGS_ARRIVING, PONGS_LEAVING, PINGS_LEAVING];

#[test]
fn losses_everywhere_at_once_are_told_apart_by_a_thread_that_waits() {
    check(EVERYWHERE, &[], &[]);
}

#[test]
fn losses_everywhere_at_once_are_told_apart_by_threads_that_spin() {
    check(EVERYWHERE, &["--api=udp-spin"], &["--api=udp-spin"]);
}

#[test]
fn losses_everywhere_at_once_are_told_apart_by_two_threads() {
    check(EVERYWHERE, &[], &["--tx-cpu=0", "--rx-cpu=0"]);
}

#[test]
fn losses_are_told_apart_in_a_closed_loop_and_do_not_stop_it() {
    let Some((run, (ended, losses))) = play(EVERYWHERE, &[], &["--closed", "--deadline=50ms"]) else { return };
    assert_eq!(run.losses, losses, "{:?}", run.fates);
    // Each loss costs a deadline: twenty a second, and some twenty answers or more for each.
    assert!(run.fates.lost >= 5 && run.fates.answered >= 10 * run.fates.lost, "{:?}", run.fates);
    assert!(ended.took < Nanos::from_secs(5), "{}", ended.took);
}

/// Nothing comes through at all once the run has begun: it ends on time all the same, and says so.
fn check_blackout(arguments: &[&str]) {
    let all = Planted { of: 1, ..PINGS_ARRIVING };
    let Some((run, (ended, losses))) = play(&[all], &[], arguments) else { return };
    assert_eq!((run.losses, run.fates.answered), (losses, 0), "{:?}", run.fates);
    assert!(ended.took < Nanos::from_secs(6), "{}", ended.took);
    assert_eq!(run.whole.rtt_ns.map(|rtt| rtt.count).unwrap_or_default(), 0);
}

#[test]
fn a_path_that_goes_dark_stalls_no_open_loop() {
    check_blackout(&[]);
}

#[test]
fn a_path_that_goes_dark_stalls_no_closed_loop() {
    check_blackout(&["--closed"]);
}

/// As small as the kernel makes it: room for some three messages.
const TINY: &str = "--socket-buffer=2304";

fn play_with_a_tiny_buffer(
    reflector: &[&str],
    pinger: &[&str],
    meanwhile: impl Fn(&dyn Fn(Side, Signal)),
) -> Option<Run> {
    let played = undisturbed(|| {
        let hosts = NamedHosts::up()?;
        let reflector = hosts.reflect(reflector);
        let pinger = hosts.ping(&[&["--rate=2k", "--duration=1500ms"], pinger].concat());
        // Past the path probes and the warm-up.
        reflector.await_datagrams(500);
        meanwhile(&|side, signal| match side {
            Side::Pinger => pinger.signal(signal),
            Side::Reflector => reflector.signal(signal),
        });
        Some((pinger.end().run(), ()))
    });
    played.map(|(run, ())| run)
}

#[test]
fn pings_that_find_the_reflectors_buffer_full_are_its_sockets() {
    let stop_for_a_while = |signal: &dyn Fn(Side, Signal)| {
        signal(Side::Reflector, Signal::SIGSTOP);
        sleep(Nanos::from_millis(200));
        signal(Side::Reflector, Signal::SIGCONT);
    };
    let Some(run) = play_with_a_tiny_buffer(&["--once", TINY], &[], stop_for_a_while) else { return };
    let reflector = run.sockets.reflector.unwrap();
    assert!(run.fates.lost >= 300, "{:?}", run.fates);
    assert_eq!(reflector.drops, Some(run.fates.lost));
    assert_eq!(reflector.host_udp.unwrap().receive_buffer_errors, run.fates.lost);
    assert_eq!(run.losses, Losses { reflector_socket: run.fates.lost, ..nothing() });
}

#[test]
fn pongs_that_find_the_pingers_buffer_full_are_its_sockets() {
    let fill_while_nobody_takes = |signal: &dyn Fn(Side, Signal)| {
        // Pings gather in the reflector's large buffer; then it answers them all into a buffer that nobody empties.
        signal(Side::Reflector, Signal::SIGSTOP);
        sleep(Nanos::from_millis(200));
        signal(Side::Pinger, Signal::SIGSTOP);
        signal(Side::Reflector, Signal::SIGCONT);
        sleep(Nanos::from_millis(100));
        signal(Side::Pinger, Signal::SIGCONT);
    };
    let Some(run) = play_with_a_tiny_buffer(&["--once"], &[TINY], fill_while_nobody_takes) else { return };
    assert!(run.fates.lost >= 300, "{:?}", run.fates);
    assert_eq!(run.sockets.drops, Some(run.fates.lost));
    assert_eq!(run.sockets.host_udp.unwrap().receive_buffer_errors, run.fates.lost);
    assert_eq!(run.losses, Losses { pinger_socket: run.fates.lost, ..nothing() });
}

fn nothing() -> Losses {
    Losses { unexplained_outbound: Some(0), unexplained_inbound: Some(0), ..Losses::default() }
}
