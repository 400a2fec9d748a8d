//! The top of the page, what was played and what became of it, and its last lines, the warnings.

use tickpong_record::{
    Api, Ends, Fates, Ignored, InForce, Losses, Pacing, Plan, Run, ScheduleKind, Source, ThreadInForce,
};
use tickpong_units::Nanos;

use crate::clean::clean;
use crate::number::{count, decimal};
use crate::page::{Colour, GLUE, Page};

/// Whether the run counts, before anything else is said.
pub(crate) fn verdict(page: &mut Page, run: &Run) {
    if run.valid && run.invalid_because.is_empty() {
        page.verdict("VALID", Colour::Green, "");
    } else if run.invalid_because.is_empty() {
        page.verdict("INVALID", Colour::Red, "the run does not say why");
    }
    for why in &run.invalid_because {
        page.verdict("INVALID", Colour::Red, &clean(why));
    }
    if run.interrupted {
        page.verdict("INTERRUPTED", Colour::Yellow, "what was measured until then follows");
    }
    page.blank();
}

/// What was asked, between whom, and which run this is.
pub(crate) fn played(page: &mut Page, run: &Run) {
    page.field("played", &plan(&run.plan));
    page.field("", &both_ends(run));
    page.field("run", &identity(run));
    if !run.labels.is_empty() {
        let labels = run.labels.iter().map(|(key, value)| format!("{} = {}", clean(key), clean(value)));
        page.field("labels", &labels.collect::<Vec<_>>().join("; "));
    }
}

fn plan(plan: &Plan) -> String {
    let bytes = format!("{} bytes", count(plan.payload_bytes.get() as u64));
    let how_often = match (plan.offered_rate_hz, plan.pacing) {
        (_, Pacing::Closed) => glue(&format!("closed loop of {bytes},")) + " the next ping waits for the pong",
        (Some(rate), Pacing::Open) => {
            glue(&format!("{} messages/s of {bytes},", count(rate.get()))) + " " + &schedule(&plan.schedule)
        }
        (None, Pacing::Open) => glue(&format!("messages of {bytes},")) + " " + &schedule(&plan.schedule),
    };
    let warm_up = match plan.warm_up_ns {
        Nanos::ZERO => "without warm-up".to_owned(),
        warm_up => format!("after {warm_up} of warm-up"),
    };
    let deadline = glue(&format!("deadline {}", plan.deadline_ns));
    format!("{how_often}, {}, {deadline}", glue(&format!("{} {warm_up}", plan.duration_ns)))
}

fn schedule(kind: &ScheduleKind) -> String {
    glue(&match kind {
        ScheduleKind::Burst(n) => format!("bursts of {}", count(u64::from(*n))),
        ScheduleKind::Fixed => "fixed schedule".to_owned(),
        ScheduleKind::Poisson => "Poisson schedule".to_owned(),
        ScheduleKind::Trace(digest) => format!("trace {}", clean(digest)),
    })
}

fn both_ends(run: &Run) -> String {
    let Plan { api_pinger, api_reflector, .. } = run.plan;
    let end = |role: &str, api: Api, in_force: Option<&InForce>| {
        glue(&format!("{role} {api}{}", in_force.map_or_else(String::new, where_played)))
    };
    let Ends { pinger, reflector } = &run.in_force;
    format!("{}; {}", end("pinger", api_pinger, pinger.as_ref()), end("reflector", api_reflector, reflector.as_ref()))
}

/// On which CPUs; one that several are named for was not pinned.
fn where_played(in_force: &InForce) -> String {
    let of = |thread: &ThreadInForce| {
        let several = if thread.cpus.contains([',', '-']) { "s" } else { "" };
        format!(" on CPU{several} {}", clean(&thread.cpus))
    };
    match in_force.threads.as_slice() {
        [sends, receives] => format!(" sends{} and receives{}", of(sends), of(receives)),
        [thread, ..] => of(thread),
        [] => String::new(),
    }
}

fn identity(run: &Run) -> String {
    let identity = &run.identity;
    let mut said: Vec<String> = identity.started_at.iter().map(|at| clean(at)).collect();
    said.push(match run.source {
        Source::Hardware => "hardware".to_owned(),
        Source::Simulated => "SIMULATED".to_owned(),
    });
    let engine = glue(&format!("(engine {})", clean(&run.engine)));
    said.push(format!("{} {engine}", glue(&format!("tickpong {}", clean(&identity.tickpong_version)))));
    said.push(glue(&format!("seed {}", run.seed)));
    said.extend(identity.hosts.iter().map(|kind| glue(&format!("both hosts on one machine: {}", clean(kind)))));
    let named = [("testbed", &identity.testbed), ("scenario", &identity.scenario), ("occasion", &identity.occasion)];
    for (name, value) in named {
        said.extend(value.iter().map(|value| format!("{name}{GLUE}{}", clean(value))));
    }
    said.extend(identity.repetition.map(|n| glue(&format!("repetition {n}"))));
    said.join(", ")
}

