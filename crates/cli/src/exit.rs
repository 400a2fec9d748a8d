//! Exit codes: part of the interface, the same for every command.

use std::process::ExitCode;

use tickpong_lab::player::Unplayable;
use tickpong_record::Run;
use tickpong_runner::RunnerError;

use crate::output;

/// All went well: a valid run, a run of any kind read again, or hosts that compare.
pub(crate) const OK: u8 = 0;
/// The command or its data make no sense.
pub(crate) const USAGE: u8 = 2;
/// Two hosts differ in what must match.
pub(crate) const NOT_COMPARABLE: u8 = 4;
/// The run was invalid, or could not be made.
pub(crate) const INVALID: u8 = 5;
/// A person ended it; what was measured is written.
pub(crate) const INTERRUPTED: u8 = 130;

/// The exit code of what a command came to; tells of errors.
pub(crate) fn code(done: anyhow::Result<u8>) -> ExitCode {
    let code = done.unwrap_or_else(|error| {
        if error.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe) {
            // Whoever read our output has seen enough.
            return OK;
        }
        output::advise(&format!("error: failed to {}", chain(&error)));
        of_error(&error)
    });
    ExitCode::from(code)
}

/// The exit code of a run that was made: 130 only where a person cut its plan, and not where their wish came after its end.
pub(crate) fn of_run(run: &Run) -> u8 {
    if run.invalid_because.iter().any(|why| why.starts_with("interrupted: ")) {
        INTERRUPTED
    } else if run.valid {
        OK
    } else {
        INVALID
    }
}

/// An error with its causes, each once.
fn chain(error: &anyhow::Error) -> String {
    error
        .chain()
        .skip(1)
        .map(ToString::to_string)
        .fold(error.to_string(), |text, cause| if text.contains(&cause) { text } else { format!("{text}: {cause}") })
}

fn of_error(error: &anyhow::Error) -> u8 {
    if let Some(unplayable) = error.downcast_ref::<Unplayable>() {
        return if unplayable.is_usage { USAGE } else { INVALID };
    }
    match error.downcast_ref::<RunnerError>() {
        Some(RunnerError::Interrupted) => INTERRUPTED,
        Some(
            RunnerError::Unprotected { .. }
            | RunnerError::Host { .. }
            | RunnerError::Key(_)
            | RunnerError::Plan(_)
            | RunnerError::Record(_)
            | RunnerError::NoSuchCpu { .. },
        )
        | None => USAGE,
        Some(
            RunnerError::Resolve { .. }
            | RunnerError::NoAddress { .. }
            | RunnerError::Connect { .. }
            | RunnerError::Listen { .. }
            | RunnerError::Control { .. }
            | RunnerError::Silent { .. }
            | RunnerError::BadMessage { .. }
            | RunnerError::OutOfTurn { .. }
            | RunnerError::Incompatible { .. }
            | RunnerError::Busy { .. }
            | RunnerError::Refused { .. }
            | RunnerError::NotProven { .. }
            | RunnerError::Elsewhere { .. }
            | RunnerError::OtherFamily { .. }
            | RunnerError::Socket(_)
            | RunnerError::Cpus { .. }
            | RunnerError::Clock { .. }
            | RunnerError::NoPath { .. }
            | RunnerError::Overtime { .. }
            | RunnerError::Random(_)
            | RunnerError::Hosts(_)
            | RunnerError::StartReflector { .. }
            | RunnerError::ReflectorEnded { .. },
        ) => INVALID,
    }
}