/// Rates and fates: what was not measured is counted before anything that was.
pub(crate) fn fates(page: &mut Page, run: &Run) {
    page.blank();
    let mut rates: Vec<String> = Vec::new();
    rates.extend(run.plan.offered_rate_hz.map(|hz| glue(&format!("offered {}/s", count(hz.get())))));
    let known = [("achieved", run.achieved_rate_hz), ("answered", run.answered_rate_hz)];
    for (name, hz) in known {
        rates.push(glue(&hz.map_or_else(|| format!("{name} unknown"), |hz| format!("{name} {}/s", decimal(hz, 1)))));
    }
    page.field("rates", &rates.join(", "));
    page.field("messages", &sum(&run.fates));
    let Fates { duplicate, reordered, .. } = run.fates;
    let beside = [(duplicate, "duplicate"), (reordered, "reordered"), (run.fall_behinds, "fall-behinds")];
    page.field("", &format!("beside these: {}", listed(&beside)));
    if run.plan.warm_up_ns > Nanos::ZERO {
        page.field("after warm-up", &sum(&run.fates_after_warm_up));
    }
    losses(page, run);
    ignored(page, &run.ignored);
}

fn sum(fates: &Fates) -> String {
    let Fates { scheduled, answered, lost, late, unsent, .. } = *fates;
    let parts = [(answered, "answered"), (lost, "lost"), (late, "late"), (unsent, "unsent")];
    added_up((scheduled, "scheduled"), &parts)
}

fn losses(page: &mut Page, run: &Run) {
    let Losses { pinger_socket, reflector_socket, reflector_unanswered, unexplained, send_refused, .. } = run.losses;
    let parts = [
        (pinger_socket, "in the pinger's socket"),
        (reflector_socket, "in the reflector's socket"),
        (reflector_unanswered, "unanswered by the reflector"),
        (unexplained, "unexplained"),
    ];
    if run.fates.lost > 0 || parts.iter().any(|(n, _)| *n > 0) {
        page.field("losses", &added_up((run.fates.lost, "lost"), &parts));
    }
    let ways = (run.losses.unexplained_outbound, run.losses.unexplained_inbound);
    match ways {
        _ if unexplained == 0 => {}
        (Some(out), Some(back)) => {
            let parts = [(out, "lost on the way out"), (back, "lost on the way back")];
            page.field("", &added_up((unexplained, "unexplained"), &parts));
        }
        _ => page.field("", "which way is unknown: there is no report of the reflector"),
    }
    if send_refused > 0 {
        page.field("refused", &format!("{} of the unsent were refused by the pinger's kernel", count(send_refused)));
    }
}

fn ignored(page: &mut Page, ignored: &Ignored) {
    let at_pinger = [
        (ignored.malformed, "malformed"),
        (ignored.foreign, "of another session"),
        (ignored.corrupt, "corrupt"),
        (ignored.stale, "stale"),
    ];
    let at_reflector = [
        (ignored.reflector_malformed.unwrap_or(0), "malformed"),
        (ignored.reflector_foreign.unwrap_or(0), "of another session"),
        (ignored.reflector_duplicate.unwrap_or(0), "answered again"),
    ];
    let mut said = Vec::new();
    for (end, counts) in [("pinger", &at_pinger[..]), ("reflector", &at_reflector[..])] {
        let some: Vec<_> = counts.iter().copied().filter(|(n, _)| *n > 0).collect();
        if !some.is_empty() {
            said.push(format!("at the {end} {}", listed(&some)));
        }
    }
    if !said.is_empty() {
        page.field("ignored", &said.join("; "));
    }
}

/// The last lines: what weakens the figures.
pub(crate) fn warnings(page: &mut Page, run: &Run) {
    if !run.warnings.is_empty() {
        page.blank();
    }
    for warning in &run.warnings {
        page.hang("warning: ", "warning: ".len(), &clean(warning));
    }
}

/// `3 lost = 1 here + 2 there`; says so where it is not equal.
fn added_up((whole, of_what): (u64, &str), parts: &[(u64, &str)]) -> String {
    let sum: u128 = parts.iter().map(|(n, _)| u128::from(*n)).sum();
    let equals = if sum == u128::from(whole) { "=" } else { "≠" };
    let parts: Vec<String> = parts.iter().map(|(n, what)| glue(&format!("{} {what}", count(*n)))).collect();
    format!("{} {}", glue(&format!("{} {of_what} {equals}", count(whole))), parts.join(&format!("{GLUE}+ ")))
}

fn listed(counts: &[(u64, &str)]) -> String {
    let counts: Vec<String> = counts.iter().map(|(n, what)| glue(&format!("{} {what}", count(*n)))).collect();
    counts.join(", ")
}

/// Kept on one line where it fits one.
fn glue(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}
